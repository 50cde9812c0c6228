/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef DDPS_IPOIB_SOFT_IN_H
#define DDPS_IPOIB_SOFT_IN_H
/* The soft port inside: datagrams in soft.c and soft_mcast.c, queue pairs in soft_qp.c. */
#include <ddpsess/wr.h>
#include "ipoib/soft/soft.h"
#include "ipoib/soft/soft_wire.h"

#define SOFT_GROUPS  32
#define SOFT_ANSWERS 64
/* Messages under way on a queue pair, each way: so many, or as many as fit into the octets. */
#define SOFT_SLOTS_MIN 32u
#define SOFT_SLOTS_MAX 256u
#define SOFT_OCTETS    (1u << 20)

struct soft_answer {
	bool joined; /* else: a path */
	uint8_t gid[DDPS_IPOIB_GID_LEN];
};

struct soft_qp {
	struct soft_qp *next;
	struct ddps_soft *soft;
	uint32_t qpn, to_qpn, rx_mtu, tx_mtu;
	unsigned peer; /* index */
	bool ready, active, stopped, up, uc;
	bool taken; /* passive: a session was accepted for it */
	struct ddps_ep *ep;
	struct ddps_mr *mr;
	uint8_t *mem; /* receive slots, then send slots */
	unsigned rx_slots, tx_slots;
	uint64_t tx_id;	    /* of the next message; its slot is that modulo tx_slots */
	uint64_t tx_posted; /* given to the session so far */
	uint64_t tx_done;   /* completed */
	uint32_t tx_len[SOFT_SLOTS_MAX];
};

struct ddps_soft {
	struct ddps_ipoib_port port;
	struct ddps_soft_config cfg;
	struct ddps_soft_peer peer[DDPS_SOFT_PEERS];
	unsigned n_peers;
	int udp, mcast; /* mcast: -1 without IP multicast */
	uint8_t group[SOFT_GROUPS][DDPS_IPOIB_GID_LEN];
	unsigned n_group;
	struct soft_answer answer[SOFT_ANSWERS];
	unsigned n_answer;
	struct ddps_ctx *ctx;
	struct ddps_pd *pd;
	struct ddps_cq *cq;
	struct ddps_listener *listener;
	struct soft_qp *qp;
	unsigned n_qp;
	uint32_t next_qpn;
	struct ddps_soft_stats stats;
	uint8_t *buf; /* one datagram */
};

_Static_assert(offsetof(struct ddps_soft, port) == 0, "SOFT() relies on it");
#define SOFT(p) ((struct ddps_soft *)(p))

socklen_t ddps_soft_addr_len(const struct sockaddr_storage *a);
/* Joins cfg.group, if there is one. */
int ddps_soft_mcast_open(struct ddps_soft *s, char *why, size_t why_len);

int ddps_soft_qp_create(struct ddps_ipoib_port *port, uint8_t transport, uint32_t rx_mtu,
			uint32_t *qpn);
int ddps_soft_qp_ready(struct ddps_ipoib_port *port, uint32_t qpn,
		       const struct ddps_ipoib_qp_to *to);
int ddps_soft_qp_send(struct ddps_ipoib_port *port, uint32_t qpn, const void *frame, size_t len);
void ddps_soft_qp_stop(struct ddps_ipoib_port *port, uint32_t qpn);
void ddps_soft_qp_destroy(struct ddps_ipoib_port *port, uint32_t qpn);

/* Sessions: set up and torn down with the port; one round of events and completions. */
int ddps_soft_sessions_open(struct ddps_soft *s, char *why, size_t why_len);
void ddps_soft_sessions_close(struct ddps_soft *s);
bool ddps_soft_sessions_run(struct ddps_soft *s, uint64_t now);

#endif
