/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The ibv_wr_* interface: requests are built one by one between wr_start and wr_complete, and
 * posted together by it.  The queue pair is locked in between.
 */
#include "verbs/ib/vd_flush.h"
#include "verbs/ib/vd_qp.h"
#include <errno.h>
#include <stdlib.h>
#include <string.h>

struct vd_wr {
	unsigned n, max;
	int error; /* the first one, told by wr_complete */
	struct {
		struct ibv_send_wr wr;
		struct ibv_sge sge[VD_MAX_SGE];
		uint8_t data[VD_MAX_INLINE];
	} req[];
};

static struct vd_qp *get_ex_qp(struct ibv_qp_ex *ex)
{
	return vd_of(ex, struct vd_qp, qp);
}

/* Nothing is locked then, and nothing built: another thread of the parent may have been at it. */
static bool is_inherited(const struct ibv_qp_ex *ex)
{
	return vd_is_inherited(ex->qp_base.context);
}

static void wr_start(struct ibv_qp_ex *ex)
{
	struct vd_qp *qp = get_ex_qp(ex);

	if (is_inherited(ex))
		return; /* wr_complete says so */
	ddps_lock(&qp->lock);
	if (!qp->wr) {
		unsigned max = qp->init.cap.max_send_wr;

		qp->wr = calloc(1, sizeof *qp->wr + max * sizeof qp->wr->req[0]);
		if (!qp->wr)
			return; /* wr_complete says so */
		qp->wr->max = max;
	}
	qp->wr->n = 0;
	qp->wr->error = 0;
}

/* A new request, or NULL: an error is noted. */
static struct ibv_send_wr *add_wr(struct ibv_qp_ex *ex, enum ibv_wr_opcode op)
{
	struct vd_wr *w = get_ex_qp(ex)->wr;
	struct ibv_send_wr *wr;

	if (!w || w->n == w->max || is_inherited(ex)) {
		if (w)
			w->error = ENOMEM;
		return NULL;
	}
	wr = &w->req[w->n].wr;
	*wr = (struct ibv_send_wr){ .wr_id = ex->wr_id,
				    .opcode = op,
				    .send_flags = ex->wr_flags,
				    .sg_list = w->req[w->n].sge };
	w->n++;
	return wr;
}

static struct ibv_send_wr *current(struct ibv_qp_ex *ex)
{
	struct vd_wr *w = get_ex_qp(ex)->wr;

	return w && w->n && !w->error && !is_inherited(ex) ? &w->req[w->n - 1].wr : NULL;
}

static void rdma(struct ibv_qp_ex *ex, enum ibv_wr_opcode op, uint32_t rkey, uint64_t addr)
{
	struct ibv_send_wr *wr = add_wr(ex, op);

	if (wr) {
		wr->wr.rdma.rkey = rkey;
		wr->wr.rdma.remote_addr = addr;
	}
}

static void wr_rdma_read(struct ibv_qp_ex *ex, uint32_t rkey, uint64_t addr)
{
	rdma(ex, IBV_WR_RDMA_READ, rkey, addr);
}

static void wr_rdma_write(struct ibv_qp_ex *ex, uint32_t rkey, uint64_t addr)
{
	rdma(ex, IBV_WR_RDMA_WRITE, rkey, addr);
}

static void wr_send(struct ibv_qp_ex *ex)
{
	add_wr(ex, IBV_WR_SEND);
}

static void wr_send_inv(struct ibv_qp_ex *ex, uint32_t rkey)
{
	struct ibv_send_wr *wr = add_wr(ex, IBV_WR_SEND_WITH_INV);

	if (wr)
		wr->invalidate_rkey = rkey;
}

static void wr_local_inv(struct ibv_qp_ex *ex, uint32_t rkey)
{
	struct ibv_send_wr *wr = add_wr(ex, IBV_WR_LOCAL_INV);

	if (wr)
		wr->invalidate_rkey = rkey;
}

static void wr_bind_mw(struct ibv_qp_ex *ex, struct ibv_mw *mw, uint32_t rkey,
		       const struct ibv_mw_bind_info *info)
{
	struct ibv_send_wr *wr = add_wr(ex, IBV_WR_BIND_MW);

	if (!wr)
		return;
	wr->bind_mw.mw = mw;
	wr->bind_mw.rkey = rkey;
	wr->bind_mw.bind_info = *info;
}

static void wr_rdma_write_imm(struct ibv_qp_ex *ex, uint32_t rkey, uint64_t addr, __be32 data)
{
	struct ibv_send_wr *wr;

	rdma(ex, IBV_WR_RDMA_WRITE_WITH_IMM, rkey, addr);
	wr = current(ex);
	if (wr)
		wr->imm_data = data;
}

static void wr_send_imm(struct ibv_qp_ex *ex, __be32 data)
{
	struct ibv_send_wr *wr = add_wr(ex, IBV_WR_SEND_WITH_IMM);

	if (wr)
		wr->imm_data = data;
}

static void add_atomic_wr(struct ibv_qp_ex *ex, enum ibv_wr_opcode op, uint32_t rkey, uint64_t addr,
			  uint64_t compare_add, uint64_t swap)
{
	struct ibv_send_wr *wr = add_wr(ex, op);

	if (!wr)
		return;
	wr->wr.atomic.rkey = rkey;
	wr->wr.atomic.remote_addr = addr;
	wr->wr.atomic.compare_add = compare_add;
	wr->wr.atomic.swap = swap;
}

static void wr_atomic_cmp_swp(struct ibv_qp_ex *ex, uint32_t rkey, uint64_t addr, uint64_t compare,
			      uint64_t swap)
{
	add_atomic_wr(ex, IBV_WR_ATOMIC_CMP_AND_SWP, rkey, addr, compare, swap);
}

static void wr_atomic_fetch_add(struct ibv_qp_ex *ex, uint32_t rkey, uint64_t addr, uint64_t n)
{
	add_atomic_wr(ex, IBV_WR_ATOMIC_FETCH_AND_ADD, rkey, addr, n, 0);
}

static void wr_atomic_write(struct ibv_qp_ex *ex, uint32_t rkey, uint64_t addr, const void *octets)
{
	uint64_t all;

	memcpy(&all, octets, sizeof all);
	add_atomic_wr(ex, (enum ibv_wr_opcode)VD_BUILT_ATOMIC_WRITE, rkey, addr, all, 0);
}

static void wr_flush(struct ibv_qp_ex *ex, uint32_t rkey, uint64_t addr, size_t len, uint8_t type,
		     uint8_t level)
{
	add_atomic_wr(ex, (enum ibv_wr_opcode)VD_BUILT_FLUSH, rkey, addr, len,
		      vd_flush_what(type, level));
}

static void wr_set_ud_addr(struct ibv_qp_ex *ex, struct ibv_ah *ah, uint32_t qpn, uint32_t qkey)
{
	struct ibv_send_wr *wr = current(ex);

	if (!wr)
		return;
	wr->wr.ud.ah = ah;
	wr->wr.ud.remote_qpn = qpn;
	wr->wr.ud.remote_qkey = qkey;
}

static void wr_set_sge_list(struct ibv_qp_ex *ex, size_t n, const struct ibv_sge *list)
{
	struct ibv_send_wr *wr = current(ex);

	if (!wr)
		return;
	if (n > VD_MAX_SGE) {
		get_ex_qp(ex)->wr->error = EINVAL;
		return;
	}
	if (n)
		memcpy(wr->sg_list, list, n * sizeof *list);
	wr->num_sge = (int)n;
}

static void wr_set_sge(struct ibv_qp_ex *ex, uint32_t lkey, uint64_t addr, uint32_t len)
{
	struct ibv_sge sge = { addr, len, lkey };

	wr_set_sge_list(ex, 1, &sge);
}

static void wr_set_inline_data_list(struct ibv_qp_ex *ex, size_t n, const struct ibv_data_buf *list)
{
	struct ibv_send_wr *wr = current(ex);
	struct vd_wr *w = get_ex_qp(ex)->wr;
	uint8_t *at;
	size_t len = 0;

	if (!wr)
		return;
	at = w->req[w->n - 1].data;
	for (size_t i = 0; i < n; i++) {
		if (list[i].length > VD_MAX_INLINE - len) {
			w->error = EINVAL;
			return;
		}
		if (list[i].length)
			memcpy(at + len, list[i].addr, list[i].length);
		len += list[i].length;
	}
	wr->send_flags |= IBV_SEND_INLINE;
	wr->sg_list[0] = (struct ibv_sge){ (uintptr_t)at, (uint32_t)len, 0 };
	wr->num_sge = 1;
}

static void wr_set_inline_data(struct ibv_qp_ex *ex, void *addr, size_t len)
{
	struct ibv_data_buf buf = { addr, len };

	wr_set_inline_data_list(ex, 1, &buf);
}

static int complete_wr(struct ibv_qp_ex *ex)
{
	struct vd_qp *qp = get_ex_qp(ex);
	struct vd_wr *w = qp->wr;
	struct ibv_send_wr *bad;
	int err = w ? w->error : ENOMEM;

	if (is_inherited(ex))
		return EINVAL;
	for (unsigned i = 0; w && i + 1 < w->n; i++)
		w->req[i].wr.next = &w->req[i + 1].wr;
	if (!err && w->n)
		err = vd_post_list(qp, &w->req[0].wr, &bad);
	ddps_unlock(&qp->lock);
	return err;
}

int vd_wr_complete_by(struct ibv_qp_ex *ex, int (*post)(struct ibv_qp *qp, struct ibv_send_wr *wr,
							struct ibv_send_wr **bad))
{
	struct vd_qp *qp = get_ex_qp(ex);
	struct vd_wr *w = qp->wr;
	struct ibv_send_wr *bad;
	int err = w ? w->error : ENOMEM;

	if (is_inherited(ex))
		return EINVAL;
	qp->wr = NULL; /* whoever starts next gets another */
	ddps_unlock(&qp->lock);
	for (unsigned i = 0; w && i + 1 < w->n; i++)
		w->req[i].wr.next = &w->req[i + 1].wr;
	if (!err && w->n)
		err = post(&ex->qp_base, &w->req[0].wr, &bad);
	free(w);
	return err;
}

static void wr_abort(struct ibv_qp_ex *ex)
{
	if (!is_inherited(ex))
		ddps_unlock(&get_ex_qp(ex)->lock);
}

void vd_wr_init(struct vd_qp *qp)
{
	struct ibv_qp_ex *ex = &qp->qp;

	ex->wr_rdma_read = wr_rdma_read;
	ex->wr_rdma_write = wr_rdma_write;
	ex->wr_rdma_write_imm = wr_rdma_write_imm;
	ex->wr_atomic_cmp_swp = wr_atomic_cmp_swp;
	ex->wr_atomic_fetch_add = wr_atomic_fetch_add;
	ex->wr_local_inv = wr_local_inv;
	ex->wr_bind_mw = wr_bind_mw;
	ex->wr_send_imm = wr_send_imm;
	ex->wr_send = wr_send;
	ex->wr_send_inv = wr_send_inv;
	ex->wr_set_ud_addr = wr_set_ud_addr;
	ex->wr_set_sge = wr_set_sge;
	ex->wr_set_sge_list = wr_set_sge_list;
	ex->wr_set_inline_data = wr_set_inline_data;
	ex->wr_set_inline_data_list = wr_set_inline_data_list;
	ex->wr_start = wr_start;
	ex->wr_complete = complete_wr;
	ex->wr_abort = wr_abort;
	qp->newer.wr_atomic_write = wr_atomic_write;
	qp->newer.wr_flush = wr_flush;
}

void vd_wr_fini(struct vd_qp *qp)
{
	free(qp->wr);
}

VD_API struct ibv_qp_ex *ibv_qp_to_qp_ex(struct ibv_qp *qp)
{
	return vd_of(qp, struct ibv_qp_ex, qp_base);
}
