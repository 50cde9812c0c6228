/* SPDX-License-Identifier: BSD-2-Clause */
#include "support/sctp_sim.h"
#include <ddpsess/err.h>
#include <criterion/criterion.h>
#include <stdlib.h>
#include <string.h>

#define GRAIN	  128000ull
#define OVERHEAD  40u /* IPv4, UDP, SCTP */
#define CHUNK	  16u
#define TSNS	  128u /* chunks of a packet */
#define MAP	  131072u
#define FIRST_TSN 0xfffffff0u /* they wrap soon */

enum kind { EV_DATA, EV_SACK, EV_PROBE, EV_PROBE_ACK, EV_SACK_TIMER };

struct packet {
	uint32_t tsn[TSNS];
	uint16_t len[TSNS];
	unsigned n, nold; /* chunks; of them sent before */
	uint16_t size;
	bool i;
};

struct sack {
	struct ddps_sent_sack k;
	struct ddps_sent_gap gaps[360];
	uint32_t dups[64];
};

struct event {
	uint64_t at, order;
	enum kind kind;
	void *what; /* packet or sack */
	uint16_t size;
};

struct sim {
	const struct sctp_sim_conf *c;
	struct sctp_sim_result r;
	uint64_t now, seed, order;
	struct event *heap;
	size_t n, size;

	struct ddps_sent s;
	struct ddps_sent_conf conf;
	struct ddps_sent_path p;
	uint64_t unsent, packets;

	/* link */
	uint64_t free_at, last_at;
	size_t backlog;

	/* receiver */
	uint8_t *have; /* by TSN modulo MAP */
	uint32_t cum, top;
	uint32_t dups[64];
	unsigned ndups, unacked;
	uint64_t sack_at;
	uint64_t last_delivery;
};

double sctp_sim_random(uint64_t *seed)
{
	*seed ^= *seed << 13;
	*seed ^= *seed >> 7;
	*seed ^= *seed << 17;
	return (double)(*seed >> 11) / 9007199254740992.0;
}

/* ---- events ---- */

static bool sooner(const struct event *a, const struct event *b)
{
	return a->at != b->at ? a->at < b->at : a->order < b->order;
}

static void push_sctp_sim(struct sim *m, uint64_t at, enum kind kind, void *what, uint16_t size)
{
	struct event e = { at, m->order++, kind, what, size };
	size_t i = m->n++;

	if (m->n > m->size) {
		m->size = m->size ? 2 * m->size : 1024;
		m->heap = realloc(m->heap, m->size * sizeof *m->heap);
		cr_assert_not_null(m->heap);
	}
	for (; i && sooner(&e, &m->heap[(i - 1) / 2]); i = (i - 1) / 2)
		m->heap[i] = m->heap[(i - 1) / 2];
	m->heap[i] = e;
}

static struct event pop_sctp_sim(struct sim *m)
{
	struct event top = m->heap[0], e = m->heap[--m->n];
	size_t i = 0, k;

	for (; (k = 2 * i + 1) < m->n; i = k) {
		if (k + 1 < m->n && sooner(&m->heap[k + 1], &m->heap[k]))
			k++;
		if (!sooner(&m->heap[k], &e))
			break;
		m->heap[i] = m->heap[k];
	}
	m->heap[i] = e;
	return top;
}

/* ---- the path ---- */

static bool dark(const struct sim *m, uint64_t at)
{
	return at >= m->c->dark_from && at < m->c->dark_until;
}

static bool listed(const struct sim *m, const struct packet *d)
{
	for (unsigned i = 0; i < 32 && m->c->drop[i]; i++)
		for (unsigned k = d->nold; k < d->n; k++)
			if (m->c->drop[i] == d->tsn[k] - FIRST_TSN + 1)
				return true;
	return false;
}

static uint64_t delay_sctp_sim(const struct sim *m)
{
	return m->c->delay + (m->c->step_at && m->now >= m->c->step_at ? m->c->step : 0);
}

/* When a packet arrives, or 0: it does not. */
static uint64_t carry_sctp_sim(struct sim *m, uint16_t size, bool fragments)
{
	const struct sctp_sim_conf *c = m->c;
	uint16_t mtu = c->mtu_at && m->now >= c->mtu_at ? c->mtu_then : c->mtu ? c->mtu : 1500;
	uint64_t at, depart = m->now > m->free_at ? m->now : m->free_at;

	if (c->rate > 0) {
		if (c->queue && (double)(depart - m->now) * c->rate / 1e9 > (double)c->queue)
			return 0;
		m->free_at = depart += (uint64_t)(size * 1e9 / c->rate);
	}
	if (dark(m, m->now) || sctp_sim_random(&m->seed) < c->loss || (size > mtu && !fragments))
		return 0;
	at = depart + delay_sctp_sim(m);
	if (c->jitter)
		at += (uint64_t)((double)c->jitter * sctp_sim_random(&m->seed));
	if (c->late > 0 && sctp_sim_random(&m->seed) < c->late)
		at += c->late_by;
	if (c->in_order && at < m->last_at)
		at = m->last_at;
	return m->last_at = at;
}

/* ---- the receiver ---- */

static void send_sack(struct sim *m)
{
	struct sack *k = calloc(1, sizeof *k);
	uint32_t t;

	cr_assert_not_null(k);
	m->unacked = 0;
	m->sack_at = 0;
	m->r.sacks++;
	k->k.cum = m->cum;
	k->k.a_rwnd = m->c->a_rwnd ? m->c->a_rwnd : 16 << 20;
	if (m->now >= m->c->shut_from && m->now < m->c->shut_until)
		k->k.a_rwnd = 0;
	for (t = m->cum + 1; t != m->top + 1 && k->k.ngaps < 360; t++) {
		struct ddps_sent_gap *g = &k->gaps[k->k.ngaps];

		if (!m->have[t % MAP])
			continue;
		g->start = (uint16_t)(t - m->cum);
		while (t != m->top + 1 && m->have[t % MAP])
			t++;
		g->end = (uint16_t)(t - 1 - m->cum);
		k->k.ngaps++;
		t--;
	}
	k->k.gaps = k->gaps;
	memcpy(k->dups, m->dups, sizeof k->dups);
	k->k.dups = k->dups;
	k->k.ndups = m->ndups;
	m->ndups = 0;
	if (dark(m, m->now) || sctp_sim_random(&m->seed) < m->c->sack_loss ||
	    (m->now >= m->c->sacks_dark_from && m->now < m->c->sacks_dark_until))
		free(k);
	else
		push_sctp_sim(m, m->now + delay_sctp_sim(m), EV_SACK, k, 0);
}

static bool take_simulated_tsn(struct sim *m, uint32_t tsn, uint16_t len)
{
	if ((int32_t)(tsn - m->cum) <= 0 || m->have[tsn % MAP]) {
		m->r.duplicates++;
		if (m->ndups < 64)
			m->dups[m->ndups++] = tsn;
		return false;
	}
	m->have[tsn % MAP] = 1;
	if ((int32_t)(tsn - m->top) > 0)
		m->top = tsn;
	while (m->have[(m->cum + 1) % MAP]) {
		m->cum++;
		m->have[m->cum % MAP] = 0;
	}
	if ((int32_t)(m->top - m->cum) < 0)
		m->top = m->cum;
	m->r.octets += len;
	return true;
}

static void receive_sctp_sim(struct sim *m, const struct packet *d)
{
	bool now = d->i && !m->c->ignores_i, gap = m->top != m->cum, fresh = false;

	if (m->now >= m->c->shut_from && m->now < m->c->shut_until) {
		send_sack(m); /* dropped for lack of a window: 9260-6.2-4 */
		return;
	}
	for (unsigned i = 0; i < d->n; i++) {
		bool one = take_simulated_tsn(m, d->tsn[i], d->len[i]);

		fresh |= one;
		now |= !one;
	}
	if (fresh) {
		if (m->last_delivery && m->now - m->last_delivery > m->r.pause)
			m->r.pause = m->now - m->last_delivery;
		m->last_delivery = m->r.end = m->now;
	}
	now |= gap || m->top != m->cum || ++m->unacked >= 2;
	if (now) {
		send_sack(m);
	} else if (!m->sack_at) {
		m->sack_at = m->now + (m->c->sack_delay ? m->c->sack_delay : 20 * SIM_MS);
		push_sctp_sim(m, m->sack_at, EV_SACK_TIMER, NULL, 0);
	}
}

/* ---- the sender ---- */

static void note_sctp_sim_acked(void *user, uint32_t tsn, void *chunk)
{
	(void)user, (void)tsn, (void)chunk;
}

static size_t next_len(const struct sim *m)
{
	size_t most = ddps_sent_smss(&m->p) - CHUNK;
	size_t len = m->c->len && m->c->len < most ? m->c->len : most;

	return !m->unsent ? SIZE_MAX : m->unsent < len ? (size_t)m->unsent : len;
}

static void add_to_packet(struct packet *d, uint32_t tsn, uint16_t size, uint16_t len)
{
	d->tsn[d->n] = tsn;
	d->len[d->n++] = len;
	d->size = (uint16_t)(d->size + size);
}

static void add_new(struct sim *m, struct packet *d)
{
	size_t len = next_len(m);
	uint16_t size = (uint16_t)(CHUNK + ((len + 3) & ~3ull));
	uint32_t tsn = m->s.next;

	if (len == SIZE_MAX || d->n == TSNS || d->size + size > OVERHEAD + ddps_sent_smss(&m->p))
		return;
	if (ddps_sent_add_new(&m->s, size, len, (void *)(uintptr_t)len))
		return;
	m->unsent -= len;
	add_to_packet(d, tsn, size, (uint16_t)len);
	add_new(m, d);
}

static uint64_t build_simulated_packet(struct sim *m, bool old)
{
	struct packet *d = calloc(1, sizeof *d);
	struct ddps_sent_chunk c;
	bool fragments = m->p.pmtu.fragment;
	uint64_t at, size;

	cr_assert_not_null(d);
	d->size = OVERHEAD;
	ddps_sent_begin(&m->s, &m->p, m->now);
	while (old && ddps_sent_next_old(&m->s, &c) && d->n < TSNS) {
		if (d->n && d->size + c.size > OVERHEAD + ddps_sent_smss(&m->p))
			break;
		fragments |= c.size > ddps_sent_smss(&m->p);
		ddps_sent_add_old(&m->s, c.tsn);
		add_to_packet(d, c.tsn, c.size, (uint16_t)(uintptr_t)c.chunk);
	}
	d->nold = d->n;
	add_new(m, d);
	d->i = ddps_sent_end(&m->s, d->size, m->unsent > 0);
	size = d->n ? d->size - OVERHEAD : 0;
	m->r.big_frags += fragments;
	at = d->n ? carry_sctp_sim(m, d->size, fragments) : 0;
	if (d->n) {
		m->packets++;
		if (listed(m, d))
			at = 0;
		m->r.dropped += !at;
	}
	if (at)
		push_sctp_sim(m, at, EV_DATA, d, 0);
	else
		free(d);
	return size;
}

static void send_probe(struct sim *m)
{
	uint16_t size = ddps_pmtu_probe(&m->p.pmtu, m->now);
	uint64_t at;

	if (!size)
		return;
	ddps_pmtu_probe_sent(&m->p.pmtu, size, m->p.rto, m->now);
	at = carry_sctp_sim(m, size, false);
	if (at)
		push_sctp_sim(m, at, EV_PROBE, NULL, size);
}

static void output(struct sim *m)
{
	enum ddps_sent_what what;
	uint64_t room, used;

	send_probe(m);
	while (m->unsent || m->s.nlost || m->p.force) {
		uint64_t before = m->packets;

		what = ddps_sent_may(&m->s, &m->p, m->now, next_len(m), &room);
		if (what == DDPS_SENT_NOTHING)
			break;
		for (used = 0; used < room;) {
			uint64_t n = build_simulated_packet(m, what == DDPS_SENT_OLD);

			if (!n)
				break;
			used += n;
			if (what == DDPS_SENT_OLD && !m->s.nlost)
				break;
		}
		cr_assert(m->packets > before, "may() allowed what cannot be sent");
	}
}

/* ---- invariants, after each event ---- */

static void check_simulated_path(const struct sim *m)
{
	const struct ddps_sent_path *p = &m->p;

	cr_assert_eq(p->nflight + p->nlost + p->nsacked, m->s.next - m->s.cum - 1);
	cr_assert_eq(p->nflight, m->s.nflight);
	cr_assert_eq(p->nlost, m->s.nlost);
	cr_assert(!p->nflight == !p->flight);
	cr_assert_geq(p->cc.cwnd, p->cc.phase == DDPS_CC_RECOVER ? 0
				  : p->cc.smss < 1160		 ? 0
								 : 1000);
	/* whatever is outstanding, something will happen */
	cr_assert(p->nflight == 0 || ddps_sent_deadline(&m->s, p) != DDPS_SENT_NEVER);
}

/* As the engine takes it. */
static void take_simulated_sack(struct sim *m, const struct ddps_sent_sack *k)
{
	struct ddps_sent_news news;

	if (k->ngaps || k->ndups || !ddps_sent_straight_sack(&m->s, k->cum, k->a_rwnd, m->now))
		m->r.lied |= ddps_sent_sack(&m->s, k, m->now, &news) == DDPS_SENT_LIE;
	ddps_sent_alive(&m->s, &m->p, m->now);
}

static void handle_simulated_event(struct sim *m, const struct event *e)
{
	switch (e->kind) {
	case EV_DATA:
		receive_sctp_sim(m, e->what);
		break;
	case EV_SACK:
		take_simulated_sack(m, &((struct sack *)e->what)->k);
		break;
	case EV_PROBE:
		if (!dark(m, m->now))
			push_sctp_sim(m, m->now + delay_sctp_sim(m), EV_PROBE_ACK, NULL, e->size);
		break;
	case EV_PROBE_ACK:
		ddps_sent_mtu_changed(&m->s, &m->p,
				      ddps_pmtu_probe_acked(&m->p.pmtu, e->size, m->now));
		ddps_sent_alive(&m->s, &m->p, m->now);
		break;
	case EV_SACK_TIMER:
		if (m->sack_at && m->now >= m->sack_at)
			send_sack(m);
		break;
	}
	free(e->what);
}

static uint64_t get_sctp_sim_deadline(struct sim *m)
{
	uint64_t at = ddps_sent_deadline(&m->s, &m->p), pm = ddps_pmtu_deadline(&m->p.pmtu);

	at = pm < at ? pm : at;
	at = at < m->now ? m->now : at;
	if (m->c->small_steps && at != DDPS_SENT_NEVER)
		at += (uint64_t)((double)GRAIN * sctp_sim_random(&m->seed));
	return at;
}

static void turn_sctp_sim(struct sim *m)
{
	uint64_t timer = get_sctp_sim_deadline(m);

	if (m->n && m->heap[0].at <= timer) {
		struct event e = pop_sctp_sim(m);

		m->now = e.at;
		handle_simulated_event(m, &e);
	} else {
		unsigned ev;

		cr_assert_neq(timer, DDPS_SENT_NEVER, "nothing will ever happen again");
		m->now = timer;
		ddps_sent_mtu_changed(&m->s, &m->p, ddps_pmtu_timer(&m->p.pmtu, m->now));
		ev = ddps_sent_timer(&m->s, &m->p, m->now);
		m->r.errors += (ev & DDPS_SENT_EV_T3) != 0;
		if ((ev & DDPS_SENT_EV_T3) && !m->r.first_t3)
			m->r.first_t3 = m->now;
	}
	check_simulated_path(m);
	output(m);
	check_simulated_path(m);
}

static void start_sctp_sim(struct sim *m)
{
	struct ddps_pmtu_limits lim = ddps_pmtu_limits(false, 1500);
	uint32_t first = FIRST_TSN;

	m->conf = (struct ddps_sent_conf){ .rto_initial = SIM_SEC,
					   .rto_max = 60 * SIM_SEC,
					   .rto_min = m->c->rto_min,
					   .grain = GRAIN };
	m->seed = m->c->seed * 2654435761u + 88172645463325252ull;
	m->now = SIM_SEC;
	m->have = calloc(MAP, 1);
	cr_assert_not_null(m->have);
	m->cum = m->top = first - 1;
	m->unsent = m->c->octets;
	ddps_sent_init(&m->s, &m->conf, first, m->c->a_rwnd ? m->c->a_rwnd : 16 << 20,
		       note_sctp_sim_acked, m);
	ddps_sent_path_init(&m->s, &m->p, 0, &lim, OVERHEAD);
	ddps_sent_rtt(&m->s, &m->p, 2 * m->c->delay + 100000, m->now); /* of INIT */
	ddps_pmtu_start(&m->p.pmtu, 0, m->now);
}

struct sctp_sim_result sctp_sim_run(const struct sctp_sim_conf *conf)
{
	struct sim m = { .c = conf };
	struct sctp_sim_conf shifted = *conf;
	uint64_t end, begin = SIM_SEC;

	/* times of the caller count from the start */
	for (uint64_t *t[] = { &shifted.mtu_at, &shifted.dark_from, &shifted.dark_until,
			       &shifted.step_at, &shifted.shut_from, &shifted.shut_until,
			       &shifted.sacks_dark_from, &shifted.sacks_dark_until, NULL },
		      **i = t;
	     *i; i++)
		**i += **i ? begin : 0;
	m.c = &shifted;
	start_sctp_sim(&m);
	end = m.now + conf->duration;
	output(&m);
	while (m.now < end && !m.r.lied && (m.unsent || m.s.next - m.s.cum > 1))
		turn_sctp_sim(&m);
	m.r.done = !m.unsent && m.s.next - m.s.cum == 1;
	m.r.end -= m.r.end ? begin : 0;
	m.r.first_t3 -= m.r.first_t3 ? begin : 0;
	m.r.packets = m.p.packets;
	m.r.resent = m.p.resent;
	m.r.t3s = m.p.t3s;
	m.r.probes = m.p.probes;
	m.r.undone = m.p.undone;
	m.r.spurious = m.p.spurious;
	m.r.lost = m.p.lost;
	m.r.steps = m.s.steps;
	m.r.newest_size = m.p.pmtu.size;
	m.r.black_holes = m.p.pmtu.black_holes;
	m.r.cwnd = m.p.cc.cwnd;
	m.r.cuts = m.p.episode;
	m.r.srtt = m.p.srtt;
	ddps_sent_fini(&m.s);
	while (m.n) {
		struct event e = pop_sctp_sim(&m);

		free(e.what);
	}
	free(m.heap);
	free(m.have);
	return m.r;
}
