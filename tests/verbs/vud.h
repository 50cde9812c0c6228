/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef DDPS_TEST_VUD_H
#define DDPS_TEST_VUD_H
/* Queue pairs for datagrams, on the first GID of the host. */
#include "verbs/ud/vd_ud_in.h"
#include "verbs/vt.h"
#include <arpa/inet.h>

#define VUD_QKEY 0x11223344
#define VUD_EX	 1000 /* for vud_make: by the extended calls */

struct vud {
	struct ibv_context *ctx;
	struct ibv_pd *pd;
	struct ibv_ah *self; /* this host */
	struct ibv_srq *srq; /* of the queue pairs made from now on, or NULL */
};

struct vud_qp {
	struct vud *v;
	struct ibv_comp_channel *cc;
	struct ibv_cq *cq; /* of both queues */
	struct ibv_cq_ex *cqx;
	struct ibv_qp *qp;
	struct ibv_mr *mr;
	uint32_t key; /* the region's, for vud_send and vud_recv */
	unsigned max_send, max_recv;
	_Alignas(8) uint8_t buf[4096];
};

void vud_open(struct vud *v);
void vud_close(struct vud *v);
void vud_make(struct vud *v, struct vud_qp *q, int type);
void vud_move(struct vud_qp *q, enum ibv_qp_state to);
/* Both: in RTS. */
void vud_up(struct vud *v, struct vud_qp *q);
void vud_down(struct vud_qp *q);
struct ibv_wc vud_wc(struct vud_qp *q);
/* The channel has one event, which is taken. */
void vud_event(struct vud_qp *q);
void vud_recv(struct vud_qp *q, uint64_t wr_id, size_t off, uint32_t len);
struct ibv_send_wr vud_wr(const struct vud_qp *q, uint64_t wr_id, const struct vud_qp *to,
			  struct ibv_sge *sge, int n);
/* @len octets of its buffer. */
void vud_send(struct vud_qp *q, uint64_t wr_id, const struct vud_qp *to, uint32_t len,
	      unsigned flags);
/* The counters of datagrams. */
struct vd_ud_stats vud_stats(void);
struct ibv_ah *vud_ah(struct vud *v, const char *ip);

#endif
