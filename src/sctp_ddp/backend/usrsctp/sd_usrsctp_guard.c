/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What of an association's set-up reaches usrsctp.
 *
 * usrsctp takes a peer's restart (RFC 9260 5.2.2, 5.2.4) into the living association and gives its
 * arrays of streams the size that the restart asks for, with messages queued on streams that are no
 * more.  So neither an INIT nor a COOKIE ECHO for a living association is fed to it.  Both are
 * answered here, without state: the INIT by an INIT ACK with a cookie of our own, that cookie by
 * the end of the association and "Stale Cookie".  The peer then sends its INIT again (5.2.6),
 * which is an ordinary one.
 *
 * The library's cookies are sealed with what they were issued for, since it finds the association
 * by what is written in the cookie, not by who sends it.
 */
#include "common/bytes.h"
#include "sctp_ddp/backend/usrsctp/sd_usrsctp.h"

#define HDR_LEN	    12u
#define TAG_OFF	    4u
#define BODY_OFF    16u /* of the first chunk */
#define INIT_LEN    20u /* chunk header, tag, window, streams, TSN */
#define INIT_MAX    1500u
#define SEAL_LEN    8u
#define COOKIE_LEN  (SEAL_LEN + 16u) /* ours: of a restart */
#define COOKIE_S    60u
#define P_COOKIE    7u
#define CAUSE_STALE 3u
#define STALE_LEN   8u

enum purpose { OF_LIBRARY, OF_RESTART };

struct who {
	struct ddps_us_handle *h;
	uint16_t own, peer; /* ports */
};

static uint64_t seal(const struct who *w, enum purpose why, const uint8_t *cookie, size_t len)
{
	uint8_t text[16];
	struct ddps_wbuf b = ddps_wbuf_init(text, sizeof text);
	struct ddps_siphash_key key;

	ddps_wbuf_u64(&b, w->h->id);
	ddps_wbuf_u16(&b, w->own);
	ddps_wbuf_u16(&b, w->peer);
	ddps_wbuf_u32(&b, why);
	key.k[0] = ddps_siphash(ddps_us_seal_key(), text, sizeof text);
	text[sizeof text - 1] |= 0x80;
	key.k[1] = ddps_siphash(ddps_us_seal_key(), text, sizeof text);
	return ddps_siphash(&key, cookie, len);
}

/* ---- on the way out ---- */

/* Where the cookie parameter of an INIT ACK begins, or 0. */
static size_t cookie_at(const uint8_t *pkt, size_t len, size_t *cookie_len)
{
	struct ddps_rbuf r = ddps_rbuf_init(pkt, len);

	ddps_rbuf_take(&r, HDR_LEN + INIT_LEN);
	while (!r.failed && ddps_rbuf_left(&r) >= 4) {
		size_t at = (size_t)(r.p - pkt);
		uint16_t type = ddps_rbuf_u16(&r), n = ddps_rbuf_u16(&r);

		if (n < 4)
			return 0;
		if (type == P_COOKIE) {
			*cookie_len = n - 4u;
			return ddps_rbuf_take(&r, n - 4u) ? at : 0;
		}
		ddps_rbuf_take(&r, (n - 4u + 3u) & ~3u);
	}
	return 0;
}

size_t ddps_us_seal(struct ddps_us_handle *h, const uint8_t *pkt, size_t len, uint8_t *out,
		    size_t room)
{
	struct ddps_rbuf ports = ddps_rbuf_init(pkt, HDR_LEN);
	struct who w = { .h = h };
	struct ddps_wbuf b = ddps_wbuf_init(out, room);
	size_t n, at = cookie_at(pkt, len, &n);

	w.own = ddps_rbuf_u16(&ports);
	w.peer = ddps_rbuf_u16(&ports);
	if (!at)
		return 0;
	ddps_wbuf_bytes(&b, pkt, HDR_LEN + 2);
	ddps_wbuf_u16(&b,
		      (uint16_t)(((unsigned)pkt[HDR_LEN + 2] << 8 | pkt[HDR_LEN + 3]) + SEAL_LEN));
	ddps_wbuf_bytes(&b, pkt + BODY_OFF, at - BODY_OFF);
	ddps_wbuf_u16(&b, P_COOKIE);
	ddps_wbuf_u16(&b, (uint16_t)(n + 4 + SEAL_LEN));
	ddps_wbuf_u64(&b, seal(&w, OF_LIBRARY, pkt + at + 4, n));
	ddps_wbuf_bytes(&b, pkt + at + 4, len - at - 4);
	return b.failed ? 0 : len + SEAL_LEN;
}

/* ---- answers ---- */

static struct ddps_wbuf begin(const struct who *w, uint32_t tag, uint8_t *buf, size_t room)
{
	struct ddps_wbuf b = ddps_wbuf_init(buf, room);

	ddps_wbuf_u16(&b, w->own);
	ddps_wbuf_u16(&b, w->peer);
	ddps_wbuf_u32(&b, tag);
	ddps_wbuf_u32(&b, 0);
	return b;
}

static void chunk(struct ddps_wbuf *b, uint8_t type, size_t body)
{
	ddps_wbuf_u8(b, type);
	ddps_wbuf_u8(b, 0);
	ddps_wbuf_u16(b, (uint16_t)(4 + body));
}

static void send_cookie_ack(const struct who *w, uint32_t tag)
{
	uint8_t buf[HDR_LEN + 4];
	struct ddps_wbuf b = begin(w, tag, buf, sizeof buf);

	chunk(&b, SCTP_COOKIE_ACK, 0);
	ddps_us_reply(w->h, buf, sizeof buf);
}

static void send_stale(const struct who *w, uint32_t tag)
{
	uint8_t buf[HDR_LEN + 4 + STALE_LEN];
	struct ddps_wbuf b = begin(w, tag, buf, sizeof buf);

	chunk(&b, SCTP_OPERATION_ERROR, STALE_LEN);
	ddps_wbuf_u16(&b, CAUSE_STALE);
	ddps_wbuf_u16(&b, STALE_LEN);
	ddps_wbuf_u32(&b, 1); /* microseconds too late */
	ddps_us_reply(w->h, buf, sizeof buf);
}

/* The cookie says who asked and when, and the seal that we wrote it: nothing is kept. */
static void send_init_ack(const struct who *w, uint32_t peer_tag, uint64_t now)
{
	uint8_t buf[HDR_LEN + INIT_LEN + 4 + COOKIE_LEN], *cookie = buf + HDR_LEN + INIT_LEN + 4;
	struct ddps_wbuf b = begin(w, peer_tag, buf, sizeof buf);
	uint32_t own_tag;

	own_tag = (uint32_t)seal(w, OF_RESTART, (const uint8_t *)&now, sizeof now) ^ peer_tag;
	own_tag = own_tag ? own_tag : 1;
	chunk(&b, SCTP_INITIATION_ACK, INIT_LEN - 4 + 4 + COOKIE_LEN);
	ddps_wbuf_u32(&b, own_tag);
	ddps_wbuf_u32(&b, INIT_MAX); /* window */
	ddps_wbuf_u16(&b, 1);	     /* streams */
	ddps_wbuf_u16(&b, 1);
	ddps_wbuf_u32(&b, own_tag); /* TSN */
	ddps_wbuf_u16(&b, P_COOKIE);
	ddps_wbuf_u16(&b, 4 + COOKIE_LEN);
	ddps_wbuf_u64(&b, 0);
	ddps_wbuf_u32(&b, own_tag);
	ddps_wbuf_u32(&b, peer_tag);
	ddps_wbuf_u64(&b, now);
	b = ddps_wbuf_init(cookie, SEAL_LEN);
	ddps_wbuf_u64(&b, seal(w, OF_RESTART, cookie + SEAL_LEN, COOKIE_LEN - SEAL_LEN));
	ddps_us_reply(w->h, buf, sizeof buf);
}

/* ---- on the way in ---- */

static uint64_t seconds(void)
{
	return ddps_now() / 1000000000u;
}

/* Set-up chunks behind another one: INIT and INIT ACK travel alone, a COOKIE ECHO is the first of
 * its packet [RFC 9260 6.10, 5.1]. */
static bool hidden_set_up(const uint8_t *pkt, size_t len)
{
	bool alone = pkt[HDR_LEN] == SCTP_INITIATION || pkt[HDR_LEN] == SCTP_INITIATION_ACK;
	size_t at = HDR_LEN, n;

	for (;;) {
		n = (size_t)pkt[at + 2] << 8 | pkt[at + 3];
		n = (n + 3) & ~(size_t)3;
		if (n < 4 || len - at < n + 4) /* usrsctp goes no further either */
			return false;
		at += n;
		if (alone || pkt[at] == SCTP_INITIATION || pkt[at] == SCTP_INITIATION_ACK ||
		    pkt[at] == SCTP_COOKIE_ECHO)
			return true;
	}
}

static struct ddps_sd_assoc *living(const struct who *w)
{
	struct ddps_sd_assoc *a;

	DL_FOREACH2(w->h->assocs, a, h_next)
	if (a->so && a->port->num == w->own && a->peer_port == w->peer)
		return a;
	return NULL;
}

static bool on_init(const struct who *w, const struct ddps_sd_assoc *a, const uint8_t *pkt,
		    size_t len)
{
	struct ddps_rbuf r = ddps_rbuf_init(pkt, len);
	uint32_t tag;

	if (len > INIT_MAX)
		return false;
	if (!a)
		return true;
	ddps_rbuf_take(&r, BODY_OFF);
	tag = ddps_rbuf_u32(&r);
	/* While our own set-up runs a peer has nothing to restart. */
	if (len >= HDR_LEN + INIT_LEN && tag && !memcmp(pkt + TAG_OFF, "\0\0\0", 4) &&
	    (a->life.accepted || a->life.up_seen))
		send_init_ack(w, tag, seconds());
	return false;
}

static void on_restart(const struct who *w, struct ddps_sd_assoc *a, const uint8_t *pkt)
{
	struct ddps_rbuf r = ddps_rbuf_init(pkt + BODY_OFF, COOKIE_LEN);
	uint64_t sealed = ddps_rbuf_u64(&r), now = seconds(), then;
	uint32_t own_tag = ddps_rbuf_u32(&r), peer_tag = ddps_rbuf_u32(&r), tag;

	then = ddps_rbuf_u64(&r);
	r = ddps_rbuf_init(pkt + TAG_OFF, 4);
	tag = ddps_rbuf_u32(&r);
	if (sealed != seal(w, OF_RESTART, pkt + BODY_OFF + SEAL_LEN, COOKIE_LEN - SEAL_LEN) ||
	    tag != own_tag || now - then > COOKIE_S)
		return;
	if (a)
		ddps_us_doom_locked(a, ddps_error_make(DDPS_E_RESET, 0, "peer restarted"));
	send_stale(w, peer_tag);
}

static bool on_cookie(const struct who *w, struct ddps_sd_assoc *a, uint8_t *pkt, size_t *len)
{
	size_t n = (size_t)pkt[HDR_LEN + 2] << 8 | pkt[HDR_LEN + 3];
	struct ddps_rbuf r = ddps_rbuf_init(pkt + BODY_OFF, *len - BODY_OFF);
	struct ddps_wbuf b = ddps_wbuf_init(pkt + HDR_LEN + 2, 2);
	uint64_t sealed = ddps_rbuf_u64(&r);

	if (n < 4 + SEAL_LEN || n > *len - HDR_LEN)
		return false;
	if (n == 4 + COOKIE_LEN) {
		on_restart(w, a, pkt);
		return false;
	}
	n -= 4 + SEAL_LEN;
	if (sealed != seal(w, OF_LIBRARY, pkt + BODY_OFF + SEAL_LEN, n))
		return false;
	if (a) { /* the one that it came of: our COOKIE ACK was lost */
		if (a->life.accepted && a->cookie_seal == sealed && a->peer_tag)
			send_cookie_ack(w, a->peer_tag);
		return false;
	}
	ddps_wbuf_u16(&b, (uint16_t)(n + 4));
	*len -= SEAL_LEN;
	memmove(pkt + BODY_OFF, pkt + BODY_OFF + SEAL_LEN, *len - BODY_OFF);
	w->h->cookie_seal = sealed;
	return true;
}

bool ddps_us_guard(struct ddps_us_handle *h, uint8_t *pkt, size_t *len)
{
	struct ddps_rbuf r = ddps_rbuf_init(pkt, *len);
	struct who w = { .h = h };
	uint8_t type = pkt[HDR_LEN];

	w.peer = ddps_rbuf_u16(&r);
	w.own = ddps_rbuf_u16(&r);
	if (hidden_set_up(pkt, *len))
		return false;
	if (type == SCTP_INITIATION)
		return on_init(&w, living(&w), pkt, *len);
	if (type == SCTP_COOKIE_ECHO)
		return on_cookie(&w, living(&w), pkt, len);
	return true;
}
