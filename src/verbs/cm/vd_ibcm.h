/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef DDPS_VERBS_VD_IBCM_H
#define DDPS_VERBS_VD_IBCM_H
/* What rdma_cm says otherwise where a connection manager of InfiniBand is below it: the RoCE face. */
#include "verbs/vd.h"

/* Octets of private data that its messages have for the program. */
#define VD_IB_REQ_PD 56 /* behind what rdma_cm itself puts there */
#define VD_IB_REP_PD 196
#define VD_IB_REJ_PD 148
/* Reasons of a refusal, which are the status of the event. */
#define VD_IB_NO_SERVICE 8
#define VD_IB_CONSUMER	 28

bool vd_is_ib(const struct vd_id *id);
/* Whether @len octets of private data are too many for a message that has room for @room. */
bool vd_ib_too_long(const struct vd_id *id, size_t len, unsigned room);
/* Such a message has no length in it: what came is as long as its room, with zeros, in @pd. */
void vd_ib_pad(const struct vd_id *id, struct rdma_conn_param *conn, unsigned room,
	       uint8_t pd[static 256]);
/* The program has ended the connection itself, too; what was kept at vd_id.answer is for the end of the
 * time that its queue pair waits.  The process's lock is held. */
void vd_ib_parted(struct vd_id *id);
/* That time is over; the same. */
void vd_ib_waited(struct vd_id *id);

#endif
