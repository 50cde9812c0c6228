/* SPDX-License-Identifier: BSD-2-Clause */
/* A program comes back to full sockets.  It takes a few completions with each call, and posts a receive
 * for each: no more is taken from the sockets meanwhile than there are receives for. */
#include "support/two.h"

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
