/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Our records and those of GnuTLS and OpenSSL understand each other: every suite, both roles, key changes of
 * both sides, tickets, padding, limits, ends and alerts.
 */
#include "record_fixture.h"
#include "secure/aead/aead_lib.h"
#include "tls_judge.h"
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#define MESSAGE_MAX 20000u

/* ---- octets on their way ---- */

void octets_put(struct octets *o, const void *p, size_t n)
{
	if (o->len + n > o->room) {
		o->room = 2 * (o->len + n);
		o->p = realloc(o->p, o->room);
		cr_assert(o->p);
	}
	memcpy(o->p + o->len, p, n);
	o->len += n;
}

size_t octets_take(struct octets *o, void *p, size_t n)
{
	if (n > o->len - o->at)
		n = o->len - o->at;
	if (n)
		memcpy(p, o->p + o->at, n);
	o->at += n;
	if (o->at == o->len)
		o->at = o->len = 0;
	return n;
}

void octets_free(struct octets *o)
{
	free(o->p);
	*o = (struct octets){ 0 };
}

/* ---- our end ---- */

struct our_end {
	struct ddps_rec *r;
	void *mem;
	uint64_t seed;
};

static void begin_our_end(struct our_end *u, struct tls_judge *j, const struct ddps_aead *aead,
			  uint64_t seed)
{
	j->ops->begin(j);
	j->conf.aead = aead;
	*u = (struct our_end){ .seed = seed };
	u->mem = aligned_alloc(DDPS_AEAD_ALIGN, ddps_rec_size(&j->conf));
	cr_assert(u->mem);
	cr_assert_eq(ddps_rec_init(u->mem, &j->conf, &u->r), 0);
}

static void end_both(struct our_end *u, struct tls_judge *j)
{
	ddps_rec_wipe(u->r);
	free(u->mem);
	j->ops->free(j);
	octets_free(&j->to_us);
	octets_free(&j->to_lib);
}

/* Seal a message from random pieces, a record after the other. */
static void our_send(struct our_end *u, struct tls_judge *j, uint8_t *p, size_t n)
{
	uint8_t wire[17000];

	do {
		size_t part = n < ddps_rec_room(u->r) ? n : ddps_rec_room(u->r);
		size_t cut = draw_of(&u->seed) % (part + 1);
		struct iovec iov[] = { { p, cut }, { p + cut, part - cut } };
		ssize_t sealed = ddps_rec_seal(u->r, iov, 2, wire, sizeof wire);

		cr_assert(sealed > 0, "%zd", sealed);
		octets_put(&j->to_lib, wire, (size_t)sealed);
		p += part;
		n -= part;
	} while (n);
}

/* Open what has come, in place; octets of data.  -1: closed, -2: failed. */
static int our_recv(struct our_end *u, struct tls_judge *j, uint8_t *out)
{
	struct octets *in = &j->to_us;
	struct ddps_rec_opened o;
	int got = 0;

	while (in->at < in->len) {
		uint8_t *at = in->p + in->at;

		o = ddps_rec_open(u->r, at, in->len - in->at, at + DDPS_REC_HEADER);
		if (o.what == DDPS_REC_FAILED)
			return -2;
		cr_assert_neq(o.what, DDPS_REC_MORE, "a library sends whole records");
		if (o.what == DDPS_REC_DATA) {
			memcpy(out + got, at + DDPS_REC_HEADER, o.len);
			got += (int)o.len;
		}
		in->at += o.used;
		if (o.what == DDPS_REC_CLOSED)
			got = -1;
	}
	in->at = in->len = 0;
	return got;
}

/* ---- the conversation ---- */

static void lib_expects(struct tls_judge *j, const uint8_t *want, size_t n)
{
	uint8_t got[MESSAGE_MAX];
	size_t have = 0;

	while (have < n) {
		int rc = j->ops->recv(j, got + have, sizeof got - have);

		cr_assert(rc > 0, "%s: %d after %zu of %zu octets", j->ops->name, rc, have, n);
		have += (size_t)rc;
	}
	cr_assert(!memcmp(got, want, n));
}

static void answer_owed(struct our_end *u, struct tls_judge *j)
{
	uint8_t wire[64];
	ssize_t n = ddps_rec_seal_owed(u->r, wire, sizeof wire);

	cr_assert(n >= 0);
	if (n)
		octets_put(&j->to_lib, wire, (size_t)n);
}

/* @updates: key changes that the library begins.  It asks for ours in every second. */
static void converse(struct our_end *u, struct tls_judge *j, int messages, unsigned updates)
{
	static uint8_t text[MESSAGE_MAX], back[2 * MESSAGE_MAX];
	uint64_t got = ddps_rec_stats(u->r)->updates_got;

	for (int i = 0; i < messages; i++) {
		size_t n = 1 + (draw_of(&u->seed) % 4 ? draw_of(&u->seed) % 100
						      : draw_of(&u->seed) % MESSAGE_MAX);

		if ((unsigned)i < updates)
			j->ops->update(j, i % 2);
		for (size_t k = 0; k < n; k++)
			text[k] = (uint8_t)draw_of(&u->seed);
		j->ops->send(j, text, n);
		cr_assert_eq(our_recv(u, j, back), (int)n, "%s", ddps_rec_error(u->r).text);
		cr_assert(!memcmp(text, back, n));
		if (draw_of(&u->seed) % 2)
			answer_owed(u, j);
		our_send(u, j, text, n);
		lib_expects(j, text, n);
	}
	cr_expect_eq(ddps_rec_stats(u->r)->updates_got - got, updates);
}

static void close_both(struct our_end *u, struct tls_judge *j)
{
	uint8_t wire[64], some[16];

	cr_assert_eq(ddps_rec_seal_alert(u->r, DDPS_ALERT_CLOSE_NOTIFY, wire, sizeof wire),
		     DDPS_REC_ALERT);
	octets_put(&j->to_lib, wire, DDPS_REC_ALERT);
	cr_expect_eq(j->ops->recv(j, some, sizeof some), 0, "%s sees the end", j->ops->name);
	j->ops->close(j);
	cr_expect_eq(our_recv(u, j, some), -1, "and so do we");
	cr_expect(ddps_rec_end(u->r));
}

static const enum ddps_suite suites[] = { DDPS_SUITE_AES_128_GCM, DDPS_SUITE_AES_256_GCM,
					  DDPS_SUITE_CHACHA20_POLY1305 };

/* GnuTLS takes 8 KeyUpdates in a second: two of ours, four of its own, of which two ask. */
static void judge_all(const struct tls_judge_ops *ops, unsigned updates, uint64_t update_at)
{
	for (int i = 0; i < 12; i++) {
		struct tls_judge j = { .ops = ops,
				       .suite = suites[i % 3],
				       .we_are_client = i / 3 % 2,
				       .tickets = i < 6 ? 0 : 2,
				       .pad = ops->pads && i % 2 ? 256 : 0 };
		struct our_end u;

		begin_our_end(&u, &j, i % 2 ? ddps_aead_best() : ddps_aead_gnutls(), (uint64_t)i);
		converse(&u, &j, 20, updates);
		if (j.we_are_client)
			cr_expect_eq(ddps_rec_stats(u.r)->tickets, j.tickets);
		close_both(&u, &j);
		end_both(&u, &j);

		/* again, and our key has its limit in the middle */
		begin_our_end(&u, &j, ddps_aead_best(), (uint64_t)i);
		ddps_rec_wipe(u.r);
		j.conf.update_at = update_at;
		cr_assert_eq(ddps_rec_init(u.mem, &j.conf, &u.r), 0);
		converse(&u, &j, 20, 0);
		cr_expect(ddps_rec_stats(u.r)->updates_sent > 0);
		close_both(&u, &j);
		end_both(&u, &j);
	}
}

Test(tls_judge, gnutls_and_our_records, .timeout = 60,
     .description = "8446-4.6.1-1 8446-4.6.3-3 8446-4.6.3-6 8446-6.1-2 8446-7.2-1 8446-7.3-1")
{
	judge_all(&tls_judge_gnutls, 4, 15);
}

Test(tls_judge, openssl_and_our_records, .timeout = 60,
     .description = "8446-4.6.1-1 8446-4.6.3-3 8446-4.6.3-6 8446-5.4-3 8446-6.1-2 8446-7.2-1")
{
	judge_all(&tls_judge_openssl, 20, 3);
}

/* The library's end takes 512 octets of content; we learn of it, and one octet more it would not take. */
Test(tls_judge, gnutls_has_a_record_size_limit, .description = "8449-4-2 8449-4-3 8449-4-4")
{
	for (int i = 0; i < 4; i++) {
		bool more = i % 2;
		struct tls_judge j = { .ops = &tls_judge_gnutls,
				       .suite = DDPS_SUITE_AES_128_GCM,
				       .we_are_client = i / 2,
				       .limit = 512 };
		uint8_t text[600] = { 1 }, got[600];
		struct our_end u;

		begin_our_end(&u, &j, ddps_aead_best(), 1);
		cr_assert_eq(ddps_rec_room(u.r), 512, "%zu", ddps_rec_room(u.r));
		if (more) {
			ddps_rec_wipe(u.r);
			j.conf.peer_limit++;
			cr_assert_eq(ddps_rec_init(u.mem, &j.conf, &u.r), 0);
		}
		our_send(&u, &j, text, ddps_rec_room(u.r));
		if (!more) {
			lib_expects(&j, text, 512);
		} else {
			cr_expect_eq(j.ops->recv(&j, got, sizeof got), JUDGE_ERROR);
			cr_expect_eq(our_recv(&u, &j, got), -2);
			cr_expect_eq(ddps_rec_alert_got(u.r), DDPS_ALERT_RECORD_OVERFLOW);
		}
		end_both(&u, &j);
	}
}

/* A bit changed on the way: the library's alert is understood, and ours by it. */
static void judge_changed(const struct tls_judge_ops *ops)
{
	for (int ours = 0; ours < 2; ours++) {
		struct tls_judge j = { .ops = ops, .suite = DDPS_SUITE_AES_256_GCM };
		uint8_t text[] = "a message", got[64];
		struct our_end u;

		begin_our_end(&u, &j, ddps_aead_best(), 1);
		if (ours) {
			our_send(&u, &j, text, sizeof text);
			j.to_lib.p[j.to_lib.len - 1] ^= 1;
			cr_expect_eq(j.ops->recv(&j, got, sizeof got), JUDGE_ERROR);
			cr_expect_eq(our_recv(&u, &j, got), -2);
			cr_expect_eq(ddps_rec_alert_got(u.r), DDPS_ALERT_BAD_RECORD_MAC);
			rec_failed(u.r, -1, DDPS_E_ALERT, ops->name);
		} else {
			j.ops->send(&j, text, sizeof text);
			j.to_us.p[j.to_us.len - 1] ^= 1;
			cr_expect_eq(our_recv(&u, &j, got), -2);
			cr_expect_eq(ddps_rec_alert_due(u.r), DDPS_ALERT_BAD_RECORD_MAC);
			cr_assert_eq(ddps_rec_seal_alert(u.r, DDPS_ALERT_BAD_RECORD_MAC, got,
							 sizeof got),
				     DDPS_REC_ALERT);
			octets_put(&j.to_lib, got, DDPS_REC_ALERT);
			cr_expect_eq(j.ops->recv(&j, got, sizeof got), JUDGE_ERROR);
		}
		end_both(&u, &j);
	}
}

Test(tls_judge, gnutls_and_a_changed_bit, .description = "8446-5.2-3 8446-6.2-1")
{
	judge_changed(&tls_judge_gnutls);
}

Test(tls_judge, openssl_and_a_changed_bit, .description = "8446-5.2-3 8446-6.2-1")
{
	judge_changed(&tls_judge_openssl);
}
