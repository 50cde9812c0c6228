/* SPDX-License-Identifier: BSD-2-Clause */
/* Whatever is sealed is opened, however it was cut into pieces, records and reads; each change is an end. */
#include "record_fixture.h"
#include "secure/aead/aead_lib.h"
#include "support/aead_stub.h"
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#define STREAM 120000u

static const enum ddps_suite suites[] = { DDPS_SUITE_AES_128_GCM, DDPS_SUITE_AES_256_GCM,
					  DDPS_SUITE_CHACHA20_POLY1305 };

struct stream {
	uint8_t plain[STREAM], wire[8 * STREAM], got[STREAM];
	size_t len, sealed, opened;
};

/* Cut the plain octets into records, and each record's into pieces. */
static void seal_stream(struct stream *s, struct ddps_rec *r, uint64_t *seed)
{
	size_t at = 0;

	while (at < s->len) {
		size_t most = ddps_rec_room(r), small = draw_of(seed) % 300;
		size_t left = s->len - at, n, piece = 0;
		struct iovec iov[DDPS_AEAD_IOV_MAX - 1];
		int count = 0;
		ssize_t out;

		if (draw_of(seed) % 4 && small < most)
			most = small;
		n = left < most ? left : most;
		if (!n && !(draw_of(seed) % 8))
			continue;
		while (piece < n) {
			size_t some = n - piece;

			if (count < DDPS_AEAD_IOV_MAX - 2)
				some = draw_of(seed) % (n - piece + 1);
			iov[count++] = (struct iovec){ s->plain + at + piece, some };
			piece += some;
		}
		out = ddps_rec_seal(r, iov, count, s->wire + s->sealed, sizeof s->wire - s->sealed);
		cr_assert(out > 0, "%zd", out);
		at += n;
		s->sealed += (size_t)out;
	}
}

/* Read the wire in random parts; records are opened in place or to another buffer. */
static void open_stream(struct stream *s, struct ddps_rec *r, uint64_t *seed)
{
	size_t at = 0, there = 0;
	uint8_t *copy;

	while (at < s->sealed) {
		bool in_place = draw_of(seed) % 2;
		struct ddps_rec_opened o;
		uint8_t *to;

		copy = malloc(there - at + 1); /* exact, for the sanitizer */
		cr_assert(copy);
		memcpy(copy, s->wire + at, there - at);
		to = in_place ? copy + DDPS_REC_HEADER : rec_scratch;
		o = ddps_rec_open(r, copy, there - at, to);
		cr_assert_neq(o.what, DDPS_REC_FAILED, "%s", ddps_rec_error(r).text);
		if (o.what == DDPS_REC_MORE) {
			cr_assert(!o.used && there - at < DDPS_REC_WIRE_MAX);
			there += 1 + draw_of(seed) % (draw_of(seed) % 2 ? 40 : 20000);
			there = there < s->sealed ? there : s->sealed;
		} else {
			cr_assert(o.used && o.used <= there - at);
			cr_assert((o.what == DDPS_REC_DATA) == (o.len > 0));
			memcpy(s->got + s->opened, to, o.len);
			s->opened += o.len;
			at += o.used;
		}
		free(copy);
	}
}

static void go_round(const struct ddps_aead *aead, enum ddps_suite suite, unsigned seed)
{
	struct stream *s = calloc(1, sizeof *s);
	uint64_t state = seed;
	struct rec_ends e;
	int from = (int)(seed % 2);

	cr_assert(s);
	rec_configure(&e, aead, suite, seed);
	if (draw_of(&state) % 2)
		e.conf[from].update_at = 1 + draw_of(&state) % 50;
	if (!(draw_of(&state) % 3)) {
		e.conf[from].peer_limit = (uint16_t)(64 + draw_of(&state) % 16384);
		e.conf[!from].own_limit = e.conf[from].peer_limit;
	}
	e.conf[from].tx.seq = e.conf[!from].rx.seq = draw_of(&state) % 3;
	rec_begin(&e);
	s->len = draw_of(&state) % (seed % 8 ? 4000 : STREAM);
	for (size_t i = 0; i < s->len; i++)
		s->plain[i] = (uint8_t)draw_of(&state);
	seal_stream(s, e.end[from], &state);
	open_stream(s, e.end[!from], &state);
	cr_assert_eq(s->opened, s->len);
	cr_assert(!memcmp(s->got, s->plain, s->len));
	cr_assert_eq(ddps_rec_stats(e.end[from])->sealed, ddps_rec_stats(e.end[!from])->opened);
	cr_assert_eq(ddps_rec_stats(e.end[from])->updates_sent,
		     ddps_rec_stats(e.end[!from])->updates_got);
	rec_free(&e);
	free(s);
}

Test(record_round, what_is_sealed_is_opened_however_it_was_cut,
     .description = "8446-5.1-5 8446-5.2-1 8446-5.3-1 8446-5.5-1 8449-4-2 8449-4-4")
{
	for (unsigned seed = 0; seed < 400; seed++)
		go_round(aead_stub(), suites[seed % 3], seed);
	cr_expect_eq(aead_stub_alive, 0);
}

Test(record_round, by_gnutls)
{
	for (unsigned seed = 0; seed < 60; seed++)
		go_round(ddps_aead_gnutls(), suites[seed % 3], seed);
}

Test(record_round, by_what_is_best_here)
{
	for (unsigned seed = 0; seed < 60; seed++)
		go_round(ddps_aead_best(), suites[seed % 3], seed);
}

/* Of a record of each suite, every bit in turn. */
Test(record_round, every_bit_that_is_changed_is_an_end, .description = "8446-5.2-3 8446-5.2-4")
{
	struct rec_ends e;
	struct iovec iov = { (void *)"forty octets of somebody's memory, sealed", 40 };
	uint8_t wire[100], one[100];
	ssize_t n = 0;

	for (size_t bit = 0; !n || bit < (size_t)n * 8; bit++) {
		rec_configure(&e, ddps_aead_gnutls(), suites[bit % 3], 7);
		rec_begin(&e);
		n = ddps_rec_seal(e.end[0], &iov, 1, wire, sizeof wire);
		cr_assert_eq(n, 40 + DDPS_REC_OVERHEAD);
		memcpy(one, wire, sizeof one);
		one[bit / 8] ^= (uint8_t)(1u << bit % 8);
		if (bit / 8 == 3 || (bit / 8 == 4 && one[4] > wire[4])) {
			/* a length that is longer than what is there: more is waited for, or it is too long */
			enum ddps_rec_what what = rec_open(e.end[1], one, (size_t)n).what;

			cr_expect(what == DDPS_REC_MORE || what == DDPS_REC_FAILED);
		} else {
			cr_expect_eq(rec_open(e.end[1], one, (size_t)n).what, DDPS_REC_FAILED);
			rec_failed(e.end[1], bit / 8 ? 20 : 10,
				   bit / 8 ? DDPS_E_FORGED : DDPS_E_PROTOCOL, "a changed bit");
		}
		rec_free(&e);
	}
}

/* Nothing is shown of it either, wherever it was to go. */
Test(record_round, what_does_not_authenticate_is_not_shown, .description = "8446-5.2-3")
{
	struct rec_ends e;
	struct iovec iov = { (void *)"secret secret secret", 20 };
	uint8_t wire[64];

	rec_setup(&e);
	cr_assert_eq(ddps_rec_seal(e.end[0], &iov, 1, wire, sizeof wire), 42);
	wire[41] ^= 1;
	memset(rec_scratch, 0x55, 64);
	cr_expect_eq(rec_open(e.end[1], wire, 42).what, DDPS_REC_FAILED);
	for (size_t i = 0; i < 21; i++)
		cr_expect_eq(rec_scratch[i], 0);
	cr_expect_eq(rec_scratch[21], 0x55);
	rec_free(&e);
}

/* A record that came twice, or before the one that it follows, is one that was changed. */
Test(record_round, a_record_again_or_out_of_order_is_refused, .description = "8446-5.3-1")
{
	struct rec_ends e;
	struct iovec iov = { (void *)"abc", 3 };
	uint8_t wire[3][32];

	for (int order = 0; order < 2; order++) {
		rec_setup(&e);
		for (int i = 0; i < 3; i++)
			cr_assert_eq(ddps_rec_seal(e.end[0], &iov, 1, wire[i], 32), 25);
		cr_expect(memcmp(wire[0], wire[1], 25));
		cr_expect_eq(rec_open(e.end[1], wire[0], 25).what, DDPS_REC_DATA);
		cr_expect_eq(rec_open(e.end[1], wire[order ? 2 : 0], 25).what, DDPS_REC_FAILED);
		rec_failed(e.end[1], 20, DDPS_E_FORGED, "again");
		rec_free(&e);
	}
}
