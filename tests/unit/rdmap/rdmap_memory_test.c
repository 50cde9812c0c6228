/* SPDX-License-Identifier: BSD-2-Clause */
/* A stream that finds no memory: whoever asked is informed, or the peer; nothing is half done or left. */
#include "rdmap_fixture.h"
#include "unit/mem_fixture.h"
#include <inttypes.h>

#define DEEP 20 /* more than the queues begin with */

static struct side s;
static long live;

TestSuite(rdmap_memory, .timeout = 30);

static void check_rdmap_memory_table(void)
{
	memset(&s, 0, sizeof s);
	live = mem_live();
	cr_assert_eq(ddps_stag_table_new(&s.table, 1000), 0);
	s.pd.table = s.table;
	for (size_t i = 0; i < sizeof s.mem; i++)
		s.mem[i] = (uint8_t)(i ^ i >> 8);
}

/* The fixture's feed allocates, too. */
static int take_write(const char *text)
{
	uint8_t seg[100];

	return ddps_rdmap_rx_segment(s.r, seg,
				     make_tagged_rdmap(seg, 0, s.mr->stag, 0, true, text));
}

static int take_send(uint32_t mo, bool last, const char *text)
{
	uint8_t seg[100];
	size_t len = make_untagged_rdmap(seg, 3, 0, 0, 1, mo, last, text, strlen(text));

	return ddps_rdmap_rx_segment(s.r, seg, len);
}

static int take_rreq(uint32_t msn, uint64_t to)
{
	struct ddps_rreq q = { 1, 2, 8, s.mr->stag, to };
	uint8_t seg[100], body[DDPS_RREQ_LEN];

	ddps_rreq_encode(&q, body);
	return ddps_rdmap_rx_segment(
		s.r, seg, make_untagged_rdmap(seg, 1, 0, 1, msn, 0, true, body, sizeof body));
}

/* A stream of that depth, and its memory registered. */
static int make_rdmap_memory(void)
{
	struct ddps_rdmap_cfg cfg = { .pd = &s.pd,
				      .stream = (uintptr_t)&s,
				      .sq_depth = DEEP,
				      .rq_depth = DEEP,
				      .max_sge = 2,
				      .up = &side_up,
				      .user = &s };
	struct ddps_rdmap_start st = { .ird = 4, .ord = 4, .llp_mpa_codes = true };
	int err = ddps_rdmap_new(&s.r, &cfg);

	if (err)
		return err;
	err = ddps_rdmap_start(s.r, &st);
	if (err) { /* and may be tried again */
		cr_expect_eq(s.want, 0);
		cr_expect_eq(ddps_rdmap_start(s.r, &st), 0);
		return err;
	}
	return ddps_stag_add(&s.pd, s.mem, sizeof s.mem, RIGHTS | DDPS_ZERO_BASED, 0, &s.mr);
}

static void unmake_rdmap_memory(void)
{
	if (s.r)
		ddps_rdmap_free(s.r);
	cr_expect_eq(s.pd.streams, 0);
	ddps_stag_table_free(s.table);
	cr_expect_eq(mem_live(), live, "what is left");
}

Test(rdmap_memory, a_stream_is_made_or_not)
{
	unsigned n = 0;
	int err;

	do {
		check_rdmap_memory_table();
		mem_fail(++n);
		err = make_rdmap_memory();
		cr_expect_eq(err, mem_failed() ? DDPS_E_NOMEM : 0, "allocation %u", n);
		mem_fail(0);
		cr_expect_eq(s.pd.users, !err, "allocation %u", n);
		cr_expect_eq(ddps_stag_count(s.table), !err);
		unmake_rdmap_memory();
	} while (err);
	cr_expect_geq(n, 4);
}

/* A queue that cannot grow refuses the request, and nothing else has changed. */
Test(rdmap_memory, queues_grow_or_refuse)
{
	unsigned met = 0;
	bool failed = true;

	for (unsigned n = 1; failed; n++) {
		unsigned before = met;
		uint8_t out[200];

		check_rdmap_memory_table();
		cr_assert_eq(make_rdmap_memory(), 0);
		mem_fail(n);
		for (unsigned i = 0; i < DEEP; i++) {
			int err = post_rdmap_recv(&s, i, i, 1);

			met += err != 0;
			cr_expect_eq(err, err ? DDPS_E_NOMEM : 0);
			if (err)
				cr_expect_eq(post_rdmap_recv(&s, i, i, 1), 0);
			err = post_rdmap(&s, DDPS_OP_SEND, i, 0, i, 150);
			met += err != 0;
			cr_expect_eq(err, err ? DDPS_E_NOMEM : 0);
			if (err)
				cr_expect_eq(post_rdmap(&s, DDPS_OP_SEND, i, 0, i, 150), 0);
			if (!i) /* it is in the middle of a message when it grows */
				cr_expect_eq(pull(&s, 118, out), 118);
		}
		failed = mem_failed();
		cr_expect_leq(met, before + failed, "allocation %u", n);
		mem_fail(0);
		for (unsigned i = 0; i < DEEP; i++) {
			if (i) {
				cr_expect_eq(pull(&s, 118, out), 118);
				cr_expect_arr_eq(out + 18, s.mem + i, 100);
			}
			cr_expect_eq(pull(&s, 118, out), 68);
			cr_expect_arr_eq(out + 18, s.mem + i + 100, 50);
			cr_expect_eq(s.sq[i].wr_id, i);
			cr_expect_eq(feed_send(&s, i + 1, 0, true, "x"), 0);
			cr_expect_eq(s.rq[i].wr_id, i);
		}
		cr_expect_eq(s.nsq, DEEP);
		cr_expect_eq(s.nrq, DEEP);
		unmake_rdmap_memory();
	}
	cr_expect_eq(met, 6, "8, 16 and 32 entries, of two queues");
}

/* Reads that are to be answered: the peer learns which one had no place. */
Test(rdmap_memory, requests_of_the_peer)
{
	bool met;

	for (unsigned n = 1; met = false, n < 20; n++) {
		uint8_t out[200];
		uint32_t i;

		check_rdmap_memory_table();
		cr_assert_eq(make_rdmap_memory(), 0);
		mem_fail(n);
		for (i = 1; i <= 4; i++) {
			int err = take_rreq(i, i);

			if (!err)
				continue;
			met = true;
			cr_expect_eq(err, DDPS_E_NOMEM);
			break;
		}
		mem_fail(0);
		if (met) {
			cr_expect_eq(s.terms, 1);
			cr_expect_eq(s.term.code, DDPS_E_NOMEM);
			cr_expect_eq(s.term.triple.layer, 0);
			cr_assert_gt(pull(&s, 118, out), 18);
			cr_expect_eq(out[1], 0x47);
			cr_expect_eq(pull(&s, 118, out), 0, "no answers behind it");
		} else {
			for (i = 1; i <= 4; i++) {
				cr_assert_eq(pull(&s, 118, out), 22);
				cr_expect_arr_eq(out + 14, s.mem + i, 8);
			}
		}
		unmake_rdmap_memory();
	}
}

/* What counts messages does without, and all segments are counted together still. */
Test(rdmap_memory, counters)
{
	for (unsigned n = 1; n < 6; n++) {
		uint64_t taken = 0;

		check_rdmap_memory_table();
		cr_assert_eq(make_rdmap_memory(), 0);
		post_rdmap_recv(&s, 1, 0, 10);
		mem_fail(n);
		cr_expect_eq(take_write("abc"), 0);
		cr_expect_eq(take_send(0, true, "abc"), 0);
		cr_expect_eq(take_write("abc"), 0);
		taken = ddps_rdmap_taken(s.r);
		mem_fail(0);
		cr_expect_eq(taken, 3, "allocation %u", n);
		cr_expect(ddps_rdmap_heard(s.r));
		cr_expect_eq(ddps_rdmap_stats(s.r).received[DDPS_STAT_WRITE].messages,
			     n == 1 ? 1 : 2, "allocation %u", n);
		unmake_rdmap_memory();
	}
}

/* A message in parts has to be remembered. */
Test(rdmap_memory, messages_in_parts)
{
	unsigned met = 0;

	for (unsigned n = 1; n < 6; n++) {
		int err;

		check_rdmap_memory_table();
		cr_assert_eq(make_rdmap_memory(), 0);
		post_rdmap_recv(&s, 7, 0, 10);
		mem_fail(n);
		err = take_send(0, false, "abc");
		mem_fail(0);
		if (err) {
			met++;
			cr_expect_eq(err, DDPS_E_NOMEM);
			cr_expect_eq(s.term.code, DDPS_E_NOMEM);
			cr_assert_eq(s.nrq, 1);
			expect_wc(s.rq[0], 7, DDPS_OP_RECV, DDPS_WC_FLUSHED);
		} else {
			cr_expect_eq(take_send(3, true, "def"), 0);
			cr_assert_eq(s.nrq, 1);
			expect_wc(s.rq[0], 7, DDPS_OP_RECV, DDPS_WC_SUCCESS);
			cr_expect_arr_eq(s.mem, "abcdef", 6);
		}
		unmake_rdmap_memory();
	}
	cr_expect_eq(met, 1);
}

/* Atomics that are to be answered stand in the same queue. */
Test(rdmap_memory, atomics_of_the_peer)
{
	static uint64_t cell;
	struct ddps_mr *mr;
	unsigned met = 0;

	for (unsigned n = 1; n < 6; n++) {
		struct ddps_areq q = { .aop = DDPS_AOP_FETCH_ADD, .id = 9, .data = 1 };
		uint8_t seg[100], body[DDPS_AREQ_LEN];
		bool failed = false;

		check_rdmap_memory_table();
		cr_assert_eq(make_rdmap_memory(), 0);
		s.r->rfc7306 = true;
		cr_assert_eq(ddps_stag_add(&s.pd, &cell, sizeof cell, RIGHTS | DDPS_ZERO_BASED, 0,
					   &mr),
			     0);
		q.stag = mr->stag;
		ddps_areq_encode(&q, body);
		mem_fail(n);
		for (uint32_t i = 1; i <= 4 && !failed; i++) {
			size_t len =
				make_untagged_rdmap(seg, 0xA, 0, 1, i, 0, true, body, sizeof body);
			int err = ddps_rdmap_rx_segment(s.r, seg, len);

			cr_expect_eq(err, err ? DDPS_E_NOMEM : 0);
			failed = err != 0;
		}
		cr_expect(!failed || mem_failed());
		mem_fail(0);
		met += failed;
		cr_expect_eq(s.terms, failed);
		cr_expect_eq(s.term.code, failed ? DDPS_E_NOMEM : 0);
		cr_expect_eq(cell, 0, "it is carried out when its answer is pulled");
		ddps_stag_remove(mr);
		unmake_rdmap_memory();
	}
	cr_expect_geq(met, 1);
}

Test(rdmap_memory, a_shared_queue_is_made_or_not)
{
	struct ddps_srq srq;

	for (unsigned n = 1; n <= 3; n++) {
		long before = mem_live();

		memset(&srq, 0, sizeof srq);
		mem_fail(n);
		cr_expect_eq(ddps_srq_init(&srq, &s.pd, 8, 2), n < 3 ? DDPS_E_NOMEM : 0);
		cr_expect_eq(mem_failed(), n < 3);
		mem_fail(0);
		cr_expect_eq(s.pd.users, n == 3);
		if (n == 3)
			ddps_srq_fini(&srq);
		cr_expect_eq(mem_live(), before);
	}
}

/* ---- pieces ---- */

/* Pieces of a message that are deregistered while it goes out, or comes in: whichever, whenever. */

#define PIECES 5
#define MULPDU 128

static const uint32_t lens[PIECES] = { 110, 0, 50, 60, 80 }; /* some end with a segment */

static void teardown(void)
{
	close_rdmap_side(&s);
}

TestSuite(rdmap_pieces, .fini = teardown);

/* Whether octets [@off, @off + @len) of the message lie in piece @p, too. */
static bool touches(unsigned p, size_t off, size_t len)
{
	size_t begin = 0;

	for (unsigned i = 0; i < p; i++)
		begin += lens[i];
	return lens[p] && off < begin + lens[p] && off + len > begin;
}

/* One region a piece, in memory that is one. */
static void make_pieces(struct ddps_mr **mr, struct ddps_sge *sge)
{
	size_t off = 0;

	side_init(&s, 8, 8, PIECES);
	side_start(&s, 4, 4);
	for (unsigned i = 0; i < PIECES; off += lens[i++]) {
		mr[i] = side_reg(&s, s.mem + off, lens[i], DDPS_LOCAL_WRITE);
		sge[i] = (struct ddps_sge){ s.mem + off, lens[i], mr[i]->stag };
	}
}

/* Pull @before segments of it, deregister piece @p, and pull the rest. */
static void revoke_source(enum ddps_op op, unsigned p, unsigned before)
{
	size_t hdr = op == DDPS_OP_WRITE ? 14 : 18, room = MULPDU - hdr, off = 0;
	struct ddps_sge sge[PIECES];
	struct ddps_mr *mr[PIECES];
	struct ddps_send_wr wr = { .wr_id = 3, .op = op, .sge = sge, .nsge = PIECES };
	uint8_t out[256];
	char key[16];

	make_pieces(mr, sge);
	snprintf(key, sizeof key, "0x%08" PRIx32, sge[p].lkey);
	cr_assert_eq(ddps_rdmap_post_send(s.r, &wr), 0);
	for (unsigned n = 0; off < 300; n++) {
		size_t len = 300 - off < room ? 300 - off : room;

		if (n == before)
			ddps_stag_remove(mr[p]);
		cr_assert(pull(&s, MULPDU, out));
		if (n >= before && touches(p, off, len)) {
			cr_expect_eq(s.terms, 1, "piece %u, segment %u", p, n);
			cr_expect_eq(s.term.code, DDPS_E_ACCESS);
			cr_expect(strstr(s.term.text, key), "%s: %s", key, s.term.text);
			cr_expect_arr_eq(out, "\x41\x47", 2);
			cr_assert_eq(s.nsq, 1);
			expect_wc(s.sq[0], 3, op, DDPS_WC_LOCAL_ACCESS);
			return;
		}
		cr_expect_eq(s.terms, 0, "piece %u, segment %u", p, n);
		cr_expect_arr_eq(out + hdr, s.mem + off, len);
		off += len;
	}
	cr_assert_eq(s.nsq, 1);
	expect_wc(s.sq[0], 3, op, DDPS_WC_SUCCESS);
}

Test(rdmap_pieces, each_source_before_each_segment, .description = "5040-7.1-2")
{
	for (unsigned p = 0; p < PIECES; p++)
		for (unsigned before = 0; before < 3; before++) {
			if (p || before)
				close_rdmap_side(&s);
			revoke_source(DDPS_OP_SEND, p, before);
			close_rdmap_side(&s);
			revoke_source(DDPS_OP_WRITE, p, before);
		}
}

/* Feed @before segments of a Send, deregister piece @p, and feed the rest. */
static void revoke_sink(unsigned p, unsigned before)
{
	static const size_t cut[] = { 110, 111, 159, 160, 161, 220, 300 };
	struct ddps_sge sge[PIECES];
	struct ddps_mr *mr[PIECES];
	uint8_t text[300];
	size_t off = 0;
	char key[16];

	make_pieces(mr, sge);
	snprintf(key, sizeof key, "0x%08" PRIx32, sge[p].lkey);
	for (unsigned i = 0; i < sizeof text; i++)
		text[i] = (uint8_t)(i * 7 + 1);
	cr_assert_eq(ddps_rdmap_post_recv(s.r, 3, sge, PIECES), 0);
	for (unsigned n = 0; n < sizeof cut / sizeof cut[0]; off = cut[n++]) {
		size_t len = cut[n] - off;
		bool bad = n >= before && touches(p, off, len);

		if (n == before)
			ddps_stag_remove(mr[p]);
		cr_expect_eq(feed_untagged(&s, 3, 0, 0, 1, (uint32_t)off, cut[n] == 300, text + off,
					   len),
			     bad ? DDPS_E_ACCESS : 0, "piece %u, segment %u", p, n);
		cr_expect_eq(s.terms, bad, "piece %u, segment %u", p, n);
		if (bad) {
			cr_expect(strstr(s.term.text, key), "%s: %s", key, s.term.text);
			cr_expect(memcmp(s.mem + off, text + off, len), "nothing is placed");
			cr_assert_eq(s.nrq, 1);
			expect_wc(s.rq[0], 3, DDPS_OP_RECV, DDPS_WC_LOCAL_ACCESS);
			return;
		}
	}
	cr_expect_arr_eq(s.mem, text, sizeof text);
	cr_assert_eq(s.nrq, 1);
	expect_wc(s.rq[0], 3, DDPS_OP_RECV, DDPS_WC_SUCCESS);
	cr_expect_eq(s.rq[0].len, 300);
}

Test(rdmap_pieces, each_sink_before_each_segment, .description = "5040-8.1.1-6")
{
	for (unsigned p = 0; p < PIECES; p++)
		for (unsigned before = 0; before < 7; before++) {
			if (p || before)
				close_rdmap_side(&s);
			revoke_sink(p, before);
		}
}
