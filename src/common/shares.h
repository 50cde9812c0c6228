/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef DDPS_SHARES_H
#define DDPS_SHARES_H
/*
 * Places that peers take up, by the network they come from: an IPv4 address, or an IPv6 /64, which
 * one host can have all of.  Who needs a place when all are taken gives up the oldest one of the
 * network that has most of them.
 *
 * A place is part of whatever takes it.  Finding a network looks at all that have places, so
 * their number is bounded by the user's own bound.
 */
#include <stdbool.h>
#include <stdint.h>
#include <sys/socket.h>

struct ddps_addr;

struct ddps_share {
	void *owner; /* the user's */
	bool counted;
	unsigned from;			  /* index of its network */
	uint64_t nr;			  /* the smaller, the older */
	struct ddps_share *older, *newer; /* of the same network */
};

struct ddps_share_net;

struct ddps_shares {
	struct ddps_share_net *nets;
	unsigned nnets;	 /* in use, and free ones among them */
	unsigned room;	 /* allocated */
	unsigned places; /* in all */
	uint64_t next_nr;
};

/* The network of @a; each link has its own link-local one.  No address is one network, 0. */
uint64_t ddps_share_net(const struct ddps_addr *a);
/* The same; IPv4 in IPv6 is IPv4. */
uint64_t ddps_share_net_sa(const struct sockaddr *sa);

/* Count @m, whose owner is set, for network @net.  Return 0 or DDPS_E_NOMEM. */
int ddps_shares_add(struct ddps_shares *s, struct ddps_share *m, uint64_t net);
/* Idempotent. */
void ddps_shares_del(struct ddps_shares *s, struct ddps_share *m);
/* How many places the network of @m, which is counted, has; @oldest: of these. */
unsigned ddps_shares_of(const struct ddps_shares *s, const struct ddps_share *m,
			struct ddps_share **oldest);
/* The oldest of the network that has most; among equals, the oldest of all.  NULL: there is none */
struct ddps_share *ddps_shares_first_to_go(const struct ddps_shares *s);
/* Members may still be counted; they are not looked at. */
void ddps_shares_fini(struct ddps_shares *s);

#endif
