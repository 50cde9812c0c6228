/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef SESSCTL_CHAN_H
#define SESSCTL_CHAN_H
/*
 * An endpoint with its message buffers: receives of a fixed size, and a few send buffers that
 * are reused when their completion has come.  Both sides of a session use it.
 */
#include "xfer/opts.h"
#include "xfer/proto.h"
#include <ddpsess/wr.h>

/* wr_id: what completed in the upper half, which one in the lower. */
enum wr_kind { WR_RECV, WR_MSG, WR_WRITE, WR_READ, WR_PING };

#define WR_ID(kind, index) ((uint64_t)(kind) << 32 | (uint32_t)(index))
#define WR_KIND(id)	   ((enum wr_kind)((id) >> 32))
#define WR_INDEX(id)	   ((uint32_t)(id))

#define CHAN_RECVS 8  /* enough for one message of each slot and some */
#define CHAN_SENDS 16 /* likewise; at most 32 */

/* Completions one endpoint can have queued: its send queue and its receive queue. */
#define CHAN_SQ	 (PERF_DEPTH_MAX + CHAN_SENDS)
#define CHAN_RQ	 (PERF_DEPTH_MAX + CHAN_RECVS)
#define CHAN_WCS (CHAN_SQ + CHAN_RQ)

struct chan {
	struct ddps_ep *ep;
	struct ddps_mr *mr;
	uint8_t *mem; /* CHAN_RECVS receive buffers, then CHAN_SENDS send buffers */
	uint32_t recv_len;
	uint32_t sending; /* bit i: send buffer i is the library's */
};

/* @recv_len: octets of one receive buffer.  Return: 0 or DDPS_E_*, nothing left behind. */
int chan_open(struct chan *c, struct ddps_ctx *ctx, struct ddps_pd *pd, struct ddps_cq *cq,
	      uint32_t recv_len, void *user);
void chan_close(struct chan *c);

/* Post receive buffer @i.  Return: 0 or DDPS_E_*. */
int chan_recv(struct chan *c, uint32_t i);
/* Its content. */
const uint8_t *chan_data(const struct chan *c, uint32_t i);

/* Send a copy of a message, or of octets (at most MSG_MAX).  Return: 0 or DDPS_E_*. */
int chan_send(struct chan *c, const struct msg *m);
int chan_send_raw(struct chan *c, const void *data, size_t len);
/* A WR_MSG completed. */
void chan_sent(struct chan *c, uint32_t i);

/* Connection parameters as the options say; private data borrowed from @o. */
void chan_param(struct ddps_conn_param *p, const struct opts *o);

/*
 * Memory for RDMA: zeroed, so that a peer that may read it finds nothing of ours.
 */
struct window {
	uint8_t *mem;
	size_t len;
	struct ddps_mr *mr;
};

/* @len 0 gives a window without memory.  Return: 0 or DDPS_E_*. */
int window_open(struct window *w, struct ddps_pd *pd, struct ddps_ep *ep, size_t len,
		unsigned access);
void window_close(struct window *w);

#endif
