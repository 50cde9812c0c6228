/* SPDX-License-Identifier: BSD-2-Clause */
/* Places by the network that took them. */
#include "common/shares.h"
#include "common/uri.h"
#include <ddpsess/err.h>
#include <stdlib.h>
#include <string.h>

#define IPV4 0xFFFFFFFF00000000u /* as a /64 it would be multicast: nobody's source */

struct ddps_share_net {
	uint64_t net;
	unsigned members; /* 0: free */
	struct ddps_share *oldest, *newest;
};

uint64_t ddps_share_net(const struct ddps_addr *a)
{
	uint64_t net = 0;

	if (a->family == 4)
		return IPV4 | (uint64_t)a->ip[0] << 24 | (uint64_t)a->ip[1] << 16 |
		       (uint64_t)a->ip[2] << 8 | a->ip[3];
	for (unsigned i = 0; i < 8; i++)
		net = net << 8 | a->ip[i];
	return net | a->scope; /* a link-local /64 is one on each link */
}

uint64_t ddps_share_net_sa(const struct sockaddr *sa)
{
	const struct ddps_addr a = ddps_addr_of(sa);

	return ddps_share_net(&a);
}

/* Index of @net's record, or of one that is free, or DDPS_E_NOMEM. */
static int find_net(struct ddps_shares *s, uint64_t net)
{
	struct ddps_share_net *more;
	unsigned spare = s->nnets, room;

	for (unsigned i = 0; i < s->nnets; i++) {
		if (s->nets[i].members && s->nets[i].net == net)
			return (int)i;
		if (!s->nets[i].members)
			spare = i;
	}
	if (spare == s->room) {
		room = s->room ? 2 * s->room : 8;
		more = realloc(s->nets, room * sizeof *more);
		if (!more)
			return DDPS_E_NOMEM;
		s->nets = more;
		s->room = room;
	}
	if (spare == s->nnets)
		s->nnets++;
	s->nets[spare] = (struct ddps_share_net){ .net = net };
	return (int)spare;
}

int ddps_shares_add(struct ddps_shares *s, struct ddps_share *m, uint64_t net)
{
	struct ddps_share_net *n;
	int at = find_net(s, net);

	if (at < 0)
		return at;
	n = &s->nets[at];
	m->counted = true;
	m->from = (unsigned)at;
	m->nr = s->next_nr++;
	m->newer = NULL;
	m->older = n->newest;
	*(n->newest ? &n->newest->newer : &n->oldest) = m;
	n->newest = m;
	n->members++;
	s->places++;
	return 0;
}

void ddps_shares_del(struct ddps_shares *s, struct ddps_share *m)
{
	struct ddps_share_net *n;

	if (!m->counted)
		return;
	n = &s->nets[m->from];
	*(m->older ? &m->older->newer : &n->oldest) = m->newer;
	*(m->newer ? &m->newer->older : &n->newest) = m->older;
	m->counted = false;
	n->members--;
	s->places--;
	while (s->nnets && !s->nets[s->nnets - 1].members)
		s->nnets--;
}

unsigned ddps_shares_of(const struct ddps_shares *s, const struct ddps_share *m,
			struct ddps_share **oldest)
{
	const struct ddps_share_net *n = &s->nets[m->from];

	*oldest = n->oldest;
	return n->members;
}

struct ddps_share *ddps_shares_first_to_go(const struct ddps_shares *s)
{
	const struct ddps_share_net *most = NULL;

	for (unsigned i = 0; i < s->nnets; i++) {
		const struct ddps_share_net *n = &s->nets[i];

		if (!n->members)
			continue;
		if (!most || n->members > most->members ||
		    (n->members == most->members && n->oldest->nr < most->oldest->nr))
			most = n;
	}
	return most ? most->oldest : NULL;
}

void ddps_shares_fini(struct ddps_shares *s)
{
	free(s->nets);
	*s = (struct ddps_shares){ 0 };
}
