/* SPDX-License-Identifier: BSD-2-Clause */
#include "sctp/sctp_cookie.h"
#include <nettle/hmac.h>
#include <nettle/memops.h>

#define VERSION 1
#define MAC_LEN 16u

void ddps_sc_keys_init(struct ddps_sc_keys *k, const uint8_t secret[2][32], uint64_t now)
{
	memcpy(k->secret, secret, sizeof k->secret);
	k->id = 1;
	k->since = now;
}

bool ddps_sc_keys_due(const struct ddps_sc_keys *k, uint64_t now)
{
	return now - k->since >= DDPS_SC_KEY_LIFE_NS;
}

void ddps_sc_keys_rotate(struct ddps_sc_keys *k, const uint8_t secret[32], uint64_t now)
{
	k->id++;
	memcpy(k->secret[k->id & 1], secret, 32);
	k->since = now;
}

static void mac(const struct ddps_sc_keys *k, uint8_t id, const uint8_t *p, size_t len,
		uint8_t out[MAC_LEN])
{
	struct hmac_sha256_ctx h;

	hmac_sha256_set_key(&h, sizeof k->secret[0], k->secret[id & 1]);
	hmac_sha256_update(&h, len, p);
	hmac_sha256_digest(&h, MAC_LEN, out);
}

static void put_addr(struct ddps_wbuf *w, const struct ddps_sctp_addr *a)
{
	ddps_wbuf_u8(w, a->family);
	if (a->family)
		ddps_wbuf_bytes(w, a->ip, a->family == 6 ? 16 : 4);
	if (a->family == 6)
		ddps_wbuf_u32(w, a->scope);
}

/* None of those listed is of one link. */
static void put_listed(struct ddps_wbuf *w, const struct ddps_sctp_addr *a)
{
	ddps_wbuf_u8(w, a->family);
	ddps_wbuf_bytes(w, a->ip, ddps_sc_cookie_addr(a) - 1);
}

static struct ddps_sctp_addr get_addr(struct ddps_rbuf *r, bool listed)
{
	struct ddps_sctp_addr a = { .family = ddps_rbuf_u8(r) };
	size_t n = a.family == 6 ? 16 : a.family ? 4 : 0;
	const uint8_t *ip = ddps_rbuf_take(r, n);

	if (ip && n)
		memcpy(a.ip, ip, n);
	if (a.family == 6 && !listed)
		a.scope = ddps_rbuf_u32(r);
	return a;
}

size_t ddps_sc_cookie_seal(const struct ddps_sc_keys *k, const struct ddps_sc_cookie *c,
			   uint8_t *buf)
{
	struct ddps_wbuf w = ddps_wbuf_init(buf, DDPS_SC_COOKIE_MAX);

	ddps_wbuf_u8(&w, VERSION);
	ddps_wbuf_u8(&w, k->id);
	ddps_wbuf_u64(&w, c->created);
	ddps_wbuf_u32(&w, c->life_ms);
	ddps_wbuf_u32(&w, c->own_tag);
	ddps_wbuf_u32(&w, c->peer_tag);
	ddps_wbuf_u32(&w, c->own_tsn);
	ddps_wbuf_u32(&w, c->peer_tsn);
	ddps_wbuf_u32(&w, c->peer_rwnd);
	ddps_wbuf_u32(&w, c->tie_own);
	ddps_wbuf_u32(&w, c->tie_peer);
	ddps_wbuf_u16(&w, c->in_streams);
	ddps_wbuf_u16(&w, c->out_streams);
	ddps_wbuf_u16(&w, c->port);
	ddps_wbuf_u16(&w, c->peer_port);
	ddps_wbuf_u16(&w, c->encap);
	ddps_wbuf_u16(&w, c->via);
	ddps_wbuf_u8(&w, (uint8_t)(c->has_adaptation | c->zero_checksum << 1));
	ddps_wbuf_u32(&w, c->adaptation);
	put_addr(&w, &c->local);
	put_addr(&w, &c->source);
	ddps_wbuf_u8(&w, (uint8_t)c->naddr);
	for (unsigned i = 0; i < c->naddr; i++)
		put_listed(&w, &c->addr[i]);
	mac(k, k->id, buf, (size_t)(w.p - buf), w.p);
	return (size_t)(w.p - buf) + MAC_LEN;
}

static void decode_cookie(struct ddps_rbuf *r, struct ddps_sc_cookie *c)
{
	uint8_t flags;

	c->created = ddps_rbuf_u64(r);
	c->life_ms = ddps_rbuf_u32(r);
	c->own_tag = ddps_rbuf_u32(r);
	c->peer_tag = ddps_rbuf_u32(r);
	c->own_tsn = ddps_rbuf_u32(r);
	c->peer_tsn = ddps_rbuf_u32(r);
	c->peer_rwnd = ddps_rbuf_u32(r);
	c->tie_own = ddps_rbuf_u32(r);
	c->tie_peer = ddps_rbuf_u32(r);
	c->in_streams = ddps_rbuf_u16(r);
	c->out_streams = ddps_rbuf_u16(r);
	c->port = ddps_rbuf_u16(r);
	c->peer_port = ddps_rbuf_u16(r);
	c->encap = ddps_rbuf_u16(r);
	c->via = ddps_rbuf_u16(r);
	flags = ddps_rbuf_u8(r);
	c->has_adaptation = flags & 1;
	c->zero_checksum = flags & 2;
	c->adaptation = ddps_rbuf_u32(r);
	c->local = get_addr(r, false);
	c->source = get_addr(r, false);
	c->naddr = ddps_rbuf_u8(r);
	for (unsigned i = 0; i < c->naddr && i < DDPS_SC_LISTED_MAX; i++)
		c->addr[i] = get_addr(r, true);
}

int ddps_sc_cookie_open(const struct ddps_sc_keys *k, struct ddps_sc_cookie *c, const uint8_t *buf,
			size_t len)
{
	struct ddps_rbuf r = ddps_rbuf_init(buf, len);
	uint8_t want[MAC_LEN], version, id;

	if (len < 2 + MAC_LEN || len > DDPS_SC_COOKIE_MAX)
		return DDPS_E_KEY;
	version = ddps_rbuf_u8(&r);
	id = ddps_rbuf_u8(&r);
	if (version != VERSION || (id != k->id && id != (uint8_t)(k->id - 1)))
		return DDPS_E_KEY; /* [9260-5.1.5-1] */
	mac(k, id, buf, len - MAC_LEN, want);
	if (!memeql_sec(want, buf + len - MAC_LEN, MAC_LEN)) /* [9260-5.1.5-2] */
		return DDPS_E_KEY;
	memset(c, 0, sizeof *c);
	decode_cookie(&r, c);
	if (r.failed || ddps_rbuf_left(&r) != MAC_LEN || c->naddr > DDPS_SC_LISTED_MAX)
		return DDPS_E_KEY;
	return 0;
}

uint64_t ddps_sc_cookie_stale(const struct ddps_sc_cookie *c, uint64_t now)
{
	uint64_t end = c->created + c->life_ms * 1000000ull;

	if (c->created > now) /* the future counts as the past */
		return c->created - now;
	return now > end ? now - end : 0;
}
