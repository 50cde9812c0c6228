/* SPDX-License-Identifier: BSD-2-Clause */
/* Records of DTLS 1.2: what is sealed is opened once, in whatever order; all else is dropped and counted. */
#include "record_fixture.h"
#include "secure/aead/aead_lib.h"
#include "secure/dtls/dtls_in.h"
#include "support/aead_stub.h"
#include <errno.h>
#include <stdlib.h>
#include <string.h>

static const enum ddps_suite suites[] = { DDPS_SUITE_AES_128_GCM, DDPS_SUITE_AES_256_GCM,
					  DDPS_SUITE_CHACHA20_POLY1305 };

struct dtls_ends {
	struct ddps_dtls_config conf[2];
	struct ddps_dtls *end[2];
	void *mem[2];
};

static void begin_dtls(struct dtls_ends *e, const struct ddps_aead *aead, enum ddps_suite suite)
{
	struct ddps_dtls_keys k[2] = { { .seq = DDPS_DTLS_FIRST }, { .seq = DDPS_DTLS_FIRST } };

	for (int i = 0; i < 2; i++) {
		memset(k[i].key, 0x40 + i, sizeof k[i].key);
		memset(k[i].iv, 0x50 + i, sizeof k[i].iv);
	}
	for (int i = 0; i < 2; i++) {
		struct ddps_dtls_config *c = &e->conf[i];

		c->aead = aead;
		c->suite = suite;
		c->epoch = 1;
		c->tx = k[i];
		c->rx = k[!i];
		e->mem[i] = aligned_alloc(DDPS_AEAD_ALIGN, ddps_dtls_size(c));
		cr_assert(e->mem[i]);
		cr_assert_eq(ddps_dtls_init(e->mem[i], c, &e->end[i]), 0);
	}
}

static void setup_dtls(struct dtls_ends *e)
{
	memset(e, 0, sizeof *e);
	begin_dtls(e, aead_stub(), DDPS_SUITE_AES_128_GCM);
}

static void end_dtls(struct dtls_ends *e)
{
	for (int i = 0; i < 2; i++) {
		ddps_dtls_wipe(e->end[i]);
		free(e->mem[i]);
	}
}

static size_t seal_datagram(struct ddps_dtls *d, const char *text, uint8_t *out)
{
	struct iovec iov = { (void *)(uintptr_t)text, strlen(text) };
	ssize_t n = ddps_dtls_seal(d, DDPS_DTLS_DATA, &iov, 1, out, 256);

	cr_assert(n > 0, "%zd", n);
	return (size_t)n;
}

/* In place, in exactly as much memory. */
static ssize_t open_copy(struct ddps_dtls *d, const uint8_t *in, size_t n, void *got)
{
	uint8_t *copy = malloc(n);
	struct ddps_dtls_head h;
	ssize_t len = -ENOMSG;

	memcpy(copy, in, n);
	if (ddps_dtls_head(&h, copy, n))
		len = ddps_dtls_open(d, &h, copy, copy + ddps_dtls_content(d));
	if (len > 0 && got)
		memcpy(got, copy + ddps_dtls_content(d), (size_t)len);
	free(copy);
	return len;
}

static void go_dtls_round(const struct ddps_aead *aead, enum ddps_suite suite, unsigned seed)
{
	static uint8_t plain[DDPS_DTLS_CONTENT], wire[DDPS_DTLS_CONTENT + 64], got[sizeof plain];
	struct dtls_ends e = { .conf = { { .aead = NULL } } };
	uint64_t state = seed;

	begin_dtls(&e, aead, suite);
	for (int i = 0; i < 20; i++) {
		size_t len = draw_of(&state) % (i % 4 ? 2000 : sizeof plain + 1), at = 0;
		int from = (int)(draw_of(&state) % 2), count = 0;
		struct iovec iov[DDPS_AEAD_IOV_MAX];
		struct ddps_dtls_head h;
		ssize_t n;

		for (size_t k = 0; k < len; k++)
			plain[k] = (uint8_t)draw_of(&state);
		while (at < len) {
			size_t some = len - at;

			if (count < DDPS_AEAD_IOV_MAX - 1)
				some = draw_of(&state) % (some + 1);
			iov[count++] = (struct iovec){ plain + at, some };
			at += some;
		}
		n = ddps_dtls_seal(e.end[from], DDPS_DTLS_DATA, iov, count, wire, sizeof wire);
		cr_assert_eq((size_t)n, len + ddps_dtls_overhead(e.end[from]));
		cr_assert(ddps_dtls_head(&h, wire, (size_t)n));
		cr_expect(h.type == 23 && h.epoch == 1 && h.len == (size_t)n);
		cr_assert_eq((size_t)open_copy(e.end[!from], wire, (size_t)n, got), len);
		cr_assert(!memcmp(got, plain, len));
		cr_expect_eq(open_copy(e.end[!from], wire, (size_t)n, NULL), -EALREADY);
	}
	end_dtls(&e);
}

Test(dtls_record, what_is_sealed_is_opened_and_only_once, .description = "6347-4.1.2.6-1")
{
	for (unsigned seed = 0; seed < 90; seed++) {
		go_dtls_round(aead_stub(), suites[seed % 3], seed);
		go_dtls_round(ddps_aead_gnutls(), suites[seed % 3], seed);
		go_dtls_round(ddps_aead_best(), suites[seed % 3], seed);
	}
	cr_expect_eq(aead_stub_alive, 0);
}

Test(dtls_record, overhead_is_37_octets_and_29_with_chacha20)
{
	struct dtls_ends e = { .conf = { { .aead = NULL } } };

	for (int i = 0; i < 3; i++) {
		begin_dtls(&e, ddps_aead_gnutls(), suites[i]);
		cr_expect_eq(ddps_dtls_overhead(e.end[0]), i < 2 ? 37 : 29);
		cr_expect(ddps_dtls_overhead(e.end[0]) <= DDPS_DTLS_OVERHEAD);
		end_dtls(&e);
	}
}

/* A changed bit drops the record, and the right one is taken after it. */
Test(dtls_record, every_bit_that_is_changed_drops_the_record_and_nothing_else,
     .description = "6347-4.1.2.7-1")
{
	struct dtls_ends e = { .conf = { { .aead = NULL } } };
	uint8_t wire[100], one[100], got[100];

	for (int i = 0; i < 3; i++) {
		size_t n, bad = 0;

		begin_dtls(&e, ddps_aead_gnutls(), suites[i]);
		n = seal_datagram(e.end[0], "octets of somebody's memory", wire);
		for (size_t bit = 0; bit < n * 8; bit++) {
			ssize_t rc;

			memcpy(one, wire, n);
			one[bit / 8] ^= (uint8_t)(1u << bit % 8);
			rc = open_copy(e.end[1], one, n, NULL);
			cr_expect(rc < 0, "bit %zu: %zd", bit, rc);
			bad += rc == -EBADMSG;
		}
		cr_expect_eq(ddps_dtls_stats(e.end[1])->forged, bad);
		cr_expect_eq(open_copy(e.end[1], wire, n, got), 27);
		end_dtls(&e);
	}
}

/* What was taken is remembered by number; a model has them all.  @k times one of the @n is opened. */
static void check_window(unsigned n, unsigned k)
{
	uint8_t(*wire)[64] = malloc(n * sizeof *wire);
	bool *seen = calloc(n, sizeof *seen);
	uint64_t state = 1, high = 0;
	struct dtls_ends e;
	size_t len = 0;

	cr_assert(wire && seen);
	setup_dtls(&e);
	for (unsigned i = 0; i < n; i++)
		len = seal_datagram(e.end[0], "abc", wire[i]);
	while (k--) {
		uint64_t step = draw_of(&state) % 64 ? 90 : 3000, i;
		bool ok;

		i = high + draw_of(&state) % step;
		i = i > 2 * step ? i - draw_of(&state) % (2 * step) : i;
		if (i >= n)
			break;
		ok = !seen[i] && (i >= high || high - i <= DDPS_DTLS_WINDOW);
		cr_assert_eq(open_copy(e.end[1], wire[i], len, NULL), ok ? 3 : -EALREADY,
			     "number %lu, newest %lu", (unsigned long)i, (unsigned long)high);
		seen[i] |= ok;
		high = i >= high ? i + 1 : high;
	}
	cr_expect(high > n / 2);
	end_dtls(&e);
	free(wire);
	free(seen);
}

Test(dtls_record, a_window_of_1024_numbers_takes_each_once_in_any_order,
     .description = "6347-4.1.2.6-1 6347-4.1.2.6-2")
{
	check_window(5000, 100000);
}

Test(dtls_record, a_window_that_moves_far, .description = "6347-4.1.2.6-1 6347-4.1.2.6-2")
{
	check_window(20000, 100000);
}

Test(dtls_record, the_window_ends_at_1024)
{
	enum { N = 3000 };
	static uint8_t wire[N][64];
	struct ddps_dtls_head h;
	struct dtls_ends e;
	size_t len = 0;

	setup_dtls(&e);
	for (int i = 0; i < N; i++)
		len = seal_datagram(e.end[0], "abc", wire[i]);
	cr_expect_eq(open_copy(e.end[1], wire[1024], len, NULL), 3);
	cr_expect_eq(open_copy(e.end[1], wire[0], len, NULL), -EALREADY, "it is 1025 old");
	cr_expect_eq(open_copy(e.end[1], wire[1], len, NULL), 3);
	cr_expect(ddps_dtls_head(&h, wire[1], len) && !ddps_dtls_is_newest(e.end[1], &h));
	cr_expect(ddps_dtls_head(&h, wire[1024], len) && ddps_dtls_is_newest(e.end[1], &h));
	cr_expect_eq(ddps_dtls_stats(e.end[1])->replayed, 1);
	for (int i = 2; i < N; i++)
		cr_expect_eq(open_copy(e.end[1], wire[i], len, NULL), i == 1024 ? -EALREADY : 3,
			     "%d", i);
	cr_expect_eq(ddps_dtls_stats(e.end[1])->opened, N - 1);
	cr_expect_eq(ddps_dtls_stats(e.end[1])->replayed, 2);
	wire[0][len - 1] ^= 1;
	wire[0][10]++; /* another number, and not authentic */
	wire[0][9] = 0xff;
	cr_expect_eq(open_copy(e.end[1], wire[0], len, NULL), -EBADMSG);
	cr_expect_eq(ddps_dtls_stats(e.end[1])->forged, 1);
	ddps_dtls_pardon(e.end[1]);
	cr_expect_eq(ddps_dtls_stats(e.end[1])->forged, 0);
	end_dtls(&e);
}

/* ---- what the cipher is given ---- */

static struct {
	uint8_t nonce[DDPS_AEAD_NONCE], ad[DDPS_DTLS_AD];
} noted;

static void note_dtls(const uint8_t *nonce, const void *ad, size_t adlen)
{
	cr_assert_eq(adlen, sizeof noted.ad);
	memcpy(noted.nonce, nonce, sizeof noted.nonce);
	memcpy(noted.ad, ad, sizeof noted.ad);
}

static int note_dtls_seal(void *st, const uint8_t *nonce, const void *ad, size_t adlen,
			  const struct iovec *iov, int n, uint8_t *out)
{
	note_dtls(nonce, ad, adlen);
	return aead_stub()->seal(st, nonce, ad, adlen, iov, n, out);
}

static int note_dtls_open(void *st, const uint8_t *nonce, const void *ad, size_t adlen,
			  const uint8_t *in, size_t len, uint8_t *out)
{
	note_dtls(nonce, ad, adlen);
	return aead_stub()->open(st, nonce, ad, adlen, in, len, out);
}

/* Octet by octet, as RFC 5246 6.2.3.3, RFC 5288 3 and RFC 7905 2 have it. */
Test(dtls_record, header_nonce_and_what_is_authenticated)
{
	static const uint8_t plain[300];
	static const uint8_t gcm[] = { 7, 8, 9, 10, 1, 2, 3, 4, 5, 6, 7, 8 };
	static const uint8_t chacha[] = { 7,	  8,	  9,	  10,	  11 ^ 1, 12 ^ 2,
					  13 ^ 3, 14 ^ 4, 15 ^ 5, 16 ^ 6, 17 ^ 7, 18 ^ 8 };
	static const uint8_t ad[] = { 1, 2, 3, 4, 5, 6, 7, 8, 23, 254, 253, 1, 44 };
	struct iovec iov = { (void *)(uintptr_t)plain, sizeof plain };
	struct ddps_aead noting = *aead_stub();

	noting.seal = note_dtls_seal;
	noting.open = note_dtls_open;
	for (int i = 0; i < 3; i++) {
		const uint8_t *want = i < 2 ? gcm : chacha;
		struct ddps_dtls_config c = { .aead = &noting, .suite = suites[i], .epoch = 0x102 };
		const size_t len = sizeof plain + (i < 2 ? 24 : 16);
		uint8_t head[13] = { 23, 254, 253, 1, 2, 3, 4, 5, 6, 7, 8, 1, (uint8_t)len };
		uint8_t wire[400];
		struct ddps_dtls *d;
		void *mem;

		c.tx.seq = UINT64_C(0x030405060708);
		for (unsigned k = 0; k < sizeof c.tx.iv; k++)
			c.tx.iv[k] = c.rx.iv[k] = (uint8_t)(7 + k);
		mem = aligned_alloc(DDPS_AEAD_ALIGN, ddps_dtls_size(&c));
		cr_assert_eq(ddps_dtls_init(mem, &c, &d), 0);
		cr_assert_eq(len + 13,
			     (size_t)ddps_dtls_seal(d, DDPS_DTLS_DATA, &iov, 1, wire, len + 13));
		cr_expect_arr_eq(wire, head, sizeof head);
		cr_expect(i == 2 || !memcmp(wire + 13, gcm + 4, 8), "in the record");
		cr_expect_arr_eq(noted.nonce, want, sizeof gcm);
		cr_expect_arr_eq(noted.ad, ad, sizeof ad);
		memset(&noted, 0, sizeof noted);
		cr_expect_eq(open_copy(d, wire, len + 13, NULL), (ssize_t)sizeof plain);
		cr_expect_arr_eq(noted.nonce, want, sizeof gcm);
		cr_expect_arr_eq(noted.ad, ad, sizeof ad);
		ddps_dtls_wipe(d);
		free(mem);
	}
}

/* Neither key nor IV is left in memory that somebody else gets next. */
Test(dtls_record, nothing_is_left_in_memory_that_was_wiped)
{
	struct dtls_ends e;
	const uint8_t *p;
	uint8_t wire[64];

	setup_dtls(&e);
	p = e.mem[0];
	seal_datagram(e.end[0], "abc", wire);
	ddps_dtls_wipe(e.end[0]);
	for (size_t i = 0; i < ddps_dtls_size(&e.conf[0]); i++)
		cr_assert_eq(p[i], 0, "octet %zu", i);
	end_dtls(&e);
}

/* The longest, in as many pieces as can be, into just so much room. */
Test(dtls_record, what_just_fits)
{
	static uint8_t plain[DDPS_DTLS_CONTENT], wire[DDPS_DTLS_CONTENT + 37];
	struct iovec iov[DDPS_AEAD_IOV_MAX];
	struct dtls_ends e;

	setup_dtls(&e);
	for (int i = 0; i < DDPS_AEAD_IOV_MAX; i++)
		iov[i] = (struct iovec){ plain, DDPS_DTLS_CONTENT / DDPS_AEAD_IOV_MAX };
	cr_expect_eq(ddps_dtls_seal(e.end[0], DDPS_DTLS_DATA, iov, DDPS_AEAD_IOV_MAX, wire,
				    sizeof wire - 1),
		     -ENOBUFS);
	cr_expect_eq(ddps_dtls_seal(e.end[0], DDPS_DTLS_DATA, iov, -1, wire, sizeof wire),
		     -EMSGSIZE);
	cr_assert_eq(ddps_dtls_seal(e.end[0], DDPS_DTLS_DATA, iov, DDPS_AEAD_IOV_MAX, wire,
				    sizeof wire),
		     (ssize_t)sizeof wire);
	cr_expect_eq(open_copy(e.end[1], wire, sizeof wire, NULL), DDPS_DTLS_CONTENT);
	cr_expect_eq(ddps_dtls_stats(e.end[0])->sealed, 1);
	end_dtls(&e);
}

/* A forged record with a high number moves no window. */
Test(dtls_record, only_what_is_authentic_moves_the_window, .description = "6347-4.1.2.6-3")
{
	struct dtls_ends e;
	uint8_t wire[2][64], bad[64];
	size_t n;

	setup_dtls(&e);
	n = seal_datagram(e.end[0], "abc", wire[0]);
	seal_datagram(e.end[0], "def", wire[1]);
	memcpy(bad, wire[1], n);
	bad[8] = 9; /* a number that is far ahead */
	cr_expect_eq(open_copy(e.end[1], bad, n, NULL), -EBADMSG);
	cr_expect_eq(open_copy(e.end[1], wire[0], n, NULL), 3);
	cr_expect_eq(open_copy(e.end[1], wire[1], n, NULL), 3);
	end_dtls(&e);
}

Test(dtls_record, other_epochs_versions_and_lengths_are_no_records_of_this_key)
{
	struct dtls_ends e;
	uint8_t wire[64], bad[64];
	struct ddps_dtls_head h;
	size_t n;

	setup_dtls(&e);
	n = seal_datagram(e.end[0], "abc", wire);
	for (size_t k = 0; k < n; k++)
		cr_expect(!ddps_dtls_head(&h, wire, k), "cut off at %zu", k);
	memcpy(bad, wire, n);
	bad[4] = 2;
	cr_expect_eq(open_copy(e.end[1], bad, n, NULL), -EPROTO);
	memcpy(bad, wire, n);
	bad[2] = 255;
	cr_expect_eq(open_copy(e.end[1], bad, n, NULL), -EPROTO);
	memcpy(bad, wire, n);
	bad[12] = 23; /* less than nonce and tag */
	cr_expect_eq(open_copy(e.end[1], bad, n, NULL), -EPROTO);
	cr_expect_eq(ddps_dtls_stats(e.end[1])->strange, 3);
	cr_expect_eq(open_copy(e.end[1], wire, n, NULL), 3);
	end_dtls(&e);
}

static int fail_seal(void *st, const uint8_t *nonce, const void *ad, size_t adlen,
		     const struct iovec *iov, int n, uint8_t *out)
{
	(void)st;
	(void)nonce;
	(void)ad;
	(void)adlen;
	(void)iov;
	(void)n;
	(void)out;
	return -EIO;
}

/* Numbers are used up by sealing, whatever comes of it; a failed key seals nothing any more. */
Test(dtls_record, a_number_is_never_used_twice, .description = "6347-4.1-2")
{
	struct ddps_aead broken = *aead_stub();
	struct dtls_ends e;
	uint8_t wire[256];
	struct iovec iov[DDPS_AEAD_IOV_MAX + 1] = { { wire, DDPS_DTLS_CONTENT + 1 } };

	setup_dtls(&e);
	for (unsigned i = 0; i < 5; i++) {
		seal_datagram(e.end[0], "abc", wire);
		cr_expect_eq(wire[10], DDPS_DTLS_FIRST + i);
		cr_expect(!memcmp(wire + 3, wire + 13, 8), "the nonce is epoch and number");
		/* what is refused uses none */
		cr_expect_eq(ddps_dtls_seal(e.end[0], DDPS_DTLS_DATA, iov, 1, wire, 256),
			     -EMSGSIZE);
		cr_expect_eq(ddps_dtls_seal(e.end[0], DDPS_DTLS_DATA, iov, DDPS_AEAD_IOV_MAX + 1,
					    wire, 256),
			     -EMSGSIZE);
		cr_expect_eq(ddps_dtls_seal(e.end[0], DDPS_DTLS_DATA, iov, 0, wire, 36), -ENOBUFS);
	}
	broken.seal = fail_seal;
	e.end[0]->aead = &broken;
	cr_expect_eq(ddps_dtls_seal(e.end[0], DDPS_DTLS_DATA, iov, 0, wire, 256), -EIO);
	e.end[0]->aead = aead_stub();
	cr_expect_eq(ddps_dtls_seal(e.end[0], DDPS_DTLS_DATA, iov, 0, wire, 256), -EIO);
	end_dtls(&e);
}

Test(dtls_record, a_key_has_its_limits, .description = "6347-4.1-1")
{
	struct dtls_ends e = { .conf = { { .renew_at = 4, .stop_at = 6, .forged_at = 3 },
					 { .renew_at = 4, .stop_at = 6, .forged_at = 3 } } };
	uint8_t wire[8][64];
	size_t n = 0;

	begin_dtls(&e, aead_stub(), DDPS_SUITE_AES_128_GCM);
	for (int i = 0; i < 6; i++) {
		cr_expect_eq(ddps_dtls_due(e.end[0]), i >= 4);
		n = seal_datagram(e.end[0], "abc", wire[i]);
	}
	cr_expect_eq(ddps_dtls_seal(e.end[0], DDPS_DTLS_DATA, NULL, 0, wire[7], 64), -EOVERFLOW);
	cr_expect_eq(open_copy(e.end[1], wire[0], n, NULL), 3);
	wire[1][n - 1] ^= 1;
	cr_expect_eq(open_copy(e.end[1], wire[1], n, NULL), -EBADMSG);
	cr_expect_eq(open_copy(e.end[1], wire[1], n, NULL), -EBADMSG);
	cr_expect_eq(open_copy(e.end[1], wire[1], n, NULL), -EOVERFLOW);
	cr_expect_eq(open_copy(e.end[1], wire[2], n, NULL), -EOVERFLOW, "also what is right");
	end_dtls(&e);
	/* ChaCha20 has none in reach, and numbers end */
	begin_dtls(&e, aead_stub(), DDPS_SUITE_CHACHA20_POLY1305);
	for (int i = 0; i < 8; i++)
		seal_datagram(e.end[0], "abc", wire[0]);
	cr_expect(!ddps_dtls_due(e.end[0]));
	e.end[0]->seq = DDPS_DTLS_SEQ_MAX;
	seal_datagram(e.end[0], "abc", wire[0]);
	cr_expect_eq(ddps_dtls_seal(e.end[0], DDPS_DTLS_DATA, NULL, 0, wire[7], 64), -EOVERFLOW);
	end_dtls(&e);
}

Test(dtls_record, a_child_of_fork_seals_and_opens_nothing)
{
	struct dtls_ends e;
	uint8_t wire[64];
	struct ddps_dtls_head h;
	size_t n;

	setup_dtls(&e);
	n = seal_datagram(e.end[0], "abc", wire);
	e.end[0]->alive = e.end[1]->alive = 0; /* as wiped memory has it */
	cr_expect_eq(ddps_dtls_seal(e.end[0], DDPS_DTLS_DATA, NULL, 0, wire, 64), -EOWNERDEAD);
	cr_assert(ddps_dtls_head(&h, wire, n));
	cr_expect_eq(ddps_dtls_open(e.end[1], &h, wire, wire + 21), -EOWNERDEAD);
	end_dtls(&e);
}

Test(dtls_record, alerts_are_records_too)
{
	struct dtls_ends e;
	uint8_t wire[64], got[64];
	ssize_t n;

	setup_dtls(&e);
	n = ddps_dtls_seal_alert(e.end[0], DDPS_ALERT_CLOSE_NOTIFY, wire, sizeof wire);
	cr_assert_eq(n, 39);
	cr_expect_eq(wire[0], 21);
	cr_assert_eq(open_copy(e.end[1], wire, (size_t)n, got), 2);
	cr_expect(got[0] == 1 && got[1] == 0);
	n = ddps_dtls_seal_alert(e.end[0], DDPS_ALERT_ACCESS_DENIED, wire, sizeof wire);
	cr_assert_eq(open_copy(e.end[1], wire, (size_t)n, got), 2);
	cr_expect(got[0] == 2 && got[1] == 49);
	end_dtls(&e);
}

/* Each allocation and call of the library that can fail. */
Test(dtls_record, a_library_that_fails_leaves_nothing)
{
	struct ddps_dtls_config c = { .aead = aead_stub(),
				      .suite = DDPS_SUITE_AES_128_GCM,
				      .epoch = 1 };
	void *mem = aligned_alloc(DDPS_AEAD_ALIGN, ddps_dtls_size(&c));
	struct ddps_dtls *d = NULL;

	for (unsigned i = 1; i <= 2; i++) {
		aead_stub_fails = i;
		cr_expect(ddps_dtls_init(mem, &c, &d) < 0);
		cr_expect_eq(aead_stub_alive, 0);
	}
	aead_stub_fails = 0;
	c.epoch = 0;
	cr_expect_eq(ddps_dtls_init(mem, &c, &d), -EINVAL);
	free(mem);
}
