/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef DDPSESS_STATS_H
#define DDPSESS_STATS_H
/*
 * What sessions have done, what they hold now, and which limits they reached.  Counters start at 0
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

	/* Limits that were reached: how often. */
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

	/* Limits that were reached: how often. */
	uint64_t regions_refused; /* ddps_mr_reg: max_regions, DDPS_E_LIMIT */
	uint64_t srq_full;	  /* ddps_post_srq_recv: depth, DDPS_E_LIMIT */
	/* max_half_open was reached.  If more than half of the places are held by peers that have
	 * not sent a whole request, or were rejected and are not gone, the oldest of these goes: see half_open_given_up.  Else peers
	 * wait in the kernel's queue (backlog) over TCP, and are refused over SCTP. */
	uint64_t half_open_full;

	/* Now. */
	uint64_t endpoints;
	uint64_t requests;   /* not answered, or the rejection is on its way */
	uint64_t regions;    /* at most max_regions */
	uint64_t srq_posted; /* in all shared receive queues, not bound */

	/* A limit that was reached: SCTP associations without a session that were ended, since a listener had
	 * more than 256 of them, or more than 32 from one address (see below). */
	uint64_t idle_ended;
	/* A limit that was reached: half-open peers closed so that another one had a place.  Closed is
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

/* ---- SCTP associations ---- */

/*
 * The association that carries a session, and perhaps others between the same two endpoints.  What
 * the kernel's SCTP (backend kernel) does not report is 0: timeouts, restarts, unsent, unacked,
 * out_of_order, rwnd.
 */
struct ddps_assoc_stats {
	size_t struct_size; /* set by the caller to sizeof(struct ddps_assoc_stats) */

	/* Since it was opened.  Chunks are DATA chunks. */
	uint64_t packets_sent, packets_received;
	uint64_t chunks_sent, chunks_received;
	uint64_t retransmitted; /* chunks sent again */
	uint64_t timeouts;	/* of T3-rtx */
	uint64_t duplicates;	/* chunks received that had been received before */
	uint64_t gaps;		/* Gap Ack Blocks that the peer's SACKs had */
	uint64_t restarts;	/* of the peer */

	/* Now, octets. */
	uint64_t unsent;	  /* handed over, not sent yet */
	uint64_t unacked;	  /* sent, not acknowledged for good */
	uint64_t out_of_order;	  /* received, waiting for what is missing */
	uint64_t rwnd, peer_rwnd; /* receive windows, as advertised by this side and the peer */

	uint32_t sessions; /* of this context that it carries */
	uint32_t paths;	   /* to addresses of the peer: see ddps_ep_path_stats; at most 8 */
	char state[24];	   /* as RFC 9260 names it: "ESTABLISHED" */
};

/**
 * ddps_ep_assoc_stats - read the counters of the association below a session
 * @ep:		endpoint with a session over SCTP
 * @st:		struct_size set; filled on success
 *
 * Return: 0, or DDPS_E_INVAL (struct_size), DDPS_E_STATE (no association, or none any more),
 * DDPS_E_UNSUPPORTED (another transport), DDPS_E_FORKED.
 */
DDPS_API int ddps_ep_assoc_stats(struct ddps_ep *ep, struct ddps_assoc_stats *st);

/* States of a path (RFC 9260 5.4 and 8.2, RFC 7829). */
enum ddps_path_state {
	DDPS_PATH_UNCONFIRMED, /* the peer has named it, and has not answered there yet */
	DDPS_PATH_ACTIVE,
	DDPS_PATH_DOUBTFUL, /* potentially failed: used only if no other is active */
	DDPS_PATH_INACTIVE  /* failed more than path.max.retrans times, which is 5 */
};

/*
 * Of backend kernel these are 0, or "": the round trips, ssthresh, flight, retransmitted, timeouts,
 * errors, local.  in_use is what RFC 9260 6.4 has it do: the primary path if that is active, else the
 * first active one.
 */
struct ddps_path_stats {
	size_t struct_size; /* set by the caller to sizeof(struct ddps_path_stats) */

	uint64_t srtt_ns, rttvar_ns, min_rtt_ns; /* round trip; 0: not measured yet */
	uint64_t rto_ns;			 /* of the next packet */
	uint64_t cwnd, ssthresh, flight;  /* octets; ssthresh UINT64_MAX: slow start so far */
	uint64_t retransmitted, timeouts; /* as of the association */

	uint32_t mtu;		  /* of an IP packet, octets: as discovered so far */
	uint32_t errors;	  /* heartbeats and timers without an answer, in a row */
	char peer[72], local[72]; /* "192.0.2.1:7174"; local "": not known yet */
	enum ddps_path_state state;
	uint16_t encap; /* peer's UDP port, 0: SCTP directly on IP */
	bool primary;	/* preferred: see ddps_ep_set_primary */
	bool in_use;	/* new data goes there */
};

/**
 * ddps_ep_path_stats - read state and counters of one path of the association below a session
 * @ep:		as for ddps_ep_assoc_stats
 * @path:	0 .. paths - 1.  The number of a path stays the same as long as the association lives
 * @st:		struct_size set; filled on success
 *
 * Return: as ddps_ep_assoc_stats; DDPS_E_INVAL also if there is no such path.
 */
DDPS_API int ddps_ep_path_stats(struct ddps_ep *ep, uint32_t path, struct ddps_path_stats *st);

/**
 * ddps_ep_set_primary - prefer one path of the association below a session
 * @ep:		as for ddps_ep_assoc_stats
 * @path:	as for ddps_ep_path_stats
 *
 * What this side sends goes there as long as it works, for all sessions of the association.
 * Until then the primary path is that to the first address of the initiator's URI, and for a
 * responder the one that the initiator came from.
 *
 * Return: as ddps_ep_path_stats.
 */
DDPS_API int ddps_ep_set_primary(struct ddps_ep *ep, uint32_t path);

/**
 * ddps_path_state_name - "unconfirmed", "active", "doubtful", "inactive"
 * Return: a constant string, never NULL.
 */
DDPS_API const char *ddps_path_state_name(enum ddps_path_state state);

#ifdef __cplusplus
}
#endif
#endif
