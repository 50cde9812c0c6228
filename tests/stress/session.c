/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Random calls of the session API from four threads, by seed: sessions are made, used, ended and
 * freed while others wait, post and poll; the process forks, signals come.  Nothing is expected of
 * most calls but that they return in time.  Two sessions that nobody else touches carry pings, and a
 * ping that is sent has to wake whoever waits for it: a lost wake-up is a failure, and so is a thread
 * that does not come back from a call.
 *
 * usage: stress-session SEED SECONDS	rounds of a second each, of seeds from SEED on; the seed of one that
 *					fails is printed, and begins with it when it is given again
 */
#include <ddpsess/ddpsess.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define NTHREADS 4
#define NSLOTS	 6
#define NPINGS	 2
#define ROUND_MS 1000
#define LOST_MS	 10000 /* a ping takes so long only if its wake-up was lost */
#define STUCK_MS 30000 /* no call that is made here may take that long */
#define DEPTH	 32
#define BUF_LEN	 65536

#define CHECK(cond) check(cond, #cond, __LINE__)

struct side {
	struct ddps_ctx *ctx;
	struct ddps_pd *pd;
	struct ddps_mr *mr;
	uint8_t buf[BUF_LEN];
};

/* Who uses it holds the lock for reading, who makes or frees something of it for writing. */
struct slot {
	pthread_rwlock_t lock;
	struct ddps_ep *ep[2];
	struct ddps_cq *cq[2];
};

struct world {
	uint64_t seed;
	struct side side[2];
	struct ddps_listener *listener;
	char uri[128];
	struct slot slots[NSLOTS];
	struct slot pings[NPINGS];
	pthread_mutex_t ping_lock[NPINGS];
	pthread_mutex_t requests; /* who serves the passive side's events */
	bool stop;		  /* atomic */
};

struct worker {
	struct world *w;
	pthread_t thread;
	uint64_t rng;
	unsigned calls;	  /* atomic */
	const char *what; /* atomic: the call under way; NULL: it has ended */
};

static struct worker workers[NTHREADS];
static uint64_t current_seed;

static void check(bool ok, const char *what, int line)
{
	if (ok)
		return;
	printf("not ok stress-session seed %llu: line %d: %s\n", (unsigned long long)current_seed,
	       line, what);
	fflush(stdout);
	abort();
}

static uint64_t now_ms(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (uint64_t)t.tv_sec * 1000 + (uint64_t)t.tv_nsec / 1000000;
}

/* xorshift64* */
static uint32_t draw(uint64_t *rng, uint32_t n)
{
	*rng ^= *rng >> 12;
	*rng ^= *rng << 25;
	*rng ^= *rng >> 27;
	return (uint32_t)(*rng * 2685821657736338717u >> 33) % n;
}

/* ---- the world ---- */

static void side_open(struct side *s, uint64_t *rng)
{
	struct ddps_ctx_attr attr;

	ddps_ctx_attr_init(&attr);
	attr.thread = draw(rng, 2);
	attr.poll_drives = draw(rng, 2);
	CHECK(!ddps_ctx_new(&s->ctx, &attr));
	CHECK(!ddps_pd_new(s->ctx, &s->pd));
	CHECK(!ddps_mr_reg(s->pd, s->buf, sizeof s->buf,
			   DDPS_LOCAL_WRITE | DDPS_REMOTE_WRITE | DDPS_REMOTE_READ, NULL, &s->mr));
}

/* The lock of @s is held for writing. */
static void slot_make(struct world *w, struct slot *s, int side, uint64_t *rng)
{
	struct ddps_ep_attr attr;

	CHECK(!ddps_cq_new(w->side[side].ctx, 4 * DEPTH, &s->cq[side]));
	ddps_ep_attr_init(&attr);
	attr.pd = w->side[side].pd;
	attr.send_cq = attr.recv_cq = s->cq[side];
	attr.sq_depth = attr.rq_depth = DEPTH;
	attr.no_recv = draw(rng, 2) ? DDPS_NO_RECV_STALL : DDPS_NO_RECV_TERMINATE;
	attr.flush_late = draw(rng, 2);
	CHECK(!ddps_ep_new(w->side[side].ctx, &attr, &s->ep[side]));
}

static void slot_clear(struct slot *s)
{
	for (int side = 0; side < 2; side++) {
		ddps_ep_free(s->ep[side]);
		if (s->cq[side])
			CHECK(!ddps_cq_free(s->cq[side]));
		s->ep[side] = NULL;
		s->cq[side] = NULL;
	}
}

static void dial(struct world *w, struct slot *s, uint8_t number)
{
	struct ddps_conn_param param;

	ddps_conn_param_init(&param);
	param.private_data = &number;
	param.private_data_len = 1;
	param.close_ms = 100;
	CHECK(!ddps_connect(s->ep[0], w->uri, &param));
}

static struct slot *slot_of(struct world *w, uint8_t number)
{
	return number < NSLOTS ? &w->slots[number] : &w->pings[number - NSLOTS];
}

/* The passive side: a request is answered with the endpoint of its slot, or refused. */
static void serve(struct world *w, const struct ddps_event *ev, uint64_t *rng)
{
	struct slot *s;

	if (ev->type != DDPS_EV_CONNECT_REQUEST)
		return;
	CHECK(ev->private_data_len == 1 && ev->private_data[0] < NSLOTS + NPINGS);
	s = slot_of(w, ev->private_data[0]);
	if (pthread_rwlock_trywrlock(&s->lock)) {
		ddps_reject(ev->request, NULL, 0);
		return;
	}
	if (!s->ep[1] && s->ep[0]) {
		slot_make(w, s, 1, rng);
		ddps_accept(ev->request, s->ep[1], NULL);
	} else {
		ddps_reject(ev->request, NULL, 0);
	}
	pthread_rwlock_unlock(&s->lock);
}

/* Nobody else touches this session, so what is sent to @side comes, and wakes it up. */
static void ping(struct slot *s, int side)
{
	struct ddps_send_wr wr = { .op = DDPS_OP_SEND, .flags = DDPS_WR_SILENT };
	const uint64_t until = now_ms() + LOST_MS;
	struct ddps_wc wc;
	int n;

	CHECK(!ddps_post_recv(s->ep[side], 1, NULL, 0));
	CHECK(!ddps_post_send(s->ep[!side], &wr));
	do
		n = ddps_cq_wait(s->cq[side], &wc, 1, LOST_MS);
	while (n == DDPS_E_AGAIN);
	if (n != 1 || wc.status != DDPS_WC_SUCCESS)
		printf("# ping to side %d: %s\n", side,
		       n == 1 ? ddps_wc_status_name(wc.status) : ddps_strerror(n));
	CHECK(n == 1 && wc.status == DDPS_WC_SUCCESS);
	CHECK(now_ms() < until);
}

/* The sessions for pings are up before anything else begins. */
static void pings_up(struct world *w, uint64_t *rng)
{
	struct ddps_event ev;

	for (int i = 0; i < NPINGS; i++) {
		const uint64_t until = now_ms() + LOST_MS;
		unsigned up = 0;

		slot_make(w, &w->pings[i], 0, rng);
		dial(w, &w->pings[i], (uint8_t)(NSLOTS + i));
		while (up != 3) {
			CHECK(now_ms() < until);
			for (int side = 0; side < 2; side++) {
				if (ddps_event_wait(w->side[side].ctx, &ev, 1))
					continue;
				if (side)
					serve(w, &ev, rng);
				CHECK(ev.type == DDPS_EV_ESTABLISHED ||
				      ev.type == DDPS_EV_CONNECT_REQUEST);
				up |= ev.type == DDPS_EV_ESTABLISHED ? 1u << side : 0;
			}
		}
		ping(&w->pings[i], 1); /* the responder sends after the initiator */
	}
}

static void world_open(struct world *w, uint64_t seed)
{
	static const char *const wires[] = { "tcp://127.0.0.1:0", "tcp://[::1]:0",
					     "sctp://127.0.0.1:0?backend=usrsctp&encap=0" };
	uint64_t rng = seed;

	memset(w, 0, sizeof *w);
	w->seed = seed;
	for (int i = 0; i < NSLOTS + NPINGS; i++)
		pthread_rwlock_init(&slot_of(w, (uint8_t)i)->lock, NULL);
	for (int i = 0; i < NPINGS; i++)
		pthread_mutex_init(&w->ping_lock[i], NULL);
	pthread_mutex_init(&w->requests, NULL);
	for (int side = 0; side < 2; side++)
		side_open(&w->side[side], &rng);
	CHECK(!ddps_listen(w->side[1].ctx, wires[draw(&rng, 3)], NULL, &w->listener));
	CHECK(ddps_listener_uri(w->listener, w->uri, sizeof w->uri) > 0);
	pings_up(w, &rng);
}

static void world_close(struct world *w)
{
	for (int i = 0; i < NSLOTS + NPINGS; i++) {
		slot_clear(slot_of(w, (uint8_t)i));
		pthread_rwlock_destroy(&slot_of(w, (uint8_t)i)->lock);
	}
	for (int i = 0; i < NPINGS; i++)
		pthread_mutex_destroy(&w->ping_lock[i]);
	pthread_mutex_destroy(&w->requests);
	ddps_ctx_free(w->side[0].ctx);
	ddps_ctx_free(w->side[1].ctx);
}

/* ---- what a thread does ---- */

static struct slot *any_slot(struct worker *t)
{
	return &t->w->slots[draw(&t->rng, NSLOTS)];
}

static void do_connect(struct worker *t)
{
	const uint8_t number = (uint8_t)draw(&t->rng, NSLOTS);
	struct slot *s = slot_of(t->w, number);

	if (pthread_rwlock_trywrlock(&s->lock))
		return;
	if (!s->ep[0]) {
		slot_make(t->w, s, 0, &t->rng);
		dial(t->w, s, number);
	}
	pthread_rwlock_unlock(&s->lock);
}

static void do_free(struct worker *t)
{
	struct slot *s = any_slot(t);

	pthread_rwlock_wrlock(&s->lock);
	slot_clear(s);
	pthread_rwlock_unlock(&s->lock);
}

static void use(struct worker *t, void (*fn)(struct worker *t, struct slot *s, int side))
{
	struct slot *s = any_slot(t);
	const int side = (int)draw(&t->rng, 2);

	pthread_rwlock_rdlock(&s->lock);
	if (s->ep[side])
		fn(t, s, side);
	pthread_rwlock_unlock(&s->lock);
}

static void post(struct worker *t, struct slot *s, int side)
{
	static const enum ddps_op ops[] = { DDPS_OP_SEND, DDPS_OP_WRITE, DDPS_OP_READ };
	struct side *me = &t->w->side[side], *peer = &t->w->side[!side];
	struct ddps_sge sge = { me->buf, draw(&t->rng, 3) ? draw(&t->rng, 256) : BUF_LEN / 2,
				ddps_mr_stag(me->mr) };
	struct ddps_send_wr wr = { .op = ops[draw(&t->rng, 3)],
				   .sge = &sge,
				   .nsge = 1,
				   .stag = ddps_mr_stag(peer->mr),
				   .to = ddps_mr_to(peer->mr) + BUF_LEN / 2 };

	if (wr.op == DDPS_OP_READ) /* it lands where nobody's Write does */
		sge.addr = me->buf + BUF_LEN / 2;
	wr.flags = draw(&t->rng, 4) ? 0 : DDPS_WR_SILENT;
	(void)ddps_post_send(s->ep[side], &wr);
}

static void post_recv(struct worker *t, struct slot *s, int side)
{
	struct side *me = &t->w->side[side];
	struct ddps_sge sge = { me->buf + BUF_LEN / 2, BUF_LEN / 2, ddps_mr_stag(me->mr) };

	(void)ddps_post_recv(s->ep[side], 1, &sge, 1);
}

static void wait_cq(struct worker *t, struct slot *s, int side)
{
	struct ddps_wc wc[4];
	const int n =
		ddps_cq_wait(s->cq[side], wc, 1 + (int)draw(&t->rng, 4), (int)draw(&t->rng, 20));

	CHECK(n > 0 || n == DDPS_E_TIMEDOUT || n == DDPS_E_AGAIN);
}

static void poll_cq(struct worker *t, struct slot *s, int side)
{
	struct ddps_wc wc[4];

	for (uint32_t i = draw(&t->rng, 50); i; i--)
		CHECK(ddps_cq_poll(s->cq[side], wc, 4) >= 0);
}

static void arm_cq(struct worker *t, struct slot *s, int side)
{
	CHECK(!ddps_cq_arm(s->cq[side], draw(&t->rng, 2)));
}

static void end(struct worker *t, struct slot *s, int side)
{
	if (draw(&t->rng, 2))
		(void)ddps_disconnect(s->ep[side]);
	else
		(void)ddps_abort(s->ep[side]);
}

static void stats(struct worker *t, struct slot *s, int side)
{
	struct ddps_ep_stats st = { .struct_size = sizeof st };

	(void)t;
	CHECK(!ddps_ep_stats(s->ep[side], &st));
}

static void do_post(struct worker *t)
{
	use(t, post);
}
static void do_recv(struct worker *t)
{
	use(t, post_recv);
}
static void do_wait_cq(struct worker *t)
{
	use(t, wait_cq);
}
static void do_poll_cq(struct worker *t)
{
	use(t, poll_cq);
}
static void do_arm_cq(struct worker *t)
{
	use(t, arm_cq);
}
static void do_end(struct worker *t)
{
	use(t, end);
}
static void do_stats(struct worker *t)
{
	use(t, stats);
}

static void do_wait_event(struct worker *t)
{
	struct ddps_event ev;
	const int err = ddps_event_wait(t->w->side[0].ctx, &ev, (int)draw(&t->rng, 20));

	CHECK(!err || err == DDPS_E_TIMEDOUT || err == DDPS_E_AGAIN);
}

/* One at a time: a request that has gone is told of to whoever asks next. */
static void do_serve(struct worker *t)
{
	struct ddps_event ev;

	if (pthread_mutex_trylock(&t->w->requests))
		return;
	if (!ddps_event_wait(t->w->side[1].ctx, &ev, (int)draw(&t->rng, 5)))
		serve(t->w, &ev, &t->rng);
	pthread_mutex_unlock(&t->w->requests);
}

static void do_progress(struct worker *t)
{
	CHECK(ddps_progress(t->w->side[draw(&t->rng, 2)].ctx, (int)draw(&t->rng, 5)) >= 0);
}

static void do_signal(struct worker *t)
{
	(void)t;
	kill(getpid(), SIGUSR1); /* one of the threads takes it, none of the library's */
}

static void do_fork(struct worker *t)
{
	struct ddps_event ev;
	int status = -1;
	pid_t pid;

	if (draw(&t->rng, 20))
		return;
	pid = fork();
	if (!pid)
		_exit(ddps_event_wait(t->w->side[0].ctx, &ev, 1000) != DDPS_E_FORKED ||
		      ddps_progress(t->w->side[1].ctx, -1) != DDPS_E_FORKED);
	CHECK(pid > 0);
	while (waitpid(pid, &status, 0) < 0)
		;
	CHECK(!status);
}

static void do_ping(struct worker *t)
{
	const uint32_t i = draw(&t->rng, NPINGS);

	if (pthread_mutex_trylock(&t->w->ping_lock[i]))
		return;
	ping(&t->w->pings[i], (int)draw(&t->rng, 2));
	pthread_mutex_unlock(&t->w->ping_lock[i]);
}

static const struct {
	const char *name;
	void (*fn)(struct worker *t);
	unsigned weight;
} ops[] = {
	{ "connect", do_connect, 6 }, { "free", do_free, 2 },
	{ "post", do_post, 12 },      { "recv", do_recv, 12 },
	{ "wait_cq", do_wait_cq, 8 }, { "poll_cq", do_poll_cq, 6 },
	{ "arm_cq", do_arm_cq, 2 },   { "end", do_end, 2 },
	{ "stats", do_stats, 2 },     { "wait_event", do_wait_event, 6 },
	{ "serve", do_serve, 8 },     { "progress", do_progress, 6 },
	{ "signal", do_signal, 2 },   { "fork", do_fork, 2 },
	{ "ping", do_ping, 12 },
};
#define NOPS (sizeof ops / sizeof *ops)

static void *work(void *arg)
{
	struct worker *t = arg;
	unsigned all = 0;

	for (size_t i = 0; i < NOPS; i++)
		all += ops[i].weight;
	while (!__atomic_load_n(&t->w->stop, __ATOMIC_ACQUIRE)) {
		unsigned at = draw(&t->rng, all);
		size_t i = 0;

		for (; at >= ops[i].weight; i++)
			at -= ops[i].weight;
		__atomic_store_n(&t->what, ops[i].name, __ATOMIC_RELAXED);
		ops[i].fn(t);
		__atomic_add_fetch(&t->calls, 1, __ATOMIC_RELAXED);
	}
	__atomic_store_n(&t->what, NULL, __ATOMIC_RELAXED);
	return NULL;
}

/* ---- rounds ---- */

static const struct timespec step = { .tv_nsec = 20000000 };

/* To be joined soon; one that does not come back from its call is stuck. */
static void await_end(const struct worker *t)
{
	const uint64_t until = now_ms() + STUCK_MS;
	const char *what;

	while ((what = __atomic_load_n(&t->what, __ATOMIC_RELAXED))) {
		if (now_ms() >= until) {
			printf("# a thread does not come back from %s\n", what);
			check(false, "no thread is stuck", __LINE__);
		}
		nanosleep(&step, NULL);
	}
}

static void watch(struct world *w)
{
	const uint64_t until = now_ms() + ROUND_MS;

	while (now_ms() < until)
		nanosleep(&step, NULL);
	__atomic_store_n(&w->stop, true, __ATOMIC_RELEASE);
	for (int i = 0; i < NTHREADS; i++) {
		await_end(&workers[i]);
		pthread_join(workers[i].thread, NULL);
	}
}

static unsigned round_of(uint64_t seed)
{
	static struct world w;
	unsigned calls = 0;

	current_seed = seed;
	world_open(&w, seed);
	for (unsigned i = 0; i < NTHREADS; i++) {
		workers[i] = (struct worker){ .w = &w,
					      .rng = seed * NTHREADS + i + 1,
					      .what = "nothing yet" };
		CHECK(!pthread_create(&workers[i].thread, NULL, work, &workers[i]));
	}
	watch(&w);
	for (int i = 0; i < NTHREADS; i++)
		calls += workers[i].calls;
	world_close(&w);
	return calls;
}

static void nothing(int sig)
{
	(void)sig;
}

int main(int argc, char **argv)
{
	struct sigaction act = { .sa_handler = nothing };
	const uint64_t seed = argc > 1 ? strtoull(argv[1], NULL, 0) : 1;
	const uint64_t seconds = argc > 2 ? strtoull(argv[2], NULL, 0) : 20;
	const uint64_t until = now_ms() + seconds * 1000;
	unsigned long long calls = 0;
	uint64_t s = seed;

	sigaction(SIGUSR1, &act, NULL);
	do
		calls += round_of(s++);
	while (now_ms() < until);
	CHECK(calls > 0);
	printf("ok stress-session: %llu rounds from seed %llu, %llu calls\n",
	       (unsigned long long)(s - seed), (unsigned long long)seed, calls);
	return 0;
}
