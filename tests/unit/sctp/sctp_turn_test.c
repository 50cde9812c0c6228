/* SPDX-License-Identifier: BSD-2-Clause */
/* What leaves together: how long a run of packets gets, which SACK goes with it, what is resent in one
 * packet, and what is had again that did not leave. */
#include "sctp_paths_fixture.h"
#include "unit/mem_fixture.h"
#include <ddpsess/err.h>

#define N(a) (sizeof(a) / sizeof *(a))

TestSuite(sctp_turn, .fini = fini);

static struct ddps_sctp_out out;
static uint8_t all[65536];

/* The next packets; false: none. */
static bool take_turn_packets(unsigned max_segs, size_t max_len)
{
	static struct iovec iov[256];
	static uint8_t head[65536];
	size_t at = 0;
	int some;

	out = (struct ddps_sctp_out){ .iov = iov,
				      .iov_max = 256,
				      .head = head,
				      .head_max = sizeof head,
				      .max_segs = max_segs,
				      .max_len = max_len };
	some = ddps_sctp_output(r.e, &out, r.net.now);
	cr_assert(some == 0 || some == 1);
	for (unsigned i = 0; some && i < out.niov; at += iov[i++].iov_len)
		memcpy(all + at, iov[i].iov_base, iov[i].iov_len);
	return some;
}

static int try_to_write(size_t len)
{
	static uint8_t text[2000];
	struct iovec iov = { text, len };

	return ddps_sctp_send(r.a, 0, 17, 0, &iov, 1, r.net.now);
}

static void write_one(size_t len)
{
	cr_assert_eq(try_to_write(len), 0);
}

/* Chunks of @type in the packet @k of those that were taken last. */
static unsigned count_sctp_turn_chunks(unsigned k, uint8_t type, struct ddps_sc_chunk *last)
{
	size_t at = k * out.seg_size,
	       len = out.len - at < out.seg_size ? out.len - at : out.seg_size;
	struct ddps_rbuf b = ddps_sc_chunks(all + at, len);
	struct ddps_sc_chunk c;
	unsigned n = 0;

	cr_assert_lt(k, out.nsegs);
	while (ddps_sc_chunk_next(&b, &c) > 0) {
		if (c.type != type)
			continue;
		n++;
		if (last)
			*last = c;
	}
	return n;
}

/* DATA of the peer, from its second address or the first; what follows of it waits. */
static void bring_turn_data(uint32_t tsn, uint16_t ssn, bool from_second)
{
	struct ddps_sctp_in in = { .data = r.buf };

	raw_begin(&r, r.tag);
	raw_put_data(&r, tsn, 0, ssn, SC_DATA_B | SC_DATA_E, "x");
	in.len = (size_t)(r.w.p - r.buf);
	ddps_sc_crc_put(r.buf, in.len);
	in.from.peer = from_second ? *get_second_address() : *get_first_address();
	in.from.local = r.net.node[0].addr[0];
	in.from.encap = r.net.node[1].udp;
	ddps_sctp_input(r.e, &in, 1, r.net.now);
}

#define LEN   800u /* of a message that has a packet to itself */
#define CHUNK (LEN + 16)
#define SEG   (CHUNK + 12)

static void bring_sctp_turn_up_with(unsigned messages)
{
	raw_up(&r);
	r.a->path[0]->tx.cc.cwnd = 100000;
	for (unsigned i = 0; i < messages; i++)
		write_one(LEN);
}

/* ---- how much ---- */

Test(sctp_turn, how_long_a_run_gets)
{
	static const struct {
		unsigned max_segs, want;
		uint64_t cwnd;
		size_t max_len;
	} row[] = {
		{ 4, 4, 100000, 65507 },       { 3, 3, 100000, 65507 },
		{ 4, 2, 2 * CHUNK, 65507 },    { 4, 3, 2 * CHUNK + 1, 65507 },
		{ 4, 2, 100000, 2 * SEG },     { 4, 1, 100000, SEG },
		{ 4, 2, 100000, 3 * SEG - 1 },
	};

	for (size_t i = 0; i < N(row); i++) {
		bring_sctp_turn_up_with(4);
		r.a->path[0]->tx.cc.cwnd = row[i].cwnd;
		cr_assert(take_turn_packets(row[i].max_segs, row[i].max_len));
		cr_expect_eq(out.nsegs, row[i].want, "%zu: %u", i, out.nsegs);
		cr_expect_eq(out.seg_size, SEG);
		fini();
	}
	raw_init(&r);
}

Test(sctp_turn, the_room_in_the_last_packet)
{
	size_t smss;

	bring_sctp_turn_up_with(0);
	smss = ddps_sent_smss(&r.a->path[0]->tx);
	cr_expect_eq(ddps_sctp_room(r.a), 0, "nothing waits");
	write_one(101);
	cr_expect_eq(ddps_sctp_room(r.a), smss - (16 + 104) - 16);
	write_one(LEN);
	cr_expect_eq(ddps_sctp_room(r.a), smss - (16 + 104) - CHUNK - 16);
	write_one(LEN); /* it has no room there, and begins another packet */
	cr_expect_eq(ddps_sctp_room(r.a), smss - CHUNK - 16);
	write_one(smss - CHUNK - 16);
	cr_expect_eq(ddps_sctp_room(r.a), 0, "full");
	cr_assert(take_turn_packets(1, 65507));
	cr_assert(take_turn_packets(1, 65507));
	cr_expect_eq(out.len, 12 + smss);
	cr_expect_eq(ddps_sctp_room(r.a), 0, "nothing waits any more");
	cr_expect_not(take_turn_packets(1, 65507));
}

/* He is asked immediately, so that as much as may be leaves in one call; what he does not add to leaves then. */
Test(sctp_turn, part_of_a_run_waits_for_the_writer_who_had_to_wait)
{
	bring_sctp_turn_up_with(1);
	cr_assert(take_turn_packets(1, 65507));
	r.e->c.unsent = 3 * LEN + 100;
	for (unsigned i = 0; i < 3; i++)
		write_one(LEN);
	write_one(100);
	cr_assert_eq(try_to_write(4), DDPS_E_AGAIN);
	cr_assert(take_turn_packets(1, 65507));
	cr_expect_eq(out.len, SEG);
	cr_expect_not(take_turn_packets(2, 65507));
	cr_expect_eq(ddps_sctp_deadline(r.e), r.net.now);
	ddps_sctp_tick(r.e, r.net.now);
	cr_assert(take_turn_packets(1, 65507));
	cr_expect_eq(out.len, SEG);
	cr_assert(take_turn_packets(1, 65507));
	cr_expect_eq(out.len, SEG + 16 + 100);
	cr_expect_not(take_turn_packets(1, 65507));
}

/* With nothing on its way there is nothing to wait for. */
Test(sctp_turn, part_of_a_packet_leaves_alone)
{
	bring_sctp_turn_up_with(0);
	r.e->c.unsent = 100;
	write_one(100);
	cr_assert_eq(try_to_write(4), DDPS_E_AGAIN);
	cr_assert(take_turn_packets(1, 65507));
	cr_expect_eq(out.len, 12u + 16 + 100);
}

/* Those of the run, and not what left before it. */
Test(sctp_turn, what_did_not_leave_is_had_again)
{
	bring_sctp_turn_up_with(1);
	cr_assert(take_turn_packets(1, 65507));
	for (unsigned i = 0; i < 3; i++)
		write_one(LEN);
	cr_assert(take_turn_packets(3, 65507));
	cr_assert_eq(out.nsegs, 3);
	ddps_sctp_unsent(r.e, &out, r.net.now);
	cr_expect_eq(r.a->tx.nlost, 3);
	cr_expect_eq(r.a->tx.nflight, 1);
}

/* ---- SACKs ---- */

/* There are gaps, so it is the last of the run, for which a place is kept. */
Test(sctp_turn, a_sack_behind_data, .description = "9260-6.1-16")
{
	bring_sctp_turn_up_with(4);
	for (uint32_t i = 0; i < 45; i++)
		bring_turn_data(RAW_TSN + 2 * i + 1, (uint16_t)(2 * i + 1), false);
	cr_assert(r.a->due & DUE_SACK);
	cr_assert(take_turn_packets(3, 65507));
	cr_expect_eq(out.nsegs, 3);
	cr_expect(out.sack);
	{
		struct ddps_sc_chunk c;

		cr_assert_eq(count_sctp_turn_chunks(2, SC_SACK, &c), 1);
		cr_expect_eq(c.val[9], 41, "blocks: %u", c.val[9]);
		cr_expect_eq(c.len, 16 + 4 * 41);
	}
	cr_expect_not(r.a->sack_alone);
	cr_expect_eq(r.a->due, 0);
}

/* It is for another address: it leaves before more data does. */
Test(sctp_turn, a_sack_for_another_path, .description = "9260-6.4-3")
{
	open_both_paths();
	r.a->path[0]->tx.cc.cwnd = 100000;
	bring_turn_data(RAW_TSN + 1, 1, true);
	bring_turn_data(RAW_TSN + 3, 3, true);
	for (unsigned i = 0; i < 4; i++)
		write_one(LEN);
	cr_assert(r.a->due & DUE_SACK);
	cr_assert(take_turn_packets(3, 65507));
	cr_expect(out.data && !out.sack &&
		  is_same_paths_address(&out.to.peer, get_first_address()));
	cr_expect_eq(count_sctp_turn_chunks(out.nsegs - 1, SC_SACK, NULL), 0);
	cr_assert(take_turn_packets(3, 65507));
	cr_expect(is_same_paths_address(&out.to.peer, get_second_address()));
	cr_expect_eq(count_sctp_turn_chunks(0, SC_SACK, NULL), 1);
	cr_assert(take_turn_packets(3, 65507));
	cr_expect(out.data);
}

/* One that has time yet does not go to an address that has sent nothing, nor into the midst of a run. */
Test(sctp_turn, a_sack_that_has_time, .description = "9260-6.4-3")
{
	open_both_paths();
	bring_turn_data(RAW_TSN, 0, true);
	while (take_turn_packets(1, 65507))
		;
	bring_turn_data(RAW_TSN + 1, 1, true);
	cr_assert_eq(r.a->sack_packets, 1);
	write_one(LEN);
	cr_assert(take_turn_packets(1, 65507));
	cr_expect(out.data && is_same_paths_address(&out.to.peer, get_first_address()));
	cr_expect_eq(count_sctp_turn_chunks(0, SC_SACK, NULL), 0);
	fini();

	raw_up(&r);
	bring_turn_data(RAW_TSN, 0, false);
	while (take_turn_packets(1, 65507))
		;
	bring_turn_data(RAW_TSN + 1, 1, false);
	write_one(1436);
	write_one(100);
	cr_assert(take_turn_packets(4, 65507));
	cr_assert_eq(out.nsegs, 2);
	cr_expect_not(out.sack);
	cr_expect_eq(count_sctp_turn_chunks(1, SC_SACK, NULL), 0);
	cr_expect_eq(r.a->sack_packets, 1);
}

/* What it was to ride on found no memory. */
Test(sctp_turn, a_sack_without_its_data_leaves_alone)
{
	raw_up(&r);
	bring_turn_data(RAW_TSN, 0, false);
	while (take_turn_packets(1, 65507))
		;
	bring_turn_data(RAW_TSN + 1, 1, false);
	cr_assert_eq(r.a->sack_packets, 1);
	write_one(100);
	mem_fail(1);
	cr_assert(take_turn_packets(1, 65507));
	cr_expect(mem_failed());
	cr_expect_eq(count_sctp_turn_chunks(0, SC_DATA, NULL), 0);
	cr_expect_eq(count_sctp_turn_chunks(0, SC_SACK, NULL), 1);
}

Test(sctp_turn, nothing_is_sent_where_nothing_is_due)
{
	raw_up(&r);
	r.a->sack_alone = true; /* as one that was due where it is no more leaves it */
	write_one(100);
	cr_assert(take_turn_packets(1, 65507));
	cr_expect_eq(count_sctp_turn_chunks(0, SC_DATA, NULL), 1);
}

/* ---- what is resent ---- */

Test(sctp_turn, what_is_resent_shares_a_packet)
{
	struct ddps_sctp_out kept;

	raw_up(&r);
	r.a->path[0]->tx.cc.cwnd = 100000;
	write_one(100);
	cr_assert(take_turn_packets(1, 65507));
	kept = out;
	write_one(100);
	cr_assert(take_turn_packets(1, 65507));
	ddps_sctp_unsent(r.e, &kept, r.net.now);
	cr_assert_eq(r.a->tx.nlost, 2);
	cr_assert(take_turn_packets(1, 65507));
	cr_expect_eq(count_sctp_turn_chunks(0, SC_DATA, NULL), 2);
}

/* The path is narrower than it was when it was cut: IP fragments it, and nothing else. */
Test(sctp_turn, what_is_too_large_by_now_leaves_alone, .description = "9260-6.9-5")
{
	struct ddps_sc_path *p;
	struct ddps_sctp_out kept;

	raw_up(&r);
	p = r.a->path[0];
	p->tx.cc.cwnd = 100000;
	write_one(100);
	cr_assert(take_turn_packets(1, 65507));
	kept = out;
	write_one(1400);
	cr_assert(take_turn_packets(1, 65507));
	ddps_sctp_unsent(r.e, &kept, r.net.now);
	cr_assert_eq(r.a->tx.nlost, 2);
	ddps_pmtu_fix(&p->tx.pmtu, 576);
	ddps_sent_mtu_changed(&r.a->tx, &p->tx, DDPS_PMTU_SIZE);
	p->tx.cc.cwnd = 100000;
	cr_assert(take_turn_packets(1, 65507));
	cr_expect_not(out.fragment);
	cr_expect_eq(out.len, 12 + 116);
	cr_assert(take_turn_packets(1, 65507));
	cr_expect(out.fragment);
	cr_expect_eq(out.len, 12 + 1416);
}

/* Nothing answers, perhaps since large packets do not pass: none is made of small ones. */
Test(sctp_turn, in_doubt_what_is_resent_is_small)
{
	raw_up(&r);
	for (unsigned i = 0; i < 2; i++) {
		write_one(568);
		cr_assert(take_turn_packets(1, 65507));
		cr_assert_eq(out.nsegs, 1);
	}
	while (!r.a->path[0]->tx.t3s) {
		r.net.now = ddps_sctp_deadline(r.e);
		ddps_sctp_tick(r.e, r.net.now);
		if (!r.a->path[0]->tx.t3s)
			while (take_turn_packets(1, 65507))
				;
	}
	cr_assert_eq(r.a->path[0]->tx.pmtu.lim.base, 1200);
	cr_assert(take_turn_packets(1, 65507));
	cr_expect_eq(count_sctp_turn_chunks(0, SC_DATA, NULL), 1);
}
