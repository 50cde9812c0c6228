/* SPDX-License-Identifier: BSD-2-Clause */
#include "unit/sys_fixture.h"
#include <dlfcn.h>
#include <errno.h>
#include <ifaddrs.h>
#include <netdb.h>
#include <poll.h>
#include <pthread.h>
#include <stdarg.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/file.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/random.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/uio.h>
#include <unistd.h>

#define LIBRARIES 2

static const char *failing;
static unsigned n_good, n_bad, n_failed;
static int error;

void sys_fail(const char *name, unsigned good, unsigned bad, int err)
{
	failing = name;
	n_good = good;
	n_bad = bad;
	n_failed = 0;
	error = err;
}

unsigned sys_failed(void)
{
	return n_failed;
}

static bool must_call_fail(const char *name)
{
	if (!failing || strcmp(failing, name) != 0)
		return false;
	if (n_good) {
		n_good--;
		return false;
	}
	if (!n_bad)
		return false;
	n_bad--;
	n_failed++;
	errno = error;
	return true;
}

/* X(result, name, parameters, arguments, what it returns when it fails) */
#define CALLS(X)                                                                                   \
	X(int, bind, (int fd, const struct sockaddr *a, socklen_t len), (fd, a, len), -1)          \
	X(ssize_t, sendto,                                                                         \
	  (int fd, const void *b, size_t len, int flags, const struct sockaddr *a, socklen_t n),   \
	  (fd, b, len, flags, a, n), -1)                                                           \
	X(int, listen, (int fd, int backlog), (fd, backlog), -1)                                   \
	X(int, accept4, (int fd, struct sockaddr *a, socklen_t *len, int flags),                   \
	  (fd, a, len, flags), -1)                                                                 \
	X(int, getsockname, (int fd, struct sockaddr *a, socklen_t *len), (fd, a, len), -1)        \
	X(int, getsockopt, (int fd, int level, int name, void *v, socklen_t *len),                 \
	  (fd, level, name, v, len), -1)                                                           \
	X(int, epoll_ctl, (int fd, int op, int on, struct epoll_event *e), (fd, op, on, e), -1)    \
	X(int, epoll_wait, (int fd, struct epoll_event *e, int n, int ms), (fd, e, n, ms), -1)     \
	X(ssize_t, read, (int fd, void *b, size_t len), (fd, b, len), -1)                          \
	X(ssize_t, write, (int fd, const void *b, size_t len), (fd, b, len), -1)                   \
	X(ssize_t, writev, (int fd, const struct iovec *iov, int n), (fd, iov, n), -1)             \
	X(int, flock, (int fd, int how), (fd, how), -1)                                            \
	X(int, fallocate, (int fd, int how, off_t from, off_t len), (fd, how, from, len), -1)      \
	X(int, fchmod, (int fd, mode_t mode), (fd, mode), -1)                                      \
	X(int, mkdir, (const char *path, mode_t mode), (path, mode), -1)                           \
	X(int, access, (const char *path, int how), (path, how), -1)                               \
	X(int, link, (const char *from, const char *to), (from, to), -1)                           \
	X(int, eventfd, (unsigned value, int flags), (value, flags), -1)                           \
	X(int, madvise, (void *at, size_t len, int advice), (at, len, advice), -1)                 \
	X(int, pthread_create,                                                                     \
	  (pthread_t * t, const pthread_attr_t *a, void *(*fn)(void *), void *user),               \
	  (t, a, fn, user), error)                                                                 \
	X(int, pthread_atfork, (void (*before)(void), void (*in)(void), void (*child)(void)),      \
	  (before, in, child), error)                                                              \
	X(int, getifaddrs, (struct ifaddrs * *all), (all), -1)                                     \
	X(void *, mmap, (void *at, size_t len, int prot, int flags, int fd, off_t from),           \
	  (at, len, prot, flags, fd, from), MAP_FAILED)

/* NOLINTBEGIN(bugprone-macro-parentheses): parameters are lists */
#define WRAP(result, name, parameters, arguments, bad)                                             \
	result __real_##name parameters;                                                           \
	result __wrap_##name parameters;                                                           \
	result __wrap_##name parameters                                                            \
	{                                                                                          \
		return must_call_fail(#name) ? (bad) : __real_##name arguments;                    \
	}
/* NOLINTEND(bugprone-macro-parentheses) */
CALLS(WRAP)

/* What fails so has happened nevertheless. */
int __real_close(int fd);
int __wrap_close(int fd);
int __wrap_close(int fd)
{
	int err = __real_close(fd);

	return must_call_fail("close") ? -1 : err;
}

/* ---- calls with something else in their place ---- */

struct sys_instead sys_instead;

int __real_fstat(int fd, struct stat *st);
int __wrap_fstat(int fd, struct stat *st);
int __wrap_fstat(int fd, struct stat *st)
{
	if (must_call_fail("fstat"))
		return -1;
	return (sys_instead.fstat ? sys_instead.fstat : __real_fstat)(fd, st);
}

int sys_fstat(int fd, struct stat *st)
{
	return __real_fstat(fd, st);
}

int __real_socket(int domain, int type, int protocol);
int __wrap_socket(int domain, int type, int protocol);
int __wrap_socket(int domain, int type, int protocol)
{
	if (must_call_fail("socket"))
		return -1;
	return (sys_instead.socket ? sys_instead.socket : __real_socket)(domain, type, protocol);
}

int sys_socket(int domain, int type, int protocol)
{
	return __real_socket(domain, type, protocol);
}

int __real_setsockopt(int fd, int level, int name, const void *v, socklen_t len);
int __wrap_setsockopt(int fd, int level, int name, const void *v, socklen_t len);
int __wrap_setsockopt(int fd, int level, int name, const void *v, socklen_t len)
{
	if (must_call_fail("setsockopt"))
		return -1;
	return (sys_instead.setsockopt ? sys_instead.setsockopt : __real_setsockopt)(fd, level,
										     name, v, len);
}

int sys_setsockopt(int fd, int level, int name, const void *v, socklen_t len)
{
	return __real_setsockopt(fd, level, name, v, len);
}

ssize_t __real_send(int fd, const void *b, size_t len, int flags);
ssize_t __wrap_send(int fd, const void *b, size_t len, int flags);
ssize_t __wrap_send(int fd, const void *b, size_t len, int flags)
{
	if (must_call_fail("send"))
		return -1;
	return (sys_instead.send ? sys_instead.send : __real_send)(fd, b, len, flags);
}

ssize_t sys_send(int fd, const void *b, size_t len, int flags)
{
	return __real_send(fd, b, len, flags);
}

int __real_connect(int fd, const struct sockaddr *a, socklen_t len);
int __wrap_connect(int fd, const struct sockaddr *a, socklen_t len);
int __wrap_connect(int fd, const struct sockaddr *a, socklen_t len)
{
	if (must_call_fail("connect"))
		return -1;
	return (sys_instead.connect ? sys_instead.connect : __real_connect)(fd, a, len);
}

int __real_poll(struct pollfd *p, nfds_t n, int ms);
int __wrap_poll(struct pollfd *p, nfds_t n, int ms);
int __wrap_poll(struct pollfd *p, nfds_t n, int ms)
{
	if (must_call_fail("poll"))
		return -1;
	return (sys_instead.poll ? sys_instead.poll : __real_poll)(p, n, ms);
}

int sys_connect(int fd, const struct sockaddr *a, socklen_t len)
{
	return __real_connect(fd, a, len);
}

struct timespec;
int __real_recvmmsg(int fd, struct mmsghdr *m, unsigned n, int flags, struct timespec *t);
int __wrap_recvmmsg(int fd, struct mmsghdr *m, unsigned n, int flags, struct timespec *t);
int __wrap_recvmmsg(int fd, struct mmsghdr *m, unsigned n, int flags, struct timespec *t)
{
	if (must_call_fail("recvmmsg"))
		return -1;
	return sys_instead.recvmmsg ? sys_instead.recvmmsg(fd, m, n, flags)
				    : __real_recvmmsg(fd, m, n, flags, t);
}

int sys_recvmmsg(int fd, struct mmsghdr *m, unsigned n, int flags)
{
	return __real_recvmmsg(fd, m, n, flags, NULL);
}

ssize_t __real_recvmsg(int fd, struct msghdr *m, int flags);
ssize_t __wrap_recvmsg(int fd, struct msghdr *m, int flags);
ssize_t __wrap_recvmsg(int fd, struct msghdr *m, int flags)
{
	if (must_call_fail("recvmsg"))
		return -1;
	return sys_instead.recvmsg ? sys_instead.recvmsg(fd, m, flags)
				   : __real_recvmsg(fd, m, flags);
}

ssize_t sys_recvmsg(int fd, struct msghdr *m, int flags)
{
	return __real_recvmsg(fd, m, flags);
}

ssize_t __real_sendmsg(int fd, const struct msghdr *m, int flags);
ssize_t __wrap_sendmsg(int fd, const struct msghdr *m, int flags);
ssize_t __wrap_sendmsg(int fd, const struct msghdr *m, int flags)
{
	if (must_call_fail("sendmsg"))
		return -1;
	return (sys_instead.sendmsg ? sys_instead.sendmsg : __real_sendmsg)(fd, m, flags);
}

ssize_t sys_sendmsg(int fd, const struct msghdr *m, int flags)
{
	return __real_sendmsg(fd, m, flags);
}

int __real_sendmmsg(int fd, struct mmsghdr *m, unsigned n, int flags);
int __wrap_sendmmsg(int fd, struct mmsghdr *m, unsigned n, int flags);
int __wrap_sendmmsg(int fd, struct mmsghdr *m, unsigned n, int flags)
{
	if (must_call_fail("sendmmsg"))
		return -1;
	return (sys_instead.sendmmsg ? sys_instead.sendmmsg : __real_sendmmsg)(fd, m, n, flags);
}

int sys_sendmmsg(int fd, struct mmsghdr *m, unsigned n, int flags)
{
	return __real_sendmmsg(fd, m, n, flags);
}

ssize_t __real_getrandom(void *buf, size_t len, unsigned flags);
ssize_t __wrap_getrandom(void *buf, size_t len, unsigned flags);
ssize_t __wrap_getrandom(void *buf, size_t len, unsigned flags)
{
	if (must_call_fail("getrandom"))
		return -1;
	return (sys_instead.getrandom ? sys_instead.getrandom : __real_getrandom)(buf, len, flags);
}

int __real_getaddrinfo(const char *host, const char *service, const struct addrinfo *hints,
		       struct addrinfo **list);
int __wrap_getaddrinfo(const char *host, const char *service, const struct addrinfo *hints,
		       struct addrinfo **list);
int __wrap_getaddrinfo(const char *host, const char *service, const struct addrinfo *hints,
		       struct addrinfo **list)
{
	return (sys_instead.getaddrinfo ? sys_instead.getaddrinfo
					: __real_getaddrinfo)(host, service, hints, list);
}

void __real_freeaddrinfo(struct addrinfo *list);
void __wrap_freeaddrinfo(struct addrinfo *list);
void __wrap_freeaddrinfo(struct addrinfo *list)
{
	if (!sys_instead.getaddrinfo)
		__real_freeaddrinfo(list);
}

int __real_ioctl(int fd, unsigned long request, ...);
int __wrap_ioctl(int fd, unsigned long request, ...);
int __wrap_ioctl(int fd, unsigned long request, ...)
{
	va_list ap;
	void *at;

	va_start(ap, request);
	at = va_arg(ap, void *);
	va_end(ap);
	return must_call_fail("ioctl") ? -1 : __real_ioctl(fd, request, at);
}

/* ---- libraries ---- */

static struct library {
	const char *name;
	const struct dl_symbol *symbols;
	int n_open;
} library[LIBRARIES];
static const char *lacking;

void dl_replace(const char *name, const struct dl_symbol *symbols)
{
	struct library *l = library;

	while (l->name && strcmp(l->name, name) != 0)
		l++;
	l->name = name;
	l->symbols = symbols;
}

void dl_lacks(const char *symbol)
{
	lacking = symbol;
}

int dl_open_now(void)
{
	int n = 0;

	for (unsigned i = 0; i < LIBRARIES; i++)
		n += library[i].n_open;
	return n;
}

static struct library *of_handle(const void *handle)
{
	for (unsigned i = 0; i < LIBRARIES; i++)
		if (handle == &library[i])
			return &library[i];
	return NULL;
}

void *__real_dlopen(const char *name, int flags);
void *__wrap_dlopen(const char *name, int flags);
void *__wrap_dlopen(const char *name, int flags)
{
	for (unsigned i = 0; name && i < LIBRARIES; i++)
		if (library[i].name && !strcmp(library[i].name, name)) {
			if (!library[i].symbols)
				return __real_dlopen("no-such-library.so", flags);
			library[i].n_open++;
			return &library[i];
		}
	return __real_dlopen(name, flags);
}

void *__real_dlsym(void *handle, const char *name);
void *__wrap_dlsym(void *handle, const char *name);
void *__wrap_dlsym(void *handle, const char *name)
{
	const struct library *l = of_handle(handle);
	void *at = NULL;

	if (!l)
		return __real_dlsym(handle, name);
	for (const struct dl_symbol *s = l->symbols; s->name; s++)
		if (!strcmp(s->name, name) && !(lacking && !strcmp(lacking, name)))
			memcpy(&at, &s->at, sizeof(at));
	return at;
}

int __real_dlclose(void *handle);
int __wrap_dlclose(void *handle);
int __wrap_dlclose(void *handle)
{
	struct library *l = of_handle(handle);

	if (!l)
		return __real_dlclose(handle);
	l->n_open--;
	return 0;
}
