/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef DDPS_RDMAP_PRIV_H
#define DDPS_RDMAP_PRIV_H
/* Inside of one RDMAP stream; for src/rdmap and its unit tests only. */
#include "common/system/assert.h"
#include "ddp/ddp_place.h"
#include "ddp/ddp_seg.h"
#include "rdmap/rdmap.h"
#include "rdmap/rdmap_wire.h"
#include "rdmap/srq.h"

/*
 * INIT -start-> RUN -a Terminate queued or received-> ERROR -flush-> GONE.  INIT and RUN
 * may go to GONE, INIT to ERROR (a Terminate as the first message).
 */
enum ddps_rdmap_state { DDPS_RS_INIT, DDPS_RS_RUN, DDPS_RS_ERROR, DDPS_RS_GONE };

/* A send work request. */
struct ddps_sqe {
	uint64_t wr_id;
	uint64_t to;
	uint64_t last_seg; /* number of its latest segment, 0: none pulled yet */
	uint64_t losses;   /* ddps_stag_losses when its pieces were checked */
	uint32_t len, stag, msn, nsge;
	unsigned flags;
	enum ddps_op op : 8;
	enum ddps_wc_status status : 8; /* other than SUCCESS: what it will end with */
	bool plain;			/* a Send or Write that is done when it has left */
	bool sent;			/* its last segment was pulled */
	bool done;			/* READ, atomics: response delivered, or impossible now */
	bool first_cut; /* WRITE_IMM, SEND_IMM: the first of the two messages is cut */
	bool asking;	/* PLACED: all else is cut, the Read that confirms it is next */
	bool covered;	/* PLACED: the next request's Read confirms this one, too */
	bool straight;	/* posted by the straight way, may leave by it */
	/* Behind a line of the cache, since Sends and Writes do not look at it. */
	union {
		struct {
			uint64_t sink_to;
			uint32_t sink_stag;
		}; /* READ; 0 for the Read of PLACED */
		struct {
			struct ddps_areq atomic;
			uint64_t original; /* what the response brought */
		};			   /* atomics, ATOMIC_WRITE, FLUSH */
		uint8_t imm[DDPS_IMM_LEN];
		struct ddps_bind bind; /* its window is held by @pending */
	};
};

/* A receive work request. */
struct ddps_rqe {
	uint64_t wr_id, len;
	uint64_t losses; /* as of struct ddps_sqe */
	uint32_t nsge;
	enum ddps_wc_status status;
};

/*
 * Where a queue's entries lie: rings, indexed by free-running positions modulo their size, which
 * is a power of 2, or 0 while nothing was posted.  What may be posted at a time is depth's business.
 */
struct ddps_wq {
	void *e;
	struct ddps_sge *sge; /* max_sge per entry, behind @e */
	uint32_t size;
	uint32_t before; /* octets in front of @e: it begins with a line of the cache */
};

struct ddps_sq {
	struct ddps_wq mem; /* of struct ddps_sqe */
	uint32_t depth;
	uint64_t head; /* oldest not completed */
	uint64_t next; /* next to hand to DDP */
	uint64_t tail;
};

struct ddps_rq {
	uint64_t head, tail;
	struct ddps_wq mem; /* of struct ddps_rqe */
	uint32_t depth, max_sge;
};

/* A Read Request or Atomic Request accepted and not yet answered entirely. */
struct ddps_irrq_entry {
	union {
		struct ddps_rreq q;
		struct ddps_areq a;
	};
	uint8_t hdr[DDPS_DDP_UNTAGGED_LEN]; /* for a Terminate */
	bool atomic;
	size_t seg_len;
};

struct ddps_irrq {
	uint32_t count, head;
	uint32_t cap, ird;
	struct ddps_irrq_entry *e;
	bool rtr_slot; /* ird is 0, but the RTR Read has a slot */
};

/* One segment as received. */
struct ddps_rx_seg {
	struct ddps_ddp_hdr h;
	uint8_t raw[DDPS_DDP_UNTAGGED_LEN];
	size_t hdr_len, seg_len, pay_len;
	const uint8_t *pay; /* NULL: not in memory (direct placement) */
	unsigned rtr;	    /* the RTR type that it is, or 0 */
};

/*
 * A message being received: one of tagged ones, one per untagged queue.  A message that
 * is whole stays here (done) while an earlier one in another context is not [5041-5.3-7].
 */
enum { DDPS_CTX_SEND, DDPS_CTX_READ, DDPS_CTX_ATOMIC, DDPS_CTX_TAGGED, DDPS_CTX_COUNT };

struct ddps_rx_ctx {
	bool done;
	uint64_t order;		/* rank of its first segment */
	struct ddps_rx_seg seg; /* the latest one; pay is not valid */
};

/* Messages by direction and kind.  Most streams have few kinds: each has its place when the first one
 * comes, @at - 1 in @v. */
struct ddps_tally {
	uint8_t at[2][DDPS_STAT_OPS];
	struct ddps_msg_stats *v;
	uint8_t n, room;
};

enum ddps_tx_cur { DDPS_CUR_NONE, DDPS_CUR_SQ, DDPS_CUR_RRESP };

/* What each Send needs is together at the beginning, on both sides: see struct ddps_mpa_conn. */
struct ddps_rdmap {
	struct ddps_pd *pd;
	const struct ddps_rdmap_up *up;
	void *user;
	enum ddps_rdmap_state state;
	unsigned ctx_open; /* bits: ctx[] that are in use */
	uint32_t max_sge;
	enum ddps_tx_cur cur; /* message in progress */
	unsigned send_rtr;    /* RTR, or nudge, still to go out */
	bool draining, drained, peer_closed;
	bool poke;	 /* something became ready to send: tell with want_tx */
	bool rresp_turn; /* to send: whose turn it is when both have something */
	bool stepwise;	 /* unit tests: no straight ways */
	bool stalled;	 /* a segment was held back */
	bool waited;	 /* the segment that is due was held back before, and counted */
	bool ahead;	 /* Immediate Data may belong to the Send that follows, and has come */
	uint8_t may;	 /* DDPS_REMOTE_*: what the peer may do, whatever regions allow */

	/* sending */
	struct ddps_sq sq;
	uint64_t tx_pulled, tx_acked;	/* segments */
	uint32_t tx_msn[DDPS_QN_COUNT]; /* next */
	struct ddps_stag_seen from;	/* read from, of sends */
	struct ddps_tally tally;
	struct ddps_irrq irrq;

	/* receiving */
	/* With a shared receive queue rq has one place, for the buffer bound. */
	struct ddps_srq *srq;
	uint32_t srq_share;  /* so many bound or completed and not fetched, at most */
	uint32_t srq_out;    /* now */
	unsigned expect_rtr; /* not 0 until the first message */
	bool srq_waits;
	bool over_share; /* why: its share of the shared queue, not the queue itself */
	struct ddps_rq rq;
	struct ddps_ddp_queue rxq[DDPS_QN_COUNT];
	struct ddps_stag_seen into; /* written to, of receives and Reads */
	uint64_t stream;

	bool rfc7306;
	bool llp_mpa_codes;
	bool rtr_read_out;
	bool straight_only; /* unit tests: nothing but straight ways, the others refuse */
	uint8_t covered;    /* PLACED requests in a row without a Read of their own */
	bool send_imm;	    /* see ahead */
	bool flush;	    /* Atomic Writes and Flushes, both ways */
	bool term_pulled;
	bool rtr_strict;
	enum ddps_no_recv no_recv;
	/* Reads and atomics of ours that wait for their responses: one budget, one order. */
	uint16_t ord, reads_max;
	uint32_t reads_out;	 /* the RTR Read included */
	struct ddps_ddp_msg msg; /* the one in progress */

	struct ddps_msg_stats uncounted; /* of messages for whose count there was no memory */
	struct {
		uint64_t sq_full, rq_full, no_buffer, stalls, over_share, ird_overrun, cq_overflow;
	} met; /* limits: as in struct ddps_ep_stats */

	/* Reads, atomics, Terminates, messages in several segments */
	struct ddps_rx_ctx *ctx; /* DDPS_CTX_COUNT; NULL until one is used */
	uint64_t rx_order;
	struct ddps_rx_seg *direct; /* the one that is placed directly; NULL: none ever was */
	TAILQ_ENTRY(ddps_rdmap) srq_link;
	uint64_t read_pos;  /* SQ position of the oldest, if reads_out counts one of the SQ */
	uint64_t rresp_got; /* octets of the oldest one's response */
	struct ddps_sge rresp_src;	 /* source of a response, in one piece */
	uint64_t rresp_seg;		 /* number of the latest of a Read Response */
	uint8_t rreq_buf[DDPS_AREQ_LEN]; /* Read Request or Atomic Request */
	uint8_t imm_buf[DDPS_IMM_LEN];
	uint8_t ahead_imm[DDPS_IMM_LEN];
	struct ddps_triple blame; /* the peer's Terminate that names a request of ours */
	uint8_t aresp_buf[DDPS_ARESP_LEN];
	uint8_t term[DDPS_TERM_LEN_MAX];
	size_t term_len; /* 0: none to send */
};

/* ---- rdmap_straight.c, rdmap_rx.c, rdmap_tx.c: struct ddps_llp_data, with the stream as @user ---- */
int ddps_rdmap_tx_next(void *user, struct ddps_seg *seg, size_t mulpdu);
bool ddps_rdmap_tx_into(void *user, uint8_t *to, size_t len);
void ddps_rdmap_tx_done(void *user, unsigned n);
int ddps_rdmap_rx_segment(void *user, const uint8_t *seg, size_t len);
size_t ddps_rdmap_rx_direct(void *user, const uint8_t *hdr, size_t have, size_t seg_len);
int ddps_rdmap_rx_direct_iov(void *user, size_t off, struct iovec *iov, int max);
int ddps_rdmap_rx_direct_end(void *user);

/* ---- rdmap_check.c ---- */
#ifdef DDPS_ASSERTS
/* Queues and budgets are of one mind.  At the head of what is called from outside. */
void ddps_rdmap_check(struct ddps_rdmap *r);
#else
static inline void ddps_rdmap_check(struct ddps_rdmap *r)
{
	(void)r;
}
#endif

/* ---- rdmap.c ---- */
struct ddps_msg_stats *ddps_rdmap_count_new(struct ddps_rdmap *r, bool in, unsigned op);
static inline struct ddps_msg_stats *ddps_rdmap_count(struct ddps_rdmap *r, bool in, unsigned op)
{
	unsigned at = r->tally.at[in][op];

	return at ? &r->tally.v[at - 1] : ddps_rdmap_count_new(r, in, op);
}
void ddps_rdmap_tell(struct ddps_rdmap *r); /* want_tx, if there is news */
void ddps_rdmap_check_drained(struct ddps_rdmap *r);
/* Stop all work; flush what the LLP does not hold any more. */
void ddps_rdmap_stop(struct ddps_rdmap *r);

/* A segment that was held back is to be shown again. */
void ddps_rdmap_unstall(struct ddps_rdmap *r);

/* ---- rdmap_queue.c ---- */
/* For @size entries of @each octets.  0 or DDPS_E_NOMEM. */
int ddps_wq_make(struct ddps_wq *q, uint32_t size, size_t each, uint32_t max_sge);
/* Room for more entries of @each octets; those in [@head, @tail) stay.  0 or DDPS_E_NOMEM. */
int ddps_wq_grow(struct ddps_wq *q, size_t each, uint32_t max_sge, uint64_t head, uint64_t tail);
void ddps_wq_free(struct ddps_wq *q);
/* Where an empty queue that has come to @tail goes on: at its first entry, which is likely to be
 * in cache, other than the next one. */
static inline uint64_t ddps_wq_first(const struct ddps_wq *q, uint64_t tail)
{
	return q->size ? (tail + q->size - 1) & ~(uint64_t)(q->size - 1) : tail;
}

/*
 * ---- rdmap_send.c, rdmap_recv.c, rdmap_tx.c, rdmap_rx.c: all that rdmap_straight.c does not do itself ----
 * As the functions of rdmap.h and of struct ddps_llp_data that are there.
 */
int ddps_any_post_send(struct ddps_rdmap *r, const struct ddps_send_wr *wr);
int ddps_any_post_recv(struct ddps_rdmap *r, uint64_t wr_id, const struct ddps_sge *sge,
		       uint32_t nsge);
int ddps_any_segment(struct ddps_rdmap *r, struct ddps_seg *seg, size_t mulpdu);
int ddps_any_receive(struct ddps_rdmap *r, const uint8_t *seg, size_t len); /* in RUN */

/* ---- rdmap_send.c: the send queue ---- */
static inline struct ddps_sqe *ddps_sq_at(struct ddps_rdmap *r, uint64_t pos)
{
	return (struct ddps_sqe *)r->sq.mem.e + (pos & (r->sq.mem.size - 1));
}

static inline struct ddps_sge *ddps_sq_sge(struct ddps_rdmap *r, uint64_t pos)
{
	return r->sq.mem.sge + (pos & (r->sq.mem.size - 1)) * r->max_sge;
}

/* It waits for a response, has an ORD slot. */
static inline bool ddps_op_asks(enum ddps_op op)
{
	const unsigned ask = 1u << DDPS_OP_READ | 1u << DDPS_OP_FETCH_ADD | 1u << DDPS_OP_CMP_SWAP |
			     1u << DDPS_OP_ATOMIC_WRITE | 1u << DDPS_OP_FLUSH;

	return (unsigned)op <= DDPS_OP_FLUSH && ask >> op & 1;
}

/* It is carried out here, in its turn; nothing goes out. */
static inline bool ddps_op_local(enum ddps_op op)
{
	return op == DDPS_OP_BIND || op == DDPS_OP_LOCAL_INV;
}

/* It completes when a response has come. */
static inline bool ddps_sqe_waits(const struct ddps_sqe *e)
{
	return ddps_op_asks(e->op) || e->flags & DDPS_WR_PLACED;
}

/* What came last before the response that is due was a Read Request. */
static inline bool ddps_sqe_read(const struct ddps_sqe *e)
{
	return e->op == DDPS_OP_READ || e->asking;
}

/* The next message of @e, whose turn it is, is in progress: nothing of it is cut. */
void ddps_sq_begin(struct ddps_rdmap *r, struct ddps_sqe *e);
bool ddps_sq_ready(struct ddps_rdmap *r); /* the next operation may start now */
/* Segment of the operation in progress, or of the next one.  Return: 0, or < 0: local
 * memory is gone, @f is set. */
int ddps_sq_segment(struct ddps_rdmap *r, struct ddps_seg *seg, size_t mulpdu,
		    struct ddps_fault *f);
/*
 * Check the pieces and add up their lengths; @need as for ddps_stag_check_local.  @losses is for
 * later checks: as of now, or, where the rules of verbs have it that this one is not final,
 * DDPS_LOSSES_BAD.
 */
#define DDPS_LOSSES_BAD UINT64_MAX
/* As ddps_stag_check, for what the peer asks for. */
static inline enum ddps_stag_verdict ddps_peer_check(struct ddps_rdmap *r, uint32_t stag,
						     uint64_t to, uint64_t len, unsigned need,
						     uint8_t **at)
{
	enum ddps_stag_verdict v = ddps_stag_check(r->pd, r->stream, stag, to, len, need, at);

	return !v && need & ~(unsigned)r->may ? DDPS_STAG_ACCESS : v;
}
int ddps_sge_check(struct ddps_pd *pd, uint64_t stream, const struct ddps_sge *sge, uint32_t nsge,
		   unsigned need, uint64_t *len, uint64_t *losses);

/* ---- rdmap_done.c ---- */
void ddps_sq_complete(struct ddps_rdmap *r); /* report what has ended, in order */
/* It ends; @all: also what the LLP still holds. */
void ddps_sq_flush(struct ddps_rdmap *r, bool all);
void ddps_complete_whole(struct ddps_rdmap *r, bool recv_queue, enum ddps_op op, uint64_t wr_id,
			 uint32_t len);
/* It has succeeded, and nothing else is to be said of it. */
static inline void ddps_succeeded(struct ddps_rdmap *r, bool recv_queue, enum ddps_op op,
				  uint64_t wr_id, uint32_t len)
{
	if (r->up->succeeded)
		r->up->succeeded(r->user, recv_queue, op, wr_id, len);
	else
		ddps_complete_whole(r, recv_queue, op, wr_id, len);
}

/* ---- rdmap_local.c ---- */
/* Carry out the local request whose turn it is.  Return: 0, or < 0: it cannot be, @f is set. */
int ddps_sq_local(struct ddps_rdmap *r, struct ddps_fault *f);
/* ... or @pos, just posted, if nothing is before it: the LLP may not be free to ask for long. */
void ddps_sq_local_now(struct ddps_rdmap *r, uint64_t pos);

/* ---- rdmap_recv.c: the receive queue ---- */
static inline struct ddps_rqe *ddps_rq_at(struct ddps_rdmap *r, uint64_t pos)
{
	return (struct ddps_rqe *)r->rq.mem.e + (pos & (r->rq.mem.size - 1));
}

static inline struct ddps_sge *ddps_rq_sge(struct ddps_rdmap *r, uint64_t pos)
{
	return r->rq.mem.sge + (pos & (r->rq.mem.size - 1)) * r->rq.max_sge;
}

/* Return as the other checks, or DDPS_LLP_HOLD: no buffer, and the stream waits for one. */
int ddps_recv_check(struct ddps_rdmap *r, const struct ddps_rx_seg *s, struct ddps_fault *f);
int ddps_recv_target(struct ddps_rdmap *r, const struct ddps_rx_seg *s, size_t off,
		     struct iovec *iov, int max);
int ddps_recv_deliver(struct ddps_rdmap *r, const struct ddps_rx_seg *s, struct ddps_fault *f);
void ddps_rq_flush(struct ddps_rdmap *r);
int ddps_imm_check(struct ddps_rdmap *r, const struct ddps_rx_seg *s, struct ddps_fault *f);
int ddps_imm_target(struct ddps_rdmap *r, const struct ddps_rx_seg *s, size_t off,
		    struct iovec *iov, int max);

/* ---- rdmap_srq.c: the shared receive queue ---- */
enum ddps_srq_answer {
	DDPS_SRQ_TAKEN, /* a buffer is bound */
	DDPS_SRQ_EMPTY,
	DDPS_SRQ_SHARE /* the stream has its share already */
};
enum ddps_srq_answer ddps_srq_take(struct ddps_rdmap *r);
/* The oldest one has gone to a stream or a program. */
void ddps_srq_drop(struct ddps_srq *srq);
/* In line for a buffer; and out of it. */
void ddps_srq_wait(struct ddps_rdmap *r);
void ddps_srq_leave(struct ddps_rdmap *r);
/* The stream is freed. */
void ddps_srq_detach(struct ddps_rdmap *r);

/* ---- rdmap_read.c: the responder's side of Reads ---- */
int ddps_rreq_check(struct ddps_rdmap *r, const struct ddps_rx_seg *s, struct ddps_fault *f);
int ddps_rreq_target(struct ddps_rdmap *r, const struct ddps_rx_seg *s, size_t off,
		     struct iovec *iov, int max);
int ddps_rreq_deliver(struct ddps_rdmap *r, const struct ddps_rx_seg *s, struct ddps_fault *f);
/* The response to @q is in progress. */
void ddps_rresp_begin(struct ddps_rdmap *r, const struct ddps_rreq *q);
int ddps_rresp_segment(struct ddps_rdmap *r, struct ddps_seg *seg, size_t mulpdu,
		       struct ddps_fault *f);

/* A free slot; the RTR Read may have one of its own. */
bool ddps_irrq_room(const struct ddps_irrq *q, bool rtr);
/* Take a slot for the request @s.  NULL: no memory, @f is set. */
struct ddps_irrq_entry *ddps_irrq_push(struct ddps_rdmap *r, const struct ddps_rx_seg *s,
				       struct ddps_fault *f);
void ddps_irrq_pop(struct ddps_irrq *q);
/* The error for @what, which may not touch [@to, @to + @len) of @stag (RFC 5040 7.1). */
int ddps_request_fault(enum ddps_stag_verdict v, const char *what, uint32_t len, uint32_t stag,
		       uint64_t to, struct ddps_fault *f);

/* ---- rdmap_atomic.c: atomics, both sides ---- */
/* A segment of a message of exactly @len octets; otherwise as ddps_ddp_check_untagged. */
int ddps_fixed_check(const struct ddps_ddp_queue *q, const struct ddps_rx_seg *s, bool have_buf,
		     size_t len, const char *what, struct ddps_fault *f);
int ddps_areq_check(struct ddps_rdmap *r, const struct ddps_rx_seg *s, struct ddps_fault *f);
int ddps_areq_deliver(struct ddps_rdmap *r, const struct ddps_rx_seg *s, struct ddps_fault *f);
/* The oldest request is an atomic and the memory it changes may still be on its way out. */
bool ddps_atomic_held(const struct ddps_rdmap *r);
/* Whether a Flush says something, and nothing unknown. */
static inline bool ddps_flush_known(uint64_t what)
{
	const uint64_t how = DDPS_FLUSH_VISIBLE | DDPS_FLUSH_PERSISTENT;

	return what & how && !(what & ~(how | DDPS_FLUSH_REGION));
}

/* Carry out the oldest request and make its response. */
int ddps_atomic_segment(struct ddps_rdmap *r, struct ddps_seg *seg, struct ddps_fault *f);
int ddps_aresp_check(struct ddps_rdmap *r, const struct ddps_rx_seg *s, struct ddps_fault *f);
int ddps_aresp_target(struct ddps_rdmap *r, const struct ddps_rx_seg *s, size_t off,
		      struct iovec *iov, int max);
int ddps_aresp_deliver(struct ddps_rdmap *r, const struct ddps_rx_seg *s, struct ddps_fault *f);

/* ---- rdmap_sink.c: the requester's side of Reads ---- */
void ddps_read_sent(struct ddps_rdmap *r, uint64_t pos); /* pos: of the SQ */
/* The oldest Read or atomic; NULL: none, or the RTR Read. */
struct ddps_sqe *ddps_read_oldest(struct ddps_rdmap *r);
void ddps_read_done(struct ddps_rdmap *r);  /* the oldest one has its response */
void ddps_read_flush(struct ddps_rdmap *r); /* no response can come any more */
int ddps_rresp_check(struct ddps_rdmap *r, const struct ddps_rx_seg *s, struct ddps_fault *f);
int ddps_rresp_target(struct ddps_rdmap *r, const struct ddps_rx_seg *s, size_t off,
		      struct iovec *iov, int max);
int ddps_rresp_deliver(struct ddps_rdmap *r, const struct ddps_rx_seg *s, struct ddps_fault *f);

/* ---- rdmap_tx.c ---- */
/* A message that is one segment without payload from memory. */
void ddps_tx_control(struct ddps_seg *seg, const struct ddps_ddp_hdr *h, const void *body,
		     size_t len);

/* ---- rdmap_term.c ---- */
/*
 * The stream ends by @f: make the Terminate, flush, tell.  @s: the segment that was at
 * fault, or NULL; @rreq: its Read Request header if it was one and is whole, or NULL.
 * Does nothing once the stream is in error: the first one wins [5040-7.1-5].
 */
void ddps_rdmap_fail(struct ddps_rdmap *r, const struct ddps_fault *f, const struct ddps_rx_seg *s,
		     const uint8_t *rreq) __attribute__((cold));
/* The peer's Terminate. */
void ddps_term_received(struct ddps_rdmap *r, const struct ddps_rx_seg *s);

#endif
