/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Advice about regions that are paged on demand.  All regions are: nothing is pinned here, and a
 * page comes when it is touched.  So advice is the system's madvise.
 */
#include "verbs/ib/vd_memory.h"
#include "verbs/vd.h"
#include <errno.h>
#include <sys/mman.h>
#include <unistd.h>

#ifndef MADV_POPULATE_READ /* Linux 5.14 */
#define MADV_POPULATE_READ  22
#define MADV_POPULATE_WRITE 23
#endif

static bool is_on_demand(const struct vd_mr *mr, const struct ibv_pd *pd, uint32_t lkey)
{
	return mr->mr.lkey == lkey && mr->access & IBV_ACCESS_ON_DEMAND &&
	       vd_of(mr->mr.pd, struct vd_pd, pd)->d == vd_of(pd, struct vd_pd, pd)->d;
}

/* Where the piece lies.  Return: 0 or errno. */
static int find_region(struct ibv_pd *pd, const struct ibv_sge *sge, bool write, uintptr_t *at)
{
	struct vd_process *p = vd_of(pd->context, struct vd_context, v.context)->p;
	int err = EINVAL;
	struct vd_mr *mr;

	ddps_lock(&p->lock);
	LIST_FOREACH(mr, &p->regions, link)
		if (is_on_demand(mr, pd, sge->lkey))
			break;
	if (mr && sge->addr >= mr->iova && sge->addr - mr->iova <= mr->mr.length &&
	    sge->length <= mr->mr.length - (sge->addr - mr->iova)) {
		*at = (uintptr_t)mr->mem + (uintptr_t)(sge->addr - mr->iova);
		err = write && !(mr->access & IBV_ACCESS_LOCAL_WRITE) ? EPERM : 0;
	}
	ddps_unlock(&p->lock);
	return err;
}

static int advise_pages(uintptr_t at, size_t len, bool write, bool wait)
{
	uintptr_t page = (uintptr_t)sysconf(_SC_PAGESIZE), start = at & ~(page - 1);
	int how = !wait ? MADV_WILLNEED : write ? MADV_POPULATE_WRITE : MADV_POPULATE_READ;
	int keep = errno, err = 0;

	len += at - start;
	if (madvise((void *)start, len, how))
		err = errno;
	if (err == EINVAL && wait) /* an older system: as much as it can */
		err = madvise((void *)start, len, MADV_WILLNEED) ? errno : 0;
	errno = keep;
	return err == ENOMEM ? EFAULT : err; /* there is no memory at that address */
}

int vd_advise_mr(struct ibv_pd *pd, enum ibv_advise_mr_advice advice, uint32_t flags,
		 struct ibv_sge *list, uint32_t n)
{
	bool write = advice == IBV_ADVISE_MR_ADVICE_PREFETCH_WRITE;
	int err = 0;

	if (flags & ~(uint32_t)IBV_ADVISE_MR_FLAG_FLUSH || !n || !list)
		return EINVAL;
	if (!write && advice != IBV_ADVISE_MR_ADVICE_PREFETCH &&
	    advice != IBV_ADVISE_MR_ADVICE_PREFETCH_NO_FAULT)
		return EOPNOTSUPP;
	for (uint32_t i = 0; i < n && !err; i++) {
		uintptr_t at;

		err = find_region(pd, &list[i], write, &at);
		/* Without faults it concerns an adapter's table of pages, and there is none. */
		if (!err && list[i].length && advice != IBV_ADVISE_MR_ADVICE_PREFETCH_NO_FAULT)
			err = advise_pages(at, list[i].length, write,
					   flags & IBV_ADVISE_MR_FLAG_FLUSH);
	}
	return err;
}
