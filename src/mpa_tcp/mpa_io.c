/* SPDX-License-Identifier: BSD-2-Clause */
/* What MPA needs of TCP, from sockets; and connecting. */
#include "common/error.h"
#include "common/own.h"
#include "common/prefetch.h"
#include "mpa_tcp/mpa_tls.h"
#include <errno.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <string.h>
#include <linux/sockios.h>
#include <sys/epoll.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <sys/uio.h>
#include <unistd.h>

#define AFTER_CLOSE_MS 10000u
#define LONG_MS	       10000u

_Static_assert((int)DDPS_MPA_IN == (int)EPOLLIN && (int)DDPS_MPA_OUT == (int)EPOLLOUT &&
		       (int)DDPS_MPA_BROKEN == (int)(EPOLLERR | EPOLLHUP) &&
		       (int)DDPS_MPA_PEER_FIN == (int)EPOLLRDHUP,
	       "epoll's bits are passed on as they are");

/* The first @n octets of @iov went over the wire. */
void ddps_mpa_io_show(const struct ddps_mpa_conn *c, bool sent, const struct iovec *iov, int k,
		      size_t n)
{
	union ddps_mpa_addr local = c->local;
	socklen_t len = sizeof local;
	const struct ddps_packet p = { .transport = DDPS_TRANSPORT_TCP,
				       .sent = sent,
				       .local = &local.sa,
				       .peer = &c->peer.sa,
				       .iov = iov,
				       .niov = k,
				       .len = n };

	if (!local.sa.sa_family) /* it is looked up when the connection is established */
		(void)getsockname(c->io.fd, &local.sa, &len);
	ddps_env_show(c->env, &p);
}

/* For one piece the kernel has a shorter way. */
static __attribute__((always_inline)) inline ssize_t read_tcp(struct ddps_mpa_conn *c,
							      struct iovec *iov, int k)
{
	ssize_t n;

	if (!ddps_loop_owns(c->env->loop))
		return -errno;
	do
		n = k == 1 ? recv(c->io.fd, iov->iov_base, iov->iov_len, 0)
			   : readv(c->io.fd, iov, k);
	while (n < 0 && errno == EINTR);
	if (n >= 0) {
		c->io.moved = true;
		ddps_io_moved(c->env->loop, &c->io, (size_t)n);
		return n;
	}
	if (errno != EAGAIN)
		c->io.moved = true;
	return -errno;
}

ssize_t ddps_mpa_io_read(struct ddps_mpa_conn *c, struct iovec *iov, int k)
{
	return read_tcp(c, iov, k);
}

static ssize_t io_recv(struct ddps_mpa_conn *c, struct iovec *iov, int k)
{
	ssize_t n = read_tcp(c, iov, k);

	if (c->env->capture && n > 0)
		ddps_mpa_io_show(c, false, iov, k, (size_t)n);
	return n;
}

static __attribute__((noinline)) ssize_t write_pieces(int fd, struct iovec *iov, int k)
{
	const struct msghdr m = { .msg_iov = iov, .msg_iovlen = (size_t)k };

	return sendmsg(fd, &m, MSG_NOSIGNAL);
}

static inline ssize_t write_tcp(struct ddps_mpa_conn *c, struct iovec *iov, int k)
{
	ssize_t n;

	if (!ddps_loop_owns(c->env->loop))
		return -errno;
	n = k == 1 ? send(c->io.fd, iov->iov_base, iov->iov_len, MSG_NOSIGNAL)
		   : write_pieces(c->io.fd, iov, k);
	if (n < 0) /* of the kernel's memory there is some again */
		return errno == ENOBUFS || errno == ENOMEM ? -EAGAIN : -errno;
	ddps_io_moved(c->env->loop, &c->io, (size_t)n);
	return n;
}

ssize_t ddps_mpa_io_write(struct ddps_mpa_conn *c, struct iovec *iov, int k)
{
	return write_tcp(c, iov, k);
}

static ssize_t io_send(struct ddps_mpa_conn *c, struct iovec *iov, int k)
{
	ssize_t n = write_tcp(c, iov, k);

	if (c->env->capture && n > 0)
		ddps_mpa_io_show(c, true, iov, k, (size_t)n);
	return n;
}

/* What the peer does not take Linux would keep for minutes, also after this process: until then nothing says to the
 * peer that its side is over. */
static void io_fin(struct ddps_mpa_conn *c)
{
	unsigned most = c->p.close_ms + AFTER_CLOSE_MS;

	if (!ddps_loop_owns(c->env->loop))
		return;
	if (c->p.close_ms && !c->p.unacked_ms)
		setsockopt(c->io.fd, IPPROTO_TCP, TCP_USER_TIMEOUT, &most, sizeof most);
	shutdown(c->io.fd, SHUT_WR);
}

static void io_reset(struct ddps_mpa_conn *c)
{
	struct linger now = { .l_onoff = 1, .l_linger = 0 };

	if (ddps_loop_owns(c->env->loop))
		setsockopt(c->io.fd, SOL_SOCKET, SO_LINGER, &now, sizeof now);
}

/*
 * As close() would end it, though a child of fork may have a copy of the descriptor: with a reset if
 * that was asked for or there is input that nobody reads any more, else with what was written and a
 * FIN.
 */
static void end_stream(int fd)
{
	const struct sockaddr none = { .sa_family = AF_UNSPEC };
	struct linger now = { 0 };
	socklen_t len = sizeof now;
	int unread = 0;

	(void)getsockopt(fd, SOL_SOCKET, SO_LINGER, &now, &len);
	(void)ioctl(fd, FIONREAD, &unread);
	if (now.l_onoff || unread)
		(void)connect(fd, &none, sizeof none);
	else
		(void)shutdown(fd, SHUT_RDWR);
}

static void io_close(struct ddps_mpa_conn *c)
{
	ddps_io_del(c->env->loop, &c->io);
	if (ddps_own_forked(c->io.fd))
		end_stream(c->io.fd);
	ddps_own_close(c->io.fd);
	c->io.fd = -1;
}

static int io_error(struct ddps_mpa_conn *c)
{
	int err = 0;
	socklen_t len = sizeof err;

	return getsockopt(c->io.fd, SOL_SOCKET, SO_ERROR, &err, &len) < 0 ? errno : err;
}

/* Nothing is sent where nothing is read: that the peer's TCP has given up, only a question shows. */
static void ask_soon(struct ddps_mpa_conn *c)
{
	const int
		idle = 2,
		probes = 10; /* as patient as ddps_mpa_io_keepalive, since there are more of them */

	if (c->asks_soon || c->p.keepalive_ms < LONG_MS)
		return;
	c->asks_soon = true;
	setsockopt(c->io.fd, IPPROTO_TCP, TCP_KEEPIDLE, &idle, sizeof idle);
	setsockopt(c->io.fd, IPPROTO_TCP, TCP_KEEPCNT, &probes, sizeof probes);
}

static int io_watch(struct ddps_mpa_conn *c, unsigned events, bool eager)
{
	if (events & DDPS_MPA_PEER_FIN)
		ask_soon(c);
	c->io.eager = eager;
	return ddps_io_set(c->env->loop, &c->io, events);
}

static void io_unwatch(struct ddps_mpa_conn *c)
{
	ddps_io_del(c->env->loop, &c->io);
}

static void io_local(struct ddps_mpa_conn *c)
{
	struct sockaddr_storage ss = { 0 };
	socklen_t len = sizeof ss;

	if (!getsockname(c->io.fd, (struct sockaddr *)&ss, &len))
		ddps_mpa_addr_set(&c->local, (struct sockaddr *)&ss);
}

static uint32_t io_emss(struct ddps_mpa_conn *c)
{
	int emss = 0; /* [5044-5.1-d1] options are taken off already; 0: nobody knows */
	socklen_t len = sizeof emss;

	(void)getsockopt(c->io.fd, IPPROTO_TCP, TCP_MAXSEG, &emss, &len);
	return (uint32_t)emss;
}

static void io_busy(struct ddps_mpa_conn *c)
{
	c->io.moved = true;
}

static size_t io_unacked(const struct ddps_mpa_conn *c)
{
	int n = 0;

	(void)ioctl(c->io.fd, SIOCOUTQ, &n);
	return n > 0 ? (size_t)n : 0;
}

static int io_stats(const struct ddps_mpa_conn *c, struct ddps_llp_tcp *st)
{
	struct tcp_info i = { .tcpi_state = 0 };
	socklen_t len = sizeof i;

	if (getsockopt(c->io.fd, IPPROTO_TCP, TCP_INFO, &i, &len) < 0)
		return DDPS_E_STATE;
	st->retransmitted = i.tcpi_total_retrans;
	st->srtt_ns = (uint64_t)i.tcpi_rtt * 1000;
	st->cwnd = (uint64_t)i.tcpi_snd_cwnd * i.tcpi_snd_mss;
	st->unacked = io_unacked(c);
	/* Linux answers one probe of a closed window in half a second, so one alone says nothing. */
	st->asked = i.tcpi_unacked || i.tcpi_probes > 1;
	st->heard_ns = (uint64_t)i.tcpi_last_ack_recv * 1000000;
	return 0;
}

/* FPDUs are packed here; TCP is not to wait for more. */
void ddps_mpa_io_nodelay(int fd)
{
	int one = 1;

	setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof one);
}

/* Idle for half of the time, then probes: five, or one a second. */
bool ddps_mpa_io_keepalive(int fd, uint32_t ms)
{
	const int half = (int)(ms / 2000), most = 32767; /* what Linux takes */
	const int idle = half < 1 ? 1 : half > most ? most : half, on = ms != 0;
	const int every = idle < 5 ? 1 : idle / 5, probes = idle < 5 ? idle : 5;

	return (!ms || (!setsockopt(fd, IPPROTO_TCP, TCP_KEEPIDLE, &idle, sizeof idle) &&
			!setsockopt(fd, IPPROTO_TCP, TCP_KEEPINTVL, &every, sizeof every) &&
			!setsockopt(fd, IPPROTO_TCP, TCP_KEEPCNT, &probes, sizeof probes))) &&
	       !setsockopt(fd, SOL_SOCKET, SO_KEEPALIVE, &on, sizeof on);
}

/* What is unacknowledged has a limit of its own, since Linux would let a window that stays closed count against
 * that of keepalive. */
static void io_options(struct ddps_mpa_conn *c)
{
	unsigned unacked = c->p.unacked_ms;

	if (c->initiator) /* the others have it of their listener's */
		ddps_mpa_io_nodelay(c->io.fd);
	if (unacked)
		setsockopt(c->io.fd, IPPROTO_TCP, TCP_USER_TIMEOUT, &unacked, sizeof unacked);
	if (c->p.keepalive_ms != c->keepalive_ms)
		(void)ddps_mpa_io_keepalive(c->io.fd, c->p.keepalive_ms);
}

const struct ddps_mpa_tcp ddps_mpa_sockets = {
	.recv = io_recv,
	.send = io_send,
	.fin = io_fin,
	.reset = io_reset,
	.close = io_close,
	.error = io_error,
	.watch = io_watch,
	.watch_keeps = true,
	.unwatch = io_unwatch,
	.local = io_local,
	.emss = io_emss,
	.stats = io_stats,
	.unacked = io_unacked,
	.busy = io_busy,
	.options = io_options,
};

static void take_mpa_io(void *user, uint32_t events)
{
	struct ddps_mpa_conn *c = user;

	c->io.moved = false;
	ddps_mpa_conn_ready(c, events);
}

_Static_assert(offsetof(struct ddps_mpa_conn, rx) <= DDPS_LLP_OFTEN,
	       "what a Send needs is asked for");

/* What is read needs the stream above, too. */
static void expect_mpa_io(void *user, bool next)
{
	const struct ddps_mpa_conn *c = user;

	if (next)
		ddps_prefetch(c->llp.data_user, DDPS_LLP_DATA_OFTEN);
	else
		ddps_prefetch(c, offsetof(struct ddps_mpa_conn, rx.head));
}

struct ddps_mpa_conn *ddps_mpa_io_new(struct ddps_env *env, int fd, const struct sockaddr *peer)
{
	struct ddps_mpa_conn *c = ddps_mpa_conn_new(env, &ddps_mpa_sockets, peer);

	if (c)
		c->io = (struct ddps_io){
			.fd = fd, .fn = take_mpa_io, .user = c, .soon = expect_mpa_io
		};
	return c;
}

/* ---- connecting ---- */

/* A port that was given may be kept by a socket of the application's; any other is chosen by
 * connect, which has more to choose from. */
static int bind_own(int fd, const struct sockaddr_storage *from)
{
	bool v6 = from->ss_family == AF_INET6;
	in_port_t port = v6 ? ((const struct sockaddr_in6 *)from)->sin6_port
			    : ((const struct sockaddr_in *)from)->sin_port;
	int one = 1;

	if (port)
		setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &one, sizeof one);
	else
		setsockopt(fd, IPPROTO_IP, IP_BIND_ADDRESS_NO_PORT, &one, sizeof one);
	return bind(fd, (const struct sockaddr *)from,
		    v6 ? sizeof(struct sockaddr_in6) : sizeof(struct sockaddr_in));
}

/* If it is connected already the set-up begins.  Return 0, or an errno: it cannot be connected. */
static int begin_setup(struct ddps_mpa_conn *c)
{
	struct pollfd pfd = { .fd = c->io.fd, .events = POLLOUT };

	/* Where something comes before the Request it cannot be tried. */
	if (!c->tls && !c->p.shm)
		return ddps_mpa_setup_try(c);
	if (poll(&pfd, 1, 0) == 1 && pfd.revents == POLLOUT)
		ddps_mpa_setup_connected(c);
	return 0;
}

static int start_connect(struct ddps_mpa_conn *c, const struct ddps_uri *uri,
			 const struct sockaddr *sa, socklen_t sa_len)
{
	int err;

	ddps_own_tos(c->io.fd, sa->sa_family, uri->tos);
	if (uri->from.n && bind_own(c->io.fd, &uri->from.at[0]) < 0)
		return errno;
	if (connect(c->io.fd, sa, sa_len) < 0 && errno != EINPROGRESS)
		return errno;
	ddps_mpa_conn_deadline(c, DDPS_MPA_T_CONNECT, c->p.connect_ms);
	/* On this machine it has been done by now. */
	err = begin_setup(c);
	if (!err)
		ddps_mpa_conn_watch(c);
	return err;
}

int ddps_mpa_io_connect(struct ddps_env *env, const struct ddps_uri *uri, const struct sockaddr *sa,
			socklen_t sa_len, const struct ddps_setup *setup,
			const struct ddps_llp_param *p, const struct ddps_llp_up *up, void *user,
			struct ddps_llp **out)
{
	int err = ddps_mpa_setup_check(setup), fd;
	struct ddps_mpa_conn *c;

	if (err)
		return err;
	if (sa->sa_family != AF_INET && sa->sa_family != AF_INET6)
		return DDPS_E_ADDRESS;
	fd = ddps_own(socket(sa->sa_family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0));
	if (fd < 0)
		return DDPS_E_SYSTEM;
	c = ddps_mpa_io_new(env, fd, sa);
	if (!c) {
		ddps_own_close(fd);
		return DDPS_E_NOMEM;
	}
	if (!strcmp(uri->scheme, "tls")) {
		err = ddps_mpa_tls_wrap(c, p->host);
		if (err) {
			ddps_mpa_conn_destroy(c);
			return err;
		}
		c->ask_crc = uri->crc;
		c->ask_markers = uri->markers;
	}
	ddps_mpa_setup_initiate(c, setup, p, up, user);
	err = start_connect(c, uri, sa, sa_len);
	if (err)
		ddps_mpa_conn_fail(c, ddps_err_from_errno(err), err, "connect: %s", strerror(err));
	*out = &c->llp;
	return 0;
}
