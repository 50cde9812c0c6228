/* SPDX-License-Identifier: BSD-2-Clause */
/* The peer over the operating system's SCTP: one-to-one sockets (RFC 6458). */
#include "conform/peer/sctp_net.h"
#include <errno.h>
#include <netinet/in.h>
#include <netinet/sctp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define LINKS_MAX (CF_SCTP_FDS - 1)

/* <linux/sctp.h>; some copies of <netinet/sctp.h> are older than it. */
#define REMOTE_UDP_ENCAPS_PORT 132
struct udp_encaps {
	sctp_assoc_t id;
	struct sockaddr_storage address;
	uint16_t port;
};

/* One association; what has come of its message so far. */
struct link {
	struct cf_assoc *as;
	int fd;
	size_t have;
	uint8_t part[CF_MAX];
};

struct below {
	int listen_fd;
	size_t n;
	struct link *link[LINKS_MAX];
};

bool cf_sctp_kernel_there(void)
{
	int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, IPPROTO_SCTP);

	if (fd >= 0)
		close(fd);
	return fd >= 0;
}

/* ---- sockets ---- */

static int prepare_kernel_socket(int fd, const struct cf_at *at, bool dialling)
{
	struct sctp_initmsg init = { .sinit_num_ostreams = CF_SCTP_STREAMS,
				     .sinit_max_instreams = CF_SCTP_STREAMS };
	struct sctp_setadaptation ddp = { .ssb_adaptation_ind = CF_SCTP_DDP };
	struct sctp_event changes = { .se_assoc_id = SCTP_FUTURE_ASSOC,
				      .se_type = SCTP_ASSOC_CHANGE,
				      .se_on = 1 };
	struct udp_encaps udp = { .id = SCTP_FUTURE_ASSOC,
				  .address = { .ss_family = at->ss.ss_family },
				  .port = htons((uint16_t)at->encap) };
	struct linger abort_on_close = { .l_onoff = 1 };
	int on = 1, bad = 0;

	bad |= setsockopt(fd, IPPROTO_SCTP, SCTP_INITMSG, &init, sizeof init);
	bad |= setsockopt(fd, IPPROTO_SCTP, SCTP_ADAPTATION_LAYER, &ddp, sizeof ddp);
	bad |= setsockopt(fd, IPPROTO_SCTP, SCTP_NODELAY, &on, sizeof on);
	bad |= setsockopt(fd, IPPROTO_SCTP, SCTP_RECVRCVINFO, &on, sizeof on);
	bad |= setsockopt(fd, IPPROTO_SCTP, SCTP_EVENT, &changes, sizeof changes);
	bad |= setsockopt(fd, SOL_SOCKET, SO_LINGER, &abort_on_close, sizeof abort_on_close);
	if (dialling && at->encap > 0)
		bad |= setsockopt(fd, IPPROTO_SCTP, REMOTE_UDP_ENCAPS_PORT, &udp, sizeof udp);
	return bad ? errno : 0;
}

static int open_kernel_socket(const struct cf_at *at, bool dialling, int *fd)
{
	int err;

	*fd = socket(at->ss.ss_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, IPPROTO_SCTP);
	if (*fd < 0)
		return errno;
	err = prepare_kernel_socket(*fd, at, dialling);
	if (err) {
		close(*fd);
		*fd = -1;
	}
	return err;
}

static struct below *get_kernel_carrier(struct cf_net *n)
{
	struct below *b = n->below;

	if (!b) {
		b = calloc(1, sizeof *b);
		if (b)
			b->listen_fd = -1;
		n->below = b;
	}
	return b;
}

static int add_assoc(struct below *b, struct cf_assoc *as, int fd)
{
	struct link *l = b->n < LINKS_MAX ? calloc(1, sizeof *l) : NULL;

	if (!l) {
		close(fd);
		return ENOMEM;
	}
	l->as = as;
	l->fd = fd;
	as->below = l;
	b->link[b->n++] = l;
	return 0;
}

/* The UDP port that the kernel takes SCTP on; 0: none. */
static unsigned read_kernel_udp_port(void)
{
	FILE *f = fopen("/proc/sys/net/sctp/udp_port", "re");
	unsigned port = 0;

	if (f) {
		if (fscanf(f, "%u", &port) != 1)
			port = 0;
		fclose(f);
	}
	return port;
}

static int listen_in_kernel(struct cf_net *n, const struct cf_at *at, char *uri, size_t len)
{
	struct below *b = get_kernel_carrier(n);
	struct sockaddr_storage ss;
	socklen_t ss_len = sizeof ss;
	char text[80], encap[16] = "off";
	int err, on = 1;

	if (!b)
		return ENOMEM;
	err = open_kernel_socket(at, false, &b->listen_fd);
	if (err)
		return err;
	(void)setsockopt(b->listen_fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof on);
	if (bind(b->listen_fd, (const struct sockaddr *)&at->ss, at->len) ||
	    listen(b->listen_fd, 16) || getsockname(b->listen_fd, (struct sockaddr *)&ss, &ss_len))
		return errno;
	if (at->encap >= 0)
		snprintf(encap, sizeof encap, "%u", read_kernel_udp_port());
	cf_addr_text(&ss, text, sizeof text);
	snprintf(uri, len, "sctp://%s?backend=kernel&encap=%s", text, encap);
	return 0;
}

static int dial_in_kernel(struct cf_assoc *as, const struct cf_at *at)
{
	struct below *b = get_kernel_carrier(as->net);
	int fd, err;

	if (!b)
		return ENOMEM;
	err = open_kernel_socket(at, true, &fd);
	if (err)
		return err;
	if (connect(fd, (const struct sockaddr *)&at->ss, at->len) && errno != EINPROGRESS) {
		err = errno;
		close(fd);
		return err;
	}
	return add_assoc(b, as, fd);
}

/* ---- what comes ---- */

static void end_kernel_link(struct link *l, int err)
{
	if (err)
		cf_sctp_gone(l->as, "%s", strerror(err));
	else
		cf_sctp_gone(l->as, "an orderly SHUTDOWN");
	close(l->fd);
	l->fd = -1;
}

static void take_notification(struct link *l, const uint8_t *b, size_t len)
{
	struct sctp_assoc_change c;

	if (len < sizeof c)
		return;
	memcpy(&c, b, sizeof c);
	if (c.sac_type != SCTP_ASSOC_CHANGE)
		return;
	if (c.sac_state == SCTP_COMM_LOST)
		end_kernel_link(l, ECONNRESET);
	else if (c.sac_state == SCTP_SHUTDOWN_COMP)
		end_kernel_link(l, 0);
}

/* Whether the association that we began is there, or will not be. */
static void settle_kernel_dial(struct link *l)
{
	struct pollfd p = { l->fd, POLLOUT, 0 };
	socklen_t len = sizeof(int);
	int err = 0;

	if (poll(&p, 1, 0) <= 0)
		return;
	if (getsockopt(l->fd, SOL_SOCKET, SO_ERROR, &err, &len) || err)
		end_kernel_link(l, err ? err : errno);
	else
		l->as->up = true;
}

/* Return: false: nothing more now. */
static bool take_from_socket(struct link *l)
{
	union {
		struct cmsghdr align;
		uint8_t buf[CMSG_SPACE(sizeof(struct sctp_rcvinfo))];
	} ctrl;
	struct iovec iov = { l->part + l->have, sizeof l->part - l->have };
	struct msghdr m = { .msg_iov = &iov,
			    .msg_iovlen = 1,
			    .msg_control = &ctrl,
			    .msg_controllen = sizeof ctrl };
	struct sctp_rcvinfo info = { 0 };
	ssize_t n = recvmsg(l->fd, &m, MSG_DONTWAIT);

	if (n < 0 && (errno == EAGAIN || errno == EINTR))
		return false;
	if (n <= 0) {
		end_kernel_link(l, n ? errno : 0);
		return false;
	}
	if (m.msg_flags & MSG_NOTIFICATION) {
		take_notification(l, l->part + l->have, (size_t)n);
		return l->fd >= 0;
	}
	l->have += (size_t)n;
	if (!(m.msg_flags & MSG_EOR)) {
		if (l->have == sizeof l->part)
			end_kernel_link(l, EMSGSIZE);
		return l->fd >= 0;
	}
	for (struct cmsghdr *c = CMSG_FIRSTHDR(&m); c; c = CMSG_NXTHDR(&m, c))
		if (c->cmsg_level == IPPROTO_SCTP && c->cmsg_type == SCTP_RCVINFO)
			memcpy(&info, CMSG_DATA(c), sizeof info);
	cf_sctp_heard(l->as, info.rcv_sid, ntohl(info.rcv_ppid), info.rcv_flags & SCTP_UNORDERED,
		      l->part, l->have);
	l->have = 0;
	return true;
}

static void accept_kernel_link(struct cf_net *n)
{
	struct below *b = n->below;
	struct cf_assoc *as;
	int fd;

	if (!n->waiting)
		return; /* it stays in the kernel's queue */
	fd = accept4(b->listen_fd, NULL, NULL, SOCK_CLOEXEC);
	if (fd < 0)
		return;
	as = cf_sctp_accept(n);
	if (add_assoc(b, as, fd))
		cf_sctp_gone(as, "out of memory");
}

static size_t fill_kernel_fds(struct cf_net *n, struct pollfd *p, size_t max)
{
	struct below *b = n->below;
	size_t count = 0;

	if (b->listen_fd >= 0 && n->waiting)
		p[count++] = (struct pollfd){ b->listen_fd, POLLIN, 0 };
	for (size_t i = 0; i < b->n && count < max; i++)
		if (b->link[i]->fd >= 0)
			p[count++] = (struct pollfd){ b->link[i]->fd,
						      b->link[i]->as->up ? POLLIN : POLLOUT, 0 };
	return count;
}

static uint64_t get_kernel_due(struct cf_net *n)
{
	(void)n;
	return UINT64_MAX;
}

static void step_kernel_carrier(struct cf_net *n)
{
	struct below *b = n->below;
	struct pollfd p = { b->listen_fd, POLLIN, 0 };

	if (n->waiting && p.fd >= 0 && poll(&p, 1, 0) > 0)
		accept_kernel_link(n);
	for (size_t i = 0; i < b->n; i++) {
		if (b->link[i]->fd >= 0 && !b->link[i]->as->up)
			settle_kernel_dial(b->link[i]);
		while (b->link[i]->fd >= 0 && b->link[i]->as->up && take_from_socket(b->link[i]))
			;
	}
}

/* ---- what goes ---- */

static bool send_in_kernel(struct cf_assoc *as, uint16_t stream, uint32_t ppid, const void *p,
			   size_t len)
{
	struct link *l = as->below;
	struct sctp_sndinfo info = { .snd_sid = stream,
				     .snd_flags = SCTP_UNORDERED,
				     .snd_ppid = htonl(ppid) };
	union {
		struct cmsghdr align;
		uint8_t buf[CMSG_SPACE(sizeof info)];
	} ctrl = { 0 };
	/* The kernel only reads it. */
	struct iovec iov = { (void *)(uintptr_t)p, len };
	struct msghdr m = { .msg_iov = &iov,
			    .msg_iovlen = 1,
			    .msg_control = &ctrl,
			    .msg_controllen = sizeof ctrl };
	struct cmsghdr *c = CMSG_FIRSTHDR(&m);

	c->cmsg_level = IPPROTO_SCTP;
	c->cmsg_type = SCTP_SNDINFO;
	c->cmsg_len = CMSG_LEN(sizeof info);
	memcpy(CMSG_DATA(c), &info, sizeof info);
	if (l->fd < 0 || sendmsg(l->fd, &m, MSG_DONTWAIT | MSG_NOSIGNAL) >= 0)
		return true;
	return errno != EAGAIN; /* what else is wrong shows when the target is heard next */
}

static void shut_down_kernel_link(struct cf_assoc *as)
{
	struct link *l = as->below;

	if (l->fd >= 0)
		(void)shutdown(l->fd, SHUT_WR);
}

/* SO_LINGER with 0: closing it is an ABORT. */
static void abort_kernel_link(struct cf_assoc *as)
{
	struct link *l = as->below;

	if (l->fd >= 0)
		close(l->fd);
	l->fd = -1;
	cf_sctp_gone(as, "aborted here");
}

static void close_kernel_carrier(struct cf_net *n)
{
	struct below *b = n->below;

	if (!b)
		return;
	for (size_t i = 0; i < b->n; i++) {
		if (b->link[i]->fd >= 0)
			close(b->link[i]->fd);
		free(b->link[i]);
	}
	if (b->listen_fd >= 0)
		close(b->listen_fd);
	free(b);
}

const struct cf_carrier cf_sctp_kernel = {
	.listen = listen_in_kernel,
	.dial = dial_in_kernel,
	.fds = fill_kernel_fds,
	.due = get_kernel_due,
	.step = step_kernel_carrier,
	.send = send_in_kernel,
	.shutdown = shut_down_kernel_link,
	.abort = abort_kernel_link,
	.close = close_kernel_carrier,
};
