/* SPDX-License-Identifier: BSD-2-Clause */
/* Protection domains and memory regions. */
#include "verbs/vd.h"
#include <errno.h>
#include <stdlib.h>

#undef ibv_reg_mr
#undef ibv_reg_mr_iova

static struct vd_process *process_of(struct ibv_context *ctx)
{
	return vd_of(ctx, struct vd_context, v.context)->p;
}

VD_API struct ibv_pd *ibv_alloc_pd(struct ibv_context *ctx)
{
	struct vd_pd *pd = calloc(1, sizeof *pd);
	int err;

	if (!pd)
		return NULL;
	err = ddps_pd_new(process_of(ctx)->ctx, &pd->d);
	if (err) {
		free(pd);
		errno = vd_errno(err);
		return NULL;
	}
	pd->pd.context = ctx;
	vd_context_hold(ctx);
	return &pd->pd;
}

VD_API int ibv_dealloc_pd(struct ibv_pd *ibpd)
{
	struct vd_pd *pd = vd_of(ibpd, struct vd_pd, pd);
	int err = ddps_pd_free(pd->d);

	if (err)
		return vd_errno(err);
	vd_context_release(ibpd->context);
	free(pd);
	return 0;
}

static unsigned rights(unsigned access)
{
	unsigned r = 0;

	if (access & IBV_ACCESS_LOCAL_WRITE)
		r |= DDPS_LOCAL_WRITE;
	if (access & IBV_ACCESS_REMOTE_WRITE)
		r |= DDPS_REMOTE_WRITE;
	if (access & IBV_ACCESS_REMOTE_READ)
		r |= DDPS_REMOTE_READ;
	if (access & IBV_ACCESS_REMOTE_ATOMIC)
		r |= DDPS_REMOTE_ATOMIC;
	if (access & IBV_ACCESS_ZERO_BASED)
		r |= DDPS_ZERO_BASED;
	return r;
}

/* Optional flags, relaxed ordering among them, ask for nothing that must be done. */
#define KNOWN                                                                                      \
	(IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ |               \
	 IBV_ACCESS_REMOTE_ATOMIC | IBV_ACCESS_ZERO_BASED | IBV_ACCESS_MW_BIND |                   \
	 IBV_ACCESS_HUGETLB | IBV_ACCESS_OPTIONAL_RANGE)

/* Who lets the peer change memory must be allowed to change it: ibv_reg_mr(3). */
#define REMOTE_CHANGES (IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_ATOMIC)

static void enlist(struct vd_process *p, struct vd_mr *mr)
{
	pthread_mutex_lock(&p->lock);
	mr->next = p->regions;
	mr->prev = &p->regions;
	if (mr->next)
		mr->next->prev = &mr->next;
	p->regions = mr;
	pthread_mutex_unlock(&p->lock);
}

static void delist(struct vd_process *p, struct vd_mr *mr)
{
	pthread_mutex_lock(&p->lock);
	*mr->prev = mr->next;
	if (mr->next)
		mr->next->prev = mr->prev;
	pthread_mutex_unlock(&p->lock);
}

static struct ibv_mr *reg(struct ibv_pd *ibpd, void *addr, size_t len, unsigned access)
{
	struct vd_mr *mr;
	int err;

	if (access & ~(unsigned)KNOWN) {
		errno = EOPNOTSUPP;
		return NULL;
	}
	if ((access & REMOTE_CHANGES && !(access & IBV_ACCESS_LOCAL_WRITE)) ||
	    len > UINTPTR_MAX - (uintptr_t)addr) {
		errno = EINVAL;
		return NULL;
	}
	mr = calloc(1, sizeof *mr);
	if (!mr)
		return NULL;
	err = ddps_mr_reg(vd_of(ibpd, struct vd_pd, pd)->d, addr, len, rights(access), NULL,
			  &mr->d);
	if (err) {
		free(mr);
		errno = vd_errno(err);
		return NULL;
	}
	mr->mr.context = ibpd->context;
	mr->mr.pd = ibpd;
	mr->mr.addr = addr;
	mr->mr.length = len;
	mr->mr.lkey = mr->mr.rkey = ddps_mr_stag(mr->d);
	enlist(process_of(ibpd->context), mr);
	return &mr->mr;
}

VD_API struct ibv_mr *ibv_reg_mr(struct ibv_pd *pd, void *addr, size_t len, int access)
{
	return reg(pd, addr, len, (unsigned)access);
}

VD_API struct ibv_mr *ibv_reg_mr_iova2(struct ibv_pd *pd, void *addr, size_t len, uint64_t iova,
				       unsigned int access)
{
	if (iova == (uintptr_t)addr)
		return reg(pd, addr, len, access);
	if (!iova)
		return reg(pd, addr, len, access | IBV_ACCESS_ZERO_BASED);
	errno = EOPNOTSUPP; /* tagged offsets start at 0 or at the address */
	return NULL;
}

VD_API struct ibv_mr *ibv_reg_mr_iova(struct ibv_pd *pd, void *addr, size_t len, uint64_t iova,
				      int access)
{
	return ibv_reg_mr_iova2(pd, addr, len, iova, (unsigned)access);
}

VD_API int ibv_dereg_mr(struct ibv_mr *ibmr)
{
	struct vd_mr *mr = vd_of(ibmr, struct vd_mr, mr);
	int err;

	if (!vd_mine(process_of(ibmr->context)))
		return EINVAL; /* the parent's, from before a fork */
	err = ddps_mr_dereg(mr->d);
	if (err)
		return vd_errno(err);
	delist(process_of(ibmr->context), mr);
	free(mr);
	return 0;
}
