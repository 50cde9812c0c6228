/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef DDPSESS_WR_H
#define DDPSESS_WR_H
/*
 * Memory regions, work requests and completions.  Threads: as in session.h.  In addition, while a
 * region changes (ddps_mr_place, ddps_mr_change) or a window is bound, no other thread may call a
 * function on that region or window; work that uses it goes on.
 */
#include <ddpsess/session.h>

#ifdef __cplusplus
extern "C" {
#endif

struct ddps_mr;

/* ---- protection domains and memory regions ---- */

/**
 * ddps_pd_new - create a protection domain: regions and endpoints meet inside one
 * Return: 0, or DDPS_E_NOMEM, DDPS_E_FORKED.
 */
DDPS_API int ddps_pd_new(struct ddps_ctx *ctx, struct ddps_pd **out);

/**
 * ddps_pd_free - destroy it
 * @pd:		may be NULL
 *
 * Return: 0, or DDPS_E_BUSY while regions, endpoints or shared receive queues use it, DDPS_E_FORKED.
 */
DDPS_API int ddps_pd_free(struct ddps_pd *pd);

/* Rights.  Reading locally is always allowed. */
#define DDPS_LOCAL_WRITE   0x1u	 /* receive into, or be the sink of a local RDMA Read */
#define DDPS_REMOTE_WRITE  0x2u	 /* peer's RDMA Write */
#define DDPS_REMOTE_READ   0x4u	 /* peer's RDMA Read */
#define DDPS_REMOTE_ATOMIC 0x10u /* peer's atomics (RFC 7306), alone or with the others */
#define DDPS_ZERO_BASED	   0x8u	 /* tagged offsets start at 0, else at the virtual address */
#define DDPS_BIND	   0x20u /* memory windows may be bound to it */

/**
 * ddps_mr_reg - register memory and give it an STag
 * @pd:		protection domain
 * @addr, @len:	the memory, 0..2^48 octets; it stays the caller's and must stay mapped
 * @access:	DDPS_LOCAL_WRITE | ...
 * @ep:		NULL: any session of the PD; else that endpoint's session alone (RFC 5041 8.2)
 * @out:	set on success only
 *
 * The STag cannot be guessed (RFC 5042 6.1.1).  It is the local key too.
 *
 * Return: 0, or DDPS_E_INVAL, DDPS_E_LIMIT (max_regions), DDPS_E_NOMEM, DDPS_E_SYSTEM (no random
 * numbers), DDPS_E_FORKED.
 */
DDPS_API int ddps_mr_reg(struct ddps_pd *pd, void *addr, size_t len, unsigned access,
			 struct ddps_ep *ep, struct ddps_mr **out);

/**
 * ddps_mr_place - give a region's first octet another tagged offset
 * @mr:		region that no peer knows of yet
 * @to:		0 and the address, which ddps_mr_reg gives, are two among 2^64
 *
 * Return: 0, or DDPS_E_INVAL (a window, or the last octet's offset would be beyond 2^64 - 1),
 * DDPS_E_FORKED.
 */
DDPS_API int ddps_mr_place(struct ddps_mr *mr, uint64_t to);

#define DDPS_CHANGE_ACCESS 0x1u /* @access */
#define DDPS_CHANGE_MEMORY 0x2u /* @addr, @len; tagged offsets as of a new region */
#define DDPS_CHANGE_PD	   0x4u /* @pd, of the same context */

/* What a region becomes. */
struct ddps_mr_change {
	struct ddps_pd *pd;
	void *addr;
	size_t len;
	unsigned access;
	uint32_t reserved; /* 0 */
};

/**
 * ddps_mr_change - other rights, memory or protection domain for a region
 * @mr:		region, valid or invalidated: it is valid again
 * @what:	DDPS_CHANGE_*, one or more
 * @to:		copied; only what @what names is looked at
 *
 * The STag stays.  Whoever uses the region while it changes sees it as it was or as it is, and
 * when this returns nothing reads or writes what is no part of it any more.  Work posted before is
 * checked once more when its turn comes.
 *
 * Return: 0, or DDPS_E_INVAL (a window, range, rights, unknown bits), DDPS_E_BUSY (windows are bound
 * to it), DDPS_E_FORKED.  Unless 0, the region is as it was.
 */
DDPS_API int ddps_mr_change(struct ddps_mr *mr, unsigned what, const struct ddps_mr_change *to);

/**
 * ddps_mw_new - create a memory window: an STag for a part of a region, cheap to give and to revoke
 * @pd:		protection domain of the regions
 * @shared:	whether every session of the PD may use it, or that one alone which binds it
 * @out:	set on success only; ddps_mr_stag, ddps_mr_to and ddps_mr_dereg take it
 *
 * Nobody can use it before DDPS_OP_BIND.  It counts among the regions (max_regions), and is no local
 * key.
 *
 * Return: as ddps_mr_reg.
 */
DDPS_API int ddps_mw_new(struct ddps_pd *pd, bool shared, struct ddps_mr **out);

/**
 * ddps_mr_dereg - revoke the STag; when this returns, nothing reads or writes the memory
 * @mr:		region or window, may be NULL.  Work requests that still name it complete in error, a
 *		peer that names it gets a Terminate.
 *
 * Return: 0, or DDPS_E_BUSY (windows are bound to the region, or a posted request binds the window),
 * DDPS_E_FORKED.
 */
DDPS_API int ddps_mr_dereg(struct ddps_mr *mr);

/** ddps_mr_stag - the STag, for the peer and for struct ddps_sge */
DDPS_API uint32_t ddps_mr_stag(const struct ddps_mr *mr);

/** ddps_mr_to - the tagged offset of the region's first octet */
DDPS_API uint64_t ddps_mr_to(const struct ddps_mr *mr);

/* ---- completion queues ---- */

enum ddps_wc_status {
	DDPS_WC_SUCCESS,
	DDPS_WC_LOCAL_ACCESS, /* own memory: key, bounds or rights; the session was terminated */
	DDPS_WC_LENGTH,	      /* message did not fit the receive; the session was terminated */
	DDPS_WC_REMOTE,	      /* the peer's Terminate names this work request */
	DDPS_WC_FLUSHED	      /* the session ended first */
};

enum ddps_op {
	DDPS_OP_SEND,
	DDPS_OP_WRITE,
	DDPS_OP_READ,
	DDPS_OP_RECV, /* completions only */
	/* RFC 7306, on endpoints with attr.rfc7306 */
	DDPS_OP_IMM,	   /* Immediate Data: 8 octets into the peer's receive completion */
	DDPS_OP_WRITE_IMM, /* RDMA Write, then Immediate Data; one completion for both */
	DDPS_OP_FETCH_ADD,
	DDPS_OP_CMP_SWAP,
	/* Nothing goes to the peer. */
	DDPS_OP_BIND,	   /* bind a memory window */
	DDPS_OP_LOCAL_INV, /* invalidate a region or window of one's own */
	DDPS_OP_SEND_IMM   /* with attr.rfc7306 and attr.send_imm: Send with immediate data, which
			    * takes one receive of the peer */
};

#define DDPS_IMM_OCTETS	     8
#define DDPS_SEND_IMM_OCTETS 4 /* of SEND_IMM; the other four are the library's */

struct ddps_wc {
	uint64_t wr_id;
	struct ddps_ep *ep;
	void *user; /* the endpoint's */
	enum ddps_op op;
	enum ddps_wc_status status;
	uint32_t len; /* RECV, READ, atomics: octets that arrived in the buffer; else 0 */
	uint32_t inv_stag;
	union {
		uint8_t imm[DDPS_IMM_OCTETS]; /* has_imm: as the peer gave it */
		uint64_t original; /* FETCH_ADD, CMP_SWAP: the value before, host byte order */
	};
	bool solicited;		 /* RECV: by a Send or Immediate Data with Solicited Event */
	bool invalidated;	 /* RECV: by a Send with Invalidate; inv_stag was revoked */
	bool has_imm;		 /* RECV: by Immediate Data, and then len is 0 and the buffer
			       * untouched; or, with send_imm, by a Send that has such data:
			       * the last four octets of imm are 0xFE */
	struct ddps_triple term; /* REMOTE: what the Terminate says; else 0 */
	uint8_t reserved[2];	 /* 0; an entry is one cache line of 64 octets, and stays so */
	uint64_t time_ns;	 /* after ddps_cq_stamp: when it was queued; else 0 */
};

/**
 * ddps_cq_new - create a completion queue
 * @ctx:	context
 * @depth:	completions it holds, 1..2^22.  If it overflows, the sessions that feed it are
 *		terminated (0/0/00), other queues are untouched (RFC 5042 6.4.6).
 * @out:	set on success only
 *
 * Return: 0, or DDPS_E_INVAL, DDPS_E_NOMEM, DDPS_E_SYSTEM, DDPS_E_FORKED.
 */
DDPS_API int ddps_cq_new(struct ddps_ctx *ctx, uint32_t depth, struct ddps_cq **out);

/**
 * ddps_cq_free - destroy it
 * @cq:		may be NULL
 *
 * Return: 0, or DDPS_E_BUSY while endpoints use it, DDPS_E_FORKED.
 */
DDPS_API int ddps_cq_free(struct ddps_cq *cq);

/**
 * ddps_cq_stamp - have each completion say when it was queued
 * @cq:		completion queue
 *
 * From then on ddps_wc.time_ns is CLOCK_MONOTONIC in ns: the time when the library put the completion
 * into the queue, whenever it is taken.  It costs a look at the clock for each of them.
 *
 * Return: 0, or DDPS_E_FORKED.
 */
DDPS_API int ddps_cq_stamp(struct ddps_cq *cq);

/**
 * ddps_cq_fd - descriptor that becomes readable after ddps_cq_arm
 * @cq:		completion queue
 *
 * The library owns it.  ddps_cq_arm makes it unreadable again; for another way see ddps_cq_arm_next.
 *
 * Return: the descriptor, or DDPS_E_FORKED.
 */
DDPS_API int ddps_cq_fd(struct ddps_cq *cq);

/**
 * ddps_cq_arm - ask for one notification on the descriptor
 * @cq:		completion queue
 * @solicited_only: only for a solicited receive or an error
 *
 * If completions are queued already the descriptor is readable immediately.
 * Return: 0, or DDPS_E_FORKED.
 */
DDPS_API int ddps_cq_arm(struct ddps_cq *cq, bool solicited_only);

/**
 * ddps_cq_arm_next - ask for one more notification, of a completion not notified yet
 * @cq:		completion queue, which is never armed by ddps_cq_arm
 * @solicited_only: as there
 *
 * The arming of verbs, for programs that share one wait among queues and leave some of them
 * unpolled: no completion causes two notifications, and none is taken back.  The descriptor counts
 * them; whoever has seen it readable takes one by reading 8 octets (EAGAIN: somebody else has).
 * Return: 0, or DDPS_E_FORKED.
 */
DDPS_API int ddps_cq_arm_next(struct ddps_cq *cq, bool solicited_only);

/**
 * ddps_cq_on_notify - have a function called for each notification, instead of the descriptor
 * @cq:		completion queue
 * @fn:		called when the descriptor would become readable; NULL: back to the descriptor
 * @user:	its argument
 *
 * @fn is called by whichever thread serves the context, or inside ddps_cq_arm and _arm_next, with
 * the context locked: it must not block, nor call this library.  It is not called any more once
 * ddps_cq_free has returned.
 * Return: 0, or DDPS_E_FORKED.
 */
DDPS_API int ddps_cq_on_notify(struct ddps_cq *cq, void (*fn)(void *user), void *user);

/**
 * ddps_cq_poll - take completions
 * @cq:		completion queue
 * @wc:		array of at least @max entries
 * @max:	1 or more
 *
 * In a context without a thread, or with poll_drives, it drives the context first if the queue is
 * empty.  That can queue events: take them (ddps_event_get) after the last poll before going to sleep.
 * Behind 31 polls in a row that found nothing, it lets other threads run first (sched_yield).
 *
 * Return: how many were taken, 0..@max, or DDPS_E_SYSTEM, DDPS_E_FORKED.
 */
DDPS_API int ddps_cq_poll(struct ddps_cq *cq, struct ddps_wc *wc, int max);

/**
 * ddps_cq_wait - take completions, drive the context until there is at least one
 * @cq:		completion queue
 * @wc, @max:	room for that many
 * @timeout_ms:	-1 without limit
 *
 * Blocks for at most @timeout_ms, however much peers send; also returns when a signal handler ran.
 * Other threads may wait on the same context, see ddps_event_wait.
 *
 * Return: how many were taken, or DDPS_E_TIMEDOUT, DDPS_E_AGAIN (signal), DDPS_E_SYSTEM,
 * DDPS_E_FORKED.
 */
DDPS_API int ddps_cq_wait(struct ddps_cq *cq, struct ddps_wc *wc, int max, int timeout_ms);

/* ---- work requests ---- */

/* Never changes; another form would have a flag of its own. */
struct ddps_sge {
	void *addr;
	uint32_t len;
	uint32_t lkey; /* ddps_mr_stag() of the region that holds it; any value if len is 0 */
};

#define DDPS_WR_SILENT	   0x1u /* no completion if it succeeds */
#define DDPS_WR_SOLICITED  0x2u /* SEND, IMM, WRITE_IMM: with Solicited Event (RFC 5040 5.3) */
#define DDPS_WR_INVALIDATE 0x4u /* SEND: with Invalidate of @stag (RFC 5040 5.3) */
#define DDPS_WR_FENCE	   0x8u /* start when all earlier RDMA Reads and atomics have completed */
/*
 * Another ddps_post_send on this endpoint follows immediately: the request may stay here until one
 * without this flag, which then hands all of them to the wire together.  One that fails counts
 * as well: it hands over what was queued before it.
 */
#define DDPS_WR_MORE 0x10u
/*
 * SEND, SEND_IMM, WRITE, WRITE_IMM, IMM: complete when the peer has it, and a Write is in its
 * memory, not when it has left.  An RDMA Read of no octets follows it, whose response proves as much
 * (RFC 5040 5.5); it counts for ORD.  Up to eight requests with this flag, posted one behind the
 * other, share one.  A Terminate for such a Write completes it with DDPS_WC_REMOTE; one that does
 * not say what it is for, the oldest such request.
 */
#define DDPS_WR_PLACED 0x20u

/*
 * An atomic works on 8 octets of the peer at an address (not: tagged offset) that is a multiple
 * of 8; a Terminate 0/2/07 is the answer otherwise.  The peer's region needs
 * DDPS_REMOTE_ATOMIC, or both DDPS_REMOTE_READ and DDPS_REMOTE_WRITE (not with verbs_rules there).
 * All values are in host byte order, the target is in the peer's.
 *
 * FETCH_ADD adds @data.  A 1 in @mask marks the top bit of a field: carries do not leave a
 * field.  @mask 0 is one field of 64 bits.
 *
 * CMP_SWAP compares under @compare_mask; if equal it replaces the bits of @mask by those of
 * @data.  @compare_mask 0 always matches: a plain swap.  Mind that masks of 0 are not "all".
 *
 * At the responder it is one indivisible step for all sessions of the process and for its own
 * __atomic operations on an aligned uint64_t; not for RDMA Writes and Reads.
 */
struct ddps_atomic {
	uint64_t data;
	uint64_t mask;
	uint64_t compare, compare_mask; /* CMP_SWAP */
};

/*
 * BIND: the window covers @sge[0] of a region with DDPS_BIND, which is the PD's and not one
 * session's; no piece, or one of no octets, leaves it unbound.  @stag of the request becomes the
 * window's STag: as it is, or with another low octet.  Remote rights to change memory need the
 * region's DDPS_LOCAL_WRITE.  Its tagged offsets are the region's, or start at 0 with
 * DDPS_ZERO_BASED.  A window of one session is invalidated before it is bound anew.
 * What cannot be done in its turn completes with DDPS_WC_LOCAL_ACCESS and ends the session, as any
 * work request on memory that is not one's own.
 */
struct ddps_bind {
	struct ddps_mr *window; /* not deregistered before the request has completed */
	unsigned access;	/* of DDPS_REMOTE_*, DDPS_ZERO_BASED */
	uint32_t reserved;	/* 0 */
};

/* It may grow at its end: a member to come is read only if a flag or an op that comes with it says
 * so, and a library that does not know those refuses them. */
struct ddps_send_wr {
	uint64_t wr_id;
	enum ddps_op op;	    /* any but RECV */
	unsigned flags;		    /* DDPS_WR_* */
	const struct ddps_sge *sge; /* copied; source, or for READ and atomics the sink: one
				     * piece at most, of 8 octets for atomics; IMM,
				     * LOCAL_INV: none; BIND: one at most */
	uint32_t nsge;		    /* 0..max_sge; the sum of lengths is below 2^32 */
	uint32_t stag; /* the peer's region (not SEND, IMM); INVALIDATE: the peer's STag;
			* BIND, LOCAL_INV: one's own */
	uint64_t to;   /* the peer's tagged offset (not SEND, IMM) */
	uint8_t imm[DDPS_IMM_OCTETS]; /* IMM, WRITE_IMM: opaque, sent as they are; SEND_IMM: the
				       * first DDPS_SEND_IMM_OCTETS */
	struct ddps_atomic atomic;    /* FETCH_ADD, CMP_SWAP */
	struct ddps_bind bind;	      /* BIND */
};

/**
 * ddps_post_send - queue a Send, RDMA Write, RDMA Read (RFC 5040 5) or what RFC 7306 adds
 * @ep:		established, or accepted and waiting for the initiator
 * @wr:		copied; the memory it names is the library's until the completion
 *
 * Completions come in the order of posting.  A Send, Write or Immediate Data that completed has
 * left this side; it proves nothing about the peer, but with DDPS_WR_PLACED.  Atomics count as Reads:
 * for ORD, for the fence, and in that their responses come in one order with those of Reads.
 *
 * A session that ends completes with an error all that was not completed before, in the order of
 * posting.  The peer's close (DDPS_EV_PEER_CLOSED) is no end yet: Reads, atomics and requests with
 * DDPS_WR_PLACED cannot be answered any more and complete as DDPS_WC_FLUSHED, but Sends and Writes
 * behind them still go out, and complete with success when they have left (RFC 5041 6.2.1).  A Send or
 * Write with DDPS_WR_PLACED goes out in front of them; nobody confirms it.  New requests that need an
 * answer are refused from then on, also with attr.flush_late, and before DDPS_EV_ESTABLISHED.
 *
 * A queue's memory grows with what is posted at the same time, up to its depth.
 *
 * Return: 0, or DDPS_E_STATE (not connected; closing, unless attr.flush_late; READ, an atomic or
 * DDPS_WR_PLACED that nobody would answer), DDPS_E_LIMIT (queue full, or READ, an atomic or
 * DDPS_WR_PLACED with ORD 0; with flush_late: the CQ has no room), DDPS_E_UNSUPPORTED (attr.rfc7306
 * is off, or attr.send_imm for SEND_IMM), DDPS_E_INVAL (too many pieces, an atomic's sink is not of
 * 8 octets, unknown op or flag), DDPS_E_TOO_LONG, DDPS_E_ACCESS (lkey unknown, of another PD, out
 * of bounds, or without the right; not with verbs_rules of the context), DDPS_E_NOMEM,
 * DDPS_E_FORKED.
 */
DDPS_API int ddps_post_send(struct ddps_ep *ep, const struct ddps_send_wr *wr);

/**
 * ddps_post_recv - queue a buffer for one Send, or one Immediate Data, of the peer
 * @ep:		any time before the session ends
 * @wr_id:	comes back in the completion
 * @sge, @nsge:	pieces filled in order, each with DDPS_LOCAL_WRITE; 0 pieces take a
 *		zero-length Send or Immediate Data (which leaves the buffer alone)
 *
 * Return: 0, or DDPS_E_STATE (the session ends, unless attr.flush_late), DDPS_E_LIMIT (queue full;
 * with flush_late: the CQ has no room), DDPS_E_INVAL (too many pieces; also an endpoint with a shared
 * receive queue), DDPS_E_TOO_LONG (2^32 octets or more), DDPS_E_ACCESS (as ddps_post_send),
 * DDPS_E_NOMEM, DDPS_E_FORKED.
 */
DDPS_API int ddps_post_recv(struct ddps_ep *ep, uint64_t wr_id, const struct ddps_sge *sge,
			    uint32_t nsge);

/* ---- registered memory, without a session ---- */

#define DDPS_COPY_SGE_MAX 16

/**
 * ddps_sge_gather - copy what pieces of registered memory hold, as a Send would read them
 * @pd:		protection domain of the regions; regions bound to one endpoint are refused
 * @sge, @nsge:	0..DDPS_COPY_SGE_MAX pieces, read in order
 * @to:		the program's
 * @len:	room at @to; on success, the octets that were copied
 *
 * For programs that carry messages of their own next to sessions, under the same keys.  Once
 * ddps_mr_dereg has returned nothing reads the region here either.
 *
 * Return: 0, or DDPS_E_INVAL, DDPS_E_ACCESS (an lkey unknown, of another PD or out of bounds),
 * DDPS_E_TOO_LONG (more than @len), DDPS_E_FORKED.  Unless 0, nothing was copied.
 */
DDPS_API int ddps_sge_gather(struct ddps_pd *pd, const struct ddps_sge *sge, uint32_t nsge,
			     void *to, size_t *len);

/**
 * ddps_sge_scatter - copy octets into pieces of registered memory, as a receive would be filled
 * @pd, @sge, @nsge: as for ddps_sge_gather; pieces are filled in order, each with DDPS_LOCAL_WRITE
 * @from, @len:	what is copied
 *
 * Return: as ddps_sge_gather, where DDPS_E_ACCESS is also for a piece without the right, whether
 * or not @len reaches it.
 */
DDPS_API int ddps_sge_scatter(struct ddps_pd *pd, const struct ddps_sge *sge, uint32_t nsge,
			      const void *from, size_t len);

/* ---- shared receive queues ---- */

/**
 * ddps_srq_new - create a receive queue for several endpoints of a protection domain
 * @pd:		protection domain of the endpoints and of the memory
 * @depth:	receives it holds, 1..65535, those included that a message is being received into
 * @max_sge:	pieces of one receive, 1..16
 * @user:	comes back in DDPS_EV_SRQ_LIMIT
 * @out:	set on success only; goes into struct ddps_ep_attr
 *
 * A message takes the oldest receive when its first segment arrives (RFC 5041 5.3); the
 * completion goes to the receive CQ of the endpoint that got it and names that endpoint.  If
 * the queue is empty the endpoint's no_recv rule applies; endpoints that wait are served in the
 * order in which they came.  When an endpoint's session ends, only the receive it had taken is
 * flushed.
 *
 * Return: 0, or DDPS_E_INVAL, DDPS_E_NOMEM, DDPS_E_FORKED.
 */
DDPS_API int ddps_srq_new(struct ddps_pd *pd, uint32_t depth, uint32_t max_sge, void *user,
			  struct ddps_srq **out);

/**
 * ddps_srq_free - destroy it; what is posted is given back without a completion
 * @srq:	may be NULL
 *
 * Return: 0, or DDPS_E_BUSY while endpoints use it, DDPS_E_FORKED.
 */
DDPS_API int ddps_srq_free(struct ddps_srq *srq);

/**
 * ddps_post_srq_recv - queue a buffer for one Send of any of the peers
 * @srq:	shared receive queue
 * @wr_id, @sge, @nsge: as for ddps_post_recv; regions bound to one endpoint are refused
 *
 * Return: 0, or DDPS_E_LIMIT (full), DDPS_E_INVAL, DDPS_E_TOO_LONG, DDPS_E_ACCESS,
 * DDPS_E_FORKED.
 */
DDPS_API int ddps_post_srq_recv(struct ddps_srq *srq, uint64_t wr_id, const struct ddps_sge *sge,
				uint32_t nsge);

/**
 * ddps_srq_arm - ask for one DDPS_EV_SRQ_LIMIT
 * @srq:	shared receive queue
 * @limit:	it comes when fewer than so many receives are posted, or immediately if that is so
 *		already; 0 asks for none.  At most the depth.
 *
 * Return: 0, or DDPS_E_INVAL, DDPS_E_FORKED.
 */
DDPS_API int ddps_srq_arm(struct ddps_srq *srq, uint32_t limit);

/**
 * ddps_srq_posted - how many receives a shared queue holds that no message has taken
 * @srq:	shared receive queue
 *
 * Return: 0..65535, or DDPS_E_FORKED.
 */
DDPS_API int ddps_srq_posted(struct ddps_srq *srq);

/**
 * ddps_take_srq_recv - take the oldest receive out of a shared queue, for a message of the caller's
 * @srq:	shared receive queue
 * @wr_id:	set on success
 * @sge:	room for the max_sge of the queue; set on success
 * @nsge:	set on success: how many pieces it has
 *
 * For what comes by another way than a session: ddps_sge_scatter fills the pieces.  There is no
 * completion, so the caller reports it by itself.  ddps_srq_arm counts it like any other that was taken.
 *
 * Return: 0, or DDPS_E_AGAIN (there is none), DDPS_E_FORKED.
 */
DDPS_API int ddps_take_srq_recv(struct ddps_srq *srq, uint64_t *wr_id, struct ddps_sge *sge,
				uint32_t *nsge);

/** ddps_op_name, ddps_wc_status_name - constant strings, never NULL */
DDPS_API const char *ddps_op_name(enum ddps_op op);
DDPS_API const char *ddps_wc_status_name(enum ddps_wc_status status);

#ifdef __cplusplus
}
#endif
#endif
