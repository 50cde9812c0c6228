/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Random calls of the session API from four threads, by seed: sessions are made, used, ended and
 * freed while others wait, post and poll; the process forks, signals come.  Nothing is expected of
 * most calls but that they return in time.  Two sessions that nobody else touches carry pings, and a
 * ping that is sent has to wake whoever waits for it: a lost wake-up is a failure, and so is a thread
 * that does not come back from a call.
 *
 * usage: stress-session SEED SECONDS
 */
#include "stress/run.h"
#include <ddpsess/ddpsess.h>
#include <ddpsess/secure.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define NSLOTS	6
#define NPINGS	2
#define DEPTH	32
#define BUF_LEN 65536

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

static struct world {
	struct side side[2];
	struct ddps_listener *listener;
	char uri[128];
	char psk[32]; /* a file; "": the wire is plain */
	bool shm;     /* over TCP: both sides want shared memory */
	struct slot slots[NSLOTS];
	struct slot pings[NPINGS];
	pthread_mutex_t ping_lock[NPINGS];
	pthread_mutex_t requests; /* who serves the passive side's events */
	unsigned accepted;	  /* atomic */
} w;

/* ---- the world ---- */

static void write_session_stress_key(void)
{
	static const char key[] = "stress:00112233445566778899aabbccddeeff\n";
	int fd;

	strcpy(w.psk, "/tmp/stress-session-XXXXXX");
	fd = mkstemp(w.psk);
	CHECK(fd >= 0 && write(fd, key, sizeof key - 1) == sizeof key - 1);
	close(fd);
}

static struct ddps_secure *open_session_stress_keys(void)
{
	struct ddps_secure_attr attr;
	struct ddps_secure *keys = NULL;

	ddps_secure_attr_init(&attr);
	attr.psk = w.psk;
	CHECK(!*w.psk || !ddps_secure_open(&keys, &attr, NULL));
	return keys;
}

static void open_session_stress_side(struct side *s, uint64_t *rng)
{
	struct ddps_ctx_attr attr;

	ddps_ctx_attr_init(&attr);
	attr.secure = open_session_stress_keys();
	attr.thread = stress_draw(rng, 2);
	attr.poll_drives = stress_draw(rng, 2);
	CHECK(!ddps_ctx_new(&s->ctx, &attr));
	ddps_secure_close(attr.secure);
	CHECK(!ddps_pd_new(s->ctx, &s->pd));
	CHECK(!ddps_mr_reg(s->pd, s->buf, sizeof s->buf,
			   DDPS_LOCAL_WRITE | DDPS_REMOTE_WRITE | DDPS_REMOTE_READ, NULL, &s->mr));
}

/* The lock of @s is held for writing. */
static void slot_make(struct slot *s, int side, uint64_t *rng)
{
	struct ddps_ep_attr attr;

	CHECK(!ddps_cq_new(w.side[side].ctx, 4 * DEPTH, &s->cq[side]));
	ddps_ep_attr_init(&attr);
	attr.pd = w.side[side].pd;
	attr.send_cq = attr.recv_cq = s->cq[side];
	attr.sq_depth = attr.rq_depth = DEPTH;
	attr.no_recv = stress_draw(rng, 2) ? DDPS_NO_RECV_STALL : DDPS_NO_RECV_TERMINATE;
	attr.flush_late = stress_draw(rng, 2);
	CHECK(!ddps_ep_new(w.side[side].ctx, &attr, &s->ep[side]));
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

static void dial_session_stress(struct slot *s, uint8_t number)
{
	struct ddps_conn_param param;

	ddps_conn_param_init(&param);
	param.private_data = &number;
	param.private_data_len = 1;
	param.close_ms = 100;
	param.shm = w.shm;
	CHECK(!ddps_connect(s->ep[0], w.uri, &param));
}

static struct slot *slot_of(uint8_t number)
{
	return number < NSLOTS ? &w.slots[number] : &w.pings[number - NSLOTS];
}

/* The passive side: a request is answered with the endpoint of its slot, or refused. */
static void serve_session_stress(const struct ddps_event *ev, uint64_t *rng)
{
	struct ddps_conn_param param;
	struct slot *s;

	if (ev->type != DDPS_EV_CONNECT_REQUEST)
		return;
	ddps_conn_param_init(&param);
	param.shm = w.shm;
	CHECK(ev->private_data_len == 1 && ev->private_data[0] < NSLOTS + NPINGS);
	s = slot_of(ev->private_data[0]);
	if (pthread_rwlock_trywrlock(&s->lock)) {
		ddps_reject(ev->request, NULL, 0);
		return;
	}
	if (!s->ep[1] && s->ep[0]) {
		slot_make(s, 1, rng);
		if (!ddps_accept(ev->request, s->ep[1], &param))
			__atomic_add_fetch(&w.accepted, 1, __ATOMIC_RELAXED);
	} else {
		ddps_reject(ev->request, NULL, 0);
	}
	pthread_rwlock_unlock(&s->lock);
}

/* Nobody else touches this session, so what is sent to @side comes, and wakes it up. */
static void ping_session_stress(struct slot *s, int side)
{
	struct ddps_send_wr wr = { .op = DDPS_OP_SEND, .flags = DDPS_WR_SILENT };
	const uint64_t until = stress_ms() + STRESS_LOST_MS;
	struct ddps_wc wc;
	int n;

	CHECK(!ddps_post_recv(s->ep[side], 1, NULL, 0));
	CHECK(!ddps_post_send(s->ep[!side], &wr));
	do
		n = ddps_cq_wait(s->cq[side], &wc, 1, STRESS_LOST_MS);
	while (n == DDPS_E_AGAIN);
	if (n != 1 || wc.status != DDPS_WC_SUCCESS)
		printf("# ping to side %d: %s\n", side,
		       n == 1 ? ddps_wc_status_name(wc.status) : ddps_strerror(n));
	CHECK(n == 1 && wc.status == DDPS_WC_SUCCESS);
	CHECK(stress_ms() < until);
}

/* The sessions for pings are up before anything else begins. */
static void bring_session_stress_pings_up(uint64_t *rng)
{
	struct ddps_event ev;

	for (int i = 0; i < NPINGS; i++) {
		const uint64_t until = stress_ms() + STRESS_LOST_MS;
		unsigned up = 0;

		slot_make(&w.pings[i], 0, rng);
		dial_session_stress(&w.pings[i], (uint8_t)(NSLOTS + i));
		while (up != 3) {
			CHECK(stress_ms() < until);
			for (int side = 0; side < 2; side++) {
				if (ddps_event_wait(w.side[side].ctx, &ev, 1))
					continue;
				if (side)
					serve_session_stress(&ev, rng);
				CHECK(ev.type == DDPS_EV_ESTABLISHED ||
				      ev.type == DDPS_EV_CONNECT_REQUEST);
				up |= ev.type == DDPS_EV_ESTABLISHED ? 1u << side : 0;
			}
		}
		ping_session_stress(&w.pings[i], 1); /* the responder sends after the initiator */
	}
}

static void open_session_stress_world(uint64_t seed)
{
	static const char *const wires[] = { "tcp://127.0.0.1:0",
					     "tcp://[::1]:0",
					     "sctp://127.0.0.1:0?backend=native&encap=0",
					     "tls://127.0.0.1:0",
					     "sctps://127.0.0.1:0",
					     "shm://@" };
	uint64_t rng = seed;
	const char *wire = wires[stress_draw(&rng, 6)];

	for (int i = 0; i < NSLOTS + NPINGS; i++)
		pthread_rwlock_init(&slot_of((uint8_t)i)->lock, NULL);
	for (int i = 0; i < NPINGS; i++)
		pthread_mutex_init(&w.ping_lock[i], NULL);
	pthread_mutex_init(&w.requests, NULL);
	if (strstr(wire, "s://"))
		write_session_stress_key();
	for (int side = 0; side < 2; side++)
		open_session_stress_side(&w.side[side], &rng);
	w.shm = stress_draw(&rng, 2);
	CHECK(!ddps_listen(w.side[1].ctx, wire, NULL, &w.listener));
	CHECK(ddps_listener_uri(w.listener, w.uri, sizeof w.uri) > 0);
	bring_session_stress_pings_up(&rng);
}

static unsigned close_session_stress_world(void)
{
	for (int i = 0; i < NSLOTS + NPINGS; i++) {
		slot_clear(slot_of((uint8_t)i));
		pthread_rwlock_destroy(&slot_of((uint8_t)i)->lock);
	}
	for (int i = 0; i < NPINGS; i++)
		pthread_mutex_destroy(&w.ping_lock[i]);
	pthread_mutex_destroy(&w.requests);
	ddps_ctx_free(w.side[0].ctx);
	ddps_ctx_free(w.side[1].ctx);
	if (*w.psk)
		unlink(w.psk);
	return w.accepted - NPINGS;
}

/* ---- what a thread does ---- */

static struct slot *any_slot(struct stress_worker *t)
{
	return &w.slots[stress_draw(&t->rng, NSLOTS)];
}

static void do_session_stress_connect(struct stress_worker *t)
{
	const uint8_t number = (uint8_t)stress_draw(&t->rng, NSLOTS);
	struct slot *s = slot_of(number);

	if (pthread_rwlock_trywrlock(&s->lock))
		return;
	if (!s->ep[0]) {
		slot_make(s, 0, &t->rng);
		dial_session_stress(s, number);
	}
	pthread_rwlock_unlock(&s->lock);
}

static void do_session_stress_free(struct stress_worker *t)
{
	struct slot *s = any_slot(t);

	pthread_rwlock_wrlock(&s->lock);
	slot_clear(s);
	pthread_rwlock_unlock(&s->lock);
}

static void use_any_session(struct stress_worker *t,
			    void (*fn)(struct stress_worker *t, struct slot *s, int side))
{
	struct slot *s = any_slot(t);
	const int side = (int)stress_draw(&t->rng, 2);

	pthread_rwlock_rdlock(&s->lock);
	if (s->ep[side])
		fn(t, s, side);
	pthread_rwlock_unlock(&s->lock);
}

static void post_session_stress(struct stress_worker *t, struct slot *s, int side)
{
	static const enum ddps_op ops[] = { DDPS_OP_SEND, DDPS_OP_WRITE, DDPS_OP_READ };
	struct side *me = &w.side[side], *peer = &w.side[!side];
	struct ddps_sge sge = { me->buf,
				stress_draw(&t->rng, 3) ? stress_draw(&t->rng, 256) : BUF_LEN / 2,
				ddps_mr_stag(me->mr) };
	struct ddps_send_wr wr = { .op = ops[stress_draw(&t->rng, 3)],
				   .sge = &sge,
				   .nsge = 1,
				   .stag = ddps_mr_stag(peer->mr),
				   .to = ddps_mr_to(peer->mr) + BUF_LEN / 2 };

	if (wr.op == DDPS_OP_READ) /* it lands where nobody's Write does */
		sge.addr = me->buf + BUF_LEN / 2;
	wr.flags = stress_draw(&t->rng, 4) ? 0 : DDPS_WR_SILENT;
	(void)ddps_post_send(s->ep[side], &wr);
}

static void post_session_stress_recv(struct stress_worker *t, struct slot *s, int side)
{
	struct side *me = &w.side[side];
	struct ddps_sge sge = { me->buf + BUF_LEN / 2, BUF_LEN / 2, ddps_mr_stag(me->mr) };

	(void)t;
	(void)ddps_post_recv(s->ep[side], 1, &sge, 1);
}

static void wait_session_stress_cq(struct stress_worker *t, struct slot *s, int side)
{
	struct ddps_wc wc[4];
	const int n = ddps_cq_wait(s->cq[side], wc, 1 + (int)stress_draw(&t->rng, 4),
				   (int)stress_draw(&t->rng, 20));

	CHECK(n > 0 || n == DDPS_E_TIMEDOUT || n == DDPS_E_AGAIN);
}

static void poll_session_stress_cq(struct stress_worker *t, struct slot *s, int side)
{
	struct ddps_wc wc[4];

	for (uint32_t i = stress_draw(&t->rng, 50); i; i--)
		CHECK(ddps_cq_poll(s->cq[side], wc, 4) >= 0);
}

static void arm_cq(struct stress_worker *t, struct slot *s, int side)
{
	CHECK(!ddps_cq_arm(s->cq[side], stress_draw(&t->rng, 2)));
}

static void end_session_stress(struct stress_worker *t, struct slot *s, int side)
{
	if (stress_draw(&t->rng, 2))
		(void)ddps_disconnect(s->ep[side]);
	else
		(void)ddps_abort(s->ep[side]);
}

static void get_session_stress_stats(struct stress_worker *t, struct slot *s, int side)
{
	struct ddps_ep_stats st = { .struct_size = sizeof st };

	(void)t;
	CHECK(!ddps_ep_stats(s->ep[side], &st));
}

static void do_post(struct stress_worker *t)
{
	use_any_session(t, post_session_stress);
}
static void do_session_stress_recv(struct stress_worker *t)
{
	use_any_session(t, post_session_stress_recv);
}
static void do_wait_cq(struct stress_worker *t)
{
	use_any_session(t, wait_session_stress_cq);
}
static void do_poll_cq(struct stress_worker *t)
{
	use_any_session(t, poll_session_stress_cq);
}
static void do_arm_cq(struct stress_worker *t)
{
	use_any_session(t, arm_cq);
}
static void do_session_stress_end(struct stress_worker *t)
{
	use_any_session(t, end_session_stress);
}
static void do_stats(struct stress_worker *t)
{
	use_any_session(t, get_session_stress_stats);
}

static void do_wait_event(struct stress_worker *t)
{
	struct ddps_event ev;
	const int err = ddps_event_wait(w.side[0].ctx, &ev, (int)stress_draw(&t->rng, 20));

	CHECK(!err || err == DDPS_E_TIMEDOUT || err == DDPS_E_AGAIN);
}

/* One at a time: a request that has gone is reported to whoever asks next. */
static void do_serve(struct stress_worker *t)
{
	struct ddps_event ev;

	if (pthread_mutex_trylock(&w.requests))
		return;
	if (!ddps_event_wait(w.side[1].ctx, &ev, (int)stress_draw(&t->rng, 5)))
		serve_session_stress(&ev, &t->rng);
	pthread_mutex_unlock(&w.requests);
}

static void do_progress(struct stress_worker *t)
{
	CHECK(ddps_progress(w.side[stress_draw(&t->rng, 2)].ctx, (int)stress_draw(&t->rng, 5)) >=
	      0);
}

static int run_in_session_stress_child(void)
{
	struct ddps_event ev;

	return ddps_event_wait(w.side[0].ctx, &ev, 1000) != DDPS_E_FORKED ||
	       ddps_progress(w.side[1].ctx, -1) != DDPS_E_FORKED;
}

static void do_session_stress_ping(struct stress_worker *t)
{
	const uint32_t i = stress_draw(&t->rng, NPINGS);

	if (pthread_mutex_trylock(&w.ping_lock[i]))
		return;
	ping_session_stress(&w.pings[i], (int)stress_draw(&t->rng, 2));
	pthread_mutex_unlock(&w.ping_lock[i]);
}

static const struct stress_op ops[] = {
	{ "connect", do_session_stress_connect, 6 },
	{ "free", do_session_stress_free, 2 },
	{ "post", do_post, 12 },
	{ "recv", do_session_stress_recv, 12 },
	{ "wait_cq", do_wait_cq, 8 },
	{ "poll_cq", do_poll_cq, 6 },
	{ "arm_cq", do_arm_cq, 2 },
	{ "end", do_session_stress_end, 2 },
	{ "stats", do_stats, 2 },
	{ "wait_event", do_wait_event, 6 },
	{ "serve", do_serve, 8 },
	{ "progress", do_progress, 6 },
	{ "signal", stress_signal, 2 },
	{ "fork", stress_fork, 2 },
	{ "ping", do_session_stress_ping, 12 },
};

int main(int argc, char **argv)
{
	static const struct stress test = { "session",
					    ops,
					    sizeof ops / sizeof *ops,
					    open_session_stress_world,
					    close_session_stress_world,
					    run_in_session_stress_child };

	return stress_main(&test, argc, argv);
}
