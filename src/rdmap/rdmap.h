/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef DDPS_RDMAP_H
#define DDPS_RDMAP_H
/*
 * One RDMAP stream over DDP (RFC 5040, RFC 5041): work requests in, segments out,
 * segments in, completions out.  No I/O, no clock, no lock (context's lock).
 *
 * Upcalls come from inside calls; the layer above may call any function of this header
 * but ddps_rdmap_free from inside an upcall.
 */
#include "common/llp.h"
#include "ddp/stag.h"
#include <ddpsess/stats.h>

struct ddps_rdmap;
struct ddps_srq;

/* A Terminate, sent or received (RFC 5040 4.8). */
struct ddps_term {
	struct ddps_triple triple;
	bool swapped;	 /* received: bit-swapped as soft-iWARP writes it; triple is as read
		       * the swapped way, wire holds what stood there */
	uint8_t wire[4]; /* Terminate Control as on the wire */
	char text[160];	 /* what was found; received: what is odd about it, or "" */
	int code;	 /* local: DDPS_E_*; received: 0, DDPS_E_TRUNCATED or DDPS_E_PROTOCOL */
};

struct ddps_rdmap_up {
	/* A work request ended.  wc->ep and wc->user are for the callee to fill. */
	void (*complete)(void *user, bool recv_queue, struct ddps_wc *wc);
	/* The same of one that has succeeded, of which this is all that there is to say.  NULL: as above. */
	void (*succeeded)(void *user, bool recv_queue, enum ddps_op op, uint64_t wr_id,
			  uint32_t len);
	/* tx_next would return something now; not called for what ddps_rdmap_post_send queued. */
	void (*want_tx)(void *user);
	/* A Terminate was queued (by_peer false) or received; no more work from here on.
	 * All outstanding work has been flushed when this is called, but for Sends and
	 * Writes of which the LLP still holds segments, and what was posted after them:
	 * their memory is not free yet.  They follow from tx_done and, at the latest,
	 * from ddps_rdmap_flush. */
	void (*terminated)(void *user, const struct ddps_term *t, bool by_peer);
	/* Responder in the peer-to-peer model: the first message came in.  @rtr is its
	 * type, or 0 if it was no RTR (lenient; processed as usual, called at its first
	 * segment). Not called if there is no expect_rtr, nor if that message is a
	 * Terminate or faulty. */
	void (*first_message)(void *user, unsigned rtr);
	/* After rx_segment returned DDPS_LLP_HOLD: it may be shown again now. */
	void (*rx_ready)(void *user);
	/* The peer has invalidated a region: nothing below may refer to it any more.  May be NULL. */
	void (*revoked)(void *user);
	/* Have [@at, @at + @len) of a region with DDPS_PERSISTENT written to its files.  0, or < 0: it
	 * cannot be.  May be NULL if no stream has @flush. */
	int (*persist)(void *user, uint8_t *at, size_t len);
	/* The last of the work posted before ddps_rdmap_drain has ended.  Not called once
	 * the stream is in error: terminated comes instead. */
	void (*drained)(void *user);
};

struct ddps_rdmap_cfg {
	struct ddps_pd *pd;
	uint64_t stream; /* its number, never used again: for stream-bound regions; not 0 */
	uint32_t sq_depth, rq_depth, max_sge;
	enum ddps_no_recv no_recv;
	struct ddps_srq *srq; /* or NULL; then rq_depth is not looked at ... */
	uint32_t srq_share;   /* ... and this many of its buffers may be out; not 0 */
	bool rfc7306;	      /* Immediate Data and atomics, both ways */
	bool send_imm, flush; /* of struct ddps_ep_attr */
	const struct ddps_rdmap_up *up;
	void *user;
};

/* Return: 0, DDPS_E_INVAL (a depth of 0, max_sge not 1..16), DDPS_E_NOMEM. */
int ddps_rdmap_new(struct ddps_rdmap **out, const struct ddps_rdmap_cfg *cfg);
void ddps_rdmap_free(struct ddps_rdmap *r); /* no upcalls */

struct ddps_rdmap_start {
	uint16_t ird, ord;
	unsigned send_rtr;   /* initiator: send this one first, or 0 */
	bool rtr_needs_ord;  /* see struct ddps_nego_result */
	unsigned expect_rtr; /* responder: swallow one of these as first message */
	bool rtr_strict;     /* responder: anything else is Terminate 2/0/07 */
	bool provider_read_slot;
	bool llp_mpa_codes; /* the LLP has codes for a too short segment: 2/0/03, else
			       1/0/00 */
};

/*
 * Set-up is done; segments may flow.  Receives may have been posted before.  Calls
 * up->want_tx if there is something to send.  Return: 0, DDPS_E_STATE, DDPS_E_NOMEM,
 * DDPS_E_INVAL (not one RTR type in send_rtr, or a Read RTR without a slot).
 */
int ddps_rdmap_start(struct ddps_rdmap *r, const struct ddps_rdmap_start *s);

/* What the peer may do at all, of DDPS_REMOTE_*: everything, to begin with. */
void ddps_rdmap_allow(struct ddps_rdmap *r, unsigned rights);

/* How many Reads and atomics of this side may be on their way, in addition to ORD; not 0.  UINT16_MAX to begin with. */
void ddps_rdmap_reads_max(struct ddps_rdmap *r, uint16_t n);

/* Send a zero-length Write that is no work request, unless a message is half sent or the stream
 * is not in operation: then there is more to come, or nothing left to say. */
void ddps_rdmap_nudge(struct ddps_rdmap *r);

/* As ddps_post_send and ddps_post_recv.  Sends and Writes posted before start wait for
 * it; a Read or an atomic is refused then (DDPS_E_STATE), since ORD is not known, and after
 * peer_closed. */
int ddps_rdmap_post_send(struct ddps_rdmap *r, const struct ddps_send_wr *wr);
int ddps_rdmap_post_recv(struct ddps_rdmap *r, uint64_t wr_id, const struct ddps_sge *sge,
			 uint32_t nsge);
/* All but held_octets, which the caller fills in. */
struct ddps_ep_stats ddps_rdmap_stats(const struct ddps_rdmap *r);
/* A completion of its was lost for lack of room in its queue: counted. */
void ddps_rdmap_overflowed(struct ddps_rdmap *r);

#define DDPS_RDMAP_OFTEN 240u /* octets at the beginning of a stream that each Send posted needs */
/* Something is to be posted soon: what that needs, the stream itself aside, is to be in cache. */
void ddps_rdmap_expect(const struct ddps_rdmap *r);

/* With a shared receive queue: the application has a completion of the receive queue now. */
void ddps_rdmap_recv_fetched(struct ddps_rdmap *r);

/* What an LLP calls, with a struct ddps_rdmap as user.  A MULPDU below DDPS_SEG_HDR_MAX gives
 * nothing to send: RFC 5044 and 5043 stay above it. */
extern const struct ddps_llp_data ddps_rdmap_data;

/* Whether tx_next has something. */
bool ddps_rdmap_tx_ready(struct ddps_rdmap *r);

/* How many segments of the peer were taken so far; and whether one has come, even if it was held
 * back. */
uint64_t ddps_rdmap_taken(const struct ddps_rdmap *r);
bool ddps_rdmap_heard(const struct ddps_rdmap *r);

/* Queue a Terminate for an error that is not RDMAP's own: set-up codes 2/0/05..07, LLP
 * errors 2/0/02 and 2/0/03, local catastrophes 0/0/00.  The first one wins. */
void ddps_rdmap_terminate(struct ddps_rdmap *r, int code, struct ddps_triple t, const char *text);

/* No new posts; up->drained when all posted send work has ended and all accepted inbound
 * Reads and atomics are answered (immediately if nothing is left). */
void ddps_rdmap_drain(struct ddps_rdmap *r);

/* Of a message the beginning has come and the end has not. */
bool ddps_rdmap_is_inside(const struct ddps_rdmap *r);

/* Posted send work has not ended, or an accepted Read or atomic is not answered. */
bool ddps_rdmap_owes(const struct ddps_rdmap *r);
/* Posted send work has not ended. */
bool ddps_rdmap_has_work(const struct ddps_rdmap *r);
/* Send work was posted, ever. */
bool ddps_rdmap_posted(const struct ddps_rdmap *r);

/* Peer closed in order: outstanding Reads and atomics can not complete any more and are flushed
 * (RFC 5040 2.9 half-close); Sends and Writes go on. */
void ddps_rdmap_peer_closed(struct ddps_rdmap *r);

/* Changes whenever posted work moves: not by the peer's own messages and requests. */
uint64_t ddps_rdmap_own_progress(struct ddps_rdmap *r);

/* Before ddps_rdmap_flush: the peer's host is why, and the oldest work that was posted says so. */
void ddps_rdmap_unanswered(struct ddps_rdmap *r);

/* The stream is gone: everything outstanding completes as flushed, in order. */
void ddps_rdmap_flush(struct ddps_rdmap *r);

#endif
