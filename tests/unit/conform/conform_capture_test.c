/* SPDX-License-Identifier: BSD-2-Clause */
/* What went over the wire: for people, and as a capture file. */
#include <criterion/criterion.h>
#include <ddpsess/conform.h>
#include <ddpsess/err.h>
#include <stdio.h>
#include <string.h>

/* ---- what went over the wire ---- */

static const struct ddps_conform_item items[] = {
	{ .next = &items[1], .octets = (const uint8_t *)"one", .len = 3, .wire = DDPS_CONFORM_TCP },
	{ .next = &items[2],
	  .octets = (const uint8_t *)"two",
	  .len = 3,
	  .by_target = 1,
	  .wire = DDPS_CONFORM_TCP },
	{ .octets = (const uint8_t *)"end", .len = 3, .wire = DDPS_CONFORM_TCP },
};

Test(conform_capture, the_end_of_what_went_over_the_wire_is_printed)
{
	const struct ddps_conform_result r = { .number = 1, .first = items };
	char text[1000] = { 0 };
	FILE *f = fmemopen(text, sizeof text, "w");

	cr_assert_not_null(f);
	ddps_conform_print(f, &r, 2, "# ");
	fclose(f);
	cr_expect(strstr(text, "# (1 earlier items left out)"), "%s", text);
	cr_expect(!strstr(text, "6f 6e 65") && strstr(text, "74 77 6f") && strstr(text, "65 6e 64"),
		  "%s", text);
	cr_expect(strstr(text, "# <-") && strstr(text, "# ->"), "%s", text);
}

static size_t capture_exchange(uint8_t *to, size_t size, uint32_t number)
{
	const struct ddps_conform_result r = { .number = number, .first = items };
	FILE *f = fmemopen(to, size, "w");
	long n;

	cr_assert_not_null(f);
	cr_expect_eq(ddps_conform_pcap_begin(f), 0);
	cr_expect_eq(ddps_conform_pcap_add(f, &r), 0);
	n = ftell(f);
	fclose(f);
	return (size_t)n;
}

Test(conform_capture, captures_tell_cases_apart_and_say_when_they_fail)
{
	const struct ddps_conform_result r = { .number = 1, .first = items };
	static uint8_t a[2000], b[2000];
	const size_t n = capture_exchange(a, sizeof a, 1);
	FILE *full = fopen("/dev/full", "w");

	cr_expect_eq(capture_exchange(b, sizeof b, 2), n);
	cr_expect(memcmp(a, b, n), "the ports differ");
	cr_assert_not_null(full);
	setvbuf(full, NULL, _IONBF, 0);
	cr_expect_eq(ddps_conform_pcap_begin(full), DDPS_E_SYSTEM);
	cr_expect_eq(ddps_conform_pcap_add(full, &r), DDPS_E_SYSTEM);
	fclose(full);
}

/* ---- all kinds of items ---- */

#define PIECE  60000u /* octets of a packet at most */
#define RECORD 16u

static uint8_t long_one[2 * PIECE + 1];

static struct ddps_conform_item item(uint8_t wire, size_t len, const struct ddps_conform_item *next)
{
	return (struct ddps_conform_item){ .next = next,
					   .octets = len ? long_one : NULL,
					   .len = len,
					   .stream = 5,
					   .ppid = 16,
					   .wire = wire };
}

Test(conform_capture, long_items_of_sctp_are_printed_in_part)
{
	const struct ddps_conform_item one = item(DDPS_CONFORM_SCTP, 65, NULL);
	const struct ddps_conform_item two = item(DDPS_CONFORM_SCTP, 64, &one);
	const struct ddps_conform_result r = { .number = 1, .first = &two };
	char text[1000] = { 0 }, *end;
	FILE *f = fmemopen(text, sizeof text, "w");

	ddps_conform_print(f, &r, 9, "");
	fclose(f);
	cr_expect(strstr(text, "stream 5 ppid 16 64 octets"), "%s", text);
	end = strstr(text, "65 octets");
	cr_assert_not_null(end);
	cr_expect(strstr(end, " ...\n"), "%s", text);
	*end = 0;
	cr_expect(!strstr(text, "..."), "all of the shorter one is there: %s", text);
}

/* A file that takes so many octets. */
static size_t room, taken;
static uint8_t file[3 * PIECE];

static ssize_t take_file_octets(void *cookie, const char *p, size_t len)
{
	(void)cookie;
	if (taken + len > room)
		return 0;
	memcpy(file + taken, p, len);
	taken += len;
	return (ssize_t)len;
}

static int capture_into(size_t octets, const struct ddps_conform_item *first)
{
	const struct ddps_conform_result r = { .number = 1, .first = first };
	FILE *f = fopencookie(NULL, "w", (cookie_io_functions_t){ .write = take_file_octets });
	int err;

	cr_assert_not_null(f);
	setvbuf(f, NULL, _IONBF, 0);
	room = octets;
	taken = 0;
	err = ddps_conform_pcap_add(f, &r);
	fclose(f);
	return err;
}

static uint32_t le(const uint8_t *p)
{
	return p[0] | (uint32_t)p[1] << 8 | (uint32_t)p[2] << 16 | (uint32_t)p[3] << 24;
}

/* The length of the record at @at, and where the next one is. */
static uint32_t check_record(size_t *at)
{
	uint32_t len = le(file + *at + 8);

	cr_expect_eq(le(file + *at + 12), len);
	*at += RECORD + len;
	return len;
}

Test(conform_capture, a_run_of_octets_is_cut_into_packets)
{
	const struct ddps_conform_item two = item(DDPS_CONFORM_TCP, PIECE, NULL);
	const struct ddps_conform_item one = item(DDPS_CONFORM_TCP, PIECE, &two);
	const struct ddps_conform_item more = item(DDPS_CONFORM_TCP, PIECE + 1, NULL);
	size_t at = 0;

	cr_expect_eq(capture_into(sizeof file, &one), 0);
	cr_expect_eq(check_record(&at), 40 + PIECE);
	cr_expect_eq(check_record(&at), 40 + PIECE);
	cr_expect_eq(at, taken, "and no empty one behind");
	at = 0;
	cr_expect_eq(capture_into(sizeof file, &more), 0);
	cr_expect_eq(check_record(&at), 40 + PIECE);
	cr_expect_eq(check_record(&at), 40 + 1);
	cr_expect_eq(at, taken);
	cr_expect_eq(capture_into(100, &one), DDPS_E_SYSTEM);
	cr_expect_eq(capture_into(RECORD + 40 + PIECE, &more), DDPS_E_SYSTEM);
}

/* Another connection, wire or direction is another packet. */
Test(conform_capture, what_does_not_go_on)
{
	struct ddps_conform_item last = item(DDPS_CONFORM_TCP, 3, NULL);
	const struct ddps_conform_item first = item(DDPS_CONFORM_TCP, 2, &last);

	for (unsigned i = 0; i < 4; i++) {
		size_t at = 0;

		last.connection = i == 1;
		last.by_target = i == 2;
		last.wire = i == 3 ? DDPS_CONFORM_IB : DDPS_CONFORM_TCP;
		cr_expect_eq(capture_into(sizeof file, &first), 0);
		cr_expect_eq(check_record(&at), i ? 42 : 45);
		if (i)
			cr_expect_eq(check_record(&at), i == 3 ? 3 : 43);
		cr_expect_eq(at, taken);
	}
}

/* Each kind of item, whole, and with each of its octets missing at the end. */
Test(conform_capture, a_disk_that_is_full)
{
	static const struct {
		uint8_t wire, by_target;
		size_t len, all;
	} row[] = {
		{ DDPS_CONFORM_SCTP, 0, 5, 20 + 28 + 8 },  { DDPS_CONFORM_SCTP, 1, 4, 20 + 28 + 4 },
		{ DDPS_CONFORM_SCTP, 1, 0, 20 + 28 },	   { DDPS_CONFORM_PACKET, 0, 30, 20 + 30 },
		{ DDPS_CONFORM_PACKET, 1, 30, 20 + 30 },   { DDPS_CONFORM_IB, 1, 30, 30 },
		{ DDPS_CONFORM_TCP, 0, 30, 20 + 20 + 30 },
	};

	for (size_t i = 0; i < sizeof row / sizeof *row; i++) {
		struct ddps_conform_item one = item(row[i].wire, row[i].len, NULL);
		size_t at = 0;

		one.by_target = row[i].by_target;
		one.wrong = i == 3;
		cr_expect_eq(capture_into(sizeof file, &one), 0, "%zu", i);
		cr_expect_eq(check_record(&at), row[i].all, "%zu", i);
		cr_expect_eq(at, taken);
		for (size_t n = 0; n < at; n++)
			cr_expect_eq(capture_into(n, &one), DDPS_E_SYSTEM, "%zu, %zu", i, n);
	}
}

/* What was malformed on purpose has an identification that a filter finds. */
Test(conform_capture, packets_made_wrong_are_marked)
{
	struct ddps_conform_item one = item(DDPS_CONFORM_PACKET, 30, NULL);

	for (unsigned wrong = 0; wrong < 2; wrong++) {
		one.wrong = wrong;
		cr_expect_eq(capture_into(sizeof file, &one), 0);
		cr_expect_eq(file[RECORD + 4] << 8 | file[RECORD + 5], wrong ? 0x0bad : 0);
		cr_expect_eq(file[RECORD + 6], 0x40, "DF");
	}
}
