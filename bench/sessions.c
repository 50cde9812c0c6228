/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Many sessions between two processes: how fast they are set up, what one costs while it is idle
 * (in memory, and to a session next to it that is not), and how fast several are together.
 *
 * usage: sessions MODE COUNT SECONDS
 * setup-tcp, setup-shared, setup-new: one after the other; over TCP, over an SCTP association
 *	that is there, over a new one each.  The rate is that of the median.
 * idle: octets of the heap that each of COUNT sessions takes in the process that accepts them
 * ping: round trips of one session of COUNT, the others idle; the rate is that of the median
 * ping-waiting: the same, and both sides sleep until there is something to take; ping-shm-waiting: through shm://
 * ping-waiting-anywhere: the same on any core; -shaking: while another process makes and ends SHAKES sessions a second
 * read, flush: the same by an RDMA Read of 64 octets; by a Write of them and the Read behind it
 * active: messages of 4 KiB over COUNT sessions, counted where they arrive, and the least share
 *	that one had of what were equal shares
 * beside: round trips of a session on an SCTP association on which others (COUNT - 1) write
 *	64 KiB all the time; beside-tcp: the same over TCP
 * idle, ping and active are over TCP; idle-assoc, ping-assoc, active-assoc over an SCTP association
 * each, and active-shared over one for all.
 *
 * BENCH_SERVE_NS, BENCH_HOST: network namespace of the side that accepts (a file of /proc), and its
 * address there.
 * BENCH_SECURED: a settings file; what is over TCP is over TLS then.
 */
#include "peer.h"
#include "support/undumped.h"
#include <ddpsess/ddpsess.h>
#include <ddpsess/secure.h>
#include <malloc.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/wait.h>

#define MESSAGE	  4096u
#define SHARED	  8192u /* receives that all sessions of the server share */
#define EACH	  4u	/* messages under way in a session */
#define PING_LEN  64u
#define BIG	  65536u
#define DEPTH	  16u
#define SHAKES	  200u
#define WARM	  0.5 /* seconds; until all buffers of thousands of sessions are full */
#define WARM_PATH 2.0 /* until a path is */

#define CHECK(call)                                                                                \
	do {                                                                                       \
		int err_ = (call);                                                                 \
		if (err_ < 0) {                                                                    \
			fprintf(stderr, "sessions: %s: %s\n", #call, ddps_strerror(err_));         \
			exit(1);                                                                   \
		}                                                                                  \
	} while (0)

/* What the processes tell each other. */
struct board {
	char uri[128];
	uint32_t sink; /* what others may write to */
	uint64_t sink_to;
	volatile int ready, ask_heap;
	volatile uint64_t up, received, heap, shaken;
};

struct side {
	struct ddps_ctx *ctx;
	struct ddps_pd *pd;
	struct ddps_cq *cq;
	struct ddps_srq *srq;
	struct ddps_mr *mr;
	uint8_t *mem;
	struct ddps_conn_param param;
	struct board *board;
	int waits;
	uint64_t written; /* octets of Writes that are complete */
};

static const char *stream_scheme(void)
{
	return getenv("BENCH_SECURED") ? "tls" : "tcp";
}

static void open_session_ctx(struct side *s)
{
	struct ddps_secure_attr keys;
	struct ddps_ctx_attr attr;
	struct ddps_error why;

	ddps_secure_attr_init(&keys);
	ddps_ctx_attr_init(&attr);
	keys.settings = getenv("BENCH_SECURED");
	if (keys.settings && ddps_secure_open(&attr.secure, &keys, &why)) {
		fprintf(stderr, "sessions: %s\n", why.text);
		exit(1);
	}
	CHECK(ddps_ctx_new(&s->ctx, &attr));
}

static void open_session_side(struct side *s, struct board *board, uint32_t cq_depth)
{
	size_t len = (size_t)SHARED * MESSAGE;

	*s = (struct side){ .board = board, .mem = peer_memory(len) };
	open_session_ctx(s);
	CHECK(ddps_pd_new(s->ctx, &s->pd));
	CHECK(ddps_cq_new(s->ctx, cq_depth, &s->cq));
	CHECK(ddps_mr_reg(s->pd, s->mem, len,
			  DDPS_LOCAL_WRITE | DDPS_REMOTE_READ | DDPS_REMOTE_WRITE, NULL, &s->mr));
	ddps_conn_param_init(&s->param);
}

static struct ddps_sge get_session_piece(struct side *s, uint32_t i, uint32_t len)
{
	return (struct ddps_sge){ s->mem + (size_t)i * MESSAGE, len, ddps_mr_stag(s->mr) };
}

static int take_session_completions(struct side *s, struct ddps_wc *wc, int n)
{
	return s->waits ? ddps_cq_wait(s->cq, wc, n, 1000) : ddps_cq_poll(s->cq, wc, n);
}

static struct ddps_ep *new_session_ep(struct side *s)
{
	struct ddps_ep_attr attr;
	struct ddps_ep *ep;

	ddps_ep_attr_init(&attr);
	attr.pd = s->pd;
	attr.send_cq = attr.recv_cq = s->cq;
	attr.srq = s->srq;
	attr.srq_share = SHARED;
	CHECK(ddps_ep_new(s->ctx, &attr, &ep));
	return ep;
}

static void send_nth(struct side *s, struct ddps_ep *ep, uint64_t nth, uint32_t len, unsigned flags)
{
	struct ddps_sge sge = get_session_piece(s, 0, len);
	struct ddps_send_wr wr = {
		.op = DDPS_OP_SEND, .wr_id = nth, .flags = flags, .sge = &sge, .nsge = 1
	};

	CHECK(ddps_post_send(ep, &wr));
}

static void send_first(struct side *s, struct ddps_ep *ep, uint32_t len, unsigned flags)
{
	send_nth(s, ep, 0, len, flags);
}

static int over_shm(const struct peer_args *a)
{
	return strstr(a->mode, "-shm") != NULL;
}

static int is_waiting_ping(const struct peer_args *a)
{
	return !strncmp(a->mode, "ping", 4) && strstr(a->mode, "-waiting");
}

static int over_sctp(const struct peer_args *a)
{
	return strstr(a->mode, "-shared") || strstr(a->mode, "-new") || strstr(a->mode, "-assoc") ||
	       !strcmp(a->mode, "beside");
}

static int one_for_all(const struct peer_args *a)
{
	return strstr(a->mode, "-shared") || !strcmp(a->mode, "beside");
}

/* ---- the side that accepts; polls, until it is killed ---- */

static void post_session_receive(struct side *s, uint32_t i)
{
	struct ddps_sge sge = get_session_piece(s, i, MESSAGE);

	CHECK(ddps_post_srq_recv(s->srq, i, &sge, 1));
}

static void serve_event(struct side *s)
{
	struct ddps_event ev;

	while (ddps_event_get(s->ctx, &ev) == 1) {
		if (ev.type == DDPS_EV_CONNECT_REQUEST)
			CHECK(ddps_accept(ev.request, new_session_ep(s), &s->param));
		else if (ev.type == DDPS_EV_ESTABLISHED)
			s->board->up++;
		else if (ev.type == DDPS_EV_PEER_CLOSED)
			ddps_disconnect(ev.ep);
		else if (ev.type == DDPS_EV_CLOSED || ev.type == DDPS_EV_FAILED)
			ddps_ep_free(ev.ep);
	}
}

static void serve_messages(struct side *s, int echo)
{
	struct ddps_wc wc[64];
	int n = take_session_completions(s, wc, 64);

	for (int i = 0; i < n; i++) {
		if (wc[i].op != DDPS_OP_RECV || wc[i].status != DDPS_WC_SUCCESS)
			continue;
		post_session_receive(s, (uint32_t)wc[i].wr_id);
		if (echo)
			send_first(s, wc[i].ep, PING_LEN, DDPS_WR_SILENT);
		s->board->received++;
	}
}

static uint64_t heap(void)
{
	struct mallinfo2 m = mallinfo2();

	return (uint64_t)m.uordblks + (uint64_t)m.hblkhd + undumped_octets();
}

__attribute__((noreturn)) static void serve_board(struct board *b, const struct peer_args *a)
{
	struct ddps_listen_param lp;
	struct ddps_listener *l;
	struct side s;
	uint64_t before;

	if (getenv("BENCH_SERVE_NS"))
		peer_enter(getenv("BENCH_SERVE_NS"));
	open_session_side(&s, b, 65536);
	b->sink = ddps_mr_stag(s.mr);
	b->sink_to = ddps_mr_to(s.mr);
	CHECK(ddps_srq_new(s.pd, SHARED, 1, NULL, &s.srq));
	for (uint32_t i = 0; i < SHARED; i++)
		post_session_receive(&s, i);
	ddps_listen_param_init(&lp);
	snprintf(b->uri, sizeof b->uri,
		 over_sctp(a)  ? "sctp://0.0.0.0:0?encap=0"
		 : over_shm(a) ? "shm://@"
			       : "%s://%s:0",
		 stream_scheme(), peer_host());
	CHECK(ddps_listen(s.ctx, b->uri, &lp, &l));
	CHECK(ddps_listener_uri(l, b->uri, sizeof b->uri));
	before = heap();
	b->ready = 1;
	for (;;) {
		serve_messages(&s, !strncmp(a->mode, "ping", 4) || !strncmp(a->mode, "beside", 6));
		serve_event(&s);
		s.waits = b->received &&
			  is_waiting_ping(a); /* those who come first are not waited for */
		if (b->ask_heap) {
			b->heap = heap() - before;
			b->ask_heap = 0;
		}
	}
}

/* ---- the side that connects ---- */

static void post_tagged(struct side *s, struct ddps_ep *ep, enum ddps_op op, uint32_t len,
			unsigned flags)
{
	struct ddps_sge sge = { s->mem, len, ddps_mr_stag(s->mr) };
	struct ddps_send_wr wr = { .op = op,
				   .flags = flags,
				   .sge = &sge,
				   .nsge = 1,
				   .stag = s->board->sink,
				   .to = s->board->sink_to };

	CHECK(ddps_post_send(ep, &wr));
}

static void write_big(struct side *s, struct ddps_ep *ep)
{
	post_tagged(s, ep, DDPS_OP_WRITE, BIG, 0);
}

static void await_up(struct side *s, struct ddps_ep *ep)
{
	struct ddps_wc wc;
	struct ddps_event ev = { 0 };

	for (;;) {
		CHECK(ddps_cq_poll(s->cq, &wc, 1));
		if (ddps_event_get(s->ctx, &ev) != 1 || ev.ep != ep)
			continue;
		if (ev.type == DDPS_EV_ESTABLISHED)
			return;
		fprintf(stderr, "sessions: %s: %s\n", ddps_event_name(ev.type), ev.error.text);
		exit(1);
	}
}

static struct ddps_ep *connect_bench_session(struct side *s, const char *uri)
{
	struct ddps_ep *ep = new_session_ep(s);

	CHECK(ddps_connect(ep, uri, &s->param));
	await_up(s, ep);
	return ep;
}

/* Another address of this machine is another association: 127.x.y.z instead of any. */
static void nth_uri(const struct board *b, const struct peer_args *a, size_t n, char *uri,
		    size_t len)
{
	const char *port = strchr(strchr(b->uri, ':') + 1, ':');

	if (over_shm(a)) {
		snprintf(uri, len, "%s", b->uri);
		return;
	}
	if (!over_sctp(a) || getenv("BENCH_HOST")) {
		snprintf(uri, len, "%s://%s%s", over_sctp(a) ? "sctp" : stream_scheme(),
			 peer_host(), port);
		return;
	}
	if (one_for_all(a))
		n = 0;
	snprintf(uri, len, "sctp://127.%zu.%zu.%zu%s", 1 + n / 62500 % 250, 1 + n / 250 % 250,
		 1 + n % 250, port);
}

static void setup(struct side *s, const struct peer_args *a)
{
	struct peer_median m = { 0 };
	double begin = peer_now(), cpu = peer_cpu();
	char uri[192];

	nth_uri(s->board, a, 0, uri, sizeof uri);
	if (one_for_all(a))
		connect_bench_session(s, uri);
	for (unsigned n = 1; n <= a->size && peer_now() - begin < a->seconds; n++) {
		double t;
		struct ddps_ep *ep;

		nth_uri(s->board, a, n, uri, sizeof uri);
		t = peer_now();
		ep = connect_bench_session(s, uri);
		peer_median_add(&m, peer_now() - t);
		ddps_ep_free(ep);
	}
	peer_report_median(a, &m, peer_now() - begin, peer_cpu() - cpu);
}

static struct ddps_ep **connect_many(struct side *s, const struct peer_args *a)
{
	struct ddps_ep **ep = peer_memory(a->size * sizeof(*ep));
	char uri[192];

	for (size_t i = 0; i < a->size; i++) {
		nth_uri(s->board, a, i, uri, sizeof uri);
		ep[i] = connect_bench_session(s, uri);
	}
	return ep;
}

static void run_idle_sessions(struct side *s, const struct peer_args *a)
{
	connect_many(s, a);
	while (s->board->up < a->size)
		usleep(100);
	s->board->ask_heap = 1;
	while (s->board->ask_heap)
		usleep(100);
	printf("{\"op\":\"idle\",\"size\":%zu,\"bytes_each\":%.1f}\n", a->size,
	       (double)s->board->heap / (double)a->size);
}

/* One message there and back; what else completes meanwhile is seen to. */
static double measure_round_trip(struct side *s, struct ddps_ep *ep)
{
	struct ddps_sge sge = get_session_piece(s, 1, MESSAGE);
	double t = peer_now();
	struct ddps_wc wc;

	CHECK(ddps_post_recv(ep, 0, &sge, 1));
	send_first(s, ep, PING_LEN, DDPS_WR_SILENT);
	for (;;) {
		int n = take_session_completions(s, &wc, 1);

		CHECK(n);
		if (n && wc.op == DDPS_OP_RECV)
			return peer_now() - t;
		if (n) {
			s->written += BIG;
			write_big(s, wc.ep);
		}
	}
}

/* A Read, which says that the Write before it was placed */
static double round_read(struct side *s, struct ddps_ep *ep)
{
	double t = peer_now();
	struct ddps_wc wc;

	post_tagged(s, ep, DDPS_OP_READ, PING_LEN, 0);
	while (!ddps_cq_poll(s->cq, &wc, 1))
		;
	CHECK(wc.status == DDPS_WC_SUCCESS && wc.op == DDPS_OP_READ ? 0 : -1);
	return peer_now() - t;
}

static double round_flush(struct side *s, struct ddps_ep *ep)
{
	double t = peer_now();

	post_tagged(s, ep, DDPS_OP_WRITE, PING_LEN, DDPS_WR_SILENT | DDPS_WR_MORE);
	round_read(s, ep);
	return peer_now() - t;
}

/* Others were made as often as they had to be. */
static int were_shaken(const struct peer_args *a, uint64_t n, double seconds)
{
	if (!strstr(a->mode, "-shaking") || (double)n >= 0.9 * SHAKES * seconds)
		return 1;
	fprintf(stderr, "sessions: only %llu others were made\n", (unsigned long long)n);
	return 0;
}

static void run_session_pings(struct side *s, const struct peer_args *a)
{
	struct ddps_ep **ep = connect_many(s, a);
	struct peer_median m = { 0 };
	double begin = peer_now(), cpu = peer_cpu();
	double (*once)(struct side *, struct ddps_ep *) = !strcmp(a->mode, "read") ? round_read
							  : !strcmp(a->mode, "flush")
								  ? round_flush
								  : measure_round_trip;
	uint64_t shaken = s->board->shaken;
	const size_t in_turn = strstr(a->mode, "-turns") != NULL;

	s->waits = is_waiting_ping(a);
	for (size_t i = 0; peer_now() - begin < a->seconds; i = (i + in_turn) % a->size)
		peer_median_add(&m, once(s, ep[i]));
	if (were_shaken(a, s->board->shaken - shaken, peer_now() - begin))
		peer_report_median(a, &m, peer_now() - begin, peer_cpu() - cpu);
}

/* Later, when the path is full. */
static void run_pings_in_traffic(struct side *s, const struct peer_args *a)
{
	struct ddps_ep **ep = connect_many(s, a);
	struct peer_median m = { 0 };
	const double warm = over_sctp(a) ? WARM_PATH : WARM;
	double begin = peer_now(), cpu = peer_cpu(), t;
	uint64_t first = 0;

	for (size_t i = 1; i < a->size; i++)
		for (unsigned k = 0; k < DEPTH; k++)
			write_big(s, ep[i]);
	while (peer_now() - begin < a->seconds + warm) {
		t = measure_round_trip(s, ep[0]);
		if (peer_now() - begin > warm)
			peer_median_add(&m, t);
		else
			first = s->written;
	}
	t = peer_now() - begin;
	peer_report_median_beside(a, &m, t - warm, peer_cpu() - cpu, s->written - first);
}

/* Another process: sessions at a steady rate, until it is killed. */
__attribute__((noreturn)) static void shake_steadily(struct board *b, const struct peer_args *a)
{
	struct side s;
	char uri[192];
	double due;

	alarm((unsigned)a->seconds + 50);
	open_session_side(&s, b, 1024);
	nth_uri(b, a, 0, uri, sizeof uri);
	for (due = peer_now();; due += 1.0 / SHAKES) {
		double early = due - peer_now();
		struct ddps_event ev;
		struct ddps_ep *ep;

		if (early > 0)
			usleep((useconds_t)(early * 1e6));
		else if (early < -0.1)
			due -= early;
		ep = new_session_ep(&s);
		CHECK(ddps_connect(ep, uri, &s.param));
		do
			CHECK(ddps_event_wait(s.ctx, &ev, 10000));
		while (ev.ep != ep);
		CHECK(ev.type == DDPS_EV_ESTABLISHED ? 0 : -1);
		CHECK(ddps_abort(ep));
		ddps_ep_free(ep);
		b->shaken++;
	}
}

static void run_shaken_pings(struct side *s, const struct peer_args *a)
{
	pid_t shaker = fork();

	if (shaker < 0)
		peer_die("fork");
	if (!shaker)
		shake_steadily(s->board, a);
	while (!s->board->shaken)
		usleep(100);
	open_session_side(s, s->board, 65536);
	run_session_pings(s, a);
	kill(shaker, SIGKILL);
	waitpid(shaker, NULL, 0);
}

static void report_shares(const struct peer_args *a, const uint64_t *done, uint64_t received,
			  double seconds)
{
	uint64_t least = UINT64_MAX, most = 0, sum = 0;

	for (size_t i = 0; i < a->size; i++) {
		least = done[i] < least ? done[i] : least;
		most = done[i] > most ? done[i] : most;
		sum += done[i];
	}
	printf("{\"op\":\"%s\",\"size\":%zu,\"ops_per_second\":%.3f,"
	       "\"least_share\":%.4f,\"most_share\":%.4f}\n",
	       a->mode, a->size, (double)received / seconds,
	       (double)least * (double)a->size / (double)sum,
	       (double)most * (double)a->size / (double)sum);
}

static void active(struct side *s, const struct peer_args *a)
{
	struct ddps_ep **ep = connect_many(s, a);
	uint64_t first = 0, *done = calloc(a->size, sizeof *done);
	double begin = 0, end;
	struct ddps_wc wc[64];

	for (size_t i = 0; i < a->size; i++)
		for (unsigned k = 0; k < EACH; k++)
			send_nth(s, ep[i], i, MESSAGE, k + 1 < EACH ? DDPS_WR_MORE : 0);
	for (double warm = peer_now();;) {
		int n = ddps_cq_poll(s->cq, wc, 64);

		CHECK(n);
		for (int i = 0; i < n; i++) {
			done[wc[i].wr_id]++;
			send_nth(s, wc[i].ep, wc[i].wr_id, MESSAGE,
				 i + 1 < n && wc[i + 1].ep == wc[i].ep ? DDPS_WR_MORE : 0);
		}
		end = peer_now();
		if (begin == 0 && end - warm > WARM) {
			begin = end;
			first = s->board->received;
			memset(done, 0, a->size * sizeof *done);
		}
		if (begin > 0 && end - begin >= a->seconds)
			break;
	}
	report_shares(a, done, s->board->received - first, end - begin);
}

/* ---- both ---- */

int main(int argc, char **argv)
{
	struct peer_args a =
		peer_parse(argc, argv,
			   "setup-tcp|setup-shared|setup-new|idle-assoc|ping-assoc|active-assoc|"
			   "active-shared|beside-tcp|ping-waiting|ping-shm-waiting|read|flush|"
			   "ping-shm-turns|ping-waiting-anywhere-shaking");
	struct board *b =
		mmap(NULL, sizeof *b, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	struct side s;
	pid_t child;

	if (b == MAP_FAILED)
		peer_die("mmap");
	peer_descriptors();
	child = fork();
	if (child < 0)
		peer_die("fork");
	if (!child) {
		if (!strstr(a.mode, "-anywhere"))
			peer_pin(0);
		alarm((unsigned)a.seconds + 50);
		serve_board(b, &a);
	}
	if (!strstr(a.mode, "-anywhere"))
		peer_pin(1);
	alarm((unsigned)a.seconds + 50);
	while (!b->ready)
		usleep(100);
	s.board = b;
	if (!strstr(a.mode, "-shaking"))
		open_session_side(&s, b, 65536);
	if (!strncmp(a.mode, "setup", 5))
		setup(&s, &a);
	else if (!strncmp(a.mode, "idle", 4))
		run_idle_sessions(&s, &a);
	else if (strstr(a.mode, "-shaking"))
		run_shaken_pings(&s, &a);
	else if (!strncmp(a.mode, "ping", 4) || !strcmp(a.mode, "read") || !strcmp(a.mode, "flush"))
		run_session_pings(&s, &a);
	else if (!strncmp(a.mode, "beside", 6))
		run_pings_in_traffic(&s, &a);
	else
		active(&s, &a);
	fflush(stdout);
	kill(child, SIGKILL);
	waitpid(child, NULL, 0);
	_exit(0); /* thousands of sessions need not be ended one by one */
}
