/* SPDX-License-Identifier: BSD-2-Clause */
/* The backend for the kernel's SCTP: one-to-one sockets, optionally over UDP (RFC 6951). */
#include "common/own.h"
#include "sctp_ddp/backend/kernel/sd_kernel.h"
#include "sctp_ddp/sd_wire.h"
#include <errno.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <unistd.h>

#define IOV_MAX_PARTS 32
#define RETRY_MS      100
#define FRAG_DEFAULT  1452	 /* 1500 octets, IPv4 */
#define KEPT_MAX      (4u << 20) /* as the window of our own engine */
#define SMALL	      3000	 /* octets of a window in which a request finds room */

/* ---- a context's own ---- */

int ddps_sk_env_get(struct ddps_env *env, void **ctx, struct ddps_sk_env **out)
{
	struct ddps_sk_env *ke = *ctx;

	if (!ke) {
		ke = calloc(1, sizeof *ke);
		if (!ke)
			return DDPS_E_NOMEM;
		TAILQ_INIT(&ke->assocs);
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

/* ---- associations: life ---- */

static void serve_kernel_io(void *user, uint32_t events)
{
	ddps_sk_serve(user, events);
}

static void serve_kernel_task(void *user)
{
	ddps_sk_serve(user, 0);
}

struct ddps_sd_assoc *ddps_sk_assoc_new(struct ddps_sk_env *ke, int fd)
{
	struct ddps_sd_assoc *a = calloc(1, sizeof *a);

	if (!a)
		return NULL;
	ddps_sk_life_init(&a->life, ke->env);
	a->ke = ke;
	a->io = (struct ddps_io){ .fd = fd, .fn = serve_kernel_io, .user = a };
	a->task = (struct ddps_task){ .fn = serve_kernel_task, .user = a };
	TAILQ_INSERT_TAIL(&ke->assocs, a, of_env);
	return a;
}

void ddps_sk_watch(struct ddps_sd_assoc *a)
{
	uint32_t want = a->life.paused ? 0 : EPOLLIN;

	if (a->io.fd < 0)
		return;
	if (a->connecting || a->life.want_write)
		want |= EPOLLOUT;
	if (ddps_io_set(a->ke->env->loop, &a->io, want) < 0)
		ddps_sk_end_soon(a, ddps_error_make(DDPS_E_SYSTEM, errno, "epoll_ctl: %s",
						    strerror(errno)));
}

void ddps_sk_close(struct ddps_sd_assoc *a)
{
	if (a->io.fd < 0)
		return;
	ddps_io_del(a->ke->env->loop, &a->io);
	ddps_own_close(a->io.fd); /* with SO_LINGER 0: an ABORT if it is up */
	a->io.fd = -1;
}

void ddps_sk_end_soon(struct ddps_sd_assoc *a, struct ddps_error e)
{
	if (a->life.ending)
		return;
	a->life.ending = true;
	a->life.end = e;
	ddps_sk_close(a);
	ddps_task_post(a->ke->env->loop, &a->task);
}

void ddps_sk_release(struct ddps_sd_assoc *a)
{
	struct ddps_loop *loop = a->ke->env->loop;

	ddps_sk_close(a);
	ddps_timer_stop(loop, &a->life.deadline);
	ddps_task_cancel(loop, &a->task);
	TAILQ_REMOVE(&a->ke->assocs, a, of_env);
	ddps_sd_part_drop(&a->life.part);
	free(a->dial);
	free(a);
}

/* ---- listen ---- */

/* The descriptor stays in epoll's set meanwhile: to put it there again would take memory. */
static void take_kernel_accept_failure(struct ddps_sd_endpoint *e, int err)
{
	struct ddps_loop *loop = e->ke->env->loop;
	struct ddps_error why;

	switch (err) {
	case EMFILE:
	case ENFILE:
	case ENOBUFS:
	case ENOMEM: /* the peer stays in the queue and the socket readable: do not spin */
		ddps_io_set(loop, &e->io, 0);
		ddps_timer_after(loop, &e->retry, RETRY_MS);
		break;
	case EBADF:
	case EINVAL:
	case ENOTSOCK:
		why = ddps_error_make(DDPS_E_SYSTEM, err, "accept: %s", strerror(err));
		ddps_io_del(loop, &e->io);
		e->owner.up->failed(e->owner.user, &why);
		break;
	default: /* nobody there, a signal, the peer's or the network's trouble */
		break;
	}
}

static void take_kernel_accepts(void *user, uint32_t events)
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
		ddps_own_tos(fd, e->family, e->tos); /* Linux does not hand it on */
		a = ddps_sk_assoc_new(ke, fd);
		if (!a) {
			ddps_log(&ke->env->log, DDPS_LOG_ERROR, "sctp", "accept: out of memory");
			ddps_own_close(fd);
			continue;
		}
		a->life.ep = &e->owner;
		a->life.accepted = true;
		ddps_sk_watch(a);
	}
	take_kernel_accept_failure(e, errno);
}

static void on_retry(void *user)
{
	struct ddps_sd_endpoint *e = user;

	ddps_io_set(e->ke->env->loop, &e->io, EPOLLIN); /* it is in epoll's set: cannot fail */
}

static int backlog_of(unsigned asked)
{
	return asked > INT_MAX ? INT_MAX : asked ? (int)asked : 1;
}

static int kernel_listen(struct ddps_env *env, void **ctx, const struct ddps_uri *uri,
			 const struct sockaddr *sa, socklen_t sa_len, unsigned backlog,
			 const struct ddps_sd_listen_up *up, void *user,
			 struct ddps_sd_endpoint **out)
{
	struct ddps_sd_endpoint *e;
	struct ddps_sk_env *ke;
	uint16_t encap;
	int on = 1, fd, keep, family = ddps_sk_family(sa, uri);
	int err = ddps_sk_env_get(env, ctx, &ke);

	if (err)
		return err;
	fd = ddps_sk_socket(family, &err);
	if (fd < 0)
		return err;
	err = ddps_sk_encap_at(uri->encap, &encap);
	if (!err && uri->encap == DDPS_URI_ENCAP_OFF)
		err = ddps_sk_encap_to(fd, family, uri->encap);
	(void)setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof on);
	ddps_own_tos(fd, family, uri->tos);
	if (!err &&
	    ((uri->hosts.n ? ddps_sk_bind(fd, &uri->hosts) : ddps_own_bind(fd, sa, sa_len)) < 0 ||
	     listen(fd, backlog_of(backlog)) < 0))
		err = DDPS_E_SYSTEM;
	e = err ? NULL : calloc(1, sizeof *e);
	if (!err && !e)
		err = DDPS_E_NOMEM;
	if (e) {
		*e = (struct ddps_sd_endpoint){ .ke = ke, .encap = encap, .owner = { up, user } };
		e->io = (struct ddps_io){ .fd = fd, .fn = take_kernel_accepts, .user = e };
		e->list = uri->hosts.n;
		e->family = family;
		e->tos = uri->tos;
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
	LIST_INSERT_HEAD(&ke->endpoints, e, of_env);
	*out = e;
	return 0;
}

static void get_kernel_endpoint_addr(struct ddps_sd_endpoint *e, char *buf, size_t len,
				     uint16_t *encap)
{
	if (e->list)
		ddps_sk_endpoint_text(e->io.fd, buf, len);
	else
		ddps_sk_name(e->io.fd, buf, len);
	*encap = e->encap;
}

static void free_kernel_endpoint(struct ddps_sd_endpoint *e)
{
	struct ddps_loop *loop = e->ke->env->loop;
	struct ddps_sd_assoc *a;

	TAILQ_FOREACH(a, &e->ke->assocs, of_env)
		if (a->life.ep == &e->owner)
			a->life.ep = NULL;
	ddps_timer_stop(loop, &e->retry);
	ddps_io_del(loop, &e->io);
	ddps_own_close(e->io.fd);
	LIST_REMOVE(e, of_env);
	free(e);
}

static void fini(struct ddps_env *env, void *ctx)
{
	struct ddps_sk_env *ke = ctx;

	(void)env;
	if (!ke)
		return;
	while (!LIST_EMPTY(&ke->endpoints))
		free_kernel_endpoint(LIST_FIRST(&ke->endpoints));
	while (!TAILQ_EMPTY(&ke->assocs))
		ddps_sk_release(TAILQ_FIRST(&ke->assocs));
	free(ke->rx_buf);
	free(ke);
}

/* ---- associations: use ---- */

static void fill_kernel_info(struct ddps_sd_assoc *a, struct ddps_sd_assoc_info *out)
{
	struct sctp_status st = { 0 };
	socklen_t len = sizeof st;

	if (!a->life.info.max_user_data)
		a->life.info.max_user_data = FRAG_DEFAULT;
	if (a->io.fd >= 0 && getsockopt(a->io.fd, IPPROTO_SCTP, SCTP_STATUS, &st, &len) == 0 &&
	    st.sstat_fragmentation_point > 0 &&
	    (uint32_t)st.sstat_fragmentation_point < DDPS_SD_MSG_MAX)
		a->life.info.max_user_data = (uint32_t)st.sstat_fragmentation_point & ~3u;
	*out = a->life.info;
	out->shut = st.sstat_state && st.sstat_rwnd < SMALL;
}

static int send_error(struct ddps_sd_assoc *a, int sys_errno)
{
	switch (sys_errno) {
	case EAGAIN:
	case ENOBUFS: /* of the kernel's memory: there is some again */
	case ENOMEM:
		a->life.want_write = true;
		ddps_sk_watch(a);
		return DDPS_E_AGAIN;
	case EINVAL: /* stream number */
		return DDPS_E_INVAL;
	case EMSGSIZE:
		return DDPS_E_TOO_LONG;
	case EPIPE: /* it is over; the notification is there or on its way */
	case ECONNRESET:
	case ETIMEDOUT:
		return DDPS_E_RESET;
	default: /* nothing else would report it */
		ddps_sk_end_soon(a, ddps_error_make(DDPS_E_SYSTEM, sys_errno, "sendmsg: %s",
						    strerror(sys_errno)));
		return DDPS_E_RESET;
	}
}

static int put_message(struct ddps_sd_assoc *a, const struct sctp_sndinfo *si,
		       const struct iovec *iov, int niov)
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
	ssize_t n;

	memcpy(parts, iov, (size_t)niov * sizeof *iov);
	c->cmsg_level = IPPROTO_SCTP;
	c->cmsg_type = SCTP_SNDINFO;
	c->cmsg_len = CMSG_LEN(sizeof *si);
	memcpy(CMSG_DATA(c), si, sizeof *si);
	do
		n = ddps_loop_owns(a->ke->env->loop)
			    ? sendmsg(a->io.fd, &m, MSG_DONTWAIT | MSG_NOSIGNAL)
			    : -1;
	while (n < 0 && errno == EINTR);
	if (n < 0)
		return send_error(a, errno);
	ddps_io_moved(a->ke->env->loop, &a->io, (size_t)n);
	a->sent++;
	return 0;
}

static int kernel_send(struct ddps_sd_assoc *a, uint16_t stream, uint32_t ppid,
		       const struct iovec *iov, int niov)
{
	/* Set-up and end of a session wait for acknowledgements, as does whoever asked for
	 * dry(): have the peer send them immediately (RFC 9260 6.1). */
	bool sack_now = ppid == DDPS_SD_PPID_CONTROL || a->life.want_dry;
	struct sctp_sndinfo si = {
		.snd_sid = stream,
		.snd_flags =
			SCTP_UNORDERED | (sack_now ? SCTP_SACK_IMMEDIATELY : 0), /* [5043-10-1] */
		.snd_ppid = htonl(ppid), /* the kernel does not swap it */
	};
	size_t len = 0;

	if (a->io.fd < 0)
		return DDPS_E_CLOSED;
	if (!a->life.announced || a->life.shut)
		return DDPS_E_STATE;
	for (int i = 0; i < niov; i++)
		len += iov[i].iov_len;
	if (!len || niov > IOV_MAX_PARTS)
		return DDPS_E_INVAL;
	if (len > DDPS_SD_MSG_MAX)
		return DDPS_E_TOO_LONG;
	return put_message(a, &si, iov, niov);
}

static void ask_kernel_dry(struct ddps_sd_assoc *a)
{
	if (a->io.fd < 0 || a->life.want_dry)
		return;
	a->life.want_dry = true;
	ddps_sk_ask_dry(a);
}

static void kernel_pause(struct ddps_sd_assoc *a, bool on)
{
	a->life.paused = on;
	if (!a->life.serving)
		ddps_sk_watch(a);
}

/*
 * Nothing can be taken off the kernel's window, and its octets come out in one order only, not by
 * stream.  So all of it is read up to a limit; then nothing is, until half of that is gone.
 */
static bool kernel_keep(struct ddps_sd_assoc *a, size_t octets)
{
	bool on;

	if (a->io.fd < 0)
		return false;
	on = octets >= KEPT_MAX / (a->life.paused ? 2 : 1);
	if (on != a->life.paused)
		kernel_pause(a, on);
	return on;
}

static void kernel_shutdown(struct ddps_sd_assoc *a)
{
	if (a->io.fd < 0 || a->life.shut)
		return;
	if (!a->life.announced) {
		ddps_sk_life_abort(a);
		return;
	}
	a->life.shut = true;
	if (!ddps_loop_owns(a->ke->env->loop))
		return;
	ddps_sk_abort_on_close(a, false); /* nor by the end of the process */
	shutdown(a->io.fd, SHUT_WR);
}

const struct ddps_sd_backend ddps_sd_kernel = {
	.name = "kernel",
	.homes = true,
	.available = ddps_sk_available,
	.connect = ddps_sk_dial,
	.listen = kernel_listen,
	.endpoint_addr = get_kernel_endpoint_addr,
	.endpoint_free = free_kernel_endpoint,
	.set_up = ddps_sk_life_set_up,
	.info = fill_kernel_info,
	.assoc_stats = ddps_sk_assoc_stats,
	.path_stats = ddps_sk_path_stats,
	.set_primary = ddps_sk_set_primary,
	.send = kernel_send,
	.ask_dry = ask_kernel_dry,
	.pause = kernel_pause,
	.keep = kernel_keep,
	.shutdown = kernel_shutdown,
	.abort = ddps_sk_life_abort,
	.free = ddps_sk_life_free,
	.fini = fini,
};
