/* SPDX-License-Identifier: BSD-2-Clause */
/* FPDU receiver. */
#include "mpa_tcp/mpa_crc.h"
#include "mpa_tcp/mpa_fpdu.h"
#include "mpa_tcp/mpa_rx.h"
#include "support/mpa_support.h"

static const uint8_t send1[18] = { 0x41, 0x43, [13] = 1 }, send2[18] = { 0x41, 0x43, [13] = 2 };

struct dump {
	const char *name;
	bool markers;
	const uint8_t *raw;
	size_t len;
	size_t lead; /* L of an FPDU that is to come before, 0: none */
	const uint8_t *ulpdu;
	size_t ulpdu_len;
};

#define RAW(...)  (const uint8_t[]){ __VA_ARGS__ }, sizeof((const uint8_t[]){ __VA_ARGS__ })
#define Z8	  0, 0, 0, 0, 0, 0, 0, 0
#define SEND(msn) 0x41, 0x43, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, msn, 0, 0, 0, 0

/* RFC 5044 4.4's own two (R1, R2), and others. */
static const struct dump dumps[] = {
	{ "R1", true, RAW(0, 0, 0, 0, 0, 0x2a, SEND(1), Z8, Z8, Z8, 0x52, 0x23, 0x99, 0x83), 0,
	  RAW(SEND(1), Z8, Z8, Z8) },
	{ "R2", true, RAW(0, 0x2a, SEND(2), 0, 0, 0, 0x14, Z8, Z8, Z8, 0x84, 0x92, 0x58, 0x98), 482,
	  RAW(SEND(2), Z8, Z8, Z8) },
	{ "A", false, RAW(0, 0x17, SEND(1), 'M', 'P', 'A', '!', 1, 0, 0, 0, 0x4f, 0x42, 0xa4, 0xd9),
	  0, RAW(SEND(1), 'M', 'P', 'A', '!', 1) },
	{ "B", true,
	  RAW(0, 0, 0, 0, 0, 0x17, SEND(1), 'M', 'P', 'A', '!', 1, 0, 0, 0, 0x8c, 0xb3, 0xfc, 0xa4),
	  0, RAW(SEND(1), 'M', 'P', 'A', '!', 1) },
	{ "C", true,
	  RAW(0, 0x2b, SEND(2), 0x10, 0x11, 0x12, 0x13, 0x14, 0x15, 0x16, 0x17, 0x18, 0x19, 0x1a,
	      0x1b, 0, 0, 0, 0x20, 0x1c, 0x1d, 0x1e, 0x1f, 0x20, 0x21, 0x22, 0x23, 0x24, 0x25, 0x26,
	      0x27, 0x28, 0, 0, 0, 0xc5, 0x29, 0xb6, 0x64),
	  470,
	  RAW(SEND(2), 0x10, 0x11, 0x12, 0x13, 0x14, 0x15, 0x16, 0x17, 0x18, 0x19, 0x1a, 0x1b, 0x1c,
	      0x1d, 0x1e, 0x1f, 0x20, 0x21, 0x22, 0x23, 0x24, 0x25, 0x26, 0x27, 0x28) },
	{ "E", true, RAW(0, 0, 0, 0, 0, 0x12, SEND(2), 0x7c, 0x71, 0xe5, 0xb4), 502, RAW(SEND(2)) },
	{ "G", false, RAW(0, 0x0e, 0xc1, 0x40, 0, 0, 0, 1, Z8, 0xeb, 0xd3, 0x4c, 0x5f), 0,
	  RAW(0xc1, 0x40, 0, 0, 0, 1, Z8) },
	{ "H", false,
	  RAW(0, 0x16, 0x41, 0x47, 0, 0, 0, 0, 0, 0, 0, 2, 0, 0, 0, 1, 0, 0, 0, 0, 0x20, 2, 0, 0,
	      0x7f, 0xe4, 0x25, 0x85),
	  0, RAW(0x41, 0x47, 0, 0, 0, 0, 0, 0, 0, 2, 0, 0, 0, 1, 0, 0, 0, 0, 0x20, 2, 0, 0) },
	/* Linux siw's Read RTR */
	{ "siw", false,
	  RAW(0, 0x2e, 0x41, 0x41, 0, 0, 0, 0, 0, 0, 0, 1, 0, 0, 0, 1, 0, 0, 0, 0, 0, 0, 0, 0, Z8,
	      0, 0, 0, 0, 0, 0, 0, 1, Z8, 0xba, 0x10, 0xe3, 0xc9),
	  0,
	  RAW(0x41, 0x41, 0, 0, 0, 0, 0, 0, 0, 1, 0, 0, 0, 1, 0, 0, 0, 0, 0, 0, 0, 0, Z8, 0, 0, 0,
	      0, 0, 0, 0, 1, Z8) },
};

#define NDUMPS (sizeof dumps / sizeof dumps[0])

/* @d with the FPDU that has to come before it. */
static struct mpa_octets get_mpa_rx_stream(const struct dump *d)
{
	struct mpa_ref ref = { .crc = true, .markers = d->markers };
	uint8_t *lead = mpa_pattern(d->lead, 9);

	if (d->lead)
		mpa_ref_fpdu(&ref, lead, d->lead);
	mpa_octets_add(&ref.out, d->raw, d->len);
	free(lead);
	return ref.out;
}

Test(mpa_rx, known_dumps_in_any_pieces,
     .description =
	     "5044-4.1-1 5044-4.3-5 5044-4.3-12 5044-4.3-d1 5044-4.4-1 5044-4.4-13 "
	     "5044-4.4-14 5044-4.4-16 5044-5.2-1 5044-6-1 5044-6-3 5044-6-5 5044-5.1-5 5044-3-8")
{
	static const size_t pieces[] = { 1, 2, 3, 5, 19, 20, 21, 512, 100000 };

	for (size_t i = 0; i < NDUMPS; i++) {
		struct mpa_octets s = get_mpa_rx_stream(&dumps[i]);

		for (size_t j = 0; j < sizeof pieces / sizeof pieces[0]; j++) {
			struct mpa_rec r;

			mpa_rec_init(&r, true, dumps[i].markers);
			mpa_rec_feed(&r, s.p, s.len, pieces[j], 0);
			cr_expect_eq(r.err, 0, "%s: %s", dumps[i].name, r.e.text);
			cr_expect_eq(r.segments, dumps[i].lead ? 2 : 1, "%s", dumps[i].name);
			cr_expect(
				mpa_rec_is(&r, r.segments - 1, dumps[i].ulpdu, dumps[i].ulpdu_len));
			cr_expect(ddps_mpa_rx_at_boundary(&r.rx));
			mpa_rec_fini(&r);
		}
		free(s.p);
	}
}

/* Two dumps of which only their last octets are printed. */
Test(mpa_rx, dumps_with_markers_near_the_end, .description = "5044-4.4-15 5044-4.3-8")
{
	static const struct {
		size_t len;
		uint8_t crc[4];
	} row[] = { { 506, { 0x38, 0xcf, 0x64, 0xe8 } }, { 1442, { 0xc4, 0xc7, 0xdc, 0x02 } } };

	for (size_t i = 0; i < 2; i++) {
		struct mpa_ref ref = { .crc = true, .markers = true };
		uint8_t *ulpdu = calloc(1, row[i].len);
		struct mpa_rec r;

		memcpy(ulpdu, send1, sizeof send1);
		mpa_ref_fpdu(&ref, ulpdu, row[i].len);
		cr_expect_arr_eq(ref.out.p + ref.out.len - 4, row[i].crc, 4);
		mpa_rec_init(&r, true, true);
		mpa_rec_feed(&r, ref.out.p, ref.out.len, 100000, 0);
		cr_expect(mpa_rec_is(&r, 0, ulpdu, row[i].len));
		mpa_rec_fini(&r);
		free(ulpdu);
		free(ref.out.p);
	}
}

Test(mpa_rx, crc_check_values, .description = "5044-4.4-13")
{
	static const uint8_t zeros[32];
	uint8_t field[4];

	ddps_mpa_crc_store(field, ddps_mpa_crc(DDPS_MPA_CRC_INIT, (const uint8_t *)"123456789", 9));
	cr_expect_arr_eq(field, ((uint8_t[]){ 0x83, 0x92, 0x06, 0xe3 }), 4);
	ddps_mpa_crc_store(field, ddps_mpa_crc(DDPS_MPA_CRC_INIT, zeros, 32));
	cr_expect_arr_eq(field, ((uint8_t[]){ 0xaa, 0x36, 0x91, 0x8a }), 4);
	cr_expect_eq(ddps_mpa_crc_load(field), ~0x8A9136AAu);
}

/* Every truncation leaves the receiver waiting, inside an FPDU, without an upcall for it. */
Test(mpa_rx, every_truncation_waits, .description = "5044-6-5 5044-4.3-11")
{
	for (size_t i = 0; i < NDUMPS; i++) {
		struct mpa_octets s = get_mpa_rx_stream(&dumps[i]);
		size_t before = s.len - dumps[i].len;

		for (size_t n = 0; n < dumps[i].len; n++) {
			uint8_t *cut = mpa_exact(s.p, before + n);
			struct mpa_rec r;
			bool lone = n == 4 && (before ? before % 512 == 0 : dumps[i].markers);

			mpa_rec_init(&r, true, dumps[i].markers);
			mpa_rec_feed(&r, cut, before + n, 100000, 0);
			cr_expect_eq(r.err, 0);
			cr_expect_eq(r.segments, before ? 1 : 0);
			cr_expect_eq(ddps_mpa_rx_at_boundary(&r.rx), n == 0 || lone, "%s %zu",
				     dumps[i].name, n);
			mpa_rec_fini(&r);
			free(cut);
		}
		free(s.p);
	}
}

Test(mpa_rx, every_flipped_bit_is_a_crc_error,
     .description = "5044-4.4-18 5044-4.4-19 5044-8-1 5044-8-2 5044-8-8")
{
	for (size_t i = 0; i < NDUMPS; i++) {
		struct mpa_octets s = get_mpa_rx_stream(&dumps[i]);
		size_t before = s.len - dumps[i].len;

		for (size_t bit = 0; bit < dumps[i].len * 8; bit++) {
			size_t at = before + bit / 8;
			struct mpa_rec r;

			/* A changed length moves the end: more is waited for, or the CRC is read
			 * elsewhere. */
			mpa_rec_init(&r, true, dumps[i].markers);
			s.p[at] ^= (uint8_t)(1 << bit % 8);
			mpa_rec_feed(&r, s.p, s.len, 100000, 0);
			s.p[at] ^= (uint8_t)(1 << bit % 8);
			cr_expect_eq(r.segments, before ? 1 : 0, "%s bit %zu", dumps[i].name, bit);
			cr_expect(r.err == DDPS_E_CRC || !ddps_mpa_rx_at_boundary(&r.rx));
			if (r.err)
				cr_expect(r.e.has_triple && r.e.triple.layer == 2 &&
					  r.e.triple.etype == 0 && r.e.triple.code == 2);
			mpa_rec_fini(&r);
		}
		free(s.p);
	}
}

Test(mpa_rx, nothing_follows_an_error, .description = "5044-8-8")
{
	struct mpa_ref ref = { .crc = true };
	struct mpa_rec r;

	mpa_ref_fpdu(&ref, send1, sizeof send1);
	ref.out.p[5] ^= 1;
	mpa_ref_fpdu(&ref, send2, sizeof send2);
	for (size_t piece = 1; piece < 60; piece++) {
		mpa_rec_init(&r, true, false);
		mpa_rec_feed(&r, ref.out.p, ref.out.len, piece, 0);
		cr_expect_eq(r.err, DDPS_E_CRC);
		cr_expect_eq(r.segments, 0);
		mpa_rec_fini(&r);
	}
	free(ref.out.p);
}

Test(mpa_rx, refused_above_drops_the_rest, .description = "5041-7.1-1 5044-8-8")
{
	struct mpa_ref ref = { .crc = true };
	struct mpa_rec r;

	for (int i = 0; i < 3; i++)
		mpa_ref_fpdu(&ref, send1, sizeof send1);
	ref.out.p[ref.out.len - 1] ^= 1;
	mpa_rec_init(&r, true, false);
	r.refuse_at = 2;
	mpa_rec_feed(&r, ref.out.p, ref.out.len, 100000, 0);
	cr_expect_eq(r.segments, 2);
	cr_expect_eq(r.err, 0, "what is dropped is not looked at");
	mpa_rec_fini(&r);
	free(ref.out.p);
}

Test(mpa_rx, crc_field_is_ignored_when_off,
     .description = "5044-4.1-4 5044-7.1.1-9 5044-7.1.1-11 5044-4.4-10 5044-4.4-6")
{
	struct mpa_ref ref = { .crc = false };
	struct mpa_rec r;

	mpa_ref_fpdu(&ref, send1, sizeof send1);
	memcpy(ref.out.p + ref.out.len - 4, "junk", 4);
	mpa_ref_fpdu(&ref, send2, sizeof send2);
	mpa_rec_init(&r, false, false);
	mpa_rec_feed(&r, ref.out.p, ref.out.len, 100000, 0);
	cr_expect_eq(r.err, 0);
	cr_expect(mpa_rec_is(&r, 0, send1, 18) && mpa_rec_is(&r, 1, send2, 18));
	mpa_rec_fini(&r);
	free(ref.out.p);
}

Test(mpa_rx, pad_may_be_anything, .description = "5044-4.1-3")
{
	struct mpa_ref ref = { .crc = true, .markers = true };
	uint8_t *ulpdu = mpa_pattern(40, 1);
	struct mpa_rec r;

	for (size_t l = 18; l < 26; l++)
		mpa_ref_fpdu_pad(&ref, ulpdu, l, 0xa5);
	mpa_rec_init(&r, true, true);
	mpa_rec_feed(&r, ref.out.p, ref.out.len, 7, 0);
	cr_expect_eq(r.err, 0);
	for (unsigned i = 0; i < 8; i++)
		cr_expect(mpa_rec_is(&r, i, ulpdu, 18 + i));
	mpa_rec_fini(&r);
	free(ulpdu);
	free(ref.out.p);
}

/* Put a new CRC behind changed octets of a stream's only FPDU. */
static void seal_mpa_rx(struct mpa_octets *s)
{
	ddps_mpa_crc_store(s->p + s->len - 4, ddps_mpa_crc(DDPS_MPA_CRC_INIT, s->p, s->len - 4));
}

Test(mpa_rx, marker_reserved_bits_are_ignored, .description = "5044-4.2-3 5044-4.2-5 5044-4.3-6")
{
	struct mpa_ref ref = { .crc = true, .markers = true };
	uint8_t *ulpdu = mpa_pattern(1300, 1);
	struct mpa_rec r;

	mpa_ref_fpdu(&ref, ulpdu, 1300);
	for (size_t at = 0; at < ref.out.len; at += 512) {
		ref.out.p[at] = 0xde;
		ref.out.p[at + 1] = 0xad;
		ref.out.p[at + 3] |= 3;
	}
	seal_mpa_rx(&ref.out);
	mpa_rec_init(&r, true, true);
	mpa_rec_feed(&r, ref.out.p, ref.out.len, 100000, 0);
	cr_expect_eq(r.err, 0, "%s", r.e.text);
	cr_expect(mpa_rec_is(&r, 0, ulpdu, 1300));
	mpa_rec_fini(&r);
	free(ulpdu);
	free(ref.out.p);
}

Test(mpa_rx, wrong_marker_is_error_3_and_crc_comes_first,
     .description = "5044-8-1 5044-8-3 5044-8-5 5044-5.2-2 5044-6-2 5044-6-4")
{
	struct mpa_ref ref = { .crc = true, .markers = true };
	uint8_t *ulpdu = mpa_pattern(1300, 1);

	mpa_ref_fpdu(&ref, ulpdu, 1300);
	for (size_t at = 0; at < ref.out.len; at += 512) {
		for (unsigned bit = 2; bit < 16; bit++) {
			struct mpa_octets s = { 0 };
			struct mpa_rec r;

			mpa_octets_add(&s, ref.out.p, ref.out.len);
			s.p[at + 3 - bit / 8] ^= (uint8_t)(1 << bit % 8);
			/* CRC wrong too: code 2 */
			mpa_rec_init(&r, true, true);
			mpa_rec_feed(&r, s.p, s.len, 0, bit + 1);
			cr_expect_eq(r.err, DDPS_E_CRC);
			mpa_rec_fini(&r);
			/* CRC off: code 3 nevertheless */
			mpa_rec_init(&r, false, true);
			mpa_rec_feed(&r, s.p, s.len, 0, bit + 1);
			cr_expect_eq(r.err, DDPS_E_MARKER);
			mpa_rec_fini(&r);
			/* CRC right: code 3 */
			seal_mpa_rx(&s);
			mpa_rec_init(&r, true, true);
			mpa_rec_feed(&r, s.p, s.len, 0, bit + 1);
			cr_expect_eq(r.err, DDPS_E_MARKER);
			cr_expect(r.e.has_triple && r.e.triple.layer == 2 && r.e.triple.code == 3);
			cr_expect_eq(r.segments, 0);
			mpa_rec_fini(&r);
			free(s.p);
		}
	}
	free(ulpdu);
	free(ref.out.p);
}

Test(mpa_rx, limits_of_the_length, .description = "5044-3-6 5044-4.1-d1 5044-A.5.2-d1 5044-3-8")
{
	static const struct {
		size_t len;
		int plain, markers;
	} row[] = {
		{ 0, DDPS_E_MARKER, DDPS_E_MARKER },
		{ 1, 0, 0 },
		{ 2, 0, 0 },
		{ 17, 0, 0 },
		{ 64767, 0, 0 },
		{ 64768, 0, 0 },
		{ 64769, 0, DDPS_E_MARKER },
		{ 65535, 0, DDPS_E_MARKER },
	};
	uint8_t *ulpdu = mpa_pattern(65535, 5);

	for (size_t i = 0; i < sizeof row / sizeof row[0]; i++) {
		for (unsigned markers = 0; markers < 2; markers++) {
			struct mpa_ref ref = { .crc = true, .markers = markers };
			int want = markers ? row[i].markers : row[i].plain;
			struct mpa_rec r;

			mpa_ref_fpdu(&ref, ulpdu, row[i].len);
			for (size_t piece = 1000; piece <= 100000; piece *= 100) {
				mpa_rec_init(&r, true, markers);
				mpa_rec_feed(&r, ref.out.p, ref.out.len, piece, 0);
				cr_expect_eq(r.err, want, "L %zu, markers %u", row[i].len, markers);
				cr_expect_eq(r.segments, want ? 0 : 1);
				if (!want)
					cr_expect(mpa_rec_is(&r, 0, ulpdu, row[i].len));
				mpa_rec_fini(&r);
			}
			/* and a CRC error goes before it */
			ref.out.p[ref.out.len - 1] ^= 1;
			mpa_rec_init(&r, true, markers);
			mpa_rec_feed(&r, ref.out.p, ref.out.len, 100000, 0);
			cr_expect_eq(r.err, DDPS_E_CRC);
			mpa_rec_fini(&r);
			free(ref.out.p);
		}
	}
	free(ulpdu);
}

Test(mpa_rx, lone_trailing_marker_is_a_boundary, .description = "5044-7.2-1 5044-4.3-10")
{
	struct mpa_ref ref = { .crc = true, .markers = true };
	uint8_t *ulpdu = mpa_pattern(502, 1);
	struct mpa_rec r;

	mpa_ref_fpdu(&ref, ulpdu, 502);
	cr_assert_eq(ref.out.len, 512);
	mpa_octets_add(&ref.out, "\0\0\0\0\0", 5);
	for (size_t n = 512; n <= 517; n++) {
		mpa_rec_init(&r, true, true);
		mpa_rec_feed(&r, ref.out.p, n, 100, 0);
		cr_expect_eq(r.segments, 1);
		cr_expect_eq(ddps_mpa_rx_at_boundary(&r.rx), n == 512 || n == 516, "%zu", n);
		mpa_rec_fini(&r);
	}
	free(ulpdu);
	free(ref.out.p);
}

Test(mpa_rx, hint_at_a_terminate_without_crc)
{
	struct mpa_rec r;
	uint8_t *copy = mpa_exact(dumps[7].raw, dumps[7].len);

	cr_assert_str_eq(dumps[7].name, "H");
	memset(copy + dumps[7].len - 4, 0, 4);
	mpa_rec_init(&r, true, false);
	mpa_rec_feed(&r, copy, dumps[7].len, 100, 0);
	cr_expect_eq(r.err, DDPS_E_CRC);
	cr_expect(strstr(r.e.text, "Terminate"), "%s", r.e.text);
	mpa_rec_fini(&r);
	free(copy);
}

/* It is one if it can hold the header of a Terminate and its control field. */
Test(mpa_rx, the_hint_is_for_what_can_be_a_terminate)
{
	for (size_t len = 2; len < 60; len++) {
		uint8_t fpdu[80] = { 0, (uint8_t)len, 0x41, 0x47 };
		struct mpa_rec r;

		mpa_rec_init(&r, true, false);
		mpa_rec_feed(&r, fpdu, 2 + len + ddps_mpa_pad(len) + 4, 100, 0);
		cr_expect_eq(r.err, DDPS_E_CRC);
		cr_expect_eq(strstr(r.e.text, "Terminate") != NULL, len >= 18 + 4, "%zu: %s", len,
			     r.e.text);
		mpa_rec_fini(&r);
	}
}

Test(mpa_rx, buffer_only_while_needed)
{
	struct mpa_ref ref = { .crc = true };
	uint8_t *ulpdu = mpa_pattern(5000, 1);
	struct mpa_rec r;

	mpa_ref_fpdu(&ref, ulpdu, 5000);
	mpa_rec_init(&r, true, false);
	mpa_rec_feed(&r, ref.out.p, 19, 100, 0);
	cr_expect_null(r.rx.part, "the first octets need none");
	mpa_rec_feed(&r, ref.out.p + 19, 3000, 3000, 0);
	ddps_mpa_rx_idle(&r.rx);
	cr_expect_not_null(r.rx.part);
	mpa_rec_feed(&r, ref.out.p + 3019, ref.out.len - 3019, 3000, 0);
	cr_expect_eq(r.segments, 1);
	ddps_mpa_rx_idle(&r.rx);
	cr_expect_null(r.rx.part);
	mpa_rec_fini(&r);
	free(ulpdu);
	free(ref.out.p);
}
