/* SPDX-License-Identifier: BSD-2-Clause */
/* What TLS adds to MPA (RFC 8446): ends, keys, records, and who may come in.  The peer's TLS is a library's. */
#include "conform/peer/inside.h"
#include "conform/peer/secured.h"
#include <errno.h>
#include <string.h>
#include <sys/socket.h>

#define PINGS	 8
#define UPDATES	 100
#define IN_A_ROW 10 /* a target may bound records without data */
#define EMPTIES	 16

static const struct cf_tls_lib *tls_lib(const struct cf *cf)
{
	return cf->run->secured->lib;
}

static void begin_secured(struct cf *cf)
{
	cf_session(cf, NULL);
	cf_ping(cf);
}

/* All that the target still says, and how it ends: as cf_octets_recv. */
static ssize_t drain_to_end(struct cf *cf)
{
	uint8_t b[512];

	cf->must_end = true;
	while (!cf_tcp_ended(cf))
		(void)cf_octets_recv(cf, b, sizeof b);
	cf->ended = true;
	return cf_octets_recv(cf, NULL, 1);
}

/* Somebody was turned away: the next one is not. */
static void serves_next(struct cf *cf)
{
	cf_open(cf);
	cf_session(cf, NULL);
	cf_ping(cf);
}

/* ---- ends ---- */

static void fin_bare(struct cf *cf)
{
	begin_secured(cf);
	shutdown(cf->conn->fd, SHUT_WR);
	CF_CHECK(cf, drain_to_end(cf),
		 "a FIN without close_notify is answered by close_notify, as an end in order");
}

static void close_inside(struct cf *cf)
{
	uint8_t b[CF_MAX];

	begin_secured(cf);
	cf_question(cf);
	cf_tcp_write(cf, b, cf_fpdu_build(cf, NULL, b) - 1);
	cf_tcp_fin(cf);
	cf_expect_dead(cf);
}

static void behind_close(struct cf *cf)
{
	static const uint8_t junk[100] = { 23, 3, 3, 0, 95 };

	begin_secured(cf);
	(void)tls_lib(cf)->bye(cf->conn->tls);
	(void)send(cf->conn->fd, junk, sizeof junk, MSG_NOSIGNAL);
	shutdown(cf->conn->fd, SHUT_WR);
	CF_CHECK(cf, drain_to_end(cf) != -ECONNABORTED,
		 "what follows close_notify is looked at: the target sends the alert '%s'",
		 tls_lib(cf)->alert(cf->conn->tls));
}

/* In set-up an error has no other sign. */
static void refused_in_order(struct cf *cf)
{
	struct cf_mpa f = { .flags = CF_MPA_C, .rev = 1 };
	uint8_t b[CF_MPA_MAX];
	size_t n = cf_mpa_octets(&f, b);

	b[0] ^= 0x20;
	cf_open(cf);
	cf_tcp_write(cf, b, n);
	CF_CHECK(cf, !drain_to_end(cf),
		 "a Request that is none is answered by an end without close_notify");
}

static void closed_in_order(struct cf *cf)
{
	cf_open(cf);
	cf_tcp_fin(cf);
	CF_CHECK(cf, !drain_to_end(cf),
		 "close_notify before the Request is answered by an end without one");
}

/* ---- keys ---- */

static void send_key_update(struct cf *cf, bool ask)
{
	int err = tls_lib(cf)->update(cf->conn->tls, ask);

	CF_CHECK(cf, !err, "case: a KeyUpdate could not be sent");
}

static void key_update(struct cf *cf)
{
	begin_secured(cf);
	for (unsigned i = 0; i < PINGS; i++) {
		send_key_update(cf, false);
		cf_ping(cf);
	}
}

static void key_update_asked(struct cf *cf)
{
	size_t before;

	begin_secured(cf);
	for (unsigned i = 0; i < PINGS; i++)
		cf_ping(cf);
	before = tls_lib(cf)->records_read(cf->conn->tls);
	send_key_update(cf, true);
	cf_ping(cf);
	CF_CHECK(cf, tls_lib(cf)->records_read(cf->conn->tls) < before,
		 "a KeyUpdate that asks for one is not answered before the next data");
	cf_ping(cf);
}

static void key_updates_many(struct cf *cf)
{
	begin_secured(cf);
	for (unsigned i = 1; i <= UPDATES; i++) {
		send_key_update(cf, false);
		if (i % IN_A_ROW == 0)
			cf_ping(cf);
	}
}

/* ---- records ---- */

static void records_of_one(struct cf *cf)
{
	uint8_t b[CF_MAX];
	size_t n;

	begin_secured(cf);
	cf_question(cf);
	n = cf_fpdu_build(cf, NULL, b);
	for (size_t i = 0; i < n; i++)
		cf_tcp_write(cf, b + i, 1);
	cf_answer(cf);
}

static void records_empty(struct cf *cf)
{
	begin_secured(cf);
	for (unsigned i = 0; i < EMPTIES; i++)
		CF_CHECK(cf, !cf_octets_send(cf, "", 0), "case: an empty record could not be sent");
	cf_ping(cf);
}

/* ---- who may come in ---- */

static void version_12(struct cf *cf)
{
	cf_tcp_open_plain(cf);
	CF_CHECK(cf, !cf_secured_try(cf, CF_TLS_OLD), "TLS 1.2 is taken");
	if (cf->c->target == CF_RESPONDER)
		serves_next(cf);
}

static void no_certificate(struct cf *cf)
{
	struct cf_mpa f = { .flags = CF_MPA_C, .rev = 1 };

	if (!cf->run->secured->x509)
		cf_skip(cf, "certificates play no part: it is a pre-shared key");
	cf_tcp_open_plain(cf);
	if (cf_secured_try(cf, CF_TLS_NO_CERT)) { /* the client is done before it is judged */
		cf_mpa_write(cf, &f);
		CF_CHECK(cf, cf_tcp_ended(cf), "a client without a certificate is answered");
		(void)drain_to_end(cf);
	}
	CF_CHECK(cf, tls_lib(cf)->alert(cf->conn->tls), "it is turned away without an alert");
	serves_next(cf);
}

static void plain_request(struct cf *cf)
{
	struct cf_mpa f = { .flags = CF_MPA_C, .rev = 1 };
	uint8_t b[4] = { 0 };

	cf_tcp_open_plain(cf);
	cf_mpa_write(cf, &f);
	if (!cf_tcp_ended(cf))
		(void)cf_octets_recv(cf, b, sizeof b);
	CF_CHECK(cf, memcmp(b, "MPA ", 4) != 0, "a plain MPA Request is answered");
	(void)drain_to_end(cf);
	serves_next(cf);
}

static void ticket(struct cf *cf)
{
	cf_tcp_open_plain(cf);
	if (!cf_secured_try(cf, CF_TLS_TICKET))
		longjmp(cf->left.to, 1);
	cf_session(cf, NULL);
	cf_ping(cf);
	CF_CHECK(cf, tls_lib(cf)->ticket(cf->conn->tls) >= 0, "case: no ticket could be sent");
	cf_ping(cf);
}

#define BOTH_ROLES(point, run, ids, rule)                                                          \
	{ "tls-" point, ids, rule, CF_TLS, CF_RESPONDER, false, run },                             \
	{                                                                                          \
		"tls-initiator-" point, ids, rule, CF_TLS, CF_INITIATOR, false, run                \
	}

const struct cf_case cf_cases_tls[] = {
	BOTH_ROLES("fin-bare", fin_bare, "8446-6.1-4",
		   "a FIN without close_notify is a lost connection, no end in order"),
	BOTH_ROLES("close-inside", close_inside, "8446-6.1-1 5044-8-1",
		   "close_notify inside an FPDU ends the session"),
	BOTH_ROLES("behind-close", behind_close, "8446-6.1-1",
		   "what follows close_notify is ignored"),
	{ "tls-refused-in-order", "8446-6.1-2",
	  "what is no MPA Request is answered by close_notify before the FIN", CF_TLS, CF_RESPONDER,
	  false, refused_in_order },
	{ "tls-closed-in-order", "8446-6.1-2",
	  "close_notify before the Request is answered by close_notify", CF_TLS, CF_RESPONDER,
	  false, closed_in_order },
	BOTH_ROLES("key-update", key_update, "8446-4.6.3-5 8446-4.6.3-6",
		   "the peer's new keys are taken, each after its KeyUpdate"),
	BOTH_ROLES("key-update-asked", key_update_asked, "8446-4.6.3-3",
		   "a KeyUpdate that asks is answered by one, before the next data"),
	BOTH_ROLES("key-updates-many", key_updates_many, "8446-4.6.3-6",
		   "100 KeyUpdates are taken, ten of them in a row"),
	BOTH_ROLES("records-of-one", records_of_one, "8446-5.1-5",
		   "an FPDU may come in records of one octet"),
	BOTH_ROLES("records-empty", records_empty, "8446-5.1-5",
		   "16 empty records in a row are taken"),
	{ "tls-version-12", "8446-6-1",
	  "a client that has TLS 1.2 only is turned away, the next one is not", CF_TLS,
	  CF_RESPONDER, false, version_12 },
	{ "tls-initiator-version-12", "8446-6-1", "a listener that has TLS 1.2 only is not taken",
	  CF_TLS, CF_INITIATOR, false, version_12 },
	{ "tls-no-certificate", "8446-6-1",
	  "a client without a certificate gets an alert and no MPA Reply, the next one is served",
	  CF_TLS, CF_RESPONDER, false, no_certificate },
	{ "tls-plain-request", "8446-6-1",
	  "an MPA Request without TLS gets no MPA Reply, the next client is served", CF_TLS,
	  CF_RESPONDER, false, plain_request },
	{ "tls-initiator-ticket", "8446-4.6.1-1", "a session ticket is skipped", CF_TLS,
	  CF_INITIATOR, false, ticket },
	{ 0 }
};
