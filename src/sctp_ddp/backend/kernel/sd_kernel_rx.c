/* SPDX-License-Identifier: BSD-2-Clause */
/* What comes out of an association of the kernel's: messages, notifications and its end. */
#include "sctp_ddp/backend/kernel/sd_kernel.h"
#include <errno.h>
#include <string.h>
#include <sys/epoll.h>

#define TURN 64 /* items per turn, then other descriptors have theirs */

enum item { ITEM_NONE, ITEM_DATA, ITEM_NOTE, ITEM_END };

struct got {
	enum item what;
	int sys_errno;
	bool eor;
	struct sctp_rcvinfo info;
	const uint8_t *data;
	size_t len;
};

static void find_info(struct msghdr *m, struct sctp_rcvinfo *info)
{
	for (struct cmsghdr *c = CMSG_FIRSTHDR(m); c; c = CMSG_NXTHDR(m, c))
		if (c->cmsg_level == IPPROTO_SCTP && c->cmsg_type == SCTP_RCVINFO)
			memcpy(info, CMSG_DATA(c), sizeof *info);
}

/* One read from SCTP: a message or the next part of one, or a notification. */
static struct got take(struct ddps_sd_assoc *a)
{
	struct got g = { .what = ITEM_NONE };
	size_t cap;
	uint8_t *buf = ddps_sd_part_room(&a->part, a->ke->rx_buf, &cap);
	union {
		struct cmsghdr align;
		uint8_t buf[CMSG_SPACE(sizeof(struct sctp_rcvinfo))];
	} ctrl;
	struct iovec iov = { buf, cap };
	struct msghdr m = { .msg_iov = &iov,
			    .msg_iovlen = 1,
			    .msg_control = &ctrl,
			    .msg_controllen = sizeof ctrl };
	ssize_t n = recvmsg(a->io.fd, &m, MSG_DONTWAIT);

	if (n < 0)
		g.sys_errno = errno;
	if (n < 0 && (errno == EAGAIN || errno == EINTR))
		return g;
	g.data = buf;
	g.len = n > 0 ? (size_t)n : 0;
	g.eor = m.msg_flags & MSG_EOR;
	if (n <= 0)
		g.what = ITEM_END;
	else if (m.msg_flags & MSG_NOTIFICATION)
		g.what = ITEM_NOTE;
	else
		g.what = ITEM_DATA;
	find_info(&m, &g.info);
	return g;
}

static bool alive(const struct ddps_sd_assoc *a)
{
	return !a->freed && !a->doomed && !a->ended;
}

/* ---- the end ---- */

static int so_error(const struct ddps_sd_assoc *a)
{
	int err = 0;
	socklen_t len = sizeof err;

	return getsockopt(a->io.fd, SOL_SOCKET, SO_ERROR, &err, &len) < 0 ? errno : err;
}

static struct ddps_error why(const struct ddps_sd_assoc *a, int sys_errno)
{
	if (a->announced)
		return ddps_error_make(DDPS_E_RESET, sys_errno, "SCTP association lost: %s",
				       sys_errno ? strerror(sys_errno) : "aborted");
	switch (sys_errno) {
	case ETIMEDOUT:
		return ddps_error_make(DDPS_E_TIMEDOUT, sys_errno, "no answer to the SCTP set-up");
	case 0:
	case ECONNREFUSED:
	case ECONNRESET:
		return ddps_error_make(DDPS_E_REFUSED, sys_errno, "peer refused the SCTP set-up");
	default:
		return ddps_error_make(ddps_err_from_errno(sys_errno), sys_errno,
				       "SCTP set-up failed: %s", strerror(sys_errno));
	}
}

/*
 * The event tells of the time it was made.  If nothing was sent since it was asked for it
 * still holds; else ask again: it comes at once if all is acknowledged now.
 */
static void on_dry(struct ddps_sd_assoc *a)
{
	if (!a->want_dry)
		return;
	ddps_sk_event(a, SCTP_SENDER_DRY_EVENT, false);
	if (a->sent != a->sent_at_ask) {
		a->sent_at_ask = a->sent;
		ddps_sk_event(a, SCTP_SENDER_DRY_EVENT, true);
		return;
	}
	a->want_dry = false;
	a->up->dry(a->user);
}

#define doom	    ddps_sk_doom
#define env_of(a)   ((a)->ke->env)
#define shut_socket ddps_sk_close
#define came_up	    ddps_sk_addresses
#include "sctp_ddp/backend/sd_serve.h"

static void turn(struct ddps_sd_assoc *a, uint32_t events)
{
	int err;

	if (a->connecting) {
		err = so_error(a);
		if (err) {
			on_end(a, err);
			return;
		}
		if (!(events & (EPOLLOUT | EPOLLIN)))
			return;
		a->connecting = false;
	}
	for (int n = 0; n < TURN && !a->paused; n++)
		if (!step(a))
			break;
	if (!alive(a))
		return;
	/* Nobody reads a paused association, yet a lost one is lost. */
	if (a->paused && (events & EPOLLERR)) {
		on_end(a, so_error(a));
		return;
	}
	if (a->want_write && (events & EPOLLOUT)) {
		a->want_write = false;
		a->up->writable(a->user);
	}
}

void ddps_sk_serve(struct ddps_sd_assoc *a, uint32_t events)
{
	a->serving = true;
	if (alive(a))
		turn(a, events);
	if (a->doomed && !a->ended && !a->freed)
		finish(a);
	a->serving = false;
	if (a->freed)
		ddps_sk_release(a);
	else if (a->paused && (events & EPOLLHUP))
		ddps_io_del(a->ke->env->loop, &a->io); /* would be reported without end */
	else
		ddps_sk_watch(a);
}
