/* SPDX-License-Identifier: BSD-2-Clause */
/* What a certificate says, and whether that is right: time, use, revocation. */
#include "secure/creds/set.h"
#include <ddpsess/err_codes.h>
#include <gnutls/x509-ext.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

int ddps_verdict_set(struct ddps_verdict *v, int code, int alert, const char *fmt, ...)
{
	va_list ap;

	v->code = code;
	v->alert = alert;
	va_start(ap, fmt);
	vsnprintf(v->text, sizeof v->text, fmt, ap);
	va_end(ap);
	return code;
}

/* ---- texts ---- */

static void print_name(char *dst, size_t size, int err, gnutls_datum_t *dn)
{
	if (err < 0) {
		snprintf(dst, size, "?");
		return;
	}
	ddps_name_clean(dst, size, dn->data, dn->size);
	gnutls_free(dn->data);
}

void ddps_cert_subject(char *dst, size_t size, gnutls_x509_crt_t crt)
{
	gnutls_datum_t dn = { NULL, 0 };

	print_name(dst, size, gnutls_x509_crt_get_dn3(crt, &dn, 0), &dn);
}

void ddps_cert_issuer(char *dst, size_t size, gnutls_x509_crt_t crt)
{
	gnutls_datum_t dn = { NULL, 0 };

	print_name(dst, size, gnutls_x509_crt_get_issuer_dn3(crt, &dn, 0), &dn);
}

void ddps_cert_date(char dst[16], int64_t t)
{
	const time_t at = (time_t)t;
	struct tm tm;

	if (!gmtime_r(&at, &tm) || !strftime(dst, 16, "%Y-%m-%d", &tm))
		snprintf(dst, 16, "?");
}

/* ---- names ---- */

static int copy_san(struct ddps_name *name, unsigned type, const gnutls_datum_t *san)
{
	static const uint8_t mapped[12] = { [10] = 0xff, [11] = 0xff };
	uint8_t *p = calloc(1, (size_t)san->size + 1);
	size_t len = san->size;

	if (!p)
		return DDPS_E_NOMEM;
	if (san->size)
		memcpy(p, san->data, san->size);
	if (type == GNUTLS_SAN_DNSNAME && len > 1 && p[len - 1] == '.')
		len--; /* the root: the same name */
	if (type == GNUTLS_SAN_IPADDRESS && len == 16 && !memcmp(p, mapped, sizeof mapped)) {
		len = 4; /* as patterns have it */
		memmove(p, p + sizeof mapped, len);
	}
	*name = (struct ddps_name){ .kind = type == GNUTLS_SAN_DNSNAME	   ? DDPS_NAME_DNS
					    : type == GNUTLS_SAN_IPADDRESS ? DDPS_NAME_IP
									   : DDPS_NAME_URI,
				    .p = p,
				    .len = len };
	return 0;
}

/* Names of other kinds (mail, folders, ...) are not looked at. */
static int copy_sans(gnutls_subject_alt_names_t sans, struct ddps_name **names, unsigned *n)
{
	for (unsigned i = 0;; i++) {
		gnutls_datum_t san;
		unsigned type;
		struct ddps_name *more;

		if (gnutls_subject_alt_names_get(sans, i, &type, &san, NULL) < 0)
			return 0;
		if (type != GNUTLS_SAN_DNSNAME && type != GNUTLS_SAN_IPADDRESS &&
		    type != GNUTLS_SAN_URI)
			continue;
		if (!(*n & (*n - 1))) {
			more = realloc(*names, sizeof *more * (*n ? 2 * (size_t)*n : 1));
			if (!more)
				return DDPS_E_NOMEM;
			*names = more;
		}
		if (copy_san(&(*names)[*n], type, &san))
			return DDPS_E_NOMEM;
		++*n;
	}
}

int ddps_cert_names(gnutls_x509_crt_t crt, struct ddps_name **names, unsigned *n)
{
	gnutls_datum_t ext = { NULL, 0 };
	gnutls_subject_alt_names_t sans;
	unsigned critical;
	int err = DDPS_E_NOMEM;

	*names = NULL;
	*n = 0;
	/* the whole extension, parsed once: a certificate may have many hundred names */
	if (gnutls_x509_crt_get_extension_by_oid2(crt, GNUTLS_X509EXT_OID_SAN, 0, &ext, &critical) <
	    0)
		return 0;
	if (!gnutls_subject_alt_names_init(&sans)) {
		err = gnutls_x509_ext_import_subject_alt_names(&ext, sans, 0) < 0
			      ? DDPS_E_CERT
			      : copy_sans(sans, names, n);
		gnutls_subject_alt_names_deinit(sans);
	}
	gnutls_free(ext.data);
	if (err) {
		ddps_cert_names_free(*names, *n);
		*names = NULL;
		*n = 0;
	}
	return err;
}

bool ddps_cert_is_wordy(gnutls_x509_crt_t crt)
{
	size_t size = 0;
	unsigned critical;
	const int err = gnutls_x509_crt_get_extension_by_oid(crt, GNUTLS_X509EXT_OID_SAN, 0, NULL,
							     &size, &critical);

	return (!err || err == GNUTLS_E_SHORT_MEMORY_BUFFER) && size > DDPS_CREDS_SAN;
}

void ddps_cert_names_free(struct ddps_name *names, unsigned n)
{
	for (unsigned i = 0; i < n; i++)
		free((void *)(uintptr_t)names[i].p);
	free(names);
}

/* ---- whether it is right ---- */

int ddps_cert_time(gnutls_x509_crt_t crt, int64_t now, const char *whose, struct ddps_verdict *v)
{
	const int64_t from = gnutls_x509_crt_get_activation_time(crt),
		      to = gnutls_x509_crt_get_expiration_time(crt);
	char subject[64], date[16], today[16];

	if (now >= from && now <= to)
		return 0;
	ddps_cert_subject(subject, sizeof subject, crt);
	ddps_cert_date(date, now < from ? from : to);
	ddps_cert_date(today, now);
	if (now < from)
		return ddps_verdict_set(
			v, DDPS_E_CERT_NOT_YET, DDPS_ALERT_CERTIFICATE_EXPIRED,
			"%s certificate %s is valid from %s on, and it is %s: check the clocks",
			whose, subject, date, today);
	return ddps_verdict_set(v, DDPS_E_CERT_EXPIRED, DDPS_ALERT_CERTIFICATE_EXPIRED,
				"%s certificate %s expired on %s, and it is %s: make a new one",
				whose, subject, date, today);
}

/* A name of SPIFFE is the only URI, and its certificate does nothing else (X.509-SVID). */
static const char *check_spiffe(const struct ddps_name *names, unsigned n, unsigned usage)
{
	unsigned uris = 0;
	bool spiffe = false, plain = true;

	for (unsigned i = 0; i < n; i++) {
		if (names[i].kind != DDPS_NAME_URI)
			continue;
		uris++;
		if (names[i].len < 10 || memcmp(names[i].p, "spiffe://", 9) != 0)
			continue;
		spiffe = true;
		plain &= ddps_name_is_below(names[i].p + 9, names[i].len - 9);
	}
	if (!spiffe)
		return NULL;
	if (!plain)
		return "has a name of SPIFFE with '.', '..' or '%' in its path";
	if (uris > 1)
		return "has a name of SPIFFE and another URI";
	if (!(usage & GNUTLS_KEY_DIGITAL_SIGNATURE) ||
	    usage & (GNUTLS_KEY_KEY_CERT_SIGN | GNUTLS_KEY_CRL_SIGN))
		return "has a name of SPIFFE and not the key usage for it";
	return NULL;
}

int ddps_cert_usage(gnutls_x509_crt_t crt, bool server, const char *whose, struct ddps_verdict *v)
{
	struct ddps_name *names;
	unsigned n;
	int err;

	if (ddps_cert_names(crt, &names, &n) == DDPS_E_NOMEM)
		return ddps_verdict_set(v, DDPS_E_NOMEM, DDPS_ALERT_CERTIFICATE_UNKNOWN,
					"out of memory");
	err = ddps_cert_usage_of(crt, names, n, server, whose, v);
	ddps_cert_names_free(names, n);
	return err;
}

int ddps_cert_usage_of(gnutls_x509_crt_t crt, const struct ddps_name *names, unsigned n,
		       bool server, const char *whose, struct ddps_verdict *v)
{
	const char *const purpose = server ? GNUTLS_KP_TLS_WWW_SERVER : GNUTLS_KP_TLS_WWW_CLIENT;
	unsigned critical, usage = 0;
	const char *wrong = NULL;
	char subject[64];

	if (gnutls_x509_crt_get_key_usage(crt, &usage, &critical) < 0)
		usage = GNUTLS_KEY_DIGITAL_SIGNATURE; /* it does not say: RFC 5280 4.2.1.3 */
	if (gnutls_x509_crt_get_ca_status(crt, &critical) > 0)
		wrong = "is that of a CA, and a CA's is not for sessions";
	else if (!(usage & GNUTLS_KEY_DIGITAL_SIGNATURE))
		wrong = "is not for signatures (key usage)";
	else if (!gnutls_x509_crt_check_key_purpose(crt, purpose, 0))
		wrong = server ? "is not for servers (extended key usage serverAuth)"
			       : "is not for clients (extended key usage clientAuth)";
	else
		wrong = check_spiffe(names, n, usage);
	if (!wrong)
		return 0;
	ddps_cert_subject(subject, sizeof subject, crt);
	return ddps_verdict_set(v, DDPS_E_CERT_USAGE, DDPS_ALERT_UNSUPPORTED_CERTIFICATE,
				"%s certificate %s %s: use one made for it", whose, subject, wrong);
}

static bool is_same_dn(const gnutls_datum_t *a, const gnutls_datum_t *b)
{
	return a->size == b->size && !memcmp(a->data, b->data, a->size);
}

bool ddps_crl_is_of(gnutls_x509_crl_t crl, const gnutls_x509_crt_t *ca, unsigned n)
{
	const unsigned times = GNUTLS_CERT_REVOCATION_DATA_SUPERSEDED |
			       GNUTLS_CERT_REVOCATION_DATA_ISSUED_IN_FUTURE;
	unsigned wrong;

	if (gnutls_x509_crl_verify(crl, ca, n, 0, &wrong) < 0)
		return false;
	if (wrong & times)
		wrong &= ~(unsigned)GNUTLS_CERT_INVALID; /* it is set with each of the others */
	return !(wrong & ~times);
}

/* The newest list that the CA has signed, whatever others there are of its name; NULL: none */
static gnutls_x509_crl_t find_list(const struct ddps_creds_set *set, gnutls_x509_crt_t issuer)
{
	gnutls_datum_t want, have;
	gnutls_x509_crl_t best = NULL;

	if (gnutls_x509_crt_get_raw_dn(issuer, &want) < 0)
		return NULL;
	for (unsigned i = 0; i < set->ncrl; i++) {
		if (gnutls_x509_crl_get_raw_issuer_dn(set->crl[i], &have) < 0)
			continue;
		if (is_same_dn(&want, &have) &&
		    (!best || gnutls_x509_crl_get_this_update(set->crl[i]) >
				      gnutls_x509_crl_get_this_update(best)) &&
		    (set->crl_by[i] == issuer || ddps_crl_is_of(set->crl[i], &issuer, 1)))
			best = set->crl[i];
		gnutls_free(have.data);
	}
	gnutls_free(want.data);
	return best;
}

int ddps_cert_revoked(const struct ddps_creds_set *set, gnutls_x509_crt_t crt,
		      gnutls_x509_crt_t issuer, int64_t now, const char *whose,
		      struct ddps_verdict *v)
{
	const char *const file = set->settings.value[DDPS_SET_CRL];
	char subject[64], ca[64], date[16];
	gnutls_x509_crl_t list;
	int64_t until;

	if (!set->ncrl)
		return 0;
	ddps_cert_subject(subject, sizeof subject, crt);
	ddps_cert_issuer(ca, sizeof ca, crt);
	list = find_list(set, issuer);
	if (!list)
		return ddps_verdict_set(
			v, DDPS_E_CRL, DDPS_ALERT_CERTIFICATE_UNKNOWN,
			"%.60s has no list of %s, which signed %s certificate: add it", file, ca,
			whose);
	if (gnutls_x509_crt_check_revocation(crt, &list, 1) == 1)
		return ddps_verdict_set(v, DDPS_E_CERT_REVOKED, DDPS_ALERT_CERTIFICATE_REVOKED,
					"%s certificate %s was revoked, says %.60s", whose, subject,
					file);
	until = gnutls_x509_crl_get_next_update(list);
	if (until < 0 || now <= until || set->settings.stale_crl)
		return 0;
	ddps_cert_date(date, until);
	return ddps_verdict_set(v, DDPS_E_CRL, DDPS_ALERT_CERTIFICATE_UNKNOWN,
				"the list of %s in %.60s was good until %s: get a new one", ca,
				file, date);
}
