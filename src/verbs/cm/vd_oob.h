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

#endif
