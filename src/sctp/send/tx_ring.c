/* SPDX-License-Identifier: BSD-2-Clause */
/* The ring of outstanding TSNs, which of them are lost, and which are in flight on each path. */
#include "sctp/send/tx_in.h"
#include <ddpsess/err.h>
#include <stdlib.h>

/* ---- the bitmap of what is lost ---- */

static void bit_set(struct ddps_sent *s, uint32_t i)
{
	s->lost[i >> 6] |= 1ull << (i & 63);
	s->lost_top[i >> 12] |= 1ull << (i >> 6 & 63);
}

static void bit_clear(struct ddps_sent *s, uint32_t i)
{
	s->lost[i >> 6] &= ~(1ull << (i & 63));
	if (!s->lost[i >> 6])
		s->lost_top[i >> 12] &= ~(1ull << (i >> 6 & 63));
}

/* Index of the first set bit from @i on, or UINT32_MAX. */
static uint32_t bit_from(struct ddps_sent *s, uint32_t i)
{
	uint32_t words = (s->mask >> 6) + 1, w = i >> 6;
	uint64_t v = s->lost[w] & ~0ull << (i & 63);

	s->steps++;
	if (v)
		return (w << 6) + (uint32_t)__builtin_ctzll(v);
	if (++w == words)
		return UINT32_MAX;
	v = s->lost_top[w >> 6] & ~0ull << (w & 63);
	for (uint32_t t = w >> 6;;) {
		s->steps++;
		if (v) {
			w = (t << 6) + (uint32_t)__builtin_ctzll(v);
			return (w << 6) + (uint32_t)__builtin_ctzll(s->lost[w]);
		}
		if (++t >= (words + 63) >> 6)
			return UINT32_MAX;
		v = s->lost_top[t];
	}
}

bool ddps_sent_lowest(struct ddps_sent *s, uint32_t from, uint32_t *tsn)
{
	uint32_t i;

	if (!s->nlost)
		return false;
	i = bit_from(s, from & s->mask);
	if (i == UINT32_MAX)
		i = bit_from(s, 0);
	*tsn = from + ((i - from) & s->mask);
	return ddps_sent_holds(s, *tsn); /* else it is before @from */
}

/* ---- the ring ---- */

#define SPARES_MAX 256u

void ddps_sent_ring_free(struct ddps_sent *s)
{
	struct ddps_sent_spares *sp = s->conf->spares;

	if (sp && s->mask == DDPS_SENT_RING_FIRST - 1 && sp->n < SPARES_MAX) {
		*s->lost = *s->lost_top = 0; /* it may end with something lost */
		*(void **)s->ring = sp->first;
		sp->first = s->ring;
		sp->n++;
	} else {
		free(s->ring);
	}
	s->ring = NULL;
	s->lost = s->lost_top = NULL;
	s->mask = 0;
}

void ddps_sent_ring_pass(struct ddps_sent *s)
{
	struct ddps_sent_spares *sp = s->conf->spares;

	if (sp->last && ddps_sent_ring_rests(sp->last))
		ddps_sent_ring_free(sp->last);
	sp->last = s;
}

void ddps_sent_spares_free(struct ddps_sent_spares *sp)
{
	while (sp->first) {
		void *ring = sp->first;

		sp->first = *(void **)ring;
		free(ring);
	}
	sp->n = 0;
}

/* Its bitmaps are clear; of a spare one nothing else is. */
static struct ddps_sent_slot *ring_new(struct ddps_sent_spares *sp, uint32_t size)
{
	uint32_t words = (size + 63) / 64;
	void *ring = sp && size == DDPS_SENT_RING_FIRST ? sp->first : NULL;

	if (!ring)
		return calloc(1, size * sizeof(struct ddps_sent_slot) +
					 (words + (words + 63) / 64) * sizeof(uint64_t));
	sp->first = *(void **)ring;
	sp->n--;
	return ring;
}

static void set_ring(struct ddps_sent *s, struct ddps_sent_slot *ring, uint32_t size)
{
	s->ring = ring;
	s->lost = (uint64_t *)(ring + size);
	s->lost_top = s->lost + (size + 63) / 64;
	s->mask = size - 1;
}

bool ddps_sent_spare_ring(struct ddps_sent *s)
{
	struct ddps_sent_spares *sp = s->conf->spares;

	if (s->ring || !sp || !sp->first)
		return false;
	set_ring(s, ring_new(sp, DDPS_SENT_RING_FIRST), DDPS_SENT_RING_FIRST);
	return true;
}

int ddps_sent_grow(struct ddps_sent *s)
{
	uint32_t size = s->mask ? 2 * (s->mask + 1) : DDPS_SENT_RING_FIRST;
	struct ddps_sent_slot *ring = ring_new(s->conf->spares, size);

	if (!ring)
		return DDPS_E_NOMEM;
	for (uint32_t t = s->cum + 1; t != s->next; t++)
		ring[t & (size - 1)] = *ddps_sent_slot(s, t);
	if (!s->ring) {
		set_ring(s, ring, size);
		return 0;
	}
	ddps_sent_ring_free(s);
	set_ring(s, ring, size);
	for (uint32_t t = s->cum + 1; t != s->next; t++)
		if (ddps_sent_slot(s, t)->state == SLOT_LOST)
			bit_set(s, t & s->mask);
	return 0;
}

void ddps_sent_unflight(struct ddps_sent *s, uint32_t tsn)
{
	struct ddps_sent_slot *c = ddps_sent_slot(s, tsn);
	struct ddps_sent_path *p = s->path[c->path];

	if (--p->nflight) {
		if (p->head == tsn)
			p->head = c->next;
		else if (p->tail != tsn)
			ddps_sent_slot(s, c->prev)->next = c->next;
		if (p->tail == tsn)
			p->tail = c->prev;
		else
			ddps_sent_slot(s, c->next)->prev = c->prev;
	}
	p->flight -= c->size;
	s->out_len -= c->len;
	s->nflight--;
}

void ddps_sent_unlost(struct ddps_sent *s, uint32_t tsn)
{
	struct ddps_sent_slot *c = ddps_sent_slot(s, tsn);
	struct ddps_sent_path *p = s->path[c->path];

	bit_clear(s, tsn & s->mask);
	s->nlost--;
	p->nlost--;
	p->lost_octets -= c->size;
}

void ddps_sent_mark(struct ddps_sent *s, uint32_t tsn)
{
	struct ddps_sent_slot *c = ddps_sent_slot(s, tsn);
	struct ddps_sent_path *p = s->path[c->path];

	ddps_sent_unflight(s, tsn);
	c->state = SLOT_LOST;
	c->episode = 0;
	bit_set(s, tsn & s->mask);
	s->nlost++;
	p->nlost++;
	p->lost_octets += c->size;
}

void ddps_sent_requeue(struct ddps_sent *s, uint32_t tsn, uint64_t now)
{
	struct ddps_sent_slot *c = ddps_sent_slot(s, tsn);
	struct ddps_sent_path *p = s->path[c->path];

	c->pn = p->next_pn - 1;
	c->sent_at = now;
	c->flags = (c->flags | SLOT_VOID) & (uint8_t) ~(SLOT_PKT | SLOT_T3);
	s->once = s->next;
	c->episode = 0;
	ddps_sent_link(s, p, tsn);
	if (!p->t3_at) /* 9260-6.3.2-d1, R4 */
		p->t3_at = now + ddps_sent_late(p, ddps_sent_rto(s, p));
}
