/* SPDX-License-Identifier: BSD-2-Clause */
/* Alerts and ends, in both directions; and what a library that fails, a fork and a wipe leave. */
#include "record_fixture.h"
#include "support/aead_stub.h"
#include <errno.h>
#include <stdlib.h>
#include <string.h>

static const struct iovec some = { (void *)"some", 4 };

static size_t send_alert(struct rec_ends *e, uint8_t level, uint8_t alert, uint8_t *wire)
{
	struct rec_forger f;
	size_t n;

	rec_forger_begin(&f, e, 0);
	n = rec_forge_typed(&f, 21, (uint8_t[]){ level, alert }, 2, 0, wire);
	rec_forger_end(&f);
	return n;
}

Test(record_end, close_notify_ends_one_direction, .description = "8446-6.1-1 8446-6.1-2")
{
	struct rec_ends e;
	uint8_t wire[128];
	ssize_t n, more;

	rec_setup(&e);
	n = ddps_rec_seal_alert(e.end[0], DDPS_ALERT_CLOSE_NOTIFY, wire, sizeof wire);
	cr_assert_eq(n, DDPS_REC_ALERT);
	cr_expect_eq(ddps_rec_seal(e.end[0], &some, 1, wire, sizeof wire), -EPIPE);
	cr_expect_eq(ddps_rec_seal_alert(e.end[0], 0, wire, sizeof wire), -EPIPE);
	cr_expect_eq(ddps_rec_seal_owed(e.end[0], wire, sizeof wire), -EPIPE);
	cr_expect_not(ddps_rec_owes(e.end[0]));

	cr_expect_eq(rec_open(e.end[1], wire, (size_t)n).what, DDPS_REC_CLOSED);
	cr_expect_eq(ddps_rec_alert_got(e.end[1]), 0);
	/* what is behind it is thrown away, whatever it is */
	cr_expect_eq(rec_open(e.end[1], (const uint8_t *)"MPA", 3).what, DDPS_REC_CLOSED);
	cr_expect_eq(rec_open(e.end[1], (const uint8_t *)"MPA", 3).used, 3);
	cr_expect(ddps_rec_end(e.end[1]));
	cr_expect_eq(ddps_rec_error(e.end[1]).code, DDPS_OK);

	/* the other direction goes on */
	more = ddps_rec_seal(e.end[1], &some, 1, wire, sizeof wire);
	cr_assert_eq(more, 4 + DDPS_REC_OVERHEAD);
	cr_expect_eq(rec_open(e.end[0], wire, (size_t)more).what, DDPS_REC_DATA);
	rec_free(&e);
}

Test(record_end, an_end_without_close_notify_is_a_cut, .description = "8446-6.1-4")
{
	struct ddps_error err;
	struct rec_ends e;

	rec_setup(&e);
	cr_expect_not(ddps_rec_end(e.end[0]));
	err = ddps_rec_error(e.end[0]);
	cr_expect(err.has_triple && err.triple.layer == 2 && err.triple.etype == 0 &&
		  err.triple.code == 1);
	cr_expect(strstr(err.text, "without close_notify"));
	rec_failed(e.end[0], -1, DDPS_E_CUT_SHORT, "a cut");
	rec_free(&e);
}

/* The level decides nothing; unknown alerts end it as known ones do; nothing is sent back. */
Test(record_end, alerts_of_the_peer, .description = "8446-6-2 8446-6-3 8446-6.2-1 8446-6.1-3")
{
	for (int level = 0; level < 4; level++)
		for (int alert = 0; alert < 256; alert++) {
			struct ddps_rec_opened o;
			struct rec_ends e;
			uint8_t wire[32];
			size_t n;

			rec_setup(&e);
			n = send_alert(&e, (uint8_t)level, (uint8_t)alert, wire);
			o = rec_open(e.end[1], wire, n);
			cr_assert_eq(ddps_rec_alert_got(e.end[1]), alert);
			if (alert == DDPS_ALERT_CLOSE_NOTIFY) {
				cr_assert_eq(o.what, DDPS_REC_CLOSED);
			} else if (alert == DDPS_ALERT_USER_CANCELED) {
				cr_assert_eq(o.what, DDPS_REC_NONE);
				cr_assert_eq(o.used, n);
			} else {
				struct ddps_error err;

				cr_assert_eq(o.what, DDPS_REC_FAILED);
				rec_failed(e.end[1], -1, DDPS_E_ALERT, "an alert");
				err = ddps_rec_error(e.end[1]);
				cr_expect(err.by_peer);
				cr_expect(strstr(err.text, ddps_alert_name((uint8_t)alert)));
			}
			rec_free(&e);
		}
	cr_expect_str_eq(ddps_alert_name(20), "bad_record_mac");
	cr_expect_str_eq(ddps_alert_name(120), "no_application_protocol");
	cr_expect_str_eq(ddps_alert_name(200), "unassigned alert");
}

Test(record_end, what_is_fatal_is_sent_so, .description = "8446-6-1")
{
	static const struct {
		uint8_t alert, level;
	} sent[] = { { 0, 1 },	{ 90, 1 }, { 10, 2 }, { 20, 2 }, { 22, 2 },
		     { 47, 2 }, { 50, 2 }, { 80, 2 }, { 116, 2 } };

	for (size_t i = 0; i < sizeof sent / sizeof *sent; i++) {
		struct rec_ends e;
		uint8_t wire[32];

		rec_setup(&e);
		cr_assert_eq(ddps_rec_seal_alert(e.end[0], sent[i].alert, wire, sizeof wire),
			     DDPS_REC_ALERT);
		rec_open(e.end[1], wire, DDPS_REC_ALERT);
		cr_expect_eq(rec_scratch[0], sent[i].level);
		cr_expect_eq(rec_scratch[1], sent[i].alert);
		cr_expect_eq(ddps_rec_seal(e.end[0], &some, 1, wire, sizeof wire), -EPIPE);
		rec_free(&e);
	}
}

/* After the alert that it led to, too, nothing more is opened: the first fault stays. */
Test(record_end, the_first_fault_is_the_one_that_stays)
{
	struct rec_ends e;
	uint8_t wire[64];

	rec_setup(&e);
	cr_expect_eq(rec_open(e.end[0], (const uint8_t *)"x", 1).what, DDPS_REC_FAILED);
	cr_expect_not(ddps_rec_end(e.end[0]));
	rec_failed(e.end[0], 10, DDPS_E_PROTOCOL, "first");
	cr_expect_eq(ddps_rec_seal_alert(e.end[0], (uint8_t)ddps_rec_alert_due(e.end[0]), wire,
					 sizeof wire),
		     DDPS_REC_ALERT);
	cr_expect_eq(rec_open(e.end[1], wire, DDPS_REC_ALERT).what, DDPS_REC_FAILED);
	cr_expect_eq(ddps_rec_alert_got(e.end[1]), 10);
	rec_free(&e);
}

/* ---- sealing that is refused, and uses no number up ---- */

Test(record_end, what_does_not_fit_changes_nothing, .description = "8446-5.1-6 8449-4-2")
{
	static uint8_t plain[16385], wire[17000];
	struct iovec pieces[DDPS_AEAD_IOV_MAX], too_long[] = { { plain, 16384 }, { plain, 1 } },
						huge[] = { { plain, 5 }, { plain, SIZE_MAX } };
	struct rec_ends e;
	ssize_t n;

	for (int i = 0; i < DDPS_AEAD_IOV_MAX; i++)
		pieces[i] = (struct iovec){ plain + i, 1 };
	rec_configure(&e, aead_stub(), DDPS_SUITE_AES_128_GCM, 2);
	e.conf[0].update_at = 2;
	rec_begin(&e);
	cr_expect_eq(ddps_rec_room(e.end[0]), 16384);
	cr_expect_eq(ddps_rec_seal(e.end[0], pieces, DDPS_AEAD_IOV_MAX, wire, sizeof wire),
		     -EMSGSIZE);
	cr_expect_eq(ddps_rec_seal(e.end[0], pieces, -1, wire, sizeof wire), -EMSGSIZE);
	cr_expect_eq(ddps_rec_seal(e.end[0], too_long, 2, wire, sizeof wire), -EMSGSIZE);
	cr_expect_eq(ddps_rec_seal(e.end[0], huge, 2, wire, sizeof wire), -EMSGSIZE);
	cr_expect_eq(ddps_rec_seal(e.end[0], &some, 1, wire, 25), -ENOBUFS);
	cr_expect_eq(ddps_rec_seal_alert(e.end[0], 0, wire, DDPS_REC_ALERT - 1), -ENOBUFS);
	cr_expect_eq(ddps_rec_stats(e.end[0])->sealed, 0);
	/* exactly as much as it takes */
	for (int i = 0; i < 2; i++) {
		n = ddps_rec_seal(e.end[0], &some, 1, wire, 26);
		cr_assert_eq(n, 26);
		cr_expect_eq(rec_open(e.end[1], wire, 26).what, DDPS_REC_DATA);
	}
	/* and with a KeyUpdate before it */
	cr_expect(ddps_rec_owes(e.end[0]));
	cr_expect_eq(ddps_rec_seal_owed(e.end[0], wire, DDPS_REC_UPDATE - 1), -ENOBUFS);
	cr_expect_eq(ddps_rec_seal(e.end[0], &some, 1, wire, 26 + DDPS_REC_UPDATE - 1), -ENOBUFS);
	n = ddps_rec_seal(e.end[0], &some, 1, wire, 26 + DDPS_REC_UPDATE);
	cr_assert_eq(n, 26 + DDPS_REC_UPDATE);
	cr_expect_eq(rec_open(e.end[1], wire, (size_t)n).used, DDPS_REC_UPDATE);
	cr_expect_eq(rec_open(e.end[1], wire + DDPS_REC_UPDATE, 26).what, DDPS_REC_DATA);
	rec_free(&e);
}

/* ---- beginning ---- */

Test(record_end, keys_and_limits_that_cannot_be_right, .description = "8449-4-1")
{
	struct ddps_rec *r;
	struct rec_ends e;
	void *mem;

	for (int i = 0; i < 8; i++) {
		struct ddps_rec_config c;

		rec_configure(&e, aead_stub(), DDPS_SUITE_AES_256_GCM, 9);
		c = e.conf[0];
		c.tx.key[31] ^= i == 0;
		c.tx.iv[11] ^= i == 1;
		c.tx.secret[47] ^= i == 2;
		c.rx.key[0] ^= i == 3;
		c.rx.secret[0] ^= i == 4;
		c.peer_limit = i == 5 ? 63 : 64;
		c.own_limit = i == 6 ? 1 : 0;
		mem = aligned_alloc(DDPS_AEAD_ALIGN, ddps_rec_size(&c));
		cr_assert(mem);
		cr_expect_eq(ddps_rec_init(mem, &c, &r), i == 7 ? 0 : -EINVAL, "%d", i);
		if (i == 7) {
			cr_expect_eq(ddps_rec_room(r), 63);
			ddps_rec_wipe(r);
		}
		free(mem);
		cr_expect_eq(aead_stub_alive, 0);
	}
}

/* ---- a library that fails ---- */

/* Let the call number @i of the library fail, of sealing, opening and changing keys both ways. */
static bool go_on_until_it_fails(unsigned i)
{
	uint8_t wire[256];
	struct rec_ends e;
	bool failed = false;

	rec_configure(&e, aead_stub(), DDPS_SUITE_AES_128_GCM, 5);
	e.conf[0].update_at = 2;
	rec_begin(&e);
	aead_stub_fails = i;
	for (int k = 0; k < 6 && !failed; k++) {
		ssize_t n = ddps_rec_seal(e.end[0], &some, 1, wire, sizeof wire);
		struct ddps_rec_opened o = { .what = DDPS_REC_NONE };

		if (n < 0) {
			cr_expect(n == -EIO || n == -ENOMEM);
			/* its number is used up: nothing is sealed any more */
			cr_expect_eq(ddps_rec_seal(e.end[0], &some, 1, wire, sizeof wire), n);
			cr_expect_eq(ddps_rec_seal_alert(e.end[0], 80, wire, sizeof wire), n);
			failed = true;
		}
		for (size_t at = 0; !failed && at < (size_t)n; at += o.used) {
			o = rec_open(e.end[1], wire + at, (size_t)n - at);
			if (o.what == DDPS_REC_FAILED) {
				rec_failed(e.end[1], 80, DDPS_E_SYSTEM, "the library");
				failed = true;
			}
		}
	}
	aead_stub_fails = 0;
	rec_free(&e);
	cr_expect_eq(aead_stub_alive, 0);
	return failed;
}

Test(record_end, a_library_that_fails_ends_it)
{
	unsigned i = 1;

	while (go_on_until_it_fails(i))
		i++;
	cr_expect(i > 15, "%u calls", i);
}

Test(record_end, a_library_that_cannot_begin)
{
	for (unsigned i = 1; i < 4; i++) {
		struct ddps_rec *r = NULL;
		struct rec_ends e;
		void *mem;

		rec_configure(&e, aead_stub(), DDPS_SUITE_AES_128_GCM, 5);
		mem = aligned_alloc(DDPS_AEAD_ALIGN, ddps_rec_size(&e.conf[0]));
		cr_assert(mem);
		aead_stub_fails = i;
		cr_expect_eq(ddps_rec_init(mem, &e.conf[0], &r), i < 3 ? -ENOMEM : 0);
		aead_stub_fails = 0;
		if (r)
			ddps_rec_wipe(r);
		free(mem);
		cr_expect_eq(aead_stub_alive, 0);
	}
}

/* ---- keys that are gone ---- */

/* Memory that fork() wiped, as MADV_WIPEONFORK does: zeros are a key, too, which everybody knows. */
Test(record_end, the_child_of_a_fork_seals_nothing)
{
	struct rec_ends e;
	uint8_t wire[64];

	rec_setup(&e);
	memset(e.mem[0], 0, ddps_rec_size(&e.conf[0]));
	cr_expect_eq(ddps_rec_seal(e.end[0], &some, 1, wire, sizeof wire), -EOWNERDEAD);
	cr_expect_eq(ddps_rec_seal_owed(e.end[0], wire, sizeof wire), -EOWNERDEAD);
	cr_expect_eq(ddps_rec_seal_alert(e.end[0], 0, wire, sizeof wire), -EOWNERDEAD);
	cr_expect_eq(rec_open(e.end[0], wire, sizeof wire).what, DDPS_REC_FAILED);
	rec_failed(e.end[0], -1, DDPS_E_FORKED, "a fork");
	rec_free(&e);
}

Test(record_end, nothing_secret_is_left, .description = "8446-6.2-2")
{
	struct rec_ends e;
	size_t size;

	for (int i = 0; i < 2; i++) {
		rec_setup(&e);
		size = ddps_rec_size(&e.conf[0]);
		if (i) /* after a fault, too */
			rec_open(e.end[0], (const uint8_t *)"x", 1);
		ddps_rec_wipe(e.end[0]);
		for (size_t k = 0; k < size; k++)
			cr_assert_eq(((uint8_t *)e.mem[0])[k], 0);
		ddps_rec_wipe(e.end[1]);
		free(e.mem[0]);
		free(e.mem[1]);
		cr_expect_eq(aead_stub_alive, 0);
	}
}

/* Neither key nor IV is left in memory that somebody else gets next. */
Test(record_end, nothing_is_left_in_memory_that_was_wiped)
{
	struct rec_ends e;
	const uint8_t *p;

	rec_setup(&e);
	p = e.mem[0];
	ddps_rec_wipe(e.end[0]);
	for (size_t i = 0; i < ddps_rec_size(&e.conf[0]); i++)
		cr_assert_eq(p[i], 0, "octet %zu", i);
	rec_free(&e);
}
