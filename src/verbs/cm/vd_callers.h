/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef DDPS_VERBS_VD_CALLERS_H
#define DDPS_VERBS_VD_CALLERS_H
/*
 * Whoever asks for a queue pair before the program has said who its peer is.  A number can be guessed,
 * so they wait side by side, those of one address in a few places only.  The process's lock is held.
 */
#include <ddpsess/session.h>
#include <netinet/in.h>
#include <sys/queue.h>

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
