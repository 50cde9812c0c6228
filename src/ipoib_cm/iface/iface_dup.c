/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Addresses of this host that another node may have, too (RFC 5227, RFC 4862 5.4).  Each is asked for
 * before it is used, announced when nobody has it, and defended from then on.
 */
#include <string.h>
#include "ipoib_cm/iface/iface_in.h"
#include "ipoib_cm/wire/wire.h"

#define DEFEND_NS     10000000000ull /* RFC 5227 1.1: DEFEND_INTERVAL */
#define PROBES_V4     3		     /* PROBE_NUM */
#define PROBES_V6     1		     /* RFC 4862 5.1: DupAddrDetectTransmits */
#define ANNOUNCEMENTS 2		     /* ANNOUNCE_NUM */
#define ASK_EVERY     60	     /* probe_ns, whether a conflict lasts */
#define ASKED_MAX     2

static uint64_t draw_own_wait(struct ddps_ipoib_if *f)
{
	return f->cfg.probe_ns / 65536 * (ddps_ipoib_draw(f) & 0xffff);
}

/* The least time in which another node can get an address that nobody defends. */
static uint64_t get_claim_min(const struct ddps_ipoib_if *f, bool v6)
{
	return (v6 ? 1 : 4) * f->cfg.probe_ns;
}

static void set_claim_due(struct ddps_ipoib_claim *c, uint64_t due)
{
	c->timed = true;
	c->due = due;
}

void ddps_ipoib_own_weigh(struct ddps_ipoib_if *f)
{
	struct ddps_ipoib_claim *c;
	const uint8_t *ip;
	bool v6;

	f->n_young = 0;
	f->own_due = DDPS_CM_NEVER;
	for (unsigned i = 0; i < DDPS_IPOIB_CLAIMS; i++) {
		c = ddps_ipoib_own_at(f, i, &v6, &ip);
		f->n_young += c && !c->held;
		if (c && c->timed)
			f->own_due = ddps_ipoib_min(f->own_due, c->due);
	}
	for (unsigned i = 0; i < DDPS_IPOIB_IF_CONFLICTS; i++)
		if (f->dup[i].used && !f->dup[i].c.given_up)
			f->own_due = ddps_ipoib_min(f->own_due, f->dup[i].due);
}

static void begin_claim(struct ddps_ipoib_if *f, struct ddps_ipoib_claim *c)
{
	*c = (struct ddps_ipoib_claim){ .defend_at = c->defend_at };
	set_claim_due(c, f->now + draw_own_wait(f));
}

void ddps_ipoib_own_probe(struct ddps_ipoib_if *f, bool v6, const uint8_t *ip)
{
	struct ddps_ipoib_claim *c = ddps_ipoib_own_claim(f, v6, ip);

	if (c && ddps_ipoib_serves(f, v6))
		begin_claim(f, c);
	ddps_ipoib_own_weigh(f);
}

/* The link is listened to again, after @gap_ns in which it was not. */
static void resume_own(struct ddps_ipoib_if *f, uint64_t gap_ns)
{
	struct ddps_ipoib_claim *c;
	const uint8_t *ip;
	bool v6;

	for (unsigned i = 0; i < DDPS_IPOIB_CLAIMS; i++) {
		c = ddps_ipoib_own_at(f, i, &v6, &ip);
		if (c && gap_ns >= (c->held ? get_claim_min(f, v6) : f->cfg.probe_ns))
			begin_claim(f, c);
	}
	ddps_ipoib_own_weigh(f);
}

void ddps_ipoib_own_begin_claims(struct ddps_ipoib_if *f)
{
	const uint64_t gap = f->now - f->heard_at;
	struct ddps_ipoib_claim *c;
	const uint8_t *ip;
	bool v6;

	for (unsigned i = 0; i < DDPS_IPOIB_CLAIMS; i++) {
		c = ddps_ipoib_own_at(f, i, &v6, &ip);
		if (!c)
			continue;
		if (!c->held || gap >= get_claim_min(f, v6)) {
			begin_claim(f, c);
			continue;
		}
		c->sent = 0; /* the QPN may be new (4391-9.4-1) */
		set_claim_due(c, f->now);
	}
	ddps_ipoib_own_weigh(f);
	ddps_ipoib_own_tick(f);
}

static void send_own_probe(struct ddps_ipoib_if *f, bool v6, const uint8_t *ip)
{
	static const uint8_t none[4];

	if (v6)
		ddps_ipoib_dad_send(f, ip);
	else
		ddps_ipoib_arp_send(f, DDPS_IPOIB_ARP_REQUEST, none, ip, NULL);
}

static struct ddps_ipoib_dup *find_dup(struct ddps_ipoib_if *f, bool v6, const uint8_t *ip)
{
	for (unsigned i = 0; i < DDPS_IPOIB_IF_CONFLICTS; i++) {
		struct ddps_ipoib_dup *d = &f->dup[i];

		if (d->used && d->c.ip6 == v6 && !memcmp(d->c.ip, ip, v6 ? 16 : 4))
			return d;
	}
	return NULL;
}

/* Nobody has answered in time: it is this host's. */
static void hold_own(struct ddps_ipoib_if *f, struct ddps_ipoib_claim *c, bool v6,
		     const uint8_t *ip)
{
	struct ddps_ipoib_dup *d = find_dup(f, v6, ip);

	c->held = true;
	c->sent = 0;
	if (d)
		d->used = false;
}

static void run_claim(struct ddps_ipoib_if *f, struct ddps_ipoib_claim *c, bool v6,
		      const uint8_t *ip)
{
	const uint64_t late = f->now - c->due, unit = f->cfg.probe_ns;
	const unsigned probes = v6 ? PROBES_V6 : PROBES_V4;

	if (!c->held && c->sent && late >= unit) { /* an answer may have been missed */
		begin_claim(f, c);
		return;
	}
	if (!c->held && c->sent < probes) {
		c->sent++;
		if (c->sent < probes)
			set_claim_due(c, f->now + unit + draw_own_wait(f));
		else
			set_claim_due(c, f->now + (v6 ? unit : 2 * unit));
		send_own_probe(f, v6, ip);
		return;
	}
	if (!c->held)
		hold_own(f, c, v6, ip);
	c->timed = ++c->sent < ANNOUNCEMENTS;
	c->due = f->now + 2 * unit;
	ddps_ipoib_own_announce(f, v6, ip);
}

/* A conflict that lasts is asked about; one that nobody answers for is over. */
static void run_dup(struct ddps_ipoib_if *f, struct ddps_ipoib_dup *d)
{
	if (d->asked == ASKED_MAX || !ddps_ipoib_is_held(f, d->c.ip6, d->c.ip)) {
		d->used = false;
		return;
	}
	d->asked++;
	d->due = f->now + ASK_EVERY * f->cfg.probe_ns;
	send_own_probe(f, d->c.ip6, d->c.ip);
}

void ddps_ipoib_own_tick(struct ddps_ipoib_if *f)
{
	struct ddps_ipoib_claim *c;
	const uint8_t *ip;
	bool v6;

	if (f->state != DDPS_IPOIB_IF_UP || f->now < f->own_due)
		return;
	for (unsigned i = 0; i < DDPS_IPOIB_CLAIMS; i++) {
		c = ddps_ipoib_own_at(f, i, &v6, &ip);
		if (c && c->timed && c->due <= f->now)
			run_claim(f, c, v6, ip);
	}
	for (unsigned i = 0; i < DDPS_IPOIB_IF_CONFLICTS; i++)
		if (f->dup[i].used && !f->dup[i].c.given_up && f->dup[i].due <= f->now)
			run_dup(f, &f->dup[i]);
	ddps_ipoib_own_weigh(f);
}

/* The record of an address, else a free one, else that of which nothing was heard for longest. */
static struct ddps_ipoib_dup *place_dup(struct ddps_ipoib_if *f, bool v6, const uint8_t *ip)
{
	struct ddps_ipoib_dup *d = find_dup(f, v6, ip);

	if (d)
		return d;
	d = &f->dup[0];
	for (unsigned i = 0; i < DDPS_IPOIB_IF_CONFLICTS && d->used; i++)
		if (!f->dup[i].used || f->dup[i].c.at < d->c.at)
			d = &f->dup[i];
	*d = (struct ddps_ipoib_dup){ .used = true, .c = { .ip6 = v6, .since = f->now } };
	memcpy(d->c.ip, ip, v6 ? 16 : 4);
	return d;
}

/* One node that has another queue pair now is no other node. */
bool ddps_ipoib_dup_in(struct ddps_ipoib_if *f, bool v6, const uint8_t *ip,
		       const struct ddps_ipoib_lladdr *other, bool wants)
{
	struct ddps_ipoib_claim *claim = ddps_ipoib_own_claim(f, v6, ip);
	struct ddps_ipoib_dup *d;

	if (!claim || !ddps_ipoib_serves(f, v6) ||
	    !memcmp(other->gid, f->cfg.me.addr.gid, sizeof(other->gid)))
		return false;
	d = place_dup(f, v6, ip);
	d->c.other = *other;
	d->c.at = f->now;
	d->c.given_up = !claim->held; /* RFC 5227 2.1.1, RFC 4862 5.4.3 and 5.4.4 */
	d->asked = 0;
	d->due = f->now + ASK_EVERY * f->cfg.probe_ns;
	f->stats.ip_conflict++;
	if (d->c.given_up) {
		(void)ddps_ipoib_if_address(f, v6, d->c.ip, 0, false, f->now);
	} else if (!wants && claim->defend_at <= f->now) { /* RFC 5227 2.4 (c) */
		claim->defend_at = f->now + DEFEND_NS;
		ddps_ipoib_own_announce(f, v6, ip);
	}
	ddps_ipoib_own_weigh(f);
	return true;
}

int ddps_ipoib_if_conflict(const struct ddps_ipoib_if *f, unsigned nr,
			   struct ddps_ipoib_if_conflict *c)
{
	if (nr >= DDPS_IPOIB_IF_CONFLICTS)
		return -1;
	*c = f->dup[nr].c;
	return f->dup[nr].used;
}

int ddps_ipoib_if_addr_info(const struct ddps_ipoib_if *f, unsigned nr,
			    struct ddps_ipoib_if_addr_info *info)
{
	const struct ddps_ipoib_claim *c;
	const uint8_t *ip;
	bool v6;

	if (nr >= DDPS_IPOIB_CLAIMS)
		return -1;
	c = ddps_ipoib_own_at((struct ddps_ipoib_if *)(uintptr_t)f, nr, &v6, &ip);
	*info = (struct ddps_ipoib_if_addr_info){ .ip6 = v6, .held = c && c->held };
	if (c)
		memcpy(info->ip, ip, v6 ? 16 : 4);
	return c != NULL;
}

void ddps_ipoib_if_missed(struct ddps_ipoib_if *f, uint64_t for_ns, uint64_t now)
{
	f->now = now;
	if (f->state == DDPS_IPOIB_IF_UP)
		resume_own(f, for_ns);
	ddps_ipoib_check(f);
}
