/* SPDX-License-Identifier: BSD-2-Clause */
/* The FPDU receiver: places for payload that are small, many, too long or few. */
#include "mpa_tcp/mpa_rx.h"
#include "support/mpa_support.h"

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
