/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef SYS_FIXTURE_H
#define SYS_FIXTURE_H
#include <poll.h>
#include <stdbool.h>
#include <stddef.h>
#include <sys/socket.h>
#include <sys/types.h>

/* Calls of the system that fail, and libraries that a test stands in for; each test is a process. */

/*
 * After @good calls of @name, the next @bad ones fail with @err; NULL: none fails.  The names are those
 * in CALLS of sys_fixture.c, and close, fstat, ioctl, poll, recvmmsg, recvmsg, send, sendmmsg, sendmsg,
 * setsockopt, socket.
 */
void sys_fail(const char *name, unsigned good, unsigned bad, int err);
/* How many have failed since. */
unsigned sys_failed(void);

struct addrinfo;
struct mmsghdr;
struct msghdr;
struct stat;

/* What is called in the place of the system's; NULL: the system's.  One may call that. */
extern struct sys_instead {
	int (*fstat)(int fd, struct stat *st);
	int (*socket)(int domain, int type, int protocol);
	int (*setsockopt)(int fd, int level, int name, const void *v, socklen_t len);
	ssize_t (*send)(int fd, const void *b, size_t len, int flags);
	ssize_t (*recvmsg)(int fd, struct msghdr *m, int flags);
	int (*recvmmsg)(int fd, struct mmsghdr *m, unsigned n, int flags);
	ssize_t (*sendmsg)(int fd, const struct msghdr *m, int flags);
	int (*sendmmsg)(int fd, struct mmsghdr *m, unsigned n, int flags);
	int (*connect)(int fd, const struct sockaddr *a, socklen_t len);
	int (*poll)(struct pollfd *p, nfds_t n, int ms);
	ssize_t (*getrandom)(void *buf, size_t len, unsigned flags);
	int (*getaddrinfo)(const char *host, const char *service, const struct addrinfo *hints,
			   struct addrinfo **list);
} sys_instead;
int sys_fstat(int fd, struct stat *st);
int sys_socket(int domain, int type, int protocol);
int sys_setsockopt(int fd, int level, int name, const void *v, socklen_t len);
ssize_t sys_send(int fd, const void *b, size_t len, int flags);
ssize_t sys_recvmsg(int fd, struct msghdr *m, int flags);
ssize_t sys_sendmsg(int fd, const struct msghdr *m, int flags);
int sys_sendmmsg(int fd, struct mmsghdr *m, unsigned n, int flags);
int sys_connect(int fd, const struct sockaddr *a, socklen_t len);
int sys_recvmmsg(int fd, struct mmsghdr *m, unsigned n, int flags);

struct dl_symbol {
	const char *name;
	void (*at)(void);
};

#define DL_SYMBOL(name, at)                                                                        \
	{                                                                                          \
		name, (void (*)(void))(at)                                                         \
	}

/* dlopen() of @library finds these; none: it finds no such library.  The last has no name. */
void dl_replace(const char *library, const struct dl_symbol *symbols);
/* One that they do not have after all; NULL: they have all. */
void dl_lacks(const char *symbol);
/* Replaced libraries that are open. */
int dl_open_now(void);

#endif
