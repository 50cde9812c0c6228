/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef DDPS_SCTP_COOKIE_H
#define DDPS_SCTP_COOKIE_H
/*
 * State Cookies (RFC 9260 5.1.3): all that is needed to make an association, signed by
 * HMAC-SHA-256 with one of two secrets.  A new secret takes over each hour; the one before is
 * still good for the cookies it signed.
 */
#include "sctp/sctp_wire.h"

#define DDPS_SC_COOKIE_LIST 2400u /* octets of the addresses listed */
#define DDPS_SC_COOKIE_MAX  (128u + DDPS_SC_COOKIE_LIST)
#define DDPS_SC_KEY_LIFE_NS 3600000000000ull

struct ddps_sc_cookie {
	uint64_t created; /* ns */
	uint32_t life_ms;
	uint32_t own_tag, peer_tag, own_tsn, peer_tsn, peer_rwnd;
	uint32_t tie_own, tie_peer; /* 0: none */
	uint16_t in_streams, out_streams;
	uint16_t port, peer_port;
	uint16_t encap, via;
	bool has_adaptation;
	bool zero_checksum;  /* the peer accepts it */
	uint32_t adaptation; /* the peer's */
	struct ddps_sctp_addr local, source;
	unsigned naddr;
	struct ddps_sctp_addr
		addr[DDPS_SC_LISTED_MAX]; /* listed, usable; DDPS_SC_COOKIE_LIST octets */
};

/* Octets of a listed address in a cookie. */
static inline size_t ddps_sc_cookie_addr(const struct ddps_sctp_addr *a)
{
	return a->family == 6 ? 17 : 5;
}

struct ddps_sc_keys {
	uint8_t secret[2][32];
	uint8_t id; /* of the newer: secret[id & 1] */
	uint64_t since;
};

/* @secret: 32 octets each */
void ddps_sc_keys_init(struct ddps_sc_keys *k, const uint8_t secret[2][32], uint64_t now);
/* Whether it is time for a new secret ... */
bool ddps_sc_keys_due(const struct ddps_sc_keys *k, uint64_t now);
/* ... and here it is. */
void ddps_sc_keys_rotate(struct ddps_sc_keys *k, const uint8_t secret[32], uint64_t now);

/* Octets of @c into @buf of DDPS_SC_COOKIE_MAX: how many. */
size_t ddps_sc_cookie_seal(const struct ddps_sc_keys *k, const struct ddps_sc_cookie *c,
			   uint8_t *buf);
/* 0, or DDPS_E_KEY: not one of ours. */
int ddps_sc_cookie_open(const struct ddps_sc_keys *k, struct ddps_sc_cookie *c, const uint8_t *buf,
			size_t len);
/* How long ago it went stale, in ns; 0: it is good. */
uint64_t ddps_sc_cookie_stale(const struct ddps_sc_cookie *c, uint64_t now);

#endif
