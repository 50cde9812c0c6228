/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef DDPS_IPOIB_LINK_H
#define DDPS_IPOIB_LINK_H
/*
 * One neighbour of one interface: joins cm.c, which speaks, and peer.c, which decides.  The
 * owner of the queue pairs takes part through callbacks, so this does no I/O either.
 */
#include "ipoib_cm/cm/admit.h"
#include "ipoib_cm/cm/cm_own.h"
#include <ddpsess/ib_cm.h>
#include "ipoib_cm/cm/peer.h"

struct ddps_ipoib_link;

/* Called from within the functions below; they must not call back into the link or agent. */
struct ddps_ipoib_link_ops {
	void (*send)(void *user, const struct ddps_cm_send *s);
	/*
	 * A queue pair for a REQ: fills what is its own in @req (QPN, PSN, path, timeouts).
	 * Service ID, transport, P_Key, GIDs and private data are set.  Return: 0 or DDPS_E_*.
	 */
	int (*ask)(void *user, struct ddps_ipoib_link *l, struct ddps_cm_req *req);
	/* One for an answer, ready to receive before this returns; fills @rep likewise. */
	int (*answer)(void *user, struct ddps_ipoib_link *l, uint32_t id,
		      const struct ddps_cm_req *req, struct ddps_cm_rep *rep);
	/* Connection @id can be used; @mtu: IP MTU; @to_send: also for sending. */
	void (*up)(void *user, struct ddps_ipoib_link *l, uint32_t id, uint32_t mtu, bool to_send);
	/* Connection @id has ended; its QPN is free when ddps_cm_state() says IDLE. */
	void (*down)(void *user, struct ddps_ipoib_link *l, uint32_t id);
	/* The neighbour should be resolved again. */
	void (*resolve)(void *user, struct ddps_ipoib_link *l);
};

/* What the links of an interface have in common; outlives them. */
struct ddps_ipoib_links {
	struct ddps_cm *cm;
	struct ddps_ipoib_iface me;
	struct ddps_ipoib_policy policy;
	unsigned packet_life; /* 5-bit lifetime of paths */
	const struct ddps_ipoib_link_ops *ops;
	void *user;
};

struct ddps_ipoib_link {
	const struct ddps_ipoib_links *all;
	struct ddps_ipoib_lladdr remote;
	ddps_cm_addr addr; /* of the neighbour's CM */
	struct ddps_ipoib_peer peer;
	uint32_t in_rx_mtu; /* Receive MTU in the latest inbound REQ */
};

void ddps_ipoib_link_init(struct ddps_ipoib_link *l, const struct ddps_ipoib_links *all,
			  const struct ddps_ipoib_lladdr *remote, ddps_cm_addr addr,
			  enum ddps_ipoib_sid_form form);

/* There are packets for the neighbour: connects if that is due. */
void ddps_ipoib_link_traffic(struct ddps_ipoib_link *l, uint64_t now);

/*
 * What the agent reports about a connection of this neighbour.  An RX_REQ belongs to the
 * neighbour that ddps_ipoib_admit_req() names; from then on the report's user is the link.
 */
void ddps_ipoib_link_report(struct ddps_ipoib_link *l, const struct ddps_cm_report *r,
			    uint64_t now);

/* The queue pair of connection @id has failed, or has been idle for too long. */
void ddps_ipoib_link_broken(struct ddps_ipoib_link *l, uint32_t id, uint64_t now);

/* Ends all of them: the interface goes down, or the neighbour is gone [4755-3.4-1]. */
void ddps_ipoib_link_close(struct ddps_ipoib_link *l, uint64_t now);

#endif
