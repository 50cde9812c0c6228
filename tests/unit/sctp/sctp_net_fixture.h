/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef SCTP_NET_FIXTURE_H
#define SCTP_NET_FIXTURE_H
/*
 * SCTP engines on a simulated network, in simulated time, by seed.  A node is one engine with up to
 * two addresses; addresses of equal index reach each other.
 */
#include "sctp/sctp_in.h"
#include <stdio.h>

#define NET_MAX	 65536u /* octets of a packet */
#define SN_NODES 4u

struct sn_link { /* one direction of one pair of addresses */
	double loss, dup, corrupt, late;
	uint64_t delay, jitter, extra; /* ns; extra: of those that are late */
	unsigned mtu;		       /* IP; larger ones vanish, or are reported by ICMP */
	bool refuses; /* nobody takes SCTP where it leads, which is reported by ICMP */
	bool blunt;   /* in fragments, too: those that the sender makes are as large */
	bool ptb;
	bool dead;
	double rate;	  /* octets of IP packets a second; 0: no limit */
	size_t queue;	  /* octets that wait for that; more is dropped; 0: no limit */
	uint64_t free_at; /* when the last of them has left */
	uint16_t nat;	  /* what the peer sees as our UDP port; 0: the real one */
	uint16_t known;	  /* sealed: what its DTLS knows as that; 0: the real one */
};

struct sn_packet {
	uint64_t at, order;
	unsigned to, link;
	struct ddps_sctp_route from;
	size_t len;
	uint8_t *data;
};

struct sn_net;
struct sn_node {
	struct sn_net *net;
	unsigned id;
	struct ddps_sctp *e;
	struct ddps_sctp_addr addr[2];
	uint16_t udp;
	struct sn_link link[2]; /* what leaves by addr[i] */
	uint64_t sent, lost, told;
	uint64_t rests;	   /* the host does not run before */
	size_t max_packet; /* largest packet seen to leave, IP */
};

struct sn_net {
	uint64_t now, rng, order;
	unsigned nodes; /* 2 */
	struct sn_node node[SN_NODES];
	struct sn_packet *heap;
	size_t n, cap;
	unsigned max_segs;
	unsigned segs_max_seen;
	bool sealed; /* all of it is inside DTLS */
	double full; /* share of packets that the socket has no room for at first */
	/* called with each packet that is sent, if set */
	void (*sent)(void *user, unsigned from, const struct ddps_sctp_route *to,
		     const uint8_t *data, size_t len);
	/* called with each that has been taken, if set */
	void (*taken)(void *user, unsigned by, const uint8_t *data, size_t len);
	void *user;
	bool trace;
};

uint64_t sn_rand(struct sn_net *n);
/* 0 .. m-1 */
uint64_t sn_below(struct sn_net *n, uint64_t m);
bool sn_chance(struct sn_net *n, double p);
void sn_random(void *user, void *buf, size_t len);

void sn_init(struct sn_net *n, uint64_t seed);
void sn_fini(struct sn_net *n);
/* (Re)make the engine of a node: what it knew is lost. */
void sn_boot(struct sn_net *n, unsigned id, const struct ddps_sctp_config *c);
void sn_config(struct sn_net *n, struct ddps_sctp_config *c);
/* Take all that the engines want to send. */
void sn_flush(struct sn_net *n);
void sn_flush_node(struct sn_net *n, unsigned id);
/* Go to the next event, at most to @until; false: nothing happened before. */
bool sn_step(struct sn_net *n, uint64_t until);
void sn_run(struct sn_net *n, uint64_t ns);
/* Hand @data to node @to as if it came from the other's address @link. */
void sn_inject(struct sn_net *n, unsigned to, unsigned link, const void *data, size_t len);
struct ddps_sctp_addr sn_v4(unsigned a, unsigned b, unsigned c, unsigned d);

/* A user who listens to nothing. */
extern const struct ddps_sctp_up sn_deaf;

#endif
