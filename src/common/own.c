/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A bit for each descriptor, in pages that are made when a number of theirs is first written down, and
 * kept.  It is the process that forks and not a context, hence the table is the process's; and what the
 * child finds must be whole whenever the fork was, hence no lock on it.
 *
 * A program may close descriptors that are not its own, and give their numbers to files of its own.
 * So each has its inode written down, and there is one, the mark, that is for this alone: what is no
 * socket has no inode of its own, but goes when the mark goes.
 */
#include "common/own.h"
#include "common/system/lock.h"
#include "common/system/thread.h"
#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#define BITS 64
/* In ns.  A child that has not come to closing its copies by then is not waited for. */
#define SECOND	 UINT64_C(1000000000)
#define FD_MAX	 (1 << 20) /* Linux's own default limit; what is above is not written down */
#define PAGE_FDS 1024
/* Threads that close what may block, and the stack of each. */
#define CLOSERS_MOST  32
#define CLOSERS_STACK (128u * 1024)
#define APART_MANY    96u /* that wait for one of them: far from the usual limit of 1024 */

struct own_page {
	uint64_t owned[PAGE_FDS / BITS];
	uint64_t apart[PAGE_FDS / BITS]; /* owned no more: a closer comes to it */
	uint32_t inode[PAGE_FDS];	 /* 0: not known */
};

static struct own_page *pages[FD_MAX / PAGE_FDS];
static int top; /* one above the highest there ever was */
static bool forked;
static uint64_t forked_at; /* the last time */
static unsigned closers;
static struct {
	struct ddps_mutex lock;
	int fd;
	dev_t dev;
	ino_t ino;
	unsigned era, users;
} mark = { .lock = DDPS_MUTEX(DDPS_LOCK_OWN), .fd = -1, .era = 1 };

/* NULL: nothing of it was ever written down. */
static struct own_page *find_page(int fd)
{
	return __atomic_load_n(&pages[fd / PAGE_FDS], __ATOMIC_ACQUIRE);
}

/* NULL: no memory. */
static struct own_page *make_page(int fd)
{
	struct own_page *have = find_page(fd), *p;

	if (have)
		return have;
	/* Of the process and no context: not among what the program allocates and frees. */
	p = mmap(NULL, sizeof *p, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	if (p == MAP_FAILED)
		return NULL;
	if (__atomic_compare_exchange_n(&pages[fd / PAGE_FDS], &have, p, false, __ATOMIC_ACQ_REL,
					__ATOMIC_ACQUIRE))
		return p;
	munmap(p, sizeof *p); /* another thread was first */
	return have;
}

static uint32_t inode_of(int fd)
{
	struct stat st;

	return fstat(fd, &st) ? 0 : (uint32_t)st.st_ino;
}

/* Whether @fd is still what was written down. */
static bool is_same(const struct own_page *p, int fd)
{
	const uint32_t was = __atomic_load_n(&p->inode[fd % PAGE_FDS], __ATOMIC_RELAXED);

	return !was || inode_of(fd) == was;
}

/* Only what may be called in a signal handler is called: in a child of fork this thread is alone. */
static void close_own_fds(void)
{
	const int n = __atomic_load_n(&top, __ATOMIC_RELAXED);

	for (int at = 0; at < n; at += BITS) {
		struct own_page *p = find_page(at);
		uint64_t bits = p ? __atomic_exchange_n(&p->owned[at % PAGE_FDS / BITS], 0,
							__ATOMIC_RELAXED)
				  : 0;

		/* Nor is there anything left to be closed apart; in a child such copies stay, since
		 * closing them may block. */
		if (p)
			__atomic_store_n(&p->apart[at % PAGE_FDS / BITS], 0, __ATOMIC_RELAXED);
		for (int fd = at; bits; fd++, bits >>= 1)
			if (bits & 1 && is_same(p, fd))
				close(fd);
	}
}

static void close_copies(void)
{
	close_own_fds();
	top = 0;
	closers = 0;
	__atomic_store_n(&forked_at, 0, __ATOMIC_RELAXED);
	mark.lock = (struct ddps_mutex)DDPS_MUTEX(DDPS_LOCK_OWN); /* some other thread's, if any */
	__atomic_store_n(&forked, false,
			 __ATOMIC_RELAXED); /* what is opened from now on is its own */
}

static uint64_t read_own_clock(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (uint64_t)t.tv_sec * SECOND + (uint64_t)t.tv_nsec;
}

static void note_fork(void)
{
	__atomic_store_n(&forked, true, __ATOMIC_RELAXED);
	__atomic_store_n(&forked_at, read_own_clock(), __ATOMIC_RELAXED);
}

static void watch_forks(void)
{
	/* Without memory for that children are on their own. */
	if (pthread_atfork(note_fork, NULL, close_copies))
		note_fork();
}

bool ddps_own_forked(int fd)
{
	const struct own_page *p = fd >= 0 && fd < FD_MAX ? find_page(fd) : NULL;

	return __atomic_load_n(&forked, __ATOMIC_RELAXED) && (!p || is_same(p, fd));
}

bool ddps_own_retry(uint64_t *since)
{
	const struct timespec moment = { .tv_nsec = 1000000 };
	const uint64_t at = __atomic_load_n(&forked_at, __ATOMIC_RELAXED);
	const int keep = errno;

	if (errno != EADDRINUSE || !at)
		return false;
	if (!*since)
		*since = read_own_clock();
	if (read_own_clock() - *since >= SECOND || (at < *since && *since - at >= SECOND))
		return false;
	nanosleep(&moment, NULL);
	errno = keep;
	return true;
}

int ddps_own_bind(int fd, const struct sockaddr *sa, socklen_t len)
{
	const bool any =
		!((const struct sockaddr_in *)sa)->sin_port; /* IPv6 has it at the same place */
	uint64_t since = 0;
	int err;

	do
		err = bind(fd, sa, len);
	while (err && !any && ddps_own_retry(&since));
	return err;
}

static void start_own_guard(void)
{
	static pthread_once_t once = PTHREAD_ONCE_INIT;

	pthread_once(&once, watch_forks);
}

static void raise_top(int fd)
{
	int was = __atomic_load_n(&top, __ATOMIC_RELAXED);

	while (was <= fd && !__atomic_compare_exchange_n(&top, &was, fd + 1, false,
							 __ATOMIC_RELAXED, __ATOMIC_RELAXED))
		;
}

int ddps_own(int fd)
{
	struct own_page *p;

	if (fd < 0 || fd >= FD_MAX || !(p = make_page(fd)))
		return fd;
	start_own_guard();
	__atomic_store_n(&p->inode[fd % PAGE_FDS], inode_of(fd), __ATOMIC_RELAXED);
	__atomic_fetch_or(&p->owned[fd % PAGE_FDS / BITS], UINT64_C(1) << fd % BITS,
			  __ATOMIC_RELAXED);
	raise_top(fd);
	return fd;
}

static void forget_own(struct own_page *p, int fd)
{
	__atomic_fetch_and(&p->owned[fd % PAGE_FDS / BITS], ~(UINT64_C(1) << fd % BITS),
			   __ATOMIC_RELAXED);
	__atomic_store_n(&p->inode[fd % PAGE_FDS], 0, __ATOMIC_RELAXED);
}

bool ddps_own_has(int fd)
{
	const struct own_page *p = fd >= 0 && fd < FD_MAX ? find_page(fd) : NULL;

	return fd >= 0 && (!p || is_same(p, fd));
}

void ddps_own_close(int fd)
{
	struct own_page *p = fd >= 0 && fd < FD_MAX ? find_page(fd) : NULL;
	int keep = errno;

	if (!p) {
		close(fd);
	} else if (is_same(p, fd)) {
		forget_own(p, fd); /* before: once closed the number may be somebody else's */
		close(fd);
	}
	errno = keep;
}

/* ---- the mark ---- */

/* A pipe's end, whose inode no other file has.  Without one nothing is noticed. */
static void make_mark(void)
{
	struct stat st;
	int fds[2];

	__atomic_store_n(&mark.fd, -1, __ATOMIC_RELAXED);
	if (pipe2(fds, O_CLOEXEC))
		return;
	close(fds[1]);
	if (fstat(fds[0], &st)) {
		close(fds[0]);
		return;
	}
	__atomic_store_n(&mark.dev, st.st_dev, __ATOMIC_RELAXED);
	__atomic_store_n(&mark.ino, st.st_ino, __ATOMIC_RELAXED);
	__atomic_store_n(&mark.fd, fds[0], __ATOMIC_RELEASE);
}

/* With the lock or without. */
static bool mark_is_there(void)
{
	const int fd = __atomic_load_n(&mark.fd, __ATOMIC_ACQUIRE);
	struct stat st;

	return fd >= 0 && !fstat(fd, &st) &&
	       st.st_dev == __atomic_load_n(&mark.dev, __ATOMIC_RELAXED) &&
	       st.st_ino == __atomic_load_n(&mark.ino, __ATOMIC_RELAXED);
}

unsigned ddps_own_begin(void)
{
	unsigned era = ddps_own_era();

	start_own_guard();
	ddps_lock(&mark.lock);
	if (mark.fd < 0)
		make_mark();
	mark.users++;
	ddps_unlock(&mark.lock);
	return era;
}

void ddps_own_end(unsigned era)
{
	const int keep = errno;

	if (ddps_own_era() != era)
		return;
	ddps_lock(&mark.lock);
	if (!--mark.users && mark.fd >= 0) {
		close(mark.fd);
		__atomic_store_n(&mark.fd, -1, __ATOMIC_RELAXED);
	}
	ddps_unlock(&mark.lock);
	errno = keep;
}

/* The mark is gone, or there was none.  @keep: errno before that was found. */
static __attribute__((noinline, cold)) unsigned renew_era(int keep)
{
	unsigned era;

	ddps_lock(&mark.lock);
	if (mark.fd >= 0 && !mark_is_there()) {
		__atomic_store_n(&mark.era, mark.era + 1, __ATOMIC_RELEASE);
		mark.users = 0;
		__atomic_store_n(&mark.fd, -1, __ATOMIC_RELAXED);
		close_own_fds(); /* such as it has not come to */
	}
	era = mark.era;
	ddps_unlock(&mark.lock);
	errno = keep;
	return era;
}

unsigned ddps_own_era(void)
{
	const int keep = errno;

	/* As long as it is there nobody waits for another one that looks, too. */
	return mark_is_there() ? __atomic_load_n(&mark.era, __ATOMIC_ACQUIRE) : renew_era(keep);
}

/* ---- closing apart ---- */

static uint64_t get_apart(int at)
{
	const struct own_page *p = find_page(at);

	return p ? __atomic_load_n(&p->apart[at % PAGE_FDS / BITS], __ATOMIC_SEQ_CST) : 0;
}

/* One that waits for it, or -1. */
static int find_apart(void)
{
	const int n = __atomic_load_n(&top, __ATOMIC_RELAXED);

	for (int at = 0; at < n; at += BITS) {
		const uint64_t bits = get_apart(at);

		if (bits)
			return at + __builtin_ctzll(bits);
	}
	return -1;
}

bool ddps_own_is_crowded(void)
{
	const int n = __atomic_load_n(&top, __ATOMIC_RELAXED);
	unsigned waiting = 0;

	for (int at = 0; at < n; at += BITS)
		waiting += (unsigned)__builtin_popcountll(get_apart(at));
	return waiting >= APART_MANY;
}

static void close_apart(int fd)
{
	const uint64_t bit = UINT64_C(1) << fd % BITS;

	/* Not if the program has closed it, or another thread is first. */
	(void)ddps_own_era();
	if (__atomic_fetch_and(&find_page(fd)->apart[fd % PAGE_FDS / BITS], ~bit,
			       __ATOMIC_SEQ_CST) &
	    bit)
		close(fd);
}

static bool add_closer(void)
{
	if (__atomic_fetch_add(&closers, 1, __ATOMIC_SEQ_CST) < CLOSERS_MOST)
		return true;
	__atomic_fetch_sub(&closers, 1, __ATOMIC_SEQ_CST);
	return false;
}

static void *run_closer(void *arg)
{
	const unsigned era = (unsigned)(uintptr_t)arg;
	int fd;

	do {
		while ((fd = find_apart()) >= 0)
			close_apart(fd);
		__atomic_fetch_sub(&closers, 1, __ATOMIC_SEQ_CST);
		/* One that came when this thread had looked and still counted. */
	} while (find_apart() >= 0 && add_closer());
	ddps_own_end(era);
	return NULL;
}

/* false: there is none. */
static bool start_closer(void)
{
	const unsigned era = ddps_own_begin();
	pthread_attr_t attr;
	pthread_t thread;
	int err;

	err = pthread_attr_init(&attr);
	if (!err) {
		(void)pthread_attr_setdetachstate(&attr, PTHREAD_CREATE_DETACHED);
		(void)pthread_attr_setstacksize(&attr, CLOSERS_STACK);
		err = ddps_thread_start(&thread, &attr, run_closer, (void *)(uintptr_t)era);
		pthread_attr_destroy(&attr);
	}
	if (err == EINVAL) { /* the program's own variables of a thread alone are more than that */
		err = ddps_thread_start(&thread, NULL, run_closer, (void *)(uintptr_t)era);
		if (!err)
			pthread_detach(thread);
	}
	if (!err)
		return true;
	__atomic_fetch_sub(&closers, 1, __ATOMIC_SEQ_CST);
	ddps_own_end(era);
	return false;
}

bool ddps_own_close_apart(int fd)
{
	struct own_page *p = fd >= 0 && fd < FD_MAX ? make_page(fd) : NULL;
	const int keep = errno;
	bool begun;

	if (!p)
		return false;
	forget_own(p, fd);
	__atomic_fetch_or(&p->apart[fd % PAGE_FDS / BITS], UINT64_C(1) << fd % BITS,
			  __ATOMIC_SEQ_CST);
	raise_top(fd);
	begun = add_closer() && start_closer();
	errno = keep;
	return begun;
}

void ddps_own_close_waiting(void)
{
	const int keep = errno;

	if (find_apart() >= 0 && add_closer())
		(void)start_closer();
	errno = keep;
}

void ddps_own_tos(int fd, int family, uint8_t tos)
{
	const int class = tos & ~3;

	if (!class)
		return;
	(void)setsockopt(fd, IPPROTO_IP, IP_TOS, &class, sizeof class);
	if (family == AF_INET6)
		(void)setsockopt(fd, IPPROTO_IPV6, IPV6_TCLASS, &class, sizeof class);
}
