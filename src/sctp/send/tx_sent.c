/* SPDX-License-Identifier: BSD-2-Clause */
/* Associations and paths, what may leave, and the packet in hand. */
#include "sctp/send/tx_in.h"
#include <ddpsess/err.h>
#include <stdlib.h>
#include <string.h>

void ddps_sent_init(struct ddps_sent *s, const struct ddps_sent_conf *conf, uint32_t first,
		    uint32_t a_rwnd, void (*acked)(void *user, uint32_t tsn, void *chunk),
		    void *user)
{
	memset(s, 0, sizeof *s);
	s->conf = conf;
	s->next = s->once = first;
	s->cum = first - 1;
	s->a_rwnd = a_rwnd;
	s->acked = acked;
	s->user = user;
}

static void release_sent(struct ddps_sent *s)
{
	if (s->ring)
		ddps_sent_ring_free(s);
	if (s->conf->spares && s->conf->spares->last == s)
		s->conf->spares->last = NULL;
	free(s->runs);
	free(s->spare);
	free(s->hist);
	s->runs = s->spare = NULL;
	s->hist = NULL;
	s->runs_size = s->nruns = 0;
}

void ddps_sent_fini(struct ddps_sent *s)
{
	while (s->next - s->cum > 1) {
		s->cum++;
		s->acked(s->user, s->cum, ddps_sent_slot(s, s->cum)->chunk);
	}
	release_sent(s);
}

void ddps_sent_rest(struct ddps_sent *s)
{
	if (s->next - s->cum == 1)
		release_sent(s);
}

/* ---- paths ---- */

static uint32_t smss_of(const struct ddps_sent_path *p)
{
	return (uint32_t)(p->pmtu.size - p->overhead) & ~3u;
}

static void path_reset(struct ddps_sent *s, struct ddps_sent_path *p)
{
	ddps_cc_init(&p->cc, smss_of(p), s->conf->grain);
	p->srtt = p->rttvar = p->min_rtt = 0;
	p->rtts = 0;
	p->rto = s->conf->rto_initial;
	p->min_at = p->min_cur = p->min_last = 0;
	p->rack_pn = p->rack_rtt = p->fack = 0;
	p->reo_mult = 1;
	p->reo_late = 0;
	p->trust = TRUST_MOST;
	p->reord_seen = p->recovery = p->tlp_out = p->probe = p->force = p->dsack_round_set =
		p->waited = false;
	p->sampled = true;
	p->undo_pending = 0;
	p->frto = 0;
	p->reo_at = p->pto_at = p->pace_at = p->silent_at = p->nudge_at = p->alive_at = 0;
	p->backoff = 0;
}

void ddps_sent_path_init(struct ddps_sent *s, struct ddps_sent_path *p, unsigned id,
			 const struct ddps_pmtu_limits *lim, unsigned overhead)
{
	memset(p, 0, sizeof *p);
	p->id = (uint8_t)id;
	p->overhead = (uint16_t)overhead;
	p->next_pn = 1;
	ddps_pmtu_init(&p->pmtu, lim);
	path_reset(s, p);
	if (id >= DDPS_SENT_PATHS)
		return;
	s->path[id] = p;
	if (s->npath <= id)
		s->npath = id + 1;
}

void ddps_sent_path_gone(struct ddps_sent *s, const struct ddps_sent_path *p)
{
	if (p->id < DDPS_SENT_PATHS && s->path[p->id] == p)
		s->path[p->id] = NULL;
}

void ddps_sent_path_lost(struct ddps_sent *s, struct ddps_sent_path *p)
{
	ddps_sent_check(s);
	while (p->nflight)
		ddps_sent_mark(s, p->head);
	p->recovery = p->force = p->probe = p->tlp_out = false;
	p->undo_pending = 0;
	p->frto = 0;
	p->reo_at = p->pto_at = p->t3_at = p->nudge_at = p->pace_at = 0;
	ddps_cc_recovered(&p->cc);
}

void ddps_sent_path_again(struct ddps_sent *s, struct ddps_sent_path *p)
{
	ddps_sent_check(s);
	p->epi_pn = p->next_pn;
	path_reset(s, p);
}

void ddps_sent_mtu_changed(struct ddps_sent *s, struct ddps_sent_path *p, unsigned bits)
{
	uint32_t t = p->head;

	if (bits & DDPS_PMTU_SIZE)
		ddps_cc_set_smss(&p->cc, smss_of(p));
	if (!(bits & DDPS_PMTU_HOLE))
		return;
	/* what is too large for the path will not arrive: no need to wait for a timer */
	for (uint32_t n = p->nflight; n; n--) {
		const struct ddps_sent_slot *c = ddps_sent_slot(s, t);
		uint32_t next = c->next;

		if (c->packet > p->pmtu.size)
			ddps_sent_mark(s, t);
		t = next;
	}
	p->force = s->nlost != 0;
	p->probe = false;
}

/* ---- what may leave ---- */

/* The window of the peer is closed and nothing is on its way: one chunk, seldom (9260-6.1-6). */
static enum ddps_sent_what zero_window(struct ddps_sent *s, struct ddps_sent_path *p, uint64_t now,
				       uint64_t *room)
{
	uint64_t wait = p->rto;

	if (s->zero_go) {
		*room = 1;
		return DDPS_SENT_NEW;
	}
	if (s->zero_at)
		return DDPS_SENT_NOTHING;
	for (uint32_t i = 0; i < s->zero_n && wait < s->conf->rto_max; i++)
		wait *= 2;
	wait = wait < s->conf->rto_max ? wait : s->conf->rto_max;
	s->zero_on = p;
	s->zero_at = now + ddps_sent_late(p, wait);
	return DDPS_SENT_NOTHING;
}

static bool forced(struct ddps_sent *s, struct ddps_sent_path *p, bool new,
		   enum ddps_sent_what *what)
{
	if (!p->force)
		return false;
	if (p->probe && !s->nlost) {
		*what = new ? DDPS_SENT_NEW : DDPS_SENT_OLD;
		if (new || p->nflight)
			return true;
	} else if (s->nlost) {
		p->probe = false;
		*what = DDPS_SENT_OLD;
		return true;
	}
	p->force = p->probe = false;
	return false;
}

enum ddps_sent_what ddps_sent_may(struct ddps_sent *s, struct ddps_sent_path *p, uint64_t now,
				  size_t len, uint64_t *room)
{
	bool has = len != SIZE_MAX, fits = has && len <= ddps_sent_window(s);
	bool new = fits && s->next - s->cum <= DDPS_SENT_MAX;
	enum ddps_sent_what what;

	*room = 1;
	if (forced(s, p, new, &what))
		return what;
	*room = 0;
	if (has && !fits && !s->nflight && !s->nlost)
		return zero_window(s, p, now, room);
	if (!s->nlost && !new)
		return DDPS_SENT_NOTHING;
	/* how long a pause may last matters only behind one */
	*room = ddps_cc_room(&p->cc, p->flight, p->flight ? 0 : ddps_sent_rto(s, p), now,
			     &p->pace_at);
	if (!*room)
		return DDPS_SENT_NOTHING;
	if (p->frto == 2 && p->frto_new && new) {
		*room = 1;
		return DDPS_SENT_NEW;
	}
	return s->nlost ? DDPS_SENT_OLD : DDPS_SENT_NEW;
}

/* ---- the packet in hand ---- */

uint64_t ddps_sent_begin(struct ddps_sent *s, struct ddps_sent_path *p, uint64_t now)
{
	ddps_sent_check(s);
	s->on = p;
	s->on_now = now;
	s->on_size = 0;
	s->on_n = 0;
	s->on_empty = !p->nflight;
	s->on_old = s->on_lowest = s->on_new = false;
	return p->next_pn;
}

bool ddps_sent_next_old(struct ddps_sent *s, struct ddps_sent_chunk *c)
{
	const struct ddps_sent_path *p = s->on;
	const struct ddps_sent_slot *slot;

	if (p->probe) { /* ddps_sent_may(): something is in flight, and nothing lost */
		if (s->on_n)
			return false;
		c->tsn = p->tail;
	} else if (!ddps_sent_lowest(s, s->cum + 1, &c->tsn)) {
		return false;
	}
	slot = ddps_sent_slot(s, c->tsn);
	c->size = slot->size;
	c->chunk = slot->chunk;
	return true;
}

bool ddps_sent_oldest(const struct ddps_sent *s, struct ddps_sent_chunk *c)
{
	const struct ddps_sent_slot *slot;

	if (s->next == s->cum + 1)
		return false;
	slot = ddps_sent_slot(s, s->cum + 1);
	*c = (struct ddps_sent_chunk){ .tsn = s->cum + 1,
				       .size = slot->size,
				       .chunk = slot->chunk };
	return true;
}

static void sent_put(struct ddps_sent *s, uint32_t tsn)
{
	struct ddps_sent_slot *c = ddps_sent_slot(s, tsn);

	c->pn = s->on->next_pn;
	c->sent_at = s->on_now;
	c->path = s->on->id;
	ddps_sent_link(s, s->on, tsn);
	s->on_size += c->size;
	s->on_n++;
	s->on_last = tsn;
}

/* So that a report of a duplicate can be matched when the slot is free again. */
static void remember_resent(struct ddps_sent *s, uint32_t tsn, const struct ddps_sent_slot *c,
			    uint64_t first_at)
{
	if (!s->hist)
		s->hist = calloc(DDPS_SENT_HIST, sizeof *s->hist);
	if (!s->hist) /* reports of duplicates are then ignored */
		return;
	s->hist[tsn % DDPS_SENT_HIST] = (struct ddps_sent_resent){
		.first_at = first_at,
		.tsn = tsn,
		.path = c->path,
		.episode = c->episode,
		.flags = (uint8_t)(HIST_USED | (c->flags & SLOT_TLP ? HIST_TLP : 0) |
				   (c->flags & SLOT_T3 ? HIST_T3 : 0)),
	};
}

void ddps_sent_add_old(struct ddps_sent *s, uint32_t tsn)
{
	struct ddps_sent_slot *c = ddps_sent_slot(s, tsn);
	bool tlp = c->state == SLOT_FLIGHT;
	uint64_t first_at = c->nsent == 1 && !(c->flags & SLOT_VOID) ? c->sent_at : 0;

	if (tlp) {
		ddps_sent_unflight(s, tsn);
		c->episode = 0;
	} else {
		ddps_sent_unlost(s, tsn);
	}
	if (c->path != s->on->id)
		c->flags |= SLOT_AWAY;
	if (c->nsent < UINT8_MAX)
		c->nsent++;
	c->flags &= (uint8_t) ~(SLOT_I | SLOT_VOID | SLOT_PKT | SLOT_TLP);
	s->once = s->next;
	if (tlp)
		c->flags |= SLOT_TLP;
	remember_resent(s, tsn, c, first_at);
	sent_put(s, tsn);
	s->on_old = true;
	s->on_lowest |= tsn == s->cum + 1;
	s->on->resent++;
}

int ddps_sent_add_new(struct ddps_sent *s, uint16_t size, size_t len, void *chunk)
{
	uint32_t n = s->next - s->cum; /* held, this one included */
	bool probe = s->zero_go && !s->nflight && !s->nlost;

	if (n > DDPS_SENT_MAX || (len > ddps_sent_window(s) && !probe))
		return DDPS_E_AGAIN;
	if (n > s->mask && ddps_sent_grow(s)) /* 65,536 slots are enough for all */
		return DDPS_E_NOMEM;
	*ddps_sent_slot(s, s->next) = (struct ddps_sent_slot){
		.chunk = chunk,
		.size = size,
		.len = (uint16_t)len,
		.nsent = 1,
	};
	if (probe && len > ddps_sent_window(s)) {
		s->zero_out = true;
		s->zero_tsn = s->next;
		s->zero_n++;
	}
	s->zero_go = false;
	s->zero_at = 0;
	sent_put(s, s->next++);
	s->on_new = true;
	return 0;
}

/* RFC 9260 6.1: where waiting for the SACK would cost something. */
static bool wants_i(const struct ddps_sent *s, const struct ddps_sent_path *p, bool more)
{
	return !more || s->on_old || p->probe || s->on_empty || p->flight >= p->cc.cwnd ||
	       ddps_sent_window(s) < p->cc.smss || s->next - s->cum > DDPS_SENT_MAX;
}

static void probe_sent(struct ddps_sent *s, struct ddps_sent_path *p)
{
	if (!p->force || !p->probe)
		return;
	p->tlp_out = true;
	p->tlp_acked = p->sampled = false;
	p->tlp_resent = !s->on_new;
	p->tlp_tsn = s->on_last;
	p->probes++;
}

void ddps_sent_untimed(struct ddps_sent *s)
{
	for (uint32_t n = s->on_n, t = s->on->tail; n; n--, t = ddps_sent_slot(s, t)->prev)
		ddps_sent_slot(s, t)->flags |= SLOT_VOID;
	s->once = s->next;
}

bool ddps_sent_end(struct ddps_sent *s, uint32_t packet, bool more)
{
	struct ddps_sent_path *p = s->on;
	bool i;

	s->on = NULL;
	if (!s->on_n)
		return false;
	if (!s->asked_at)
		s->asked_at = s->on_now;
	i = wants_i(s, p, more);
	for (uint32_t n = s->on_n, t = p->tail; n; n--, t = ddps_sent_slot(s, t)->prev)
		ddps_sent_slot(s, t)->packet = packet < UINT16_MAX ? (uint16_t)packet : UINT16_MAX;
	if (i)
		ddps_sent_slot(s, s->on_last)->flags |= SLOT_I;
	p->next_pn++;
	p->packets++;
	ddps_cc_sent(&p->cc, s->on_size, p->flight, s->on_now);
	if (p->frto == 2 && s->on_new && p->frto_new)
		p->frto_new--;
	/* 9260-6.1-18, -19; but what is sent into silence does not postpone T3 */
	if (!p->t3_at || (s->on_lowest && !p->silent_at))
		p->t3_at = s->on_now + ddps_sent_late(p, ddps_sent_rto(s, p));
	probe_sent(s, p);
	p->force = p->probe = false;
	if (s->on_new)
		ddps_sent_arm_pto(s, p, s->on_now);
	return i;
}

void ddps_sent_refused(struct ddps_sent *s, struct ddps_sent_path *p, uint64_t pn)
{
	ddps_sent_check(s);
	while (p->nflight && ddps_sent_slot(s, p->tail)->pn >= pn) {
		if (p->tail == p->tlp_tsn) /* a probe that did not leave repairs nothing */
			p->tlp_out = false;
		ddps_sent_mark(s, p->tail);
	}
}
