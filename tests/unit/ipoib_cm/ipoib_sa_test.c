/* SPDX-License-Identifier: BSD-2-Clause */
/* Path records: the query's octets, and answers good and bad. */
#include <criterion/criterion.h>
#include <string.h>
#include "ipoib_cm/ports/port_sa.h"

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
