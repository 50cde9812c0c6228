/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Work requests by ibv_post_send and ibv_post_recv.  Errors are returned and errno stays as it was,
 * since an adapter's driver has no reason to touch it: rsockets set it, post, and read it then.
 */
#include "session/direct.h"
#include "verbs/ib/vd_flush.h"
#include "verbs/ib/vd_memory.h"
#include "verbs/ib/vd_qp.h"
#include "verbs/ud/vd_ud.h"
#include "verbs/cm/vd_oob.h"
#include <endian.h>
#include <errno.h>
#include <string.h>

#define SEND_FLAGS (IBV_SEND_FENCE | IBV_SEND_SIGNALED | IBV_SEND_SOLICITED | IBV_SEND_INLINE)

/* One request's pieces in the library's form; inline data is copied.  Return: 0 or errno. */
static int gather_pieces(struct vd_qp *qp, const struct ibv_send_wr *wr, struct ddps_sge *sge,
			 uint32_t *n)
{
	uint8_t *slot = qp->inl + (size_t)qp->inl_seq * VD_MAX_INLINE;
	uint32_t len = 0;

	*n = (uint32_t)wr->num_sge;
	if (!(wr->send_flags & IBV_SEND_INLINE))
		return vd_pieces(qp->qp.qp_base.context, wr->sg_list, wr->num_sge,
				 qp->init.cap.max_send_sge, sge);
	for (uint32_t i = 0; i < *n; i++) {
		if (!wr->sg_list[i].length)
			continue; /* its address may be anything */
		memcpy(slot + len, (const void *)(uintptr_t)wr->sg_list[i].addr,
		       wr->sg_list[i].length);
		len += wr->sg_list[i].length;
	}
	sge[0] = (struct ddps_sge){ slot, len, ddps_mr_stag(qp->inl_mr) };
	*n = len ? 1 : 0;
	return 0;
}

/* Immediate data of verbs has 4 octets, RFC 7306 carries 8: the rest is the Write's length. */
static void put_wr_immediate(struct ddps_send_wr *to, __be32 data, uint32_t len)
{
	len = htobe32(len);
	memcpy(to->imm, &data, sizeof data);
	memcpy(to->imm + sizeof data, &len, sizeof len);
}

static uint64_t sum_wr_length(const struct ibv_send_wr *wr)
{
	uint64_t len = 0;

	for (int i = 0; i < wr->num_sge; i++)
		len += wr->sg_list[i].length;
	return len;
}

/* With a payload it is a form of our own, which takes one receive; without one, the RFC's. */
static void send_imm(const struct ibv_send_wr *wr, struct ddps_send_wr *to)
{
	to->op = sum_wr_length(wr) ? DDPS_OP_SEND_IMM : DDPS_OP_IMM;
	put_wr_immediate(to, wr->imm_data, VD_IMM_SEND);
}

/* The region's piece is the request's; a zero length takes the window back. */
static int make_bind_wr(const struct ibv_send_wr *wr, struct ddps_send_wr *to)
{
	const struct ibv_mw_bind_info *info = &wr->bind_mw.bind_info;

	if (!wr->bind_mw.mw || info->length > UINT32_MAX || (info->length && !info->mr))
		return EINVAL;
	to->op = DDPS_OP_BIND;
	to->stag = wr->bind_mw.rkey;
	to->bind.window = vd_of(wr->bind_mw.mw, struct vd_mw, mw)->d;
	to->bind.access =
		vd_rights(info->mw_access_flags) & ~(unsigned)(DDPS_LOCAL_WRITE | DDPS_BIND);
	return 0;
}

static void make_atomic_wr(const struct ibv_send_wr *wr, struct ddps_send_wr *to)
{
	bool swap = wr->opcode == IBV_WR_ATOMIC_CMP_AND_SWP;

	to->op = swap ? DDPS_OP_CMP_SWAP : DDPS_OP_FETCH_ADD;
	to->stag = wr->wr.atomic.rkey;
	to->to = wr->wr.atomic.remote_addr;
	to->atomic.data = swap ? wr->wr.atomic.swap : wr->wr.atomic.compare_add;
	if (swap) {
		to->atomic.compare = wr->wr.atomic.compare_add;
		to->atomic.mask = to->atomic.compare_mask = UINT64_MAX;
	}
}

static int operation(const struct ibv_send_wr *wr, struct ddps_send_wr *to)
{
	to->stag = wr->wr.rdma.rkey;
	to->to = wr->wr.rdma.remote_addr;
	if (vd_is_flush(wr))
		return vd_flush_operation(wr, to);
	switch (wr->opcode) {
	case IBV_WR_SEND:
		to->op = DDPS_OP_SEND;
		return 0;
	case IBV_WR_SEND_WITH_INV:
		to->op = DDPS_OP_SEND;
		to->flags |= DDPS_WR_INVALIDATE;
		to->stag = wr->invalidate_rkey;
		return 0;
	case IBV_WR_SEND_WITH_IMM:
		send_imm(wr, to);
		return 0;
	case IBV_WR_RDMA_WRITE:
		to->op = DDPS_OP_WRITE;
		return 0;
	case IBV_WR_RDMA_WRITE_WITH_IMM:
		to->op = DDPS_OP_WRITE_IMM;
		put_wr_immediate(to, wr->imm_data, (uint32_t)sum_wr_length(wr));
		return 0;
	case IBV_WR_RDMA_READ:
		to->op = DDPS_OP_READ;
		return 0;
	case IBV_WR_ATOMIC_CMP_AND_SWP:
	case IBV_WR_ATOMIC_FETCH_AND_ADD:
		make_atomic_wr(wr, to);
		return 0;
	case IBV_WR_LOCAL_INV:
		to->op = DDPS_OP_LOCAL_INV;
		to->stag = wr->invalidate_rkey;
		return 0;
	case IBV_WR_BIND_MW:
		return make_bind_wr(wr, to);
	case IBV_WR_TSO:
	case IBV_WR_DRIVER1:
		return EOPNOTSUPP;
	default:
		return EINVAL;
	}
}

/* Whether it completes a receive of the peer. */
static bool takes_receive(enum ddps_op op)
{
	return op == DDPS_OP_SEND || op == DDPS_OP_IMM || op == DDPS_OP_WRITE_IMM ||
	       op == DDPS_OP_SEND_IMM;
}

static bool has_pieces(enum ddps_op op)
{
	return op != DDPS_OP_IMM && op != DDPS_OP_BIND && op != DDPS_OP_LOCAL_INV &&
	       op != DDPS_OP_ATOMIC_WRITE && op != DDPS_OP_FLUSH;
}

static bool is_wr_placed(const struct vd_qp *qp, enum ddps_op op)
{
	if (op == DDPS_OP_WRITE || op == DDPS_OP_WRITE_IMM)
		return qp->placed != VD_PLACED_NONE;
	return takes_receive(op) && qp->placed == VD_PLACED_ALL;
}

/* Where no Read can go, as where both sides have agreed on none, it completes as on iWARP. */
static int post_vd_wr(struct vd_qp *qp, struct ddps_send_wr *to)
{
	int err = ddps_post_send(vd_tx(qp), to);

	if (to->flags & DDPS_WR_PLACED && (err == DDPS_E_LIMIT || err == DDPS_E_STATE)) {
		to->flags &= ~DDPS_WR_PLACED;
		err = ddps_post_send(vd_tx(qp), to);
	}
	return err;
}

/* The peer's octets come into its pieces, which must be the program's then. */
static bool reads_into_pieces(const struct ibv_send_wr *wr)
{
	return wr->opcode == IBV_WR_RDMA_READ || wr->opcode == IBV_WR_ATOMIC_CMP_AND_SWP ||
	       wr->opcode == IBV_WR_ATOMIC_FETCH_AND_ADD;
}

static bool asks_peer(const struct ibv_send_wr *wr)
{
	return reads_into_pieces(wr) || vd_is_flush(wr);
}

int vd_check_send(const struct vd_qp *qp, const struct ibv_send_wr *wr, struct ddps_send_wr *to)
{
	if (wr->send_flags & ~(unsigned)SEND_FLAGS || wr->num_sge < 0 ||
	    (uint32_t)wr->num_sge > qp->init.cap.max_send_sge || (wr->num_sge && !wr->sg_list))
		return EINVAL;
	if (qp->roce && sum_wr_length(wr) > VD_ROCE_MSG_MAX)
		return EINVAL;
	if (qp->init.qp_type == IBV_QPT_UC && (asks_peer(wr) || wr->opcode == IBV_WR_SEND_WITH_INV))
		return EINVAL; /* InfiniBand gives it none of these */
	if (wr->send_flags & IBV_SEND_INLINE &&
	    (reads_into_pieces(wr) || sum_wr_length(wr) > qp->init.cap.max_inline_data))
		return EINVAL;
	return operation(wr, to);
}

/* No Read can ever go out, where both sides have agreed on none: to fail with ENOMEM, as of a full queue,
 * would have some programs try again for ever. */
static bool is_read_impossible(const struct vd_qp *qp)
{
	struct ddps_conn_info info;

	return !ddps_ep_info(qp->ep, &info) && !info.ord;
}

int vd_post_one(struct vd_qp *qp, const struct ibv_send_wr *wr, bool more)
{
	struct ddps_sge sge[VD_MAX_SGE];
	struct ddps_send_wr to = { .wr_id = wr->wr_id, .sge = sge };
	int err = vd_check_send(qp, wr, &to);

	ddps_assert_held(&qp->lock);
	if (!err && has_pieces(to.op))
		err = gather_pieces(qp, wr, sge, &to.nsge);
	else if (!err && (int)wr->opcode == VD_WR_ATOMIC_WRITE)
		err = vd_flush_octets(qp, wr, sge, &to);
	if (err)
		return err;
	if (to.op == DDPS_OP_BIND && wr->bind_mw.bind_info.length) {
		const struct ibv_mw_bind_info *info = &wr->bind_mw.bind_info;

		sge[0] = (struct ddps_sge){ (void *)(uintptr_t)info->addr, (uint32_t)info->length,
					    info->mr->lkey };
		vd_moved_pieces(vd_of(qp->qp.qp_base.context, struct vd_context, v.context)->p, sge,
				1);
		to.nsge = 1;
	}
	if (!vd_is_told(qp, wr))
		to.flags |= DDPS_WR_SILENT;
	else if (is_wr_placed(qp, to.op))
		to.flags |= DDPS_WR_PLACED;
	if (wr->send_flags & IBV_SEND_SOLICITED && takes_receive(to.op))
		to.flags |= DDPS_WR_SOLICITED;
	if (wr->send_flags & IBV_SEND_FENCE)
		to.flags |= DDPS_WR_FENCE;
	if (more) /* if one of those is refused, the context's gathering lets this one go */
		to.flags |= DDPS_WR_MORE;
	err = post_vd_wr(qp, &to);
	if (!err) {
		if (wr->send_flags & IBV_SEND_INLINE)
			qp->inl_seq = (qp->inl_seq + 1) % (qp->init.cap.max_send_wr + 1);
		if (qp->oob && !qp->lent && qp->roce && vd_config()->strict)
			vd_oob_posted(qp, asks_peer(wr) && !(wr->send_flags & IBV_SEND_FENCE));
		return 0;
	}
	return err == DDPS_E_LIMIT && asks_peer(wr) && is_read_impossible(qp) ? EINVAL
									      : vd_errno(err);
}

int vd_post_list(struct vd_qp *qp, struct ibv_send_wr *wr, struct ibv_send_wr **bad)
{
	int keep = errno, err = 0;

	ddps_assert_held(&qp->lock);
	if (qp->ud) {
		err = vd_ud_post_send(qp, wr, bad);
		errno = keep;
		return err;
	}
	if (qp->qp.qp_base.state < IBV_QPS_RTS && vd_rules_bind(qp)) {
		*bad = wr;
		return vd_rules_refuse(qp, "ibv_post_send", "it comes before RTS");
	}
	if (vd_later_waits(qp))
		return vd_later_keep(qp, wr, bad);
	while (!(err = vd_post_plain(qp, &wr, true)) && wr) {
		err = vd_take_place(qp, wr);
		if (!err && (err = vd_post_one(qp, wr, wr->next != NULL)))
			vd_leave_place(qp, wr);
		if (err)
			break;
		wr = wr->next;
	}
	if (err)
		*bad = wr;
	errno = keep;
	return err;
}

int vd_post_send(struct ibv_qp *ibqp, struct ibv_send_wr *wr, struct ibv_send_wr **bad)
{
	struct vd_qp *qp = vd_of(ibqp, struct vd_qp, qp.qp_base);
	int keep = errno, err;

	if (vd_is_inherited(ibqp->context)) {
		*bad = wr;
		return EINVAL;
	}
	if (vd_is_unlocked(qp)) {
		err = vd_post_plain(qp, &wr, false);
		if (err)
			*bad = wr;
		errno = keep;
		if (err || !wr)
			return err;
	}
	ddps_lock(&qp->lock);
	err = vd_post_list(qp, wr, bad);
	ddps_unlock(&qp->lock);
	return err;
}

/* The context's lock is held. */
static int post_recv_one(struct vd_qp *qp, const struct ibv_recv_wr *wr)
{
	struct ddps_sge sge[VD_MAX_SGE];
	int err = vd_pieces(qp->qp.qp_base.context, wr->sg_list, wr->num_sge,
			    qp->init.cap.max_recv_sge, sge);

	if (err)
		return err;
	if (!qp->init.srq && vd_take_recv_place(qp))
		return ENOMEM;
	err = ddps_direct_recv(qp->ep, wr->wr_id, sge, (uint32_t)wr->num_sge);
	if (!err)
		return 0;
	qp->recvs_told -= !qp->init.srq;
	return vd_errno(err);
}

static int post_vd_recvs(struct vd_qp *qp, struct ibv_recv_wr *wr, struct ibv_recv_wr **bad)
{
	int err = ddps_direct_enter(qp->ep);

	if (err) {
		*bad = wr;
		return vd_errno(err);
	}
	for (; wr && !err; wr = wr->next) {
		err = post_recv_one(qp, wr);
		if (err)
			*bad = wr;
	}
	ddps_direct_leave(qp->ep);
	return err;
}

int vd_post_recv(struct ibv_qp *ibqp, struct ibv_recv_wr *wr, struct ibv_recv_wr **bad)
{
	struct vd_qp *qp = vd_of(ibqp, struct vd_qp, qp.qp_base);
	int keep = errno, err = 0;

	if (vd_is_inherited(ibqp->context)) {
		*bad = wr;
		return EINVAL;
	}
	if (vd_has_own_states(qp)) {
		err = post_vd_recvs(qp, wr, bad);
		errno = keep;
		return err;
	}
	ddps_lock(&qp->lock);
	if (qp->ud) {
		err = vd_ud_post_recv(qp, wr, bad);
	} else if (ibqp->state == IBV_QPS_RESET && vd_rules_bind(qp)) {
		err = vd_rules_refuse(qp, "ibv_post_recv", "it comes before INIT");
		*bad = wr;
	} else {
		err = post_vd_recvs(qp, wr, bad);
	}
	ddps_unlock(&qp->lock);
	errno = keep;
	return err;
}
