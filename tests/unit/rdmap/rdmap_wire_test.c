/* SPDX-License-Identifier: BSD-2-Clause */
/* Read Request and Terminate headers. */
#include "rdmap/rdmap_wire.h"
#include "rdmap_fixture.h"
#include <criterion/criterion.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

static const uint8_t rreq_raw[28] = { 0,    0, 0xa5, 1,	   0,	 0, 0x7f, 0, 0, 0, 0x10, 0, 0, 0,
				      0x20, 0, 0x1a, 0x2b, 0x3c, 1, 0,	  0, 0, 0, 0,	 1, 0, 0 };
static const uint8_t rreq_ddp[18] = { 0x41, 0x41, 0, 0, 0, 0, 0, 0, 0, 1, 0, 0, 0, 1 };
static const uint8_t write_ddp[14] = { 0x81, 0x40, 0x1a, 0x2b, 0x3c, 1, 0, 0, 0, 0, 0, 1 };
static const uint8_t send_ddp[18] = { 0x41, 0x43, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 9 };

Test(rdmap_wire, control_octets, .description = "5040-4.1-1 5040-4.1-2 5040-4.1-8 5040-4.1-9")
{
	for (int op = 0; op < 8; op++) {
		uint8_t c = ddps_rdmap_ctrl((enum ddps_opcode)op);

		cr_expect_eq(c, 0x40 + op);
		for (unsigned rsv = 0; rsv < 4; rsv++) { /* 5040-4.1-10 */
			cr_expect(ddps_rdmap_rv_ok((uint8_t)(c | rsv << 4)));
			cr_expect_eq(ddps_rdmap_opcode((uint8_t)(c | rsv << 4)), op);
		}
	}
	cr_expect_not(ddps_rdmap_rv_ok(0x03));
	cr_expect_not(ddps_rdmap_rv_ok(0x83));
	cr_expect_not(ddps_rdmap_rv_ok(0xC3));
}

Test(rdmap_wire, read_request, .description = "5040-4.4-1")
{
	struct ddps_rreq q = { 0xa501, 0x7f0000001000, 0x2000, 0x1a2b3c01, 0x10000 }, back;
	uint8_t buf[28];

	ddps_rreq_encode(&q, buf);
	cr_expect_arr_eq(buf, rreq_raw, sizeof buf);
	ddps_rreq_decode(&back, buf);
	cr_expect_eq(back.sink_stag, q.sink_stag);
	cr_expect_eq(back.sink_to, q.sink_to);
	cr_expect_eq(back.size, q.size);
	cr_expect_eq(back.src_stag, q.src_stag);
	cr_expect_eq(back.src_to, q.src_to);
}

Test(rdmap_wire, terminate_forms,
     .description = "5040-4.8-1 5040-4.8-2 5040-4.8-3 5040-4.8-7 5040-4.8-9 5040-4.8-10 "
		    "5040-4.8-12 5040-4.8-14")
{
	uint8_t buf[DDPS_TERM_LEN_MAX];
	struct ddps_term_msg t = { .triple = { 2, 0, 2 } };

	cr_assert_eq(ddps_term_encode(&t, buf), 4);
	cr_expect_arr_eq(buf, "\x20\x02\0\0", 4);

	t = (struct ddps_term_msg){ .triple = { 0, 1, 1 },
				    .has_len = true,
				    .seg_len = 46,
				    .ddp = rreq_ddp,
				    .ddp_len = 18,
				    .rreq = rreq_raw };
	cr_assert_eq(ddps_term_encode(&t, buf), 52);
	cr_expect_arr_eq(buf, "\x01\x01\xe0\0\0\x2e", 6);
	cr_expect_arr_eq(buf + 6, rreq_ddp, 18);
	cr_expect_arr_eq(buf + 24, rreq_raw, 28);

	t = (struct ddps_term_msg){ .triple = { 1, 1, 1 },
				    .has_len = true,
				    .seg_len = 1500,
				    .ddp = write_ddp,
				    .ddp_len = 14 };
	cr_assert_eq(ddps_term_encode(&t, buf), 20);
	cr_expect_arr_eq(buf, "\x11\x01\xc0\0\x05\xdc\x81\x40", 8);

	t = (struct ddps_term_msg){ .triple = { 1, 2, 2 },
				    .has_len = true,
				    .seg_len = 82,
				    .ddp = send_ddp,
				    .ddp_len = 18 };
	cr_assert_eq(ddps_term_encode(&t, buf), 24);
	cr_expect_arr_eq(buf, "\x12\x02\xc0\0\0\x52\x41\x43", 8);

	t.has_len = false; /* a length that 16 bits do not hold */
	cr_assert_eq(ddps_term_encode(&t, buf), 24);
	cr_expect_arr_eq(buf, "\x12\x02\x40\0\0\0\x41\x43", 8);
}

/* The longest form of each kind, RFC's and swapped. */
static size_t make_rdmap_wire(uint8_t *buf, bool swapped, unsigned kind)
{
	static const uint8_t flags[2][3] = { { 0, 0xC0, 0xE0 }, { 0, 3, 7 } };

	memcpy(buf, swapped ? "\x10\x01\0\0" : "\x01\x01\0\0", 4);
	buf[2] = flags[swapped][kind];
	if (!kind)
		return 4;
	memcpy(buf + 4, "\0\x2e", 2);
	memcpy(buf + 6, rreq_ddp, 18);
	memcpy(buf + 24, rreq_raw, 28);
	return kind == 1 ? 24 : 52;
}

Test(rdmap_wire, terminate_at_every_length, .description = "5040-4.8-8 5040-5.4-8")
{
	/*
	 * Without flags the two forms cannot be distinguished by them: kind 0 only once.  Swapped
	 * flags with nothing behind are reserved bits: 4 octets read the RFC's way.
	 */
	for (unsigned swapped = 0; swapped < 2; swapped++)
		for (unsigned kind = swapped; kind < 3; kind++) {
			uint8_t full[60];
			size_t len = make_rdmap_wire(full, swapped, kind);

			for (size_t n = 0; n <= len; n++) {
				uint8_t *cut = malloc(n);
				struct ddps_term_msg t;
				bool bare = swapped && n == 4;

				if (n)
					memcpy(cut, full, n);
				cr_expect_eq(ddps_term_decode(&t, cut, n),
					     n < len && !bare ? DDPS_E_TRUNCATED : 0);
				cr_expect_eq(t.ddp != NULL, kind && n >= 24);
				cr_expect_eq(t.ddp_len, t.ddp ? 18 : 0);
				cr_expect_eq(t.rreq != NULL, kind == 2 && n >= 52);
				cr_expect_eq(t.has_len, kind && n >= 6);
				if (n >= 4) {
					cr_expect_eq(t.triple.layer, bare ? 1 : 0);
					cr_expect_eq(t.triple.etype, bare ? 0 : 1);
					cr_expect_eq(t.triple.code, 1);
					cr_expect_eq(t.swapped, swapped && !bare);
				}
				free(cut);
			}
		}
}

Test(rdmap_wire, terminate_ignores_reserved_bits, .description = "5040-4.8-8")
{
	struct ddps_term_msg t;

	for (unsigned rsv = 0; rsv < 0x20; rsv++) {
		const uint8_t raw[4] = { 0x12, 0x02, (uint8_t)rsv, 0xff };

		cr_expect_eq(ddps_term_decode(&t, raw, 4), 0, "bits %02x", rsv);
		cr_expect_eq(t.triple.layer, 1);
		cr_expect_eq(t.triple.etype, 2);
		cr_expect_not(t.swapped);
		cr_expect_null(t.ddp);
	}
}

Test(rdmap_wire, read_request_header_only_behind_an_untagged_one)
{
	uint8_t raw[48] = { 0x11, 0, 0xe0, 0, 0, 20 };
	struct ddps_term_msg t;

	memcpy(raw + 6, write_ddp, 14);
	cr_expect_eq(ddps_term_decode(&t, raw, sizeof raw), 0);
	cr_expect_eq(t.ddp_len, 14);
	cr_expect_null(t.rreq);
}

Test(rdmap_wire, soft_iwarp_terminates)
{
	/* As seen on the wire, without headers; the last two read either way. */
	static const struct {
		uint8_t octet0, code, layer, etype;
		bool swapped;
	} seen[] = {
		{ 0x21, 0x06, 1, 2, true },  { 0x21, 0x03, 1, 2, true },
		{ 0x21, 0x04, 1, 2, true },  { 0x21, 0x01, 1, 2, true },
		{ 0x21, 0x02, 1, 2, true },  { 0x20, 0x09, 0, 2, true },
		{ 0x02, 0x02, 2, 0, true },  { 0x11, 0x00, 1, 1, false },
		{ 0x02, 0x07, 0, 2, false }, { 0x20, 0x06, 2, 0, false },
	};

	for (size_t i = 0; i < sizeof seen / sizeof *seen; i++) {
		uint8_t raw[4] = { seen[i].octet0, seen[i].code, 0, 0 };
		struct ddps_term_msg t;

		cr_expect_eq(ddps_term_decode(&t, raw, 4), 0);
		cr_expect_eq(t.triple.layer, seen[i].layer, "row %zu", i);
		cr_expect_eq(t.triple.etype, seen[i].etype, "row %zu", i);
		cr_expect_eq(t.swapped, seen[i].swapped, "row %zu", i);
		cr_expect_arr_eq(t.ctrl, raw, 4);
	}
}

Test(rdmap_wire, swapped_flags_without_a_read_request_behind)
{
	/* soft-iWARP sets R for errors of Invalidate. */
	uint8_t raw[24] = { 0x20, 0x09, 0x07, 0, 0, 0 };
	struct ddps_term_msg t;

	memcpy(raw + 6, send_ddp, 18);
	cr_expect_eq(ddps_term_decode(&t, raw, sizeof raw), DDPS_E_TRUNCATED);
	cr_expect(t.swapped);
	cr_expect_eq(t.triple.etype, 2);
	cr_expect_arr_eq(t.ddp, send_ddp, 18);
	cr_expect_null(t.rreq);
}

/* As it is with the RFC's flags. */
Test(rdmap_wire, a_length_counts_where_its_flag_is_set, .description = "5040-4.8-9")
{
	uint8_t raw[24] = { 0x21, 0x02, 0, 0, 0, 0x2e };

	memcpy(raw + 6, send_ddp, 18);
	for (unsigned swapped = 0; swapped < 2; swapped++)
		for (unsigned m = 0; m < 2; m++) {
			struct ddps_term_msg t;

			raw[2] = (uint8_t)(swapped ? 2 | m : 0x40 | m << 7);
			cr_expect_eq(ddps_term_decode(&t, raw, sizeof raw), 0);
			cr_expect_eq(t.swapped, swapped);
			cr_expect_eq(t.has_len, m);
			cr_expect_eq(t.seg_len, 0x2e);
			cr_assert_not_null(t.ddp);
		}
}

/* ---- what a work request of each kind may look like; Terminates whose nibbles are exchanged ---- */

static struct side s;
static struct ddps_mr *window;

static void setup(void)
{
	side_init(&s, 200, 8, 4);
	side_start(&s, 4, 4);
	cr_assert_eq(ddps_stag_add_window(&s.pd, false, &window), 0);
}

static void teardown(void)
{
	close_rdmap_side(&s);
}

TestSuite(rdmap_forms, .init = setup, .fini = teardown);

#define ANY (DDPS_WR_SILENT | DDPS_WR_FENCE | DDPS_WR_MORE)
#define SE  DDPS_WR_SOLICITED
#define INV DDPS_WR_INVALIDATE
#define PL  DDPS_WR_PLACED

static const struct form {
	enum ddps_op op;
	bool ext;
	unsigned flags;
	uint32_t max_sge;
} forms[] = {
	{ DDPS_OP_SEND, false, ANY | SE | INV | PL, 4 },
	{ DDPS_OP_WRITE, false, ANY | PL, 4 },
	{ DDPS_OP_READ, false, ANY, 1 },
	{ DDPS_OP_IMM, true, ANY | SE | PL, 0 },
	{ DDPS_OP_WRITE_IMM, true, ANY | SE | PL, 4 },
	{ DDPS_OP_SEND_IMM, true, ANY | SE | PL, 4 },
	{ DDPS_OP_BIND, false, ANY, 1 },
	{ DDPS_OP_LOCAL_INV, false, ANY, 0 },
	{ DDPS_OP_FETCH_ADD, true, ANY, 1 },
	{ DDPS_OP_CMP_SWAP, true, ANY, 1 },
	{ DDPS_OP_ATOMIC_WRITE, true, ANY, 0 },
	{ DDPS_OP_FLUSH, true, ANY, 0 },
};

static const struct form *form_of(int op)
{
	for (size_t i = 0; i < sizeof forms / sizeof *forms; i++)
		if ((int)forms[i].op == op)
			return &forms[i];
	return NULL;
}

static int try(int op, unsigned flags, uint32_t nsge, uint32_t len)
{
	struct ddps_sge sge[5];
	struct ddps_send_wr wr = { .op = (enum ddps_op)op,
				   .flags = flags,
				   .sge = sge,
				   .nsge = nsge,
				   .stag = window->stag,
				   .atomic = { .mask = DDPS_FLUSH_VISIBLE },
				   .bind = { .window = window } };

	for (size_t i = 0; i < 5; i++)
		sge[i] = get_rdmap_piece(&s, 8 * i, len);
	return ddps_rdmap_post_send(s.r, &wr);
}

/* Each is posted behind one that has not gone out, so none is carried out. */
static void reopen_forms_side(bool rfc7306)
{
	ddps_rdmap_free(s.r);
	ddps_stag_table_free(s.table);
	setup();
	s.r->rfc7306 = s.r->send_imm = s.r->flush = rfc7306;
	cr_assert_eq(post_rdmap(&s, DDPS_OP_SEND, 1, 0, 0, 1), 0);
}

Test(rdmap_forms, flags)
{
	for (int op = -1; op < 40; op++) {
		const struct form *f = form_of(op);

		reopen_forms_side(true);
		for (unsigned bit = 0; bit < 32; bit++)
			cr_expect_eq(try(op, 1u << bit, op == DDPS_OP_READ, 8),
				     f && f->flags & 1u << bit ? 0 : DDPS_E_INVAL,
				     "operation %d, flag %u", op, bit);
	}
}

Test(rdmap_forms, pieces)
{
	for (int op = -1; op < 40; op++) {
		const struct form *f = form_of(op);

		reopen_forms_side(true);
		for (uint32_t n = op == DDPS_OP_READ; n <= 5; n++)
			cr_expect_eq(try(op, DDPS_WR_FENCE, n, 8),
				     f && n <= f->max_sge ? 0 : DDPS_E_INVAL,
				     "operation %d, %u pieces", op, n);
	}
}

/* Only atomics have a size: that of their word. */
Test(rdmap_forms, sizes)
{
	for (size_t i = 0; i < sizeof forms / sizeof *forms; i++)
		for (uint32_t len = 0; len < 20; len++) {
			bool atomic =
				forms[i].op == DDPS_OP_FETCH_ADD || forms[i].op == DDPS_OP_CMP_SWAP;

			reopen_forms_side(true);
			cr_expect_eq(try((int)forms[i].op, 0, forms[i].max_sge > 0, len),
				     atomic && len != 8 ? DDPS_E_INVAL : 0, "%zu, %u octets", i,
				     len);
		}
}

Test(rdmap_forms, what_the_peer_may_not_know, .description = "7306-1.1-1")
{
	for (unsigned k = 0; k < 4; k++)
		for (size_t i = 0; i < sizeof forms / sizeof *forms; i++) {
			bool known = !forms[i].ext ||
				     (k & 1 && (forms[i].op < DDPS_OP_SEND_IMM || k & 2));

			reopen_forms_side(k & 1);
			s.r->send_imm = s.r->flush = k & 2;
			cr_expect_eq(try((int)forms[i].op, 0, forms[i].max_sge > 0, 8),
				     known ? 0 : DDPS_E_UNSUPPORTED, "%zu of %u", i, k);
		}
}

/* ---- Terminates ---- */

/* RFC 5040 4.8, 5041 7.2, 5044 8, 6581: layer, type, code. */
static bool assigned(unsigned layer, unsigned etype, unsigned code)
{
	switch (layer << 4 | etype) {
	case 0x00:
	case 0x10:
		return true; /* any code */
	case 0x01:
		return code <= 4 || code == 9 || code == 0xff;
	case 0x02:
		return (code >= 5 && code <= 9) || code == 0xff;
	case 0x11:
		return code <= 4;
	case 0x12:
		return code >= 1 && code <= 6;
	case 0x20:
		return code >= 1 && code <= 7;
	default:
		return false;
	}
}

Test(rdmap_forms, a_terminate_makes_sense_one_way_or_the_other, .description = "5040-4.8-8")
{
	for (unsigned first = 0; first < 256; first++)
		for (unsigned code = 0; code < 256; code++) {
			uint8_t ctrl[4] = { (uint8_t)first, (uint8_t)code };
			unsigned high = first >> 4, low = first & 15;
			bool swapped = !assigned(high, low, code) && assigned(low, high, code);
			struct ddps_term_msg m;

			cr_assert_eq(ddps_term_decode(&m, ctrl, 4), 0);
			cr_assert_eq(m.swapped, swapped, "%02x %02x", first, code);
			cr_assert_eq(m.triple.layer, swapped ? low : high);
			cr_assert_eq(m.triple.etype, swapped ? high : low);
			cr_assert_eq(m.triple.code, code);
		}
}

/* Whatever it announces: nothing behind its end is looked at. */
Test(rdmap_forms, a_terminate_is_read_to_its_end_at_most)
{
	size_t page = (size_t)sysconf(_SC_PAGESIZE);
	uint8_t *at =
		mmap(NULL, 2 * page, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	cr_assert(at != MAP_FAILED);
	cr_assert_eq(mprotect(at + page, page, PROT_NONE), 0);
	for (size_t len = 0; len <= DDPS_TERM_LEN_MAX; len++)
		for (unsigned flags = 0; flags < 256; flags++)
			for (unsigned tagged = 0; tagged < 2; tagged++) {
				size_t ddp = tagged ? 14 : 18, need = 4;
				bool swaps = !(flags & 0xe0) && flags & 7 && len > 4;
				bool d = flags & (swaps ? 2 : 0x40), r = flags & (swaps ? 4 : 0x20);
				struct ddps_term_msg m;

				memset(at + page - len, 0, len);
				if (len > 2)
					at[page - len + 2] = (uint8_t)flags;
				else
					d = r = false;
				if (len > 6)
					at[page - len + 6] = tagged ? 0xc1 : 0x41;
				need += d ? 2 + ddp : 0;
				need += d && r && !tagged ? DDPS_RREQ_LEN : 0;
				cr_assert_eq(ddps_term_decode(&m, at + page - len, len),
					     len < need ? DDPS_E_TRUNCATED : 0,
					     "%zu octets, flags %02x, %zu needed", len, flags,
					     need);
			}
	munmap(at, 2 * page);
}
