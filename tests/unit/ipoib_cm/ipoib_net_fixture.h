/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef IPOIB_NET_FIXTURE_H
#define IPOIB_NET_FIXTURE_H
/* Interfaces on a fabric in memory, what they deliver, and packets for them to send. */
#include <ddpsess/ipoib_sim.h>

#define MS	  1000000ull
#define SEC	  (1000 * MS)
#define HOUR	  (3600 * SEC)
#define RX_MTU_CM 65524u
#define RX_MTU_UD 2048u
#define NET_MAX	  512
#define LAST_MAX  65536

struct net_node {
	struct net *net;
	unsigned nr;
	struct ddps_ipoib_if_config cfg;
	struct ddps_ipoib_if *f;
	uint64_t n_rx;	 /* packets delivered, ICMP errors included */
	size_t last_len; /* of the latest */
	uint8_t *last;
	uint64_t reqs, reps, rejs, dreqs; /* CM messages sent */
	struct ddps_cm_mad last_rej, last_req, last_rep;
};

struct net {
	struct ddps_ipoib_sim *sim;
	unsigned n;
	struct net_node node[NET_MAX];
};

/* Node @i: 10.0.x.y and fe80::..., QPN 0x48 + i, flags as given, not started. */
void net_init(struct net *t, unsigned n, uint64_t seed, uint8_t flags);
void net_fini(struct net *t);
/* Makes the interface of @i from its cfg, attaches it and starts it. */
void net_start(struct net *t, unsigned i);
void net_start_all(struct net *t);
void net_kill(struct net *t, unsigned i);
void net_run(struct net *t, uint64_t for_ns);

/* One UDP-like packet of @len octets in all, TOS and so on zero. */
size_t net_packet4(const struct net *t, uint8_t *p, unsigned from, unsigned to, size_t len,
		   bool df);
size_t net_packet6(const struct net *t, uint8_t *p, unsigned from, unsigned to, size_t len);
/* Node @from sends one of @len octets to @to. */
void net_send4(struct net *t, unsigned from, unsigned to, size_t len, bool df);
void net_send6(struct net *t, unsigned from, unsigned to, size_t len);

const struct ddps_ipoib_if_stats *net_stats(const struct net *t, unsigned i);
/* Connections of @i that are up. */
unsigned net_conns(const struct net *t, unsigned i);
/* What @i knows of @to.  Return: whether there is such a neighbour. */
bool net_nbr(const struct net *t, unsigned i, unsigned to, bool ip6,
	     struct ddps_ipoib_if_nbr_info *info);
uint16_t net_cksum(const uint8_t *p, size_t len, uint32_t sum);

/* The checksum of ICMPv6 in the packet at @p. */
static inline void put_nd_cksum(uint8_t *p, size_t len)
{
	uint32_t sum = 58 + (uint32_t)(len - 40);
	uint16_t c;

	p[42] = p[43] = 0;
	for (size_t i = 8; i < 40; i += 2)
		sum += (uint32_t)p[i] << 8 | p[i + 1];
	c = net_cksum(p + 40, len - 40, sum);
	p[42] = (uint8_t)(c >> 8);
	p[43] = (uint8_t)c;
}

#endif
