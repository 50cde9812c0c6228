/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef DDPS_SCTP_TX_IN_H
#define DDPS_SCTP_TX_IN_H
/* What tx_sent.c, tx_sack.c and tx_time.c share. */
#include "common/system/assert.h"
#include "sctp/send/tx_sent.h"

#define DDPS_MS	    1000000ull
#define DDPS_SECOND (1000 * DDPS_MS)

enum { SLOT_FREE, SLOT_FLIGHT, SLOT_SACKED, SLOT_LOST };

enum {
	SLOT_I = 1 << 0,    /* carried the I bit */
	SLOT_T3 = 1 << 1,   /* was marked lost by T3 */
	SLOT_VOID = 1 << 2, /* when it was sent is not known: no evidence for RTT and order */
	SLOT_AWAY = 1 << 3, /* was sent on more than one path */
	SLOT_PKT = 1 << 4,  /* counts as a packet in sacked_packets */
	SLOT_TLP = 1 << 5   /* was resent as a tail loss probe */
};

/* One TSN from cum + 1 to next - 1. */
struct ddps_sent_slot {
	void *chunk;
	uint64_t pn, sent_at;
	uint32_t prev, next; /* TSNs, in the list of its path */
	uint16_t size, len, packet;
	uint8_t state, path, nsent, flags;
	uint8_t episode; /* in which it was marked lost; 0: in none */
};

/* TSNs from start to end. */
struct ddps_sent_run {
	uint32_t start, end;
};

/* The last retransmission of a TSN; at tsn modulo HIST. */
#define DDPS_SENT_HIST 256u
enum { HIST_USED = 1, HIST_UNDONE = 2, HIST_TLP = 4, HIST_T3 = 8, HIST_TOLD = 16 };
struct ddps_sent_resent {
	uint64_t first_at; /* when it was sent first; 0: not known, or resent before */
	uint32_t tsn;
	uint8_t path, episode, flags;
};

/* The peer's word alone undoes so many reactions to loss, and one more for each 16 that stand. */
enum { TRUST_UNDO = 16, TRUST_MOST = 16 * TRUST_UNDO };

static inline bool ddps_tsn_before(uint32_t a, uint32_t b)
{
	return (int32_t)(a - b) < 0;
}

static inline struct ddps_sent_slot *ddps_sent_slot(const struct ddps_sent *s, uint32_t tsn)
{
	return &s->ring[tsn & s->mask];
}

static inline bool ddps_sent_holds(const struct ddps_sent *s, uint32_t tsn)
{
	return tsn - s->cum - 1 < s->next - s->cum - 1;
}

static inline uint64_t ddps_sent_window(const struct ddps_sent *s)
{
	return s->a_rwnd > s->out_len ? s->a_rwnd - s->out_len : 0;
}

/*
 * tx_check.c: that counts, lists and bitmaps are of one mind.  At the head of what is called from outside.  With
 * many chunks outstanding only every so many calls look at them all, lest most of a test's time is spent here.
 */
#ifdef DDPS_ASSERTS
void ddps_sent_check(struct ddps_sent *s);
#else
static inline void ddps_sent_check(struct ddps_sent *s)
{
	(void)s;
}
#endif

/* tx_ring.c */
#define DDPS_SENT_RING_FIRST 8u		 /* whoever sends little needs no more */
int ddps_sent_grow(struct ddps_sent *s); /* 0 or DDPS_E_NOMEM */
/* There is no ring: take one that others have left.  false: nothing was done. */
bool ddps_sent_spare_ring(struct ddps_sent *s);
void ddps_sent_ring_free(struct ddps_sent *s);
static inline bool ddps_sent_ring_rests(const struct ddps_sent *s)
{
	return s->next - s->cum == 1 && s->mask == DDPS_SENT_RING_FIRST - 1;
}
/* A small ring may serve another association meanwhile: that of whoever rested before. */
void ddps_sent_ring_pass(struct ddps_sent *s);
/* If nothing is outstanding. */
static inline void ddps_sent_ring_rest(struct ddps_sent *s)
{
	if (ddps_sent_ring_rests(s) && s->conf->spares && s->conf->spares->last != s)
		ddps_sent_ring_pass(s);
}
static inline void ddps_sent_link(struct ddps_sent *s, struct ddps_sent_path *p, uint32_t tsn)
{
	struct ddps_sent_slot *c = ddps_sent_slot(s, tsn);

	c->state = SLOT_FLIGHT;
	c->prev = p->tail;
	if (p->nflight++)
		ddps_sent_slot(s, p->tail)->next = tsn;
	else
		p->head = tsn;
	p->tail = tsn;
	p->flight += c->size;
	s->out_len += c->len;
	s->nflight++;
}
void ddps_sent_unflight(struct ddps_sent *s, uint32_t tsn);
void ddps_sent_unlost(struct ddps_sent *s, uint32_t tsn);
/* FLIGHT again at the end of its path's list, sent nobody knows when. */
void ddps_sent_requeue(struct ddps_sent *s, uint32_t tsn, uint64_t now);
/* A chunk in flight is to be resent; nothing is concluded from it. */
void ddps_sent_mark(struct ddps_sent *s, uint32_t tsn);
/* Lowest LOST TSN not before @from (one that is held); false: none. */
bool ddps_sent_lowest(struct ddps_sent *s, uint32_t from, uint32_t *tsn);

/* tx_sack.c */
/* A chunk was acknowledged by a gap block for the first time. */
void ddps_sent_by_gap(struct ddps_sent *s, uint32_t tsn, uint64_t now, struct ddps_sent_news *news);
/* What p->got says of a round trip is one. */
void ddps_sent_take_rtt(struct ddps_sent *s, struct ddps_sent_path *p, uint64_t now);
void ddps_sent_judge_queue(const struct ddps_sent_path *p, struct ddps_cc_ack *ack);
void ddps_sent_restart_t3(struct ddps_sent *s, struct ddps_sent_path *p, uint64_t now);

/* tx_straight.c */
/* Gives back what follows cum, up to @cum at most, as long as nothing is special about it. */
void ddps_sent_straight_cum(struct ddps_sent *s, uint32_t cum, uint64_t now,
			    struct ddps_sent_news *news);

/* tx_runs.c */
/* cum has moved: runs below it are no runs any more. */
void ddps_sent_drop_runs(struct ddps_sent *s);
/* The blocks of a SACK, well-formed: finds what is new, and what is taken back. */
void ddps_sent_by_blocks(struct ddps_sent *s, const struct ddps_sent_sack *k, uint64_t now,
			 struct ddps_sent_news *news);
/* What follows the cumulative ack is missing there, whatever was said before. */
void ddps_sent_contradiction(struct ddps_sent *s, uint64_t now);

/* tx_time.c */
/*
 * A host that did not run for a while finds an answer late, and would take its own rest for the path's.
 * The sample without it; 0: there is none.
 */
uint64_t ddps_sent_without_rest(const struct ddps_sent *s, const struct ddps_sent_path *p,
				uint64_t rtt, uint64_t now);
/* @rtt: not 0, since that is what a path has before its first one */
void ddps_sent_sample(struct ddps_sent *s, struct ddps_sent_path *p, uint64_t rtt);
void ddps_sent_min_rtt(struct ddps_sent_path *p, uint64_t rtt, uint64_t now);
void ddps_sent_detect(struct ddps_sent *s, struct ddps_sent_path *p, uint64_t now);
/* What was resent came after all, now: packets that are as late as this one are waited for. */
void ddps_sent_note_late(struct ddps_sent *s, struct ddps_sent_path *p, uint64_t first_at,
			 uint64_t now);
/* Bounds the window in which packets may overtake each other (RFC 8985 6.2 step 4). */
void ddps_sent_reordered(struct ddps_sent *s, struct ddps_sent_path *p);
void ddps_sent_arm_pto(struct ddps_sent *s, struct ddps_sent_path *p, uint64_t now);
/* One loss of the present episode was none. */
void ddps_sent_false_loss(struct ddps_sent_path *p, uint8_t episode);
void ddps_sent_false_t3(struct ddps_sent *s, struct ddps_sent_path *p, uint64_t now);
void ddps_sent_episode(struct ddps_sent_path *p);
/* After losses or news: has recovery ended, what is the window.  @ack: what a SACK brought */
void ddps_sent_settle(struct ddps_sent *s, struct ddps_sent_path *p, const struct ddps_cc_ack *ack);

/* What was sent first is to be resent, with the next packet. */
void ddps_sent_resend(struct ddps_sent *s, struct ddps_sent_path *p);

#endif
