/* SPDX-License-Identifier: BSD-2-Clause */
/* Addresses of this host that another node has, too (RFC 5227, RFC 4862 5.4). */
#include <string.h>
#include "ipoib_cm/iface/iface_in.h"
#include "ipoib_cm/wire/wire.h"

#define DEFEND_NS 10000000000ull /* RFC 5227 1.1: DEFEND_INTERVAL */

void ddps_ipoib_own_probe(struct ddps_ipoib_if *f, bool v6, const uint8_t *ip)
{
	static const uint8_t none[4];
	struct ddps_ipoib_claim *c = ddps_ipoib_own_claim(f, v6, ip);

	if (!c || !ddps_ipoib_serves(f, v6))
		return;
	*c = (struct ddps_ipoib_claim){ .young_until = f->now + f->cfg.retry_ns };
	if (v6)
		ddps_ipoib_dad_send(f, ip);
	else
		ddps_ipoib_arp_send(f, DDPS_IPOIB_ARP_REQUEST, none, ip, NULL);
	ddps_ipoib_own_announce(f, v6, ip);
}

/* The record of an address, else the oldest one. */
static struct ddps_ipoib_if_conflict *place_conflict(struct ddps_ipoib_if *f, bool v6,
						     const uint8_t *ip)
{
	struct ddps_ipoib_if_conflict *c;

	for (unsigned i = 0; i < f->n_conflict; i++)
		if (f->conflict[i].ip6 == v6 && !memcmp(f->conflict[i].ip, ip, v6 ? 16 : 4))
			return &f->conflict[i];
	c = &f->conflict[f->next_conflict++ % DDPS_IPOIB_IF_CONFLICTS];
	if (f->n_conflict < DDPS_IPOIB_IF_CONFLICTS)
		f->n_conflict++;
	*c = (struct ddps_ipoib_if_conflict){ .ip6 = v6 };
	memcpy(c->ip, ip, v6 ? 16 : 4);
	return c;
}

/* One node that has another queue pair now is no other node. */
bool ddps_ipoib_dup_in(struct ddps_ipoib_if *f, bool v6, const uint8_t *ip,
		       const struct ddps_ipoib_lladdr *other)
{
	struct ddps_ipoib_claim *claim = ddps_ipoib_own_claim(f, v6, ip);
	struct ddps_ipoib_if_conflict *c;

	if (!claim || !ddps_ipoib_serves(f, v6) ||
	    !memcmp(other->gid, f->cfg.me.addr.gid, sizeof(other->gid)))
		return false;
	c = place_conflict(f, v6, ip);
	c->other = *other;
	c->at = f->now;
	c->given_up = f->now < claim->young_until; /* RFC 5227 2.1.1, RFC 4862 5.4.5 */
	f->stats.ip_conflict++;
	if (c->given_up) {
		(void)ddps_ipoib_if_address(f, v6, c->ip, 0, false, f->now);
	} else if (claim->defend_at <= f->now) { /* RFC 5227 2.4 (c) */
		claim->defend_at = f->now + DEFEND_NS;
		ddps_ipoib_own_announce(f, v6, ip);
	}
	return true;
}

int ddps_ipoib_if_conflict(const struct ddps_ipoib_if *f, unsigned nr,
			   struct ddps_ipoib_if_conflict *c)
{
	if (nr >= f->n_conflict)
		return -1;
	*c = f->conflict[nr];
	return 1;
}
