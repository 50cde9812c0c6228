/* SPDX-License-Identifier: BSD-2-Clause */
/* Encapsulation, ARP, Neighbour Discovery, multicast groups, MTU. */
#include "ipoib_cm/wire/wire.h"
#include "ipoib_cm/iface/iface_in.h"
#include "ipoib_net_fixture.h"
#include <arpa/inet.h>
#include <criterion/criterion.h>
#include <ddpsess/ipoib_cm.h>
#include <stdlib.h>
#include <string.h>

static const uint8_t arp_request[60] = {
	0x08, 0x06, 0x00, 0x00, 0x00, 0x20, 0x08, 0x00, 0x14,	     0x04, 0x00, 0x01, 0x80, 0x00,
	0x00, 0x4a, 0xfe, 0x80, 0x00, 0x00, 0x00, 0x00, 0x00,	     0x00, 0x00, 0x02, 0xc9, 0x03,
	0x00, 0x00, 0x10, 0x01, 0x0a, 0x00, 0x00, 0x01, [56] = 0x0a, 0x00, 0x00, 0x02,
};

static const uint8_t nd_option[24] = { 0x01, 0x03, 0,	 0,    0x80, 0, 0,    0x4a,
				       0xfe, 0x80, 0,	 0,    0,    0, 0,    0,
				       0x00, 0x02, 0xc9, 0x03, 0,    0, 0x10, 0x01 };

Test(ipoib_packet, encapsulation_of_each_type,
     .description = "4755-4-1 4755-4-2 4391-6-1 4391-6-2 4391-6-4 4391-4-1")
{
	static const struct {
		uint16_t type;
		uint8_t octets[4];
	} row[] = {
		{ DDPS_IPOIB_TYPE_IPV4, { 0x08, 0x00, 0, 0 } },
		{ DDPS_IPOIB_TYPE_ARP, { 0x08, 0x06, 0, 0 } },
		{ DDPS_IPOIB_TYPE_RARP, { 0x80, 0x35, 0, 0 } },
		{ DDPS_IPOIB_TYPE_IPV6, { 0x86, 0xdd, 0, 0 } },
	};
	uint8_t out[4];

	for (size_t i = 0; i < 4; i++) {
		ddps_ipoib_encap_encode(out, row[i].type);
		cr_expect_arr_eq(out, row[i].octets, 4);
	}
}

Test(ipoib_packet, encapsulation_ignores_its_reserved_octets, .description = "4391-6-3")
{
	static const uint8_t in[] = { 0x86, 0xdd, 0xff, 0xff, 0x60, 1 };
	const uint8_t *packet;
	size_t len;
	uint16_t type;

	cr_assert_eq(ddps_ipoib_encap_decode(&type, &packet, &len, in, sizeof(in)), 0);
	cr_expect_eq(type, DDPS_IPOIB_TYPE_IPV6);
	cr_expect_eq(packet, in + 4);
	cr_expect_eq(len, 2);
	cr_assert_eq(ddps_ipoib_encap_decode(&type, &packet, &len, in, 4), 0);
	cr_expect_eq(len, 0);
	for (size_t n = 0; n < 4; n++) {
		uint8_t *cut = calloc(1, n ? n : 1);

		cr_expect_eq(ddps_ipoib_encap_decode(&type, &packet, &len, cut, n),
			     DDPS_E_TRUNCATED);
		free(cut);
	}
}

Test(ipoib_packet, arp_matches_the_worked_example, .description = "4391-9.2-1 4755-3.1-10 4755-3-1")
{
	static const uint8_t zero[16];
	struct ddps_ipoib_arp arp;
	uint8_t out[60];
	const uint8_t *packet;
	size_t len;
	uint16_t type;

	cr_assert_eq(ddps_ipoib_encap_decode(&type, &packet, &len, arp_request, 60), 0);
	cr_assert_eq(type, DDPS_IPOIB_TYPE_ARP);
	cr_assert_eq(ddps_ipoib_arp_decode(&arp, packet, len), 0);
	cr_expect_eq(arp.op, DDPS_IPOIB_ARP_REQUEST);
	cr_expect_eq(arp.sender.flags, DDPS_IPOIB_RC);
	cr_expect_eq(arp.sender.qpn, 0x4a);
	cr_expect_arr_eq(arp.sender.gid, arp_request + 16, 16);
	cr_expect_arr_eq(arp.sender_ip, "\x0a\0\0\1", 4);
	cr_expect_arr_eq(arp.target_ip, "\x0a\0\0\2", 4);
	cr_expect_eq(arp.target.qpn, 0);
	cr_expect_arr_eq(arp.target.gid, zero, 16);
	ddps_ipoib_encap_encode(out, type);
	cr_assert_eq(ddps_ipoib_arp_encode(out + 4, &arp), 0);
	cr_expect_arr_eq(out, arp_request, 60);
	arp.target.qpn = 0x1000000;
	cr_expect_eq(ddps_ipoib_arp_encode(out + 4, &arp), DDPS_E_INVAL);
}

Test(ipoib_packet, arp_of_another_kind_is_not_taken)
{
	/* hardware type, protocol, both lengths */
	static const unsigned octet[] = { 0, 1, 2, 3, 4, 5 };
	struct ddps_ipoib_arp arp;
	uint8_t in[56];

	for (size_t i = 0; i < 6; i++) {
		memcpy(in, arp_request + 4, 56);
		in[octet[i]] ^= 1;
		cr_expect_eq(ddps_ipoib_arp_decode(&arp, in, 56), DDPS_E_UNSUPPORTED);
	}
	for (size_t n = 0; n < 56; n++) {
		uint8_t *cut = malloc(n ? n : 1);

		memcpy(cut, arp_request + 4, n);
		cr_expect_eq(ddps_ipoib_arp_decode(&arp, cut, n), DDPS_E_TRUNCATED);
		free(cut);
	}
}

Test(ipoib_packet, nd_option_matches_the_worked_example, .description = "4391-9.3-1 4391-9.3-2")
{
	struct ddps_ipoib_lladdr a;
	uint8_t out[24];

	cr_assert_eq(ddps_ipoib_nd_find(&a, DDPS_IPOIB_ND_SOURCE, nd_option, 24), 1);
	cr_expect_eq(a.qpn, 0x4a);
	cr_expect_arr_eq(a.gid, nd_option + 8, 16);
	cr_assert_eq(ddps_ipoib_nd_encode(out, DDPS_IPOIB_ND_SOURCE, &a), 0);
	cr_expect_arr_eq(out, nd_option, 24);
	cr_expect_eq(ddps_ipoib_nd_encode(out, 3, &a), DDPS_E_INVAL);
	a.flags = 1;
	cr_expect_eq(ddps_ipoib_nd_encode(out, DDPS_IPOIB_ND_TARGET, &a), DDPS_E_INVAL);
}

Test(ipoib_packet, nd_option_is_found_behind_others)
{
	uint8_t opts[8 + 24 + 24];
	struct ddps_ipoib_lladdr a;

	memset(opts, 0, sizeof(opts));
	opts[0] = 5; /* MTU */
	opts[1] = 1;
	memcpy(opts + 8, nd_option, 24);
	memcpy(opts + 32, nd_option, 24);
	opts[32] = DDPS_IPOIB_ND_TARGET;
	opts[32 + 7] = 0x77;
	cr_assert_eq(ddps_ipoib_nd_find(&a, DDPS_IPOIB_ND_TARGET, opts, sizeof(opts)), 1);
	cr_expect_eq(a.qpn, 0x77);
	cr_assert_eq(ddps_ipoib_nd_find(&a, DDPS_IPOIB_ND_SOURCE, opts, sizeof(opts)), 1);
	cr_expect_eq(a.qpn, 0x4a);
	cr_expect_eq(ddps_ipoib_nd_find(&a, DDPS_IPOIB_ND_TARGET, opts, 32), 0);
	cr_expect_eq(ddps_ipoib_nd_find(&a, DDPS_IPOIB_ND_TARGET, opts, 0), 0);
}

Test(ipoib_packet, nd_options_that_are_broken)
{
	struct ddps_ipoib_lladdr a;
	uint8_t in[32] = { 0 };

	for (size_t n = 1; n < 24; n++) {
		uint8_t *cut = malloc(n);

		memcpy(cut, nd_option, n);
		cr_expect_eq(ddps_ipoib_nd_find(&a, DDPS_IPOIB_ND_SOURCE, cut, n), DDPS_E_TRUNCATED,
			     "n=%zu", n);
		free(cut);
	}
	memcpy(in, nd_option, 24);
	in[1] = 0; /* would never advance */
	cr_expect_eq(ddps_ipoib_nd_find(&a, DDPS_IPOIB_ND_SOURCE, in, 24), DDPS_E_PROTOCOL);
	in[1] = 1; /* Ethernet's */
	cr_expect_eq(ddps_ipoib_nd_find(&a, DDPS_IPOIB_ND_SOURCE, in, 24), DDPS_E_PROTOCOL);
	in[1] = 4;
	cr_expect_eq(ddps_ipoib_nd_find(&a, DDPS_IPOIB_ND_SOURCE, in, 32), DDPS_E_PROTOCOL);
}

static void expect_gid(const uint8_t gid[16], const char *text)
{
	uint8_t want[16];

	cr_assert_eq(ddps_ipoib_gid_parse(want, text), 0);
	cr_expect_arr_eq(gid, want, 16, "%s", text);
}

Test(ipoib_packet, ipv4_groups_match_the_worked_examples,
     .description = "4391-4-2 4391-4-3 4391-4-5 4391-4-6 4391-4-7 4391-4.1-1 4391-4.1-6")
{
	uint8_t mgid[16], ip[4];

	cr_assert_eq(ddps_ipoib_mgid_broadcast(mgid, 0xffff, DDPS_IPOIB_SCOPE_DEFAULT), 0);
	expect_gid(mgid, "ff12:401b:ffff:0000:0000:0000:ffff:ffff");
	inet_pton(AF_INET, "255.255.255.255", ip);
	cr_assert_eq(ddps_ipoib_mgid_ipv4(mgid, ip, 0xffff, 2), 0);
	expect_gid(mgid, "ff12:401b:ffff:0000:0000:0000:ffff:ffff");
	inet_pton(AF_INET, "224.0.0.2", ip);
	cr_assert_eq(ddps_ipoib_mgid_ipv4(mgid, ip, 0x8000, 2), 0);
	expect_gid(mgid, "ff12:401b:8000::2");
	inet_pton(AF_INET, "239.1.2.3", ip);
	cr_assert_eq(ddps_ipoib_mgid_ipv4(mgid, ip, 0xffff, 2), 0);
	expect_gid(mgid, "ff12:401b:ffff:0000:0000:0000:0f01:0203");
	inet_pton(AF_INET, "239.255.255.255", ip); /* 28 ones, not the broadcast group */
	cr_assert_eq(ddps_ipoib_mgid_ipv4(mgid, ip, 0x7fff, 5), 0);
	expect_gid(mgid, "ff15:401b:ffff:0000:0000:0000:0fff:ffff");
}

Test(ipoib_packet, ipv6_groups_match_the_worked_examples,
     .description = "4391-4-4 4391-4-5 4391-4-7")
{
	uint8_t mgid[16], ip[16];

	inet_pton(AF_INET6, "ff02::2", ip);
	cr_assert_eq(ddps_ipoib_mgid_ipv6(mgid, ip, 0x8000, 2), 0);
	expect_gid(mgid, "ff12:601b:8000::2");
	inet_pton(AF_INET6, "ff02::1:ff00:2002", ip);
	cr_assert_eq(ddps_ipoib_mgid_ipv6(mgid, ip, 0xffff, 2), 0);
	expect_gid(mgid, "ff12:601b:ffff:0000:0000:0001:ff00:2002");
	inet_pton(AF_INET6, "ff0e:1:2:3:4:5:6:7", ip); /* the scope is the link's, not its own */
	cr_assert_eq(ddps_ipoib_mgid_ipv6(mgid, ip, 0xffff, 2), 0);
	expect_gid(mgid, "ff12:601b:ffff:3:4:5:6:7");
}

Test(ipoib_packet, what_is_no_group_has_no_group)
{
	uint8_t mgid[16], v4[4], v6[16];

	inet_pton(AF_INET, "223.255.255.255", v4);
	cr_expect_eq(ddps_ipoib_mgid_ipv4(mgid, v4, 0xffff, 2), DDPS_E_INVAL);
	inet_pton(AF_INET, "240.0.0.1", v4);
	cr_expect_eq(ddps_ipoib_mgid_ipv4(mgid, v4, 0xffff, 2), DDPS_E_INVAL);
	inet_pton(AF_INET6, "fe80::1", v6);
	cr_expect_eq(ddps_ipoib_mgid_ipv6(mgid, v6, 0xffff, 2), DDPS_E_INVAL);
	cr_expect_eq(ddps_ipoib_mgid_broadcast(mgid, 0xffff, 15), 0);
	cr_expect_eq(ddps_ipoib_mgid_broadcast(mgid, 0xffff, 16), DDPS_E_INVAL);
}

Test(ipoib_packet, interface_identifier_toggles_the_u_bit_once,
     .description = "4391-8-1 4391-8-3 4391-8-4")
{
	static const uint8_t guid[8] = { 0x00, 0x02, 0xc9, 0x03, 0, 0, 0x10, 0x01 };
	static const uint8_t iid[8] = { 0x02, 0x02, 0xc9, 0x03, 0, 0, 0x10, 0x01 };
	uint8_t out[8];

	ddps_ipoib_iid(out, guid, false);
	cr_expect_arr_eq(out, iid, 8);
	ddps_ipoib_iid(out, iid, true);
	cr_expect_arr_eq(out, iid, 8);
	ddps_ipoib_iid(out, iid, false); /* a locally administered EUI-64 */
	cr_expect_arr_eq(out, guid, 8);
}

Test(ipoib_packet, mtu_of_a_connection_is_the_smaller_less_4,
     .description = "4755-5.1-2 4755-5.1-4 4755-5.1-5 4755-5-4 4755-5-5")
{
	static const uint32_t row[][3] = {
		{ 65524, 65524, DDPS_IPOIB_MTU_CM_MAX },
		{ 65524, 32772, 32768 },
		{ 2048, 65524, DDPS_IPOIB_MTU_DEFAULT },
		{ 65524, 2044, 2040 },
		{ 65524, 5, 1 },
		{ 65524, 4, 0 },
		{ 3, 65524, 0 },
		{ 0x80000000, 0x7fffffff, 0x7ffffffb },
		{ 0x80000000, 0x80000000, 0x7ffffffc },
		{ 0x80000001, 65524, 0 },
		{ 65524, 0xffffffff, 0 },
	};

	for (size_t i = 0; i < sizeof(row) / sizeof(row[0]); i++) {
		cr_expect_eq(ddps_ipoib_mtu_cm(row[i][0], row[i][1]), row[i][2], "row %zu", i);
		cr_expect_eq(ddps_ipoib_mtu_cm(row[i][1], row[i][0]), row[i][2], "row %zu", i);
	}
}

Test(ipoib_packet, mtu_of_datagrams_is_the_links_less_4,
     .description = "4755-5-2 4391-7-1 4391-7-2 4391-7-3")
{
	cr_expect_eq(ddps_ipoib_mtu_ud(2048), 2044);
	cr_expect_eq(ddps_ipoib_mtu_ud(4096), 4092);
	cr_expect_eq(ddps_ipoib_mtu_ud(4), 0);
	cr_expect_eq(ddps_ipoib_mtu_ud(3), 0);
	cr_expect_eq(DDPS_IPOIB_MTU_DEFAULT, 2044);
}

Test(ipoib_packet, destination_has_the_mtu_of_its_connection,
     .description = "4755-7.2-1 4755-7-1 4755-7-3")
{
	struct ddps_ipoib_dst_mtu d = { .ud = 2044 };
	uint32_t mtu;

	cr_expect_eq(ddps_ipoib_dst_mtu(&d), 2044);
	d.conn = 65520;
	cr_expect_eq(ddps_ipoib_dst_mtu(&d), 65520);
	cr_expect_eq(ddps_ipoib_mtu_fit(&d, 65520, false, false, &mtu), DDPS_IPOIB_FIT_SEND);
	cr_expect_eq(ddps_ipoib_mtu_fit(&d, 65521, true, false, &mtu), DDPS_IPOIB_FIT_FRAGMENT);
	cr_expect_eq(ddps_ipoib_mtu_fit(&d, 65521, false, false, &mtu), DDPS_IPOIB_FIT_TOO_BIG);
	cr_expect_eq(mtu, 65520);
	/* multicast never takes the connection */
	cr_expect_eq(ddps_ipoib_mtu_fit(&d, 2044, false, true, &mtu), DDPS_IPOIB_FIT_SEND);
	cr_expect_eq(ddps_ipoib_mtu_fit(&d, 2045, false, true, &mtu), DDPS_IPOIB_FIT_DROP);
	cr_expect_eq(ddps_ipoib_mtu_fit(&d, 2045, true, true, &mtu), DDPS_IPOIB_FIT_FRAGMENT);
	cr_expect_eq(mtu, 2044);
	d.conn = 0; /* lost: back to datagrams */
	cr_expect_eq(ddps_ipoib_mtu_fit(&d, 2045, false, false, &mtu), DDPS_IPOIB_FIT_TOO_BIG);
	cr_expect_eq(mtu, 2044);
}

/* ---- fragments of IPv4 packets put together again ---- */

struct whole {
	uint8_t data[65536];
	size_t len, ihl, mtu;
	unsigned n;
	bool last;
};

static void emit(void *arg, const void *packet, size_t len)
{
	struct whole *w = arg;
	const uint8_t *p = packet;
	size_t ihl = (size_t)(p[0] & 15) * 4;
	size_t off = (size_t)((p[6] & 0x1f) << 8 | p[7]) * 8;

	cr_assert_leq(len, w->mtu);
	cr_assert_eq((size_t)(p[2] << 8 | p[3]), len);
	cr_assert_eq(net_cksum(p, ihl, 0), 0);
	cr_assert_eq(off, w->len);
	cr_assert_not(w->last);
	w->last = !(p[6] & 0x20);
	cr_assert(w->last || (len - ihl) % 8 == 0);
	memcpy(w->data + off, p + ihl, len - ihl);
	w->len += len - ihl;
	if (w->n++)
		cr_expect(ihl == 20 || (p[20] == 1 && p[21] == 1 && p[22] == 1 && p[23] == 0x94));
}

static void check_ip_frag(size_t ihl, size_t len, uint32_t mtu)
{
	static struct whole w;
	static uint8_t p[65536];

	memset(&w, 0, sizeof(w));
	w.mtu = mtu;
	for (size_t i = 0; i < len; i++)
		p[i] = (uint8_t)(i * 11);
	memset(p, 0, 20);
	p[0] = (uint8_t)(0x40 | ihl / 4);
	p[2] = (uint8_t)(len >> 8);
	p[3] = (uint8_t)len;
	if (ihl == 28) /* record route (not copied), router alert (copied), end */
		memcpy(p + 20, (uint8_t[]){ 7, 3, 4, 0x94, 4, 0, 0, 0 }, 8);
	cr_assert_eq(ddps_ipoib_frag4(p, len, mtu, emit, &w), (int)w.n);
	cr_expect_eq(w.len, len - ihl);
	cr_expect(w.last);
	cr_expect_eq(memcmp(w.data, p + ihl, len - ihl), 0);
}

Test(ip_frag, comes_together_again, .description = "4755-7.2-1")
{
	for (size_t len = 2045; len < 2080; len++)
		check_ip_frag(20, len, 2044);
	check_ip_frag(20, 65535, 2044);
	check_ip_frag(20, 65535, 68);
	check_ip_frag(28, 3000, 1000);
	check_ip_frag(20, 100, 28);
}

Test(ip_frag, needs_room, .description = "4755-5-1")
{
	uint8_t p[100] = { 0x45, 0, 0, 100 };
	static struct whole w;

	cr_expect_eq(ddps_ipoib_frag4(p, 100, 27, emit, &w), DDPS_E_INVAL);
	cr_expect_eq(w.n, 0);
}

/* The first fragment's options, and what the others have of them. */
static uint8_t rest[8];

static void note_options(void *arg, const void *packet, size_t len)
{
	(void)len;
	if (++*(unsigned *)arg > 1)
		memcpy(rest, (const uint8_t *)packet + 20, sizeof(rest));
}

/* Options that cannot be are not ours to judge: from there on all stays as it was. */
Test(ip_frag, options_that_cannot_be_stay, .description = "4755-7.2-1")
{
	static const struct {
		uint8_t is[8], becomes[8];
	} row[] = {
		{ { 7, 0, 9, 9, 9, 9, 9, 9 }, { 7, 0, 9, 9, 9, 9, 9, 9 } }, /* no length */
		{ { 7, 1, 9, 9, 9, 9, 9, 9 }, { 7, 1, 9, 9, 9, 9, 9, 9 } }, /* less than its head */
		{ { 7, 9, 9, 9, 9, 9, 9, 9 }, { 7, 9, 9, 9, 9, 9, 9, 9 } }, /* beyond the header */
		{ { 7, 8, 9, 9, 9, 9, 9, 9 }, { 1, 1, 1, 1, 1, 1, 1, 1 } }, /* up to its end */
		{ { 7, 7, 9, 9, 9, 9, 9, 7 },
		  { 1, 1, 1, 1, 1, 1, 1, 7 } }, /* the last has no length */
		{ { 1, 1, 0, 7, 3, 9, 9, 9 },
		  { 1, 1, 0, 7, 3, 9, 9, 9 } }, /* the end comes before */
		{ { 0x94, 4, 5, 6, 7, 4, 9, 9 }, { 0x94, 4, 5, 6, 1, 1, 1, 1 } },
	};
	uint8_t p[128] = { 0x47, 0, 0, 128 };

	for (unsigned i = 0; i < sizeof(row) / sizeof(*row); i++) {
		unsigned n = 0;

		memcpy(p + 20, row[i].is, 8);
		cr_assert_eq(ddps_ipoib_frag4(p, 128, 88, note_options, &n), 2);
		cr_expect_arr_eq(rest, row[i].becomes, 8, "row %u", i);
	}
}

Test(ip_frag, an_mtu_beyond_any_packet_cuts_nothing, .description = "4755-7.2-1")
{
	static uint8_t p[65535] = { 0x45, 0, 0xff, 0xff };
	static struct whole w;

	w.mtu = 70000;
	cr_expect_eq(ddps_ipoib_frag4(p, 65528, 70000, emit, &w), 1);
	cr_expect_eq(w.len, 65508);
}
