/* SPDX-License-Identifier: BSD-2-Clause */
/* The backend for the kernel's SCTP: one-to-one sockets, optionally over UDP (RFC 6951). */
#include "common/own.h"
#include "sctp_ddp/backend/kernel/sd_kernel.h"
#include "sctp_ddp/sd_wire.h"
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <unistd.h>

#ifndef SCTP_REMOTE_UDP_ENCAPS_PORT /* Linux 5.11 */
#define SCTP_REMOTE_UDP_ENCAPS_PORT 132
struct sctp_udpencaps {
	sctp_assoc_t sue_assoc_id;
	struct sockaddr_storage sue_address;
	uint16_t sue_port;
};
#endif

#define BUF_LEN	      (4 * 1024 * 1024)
#define IOV_MAX_PARTS 32
#define RETRY_MS      100
#define FRAG_DEFAULT  1452 /* 1500 octets, IPv4 */
#define UDP_PORT_FILE "/proc/sys/net/sctp/udp_port"

static bool available(void)
{
	int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, IPPROTO_SCTP);

	if (fd < 0)
		return false;
	ddps_own_close(fd);
	return true;
}

/* ---- a context's own ---- */

static int env_get(struct ddps_env *env, void **ctx, struct ddps_sk_env **out)
{
	struct ddps_sk_env *ke = *ctx;

	if (!ke) {
		ke = calloc(1, sizeof *ke);
		if (!ke)
			return DDPS_E_NOMEM;
		ke->env = env;
		ke->rx_buf = malloc(DDPS_SD_MSG_MAX);
		if (!ke->rx_buf) {
			free(ke);
			return DDPS_E_NOMEM;
		}
		*ctx = ke;
	}
	*out = ke;
	return 0;
}

/* ---- sockets ---- */

static int set(int fd, int opt, const void *value, size_t len)
{
	return setsockopt(fd, IPPROTO_SCTP, opt, value, (socklen_t)len);
}

static int set_events(int fd)
{
	static const uint16_t types[] = { SCTP_ASSOC_CHANGE, SCTP_ADAPTATION_INDICATION,
					  SCTP_SHUTDOWN_EVENT, SCTP_PARTIAL_DELIVERY_EVENT };
	int bad = 0;

	for (size_t i = 0; i < sizeof types / sizeof types[0]; i++) {
		struct sctp_event ev = { .se_assoc_id = SCTP_FUTURE_ASSOC,
					 .se_type = types[i],
					 .se_on = 1 };

		bad |= set(fd, SCTP_EVENT, &ev, sizeof ev);
	}
	return bad;
}

static int set_options(int fd)
{
	/* Equal counts both ways [5043-8-1]. */
	struct sctp_initmsg init = { .sinit_num_ostreams = DDPS_SCTP_STREAMS,
				     .sinit_max_instreams = DDPS_SCTP_STREAMS };
	/* [5043-5.1-1] [5043-5.1-d1] */
	struct sctp_setadaptation ad = { .ssb_adaptation_ind = DDPS_SCTP_ADAPTATION_DDP };
	struct linger abort_on_close = { .l_onoff = 1 };
	struct sctp_assoc_value no_pr = { .assoc_id = SCTP_FUTURE_ASSOC, .assoc_value = 0 };
	int on = 1, size = BUF_LEN, bad;

	bad = set(fd, SCTP_INITMSG, &init, sizeof init);
	bad |= set(fd, SCTP_ADAPTATION_LAYER, &ad, sizeof ad);
	bad |= set(fd, SCTP_NODELAY, &on, sizeof on); /* [5043-11.2-1] */
	bad |= set(fd, SCTP_RECVRCVINFO, &on, sizeof on);
	/* A FORWARD-TSN (RFC 3758) would have us wait for ever for a message that was given up. */
	(void)set(fd, SCTP_PR_SUPPORTED, &no_pr, sizeof no_pr);
	bad |= set_events(fd);
	bad |= setsockopt(fd, SOL_SOCKET, SO_LINGER, &abort_on_close, sizeof abort_on_close);
	/* As much of it as the system grants. */
	(void)setsockopt(fd, SOL_SOCKET, SO_SNDBUF, &size, sizeof size);
	(void)setsockopt(fd, SOL_SOCKET, SO_RCVBUF, &size, sizeof size);
	return bad;
}

/* The kernel's own UDP port for SCTP; 0: it does not encapsulate. */
static uint16_t kernel_udp_port(void)
{
	FILE *f = fopen(UDP_PORT_FILE, "re");
	unsigned port = 0;

	if (!f)
		return 0;
	if (fscanf(f, "%u", &port) != 1 || port > UINT16_MAX)
		port = 0;
	fclose(f);
	return (uint16_t)port;
}

static int set_encap(int fd, int family, uint16_t port)
{
	struct sctp_udpencaps e = { .sue_assoc_id = SCTP_FUTURE_ASSOC,
				    .sue_address.ss_family = (sa_family_t)family,
				    .sue_port = htons(port) };

	return set(fd, SCTP_REMOTE_UDP_ENCAPS_PORT, &e, sizeof e);
}

/* -1 and errno; *@err is DDPS_E_UNSUPPORTED where the kernel has no SCTP. */
static int socket_new(int family, int *err)
{
	int fd = ddps_own(socket(family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, IPPROTO_SCTP));

	*err = DDPS_E_SYSTEM;
	if (fd < 0) {
		if (errno == EPROTONOSUPPORT || errno == ESOCKTNOSUPPORT || errno == EAFNOSUPPORT)
			*err = DDPS_E_UNSUPPORTED;
		return -1;
	}
	if (set_options(fd)) {
		int keep = errno;

		ddps_own_close(fd);
		errno = keep;
		return -1;
	}
	return fd;
}

static void name_of(int fd, bool peer, char *buf, size_t len)
{
	struct sockaddr_storage ss = { 0 };
	socklen_t ss_len = sizeof ss;

	if (peer)
		getpeername(fd, (struct sockaddr *)&ss, &ss_len);
	else
		getsockname(fd, (struct sockaddr *)&ss, &ss_len);
	ddps_addr_text((struct sockaddr *)&ss, buf, len);
}

/* ---- associations: life ---- */

static void on_io(void *user, uint32_t events)
{
	ddps_sk_serve(user, events);
}

static void on_task(void *user)
{
	ddps_sk_serve(user, 0);
}

static void timed_out(void *user)
{
	ddps_sk_doom(user, ddps_error_make(DDPS_E_TIMEDOUT, 0, "no SCTP association in time"));
}

static struct ddps_sd_assoc *assoc_new(struct ddps_sk_env *ke, int fd)
{
	struct ddps_sd_assoc *a = calloc(1, sizeof *a);

	if (!a)
		return NULL;
	a->ke = ke;
	a->io = (struct ddps_io){ .fd = fd, .fn = on_io, .user = a };
	a->task = (struct ddps_task){ .fn = on_task, .user = a };
	a->deadline = (struct ddps_timer){ .fn = timed_out, .user = a };
	DL_APPEND(ke->assocs, a);
	return a;
}

void ddps_sk_watch(struct ddps_sd_assoc *a)
{
	uint32_t want = a->paused ? 0 : EPOLLIN;

	if (a->io.fd < 0)
		return;
	if (a->connecting || a->want_write)
		want |= EPOLLOUT;
	if (ddps_io_set(a->ke->env->loop, &a->io, want) < 0)
		ddps_sk_doom(a, ddps_error_make(DDPS_E_SYSTEM, errno, "epoll"));
}

void ddps_sk_close(struct ddps_sd_assoc *a)
{
	if (a->io.fd < 0)
		return;
	ddps_io_del(a->ke->env->loop, &a->io);
	ddps_own_close(a->io.fd); /* with SO_LINGER 0: an ABORT if it is up */
	a->io.fd = -1;
}

void ddps_sk_doom(struct ddps_sd_assoc *a, struct ddps_error e)
{
	if (a->doomed)
		return;
	a->doomed = true;
	a->end = e;
	ddps_sk_close(a);
	ddps_task_post(a->ke->env->loop, &a->task);
}

void ddps_sk_release(struct ddps_sd_assoc *a)
{
	struct ddps_loop *loop = a->ke->env->loop;

	ddps_sk_close(a);
	ddps_timer_stop(loop, &a->deadline);
	ddps_task_cancel(loop, &a->task);
	DL_DELETE(a->ke->assocs, a);
	ddps_sd_part_drop(&a->part);
	free(a);
}

static void assoc_free(struct ddps_sd_assoc *a)
{
	a->freed = true;
	if (!a->serving)
		ddps_sk_release(a);
}

/* ---- connect ---- */

static int do_connect(struct ddps_env *env, void **ctx, const struct ddps_uri *uri,
		      const struct sockaddr *sa, socklen_t sa_len, uint32_t connect_ms,
		      const struct ddps_sd_assoc_up *up, void *user, struct ddps_sd_assoc **out)
{
	struct ddps_sk_env *ke;
	struct ddps_sd_assoc *a;
	int err = env_get(env, ctx, &ke), fd;

	if (err)
		return err;
	if (uri->encap == 0)
		return DDPS_E_ADDRESS;
	fd = socket_new(sa->sa_family, &err);
	if (fd < 0)
		return err;
	if (uri->encap > 0 &&
	    (!kernel_udp_port() || set_encap(fd, sa->sa_family, (uint16_t)uri->encap) < 0)) {
		ddps_own_close(fd);
		errno = EPROTONOSUPPORT;
		return DDPS_E_UNSUPPORTED;
	}
	a = assoc_new(ke, fd);
	if (!a) {
		ddps_own_close(fd);
		return DDPS_E_NOMEM;
	}
	a->up = up;
	a->user = user;
	a->info.by_us = true;
	a->connecting = true;
	a->info.encap = uri->encap > 0 ? (uint16_t)uri->encap : 0;
	ddps_addr_text(sa, a->info.peer, sizeof a->info.peer);
	ddps_timer_after(env->loop, &a->deadline, connect_ms);
	if ((uri->from.ss_family && bind(fd, (const struct sockaddr *)&uri->from, sa_len) < 0) ||
	    (connect(fd, sa, sa_len) < 0 && errno != EINPROGRESS))
		ddps_sk_doom(a, ddps_error_make(ddps_err_from_errno(errno), errno, "connect: %s",
						strerror(errno)));
	else
		ddps_sk_watch(a);
	*out = a;
	return 0;
}

/* ---- listen ---- */

static void on_accept(void *user, uint32_t events)
{
	struct ddps_sd_endpoint *e = user;
	struct ddps_sk_env *ke = e->ke;
	struct ddps_sd_assoc *a;
	int fd;

	(void)events;
	for (;;) {
		fd = ddps_own(accept4(e->io.fd, NULL, NULL, SOCK_NONBLOCK | SOCK_CLOEXEC));
		if (fd < 0)
			break;
		a = assoc_new(ke, fd);
		if (!a) {
			ddps_own_close(fd);
			break;
		}
		a->ep = e;
		a->accepted = true;
		ddps_sk_watch(a);
	}
	/* Neither taken nor gone: the descriptor would stay readable, so look away a while. */
	if (errno == EMFILE || errno == ENFILE || errno == ENOMEM || errno == ENOBUFS) {
		ddps_io_del(ke->env->loop, &e->io);
		ddps_timer_after(ke->env->loop, &e->retry, RETRY_MS);
	}
}

static void on_retry(void *user)
{
	struct ddps_sd_endpoint *e = user;
	struct ddps_error err;

	if (ddps_io_set(e->ke->env->loop, &e->io, EPOLLIN) == 0)
		return;
	err = ddps_error_make(DDPS_E_SYSTEM, errno, "epoll");
	e->up->failed(e->user, &err);
}

/* The kernel listens on the UDP port of its sysctl and no other. */
static int check_encap(int wanted, uint16_t *encap)
{
	uint16_t port = kernel_udp_port();

	*encap = 0;
	if (wanted < 0)
		return 0;
	if (!port || (wanted && wanted != port)) {
		errno = EPROTONOSUPPORT;
		return DDPS_E_UNSUPPORTED;
	}
	*encap = port;
	return 0;
}

static int do_listen(struct ddps_env *env, void **ctx, const struct ddps_uri *uri,
		     const struct sockaddr *sa, socklen_t sa_len, unsigned backlog,
		     const struct ddps_sd_listen_up *up, void *user, struct ddps_sd_endpoint **out)
{
	struct ddps_sd_endpoint *e;
	struct ddps_sk_env *ke;
	uint16_t encap;
	int on = 1, fd, keep, err = env_get(env, ctx, &ke);

	if (err)
		return err;
	fd = socket_new(sa->sa_family, &err);
	if (fd < 0)
		return err;
	err = check_encap(uri->encap, &encap);
	(void)setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof on);
	if (!err && (bind(fd, sa, sa_len) < 0 || listen(fd, backlog ? (int)backlog : 1) < 0))
		err = DDPS_E_SYSTEM;
	e = err ? NULL : calloc(1, sizeof *e);
	if (!err && !e)
		err = DDPS_E_NOMEM;
	if (e) {
		*e = (struct ddps_sd_endpoint){ .ke = ke, .encap = encap, .up = up, .user = user };
		e->io = (struct ddps_io){ .fd = fd, .fn = on_accept, .user = e };
		e->retry = (struct ddps_timer){ .fn = on_retry, .user = e };
		err = ddps_io_set(env->loop, &e->io, EPOLLIN);
	}
	if (err) {
		keep = errno;
		ddps_own_close(fd);
		free(e);
		errno = keep;
		return err;
	}
	DL_APPEND(ke->endpoints, e);
	*out = e;
	return 0;
}

static void endpoint_addr(struct ddps_sd_endpoint *e, char *buf, size_t len, uint16_t *encap)
{
	name_of(e->io.fd, false, buf, len);
	*encap = e->encap;
}

static void endpoint_free(struct ddps_sd_endpoint *e)
{
	struct ddps_loop *loop = e->ke->env->loop;
	struct ddps_sd_assoc *a;

	for (a = e->ke->assocs; a; a = a->next)
		if (a->ep == e)
			a->ep = NULL;
	ddps_timer_stop(loop, &e->retry);
	ddps_io_del(loop, &e->io);
	ddps_own_close(e->io.fd);
	DL_DELETE(e->ke->endpoints, e);
	free(e);
}

static void fini(struct ddps_env *env, void *ctx)
{
	struct ddps_sk_env *ke = ctx;

	(void)env;
	if (!ke)
		return;
	while (ke->endpoints)
		endpoint_free(ke->endpoints);
	while (ke->assocs)
		ddps_sk_release(ke->assocs);
	free(ke->rx_buf);
	free(ke);
}

/* ---- associations: use ---- */

static void set_up(struct ddps_sd_assoc *a, const struct ddps_sd_assoc_up *up, void *user)
{
	a->up = up;
	a->user = user;
}

void ddps_sk_addresses(struct ddps_sd_assoc *a)
{
	struct sctp_udpencaps e = { .sue_assoc_id = SCTP_CURRENT_ASSOC };
	socklen_t len = sizeof e.sue_address;

	name_of(a->io.fd, false, a->info.local, sizeof a->info.local);
	name_of(a->io.fd, true, a->info.peer, sizeof a->info.peer);
	getpeername(a->io.fd, (struct sockaddr *)&e.sue_address, &len);
	len = sizeof e;
	if (getsockopt(a->io.fd, IPPROTO_SCTP, SCTP_REMOTE_UDP_ENCAPS_PORT, &e, &len) == 0)
		a->info.encap = ntohs(e.sue_port);
}

static void info(struct ddps_sd_assoc *a, struct ddps_sd_assoc_info *out)
{
	struct sctp_status st = { 0 };
	socklen_t len = sizeof st;

	if (!a->info.max_user_data)
		a->info.max_user_data = FRAG_DEFAULT;
	if (a->io.fd >= 0 && getsockopt(a->io.fd, IPPROTO_SCTP, SCTP_STATUS, &st, &len) == 0 &&
	    st.sstat_fragmentation_point > 0 &&
	    (uint32_t)st.sstat_fragmentation_point < DDPS_SD_MSG_MAX)
		a->info.max_user_data = (uint32_t)st.sstat_fragmentation_point & ~3u;
	*out = a->info;
}

static int send_error(struct ddps_sd_assoc *a, int sys_errno)
{
	switch (sys_errno) {
	case EAGAIN:
		a->want_write = true;
		ddps_sk_watch(a);
		return DDPS_E_AGAIN;
	case EINVAL: /* stream number */
		return DDPS_E_INVAL;
	case EMSGSIZE:
		return DDPS_E_TOO_LONG;
	default: /* it is over; the notification is there or on its way */
		return DDPS_E_RESET;
	}
}

static int put(struct ddps_sd_assoc *a, const struct sctp_sndinfo *si, const struct iovec *iov,
	       int niov)
{
	union {
		struct cmsghdr align;
		uint8_t buf[CMSG_SPACE(sizeof *si)];
	} ctrl = { 0 };
	struct iovec parts[IOV_MAX_PARTS];
	struct msghdr m = { .msg_iov = parts,
			    .msg_iovlen = (size_t)niov,
			    .msg_control = &ctrl,
			    .msg_controllen = sizeof ctrl };
	struct cmsghdr *c = CMSG_FIRSTHDR(&m);

	memcpy(parts, iov, (size_t)niov * sizeof *iov);
	c->cmsg_level = IPPROTO_SCTP;
	c->cmsg_type = SCTP_SNDINFO;
	c->cmsg_len = CMSG_LEN(sizeof *si);
	memcpy(CMSG_DATA(c), si, sizeof *si);
	if (sendmsg(a->io.fd, &m, MSG_DONTWAIT | MSG_NOSIGNAL) < 0)
		return send_error(a, errno);
	a->sent++;
	return 0;
}

static int do_send(struct ddps_sd_assoc *a, uint16_t stream, uint32_t ppid, const struct iovec *iov,
		   int niov)
{
	/* Set-up and end of a session wait for acknowledgements, as does whoever asked for
	 * dry(): have the peer send them at once (RFC 7053). */
	bool at_once = ppid == DDPS_SD_PPID_CONTROL || a->want_dry;
	struct sctp_sndinfo si = {
		.snd_sid = stream,
		.snd_flags =
			SCTP_UNORDERED | (at_once ? SCTP_SACK_IMMEDIATELY : 0), /* [5043-10-1] */
		.snd_ppid = htonl(ppid), /* the kernel does not swap it */
	};
	size_t len = 0;

	if (a->io.fd < 0)
		return DDPS_E_CLOSED;
	if (!a->announced || a->shut)
		return DDPS_E_STATE;
	for (int i = 0; i < niov; i++)
		len += iov[i].iov_len;
	if (!len || niov > IOV_MAX_PARTS)
		return DDPS_E_INVAL;
	if (len > DDPS_SD_MSG_MAX)
		return DDPS_E_TOO_LONG;
	return put(a, &si, iov, niov);
}

int ddps_sk_event(struct ddps_sd_assoc *a, uint16_t type, bool on)
{
	struct sctp_event ev = { .se_assoc_id = SCTP_CURRENT_ASSOC, .se_type = type, .se_on = on };

	return set(a->io.fd, SCTP_EVENT, &ev, sizeof ev);
}

static void ask_dry(struct ddps_sd_assoc *a)
{
	if (a->io.fd < 0 || a->want_dry)
		return;
	a->want_dry = true;
	a->sent_at_ask = a->sent;
	/* Comes at once if there is nothing to wait for. */
	ddps_sk_event(a, SCTP_SENDER_DRY_EVENT, true);
}

static void do_pause(struct ddps_sd_assoc *a, bool on)
{
	a->paused = on;
	if (!a->serving)
		ddps_sk_watch(a);
}

static void do_abort(struct ddps_sd_assoc *a)
{
	ddps_sk_doom(a, ddps_error_make(DDPS_E_CLOSED, 0, "aborted by this side"));
}

static void do_shutdown(struct ddps_sd_assoc *a)
{
	if (a->io.fd < 0 || a->shut)
		return;
	if (!a->announced) {
		do_abort(a);
		return;
	}
	a->shut = true;
	shutdown(a->io.fd, SHUT_WR);
}

const struct ddps_sd_backend ddps_sd_kernel = {
	.name = "kernel",
	.available = available,
	.connect = do_connect,
	.listen = do_listen,
	.endpoint_addr = endpoint_addr,
	.endpoint_free = endpoint_free,
	.set_up = set_up,
	.info = info,
	.send = do_send,
	.ask_dry = ask_dry,
	.pause = do_pause,
	.shutdown = do_shutdown,
	.abort = do_abort,
	.free = assoc_free,
	.fini = fini,
};
