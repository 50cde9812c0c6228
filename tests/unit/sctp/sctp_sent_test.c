/* SPDX-License-Identifier: BSD-2-Clause */
/* Outstanding TSNs and SACKs against a slow and plain model. */
#include "sctp_sent_fixture.h"
#include <ddpsess/err.h>
#include <stdlib.h>
#include <string.h>

/* ---- what happens ---- */

/* One packet, as may() says; the receiver gets it or not. */
static bool send_one_sctp_sent(struct world *w, unsigned path, size_t len, bool arrives)
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

		if (t - w->first >= 2 * SENT_MAX - 1 ||
		    ddps_sent_add_new(&w->s, (uint16_t)(16 + ((len + 3) & ~3u)), len,
				      (void *)((uintptr_t)t + 7)))
			break;
		used += 16 + ((unsigned)len + 3) / 4 * 4;
		in[n++] = t;
	}
	ddps_sent_end(&w->s, used + 40, sent_draw(w, 2));
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
static void apply_sack_to_model(struct world *w, const struct ddps_sent_sack *k, uint32_t old_cum)
{
	uint32_t top = k->ngaps ? k->cum + k->gaps[k->ngaps - 1].end : k->cum;
	bool news = k->cum != old_cum;
	uint8_t *named = calloc(2, SENT_MAX);

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

static void send_sctp_sent_sack(struct world *w, const struct sack *k)
{
	uint32_t cum = w->s.cum, lost = w->s.nlost, runs = w->s.nruns;
	uint64_t steps = w->s.steps, reneged = w->s.reneged, most;
	struct ddps_sent_news news;
	enum ddps_sent_verdict v = ddps_sent_sack(&w->s, &k->k, w->now, &news);

	cr_assert_neq(v, DDPS_SENT_LIE);
	if (v == DDPS_SENT_STALE)
		return;
	apply_sack_to_model(w, &k->k, cum);
	/* O(what is new + blocks), and what was found lost is new as well */
	most = 4 * (news.acked + news.cum_advanced + runs + k->k.ngaps + k->k.ndups) +
	       2 * (w->s.reneged - reneged) + 32;
	most += w->s.nlost > lost ? 2 * (w->s.nlost - lost) : 0;
	cr_assert_leq(w->s.steps - steps, most, "cost of a SACK");
}

static void tick_sctp_sent(struct world *w)
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
		if (sent_draw(w, 2))
			w->got[t - w->first] = 0;
}

static void step_sctp_sent(struct world *w, struct sack *old)
{
	struct sack k;
	unsigned what = sent_draw(w, 100);

	if (what < 60) {
		unsigned path = sent_draw(w, 8) == 0, n = 1 + sent_draw(w, 12);

		while (n-- && send_one_sctp_sent(
				      w, path, sent_draw(w, 10) ? 1 + sent_draw(w, 1400) : SIZE_MAX,
				      sent_draw(w, 10) != 0))
			;
	} else if (what < 90) {
		honest(w, &k, sent_draw(w, 3) ? 400 : sent_draw(w, 4));
		for (unsigned i = sent_draw(w, 3); i; i--)
			k.dups[k.k.ndups++] = w->cum - sent_draw(w, 20);
		k.k.gaps = k.gaps;
		k.k.dups = k.dups;
		send_sctp_sent_sack(w, &k);
		*old = k;
	} else if (what < 95) {
		old->k.gaps = old->gaps;
		old->k.dups = old->dups;
		send_sctp_sent_sack(w, old);
	} else if (what < 97) {
		renege(w);
	} else if (what < 98) {
		ddps_sent_path_lost(&w->s, &w->p[sent_draw(w, 2)]);
	} else if (what < 99) {
		ddps_sent_refused(&w->s, &w->p[0],
				  w->p[0].next_pn > 3 ? w->p[0].next_pn - 1 - sent_draw(w, 3) : 1);
	} else {
		w->now += sent_draw(w, 4) * 500 * MS;
	}
	w->now += sent_draw(w, 20) * MS;
	tick_sctp_sent(w);
	sent_check(w);
}

Test(sctp_sent, agrees_with_a_slow_model,
     .description = "9260-6.2.1-d1 9260-6.7-3 9260-1.3-d1 9260-6.7-4", .timeout = 60)
{
	for (uint64_t seed = 1; seed <= 60; seed++) {
		struct world w;
		struct sack old;

		sent_begin(&w, seed, seed % 2 ? 0xffffff80u : (uint32_t)seed * 1000, 1 << 20);
		honest(&w, &old, 0);
		for (int i = 0; i < 400; i++)
			step_sctp_sent(&w, &old);
		sent_end(&w);
	}
}

/* ---- SACKs of the hostile ---- */

/* 20 chunks of 100 octets, one a packet. */
static void twenty(struct world *w)
{
	sent_begin(w, 1, 0xfffffff8u, 1 << 20);
	w->p[0].cc.cwnd = 1 << 20;
	for (int i = 0; i < 20; i++) {
		ddps_sent_begin(&w->s, &w->p[0], w->now);
		cr_assert_eq(ddps_sent_add_new(&w->s, 116, 100, (void *)((uintptr_t)w->s.next + 7)),
			     0);
		ddps_sent_end(&w->s, 156, true);
	}
	sent_check(w);
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
		sent_check(&w);
		sent_end(&w);
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
	cr_expect_eq(news.acked, 3);
	cr_expect_eq(w.s.reneged, 3);
	cr_expect_eq(w.s.bad_blocks, 0);
	cr_expect_eq(w.p[0].nsacked, 0);
	cr_expect_eq(w.p[0].nflight + w.p[0].nlost, 20);
	sent_check(&w);
	sent_end(&w);
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
	sent_check(&w);
	sent_end(&w);
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
	sent_end(&w);
}

Test(sctp_sent, no_more_than_65535_outstanding, .description = "9260-1.6-3 9260-6.1-22 9260-6.1-23")
{
	uint64_t room;
	struct world w;

	sent_begin(&w, 1, 0xfffff000u, UINT32_MAX);
	w.p[0].cc.cwnd = UINT32_MAX;
	ddps_sent_begin(&w.s, &w.p[0], w.now);
	for (uint32_t i = 0; i < DDPS_SENT_MAX; i++)
		cr_assert_eq(ddps_sent_add_new(&w.s, 20, 4, (void *)((uintptr_t)w.s.next + 7)), 0);
	cr_expect_eq(ddps_sent_add_new(&w.s, 20, 4, NULL), DDPS_E_AGAIN);
	ddps_sent_end(&w.s, 1500, true);
	cr_expect_eq(ddps_sent_may(&w.s, &w.p[0], w.now, 4, &room), DDPS_SENT_NOTHING);
	sent_check(&w);
	ddps_sent_path_lost(&w.s, &w.p[0]);
	sent_check(&w);
	sent_end(&w);
}

static void not_told(void *user, uint32_t tsn, void *chunk)
{
	(void)user;
	(void)tsn;
	(void)chunk;
}

/* The memory of an association that ended with losses serves the next one, which knows of none. */
Test(sctp_sent, a_ring_that_ended_with_losses_serves_another)
{
	struct ddps_pmtu_limits lim = ddps_pmtu_limits(false, 1500);
	struct ddps_sent_spares spares = { 0 };
	const struct ddps_sent_conf conf = {
		.rto_initial = 1000 * MS, .rto_max = 60000 * MS, .grain = 128000, .spares = &spares
	};
	struct ddps_sent_chunk c;
	struct ddps_sent_path p;
	struct ddps_sent s;
	uint64_t pn[3];

	for (unsigned k = 0; k < 2; k++) {
		ddps_sent_init(&s, &conf, 100, 100000, not_told, NULL);
		ddps_sent_path_init(&s, &p, 0, &lim, 40);
		for (unsigned i = 0; i < 3; i++) {
			pn[i] = ddps_sent_begin(&s, &p, MS);
			cr_assert_eq(ddps_sent_add_new(&s, 100, 84, &s), 0);
			ddps_sent_end(&s, 140, true);
		}
		ddps_sent_refused(&s, &p, pn[k ? 2 : 0]);
		cr_assert_eq(s.nlost, k ? 1 : 3);
		ddps_sent_begin(&s, &p, MS);
		cr_assert(ddps_sent_next_old(&s, &c));
		cr_expect_eq(c.tsn, k ? 102 : 100);
		ddps_sent_end(&s, 0, false);
		ddps_sent_fini(&s);
		cr_expect_eq(spares.n, 1);
	}
	ddps_sent_spares_free(&spares);
}

/* The tail probe met a socket without room: nothing that is acknowledged later was repaired by it. */
Test(sctp_sent, a_probe_that_did_not_leave_has_repaired_nothing)
{
	for (unsigned refused = 0; refused < 2; refused++) {
		struct ddps_sent_news news;
		struct ddps_sent_sack k = { .a_rwnd = 1 << 20 };
		struct world w;
		uint64_t pn;

		twenty(&w);
		w.p[0].force = w.p[0].probe = true;
		pn = ddps_sent_begin(&w.s, &w.p[0], w.now);
		ddps_sent_add_old(&w.s, w.s.next - 1);
		ddps_sent_end(&w.s, 156, false);
		cr_assert(w.p[0].tlp_out && w.p[0].tlp_resent);
		if (refused)
			ddps_sent_refused(&w.s, &w.p[0], pn);
		cr_expect_eq(w.p[0].tlp_out, !refused);
		w.now += 50 * MS;
		k.cum = w.s.next - 1;
		ddps_sent_sack(&w.s, &k, w.now, &news);
		w.now += 500 * MS;
		ddps_sent_sack(&w.s, &k, w.now, &news);
		cr_expect_eq(w.p[0].lost, !refused);
		sent_end(&w);
	}
}
