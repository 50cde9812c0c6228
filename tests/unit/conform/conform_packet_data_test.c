/* SPDX-License-Identifier: BSD-2-Clause */
/* DATA that comes to the tester, in any order, and SACKs in either direction. */
#include "unit/conform/conform_packet_fixture.h"

/* ---- SACKs that come, and those that go ---- */

Test(conform_packet_data, sacks_that_are_none)
{
	uint8_t b[16] = { 0 };

	set_conform_packet_up();
	cr_expect(net.carrier->send(&as, 1, PPID_SEGMENT, "abcd", 4));
	cr_expect_eq(read_tester_chunk(), CF_C_DATA);
	cf_put32(b, l->tsn - 1);
	bring_chunk_to_tester(CF_C_SACK, 0, b, 8);
	cr_expect_not_null(l->out);
	cf_put16(b + 8, 2); /* gaps, and room for one */
	bring_chunk_to_tester(CF_C_SACK, 0, b, 16);
	cr_expect_not_null(l->out);
	cf_put16(b + 8, 0);
	bring_chunk_to_tester(CF_C_SACK, 0, b, 12);
	cr_expect_null(l->out);
	take_conform_packet_down();
}

Test(conform_packet_data, a_sack_has_at_most_256_gaps)
{
	set_conform_packet_up();
	bring_chunk_to_tester(CF_C_DATA, F_WHOLE, "abcdefgh", 8); /* too short */
	for (unsigned i = 1; i <= 300; i++) {
		comes_data(TSN + 2 * i, F_WHOLE, 4);
		cr_expect_eq(read_tester_sack(TSN - 1), i < 256 ? i : 256);
	}
	comes_data(TSN + 5000, F_WHOLE, 4);
	cr_expect_eq(read_tester_sack(TSN - 1), 256, "too far ahead to be kept");
	comes_data(TSN, F_WHOLE, 4);
	cr_expect_eq(read_tester_sack(TSN), 256);
	comes_data(TSN + 1, F_WHOLE, 4);
	cr_expect_eq(read_tester_sack(TSN + 2), 256);
	take_conform_packet_down();
}

Test(conform_packet_data, a_gap_of_two_chunks)
{
	set_conform_packet_up();
	comes_data(TSN + 4, F_WHOLE, 4);
	cr_expect_eq(read_tester_sack(TSN - 1), 1);
	comes_data(TSN + 5, F_WHOLE, 4);
	cr_expect_eq(read_tester_sack(TSN - 1), 1);
	cr_expect_eq(cf_get32(said.b + HEADER + 16), 5u << 16 | 6);
	take_conform_packet_down();
}

/* What a case does not read shuts the window, and is not thrown away. */
Test(conform_packet_data, a_window_that_is_shut)
{
	set_conform_packet_up();
	as.held = CF_RWND;
	comes_data(TSN, F_WHOLE, 4);
	cr_expect_eq(read_tester_sack(TSN), 0);
	cr_expect_eq(cf_get32(said.b + HEADER + 8), 0);
	as.held = 4u << 20;
	comes_data(TSN + 1, F_WHOLE, 4);
	cr_expect_eq(read_tester_sack(TSN), 0, "no room at all");
	as.held = 4;
	cf_link_reopen(l);
	cr_expect_eq(read_tester_sack(TSN), 0);
	cr_expect_eq(cf_get32(said.b + HEADER + 8), CF_RWND - 4);
	take_conform_packet_down();
}

/* What finds no memory as a chunk comes again; as a message it is missed, and the case says so. */
Test(conform_packet_data, data_without_memory)
{
	set_conform_packet_up();
	for (unsigned n = 1; n <= 2; n++) {
		mem_fail(n);
		comes_data(TSN, F_WHOLE, 4);
		cr_expect(mem_failed(), "%u", n);
		cr_expect_eq(read_tester_sack(n == 1 ? TSN - 1 : TSN), 0);
		cr_expect_null(as.first);
	}
	take_conform_packet_down();
}

/* Pieces in any order; one longer than anything that may come is not heard. */
Test(conform_packet_data, messages_of_many_pieces)
{
	set_conform_packet_up();
	comes_data(TSN + 2, 4 | 1, 3);
	comes_data(TSN, 4 | 2, 5);
	cr_expect_null(as.first);
	comes_data(TSN + 1, 4, 2);
	cr_assert_not_null(as.first);
	cr_expect_eq(as.first->m.len, 10);
	cr_expect(as.first->m.unordered);
	cr_expect_null(as.first->next);
	for (unsigned i = 0; i <= CF_MAX / 2000; i++)
		comes_data(TSN + 3 + i, i ? 4 : 4 | 2, 2000);
	comes_data(TSN + 4 + CF_MAX / 2000, 4 | 1, 2000);
	cr_expect_null(as.first->next);
	comes_data(TSN + 5 + CF_MAX / 2000, F_WHOLE, 7);
	cr_assert_not_null(as.first->next);
	cr_expect_eq(as.first->next->m.len, 7);
	cr_expect_null(l->in);
	take_conform_packet_down();
}

Test(conform_packet_data, what_a_case_cannot_hear)
{
	static uint8_t b[CF_MAX + 1];

	set_conform_packet_up();
	cf_sctp_heard(&as, 0, 0, true, b, sizeof b);
	mem_fail(1);
	cf_sctp_heard(&as, 0, 0, true, b, 1);
	mem_fail(0);
	cr_expect_null(as.first);
	cf_sctp_heard(&as, 0, 0, true, b, sizeof b - 1);
	cr_assert_not_null(as.first);
	cr_expect_eq(as.first->m.len, CF_MAX);
	take_conform_packet_down();
}
