/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef DDPS_VERBS_VD_EVENT_H
#define DDPS_VERBS_VD_EVENT_H
/* Events of identifiers (vd_event.c), and the end of a connection, which may have to wait (vd_held.c). */
#include "verbs/vd.h"
#include <ddpsess/session.h>
#include <netinet/in.h>
#include <sys/queue.h>

/* An event of @id, to be filled and queued; NULL: no memory.  The process's lock is held. */
struct vd_event *vd_event_new(struct vd_id *id, struct vd_id *listen_id,
			      enum rdma_cm_event_type type, int status);
int vd_event_queue(struct vd_event *e);
/* Queue an event of @id; the lock is held. */
int vd_event_post(struct vd_id *id, struct vd_id *listen_id, enum rdma_cm_event_type type,
		  int status, const struct rdma_conn_param *conn);
/*
 * What the network says is reported without memory, too: there is an event for its answer to what the program
 * asks, and one for the end.  Return: 0 or ENOMEM.
 */
int vd_event_keep(struct vd_id *id);
/* Queue the event that was kept at @kept, one of the two of @id; the lock is held. */
void vd_event_tell(struct vd_id *id, struct vd_event **kept, enum rdma_cm_event_type type,
		   int status, const struct rdma_conn_param *conn);
/* ... not queued yet; a new one if none was kept, or NULL. */
struct vd_event *vd_event_kept(struct vd_id *id, struct vd_event **kept,
			       enum rdma_cm_event_type type, int status);
/* Its connection has ended, which the program learns once: immediately if it has ended it itself,
 * else when its completions are fetched (vd_held.c).  The lock is held here and in the next three. */
void vd_down(struct vd_process *p, struct vd_id *id, bool by_program);
/* Tell now what waits: its queue pair goes, or the program ends the connection, too. */
void vd_held_release(struct vd_process *p, struct vd_id *id);
/* Whether it waited. */
bool vd_held_forget(struct vd_process *p, struct vd_id *id);
/* Tell what is due.  Return: when to look again, in ms, or -1: nothing waits. */
int vd_held_serve(struct vd_process *p);
/* Events of @id that nobody fetched; the lock is held. */
void vd_event_drop(struct vd_id *id);
/* The peer of a request, @id, has left: of such that nobody has looked at only some are kept. */
void vd_event_limit_stale(struct vd_id *id);
/* They come on @to from now on; the lock is held. */
void vd_event_move(struct vd_id *id, struct rdma_event_channel *to);
/* Whether events wait in the channel of @id; the lock is held. */
bool vd_event_waits(const struct vd_id *id);

/*
 * Whoever asks for a queue pair before the program has said who its peer is.  A number can be guessed,
 * so they wait side by side, those of one address in a few places only.  The process's lock is held.
 */

struct vd_caller {
	STAILQ_ENTRY(vd_caller) link;
	struct ddps_request *request;
	uint32_t number; /* that it says it has */
	struct in_addr addr;
};

STAILQ_HEAD(vd_callers, vd_caller);

/* Return: false: no room, or one with that number and address waits. */
bool vd_callers_add(struct vd_callers *list, struct ddps_request *request, uint32_t number,
		    struct in_addr addr);
/* The first does not wait any more.  Return: its request. */
struct ddps_request *vd_callers_take(struct vd_callers *list);
/* One that has given up. */
void vd_callers_forget(struct vd_callers *list, const struct ddps_request *request);

#endif
