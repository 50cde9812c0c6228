/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Two queue pairs that a program connects itself, by number and GID.  They send to each other, and one goes
 * when it has all that it waits for.  As on InfiniBand nobody is told of that: what it has sent
 * arrives, the other's receives stay where they are, and no channel has an event.
 */
#include "sim/verbs_world.h"
#include <poll.h>

#define RECVS_OOB 8u
#define LONGEST	  2000u
#define MS	  1000000ull
#define SEC	  (1000 * MS)
#define PATIENCE  (60 * SEC)
#define SILENCE	  (SEC / 2) /* after it has gone */

struct side {
	unsigned id;
	struct ibv_pd *pd;
	struct ibv_comp_channel *channel;
	struct ibv_cq *cq;
	struct ibv_qp *qp;
	struct ibv_mr *mr;
	union ibv_gid gid;
	unsigned says, sent, heard, flushed;
	bool armed;
	bool error; /* the program has made it one */
	uint8_t out[RECVS_OOB][LONGEST], in[RECVS_OOB][LONGEST];
};

static struct side sides[2];

/* What message @n of @s is like. */
static uint32_t message_len(const struct side *s, unsigned n)
{
	return 1 + (n * 677 + s->id * 311 + (uint32_t)w.seed % 97) % LONGEST;
}

static void make(struct side *s)
{
	struct ibv_context *ctx = w.listen->verbs;
	struct ibv_qp_init_attr init = { .qp_type = IBV_QPT_RC,
					 .cap = { RECVS_OOB, RECVS_OOB, 1, 1, 0 },
					 .sq_sig_all = 1 };
	struct ibv_qp_attr attr = { .qp_state = IBV_QPS_INIT, .port_num = 1 };

	*s = (struct side){ .id = (unsigned)(s - sides), .says = 1 + (unsigned)rnd(RECVS_OOB) };
	s->pd = ibv_alloc_pd(ctx);
	s->channel = ibv_create_comp_channel(ctx);
	init.send_cq = init.recv_cq = s->cq = ibv_create_cq(ctx, 2 * RECVS_OOB, s, s->channel, 0);
	s->qp = ibv_create_qp(s->pd, &init);
	s->mr = ibv_reg_mr(s->pd, s, sizeof *s, IBV_ACCESS_LOCAL_WRITE);
	check(s->qp && s->mr && !ibv_query_gid(ctx, 1, 0, &s->gid) &&
		      !ibv_modify_qp(s->qp, &attr, IBV_QP_STATE | IBV_QP_PORT),
	      "no queue pair of one's own");
	for (unsigned n = 0; n < RECVS_OOB; n++)
		memset(s->out[n], (int)(n * 31 + s->id * 101 + 1), LONGEST);
}

static void say(struct side *s);

/* @speaks: it does not wait for RTS.  Nor does it ever go there: once there is a session RTR is enough. */
static void meet(struct side *s, const struct side *o, bool speaks)
{
	struct ibv_qp_attr attr = { .qp_state = IBV_QPS_RTR,
				    .dest_qp_num = o->qp->qp_num,
				    .max_dest_rd_atomic = 4,
				    .ah_attr = { .is_global = 1, .port_num = 1 } };
	const int rtr = IBV_QP_STATE | IBV_QP_AV | IBV_QP_DEST_QPN | IBV_QP_MAX_DEST_RD_ATOMIC;

	attr.ah_attr.grh.dgid = o->gid;
	check(!ibv_modify_qp(s->qp, &attr, rtr), "to RTR");
	if (speaks) {
		say(s);
		return;
	}
	attr.qp_state = IBV_QPS_RTS;
	check(!ibv_modify_qp(s->qp, &attr, IBV_QP_STATE), "to RTS");
}

static void post(struct side *s)
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

static void say(struct side *s)
{
	struct ibv_sge sge = { .lkey = s->mr->lkey };
	struct ibv_send_wr send = { .sg_list = &sge, .num_sge = 1, .opcode = IBV_WR_SEND }, *bad;

	for (unsigned n = 0; n < s->says; n++) {
		sge.addr = (uintptr_t)s->out[n];
		sge.length = message_len(s, n);
		send.wr_id = n;
		check(!ibv_post_send(s->qp, &send, &bad), "a Send is refused");
	}
}

static void seen(struct side *s, const struct ibv_wc *wc)
{
	const struct side *o = &sides[!s->id];
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
	check(wc->wr_id == RECVS + n && n < o->says && wc->byte_len == message_len(o, n) &&
		      !memcmp(s->in[n], o->out[n], wc->byte_len),
	      "message %u is altered", n);
	s->heard++;
}

static bool woken(struct side *s)
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

static void look(struct side *s)
{
	struct ibv_wc wc;

	if (s->armed && !woken(s))
		return;
	s->armed = true;
	check(!ibv_req_notify_cq(s->cq, 0), "arm the queue");
	while (!w.failed && ibv_poll_cq(s->cq, 1, &wc) == 1)
		seen(s, &wc);
}

static bool has_all(const struct side *s)
{
	return s->sent == s->says && s->heard == sides[!s->id].says;
}

static void look_until(uint64_t until, struct side *has)
{
	while (!w.failed && kern.now < until && !(has && has_all(has))) {
		for (unsigned i = 0; i < 2; i++)
			if (sides[i].qp)
				look(&sides[i]);
		let_pass(MS + rnd(4 * kern.delay));
	}
}

static void go(struct side *s)
{
	look(s);
	check(!ibv_destroy_qp(s->qp), "destroy the queue pair");
	s->qp = NULL;
	check(!woken(s), "a queue pair that goes is told of");
}

/* It has all, and is told of nothing more. */
static void in_silence(struct side *s)
{
	const uint64_t until = kern.now + SILENCE;

	while (!w.failed && kern.now < until) {
		check(!woken(s), "a peer that goes is told of");
		let_pass(MS + rnd(4 * kern.delay));
	}
}

static void take_down(struct side *s)
{
	check(!s->qp || !ibv_destroy_qp(s->qp), "destroy the queue pair");
	check(!ibv_destroy_cq(s->cq) && !ibv_destroy_comp_channel(s->channel) &&
		      !ibv_dereg_mr(s->mr) && !ibv_dealloc_pd(s->pd),
	      "take it down");
}

void oob_play(void)
{
	struct ibv_qp_attr err = { .qp_state = IBV_QPS_ERR };
	struct side *first = &sides[rnd(2)], *other = &sides[first == sides];
	const bool early = rnd(2);
	const bool in_rtr = sim_chance(&(uint64_t){ w.seed * 11 + 1 }, 0.3);
	bool quiet;

	make(first);
	if (!w.failed)
		make(other);
	if (w.failed)
		return;
	post(first);
	post(other);
	meet(first, other, in_rtr);
	if (early && !in_rtr)
		say(first); /* it is kept until there is somebody */
	meet(other, first, false);
	if (!early && !in_rtr)
		say(first);
	say(other);
	look_until(kern.now + PATIENCE, first);
	check(has_all(first), "%u of %u messages, %u of %u Sends", first->heard, other->says,
	      first->sent, first->says);
	if (w.failed)
		return;
	if (rnd(2))
		look_until(kern.now + PATIENCE, other);
	quiet = has_all(other);
	look(other); /* an event may be left of what the last look has found behind the arming */
	go(first);
	if (quiet)
		in_silence(other);
	look_until(kern.now + PATIENCE, other);
	other->armed = false; /* look, whoever tells of what */
	look_until(kern.now + SILENCE, NULL);
	check(has_all(other), "%u of %u messages of one that has gone", other->heard, first->says);
	if (!w.failed && rnd(2)) { /* what the program does itself is told of */
		other->error = true;
		check(!ibv_modify_qp(other->qp, &err, IBV_QP_STATE), "to ERR");
		look_until(kern.now + SILENCE, NULL);
		check(other->flushed == RECVS_OOB - first->says, "%u receives come back",
		      other->flushed);
	}
	take_down(first);
	take_down(other);
}
