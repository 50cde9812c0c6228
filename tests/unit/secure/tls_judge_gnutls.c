/* SPDX-License-Identifier: BSD-2-Clause */
/* See tls_judge.h: GnuTLS at both ends. */
#include "tls_judge.h"
#include <criterion/criterion.h>
#include <endian.h>
#include <errno.h>
#include <gnutls/crypto.h>
#include <gnutls/gnutls.h>
#include <gnutls/x509.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

struct gnutls_end {
	gnutls_session_t session;
	struct octets *in, *out;
	uint8_t secret[2][48]; /* to write with, to read with */
	uint16_t limit;	       /* record_size_limit of the other end, which GnuTLS shows nowhere */
};

struct gnutls_judge {
	struct gnutls_end end[2]; /* client, server */
	gnutls_certificate_credentials_t cred;
	gnutls_datum_t ticket_key;
};

static void gnutls_must(int rc, const char *what)
{
	cr_assert(rc >= 0, "%s: %s", what, gnutls_strerror(rc));
}

static ssize_t push_octets(gnutls_transport_ptr_t user, const void *p, size_t n)
{
	struct gnutls_end *e = user;

	octets_put(e->out, p, n);
	return (ssize_t)n;
}

static ssize_t pull_octets(gnutls_transport_ptr_t user, void *p, size_t n)
{
	struct gnutls_end *e = user;

	n = octets_take(e->in, p, n);
	if (n)
		return (ssize_t)n;
	gnutls_transport_set_errno(e->session, EAGAIN);
	return -1;
}

static int take_secret(gnutls_session_t s, gnutls_record_encryption_level_t level, const void *rd,
		       const void *wr, size_t n)
{
	struct gnutls_end *e = gnutls_session_get_ptr(s);

	if (level != GNUTLS_ENCRYPTION_LEVEL_APPLICATION)
		return 0;
	cr_assert(n <= sizeof e->secret[0]);
	if (wr)
		memcpy(e->secret[0], wr, n);
	if (rd)
		memcpy(e->secret[1], rd, n);
	return 0;
}

static int see_extension(void *user, unsigned type, const unsigned char *p, unsigned n)
{
	struct gnutls_end *e = user;

	if (type == 28 && n == 2)
		e->limit = (uint16_t)(p[0] << 8 | p[1]);
	return 0;
}

static int see_extensions(gnutls_session_t s, unsigned type, unsigned when, unsigned incoming,
			  const gnutls_datum_t *msg)
{
	(void)when;
	if (!incoming)
		return 0;
	return gnutls_ext_raw_parse(
		gnutls_session_get_ptr(s), see_extension, msg,
		type == GNUTLS_HANDSHAKE_CLIENT_HELLO ? GNUTLS_EXT_RAW_FLAG_TLS_CLIENT_HELLO : 0);
}

/* A certificate of its own for an hour. */
static gnutls_certificate_credentials_t make_credentials(void)
{
	gnutls_certificate_credentials_t cred;
	gnutls_x509_privkey_t key;
	gnutls_x509_crt_t crt;

	gnutls_must(gnutls_x509_privkey_init(&key), "key");
	gnutls_must(gnutls_x509_privkey_generate(key, GNUTLS_PK_ECDSA,
						 GNUTLS_CURVE_TO_BITS(GNUTLS_ECC_CURVE_SECP256R1),
						 0),
		    "generate");
	gnutls_must(gnutls_x509_crt_init(&crt), "crt");
	gnutls_must(gnutls_x509_crt_set_version(crt, 3), "version");
	gnutls_must(gnutls_x509_crt_set_serial(crt, "\1", 1), "serial");
	gnutls_must(gnutls_x509_crt_set_dn(crt, "CN=judge", NULL), "name");
	gnutls_must(gnutls_x509_crt_set_activation_time(crt, time(NULL) - 60), "from");
	gnutls_must(gnutls_x509_crt_set_expiration_time(crt, time(NULL) + 3600), "to");
	gnutls_must(gnutls_x509_crt_set_key(crt, key), "its key");
	gnutls_must(gnutls_x509_crt_sign2(crt, crt, key, GNUTLS_DIG_SHA256, 0), "sign");
	gnutls_must(gnutls_certificate_allocate_credentials(&cred), "credentials");
	gnutls_must(gnutls_certificate_set_x509_key(cred, &crt, 1, key), "use");
	gnutls_x509_crt_deinit(crt);
	gnutls_x509_privkey_deinit(key);
	return cred;
}

static void begin_gnutls_end(struct tls_judge *j, struct gnutls_judge *g, int i,
			     const char *priority)
{
	struct gnutls_end *e = &g->end[i];
	bool ours = j->we_are_client == !i;

	e->in = ours ? &j->to_us : &j->to_lib;
	e->out = ours ? &j->to_lib : &j->to_us;
	gnutls_must(gnutls_init(&e->session, (i ? GNUTLS_SERVER : GNUTLS_CLIENT) | GNUTLS_NONBLOCK),
		    "init");
	gnutls_must(gnutls_priority_set_direct(e->session, priority, NULL), priority);
	gnutls_must(gnutls_credentials_set(e->session, GNUTLS_CRD_CERTIFICATE, g->cred), "cred");
	gnutls_session_set_ptr(e->session, e);
	gnutls_transport_set_ptr(e->session, e);
	gnutls_transport_set_push_function(e->session, push_octets);
	gnutls_transport_set_pull_function(e->session, pull_octets);
	gnutls_handshake_set_secret_function(e->session, take_secret);
	gnutls_handshake_set_hook_function(e->session,
					   i ? GNUTLS_HANDSHAKE_CLIENT_HELLO
					     : GNUTLS_HANDSHAKE_ENCRYPTED_EXTENSIONS,
					   GNUTLS_HOOK_POST, see_extensions);
	if (j->limit && !ours)
		gnutls_must((int)gnutls_record_set_max_recv_size(e->session, j->limit), "limit");
	if (i && j->tickets)
		gnutls_must(gnutls_session_ticket_enable_server(e->session, &g->ticket_key),
			    "tickets");
}

static void take_over(struct ddps_rec_keys *k, struct gnutls_end *e, bool reading)
{
	gnutls_datum_t iv, key;
	uint64_t seq;

	gnutls_must(gnutls_record_get_state(e->session, reading, NULL, &iv, &key, (uint8_t *)&seq),
		    "state");
	cr_assert(iv.size == sizeof k->iv && key.size <= sizeof k->key);
	*k = (struct ddps_rec_keys){ .seq = be64toh(seq) };
	memcpy(k->iv, iv.data, iv.size);
	memcpy(k->key, key.data, key.size);
	memcpy(k->secret, e->secret[reading], sizeof k->secret);
}

static const char *priority_of(enum ddps_suite suite)
{
	switch (suite) {
	case DDPS_SUITE_AES_128_GCM:
		return "NORMAL:-VERS-ALL:+VERS-TLS1.3:-CIPHER-ALL:+AES-128-GCM";
	case DDPS_SUITE_AES_256_GCM:
		return "NORMAL:-VERS-ALL:+VERS-TLS1.3:-CIPHER-ALL:+AES-256-GCM";
	default:
		return "NORMAL:-VERS-ALL:+VERS-TLS1.3:-CIPHER-ALL:+CHACHA20-POLY1305";
	}
}

static void gnutls_begin(struct tls_judge *j)
{
	struct gnutls_judge *g = calloc(1, sizeof *g);
	struct gnutls_end *ours;
	bool done[2] = { false, false };
	int ours_is = j->we_are_client ? 0 : 1;

	cr_assert(g);
	j->lib = g;
	g->cred = make_credentials();
	gnutls_must(gnutls_session_ticket_key_generate(&g->ticket_key), "ticket key");
	ours = &g->end[ours_is];
	for (int i = 0; i < 2; i++) {
		char priority[128];

		snprintf(priority, sizeof priority, "%s%s", priority_of(j->suite),
			 j->tickets ? "" : ":%NO_TICKETS");
		begin_gnutls_end(j, g, i, priority);
	}
	for (int i = 0; !done[0] || !done[1]; i++) {
		int rc = 0;

		cr_assert(i < 100);
		if (!done[i % 2])
			rc = gnutls_handshake(g->end[i % 2].session);
		done[i % 2] |= rc >= 0;
		cr_assert(rc >= 0 || !gnutls_error_is_fatal(rc), "%s", gnutls_strerror(rc));
	}
	j->conf = (struct ddps_rec_config){ .suite = j->suite, .client = j->we_are_client };
	take_over(&j->conf.tx, ours, false);
	take_over(&j->conf.rx, ours, true);
	j->conf.peer_limit = ours->limit;
	gnutls_deinit(ours->session);
	ours->session = NULL;
}

static struct gnutls_end *library_end(struct tls_judge *j)
{
	struct gnutls_judge *g = j->lib;

	return &g->end[j->we_are_client ? 1 : 0];
}

static void gnutls_send(struct tls_judge *j, const void *p, size_t n)
{
	const uint8_t *at = p;

	while (n) {
		ssize_t some = gnutls_record_send(library_end(j)->session, at, n);

		gnutls_must((int)some, "send");
		at += some;
		n -= (size_t)some;
	}
}

static int gnutls_recv(struct tls_judge *j, void *p, size_t n)
{
	gnutls_session_t s = library_end(j)->session;
	ssize_t rc;

	do
		rc = gnutls_record_recv(s, p, n);
	while (rc == GNUTLS_E_INTERRUPTED ||
	       (rc == GNUTLS_E_AGAIN && j->to_lib.at < j->to_lib.len));
	if (rc >= 0)
		return (int)rc;
	if (!gnutls_error_is_fatal((int)rc))
		return JUDGE_AGAIN;
	gnutls_alert_send_appropriate(s, (int)rc);
	return JUDGE_ERROR;
}

static void gnutls_update(struct tls_judge *j, bool ask)
{
	gnutls_must(gnutls_session_key_update(library_end(j)->session, ask ? GNUTLS_KU_PEER : 0),
		    "update");
}

static void gnutls_close(struct tls_judge *j)
{
	gnutls_must(gnutls_bye(library_end(j)->session, GNUTLS_SHUT_WR), "bye");
}

static void gnutls_free_judge(struct tls_judge *j)
{
	struct gnutls_judge *g = j->lib;

	gnutls_deinit(library_end(j)->session);
	gnutls_certificate_free_credentials(g->cred);
	gnutls_free(g->ticket_key.data);
	free(g);
}

const struct tls_judge_ops tls_judge_gnutls = {
	.name = "GnuTLS",
	.begin = gnutls_begin,
	.send = gnutls_send,
	.recv = gnutls_recv,
	.update = gnutls_update,
	.close = gnutls_close,
	.free = gnutls_free_judge,
};
