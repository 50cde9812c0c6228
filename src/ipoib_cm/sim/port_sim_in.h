/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef DDPS_IPOIB_PORT_SIM_IN_H
#define DDPS_IPOIB_PORT_SIM_IN_H
/* What the files of the fabric in memory share. */
#include "ipoib_cm/sim/sim_port.h"
#include "common/tab/due.h"
#include "common/tab/tab.h"
#include <sys/queue.h>

enum sim_kind { SIM_UD, SIM_MAD, SIM_QP, SIM_QP_ERROR, SIM_PATH, SIM_JOINED, SIM_TIMER, SIM_CALL };

struct sim_event {
	struct ddps_due due;
	enum sim_kind kind;
	unsigned node; /* whom it concerns */
	int err;
	ddps_cm_addr from;
	uint32_t qpn, from_qpn;
	struct ddps_ipoib_ud_from ud;
	uint8_t gid[DDPS_IPOIB_GID_LEN];
	void (*fn)(void *arg, uint64_t now);
	void *arg;
	size_t len;
	uint8_t *data; /* owned */
};

struct sim_qp {
	struct ddps_tab_link by_number;
	LIST_ENTRY(sim_qp) of_node;
	struct sim_node *node;
	bool ready, stopped;
	uint8_t transport;
	unsigned retries;
	uint32_t qpn, rx_mtu, to_qpn;
	uint16_t to_lid;
	uint64_t last_at; /* messages of a connection keep their order */
};

#define SIM_GROUPS 16
#define SIM_LIDS   0xc000 /* of nodes; 0 is none */

struct sim_node {
	struct ddps_ipoib_port port;
	struct ddps_ipoib_sim *sim;
	unsigned nr;
	uint16_t lid;
	bool attached, down;
	struct ddps_ipoib_sim_user user;
	struct ddps_tab_link by_gid; /* once attached */
	bool known;		     /* it is in that table */
	uint32_t next_qpn;
	unsigned n_qp;
	LIST_HEAD(, sim_qp) qps;
	unsigned n_group;
	uint8_t group[SIM_GROUPS][DDPS_IPOIB_GID_LEN];
	uint64_t timer; /* the earliest one in the queue of events */
};

struct ddps_ipoib_sim {
	struct ddps_ipoib_sim_config cfg;
	uint64_t rng, now;
	struct sim_node *node;
	uint16_t *at; /* number of the node with a LID, plus one */
	struct ddps_tab by_gid, by_qpn;
	struct ddps_dues events;
	struct ddps_ipoib_sim_stats stats;
};

extern const struct ddps_ipoib_port_ops ddps_ipoib_sim_ops;

/* Return: a new event at @at, @len octets of @data copied, or NULL: no room. */
struct sim_event *ddps_ipoib_sim_post(struct ddps_ipoib_sim *s, enum sim_kind kind, unsigned node,
				      uint64_t at, const void *data, size_t len);
uint64_t ddps_ipoib_sim_delay(struct ddps_ipoib_sim *s);

static inline bool ddps_ipoib_sim_chance(struct ddps_ipoib_sim *s, unsigned per_million)
{
	return per_million && ddps_ipoib_sim_random(s, 1000000) < per_million;
}

/* Who has it, or NULL. */
struct sim_node *ddps_ipoib_sim_lid(const struct ddps_ipoib_sim *s, ddps_cm_addr lid);
void ddps_ipoib_sim_qp_free(struct sim_qp *qp);
/* A message has come to the queue pair it was sent to, or fails there. */
void ddps_ipoib_sim_qp_in(struct ddps_ipoib_sim *s, const struct sim_event *e);

#endif
