/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The straight ways of what is sent.  A new chunk, where there is room for it.  A cumulative ack: chunks that left
 * once, one behind the other, on a path where nothing is amiss; what their packets prove, the last of them proves,
 * so they are given back in one go.  A SACK that says no more than that, where it is so of all that is outstanding.
 * What is not so is left to tx_sent.c and tx_sack.c, which would have done the same for each.
 */
#include "sctp/send/tx_in.h"
#include <string.h>

bool ddps_sent_straight_new(struct ddps_sent *s, uint16_t size, size_t len, void *chunk)
{
	struct ddps_sent_path *p = s->on;
	uint32_t tsn = s->next, n = tsn - s->cum; /* held, this one included */

	if (n > DDPS_SENT_MAX || len > ddps_sent_window(s) || s->zero_go || s->zero_at ||
	    s->conf->stepwise)
		return false;
	if (n > s->mask && !ddps_sent_spare_ring(s)) /* a lone message finds none */
		return false;
	*ddps_sent_slot(s, tsn) = (struct ddps_sent_slot){ .chunk = chunk,
							   .pn = p->next_pn,
							   .sent_at = s->on_now,
							   .size = size,
							   .len = (uint16_t)len,
							   .path = p->id,
							   .nsent = 1 };
	ddps_sent_link(s, p, tsn);
	s->on_size += size;
	s->on_n++;
	s->on_last = tsn;
	s->on_new = true;
	s->next++;
	return true;
}

/* What ddps_sent_begin(), ddps_sent_straight_new() and ddps_sent_end() do of one chunk. */
bool ddps_sent_straight_packet(struct ddps_sent *s, struct ddps_sent_path *p,
			       const struct ddps_sent_new *c, bool *soon)
{
	uint32_t tsn = s->next, n = tsn - s->cum; /* held, this one included */
	const bool empty = !p->nflight;
	struct ddps_sent_slot *k;

	ddps_sent_check(s);
	if (n > DDPS_SENT_MAX || c->len > ddps_sent_window(s) || s->zero_go || s->zero_at ||
	    s->nlost || p->force || p->probe || p->frto || s->conf->stepwise)
		return false;
	if (n > s->mask && !ddps_sent_spare_ring(s)) /* a lone message finds none */
		return false;
	k = ddps_sent_slot(s, tsn);
	*k = (struct ddps_sent_slot){ .chunk = c->chunk,
				      .pn = p->next_pn++,
				      .sent_at = c->now,
				      .size = c->size,
				      .len = c->len,
				      .packet = c->packet,
				      .path = p->id,
				      .nsent = 1 };
	ddps_sent_link(s, p, tsn);
	s->next++;
	if (!s->asked_at)
		s->asked_at = c->now;
	if (!p->t3_at)
		p->t3_at = c->now + ddps_sent_late(p, ddps_sent_rto(s, p));
	p->packets++;
	ddps_cc_sent(&p->cc, c->size, p->flight, c->now);
	*soon = !c->more || empty || p->flight >= p->cc.cwnd || ddps_sent_window(s) < p->cc.smss ||
		s->next - s->cum > DDPS_SENT_MAX;
	if (*soon)
		k->flags |= SLOT_I;
	return true;
}

void ddps_sent_straight_end(struct ddps_sent *s, struct ddps_sent_path *p, uint64_t now)
{
	ddps_sent_arm_pto(s, p, now);
}

static inline bool left_once(const struct ddps_sent_slot *c, const struct ddps_sent_path *p)
{
	return c->state == SLOT_FLIGHT && c->nsent == 1 && c->path == p->id &&
	       !(c->flags & SLOT_VOID);
}

/* Nothing waits for a proof by a chunk of its own. */
static inline bool is_path_plain(const struct ddps_sent *s, const struct ddps_sent_path *p)
{
	return !p->frto && !p->pmtu.holes && !p->pmtu.out && !s->zero_out;
}

/* What evidence() in tx_sack.c finds, when @first to @last are acknowledged, in their order. */
static void note_run(struct ddps_sent *s, struct ddps_sent_path *p, uint64_t first_pn,
		     uint64_t last_pn, uint64_t sent_at, uint64_t now)
{
	uint64_t rtt = now - sent_at;

	if (sent_at > s->latest)
		s->latest = sent_at;
	if (last_pn > p->rack_pn) {
		p->rack_pn = last_pn;
		p->rack_rtt = rtt;
	}
	if (last_pn > p->got.fack)
		p->got.fack = last_pn;
	if (first_pn < p->fack)
		p->reord_seen = true;
	if (last_pn > p->got.rtt_pn) {
		p->got.rtt_pn = last_pn;
		p->got.rtt_at = sent_at;
		p->got.rtt = rtt ? rtt : 1;
	}
	p->pmtu.used = true;
}

void ddps_sent_straight_cum(struct ddps_sent *s, uint32_t cum, uint64_t now,
			    struct ddps_sent_news *news)
{
	uint32_t tsn = s->cum + 1, n = 0;
	const struct ddps_sent_slot *c = ddps_sent_slot(s, tsn);
	struct ddps_sent_path *p = s->path[c->path];
	uint64_t size = 0, len = 0, first_pn = c->pn, pn = 0, sent_at = 0;

	if (s->conf->stepwise || !p->nflight || p->head != tsn || !is_path_plain(s, p))
		return;
	while (s->cum != cum && p->head == s->cum + 1 && n < p->nflight) {
		struct ddps_sent_slot *k = ddps_sent_slot(s, p->head);

		if (!left_once(k, p))
			break;
		pn = k->pn;
		sent_at = k->sent_at;
		size += k->size;
		len += k->len;
		k->state = SLOT_FREE;
		s->cum++;
		n++;
		p->head = k->next;
		s->acked(s->user, s->cum, k->chunk);
	}
	if (!n)
		return;
	p->nflight -= n;
	p->flight -= size;
	s->nflight -= n;
	s->out_len -= len;
	s->steps += n;
	news->acked += n;
	news->cum_advanced += n;
	news->paths |= (uint8_t)(1u << p->id);
	p->got.delivered += size;
	p->got.first_acked = true;
	note_run(s, p, first_pn, pn, sent_at, now);
}

/* ---- a whole SACK ---- */

/* One path, on which all that is outstanding is in flight in the order of TSNs, and nothing is doubtful. */
static inline bool is_sending_plain(const struct ddps_sent *s)
{
	const struct ddps_sent_path *p = s->path[0];

	return s->npath == 1 && p && !s->conf->stepwise && !s->nlost && !s->nruns && s->a_rwnd &&
	       !ddps_tsn_before(s->cum + 1, s->once) && is_path_plain(s, p) && !p->recovery &&
	       !p->backoff && !p->silent_at && !p->tlp_out && !p->dsack_round_set;
}

/* Gives back @n chunks, and notes in p->got what they are. */
static void free_run(struct ddps_sent *s, struct ddps_sent_path *p, uint32_t n, uint64_t now)
{
	uint64_t size = 0, len = 0, first_pn = ddps_sent_slot(s, p->head)->pn, pn = 0, sent_at = 0;

	for (uint32_t left = n; left; left--) {
		struct ddps_sent_slot *k = ddps_sent_slot(s, ++s->cum);

		__builtin_prefetch(ddps_sent_slot(s, s->cum + 2)->chunk, 1);
		pn = k->pn;
		sent_at = k->sent_at;
		size += k->size;
		len += k->len;
		k->state = SLOT_FREE;
		s->acked(s->user, s->cum, k->chunk);
	}
	p->head = s->once = s->cum + 1;
	p->nflight -= n;
	p->flight -= size;
	s->nflight -= n;
	s->out_len -= len;
	s->steps += n;
	s->latest = 0;
	p->got.delivered = size;
	p->got.first_acked = true;
	note_run(s, p, first_pn, pn, sent_at, now);
}

/* path_news() of tx_sack.c, of what can have changed. */
static void straight_path_news(struct ddps_sent *s, struct ddps_sent_path *p, uint32_t n,
			       uint64_t now)
{
	struct ddps_cc_ack ack = { .now = now, .acked = p->got.delivered, .rtt = p->got.rtt };

	ddps_sent_take_rtt(s, p, now);
	if (p->got.fack > p->fack)
		p->fack = p->got.fack;
	ack.srtt = p->srtt;
	ack.flight = p->flight;
	ack.cum_advanced = n;
	ddps_sent_judge_queue(p, &ack);
	ack.round = p->rack_pn >= p->cc_round;
	if (ack.round)
		p->cc_round = p->next_pn;
	ddps_cc_grow(&p->cc, &ack);
	ddps_sent_detect(s, p, now);
	p->nudge_at = p->alive_at = 0;
	ddps_sent_restart_t3(s, p, now);
	ddps_sent_arm_pto(s, p, now);
}

bool ddps_sent_straight_sack(struct ddps_sent *s, uint32_t cum, uint32_t a_rwnd, uint64_t now)
{
	uint32_t n = cum - s->cum, held = s->next - 1 - s->cum;
	struct ddps_sent_path *p = s->path[0];

	ddps_sent_check(s);
	if (!n || n > held || !a_rwnd || !is_sending_plain(s))
		return false;
	memset(&p->got, 0, sizeof p->got);
	p->got.outstanding = p->flight;
	p->lone = ddps_sent_slot(s, p->head)->pn == ddps_sent_slot(s, p->tail)->pn;
	p->lone_i = p->lone && (ddps_sent_slot(s, p->tail)->flags & SLOT_I);
	free_run(s, p, n, now);
	s->cut_short = false;
	s->a_rwnd = a_rwnd;
	s->zero_sacked = true;
	s->zero_n = 0;
	straight_path_news(s, p, n, now);
	ddps_sent_ring_rest(s);
	return true;
}
