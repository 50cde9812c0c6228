/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * How queue pairs of datagrams begin and go.  In a poor world each call of that may fail, and leaves
 * nothing behind then.  There the program makes many more of them than it has a use for.
 */
#include "sim/verbs_dgram.h"

#define CROWD 40u

struct dgrams dgrams;

static struct {
	struct ibv_pd *pd;
	struct ibv_cq *cq;
	struct ibv_qp *qp[CROWD];
	unsigned n;
	uint64_t rng;
} crowd;

static struct ibv_ah *make_dgram_handle(struct ibv_pd *pd, const union ibv_gid *gid)
{
	struct ibv_ah_attr attr = { .is_global = 1, .port_num = 1, .grh.hop_limit = 1 };

	attr.grh.dgid = *gid;
	return ibv_create_ah(pd, &attr);
}

/* All the way up.  The Q_Key is one of two, so that an old one may be another's. */
bool node_bring_up(struct node *d)
{
	const int init = IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_QKEY;
	struct ibv_qp_attr attr = { .qp_state = IBV_QPS_INIT, .port_num = 1 };

	d->qkey = attr.qkey = DGRAM_QKEY + (uint32_t)draw_verbs(2);
	d->ended = d->broken = d->failed = false;
	if (!tried(!ibv_modify_qp(d->qp, &attr, init)))
		return false;
	attr.qp_state = IBV_QPS_RTR;
	if (!tried(!ibv_modify_qp(d->qp, &attr, IBV_QP_STATE)))
		return false;
	attr.qp_state = IBV_QPS_RTS;
	return tried(!ibv_modify_qp(d->qp, &attr, IBV_QP_STATE | IBV_QP_SQ_PSN));
}

static bool handles(struct node *d)
{
	if (!tried(d->ah = make_dgram_handle(d->pd, &dgrams.self)))
		return false;
	for (unsigned g = 0; g < GROUPS; g++)
		if (!tried(d->group_ah[g] = make_dgram_handle(d->pd, &dgrams.gid[g])))
			return false;
	return true;
}

static bool try_to_make(struct node *d)
{
	struct ibv_context *ctx = w.listen->verbs;
	struct ibv_qp_init_attr attr = { .qp_type = IBV_QPT_UD,
					 .cap = { DEPTH, DEPTH, 2, 2, INLINE } };

	if (!tried(d->channel = ibv_create_comp_channel(ctx)) ||
	    !tried(d->cq = ibv_create_cq(ctx, 4 * DEPTH, d, d->channel, 0)) ||
	    !tried(d->pd = ibv_alloc_pd(ctx)))
		return false;
	attr.send_cq = attr.recv_cq = d->cq;
	return tried(d->qp = ibv_create_qp(d->pd, &attr)) &&
	       tried(d->mr = ibv_reg_mr(d->pd, d, sizeof *d, IBV_ACCESS_LOCAL_WRITE)) &&
	       handles(d) && node_bring_up(d);
}

/* What there is of it. */
static void unmake(struct node *d)
{
	check(!d->qp || !ibv_destroy_qp(d->qp), "destroy the queue pair of datagrams");
	check(!d->mr || !ibv_dereg_mr(d->mr), "deregister");
	check(!d->ah || ibv_dealloc_pd(d->pd), "a domain that has address handles goes");
	for (unsigned g = 0; g < GROUPS; g++)
		check(!d->group_ah[g] || !ibv_destroy_ah(d->group_ah[g]),
		      "destroy an address handle");
	check((!d->ah || !ibv_destroy_ah(d->ah)) && (!d->reply || !ibv_destroy_ah(d->reply)),
	      "destroy an address handle");
	check(!d->pd || !ibv_dealloc_pd(d->pd), "deallocate the protection domain");
	check((!d->cq || !ibv_destroy_cq(d->cq)) &&
		      (!d->channel || !ibv_destroy_comp_channel(d->channel)),
	      "destroy the queue");
	*d = (struct node){ .id = d->id };
}

/* In a poor world it may take some tries, and then it gets what it needs. */
static void make_verbs_dgram_life(struct node *d)
{
	unsigned tries = DGRAM_TRIES;

	while (!w.failed && tries-- && !try_to_make(d))
		unmake(d);
	if (w.failed || d->qp)
		return;
	poor_pause();
	check(try_to_make(d), "no queue pair of datagrams");
	poor_on();
}

/* ---- a crowd ---- */

static bool is_crowded(void)
{
	return dgrams.on && w.poor;
}

static void crowd_begin(void)
{
	crowd.rng = w.seed * 0x9e3779b97f4a7c15u + 5;
	poor_pause();
	crowd.pd = ibv_alloc_pd(w.listen->verbs);
	crowd.cq = ibv_create_cq(w.listen->verbs, 1, NULL, NULL, 0);
	check(crowd.pd && crowd.cq, "no queue for many");
	poor_on();
}

void dgrams_crowd(void)
{
	struct ibv_qp_init_attr attr = { .qp_type = IBV_QPT_UD,
					 .cap = { 1, 1, 1, 1, 0 },
					 .send_cq = crowd.cq,
					 .recv_cq = crowd.cq };
	const unsigned at = (unsigned)sim_below(&crowd.rng, CROWD);

	if (!is_crowded())
		return;
	if (!crowd.qp[at])
		tried(crowd.qp[at] = ibv_create_qp(crowd.pd, &attr));
	else if (sim_below(&crowd.rng, 4) == 0) {
		check(!ibv_destroy_qp(crowd.qp[at]), "destroy one of many");
		crowd.qp[at] = NULL;
	}
}

static void crowd_end(void)
{
	for (unsigned i = 0; i < CROWD; i++)
		check(!crowd.qp[i] || !ibv_destroy_qp(crowd.qp[i]), "destroy one of many");
	check(!ibv_destroy_cq(crowd.cq) && !ibv_dealloc_pd(crowd.pd), "destroy the queue of many");
}

/* ---- all of them ---- */

void dgrams_begin(void)
{
	if (!dgrams.on || w.failed)
		return;
	check(!ibv_query_gid(w.listen->verbs, 1, 0, &dgrams.self), "no GID");
	for (unsigned g = 0; g < GROUPS; g++)
		dgrams.gid[g] =
			(union ibv_gid){ { [10] = 0xff, 0xff, 239, 1, 1, (uint8_t)(g + 1) } };
	for (unsigned i = 0; i < NODES && !w.failed; i++) {
		struct node *d = &dgrams.node[i];

		d->id = i;
		make_verbs_dgram_life(d);
		d->depth = draw_verbs(3) ? DEPTH
					 : 1 + (unsigned)draw_verbs(
						       2); /* few: messages wait in the socket */
	}
	if (is_crowded() && !w.failed)
		crowd_begin();
}

void dgrams_take_down(void)
{
	for (unsigned i = 0; dgrams.on && i < NODES && !w.failed; i++) {
		struct node *d = &dgrams.node[i];

		check(node_answered(d), "%u messages never completed", d->nsq);
		unmake(d);
	}
	if (is_crowded() && !w.failed)
		crowd_end();
}
