/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Two queue pairs that a program connects itself, by number and GID.  They send to each other, and one goes
 * when it has all that it waits for.  As on InfiniBand nobody is informed of that: what it has sent
 * arrives, the other's receives stay where they are, and no channel has an event.
 */
#include "sim/verbs_oob.h"
#include <poll.h>

#define SILENCE (SEC / 2) /* after it has gone */

struct oob_side oob_side[2];

/* What message @n of @s is like. */
uint32_t oob_message_len(const struct oob_side *s, unsigned n)
{
	return 1 + (n * 677 + s->id * 311 + (uint32_t)w.seed % 97) % LONGEST;
}

void oob_make(struct oob_side *s, int cqe)
{
	struct ibv_context *ctx = w.listen->verbs;
	struct ibv_qp_init_attr init = { .qp_type = IBV_QPT_RC,
					 .cap = { RECVS_OOB, RECVS_OOB, 1, 1, 0 },
					 .sq_sig_all = 1 };
	struct ibv_qp_attr attr = { .qp_state = IBV_QPS_INIT, .port_num = 1 };

	*s = (struct oob_side){ .id = (unsigned)(s - oob_side),
				.says = 1 + (unsigned)draw_verbs(RECVS_OOB) };
	s->pd = ibv_alloc_pd(ctx);
	s->channel = ibv_create_comp_channel(ctx);
	init.send_cq = init.recv_cq = s->cq = ibv_create_cq(ctx, cqe, s, s->channel, 0);
	s->qp = ibv_create_qp(s->pd, &init);
	s->mr = ibv_reg_mr(s->pd, s, sizeof *s, IBV_ACCESS_LOCAL_WRITE);
	check(s->qp && s->mr && !ibv_query_gid(ctx, 1, 0, &s->gid) &&
		      !ibv_modify_qp(s->qp, &attr, IBV_QP_STATE | IBV_QP_PORT),
	      "no queue pair of one's own");
	for (unsigned n = 0; n < RECVS_OOB; n++)
		memset(s->out[n], (int)(n * 31 + s->id * 101 + 1), LONGEST);
}

/* @speaks: it does not wait for RTS.  Nor does it ever go there: once there is a session RTR is enough. */
void oob_meet(struct oob_side *s, const struct oob_side *o, bool speaks)
{
	struct ibv_qp_attr attr = { .qp_state = IBV_QPS_RTR,
				    .dest_qp_num = o->qp->qp_num,
				    .max_dest_rd_atomic = 4,
				    .ah_attr = { .is_global = 1, .port_num = 1 } };
	const int rtr = IBV_QP_STATE | IBV_QP_AV | IBV_QP_DEST_QPN | IBV_QP_MAX_DEST_RD_ATOMIC;

	attr.ah_attr.grh.dgid = o->gid;
	check(!ibv_modify_qp(s->qp, &attr, rtr), "to RTR");
	if (speaks) {
		oob_say(s);
		return;
	}
	attr.qp_state = IBV_QPS_RTS;
	check(!ibv_modify_qp(s->qp, &attr, IBV_QP_STATE), "to RTS");
}

void oob_post(struct oob_side *s)
{
	struct ibv_sge sge = { .lkey = s->mr->lkey };
	struct ibv_recv_wr recv = { .sg_list = &sge, .num_sge = 1 }, *bad_recv;

	for (unsigned n = 0; n < RECVS_OOB; n++) {
		sge.addr = (uintptr_t)s->in[n];
		sge.length = LONGEST;
		recv.wr_id = RECVS + n;
		check(!ibv_post_recv(s->qp, &recv, &bad_recv), "a receive is refused");
	}
}

void oob_say(struct oob_side *s)
{
	struct ibv_sge sge = { .lkey = s->mr->lkey };
	struct ibv_send_wr send = { .sg_list = &sge, .num_sge = 1, .opcode = IBV_WR_SEND }, *bad;

	for (unsigned n = 0; n < s->says; n++) {
		sge.addr = (uintptr_t)s->out[n];
		sge.length = oob_message_len(s, n);
		send.wr_id = n;
		check(!ibv_post_send(s->qp, &send, &bad), "a Send is refused");
	}
}

static void seen(struct oob_side *s, const struct ibv_wc *wc)
{
	const struct oob_side *o = &oob_side[!s->id];
	const unsigned n = s->heard;

	if (wc->status) {
		check(s->error, "%s, and nobody has made an error", ibv_wc_status_str(wc->status));
		s->flushed++;
		return;
	}
	if (wc->wr_id < RECVS) {
		check(wc->wr_id == s->sent, "Send %u for %u", (unsigned)wc->wr_id, s->sent);
		s->sent++;
		return;
	}
	check(wc->wr_id == RECVS + n && n < o->says && wc->byte_len == oob_message_len(o, n) &&
		      !memcmp(s->in[n], o->out[n], wc->byte_len),
	      "message %u is altered", n);
	s->heard++;
}

static bool is_verbs_oob_woken(struct oob_side *s)
{
	struct pollfd p = { s->channel->fd, POLLIN, 0 };
	struct ibv_cq *cq;
	void *of;

	if (poll(&p, 1, 0) != 1)
		return false;
	check(!ibv_get_cq_event(s->channel, &cq, &of) && of == s, "the channel has no event");
	ibv_ack_cq_events(s->cq, 1);
	return true;
}

static void look_at_oob_queue(struct oob_side *s)
{
	struct ibv_wc wc;

	if (s->armed && !is_verbs_oob_woken(s))
		return;
	s->armed = true;
	check(!ibv_req_notify_cq(s->cq, 0), "arm the queue");
	while (!w.failed && ibv_poll_cq(s->cq, 1, &wc) == 1)
		seen(s, &wc);
}

static bool has_all(const struct oob_side *s)
{
	return s->sent == s->says && s->heard == oob_side[!s->id].says;
}

static void look_until(uint64_t until, struct oob_side *has)
{
	while (!w.failed && kern.now < until && !(has && has_all(has))) {
		for (unsigned i = 0; i < 2; i++)
			if (oob_side[i].qp)
				look_at_oob_queue(&oob_side[i]);
		let_pass(MS + draw_verbs(4 * kern.delay));
	}
}

static void go(struct oob_side *s)
{
	look_at_oob_queue(s);
	check(!ibv_destroy_qp(s->qp), "destroy the queue pair");
	s->qp = NULL;
	check(!is_verbs_oob_woken(s), "a queue pair that goes is told of");
}

/* It has all, and is informed of nothing more. */
static void in_silence(struct oob_side *s)
{
	const uint64_t until = kern.now + SILENCE;

	while (!w.failed && kern.now < until) {
		check(!is_verbs_oob_woken(s), "a peer that goes is told of");
		let_pass(MS + draw_verbs(4 * kern.delay));
	}
}

void oob_take_down(struct oob_side *s)
{
	check(!s->qp || !ibv_destroy_qp(s->qp), "destroy the queue pair");
	check(!ibv_destroy_cq(s->cq) && !ibv_destroy_comp_channel(s->channel) &&
		      !ibv_dereg_mr(s->mr) && !ibv_dealloc_pd(s->pd),
	      "take it down");
}

void oob_play(void)
{
	struct ibv_qp_attr err = { .qp_state = IBV_QPS_ERR };
	struct oob_side *first = &oob_side[draw_verbs(2)], *other = &oob_side[first == oob_side];
	const bool early = draw_verbs(2);
	const bool in_rtr = sim_chance(&(uint64_t){ w.seed * 11 + 1 }, 0.3);
	bool quiet;

	oob_make(first, 2 * RECVS_OOB);
	if (!w.failed)
		oob_make(other, 2 * RECVS_OOB);
	if (w.failed)
		return;
	oob_post(first);
	oob_post(other);
	oob_meet(first, other, in_rtr);
	if (early && !in_rtr)
		oob_say(first); /* it is kept until there is somebody */
	oob_meet(other, first, false);
	if (!early && !in_rtr)
		oob_say(first);
	oob_say(other);
	look_until(kern.now + PATIENCE, first);
	check(has_all(first), "%u of %u messages, %u of %u Sends", first->heard, other->says,
	      first->sent, first->says);
	if (w.failed)
		return;
	if (draw_verbs(2))
		look_until(kern.now + PATIENCE, other);
	quiet = has_all(other);
	look_at_oob_queue(
		other); /* an event may be left of what the last look has found behind the arming */
	go(first);
	if (quiet)
		in_silence(other);
	look_until(kern.now + PATIENCE, other);
	other->armed = false; /* look, whoever reports what */
	look_until(kern.now + SILENCE, NULL);
	check(has_all(other), "%u of %u messages of one that has gone", other->heard, first->says);
	if (!w.failed && draw_verbs(2)) { /* what the program does itself is reported */
		other->error = true;
		check(!ibv_modify_qp(other->qp, &err, IBV_QP_STATE), "to ERR");
		look_until(kern.now + SILENCE, NULL);
		check(other->flushed == RECVS_OOB - first->says, "%u receives come back",
		      other->flushed);
	}
	oob_take_down(first);
	oob_take_down(other);
}
