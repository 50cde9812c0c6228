/* SPDX-License-Identifier: BSD-2-Clause */
/* See peer_tls.h: by the calls of OpenSSL. */
#include "peer_openssl.h"
#include <openssl/evp.h>
#include <openssl/x509v3.h>

static SSL_CTX *context[2][2]; /* client or server, PSK or X.509 */

static void add_extension(X509 *crt, int nid, const char *value)
{
	X509_EXTENSION *e = X509V3_EXT_conf_nid(NULL, NULL, nid, value);

	peer_want_ssl(e && X509_add_ext(crt, e, -1) == 1, "extension");
	X509_EXTENSION_free(e);
}

/* One certificate, which both sides have and trust. */
static X509 *make_certificate(EVP_PKEY *key)
{
	X509 *crt = X509_new();

	peer_want_ssl(crt && X509_set_version(crt, 2) == 1, "certificate");
	ASN1_INTEGER_set(X509_get_serialNumber(crt), 1);
	X509_gmtime_adj(X509_getm_notBefore(crt), -60);
	X509_gmtime_adj(X509_getm_notAfter(crt), 86400);
	X509_set_pubkey(crt, key);
	X509_NAME_add_entry_by_txt(X509_get_subject_name(crt), "CN", MBSTRING_ASC,
				   (const unsigned char *)"bench", -1, -1, 0);
	X509_set_issuer_name(crt, X509_get_subject_name(crt));
	add_extension(crt, NID_basic_constraints, "critical,CA:TRUE");
	peer_want_ssl(X509_sign(crt, key, EVP_sha256()) > 0, "sign");
	return crt;
}

static void prepare_openssl(void)
{
	EVP_PKEY *key = EVP_EC_gen("P-256");
	X509 *crt;

	peer_want_ssl(key != NULL, "key");
	crt = make_certificate(key);
	for (int server = 0; server < 2; server++)
		for (int x509 = 0; x509 < 2; x509++) {
			SSL_CTX *c =
				SSL_CTX_new(server ? TLS_server_method() : TLS_client_method());

			peer_want_ssl(c != NULL, "context");
			context[server][x509] = c;
			SSL_CTX_set_min_proto_version(c, TLS1_3_VERSION);
			peer_want_ssl(SSL_CTX_set_ciphersuites(c, "TLS_AES_128_GCM_SHA256"),
				      "suite");
			SSL_CTX_set_num_tickets(c, 0);
			SSL_CTX_set_mode(c, SSL_MODE_ENABLE_PARTIAL_WRITE |
						    SSL_MODE_ACCEPT_MOVING_WRITE_BUFFER);
			if (!x509) {
				SSL_CTX_set_psk_client_callback(c, server ? NULL : peer_offer_psk);
				SSL_CTX_set_psk_server_callback(c, server ? peer_find_psk : NULL);
				continue;
			}
			peer_want_ssl(SSL_CTX_use_certificate(c, crt) == 1 &&
					      SSL_CTX_use_PrivateKey(c, key) == 1,
				      "use");
			peer_want_ssl(X509_STORE_add_cert(SSL_CTX_get_cert_store(c), crt), "trust");
			SSL_CTX_set_verify(c, SSL_VERIFY_PEER | SSL_VERIFY_FAIL_IF_NO_PEER_CERT,
					   NULL);
		}
}

/* Whether a call that failed is to be made again. */
static int again(SSL *s, int rc)
{
	int why = SSL_get_error(s, rc);

	return why == SSL_ERROR_WANT_READ || why == SSL_ERROR_WANT_WRITE;
}

static void *begin_openssl(int fd, int server, int x509)
{
	SSL *s = SSL_new(context[server][x509]);
	int rc;

	peer_want_ssl(s && SSL_set_fd(s, fd), "SSL");
	if (server)
		SSL_set_accept_state(s);
	else
		SSL_set_connect_state(s);
	do
		rc = SSL_do_handshake(s);
	while (rc <= 0 && again(s, rc));
	peer_want_ssl(rc == 1, "handshake");
	return s;
}

static void write_openssl(void *end, const uint8_t *p, size_t n)
{
	while (n) {
		int part = n < 16384 ? (int)n : 16384, k = SSL_write(end, p, part);

		if (k <= 0 && again(end, k))
			continue;
		peer_want_ssl(k > 0, "write");
		p += k;
		n -= (size_t)k;
	}
}

static size_t read_openssl(void *end, uint8_t *p, size_t n)
{
	int k;

	do
		k = SSL_read(end, p, n < 1 << 30 ? (int)n : 1 << 30);
	while (k <= 0 && again(end, k));
	if (k <= 0)
		peer_want_ssl(SSL_get_error(end, k) == SSL_ERROR_ZERO_RETURN, "read");
	return k > 0 ? (size_t)k : 0;
}

static void close_openssl(void *end)
{
	int rc;

	do
		rc = SSL_shutdown(end);
	while (rc < 0 && again(end, rc));
	SSL_free(end);
}

const struct peer_tls peer_openssl = {
	.name = "openssl",
	.prepare = prepare_openssl,
	.begin = begin_openssl,
	.write = write_openssl,
	.read = read_openssl,
	.close = close_openssl,
};
