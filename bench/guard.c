/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The data path without noise: a fixed number of operations between two endpoints of one context
 * over loopback, in one thread for callgrind (instructions, see guard.sh), or in several, each
 * with a context of its own.  Once everything has been used once, it counts the library's calls
 * of the allocator and of the system, and the locks that it had to wait for.  Time passes by calls of the system, and
 * random octets are the same each time: so are the instructions, however slow and busy the machine is.
 *
 * send, write, read: in bursts.  ping: a Send there and one back, waited for.  many: bursts of four
 * Sends on each of 64 sessions, which over SCTP have an association each; shared: the same of 4 KiB each, to one shared
 * receive queue.  setup: sessions that are made and ended, one after the other.
 *
 * usage: guard tcp|sctp send|write|read|ping|many|shared|setup COUNT [THREADS [PASSES]]
 */
#include <errno.h>
#include <poll.h>
#include <pthread.h>
#include <ddpsess/ddpsess.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/timerfd.h>
#include <sys/uio.h>
#include <unistd.h>

#define DEPTH	    32
#define WARM	    (8 * DEPTH)
#define WARM_SMALL  (128 * DEPTH) /* SACKs of a second socket may wait for 64 turns of the loop */
#define BIG	    65536u
#define SMALL	    64u
#define PAGE	    4096u
#define MANY	    64u
#define MANY_EACH   4u
#define THREADS_MAX 8

#define CHECK(call)                                                                                \
	do {                                                                                       \
		int err_ = (call);                                                                 \
		if (err_ < 0) {                                                                    \
			fprintf(stderr, "guard: %s: %s\n", #call, ddps_strerror(err_));            \
			exit(1);                                                                   \
		}                                                                                  \
	} while (0)

/* ---- what the library asks for, counted: the linker leads its calls here ---- */

static _Thread_local unsigned long allocations, waits, sends, calls, looks;

/* A thread's time, in ns: a call of the system takes 1 us, and a look at the clock 20 ns. */
#define CALL_NS 1000u
#define LOOK_NS 20u
#define SECOND	UINT64_C(1000000000)
static _Thread_local uint64_t now = 1000 * SECOND;

#define COUNT_CALL() (calls++, now += CALL_NS)

/* A call of the system that is only counted. */
#define COUNTED(type, name, params, args)                                                          \
	type __real_##name params;                                                                 \
	type __wrap_##name params;                                                                 \
	type __wrap_##name params                                                                  \
	{                                                                                          \
		COUNT_CALL();                                                                      \
		return __real_##name args;                                                         \
	}

COUNTED(ssize_t, recv, (int fd, void *p, size_t n, int flags), (fd, p, n, flags))
COUNTED(ssize_t, readv, (int fd, const struct iovec *v, int n), (fd, v, n))
COUNTED(ssize_t, recvmsg, (int fd, struct msghdr *m, int flags), (fd, m, flags))
COUNTED(int, recvmmsg, (int fd, struct mmsghdr *m, unsigned n, int flags, struct timespec *t),
	(fd, m, n, flags, t))
COUNTED(ssize_t, read, (int fd, void *p, size_t n), (fd, p, n))
COUNTED(ssize_t, write, (int fd, const void *p, size_t n), (fd, p, n))
COUNTED(int, epoll_ctl, (int fd, int op, int of, struct epoll_event *ev), (fd, op, of, ev))
COUNTED(int, getsockopt, (int fd, int level, int name, void *v, socklen_t *len),
	(fd, level, name, v, len))
COUNTED(int, setsockopt, (int fd, int level, int name, const void *v, socklen_t len),
	(fd, level, name, v, len))
COUNTED(int, sched_yield, (void), ())
COUNTED(int, socket, (int family, int type, int protocol), (family, type, protocol))
COUNTED(int, connect, (int fd, const struct sockaddr *a, socklen_t len), (fd, a, len))
COUNTED(int, accept4, (int fd, struct sockaddr *a, socklen_t *len, int flags), (fd, a, len, flags))
COUNTED(int, getsockname, (int fd, struct sockaddr *a, socklen_t *len), (fd, a, len))
COUNTED(int, shutdown, (int fd, int how), (fd, how))
COUNTED(int, close, (int fd), (fd))

int __real_fstat(int fd, struct stat *st);
int __wrap_fstat(int fd, struct stat *st);
ssize_t __real_sendmsg(int fd, const struct msghdr *m, int flags);
ssize_t __wrap_sendmsg(int fd, const struct msghdr *m, int flags);
ssize_t __real_send(int fd, const void *p, size_t n, int flags);
ssize_t __wrap_send(int fd, const void *p, size_t n, int flags);
int __real_sendmmsg(int fd, struct mmsghdr *m, unsigned n, int flags);
int __wrap_sendmmsg(int fd, struct mmsghdr *m, unsigned n, int flags);

void *__real_malloc(size_t n);
void *__real_calloc(size_t n, size_t size);
void *__real_realloc(void *p, size_t n);
int __real_pthread_mutex_lock(pthread_mutex_t *m);
void *__wrap_malloc(size_t n);
void *__wrap_calloc(size_t n, size_t size);
void *__wrap_realloc(void *p, size_t n);
int __wrap_pthread_mutex_lock(pthread_mutex_t *m);

/* Whether descriptors are the library's yet: in the data path that depends on time. */
int __wrap_fstat(int fd, struct stat *st)
{
	looks++;
	return __real_fstat(fd, st);
}

void *__wrap_malloc(size_t n)
{
	allocations++;
	return __real_malloc(n);
}

void *__wrap_calloc(size_t n, size_t size)
{
	allocations++;
	return __real_calloc(n, size);
}

void *__wrap_realloc(void *p, size_t n)
{
	allocations++;
	return __real_realloc(p, n);
}

int __wrap_pthread_mutex_lock(pthread_mutex_t *m)
{
	int err = pthread_mutex_trylock(m);

	if (err != EBUSY)
		return err;
	waits++;
	return __real_pthread_mutex_lock(m);
}

ssize_t __wrap_send(int fd, const void *p, size_t n, int flags)
{
	sends++;
	COUNT_CALL();
	return __real_send(fd, p, n, flags);
}

ssize_t __wrap_sendmsg(int fd, const struct msghdr *m, int flags)
{
	sends++;
	COUNT_CALL();
	return __real_sendmsg(fd, m, flags);
}

int __wrap_sendmmsg(int fd, struct mmsghdr *m, unsigned n, int flags)
{
	sends++;
	COUNT_CALL();
	return __real_sendmmsg(fd, m, n, flags);
}

/* ---- time, and chance ---- */

static _Thread_local int alarm_fd;
static _Thread_local uint64_t alarm_at; /* or 0 */

int __real_poll(struct pollfd *p, nfds_t n, int ms);
int __real_epoll_wait(int fd, struct epoll_event *ev, int n, int ms);
int __real_timerfd_settime(int fd, int flags, const struct itimerspec *t, struct itimerspec *old);
int __wrap_clock_gettime(clockid_t clock, struct timespec *ts);
int __wrap_poll(struct pollfd *p, nfds_t n, int ms);
int __wrap_epoll_wait(int fd, struct epoll_event *ev, int n, int ms);
int __wrap_timerfd_settime(int fd, int flags, const struct itimerspec *t, struct itimerspec *old);
ssize_t __wrap_getrandom(void *p, size_t n, unsigned flags);

/* Whatever the clock is. */
int __wrap_clock_gettime(clockid_t clock, struct timespec *ts)
{
	(void)clock;
	now += LOOK_NS;
	*ts = (struct timespec){ (time_t)(now / SECOND), (long)(now % SECOND) };
	return 0;
}

/* It is set to a time of that clock, so it fires when that has come. */
int __wrap_timerfd_settime(int fd, int flags, const struct itimerspec *t, struct itimerspec *old)
{
	const struct itimerspec never = { 0 };

	COUNT_CALL();
	alarm_fd = fd;
	alarm_at = (uint64_t)t->it_value.tv_sec * SECOND + (uint64_t)t->it_value.tv_nsec;
	return __real_timerfd_settime(fd, flags, &never, old);
}

static void fire_alarm(void)
{
	const struct itimerspec past = { .it_value.tv_nsec = 1 };
	struct pollfd p = { .fd = alarm_fd, .events = POLLIN };

	if (!alarm_at || alarm_at > now)
		return;
	alarm_at = 0;
	__real_timerfd_settime(alarm_fd, TFD_TIMER_ABSTIME, &past, NULL);
	__real_poll(&p, 1, -1);
}

int __wrap_epoll_wait(int fd, struct epoll_event *ev, int n, int ms)
{
	COUNT_CALL();
	fire_alarm();
	return __real_epoll_wait(fd, ev, n, ms);
}

/* A sleeper whom nothing wakes sleeps until the next timer, or until his time is up. */
int __wrap_poll(struct pollfd *p, nfds_t n, int ms)
{
	uint64_t end = now + (ms < 0 ? 0u : (uint64_t)ms) * (SECOND / 1000);
	int got;

	COUNT_CALL();
	fire_alarm();
	got = __real_poll(p, n, alarm_at && ms ? 20 : ms);
	if (got || !alarm_at || !ms)
		return got;
	now = ms > 0 && alarm_at > end ? end : alarm_at > now ? alarm_at : now;
	fire_alarm();
	return __real_poll(p, n, 0);
}

ssize_t __wrap_getrandom(void *p, size_t n, unsigned flags)
{
	static _Thread_local uint64_t x = 1;

	(void)flags;
	for (size_t i = 0; i < n; i++) {
		x = x * 6364136223846793005u + 1442695040888963407u;
		((uint8_t *)p)[i] = (uint8_t)(x >> 56);
	}
	return (ssize_t)n;
}

/* ---- the session ---- */

enum work { BURSTS, PINGS, MANY_BURSTS, SHARED_BURSTS, SETUPS };

struct pair {
	struct ddps_ctx *ctx;
	struct ddps_pd *pd;
	struct ddps_cq *cq;
	struct ddps_srq *srq; /* of the far ones; or NULL */
	struct ddps_ep *near[MANY], *far[MANY];
	unsigned n; /* of both */
	struct ddps_mr *mr;
	uint8_t *mem;
	char bound[256];
};

/* Where the next one is.  Over SCTP another address of this machine is another association. */
static void name_next(const struct pair *p, char *uri, size_t len)
{
	const char *any = strstr(p->bound, "//0.0.0.0:");

	if (any)
		snprintf(uri, len, "sctp://127.0.0.%u%s", p->n + 1, any + strlen("//0.0.0.0"));
	else
		snprintf(uri, len, "%s", p->bound);
}

/* The next session. */
static void connect_next(struct pair *p)
{
	struct ddps_ep_attr attr;
	struct ddps_conn_param param;
	struct ddps_event ev;
	unsigned up = 0;
	char uri[256];

	name_next(p, uri, sizeof uri);
	ddps_ep_attr_init(&attr);
	attr.pd = p->pd;
	attr.send_cq = attr.recv_cq = p->cq;
	attr.sq_depth = attr.rq_depth = DEPTH;
	CHECK(ddps_ep_new(p->ctx, &attr, &p->near[p->n]));
	attr.srq = p->srq;
	attr.srq_share = DEPTH;
	CHECK(ddps_ep_new(p->ctx, &attr, &p->far[p->n]));
	ddps_conn_param_init(&param);
	param.ird = param.ord = param.ulp_ird = param.ulp_ord = 16;
	CHECK(ddps_connect(p->near[p->n], uri, &param));
	while (up < 2) {
		CHECK(ddps_event_wait(p->ctx, &ev, 10000));
		if (ev.type == DDPS_EV_CONNECT_REQUEST)
			CHECK(ddps_accept(ev.request, p->far[p->n], &param));
		else if (ev.type == DDPS_EV_ESTABLISHED)
			up++;
		else
			exit(1);
	}
	p->n++;
}

static unsigned count_guard_sessions(enum work work)
{
	return work == MANY_BURSTS || work == SHARED_BURSTS ? MANY : work != SETUPS;
}

static void open_guard_pair(struct pair *p, const char *uri, enum work work)
{
	struct ddps_listener *l;

	*p = (struct pair){ .n = 0 };
	p->mem = calloc(1, BIG);
	CHECK(ddps_ctx_new(&p->ctx, NULL));
	CHECK(ddps_pd_new(p->ctx, &p->pd));
	CHECK(ddps_cq_new(p->ctx, 4 * MANY * MANY_EACH, &p->cq));
	CHECK(ddps_mr_reg(p->pd, p->mem, BIG,
			  DDPS_LOCAL_WRITE | DDPS_REMOTE_WRITE | DDPS_REMOTE_READ, NULL, &p->mr));
	CHECK(ddps_listen(p->ctx, uri, NULL, &l));
	CHECK(ddps_listener_uri(l, p->bound, sizeof p->bound));
	if (work == SHARED_BURSTS)
		CHECK(ddps_srq_new(p->pd, MANY * MANY_EACH, 1, NULL, &p->srq));
	while (p->n < count_guard_sessions(work))
		connect_next(p);
}

static struct ddps_sge get_guard_piece(struct pair *p, uint32_t len)
{
	return (struct ddps_sge){ .addr = p->mem, .len = len, .lkey = ddps_mr_stag(p->mr) };
}

static void post_guard_receives(struct pair *p, struct ddps_ep *ep, unsigned n)
{
	struct ddps_sge sge = get_guard_piece(p, SMALL);

	for (unsigned i = 0; i < n; i++)
		CHECK(ddps_post_recv(ep, i, &sge, 1));
}

static __attribute__((noinline)) void post_shared_receives(struct pair *p, unsigned n)
{
	struct ddps_sge sge = get_guard_piece(p, PAGE);

	for (unsigned i = 0; i < n; i++)
		CHECK(ddps_post_srq_recv(p->srq, i, &sge, 1));
}

static void collect_guard(struct pair *p, unsigned want)
{
	struct ddps_wc wc[DEPTH];

	while (want) {
		int n = ddps_cq_wait(p->cq, wc, want < DEPTH ? (int)want : DEPTH, 10000);

		CHECK(n);
		for (int i = 0; i < n; i++)
			if (wc[i].status != DDPS_WC_SUCCESS) {
				fprintf(stderr, "guard: %s: %s\n", ddps_op_name(wc[i].op),
					ddps_wc_status_name(wc[i].status));
				exit(1);
			}
		want -= (unsigned)n;
	}
}

/* As many operations of @op on each session, and everything they bring. */
static void run_guard_burst(struct pair *p, enum ddps_op op, unsigned each)
{
	struct ddps_sge sge = get_guard_piece(p, op == DDPS_OP_SEND ? SMALL : BIG);

	if (p->srq) {
		sge.len = PAGE;
		post_shared_receives(p, p->n * each);
	} else if (op == DDPS_OP_SEND) {
		for (unsigned k = 0; k < p->n; k++)
			post_guard_receives(p, p->far[k], each);
	}
	for (unsigned k = 0; k < p->n; k++)
		for (unsigned i = 0; i < each; i++) {
			struct ddps_send_wr wr = { .op = op,
						   .flags = i + 1 < each ? DDPS_WR_MORE : 0,
						   .sge = &sge,
						   .nsge = 1,
						   .stag = ddps_mr_stag(p->mr),
						   .to = ddps_mr_to(p->mr) };

			CHECK(ddps_post_send(p->near[k], &wr));
		}
	collect_guard(p, p->n * each * (op == DDPS_OP_SEND ? 2 : 1));
}

/* One message from @from, with the receive that it needs at @to. */
static void send_guard_ping(struct pair *p, struct ddps_ep *from, struct ddps_ep *to)
{
	struct ddps_sge sge = get_guard_piece(p, SMALL);
	struct ddps_send_wr wr = {
		.op = DDPS_OP_SEND, .flags = DDPS_WR_SILENT, .sge = &sge, .nsge = 1
	};

	post_guard_receives(p, to, 1);
	CHECK(ddps_post_send(from, &wr));
	collect_guard(p, 1);
}

/* As many round trips, one after the other. */
static void run_guard_pings(struct pair *p, unsigned n)
{
	while (n--) {
		send_guard_ping(p, p->near[0], p->far[0]);
		send_guard_ping(p, p->far[0], p->near[0]);
	}
}

/* As many sessions, one after the other.  The peer learns that it is over. */
static void run_guard_setups(struct pair *p, unsigned n)
{
	struct ddps_event ev;

	while (n--) {
		connect_next(p);
		p->n--;
		ddps_ep_free(p->near[p->n]);
		do
			CHECK(ddps_event_wait(p->ctx, &ev, 10000));
		while (ev.type != DDPS_EV_CLOSED);
		ddps_ep_free(p->far[p->n]);
	}
}

/* ---- one thread, or several ---- */

struct job {
	const char *uri;
	enum ddps_op op;
	enum work work;
	unsigned long count, passes, allocations, waits, sends, calls;
	pthread_t thread;
};

/* Some operations.  Return: how many. */
static unsigned run_some_operations(const struct job *j, struct pair *p)
{
	unsigned each = count_guard_sessions(j->work) == MANY ? MANY_EACH : DEPTH;

	if (j->work == SETUPS)
		run_guard_setups(p, DEPTH);
	else if (j->work == PINGS)
		run_guard_pings(p, DEPTH);
	else
		run_guard_burst(p, j->op, each);
	return j->work == SETUPS ? DEPTH : each * p->n;
}

static void *run_guard_job(void *arg)
{
	struct job *j = arg;
	struct pair p;

	open_guard_pair(&p, j->uri, j->work);
	for (unsigned n = 0; n < (j->op == DDPS_OP_SEND ? WARM_SMALL : WARM);)
		n += run_some_operations(j, &p);
	for (unsigned long pass = 0; pass < j->passes && (!pass || j->allocations); pass++) {
		allocations = waits = sends = calls = looks = 0;
		for (unsigned long n = 0; n < j->count;)
			n += run_some_operations(j, &p);
		if (!pass || allocations < j->allocations)
			j->allocations = allocations;
		j->waits += waits;
	}
	j->sends = sends;
	j->calls = calls + (j->work == SETUPS ? looks : 0);
	ddps_ctx_free(p.ctx);
	free(p.mem);
	return NULL;
}

static int parse_guard_job(int argc, char **argv, struct job *j, unsigned long *threads)
{
	unsigned long step;

	if (argc < 4 || argc > 6)
		return -1;
	j->uri = !strcmp(argv[1], "tcp")    ? "tcp://127.0.0.1:0"
		 : !strcmp(argv[2], "many") ? "sctp://0.0.0.0:0?encap=0"
					    : "sctp://127.0.0.1:0?encap=0";
	j->op = !strcmp(argv[2], "write")  ? DDPS_OP_WRITE
		: !strcmp(argv[2], "read") ? DDPS_OP_READ
					   : DDPS_OP_SEND;
	j->work = !strcmp(argv[2], "ping")     ? PINGS
		  : !strcmp(argv[2], "many")   ? MANY_BURSTS
		  : !strcmp(argv[2], "shared") ? SHARED_BURSTS
		  : !strcmp(argv[2], "setup")  ? SETUPS
					       : BURSTS;
	j->count = strtoul(argv[3], NULL, 10);
	*threads = argc > 4 ? strtoul(argv[4], NULL, 10) : 1;
	j->passes = argc > 5 ? strtoul(argv[5], NULL, 10) : 1;
	step = count_guard_sessions(j->work) == MANY ? MANY * MANY_EACH : DEPTH;
	return j->passes && j->count && j->count % step == 0 && *threads && *threads <= THREADS_MAX
		       ? 0
		       : -1;
}

int main(int argc, char **argv)
{
	struct job j[THREADS_MAX] = { 0 };
	unsigned long n, sum[4] = { 0 };

	if (parse_guard_job(argc, argv, &j[0], &n)) {
		fprintf(stderr,
			"usage: guard tcp|sctp send|write|read|ping|many|shared|setup COUNT "
			"[THREADS "
			"[PASSES]]\nCOUNT: times %d; of many and shared: %u; of PASSES the one "
			"that allocates least\n",
			DEPTH, MANY * MANY_EACH);
		return 2;
	}
	if (n == 1) {
		run_guard_job(&j[0]);
	} else {
		for (unsigned long i = 0; i < n; i++) {
			j[i].uri = j[0].uri;
			j[i].op = j[0].op;
			j[i].work = j[0].work;
			j[i].count = j[0].count;
			j[i].passes = j[0].passes;
			if (pthread_create(&j[i].thread, NULL, run_guard_job, &j[i]))
				return 1;
		}
		for (unsigned long i = 0; i < n; i++)
			pthread_join(j[i].thread, NULL);
	}
	for (unsigned long i = 0; i < n; i++) {
		sum[0] += j[i].allocations;
		sum[1] += j[i].waits;
		sum[2] += j[i].sends;
		sum[3] += j[i].calls;
	}
	printf("allocations %lu, locks waited for %lu, sends %lu, calls %lu\n", sum[0], sum[1],
	       sum[2], sum[3]);
	return 0;
}
