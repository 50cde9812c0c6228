/* SPDX-License-Identifier: BSD-2-Clause */
/* SCTP packets that belong to nothing, chunks that nobody knows, and ICMP: packet by packet. */
#include "sctp_raw_fixture.h"

static struct raw r;

static void fini(void)
{
	raw_fini(&r);
}

static int get_sctp_strangers_cause(const struct ddps_sc_chunk *c)
{
	return c->vlen >= 4 ? c->val[0] << 8 | c->val[1] : 0;
}

/* ---- out of the blue ---- */

/* The association that was found last is not found any more. */
Test(sctp_setup, what_comes_for_one_that_has_ended, .fini = fini, .description = "9260-8.4-11")
{
	struct ddps_sc_chunk c;

	for (unsigned k = 0; k < 2; k++) {
		raw_up(&r);
		raw_data(&r, RAW_TSN, 0, 0, 7, "x");
		cr_expect_eq(r.messages, 1);
		raw_chunk(&r, r.tag, SC_ABORT, 0, NULL, 0);
		cr_assert_eq(r.gone, 1);
		raw_data(&r, RAW_TSN + 1, 0, 1, 7, "y");
		cr_assert_eq(raw_got(&r, 0, 0, &c), SC_ABORT);
		cr_expect_eq(c.flags, SC_FLAG_T);
		raw_init_chunk(&r, RAW_TAG + 1, RAW_TSN);
		cr_assert(raw_take_init_ack(&r));
		raw_echo(&r);
		cr_expect_eq(raw_got(&r, 0, 0, NULL), SC_COOKIE_ACK);
		cr_expect_eq(r.accepted, 2);
		raw_fini(&r);
	}
	raw_init(&r);
}

Test(sctp_setup, what_belongs_to_nothing, .fini = fini,
     .description =
	     "9260-8.4-2 9260-8.4-6 9260-8.4-7 9260-8.4-8 9260-8.4-9 9260-8.4-10 9260-8.4-11")
{
	struct ddps_sc_chunk c;

	raw_init(&r);
	for (unsigned type = 0; type < 256; type++) {
		if (type == SC_INIT || type == SC_COOKIE_ECHO)
			continue;
		raw_chunk(&r, 0xabcdef01, (uint8_t)type, 0, "0123456789abcdef", 16);
		if (type == SC_ABORT || type == SC_SHUTDOWN_COMPLETE || type == SC_COOKIE_ACK) {
			cr_expect_eq(r.n, 0, "%u", type);
			continue;
		}
		cr_assert_eq(r.n, 1, "%u", type);
		cr_expect_eq(raw_got(&r, 0, 0, &c),
			     type == SC_SHUTDOWN_ACK ? SC_SHUTDOWN_COMPLETE : SC_ABORT);
		cr_expect_eq(c.flags, SC_FLAG_T);
		cr_expect_eq(raw_got_tag(&r, 0), 0xabcdef01);
		cr_expect_leq(r.log[0].len, 32);
	}
	raw_begin(&r, 9);
	raw_put_data(&r, 1, 0, 0, 7, "x");
	ddps_sc_put_chunk(&r.w, SC_ABORT, 0, NULL, 0);
	raw_send(&r);
	cr_expect_eq(r.n, 0);
	raw_chunk(&r, 9, SC_ERROR, 0, "\0\3\0\10\0\0\0\0", 8); /* stale cookie */
	cr_expect_eq(r.n, 0);
}

Test(sctp_setup, answers_to_strangers_are_limited, .fini = fini)
{
	unsigned n = 0;

	raw_init(&r);
	for (unsigned i = 0; i < 3000; i++) {
		raw_chunk(&r, 9, SC_COOKIE_ACK + 200, 0, NULL, 0);
		n += r.n;
	}
	cr_expect_eq(n, r.e->c.answers_per_s);
	raw_wait(&r, 1000);
	raw_chunk(&r, 9, SC_HEARTBEAT, 0, NULL, 0);
	cr_expect_eq(r.n, 1);
}

Test(sctp_setup, nobody_listens, .fini = fini, .description = "9260-8.4-4")
{
	raw_init(&r);
	ddps_sctp_unlisten(r.port);
	raw_init_chunk(&r, RAW_TAG, RAW_TSN);
	cr_assert_eq(raw_got(&r, 0, 0, NULL), SC_ABORT);
	cr_expect_eq(raw_got_tag(&r, 0), RAW_TAG);
	cr_expect_eq(r.log[0].data[13], 0);
}

/* ---- chunks that are not known ---- */

Test(sctp_setup, unknown_chunks_go_by_their_upper_bits, .fini = fini,
     .description = "9260-3.2-d1 9260-3.2-d2 9260-3.2-d3 9260-3.2-d4")
{
	uint32_t tsn = RAW_TSN;
	struct ddps_sc_chunk c;

	raw_up(&r);
	for (unsigned type = 0; type < 256; type++) {
		bool known = type < 12 || type == 14 || type == SC_PAD;
		bool goes_on = type & 0x80, told = type & 0x40;
		unsigned before = r.messages;

		if (known)
			continue;
		raw_begin(&r, r.tag);
		ddps_sc_put_chunk(&r.w, (uint8_t)type, 0, "abc", 3);
		raw_put_data(&r, tsn, 0, 0, 7, "behind");
		raw_send(&r);
		cr_expect_eq(r.messages - before, goes_on, "%u", type);
		tsn += goes_on;
		cr_expect_eq(raw_any(&r, SC_ERROR, &c), told, "%u", type);
		if (told)
			cr_expect(get_sctp_strangers_cause(&c) == SC_CAUSE_CHUNK &&
				  c.val[4] == type);
	}
	raw_begin(&r, r.tag); /* never in answer to ERROR */
	ddps_sc_put_chunk(&r.w, SC_ERROR, 0, "\0\6\0\4", 4);
	ddps_sc_put_chunk(&r.w, 0xfe, 0, "abc", 3);
	raw_send(&r);
	cr_expect(!raw_any(&r, SC_ERROR, NULL));
	cr_expect_str_eq(raw_state(&r), "ESTABLISHED");
}

Test(sctp_setup, icmp_is_believed_only_with_the_tag, .fini = fini,
     .description = "9260-10-4 9260-10-5 9260-10-6 6951-5.5-1 pkdr-icmp-protocol")
{
	struct ddps_sctp_route to = { .peer = sn_v4(10, 0, 0, 2), .encap = 9899 };
	uint8_t quote[40];

	raw_init(&r);
	raw_connect(&r);
	memcpy(quote, r.log[0].data, 40);
	quote[16] ^= 1; /* Initiate Tag */
	ddps_sctp_icmp(r.e, &to, DDPS_SCTP_ICMP_UNREACH_PORT, 0, quote, 40, r.net.now);
	raw_wait(&r, 1);
	cr_expect_eq(r.gone, 0);
	ddps_sctp_icmp(r.e, &to, DDPS_SCTP_ICMP_UNREACH_PORT, 0, r.log[0].data, 8, r.net.now);
	raw_wait(&r, 1);
	cr_expect_eq(r.gone, 0);
	quote[16] ^= 1;
	ddps_sctp_icmp(r.e, &to, DDPS_SCTP_ICMP_UNREACH_PORT, 0, quote, 40, r.net.now);
	raw_wait(&r, 1);
	cr_expect_eq(r.gone, 1);
	cr_expect_eq(r.why.code, DDPS_E_REFUSED);
}
