/* SPDX-License-Identifier: BSD-2-Clause */
/* Judging peers: chain, time, revocation, use, name, list, the program. */
#include "creds_fixture.h"
#include <criterion/criterion.h>
#include <stdio.h>
#include <string.h>

TestSuite(creds_judge, .init = creds_setup, .fini = creds_teardown);

static const struct ddps_creds_want listener = { .server = true };

static struct ddps_creds_want want_host(const char *host)
{
	return (struct ddps_creds_want){ .host = host };
}

/* A certificate of this kind, from the site's CA, judged from the view of @want. */
static int judge_kind(struct site *s, const struct cert_spec *spec,
		      const struct ddps_creds_want *want, const char *says)
{
	struct ddps_creds *c = open_creds(&s->attr);
	const struct cert peer = make_cert(spec, &s->ca);
	const struct ddps_creds_peer shown = shown_by(&peer, NULL);
	struct ddps_verdict why;
	const int err = judge_code(c, &shown, want, NULL, &why);

	cr_expect(strstr(why.text, says), "no '%s' in: %s", says, why.text);
	ddps_creds_close(c);
	return err;
}

Test(creds_judge, a_peer_of_the_ca_is_known)
{
	struct site s;
	struct ddps_creds *c;
	struct ddps_peer_id id;
	struct ddps_verdict why;
	struct ddps_creds_peer peer;
	struct ddps_creds_want want = want_host("HOST.example.");

	make_site(&s);
	c = open_creds(&s.attr);
	peer = shown_by(&s.host, NULL);
	cr_expect_eq(judge_code(c, &peer, &want, &id, &why), 0, "%s", why.text);
	cr_expect_eq(id.how, (unsigned)DDPS_PEER_X509);
	cr_expect_str_eq(id.name, "dns:host.example");
	cr_expect_str_eq(id.names, "dns:host.example\nip:192.0.2.1");
	cr_expect_str_eq(id.issuer, "CN=CA");
	cr_expect_eq(id.not_after, NOW + 30 * DAY);
	cr_expect_eq(id.depth, 1u);
	want = want_host("192.0.2.1");
	cr_expect_eq(judge_code(c, &peer, &want, &id, &why), 0, "%s", why.text);
	cr_expect_str_eq(id.name, "ip:192.0.2.1");
	want = want_host("[::ffff:192.0.2.1]");
	cr_expect_eq(judge_code(c, &peer, &want, &id, &why), 0, "%s", why.text);
	cr_expect_eq(judge_code(c, &peer, &listener, &id, &why), 0, "%s", why.text);
	ddps_creds_close(c);
}

Test(creds_judge, no_certificate)
{
	struct site s;
	struct ddps_creds *c;
	struct ddps_verdict why;

	make_site(&s);
	c = open_creds(&s.attr);
	cr_expect_eq(judge_code(c, &(struct ddps_creds_peer){ .psk = NULL }, &listener, NULL, &why),
		     DDPS_E_NO_CERT);
	cr_expect_eq(why.alert, (int)DDPS_ALERT_CERTIFICATE_REQUIRED);
	ddps_creds_close(c);
}

Test(creds_judge, time_is_that_of_the_argument)
{
	struct site s;

	make_site(&s);
	cr_expect_eq(judge_kind(&s, &(struct cert_spec){ .cn = "p", .from = -9, .to = -1 },
				&listener, "the peer's certificate CN=p expired on 2027-01-14"),
		     DDPS_E_CERT_EXPIRED);
	cr_expect_eq(judge_kind(&s, &(struct cert_spec){ .cn = "p", .from = 1, .to = 9 }, &listener,
				"valid from 2027-01-16"),
		     DDPS_E_CERT_NOT_YET);
}

Test(creds_judge, use)
{
	const struct ddps_creds_want any = { .server = false };
	struct site s;

	make_site(&s);
	cr_expect_eq(judge_kind(&s, &(struct cert_spec){ .cn = "p", .uses = FOR_SERVER }, &listener,
				"clients"),
		     DDPS_E_CERT_USAGE);
	cr_expect_eq(judge_kind(&s, &(struct cert_spec){ .cn = "p", .uses = FOR_CLIENT }, &any,
				"servers"),
		     DDPS_E_CERT_USAGE);
	cr_expect_eq(judge_kind(&s, &(struct cert_spec){ .cn = "p", .uses = FOR_CLIENT }, &listener,
				""),
		     0);
	cr_expect_eq(judge_kind(&s, &(struct cert_spec){ .cn = "p", .any_use = true }, &any, ""),
		     0);
	cr_expect_eq(judge_kind(&s,
				&(struct cert_spec){ .cn = "p",
						     .key_usage = GNUTLS_KEY_KEY_ENCIPHERMENT },
				&any, "signatures"),
		     DDPS_E_CERT_USAGE);
	cr_expect_eq(judge_kind(&s, &(struct cert_spec){ .cn = "p", .rsa = 1024 }, &any, "2048"),
		     DDPS_E_CERT_WEAK);
	cr_expect_eq(judge_kind(&s, &(struct cert_spec){ .cn = "p", .old_hash = true }, &any,
				"SHA-1"),
		     DDPS_E_CERT_WEAK);
}

Test(creds_judge, a_ca_is_no_peer)
{
	struct site s;
	struct ddps_creds *c;
	struct ddps_creds_peer peer;

	make_site(&s);
	c = open_creds(&s.attr);
	peer = shown_by(&s.ca, NULL);
	cr_expect_neq(judge_code(c, &peer, &listener, NULL, NULL), 0);
	ddps_creds_close(c);
}

/* Whoever wants can make one with ten thousand names: they are read of those a CA vouches for, and bounded. */
Test(creds_judge, names_of_strangers_are_not_read_and_others_have_a_bound)
{
	const struct cert_spec few = { .cn = "p", .names = 1000 },
			       many = { .cn = "p", .names = 1200 };
	const struct ddps_creds_want last = { .host = "n1000.example" };
	struct site s;
	struct ddps_creds *c;
	struct cert own, good, wordy;
	struct ddps_creds_peer peer;
	struct ddps_peer_id id;
	struct ddps_verdict why;

	make_site(&s);
	own = make_cert(&few, NULL);
	good = make_cert(&few, &s.ca);
	wordy = make_cert(&many, &s.ca);
	c = open_creds(&s.attr);
	peer = shown_by(&own, NULL);
	cr_expect_eq(judge_code(c, &peer, &listener, &id, NULL), DDPS_E_CERT_CA);
	cr_expect_str_eq(id.names, "");
	cr_expect_str_eq(id.issuer, "CN=p");
	peer = shown_by(&good, NULL);
	cr_expect_eq(judge_code(c, &peer, &last, &id, &why), 0, "%s", why.text);
	cr_expect_str_eq(id.name, "dns:n1000.example");
	peer = shown_by(&wordy, NULL);
	cr_expect_eq(judge_code(c, &peer, &listener, &id, &why), DDPS_E_CERT);
	cr_expect(strstr(why.text, "16384 octets of names"), "%s", why.text);
	cr_expect_str_eq(id.names, "");
	ddps_creds_close(c);
}

Test(creds_judge, another_ca_does_not_vouch_whatever_its_name)
{
	struct site s;
	struct ddps_creds *c;
	struct ddps_verdict why;

	make_site(&s);
	c = open_creds(&s.attr);
	for (int form = 0; form < 4; form++) {
		const bool same = form & 1, no_ids = form & 2;
		const struct cert ca = make_cert(&(struct cert_spec){ .cn = same ? "CA" : "evil",
								      .ca = true,
								      .no_ids = no_ids },
						 NULL),
				  peer = make_cert(
					  &(struct cert_spec){ .cn = "p", .no_ids = no_ids }, &ca);
		struct ddps_creds_peer shown = shown_by(&peer, NULL);

		cr_expect_eq(judge_code(c, &shown, &listener, NULL, &why), DDPS_E_CERT_CA, "%s",
			     why.text);
		cr_expect_eq(why.alert, (int)DDPS_ALERT_UNKNOWN_CA);
		shown = shown_by(&peer, &ca); /* what it brings along is not trusted */
		cr_expect_eq(judge_code(c, &shown, &listener, NULL, &why), DDPS_E_CERT_CA, "%s",
			     why.text);
	}
	ddps_creds_close(c);
}

Test(creds_judge, chains)
{
	struct site s;
	struct ddps_creds *c;
	struct ddps_peer_id id;
	struct ddps_verdict why;
	struct ddps_creds_peer shown;
	struct cert top, middle, none, leaf, under;

	make_site(&s);
	top = make_cert(&(struct cert_spec){ .cn = "top", .ca = true, .path_len = 1 }, NULL);
	middle = make_cert(&(struct cert_spec){ .cn = "middle", .ca = true }, &top);
	leaf = make_cert(&(struct cert_spec){ .cn = "leaf" }, &middle);
	s.attr.ca = put_certs("ca.pem", &s.ca, &top);
	c = open_creds(&s.attr);
	shown = shown_by(&leaf, &middle);
	cr_expect_eq(judge_code(c, &shown, &listener, &id, &why), 0, "%s", why.text);
	cr_expect_eq(id.depth, 2u);
	shown = shown_by(&leaf, NULL); /* without the one between */
	cr_expect_eq(judge_code(c, &shown, &listener, NULL, &why), DDPS_E_CERT_CA);
	none = make_cert(&(struct cert_spec){ .cn = "none" }, &top);
	leaf = make_cert(&(struct cert_spec){ .cn = "leaf" }, &none);
	shown = shown_by(&leaf, &none); /* a host that signs */
	cr_expect_neq(judge_code(c, &shown, &listener, NULL, &why), 0);
	under = make_cert(&(struct cert_spec){ .cn = "under", .ca = true }, &s.ca);
	leaf = make_cert(&(struct cert_spec){ .cn = "leaf" }, &under);
	shown = shown_by(&leaf, &under); /* the site's CA may not make CAs */
	cr_expect_eq(judge_code(c, &shown, &listener, NULL, &why), DDPS_E_CERT_CA, "%s", why.text);
	ddps_creds_close(c);
}

Test(creds_judge, octets_that_are_no_certificate)
{
	struct site s;
	struct ddps_creds *c;
	struct ddps_verdict why;
	struct ddps_creds_peer peer;
	unsigned char der[8192];
	size_t len;

	make_site(&s);
	c = open_creds(&s.attr);
	peer = shown_by(&s.host, NULL);
	len = peer.cert[0].len;
	memcpy(der, peer.cert[0].p, len);
	peer.cert[0].p = der;
	for (size_t cut = 0; cut < len; cut += 7) {
		peer.cert[0].len = cut;
		cr_expect_neq(judge_code(c, &peer, &listener, NULL, NULL), 0);
	}
	peer.cert[0].len = len;
	for (size_t i = 0; i < len; i++) { /* each octet changed */
		der[i] ^= 0x20;
		cr_expect_neq(judge_code(c, &peer, &listener, NULL, &why), 0, "octet %zu", i);
		der[i] ^= 0x20;
	}
	cr_expect_eq(judge_code(c, &peer, &listener, NULL, NULL), 0);
	peer.ncerts = DDPS_CREDS_CHAIN + 1;
	cr_expect_eq(judge_code(c, &peer, &listener, NULL, &why), DDPS_E_CERT);
	ddps_creds_close(c);
}

Test(creds_judge, revoked_peers_come_no_more)
{
	struct site s;
	struct ddps_creds *c;
	struct ddps_verdict why;
	struct ddps_creds_peer shown;
	struct cert peer;

	make_site(&s);
	peer = make_cert(&(struct cert_spec){ .cn = "p" }, &s.ca);
	shown = shown_by(&peer, NULL);
	s.attr.crl = put_crl("crl.pem", make_crl(&s.ca, NULL, 9));
	c = open_creds(&s.attr);
	cr_expect_eq(judge_code(c, &shown, &listener, NULL, &why), 0, "%s", why.text);
	put_crl("crl.pem", make_crl(&s.ca, &peer, 9));
	cr_expect_eq(ddps_creds_reload(c, NOW, &why), 0, "%s", why.text);
	cr_expect_eq(judge_code(c, &shown, &listener, NULL, &why), DDPS_E_CERT_REVOKED);
	cr_expect_eq(why.alert, (int)DDPS_ALERT_CERTIFICATE_REVOKED);
	ddps_creds_close(c);
}

/* Lists of an intermediate are there, whether it is trusted itself or shown by peers, and what the root says of it
 * counts in both. */
/* The same name and key, another time: whichever stands first, in the file of CAs and in what a peer shows. */
Test(creds_judge, of_a_renewed_ca_the_one_that_is_valid_counts)
{
	for (int order = 0; order < 2; order++) {
		const struct ddps_creds_want want = { .server = true };
		struct cert old, now, peer, root, middle;
		struct ddps_creds_peer shown, more;
		struct ddps_verdict why;
		struct ddps_creds *c;
		struct site s;

		make_site(&s);
		old = make_cert(
			&(struct cert_spec){ .cn = "roll", .ca = true, .from = -9, .to = -1 },
			NULL);
		now = make_cert(&(struct cert_spec){ .cn = "roll", .ca = true, .renews = &old },
				NULL);
		peer = make_cert(&(struct cert_spec){ .cn = "p" }, &old);
		shown = shown_by(&peer, NULL);
		s.attr.ca = put_certs("ca.pem", order ? &now : &old, order ? &old : &now);
		s.attr.crl = put_crl("crl.pem", make_crl(&old, NULL, 9));
		s.attr.cert = put_certs("peer.pem", &peer, NULL);
		s.attr.key = put_key("peer.key", &peer);
		c = open_creds(&s.attr);
		cr_expect_eq(judge_code(c, &shown, &want, NULL, &why), 0, "%d: %s", order,
			     why.text);
		ddps_creds_close(c);

		root = make_cert(&(struct cert_spec){ .cn = "root", .ca = true, .path_len = -1 },
				 NULL);
		old = make_cert(
			&(struct cert_spec){ .cn = "mid", .ca = true, .from = -9, .to = -1 },
			&root);
		middle = make_cert(&(struct cert_spec){ .cn = "mid", .ca = true, .renews = &old },
				   &root);
		peer = make_cert(&(struct cert_spec){ .cn = "p" }, &middle);
		s.attr.ca = put_certs("ca.pem", &root, NULL);
		s.attr.crl = NULL;
		c = open_creds(&s.attr);
		shown = shown_by(&peer, order ? &middle : &old);
		more = shown_by(order ? &old : &middle, NULL);
		shown.cert[shown.ncerts++] = more.cert[0];
		cr_expect_eq(judge_code(c, &shown, &want, NULL, &why), 0, "%d: %s", order,
			     why.text);
		ddps_creds_close(c);
	}
}

Test(creds_judge, revoked_below_an_intermediate)
{
	for (int trusted = 0; trusted < 2; trusted++) {
		struct cert middle, leaf, gone, false_one;
		struct ddps_creds_peer shown, of_gone;
		struct ddps_verdict why;
		struct ddps_creds *c;
		struct site s;

		make_site(&s);
		s.ca = make_cert(&(struct cert_spec){ .cn = "top", .ca = true, .path_len = 1 },
				 NULL);
		middle = make_cert(&(struct cert_spec){ .cn = "middle", .ca = true }, &s.ca);
		false_one = make_cert(&(struct cert_spec){ .cn = "middle", .ca = true }, NULL);
		s.host = make_cert(&(struct cert_spec){ .cn = "host" }, &s.ca);
		s.attr.cert = put_certs("own.pem", &s.host, NULL);
		s.attr.key = put_key("own.key", &s.host);
		s.attr.ca = put_certs("ca.pem", &s.ca, trusted ? &middle : NULL);
		leaf = make_cert(&(struct cert_spec){ .cn = "leaf" }, &middle);
		gone = make_cert(&(struct cert_spec){ .cn = "gone" }, &middle);
		shown = shown_by(&leaf, &middle);
		of_gone = shown_by(&gone, &middle);
		s.attr.crl = put_crls("crl.pem", make_crl(&s.ca, NULL, 9), NULL);
		c = open_creds(&s.attr);
		cr_expect_eq(judge_code(c, &shown, &listener, NULL, &why), DDPS_E_CRL);
		put_crls("crl.pem", make_crl(&s.ca, NULL, 9), make_crl(&middle, &gone, 9));
		cr_expect_eq(ddps_creds_reload(c, NOW, &why), 0, "%s", why.text);
		cr_expect_eq(judge_code(c, &shown, &listener, NULL, &why), 0, "%s", why.text);
		cr_expect_eq(judge_code(c, &of_gone, &listener, NULL, &why), DDPS_E_CERT_REVOKED);
		put_crls("crl.pem", make_crl(&s.ca, &middle, 9), make_crl(&middle, NULL, 9));
		cr_expect_eq(ddps_creds_reload(c, NOW, &why), 0, "%s", why.text);
		cr_expect_eq(judge_code(c, &shown, &listener, NULL, &why), DDPS_E_CERT_REVOKED);
		if (!trusted) { /* of that name, and signed by somebody else */
			put_crls("crl.pem", make_crl(&s.ca, NULL, 9),
				 make_crl(&false_one, NULL, 9));
			cr_expect_eq(ddps_creds_reload(c, NOW, &why), 0, "%s", why.text);
			cr_expect_eq(judge_code(c, &shown, &listener, NULL, &why), DDPS_E_CRL);
		}
		ddps_creds_close(c);
	}
}

Test(creds_judge, a_list_that_is_missing_or_old_lets_nobody_in)
{
	struct site s;
	struct ddps_creds *c;
	struct ddps_creds_set *set;
	struct ddps_verdict why;
	struct ddps_creds_peer shown;
	struct ddps_peer_id id;
	struct cert other = make_cert(&(struct cert_spec){ .cn = "second", .ca = true }, NULL),
		    peer = make_cert(&(struct cert_spec){ .cn = "p" }, &other);

	make_site(&s);
	s.attr.ca = put_certs("ca.pem", &s.ca, &other);
	s.attr.crl = put_crl("crl.pem", make_crl(&s.ca, NULL, 9));
	c = open_creds(&s.attr);
	shown = shown_by(&peer, NULL);
	cr_expect_eq(judge_code(c, &shown, &listener, NULL, &why), DDPS_E_CRL, "%s", why.text);
	shown = shown_by(&s.host, NULL);
	set = use_creds(c, 0);
	cr_expect_eq(ddps_creds_judge(set, &shown, &listener, NOW + 10 * DAY, &id, &why),
		     DDPS_E_CRL, "%s", why.text);
	ddps_creds_release(set);
	ddps_creds_close(c);
}

/* ---- names ---- */

Test(creds_judge, names_are_those_of_rfc_9525)
{
	static const struct {
		const char *san, *host;
		bool fits;
	} t[] = {
		{ "dns:a.example", "a.example", true },
		{ "dns:a.example", "A.EXAMPLE", true },
		{ "dns:a.example", "b.a.example", false },
		{ "dns:a.example", "example", false },
		{ "dns:*.example.org", "a.example.org", true },
		{ "dns:*.example.org", "a.b.example.org", false },
		{ "dns:*.example.org", "example.org", false },
		{ "dns:*.org", "example.org", false },
		{ "dns:a*.example.org", "ab.example.org", false },
		{ "dns:*a.example.org", "ba.example.org", false },
		{ "dns:a.*.example.org", "a.b.example.org", false },
		{ "dns:*", "a", false },
		{ "dns:192.0.2.1", "192.0.2.1", false }, /* digits are no address */
		{ "ip:192.0.2.1", "192.0.2.1", true },
		{ "ip:192.0.2.1", "192.0.2.2", false },
		{ "ip:2001:db8::1", "[2001:db8::1]", true },
		{ "ip:fe80::1", "fe80::1%eth0", true },
		{ "dns:a.example\\0.evil.example", "a.example", false },
		{ "dns:a.example\\0.evil.example", "evil.example", false },
		{ "uri:a.example", "a.example", false },
	};
	struct site s;

	make_site(&s);
	for (size_t i = 0; i < sizeof t / sizeof *t; i++) {
		const struct ddps_creds_want want = want_host(t[i].host);
		const int err =
			judge_kind(&s,
				   &(struct cert_spec){ .cn = "a.example", .san = { t[i].san } },
				   &want, "");

		cr_expect_eq(err, t[i].fits ? 0 : DDPS_E_CERT_NAME, "%s for %s: %d", t[i].san,
			     t[i].host, err);
	}
	/* never the common name */
	cr_expect_eq(judge_kind(&s, &(struct cert_spec){ .cn = "a.example" },
				&(struct ddps_creds_want){ .host = "a.example" }, "no name"),
		     DDPS_E_CERT_NAME);
}

Test(creds_judge, what_a_name_says_is_printed_without_harm)
{
	struct site s;
	struct ddps_creds *c;
	struct ddps_peer_id id;
	struct ddps_creds_peer shown;
	struct cert peer;

	make_site(&s);
	c = open_creds(&s.attr);
	/* NUL, escape and line feed */
	peer = make_cert(&(struct cert_spec){ .cn = "p", .san = { "dns:c\\0\033[2J\ndns:d\\e" } },
			 &s.ca);
	shown = shown_by(&peer, NULL);
	cr_expect_eq(judge_code(c, &shown, &listener, &id, NULL), 0);
	cr_expect_str_eq(id.names, "dns:c\\x00\\x1B[2J\\x0Adns:d\\x5Ce");
	ddps_creds_close(c);
}

Test(creds_judge, the_peer_that_is_wanted_may_be_set)
{
	static const struct {
		const char *peer;
		int code;
	} t[] = {
		{ "a.example", 0 },
		{ "x.example,dns:a.example", 0 },
		{ "uri:spiffe://td/ns/x", 0 },
		{ "uri-prefix:spiffe://td/ns/", 0 },
		{ "uri-prefix:spiffe://td/ns/x/", DDPS_E_CERT_NAME },
		{ "uri:spiffe://td/ns", DDPS_E_CERT_NAME },
		{ "x.example", DDPS_E_CERT_NAME },
		{ "psk:a.example", DDPS_E_CERT_NAME },
		{ "fp:0000000000000000000000000000000000000000000000000000000000000000",
		  DDPS_E_CERT_NAME },
	};
	const struct cert_spec spec = { .cn = "p",
					.san = { "dns:a.example", "uri:spiffe://td/ns/x" } };
	struct site s;

	make_site(&s);
	for (size_t i = 0; i < sizeof t / sizeof *t; i++) {
		const struct ddps_creds_want want = { .host = "10.0.0.1" };

		s.attr.peer = t[i].peer; /* a listener's peers too */
		cr_expect_eq(judge_kind(&s, &spec, &want, ""), t[i].code, "%s", t[i].peer);
		cr_expect_eq(judge_kind(&s, &spec, &listener, ""), t[i].code, "%s", t[i].peer);
		s.attr.peer = NULL;
	}
}

Test(creds_judge, a_name_of_spiffe_is_alone_and_of_no_ca)
{
	struct site s;

	make_site(&s);
	cr_expect_eq(
		judge_kind(&s,
			   &(struct cert_spec){ .cn = "p",
						.san = { "uri:spiffe://td/a", "uri:https://b" } },
			   &listener, "another URI"),
		DDPS_E_CERT_USAGE);
	cr_expect_eq(judge_kind(&s,
				&(struct cert_spec){ .cn = "p",
						     .san = { "uri:spiffe://td/a" },
						     .key_usage = GNUTLS_KEY_DIGITAL_SIGNATURE |
								  GNUTLS_KEY_CRL_SIGN },
				&listener, "key usage"),
		     DDPS_E_CERT_USAGE);
}

Test(creds_judge, each_address_has_its_name)
{
	const struct cert_spec a = { .cn = "a", .san = { "dns:a.example" } };
	struct ddps_creds_want want = { .host = "10.0.0.1" };
	struct site s;

	make_site(&s);
	s.attr.hosts = put_text("hosts", "10.0.0.1 a.example\n10.0.0.2\tb.example\n", 0644);
	cr_expect_eq(judge_kind(&s, &a, &want, ""), 0);
	want.host = "10.0.0.2";
	cr_expect_eq(judge_kind(&s, &a, &want, "b.example"), DDPS_E_CERT_NAME);
	want.host = "10.0.0.3"; /* that is not in the file: by its address */
	cr_expect_eq(judge_kind(&s, &a, &want, "ip:10.0.0.3"), DDPS_E_CERT_NAME);
}

/* ---- the list ---- */

Test(creds_judge, the_first_rule_that_fits_decides)
{
	static const struct {
		const char *rules;
		int code;
		const char *says;
	} t[] = {
		{ "allow dns a.example\n", 0, "" },
		{ "allow dns *.example\n", DDPS_E_NOT_LISTED, "no rule" }, /* one label behind */
		{ "allow dns *.b.example\nallow ip 192.0.2.7\n", 0, "" },
		{ "deny ip 192.0.2.7\nallow dns a.example\n", DDPS_E_NOT_LISTED, ":1 denies" },
		{ "allow dns a.example\ndeny ip 192.0.2.7\n", 0, "" },
		{ "allow issuer CN=CA\n", 0, "" },
		{ "allow issuer CN=C\n", DDPS_E_NOT_LISTED, "no rule" },
		{ "allow psk a.example\n", DDPS_E_NOT_LISTED, "no rule" },
		{ "# nobody\n", DDPS_E_NOT_LISTED, "no rule" },
	};
	const struct cert_spec spec = { .cn = "p", .san = { "dns:a.example", "ip:192.0.2.7" } };
	struct site s;

	make_site(&s);
	for (size_t i = 0; i < sizeof t / sizeof *t; i++) {
		s.attr.peers = put_text("peers", t[i].rules, 0644);
		cr_expect_eq(judge_kind(&s, &spec, &listener, t[i].says), t[i].code, "%s",
			     t[i].rules);
	}
}

/* A path that leads out again is below nothing; names that differ in their spelling alone are one. */
Test(creds_judge, other_spellings_of_a_name)
{
	static const struct {
		const char *san, *rules;
		int code;
	} t[] = {
		{ "uri:spiffe://td/a/b", "allow uri-prefix spiffe://td/a/\n", 0 },
		{ "uri:spiffe://td/a/../b", "allow uri-prefix spiffe://td/a/\n",
		  DDPS_E_CERT_USAGE },
		{ "uri:spiffe://td/a/%2e%2e/b", "allow issuer CN=ca\n", DDPS_E_CERT_USAGE },
		{ "uri:spiffe://td/a/.", "allow issuer CN=ca\n", DDPS_E_CERT_USAGE },
		{ "uri:x://td/a/..b", "allow uri-prefix x://td/a/\n", 0 },
		{ "uri:x://td/a/b/..", "allow uri-prefix x://td/a/\n", DDPS_E_NOT_LISTED },
		{ "uri:x://td/a/%2e%2e/b", "allow uri-prefix x://td/a/\n", DDPS_E_NOT_LISTED },
		{ "uri:x://td/a/%62", "deny uri-prefix x://td/a/\nallow issuer CN=CA\n",
		  DDPS_E_NOT_LISTED },
		{ "uri:x://td/b/../a/c", "deny uri-prefix x://td/a/\nallow issuer CN=CA\n",
		  DDPS_E_NOT_LISTED },
		{ "uri:x://td\\a\\b", "deny uri-prefix x://td/a/\nallow issuer CN=CA\n",
		  DDPS_E_NOT_LISTED },
		{ "uri:x://td/b/c", "deny uri-prefix x://td/a/\nallow issuer CN=CA\n", 0 },
		{ "dns:bad.", "deny dns bad\nallow dns x\n", DDPS_E_NOT_LISTED },
		{ "dns:good.", "allow dns good\n", 0 },
		/* it may be any of them */
		{ "dns:*.b.example", "deny dns x.b.example\nallow dns *.b.example\n",
		  DDPS_E_NOT_LISTED },
		{ "dns:*.b.example", "allow dns x.b.example\n", DDPS_E_NOT_LISTED },
		{ "dns:*.b.example", "deny dns x.y.b.example\nallow dns *.b.example\n", 0 },
		{ "ip:::ffff:10.1.2.3", "allow ip 10.1.2.3\n", 0 },
	};
	struct site s;

	make_site(&s);
	for (size_t i = 0; i < sizeof t / sizeof *t; i++) {
		const struct cert_spec spec = { .cn = "p", .san = { t[i].san } };

		s.attr.peers = put_text("peers", t[i].rules, 0644);
		cr_expect_eq(judge_kind(&s, &spec, &listener, ""), t[i].code, "%s: %s", t[i].san,
			     t[i].rules);
	}
}

Test(creds_judge, by_fingerprint)
{
	struct site s;
	struct ddps_creds *c;
	struct ddps_creds_peer shown;
	struct ddps_peer_id id;
	struct ddps_verdict why;
	char rule[128] = "allow fp ";

	make_site(&s);
	c = open_creds(&s.attr);
	shown = shown_by(&s.host, NULL);
	cr_expect_eq(judge_code(c, &shown, &listener, &id, &why), 0);
	for (unsigned i = 0; i < 32; i++)
		snprintf(rule + strlen(rule), 4, "%s%02X", i ? ":" : "", id.fingerprint[i]);
	ddps_creds_close(c);
	s.attr.peers = put_text("peers", rule, 0644);
	c = open_creds(&s.attr);
	cr_expect_eq(judge_code(c, &shown, &listener, &id, &why), 0, "%s", why.text);
	ddps_creds_close(c);
	cr_expect_eq(judge_kind(&s, &(struct cert_spec){ .cn = "p" }, &listener, "no rule"),
		     DDPS_E_NOT_LISTED);
}

static int refuse_all(void *user, const struct ddps_peer_id *id)
{
	snprintf(user, 64, "%.60s", id->name);
	return 1;
}

Test(creds_judge, the_program_decides_itself)
{
	char asked[64] = "";
	struct site s;

	make_site(&s);
	s.attr.judge = refuse_all;
	s.attr.judge_user = asked;
	cr_expect_eq(judge_kind(&s, &(struct cert_spec){ .cn = "p", .san = { "dns:a.example" } },
				&listener, "this program"),
		     DDPS_E_NOT_LISTED);
	cr_expect_str_eq(asked, "dns:a.example");
	asked[0] = 0; /* who is wrong already is not asked about */
	judge_kind(&s, &(struct cert_spec){ .cn = "p", .from = 1, .to = 2 }, &listener, "");
	cr_expect_str_eq(asked, "");
}
