/* SPDX-License-Identifier: BSD-2-Clause */
/* Segmentation. */
#include "ddp/ddp_seg.h"
#include "ddp/ddp_wire.h"
#include "ddp/ddp_place.h"
#include <criterion/criterion.h>
#include <stdlib.h>
#include <string.h>
#include <ddpsess/err.h>

static uint8_t mem[70000];

static void fill_ddp_seg(void)
{
	for (size_t i = 0; i < sizeof mem; i++)
		mem[i] = (uint8_t)(i * 7 + i / 251);
}

static void expect_hdr(const struct ddps_seg *seg, const char *raw, size_t len, size_t pay)
{
	cr_assert_eq(seg->hdr_len, len);
	cr_expect_arr_eq(seg->hdr, raw, len);
	cr_expect_eq(seg->pay_len, pay);
}

Test(ddp_seg, cuts_a_tagged_message,
     .description = "5041-4.1-3 5041-4.1-4 5041-4.2-10 5041-4.2-11 5041-4.2-12 5041-4.2-13 "
		    "5041-5.2-1 5041-5.2-2 5041-5.2-8 5041-4.2-5 5041-4.2-6")
{
	struct ddps_sge sge = { mem, 2048, 0 };
	struct ddps_ddp_msg m = {
		.hdr = { .tagged = true, .ulp = 0x40, .stag = 0x1a2b3c01, .to = 0x4000 },
		.sge = &sge,
		.nsge = 1,
		.len = 2048
	};
	struct ddps_seg seg;

	cr_expect_not(ddps_ddp_cut(&m, &seg, 1500));
	expect_hdr(&seg, "\x81\x40\x1a\x2b\x3c\x01\0\0\0\0\0\0\x40\0", 14, 1486);
	cr_expect_eq(seg.pay[0].iov_base, (void *)mem);
	cr_expect(ddps_ddp_cut(&m, &seg, 1500));
	expect_hdr(&seg, "\xc1\x40\x1a\x2b\x3c\x01\0\0\0\0\0\0\x45\xce", 14, 562);
	cr_expect_eq(seg.pay[0].iov_base, (void *)(mem + 1486));
}

Test(ddp_seg, cuts_an_untagged_message,
     .description = "5041-4.1-5 5041-4.1-6 5041-4.3-4 5041-4.3-7 5041-4.3-9 5041-4.3-13 "
		    "5041-4.3-14 5041-4.3-15 5041-5.2-6 5041-5.3-3")
{
	struct ddps_sge sge = { mem, 2048, 0 };
	struct ddps_ddp_msg m = {
		.hdr = { .ulp = 0x43, .msn = 1 }, .sge = &sge, .nsge = 1, .len = 2048
	};
	struct ddps_seg seg;

	cr_expect_not(ddps_ddp_cut(&m, &seg, 1500));
	expect_hdr(&seg, "\x01\x43\0\0\0\0\0\0\0\0\0\0\0\1\0\0\0\0", 18, 1482);
	cr_expect(ddps_ddp_cut(&m, &seg, 1500));
	expect_hdr(&seg, "\x41\x43\0\0\0\0\0\0\0\0\0\0\0\1\0\0\5\xca", 18, 566);
}

Test(ddp_seg, zero_length_is_one_segment, .description = "5041-5.2-9 5041-5.2-10")
{
	struct ddps_ddp_msg m = { .hdr = { .ulp = 0x43, .msn = 5 } };
	struct ddps_seg seg;

	cr_expect(ddps_ddp_cut(&m, &seg, 128));
	expect_hdr(&seg, "\x41\x43\0\0\0\0\0\0\0\0\0\0\0\5\0\0\0\0", 18, 0);
	cr_expect_eq(seg.npay, 0);
}

Test(ddp_seg, payload_at_the_edge_of_the_mulpdu, .description = "5041-5.2-2")
{
	for (unsigned tagged = 0; tagged < 2; tagged++)
		for (int d = -1; d <= 1; d++) {
			size_t room = 128 - (tagged ? 14u : 18u);
			struct ddps_sge sge = { mem, (uint32_t)room + (uint32_t)d, 0 };
			struct ddps_ddp_msg m = {
				.hdr = { .tagged = tagged }, .sge = &sge, .nsge = 1, .len = sge.len
			};
			struct ddps_seg seg;

			cr_expect_eq(ddps_ddp_cut(&m, &seg, 128), d <= 0);
			cr_expect_eq(seg.pay_len, d < 0 ? room - 1 : room);
			if (d > 0) {
				cr_expect(ddps_ddp_cut(&m, &seg, 128));
				cr_expect_eq(seg.pay_len, 1);
			}
		}
}

Test(ddp_seg, many_pieces_and_a_changing_mulpdu, .description = "5041-3-3 5041-5.2-4 5041-5.2-2")
{
	struct ddps_sge sge[DDPS_DDP_SGE_MAX];
	uint8_t *out = malloc(sizeof mem), *want = malloc(sizeof mem);
	struct ddps_ddp_msg m = { .hdr = { .tagged = true }, .sge = sge };
	struct ddps_seg seg;
	bool last = false;
	size_t got = 0;

	fill_ddp_seg();
	for (uint32_t i = 0; i < DDPS_DDP_SGE_MAX; i++) {
		sge[i].addr = mem + (DDPS_DDP_SGE_MAX - 1 - i) * 4000;
		sge[i].len = i % 5 == 3 ? 0 : i * 211 + 1;
		memcpy(want + m.len, sge[i].addr, sge[i].len);
		m.len += sge[i].len;
	}
	m.nsge = DDPS_DDP_SGE_MAX;
	for (size_t mulpdu = 128; !last; mulpdu = mulpdu * 7 / 2 % 5000 + 128) {
		last = ddps_ddp_cut(&m, &seg, mulpdu);
		cr_assert_leq(seg.hdr_len + seg.pay_len, mulpdu);
		cr_assert_leq(seg.npay, DDPS_SEG_IOV_MAX);
		for (int i = 0; i < seg.npay; i++) {
			memcpy(out + got, seg.pay[i].iov_base, seg.pay[i].iov_len);
			got += seg.pay[i].iov_len;
		}
	}
	cr_assert_eq(got, m.len);
	cr_expect_arr_eq(out, want, got);
	free(out);
	free(want);
}

Test(ddp_seg, offsets_near_their_limits, .description = "5041-5.2-3 5041-5.2-6")
{
	struct ddps_sge sge = { mem, UINT32_MAX, 0 }; /* never looked into */
	struct ddps_ddp_msg m = {
		.sge = &sge, .nsge = 1, .len = UINT32_MAX, .sent = UINT32_MAX - 10
	};
	struct ddps_seg seg;

	cr_expect(ddps_ddp_cut(&m, &seg, 128));
	cr_expect_arr_eq(seg.hdr + 14, "\xff\xff\xff\xf5", 4);
	cr_expect_eq(seg.pay_len, 10);

	m = (struct ddps_ddp_msg){ .hdr = { .tagged = true, .to = UINT64_MAX - 9 },
				   .sge = &sge,
				   .nsge = 1,
				   .len = 200,
				   .sent = 190 };
	cr_expect(ddps_ddp_cut(&m, &seg, 128));
	cr_expect_arr_eq(seg.hdr + 6, "\0\0\0\0\0\0\0\xb4", 8);
}

Test(ddp_seg, iovecs_stop_at_their_maximum)
{
	struct ddps_sge sge[3] = { { mem, 10, 0 }, { mem + 100, 10, 0 }, { mem + 200, 10, 0 } };
	struct iovec iov[3];

	cr_expect_eq(ddps_sge_iov(sge, 3, 5, 25, iov, 3), 3);
	cr_expect_eq(iov[0].iov_base, (void *)(mem + 5));
	cr_expect_eq(iov[0].iov_len, 5);
	cr_expect_eq(iov[2].iov_len, 10);
	cr_expect_eq(ddps_sge_iov(sge, 3, 5, 25, iov, 2), 2);
	cr_expect_eq(ddps_sge_iov(sge, 3, 10, 1, iov, 3), 1);
	cr_expect_eq(iov[0].iov_base, (void *)(mem + 100));
	cr_expect_eq(ddps_sge_iov(sge, 3, 30, 1, iov, 3), 0);
	cr_expect_eq(ddps_sge_iov(sge, 3, 0, 0, iov, 3), 0);
}

/* ---- DDP segment headers ---- */

static const struct {
	struct ddps_ddp_hdr h;
	uint8_t raw[18];
	int len;
} dump[] = {
	/* tagged, 2048 octets in two segments */
	{ { .tagged = true, .ulp = 0x40, .stag = 0x1a2b3c01, .to = 0x4000 },
	  { 0x81, 0x40, 0x1a, 0x2b, 0x3c, 1, 0, 0, 0, 0, 0, 0, 0x40, 0 },
	  14 },
	{ { .tagged = true, .last = true, .ulp = 0x40, .stag = 0x1a2b3c01, .to = 0x45ce },
	  { 0xc1, 0x40, 0x1a, 0x2b, 0x3c, 1, 0, 0, 0, 0, 0, 0, 0x45, 0xce },
	  14 },
	/* untagged, 2048 octets in two segments */
	{ { .ulp = 0x43, .msn = 1 },
	  { 1, 0x43, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1, 0, 0, 0, 0 },
	  18 },
	{ { .last = true, .ulp = 0x43, .msn = 1, .mo = 0x5ca },
	  { 0x41, 0x43, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1, 0, 0, 5, 0xca },
	  18 },
	/* zero-length */
	{ { .tagged = true, .last = true, .ulp = 0x40 }, { 0xc1, 0x40 }, 14 },
	{ { .last = true, .ulp = 0x43, .msn = 5 },
	  { 0x41, 0x43, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 5 },
	  18 },
	/* 8 octets to TO 0x10000 */
	{ { .tagged = true, .last = true, .ulp = 0x40, .stag = 0x1a2b3c01, .to = 0x10000 },
	  { 0xc1, 0x40, 0x1a, 0x2b, 0x3c, 1, 0, 0, 0, 0, 0, 1, 0, 0 },
	  14 },
	/* every field at its largest */
	{ { .tagged = true, .ulp = 0xff, .stag = UINT32_MAX, .to = UINT64_MAX },
	  { 0x81, 0xff, 255, 255, 255, 255, 255, 255, 255, 255, 255, 255, 255, 255 },
	  14 },
	{ { .ulp = 0xff,
	    .ulp_word = UINT32_MAX,
	    .qn = UINT32_MAX,
	    .msn = UINT32_MAX,
	    .mo = UINT32_MAX },
	  { 1, 0xff, 255, 255, 255, 255, 255, 255, 255, 255, 255, 255, 255, 255, 255, 255, 255,
	    255 },
	  18 },
};

#define NDUMP (sizeof dump / sizeof *dump)

static void is_same_ddp_wire(const struct ddps_ddp_hdr *a, const struct ddps_ddp_hdr *b)
{
	cr_expect_eq(a->tagged, b->tagged);
	cr_expect_eq(a->last, b->last);
	cr_expect_eq(a->ulp, b->ulp);
	cr_expect_eq(a->ulp_word, b->ulp_word);
	cr_expect_eq(a->stag, b->stag);
	cr_expect_eq(a->to, b->to);
	cr_expect_eq(a->qn, b->qn);
	cr_expect_eq(a->msn, b->msn);
	cr_expect_eq(a->mo, b->mo);
}

Test(ddp_wire, encodes_the_dumps,
     .description = "5041-4.1-9 5041-4.1-11 5041-4.2-1 5041-4.2-2 5041-4.2-8 5041-4.3-1 "
		    "5041-4.3-2 5041-4.3-8 5041-4.4-1 5041-4.4-2")
{
	for (size_t i = 0; i < NDUMP; i++) {
		uint8_t buf[18];

		cr_expect_eq(ddps_ddp_encode(&dump[i].h, buf), (size_t)dump[i].len);
		cr_expect_arr_eq(buf, dump[i].raw, (size_t)dump[i].len, "dump %zu", i);
	}
}

Test(ddp_wire, decodes_the_dumps, .description = "5041-4.2-3 5041-4.1-12")
{
	for (size_t i = 0; i < NDUMP; i++) {
		struct ddps_ddp_hdr h = { 0 };

		cr_expect_eq(ddps_ddp_decode(&h, dump[i].raw, (size_t)dump[i].len), dump[i].len);
		is_same_ddp_wire(&h, &dump[i].h);
	}
}

Test(ddp_wire, refuses_every_truncation)
{
	for (size_t i = 0; i < NDUMP; i++)
		for (size_t n = 0; n < (size_t)dump[i].len; n++) {
			struct ddps_ddp_hdr h = { .to = 77 };
			uint8_t *cut = malloc(n); /* exact size: ASan guards octet n */

			if (n)
				memcpy(cut, dump[i].raw, n);
			cr_expect_eq(ddps_ddp_decode(&h, cut, n), DDPS_E_TRUNCATED, "n=%zu", n);
			cr_expect_eq(h.to, 77, "untouched");
			free(cut);
		}
}

Test(ddp_wire, does_not_check_reserved_bits, .description = "5041-4.1-10")
{
	for (unsigned rsvd = 0; rsvd < 16; rsvd++) {
		uint8_t raw[18] = { (uint8_t)(0x41 | rsvd << 2), 0x43 };
		struct ddps_ddp_hdr h;

		cr_expect_eq(ddps_ddp_decode(&h, raw, sizeof raw), 18);
		cr_expect(h.last && !h.tagged);
	}
}

Test(ddp_wire, refuses_other_versions, .description = "5041-4.1-12")
{
	static const uint8_t dv[] = { 0, 2, 3 };

	for (size_t i = 0; i < sizeof dv; i++)
		for (unsigned t = 0; t < 2; t++)
			for (size_t n = 1; n <= 18; n++) {
				struct ddps_ddp_hdr h = { .msn = 77 };
				uint8_t *raw = calloc(1, n);

				*raw = (uint8_t)((t ? 0xC0 : 0x40) | dv[i]);
				cr_expect_eq(ddps_ddp_decode(&h, raw, n), DDPS_E_REVISION);
				cr_expect_eq(h.msn, n < (t ? 14u : 18u) ? 77 : 0);
				free(raw);
			}
}

/* ---- checks before Placement ---- */

/* 0, or the untagged code 1/2/xx. */
static int make_untagged_ddp_place(struct ddps_ddp_queue q, uint32_t msn, uint32_t mo, size_t len,
				   bool have, uint64_t buf)
{
	struct ddps_ddp_hdr h = { .msn = msn, .mo = mo };
	struct ddps_fault f;

	if (!ddps_ddp_check_untagged(&q, &h, len, have, buf, &f))
		return 0;
	cr_expect_eq(f.triple.layer, 1);
	cr_expect_eq(f.triple.etype, 2);
	cr_expect_eq(f.code, DDPS_E_PROTOCOL);
	cr_expect(f.text[0]);
	return f.triple.code;
}

Test(ddp_place, msn_must_be_the_expected_one,
     .description = "5041-7.1-3 5041-7.1-7 5041-7.1-10 5041-7.2-1")
{
	struct ddps_ddp_queue q = { .msn = 9 };

	cr_expect_eq(make_untagged_ddp_place(q, 9, 0, 1, true, 10), 0);
	cr_expect_eq(make_untagged_ddp_place(q, 8, 0, 1, true, 10), 3);
	cr_expect_eq(make_untagged_ddp_place(q, 10, 0, 1, true, 10), 3);
	cr_expect_eq(make_untagged_ddp_place(q, 9, 0, 1, false, 0), 2);
	cr_expect_eq(make_untagged_ddp_place(q, 10, 0, 1, false, 0), 3);
}

Test(ddp_place, msn_wraps_through_zero, .description = "5041-4.3-12")
{
	struct ddps_ddp_queue q = { .msn = UINT32_MAX };

	cr_expect_eq(make_untagged_ddp_place(q, UINT32_MAX, 0, 0, true, 0), 0);
	cr_expect_eq(make_untagged_ddp_place(q, 0, 0, 0, true, 0), 3);
	q.msn++;
	cr_expect_eq(make_untagged_ddp_place(q, 0, 0, 0, true, 0), 0);
	cr_expect_eq(make_untagged_ddp_place(q, UINT32_MAX, 0, 0, true, 0), 3);
}

Test(ddp_place, mo_and_length_stay_inside_the_buffer,
     .description = "5041-7.1-1 5041-7.1-8 5041-7.1-9 5041-1.2-1")
{
	struct ddps_ddp_queue q = { .msn = 1, .got = 4 };

	cr_expect_eq(make_untagged_ddp_place(q, 1, 4, 5, true, 10), 0);
	cr_expect_eq(make_untagged_ddp_place(q, 1, 4, 6, true, 10), 0);
	cr_expect_eq(make_untagged_ddp_place(q, 1, 4, 7, true, 10), 5);
	q.got = 10;
	cr_expect_eq(make_untagged_ddp_place(q, 1, 10, 0, true, 10), 0);
	cr_expect_eq(make_untagged_ddp_place(q, 1, 10, 1, true, 10), 5);
	q.got = 11;
	cr_expect_eq(make_untagged_ddp_place(q, 1, 11, 0, true, 10), 4);
}

Test(ddp_place, holes_and_repeats_are_refused, .description = "5041-1.2-2")
{
	struct ddps_ddp_queue q = { .msn = 1, .got = 4 };

	cr_expect_eq(make_untagged_ddp_place(q, 1, 3, 1, true, 10), 4);
	cr_expect_eq(make_untagged_ddp_place(q, 1, 5, 1, true, 10), 4);
	q.got = 0;
	cr_expect_eq(make_untagged_ddp_place(q, 1, 1, 1, true, 10), 4);
}

Test(ddp_place, mo_near_2_to_the_32)
{
	struct ddps_ddp_queue q = { .msn = 1, .got = UINT32_MAX };

	cr_expect_eq(make_untagged_ddp_place(q, 1, UINT32_MAX, 1, true, UINT32_MAX), 5);
	cr_expect_eq(make_untagged_ddp_place(q, 1, UINT32_MAX, 0, true, UINT32_MAX), 0);
	cr_expect_eq(make_untagged_ddp_place(q, 1, UINT32_MAX, 1, true, 10), 4);
}

Test(ddp_place, every_verdict_has_its_tagged_code, .description = "5041-7.2-1")
{
	static const struct {
		enum ddps_stag_verdict v;
		uint8_t code;
	} row[] = { { DDPS_STAG_INVALID, 0 },
		    { DDPS_STAG_ACCESS, 0 },
		    { DDPS_STAG_BOUNDS, 1 },
		    { DDPS_STAG_ASSOCIATION, 2 },
		    { DDPS_STAG_WRAP, 3 } };
	struct ddps_ddp_hdr h = { .tagged = true };
	struct ddps_fault f;

	for (size_t i = 0; i < sizeof row / sizeof *row; i++) {
		cr_expect_eq(ddps_ddp_stag_fault(row[i].v, &h, 1, &f), DDPS_E_ACCESS);
		cr_expect_eq(f.triple.layer, 1);
		cr_expect_eq(f.triple.etype, 1);
		cr_expect_eq(f.triple.code, row[i].code);
	}
}
