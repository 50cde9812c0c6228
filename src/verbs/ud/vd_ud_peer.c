/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * How much may be on its way to a peer.  InfiniBand loses no datagram on its links; a UDP socket
 * loses what does not fit its buffer, which one burst of a program can fill.  So some datagrams ask
 * for an acknowledgement, and requests wait while a window's worth is not acknowledged.  That makes
 * losses rare and nothing reliable: a peer that does not acknowledge is not waited for.
 */
#include "verbs/ud/vd_ud_in.h"
#include <stdlib.h>
#include <string.h>

#define WINDOW	 128 /* units: what buffers account for */
#define ASK	 32
#define UNIT	 512 /* octets */
#define ALIVE_MS 200 /* a peer that has acknowledged may be busy */
#define NEW_MS	 20
#define OPEN_MS	 1000

static uint16_t units(size_t len)
{
	return (uint16_t)(1 + len / UNIT);
}

static bool is(const struct ud_peer *peer, const struct ud_addr *a)
{
	return peer->port == a->port && !memcmp(&peer->ip, &a->ip, sizeof a->ip);
}

static struct ud_peer *find_known_peer(struct vd_ud_qp *u, const struct ud_addr *a)
{
	if (u->last_peer < u->npeers && is(&u->peers[u->last_peer], a))
		return &u->peers[u->last_peer];
	for (unsigned i = 0; i < u->npeers; i++)
		if (is(&u->peers[i], a)) {
			u->last_peer = i;
			return &u->peers[i];
		}
	return NULL;
}

/* With more peers than are known here the ones of long ago are forgotten. */
struct ud_peer *ud_peer_of(struct vd_ud_qp *u, const struct ud_addr *to)
{
	struct ud_peer *peer = find_known_peer(u, to);

	if (peer)
		return peer;
	if (!u->peers)
		u->peers = calloc(UD_PEERS, sizeof *u->peers);
	if (!u->peers)
		return NULL;
	u->last_peer = u->npeers < UD_PEERS ? u->npeers++ : u->next_peer++ % UD_PEERS;
	peer = &u->peers[u->last_peer];
	*peer = (struct ud_peer){ .ip = to->ip, .port = to->port };
	return peer;
}

bool ud_peer_ready(struct ud_peer *peer, size_t len, uint64_t now, uint64_t *retry_at)
{
	if ((uint16_t)(peer->seq - peer->acked) + units(len) <= WINDOW || now < peer->open_until)
		return true;
	if (!peer->full_at)
		peer->full_at = now;
	*retry_at = peer->full_at + (peer->alive ? ALIVE_MS : NEW_MS);
	if (now < *retry_at)
		return false;
	/* What was under way is lost, or nobody is there who acknowledges. */
	if (!peer->alive)
		peer->open_until = now + OPEN_MS;
	peer->alive = false;
	peer->acked = peer->asked = peer->seq;
	peer->full_at = 0;
	return true;
}

void ud_peer_sent(struct ud_peer *peer, size_t len, struct ud_header *h)
{
	peer->seq = (uint16_t)(peer->seq + units(len));
	h->seq = peer->seq;
	if ((uint16_t)(peer->seq - peer->asked) < ASK)
		return;
	peer->asked = peer->seq;
	h->flags |= UD_F_ACK;
}

void ud_peer_acked(struct vd_ud_qp *u, const struct ud_addr *from, uint16_t seq)
{
	struct ud_peer *peer = find_known_peer(u, from);

	/* Of something that is under way, and nothing else. */
	if (!peer || (uint16_t)(seq - peer->acked) > (uint16_t)(peer->seq - peer->acked))
		return;
	peer->acked = seq;
	peer->alive = true;
	peer->full_at = peer->open_until = 0;
}
