/* SPDX-License-Identifier: BSD-2-Clause */
/* URIs: every form, and a sentence for each that is wrong. */
#include "common/uri.h"
#include <arpa/inet.h>
#include <criterion/criterion.h>
#include <ddpsess/err.h>
#include <net/if.h>
#include <netinet/in.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/un.h>

static void expect_good_uri(const char *text, const char *scheme, const char *host, int port,
			    const char *backend, int encap, bool numeric)
{
	struct ddps_uri u;
	char why[200] = "";

	cr_assert_eq(ddps_uri_parse(&u, text, why, sizeof why), 0, "%s: %s", text, why);
	cr_expect_str_eq(u.scheme, scheme);
	cr_expect_str_eq(u.host, host);
	cr_expect_eq(u.port, port);
	cr_expect_str_eq(u.backend, backend);
	cr_expect_eq(u.encap, encap);
	cr_expect_eq(u.numeric, numeric, "%s", text);
}

Test(uri, every_legal_form)
{
	const int none = DDPS_URI_ENCAP_DEFAULT, off = DDPS_URI_ENCAP_OFF;

	expect_good_uri("tcp://192.0.2.1:7174", "tcp", "192.0.2.1", 7174, "auto", none, true);
	expect_good_uri("tcp://[2001:db8::1]:1", "tcp", "2001:db8::1", 1, "auto", none, true);
	expect_good_uri("tcp://[::]:0", "tcp", "::", 0, "auto", none, true);
	expect_good_uri("tcp://:65535", "tcp", "", 65535, "auto", none, true);
	expect_good_uri("TCP://host.example:9", "tcp", "host.example", 9, "auto", none, false);
	expect_good_uri("sctp://a-b_c.d:80", "sctp", "a-b_c.d", 80, "auto", none, false);
	expect_good_uri("sctp://127.0.0.1:7?backend=kernel", "sctp", "127.0.0.1", 7, "kernel", none,
			true);
	expect_good_uri("sctp://127.0.0.1:7?backend=native&encap=0", "sctp", "127.0.0.1", 7,
			"native", 0, true);
	expect_good_uri("sctp://h:7?encap=off&backend=auto", "sctp", "h", 7, "auto", off, false);
	expect_good_uri("sctp://h:7?encap=65535", "sctp", "h", 7, "auto", 65535, false);
	expect_good_uri("tcp://[::1%lo]:7", "tcp", "::1%lo", 7, "auto", none, true);
	expect_good_uri("tcp://[fe80::1%1]:7", "tcp", "fe80::1%1", 7, "auto", none, true);
}

Test(uri, a_share_of_an_address)
{
	char why[200] = "";
	struct ddps_uri u;

	cr_assert_eq(ddps_uri_parse(&u, "sctp://:7?per-address=65535&encap=1", why, sizeof why), 0);
	cr_expect_eq(u.per_address, 65535);
	cr_assert_eq(ddps_uri_parse(&u, "sctp://:7?encap=1", why, sizeof why), 0);
	cr_expect_eq(u.per_address, 0);
}

Test(uri, options_of_tls)
{
	char why[200] = "";
	struct ddps_uri u;

	cr_assert_eq(ddps_uri_parse(&u, "tls://h:7", why, sizeof why), 0);
	cr_expect(!u.crc && !u.markers);
	cr_assert_eq(ddps_uri_parse(&u, "tls://h:7?crc=1&tos=4&markers=1", why, sizeof why), 0);
	cr_expect(u.crc && u.markers);
	cr_assert_eq(ddps_uri_parse(&u, "tls://h:7?crc=0&markers=0", why, sizeof why), 0);
	cr_expect(!u.crc && !u.markers);
	cr_expect_lt(ddps_uri_parse(&u, "tls://h:7?crc=on", why, sizeof why), 0);
	cr_expect(strstr(why, "crc \"on\" is neither 0 nor 1"), "%s", why);
	cr_expect_lt(ddps_uri_parse(&u, "tls://h:7?backend=native", why, sizeof why), 0);
	cr_expect(strstr(why, "no options but tos, crc and markers"), "%s", why);
	cr_expect_lt(ddps_uri_parse(&u, "tcp://h:7?crc=1", why, sizeof why), 0);
	cr_expect(strstr(why, "no options but tos"), "%s", why);
	cr_expect_lt(ddps_uri_parse(&u, "sctps://h:7?crc=1", why, sizeof why), 0);
	cr_expect(strstr(why, "unknown option"), "%s", why);
}

Test(uri, contact_23_a_class_of_packets)
{
	char why[200] = "";
	struct ddps_uri u;

	cr_assert_eq(ddps_uri_parse(&u, "tcp://h:7?tos=255", why, sizeof why), 0, "%s", why);
	cr_expect_eq(u.tos, 255);
	cr_assert_eq(ddps_uri_parse(&u, "sctp://h:7?encap=1&tos=32", why, sizeof why), 0);
	cr_expect_eq(u.tos, 32);
	cr_assert_eq(ddps_uri_parse(&u, "tcp://h:7", why, sizeof why), 0);
	cr_expect_eq(u.tos, 0);
}

static void expect_uri_list(const char *text, const char *hosts, const char *from)
{
	char why[200] = "", have[DDPS_ADDRS_TEXT];
	struct ddps_uri u;

	cr_assert_eq(ddps_uri_parse(&u, text, why, sizeof why), 0, "%s: %s", text, why);
	cr_expect(u.numeric);
	ddps_addrs_text(&u.hosts, have, sizeof have);
	cr_expect_str_eq(have, hosts);
	ddps_addrs_text(&u.from, have, sizeof have);
	cr_expect_str_eq(have, from);
}

Test(uri, lists_of_addresses)
{
	char cut[12], why[200];
	struct ddps_uri u;

	expect_uri_list("sctp://192.0.2.1,198.51.100.1:7", "192.0.2.1,198.51.100.1:7", "");
	expect_uri_list("sctp://[2001:db8::1],192.0.2.1:7?encap=off", "[2001:db8::1],192.0.2.1:7",
			"");
	expect_uri_list("sctp://192.0.2.1:7?local=192.0.2.2", "", "192.0.2.2:0");
	expect_uri_list("sctp://192.0.2.1:7?local=[2001:db8::2],192.0.2.2&encap=1", "",
			"[2001:db8::2],192.0.2.2:0");
	expect_uri_list("sctp://1.0.0.1,1.0.0.2,1.0.0.3,1.0.0.4,1.0.0.5,1.0.0.6,1.0.0.7,1.0.0.8:9",
			"1.0.0.1,1.0.0.2,1.0.0.3,1.0.0.4,1.0.0.5,1.0.0.6,1.0.0.7,1.0.0.8:9", "");
	/* cut, and terminated */
	cr_assert_eq(ddps_uri_parse(&u, "sctp://192.0.2.1,192.0.2.2:7", why, sizeof why), 0);
	cr_expect_str_eq(u.host, "192.0.2.1");
	ddps_addrs_text(&u.hosts, cut, sizeof cut);
	cr_expect_str_eq(cut, "192.0.2.1,1");
	ddps_addrs_text(&u.hosts, cut, 10); /* the first just fits */
	cr_expect_str_eq(cut, "192.0.2.1");
	memset(cut, 'x', sizeof cut);
	ddps_addr_text((const struct sockaddr *)&u.hosts.at[0], cut, 0);
	cr_expect_eq(cut[0], 'x', "no room at all");
}

Test(uri, sockets_of_shared_memory)
{
	static const struct {
		const char *text, *host;
		socklen_t len;
	} rows[] = {
		{ "shm:///run/user/1000/x", "/run/user/1000/x", sizeof(struct sockaddr_un) },
		{ "SHM:///a:b", "/a:b", sizeof(struct sockaddr_un) },
		{ "shm://@name", "@name", offsetof(struct sockaddr_un, sun_path) + 5 },
		{ "shm://@a/b", "@a/b", offsetof(struct sockaddr_un, sun_path) + 4 },
		{ "shm://@", "@", offsetof(struct sockaddr_un, sun_path) },
	};
	struct sockaddr_storage ss;
	char why[200] = "", text[120];
	struct ddps_uri u;
	socklen_t len;

	for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
		cr_assert_eq(ddps_uri_parse(&u, rows[i].text, why, sizeof why), 0, "%s", why);
		cr_expect(ddps_uri_shm(&u));
		cr_expect(u.numeric, "no name to look up");
		cr_expect_str_eq(u.host, rows[i].host);
		cr_assert_eq(ddps_uri_sockaddr(&u, &ss, &len), 0);
		cr_expect_eq(ss.ss_family, AF_UNIX);
		cr_expect_eq(len, rows[i].len, "%s: %u", rows[i].text, (unsigned)len);
		ddps_addr_text((struct sockaddr *)&ss, text, sizeof text);
		cr_expect_str_eq(text, rows[i].host);
	}
	cr_assert_eq(ddps_uri_parse(&u, "tcp://h:7", why, sizeof why), 0);
	cr_expect_not(ddps_uri_shm(&u));
}

/* 107 characters of a path are the most, 106 of an abstract name. */
Test(uri, names_of_sockets_have_a_bound)
{
	char text[200] = "shm://", why[200], back[120];
	struct sockaddr_storage ss;
	struct ddps_uri u;
	socklen_t len;

	for (int abstract = 0; abstract < 2; abstract++) {
		memset(text + 6, 'x', 108);
		text[6] = abstract ? '@' : '/';
		text[6 + 108] = 0;
		cr_expect_eq(ddps_uri_parse(&u, text, why, sizeof why), DDPS_E_ADDRESS);
		cr_expect(strstr(why, "107"), "%s", why);
		text[6 + 107] = 0;
		cr_assert_eq(ddps_uri_parse(&u, text, why, sizeof why), 0);
		cr_assert_eq(ddps_uri_sockaddr(&u, &ss, &len), 0);
		ddps_addr_text((struct sockaddr *)&ss, back, sizeof back);
		cr_expect_str_eq(back, text + 6);
	}
}

#define TEN   "1234567890"
#define FORTY TEN TEN TEN TEN
#define FIFTY FORTY TEN
#define SIXTY FIFTY TEN

Test(uri, what_is_wrong_is_named)
{
	static const struct {
		const char *text, *part;
	} rows[] = {
		{ "", "tcp://" },
		{ "127.0.0.1:7", "tcp://" },
		{ "http://h:1", "tcp://" },
		{ "tcp:/h:1", "tcp://" },
		{ "tcp://h", "port is missing" },
		{ "tcp://2001:db8::1", "port" },
		{ "tcp://[::1]", "port is missing" },
		{ "tcp://[::1:7", "]" },
		{ "tcp://[h]:7", "no IPv6" },
		{ "tcp://[::1%nosuchif0]:7", "no interface \"nosuchif0\"" },
		{ "tcp://[::1%]:7", "no interface \"\"" },
		{ "tcp://[::1%0]:7", "no interface \"0\"" },
		{ "tcp://[::1%65535]:7", "no interface \"65535\"" },
		{ "tcp://[::1::1%lo]:7", "no IPv6" },
		{ "tcp://[fe80::1]:7", "[fe80::1%eth0]" },
		{ "sctp://127.0.0.1,[fe80::1]:7", "[fe80::1%eth0]" },
		{ "tcp://[127.0.0.1]:7", "no IPv6" },
		{ "tcp://[]:7", "no IPv6" },
		{ "tcp://h:", "not a number" },
		{ "sctp://h:7?backend=usrsctp", "use native" },
		{ "tcp://h:65536", "65536" },
		{ "shm://", "path of a socket" },
		{ "shm://h:7", "path of a socket" },
		{ "shm://run/x", "path of a socket" },
		{ "shm:///x?tos=1", "no options" },
		{ "shm://@x#y", "no options" },
		{ "tcp://h:-1", "-1" },
		{ "tcp://h:7x", "7x" },
		{ "tcp://h:000007", "000007" },
		{ "tcp://h:7/path", "no path" },
		{ "tcp://h h:7", "character 8 " },
		{ "tcp://h%41:7", "character" },
		{ "tcp://h\n:7", "character 8 " },
		{ "tcp://h\x7f:7", "character 8 " },
		{ "tcp://h\xc3\xa9:7", "character 8 " },
		{ "\x1b[2J", "character 1 " },
		{ "tcp://h:\x1b[2J", "character 9 " },
		{ "tcp://[\x1b]:7", "character 8 " },
		{ "sctp://h:7?\t=1", "character 12 " },
		{ "tcp://user@h:7", "character" },
		{ "tcp://h:7?encap=1", "no options" },
		{ "tcp://h:7?", "no options" },
		{ "sctp://h:7?", "unknown option" },
		{ "sctp://h:7?what=1", "what" },
		{ "sctp://h:7?encap", "needs a value" },
		{ "sctp://h:7?encap=", "encap" },
		{ "sctp://h:7?encap=65536", "65536" },
		{ "sctp://h:7?encap=x", "x" },
		{ "sctp://h:7?backend=linux", "linux" },
		{ "sctp://h:7?backend=", "backend" },
		{ "sctp://h:7?encap=1&encap=1", "twice" },
		{ "sctp://h:7?encap=1&", "unknown option" },
		{ "tcp://192.0.2.1,192.0.2.2:7", "no list" },
		{ "sctp://192.0.2.1,:7", "no address" },
		{ "sctp://,192.0.2.1:7", "no address" },
		{ "sctp://h,192.0.2.1:7", "\"h\"" },
		{ "sctp://192.0.2.1,h:7", "\"h\"" },
		{ "sctp://192.0.2.1,192.0.2.1:7", "twice" },
		{ "sctp://[::1],[0::1]:7", "twice" },
		{ "sctp://"
		  "1.0.0.1,1.0.0.2,1.0.0.3,1.0.0.4,1.0.0.5,1.0.0.6,1.0.0.7,1.0.0.8,1.0.0.9:9",
		  "more than 8" },
		{ "sctp://1.0.0.1,[::1:7", "without \"]\"" },
		{ "sctp://h:7?backend=linuxes", "\"linuxes\" is none" },
		{ "sctp://h:7?local=1.0.0.1:" SIXTY "7", "local \"1.0.0.1:" FIFTY "12\" is" },
		{ "sctp://h:7?per-address=" SIXTY, "per-address \"" FORTY "\" is" },
		{ "sctp://h:7?local=", "no address" },
		{ "sctp://h:7?local=h", "no address" },
		{ "sctp://h:7?local=1.0.0.1:5", "without ports" },
		{ "sctp://h:7?local=1.0.0.1,&encap=1", "no address" },
		{ "sctp://h:7?local=1.0.0.1&local=1.0.0.2", "twice" },
		{ "sctp://h:7?per-address=0", "per-address" },
		{ "sctp://h:7?per-address=65536", "from 1 to 65535" },
		{ "sctp://h:7?per-address=-1", "\"-1\"" },
		{ "tcp://h:7?per-address=1", "no options" },
		{ "tcp://h:7?tos=256", "from 0 to 255" },
		{ "sctp://h:7?tos=", "tos \"\" is not" },
	};

	for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
		struct ddps_uri u;
		char why[200] = "";

		cr_expect_eq(ddps_uri_parse(&u, rows[i].text, why, sizeof why), DDPS_E_ADDRESS,
			     "%s", rows[i].text);
		cr_expect_not_null(strstr(why, rows[i].part), "%s: %s", rows[i].text, why);
	}
}

Test(uri, every_port_and_none_above)
{
	char text[40], why[200];
	struct ddps_uri u;

	for (unsigned port = 0; port <= 70000; port++) {
		snprintf(text, sizeof text, "sctp://h:%u?encap=%u", port, port);
		if (port > 65535) {
			cr_assert_eq(ddps_uri_parse(&u, text, why, sizeof why), DDPS_E_ADDRESS);
			continue;
		}
		cr_assert_eq(ddps_uri_parse(&u, text, why, sizeof why), 0, "%s", why);
		cr_assert_eq(u.port, port);
		cr_assert_eq(u.encap, (int)port);
	}
}

/* Every length of @why, in exact-size memory: cut, terminated, never overrun. */
Test(uri, an_overlong_part_is_cut_in_the_sentence)
{
	static const char *const before[] = {
		"", "tcp://[", "tcp://h:", "sctp://h:7?", "sctp://h:7?backend=", "sctp://h:7?encap="
	};
	struct ddps_uri u;
	char text[5000];

	for (size_t i = 0; i < sizeof before / sizeof before[0]; i++) {
		size_t n = strlen(before[i]);

		memcpy(text, before[i], n);
		memset(text + n, '9', sizeof text - n);
		memcpy(text + sizeof text - 2, i == 1 ? "]" : "9", 2);
		for (size_t len = 1; len <= 200; len++) {
			char *why = malloc(len);

			cr_assert_eq(ddps_uri_parse(&u, text, why, len), DDPS_E_ADDRESS);
			cr_assert_lt(strnlen(why, len), len);
			free(why);
		}
	}
}

Test(uri, host_length_limit)
{
	char text[400], why[200];
	struct ddps_uri u;

	for (size_t n = 254; n <= 257; n++) {
		memcpy(text, "tcp://", 6);
		memset(text + 6, 'h', n);
		memcpy(text + 6 + n, ":7", 3);
		cr_expect_eq(ddps_uri_parse(&u, text, why, sizeof why),
			     n <= 255 ? 0 : DDPS_E_ADDRESS, "%zu", n);
	}
}

Test(uri, addresses_and_their_text)
{
	static const char *const rows[][2] = {
		{ "tcp://192.0.2.1:7174", "192.0.2.1:7174" },
		{ "tcp://[2001:db8:0::1]:80", "[2001:db8::1]:80" },
		{ "tcp://255.255.255.255:65535", "255.255.255.255:65535" },
		{ "tcp://0.10.100.99:10", "0.10.100.99:10" },
		{ "tcp://:9", "[::]:9" },
		{ "tcp://[::ffff:192.0.2.9]:5", "192.0.2.9:5" },
		{ "tcp://[fe80::1%lo]:5", "[fe80::1%lo]:5" },
		{ "tcp://[2001:db8::1%lo]:5", "[2001:db8::1]:5" },
	};
	struct ddps_addr number;
	struct sockaddr_storage ss;
	struct ddps_uri u;
	char text[80], why[200];
	socklen_t len;

	for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
		cr_assert_eq(ddps_uri_parse(&u, rows[i][0], why, sizeof why), 0);
		cr_assert_eq(ddps_uri_sockaddr(&u, &ss, &len), 0);
		cr_expect_eq(len, ss.ss_family == AF_INET ? sizeof(struct sockaddr_in)
							  : sizeof(struct sockaddr_in6));
		ddps_addr_text((struct sockaddr *)&ss, text, sizeof text);
		cr_expect_str_eq(text, rows[i][1]);
		number = ddps_addr_of((struct sockaddr *)&ss);
		ddps_addr_text_of(&number, text, sizeof text);
		cr_expect_str_eq(text, rows[i][1]);
	}
	cr_assert_eq(ddps_uri_parse(&u, "tcp://[fe80::1%lo]:5", why, sizeof why), 0);
	cr_assert_eq(ddps_uri_sockaddr(&u, &ss, &len), 0);
	cr_expect_eq(((struct sockaddr_in6 *)&ss)->sin6_scope_id, if_nametoindex("lo"));
	((struct sockaddr_in6 *)&ss)->sin6_scope_id = 65535; /* the interface has gone */
	ddps_addr_text((struct sockaddr *)&ss, text, sizeof text);
	cr_expect_str_eq(text, "[fe80::1%65535]:5");
	cr_assert_eq(ddps_uri_parse(&u, "tcp://192.0.2.1:7174", why, sizeof why), 0);
	cr_assert_eq(ddps_uri_sockaddr(&u, &ss, &len), 0);
	for (size_t room = 1; room <= sizeof "192.0.2.1:7174"; room++) {
		memset(text, 'x', sizeof text);
		ddps_addr_text((struct sockaddr *)&ss, text, room);
		cr_expect_eq(strlen(text), room - 1);
		cr_expect_eq(strncmp(text, "192.0.2.1:7174", room - 1), 0);
		cr_expect_eq(text[room], 'x', "nothing behind it is touched");
	}
	cr_assert_eq(ddps_uri_parse(&u, "tcp://name:1", why, sizeof why), 0);
	cr_expect_eq(ddps_uri_sockaddr(&u, &ss, &len), DDPS_E_ADDRESS);
}
