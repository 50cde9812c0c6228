/* SPDX-License-Identifier: BSD-2-Clause */
/* A program comes back to full sockets.  It takes a few completions with each call, and posts a receive
 * for each: no more is taken from the sockets meanwhile than there are receives for. */
#include "support/two.h"
#include "support/e2e.h"
#include <sched.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

TestSuite(backlog, .timeout = 60);

#define SESSIONS 16u
#define EACH	 16u /* Sends under way in each */
#define MESSAGE	 4096u
#define RECEIVES 3000u /* more than one turn of the loop shows, less than two */
#define TAKEN	 64u
#define WARM	 50000u /* messages, by which TCP's windows have grown */

struct world {
	struct two_side near, far;
	struct ddps_cq *near_cq, *far_cq;
	struct ddps_srq *srq;
	struct ddps_mr *near_mr, *far_mr;
	uint8_t near_mem[MESSAGE], far_mem[MESSAGE]; /* for all of them */
	uint64_t sent, received;
};

static void send_one_backlog_e2e(struct world *w, struct ddps_ep *ep)
{
	struct ddps_sge sge = { w->near_mem, MESSAGE, ddps_mr_stag(w->near_mr) };
	struct ddps_send_wr wr = { .op = DDPS_OP_SEND, .sge = &sge, .nsge = 1 };

	cr_assert_eq(ddps_post_send(ep, &wr), 0);
}

static void receive_one(struct world *w)
{
	struct ddps_sge sge = { w->far_mem, MESSAGE, ddps_mr_stag(w->far_mr) };

	cr_assert_eq(ddps_post_srq_recv(w->srq, 0, &sge, 1), 0);
}

static struct ddps_ep *far_ep(struct world *w)
{
	struct ddps_ep_attr attr;
	struct ddps_ep *ep = NULL;

	ddps_ep_attr_init(&attr);
	attr.pd = w->far.pd;
	attr.send_cq = attr.recv_cq = w->far_cq;
	attr.srq = w->srq;
	attr.srq_share = RECEIVES;
	cr_assert_eq(ddps_ep_new(w->far.ctx, &attr, &ep), 0);
	return ep;
}

static void open_backlog_e2e_world(struct world *w)
{
	*w = (struct world){ .sent = 0 };
	two_open(&w->near, false, false);
	two_open(&w->far, false, false);
	cr_assert_eq(ddps_cq_new(w->near.ctx, SESSIONS * EACH * 2, &w->near_cq), 0);
	cr_assert_eq(ddps_cq_new(w->far.ctx, RECEIVES + 64, &w->far_cq), 0);
	cr_assert_eq(ddps_srq_new(w->far.pd, RECEIVES, 1, NULL, &w->srq), 0);
	cr_assert_eq(ddps_mr_reg(w->near.pd, w->near_mem, MESSAGE, 0, NULL, &w->near_mr), 0);
	cr_assert_eq(
		ddps_mr_reg(w->far.pd, w->far_mem, MESSAGE, DDPS_LOCAL_WRITE, NULL, &w->far_mr), 0);
	for (unsigned i = 0; i < RECEIVES; i++)
		receive_one(w);
}

static void begin_backlog_e2e(struct world *w)
{
	for (unsigned i = 0; i < SESSIONS; i++) {
		struct ddps_ep *ep = two_ep(&w->near, w->near_cq);

		two_connect(&w->near, ep, &w->far, far_ep(w), "tcp://127.0.0.1:0");
		for (unsigned k = 0; k < EACH; k++)
			send_one_backlog_e2e(w, ep);
	}
}

/* Return: whether the sender had anything to do. */
static bool sender_step(struct world *w)
{
	struct ddps_wc wc[TAKEN];
	int n = ddps_cq_poll(w->near_cq, wc, TAKEN);

	cr_assert_geq(n, 0);
	for (int i = 0; i < n; i++) {
		cr_assert_eq(wc[i].status, DDPS_WC_SUCCESS, "after %llu messages: %s",
			     (unsigned long long)w->received, ddps_wc_status_name(wc[i].status));
		w->sent++;
		send_one_backlog_e2e(w, wc[i].ep);
	}
	return n > 0;
}

static bool receiver_step(struct world *w)
{
	struct ddps_wc wc[TAKEN];
	int n = ddps_cq_poll(w->far_cq, wc, TAKEN);

	cr_assert_geq(n, 0);
	for (int i = 0; i < n; i++) {
		cr_assert_eq(wc[i].status, DDPS_WC_SUCCESS, "after %llu messages: %s",
			     (unsigned long long)w->received, ddps_wc_status_name(wc[i].status));
		w->received++;
		receive_one(w);
	}
	return n > 0;
}

/* Until nothing was done for so many steps. */
static void exhaust(struct world *w, bool (*step)(struct world *))
{
	for (unsigned idle = 0; idle < 1000; idle++)
		if (step(w))
			idle = 0;
}

Test(backlog, receives_are_posted_before_more_is_taken)
{
	struct world *w = calloc(1, sizeof(*w));
	uint64_t before;

	cr_assert(w);
	open_backlog_e2e_world(w);
	begin_backlog_e2e(w);
	while (w->received < WARM) {
		sender_step(w);
		receiver_step(w);
	}
	for (unsigned round = 0; round < 4; round++) {
		exhaust(w, sender_step);
		before = w->received;
		exhaust(w, receiver_step);
		cr_expect_gt(w->received - before, RECEIVES, "the sockets held %llu only",
			     (unsigned long long)(w->received - before));
	}
	two_close(&w->near);
	two_close(&w->far);
	free(w);
}

/* ---- whoever polls in vain makes room for whoever has something to do ---- */

#define MANY 32u

static _Thread_local unsigned yields;
static void (*meanwhile)(void);
static bool nobody_else; /* wants to run: as long as it is said, and as far as this program goes */

/* Instead of libc's, for the whole program. */
int sched_yield(void)
{
	yields++;
	if (meanwhile)
		meanwhile();
	return nobody_else ? 0 : (int)syscall(SYS_sched_yield);
}

static unsigned poll_in_vain(struct e2e *e, unsigned n)
{
	struct ddps_wc wc;

	yields = 0;
	while (n--)
		cr_assert_eq(ddps_cq_poll(e->cq, &wc, 1), 0);
	return yields;
}

static struct e2e busy;
static struct ddps_mr *busy_mr;
static uint8_t busy_octet[2];

static void begin_busy(void)
{
	e2e_up(&busy, "tcp://127.0.0.1:0");
	busy_mr = e2e_reg(&busy, busy_octet, 2, DDPS_REMOTE_WRITE);
}

static int post_busy(uint64_t to, uint32_t flags)
{
	struct ddps_sge sge = { busy_octet, 1, ddps_mr_stag(busy_mr) };

	return ddps_post_send(busy.a.ep, &(struct ddps_send_wr){ .op = DDPS_OP_WRITE,
								 .flags = flags,
								 .sge = &sge,
								 .nsge = 1,
								 .stag = ddps_mr_stag(busy_mr),
								 .to = ddps_mr_to(busy_mr) + to });
}

static void complete_busy(void)
{
	cr_assert_eq(post_busy(0, 0), 0);
	e2e_expect_wc(&busy, &busy.a, DDPS_OP_WRITE, DDPS_WC_SUCCESS, 1);
}

/*
 * Whether @n polls behind it are made without a pause.  Where this process itself did not run for a moment that looks
 * as if it had let others run, so it may take some tries.
 */
static bool is_followed(void (*event)(void), unsigned n)
{
	for (unsigned tries = 0; tries < 50; tries++) {
		event();
		if (!poll_in_vain(&busy, n))
			return true;
		poll_in_vain(&busy, 2 * MANY);
	}
	return false;
}

Test(yield, a_thread_that_polls_in_vain_gives_its_processor_away, .timeout = 60)
{
	nobody_else = true;
	begin_busy();
	for (unsigned i = 0; i < 2; i++) {
		cr_expect(is_followed(complete_busy, MANY - 1), "the next message may be near");
		cr_expect_eq(poll_in_vain(&busy, 10), 10, "it is not");
	}
	e2e_close(&busy);
}

static void write_busy(void)
{
	busy_octet[0] = 1;
	busy_octet[1] = 0;
	cr_assert_eq(post_busy(1, DDPS_WR_SILENT), 0);
	while (!*(volatile uint8_t *)&busy_octet[1])
		poll_in_vain(&busy, 1);
}

Test(yield, a_poll_that_moves_something_was_not_in_vain, .timeout = 60)
{
	nobody_else = true;
	begin_busy();
	cr_expect_geq(poll_in_vain(&busy, 2 * MANY), MANY);
	cr_expect(is_followed(write_busy, MANY - 2), "more may be near");
	e2e_close(&busy);
}

/* What others do while the thread does not run: here a request that completes. */
static void others_run(void)
{
	meanwhile = NULL;
	cr_assert_eq(post_busy(0, 0), 0);
	for (unsigned i = 0; i < MANY; i++)
		cr_assert_geq(ddps_progress(busy.ctx, 0), 0);
}

/* A program that gets "nothing" goes on to look for the end of its connection. */
Test(yield, what_came_meanwhile_is_found_by_the_same_poll, .timeout = 60)
{
	struct ddps_wc wc;

	begin_busy();
	poll_in_vain(&busy, 2 * MANY);
	meanwhile = others_run;
	cr_expect_eq(ddps_cq_poll(busy.cq, &wc, 1), 1);
	cr_expect_null(meanwhile, "it has not been polled in vain often enough");
	e2e_close(&busy);
}

/* As others_run, for longer than a call of the system takes. */
static void others_run_long(void)
{
	const struct timespec long_ns = { .tv_nsec = 100000 };

	nanosleep(&long_ns, NULL);
	others_run();
}

/* What comes is found only when others have run: soon they run before the second look.  Once nobody else wants to,
 * the next message may be near again. */
Test(yield, a_peer_without_a_processor_of_its_own_gets_it_sooner, .timeout = 60)
{
	struct ddps_wc wc;
	unsigned polls;

	nobody_else = true;
	begin_busy();
	for (unsigned i = 0; i < 6; i++) {
		meanwhile = others_run_long;
		for (polls = 1; !ddps_cq_poll(busy.cq, &wc, 1); polls++)
			cr_assert_leq(polls, MANY);
		cr_expect_null(meanwhile);
	}
	cr_expect_eq(polls, 2);
	cr_expect_geq(poll_in_vain(&busy, 2 * MANY), MANY);
	cr_expect(is_followed(complete_busy, MANY - 1));
	e2e_close(&busy);
}

/* ---- fair ---- */

/* One session of a context carries all it can, from a queue that never runs empty.  Another one's
 * round trips are answered meanwhile, however much else there is to do. */

TestSuite(fair, .timeout = 60);

#define BULK  65536u
#define DEPTH 16u
#define LONG  16384u /* a message that is not short */
#define PINGS 50u

struct fair_world {
	struct two_side near, far;
	struct ddps_cq *near_cq, *far_cq;
	struct ddps_ep *near_ping, *far_ping, *near_bulk, *far_bulk;
	struct ddps_mr *near_mr, *far_mr;
	uint8_t *near_mem, *far_mem;
	uint64_t writes; /* complete */
	bool answered;
};

static struct ddps_mr *register_fair_e2e(struct two_side *s, uint8_t *mem)
{
	struct ddps_mr *mr = NULL;

	cr_assert_eq(ddps_mr_reg(s->pd, mem, BULK, DDPS_LOCAL_WRITE | DDPS_REMOTE_WRITE, NULL, &mr),
		     0);
	return mr;
}

static void open_fair_e2e_world(struct fair_world *w)
{
	*w = (struct fair_world){ .near_mem = calloc(1, BULK), .far_mem = calloc(1, BULK) };
	two_open(&w->near, false, false);
	two_open(&w->far, false, false);
	w->near_cq = two_cq(&w->near);
	w->far_cq = two_cq(&w->far);
	w->near_mr = register_fair_e2e(&w->near, w->near_mem);
	w->far_mr = register_fair_e2e(&w->far, w->far_mem);
	w->near_ping = two_ep(&w->near, w->near_cq);
	w->far_ping = two_ep(&w->far, w->far_cq);
	w->near_bulk = two_ep(&w->near, w->near_cq);
	w->far_bulk = two_ep(&w->far, w->far_cq);
	two_connect(&w->near, w->near_ping, &w->far, w->far_ping, "tcp://127.0.0.1:0");
	two_connect(&w->near, w->near_bulk, &w->far, w->far_bulk, "tcp://127.0.0.1:0");
}

static void close_fair_e2e_world(struct fair_world *w)
{
	two_close(&w->near);
	two_close(&w->far);
	free(w->near_mem);
	free(w->far_mem);
}

static void write_more(struct fair_world *w)
{
	struct ddps_sge sge = { w->near_mem, BULK, ddps_mr_stag(w->near_mr) };
	struct ddps_send_wr wr = { .op = DDPS_OP_WRITE,
				   .sge = &sge,
				   .nsge = 1,
				   .stag = ddps_mr_stag(w->far_mr),
				   .to = ddps_mr_to(w->far_mr) };

	cr_assert_eq(ddps_post_send(w->near_bulk, &wr), 0);
}

static void send_fair_e2e_message(struct ddps_ep *ep, uint8_t *mem, struct ddps_mr *mr,
				  uint32_t len)
{
	struct ddps_sge sge = { mem, len, ddps_mr_stag(mr) };
	struct ddps_send_wr wr = {
		.op = DDPS_OP_SEND, .flags = DDPS_WR_SILENT, .sge = &sge, .nsge = 1
	};

	cr_assert_eq(ddps_post_send(ep, &wr), 0);
}

static void receive_fair_e2e(struct ddps_ep *ep, uint8_t *mem, struct ddps_mr *mr)
{
	struct ddps_sge sge = { mem, BULK, ddps_mr_stag(mr) };

	cr_assert_eq(ddps_post_recv(ep, 0, &sge, 1), 0);
}

/* One poll of either side: what completes is done again, what comes is answered. */
static void step_fair_e2e(struct fair_world *w)
{
	struct ddps_wc wc;

	if (ddps_cq_poll(w->near_cq, &wc, 1) == 1) {
		cr_assert_eq(wc.status, DDPS_WC_SUCCESS);
		if (wc.op == DDPS_OP_RECV) {
			w->answered = true;
		} else {
			w->writes++;
			write_more(w);
		}
	}
	if (ddps_cq_poll(w->far_cq, &wc, 1) == 1) {
		cr_assert_eq(wc.status, DDPS_WC_SUCCESS);
		send_fair_e2e_message(w->far_ping, w->far_mem, w->far_mr, wc.len);
	}
}

/* Writes that were completed during one round trip. */
static uint64_t make_fair_e2e_round_trip(struct fair_world *w, uint32_t len)
{
	const uint64_t before = w->writes, until = two_ms() + E2E_MS;

	w->answered = false;
	receive_fair_e2e(w->near_ping, w->near_mem, w->near_mr);
	receive_fair_e2e(w->far_ping, w->far_mem, w->far_mr);
	send_fair_e2e_message(w->near_ping, w->near_mem, w->near_mr, len);
	while (!w->answered) {
		step_fair_e2e(w);
		cr_assert(two_ms() < until, "%llu Writes, and no answer",
			  (unsigned long long)(w->writes - before));
	}
	return w->writes - before;
}

/* The most Writes that any round trip saw, once the first ones are over. */
static uint64_t most_writes(struct fair_world *w, uint32_t len)
{
	uint64_t most = 0;

	for (unsigned i = 0; i < PINGS; i++)
		make_fair_e2e_round_trip(w, len);
	for (unsigned i = 0; i < DEPTH; i++)
		write_more(w);
	for (unsigned i = 0; i < 2 * PINGS; i++) {
		uint64_t n = make_fair_e2e_round_trip(w, len);

		most = i >= PINGS && n > most ? n : most;
	}
	cr_assert(w->writes, "the other session stood still");
	return most;
}

/* Short messages make the other one give way: what its queue holds, and a few more. */
Test(fair, short_round_trips_do_not_wait_for_bulk)
{
	struct fair_world w;
	uint64_t most;

	open_fair_e2e_world(&w);
	most = most_writes(&w, 64);
	cr_expect_leq(most, 3 * DEPTH, "%llu Writes", (unsigned long long)most);
	close_fair_e2e_world(&w);
}

/* Others wait longer, but not for ever: 4 MiB on either side, there and back. */
Test(fair, no_session_is_starved_by_a_queue_that_never_runs_empty)
{
	struct fair_world w;
	uint64_t most;

	open_fair_e2e_world(&w);
	most = most_writes(&w, LONG);
	cr_expect_leq(most, 8 * (4u << 20) / BULK, "%llu Writes", (unsigned long long)most);
	close_fair_e2e_world(&w);
}
