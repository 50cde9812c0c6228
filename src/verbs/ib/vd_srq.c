/* SPDX-License-Identifier: BSD-2-Clause */
/* Shared receive queues. */
#include "verbs/ib/vd_memory.h"
#include "verbs/ud/vd_ud.h"
#include <errno.h>
#include <rdma/rdma_verbs.h>
#include <stdlib.h>

static struct vd_srq *get_vd_srq(struct ibv_srq *srq)
{
	return vd_of(srq, struct vd_srq, srq);
}

struct ibv_srq *vdi_ibv_create_srq(struct ibv_pd *pd, struct ibv_srq_init_attr *init)
{
	struct ibv_srq_attr *a = &init->attr;
	struct vd_srq *srq;
	int err;

	if (!a->max_wr || a->max_wr > VD_MAX_WR || a->max_sge > VD_MAX_SGE) {
		errno = EINVAL;
		return NULL;
	}
	a->max_sge += !a->max_sge;
	srq = calloc(1, sizeof *srq);
	if (!srq)
		return NULL;
	err = ddps_srq_new(vd_of(pd, struct vd_pd, pd)->d, a->max_wr, a->max_sge, srq, &srq->d);
	if (err) {
		free(srq);
		errno = vd_errno(err);
		return NULL;
	}
	srq->srq.context = pd->context;
	srq->srq.srq_context = init->srq_context;
	srq->srq.pd = pd;
	srq->attr = *a;
	srq->attr.srq_limit = 0; /* asked for by ibv_modify_srq alone */
	srq->number = vd_number();
	pthread_mutex_init(&srq->srq.mutex, NULL);
	pthread_cond_init(&srq->srq.cond, NULL);
	return &srq->srq;
}

struct ibv_srq *vd_create_srq_ex(struct ibv_context *ctx, struct ibv_srq_init_attr_ex *ex)
{
	(void)ctx;
	(void)ex;
	/* Basic ones come by ibv_create_srq; XRC and tag matching are InfiniBand's. */
	errno = EOPNOTSUPP;
	return NULL;
}

int vd_get_srq_num(struct ibv_srq *srq, uint32_t *number)
{
	*number = get_vd_srq(srq)->number;
	return 0;
}

int vdi_ibv_modify_srq(struct ibv_srq *ibsrq, struct ibv_srq_attr *attr, int mask)
{
	struct vd_process *p = vd_process_of(ibsrq->context);
	struct vd_srq *srq = get_vd_srq(ibsrq);
	int err;

	if (mask & ~(IBV_SRQ_MAX_WR | IBV_SRQ_LIMIT))
		return vd_refuse(EINVAL);
	if (mask & IBV_SRQ_MAX_WR && attr->max_wr > srq->attr.max_wr)
		return vd_refuse(EOPNOTSUPP); /* the library's queues do not grow */
	if (!(mask & IBV_SRQ_LIMIT))
		return 0;
	if (attr->srq_limit > srq->attr.max_wr)
		return vd_refuse(EINVAL);
	if (attr->srq_limit) {
		ddps_lock(&p->lock);
		err = vd_async_keep(&srq->low);
		ddps_unlock(&p->lock);
		if (err)
			return vd_refuse(err);
	}
	/* First the number, since the event may come immediately and puts it back to 0. */
	__atomic_store_n(&srq->attr.srq_limit, attr->srq_limit, __ATOMIC_RELEASE);
	err = ddps_srq_arm(srq->d, attr->srq_limit);
	return err ? vd_refuse(vd_errno(err)) : 0;
}

VD_API int ibv_query_srq(struct ibv_srq *ibsrq, struct ibv_srq_attr *attr)
{
	struct vd_srq *srq = get_vd_srq(ibsrq);

	*attr = srq->attr;
	attr->srq_limit = __atomic_load_n(&srq->attr.srq_limit, __ATOMIC_ACQUIRE);
	return 0;
}

void vd_srq_low(struct vd_srq *srq)
{
	ddps_assert_held(&vd_process_of(srq->srq.context)->lock);
	__atomic_store_n(&srq->attr.srq_limit, 0, __ATOMIC_RELEASE);
	vd_async_tell(srq->srq.context, IBV_EVENT_SRQ_LIMIT_REACHED, &srq->srq, &srq->low);
}

int vdi_ibv_destroy_srq(struct ibv_srq *ibsrq)
{
	struct vd_srq *srq = get_vd_srq(ibsrq);
	struct vd_process *p = vd_of(ibsrq->context, struct vd_context, v.context)->p;
	int err;

	if (!vd_mine(p))
		return vd_refuse(EINVAL);
	ddps_lock(&p->lock); /* an event of it is being served, or never again */
	err = vd_ud_srq_busy(srq) ? DDPS_E_BUSY : ddps_srq_free(srq->d);
	if (!err)
		vd_async_forget(ibsrq->context, ibsrq);
	ddps_unlock(&p->lock);
	if (err)
		return vd_refuse(vd_errno(err));
	free(srq->low);
	free(srq);
	return 0;
}

int vd_post_srq_recv(struct ibv_srq *ibsrq, struct ibv_recv_wr *wr, struct ibv_recv_wr **bad)
{
	struct vd_srq *srq = get_vd_srq(ibsrq);
	struct ddps_sge sge[VD_MAX_SGE];
	int err = 0;

	for (; wr && !err; wr = wr->next) {
		err = vd_pieces(ibsrq->context, wr->sg_list, wr->num_sge, srq->attr.max_sge, sge);
		if (!err)
			err = vd_errno(
				ddps_post_srq_recv(srq->d, wr->wr_id, sge, (uint32_t)wr->num_sge));
		if (err)
			*bad = wr;
	}
	vd_ud_srq_posted(srq);
	return err;
}

/* ---- on an identifier of rdma_cm ---- */

VD_API int rdma_create_srq(struct rdma_cm_id *id, struct ibv_pd *pd, struct ibv_srq_init_attr *attr)
{
	if (id->srq)
		return vd_fail(EINVAL);
	if (vd_id_bind_device(vd_id_of(id)))
		return -1;
	id->srq = vd_front.create_srq(pd ? pd : id->pd, attr);
	return id->srq ? 0 : -1;
}

VD_API int rdma_create_srq_ex(struct rdma_cm_id *id, struct ibv_srq_init_attr_ex *ex)
{
	const uint32_t known = IBV_SRQ_INIT_ATTR_PD | IBV_SRQ_INIT_ATTR_TYPE;

	if (ex->comp_mask & ~known ||
	    (ex->comp_mask & IBV_SRQ_INIT_ATTR_TYPE && ex->srq_type != IBV_SRQT_BASIC))
		return vd_fail(EOPNOTSUPP);
	/* The extended form begins like the plain one. */
	return rdma_create_srq(id, ex->comp_mask & IBV_SRQ_INIT_ATTR_PD ? ex->pd : NULL,
			       (struct ibv_srq_init_attr *)ex);
}

VD_API void rdma_destroy_srq(struct rdma_cm_id *id)
{
	/* While queue pairs use it, it stays. */
	if (id->srq && !vd_front.destroy_srq(id->srq))
		id->srq = NULL;
}
