/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Requests that are as most are: a Send, Write or Read of one piece.  What vd_post.c has to look at otherwise cannot be
 * so of them, and they take one way down, without a lock for each.
 */
#include "session/direct.h"
#include "verbs/ib/vd_memory.h"
#include "verbs/ib/vd_qp.h"
#include <errno.h>
#include <string.h>

/* In strict mode vd_oob_posted counts those of a queue pair that its program connects. */
static bool is_wr_counted(const struct vd_qp *qp)
{
	return qp->oob && !qp->lent && qp->roce && vd_config()->strict;
}

/* InfiniBand's unreliable connections have no Reads, and what is read is not inline. */
static bool is_plain_read(const struct vd_qp *qp, const struct ibv_send_wr *wr)
{
	return wr->opcode == IBV_WR_RDMA_READ && qp->init.qp_type != IBV_QPT_UC &&
	       !(wr->send_flags & IBV_SEND_INLINE) && wr->sg_list && wr->sg_list->length;
}

static bool is_plain(const struct vd_qp *qp, const struct ibv_send_wr *wr, unsigned flags)
{
	return (wr->opcode == IBV_WR_SEND || wr->opcode == IBV_WR_RDMA_WRITE ||
		is_plain_read(qp, wr)) &&
	       wr->num_sge == 1 && !(wr->send_flags & ~flags) && wr->sg_list &&
	       wr->sg_list->length <= VD_ROCE_MSG_MAX;
}

/* Into the next slot.  Return: whether it fits, and is anything. */
static bool copy_plain_inline(struct vd_qp *qp, const struct ibv_sge *from, struct ddps_sge *to)
{
	uint8_t *slot = qp->inl + (size_t)qp->inl_seq * VD_MAX_INLINE;

	if (!from->length || from->length > qp->init.cap.max_inline_data)
		return false;
	memcpy(slot, (const void *)(uintptr_t)from->addr, from->length);
	*to = (struct ddps_sge){ slot, from->length, ddps_mr_stag(qp->inl_mr) };
	return true;
}

#define TRY_OTHERWISE (-1)

/* The context's lock is held.  Return: 0, errno, or TRY_OTHERWISE. */
static int post_plain_wr(struct vd_qp *qp, struct ddps_ep *ep, const struct ibv_send_wr *wr)
{
	const bool told = vd_is_told(qp, wr), inl = wr->send_flags & IBV_SEND_INLINE,
		   write = wr->opcode == IBV_WR_RDMA_WRITE, read = wr->opcode == IBV_WR_RDMA_READ;
	const struct ibv_sge *from = wr->sg_list;
	struct ddps_send_wr to; /* the rest is for other ops */
	struct ddps_sge sge;
	int err;

	if (inl && !copy_plain_inline(qp, from, &sge))
		return TRY_OTHERWISE;
	if (!inl) {
		sge = (struct ddps_sge){ (void *)(uintptr_t)from->addr, from->length, from->lkey };
		vd_moved_pieces(vd_process_of(qp->qp.qp_base.context), &sge, 1);
	}
	to.wr_id = wr->wr_id;
	to.op = write ? DDPS_OP_WRITE : read ? DDPS_OP_READ : DDPS_OP_SEND;
	to.flags = !told ? DDPS_WR_SILENT : 0;
	if (told && qp->placed != VD_PLACED_NONE && !read && (write || qp->placed == VD_PLACED_ALL))
		to.flags = DDPS_WR_PLACED;
	if (wr->next) /* see vd_post_one */
		to.flags |= DDPS_WR_MORE;
	to.sge = &sge;
	to.nsge = 1;
	to.stag = wr->wr.rdma.rkey;
	to.to = wr->wr.rdma.remote_addr;
	if (vd_take_place(qp, wr))
		return ENOMEM;
	err = ddps_direct_send(ep, &to);
	if (err) {
		vd_leave_place(qp, wr);
		return read || to.flags & DDPS_WR_PLACED ? TRY_OTHERWISE : vd_errno(err);
	}
	if (inl)
		qp->inl_seq = (qp->inl_seq + 1) % (qp->init.cap.max_send_wr + 1);
	return 0;
}

int vd_post_plain(struct vd_qp *qp, struct ibv_send_wr **at, bool inl)
{
	const unsigned flags = IBV_SEND_SIGNALED | (inl ? IBV_SEND_INLINE : 0);
	struct ibv_send_wr *wr = *at;
	struct ddps_ep *ep = vd_tx(qp);
	int err = 0;

	if (!wr || !is_plain(qp, wr, flags) || is_wr_counted(qp) || ddps_direct_enter(ep))
		return 0;
	do {
		err = post_plain_wr(qp, ep, wr);
		if (err)
			break;
		wr = wr->next;
	} while (wr && is_plain(qp, wr, flags));
	ddps_direct_leave(ep);
	*at = wr;
	return err == TRY_OTHERWISE ? 0 : err;
}
