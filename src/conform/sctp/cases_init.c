/* SPDX-License-Identifier: BSD-2-Clause */
/* RFC 9260 section 5.1, the target as responder: INITs and cookies of every kind. */
#include "conform/sctp/raw.h"
#include <string.h>

#define P_IPV4	       5u
#define P_IPV6	       6u
#define P_COOKIE       7u
#define P_UNRECOGNIZED 8u
#define P_ADAPTATION   0xc006u

/* An INIT with these fields, under tag 0. */
static void init(struct cf_raw *r, uint32_t tag, uint32_t rwnd, uint16_t os, uint16_t mis,
		 const void *params, size_t len)
{
	cf_raw_begin_tag(r, 0);
	cf_raw_put_init(r, CF_C_INIT, tag, rwnd, os, mis, r->own_tsn, params, len);
	cf_raw_send(r);
}

static void plain_init(struct cf_raw *r, const void *params, size_t len)
{
	init(r, r->l->tag, CF_RWND, 10, 10, params, len);
}

static void ddp_init(struct cf_raw *r)
{
	plain_init(r, cf_raw_ddp, sizeof cf_raw_ddp);
}

static struct cf_raw_chunk want_init_ack(struct cf_raw *r)
{
	struct cf_raw_chunk c = cf_raw_want(r, CF_C_INIT_ACK);

	cf_raw_take_init(r, &c);
	return c;
}

/* It is refused by an ABORT under the INIT's own tag, and a good one is not. */
static void expect_init_refused(struct cf_raw *r, unsigned cause)
{
	struct cf_raw_chunk c = cf_raw_want(r, CF_C_ABORT);

	CF_CHECK(r->cf, c.tag == r->l->tag && !c.flags, "ABORT under tag %08x, flags %u", c.tag,
		 c.flags);
	CF_CHECK(r->cf, !cause || cf_raw_cause(&c) == cause, "cause %u", cf_raw_cause(&c));
	plain_init(r, NULL, 0);
	want_init_ack(r);
}

static void expect_init_dropped(struct cf_raw *r)
{
	cf_raw_quiet_oob(r);
	plain_init(r, NULL, 0);
	want_init_ack(r);
}

static void check_init_ack(struct cf *cf)
{
	struct cf_raw r;
	struct cf_raw_chunk c;
	const uint8_t *p;
	size_t n;

	cf_raw_bare(cf, &r);
	plain_init(&r, NULL, 0);
	c = want_init_ack(&r);
	CF_CHECK(cf, r.peer.tag && r.peer.tag != r.l->tag, "Initiate Tag %08x", r.peer.tag);
	CF_CHECK(cf, r.peer.os >= 1 && r.peer.os <= 10, "%u streams where 10 are taken", r.peer.os);
	CF_CHECK(cf, c.len + 4 + RAW_HEADER <= 3 * r.out.len + r.l->cookie_len,
		 "an INIT ACK of %zu octets", c.len);
	CF_CHECK(cf,
		 !cf_raw_param(r.params, r.peer.params_len, P_IPV4, &n) || r.peer.params_len > 0,
		 "addresses");
	p = cf_raw_param(r.params, r.peer.params_len, P_ADAPTATION, &n);
	CF_CHECK(cf, p && n == 4 && cf_get32(p) == CF_SCTP_DDP, "no adaptation indication for DDP");
	cf_raw_quiet_oob(&r);
}

/* With one address there is none to list (RFC 6951 section 3.2). */
static void no_addresses(struct cf *cf)
{
	struct cf_raw r;
	size_t n;

	cf_raw_bare(cf, &r);
	if (cf->c->target == CF_RESPONDER) {
		plain_init(&r, NULL, 0);
		want_init_ack(&r);
	}
	CF_CHECK(cf,
		 !cf_raw_param(r.params, r.peer.params_len, P_IPV4, &n) &&
			 !cf_raw_param(r.params, r.peer.params_len, P_IPV6, &n),
		 "addresses are listed: %s", cf_hex(r.params, r.peer.params_len));
}

static void adaptation(struct cf *cf)
{
	struct cf_raw r;
	const uint8_t *p;
	size_t n;

	cf_raw_bare(cf, &r);
	p = cf_raw_param(r.params, r.peer.params_len, P_ADAPTATION, &n);
	CF_CHECK(cf, p && n == 4 && cf_get32(p) == CF_SCTP_DDP, "no adaptation indication for DDP");
}

/* It keeps nothing of an INIT: the first of many cookies is as good as the last. */
static void many_inits(struct cf *cf)
{
	struct cf_raw r;
	uint32_t tag, first, seen[64];
	uint8_t cookie[CF_COOKIE_MAX];
	size_t len = 0;

	cf_raw_bare(cf, &r);
	first = 0;
	tag = r.l->tag;
	for (unsigned i = 0; i < 64; i++) {
		r.l->tag = tag + i;
		ddp_init(&r);
		want_init_ack(&r);
		seen[i] = r.peer.tag;
		for (unsigned k = 0; k < i; k++)
			CF_CHECK(cf, seen[k] != seen[i], "tag %08x twice", seen[i]);
		if (i)
			continue;
		first = r.peer.tag;
		len = r.l->cookie_len;
		memcpy(cookie, r.l->cookie, len);
	}
	r.l->tag = tag;
	r.l->peer_tag = first;
	memcpy(r.l->cookie, cookie, len);
	r.l->cookie_len = len;
	cf_raw_echo(&r);
	cf_raw_want(&r, CF_C_COOKIE_ACK);
	r.l->state = CF_L_UP;
	cf_raw_quiet(&r);
}

static void tag_0(struct cf *cf)
{
	struct cf_raw r;

	cf_raw_bare(cf, &r);
	init(&r, 0, CF_RWND, 10, 10, NULL, 0);
	expect_init_dropped(&r);
}

static void no_out_streams(struct cf *cf)
{
	struct cf_raw r;

	cf_raw_bare(cf, &r);
	init(&r, r.l->tag, CF_RWND, 0, 10, NULL, 0);
	expect_init_refused(&r, RAW_INVALID_PARAMETER);
}

static void no_in_streams(struct cf *cf)
{
	struct cf_raw r;

	cf_raw_bare(cf, &r);
	init(&r, r.l->tag, CF_RWND, 10, 0, NULL, 0);
	expect_init_refused(&r, RAW_INVALID_PARAMETER);
}

static void window_1499(struct cf *cf)
{
	struct cf_raw r;

	cf_raw_bare(cf, &r);
	init(&r, r.l->tag, 1499, 10, 10, NULL, 0);
	expect_init_refused(&r, RAW_INVALID_PARAMETER);
	init(&r, r.l->tag, 1500, 10, 10, NULL, 0);
	want_init_ack(&r);
}

static void host_name(struct cf *cf)
{
	static const uint8_t p[] = { 0, 11, 0, 9, 'h', 'o', 's', 't', 0 };
	struct cf_raw r;

	cf_raw_bare(cf, &r);
	plain_init(&r, p, sizeof p);
	expect_init_refused(&r, 0);
}

/* Each row alone in an INIT, in front of one that is skipped and reported. */
static void unknown_parameters(struct cf *cf)
{
	static const struct {
		uint16_t type;
		bool told, goes_on;
	} row[] = { { 0x3ff0, false, false },
		    { 0x7ff0, true, false },
		    { 0xbff0, false, true },
		    { 0xfff0, true, true } };
	struct cf_raw r;

	cf_raw_bare(cf, &r);
	for (size_t i = 0; i < sizeof row / sizeof *row; i++) {
		/* its padding is not zero: nobody looks */
		uint8_t p[] = { 0, 0, 0, 7, 'a', 'b', 'c', 0xee, 0xff, 0xf1, 0, 4 };
		unsigned told = row[i].told + (row[i].goes_on ? 1u : 0u), n = 0;
		bool right = true;

		cf_put16(p, row[i].type);
		plain_init(&r, p, sizeof p);
		want_init_ack(&r);
		for (size_t off = 0, k; off + 4 <= r.peer.params_len; off += (k + 3) & ~3u) {
			k = cf_get16(r.params + off + 2);
			if (cf_get16(r.params + off) != P_UNRECOGNIZED)
				continue;
			right &= n == 0 && row[i].told
					 ? k >= 11 && !memcmp(r.params + off + 4, p, 7)
					 : k == 8 && !memcmp(r.params + off + 4, p + 8, 4);
			n++;
		}
		CF_CHECK(cf, n == told && right, "parameter %04x: %u reports: %s", row[i].type, n,
			 cf_hex(r.params, r.peer.params_len));
	}
}

static void check_init_flags(struct cf *cf)
{
	struct cf_raw r;

	cf_raw_bare(cf, &r);
	cf_raw_begin_tag(&r, 0);
	cf_raw_put_own_init(&r, CF_C_INIT, NULL, 0);
	r.out.b[RAW_HEADER + 1] = 0xff;
	cf_raw_send(&r);
	want_init_ack(&r);
}

static void under_a_tag(struct cf *cf)
{
	struct cf_raw r;

	cf_raw_bare(cf, &r);
	cf_raw_begin_tag(&r, 0x12345678);
	cf_raw_put_own_init(&r, CF_C_INIT, NULL, 0);
	cf_raw_send(&r);
	expect_init_dropped(&r);
}

static void with_company(struct cf *cf)
{
	struct cf_raw r;

	cf_raw_bare(cf, &r);
	cf_raw_begin_tag(&r, 0);
	cf_raw_put_own_init(&r, CF_C_INIT, NULL, 0);
	cf_raw_put_question(&r, 0);
	cf_raw_send(&r);
	cf_raw_begin_tag(&r, 0);
	cf_raw_put_question(&r, 0);
	cf_raw_put_own_init(&r, CF_C_INIT, NULL, 0);
	cf_raw_send(&r);
	expect_init_dropped(&r);
}

/* Fixed fields that are cut off; a parameter that does not fit; a length of 0. */
static void check_init_cut_off(struct cf *cf)
{
	static const uint8_t wild[] = { 0x80, 0x99, 0, 200 }, zero[] = { 0x80, 0x99, 0, 0 };
	struct cf_raw r;
	struct cf_raw_chunk c;

	cf_raw_bare(cf, &r);
	r.wrong = true;
	cf_raw_begin_tag(&r, 0);
	cf_raw_put_own_init(&r, CF_C_INIT, NULL, 0);
	cf_put16(r.out.b + RAW_HEADER + 2, 19);
	cf_raw_send(&r);
	plain_init(&r, NULL, 0);
	CF_CHECK(cf, cf_raw_next(&r, cf->run->limit_ms, &c), "a good INIT is not answered");
	if (c.type == CF_C_ABORT) /* it may be refused, too */
		c = cf_raw_want(&r, CF_C_INIT_ACK);
	cf_raw_quiet_oob(&r);		   /* there is one INIT ACK, not two */
	for (unsigned i = 0; i < 2; i++) { /* dropped, or refused */
		r.wrong = true;
		plain_init(&r, i ? zero : wild, 4);
		plain_init(&r, NULL, 0);
		CF_CHECK(cf, cf_raw_next(&r, cf->run->limit_ms, &c), "a good INIT is not answered");
		if (c.type == CF_C_ABORT)
			c = cf_raw_want(&r, CF_C_INIT_ACK);
		CF_CHECK(cf, c.type == CF_C_INIT_ACK, "a chunk of type %u", c.type);
	}
}

static void address_types(struct cf *cf)
{
	static const uint8_t p[] = { 0, 12, 0, 8, 0, 5, 0, 11 };
	struct cf_raw r;

	cf_raw_bare(cf, &r);
	plain_init(&r, p, sizeof p);
	want_init_ack(&r);
	CF_CHECK(cf, !cf_raw_param(r.params, r.peer.params_len, P_UNRECOGNIZED, &(size_t){ 0 }),
		 "Supported Address Types are not known");
}

/* Addresses of a family that it has not, of nowhere, and one too long a list. */
static void odd_addresses(struct cf *cf)
{
	uint8_t p[20 + 8 + 20 * 20 + 8] = { 0 };
	struct cf_raw r;

	cf_put16(p, P_IPV6);
	cf_put16(p + 2, 20);
	p[4] = 0x20; /* 2001:db8::1 */
	p[5] = 0x01;
	p[6] = 0x0d;
	p[7] = 0xb8;
	p[19] = 1;
	cf_put16(p + 20, P_IPV4);
	cf_put16(p + 22, 8);
	cf_put32(p + 24, 0xe0000001); /* 224.0.0.1 */
	for (unsigned i = 0; i < 20; i++) {
		memcpy(p + 28 + 20 * i, p, 20);
		p[28 + 20 * i + 18] = (uint8_t)(i + 1);
	}
	memcpy(p + sizeof p - 8, cf_raw_ddp, 8);
	cf_raw_bare(cf, &r);
	plain_init(&r, p, sizeof p);
	want_init_ack(&r);
	cf_raw_echo(&r);
	cf_raw_want(&r, CF_C_COOKIE_ACK);
	r.l->state = CF_L_UP;
	cf_raw_quiet(&r);
}

/* It has streams as far as both sides do: the highest works, the next does not. */
static void streams(struct cf *cf)
{
	struct cf_raw r;
	struct cf_raw_chunk c;

	cf_raw_bare(cf, &r);
	init(&r, r.l->tag, CF_RWND, 3, 3, cf_raw_ddp, sizeof cf_raw_ddp);
	want_init_ack(&r);
	CF_CHECK(cf, r.peer.os <= 3, "%u streams where 3 are taken", r.peer.os);
	cf_raw_echo(&r);
	cf_raw_want(&r, CF_C_COOKIE_ACK);
	r.l->state = CF_L_UP;
	cf_raw_ask(&r, 2);
	cf_raw_want_answer(&r, 2);
	cf_raw_ask(&r, 3);
	c = cf_raw_want(&r, CF_C_ERROR);
	CF_CHECK(cf, cf_raw_cause(&c) == RAW_INVALID_STREAM && cf_get16(c.v + 4) == 3,
		 "ERROR of cause %u: %s", cf_raw_cause(&c), cf_hex(c.v, c.len));
	cf_raw_quiet(&r);
}

const struct cf_case cf_cases_assoc_init[] = {
	R("init", check_init_ack,
	  "9260-5.1-3 9260-5.1-4 9260-5.1-5 9260-5.1.1-1 9260-3.3.3-5 9260-3.1-3 9260-3.3.2-4 "
	  "9260-3.3.2-7 9260-3.3.3-1 9260-3.3.3-3 9260-3.3.3.1-2 9260-12.4-5 9260-8.4-3 "
	  "5061-4.2.6-1 5061-4.2.6-4 etsi-as-1-10-1 pkdr-generic-passive",
	  "an INIT is answered by an INIT ACK with tag, window, streams, cookie, adaptation"),
	R("init-addresses", no_addresses, "6951-3.2-1 6951-5.7-1",
	  "an INIT ACK of one address lists none"),
	{ "assoc-i-init-addresses", "6951-3.2-1 6951-5.7-1 9260-3.3.2-2 9260-3.3.2.1-6",
	  "an INIT of one address lists none", CF_SCTP, CF_INITIATOR, false, no_addresses },
	{ "assoc-i-init",
	  "9260-3.1-4 9260-5.1-1 9260-3.3.2-9 9260-3.3.2-1 9260-3.3.2.1-1 9260-5.3.1-1 "
	  "9260-5.1-2 5061-4.2.6-1 5061-4.2.6-4",
	  "an INIT is alone under tag 0 with tag, window, streams, adaptation", CF_SCTP,
	  CF_INITIATOR, false, adaptation },
	R("init-many", many_inits,
	  "9260-5.1-6 9260-14-1 9260-5.1-2 9260-5.3.1-1 9260-3.3.3.1-1 etsi-as-1-4 etsi-as-1-5-2",
	  "nothing is kept of an INIT: the first of 64 cookies is as good as the last"),
	R("init-tag-0", tag_0, "9260-3.3.2-8 etsi-as-1-14-1 pkdr-handle-init",
	  "an INIT that offers tag 0 vanishes"),
	R("init-os-0", no_out_streams,
	  "9260-3.3.2-10 9260-3.3.2-11 9260-5.1-15 9260-5.1-17 etsi-as-1-7-2",
	  "an INIT without outbound streams is refused under its tag"),
	R("init-mis-0", no_in_streams, "9260-3.3.2-10 9260-3.3.2-11 9260-5.1-16",
	  "an INIT without inbound streams is refused under its tag"),
	R("init-window", window_1499, "9260-3.3.2-10 9260-3.3.2-11",
	  "an INIT with a window of 1499 is refused, with 1500 it is not"),
	R("init-host-name", host_name, "9260-3.3.2-3 9260-5.1.2-9 etsi-as-1-12-1",
	  "an INIT with a host name is refused"),
	R("init-unknown", unknown_parameters,
	  "9260-3.2.1-d1 9260-3.2.1-d2 9260-3.2.1-3 9260-3.2.2-1 9260-3.3.3.1-d1 etsi-as-1-8-1 "
	  "etsi-as-1-8-2 etsi-as-1-8-3 etsi-as-1-8-4",
	  "unknown parameters of an INIT go by their upper bits; reports are whole"),
	R("init-flags", check_init_flags, "9260-3.3.2-6 9260-3.2-d5",
	  "flags of an INIT are ignored"),
	R("init-tag", under_a_tag, "9260-8.5.1-1 9260-12.3-1", "an INIT under a tag vanishes"),
	R("init-bundled", with_company, "9260-3-1 9260-8.5.1-2 9260-12.3-1 etsi-bdc-7-1",
	  "an INIT in company vanishes"),
	R("init-cut", check_init_cut_off, "9260-6.10-6 etsi-imh-3-1 etsi-imh-3-8",
	  "an INIT whose lengths lie makes no association"),
	R("init-address-types", address_types, "9260-3.3.2.1-7 etsi-as-1-13-1",
	  "a claim to support host names is overlooked"),
	R("init-odd-addresses", odd_addresses,
	  "9260-5.1.2-5 9260-5.1.2-6 9260-5.1.2-7 9260-5.1.2-8 9260-5.1-3",
	  "addresses of no use do no harm; the answer goes to the source"),
	R("streams", streams, "9260-5.1.1-2 9260-5.1.1-1 9260-6.5-2 etsi-as-1-7-1",
	  "each way has as many streams as both sides can"),
	{ 0 },
};
