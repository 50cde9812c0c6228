/* SPDX-License-Identifier: BSD-2-Clause */
/* What is wrong with this side, or with the time, lets nobody in who is to be kept out. */
#include "creds_fixture.h"
#include <criterion/criterion.h>
#include <string.h>
#include <unistd.h>

TestSuite(creds_lapse, .init = creds_setup, .fini = creds_teardown);

static const struct ddps_creds_peer node_b = { .psk = "node-b" };

/* A site with a list of revoked ones and with keys, where node-b is let in, and who is denied by name, too. */
static struct ddps_creds *open_lapsing(struct site *s)
{
	make_site(s);
	s->host = make_cert(&(struct cert_spec){ .cn = "host", .from = -1, .to = 1 }, &s->ca);
	s->attr.cert = put_certs("host.pem", &s->host, NULL);
	s->attr.key = put_key("host.key", &s->host);
	s->attr.crl = put_crl("crl.pem", make_crl(&s->ca, NULL, 9));
	s->attr.psk = put_text("psk", "node-a:" HEX16 "\nnode-b:11" HEX16 "\n", 0600);
	s->attr.psk_identity = "node-a";
	s->attr.peers = put_text("peers", "allow psk node-b\nallow issuer CN=CA\n", 0644);
	return open_creds(&s->attr);
}

static int judge_at(struct ddps_creds *c, uint64_t ms, int64_t now, const struct ddps_creds_peer *p,
		    struct ddps_verdict *news)
{
	struct ddps_creds_set *set = ddps_creds_use(c, ms, now, news);
	struct ddps_peer_id id;
	struct ddps_verdict why;
	const int err = ddps_creds_judge(set, p, &(struct ddps_creds_want){ .server = true }, now,
					 &id, &why);

	ddps_creds_release(set);
	return err;
}

enum { EXPIRED, REVOKED, MISMATCH, NO_CERT, LIST_OLD, LIST_AHEAD, CA_OLD, NO_ME, LAPSES };

/* What happens; the days until then, and the code of it. */
static int make_lapse(struct site *s, int which, int64_t *days)
{
	*days = 0;
	switch (which) {
	case EXPIRED:
		*days = 2;
		return DDPS_E_CERT_EXPIRED;
	case REVOKED:
		put_crl("crl.pem", make_crl(&s->ca, &s->host, 9));
		return DDPS_E_CERT_REVOKED;
	case MISMATCH:
		put_key("host.key", &s->ca);
		return DDPS_E_KEY_MISMATCH;
	case NO_CERT:
		unlink(s->attr.cert);
		return DDPS_E_CONFIG;
	case LIST_OLD:
		put_crl("crl.pem", make_crl(&s->ca, NULL, -1));
		return DDPS_E_CRL;
	case LIST_AHEAD:
		*days = -3; /* nothing is valid yet: the own certificate is reported first */
		return DDPS_E_CERT_NOT_YET;
	case CA_OLD:
		*days = 31;
		return DDPS_E_CERT_EXPIRED;
	default:
		put_text("psk", "node-c:" HEX16 "\nnode-b:11" HEX16 "\n", 0600);
		return DDPS_E_PSK_UNKNOWN;
	}
}

Test(creds_lapse, what_is_wrong_with_this_side_withholds_no_rule)
{
	for (int which = 0; which < LAPSES; which++) {
		struct ddps_verdict news, why;
		struct ddps_creds *c;
		struct site s;
		int64_t now;
		int code;

		c = open_lapsing(&s);
		cr_assert_eq(judge_at(c, 1000, NOW, &node_b, &news), 0);
		code = make_lapse(&s, which, &now);
		now = NOW + now * DAY;
		put_text("peers", "deny psk node-b\nallow issuer CN=CA\n", 0644);
		cr_expect_eq(judge_at(c, 2000, now, &node_b, &news), DDPS_E_NOT_LISTED, "%d: %s",
			     which, news.text);
		cr_expect_eq(news.code, code, "%d: %d %s", which, news.code, news.text);
		cr_expect(!strncmp(news.text, "in force, but", 13), "%d: %s", which, news.text);
		judge_at(c, 3000, now, &node_b, &news);
		cr_expect_str_eq(news.text, "", "%d, once: %s", which, news.text);
		cr_expect_eq(ddps_creds_reload(c, now, &why), code);
		ddps_creds_close(c);
		cr_expect_neq(ddps_creds_open(&c, &s.attr, now, &why), 0, "%d: to begin with",
			      which);
	}
}

/* The own one is, too: then peers are revoked no less. */
Test(creds_lapse, who_is_revoked_with_this_side_comes_no_more)
{
	struct ddps_creds_peer peer;
	struct ddps_verdict news;
	struct ddps_creds *c;
	struct site s;

	c = open_lapsing(&s);
	peer = shown_by(&s.host, NULL);
	cr_assert_eq(judge_at(c, 1000, NOW, &peer, &news), 0);
	put_crl("crl.pem", make_crl(&s.ca, &s.host, 9));
	cr_expect_eq(judge_at(c, 2000, NOW, &peer, &news), DDPS_E_CERT_REVOKED, "%s", news.text);
	ddps_creds_close(c);
}

/* A pair of which half has come: the old one is shown, and the new one as soon as it is whole. */
Test(creds_lapse, a_pair_stays_until_the_next_is_whole)
{
	struct ddps_creds_set *old, *now;
	struct ddps_verdict news;
	struct ddps_creds *c;
	struct cert next;
	struct site s;

	c = open_lapsing(&s);
	old = use_creds(c, 1000);
	next = make_cert(&(struct cert_spec){ .cn = "next" }, &s.ca);
	put_key("host.key", &next);
	now = use_creds(c, 2000);
	cr_expect_neq(now, old);
	cr_expect_eq(now->own, old->own);
	for (uint64_t ms = 3000; ms <= 62000; ms += 59000) { /* for a minute nothing is */
		struct ddps_creds_set *later = use_creds(c, ms);

		cr_expect_eq(later == now, ms == 3000);
		ddps_creds_release(later);
	}
	ddps_creds_release(now);
	put_text("peers", "allow nothing\n", 0644); /* a wrong line: nothing of it is in force */
	cr_expect_eq(judge_at(c, 63000, NOW, &node_b, &news), 0);
	cr_expect(strstr(news.text, "what was read before stays in use"), "%s", news.text);
	put_text("peers", "allow psk node-b\n", 0644);
	put_certs("host.pem", &next, NULL);
	now = ddps_creds_use(c, 64000, NOW, &news);
	cr_expect_eq(news.code, 0, "%s", news.text);
	cr_expect_neq(now->own, old->own);
	ddps_creds_release(old);
	ddps_creds_release(now);
	ddps_creds_close(c);
}

/* Who was the last one on a list is taken off it, too: the file is empty then.  To begin with, that is a mistake. */
Test(creds_lapse, a_list_that_was_emptied_lets_nobody_in)
{
	static const char *const nothing[] = { "", "# nobody\n" };

	for (int psk = 0; psk < 2; psk++)
		for (int i = 0; i < 2; i++) {
			struct ddps_verdict news, why;
			struct ddps_creds *c;
			struct site s;

			c = open_lapsing(&s);
			cr_assert_eq(judge_at(c, 1000, NOW, &node_b, &news), 0);
			put_text(psk ? "psk" : "peers", nothing[i], 0600);
			cr_expect_eq(judge_at(c, 2000, NOW, &node_b, &news),
				     psk ? DDPS_E_PSK_UNKNOWN : DDPS_E_NOT_LISTED, "%s", news.text);
			cr_expect_eq(news.code, psk ? DDPS_E_CONFIG : 0, "%s", news.text);
			cr_expect_eq(!strstr(news.text, "no key in it"), !psk, "%s", news.text);
			judge_at(c, 3000, NOW, &node_b, &news);
			cr_expect_str_eq(news.text, "", "once: %s", news.text);
			ddps_creds_close(c);
			cr_expect_eq(open_code(&s.attr, &why), psk ? DDPS_E_CONFIG : 0, "%s",
				     why.text);
		}
}

/* Not so where others would do without it: the names that addresses have to have, and the settings, which name the list. */
Test(creds_lapse, hosts_and_settings_that_were_emptied_are_a_mistake)
{
	static const char *const nothing[] = { "", "\n", "# nobody\n \t\r\n# at all" };
	static const char *const says[] = { "hosts has no line that counts",
					    "settings has no line that counts" };

	for (int n = 0; n < 2 * 3; n++) {
		const int which = n / 3;
		struct ddps_verdict news, why;
		struct ddps_creds *c;
		struct site s;

		make_site(&s);
		s.attr.psk = put_text("psk", "node-b:11" HEX16 "\n", 0600);
		put_text("peers", "allow psk node-a\n", 0644);
		if (which)
			s.attr.settings = put_text("settings", "peers peers\n", 0644);
		else
			s.attr.hosts = put_text("hosts", "192.0.2.1 psk:node-a\n", 0644);
		c = open_creds(&s.attr);
		for (uint64_t ms = 1000; ms <= 3000; ms += 1000) {
			struct ddps_creds_set *set = ddps_creds_use(c, ms, NOW, &news);
			const struct ddps_creds_want want = { .host = "192.0.2.1",
							      .server = which };
			struct ddps_peer_id id;

			cr_expect_eq(ddps_creds_judge(set, &node_b, &want, NOW, &id, &why),
				     which ? DDPS_E_NOT_LISTED : DDPS_E_CERT_NAME, "%d: %s", n,
				     why.text);
			cr_expect_eq(!strstr(news.text, says[which]), ms != 2000, "%d: %s", n,
				     news.text);
			ddps_creds_release(set);
			if (ms == 1000)
				put_text(which ? "settings" : "hosts", nothing[n % 3], 0644);
		}
		ddps_creds_close(c);
		cr_expect_eq(open_code(&s.attr, &why), DDPS_E_CONFIG, "%d: %s", n, why.text);
		cr_expect(strstr(why.text, says[which]), "%d: %s", n, why.text);
	}
}

/* Nor where nothing would be judged by it. */
Test(creds_lapse, certificates_that_were_emptied_are_a_mistake)
{
	static const char *const nothing[] = { "", "\n", "# nobody\n" };
	static const char *const name[] = { "ca.pem", "crl.pem", "host.pem", "host.key" };

	for (int n = 0; n < 4 * 3; n++) {
		struct ddps_verdict news, why;
		struct ddps_creds_peer peer;
		struct ddps_creds *c;
		struct site s;

		c = open_lapsing(&s);
		peer = shown_by(&s.host, NULL);
		cr_assert_eq(judge_at(c, 1000, NOW, &peer, &news), 0, "%s", news.text);
		put_text(name[n / 3], nothing[n % 3], 0600);
		cr_expect_eq(judge_at(c, 2000, NOW, &peer, &news), 0, "%s", news.text);
		cr_expect(strstr(news.text, name[n / 3]), "%d: %s", n, news.text);
		judge_at(c, 3000, NOW, &peer, &news);
		cr_expect_str_eq(news.text, "", "%d, once: %s", n, news.text);
		ddps_creds_close(c);
		cr_expect_eq(open_code(&s.attr, &why), DDPS_E_CONFIG, "%d: %s", n, why.text);
	}
}
