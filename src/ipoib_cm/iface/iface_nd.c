/* SPDX-License-Identifier: BSD-2-Clause */
/* Address resolution for IPv6: neighbour solicitation and advertisement (RFC 4861 7). */
#include <string.h>
#include "common/bytes.h"
#include "ipoib_cm/iface/iface_in.h"
#include "ipoib_cm/wire/wire.h"

#define IP6_HDR	  40
#define ND_HDR	  24
#define ND_MAX	  (IP6_HDR + ND_HDR + DDPS_IPOIB_ND_LEN)
#define ICMP6	  58
#define ND_HOPS	  255
#define NS	  135
#define NA	  136
#define SOLICITED 0x40000000u
#define OVERRIDE  0x20000000u

static const uint8_t none[16];
static const uint8_t all_nodes[16] = { 0xff, 0x02, [15] = 1 };

static void make_solicited_group(uint8_t group[16], const uint8_t ip[16])
{
	static const uint8_t prefix[13] = { 0xff, 0x02, [11] = 1, 0xff };

	memcpy(group, prefix, sizeof(prefix));
	memcpy(group + sizeof(prefix), ip + sizeof(prefix), 16 - sizeof(prefix));
}

struct nd_out {
	uint8_t type, option; /* 0: none */
	uint32_t flags;
	const uint8_t *src, *dst, *target;
};

static void nd_send(struct ddps_ipoib_if *f, const struct nd_out *o,
		    const struct ddps_ipoib_node *n)
{
	uint8_t p[ND_MAX], mgid[DDPS_IPOIB_GID_LEN] = { 0 };
	const size_t len = o->option ? sizeof(p) : IP6_HDR + ND_HDR;
	struct ddps_wbuf w = ddps_wbuf_init(p, sizeof(p)), c;

	ddps_wbuf_u32(&w, 6u << 28);
	ddps_wbuf_u16(&w, (uint16_t)(len - IP6_HDR));
	ddps_wbuf_u8(&w, ICMP6);
	ddps_wbuf_u8(&w, ND_HOPS);
	ddps_wbuf_bytes(&w, o->src, 16);
	ddps_wbuf_bytes(&w, o->dst, 16);
	ddps_wbuf_u8(&w, o->type);
	ddps_wbuf_u8(&w, 0);
	ddps_wbuf_u16(&w, 0);
	ddps_wbuf_u32(&w, o->flags);
	ddps_wbuf_bytes(&w, o->target, 16);
	if (o->option && ddps_ipoib_nd_encode(w.p, o->option, &f->cfg.me.addr))
		return;
	c = ddps_wbuf_init(p + IP6_HDR + 2, 2);
	ddps_wbuf_u16(&c, ddps_ipoib_cksum6(p, len));
	if (n || !ddps_ipoib_mgid_ipv6(mgid, o->dst, f->cfg.me.pkey, f->cfg.scope))
		(void)ddps_ipoib_tx_ud(f, n, mgid, DDPS_IPOIB_TYPE_IPV6, p, len);
}

void ddps_ipoib_ns_send(struct ddps_ipoib_if *f, const uint8_t target[16],
			const struct ddps_ipoib_node *n)
{
	uint8_t group[16];
	struct nd_out o = { .type = NS, .option = DDPS_IPOIB_ND_SOURCE, .target = target };

	make_solicited_group(group, target);
	o.src = ddps_ipoib_own_for(f, true, target);
	o.dst = n ? target : group;
	nd_send(f, &o, n);
}

void ddps_ipoib_dad_send(struct ddps_ipoib_if *f, const uint8_t own[16])
{
	uint8_t group[16];
	const struct nd_out o = { .type = NS, .src = none, .dst = group, .target = own };

	make_solicited_group(group, own);
	nd_send(f, &o, NULL);
}

void ddps_ipoib_na_send(struct ddps_ipoib_if *f, const uint8_t own[16], const uint8_t *to,
			const struct ddps_ipoib_node *n)
{
	struct nd_out o = { .type = NA,
			    .option = DDPS_IPOIB_ND_TARGET,
			    .flags = OVERRIDE | (to ? SOLICITED : 0),
			    .src = own,
			    .dst = to ? to : all_nodes,
			    .target = own };

	nd_send(f, &o, n);
}

/* Somebody asks whether it can have @target; which node, only the datagram says. */
static void dad_in(struct ddps_ipoib_if *f, const uint8_t *target)
{
	struct ddps_ipoib_lladdr a = { .qpn = f->from_qpn };

	if (!f->from_gid)
		return;
	memcpy(a.gid, f->from_gid, sizeof(a.gid));
	(void)ddps_ipoib_dup_in(f, true, target, &a, true);
}

static void ns_in(struct ddps_ipoib_if *f, const uint8_t *p, size_t len)
{
	const uint8_t *src = p + 8, *target = p + IP6_HDR + 8;
	struct ddps_ipoib_lladdr a;
	struct ddps_ipoib_ip ip = { .v6 = true };
	struct ddps_ipoib_nbr *b;
	bool dad = memcmp(src, none, 16) == 0;
	uint8_t group[16];
	int has = ddps_ipoib_nd_find(&a, DDPS_IPOIB_ND_SOURCE, p + IP6_HDR + ND_HDR,
				     len - IP6_HDR - ND_HDR);

	if (dad)
		make_solicited_group(group, target);
	if (has < 0 || (has && (dad || !ddps_ipoib_lladdr_ok(f, &a))) || src[0] == 0xff ||
	    (dad && memcmp(p + 24, group, sizeof(group)) != 0)) { /* [4861-7.1.1-7] */
		f->stats.rx_bad_nd++;
		return;
	}
	if (has && ddps_ipoib_is_own(f, true, src)) {
		if (!ddps_ipoib_dup_in(f, true, src, &a, false))
			f->stats.rx_bad_nd++;
		return;
	}
	if (dad)
		dad_in(f, target);
	if (!ddps_ipoib_is_held(f, true, target))
		return;
	if (dad) {
		f->stats.tx_answer++;
		ddps_ipoib_na_send(f, target, NULL, NULL);
		return;
	}
	memcpy(ip.a, src, 16);
	/* [4861-7.2.4-5] who does not say its address is asked for it */
	b = has ? ddps_ipoib_nbr_learn(f, &ip, &a, true) : ddps_ipoib_nbr_ask(f, &ip);
	if (b)
		ddps_ipoib_nbr_owe(f, b, target);
}

static void na_in(struct ddps_ipoib_if *f, const uint8_t *p, size_t len)
{
	const uint8_t *target = p + IP6_HDR + 8;
	struct ddps_ipoib_lladdr a;
	struct ddps_ipoib_ip ip = { .v6 = true };
	const uint8_t flags = p[IP6_HDR + 4];
	const bool solicited = flags & SOLICITED >> 24, override = flags & OVERRIDE >> 24;
	int has = ddps_ipoib_nd_find(&a, DDPS_IPOIB_ND_TARGET, p + IP6_HDR + ND_HDR,
				     len - IP6_HDR - ND_HDR);

	if (has > 0 && ddps_ipoib_lladdr_cmp(&a, &f->cfg.me.addr) == 0)
		return; /* our own, back from the group */
	if (has > 0 && ddps_ipoib_lladdr_ok(f, &a) && ddps_ipoib_dup_in(f, true, target, &a, false))
		return;
	if (has < 0 || (has && !ddps_ipoib_lladdr_ok(f, &a)) ||
	    ddps_ipoib_is_own(f, true, target) ||
	    (solicited && p[24] == 0xff)) { /* [4861-7.1.2-6] */
		f->stats.rx_bad_nd++;
		return;
	}
	memcpy(ip.a, target, 16);
	ddps_ipoib_nbr_told(f, &ip, has ? &a : NULL, solicited, override);
}

bool ddps_ipoib_nd_in(struct ddps_ipoib_if *f, const uint8_t *p, size_t len)
{
	if (!ddps_ipoib_serves(f, true) || len <= IP6_HDR || p[6] != ICMP6 ||
	    (p[IP6_HDR] != NS && p[IP6_HDR] != NA))
		return false;
	/* RFC 4861 7.1: nothing from beyond the link, nothing damaged */
	if (len < IP6_HDR + ND_HDR || p[7] != ND_HOPS || p[IP6_HDR + 1] || p[IP6_HDR + 8] == 0xff ||
	    ddps_ipoib_cksum6(p, len)) {
		f->stats.rx_bad_nd++;
		return true;
	}
	if (p[IP6_HDR] == NS)
		ns_in(f, p, len);
	else
		na_in(f, p, len);
	return true;
}
