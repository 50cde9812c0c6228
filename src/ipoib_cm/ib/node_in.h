/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef DDPS_IB_NODE_IN_H
#define DDPS_IB_NODE_IN_H
/* A port inside: datagrams and MADs in node.c, groups in node_group.c, queue pairs in node_qp.c. */
#include "ipoib_cm/ib/agents.h"
#include "ipoib_cm/ib/node.h"
#include "common/tab/due.h"
#include <sys/queue.h>

#define DDPS_IB_SLOT_NONE UINT32_MAX

/* A queue pair; its number's low bits are the slot, the others change with each life. */
struct ib_slot {
	bool used;
	uint16_t dlid;
	uint32_t life;
	uint32_t next_free;
	struct ddps_due due;
	bool waits; /* for room, or to acknowledge: it is in the queue */
	bool busy;  /* it is behind */
	TAILQ_ENTRY(ib_slot) of_waiting;
	struct ddps_ib_qp qp;
};

/* A way that seems to drop long packets without a word. */
struct ib_hole {
	uint64_t at;  /* when a connection failed for it; 0: never */
	uint32_t len; /* of that packet's payload */
};

struct ddps_ib_node {
	struct ddps_ipoib_port port;
	struct ddps_ib_node_config cfg;
	void *user;
	uint64_t now;
	struct ddps_sac *sac;
	struct ddps_sa *sa; /* or NULL */
	struct ddps_ib_qp_env env;
	struct ib_slot *slot;
	struct ddps_dues dues;
	TAILQ_HEAD(ib_slots, ib_slot) waiting; /* queue pairs for which there was no room */
	uint32_t n_slot, n_busy, free, slot_mask;
	unsigned slot_bits;
	struct ddps_togroup to_group;
	uint32_t ud_psn, gsi_psn;
	struct ddps_ib_node_stats stats;
	struct ddps_ib_counters counted;
	char why[400];
	bool off;	/* the network does not carry the link, for this reason: */
	uint8_t needed; /* MTU (code) of the link, when that began */
	char off_why[400];
	struct ib_hole hole[DDPS_SA_LIDS];
	uint16_t suspect; /* LID of a hole: said once something comes from there; 0: none */
	uint64_t hole_said_at;
	bool hole_news;	     /* it is to be handed out */
	char hole_text[300]; /* "": none */
};

_Static_assert(offsetof(struct ddps_ib_node, port) == 0, "NODE() relies on it");
#define NODE(p) ((struct ddps_ib_node *)(p))

/* ---- node.c ---- */
/* Return: whether there was room. */
bool ddps_ib_node_put(struct ddps_ib_node *n, uint16_t lid, unsigned group, struct ddps_ib_pkt *p);
int ddps_ib_node_ud(struct ddps_ib_node *n, uint16_t lid, unsigned group, const uint8_t *gid,
		    uint32_t qpn, const void *frame, size_t len);
void ddps_ib_node_mad(struct ddps_ib_node *n, uint16_t lid, const uint8_t *mad);

/* ---- node_group.c ---- */
extern const struct ddps_sac_ops ddps_ib_node_sac_ops;
void ddps_ib_node_groups_new(struct ddps_ib_node *n);

/* ---- node_qp.c ---- */
int ddps_ib_node_qps_new(struct ddps_ib_node *n);
void ddps_ib_node_qps_free(struct ddps_ib_node *n);
void ddps_ib_node_qp_rx(struct ddps_ib_node *n, uint16_t slid, const struct ddps_ib_pkt *p);
/* Something has come from the suspect: it lives. */
void ddps_ib_node_say_hole(struct ddps_ib_node *n);
void ddps_ib_node_qp_tick(struct ddps_ib_node *n);
uint64_t ddps_ib_node_qp_due(const struct ddps_ib_node *n);
int ddps_ib_node_qp_create(struct ddps_ipoib_port *port, uint8_t transport, uint32_t rx_mtu,
			   uint32_t *qpn);
int ddps_ib_node_qp_ready(struct ddps_ipoib_port *port, uint32_t qpn,
			  const struct ddps_ipoib_qp_to *to);
int ddps_ib_node_qp_send(struct ddps_ipoib_port *port, uint32_t qpn, const void *frame, size_t len);
void ddps_ib_node_qp_stop(struct ddps_ipoib_port *port, uint32_t qpn);
void ddps_ib_node_qp_destroy(struct ddps_ipoib_port *port, uint32_t qpn);

#ifdef DDPS_ASSERTS
/* When nothing is under way: queue pairs, their timers and what they keep agree. */
void ddps_ib_node_check(const struct ddps_ib_node *n);
#else
static inline void ddps_ib_node_check(const struct ddps_ib_node *n)
{
	(void)n;
}
#endif

#endif
