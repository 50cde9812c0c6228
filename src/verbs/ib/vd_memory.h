/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef DDPS_VD_MEMORY_H
#define DDPS_VD_MEMORY_H
/* Domains, regions, windows, device memory: between the files of ib/ that have them. */
#include "verbs/vd.h"
#include <errno.h>

/* Regions whose octets have other names than their addresses (vd_moved.c). */
int vd_moved_init(struct vd_process *p);
void vd_moved_set(struct vd_mr *mr, uint8_t *mem, uint64_t iova);
void vd_moved_clear(struct vd_mr *mr);
void vd_move_pieces(struct vd_process *p, struct ddps_sge *sge, int n);
static inline void vd_moved_pieces(struct vd_process *p, struct ddps_sge *sge, int n)
{
	if (__builtin_expect(__atomic_load_n(&p->any_moved, __ATOMIC_ACQUIRE), 0))
		vd_move_pieces(p, sge, n);
}
/* Pieces in the library's form, @max at most.  Return: 0 or EINVAL. */
static inline int vd_pieces(struct ibv_context *ctx, const struct ibv_sge *from, int n,
			    uint32_t max, struct ddps_sge *to)
{
	if (n < 0 || (uint32_t)n > max || (n && !from))
		return EINVAL;
	for (int i = 0; i < n; i++)
		to[i] = (struct ddps_sge){ (void *)(uintptr_t)from[i].addr, from[i].length,
					   from[i].lkey };
	vd_moved_pieces(vd_process_of(ctx), to, n);
	return 0;
}

/* Whether an adapter could pin it (vd_mapped.c). */
bool vd_can_register(const void *mem, size_t len, unsigned access);
/* The lowest of these regions that it could not, or NULL; whether there are others. */
const struct vd_mr *vd_find_unmapped(const struct vd_regions *all, bool *others);

/* Memory by the allocator of a parent domain, or malloc. */
void *vd_pd_alloc(struct ibv_pd *pd, size_t len, bool *own);
void vd_pd_free(struct ibv_pd *pd, void *ptr, bool own);
struct ibv_td *vd_alloc_td(struct ibv_context *ctx, struct ibv_td_init_attr *attr);
int vd_dealloc_td(struct ibv_td *td);
struct ibv_pd *vd_alloc_parent_domain(struct ibv_context *ctx,
				      struct ibv_parent_domain_init_attr *attr);
/* One more of the same domain of the library; NULL: errno is set. */
struct vd_pd *vd_pd_alias(struct ibv_context *ctx, struct vd_pd *of);
/* Remote and local rights in the library's form. */
unsigned vd_rights(unsigned access);
struct ibv_mw *vd_alloc_mw(struct ibv_pd *pd, enum ibv_mw_type type);
int vd_dealloc_mw(struct ibv_mw *mw);
int vd_bind_mw(struct ibv_qp *qp, struct ibv_mw *mw, struct ibv_mw_bind *bind);
struct ibv_dm *vd_alloc_dm(struct ibv_context *ctx, struct ibv_alloc_dm_attr *attr);
int vd_free_dm(struct ibv_dm *dm);
struct ibv_mr *vd_reg_dm_mr(struct ibv_pd *pd, struct ibv_dm *dm, uint64_t off, size_t len,
			    unsigned access);
/* A region of it less; NULL: of none. */
void vd_dm_release(struct vd_dm *dm);
/* The mapping of one of a DMA buffer goes; others have none. */
void vd_dmabuf_release(struct vd_mr *mr);
int vd_advise_mr(struct ibv_pd *pd, enum ibv_advise_mr_advice advice, uint32_t flags,
		 struct ibv_sge *list, uint32_t n);
/* A descriptor that names this process's contexts and no other's. */
int vd_cmd_fd(void);
/* Whether one is imported from the other, or both are the same. */
bool vd_same_device(const struct ibv_context *a, const struct ibv_context *b);

#endif
