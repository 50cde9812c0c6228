/* SPDX-License-Identifier: BSD-2-Clause */
/* Waits for a target that never answers; and what is said of octets that may be anything. */
#include "conform/peer/left.h"
#include "report/causes.h"
#include <criterion/criterion.h>
#include <stdlib.h>
#include <string.h>

#define MS UINT64_C(1000000)

Test(conform_patience, a_silent_target_is_waited_for_less_each_time)
{
	struct cf_patience p = { 0 };
	static const unsigned want[] = { 5000, 1250, 312, 78, 50, 50, 50 };

	for (size_t i = 0; i < sizeof want / sizeof *want; i++) {
		cr_expect_eq(cf_patience_ms(&p, CF_PART_SESSION, 5000), want[i]);
		cf_patience_silent(&p, CF_PART_SESSION);
	}
	cr_expect_eq(cf_patience_ms(&p, CF_PART_SETUP, 5000), 5000, "the other part is its own");
}

Test(conform_patience, what_answers_once_gets_whole_waits)
{
	struct cf_patience p = { 0 };

	for (unsigned i = 0; i < 9; i++)
		cf_patience_silent(&p, CF_PART_SETUP);
	cf_patience_heard(&p, CF_PART_SETUP, 40 * MS);
	cf_patience_silent(&p, CF_PART_SETUP);
	cr_expect_eq(cf_patience_ms(&p, CF_PART_SETUP, 5000), 5000);
}

Test(conform_patience, a_slow_answer_makes_the_shortest_wait_longer)
{
	struct cf_patience p = { 0 };

	cf_patience_heard(&p, CF_PART_SETUP, 100 * MS);
	for (unsigned i = 0; i < 9; i++)
		cf_patience_silent(&p, CF_PART_SESSION);
	cr_expect_eq(cf_patience_ms(&p, CF_PART_SESSION, 5000), 450);
	cr_expect_eq(cf_patience_ms(&p, CF_PART_SESSION, 300), 300, "never more than asked for");
}

/* One item of the target's, decoded.  Freed by the caller. */
static char *decode_item(uint32_t wire, uint32_t ppid, const uint8_t *b, size_t len,
			 struct decode_found *found)
{
	const struct ddps_conform_item i = {
		.octets = b, .len = len, .by_target = 1, .wire = wire, .ppid = ppid
	};
	const struct ddps_conform_result r = { .first = &i, .why = "" };
	char *text = NULL;
	size_t size;
	FILE *f = open_memstream(&text, &size);

	cr_assert(f);
	decode_talk(f, &r, 12, "", found);
	fclose(f);
	return text;
}

/* Each octet is in memory of its own length, so that a sanitizer sees whoever reads beyond. */
Test(conform_decode, any_octets_of_any_length_are_text)
{
	static const struct {
		uint32_t wire, ppid;
	} of[] = { { DDPS_CONFORM_TCP, 0 },
		   { DDPS_CONFORM_SCTP, 16 },
		   { DDPS_CONFORM_SCTP, 17 },
		   { DDPS_CONFORM_PACKET, 0 },
		   { DDPS_CONFORM_IB, 0 } };
	struct decode_found found;

	srand(37);
	for (unsigned turn = 0; turn < 3000; turn++) {
		size_t len = (size_t)rand() % 120;
		uint8_t *b = malloc(len ? len : 1);
		char *text;

		cr_assert(b);
		for (size_t i = 0; i < len; i++)
			b[i] = (uint8_t)rand();
		if (len > 40 && turn % 3 == 0)
			memcpy(b, "MPA ID Rep Frame\x50\x02\0\4", 20);
		if (len > 40 && turn % 3 == 1)
			b[0] = 0x45;
		if (len > 30 && turn % 7 == 0)
			b[28] = 0x64;
		text = decode_item(of[turn % 5].wire, of[turn % 5].ppid, b, len, &found);
		for (const char *s = text; *s; s++)
			cr_assert(*s == '\n' || (*s >= ' ' && *s < 0x7f));
		free(text);
		free(b);
	}
}

/* What is said of octets that came and were followed by none, or by the end. */
static enum cause find_cause(const uint8_t *b, size_t len, uint32_t stop)
{
	const struct ddps_conform_result r = { .stop = stop, .why = "" };
	struct decode_found found;

	free(decode_item(DDPS_CONFORM_TCP, 0, b, len, &found));
	return cause_of(&r, &found);
}

#define REPLY "MPA ID Rep Frame\x40\x01\0\0"
#define AFTER (20 + 8)

Test(conform_decode, what_is_cut_short_or_no_message_has_a_cause_of_its_own)
{
	static const struct {
		uint8_t b[AFTER + 1];
		size_t len;
		enum cause want;
	} row[] = {
		{ "MPA ID R", 8, CAUSE_PART_SETUP },
		{ "MPA ID Rep Frame\x40\x01\0\4", 21, CAUSE_PART_SETUP },
		{ "MPA ID Rep Frame\x40\x09\0\0", 20, CAUSE_WRONG_SETUP },
		{ "MPA ID Rep Frame\x40\x00\0\0", 20, CAUSE_WRONG_SETUP },
		{ "MPA ID Rep Frame\x40\x01\xff\xff", 20, CAUSE_WRONG_SETUP },
		{ "MPA ID Req Frame\x40\x01\0\0", 20, CAUSE_WRONG_SETUP },
		{ REPLY "\0\x12\x41\x47", 24, CAUSE_PART_FPDU },
		{ REPLY "\0\x12", 22, CAUSE_PART_FPDU },
		{ REPLY "HTTP/1.1", AFTER, CAUSE_NOT_FPDU },
		{ REPLY "\0\x02\x40\x47____", AFTER, CAUSE_NOT_FPDU },
		{ REPLY "\0\x02\x41\x4c____", AFTER, CAUSE_NOT_FPDU },
		{ REPLY "\0\x02\x41\x07____", AFTER, CAUSE_NOT_FPDU },
		/* a wrong DDP version under the right CRC is said as such */
		{ REPLY "\0\x02\x40\x47\x99\xa6\xae\x6d", AFTER, CAUSE_SILENT_SESSION },
		{ REPLY, 20, CAUSE_SILENT_SESSION },
	};

	for (size_t i = 0; i < sizeof row / sizeof *row; i++)
		cr_expect_eq(find_cause(row[i].b, row[i].len, DDPS_CONFORM_STOP_SILENT_SESSION),
			     row[i].want, "row %zu", i);
	cr_expect_eq(find_cause(row[0].b, 8, DDPS_CONFORM_STOP_NONE), CAUSE_NONE,
		     "the suite read no further");
	cr_expect_eq(find_cause(row[0].b, 8, DDPS_CONFORM_STOP_CLOSED_SETUP), CAUSE_PART_SETUP);
	cr_expect_eq(find_cause(row[0].b, 8, DDPS_CONFORM_STOP_WENT_ON), CAUSE_GOES_ON,
		     "nor does it behind what should be the end");
	cr_expect_eq(find_cause((const uint8_t *)"MPA ID Rep Frame\x41\x01\0\0", 20,
				DDPS_CONFORM_STOP_NONE),
		     CAUSE_RESERVED);
	cr_expect_eq(find_cause((const uint8_t *)"MPA ID Rep Frame\x50\x02\0\0", 20,
				DDPS_CONFORM_STOP_NONE),
		     CAUSE_NONE, "in revision 2 it is not reserved");
}

/* RFC 6581 section 9: bit S and the word of IRD and ORD are of revision 2. */
Test(conform_decode, a_frame_of_revision_1_is_not_enhanced)
{
	static const uint8_t plain[] = "MPA ID Rep Frame\x50\x01\0\4\0\1\0\2";
	static const uint8_t enhanced[] = "MPA ID Rep Frame\x50\x02\0\4\0\1\0\2";
	struct decode_found found;
	char *text = decode_item(DDPS_CONFORM_TCP, 0, plain, 24, &found);

	cr_expect(strstr(text, "Rev 1, CRC, reserved bits 10, 4 octets of private data"), "%s",
		  text);
	free(text);
	text = decode_item(DDPS_CONFORM_TCP, 0, enhanced, 24, &found);
	cr_expect(strstr(text, "Rev 2, CRC, enhanced, IRD 1, ORD 2\n"), "%s", text);
	free(text);
}

Test(conform_decode, a_rejection_and_a_stranger_are_found)
{
	static const uint8_t reject[20] = "MPA ID Rep Frame\x60\x01\0\0";
	struct decode_found found;
	char *text = decode_item(DDPS_CONFORM_TCP, 0, reject, sizeof reject, &found);

	cr_expect(strstr(text, "MPA Reply, Rev 1, CRC, REJECTED"), "%s", text);
	cr_expect(found.rejects && !found.stranger && found.came);
	free(text);
	text = decode_item(DDPS_CONFORM_TCP, 0, (const uint8_t *)"HTTP/1.1 400 Bad Request", 24,
			   &found);
	cr_expect(strstr(text, "not an MPA frame"), "%s", text);
	cr_expect(found.stranger);
	free(text);
}
