/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef DDPSESS_STATS_H
#define DDPSESS_STATS_H
/*
 * What sessions have done, what they hold now, and which limits they reached.
 *
 *	struct ddps_ep_stats st = { .struct_size = sizeof st };
 *
 *	ddps_ep_stats(ep, &st);
 *	printf("%" PRIu64 " Sends\n", st.sent[DDPS_STAT_SEND].messages);
 *
 * The caller sets struct_size to its sizeof.  A counter that the library does not have reads 0.
 *
 * Counters start at 0 with the endpoint or context and never decrease.  The members behind "Now"
 * are present values.  If memory is short, messages may be missing in sent[] and received[].
 * No function here blocks.  Threads: as in session.h.
 */
#include <ddpsess/session.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Which message: the index into sent[] and received[].  It is the RDMAP opcode (RFC 5040 figure
 * 4). */
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
	uint64_t messages; /* complete messages */
	uint64_t segments; /* DDP segments: handed to the transport, or placed */
	uint64_t octets;   /* of the segments, without DDP headers */
};

struct ddps_ep_stats {
	size_t struct_size; /* set by the caller to sizeof(struct ddps_ep_stats) */
	struct ddps_msg_stats sent[DDPS_STAT_OPS];
	struct ddps_msg_stats received[DDPS_STAT_OPS];

	/* How often a limit was reached. */
	uint64_t sq_full;     /* ddps_post_send gave DDPS_E_LIMIT because of sq_depth */
	uint64_t rq_full;     /* ddps_post_recv gave DDPS_E_LIMIT because of rq_depth */
	uint64_t no_buffer;   /* peer's Send without a receive: Terminate 1/2/02 */
	uint64_t stalls;      /* peer's Sends that had to wait for a receive */
	uint64_t over_share;  /* those of them that waited because of srq_share */
	uint64_t ird_overrun; /* peer's Read beyond ird: Terminate 1/2/02 */
	uint64_t cq_overflow; /* completions lost because the CQ was full: Terminate 0/0/00 */

	/* Now. */
	uint64_t sends_posted; /* requests in the send queue; at most sq_depth */
	/* Receives in the receive queue, at most rq_depth.  With a shared queue: the receive that a
	 * message is being received into. */
	uint64_t recvs_posted;
	/* Shared queue: receives taken whose completions were not fetched yet; at most
	 * srq_share. */
	uint64_t recvs_out;
	uint64_t reads_out;   /* own Reads without their response; at most ord */
	uint64_t reads_in;    /* peer's Reads not answered yet; at most ird */
	uint64_t held_octets; /* received, but incomplete, out of order or waiting for a receive */
};

/**
 * ddps_ep_stats - read an endpoint's counters
 * @ep:		endpoint, connected or not
 * @st:		struct_size set; receives the counters
 *
 * Return: 0, or
 * - DDPS_E_INVAL: @st is NULL, or its struct_size is that of no release
 * - DDPS_E_FORKED
 */
DDPS_API int ddps_ep_stats(struct ddps_ep *ep, struct ddps_ep_stats *st);

struct ddps_ctx_stats {
	size_t struct_size; /* set by the caller to sizeof(struct ddps_ctx_stats) */

	/* How often a limit was reached. */
	uint64_t regions_refused; /* ddps_mr_reg, ddps_mw_new gave DDPS_E_LIMIT: max_regions */
	uint64_t srq_full;	  /* ddps_post_srq_recv gave DDPS_E_LIMIT: depth of the queue */
	/* All max_half_open places of a listener were taken.  Some peers may hold a place and do
	 * nothing: they have not sent a whole request, or were rejected and are not gone.  If these
	 * hold more than half of the places, one of them goes: see half_open_given_up.  Otherwise,
	 * over TCP, new peers wait in the kernel's queue (backlog).  Over SCTP they are refused. */
	uint64_t half_open_full;

	/* Now. */
	uint64_t endpoints;
	uint64_t requests;   /* not answered, or the rejection is on its way */
	uint64_t regions;    /* memory regions and windows; at most max_regions */
	uint64_t srq_posted; /* receives in all shared receive queues, without those taken */

	/* How often a limit was reached: SCTP associations without a session that were ended.  A
	 * listener keeps at most 256 of them, and at most 32 of one peer address (see below). */
	uint64_t idle_ended;
	/* How often a limit was reached: half-open peers that were closed to give their place to
	 * another one.  It is the peer that has waited longest, of the address that has most of
	 * them.  An address is an IPv4 address or an IPv6 /64. */
	uint64_t half_open_given_up;
	/* Secured listeners: peers that were refused before their request, by reason.  Not listed is also
	 * another user at an abstract name of shm://. */
	uint64_t refused_identity; /* certificate or pre-shared key missing, wrong or out of date */
	uint64_t refused_not_listed; /* they are who they say, and nobody allows them */
	uint64_t refused_protocol;   /* plain, an old TLS, nothing in common, or no TLS at all */
	uint64_t refused_gone;	     /* left, refused this side, or did not finish in time */
	/* How often files of secured wires had changed and could not be read, or not all of them: what was
	 * read before stays in use, or the own certificate and key of it. */
	uint64_t reloads_failed;
	/* Secured listeners: handshakes that had to wait, since 64 of peers were under way, or since those
	 * of one address came to nothing, 64 in a row and more than 200 a second. */
	uint64_t secured_held;
	/* The sum over all endpoints; counters include endpoints that were freed.
	 * total.struct_size is how many octets of it were filled in. */
	struct ddps_ep_stats total;
};

/**
 * ddps_ctx_stats - read a context's counters
 * @ctx:	context
 * @st:		struct_size set; receives the counters
 *
 * Reads every endpoint, so it is too slow to be called for each message.
 *
 * Return: 0, or
 * - DDPS_E_INVAL: @st is NULL, or its struct_size is that of no release
 * - DDPS_E_FORKED
 */
DDPS_API int ddps_ctx_stats(struct ddps_ctx *ctx, struct ddps_ctx_stats *st);

/* ---- secured wires ---- */

/* What came over sctps:// and was not taken, or was more than a session needs.  Anybody can send
 * packets, so most of these say little of peers. */
struct ddps_secured_stats {
	size_t struct_size; /* set by the caller to sizeof(struct ddps_secured_stats) */

	uint64_t cookies;  /* strangers that were asked for a cookie (RFC 6347 4.2.1) */
	uint64_t strange;  /* records dropped: too short, or not of the keys or version in use */
	uint64_t replayed; /* records dropped: taken before, or too old to say */
	uint64_t forged;   /* records dropped: they did not authenticate */
	uint64_t renewed;  /* new keys of connections that stand */
	uint64_t rebound;  /* peers whose port has changed */
	/* Records from a port that no peer has, for which a key was tried, and for which none was,
	 * since that is done 1000 times a second at most, and 250 of an address. */
	uint64_t tried, untried;
};

/**
 * ddps_ctx_secured_stats - read what a context's secured wires have counted
 * @ctx:	context
 * @st:		struct_size set; receives the counters
 *
 * Return: 0, or
 * - DDPS_E_INVAL: @st is NULL, or its struct_size is that of no release
 * - DDPS_E_FORKED
 */
DDPS_API int ddps_ctx_secured_stats(struct ddps_ctx *ctx, struct ddps_secured_stats *st);

/* ---- SCTP associations ---- */

/*
 * The association (RFC 9260) that carries a session, and perhaps other sessions between the same
 * two SCTP endpoints.  What the kernel's SCTP (backend kernel) does not report is 0: timeouts,
 * restarts, unsent, unacked, out_of_order, rwnd.
 */
struct ddps_assoc_stats {
	size_t struct_size; /* set by the caller to sizeof(struct ddps_assoc_stats) */

	/* Since the association was opened.  Chunks are DATA chunks. */
	uint64_t packets_sent, packets_received;
	uint64_t chunks_sent, chunks_received;
	uint64_t retransmitted; /* chunks sent again */
	uint64_t timeouts;	/* of the retransmission timer, T3-rtx */
	uint64_t duplicates;	/* chunks received that had been received before */
	uint64_t gaps;		/* Gap Ack Blocks in the peer's SACKs */
	uint64_t restarts;	/* how often the peer has restarted it */

	/* Now, octets. */
	uint64_t unsent;	  /* posted, not sent yet */
	uint64_t unacked;	  /* sent, not acknowledged cumulatively */
	uint64_t out_of_order;	  /* received, waiting for missing chunks */
	uint64_t rwnd, peer_rwnd; /* receive windows, as advertised by this side and the peer */

	uint32_t sessions; /* sessions of this context that it carries */
	uint32_t paths;	   /* addresses of the peer, at most 8: see ddps_ep_path_stats */
	char state[24];	   /* as RFC 9260 names it: "ESTABLISHED" */
};

/**
 * ddps_ep_assoc_stats - read the counters of the association below a session
 * @ep:		endpoint with a session over SCTP
 * @st:		struct_size set; receives the counters
 *
 * Return: 0, or
 * - DDPS_E_INVAL: @st is NULL, or its struct_size is that of no release
 * - DDPS_E_STATE: there is no association yet, or none any more
 * - DDPS_E_UNSUPPORTED: another transport
 * - DDPS_E_FORKED
 */
DDPS_API int ddps_ep_assoc_stats(struct ddps_ep *ep, struct ddps_assoc_stats *st);

/* States of a path (RFC 9260 5.4 and 8.2, RFC 7829). */
enum ddps_path_state {
	DDPS_PATH_UNCONFIRMED, /* the peer has listed the address, but not answered there yet */
	DDPS_PATH_ACTIVE,
	DDPS_PATH_DOUBTFUL, /* potentially failed: used only if no other path is active */
	DDPS_PATH_INACTIVE  /* more than 5 failures in a row (Path.Max.Retrans) */
};

/*
 * A path of an association: one address of the peer.
 *
 * Of backend kernel these are 0, or "": srtt_ns, rttvar_ns, min_rtt_ns, ssthresh, flight,
 * retransmitted, timeouts, errors, local.  There in_use is worked out as in RFC 9260 6.4: the
 * primary path if that is active, else the first active one.
 */
struct ddps_path_stats {
	size_t struct_size; /* set by the caller to sizeof(struct ddps_path_stats) */

	uint64_t srtt_ns, rttvar_ns, min_rtt_ns; /* round trip; 0: not measured yet */
	uint64_t rto_ns;			 /* retransmission timeout of the next packet */
	uint64_t cwnd, ssthresh, flight;  /* octets; ssthresh UINT64_MAX: slow start so far */
	uint64_t retransmitted, timeouts; /* as in ddps_assoc_stats */

	uint32_t mtu;		  /* of IP packets, octets: as discovered so far */
	uint32_t errors;	  /* heartbeats and packets without an answer, in a row */
	char peer[72], local[72]; /* "192.0.2.1:7174"; local "": not known yet */
	enum ddps_path_state state;
	uint16_t encap; /* peer's UDP port, 0: SCTP directly on IP */
	bool primary;	/* preferred: see ddps_ep_set_primary */
	bool in_use;	/* new data goes there */
};

/**
 * ddps_ep_path_stats - read state and counters of one path of the association below a session
 * @ep:		as for ddps_ep_assoc_stats
 * @path:	0 .. paths - 1, where paths is in struct ddps_assoc_stats
 * @st:		struct_size set; receives the counters
 *
 * The number of a path stays the same as long as the association lives.
 *
 * Return: 0, or
 * - DDPS_E_INVAL: there is no such path; or as for ddps_ep_assoc_stats
 * - DDPS_E_STATE: as for ddps_ep_assoc_stats
 * - DDPS_E_UNSUPPORTED: as for ddps_ep_assoc_stats
 * - DDPS_E_FORKED
 */
DDPS_API int ddps_ep_path_stats(struct ddps_ep *ep, uint32_t path, struct ddps_path_stats *st);

/**
 * ddps_ep_set_primary - prefer one path of the association below a session
 * @ep:		as for ddps_ep_assoc_stats
 * @path:	as for ddps_ep_path_stats
 *
 * What this side sends goes there as long as it works, for all sessions of the association.
 * Without this call an initiator prefers the first address of its URI, and a responder prefers the
 * address that the initiator came from.
 *
 * Return: 0, or
 * - DDPS_E_INVAL: there is no such path
 * - DDPS_E_STATE: as for ddps_ep_assoc_stats; or the kernel's SCTP refuses
 * - DDPS_E_UNSUPPORTED: as for ddps_ep_assoc_stats
 * - DDPS_E_FORKED
 */
DDPS_API int ddps_ep_set_primary(struct ddps_ep *ep, uint32_t path);

/**
 * ddps_path_state_name - "unconfirmed", "active", "doubtful", "inactive"
 * @state:	any value
 *
 * Thread safe.  Never blocks.
 *
 * Return: a constant string, never NULL.
 */
DDPS_API const char *ddps_path_state_name(enum ddps_path_state state);

#ifdef __cplusplus
}
#endif
#endif
