/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Limits of the devices of a profile, enforced as drivers do: one object too many is ENOMEM, more
 * than an object can have EINVAL.  They are counted in this process; an adapter counts for the host.
 */
#include "edge/ed.h"
#include "verbs/ib/vd_qp.h"
#include "verbs/vd_strict.h"
#include <errno.h>

static uint64_t limit_of(const struct ibv_context *ctx, enum vp_limit what)
{
	const struct vp_device *d = ed_device_of(ctx->device);

	return d ? vp_limit(d, what, UINT64_MAX) : UINT64_MAX;
}

static uint64_t get_read_limit(const struct ibv_context *ctx, enum vp_limit what)
{
	const uint64_t n = limit_of(ctx, what);

	return n < VD_MAX_RD ? n : VD_MAX_RD;
}

static unsigned *get_limit_count(const struct ibv_context *ctx, enum vp_limit what)
{
	return &ed.count[vd_device_index(ctx->device)][what];
}

int ed_take(struct ibv_context *ctx, enum vp_limit what)
{
	unsigned n;

	if (!ed_profiled())
		return 0;
	n = __atomic_add_fetch(get_limit_count(ctx, what), 1, __ATOMIC_RELAXED);
	if (n <= limit_of(ctx, what))
		return 0;
	__atomic_sub_fetch(get_limit_count(ctx, what), 1, __ATOMIC_RELAXED);
	return ENOMEM;
}

void ed_give(struct ibv_context *ctx, enum vp_limit what)
{
	if (ed_profiled() && !vd_is_inherited(ctx))
		__atomic_sub_fetch(get_limit_count(ctx, what), 1, __ATOMIC_RELAXED);
}

int ed_check(const struct ibv_context *ctx, enum vp_limit what, uint64_t wanted)
{
	return ed_profiled() && wanted > limit_of(ctx, what) ? EINVAL : 0;
}

static int check_qp_sizes(struct ibv_context *ctx, const struct ibv_qp_cap *cap, bool srq)
{
	const struct ibv_qp_cap used = vd_cap_used(cap, srq);
	int err = ed_check(ctx, VP_MAX_QP_WR, used.max_send_wr);

	err = err ? err : ed_check(ctx, VP_MAX_SGE, used.max_send_sge);
	err = err ? err : ed_check(ctx, VP_MAX_INLINE, used.max_inline_data);
	err = err ? err : ed_check(ctx, VP_MAX_QP_WR, used.max_recv_wr);
	return err ? err : ed_check(ctx, VP_MAX_SGE, used.max_recv_sge);
}

int ed_check_qp(struct ibv_context *ctx, const struct ibv_qp_cap *cap, enum ibv_qp_type type,
		bool srq)
{
	int err = ed_strict_type(ctx, type);

	if (err)
		return err;
	err = check_qp_sizes(ctx, cap, srq);
	if (err && ed.strict)
		return vd_strict_refuse(
			VD_STRICT_SIZE, err,
			"a queue pair of %u and %u requests, %u and %u pieces, %u octets inline: "
			"more than adapters have, or than the profile says",
			cap->max_send_wr, cap->max_recv_wr, cap->max_send_sge, cap->max_recv_sge,
			cap->max_inline_data);
	return err;
}

/* librdmacm refuses a connection of more Reads than the device says; 255 means what there is. */
int ed_check_conn(const struct rdma_cm_id *id, const struct rdma_conn_param *conn)
{
	uint64_t in, out;

	if (!ed.strict || !conn || !id->verbs || id->ps != RDMA_PS_TCP)
		return 0;
	in = get_read_limit(id->verbs, VP_MAX_QP_RD_ATOM);
	out = get_read_limit(id->verbs, VP_MAX_QP_INIT_RD_ATOM);
	if ((conn->responder_resources == RDMA_MAX_RESP_RES || conn->responder_resources <= in) &&
	    (conn->initiator_depth == RDMA_MAX_INIT_DEPTH || conn->initiator_depth <= out))
		return 0;
	return vd_strict_refuse(VD_STRICT_READ_DEPTH, EINVAL,
				"a connection with %u and %u Reads: the device has %llu and %llu",
				conn->responder_resources, conn->initiator_depth,
				(unsigned long long)in, (unsigned long long)out);
}

void ed_granted(struct ibv_qp *qp, struct ibv_qp_cap *cap)
{
	struct vd_qp *v = vd_of(qp, struct vd_qp, qp.qp_base);
	uint64_t most = limit_of(qp->context, VP_MAX_INLINE);

	if (most >= v->init.cap.max_inline_data)
		return;
	v->init.cap.max_inline_data = (uint32_t)most;
	cap->max_inline_data = (uint32_t)most;
}

/* The drop-in has one port; which of a profile's it is makes no difference to it. */
int ed_check_modify(struct ibv_qp *qp, struct ibv_qp_attr *attr, int mask)
{
	int err = 0;

	if (mask & IBV_QP_PORT) {
		if (!attr->port_num || attr->port_num > vd_port_count(qp->context))
			return EINVAL;
		attr->port_num = 1;
	}
	if (mask & IBV_QP_MAX_QP_RD_ATOMIC)
		err = ed_check(qp->context, VP_MAX_QP_INIT_RD_ATOM, attr->max_rd_atomic);
	if (!err && mask & IBV_QP_MAX_DEST_RD_ATOMIC)
		err = ed_check(qp->context, VP_MAX_QP_RD_ATOM, attr->max_dest_rd_atomic);
	return err;
}

struct rdma_conn_param *ed_clamp(const struct rdma_cm_id *id, struct rdma_conn_param *conn,
				 struct rdma_conn_param *to)
{
	uint64_t in, out;

	if (!conn || !id->verbs || !ed_profiled())
		return conn;
	in = limit_of(id->verbs, VP_MAX_QP_RD_ATOM);
	out = limit_of(id->verbs, VP_MAX_QP_INIT_RD_ATOM);
	*to = *conn;
	if (to->responder_resources > in)
		to->responder_resources = (uint8_t)in;
	if (to->initiator_depth > out)
		to->initiator_depth = (uint8_t)out;
	return to;
}
