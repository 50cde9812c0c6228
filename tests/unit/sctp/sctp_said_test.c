/* SPDX-License-Identifier: BSD-2-Clause */
/* What each DATA chunk says: flags, numbers, lengths. */
#include "sctp_raw_fixture.h"

static struct raw r;

static void fini(void)
{
	raw_fini(&r);
}

TestSuite(sctp_said, .fini = fini);

enum { E = SC_DATA_E, B = SC_DATA_B, U = SC_DATA_U, I = SC_DATA_I };

static void give_message(uint16_t sid, unsigned flags, size_t len)
{
	static char text[4000];
	struct iovec iov = { text, len };

	cr_assert_eq(ddps_sctp_send(r.a, sid, 17, flags, &iov, 1, r.net.now), 0);
}

/* The DATA chunks that left since; in order. */
static unsigned count_left_chunks(struct ddps_sc_data *d, unsigned most)
{
	unsigned n = 0;

	r.n = 0;
	sn_flush(&r.net);
	for (unsigned k = 0; k < r.n; k++) {
		struct ddps_rbuf b = ddps_sc_chunks(r.log[k].data, r.log[k].len);
		struct ddps_sc_chunk c;

		while (ddps_sc_chunk_next(&b, &c) > 0 && n < most)
			if (c.type == SC_DATA)
				cr_assert_eq(ddps_sc_decode_data(&d[n++], &c), 0);
	}
	return n;
}

/* The I bit is where the user wants it, and on the last one of all
 * [9260-6.1-19]. */
Test(sctp_said, flags_of_whole_messages, .description = "9260-3.3.1-1")
{
	static const struct {
		unsigned ask;
		uint8_t flags;
	} is[] = { { 0, B | E },
		   { DDPS_SCTP_UNORDERED, U | B | E },
		   { DDPS_SCTP_SACK_NOW, B | E | I },
		   { DDPS_SCTP_SACK_NOW | DDPS_SCTP_UNORDERED, U | B | E | I },
		   { 0, B | E } };
	struct ddps_sc_data d[8];

	raw_up(&r);
	for (unsigned i = 0; i < 5; i++)
		give_message((uint16_t)(i % 5), is[i].ask, 10 + i);
	cr_assert_eq(count_left_chunks(d, 8), 5);
	for (unsigned i = 0; i < 5; i++) {
		cr_expect_eq(d[i].flags, is[i].flags | (i == 4 ? I : 0), "%u: %x", i, d[i].flags);
		cr_expect_eq(d[i].tsn, r.tsn + i);
		cr_expect_eq(d[i].sid, i);
		cr_expect_eq(d[i].ssn, 0);
		cr_expect_eq(d[i].ppid, 17);
		cr_expect_eq(d[i].len, 10 + i);
	}
}

/* Of a message that is cut, the first has B, the last E and the I bit that was
 * asked for. */
Test(sctp_said, flags_of_pieces, .description = "9260-3.3.1-1 9260-6.9-4")
{
	for (unsigned ask = 0; ask < 4; ask++) {
		struct ddps_sc_data d[8];
		uint8_t u = ask & DDPS_SCTP_UNORDERED ? U : 0;
		size_t most;

		if (ask)
			raw_fini(&r);
		raw_up(&r);
		most = ddps_sctp_max_chunk(r.a);
		give_message(1, ask, 2 * most + 1);
		give_message(1, DDPS_SCTP_UNORDERED, 1);
		cr_assert_eq(count_left_chunks(d, 8), 4);
		cr_expect_eq(d[0].flags & ~I, u | B, "%x", d[0].flags);
		cr_expect_eq(d[1].flags & ~I, u, "%x", d[1].flags);
		cr_expect_eq(d[2].flags, u | E | (ask & DDPS_SCTP_SACK_NOW ? I : 0), "%x",
			     d[2].flags);
		cr_expect_eq(d[3].flags, U | B | E | I);
		cr_expect_eq(d[0].flags & I, I, "nothing was in flight");
		cr_expect_eq(d[1].flags & I, 0);
		for (unsigned i = 0; i < 3; i++) {
			cr_expect_eq(d[i].len, i < 2 ? most : 1);
			cr_expect_eq(d[i].ssn, 0);
			cr_expect_eq(d[i].tsn, r.tsn + i);
		}
	}
}

/* Ordered messages of a stream are numbered, the others are not. */
Test(sctp_said, numbers_of_streams, .description = "9260-6.5-3 9260-6.6-1")
{
	struct ddps_sc_data d[16];
	static const uint16_t ssn[] = { 0, 0, 1, 0, 0, 1, 2 };

	raw_up(&r);
	give_message(0, 0, 4);
	give_message(4, 0, 4);
	give_message(0, 0, 4);
	give_message(0, DDPS_SCTP_UNORDERED, 4);
	give_message(1, 0, 4);
	give_message(4, 0, 4);
	give_message(0, 0, 4);
	cr_assert_eq(count_left_chunks(d, 16), 7);
	for (unsigned i = 0; i < 7; i++)
		cr_expect_eq(d[i].ssn, ssn[i], "%u", i);
}

/* As many as fit into a packet share it, to the last octet. */
Test(sctp_said, messages_that_share_a_packet, .description = "9260-6.10-1")
{
	static const struct {
		size_t second;
		unsigned packets;
	} is[] = { { 100, 1 }, { 1323, 1 }, { 1324, 1 }, { 1325, 2 }, { 1328, 2 } };

	for (unsigned i = 0; i < sizeof is / sizeof *is; i++) {
		struct ddps_sc_data d[8];
		size_t most;

		if (i)
			raw_fini(&r);
		raw_up(&r);
		most = ddps_sctp_max_chunk(r.a);
		cr_assert_eq(most & 3, 0);
		give_message(0, 0, most - 1324 - 16);
		give_message(1, 0, is[i].second);
		cr_assert_eq(count_left_chunks(d, 8), 2);
		cr_expect_eq(r.n, is[i].packets, "%u: %u", i, r.n);
	}
}
