/* SPDX-License-Identifier: BSD-2-Clause */
/* A chain that was verified is not verified again, and nothing else is taken for it. */
#include "creds_fixture.h"
#include <criterion/criterion.h>
#include <dlfcn.h>
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

static int judge(struct ddps_creds *c, const struct ddps_creds_peer *peer,
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
	cr_expect_eq(judge(c, &shown, &listener, 1), 0);
	cr_expect_eq(judge(c, &shown, &listener, 0), 0);
	cr_expect_eq(judge(c, &shown, &dialler, 1), 0);
	cr_expect_eq(judge(c, &shown, &dialler, 0), 0);
	s.attr.peers = put_text("peers", "deny issuer CN=CA\n", 0644);
	ddps_creds_close(c);
	c = open_creds(&s.attr);
	cr_expect_eq(judge(c, &shown, &listener, 1), DDPS_E_NOT_LISTED);
	cr_expect_eq(judge(c, &shown, &listener, 0), DDPS_E_NOT_LISTED,
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
	cr_expect_eq(judge(c, &shown, &listener, 1), 0);
	/* the last octet is of the signature */
	cr_assert_lt(shown.cert[0].len, sizeof der);
	memcpy(der, shown.cert[0].p, shown.cert[0].len);
	der[shown.cert[0].len - 1] ^= 1;
	forged = shown;
	forged.cert[0].p = der;
	for (int i = 0; i < 2; i++)
		cr_expect_eq(judge(c, &forged, &listener, 1), DDPS_E_CERT_CA,
			     "what was wrong is asked again");
	der[shown.cert[0].len - 1] ^= 1;
	der[shown.cert[0].len] = 0;
	forged.cert[0].len++;
	cr_expect_eq(judge(c, &forged, &listener, 0), DDPS_E_CERT, "an octet behind it");
	cr_expect_eq(judge(c, &shown, &listener, 0), 0);
	ddps_creds_close(c);
	s.attr.crl = put_crl("crl.pem", make_crl(&s.ca, &peer, 9));
	c = open_creds(&s.attr);
	for (unsigned i = 0; i < 2; i++)
		cr_expect_eq(judge(c, &shown, &listener, !i), DDPS_E_CERT_REVOKED);
	ddps_creds_close(c);
}

/* Many others come in between. */
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
