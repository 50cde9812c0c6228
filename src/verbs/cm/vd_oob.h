/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef DDPS_VERBS_VD_OOB_H
#define DDPS_VERBS_VD_OOB_H
/* Queue pairs without an identifier, which programs connect themselves. */
#include "verbs/vd.h"

/* Give it a number that leads to it. */
int vd_oob_new(struct vd_qp *qp);
/* The lock is held. */
void vd_oob_free(struct vd_qp *qp);
/* Back to where it began; the peer's new request may be there already.  The lock is held. */
void vd_oob_reset(struct vd_qp *qp);
/* To a state that can follow, the error state excepted. */
int vd_oob_modify(struct vd_qp *qp, const struct ibv_qp_attr *attr, int mask);
/* Its Reads: as many as the program has said, now or when it is connected.  Return: 0 or errno. */
int vd_oob_reads(struct vd_qp *qp);
/* In strict mode on a RoCE device: a request was posted, a @read (or atomic) perhaps that waits for no other.  If
 * more of them are on their way than the peer takes, the connection ends.  The queue pair's lock is held. */
void vd_oob_posted(struct vd_qp *qp, bool read);
/* The one with this number, or NULL; the lock is held. */
struct vd_qp *vd_oob_find(struct vd_process *p, uint32_t number);
/* Whether it has been informed who its peer is. */
bool vd_oob_known(const struct vd_qp *qp);
/* Whether the flushed receive @wr_id is kept from the program; and the end of that. */
bool vd_oob_hold(struct vd_qp *qp, uint64_t wr_id);
void vd_oob_release(struct vd_qp *qp);
/* A peer asks, or has given up; the lock is held. */
void vd_oob_request(struct vd_oob_port *port, const struct ddps_event *ev);
void vd_oob_gone(struct vd_process *p, const struct ddps_request *request);

/* What rdma_cm says otherwise where a connection manager of InfiniBand is below it: the RoCE face. */

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
