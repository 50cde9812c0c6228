/* SPDX-License-Identifier: BSD-2-Clause */
/* The FPDU receiver: what it keeps, how much it asks for, and what it says of an FPDU that is wrong. */
#include "mpa_tcp/mpa_crc.h"
#include "mpa_tcp/mpa_fpdu.h"
#include "mpa_tcp/mpa_rx.h"
#include "support/mpa_support.h"
#include "unit/mem_fixture.h"
#include <stdio.h>

#define SHORT 18
#define FPDU  (SHORT + 6)

/* @n FPDUs around @len octets. */
static struct mpa_octets make_kept_stream(bool crc, unsigned n, size_t len)
{
	uint8_t *ulpdu = mpa_pattern(len, 4);
	struct mpa_ref ref = { .crc = crc };

	for (unsigned i = 0; i < n; i++)
		mpa_ref_fpdu(&ref, ulpdu, len);
	free(ulpdu);
	return ref.out;
}

/* ---- what waits ---- */

/* The scratch buffer is another's meanwhile. */
static void use_scratch(struct mpa_rec *r)
{
	memset(r->scratch, 0x5a, r->scratch_len);
}

Test(mpa_rx_kept, what_is_held_back_is_not_in_the_scratch_buffer)
{
	struct mpa_octets s = make_kept_stream(true, 3, SHORT);
	struct mpa_rec r;

	mpa_rec_init(&r, true, false);
	r.hold_every = 1;
	mpa_rec_feed(&r, s.p, s.len, 100000, 0);
	cr_expect_eq(ddps_mpa_rx_kept(&r.rx), SHORT + 2 * FPDU);
	use_scratch(&r);
	r.hold_every = 0;
	cr_expect_eq(ddps_mpa_rx_resume(&r.rx, &r.e), 0, "%s", r.e.text);
	cr_expect_eq(r.segments, 3);
	for (unsigned i = 0; i < 3; i++)
		cr_expect(mpa_rec_is(&r, i, s.p + 2, SHORT));
	mpa_rec_fini(&r);
	free(s.p);
}

Test(mpa_rx_kept, what_is_left_for_the_next_turn_is_not_in_the_scratch_buffer)
{
	struct mpa_octets s = make_kept_stream(true, 3, SHORT);
	struct mpa_rec r;

	mpa_rec_init(&r, true, false);
	ddps_mpa_rx_turn(&r.rx, 1);
	mpa_rec_feed(&r, s.p, s.len, 100000, 0);
	cr_expect_eq(ddps_mpa_rx_kept(&r.rx), 2 * FPDU);
	use_scratch(&r);
	ddps_mpa_rx_turn(&r.rx, 9);
	cr_expect_eq(ddps_mpa_rx_resume(&r.rx, &r.e), 0, "%s", r.e.text);
	cr_expect_eq(r.segments, 3);
	mpa_rec_fini(&r);
	free(s.p);
}

Test(mpa_rx_kept, without_memory_nothing_is_kept_and_the_error_says_how_much_it_was)
{
	struct mpa_octets s = make_kept_stream(true, 2, SHORT);
	struct mpa_rec r;

	mpa_rec_init(&r, true, false);
	mpa_octets_add(&r.got, "", 1);
	r.hold_every = 1;
	mem_fail(1);
	mpa_rec_read(&r, s.p, s.len, s.len);
	cr_expect_eq(r.err, DDPS_E_NOMEM);
	cr_expect_eq(r.e.sys_errno, 0);
	cr_expect(strstr(r.e.text, " 42 octets"), "%s", r.e.text);
	cr_expect_eq(ddps_mpa_rx_kept(&r.rx), 0);
	mpa_rec_fini(&r);
	free(s.p);
}

/* One that has no room for the next FPDU goes; one that has stays. */
Test(mpa_rx_kept, there_is_one_buffer_at_a_time)
{
	static const size_t lens[] = { 300, 3000, 200, 400 };
	uint8_t *ulpdu = mpa_pattern(3000, 4);
	long live = mem_live();
	struct mpa_rec r;

	mpa_rec_init(&r, true, false);
	for (size_t i = 0; i < 4; i++) {
		struct mpa_ref ref = { .crc = true };

		mpa_ref_fpdu(&ref, ulpdu, lens[i]);
		mem_fail(1);
		if (i < 2)
			mem_fail(0);
		mpa_rec_feed(&r, ref.out.p, 100, 100, 0);
		cr_expect_not(mem_failed(), "there is room for %zu", lens[i]);
		mem_fail(0);
		mpa_rec_feed(&r, ref.out.p + 100, ref.out.len - 100, 10000, 0);
		free(ref.out.p);
	}
	cr_expect_eq(r.segments, 4);
	mpa_rec_fini(&r);
	cr_expect_eq(mem_live(), live);
	free(ulpdu);
}

/* The first octet of a header that can be placed is enough. */
Test(mpa_rx_kept, twenty_octets_are_a_header)
{
	struct mpa_octets s = make_kept_stream(false, 1, 500);

	for (size_t n = 19; n <= 21; n++) {
		struct mpa_rec r;

		mpa_rec_init(&r, false, false);
		r.direct_hdr = 14;
		mpa_rec_feed(&r, s.p, n, n, 0);
		cr_expect_eq(r.directs, n >= DDPS_MPA_RX_HEAD, "%zu", n);
		mpa_rec_fini(&r);
	}
	free(s.p);
}

/* ---- how much is asked for ---- */

static size_t count_asked_octets(struct mpa_rec *r)
{
	struct iovec iov[DDPS_MPA_RX_IOV];

	cr_assert_eq(ddps_mpa_rx_want(&r->rx, r->scratch, 1u << 30, iov), 1);
	return iov[0].iov_len;
}

static void rec_large(struct mpa_rec *r)
{
	mpa_rec_init(r, true, false);
	free(r->scratch);
	r->scratch_len = 1024 * 1024;
	r->scratch = malloc(r->scratch_len);
	cr_assert_not_null(r->scratch);
}

/* Half as much each time, down to 4 KiB. */
Test(mpa_rx_kept, a_turn_that_is_cut_halves_what_is_asked_for)
{
	struct mpa_octets s = make_kept_stream(true, 2, SHORT);
	size_t want = 512 * 1024;
	struct mpa_rec r;

	rec_large(&r);
	for (unsigned i = 0; i < 10; i++) {
		cr_expect_eq(count_asked_octets(&r), want, "%u", i);
		ddps_mpa_rx_turn(&r.rx, 1);
		mpa_rec_feed(&r, s.p, s.len, s.len, 0);
		cr_assert(r.rx.cut);
		ddps_mpa_rx_turn(&r.rx, 9);
		cr_assert_eq(ddps_mpa_rx_resume(&r.rx, &r.e), 0);
		want = want > 4096 ? want / 2 : 4096;
	}
	mpa_rec_fini(&r);
	free(s.p);
}

/* Twice as much after a read that has brought all of it, up to 512 KiB; after no other. */
Test(mpa_rx_kept, a_full_read_doubles_what_is_asked_for)
{
	struct mpa_octets s = make_kept_stream(true, 512 * 1024 / 4096, 4096 - 6);
	struct mpa_rec r;

	rec_large(&r);
	r.rx.ask = 4096;
	for (size_t want = 4096; want < 512 * 1024; want *= 2) {
		mpa_rec_read(&r, s.p, want - 4096, SIZE_MAX);
		cr_expect_eq(count_asked_octets(&r), want, "it was not all");
		mpa_rec_read(&r, s.p, want, SIZE_MAX);
		cr_expect_eq(count_asked_octets(&r), 2 * want);
	}
	mpa_rec_read(&r, s.p, s.len, s.len);
	cr_expect_eq(r.rx.ask, 512 * 1024, "no more than that");
	mpa_rec_fini(&r);
	free(s.p);
}

/* The first octets of the next FPDU go in front: so much less has room. */
Test(mpa_rx_kept, the_scratch_buffer_is_not_overrun)
{
	struct mpa_octets s = make_kept_stream(true, 1, 500);
	struct iovec iov[DDPS_MPA_RX_IOV];
	struct mpa_rec r;

	mpa_rec_init(&r, true, false);
	mpa_rec_feed(&r, s.p, 5, 5, 0);
	cr_assert_eq(ddps_mpa_rx_want(&r.rx, r.scratch, 1000, iov), 1);
	cr_expect_eq(iov[0].iov_base, r.scratch + 5);
	cr_expect_eq(iov[0].iov_len, 995);
	mpa_rec_fini(&r);
	free(s.p);
}

/* ---- what is said ---- */

Test(mpa_rx_kept, every_valid_fpdu_is_counted)
{
	for (unsigned direct = 0; direct < 2; direct++) {
		struct mpa_octets s = make_kept_stream(!direct, 3, 500);
		struct mpa_rec r;

		mpa_rec_init(&r, !direct, false);
		r.direct_hdr = direct ? 14 : 0;
		mpa_rec_feed(&r, s.p, s.len, 100, 0);
		cr_expect_eq(r.placed, direct ? 3 : 0);
		cr_expect_eq(r.rx.fpdus, 3);
		mpa_rec_fini(&r);
		free(s.p);
	}
}

Test(mpa_rx_kept, a_wrong_crc_is_reported_with_both_values, .description = "5044-8-2")
{
	struct mpa_octets s = make_kept_stream(true, 1, SHORT);
	uint32_t right = (uint32_t)s.p[FPDU - 1] << 24 | (uint32_t)s.p[FPDU - 2] << 16 |
			 (uint32_t)s.p[FPDU - 3] << 8 | s.p[FPDU - 4];
	char want[80];
	struct mpa_rec r;

	snprintf(want, sizeof want, "CRC is 0x%08x, field says 0x%08x", (unsigned)right,
		 (unsigned)(right ^ 0x80));
	s.p[FPDU - 4] ^= 0x80;
	mpa_rec_init(&r, true, false);
	mpa_rec_feed(&r, s.p, s.len, 100, 0);
	cr_expect_eq(r.err, DDPS_E_CRC);
	cr_expect(strstr(r.e.text, want), "%s: %s", r.e.text, want);
	mpa_rec_fini(&r);
	free(s.p);
}

/* A Terminate without a CRC, behind a leading marker; only as the first FPDU of all it is one of siw's. */
Test(mpa_rx_kept, the_hint_is_for_the_first_fpdu, .description = "5044-8-2")
{
	for (unsigned first = 0; first < 2; first++) {
		struct mpa_ref ref = { .crc = true, .markers = true };
		uint8_t terminate[22] = { 0x41, 0x47 }, *lead = mpa_pattern(502, 9);
		struct mpa_rec r;

		if (!first)
			mpa_ref_fpdu(&ref, lead, 502);
		mpa_ref_fpdu(&ref, terminate, sizeof terminate);
		memset(ref.out.p + ref.out.len - 4, 0, 4);
		mpa_rec_init(&r, true, true);
		mpa_rec_feed(&r, ref.out.p, ref.out.len, 10000, 0);
		cr_expect_eq(r.err, DDPS_E_CRC);
		cr_expect_eq(strstr(r.e.text, "Terminate") != NULL, first, "%s", r.e.text);
		mpa_rec_fini(&r);
		free(ref.out.p);
		free(lead);
	}
}
