/* SPDX-License-Identifier: BSD-2-Clause */
/* sessctl: text for people, and what of a peer's octets is safe to print. */
#include "cli/hostport.h"
#include "cli/text.h"
#include "xfer/target.h"
#include <criterion/criterion.h>
#include <stdio.h>
#include <string.h>

Test(sessctl_text, clean_accepts_utf8_without_controls)
{
	static const struct {
		const char *text;
		bool clean;
	} row[] = {
		{ "", true },
		{ "plain.txt", true },
		{ "gr\xc3\xbc\xc3\x9f", true },
		{ "\xe2\x82\xac", true },
		{ "\xf0\x9f\x98\x80", true },
		{ "a\nb", false },
		{ "\x1b[31m", false },
		{ "\x7f", false },
		{ "\xc2\x9b", false },	       /* C1 CSI */
		{ "\x9b", false },	       /* a continuation alone */
		{ "\xc3", false },	       /* cut short */
		{ "\xc0\xaf", false },	       /* overlong '/' */
		{ "\xe0\x80\xaf", false },     /* overlong '/' */
		{ "\xed\xa0\x80", false },     /* surrogate */
		{ "\xf4\x90\x80\x80", false }, /* beyond U+10FFFF */
		{ "\xf8\x88\x80\x80\x80", false },
	};

	for (size_t i = 0; i < sizeof row / sizeof *row; i++)
		cr_expect_eq(text_is_clean(row[i].text, strlen(row[i].text)), row[i].clean,
			     "row %zu", i);
	cr_expect_not(text_is_clean("a\0b", 3));
}

/* What turns the text around it is as bad as an escape; what joins letters is a part of names. */
Test(sessctl_text, contact_19_nothing_turns_the_text_around_it)
{
	static const uint16_t turns[] = { 0x61c,  0x200e, 0x200f, 0x2028, 0x2029, 0x202a,
					  0x202b, 0x202c, 0x202d, 0x202e, 0x2066, 0x2067,
					  0x2068, 0x2069, 0xad,	  0x180e, 0x200b, 0x2060,
					  0x2064, 0x206a, 0x206f, 0xfeff, 0xfff9, 0xfffb };
	char text[4], dst[8];

	for (size_t i = 0; i < sizeof turns / sizeof *turns; i++) {
		unsigned c = turns[i];
		size_t n = c < 0x800 ? 2 : 3;

		text[0] = (char)(n == 2 ? 0xc0 | c >> 6 : 0xe0 | c >> 12);
		text[1] = (char)(0x80 | (n == 2 ? c & 63 : c >> 6 & 63));
		text[2] = (char)(0x80 | (c & 63));
		cr_expect_not(text_is_clean(text, n), "U+%04X", c);
		text_clean(dst, sizeof dst, text, n);
		cr_expect_str_eq(dst, "?", "U+%04X", c);
	}
	cr_expect_not(text_is_clean("\xf3\xa0\x80\x81", 4), "tags");
	cr_expect_not(text_is_clean("\xf3\xa0\x81\xbf", 4), "tags");
	cr_expect(text_is_clean("\xf3\xa0\x84\x80", 4), "what is behind them");
	cr_expect(text_is_clean("\xe2\x80\x8c\xe2\x80\x8d\xe2\x80\xaf\xe2\x81\xb0", 12));
}

Test(sessctl_text, clean_copy_is_always_clean_and_terminated)
{
	uint8_t all[256];
	char dst[300];

	for (unsigned i = 0; i < 256; i++)
		all[i] = (uint8_t)i;
	for (size_t size = 1; size < sizeof dst; size++) {
		memset(dst, 'X', sizeof dst);
		text_clean(dst, size, all, sizeof all);
		cr_assert_lt(strlen(dst), size);
		cr_assert(text_is_clean(dst, strlen(dst)));
	}
	text_clean(dst, sizeof dst, "a\x1b[2J\xc3\xbc", 7);
	cr_expect_str_eq(dst, "a?[2J\xc3\xbc");
	text_clean(dst, 3, "a\xc3\xbc", 3); /* no half of a character */
	cr_expect_str_eq(dst, "a");
}

Test(sessctl_text, sizes)
{
	static const struct {
		uint64_t n;
		const char *text;
	} row[] = { { 0, "0 octets" },	     { 1, "1 octet" },	      { 1023, "1023 octets" },
		    { 1024, "1 KiB" },	     { 1536, "1.5 KiB" },     { 64ull << 20, "64 MiB" },
		    { 5ull << 30, "5 GiB" }, { UINT64_MAX, "16 EiB" } };
	char s[24];

	for (size_t i = 0; i < sizeof row / sizeof *row; i++) {
		text_size(s, sizeof s, row[i].n);
		cr_expect_str_eq(s, row[i].text);
	}
}

Test(sessctl_text, times_and_rates)
{
	char s[24];

	text_time(s, sizeof s, 0.424);
	cr_expect_str_eq(s, "0.42 s");
	text_time(s, sizeof s, 12.34);
	cr_expect_str_eq(s, "12.3 s");
	text_time(s, sizeof s, 185);
	cr_expect_str_eq(s, "3:05");
	text_time(s, sizeof s, 3723);
	cr_expect_str_eq(s, "1:02:03");
	text_time(s, sizeof s, 1e300);
	cr_expect_gt(strlen(s), 4);
	text_rate(s, sizeof s, 1024 * 1024 * 12.25);
	cr_expect_str_eq(s, "12.2 MiB/s");
}

Test(sessctl_text, hexadecimal_both_ways)
{
	uint8_t out[4];
	char s[9];

	text_hex(s, (const uint8_t[]){ 0x00, 0xff, 0x1a, 0x90 }, 4);
	cr_expect_str_eq(s, "00ff1a90");
	cr_expect_eq(text_unhex(out, sizeof out, "00Ff1a90"), 4);
	cr_expect_arr_eq(out, ((uint8_t[]){ 0x00, 0xff, 0x1a, 0x90 }), 4);
	cr_expect_eq(text_unhex(out, sizeof out, ""), 0);
	cr_expect_eq(text_unhex(out, sizeof out, "0"), -1);
	cr_expect_eq(text_unhex(out, sizeof out, "0g"), -1);
	cr_expect_eq(text_unhex(out, sizeof out, "g0"), -1);
	cr_expect_eq(text_unhex(out, sizeof out, " 0"), -1);
	cr_expect_eq(text_unhex(out, sizeof out, "0011223344"), -1);
}

Test(sessctl_target, splits_uri_and_name)
{
	static const struct {
		const char *text, *uri, *name;
	} row[] = {
		{ "tcp://h:1", "tcp://h:1", "" },
		{ "tcp://h:1/", "tcp://h:1", "" },
		{ "tcp://h:1/a", "tcp://h:1", "a" },
		{ "tcp://[::1]:1/d/a b", "tcp://[::1]:1", "d/a b" },
		{ "tcp://h:1//etc/passwd", "tcp://h:1", "/etc/passwd" },
		{ "tcp://h:1/../x", "tcp://h:1", "../x" },
		{ "sctp://h:1?backend=kernel", "sctp://h:1?backend=kernel", "" },
		{ "sctp://h:1?backend=kernel&encap=off/n", "sctp://h:1?backend=kernel&encap=off",
		  "n" },
		{ "sctp://h:1/n?backend=kernel", "sctp://h:1?backend=kernel", "n" },
		{ "sctp://h:1?encap=1/n?m", "sctp://h:1?encap=1", "n?m" },
		{ "tcp://h:1/100%25%3f", "tcp://h:1", "100%?" },
		{ "shm:///run/x", "shm:///run/x", "" },
		{ "shm:///run/x:d/a", "shm:///run/x", "d/a" },
		{ "shm:///run/x:y:a%3ab", "shm:///run/x:y", "a:b" },
		{ "shm://@x:a", "shm://@x", "a" },
	};
	struct target t;
	char why[800];

	for (size_t i = 0; i < sizeof row / sizeof *row; i++) {
		cr_assert_eq(target_parse(&t, row[i].text, why, sizeof why), 0, "%s", row[i].text);
		cr_expect_str_eq(t.uri, row[i].uri, "%s: %s", row[i].text, t.uri);
		cr_expect_str_eq(t.name, row[i].name, "%s: %s", row[i].text, t.name);
	}
}

Test(sessctl_target, refuses_what_is_no_uri)
{
	static const char *const text[] = { "",
					    "file",
					    "://h:1/a",
					    "tcp:/h/a",
					    "tcp://h:1/%",
					    "tcp://h:1/%4",
					    "tcp://h:1/%zz",
					    "tcp://h:1/a%00b" };
	struct target t;
	char why[800];

	for (size_t i = 0; i < sizeof text / sizeof *text; i++) {
		why[0] = 0;
		cr_expect_eq(target_parse(&t, text[i], why, sizeof why), -1, "%s", text[i]);
		cr_expect_gt(strlen(why), 10);
	}
}

Test(sessctl_target, limits_of_uri_and_name)
{
	static char text[TARGET_URI_MAX + TARGET_NAME_MAX + 10];
	struct target t;
	char why[8000];

	for (int over = -1; over <= 1; over++) {
		int n = sprintf(text, "tcp://h:1/");

		memset(text + n, 'n', (size_t)(TARGET_NAME_MAX + over));
		text[n + TARGET_NAME_MAX + over] = 0;
		cr_expect_eq(target_parse(&t, text, why, sizeof why), over > 0 ? -1 : 0);
		n = sprintf(text, "tcp://");
		memset(text + n, 'h', (size_t)(TARGET_URI_MAX - n + over));
		strcpy(text + TARGET_URI_MAX + over, "/n");
		cr_expect_eq(target_parse(&t, text, why, sizeof why), over > 0 ? -1 : 0);
	}
}

Test(sessctl_target, basename_is_what_follows_the_last_slash)
{
	cr_expect_str_eq(target_basename("a"), "a");
	cr_expect_str_eq(target_basename("/x/a"), "a");
	cr_expect_str_eq(target_basename("x/"), "");
}

Test(hostport, numeric_addresses_with_a_port)
{
	static const char *const good[] = { "192.0.2.1:7000", "[2001:db8::1]:65535", "[::]:0" };
	static const char *const wrong[] = { "",
					     "192.0.2.1",
					     "192.0.2.1:",
					     ":7000",
					     "192.0.2.1:70000",
					     "192.0.2.1:+1",
					     "192.0.2.1:7x",
					     "2001:db8::1:1",
					     "[2001:db8::1]",
					     "[192.0.2.1:7000",
					     "name:7000",
					     "192.0.2.1:1/2" };
	struct sockaddr_storage ss;

	for (size_t i = 0; i < sizeof good / sizeof *good; i++)
		cr_expect_eq(hostport_parse(&ss, good[i]), 0, "%s", good[i]);
	cr_expect_eq(ss.ss_family, AF_INET6);
	for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++)
		cr_expect_eq(hostport_parse(&ss, wrong[i]), -1, "%s", wrong[i]);
}

Test(hostport, parts_of_a_uri)
{
	cr_expect(hostport_has_host("tcp://h:1") && hostport_has_port("tcp://h:1"));
	cr_expect(!hostport_has_host("tcp://:1") && hostport_has_port("tcp://:1"));
	cr_expect(hostport_has_host("sctp://[::1]:0?encap=9899"));
	cr_expect(!hostport_has_port("sctp://[::1]:0?encap=9899"));
	cr_expect(!hostport_has_port("tcp://[::1]"));
}
