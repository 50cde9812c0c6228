/* SPDX-License-Identifier: BSD-2-Clause */
/* Reads the own certificate and its private key. */
#include "secure/creds/set.h"
#include <ddpsess/err_codes.h>
#include <gnutls/abstract.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define CERT_MAX  262144 /* octets of a file */
#define KEY_MAX	  65536
#define WARN_DAYS 7
#define DAY	  86400

struct ddps_vault *ddps_set_read(struct ddps_creds_set *set, enum ddps_setting s, size_t max,
				 struct ddps_vault *v, struct ddps_report *r)
{
	const char *file = set->settings.value[s];
	char why[160];
	int err;

	if (!file)
		return NULL;
	err = ddps_file_read(v, file, max, ddps_setting_kind(s), &set->stamp[s], why, sizeof why);
	if (!err)
		return v;
	ddps_report(r, err, false, ddps_setting_word(s), file, "%s", why);
	return NULL;
}

int ddps_set_certs(const struct ddps_vault *v, gnutls_x509_crt_t **list, unsigned *n)
{
	const gnutls_datum_t pem = { v->p, (unsigned)v->size };
	int err = gnutls_x509_crt_list_import2(list, n, &pem, GNUTLS_X509_FMT_PEM, 0);

	if (err < 0) {
		*list = NULL;
		*n = 0;
	}
	return err;
}

/* Is it in the other one's place? */
static const char *what_lacks(const struct ddps_vault *v, bool key)
{
	const char *const text = (char *)v->p;
	const bool has_key = strstr(text, "PRIVATE KEY-----"),
		   has_cert = strstr(text, "BEGIN CERTIFICATE-----");

	if (key)
		return has_cert && !has_key ? "private key, but a certificate" : "private key";
	return has_key && !has_cert ? "certificate, but a private key" : "certificate";
}

void ddps_set_report_pem(struct ddps_report *r, enum ddps_setting s, const char *file, int err,
			 const char *kind)
{
	if (err == GNUTLS_E_MEMORY_ERROR)
		ddps_report(r, DDPS_E_NOMEM, false, ddps_setting_word(s), file, "out of memory");
	else
		ddps_report(r, DDPS_E_CONFIG, false, ddps_setting_word(s), file,
			    "has no %s as PEM in it (%s)", kind, gnutls_strerror(err));
}

/* ---- own certificate ---- */

static bool is_weak(gnutls_x509_crt_t crt)
{
	unsigned bits;
	const int alg = gnutls_x509_crt_get_pk_algorithm(crt, &bits);
	const int sign = gnutls_x509_crt_get_signature_algorithm(crt);

	return alg < 0 ||
	       bits < gnutls_sec_param_to_pk_bits((gnutls_pk_algorithm_t)alg,
						  DDPS_CREDS_STRENGTH) ||
	       sign < 0 || !gnutls_sign_is_secure((gnutls_sign_algorithm_t)sign);
}

/* For whom it is, by whom and until when. */
static void report_own(const struct ddps_creds_set *set, struct ddps_report *r)
{
	const char *const what = ddps_setting_word(DDPS_SET_CERT),
			  *const file = set->settings.value[DDPS_SET_CERT];
	struct ddps_name *name;
	char names[160] = "", issuer[64], date[16];
	unsigned n;
	size_t at = 0;

	ddps_cert_names(set->own->crt[0], &name, &n);
	for (unsigned i = 0; i < n && at + 8 < sizeof names; i++) {
		if (i)
			names[at++] = ' ';
		ddps_name_text(names + at, sizeof names - at, &name[i]);
		at += strlen(names + at);
	}
	ddps_cert_names_free(name, n);
	ddps_cert_issuer(issuer, sizeof issuer, set->own->crt[0]);
	ddps_cert_date(date, gnutls_x509_crt_get_expiration_time(set->own->crt[0]));
	if (n)
		ddps_report(r, 0, false, what, file, "is for %s, from %s, until %s", names, issuer,
			    date);
	else
		ddps_report(r, DDPS_E_CERT_NAME, true, what, file,
			    "has no name of a host: peers that dial this side refuse it");
}

/* What is wrong with the certificate itself, all of it. */
static bool judge_own(struct ddps_creds_set *set, int64_t now, struct ddps_report *r)
{
	const char *const what = ddps_setting_word(DDPS_SET_CERT),
			  *const file = set->settings.value[DDPS_SET_CERT];
	const gnutls_x509_crt_t crt = set->own->crt[0];
	const unsigned before = r->faults;
	struct ddps_verdict v;
	char date[16];

	for (unsigned i = 0; i < set->own->n; i++)
		if (ddps_cert_time(set->own->crt[i], now, "the", &v))
			ddps_report(r, v.code, false, what, file, "%s", v.text);
	for (int server = 0; server < 2; server++)
		set->own->may[server] = !ddps_cert_usage(crt, server, "the", &v);
	if (!set->own->may[0] || !set->own->may[1]) /* one of the two is enough */
		ddps_report(r, v.code, set->own->may[0] || set->own->may[1], what, file, "%s",
			    v.text);
	if (set->own->octets > DDPS_CREDS_DATAGRAMS)
		ddps_report(r, DDPS_E_CERT, true, what, file,
			    "has %zu octets with its chain: over sctps:// only %u can be shown",
			    set->own->octets, DDPS_CREDS_DATAGRAMS);
	if (is_weak(crt))
		ddps_report(r, DDPS_E_CERT_WEAK, false, what, file,
			    "has a weak key or signature: RSA needs 2048 bits, and no SHA-1");
	if (r->faults == before)
		report_own(set, r);
	if (r->faults == before &&
	    gnutls_x509_crt_get_expiration_time(crt) < now + WARN_DAYS * DAY) {
		ddps_cert_date(date, gnutls_x509_crt_get_expiration_time(crt));
		ddps_report(r, DDPS_E_CERT_EXPIRED, true, what, file,
			    "expires on %s: make a new one in time", date);
	}
	return r->faults == before;
}

int ddps_set_may(const struct ddps_creds_set *set, bool server, bool datagrams,
		 struct ddps_verdict *why)
{
	if (!set->own || (!server && ddps_creds_dials_psk(set)))
		return 0;
	if (!set->own->may[server])
		return ddps_cert_usage(set->own->crt[0], server, "this side's", why);
	if (datagrams && set->own->octets > DDPS_CREDS_DATAGRAMS)
		return ddps_verdict_set(why, DDPS_E_CERT, 0,
					"this side's certificates have %zu octets, and over "
					"datagrams only %u can be shown",
					set->own->octets, DDPS_CREDS_DATAGRAMS);
	return 0;
}

/* Peers get no CA that they have to have already, and no order but that of the chain. */
static void drop_self_signed(struct ddps_creds_set *set)
{
	while (set->own->n > 1 && gnutls_x509_crt_check_issuer(set->own->crt[set->own->n - 1],
							       set->own->crt[set->own->n - 1]))
		gnutls_x509_crt_deinit(set->own->crt[--set->own->n]);
}

static void count_own_octets(struct ddps_creds_set *set)
{
	for (unsigned i = 0; i < set->own->n; i++) {
		size_t n = 0;

		gnutls_x509_crt_export(set->own->crt[i], GNUTLS_X509_FMT_DER, NULL, &n);
		set->own->octets += n;
	}
}

static bool load_own(struct ddps_creds_set *set, int64_t now, struct ddps_report *r)
{
	const char *const file = set->settings.value[DDPS_SET_CERT];
	struct ddps_vault v;
	const char *lacks;
	int err;

	if (!ddps_set_read(set, DDPS_SET_CERT, CERT_MAX, &v, r))
		return false;
	err = ddps_set_certs(&v, &set->own->crt, &set->own->n);
	lacks = what_lacks(&v, false);
	ddps_vault_free(&v);
	if (err < 0) {
		ddps_set_report_pem(r, DDPS_SET_CERT, file, err, lacks);
		return false;
	}
	drop_self_signed(set);
	count_own_octets(set);
	if (set->own->n > DDPS_CREDS_DEPTH) {
		ddps_report(r, DDPS_E_CERT, false, ddps_setting_word(DDPS_SET_CERT), file,
			    "has %u certificates without the root, and peers take %d at most",
			    set->own->n, DDPS_CREDS_DEPTH);
		return false;
	}
	return judge_own(set, now, r);
}

/* ---- private key ---- */

/* The key's block, without what may be in front of it.  GnuTLS's own reading of PEM leaves octets of the key in
 * memory that it has freed. */
static int decode_key(const struct ddps_vault *pem, struct ddps_vault *der)
{
	const char *const text = (char *)pem->p, *at = strstr(text, "PRIVATE KEY-----");
	gnutls_datum_t block, out = { NULL, 0 };
	int err;

	while (at && at > text && strncmp(at, "-----BEGIN", 10) != 0)
		at--;
	if (!at)
		return GNUTLS_E_BASE64_UNEXPECTED_HEADER_ERROR;
	block = (gnutls_datum_t){ pem->p + (at - text),
				  (unsigned)(pem->size - (size_t)(at - text)) };
	err = gnutls_pem_base64_decode2(NULL, &block, &out);
	if (err < 0)
		return err;
	err = ddps_vault_new(der, out.size) ? GNUTLS_E_MEMORY_ERROR : 0;
	if (!err)
		memcpy(der->p, out.data, out.size);
	gnutls_memset(out.data, 0, out.size);
	gnutls_free(out.data);
	return err;
}

/* @der: receives its octets */
static gnutls_x509_privkey_t import_key(const struct ddps_vault *pem, struct ddps_vault *der,
					const char *file, struct ddps_report *r)
{
	gnutls_x509_privkey_t key = NULL;
	gnutls_datum_t octets;
	int err;

	*der = (struct ddps_vault){ .p = NULL };
	if (strstr((char *)pem->p, "ENCRYPTED")) {
		ddps_report(r, DDPS_E_CONFIG, false, ddps_setting_word(DDPS_SET_KEY), file,
			    "is encrypted, and nobody is there to type a password: decrypt it with "
			    "'openssl pkey', mode 600");
		return NULL;
	}
	err = decode_key(pem, der);
	if (!err)
		err = gnutls_x509_privkey_init(&key);
	octets = (gnutls_datum_t){ der->p, (unsigned)der->size };
	if (!err)
		err = gnutls_x509_privkey_import2(key, &octets, GNUTLS_X509_FMT_DER, NULL, 0);
	if (!err)
		return key;
	if (key)
		gnutls_x509_privkey_deinit(key);
	ddps_set_report_pem(r, DDPS_SET_KEY, file, err, what_lacks(pem, true));
	return NULL;
}

static bool belongs(gnutls_x509_crt_t crt, gnutls_x509_privkey_t key)
{
	unsigned char a[32], b[32];
	size_t alen = sizeof a, blen = sizeof b;

	return !gnutls_x509_crt_get_key_id(crt, GNUTLS_KEYID_USE_SHA256, a, &alen) &&
	       !gnutls_x509_privkey_get_key_id(key, GNUTLS_KEYID_USE_SHA256, b, &blen) &&
	       alen == blen && !memcmp(a, b, alen);
}

static gnutls_x509_privkey_t load_key(struct ddps_creds_set *set, struct ddps_report *r)
{
	const char *const file = set->settings.value[DDPS_SET_KEY],
			  *const cert = set->settings.value[DDPS_SET_CERT];
	gnutls_x509_privkey_t key;
	struct ddps_vault v, der;

	if (!ddps_set_read(set, DDPS_SET_KEY, KEY_MAX, &v, r))
		return NULL;
	key = import_key(&v, &der, file, r);
	set->own->key = key ? ddps_secret_key_new(key, &der) : NULL;
	ddps_vault_free(&der);
	ddps_vault_free(&v);
	if (!key || !set->own->n)
		return key;
	if (belongs(set->own->crt[0], key)) {
		ddps_report(r, 0, false, ddps_setting_word(DDPS_SET_KEY), file,
			    "is the key of the certificate, and only this user can read it");
		return key;
	}
	ddps_report(r, DDPS_E_KEY_MISMATCH, false, ddps_setting_word(DDPS_SET_KEY), file,
		    "is not the key of %.80s: name the one that was made with it", cert);
	gnutls_x509_privkey_deinit(key);
	return NULL;
}

/* ---- all of it ---- */

/* What a judge says of a peer's certificate, of the own one. */
static void report_as_own(const struct ddps_creds_set *set, const struct ddps_verdict *v,
			  struct ddps_report *r)
{
	static const char whose[] = "the peer's";
	const char *const at = strstr(v->text, whose);

	ddps_report(r, v->code, false, ddps_setting_word(DDPS_SET_CERT),
		    set->settings.value[DDPS_SET_CERT], "%.*s%s%s", at ? (int)(at - v->text) : 0,
		    v->text, at ? "this side's" : "", at ? at + sizeof whose - 1 : v->text);
}

/* Whether a peer with the same CA file would take the own certificate. */
static void try_own(struct ddps_creds_set *set, int64_t now, struct ddps_report *r)
{
	struct ddps_creds_want want = { .server = !set->own->may[true] };
	struct ddps_creds_peer self = { .ncerts = set->own->n };
	gnutls_datum_t der[DDPS_CREDS_CHAIN] = { { NULL, 0 } };
	struct ddps_peer_id *id = calloc(1, sizeof *id);
	struct ddps_verdict v = { .code = 0 };

	for (unsigned i = 0; i < set->own->n; i++)
		if (!gnutls_x509_crt_export2(set->own->crt[i], GNUTLS_X509_FMT_DER, &der[i]))
			self.cert[i] = (struct ddps_creds_der){ der[i].data, der[i].size };
	if (id)
		ddps_chain_judge(set, &self, &want, now, id, NULL, &v);
	free(id);
	for (unsigned i = 0; i < set->own->n; i++)
		gnutls_free(der[i].data);
	if (v.code == DDPS_E_CERT_CA)
		ddps_report(r, v.code, true, ddps_setting_word(DDPS_SET_CERT),
			    set->settings.value[DDPS_SET_CERT],
			    "is not from a CA of %.80s: peers need another CA file than this one",
			    set->settings.value[DDPS_SET_CA]);
	else if (v.code)
		report_as_own(set, &v, r);
}

static bool give_key(struct ddps_creds_set *set)
{
	return set->own->key && !gnutls_certificate_allocate_credentials(&set->own->x509) &&
	       !ddps_secret_key_give(set->own->key, set->own->x509, set->own->crt, set->own->n);
}

void ddps_cert_pair_free(struct ddps_cert_pair *own)
{
	if (!own || atomic_fetch_sub(&own->refs, 1) > 1)
		return;
	if (own->x509)
		gnutls_certificate_free_credentials(own->x509);
	ddps_secret_key_free(own->key);
	for (unsigned i = 0; i < own->n; i++)
		gnutls_x509_crt_deinit(own->crt[i]);
	gnutls_free(own->crt);
	free(own);
}

/* What @old shows to peers, with its stamps: files that are others are tried again. */
static void keep_own(struct ddps_creds_set *set, const struct ddps_creds_set *old)
{
	ddps_cert_pair_free(set->own);
	set->own = old->own;
	atomic_fetch_add(&set->own->refs, 1);
	set->stamp[DDPS_SET_CERT] = old->stamp[DDPS_SET_CERT];
	set->stamp[DDPS_SET_KEY] = old->stamp[DDPS_SET_KEY];
}

void ddps_set_load_x509(struct ddps_creds_set *set, int64_t now, struct ddps_report *r)
{
	const bool spare = r->old && r->old->own && ddps_secret_key_intact(r->old->own->key);
	struct ddps_report kept = { .faults = 0 }, *const mine = spare ? &kept : r;
	const unsigned before = r->faults;
	gnutls_x509_privkey_t key;
	bool own, cas;

	set->own = calloc(1, sizeof *set->own);
	if (!set->own) {
		ddps_report(r, DDPS_E_NOMEM, false, ddps_setting_word(DDPS_SET_CERT), NULL,
			    "out of memory");
		return;
	}
	atomic_init(&set->own->refs, 1);
	own = load_own(set, now, mine);
	cas = ddps_set_load_cas(set, now, r);
	key = load_key(set, mine);
	if (set->nca && !ddps_set_trust(set, r))
		cas = false;
	if (cas)
		ddps_set_load_crls(set, now, r);
	if (own && cas)
		try_own(set, now, mine);
	if (key && r->faults == before && !kept.faults && !give_key(set))
		ddps_report(mine, DDPS_E_NOMEM, false, ddps_setting_word(DDPS_SET_KEY),
			    set->settings.value[DDPS_SET_KEY], "GnuTLS does not take it");
	if (key)
		gnutls_x509_privkey_deinit(key);
	if (!kept.faults)
		return;
	keep_own(set, r->old);
	ddps_verdict_set(&r->lapse, kept.first.code, 0,
			 "the certificate and key that were read before stay in use: %.110s",
			 kept.first.text);
}
