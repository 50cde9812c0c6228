/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Device memory.  The device is this process, so its memory is ordinary memory: as much of it as is
 * said to be there, reached by copies and by regions whose offsets start at 0.
 */
#include "verbs/ib/vd_memory.h"
#include "verbs/vd.h"
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#define ALIGN	      4 /* of offsets and lengths of copies, as adapters want it */
#define LOG_ALIGN_MIN 6
#define LOG_ALIGN_MAX 21

struct vd_dm {
	struct ibv_dm dm;
	LIST_ENTRY(vd_dm) link; /* in vd_process.dms, if it has memory of its own */
	uint8_t *mem;
	size_t len;
	struct vd_dm *of;	/* whose memory it is: an imported one's */
	unsigned users;		/* atomic: regions, and such as have this one for @of */
	struct vd_process *own; /* a child of fork can have some by a context of its parent's */
};

static struct vd_dm *dm_of(struct ibv_dm *dm)
{
	return vd_of(dm, struct vd_dm, dm);
}

static bool is_within(const struct vd_dm *dm, uint64_t off, size_t len)
{
	return off <= dm->len && len <= dm->len - off && !(off % ALIGN) && !(len % ALIGN);
}

static int copy_to(struct ibv_dm *ibdm, uint64_t off, const void *from, size_t len)
{
	struct vd_dm *dm = dm_of(ibdm);

	if (!is_within(dm, off, len))
		return EINVAL;
	memcpy(dm->mem + off, from, len);
	return 0;
}

static int copy_from(void *to, struct ibv_dm *ibdm, uint64_t off, size_t len)
{
	struct vd_dm *dm = dm_of(ibdm);

	if (!is_within(dm, off, len))
		return EINVAL;
	memcpy(to, dm->mem + off, len);
	return 0;
}

static struct vd_dm *dm_new(struct ibv_context *ctx, struct vd_process *p)
{
	struct vd_dm *dm = calloc(1, sizeof *dm);

	if (!dm)
		return NULL;
	dm->dm.context = ctx;
	dm->dm.memcpy_to_dm = copy_to;
	dm->dm.memcpy_from_dm = copy_from;
	dm->own = p;
	vd_context_hold(ctx);
	return dm;
}

/* Into the list, if there is that much left. */
static bool enlist_dm(struct vd_process *p, struct vd_dm *dm)
{
	bool fits;

	ddps_lock(&p->named_lock);
	fits = dm->len <= VD_MAX_DM - p->dm_used;
	if (fits) {
		p->dm_used += dm->len;
		LIST_INSERT_HEAD(&p->dms, dm, link);
	}
	ddps_unlock(&p->named_lock);
	return fits;
}

struct ibv_dm *vd_alloc_dm(struct ibv_context *ctx, struct ibv_alloc_dm_attr *attr)
{
	struct vd_process *p = vd_process();
	uint32_t log = attr->log_align_req < LOG_ALIGN_MIN ? LOG_ALIGN_MIN : attr->log_align_req;
	size_t align = (size_t)1 << (log & 31);
	struct vd_dm *dm;

	if (!p)
		return NULL;
	if (attr->comp_mask || !attr->length || attr->length > VD_MAX_DM || log > LOG_ALIGN_MAX) {
		errno = EINVAL;
		return NULL;
	}
	dm = dm_new(ctx, p);
	if (!dm)
		return NULL;
	dm->len = attr->length;
	dm->mem = aligned_alloc(align, (attr->length + align - 1) / align * align);
	dm->dm.handle = vd_number();
	if (!dm->mem || !enlist_dm(p, dm)) {
		vd_context_release(ctx);
		free(dm->mem);
		free(dm);
		errno = ENOMEM;
		return NULL;
	}
	memset(dm->mem, 0, dm->len); /* not what the program had there before */
	return &dm->dm;
}

int vd_free_dm(struct ibv_dm *ibdm)
{
	struct vd_dm *dm = dm_of(ibdm);
	struct vd_process *p = dm->own;

	if (!vd_mine(p))
		return EINVAL; /* the parent's, from before a fork */
	if (__atomic_load_n(&dm->users, __ATOMIC_ACQUIRE))
		return EBUSY;
	if (dm->of) {
		__atomic_sub_fetch(&dm->of->users, 1, __ATOMIC_RELEASE);
	} else {
		ddps_lock(&p->named_lock);
		p->dm_used -= dm->len;
		LIST_REMOVE(dm, link);
		ddps_unlock(&p->named_lock);
		free(dm->mem);
	}
	vd_context_release(ibdm->context);
	free(dm);
	return 0;
}

struct ibv_mr *vd_reg_dm_mr(struct ibv_pd *pd, struct ibv_dm *ibdm, uint64_t off, size_t len,
			    unsigned access)
{
	struct vd_dm *dm = dm_of(ibdm);
	struct ibv_mr *mr;

	if (!(access & IBV_ACCESS_ZERO_BASED) || access & IBV_ACCESS_ON_DEMAND ||
	    !is_within(dm, off, len) || !vd_mine(dm->own)) {
		errno = EINVAL;
		return NULL;
	}
	mr = vdi_ibv_reg_mr_iova2(pd, dm->mem + off, len, 0, access);
	if (!mr)
		return NULL;
	__atomic_add_fetch(&dm->users, 1, __ATOMIC_RELAXED);
	vd_of(mr, struct vd_mr, mr)->dm = dm;
	mr->addr = NULL; /* there is none for the program */
	return mr;
}

void vd_dm_release(struct vd_dm *dm)
{
	if (dm)
		__atomic_sub_fetch(&dm->users, 1, __ATOMIC_RELEASE);
}

VD_API struct ibv_dm *ibv_import_dm(struct ibv_context *ctx, uint32_t handle)
{
	struct vd_process *p = vd_of(ctx, struct vd_context, v.context)->p;
	struct vd_dm *dm = dm_new(ctx, p), *of;

	if (!dm)
		return NULL;
	ddps_lock(&p->named_lock);
	LIST_FOREACH(of, &p->dms, link)
		if (of->dm.handle == handle && vd_same_device(of->dm.context, ctx))
			break;
	if (of)
		__atomic_add_fetch(&of->users, 1, __ATOMIC_RELAXED);
	ddps_unlock(&p->named_lock);
	if (!of) {
		vd_context_release(ctx);
		free(dm);
		errno = EINVAL;
		return NULL;
	}
	dm->dm.handle = handle;
	dm->mem = of->mem;
	dm->len = of->len;
	dm->of = of;
	return &dm->dm;
}

VD_API void ibv_unimport_dm(struct ibv_dm *dm)
{
	vd_free_dm(dm);
}
