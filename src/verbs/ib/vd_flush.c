/* SPDX-License-Identifier: BSD-2-Clause */
/* Atomic Writes and Flushes: requests of verbs as those of the library. */
#include "verbs/ib/vd_flush.h"
#include "session/direct.h"
#include "verbs/ib/vd_memory.h"
#include <errno.h>
#include <string.h>

/* IBV_FLUSH_GLOBAL, IBV_FLUSH_PERSISTENT; IBV_FLUSH_RANGE, IBV_FLUSH_MR. */
enum { TYPE_GLOBAL = 1, TYPE_PERSISTENT = 2, LEVEL_RANGE = 0, LEVEL_MR = 1 };

uint64_t vd_flush_what(uint8_t type, uint8_t level)
{
	if (type & ~(TYPE_GLOBAL | TYPE_PERSISTENT) || level > LEVEL_MR)
		return 0;
	return (type & TYPE_GLOBAL ? DDPS_FLUSH_VISIBLE : 0) |
	       (type & TYPE_PERSISTENT ? DDPS_FLUSH_PERSISTENT : 0) |
	       (level == LEVEL_MR ? DDPS_FLUSH_REGION : 0);
}

int vd_flush_operation(const struct ibv_send_wr *wr, struct ddps_send_wr *to)
{
	uint64_t len = 0;

	switch ((int)wr->opcode) {
	case VD_BUILT_FLUSH:
		to->op = DDPS_OP_FLUSH;
		to->atomic.data = wr->wr.atomic.compare_add;
		to->atomic.mask = wr->wr.atomic.swap;
		break;
	case VD_BUILT_ATOMIC_WRITE:
		to->op = DDPS_OP_ATOMIC_WRITE;
		memcpy(to->imm, &wr->wr.atomic.compare_add, sizeof to->imm);
		break;
	case VD_WR_ATOMIC_WRITE:
		for (int i = 0; i < wr->num_sge; i++)
			len += wr->sg_list[i].length;
		to->op = DDPS_OP_ATOMIC_WRITE;
		return len == sizeof to->imm ? 0 : EINVAL;
	default:
		return EOPNOTSUPP;
	}
	to->stag = wr->wr.atomic.rkey;
	to->to = wr->wr.atomic.remote_addr;
	return 0;
}

static bool may_read_pieces(const struct vd_qp *qp, const struct ddps_sge *sge, int n)
{
	bool may;

	if (!qp->ep || ddps_direct_enter(qp->ep) < 0)
		return false;
	may = ddps_direct_may_read(qp->ep, sge, n);
	ddps_direct_leave(qp->ep);
	return may;
}

int vd_flush_octets(const struct vd_qp *qp, const struct ibv_send_wr *wr, struct ddps_sge *sge,
		    struct ddps_send_wr *to)
{
	const bool is_inline = wr->send_flags & IBV_SEND_INLINE;
	size_t at = 0;
	int err = vd_pieces(qp->qp.qp_base.context, wr->sg_list, wr->num_sge, VD_MAX_SGE, sge);

	if (err)
		return err;
	if (!is_inline && !may_read_pieces(qp, sge, wr->num_sge)) {
		/* fails as a Write from there does, without a look at it */
		to->op = DDPS_OP_WRITE;
		to->nsge = (uint32_t)wr->num_sge;
		return 0;
	}
	for (int i = 0; i < wr->num_sge; i++) {
		const void *from =
			is_inline ? (const void *)(uintptr_t)wr->sg_list[i].addr : sge[i].addr;

		if (sge[i].len) /* they are 8 in all */
			memcpy(to->imm + at, from, sge[i].len);
		at += sge[i].len;
	}
	return 0;
}
