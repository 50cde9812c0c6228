/* SPDX-License-Identifier: BSD-2-Clause */
/* Whatever is sealed is opened, however it was cut into pieces, records and reads; each change is an end. */
#include "record_fixture.h"
#include "secure/aead/aead_lib.h"
#include "support/aead_stub.h"
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <stdio.h>

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

/* ---- record trace ---- */

/* The application records of the trace in RFC 8448 section 3, both ways, with each library. */

static const char client_secret[] =
	"9e40646ce79a7f9dc05af8889bce6552875afa0b06df0087f792ebb7c17504a5";
static const char client_key[] = "17422dda596ed5d9acd890e3c63f5051";
static const char client_iv[] = "5b78923dee08579033e523d9";
static const char server_secret[] =
	"a11af9f05531f856ad47116b45a950328204b4f44bfb6b3a4b4f1f3fcb631643";
static const char server_key[] = "9f02283b6c9c07efc26bb9f2ac92e356";
static const char server_iv[] = "cf782b88dd83549aadf1e984";

static const char ticket[] =
	"17030300de3a6b8f90414a97d6959c3487680de5134a2b240e6cffac116e95d41d6af8f6b580dcf3d11d63c758"
	"db289a015940252f55713e061dc13e078891a38efbcf5753ad8ef170ad3c7353d16d9da773b9ca7f2b9fa1b6c0"
	"d4a3d03f75e09c30ba1e62972ac46f75f7b981be63439b2999ce13064615139891d5e4c5b406f16e3fc181a77c"
	"a475840025db2f0a77f81b5ab05b94c01346755f69232c86519d86cbeeac87aac347d143f9605d64f650db4d02"
	"3e70e952ca49fe5137121c74bc2697687e248746d6df353005f3bce18696129c8153556b3b6c6779b37bf15985"
	"684f";
static const char server_data[] =
	"17030300432e937e11ef4ac740e538ad36005fc4a46932fc3225d05f82aa1b36e30efaf97d90e6dffc602dcb50"
	"1a59a8fcc49c4bf2e5f0a21c0047c2abf332540dd032e167c2955d";
static const char server_alert[] = "1703030013b58fd67166ebf599d24720cfbe7efa7a8864a9";
static const char client_data[] =
	"1703030043a23f7054b62c94d0affafe8228ba55cbefacea42f914aa66bcab3f2b9819a8a5b46b395bd54a9a20"
	"441e2b62974e1f5a6292a2977014bd1e3deae63aeebb21694915e4";
static const char client_alert[] = "1703030013c9872760655666b74d7ff1153efd6db6d0b0e3";

static size_t trace_octets(const char *text, uint8_t *out)
{
	size_t n = strlen(text) / 2;

	for (size_t i = 0; i < n; i++)
		cr_assert_eq(sscanf(text + 2 * i, "%2hhx", &out[i]), 1);
	return n;
}

static void read_keys(struct ddps_rec_keys *k, const char *secret, const char *key, const char *iv)
{
	trace_octets(secret, k->secret);
	trace_octets(key, k->key);
	trace_octets(iv, k->iv);
}

static void begin_trace(struct rec_ends *e, const struct ddps_aead *aead)
{
	rec_configure(e, aead, DDPS_SUITE_AES_128_GCM, 0);
	read_keys(&e->conf[0].tx, client_secret, client_key, client_iv);
	read_keys(&e->conf[0].rx, server_secret, server_key, server_iv);
	e->conf[1].tx = e->conf[0].rx;
	e->conf[1].rx = e->conf[0].tx;
	e->conf[1].tx.seq = 1; /* the ticket is the handshake's */
	rec_begin(e);
}

/* What @r seals is what the trace has. */
static void seals(struct ddps_rec *r, const char *data, const char *alert)
{
	uint8_t payload[50], out[100], want[100];
	struct iovec cut[] = { { payload, 1 }, { payload + 1, 0 }, { payload + 1, 49 } };
	size_t n = trace_octets(data, want);

	for (uint8_t i = 0; i < sizeof payload; i++)
		payload[i] = i;
	cr_assert_eq(ddps_rec_seal(r, cut, 3, out, sizeof out), (ssize_t)n);
	cr_expect_arr_eq(out, want, n);
	n = trace_octets(alert, want);
	cr_assert_eq(ddps_rec_seal_alert(r, DDPS_ALERT_CLOSE_NOTIFY, out, sizeof out), (ssize_t)n);
	cr_expect_arr_eq(out, want, n);
}

static void opens(struct ddps_rec *r, const char *data, const char *alert)
{
	uint8_t in[100];
	size_t n = trace_octets(data, in);
	struct ddps_rec_opened o = rec_open(r, in, n);

	cr_assert_eq(o.what, DDPS_REC_DATA);
	cr_assert_eq(o.used, n);
	cr_assert_eq(o.len, 50);
	for (size_t i = 0; i < 50; i++)
		cr_expect_eq(rec_scratch[i], i);
	n = trace_octets(alert, in);
	cr_expect_eq(rec_open(r, in, n).what, DDPS_REC_CLOSED);
}

static void play(const struct ddps_aead *aead)
{
	struct rec_ends e;
	uint8_t in[300];
	size_t n;

	begin_trace(&e, aead);
	n = trace_octets(ticket, in);
	cr_expect_eq(rec_open(e.end[0], in, n).what, DDPS_REC_NONE);
	cr_expect_eq(ddps_rec_stats(e.end[0])->tickets, 1);
	opens(e.end[0], server_data, server_alert);
	opens(e.end[1], client_data, client_alert);
	seals(e.end[0], client_data, client_alert);
	seals(e.end[1], server_data, server_alert);
	rec_free(&e);
}

Test(record_trace, gnutls_plays_it,
     .description =
	     "8446-5.2-1 8446-5.2-4 8446-5.3-1 8446-5.3-3 8446-7.1-1 8446-7.3-1 8446-4.6.1-1")
{
	play(ddps_aead_gnutls());
}

/* Where it is; what is said where it is not is looked at in aead_test.c. */
Test(record_trace, ipsec_mb_plays_it)
{
	const struct ddps_aead *mb = ddps_aead_ipsec_mb(NULL);

	if (mb)
		play(mb);
}
