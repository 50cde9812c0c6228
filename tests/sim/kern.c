/* SPDX-License-Identifier: BSD-2-Clause */
/* Descriptors, the clock, memory, and what programs call. */
#include "sim/kern_in.h"
#include <errno.h>
#include <netinet/tcp.h>
#include <netinet/udp.h>
#include <poll.h>
#include <stdarg.h>
#include <stdio.h>
#include <sys/ioctl.h>
#include <sys/timerfd.h>
#include <time.h>
#include <unistd.h>

#define SEC 1000000000ull

struct kern kern;

static struct kern_file file[KERN_FDS];
static uint64_t *wakes; /* a heap */
static size_t nwakes, wakes_size;
static uint16_t next_port;

/* ---- memory ---- */

void *__real_malloc(size_t size);
void *__real_calloc(size_t n, size_t size);
void *__real_realloc(void *p, size_t size);
void *__wrap_malloc(size_t size);
void *__wrap_calloc(size_t n, size_t size);
void *__wrap_realloc(void *p, size_t size);

static bool no_memory(void)
{
	if (++kern.allocations == kern.fail_allocation) {
		kern.n.memory++;
		return true;
	}
	return kern_chance(kern.f.memory, &kern.n.memory);
}

void *__wrap_malloc(size_t size)
{
	return no_memory() ? NULL : __real_malloc(size);
}

void *__wrap_calloc(size_t n, size_t size)
{
	return no_memory() ? NULL : __real_calloc(n, size);
}

void *__wrap_realloc(void *p, size_t size)
{
	return no_memory() ? NULL : __real_realloc(p, size);
}

void *kern_alloc(size_t len)
{
	void *p = __real_malloc(len);

	if (!p)
		abort();
	return p;
}

/* ---- the clock, and what happens by itself ---- */

void kern_wake(uint64_t at)
{
	size_t i;

	if (at == KERN_NONE)
		return;
	if (nwakes == wakes_size) {
		wakes_size = 2 * wakes_size + 64;
		wakes = __real_realloc(wakes, wakes_size * sizeof *wakes);
		if (!wakes)
			abort();
	}
	for (i = nwakes++; i && at < wakes[(i - 1) / 2]; i = (i - 1) / 2)
		wakes[i] = wakes[(i - 1) / 2];
	wakes[i] = at;
}

static void drop_wake(void)
{
	uint64_t last = wakes[--nwakes];
	size_t i = 0, c;

	while ((c = 2 * i + 1) < nwakes) {
		if (c + 1 < nwakes && wakes[c + 1] < wakes[c])
			c++;
		if (last <= wakes[c])
			break;
		wakes[i] = wakes[c];
		i = c;
	}
	wakes[i] = last;
}

uint64_t kern_next(void)
{
	while (nwakes && wakes[0] <= kern.now)
		drop_wake();
	return nwakes ? wakes[0] : KERN_NONE;
}

void kern_go(uint64_t at)
{
	if (at > kern.now)
		kern.now = at;
}

uint64_t kern_arrival(void)
{
	return kern.now + kern.delay + sim_below(&kern.seed, kern.jitter + 1);
}

bool kern_chance(double share, uint64_t *count)
{
	if (!(share > 0) || !sim_chance(&kern.seed, share))
		return false;
	++*count;
	return true;
}

int kern_err(int err)
{
	errno = err;
	return -1;
}

bool kern_fails(int err)
{
	bool one = ++kern.calls == kern.fail_call;

	if (!one && !kern_chance(kern.f.calls, &kern.n.calls))
		return false;
	errno = one && kern.fail_errno ? kern.fail_errno : err;
	return true;
}

/* ---- descriptors ---- */

struct kern_file *kern_file(int fd)
{
	if (fd < KERN_FD || fd >= KERN_FD + KERN_FDS || !file[fd - KERN_FD].kind) {
		fprintf(stderr, "descriptor %d is not open\n", fd);
		abort();
	}
	return &file[fd - KERN_FD];
}

int kern_fd(const struct kern_file *f)
{
	return (int)(f - file) + KERN_FD;
}

int kern_new(enum kern_kind kind)
{
	if (kern_fails(EMFILE))
		return -1;
	if (kern_chance(kern.f.descriptors, &kern.n.descriptors))
		return kern_err(EMFILE);
	for (int i = 0; i < KERN_FDS; i++) {
		if (file[i].kind)
			continue;
		file[i] = (struct kern_file){ .kind = kind, .host = kern.host };
		return KERN_FD + i;
	}
	abort();
}

unsigned kern_open(void)
{
	unsigned n = 0;

	for (int i = 0; i < KERN_FDS; i++)
		n += file[i].kind != KERN_FREE;
	return n;
}

struct kern_file *kern_bound(enum kern_kind kind, unsigned host, uint16_t port)
{
	for (int i = 0; i < KERN_FDS; i++)
		if (file[i].kind == kind && file[i].host == host && file[i].port == port &&
		    (kind == KERN_UDP || file[i].listening))
			return &file[i];
	return NULL;
}

uint16_t kern_free_port(void)
{
	next_port = (uint16_t)(20000 + (next_port + 1) % 30000);
	return next_port;
}

struct sockaddr_in kern_addr(unsigned host, uint16_t port)
{
	return (struct sockaddr_in){ .sin_family = AF_INET,
				     .sin_port = htons(port),
				     .sin_addr.s_addr = htonl(0x0a000001u + host) };
}

bool kern_parse(const struct sockaddr *sa, unsigned *host, uint16_t *port)
{
	struct sockaddr_in a;

	memcpy(&a, sa, sizeof a);
	*host = ntohl(a.sin_addr.s_addr) - 0x0a000001u;
	*port = ntohs(a.sin_port);
	if (a.sin_family == AF_INET && (*host < KERN_HOSTS || !a.sin_addr.s_addr))
		return true;
	errno = ENETUNREACH;
	return false;
}

static void unwatch(struct kern_file *f)
{
	if (!f->epoll)
		return;
	if (f->prev)
		f->prev->next = f->next;
	else
		f->epoll->watched = f->next;
	if (f->next)
		f->next->prev = f->prev;
	f->epoll = f->prev = f->next = NULL;
}

static void close_file(struct kern_file *f)
{
	unwatch(f);
	while (f->watched)
		unwatch(f->watched);
	if (f->kind == KERN_TCP)
		kern_tcp_close(f);
	if (f->kind == KERN_UDP)
		kern_udp_close(f);
	f->kind = KERN_FREE;
}

void kern_start(uint64_t seed)
{
	kern = (struct kern){ .seed = seed, .gso = true, .mtu = 1500 };
	kern.now = SEC + sim_below(&kern.seed, 1000 * SEC);
	kern.delay = 100000;
	kern.window = 65536;
	kern.datagrams = 1024;
	nwakes = 0;
	next_port = 0;
}

unsigned kern_stop(void)
{
	unsigned n = kern_open();

	kern.f = (struct kern_faults){ 0 };
	for (int i = 0; i < KERN_FDS; i++)
		if (file[i].kind)
			close_file(&file[i]);
	return n;
}

void kern_cut(unsigned host)
{
	unsigned skip = (unsigned)sim_below(&kern.seed, 8);

	for (int i = 0; i < KERN_FDS; i++) {
		if (file[i].kind != KERN_TCP || file[i].host != host || !file[i].tcp || skip--)
			continue;
		kern.n.reset++;
		kern_tcp_disconnect(&file[i]);
		return;
	}
}

/* ---- epoll ---- */

static uint32_t ready(struct kern_file *f);

static bool any_ready(const struct kern_file *epoll)
{
	for (struct kern_file *f = epoll->watched; f; f = f->next)
		if (ready(f) & (f->want | EPOLLERR | EPOLLHUP))
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

	if (op == EPOLL_CTL_ADD && kern_fails(ENOMEM)) /* the others need no memory */
		return -1;
	if ((op == EPOLL_CTL_ADD) == (f->epoll != NULL) || (f->epoll && f->epoll != e))
		return kern_err(f->epoll ? EEXIST : ENOENT);
	if (op == EPOLL_CTL_DEL) {
		unwatch(f);
		return 0;
	}
	f->want = ev->events;
	f->data = ev->data;
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

	(void)timeout; /* the library's is 0 */
	if (kern_fails(EINTR))
		return -1;
	for (struct kern_file *f = kern_file(epfd)->watched; f && n < max; f = f->next) {
		uint32_t r = ready(f) & (f->want | EPOLLERR | EPOLLHUP);

		if (r)
			ev[n++] = (struct epoll_event){ .events = r, .data = f->data };
	}
	return n;
}

/* Time passes until there is something, and no longer than that. */
int __wrap_poll(struct pollfd *p, nfds_t n, int timeout);
int __wrap_poll(struct pollfd *p, nfds_t n, int timeout)
{
	uint64_t until = timeout < 0 ? KERN_NONE : kern.now + (uint64_t)timeout * 1000000;
	struct kern_file *f = kern_file(p->fd);
	uint32_t want = (uint16_t)p->events | POLLERR | POLLHUP;

	if (n != 1)
		abort();
	for (;;) {
		uint64_t at = kern_next();

		p->revents = (short)(ready(f) & want);
		if (p->revents)
			return 1;
		if (at >= until) {
			if (until == KERN_NONE)
				abort(); /* it would wait for ever */
			kern_go(until);
			return 0;
		}
		kern_go(at);
	}
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

	(void)flags;
	if (fd >= 0)
		kern_file(fd)->count = count;
	return fd;
}

ssize_t __real_read(int fd, void *buf, size_t len);
ssize_t __wrap_read(int fd, void *buf, size_t len);
ssize_t __wrap_read(int fd, void *buf, size_t len)
{
	struct kern_file *f;
	uint64_t n;

	if (fd < KERN_FD)
		return __real_read(fd, buf, len);
	f = kern_file(fd);
	n = f->kind == KERN_TIMER ? f->count && f->count <= kern.now : f->count;
	if (!n)
		return kern_err(EAGAIN);
	f->count = 0;
	memcpy(buf, &n, sizeof n);
	return sizeof n;
}

ssize_t __real_write(int fd, const void *buf, size_t len);
ssize_t __wrap_write(int fd, const void *buf, size_t len);
ssize_t __wrap_write(int fd, const void *buf, size_t len)
{
	uint64_t n;

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
	if (fd < KERN_FD)
		return __real_close(fd);
	close_file(kern_file(fd));
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
	(void)flags;
	for (size_t i = 0; i < len; i++)
		((uint8_t *)buf)[i] = (uint8_t)sim_next(&kern.seed);
	return (ssize_t)len;
}

/* ---- sockets ---- */

int __wrap_socket(int family, int type, int protocol);
int __wrap_socket(int family, int type, int protocol)
{
	(void)protocol;
	if (family != AF_INET || (type & 0xf) == SOCK_RAW)
		return kern_err(EAFNOSUPPORT);
	return kern_new((type & 0xf) == SOCK_STREAM ? KERN_TCP : KERN_UDP);
}

int __wrap_bind(int fd, const struct sockaddr *sa, socklen_t len);
int __wrap_bind(int fd, const struct sockaddr *sa, socklen_t len)
{
	struct kern_file *f = kern_file(fd);
	unsigned host;
	uint16_t port;

	(void)len;
	if (kern_fails(EADDRINUSE) || !kern_parse(sa, &host, &port))
		return -1;
	if (port && kern_bound(f->kind, f->host, port))
		return kern_err(EADDRINUSE);
	f->port = port ? port : kern_free_port();
	return 0;
}

int __wrap_listen(int fd, int backlog);
int __wrap_listen(int fd, int backlog)
{
	if (kern_fails(EADDRINUSE))
		return -1;
	kern_file(fd)->listening = true;
	kern_file(fd)->backlog = backlog > 0 ? (unsigned)backlog : 1;
	return 0;
}

int __wrap_accept4(int fd, struct sockaddr *sa, socklen_t *len, int flags);
int __wrap_accept4(int fd, struct sockaddr *sa, socklen_t *len, int flags)
{
	struct kern_file *f = kern_file(fd);
	struct sockaddr_in peer;
	struct kern_tcp *t;
	int child;

	(void)flags;
	if (!(kern_tcp_ready(f) & EPOLLIN))
		return kern_err(EAGAIN);
	child = kern_new(KERN_TCP);
	if (child < 0)
		return -1;
	t = kern_tcp_take(f, &peer);
	kern_file(child)->tcp = t;
	kern_file(child)->host = f->host;
	kern_file(child)->port = f->port;
	memcpy(sa, &peer, sizeof peer);
	*len = sizeof peer;
	return child;
}

int __wrap_connect(int fd, const struct sockaddr *sa, socklen_t len);
int __wrap_connect(int fd, const struct sockaddr *sa, socklen_t len)
{
	struct kern_file *f = kern_file(fd);

	(void)len;
	if (sa->sa_family == AF_UNSPEC) {
		if (f->kind == KERN_TCP)
			kern_tcp_disconnect(f);
		return 0;
	}
	if (kern_fails(EADDRNOTAVAIL) || !kern_parse(sa, &f->to_host, &f->to_port))
		return -1;
	if (f->kind == KERN_TCP)
		return kern_tcp_connect(f, f->to_host, f->to_port);
	if (!f->port)
		f->port = kern_free_port();
	return 0;
}

int __wrap_getsockname(int fd, struct sockaddr *sa, socklen_t *len);
int __wrap_getsockname(int fd, struct sockaddr *sa, socklen_t *len)
{
	struct kern_file *f = kern_file(fd);
	struct sockaddr_in a = kern_addr(f->host, f->port);

	if (kern_fails(ENOBUFS))
		return -1;
	memcpy(sa, &a, sizeof a);
	*len = sizeof a;
	return 0;
}

int __wrap_getsockopt(int fd, int level, int opt, void *value, socklen_t *len);
int __wrap_getsockopt(int fd, int level, int opt, void *value, socklen_t *len)
{
	struct kern_file *f = kern_file(fd);
	struct linger l = { .l_onoff = kern_tcp_lingers(f) };
	int n = 0;

	if (level == SOL_SOCKET && opt == SO_LINGER) {
		memcpy(value, &l, sizeof l);
		*len = sizeof l;
		return 0;
	}
	if (level == SOL_SOCKET && opt == SO_ERROR)
		n = kern_tcp_error(f);
	else if (level == SOL_SOCKET && opt == SO_RCVBUF)
		n = (int)(kern.datagrams * kern.mtu);
	else if (level == IPPROTO_TCP && opt == TCP_MAXSEG)
		n = (int)kern.mtu - 40;
	memcpy(value, &n, sizeof n);
	*len = sizeof n;
	return 0;
}

int __wrap_setsockopt(int fd, int level, int opt, const void *value, socklen_t len);
int __wrap_setsockopt(int fd, int level, int opt, const void *value, socklen_t len)
{
	struct kern_file *f = kern_file(fd);
	struct linger l;

	(void)len;
	if (level == SOL_SOCKET && opt == SO_LINGER) {
		memcpy(&l, value, sizeof l);
		kern_tcp_linger(f, l.l_onoff);
	}
	if (level == IPPROTO_UDP && opt == UDP_SEGMENT && !kern.gso)
		return kern_err(ENOPROTOOPT);
	return 0;
}

int __wrap_ioctl(int fd, unsigned long request, ...);
int __wrap_ioctl(int fd, unsigned long request, ...)
{
	va_list ap;

	va_start(ap, request);
	if (request == FIONREAD)
		*va_arg(ap, int *) = (int)kern_tcp_unread(kern_file(fd));
	va_end(ap);
	return 0;
}

int __wrap_shutdown(int fd, int how);
int __wrap_shutdown(int fd, int how)
{
	return kern_tcp_shutdown(kern_file(fd), how);
}

ssize_t __wrap_readv(int fd, const struct iovec *iov, int n);
ssize_t __wrap_readv(int fd, const struct iovec *iov, int n)
{
	return kern_fails(EINTR) ? -1 : kern_tcp_recv(kern_file(fd), iov, n);
}

ssize_t __wrap_recv(int fd, void *buf, size_t len, int flags);
ssize_t __wrap_recv(int fd, void *buf, size_t len, int flags)
{
	const struct iovec iov = { buf, len };

	(void)flags;
	return __wrap_readv(fd, &iov, 1);
}

ssize_t __wrap_send(int fd, const void *buf, size_t len, int flags);
ssize_t __wrap_send(int fd, const void *buf, size_t len, int flags)
{
	const struct iovec iov = { (void *)(uintptr_t)buf, len };

	(void)flags;
	return kern_fails(EINTR) ? -1 : kern_tcp_send(kern_file(fd), &iov, 1);
}
