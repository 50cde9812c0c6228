/* SPDX-License-Identifier: BSD-2-Clause */
/* DDP segment headers. */
#include "ddp/ddp_wire.h"
#include <criterion/criterion.h>
#include <ddpsess/err.h>
#include <stdlib.h>
#include <string.h>

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
