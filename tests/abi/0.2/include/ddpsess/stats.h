/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef DDPSESS_STATS_H
#define DDPSESS_STATS_H
/*
 * What sessions have done, what they hold now, and which limits they met.  Counters start at 0
 * with the endpoint or context and never go back.  Threads: as in session.h.
 *
 * The caller sets struct_size to its sizeof.  A counter that the library does not have reads 0.
 */
#include <ddpsess/session.h>

#ifdef __cplusplus
extern "C" {
#endif

/* RDMAP opcodes (RFC 5040 figure 4) as index into sent[] and received[]. */
enum {
	DDPS_STAT_WRITE = 0,
	DDPS_STAT_READ_REQUEST = 1,
	DDPS_STAT_READ_RESPONSE = 2,
	DDPS_STAT_SEND = 3,
	DDPS_STAT_SEND_INV = 4,
	DDPS_STAT_SEND_SE = 5,
	DDPS_STAT_SEND_SE_INV = 6,
	DDPS_STAT_TERMINATE = 7,
	DDPS_STAT_OPS = 16
};

struct ddps_msg_stats {
	uint64_t messages; /* whole ones */
	uint64_t segments; /* DDP segments, handed to the wire or placed */
	uint64_t octets;   /* behind the DDP header */
};

struct ddps_ep_stats {
	size_t struct_size; /* set by the caller to sizeof(struct ddps_ep_stats) */
	struct ddps_msg_stats sent[DDPS_STAT_OPS];
	struct ddps_msg_stats received[DDPS_STAT_OPS];

	/* Limits met: how often. */
	uint64_t sq_full;     /* ddps_post_send: sq_depth, DDPS_E_LIMIT */
	uint64_t rq_full;     /* ddps_post_recv: rq_depth, DDPS_E_LIMIT */
	uint64_t no_buffer;   /* peer's Send without a receive: Terminate 1/2/02 */
	uint64_t stalls;      /* peer's Sends that had to wait for a receive */
	uint64_t over_share;  /* those of them that waited because of srq_share */
	uint64_t ird_overrun; /* peer's Read beyond ird: Terminate 1/2/02 */
	uint64_t cq_overflow; /* completions lost: the CQ's depth, Terminate 0/0/00 */

	/* Now. */
	uint64_t sends_posted; /* at most sq_depth */
	uint64_t recvs_posted; /* at most rq_depth; with a shared queue what is bound */
	uint64_t recvs_out;    /* shared queue: bound or not fetched; at most srq_share */
	uint64_t reads_out;    /* own Reads without their response; at most ord */
	uint64_t reads_in;     /* peer's Reads not answered; at most ird */
	uint64_t held_octets;  /* received, out of order, waiting or incomplete */
};

/**
 * ddps_ep_stats - read an endpoint's counters
 * @ep:		endpoint, connected or not
 * @st:		struct_size set; filled on success
 *
 * Return: 0, or DDPS_E_INVAL, DDPS_E_FORKED.
 */
DDPS_API int ddps_ep_stats(struct ddps_ep *ep, struct ddps_ep_stats *st);

struct ddps_ctx_stats {
	size_t struct_size; /* set by the caller to sizeof(struct ddps_ctx_stats) */

	/* Limits met: how often. */
	uint64_t regions_refused; /* ddps_mr_reg: max_regions, DDPS_E_LIMIT */
	uint64_t srq_full;	  /* ddps_post_srq_recv: depth, DDPS_E_LIMIT */
	/* max_half_open was reached.  If more than half of the places are held by peers that have
	 * not sent a whole request, the oldest of these goes: see half_open_given_up.  Else peers
	 * wait in the kernel's queue (backlog) over TCP, and are refused over SCTP. */
	uint64_t half_open_full;

	/* Now. */
	uint64_t endpoints;
	uint64_t requests;   /* not answered, or the rejection is on its way */
	uint64_t regions;    /* at most max_regions */
	uint64_t srq_posted; /* in all shared receive queues, not bound */

	/* A limit met: SCTP associations without a session that were ended, since a listener had
	 * more than 256 of them, or more than 32 from one address (see below). */
	uint64_t idle_ended;
	/* Limits met, again: half-open peers closed so that another one had a place.  Closed is
	 * the one that has waited longest, of the address that has most of them.  An address is an
	 * IPv4 address or an IPv6 /64. */
	uint64_t half_open_given_up;
	uint64_t reserved[6]; /* 0 */
	/* Of all endpoints; counters include those freed.  total.struct_size says how much of it
	 * was filled in. */
	struct ddps_ep_stats total;
};

/**
 * ddps_ctx_stats - read a context's counters
 * @ctx:	context
 * @st:		struct_size set; filled on success
 *
 * Looks at every endpoint: not for the data path.
 *
 * Return: 0, or DDPS_E_INVAL, DDPS_E_FORKED.
 */
DDPS_API int ddps_ctx_stats(struct ddps_ctx *ctx, struct ddps_ctx_stats *st);

#ifdef __cplusplus
}
#endif
#endif
