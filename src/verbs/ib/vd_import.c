/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Objects once more, by a descriptor of their context and their handles.  Only within the process:
 * in another one there is no device that has them.  The descriptor names the process's contexts by
 * the file behind it, which its duplicates share and no other process has by chance.
 */
#include "verbs/ib/vd_memory.h"
#include "verbs/vd.h"
#include <errno.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

int vd_cmd_fd(void)
{
	return memfd_create("ddpsess-verbs", MFD_CLOEXEC);
}

static bool same_file(int a, int b)
{
	struct stat sa, sb;

	return !fstat(a, &sa) && !fstat(b, &sb) && sa.st_dev == sb.st_dev && sa.st_ino == sb.st_ino;
}

bool vd_same_device(const struct ibv_context *a, const struct ibv_context *b)
{
	return same_file(a->cmd_fd, b->cmd_fd);
}

static struct vd_context *context_of(struct vd_process *p, int fd)
{
	struct vd_context *c;

	ddps_lock(&p->named_lock);
	LIST_FOREACH(c, &p->contexts, link)
		if (same_file(c->v.context.cmd_fd, fd))
			break;
	ddps_unlock(&p->named_lock);
	return c;
}

/* The descriptor is the context's from now on. */
VD_API struct ibv_context *ibv_import_device(int cmd_fd)
{
	struct vd_process *p = vd_process();
	struct vd_context *from = p ? context_of(p, cmd_fd) : NULL;
	struct ibv_context *ctx;

	if (!p)
		return NULL;
	if (!from) {
		errno = EOPNOTSUPP; /* another process's, or no context's at all */
		return NULL;
	}
	ctx = vdi_ibv_open_device(from->device);
	if (!ctx)
		return NULL;
	vd_close(p, ctx->cmd_fd);
	ctx->cmd_fd = cmd_fd;
	return ctx;
}

VD_API struct ibv_pd *ibv_import_pd(struct ibv_context *ctx, uint32_t handle)
{
	struct vd_process *p = vd_of(ctx, struct vd_context, v.context)->p;
	struct vd_pd *of, *pd;

	ddps_lock(&p->named_lock);
	LIST_FOREACH(of, &p->pds, link)
		if (of->pd.handle == handle && vd_same_device(of->pd.context, ctx))
			break;
	ddps_unlock(&p->named_lock);
	if (!of) {
		errno = EINVAL;
		return NULL;
	}
	pd = vd_pd_alias(ctx, of);
	return pd ? &pd->pd : NULL;
}

VD_API void ibv_unimport_pd(struct ibv_pd *pd)
{
	vdi_ibv_dealloc_pd(pd);
}

/* Where it lies is not known to whoever has but a handle: the address is NULL. */
VD_API struct ibv_mr *ibv_import_mr(struct ibv_pd *pd, uint32_t handle)
{
	struct vd_process *p = vd_of(pd->context, struct vd_context, v.context)->p;
	struct vd_mr *of, *mr = calloc(1, sizeof *mr);

	if (!mr)
		return NULL;
	ddps_lock(&p->lock);
	LIST_FOREACH(of, &p->regions, link)
		if (of->mr.handle == handle && !of->imported &&
		    vd_of(of->mr.pd, struct vd_pd, pd)->d == vd_of(pd, struct vd_pd, pd)->d)
			break;
	if (of) {
		mr->mr = of->mr;
		mr->d = of->d;
	}
	ddps_unlock(&p->lock);
	if (!of) {
		free(mr);
		errno = EINVAL;
		return NULL;
	}
	mr->mr.context = pd->context;
	mr->mr.pd = pd;
	mr->mr.addr = NULL;
	mr->imported = true;
	return &mr->mr;
}

VD_API void ibv_unimport_mr(struct ibv_mr *mr)
{
	free(vd_of(mr, struct vd_mr, mr));
}
