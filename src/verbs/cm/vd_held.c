/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The end of a connection is told after what came before it.  A program that looks for events of
 * connections before it polls may find the last completion and the peer's end there together; many
 * destroy the queue pair then, and the completion goes with it (libfabric's rxm).  With an adapter
 * the end comes by another way, which is longer.  So here the event waits until the queue
 * pair's completions are fetched, but not for ever: a program need not fetch anything.  One that
 * has fetched some will come back for the others, when the system lets it run; on a busy host that
 * may take long.
 */
#include "verbs/cm/vd_event.h"
#include <time.h>

#define IF_IT_FETCHES 40 /* times as long */

static uint64_t now_ms(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (uint64_t)t.tv_sec * 1000 + (uint64_t)t.tv_nsec / 1000000;
}

static bool fetched(const struct vd_id *id)
{
	return ddps_ep_unfetched(id->qp->ep) <= 0;
}

static void tell_end(struct vd_id *id)
{
	id->told_down = true;
	vd_event_tell(id, &id->end, RDMA_CM_EVENT_DISCONNECTED, 0, NULL);
}

static unsigned patience(const struct vd_process *p, const struct vd_qp *qp)
{
	return __atomic_load_n(&qp->fetches, __ATOMIC_RELAXED) ? IF_IT_FETCHES * p->hold_ms
							       : p->hold_ms;
}

void vd_down(struct vd_process *p, struct vd_id *id, bool by_program)
{
	if (id->told_down || id->held_until)
		return;
	id->state = VD_ID_DOWN;
	if (by_program || fetched(id)) {
		tell_end(id);
		return;
	}
	id->held_until = now_ms() + patience(p, id->qp);
	id->next_held = p->held;
	p->held = id;
}

bool vd_held_forget(struct vd_process *p, struct vd_id *id)
{
	struct vd_id **at = &p->held;

	while (*at && *at != id)
		at = &(*at)->next_held;
	if (!*at)
		return false;
	*at = id->next_held;
	id->held_until = 0;
	return true;
}

void vd_held_release(struct vd_process *p, struct vd_id *id)
{
	if (vd_held_forget(p, id))
		tell_end(id);
}

bool vd_held_serve(struct vd_process *p)
{
	struct vd_id *next;

	for (struct vd_id *id = p->held; id; id = next) {
		next = id->next_held;
		if (fetched(id) || now_ms() >= id->held_until)
			vd_held_release(p, id);
	}
	return p->held;
}
