/* SPDX-License-Identifier: BSD-2-Clause */
/* Each packet of the target's is looked at whole, whatever the case waits for. */
#include "conform/sctp/raw.h"

struct seen {
	bool data, control_behind, alone;
	unsigned n;
	uint32_t tsn;
	bool abort;
};

/* Flags that the type has (RFC 9260 3.3); others are sent as 0 [9260-3.2-d5]. */
static uint8_t flags_of(uint8_t type)
{
	switch (type) {
	case CF_C_DATA:
		return RAW_WHOLE | RAW_U | RAW_I;
	case CF_C_ABORT:
	case CF_C_SHUTDOWN_COMPLETE:
		return RAW_T;
	default:
		return 0;
	}
}

/* Parameters or causes, one after the other: whole, padded with zeros. */
static void lint_params(struct cf_raw *r, const uint8_t *p, size_t len, const char *what)
{
	for (size_t off = 0; off < len;) {
		size_t n = len - off >= 4 ? cf_get16(p + off + 2) : 0, end;

		CF_CHECK(r->cf, n >= 4 && off + n <= len, "%s that is not whole: %s", what,
			 cf_hex(p, len));
		CF_CHECK(r->cf, *what != 'c' || cf_get16(p + off) != RAW_BAD_ADDRESS || n > 8,
			 "a cause without the address that it is for");
		CF_CHECK(r->cf, cf_get16(p + off) != 0xc006 || *what == 'p',
			 "an adaptation indication outside INIT and INIT ACK");
		end = off + n + (-n & 3);
		for (off += n; off < end && off < len; off++)
			CF_CHECK(r->cf, !p[off], "padding of a %s is not zero: %s", what,
				 cf_hex(p, len));
	}
}

/* Each address, and each other parameter once [9260-3.3.2-1]; none is a host name. */
static void lint_init(struct cf_raw *r, const uint8_t *v, size_t len)
{
	CF_CHECK(r->cf, len >= 16, "INIT or INIT ACK of %zu octets", len);
	CF_CHECK(r->cf, cf_get32(v), "Initiate Tag 0");
	CF_CHECK(r->cf, cf_get32(v + 4) >= 1500, "a window of %u", cf_get32(v + 4));
	CF_CHECK(r->cf, cf_get16(v + 8) && cf_get16(v + 10), "no streams");
	lint_params(r, v + 16, len - 16, "parameter");
	for (size_t off = 16; off < len; off += (cf_get16(v + off + 2) + 3u) & ~3u) {
		unsigned type = cf_get16(v + off);

		CF_CHECK(r->cf, type != 11, "a host name");
		if (type == 6)
			CF_CHECK(r->cf, cf_get32(v + off + 4 + 8) != 0xffff, "a mapped address");
		if (type == 12)
			for (size_t i = 4; i + 1 < cf_get16(v + off + 2); i += 2)
				CF_CHECK(r->cf, cf_get16(v + off + i) != 11,
					 "host names among supported addresses");
		for (size_t k = off + ((cf_get16(v + off + 2) + 3u) & ~3u); k < len;
		     k += (cf_get16(v + k + 2) + 3u) & ~3u)
			CF_CHECK(r->cf,
				 cf_get16(v + k) != type || type == 5 || type == 6 || type == 8,
				 "parameter %u comes twice", type);
	}
}

static void lint_content(struct cf_raw *r, uint8_t type, const uint8_t *v, size_t len)
{
	size_t want = SIZE_MAX;

	switch (type) {
	case CF_C_INIT:
	case CF_C_INIT_ACK:
		lint_init(r, v, len);
		break;
	case CF_C_HEARTBEAT:
		lint_params(r, v, len, "parameter");
		break;
	case CF_C_ABORT:
	case CF_C_ERROR:
		lint_params(r, v, len, "cause");
		CF_CHECK(r->cf, type == CF_C_ABORT || len, "an ERROR without a cause");
		break;
	case CF_C_SHUTDOWN:
		want = 4;
		break;
	case CF_C_SHUTDOWN_ACK:
	case CF_C_SHUTDOWN_COMPLETE:
	case CF_C_COOKIE_ACK:
		want = 0;
		break;
	default:
		break;
	}
	CF_CHECK(r->cf, want == SIZE_MAX || len == want, "chunk %u with %zu octets", type, len);
}

static void lint_order(struct cf_raw *r, struct seen *s, uint8_t type, const uint8_t *v, size_t len)
{
	CF_CHECK(r->cf, !s->alone, "a chunk that must be alone has company");
	if (type == CF_C_INIT || type == CF_C_INIT_ACK || type == CF_C_SHUTDOWN_COMPLETE) {
		CF_CHECK(r->cf, !s->n, "chunk %u is not alone", type);
		s->alone = true;
	}
	if (type == CF_C_COOKIE_ECHO || type == CF_C_COOKIE_ACK)
		CF_CHECK(r->cf, !s->n, "chunk %u does not lead its packet", type);
	if (type == CF_C_DATA) {
		CF_CHECK(r->cf, len > 12, "DATA of %zu octets", len);
		CF_CHECK(r->cf, !s->data || cf_tsn_before(s->tsn, cf_get32(v)),
			 "TSN %u is not behind %u", s->tsn, cf_get32(v));
		s->data = true;
		s->tsn = cf_get32(v);
	} else {
		CF_CHECK(r->cf, !s->data, "chunk %u behind DATA", type);
	}
	s->abort |= type == CF_C_ABORT;
	CF_CHECK(r->cf, !s->abort || !s->data, "DATA with an ABORT");
	s->n++;
}

/* The tag is the one we chose, or one of ours that is reflected (RFC 9260 8.5). */
static void lint_tag(struct cf_raw *r)
{
	uint8_t type = r->in[RAW_HEADER], flags = r->in[RAW_HEADER + 1];
	uint32_t tag = cf_get32(r->in + 4);

	if (type == CF_C_INIT)
		CF_CHECK(r->cf, !tag, "INIT under tag %08x", tag);
	else if (!((type == CF_C_ABORT || type == CF_C_SHUTDOWN_COMPLETE) && flags & RAW_T))
		CF_CHECK(r->cf, tag == r->l->tag || (r->old_tag && tag == r->old_tag),
			 "chunk %u under tag %08x, ours is %08x", type, tag, r->l->tag);
}

void cf_raw_lint(struct cf_raw *r)
{
	uint32_t told = cf_get32(r->in + 8), sum = cf_pkt_sum(r->in, r->in_len);
	struct seen s = { 0 };

	cf_put32(r->in + 8, told);
	if (!told && r->takes_zero) {
		CF_CHECK(r->cf,
			 r->in[RAW_HEADER] != CF_C_INIT && r->in[RAW_HEADER] != CF_C_COOKIE_ECHO,
			 "checksum zero in a packet with chunk type %u", r->in[RAW_HEADER]);
		r->nzero++;
		told = sum;
	}
	CF_CHECK(r->cf, told == sum, "checksum %08x, it is %08x", told, sum);
	CF_CHECK(r->cf, cf_get16(r->in) && cf_get16(r->in + 2), "port 0");
	lint_tag(r);
	for (size_t off = RAW_HEADER; off < r->in_len;) {
		const uint8_t *c = r->in + off;
		size_t n = r->in_len - off >= 4 ? cf_get16(c + 2) : 0, pad = -n & 3;

		CF_CHECK(r->cf, n >= 4 && off + n + pad <= r->in_len,
			 "a chunk that is not whole: %s", cf_hex(r->in, r->in_len));
		for (size_t i = 0; i < pad; i++)
			CF_CHECK(r->cf, !c[n + i], "padding that is not zero");
		CF_CHECK(r->cf, !(c[1] & ~flags_of(c[0])), "chunk %u with flags %02x", c[0], c[1]);
		lint_order(r, &s, c[0], c + 4, n - 4);
		lint_content(r, c[0], c + 4, n - 4);
		off += n + pad;
	}
}
