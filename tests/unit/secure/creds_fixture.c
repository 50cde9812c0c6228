/* SPDX-License-Identifier: BSD-2-Clause */
/* Certificates of every kind, and files of them. */
#include "creds_fixture.h"
#include <arpa/inet.h>
#include <criterion/criterion.h>
#include <dirent.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static char folder[64];
static char *kept[256];
static unsigned nkept;
static struct cert made[96];
static unsigned nmade;

static void must_work(int rc, const char *what)
{
	cr_assert(rc >= 0, "%s: %s", what, gnutls_strerror(rc));
}

/* ---- certificates ---- */

/* "\\0" of a text becomes a NUL; its length. */
static size_t put_nuls(char *name, const char *text)
{
	size_t len = strlen(text);

	memcpy(name, text, len + 1);
	for (char *p = name; (p = strstr(p, "\\0")); len--) {
		memmove(p + 1, p + 2, strlen(p + 2) + 1);
		*p = 0;
	}
	return len;
}

/* One name of a host as octets of an extension: GnuTLS itself writes no NUL. */
static void set_raw_san(gnutls_x509_crt_t crt, const char *text)
{
	char der[128] = { 0x30, 0, (char)0x82, 0 };
	const size_t len = put_nuls(der + 4, text);

	der[1] = (char)(len + 2);
	der[3] = (char)len;
	must_work(gnutls_x509_crt_set_extension_by_oid(crt, "2.5.29.17", der, len + 4, 0), text);
}

static void add_san(gnutls_x509_crt_t crt, const char *san)
{
	unsigned char addr[16];
	const char *at = strchr(san, ':') + 1;
	const bool v4 = inet_pton(AF_INET, at, addr) == 1;

	if (strstr(san, "\\0")) {
		set_raw_san(crt, at);
		return;
	}
	if (!strncmp(san, "ip:", 3)) {
		cr_assert(v4 || inet_pton(AF_INET6, at, addr) == 1);
		must_work(gnutls_x509_crt_set_subject_alt_name(crt, GNUTLS_SAN_IPADDRESS, addr,
							       v4 ? 4 : 16, GNUTLS_FSAN_APPEND),
			  san);
		return;
	}
	must_work(gnutls_x509_crt_set_subject_alt_name(
			  crt, *san == 'u' ? GNUTLS_SAN_URI : GNUTLS_SAN_DNSNAME, at,
			  (unsigned)strlen(at), GNUTLS_FSAN_APPEND),
		  san);
}

/* GnuTLS takes a minute to append many of them. */
static void set_many_sans(gnutls_x509_crt_t crt, unsigned n)
{
	const size_t each = sizeof "..n0001.example" - 1, len = n * each;
	uint8_t *der = malloc(len + 5);

	cr_assert(der && len < 65536);
	memcpy(der, (uint8_t[]){ 0x30, 0x82, (uint8_t)(len >> 8), (uint8_t)len }, 4);
	for (unsigned i = 0; i < n; i++) {
		char *at = (char *)der + 4 + i * each;

		snprintf(at, each + 1, "..n%04u.example", (i + 1) % 10000);
		at[0] = (char)0x82;
		at[1] = (char)(each - 2);
	}
	must_work(gnutls_x509_crt_set_extension_by_oid(crt, "2.5.29.17", der, len + 4, 0), "names");
	free(der);
}

static void set_uses(gnutls_x509_crt_t crt, const struct cert_spec *s)
{
	const unsigned uses = s->uses ? s->uses : FOR_SERVER | FOR_CLIENT;

	gnutls_x509_crt_set_basic_constraints(crt, s->ca, s->ca ? s->path_len : -1);
	gnutls_x509_crt_set_key_usage(crt, s->key_usage ? s->key_usage
					   : s->ca ? GNUTLS_KEY_KEY_CERT_SIGN | GNUTLS_KEY_CRL_SIGN
						   : GNUTLS_KEY_DIGITAL_SIGNATURE);
	if (s->ca || s->any_use)
		return;
	if (uses & FOR_SERVER)
		gnutls_x509_crt_set_key_purpose_oid(crt, GNUTLS_KP_TLS_WWW_SERVER, 0);
	if (uses & FOR_CLIENT)
		gnutls_x509_crt_set_key_purpose_oid(crt, GNUTLS_KP_TLS_WWW_CLIENT, 0);
}

static void set_key_ids(struct cert *c, const struct cert *ca)
{
	unsigned char id[20];
	size_t len = sizeof id;

	must_work(gnutls_x509_crt_get_key_id(c->crt, 0, id, &len), "id");
	gnutls_x509_crt_set_subject_key_id(c->crt, id, len);
	len = sizeof id;
	must_work(gnutls_x509_crt_get_key_id(ca->crt, 0, id, &len), "id");
	gnutls_x509_crt_set_authority_key_id(c->crt, id, len);
}

struct cert make_cert(const struct cert_spec *s, const struct cert *ca)
{
	static unsigned char serial[4] = { 1 };
	const int64_t from = s->from || s->to ? s->from : -1, to = s->from || s->to ? s->to : 30;
	struct cert c;

	must_work(gnutls_x509_crt_init(&c.crt), "crt");
	must_work(gnutls_x509_privkey_init(&c.key), "key");
	if (s->renews)
		must_work(gnutls_x509_privkey_cpy(c.key, s->renews->key), "copy");
	else
		must_work(gnutls_x509_privkey_generate(
				  c.key, s->rsa ? GNUTLS_PK_RSA : GNUTLS_PK_ECDSA,
				  s->rsa ? s->rsa
					 : GNUTLS_CURVE_TO_BITS(GNUTLS_ECC_CURVE_SECP256R1),
				  0),
			  "generate");
	serial[3]++;
	gnutls_x509_crt_set_version(c.crt, 3);
	gnutls_x509_crt_set_serial(c.crt, serial, sizeof serial);
	gnutls_x509_crt_set_dn_by_oid(c.crt, GNUTLS_OID_X520_COMMON_NAME, 0, s->cn,
				      (unsigned)strlen(s->cn));
	gnutls_x509_crt_set_activation_time(c.crt, NOW + from * DAY);
	gnutls_x509_crt_set_expiration_time(c.crt, NOW + to * DAY);
	must_work(gnutls_x509_crt_set_key(c.crt, c.key), "set key");
	for (unsigned i = 0; i < 5 && s->san[i]; i++)
		add_san(c.crt, s->san[i]);
	if (s->names)
		set_many_sans(c.crt, s->names);
	set_uses(c.crt, s);
	if (!s->no_ids)
		set_key_ids(&c, ca ? ca : &c);
	must_work(gnutls_x509_crt_sign2(c.crt, ca ? ca->crt : c.crt, ca ? ca->key : c.key,
					s->old_hash ? GNUTLS_DIG_SHA1 : GNUTLS_DIG_SHA256, 0),
		  "sign");
	cr_assert(nmade < sizeof made / sizeof *made);
	made[nmade++] = c;
	return c;
}

gnutls_x509_crl_t make_crl(const struct cert *ca, const struct cert *revoked, int64_t until)
{
	gnutls_x509_crl_t crl;

	must_work(gnutls_x509_crl_init(&crl), "crl");
	gnutls_x509_crl_set_version(crl, 2);
	gnutls_x509_crl_set_this_update(crl, NOW - 2 * DAY);
	gnutls_x509_crl_set_next_update(crl, NOW + until * DAY);
	if (revoked)
		must_work(gnutls_x509_crl_set_crt(crl, revoked->crt, NOW - DAY), "revoke");
	must_work(gnutls_x509_crl_sign2(crl, ca->crt, ca->key, GNUTLS_DIG_SHA256, 0), "sign");
	return crl;
}

/* ---- files ---- */

void creds_setup(void)
{
	snprintf(folder, sizeof folder, "/tmp/ddps-creds-XXXXXX");
	cr_assert(mkdtemp(folder));
}

void creds_teardown(void)
{
	DIR *d = opendir(folder);
	struct dirent *e;

	while (d && (e = readdir(d)))
		if (unlinkat(dirfd(d), e->d_name, 0))
			unlinkat(dirfd(d), e->d_name, AT_REMOVEDIR);
	if (d)
		closedir(d);
	rmdir(folder);
	while (nkept)
		free(kept[--nkept]);
	while (nmade) {
		gnutls_x509_crt_deinit(made[--nmade].crt);
		gnutls_x509_privkey_deinit(made[nmade].key);
	}
}

const char *path_of(const char *name)
{
	char *path;

	cr_assert(nkept < sizeof kept / sizeof *kept);
	cr_assert(asprintf(&path, "%s/%s", folder, name) > 0);
	kept[nkept++] = path;
	return path;
}

/* Renamed into place, as who replaces a file in use should. */
static const char *put_file_octets(const char *name, const void *p, size_t len, unsigned mode)
{
	const char *path = path_of(name), *part = path_of(".part");
	const int fd = open(part, O_CREAT | O_TRUNC | O_WRONLY, mode);

	cr_assert(fd >= 0 && !fchmod(fd, mode) && write(fd, p, len) == (ssize_t)len);
	close(fd);
	cr_assert(!rename(part, path));
	return path;
}

const char *put_text(const char *name, const char *text, unsigned mode)
{
	return put_file_octets(name, text, strlen(text), mode);
}

const char *put_certs(const char *name, const struct cert *a, const struct cert *b)
{
	char text[65536] = "";

	for (const struct cert *const each[] = { a, b, NULL }, *const *c = each; *c; c++) {
		gnutls_datum_t pem;

		must_work(gnutls_x509_crt_export2((*c)->crt, GNUTLS_X509_FMT_PEM, &pem), "export");
		strcat(text, (char *)pem.data);
		gnutls_free(pem.data);
	}
	return put_text(name, text, 0644);
}

const char *put_key(const char *name, const struct cert *c)
{
	gnutls_datum_t pem;
	const char *path;

	must_work(gnutls_x509_privkey_export2_pkcs8(c->key, GNUTLS_X509_FMT_PEM, NULL,
						    GNUTLS_PKCS_PLAIN, &pem),
		  "export");
	path = put_file_octets(name, pem.data, pem.size, 0600);
	gnutls_free(pem.data);
	return path;
}

const char *put_crls(const char *name, gnutls_x509_crl_t a, gnutls_x509_crl_t b)
{
	gnutls_x509_crl_t list[2] = { a, b };
	char text[8192];
	size_t at = 0;

	for (int i = 0; i < 2 && list[i]; i++) {
		size_t n = sizeof text - at;

		must_work(gnutls_x509_crl_export(list[i], GNUTLS_X509_FMT_PEM, text + at, &n),
			  "export");
		at += n;
		gnutls_x509_crl_deinit(list[i]);
	}
	return put_file_octets(name, text, at, 0644);
}

const char *put_crl(const char *name, gnutls_x509_crl_t crl)
{
	return put_crls(name, crl, NULL);
}

void make_site(struct site *s)
{
	ddps_secure_attr_init(&s->attr);
	s->ca = make_cert(&(struct cert_spec){ .cn = "CA", .ca = true }, NULL);
	s->host = make_cert(&(struct cert_spec){ .cn = "host",
						 .san = { "dns:host.example", "ip:192.0.2.1" } },
			    &s->ca);
	s->attr.ca = put_certs("ca.pem", &s->ca, NULL);
	s->attr.cert = put_certs("host.pem", &s->host, NULL);
	s->attr.key = put_key("host.key", &s->host);
}

/* ---- what is tested ---- */

int open_code(const struct ddps_secure_attr *attr, struct ddps_verdict *why)
{
	struct ddps_creds *c;
	const int err = ddps_creds_open(&c, attr, NOW, why);

	if (!err)
		ddps_creds_close(c);
	return err;
}

struct ddps_creds *open_creds(const struct ddps_secure_attr *attr)
{
	struct ddps_creds *c = NULL;
	struct ddps_verdict why;

	cr_assert_eq(ddps_creds_open(&c, attr, NOW, &why), 0, "%s", why.text);
	return c;
}

struct ddps_creds_set *use_creds(struct ddps_creds *c, uint64_t ms)
{
	struct ddps_verdict news;

	return ddps_creds_use(c, ms, NOW, &news);
}

struct ddps_creds_peer shown_by(const struct cert *a, const struct cert *b)
{
	static unsigned char der[8][65536];
	static unsigned at;
	struct ddps_creds_peer p = { .psk = NULL };

	for (const struct cert *const each[] = { a, b, NULL }, *const *c = each; *c; c++) {
		size_t len = sizeof *der;

		must_work(gnutls_x509_crt_export((*c)->crt, GNUTLS_X509_FMT_DER, der[at % 8], &len),
			  "export");
		p.cert[p.ncerts++] = (struct ddps_creds_der){ der[at++ % 8], len };
	}
	return p;
}

int judge_code(struct ddps_creds *c, const struct ddps_creds_peer *peer,
	       const struct ddps_creds_want *want, struct ddps_peer_id *id,
	       struct ddps_verdict *why)
{
	static struct ddps_peer_id any_id;
	static struct ddps_verdict any_why;
	struct ddps_creds_set *set = use_creds(c, 0);
	const int err =
		ddps_creds_judge(set, peer, want, NOW, id ? id : &any_id, why ? why : &any_why);

	ddps_creds_release(set);
	return err;
}
