/* SPDX-License-Identifier: BSD-2-Clause */
/* What the cases that make packets themselves read: packets looked at whole, and what they note of chunks. */
#include "conform/run.h"
#include "conform/sctp/raw.h"
#include "unit/conform/conform_packet_fixture.h"
#include <stdio.h>

static struct cf_raw r;
static const struct cf_run run = { .limit_ms = 5000 };
static struct cf_res res;

/* A link of which nothing was sent yet but its INIT, and the target's socket knows where to answer. */
static void open_raw_link(int family)
{
	struct sockaddr_storage a;
	socklen_t len = sizeof a;

	dial_conform_packet(family);
	memset(&r, 0, sizeof r);
	cf.run = &run;
	cf.res = &res;
	r.cf = &cf;
	r.l = l;
	cr_assert_eq(recvfrom(target, said.b, sizeof said.b, 0, (struct sockaddr *)&a, &len),
		     HEADER + 4 + 24);
	cr_assert_eq(connect(target, (struct sockaddr *)&a, len), 0);
}

/* Why the packet in @in fails the case; NULL: it does not. */
static const char *lint(void)
{
	cf_put32(in.b + 8, cf_pkt_sum(in.b, in.len));
	memset(r.in, 0xff, sizeof r.in);
	memcpy(r.in, in.b, in.len);
	r.in_len = in.len;
	if (setjmp(cf.left.to))
		return cf.left.why;
	cf_raw_lint(&r);
	return NULL;
}

static void expect_lint(const char *want, const char *what)
{
	const char *why = lint();

	if (want)
		cr_expect(why && strstr(why, want), "%s: %s", what, why ? why : "it is let pass");
	else
		cr_expect_null(why, "%s: %s", what, why);
}

/* Parameters of an INIT ACK (RFC 9260 sections 3.3.2 and 5.1.2). */
Test(conform_raw, parameters_of_an_init_ack)
{
	static const struct {
		const char *what;
		uint8_t b[32];
		size_t len;
		const char *says;
	} row[] = {
		{ "IPv6", { 0, 6, 0, 20, 0x20, 1, [19] = 1 }, 20, NULL },
		{ "IPv4 in IPv6",
		  { 0, 6, 0, 20, [14] = 0xff, 0xff, 127, 0, 0, 1 },
		  20,
		  "a mapped address" },
		{ "types without host names", { 0, 12, 0, 8, 0, 5, 0, 6 }, 8, NULL },
		{ "types with host names",
		  { 0, 12, 0, 8, 0, 5, 0, 11 },
		  8,
		  "host names among supported addresses" },
		{ "an octet more", { 0, 12, 0, 7, 0, 5, 11 }, 8, NULL },
		{ "no types", { 0, 12, 0, 4 }, 4, NULL },
		{ "a host name", { 0, 11, 0, 8, 'a' }, 8, "a host name" },
		{ "one twice", { 0x80, 0, 0, 4, 0x80, 0, 0, 4 }, 8, "parameter 32768 comes twice" },
		{ "IPv4 twice", { 0, 5, 0, 8, 127, 0, 0, 1, 0, 5, 0, 8, 127, 0, 0, 2 }, 16, NULL },
		{ "not whole", { 0, 5, 0, 9, 127, 0, 0, 1 }, 8, "parameter that is not whole" },
		{ "half of one", { 0, 5 }, 2, "parameter that is not whole" },
		{ "padding", { 0, 12, 0, 6, 0, 5, 0, 1 }, 8, "padding of a parameter is not zero" },
	};
	uint8_t b[16 + 32];

	open_raw_link(AF_INET);
	init_fields(b, TAG, 1, 1);
	for (size_t i = 0; i < sizeof row / sizeof *row; i++) {
		begin_tester_packet(l->tag);
		memcpy(b + 16, row[i].b, row[i].len);
		put_conform_packet_chunk(CF_C_INIT_ACK, 0, b, 16 + row[i].len);
		expect_lint(row[i].says, row[i].what);
	}
	take_conform_packet_down();
}

/* Whole packets (RFC 9260 sections 3.2, 3.3 and 6.10). */
Test(conform_raw, packets_looked_at_whole)
{
	static const struct {
		const char *what;
		uint8_t b[32];
		size_t len;
		const char *says;
	} row[] = {
		{ "COOKIE ACK", { 11, 0, 0, 4 }, 4, NULL },
		{ "half a chunk", { 11, 0, 0, 4, 3, 0 }, 6, "a chunk that is not whole" },
		{ "a chunk of three octets", { 11, 0, 0, 3 }, 4, "a chunk that is not whole" },
		{ "a chunk without its padding",
		  { 10, 0, 0, 5, 1 },
		  5,
		  "a chunk that is not whole" },
		{ "padding", { 10, 0, 0, 5, 1, 0, 1, 0 }, 8, "padding that is not zero" },
		{ "flags", { 11, 1, 0, 4 }, 4, "chunk 11 with flags 01" },
		{ "a COOKIE ACK behind",
		  { 4, 0, 0, 8, 0, 1, 0, 4, 11, 0, 0, 4 },
		  12,
		  "chunk 11 does not lead its packet" },
		{ "DATA without data", { 0, 3, 0, 16, [15] = 16 }, 16, "DATA of 12 octets" },
		{ "SACK behind DATA",
		  { 0, 3, 0, 20, [20] = 3, 0, 0, 16 },
		  36,
		  "chunk 3 behind DATA" },
		{ "an adaptation indication",
		  { 4, 0, 0, 12, 0xc0, 6, 0, 8, 0, 0, 0, 1 },
		  12,
		  NULL },
		{ "one in a cause",
		  { 6, 0, 0, 12, 0xc0, 6, 0, 8, 0, 0, 0, 1 },
		  12,
		  "outside INIT and INIT ACK" },
		{ "a bad address", { 9, 0, 0, 12, 0, 5, 0, 8 }, 12, "without the address" },
		{ "an ERROR of nothing", { 9, 0, 0, 4 }, 4, "an ERROR without a cause" },
		{ "a long COOKIE ACK", { 11, 0, 0, 8, 0, 0, 0, 0 }, 8, "chunk 11 with 4 octets" },
	};

	open_raw_link(AF_INET);
	for (size_t i = 0; i < sizeof row / sizeof *row; i++) {
		begin_tester_packet(l->tag);
		memcpy(in.b + HEADER, row[i].b, sizeof row[i].b);
		memset(in.b + HEADER + sizeof row[i].b, 0, 8);
		in.len = HEADER + row[i].len;
		expect_lint(row[i].says, row[i].what);
	}
	begin_tester_packet(l->tag ^ 2);
	put_conform_packet_chunk(CF_C_COOKIE_ACK, 0, "", 0);
	expect_lint("chunk 11 under tag", "another tag");
	r.old_tag = l->tag ^ 2;
	expect_lint(NULL, "one that it may use");
	take_conform_packet_down();
}

Test(conform_raw, a_parameter_is_found_or_not)
{
	static const uint8_t p[] = { 0, 9, 0, 5, 1, 0, 0, 0, 0, 7, 0, 6, 2, 3, 0, 0, 0, 8, 0, 3 };
	static const uint8_t cut[] = { 0, 9, 0, 9, 1, 0, 0, 0 };
	size_t n = 0;

	cr_expect_eq(cf_raw_param(p, sizeof p, 7, &n), p + 12);
	cr_expect_eq(n, 2);
	cr_expect_null(cf_raw_param(p, sizeof p, 8, &n), "shorter than its header");
	cr_expect_null(cf_raw_param(cut, sizeof cut, 9, &n), "longer than what there is");
	cr_expect_null(cf_raw_param(p, 16, 8, &n));
}

/* ---- chunks that come ---- */

/* Whether one comes; if not, cf.left.why has the reason. */
static bool take_next_raw_chunk(struct cf_raw_chunk *c)
{
	r.in_off = r.in_len = 0;
	*cf.left.why = 0;
	if (setjmp(cf.left.to))
		return false;
	return cf_raw_next(&r, 5000, c);
}

static bool comes_to_the_case(struct cf_raw_chunk *c)
{
	cf_put32(in.b + 8, cf_pkt_sum(in.b, in.len));
	cr_assert_eq(send(target, in.b, in.len, 0), (ssize_t)in.len);
	return take_next_raw_chunk(c);
}

Test(conform_raw, sacks_are_noted)
{
	uint8_t b[12 + 4 * 40] = { 0 };
	struct cf_raw_chunk c;

	open_raw_link(AF_INET);
	cf_put32(b, 77);
	cf_put32(b + 4, 5000);
	cf_put16(b + 8, 20);
	cf_put16(b + 10, 20);
	for (unsigned i = 0; i < 20; i++) {
		cf_put16(b + 12 + 4 * i, (uint16_t)(2 * i + 2));
		cf_put16(b + 14 + 4 * i, (uint16_t)(2 * i + 2));
		cf_put32(b + 12 + 4 * (20 + i), 100 + i);
	}
	begin_tester_packet(l->tag);
	put_conform_packet_chunk(CF_C_SACK, 0, b, sizeof b);
	cr_assert(comes_to_the_case(&c), "%s", cf.left.why);
	cr_expect(r.sack_cum == 77 && r.sack_rwnd == 5000 && r.ngaps == 20 && r.ndups == 20);
	cr_expect(r.gap[15][0] == 32 && r.gap[15][1] == 32 && r.dup[15] == 115);
	begin_tester_packet(l->tag);
	put_conform_packet_chunk(CF_C_SACK, 0, b, sizeof b - 4);
	cr_expect(!comes_to_the_case(&c));
	cr_expect_str_eq(cf.left.why, "SACK of 168 octets");
	begin_tester_packet(l->tag);
	put_conform_packet_chunk(CF_C_SACK, 0, b, 8);
	cr_expect(!comes_to_the_case(&c));
	cr_expect_str_eq(cf.left.why, "SACK of 8 octets");
	take_conform_packet_down();
}

Test(conform_raw, the_deaf_answer_no_heartbeat)
{
	struct cf_raw_chunk c;

	open_raw_link(AF_INET6);
	for (unsigned i = 0; i < 2; i++) {
		r.deaf = i;
		begin_tester_packet(l->tag);
		put_conform_packet_chunk(CF_C_HEARTBEAT, 0, "\0\1\0\10abcd", 8);
		cr_assert(comes_to_the_case(&c), "%s", cf.left.why);
		cr_expect_eq(c.type, CF_C_HEARTBEAT);
		cr_expect_eq(read_tester_chunk(), i ? -1 : CF_C_HEARTBEAT_ACK);
	}
	take_conform_packet_down();
}

/* RFC 5043 section 6: a message of another application is no answer of the session's. */
static bool is_raw_data_heard(uint32_t ppid)
{
	struct cf_patience p = { 0 };
	struct cf_run patient = { .limit_ms = 5000, .patience = &p };
	uint8_t b[13] = { [3] = 1 };

	open_raw_link(AF_INET);
	cf.run = &patient;
	cf_put32(b + 8, ppid);
	begin_tester_packet(l->tag);
	put_conform_packet_chunk(CF_C_DATA, F_WHOLE, b, sizeof b);
	cf_put32(in.b + 8, cf_pkt_sum(in.b, in.len));
	cr_assert_eq(send(target, in.b, in.len, 0), (ssize_t)in.len);
	r.in_off = r.in_len = 0;
	cr_assert(!setjmp(cf.left.to), "%s", cf.left.why);
	cf_raw_want_data(&r);
	take_conform_packet_down();
	return p.heard[CF_PART_SESSION];
}

Test(conform_raw, data_of_another_application_is_no_answer)
{
	cr_expect(is_raw_data_heard(16));
	cr_expect(!is_raw_data_heard(0));
	cr_expect(!is_raw_data_heard(46));
}

/* What a raw socket of IPv4 gives has the IP header in front. */
Test(conform_raw, raw_sockets)
{
	static struct cf_pkt whole;
	struct cf_raw_chunk c;

	for (unsigned i = 0; i < 2; i++) {
		open_raw_link(i ? AF_INET6 : AF_INET);
		get_tester_carrier()->raw = true;
		begin_tester_packet(l->tag);
		put_conform_packet_chunk(CF_C_COOKIE_ACK, 0, "", 0);
		cf_put32(in.b + 8, cf_pkt_sum(in.b, in.len));
		if (!i) {
			memset(whole.b, 0, 20);
			whole.b[0] = 0x45;
			memcpy(whole.b + 20, in.b, in.len);
			cr_assert_eq(send(target, whole.b, 20 + in.len, 0), (ssize_t)(20 + in.len));
		} else {
			cr_assert_eq(send(target, in.b, in.len, 0), (ssize_t)in.len);
		}
		cr_assert(take_next_raw_chunk(&c), "%s", cf.left.why);
		cr_expect_eq(c.type, CF_C_COOKIE_ACK);
		cr_expect_eq(r.in_len, HEADER + 4);
		cr_assert_eq(send(target, "", 0, 0), 0);
		cr_expect(!take_next_raw_chunk(&c));
		cr_expect_str_eq(cf.left.why, "a packet of 0 octets");
		if (!i) {
			cr_assert_eq(send(target, whole.b, 19, 0), 19);
			cr_expect(!take_next_raw_chunk(&c));
			cr_expect_str_eq(cf.left.why, "an IP packet of 19 octets");
		}
		take_conform_packet_down();
	}
}

/* ---- INIT ACKs ---- */

static bool can_take_raw_chunk(struct cf_raw_chunk *c)
{
	if (setjmp(cf.left.to))
		return false;
	cf_raw_take_init(&r, c);
	return true;
}

Test(conform_raw, init_acks_have_a_cookie_that_can_be_kept)
{
	static uint8_t b[16 + 4 + 5000];
	struct cf_raw_chunk c = { .type = CF_C_INIT_ACK, .v = b };

	open_raw_link(AF_INET);
	init_fields(b, TAG, 5000, 65535);
	cf_put16(b + 16, COOKIE);
	for (unsigned n = 0; n < 2; n++) {
		cf_put16(b + 18, n ? 4 : 5004);
		c.len = n ? 20 : sizeof b;
		cr_expect(!can_take_raw_chunk(&c), "%u", n);
		cr_expect_str_eq(cf.left.why, "an INIT ACK without a cookie");
	}
	cf_put16(b + 16, UNKNOWN);
	cr_expect(!can_take_raw_chunk(&c));
	cf_put16(b + 16, COOKIE);
	cf_put16(b + 18, 4096);
	c.len = 16 + 4096;
	cr_expect(can_take_raw_chunk(&c), "%s", cf.left.why);
	cr_expect_eq(l->cookie_len, 4092);
	cr_expect_eq(cf_raw_last_stream(&r), CF_SCTP_STREAMS - 1, "we asked for no more");
	init_fields(b, TAG, 10, 20);
	cr_expect(can_take_raw_chunk(&c));
	cr_expect_eq(cf_raw_last_stream(&r), 9);
	init_fields(b, TAG, 30, 20);
	cr_expect(can_take_raw_chunk(&c));
	cr_expect_eq(cf_raw_last_stream(&r), 19);
	take_conform_packet_down();
}

/* Of an address that is nobody's: on a host that talks to itself of that host, else one for documents (RFC 5737). */
Test(conform_raw, an_address_that_is_new)
{
	uint8_t p[8];

	for (unsigned i = 0; i < 2; i++) {
		open_raw_link(i ? AF_INET6 : AF_INET);
		cf_raw_new_address(&r, p);
		cr_expect_eq(cf_get32(p), 5u << 16 | 8);
		cr_expect_eq(cf_get32(p + 4), 0x7f090909);
		r.l->own_fd = false;
		memset(&r.l->to, 0x20, sizeof r.l->to);
		r.l->to.ss_family = i ? AF_INET6 : AF_INET;
		cf_raw_new_address(&r, p);
		cr_expect_eq(cf_get32(p + 4), 0xc6336409);
		r.l->own_fd = true;
		take_conform_packet_down();
	}
}
