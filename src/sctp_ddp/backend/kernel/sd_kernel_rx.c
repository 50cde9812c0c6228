/* SPDX-License-Identifier: BSD-2-Clause */
/* What comes out of an association of the kernel's, for sd_kernel_life.c. */
#include "sctp_ddp/backend/kernel/sd_kernel.h"
#include <errno.h>
#include <string.h>
#include <sys/epoll.h>

/* All that are ready together read about so many octets in a turn, and each of them at most, and may at
 * least, so many; and no more items.  A program may have the loop run but once for all that it writes. */
#define READ_ALL   (4096u * 1024)
#define READ_MOST  (1024u * 1024)
#define READ_LEAST (64u * 1024)
#define ITEMS	   1024

static void find_info(struct msghdr *m, struct sctp_rcvinfo *info)
{
	for (struct cmsghdr *c = CMSG_FIRSTHDR(m); c; c = CMSG_NXTHDR(m, c))
		if (c->cmsg_level == IPPROTO_SCTP && c->cmsg_type == SCTP_RCVINFO)
			memcpy(info, CMSG_DATA(c), sizeof *info);
}

static enum ddps_sk_what change_of(uint16_t state)
{
	switch (state) {
	case SCTP_COMM_UP:
		return DDPS_SK_UP;
	case SCTP_SHUTDOWN_COMP:
		return DDPS_SK_SHUT_DONE;
	case SCTP_RESTART:
		return DDPS_SK_RESTART;
	default: /* COMM_LOST, CANT_STR_ASSOC */
		return DDPS_SK_LOST;
	}
}

/* Of a notification; its octets may be less than all of it. */
static void read_note(const struct ddps_sd_assoc *a, struct ddps_sk_item *it)
{
	union sctp_notification n;

	memset(&n, 0, sizeof n);
	memcpy(&n, it->data, it->len < sizeof n ? it->len : sizeof n);
	it->what = DDPS_SK_OTHER;
	switch (n.sn_header.sn_type) {
	case SCTP_ASSOC_CHANGE:
		it->what = change_of(n.sn_assoc_change.sac_state);
		it->in_streams = n.sn_assoc_change.sac_inbound_streams;
		it->out_streams = n.sn_assoc_change.sac_outbound_streams;
		break;
	case SCTP_ADAPTATION_INDICATION:
		it->what = DDPS_SK_INDICATION;
		it->adaptation = n.sn_adaptation_event.sai_adaptation_ind;
		break;
	case SCTP_SHUTDOWN_EVENT:
		it->what = DDPS_SK_PEER_SHUT;
		break;
	case SCTP_SENDER_DRY_EVENT:
		it->what = DDPS_SK_DRY;
		break;
	case SCTP_PARTIAL_DELIVERY_EVENT:
		it->what = DDPS_SK_PART_LOST;
		break;
	case SCTP_PEER_ADDR_CHANGE:
		ddps_sk_path_note(a, &n.sn_paddr_change);
		break;
	default:
		break;
	}
}

static void read_data(struct ddps_sk_item *it, const struct sctp_rcvinfo *info)
{
	it->what = DDPS_SK_DATA;
	it->stream = info->rcv_sid;
	it->ppid = ntohl(info->rcv_ppid);
	it->unordered = info->rcv_flags & SCTP_UNORDERED;
}

/* One read from SCTP: a message or the next part of one, or a notification. */
struct ddps_sk_item ddps_sk_take(struct ddps_sd_assoc *a)
{
	struct ddps_sk_item it = { .what = DDPS_SK_NOTHING };
	struct sctp_rcvinfo info = { 0 };
	size_t cap;
	uint8_t *buf = ddps_sd_part_room(&a->life.part, a->ke->rx_buf, &cap);
	union {
		struct cmsghdr align;
		uint8_t buf[CMSG_SPACE(sizeof(struct sctp_rcvinfo))];
	} ctrl;
	struct iovec iov = { buf, cap };
	struct msghdr m = { .msg_iov = &iov,
			    .msg_iovlen = 1,
			    .msg_control = &ctrl,
			    .msg_controllen = sizeof ctrl };
	ssize_t n = ddps_loop_owns(a->ke->env->loop) ? recvmsg(a->io.fd, &m, MSG_DONTWAIT) : -1;

	if (n < 0)
		it.sys_errno = errno;
	if (n < 0 && (errno == EAGAIN || errno == EINTR))
		return it;
	if (n > 0) {
		ddps_io_moved(a->ke->env->loop, &a->io, (size_t)n);
		a->octets += (size_t)n;
	}
	it.data = buf;
	it.len = n > 0 ? (size_t)n : 0;
	it.eor = m.msg_flags & MSG_EOR;
	if (n <= 0)
		it.what = DDPS_SK_END;
	else if (m.msg_flags & MSG_NOTIFICATION)
		read_note(a, &it);
	else {
		find_info(&m, &info);
		read_data(&it, &info);
	}
	return it;
}

/* ---- the end ---- */

int ddps_sk_so_error(const struct ddps_sd_assoc *a)
{
	int err = 0;
	socklen_t len = sizeof err;

	return getsockopt(a->io.fd, SOL_SOCKET, SO_ERROR, &err, &len) < 0 ? errno : err;
}

struct ddps_error ddps_sk_why(const struct ddps_sd_assoc *a, int sys_errno)
{
	if (a->life.announced)
		return ddps_error_make(DDPS_E_RESET, sys_errno, "SCTP association lost: %s",
				       sys_errno ? strerror(sys_errno) : "aborted");
	switch (sys_errno) {
	case ETIMEDOUT:
		return ddps_error_make(DDPS_E_TIMEDOUT, sys_errno, "no answer to the SCTP set-up");
	case 0:
	case ECONNREFUSED:
	case ECONNRESET:
	case ENOPROTOOPT: /* ICMP: no SCTP there */
		return ddps_error_make(DDPS_E_REFUSED, sys_errno, "peer refused the SCTP set-up");
	default:
		return ddps_error_make(ddps_err_from_errno(sys_errno), sys_errno,
				       "SCTP set-up failed: %s", strerror(sys_errno));
	}
}

/* Comes immediately if there is nothing to wait for.  Whoever were not told would wait without end. */
void ddps_sk_ask_dry(struct ddps_sd_assoc *a)
{
	a->sent_at_ask = a->sent;
	if (ddps_sk_event(a, SCTP_SENDER_DRY_EVENT, true) < 0)
		ddps_sk_end_soon(a, ddps_error_make(DDPS_E_SYSTEM, errno,
						    "SCTP tells of no acknowledgements: %s",
						    strerror(errno)));
}

/*
 * The event is of the time it was made.  If nothing was sent since it was asked for it
 * still holds; else ask again: it comes immediately if all is acknowledged now.
 */
void ddps_sk_dry(struct ddps_sd_assoc *a)
{
	if (!a->life.want_dry)
		return;
	(void)ddps_sk_event(a, SCTP_SENDER_DRY_EVENT, false);
	if (a->sent != a->sent_at_ask) {
		ddps_sk_ask_dry(a);
		return;
	}
	a->life.want_dry = false;
	a->life.up->dry(a->life.user);
}

static void read_items(struct ddps_sd_assoc *a)
{
	uint64_t until =
		a->octets + ddps_loop_share(a->ke->env->loop, READ_ALL, READ_LEAST, READ_MOST);

	for (int n = 0; n < ITEMS && a->octets < until && !a->life.paused; n++)
		if (!ddps_sk_life_step(&a->life))
			break;
}

static void turn_kernel_assoc(struct ddps_sd_assoc *a, uint32_t events)
{
	int err;

	if (a->connecting) {
		err = ddps_sk_so_error(a);
		if (err) {
			if (!ddps_sk_dial_next(a, err))
				ddps_sk_life_on_end(&a->life, err);
			return;
		}
		if (!(events & (EPOLLOUT | EPOLLIN)))
			return;
		a->connecting = false;
	}
	read_items(a);
	if (!ddps_sk_life_alive(&a->life))
		return;
	/* Nobody reads a paused association, yet a lost one is lost. */
	if (a->life.paused && (events & EPOLLERR)) {
		ddps_sk_life_on_end(&a->life, ddps_sk_so_error(a));
		return;
	}
	if (a->life.want_write && (events & EPOLLOUT)) {
		a->life.want_write = false;
		a->life.up->writable(a->life.user);
	}
}

void ddps_sk_serve(struct ddps_sd_assoc *a, uint32_t events)
{
	if (ddps_sk_life_enter(&a->life))
		turn_kernel_assoc(a, events);
	if (!ddps_sk_life_leave(&a->life))
		return;
	if (a->life.paused && (events & EPOLLHUP))
		ddps_io_del(a->ke->env->loop, &a->io); /* would be reported without end */
	else
		ddps_sk_watch(a);
}
