/* SPDX-License-Identifier: BSD-2-Clause */
/* What a carrier says of its pairs and sessions, counted anew: see ddps_sd_check(). */
#include "common/system/assert.h"
#include "sctp_ddp/sd_assoc.h"

#ifdef DDPS_ASSERTS

#define CHECK_MAX 64u /* with more pairs counting takes longer than a test has */

/* What the carrier adds up over its pairs. */
struct sums {
	unsigned npairs, sessions, outgoing, pending, waits, brim, dry, ctl, seg;
	size_t held;
	uint32_t over;
};

static void check_order(const struct ddps_sd_order *o)
{
	size_t octets = 0;
	unsigned count = 0;

	if (o->count > CHECK_MAX)
		return;
	for (unsigned i = 0; i < o->nslot; i++)
		for (const struct ddps_sd_held *h = o->slot[i]; h; h = h->next) {
			ddps_assert((h->ssn & (o->nslot - 1)) == i);
			ddps_assert((uint16_t)(h->ssn - o->next) < DDPS_SD_WINDOW);
			octets += ddps_sd_order_cost(h->len);
			count++;
		}
	ddps_assert(o->count == count && o->octets == octets);
}

static void add_pair(struct sums *n, const struct ddps_sd_pair *p)
{
	n->npairs++;
	n->sessions += p->sess != NULL;
	n->outgoing += p->sm.state == DDPS_SD_A1;
	n->pending += p->sm.state == DDPS_SD_P1;
	n->waits += p->waits;
	n->brim += p->brim;
	n->dry += p->in_dry;
	n->ctl += p->in_ctl;
	n->seg += p->in_seg;
	n->held += p->rx.octets;
	n->over += p->over;
}

static void check_pair(const struct ddps_sd_carrier *c, const struct ddps_sd_pair *p)
{
	ddps_assert(p->carrier == c && p->sm.state < DDPS_SD_NSTATES);
	ddps_assert(!p->sess || (p->sess->pair == p && p->sess->carrier == c));
	ddps_assert(p->last_seq <= c->sent && p->probe_seq <= p->last_seq);
	ddps_assert(p->waits || (!p->over && !p->brim));
	check_order(&p->rx);
}

/* As many are in the lists as say that they are. */
static void check_lists(const struct ddps_sd_carrier *c, const struct sums *n)
{
	const struct ddps_sd_pair *p;
	unsigned ctl = 0, seg = 0, dry = 0;

	TAILQ_FOREACH(p, &c->ctl, ctl_link)
		ctl++;
	TAILQ_FOREACH(p, &c->seg, seg_link)
		seg++;
	TAILQ_FOREACH(p, &c->dry, dry_link)
		dry++;
	ddps_assert(ctl == n->ctl && seg == n->seg && dry == n->dry && dry == c->ndry);
}

void ddps_sd_check(const struct ddps_sd_carrier *c)
{
	const struct ddps_sd_session *s;
	struct sums n = { 0 };

	ddps_assert(c->state <= DDPS_SD_GOING && !c->running);
	ddps_assert(!c->tx_pair || (c->tx_seg && c->tx_pair->carrier == c));
	if (c->npairs > CHECK_MAX)
		return;
	for (unsigned i = 0; i < c->npairs_size; i++)
		if (c->pairs[i]) {
			ddps_assert(c->pairs[i]->stream == i);
			check_pair(c, c->pairs[i]);
			add_pair(&n, c->pairs[i]);
		}
	TAILQ_FOREACH(s, &c->waiting, link) {
		ddps_assert(s->carrier == c && !s->pair);
		n.sessions++;
	}
	ddps_assert(c->npairs == n.npairs && c->nsessions == n.sessions);
	ddps_assert(c->outgoing == n.outgoing && c->pending == n.pending);
	ddps_assert(c->nwaiting == n.waits && c->nbrim == n.brim);
	ddps_assert(c->held == n.held && c->over == n.over);
	check_lists(c, &n);
}
#endif
