/* SPDX-License-Identifier: BSD-2-Clause */
/* Work requests: one after the other, so that a rule can be about each. */
#include "edge/ed.h"
#include "verbs/ib/vd_flush.h"
#include "verbs/vd_strict.h"
#include <errno.h>
#include <stdlib.h>
#include <string.h>

/* As its completion will name it. */
static int get_wr_opcode(const struct ibv_send_wr *wr)
{
	switch ((int)wr->opcode) {
	case VD_BUILT_FLUSH:
		return VD_WC_FLUSH;
	case VD_WR_ATOMIC_WRITE:
	case VD_BUILT_ATOMIC_WRITE:
		return VD_WC_ATOMIC_WRITE;
	case IBV_WR_RDMA_WRITE:
	case IBV_WR_RDMA_WRITE_WITH_IMM:
		return IBV_WC_RDMA_WRITE;
	case IBV_WR_RDMA_READ:
		return IBV_WC_RDMA_READ;
	case IBV_WR_ATOMIC_CMP_AND_SWP:
		return IBV_WC_COMP_SWAP;
	case IBV_WR_ATOMIC_FETCH_AND_ADD:
		return IBV_WC_FETCH_ADD;
	case IBV_WR_BIND_MW:
		return IBV_WC_BIND_MW;
	case IBV_WR_LOCAL_INV:
		return IBV_WC_LOCAL_INV;
	default:
		return IBV_WC_SEND;
	}
}

static size_t sum_sge_length(const struct ibv_sge *sge, int n)
{
	size_t len = 0;

	for (int i = 0; i < n; i++)
		len += sge[i].length;
	return len;
}

/* Whether the pieces' addresses are the process's own: those of a region placed elsewhere are not. */
static bool are_pointers(struct vd_process *p, const struct ibv_send_wr *wr)
{
	bool all = true;

	if (wr->send_flags & IBV_SEND_INLINE)
		return true;
	ddps_lock(&p->lock);
	for (int i = 0; i < wr->num_sge && all; i++) {
		const struct ibv_sge *s = &wr->sg_list[i];
		const struct vd_mr *mr;

		LIST_FOREACH(mr, &p->regions, link)
			if (mr->mr.lkey == s->lkey &&
			    s->addr - (uintptr_t)mr->mr.addr <= mr->mr.length &&
			    s->length <= mr->mr.length - (s->addr - (uintptr_t)mr->mr.addr))
				break;
		all = mr;
	}
	ddps_unlock(&p->lock);
	return all;
}

/*
 * The same request with one bit of its payload changed, from memory of its own, which stays as long
 * as the queue pair does: unsignalled requests do not say when they are done.
 */
static void corrupt(struct ed_qp *q, struct ibv_send_wr *wr, struct ibv_sge *sge)
{
	struct vd_process *p = vd_of(q->qp->context, struct vd_context, v.context)->p;
	size_t len = sum_sge_length(wr->sg_list, wr->num_sge), at = 0;
	struct ed_copy *c;
	uint64_t bit;

	if (get_wr_opcode(wr) > IBV_WC_RDMA_WRITE || !len || !are_pointers(p, wr))
		return;
	c = malloc(sizeof *c + len);
	if (!c)
		return;
	for (int i = 0; i < wr->num_sge; i++) {
		memcpy(c->octets + at, (const void *)(uintptr_t)wr->sg_list[i].addr,
		       wr->sg_list[i].length);
		at += wr->sg_list[i].length;
	}
	bit = vf_draw(ed.rules.seed, q->number, len, q->bytes) % (len * 8);
	c->octets[bit / 8] ^= (uint8_t)(1 << bit % 8);
	c->mr = vdi_ibv_reg_mr(q->qp->pd, c->octets, len, 0);
	if (!c->mr) {
		free(c);
		return;
	}
	*sge = (struct ibv_sge){ (uintptr_t)c->octets, (uint32_t)len, c->mr->lkey };
	wr->sg_list = sge;
	wr->num_sge = 1;
	ddps_lock(&ed.lock);
	SLIST_INSERT_HEAD(&q->copies, c, link);
	ddps_unlock(&ed.lock);
}

bool ed_is_told(const struct ed_qp *q, const struct ibv_send_wr *wr)
{
	return wr->send_flags & IBV_SEND_SIGNALED ||
	       vd_of(q->qp, struct vd_qp, qp.qp_base)->init.sq_sig_all;
}

/* Return: 0, errno, or ED_DONE: nobody shall learn of it any more. */
static int before_send(struct ed_qp *q, struct ibv_send_wr *wr, struct ibv_sge *sge)
{
	const struct ed_subject s = { .qp = q, .opcode = get_wr_opcode(wr) };
	const struct vf_rule *rule;
	int err;

	if (ed_is_removed())
		return EIO;
	ed_moved(q, sum_sge_length(wr->sg_list, wr->num_sge));
	rule = ed_ask(VF_ibv_post_send, &s);
	if (rule && rule->what == VF_CORRUPT)
		corrupt(q, wr, sge);
	err = ed_apply(rule, &s);
	return err ? err : ed_is_mute(q) ? ED_DONE : 0;
}

/* Return: ENOMEM. */
static int refuse_full_queue(const struct ed_qp *q)
{
	return ed.strict ? vd_strict_refuse(
				   VD_STRICT_QUEUE_FULL, ENOMEM,
				   "queue pair %u: its send queue has %u places, and all are "
				   "taken until the program fetches a completion",
				   q->number, q->depth.size)
			 : ENOMEM;
}

int ed_post_send(struct ibv_qp *qp, struct ibv_send_wr *wr, struct ibv_send_wr **bad)
{
	struct ed_qp *q = ed_qp_of(qp);
	int keep = errno, err = 0;

	if (!q)
		return vd_post_send(qp, wr, bad);
	if (ck_on())
		ck_post_state(q, false);
	for (; wr && !err; wr = wr->next) {
		struct ck_work *w = ck_on() ? ck_send(q, wr) : NULL;
		struct ibv_send_wr one = *wr, *which;
		struct ibv_sge sge;
		bool taken;

		one.next = NULL;
		taken = ed_depth_take(q, ed_is_told(q, wr));
		err = ed_strict_send(q, wr);
		if (!err && !taken && q->depth.enforced)
			err = refuse_full_queue(q);
		err = err ? err : before_send(q, &one, &sge);
		if (err == ED_DONE)
			err = 0;
		else if (!err)
			err = vd_post_send(qp, &one, &which);
		if (!err && !taken)
			ed_depth_passed(q);
		if (!err)
			continue;
		*bad = wr;
		if (taken)
			ed_depth_undo(q);
		ck_not_posted(&q->sends, w);
	}
	ed_qp_done(q);
	errno = keep;
	return err;
}

/* ---- receives ---- */

/* Behind those that wait already.  ed.lock is held. */
static int keep_recv(struct ed_rq *rq, const struct ibv_recv_wr *wr)
{
	struct ed_recv *r;

	ddps_assert_held(&ed.lock);
	if (wr->num_sge < 0 || wr->num_sge > VD_MAX_SGE)
		return EINVAL;
	r = rq->n < rq->max ? calloc(1, sizeof *r) : NULL;
	if (!r)
		return ENOMEM;
	r->wr = *wr;
	r->wr.next = NULL;
	if (wr->num_sge)
		memcpy(r->sge, wr->sg_list, (size_t)wr->num_sge * sizeof *r->sge);
	r->wr.sg_list = r->sge;
	STAILQ_INSERT_TAIL(&rq->recvs, r, link);
	rq->n++;
	return 0;
}

/* Return: 0, it goes to the device; errno; or ED_DONE, it waits. */
static int before_recv(enum vf_point point, const struct ed_subject *s, struct ed_rq *rq,
		       const struct ibv_recv_wr *wr)
{
	const struct vf_rule *rule;
	int err;

	if (ed_is_removed())
		return EIO;
	rule = ed_ask(point, s);
	err = ed_apply(rule, s);
	if (err)
		return err;
	ddps_lock(&ed.lock);
	if (rule && rule->what == VF_RNR)
		rq->until = ed_ms() + rule->ms;
	if (!STAILQ_EMPTY(&rq->recvs) || rq->until > ed_ms()) {
		err = keep_recv(rq, wr);
		err = err ? err : ED_DONE;
	}
	ddps_unlock(&ed.lock);
	if (err == ED_DONE)
		ed_clock_wake();
	return err;
}

int ed_post_recv(struct ibv_qp *qp, struct ibv_recv_wr *wr, struct ibv_recv_wr **bad)
{
	struct ed_qp *q = ed_qp_of(qp);
	const struct ed_subject s = { .qp = q, .opcode = VF_NOT_SAID, .queue = 1 };
	int keep = errno, err = 0;

	if (!q)
		return vd_post_recv(qp, wr, bad);
	if (ck_on())
		ck_post_state(q, true);
	for (; wr && !err; wr = wr->next) {
		struct ck_work *w = ck_on() ? ck_recv(q, &q->recvs, wr) : NULL;
		struct ibv_recv_wr one = *wr, *which;

		one.next = NULL;
		err = before_recv(VF_ibv_post_recv, &s, &q->rq, &one);
		if (err == ED_DONE)
			err = 0;
		else if (!err)
			err = vd_post_recv(qp, &one, &which);
		if (!err)
			continue;
		*bad = wr;
		ck_not_posted(&q->recvs, w);
	}
	ed_qp_done(q);
	errno = keep;
	return err;
}

int ed_post_srq_recv(struct ibv_srq *srq, struct ibv_recv_wr *wr, struct ibv_recv_wr **bad)
{
	struct ed_srq *q = ed_srq_of(srq);
	const struct ed_subject s = { .srq = srq, .ctx = srq->context, .opcode = VF_NOT_SAID };
	int keep = errno, err = 0;

	if (!q)
		return vd_post_srq_recv(srq, wr, bad);
	for (; wr && !err; wr = wr->next) {
		struct ck_work *w = ck_on() ? ck_recv(NULL, &q->recvs, wr) : NULL;
		struct ibv_recv_wr one = *wr, *which;

		one.next = NULL;
		err = before_recv(VF_ibv_post_srq_recv, &s, &q->rq, &one);
		if (err == ED_DONE)
			err = 0;
		else if (!err)
			err = vd_post_srq_recv(srq, &one, &which);
		if (!err)
			continue;
		*bad = wr;
		ck_not_posted(&q->recvs, w);
	}
	ed_srq_done(q);
	errno = keep;
	return err;
}

/* The first that is due; it stays at the head until the device has it, for those behind. */
static struct ed_recv *find_due_receive(struct ed_rq *rq, uint64_t now, uint64_t *next)
{
	struct ed_recv *r;

	ddps_lock(&ed.lock);
	r = STAILQ_FIRST(&rq->recvs);
	if (r && rq->until > now) {
		*next = rq->until < *next ? rq->until : *next;
		r = NULL;
	}
	ddps_unlock(&ed.lock);
	return r;
}

static void drop_posted_receive(struct ed_rq *rq)
{
	struct ed_recv *r;

	ddps_lock(&ed.lock);
	r = STAILQ_FIRST(&rq->recvs);
	STAILQ_REMOVE_HEAD(&rq->recvs, link);
	rq->n--;
	ddps_unlock(&ed.lock);
	free(r);
}

static struct ed_srq *next_srq(struct ed_srq *s)
{
	struct ed_srq *next;

	ddps_lock(&ed.lock);
	next = s ? LIST_NEXT(s, link) : LIST_FIRST(&ed.srqs);
	if (next)
		next->busy++;
	ddps_unlock(&ed.lock);
	if (s)
		ed_srq_done(s);
	return next;
}

/* What the device refuses now, since the program has posted too many, is lost. */
uint64_t ed_recvs_due(uint64_t now)
{
	uint64_t next = UINT64_MAX;
	struct ibv_recv_wr *bad;
	struct ed_recv *r;

	for (struct ed_qp *q = ed_qp_next(NULL); q; q = ed_qp_next(q))
		while ((r = find_due_receive(&q->rq, now, &next))) {
			vd_post_recv(q->qp, &r->wr, &bad);
			drop_posted_receive(&q->rq);
		}
	for (struct ed_srq *s = next_srq(NULL); s; s = next_srq(s))
		while ((r = find_due_receive(&s->rq, now, &next))) {
			vd_post_srq_recv(s->srq, &r->wr, &bad);
			drop_posted_receive(&s->rq);
		}
	return next;
}
