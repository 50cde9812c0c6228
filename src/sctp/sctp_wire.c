/* SPDX-License-Identifier: BSD-2-Clause */
#include "sctp/sctp_wire.h"
#include "common/crc32c.h"

/* ---- CRC32c ---- */

uint32_t ddps_sc_crc_part(uint32_t crc, const void *p, size_t len)
{
	return ddps_crc32c(crc, p, len);
}

bool ddps_sc_crc_ok(const uint8_t *pkt, size_t len)
{
	uint8_t head[DDPS_SC_HDR] = { 0 }; /* the last four octets stay so */
	uint32_t crc, told;

	memcpy(head, pkt, 8);
	crc = ddps_sc_crc_part(DDPS_SC_CRC_INIT, head, sizeof head);
	crc = ddps_sc_crc_done(ddps_sc_crc_part(crc, pkt + DDPS_SC_HDR, len - DDPS_SC_HDR));
	memcpy(&told, pkt + 8, sizeof told);
	return told == crc;
}

void ddps_sc_crc_put(uint8_t *pkt, size_t len)
{
	uint32_t crc;

	memset(pkt + 8, 0, 4);
	crc = ddps_sc_crc_done(ddps_sc_crc_part(DDPS_SC_CRC_INIT, pkt, len));
	memcpy(pkt + 8, &crc, sizeof crc);
}

/* ---- walking ---- */

int ddps_sc_header(struct ddps_sc_header *h, const uint8_t *pkt, size_t len)
{
	struct ddps_rbuf r = ddps_rbuf_init(pkt, len);
	struct ddps_sc_header v = { .src = ddps_rbuf_u16(&r) };

	v.dst = ddps_rbuf_u16(&r);
	v.tag = ddps_rbuf_u32(&r);
	ddps_rbuf_take(&r, 4);
	if (r.failed || ddps_rbuf_left(&r) < 4) /* a packet has a chunk */
		return DDPS_E_TRUNCATED;
	if (!v.src || !v.dst) /* [9260-3.1-1] [9260-3.1-2] */
		return DDPS_E_PROTOCOL;
	*h = v;
	return 0;
}

/* Up to @len and, as far as it is there, the pad [9260-3.2-3]. */
static const uint8_t *take_padded(struct ddps_rbuf *r, size_t len)
{
	const uint8_t *at = ddps_rbuf_take(r, len);
	size_t pad = ddps_sc_pad(len) - len;

	if (at)
		ddps_rbuf_take(r, pad < ddps_rbuf_left(r) ? pad : ddps_rbuf_left(r));
	return at;
}

int ddps_sc_tlv_next(struct ddps_rbuf *r, struct ddps_sc_tlv *t)
{
	size_t len;

	if (ddps_rbuf_left(r) < 4) /* a pad that the length counts */
		return 0;
	len = (size_t)(r->p[2] << 8 | r->p[3]);
	if (len < 4)
		return DDPS_E_PROTOCOL;
	t->type = (uint16_t)(r->p[0] << 8 | r->p[1]);
	t->all = take_padded(r, len);
	if (!t->all)
		return DDPS_E_PROTOCOL;
	t->len = len;
	t->val = t->all + 4;
	t->vlen = len - 4;
	return 1;
}

/* ---- chunks ---- */

int ddps_sc_decode_data(struct ddps_sc_data *d, const struct ddps_sc_chunk *c)
{
	struct ddps_rbuf r = ddps_rbuf_init(c->val, c->vlen);
	struct ddps_sc_data v = { .flags = c->flags, .tsn = ddps_rbuf_u32(&r) };

	v.sid = ddps_rbuf_u16(&r);
	v.ssn = ddps_rbuf_u16(&r);
	v.ppid = ddps_rbuf_u32(&r);
	if (r.failed)
		return DDPS_E_TRUNCATED;
	v.len = ddps_rbuf_left(&r);
	v.p = ddps_rbuf_take(&r, v.len);
	*d = v;
	return 0;
}

int ddps_sc_decode_sack(struct ddps_sc_sack *s, const struct ddps_sc_chunk *c)
{
	struct ddps_rbuf r = ddps_rbuf_init(c->val, c->vlen);
	struct ddps_sc_sack v = { .cum = ddps_rbuf_u32(&r) };

	v.rwnd = ddps_rbuf_u32(&r);
	v.ngaps = ddps_rbuf_u16(&r);
	v.ndups = ddps_rbuf_u16(&r);
	if (r.failed)
		return DDPS_E_TRUNCATED;
	if (ddps_rbuf_left(&r) != 4u * ((size_t)v.ngaps + v.ndups))
		return DDPS_E_PROTOCOL;
	v.gaps = ddps_rbuf_take(&r, 4u * v.ngaps);
	v.dups = ddps_rbuf_take(&r, 4u * v.ndups);
	*s = v;
	return 0;
}

/* An address parameter; family 0 if it is of another kind or length. */
static struct ddps_sctp_addr addr_tlv(const struct ddps_sc_tlv *t)
{
	struct ddps_sctp_addr a = { .family = 0 };

	if (t->type == SC_P_IPV4 && t->vlen == 4)
		a.family = 4;
	else if (t->type == SC_P_IPV6 && t->vlen == 16)
		a.family = 6;
	else
		return a;
	memcpy(a.ip, t->val, t->vlen);
	return a;
}

/* [9260-3.2.1-d1] To be reported: whole or, if there is no room, not (9260-12.4-4). */
static void note_unknown(struct ddps_sc_init *i, const struct ddps_sc_tlv *t)
{
	size_t padded = ddps_sc_pad(t->len);

	if (padded > sizeof i->report - i->report_len)
		return;
	memset(i->report + i->report_len, 0, padded);
	memcpy(i->report + i->report_len, t->all, t->len);
	i->report_len += padded;
}

static int take_address(struct ddps_sc_init *i, const struct ddps_sc_tlv *t)
{
	struct ddps_sctp_addr a = addr_tlv(t);

	if (!a.family)
		return DDPS_E_PROTOCOL;
	if (i->naddr == DDPS_SC_LISTED_MAX)
		i->left++;
	else
		i->addr[i->naddr++] = a;
	return 1;
}

/* 1: go on, 0: the rest is not looked at, DDPS_E_PROTOCOL. */
static int take_param(struct ddps_sc_init *i, const struct ddps_sc_tlv *t)
{
	struct ddps_rbuf r = ddps_rbuf_init(t->val, t->vlen);

	switch (t->type) {
	case SC_P_IPV4:
	case SC_P_IPV6:
		return take_address(i, t);
	case SC_P_COOKIE:
		i->cookie = t->val;
		i->cookie_len = t->vlen;
		return 1;
	case SC_P_PRESERVATIVE:
		i->preservative = ddps_rbuf_u32(&r);
		return 1;
	case SC_P_HOST_NAME:
		i->host_name = t->all;
		i->host_name_len = t->len;
		return 1;
	case SC_P_ADAPTATION:
		i->has_adaptation = t->vlen == 4;
		i->adaptation = i->has_adaptation ? ddps_rbuf_u32(&r) : 0;
		return 1;
	case SC_P_ZERO_CHECKSUM: /* of another length it is unknown [9653-4-4]; the first counts [9653-4-2] */
		if (t->vlen == 4 && !i->saw_zero) {
			i->saw_zero = true;
			i->zero_checksum = ddps_rbuf_u32(&r) == DDPS_SC_ZERO_DTLS;
		}
		return 1;
	case SC_P_UNRECOGNIZED:
	case SC_P_ADDR_TYPES:
	case SC_P_PADDING:
	case SC_P_EXTENSIONS:
		return 1;
	default:
		if (t->type & 0x4000)
			note_unknown(i, t);
		return t->type & 0x8000 ? 1 : 0;
	}
}

int ddps_sc_decode_init(struct ddps_sc_init *i, const struct ddps_sc_chunk *c)
{
	struct ddps_rbuf r = ddps_rbuf_init(c->val, c->vlen);
	struct ddps_sc_tlv t;
	int more;

	memset(i, 0, offsetof(struct ddps_sc_init, report));
	i->tag = ddps_rbuf_u32(&r);
	i->rwnd = ddps_rbuf_u32(&r);
	i->os = ddps_rbuf_u16(&r);
	i->mis = ddps_rbuf_u16(&r);
	i->tsn = ddps_rbuf_u32(&r);
	if (r.failed)
		return DDPS_E_TRUNCATED;
	while ((more = ddps_sc_tlv_next(&r, &t)) > 0) {
		more = take_param(i, &t);
		if (more <= 0)
			break;
	}
	return more;
}

bool ddps_sc_init_sane(const struct ddps_sc_init *i)
{
	return i->os && i->mis && i->rwnd >= DDPS_SC_RWND_MIN; /* [9260-3.3.2-10] */
}

const uint8_t *ddps_sc_find_cause(const struct ddps_sc_chunk *c, uint16_t code, size_t *len)
{
	struct ddps_rbuf r = ddps_rbuf_init(c->val, c->vlen);
	struct ddps_sc_tlv t;

	while (ddps_sc_tlv_next(&r, &t) > 0) {
		if (t.type == code) {
			*len = t.vlen;
			return t.val;
		}
	}
	return NULL;
}

/* ---- encoding ---- */

/* Returns how many octets. */
static size_t put_zero_pad(struct ddps_wbuf *w, size_t len)
{
	static const uint8_t zero[4];
	size_t pad = ddps_sc_pad(len) - len;

	ddps_wbuf_bytes(w, zero, pad);
	return pad;
}

void ddps_sc_put_chunk(struct ddps_wbuf *w, uint8_t type, uint8_t flags, const void *val, size_t n)
{
	ddps_wbuf_u8(w, type);
	ddps_wbuf_u8(w, flags);
	ddps_wbuf_u16(w, (uint16_t)(n + 4));
	ddps_wbuf_bytes(w, val, n);
	put_zero_pad(w, n);
}

size_t ddps_sc_put_tlv(struct ddps_wbuf *w, uint16_t type, const void *val, size_t n)
{
	ddps_wbuf_u16(w, type);
	ddps_wbuf_u16(w, (uint16_t)(n + 4));
	ddps_wbuf_bytes(w, val, n);
	return put_zero_pad(w, n);
}

void ddps_sc_put_addr(struct ddps_wbuf *w, const struct ddps_sctp_addr *a)
{
	ddps_sc_put_tlv(w, a->family == 6 ? SC_P_IPV6 : SC_P_IPV4, a->ip, a->family == 6 ? 16 : 4);
}

uint8_t *ddps_sc_begin_chunk(struct ddps_wbuf *w, uint8_t type, uint8_t flags)
{
	uint8_t *at = w->p;

	ddps_wbuf_u8(w, type);
	ddps_wbuf_u8(w, flags);
	ddps_wbuf_u16(w, 0);
	return at;
}

void ddps_sc_end_chunk(struct ddps_wbuf *w, uint8_t *at, size_t pad)
{
	size_t len = (size_t)(w->p - at) - pad;

	if (w->failed)
		return;
	at[2] = (uint8_t)(len >> 8);
	at[3] = (uint8_t)len;
	if (!pad)
		put_zero_pad(w, len);
}

/* ---- addresses ---- */

static bool v4_mapped(const uint8_t *ip)
{
	static const uint8_t head[12] = { [10] = 0xff, [11] = 0xff };

	return !memcmp(ip, head, sizeof head);
}

bool ddps_sc_unicast(const struct ddps_sctp_addr *a)
{
	static const uint8_t zero[16];

	if (a->family == 4) /* 0/8, 224/4, 240/4 with the broadcast address */
		return a->ip[0] && a->ip[0] < 224;
	return a->family == 6 && memcmp(a->ip, zero, 16) && a->ip[0] != 0xff && !v4_mapped(a->ip);
}

bool ddps_sc_loopback(const struct ddps_sctp_addr *a)
{
	static const uint8_t one[16] = { [15] = 1 };

	return a->family == 4 ? a->ip[0] == 127 : !memcmp(a->ip, one, 16);
}
