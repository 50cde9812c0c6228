/* SPDX-License-Identifier: BSD-2-Clause */
/* What several threads do with one context. */
#include "sched/sides.h"
#include "session/session.h"
#include "sim/kern.h"
#include <string.h>

#define STREAM	     60u	/* messages, in several naps */
#define STREAM_NS    40000u	/* a poll in each moment */
#define LATE	     1300000u	/* what waits for others, one nap, the way */
#define SLOW_NS	     120000u	/* a poll, of somebody who has little of a processor */
#define STOPS	     100000000u /* both sides close */
#define WATCHED	     12u	/* messages, fewer than the naps that are left out then */
#define PROMPT	     350000u	/* the way, and a thread that is awake or wakes up */
#define POLLS	     250u	/* in a nap: somebody who does nothing else */
#define SELDOM_POLLS 9u		/* EPS and one spin; were there one for each it would be 18 */

/* ---- what threads do ---- */

static void take_sched_library_worlds_arrival(unsigned i)
{
	struct ddps_wc wc;

	want(ddps_cq_wait(own.cq[i], &wc, 1, WAIT_MS) == 1);
	want(wc.op == DDPS_OP_RECV && wc.wr_id == i && wc.len == LEN);
	want(!memcmp(buf[0][i], buf[1][i], LEN));
	want(kern.now < begun + SOON);
}

static void wait_0(void)
{
	take_sched_library_worlds_arrival(0);
}

static void wait_1(void)
{
	take_sched_library_worlds_arrival(1);
}

static void wait_2(void)
{
	take_sched_library_worlds_arrival(2);
}

static void progress_1(void)
{
	struct ddps_wc wc;
	int n;

	while (!(n = ddps_cq_poll(own.cq[1], &wc, 1)) && !wrong) {
		want(ddps_progress(own.ctx, WAIT_MS) >= 0);
		want(kern.now < begun + SOON);
	}
	want(n == 1 && wc.wr_id == 1);
}

static void poll_then_wait_1(void)
{
	struct ddps_wc wc;

	if (ddps_cq_poll(own.cq[1], &wc, 1) == 1)
		return;
	let_pass(150000);
	take_sched_library_worlds_arrival(1);
}

/* A program that looks for events, and lets the library work when there is none. */
static void look_for_event_of_2(void)
{
	struct ddps_event ev;
	int n;

	while (!(n = ddps_event_get(own.ctx, &ev)) && !wrong) {
		want(ddps_progress(own.ctx, WAIT_MS) >= 0);
		want(kern.now < begun + SOON);
	}
	want(n == 1 && ev.type == DDPS_EV_PEER_CLOSED && ev.ep == own.ep[2]);
}

static void event_of_2(void)
{
	struct ddps_event ev;

	want(!ddps_event_wait(own.ctx, &ev, WAIT_MS));
	want(ev.type == DDPS_EV_PEER_CLOSED && ev.ep == own.ep[2]);
	want(kern.now < begun + SOON);
}

static void post_0(void)
{
	struct ddps_sge sge = { buf[0][0], LEN, ddps_mr_stag(own.mr) };
	struct ddps_send_wr wr = { .op = DDPS_OP_SEND, .sge = &sge, .nsge = 1, .wr_id = 0 };

	want(!ddps_post_send(own.ep[0], &wr));
}

static void sent_0(void)
{
	struct ddps_wc wc;

	want(ddps_cq_wait(own.cq[0], &wc, 1, WAIT_MS) == 1);
	want(wc.op == DDPS_OP_SEND && !wc.status);
	want(kern.now < begun + SOON);
}

static void come_and_go_in_sched_library_worlds(void)
{
	struct ddps_ep_attr attr;
	struct ddps_cq *cq;
	struct ddps_ep *ep;

	ddps_ep_attr_init(&attr);
	attr.pd = own.pd;
	want(!ddps_cq_new(own.ctx, 4, &cq));
	attr.send_cq = attr.recv_cq = cq;
	want(!ddps_ep_new(own.ctx, &attr, &ep));
	ddps_ep_free(ep);
	want(!ddps_cq_free(cq));
}

static void abort_2(void)
{
	want(!ddps_abort(own.ep[2]));
}

static void closed_2(void)
{
	struct ddps_event ev;

	want(!ddps_event_wait(own.ctx, &ev, WAIT_MS));
	want(ev.type == DDPS_EV_CLOSED && ev.ep == own.ep[2]);
	want(kern.now < begun + SOON);
}

static void peer_sends(void)
{
	for (unsigned i = 0; i < 2; i++) {
		send_to(i);
		ddps_progress(peer.ctx, 0);
		let_pass(200000); /* the first has been served by then */
	}
}

/* Two requests, the second of which waits for others, and the program does something else. */
static void post_two_and_leave_now(void)
{
	struct ddps_wc wc;

	post_0();
	post_0();
	let_pass(LATE);
	want(ddps_progress(peer.ctx, 0) >= 0);
	for (unsigned i = 0; i < 2; i++)
		want(ddps_cq_poll(peer.cq[0], &wc, 1) == 1 && wc.op == DDPS_OP_RECV);
}

static void post_two_and_leave(void)
{
	let_pass(700000);
	post_two_and_leave_now();
}

static void poll_for_a_while(void)
{
	struct ddps_wc wc;

	for (unsigned i = 0; i < 5; i++) {
		want(ddps_cq_poll(own.cq[1], &wc, 1) >= 0);
		let_pass(120000);
	}
}

static void peer_sends_to_others(void)
{
	for (unsigned i = 1; i < EPS; i++) {
		send_to(i);
		ddps_progress(peer.ctx, 0);
		let_pass(50000);
	}
}

/* A program that polls and does nothing else, posts two, and leaves: at the end of the nap that all of it
 * falls into it seems to be there still, and the next nap may begin. */
static void poll_post_two_and_leave(void)
{
	struct ddps_wc wc;

	for (unsigned i = 0; i < 5; i++) {
		want(ddps_cq_poll(own.cq[1], &wc, 1) >= 0);
		let_pass(120000);
	}
	for (unsigned i = 0; i < POLLS; i++)
		want(ddps_cq_poll(own.cq[1], &wc, 1) >= 0);
	post_two_and_leave_now();
}

/* A program that polls, and then watches its memory: nobody says that it does not come back.  One message may
 * wait for the end of a nap; those behind it do not. */
static void poll_then_watch(void)
{
	unsigned late = 0;
	struct ddps_wc wc;

	for (unsigned k = 0; k < WATCHED; k++) {
		const unsigned i = k % EPS;

		memset(buf[1][i], (int)k + 1, LEN);
		ddps_cq_poll(own.cq[2], &wc, 1);
		send_to(i);
		ddps_progress(peer.ctx, 0);
		let_pass(PROMPT);
		if (memcmp(buf[0][i], buf[1][i], LEN)) {
			late++;
			let_pass(LATE - PROMPT);
		}
		want(!memcmp(buf[0][i], buf[1][i], LEN));
	}
	want(late <= 1);
}

/* A stream, and a program that polls all the time.  Something is there at any moment, also when a nap
 * ends; the thread sleeps on no descriptor that all of it would wake it by. */
static void poll_a_stream(void)
{
	struct ddps_sge sge = { buf[0][0], LEN, ddps_mr_stag(own.mr) };
	uint64_t before = kern.polls;
	struct ddps_wc wc;

	for (unsigned i = 0; i < STREAM; i++) {
		send_to(0);
		want(ddps_progress(peer.ctx, 0) >= 0);
		let_pass(STREAM_NS);
		while (ddps_cq_poll(own.cq[0], &wc, 1) == 1)
			want(!ddps_post_recv(own.ep[0], 0, &sge, 1));
		while (ddps_cq_poll(peer.cq[0], &wc, 1) == 1)
			;
	}
	want(kern.polls - before <= 1); /* before the first nap */
}

/* Polls by somebody who holds the lock nearly always, so also whenever the thread wants it. */
static void poll_with_lock(unsigned n, uint64_t each)
{
	for (unsigned i = 0; i < n; i++) {
		ddps_gather_look(own.ctx);
		own.ctx->mover.drives++;
		let_pass(each);
	}
}

/* The thread's naps end then, also if it takes him for somebody who polls no more: nobody waits for him. */
static void poll_all_the_time(void)
{
	uint64_t before;

	poll_a_stream();
	before = sched_others_waited();
	ddps_lock(&own.ctx->lock);
	poll_with_lock(2 * STREAM, STREAM_NS);
	poll_with_lock(2 * STREAM, SLOW_NS);
	want(sched_others_waited() == before);
	ddps_unlock(&own.ctx->lock);
}

/* A thread that leaves out naps waits for him once, and naps again. */
static void poll_beside_arrivals(void)
{
	uint64_t before, slept;

	poll_a_stream();
	before = sched_others_waited();
	ddps_lock(&own.ctx->lock);
	own.ctx->mover.wary = STREAM;
	ddps_unlock(&own.ctx->lock);
	slept = kern.polls;
	let_pass(LATE);
	send_to(0);
	want(ddps_progress(peer.ctx, 0) >= 0);
	ddps_lock(&own.ctx->lock);
	poll_with_lock(2 * STREAM, STREAM_NS);
	want(kern.polls > slept); /* on the loop's descriptor */
	ddps_unlock(&own.ctx->lock);
	let_pass(SLOW_NS);
	want(!own.ctx->mover.wary);
	want(sched_others_waited() - before <= 1);
}

/* One who lets others run: they have his processor for longer than a nap, and what has come lies there.  He comes
 * back, and no nap is left out for that. */
static void poll_and_give_way(void)
{
	struct ddps_wc wc;

	poll_a_stream();
	send_to(0);
	want(ddps_progress(peer.ctx, 0) >= 0);
	let_pass(SLOW_NS);
	own.ctx->vain = DDPS_VAIN_MOST;
	sched_yield_ns = 2 * LATE;
	want(ddps_cq_poll(own.cq[0], &wc, 1) == 1);
	sched_yield_ns = SCHED_YIELD_NS;
	want(!own.ctx->away);
	want(!own.ctx->mover.wary && !own.ctx->mover.caution);
}

/* Whoever relies on the thread does so also where it is between two naps, and waits for the lock of him who polls. */
static void rely_between_naps(void)
{
	struct ddps_sge sge = { buf[0][0], LEN, ddps_mr_stag(own.mr) };
	struct ddps_wc wc;

	poll_a_stream();
	for (unsigned k = 0; k < 2; k++) {
		for (unsigned i = 0; i < 30; i++) {
			while (ddps_cq_poll(own.cq[0], &wc, 1) == 1)
				want(!ddps_post_recv(own.ep[0], 0, &sge, 1));
			if (i % 8 == 2) {
				send_to(0);
				want(ddps_progress(peer.ctx, 0) >= 0);
			}
			let_pass(SLOW_NS);
		}
		own.ctx->mover.wary = own.ctx->mover.caution = 0;
		while (ddps_cq_poll(peer.cq[0], &wc, 1) == 1)
			;
		ddps_lock(&own.ctx->lock);
		poll_with_lock(9, SLOW_NS);
		let_pass(1000000 + k * 100000);
		ddps_ctx_rely_on_thread(own.ctx);
		ddps_unlock(&own.ctx->lock);
		let_pass(100000);
		memset(buf[1][0], (int)k + 1, LEN);
		send_to(0);
		want(ddps_progress(peer.ctx, 0) >= 0);
		let_pass(PROMPT);
		want(!memcmp(buf[0][0], buf[1][0], LEN));
	}
}

/* What is gathered is late, and nobody has looked since the thread slept last: it lets that go, and is there for what
 * comes then. */
static void post_two_and_watch(void)
{
	send_to(2);
	want(ddps_progress(peer.ctx, 0) >= 0);
	let_pass(ARRIVE);
	post_0();
	post_0();
	let_pass(STREAM_NS + SLOW_NS);
	send_to(1);
	want(ddps_progress(peer.ctx, 0) >= 0);
	let_pass(PROMPT);
	want(!memcmp(buf[0][1], buf[1][1], LEN));
}

/* Messages that come one by one.  To look for the next one does not pay, and is left out by and by; a
 * thread that has nothing to do sleeps. */
static void peer_sends_seldom(void)
{
	uint64_t before = kern.polls;

	for (unsigned i = 0; i < EPS; i++) {
		send_to(i);
		ddps_progress(peer.ctx, 0);
		let_pass(ARRIVE);
	}
	want(kern.polls - before <= SELDOM_POLLS);
	before = kern.polls;
	let_pass(10000000000u);
	want(kern.polls - before <= 1); /* for a timer that was stopped meanwhile */
}

/* The context goes while its thread has something to do, or sleeps. */
static void free_context(void)
{
	ddps_ctx_free(own.ctx);
	own.ctx = NULL;
	want(kern.now < begun + STOPS);
}

static void peer_stays(void)
{
	for (unsigned i = 0; i < 20; i++) {
		want(ddps_progress(peer.ctx, 0) >= 0);
		let_pass(ARRIVE);
	}
}

/* ---- worlds ---- */

static const char *two_wait(void)
{
	make(false);
	messages(2);
	RUN(wait_0, wait_1);
	return end();
}

static const char *three_wait(void)
{
	make(false);
	messages(3);
	RUN(wait_0, wait_1, wait_2);
	return end();
}

static const char *wait_and_progress(void)
{
	make(false);
	messages(2);
	RUN(wait_0, progress_1);
	return end();
}

static const char *event_and_completion(void)
{
	make(false);
	want(!ddps_disconnect(peer.ep[2]));
	messages(1);
	RUN(wait_0, event_of_2);
	return end();
}

static const char *event_and_progress(void)
{
	make(false);
	want(!ddps_disconnect(peer.ep[2]));
	messages(1);
	RUN(wait_0, look_for_event_of_2);
	return end();
}

static const char *one_after_the_other(void)
{
	make(false);
	begun = kern.now;
	RUN(wait_0, wait_1, peer_sends);
	return end();
}

static const char *post_here_wait_there(void)
{
	make(false);
	messages(1); /* a responder's first FPDU waits for one of the initiator's */
	wait_0();
	begun = kern.now;
	RUN(sent_0, post_0);
	return end();
}

static const char *wait_while_others_go(void)
{
	make(false);
	messages(1);
	RUN(wait_0, come_and_go_in_sched_library_worlds);
	return end();
}

static const char *abort_beside_wait(void)
{
	make(false);
	messages(1);
	RUN(wait_0, abort_2, closed_2);
	return end();
}

static const char *library_thread(void)
{
	make(true);
	begun = kern.now;
	RUN(wait_0, wait_1, peer_sends);
	return end();
}

static const char *library_naps(void)
{
	make(true);
	begun = kern.now;
	RUN(poll_then_wait_1, peer_sends);
	return end();
}

static const char *library_thread_stops(void)
{
	make(true);
	messages(1);
	RUN(free_context, peer_stays);
	return end();
}

static const char *poller_watches_memory(void)
{
	make_as(true, true);
	for (unsigned k = EPS; k < WATCHED; k++) {
		struct ddps_sge sge = { buf[0][k % EPS], LEN, ddps_mr_stag(own.mr) };

		want(!ddps_post_recv(own.ep[k % EPS], k, &sge, 1));
	}
	messages(0);
	RUN(poll_then_watch);
	return end();
}

static void to_be_streamed(void)
{
	struct ddps_sge sge = { buf[0][0], LEN, 0 };

	make_as(true, true);
	sge.lkey = ddps_mr_stag(own.mr);
	for (unsigned i = 0; i < 4; i++)
		want(!ddps_post_recv(own.ep[0], 0, &sge, 1));
	messages(0);
}

static const char *stream_is_left_alone(void)
{
	to_be_streamed();
	RUN(poll_all_the_time);
	return end();
}

static const char *arrivals_are_left_alone(void)
{
	to_be_streamed();
	RUN(poll_beside_arrivals);
	return end();
}

static const char *between_naps(void)
{
	to_be_streamed();
	RUN(rely_between_naps);
	return end();
}

static const char *who_gives_way_polls(void)
{
	to_be_streamed();
	RUN(poll_and_give_way);
	return end();
}

static const char *library_thread_rests(void)
{
	make_as(true, true);
	messages(0);
	RUN(peer_sends_seldom);
	return end();
}

/* The first session may post, and the peer takes two messages of it. */
static void to_be_gathered(void)
{
	struct ddps_sge sge = { buf[1][0], LEN, 0 };
	struct ddps_wc wc;

	make_as(true, true);
	sge.lkey = ddps_mr_stag(peer.mr);
	for (unsigned i = 0; i < 2; i++)
		want(!ddps_post_recv(peer.ep[0], i, &sge, 1));
	messages(1); /* a responder's first FPDU waits for one of the initiator's */
	wait_0();
	want(ddps_cq_poll(peer.cq[0], &wc, 1) == 1 && wc.op == DDPS_OP_SEND);
	begun = kern.now;
}

static const char *gathered_requests_leave(void)
{
	to_be_gathered();
	RUN(post_two_and_leave, poll_for_a_while, peer_sends_to_others);
	return end();
}

static const char *gathered_requests_leave_a_poller(void)
{
	to_be_gathered();
	RUN(poll_post_two_and_leave, peer_sends_to_others);
	return end();
}

static const char *late_gathering_makes_no_nap(void)
{
	to_be_gathered();
	RUN(post_two_and_watch);
	return end();
}

/* ---- inside TLS and DTLS: what is opened is shown from other places ---- */

#define OVER(play, wire)                                                                           \
	static const char *play##_over_##wire(void)                                                \
	{                                                                                          \
		const char *said;                                                                  \
                                                                                                   \
		side_wire = #wire;                                                                 \
		said = play();                                                                     \
		side_wire = "tcp";                                                                 \
		return said;                                                                       \
	}
#define SECURED(play) OVER(play, tls) OVER(play, sctps)

SECURED(two_wait)
SECURED(wait_and_progress)
SECURED(event_and_completion)
SECURED(post_here_wait_there)
SECURED(abort_beside_wait)
SECURED(library_thread)

const struct sched_world library_worlds[] = {
	{ .name = "two wait", .play = two_wait },
	{ .name = "three wait", .play = three_wait },
	{ .name = "wait and progress", .play = wait_and_progress },
	{ .name = "event and completion", .play = event_and_completion },
	{ .name = "event and progress", .play = event_and_progress },
	{ .name = "one after the other", .play = one_after_the_other },
	{ .name = "post here, wait there", .play = post_here_wait_there },
	{ .name = "wait while others go", .play = wait_while_others_go },
	{ .name = "abort beside wait", .play = abort_beside_wait },
	{ .name = "library thread", .play = library_thread },
	{ .name = "library thread stops", .play = library_thread_stops },
	{ .name = "library naps", .play = library_naps },
	{ .name = "poller watches memory", .play = poller_watches_memory },
	{ .name = "stream is left alone", .play = stream_is_left_alone },
	{ .name = "arrivals are left alone", .play = arrivals_are_left_alone },
	{ .name = "who gives way polls", .play = who_gives_way_polls },
	{ .name = "relied on between naps", .play = between_naps },
	{ .name = "library thread rests", .play = library_thread_rests },
	{ .name = "gathered requests leave", .play = gathered_requests_leave },
	{ .name = "gathered requests leave a poller", .play = gathered_requests_leave_a_poller },
	{ .name = "late gathering makes no nap", .play = late_gathering_makes_no_nap },
	{ .name = "two wait, tls", .play = two_wait_over_tls },
	{ .name = "two wait, sctps", .play = two_wait_over_sctps },
	{ .name = "wait and progress, tls", .play = wait_and_progress_over_tls },
	{ .name = "wait and progress, sctps", .play = wait_and_progress_over_sctps },
	{ .name = "event and completion, tls", .play = event_and_completion_over_tls },
	{ .name = "event and completion, sctps", .play = event_and_completion_over_sctps },
	{ .name = "post here, wait there, tls", .play = post_here_wait_there_over_tls },
	{ .name = "post here, wait there, sctps", .play = post_here_wait_there_over_sctps },
	{ .name = "abort beside wait, tls", .play = abort_beside_wait_over_tls },
	{ .name = "abort beside wait, sctps", .play = abort_beside_wait_over_sctps },
	{ .name = "library thread, tls", .play = library_thread_over_tls },
	{ .name = "library thread, sctps", .play = library_thread_over_sctps },
};
const unsigned library_nworlds = sizeof library_worlds / sizeof *library_worlds;
