/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef DDPS_TEST_VFAIL_H
#define DDPS_TEST_VFAIL_H
/* Calls of the system's that fail, one at a time: the drop-in is linked to those of vfail.c. */
#include <stdbool.h>
#include <stddef.h>

enum vfail_call {
	VFAIL_NONE,
	VFAIL_MEMORY, /* any allocation */
	VFAIL_EVENTFD,
	VFAIL_SOCKET,
	VFAIL_SOCKETPAIR,
	VFAIL_BIND,
	VFAIL_CONNECT,
	VFAIL_GETSOCKNAME,
	VFAIL_SETSOCKOPT,
	VFAIL_GETIFADDRS,
	VFAIL_EPOLL_CREATE,
	VFAIL_EPOLL_CTL,
	VFAIL_THREAD,
	VFAIL_FSTAT,	 /* from here on not of VFAIL_ALL */
	VFAIL_GETRANDOM, /* without which SCTP aborts */
	VFAIL_GETRLIMIT,
	VFAIL_SETRLIMIT,
	VFAIL_WRITE,
	VFAIL_SENDMSG,
	VFAIL_MADVISE,
	VFAIL_READ,
	VFAIL_POLL,
	VFAIL_SEM,
	VFAIL_SEND,
	VFAIL_RECVMMSG,
	VFAIL_ALL
};

/* Of this thread's calls of that kind, or of all kinds, the @n-th from now on fails, once; its errno
 * is ENOMEM, EMFILE or what vfail_as has said last. */
void vfail_nth(enum vfail_call call, unsigned n);
void vfail_as(int error);
/* The same, but all of them from the @n-th on. */
void vfail_from(enum vfail_call call, unsigned n);
/* Whether it has come.  Nothing fails any more. */
bool vfail_came(void);
/* This thread's next allocation of that many octets fails; or the next of any thread, where another one makes it: the
 * library may need as many octets for something else. */
void vfail_size(size_t size);
void vfail_size_anywhere(size_t size);
/* Whether that one has come; vfail_came ends it. */
bool vfail_taken(void);
/* Once @p of @size octets has been freed, @then is called, and the next allocation of that size gets it again.  All by
 * this thread, as if another one had come in between. */
void vfail_reuse(void *p, size_t size, void (*then)(void));
/* The next call of that kind by another thread than this one. */
void vfail_other(enum vfail_call call);
/* The host has these interfaces; NULL: its own again. */
struct ifaddrs;
void vfail_interfaces(struct ifaddrs *list);
/* Pieces of memory that the drop-in has now, for differences; and descriptors of the process. */
long vfail_live(void);
int vfail_files(void);
/* Whether there is no more than that, or soon: the library's threads may have something for a moment. */
bool vfail_nothing_more(long live, int files);

#endif
