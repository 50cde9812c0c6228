/* SPDX-License-Identifier: BSD-2-Clause */
/* FPDU transmitter. */
#include "mpa_tcp/mpa_fpdu.h"
#include "mpa_tcp/mpa_tx.h"
#include "support/mpa_support.h"
#include <limits.h>

/* Segments to send: header of hdr_len octets, payload in npay pieces, from one pattern. */
struct source {
	const uint8_t *octets;
	size_t len[200], nseg, next;
	size_t hdr_len;
	int npay;
	size_t mulpdu; /* as last asked */
};

static int source_next(void *user, struct ddps_seg *seg, size_t mulpdu)
{
	struct source *s = user;
	size_t len, left;

	s->mulpdu = mulpdu;
	if (s->next == s->nseg)
		return 0;
	len = s->len[s->next++];
	seg->hdr_len = len < s->hdr_len || !s->npay ? len : s->hdr_len;
	memcpy(seg->hdr, s->octets, seg->hdr_len);
	seg->pay_len = left = len - seg->hdr_len;
	seg->npay = s->npay;
	for (int i = 0; i < s->npay; i++) {
		size_t n = i + 1 < s->npay ? left / 3 : left;

		seg->pay[i] = (struct iovec){ (void *)(uintptr_t)(s->octets + len - left), n };
		left -= n;
	}
	return 1;
}

/* Write out everything, @max octets at a time (0: random), and count what was done. */
static unsigned drain(struct ddps_mpa_tx *tx, struct source *s, size_t mulpdu,
		      struct mpa_octets *out, size_t max, uint32_t seed)
{
	unsigned done = 0;
	int n;

	while ((n = ddps_mpa_tx_fill(tx, source_next, s, mulpdu)) > 0) {
		while (ddps_mpa_tx_left(tx)) {
			size_t limit = max ? max : 1 + mpa_random(&seed) % 3000, wrote = 0;
			struct iovec *iov;
			int k = ddps_mpa_tx_iov(tx, &iov);

			cr_assert(k > 0 && k <= IOV_MAX);
			for (int i = 0; i < k && wrote < limit; i++) {
				size_t len = iov[i].iov_len;

				cr_assert(len);
				if (len > limit - wrote)
					len = limit - wrote;
				mpa_octets_add(out, iov[i].iov_base, len);
				wrote += len;
			}
			done += ddps_mpa_tx_sent(tx, wrote);
		}
	}
	cr_expect_eq(n, 0);
	return done;
}

static void expect_as_reference(struct source *s, bool crc, bool markers, size_t max)
{
	struct mpa_ref ref = { .crc = crc, .markers = markers };
	struct mpa_octets out = { 0 };
	struct ddps_mpa_tx tx;

	ddps_mpa_tx_init(&tx);
	tx.crc = crc;
	tx.markers = markers;
	s->next = 0;
	for (size_t i = 0; i < s->nseg; i++)
		mpa_ref_fpdu(&ref, s->octets, s->len[i]);
	cr_expect_eq(drain(&tx, s, 64768, &out, max, 11), s->nseg);
	cr_assert_eq(out.len, ref.out.len);
	cr_expect(!memcmp(out.p, ref.out.p, out.len), "crc %d, markers %d", crc, markers);
	cr_expect_null(tx.batch, "idle transmitters hold no memory");
	free(out.p);
	free(ref.out.p);
	ddps_mpa_tx_fini(&tx);
}

Test(mpa_tx, equals_the_reference,
     .description = "5044-3-1 5044-4.1-1 5044-4.1-2 5044-4.1-d1 5044-4.1-d2 5044-4.1-d3 5044-4.2-1 "
		    "5044-4.2-2 5044-4.2-4 5044-4.3-1 5044-4.3-2 5044-4.3-3 5044-4.3-5 5044-4.3-7 "
		    "5044-4.3-8 5044-4.3-9 5044-4.3-10 5044-4.4-12 5044-4.4-13 5044-4.4-14 "
		    "5044-4.4-15 5044-4.4-16 5044-4.4-17 5044-7.1.1-7 5044-7.1.1-8 5044-1.2-d1")
{
	uint8_t *octets = mpa_pattern(64768, 2);
	struct source s = { .octets = octets, .nseg = 100, .hdr_len = 18 };

	for (unsigned i = 0; i < 100; i++)
		s.len[i] = 1 + i * i % 1500;
	for (s.npay = 0; s.npay <= 4; s.npay += 2)
		for (unsigned mode = 0; mode < 4; mode++) {
			for (unsigned i = 0; !s.npay && i < 100; i++)
				s.len[i] = 1 + i % 70;
			expect_as_reference(&s, mode & 1, mode & 2, 1000000);
			expect_as_reference(&s, mode & 1, mode & 2, 0);
			expect_as_reference(&s, mode & 1, mode & 2, 1);
			for (unsigned i = 0; i < 100; i++)
				s.len[i] = 1 + i * i % 1500;
		}
	free(octets);
}

Test(mpa_tx, largest_segments, .description = "5044-3-6 5044-4.3-2")
{
	uint8_t *octets = mpa_pattern(64768, 2);
	struct source s = { .octets = octets,
			    .nseg = 6,
			    .hdr_len = 14,
			    .npay = DDPS_SEG_IOV_MAX,
			    .len = { 64768, 64767, 64766, 64765, 1, 64768 } };

	for (unsigned mode = 0; mode < 4; mode++) {
		expect_as_reference(&s, mode & 1, mode & 2, 10000000);
		expect_as_reference(&s, mode & 1, mode & 2, 0);
	}
	free(octets);
}

Test(mpa_tx, markers_at_every_phase, .description = "5044-4.3-2 5044-4.3-9 5044-4.4-15")
{
	uint8_t *octets = mpa_pattern(2000, 2);

	for (size_t first = 1; first < 512; first += 4) {
		struct source s = { .octets = octets,
				    .nseg = 8,
				    .hdr_len = 18,
				    .npay = 3,
				    .len = { first, 1442, 18, 506, 507, 508, 1, 498 } };

		expect_as_reference(&s, true, true, 333);
	}
	free(octets);
}

Test(mpa_tx, nothing_trails_the_last_fpdu, .description = "5044-4.3-7 5044-7.1.2-d1")
{
	uint8_t *octets = mpa_pattern(600, 2);
	struct source s = { .octets = octets, .nseg = 1, .hdr_len = 18, .npay = 1, .len = { 502 } };
	struct mpa_octets out = { 0 };
	struct ddps_mpa_tx tx;

	ddps_mpa_tx_init(&tx);
	tx.crc = tx.markers = true;
	drain(&tx, &s, 64768, &out, 10000, 0);
	cr_expect_eq(out.len, 512, "the marker at 512 belongs to the next FPDU");
	cr_expect_arr_eq(out.p, ((uint8_t[]){ 0, 0, 0, 0, 502 >> 8, 502 & 255 }), 6);
	free(out.p);
	free(octets);
}

Test(mpa_tx, done_when_the_last_octet_has_left)
{
	uint8_t *octets = mpa_pattern(600, 2);
	struct source s = {
		.octets = octets, .nseg = 3, .hdr_len = 18, .npay = 1, .len = { 18, 22, 26 }
	};
	static const unsigned ends[] = { 24, 52, 84 };
	struct ddps_mpa_tx tx;
	unsigned done = 0;

	ddps_mpa_tx_init(&tx);
	tx.crc = true;
	cr_assert_eq(ddps_mpa_tx_fill(&tx, source_next, &s, 64768), 3);
	cr_assert_eq(ddps_mpa_tx_left(&tx), 84);
	for (unsigned n = 1; n <= 84; n++) {
		done += ddps_mpa_tx_sent(&tx, 1);
		cr_expect_eq(done, (n >= ends[0]) + (n >= ends[1]) + (n >= ends[2]), "%u", n);
	}
	ddps_mpa_tx_fini(&tx);
	free(octets);
}

Test(mpa_tx, without_a_crc_payload_is_not_copied)
{
	uint8_t *octets = mpa_pattern(600, 2);
	struct source s = {
		.octets = octets, .nseg = 2, .hdr_len = 18, .npay = 1, .len = { 218, 318 }
	};
	struct ddps_mpa_tx tx;
	struct iovec *iov;

	ddps_mpa_tx_init(&tx);
	cr_assert_eq(ddps_mpa_tx_fill(&tx, source_next, &s, 1442), 2);
	cr_expect_eq(s.mulpdu, 1442);
	/* header | payload | CRC and header | payload | CRC */
	cr_assert_eq(ddps_mpa_tx_iov(&tx, &iov), 5);
	cr_expect(iov[1].iov_base == octets + 18 && iov[1].iov_len == 200);
	cr_expect(iov[3].iov_base == octets + 18 && iov[3].iov_len == 300);
	ddps_mpa_tx_fini(&tx);
	free(octets);
}

/* The program, or a peer, writes to the memory between the CRC and the system call. */
Test(mpa_tx, attack_12a_what_leaves_is_what_was_checked, .description = "5044-4.4-12 5044-4.4-14")
{
	static const size_t lens[] = { 20, 140, 160, 1442, 9000, 60000, 64768 };

	for (unsigned k = 0; k < 2 * sizeof lens / sizeof lens[0]; k++) {
		size_t len = lens[k / 2];
		uint8_t *was = mpa_pattern(len, 2), *octets = mpa_exact(was, len);
		struct source s = { .octets = octets,
				    .nseg = 3,
				    .hdr_len = 18,
				    .npay = 2,
				    .len = { len, len, len } };
		struct mpa_octets out = { 0 };
		struct ddps_mpa_tx tx;
		struct iovec *iov;
		struct mpa_rec r;

		ddps_mpa_tx_init(&tx);
		tx.crc = true;
		tx.markers = k % 2;
		mpa_rec_init(&r, true, tx.markers);
		while (ddps_mpa_tx_fill(&tx, source_next, &s, 64768) > 0) {
			memset(octets, 0x5a, len); /* all of it; nothing reads it any more */
			cr_expect_eq(ddps_mpa_tx_keep_copy(&tx), 0);
			cr_assert_eq(ddps_mpa_tx_iov(&tx, &iov), 1);
			mpa_octets_add(&out, iov->iov_base, iov->iov_len);
			ddps_mpa_tx_sent(&tx, iov->iov_len);
			memcpy(octets, was, len);
		}
		mpa_rec_feed(&r, out.p, out.len, 100000, 0);
		cr_expect_eq(r.err, 0, "%zu octets: %s", len, r.e.text);
		cr_expect_eq(r.segments, 3);
		for (unsigned i = 0; i < 3; i++)
			cr_expect(mpa_rec_is(&r, i, was, len), "%u of %zu octets", i, len);
		mpa_rec_fini(&r);
		free(out.p);
		free(octets);
		free(was);
	}
}

/* A piece for each 508 octets would cost more than the copy. */
Test(mpa_tx, with_markers_it_is_all_in_one_piece)
{
	uint8_t *octets = mpa_pattern(70000, 2);
	struct source s = {
		.octets = octets, .nseg = 2, .hdr_len = 18, .npay = 1, .len = { 60000, 9000 }
	};
	struct ddps_mpa_tx tx;
	struct iovec *iov;

	ddps_mpa_tx_init(&tx);
	tx.crc = tx.markers = true;
	cr_assert_eq(ddps_mpa_tx_fill(&tx, source_next, &s, 64000), 2);
	cr_assert_eq(ddps_mpa_tx_iov(&tx, &iov), 1);
	cr_expect_eq(iov->iov_len, ddps_mpa_tx_left(&tx));
	cr_expect_gt(iov->iov_len, 69000u + 4 * 69000 / 512);
	ddps_mpa_tx_fini(&tx);
	free(octets);
}

/* 64 of them, or those that begin within 64 KiB. */
Test(mpa_tx, many_fpdus_in_one_batch)
{
	static const struct {
		size_t len, mulpdu;
		int fit;
	} row
		[] = {
			{ 1000, 1442, 96 },  { 1338, 1442, 96 }, { 1350, 1442, 96 },
			{ 1354, 1442, 95 },  { 1442, 1442, 90 }, { 16383, 16383, 8 },
			{ 16383, 16384, 4 }, /* fewer octets where they are large */
		};
	uint8_t *octets = mpa_pattern(16384, 2);

	for (size_t k = 0; k < sizeof row / sizeof row[0]; k++) {
		struct source s = { .octets = octets, .nseg = 200, .hdr_len = 18, .npay = 2 };
		struct ddps_mpa_tx tx;

		for (unsigned i = 0; i < 200; i++)
			s.len[i] = row[k].len;
		ddps_mpa_tx_init(&tx);
		cr_expect_eq(ddps_mpa_tx_fill(&tx, source_next, &s, row[k].mulpdu), row[k].fit);
		cr_expect_eq(s.next, (size_t)row[k].fit, "what was pulled goes out");
		ddps_mpa_tx_fini(&tx);
	}
	free(octets);
}

Test(mpa_tx, refuses_what_is_no_ulpdu, .description = "5044-3-5 5044-3-7")
{
	uint8_t *octets = mpa_pattern(2000, 2);
	static const size_t lens[] = { 0, 1443 };

	for (size_t i = 0; i < 2; i++) {
		struct source s = {
			.octets = octets, .nseg = 1, .hdr_len = 18, .npay = 1, .len = { lens[i] }
		};
		struct ddps_mpa_tx tx;

		ddps_mpa_tx_init(&tx);
		cr_expect_eq(ddps_mpa_tx_fill(&tx, source_next, &s, 1442), DDPS_E_INVAL);
		ddps_mpa_tx_fini(&tx);
	}
	free(octets);
}

Test(mpa_tx, crc_field_is_zero_when_off, .description = "5044-4.4-12 5044-4.1-d3")
{
	uint8_t *octets = mpa_pattern(100, 2);
	struct source s = { .octets = octets, .nseg = 1, .hdr_len = 18, .npay = 1, .len = { 20 } };
	struct mpa_octets out = { 0 };
	struct ddps_mpa_tx tx;

	ddps_mpa_tx_init(&tx);
	drain(&tx, &s, 1442, &out, 10000, 0);
	cr_assert_eq(out.len, 28);
	cr_expect_arr_eq(out.p + 24, "\0\0\0\0", 4);
	free(out.p);
	free(octets);
}

/* ---- what one side sends the other understands ---- */

static void make_mpa_tx_round_trip(struct source *s, bool crc, bool markers, size_t read_max)
{
	struct mpa_octets out = { 0 };
	struct ddps_mpa_tx tx;
	struct mpa_rec r;

	ddps_mpa_tx_init(&tx);
	tx.crc = crc;
	tx.markers = markers;
	s->next = 0;
	drain(&tx, s, 64768, &out, 100000, 0);
	mpa_rec_init(&r, crc, markers);
	mpa_rec_feed(&r, out.p, out.len, read_max, 5);
	cr_expect_eq(r.err, 0, "%s", r.e.text);
	cr_assert_eq(r.segments, s->nseg);
	for (unsigned i = 0; i < s->nseg; i++)
		cr_expect(mpa_rec_is(&r, i, s->octets, s->len[i]), "%u: L %zu", i, s->len[i]);
	cr_expect(ddps_mpa_rx_at_boundary(&r.rx));
	mpa_rec_fini(&r);
	free(out.p);
}

Test(mpa_tx, received_at_every_phase_in_any_pieces,
     .description = "5044-4.3-2 5044-4.3-12 5044-5.1-5 5044-A.4-1")
{
	uint8_t *octets = mpa_pattern(65535, 2);
	static const size_t pieces[] = { 1, 100000, 0 };

	for (size_t first = 1; first <= 509; first += 4)
		for (size_t i = 0; i < 3; i++) {
			struct source s = { .octets = octets,
					    .nseg = 9,
					    .hdr_len = 14,
					    .npay = 2,
					    .len = { first, 1, 128, 506, 507, 508, 1442, 502,
						     18 } };

			make_mpa_tx_round_trip(&s, true, true, pieces[i]);
			if (i)
				make_mpa_tx_round_trip(&s, true, false, pieces[i]);
		}
	free(octets);
}

Test(mpa_tx, received_for_every_length, .description = "5044-3-6")
{
	uint8_t *octets = mpa_pattern(65535, 2);

	for (size_t l = 1; l < 1600; l++) {
		struct source s = { .octets = octets,
				    .nseg = 3,
				    .hdr_len = 18,
				    .npay = 1,
				    .len = { l, 1600 - l, l } };

		make_mpa_tx_round_trip(&s, l & 1, true, 100000);
		make_mpa_tx_round_trip(&s, l & 1, false, 100000);
	}
	for (size_t l = 64700; l <= 64768; l++) {
		struct source s = {
			.octets = octets, .nseg = 2, .hdr_len = 18, .npay = 1, .len = { l, l }
		};

		make_mpa_tx_round_trip(&s, true, l & 1, 0);
	}
	free(octets);
}

/* ---- segments that are no good, and the bounds of a batch ---- */

static int odd_next(void *user, struct ddps_seg *seg, size_t mulpdu)
{
	(void)mulpdu;
	*seg = *(const struct ddps_seg *)user;
	return 1;
}

static int fill_odd(struct ddps_seg *seg)
{
	struct ddps_mpa_tx tx;
	int n;

	ddps_mpa_tx_init(&tx);
	n = ddps_mpa_tx_fill(&tx, odd_next, seg, 1442);
	ddps_mpa_tx_fini(&tx);
	return n;
}

Test(mpa_tx, refuses_what_does_not_add_up)
{
	static uint8_t octets[400];
	struct ddps_seg seg = { .hdr_len = 18, .pay_len = 400, .npay = 1, .final = true };

	seg.pay[0] = (struct iovec){ octets, 400 };
	cr_expect_eq(fill_odd(&seg), 1);
	seg.pay_len = 399;
	cr_expect_eq(fill_odd(&seg), DDPS_E_INVAL, "more than it says");
	seg.pay_len = 400;
	seg.npay = -1;
	cr_expect_eq(fill_odd(&seg), DDPS_E_INVAL);
	seg.pay_len = 0; /* as many octets as no pieces have */
	cr_expect_eq(fill_odd(&seg), DDPS_E_INVAL);
	seg.npay = 0;
	cr_expect_eq(fill_odd(&seg), 1);
	seg.pay_len = 400;
	seg.npay = DDPS_SEG_IOV_MAX + 1;
	cr_expect_eq(fill_odd(&seg), DDPS_E_INVAL);
	seg.npay = 1;
	seg.hdr_len = sizeof seg.hdr + 1;
	cr_expect_eq(fill_odd(&seg), DDPS_E_INVAL);
	seg.hdr_len = sizeof seg.hdr;
	cr_expect_eq(fill_odd(&seg), 1);
}

/* A batch ends where not one more of the largest would fit. */
Test(mpa_tx, pieces_have_their_bound)
{
	static uint8_t octets[2 * 10 * DDPS_SEG_IOV_MAX];
	struct ddps_seg seg = { .hdr_len = 18,
				.pay_len = 10 * DDPS_SEG_IOV_MAX,
				.npay = DDPS_SEG_IOV_MAX };
	struct ddps_mpa_tx tx;
	struct iovec *iov = NULL;
	int n, k;

	for (int i = 0; i < DDPS_SEG_IOV_MAX; i++) /* none next to another */
		seg.pay[i] = (struct iovec){ octets + 20 * i, 10 };
	seg.pay[3].iov_len = 0; /* it is no piece */
	seg.pay_len -= 10;
	ddps_mpa_tx_init(&tx);
	cr_expect_eq(ddps_mpa_tx_iov(&tx, &iov), 0, "nothing yet");
	n = ddps_mpa_tx_fill(&tx, odd_next, &seg, 1442);
	cr_assert_gt(n, 1);
	cr_expect_lt(n, 64);
	k = ddps_mpa_tx_iov(&tx, &iov);
	cr_expect_leq(k, IOV_MAX);
	cr_expect_gt(k, IOV_MAX - 2 * (DDPS_SEG_IOV_MAX + 2));
	for (int i = 0; i < k; i++)
		cr_expect_gt(iov[i].iov_len, 0);
	ddps_mpa_tx_sent(&tx, ddps_mpa_tx_left(&tx));
	cr_expect_eq(ddps_mpa_tx_keep_copy(&tx), 0, "all has left");
	ddps_mpa_tx_fini(&tx);
}
