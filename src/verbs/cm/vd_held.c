/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The end of a connection is reported after what came before it.  A program that looks for events of
 * connections before it polls may find the last completion and the peer's end there together; many
 * destroy the queue pair then, and the completion goes with it (libfabric's rxm).  With an adapter
 * the end comes by another way, which is longer.  So here the event waits until the queue
 * pair's completions are fetched, but not for ever: a program need not fetch anything.  One that
 * has fetched some will come back for the others, when the system lets it run; on a busy host that
 * may take long.
 */
#include "verbs/cm/vd_event.h"
#include "verbs/cm/vd_oob.h"
#include <time.h>

#define IF_IT_FETCHES 40 /* times as long */
#define STEP_MS	      1	 /* from one look for what is fetched to the next */

static uint64_t read_held_ms(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (uint64_t)t.tv_sec * 1000 + (uint64_t)t.tv_nsec / 1000000;
}

static bool is_all_fetched(const struct vd_id *id)
{
	return ddps_ep_unfetched(id->qp->ep) <= 0;
}

static void hold_end(struct vd_process *p, struct vd_id *id, unsigned ms)
{
	id->held_until = read_held_ms() + ms;
	LIST_INSERT_HEAD(&p->held, id, held_link);
}

/* On InfiniBand its queue pair may not be used again for a while, and the program is informed when it may. */
static void post_end(struct vd_process *p, struct vd_id *id)
{
	id->told_down = true;
	vd_event_tell(id, &id->end, RDMA_CM_EVENT_DISCONNECTED, 0, NULL);
	if (vd_is_ib(id))
		hold_end(p, id, p->timewait_ms);
}

static unsigned get_end_patience(const struct vd_process *p, const struct vd_qp *qp)
{
	return __atomic_load_n(&qp->fetches, __ATOMIC_RELAXED) ? IF_IT_FETCHES * p->hold_ms
							       : p->hold_ms;
}

void vd_down(struct vd_process *p, struct vd_id *id, bool by_program)
{
	ddps_assert_held(&p->lock);
	if (id->told_down || id->held_until)
		return;
	id->state = VD_ID_DOWN;
	if (by_program || is_all_fetched(id)) {
		post_end(p, id);
		return;
	}
	hold_end(p, id, get_end_patience(p, id->qp));
}

bool vd_held_forget(struct vd_process *p, struct vd_id *id)
{
	ddps_assert_held(&p->lock);
	if (!id->held_until)
		return false;
	LIST_REMOVE(id, held_link);
	id->held_until = 0;
	return true;
}

void vd_held_release(struct vd_process *p, struct vd_id *id)
{
	ddps_assert_held(&p->lock);
	if (!id->told_down && vd_held_forget(p, id))
		post_end(p, id);
}

static void serve_held_id(struct vd_process *p, struct vd_id *id)
{
	bool late = read_held_ms() >= id->held_until;

	if (!id->told_down && (late || is_all_fetched(id))) {
		vd_held_release(p, id);
	} else if (id->told_down && late) {
		vd_held_forget(p, id);
		vd_ib_waited(id);
	}
}

int vd_held_serve(struct vd_process *p)
{
	struct vd_id *id, *next;
	uint64_t now;
	int ms = -1;

	ddps_assert_held(&p->lock);
	for (id = LIST_FIRST(&p->held); id; id = next) {
		next = LIST_NEXT(id, held_link);
		serve_held_id(p, id);
	}
	now = read_held_ms();
	LIST_FOREACH(id, &p->held, held_link)
		if (!id->told_down || id->held_until <= now + STEP_MS)
			return STEP_MS;
		else if (ms < 0 || id->held_until - now < (unsigned)ms)
			ms = (int)(id->held_until - now);
	return ms;
}
