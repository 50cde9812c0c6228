/* SPDX-License-Identifier: BSD-2-Clause */
/* The calls of libibverbs that rules can name: each asks, and is made or not. */
#include "verbs/edge/ed.h"
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#define SUBJECT(...) const struct ed_subject s = { .opcode = VF_NOT_SAID, __VA_ARGS__ }
#define ASK(name)    (ed_on() ? ed_call(VF_##name, &s) : 0)

/* One that returns an object or NULL; __VA_ARGS__ is what it is about. */
#define POINTER(type, name, params, args, ...)                                                     \
	VD_API type *name params                                                                   \
	{                                                                                          \
		SUBJECT(__VA_ARGS__);                                                              \
		int err = ASK(name);                                                               \
                                                                                                   \
		if (!err)                                                                          \
			return vdi_##name args;                                                    \
		errno = err;                                                                       \
		return NULL;                                                                       \
	}

/* One that returns 0 or an errno value. */
#define NUMBER(name, params, args, ...)                                                            \
	VD_API int name params                                                                     \
	{                                                                                          \
		SUBJECT(__VA_ARGS__);                                                              \
		int err = ASK(name);                                                               \
                                                                                                   \
		return err ? err : vdi_##name args;                                                \
	}

/* ---- the device ---- */

VD_API struct ibv_device **ibv_get_device_list(int *num)
{
	SUBJECT(0);
	int err = ASK(ibv_get_device_list);
	struct ibv_device **list = err ? NULL : vdi_ibv_get_device_list(num);

	if (err)
		errno = err;
	if (num && (err || ed.removed))
		*num = 0;
	if (list && ed.removed)
		list[0] = NULL;
	return list;
}

POINTER(struct ibv_context, ibv_open_device, (struct ibv_device * device), (device), 0)
NUMBER(ibv_query_device, (struct ibv_context * ctx, struct ibv_device_attr *attr), (ctx, attr),
       .ctx = ctx)
NUMBER(ibv_query_port, (struct ibv_context * ctx, uint8_t port, struct _compat_ibv_port_attr *attr),
       (ctx, port, attr), .ctx = ctx)

VD_API int ibv_query_gid(struct ibv_context *ctx, uint8_t port, int index, union ibv_gid *gid)
{
	SUBJECT(.ctx = ctx);
	int err = ASK(ibv_query_gid);

	return err ? vd_fail(err) : vdi_ibv_query_gid(ctx, port, index, gid);
}

/* ---- memory ---- */

POINTER(struct ibv_pd, ibv_alloc_pd, (struct ibv_context * ctx), (ctx), .ctx = ctx)
POINTER(struct ibv_mr, ibv_reg_mr, (struct ibv_pd * pd, void *addr, size_t len, int access),
	(pd, addr, len, access), .ctx = pd->context)

/* Two more forms of the same. */
VD_API struct ibv_mr *ibv_reg_mr_iova2(struct ibv_pd *pd, void *addr, size_t len, uint64_t iova,
				       unsigned int access)
{
	SUBJECT(.ctx = pd->context);
	int err = ASK(ibv_reg_mr);

	if (!err)
		return vdi_ibv_reg_mr_iova2(pd, addr, len, iova, access);
	errno = err;
	return NULL;
}

VD_API struct ibv_mr *ibv_reg_mr_iova(struct ibv_pd *pd, void *addr, size_t len, uint64_t iova,
				      int access)
{
	return ibv_reg_mr_iova2(pd, addr, len, iova, (unsigned)access);
}

VD_API int ibv_rereg_mr(struct ibv_mr *mr, int flags, struct ibv_pd *pd, void *addr, size_t len,
			int access)
{
	SUBJECT(.ctx = mr->context);
	int err = ASK(ibv_rereg_mr);

	if (!err)
		return vdi_ibv_rereg_mr(mr, flags, pd, addr, len, access);
	errno = err;
	return IBV_REREG_MR_ERR_CMD;
}

NUMBER(ibv_dereg_mr, (struct ibv_mr * mr), (mr), .ctx = mr->context)

/* ---- queues ---- */

POINTER(struct ibv_comp_channel, ibv_create_comp_channel, (struct ibv_context * ctx), (ctx),
	.ctx = ctx)
POINTER(struct ibv_cq, ibv_create_cq,
	(struct ibv_context * ctx, int cqe, void *user, struct ibv_comp_channel *ch, int vector),
	(ctx, cqe, user, ch, vector), .ctx = ctx)
NUMBER(ibv_resize_cq, (struct ibv_cq * cq, int cqe), (cq, cqe), .ctx = cq->context, .cq = cq)
POINTER(struct ibv_srq, ibv_create_srq, (struct ibv_pd * pd, struct ibv_srq_init_attr *init),
	(pd, init), .ctx = pd->context)
NUMBER(ibv_modify_srq, (struct ibv_srq * srq, struct ibv_srq_attr *attr, int mask),
       (srq, attr, mask), .ctx = srq->context, .srq = srq)

VD_API int ibv_get_cq_event(struct ibv_comp_channel *c, struct ibv_cq **cq, void **context)
{
	SUBJECT(.ctx = c->context);
	int err = ASK(ibv_get_cq_event);

	return err ? vd_fail(err) : vdi_ibv_get_cq_event(c, cq, context);
}

VD_API int ibv_destroy_cq(struct ibv_cq *cq)
{
	if (ed_on())
		ed_cq_gone(cq);
	return vdi_ibv_destroy_cq(cq);
}

VD_API int ibv_destroy_srq(struct ibv_srq *srq)
{
	if (ed_on())
		ed_srq_gone(srq);
	return vdi_ibv_destroy_srq(srq);
}

/* ---- queue pairs ---- */

static int ask_qp(enum vf_point point, struct ibv_qp *qp)
{
	struct ed_qp *q = ed_qp_of(qp);
	SUBJECT(.qp = q, .ctx = qp->context);
	int err = ed_call(point, &s);

	ed_qp_done(q);
	return err;
}

VD_API struct ibv_qp *ibv_create_qp(struct ibv_pd *pd, struct ibv_qp_init_attr *attr)
{
	SUBJECT(.ctx = pd->context);
	int err = ASK(ibv_create_qp);
	struct ibv_qp *qp = err ? NULL : vdi_ibv_create_qp(pd, attr);

	if (err)
		errno = err;
	if (qp && ed_on())
		ed_qp_new(qp);
	return qp;
}

static struct ibv_qp *create_qp_ex(struct ibv_context *ctx, struct ibv_qp_init_attr_ex *attr)
{
	SUBJECT(.ctx = ctx);
	int err = ASK(ibv_create_qp);
	struct ibv_qp *qp = err ? NULL : ed.create_qp_ex(ctx, attr);

	if (err)
		errno = err;
	if (qp)
		ed_qp_new(qp);
	return qp;
}

VD_API int ibv_modify_qp(struct ibv_qp *qp, struct ibv_qp_attr *attr, int mask)
{
	int err = ed_on() ? ask_qp(VF_ibv_modify_qp, qp) : 0;

	return err ? err : vdi_ibv_modify_qp(qp, attr, mask);
}

VD_API int ibv_query_qp(struct ibv_qp *qp, struct ibv_qp_attr *attr, int mask,
			struct ibv_qp_init_attr *init)
{
	int err = ed_on() ? ask_qp(VF_ibv_query_qp, qp) : 0;

	return err ? err : vdi_ibv_query_qp(qp, attr, mask, init);
}

VD_API int ibv_destroy_qp(struct ibv_qp *qp)
{
	int err;

	if (ed_on())
		ed_qp_gone(qp);
	err = vdi_ibv_destroy_qp(qp);
	if (err && ed_on())
		ed_qp_new(qp);
	return err;
}

/* ---- what programs call through the context ---- */

static int query_port(struct ibv_context *ctx, uint8_t port, struct ibv_port_attr *attr, size_t len)
{
	SUBJECT(.ctx = ctx);
	int err = ed_call(VF_ibv_query_port, &s);

	if (!err)
		err = ed.query_port(ctx, port, attr, len);
	if (!err && ed.port_down) {
		attr->state = IBV_PORT_DOWN;
		attr->phys_state = 3; /* Disabled */
	}
	return err;
}

static int poll_cq(struct ibv_cq *cq, int n, struct ibv_wc *wc)
{
	return ed_poll_cq(cq, n, wc);
}

void ed_dress(struct ibv_context *ctx)
{
	struct vd_context *c = vd_of(ctx, struct vd_context, v.context);

	if (!ed.on)
		return;
	ed.query_port = c->v.query_port;
	ed.create_qp_ex = c->v.create_qp_ex;
	c->v.query_port = query_port;
	c->v.create_qp_ex = create_qp_ex;
	ctx->ops.poll_cq = poll_cq;
	ctx->ops.req_notify_cq = ed_req_notify_cq;
	ctx->ops.post_send = ed_post_send;
	ctx->ops.post_recv = ed_post_recv;
	ctx->ops.post_srq_recv = ed_post_srq_recv;
	ed_clock_wake(); /* rules with "at" */
}
