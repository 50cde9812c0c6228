/* SPDX-License-Identifier: BSD-2-Clause */
/* What a work request of each kind may look like; Terminates whose nibbles are exchanged. */
#include "rdmap_fixture.h"
#include <sys/mman.h>
#include <unistd.h>

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
