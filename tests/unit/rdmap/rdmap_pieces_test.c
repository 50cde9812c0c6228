/* SPDX-License-Identifier: BSD-2-Clause */
/* Pieces of a message that are deregistered while it goes out, or comes in: whichever, whenever. */
#include "rdmap_fixture.h"
#include <inttypes.h>

#define PIECES 5
#define MULPDU 128

static struct side s;
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
