/* SPDX-License-Identifier: BSD-2-Clause */
/* Headers, chunks and parameters at the ends of their memory, and addresses that are nearly others. */
#include "sctp/sctp_wire.h"
#include <criterion/criterion.h>
#include <ddpsess/err.h>

#define N(a) (sizeof(a) / sizeof *(a))

Test(sctp_rules_wire, which_headers_are_taken, .description = "9260-3.1-1 9260-3.1-2")
{
	static const struct {
		uint8_t src, dst;
		size_t len;
		int want;
	} row[] = {
		{ 1, 2, 11, DDPS_E_TRUNCATED }, { 1, 2, 12, DDPS_E_TRUNCATED },
		{ 1, 2, 15, DDPS_E_TRUNCATED }, { 1, 2, 16, 0 },
		{ 0, 2, 16, DDPS_E_PROTOCOL },	{ 1, 0, 16, DDPS_E_PROTOCOL },
		{ 0, 0, 16, DDPS_E_PROTOCOL },
	};

	for (size_t i = 0; i < N(row); i++) {
		uint8_t pkt[16] = { [1] = row[i].src, [3] = row[i].dst, [7] = 9 };
		struct ddps_sc_header h = { 0 };

		cr_expect_eq(ddps_sc_header(&h, pkt, row[i].len), row[i].want, "%zu", i);
		cr_expect_eq(h.tag, row[i].want ? 0 : 9, "%zu", i);
	}
}

/* What is behind the end seems to be the length of a chunk, or of a parameter. */
Test(sctp_rules_wire, three_octets_are_a_pad)
{
	static const uint8_t octets[4] = { 0, 1, 0, 4 };
	struct ddps_rbuf b = ddps_rbuf_init(octets, 3);
	struct ddps_sc_chunk c;
	struct ddps_sc_tlv t;

	cr_expect_eq(ddps_sc_chunk_next(&b, &c), 0);
	cr_expect_eq(ddps_sc_tlv_next(&b, &t), 0);
	b = ddps_rbuf_init(octets, 4);
	cr_expect_eq(ddps_sc_tlv_next(&b, &t), 1);
	cr_expect(t.type == 1 && t.vlen == 0);
}

Test(sctp_rules_wire, a_parameter_has_a_header)
{
	for (uint8_t len = 0; len < 6; len++) {
		const uint8_t octets[8] = { 0, 1, 0, len };
		struct ddps_rbuf b = ddps_rbuf_init(octets, 8);
		struct ddps_sc_tlv t;

		cr_expect_eq(ddps_sc_tlv_next(&b, &t), len < 4 ? DDPS_E_PROTOCOL : 1, "%u", len);
	}
}

/* ---- INIT ---- */

static uint8_t init[20 + 1600];
static struct ddps_wbuf w;

static void begin_sctp_rules_wire(void)
{
	memset(init, 0, sizeof init);
	w = ddps_wbuf_init(init + 20, sizeof init - 20);
}

static int decode_sctp_rules_wire(struct ddps_sc_init *i)
{
	struct ddps_sc_chunk c = { .type = SC_INIT, .all = init, .val = init + 4 };

	c.len = (size_t)(w.p - init);
	c.vlen = c.len - 4;
	return ddps_sc_decode_init(i, &c);
}

Test(sctp_rules_wire, as_many_parameters_are_reported_as_there_is_room_for)
{
	struct ddps_sc_init i;
	uint8_t value[256] = { 0 };

	begin_sctp_rules_wire();
	ddps_sc_put_tlv(&w, 0xc001, value, 196);
	ddps_sc_put_tlv(&w, 0xc002, value, 52);
	ddps_sc_put_tlv(&w, 0xc003, value, 0);
	cr_expect_eq(decode_sctp_rules_wire(&i), 0);
	cr_expect_eq(i.report_len, DDPS_SC_REPORT_MAX, "%zu", i.report_len);
}

Test(sctp_rules_wire, addresses_that_are_too_many_do_not_hide_what_follows)
{
	struct ddps_sctp_addr a = { .family = 4, .ip = { 10, 0, 0, 1 } };
	struct ddps_sc_init i;
	uint32_t value = htobe32(7);

	begin_sctp_rules_wire();
	for (unsigned k = 0; k < DDPS_SC_LISTED_MAX + 2; k++)
		ddps_sc_put_addr(&w, &a);
	ddps_sc_put_tlv(&w, SC_P_ADAPTATION, &value, sizeof value);
	cr_expect_eq(decode_sctp_rules_wire(&i), 0);
	cr_expect(i.naddr == DDPS_SC_LISTED_MAX && i.left == 2);
	cr_expect(i.has_adaptation && i.adaptation == 7);
}

Test(sctp_rules_wire, the_length_of_a_cause)
{
	static const uint8_t error[] = { SC_ERROR, 0, 0, 18, 0, 1, 0, 6, 1,
					 2,	   0, 0, 0,  6, 0, 6, 3, 4 };
	struct ddps_sc_chunk c = {
		.type = SC_ERROR, .all = error, .len = 18, .val = error + 4, .vlen = 14
	};
	size_t len = 99;

	cr_expect_eq(ddps_sc_find_cause(&c, 6, &len), error + 16);
	cr_expect_eq(len, 2);
	cr_expect_null(ddps_sc_find_cause(&c, 7, &len));
}

/* ---- addresses ---- */

/* Of IPv6, with a scope: what is behind the address is none of it. */
Test(sctp_rules_wire, the_last_octet_counts_and_nothing_behind_it)
{
	for (unsigned last = 0; last < 4; last++) {
		struct ddps_sctp_addr a[2] = { { .family = 6 }, { .family = 6 } };

		memset((uint8_t *)&a[0] + offsetof(struct ddps_sctp_addr, ip) + 16, 0xa5,
		       sizeof a[0] - offsetof(struct ddps_sctp_addr, ip) - 16);
		memset((uint8_t *)&a[1] + offsetof(struct ddps_sctp_addr, ip) + 16, 0x5a,
		       sizeof a[1] - offsetof(struct ddps_sctp_addr, ip) - 16);
		a[0].scope = a[1].scope = 3;
		a[0].ip[15] = a[1].ip[15] = (uint8_t)last;
		for (unsigned k = 0; k < 2; k++) {
			cr_expect_eq(ddps_sc_unicast(&a[k]), last != 0, "%u", last);
			cr_expect_eq(ddps_sc_loopback(&a[k]), last == 1, "%u", last);
		}
		cr_expect(ddps_sc_addr_eq(&a[0], &a[1]));
		a[1].ip[15] ^= 0x80;
		cr_expect_not(ddps_sc_addr_eq(&a[0], &a[1]));
	}
}
