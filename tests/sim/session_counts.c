/* SPDX-License-Identifier: BSD-2-Clause */
/* What a context counts of its associations, counted again from what there is. */
#include "sim/session_world.h"
#include "sctp_ddp/sd_assoc.h"
#include "session/session.h"

#define LISTENERS 8u

/* Of one listener, found by its associations. */
struct taken {
	const struct ddps_sd_listener *l;
	unsigned half_open, silent, idle;
};

struct counts {
	struct taken of[LISTENERS];
	unsigned n;
};

static struct taken *take_checked_session_counts(struct counts *all,
						 const struct ddps_sd_listener *l)
{
	unsigned i = 0;

	while (i < all->n && all->of[i].l != l)
		i++;
	if (i == LISTENERS)
		return NULL;
	if (i == all->n)
		all->of[all->n++].l = l;
	return &all->of[i];
}

static void pairs(unsigned host, const struct ddps_sd_carrier *c)
{
	unsigned n = 0, outgoing = 0, pending = 0, waiting = 0, full = 0, sessions = 0;
	const struct ddps_sd_session *s;
	uint32_t over = 0;
	size_t held = 0;

	for (unsigned i = 0; i < c->npairs_size; i++) {
		const struct ddps_sd_pair *p = c->pairs[i];

		if (!p)
			continue;
		n++;
		outgoing += p->sm.state == DDPS_SD_A1;
		pending += p->sm.state == DDPS_SD_P1;
		waiting += p->waits;
		full += p->brim;
		over += p->over;
		held += p->rx.octets;
		sessions += p->sess != NULL;
	}
	TAILQ_FOREACH(s, &c->waiting, link)
		sessions++;
	check(c->npairs == n && c->outgoing == outgoing && c->pending == pending,
	      "host %u: %u stream pairs, %u and %u asked for; counted are %u, %u, %u", host, n,
	      outgoing, pending, c->npairs, c->outgoing, c->pending);
	check(c->nwaiting == waiting && c->nbrim == full && c->over == over && c->held == held,
	      "host %u: %u wait, %u are full, %u octets too many, %zu held; counted are %u, %u, "
	      "%u, %zu",
	      host, waiting, full, over, held, c->nwaiting, c->nbrim, c->over, c->held);
	check(c->nsessions == sessions, "host %u: %u sessions, counted are %u", host, sessions,
	      c->nsessions);
}

void counts_check(unsigned host, const struct ddps_ctx *ctx)
{
	const struct ddps_sd_provider *prov = ctx->env.sctp;
	const struct ddps_sd_carrier *c;
	struct counts all = { .n = 0 };
	struct taken *t;

	if (!prov)
		return;
	TAILQ_FOREACH(c, &prov->carriers, link) {
		pairs(host, c);
		t = c->listener ? take_checked_session_counts(&all, c->listener) : NULL;
		check(t || !c->listener, "host %u: more than %u listeners", host, LISTENERS);
		if (!t)
			continue;
		t->half_open += c->fresh + c->pending;
		t->silent += c->fresh && c->share.counted;
		t->idle += !c->fresh && c->share.counted;
	}
	for (t = all.of; t < all.of + all.n; t++) {
		check(t->l->half_open == t->half_open, "host %u: %u are half open, counted are %u",
		      host, t->half_open, t->l->half_open);
		check(t->l->silent.places == t->silent && t->l->idle.places == t->idle,
		      "host %u: %u silent, %u idle associations; counted are %u and %u", host,
		      t->silent, t->idle, t->l->silent.places, t->l->idle.places);
	}
}
