/* SPDX-License-Identifier: BSD-2-Clause */
/* What is waited for, and with: epoll, timers, events. */
#include "sim/kern_in.h"
#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <sys/eventfd.h>
#include <sys/timerfd.h>
#include <time.h>
#include <unistd.h>

#define SEC	1000000000ull
#define CALL_NS 10000u

/* ---- epoll ---- */

static uint32_t ready(struct kern_file *f);

/* What epoll reports of @f; of one that is watched for edges only what is new. */
static uint32_t find_epoll_events(struct kern_file *f)
{
	if (f->want & EPOLLET && !kern_unix_news(f))
		return 0;
	return ready(f) & (f->want | EPOLLERR | EPOLLHUP);
}

static bool any_ready(const struct kern_file *epoll)
{
	for (struct kern_file *f = epoll->watched; f; f = f->next)
		if (find_epoll_events(f))
			return true;
	return false;
}

static uint32_t ready(struct kern_file *f)
{
	switch (f->kind) {
	case KERN_EPOLL:
		return any_ready(f) ? EPOLLIN : 0;
	case KERN_TIMER:
		return f->count && f->count <= kern.now ? EPOLLIN : 0;
	case KERN_EVENT:
		return (f->count ? EPOLLIN : 0u) | EPOLLOUT;
	case KERN_TCP:
		return kern_tcp_ready(f);
	case KERN_UDP:
		return kern_udp_ready(f);
	case KERN_SCTP:
		return kern_sctp_ready(f);
	case KERN_UNIX:
		return kern_unix_ready(f);
	default:
		return 0;
	}
}

int __wrap_epoll_create1(int flags);
int __wrap_epoll_create1(int flags)
{
	(void)flags;
	return kern_new(KERN_EPOLL);
}

int __wrap_epoll_ctl(int epfd, int op, int fd, struct epoll_event *ev);
int __wrap_epoll_ctl(int epfd, int op, int fd, struct epoll_event *ev)
{
	struct kern_file *e = kern_file(epfd), *f = kern_file(fd);

	if (op == EPOLL_CTL_ADD && kern_fails("epoll_ctl", ENOMEM, ENOSPC))
		return -1;
	if ((op == EPOLL_CTL_ADD) == (f->epoll != NULL) || (f->epoll && f->epoll != e))
		return kern_err(f->epoll ? EEXIST : ENOENT);
	if (op == EPOLL_CTL_DEL) {
		kern_unwatch(f);
		return 0;
	}
	f->want = ev->events;
	f->data = ev->data;
	if (f->kind == KERN_UNIX)
		kern_unix_reported(f, true);
	if (op == EPOLL_CTL_ADD) {
		f->epoll = e;
		f->prev = NULL;
		f->next = e->watched;
		if (f->next)
			f->next->prev = f;
		e->watched = f;
	}
	return 0;
}

int __wrap_epoll_wait(int epfd, struct epoll_event *ev, int max, int timeout);
int __wrap_epoll_wait(int epfd, struct epoll_event *ev, int max, int timeout)
{
	int n = 0;

	kern_point(false);
	(void)timeout; /* the library's is 0 */
	if (kern_fails("epoll_wait", EINTR))
		return -1;
	for (struct kern_file *f = kern_file(epfd)->watched; f && n < max; f = f->next) {
		uint32_t r = find_epoll_events(f);

		if (!r)
			continue;
		ev[n++] = (struct epoll_event){ .events = r, .data = f->data };
		if (f->kind == KERN_UNIX)
			kern_unix_reported(f, false);
	}
	return n;
}

struct polled {
	struct pollfd *p;
	nfds_t n;
	int ready;
};

static bool any_polled(void *arg)
{
	struct polled *all = arg;

	all->ready = 0;
	for (struct pollfd *p = all->p; p < all->p + all->n; p++) {
		p->revents = p->fd < 0 ? 0
				       : (short)(ready(kern_file(p->fd)) &
						 ((uint16_t)p->events | POLLERR | POLLHUP));
		all->ready += p->revents != 0;
	}
	return all->ready;
}

int __wrap_poll(struct pollfd *p, nfds_t n, int timeout);
int __wrap_poll(struct pollfd *p, nfds_t n, int timeout)
{
	/* One that does not sleep takes its time, too, or whoever calls it again and again for a while
	 * would never end. */
	uint64_t ns = timeout ? (uint64_t)timeout * 1000000 : CALL_NS;
	uint64_t until = timeout < 0 ? KERN_NONE : kern.now + ns;

	kern_point(true);
	struct polled all = { .p = p, .n = n };

	if (n == 1 && p->fd == STDERR_FILENO) { /* where the log goes, which is the real one */
		p->revents = p->events;
		return 1;
	}
	kern.polls++;
	if (kern_fails("poll", EINTR))
		return -1;
	kern_block(any_polled, &all, until);
	return all.ready;
}

/* ---- timers, events ---- */

int __wrap_timerfd_create(int clock, int flags);
int __wrap_timerfd_create(int clock, int flags)
{
	(void)clock;
	(void)flags;
	return kern_new(KERN_TIMER);
}

int __wrap_timerfd_settime(int fd, int flags, const struct itimerspec *its, struct itimerspec *old);
int __wrap_timerfd_settime(int fd, int flags, const struct itimerspec *its, struct itimerspec *old)
{
	struct kern_file *f = kern_file(fd);

	(void)flags; /* always absolute */
	(void)old;
	f->count = (uint64_t)its->it_value.tv_sec * SEC + (uint64_t)its->it_value.tv_nsec;
	if (f->count)
		kern_wake(f->count);
	return 0;
}

int __wrap_eventfd(unsigned count, int flags);
int __wrap_eventfd(unsigned count, int flags)
{
	int fd = kern_new(KERN_EVENT);

	if (fd >= 0) {
		kern_file(fd)->count = count;
		kern_file(fd)->one_by_one = flags & EFD_SEMAPHORE;
		kern_file(fd)->sleeps = !(flags & EFD_NONBLOCK);
	}
	return fd;
}

struct counted {
	const struct kern_file *f;
	unsigned life;
};

/* Never, once it is closed: whoever sleeps in read() is not woken by that. */
static bool is_kern_poll_counted(void *arg)
{
	const struct counted *c = arg;

	return c->f->life == c->life && c->f->count;
}

static ssize_t take_poll_events(struct kern_file *f, void *buf)
{
	uint64_t n = f->kind == KERN_TIMER ? f->count && f->count <= kern.now : f->count;

	if (!n)
		return kern_err(EAGAIN);
	if (f->one_by_one)
		n = 1;
	f->count = f->one_by_one ? f->count - 1 : 0;
	memcpy(buf, &n, sizeof n);
	return sizeof n;
}

ssize_t __real_read(int fd, void *buf, size_t len);
ssize_t __wrap_read(int fd, void *buf, size_t len);
ssize_t __wrap_read(int fd, void *buf, size_t len)
{
	struct counted c;

	kern_point(false);
	if (fd < KERN_FD)
		return __real_read(fd, buf, len);
	c.f = kern_file(fd);
	c.life = c.f->life;
	if (c.f->sleeps)
		kern_block(is_kern_poll_counted, &c, KERN_NONE);
	return take_poll_events(kern_file(fd), buf);
}

/* With RWF_NOWAIT, of an event. */
ssize_t __wrap_preadv2(int fd, const struct iovec *iov, int n, off_t off, int flags);
ssize_t __wrap_preadv2(int fd, const struct iovec *iov, int n, off_t off, int flags)
{
	kern_point(false);
	(void)n;
	(void)off;
	(void)flags;
	return take_poll_events(kern_file(fd), iov->iov_base);
}

ssize_t __real_write(int fd, const void *buf, size_t len);
ssize_t __wrap_write(int fd, const void *buf, size_t len);
ssize_t __wrap_write(int fd, const void *buf, size_t len)
{
	uint64_t n;

	kern_point(false);
	if (fd < KERN_FD)
		return __real_write(fd, buf, len);
	memcpy(&n, buf, sizeof n);
	kern_file(fd)->count += n;
	return sizeof n;
}

int __real_close(int fd);
int __wrap_close(int fd);
int __wrap_close(int fd)
{
	kern_point(false);
	if (fd < KERN_FD)
		return __real_close(fd);
	kern_close(kern_file(fd));
	return 0;
}

int __wrap_clock_gettime(clockid_t clock, struct timespec *ts);
int __wrap_clock_gettime(clockid_t clock, struct timespec *ts)
{
	(void)clock;
	ts->tv_sec = (time_t)(kern.now / SEC);
	ts->tv_nsec = (long)(kern.now % SEC);
	return 0;
}

ssize_t __wrap_getrandom(void *buf, size_t len, unsigned flags);
ssize_t __wrap_getrandom(void *buf, size_t len, unsigned flags)
{
	kern_point(false);
	(void)flags;
	kern_whose = kern.host;
	if (kern_fails("getrandom", EINTR, KERN_BRIEF))
		return -1;
	if (kern_brief())
		len = len ? 1 : 0;
	for (size_t i = 0; i < len; i++)
		((uint8_t *)buf)[i] = (uint8_t)kern_draw();
	return (ssize_t)len;
}
