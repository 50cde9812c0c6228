/* SPDX-License-Identifier: BSD-2-Clause */
/* Link-layer addresses, service IDs and CM private data: octets and text. */
#include "ipoib_cm/wire/wire.h"
#include "ipoib_cm/ports/port_sa.h"
#include <criterion/criterion.h>
#include <ddpsess/ipoib_cm.h>
#include <stdlib.h>
#include <string.h>

static const uint8_t lladdr_a[20] = { 0x80, 0, 0,    0x4a, 0xfe, 0x80, 0, 0, 0,	   0,
				      0,    0, 0x00, 0x02, 0xc9, 0x03, 0, 0, 0x10, 0x01 };

static struct ddps_ipoib_lladdr make_ipoib_addr(uint8_t flags, uint32_t qpn, const char *gid)
{
	struct ddps_ipoib_lladdr a = { .flags = flags, .qpn = qpn };

	cr_assert_eq(ddps_ipoib_gid_parse(a.gid, gid), 0);
	return a;
}

Test(ipoib_addr, lladdr_matches_the_worked_example,
     .description = "4755-3.1-1 4755-3.1-8 4391-9.1.1-4")
{
	struct ddps_ipoib_lladdr a = make_ipoib_addr(DDPS_IPOIB_RC, 0x4a, "fe80::2:c903:0:1001"), b;
	uint8_t out[20];

	cr_assert_eq(ddps_ipoib_lladdr_encode(out, &a), 0);
	cr_expect_arr_eq(out, lladdr_a, 20);
	cr_assert_eq(ddps_ipoib_lladdr_decode(&b, out, 20), 0);
	cr_expect_eq(b.flags, DDPS_IPOIB_RC);
	cr_expect_eq(b.qpn, 0x4a);
	cr_expect_arr_eq(b.gid, a.gid, 16);
}

Test(ipoib_addr, lladdr_ignores_reserved_flags_and_does_not_send_them,
     .description = "4755-3.1-2 4755-3.1-3 4755-3.1-4 4755-3.1-7 4391-14-2")
{
	struct ddps_ipoib_lladdr a;
	uint8_t in[20], out[20];

	memcpy(in, lladdr_a, 20);
	in[0] = 0xff;
	cr_assert_eq(ddps_ipoib_lladdr_decode(&a, in, 20), 0);
	cr_expect_eq(a.flags, DDPS_IPOIB_RC | DDPS_IPOIB_UC);
	cr_assert_eq(ddps_ipoib_lladdr_encode(out, &a), 0);
	cr_expect_eq(out[0], 0xc0);
	a.flags = 0; /* datagrams only */
	cr_assert_eq(ddps_ipoib_lladdr_encode(out, &a), 0);
	cr_expect_eq(out[0], 0);
	for (unsigned bit = 1; bit <= 0x20; bit <<= 1) {
		a.flags = (uint8_t)bit;
		cr_expect_eq(ddps_ipoib_lladdr_encode(out, &a), DDPS_E_INVAL);
	}
}

Test(ipoib_addr, lladdr_qpn_has_24_bits)
{
	struct ddps_ipoib_lladdr a = make_ipoib_addr(0, 0xffffff, "::1");
	uint8_t out[20];

	cr_expect_eq(ddps_ipoib_lladdr_encode(out, &a), 0);
	a.qpn++;
	cr_expect_eq(ddps_ipoib_lladdr_encode(out, &a), DDPS_E_INVAL);
}

Test(ipoib_addr, lladdr_refuses_every_truncation)
{
	struct ddps_ipoib_lladdr a = make_ipoib_addr(DDPS_IPOIB_UC, 7, "::2"), was = a;

	for (size_t n = 0; n < 20; n++) {
		uint8_t *cut = malloc(n ? n : 1);

		memcpy(cut, lladdr_a, n);
		cr_expect_eq(ddps_ipoib_lladdr_decode(&a, cut, n), DDPS_E_TRUNCATED);
		free(cut);
	}
	cr_expect_arr_eq(&a, &was, sizeof(a));
}

Test(ipoib_addr, compares_qpn_before_gid_and_never_flags,
     .description = "4755-3.3-4 4755-3.3-7 4755-3.3-8")
{
	struct ddps_ipoib_lladdr a = make_ipoib_addr(DDPS_IPOIB_RC, 0x4a, "fe80::2:c903:0:1001");
	struct ddps_ipoib_lladdr b = make_ipoib_addr(DDPS_IPOIB_RC, 0x49, "fe80::2:c903:0:2002");

	/* example 1: the GID of A is smaller, its QPN larger */
	cr_expect_gt(ddps_ipoib_lladdr_cmp(&a, &b), 0);
	cr_expect_lt(ddps_ipoib_lladdr_cmp(&b, &a), 0);
	/* example 2: equal QPNs */
	b.qpn = 0x4a;
	cr_expect_lt(ddps_ipoib_lladdr_cmp(&a, &b), 0);
	/* example 3: the flags would turn it round */
	a.qpn = 0x49;
	b.qpn = 0x50;
	b.flags = 0;
	cr_expect_lt(ddps_ipoib_lladdr_cmp(&a, &b), 0);
	/* itself, with other flags */
	b = a;
	b.flags ^= 0xc0;
	cr_expect_eq(ddps_ipoib_lladdr_cmp(&a, &b), 0);
}

Test(ipoib_addr, compares_like_memcmp_of_the_octets, .description = "4755-3.3-8")
{
	uint32_t x = 1;

	for (unsigned i = 0; i < 2000; i++) {
		uint8_t raw[2][20];
		struct ddps_ipoib_lladdr a[2];
		int want, got;

		for (unsigned j = 0; j < 40; j++) {
			x = x * 1664525 + 1013904223;
			raw[j / 20][j % 20] = (uint8_t)(x >> 31); /* many equal octets */
		}
		ddps_ipoib_lladdr_decode(&a[0], raw[0], 20);
		ddps_ipoib_lladdr_decode(&a[1], raw[1], 20);
		raw[0][0] = raw[1][0] = 0;
		want = memcmp(raw[0], raw[1], 20);
		got = ddps_ipoib_lladdr_cmp(&a[0], &a[1]);
		cr_assert_eq((want > 0) - (want < 0), (got > 0) - (got < 0), "round %u", i);
	}
}

Test(ipoib_addr, lladdr_text_is_20_octets_with_colons)
{
	static const char text[] = "80:00:00:4a:fe:80:00:00:00:00:00:00:"
				   "00:02:c9:03:00:00:10:01";
	struct ddps_ipoib_lladdr a, b;
	char out[DDPS_IPOIB_LLADDR_TEXT];

	cr_assert_eq(sizeof(text), (size_t)DDPS_IPOIB_LLADDR_TEXT);
	cr_assert_eq(ddps_ipoib_lladdr_parse(&a, text), 0);
	ddps_ipoib_lladdr_decode(&b, lladdr_a, 20);
	cr_expect_eq(a.flags, b.flags);
	cr_expect_eq(ddps_ipoib_lladdr_cmp(&a, &b), 0);
	ddps_ipoib_lladdr_print(out, &a);
	cr_expect_str_eq(out, text);
}

Test(ipoib_addr, lladdr_text_refuses_what_is_not_one)
{
	static const char good[] = "80:00:00:4A:fe:80:00:00:00:00:00:00:00:02:C9:03:00:00:10:01";
	static const char *const bad[] = {
		"",
		"80",
		"80:00:00:4a:fe:80:00:00:00:00:00:00:00:02:c9:03:00:00:10",
		"80:00:00:4a:fe:80:00:00:00:00:00:00:00:02:c9:03:00:00:10:01:",
		"80:00:00:4a:fe:80:00:00:00:00:00:00:00:02:c9:03:00:00:10:01:02",
		"80:00:00:4a:fe:80:00:00:00:00:00:00:00:02:c9:03:00:00:10:0",
		"80-00:00:4a:fe:80:00:00:00:00:00:00:00:02:c9:03:00:00:10:01",
		"80:00:00:4g:fe:80:00:00:00:00:00:00:00:02:c9:03:00:00:10:01",
		"8:00:00:4a:fe:80:00:00:00:00:00:00:00:02:c9:03:00:00:10:01",
	};
	struct ddps_ipoib_lladdr a;

	cr_expect_eq(ddps_ipoib_lladdr_parse(&a, good), 0);
	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++)
		cr_expect_eq(ddps_ipoib_lladdr_parse(&a, bad[i]), DDPS_E_INVAL, "%s", bad[i]);
}

Test(ipoib_addr, flags_have_names)
{
	static const char *const bad[] = { "", "rc,", ",rc", "rcuc", "xx", "rc uc", "ud,rc" };
	char text[DDPS_IPOIB_FLAGS_TEXT];
	uint8_t got;

	for (unsigned f = 0; f < 4; f++) {
		ddps_ipoib_flags_print(text, (uint8_t)(f << 6));
		cr_expect_eq(ddps_ipoib_flags_parse(&got, text), 0, "%s", text);
		cr_expect_eq(got, f << 6, "%s", text);
	}
	ddps_ipoib_flags_print(text, 0xff);
	cr_expect_str_eq(text, "rc,uc");
	cr_expect_eq(ddps_ipoib_flags_parse(&got, "uc,rc"), 0);
	cr_expect_eq(got, 0xc0);
	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++)
		cr_expect_eq(ddps_ipoib_flags_parse(&got, bad[i]), DDPS_E_INVAL, "%s", bad[i]);
}

Test(ipoib_addr, gid_text_is_that_of_an_ipv6_address)
{
	char text[DDPS_IPOIB_GID_TEXT];
	uint8_t gid[16];

	cr_assert_eq(ddps_ipoib_gid_parse(gid, "fe80::2:c903:0:1001"), 0);
	cr_expect_arr_eq(gid, lladdr_a + 4, 16);
	ddps_ipoib_gid_print(text, gid);
	cr_expect_str_eq(text, "fe80::2:c903:0:1001");
	memset(gid, 0xff, 16);
	ddps_ipoib_gid_print(text, gid);
	cr_expect_str_eq(text, "ffff:ffff:ffff:ffff:ffff:ffff:ffff:ffff");
	cr_expect_eq(ddps_ipoib_gid_parse(gid, "fe80::2::1"), DDPS_E_INVAL);
	cr_expect_eq(ddps_ipoib_gid_parse(gid, ""), DDPS_E_INVAL);
}

Test(ipoib_addr, service_id_in_both_forms,
     .description = "4755-3.5-1 4755-3.5-2 4755-3.5-3 4755-3.5-4 4755-3.1-9 4755-3.2-5")
{
	enum ddps_ipoib_sid_form form;
	uint64_t sid;
	uint32_t qpn;

	cr_assert_eq(ddps_ipoib_service_id(&sid, DDPS_IPOIB_SID_RFC, 0x49), 0);
	cr_expect_eq(sid, 0x0100000000000049);
	cr_assert_eq(ddps_ipoib_service_id_split(sid, &form, &qpn), 0);
	cr_expect_eq(form, DDPS_IPOIB_SID_RFC);
	cr_expect_eq(qpn, 0x49);
	cr_assert_eq(ddps_ipoib_service_id(&sid, DDPS_IPOIB_SID_LINUX, 0xffffff), 0);
	cr_expect_eq(sid, 0x1000000000ffffff);
	cr_assert_eq(ddps_ipoib_service_id_split(sid, &form, &qpn), 0);
	cr_expect_eq(form, DDPS_IPOIB_SID_LINUX);
	cr_expect_eq(qpn, 0xffffff);
	cr_expect_eq(ddps_ipoib_service_id(&sid, DDPS_IPOIB_SID_RFC, 0x1000000), DDPS_E_INVAL);
	cr_expect_eq(ddps_ipoib_service_id(&sid, (enum ddps_ipoib_sid_form)2, 1), DDPS_E_INVAL);
}

Test(ipoib_addr, service_id_with_any_other_bit_is_not_ours, .description = "4755-3.5-2 4755-3.5-3")
{
	enum ddps_ipoib_sid_form form;
	uint32_t qpn;

	for (unsigned bit = 24; bit < 64; bit++)
		cr_expect_eq(ddps_ipoib_service_id_split(0x0100000000000049 ^ (uint64_t)1 << bit,
							 &form, &qpn),
			     DDPS_E_PROTOCOL, "bit %u", bit);
	cr_expect_eq(ddps_ipoib_service_id_split(0x0000000000000049, &form, &qpn), DDPS_E_PROTOCOL);
	cr_expect_eq(ddps_ipoib_service_id_split(0x1100000000000049, &form, &qpn), DDPS_E_PROTOCOL);
}

Test(ipoib_addr, service_id_text)
{
	static const char *const bad[] = { "", "0x", "0x1g", "1 ", "0x10000000000000049" };
	char text[DDPS_IPOIB_SERVICE_ID_TEXT];
	uint64_t sid;

	ddps_ipoib_service_id_print(text, 0x0100000000000048);
	cr_expect_str_eq(text, "0x0100000000000048");
	ddps_ipoib_service_id_print(text, 0x1000000000000048);
	cr_expect_str_eq(text, "0x1000000000000048");
	cr_assert_eq(ddps_ipoib_service_id_parse(&sid, text), 0);
	cr_expect_eq(sid, 0x1000000000000048);
	cr_assert_eq(ddps_ipoib_service_id_parse(&sid, "fFffFfffffffffff"), 0);
	cr_expect_eq(sid, UINT64_MAX);
	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++)
		cr_expect_eq(ddps_ipoib_service_id_parse(&sid, bad[i]), DDPS_E_INVAL, "%s", bad[i]);
}

Test(ipoib_addr, private_data_matches_the_worked_examples,
     .description = "4755-6-1 4755-6-2 4755-6-3 4755-5.1-1")
{
	static const uint8_t large[] = { 0, 0, 0, 0x4a, 0, 0, 0xff, 0xf4 };
	static const uint8_t small[] = { 0, 0, 0, 0x4a, 0, 0, 0x08, 0x00 };
	struct ddps_ipoib_priv p = { .qpn = 0x4a, .rx_mtu = 65524 };
	uint8_t out[8];

	cr_assert_eq(ddps_ipoib_priv_encode(out, &p), 0);
	cr_expect_arr_eq(out, large, 8);
	cr_assert_eq(ddps_ipoib_priv_decode(&p, small, 8), 0);
	cr_expect_eq(p.qpn, 0x4a);
	cr_expect_eq(p.rx_mtu, 2048);
	p.qpn = 0x1000000;
	cr_expect_eq(ddps_ipoib_priv_encode(out, &p), DDPS_E_INVAL);
}

Test(ipoib_addr, private_data_ignores_its_reserved_octet, .description = "4755-6-4")
{
	static const uint8_t in[] = { 0xff, 0, 0, 0x4a, 0, 0, 0xff, 0xf4 };
	struct ddps_ipoib_priv p;

	cr_assert_eq(ddps_ipoib_priv_decode(&p, in, 8), 0);
	cr_expect_eq(p.qpn, 0x4a);
	cr_expect_eq(p.rx_mtu, 65524);
}

Test(ipoib_addr, private_data_refuses_every_truncation)
{
	struct ddps_ipoib_priv p = { 1, 2 };

	for (size_t n = 0; n < 8; n++) {
		uint8_t *cut = calloc(1, n ? n : 1);

		cr_expect_eq(ddps_ipoib_priv_decode(&p, cut, n), DDPS_E_TRUNCATED);
		free(cut);
	}
	cr_expect(p.qpn == 1 && p.rx_mtu == 2);
}

Test(ipoib_addr, private_data_text)
{
	static const char *const bad[] = { "", "000000480000fff", "000000480000fff4 ",
					   "000000480000fffg", "0x0000480000fff4" };
	struct ddps_ipoib_priv p = { .qpn = 0x48, .rx_mtu = 65524 }, q;
	char text[DDPS_IPOIB_PRIV_TEXT];

	ddps_ipoib_priv_print(text, &p);
	cr_expect_str_eq(text, "000000480000fff4");
	cr_assert_eq(ddps_ipoib_priv_parse(&q, text), 0);
	cr_expect(q.qpn == p.qpn && q.rx_mtu == p.rx_mtu);
	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++)
		cr_expect_eq(ddps_ipoib_priv_parse(&q, bad[i]), DDPS_E_INVAL, "%s", bad[i]);
}

/* ---- the 5-bit times of CM messages ---- */

Test(ipoib_time, five_bit_times)
{
	cr_expect_eq(ddps_cm_time_ns(0), 4096);
	cr_expect_eq(ddps_cm_time_ns(8), 1048576);
	cr_expect_eq(ddps_cm_time_ns(20), 4294967296);
	cr_expect_eq(ddps_cm_time_ns(31), 8796093022208);
	cr_expect_eq(ddps_cm_time_ns(32), 8796093022208);
	for (unsigned t = 0; t <= 31; t++) {
		cr_expect_eq(ddps_cm_time_code(ddps_cm_time_ns(t)), t);
		cr_expect_eq(ddps_cm_time_code(ddps_cm_time_ns(t) + 1), t < 31 ? t + 1 : 31);
	}
	cr_expect_eq(ddps_cm_time_code(0), 0);
	cr_expect_eq(ddps_cm_time_code(UINT64_MAX), 31);
}

Test(ipoib_time, local_ack_timeout_follows_lifetime_and_delay)
{
	static const unsigned row[][3] = {
		/* life, delay, timeout */
		{ 18, 15, 19 }, { 18, 18, 20 }, { 18, 19, 20 }, { 18, 20, 21 }, { 18, 21, 21 },
		{ 0, 0, 2 },	{ 31, 31, 31 }, { 30, 0, 31 },	{ 0, 31, 31 },
	};

	for (size_t i = 0; i < sizeof(row) / sizeof(row[0]); i++)
		cr_expect_eq(ddps_cm_ack_timeout(row[i][0], row[i][1]), row[i][2], "row %zu", i);
}

/* ---- path records: the query's octets, and answers good and bad ---- */

static const uint8_t here[16] = { 0xfe, 0x80, [15] = 1 };
static const uint8_t there[16] = { 0xfe, 0x80, [15] = 2 };

Test(ipoib_sa, query_octets)
{
	static const uint8_t head[24] = { 1, 3, 2, 1, [12] = 0x11, 0x22, 0x33, 0x44, 0, 0x35 };
	static const uint8_t mask[8] = { [6] = 0x18, 0x0c };
	uint8_t mad[DDPS_CM_MAD_LEN], rest[DDPS_CM_MAD_LEN];

	memset(mad, 0xff, sizeof(mad));
	ddps_sa_path_query(mad, 0x11223344, here, there);
	cr_expect_arr_eq(mad, head, sizeof(head));
	cr_expect_arr_eq(mad + 48, mask, sizeof(mask));
	cr_expect_arr_eq(mad + 64, there, 16);
	cr_expect_arr_eq(mad + 80, here, 16);
	cr_expect_eq(mad[105], 0x81, "reversible, one path");
	memset(rest, 0, sizeof(rest));
	cr_expect_arr_eq(mad + 24, rest, 24);
	cr_expect_arr_eq(mad + 106, rest, DDPS_CM_MAD_LEN - 106);
}

/* The answer of an administrator, octet by octet. */
static void answer_ipoib_sa(uint8_t mad[DDPS_CM_MAD_LEN])
{
	static const uint8_t values[] = { 0,	7,    0,    3,	 0x01, 0x23, 0x45, 0x01, 9,
					  0x81, 0x80, 0x01, 0xa, 0xb5, 0x84, 0xc7, 0x92, 0 };

	ddps_sa_path_query(mad, 0x11223344, here, there);
	mad[3] = 0x81;
	mad[8] = 0x77; /* the upper half of the transaction ID is rewritten on the way */
	memcpy(mad + 96, values, sizeof(values));
}

Test(ipoib_sa, answer_is_read)
{
	uint8_t mad[DDPS_CM_MAD_LEN];
	struct ddps_sa_path p;
	uint16_t status = 1;

	answer_ipoib_sa(mad);
	cr_assert_eq(ddps_sa_path_answer(&p, &status, mad, 0x11223344), 0);
	cr_expect_eq(status, 0);
	cr_expect_arr_eq(p.path.remote_gid, there, 16);
	cr_expect_arr_eq(p.path.local_gid, here, 16);
	cr_expect_eq(p.path.remote_lid, 7);
	cr_expect_eq(p.path.local_lid, 3);
	cr_expect_eq(p.path.flow_label, 0x12345);
	cr_expect_eq(p.path.hop_limit, 1);
	cr_expect_eq(p.path.subnet_local, 1);
	cr_expect_eq(p.path.traffic_class, 9);
	cr_expect_eq(p.pkey, 0x8001);
	cr_expect_eq(p.path.sl, 5);
	cr_expect_eq(p.mtu, 4);
	cr_expect_eq(p.path.rate, 7);
	cr_expect_eq(p.life, 18);
	cr_expect_eq(p.path.ack_timeout, ddps_cm_ack_timeout(18, 0));
}

/* One octet changed, what becomes of the answer. */
static void expect_ipoib_sa(size_t at, uint8_t value, int want)
{
	uint8_t mad[DDPS_CM_MAD_LEN];
	struct ddps_sa_path p, untouched;
	uint16_t status;

	memset(&p, 0xaa, sizeof(p));
	untouched = p;
	answer_ipoib_sa(mad);
	mad[at] = value;
	cr_expect_eq(ddps_sa_path_answer(&p, &status, mad, 0x11223344), want, "octet %zu", at);
	if (want)
		cr_expect_eq(memcmp(&p, &untouched, sizeof(p)), 0, "octet %zu", at);
}

Test(ipoib_sa, other_messages_are_not_the_answer)
{
	expect_ipoib_sa(0, 2, DDPS_E_AGAIN);
	expect_ipoib_sa(1, 7, DDPS_E_AGAIN);
	expect_ipoib_sa(2, 1, DDPS_E_AGAIN);
	expect_ipoib_sa(3, 0x01, DDPS_E_AGAIN);
	expect_ipoib_sa(15, 0x45, DDPS_E_AGAIN); /* an earlier query's */
	expect_ipoib_sa(17, 0x38, DDPS_E_AGAIN);
}

Test(ipoib_sa, errors_and_impossible_records)
{
	expect_ipoib_sa(4, 0x03, DDPS_E_ADDRESS); /* 0x0300: no records */
	expect_ipoib_sa(4, 0x01, DDPS_E_PROTOCOL);
	expect_ipoib_sa(5, 0x1c, DDPS_E_PROTOCOL);
	expect_ipoib_sa(97, 0, DDPS_E_PROTOCOL);     /* DLID 0 */
	expect_ipoib_sa(99, 0, DDPS_E_PROTOCOL);     /* SLID 0 */
	expect_ipoib_sa(110, 0x80, DDPS_E_PROTOCOL); /* MTU 0 */
	expect_ipoib_sa(110, 0x81, 0);
	expect_ipoib_sa(110, 0x85, 0);
	expect_ipoib_sa(110, 0x86, DDPS_E_PROTOCOL);
	expect_ipoib_sa(112, 0x80 | 31, 0);
	expect_ipoib_sa(112, 0x80 | 32, DDPS_E_PROTOCOL);
}
