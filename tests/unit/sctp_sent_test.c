/* SPDX-License-Identifier: BSD-2-Clause */
/* Outstanding TSNs, SACKs and timers against a slow and plain model. */
#include "sctp/tx_in.h"
#include <criterion/criterion.h>
#include <ddpsess/err.h>
#include <stdlib.h>
#include <string.h>

#define MS  1000000ull
#define MAX 65536u

/* A sender, and what is true of each TSN by the plain reading of all SACKs. */
struct world {
	struct ddps_sent s;
	struct ddps_sent_path p[2];
	uint64_t now, seed;
	uint32_t first, given; /* TSN given back last */
	uint8_t *sacked;       /* by TSN - first */
	uint8_t *got;	       /* of the receiver */
	uint32_t cum;	       /* of the receiver */
};

static uint32_t draw(struct world *w, uint32_t n)
{
	w->seed ^= w->seed << 13;
	w->seed ^= w->seed >> 7;
	w->seed ^= w->seed << 17;
	return (uint32_t)(w->seed >> 11) % n;
}

static void acked(void *user, uint32_t tsn, void *chunk)
{
	struct world *w = user;

	cr_assert_eq(tsn, w->given + 1, "given back out of order or twice");
	cr_assert_eq((uintptr_t)chunk, (uintptr_t)tsn + 7);
	w->given = tsn;
}

static const struct ddps_sent_conf conf = { .rto_initial = 1000 * MS,
					    .rto_max = 60000 * MS,
					    .grain = 128000 };

static void begin(struct world *w, uint64_t seed, uint32_t first, uint32_t a_rwnd)
{
	struct ddps_pmtu_limits lim = ddps_pmtu_limits(false, true, 1500);

	memset(w, 0, sizeof *w);
	w->seed = seed * 2654435761u + 88172645463325252ull;
	w->first = first;
	w->given = w->cum = first - 1;
	w->now = 1000 * MS;
	w->sacked = calloc(2, MAX);
	w->got = calloc(2, MAX);
	cr_assert(w->sacked && w->got);
	ddps_sent_init(&w->s, &conf, first, a_rwnd, acked, w);
	for (unsigned i = 0; i < 2; i++) {
		ddps_sent_path_init(&w->s, &w->p[i], i, &lim, 40);
		ddps_pmtu_start(&w->p[i].pmtu, 0, w->now);
	}
}

static void end(struct world *w)
{
	ddps_sent_fini(&w->s);
	cr_assert_eq(w->given, w->s.next - 1, "not all was given back");
	free(w->sacked);
	free(w->got);
}

/* ---- the model: everything by looking at every slot ---- */

static void check_slot(const struct world *w, uint32_t t, struct ddps_sent_path *sum)
{
	const struct ddps_sent_slot *c = ddps_sent_slot(&w->s, t);
	bool bit = w->s.lost[(t & w->s.mask) >> 6] >> (t & 63) & 1;

	cr_assert_neq(c->state, SLOT_FREE);
	cr_assert_eq(c->state == SLOT_SACKED, w->sacked[t - w->first], "TSN %u", t);
	cr_assert_eq(bit, c->state == SLOT_LOST);
	cr_assert_eq((uintptr_t)c->chunk, (uintptr_t)t + 7);
	if (c->state == SLOT_FLIGHT) {
		sum[c->path].nflight++;
		sum[c->path].flight += c->size;
	} else if (c->state == SLOT_LOST) {
		sum[c->path].nlost++;
		sum[c->path].lost_octets += c->size;
	} else {
		sum[c->path].nsacked++;
	}
}

static void check_list(const struct world *w, const struct ddps_sent_path *p)
{
	uint64_t pn = 0, at = 0;
	uint32_t t = p->head;

	for (uint32_t n = p->nflight; n; n--) {
		const struct ddps_sent_slot *c = ddps_sent_slot(&w->s, t);

		cr_assert_eq(c->state, SLOT_FLIGHT);
		cr_assert_eq(c->path, p->id);
		cr_assert(c->pn >= pn && c->sent_at >= at, "not in the order sent");
		pn = c->pn;
		at = c->sent_at;
		cr_assert(n > 1 || t == p->tail);
		t = c->next;
	}
	cr_assert_lt(pn, p->next_pn);
}

static void check_runs(const struct world *w)
{
	uint32_t n = 0;

	for (uint32_t t = w->s.cum + 1; t != w->s.next; t++) {
		if (!w->sacked[t - w->first])
			continue;
		cr_assert_lt(n, w->s.nruns);
		cr_assert_eq(w->s.runs[n].start, t);
		while (t + 1 != w->s.next && w->sacked[t + 1 - w->first])
			t++;
		cr_assert_eq(w->s.runs[n].end, t);
		n++;
	}
	cr_assert_eq(n, w->s.nruns);
}

static void check(struct world *w)
{
	struct ddps_sent_path sum[2] = { 0 };
	uint64_t len = 0;
	uint32_t low = w->s.next, found;

	cr_assert_eq(w->given, w->s.cum);
	for (uint32_t t = w->s.cum + 1; t != w->s.next; t++) {
		const struct ddps_sent_slot *c = ddps_sent_slot(&w->s, t);

		check_slot(w, t, sum);
		len += c->state == SLOT_FLIGHT ? c->len : 0;
		if (c->state == SLOT_LOST && low == w->s.next)
			low = t;
	}
	for (unsigned i = 0; i < 2; i++) {
		cr_assert_eq(sum[i].nflight, w->p[i].nflight);
		cr_assert_eq(sum[i].flight, w->p[i].flight);
		cr_assert_eq(sum[i].nlost, w->p[i].nlost);
		cr_assert_eq(sum[i].lost_octets, w->p[i].lost_octets);
		cr_assert_eq(sum[i].nsacked, w->p[i].nsacked);
		cr_assert_leq(w->p[i].sacked_packets, w->p[i].nsacked);
		check_list(w, &w->p[i]);
		cr_assert(!w->p[i].nflight ||
			  ddps_sent_deadline(&w->s, &w->p[i]) != DDPS_SENT_NEVER);
	}
	cr_assert_eq(len, w->s.out_len);
	cr_assert_eq(sum[0].nlost + sum[1].nlost, w->s.nlost);
	cr_assert_eq(sum[0].nflight + sum[1].nflight, w->s.nflight);
	cr_assert_eq(ddps_sent_lowest(&w->s, w->s.cum + 1, &found), low != w->s.next);
	cr_assert(low == w->s.next || found == low);
	check_runs(w);
}

/* ---- what happens ---- */

/* One packet, as may() says; the receiver gets it or not. */
static bool send_one(struct world *w, unsigned path, size_t len, bool arrives)
{
	struct ddps_sent_path *p = &w->p[path];
	uint32_t in[64], n = 0, used = 0;
	struct ddps_sent_chunk c;
	uint64_t room;
	enum ddps_sent_what what = ddps_sent_may(&w->s, p, w->now, len, &room);

	if (what == DDPS_SENT_NOTHING)
		return false;
	ddps_sent_begin(&w->s, p, w->now);
	while (what == DDPS_SENT_OLD && n < 64 && ddps_sent_next_old(&w->s, &c) &&
	       (!n || used + c.size <= ddps_sent_smss(p))) {
		ddps_sent_add_old(&w->s, c.tsn);
		used += c.size;
		in[n++] = c.tsn;
	}
	while (len != SIZE_MAX && n < 64 && used + 16 + len <= ddps_sent_smss(p)) {
		uint32_t t = w->s.next;

		if (t - w->first >= 2 * MAX - 1 ||
		    ddps_sent_add_new(&w->s, (uint16_t)(16 + ((len + 3) & ~3u)), len,
				      (void *)((uintptr_t)t + 7)))
			break;
		used += 16 + ((unsigned)len + 3) / 4 * 4;
		in[n++] = t;
	}
	ddps_sent_end(&w->s, used + 40, draw(w, 2));
	for (uint32_t i = 0; i < n && arrives; i++)
		w->got[in[i] - w->first] = 1;
	while (w->got[w->cum + 1 - w->first])
		w->cum++;
	return n;
}

struct sack {
	struct ddps_sent_sack k;
	struct ddps_sent_gap gaps[400];
	uint32_t dups[32];
};

/* What the receiver has, at most @most blocks of it. */
static void honest(const struct world *w, struct sack *k, size_t most)
{
	memset(k, 0, sizeof *k);
	k->k.cum = w->cum;
	k->k.a_rwnd = 1 << 20;
	k->k.gaps = k->gaps;
	k->k.dups = k->dups;
	for (uint32_t t = w->cum + 1; t != w->s.next && k->k.ngaps < most; t++) {
		struct ddps_sent_gap *g = &k->gaps[k->k.ngaps];

		if (!w->got[t - w->first])
			continue;
		g->start = (uint16_t)(t - w->cum);
		while (t + 1 != w->s.next && w->got[t + 1 - w->first])
			t++;
		g->end = (uint16_t)(t - w->cum);
		k->k.ngaps++;
	}
}

/* The SACK read TSN by TSN. */
static void model(struct world *w, const struct ddps_sent_sack *k, uint32_t old_cum)
{
	uint32_t top = k->ngaps ? k->cum + k->gaps[k->ngaps - 1].end : k->cum;
	bool news = k->cum != old_cum;
	uint8_t *named = calloc(2, MAX);

	cr_assert_not_null(named);
	for (size_t i = 0; i < k->ngaps; i++)
		for (uint32_t o = k->gaps[i].start; o <= k->gaps[i].end; o++)
			named[k->cum + o - w->first] = 1;
	for (uint32_t t = k->cum + 1; t != w->s.next; t++)
		news |= named[t - w->first] && !w->sacked[t - w->first];
	for (uint32_t t = k->cum + 1; t != w->s.next; t++) {
		uint32_t i = t - w->first;

		if (named[i])
			w->sacked[i] = 1;
		else if (news && k->ngaps && (int32_t)(t - top) <= 0)
			w->sacked[i] = 0;
	}
	/* cum + 1 is missing, and with it all that was called its neighbour */
	for (uint32_t t = k->cum + 1; t != w->s.next && w->sacked[t - w->first]; t++)
		w->sacked[t - w->first] = 0;
	free(named);
}

static void sack(struct world *w, const struct sack *k)
{
	uint32_t cum = w->s.cum, lost = w->s.nlost, runs = w->s.nruns;
	uint64_t steps = w->s.steps, reneged = w->s.reneged, most;
	struct ddps_sent_news news;
	enum ddps_sent_verdict v = ddps_sent_sack(&w->s, &k->k, w->now, &news);

	cr_assert_neq(v, DDPS_SENT_LIE);
	if (v == DDPS_SENT_STALE)
		return;
	model(w, &k->k, cum);
	/* O(what is new + blocks), and what was found lost is new as well */
	most = 4 * (news.acked + news.cum_advanced + runs + k->k.ngaps + k->k.ndups) +
	       2 * (w->s.reneged - reneged) + 32;
	most += w->s.nlost > lost ? 2 * (w->s.nlost - lost) : 0;
	cr_assert_leq(w->s.steps - steps, most, "cost of a SACK");
}

static void tick(struct world *w)
{
	for (unsigned i = 0; i < 2; i++) {
		uint64_t at = ddps_sent_deadline(&w->s, &w->p[i]);

		if (at <= w->now)
			ddps_sent_timer(&w->s, &w->p[i], w->now);
	}
}

static void renege(struct world *w)
{
	for (uint32_t t = w->cum + 1; t != w->s.next; t++)
		if (draw(w, 2))
			w->got[t - w->first] = 0;
}

static void step(struct world *w, struct sack *old)
{
	struct sack k;
	unsigned what = draw(w, 100);

	if (what < 60) {
		unsigned path = draw(w, 8) == 0, n = 1 + draw(w, 12);

		while (n-- && send_one(w, path, draw(w, 10) ? 1 + draw(w, 1400) : SIZE_MAX,
				       draw(w, 10) != 0))
			;
	} else if (what < 90) {
		honest(w, &k, draw(w, 3) ? 400 : draw(w, 4));
		for (unsigned i = draw(w, 3); i; i--)
			k.dups[k.k.ndups++] = w->cum - draw(w, 20);
		k.k.gaps = k.gaps;
		k.k.dups = k.dups;
		sack(w, &k);
		*old = k;
	} else if (what < 95) {
		old->k.gaps = old->gaps;
		old->k.dups = old->dups;
		sack(w, old);
	} else if (what < 97) {
		renege(w);
	} else if (what < 98) {
		ddps_sent_path_lost(&w->s, &w->p[draw(w, 2)]);
	} else if (what < 99) {
		ddps_sent_refused(&w->s, &w->p[0],
				  w->p[0].next_pn > 3 ? w->p[0].next_pn - 1 - draw(w, 3) : 1);
	} else {
		w->now += draw(w, 4) * 500 * MS;
	}
	w->now += draw(w, 20) * MS;
	tick(w);
	check(w);
}

Test(sctp_sent, agrees_with_a_slow_model, .description = "9260-6.2.1-d1 9260-6.7-3", .timeout = 60)
{
	for (uint64_t seed = 1; seed <= 60; seed++) {
		struct world w;
		struct sack old;

		begin(&w, seed, seed % 2 ? 0xffffff80u : (uint32_t)seed * 1000, 1 << 20);
		honest(&w, &old, 0);
		for (int i = 0; i < 400; i++)
			step(&w, &old);
		end(&w);
	}
}

/* ---- SACKs of the hostile ---- */

/* 20 chunks of 100 octets, one a packet. */
static void twenty(struct world *w)
{
	begin(w, 1, 0xfffffff8u, 1 << 20);
	w->p[0].cc.cwnd = 1 << 20;
	for (int i = 0; i < 20; i++) {
		ddps_sent_begin(&w->s, &w->p[0], w->now);
		cr_assert_eq(ddps_sent_add_new(&w->s, 116, 100, (void *)((uintptr_t)w->s.next + 7)),
			     0);
		ddps_sent_end(&w->s, 156, true);
	}
	check(w);
}

struct hostile {
	const char *what;
	uint32_t ahead; /* of the first TSN - 1 */
	struct ddps_sent_gap gaps[4];
	size_t ngaps;
	enum ddps_sent_verdict v;
	uint32_t acked;
};

static const struct hostile shapes[] = {
	{ "cum never sent", 21, { { 0 } }, 0, DDPS_SENT_LIE, 0 },
	{ "cum far ahead", 0x7fffffff, { { 0 } }, 0, DDPS_SENT_LIE, 0 },
	{ "cum half the world away", 0x80000000u, { { 0 } }, 0, DDPS_SENT_STALE, 0 },
	{ "cum before", UINT32_MAX, { { 0 } }, 0, DDPS_SENT_STALE, 0 },
	{ "block end never sent", 0, { { 2, 21 } }, 1, DDPS_SENT_LIE, 0 },
	{ "block end 65535", 0, { { 2, 65535 } }, 1, DDPS_SENT_LIE, 0 },
	{ "block of one, 65535", 0, { { 65535, 65535 } }, 1, DDPS_SENT_LIE, 0 },
	{ "end never sent, after the cum of the same SACK",
	  10,
	  { { 2, 11 } },
	  1,
	  DDPS_SENT_LIE,
	  0 },
	{ "start 0", 0, { { 0, 5 } }, 1, DDPS_SENT_TAKEN, 0 },
	{ "start 0, end 0", 0, { { 0, 0 } }, 1, DDPS_SENT_TAKEN, 0 },
	{ "end before start", 0, { { 5, 4 } }, 1, DDPS_SENT_TAKEN, 0 },
	{ "unsorted", 0, { { 8, 9 }, { 2, 3 } }, 2, DDPS_SENT_TAKEN, 0 },
	{ "overlap", 0, { { 2, 6 }, { 5, 9 } }, 2, DDPS_SENT_TAKEN, 0 },
	{ "twice the same", 0, { { 2, 6 }, { 2, 6 } }, 2, DDPS_SENT_TAKEN, 0 },
	{ "touching", 0, { { 2, 4 }, { 5, 6 } }, 2, DDPS_SENT_TAKEN, 5 },
	{ "one bad block among good ones", 0, { { 2, 2 }, { 9, 8 } }, 2, DDPS_SENT_TAKEN, 0 },
	{ "bad blocks, good cum", 4, { { 9, 8 } }, 1, DDPS_SENT_TAKEN, 4 },
	{ "all", 20, { { 0 } }, 0, DDPS_SENT_TAKEN, 20 },
	{ "all but the first", 0, { { 2, 20 } }, 1, DDPS_SENT_TAKEN, 19 },
};

Test(sctp_sent, hostile_sacks, .description = "9260-12.4-3 9260-6.2.1-d1")
{
	for (size_t i = 0; i < sizeof shapes / sizeof *shapes; i++) {
		const struct hostile *h = &shapes[i];
		struct ddps_sent_news news;
		struct world w;
		struct ddps_sent_sack k = { .a_rwnd = 1 << 20, .gaps = h->gaps, .ngaps = h->ngaps };

		twenty(&w);
		w.now += 50 * MS;
		k.cum = w.first - 1 + h->ahead;
		cr_expect_eq(ddps_sent_sack(&w.s, &k, w.now, &news), h->v, "%s", h->what);
		cr_expect_eq(news.acked, h->acked, "%s", h->what);
		if (h->v != DDPS_SENT_TAKEN)
			cr_expect_eq(w.p[0].nflight, 20, "%s", h->what);
		for (uint32_t t = w.s.cum + 1; t != w.s.next; t++)
			w.sacked[t - w.first] = ddps_sent_slot(&w.s, t)->state == SLOT_SACKED;
		check(&w);
		end(&w);
	}
}

/* "start 1" says that cum + 1 is there, which cum denies: taken, and taken back. */
Test(sctp_sent, block_that_denies_cum)
{
	const struct ddps_sent_gap g = { 1, 3 };
	struct ddps_sent_sack k = { .a_rwnd = 1 << 20, .gaps = &g, .ngaps = 1 };
	struct ddps_sent_news news;
	struct world w;

	twenty(&w);
	k.cum = w.first - 1;
	cr_expect_eq(ddps_sent_sack(&w.s, &k, w.now + MS, &news), DDPS_SENT_TAKEN);
	cr_expect_eq(w.p[0].nsacked, 0);
	cr_expect_eq(w.p[0].nflight + w.p[0].nlost, 20);
	check(&w);
	end(&w);
}

/* The peer takes back what it had, and says so by cum alone: it must be sent again. */
Test(sctp_sent, all_taken_back, .description = "9260-6.2.1-d3")
{
	const struct ddps_sent_gap g = { 2, 20 };
	struct ddps_sent_sack k = { .a_rwnd = 1 << 20, .gaps = &g, .ngaps = 1 };
	struct ddps_sent_news news;
	struct world w;

	twenty(&w);
	k.cum = w.first - 1;
	w.now += 50 * MS;
	ddps_sent_sack(&w.s, &k, w.now, &news);
	cr_expect_eq(news.acked, 19);
	k.cum++;
	k.ngaps = 0;
	w.now += 50 * MS;
	ddps_sent_sack(&w.s, &k, w.now, &news);
	cr_expect_eq(w.p[0].nsacked, 0);
	cr_expect_eq(w.s.reneged, 19);
	cr_expect_eq(w.p[0].nflight, 19);
	cr_expect_neq(ddps_sent_deadline(&w.s, &w.p[0]), DDPS_SENT_NEVER);
	check(&w);
	end(&w);
}

/* SHUTDOWN acknowledges and takes nothing back (9260-3.3.8-2). */
Test(sctp_sent, shutdown_is_no_renege, .description = "9260-3.3.8-2")
{
	const struct ddps_sent_gap g = { 3, 20 };
	struct ddps_sent_sack k = { .a_rwnd = 5000, .gaps = &g, .ngaps = 1 };
	struct ddps_sent_news news;
	struct world w;

	twenty(&w);
	k.cum = w.first - 1;
	ddps_sent_sack(&w.s, &k, w.now + MS, &news);
	k = (struct ddps_sent_sack){ .cum = w.first, .shutdown = true };
	cr_expect_eq(ddps_sent_sack(&w.s, &k, w.now + MS, &news), DDPS_SENT_TAKEN);
	cr_expect_eq(news.cum_advanced, 1);
	cr_expect_eq(w.p[0].nsacked, 18);
	cr_expect_eq(w.s.a_rwnd, 5000);
	end(&w);
}

Test(sctp_sent, no_more_than_65535_outstanding)
{
	uint64_t room;
	struct world w;

	begin(&w, 1, 0xfffff000u, UINT32_MAX);
	w.p[0].cc.cwnd = UINT32_MAX;
	ddps_sent_begin(&w.s, &w.p[0], w.now);
	for (uint32_t i = 0; i < DDPS_SENT_MAX; i++)
		cr_assert_eq(ddps_sent_add_new(&w.s, 20, 4, (void *)((uintptr_t)w.s.next + 7)), 0);
	cr_expect_eq(ddps_sent_add_new(&w.s, 20, 4, NULL), DDPS_E_AGAIN);
	ddps_sent_end(&w.s, 1500, true);
	cr_expect_eq(ddps_sent_may(&w.s, &w.p[0], w.now, 4, &room), DDPS_SENT_NOTHING);
	check(&w);
	ddps_sent_path_lost(&w.s, &w.p[0]);
	check(&w);
	end(&w);
}

/* ---- timers ---- */

/* Sends @n packets of 1000 octets on path 0 and returns the TSN before the first. */
static uint32_t burst(struct world *w, int n)
{
	uint32_t before = w->s.next - 1;

	w->p[0].cc.cwnd = 1 << 20;
	for (int i = 0; i < n; i++) {
		ddps_sent_begin(&w->s, &w->p[0], w->now);
		cr_assert_eq(ddps_sent_add_new(&w->s, 1016, 1000,
					       (void *)((uintptr_t)w->s.next + 7)),
			     0);
		ddps_sent_end(&w->s, 1056, i + 1 < n);
	}
	return before;
}

static void ack(struct world *w, uint32_t cum, uint32_t from, uint32_t to)
{
	const struct ddps_sent_gap g = { (uint16_t)(from - cum), (uint16_t)(to - cum) };
	struct ddps_sent_sack k = { .cum = cum, .a_rwnd = 1 << 20, .gaps = &g, .ngaps = from != 0 };
	struct ddps_sent_news news;

	cr_assert_eq(ddps_sent_sack(&w->s, &k, w->now, &news), DDPS_SENT_TAKEN);
}

/* RFC 8985 7: what is lost at the tail is found by a probe, without T3, with one reaction. */
Test(sctp_sent, tail_loss_is_probed)
{
	struct ddps_sent_chunk c;
	struct world w;
	uint64_t room, at;
	uint32_t b;

	begin(&w, 1, 1, 1 << 20);
	ddps_sent_rtt(&w.s, &w.p[0], 20 * MS, w.now);
	b = burst(&w, 5);
	w.now += 20 * MS;
	ack(&w, b + 4, 0, 0);
	at = ddps_sent_deadline(&w.s, &w.p[0]);
	cr_expect_leq(at, w.now + 2 * 20 * MS + 2 * MS);
	w.now = at;
	cr_expect(ddps_sent_timer(&w.s, &w.p[0], w.now) == DDPS_SENT_EV_SEND);
	cr_expect_eq(ddps_sent_may(&w.s, &w.p[0], w.now, SIZE_MAX, &room), DDPS_SENT_OLD);
	ddps_sent_begin(&w.s, &w.p[0], w.now);
	cr_assert(ddps_sent_next_old(&w.s, &c));
	cr_expect_eq(c.tsn, b + 5);
	ddps_sent_add_old(&w.s, c.tsn);
	cr_expect_not(ddps_sent_next_old(&w.s, &c), "one chunk is enough");
	cr_expect(ddps_sent_end(&w.s, 1056, false), "the I bit");
	w.now += 20 * MS;
	ack(&w, b + 5, 0, 0);
	cr_expect_eq(w.p[0].t3s, 0);
	cr_expect_eq(w.s.next - 1, w.s.cum);
	cr_expect_eq(ddps_sent_deadline(&w.s, &w.p[0]), DDPS_SENT_NEVER);
	end(&w);
}

Test(sctp_sent, t3_backs_off_and_looks_between, .description = "9260-6.3.3-d1")
{
	struct ddps_sent_chunk c;
	struct world w;
	uint64_t start, errors = 0, packets = 0, room;
	unsigned ev;

	begin(&w, 1, 1, 1 << 20);
	ddps_sent_rtt(&w.s, &w.p[0], 20 * MS, w.now);
	burst(&w, 10);
	start = w.now;
	while (w.now - start < 30000 * MS) {
		w.now = ddps_sent_deadline(&w.s, &w.p[0]);
		cr_assert_neq(w.now, DDPS_SENT_NEVER);
		ev = ddps_sent_timer(&w.s, &w.p[0], w.now);
		errors += (ev & DDPS_SENT_EV_T3) != 0;
		while (ddps_sent_may(&w.s, &w.p[0], w.now, SIZE_MAX, &room)) {
			ddps_sent_begin(&w.s, &w.p[0], w.now);
			cr_assert(ddps_sent_next_old(&w.s, &c));
			ddps_sent_add_old(&w.s, c.tsn);
			ddps_sent_end(&w.s, 1056, false);
			packets++;
		}
		check(&w);
	}
	cr_expect(errors >= 5 && errors <= 7, "0.4, 0.8, 1.6 s and so on: %u", (unsigned)errors);
	cr_expect(packets >= 12 && packets <= 24, "and every 2 or 5 s: %u", (unsigned)packets);
	/* a sign of life: immediately, and RTO is back */
	cr_expect(ddps_sent_alive(&w.s, &w.p[0], w.now));
	cr_expect_eq(ddps_sent_may(&w.s, &w.p[0], w.now, SIZE_MAX, &room), DDPS_SENT_OLD);
	cr_expect_leq(ddps_sent_rto(&w.s, &w.p[0]), 400 * MS);
	end(&w);
}

/* 9260-6.1-5, -6: probing a closed window is slow, and no error while the peer answers. */
Test(sctp_sent, closed_window_is_probed,
     .description = "9260-6.1-1 9260-6.1-2 9260-6.1-5 9260-6.1-6")
{
	struct world w;
	uint64_t room, last = 0;
	uint32_t b;

	begin(&w, 1, 1, 3000);
	ddps_sent_rtt(&w.s, &w.p[0], 20 * MS, w.now);
	b = burst(&w, 3);
	cr_expect_eq(ddps_sent_may(&w.s, &w.p[0], w.now, 1000, &room), DDPS_SENT_NOTHING);
	w.now += 20 * MS;
	{
		struct ddps_sent_sack k = { .cum = b + 3 };
		struct ddps_sent_news news;

		ddps_sent_sack(&w.s, &k, w.now, &news);
	}
	cr_expect_eq(ddps_sent_may(&w.s, &w.p[0], w.now, 1000, &room), DDPS_SENT_NOTHING);
	cr_expect_eq(ddps_sent_deadline(&w.s, &w.p[0]), w.now + w.p[0].rto, "after one RTO");
	w.now = ddps_sent_deadline(&w.s, &w.p[0]);
	cr_expect_eq(ddps_sent_timer(&w.s, &w.p[0], w.now), DDPS_SENT_EV_SEND);
	cr_assert_eq(ddps_sent_may(&w.s, &w.p[0], w.now, 1000, &room), DDPS_SENT_NEW);
	burst(&w, 1);
	cr_expect_eq(ddps_sent_may(&w.s, &w.p[0], w.now, 1000, &room), DDPS_SENT_NOTHING);
	for (int i = 0; i < 6; i++) {
		struct ddps_sent_sack k = { .cum = b + 3 };
		struct ddps_sent_chunk c;
		struct ddps_sent_news news;
		uint64_t at = ddps_sent_deadline(&w.s, &w.p[0]);

		cr_expect_geq(at - w.now, last, "doubles");
		last = at - w.now;
		ddps_sent_sack(&w.s, &k, w.now + 20 * MS, &news); /* no room, it says */
		w.now = ddps_sent_deadline(&w.s, &w.p[0]);
		cr_expect_not(ddps_sent_timer(&w.s, &w.p[0], w.now) & DDPS_SENT_EV_T3);
		cr_assert_eq(ddps_sent_may(&w.s, &w.p[0], w.now, 1000, &room), DDPS_SENT_OLD);
		ddps_sent_begin(&w.s, &w.p[0], w.now);
		cr_assert(ddps_sent_next_old(&w.s, &c));
		ddps_sent_add_old(&w.s, c.tsn);
		ddps_sent_end(&w.s, 1056, true);
		check(&w);
	}
	w.now += 20 * MS;
	ack(&w, b + 3, 0, 0); /* open again */
	cr_expect_eq(ddps_sent_may(&w.s, &w.p[0], w.now, 1000, &room), DDPS_SENT_OLD, "at once");
	end(&w);
}

/* Two chunks of one packet are one piece of evidence (RFC 8985 6.2, DUPTHRESH in packets). */
Test(sctp_sent, one_packet_is_one_piece_of_evidence)
{
	struct world w;
	uint32_t b;

	begin(&w, 1, 1, 1 << 20);
	ddps_sent_rtt(&w.s, &w.p[0], 20 * MS, w.now);
	b = burst(&w, 1);
	w.now += MS;
	ddps_sent_begin(&w.s, &w.p[0], w.now);
	for (int i = 0; i < 5; i++)
		cr_assert_eq(ddps_sent_add_new(&w.s, 116, 100, (void *)((uintptr_t)w.s.next + 7)),
			     0);
	ddps_sent_end(&w.s, 620, true);
	w.now += 20 * MS;
	ack(&w, b, b + 2, b + 6);
	cr_expect_eq(w.p[0].sacked_packets, 1);
	cr_expect_eq(w.s.nlost, 0, "may still be on its way");
	cr_expect_neq(w.p[0].reo_at, 0);
	w.now = ddps_sent_deadline(&w.s, &w.p[0]);
	cr_expect(ddps_sent_timer(&w.s, &w.p[0], w.now) & DDPS_SENT_EV_LOST);
	cr_expect_eq(w.s.nlost, 1);
	end(&w);
}

Test(sctp_sent, rests_in_no_memory)
{
	struct world w;
	uint32_t b;

	begin(&w, 1, 1, 1 << 20);
	cr_expect_null(w.s.ring);
	b = burst(&w, 3);
	ddps_sent_rest(&w.s);
	cr_expect_not_null(w.s.ring, "not while something is outstanding");
	w.now += MS;
	ack(&w, b + 3, 0, 0);
	ddps_sent_rest(&w.s);
	cr_expect_null(w.s.ring);
	b = burst(&w, 3);
	ack(&w, b + 3, 0, 0);
	end(&w);
}
