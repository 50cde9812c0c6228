/* SPDX-License-Identifier: BSD-2-Clause */
/* Protection domains and memory regions. */
#include "verbs/ib/vd_flush.h"
#include "verbs/ib/vd_memory.h"
#include "verbs/vd.h"
#include "verbs/vd_strict.h"
#include <errno.h>
#include <stdlib.h>

static struct vd_process *get_context_process(struct ibv_context *ctx)
{
	return vd_of(ctx, struct vd_context, v.context)->p;
}

/* Into the list of the process, with a handle. */
static struct ibv_pd *enlist_pd(struct ibv_context *ctx, struct vd_pd *pd)
{
	struct vd_process *p = get_context_process(ctx);

	pd->pd.context = ctx;
	pd->pd.handle = vd_number();
	ddps_lock(&p->named_lock);
	LIST_INSERT_HEAD(&p->pds, pd, link);
	ddps_unlock(&p->named_lock);
	vd_context_hold(ctx);
	return &pd->pd;
}

struct ibv_pd *vdi_ibv_alloc_pd(struct ibv_context *ctx)
{
	struct vd_pd *pd = calloc(1, sizeof *pd);
	int err;

	if (!pd)
		return NULL;
	err = ddps_pd_new(get_context_process(ctx)->ctx, &pd->d);
	if (!err)
		return enlist_pd(ctx, pd);
	free(pd);
	errno = vd_errno(err);
	return NULL;
}

struct vd_pd *vd_pd_alias(struct ibv_context *ctx, struct vd_pd *of)
{
	struct vd_pd *pd = calloc(1, sizeof *pd);

	if (!pd)
		return NULL;
	pd->d = of->d;
	pd->of = of;
	__atomic_add_fetch(&of->users, 1, __ATOMIC_RELAXED);
	enlist_pd(ctx, pd);
	return pd;
}

int vdi_ibv_dealloc_pd(struct ibv_pd *ibpd)
{
	struct vd_pd *pd = vd_of(ibpd, struct vd_pd, pd);
	struct vd_process *p = get_context_process(ibpd->context);
	int err = 0;

	if (!vd_mine(p))
		return vd_refuse(EINVAL); /* the parent's, from before a fork */
	if (__atomic_load_n(&pd->users, __ATOMIC_RELAXED))
		return vd_refuse(EBUSY);
	if (!pd->of)
		err = ddps_pd_free(pd->d);
	if (err)
		return vd_refuse(vd_errno(err));
	if (pd->of)
		__atomic_sub_fetch(&pd->of->users, 1, __ATOMIC_RELAXED);
	if (pd->td)
		__atomic_sub_fetch(&pd->td->users, 1, __ATOMIC_RELAXED);
	ddps_lock(&p->named_lock);
	LIST_REMOVE(pd, link);
	ddps_unlock(&p->named_lock);
	vd_context_release(ibpd->context);
	free(pd);
	return 0;
}

unsigned vd_rights(unsigned access)
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
	if (access & IBV_ACCESS_MW_BIND)
		r |= DDPS_BIND;
	if (access & VD_ACCESS_FLUSH_GLOBAL)
		r |= DDPS_FLUSHABLE;
	if (access & VD_ACCESS_FLUSH_PERSISTENT)
		r |= DDPS_PERSISTENT;
	return r;
}

/* Optional flags, relaxed ordering among them, ask for nothing that must be done. */
#define KNOWN                                                                                      \
	(IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ |               \
	 IBV_ACCESS_REMOTE_ATOMIC | IBV_ACCESS_ZERO_BASED | IBV_ACCESS_MW_BIND |                   \
	 IBV_ACCESS_HUGETLB | IBV_ACCESS_ON_DEMAND | IBV_ACCESS_OPTIONAL_RANGE | VD_ACCESS_FLUSH)

/* All that the program can have mapped, at its addresses. */
#define WHOLE	      ((uint8_t *)4096)
#define WHOLE_LEN     ((UINT64_C(1) << 48) - 4096)
#define WHOLE_ALLOWED (IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_ON_DEMAND | IBV_ACCESS_OPTIONAL_RANGE)

/* Who lets the peer change memory must be allowed to change it: ibv_reg_mr(3). */
#define REMOTE_CHANGES (IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_ATOMIC)

static void enlist_region(struct vd_process *p, struct vd_mr *mr)
{
	ddps_lock(&p->lock);
	LIST_INSERT_HEAD(&p->regions, mr, link);
	ddps_unlock(&p->lock);
}

static void delist(struct vd_process *p, struct vd_mr *mr)
{
	ddps_lock(&p->lock);
	LIST_REMOVE(mr, link);
	ddps_unlock(&p->lock);
}

static int check_access(const struct ibv_context *ctx, unsigned access)
{
	if (access & ~(unsigned)KNOWN || (access & VD_ACCESS_FLUSH && !vd_has_rfc7306(ctx)))
		return EOPNOTSUPP;
	return access & REMOTE_CHANGES && !(access & IBV_ACCESS_LOCAL_WRITE) ? EINVAL : 0;
}

static struct vd_mr *mr_new(struct ibv_pd *ibpd, uint8_t *mem, size_t len, uint64_t iova,
			    unsigned access)
{
	struct vd_mr *mr = calloc(1, sizeof *mr);
	int err;

	if (!mr)
		return NULL;
	err = ddps_mr_reg(vd_of(ibpd, struct vd_pd, pd)->d, mem, len, vd_rights(access), NULL,
			  &mr->d);
	if (!err && iova != (uintptr_t)mem && !(access & IBV_ACCESS_ZERO_BASED))
		err = ddps_mr_place(mr->d, iova);
	if (!err)
		return mr;
	ddps_mr_dereg(mr->d);
	free(mr);
	errno = vd_errno(err);
	return NULL;
}

/* To the end of the last page, as the system reckons. */
static bool wraps(uintptr_t at, size_t len)
{
	return len > UINTPTR_MAX - at || at + len > UINTPTR_MAX - 4095;
}

static struct ibv_mr *register_region(struct ibv_pd *ibpd, void *addr, size_t len, uint64_t iova,
				      unsigned access)
{
	/* Implicit paging on demand: a region of everything, for own requests alone. */
	bool whole = access & IBV_ACCESS_ON_DEMAND && !addr && len == SIZE_MAX;
	int err = check_access(ibpd->context, access);
	uint8_t *mem = whole ? WHOLE : addr;
	struct vd_mr *mr;

	if (!err && whole && access & ~(unsigned)WHOLE_ALLOWED)
		err = EOPNOTSUPP; /* a peer could end this process by an address */
	if (err || (!whole && wraps((uintptr_t)addr, len))) {
		errno = err ? err : EINVAL;
		return NULL;
	}
	if (!whole && !vd_can_register(addr, len, access)) {
		errno = EFAULT;
		return NULL;
	}
	if (whole)
		iova = (uintptr_t)mem;
	mr = mr_new(ibpd, mem, whole ? WHOLE_LEN : len, iova, access);
	if (!mr)
		return NULL;
	mr->mr.context = ibpd->context;
	mr->mr.pd = ibpd;
	mr->mr.addr = addr;
	mr->mr.length = len;
	mr->mr.handle = vd_number();
	mr->mr.lkey = mr->mr.rkey = ddps_mr_stag(mr->d);
	mr->access = access;
	vd_moved_set(mr, mem, access & IBV_ACCESS_ZERO_BASED ? 0 : iova);
	enlist_region(get_context_process(ibpd->context), mr);
	return &mr->mr;
}

struct ibv_mr *vdi_ibv_reg_mr(struct ibv_pd *pd, void *addr, size_t len, int access)
{
	return register_region(pd, addr, len, (uintptr_t)addr, (unsigned)access);
}

struct ibv_mr *vdi_ibv_reg_mr_iova2(struct ibv_pd *pd, void *addr, size_t len, uint64_t iova,
				    unsigned int access)
{
	return register_region(pd, addr, len, iova, access);
}

int vdi_ibv_dereg_mr(struct ibv_mr *ibmr)
{
	struct vd_mr *mr = vd_of(ibmr, struct vd_mr, mr);
	int err;

	if (!vd_mine(get_context_process(ibmr->context)))
		return vd_refuse(EINVAL); /* the parent's, from before a fork */
	if (mr->imported)
		return vd_refuse(EINVAL); /* ibv_unimport_mr */
	err = ddps_mr_dereg(mr->d);
	if (err)
		return vd_refuse(vd_errno(err));
	vd_moved_clear(mr);
	delist(get_context_process(ibmr->context), mr);
	vd_dm_release(mr->dm);
	vd_dmabuf_release(mr);
	free(mr);
	return 0;
}

#define REREG                                                                                      \
	(IBV_REREG_MR_CHANGE_TRANSLATION | IBV_REREG_MR_CHANGE_PD | IBV_REREG_MR_CHANGE_ACCESS)

static int fail_rereg(int err)
{
	errno = err;
	return IBV_REREG_MR_ERR_INPUT; /* the region stays as it is */
}

/* Its octets have the names again that the library gives them: addresses, or from 0 on. */
static void renamed(struct vd_mr *mr, int flags, unsigned access, uint8_t *addr)
{
	unsigned now = flags & IBV_REREG_MR_CHANGE_ACCESS ? access : mr->access;
	bool moved = flags & IBV_REREG_MR_CHANGE_TRANSLATION;
	uint8_t *mem = moved ? addr : mr->mem;

	if (moved || (now ^ mr->access) & IBV_ACCESS_ZERO_BASED)
		vd_moved_set(mr, mem, now & IBV_ACCESS_ZERO_BASED ? 0 : (uintptr_t)mem);
	mr->access = now;
}

int vdi_ibv_rereg_mr(struct ibv_mr *ibmr, int flags, struct ibv_pd *pd, void *addr, size_t length,
		     int access)
{
	struct vd_mr *mr = vd_of(ibmr, struct vd_mr, mr);
	struct ddps_mr_change to = { .addr = addr, .len = length };
	unsigned what = 0;
	int err;

	if (!flags || flags & ~REREG || mr->imported || (flags & IBV_REREG_MR_CHANGE_PD && !pd))
		return fail_rereg(EINVAL);
	if (!ibmr->addr && ibmr->length) /* the device's memory, or all there is */
		return fail_rereg(EOPNOTSUPP);
	if (flags & IBV_REREG_MR_CHANGE_TRANSLATION)
		what |= DDPS_CHANGE_MEMORY;
	if (flags & IBV_REREG_MR_CHANGE_PD) {
		what |= DDPS_CHANGE_PD;
		to.pd = vd_of(pd, struct vd_pd, pd)->d;
	}
	if (flags & IBV_REREG_MR_CHANGE_ACCESS) {
		err = check_access(ibmr->context, (unsigned)access);
		if (err)
			return fail_rereg(err);
		what |= DDPS_CHANGE_ACCESS;
		to.access = vd_rights((unsigned)access);
	}
	if (flags & (IBV_REREG_MR_CHANGE_TRANSLATION | IBV_REREG_MR_CHANGE_ACCESS)) {
		bool moved = flags & IBV_REREG_MR_CHANGE_TRANSLATION;
		bool changed = flags & IBV_REREG_MR_CHANGE_ACCESS;

		if (!vd_can_register(moved ? addr : ibmr->addr, moved ? length : ibmr->length,
				     changed ? (unsigned)access : mr->access))
			return fail_rereg(EFAULT);
	}
	err = ddps_mr_change(mr->d, what, &to);
	if (err)
		return fail_rereg(vd_errno(err));
	renamed(mr, flags, (unsigned)access, addr);
	if (flags & IBV_REREG_MR_CHANGE_TRANSLATION) {
		ibmr->addr = addr;
		ibmr->length = length;
	}
	if (flags & IBV_REREG_MR_CHANGE_PD)
		ibmr->pd = pd;
	return 0;
}
