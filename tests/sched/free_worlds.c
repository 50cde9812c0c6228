/* SPDX-License-Identifier: BSD-2-Clause */
/* One thread frees what an event hands out, while others fetch events.  [issue 35, 2] */
#include "sched/sides.h"
#include "session/session.h"
#include "sim/kern.h"
#include <pthread.h>
#include <string.h>

#define SHORT_MS 2

static struct {
	struct ddps_listener *l;
	struct ddps_ep *calls, *answers; /* a session more: the peer's, and ours */
	struct ddps_request *request;
	struct ddps_srq *srq;
	struct ddps_cq *cq;
	bool freed;
	unsigned seen, answered;
	pthread_mutex_t lock;
	unsigned users; /* of the third session */
	bool last;	/* its last event was fetched */
} f;

/* ---- what threads do ---- */

static void take_0(void)
{
	struct ddps_wc wc;

	want(ddps_cq_wait(own.cq[0], &wc, 1, WAIT_MS) == 1);
	want(wc.op == DDPS_OP_RECV && !wc.wr_id && wc.len == LEN);
	want(kern.now < begun + SOON);
}

/* All of it is either there or was dropped; after the end nothing comes. */
static void take_2(void)
{
	const bool before = f.freed;
	struct ddps_wc wc;
	int n = ddps_cq_wait(own.cq[2], &wc, 1, SHORT_MS);

	want(n == DDPS_E_TIMEDOUT || (n == 1 && !before && wc.wr_id == 2));
}

static void fetch_of_2(void)
{
	const struct ddps_ep *two = own.ep[2];
	const bool before = f.freed;
	struct ddps_event ev;
	int n = ddps_event_wait(own.ctx, &ev, SHORT_MS);

	want(n == DDPS_E_TIMEDOUT || (!n && !before && ev.ep == two));
	f.seen += !n;
	want(f.seen <= 1);
}

static void free_2(void)
{
	ddps_ep_free(own.ep[2]);
	f.freed = true;
}

static void disconnect_2(void)
{
	want(!ddps_disconnect(own.ep[2]));
}

static void disconnect_and_free_2(void)
{
	disconnect_2();
	free_2();
}

/* As the header has it: to fetch and to count is one step, and the last to leave frees. */
static void handle_and_count(void)
{
	struct ddps_conn_info info;
	struct ddps_event ev;

	while (!f.freed && !wrong) {
		int n;

		pthread_mutex_lock(&f.lock);
		n = f.freed ? DDPS_E_CLOSED : ddps_event_wait(own.ctx, &ev, SHORT_MS);
		f.users += !n;
		f.last |= !n && ev.type == DDPS_EV_CLOSED;
		pthread_mutex_unlock(&f.lock);
		want(kern.now < begun + WAIT_MS * 1000000ull);
		if (n <
		    0) { /* whoever waits for the lock has it before this thread wants it again */
			let_pass(SOON);
			continue;
		}
		want(!ddps_ep_info(ev.ep, &info));
		if (ev.type == DDPS_EV_PEER_CLOSED)
			want(!ddps_disconnect(ev.ep));
		pthread_mutex_lock(&f.lock);
		if (!--f.users && f.last)
			free_2();
		pthread_mutex_unlock(&f.lock);
	}
}

static void fetch_and_reject(void)
{
	const bool before = f.freed;
	struct ddps_event ev;
	int n = ddps_event_wait(own.ctx, &ev, SHORT_MS);

	want(n == DDPS_E_TIMEDOUT || (!n && !before && ev.type == DDPS_EV_CONNECT_REQUEST));
	if (!n)
		want(!ddps_reject(ev.request, NULL, 0));
}

static void free_listener(void)
{
	ddps_listener_free(f.l);
	f.freed = true;
}

static void count_answer(int err)
{
	want(!err || err == DDPS_E_CLOSED);
	f.answered += !err;
}

static void accept_it(void)
{
	count_answer(ddps_accept(f.request, f.answers, NULL));
}

static void reject_it(void)
{
	count_answer(ddps_reject(f.request, NULL, 0));
}

static void free_answering(void)
{
	ddps_ep_free(f.answers);
	f.answers = NULL;
}

static void accept_and_free(void)
{
	accept_it();
	free_answering();
}

static void caller_goes(void)
{
	ddps_ep_free(f.calls);
	f.calls = NULL;
	let_pass(ARRIVE);
}

static void drive_for_a_while(void)
{
	for (unsigned i = 0; i < 3; i++) {
		let_pass(ARRIVE);
		want(ddps_progress(own.ctx, 0) >= 0);
	}
}

static void fetch_limit(void)
{
	const struct ddps_srq *srq = f.srq;
	const bool before = f.freed;
	struct ddps_event ev;
	int n = ddps_event_wait(own.ctx, &ev, SHORT_MS);

	want(n == DDPS_E_TIMEDOUT || (!n && !before && ev.type == DDPS_EV_SRQ_LIMIT));
	want(n || ev.srq == srq);
}

static void free_srq(void)
{
	want(!ddps_srq_free(f.srq));
	f.freed = true;
}

static void wait_on_queue(void)
{
	struct ddps_wc wc;

	want(ddps_cq_wait(f.cq, &wc, 1, SHORT_MS) == DDPS_E_TIMEDOUT);
}

/* ---- worlds ---- */

static void make_free_world(void)
{
	f = (typeof(f)){ .lock = PTHREAD_MUTEX_INITIALIZER };
	make(false);
}

static const char *end_free_world(void)
{
	own.ep[2] = NULL;
	return end();
}

static const char *free_beside_fetch(void)
{
	make_free_world();
	want(!ddps_disconnect(peer.ep[2]));
	messages(1);
	RUN(fetch_of_2, fetch_of_2, free_2);
	return end_free_world();
}

static const char *free_beside_arrivals(void)
{
	make_free_world();
	messages(EPS);
	RUN(take_0, take_2, free_2);
	return end_free_world();
}

static const char *free_in_the_middle_of_an_end(void)
{
	make_free_world();
	messages(EPS);
	RUN(take_0, fetch_of_2, disconnect_and_free_2);
	return end_free_world();
}

static const char *peer_closes_and_is_answered(void)
{
	make_free_world();
	want(!ddps_disconnect(peer.ep[2]));
	messages(0);
	RUN(handle_and_count, handle_and_count);
	want(f.freed);
	return end_free_world();
}

static const char *end_is_handled_by_two(void)
{
	make_free_world();
	want(!ddps_abort(peer.ep[2]));
	messages(0);
	RUN(handle_and_count, handle_and_count);
	want(f.freed);
	return end_free_world();
}

/* Somebody calls, and the request is in the socket. */
static void be_called(void)
{
	struct ddps_ep_attr attr;
	char uri[128];

	make_free_world();
	want(!ddps_listen(own.ctx, "tcp://10.0.0.1:7000", NULL, &f.l));
	want(ddps_listener_uri(f.l, uri, sizeof uri) > 0);
	ddps_ep_attr_init(&attr);
	attr.pd = own.pd;
	attr.send_cq = attr.recv_cq = own.cq[0];
	want(!ddps_ep_new(own.ctx, &attr, &f.answers));
	kern.host = 1;
	attr.pd = peer.pd;
	attr.send_cq = attr.recv_cq = peer.cq[0];
	want(!ddps_ep_new(peer.ctx, &attr, &f.calls));
	want(!ddps_connect(f.calls, uri, NULL));
	for (unsigned i = 0; i < 4; i++) {
		want(ddps_progress(peer.ctx, 0) >= 0);
		let_pass(ARRIVE);
	}
	kern.host = 0;
	begun = kern.now;
}

static void be_called_and_fetch(void)
{
	struct ddps_event ev;

	be_called();
	want(!ddps_event_wait(own.ctx, &ev, WAIT_MS));
	want(ev.type == DDPS_EV_CONNECT_REQUEST);
	f.request = ev.request;
}

static const char *listener_freed_beside_fetch(void)
{
	be_called();
	RUN(fetch_and_reject, free_listener, take_2);
	return end();
}

static const char *request_is_answered_twice(void)
{
	be_called_and_fetch();
	RUN(accept_it, reject_it, free_listener);
	want(f.answered == 1);
	return end();
}

static const char *caller_goes_as_it_is_answered(void)
{
	be_called_and_fetch();
	RUN(caller_goes, drive_for_a_while, accept_and_free);
	return end();
}

static const char *srq_freed_beside_its_event(void)
{
	make_free_world();
	want(!ddps_srq_new(own.pd, 4, 1, NULL, &f.srq));
	want(!ddps_srq_arm(f.srq, 2)); /* it has none */
	begun = kern.now;
	RUN(fetch_limit, free_srq);
	return end();
}

static const char *endpoints_go_beside_a_wait(void)
{
	struct ddps_ep_attr attr;

	make_free_world();
	want(!ddps_cq_new(own.ctx, 4, &f.cq));
	ddps_ep_attr_init(&attr);
	attr.pd = own.pd;
	attr.send_cq = attr.recv_cq = f.cq;
	want(!ddps_ep_new(own.ctx, &attr, &f.answers));
	RUN(wait_on_queue, free_answering);
	want(!ddps_cq_free(f.cq));
	return end();
}

static void listen_once_more(void)
{
	int err = ddps_listen(own.ctx, "tcp://10.0.0.1:7001", NULL, &f.l);

	want(!err || err == DDPS_E_SYSTEM);
}

/* As whoever finds that the program has closed its descriptors. */
static void lose_context(void)
{
	ddps_lock(&own.ctx->lock);
	ddps_ctx_rob(own.ctx);
	ddps_unlock(&own.ctx->lock);
}

static const char *context_is_lost_beside_listen(void)
{
	make_free_world();
	RUN(listen_once_more, lose_context);
	return wrong;
}

const struct sched_world free_worlds[] = {
	{ .name = "free beside fetch", .play = free_beside_fetch },
	{ .name = "free beside arrivals", .play = free_beside_arrivals },
	{ .name = "free in the middle of an end", .play = free_in_the_middle_of_an_end },
	{ .name = "peer closes, two handle it", .play = peer_closes_and_is_answered },
	{ .name = "end is handled by two", .play = end_is_handled_by_two },
	{ .name = "listener freed beside fetch", .play = listener_freed_beside_fetch },
	{ .name = "request is answered twice", .play = request_is_answered_twice },
	{ .name = "caller goes as it is answered", .play = caller_goes_as_it_is_answered },
	{ .name = "shared queue freed beside its event", .play = srq_freed_beside_its_event },
	{ .name = "endpoint freed beside a wait", .play = endpoints_go_beside_a_wait },
	{ .name = "context lost beside a listen",
	  .play = context_is_lost_beside_listen,
	  .apart = true },
};
const unsigned free_nworlds = sizeof free_worlds / sizeof *free_worlds;
