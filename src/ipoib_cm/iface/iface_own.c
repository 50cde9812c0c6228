/* SPDX-License-Identifier: BSD-2-Clause */
/* Addresses of this host: those of the configuration, and those that come and go. */
#include <string.h>
#include "ipoib_cm/iface/iface_in.h"
#include "ipoib_cm/wire/wire.h"

#define GROUPS (2 + DDPS_IPOIB_IF_IP6_MAX + DDPS_IPOIB_IF_MORE)

static const uint8_t none[16];

static size_t get_ip_size(bool v6)
{
	return v6 ? 16 : 4;
}

/* Of the configuration: its place in f->gone; 0: it is none. */
static unsigned configured(const struct ddps_ipoib_if *f, bool v6, const uint8_t *ip)
{
	if (!v6)
		return f->cfg.has_ip4 && !memcmp(f->cfg.ip4, ip, 4);
	for (unsigned i = 0; i < f->n_ip6; i++)
		if (!memcmp(f->cfg.ip6[i], ip, 16))
			return 2u << i;
	return 0;
}

static struct ddps_ipoib_more *find_more(struct ddps_ipoib_if *f, bool v6, const uint8_t *ip)
{
	for (unsigned i = 0; i < f->n_more; i++)
		if (f->more[i].ip.v6 == v6 && !memcmp(f->more[i].ip.a, ip, get_ip_size(v6)))
			return &f->more[i];
	return NULL;
}

struct ddps_ipoib_claim *ddps_ipoib_own_claim(struct ddps_ipoib_if *f, bool v6, const uint8_t *ip)
{
	struct ddps_ipoib_more *m = find_more(f, v6, ip);
	const unsigned at = configured(f, v6, ip);

	if (m)
		return &m->claim;
	for (unsigned i = 0; i < 1 + DDPS_IPOIB_IF_IP6_MAX; i++)
		if (at & ~f->gone & 1u << i)
			return &f->claim[i];
	return NULL;
}

struct ddps_ipoib_claim *ddps_ipoib_own_at(struct ddps_ipoib_if *f, unsigned i, bool *v6,
					   const uint8_t **ip)
{
	struct ddps_ipoib_more *m;

	*v6 = i > 0;
	if (i <= DDPS_IPOIB_IF_IP6_MAX) {
		*ip = i ? f->cfg.ip6[i - 1] : f->cfg.ip4;
		return (i ? i <= f->cfg.n_ip6 : f->cfg.has_ip4) && !(f->gone & 1u << i)
			       ? &f->claim[i]
			       : NULL;
	}
	i -= 1 + DDPS_IPOIB_IF_IP6_MAX;
	if (i >= f->n_more)
		return NULL;
	m = &f->more[i];
	*v6 = m->ip.v6;
	*ip = m->ip.a;
	return *v6 && !ddps_ipoib_serves(f, true) ? NULL : &m->claim;
}

bool ddps_ipoib_serves(const struct ddps_ipoib_if *f, bool v6)
{
	if (v6 ? f->cfg.n_ip6 != 0 : f->cfg.has_ip4)
		return true;
	if (v6 && f->ud_mtu < DDPS_IPOIB_MTU_MIN_V6)
		return false;
	for (unsigned i = 0; i < f->n_more; i++)
		if (f->more[i].ip.v6 == v6)
			return true;
	return false;
}

bool ddps_ipoib_is_own(const struct ddps_ipoib_if *f, bool v6, const uint8_t *ip)
{
	const unsigned at = configured(f, v6, ip);

	if (!ddps_ipoib_serves(f, v6))
		return false;
	if (at && !(f->gone & at))
		return true;
	for (unsigned i = 0; i < f->n_more; i++)
		if (f->more[i].ip.v6 == v6 && !memcmp(f->more[i].ip.a, ip, get_ip_size(v6)))
			return true;
	return false;
}

bool ddps_ipoib_is_held(struct ddps_ipoib_if *f, bool v6, const uint8_t *ip)
{
	const struct ddps_ipoib_claim *c = ddps_ipoib_own_claim(f, v6, ip);

	return c && c->held && ddps_ipoib_is_own(f, v6, ip);
}

static bool is_ip_link_local(const uint8_t ip[16])
{
	return ip[0] == 0xfe && (ip[1] & 0xc0) == 0x80;
}

const uint8_t *ddps_ipoib_own_for(const struct ddps_ipoib_if *f, bool v6, const uint8_t *ip)
{
	const uint8_t *any = none;

	for (unsigned i = 0; i < (v6 ? f->cfg.n_ip6 : f->cfg.has_ip4); i++) {
		const uint8_t *own = v6 ? f->cfg.ip6[i] : f->cfg.ip4;

		if (f->gone & (v6 ? 2u << i : 1) || !f->claim[v6 ? 1 + i : 0].held)
			continue;
		if (!v6 || is_ip_link_local(own) == is_ip_link_local(ip))
			return own;
		any = any == none ? own : any;
	}
	for (unsigned i = 0; i < f->n_more; i++) {
		const uint8_t *own = f->more[i].ip.a;

		if (f->more[i].ip.v6 != v6 || !f->more[i].claim.held)
			continue;
		if (!v6 || is_ip_link_local(own) == is_ip_link_local(ip))
			return own;
		any = any == none ? own : any;
	}
	return any;
}

/* ---- the groups other than the broadcast group that every host is in ---- */

static void make_own_solicited_mgid(const struct ddps_ipoib_if *f, const uint8_t *own,
				    uint8_t mgid[DDPS_IPOIB_GID_LEN])
{
	uint8_t ip[16] = { 0xff, 0x02, [11] = 1, 0xff };

	memcpy(ip + 13, own + 13, 3);
	ddps_ipoib_mgid_ipv6(mgid, ip, f->cfg.me.pkey, f->cfg.scope);
}

static unsigned own_groups(const struct ddps_ipoib_if *f, uint8_t mgid[GROUPS][DDPS_IPOIB_GID_LEN])
{
	static const uint8_t all4[4] = { 224, 0, 0, 1 }, all6[16] = { 0xff, 0x02, [15] = 1 };
	const bool v6 = ddps_ipoib_serves(f, true);
	unsigned n = 0;

	if (ddps_ipoib_serves(f, false))
		ddps_ipoib_mgid_ipv4(mgid[n++], all4, f->cfg.me.pkey, f->cfg.scope);
	if (v6)
		ddps_ipoib_mgid_ipv6(mgid[n++], all6, f->cfg.me.pkey, f->cfg.scope);
	for (unsigned i = 0; v6 && i < f->cfg.n_ip6; i++)
		if (!(f->gone & 2u << i))
			make_own_solicited_mgid(f, f->cfg.ip6[i], mgid[n++]);
	for (unsigned i = 0; v6 && i < f->n_more; i++)
		if (f->more[i].ip.v6)
			make_own_solicited_mgid(f, f->more[i].ip.a, mgid[n++]);
	return n;
}

static bool among(uint8_t mgid[GROUPS][DDPS_IPOIB_GID_LEN], unsigned n, const uint8_t *one)
{
	while (n-- > 0)
		if (!memcmp(mgid[n], one, DDPS_IPOIB_GID_LEN))
			return true;
	return false;
}

bool ddps_ipoib_is_own_group(const struct ddps_ipoib_if *f, const uint8_t *mgid)
{
	uint8_t own[GROUPS][DDPS_IPOIB_GID_LEN];

	return among(own, own_groups(f, own), mgid) ||
	       !memcmp(f->broadcast, mgid, DDPS_IPOIB_GID_LEN);
}

/* The QPN is new, and others may have an old one (4391-9.4-1). */
void ddps_ipoib_own_announce(struct ddps_ipoib_if *f, bool v6, const uint8_t *ip)
{
	if (v6 && ddps_ipoib_serves(f, true))
		ddps_ipoib_na_send(f, ip, NULL, NULL);
	else if (!v6)
		ddps_ipoib_arp_send(f, DDPS_IPOIB_ARP_REQUEST, ip, ip, NULL);
}

void ddps_ipoib_own_begin(struct ddps_ipoib_if *f)
{
	uint8_t mgid[GROUPS][DDPS_IPOIB_GID_LEN];
	const unsigned n = own_groups(f, mgid);

	for (unsigned i = 0; i < n; i++)
		f->stats.join_failed += f->port->ops->join(f->port, mgid[i]) != 0;
	ddps_ipoib_groups(f, true);
	ddps_ipoib_own_begin_claims(f);
}

void ddps_ipoib_own_end(struct ddps_ipoib_if *f)
{
	uint8_t mgid[GROUPS][DDPS_IPOIB_GID_LEN];
	const unsigned n = own_groups(f, mgid);

	ddps_ipoib_groups(f, false);
	for (unsigned i = 0; i < n; i++)
		f->port->ops->leave(f->port, mgid[i]); /* [4391-10-10] */
}

/* ---- what comes and goes ---- */

/* From those that it was in to those of what it has now. */
static void change_own_groups(struct ddps_ipoib_if *f, uint8_t was[GROUPS][DDPS_IPOIB_GID_LEN],
			      unsigned n_was)
{
	uint8_t is[GROUPS][DDPS_IPOIB_GID_LEN];
	const unsigned n_is = own_groups(f, is);

	for (unsigned i = 0; i < n_is; i++)
		if (!among(was, n_was, is[i]))
			f->stats.join_failed += f->port->ops->join(f->port, is[i]) != 0;
	for (unsigned i = 0; i < n_was; i++)
		if (!among(is, n_is, was[i]) && !ddps_ipoib_listens(f, was[i]))
			f->port->ops->leave(f->port, was[i]);
}

void ddps_ipoib_own_fit(struct ddps_ipoib_if *f, uint32_t ud_mtu, unsigned n_ip6)
{
	uint8_t was[GROUPS][DDPS_IPOIB_GID_LEN];
	const bool had = ddps_ipoib_serves(f, true);
	const unsigned n_was = own_groups(f, was);
	const uint8_t *ip;
	bool v6;

	f->ud_mtu = ud_mtu;
	f->cfg.n_ip6 = n_ip6;
	if (f->state != DDPS_IPOIB_IF_UP || had == ddps_ipoib_serves(f, true))
		return;
	change_own_groups(f, was, n_was);
	for (unsigned i = 0; !had && i < DDPS_IPOIB_CLAIMS; i++)
		if (ddps_ipoib_own_at(f, i, &v6, &ip) && v6)
			ddps_ipoib_own_probe(f, true, ip);
	ddps_ipoib_own_weigh(f);
}

static int add_own_ip(struct ddps_ipoib_if *f, const struct ddps_ipoib_more *m)
{
	const unsigned at = configured(f, m->ip.v6, m->ip.a);
	struct ddps_ipoib_more *known = find_more(f, m->ip.v6, m->ip.a);

	if (at) {
		f->gone &= ~at;
	} else if (known) {
		known->prefix = m->prefix;
	} else {
		if (f->n_more == DDPS_IPOIB_IF_MORE)
			return DDPS_E_LIMIT;
		f->more[f->n_more++] = *m;
	}
	return 0;
}

static void take_away(struct ddps_ipoib_if *f, bool v6, const uint8_t *ip)
{
	struct ddps_ipoib_more *m = find_more(f, v6, ip);

	f->gone |= configured(f, v6, ip);
	for (unsigned i = 0; i < 1 + DDPS_IPOIB_IF_IP6_MAX; i++)
		if (f->gone & 1u << i)
			f->claim[i] = (struct ddps_ipoib_claim){ 0 };
	if (m)
		*m = f->more[--f->n_more];
}

int ddps_ipoib_if_address(struct ddps_ipoib_if *f, bool ip6, const uint8_t *ip, unsigned prefix,
			  bool has, uint64_t now)
{
	uint8_t was[GROUPS][DDPS_IPOIB_GID_LEN];
	const bool had = ddps_ipoib_is_own(f, ip6, ip);
	struct ddps_ipoib_more m = { .ip.v6 = ip6, .prefix = prefix };
	const unsigned n_was = own_groups(f, was);
	int err = 0;

	f->now = now;
	memcpy(m.ip.a, ip, get_ip_size(ip6));
	if (has)
		err = add_own_ip(f, &m);
	else
		take_away(f, ip6, ip);
	if (err || f->state != DDPS_IPOIB_IF_UP)
		return err;
	change_own_groups(f, was, n_was);
	if (has && !had)
		ddps_ipoib_own_probe(f, ip6, ip);
	ddps_ipoib_own_weigh(f);
	ddps_ipoib_check(f);
	return 0;
}
