/* SPDX-License-Identifier: BSD-2-Clause */
/* SCTP's codec, cookies and tables, octet by octet. */
#include <criterion/criterion.h>
#include "sctp/parts/sctp_pool.h"
#include "sctp/sctp_in.h"

static const uint8_t init_pkt[] = { /* ports 5000, 9899; tag 11223344, OS and MIS 10, adaptation */
				    0x13, 0x88, 0x26, 0xab, 0x00, 0x00, 0x00, 0x00, 0x50, 0x13,
				    0x5f, 0x87, 0x01, 0x00, 0x00, 0x1c, 0x11, 0x22, 0x33, 0x44,
				    0x00, 0x02, 0x00, 0x00, 0x00, 0x0a, 0x00, 0x0a, 0x00, 0x00,
				    0x00, 0x64, 0xc0, 0x06, 0x00, 0x08, 0x00, 0x00, 0x00, 0x01
};
static const uint8_t data_pkt[] = { /* U, B, E; TSN 100, stream 3, PPID 17, "hi" */
				    0x13, 0x88, 0x26, 0xab, 0x55, 0x66, 0x77, 0x88, 0x02,
				    0xdc, 0xbd, 0xb4, 0x00, 0x07, 0x00, 0x16, 0x00, 0x00,
				    0x00, 0x64, 0x00, 0x03, 0x00, 0x00, 0x00, 0x00, 0x00,
				    0x11, 0x00, 0x00, 0x00, 0x01, 0x68, 0x69, 0x00, 0x00
};
static const uint8_t sack_pkt[] = { /* cum 12, window 4660, gaps 2-3 and 5-5 */
				    0x26, 0xab, 0x13, 0x88, 0x11, 0x22, 0x33, 0x44, 0xa3,
				    0x77, 0xe1, 0x9c, 0x03, 0x00, 0x00, 0x18, 0x00, 0x00,
				    0x00, 0x0c, 0x00, 0x00, 0x12, 0x34, 0x00, 0x02, 0x00,
				    0x00, 0x00, 0x02, 0x00, 0x03, 0x00, 0x05, 0x00, 0x05
};

static struct ddps_sc_chunk get_first_sctp_wire(const uint8_t *p, size_t len)
{
	struct ddps_rbuf r = ddps_sc_chunks(p, len);
	struct ddps_sc_chunk c = { .type = 0xff };

	ddps_sc_chunk_next(&r, &c);
	return c;
}

Test(sctp_wire, crc_of_worked_packets, .description = "9260-6.8-1 9260-6.8-2")
{
	uint8_t copy[sizeof init_pkt];

	cr_expect(ddps_sc_crc_ok(init_pkt, sizeof init_pkt));
	cr_expect(ddps_sc_crc_ok(data_pkt, sizeof data_pkt));
	cr_expect(ddps_sc_crc_ok(sack_pkt, sizeof sack_pkt));
	memcpy(copy, init_pkt, sizeof copy);
	memset(copy + 8, 0xee, 4);
	ddps_sc_crc_put(copy, sizeof copy);
	cr_expect_arr_eq(copy, init_pkt, sizeof copy);
	for (size_t i = 0; i < 8 * sizeof copy; i++) {
		copy[i / 8] ^= (uint8_t)(1u << i % 8);
		cr_expect(!ddps_sc_crc_ok(copy, sizeof copy), "bit %zu", i);
		copy[i / 8] ^= (uint8_t)(1u << i % 8);
	}
}

Test(sctp_wire, decodes_the_examples, .description = "9260-3-3 9260-3.3.1-1 9260-3.3.4-1")
{
	struct ddps_sc_chunk c = get_first_sctp_wire(init_pkt, sizeof init_pkt);
	struct ddps_sc_init i;
	struct ddps_sc_data d;
	struct ddps_sc_sack s;

	cr_assert_eq(ddps_sc_decode_init(&i, &c), 0);
	cr_expect(i.tag == 0x11223344 && i.rwnd == 131072 && i.os == 10 && i.mis == 10);
	cr_expect(i.tsn == 100 && i.has_adaptation && i.adaptation == 1 && !i.naddr);
	c = get_first_sctp_wire(data_pkt, sizeof data_pkt);
	cr_assert_eq(ddps_sc_decode_data(&d, &c), 0);
	cr_expect(d.flags == 7 && d.tsn == 100 && d.sid == 3 && d.ssn == 0 && d.len == 6);
	c = get_first_sctp_wire(sack_pkt, sizeof sack_pkt);
	cr_assert_eq(ddps_sc_decode_sack(&s, &c), 0);
	cr_expect(s.cum == 12 && s.rwnd == 4660 && s.ngaps == 2 && s.ndups == 0);
}

/* Every truncation of a packet: nothing is read beyond, and nothing half is taken. */
static void cut_everywhere(const uint8_t *p, size_t len)
{
	for (size_t n = 0; n < len; n++) {
		uint8_t *cut = malloc(n ? n : 1);
		struct ddps_sc_header h;
		struct ddps_sc_init i;
		struct ddps_sc_data d;
		struct ddps_sc_sack s;
		struct ddps_sc_chunk c;
		struct ddps_rbuf r;

		memcpy(cut, p, n);
		if (ddps_sc_header(&h, cut, n) < 0) {
			cr_expect_lt(n, 16);
			free(cut);
			continue;
		}
		r = ddps_sc_chunks(cut, n);
		while (ddps_sc_chunk_next(&r, &c) > 0) {
			ddps_sc_decode_init(&i, &c);
			ddps_sc_decode_data(&d, &c);
			ddps_sc_decode_sack(&s, &c);
		}
		free(cut);
	}
}

Test(sctp_wire, survives_every_truncation, .description = "9260-6.10-6 9260-3.2.1-3")
{
	cut_everywhere(init_pkt, sizeof init_pkt);
	cut_everywhere(data_pkt, sizeof data_pkt);
	cut_everywhere(sack_pkt, sizeof sack_pkt);
}

Test(sctp_wire, lengths_that_lie_stop_the_walk, .description = "9260-3.2-d6")
{
	struct ddps_sc_chunk c;

	for (unsigned len = 0; len < 4; len++) { /* would loop for ever */
		uint8_t p[8] = { 10, 0, 0, (uint8_t)len };
		struct ddps_rbuf r = ddps_rbuf_init(p, sizeof p);

		cr_expect_eq(ddps_sc_chunk_next(&r, &c), DDPS_E_PROTOCOL);
	}
	uint8_t far[8] = { 10, 0, 0, 9 };
	struct ddps_rbuf r = ddps_rbuf_init(far, sizeof far);

	cr_expect_eq(ddps_sc_chunk_next(&r, &c), DDPS_E_PROTOCOL);
	uint8_t no_pad[7] = { 10, 0, 0, 7, 1, 2, 3 }; /* its pad is missing: taken */

	r = ddps_rbuf_init(no_pad, sizeof no_pad);
	cr_expect_eq(ddps_sc_chunk_next(&r, &c), 1);
	cr_expect_eq(c.vlen, 3);
	cr_expect_eq(ddps_sc_chunk_next(&r, &c), 0);
}

Test(sctp_wire, a_sack_must_have_the_length_it_claims)
{
	uint8_t p[sizeof sack_pkt];
	struct ddps_sc_chunk c;
	struct ddps_sc_sack s;

	for (unsigned claim = 0; claim < 300; claim++) {
		memcpy(p, sack_pkt, sizeof p);
		p[24] = (uint8_t)(claim >> 8);
		p[25] = (uint8_t)claim;
		c = get_first_sctp_wire(p, sizeof p);
		cr_expect_eq(ddps_sc_decode_sack(&s, &c), claim == 2 ? 0 : DDPS_E_PROTOCOL);
	}
}

Test(sctp_wire, unknown_parameters_go_by_their_upper_bits, .description = "9260-3.2.1-d1")
{
	static const struct {
		uint16_t type;
		bool goes_on, reported;
	} row[] = { { 0x3fff, false, false }, { 0x7fff, false, true }, { 0xbfff, true, false },
		    { 0xffff, true, true },   { 0x8000, true, false }, { 0xc000, true, true } };

	for (size_t k = 0; k < sizeof row / sizeof *row; k++) {
		uint8_t p[64] = { SC_INIT };
		struct ddps_wbuf w = ddps_wbuf_init(p, sizeof p);
		uint8_t *at = ddps_sc_begin_chunk(&w, SC_INIT, 0);
		uint32_t one = htobe32(1);
		struct ddps_sc_chunk c;
		struct ddps_sc_init i;
		struct ddps_rbuf r;

		for (int n = 0; n < 4; n++)
			ddps_wbuf_u32(&w, 77);
		ddps_sc_put_tlv(&w, row[k].type, "abc", 3);
		ddps_sc_put_tlv(&w, SC_P_ADAPTATION, &one, 4);
		ddps_sc_end_chunk(&w, at, 0);
		r = ddps_rbuf_init(p, (size_t)(w.p - p));
		cr_assert_eq(ddps_sc_chunk_next(&r, &c), 1);
		cr_assert_eq(ddps_sc_decode_init(&i, &c), 0);
		cr_expect_eq(i.has_adaptation, row[k].goes_on, "%x", row[k].type);
		cr_expect_eq(i.report_len, row[k].reported ? 8u : 0u, "%x", row[k].type);
	}
}

Test(sctp_wire, a_flood_of_unknown_parameters_is_reported_in_part, .description = "9260-12.4-4")
{
	uint8_t p[4000];
	struct ddps_wbuf w = ddps_wbuf_init(p, sizeof p);
	uint8_t *at = ddps_sc_begin_chunk(&w, SC_INIT, 0);
	struct ddps_sc_chunk c;
	struct ddps_sc_init i;
	struct ddps_rbuf r;

	for (int n = 0; n < 4; n++)
		ddps_wbuf_u32(&w, 77);
	for (int n = 0; n < 200; n++)
		ddps_sc_put_tlv(&w, 0xff01, "0123456789", 10);
	ddps_sc_end_chunk(&w, at, 0);
	r = ddps_rbuf_init(p, (size_t)(w.p - p));
	cr_assert_eq(ddps_sc_chunk_next(&r, &c), 1);
	cr_assert_eq(ddps_sc_decode_init(&i, &c), 0);
	cr_expect_leq(i.report_len, DDPS_SC_REPORT_MAX);
	cr_expect_gt(i.report_len, 200);
}

/* Known ones that say nothing to us are neither reported nor the end of the walk; those of a wrong
 * length are what they are. */
Test(sctp_wire, parameters_that_are_passed_over)
{
	static const struct {
		uint16_t type;
		size_t len;
		int err;
	} row[] = {
		{ SC_P_UNRECOGNIZED, 8, 0 },
		{ SC_P_PADDING, 40, 0 },
		{ SC_P_ADDR_TYPES, 4, 0 },
		{ SC_P_EXTENSIONS, 3, 0 },
		{ SC_P_PRESERVATIVE, 4, 0 },
		{ SC_P_IPV4, 4, 0 },
		{ SC_P_IPV6, 16, 0 },
		{ SC_P_IPV4, 3, DDPS_E_PROTOCOL },
		{ SC_P_IPV4, 16, DDPS_E_PROTOCOL },
		{ SC_P_IPV6, 4, DDPS_E_PROTOCOL },
		{ SC_P_IPV6, 17, DDPS_E_PROTOCOL },
	};
	static const uint8_t octets[40] = { 1, 2, 3, 4 };

	for (size_t k = 0; k < sizeof row / sizeof *row; k++) {
		uint8_t p[128];
		struct ddps_wbuf w = ddps_wbuf_init(p, sizeof p);
		uint8_t *at = ddps_sc_begin_chunk(&w, SC_INIT, 0);
		uint32_t one = htobe32(1);
		struct ddps_sc_chunk c;
		struct ddps_sc_init i;
		struct ddps_rbuf r;

		for (int n = 0; n < 4; n++)
			ddps_wbuf_u32(&w, 77);
		ddps_sc_put_tlv(&w, SC_P_ADAPTATION, octets, 3); /* none */
		ddps_sc_put_tlv(&w, row[k].type, octets, row[k].len);
		ddps_sc_put_tlv(&w, SC_P_ADAPTATION, &one, 4);
		ddps_sc_end_chunk(&w, at, 0);
		r = ddps_rbuf_init(p, (size_t)(w.p - p));
		cr_assert_eq(ddps_sc_chunk_next(&r, &c), 1);
		cr_assert_eq(ddps_sc_decode_init(&i, &c), row[k].err, "row %zu", k);
		if (row[k].err)
			continue;
		cr_expect(i.has_adaptation && i.adaptation == 1, "row %zu", k);
		cr_expect_eq(i.report_len, 0, "row %zu", k);
		cr_expect_eq(i.naddr, row[k].type == SC_P_IPV4 || row[k].type == SC_P_IPV6);
	}
}

Test(sctp_wire, no_chunk_behind_the_end)
{
	uint8_t p[8] = { [7] = 0xee };
	struct ddps_wbuf w = ddps_wbuf_init(p, 7);
	uint8_t *at = ddps_sc_begin_chunk(&w, SC_HEARTBEAT, 0);

	ddps_sc_put_tlv(&w, SC_P_HB_INFO, "1234", 4);
	ddps_sc_end_chunk(&w, at, 0);
	cr_expect(w.failed);
	cr_expect_eq(p[7], 0xee);
	cr_expect_eq(p[3], 0, "no length");
}

Test(sctp_wire, data_is_cut_nowhere)
{
	static const uint8_t octets[12] = { 0 };
	struct ddps_sc_data d;

	for (size_t len = 0; len <= 12; len++) {
		struct ddps_sc_chunk c = { .val = octets, .vlen = len };

		cr_expect_eq(ddps_sc_decode_data(&d, &c), len < 12 ? DDPS_E_TRUNCATED : 0);
	}
}

/* [9260-3.3.2.1-d1]: broadcast, multicast, mapped and unspecified addresses are no peer's. */
Test(sctp_wire, addresses_of_peers)
{
	static const struct {
		struct ddps_sctp_addr a;
		bool ok;
	} row[] = {
		{ { .family = 4, .ip = { 10, 0, 0, 1 } }, true },
		{ { .family = 4, .ip = { 223, 255, 255, 255 } }, true },
		{ { .family = 4, .ip = { 224, 0, 0, 1 } }, false },
		{ { .family = 4, .ip = { 255, 255, 255, 255 } }, false },
		{ { .family = 4, .ip = { 0, 0, 0, 1 } }, false },
		{ { .family = 6, .ip = { 0xfe, 0x80, [15] = 1 } }, true },
		{ { .family = 6, .ip = { [15] = 1 } }, true },
		{ { .family = 6 }, false },
		{ { .family = 6, .ip = { 0xff, 2, [15] = 1 } }, false },
		{ { .family = 6, .ip = { [10] = 0xff, [11] = 0xff, 10, 0, 0, 1 } }, false },
		{ { .family = 0, .ip = { 10, 0, 0, 1 } }, false },
	};
	struct ddps_sctp_addr a = row[5].a, b = a;

	for (size_t k = 0; k < sizeof row / sizeof *row; k++)
		cr_expect_eq(ddps_sc_unicast(&row[k].a), row[k].ok, "row %zu", k);
	cr_expect(ddps_sc_addr_eq(&a, &b));
	b.scope = 2;
	cr_expect_not(ddps_sc_addr_eq(&a, &b), "on another link");
	b.scope = 0;
	b.ip[15] ^= 1;
	cr_expect_not(ddps_sc_addr_eq(&a, &b));
	b.ip[15] ^= 1;
	b.family = 4;
	cr_expect_not(ddps_sc_addr_eq(&a, &b));
}

/* Pieces of each class come back; one beyond the largest is nobody's. */
Test(sctp_wire, pieces_of_memory_are_kept_by_size)
{
	static const size_t size[] = { 1, 128, 129, 4096, 128 << 10, (128 << 10) + 1, 1 << 20 };
	struct ddps_sc_pool pool = { .kept = 0 };

	for (size_t k = 0; k < sizeof size / sizeof *size; k++) {
		void *p = ddps_sc_pool_get(&pool, size[k]);
		bool kept = size[k] <= 128 << 10;

		cr_assert_not_null(p);
		memset(p, 1, size[k]);
		ddps_sc_pool_put(&pool, p, size[k]);
		cr_expect_eq(pool.kept > 0, kept);
		if (!kept)
			continue;
		cr_expect_eq(ddps_sc_pool_get(&pool, size[k]), p);
		cr_expect_eq(pool.kept, 0);
		free(p);
	}
	ddps_sc_pool_put(&pool, NULL, 1);
	cr_expect_eq(pool.kept, 0);
}

/* ---- cookies ---- */

static struct ddps_sc_cookie some_cookie(void)
{
	struct ddps_sc_cookie c;

	memset(&c, 0, sizeof c);
	c.created = 5000000000u;
	c.life_ms = 60000;
	c.own_tag = 1;
	c.peer_tag = 2;
	c.port = 3;
	c.peer_port = 4;
	c.source.family = 4;
	c.source.ip[0] = 10;
	c.naddr = 1;
	c.addr[0].family = 6;
	c.addr[0].ip[0] = 0x20;
	return c;
}

static void keys(struct ddps_sc_keys *k)
{
	uint8_t secret[2][32];

	memset(secret[0], 1, 32);
	memset(secret[1], 2, 32);
	ddps_sc_keys_init(k, secret, 0);
}

Test(sctp_cookie, opens_what_was_sealed_and_nothing_else,
     .description = "9260-5.1.3-1 9260-5.1.5-2 9260-5.1.3-2")
{
	struct ddps_sc_cookie c = some_cookie(), o;
	uint8_t buf[DDPS_SC_COOKIE_MAX], big[DDPS_SC_COOKIE_MAX + 1];
	struct ddps_sc_keys k;
	size_t n;

	keys(&k);
	n = ddps_sc_cookie_seal(&k, &c, buf);
	cr_assert_eq(ddps_sc_cookie_open(&k, &o, buf, n), 0);
	cr_expect(!memcmp(&c, &o, sizeof c));
	for (size_t i = 0; i < 8 * n; i++) {
		buf[i / 8] ^= (uint8_t)(1u << i % 8);
		cr_expect_eq(ddps_sc_cookie_open(&k, &o, buf, n), DDPS_E_KEY, "bit %zu", i);
		buf[i / 8] ^= (uint8_t)(1u << i % 8);
	}
	for (size_t i = 0; i < n; i++)
		cr_expect_eq(ddps_sc_cookie_open(&k, &o, buf, i), DDPS_E_KEY, "%zu", i);
	memset(big, 0, sizeof big);
	memcpy(big, buf, n);
	cr_expect_eq(ddps_sc_cookie_open(&k, &o, big, sizeof big), DDPS_E_KEY, "longer than any");
}

Test(sctp_cookie, two_secrets_are_good, .description = "9260-5.1.3-5 9260-5.1.5-1")
{
	struct ddps_sc_cookie c = some_cookie(), o;
	uint8_t buf[DDPS_SC_COOKIE_MAX], secret[32];
	struct ddps_sc_keys k;
	size_t n;

	keys(&k);
	n = ddps_sc_cookie_seal(&k, &c, buf);
	cr_expect(!ddps_sc_keys_due(&k, DDPS_SC_KEY_LIFE_NS - 1));
	cr_expect(ddps_sc_keys_due(&k, DDPS_SC_KEY_LIFE_NS));
	memset(secret, 3, 32);
	ddps_sc_keys_rotate(&k, secret, 1);
	cr_expect_eq(ddps_sc_cookie_open(&k, &o, buf, n), 0);
	memset(secret, 4, 32);
	ddps_sc_keys_rotate(&k, secret, 2);
	cr_expect_eq(ddps_sc_cookie_open(&k, &o, buf, n), DDPS_E_KEY);
}

Test(sctp_cookie, has_its_time, .description = "9260-5.1.5-4")
{
	struct ddps_sc_cookie c = some_cookie();

	cr_expect_eq(ddps_sc_cookie_stale(&c, c.created), 0);
	cr_expect_eq(ddps_sc_cookie_stale(&c, c.created + 60000 * MS), 0);
	cr_expect_eq(ddps_sc_cookie_stale(&c, c.created + 60000 * MS + 5), 5);
	cr_expect_gt(ddps_sc_cookie_stale(&c, c.created - 1), 0); /* of the future */
}

/* ---- parts ---- */

Test(sctp_map, marks_gaps_and_closes_them, .description = "9260-1.6-1 9260-1.6-4")
{
	struct ddps_sc_map m;
	uint32_t s, e, base = 0xfffffff0u;

	ddps_sc_map_init(&m, base);
	cr_expect_eq(ddps_sc_map_ask(&m, base), DDPS_SC_DUP);
	cr_expect_eq(ddps_sc_map_ask(&m, base + DDPS_SC_WINDOW), DDPS_SC_BEYOND);
	for (uint32_t i = 2; i < 100; i++) {
		if (i % 10 == 5)
			continue;
		cr_assert_eq(ddps_sc_map_reserve(&m, base + i), 0);
		ddps_sc_map_mark(&m, base + i);
		cr_expect_eq(ddps_sc_map_ask(&m, base + i), DDPS_SC_DUP);
	}
	cr_assert(ddps_sc_map_run(&m, m.cum, &s, &e));
	cr_expect(s == base + 2 && e == base + 4);
	cr_assert(ddps_sc_map_run(&m, e, &s, &e));
	cr_expect(s == base + 6 && e == base + 14);
	ddps_sc_map_mark(&m, base + 1);
	cr_expect_eq(m.cum, base + 4);
	for (uint32_t i = 5; i < 100; i += 10)
		ddps_sc_map_mark(&m, base + i);
	cr_expect_eq(m.cum, base + 99);
	cr_expect(!m.bits && !ddps_sc_map_run(&m, m.cum, &s, &e));
}

Test(sctp_timer, fires_in_order_and_late_changes_cost_nothing)
{
	struct ddps_sc_heap h = { 0 };
	struct ddps_sc_timer t[100], *d;
	uint64_t last = 0;
	unsigned n = 0;

	memset(t, 0, sizeof t);
	cr_assert_eq(ddps_sc_heap_reserve(&h, 100), 0);
	for (unsigned i = 0; i < 100; i++)
		ddps_sc_timer_set(&h, &t[i], 1000 + i * 37 % 100);
	for (unsigned i = 0; i < 100; i += 3)
		ddps_sc_timer_set(&h, &t[i], 5000 + i); /* moves away */
	ddps_sc_timer_drop(&h, &t[1]);
	ddps_sc_timer_set(&h, &t[2], 7);
	cr_expect_eq(ddps_sc_heap_next(&h), 7);
	while ((d = ddps_sc_heap_due(&h, 1099))) {
		n++;
		cr_expect_geq(d->want, last);
		last = d->want;
	}
	cr_expect_eq(n, 65);
	while ((d = ddps_sc_heap_due(&h, 6000)))
		n++;
	cr_expect_eq(n, 99);
	cr_expect_eq(ddps_sc_heap_next(&h), DDPS_SC_NEVER);
	ddps_sc_heap_fini(&h);
}
