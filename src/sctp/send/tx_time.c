/* SPDX-License-Identifier: BSD-2-Clause */
/* RTT, loss by time (RFC 8985), tail loss probes and T3. */
#include "sctp/send/tx_in.h"

#define FOUND	       (10 * DDPS_MS)	   /* how long it takes to read what came during a rest */
#define MIN_RTT_WINDOW (150 * DDPS_SECOND) /* two of them */
#define RTO_MIN_LAZY   (400 * DDPS_MS)	   /* the peer may delay SACKs by 200 ms */
#define RTO_MIN	       (200 * DDPS_MS)
#define PEER_DELAY     (200 * DDPS_MS)
#define PTO_FIRST      DDPS_SECOND
#define BACKOFF_MAX    16
#define REO_PERSIST    16 /* recoveries, RFC 8985 6.2 */
#define REO_ROUNDS     16 /* SRTTs that a late packet is waited for at most */
#define EPISODES       64 /* that are undone together */
#define DUPTHRESH      3  /* packets */
#define SILENCE	       DDPS_SECOND

/* ---- RTT and RTO ---- */

static uint64_t rto_min(const struct ddps_sent *s)
{
	if (s->conf->rto_min)
		return s->conf->rto_min;
	return s->i_answered ? RTO_MIN : RTO_MIN_LAZY;
}

uint64_t ddps_sent_any_rto(const struct ddps_sent *s, const struct ddps_sent_path *p)
{
	uint64_t rto = p->rto;

	if (p->srtt) {
		rto = p->srtt + 4 * p->rttvar;
		rto = rto < rto_min(s) ? rto_min(s) : rto;
	}
	for (uint32_t i = 0; i < p->backoff && rto < s->conf->rto_max; i++)
		rto *= 2;
	return rto < s->conf->rto_max ? rto : s->conf->rto_max;
}

void ddps_sent_sample(struct ddps_sent *s, struct ddps_sent_path *p, uint64_t rtt)
{
	uint64_t off = p->srtt > rtt ? p->srtt - rtt : rtt - p->srtt;

	if (p->srtt) { /* RFC 6298 2.3 */
		p->rttvar += (off >> 2) - (p->rttvar >> 2);
		p->srtt += (rtt >> 3) - (p->srtt >> 3);
	} else {
		p->srtt = rtt;
		p->rttvar = rtt / 2;
	}
	if (p->rttvar < s->conf->grain / 4) /* 9260-6.3.1-d2 */
		p->rttvar = s->conf->grain / 4;
	p->backoff = 0;
	p->sampled = true;
	if (p->rtts < 2)
		p->rtts++;
	p->rto = ddps_sent_rto(s, p);
	p->cc.srtt = p->srtt;
}

void ddps_sent_min_rtt(struct ddps_sent_path *p, uint64_t rtt, uint64_t now)
{
	if (!p->min_at || now - p->min_at > MIN_RTT_WINDOW) {
		p->min_last = p->min_cur;
		p->min_cur = rtt;
		p->min_at = now ? now : 1;
	}
	if (rtt < p->min_cur)
		p->min_cur = rtt;
	p->min_rtt = p->min_last && p->min_last < p->min_cur ? p->min_last : p->min_cur;
}

/*
 * See tx_in.h.  What it finds then came while it rested.  What comes only behind a long rest may have
 * waited for a peer that rested with it: while it ran it would have resent that, and have measured nothing.
 */
uint64_t ddps_sent_without_rest(const struct ddps_sent *s, const struct ddps_sent_path *p,
				uint64_t rtt, uint64_t now)
{
	uint64_t from = s->conf->rest_from, rest = s->conf->rest_to - from;

	if (!from || now - s->conf->rest_to > FOUND || now - rtt > from)
		return now - rtt <= s->conf->slept_from ? 0 : rtt;
	if (!p->min_rtt) /* what is left without the rest may be less than the path takes */
		return 0;
	return rtt > rest + p->min_rtt ? rtt - rest : rtt < p->min_rtt ? rtt : p->min_rtt;
}

void ddps_sent_rtt(struct ddps_sent *s, struct ddps_sent_path *p, uint64_t rtt, uint64_t now)
{
	uint64_t t3;

	rtt = ddps_sent_without_rest(s, p, rtt ? rtt : 1, now);
	if (rtt) {
		ddps_sent_sample(s, p, rtt);
		ddps_sent_min_rtt(p, rtt, now);
	}
	/* The path is not dead: what was doubled while it seemed so is not waited for, nor by what
	 * is about to be resent. */
	t3 = now + ddps_sent_late(p, ddps_sent_rto(s, p));
	if (t3 < p->t3_at)
		p->t3_at = t3;
}

/* ---- episodes ---- */

/* What is sent before this moment causes no second reaction. */
void ddps_sent_episode(struct ddps_sent_path *p)
{
	if (!++p->episode)
		p->episode = 1;
	p->epi_pn = p->next_pn;
	p->undo_pending = 0;
	p->undo_from = p->episode;
	p->tlp_out = false;
}

static uint64_t get_most_late(const struct ddps_sent *s, const struct ddps_sent_path *p)
{
	uint64_t t3 = ddps_sent_rto(s, p) / 2;

	return t3 < REO_ROUNDS * p->srtt ? t3 : REO_ROUNDS * p->srtt;
}

/*
 * A loss that none before explains.  News of what is late for several round trips comes when the next
 * episodes have begun: they are undone together, if nothing was lost in any of them.
 */
static void begin_loss_episode(struct ddps_sent *s, struct ddps_sent_path *p, uint64_t now)
{
	uint64_t out = p->flight + p->lost_octets, pending = p->undo_pending;
	struct ddps_cc_saved saved = p->cc.saved;
	uint8_t from = p->undo_from;

	ddps_sent_episode(p);
	ddps_cc_loss(&p->cc, out > p->got.outstanding ? out : p->got.outstanding);
	p->recovery = true;
	if (pending && saved.valid && now - p->undo_at < get_most_late(s, p) &&
	    (uint8_t)(p->episode - from) < EPISODES) {
		p->cc.saved = saved;
		p->undo_from = from;
		p->undo_pending = pending;
	} else {
		p->undo_at = now;
	}
}

void ddps_sent_false_loss(struct ddps_sent_path *p, uint8_t episode)
{
	if (!episode || !p->undo_pending ||
	    (uint8_t)(episode - p->undo_from) > (uint8_t)(p->episode - p->undo_from))
		return;
	p->reord_seen = true;
	if (--p->undo_pending)
		return;
	ddps_cc_undo(&p->cc);
	p->recovery = false;
	p->frto = 0;
	p->undone++;
}

/* T3 was too early: what it called lost is on its way (RFC 5682). */
void ddps_sent_false_t3(struct ddps_sent *s, struct ddps_sent_path *p, uint64_t now)
{
	uint32_t t;

	p->frto = 0;
	for (uint32_t from = s->cum + 1; ddps_sent_lowest(s, from, &t); from = t + 1) {
		struct ddps_sent_slot *c = ddps_sent_slot(s, t);

		s->steps++;
		if ((c->flags & SLOT_T3) && c->path == p->id) {
			ddps_sent_unlost(s, t);
			ddps_sent_requeue(s, t, now);
		}
	}
	ddps_cc_undo(&p->cc);
	p->undo_pending = 0;
	p->backoff = 0;
	p->silent_at = p->nudge_at = 0;
	p->spurious++;
	p->undone++;
}

void ddps_sent_settle(struct ddps_sent *s, struct ddps_sent_path *p, const struct ddps_cc_ack *ack)
{
	if (!p->recovery)
		return;
	if (p->nlost || (p->nflight && ddps_sent_slot(s, p->head)->pn < p->epi_pn)) {
		ddps_cc_recover(&p->cc, ack);
		return;
	}
	p->recovery = false;
	ddps_cc_recovered(&p->cc);
	if (p->trust < TRUST_MOST)
		p->trust++;
	if (!p->got.spurious && --p->reo_persist <= 0) {
		p->reo_mult = 1;
		p->reo_late = 0;
	}
}

/* A chunk in flight is lost: with all that congestion control makes of it. */
static void lose_chunk(struct ddps_sent *s, struct ddps_sent_path *p, uint32_t tsn, uint64_t now)
{
	struct ddps_sent_slot *c = ddps_sent_slot(s, tsn);
	bool again = p->epi_pn && c->pn < p->epi_pn;

	if (!again)
		begin_loss_episode(s, p, now);
	ddps_sent_mark(s, tsn);
	c->episode = p->episode;
	p->undo_pending++;
	p->lost++;
	p->got.new_loss = true;
	if (s->a_rwnd && c->pn >= p->full_pn) /* else the peer may have had no room for it */
		ddps_sent_mtu_changed(s, p, ddps_pmtu_lost(&p->pmtu, c->packet, c->pn, now));
}

/* ---- RACK ---- */

static uint64_t reo_wnd(const struct ddps_sent *s, const struct ddps_sent_path *p)
{
	uint64_t w = p->reo_mult * (p->min_rtt / 4), late = p->reo_late, most;

	if (!p->reord_seen && (p->recovery || p->sacked_packets >= DUPTHRESH))
		return 0;
	if (late) { /* the way may be shorter now than when that was measured */
		most = get_most_late(s, p);
		late = late < most ? late : most;
	}
	w = w < p->srtt ? w : p->srtt;
	return w > late ? w : late;
}

/*
 * Beyond the SRTT, where RFC 8985 6.2 says SHOULD, only as far as was measured, and not so far that T3
 * would be next: where all is resent that is late for several round trips the window stays at what
 * leaves between two of them.  What is later than the bound is not waited for, since it would be in vain.
 */
void ddps_sent_note_late(struct ddps_sent *s, struct ddps_sent_path *p, uint64_t first_at,
			 uint64_t now)
{
	uint64_t late = first_at ? now - first_at : 0;

	late = late > p->min_rtt ? late - p->min_rtt : 0;
	late += late / 8;
	if (!late || late > get_most_late(s, p))
		return;
	if (late > p->reo_late)
		p->reo_late = late;
	p->reo_persist = REO_PERSIST;
}

void ddps_sent_reordered(struct ddps_sent *s, struct ddps_sent_path *p)
{
	if (p->waited && p->got.first_acked) /* and not in vain */
		p->reo_persist = REO_PERSIST;
	if (p->dsack_round_set && !ddps_tsn_before(s->cum, p->dsack_round))
		p->dsack_round_set = false;
	if (!p->got.spurious || p->dsack_round_set)
		return;
	p->dsack_round_set = true;
	p->dsack_round = s->next;
	p->reo_mult++;
	p->reo_persist = REO_PERSIST;
}

/* Nothing is known of it: the SACK had no room for what lies so high. */
static bool unreported(const struct ddps_sent *s, uint32_t tsn, const struct ddps_sent_slot *c)
{
	return s->cut_short && c->nsent == 1 && ddps_tsn_before(s->told, tsn);
}

void ddps_sent_detect(struct ddps_sent *s, struct ddps_sent_path *p, uint64_t now)
{
	p->reo_at = 0;
	p->waited = false;
	while (p->nflight) {
		struct ddps_sent_slot *c = ddps_sent_slot(s, p->head);
		uint64_t due = c->sent_at + p->rack_rtt + reo_wnd(s, p);

		s->steps++;
		if (c->pn >= p->rack_pn || unreported(s, p->head, c))
			break;
		if (due > now) {
			p->waited = now - c->sent_at > p->rack_rtt + p->srtt;
			if (p->waited)
				ddps_cc_doubt(&p->cc);
			p->reo_at = due > now + s->conf->grain / 2 ? due : now + s->conf->grain / 2;
			break;
		}
		lose_chunk(s, p, p->head, now);
	}
}

/* ---- timers ---- */

void ddps_sent_arm_pto(struct ddps_sent *s, struct ddps_sent_path *p, uint64_t now)
{
	const struct ddps_sent_slot *last;
	uint64_t pto = p->srtt ? 2 * p->srtt : PTO_FIRST;

	p->pto_at = 0;
	if (!p->nflight || p->recovery || p->nlost || p->nsacked || p->backoff || s->zero_out)
		return;
	last = ddps_sent_slot(s, p->tail);
	if (ddps_sent_slot(s, p->head)->pn != last->pn)
		;
	else if (!(last->flags & SLOT_I))
		pto += PEER_DELAY;
	else
		pto += 2 * s->conf->grain > DDPS_MS ? 2 * s->conf->grain : DDPS_MS;
	p->pto_at = now + ddps_sent_late(p, pto);
	if (p->t3_at && p->pto_at > p->t3_at)
		p->pto_at = p->t3_at;
}

/* 9260-6.1-5: while the peer has no room and says so, silence about a chunk is no error. */
static unsigned error_of(struct ddps_sent *s)
{
	bool answers = s->zero_sacked && (s->zero_out || !s->a_rwnd);

	s->zero_sacked = false;
	return answers ? 0 : DDPS_SENT_EV_T3;
}

/* After silence the path may be back long before the next T3: look, and count nothing. */
static void plan_nudge(struct ddps_sent_path *p, uint64_t now)
{
	uint64_t silent = now - p->silent_at;

	p->nudge_at = silent < 10 * SILENCE   ? now + ddps_sent_late(p, 2 * SILENCE)
		      : silent < 60 * SILENCE ? now + ddps_sent_late(p, 5 * SILENCE)
					      : 0;
}

static unsigned t3_data(struct ddps_sent *s, struct ddps_sent_path *p, bool first, uint64_t now)
{
	bool cut = first && ddps_sent_slot(s, p->head)->pn >= p->epi_pn;
	uint64_t late = p->rack_rtt + reo_wnd(s, p);

	if (cut) {
		ddps_sent_episode(p);
		p->frto = 1;
		p->frto_pn = p->next_pn;
	}
	ddps_cc_timeout(&p->cc, cut);
	p->epi_pn = p->next_pn;
	p->recovery = false;
	do {
		struct ddps_sent_slot *c = ddps_sent_slot(s, p->head);

		s->steps++;
		if (c->flags & SLOT_VOID) /* was thought to be on its way, and is not */
			p->frto = 0;
		c->flags |= SLOT_T3;
		lose_chunk(s, p, p->head, now);
	} while (p->nflight && ddps_sent_slot(s, p->head)->sent_at + late <= now);
	ddps_sent_mtu_changed(s, p, ddps_pmtu_timeout(&p->pmtu, now));
	return error_of(s) | DDPS_SENT_EV_LOST | DDPS_SENT_EV_SEND;
}

static unsigned t3(struct ddps_sent *s, struct ddps_sent_path *p, uint64_t now)
{
	bool first = !p->backoff;
	unsigned ev;

	if (p->backoff < BACKOFF_MAX)
		p->backoff++;
	if (!p->silent_at)
		p->silent_at = now;
	if (s->zero_out && ddps_sent_slot(s, s->zero_tsn)->path == p->id &&
	    ddps_sent_slot(s, s->zero_tsn)->state == SLOT_FLIGHT) {
		ddps_sent_mark(s, s->zero_tsn); /* no congestion */
		ev = error_of(s) | DDPS_SENT_EV_SEND;
	} else {
		p->t3s++;
		plan_nudge(p, now);
		ev = t3_data(s, p, first, now);
	}
	p->reo_at = p->pto_at = 0;
	p->t3_at = now + ddps_sent_late(p, ddps_sent_rto(s, p));
	p->force = true;
	p->probe = p->tlp_out = false;
	return ev;
}

void ddps_sent_resend(struct ddps_sent *s, struct ddps_sent_path *p)
{
	struct ddps_sent_slot *c = ddps_sent_slot(s, p->head);

	c->flags |= SLOT_T3;
	ddps_sent_mark(s, p->head);
	p->force = true;
	p->probe = false;
	p->pto_at = 0; /* this is the probe */
}

static unsigned tail_probe(struct ddps_sent *s, struct ddps_sent_path *p, uint64_t now)
{
	unsigned ev = 0;

	if (!p->tlp_out && p->sampled) {
		p->force = p->probe = true;
		ev = DDPS_SENT_EV_SEND;
	}
	p->pto_at = 0;
	p->t3_at = now + ddps_sent_late(p, ddps_sent_rto(s, p));
	return ev;
}

static bool is_time_due(uint64_t at, uint64_t now)
{
	return at && at <= now;
}

static unsigned of_flight(struct ddps_sent *s, struct ddps_sent_path *p, uint64_t now)
{
	unsigned ev = 0;

	if (is_time_due(p->reo_at, now)) {
		struct ddps_cc_ack none = { .now = now, .srtt = p->srtt };
		uint32_t lost = s->nlost;

		p->got.outstanding = 0;
		ddps_sent_detect(s, p, now);
		none.flight = p->flight;
		none.new_loss = s->nlost != lost;
		ddps_sent_settle(s, p, &none);
		if (none.new_loss)
			ev = DDPS_SENT_EV_LOST | DDPS_SENT_EV_SEND;
		if (!p->nflight)
			return ev;
	}
	if (is_time_due(p->pto_at, now))
		return ev | tail_probe(s, p, now);
	if (is_time_due(p->t3_at, now))
		return ev | t3(s, p, now);
	if (is_time_due(p->nudge_at, now)) {
		plan_nudge(p, now);
		ddps_sent_resend(s, p);
		ev |= DDPS_SENT_EV_SEND;
	}
	return ev;
}

unsigned ddps_sent_timer(struct ddps_sent *s, struct ddps_sent_path *p, uint64_t now)
{
	unsigned ev = 0;

	ddps_sent_check(s);
	if (is_time_due(p->pace_at, now)) {
		p->pace_at = 0;
		ev = DDPS_SENT_EV_SEND;
	}
	if (s->zero_on == p && is_time_due(s->zero_at, now)) {
		s->zero_at = 0;
		s->zero_go = true;
		ev = DDPS_SENT_EV_SEND;
	}
	if (p->nflight)
		ev |= of_flight(s, p, now);
	return ev;
}

bool ddps_sent_alive(struct ddps_sent *s, struct ddps_sent_path *p, uint64_t now)
{
	ddps_sent_check(s);
	if (!p->backoff || !p->silent_at || now - p->silent_at < SILENCE || now < p->alive_at ||
	    s->zero_out)
		return false;
	/* T3 goes on as it was: it may be that only our way there is dead */
	p->alive_at = now + SILENCE;
	if (p->nflight)
		ddps_sent_resend(s, p);
	else
		p->force = s->nlost != 0;
	return p->force;
}
