/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Thread domains and parent domains.  A thread domain promises that one thread at a time uses what
 * is made with it: the library's locks are uncontended then, and stay.  A parent domain is another
 * name of a protection domain, with an allocator for what the device keeps per queue.
 */
#include "verbs/ib/vd_memory.h"
#include "verbs/vd.h"
#include <errno.h>
#include <stdlib.h>
#include <unistd.h>

struct ibv_td *vd_alloc_td(struct ibv_context *ctx, struct ibv_td_init_attr *attr)
{
	struct vd_td *td;

	if (attr->comp_mask) {
		errno = EINVAL;
		return NULL;
	}
	td = calloc(1, sizeof *td);
	if (!td)
		return NULL;
	td->td.context = ctx;
	vd_context_hold(ctx);
	return &td->td;
}

int vd_dealloc_td(struct ibv_td *ibtd)
{
	struct vd_td *td = vd_of(ibtd, struct vd_td, td);

	if (__atomic_load_n(&td->users, __ATOMIC_RELAXED))
		return vd_refuse(EBUSY);
	vd_context_release(ibtd->context);
	free(td);
	return 0;
}

#define KNOWN (IBV_PARENT_DOMAIN_INIT_ATTR_ALLOCATORS | IBV_PARENT_DOMAIN_INIT_ATTR_PD_CONTEXT)

struct ibv_pd *vd_alloc_parent_domain(struct ibv_context *ctx,
				      struct ibv_parent_domain_init_attr *attr)
{
	bool own = attr->comp_mask & IBV_PARENT_DOMAIN_INIT_ATTR_ALLOCATORS;
	struct vd_pd *pd;

	if (!attr->pd || attr->comp_mask & ~(uint32_t)KNOWN ||
	    (own && (!attr->alloc || !attr->free))) {
		errno = EINVAL;
		return NULL;
	}
	pd = vd_pd_alias(ctx, vd_of(attr->pd, struct vd_pd, pd));
	if (!pd)
		return NULL;
	if (attr->td) {
		pd->td = vd_of(attr->td, struct vd_td, td);
		__atomic_add_fetch(&pd->td->users, 1, __ATOMIC_RELAXED);
	}
	if (own) {
		pd->alloc = attr->alloc;
		pd->free = attr->free;
	}
	if (attr->comp_mask & IBV_PARENT_DOMAIN_INIT_ATTR_PD_CONTEXT)
		pd->pd_context = attr->pd_context;
	return &pd->pd;
}

/* What kind of memory it is: the numbers are each driver's own, and there is but one here. */
#define QUEUE 0

void *vd_pd_alloc(struct ibv_pd *ibpd, size_t len, bool *own)
{
	struct vd_pd *pd = vd_of(ibpd, struct vd_pd, pd);
	void *ptr = IBV_ALLOCATOR_USE_DEFAULT;

	if (pd->alloc)
		ptr = pd->alloc(ibpd, pd->pd_context, len, (size_t)sysconf(_SC_PAGESIZE), QUEUE);
	*own = ptr != IBV_ALLOCATOR_USE_DEFAULT;
	return *own ? ptr : malloc(len);
}

void vd_pd_free(struct ibv_pd *ibpd, void *ptr, bool own)
{
	struct vd_pd *pd = vd_of(ibpd, struct vd_pd, pd);

	if (own && ptr)
		pd->free(ibpd, pd->pd_context, ptr, QUEUE);
	else if (!own)
		free(ptr);
}
