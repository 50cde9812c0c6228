/* SPDX-License-Identifier: BSD-2-Clause */
/* User messages of the DDP adaptation. */
#include "sctp_ddp/sd_wire.h"
#include <criterion/criterion.h>
#include <ddpsess/err.h>
#include <stdlib.h>
#include <string.h>

/* In memory of exactly that size, so that a read beyond it is seen. */
static int decode_sd_wire(struct ddps_sd_msg *m, uint32_t ppid, const void *data, size_t len,
			  uint8_t **copy)
{
	*copy = malloc(len ? len : 1);
	memcpy(*copy, data, len);
	return ddps_sd_decode(m, ppid, *copy, len);
}

static const struct example {
	uint32_t ppid;
	const char *octets;
	size_t len;
	uint16_t ssn, code;
	const char *data;
	size_t data_len;
} examples[] = {
	/* RFC 5043 */
	{ 17, "\0\0\0\1hi", 6, 0, 1, "hi", 2 },
	{ 17, "\0\0\0\2", 4, 0, 2, "", 0 },
	{ 17, "\0\0\0\3no", 6, 0, 3, "no", 2 },
	{ 17, "\0\2\0\4", 4, 2, 4, "", 0 },
	{ 17, "\0\0\0\4", 4, 0, 4, "", 0 },
	{ 17, "\0\6\0\4", 4, 6, 4, "", 0 },
	{ 16, "\0\1\x41\x43\0\0\0\0\0\0\0\0\0\0\0\1\0\0\0\0", 20, 1, 0,
	  "\x41\x43\0\0\0\0\0\0\0\0\0\0\0\1\0\0\0\0", 18 },
	{ 16, "\0\1\xc1\x40\0\0\0\1\0\0\0\0\0\0\0\0", 16, 1, 0, "\xc1\x40\0\0\0\1\0\0\0\0\0\0\0\0",
	  14 },
	/* RFC 6581 */
	{ 17, "\0\0\0\5\x80\x10\xc0\x08hello", 13, 0, 5, "\x80\x10\xc0\x08hello", 9 },
	{ 17, "\0\0\0\6\x80\x08\x80\x10", 8, 0, 6, "\x80\x08\x80\x10", 4 },
	{ 17, "\0\0\0\7\x80\x10\x80\x20", 8, 0, 7, "\x80\x10\x80\x20", 4 },
};

#define NEXAMPLES (sizeof(examples) / sizeof(examples[0]))

Test(sd_wire, decodes_the_examples,
     .description = "5043-5.2.3-d1 5043-5.2-d1 5043-4-d2 5043-5.2.1-d1")
{
	for (size_t i = 0; i < NEXAMPLES; i++) {
		const struct example *x = &examples[i];
		struct ddps_sd_msg m;
		uint8_t *copy;

		cr_assert_eq(decode_sd_wire(&m, x->ppid, x->octets, x->len, &copy), 0, "%zu", i);
		cr_expect_eq(m.segment, x->ppid == 16);
		cr_expect_not(m.bad, "%zu", i);
		cr_expect_eq(m.ssn, x->ssn);
		cr_expect_eq(m.code, x->code);
		cr_assert_eq(m.len, x->data_len);
		cr_expect_arr_eq(m.data, x->data, x->data_len, "%zu", i);
		free(copy);
	}
}

Test(sd_wire, encodes_what_it_decodes)
{
	for (unsigned code = 1; code <= 7; code++) {
		uint8_t out[DDPS_SD_CONTROL_LEN];
		struct ddps_sd_msg m;

		ddps_sd_encode_control(out, 0xfedc, (uint16_t)code);
		cr_assert_eq(ddps_sd_decode(&m, 17, out, sizeof(out)), 0);
		cr_expect_eq(m.ssn, 0xfedc);
		cr_expect_eq(m.code, code);
	}
}

Test(sd_wire, every_truncation)
{
	for (size_t i = 0; i < NEXAMPLES; i++) {
		const struct example *x = &examples[i];
		size_t fixed = x->ppid == 16 ? 2 : 4;

		for (size_t n = 0; n < x->len; n++) {
			struct ddps_sd_msg m;
			uint8_t *copy;
			int err = decode_sd_wire(&m, x->ppid, x->octets, n, &copy);

			cr_assert_eq(err, n < fixed ? DDPS_E_TRUNCATED : 0, "%zu: %zu", i, n);
			if (!err)
				cr_expect_eq(m.len, n - fixed);
			free(copy);
		}
	}
}

static bool is_message_bad(uint16_t code, size_t pd_len)
{
	uint8_t *buf = calloc(1, 4 + pd_len);
	struct ddps_sd_msg m;

	ddps_sd_encode_control(buf, 3, code);
	cr_assert_eq(ddps_sd_decode(&m, 17, buf, 4 + pd_len), 0);
	cr_assert_eq(m.ssn, 3); /* in any case it has its place in the order */
	cr_assert_eq(m.code, code);
	free(buf);
	return m.bad;
}

Test(sd_wire, private_data_limits,
     .description = "5043-5.2.3-3 5043-5.2.3-4 5043-5.2.3-2 6581-7-4 6581-7-5")
{
	for (uint16_t code = 1; code <= 3; code++) {
		cr_expect_not(is_message_bad(code, 0));
		cr_expect_not(is_message_bad(code, 511));
		cr_expect_not(is_message_bad(code, 512));
		cr_expect(is_message_bad(code, 513));
	}
	cr_expect_not(is_message_bad(DDPS_SD_TERMINATE, 0));
	cr_expect(is_message_bad(DDPS_SD_TERMINATE, 1));
	for (uint16_t code = 5; code <= 6; code++) {
		cr_expect(is_message_bad(code, 0));
		cr_expect(is_message_bad(code, 3));
		cr_expect_not(is_message_bad(code, 4));
		cr_expect_not(is_message_bad(code, 4 + 508));
		cr_expect(is_message_bad(code, 4 + 509));
	}
	cr_expect_not(is_message_bad(DDPS_SD_ENH_REJECT, 0));
	cr_expect_not(is_message_bad(DDPS_SD_ENH_REJECT, 3));
	cr_expect_not(is_message_bad(DDPS_SD_ENH_REJECT, 512));
	cr_expect(is_message_bad(DDPS_SD_ENH_REJECT, 513));
}

Test(sd_wire, unknown_function_codes, .description = "5043-5.2.3-d1")
{
	cr_expect(is_message_bad(0, 0));
	cr_expect(is_message_bad(8, 0));
	cr_expect(is_message_bad(0x0100, 0));
	cr_expect(is_message_bad(0xffff, 0));
	cr_expect_str_eq(ddps_sd_code_name(8), "unknown function code");
	cr_expect_str_eq(ddps_sd_code_name(0), "unknown function code");
	cr_expect_str_eq(ddps_sd_code_name(5), "Enhanced Initiate");
}

Test(sd_wire, other_ppids, .description = "5043-5.1-d2")
{
	static const uint32_t ppids[] = { 0, 15, 18, 0x10000000, 0x11000000, 0xffffffff };
	struct ddps_sd_msg m;

	for (size_t i = 0; i < sizeof(ppids) / sizeof(ppids[0]); i++)
		cr_expect_eq(ddps_sd_decode(&m, ppids[i], (const uint8_t *)"\0\0\0\1", 4),
			     DDPS_E_PROTOCOL);
	cr_expect(ddps_sd_ppid_swapped(0x10000000));
	cr_expect(ddps_sd_ppid_swapped(0x11000000));
	cr_expect_not(ddps_sd_ppid_swapped(16));
	cr_expect_not(ddps_sd_ppid_swapped(17));
	cr_expect_not(ddps_sd_ppid_swapped(0x12000000));
}

Test(sd_wire, mulpdu_of_the_usual_paths, .description = "5043-9-1 5043-9-3 5043-9-d1 5043-9-d2")
{
	cr_expect_eq(ddps_sd_mulpdu(1452, 0), 1430); /* IPv4, 1500 */
	cr_expect_eq(ddps_sd_mulpdu(1432, 0), 1410); /* IPv6, 1500 */
	cr_expect_eq(ddps_sd_mulpdu(1444, 0), 1422); /* IPv4 in UDP */
	cr_expect_eq(ddps_sd_mulpdu(1212, 0), 1190);
	cr_expect_eq(ddps_sd_mulpdu(8952, 0), 8930);
	cr_expect_eq(ddps_sd_mulpdu(528, 0), 516); /* IPv4, 576: the floor */
	cr_expect_eq(ddps_sd_mulpdu(536, 0), 516);
	cr_expect_eq(ddps_sd_mulpdu(540, 0), 518);
	cr_expect_eq(ddps_sd_mulpdu(1455, 0), 1430); /* not a multiple of 4 */
	cr_expect_eq(ddps_sd_mulpdu(0, 0), 516);
	cr_expect_eq(ddps_sd_mulpdu(8952, 1430), 1430);
	cr_expect_eq(ddps_sd_mulpdu(1452, 1431), 1430);
	cr_expect_eq(ddps_sd_mulpdu(1452, 128), 128);
}

/* Codes above the last are none that could need an enhanced word. */
Test(sd_wire, private_data_of_unknown_codes)
{
	cr_expect(ddps_sd_pd_ok(DDPS_SD_ENH_REJECT + 1, 0));
	cr_expect(ddps_sd_pd_ok(0, 0));
	cr_expect_not(ddps_sd_pd_ok(DDPS_SD_ENH_INITIATE, 0));
	cr_expect_not(ddps_sd_pd_ok(DDPS_SD_ENH_REJECT + 1, DDPS_SD_PD_MAX + 1));
}

/* Each code is called by its name, and two of them ask for a session. */
Test(sd_wire, what_each_code_is, .description = "5043-5.2.3-1")
{
	static const char *const names[] = {
		NULL,	     "Initiate",	  "Accept",	     "Reject",
		"Terminate", "Enhanced Initiate", "Enhanced Accept", "Enhanced Reject"
	};
	struct ddps_sd_msg msg;

	for (uint16_t code = 0; code < 9; code++) {
		bool asks = code == DDPS_SD_INITIATE || code == DDPS_SD_ENH_INITIATE;

		cr_expect_str_eq(ddps_sd_code_name(code),
				 code && code < 8 ? names[code] : "unknown function code");
		msg = (struct ddps_sd_msg){ .code = code };
		cr_expect_eq(ddps_sd_is_initiate(&msg), asks, "%u", code);
		msg.bad = true;
		cr_expect_not(ddps_sd_is_initiate(&msg), "%u", code);
		msg = (struct ddps_sd_msg){ .code = code, .segment = true };
		cr_expect_not(ddps_sd_is_initiate(&msg), "%u", code);
	}
	cr_expect(ddps_sd_pd_ok(DDPS_SD_ENH_REJECT, 0));
	cr_expect_not(ddps_sd_pd_ok(DDPS_SD_ENH_ACCEPT, 3));
}
