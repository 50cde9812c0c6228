/* SPDX-License-Identifier: BSD-2-Clause */
/* The system's part: packets that are not what the target sent, calls that fail, memory that is not there. */
#include "lies/lies.h"
#include "conform/relay/relay.h"
#include <errno.h>
#include <netdb.h>
#include <poll.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

WRAPPED(recvfrom);
WRAPPED(socket);
WRAPPED(bind);
WRAPPED(listen);
WRAPPED(accept4);
WRAPPED(connect);
WRAPPED(getsockname);
WRAPPED(getpeername);
WRAPPED(pipe2);
WRAPPED(fork);
WRAPPED(poll);
WRAPPED(recv);
WRAPPED(send);
WRAPPED(sendto);
WRAPPED(getaddrinfo);
WRAPPED(getnameinfo);
WRAPPED(pthread_create);
WRAPPED(malloc);
WRAPPED(calloc);
WRAPPED(cf_relay_new);

/* ---- packets ---- */

#define HEADER 12u

static void seal_calls_liar(uint8_t *b, size_t len)
{
	cf_put32(b + 8, cf_pkt_sum(b, len));
}

/* A chunk more, behind what is there. */
static size_t add_chunk(uint8_t *b, size_t len, uint8_t type, uint8_t flags, size_t n)
{
	size_t pad = -len & 3;

	memset(b + len, 0, pad + 4 + n);
	len += pad;
	b[len] = type;
	b[len + 1] = flags;
	cf_put16(b + len + 2, (uint16_t)(4 + n));
	return len + 4 + n;
}

/* The first chunk's. */
static const uint8_t types[] = { CF_C_DATA,	   CF_C_INIT_ACK,     CF_C_SACK,  CF_C_HEARTBEAT,
				 CF_C_ABORT,	   CF_C_SHUTDOWN,     CF_C_ERROR, CF_C_COOKIE_ACK,
				 CF_C_COOKIE_ECHO, CF_C_SHUTDOWN_ACK, CF_C_INIT,  0x3f };
#define TYPES (sizeof types)

static size_t change_packet(uint8_t *b, size_t len, size_t room)
{
	size_t at = lie_way() < TYPES ? 0 : lie_way() - TYPES, n = cf_get16(b + HEADER + 2);

	if (lie_way() < TYPES) {
		b[HEADER] = types[lie_way()];
	} else if (at < 8) { /* fields of the header, flags, and of the first chunk */
		static const uint8_t field[] = { 0, 3, 7, 13, 18, 19, 22, 27 };

		if (field[at] < len)
			b[field[at]] ^= 1;
	} else if (at == 8) {
		b[HEADER + 1] ^= 2;
	} else if (at == 9 || at == 10) {
		cf_put16(b + HEADER + 2, (uint16_t)(at == 9 ? 3 : n + 64));
	} else if (at == 11 && n > 4) {
		cf_put16(b + HEADER + 2, (uint16_t)(n - 4)); /* a chunk of nothing behind it */
	} else if (at == 12 && len > 20) {
		len -= 4;
	} else if (at == 13) {
		len = 10;
	} else if (at >= 14 && at < 20 && len + 40 < room) {
		static const uint8_t more[] = { CF_C_ABORT,	 CF_C_DATA,  CF_C_SACK,
						CF_C_COOKIE_ACK, CF_C_ERROR, CF_C_SHUTDOWN };

		len = add_chunk(b, len, more[at - 14], 0, at == 15 ? 12 : at == 16 ? 16 : 0);
	}
	if (len >= HEADER)
		seal_calls_liar(b, len);
	return len;
}

ssize_t __wrap_recvfrom(int fd, void *b, size_t room, int flags, __SOCKADDR_ARG from,
			socklen_t *len)
{
	ssize_t n = __real_recvfrom(fd, b, room, flags, from, len);

	if (n < (ssize_t)HEADER + 4 || !lie_now(LIE_PACKET, "a packet"))
		return n;
	return (ssize_t)change_packet(b, (size_t)n, room);
}

/* ---- calls that fail ---- */

bool lie_call_fails(const char *name, int err)
{
	if (!lie_now(LIE_FAILS, name))
		return false;
	errno = err;
	return true;
}

int __wrap_socket(int domain, int type, int protocol)
{
	return lie_call_fails("socket", EMFILE) ? -1 : __real_socket(domain, type, protocol);
}

int __wrap_bind(int fd, __CONST_SOCKADDR_ARG a, socklen_t len)
{
	return lie_call_fails("bind", EADDRINUSE) ? -1 : __real_bind(fd, a, len);
}

int __wrap_listen(int fd, int n)
{
	return lie_call_fails("listen", EADDRINUSE) ? -1 : __real_listen(fd, n);
}

int __wrap_accept4(int fd, __SOCKADDR_ARG a, socklen_t *len, int flags)
{
	return lie_call_fails("accept4", EMFILE) ? -1 : __real_accept4(fd, a, len, flags);
}

int __wrap_connect(int fd, __CONST_SOCKADDR_ARG a, socklen_t len)
{
	return lie_call_fails("connect", EHOSTUNREACH) ? -1 : __real_connect(fd, a, len);
}

int __wrap_getsockname(int fd, __SOCKADDR_ARG a, socklen_t *len)
{
	return lie_call_fails("getsockname", ENOBUFS) ? -1 : __real_getsockname(fd, a, len);
}

int __wrap_getpeername(int fd, __SOCKADDR_ARG a, socklen_t *len)
{
	return lie_call_fails("getpeername", ENOBUFS) ? -1 : __real_getpeername(fd, a, len);
}

int __wrap_pipe2(int fd[2], int flags)
{
	return lie_call_fails("pipe2", EMFILE) ? -1 : __real_pipe2(fd, flags);
}

pid_t __wrap_fork(void)
{
	return lie_call_fails("fork", EAGAIN) ? -1 : __real_fork();
}

int __wrap_getaddrinfo(const char *host, const char *port, const struct addrinfo *hints,
		       struct addrinfo **list)
{
	return lie_call_fails("getaddrinfo", EIO) ? EAI_FAIL
						  : __real_getaddrinfo(host, port, hints, list);
}

int __wrap_getnameinfo(const struct sockaddr *a, socklen_t len, char *host, socklen_t host_len,
		       char *port, socklen_t port_len, int flags)
{
	if (lie_call_fails("getnameinfo", EIO))
		return EAI_FAIL;
	return __real_getnameinfo(a, len, host, host_len, port, port_len, flags);
}

/* ---- calls that do little ---- */

static bool slow(const char *name)
{
	static const int how[] = { EINTR, EAGAIN };

	if (!lie_now(LIE_SLOW, name))
		return false;
	errno = how[lie_way()];
	return true;
}

int __wrap_poll(struct pollfd *p, nfds_t n, int ms)
{
	if (!slow("poll"))
		return __real_poll(p, n, ms);
	errno = EINTR; /* EAGAIN is no answer that it may always give */
	return -1;
}

ssize_t __wrap_recv(int fd, void *b, size_t len, int flags)
{
	if (flags & MSG_PEEK) /* the tester knows that there is something */
		return __real_recv(fd, b, len, flags);
	if (lie_call_fails("recv", ECONNRESET))
		return -1;
	return slow("recv") ? -1 : __real_recv(fd, b, len, flags);
}

/* It wakes who shares memory. */
static bool is_bell(int fd, size_t len)
{
	int domain = 0;
	socklen_t n = sizeof domain;

	return len == 1 && !getsockopt(fd, SOL_SOCKET, SO_DOMAIN, &domain, &n) && domain == AF_UNIX;
}

ssize_t __wrap_send(int fd, const void *b, size_t len, int flags)
{
	if (lie_call_fails("send", EPIPE))
		return -1;
	if (lie_way() && is_bell(fd, len)) /* that one is not taken means that there are others */
		return __real_send(fd, b, len, flags);
	return slow("send") ? -1 : __real_send(fd, b, len, flags);
}

ssize_t __wrap_sendto(int fd, const void *b, size_t len, int flags, __CONST_SOCKADDR_ARG to,
		      socklen_t to_len)
{
	return lie_call_fails("sendto", ENETDOWN) ? -1
						  : __real_sendto(fd, b, len, flags, to, to_len);
}

/* ---- threads: the relay's is one of the tester's ---- */

static _Thread_local bool relay;

struct start {
	void *(*run)(void *arg);
	void *arg;
};

static void *lied_to(void *arg)
{
	struct start s = *(struct start *)arg;

	free(arg);
	lie_hear();
	return s.run(s.arg);
}

int __wrap_pthread_create(pthread_t *t, const pthread_attr_t *attr, void *(*run)(void *), void *arg)
{
	struct start *s;

	if (lie_call_fails("pthread_create", EAGAIN))
		return EAGAIN;
	if (!relay)
		return __real_pthread_create(t, attr, run, arg);
	s = __real_malloc(sizeof *s);
	*s = (struct start){ run, arg };
	return __real_pthread_create(t, attr, lied_to, s);
}

struct cf_relay *__wrap_cf_relay_new(const struct cf_relay_plan *plan, bool udp,
				     const struct sockaddr_storage *to, socklen_t to_len,
				     struct cf_trace *trace, unsigned number, char *why,
				     size_t why_len)
{
	struct cf_relay *r;

	relay = true;
	r = __real_cf_relay_new(plan, udp, to, to_len, trace, number, why, why_len);
	relay = false;
	return r;
}

/* ---- memory ---- */

void *__wrap_malloc(size_t len)
{
	return lie_now(LIE_NO_MEMORY, "malloc") ? NULL : __real_malloc(len);
}

void *__wrap_calloc(size_t n, size_t len)
{
	return lie_now(LIE_NO_MEMORY, "calloc") ? NULL : __real_calloc(n, len);
}
