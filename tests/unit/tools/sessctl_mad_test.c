/* SPDX-License-Identifier: BSD-2-Clause */
/* sessctl: CM messages as JSON and text, and captures of them. */
#include "ipoib/show/capture.h"
#include "ipoib/show/madtext.h"
#include <criterion/criterion.h>
#include <errno.h>
#include <stdlib.h>
#include <endian.h>
#include <string.h>

static char why[300];

/* xorshift: the same numbers in every run */
static uint64_t draw_sessctl_mad_random(uint64_t *s)
{
	*s ^= *s << 13;
	*s ^= *s >> 7;
	*s ^= *s << 17;
	return *s;
}

/* A message of random octets; information lengths are the one thing that has illegal values. */
static void random_mad(struct ddps_cm_mad *mad, uint8_t octets[DDPS_CM_MAD_LEN], uint16_t attr,
		       uint64_t *seed)
{
	struct ddps_cm_mad hdr;

	ddps_cm_mad_init(&hdr, attr, draw_sessctl_mad_random(seed));
	cr_assert_eq(ddps_cm_mad_encode(octets, &hdr), 0);
	for (size_t i = DDPS_CM_HDR_LEN; i < DDPS_CM_MAD_LEN; i++)
		octets[i] = (uint8_t)draw_sessctl_mad_random(seed);
	if (attr == DDPS_CM_REJ)
		octets[DDPS_CM_HDR_LEN + 9] = 72 << 1;
	if (attr == DDPS_CM_APR)
		octets[DDPS_CM_HDR_LEN + 8] = 72;
	if (attr == DDPS_CM_SIDR_REP)
		octets[DDPS_CM_HDR_LEN + 5] = 72;
	cr_assert_eq(ddps_cm_mad_decode(mad, octets, DDPS_CM_MAD_LEN), 0);
	cr_assert_eq(ddps_cm_mad_encode(octets, mad), 0); /* reserved fields to zero */
}

Test(sessctl_mad, every_message_goes_through_json)
{
	uint8_t octets[DDPS_CM_MAD_LEN], back[DDPS_CM_MAD_LEN];
	struct ddps_cm_mad mad, again;
	uint64_t seed = 4755;

	for (uint16_t attr = DDPS_CM_REQ; attr <= DDPS_CM_APR; attr++)
		for (int i = 0; i < 50; i++) {
			json_t *j = json_object(), *parsed;
			char *text;

			random_mad(&mad, octets, attr, &seed);
			madtext_to_json(j, &mad);
			text = json_dumps(j, JSON_COMPACT);
			parsed = json_loads(text, 0, NULL);
			cr_assert_eq(madtext_from_json(&again, parsed, why, sizeof why), 0,
				     "%s: %s", ddps_cm_attr_name(attr), why);
			cr_assert_eq(ddps_cm_mad_encode(back, &again), 0);
			cr_assert_arr_eq(back, octets, DDPS_CM_MAD_LEN, "%s",
					 ddps_cm_attr_name(attr));
			free(text);
			json_decref(parsed);
			json_decref(j);
		}
}

Test(sessctl_mad, every_field_is_in_the_text)
{
	uint8_t octets[DDPS_CM_MAD_LEN];
	struct ddps_cm_mad mad;
	uint64_t seed = 1;

	for (uint16_t attr = DDPS_CM_REQ; attr <= DDPS_CM_APR; attr++) {
		const struct ddps_cm_field *f = ddps_cm_fields(attr);
		char *text = NULL, label[80];
		size_t len;
		FILE *out = open_memstream(&text, &len);

		random_mad(&mad, octets, attr, &seed);
		madtext_print(out, &mad);
		fclose(out);
		for (; f->name; f++) {
			snprintf(label, sizeof label, "\n  %s ", f->name);
			cr_expect(!*f->name || strstr(text, label), "%s: %s",
				  ddps_cm_attr_name(attr), f->name);
		}
		free(text);
	}
}

static void expect_bad_sessctl_mad(const char *json, const char *says)
{
	json_t *j = json_loads(json, 0, NULL);
	struct ddps_cm_mad mad;

	cr_assert(j, "%s", json);
	why[0] = 0;
	cr_expect_eq(madtext_from_json(&mad, j, why, sizeof why), -1, "%s", json);
	cr_expect(strstr(why, says), "%s: %s", json, why);
	json_decref(j);
}

Test(sessctl_mad, bad_json)
{
	expect_bad_sessctl_mad("{}", "\"message\"");
	expect_bad_sessctl_mad("{\"message\":\"RTS\"}", "\"message\"");
	expect_bad_sessctl_mad("{\"message\":3}", "\"message\"");
	expect_bad_sessctl_mad("{\"message\":\"REQ\",\"field\":{}}", "unknown member \"field\"");
	expect_bad_sessctl_mad("{\"message\":\"REQ\",\"fields\":[]}",
			       "\"fields\" is not an object");
	expect_bad_sessctl_mad("{\"message\":\"REQ\",\"fields\":{\"reason\":1}}",
			       "REQ has no field 'reason'");
	expect_bad_sessctl_mad("{\"message\":\"REP\",\"fields\":{\"\":1}}", "REP has no field ''");
	expect_bad_sessctl_mad("{\"message\":\"REQ\",\"fields\":{\"qpn\":16777216}}", "24 bits");
	expect_bad_sessctl_mad("{\"message\":\"REQ\",\"fields\":{\"qpn\":-1}}", "neither");
	expect_bad_sessctl_mad("{\"message\":\"REQ\",\"fields\":{\"qpn\":1.5}}", "neither");
	expect_bad_sessctl_mad("{\"message\":\"REQ\",\"fields\":{\"qpn\":\"0x\"}}", "24 bits");
	expect_bad_sessctl_mad("{\"message\":\"REP\",\"fields\":{\"vendor_id\":16777216}}",
			       "24 bits");
	expect_bad_sessctl_mad("{\"message\":\"RTU\",\"fields\":{\"private_data\":\"0\"}}",
			       "224 octets");
	expect_bad_sessctl_mad("{\"message\":\"REQ\",\"fields\":{\"primary.local_gid\":\"fe80:\"}}",
			       "GID");
	expect_bad_sessctl_mad("{\"message\":\"REQ\",\"header\":{\"attr_id\":17}}", "0x0011");
	expect_bad_sessctl_mad("{\"message\":\"REQ\",\"header\":{\"status\":65536}}", "16 bits");
}

Test(sessctl_mad, short_private_data_is_padded)
{
	struct ddps_cm_mad mad;

	ddps_cm_mad_init(&mad, DDPS_CM_RTU, 1);
	memset(mad.u.rtu.private_data, 0xff, sizeof mad.u.rtu.private_data);
	cr_assert_eq(madtext_set(&mad, ddps_cm_fields(DDPS_CM_RTU), "private_data", "0102", why,
				 sizeof why),
		     0);
	cr_expect_eq(mad.u.rtu.private_data[1], 2);
	for (size_t i = 2; i < sizeof mad.u.rtu.private_data; i++)
		cr_assert_eq(mad.u.rtu.private_data[i], 0);
}

/* ---- captures ---- */

#define FILE_LEN (CAPTURE_HEADER + 2 * CAPTURE_RECORD)

/* Two messages, the second of another class. */
static void two_records(uint8_t file[FILE_LEN], const uint8_t mad[DDPS_CM_MAD_LEN])
{
	uint8_t other[DDPS_CM_MAD_LEN];
	struct capture_mad m = { .time_ns = 1700000000123456789ull,
				 .slid = 3,
				 .dlid = 0xbfff,
				 .pkey = 0x8001,
				 .sl = 5,
				 .mad = mad };

	capture_encode_header(file);
	capture_encode(file + CAPTURE_HEADER, &m);
	memcpy(other, mad, sizeof other);
	other[1] = 3;
	m.mad = other;
	capture_encode(file + CAPTURE_HEADER + CAPTURE_RECORD, &m);
}

Test(sessctl_mad, capture_there_and_back)
{
	uint8_t octets[DDPS_CM_MAD_LEN], file[FILE_LEN];
	struct ddps_cm_mad mad;
	struct capture_reader r;
	struct capture_mad m;
	uint64_t seed = 7;

	random_mad(&mad, octets, DDPS_CM_REQ, &seed);
	two_records(file, octets);
	cr_assert(capture_is(file, sizeof file));
	cr_assert_eq(capture_open(&r, file, sizeof file, why, sizeof why), 0, "%s", why);
	cr_assert_eq(capture_next(&r, &m), 1);
	cr_expect_eq(m.time_ns, 1700000000123456789ull);
	cr_expect_eq(m.slid, 3);
	cr_expect_eq(m.dlid, 0xbfff);
	cr_expect_eq(m.pkey, 0x8001);
	cr_expect_eq(m.sl, 5);
	cr_expect_arr_eq(m.mad, octets, DDPS_CM_MAD_LEN);
	cr_expect_eq(capture_next(&r, &m), 0, "a MAD of another class is skipped");
	cr_expect_eq(r.skipped, 1);
}

/* Every length: an error exactly where a record is cut; exact buffers for AddressSanitizer. */
Test(sessctl_mad, capture_cut_anywhere)
{
	uint8_t octets[DDPS_CM_MAD_LEN], file[FILE_LEN];
	struct ddps_cm_mad mad;
	uint64_t seed = 7;

	random_mad(&mad, octets, DDPS_CM_REP, &seed);
	two_records(file, octets);
	for (size_t len = 0; len <= FILE_LEN; len++) {
		uint8_t *copy = malloc(len ? len : 1);
		struct capture_reader r;
		struct capture_mad m;
		int res = 1, n = -1;

		memcpy(copy, file, len);
		cr_assert_eq(capture_is(copy, len), len >= 4);
		cr_assert_eq(capture_open(&r, copy, len, why, sizeof why),
			     len < CAPTURE_HEADER ? -1 : 0);
		for (; len >= CAPTURE_HEADER && res == 1; n++)
			res = capture_next(&r, &m);
		if (len >= CAPTURE_HEADER) {
			cr_assert_eq(res, (len - CAPTURE_HEADER) % CAPTURE_RECORD ? -1 : 0);
			cr_assert_eq(n, len >= CAPTURE_HEADER + CAPTURE_RECORD);
		}
		free(copy);
	}
}

/* A record that is whole, but the packet in it is cut: skipped, never read beyond its end. */
Test(sessctl_mad, capture_with_short_packets)
{
	uint8_t octets[DDPS_CM_MAD_LEN], file[FILE_LEN];
	struct ddps_cm_mad mad;
	uint64_t seed = 7;

	random_mad(&mad, octets, DDPS_CM_REP, &seed);
	two_records(file, octets);
	for (unsigned cut = 1; cut <= CAPTURE_RECORD - 16; cut++) {
		size_t len = CAPTURE_HEADER + CAPTURE_RECORD - cut;
		uint8_t *copy = malloc(len);
		struct capture_reader r;
		struct capture_mad m;
		bool whole = cut <= 6; /* only the CRCs are missing */

		memcpy(copy, file, len);
		copy[CAPTURE_HEADER + 10] = (uint8_t)((CAPTURE_RECORD - 16 - cut) >> 8);
		copy[CAPTURE_HEADER + 11] = (uint8_t)(CAPTURE_RECORD - 16 - cut);
		cr_assert_eq(capture_open(&r, copy, len, why, sizeof why), 0);
		cr_assert_eq(capture_next(&r, &m), whole, "cut %u", cut);
		cr_assert_eq(r.skipped, !whole);
		free(copy);
	}
}

/* What other writers do: little endian, microseconds, extension headers, a GRH. */
Test(sessctl_mad, capture_by_others)
{
	static const uint8_t head[] = { 0xd4, 0xc3, 0xb2, 0xa1, 2, 0, 4, 0, 0,	 0, 0, 0,
					0,    0,    0,	  0,	0, 0, 1, 0, 197, 0, 0, 0 };
	static const size_t extra = 16 + 40; /* two extension headers, GRH */
	uint8_t octets[DDPS_CM_MAD_LEN], file[FILE_LEN], *copy, *at;
	size_t body = CAPTURE_RECORD - 16, len = sizeof head + CAPTURE_RECORD + extra;
	struct ddps_cm_mad mad;
	struct capture_reader r;
	struct capture_mad m;
	uint64_t seed = 7;

	random_mad(&mad, octets, DDPS_CM_DREQ, &seed);
	two_records(file, octets);
	copy = calloc(1, len);
	memcpy(copy, head, sizeof head);
	at = copy + sizeof head;
	at[0] = 9; /* 9 s and 7 us */
	at[4] = 7;
	at[8] = (uint8_t)(body + extra);
	at[9] = (uint8_t)((body + extra) >> 8);
	at += 16;
	memcpy(at, file + CAPTURE_HEADER + 16, 16); /* ERF */
	at[8] |= 0x80;
	at[16] = 0x80;
	memcpy(at + 32, file + CAPTURE_HEADER + 32, 8); /* LRH */
	at[33] |= 3;
	memcpy(at + 80, file + CAPTURE_HEADER + 40, body - 24);
	cr_assert_eq(capture_open(&r, copy, len, why, sizeof why), 0, "%s", why);
	cr_assert_eq(capture_next(&r, &m), 1);
	cr_expect_eq(m.time_ns, 9000007000ull);
	cr_expect_arr_eq(m.mad, octets, DDPS_CM_MAD_LEN);
	free(copy);
}

Test(sessctl_mad, capture_of_another_kind)
{
	uint8_t header[CAPTURE_HEADER];
	struct capture_reader r;

	capture_encode_header(header);
	header[23] = 246;
	cr_expect_eq(capture_open(&r, header, sizeof header, why, sizeof why), -1);
	cr_expect(strstr(why, "246"), "%s", why);
	memcpy(header, "\n\r\r\n", 4);
	cr_expect(capture_is(header, sizeof header));
	cr_expect_not(capture_is("0107", 4));
}

/* The packet in UDP: BTH, DETH and MAD are those of the record's InfiniBand packet. */
static size_t put_udp4(uint8_t *out, const uint8_t *record)
{
	static const uint8_t ip[28] = { 0x45, 0, 1, 52,	 0, 0, 0,  0,	 64,   17,   0,	   0, 192,
					0,    2, 3, 192, 0, 2, 66, 0x12, 0xb7, 0x12, 0xb7, 1, 32 };

	memcpy(out, ip, sizeof ip);
	memcpy(out + sizeof ip, record + 16 + 16 + 8, 12 + 8 + 256 + 4);
	return sizeof ip + 12 + 8 + 256 + 4;
}

/* @head octets of a link layer, then IP. */
static void expect_link(unsigned link, const uint8_t *before, size_t head, bool good)
{
	uint8_t octets[DDPS_CM_MAD_LEN], file[FILE_LEN], got[24 + 16 + 64 + 320] = { 0 };
	uint8_t *at = got + 24 + 16;
	struct ddps_cm_mad mad;
	struct capture_reader r;
	struct capture_mad m;
	uint64_t seed = 7;
	size_t len;

	random_mad(&mad, octets, DDPS_CM_REP, &seed);
	two_records(file, octets);
	memcpy(got, file, 24);
	got[22] = (uint8_t)(link >> 8);
	got[23] = (uint8_t)link;
	if (head)
		memcpy(at, before, head);
	len = head + put_udp4(at + head, file + CAPTURE_HEADER);
	got[24 + 10] = got[24 + 14] = (uint8_t)(len >> 8);
	got[24 + 11] = got[24 + 15] = (uint8_t)len;
	for (size_t cut = 0; cut <= len; cut++) { /* exact buffers for AddressSanitizer */
		uint8_t *copy = malloc(40 + cut);

		memcpy(copy, got, 40 + cut);
		copy[34] = (uint8_t)(cut >> 8);
		copy[35] = (uint8_t)cut;
		cr_assert_eq(capture_open(&r, copy, 40 + cut, why, sizeof why), 0, "%s", why);
		cr_assert_eq(capture_next(&r, &m), good && cut >= len - 4, "link %u, %zu of %zu",
			     link, cut, len);
		free(copy);
	}
	cr_assert_eq(capture_open(&r, got, 40 + len, why, sizeof why), 0, "%s", why);
	if (!good)
		return;
	cr_assert_eq(capture_next(&r, &m), 1, "link %u", link);
	cr_expect(m.slid == 3 && m.dlid == 66 && m.pkey == 0x8001, "link %u", link);
	cr_expect_arr_eq(m.mad, octets, DDPS_CM_MAD_LEN);
}

/* What tcpdump writes on the interfaces of a subnet in UDP. */
Test(sessctl_mad, contact_35_captures_of_ip)
{
	static const uint8_t eth[14] = { [12] = 8 }, sll[16] = { [14] = 8 }, sll2[20] = { 8 };
	static const uint8_t vlan[22] = { [12] = 0x88, 0xa8, 0, 5, 0x81, 0, 0, 6, 8 };
	static const uint8_t arp[14] = { [12] = 8, 6 }, null[4] = { 2 };

	expect_link(101, NULL, 0, true);
	expect_link(1, eth, sizeof eth, true);
	expect_link(1, vlan, 22, true);
	expect_link(113, sll, sizeof sll, true);
	expect_link(276, sll2, sizeof sll2, true);
	expect_link(0, null, sizeof null, true);
	expect_link(1, arp, sizeof arp, false);
}

static size_t put_block(uint8_t *out, bool little, uint32_t type, const void *body, size_t len)
{
	uint32_t head[2] = { type, (uint32_t)(12 + ((len + 3) & ~(size_t)3)) };
	const uint32_t size = head[1];

	for (unsigned i = 0; i < 2; i++)
		head[i] = little ? htole32(head[i]) : htobe32(head[i]);
	memset(out, 0, size);
	memcpy(out, head, 8);
	memcpy(out + 8, body, len);
	memcpy(out + size - 4, &head[1], 4);
	return size;
}

/* A section with two interfaces and a block that nobody knows, in either order of octets. */
static size_t pcapng(uint8_t *out, bool little, const uint8_t *record)
{
	const uint8_t le[] = { 0x4d, 0x3c, 0x2b, 0x1a, 1,   0,	 0,   0,
			       255,  255,  255,	 255,  255, 255, 255, 255 };
	const uint8_t be[] = { 0x1a, 0x2b, 0x3c, 0x4d, 0,   1,	 0,   0,
			       255,  255,  255,	 255,  255, 255, 255, 255 };
	const uint8_t wlan[] = { little ? 105 : 0, little ? 0 : 105, 0, 0, 0, 0, 0, 0 };
	const uint8_t raw[] = { little ? 101 : 0,
				little ? 0 : 101,
				0,
				0,
				0,
				0,
				0,
				0,
				little ? 9 : 0,
				little ? 0 : 9,
				little ? 1 : 0,
				little ? 0 : 1,
				9,
				0,
				0,
				0,
				0,
				0,
				0,
				0 };
	uint8_t body[20 + 320] = { 0 }, *at = out;
	const uint64_t t = 1700000000123456789ull;
	uint32_t words[5] = { 1, (uint32_t)(t >> 32), (uint32_t)t };

	at += put_block(at, little, 0x0a0d0d0a, little ? le : be, sizeof le);
	at += put_block(at, little, 1, wlan, sizeof wlan);
	at += put_block(at, little, 1, raw, sizeof raw);
	at += put_block(at, little, 0xbad, "what is that?", 13);
	words[3] = words[4] = (uint32_t)put_udp4(body + 20, record);
	for (unsigned i = 0; i < 5; i++) {
		uint32_t w = little ? htole32(words[i]) : htobe32(words[i]);

		memcpy(body + 4 * i, &w, 4);
	}
	at += put_block(at, little, 6, body, 20 + words[3]);
	memset(body + (little ? 0 : 3), 0, 1); /* the same of the other interface */
	at += put_block(at, little, 6, body, 20 + words[3]);
	return (size_t)(at - out);
}

/* What Wireshark writes. */
Test(sessctl_mad, contact_35_pcapng)
{
	uint8_t octets[DDPS_CM_MAD_LEN], file[FILE_LEN], got[2000];
	struct ddps_cm_mad mad;
	struct capture_reader r;
	struct capture_mad m;
	uint64_t seed = 7;
	size_t len = 0;

	random_mad(&mad, octets, DDPS_CM_REQ, &seed);
	two_records(file, octets);
	for (unsigned little = 0; little < 2; little++) /* two sections, the second the other way */
		len += pcapng(got + len, little, file + CAPTURE_HEADER);
	for (size_t cut = 0; cut <= len; cut++) {
		uint8_t *copy = malloc(cut ? cut : 1);
		unsigned n = 0;
		int res = 1;

		memcpy(copy, got, cut);
		if (capture_open(&r, copy, cut, why, sizeof why)) {
			cr_assert_lt(cut, 4);
		} else {
			for (; (res = capture_next(&r, &m)) == 1; n++) {
				cr_expect_eq(m.time_ns, 1700000000123456789ull);
				cr_expect(m.slid == 3 && m.dlid == 66);
				cr_expect_arr_eq(m.mad, octets, DDPS_CM_MAD_LEN);
			}
			cr_assert(cut < len ? n < 3 : n == 2 && !res && r.skipped == 2, "%zu: %u",
				  cut, n);
		}
		free(copy);
	}
}

/* ---- captured frames ---- */

#define RECORD_HEAD 32 /* pcap's and ERF's headers */

static uint8_t *write_frame(const struct capture_frame *m, size_t *size)
{
	char *buf = NULL;
	FILE *f = open_memstream(&buf, size);

	cr_assert_not_null(f);
	cr_assert_eq(capture_write_frame(f, m), 0);
	cr_assert_eq(fclose(f), 0);
	return (uint8_t *)buf;
}

/* LRH, GRH, BTH and DETH of a datagram, its padding, and the length everywhere. */
Test(sessctl_mad, captured_datagram)
{
	static const uint8_t gid[2][16] = { { 0xfe, 0x80, [15] = 1 }, { 0xff, 0x12, [15] = 2 } };
	uint8_t frame[4097] = { 8, 0, 0, 0, 0x45 };
	struct capture_frame m = { .slid = 1,
				   .dlid = 0xc000,
				   .pkey = 0xffff,
				   .from_qpn = 0x48,
				   .to_qpn = 0xffffff,
				   .qkey = 0x0b1b,
				   .from = gid[0],
				   .to = gid[1],
				   .frame = frame };
	size_t size;

	for (m.len = 20; m.len < 24; m.len++) {
		unsigned pad = (unsigned)-m.len & 3;
		size_t ib = 8 + 40 + 12 + 8 + m.len + pad + 4 + 2;
		uint8_t *p = write_frame(&m, &size), *q = p + RECORD_HEAD;

		cr_assert_eq(size, RECORD_HEAD + ib);
		cr_expect_eq(p[10] << 8 | p[11], (int)(16 + ib), "pcap's length");
		cr_expect_eq(p[30] << 8 | p[31], (int)ib, "ERF's length on the wire");
		cr_expect_eq(q[1], 3, "a GRH follows");
		cr_expect_eq(q[4] << 8 | q[5], (int)(ib - 2) / 4);
		cr_expect_eq(q[8 + 4] << 8 | q[8 + 5], (int)(ib - 8 - 40 - 2));
		cr_expect_arr_eq(q + 8 + 8, gid, 32);
		cr_expect_eq(q[48], 0x64);
		cr_expect_eq(q[49], pad << 4);
		cr_expect_arr_eq(q + 52, ((uint8_t[]){ 0, 0xff, 0xff, 0xff }), 4);
		cr_expect_arr_eq(q + 60, ((uint8_t[]){ 0, 0, 0x0b, 0x1b, 0, 0, 0, 0x48 }), 8);
		cr_expect_arr_eq(q + 68, frame, m.len);
		free(p);
	}
	/* the largest, whole; one more is said to be none */
	m.len = 4096;
	free(write_frame(&m, &size));
	cr_expect_eq(size, RECORD_HEAD + 8 + 40 + 12 + 8 + 4096 + 4 + 2);
	m.len = 4097;
	cr_expect_eq(capture_write_frame(stderr, &m), -1);
	cr_expect_eq(errno, EMSGSIZE);
}

/* A message becomes as many packets as a path of 2048 octets makes of it. */
Test(sessctl_mad, captured_message)
{
	static const struct {
		size_t len;
		unsigned n;
		uint8_t first, last;
	} rows[] = { { 2047, 1, 0x04, 0x04 }, { 2048, 1, 0x04, 0x04 }, { 2049, 2, 0x00, 0x02 },
		     { 4096, 2, 0x00, 0x02 }, { 4097, 3, 0x00, 0x02 }, { 65524, 32, 0x00, 0x02 } };
	static uint8_t frame[65524];
	struct capture_frame m = { .connected = true, .to_qpn = 0x451, .frame = frame };
	size_t size;

	for (size_t i = 0; i < sizeof(rows) / sizeof(*rows); i++)
		for (int uc = 0; uc < 2; uc++) {
			uint8_t *p, *at, last = 0xff, bit = uc ? 0x20 : 0;
			unsigned n = 0;

			m.len = rows[i].len;
			m.uc = uc;
			p = at = write_frame(&m, &size);
			cr_expect_eq(at[RECORD_HEAD + 8], rows[i].first | bit);
			for (; at < p + size; n++) {
				last = at[RECORD_HEAD + 8];
				cr_expect(!n || last == (rows[i].last | bit) ||
					  last == (0x01 | bit));
				cr_expect_eq(at[RECORD_HEAD + 1], 2, "no GRH");
				at += 16 + (at[10] << 8 | at[11]);
			}
			cr_expect_eq(at, p + size);
			cr_expect_eq(n, rows[i].n, "%zu octets", m.len);
			cr_expect_eq(last, rows[i].last | bit);
			free(p);
		}
	/* on a path with another MTU */
	m.mtu = 4096;
	m.len = 4097;
	free(write_frame(&m, &size));
	cr_expect_eq(size, 2 * (RECORD_HEAD + 8 + 12 + 4 + 2) + 4096 + 4);
}
