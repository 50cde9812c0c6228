/* SPDX-License-Identifier: BSD-2-Clause */
/* IPv4 echoes and IPv6 neighbour discovery. */
#include "conform/ipoib/peer.h"
#include <string.h>

#define IP4   20u
#define ICMP  8u
#define IP6   40u
#define TRIES 6

static uint16_t sum16(const uint8_t *p, size_t len, uint32_t s)
{
	for (size_t i = 0; i + 1 < len; i += 2)
		s += cf_get16(p + i);
	if (len & 1)
		s += (uint32_t)p[len - 1] << 8;
	while (s >> 16)
		s = (s & 0xffff) + (s >> 16);
	return (uint16_t)~s;
}

static void put_ip4_header(struct ci *ci, uint8_t *h, size_t len, uint16_t flags, uint32_t from)
{
	memset(h, 0, IP4);
	h[0] = 0x45;
	cf_put16(h + 2, (uint16_t)len);
	cf_put16(h + 4, ci->ip_id);
	cf_put16(h + 6, flags);
	h[8] = 64;
	h[9] = 1;
	cf_put32(h + 12, from);
	cf_put32(h + 16, ci->plan.target);
	cf_put16(h + 10, sum16(h, IP4, 0));
}

size_t ci_echo_from(struct ci *ci, uint8_t *b, size_t ip_len, uint32_t from)
{
	uint8_t *h = b + CI_ENCAP, *icmp = h + IP4;

	cf_put32(b, CI_IP4 << 16);
	ci->seq++;
	ci->ip_id++;
	put_ip4_header(ci, h, ip_len, 0, from);
	cf_fill(icmp + ICMP, ip_len - IP4 - ICMP, ci->seq);
	cf_put32(icmp, 0x08000000);
	cf_put16(icmp + 4, (uint16_t)ci->random);
	cf_put16(icmp + 6, (uint16_t)ci->seq);
	cf_put16(icmp + 2, sum16(icmp, ip_len - IP4, 0));
	return CI_ENCAP + ip_len;
}

size_t ci_echo(struct ci *ci, uint8_t *b, size_t ip_len)
{
	return ci_echo_from(ci, b, ip_len, ci->me.ip);
}

void ci_echo_ud(struct ci *ci, size_t ip_len)
{
	size_t room = (ci->mtu - CI_ENCAP - IP4) / 8 * 8, len = ip_len - IP4;
	uint8_t piece[4096 + CI_ENCAP];

	ci_echo(ci, ci->frame, ip_len);
	if (CI_ENCAP + ip_len <= ci->mtu) {
		ci_ud_send(ci, ci->frame, CI_ENCAP + ip_len);
		return;
	}
	for (size_t off = 0; off < len; off += room) {
		size_t n = len - off < room ? len - off : room;
		uint16_t flags = (uint16_t)(off / 8 | (off + n < len ? 0x2000 : 0));

		cf_put32(piece, CI_IP4 << 16);
		put_ip4_header(ci, piece + CI_ENCAP, IP4 + n, flags, ci->me.ip);
		memcpy(piece + CI_ENCAP + IP4, ci->frame + CI_ENCAP + IP4 + off, n);
		ci_ud_send(ci, piece, CI_ENCAP + IP4 + n);
	}
}

/* Pieces of one IP packet. */
struct pieces {
	uint16_t id;
	bool ours, began;
	size_t got, all;
};

static bool is_echo_answer(const struct ci *ci, const uint8_t *icmp, uint32_t seq)
{
	return !icmp[0] && cf_get16(icmp + 4) == (uint16_t)ci->random &&
	       cf_get16(icmp + 6) == (uint16_t)seq;
}

/* Return: whether the reply is whole with that. */
static bool add_fragment(struct ci *ci, struct pieces *w, uint32_t seq, const struct ci_ev *e,
			 struct ci_reply *r)
{
	const uint8_t *h = e->b + CI_ENCAP, *icmp = h + IP4;
	size_t len = e->len - CI_ENCAP, off;
	uint16_t frag;

	if (e->len < CI_ENCAP + IP4 || cf_get16(e->b) != CI_IP4 || h[0] != 0x45 || h[9] != 1 ||
	    cf_get32(h + 12) != ci->plan.target || cf_get16(h + 2) != len)
		return false;
	frag = cf_get16(h + 6);
	off = (size_t)(frag & 0x1fff) * 8;
	if (!w->began || w->id != cf_get16(h + 4)) {
		*w = (struct pieces){ .began = true, .id = cf_get16(h + 4) };
		*r = (struct ci_reply){ 0 };
	}
	CI_CHECK(ci, !sum16(h, IP4, 0), "an IP header with a wrong checksum: %s", cf_hex(h, IP4));
	if (!off && len >= IP4 + ICMP) {
		w->ours = is_echo_answer(ci, icmp, seq);
		CI_CHECK(ci, !ci->never || !is_echo_answer(ci, icmp, ci->never),
			 "a packet that was repeated is answered");
	}
	w->got += len - IP4;
	if (!(frag & 0x2000))
		w->all = off + len - IP4;
	r->connected = e->kind == CI_EV_MSG;
	r->qp = e->qp;
	r->largest = e->len > r->largest ? e->len : r->largest;
	r->len = IP4 + w->got;
	r->pieces++;
	if (!w->ours || !w->all || w->got < w->all)
		return false;
	if (r->pieces == 1) {
		cf_fill(ci->frame, len - IP4 - ICMP, seq);
		CI_CHECK(ci, !memcmp(ci->frame, icmp + ICMP, len - IP4 - ICMP),
			 "the echo has other data");
	}
	return true;
}

bool ci_replied(struct ci *ci, uint32_t seq, uint64_t until, struct ci_reply *r)
{
	struct pieces w = { 0 };
	struct ci_ev *e;

	*r = (struct ci_reply){ 0 };
	while ((e = ci_await(ci, CI_EV_FRAME | CI_EV_MSG, until)))
		if (add_fragment(ci, &w, seq, e, r)) {
			if (r->connected)
				ci_heard(ci, CI_PART_DATA);
			return true;
		}
	return false;
}

void ci_want_reply(struct ci *ci, uint32_t seq, struct ci_reply *r)
{
	ci_due(ci, "the reply to an echo request, which is what ping sends");
	CI_CHECK(ci, ci_replied(ci, seq, ci_limit(ci, CI_PART_DATA), r), "no answer to an echo");
	ci_got(ci);
}

void ci_ping_ud(struct ci *ci, size_t ip_len, struct ci_reply *r)
{
	ci_due(ci, "the reply to an echo request, which is what ping sends");
	for (unsigned i = 0; i < TRIES; i++) {
		ci_echo_ud(ci, ip_len);
		if (ci_replied(ci, ci->seq, ci_part(ci, CI_PART_LINK, TRIES), r)) {
			ci_got(ci);
			return;
		}
	}
	ci_fail(ci, "no answer to echoes of %zu octets in datagrams", ip_len);
}

/* ---- neighbour discovery (RFC 4861; RFC 4391 9.3) ---- */

static uint16_t sum6(const uint8_t *h, size_t len)
{
	uint32_t s = 58 + (uint32_t)(len - IP6);

	for (unsigned i = 8; i < IP6; i += 2)
		s += cf_get16(h + i);
	return sum16(h + IP6, len - IP6, s);
}

static void solicited(uint8_t group[16], const uint8_t ip[16])
{
	memset(group, 0, 16);
	cf_put16(group, 0xff02);
	group[11] = 1;
	group[12] = 0xff;
	memcpy(group + 13, ip + 13, 3);
}

size_t ci_ns(const struct ci *ci, uint8_t *b)
{
	uint8_t *h = b + CI_ENCAP, *n = h + IP6;

	memset(b, 0, CI_ENCAP + IP6 + 48);
	cf_put32(b, CI_IP6 << 16);
	h[0] = 0x60;
	cf_put16(h + 4, 48);
	h[6] = 58;
	h[7] = 255;
	memcpy(h + 8, ci->me.ip6, 16);
	solicited(h + 24, ci->target.ip6);
	n[0] = 135;
	memcpy(n + 8, ci->target.ip6, 16);
	n[24] = 1; /* source address, 3 * 8 octets, two of zero */
	n[25] = 3;
	memcpy(n + 28, ci->me.lla, CI_LLA);
	cf_put16(n + 2, sum6(h, IP6 + 48));
	return CI_ENCAP + IP6 + 48;
}

void ci_ns_send(struct ci *ci, const uint8_t *b, size_t len)
{
	const struct ci_group *g;
	uint8_t mgid[CI_GID];

	solicited(mgid, ci->target.ip6);
	memcpy(mgid, ci->group[0].mgid, 6);
	cf_put16(mgid + 2, 0x601b);
	if (ci->fab.used) {
		ci_fab_ud(ci, mgid, b, len);
		return;
	}
	g = ci_group(ci, mgid);
	/* without the administration in hand its MLID is not known: the broadcast group's will do */
	ci_ud_group(ci, g ? g : &ci->group[0], b, len);
}

bool ci_na_ok(struct ci *ci, const uint8_t *frame, size_t len)
{
	const uint8_t *h = frame + CI_ENCAP, *n = h + IP6;

	if (len < CI_ENCAP + IP6 + 24 || cf_get16(frame) != CI_IP6 || h[6] != 58 || n[0] != 136 ||
	    memcmp(n + 8, ci->target.ip6, 16) != 0 || memcmp(h + 24, ci->me.ip6, 16) != 0)
		return false;
	CI_CHECK(ci, h[7] == 255, "hop limit %u", h[7]);
	CI_CHECK(ci, !sum6(h, len - CI_ENCAP), "a wrong checksum");
	CI_CHECK(ci, len == CI_ENCAP + IP6 + 48, "%zu octets, one option makes %u", len,
		 CI_ENCAP + IP6 + 48);
	CI_CHECK(ci, n[24] == 2 && n[25] == 3, "option of type %u and length %u", n[24], n[25]);
	CI_CHECK(ci, !n[26] && !n[27], "the option begins with %s, not two octets of zero",
		 cf_hex(n + 26, 2));
	CI_CHECK(ci, !memcmp(n + 28, ci->target.lla, CI_LLA), "address %s, ARP said %s",
		 cf_hex(n + 28, CI_LLA), cf_hex(ci->target.lla, CI_LLA));
	return true;
}
