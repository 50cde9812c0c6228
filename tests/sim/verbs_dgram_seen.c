/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What the program of datagrams may see.  A message arrives as it was sent, behind the GRH that says
 * from where and to whom; at whom it was sent to, with the right Q_Key; once, or twice if the network
 * doubles it; or not at all, if the network or a receive that is too short has lost it.
 */
#include "sim/verbs_dgram.h"
#include <arpa/inet.h>
#include <poll.h>

/* ---- who has to, and who may ---- */

void node_posted(struct node *d, struct dgram *m)
{
	m->posted = ++dgrams.tick;
	m->done = NEVER;
	m->flushed = d->broken;
	d->broken |= m->fails != IBV_WC_SUCCESS;
	if (m->flushed || m->fails)
		return;
	for (unsigned i = 0; i < NODES; i++) {
		const struct node *o = &dgrams.node[i];

		m->must[i] = !o->ended && m->qkey == o->qkey &&
			     (m->group == NO_GROUP ? m->to == i : node_joined(o, m->group));
	}
}

void node_forget(struct node *d)
{
	for (unsigned i = 0; i < NODES; i++)
		for (unsigned n = 0; n < dgrams.node[i].posted; n++)
			dgrams.node[i].all[n].must[d->id] = false;
	for (unsigned k = 0; k < d->nsq; k++) {
		struct dgram *m = &d->all[d->sq[k]];

		memset(m->must, 0, sizeof m->must);
		m->perhaps = true;
	}
}

/* A group's message is for those who were in it at some time while it may have gone. */
static bool was_in(const struct node *d, const struct dgram *m)
{
	for (unsigned k = 0; k < d->joins[m->group]; k++)
		if (d->in[m->group][k].from <= m->done && d->in[m->group][k].to >= m->posted)
			return true;
	return false;
}

static bool may_have(const struct node *d, const struct dgram *m)
{
	return !m->flushed && !m->fails && m->qkey == d->qkey &&
	       (m->group == NO_GROUP ? m->to == d->id : was_in(d, m));
}

/* ---- receives ---- */

static void check_grh(const uint8_t *grh, const struct dgram *m)
{
	const union ibv_gid *to = m->group == NO_GROUP ? &dgrams.self : &dgrams.gid[m->group];
	const unsigned len = (unsigned)grh[4] << 8 | grh[5];

	check(grh[0] >> 4 == 6 && grh[6] == 0x1b, "a GRH begins with %02x, next header %02x",
	      grh[0], grh[6]);
	/* BTH, DETH, the message and its pad, ICRC (IBA 9.2) */
	check(len == 12 + 8 + ((m->len + 3) & ~3u) + 4, "a GRH with %u octets behind it for %u",
	      len, m->len);
	check(!memcmp(grh + 8, &dgrams.self, 16), "the sender's GID");
	check(!memcmp(grh + 24, to, 16), "the GID that it was sent to");
}

static void heard(struct node *d, struct node *from, unsigned n)
{
	struct dgram *m = &from->all[n];
	unsigned *last = &d->last[from->id][m->group == NO_GROUP ? GROUPS : m->group];

	check(n < from->posted && may_have(d, m), "node %u has message %u of node %u", d->id, n,
	      from->id);
	check(!m->got[d->id] || kern.n.doubled, "message %u twice", n);
	check(!dgrams.ordered || n >= *last, "message %u behind %u", n, *last);
	*last = n;
	m->got[d->id]++;
	w.t->n[T_DGRAMS_GOT]++;
	w.t->n[T_DGRAMS_GROUP] += m->group != NO_GROUP;
}

/* All that is known is from whom, how long, and perhaps its immediate data. */
static void too_short(struct node *d, struct node *from, const struct ibv_wc *wc, uint32_t room)
{
	bool any = false;

	check(wc->byte_len > room, "%u octets do not fit %u", wc->byte_len, room);
	for (unsigned n = 0; n < from->posted; n++)
		any |= from->all[n].len + GRH == wc->byte_len && may_have(d, &from->all[n]);
	check(any, "nobody has sent %u octets", wc->byte_len);
	w.t->n[T_DGRAMS_CUT]++;
	if (w.failed)
		return;
	if (wc->wc_flags & IBV_WC_WITH_IMM && ntohl(wc->imm_data) < DGRAMS)
		heard(d, from, ntohl(wc->imm_data));
	else
		dgrams.cut++;
}

static void answer_later(struct node *d, const struct ibv_wc *wc, uint8_t *at, struct node *from)
{
	struct ibv_wc copy = *wc;

	if (d->reply || draw_verbs(4))
		return;
	tried(d->reply = ibv_create_ah_from_wc(d->pd, &copy, (struct ibv_grh *)(void *)at, 1));
	d->reply_to = from->id;
}

static void message(struct node *d, struct node *from, const struct ibv_wc *wc, uint8_t *at)
{
	const uint32_t len = wc->byte_len - GRH;
	const bool imm = wc->wc_flags & IBV_WC_WITH_IMM;
	const unsigned n = imm ? ntohl(wc->imm_data) : at[GRH];
	const struct dgram *m = &from->all[n % DGRAMS];

	check(wc->byte_len >= GRH && len <= MTU, "%u octets", wc->byte_len);
	check(n < DGRAMS, "there is no message %u", n);
	if (w.failed)
		return;
	check(len == m->len && imm == m->imm, "message %u has %u octets of %u", n, len, m->len);
	heard(d, from, n);
	check_grh(at, m);
	check(w.failed || !memcmp(at + GRH, m->octets, len), "message %u is altered", n);
	answer_later(d, wc, at, from);
}

static struct node *sender(uint32_t qpn)
{
	for (unsigned i = 0; i < NODES; i++)
		if (dgrams.node[i].qp->qp_num == qpn)
			return &dgrams.node[i];
	return NULL;
}

static void note_verbs_dgram_seen_received(struct node *d, const struct ibv_wc *wc)
{
	const unsigned slot = (unsigned)(d->first_recv % DEPTH);
	const uint32_t room = d->room[slot];
	uint32_t behind = room;
	struct node *from;

	check(wc->wr_id == RECVS + d->first_recv && node_recvs(d), "receive %u instead of %u",
	      (unsigned)wc->wr_id, (unsigned)(RECVS + d->first_recv));
	d->first_recv++;
	if (wc->status == IBV_WC_WR_FLUSH_ERR) {
		check(d->ended, "a receive is flushed");
		return;
	}
	from = sender(wc->src_qp);
	check(from, "a message of queue pair %x", wc->src_qp);
	check(wc->status == IBV_WC_SUCCESS || wc->status == IBV_WC_LOC_LEN_ERR, "a receive: %s",
	      ibv_wc_status_str(wc->status));
	check(wc->opcode == IBV_WC_RECV && wc->wc_flags & IBV_WC_GRH, "no message with a GRH");
	if (w.failed)
		return;
	if (wc->status) {
		too_short(d, from, wc, room);
	} else {
		check(wc->byte_len <= room, "%u octets in %u", wc->byte_len, room);
		if (!w.failed)
			message(d, from, wc, d->recv[slot]);
		behind = wc->byte_len;
	}
	for (uint32_t i = behind; i < sizeof *d->recv && !w.failed; i++)
		check(d->recv[slot][i] == UNTOUCHED, "octet %u of a receive of %u", i, behind);
}

/* ---- requests ---- */

/* It is through, by its own completion or that of one behind it. */
static void through(struct dgram *m, enum ibv_wc_status status)
{
	m->done = ++dgrams.tick;
	if (m->perhaps && status == IBV_WC_WR_FLUSH_ERR)
		m->flushed = true;
	check(status == (m->flushed ? IBV_WC_WR_FLUSH_ERR : m->fails), "a message: %s",
	      ibv_wc_status_str(status));
	for (unsigned i = 0; i < NODES; i++)
		check(!status || !m->got[i], "a message that failed has arrived");
}

/* In the order of posting; those that are silent complete only if they fail. */
static void note_verbs_dgram_seen_sent(struct node *d, const struct ibv_wc *wc)
{
	unsigned i = 0;

	while (i < d->nsq && d->sq[i] != wc->wr_id) {
		check(d->all[d->sq[i]].silent, "message %u is passed over", d->sq[i]);
		through(&d->all[d->sq[i++]], IBV_WC_SUCCESS);
	}
	check(i < d->nsq, "message %u was not posted, or completes twice", (unsigned)wc->wr_id);
	if (w.failed)
		return;
	check(!d->all[d->sq[i]].silent || wc->status, "a silent message completes");
	through(&d->all[d->sq[i]], wc->status);
	d->failed |= wc->status && wc->status != IBV_WC_WR_FLUSH_ERR;
	w.t->n[T_DGRAMS_FAILED] += wc->status != IBV_WC_SUCCESS;
	i++;
	memmove(d->sq, d->sq + i, (d->nsq - i) * sizeof *d->sq);
	d->nsq -= i;
}

/* ---- completions ---- */

static bool fetch_dgram_completion(struct node *d)
{
	struct ibv_wc wc[4];
	bool any = false;
	int n;

	while ((n = ibv_poll_cq(d->cq, 1 + (int)draw_verbs(4), wc)) > 0 && !w.failed) {
		any = true;
		for (int i = 0; i < n && !w.failed; i++) {
			check(wc[i].qp_num == d->qp->qp_num, "of another queue pair");
			if (wc[i].wr_id >= RECVS)
				note_verbs_dgram_seen_received(d, &wc[i]);
			else
				note_verbs_dgram_seen_sent(d, &wc[i]);
		}
	}
	check(n >= 0, "poll");
	return any;
}

static bool is_verbs_dgram_seen_woken(struct node *d)
{
	struct pollfd p = { d->channel->fd, POLLIN, 0 };
	struct ibv_cq *cq;
	void *context;

	if (poll(&p, 1, 0) != 1)
		return false;
	check(!ibv_get_cq_event(d->channel, &cq, &context) && cq == d->cq && context == d,
	      "whose event is it?");
	ibv_ack_cq_events(d->cq, 1);
	d->armed = false;
	return true;
}

/* Whoever has armed the queue looks again when it is informed, and once behind each arming. */
bool node_fetch(struct node *d)
{
	bool any;

	if (!dgrams.armed || d->ended || dgrams.settled)
		return fetch_dgram_completion(d);
	if (d->armed && !is_verbs_dgram_seen_woken(d))
		return false;
	any = fetch_dgram_completion(d);
	check(!ibv_req_notify_cq(d->cq, 0), "arm");
	d->armed = true;
	return fetch_dgram_completion(d) || any;
}

bool node_answered(const struct node *d)
{
	for (unsigned i = 0; i < d->nsq; i++)
		if (!d->all[d->sq[i]].silent)
			return false;
	return true;
}

void dgrams_missed(void)
{
	uint64_t missing = 0;

	for (unsigned i = 0; i < NODES; i++)
		for (unsigned n = 0; n < dgrams.node[i].posted; n++)
			for (unsigned k = 0; k < NODES; k++)
				missing += dgrams.node[i].all[n].must[k] &&
					   !dgrams.node[i].all[n].got[k];
	/* In a poor world others find no room on their way. */
	check(w.poor || missing <= kern.n.lost + dgrams.cut,
	      "%u messages are missing, %u were lost", (unsigned)missing,
	      (unsigned)(kern.n.lost + dgrams.cut));
	w.t->n[T_DGRAMS_LOST] += missing;
}

/* ---- dgram life ---- */

/*
 * How queue pairs of datagrams begin and go.  In a poor world each call of that may fail, and leaves
 * nothing behind then.  There the program makes many more of them than it has a use for.
 */

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
