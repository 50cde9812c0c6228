/* SPDX-License-Identifier: BSD-2-Clause */
/* The calls of libibverbs that rules can name: each asks, and is made or not. */
#include "edge/ed.h"
#include <errno.h>
#include <stdlib.h>
#include <string.h>

/* One that returns an object or NULL; __VA_ARGS__ is what it is about. */
#define POINTER(type, name, params, args, ...)                                                     \
	VD_API type name params                                                                    \
	{                                                                                          \
		SUBJECT(__VA_ARGS__);                                                              \
		int err = ASK(name);                                                               \
                                                                                                   \
		if (!err)                                                                          \
			return vdi_##name args;                                                    \
		errno = err;                                                                       \
		return NULL;                                                                       \
	}

/* The same, and there may be a profile that counts them. */
#define COUNTED(type, name, limit, context, params, args)                                          \
	VD_API type name params                                                                    \
	{                                                                                          \
		SUBJECT(.ctx = (context));                                                         \
		int err = ASK(name);                                                               \
		type made;                                                                         \
                                                                                                   \
		err = err ? err : ed_take(context, limit);                                         \
		if (err) {                                                                         \
			errno = err;                                                               \
			return NULL;                                                               \
		}                                                                                  \
		made = vdi_##name args;                                                            \
		if (!made)                                                                         \
			ed_give(context, limit);                                                   \
		return made;                                                                       \
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
	struct ibv_device **list;

	if (err) {
		if (num)
			*num = 0;
		errno = err;
		return NULL;
	}
	list = ed_profiled() ? ed_device_list(num) : vdi_ibv_get_device_list(num);
	if (num && ed_is_removed())
		*num = 0;
	if (list && ed_is_removed())
		list[0] = NULL;
	return list;
}

POINTER(struct ibv_context *, ibv_open_device, (struct ibv_device * device), (device), 0)

VD_API int ibv_query_device(struct ibv_context *ctx, struct ibv_device_attr *attr)
{
	SUBJECT(.ctx = ctx);
	int err = ASK(ibv_query_device);

	err = err ? err : vdi_ibv_query_device(ctx, attr);
	if (!err && ed_profiled())
		ed_show_device(ctx, attr);
	return err;
}

/* The old form ends before the members that were added later. */
VD_API int ibv_query_port(struct ibv_context *ctx, uint8_t port, struct _compat_ibv_port_attr *attr)
{
	SUBJECT(.ctx = ctx);
	int err = ASK(ibv_query_port);

	if (err || !ed_profiled())
		return err ? err : vdi_ibv_query_port(ctx, port, attr);
	return ed_show_port(ctx, port, (struct ibv_port_attr *)attr,
			    offsetof(struct ibv_port_attr, port_cap_flags2));
}

VD_API int ibv_query_gid(struct ibv_context *ctx, uint8_t port, int index, union ibv_gid *gid)
{
	SUBJECT(.ctx = ctx);
	int err = ASK(ibv_query_gid);
	struct ibv_gid_entry e;

	if (err || !ed_profiled())
		return err ? vd_fail(err) : vdi_ibv_query_gid(ctx, port, index, gid);
	err = ed_show_gid(ctx, port, (unsigned)index, &e);
	if (err && err != ENODATA)
		return vd_fail(err);
	if (err) /* as ports without an address have it */
		memset(&e.gid, 0, sizeof e.gid);
	*gid = e.gid;
	return 0;
}

/* ---- protection domains ---- */

COUNTED(struct ibv_pd *, ibv_alloc_pd, VP_MAX_PD, ctx, (struct ibv_context * ctx), (ctx))

VD_API int ibv_dealloc_pd(struct ibv_pd *pd)
{
	struct ibv_context *ctx = pd->context;
	const bool other_name = vd_of(pd, struct vd_pd, pd)->of; /* which was not counted */
	int err = vdi_ibv_dealloc_pd(pd);

	if (!err && !other_name)
		ed_give(ctx, VP_MAX_PD);
	return err;
}

/* ---- queues ---- */

POINTER(struct ibv_comp_channel *, ibv_create_comp_channel, (struct ibv_context * ctx), (ctx),
	.ctx = ctx)
static int take_cq(struct ibv_context *ctx, unsigned cqe)
{
	int err = ed_check(ctx, VP_MAX_CQE, cqe);

	return err ? err : ed_take(ctx, VP_MAX_CQ);
}

struct ibv_cq *ed_make_cq(struct ibv_context *ctx, int cqe, void *user, struct ibv_comp_channel *ch,
			  int vector)
{
	int err = take_cq(ctx, (unsigned)cqe);
	struct ibv_cq *cq = err ? NULL : vdi_ibv_create_cq(ctx, cqe, user, ch, vector);

	if (err)
		errno = err;
	else if (!cq)
		ed_give(ctx, VP_MAX_CQ);
	return cq;
}

VD_API struct ibv_cq *ibv_create_cq(struct ibv_context *ctx, int cqe, void *user,
				    struct ibv_comp_channel *ch, int vector)
{
	SUBJECT(.ctx = ctx);
	int err = ASK(ibv_create_cq);

	if (!err)
		return ed_make_cq(ctx, cqe, user, ch, vector);
	errno = err;
	return NULL;
}

static struct ibv_cq_ex *create_cq_ex(struct ibv_context *ctx, struct ibv_cq_init_attr_ex *attr)
{
	SUBJECT(.ctx = ctx);
	int err = ASK(ibv_create_cq);
	struct ibv_cq_ex *cq;

	err = err ? err : take_cq(ctx, attr->cqe);
	cq = err ? NULL : ed.create_cq_ex(ctx, attr);
	if (err)
		errno = err;
	else if (!cq)
		ed_give(ctx, VP_MAX_CQ);
	return cq;
}

VD_API int ibv_resize_cq(struct ibv_cq *cq, int cqe)
{
	SUBJECT(.ctx = cq->context, .cq = cq);
	int err = ASK(ibv_resize_cq);

	err = err ? err : ed_check(cq->context, VP_MAX_CQE, (unsigned)cqe);
	return err ? err : vdi_ibv_resize_cq(cq, cqe);
}

struct ibv_srq *ed_make_srq(struct ibv_pd *pd, struct ibv_srq_init_attr *init)
{
	struct ibv_context *ctx = pd->context;
	int err = ed_check(ctx, VP_MAX_SRQ_WR, init->attr.max_wr);
	struct ibv_srq *srq;

	err = err ? err : ed_check(ctx, VP_MAX_SRQ_SGE, init->attr.max_sge);
	err = err ? err : ed_take(ctx, VP_MAX_SRQ);
	if (err) {
		errno = err;
		return NULL;
	}
	srq = vdi_ibv_create_srq(pd, init);
	if (!srq)
		ed_give(ctx, VP_MAX_SRQ);
	return srq;
}

VD_API struct ibv_srq *ibv_create_srq(struct ibv_pd *pd, struct ibv_srq_init_attr *init)
{
	SUBJECT(.ctx = pd->context);
	int err = ASK(ibv_create_srq);

	if (!err)
		return ed_make_srq(pd, init);
	errno = err;
	return NULL;
}

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
	struct ibv_context *ctx = cq->context;
	struct ed_cq *known = ed_on() ? ed_cq_leave(cq) : NULL;
	int err = vdi_ibv_destroy_cq(cq);

	if (err) {
		ed_cq_stays(known);
		return err;
	}
	ed_cq_free(known);
	ed_give(ctx, VP_MAX_CQ);
	return 0;
}

VD_API int ibv_destroy_srq(struct ibv_srq *srq)
{
	struct ibv_context *ctx = srq->context;
	struct ed_srq *known = ed_on() ? ed_srq_leave(srq) : NULL;
	int err = vdi_ibv_destroy_srq(srq);

	if (err) {
		ed_srq_stays(known);
		return err;
	}
	ed_srq_free(known);
	ed_give(ctx, VP_MAX_SRQ);
	return 0;
}

/* ---- queue pairs ---- */

static int ask_about_qp(enum vf_point point, struct ibv_qp *qp)
{
	struct ed_qp *q = ed_qp_of(qp);
	SUBJECT(.qp = q, .ctx = qp->context);
	int err = ed_call(point, &s);

	ed_qp_done(q);
	return err;
}

static int ask_before_qp(struct ibv_context *ctx, const struct ibv_qp_cap *cap,
			 enum ibv_qp_type type, bool srq)
{
	SUBJECT(.ctx = ctx);
	int err = ASK(ibv_create_qp);

	if (ck_on())
		ck_qp_asked(cap, srq);
	err = err ? err : ed_check_qp(ctx, cap, type, srq);
	return err ? err : ed_take(ctx, VP_MAX_QP);
}

static struct ibv_qp *note_made_qp(struct ibv_context *ctx, struct ibv_qp *qp,
				   struct ibv_qp_cap *cap)
{
	if (!qp)
		ed_give(ctx, VP_MAX_QP);
	else if (ed_profiled())
		ed_granted(qp, cap);
	if (qp && ed_on())
		ed_qp_new(qp);
	return qp;
}

VD_API struct ibv_qp *ibv_create_qp(struct ibv_pd *pd, struct ibv_qp_init_attr *attr)
{
	int err = ask_before_qp(pd->context, &attr->cap, attr->qp_type, attr->srq);

	if (!err)
		return note_made_qp(pd->context, vdi_ibv_create_qp(pd, attr), &attr->cap);
	errno = err;
	return NULL;
}

static struct ibv_qp *create_qp_ex(struct ibv_context *ctx, struct ibv_qp_init_attr_ex *attr)
{
	int err = ask_before_qp(ctx, &attr->cap, attr->qp_type, attr->srq);

	if (!err)
		return note_made_qp(ctx, ed.create_qp_ex(ctx, attr), &attr->cap);
	errno = err;
	return NULL;
}

VD_API int ibv_modify_qp(struct ibv_qp *qp, struct ibv_qp_attr *attr, int mask)
{
	int err = ed_on() ? ask_about_qp(VF_ibv_modify_qp, qp) : 0;
	struct ibv_qp_attr one;

	if (!err && ck_on())
		ck_modify(qp, attr, mask);
	if (!err && ed_profiled()) {
		one = *attr;
		attr = &one;
		err = ed_check_modify(qp, attr, mask);
	}
	err = err ? err : vdi_ibv_modify_qp(qp, attr, mask);
	if (!err && ed_on() && mask & IBV_QP_STATE && attr->qp_state == IBV_QPS_RESET)
		ed_depth_anew(qp);
	if (!err && mask & IBV_QP_STATE)
		ed_rnr_begins();
	return err;
}

VD_API int ibv_query_qp(struct ibv_qp *qp, struct ibv_qp_attr *attr, int mask,
			struct ibv_qp_init_attr *init)
{
	int err = ed_on() ? ask_about_qp(VF_ibv_query_qp, qp) : 0;

	return err ? err : vdi_ibv_query_qp(qp, attr, mask, init);
}

VD_API int ibv_destroy_qp(struct ibv_qp *qp)
{
	struct ibv_context *ctx = qp->context;
	int err;

	if (ck_on())
		ck_unpolled(qp);
	if (ed_on())
		ed_qp_gone(qp);
	err = vdi_ibv_destroy_qp(qp);
	if (!err)
		ed_give(ctx, VP_MAX_QP);
	else if (ed_on())
		ed_qp_new(qp);
	return err;
}

/* ---- what programs call through the context ---- */

static int ask_query_port(struct ibv_context *ctx, uint8_t port, struct ibv_port_attr *attr,
			  size_t len)
{
	SUBJECT(.ctx = ctx);
	int err = ASK(ibv_query_port);

	if (!err)
		err = ed_show_port(ctx, port, attr, len);
	if (!err && __atomic_load_n(&ed.port_down, __ATOMIC_RELAXED)) {
		attr->state = IBV_PORT_DOWN;
		attr->phys_state = 3; /* Disabled */
	}
	return err;
}

void ed_dress(struct ibv_context *ctx)
{
	struct vd_context *c = vd_of(ctx, struct vd_context, v.context);

	ed.query_port = c->v.query_port;
	ed.create_qp_ex = c->v.create_qp_ex;
	ed.create_cq_ex = c->v.create_cq_ex;
	ed.reg_dm_mr = c->v.reg_dm_mr;
	c->v.query_port = ask_query_port;
	c->v.create_qp_ex = create_qp_ex;
	c->v.create_cq_ex = create_cq_ex;
	c->v.reg_dm_mr = ed_reg_dm_mr;
	if (ed_profiled())
		ed_profile_dress(c);
	if (!ed_on())
		return;
	ctx->ops.poll_cq = ed_poll_cq;
	ctx->ops.req_notify_cq = ed_req_notify_cq;
	ctx->ops.post_send = ed_post_send;
	ctx->ops.post_recv = ed_post_recv;
	ctx->ops.post_srq_recv = ed_post_srq_recv;
	ed_clock_wake(); /* rules with "at" */
}
