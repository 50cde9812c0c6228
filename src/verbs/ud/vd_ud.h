/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef DDPS_VERBS_VD_UD_H
#define DDPS_VERBS_VD_UD_H
/*
 * Unreliable datagrams, as the rest of the drop-in sees them: where a queue pair is of type UD, or
 * an identifier of RDMA_PS_UDP, its calls lead here.  vd_ud_in.h says how it works.
 */
#include "verbs/vd.h"

#define VD_UD_GROUPS 16 /* that a queue pair is in */

/* ---- what others need of it ---- */

/* A child of fork closes its copies of the sockets. */
void vd_ud_in_child(struct vd_ud *ud);
/* Its part of the counters, told; and those of the port. */
void vd_ud_stats_tell(struct vd_process *p);
struct vd_ud_count {
	uint64_t sent, sent_octets, received, received_octets;
};
struct vd_ud_count vd_ud_count(struct vd_process *p);
/* Its part of what sessctl stat shows: a ddps_watch_fn; @process: struct vd_process. */
int vd_ud_show(void *process, uint32_t n, char *to, size_t size);

/* ---- queue pairs ---- */

struct vd_qp *vd_ud_qp_new(struct ibv_context *ctx, struct ibv_pd *pd,
			   struct ibv_qp_init_attr *attr);
void vd_ud_qp_free(struct vd_qp *qp);
/* State and Q_Key; the process's lock is held.  Return: 0 or errno. */
int vd_ud_modify(struct vd_qp *qp, const struct ibv_qp_attr *attr, int mask);
/* All the way to RTS, as rdma_create_qp has it. */
void vd_ud_qp_start(struct vd_qp *qp);
/* The queue pair's own lock is held, here and in the next. */
int vd_ud_post_send(struct vd_qp *qp, struct ibv_send_wr *wr, struct ibv_send_wr **bad);
int vd_ud_post_recv(struct vd_qp *qp, struct ibv_recv_wr *wr, struct ibv_recv_wr **bad);

/* ---- shared receive queues ---- */

/* Whether queue pairs of type UD use it. */
static inline bool vd_ud_srq_busy(const struct vd_srq *srq)
{
	return __atomic_load_n(&srq->ud_users, __ATOMIC_RELAXED);
}

void vd_ud_srq_wake(struct vd_srq *srq);
/* It may have receives now, for such as wait for one. */
static inline void vd_ud_srq_posted(struct vd_srq *srq)
{
	if (__atomic_load_n(&srq->ud_waits, __ATOMIC_SEQ_CST))
		vd_ud_srq_wake(srq);
}

/* ---- completion queues ---- */

/* Return: 0 or ENOMEM. */
int vd_ud_cq_init(struct vd_cq *cq);
void vd_ud_cq_fini(struct vd_cq *cq);
/* Whether queue pairs of type UD use it. */
bool vd_ud_cq_busy(const struct vd_cq *cq);
/* Completions of datagrams, 0..@n, or -1. */
int vd_ud_cq_poll(struct vd_cq *cq, int n, struct ibv_wc *wc);
/* How many wait to be fetched. */
uint32_t vd_ud_cq_count(struct vd_cq *cq);
/* Memory for so many, before it may have them; return: 0 or ENOMEM. */
int vd_ud_cq_reserve(struct vd_cq *cq, uint32_t depth);
/* It has room for more, and its new library's queue is armed as the old one was. */
void vd_ud_cq_deepen(struct vd_cq *cq);
/* It is armed now; to be called before the library's queue is. */
void vd_ud_cq_arm(struct vd_cq *cq, bool solicited_only);
/* The library's queue has an event: ddps_cq_on_notify takes this. */
void vd_ud_cq_notified(void *cq);

/* ---- identifiers of RDMA_PS_UDP; the lock is held where it says so ---- */

static inline bool vd_ud_id(const struct vd_id *id)
{
	return id->id.ps == RDMA_PS_UDP;
}

int vd_ud_connect(struct vd_id *id, const struct rdma_conn_param *conn);
int vd_ud_listen(struct vd_id *id, unsigned backlog);
int vd_ud_accept(struct vd_id *id, const struct rdma_conn_param *conn);
int vd_ud_reject(struct vd_id *id, const void *data, uint8_t len);
/* Refuse the peer that waits, if one does; the lock is held. */
void vd_ud_refuse(struct vd_id *id);
/* What it holds goes, its requests and groups too; if it holds anything, the lock is held. */
void vd_ud_id_free(struct vd_id *id);
/* The path of rdma_resolve_route, where programs look for the GID.  Return: 0 or ENOMEM. */
int vd_ud_route(struct vd_id *id);
/* rdma_init_qp_attr. */
void vd_ud_init_attr(struct ibv_qp_attr *attr, int *mask);

#endif
