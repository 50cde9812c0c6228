/* SPDX-License-Identifier: BSD-2-Clause */
/* What happens to hosts and to the network while sessions go on. */
#include "sim/session_world.h"
#include "sctp_ddp/backend/native/sd_native.h"
#include "sctp_ddp/sd_assoc.h"
#include "session/session.h"

/* Everything a host has is gone, and nobody is informed; it begins anew. */
static void restart_session_trouble(unsigned i)
{
	const struct kern_faults f = kern.f;

	kern.f = (struct kern_faults){ 0 };
	kern.mute |= 1u << i;
	for (unsigned k = 0; k < 2 * world.npairs; k++) {
		struct end *e = &world.pair[k / 2].end[k % 2];

		if (e->host == i && e->pair->open)
			user_free(e);
	}
	host_free(i, false);
	kern.mute = 0;
	host_new(i);
	kern.f = f;
	world.t->n[T_RESTARTS]++;
}

/* Is nobody's request under way to host @i? */
static bool asked_by_nobody(unsigned i)
{
	for (unsigned k = 0; k < world.npairs; k++) {
		const struct pair *p = &world.pair[k];
		const struct end *a = &p->end[0], *b = &p->end[1];

		if (p->open && b->host == i && !a->final && !b->final &&
		    !(a->established && b->established))
			return false;
	}
	return true;
}

/* A listener goes, and may come back immediately: whoever asks then finds it there. */
static void listen_anew(unsigned i, bool tcp)
{
	if (world.quiet && !asked_by_nobody(i))
		return;
	host_listen_no_more(&world.host[i], i, tcp);
	if (world.quiet)
		host_listen(&world.host[i], i, tcp);
}

/* An end has been begun, and neither is there nor is over. */
static bool sets_up(void)
{
	for (unsigned k = 0; k < world.npairs; k++)
		for (int i = 0; i < 2; i++) {
			const struct end *e = &world.pair[k].end[i];

			if (e->ep && !e->established && !e->final)
				return true;
		}
	return false;
}

void trouble(void)
{
	struct host *h = &world.host[sim_like(world.nhosts)];

	switch (sim_like(10)) {
	case 5:
		listen_anew((unsigned)(h - world.host), sim_like(2));
		break;
	case 0: /* once in a while, so that nobody's time is up for it */
		if (!world.quiet || h->stalled_until + 10 * SEC < kern.now)
			h->stalled_until = kern.now + sim_like(2 * SEC);
		break;
	case 1:
		if (!world.quiet)
			kern_cut((unsigned)(h - world.host));
		break;
	case 2:
		if (!world.quiet)
			kern.dark_until = kern.now + sim_like(20 * SEC);
		break;
	case 3:
		kern.delay = 1000 + sim_like(2 * kern.delay);
		break;
	case 6: /* another way, with routers that tell what does not fit, or do not */
		kern.mtu = world.quiet || sim_like(2) ? 1280 + (unsigned)sim_like(221)
						      : 576 + (unsigned)sim_like(9000);
		kern.tells = sim_like(2);
		break;
	case 7:
		if (!world.quiet)
			restart_session_trouble((unsigned)(h - world.host));
		break;
	case 8: /* a laptop that slept */
		if (!world.quiet && !sim_like(4))
			kern_go(kern.now + sim_like(3600 * SEC));
		break;
	case 9: /* a NAT forgets, which only who is inside DTLS may be asked to bear, and not before SCTP is up */
		if (world.inside && !(world.quiet && sets_up()))
			kern_rebind((unsigned)(h - world.host), 7000);
		break;
	default:
		if (!world.quiet)
			kern_go(kern.now + sim_like(SEC)); /* nobody ran for a while */
	}
}

/* ---- session dtls ---- */

/* What sessions inside DTLS meet in addition: new keys again and again; a NAT on the way has forgotten them. */

void dtls_begin(struct ddps_ctx *ctx)
{
	const struct ddps_sd_provider *prov = ctx->env.sctp;
	struct ddps_sn_env *ne = world.inside && prov ? prov->slot[0].ctx : NULL;

	if (ne && sim_happens(SIM_renews, 0, 0, 0.7))
		ne->renew_at = 20 + sim_like(200);
}

void dtls_end(const struct ddps_ctx *ctx)
{
	world.t->n[T_RENEWED] += ctx->env.secured.renewed;
	world.t->n[T_REBOUND] += ctx->env.secured.rebound;
}
