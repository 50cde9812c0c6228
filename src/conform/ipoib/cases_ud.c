/* SPDX-License-Identifier: BSD-2-Clause */
/* Datagrams (RFC 4391 sections 6 and 7, RFC 4755 section 7). */
#include "conform/ipoib/peer.h"
#include <string.h>

static void check_ud_echo(struct ci *ci)
{
	struct ci_reply r;

	ci_meet(ci, 0);
	ci_ping_ud(ci, 84, &r);
	CI_CHECK(ci, r.len == 84 && r.pieces == 1, "%zu octets in %u pieces", r.len, r.pieces);
	CI_CHECK(ci, cf_get32(ci->at->b) == CI_IP4 << 16, "encapsulation header %s",
		 cf_hex(ci->at->b, 4));
	ci_quiet(ci); /* and nobody connects */
}

/* Around each multiple of four, and the largest. */
static void check_ud_sizes(struct ci *ci)
{
	size_t max = ci->mtu - CI_ENCAP;
	struct ci_reply r;

	ci_meet(ci, 0);
	for (size_t n = 28; n <= max; n = n == 36 ? max - 5 : n + 1) {
		ci_ping_ud(ci, n, &r);
		CI_CHECK(ci, r.len == n, "%zu octets, not %zu", r.len, n);
	}
}

static void mtu_2044(struct ci *ci)
{
	struct ci_reply r;

	if (ci->mtu < 2048)
		ci_skip(ci, "the link's MTU is %u", ci->mtu);
	ci_meet(ci, 0);
	ci_ping_ud(ci, 2044, &r);
	CI_CHECK(ci, r.pieces == 1 && r.len == 2044, "%zu octets in %u pieces", r.len, r.pieces);
}

static void check_ud_fragments(struct ci *ci)
{
	static const size_t more[] = { 1, 2, 3000 };
	struct ci_reply r;

	ci_meet(ci, 0);
	for (unsigned i = 0; i < sizeof more / sizeof *more; i++) {
		ci_ping_ud(ci, ci->mtu - CI_ENCAP + more[i], &r);
		CI_CHECK(ci, r.pieces > 1, "in %u pieces", r.pieces);
		CI_CHECK(ci, r.largest <= ci->mtu, "a datagram of %zu octets on a link of %u",
			 r.largest, ci->mtu);
	}
}

static void check_ud_reserved(struct ci *ci)
{
	struct ci_reply r;
	size_t n;

	ci_meet(ci, 0);
	n = ci_echo(ci, ci->frame, 84);
	ci->frame[2] = 0xff;
	ci->frame[3] = 0xff;
	ci_ud_send(ci, ci->frame, n);
	ci_want_reply(ci, ci->seq, &r);
}

static void check_ud_bad_frames(struct ci *ci)
{
	size_t n;

	ci_meet(ci, 0);
	n = ci_echo(ci, ci->frame, 84);
	for (size_t k = 0; k < 32; k++)
		ci_ud_send(ci, ci->frame, k);
	cf_put16(ci->frame, 0x1234);
	ci_ud_send(ci, ci->frame, n);
	cf_put16(ci->frame, CI_IP6); /* with an IPv4 packet */
	ci_ud_send(ci, ci->frame, n);
	cf_put16(ci->frame, CI_IP4);
	ci->frame[CI_ENCAP + 3] += 4; /* longer than it is */
	ci_ud_send(ci, ci->frame, n);
	ci_ud_quiet(ci);
}

/* The ARP request of the target that an echo from an unknown address brings about. */
static void asks_group(struct ci *ci)
{
	uint64_t until = ci_limit(ci, CI_PART_LINK);
	struct ci_ev *e;
	unsigned tries = 0;

	while (tries++ < 5) {
		uint64_t next = cf_now() + (until - cf_now()) / 5;
		size_t n = ci_echo_from(ci, ci->frame, 84, ci_stranger(ci));

		ci_ud_send(ci, ci->frame, n);
		while ((e = ci_await(ci, CI_EV_FRAME | CI_EV_MSG, next))) {
			const uint8_t *a = e->b + CI_ENCAP;

			if (e->len < 60 || cf_get16(e->b) != CI_ARP || cf_get16(a + 6) != 1 ||
			    cf_get32(a + 52) != ci_stranger(ci))
				continue;
			CI_CHECK(ci, e->kind == CI_EV_FRAME, "a broadcast on a connection");
			CI_CHECK(ci, e->mlid == ci->group[0].mlid, "it goes to MLID %04x", e->mlid);
			CI_CHECK(ci, !memcmp(a + 8, ci->target.lla, CI_LLA), "from %s",
				 cf_hex(a + 8, CI_LLA));
			CI_CHECK(ci, e->src_qpn == ci->target.qpn, "from queue pair %06x",
				 e->src_qpn);
			return;
		}
	}
	ci_fail(ci, "no ARP request to the broadcast group");
}

static void check_ud_broadcast(struct ci *ci)
{
	ci_meet(ci, 0);
	asks_group(ci);
}

static void broadcast_connected(struct ci *ci)
{
	ci_meet(ci, CI_RC_FLAG);
	ci->accept = true;
	ci_connect(ci, true);
	asks_group(ci);
}

const struct ci_case ci_cases_ud[] = {
	{ "ud-echo", "4391-6-1 4391-6-4 4755-4-1 4755-4-2 4755-3.1-5 4755-3.1-12 4392-4-2",
	  "an echo to and from a node that takes no connections", 0, check_ud_echo },
	{ "ud-sizes", "4391-7-2 4755-5-2", "packets of all pads, up to the link's MTU", 0,
	  check_ud_sizes },
	{ "ud-2044", "4391-7-1 4391-7-3 4755-5-2", "an IP packet of 2044 octets", 0, mtu_2044 },
	{ "ud-fragments", "4755-7.2-1 4755-7-1", "larger ones come in fragments that fit the link",
	  0, check_ud_fragments },
	{ "ud-reserved", "4391-6-3", "reserved octets of the encapsulation header mean nothing", 0,
	  check_ud_reserved },
	{ "ud-bad-frames", "4391-6-4 4391-6-5 4755-8-1",
	  "short frames, other types and wrong lengths are dropped", 0, check_ud_bad_frames },
	{ "ud-broadcast", "4755-3-1 4755-2.1-1 4755-7-3 4391-4-6",
	  "ARP requests go to the broadcast group", 0, check_ud_broadcast },
	{ "ud-broadcast-connected", "4755-2.1-1 4755-7-3 4755-2.2-1",
	  "also with a connection to whoever is asked for", 0, broadcast_connected },
	{ 0 },
};
