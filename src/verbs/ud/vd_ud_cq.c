/* SPDX-License-Identifier: BSD-2-Clause */
/* Completions of datagrams, and one arming for them and the library's. */
#include "verbs/ib/vd_qp.h"
#include "verbs/ud/vd_ud_in.h"
#include <errno.h>
#include <stdlib.h>
#include <string.h>

int vd_ud_cq_init(struct vd_cq *cq)
{
	cq->ud = calloc(1, sizeof *cq->ud);
	if (!cq->ud)
		return ENOMEM;
	cq->ud->depth = (uint32_t)cq->cq.cqe;
	ddps_mutex_init(&cq->ud->lock, DDPS_LOCK_UD_CQ);
	return 0;
}

void vd_ud_cq_fini(struct vd_cq *cq)
{
	if (!cq->ud)
		return;
	pthread_mutex_destroy(&cq->ud->lock.m);
	free(cq->ud->ring);
	free(cq->ud);
}

void ud_cq_unuse(struct vd_cq *cq)
{
	__atomic_sub_fetch(&cq->ud->users, 1, __ATOMIC_RELAXED);
}

bool vd_ud_cq_busy(const struct vd_cq *cq)
{
	return __atomic_load_n(&cq->ud->users, __ATOMIC_RELAXED);
}

/* ---- the ring ---- */

static struct ud_entry *get_ud_entry(struct vd_ud_cq *c, uint32_t i)
{
	const uint32_t to_end = c->size - c->head;

	return &c->ring[i < to_end ? c->head + i : i - to_end];
}

/* Room for so many; the lock is held. */
static int grow_ud_ring(struct vd_ud_cq *c, uint32_t size)
{
	struct ud_entry *ring;

	ddps_assert_held(&c->lock);
	if (size <= c->size)
		return 0;
	ring = calloc(size, sizeof *ring);
	if (!ring)
		return ENOMEM;
	for (uint32_t i = 0; i < c->count; i++)
		ring[i] = *get_ud_entry(c, i);
	free(c->ring);
	c->ring = ring;
	c->size = size;
	c->head = 0;
	return 0;
}

/* All at a time: a completion that finds no memory later would be lost. */
int ud_cq_use(struct vd_cq *cq, struct vd_ud *ud)
{
	int err;

	ddps_lock(&cq->ud->lock);
	err = grow_ud_ring(cq->ud, cq->ud->depth);
	ddps_unlock(&cq->ud->lock);
	if (err)
		return err;
	__atomic_add_fetch(&cq->ud->users, 1, __ATOMIC_RELAXED);
	__atomic_store_n(&cq->ud->ud, ud, __ATOMIC_RELEASE);
	return 0;
}

int vd_ud_cq_reserve(struct vd_cq *cq, uint32_t depth)
{
	int err;

	ddps_lock(&cq->ud->lock);
	err = cq->ud->ring ? grow_ud_ring(cq->ud, depth) : 0;
	ddps_unlock(&cq->ud->lock);
	return err;
}

/* The lock is held, and that of the channel is the only one behind it. */
static void notify_cq(struct vd_cq *cq)
{
	ddps_assert_held(&cq->ud->lock);
	cq->ud->armed = cq->ud->untold = cq->ud->untold_lib = UD_ARMED_NO;
	vd_channel_tell(cq);
}

bool ud_cq_push(struct vd_cq *cq, const struct ibv_wc *wc, bool solicited, const struct vd_ud_qp *u)
{
	enum ud_armed meets = solicited || wc->status ? UD_ARMED_SOLICITED : UD_ARMED_ANY;
	struct vd_ud_cq *c = cq->ud;
	bool fits;

	ddps_lock(&c->lock);
	fits = c->count < c->depth;
	if (fits) {
		*get_ud_entry(c, c->count++) = (struct ud_entry){ *wc, u, 0 };
		if (cq->stamped)
			get_ud_entry(c, c->count - 1)->stamp = vd_clock_ns(CLOCK_MONOTONIC);
		if (c->armed >= meets)
			notify_cq(cq);
		else if (c->untold != UD_ARMED_SOLICITED)
			c->untold = meets;
	}
	ddps_unlock(&c->lock);
	return fits;
}

void ud_cq_forget(struct vd_cq *cq, const struct vd_ud_qp *u)
{
	struct vd_ud_cq *c = cq->ud;
	uint32_t kept = 0;

	ddps_lock(&c->lock);
	for (uint32_t i = 0; i < c->count; i++)
		if (get_ud_entry(c, i)->qp != u)
			*get_ud_entry(c, kept++) = *get_ud_entry(c, i);
	c->count = kept;
	if (!kept)
		c->untold = UD_ARMED_NO;
	ddps_unlock(&c->lock);
}

uint32_t vd_ud_cq_count(struct vd_cq *cq)
{
	uint32_t n;

	ddps_lock(&cq->ud->lock);
	n = cq->ud->count;
	ddps_unlock(&cq->ud->lock);
	return n;
}

void vd_ud_cq_deepen(struct vd_cq *cq)
{
	enum ud_armed armed;

	ddps_lock(&cq->ud->lock);
	cq->ud->depth = (uint32_t)cq->cq.cqe;
	armed = cq->ud->armed;
	ddps_unlock(&cq->ud->lock);
	if (armed)
		ddps_cq_arm_next(cq->d, armed == UD_ARMED_SOLICITED);
}

static int take_ud_entries(struct vd_cq *cq, int n, struct ibv_wc *wc, bool *armed)
{
	struct vd_ud_cq *c = cq->ud;
	int got = 0;

	ddps_lock(&c->lock);
	for (; got < n && c->count; got++) {
		vd_fetched(get_ud_entry(c, 0)->qp->qp, get_ud_entry(c, 0)->wc.opcode & IBV_WC_RECV);
		wc[got] = get_ud_entry(c, 0)->wc;
		cq->stamp = get_ud_entry(c, 0)->stamp;
		if (++c->head == c->size)
			c->head = 0;
		c->count--;
	}
	if (!c->count) {
		c->untold = UD_ARMED_NO;
		c->head = 0; /* a large one that is seldom full needs little memory */
	}
	*armed = c->armed != UD_ARMED_NO;
	ddps_unlock(&c->lock);
	return got;
}

int vd_ud_cq_poll(struct vd_cq *cq, int n, struct ibv_wc *wc)
{
	struct vd_ud_cq *c = cq->ud;
	struct vd_ud *ud = __atomic_load_n(&c->ud, __ATOMIC_ACQUIRE);
	bool armed;
	int got;

	if (!ud)
		return 0;
	if (!vd_mine_quick(ud->p))
		return -1; /* the parent's, from before a fork */
	got = take_ud_entries(cq, n, wc, &armed);
	if (got || n <= 0)
		return got;
	/* Who has armed the queue is going to sleep on it. */
	ud_drive_polled(ud, !armed);
	return take_ud_entries(cq, n, wc, &armed);
}

/* ---- arming ---- */

void vd_ud_cq_arm(struct vd_cq *cq, bool solicited_only)
{
	enum ud_armed wanted = solicited_only ? UD_ARMED_SOLICITED : UD_ARMED_ANY;
	struct vd_ud_cq *c = cq->ud;
	struct vd_ud *ud = __atomic_load_n(&c->ud, __ATOMIC_ACQUIRE);

	ddps_lock(&c->lock);
	if (c->armed < wanted)
		c->armed = wanted;
	if ((c->untold && c->untold <= c->armed) || (c->untold_lib && c->untold_lib <= c->armed))
		notify_cq(cq);
	ddps_unlock(&c->lock);
	if (!ud)
		return;
	__atomic_store_n(&ud->polled, 0, __ATOMIC_SEQ_CST);
	if (__atomic_load_n(&ud->away, __ATOMIC_SEQ_CST))
		ud_wake(ud);
}

void vd_ud_cq_notified(void *user)
{
	struct vd_cq *cq = user;
	struct vd_ud_cq *c = cq->ud;

	ddps_lock(&c->lock);
	/* It was armed together with this side, where a datagram may have been reported instead. */
	if (c->armed || !__atomic_load_n(&c->ud, __ATOMIC_ACQUIRE))
		notify_cq(cq);
	else
		c->untold_lib = UD_ARMED_SOLICITED;
	ddps_unlock(&c->lock);
}
