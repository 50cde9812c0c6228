/* SPDX-License-Identifier: BSD-2-Clause */
/* What a peer may not send, sealed with the right key or not at all, and the alert for each. */
#include "record_fixture.h"
#include "support/aead_stub.h"
#include <errno.h>
#include <stdlib.h>
#include <string.h>

enum { CCS = 20, ALERT = 21, HANDSHAKE = 22, DATA = 23 };

#define OCTETS(...) (const uint8_t[]){ __VA_ARGS__ }, sizeof((const uint8_t[]){ __VA_ARGS__ })

/* ---- what the header shows ---- */

struct bare_header {
	const char *what;
	uint8_t head[5];
	size_t n; /* octets that are enough to see it */
	int alert, code;
};

static const struct bare_header headers[] = {
	{ "a plain ClientHello", { 22, 3, 1, 0, 10 }, 1, 10, DDPS_E_PROTOCOL },
	{ "a plain alert", { 21, 3, 3, 0, 2 }, 1, 10, DDPS_E_PROTOCOL },
	{ "CCS after Finished", { 20, 3, 3, 0, 1 }, 1, 10, DDPS_E_PROTOCOL },
	{ "MPA without TLS", { 'M', 'P', 'A', ' ', 'I' }, 1, 10, DDPS_E_PROTOCOL },
	{ "heartbeat", { 24, 3, 3, 0, 20 }, 1, 10, DDPS_E_PROTOCOL },
	{ "2^14 + 257 octets", { 23, 3, 3, 0x41, 0x01 }, 5, 22, DDPS_E_PROTOCOL },
	{ "65535 octets", { 23, 3, 3, 0xff, 0xff }, 5, 22, DDPS_E_PROTOCOL },
	{ "more than content, type and tag", { 23, 3, 3, 0x40, 0x12 }, 5, 22, DDPS_E_PROTOCOL },
	{ "nothing", { 23, 3, 3, 0, 0 }, 5, 20, DDPS_E_FORGED },
	{ "less than a tag", { 23, 3, 3, 0, 15 }, 5, 20, DDPS_E_FORGED },
};

Test(record_refuse, what_the_header_shows, .description = "8446-5-1 8446-5-3 8446-5.2-2 8446-5.2-3")
{
	for (size_t i = 0; i < sizeof headers / sizeof *headers; i++) {
		const struct bare_header *h = &headers[i];
		struct rec_ends e;

		rec_setup(&e);
		for (size_t n = 0; n < h->n; n++) {
			struct ddps_rec_opened o = rec_open(e.end[1], h->head, n);

			cr_expect_eq(o.what, DDPS_REC_MORE, "%s", h->what);
			cr_expect_eq(o.used, 0, "%s", h->what);
		}
		cr_expect_eq(rec_open(e.end[1], h->head, h->n).what, DDPS_REC_FAILED, "%s",
			     h->what);
		rec_failed(e.end[1], h->alert, h->code, h->what);
		rec_free(&e);
	}
}

/* ---- what is inside ---- */

struct inner {
	const char *what;
	uint8_t type;
	const uint8_t *content;
	size_t n;
	int alert;
};

static const struct inner wrong[] = {
	{ "an empty alert", ALERT, NULL, 0, 10 },
	{ "an empty handshake record", HANDSHAKE, NULL, 0, 10 },
	{ "type 0 cannot be: only padding", 0, NULL, 0, 10 },
	{ "CCS sealed", CCS, OCTETS(1), 10 },
	{ "heartbeat", 24, OCTETS(1, 0, 0), 10 },
	{ "type 255", 255, OCTETS(1), 10 },
	{ "an alert of one octet", ALERT, OCTETS(1), 50 },
	{ "two alerts", ALERT, OCTETS(1, 90, 1, 0), 50 },
	{ "KeyUpdate 2", HANDSHAKE, OCTETS(24, 0, 0, 1, 2), 47 },
	{ "KeyUpdate 255", HANDSHAKE, OCTETS(24, 0, 0, 1, 255), 47 },
	{ "KeyUpdate of no octet", HANDSHAKE, OCTETS(24, 0, 0, 0), 50 },
	{ "KeyUpdate of two", HANDSHAKE, OCTETS(24, 0, 0, 2, 0, 0), 50 },
	{ "a message behind a KeyUpdate", HANDSHAKE, OCTETS(24, 0, 0, 1, 0, 24, 0, 0, 1, 0), 10 },
	{ "an octet behind a KeyUpdate", HANDSHAKE, OCTETS(24, 0, 0, 1, 1, 4), 10 },
	{ "ClientHello", HANDSHAKE, OCTETS(1, 0, 0, 2, 3, 3), 10 },
	{ "HelloRequest", HANDSHAKE, OCTETS(0, 0, 0, 0), 10 },
	{ "CertificateRequest", HANDSHAKE, OCTETS(13, 0, 0, 3, 0, 0, 0), 10 },
	{ "Certificate", HANDSHAKE, OCTETS(11, 0, 0, 4, 0, 0, 0, 0), 10 },
	{ "Finished", HANDSHAKE, OCTETS(20, 0, 0, 1, 0), 10 },
	{ "EndOfEarlyData", HANDSHAKE, OCTETS(5, 0, 0, 0), 10 },
};

static void refuse_inner(const struct inner *w, int to, size_t pad)
{
	struct rec_forger f;
	struct rec_ends e;
	uint8_t wire[700];
	size_t n;

	rec_setup(&e);
	rec_forger_begin(&f, &e, !to);
	n = rec_forge_typed(&f, w->type, w->content, w->n, pad, wire);
	cr_expect_eq(rec_open(e.end[to], wire, n).what, DDPS_REC_FAILED, "%s", w->what);
	rec_failed(e.end[to], w->alert, DDPS_E_PROTOCOL, w->what);
	rec_forger_end(&f);
	rec_free(&e);
}

Test(record_refuse, what_is_sealed_with_the_right_key,
     .description = "8446-5-1 8446-5-3 8446-5.1-2 8446-5.1-3 8446-5.1-4 8446-5.4-1 8446-4-1 "
		    "8446-4.6.2-1 8446-4.6.3-2 8446-6-4")
{
	for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++)
		for (int to = 0; to < 2; to++) {
			refuse_inner(&wrong[i], to, 0);
			refuse_inner(&wrong[i], to, 300);
		}
}

/* Nothing at all inside the tag; and 2^14 + 1 octets of zeros. */
Test(record_refuse, no_type, .description = "8446-5.4-1")
{
	static uint8_t zeros[16385], wire[16500];

	for (int i = 0; i < 2; i++) {
		struct rec_forger f;
		struct rec_ends e;
		size_t n;

		rec_setup(&e);
		rec_forger_begin(&f, &e, 0);
		n = rec_forge(&f, zeros, i ? sizeof zeros : 0, wire);
		cr_expect_eq(rec_open(e.end[1], wire, n).what, DDPS_REC_FAILED);
		rec_failed(e.end[1], 10, DDPS_E_PROTOCOL, "no type");
		rec_forger_end(&f);
		rec_free(&e);
	}
}

/* What may come inside is taken, however much padding it has, up to the limit and not beyond. */
Test(record_refuse, content_type_and_padding_have_a_limit,
     .description = "8446-5.1-6 8446-5.4-2 8446-5.4-3 8449-4-3 8449-4-4")
{
	static const struct {
		uint16_t limit;
		size_t content, pad;
		bool ok;
	} sizes[] = {
		{ 0, 16384, 0, true },	   { 0, 16384, 1, false },     { 0, 16385, 0, false },
		{ 0, 1, 16383, true },	   { 0, 1, 16384, false },     { 16385, 16384, 0, true },
		{ 64, 63, 0, true },	   { 64, 64, 0, false },       { 64, 1, 62, true },
		{ 64, 1, 63, false },	   { 16384, 16383, 0, true },  { 16384, 16384, 0, false },
		{ 65535, 16384, 0, true }, { 65535, 16385, 0, false },
	};
	static uint8_t content[16500], wire[17000];

	memset(content, 0, sizeof content); /* zeros are content, too */
	for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++) {
		struct rec_ends e;
		struct rec_forger f;
		size_t n;

		rec_configure(&e, aead_stub(), DDPS_SUITE_AES_128_GCM, 3);
		e.conf[1].own_limit = sizes[i].limit;
		rec_begin(&e);
		rec_forger_begin(&f, &e, 0);
		n = rec_forge_typed(&f, DATA, content, sizes[i].content, sizes[i].pad, wire);
		if (sizes[i].ok) {
			struct ddps_rec_opened o = rec_open(e.end[1], wire, n);

			cr_expect_eq(o.what, DDPS_REC_DATA, "row %zu", i);
			cr_expect_eq(o.len, sizes[i].content, "row %zu", i);
		} else {
			cr_expect_eq(rec_open(e.end[1], wire, n).what, DDPS_REC_FAILED, "row %zu",
				     i);
			rec_failed(e.end[1], 22, DDPS_E_PROTOCOL, "too long");
		}
		rec_forger_end(&f);
		rec_free(&e);
	}
}

/* Whatever the header says of the version, it is not looked at, but it is part of what is authenticated. */
Test(record_refuse, the_version_is_not_looked_at, .description = "8446-5.1-7 8446-5.2-4")
{
	struct rec_ends e;
	struct iovec iov = { (void *)"x", 1 };
	uint8_t wire[64], nonce[12];

	rec_setup(&e);
	cr_assert_eq(ddps_rec_seal(e.end[0], &iov, 1, wire, sizeof wire), 23);
	cr_expect_eq(wire[1] << 8 | wire[2], 0x0303);
	/* the same with another version in header and additional data */
	{
		_Alignas(DDPS_AEAD_ALIGN) uint8_t st[64];
		struct iovec inner = { (void *)"x\x17", 2 };

		memcpy(nonce, e.conf[0].tx.iv, sizeof nonce);
		memcpy(wire, (uint8_t[]){ 23, 7, 9, 0, 18 }, 5);
		cr_assert_eq(aead_stub()->init(st, e.conf[0].suite, e.conf[0].tx.key), 0);
		cr_assert_eq(aead_stub()->seal(st, nonce, wire, 5, &inner, 1, wire + 5), 0);
		aead_stub()->wipe(st);
	}
	cr_expect_eq(rec_open(e.end[1], wire, 23).what, DDPS_REC_DATA);
	rec_free(&e);
}

/* ---- records without data ---- */

/* So many of them in a row; one with data begins anew. */
static void flood(const struct inner *w, size_t pad)
{
	struct rec_forger f;
	struct rec_ends e;
	uint8_t wire[128];
	size_t n;

	rec_setup(&e);
	rec_forger_begin(&f, &e, 1);
	for (int round = 0; round < 2; round++) {
		for (int i = 0; i < DDPS_REC_IDLE_MAX; i++) {
			n = rec_forge_typed(&f, w->type, w->content, w->n, pad, wire);
			cr_assert_eq(rec_open(e.end[0], wire, n).what, DDPS_REC_NONE, "%s",
				     w->what);
			if (w->type == HANDSHAKE)
				rec_forger_update(&f);
		}
		if (round)
			break;
		n = rec_forge_typed(&f, DATA, "x", 1, 0, wire);
		cr_assert_eq(rec_open(e.end[0], wire, n).what, DDPS_REC_DATA, "%s", w->what);
	}
	n = rec_forge_typed(&f, w->type, w->content, w->n, pad, wire);
	cr_expect_eq(rec_open(e.end[0], wire, n).what, DDPS_REC_FAILED, "%s", w->what);
	rec_failed(e.end[0], 10, DDPS_E_PROTOCOL, w->what);
	rec_forger_end(&f);
	rec_free(&e);
}

Test(record_refuse, a_flood_of_records_without_data, .description = "8446-5.1-5 8446-6.1-3")
{
	const struct inner none[] = {
		{ "empty records", DATA, NULL, 0, 0 },
		{ "user_canceled", ALERT, OCTETS(1, 90), 0 },
		{ "KeyUpdates", HANDSHAKE, OCTETS(24, 0, 0, 1, 0), 0 },
		{ "KeyUpdates, asking", HANDSHAKE, OCTETS(24, 0, 0, 1, 1), 0 },
	};

	for (size_t i = 0; i < sizeof none / sizeof *none; i++) {
		flood(&none[i], 0);
		flood(&none[i], 60);
	}
	cr_expect_eq(aead_stub_alive, 0);
}

/* ---- what the end has no number for ---- */

Test(record_refuse, the_last_number_is_not_used, .description = "8446-5.3-2")
{
	struct rec_ends e;
	struct iovec iov = { (void *)"x", 1 };
	uint8_t wire[128];

	rec_configure(&e, aead_stub(), DDPS_SUITE_AES_128_GCM, 4);
	e.conf[0].update_at = e.conf[0].ask_at = e.conf[1].ask_at = UINT64_MAX;
	e.conf[0].tx.seq = e.conf[1].rx.seq = UINT64_MAX - 1;
	rec_begin(&e);
	cr_expect_eq(ddps_rec_seal(e.end[0], &iov, 1, wire, sizeof wire), 23);
	cr_expect_eq(rec_open(e.end[1], wire, 23).what, DDPS_REC_DATA);
	cr_expect_eq(rec_open(e.end[1], wire, 23).what, DDPS_REC_FAILED);
	rec_failed(e.end[1], 80, DDPS_E_PROTOCOL, "used up");
	rec_free(&e);

	/* whoever is sealing changes keys first, or ends */
	for (int i = 0; i < 2; i++) {
		e.conf[0].tx.seq = UINT64_MAX - (i ? 0 : 1);
		e.conf[0].update_at = 5;
		e.conf[1].rx.seq = e.conf[0].tx.seq;
		rec_begin(&e);
		cr_expect_eq(ddps_rec_seal(e.end[0], &iov, 1, wire, sizeof wire),
			     i ? -EOVERFLOW : (ssize_t)DDPS_REC_UPDATE + 23);
		if (i)
			cr_expect_eq(ddps_rec_seal_alert(e.end[0], 0, wire, sizeof wire),
				     -EOVERFLOW);
		rec_free(&e);
	}
}
