/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The way in.  Everything that comes is hostile until checked: who sends need not be a queue pair
 * of anybody's.  A datagram is for one queue pair, whose socket it has come to, and counts only with
 * its number and its Q_Key; the number that it is from must have the port that it is from.
 */
#include "verbs/ib/vd_memory.h"
#include "verbs/ib/vd_qp.h"
#include "verbs/ud/vd_ud_in.h"
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>

#define ROUNDS	   4 /* batches of one socket before others have their turn */
#define FIRST_SIZE 16

/* ---- the receive queue ---- */

static size_t stride(const struct vd_ud_qp *u)
{
	return sizeof(struct ud_rqe) + u->qp->init.cap.max_recv_sge * sizeof(struct ddps_sge);
}

static struct ud_rqe *rqe(struct vd_ud_qp *u, uint32_t i)
{
	return (struct ud_rqe *)(void *)(u->rq + (u->rq_head + i) % u->rq_size * stride(u));
}

static bool grow(struct vd_ud_qp *u)
{
	uint32_t max = u->qp->init.cap.max_recv_wr, size = u->rq_size ? u->rq_size * 2 : FIRST_SIZE;
	uint8_t *rq;

	if (size > max)
		size = max;
	rq = calloc(size, stride(u));
	if (!rq)
		return false;
	for (uint32_t i = 0; i < u->rq_count; i++)
		memcpy(rq + i * stride(u), rqe(u, i), stride(u));
	free(u->rq);
	u->rq = rq;
	u->rq_size = size;
	u->rq_head = 0;
	return true;
}

static void pop_ud_receive(struct vd_ud_qp *u)
{
	u->rq_head = (u->rq_head + 1) % u->rq_size;
	u->rq_count--;
}

static void flush_ud_receive(struct vd_ud_qp *u, uint64_t wr_id)
{
	struct ibv_wc wc = { .wr_id = wr_id,
			     .status = IBV_WC_WR_FLUSH_ERR,
			     .opcode = IBV_WC_RECV,
			     .vendor_err = 4,
			     .qp_num = u->qp->qp.qp_base.qp_num };

	ud_complete(u, u->qp->qp.qp_base.recv_cq, &wc, false);
}

void ud_flush_recvs(struct vd_ud_qp *u)
{
	ddps_assert_held(&u->ud->lock);
	while (u->rq_count) {
		flush_ud_receive(u, rqe(u, 0)->wr_id);
		pop_ud_receive(u);
	}
}

static int post_ud_receive(struct vd_ud_qp *u, const struct ibv_recv_wr *wr)
{
	const struct ibv_qp_cap *cap = &u->qp->init.cap;
	struct ud_rqe *e;
	int err;

	if (u->qp->qp.qp_base.srq || ud_state(u) == IBV_QPS_RESET || wr->num_sge < 0 ||
	    (uint32_t)wr->num_sge > cap->max_recv_sge)
		return EINVAL;
	if (ud_state(u) == IBV_QPS_ERR) {
		err = vd_take_recv_place(u->qp);
		if (!err)
			flush_ud_receive(u, wr->wr_id);
		return err;
	}
	if (u->rq_count == u->rq_size && (u->rq_count == cap->max_recv_wr || !grow(u)))
		return ENOMEM;
	e = rqe(u, u->rq_count);
	err = vd_pieces(u->qp->qp.qp_base.context, wr->sg_list, wr->num_sge, cap->max_recv_sge,
			e->sge);
	err = err ? err : vd_take_recv_place(u->qp);
	if (err)
		return err;
	e->wr_id = wr->wr_id;
	e->nsge = (uint32_t)wr->num_sge;
	u->rq_count++;
	ud_watch(u, true);
	return 0;
}

int vd_ud_post_recv(struct vd_qp *qp, struct ibv_recv_wr *wr, struct ibv_recv_wr **bad)
{
	struct vd_ud_qp *u = qp->ud;
	int err = 0;

	ddps_assert_held(&qp->lock);
	if (!vd_mine_quick(u->ud->p)) {
		*bad = wr;
		return EINVAL; /* the parent's, from before a fork */
	}
	ddps_lock(&u->ud->lock);
	for (; wr && !err; wr = wr->next) {
		err = post_ud_receive(u, wr);
		if (err)
			*bad = wr;
	}
	ddps_unlock(&u->ud->lock);
	return err;
}

/* ---- a shared queue in its place ---- */

static struct ddps_srq *get_ud_srq(const struct vd_ud_qp *u)
{
	struct ibv_srq *srq = u->qp->qp.qp_base.srq;

	return srq ? vd_of(srq, struct vd_srq, srq)->d : NULL;
}

/* How many receives messages may have now. */
static uint32_t count_ready_receives(const struct vd_ud_qp *u)
{
	int n;

	if (!get_ud_srq(u))
		return u->rq_count;
	n = ddps_srq_posted(get_ud_srq(u));
	return n > 0 ? (uint32_t)n : 0;
}

/* One receive, for one message.  Return: false if there is none. */
static bool take_recv(struct vd_ud_qp *u, struct ud_taken *t)
{
	struct ud_rqe *e;

	if (get_ud_srq(u))
		return !ddps_take_srq_recv(get_ud_srq(u), &t->wr_id, t->sge, &t->nsge);
	if (!u->rq_count)
		return false;
	e = rqe(u, 0);
	t->wr_id = e->wr_id;
	t->nsge = e->nsge;
	memcpy(t->sge, e->sge, e->nsge * sizeof *e->sge);
	pop_ud_receive(u);
	return true;
}

/* The memory is the queue's domain's, which may be another one than the queue pair's. */
static struct ddps_pd *memory_of(const struct vd_ud_qp *u)
{
	const struct ibv_srq *srq = u->qp->qp.qp_base.srq;

	return srq ? vd_of(srq->pd, struct vd_pd, pd)->d : u->pd;
}

void vd_ud_srq_wake(struct vd_srq *srq)
{
	struct vd_ud *ud = vd_process_of(srq->srq.context)->ud;
	struct vd_ud_qp *u;

	if (vd_is_inherited(srq->srq.context))
		return; /* the parent's, from before a fork */
	ddps_lock(&ud->lock);
	__atomic_store_n(&srq->ud_waits, false, __ATOMIC_SEQ_CST);
	LIST_FOREACH(u, &ud->qps, link)
		if (u->qp->qp.qp_base.srq == &srq->srq)
			ud_watch(u, true);
	ddps_unlock(&ud->lock);
}

/* There is no receive: do not read, until one is posted.  Return: false if one was meanwhile. */
static bool stop_reading(struct vd_ud_qp *u)
{
	struct ibv_srq *srq = u->qp->qp.qp_base.srq;

	ud_watch(u, false);
	if (!srq)
		return true;
	__atomic_store_n(&vd_of(srq, struct vd_srq, srq)->ud_waits, true, __ATOMIC_SEQ_CST);
	if (!count_ready_receives(u))
		return true;
	ud_watch(u, true);
	return false;
}

/* ---- datagrams ---- */

/* The GRH is written over the header, so that the message follows it. */
static void deliver_datagram(struct vd_ud_qp *u, const struct ud_taken *t,
			     const struct ud_packet *pk, const struct ud_header *h)
{
	const size_t len = pk->len - UD_HEADER;
	uint8_t *grh = pk->data + UD_HEADER - UD_GRH;
	struct ibv_wc wc = { .wr_id = t->wr_id,
			     .opcode = IBV_WC_RECV,
			     .byte_len = (uint32_t)(UD_GRH + len),
			     .qp_num = u->qp->qp.qp_base.qp_num,
			     .src_qp = h->src,
			     .wc_flags = IBV_WC_GRH };
	int err;

	ud_put_grh(grh, &pk->from.ip, &pk->to, len);
	err = ddps_sge_scatter(memory_of(u), t->sge, t->nsge, grh, UD_GRH + len);
	if (err == DDPS_E_TOO_LONG) {
		wc.status = IBV_WC_LOC_LEN_ERR;
		wc.vendor_err = 2;
		ud_why_lost(u, VD_WHY_RECV, &pk->from,
			    "the receive is too short for 40 octets of GRH and the message");
	} else if (err) {
		wc.status = IBV_WC_LOC_PROT_ERR;
		wc.vendor_err = 1;
		ud_why_lost(
			u, VD_WHY_RECV, &pk->from,
			"the receive's memory has a wrong key, ends before it, or has no right");
	}
	if (h->flags & UD_F_IMM) {
		wc.wc_flags |= IBV_WC_WITH_IMM;
		wc.imm_data = h->imm;
	}
	/* An address handle made of this needs the interface: see vd_ud_ah.c. */
	if (ud_is_link_local(&pk->from.ip) && pk->from.ifindex <= UINT16_MAX)
		wc.slid = (uint16_t)pk->from.ifindex;
	u->stats.received++;
	u->stats.received_octets += len;
	ud_complete(u, u->qp->qp.qp_base.recv_cq, &wc, h->flags & UD_F_SOLICITED);
	if (wc.status == IBV_WC_LOC_PROT_ERR)
		ud_set_state(u, IBV_QPS_ERR);
}

static void acknowledge_datagram(struct vd_ud_qp *u, const struct ud_packet *pk,
				 const struct ud_header *h)
{
	struct ud_header ack = {
		.type = UD_ACK, .dest = h->src, .src = u->qp->qp.qp_base.qp_num, .seq = h->seq
	};
	struct ud_addr to = pk->from;
	uint8_t octets[UD_HEADER];
	struct iovec iov = { octets, sizeof octets };

	ud_put(&ack, octets);
	to.port = h->ack_port;
	if (!ud_is_link_local(&to.ip))
		to.ifindex = 0;
	ud_send(&u->unicast.sock, &to, &pk->to, 0, &iov, 1);
}

static bool can_ud_receive(const struct vd_ud_qp *u)
{
	const enum ibv_qp_state state = ud_state(u);

	return state == IBV_QPS_RTR || state == IBV_QPS_RTS || state == IBV_QPS_SQD ||
	       state == IBV_QPS_SQE;
}

static void take_ud_datagram(struct vd_ud_qp *u, const struct ud_source *s,
			     const struct ud_packet *pk)
{
	struct vd_ud_stats *st = &u->stats;
	struct ud_header h;
	struct ud_taken t;

	if (!ud_get(pk->data, pk->len, &h) || h.type != UD_DATA || pk->len > UD_HEADER + u->mtu ||
	    h.dest != (s->group ? UD_QPN_MCAST : u->qp->qp.qp_base.qp_num) ||
	    (uint16_t)h.src != pk->from.port) {
		st->malformed++;
		ud_why_lost(u, VD_WHY_MALFORMED, &pk->from,
			    "it is malformed, or for another queue pair or another MTU");
		return;
	}
	if (h.qkey != u->qkey) {
		st->bad_qkey++;
		ud_why_lost(u, VD_WHY_QKEY, &pk->from, "its Q_Key is not the queue pair's");
		return;
	}
	if (h.flags & UD_F_ACK && !s->group && h.ack_port)
		acknowledge_datagram(u, pk, &h);
	if (!can_ud_receive(u) || !take_recv(u, &t)) {
		st->no_recv++;
		ud_why_lost(u, VD_WHY_NO_RECV, &pk->from,
			    can_ud_receive(u) ? "no receive is posted"
					      : "the queue pair is in no state to receive");
		return;
	}
	deliver_datagram(u, &t, pk, &h);
}

void ud_readable(struct vd_ud_qp *u, struct ud_source *s)
{
	struct vd_ud *ud = u->ud;
	struct ud_packet pk[UD_BATCH];
	uint32_t room;
	int n, max;

	ddps_assert_held(&u->ud->lock);
	for (int round = 0; round < ROUNDS; round++) {
		room = can_ud_receive(u) ? count_ready_receives(u) : UD_BATCH;
		/* What finds no receive waits in the socket, unless the program wants to know. */
		if (!room && !ud->p->cfg.no_wait && !ud->p->cfg.strict) {
			if (stop_reading(u))
				return;
			continue;
		}
		max = room && room < UD_BATCH ? (int)room : UD_BATCH;
		for (int i = 0; i < max; i++)
			pk[i].data = ud->scratch[i] + UD_GRH - UD_HEADER;
		n = ud_recv(&s->sock, pk, max, UD_HEADER + UD_MTU + 1);
		for (int i = 0; i < n; i++)
			take_ud_datagram(u, s, &pk[i]);
		if (n < max)
			return;
	}
}

void ud_acks_readable(struct vd_ud *ud)
{
	struct ud_packet pk[UD_BATCH];
	struct ud_header h;
	struct vd_ud_qp *u;
	int n;

	ddps_assert_held(&ud->lock);
	for (int i = 0; i < UD_BATCH; i++)
		pk[i].data = ud->scratch[i];
	n = ud_recv(&ud->acks.sock, pk, UD_BATCH, UD_HEADER + 1);
	for (int i = 0; i < n; i++) {
		if (!ud_get(pk[i].data, pk[i].len, &h) || h.type != UD_ACK) {
			ud->stats.malformed++;
			continue;
		}
		LIST_FOREACH(u, &ud->qps, link)
			if (u->qp->qp.qp_base.qp_num == h.dest)
				break;
		if (!u)
			continue;
		ud_peer_acked(u, &pk[i].from, h.seq);
		if (!STAILQ_EMPTY(&u->sq))
			ud_push(u, ud_now_ms());
	}
}

void ud_watch(struct vd_ud_qp *u, bool on)
{
	struct epoll_event ev = { .events = on ? EPOLLIN : 0, .data.ptr = &u->unicast };
	struct ud_group *g;

	ddps_assert_held(&u->ud->lock);
	if (u->paused == !on || !ud_mine(u->ud))
		return;
	u->paused = !on;
	epoll_ctl(u->ud->epfd, EPOLL_CTL_MOD, u->unicast.sock.fd, &ev);
	LIST_FOREACH(g, &u->groups, link) {
		ev.data.ptr = &g->source;
		epoll_ctl(u->ud->epfd, EPOLL_CTL_MOD, g->source.sock.fd, &ev);
	}
}
