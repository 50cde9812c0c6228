/* SPDX-License-Identifier: BSD-2-Clause */
/* See tls_judge.h: OpenSSL at both ends, whose secrets come by its key log. */
#include "record_fixture.h"
#include "tls_judge.h"
#include <openssl/err.h>
#include <openssl/evp.h>
#include <openssl/ssl.h>
#include <openssl/x509.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct openssl_judge {
	SSL_CTX *ctx[2];
	SSL *ssl[2]; /* client, server */
	uint8_t secret[2][48];
	unsigned seen;
};

static void sure(bool ok, const char *what)
{
	cr_assert(ok, "%s: %s", what, ERR_error_string(ERR_peek_last_error(), NULL));
}

/* LABEL RANDOM SECRET; exactly the two labels, each once. */
static void keep_judge_secret(const SSL *ssl, const char *line)
{
	struct openssl_judge *o = SSL_CTX_get_app_data(SSL_get_SSL_CTX(ssl));
	const char *at = strrchr(line, ' ') + 1;
	int side = !strncmp(line, "CLIENT_TRAFFIC_SECRET_0 ", 24)   ? 0
		   : !strncmp(line, "SERVER_TRAFFIC_SECRET_0 ", 24) ? 1
								    : -1;

	if (side < 0)
		return;
	for (size_t i = 0; i < strlen(at) / 2; i++)
		cr_assert_eq(sscanf(at + 2 * i, "%2hhx", &o->secret[side][i]), 1);
	o->seen |= 1u << side;
}

static void use_certificate(SSL_CTX *ctx)
{
	EVP_PKEY *key = EVP_EC_gen("P-256");
	X509 *crt = X509_new();

	sure(key && crt, "certificate");
	ASN1_INTEGER_set(X509_get_serialNumber(crt), 1);
	X509_gmtime_adj(X509_getm_notBefore(crt), -60);
	X509_gmtime_adj(X509_getm_notAfter(crt), 3600);
	X509_set_pubkey(crt, key);
	sure(X509_sign(crt, key, EVP_sha256()) > 0, "sign");
	sure(SSL_CTX_use_certificate(ctx, crt) == 1 && SSL_CTX_use_PrivateKey(ctx, key) == 1,
	     "use");
	X509_free(crt);
	EVP_PKEY_free(key);
}

static const char *suite_name(enum ddps_suite suite)
{
	return suite == DDPS_SUITE_AES_128_GCM	 ? "TLS_AES_128_GCM_SHA256"
	       : suite == DDPS_SUITE_AES_256_GCM ? "TLS_AES_256_GCM_SHA384"
						 : "TLS_CHACHA20_POLY1305_SHA256";
}

/* What the library has written goes on its way. */
static void carry(struct tls_judge *j, SSL *from, struct octets *to)
{
	uint8_t some[4096];
	int n;

	(void)j;
	while ((n = BIO_read(SSL_get_wbio(from), some, sizeof some)) > 0)
		octets_put(to, some, (size_t)n);
}

/* One octet at a time, so that nothing is taken that belongs to the next record. */
static void supply(SSL *to, struct octets *from)
{
	uint8_t some[4096];
	size_t n;

	while ((n = octets_take(from, some, sizeof some)))
		sure(BIO_write(SSL_get_rbio(to), some, (int)n) == (int)n, "BIO");
}

static void openssl_begin(struct tls_judge *j)
{
	struct openssl_judge *o = calloc(1, sizeof *o);
	int ours = j->we_are_client ? 0 : 1;
	uint8_t rest[4096];
	int n;

	cr_assert(o);
	j->lib = o;
	for (int i = 0; i < 2; i++) {
		o->ctx[i] = SSL_CTX_new(i ? TLS_server_method() : TLS_client_method());
		sure(o->ctx[i], "context");
		SSL_CTX_set_app_data(o->ctx[i], o);
		SSL_CTX_set_min_proto_version(o->ctx[i], TLS1_3_VERSION);
		sure(SSL_CTX_set_ciphersuites(o->ctx[i], suite_name(j->suite)) == 1, "suite");
		SSL_CTX_set_num_tickets(o->ctx[i], j->tickets);
		if (j->pad && i != ours)
			sure(SSL_CTX_set_block_padding(o->ctx[i], j->pad) == 1, "padding");
		if (i)
			use_certificate(o->ctx[i]);
		o->ssl[i] = SSL_new(o->ctx[i]);
		sure(o->ssl[i], "SSL");
		SSL_set_bio(o->ssl[i], BIO_new(BIO_s_mem()), BIO_new(BIO_s_mem()));
	}
	SSL_CTX_set_keylog_callback(o->ctx[ours], keep_judge_secret);
	SSL_set_connect_state(o->ssl[0]);
	SSL_set_accept_state(o->ssl[1]);
	for (int i = 0; !SSL_is_init_finished(o->ssl[0]) || !SSL_is_init_finished(o->ssl[1]); i++) {
		int side = i % 2;

		cr_assert(i < 100);
		SSL_do_handshake(o->ssl[side]);
		carry(j, o->ssl[side], side == ours ? &j->to_lib : &j->to_us);
		supply(o->ssl[!side], side == ours ? &j->to_lib : &j->to_us);
	}
	cr_assert_eq(o->seen, 3);
	/* tickets are the server's first records; a client has not read them yet */
	while ((n = BIO_read(SSL_get_rbio(o->ssl[ours]), rest, sizeof rest)) > 0)
		octets_put(&j->to_us, rest, (size_t)n);
	j->conf = (struct ddps_rec_config){ .suite = j->suite, .client = j->we_are_client };
	memcpy(j->conf.tx.secret, o->secret[ours], 48);
	memcpy(j->conf.rx.secret, o->secret[!ours], 48);
	rec_keys_of(j->suite, &j->conf.tx);
	rec_keys_of(j->suite, &j->conf.rx);
	if (!j->we_are_client)
		j->conf.tx.seq = j->tickets;
	SSL_free(o->ssl[ours]);
	o->ssl[ours] = NULL;
}

static SSL *library_ssl(struct tls_judge *j)
{
	struct openssl_judge *o = j->lib;

	return o->ssl[j->we_are_client ? 1 : 0];
}

static void openssl_send(struct tls_judge *j, const void *p, size_t n)
{
	sure(SSL_write(library_ssl(j), p, (int)n) == (int)n, "write");
	carry(j, library_ssl(j), &j->to_us);
}

static int openssl_recv(struct tls_judge *j, void *p, size_t n)
{
	SSL *s = library_ssl(j);
	int rc, why;

	supply(s, &j->to_lib);
	ERR_clear_error();
	rc = SSL_read(s, p, (int)n);
	why = SSL_get_error(s, rc);
	carry(j, s, &j->to_us);
	if (rc > 0)
		return rc;
	return why == SSL_ERROR_ZERO_RETURN ? 0
	       : why == SSL_ERROR_WANT_READ ? JUDGE_AGAIN
					    : JUDGE_ERROR;
}

/* It is sent before the next data. */
static void openssl_update(struct tls_judge *j, bool ask)
{
	sure(SSL_key_update(library_ssl(j),
			    ask ? SSL_KEY_UPDATE_REQUESTED : SSL_KEY_UPDATE_NOT_REQUESTED) == 1,
	     "update");
}

static void openssl_close(struct tls_judge *j)
{
	sure(SSL_shutdown(library_ssl(j)) >= 0, "shutdown");
	carry(j, library_ssl(j), &j->to_us);
}

static void openssl_free(struct tls_judge *j)
{
	struct openssl_judge *o = j->lib;

	SSL_free(library_ssl(j));
	SSL_CTX_free(o->ctx[0]);
	SSL_CTX_free(o->ctx[1]);
	free(o);
}

const struct tls_judge_ops tls_judge_openssl = {
	.name = "OpenSSL",
	.pads = true,
	.begin = openssl_begin,
	.send = openssl_send,
	.recv = openssl_recv,
	.update = openssl_update,
	.close = openssl_close,
	.free = openssl_free,
};
