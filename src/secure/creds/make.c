/* SPDX-License-Identifier: BSD-2-Clause */
/* Makes a CA, or a certificate for a host: ECDSA with P-256 and SHA-256. */
#include "secure/creds/set.h"
#include <ddpsess/err_codes.h>
#include <gnutls/crypto.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#define SERIAL_LEN 16
#define KEY_ID_LEN 20
#define CN_MAX	   64 /* X.520 */

/* What is being made, and by whom. */
struct making {
	const struct ddps_secure_make *m;
	gnutls_x509_crt_t crt, ca;
	gnutls_x509_privkey_t key, ca_key;
	int64_t not_after;
	struct ddps_verdict *why;
};

static int make_failed(struct making *k, int err, const char *what)
{
	if (err >= 0)
		return 0;
	return ddps_verdict_set(k->why, err == GNUTLS_E_MEMORY_ERROR ? DDPS_E_NOMEM : DDPS_E_CONFIG,
				0, "%s: %s", what, gnutls_strerror(err));
}

/* ---- names ---- */

/* Where one dials is not who one is. */
static bool is_place(const char *uri)
{
	static const char *const schemes[] = { "tls:", "sctps:", "tcp:", "sctp:", "shm:" };

	for (size_t i = 0; i < sizeof schemes / sizeof *schemes; i++)
		if (!strncasecmp(uri, schemes[i], strlen(schemes[i])))
			return true;
	return false;
}

static int add_name(struct making *k, const char *text)
{
	struct ddps_pattern pat;
	const bool uri = strstr(text, "://");
	char why[240];
	int err;

	if (uri && is_place(text))
		return ddps_verdict_set(k->why, DDPS_E_INVAL, 0,
					"'%.80s' is where one dials: a name is the host's alone, "
					"without scheme and port",
					text);
	err = ddps_pattern_parse(&pat, uri ? "uri" : NULL, text, why, sizeof why);
	if (err)
		return ddps_verdict_set(k->why, DDPS_E_INVAL, 0, "%s", why);
	err = gnutls_x509_crt_set_subject_alt_name(k->crt,
						   pat.kind == DDPS_NAME_IP ? GNUTLS_SAN_IPADDRESS
						   : pat.kind == DDPS_NAME_URI ? GNUTLS_SAN_URI
									       : GNUTLS_SAN_DNSNAME,
						   pat.p, (unsigned)pat.len, GNUTLS_FSAN_APPEND);
	ddps_pattern_free(&pat);
	return make_failed(k, err, text);
}

/* For people: what decides is in the alternative names. */
static int set_subject(struct making *k, const char *name)
{
	const size_t len = strlen(name);
	const unsigned n = (unsigned)(len < CN_MAX ? len : CN_MAX);

	if (!len || strpbrk(name, "\n\r"))
		return ddps_verdict_set(k->why, DDPS_E_INVAL, 0, "a name is needed, of one line");
	return make_failed(
		k, gnutls_x509_crt_set_dn_by_oid(k->crt, GNUTLS_OID_X520_COMMON_NAME, 0, name, n),
		"the name");
}

static int set_names(struct making *k)
{
	const char *const *name = k->m->names;
	int err;

	if (!name || !*name)
		return ddps_verdict_set(k->why, DDPS_E_INVAL, 0, "no name is given");
	err = set_subject(k, *name);
	for (; !err && k->m->ca_cert && *name; name++)
		err = add_name(k, *name);
	return err;
}

/* ---- the CA ---- */

static int take_ca(struct making *k)
{
	const gnutls_datum_t cert = { (unsigned char *)(uintptr_t)k->m->ca_cert,
				      (unsigned)strlen(k->m->ca_cert) },
			     key = { (unsigned char *)(uintptr_t)k->m->ca_key,
				     (unsigned)k->m->ca_key_len };
	unsigned char a[KEY_ID_LEN], b[KEY_ID_LEN];
	size_t alen = sizeof a, blen = sizeof b;
	unsigned critical;
	int err;

	if (gnutls_x509_crt_init(&k->ca) || gnutls_x509_privkey_init(&k->ca_key))
		return make_failed(k, GNUTLS_E_MEMORY_ERROR, "making");
	err = make_failed(k, gnutls_x509_crt_import(k->ca, &cert, GNUTLS_X509_FMT_PEM),
			  "the CA's certificate cannot be read");
	if (!err)
		err = make_failed(k,
				  gnutls_x509_privkey_import2(k->ca_key, &key, GNUTLS_X509_FMT_PEM,
							      NULL, 0),
				  "the CA's key cannot be read");
	if (err)
		return err;
	if (gnutls_x509_crt_get_ca_status(k->ca, &critical) <= 0)
		return ddps_verdict_set(k->why, DDPS_E_CERT_USAGE, 0,
					"the certificate that is to sign is no CA's");
	if (gnutls_x509_crt_get_key_id(k->ca, 0, a, &alen) ||
	    gnutls_x509_privkey_get_key_id(k->ca_key, 0, b, &blen) || alen != blen ||
	    memcmp(a, b, alen) != 0)
		return ddps_verdict_set(k->why, DDPS_E_KEY_MISMATCH, 0,
					"the CA's key is not that of its certificate");
	err = ddps_cert_time(k->ca, k->m->not_before, "the CA's", k->why);
	if (err ==
	    DDPS_E_CERT_NOT_YET) /* made a moment ago, a host's begins earlier: it does not matter */
		err = ddps_cert_time(k->ca, k->m->not_after, "the CA's", k->why) ==
				      DDPS_E_CERT_NOT_YET
			      ? err
			      : 0;
	if (!err && gnutls_x509_crt_get_expiration_time(k->ca) < k->not_after)
		k->not_after = gnutls_x509_crt_get_expiration_time(k->ca);
	return err;
}

/* ---- the certificate ---- */

static int set_use(struct making *k)
{
	const bool host = k->m->ca_cert;
	int err = gnutls_x509_crt_set_basic_constraints(k->crt, !host, host ? -1 : 0);

	if (err >= 0)
		err = gnutls_x509_crt_set_key_usage(k->crt, host ? GNUTLS_KEY_DIGITAL_SIGNATURE
								 : GNUTLS_KEY_KEY_CERT_SIGN |
									    GNUTLS_KEY_CRL_SIGN);
	if (err >= 0 && host)
		err = gnutls_x509_crt_set_key_purpose_oid(k->crt, GNUTLS_KP_TLS_WWW_SERVER, 0);
	if (err >= 0 && host)
		err = gnutls_x509_crt_set_key_purpose_oid(k->crt, GNUTLS_KP_TLS_WWW_CLIENT, 0);
	return err;
}

static int set_ids(struct making *k)
{
	unsigned char serial[SERIAL_LEN], id[KEY_ID_LEN];
	size_t len = sizeof id;
	unsigned critical;
	int err = gnutls_rnd(GNUTLS_RND_NONCE, serial, sizeof serial);

	serial[0] = (unsigned char)((serial[0] & 0x7f) | 0x40); /* positive, and as long as it is */
	if (err >= 0)
		err = gnutls_x509_crt_set_serial(k->crt, serial, sizeof serial);
	if (err >= 0)
		err = gnutls_x509_crt_get_key_id(k->crt, 0, id, &len);
	if (err >= 0)
		err = gnutls_x509_crt_set_subject_key_id(k->crt, id, len);
	if (err < 0 || !k->ca)
		return err;
	len = sizeof id;
	if (gnutls_x509_crt_get_subject_key_id(k->ca, id, &len, &critical) < 0)
		return 0; /* a CA without it is found by its name */
	return gnutls_x509_crt_set_authority_key_id(k->crt, id, len);
}

static int fill_cert(struct making *k)
{
	int err = set_names(k);

	if (err)
		return err;
	err = gnutls_x509_crt_set_version(k->crt, 3);
	if (err >= 0)
		err = gnutls_x509_crt_set_key(k->crt, k->key);
	if (err >= 0)
		err = gnutls_x509_crt_set_activation_time(k->crt, (time_t)k->m->not_before);
	if (err >= 0)
		err = gnutls_x509_crt_set_expiration_time(k->crt, (time_t)k->not_after);
	if (err >= 0)
		err = set_use(k);
	if (err >= 0)
		err = set_ids(k);
	if (err >= 0)
		err = gnutls_x509_crt_sign2(k->crt, k->ca ? k->ca : k->crt,
					    k->ca ? k->ca_key : k->key, GNUTLS_DIG_SHA256, 0);
	return make_failed(k, err, "the certificate cannot be made");
}

static int make_key(struct making *k)
{
	int err = gnutls_x509_crt_init(&k->crt);

	if (err >= 0)
		err = gnutls_x509_privkey_init(&k->key);
	if (err >= 0)
		err = gnutls_x509_privkey_generate(k->key, GNUTLS_PK_ECDSA,
						   GNUTLS_CURVE_TO_BITS(GNUTLS_ECC_CURVE_SECP256R1),
						   0);
	return make_failed(k, err, "a key cannot be made");
}

/* ---- texts ---- */

static int give_text(struct making *k, int err, char *dst, size_t size, gnutls_datum_t *pem)
{
	if (err < 0)
		return make_failed(k, err, "the certificate cannot be written");
	if (pem->size >= size)
		err = ddps_verdict_set(k->why, DDPS_E_TOO_LONG, 0, "there is no room for %u octets",
				       pem->size);
	else
		memcpy(dst, pem->data, pem->size);
	if (!err)
		dst[pem->size] = 0;
	gnutls_memset(pem->data, 0, pem->size);
	gnutls_free(pem->data);
	return err;
}

int ddps_creds_make(const struct ddps_secure_make *m, char *cert, size_t cert_size, char *key,
		    size_t key_size, struct ddps_verdict *why)
{
	struct making k = { .m = m, .not_after = m->not_after, .why = why };
	gnutls_datum_t pem = { NULL, 0 };
	int err = 0;

	*why = (struct ddps_verdict){ .code = 0 };
	if (!m->ca_cert != !m->ca_key || m->not_before >= m->not_after)
		return ddps_verdict_set(
			why, DDPS_E_INVAL, 0,
			"a CA's certificate and key go together, and times in order");
	if (m->ca_cert)
		err = take_ca(&k);
	if (!err)
		err = make_key(&k);
	if (!err)
		err = fill_cert(&k);
	if (!err)
		err = give_text(&k, gnutls_x509_crt_export2(k.crt, GNUTLS_X509_FMT_PEM, &pem), cert,
				cert_size, &pem);
	if (!err)
		err = give_text(&k,
				gnutls_x509_privkey_export2_pkcs8(k.key, GNUTLS_X509_FMT_PEM, NULL,
								  GNUTLS_PKCS_PLAIN, &pem),
				key, key_size, &pem);
	if (k.crt)
		gnutls_x509_crt_deinit(k.crt);
	if (k.ca)
		gnutls_x509_crt_deinit(k.ca);
	if (k.key)
		gnutls_x509_privkey_deinit(k.key);
	if (k.ca_key)
		gnutls_x509_privkey_deinit(k.ca_key);
	return err;
}
