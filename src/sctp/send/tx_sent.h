/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef DDPS_SCTP_TX_SENT_H
#define DDPS_SCTP_TX_SENT_H
/*
 * What an association has sent and not got acknowledged: SACKs in, and out of them what is
 * delivered, what is lost, what may leave next and when to look again.  Loss detection is by time
 * (RFC 8985 on TSNs), congestion control and path MTU of each path are driven from here.
 *
 * It knows nothing of packets, messages and associations.  A chunk is a TSN, two sizes and an
 * opaque pointer of the caller.  How it is used:
 *
 *	while ((what = ddps_sent_may(s, p, now, next_len, &room)) != DDPS_SENT_NOTHING)
 *		per packet, while the chunks added are below room:
 *			ddps_sent_begin(s, p, now);
 *			OLD: while (ddps_sent_next_old(s, &c) && it fits)
 *				ddps_sent_add_old(s, c.tsn);
 *			then, or NEW: ddps_sent_add_new(s, size, len, chunk) per new chunk
 *			if (ddps_sent_end(s, packet size, more waits))
 *				set the I bit of the last chunk (RFC 9260 6.1);
 *	SACK:	ddps_sent_sack(s, &sack, now, &news);
 *	timer:	per path, when ddps_sent_deadline() has come: ddps_sent_timer(), then _may() again
 *
 * An object of 0.3 kB an association and 0.7 kB a path; a ring (48 octets a TSN outstanding, and
 * at most 65,535 of them) is there from the first chunk on.  A small one goes to the spare ones as
 * soon as nothing is outstanding here and then at another association; ddps_sent_rest() frees any.
 *
 * Time is in nanoseconds of a clock that never goes back; "size" is the octets of a whole chunk
 * with header and pad, "len" is its user data.  No I/O, no globals.  One thread at a time; a
 * callback is made from ddps_sent_sack() and ddps_sent_fini() only.
 */
#include "sctp/send/tx_cc.h"
#include "sctp/send/tx_pmtu.h"

#define DDPS_SENT_MAX	65535u /* TSNs outstanding: a gap block reaches no further */
#define DDPS_SENT_PATHS 8u
#define DDPS_SENT_NEVER UINT64_MAX
/* ns of rest: what is not acknowledged by then would have been resent */
#define DDPS_SENT_SLEEP UINT64_C(1000000000)

/* Times, ns.  Zero is not a default. */
struct ddps_sent_conf {
	uint64_t rto_initial, rto_max;
	uint64_t rto_min; /* 0: 200 ms if the peer answers the I bit immediately, else 400 ms */
	uint64_t grain;	  /* how late a timer may fire; 128 us is usual */
	struct ddps_sent_spares *spares; /* shared by associations of one thread; may be NULL */
	/* When the host did not run last, though a timer was due; the owner reports it.  0: never. */
	uint64_t rest_from, rest_to;
	uint64_t slept_from; /* of the last one that lasted at least DDPS_SENT_SLEEP */
	bool stepwise;	     /* no straight way: tests set it */
};

/* Rings that nobody uses just now.  All zeros: none. */
struct ddps_sent_spares {
	void *first;
	unsigned n;
	/* Who had nothing outstanding last: it keeps its ring until it is so of another one, since who sends and
	 * waits, and sends again, is mostly alone. */
	struct ddps_sent *last;
};

void ddps_sent_spares_free(struct ddps_sent_spares *sp);

/* One path.  Read what is said to be readable; write nothing. */
struct ddps_sent_path {
	struct ddps_cc cc;     /* readable: cwnd, ssthresh, phase */
	struct ddps_pmtu pmtu; /* readable; ddps_pmtu_*() may be called for probes and ICMP, with
				* ddps_sent_mtu_changed() after a call that returns bits */

	/* readable: state of the path */
	uint64_t flight;		     /* octets in flight */
	uint64_t srtt, rttvar, min_rtt, rto; /* 0: no sample yet; rto without back-off */
	uint32_t nflight, nlost, nsacked;    /* chunks last sent here, by their state */
	uint32_t backoff;		     /* T3s in a row */
	/* readable: counters */
	uint64_t packets, resent, lost, spurious, t3s, probes, undone;

	/* to be set: the way does not lead beyond this host */
	bool within_host;
	/* to be set: how late its timers fire, in 4096ths.  Those of many paths that fell silent
	 * together must not fire together; what is said of a timer here is its earliest moment */
	uint8_t late;

	/* private */
	uint16_t overhead;
	uint8_t id;
	uint8_t episode;   /* of congestion; 0 is none */
	uint8_t undo_from; /* the first of those that are undone together */
	bool recovery, reord_seen, lone, lone_i;
	bool force; /* one packet, whatever the window says: T3, TLP */
	bool probe; /* ... and it is a tail loss probe */
	bool tlp_out, tlp_resent, tlp_acked, sampled; /* sampled: since the last probe */
	bool dsack_round_set;
	bool waited;		/* for head, longer than a round trip */
	uint8_t rtts;		/* samples, up to 2 */
	uint8_t frto, frto_new; /* F-RTO (RFC 5682): step, packets of new data left */
	uint32_t head, tail;	/* FLIGHT chunks in the order sent; valid if nflight */
	uint64_t lost_octets;
	uint64_t next_pn, epi_pn; /* packet numbers begin with 1 */
	uint64_t full_pn; /* what left before may have been dropped, since the peer had no room */
	uint64_t undo_pending; /* losses since undo_from not yet known to be false */
	uint64_t undo_at;      /* when undo_from began */
	uint64_t rack_pn, rack_rtt, fack;
	uint32_t reo_mult, dsack_round, sacked_packets;
	int32_t reo_persist;
	uint16_t trust; /* in the peer's reports of duplicates: TRUST_MOST at most */
	uint64_t
		reo_late; /* how late packets were that were resent in vain; 0: none was, of late */
	uint64_t sacked_pn;
	uint64_t min_at, min_cur, min_last; /* two windows of 150 s */
	uint64_t rtt_round, cc_round;	    /* packet numbers that end a round */
	uint64_t frto_pn;
	uint32_t tlp_tsn;
	uint64_t tlp_acked_at;
	uint64_t reo_at, pto_at, t3_at, nudge_at, pace_at, silent_at, alive_at; /* 0: off */

	/* private: what the SACK in hand brought */
	struct {
		uint64_t delivered, outstanding, rtt, rtt_pn, rtt_at, fack;
		bool first_acked, doubled, spurious, new_loss, frto_proof, between;
	} got;
};

struct ddps_sent_slot;
struct ddps_sent_run;
struct ddps_sent_resent;

struct ddps_sent {
	/* readable */
	uint32_t cum;	  /* TSN up to which all is acknowledged */
	uint32_t next;	  /* TSN of the next new chunk; next - 1 - cum chunks are held */
	uint32_t nlost;	  /* chunks to be resent */
	uint32_t nflight; /* chunks in flight, all paths */
	uint64_t out_len; /* user data in flight */
	uint32_t a_rwnd;  /* as last told by the peer */
	uint64_t latest;  /* private: when the last of what the SACK in hand brought was sent */
	/* When DATA was sent of which the peer has said nothing since, by any packet; 0: it has. */
	uint64_t asked_at;
	uint64_t reneged, stale_sacks, bad_blocks; /* counters */
	uint64_t steps; /* slots and blocks looked at, ever: the cost, for tests */

	/* private */
	const struct ddps_sent_conf *conf;
	void (*acked)(void *user, uint32_t tsn, void *chunk);
	void *user;
	struct ddps_sent_path *path[DDPS_SENT_PATHS];
	unsigned npath;		     /* the rest of them is NULL */
	struct ddps_sent_slot *ring; /* slot of a TSN: its low bits */
	uint32_t mask;		     /* of the ring; 0: none */
	/* Behind the ring, a bitmap over it, and one of that: which words of it are not 0. */
	uint64_t *lost, *lost_top;
	struct ddps_sent_run *runs; /* acked by gap blocks, above cum, in order */
	struct ddps_sent_run *spare;
	uint32_t nruns, runs_size;
	uint32_t told;		       /* TSN up to which the last SACK reports */
	bool cut_short;		       /* ... since it may have had no room for more blocks */
	struct ddps_sent_resent *hist; /* of retransmissions, for reports of duplicates */
	bool i_answered;	       /* the peer was seen to answer the I bit */
	uint32_t
		once; /* what is outstanding from this TSN on has left once, in order, and it is known when */

	struct ddps_sent_path *on; /* the packet in hand */
	uint64_t on_now, on_size;
	uint32_t on_n, on_last;
	bool on_empty, on_old, on_lowest, on_new;

	struct ddps_sent_path *zero_on; /* zero window probing (9260-6.1-6) */
	uint64_t zero_at;
	uint32_t zero_tsn, zero_n;
	bool zero_go, zero_out, zero_sacked;
#ifdef DDPS_ASSERTS
	uint32_t unlooked; /* what ddps_sent_check() may look at */
#endif
};

/**
 * ddps_sent_init - nothing sent yet
 * @conf:   borrowed until ddps_sent_fini()
 * @first:  TSN of the first chunk
 * @a_rwnd: of the peer's INIT or INIT ACK
 * @acked:  called for each chunk, in the order of TSNs, as soon as the cumulative TSN ack covers
 *	    it: the caller may free it.  It must not call into this object.  What is acked by gap
 *	    blocks only is kept, since the peer may take that back.
 */
void ddps_sent_init(struct ddps_sent *s, const struct ddps_sent_conf *conf, uint32_t first,
		    uint32_t a_rwnd, void (*acked)(void *user, uint32_t tsn, void *chunk),
		    void *user);

/* Gives all chunks back through the callback (lowest TSN first) and frees the memory. */
void ddps_sent_fini(struct ddps_sent *s);

/* Frees the memory if nothing is outstanding.  For associations that were idle for long.  Not between
 * ddps_sent_begin() and _end(), as ddps_sent_sack(). */
void ddps_sent_rest(struct ddps_sent *s);

/**
 * ddps_sent_path_init - a path
 * @id:	      not in use in @s; from DDPS_SENT_PATHS on no data is sent there
 * @lim:      see ddps_pmtu_limits()
 * @overhead: octets of a packet before its first chunk: IP, UDP, SCTP header
 *
 * @p stays where it is as long as @s, or until ddps_sent_path_gone().
 */
void ddps_sent_path_init(struct ddps_sent *s, struct ddps_sent_path *p, unsigned id,
			 const struct ddps_pmtu_limits *lim, unsigned overhead);

/* There is no such path any more.  Nothing that is outstanding has left there. */
void ddps_sent_path_gone(struct ddps_sent *s, const struct ddps_sent_path *p);

/* The path is not to be used for now (failover): all that is in flight there is lost. */
void ddps_sent_path_lost(struct ddps_sent *s, struct ddps_sent_path *p);

/* It is used again after that, or its route has changed: its window and RTT begin afresh. */
void ddps_sent_path_again(struct ddps_sent *s, struct ddps_sent_path *p);

/* One more RTT sample: of INIT, COOKIE ECHO or HEARTBEAT, sent once (9260-6.3.1). */
void ddps_sent_rtt(struct ddps_sent *s, struct ddps_sent_path *p, uint64_t rtt, uint64_t now);

/* @ns and a little more, as much as p->late says. */
static inline uint64_t ddps_sent_late(const struct ddps_sent_path *p, uint64_t ns)
{
	return ns + ns / 4096 * p->late;
}

/* RTO with back-off, ns: for all timers of this path. */
uint64_t ddps_sent_any_rto(const struct ddps_sent *s, const struct ddps_sent_path *p);
static inline uint64_t ddps_sent_rto(const struct ddps_sent *s, const struct ddps_sent_path *p)
{
	const uint64_t rto = p->srtt + 4 * p->rttvar;

	/* mostly a round trip is far below its bound */
	if (p->srtt && !p->backoff && s->conf->rto_min && rto <= s->conf->rto_min)
		return s->conf->rto_min;
	return ddps_sent_any_rto(s, p);
}

/* p->pmtu has changed: take its size over.  @bits as ddps_pmtu_*() returned them. */
void ddps_sent_mtu_changed(struct ddps_sent *s, struct ddps_sent_path *p, unsigned bits);

/* Octets of chunks that a packet of this path takes (PMDCS of RFC 9260). */
static inline uint32_t ddps_sent_smss(const struct ddps_sent_path *p)
{
	return p->cc.smss;
}

/* ---- sending ---- */

enum ddps_sent_what {
	DDPS_SENT_NOTHING, /* not now: a SACK or ddps_sent_deadline() comes first */
	DDPS_SENT_OLD,	   /* chunks of ddps_sent_next_old(); new ones only where room is left */
	DDPS_SENT_NEW
};

/**
 * ddps_sent_may - what may leave on a path
 * @len:  user data octets of the first new chunk that waits; SIZE_MAX: none waits
 * @room: octets of chunks that may leave in one bundle of packets; whole packets leave as long
 *	  as those before are below @room.  1: one packet
 *
 * To be asked only if something waits or s->nlost is not 0; "no" counts as a path used to the
 * full.  Decides by window of the peer and of the path, pacer and timers.
 */
enum ddps_sent_what ddps_sent_may(struct ddps_sent *s, struct ddps_sent_path *p, uint64_t now,
				  size_t len, uint64_t *room);

/* A chunk to be resent. */
struct ddps_sent_chunk {
	uint32_t tsn;
	uint16_t size;
	void *chunk;
};

/**
 * ddps_sent_next_old - the next chunk to be resent, between ddps_sent_begin() and _end()
 *
 * A chunk that was cut for a larger path MTU does not fit any packet of this path: it is sent
 * alone, and IP fragments it (RFC 9260 6.9).
 *
 * Return: false: there is none.
 */
bool ddps_sent_next_old(struct ddps_sent *s, struct ddps_sent_chunk *c);

/* The chunk that is waited for: lost, or outstanding for longest.  False: none is. */
bool ddps_sent_oldest(const struct ddps_sent *s, struct ddps_sent_chunk *c);

/* Begin a packet.  Return: its number on this path, for ddps_sent_refused(). */
uint64_t ddps_sent_begin(struct ddps_sent *s, struct ddps_sent_path *p, uint64_t now);

/* @tsn: of ddps_sent_next_old(); it is in this packet. */
void ddps_sent_add_old(struct ddps_sent *s, uint32_t tsn);

/**
 * ddps_sent_add_new - a chunk with TSN s->next is in this packet
 * @size, @len: see above; @size at most 65,532
 *
 * Return: 0, or, with nothing changed,
 *   DDPS_E_AGAIN	65,535 TSNs are outstanding, or @len is above the peer's window
 *   DDPS_E_NOMEM	no memory for a larger ring
 */
int ddps_sent_add_new(struct ddps_sent *s, uint16_t size, size_t len, void *chunk);

/* The same on the straight way.  false: nothing was done, and ddps_sent_add_new() decides. */
bool ddps_sent_straight_new(struct ddps_sent *s, uint16_t size, size_t len, void *chunk);

/* A packet of one new chunk.  @packet: octets of IP; @more: more waits.  false: nothing was done.  @soon: as
 * ddps_sent_end() returns it.  Behind the last of those that leave at the same time: ddps_sent_straight_end(). */
struct ddps_sent_new {
	void *chunk;
	uint64_t now;
	uint16_t size, len, packet;
	bool more;
};
bool ddps_sent_straight_packet(struct ddps_sent *s, struct ddps_sent_path *p,
			       const struct ddps_sent_new *c, bool *soon);
void ddps_sent_straight_end(struct ddps_sent *s, struct ddps_sent_path *p, uint64_t now);

/* This packet has left before, nobody knows when: its chunks are no evidence for RTT and order. */
void ddps_sent_untimed(struct ddps_sent *s);

/**
 * ddps_sent_end - the packet is complete
 * @packet: its size as an IP packet
 * @more:   another chunk waits to be sent
 *
 * A packet without chunks is forgotten.
 *
 * Return: whether its last chunk is to carry the I bit.
 */
bool ddps_sent_end(struct ddps_sent *s, uint32_t packet, bool more);

/**
 * ddps_sent_refused - packets with number @pn and above did not leave (EMSGSIZE)
 *
 * Their chunks are to be resent; that is no congestion.
 */
void ddps_sent_refused(struct ddps_sent *s, struct ddps_sent_path *p, uint64_t pn);

/* ---- SACK ---- */

struct ddps_sent_gap {
	uint16_t start, end; /* offsets from the cumulative TSN ack */
};

struct ddps_sent_sack {
	uint32_t cum, a_rwnd;
	const struct ddps_sent_gap *gaps;
	const uint32_t *dups;
	size_t ngaps, ndups;
	bool shutdown; /* of a SHUTDOWN chunk: a cumulative TSN ack and nothing else */
};

enum ddps_sent_verdict {
	DDPS_SENT_TAKEN,
	DDPS_SENT_STALE, /* older than one before: nothing was done */
	DDPS_SENT_LIE	 /* acknowledges what was never sent: ABORT (9260-12.4-3) */
};

struct ddps_sent_news {
	uint32_t acked;	       /* chunks newly acknowledged, by gap blocks too */
	uint32_t cum_advanced; /* chunks given back */
	uint8_t paths;	       /* bit 1 << id: a chunk sent only there was newly acknowledged */
	bool window;	       /* the peer's window has grown */
};

/**
 * ddps_sent_sack - take a SACK
 * @sack: of any content; its length was checked
 *
 * Blocks that are not in order are ignored, all of them; touching blocks are taken.  Cost: the
 * chunks newly acknowledged, and the blocks of this SACK and the last.
 */
enum ddps_sent_verdict ddps_sent_sack(struct ddps_sent *s, const struct ddps_sent_sack *sack,
				      uint64_t now, struct ddps_sent_news *news);

/* The same on the straight way, of a SACK that says no more than this.  true: it is taken, and of the one path there is
 * a chunk was newly acknowledged.  false: nothing was done, and ddps_sent_sack() decides. */
bool ddps_sent_straight_sack(struct ddps_sent *s, uint32_t cum, uint32_t a_rwnd, uint64_t now);

/* ---- time ---- */

enum {
	DDPS_SENT_EV_SEND = 1 << 0, /* ask ddps_sent_may() */
	DDPS_SENT_EV_T3 = 1 << 1,   /* count one error of the path and of the association */
	DDPS_SENT_EV_LOST = 1 << 2  /* chunks were marked lost */
};

/* 0 is "off", and so comes last. */
static inline uint64_t ddps_sent_sooner(uint64_t a, uint64_t b)
{
	return a - 1 < b - 1 ? a : b;
}

/* When ddps_sent_timer() is due for this path; DDPS_SENT_NEVER: not now. */
static inline uint64_t ddps_sent_deadline(const struct ddps_sent *s, const struct ddps_sent_path *p)
{
	uint64_t at = p->pace_at;

	if (s->zero_on == p)
		at = ddps_sent_sooner(at, s->zero_at);
	if (p->nflight) {
		at = ddps_sent_sooner(at, p->reo_at);
		at = ddps_sent_sooner(at, p->pto_at);
		at = ddps_sent_sooner(at, p->t3_at);
		at = ddps_sent_sooner(at, p->nudge_at);
	}
	return at ? at : DDPS_SENT_NEVER;
}

/* Time has come, or may have.  Each timer fires at most once a call.  Return: DDPS_SENT_EV_* */
unsigned ddps_sent_timer(struct ddps_sent *s, struct ddps_sent_path *p, uint64_t now);

/* Anything with the right tag came from this path: if T3 is backed off by now, one packet is resent
 * without waiting for it, at most once a second.  Return: true: ask ddps_sent_may(). */
bool ddps_sent_alive(struct ddps_sent *s, struct ddps_sent_path *p, uint64_t now);

#endif
