/* SPDX-License-Identifier: BSD-2-Clause */
/* Address resolution (RFC 4391 section 9, RFC 4755 section 3.1), and what of a packet is checked. */
#include "conform/ipoib/peer.h"
#include <string.h>

#define ARP 60u

/* A request under an address at which no answer is due. */
static size_t make_bad_arp(const struct ci *ci, uint8_t *b)
{
	return ci_arp(ci, b, 1, ci->me.ip, ci->plan.target);
}

static const uint8_t *expect_arp_reply(struct ci *ci)
{
	const uint8_t *b;

	ci_due(ci, "an ARP reply");
	b = ci_arp_reply(ci, ci->me.ip, ci_limit(ci, CI_PART_LINK), false);
	CI_CHECK(ci, b, "no answer to an ARP request");
	ci_got(ci);
	return b;
}

static void reply(struct ci *ci)
{
	uint8_t b[ARP];
	const uint8_t *r, *a;

	ci_meet(ci, 0);
	ci_ud_send(ci, b, make_bad_arp(ci, b));
	r = expect_arp_reply(ci);
	a = r + CI_ENCAP;
	CI_CHECK(ci, ci->at->len == ARP, "%zu octets", ci->at->len);
	CI_CHECK(ci, cf_get32(r) == CI_ARP << 16, "encapsulation header %s", cf_hex(r, 4));
	CI_CHECK(ci, cf_get16(a) == 32 && cf_get16(a + 2) == CI_IP4 && a[4] == CI_LLA && a[5] == 4,
		 "types and lengths %s", cf_hex(a, 6));
	CI_CHECK(ci, !memcmp(a + 32, ci->me.lla, CI_LLA), "it is for %s", cf_hex(a + 32, CI_LLA));
	CI_CHECK(ci, ci_get24(a + 9) == ci->at->src_qpn,
		 "queue pair %06x in the address, sent by %06x", ci_get24(a + 9), ci->at->src_qpn);
	CI_CHECK(ci, a[12], "GID %s", cf_hex(a + 12, CI_GID));
}

static void unicast(struct ci *ci)
{
	uint8_t b[ARP];

	ci_meet(ci, 0);
	CI_CHECK(ci, !ci->at->mlid, "the answer goes to a group");
	ci_ud_send(ci, b, make_bad_arp(ci, b));
	expect_arp_reply(ci);
	CI_CHECK(ci, !ci->at->mlid, "the answer to a unicast request goes to a group");
}

static void check_arp_flags(struct ci *ci)
{
	ci_meet(ci, CI_RC_FLAG);
	CI_CHECK(ci, !(ci->target.lla[0] & 0x3f), "flags %02x", ci->target.lla[0]);
}

static void check_arp_gid(struct ci *ci)
{
	static const uint8_t none[8];

	ci_meet(ci, 0);
	CI_CHECK(ci, ci->target.lla[4] == 0xfe && ci->target.lla[5] == 0x80, "GID %s",
		 cf_hex(ci->target.lla + 4, CI_GID));
	CI_CHECK(ci, memcmp(ci->target.lla + 12, none, 8) != 0, "a GUID of 0");
}

/* It is like 0: no connection is asked for, and echoes are answered. */
static void reserved_flags(struct ci *ci)
{
	struct ci_reply r;

	ci_meet(ci, 0x3f);
	ci_ping_ud(ci, 100, &r);
	ci_quiet(ci);
}

static void reserved_encap(struct ci *ci)
{
	uint8_t b[ARP];
	size_t n;

	ci_meet(ci, 0);
	n = make_bad_arp(ci, b);
	b[2] = 0xa5;
	b[3] = 0x5a;
	ci_ud_send(ci, b, n);
	expect_arp_reply(ci);
}

static void other_address(struct ci *ci)
{
	uint8_t b[ARP];

	ci_meet(ci, 0);
	ci_ud_group(ci, &ci->group[0], b, ci_arp(ci, b, 1, ci->me.ip, ci_stranger(ci)));
	ci_ud_quiet(ci);
}

static void check_arp_truncated(struct ci *ci)
{
	uint8_t b[ARP];

	ci_meet(ci, 0);
	make_bad_arp(ci, b);
	for (size_t n = CI_ENCAP; n < ARP; n++)
		ci_ud_send(ci, b, n);
	ci_ud_quiet(ci);
}

static void fields(struct ci *ci)
{
	/* an octet of ARP and what it becomes */
	static const uint8_t bad[][2] = { { 1, 1 },  { 2, 0x86 }, { 4, 6 }, { 4, 21 },
					  { 5, 16 }, { 7, 0 },	  { 7, 3 }, { 7, 8 } };
	uint8_t b[ARP];

	ci_meet(ci, 0);
	for (unsigned i = 0; i < sizeof bad / sizeof *bad; i++) {
		size_t n = make_bad_arp(ci, b);

		b[CI_ENCAP + bad[i][0]] = bad[i][1];
		ci_ud_send(ci, b, n);
	}
	ci_ud_quiet(ci);
}

/* ---- what of a packet is checked before anybody looks into it ---- */

enum wrong { QKEY, QKEY_0, PKEY, PKEY_0, TVER, ICRC, NWRONG };

static void send_wrong_arp(struct ci *ci, enum wrong w)
{
	uint8_t b[ARP];
	struct ci_pkt p;

	ci_meet(ci, 0);
	p = ci_ud(ci, b, make_bad_arp(ci, b));
	switch (w) {
	case QKEY:
		p.qkey ^= 1;
		break;
	case QKEY_0:
		p.qkey = 0;
		break;
	case PKEY:
		p.pkey ^= 1;
		break;
	case PKEY_0:
		p.pkey = 0x8000;
		break;
	case TVER:
		p.flags = 1;
		break;
	default:
		p.spoil = 0x00010000;
	}
	ci_packet(ci, ci->target.lid, &p);
	ci_ud_quiet(ci);
}

static void qkey(struct ci *ci)
{
	send_wrong_arp(ci, QKEY);
	send_wrong_arp(ci, QKEY_0);
}

static void pkey(struct ci *ci)
{
	send_wrong_arp(ci, PKEY);
	send_wrong_arp(ci, PKEY_0);
}

CI_CALL(tver, send_wrong_arp(ci, TVER));
CI_CALL(bad_icrc, send_wrong_arp(ci, ICRC));

static void check_arp_limited_member(struct ci *ci)
{
	uint8_t b[ARP];
	struct ci_pkt p;

	ci_meet(ci, 0);
	p = ci_ud(ci, b, make_bad_arp(ci, b));
	p.pkey &= 0x7fff;
	ci_packet(ci, ci->target.lid, &p);
	expect_arp_reply(ci);
}

/* SE, M, FECN, BECN and the reserved octet say nothing here; AckReq nothing on datagrams. */
static void irrelevant(struct ci *ci)
{
	uint8_t b[ARP];
	struct ci_pkt p;

	ci_meet(ci, 0);
	p = ci_ud(ci, b, make_bad_arp(ci, b));
	p.flags = 0xc0;
	p.reserved = 0xff;
	p.ack_req = true;
	p.psn = 0xffffff;
	ci_packet(ci, ci->target.lid, &p);
	expect_arp_reply(ci);
}

/* ---- addresses that change, and forged ones ---- */

static void check_arp_moved(struct ci *ci)
{
	struct ci_reply r;
	uint32_t old;

	ci_meet(ci, 0);
	ci_ping_ud(ci, 100, &r);
	old = ci->me.qpn;
	if (ci->fab.used) {
		ci_fab_open(ci);
		ci->me.qpn = ci->fab.qpn;
	} else {
		ci->me.qpn += 0x1000;
	}
	ci_put24(ci->me.lla + 1, ci->me.qpn);
	ci_resolve(ci);
	ci_ping_ud(ci, 100, &r);
	CI_CHECK(ci, ci->me.qpn != old, "the same queue pair");
}

static void check_arp_forged(struct ci *ci)
{
	uint8_t b[ARP], good[CI_LLA];

	ci_meet(ci, 0);
	memcpy(good, ci->me.lla, CI_LLA);
	for (unsigned i = 0; i < 5; i++) {
		uint8_t *lla = ci->me.lla;

		memcpy(lla, good, CI_LLA);
		if (i == 0)
			ci_put24(lla + 1, 0);
		else if (i == 1)
			ci_put24(lla + 1, CI_MCAST_QPN);
		else if (i == 2)
			memset(lla + 4, 0, CI_GID);
		else if (i == 3)
			memset(lla + 4, 0xff, CI_GID);
		else
			memcpy(lla, ci->target.lla, CI_LLA);
		ci_ud_group(ci, &ci->group[0], b,
			    ci_arp(ci, b, 1, ci_stranger(ci), ci->plan.target));
	}
	memcpy(ci->me.lla, good, CI_LLA);
	ci_resolve(ci);
}

/* ---- IPv6 ---- */

static void nd(struct ci *ci)
{
	uint8_t b[128];
	uint64_t until;
	struct ci_ev *e;

	ci_meet(ci, 0);
	for (unsigned i = 0; i < 4; i++) {
		ci_ns_send(ci, b, ci_ns(ci, b));
		until = cf_now() + (ci_limit(ci, CI_PART_LINK) - cf_now()) / 4;
		while ((e = ci_await(ci, CI_EV_FRAME, until)))
			if (ci_na_ok(ci, e->b, e->len)) {
				CI_CHECK(ci, !e->mlid, "the answer goes to a group");
				return;
			}
	}
	ci_fail(ci, "no neighbour advertisement");
}

/* [4391-8] the GUID of the GID, its u bit the other way round. */
static void nd_link_local(struct ci *ci)
{
	memset(ci->target.ip6, 0, 8);
	cf_put16(ci->target.ip6, 0xfe80);
	memcpy(ci->target.ip6 + 8, ci->target.lla + 12, 8);
	ci->target.ip6[8] ^= 2;
	nd(ci);
}

static void nd_bad(struct ci *ci)
{
	uint8_t b[128];
	size_t n;

	ci_meet(ci, 0);
	for (unsigned i = 0; i < 4; i++) {
		n = ci_ns(ci, b);
		b[CI_ENCAP + (i == 0 ? 7 : i == 1 ? 42 : i == 2 ? 41 : 65)] ^= i == 3 ? 3 : 0x40;
		ci_ns_send(ci, b, n);
	}
	for (n = ci_ns(ci, b); n-- > CI_ENCAP;)
		ci_ns_send(ci, b, n);
	ci_ud_quiet(ci);
}

const struct ci_case ci_cases_arp[] = {
	{ "arp-reply", "4391-9.2-1 4391-6-1 4391-6-2 4391-6-4 4391-4-1 4755-3.1-8 4755-3.1-10",
	  "every field of an ARP reply, and the queue pair that sends it", 0, reply },
	{ "arp-unicast", "4755-3.1-11 4755-3-2", "replies are unicast datagrams", 0, unicast },
	{ "arp-flags", "4755-3.1-1 4755-3.1-2 4755-9-2 4391-14-2",
	  "flags but those of RC and UC are 0", 0, check_arp_flags },
	{ "arp-gid", "4391-9.1.1-4", "the address has a GID of the subnet", 0, check_arp_gid },
	{ "arp-reserved-flags", "4755-3.1-3 4755-3.1-6 4755-3.1-12",
	  "other flags of ours mean nothing", 0, reserved_flags },
	{ "arp-reserved-encap", "4391-6-3 4391-14-2",
	  "reserved octets in front of ARP mean nothing", 0, reserved_encap },
	{ "arp-other-address", "4391-9.2-1", "a node that is not asked does not answer", 0,
	  other_address },
	{ "arp-truncated", "4391-9.2-1 4755-8-1", "no part of an ARP request is answered", 0,
	  check_arp_truncated },
	{ "arp-fields", "4391-9.2-1 4755-8-1",
	  "other types, lengths and operations are not answered", 0, fields },
	{ "arp-moved", "4391-9.1.1-3 4755-3.1-8 4391-9.4-1",
	  "datagrams go to the queue pair of the latest address", 0, check_arp_moved },
	{ "arp-forged", "4755-8-1", "addresses that cannot be do no harm", 0, check_arp_forged },
	{ "packet-qkey", "4391-9.1-1 4391-9.1.2-1", "datagrams with another Q_Key are dropped",
	  CI_NEEDS_PACKETS, qkey },
	{ "packet-pkey", "4392-4.1-1", "datagrams with another P_Key are dropped", CI_NEEDS_PACKETS,
	  pkey },
	{ "packet-limited-pkey", "", "a limited member's P_Key is taken (IBA 10.9.3)",
	  CI_NEEDS_PACKETS, check_arp_limited_member },
	{ "packet-version", "", "another transport version is dropped (IBA 9.6.1)",
	  CI_NEEDS_PACKETS, tver },
	{ "packet-icrc", "", "a wrong ICRC is dropped (IBA 9.6.1)", CI_NEEDS_PACKETS, bad_icrc },
	{ "packet-irrelevant", "", "bits that mean nothing on datagrams change nothing (IBA 9.2)",
	  CI_NEEDS_PACKETS, irrelevant },
	{ "nd-advertisement", "4391-9.3-1 4391-9.3-2 4755-3.1-10",
	  "option and address of an answer", CI_NEEDS_IP6, nd },
	{ "nd-link-local", "4391-8-1 4391-8-4", "the link-local address of the port's GUID",
	  CI_NEEDS_IP6, nd_link_local },
	{ "nd-bad", "4391-9.3-1 4755-8-1", "damaged solicitations are not answered", CI_NEEDS_IP6,
	  nd_bad },
	{ 0 },
};
