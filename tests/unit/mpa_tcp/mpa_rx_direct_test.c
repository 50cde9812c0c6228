/* SPDX-License-Identifier: BSD-2-Clause */
/* The FPDU receiver: direct placement, and a layer above that answers oddly. */
#include "mpa_tcp/mpa_fpdu.h"
#include "mpa_tcp/mpa_rx.h"
#include "support/mpa_support.h"

static struct mpa_octets tagged_stream(size_t n, size_t len, uint8_t **ulpdu)
{
	struct mpa_ref ref = { .crc = false };

	*ulpdu = mpa_pattern(len, 4);
	for (size_t i = 0; i < n; i++)
		mpa_ref_fpdu(&ref, *ulpdu, len);
	return ref.out;
}

Test(mpa_rx, direct_placement_equals_copying, .description = "5044-4.3-11 5044-4.3-12")
{
	static const size_t lens[] = { 14, 18, 19, 20, 21, 22, 1442, 1443, 1444, 1445, 65535 };
	static const size_t pieces[] = { 1, 13, 20, 21, 22, 1000, 4000, 0 };

	for (size_t i = 0; i < sizeof lens / sizeof lens[0]; i++) {
		uint8_t *ulpdu;
		struct mpa_octets s = tagged_stream(5, lens[i], &ulpdu);

		for (size_t j = 0; j < sizeof pieces / sizeof pieces[0]; j++) {
			struct mpa_rec r;

			if (lens[i] > 2000 && pieces[j] < 1000)
				continue;
			mpa_rec_init(&r, false, false);
			r.direct_hdr = 14;
			mpa_rec_feed(&r, s.p, s.len, pieces[j], 77);
			cr_expect_eq(r.segments, 5);
			for (unsigned k = 0; k < 5; k++)
				cr_expect(mpa_rec_is(&r, k, ulpdu, lens[i]), "L %zu in %zu",
					  lens[i], pieces[j]);
			cr_expect_eq(r.directs, r.placed);
			if (lens[i] > 100 && pieces[j] == 1)
				cr_expect_eq(r.placed, 5);
			ddps_mpa_rx_idle(&r.rx);
			cr_expect_null(r.rx.part);
			mpa_rec_fini(&r);
		}
		free(s.p);
		free(ulpdu);
	}
}

Test(mpa_rx, direct_reads_go_to_the_place_itself)
{
	uint8_t *ulpdu;
	struct mpa_octets s = tagged_stream(1, 5014, &ulpdu);
	struct iovec iov[DDPS_MPA_RX_IOV];
	struct mpa_rec r;

	mpa_rec_init(&r, false, false);
	r.direct_hdr = 14;
	r.piece = 3000;
	mpa_rec_read(&r, s.p, 116, 116);
	cr_assert_eq(ddps_mpa_rx_want(&r.rx, r.scratch, r.scratch_len, iov), 4);
	cr_expect(iov[0].iov_base == r.place + 100 && iov[0].iov_len == 3000);
	cr_expect(iov[1].iov_base == r.place + 3100 && iov[1].iov_len == 1900);
	cr_expect_eq(iov[2].iov_len, 4, "CRC");
	cr_expect_eq(iov[3].iov_base, r.scratch);
	mpa_rec_fini(&r);
	free(s.p);
	free(ulpdu);
}

/* Behind a large payload only the next header is read: that FPDU's payload goes to its place too. */
Test(mpa_rx, large_payloads_are_not_read_ahead)
{
	for (size_t pay = 8191; pay <= 8193; pay++) {
		uint8_t *ulpdu;
		struct mpa_octets s = tagged_stream(2, 14 + pay, &ulpdu);
		struct iovec iov[DDPS_MPA_RX_IOV];
		struct mpa_rec r;
		int n;

		mpa_rec_init(&r, false, false);
		r.direct_hdr = 14;
		mpa_rec_read(&r, s.p, 116, 116);
		n = ddps_mpa_rx_want(&r.rx, r.scratch, r.scratch_len, iov);
		cr_assert_geq(n, 3);
		cr_expect_eq(iov[n - 1].iov_base, r.scratch);
		cr_expect_eq(iov[n - 1].iov_len, pay < 8192 ? r.scratch_len : DDPS_MPA_RX_HEAD);
		n = ddps_mpa_rx_want(&r.rx, r.scratch, 7, iov);
		cr_expect_eq(iov[n - 1].iov_len, 7, "more than there is");
		mpa_rec_fini(&r);
		free(s.p);
		free(ulpdu);
	}
}

Test(mpa_rx, direct_reads_end_with_the_payload)
{
	uint8_t *ulpdu;
	struct mpa_octets s = tagged_stream(3, 5014, &ulpdu);
	struct mpa_rec r;

	mpa_rec_init(&r, false, false);
	r.direct_hdr = 14;
	r.piece = 5000;
	r.excess = 4000;
	mpa_rec_feed(&r, s.p, s.len, 6000, 0);
	cr_expect_gt(r.placed, 0);
	for (unsigned i = 0; i < 3; i++)
		cr_expect(mpa_rec_is(&r, i, ulpdu, 5014));
	mpa_rec_fini(&r);
	free(s.p);
	free(ulpdu);
}

Test(mpa_rx, no_direct_placement_with_crc_or_markers, .description = "5044-6-1 5044-4.4-18")
{
	uint8_t *ulpdu = mpa_pattern(3000, 4);

	for (unsigned i = 1; i < 4; i++) {
		struct mpa_ref ref = { .crc = i & 1, .markers = i & 2 };
		struct mpa_rec r;

		mpa_ref_fpdu(&ref, ulpdu, 3000);
		mpa_rec_init(&r, i & 1, i & 2);
		r.direct_hdr = 14;
		mpa_rec_feed(&r, ref.out.p, ref.out.len, 50, 0);
		cr_expect_eq(r.directs, 0);
		cr_expect(mpa_rec_is(&r, 0, ulpdu, 3000));
		mpa_rec_fini(&r);
		free(ref.out.p);
	}
	free(ulpdu);
}

Test(mpa_rx, revoked_memory_is_not_written)
{
	uint8_t *ulpdu;
	struct mpa_octets s = tagged_stream(3, 2000, &ulpdu);

	for (unsigned at = 1; at < 20; at++) {
		struct mpa_rec r;
		size_t end;

		mpa_rec_init(&r, false, false);
		memset(r.place, 0xee, 65536);
		r.direct_hdr = 14;
		r.revoke_at = at;
		mpa_rec_feed(&r, s.p, s.len, 100, 0);
		cr_assert_geq(r.iov_calls, at);
		cr_expect(r.rx.dead);
		cr_expect_eq(r.iov_calls, at, "not asked again");
		cr_expect_eq(r.segments, 0);
		for (end = 65536; end && r.place[end - 1] == 0xee; end--)
			;
		cr_expect_leq(end, at * 100u);
		mpa_rec_fini(&r);
	}
	free(s.p);
	free(ulpdu);
}

Test(mpa_rx, refusal_at_the_end_of_a_placement)
{
	uint8_t *ulpdu;
	struct mpa_octets s = tagged_stream(3, 2000, &ulpdu);
	struct mpa_rec r;

	mpa_rec_init(&r, false, false);
	r.direct_hdr = 14;
	r.refuse_at = 2;
	mpa_rec_feed(&r, s.p, s.len, 100, 0);
	cr_expect_eq(r.segments, 2);
	cr_expect(r.rx.dead);
	mpa_rec_fini(&r);
	free(s.p);
	free(ulpdu);
}

/* ---- a layer above that answers oddly ---- */

static size_t long_direct(void *user, const uint8_t *hdr, size_t have, size_t seg_len)
{
	(void)user;
	(void)hdr;
	(void)seg_len;
	return have + 1;
}

/* Behind the header nothing has come yet to be placed: it is received whole. */
Test(mpa_rx, a_header_longer_than_what_is_there)
{
	uint8_t *ulpdu;
	struct mpa_octets s = tagged_stream(1, 2000, &ulpdu);
	struct ddps_mpa_rx_sink sink = mpa_rec_sink;
	struct mpa_rec r;

	mpa_rec_init(&r, false, false);
	sink.direct = long_direct;
	r.rx.sink = &sink;
	mpa_rec_feed(&r, s.p, s.len, 100, 0);
	cr_expect_eq(r.placed, 0);
	cr_expect(mpa_rec_is(&r, 0, ulpdu, 2000));
	mpa_rec_fini(&r);
	free(s.p);
	free(ulpdu);
}

/* An empty piece in front of each. */
static int gaps_direct_iov(void *user, size_t off, struct iovec *iov, int max)
{
	iov[0] = (struct iovec){ ((struct mpa_rec *)user)->place, 0 };
	return 1 + mpa_rec_direct_iov(user, off, iov + 1, max - 1);
}

Test(mpa_rx, places_without_octets_are_passed_over)
{
	uint8_t *ulpdu;
	struct mpa_octets s = tagged_stream(1, 2000, &ulpdu);
	struct ddps_mpa_rx_sink sink = mpa_rec_sink;
	struct mpa_rec r;

	mpa_rec_init(&r, false, false);
	r.direct_hdr = 14;
	sink.direct_iov = gaps_direct_iov;
	r.rx.sink = &sink;
	mpa_rec_feed(&r, s.p, s.len, 100, 0);
	cr_expect_eq(r.placed, 1);
	cr_expect(mpa_rec_is(&r, 0, ulpdu, 2000));
	cr_expect_eq(ddps_mpa_rx_got(&r.rx, r.scratch, 0, &r.e), 0, "no octets are no news");
	cr_expect_eq(ddps_mpa_rx_resume(&r.rx, &r.e), 0, "nothing was held back");
	mpa_rec_fini(&r);
	free(s.p);
	free(ulpdu);
}

/* ---- the FPDU receiver: places for payload that are small, many, too long or few ---- */

static struct mpa_octets make_tagged_mpa_rx_place(unsigned n, size_t len, uint8_t **ulpdu)
{
	struct mpa_ref ref = { .crc = false };

	*ulpdu = mpa_pattern(len, 4);
	for (unsigned i = 0; i < n; i++)
		mpa_ref_fpdu(&ref, *ulpdu, len);
	return ref.out;
}

static void init(struct mpa_rec *r, size_t piece)
{
	mpa_rec_init(r, false, false);
	r->direct_hdr = 14;
	r->piece = piece;
}

/* More pieces than are asked for in one call, in reads of whatever length. */
Test(mpa_rx_place, however_small_the_pieces_are_the_same_comes_out)
{
	static const size_t pieces[] = { 1, 7, 10, 100, 300, 2000 }, reads[] = { 1, 30, 500, 5000 };
	uint8_t *ulpdu;
	struct mpa_octets s = make_tagged_mpa_rx_place(3, 2000, &ulpdu);

	for (size_t i = 0; i < 6 * 4; i++) {
		struct mpa_rec r;

		init(&r, pieces[i % 6]);
		mpa_rec_feed(&r, s.p, 40, 40, 0);
		mpa_rec_feed(&r, s.p + 40, s.len - 40, reads[i / 6], 0);
		cr_expect_eq(r.segments, 3);
		cr_expect_gt(r.placed, 0);
		for (unsigned k = 0; k < 3; k++)
			cr_expect(mpa_rec_is(&r, k, ulpdu, 2000), "pieces of %zu, reads of %zu",
				  pieces[i % 6], reads[i / 6]);
		mpa_rec_fini(&r);
	}
	free(s.p);
	free(ulpdu);
}

/* Of a segment with as many pieces as one has to be sent, all are read with one call. */
Test(mpa_rx_place, eighteen_pieces_and_what_follows_are_one_read)
{
	uint8_t *ulpdu;
	struct mpa_octets s = make_tagged_mpa_rx_place(1, 14 + 6 + DDPS_SEG_IOV_MAX * 100, &ulpdu);
	struct iovec iov[DDPS_MPA_RX_IOV];
	struct mpa_rec r;

	init(&r, 100);
	mpa_rec_read(&r, s.p, 22, 22); /* header, and six octets of payload */
	cr_assert_eq(ddps_mpa_rx_want(&r.rx, r.scratch, r.scratch_len, iov), DDPS_MPA_RX_IOV);
	cr_expect_eq(iov[0].iov_base, r.place + 6);
	cr_expect_eq(iov[DDPS_SEG_IOV_MAX - 1].iov_base, r.place + 6 + 1700);
	cr_expect_eq(iov[DDPS_SEG_IOV_MAX].iov_base, r.rx.tail);
	mpa_rec_fini(&r);
	free(s.p);
	free(ulpdu);
}

/* Most of it is there already: pad and CRC are asked for with the rest, from where they end now. */
Test(mpa_rx_place, the_end_of_an_fpdu_is_read_with_the_rest)
{
	uint8_t *ulpdu;
	struct mpa_octets s = make_tagged_mpa_rx_place(1, 2001, &ulpdu); /* one octet of pad */
	struct iovec iov[DDPS_MPA_RX_IOV];
	struct mpa_rec r;

	init(&r, 1000);
	mpa_rec_feed(&r, s.p, 1500, 500, 0);
	cr_assert_eq(ddps_mpa_rx_want(&r.rx, r.scratch, r.scratch_len, iov), 3);
	cr_expect_eq(iov[0].iov_len, 2003 - 1500);
	cr_expect_eq(iov[1].iov_base, r.rx.tail);
	cr_expect_eq(iov[1].iov_len, 5);
	mpa_rec_feed(&r, s.p + 1500, 503 + 2, 10000, 0);
	cr_assert_eq(ddps_mpa_rx_want(&r.rx, r.scratch, r.scratch_len, iov), 2);
	cr_expect_eq(iov[0].iov_base, r.rx.tail + 2);
	cr_expect_eq(iov[0].iov_len, 3);
	mpa_rec_fini(&r);
	free(s.p);
	free(ulpdu);
}

/* Places for more than the payload: two, each of 1500 octets. */
static int long_places(void *user, size_t off, struct iovec *iov, int max)
{
	struct mpa_rec *r = user;

	(void)max;
	iov[0] = (struct iovec){ r->place + off, 1500 };
	iov[1] = (struct iovec){ r->place + off + 1500, 1500 };
	return 2;
}

/* Places behind those that are counted are none. */
static int one_place(void *user, size_t off, struct iovec *iov, int max)
{
	struct mpa_rec *r = user;

	for (int i = 0; i < max; i++)
		iov[i] = (struct iovec){ NULL, 300 };
	iov[0] = (struct iovec){ r->place + off, 10 };
	return 1;
}

Test(mpa_rx_place, the_payload_ends_before_its_places_do)
{
	uint8_t *ulpdu;
	struct mpa_octets s = make_tagged_mpa_rx_place(2, 2014, &ulpdu);
	struct ddps_mpa_rx_sink sink = mpa_rec_sink;
	struct iovec iov[DDPS_MPA_RX_IOV];
	struct mpa_rec r;

	init(&r, 0);
	sink.direct_iov = long_places;
	r.rx.sink = &sink;
	mpa_rec_read(&r, s.p, 30, 30);
	cr_assert_eq(ddps_mpa_rx_want(&r.rx, r.scratch, r.scratch_len, iov), 4);
	cr_expect_eq(iov[0].iov_len, 1500);
	cr_expect_eq(iov[1].iov_len, 486);
	mpa_rec_feed(&r, s.p + 30, s.len - 30, 100000, 0);
	cr_expect_eq(r.segments, 2);
	cr_expect(mpa_rec_is(&r, 0, ulpdu, 2014) && mpa_rec_is(&r, 1, ulpdu, 2014));
	mpa_rec_fini(&r);
	free(s.p);
	free(ulpdu);
}

Test(mpa_rx_place, only_places_that_are_counted_are_used)
{
	uint8_t *ulpdu;
	struct mpa_octets s = make_tagged_mpa_rx_place(1, 614, &ulpdu);
	struct ddps_mpa_rx_sink sink = mpa_rec_sink;
	struct mpa_rec r;

	init(&r, 0);
	sink.direct_iov = one_place;
	r.rx.sink = &sink;
	mpa_rec_read(&r, s.p, 116, 116);
	mpa_rec_feed(&r, s.p + 116, s.len - 116, 100000, 0);
	cr_expect_eq(r.placed, 1);
	cr_expect(mpa_rec_is(&r, 0, ulpdu, 614));
	mpa_rec_fini(&r);
	free(s.p);
	free(ulpdu);
}

/* What comes from then on goes where nobody looks. */
Test(mpa_rx_place, revoked_places_are_not_read_to)
{
	uint8_t *ulpdu;
	struct mpa_octets s = make_tagged_mpa_rx_place(1, 2000, &ulpdu);
	struct iovec iov[DDPS_MPA_RX_IOV];
	struct mpa_rec r;

	init(&r, 1000);
	mpa_rec_read(&r, s.p, 100, 100);
	r.revoke_at = r.iov_calls + 1;
	cr_assert_eq(ddps_mpa_rx_want(&r.rx, r.scratch, r.scratch_len, iov), 1);
	cr_expect_eq(iov[0].iov_base, r.scratch);
	cr_expect(r.rx.dead);
	mpa_rec_fini(&r);
	free(s.p);
	free(ulpdu);
}

/* What was read with its end is not looked at either. */
Test(mpa_rx_place, nothing_follows_a_placement_that_was_refused, .description = "5041-7.1-1")
{
	uint8_t *ulpdu;
	struct mpa_octets s = make_tagged_mpa_rx_place(3, 2000, &ulpdu);
	struct mpa_rec r;

	init(&r, 1000);
	r.refuse_at = 1;
	mpa_rec_read(&r, s.p, 100, 100);
	mpa_rec_read(&r, s.p + 100, s.len - 100, s.len);
	cr_expect(r.rx.dead);
	cr_expect_eq(r.segments, 1);
	cr_expect_eq(r.directs, 1);
	mpa_rec_fini(&r);
	free(s.p);
	free(ulpdu);
}
