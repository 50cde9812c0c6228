/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef CROSSED_IN_H
#define CROSSED_IN_H
/* Inside a world of two nodes that ask each other: see crossed_world.h. */
#include "ipoib_cm/cm/cm_conn.h"
#include "ipoib_cm/cm/link.h"
#include "sim/crossed_world.h"

#define MAX_FLY 256
#define MS	1000000ull

void crossed_must(bool ok, const char *what, const char *file, int line);
#define MUST(cond) crossed_must(cond, #cond, __FILE__, __LINE__)

struct flying {
	uint64_t at;
	unsigned to;
	uint8_t mad[DDPS_CM_MAD_LEN];
};

struct world;

struct node {
	struct world *w;
	unsigned nr;
	struct ddps_ipoib_links links;
	struct ddps_ipoib_link link;
	uint32_t next_qpn;
	uint64_t traffic_at;
	uint64_t again_at; /* it restarts */
	bool linux_kind;
	uint32_t own; /* Linux: its own REQ or connection; 0: none */
	bool own_up;
	uint64_t dark_from; /* since when there is no connection to send on */
};

struct world {
	uint64_t rng, now, calm_at;
	struct node node[2];
	struct flying fly[MAX_FLY];
	unsigned n_fly;
	unsigned loss, dup; /* per 1000 */
	uint64_t max_delay;
	bool real;	       /* the timers of real life */
	uint8_t timeout;       /* 5-bit: of answers of connection managers */
	unsigned n_sent, lose; /* one message is lost */
	uint64_t dark;	       /* the longest time that a node of ours was without a connection */
};

/* What a node sends, and what its queue pairs have in a REQ. */
void crossed_send(void *user, const struct ddps_cm_send *s);
int crossed_ask(void *user, struct ddps_ipoib_link *l, struct ddps_cm_req *req);

/* crossed_linux.c: a node that does as Linux does has a packet to send, and learns of its connections. */
void crossed_linux_traffic(struct node *n);
void crossed_linux_report(struct node *n, const struct ddps_cm_report *r);
/* Connection @id does not carry packets any more. */
void crossed_linux_fails(struct node *n, uint32_t id);

#endif
