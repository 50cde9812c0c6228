/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The private key.  GnuTLS would keep it in ordinary memory, which core files have.  So it lies in a vault, and
 * is GnuTLS's only while a signature is made: some microseconds.
 */
#include "secure/creds/set.h"
#include <ddpsess/err_codes.h>
#include <gnutls/abstract.h>
#include <stdlib.h>
#include <string.h>

struct ddps_secret_key {
	struct ddps_vault der;
	gnutls_pk_algorithm_t algorithm;
	unsigned bits;
};

/* As GnuTLS's functions; @out is to be deinitialised. */
static int take_key_out(const struct ddps_secret_key *k, gnutls_privkey_t *out)
{
	const gnutls_datum_t der = { k->der.p, (unsigned)k->der.size };
	int err = GNUTLS_E_INVALID_SESSION; /* a child of fork */

	if (!ddps_vault_intact(&k->der) || (err = gnutls_privkey_init(out)) < 0)
		return err;
	err = gnutls_privkey_import_x509_raw(*out, &der, GNUTLS_X509_FMT_DER, NULL, 0);
	if (err < 0)
		gnutls_privkey_deinit(*out);
	return err;
}

static int sign_octets(gnutls_privkey_t unused, gnutls_sign_algorithm_t how, void *user,
		       unsigned flags, const gnutls_datum_t *data, gnutls_datum_t *signature)
{
	gnutls_privkey_t key;
	int err = take_key_out(user, &key);

	(void)unused;
	if (err < 0)
		return err;
	err = gnutls_privkey_sign_data2(key, how, flags, data, signature);
	gnutls_privkey_deinit(key);
	return err;
}

static int sign_digest(gnutls_privkey_t unused, gnutls_sign_algorithm_t how, void *user,
		       unsigned flags, const gnutls_datum_t *digest, gnutls_datum_t *signature)
{
	gnutls_privkey_t key;
	int err = take_key_out(user, &key);

	(void)unused;
	if (err < 0)
		return err;
	err = gnutls_privkey_sign_hash2(key, how, flags, digest, signature);
	gnutls_privkey_deinit(key);
	return err;
}

static int describe_key(gnutls_privkey_t unused, unsigned flags, void *user)
{
	const struct ddps_secret_key *k = user;

	(void)unused;
	if (flags & GNUTLS_PRIVKEY_INFO_PK_ALGO)
		return (int)k->algorithm;
	if (flags & GNUTLS_PRIVKEY_INFO_PK_ALGO_BITS)
		return (int)k->bits;
	if (flags & GNUTLS_PRIVKEY_INFO_HAVE_SIGN_ALGO)
		return (int)gnutls_sign_supports_pk_algorithm(
			(gnutls_sign_algorithm_t)GNUTLS_FLAGS_TO_SIGN_ALGO(flags), k->algorithm);
	return -1;
}

struct ddps_secret_key *ddps_secret_key_new(gnutls_x509_privkey_t key, struct ddps_vault *der)
{
	struct ddps_secret_key *k = calloc(1, sizeof *k);

	if (!k)
		return NULL;
	k->algorithm = (gnutls_pk_algorithm_t)gnutls_x509_privkey_get_pk_algorithm2(key, &k->bits);
	k->der = *der;
	*der = (struct ddps_vault){ .p = NULL };
	return k;
}

bool ddps_secret_key_intact(const struct ddps_secret_key *k)
{
	return ddps_vault_intact(&k->der);
}

void ddps_secret_key_free(struct ddps_secret_key *k)
{
	if (!k)
		return;
	ddps_vault_free(&k->der);
	free(k);
}

/* The credentials own @chain's copies and the handle of @k, if it succeeds. */
int ddps_secret_key_give(struct ddps_secret_key *k, gnutls_certificate_credentials_t to,
			 gnutls_x509_crt_t *chain, unsigned n)
{
	gnutls_pcert_st pcert[DDPS_CREDS_CHAIN];
	gnutls_privkey_t key;
	unsigned made = 0;
	int err = gnutls_privkey_init(&key);

	if (err < 0)
		return err;
	err = gnutls_privkey_import_ext4(key, k, sign_octets, sign_digest, NULL, NULL, describe_key,
					 0);
	for (; err >= 0 && made < n; made++) {
		err = gnutls_pcert_import_x509(&pcert[made], chain[made], 0);
		if (err < 0)
			break;
	}
	if (err >= 0)
		err = gnutls_certificate_set_key(to, NULL, 0, pcert, (int)n, key);
	if (err >= 0)
		return 0;
	while (made)
		gnutls_pcert_deinit(&pcert[--made]);
	gnutls_privkey_deinit(key);
	return err;
}
