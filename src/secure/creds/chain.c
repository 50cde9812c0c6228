/* SPDX-License-Identifier: BSD-2-Clause */
/* Judges a peer's certificates: chain, time, revocation, use. */
#include "secure/creds/set.h"
#include <ddpsess/err_codes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define FLAGS                                                                                      \
	(GNUTLS_PROFILE_TO_VFLAGS(GNUTLS_PROFILE_MEDIUM) | GNUTLS_VERIFY_DISABLE_TIME_CHECKS |     \
	 GNUTLS_VERIFY_DISABLE_TRUSTED_TIME_CHECKS | GNUTLS_VERIFY_DISABLE_CRL_CHECKS |            \
	 GNUTLS_VERIFY_DO_NOT_ALLOW_SAME | GNUTLS_VERIFY_DO_NOT_ALLOW_X509_V1_CA_CRT |             \
	 GNUTLS_VERIFY_DO_NOT_ALLOW_WILDCARDS)

#define WHOSE "the peer's"

void ddps_shown_free(struct ddps_shown *shown)
{
	for (unsigned i = 0; i < shown->ncrts; i++)
		gnutls_x509_crt_deinit(shown->crt[i]);
	ddps_cert_names_free(shown->name, shown->nnames);
	*shown = (struct ddps_shown){ .ncrts = 0 };
}

static int import_chain(struct ddps_shown *shown, const struct ddps_creds_peer *peer,
			struct ddps_verdict *v)
{
	if (peer->ncerts > DDPS_CREDS_CHAIN)
		return ddps_verdict_set(v, DDPS_E_CERT, DDPS_ALERT_BAD_CERTIFICATE,
					"the peer showed %u certificates, %d are taken at most",
					peer->ncerts, DDPS_CREDS_CHAIN);
	for (unsigned i = 0; i < peer->ncerts; i++) {
		const gnutls_datum_t der = { (unsigned char *)(uintptr_t)peer->cert[i].p,
					     (unsigned)peer->cert[i].len };

		if (gnutls_x509_crt_init(&shown->crt[i]))
			return ddps_verdict_set(v, DDPS_E_NOMEM, DDPS_ALERT_CERTIFICATE_UNKNOWN,
						"out of memory");
		shown->ncrts++;
		if (gnutls_x509_crt_import(shown->crt[i], &der, GNUTLS_X509_FMT_DER))
			return ddps_verdict_set(v, DDPS_E_CERT, DDPS_ALERT_BAD_CERTIFICATE,
						"certificate %u of the peer is not one (X.509 DER)",
						i + 1);
	}
	return 0;
}

/* ---- who it is ---- */

static void print_all_names(const struct ddps_shown *shown, struct ddps_peer_id *id)
{
	size_t at = 0;

	for (unsigned i = 0; i < shown->nnames; i++) {
		char one[DDPS_PEER_NAME];
		size_t len;

		ddps_name_text(one, sizeof one, &shown->name[i]);
		len = strlen(one);
		if (at + len + 1 + sizeof "..." > sizeof id->names) {
			snprintf(id->names + at, sizeof id->names - at, "%s...", at ? "\n" : "");
			return;
		}
		at += (size_t)snprintf(id->names + at, sizeof id->names - at, "%s%s",
				       at ? "\n" : "", one);
	}
}

/* What a stranger's certificate says, too: it costs little, whatever is in it. */
static void take_identity(gnutls_x509_crt_t crt, const struct ddps_creds_der *shown,
			  struct ddps_peer_id *id)
{
	const gnutls_datum_t der = { (unsigned char *)(uintptr_t)shown->p, (unsigned)shown->len };
	unsigned char serial[20];
	size_t len = sizeof serial, fp = sizeof id->fingerprint;

	id->how = DDPS_PEER_X509;
	id->not_before = gnutls_x509_crt_get_activation_time(crt);
	id->not_after = gnutls_x509_crt_get_expiration_time(crt);
	gnutls_fingerprint(GNUTLS_DIG_SHA256, &der, id->fingerprint, &fp);
	ddps_cert_issuer(id->issuer, sizeof id->issuer, crt);
	if (!gnutls_x509_crt_get_serial(crt, serial, &len))
		for (size_t i = 0; i < len && 2 * i + 2 < sizeof id->serial; i++)
			snprintf(id->serial + 2 * i, 3, "%02x", serial[i]);
}

/* Only once a CA vouches for it: to read names takes long if there are many. */
static int take_names(struct ddps_shown *shown, struct ddps_peer_id *id, struct ddps_verdict *v)
{
	const int err = ddps_cert_names(shown->crt[0], &shown->name, &shown->nnames);

	if (err)
		return ddps_verdict_set(v, err, DDPS_ALERT_BAD_CERTIFICATE,
					"the names of the peer's certificate cannot be read");
	print_all_names(shown, id);
	return 0;
}

/* ---- the chain ---- */

/* Of a CA that was renewed with its key there are several: one that is valid now, wherever it stands.  -1: there is none */
static int find_issuer(const gnutls_x509_crt_t *list, unsigned n, gnutls_x509_crt_t crt,
		       int64_t now)
{
	struct ddps_verdict unsaid;
	int found = -1;

	for (unsigned i = 0; i < n; i++) {
		if (list[i] == crt || !gnutls_x509_crt_check_issuer(crt, list[i]))
			continue;
		if (!ddps_cert_time(list[i], now, WHOSE, &unsaid))
			return (int)i;
		if (found < 0)
			found = (int)i;
	}
	return found;
}

/* From the peer's certificate up to one of the CAs that are trusted, by names.  @at: where each was found, in what the
 * peer showed or, behind that, among the CAs.  0: there is no way. */
static unsigned find_path(const struct ddps_creds_set *set, const struct ddps_shown *shown,
			  int64_t now, gnutls_x509_crt_t path[1 + DDPS_CREDS_DEPTH],
			  int at[1 + DDPS_CREDS_DEPTH])
{
	unsigned n = 1;

	path[0] = shown->crt[0];
	at[0] = 0;
	for (; n <= DDPS_CREDS_DEPTH; n++) {
		const gnutls_x509_crt_t below = path[n - 1];
		int up = find_issuer(set->ca, set->nca, below, now);

		if (up >= 0) {
			path[n] = set->ca[up];
			at[n] = DDPS_CREDS_CHAIN + up;
			return n + 1;
		}
		up = find_issuer(shown->crt, shown->ncrts, below, now);
		if (up < 0)
			break;
		path[n] = shown->crt[up];
		at[n] = up;
	}
	return 0;
}

static int explain_status(const struct ddps_creds_set *set, gnutls_x509_crt_t crt, unsigned status,
			  bool server, struct ddps_verdict *v)
{
	char subject[48], issuer[48];

	ddps_cert_subject(subject, sizeof subject, crt);
	ddps_cert_issuer(issuer, sizeof issuer, crt);
	if (status & GNUTLS_CERT_INSECURE_ALGORITHM)
		return ddps_verdict_set(v, DDPS_E_CERT_WEAK, DDPS_ALERT_BAD_CERTIFICATE,
					"the chain of the peer's certificate %s has a weak key or "
					"signature: RSA needs 2048 bits, and no SHA-1",
					subject);
	if (status & GNUTLS_CERT_SIGNER_CONSTRAINTS_FAILURE)
		return ddps_verdict_set(v, DDPS_E_CERT_CA, DDPS_ALERT_UNKNOWN_CA,
					"the CA %s may not sign the peer's certificate %s "
					"(constraints of length or names)",
					issuer, subject);
	if (status & GNUTLS_CERT_PURPOSE_MISMATCH)
		return ddps_verdict_set(v, DDPS_E_CERT_USAGE, DDPS_ALERT_UNSUPPORTED_CERTIFICATE,
					"the chain of the peer's certificate %s is not for %s "
					"(extended key usage)",
					subject, server ? "clients" : "servers");
	if (status & GNUTLS_CERT_SIGNATURE_FAILURE)
		return ddps_verdict_set(v, DDPS_E_CERT_CA, DDPS_ALERT_UNKNOWN_CA,
					"the peer's certificate %s was not signed by the key of %s "
					"in %.50s: another CA has that name",
					subject, issuer, set->settings.value[DDPS_SET_CA]);
	if (status & GNUTLS_CERT_UNKNOWN_CRIT_EXTENSIONS)
		return ddps_verdict_set(v, DDPS_E_CERT_USAGE, DDPS_ALERT_UNSUPPORTED_CERTIFICATE,
					"the chain of the peer's certificate %s has a critical "
					"extension that is not known here",
					subject);
	if (status & GNUTLS_CERT_SIGNER_NOT_FOUND)
		return ddps_verdict_set(
			v, DDPS_E_CERT_CA, DDPS_ALERT_UNKNOWN_CA,
			"the peer's certificate %s is from %s, which no CA in %.50s "
			"vouches for",
			subject, issuer, set->settings.value[DDPS_SET_CA]);
	return ddps_verdict_set(v, DDPS_E_CERT, DDPS_ALERT_BAD_CERTIFICATE,
				"the chain of the peer's certificate %s is not valid (GnuTLS: %#x)",
				subject, status);
}

/* Signatures, constraints and purposes, by GnuTLS; once. */
static int verify_path(const struct ddps_creds_set *set, const struct ddps_creds_peer *peer,
		       gnutls_x509_crt_t *path, const int *at, unsigned n, bool server,
		       struct ddps_verdict *v)
{
	const char *const purpose = server ? GNUTLS_KP_TLS_WWW_CLIENT : GNUTLS_KP_TLS_WWW_SERVER;
	gnutls_typed_vdata_st data = { .type = GNUTLS_DT_KEY_PURPOSE_OID };
	uint8_t hash[DDPS_CHAIN_HASH];
	const bool hashed = ddps_chain_hash(hash, peer, at, n, server);
	unsigned status = 0;
	int err;

	if (hashed && ddps_known_has(set->known, hash))
		return 0;
	data.data = (unsigned char *)(uintptr_t)purpose;
	err = gnutls_x509_trust_list_verify_crt2(set->trust, path, n, &data, 1, FLAGS, &status,
						 NULL);
	if (err < 0)
		return ddps_verdict_set(v, DDPS_E_CERT, DDPS_ALERT_BAD_CERTIFICATE,
					"the peer's certificate cannot be judged: %s",
					gnutls_strerror(err));
	if (status)
		return explain_status(set, path[0], status, server, v);
	if (hashed)
		ddps_known_add(set->known, hash);
	return 0;
}

/* Up to the root, where that is there: a CA below it is trusted as long as the root has not revoked it. */
static unsigned go_up(const struct ddps_creds_set *set, gnutls_x509_crt_t *path, unsigned n,
		      int64_t now)
{
	int up;

	while (n <= DDPS_CREDS_DEPTH && !gnutls_x509_crt_check_issuer(path[n - 1], path[n - 1]) &&
	       (up = find_issuer(set->ca, set->nca, path[n - 1], now)) >= 0)
		path[n++] = set->ca[up];
	return n;
}

/* Each of the path is valid now, and none below the root is revoked. */
static int check_path(const struct ddps_creds_set *set, gnutls_x509_crt_t *path, unsigned n,
		      int64_t now, struct ddps_verdict *v)
{
	int err = 0;

	for (unsigned i = 0; !err && i < n; i++)
		err = ddps_cert_time(path[i], now, i ? WHOSE " CA's" : WHOSE, v);
	if (set->ncrl)
		n = go_up(set, path, n, now);
	for (unsigned i = 0; !err && i + 1 < n; i++)
		err = ddps_cert_revoked(set, path[i], path[i + 1], now, i ? WHOSE " CA's" : WHOSE,
					v);
	return err;
}

static int judge_chain(const struct ddps_creds_set *set, struct ddps_shown *shown,
		       const struct ddps_creds_peer *peer, const struct ddps_creds_want *want,
		       int64_t now, struct ddps_peer_id *id, struct ddps_verdict *v)
{
	gnutls_x509_crt_t path[1 + DDPS_CREDS_DEPTH];
	int at[1 + DDPS_CREDS_DEPTH];
	unsigned n;
	int err = import_chain(shown, peer, v);

	if (err)
		return err;
	take_identity(shown->crt[0], &peer->cert[0], id);
	if (ddps_cert_is_wordy(shown->crt[0]))
		return ddps_verdict_set(v, DDPS_E_CERT, DDPS_ALERT_BAD_CERTIFICATE,
					"the peer's certificate has more than %u octets of names",
					DDPS_CREDS_SAN);
	n = find_path(set, shown, now, path, at);
	if (!n)
		return explain_status(set, shown->crt[0], GNUTLS_CERT_SIGNER_NOT_FOUND,
				      want->server, v);
	id->depth = n - 1;
	err = verify_path(set, peer, path, at, n, want->server, v);
	if (!err)
		err = take_names(shown, id, v);
	if (!err)
		err = check_path(set, path, n, now, v);
	return err ? err
		   : ddps_cert_usage_of(shown->crt[0], shown->name, shown->nnames, !want->server,
					WHOSE, v);
}

int ddps_chain_judge(const struct ddps_creds_set *set, const struct ddps_creds_peer *peer,
		     const struct ddps_creds_want *want, int64_t now, struct ddps_peer_id *id,
		     struct ddps_shown *shown, struct ddps_verdict *v)
{
	struct ddps_shown own = { .ncrts = 0 };
	struct ddps_shown *const at = shown ? shown : &own;
	int err;

	*at = own;
	if (!peer->ncerts)
		return ddps_verdict_set(v, DDPS_E_NO_CERT, DDPS_ALERT_CERTIFICATE_REQUIRED,
					"the peer showed no certificate: it needs its own cert and "
					"key, from a CA of %.60s",
					set->settings.value[DDPS_SET_CA]);
	err = judge_chain(set, at, peer, want, now, id, v);
	if (!shown)
		ddps_shown_free(&own);
	return err;
}
