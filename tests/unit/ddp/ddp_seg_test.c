/* SPDX-License-Identifier: BSD-2-Clause */
/* Segmentation. */
#include "ddp/ddp_seg.h"
#include <criterion/criterion.h>
#include <stdlib.h>
#include <string.h>

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
