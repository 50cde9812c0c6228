/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef SIM_KERN_IN_H
#define SIM_KERN_IN_H
/*
 * Inside the simulated kernel: kern.c (descriptors, the clock), kern_fail.c (memory, what fails),
 * kern_poll.c, kern_sock.c, kern_tcp.c, kern_udp.c, kern_sctp*.c, kern_unix.c, kern_memory.c.
 */
#include "common/system/lock.h"
#include "sim/kern.h"
#include "sim/sim_event.h"
#include "sim/sim_main.h"
#include <netinet/in.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <sys/types.h>
#include <sys/uio.h>

#define KERN_FD	       1000 /* the first number */
#define KERN_FDS       2048
#define KERN_NONE      UINT64_MAX
#define KERN_INTERFACE 2 /* each host has one */

enum kern_kind {
	KERN_FREE,
	KERN_EPOLL,
	KERN_TIMER,
	KERN_EVENT,
	KERN_TCP,
	KERN_UDP,
	KERN_SCTP,
	KERN_UNIX,
	KERN_MEMORY,
	KERN_FOLDER
};

struct kern_tcp;
struct kern_sctp;
struct kern_unix;
struct kern_memory;
struct kern_dgram;

struct kern_file {
	enum kern_kind kind;
	unsigned host, who, program;
	bool dead;		 /* its program is */
	struct kern_file *epoll; /* that watches it */
	struct kern_file *prev, *next;
	struct kern_file *watched; /* of an epoll */
	uint32_t want;
	epoll_data_t data;
	uint64_t count;		 /* of an event; when a timer is due, 0: off */
	bool one_by_one, sleeps; /* an event: each read() takes one; read() waits for one */
	unsigned life;		 /* how often the number has been closed */
	uint16_t port, to_port;
	uint16_t outer; /* behind a NAT: what it seems to have; 0: @port */
	unsigned to_host;
	bool listening;
	unsigned backlog;
	struct kern_tcp *tcp, *queue; /* queue: of a listener */
	struct kern_sctp *sctp, *sctp_queue;
	struct kern_unix *un, *un_queue;
	struct kern_memory *memory;
	struct kern_dgram *first, *last; /* last: if there is a first */
	size_t ndgrams;
	uint64_t full_until;
	struct kern_icmp *errors; /* of datagrams, in the order of arrival */
	bool fragments;		  /* routers may cut its datagrams */
	bool told;		  /* of errors: IP_RECVERR */
	uint32_t group, joined;	  /* a group's socket: bound to, and a member of; host order */
	int error;		  /* which the next call reports */
};

struct kern_file *kern_file(int fd);
/* A descriptor, or -1 with errno. */
int kern_new(enum kern_kind kind);
void kern_close(struct kern_file *f);
void kern_unwatch(struct kern_file *f); /* its epoll lets it go */
void kern_wake(uint64_t at);
/* Does one of these happen?  @count: its number in kern.n, which says what it is.  What it is like
 * says sim_like(). */
bool kern_chance(double share, uint64_t *count);
/* A number of whose call this is. */
uint64_t kern_draw(void);
/* A thread may be cancelled here: not within the library, which would leave what it has made.  @waits: without a lock it
 * may, who waits holds nothing. */
static inline void kern_point(bool waits)
{
	(void)waits;
#ifdef DDPS_ASSERTS
	ddps_assert(ddps_held.depth || ((waits || kern.locks_only) && !ddps_held.n));
#endif
}

/*
 * Whether this call is to fail, with which errno of those that the system has for it; the first is
 * the one for calls that fail by chance.  KERN_BRIEF: it does not fail, but does as little as it may.
 */
#define kern_fails(name, ...) kern_call_fails(name, (const int[]){ __VA_ARGS__, 0 })
#define KERN_BRIEF	      (-1)
#define KERN_SEND_ERRS	      EINTR, EAGAIN, ENOBUFS, EPIPE, ECONNRESET, KERN_BRIEF
bool kern_call_fails(const char *name, const int *errs);
/* ... of a stream, which some of them end. */
#define kern_tcp_fails(f, name, ...) kern_stream_fails(f, name, (const int[]){ __VA_ARGS__, 0 })
bool kern_stream_fails(struct kern_file *f, const char *name, const int *errs);
bool kern_brief(void); /* told once */
int kern_err(int err); /* errno, -1 */
void *kern_alloc(size_t len);
void *kern_realloc(void *p, size_t len);
uint16_t kern_free_port(void);
struct kern_file *kern_bound(enum kern_kind kind, unsigned host, uint16_t port);
/* A NAT had it once, for somebody. */
bool kern_forgotten(unsigned host, uint16_t port);
static inline uint16_t kern_seen_port(const struct kern_file *f)
{
	return f->outer ? f->outer : f->port;
}
struct sockaddr_in kern_addr(unsigned host, uint16_t port);
/* false: not of ours. */
bool kern_parse(const struct sockaddr *sa, unsigned *host, uint16_t *port);
/* 0: of no group. */
uint32_t kern_group(const struct sockaddr *sa, uint16_t *port);
/* The next member behind @after, or the first. */
struct kern_file *kern_member(const struct kern_file *after, uint32_t group, uint16_t port);
uint64_t kern_arrival(void);
void kern_nobody(void);	    /* has made any call */
extern unsigned kern_whose; /* call this is: of a descriptor, or of the host */

uint32_t kern_tcp_ready(struct kern_file *f);
void kern_tcp_close(struct kern_file *f);
int kern_tcp_connect(struct kern_file *f, unsigned host, uint16_t port);
void kern_tcp_disconnect(struct kern_file *f);
/* The stream has ended; @err waits to be read, unless a call has reported it. */
void kern_tcp_lost(struct kern_file *f, int err);
int kern_tcp_error(struct kern_file *f);
size_t kern_tcp_unread(struct kern_file *f);
size_t kern_tcp_unacked(struct kern_file *f);
int kern_tcp_shutdown(struct kern_file *f, int how);
struct kern_tcp *kern_tcp_take(struct kern_file *listener, struct sockaddr_in *peer);
/* Whose the other end of a stream is: the next number. */
unsigned kern_tcp_who(const struct kern_tcp *t);
ssize_t kern_tcp_recv(struct kern_file *f, const struct iovec *iov, int n);
ssize_t kern_tcp_send(struct kern_file *f, const struct iovec *iov, int n);
void kern_tcp_linger(struct kern_file *f, bool on);
bool kern_tcp_lingers(const struct kern_file *f);

struct kern_sctp *kern_sctp_new(void);
uint32_t kern_sctp_ready(struct kern_file *f);
void kern_sctp_close(struct kern_file *f);
int kern_sctp_connect(struct kern_file *f, unsigned host, uint16_t port);
/* An association that has been set up; NULL: none yet. */
struct kern_sctp *kern_sctp_take(struct kern_file *listener);
void kern_sctp_lost(struct kern_file *f, int err);
int kern_sctp_error(struct kern_file *f);
int kern_sctp_shutdown(struct kern_file *f);
ssize_t kern_sctp_recv(struct kern_file *f, struct msghdr *m);
ssize_t kern_sctp_send(struct kern_file *f, const struct msghdr *m);
void kern_sctp_linger(struct kern_file *f, bool on);
/* Options of IPPROTO_SCTP. */
int kern_sctp_set(struct kern_file *f, int opt, const void *value, socklen_t len);
int kern_sctp_get(struct kern_file *f, int opt, void *value, socklen_t *len);

struct kern_unix *kern_unix_new(void);
uint32_t kern_unix_ready(const struct kern_file *f);
/* Has anything happened that epoll has not reported? */
bool kern_unix_news(const struct kern_file *f);
void kern_unix_reported(struct kern_file *f, bool again);
void kern_unix_close(struct kern_file *f);
int kern_unix_bind(struct kern_file *f, const struct sockaddr *sa, socklen_t len);
struct kern_file *kern_unix_bound(const char *name); /* NULL: nobody has it */
bool kern_unix_is(const struct kern_file *f, const char *name);
int kern_unix_name(const struct kern_file *f, struct sockaddr *sa, socklen_t *len);
int kern_unix_connect(struct kern_file *f, const struct sockaddr *sa, socklen_t len);
struct kern_unix *kern_unix_take(struct kern_file *listener, unsigned *who);
int kern_unix_shutdown(struct kern_file *f, int how);
int kern_unix_unread(const struct kern_file *f);
ssize_t kern_unix_send(struct kern_file *f, const struct msghdr *m);
ssize_t kern_unix_recv(struct kern_file *f, struct msghdr *m, int flags);
uint64_t kern_unix_inode(const char *path); /* 0: there is no such file */
bool kern_unix_unlink(const char *path);
void kern_unix_nobody(void); /* has a file any more */

struct kern_memory *kern_memory_hold(struct kern_memory *m);
void kern_memory_release(struct kern_memory *m); /* NULL: nothing */
int kern_memory_open(struct kern_memory *m);

uint32_t kern_udp_ready(struct kern_file *f);
void kern_udp_close(struct kern_file *f);
void kern_udp_bound(struct kern_file *f);
void kern_udp_nobody(void); /* sends or receives any more */

struct kern_quote { /* of a datagram that met an error */
	const uint8_t *p;
	size_t len;
};
bool kern_icmp_waits(const struct kern_file *f);
/* With what this call fails for it; 0: it does not. */
int kern_icmp_told(struct kern_file *f);
ssize_t kern_icmp_read(struct kern_file *f, struct msghdr *m);
void kern_icmp_close(struct kern_file *f);
/* Nobody has the port; a router has a narrow path; nothing is true of it. */
void kern_icmp_nobody(struct kern_file *f, unsigned host, uint16_t port, struct kern_quote q,
		      uint64_t at);
void kern_icmp_too_long(struct kern_file *f, unsigned host, uint16_t port, struct kern_quote q);
void kern_icmp_lie(struct kern_file *f, unsigned host, uint16_t port, struct kern_quote q);

#endif
