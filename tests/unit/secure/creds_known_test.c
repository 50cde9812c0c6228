/* SPDX-License-Identifier: BSD-2-Clause */
/* A chain that was verified is not verified again, and nothing else is taken for it. */
#include "creds_fixture.h"
#include <criterion/criterion.h>
#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

TestSuite(creds_known, .init = creds_setup, .fini = creds_teardown);

static const struct ddps_creds_want listener = { .server = true }, dialler = { .server = false };
static unsigned verified; /* times that the library was asked */

/* In place of the library's. */
int gnutls_x509_trust_list_verify_crt2(gnutls_x509_trust_list_t list, gnutls_x509_crt_t *chain,
				       unsigned n, gnutls_typed_vdata_st *data, unsigned elements,
				       unsigned flags, unsigned *status,
				       gnutls_verify_output_function *each)
{
	int (*theirs)(gnutls_x509_trust_list_t, gnutls_x509_crt_t *, unsigned,
		      gnutls_typed_vdata_st *, unsigned, unsigned, unsigned *,
		      gnutls_verify_output_function *);

	*(void **)&theirs = dlsym(RTLD_NEXT, "gnutls_x509_trust_list_verify_crt2");
	cr_assert(theirs);
	verified++;
	return theirs(list, chain, n, data, elements, flags, status, each);
}

static int judge_counted(struct ddps_creds *c, const struct ddps_creds_peer *peer,
			 const struct ddps_creds_want *want, unsigned times)
{
	const unsigned before = verified;
	struct ddps_verdict why;
	const int err = judge_code(c, peer, want, NULL, &why);

	cr_expect_eq(verified - before, times, "%u times, not %u: %s", verified - before, times,
		     why.text);
	return err;
}

Test(creds_known, once_for_each_use_and_set_of_files)
{
	struct ddps_creds *c;
	struct ddps_creds_peer shown;
	struct cert peer;
	struct site s;

	make_site(&s);
	peer = make_cert(&(struct cert_spec){ .cn = "p" }, &s.ca);
	shown = shown_by(&peer, NULL);
	c = open_creds(&s.attr);
	cr_expect_eq(judge_counted(c, &shown, &listener, 1), 0);
	cr_expect_eq(judge_counted(c, &shown, &listener, 0), 0);
	cr_expect_eq(judge_counted(c, &shown, &dialler, 1), 0);
	cr_expect_eq(judge_counted(c, &shown, &dialler, 0), 0);
	s.attr.peers = put_text("peers", "deny issuer CN=CA\n", 0644);
	ddps_creds_close(c);
	c = open_creds(&s.attr);
	cr_expect_eq(judge_counted(c, &shown, &listener, 1), DDPS_E_NOT_LISTED);
	cr_expect_eq(judge_counted(c, &shown, &listener, 0), DDPS_E_NOT_LISTED,
		     "the list is asked each time");
	ddps_creds_close(c);
}

Test(creds_known, what_is_revoked_or_of_another_ca_is_refused)
{
	struct ddps_creds_peer shown, forged;
	struct ddps_creds *c;
	struct cert peer;
	uint8_t der[4096];
	struct site s;

	make_site(&s);
	peer = make_cert(&(struct cert_spec){ .cn = "p" }, &s.ca);
	shown = shown_by(&peer, NULL);
	c = open_creds(&s.attr);
	cr_expect_eq(judge_counted(c, &shown, &listener, 1), 0);
	/* the last octet is of the signature */
	cr_assert_lt(shown.cert[0].len, sizeof der);
	memcpy(der, shown.cert[0].p, shown.cert[0].len);
	der[shown.cert[0].len - 1] ^= 1;
	forged = shown;
	forged.cert[0].p = der;
	for (int i = 0; i < 2; i++)
		cr_expect_eq(judge_counted(c, &forged, &listener, 1), DDPS_E_CERT_CA,
			     "what was wrong is asked again");
	der[shown.cert[0].len - 1] ^= 1;
	der[shown.cert[0].len] = 0;
	forged.cert[0].len++;
	cr_expect_eq(judge_counted(c, &forged, &listener, 0), DDPS_E_CERT, "an octet behind it");
	cr_expect_eq(judge_counted(c, &shown, &listener, 0), 0);
	ddps_creds_close(c);
	s.attr.crl = put_crl("crl.pem", make_crl(&s.ca, &peer, 9));
	c = open_creds(&s.attr);
	for (unsigned i = 0; i < 2; i++)
		cr_expect_eq(judge_counted(c, &shown, &listener, !i), DDPS_E_CERT_REVOKED);
	ddps_creds_close(c);
}

/* Many others come in between. */
/* Which of two the chain goes through is a matter of time, and what the one allows the other may not. */
Test(creds_known, a_renewed_ca_may_allow_less)
{
	const struct cert a = make_cert(&(struct cert_spec){ .cn = "m",
							     .ca = true,
							     .path_len = 1,
							     .from = -9,
							     .to = 1 },
					NULL),
			  b = make_cert(
				  &(struct cert_spec){
					  .cn = "m", .ca = true, .path_len = 0, .renews = &a },
				  NULL),
			  below = make_cert(&(struct cert_spec){ .cn = "x", .ca = true }, &a),
			  host = make_cert(&(struct cert_spec){ .cn = "y" }, &below);
	const struct ddps_creds_peer peer = shown_by(&host, &below);
	struct ddps_creds_set *set;
	struct ddps_peer_id id;
	struct ddps_verdict why;
	struct ddps_creds *c;
	struct site s;

	make_site(&s);
	s.attr.ca = put_certs("ca.pem", &a, &b);
	c = open_creds(&s.attr);
	set = use_creds(c, 0);
	cr_expect_eq(ddps_creds_judge(set, &peer, &listener, NOW, &id, &why), 0, "%s", why.text);
	verified = 0;
	ddps_creds_judge(set, &peer, &listener, NOW + 2 * DAY, &id, &why);
	cr_expect_eq(verified, 1);
	ddps_creds_release(set);
	ddps_creds_close(c);
}

Test(creds_known, who_was_here_long_ago_is_verified_again)
{
	static uint8_t hash[DDPS_CHAIN_HASH];
	struct ddps_known *k = ddps_known_new();

	cr_assert(k);
	for (unsigned i = 1; i <= 65; i++) {
		memset(hash, (int)i, sizeof hash);
		cr_expect(!ddps_known_has(k, hash));
		ddps_known_add(k, hash);
		cr_expect(ddps_known_has(k, hash));
	}
	memset(hash, 1, sizeof hash);
	cr_expect(!ddps_known_has(k, hash));
	memset(hash, 2, sizeof hash);
	cr_expect(ddps_known_has(k, hash));
	cr_expect(!ddps_known_has(NULL, hash));
	ddps_known_add(NULL, hash);
	free(k);
}

/* Another signature of the same certificate, which is as good: s and n - s are (ECDSA).  Octets at @dst. */
static size_t sign_otherwise(uint8_t *dst, const struct cert *c, const struct ddps_creds_der *der)
{
	static const uint8_t order[32] = { 0xff, 0xff, 0xff, 0xff, 0x00, 0x00, 0x00, 0x00,
					   0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff,
					   0xbc, 0xe6, 0xfa, 0xad, 0xa7, 0x17, 0x9e, 0x84,
					   0xf3, 0xb9, 0xca, 0xc2, 0xfc, 0x63, 0x25, 0x51 };
	uint8_t sig[80], s[33] = { 0 };
	size_t len = sizeof sig, rest, at, from, n;
	int less = 0;

	cr_assert(!gnutls_x509_crt_get_signature(c->crt, (char *)sig, &len) && len < 80);
	at = 4 + sig[3]; /* behind SEQUENCE and r */
	n = sig[at + 1];
	rest = der->len - len - 3;
	from = at + 2 + (n == 33);
	n -= n == 33;
	memcpy(s + 33 - n, sig + from, n);
	for (int i = 31; i >= 0; i--) {
		const int d = order[i] - s[i + 1] - less;

		less = d < 0;
		s[i + 1] = (uint8_t)(less ? d + 256 : d);
	}
	for (from = 0; !s[from] && s[from + 1] < 0x80; from++)
		;
	n = sizeof s - from;
	sig[1] = (uint8_t)(at + n);
	sig[at + 1] = (uint8_t)n;
	memcpy(sig + at + 2, s + from, n);
	n += at + 2;
	memcpy(dst, der->p, rest);
	dst[rest] = 3;
	dst[rest + 1] = (uint8_t)(n + 1);
	dst[rest + 2] = 0;
	memcpy(dst + rest + 3, sig, n);
	at = rest + 3 + n - 4;
	dst[2] = (uint8_t)(at >> 8);
	dst[3] = (uint8_t)at;
	return at + 4;
}

static void print_rule(char *dst, const char *word, const uint8_t *fp)
{
	dst += sprintf(dst, "%s fp ", word);
	for (int i = 0; i < 32; i++)
		dst += sprintf(dst, "%02x", fp[i]);
}

Test(creds_known, a_fingerprint_is_what_its_owner_makes_it)
{
	struct ddps_creds_peer shown, other;
	struct ddps_peer_id was, is;
	struct ddps_verdict why;
	struct ddps_creds *c;
	struct cert peer;
	uint8_t der[4096];
	char rules[80];
	struct site s;

	make_site(&s);
	peer = make_cert(&(struct cert_spec){ .cn = "p", .san = { "dns:a" } }, &s.ca);
	shown = other = shown_by(&peer, NULL);
	other.cert[0].p = der;
	other.cert[0].len = sign_otherwise(der, &peer, &shown.cert[0]);
	c = open_creds(&s.attr);
	cr_expect_eq(judge_code(c, &shown, &listener, &was, &why), 0);
	cr_expect_eq(judge_code(c, &other, &listener, &is, &why), 0, "%s", why.text);
	cr_expect(memcmp(was.fingerprint, is.fingerprint, sizeof is.fingerprint) != 0);
	ddps_creds_close(c);
	print_rule(rules, "deny", was.fingerprint);
	s.attr.peers = put_text("peers", rules, 0644);
	cr_expect_eq(open_code(&s.attr, &why), DDPS_E_CONFIG);
	cr_expect(strstr(why.text, "line 1: 'deny fp' keeps nobody out"), "%s", why.text);
	print_rule(rules, "allow", was.fingerprint);
	s.attr.peers = put_text("peers", rules, 0644);
	c = open_creds(&s.attr);
	cr_expect_eq(judge_code(c, &shown, &listener, NULL, &why), 0, "%s", why.text);
	cr_expect_eq(judge_code(c, &other, &listener, NULL, &why), DDPS_E_NOT_LISTED);
	ddps_creds_close(c);
}
