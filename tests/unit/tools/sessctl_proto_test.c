/* SPDX-License-Identifier: BSD-2-Clause */
/* sessctl: codec of the services' messages. */
#include "xfer/proto.h"
#include <criterion/criterion.h>
#include <stdlib.h>
#include <string.h>

/* One of each type with every field of its own set. */
static struct msg sample(enum msg_type type)
{
	struct msg m = { .type = type,
			 .force = true,
			 .op = PING_READ,
			 .kind = DIGEST_CRC32C,
			 .nslots = SLOTS_MAX,
			 .slot = SLOTS_MAX - 1,
			 .len = SLOT_LEN_MAX,
			 .pause_ms = PAUSE_MAX_MS,
			 .depth = PERF_DEPTH_MAX,
			 .stag = 0xdeadbeef,
			 .to = UINT64_MAX,
			 .off = INT64_MAX,
			 .size = INT64_MAX,
			 .text = "some name" };

	for (uint8_t i = 0; i < sizeof m.digest; i++)
		m.digest[i] = (uint8_t)(i + 1);
	return m;
}

static int decode_sessctl_proto(struct msg *m, const uint8_t *buf, size_t len)
{
	uint8_t *exact = malloc(len ? len : 1); /* ASan guards octet len */
	const char *why = NULL;
	int err;

	if (len)
		memcpy(exact, buf, len);
	err = msg_decode(m, len ? exact : exact + 1, len, &why);
	cr_assert_eq(err != 0, why != NULL);
	free(exact);
	return err;
}

Test(sessctl_proto, octets_of_a_put)
{
	static const uint8_t want[] = { 0x53, 0x43, 1, 1, 1, 0,	  0,   0,   1,	0,
					0,    0,    2, 0, 4, 'n', 'a', 'm', 'e' };
	struct msg m = { .type = MSG_PUT, .force = true, .size = 0x100000002, .text = "name" };
	uint8_t buf[MSG_MAX];

	cr_assert_eq(msg_encode(&m, buf, sizeof buf), sizeof want);
	cr_expect_arr_eq(buf, want, sizeof want);
}

Test(sessctl_proto, octets_of_a_put_by)
{
	static const uint8_t want[] = { 0x53, 0x43, 1, 14, 1, 0, 0,   0,   1,	0,
					0,    0,    2, 1,  0, 4, 'n', 'a', 'm', 'e' };
	struct msg m = { .type = MSG_PUT_BY,
			 .force = true,
			 .size = 0x100000002,
			 .kind = DIGEST_CRC32C,
			 .text = "name" };
	uint8_t buf[MSG_MAX];

	cr_assert_eq(msg_encode(&m, buf, sizeof buf), sizeof want);
	cr_expect_arr_eq(buf, want, sizeof want);
}

Test(sessctl_proto, octets_of_a_ready)
{
	static const uint8_t want[] = { 0x53, 0x43, 1, 7, 2, 0, 0, 0x10, 0, 1, 2, 3, 4, 0, 0,
					0,    0,    0, 0, 0, 9, 0, 0,	 0, 1, 0, 0, 0, 0 };
	struct msg m = { .type = MSG_READY,
			 .slot = 2,
			 .len = 0x1000,
			 .stag = 0x01020304,
			 .to = 9,
			 .off = 0x100000000 };
	uint8_t buf[MSG_MAX];

	cr_assert_eq(msg_encode(&m, buf, sizeof buf), sizeof want);
	cr_expect_arr_eq(buf, want, sizeof want);
}

Test(sessctl_proto, every_type_survives_the_round_trip)
{
	for (unsigned type = 1; type < MSG_NTYPES; type++) {
		struct msg in = sample((enum msg_type)type), out;
		uint8_t buf[MSG_MAX], back[MSG_MAX];
		size_t len = msg_encode(&in, buf, sizeof buf);

		cr_assert_gt(len, 4, "%s", msg_name(in.type));
		cr_assert_eq(decode_sessctl_proto(&out, buf, len), 0, "%s", msg_name(in.type));
		cr_expect_eq(out.type, type);
		cr_assert_eq(msg_encode(&out, back, sizeof back), len);
		cr_expect_arr_eq(back, buf, len);
	}
}

Test(sessctl_proto, every_truncation_and_any_excess_is_refused)
{
	for (unsigned type = 1; type < MSG_NTYPES; type++) {
		struct msg in = sample((enum msg_type)type), out;
		uint8_t buf[MSG_MAX] = { 0 };
		size_t len = msg_encode(&in, buf, sizeof buf);

		for (size_t n = 0; n < len; n++)
			cr_expect_eq(decode_sessctl_proto(&out, buf, n), -1, "%s, %zu",
				     msg_name(in.type), n);
		cr_expect_eq(decode_sessctl_proto(&out, buf, len + 1), -1);
	}
}

Test(sessctl_proto, encoding_needs_the_whole_room)
{
	for (unsigned type = 1; type < MSG_NTYPES; type++) {
		struct msg in = sample((enum msg_type)type);
		uint8_t buf[MSG_MAX];
		size_t len = msg_encode(&in, buf, sizeof buf);

		for (size_t n = 0; n < len; n++) {
			uint8_t *small = malloc(n ? n : 1);

			cr_expect_eq(msg_encode(&in, small, n), 0);
			free(small);
		}
		cr_expect_eq(msg_encode(&in, buf, len), len);
	}
}

Test(sessctl_proto, head_is_checked)
{
	struct msg in = sample(MSG_CREDIT), out;
	uint8_t buf[MSG_MAX], bad[MSG_MAX];
	size_t len = msg_encode(&in, buf, sizeof buf);

	for (size_t at = 0; at < 3; at++)
		for (unsigned bit = 0; bit < 8; bit++) {
			memcpy(bad, buf, len);
			bad[at] ^= (uint8_t)(1 << bit);
			cr_expect_eq(decode_sessctl_proto(&out, bad, len), -1);
		}
	for (unsigned type = 0; type < 256; type++) {
		memcpy(bad, buf, len);
		bad[3] = (uint8_t)type;
		cr_expect_eq(decode_sessctl_proto(&out, bad, len) == 0, type == MSG_CREDIT, "%u",
			     type);
	}
}

/* Decode @m's encoding with the octet at @at replaced. */
static int patched(const struct msg *m, size_t at, uint8_t v)
{
	uint8_t buf[MSG_MAX];
	size_t len = msg_encode(m, buf, sizeof buf);
	struct msg out;

	cr_assert_lt(at, len);
	buf[at] = v;
	return decode_sessctl_proto(&out, buf, len);
}

Test(sessctl_proto, values_at_their_limits)
{
	struct msg put = sample(MSG_PUT), ping = sample(MSG_PING), go = sample(MSG_GO),
		   credit = sample(MSG_CREDIT), chunk = sample(MSG_CHUNK), get = sample(MSG_GET_BY);
	uint8_t buf[MSG_MAX];

	cr_expect_eq(patched(&put, 4, 1), 0);
	cr_expect_eq(patched(&put, 4, 2), -1);
	cr_expect_eq(patched(&put, 5, 0x7f), 0);
	cr_expect_eq(patched(&put, 5, 0x80), -1); /* size 2^63 */
	cr_expect_eq(patched(&ping, 4, PING_NOPS - 1), 0);
	cr_expect_eq(patched(&ping, 4, PING_NOPS), -1);
	cr_expect_eq(patched(&get, 4, DIGEST_KINDS - 1), 0);
	cr_expect_eq(patched(&get, 4, DIGEST_KINDS), -1);
	cr_expect_eq(patched(&go, 4, SLOTS_MAX), 0);
	cr_expect_eq(patched(&go, 4, SLOTS_MAX + 1), -1);
	cr_expect_eq(patched(&credit, 4, SLOTS_MAX - 1), 0);
	cr_expect_eq(patched(&credit, 4, SLOTS_MAX), -1);
	chunk.len = SLOT_LEN_MAX - 1;
	cr_expect_gt(msg_encode(&chunk, buf, sizeof buf), 0);
	chunk.len = SLOT_LEN_MAX + 1;
	cr_expect_eq(msg_encode(&chunk, buf, sizeof buf), 0);
	cr_expect_eq(patched(&credit, 3, MSG_CHUNK), -1);
	ping.len = PING_MAX;
	cr_expect_gt(msg_encode(&ping, buf, sizeof buf), 0);
	ping.len = PING_MAX + 1;
	cr_expect_eq(msg_encode(&ping, buf, sizeof buf), 0);
	ping.len = 0;
	ping.pause_ms = PAUSE_MAX_MS + 1;
	cr_expect_eq(msg_encode(&ping, buf, sizeof buf), 0);
}

Test(sessctl_proto, length_over_the_limit_is_refused)
{
	struct msg m = sample(MSG_CHUNK);

	m.len = SLOT_LEN_MAX;
	cr_expect_eq(patched(&m, 8, 0), 0);  /* 0x00100000 */
	cr_expect_eq(patched(&m, 8, 1), -1); /* 0x00100001 */
	cr_expect_eq(patched(&m, 5, 0xff), -1);
}

Test(sessctl_proto, text_is_bounded_and_without_nul)
{
	struct msg in = { .type = MSG_GET }, out;
	uint8_t buf[MSG_MAX + 8];
	size_t len;

	cr_expect_eq(msg_encode(&in, buf, sizeof buf), 0); /* empty */
	memset(in.text, 'n', MSG_TEXT_MAX);
	len = msg_encode(&in, buf, sizeof buf);
	cr_assert_eq(len, 6 + MSG_TEXT_MAX);
	cr_assert_eq(decode_sessctl_proto(&out, buf, len), 0);
	cr_expect_eq(strlen(out.text), MSG_TEXT_MAX);
	buf[4] = (MSG_TEXT_MAX + 1) >> 8; /* one more, all of it there */
	buf[5] = (MSG_TEXT_MAX + 1) & 0xff;
	buf[len] = 'n';
	cr_expect_eq(decode_sessctl_proto(&out, buf, len + 1), -1);
	strcpy(in.text, "abc");
	len = msg_encode(&in, buf, sizeof buf);
	buf[len - 2] = 0;
	cr_expect_eq(decode_sessctl_proto(&out, buf, len), -1);
	buf[4] = 0; /* empty on the wire */
	buf[5] = 0;
	cr_expect_eq(decode_sessctl_proto(&out, buf, 6), -1);
}

Test(sessctl_proto, names)
{
	cr_expect_str_eq(msg_name(MSG_CHUNK), "CHUNK");
	cr_expect_str_eq(msg_name((enum msg_type)0), "?");
	cr_expect_str_eq(msg_name(MSG_NTYPES), "?");
	cr_expect_str_eq(ping_op_name(PING_WRITE), "write");
	cr_expect_str_eq(ping_op_name(PING_NOPS), "?");
	cr_expect_str_eq(perf_op_name(PERF_READ), "read");
	cr_expect_str_eq(perf_op_name(PERF_PING), "ping");
	cr_expect_str_eq(perf_op_name(PERF_NOPS), "?");
}

Test(sessctl_proto, limits_of_a_perf)
{
	static const uint8_t want[] = { 0x53, 0x43, 1, 13, 3, 0, 0, 0, 64, 0, 0, 0, 128 };
	struct msg m = { .type = MSG_PERF, .op = PERF_PING, .len = 64, .depth = PERF_DEPTH_MAX };
	uint8_t buf[MSG_MAX];
	struct msg out;

	cr_assert_eq(msg_encode(&m, buf, sizeof buf), sizeof want);
	cr_expect_arr_eq(buf, want, sizeof want);
	cr_assert_eq(decode_sessctl_proto(&out, buf, sizeof want), 0);
	cr_expect_eq(out.depth, 128);
	buf[12] = 129;
	cr_expect_eq(decode_sessctl_proto(&out, buf, sizeof want), -1);
	buf[12] = 0;
	cr_expect_eq(decode_sessctl_proto(&out, buf, sizeof want), -1);
	buf[12] = 1;
	cr_expect_eq(decode_sessctl_proto(&out, buf, sizeof want), 0);
	buf[4] = PERF_NOPS;
	cr_expect_eq(decode_sessctl_proto(&out, buf, sizeof want), -1);
	m.depth = PERF_DEPTH_MAX + 1;
	cr_expect_eq(msg_encode(&m, buf, sizeof buf), 0);
	cr_expect_eq(PERF_ACK_EVERY(1u), 1);
	cr_expect_eq(PERF_ACK_EVERY(7u), 1);
	cr_expect_eq(PERF_ACK_EVERY(8u), 2);
}
