/* SPDX-License-Identifier: BSD-2-Clause */
/* Memory windows: type 1 is every queue pair's of the domain, type 2 that of the one that binds it. */
#include "verbs/ib/vd_memory.h"
#include "verbs/vd.h"
#include <errno.h>
#include <stdlib.h>

struct ibv_mw *vd_alloc_mw(struct ibv_pd *pd, enum ibv_mw_type type)
{
	struct vd_mw *mw;
	int err;

	if (type != IBV_MW_TYPE_1 && type != IBV_MW_TYPE_2) {
		errno = EINVAL;
		return NULL;
	}
	mw = calloc(1, sizeof *mw);
	if (!mw)
		return NULL;
	err = ddps_mw_new(vd_of(pd, struct vd_pd, pd)->d, type == IBV_MW_TYPE_1, &mw->d);
	if (err) {
		free(mw);
		errno = vd_errno(err);
		return NULL;
	}
	mw->mw = (struct ibv_mw){ .context = pd->context,
				  .pd = pd,
				  .rkey = ddps_mr_stag(mw->d),
				  .handle = vd_number(),
				  .type = type };
	return &mw->mw;
}

int vd_dealloc_mw(struct ibv_mw *ibmw)
{
	struct vd_mw *mw = vd_of(ibmw, struct vd_mw, mw);
	int err;

	if (!vd_mine(vd_of(ibmw->context, struct vd_context, v.context)->p))
		return vd_refuse(EINVAL); /* the parent's, from before a fork */
	err = ddps_mr_dereg(mw->d);
	if (err)
		return vd_refuse(vd_errno(err));
	free(mw);
	return 0;
}

/* Type 1: the new key is the device's to choose, and what was bound before is not any more. */
int vd_bind_mw(struct ibv_qp *qp, struct ibv_mw *mw, struct ibv_mw_bind *bind)
{
	struct ibv_send_wr wr = { .wr_id = bind->wr_id,
				  .opcode = IBV_WR_BIND_MW,
				  .send_flags = bind->send_flags };
	struct ibv_send_wr *bad;
	int err;

	if (mw->type != IBV_MW_TYPE_1 || mw->pd != qp->pd)
		return EINVAL;
	wr.bind_mw.mw = mw;
	wr.bind_mw.rkey = ibv_inc_rkey(mw->rkey);
	wr.bind_mw.bind_info = bind->bind_info;
	err = vd_post_send(qp, &wr, &bad);
	if (!err)
		mw->rkey = wr.bind_mw.rkey;
	return err;
}
