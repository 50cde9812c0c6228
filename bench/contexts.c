/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Several contexts in a process, each with a thread of its own: messages of 4 KiB from THREADS threads
 * of one process to as many of another, counted where they arrive.  Nobody is bound to a core.
 *
 * usage: contexts MODE THREADS SECONDS
 * polled: ddps_cq_poll without a pause; waiting: ddps_cq_wait
 * plain-polled, plain-waiting: the same with a TCP socket for each pair of threads, no pause or
 *	blocking calls
 */
#include "peer.h"
#include <arpa/inet.h>
#include <ddpsess/ddpsess.h>
#include <errno.h>
#include <netinet/tcp.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/socket.h>

#define MESSAGE	    4096u
#define BURST	    4u	/* leave together */
#define DEPTH	    16u /* under way in a session */
#define THREADS_MAX 16u
#define WARM	    0.3

#define CHECK(call)                                                                                \
	do {                                                                                       \
		int err_ = (call);                                                                 \
		if (err_ < 0) {                                                                    \
			fprintf(stderr, "contexts: %s: %s\n", #call, ddps_strerror(err_));         \
			exit(1);                                                                   \
		}                                                                                  \
	} while (0)

/* What the processes tell each other. */
struct board {
	struct {
		char uri[128];
		struct sockaddr_in plain;
		_Alignas(64) atomic_uint_fast64_t received;
	} at[THREADS_MAX];
	atomic_uint ready;
};

static struct board *board;
static struct peer_args args;

static bool is_waiting_mode(void)
{
	return strstr(args.mode, "waiting") != NULL;
}

/* ---- ours ---- */

struct side {
	struct ddps_ctx *ctx;
	struct ddps_pd *pd;
	struct ddps_cq *cq;
	struct ddps_mr *mr;
	struct ddps_ep *ep;
	uint8_t *mem;
};

static void open_context_side(struct side *s)
{
	struct ddps_ep_attr attr;

	*s = (struct side){ .mem = peer_memory((size_t)MESSAGE * DEPTH * 2) };
	CHECK(ddps_ctx_new(&s->ctx, NULL));
	CHECK(ddps_pd_new(s->ctx, &s->pd));
	CHECK(ddps_cq_new(s->ctx, 4 * DEPTH, &s->cq));
	CHECK(ddps_mr_reg(s->pd, s->mem, (size_t)MESSAGE * DEPTH * 2, DDPS_LOCAL_WRITE, NULL,
			  &s->mr));
	ddps_ep_attr_init(&attr);
	attr.pd = s->pd;
	attr.send_cq = attr.recv_cq = s->cq;
	attr.no_recv = DDPS_NO_RECV_STALL; /* a Send is complete before it has arrived */
	CHECK(ddps_ep_new(s->ctx, &attr, &s->ep));
}

static struct ddps_sge get_context_piece(const struct side *s, uint64_t i)
{
	return (struct ddps_sge){ s->mem + i * MESSAGE, MESSAGE, ddps_mr_stag(s->mr) };
}

static int take_context_completions(struct side *s, struct ddps_wc *wc, int n)
{
	return is_waiting_mode() ? ddps_cq_wait(s->cq, wc, n, 1000) : ddps_cq_poll(s->cq, wc, n);
}

static void post_context_receive(struct side *s, uint64_t i)
{
	struct ddps_sge sge = get_context_piece(s, i);

	CHECK(ddps_post_recv(s->ep, i, &sge, 1));
}

/* Until the process is killed. */
static void *accept_context_session(void *arg)
{
	size_t k = (size_t)(uintptr_t)arg;
	struct ddps_listener *l;
	struct ddps_wc wc[16];
	struct ddps_event ev;
	struct side s;

	open_context_side(&s);
	for (uint64_t i = 0; i < 2ull * DEPTH; i++)
		post_context_receive(&s, i);
	CHECK(ddps_listen(s.ctx, "tcp://127.0.0.1:0", NULL, &l));
	CHECK(ddps_listener_uri(l, board->at[k].uri, sizeof board->at[k].uri));
	atomic_fetch_add(&board->ready, 1);
	CHECK(ddps_event_wait(s.ctx, &ev, 10000));
	CHECK(ddps_accept(ev.request, s.ep, NULL));
	for (;;) {
		int n = take_context_completions(&s, wc, 16);

		CHECK(n);
		for (int i = 0; i < n; i++)
			if (wc[i].op == DDPS_OP_RECV && wc[i].status == DDPS_WC_SUCCESS)
				post_context_receive(&s, wc[i].wr_id);
		atomic_fetch_add_explicit(&board->at[k].received, (uint64_t)n,
					  memory_order_relaxed);
	}
	return NULL;
}

static void send_context_burst(struct side *s)
{
	struct ddps_sge sge = get_context_piece(s, 0);

	for (unsigned i = 0; i < BURST; i++) {
		struct ddps_send_wr wr = { .op = DDPS_OP_SEND, .sge = &sge, .nsge = 1 };

		wr.flags = i + 1 < BURST ? DDPS_WR_MORE : 0;
		CHECK(ddps_post_send(s->ep, &wr));
	}
}

static void *connect_context_session(void *arg)
{
	size_t k = (size_t)(uintptr_t)arg;
	unsigned out = 0;
	struct ddps_wc wc[16];
	struct ddps_event ev;
	struct side s;

	open_context_side(&s);
	CHECK(ddps_connect(s.ep, board->at[k].uri, NULL));
	CHECK(ddps_event_wait(s.ctx, &ev, 10000));
	if (ev.type != DDPS_EV_ESTABLISHED) {
		fprintf(stderr, "contexts: %s: %s\n", ddps_event_name(ev.type), ev.error.text);
		exit(1);
	}
	for (;;) {
		int n;

		for (; out + BURST <= DEPTH; out += BURST)
			send_context_burst(&s);
		n = take_context_completions(&s, wc, 16);
		CHECK(n);
		out -= (unsigned)n;
	}
	return NULL;
}

/* ---- plain ---- */

static void *plain_accept(void *arg)
{
	size_t k = (size_t)(uintptr_t)arg, part = 0;
	struct sockaddr_in *sa = &board->at[k].plain;
	int l = socket(AF_INET, SOCK_STREAM, 0), fd;
	uint8_t *mem = peer_memory(DEPTH * MESSAGE);
	socklen_t len = sizeof *sa;

	*sa = (struct sockaddr_in){ .sin_family = AF_INET,
				    .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
	if (l < 0 || bind(l, (struct sockaddr *)sa, len) || listen(l, 1) ||
	    getsockname(l, (struct sockaddr *)sa, &len))
		peer_die("listen");
	atomic_fetch_add(&board->ready, 1);
	fd = accept(l, NULL, NULL);
	if (fd < 0)
		peer_die("accept");
	for (;;) {
		ssize_t n = recv(fd, mem, DEPTH * MESSAGE, is_waiting_mode() ? 0 : MSG_DONTWAIT);

		if (n == 0 || (n < 0 && errno != EAGAIN))
			peer_die("recv");
		part += n > 0 ? (size_t)n : 0;
		atomic_fetch_add_explicit(&board->at[k].received, part / MESSAGE,
					  memory_order_relaxed);
		part %= MESSAGE;
	}
	return NULL;
}

static void *plain_connect(void *arg)
{
	const struct sockaddr_in *sa = &board->at[(size_t)(uintptr_t)arg].plain;
	int fd = socket(AF_INET, SOCK_STREAM, 0), one = 1;
	uint8_t *mem = peer_memory(BURST * MESSAGE);

	if (fd < 0 || connect(fd, (const struct sockaddr *)sa, sizeof *sa) ||
	    setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof one))
		peer_die("connect");
	for (size_t at = 0;;) {
		ssize_t n = send(fd, mem + at, BURST * MESSAGE - at,
				 MSG_NOSIGNAL | (is_waiting_mode() ? 0 : MSG_DONTWAIT));

		if (n < 0 && errno != EAGAIN)
			peer_die("send");
		at = (at + (n > 0 ? (size_t)n : 0)) % (BURST * MESSAGE);
	}
	return NULL;
}

/* ---- both ---- */

static void start_threads(void *(*function)(void *))
{
	for (size_t k = 0; k < args.size; k++) {
		pthread_t t;

		if (pthread_create(&t, NULL, function, (void *)(uintptr_t)k))
			peer_die("thread");
	}
}

static uint64_t count_context_messages(void)
{
	uint64_t n = 0;

	for (size_t k = 0; k < args.size; k++)
		n += atomic_load_explicit(&board->at[k].received, memory_order_relaxed);
	return n;
}

int main(int argc, char **argv)
{
	bool plain;
	uint64_t first;
	double begin;
	pid_t child;

	args = peer_parse(argc, argv, "plain-polled|plain-waiting|polled|waiting");
	if (args.size > THREADS_MAX)
		args.size = THREADS_MAX;
	plain = !strncmp(args.mode, "plain", 5);
	board = mmap(NULL, sizeof *board, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1,
		     0);
	if (board == MAP_FAILED)
		peer_die("mmap");
	alarm((unsigned)args.seconds + 20);
	child = fork();
	if (child < 0)
		peer_die("fork");
	if (!child) {
		prctl(PR_SET_PDEATHSIG, SIGKILL); /* no thread of the others sees it go first */
		alarm((unsigned)args.seconds + 20);
		start_threads(plain ? plain_accept : accept_context_session);
		for (;;)
			pause();
	}
	while (atomic_load(&board->ready) < args.size)
		usleep(100);
	start_threads(plain ? plain_connect : connect_context_session);
	usleep((useconds_t)(WARM * 1e6));
	first = count_context_messages();
	begin = peer_now();
	usleep((useconds_t)(args.seconds * 1e6));
	first = count_context_messages() - first;
	begin = peer_now() - begin;
	printf("{\"op\":\"%s\",\"size\":%zu,\"ops_per_second\":%.3f}\n", args.mode, args.size,
	       (double)first / begin);
	fflush(stdout);
	_exit(0);
}
