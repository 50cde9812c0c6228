/* SPDX-License-Identifier: BSD-2-Clause */
/* Handshake messages after the handshake: KeyUpdates both ways, tickets, and cuts of them. */
#include "record_fixture.h"
#include "support/aead_stub.h"
#include <errno.h>
#include <stdlib.h>
#include <string.h>

static const struct iovec some = { (void *)"some", 4 };

enum { ASK = 1 };

static void deliver(struct ddps_rec *to, const uint8_t *wire, ssize_t n, unsigned data)
{
	struct ddps_rec_opened o;

	cr_assert(n > 0);
	for (size_t at = 0; at < (size_t)n; at += o.used) {
		o = rec_open(to, wire + at, (size_t)n - at);
		cr_assert(o.what == DDPS_REC_DATA || o.what == DDPS_REC_NONE, "%s",
			  ddps_rec_error(to).text);
		data -= o.what == DDPS_REC_DATA;
	}
	cr_expect_eq(data, 0);
}

/* A KeyUpdate of the forger's and his next keys. */
static void forge_update(struct rec_forger *f, struct ddps_rec *to, uint8_t ask)
{
	uint8_t wire[64];
	size_t n = rec_forge_typed(f, 22, (uint8_t[]){ 24, 0, 0, 1, ask }, 5, 0, wire);

	cr_assert_eq(rec_open(to, wire, n).what, DDPS_REC_NONE, "%s", ddps_rec_error(to).text);
	rec_forger_update(f);
}

Test(record_update, one_that_asks_is_answered_once_before_the_next_data,
     .description = "8446-4.6.3-3 8446-4.6.3-4 8446-4.6.3-5 8446-4.6.3-6 8446-7.2-1")
{
	struct rec_forger f;
	struct rec_ends e;
	uint8_t wire[128];
	ssize_t n;

	rec_setup(&e);
	rec_forger_begin(&f, &e, 0);
	forge_update(&f, e.end[1], 0);
	cr_expect_not(ddps_rec_owes(e.end[1]));
	for (int i = 0; i < 3; i++)
		forge_update(&f, e.end[1], ASK);
	forge_update(&f, e.end[1], 0);
	cr_expect(ddps_rec_owes(e.end[1]));
	n = ddps_rec_seal(e.end[1], &some, 1, wire, sizeof wire);
	cr_expect_eq(n, DDPS_REC_UPDATE + 4 + DDPS_REC_OVERHEAD);
	cr_expect_not(ddps_rec_owes(e.end[1]));
	/* sealed with the old key, and it does not ask again */
	cr_expect_eq(rec_open(e.end[0], wire, (size_t)n).used, DDPS_REC_UPDATE);
	cr_expect_arr_eq(rec_scratch, ((uint8_t[]){ 24, 0, 0, 1, 0, 22 }), 6);
	cr_expect_not(ddps_rec_owes(e.end[0]));
	/* the next key, from number 0 */
	deliver(e.end[0], wire + DDPS_REC_UPDATE, n - (ssize_t)DDPS_REC_UPDATE, 1);
	n = ddps_rec_seal(e.end[1], &some, 1, wire, sizeof wire);
	cr_expect_eq(n, 4 + DDPS_REC_OVERHEAD, "one answer");
	deliver(e.end[0], wire, n, 1);
	cr_expect_eq(ddps_rec_stats(e.end[1])->updates_got, 5);
	cr_expect_eq(ddps_rec_stats(e.end[1])->updates_sent, 1);
	rec_forger_end(&f);
	rec_free(&e);
}

Test(record_update, an_answer_without_data)
{
	struct rec_forger f;
	struct rec_ends e;
	uint8_t wire[64];

	rec_setup(&e);
	rec_forger_begin(&f, &e, 0);
	cr_expect_eq(ddps_rec_seal_owed(e.end[1], wire, sizeof wire), 0);
	forge_update(&f, e.end[1], ASK);
	cr_expect_eq(ddps_rec_seal_owed(e.end[1], wire, sizeof wire), DDPS_REC_UPDATE);
	cr_expect_eq(ddps_rec_seal_owed(e.end[1], wire, sizeof wire), 0);
	deliver(e.end[0], wire, DDPS_REC_UPDATE, 0);
	rec_forger_end(&f);
	rec_free(&e);
}

/* Only what came before it is opened with the old key, only what came behind it with the new. */
Test(record_update, old_keys_end_with_it, .description = "8446-4.6.3-5")
{
	for (int old = 0; old < 2; old++) {
		struct rec_forger f, past;
		struct rec_ends e;
		uint8_t wire[64];
		size_t n;

		rec_setup(&e);
		rec_forger_begin(&f, &e, 0);
		rec_forger_begin(&past, &e, 0);
		if (old) {
			forge_update(&f, e.end[1], 0);
			past.k.seq = f.k.seq;
			n = rec_forge_typed(&past, 23, "x", 1, 0, wire);
		} else { /* the new key without a KeyUpdate */
			rec_forger_update(&f);
			n = rec_forge_typed(&f, 23, "x", 1, 0, wire);
		}
		cr_expect_eq(rec_open(e.end[1], wire, n).what, DDPS_REC_FAILED);
		rec_failed(e.end[1], 20, DDPS_E_FORGED, "old or new");
		rec_forger_end(&f);
		rec_forger_end(&past);
		rec_free(&e);
	}
}

/* Ours is changed after so many records of a key, which taking over counts; 2^23 if nothing else is said. */
Test(record_update, keys_are_changed_before_their_limit, .description = "8446-5.5-1")
{
	struct rec_ends e;
	uint8_t wire[128];

	rec_configure(&e, aead_stub(), DDPS_SUITE_CHACHA20_POLY1305, 1);
	e.conf[0].tx.seq = e.conf[1].rx.seq = DDPS_REC_UPDATE_AT - 1;
	rec_begin(&e);
	for (int i = 0; i < 3; i++) {
		ssize_t n = ddps_rec_seal(e.end[0], &some, 1, wire, sizeof wire);

		cr_expect_eq(n, (i == 1 ? DDPS_REC_UPDATE : 0) + 4 + DDPS_REC_OVERHEAD, "%d", i);
		deliver(e.end[1], wire, n, 1);
	}
	rec_free(&e);
	rec_configure(&e, aead_stub(), DDPS_SUITE_AES_256_GCM, 1);
	e.conf[0].update_at = 3;
	rec_begin(&e);
	for (int i = 0; i < 100; i++)
		deliver(e.end[1], wire, ddps_rec_seal(e.end[0], &some, 1, wire, sizeof wire), 1);
	cr_expect_eq(ddps_rec_stats(e.end[0])->updates_sent, 33);
	rec_free(&e);
}

/* A peer that never changes its key is asked to, once; nobody ends the connection for it. */
Test(record_update, a_peer_is_asked_for_another_key)
{
	struct rec_forger f;
	struct rec_ends e;
	uint8_t wire[128];
	ssize_t n;

	rec_configure(&e, aead_stub(), DDPS_SUITE_AES_128_GCM, 1);
	e.conf[1].ask_at = 4;
	rec_begin(&e);
	rec_forger_begin(&f, &e, 0);
	for (int round = 0; round < 2; round++) {
		for (int i = 0; i < 10; i++) {
			deliver(e.end[1], wire, (ssize_t)rec_forge_typed(&f, 23, "x", 1, 0, wire),
				1);
			cr_expect_eq(ddps_rec_owes(e.end[1]), i == 3, "%d", i);
			if (i != 3)
				continue;
			n = ddps_rec_seal_owed(e.end[1], wire, sizeof wire);
			cr_assert_eq(n, DDPS_REC_UPDATE);
			deliver(e.end[0], wire, n, 0);
			cr_expect_eq(rec_scratch[4], ASK);
			cr_expect(ddps_rec_owes(e.end[0]), "it was understood");
			ddps_rec_seal_owed(e.end[0], wire, sizeof wire); /* not delivered */
		}
		forge_update(&f, e.end[1], 0);
		cr_expect_not(ddps_rec_owes(e.end[1]));
	}
	rec_forger_end(&f);
	rec_free(&e);
}

/* Two requests that cross: each side answers. */
Test(record_update, requests_that_cross, .description = "8446-4.6.3-3")
{
	uint8_t wire[2][256];
	struct rec_ends e;
	ssize_t n[2];

	rec_configure(&e, aead_stub(), DDPS_SUITE_AES_128_GCM, 1);
	e.conf[0].ask_at = e.conf[1].ask_at = 1;
	rec_begin(&e);
	for (int turn = 0; turn < 10; turn++) {
		for (int i = 0; i < 2; i++)
			n[i] = ddps_rec_seal(e.end[i], &some, 1, wire[i], sizeof wire[i]);
		for (int i = 0; i < 2; i++)
			deliver(e.end[!i], wire[i], n[i], 1);
	}
	cr_expect(ddps_rec_stats(e.end[0])->updates_got > 3);
	rec_free(&e);
}

/* ---- tickets ---- */

static size_t make_ticket(uint8_t *out, size_t len)
{
	memset(out, 0xab, 4 + len);
	out[0] = 4;
	out[1] = (uint8_t)(len >> 16);
	out[2] = (uint8_t)(len >> 8);
	out[3] = (uint8_t)len;
	return 4 + len;
}

Test(record_update, tickets_are_skipped_wherever_they_come, .description = "8446-4.6.1-1")
{
	uint8_t msg[600], wire[1024];
	struct rec_forger f;
	struct rec_ends e;
	size_t n;

	rec_setup(&e);
	rec_forger_begin(&f, &e, 1);
	for (int i = 0; i < 100; i++) { /* any number, without data */
		n = make_ticket(msg, 200);
		n = rec_forge_typed(&f, 22, msg, n, 0, wire);
		deliver(e.end[0], wire, (ssize_t)n, 0);
	}
	/* two of them and a KeyUpdate in one record */
	n = make_ticket(msg, 14);
	n += make_ticket(msg + n, 30);
	memcpy(msg + n, (uint8_t[]){ 24, 0, 0, 1, 1 }, 5);
	n = rec_forge_typed(&f, 22, msg, n + 5, 9, wire);
	deliver(e.end[0], wire, (ssize_t)n, 0);
	rec_forger_update(&f);
	cr_expect(ddps_rec_owes(e.end[0]));
	deliver(e.end[0], wire, (ssize_t)rec_forge_typed(&f, 23, "x", 1, 0, wire), 1);
	cr_expect_eq(ddps_rec_stats(e.end[0])->tickets, 102);
	rec_forger_end(&f);
	rec_free(&e);
}

/* The longest that there can be, in as few records as it takes; and lengths that cannot be. */
Test(record_update, tickets_have_a_length, .description = "8446-6-4")
{
	static const struct {
		size_t len;
		bool ok;
	} lens[] = { { 13, false },    { 14, true },	  { 0, false },
		     { 131337, true }, { 131338, false }, { 0xffffff, false } };
	static uint8_t msg[140000], wire[17000];

	for (size_t i = 0; i < sizeof lens / sizeof *lens; i++) {
		size_t left = 4 + lens[i].len, at = 0;
		struct ddps_rec_opened o;
		struct rec_forger f;
		struct rec_ends e;

		rec_setup(&e);
		rec_forger_begin(&f, &e, 1);
		make_ticket(msg, lens[i].len < 140000 - 4 ? lens[i].len : 4);
		msg[1] = (uint8_t)(lens[i].len >> 16);
		msg[2] = (uint8_t)(lens[i].len >> 8);
		msg[3] = (uint8_t)lens[i].len;
		do {
			size_t n = left - at < 16384 ? left - at : 16384;

			o = rec_open(e.end[0], wire, rec_forge_typed(&f, 22, msg + at, n, 0, wire));
			at += n;
		} while (o.what == DDPS_REC_NONE && at < left);
		if (lens[i].ok)
			cr_expect(o.what == DDPS_REC_NONE &&
				  ddps_rec_stats(e.end[0])->tickets == 1);
		else
			rec_failed(e.end[0], 50, DDPS_E_PROTOCOL, "length");
		rec_forger_end(&f);
		rec_free(&e);
	}
}

Test(record_update, only_clients_get_tickets, .description = "8446-4-1")
{
	struct rec_forger f;
	struct rec_ends e;
	uint8_t msg[64], wire[128];
	size_t n;

	rec_setup(&e);
	rec_forger_begin(&f, &e, 0);
	n = make_ticket(msg, 20);
	n = rec_forge_typed(&f, 22, msg, n, 0, wire);
	cr_expect_eq(rec_open(e.end[1], wire, n).what, DDPS_REC_FAILED);
	rec_failed(e.end[1], 10, DDPS_E_PROTOCOL, "a ticket for a server");
	rec_forger_end(&f);
	rec_free(&e);
}

/* ---- messages that are split ---- */

/* Ticket and KeyUpdate in every cut of two and three records. */
Test(record_update, messages_in_every_cut, .description = "8446-5.1-1 8446-5.1-2")
{
	uint8_t msg[64], wire[128];
	size_t len = make_ticket(msg, 15);

	memcpy(msg + len, (uint8_t[]){ 24, 0, 0, 1, 1 }, 5);
	len += 5;
	for (size_t a = 1; a < len; a++)
		for (size_t b = a; b < len; b++) {
			size_t cut[] = { 0, a, b, len };
			struct rec_forger f;
			struct rec_ends e;

			rec_setup(&e);
			rec_forger_begin(&f, &e, 1);
			for (int i = 0; i < 3; i++)
				if (cut[i + 1] > cut[i])
					deliver(e.end[0], wire,
						(ssize_t)rec_forge_typed(&f, 22, msg + cut[i],
									 cut[i + 1] - cut[i], 0,
									 wire),
						0);
			cr_expect_eq(ddps_rec_stats(e.end[0])->tickets, 1);
			cr_expect_eq(ddps_rec_stats(e.end[0])->updates_got, 1);
			cr_expect(ddps_rec_owes(e.end[0]));
			rec_forger_update(&f);
			deliver(e.end[0], wire, (ssize_t)rec_forge_typed(&f, 23, "x", 1, 0, wire),
				1);
			rec_forger_end(&f);
			rec_free(&e);
		}
}

/* Nothing stands between the records of one message: no data, no warning; an alert that ends it does. */
Test(record_update, nothing_comes_within_a_message, .description = "8446-5.1-1")
{
	static const struct {
		uint8_t type, content[2];
		size_t n;
		int alert, code;
	} between[] = {
		{ 23, { 'x' }, 1, 10, DDPS_E_PROTOCOL },  { 23, { 0 }, 0, 10, DDPS_E_PROTOCOL },
		{ 21, { 1, 0 }, 2, 10, DDPS_E_PROTOCOL }, { 21, { 1, 90 }, 2, 10, DDPS_E_PROTOCOL },
		{ 21, { 2, 80 }, 2, -1, DDPS_E_ALERT },
	};
	uint8_t msg[64], wire[128];

	for (size_t i = 0; i < sizeof between / sizeof *between; i++)
		for (size_t at = 1; at < 4 + 14; at++) {
			struct rec_forger f;
			struct rec_ends e;
			size_t n;

			rec_setup(&e);
			rec_forger_begin(&f, &e, 1);
			make_ticket(msg, 14);
			deliver(e.end[0], wire, (ssize_t)rec_forge_typed(&f, 22, msg, at, 0, wire),
				0);
			n = rec_forge_typed(&f, between[i].type, between[i].content, between[i].n,
					    0, wire);
			cr_expect_eq(rec_open(e.end[0], wire, n).what, DDPS_REC_FAILED);
			rec_failed(e.end[0], between[i].alert, between[i].code, "within");
			rec_forger_end(&f);
			rec_free(&e);
		}
}

/* One octet a record, and never an end: so many, and no more. */
Test(record_update, a_message_that_trickles)
{
	uint8_t msg[400], wire[64];
	struct rec_forger f;
	struct rec_ends e;
	unsigned n = 0;

	rec_setup(&e);
	rec_forger_begin(&f, &e, 1);
	make_ticket(msg, 300);
	while (n < 300 &&
	       rec_open(e.end[0], wire, rec_forge_typed(&f, 22, msg + n, 1, 0, wire)).what ==
		       DDPS_REC_NONE)
		n++;
	cr_expect_eq(n, DDPS_REC_IDLE_MAX);
	rec_failed(e.end[0], 10, DDPS_E_PROTOCOL, "trickles");
	rec_forger_end(&f);
	rec_free(&e);
}
