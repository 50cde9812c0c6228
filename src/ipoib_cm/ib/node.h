/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef DDPS_IB_NODE_H
#define DDPS_IB_NODE_H
/*
 * A port of an InfiniBand subnet without its wire: the general service interface (QP 1), one UD
 * queue pair, RC and UC queue pairs, groups, and the subnet administration if it lives here.  To
 * its user it is what <ddpsess/ipoib_port.h> asks for; below, somebody carries packets between
 * LIDs.  It knows no sockets; time is an argument.
 */
#include <ddpsess/ib_udp.h>
#include "ipoib_cm/ib/qp.h"
#include "ipoib_cm/sa/sa.h"
#include "ipoib_cm/ib/sac.h"

#define DDPS_IB_GSI_QPN 1

/* X(name, meaning) */
#define DDPS_IB_NODE_STATS(X)                                                                      \
	X(ud_tx, "datagrams sent")                                                                 \
	X(ud_rx, "datagrams received")                                                             \
	X(ud_held, "datagrams that waited for their group to be joined")                           \
	X(ud_no_group, "datagrams dropped: no such group, or too many")                            \
	X(mad_tx, "MADs sent")                                                                     \
	X(mad_rx, "MADs received")                                                                 \
	X(mad_bad, "MADs dropped: length, class, or not from the administration")                  \
	X(rx_pkey, "packets dropped for their P_Key")                                              \
	X(rx_qkey, "packets dropped for their Q_Key")                                              \
	X(rx_qpn, "packets dropped: no such queue pair, or it is another port's")                  \
	X(rx_group, "datagrams of groups that are not received here")                              \
	X(tx_full, "packets that found no room")

struct ddps_ib_node_stats {
#define DDPS_X(name, text) uint64_t name;
	DDPS_IB_NODE_STATS(DDPS_X)
#undef DDPS_X
};

struct ddps_ib_node_config {
	uint16_t lid, sa_lid; /* equal: the administration lives here */
	uint8_t gid[DDPS_IPOIB_GID_LEN];
	uint32_t qpn; /* of the UD queue pair */
	uint16_t pkey;
	uint8_t scope;
	uint8_t mtu_max;   /* code: what the wire carries */
	uint8_t mtu, life; /* codes; of the link, if the administration lives here */
	uint32_t qkey;	   /* likewise */
	uint16_t pkeys[DDPS_IB_UDP_PKEYS]; /* likewise: more partitions; 0: no more */
	unsigned max_qps;
	size_t tx_octets, rx_octets; /* of messages under way, in all */
	bool late_acks;		     /* several packets may share one; see ddps_ib_node_pump() */
	uint32_t seed;		     /* random */
	/*
	 * One packet to @lid; of a group if that is an MLID, and then @group numbers it below
	 * DDPS_SAC_GROUPS.  Return: whether there was room.
	 */
	bool (*send)(void *wire, uint16_t lid, unsigned group, struct ddps_ib_pkt *p);
	/* The payload of packets that say that it stays is no longer there.  NULL: none says so. */
	void (*gone)(void *wire, const uint8_t *data, size_t len);
	/* What sending to a group needs, when it is joined; @mlid 0: no longer.  NULL: nothing.
	 * Return: 0, or an error and @why. */
	int (*hold)(void *wire, unsigned group, uint16_t mlid, char *why, size_t why_len);
	void *wire;
	const struct ddps_ipoib_up *up; /* with the user of ddps_ib_node_user() */
	void (*see)(void *user, const struct ddps_ib_seen *s); /* or NULL */
	void *see_user;
};

struct ddps_ib_node;

/* Return: 0; DDPS_E_INVAL; DDPS_E_NOMEM. */
int ddps_ib_node_new(struct ddps_ib_node **out, const struct ddps_ib_node_config *cfg);
void ddps_ib_node_free(struct ddps_ib_node *n);
struct ddps_ipoib_port *ddps_ib_node_port(struct ddps_ib_node *n);
void ddps_ib_node_user(struct ddps_ib_node *n, void *user);
/* One sentence on why the link is down, or on the group that could not be joined last, where the reason
 * is here; else "". */
const char *ddps_ib_node_why(const struct ddps_ib_node *n);
/* As ddps_sa_notice(), also of ways that drop long packets without a word. */
const char *ddps_ib_node_notice(struct ddps_ib_node *n);

/* A packet whose ICRC is right.  @slid: the sender's LID, not 0.  @mlid: it came for that group, else 0. */
void ddps_ib_node_rx(struct ddps_ib_node *n, uint16_t slid, uint16_t mlid,
		     const struct ddps_ib_pkt *p, uint64_t now);
/*
 * The network below carries packets of the MTU @mtu_max (code) now; @why not "": it carries none.
 * Where the link's are longer, the link goes down until the network carries them again.
 * Return: whether the link is down for that.
 */
bool ddps_ib_node_network(struct ddps_ib_node *n, uint8_t mtu_max, const char *why, uint64_t now);
/* As ddps_sac_unheard(). */
bool ddps_ib_node_unheard(const struct ddps_ib_node *n);
/* Timers; call it before anything else at a new time. */
void ddps_ib_node_tick(struct ddps_ib_node *n, uint64_t now);
uint64_t ddps_ib_node_due(const struct ddps_ib_node *n);
/* Whether a queue pair is behind, or half of the memory is taken. */
bool ddps_ib_node_busy(const struct ddps_ib_node *n);
/* There is room on the wire again, or, with cfg.late_acks, a batch of packets has come to its end. */
void ddps_ib_node_pump(struct ddps_ib_node *n, uint64_t now);

/* Counter @i of all that the node has.  Return: its name, NULL: there are no more. */
const char *ddps_ib_node_counter(const struct ddps_ib_node *n, unsigned i, uint64_t *value);

#endif
