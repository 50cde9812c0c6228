/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Records from a port that no connection has.  A NAT may have given one of those from that address another port: DTLS
 * 1.2 without connection IDs says nowhere whose a record is, so a few keys are tried.  Anybody can send such records,
 * therefore only so many tries are made: of a datagram, a second for addresses that share a chain, and a second for a
 * socket.  Connections that were tried stand behind those that were not.
 */
#include "sctp_ddp/backend/native/sd_dtls.h"
#include <errno.h>
#include <string.h>

#define TRIES	    8u
#define TRIES_CHAIN 250u
#define TRIES_ALL   1000u
#define LOOKS	    64u /* at connections of a chain: it has other addresses, too */
#define RECORD_MAX  (DDPS_DTLS_OVERHEAD + DDPS_DTLS_CONTENT)

static bool has_tries(struct ddps_sn_tries *t, uint64_t second, unsigned most)
{
	if (t->second != second)
		*t = (struct ddps_sn_tries){ .second = second };
	return t->n < most;
}

static bool take_try(struct ddps_sn_dtls_table *t, struct ddps_sn_dtls_chain *near)
{
	const uint64_t second = ddps_now() / NSEC_PER_SEC;

	if (!has_tries(&t->tries, second, TRIES_ALL) ||
	    !has_tries(&near->tries, second, TRIES_CHAIN))
		return false;
	t->tries.n++;
	near->tries.n++;
	return true;
}

/* The next of them that may have sealed what came from @peer; NULL: none of those that are looked at. */
static struct ddps_sn_dtls *next_to_try(struct ddps_sn_dtls_chain *near,
					const struct ddps_sctp_addr *peer, unsigned *looks)
{
	while ((*looks)--) {
		struct ddps_sn_dtls *c = TAILQ_FIRST(&near->near);

		TAILQ_REMOVE(&near->near, c, of_near);
		TAILQ_INSERT_TAIL(&near->near, c, of_near);
		if (c->state == DDPS_SN_OPEN && ddps_sc_addr_eq(&c->peer, peer))
			return c;
	}
	return NULL;
}

static unsigned count_near(const struct ddps_sn_dtls_chain *near)
{
	const struct ddps_sn_dtls *c;
	unsigned n = 0;

	TAILQ_FOREACH(c, &near->near, of_near)
		if (++n == LOOKS)
			break;
	return n;
}

struct ddps_sn_dtls *ddps_sn_dtls_whose(struct ddps_sn_sock *udp, const struct ddps_sctp_addr *peer,
					const struct ddps_dtls_head *h, uint8_t *p,
					uint8_t **content, ssize_t *len)
{
	struct ddps_sn_dtls_chain *near = ddps_sn_dtls_near(udp, peer);
	unsigned looks = count_near(near);
	struct ddps_sn_dtls *c, *tried[TRIES];
	uint8_t sealed[RECORD_MAX];

	if (h->len > sizeof sealed)
		return NULL;
	memcpy(sealed, p, h->len);
	for (unsigned i = 0; i < TRIES && (c = next_to_try(near, peer, &looks)); i++) {
		if (!take_try(udp->table, near)) {
			udp->ne->env->secured.untried++;
			return NULL;
		}
		udp->ne->env->secured.tried++;
		memcpy(p, sealed, h->len);
		*len = ddps_sn_dtls_open(c, h, p, content);
		if (*len >= 0) {
			while (i)
				ddps_sn_dtls_pardon(tried[--i]);
			return c;
		}
		tried[i] = c;
		if (*len == -EOVERFLOW) {
			ddps_sn_dtls_forged(c);
			return NULL;
		}
	}
	return NULL;
}

/* It may be one that was seen on its way, and sent again from elsewhere: it is no more than a place to ask. */
bool ddps_sn_dtls_seen_at(struct ddps_sn_dtls *c, uint16_t port, const struct ddps_dtls_head *h)
{
	if (!ddps_dtls_is_newest(c->cur.rec, h))
		return false;
	if (port == c->at.port)
		ddps_sn_dtls_unplace(&c->roam);
	else if (!c->roam.c || c->roam.port != port)
		ddps_sn_dtls_place(c, &c->roam, port);
	return true;
}

bool ddps_sn_dtls_roamed(struct ddps_sn_dtls *c, uint16_t port)
{
	const struct ddps_sn_dtls *there = ddps_sn_dtls_find(c->udp, &c->peer, port);
	char peer[72];

	if (port == c->at.port) /* another of its associations was quicker */
		return true;
	if (there && there->at.port == port)
		return false;
	c->ne->env->secured.rebound++;
	ddps_sn_text(&c->peer, c->at.port, peer, sizeof peer);
	ddps_log(&c->ne->env->log, DDPS_LOG_INFO, "secure", "%s is at port %u now", peer, port);
	if (c->roam.c && c->roam.port == port)
		ddps_sn_dtls_unplace(&c->roam);
	ddps_sn_dtls_place(c, &c->at, port);
	return true;
}
