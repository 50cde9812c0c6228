/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The data path without noise: a fixed number of operations between two endpoints of one context
 * over loopback, in one thread for callgrind (instructions, see guard.sh), or in several, each
 * with a context of its own.  Once everything has been used once, it counts the library's calls
 * of the allocator and the locks that it had to wait for.
 *
 * usage: guard tcp|sctp send|write|read COUNT [THREADS]
 */
#include <errno.h>
#include <pthread.h>
#include <ddpsess/ddpsess.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>

#define DEPTH	    32
#define WARM	    (8 * DEPTH)
#define WARM_SMALL  (128 * DEPTH) /* SACKs of a second socket may wait for 64 turns of the loop */
#define BIG	    65536u
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

static _Thread_local unsigned long allocations, waits, sends;

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
	return __real_send(fd, p, n, flags);
}

ssize_t __wrap_sendmsg(int fd, const struct msghdr *m, int flags)
{
	sends++;
	return __real_sendmsg(fd, m, flags);
}

int __wrap_sendmmsg(int fd, struct mmsghdr *m, unsigned n, int flags)
{
	sends++;
	return __real_sendmmsg(fd, m, n, flags);
}

/* ---- the session ---- */

struct pair {
	struct ddps_ctx *ctx;
	struct ddps_pd *pd;
	struct ddps_cq *cq;
	struct ddps_ep *near, *far;
	struct ddps_mr *mr;
	uint8_t *mem;
};

static void open_pair(struct pair *p, const char *uri)
{
	struct ddps_listener *l;
	struct ddps_ep_attr attr;
	struct ddps_conn_param param;
	struct ddps_event ev;
	char bound[256];
	unsigned up = 0;

	p->mem = calloc(1, BIG);
	CHECK(ddps_ctx_new(&p->ctx, NULL));
	CHECK(ddps_pd_new(p->ctx, &p->pd));
	CHECK(ddps_cq_new(p->ctx, 4 * DEPTH, &p->cq));
	CHECK(ddps_mr_reg(p->pd, p->mem, BIG,
			  DDPS_LOCAL_WRITE | DDPS_REMOTE_WRITE | DDPS_REMOTE_READ, NULL, &p->mr));
	ddps_ep_attr_init(&attr);
	attr.pd = p->pd;
	attr.send_cq = attr.recv_cq = p->cq;
	attr.sq_depth = attr.rq_depth = DEPTH;
	CHECK(ddps_ep_new(p->ctx, &attr, &p->near));
	CHECK(ddps_ep_new(p->ctx, &attr, &p->far));
	ddps_conn_param_init(&param);
	param.ird = param.ord = param.ulp_ird = param.ulp_ord = 16;
	CHECK(ddps_listen(p->ctx, uri, NULL, &l));
	CHECK(ddps_listener_uri(l, bound, sizeof bound));
	CHECK(ddps_connect(p->near, bound, &param));
	while (up < 2) {
		CHECK(ddps_event_wait(p->ctx, &ev, 10000));
		if (ev.type == DDPS_EV_CONNECT_REQUEST)
			CHECK(ddps_accept(ev.request, p->far, &param));
		else if (ev.type == DDPS_EV_ESTABLISHED)
			up++;
		else
			exit(1);
	}
}

static struct ddps_sge piece(struct pair *p, uint32_t len)
{
	return (struct ddps_sge){ .addr = p->mem, .len = len, .lkey = ddps_mr_stag(p->mr) };
}

/* A burst of DEPTH and everything it brings. */
static void burst(struct pair *p, enum ddps_op op, uint32_t len)
{
	unsigned want = op == DDPS_OP_SEND ? 2 * DEPTH : DEPTH;
	struct ddps_sge sge = piece(p, len);
	struct ddps_wc wc[DEPTH];

	for (unsigned i = 0; op == DDPS_OP_SEND && i < DEPTH; i++)
		CHECK(ddps_post_recv(p->far, i, &sge, 1));
	for (unsigned i = 0; i < DEPTH; i++) {
		struct ddps_send_wr wr = { .op = op,
					   .flags = i + 1 < DEPTH ? DDPS_WR_MORE : 0,
					   .sge = &sge,
					   .nsge = 1,
					   .stag = ddps_mr_stag(p->mr),
					   .to = ddps_mr_to(p->mr) };

		CHECK(ddps_post_send(p->near, &wr));
	}
	while (want) {
		int n = ddps_cq_wait(p->cq, wc, DEPTH, 10000);

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

/* ---- one thread, or several ---- */

struct job {
	const char *uri;
	enum ddps_op op;
	unsigned long count, allocations, waits, sends;
	pthread_t thread;
};

static void *work(void *arg)
{
	struct job *j = arg;
	uint32_t len = j->op == DDPS_OP_SEND ? 64 : BIG;
	struct pair p;

	open_pair(&p, j->uri);
	for (unsigned n = 0; n < (j->op == DDPS_OP_SEND ? WARM_SMALL : WARM); n += DEPTH)
		burst(&p, j->op, len);
	allocations = waits = sends = 0;
	for (unsigned long n = 0; n < j->count; n += DEPTH)
		burst(&p, j->op, len);
	j->allocations = allocations;
	j->waits = waits;
	j->sends = sends;
	ddps_ctx_free(p.ctx);
	free(p.mem);
	return NULL;
}

static int parse(int argc, char **argv, struct job *j, unsigned long *threads)
{
	if (argc < 4 || argc > 5)
		return -1;
	j->uri = !strcmp(argv[1], "tcp") ? "tcp://127.0.0.1:0" : "sctp://127.0.0.1:0?encap=0";
	j->op = !strcmp(argv[2], "send")    ? DDPS_OP_SEND
		: !strcmp(argv[2], "write") ? DDPS_OP_WRITE
					    : DDPS_OP_READ;
	j->count = strtoul(argv[3], NULL, 10);
	*threads = argc == 5 ? strtoul(argv[4], NULL, 10) : 1;
	return j->count && j->count % DEPTH == 0 && *threads && *threads <= THREADS_MAX ? 0 : -1;
}

int main(int argc, char **argv)
{
	struct job j[THREADS_MAX] = { 0 };
	unsigned long n, sum[3] = { 0 };

	if (parse(argc, argv, &j[0], &n)) {
		fprintf(stderr,
			"usage: guard tcp|sctp send|write|read COUNT (times %d) [THREADS]\n",
			DEPTH);
		return 2;
	}
	if (n == 1) {
		work(&j[0]);
	} else {
		for (unsigned long i = 0; i < n; i++) {
			j[i].uri = j[0].uri;
			j[i].op = j[0].op;
			j[i].count = j[0].count;
			if (pthread_create(&j[i].thread, NULL, work, &j[i]))
				return 1;
		}
		for (unsigned long i = 0; i < n; i++)
			pthread_join(j[i].thread, NULL);
	}
	for (unsigned long i = 0; i < n; i++) {
		sum[0] += j[i].allocations;
		sum[1] += j[i].waits;
		sum[2] += j[i].sends;
	}
	printf("allocations %lu, locks waited for %lu, sends %lu\n", sum[0], sum[1], sum[2]);
	return 0;
}
