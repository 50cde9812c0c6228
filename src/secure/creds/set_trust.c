/* SPDX-License-Identifier: BSD-2-Clause */
/* Whom a set trusts: CAs, and what they have revoked. */
#include "secure/creds/set.h"
#include <ddpsess/err_codes.h>
#include <stdlib.h>
#include <string.h>

#define CA_MAX	1048576 /* octets of a file */
#define CRL_MAX 16777216

/* ---- CAs ---- */

static bool is_namesake(gnutls_x509_crt_t a, gnutls_x509_crt_t b)
{
	gnutls_datum_t an = { NULL, 0 }, bn = { NULL, 0 };
	const bool same = gnutls_x509_crt_get_raw_dn(a, &an) >= 0 &&
			  gnutls_x509_crt_get_raw_dn(b, &bn) >= 0 && an.size == bn.size &&
			  !memcmp(an.data, bn.data, an.size);

	gnutls_free(an.data);
	gnutls_free(bn.data);
	return same;
}

/* Another CA of that name and with another key: a certificate says by an identifier which of them signed it, if it
 * has one (RFC 5280 4.2.1.1), and else only one of them would be tried. */
static bool has_namesake(const struct ddps_creds_set *set, unsigned i)
{
	unsigned char id[64], mine[32], other[32];
	size_t len = sizeof id, mlen = sizeof mine, olen;
	bool found = false;

	if (!gnutls_x509_crt_get_subject_key_id(set->ca[i], id, &len, NULL) ||
	    gnutls_x509_crt_get_key_id(set->ca[i], GNUTLS_KEYID_USE_SHA256, mine, &mlen))
		return false;
	for (unsigned k = 0; !found && k < i; k++) {
		olen = sizeof other;
		found = is_namesake(set->ca[i], set->ca[k]) &&
			!gnutls_x509_crt_get_key_id(set->ca[k], GNUTLS_KEYID_USE_SHA256, other,
						    &olen) &&
			memcmp(mine, other, sizeof mine) != 0;
	}
	return found;
}

bool ddps_set_load_cas(struct ddps_creds_set *set, int64_t now, struct ddps_report *r)
{
	const char *const what = ddps_setting_word(DDPS_SET_CA),
			  *const file = set->settings.value[DDPS_SET_CA];
	struct ddps_vault v;
	struct ddps_verdict why = { .code = 0 };
	unsigned critical, usable = 0;
	char subject[64];
	int err;

	if (!ddps_set_read(set, DDPS_SET_CA, CA_MAX, &v, r))
		return false;
	err = ddps_set_certs(&v, &set->ca, &set->nca);
	ddps_vault_free(&v);
	if (err < 0) {
		ddps_set_report_pem(r, DDPS_SET_CA, file, err, "certificate");
		return false;
	}
	for (unsigned i = 0; i < set->nca; i++) {
		if (gnutls_x509_crt_get_ca_status(set->ca[i], &critical) <= 0) {
			ddps_cert_subject(subject, sizeof subject, set->ca[i]);
			ddps_report(r, DDPS_E_CERT_USAGE, false, what, file,
				    "has %s, which is no CA's certificate: put CAs only there",
				    subject);
			return false;
		}
		if (has_namesake(set, i)) {
			ddps_cert_subject(subject, sizeof subject, set->ca[i]);
			ddps_report(r, DDPS_E_CERT_CA, false, what, file,
				    "has two CAs %s whose keys have no identifier, so that nobody "
				    "can tell which one signed: leave one of them out",
				    subject);
			return false;
		}
		usable += !ddps_cert_time(set->ca[i], now, "the CA's", &why);
		if (why.code)
			ddps_report(r, why.code, true, what, file, "%s", why.text);
		why.code = 0;
	}
	if (usable) {
		ddps_report(r, 0, false, what, file, "has %u CA%s", set->nca,
			    set->nca == 1 ? "" : "s");
		return true;
	}
	ddps_report_lapse(r, DDPS_E_CERT_EXPIRED, what, file,
			  "has no CA's certificate that is valid now: make a new CA");
	return r->old;
}

bool ddps_set_trust(struct ddps_creds_set *set, struct ddps_report *r)
{
	if (!gnutls_x509_trust_list_init(&set->trust, 0) &&
	    gnutls_x509_trust_list_add_cas(set->trust, set->ca, set->nca, 0) == (int)set->nca &&
	    (set->known = ddps_known_new()))
		return true;
	ddps_report(r, DDPS_E_NOMEM, false, ddps_setting_word(DDPS_SET_CA),
		    set->settings.value[DDPS_SET_CA], "out of memory");
	return false;
}

/* ---- revoked ones ---- */

/* That of an intermediate is judged with that one's certificate, which the peer shows. */
static bool is_crl_of_stranger(const struct ddps_creds_set *set, gnutls_x509_crl_t crl)
{
	gnutls_datum_t issuer = { NULL, 0 }, name;
	bool known = false;

	if (gnutls_x509_crl_get_raw_issuer_dn(crl, &issuer) < 0)
		return false;
	for (unsigned i = 0; !known && i < set->nca; i++) {
		name = (gnutls_datum_t){ NULL, 0 };
		known = gnutls_x509_crt_get_raw_dn(set->ca[i], &name) >= 0 &&
			name.size == issuer.size && !memcmp(name.data, issuer.data, name.size);
		gnutls_free(name.data);
	}
	gnutls_free(issuer.data);
	return !known;
}

/* To verify a long list takes long: once. */
static bool find_signer(struct ddps_creds_set *set, unsigned i)
{
	for (unsigned k = 0; !set->crl_by[i] && k < set->nca; k++)
		if (ddps_crl_is_of(set->crl[i], &set->ca[k], 1))
			set->crl_by[i] = set->ca[k];
	return set->crl_by[i];
}

void ddps_set_load_crls(struct ddps_creds_set *set, int64_t now, struct ddps_report *r)
{
	const char *const what = ddps_setting_word(DDPS_SET_CRL),
			  *const file = set->settings.value[DDPS_SET_CRL];
	const unsigned before = r->faults;
	struct ddps_vault v;
	gnutls_datum_t pem;
	char date[16];
	int err;

	if (!ddps_set_read(set, DDPS_SET_CRL, CRL_MAX, &v, r))
		return;
	pem = (gnutls_datum_t){ v.p, (unsigned)v.size };
	err = gnutls_x509_crl_list_import2(&set->crl, &set->ncrl, &pem, GNUTLS_X509_FMT_PEM, 0);
	ddps_vault_free(&v);
	if (err < 0) {
		set->crl = NULL;
		set->ncrl = 0;
		ddps_set_report_pem(r, DDPS_SET_CRL, file, err, "list of revoked certificates");
		return;
	}
	set->crl_by = calloc(set->ncrl + 1, sizeof *set->crl_by);
	if (!set->crl_by) {
		ddps_report(r, DDPS_E_NOMEM, false, what, file, "out of memory");
		return;
	}
	for (unsigned i = 0; i < set->ncrl; i++) {
		const int64_t until = gnutls_x509_crl_get_next_update(set->crl[i]);

		if (is_crl_of_stranger(set, set->crl[i]))
			ddps_report(r, DDPS_E_CRL, true, what, file,
				    "has a list of a CA that is not in %.80s: it counts for an "
				    "intermediate CA that peers show",
				    set->settings.value[DDPS_SET_CA]);
		else if (!find_signer(set, i))
			ddps_report(r, DDPS_E_CRL, false, what, file,
				    "has a list that no CA of %.80s has signed: add its CA, or "
				    "take the list out",
				    set->settings.value[DDPS_SET_CA]);
		if (gnutls_x509_crl_get_this_update(set->crl[i]) > now)
			ddps_report_lapse(r, DDPS_E_CRL, what, file,
					  "is dated in the future: check the clocks");
		if (until < 0 || now <= until)
			continue;
		ddps_cert_date(date, until);
		if (set->settings.stale_crl)
			ddps_report(r, DDPS_E_CRL, true, what, file,
				    "was good until %s: get a new one from the CA", date);
		else
			ddps_report_lapse(r, DDPS_E_CRL, what, file,
					  "was good until %s: get a new one from the CA", date);
	}
	if (r->faults == before)
		ddps_report(r, 0, false, what, file, "has %u list%s of revoked certificates",
			    set->ncrl, set->ncrl == 1 ? "" : "s");
}
