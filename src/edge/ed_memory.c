/* SPDX-License-Identifier: BSD-2-Clause */
/* Memory that a program registers or changes: the same limits hold for each way to do it. */
#include "edge/ed.h"
#include <errno.h>

/* Of memory of any kind, new or changed. */
static int check_edge_region(const struct ibv_context *ctx, size_t len, unsigned access)
{
	const struct vp_device *d = ed_profiled() ? ed_device_of(ctx->device) : NULL;

	if (d && !d->atomics && access & IBV_ACCESS_REMOTE_ATOMIC)
		return EOPNOTSUPP;
	return ed_check(ctx, VP_MAX_MR_SIZE, len);
}

/* What all forms of it ask. */
static int before_reg(struct ibv_pd *pd, const void *addr, size_t len, unsigned access)
{
	SUBJECT(.ctx = pd->context);
	int err = ASK(ibv_reg_mr);

	err = err ? err : check_edge_region(pd->context, len, access);
	if (!err && !(access & IBV_ACCESS_ON_DEMAND))
		err = ed_pin(pd->context, NULL, addr, len);
	return err ? err : ed_take(pd->context, VP_MAX_MR);
}

static struct ibv_mr *registered(struct ibv_pd *pd, struct ibv_mr *mr, unsigned access)
{
	if (!mr)
		ed_give(pd->context, VP_MAX_MR);
	else if (ck_on())
		ck_registered(mr, access);
	return mr;
}

VD_API struct ibv_mr *ibv_reg_mr(struct ibv_pd *pd, void *addr, size_t len, int access)
{
	int err = before_reg(pd, addr, len, (unsigned)access);

	if (!err)
		return registered(pd, vdi_ibv_reg_mr(pd, addr, len, access), (unsigned)access);
	errno = err;
	return NULL;
}

VD_API struct ibv_mr *ibv_reg_mr_iova2(struct ibv_pd *pd, void *addr, size_t len, uint64_t iova,
				       unsigned int access)
{
	int err = before_reg(pd, addr, len, access);

	if (!err)
		return registered(pd, vdi_ibv_reg_mr_iova2(pd, addr, len, iova, access), access);
	errno = err;
	return NULL;
}

VD_API struct ibv_mr *ibv_reg_mr_iova(struct ibv_pd *pd, void *addr, size_t len, uint64_t iova,
				      int access)
{
	return ibv_reg_mr_iova2(pd, addr, len, iova, (unsigned)access);
}

VD_API struct ibv_mr *ibv_reg_dmabuf_mr(struct ibv_pd *pd, uint64_t offset, size_t len,
					uint64_t iova, int fd, int access)
{
	int err = check_edge_region(pd->context, len, (unsigned)access);

	err = err ? err : ed_take(pd->context, VP_MAX_MR);
	if (!err)
		return registered(pd, vdi_ibv_reg_dmabuf_mr(pd, offset, len, iova, fd, access),
				  (unsigned)access);
	errno = err;
	return NULL;
}

/* The device's own memory: nothing is pinned. */
struct ibv_mr *ed_reg_dm_mr(struct ibv_pd *pd, struct ibv_dm *dm, uint64_t off, size_t len,
			    unsigned access)
{
	int err = check_edge_region(pd->context, len, access);

	err = err ? err : ed_take(pd->context, VP_MAX_MR);
	if (!err)
		return registered(pd, ed.reg_dm_mr(pd, dm, off, len, access), access);
	errno = err;
	return NULL;
}

/* What it is to be, as if it were new. */
static int check_change(struct ibv_mr *mr, int flags, const void *addr, size_t len, unsigned access)
{
	const bool moved = flags & IBV_REREG_MR_CHANGE_TRANSLATION;
	const unsigned now =
		flags & IBV_REREG_MR_CHANGE_ACCESS ? access : vd_of(mr, struct vd_mr, mr)->access;
	int err = check_edge_region(mr->context, moved ? len : mr->length, now);

	if (err || now & IBV_ACCESS_ON_DEMAND || (!moved && !mr->addr))
		return err;
	return ed_pin(mr->context, mr, moved ? addr : mr->addr, moved ? len : mr->length);
}

VD_API int ibv_rereg_mr(struct ibv_mr *mr, int flags, struct ibv_pd *pd, void *addr, size_t len,
			int access)
{
	SUBJECT(.ctx = mr->context);
	int err = ASK(ibv_rereg_mr);

	if (err) {
		errno = err;
		return IBV_REREG_MR_ERR_CMD;
	}
	err = check_change(mr, flags, addr, len, (unsigned)access);
	if (err) {
		errno = err;
		return IBV_REREG_MR_ERR_INPUT;
	}
	err = vdi_ibv_rereg_mr(mr, flags, pd, addr, len, access);
	if (!err && ck_on())
		ck_reregistered(mr, vd_of(mr, struct vd_mr, mr)->access);
	return err;
}

VD_API int ibv_dereg_mr(struct ibv_mr *mr)
{
	struct ibv_context *ctx = mr->context;
	SUBJECT(.ctx = ctx);
	struct ck_region *known = NULL;
	int err = ASK(ibv_dereg_mr);

	if (!err && ck_on())
		known = ck_deregister(mr);
	err = err ? err : vdi_ibv_dereg_mr(mr);
	if (err)
		return err;
	ck_deregistered(known);
	ed_give(ctx, VP_MAX_MR);
	return 0;
}
