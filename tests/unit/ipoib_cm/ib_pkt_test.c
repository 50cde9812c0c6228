/* SPDX-License-Identifier: BSD-2-Clause */
/* InfiniBand packets in UDP: octets, and the invariant CRC of packets that Linux has sent. */
#include <criterion/criterion.h>
#include <endian.h>
#include <string.h>
#include "ipoib_cm/ib/pkt.h"
#include "support/icrc.h"

/* From a capture, behind the UDP header; the identification of the IP header was not 0. */
static const struct ddps_ib_udp_hdr ack_udp = { 0x0a4d0002, 0x0a4d0009, 0xc87e, 4791, 0 };
static const uint8_t ack_octets[] = { 0x11, 0x00, 0xff, 0xff, 0x00, 0x01, 0xf8, 0xb1, 0x00, 0xb2,
				      0xf4, 0x76, 0x1f, 0x00, 0x00, 0x01, 0x0a, 0xba, 0x36, 0x25 };
static const struct ddps_ib_udp_hdr arp_udp = { 0x0a4d0002, 0x0a4d0009, 0xdf94, 4791, 0 };
static const uint8_t arp_octets[] = {
	0x64, 0x00, 0xff, 0xff, 0x00, 0x00, 0xf8, 0xb1, 0x00, 0x00, 0x00, 0x07, 0x00, 0x00,
	0x0b, 0x1b, 0x00, 0x00, 0x00, 0x11, 0x08, 0x06, 0x00, 0x00, 0x00, 0x20, 0x08, 0x00,
	0x14, 0x04, 0x00, 0x02, 0x80, 0x00, 0x00, 0x11, 0xfe, 0x80, 0x00, 0x00, 0x00, 0x00,
	0x00, 0x00, 0x50, 0x54, 0x00, 0xff, 0xfe, 0x77, 0x00, 0x02, 0x0a, 0x58, 0x00, 0x02,
	0x80, 0x00, 0xf8, 0xb1, 0xfe, 0x80, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x50, 0x54,
	0x00, 0xff, 0xfe, 0x77, 0x00, 0x09, 0x0a, 0x58, 0x00, 0x09, 0x53, 0x12, 0xc8, 0x48
};
/* Made by another program: RC, "hello" and three octets of pad, identification 1. */
static const struct ddps_ib_udp_hdr pad_udp = { 0x0a4d0009, 0x0a4d0002, 0xc452, 4791, 0 };
static const uint8_t pad_octets[] = { 0x04, 0x70, 0xff, 0xff, 0x00, 0x00, 0x04, 0x52,
				      0x80, 0x00, 0x12, 0x34, 0x68, 0x65, 0x6c, 0x6c,
				      0x6f, 0x00, 0x00, 0x00, 0x12, 0x69, 0x1b, 0x5a };

Test(ib_pkt, icrc_of_captured_packets_is_right)
{
	cr_expect(ddps_ib_icrc_check(&ack_udp, ack_octets, sizeof(ack_octets)));
	cr_expect(ddps_ib_icrc_check(&arp_udp, arp_octets, sizeof(arp_octets)));
	cr_expect(ddps_ib_icrc_check(&pad_udp, pad_octets, sizeof(pad_octets)));
}

/* One bit wrong anywhere is found, but in what routers may change. */
Test(ib_pkt, icrc_finds_every_wrong_bit)
{
	uint8_t b[sizeof(arp_octets)];

	for (unsigned i = 0; i < 8 * sizeof(b); i++) {
		memcpy(b, arp_octets, sizeof(b));
		b[i / 8] ^= (uint8_t)(1u << i % 8);
		cr_expect_eq(ddps_ib_icrc_check(&arp_udp, b, sizeof(b)) != DDPS_IB_ICRC_BAD,
			     i / 8 == 4, "bit %u", i);
	}
	for (unsigned i = 0; i < 96; i++) {
		struct ddps_ib_udp_hdr u = arp_udp;

		if (i < 32)
			u.src ^= 1u << i;
		else if (i < 64)
			u.dst ^= 1u << (i - 32);
		else if (i < 80)
			u.sport = (uint16_t)(u.sport ^ 1u << (i - 64));
		else
			u.dport = (uint16_t)(u.dport ^ 1u << (i - 80));
		cr_expect_not(ddps_ib_icrc_check(&u, arp_octets, sizeof(arp_octets)));
	}
}

/* One octet at a time, from the definition. */
static uint32_t plain_crc(uint32_t crc, const uint8_t *p, size_t n)
{
	while (n--) {
		crc ^= *p++;
		for (unsigned i = 0; i < 8; i++)
			crc = crc >> 1 ^ (crc & 1 ? 0xedb88320u : 0);
	}
	return crc;
}

/* Any identification of the IP header is allowed for, at every length. */
Test(ib_pkt, icrc_check_allows_every_identification)
{
	static uint8_t b[DDPS_IB_PKT_MAX];
	static const uint16_t ids[] = { 0, 1, 0x80, 0x100, 0x8000, 0xa9e8, 0xffff };
	struct ddps_ib_udp_hdr u = { 0x0a4d0002, 0x0a4d0009, 0xc87e, 4791, 0 };

	for (size_t len = 16; len <= sizeof(b); len += len < 280 ? 4 : 500)
		for (unsigned i = 0; i < sizeof(ids) / sizeof(*ids); i++) {
			uint8_t head[28] = { 0x45,
					     0xff,
					     [4] = (uint8_t)(ids[i] >> 8),
					     (uint8_t)ids[i],
					     0x40,
					     0,
					     0xff,
					     17,
					     0xff,
					     0xff,
					     10,
					     77,
					     0,
					     2,
					     10,
					     77,
					     0,
					     9,
					     0xc8,
					     0x7e,
					     0x12,
					     0xb7,
					     0,
					     0,
					     0xff,
					     0xff };
			uint32_t crc;

			head[2] = (uint8_t)((len + 28) >> 8);
			head[3] = (uint8_t)(len + 28);
			head[24] = (uint8_t)((len + 8) >> 8);
			head[25] = (uint8_t)(len + 8);
			for (size_t k = 0; k < len; k++)
				b[k] = (uint8_t)(k * 37 + i);
			b[4] = 0xff;
			crc = plain_crc(0xdebb20e3, head, sizeof(head));
			crc = htole32(~plain_crc(crc, b, len - 4));
			memcpy(b + len - 4, &crc, sizeof(crc));
			u.id = 0;
			cr_expect_eq(ddps_ib_icrc_check(&u, b, len),
				     ids[i] ? DDPS_IB_ICRC_ANOTHER : DDPS_IB_ICRC_EXACT, "%zu %x",
				     len, ids[i]);
			u.id = ids[i];
			cr_expect_eq(ddps_ib_icrc_check(&u, b, len), DDPS_IB_ICRC_EXACT);
			memset(b + len - 4, 0, 4);
			icrc_put(&u, b, len - 4);
			cr_expect_eq(memcmp(b + len - 4, &crc, sizeof(crc)), 0);
			b[len / 2 == 4 ? 5 : len / 2] ^= 0x10;
			cr_expect_not(ddps_ib_icrc_check(&u, b, len), "%zu %x", len, ids[i]);
		}
}

Test(ib_pkt, captured_packets_are_read)
{
	struct ddps_ib_pkt p;

	cr_assert_eq(ddps_ib_pkt_decode(&p, ack_octets, sizeof(ack_octets)), 0);
	cr_expect_eq(p.opcode, DDPS_IB_RC | DDPS_IB_ACK);
	cr_expect_eq(p.pkey, 0xffff);
	cr_expect_eq(p.qpn, 0x1f8b1);
	cr_expect_eq(p.psn, 0xb2f476);
	cr_expect_eq(p.syndrome, 0x1f);
	cr_expect_eq(p.msn, 1);
	cr_expect_eq(p.len, 0);

	cr_assert_eq(ddps_ib_pkt_decode(&p, arp_octets, sizeof(arp_octets)), 0);
	cr_expect_eq(p.opcode, DDPS_IB_UD | DDPS_IB_SEND_ONLY);
	cr_expect_eq(p.qpn, 0xf8b1);
	cr_expect_eq(p.qkey, 0x0b1b);
	cr_expect_eq(p.src_qpn, 0x11);
	cr_expect_eq(p.len, 60);
	cr_expect_eq(p.data[1], 6);

	cr_assert_eq(ddps_ib_pkt_decode(&p, pad_octets, sizeof(pad_octets)), 0);
	cr_expect(p.ack_req && p.migrated && p.pad == 3);
	cr_expect_eq(p.psn, 0x1234);
	cr_assert_eq(p.len, 5);
	cr_expect_arr_eq(p.data, "hello", 5);
}

Test(ib_pkt, headers_are_written_as_captured)
{
	struct ddps_ib_pkt ack = { .opcode = DDPS_IB_ACK,
				   .pkey = 0xffff,
				   .qpn = 0x1f8b1,
				   .psn = 0xb2f476,
				   .syndrome = 0x1f,
				   .msn = 1 };
	struct ddps_ib_pkt arp = { .opcode = DDPS_IB_UD | DDPS_IB_SEND_ONLY,
				   .pkey = 0xffff,
				   .qpn = 0xf8b1,
				   .psn = 7,
				   .qkey = 0x0b1b,
				   .src_qpn = 0x11,
				   .len = 60 };
	struct ddps_ib_pkt hello = { .opcode = DDPS_IB_SEND_ONLY,
				     .migrated = true,
				     .ack_req = true,
				     .pkey = 0xffff,
				     .qpn = 0x452,
				     .psn = 0x1234,
				     .len = 5 };
	uint8_t head[DDPS_IB_HEAD_MAX];

	cr_assert_eq(ddps_ib_pkt_encode(head, &ack), 16);
	cr_expect_arr_eq(head, ack_octets, 16);
	cr_assert_eq(ddps_ib_pkt_encode(head, &arp), 20);
	cr_expect_arr_eq(head, arp_octets, 20);
	cr_assert_eq(ddps_ib_pkt_encode(head, &hello), 12);
	cr_expect_arr_eq(head, pad_octets, 12);
	cr_expect_eq(hello.pad, 3);
}

Test(ib_pkt, every_truncation_and_every_opcode)
{
	struct ddps_ib_pkt p;
	uint8_t b[64] = { 0 };
	unsigned known = 0;

	for (size_t n = 0; n < sizeof(ack_octets); n++)
		cr_expect_neq(ddps_ib_pkt_decode(&p, ack_octets, n), 0, "%zu", n);
	b[7] = 1;
	for (unsigned op = 0; op < 256; op++) {
		int err;

		b[0] = (uint8_t)op;
		err = ddps_ib_pkt_decode(&p, b, sizeof(b));
		cr_expect(!err || err == DDPS_E_UNSUPPORTED);
		known += !err;
	}
	/* RC without 0x15 and what is above 0x17; UC's Sends and Writes; UD's two */
	cr_expect_eq(known, 23 + 12 + 2);
}

Test(ib_pkt, refuses_what_cannot_be)
{
	struct ddps_ib_pkt p;
	uint8_t b[sizeof(pad_octets)];

	memcpy(b, pad_octets, sizeof(b));
	b[1] |= 1; /* transport version */
	cr_expect_eq(ddps_ib_pkt_decode(&p, b, sizeof(b)), DDPS_E_PROTOCOL);
	memcpy(b, pad_octets, sizeof(b));
	b[6] = b[7] = 0; /* queue pair 0 is subnet management */
	cr_expect_eq(ddps_ib_pkt_decode(&p, b, sizeof(b)), DDPS_E_PROTOCOL);
	memcpy(b, pad_octets, sizeof(b));
	cr_expect_eq(ddps_ib_pkt_decode(&p, b, 16), DDPS_E_PROTOCOL); /* pad, and no payload */
	cr_expect_eq(ddps_ib_pkt_decode(&p, b, 21), DDPS_E_PROTOCOL);
}

/* IBA volume 1, 10.9.3: equal, not 0, and one of the two a full member. */
Test(ib_pkt, pkeys)
{
	cr_expect(ddps_ib_pkey_match(0xffff, 0xffff));
	cr_expect(ddps_ib_pkey_match(0x7fff, 0xffff));
	cr_expect(ddps_ib_pkey_match(0x8001, 0x0001));
	cr_expect_not(ddps_ib_pkey_match(0x7fff, 0x7fff));
	cr_expect_not(ddps_ib_pkey_match(0x0001, 0x0001));
	cr_expect_not(ddps_ib_pkey_match(0x8001, 0x8002));
	cr_expect_not(ddps_ib_pkey_match(0x8000, 0x8000));
}

Test(ib_pkt, psns_wrap)
{
	cr_expect_eq(ddps_ib_psn_diff(0, 0xffffff), 1);
	cr_expect_eq(ddps_ib_psn_diff(0xffffff, 0), -1);
	cr_expect_eq(ddps_ib_psn_diff(0x7fffff, 0), 0x7fffff);
	cr_expect_lt(ddps_ib_psn_diff(0x800000, 0), 0);
	cr_expect_eq(ddps_ib_psn_add(0xffffff, 2), 1);
}
