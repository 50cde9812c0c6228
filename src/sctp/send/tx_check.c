/* SPDX-License-Identifier: BSD-2-Clause */
/* What is outstanding, counted anew: see ddps_sent_check(). */
#include "sctp/send/tx_in.h"

#ifdef DDPS_ASSERTS
#include <string.h>

#define CHECK_PER_CALL 16u /* chunks to look at in one call, in the mean */

struct sent_count {
	uint32_t nflight, nlost, nsacked;
	uint64_t flight, lost_octets;
};

static void check_runs(const struct ddps_sent *s)
{
	uint32_t at = s->cum;

	for (uint32_t i = 0; i < s->nruns; i++) {
		const struct ddps_sent_run *r = &s->runs[i];

		ddps_assert(ddps_tsn_before(at, r->start) && !ddps_tsn_before(r->end, r->start));
		ddps_assert(ddps_tsn_before(r->end, s->next));
		at = r->end + 1; /* and so they do not touch */
	}
}

static void check_slot(const struct ddps_sent *s, uint32_t tsn, struct sent_count *n,
		       uint64_t *out_len)
{
	const struct ddps_sent_slot *c = ddps_sent_slot(s, tsn);
	const uint32_t i = tsn & s->mask;
	const bool lost = s->lost[i >> 6] >> (i & 63) & 1;

	ddps_assert(c->path < DDPS_SENT_PATHS && s->path[c->path]);
	ddps_assert(lost == (c->state == SLOT_LOST));
	n += c->path;
	switch (c->state) {
	case SLOT_FLIGHT:
		n->nflight++;
		n->flight += c->size;
		*out_len += c->len;
		break;
	case SLOT_SACKED:
		n->nsacked++;
		break;
	case SLOT_LOST:
		n->nlost++;
		n->lost_octets += c->size;
		break;
	default:
		ddps_assert(!"a TSN that is outstanding has a chunk");
	}
}

static void check_list(const struct ddps_sent *s, const struct ddps_sent_path *p)
{
	uint32_t tsn = p->head, last = p->head;
	uint64_t pn = 0;

	for (uint32_t i = 0; i < p->nflight; i++, last = tsn, tsn = ddps_sent_slot(s, tsn)->next) {
		const struct ddps_sent_slot *c = ddps_sent_slot(s, tsn);

		ddps_assert(ddps_sent_holds(s, tsn));
		ddps_assert(c->state == SLOT_FLIGHT && c->path == p->id);
		ddps_assert(!i || c->prev == last);
		ddps_assert(pn <= c->pn && c->pn < p->next_pn);
		pn = c->pn;
	}
	ddps_assert(!p->nflight || p->tail == last);
}

void ddps_sent_check(struct ddps_sent *s)
{
	struct sent_count n[DDPS_SENT_PATHS];
	uint32_t held = s->next - s->cum - 1, nflight = 0, nlost = 0, sacked = 0;
	uint64_t out_len = 0;

	ddps_assert(held <= DDPS_SENT_MAX && held <= (s->ring ? s->mask + 1 : 0));
	s->unlooked += CHECK_PER_CALL;
	if (s->unlooked < held)
		return;
	s->unlooked = 0;
	memset(n, 0, sizeof n);
	check_runs(s);
	for (uint32_t t = s->cum + 1; t != s->next; t++)
		check_slot(s, t, n, &out_len);
	for (unsigned i = 0; i < DDPS_SENT_PATHS; i++) {
		const struct ddps_sent_path *p = s->path[i];

		nflight += n[i].nflight;
		nlost += n[i].nlost;
		sacked += n[i].nsacked;
		if (!p)
			continue;
		ddps_assert(p->id == i && p->nflight == n[i].nflight && p->flight == n[i].flight);
		ddps_assert(p->nlost == n[i].nlost && p->lost_octets == n[i].lost_octets);
		ddps_assert(p->nsacked == n[i].nsacked);
		check_list(s, p);
	}
	ddps_assert(s->nflight == nflight && s->nlost == nlost && s->out_len == out_len);
	for (uint32_t i = 0; i < s->nruns; i++)
		sacked -= s->runs[i].end - s->runs[i].start + 1;
	ddps_assert(!sacked);
}
#endif
