/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What several threads do with one context, in every order.  Two hosts; sessions from the peer's
 * context to the one that threads share.  Prints "ok" and "not ok" lines.
 * usage: sched [--list | WORLD [DECISIONS]]
 */
#include "sched/sched.h"
#include "sim/kern.h"
#include <ddpsess/ddpsess.h>
#include <stdio.h>
#include <string.h>

#define EPS	     3u
#define LEN	     64u
#define WAIT_MS	     10000
#define SOON	     900000u   /* ns of simulated time, in which all that is sent has arrived */
#define ARRIVE	     10000000u /* everything that is under way does, and nobody looks */
#define LATE	     1300000u  /* what waits for others, one nap, the way */
#define PROMPT	     350000u   /* the way, and a thread that is awake or wakes up */
#define SELDOM_POLLS 9u	       /* EPS and one spin; were there one for each it would be 18 */
#define PREEMPTIONS  2
#define LIMIT	     400000

static struct side {
	struct ddps_ctx *ctx;
	struct ddps_pd *pd;
	struct ddps_cq *cq[EPS];
	struct ddps_ep *ep[EPS];
	struct ddps_mr *mr;
	unsigned up;
} own, peer;

static const char *wrong;
static uint8_t buf[2][EPS][LEN];
static uint64_t begun;

#define want(cond)                                                                                 \
	do {                                                                                       \
		if (!(cond) && !wrong)                                                             \
			wrong = #cond;                                                             \
	} while (0)

/* ---- the two sides ---- */

static void side_new(struct side *s, unsigned host, bool thread, bool gather)
{
	struct ddps_ctx_attr attr;
	struct ddps_ep_attr ep;

	kern.host = host;
	ddps_ctx_attr_init(&attr);
	attr.thread = thread;
	attr.gather = attr.poll_drives = gather;
	*s = (struct side){ .up = 0 };
	want(!ddps_ctx_new(&s->ctx, &attr));
	want(!ddps_pd_new(s->ctx, &s->pd));
	want(!ddps_mr_reg(s->pd, buf[host], sizeof buf[host], DDPS_LOCAL_WRITE, NULL, &s->mr));
	ddps_ep_attr_init(&ep);
	ep.pd = s->pd;
	for (unsigned i = 0; i < EPS; i++) {
		want(!ddps_cq_new(s->ctx, 64, &s->cq[i]));
		ep.send_cq = ep.recv_cq = s->cq[i];
		want(!ddps_ep_new(s->ctx, &ep, &s->ep[i]));
	}
}

static void side_events(struct side *s)
{
	struct ddps_event ev;

	ddps_progress(s->ctx, 0);
	while (ddps_event_get(s->ctx, &ev) == 1) {
		if (ev.type == DDPS_EV_ESTABLISHED)
			s->up++;
		if (ev.type == DDPS_EV_CONNECT_REQUEST)
			want(!ddps_accept(ev.request, s->ep[s->up], NULL));
	}
}

static bool never(void *arg)
{
	(void)arg;
	return false;
}

static void let_pass(uint64_t ns)
{
	kern_block(never, NULL, kern.now + ns);
}

static void connect_all(void)
{
	struct ddps_listener *l;
	char uri[128];

	kern.host = 0;
	want(!ddps_listen(own.ctx, "tcp://10.0.0.1:7000", NULL, &l));
	want(ddps_listener_uri(l, uri, sizeof uri) > 0);
	for (unsigned i = 0; i < EPS; i++) {
		kern.host = 1;
		want(!ddps_connect(peer.ep[i], uri, NULL));
		for (unsigned k = 0; k < 20 && (own.up <= i || peer.up <= i) && !wrong; k++) {
			kern.host = 0;
			side_events(&own);
			kern.host = 1;
			side_events(&peer);
			let_pass(ARRIVE);
		}
	}
	want(own.up == EPS && peer.up == EPS);
	kern.host = 0;
	ddps_listener_free(l);
}

static void send_to(unsigned i)
{
	struct ddps_sge sge = { buf[1][i], LEN, ddps_mr_stag(peer.mr) };
	struct ddps_send_wr wr = { .op = DDPS_OP_SEND, .sge = &sge, .nsge = 1 };

	want(!ddps_post_send(peer.ep[i], &wr));
}

static void make_as(bool thread, bool gather)
{
	wrong = NULL;
	kern_start(1);
	side_new(&own, 0, thread, gather);
	side_new(&peer, 1, false, false);
	connect_all();
	for (unsigned i = 0; i < EPS; i++) {
		struct ddps_sge sge = { buf[0][i], LEN, ddps_mr_stag(own.mr) };

		memset(buf[1][i], (int)i + 1, LEN);
		want(!ddps_post_recv(own.ep[i], i, &sge, 1));
	}
}

static void make(bool thread)
{
	make_as(thread, false);
}

/* What is sent is in the sockets when the threads begin. */
static void messages(unsigned n)
{
	for (unsigned i = 0; i < n; i++)
		send_to(i);
	ddps_progress(peer.ctx, 0);
	let_pass(ARRIVE);
	begun = kern.now;
}

static const char *end(void)
{
	ddps_ctx_free(own.ctx);
	ddps_ctx_free(peer.ctx);
	want(!kern_stop());
	return wrong;
}

/* ---- what threads do ---- */

static void arrives(unsigned i)
{
	struct ddps_wc wc;

	want(ddps_cq_wait(own.cq[i], &wc, 1, WAIT_MS) == 1);
	want(wc.op == DDPS_OP_RECV && wc.wr_id == i && wc.len == LEN);
	want(!memcmp(buf[0][i], buf[1][i], LEN));
	want(kern.now < begun + SOON);
}

static void wait_0(void)
{
	arrives(0);
}

static void wait_1(void)
{
	arrives(1);
}

static void wait_2(void)
{
	arrives(2);
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
	arrives(1);
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

static void come_and_go(void)
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
static void post_two_and_leave(void)
{
	struct ddps_wc wc;

	let_pass(700000);
	post_0();
	post_0();
	let_pass(LATE);
	want(ddps_progress(peer.ctx, 0) >= 0);
	for (unsigned i = 0; i < 2; i++)
		want(ddps_cq_poll(peer.cq[0], &wc, 1) == 1 && wc.op == DDPS_OP_RECV);
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

/* A program that polls, and then watches its memory: nobody says that it does not come back.  The first
 * message may wait for the end of a nap; those behind it do not. */
static void poll_then_watch(void)
{
	struct ddps_wc wc;

	for (unsigned i = 0; i < EPS; i++) {
		ddps_cq_poll(own.cq[2], &wc, 1);
		send_to(i);
		ddps_progress(peer.ctx, 0);
		let_pass(i ? PROMPT : LATE);
		want(!memcmp(buf[0][i], buf[1][i], LEN));
	}
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

#define RUN(...)                                                                                   \
	do {                                                                                       \
		static void (*const body[])(void) = { __VA_ARGS__ };                               \
		sched_run(body, sizeof body / sizeof *body);                                       \
	} while (0)

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
	RUN(wait_0, come_and_go);
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

static const char *poller_watches_memory(void)
{
	make_as(true, true);
	messages(0);
	RUN(poll_then_watch);
	return end();
}

static const char *library_thread_rests(void)
{
	make_as(true, true);
	messages(0);
	RUN(peer_sends_seldom);
	return end();
}

static const char *gathered_requests_leave(void)
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
	RUN(post_two_and_leave, poll_for_a_while, peer_sends_to_others);
	return end();
}

int main(int argc, char **argv)
{
	static const struct sched_world world[] = {
		{ "two wait", two_wait },
		{ "three wait", three_wait },
		{ "wait and progress", wait_and_progress },
		{ "event and completion", event_and_completion },
		{ "event and progress", event_and_progress },
		{ "one after the other", one_after_the_other },
		{ "post here, wait there", post_here_wait_there },
		{ "wait while others go", wait_while_others_go },
		{ "abort beside wait", abort_beside_wait },
		{ "library thread", library_thread },
		{ "library naps", library_naps },
		{ "poller watches memory", poller_watches_memory },
		{ "library thread rests", library_thread_rests },
		{ "gathered requests leave", gathered_requests_leave },
	};
	bool good = true;

	if (argc > 1 && !strcmp(argv[1], "--list")) {
		for (unsigned i = 0; i < sizeof world / sizeof *world; i++)
			puts(world[i].name);
		return 0;
	}
	for (unsigned i = 0; i < sizeof world / sizeof *world; i++) {
		if (argc > 1 && strcmp(argv[1], world[i].name))
			continue;
		good &= argc > 2 ? sched_again(&world[i], argv[2])
				 : sched_explore(&world[i], PREEMPTIONS, LIMIT);
		fflush(stdout);
	}
	return !good;
}
