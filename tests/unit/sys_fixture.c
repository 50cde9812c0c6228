/* SPDX-License-Identifier: BSD-2-Clause */
#include "unit/sys_fixture.h"
#include <dlfcn.h>
#include <errno.h>
#include <ifaddrs.h>
#include <stdarg.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/socket.h>

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

static bool fails(const char *name)
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
	X(int, socket, (int domain, int type, int protocol), (domain, type, protocol), -1)         \
	X(int, setsockopt, (int fd, int level, int name, const void *v, socklen_t len),            \
	  (fd, level, name, v, len), -1)                                                           \
	X(int, bind, (int fd, const struct sockaddr *a, socklen_t len), (fd, a, len), -1)          \
	X(ssize_t, sendto,                                                                         \
	  (int fd, const void *b, size_t len, int flags, const struct sockaddr *a, socklen_t n),   \
	  (fd, b, len, flags, a, n), -1)                                                           \
	X(ssize_t, sendmsg, (int fd, const struct msghdr *m, int flags), (fd, m, flags), -1)       \
	X(int, getifaddrs, (struct ifaddrs * *all), (all), -1)                                     \
	X(void *, mmap, (void *at, size_t len, int prot, int flags, int fd, off_t from),           \
	  (at, len, prot, flags, fd, from), MAP_FAILED)

/* NOLINTBEGIN(bugprone-macro-parentheses): parameters are lists */
#define WRAP(result, name, parameters, arguments, bad)                                             \
	result __real_##name parameters;                                                           \
	result __wrap_##name parameters;                                                           \
	result __wrap_##name parameters                                                            \
	{                                                                                          \
		return fails(#name) ? (bad) : __real_##name arguments;                             \
	}
/* NOLINTEND(bugprone-macro-parentheses) */
CALLS(WRAP)

int __real_sendmmsg(int fd, struct mmsghdr *m, unsigned n, int flags);
int __wrap_sendmmsg(int fd, struct mmsghdr *m, unsigned n, int flags);
int __wrap_sendmmsg(int fd, struct mmsghdr *m, unsigned n, int flags)
{
	return fails("sendmmsg") ? -1 : __real_sendmmsg(fd, m, n, flags);
}

struct timespec;
int __real_recvmmsg(int fd, struct mmsghdr *m, unsigned n, int flags, struct timespec *t);
int __wrap_recvmmsg(int fd, struct mmsghdr *m, unsigned n, int flags, struct timespec *t);
int __wrap_recvmmsg(int fd, struct mmsghdr *m, unsigned n, int flags, struct timespec *t)
{
	return fails("recvmmsg") ? -1 : __real_recvmmsg(fd, m, n, flags, t);
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
	return fails("ioctl") ? -1 : __real_ioctl(fd, request, at);
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
