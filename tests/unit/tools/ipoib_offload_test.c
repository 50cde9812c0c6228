/* SPDX-License-Identifier: BSD-2-Clause */
/* Segments of TCP, cut and put together for the TUN device of sessctl ipoib bridge. */
#include <criterion/criterion.h>
#include <linux/virtio_net.h>
#include <stdlib.h>
#include <string.h>
#include "ipoib/bridge/offload.h"

#define MSS   1000u
#define TCP4  20u
#define TCP6  40u
#define HEAD  32u /* of TCP, with time stamps */
#define FIRST 0xfffffc00u
#define MAX   64

/* What came out, one after the other. */
static struct {
	struct virtio_net_hdr h;
	size_t len;
	uint8_t p[65536];
} got[MAX];
static unsigned n_got;
static uint8_t buf[OFFLOAD_HDR + 65536];
static uint8_t *const packet = buf + OFFLOAD_HDR;
static struct offload_in in;
static uint32_t state = 1;

static uint8_t draw_ipoib_offload_random(void)
{
	state = state * 1664525 + 1013904223;
	return (uint8_t)(state >> 24);
}

static unsigned get_ipoib_offload_u16(const uint8_t *p)
{
	return (unsigned)p[0] << 8 | p[1];
}

static void put_ipoib_offload_u16(uint8_t *p, unsigned v)
{
	p[0] = (uint8_t)(v >> 8);
	p[1] = (uint8_t)v;
}

static uint32_t get_ipoib_offload_u32(const uint8_t *p)
{
	return (uint32_t)get_ipoib_offload_u16(p) << 16 | get_ipoib_offload_u16(p + 2);
}

/* RFC 1071, octet by octet. */
static unsigned sum_plainly(unsigned s, const uint8_t *p, size_t n)
{
	for (size_t i = 0; i < n; i++)
		s += i % 2 ? p[i] : (unsigned)p[i] << 8;
	while (s >> 16)
		s = (s & 0xffff) + (s >> 16);
	return s;
}

static unsigned pseudo(const uint8_t *p, size_t len)
{
	size_t l4 = p[0] >> 4 == 6 ? TCP6 : TCP4;
	unsigned s = 6 + (unsigned)(len - l4);

	return l4 == TCP6 ? sum_plainly(s, p + 8, 32) : sum_plainly(s, p + 12, 8);
}

static bool is_checksum_right(const uint8_t *p, size_t len)
{
	size_t l4 = p[0] >> 4 == 6 ? TCP6 : TCP4;

	return (l4 == TCP6 || sum_plainly(0, p, TCP4) == 0xffff) &&
	       sum_plainly(pseudo(p, len), p + l4, len - l4) == 0xffff;
}

/* Whoever takes a packet may overwrite what is before it, and the packet. */
static void out(void *arg, uint8_t *p, size_t len)
{
	cr_assert(arg == &in && n_got < MAX && len <= sizeof got[0].p);
	memcpy(got[n_got].p, p, len);
	got[n_got++].len = len;
	memset(p - OFFLOAD_HDR, 0xee, OFFLOAD_HDR);
}

static void to_device(void *arg, const uint8_t hdr[OFFLOAD_HDR], const void *p, size_t len,
		      const void *rest, size_t rest_len)
{
	cr_assert(arg == &in && n_got < MAX && len + rest_len <= sizeof got[0].p);
	memcpy(&got[n_got].h, hdr, OFFLOAD_HDR);
	memcpy(got[n_got].p, p, len);
	if (rest_len)
		memcpy(got[n_got].p + len, rest, rest_len);
	got[n_got++].len = len + rest_len;
}

/* A TCP packet with @size octets of payload; its checksum is that of the pseudo-header. */
static size_t tcp(uint8_t *p, bool v6, size_t size, uint8_t flags)
{
	size_t l4 = v6 ? TCP6 : TCP4, len = l4 + HEAD + size;

	memset(p, 0, l4 + HEAD);
	if (v6) {
		p[0] = 0x60;
		put_ipoib_offload_u16(p + 4, (unsigned)(len - TCP6));
		p[6] = 6;
		p[7] = 64;
		p[8 + 15] = 1;
		p[24 + 15] = 2;
	} else {
		memcpy(p,
		       (uint8_t[]){ 0x45, [4] = 0x12, 0xff, 0x40, 0, 64, 6, [12] = 10, 9, 0, 1, 10,
				    9, 0, 2 },
		       TCP4);
		put_ipoib_offload_u16(p + 2, (unsigned)len);
		put_ipoib_offload_u16(p + 10, ~sum_plainly(0, p, TCP4) & 0xffff);
	}
	memcpy(p + l4,
	       (uint8_t[HEAD]){
		       0x12,	  0x34,	 0x14, 0x51, 0xff,     0xff, 0xfc, 0,  1, 2, 3, 4,
		       HEAD << 2, flags, 1,    0,    [20] = 1, 1,    8,	   10, 9, 9, 9, 9 },
	       HEAD);
	for (size_t i = 0; i < size; i++)
		p[l4 + HEAD + i] = draw_ipoib_offload_random();
	put_ipoib_offload_u16(p + l4 + 16, pseudo(p, len));
	return len;
}

/* The same as the device gives it: to be cut. */
static size_t long_one(bool v6, size_t size, uint8_t flags)
{
	const struct virtio_net_hdr h = {
		.flags = VIRTIO_NET_HDR_F_NEEDS_CSUM,
		.gso_type = v6 ? VIRTIO_NET_HDR_GSO_TCPV6 : VIRTIO_NET_HDR_GSO_TCPV4,
		.gso_size = MSS,
		.csum_start = v6 ? TCP6 : TCP4,
		.csum_offset = 16,
	};

	memcpy(buf, &h, OFFLOAD_HDR);
	return OFFLOAD_HDR + tcp(packet, v6, size, flags);
}

static void start_ipoib_offload(void)
{
	n_got = 0;
	in.n = 0;
	in.in = to_device;
	in.arg = &in;
}

/* What offload_out() has made goes in again, but for @without, a bit each. */
static void bring_in(uint64_t without)
{
	static uint8_t kept[MAX][2048];
	size_t len[MAX];
	unsigned n = n_got;

	for (unsigned i = 0; i < n; i++) {
		cr_assert_leq(got[i].len, sizeof kept[0]);
		len[i] = got[i].len;
		memcpy(kept[i], got[i].p, len[i]);
	}
	n_got = 0;
	for (unsigned i = 0; i < n; i++)
		if (!(without >> i & 1))
			offload_in(&in, kept[i], len[i]);
	offload_in_flush(&in);
}

#define OffloadTest(name) Test(ipoib_offload, name, .init = start_ipoib_offload)

static void check_cutting(bool v6)
{
	size_t l4 = v6 ? TCP6 : TCP4, n = long_one(v6, 4 * MSS + 77, 0x80 | 0x18 | 1), off = 0;
	uint8_t *all = malloc(n);

	memcpy(all, packet + l4 + HEAD, 4 * MSS + 77);
	cr_assert_eq(offload_out(buf, n, out, &in), 5);
	for (unsigned i = 0; i < 5; i++) {
		const uint8_t *p = got[i].p, *t = p + l4;
		size_t size = i < 4 ? MSS : 77;

		cr_assert_eq(got[i].len, l4 + HEAD + size);
		cr_expect(is_checksum_right(p, got[i].len), "segment %u", i);
		cr_expect_eq(get_ipoib_offload_u16(p + (v6 ? 4 : 2)),
			     v6 ? HEAD + size : got[i].len);
		cr_expect(v6 || get_ipoib_offload_u16(p + 4) ==
					0x12ff + i); /* RFC 791: the identification */
		cr_expect_eq(get_ipoib_offload_u32(t + 4), (uint32_t)(FIRST + off));
		cr_expect_eq(t[13], 0x10 | (i ? 0 : 0x80) | (i < 4 ? 0 : 0x09), "flags %02x",
			     t[13]);
		cr_expect_arr_eq(t + HEAD, all + off, size);
		off += size;
	}
	free(all);
}

OffloadTest(long_packets_of_ipv4_are_cut)
{
	check_cutting(false);
}

OffloadTest(long_packets_of_ipv6_are_cut)
{
	check_cutting(true);
}

OffloadTest(a_missing_checksum_is_added)
{
	struct virtio_net_hdr h = { .flags = VIRTIO_NET_HDR_F_NEEDS_CSUM,
				    .csum_start = TCP4,
				    .csum_offset = 16 };
	size_t n;

	for (size_t size = 0; size < 70; size++) {
		n = tcp(packet, false, size, 0x10);
		memcpy(buf, &h, OFFLOAD_HDR);
		n_got = 0;
		cr_assert_eq(offload_out(buf, OFFLOAD_HDR + n, out, &in), 1);
		cr_expect(got[0].len == n && is_checksum_right(got[0].p, n), "%zu octets", size);
	}
	/* UDP's checksum is never 0: that means that there is none (RFC 768) */
	memset(packet, 0, 30);
	h.csum_offset = 6;
	put_ipoib_offload_u16(packet + TCP4, 0xffff);
	memcpy(buf, &h, OFFLOAD_HDR);
	cr_assert_eq(offload_out(buf, OFFLOAD_HDR + 30, out, &in), 1);
	cr_expect_eq(get_ipoib_offload_u16(got[1].p + TCP4 + 6), 0xffff);
}

OffloadTest(what_needs_nothing_stays_as_it_is)
{
	memset(buf, 0, OFFLOAD_HDR);
	memset(packet, 0xa5, 100);
	cr_assert_eq(offload_out(buf, OFFLOAD_HDR + 100, out, &in), 1);
	cr_expect(got[0].len == 100 && got[0].p[0] == 0xa5 && got[0].p[99] == 0xa5);
}

OffloadTest(headers_that_do_not_go_with_their_packet_are_refused)
{
	struct virtio_net_hdr good, h;
	size_t n = long_one(false, 3000, 0x10);

	memcpy(&good, buf, sizeof good);
#define REFUSED(change)                                                                            \
	do {                                                                                       \
		h = good;                                                                          \
		change;                                                                            \
		memcpy(buf, &h, sizeof h);                                                         \
		cr_expect_eq(offload_out(buf, n, out, &in), -1, #change);                          \
	} while (0)
	REFUSED(h.gso_size = 0);
	REFUSED(h.csum_start = 0);
	REFUSED(h.csum_start = 24);
	REFUSED(h.csum_start = 0xffff);
	REFUSED(h.csum_offset = 6);
	REFUSED(h.gso_type = VIRTIO_NET_HDR_GSO_TCPV6);
	REFUSED(h.gso_type = VIRTIO_NET_HDR_GSO_UDP);
	REFUSED((h.gso_type = VIRTIO_NET_HDR_GSO_NONE, h.csum_start = 0xfff0));
	REFUSED((h.gso_type = VIRTIO_NET_HDR_GSO_NONE, h.csum_start = 3000, h.csum_offset = 51));
#undef REFUSED
	memcpy(buf, &good, sizeof good);
	for (size_t len = 0; len <= OFFLOAD_HDR + TCP4 + HEAD; len++)
		cr_expect_eq(offload_out(buf, len, out, &in), -1, "%zu octets", len);
	packet[TCP4 + 12] = 4 << 4;
	cr_expect_eq(offload_out(buf, n, out, &in), -1, "a TCP header of 16 octets");
	cr_expect_eq(n_got, 0);
}

static void check_joining(bool v6)
{
	size_t l4 = v6 ? TCP6 : TCP4, n = long_one(v6, 20 * MSS + 5, 0x18), len = n - OFFLOAD_HDR;
	uint8_t *all = malloc(n);

	memcpy(all, packet, len);
	cr_assert_eq(offload_out(buf, n, out, &in), 21);
	bring_in(0);
	cr_assert_eq(n_got, 1);
	cr_expect_eq(got[0].h.flags, VIRTIO_NET_HDR_F_NEEDS_CSUM);
	cr_expect_eq(got[0].h.gso_type, v6 ? VIRTIO_NET_HDR_GSO_TCPV6 : VIRTIO_NET_HDR_GSO_TCPV4);
	cr_expect(got[0].h.gso_size == MSS && got[0].h.hdr_len == l4 + HEAD);
	cr_expect(got[0].h.csum_start == l4 && got[0].h.csum_offset == 16);
	cr_expect(got[0].len == len && !memcmp(got[0].p, all, len)); /* as it was before */
	free(all);
}

OffloadTest(segments_of_ipv4_are_put_together)
{
	check_joining(false);
}

OffloadTest(segments_of_ipv6_are_put_together)
{
	check_joining(true);
}

OffloadTest(a_gap_and_a_push_end_a_packet)
{
	cr_assert_eq(offload_out(buf, long_one(false, 8 * MSS, 0x10), out, &in), 8);
	bring_in(1 << 3);
	cr_assert_eq(n_got, 2);
	cr_expect(got[0].len == TCP4 + HEAD + 3 * MSS && got[1].len == TCP4 + HEAD + 4 * MSS);
	cr_expect_eq(get_ipoib_offload_u32(got[1].p + TCP4 + 4), FIRST + 4 * MSS);

	n_got = 0;
	cr_assert_eq(offload_out(buf, long_one(false, 4 * MSS, 0x18), out, &in), 4);
	got[1].p[TCP4 + 13] |= 8; /* PSH, and the checksum for it */
	put_ipoib_offload_u16(got[1].p + TCP4 + 16,
			      get_ipoib_offload_u16(got[1].p + TCP4 + 16) - 8);
	cr_assert(is_checksum_right(got[1].p, got[1].len));
	bring_in(0);
	cr_assert_eq(n_got, 2);
	cr_expect(got[0].len == TCP4 + HEAD + 2 * MSS && got[1].len == got[0].len);
}

/* Change octet @at of the third of six; @fix its checksum.  Return: how many come out. */
static unsigned with_change(size_t at, uint8_t bit, bool fix)
{
	uint8_t *p;

	n_got = 0;
	cr_assert_eq(offload_out(buf, long_one(false, 6 * MSS, 0x10), out, &in), 6);
	p = got[2].p;
	p[at] ^= bit;
	if (fix) {
		put_ipoib_offload_u16(p + 10, 0);
		put_ipoib_offload_u16(p + 10, ~sum_plainly(0, p, TCP4) & 0xffff);
		put_ipoib_offload_u16(p + TCP4 + 16, 0);
		put_ipoib_offload_u16(p + TCP4 + 16, ~sum_plainly(pseudo(p, got[2].len), p + TCP4,
								  got[2].len - TCP4) &
							     0xffff);
	}
	bring_in(0);
	return n_got;
}

/* In front of, it, behind: nothing overtakes, and what is wrong stays visible. */
OffloadTest(segments_that_differ_stay_apart)
{
	static const size_t header[] = { 1,	   8,	     12,	19,	   TCP4,
					 TCP4 + 3, TCP4 + 8, TCP4 + 14, TCP4 + 18, TCP4 + 31 };

	for (unsigned i = 0; i < sizeof header / sizeof *header; i++) {
		cr_expect_eq(with_change(header[i], 1, true), 3, "octet %zu", header[i]);
		cr_expect_eq(got[0].len, TCP4 + HEAD + 2 * MSS);
		cr_expect_eq(got[1].len, TCP4 + HEAD + MSS);
		cr_expect_eq(got[2].len, TCP4 + HEAD + 3 * MSS);
		cr_expect(!got[1].h.gso_type && got[1].h.flags, "octet %zu", header[i]);
	}
	for (unsigned flag = 1; flag < 0x100; flag <<= 1)
		if (flag != 8 && flag != 0x10)
			cr_expect_eq(with_change(TCP4 + 13, (uint8_t)flag, true), 3, "flag %02x",
				     flag);
	cr_expect_eq(with_change(4, 1, true), 1); /* the identification, under Don't Fragment */
	cr_expect_eq(with_change(500, 1, false), 3, "a wrong checksum");
	cr_expect_eq(got[1].h.flags, 0);
	cr_expect(!is_checksum_right(got[1].p, got[1].len)); /* the kernel sees that */
	cr_expect_eq(with_change(9, 1, true), 3, "another protocol");
	cr_expect_eq(got[1].h.flags, 0);
	cr_expect_eq(with_change(6, 0x20, true), 3, "a fragment");
	cr_expect_eq(got[1].h.flags, 0);
}

OffloadTest(long_messages_pass_without_a_copy_of_their_own)
{
	size_t len = tcp(packet, false, 60000, 0x10);

	put_ipoib_offload_u16(packet + TCP4 + 16,
			      ~sum_plainly(0, packet + TCP4, len - TCP4) & 0xffff);
	cr_assert(is_checksum_right(packet, len));
	offload_in(&in, packet, len);
	cr_assert_eq(n_got, 1); /* without a flush */
	cr_expect(got[0].len == len && got[0].h.flags == VIRTIO_NET_HDR_F_NEEDS_CSUM &&
		  !got[0].h.gso_type);
	cr_expect_eq(get_ipoib_offload_u16(got[0].p + TCP4 + 16), pseudo(packet, len));
	put_ipoib_offload_u16(got[0].p + TCP4 + 16, get_ipoib_offload_u16(packet + TCP4 + 16));
	cr_expect(!memcmp(got[0].p, packet, len));
}

/* Whatever it is: each octet goes through, and no packet is longer than one can be. */
OffloadTest(any_octets_come_out_again)
{
	uint8_t p[400];
	size_t put = 0, taken = 0, len;

	for (unsigned i = 0; i < 30000; i++) {
		len = tcp(p, i & 1, draw_ipoib_offload_random() % 200u, 0x10);
		for (unsigned k = draw_ipoib_offload_random() % 4u; k; k--)
			p[draw_ipoib_offload_random() % len] = draw_ipoib_offload_random();
		len -= draw_ipoib_offload_random() % 8u == 0 ? draw_ipoib_offload_random() % len
							     : 0;
		n_got = 0;
		offload_in(&in, p, len);
		put += len;
		for (unsigned k = 0; k < n_got; k++) {
			cr_assert_leq(got[k].len, OFFLOAD_PACKET);
			taken += got[k].len;
		}
		cr_assert_leq(in.len, OFFLOAD_PACKET);
	}
	n_got = 0;
	offload_in_flush(&in);
	taken += n_got ? got[0].len : 0;
	cr_expect_leq(taken, put);
	cr_expect_gt(taken, put / 2);
}
