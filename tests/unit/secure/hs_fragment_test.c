/* SPDX-License-Identifier: BSD-2-Clause */
/* A dialler of OpenSSL's that takes short records only, as RFC 6066 4 lets it say. */
#include "creds_fixture.h"
#include "secure/aead/aead_lib.h"
#include "secure/hs/hs.h"
#include <criterion/criterion.h>
#include <openssl/ssl.h>
#include <stdlib.h>
#include <string.h>

TestSuite(hs_fragment, .init = creds_setup, .fini = creds_teardown);

static SSL_CTX *open_dialler(const struct site *s)
{
	static const unsigned char alpn[] = "\13" DDPS_HS_ALPN;
	SSL_CTX *ctx = SSL_CTX_new(TLS_client_method());

	cr_assert(ctx);
	cr_assert_eq(SSL_CTX_use_certificate_file(ctx, s->attr.cert, SSL_FILETYPE_PEM), 1);
	cr_assert_eq(SSL_CTX_use_PrivateKey_file(ctx, s->attr.key, SSL_FILETYPE_PEM), 1);
	cr_assert_eq(SSL_CTX_set_alpn_protos(ctx, alpn, sizeof alpn - 1), 0);
	return ctx;
}

/* Until both have nothing more to say. */
static enum ddps_hs_state shake_with_dialler(struct ddps_hs *hs, SSL *ssl)
{
	enum ddps_hs_state state = DDPS_HS_MORE;
	uint8_t some[70000];
	size_t n;

	for (int i = 0; i < 10 && state == DDPS_HS_MORE; i++) {
		const uint8_t *p;
		int got;

		SSL_do_handshake(ssl);
		got = BIO_read(SSL_get_wbio(ssl), some, sizeof some);
		state = ddps_hs_step(hs, some, got > 0 ? (size_t)got : 0, NOW);
		p = ddps_hs_output(hs, &n);
		if (n)
			cr_assert_eq(BIO_write(SSL_get_rbio(ssl), p, (int)n), (int)n);
		ddps_hs_sent(hs, n);
	}
	return state;
}

/* Our records in a connection whose dialler asked for @mode; the longest content of one. */
static size_t seal_for_dialler(const struct site *s, uint8_t mode)
{
	struct ddps_creds *c = open_creds(&s->attr);
	struct ddps_hs_conf conf = { .want = { .server = true }, .set = use_creds(c, 0) };
	SSL_CTX *ctx = open_dialler(s);
	SSL *ssl = SSL_new(ctx);
	struct ddps_rec_config keys;
	struct ddps_peer_id id;
	struct ddps_verdict why;
	struct ddps_hs *hs;
	struct ddps_rec *rec;
	static uint8_t text[20000], out[70000], back[20000];
	struct iovec iov = { text, sizeof text };
	const uint8_t *rest;
	size_t n, room;
	ssize_t len;
	void *mem;

	cr_assert_eq(SSL_set_tlsext_max_fragment_length(ssl, mode), 1);
	SSL_set_bio(ssl, BIO_new(BIO_s_mem()), BIO_new(BIO_s_mem()));
	SSL_set_connect_state(ssl);
	cr_assert_eq(ddps_hs_new(&hs, &conf, &why), 0, "%s", why.text);
	cr_assert_eq(shake_with_dialler(hs, ssl), DDPS_HS_DONE, "%s", ddps_hs_why(hs)->text);
	ddps_hs_take(hs, &keys, &id, &rest, &n);
	keys.aead = ddps_aead_best();
	mem = aligned_alloc(DDPS_AEAD_ALIGN, ddps_rec_size(&keys));
	cr_assert_eq(ddps_rec_init(mem, &keys, &rec), 0);
	room = ddps_rec_room(rec);
	iov.iov_len = room;
	len = ddps_rec_seal(rec, &iov, 1, out, sizeof out);
	cr_assert_gt(len, 0);
	cr_assert_eq(BIO_write(SSL_get_rbio(ssl), out, (int)len), (int)len);
	cr_expect_eq(SSL_read(ssl, back, sizeof back), (int)room, "mode %u, room %zu", mode, room);
	ddps_rec_wipe(rec);
	free(mem);
	ddps_hs_free(hs);
	SSL_free(ssl);
	SSL_CTX_free(ctx);
	ddps_creds_close(c);
	return room;
}

Test(hs_fragment, openssl_has_a_max_fragment_length)
{
	struct site s;

	make_site(&s);
	cr_expect_eq(seal_for_dialler(&s, TLSEXT_max_fragment_length_512), 512);
	cr_expect_eq(seal_for_dialler(&s, TLSEXT_max_fragment_length_1024), 1024);
	cr_expect_eq(seal_for_dialler(&s, TLSEXT_max_fragment_length_2048), 2048);
	cr_expect_eq(seal_for_dialler(&s, TLSEXT_max_fragment_length_4096), 4096);
	cr_expect_eq(seal_for_dialler(&s, TLSEXT_max_fragment_length_DISABLED), 16384);
}
