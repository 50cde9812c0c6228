/* SPDX-License-Identifier: BSD-2-Clause */
/* One session of a context carries all it can, from a queue that never runs empty.  Another one's
 * round trips are answered meanwhile, however much else there is to do. */
#include "support/two.h"

TestSuite(fair, .timeout = 60);

#define BULK  65536u
#define DEPTH 16u
#define LONG  16384u /* a message that is not short */
#define PINGS 50u

struct world {
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

static void open_fair_e2e_world(struct world *w)
{
	*w = (struct world){ .near_mem = calloc(1, BULK), .far_mem = calloc(1, BULK) };
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

static void close_fair_e2e_world(struct world *w)
{
	two_close(&w->near);
	two_close(&w->far);
	free(w->near_mem);
	free(w->far_mem);
}

static void write_more(struct world *w)
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
static void step_fair_e2e(struct world *w)
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
static uint64_t make_fair_e2e_round_trip(struct world *w, uint32_t len)
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
static uint64_t most_writes(struct world *w, uint32_t len)
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
	struct world w;
	uint64_t most;

	open_fair_e2e_world(&w);
	most = most_writes(&w, 64);
	cr_expect_leq(most, 3 * DEPTH, "%llu Writes", (unsigned long long)most);
	close_fair_e2e_world(&w);
}

/* Others wait longer, but not for ever: 4 MiB on either side, there and back. */
Test(fair, no_session_is_starved_by_a_queue_that_never_runs_empty)
{
	struct world w;
	uint64_t most;

	open_fair_e2e_world(&w);
	most = most_writes(&w, LONG);
	cr_expect_leq(most, 8 * (4u << 20) / BULK, "%llu Writes", (unsigned long long)most);
	close_fair_e2e_world(&w);
}
