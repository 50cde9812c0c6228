/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What a queue pair of InfiniBand may be asked on its way from state to state: IBA's table, and which
 * values an attribute takes.  The RoCE face keeps it; drivers of RNICs ask for none of it.
 */
#include "verbs/ib/vd_flush.h"
#include "verbs/ib/vd_qp.h"
#include "verbs/vd_strict.h"
#include <errno.h>

enum vd_kind { KIND_RC, KIND_UC, KIND_UD, KINDS };

struct vd_step {
	enum ibv_qp_state from, to;
	struct {
		int must, may; /* in addition to IBV_QP_STATE */
	} attr[KINDS];
};

#define PLACE	 (IBV_QP_PKEY_INDEX | IBV_QP_PORT)
#define PATH	 (IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN | IBV_QP_RQ_PSN)
#define ANSWERS	 (IBV_QP_MAX_DEST_RD_ATOMIC | IBV_QP_MIN_RNR_TIMER)
#define TRIES	 (IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT | IBV_QP_RNR_RETRY | IBV_QP_MAX_QP_RD_ATOMIC)
#define OTHER	 (IBV_QP_ALT_PATH | IBV_QP_ACCESS_FLAGS)
#define RUNNING	 (IBV_QP_CUR_STATE | OTHER | IBV_QP_PATH_MIG_STATE)
#define RUN_UD	 (IBV_QP_CUR_STATE | IBV_QP_QKEY)
#define STOPPED	 (OTHER | IBV_QP_AV | IBV_QP_PKEY_INDEX | IBV_QP_PATH_MIG_STATE)
#define INDEX_UD (IBV_QP_PKEY_INDEX | IBV_QP_QKEY)

/* In each row: RC, UC, UD.  To RESET and ERR there is a way from everywhere, without attributes. */
static const struct vd_step steps[] = {
	{ IBV_QPS_RESET,
	  IBV_QPS_INIT,
	  { { PLACE | IBV_QP_ACCESS_FLAGS, 0 },
	    { PLACE | IBV_QP_ACCESS_FLAGS, 0 },
	    { PLACE | IBV_QP_QKEY, 0 } } },
	{ IBV_QPS_INIT,
	  IBV_QPS_INIT,
	  { { 0, PLACE | IBV_QP_ACCESS_FLAGS },
	    { 0, PLACE | IBV_QP_ACCESS_FLAGS },
	    { 0, PLACE | IBV_QP_QKEY } } },
	{ IBV_QPS_INIT,
	  IBV_QPS_RTR,
	  { { PATH | ANSWERS, OTHER | IBV_QP_PKEY_INDEX },
	    { PATH, OTHER | IBV_QP_PKEY_INDEX },
	    { 0, INDEX_UD } } },
	{ IBV_QPS_RTR,
	  IBV_QPS_RTS,
	  { { TRIES | IBV_QP_SQ_PSN, RUNNING | IBV_QP_MIN_RNR_TIMER },
	    { IBV_QP_SQ_PSN, RUNNING },
	    { IBV_QP_SQ_PSN, RUN_UD } } },
	{ IBV_QPS_RTS,
	  IBV_QPS_RTS,
	  { { 0, RUNNING | IBV_QP_MIN_RNR_TIMER }, { 0, RUNNING }, { 0, RUN_UD } } },
	{ IBV_QPS_RTS,
	  IBV_QPS_SQD,
	  { { 0, IBV_QP_EN_SQD_ASYNC_NOTIFY },
	    { 0, IBV_QP_EN_SQD_ASYNC_NOTIFY },
	    { 0, IBV_QP_EN_SQD_ASYNC_NOTIFY } } },
	{ IBV_QPS_SQD,
	  IBV_QPS_RTS,
	  { { 0, RUNNING | IBV_QP_MIN_RNR_TIMER }, { 0, RUNNING }, { 0, RUN_UD } } },
	{ IBV_QPS_SQD,
	  IBV_QPS_SQD,
	  { { 0, STOPPED | IBV_QP_PORT | TRIES | ANSWERS }, { 0, STOPPED }, { 0, INDEX_UD } } },
	{ IBV_QPS_SQE,
	  IBV_QPS_RTS,
	  { { 0, 0 }, { 0, IBV_QP_CUR_STATE | IBV_QP_ACCESS_FLAGS }, { 0, RUN_UD } } },
};

#define ACCESS_KNOWN                                                                               \
	(IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ |               \
	 IBV_ACCESS_REMOTE_ATOMIC | IBV_ACCESS_MW_BIND | IBV_ACCESS_ZERO_BASED |                   \
	 IBV_ACCESS_ON_DEMAND | IBV_ACCESS_HUGETLB | IBV_ACCESS_RELAXED_ORDERING |                 \
	 VD_ACCESS_FLUSH)

static enum vd_kind get_rules_kind(const struct vd_qp *qp)
{
	if (qp->init.qp_type == IBV_QPT_UD)
		return KIND_UD;
	return qp->init.qp_type == IBV_QPT_UC ? KIND_UC : KIND_RC;
}

static const char *against_step(enum vd_kind kind, enum ibv_qp_state now, enum ibv_qp_state to,
				int given)
{
	int must = 0, may = 0;
	size_t i = 0;

	if (to != IBV_QPS_RESET && to != IBV_QPS_ERR) {
		while (i < sizeof steps / sizeof *steps &&
		       (steps[i].from != now || steps[i].to != to))
			i++;
		if (i == sizeof steps / sizeof *steps)
			return "there is no such move";
		must = steps[i].attr[kind].must;
		may = steps[i].attr[kind].may;
	}
	if ((given & must) != must)
		return "an attribute is missing";
	return given & ~(must | may) ? "an attribute is not of this move" : NULL;
}

static bool is_path_bad(const struct vd_qp *qp, const struct ibv_ah_attr *ah)
{
	if (ah->is_global ? ah->grh.sgid_index >= VD_GIDS : !vd_has_lids(qp->qp.qp_base.context))
		return true;
	return !ah->port_num || ah->port_num > vd_port_count(qp->qp.qp_base.context);
}

/* The bits that an attribute has on the wire, and what the device says that it can. */
static const char *against_values(const struct vd_qp *qp, const struct ibv_qp_attr *attr, int mask)
{
	if (mask & IBV_QP_AV && is_path_bad(qp, &attr->ah_attr))
		return "the path's GID or port does not exist";
	if (mask & IBV_QP_PATH_MTU &&
	    (attr->path_mtu < IBV_MTU_256 || attr->path_mtu > IBV_MTU_4096))
		return "path_mtu is no MTU";
	if (mask & IBV_QP_ACCESS_FLAGS && attr->qp_access_flags & ~(unsigned)ACCESS_KNOWN)
		return "an access flag does not exist";
	if ((mask & IBV_QP_MAX_DEST_RD_ATOMIC && attr->max_dest_rd_atomic > VD_MAX_RD) ||
	    (mask & IBV_QP_MAX_QP_RD_ATOMIC && attr->max_rd_atomic > VD_MAX_RD))
		return "more Reads than the device has";
	if (mask & IBV_QP_MIN_RNR_TIMER && attr->min_rnr_timer > 31)
		return "min_rnr_timer is above 31";
	if (mask & IBV_QP_TIMEOUT && attr->timeout > 31)
		return "timeout is above 31";
	if ((mask & IBV_QP_RETRY_CNT && attr->retry_cnt > 7) ||
	    (mask & IBV_QP_RNR_RETRY && attr->rnr_retry > 7))
		return "more than 7 retries";
	return NULL;
}

bool vd_rules_concern(const struct vd_qp *qp)
{
	return qp->ud ? !qp->id : qp->oob && !qp->lent && !qp->by_cm;
}

bool vd_rules_bind(const struct vd_qp *qp)
{
	return vd_rules_concern(qp) && (vd_is_roce(qp->qp.qp_base.context) || vd_config()->strict);
}

/* On the iWARP face a session moves it, too. */
enum ibv_qp_state vd_rules_state(const struct vd_qp *qp)
{
	const enum ibv_qp_state now = qp->qp.qp_base.state;

	return now > IBV_QPS_SQD ? now : qp->said.qp_state;
}

/* What rdma_init_qp_attr has named is the connection manager's. */
static bool is_by_cm(const struct vd_qp *qp, const struct ibv_qp_attr *attr, int mask)
{
	return !qp->ud && mask == VD_QP_ATTR_MASK &&
	       !(attr->qp_state == IBV_QPS_INIT && vd_is_roce(qp->qp.qp_base.context));
}

const char *vd_rules_against(const struct vd_qp *qp, const struct ibv_qp_attr *attr, int mask)
{
	const enum ibv_qp_state now = vd_rules_state(qp);
	const char *what;

	if (!vd_rules_concern(qp) || is_by_cm(qp, attr, mask))
		return NULL;
	if (mask & IBV_QP_CUR_STATE && attr->cur_qp_state != now)
		return "cur_qp_state is another one";
	if (mask & IBV_QP_STATE && attr->qp_state == IBV_QPS_RTS && vd_config()->strict &&
	    !vd_is_roce(qp->qp.qp_base.context))
		return "on iWARP only rdma_cm connects a queue pair";
	what = against_step(get_rules_kind(qp), now, mask & IBV_QP_STATE ? attr->qp_state : now,
			    mask & ~IBV_QP_STATE);
	return what ? what : against_values(qp, attr, mask);
}

int vd_rules_refuse(const struct vd_qp *qp, const char *call, const char *why)
{
	if (!vd_config()->strict)
		return EINVAL;
	return vd_strict_refuse(VD_STRICT_QP_STATE, EINVAL, "%s, queue pair %#x in state %d: %s",
				call, qp->qp.qp_base.qp_num, (int)vd_rules_state(qp), why);
}
