/* SPDX-License-Identifier: BSD-2-Clause */
/* What a SACK says. */
#include "sctp/send/tx_in.h"
#include <string.h>

#define QUICK_WINDOW (256u << 10)
#define QUEUE	     (DDPS_MS / 2)
#define QUEUE_HERE   (DDPS_MS / 4)
#define I_ANSWER     (100 * DDPS_MS) /* a peer that waits longer ignores the I bit */

/* ---- what is checked before anything is done ---- */

static enum ddps_sent_verdict judge_sack(struct ddps_sent *s, const struct ddps_sent_sack *k,
					 bool *blocks)
{
	uint32_t ahead = k->cum - s->cum, held = s->next - 1 - s->cum, end = 0;

	*blocks = !k->shutdown;
	if (ahead > held) {
		if ((int32_t)ahead >= 0)
			return DDPS_SENT_LIE;
		s->stale_sacks++;
		return DDPS_SENT_STALE;
	}
	if (k->shutdown)
		return DDPS_SENT_TAKEN;
	for (size_t i = 0; i < k->ngaps; i++) {
		const struct ddps_sent_gap *g = &k->gaps[i];

		s->steps++;
		if (g->end > held - ahead)
			return DDPS_SENT_LIE; /* 9260-12.4-3 */
		if (!g->start || g->end < g->start || g->start <= end)
			*blocks = false;
		end = g->end;
	}
	if (!*blocks)
		s->bad_blocks++;
	return DDPS_SENT_TAKEN;
}

/* ---- newly acknowledged chunks ---- */

/* RTT, and order: RFC 8985 6.2, steps 1 to 3.  false: what was resent cannot have arrived yet */
static bool evidence(struct ddps_sent *s, struct ddps_sent_path *p, const struct ddps_sent_slot *c,
		     uint64_t now)
{
	uint64_t rtt = now - c->sent_at;

	if (p->frto && c->nsent == 1 && c->pn < p->frto_pn)
		p->got.frto_proof = true;
	if (c->flags & SLOT_VOID)
		return true;
	/* Differs from RFC 8985 by an eighth: RTTs of one path differ a little, and evidence that
	 * is thrown away costs a T3.  And one RTT may be that of a peer that did not run just then. */
	if (c->nsent > 1 && p->rtts > 1 && rtt < p->min_rtt - p->min_rtt / 8) {
		p->got.between |= c->nsent > 2;
		return false;
	}
	if (c->sent_at > s->latest)
		s->latest = c->sent_at;
	if (c->pn > p->rack_pn) {
		p->rack_pn = c->pn;
		p->rack_rtt = rtt;
	}
	if (c->pn > p->got.fack)
		p->got.fack = c->pn;
	if (c->nsent > 1)
		return true;
	if (c->pn < p->fack)
		p->reord_seen = true;
	if (c->pn > p->got.rtt_pn) {
		p->got.rtt_pn = c->pn;
		p->got.rtt_at = c->sent_at;
		p->got.rtt = rtt ? rtt : 1;
	}
	return true;
}

/* The original has arrived, not what was resent. */
static void note_early_arrival(struct ddps_sent *s, struct ddps_sent_path *p, uint32_t tsn,
			       const struct ddps_sent_slot *c, uint64_t now)
{
	struct ddps_sent_resent *h = s->hist ? &s->hist[tsn % DDPS_SENT_HIST] : NULL;

	if (h && h->tsn == tsn) {
		h->flags |= HIST_UNDONE;
		ddps_sent_note_late(s, p, h->first_at, now);
	}
	ddps_pmtu_false(&p->pmtu);
	if (c->flags & SLOT_TLP)
		p->tlp_out = false; /* nothing was lost */
	if ((c->flags & SLOT_T3) && p->frto)
		ddps_sent_false_t3(s, p, now);
	else
		ddps_sent_false_loss(p, c->episode);
}

static void newly(struct ddps_sent *s, uint32_t tsn, uint64_t now, struct ddps_sent_news *news)
{
	struct ddps_sent_slot *c = ddps_sent_slot(s, tsn);
	struct ddps_sent_path *p = s->path[c->path];
	bool lost = c->state == SLOT_LOST, void_at, unsure;

	s->steps++;
	news->acked++;
	p->got.delivered += c->size;
	if (!(c->flags & SLOT_AWAY))
		news->paths |= (uint8_t)(1u << p->id);
	if (lost) {
		ddps_sent_unlost(s, tsn);
	} else {
		p->got.first_acked |= p->head == tsn;
		ddps_sent_unflight(s, tsn);
	}
	c->state = SLOT_SACKED; /* freed by the caller if the cumulative ack covers it */
	if (s->zero_out && s->zero_tsn == tsn)
		s->zero_out = false;
	if (!evidence(s, p, c, now)) {
		note_early_arrival(s, p, tsn, c, now);
		return;
	}
	if (lost)
		ddps_sent_false_loss(p, c->episode);
	void_at = c->flags & SLOT_VOID;
	/* after a T3, which may have been too early, it may be the first packet that has arrived */
	unsure = void_at || (c->nsent > 1 && p->pmtu.t3);
	ddps_sent_mtu_changed(s, p,
			      ddps_pmtu_delivered(&p->pmtu, c->packet, unsure ? 0 : c->pn,
						  void_at ? 0 : c->sent_at, p->srtt, now));
}

static void by_cum(struct ddps_sent *s, uint32_t cum, uint64_t now, struct ddps_sent_news *news)
{
	while (s->cum != cum) {
		uint32_t t;
		struct ddps_sent_slot *c;
		struct ddps_sent_path *p;

		ddps_sent_straight_cum(s, cum, now, news);
		if (s->cum == cum)
			break;
		t = s->cum + 1;
		c = ddps_sent_slot(s, t);
		p = s->path[c->path];
		if (c->state == SLOT_SACKED) {
			s->steps++;
			p->nsacked--;
			if (c->flags & SLOT_PKT)
				p->sacked_packets--;
		} else {
			newly(s, t, now, news);
		}
		c->state = SLOT_FREE;
		s->cum = t;
		news->cum_advanced++;
		s->acked(s->user, t, c->chunk);
	}
}

void ddps_sent_by_gap(struct ddps_sent *s, uint32_t tsn, uint64_t now, struct ddps_sent_news *news)
{
	struct ddps_sent_slot *c = ddps_sent_slot(s, tsn);
	struct ddps_sent_path *p = s->path[c->path];

	newly(s, tsn, now, news);
	p->nsacked++;
	if (p->sacked_pn == c->pn) /* one packet is one piece of evidence */
		return;
	p->sacked_pn = c->pn;
	p->sacked_packets++;
	c->flags |= SLOT_PKT;
}

/*
 * ---- reports of duplicates: RFC 9260 3.3.4, used as RFC 8985 uses DSACK ----
 *
 * Nothing proves them, and a peer that calls each loss a late packet would have its window grow at the cost of
 * whoever shares the path.  Where packets are late that is soon known, and they are waited for.
 */

static void take_duplicate_report(struct ddps_sent *s, uint32_t tsn, uint64_t now)
{
	struct ddps_sent_resent *h = &s->hist[tsn % DDPS_SENT_HIST];
	struct ddps_sent_path *p;
	uint64_t undone;

	s->steps++;
	if (!(h->flags & HIST_USED) || h->tsn != tsn || (h->flags & HIST_TOLD))
		return; /* never resent: the network's doing, or a lie */
	h->flags |= HIST_TOLD;
	p = s->path[h->path];
	if (h->flags & HIST_TLP) {
		if (p->tlp_out && p->tlp_resent && p->tlp_tsn == tsn)
			p->tlp_out = false; /* nothing was lost */
		return;
	}
	p->spurious++;
	p->got.spurious = true;
	ddps_pmtu_false(&p->pmtu);
	if (h->flags & HIST_UNDONE)
		return;
	ddps_sent_note_late(s, p, h->first_at, now);
	if (p->trust < TRUST_UNDO)
		return;
	undone = p->undone;
	if ((h->flags & HIST_T3) && p->frto)
		ddps_sent_false_t3(s, p, now);
	else
		ddps_sent_false_loss(p, h->episode);
	if (p->undone != undone)
		p->trust -= TRUST_UNDO;
}

/* ---- after all of it: per path ---- */

void ddps_sent_take_rtt(struct ddps_sent *s, struct ddps_sent_path *p, uint64_t now)
{
	uint64_t rtt = ddps_sent_without_rest(s, p, p->got.rtt, now);

	if (!rtt)
		return;
	if (p->lone && p->lone_i && rtt < I_ANSWER + p->srtt)
		s->i_answered = true;
	/* a lone packet's SACK may have been delayed */
	if (!p->lone || p->lone_i || !p->min_rtt)
		ddps_sent_min_rtt(p, rtt, now);
	/* 9260-6.3.1: once a round trip; but a T3 that was too early wants a better RTO now */
	if (p->got.rtt_pn < p->rtt_round && !p->backoff && !p->frto)
		return;
	ddps_sent_sample(s, p, rtt);
	p->rtt_round = p->next_pn;
}

/*
 * Where something that was sent later, on any path, is acknowledged with it, the SACK that answered the
 * sample may be lost, and this one be the later packet's: no sample, and above all no shortest RTT.  So
 * may it be where what has arrived was sent between its first time and its last.
 */
static void rtt_of(struct ddps_sent *s, struct ddps_sent_path *p, uint64_t now)
{
	if (!p->got.rtt || p->got.fack > p->got.rtt_pn || s->latest > p->got.rtt_at)
		return;
	if (p->got.between) { /* something was answered anyway */
		p->backoff = 0;
		return;
	}
	ddps_sent_take_rtt(s, p, now);
}

/* RFC 5682 3: does the second SACK after T3 acknowledge what was never resent? */
static void frto(struct ddps_sent *s, struct ddps_sent_path *p, const struct ddps_sent_news *news,
		 uint64_t now)
{
	if (!p->frto || !p->got.delivered)
		return;
	if (p->frto == 2) {
		p->frto = 0;
		if (p->got.frto_proof)
			ddps_sent_false_t3(s, p, now);
	} else if (news->cum_advanced) {
		p->frto = p->nlost ? 2 : 0;
		p->frto_new = 2;
	}
}

/* RFC 8985 7.4.2 */
static void tlp(struct ddps_sent *s, struct ddps_sent_path *p, uint64_t now)
{
	bool acked = !ddps_sent_holds(s, p->tlp_tsn) ||
		     ddps_sent_slot(s, p->tlp_tsn)->state == SLOT_SACKED;
	bool beyond;

	if (!p->tlp_out || !acked)
		return;
	if (!p->tlp_resent) {
		p->tlp_out = false;
		return;
	}
	beyond = ddps_tsn_before(p->tlp_tsn, s->cum) ||
		 (s->nruns && ddps_tsn_before(p->tlp_tsn, s->runs[s->nruns - 1].end));
	if (!p->tlp_acked) {
		p->tlp_acked = true;
		p->tlp_acked_at = now;
	}
	if (!beyond && now - p->tlp_acked_at < p->srtt + p->min_rtt / 4)
		return;
	/* no duplicate was reported: the probe repaired a loss */
	ddps_sent_episode(p);
	ddps_cc_repaired(&p->cc);
	p->lost++;
}

/*
 * On a path without delay of its own, within a host above all, nothing is lost: the window would
 * grow until the peer's is full, and all of that waits in the receiver's socket, before whatever
 * another session sends.  A quarter of a mebibyte is enough for any such path, and half a
 * millisecond of queue is for all: beyond that the window stops to grow.  Within the host, where
 * nobody else uses the path, half of that will do, and the window returns to it.
 */
void ddps_sent_judge_queue(const struct ddps_sent_path *p, struct ddps_cc_ack *ack)
{
	uint64_t most = p->min_rtt + (p->within_host ? QUEUE_HERE : QUEUE);
	uint64_t out = p->got.outstanding, rtt = p->got.rtt;

	if (!p->min_rtt || p->min_rtt >= DDPS_MS || p->cc.cwnd <= QUICK_WINDOW || rtt <= most)
		return;
	ack->queued = true;
	if (!p->within_host)
		return;
	out = (out < p->cc.cwnd ? out : p->cc.cwnd) / 1024 * most / rtt * 1024;
	ack->enough = out > QUICK_WINDOW ? out : QUICK_WINDOW;
}

/* 9260-6.3.2-d1, R2 and R3 */
void ddps_sent_restart_t3(struct ddps_sent *s, struct ddps_sent_path *p, uint64_t now)
{
	uint64_t t3;

	if (!p->nflight) {
		p->t3_at = 0;
	} else if (p->got.first_acked || p->got.doubled) {
		t3 = now + ddps_sent_late(p, ddps_sent_rto(s, p));
		if (p->got.first_acked || t3 < p->t3_at)
			p->t3_at = t3;
	}
}

static void path_news(struct ddps_sent *s, struct ddps_sent_path *p, uint64_t now,
		      const struct ddps_sent_news *news)
{
	struct ddps_cc_ack ack = { .now = now, .acked = p->got.delivered };

	rtt_of(s, p, now);
	if (p->got.fack > p->fack)
		p->fack = p->got.fack;
	frto(s, p, news, now);
	tlp(s, p, now);
	ack.rtt = p->got.rtt;
	ack.srtt = p->srtt;
	ack.flight = p->flight;
	ack.cum_advanced = news->cum_advanced;
	ddps_sent_judge_queue(p, &ack);
	ack.round = p->rack_pn >= p->cc_round;
	if (ack.round)
		p->cc_round = p->next_pn;
	ddps_cc_grow(&p->cc, &ack);
	ddps_sent_reordered(s, p);
	ddps_sent_detect(s, p, now);
	ack.flight = p->flight;
	ack.new_loss = p->got.new_loss;
	ddps_sent_settle(s, p, &ack);
	if (p->silent_at && now - p->silent_at > DDPS_SECOND)
		p->backoff = 0; /* after an outage SRTT still holds */
	p->silent_at = p->nudge_at = p->alive_at = 0;
	ddps_sent_restart_t3(s, p, now);
	if (news->cum_advanced)
		ddps_sent_arm_pto(s, p, now);
	else if (p->nsacked || p->recovery)
		p->pto_at = 0;
}

static void prepare_path_ack(struct ddps_sent *s, struct ddps_sent_path *p)
{
	memset(&p->got, 0, sizeof p->got);
	p->got.outstanding = p->flight + p->lost_octets;
	p->got.doubled = p->backoff != 0;
	p->lone = p->nflight && ddps_sent_slot(s, p->head)->pn == ddps_sent_slot(s, p->tail)->pn;
	p->lone_i = p->lone && (ddps_sent_slot(s, p->tail)->flags & SLOT_I);
}

/* What is on its way finds no room, and is lost without a fault of the path. */
static void note_full_window(struct ddps_sent *s)
{
	for (unsigned i = 0; i < s->npath; i++)
		if (s->path[i])
			s->path[i]->full_pn = s->path[i]->next_pn;
}

/* The peer has room again: what it had to drop meanwhile goes immediately. */
static void reopened(struct ddps_sent *s, uint64_t now)
{
	for (unsigned i = 0; i < s->npath; i++) {
		struct ddps_sent_path *p = s->path[i];
		bool doubled;

		if (!p)
			continue;
		if (p->nflight && (p->backoff || ddps_sent_slot(s, p->head)->pn < p->full_pn))
			ddps_sent_resend(s, p);
		doubled = p->backoff != 0;
		p->backoff = 0;
		if (doubled && p->t3_at)
			p->t3_at = now + ddps_sent_late(p, ddps_sent_rto(s, p));
	}
}

/* The peer's window, and the chunk that probes it (9260-6.2.1-1). */
static void take_peer_window(struct ddps_sent *s, uint32_t a_rwnd, uint64_t was, uint64_t now,
			     struct ddps_sent_news *news)
{
	bool closed = !s->a_rwnd;
	/* it was too small for what is on its way, of which nothing has arrived since */
	bool tight = s->a_rwnd && s->a_rwnd < s->out_len && a_rwnd >= s->out_len && !news->acked;

	s->a_rwnd = a_rwnd;
	s->zero_sacked = true;
	news->window = ddps_sent_window(s) > was;
	if (!a_rwnd || tight)
		note_full_window(s);
	if (!a_rwnd)
		return;
	if (s->zero_out) {
		struct ddps_sent_slot *c = ddps_sent_slot(s, s->zero_tsn);

		if (a_rwnd < c->len)
			return;
		s->zero_out = false;
		closed = true;
	}
	s->zero_n = 0;
	if (closed || tight)
		reopened(s, now);
}

/*
 * SHUTDOWN says no window; but as much as it acknowledges, @len, did fit, and is taken by now.  When that
 * came nobody knows: a SACK told it before, and may be lost.  That is no round trip.
 */
static void shutdown_tells(struct ddps_sent *s, uint64_t len, uint64_t was, uint64_t now,
			   struct ddps_sent_news *news)
{
	for (unsigned i = 0; i < s->npath; i++)
		if (s->path[i])
			s->path[i]->got.rtt = 0;
	if (s->a_rwnd < 2 * len)
		take_peer_window(s, 2 * len < UINT32_MAX ? (uint32_t)(2 * len) : UINT32_MAX, was,
				 now, news);
}

enum ddps_sent_verdict ddps_sent_sack(struct ddps_sent *s, const struct ddps_sent_sack *k,
				      uint64_t now, struct ddps_sent_news *news)
{
	uint64_t was = ddps_sent_window(s), out = s->out_len, len;
	enum ddps_sent_verdict v;
	bool blocks;

	ddps_sent_check(s);
	*news = (struct ddps_sent_news){ 0 };
	v = judge_sack(s, k, &blocks);
	if (v != DDPS_SENT_TAKEN)
		return v;
	s->latest = 0;
	for (unsigned i = 0; i < s->npath; i++)
		if (s->path[i])
			prepare_path_ack(s, s->path[i]);
	by_cum(s, k->cum, now, news);
	ddps_sent_drop_runs(s);
	if (blocks)
		ddps_sent_by_blocks(s, k, now, news);
	if (!k->shutdown)
		ddps_sent_contradiction(s, now);
	for (size_t i = 0; s->hist && i < k->ndups; i++)
		take_duplicate_report(s, k->dups[i], now);
	/* less than before, or more: what was taken for lost may be on its way */
	len = out > s->out_len ? out - s->out_len : 0;
	if (k->shutdown)
		shutdown_tells(s, len, was, now, news);
	else
		take_peer_window(s, k->a_rwnd, was, now, news);
	for (unsigned i = 0; i < s->npath; i++)
		if (s->path[i] && (s->path[i]->got.delivered || s->path[i]->got.spurious))
			path_news(s, s->path[i], now, news);
	ddps_sent_ring_rest(s);
	return DDPS_SENT_TAKEN;
}
