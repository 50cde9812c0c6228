/* SPDX-License-Identifier: BSD-2-Clause */
#include "verbs/vfail.h"
#include "verbs/vt.h"
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <ifaddrs.h>
#include <poll.h>
#include <pthread.h>
#include <semaphore.h>
#include <stdint.h>
#include <stdlib.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/mman.h>
#include <sys/random.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

/* The thread that asked for it is the one whose calls are counted, or the one whose are not. */
static __thread unsigned left;
static __thread enum vfail_call what;
static __thread bool asked, came, for_good;
static struct ifaddrs *interfaces;
static enum vfail_call others;
static size_t wanted_size; /* of any thread's */
static __thread size_t wanted_here;
static bool size_came;
static int as;
static long live;
static __thread struct {
	void *wanted, *free;
	size_t size;
	void (*then)(void);
} again;

void vfail_nth(enum vfail_call call, unsigned n)
{
	what = call;
	left = n;
	came = for_good = false;
	as = 0;
}

void vfail_from(enum vfail_call call, unsigned n)
{
	vfail_nth(call, n);
	for_good = true;
}

void vfail_interfaces(struct ifaddrs *list)
{
	interfaces = list;
}

void vfail_as(int error)
{
	as = error;
}

bool vfail_came(void)
{
	const bool did = came || (asked && !__atomic_load_n(&others, __ATOMIC_SEQ_CST)) ||
			 __atomic_load_n(&size_came, __ATOMIC_SEQ_CST);

	what = VFAIL_NONE;
	came = asked = false;
	__atomic_store_n(&others, VFAIL_NONE, __ATOMIC_SEQ_CST);
	wanted_here = 0;
	__atomic_store_n(&wanted_size, 0, __ATOMIC_SEQ_CST);
	__atomic_store_n(&size_came, false, __ATOMIC_SEQ_CST);
	return did;
}

void vfail_size(size_t size)
{
	wanted_here = size;
}

void vfail_size_anywhere(size_t size)
{
	__atomic_store_n(&wanted_size, size, __ATOMIC_SEQ_CST);
}

void vfail_reuse(void *p, size_t size, void (*then)(void))
{
	again.wanted = p;
	again.size = size;
	again.then = then;
}

bool vfail_taken(void)
{
	return __atomic_load_n(&size_came, __ATOMIC_SEQ_CST);
}

void vfail_other(enum vfail_call call)
{
	asked = true;
	as = 0;
	__atomic_store_n(&others, call, __ATOMIC_SEQ_CST);
}

long vfail_live(void)
{
	return __atomic_load_n(&live, __ATOMIC_SEQ_CST);
}

int vfail_files(void)
{
	DIR *d = opendir("/proc/self/fd");
	int n = 0;

	while (d && readdir(d))
		n++;
	if (d)
		closedir(d);
	return n;
}

bool vfail_nothing_more(long most_live, int most_files)
{
	for (int ms = 0; ms < VT_MS / 10; ms++) {
		if (vfail_live() <= most_live && vfail_files() <= most_files)
			return true;
		poll(NULL, 0, 1);
	}
	return false;
}

/* Whether this call is the one; errno is set. */
static bool must_vfail(enum vfail_call call, int error)
{
	enum vfail_call other = call;

	if (!asked && __atomic_compare_exchange_n(&others, &other, VFAIL_NONE, false,
						  __ATOMIC_SEQ_CST, __ATOMIC_SEQ_CST)) {
		errno = as ? as : error;
		return true;
	}
	if ((what != call && (what != VFAIL_ALL || call >= VFAIL_FSTAT)) || !left || --left)
		return false;
	left = for_good;
	came = true;
	errno = as ? as : error;
	return true;
}

static bool refuse_vfail_memory(size_t size)
{
	const bool here = size && size == wanted_here;
	size_t this = size;

	if (here || (size && __atomic_compare_exchange_n(&wanted_size, &this, 0, false,
							 __ATOMIC_SEQ_CST, __ATOMIC_SEQ_CST))) {
		if (here)
			wanted_here = 0;
		__atomic_store_n(&size_came, true, __ATOMIC_SEQ_CST);
		errno = ENOMEM;
		return true;
	}
	return must_vfail(VFAIL_MEMORY, ENOMEM);
}

static void *count_vfail_block(void *p)
{
	if (p)
		__atomic_add_fetch(&live, 1, __ATOMIC_SEQ_CST);
	return p;
}

/* ---- memory ---- */

void *__real_malloc(size_t size);
void *__real_calloc(size_t n, size_t size);
void *__real_realloc(void *p, size_t size);
void *__real_reallocarray(void *p, size_t n, size_t size);
void *__real_aligned_alloc(size_t align, size_t size);
void __real_free(void *p);
void *__wrap_malloc(size_t size);
void *__wrap_calloc(size_t n, size_t size);
void *__wrap_realloc(void *p, size_t size);
void *__wrap_reallocarray(void *p, size_t n, size_t size);
void *__wrap_aligned_alloc(size_t align, size_t size);
void __wrap_free(void *p);

void *__wrap_malloc(size_t size)
{
	return refuse_vfail_memory(size) ? NULL : count_vfail_block(__real_malloc(size));
}

void *__wrap_calloc(size_t n, size_t size)
{
	void *p = again.free;

	if (p && n * size == again.size) {
		again.free = NULL;
		return count_vfail_block(memset(p, 0, again.size));
	}
	return refuse_vfail_memory(n * size) ? NULL : count_vfail_block(__real_calloc(n, size));
}

static void *note_moved_block(const void *old, void *now)
{
	return old ? now : count_vfail_block(now);
}

void *__wrap_realloc(void *p, size_t size)
{
	return refuse_vfail_memory(size) ? NULL : note_moved_block(p, __real_realloc(p, size));
}

void *__wrap_reallocarray(void *p, size_t n, size_t size)
{
	return refuse_vfail_memory(n * size) ? NULL
					     : note_moved_block(p, __real_reallocarray(p, n, size));
}

void *__wrap_aligned_alloc(size_t align, size_t size)
{
	return refuse_vfail_memory(size) ? NULL
					 : count_vfail_block(__real_aligned_alloc(align, size));
}

void __wrap_free(void *p)
{
	if (p)
		__atomic_sub_fetch(&live, 1, __ATOMIC_SEQ_CST);
	if (p && p == again.wanted) {
		again.free = p;
		again.wanted = NULL;
		again.then();
		p = again.free; /* not taken: it goes */
		again.free = NULL;
	}
	__real_free(p);
}

/* ---- descriptors ---- */

/* The call under its own name, which fails as what its place in the list says. */
#define WRAP(name, call, error, ret, params, args)                                                 \
	ret __real_##name params;                                                                  \
	ret __wrap_##name params;                                                                  \
	ret __wrap_##name params                                                                   \
	{                                                                                          \
		return must_vfail(call, error) ? (ret)-1 : __real_##name args;                     \
	}

WRAP(eventfd, VFAIL_EVENTFD, EMFILE, int, (unsigned n, int flags), (n, flags))
WRAP(socketpair, VFAIL_SOCKETPAIR, EMFILE, int, (int d, int t, int p, int fd[2]), (d, t, p, fd))
WRAP(bind, VFAIL_BIND, EADDRINUSE, int, (int fd, const struct sockaddr *sa, socklen_t len),
     (fd, sa, len))
WRAP(connect, VFAIL_CONNECT, EADDRNOTAVAIL, int, (int fd, const struct sockaddr *sa, socklen_t len),
     (fd, sa, len))
WRAP(getsockname, VFAIL_GETSOCKNAME, ENOBUFS, int, (int fd, struct sockaddr *sa, socklen_t *len),
     (fd, sa, len))
WRAP(setsockopt, VFAIL_SETSOCKOPT, ENOMEM, int,
     (int fd, int level, int name, const void *value, socklen_t len), (fd, level, name, value, len))
WRAP(fstat, VFAIL_FSTAT, EIO, int, (int fd, struct stat *st), (fd, st))
WRAP(epoll_create1, VFAIL_EPOLL_CREATE, EMFILE, int, (int flags), (flags))
WRAP(epoll_ctl, VFAIL_EPOLL_CTL, ENOSPC, int, (int ep, int op, int fd, struct epoll_event *ev),
     (ep, op, fd, ev))
WRAP(getrandom, VFAIL_GETRANDOM, ENOSYS, ssize_t, (void *buf, size_t len, unsigned flags),
     (buf, len, flags))
WRAP(getrlimit, VFAIL_GETRLIMIT, EINVAL, int, (int what_of, struct rlimit *lim), (what_of, lim))
WRAP(setrlimit, VFAIL_SETRLIMIT, EPERM, int, (int what_of, const struct rlimit *lim),
     (what_of, lim))
WRAP(write, VFAIL_WRITE, ENOSPC, ssize_t, (int fd, const void *buf, size_t len), (fd, buf, len))
WRAP(read, VFAIL_READ, EIO, ssize_t, (int fd, void *buf, size_t len), (fd, buf, len))
WRAP(sendmsg, VFAIL_SENDMSG, ENOBUFS, ssize_t, (int fd, const struct msghdr *m, int flags),
     (fd, m, flags))
WRAP(madvise, VFAIL_MADVISE, EINVAL, int, (void *at, size_t len, int how), (at, len, how))
WRAP(send, VFAIL_SEND, ECONNREFUSED, ssize_t, (int fd, const void *buf, size_t len, int flags),
     (fd, buf, len, flags))
WRAP(recvmmsg, VFAIL_RECVMMSG, EAGAIN, int,
     (int fd, struct mmsghdr *m, unsigned n, int flags, struct timespec *until),
     (fd, m, n, flags, until))
WRAP(poll, VFAIL_POLL, ENOMEM, int, (struct pollfd * fd, nfds_t n, int ms), (fd, n, ms))
WRAP(sem_clockwait, VFAIL_SEM, ETIMEDOUT, int,
     (sem_t * sem, clockid_t clock, const struct timespec *until), (sem, clock, until))

int __real_getifaddrs(struct ifaddrs **all);
int __wrap_getifaddrs(struct ifaddrs **all);
void __real_freeifaddrs(struct ifaddrs *all);
void __wrap_freeifaddrs(struct ifaddrs *all);

int __wrap_getifaddrs(struct ifaddrs **all)
{
	if (must_vfail(VFAIL_GETIFADDRS, ENOMEM))
		return -1;
	if (!interfaces)
		return __real_getifaddrs(all);
	*all = interfaces;
	return 0;
}

void __wrap_freeifaddrs(struct ifaddrs *all)
{
	if (all != interfaces)
		__real_freeifaddrs(all);
}

/* As src/verbs/vd_socket.c, which is not linked to these tests. */
int __wrap_socket(int domain, int type, int protocol);
int __wrap_socket(int domain, int type, int protocol)
{
	return must_vfail(VFAIL_SOCKET, EMFILE) ? -1
						: (int)syscall(SYS_socket, domain, type, protocol);
}

int __real_pthread_create(pthread_t *thread, const pthread_attr_t *attr, void *(*run)(void *),
			  void *arg);
int __wrap_pthread_create(pthread_t *thread, const pthread_attr_t *attr, void *(*run)(void *),
			  void *arg);
int __wrap_pthread_create(pthread_t *thread, const pthread_attr_t *attr, void *(*run)(void *),
			  void *arg)
{
	return must_vfail(VFAIL_THREAD, EAGAIN) ? EAGAIN
						: __real_pthread_create(thread, attr, run, arg);
}

/* ---- the end of a child ---- */

int __llvm_profile_write_file(void) __attribute__((weak));
void __llvm_profile_reset_counters(void) __attribute__((weak));
_Noreturn void __real__exit(int status);
_Noreturn void __wrap__exit(int status);

/* What destructors do counts for make coverage, too, though it is after the profile was written; that
 * was added to what others have written, and must not be so twice. */
static void reset_child_profile(void)
{
	if (__llvm_profile_reset_counters)
		__llvm_profile_reset_counters();
}

__attribute__((constructor(101))) static void first_is_last(void)
{
	atexit(reset_child_profile);
}

__attribute__((destructor(101))) static void record(void)
{
	if (__llvm_profile_write_file)
		__llvm_profile_write_file();
}

/* A child that ends the shortest way still counts for make coverage. */
_Noreturn void __wrap__exit(int status)
{
	if (__llvm_profile_write_file)
		__llvm_profile_write_file();
	__real__exit(status);
}
