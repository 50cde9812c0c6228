/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Regions whose octets the program names otherwise than by their addresses (ibv_reg_mr_iova,
 * IBV_ACCESS_ZERO_BASED, device memory).  To peers the library says such offsets itself; pieces of
 * own requests are turned into addresses here.  A process without such a region looks up nothing.
 */
#include "verbs/ib/vd_memory.h"
#include "verbs/vd.h"

static struct vd_process *get_mr_process(const struct vd_mr *mr)
{
	return vd_of(mr->mr.context, struct vd_context, v.context)->p;
}

int vd_moved_init(struct vd_process *p)
{
	return pthread_rwlock_init(&p->moved_lock, NULL);
}

void vd_moved_clear(struct vd_mr *mr)
{
	struct vd_process *p = get_mr_process(mr);

	if (!mr->moved)
		return;
	pthread_rwlock_wrlock(&p->moved_lock);
	LIST_REMOVE(mr, moved_link);
	pthread_rwlock_unlock(&p->moved_lock);
	mr->moved = false;
}

void vd_moved_set(struct vd_mr *mr, uint8_t *mem, uint64_t iova)
{
	struct vd_process *p = get_mr_process(mr);

	vd_moved_clear(mr);
	mr->mem = mem;
	mr->iova = iova;
	if (iova == (uintptr_t)mem)
		return;
	pthread_rwlock_wrlock(&p->moved_lock);
	LIST_INSERT_HEAD(&p->moved[mr->mr.lkey % VD_MOVED], mr, moved_link);
	pthread_rwlock_unlock(&p->moved_lock);
	mr->moved = true;
	__atomic_store_n(&p->any_moved, true, __ATOMIC_RELEASE);
}

/* What lies outside the region lies outside it afterwards, too: the library finds that. */
static void translate_sge(const struct vd_process *p, struct ddps_sge *sge)
{
	const struct vd_mr *mr;

	LIST_FOREACH(mr, &p->moved[sge->lkey % VD_MOVED], moved_link)
		if (mr->mr.lkey == sge->lkey) {
			sge->addr = (void *)((uintptr_t)sge->addr - mr->iova + (uintptr_t)mr->mem);
			return;
		}
}

void vd_move_pieces(struct vd_process *p, struct ddps_sge *sge, int n)
{
	pthread_rwlock_rdlock(&p->moved_lock);
	for (int i = 0; i < n; i++)
		translate_sge(p, &sge[i]);
	pthread_rwlock_unlock(&p->moved_lock);
}
