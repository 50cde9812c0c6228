/* SPDX-License-Identifier: BSD-2-Clause */
#include "sctp_sent_fixture.h"
#include <stdlib.h>
#include <string.h>

uint32_t sent_draw(struct world *w, uint32_t n)
{
	w->seed ^= w->seed << 13;
	w->seed ^= w->seed >> 7;
	w->seed ^= w->seed << 17;
	return (uint32_t)(w->seed >> 11) % n;
}

static void note_sctp_sent_acked(void *user, uint32_t tsn, void *chunk)
{
	struct world *w = user;

	cr_assert_eq(tsn, w->given + 1, "given back out of order or twice");
	cr_assert_eq((uintptr_t)chunk, (uintptr_t)tsn + 7);
	w->given = tsn;
}

/* Rings go from one world to the next, as from one association of an engine to the next. */
static struct ddps_sent_spares spares;

static const struct ddps_sent_conf conf = {
	.spares = &spares, .rto_initial = 1000 * MS, .rto_max = 60000 * MS, .grain = 128000
};

void sent_begin(struct world *w, uint64_t seed, uint32_t first, uint32_t a_rwnd)
{
	struct ddps_pmtu_limits lim = ddps_pmtu_limits(false, 1500);

	memset(w, 0, sizeof *w);
	w->seed = seed * 2654435761u + 88172645463325252ull;
	w->first = first;
	w->given = w->cum = first - 1;
	w->now = 1000 * MS;
	w->sacked = calloc(2, SENT_MAX);
	w->got = calloc(2, SENT_MAX);
	cr_assert(w->sacked && w->got);
	ddps_sent_init(&w->s, &conf, first, a_rwnd, note_sctp_sent_acked, w);
	for (unsigned i = 0; i < 2; i++) {
		ddps_sent_path_init(&w->s, &w->p[i], i, &lim, 40);
		ddps_pmtu_start(&w->p[i].pmtu, 0, w->now);
		w->p[i].rtts = 2; /* of the set-up: what is set as the shortest counts */
	}
}

void sent_end(struct world *w)
{
	ddps_sent_fini(&w->s);
	cr_assert_eq(w->given, w->s.next - 1, "not all was given back");
	free(w->sacked);
	free(w->got);
}

/* ---- the model: everything by looking at every slot ---- */

static void check_sent_slot(const struct world *w, uint32_t t, struct ddps_sent_path *sum)
{
	const struct ddps_sent_slot *c = ddps_sent_slot(&w->s, t);
	bool bit = w->s.lost[(t & w->s.mask) >> 6] >> (t & w->s.mask & 63) & 1;

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

static void check_sent_list(const struct world *w, const struct ddps_sent_path *p)
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

static void check_sent_runs(const struct world *w)
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

void sent_check(struct world *w)
{
	struct ddps_sent_path sum[2] = { 0 };
	uint64_t len = 0;
	uint32_t low = w->s.next, found;

	cr_assert_eq(w->given, w->s.cum);
	for (uint32_t t = w->s.cum + 1; t != w->s.next; t++) {
		const struct ddps_sent_slot *c = ddps_sent_slot(&w->s, t);

		check_sent_slot(w, t, sum);
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
		check_sent_list(w, &w->p[i]);
		cr_assert(!w->p[i].nflight ||
			  ddps_sent_deadline(&w->s, &w->p[i]) != DDPS_SENT_NEVER);
	}
	cr_assert_eq(len, w->s.out_len);
	cr_assert_eq(sum[0].nlost + sum[1].nlost, w->s.nlost);
	cr_assert_eq(sum[0].nflight + sum[1].nflight, w->s.nflight);
	cr_assert_eq(ddps_sent_lowest(&w->s, w->s.cum + 1, &found), low != w->s.next);
	cr_assert(low == w->s.next || found == low);
	check_sent_runs(w);
}
