/* SPDX-License-Identifier: BSD-2-Clause */
/* sessctl: codec of the services' messages. */
#include "xfer/proto.h"
#include "xfer/serve/serve.h"
#include <criterion/criterion.h>
#include <stdlib.h>
#include <string.h>
#include <arpa/inet.h>
#include <sys/resource.h>

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

/* ---- sessctl listen: what one peer can have of sessions and memory ---- */

static struct server sv;

static struct serve_net find_share_net(const char *ip, uint32_t scope, uint16_t port)
{
	struct ddps_conn_info info = { .peer_addr = { .scope = scope, .port = port } };

	if (inet_pton(AF_INET, ip, info.peer_addr.ip) == 1)
		info.peer_addr.family = 4;
	else if (inet_pton(AF_INET6, ip, info.peer_addr.ip) == 1)
		info.peer_addr.family = 6;
	return share_net(&info);
}

static struct session *add_to_sessctl_share(const char *peer, size_t window)
{
	struct session *s = calloc(1, sizeof *s);

	cr_assert(s);
	*s = (struct session){ .sv = &sv, .net = find_share_net(peer, 0, 7) };
	s->win.len = window;
	LIST_INSERT_HEAD(&sv.sessions, s, of_all);
	sv.live++;
	sv.windows += window;
	return s;
}

static void fini(void)
{
	struct session *s;

	while ((s = LIST_FIRST(&sv.sessions))) {
		LIST_REMOVE(s, of_all);
		free(s);
	}
}

TestSuite(sessctl_share, .fini = fini);

Test(sessctl_share, contact_16_whose_shares)
{
	static const struct {
		const char *one, *other;
		uint32_t one_link, other_link;
		bool same;
	} pair[] = {
		{ "192.0.2.1", "192.0.2.1", 0, 0, true },
		{ "192.0.2.1", "192.0.2.2", 0, 0, false },
		{ "2001:db8::1", "2001:db8::ffff:2", 0, 0, true },
		{ "2001:db8::1", "2001:db8:0:1::1", 0, 0, false },
		{ "fe80::1", "fe80::1", 1, 1, true },
		{ "fe80::1", "fe80::1", 1, 2, false },
		{ "fe80::1", "fe80::2", 1, 1, true },
		{ "0.0.0.0", "::", 0, 0, false },
	};
	struct ddps_conn_info one = { .transport = DDPS_TRANSPORT_SHM, .shm.uid = 1 },
			      two = { .transport = DDPS_TRANSPORT_SHM, .shm.uid = 2 };
	struct serve_net a, b;

	for (size_t i = 0; i < sizeof pair / sizeof *pair; i++) {
		a = find_share_net(pair[i].one, pair[i].one_link, 7);
		b = find_share_net(pair[i].other, pair[i].other_link, 8);
		cr_expect_eq(!memcmp(&a, &b, sizeof a), pair[i].same, "%s, %s", pair[i].one,
			     pair[i].other);
	}
	a = share_net(&one);
	b = share_net(&two);
	cr_expect_neq(memcmp(&a, &b, sizeof a), 0, "two users of this host");
}

/* How many of @want sessions @peer gets. */
static unsigned let_in(const char *peer, unsigned want)
{
	const struct serve_net net = find_share_net(peer, 0, 1);
	unsigned n = 0;

	while (n < want && !share_of_sessions(&sv, &net)) {
		add_to_sessctl_share(peer, 0);
		n++;
	}
	return n;
}

Test(sessctl_share, contact_16_sessions_leave_as_many_for_others)
{
	const struct serve_net third = find_share_net("192.0.2.3", 0, 1);

	sv.room = 16;
	cr_expect_eq(let_in("192.0.2.1", 100), 8);
	cr_expect_eq(let_in("192.0.2.2", 100), 4);
	cr_expect_null(share_of_sessions(&sv, &third));
	cr_expect_eq(let_in("192.0.2.1", 100), 0);
	cr_expect(strstr(share_of_sessions(&sv, &LIST_FIRST(&sv.sessions)->net), "share"));
	cr_expect_eq(let_in("192.0.2.4", 100), 2);
	cr_expect_eq(let_in("192.0.2.5", 100), 1);
	cr_expect_eq(let_in("192.0.2.6", 100), 1, "the last one");
	sv.live = sv.room;
	cr_expect(strstr(share_of_sessions(&sv, &third), "full"));
}

Test(sessctl_share, contact_16_memory_leaves_as_much_for_others)
{
	struct session *s = add_to_sessctl_share("192.0.2.1", SERVE_WINDOWS_MAX / 2 - 1), *other;

	cr_expect_null(share_of_windows(s, 2));
	cr_expect(strstr(share_of_windows(s, 3), "share"));
	other = add_to_sessctl_share("192.0.2.2", 0);
	cr_expect_null(share_of_windows(other, SERVE_WINDOWS_MAX / 4));
	cr_expect_null(share_of_windows(other, 0));
	cr_expect(strstr(share_of_windows(other, SERVE_WINDOWS_MAX / 2 + 2), "busy"));
}

Test(sessctl_share, contact_16_sessions_have_files_to_open)
{
	static const struct {
		rlim_t files;
		unsigned sessions, half_open;
	} rows[] = {
		{ 27, 1, 1 }, { 28, 1, 1 }, { 64, 15, 10 }, { 1024, 375, 250 }, { 8000, 3476, 1024 }
	};

	for (size_t i = sizeof rows / sizeof *rows; i--;) {
		struct rlimit l = { rows[i].files, rows[i].files };
		unsigned n = 0, half = 1024;

		cr_assert_eq(setrlimit(RLIMIT_NOFILE, &l), 0);
		cr_expect(share_files(&n, &half));
		cr_expect(n == rows[i].sessions && half == rows[i].half_open, "%u: %u, %u",
			  (unsigned)rows[i].files, n, half);
		cr_expect_leq(2 * n + half + 24, rows[i].files);
	}
}

Test(sessctl_share, contact_16_too_few_files_for_a_session)
{
	struct rlimit l = { 26, 26 };
	unsigned n, half = 1024;

	cr_assert_eq(setrlimit(RLIMIT_NOFILE, &l), 0);
	cr_expect_not(share_files(&n, &half));
}
