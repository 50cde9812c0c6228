/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What a queue pair of InfiniBand may be told on its way from state to state: IBA's table, and which
 * values an attribute takes.  The RoCE face keeps it; drivers of RNICs ask for none of it.
 */
#include "verbs/ib/vd_qp.h"
#include <errno.h>

enum vd_kind { KIND_RC, KIND_UC, KIND_UD, KINDS };

struct vd_step {
	enum ibv_qp_state from, to;
	struct {
		int must, may; /* beside IBV_QP_STATE */
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
	 IBV_ACCESS_ON_DEMAND | IBV_ACCESS_HUGETLB | IBV_ACCESS_RELAXED_ORDERING)

static enum vd_kind kind_of(const struct vd_qp *qp)
{
	if (qp->init.qp_type == IBV_QPT_UD)
		return KIND_UD;
	return qp->init.qp_type == IBV_QPT_UC ? KIND_UC : KIND_RC;
}

static int check_step(const struct vd_qp *qp, enum ibv_qp_state to, int mask)
{
	const enum ibv_qp_state now = qp->qp.qp_base.state;
	const int given = mask & ~IBV_QP_STATE;
	const enum vd_kind kind = kind_of(qp);

	if (to == IBV_QPS_RESET || to == IBV_QPS_ERR)
		return given ? EINVAL : 0;
	for (size_t i = 0; i < sizeof steps / sizeof *steps; i++) {
		const int must = steps[i].attr[kind].must, may = steps[i].attr[kind].may;

		if (steps[i].from == now && steps[i].to == to)
			return (given & must) != must || given & ~(must | may) ? EINVAL : 0;
	}
	return EINVAL;
}

static bool is_path_bad(const struct ibv_ah_attr *ah)
{
	return !ah->is_global || ah->grh.sgid_index >= VD_GIDS || ah->port_num != 1;
}

/* The bits that an attribute has on the wire, and what the device says that it can. */
static int check_values(const struct ibv_qp_attr *attr, int mask)
{
	if ((mask & IBV_QP_AV && is_path_bad(&attr->ah_attr)) ||
	    (mask & IBV_QP_PATH_MTU &&
	     (attr->path_mtu < IBV_MTU_256 || attr->path_mtu > IBV_MTU_4096)) ||
	    (mask & IBV_QP_ACCESS_FLAGS && attr->qp_access_flags & ~(unsigned)ACCESS_KNOWN) ||
	    (mask & IBV_QP_MAX_DEST_RD_ATOMIC && attr->max_dest_rd_atomic > VD_MAX_RD) ||
	    (mask & IBV_QP_MAX_QP_RD_ATOMIC && attr->max_rd_atomic > VD_MAX_RD) ||
	    (mask & IBV_QP_MIN_RNR_TIMER && attr->min_rnr_timer > 31) ||
	    (mask & IBV_QP_TIMEOUT && attr->timeout > 31) ||
	    (mask & IBV_QP_RETRY_CNT && attr->retry_cnt > 7) ||
	    (mask & IBV_QP_RNR_RETRY && attr->rnr_retry > 7))
		return EINVAL;
	return 0;
}

bool vd_rules_bind(const struct vd_qp *qp)
{
	bool own = qp->ud ? !qp->id : qp->oob && !qp->lent && !qp->by_cm;

	return own && ed_is_roce(qp->qp.qp_base.context);
}

int vd_rules_check(const struct vd_qp *qp, const struct ibv_qp_attr *attr, int mask)
{
	const enum ibv_qp_state now = qp->qp.qp_base.state;
	int err;

	/* What rdma_init_qp_attr has named is the connection manager's. */
	if (!vd_rules_bind(qp) || (!qp->ud && mask == VD_QP_ATTR_MASK))
		return 0;
	if (mask & IBV_QP_CUR_STATE && attr->cur_qp_state != now)
		return EINVAL;
	err = check_step(qp, mask & IBV_QP_STATE ? attr->qp_state : now, mask);
	return err ? err : check_values(attr, mask);
}
