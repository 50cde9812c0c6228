/* SPDX-License-Identifier: BSD-2-Clause */
/* The secrets of State Cookies (RFC 9260 5.1.3): whose cookies are good, how long, and how old they are. */
#include "sctp/sctp_cookie.h"
#include <ddpsess/err.h>
#include <criterion/criterion.h>

static const struct ddps_sc_cookie some = { .created = 5, .life_ms = 1, .own_tag = 7 };

static size_t seal_sctp_keys(const struct ddps_sc_keys *k, uint8_t *buf)
{
	return ddps_sc_cookie_seal(k, &some, buf);
}

static bool does_sctp_keys_open(const struct ddps_sc_keys *k, const uint8_t *buf, size_t len)
{
	struct ddps_sc_cookie c;
	int err = ddps_sc_cookie_open(k, &c, buf, len);

	cr_expect(!err || err == DDPS_E_KEY);
	cr_expect(err || c.own_tag == 7);
	return !err;
}

/* Whoever does not know each octet of the secret cannot make one. */
Test(sctp_keys, a_secret_is_all_of_it, .description = "9260-5.1.3-1")
{
	uint8_t secret[2][32], buf[DDPS_SC_COOKIE_MAX];
	struct ddps_sc_keys k, other;
	size_t len;

	memset(secret, 's', sizeof secret);
	ddps_sc_keys_init(&k, (const uint8_t(*)[32])secret, 100);
	len = seal_sctp_keys(&k, buf);
	cr_expect(does_sctp_keys_open(&k, buf, len));
	ddps_sc_keys_init(&other, (const uint8_t(*)[32])secret, 200);
	cr_expect(does_sctp_keys_open(&other, buf, len), "it is nothing else, either");
	for (unsigned i = 0; i < 32; i++) {
		secret[1][i] ^= 1;
		ddps_sc_keys_init(&other, (const uint8_t(*)[32])secret, 100);
		cr_expect_not(does_sctp_keys_open(&other, buf, len), "%u", i);
		secret[1][i] ^= 1;
	}
}

Test(sctp_keys, a_new_secret_is_all_of_it)
{
	uint8_t secret[2][32], fresh[32], buf[DDPS_SC_COOKIE_MAX];
	struct ddps_sc_keys k, other;
	size_t len;

	memset(secret, 's', sizeof secret);
	memset(fresh, 'f', sizeof fresh);
	ddps_sc_keys_init(&k, (const uint8_t(*)[32])secret, 100);
	other = k;
	ddps_sc_keys_rotate(&k, fresh, 200);
	len = seal_sctp_keys(&k, buf);
	cr_expect(does_sctp_keys_open(&k, buf, len));
	for (unsigned i = 0; i < 32; i++) {
		fresh[i] ^= 1;
		ddps_sc_keys_rotate(&other, fresh, 200);
		other.id = k.id;
		memcpy(other.secret[!(k.id & 1)], k.secret[!(k.id & 1)], 32);
		cr_expect_not(does_sctp_keys_open(&other, buf, len), "%u", i);
		fresh[i] ^= 1;
		ddps_sc_keys_init(&other, (const uint8_t(*)[32])secret, 100);
	}
}

/* A secret is good while it is the newest one, and the one before that. */
Test(sctp_keys, how_long_a_secret_is_good, .description = "9260-5.1.3-5")
{
	uint8_t secret[2][32], fresh[32], buf[DDPS_SC_COOKIE_MAX];
	struct ddps_sc_keys k, old;
	uint64_t now = 1000;
	size_t len;

	memset(secret, 's', sizeof secret);
	ddps_sc_keys_init(&k, (const uint8_t(*)[32])secret, now);
	for (uint8_t i = 0; i < 4; i++) {
		cr_expect_not(ddps_sc_keys_due(&k, now + DDPS_SC_KEY_LIFE_NS - 1));
		now += DDPS_SC_KEY_LIFE_NS;
		cr_expect(ddps_sc_keys_due(&k, now));
		old = k;
		len = seal_sctp_keys(&k, buf);
		memset(fresh, 'a' + i, sizeof fresh);
		ddps_sc_keys_rotate(&k, fresh, now);
		cr_expect(does_sctp_keys_open(&k, buf, len), "%u", i);
		now += DDPS_SC_KEY_LIFE_NS;
		memset(fresh, 'A' + i, sizeof fresh);
		ddps_sc_keys_rotate(&k, fresh, now);
		cr_expect_not(does_sctp_keys_open(&k, buf, len), "%u", i);
		old.id = k.id; /* whoever has found it out by now */
		cr_expect_not(does_sctp_keys_open(&k, buf, seal_sctp_keys(&old, buf)), "%u", i);
	}
}

/* One of the future is of a clock that was put back: it is as old as it is young. */
Test(sctp_keys, how_stale_a_cookie_is, .description = "9260-5.1.5-4")
{
	static const struct {
		uint64_t now, stale;
	} row[] = { { 0, 5 },
		    { 4, 1 },
		    { 5, 0 },
		    { 1000004, 0 },
		    { 1000005, 0 },
		    { 1000006, 1 },
		    { 2000005, 1000000 } };

	for (size_t i = 0; i < sizeof row / sizeof *row; i++)
		cr_expect_eq(ddps_sc_cookie_stale(&some, row[i].now), row[i].stale, "%zu", i);
}
