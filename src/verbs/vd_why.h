/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef DDPS_VERBS_VD_WHY_H
#define DDPS_VERBS_VD_WHY_H
/*
 * Completions and events have a status alone, and a lost datagram has none.  With --check and in strict
 * mode one sentence on standard error says why, once for each cause and queue pair; over a secured wire
 * also without them, if it was not as it must be, or there is no connection.
 */
#include "verbs/vd.h"

enum vd_why {
	VD_WHY_ENDED = 0x1, /* its connection */
	VD_WHY_CQ = 0x2,    /* a completion finds no place */
	/* Datagrams: */
	VD_WHY_NO_RECV = 0x4,
	VD_WHY_QKEY = 0x8,
	VD_WHY_MALFORMED = 0x10,
	VD_WHY_NOBODY = 0x20, /* there is no such queue pair */
	VD_WHY_SILENT = 0x40, /* nothing is acknowledged */
	VD_WHY_SEND = 0x80,   /* it cannot be sent */
	VD_WHY_RECV = 0x100,
	VD_WHY_READS = 0x200, /* it asks for more than its peer takes */
	/* Said in any case: */
	VD_WHY_INSECURE = 0x400, /* its connection, by what a secured wire is for */
	VD_WHY_NO_WAY = 0x800	 /* to its peer: a LID or GID leads nowhere */
};

/* Whether it is to be said, and has not been said of this queue pair; from now on it has. */
bool vd_why_is_due(struct vd_qp *qp, enum vd_why why);
/* Say it, if so: what follows the queue pair's number. */
__attribute__((format(printf, 2, 3))) void vd_why_say(const struct vd_qp *qp, const char *fmt, ...);
/* It is connected: its end is another. */
static inline void vd_why_again(struct vd_qp *qp)
{
	__atomic_fetch_and(&qp->told, ~(unsigned)(VD_WHY_ENDED | VD_WHY_INSECURE),
			   __ATOMIC_RELAXED);
}

/* The program names the peer by @ah; say so if its LID or GID is no way to it. */
void vd_why_no_way(struct vd_qp *qp, const struct ibv_ah_attr *ah);
/* Its connection has ended so, or never came about; @no_recv: for want of a receive. */
void vd_why_ended(struct vd_qp *qp, const struct ddps_event *ev, bool no_recv);
/* The same of one that never came about, if security is why, here or at the peer. */
void vd_why_failed(struct vd_qp *qp, const struct ddps_event *ev);
/* The same, if it is an error.  A reset is how some peers end: on a plain wire it is none where nothing is under
 * way. */
void vd_why_lost(struct vd_qp *qp, const struct ddps_event *ev);

#endif
