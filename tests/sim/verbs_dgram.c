/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Queue pairs of type UD next to the connections of a world: they send to each other, to themselves, to
 * groups and to whoever has sent to them.  They come into groups and leave them, end and begin anew.
 * Some messages are wrong: their Q_Key, the number that they go to, their length, their memory.
 */
#include "sim/verbs_dgram.h"
#include <arpa/inet.h>
#include <errno.h>

#define ROW    3u
#define SETTLE 2000000u /* ns */

/* ---- life ---- */

static void move(struct node *d, enum ibv_qp_state state)
{
	struct ibv_qp_attr attr = { .qp_state = state };

	dgrams.tick++;
	poor_pause();
	check(!ibv_modify_qp(d->qp, &attr, IBV_QP_STATE), "to state %d", state);
	poor_on();
}

static void end_it(struct node *d)
{
	if (d->ended)
		return;
	node_forget(d);
	d->ended = true;
	move(d, IBV_QPS_ERR);
}

/* All that was posted has come back, but for silent ones that had gone. */
static void begin_verbs_dgram_anew(struct node *d)
{
	check(node_answered(d) && !node_recvs(d), "%u messages, %u receives are not flushed",
	      d->nsq, node_recvs(d));
	for (unsigned i = 0; i < d->nsq; i++)
		d->all[d->sq[i]].done = dgrams.tick;
	d->nsq = 0;
	for (unsigned tries = 0; !w.failed; tries++) {
		move(d, IBV_QPS_RESET);
		if (tries < DGRAM_TRIES && node_bring_up(d))
			return;
		if (tries == DGRAM_TRIES) {
			poor_pause();
			check(node_bring_up(d), "a queue pair of datagrams does not begin anew");
			poor_on();
			return;
		}
	}
}

/* ---- groups ---- */

static void join_verbs_dgram(struct node *d, unsigned g)
{
	check(ibv_detach_mcast(d->qp, &dgrams.gid[g], 0), "out of a group that it is not in");
	if (!tried(!ibv_attach_mcast(d->qp, &dgrams.gid[g], 0)))
		return;
	d->in[g][d->joins[g]].from = ++dgrams.tick;
	d->in[g][d->joins[g]++].to = NEVER;
}

static void leave_group(struct node *d, unsigned g)
{
	check(!ibv_detach_mcast(d->qp, &dgrams.gid[g], 0), "out of a group");
	d->in[g][d->joins[g] - 1].to = ++dgrams.tick;
	for (unsigned i = 0; i < NODES; i++)
		for (unsigned n = 0; n < dgrams.node[i].posted; n++)
			if (dgrams.node[i].all[n].group == g)
				dgrams.node[i].all[n].must[d->id] = false;
}

static void come_and_go_in_verbs_dgram(struct node *d)
{
	for (unsigned g = 0; g < GROUPS && !w.failed; g++) {
		if (node_joined(d, g)) {
			if (!draw_verbs(20))
				leave_group(d, g);
		} else if (d->joins[g] < JOINS && !draw_verbs(4)) {
			join_verbs_dgram(d, g);
		}
	}
}

/* ---- posting ---- */

static void post_verbs_dgram_recvs(struct node *d)
{
	while (node_recvs(d) < d->depth && draw_verbs(8) && !w.failed) {
		const unsigned slot = (unsigned)(d->next_recv % DEPTH);
		uint8_t *at = d->recv[slot];
		struct ibv_sge sge[2] = { { (uintptr_t)at, GRH, d->mr->lkey },
					  { (uintptr_t)at + GRH, MTU, d->mr->lkey } };
		struct ibv_recv_wr wr = { .wr_id = RECVS + d->next_recv,
					  .sg_list = sge,
					  .num_sge = 2 },
				   *bad = NULL;
		int err;

		if (sim_happens(SIM_shallow, node_owner(d), (uint32_t)d->next_recv, 0.05))
			sge[1].length = (uint32_t)sim_like(MTU);
		d->room[slot] = GRH + sge[1].length;
		memset(at, UNTOUCHED, sizeof *d->recv);
		err = ibv_post_recv(d->qp, &wr, &bad);
		check(!err || (err == ENOMEM && w.poor && bad == &wr), "a receive is refused: %s",
		      strerror(err));
		if (err)
			return;
		d->next_recv++;
	}
}

/* For nobody, or one that fails here. */
static void make_wrong(struct node *d, struct dgram *m, struct ibv_send_wr *wr, struct ibv_sge *sge)
{
	if (!sim_happens(SIM_wrong, node_owner(d), d->posted, 0.1))
		return;
	w.t->n[T_DGRAMS_WRONG]++;
	switch (sim_like(4)) {
	case 0:
		m->qkey = wr->wr.ud.remote_qkey = DGRAM_QKEY + 2;
		break;
	case 1: /* what had the port before */
		m->to = NOBODY;
		m->group = NO_GROUP;
		wr->wr.ud.ah = d->ah;
		wr->wr.ud.remote_qpn = d->qp->qp_num ^ 0x10000;
		break;
	case 2:
		m->fails = IBV_WC_LOC_LEN_ERR;
		sge[1].length += MTU + 1 - m->len;
		m->len = MTU + 1;
		break;
	default:
		m->fails = IBV_WC_LOC_PROT_ERR;
		sge[0].lkey = sge[1].lkey = 0;
		sge[1].length += !m->len;
		m->len += !m->len;
		break;
	}
}

static void make_verbs_dgram_address(struct node *d, struct dgram *m, struct ibv_send_wr *wr)
{
	m->to = (unsigned)draw_verbs(NODES);
	m->group = NO_GROUP;
	wr->wr.ud.ah = d->ah;
	if (draw_verbs(3) == 0) {
		m->group = (unsigned)draw_verbs(GROUPS);
		wr->wr.ud.ah = d->group_ah[m->group];
	} else if (d->reply && draw_verbs(2)) {
		m->to = d->reply_to;
		wr->wr.ud.ah = d->reply;
	}
	wr->wr.ud.remote_qpn = m->group == NO_GROUP ? dgrams.node[m->to].qp->qp_num : GROUP_QPN;
	m->qkey = m->group == NO_GROUP ? dgrams.node[m->to].qkey
				       : DGRAM_QKEY + (uint32_t)draw_verbs(2);
	wr->wr.ud.remote_qkey = m->qkey;
	if (m->qkey == d->qkey && draw_verbs(4) == 0) /* its own, by the bit that says so */
		wr->wr.ud.remote_qkey = 0x80000000u | (uint32_t)draw_verbs(1000);
}

/* Its first octet says its number, or its immediate data does. */
static void build_verbs_dgram(struct node *d, struct ibv_send_wr *wr, struct ibv_sge *sge)
{
	struct dgram *m = &d->all[d->posted];
	const unsigned n = d->posted;
	uint32_t cut;

	memset(m, 0, offsetof(struct dgram, octets));
	m->imm = draw_verbs(2);
	m->len = (uint32_t)draw_verbs(draw_verbs(2) ? MTU + 1 : INLINE);
	m->len += !m->len && !m->imm;
	for (unsigned i = 0; i < sizeof m->octets; i++)
		m->octets[i] = i ? (uint8_t)(n * 31 + i * 7 + d->id * 101) : (uint8_t)n;
	/* The last one says that all have gone. */
	m->silent = n + 1 < DGRAMS && sim_happens(SIM_silent, node_owner(d), n, 0.3);
	cut = (uint32_t)draw_verbs(m->len + 1);
	sge[0] = (struct ibv_sge){ (uintptr_t)m->octets, cut, d->mr->lkey };
	sge[1] = (struct ibv_sge){ (uintptr_t)m->octets + cut, m->len - cut, d->mr->lkey };
	*wr = (struct ibv_send_wr){ .wr_id = n,
				    .opcode = m->imm ? IBV_WR_SEND_WITH_IMM : IBV_WR_SEND,
				    .sg_list = sge,
				    .num_sge = 2,
				    .send_flags = m->silent ? 0 : IBV_SEND_SIGNALED,
				    .imm_data = htonl(n) };
	make_verbs_dgram_address(d, m, wr);
	make_wrong(d, m, wr, sge);
	if (!m->fails && m->len <= INLINE && draw_verbs(2))
		wr->send_flags |= IBV_SEND_INLINE;
}

static void post_some(struct node *d)
{
	const unsigned most = sim_happens(SIM_row, node_owner(d), d->posted, 0.4) ? ROW : 1;
	struct ibv_send_wr wr[ROW], *bad = NULL;
	struct ibv_sge sge[ROW][2];
	const unsigned first = d->posted;
	unsigned n = 0, taken;
	int err;

	for (; n < most && d->posted < DGRAMS; n++, d->posted++) {
		build_verbs_dgram(d, &wr[n], sge[n]);
		wr[n].next = NULL;
		if (n)
			wr[n - 1].next = &wr[n];
	}
	d->posted = first;
	if (!n)
		return;
	err = ibv_post_send(d->qp, wr, &bad);
	taken = err ? (unsigned)(bad - wr) : n;
	check(taken < n || !err, "the refused one is not named");
	check(!err || (err == ENOMEM && (d->nsq + n > DEPTH || w.poor)), "post: %s", strerror(err));
	w.t->n[T_REFUSED] += err != 0;
	for (unsigned i = 0; i < taken && !w.failed; i++) {
		d->sq[d->nsq++] = d->posted;
		node_posted(d, &d->all[d->posted++]);
		w.t->n[T_DGRAMS_SENT]++;
	}
}

/* ---- turns ---- */

static void go_on_with_dgrams(struct node *d)
{
	if (d->failed && draw_verbs(3) == 0) { /* out of the send queue's error state */
		move(d, IBV_QPS_RTS);
		d->broken = d->failed = false;
	}
	if (!w.tidy && d->posted < DGRAMS &&
	    sim_happens(SIM_error, node_owner(d), d->turns++, 0.01)) {
		w.t->n[T_ERRORS]++;
		end_it(d);
		return;
	}
	post_verbs_dgram_recvs(d);
	if (!w.over && !dgrams.settled)
		come_and_go_in_verbs_dgram(d);
	if (draw_verbs(3) && d->nsq < 3 * DEPTH / 2 && !w.over)
		post_some(d);
}

static bool turn_verbs_dgram_node(struct node *d)
{
	const unsigned posted = d->posted;
	bool fetched = false;

	if (!d->ended && !dgrams.settled)
		go_on_with_dgrams(d);
	if (d->ended || draw_verbs(3))
		fetched = node_fetch(d);
	if (d->ended && !dgrams.settled && !w.failed)
		begin_verbs_dgram_anew(d);
	return fetched || d->posted != posted;
}

static bool all_gone(void)
{
	for (unsigned i = 0; i < NODES; i++) {
		const struct node *d = &dgrams.node[i];

		if ((d->posted < DGRAMS && !w.over) || !node_answered(d) || d->ended)
			return false;
	}
	return true;
}

/* Whoever is not informed of what has come looks for it: that is not missing, but the report is. */
static void settle_verbs_dgram(void)
{
	dgrams.settled = true;
	for (unsigned i = 0; i < NODES && !w.failed; i++)
		check(!node_fetch(&dgrams.node[i]) || !dgrams.armed, "nobody has told of it");
	if (!w.failed)
		dgrams_missed();
	for (unsigned i = 0; i < NODES && !w.failed; i++)
		end_it(&dgrams.node[i]);
}

bool dgrams_turn(void)
{
	bool moved = false;

	if (!dgrams.on)
		return false;
	dgrams_crowd();
	for (unsigned i = 0; i < NODES && !w.failed; i++)
		moved |= turn_verbs_dgram_node(&dgrams.node[i]);
	if (moved || !all_gone())
		dgrams.news = kern.now;
	/* The latest datagram is nine times as long on its way; then somebody has to look for it. */
	if (!dgrams.settled && kern.now > dgrams.news + 40 * kern.delay + SETTLE)
		settle_verbs_dgram();
	return moved;
}

bool dgrams_over(void)
{
	for (unsigned i = 0; dgrams.on && i < NODES; i++)
		if (!dgrams.node[i].ended || node_recvs(&dgrams.node[i]))
			return false;
	return true;
}
