/* SPDX-License-Identifier: BSD-2-Clause */
/* Own files: what is refused before anybody connects, and files that change. */
#include "creds_fixture.h"
#include <criterion/criterion.h>
#include <fcntl.h>
#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/xattr.h>
#include <unistd.h>

TestSuite(creds_load, .init = creds_setup, .fini = creds_teardown);

static void refuses(const struct ddps_secure_attr *attr, int code, const char *says)
{
	struct ddps_verdict why = { .code = 0 };
	const int err = open_code(attr, &why);

	cr_expect_eq(err, code, "%d instead of %d: %s", err, code, why.text);
	cr_expect(strstr(why.text, says), "no '%s' in: %s", says, why.text);
}

Test(creds_load, a_whole_site_opens)
{
	struct site s;

	make_site(&s);
	cr_expect_eq(open_code(&s.attr, &(struct ddps_verdict){ .code = 0 }), 0);
}

Test(creds_load, what_is_not_there_is_said)
{
	struct site s;
	struct ddps_secure_attr none;

	ddps_secure_attr_init(&none);
	refuses(&none, DDPS_E_NO_CERT, "neither cert, key and ca, nor psk");
	make_site(&s);
	s.attr.key = NULL;
	refuses(&s.attr, DDPS_E_CONFIG, "'key'");
	make_site(&s);
	s.attr.cert = NULL;
	refuses(&s.attr, DDPS_E_NO_CERT, "'cert'");
	make_site(&s);
	s.attr.cert = path_of("absent.pem");
	refuses(&s.attr, DDPS_E_CONFIG, "No such file");
	make_site(&s);
	s.attr.flags = 0x80;
	refuses(&s.attr, DDPS_E_INVAL, "flag");
}

Test(creds_load, a_key_that_others_can_read_is_refused)
{
	static const unsigned modes[] = { 0644, 0640, 0604, 0620, 0602, 0610, 0666 };
	struct site s;

	make_site(&s);
	for (size_t i = 0; i < sizeof modes / sizeof *modes; i++) {
		cr_assert_eq(chmod(s.attr.key, modes[i]), 0);
		refuses(&s.attr, DDPS_E_KEY_OPEN, "chmod 600");
	}
	cr_assert_eq(chmod(s.attr.key, 0400), 0);
	cr_expect_eq(open_code(&s.attr, &(struct ddps_verdict){ .code = 0 }), 0);
	s.attr.psk = put_text("psk", "node:" HEX16 "\n", 0640);
	refuses(&s.attr, DDPS_E_KEY_OPEN, "0640");
}

Test(creds_load, a_key_of_somebody_else_is_refused)
{
	struct site s;

	if (geteuid())
		cr_skip_test("only root gives files away");
	make_site(&s);
	cr_assert_eq(chown(s.attr.key, 12345, 12345), 0);
	refuses(&s.attr, DDPS_E_KEY_OPEN, "12345");
}

Test(creds_load, a_key_of_another_certificate_is_refused)
{
	struct site s;

	make_site(&s);
	s.attr.key = put_key("other.key", &s.ca);
	refuses(&s.attr, DDPS_E_KEY_MISMATCH, "is not the key of");
}

Test(creds_load, what_is_no_file_of_a_sane_size_is_refused)
{
	struct site s;

	make_site(&s);
	s.attr.key = path_of("fifo");
	cr_assert_eq(mkfifo(s.attr.key, 0600), 0);
	refuses(&s.attr, DDPS_E_CONFIG, "a pipe"); /* and does not wait for a writer */
	s.attr.key = path_of("folder");
	cr_assert_eq(mkdir(s.attr.key, 0700), 0);
	refuses(&s.attr, DDPS_E_CONFIG, "a folder");
	s.attr.key = "/dev/zero";
	refuses(&s.attr, DDPS_E_CONFIG, "not a file");
	s.attr.key = put_text("empty", "", 0600);
	refuses(&s.attr, DDPS_E_CONFIG, "no private key as PEM");
	s.attr.key = put_text("huge", "x", 0600);
	cr_assert_eq(truncate(s.attr.key, 1ll << 40), 0);
	refuses(&s.attr, DDPS_E_CONFIG, "octets");
	s.attr.key = put_text("text", "nothing of a key\n", 0600);
	refuses(&s.attr, DDPS_E_CONFIG, "private key");
	s.attr.key = put_text("locked",
			      "-----BEGIN ENCRYPTED PRIVATE KEY-----\nAAAA\n"
			      "-----END ENCRYPTED PRIVATE KEY-----\n",
			      0600);
	refuses(&s.attr, DDPS_E_CONFIG, "encrypted");
}

Test(creds_load, a_link_to_a_file_is_followed)
{
	struct site s;
	const char *link = path_of("link");

	make_site(&s); /* as in volumes of containers */
	cr_assert_eq(symlink(s.attr.key, link), 0);
	s.attr.key = link;
	cr_expect_eq(open_code(&s.attr, &(struct ddps_verdict){ .code = 0 }), 0);
}

/* An own certificate of a kind. */
static void refuses_own(const struct cert_spec *spec, int code, const char *says)
{
	struct site s;
	struct cert own;

	make_site(&s);
	own = make_cert(spec, &s.ca);
	s.attr.cert = put_certs("own.pem", &own, NULL);
	s.attr.key = put_key("own.key", &own);
	refuses(&s.attr, code, says);
}

Test(creds_load, an_own_certificate_that_peers_would_refuse_is_refused)
{
	refuses_own(&(struct cert_spec){ .cn = "x", .from = -9, .to = -1 }, DDPS_E_CERT_EXPIRED,
		    "expired on 2027-01-14");
	refuses_own(&(struct cert_spec){ .cn = "x", .from = 1, .to = 9 }, DDPS_E_CERT_NOT_YET,
		    "valid from 2027-01-16");
	refuses_own(&(struct cert_spec){ .cn = "x", .ca = true, .path_len = 0 }, DDPS_E_CERT_USAGE,
		    "CA");
	refuses_own(&(struct cert_spec){ .cn = "x", .key_usage = GNUTLS_KEY_KEY_ENCIPHERMENT },
		    DDPS_E_CERT_USAGE, "signatures");
	refuses_own(&(struct cert_spec){ .cn = "x", .rsa = 1024 }, DDPS_E_CERT_WEAK, "2048");
}

/* Whose certificate is for servers only can listen, and the other way round. */
Test(creds_load, one_use_of_the_own_certificate_is_enough)
{
	for (int server = 0; server < 2; server++) {
		struct ddps_verdict why;
		struct ddps_creds *c;
		struct cert one;
		struct site s;

		make_site(&s);
		one = make_cert(&(struct cert_spec){ .cn = "x",
						     .uses = server ? FOR_SERVER : FOR_CLIENT },
				&s.ca);
		s.attr.cert = put_certs("one.pem", &one, NULL);
		s.attr.key = put_key("one.key", &one);
		c = open_creds(&s.attr);
		cr_expect_eq(ddps_creds_may(c, server, false, &why), 0, "%s", why.text);
		cr_expect_eq(ddps_creds_may(c, !server, false, &why), DDPS_E_CERT_USAGE);
		cr_expect(strstr(why.text, "this side's certificate CN=x is not for"), "%s",
			  why.text);
		ddps_creds_close(c);
	}
}

/* Before anybody is asked, and for the certificate alone: a pre-shared key is short. */
Test(creds_load, what_datagrams_cannot_carry_is_refused_for_them)
{
	static const char psk[] = "node-a:00112233445566778899aabbccddeeff\n";
	struct ddps_verdict why;
	struct ddps_creds *c;
	struct cert middle, host;
	struct site s;

	make_site(&s);
	middle = make_cert(&(struct cert_spec){ .cn = "m", .ca = true, .names = 1000 }, &s.ca);
	host = make_cert(&(struct cert_spec){ .cn = "h", .names = 1000 }, &middle);
	s.attr.cert = put_certs("two.pem", &host, &middle);
	s.attr.key = put_key("two.key", &host);
	for (int with_psk = 0; with_psk < 2; with_psk++) {
		s.attr.psk = with_psk ? put_text("psk", psk, 0600) : NULL;
		s.attr.psk_identity = with_psk ? "node-a" : NULL;
		c = open_creds(&s.attr);
		for (int server = 0; server < 2; server++) {
			const bool shown = server || !with_psk;

			cr_expect_eq(ddps_creds_may(c, server, false, &why), 0, "%s", why.text);
			cr_expect_eq(ddps_creds_may(c, server, true, &why),
				     shown ? DDPS_E_CERT : 0);
			cr_expect(!shown || strstr(why.text, "over datagrams only 24576"), "%s",
				  why.text);
		}
		ddps_creds_close(c);
	}
}

Test(creds_load, two_cas_of_one_name_need_identifiers)
{
	const struct cert_spec ca = { .cn = "same", .ca = true, .no_ids = true, .path_len = -1 },
			       other = { .cn = "same", .ca = true, .path_len = -1 };
	struct cert a = make_cert(&ca, NULL), b = make_cert(&ca, NULL), c = make_cert(&other, NULL),
		    d = make_cert(&other, NULL);
	struct site s;

	make_site(&s);
	s.attr.ca = put_certs("ca.pem", &a, &b);
	refuses(&s.attr, DDPS_E_CERT_CA, "two CAs CN=same");
	s.attr.ca = put_certs("ca.pem", &c, &d);
	cr_expect_eq(open_code(&s.attr, &(struct ddps_verdict){ .code = 0 }), 0);
	s.attr.ca = put_certs("ca.pem", &a, &a); /* the same one twice harms nobody */
	cr_expect_eq(open_code(&s.attr, &(struct ddps_verdict){ .code = 0 }), 0);
}

/* What is behind it would not be read, such as a rule that denies. */
Test(creds_load, an_octet_0_ends_no_file)
{
	static const char text[] = "allow dns:a\n\0\ndeny dns:b\n";
	const char *const path = path_of("zero");
	struct site s;
	FILE *f = fopen(path, "w");

	cr_assert(f);
	cr_assert_eq(fwrite(text, 1, sizeof text - 1, f), sizeof text - 1);
	cr_assert_eq(fclose(f), 0);
	make_site(&s);
	s.attr.peers = path;
	refuses(&s.attr, DDPS_E_CONFIG, "octet 0 at 12");
	make_site(&s);
	s.attr.settings = path;
	refuses(&s.attr, DDPS_E_CONFIG, "octet 0 at 12");
	make_site(&s);
	s.attr.crl = path;
	refuses(&s.attr, DDPS_E_CONFIG, "octet 0 at 12");
}

Test(creds_load, a_file_of_cas_holds_cas_that_are_valid)
{
	struct site s;
	struct cert old;

	make_site(&s);
	s.attr.ca = put_certs("ca.pem", &s.host, NULL);
	refuses(&s.attr, DDPS_E_CERT_USAGE, "no CA's");
	old = make_cert(&(struct cert_spec){ .cn = "old", .ca = true, .from = -9, .to = -1 }, NULL);
	s.attr.ca = put_certs("ca.pem", &old, NULL);
	refuses(&s.attr, DDPS_E_CERT_EXPIRED, "new CA");
	s.attr.ca = put_certs("ca.pem", &old, &s.ca); /* one of two is enough */
	cr_expect_eq(open_code(&s.attr, &(struct ddps_verdict){ .code = 0 }), 0);
}

Test(creds_load, a_list_of_revoked_ones_is_from_the_ca_and_not_old)
{
	struct site s;
	struct cert other;

	make_site(&s);
	other = make_cert(&(struct cert_spec){ .cn = "CA", .ca = true }, NULL);
	s.attr.crl = put_crl("crl.pem", make_crl(&other, NULL, 9)); /* of the CA's name */
	refuses(&s.attr, DDPS_E_CRL, "no CA of");
	s.attr.crl = put_crl("crl.pem", make_crl(&s.ca, NULL, -1));
	refuses(&s.attr, DDPS_E_CRL, "was good until 2027-01-14");
	s.attr.flags = DDPS_SECURE_STALE_CRL;
	cr_expect_eq(open_code(&s.attr, &(struct ddps_verdict){ .code = 0 }), 0);
	s.attr.crl = put_crl("crl.pem", make_crl(&s.ca, &s.host, 9));
	refuses(&s.attr, DDPS_E_CERT_REVOKED, "revoked"); /* this side itself */
}

Test(creds_load, a_line_that_is_wrong_is_named_and_no_key_is_shown)
{
	static const struct {
		const char *psk, *says;
	} keys[] = {
		{ "node-a:" HEX16 "\nnode-b\n", "line 2" },
		{ "# one\n\nnode-a:0011\n", "line 3: a key has 16" },
		{ "node-a:" HEX16 "0\n", "not hexadecimal" },
		{ "node-a:" HEX16 "\nnode-a:" HEX16 "\n", "already" },
		{ ":" HEX16 "\n", "1 to 255" },
		{ "no de:" HEX16 "\n", "blanks" },
		{ "# nothing\n", "no key" },
	};
	static const struct {
		const char *rules, *says;
	} rules[] = {
		{ "allow dns a.example\npermit dns b\n", "line 2" },
		{ "allow cn a.example\n", "kind of name" },
		{ "allow dns b\xc3\xbc"
		  "cher.example\n",
		  "xn--" },
		{ "allow ip 192.0.2.300\n", "address" },
		{ "allow fp 0011\n", "64 hexadecimal" },
		{ "allow uri-prefix spiffe://x/y\n", "end with /" },
		{ "deny dns\n", "host name" },
		{ "deny dns 192.0.2.300\n", "'192.0.2.300' is no host name" },
	};
	struct site s;
	struct ddps_verdict why;

	make_site(&s);
	for (size_t i = 0; i < sizeof keys / sizeof *keys; i++) {
		s.attr.psk = put_text("psk", keys[i].psk, 0600);
		refuses(&s.attr, DDPS_E_CONFIG, keys[i].says);
		open_code(&s.attr, &why);
		cr_expect_not(strstr(why.text, "0011"), "%s", why.text);
	}
	s.attr.psk = NULL;
	for (size_t i = 0; i < sizeof rules / sizeof *rules; i++) {
		s.attr.peers = put_text("peers", rules[i].rules, 0644);
		refuses(&s.attr, DDPS_E_CONFIG, rules[i].says);
	}
	s.attr.peers = NULL;
	s.attr.hosts = put_text("hosts", "192.0.2.1\n", 0644);
	refuses(&s.attr, DDPS_E_CONFIG, "ADDRESS NAME");
	s.attr.hosts = NULL;
	s.attr.peer = "dns:a.example,fp:12";
	refuses(&s.attr, DDPS_E_CONFIG, "fingerprint");
}

Test(creds_load, one_file_has_all_settings)
{
	struct site s;
	struct ddps_secure_attr file;

	make_site(&s);
	ddps_secure_attr_init(&file);
	file.settings = put_text("secure.conf",
				 "# names are relative to this folder\n"
				 "cert host.pem\n  key = host.key\nca\tca.pem\nstale-crl accept\n",
				 0644);
	cr_expect_eq(open_code(&file, &(struct ddps_verdict){ .code = 0 }), 0);
	file.key = path_of("absent.key"); /* what the program says takes precedence */
	refuses(&file, DDPS_E_CONFIG, "absent.key");
	file.key = NULL;
	file.settings = put_text("secure.conf", "cert host.pem\nkeys host.key\n", 0644);
	refuses(&file, DDPS_E_CONFIG, "line 2: there is no setting 'keys'");
	file.settings = put_text("secure.conf", "cert host.pem\ncert host.pem\n", 0644);
	refuses(&file, DDPS_E_CONFIG, "second time");
	file.settings = put_text("secure.conf", "cert\n", 0644);
	refuses(&file, DDPS_E_CONFIG, "value");
	file.settings = put_text("secure.conf", "stale-crl perhaps\n", 0644);
	refuses(&file, DDPS_E_CONFIG, "'refuse' or 'accept'");
}

/* Whoever writes these files decides who comes in, and whose the other side is. */
Test(creds_load, files_of_rules_are_of_this_user_or_of_root)
{
	static const char *const text[] = { "allow dns a.example\n", "192.0.2.1 a.example\n",
					    "cert host.pem\nkey host.key\nca ca.pem\n" };
	struct ddps_verdict ok = { .code = 0 };
	struct site s;
	const char **file[5];

	make_site(&s);
	file[0] = &s.attr.ca;
	file[1] = &s.attr.peers;
	file[2] = &s.attr.hosts;
	file[3] = &s.attr.settings;
	file[4] = &s.attr.crl;
	for (int i = 0; i < 5; i++) {
		if (i == 4)
			*file[i] = put_crl("crl.pem", make_crl(&s.ca, NULL, 9));
		else if (i)
			*file[i] = put_text("rules", text[i - 1], 0644);
		cr_assert_eq(open_code(&s.attr, &ok), 0, "%d: %s", i, ok.text);
		cr_assert_eq(chmod(*file[i], 0646), 0);
		refuses(&s.attr, DDPS_E_CONFIG, "has mode 0646");
		cr_assert_eq(chmod(*file[i], 0664), 0);
		if (!geteuid()) {
			cr_assert_eq(chown(*file[i], 0, 12345), 0);
			refuses(&s.attr, DDPS_E_CONFIG, "chmod go-w");
			cr_assert_eq(chmod(*file[i], 0644), 0);
			cr_assert_eq(chown(*file[i], 12345, 12345), 0);
			refuses(&s.attr, DDPS_E_CONFIG, "belongs to user 12345");
			cr_assert_eq(chown(*file[i], 0, 0), 0);
		}
		cr_assert_eq(chmod(*file[i], 0644), 0);
		cr_assert_eq(open_code(&s.attr, &ok), 0);
		if (i)
			*file[i] = NULL;
	}
}

/* Rights of others that no mode shows, and files that others can put others in place of. */
Test(creds_load, files_of_rules_are_in_nobody_elses_hands)
{
	/* version 2; the owner, user 12345, group, mask, others: all may write but the last */
	static const uint8_t acl[] = { 2,   0,	 0,   0,   1,	0,    6,    0,	 255, 255, 255,
				       255, 2,	 0,   6,   0,	0x39, 0x30, 0,	 0,   4,   0,
				       4,   0,	 255, 255, 255, 255,  16,   0,	 6,   0,   255,
				       255, 255, 255, 32,  0,	4,    0,    255, 255, 255, 255 };
	struct ddps_verdict ok = { .code = 0 };
	char link[4096];
	struct site s;

	make_site(&s);
	if (!setxattr(s.attr.ca, "system.posix_acl_access", acl, sizeof acl, 0)) {
		refuses(&s.attr, DDPS_E_CONFIG, "has mode 0664");
		cr_assert_eq(removexattr(s.attr.ca, "system.posix_acl_access"), 0);
		cr_assert_eq(chmod(s.attr.ca, 0644), 0);
	}
	cr_assert_eq(open_code(&s.attr, &ok), 0);
	if (geteuid())
		cr_skip_test("only root can give a folder away");
	cr_assert_eq(mkdir(path_of("theirs"), 0755), 0);
	cr_assert_eq(chown(path_of("theirs"), 12345, 12345), 0);
	snprintf(link, sizeof link, "%s", path_of("theirs/ca.pem"));
	cr_assert_eq(symlink(s.attr.ca, link), 0);
	s.attr.ca = link;
	refuses(&s.attr, DDPS_E_CONFIG, "folder of user 12345");
}

static unsigned warned;

static void count_warning(void *user, const struct ddps_secure_finding *f)
{
	(void)user;
	warned += f->warning && strstr(f->text, "everybody") != NULL;
}

/* What is signed says the same whoever wrote it. */
Test(creds_load, files_that_everybody_can_write_are_warned_of)
{
	struct site s;

	make_site(&s);
	cr_expect_eq(ddps_creds_check(&s.attr, NOW, count_warning, NULL), 0);
	cr_expect_eq(warned, 0);
	chmod(s.attr.cert, 0666);
	cr_expect_eq(ddps_creds_check(&s.attr, NOW, count_warning, NULL), 0);
	cr_expect_eq(warned, 1);
	chmod(path_of("."), 0777);
	cr_expect_eq(ddps_creds_check(&s.attr, NOW, count_warning, NULL), 1);
	cr_expect_eq(warned, 3, "one, and two in its folder; that of the CA's file is a fault");
	refuses(&s.attr, DDPS_E_CONFIG, "mode 0777, where others could put another file");
	chmod(path_of("."), 0700);
	s.attr.peers = put_text("peers", "allow psk a@1\n", 0644);
	refuses(&s.attr, DDPS_E_CONFIG, "without the number");
}

Test(creds_load, a_key_log_is_asked_for_by_the_file_and_is_not_silent)
{
	struct ddps_secure_attr file;
	struct ddps_verdict news;
	struct ddps_creds *c;
	struct stat st;
	struct site s;

	make_site(&s);
	ddps_secure_attr_init(&file);
	file.settings = put_text("secure.conf",
				 "cert host.pem\nkey host.key\nca ca.pem\nkeylog secrets\n", 0644);
	cr_expect_eq(ddps_creds_check(&file, NOW, count_warning, NULL), 0);
	cr_expect_neq(stat(path_of("secrets"), &st), 0, "to look makes nothing");
	c = open_creds(&file);
	cr_assert_eq(stat(path_of("secrets"), &st), 0);
	cr_expect_eq(st.st_mode & 0777, 0600);
	ddps_creds_release(ddps_creds_use(c, 0, NOW, &news));
	cr_expect(news.loud && strstr(news.text, "secrets: whoever reads it can read all"), "%s",
		  news.text);
	ddps_creds_release(ddps_creds_use(c, 5000, NOW, &news));
	cr_expect_str_eq(news.text, "", "once");
	unlink(path_of("secrets"));
	ddps_creds_release(ddps_creds_use(c, 7000, NOW, &news));
	cr_expect_eq(stat(path_of("secrets"), &st), 0, "made anew");
	ddps_creds_close(c);
	rename(path_of("secrets"), path_of("kept"));
	cr_assert_eq(symlink("kept", path_of("secrets")), 0);
	refuses(&file, DDPS_E_CONFIG, "secrets cannot be opened");
	unlink(path_of("secrets"));
	put_text("secrets", "", 0644);
	refuses(&file, DDPS_E_KEY_OPEN, "chmod 600");
	unlink(path_of("secrets"));
	cr_assert_eq(mkdir(path_of("secrets"), 0700), 0);
	refuses(&file, DDPS_E_CONFIG, "secrets cannot be opened");
	rmdir(path_of("secrets"));
}

/* ---- files that change ---- */

/* The code and text of the news at @ms. */
static int news_at(struct ddps_creds *c, uint64_t ms, struct ddps_verdict *news)
{
	ddps_creds_release(ddps_creds_use(c, ms, NOW, news));
	return news->code;
}

Test(creds_load, files_that_changed_are_read_within_a_second)
{
	struct site s;
	struct ddps_creds *c;
	struct cert next;
	struct ddps_creds_set *old, *now;
	struct ddps_verdict news;

	make_site(&s);
	c = open_creds(&s.attr);
	old = use_creds(c, 5000);
	next = make_cert(&(struct cert_spec){ .cn = "next", .san = { "dns:next.example" } }, &s.ca);
	put_certs("host.pem", &next, NULL);
	/* the key has not come yet: the old pair stays, and that is said once */
	cr_expect_eq(news_at(c, 5999, &news), 0);
	cr_expect_str_eq(news.text, "");
	cr_expect_eq(news_at(c, 6000, &news), DDPS_E_KEY_MISMATCH);
	cr_expect(strstr(news.text, "in force, but"), "%s", news.text);
	cr_expect_eq(news_at(c, 7000, &news), 0);
	cr_expect_str_eq(news.text, "");
	put_key("host.key", &next);
	cr_expect_eq(news_at(c, 8000, &news), 0);
	cr_expect(strstr(news.text, "read again"), "%s", news.text);
	now = use_creds(c, 8001);
	cr_expect_neq(now, old);
	ddps_creds_release(now);
	ddps_creds_release(old);
	ddps_creds_close(c);
}

/* Nobody needs a key log, and somebody needs a rule: the one withholds not the other. */
Test(creds_load, a_key_log_that_cannot_be_opened_any_more_withholds_no_rule)
{
	struct ddps_creds_peer peer;
	struct ddps_secure_attr file;
	struct ddps_verdict news;
	struct ddps_creds *c;
	struct site s;

	make_site(&s);
	ddps_secure_attr_init(&file);
	put_text("peers", "allow issuer CN=CA\n", 0644);
	file.settings =
		put_text("secure.conf",
			 "cert host.pem\nkey host.key\nca ca.pem\nkeylog log\npeers peers\n", 0644);
	c = open_creds(&file);
	peer = shown_by(&s.host, NULL);
	cr_expect_eq(judge_code(c, &peer, &(struct ddps_creds_want){ .server = true }, NULL, NULL),
		     0);
	unlink(path_of("log"));
	cr_assert_eq(mkdir(path_of("log"), 0700), 0);
	put_text("peers", "deny issuer CN=CA\n", 0644);
	cr_expect_eq(news_at(c, 5000, &news), 0, "%s", news.text);
	cr_expect(news.loud && strstr(news.text, "not written any more"), "%s", news.text);
	cr_expect_eq(judge_code(c, &peer, &(struct ddps_creds_want){ .server = true }, NULL, NULL),
		     DDPS_E_NOT_LISTED);
	cr_expect_eq(news_at(c, 7000, &news), 0);
	cr_expect_str_eq(news.text, "", "once");
	cr_assert_eq(rmdir(path_of("log")), 0);
	cr_expect_eq(news_at(c, 9000, &news), 0);
	cr_expect(strstr(news.text, "are written to"), "%s", news.text);
	ddps_creds_close(c);
}

Test(creds_load, a_file_of_rules_is_in_force_whole_or_not_at_all)
{
	struct site s;
	struct ddps_creds *c;
	struct ddps_verdict why;
	struct ddps_creds_set *before, *after;

	make_site(&s);
	s.attr.peers = put_text("peers", "allow dns host.example\n", 0644);
	c = open_creds(&s.attr);
	before = use_creds(c, 0);
	put_text("peers", "allow everybody\n", 0644);
	cr_expect_eq(ddps_creds_reload(c, NOW, &why), DDPS_E_CONFIG);
	after = use_creds(c, 0);
	cr_expect_eq(before, after);
	put_text("peers", "allow dns other.example\n", 0644);
	cr_expect_eq(ddps_creds_reload(c, NOW, &why), 0);
	ddps_creds_release(before);
	ddps_creds_release(after);
	ddps_creds_close(c);
}

static atomic_int reading; /* not yet, it does, it has */

static void *reload_once(void *c)
{
	struct ddps_verdict why;

	reading = 1;
	cr_expect_eq(ddps_creds_reload(c, NOW, &why), 0, "%s", why.text);
	reading = 2;
	return NULL;
}

/* How often this thread has given its processor away, since it waited for something. */
static long count_waits(void)
{
	struct rusage u;

	cr_assert_eq(getrusage(RUSAGE_THREAD, &u), 0);
	return u.ru_nvcsw;
}

/* Contexts ask with their lock held, and sessions would stand still meanwhile. */
Test(creds_load, nobody_waits_while_long_files_are_read, .timeout = 60)
{
#ifdef __SANITIZE_ADDRESS__ /* it measures the whole text for each line that is looked for */
	enum { RULES = 6000, ROUNDS = 5 };
#else
	enum { RULES = 60000, ROUNDS = 5 };
#endif
	static char text[RULES * 64];
	unsigned free_rounds = 0;
	long before;
	struct ddps_verdict news;
	struct ddps_creds *c;
	pthread_t thread;
	char *at = text;
	struct site s;

	make_site(&s);
	for (int i = 0; i < RULES; i++)
		at += sprintf(at, "allow dns node-%05d.rack.hall.site.example.org\n", i);
	s.attr.peers = put_text("peers", text, 0644);
	c = open_creds(&s.attr);
	for (int i = 0; i < ROUNDS; i++) {
		reading = 0;
		cr_assert_eq(pthread_create(&thread, NULL, reload_once, c), 0);
		while (!reading)
			sched_yield();
		before = count_waits();
		while (reading == 1)
			cr_expect_eq(ddps_creds_may(c, true, false, &news), 0);
		free_rounds += count_waits() == before;
		pthread_join(thread, NULL);
	}
	cr_expect_geq(free_rounds, 1);
	ddps_creds_close(c);
}
