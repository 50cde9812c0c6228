/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef DDPS_PORT_IB_WIRE_H
#define DDPS_PORT_IB_WIRE_H
/*
 * The sockets of a port whose packets are UDP's.  Packets to one node leave together: where it can
 * be, as one buffer that the system cuts (UDP_SEGMENT), and so they come in (UDP_GRO).
 *
 * Pieces of one buffer have the identifications 0, 1, 2, ... in their IP headers, and the ICRC
 * covers those.  A node that looks at them exactly would drop all but the first if something on the
 * way numbered them otherwise.  So buffers are cut only for nodes that cannot look: those
 * whose own packets have all said 0, as sockets do.  An adapter, or Linux's driver, counts.
 */
#include <netinet/in.h>
#include <stdbool.h>
#include <stddef.h>
#include <sys/socket.h>
#include "ipoib_cm/ib/pkt.h"
#include "ipoib_cm/ib/sac.h"

#define IB_WIRE_LIDS  256
#define IB_WIRE_OUT   65000 /* octets that leave together */
#define IB_WIRE_CUTS  48    /* packets likewise; the system takes 64 */
#define IB_WIRE_BATCH 16    /* buffers of one recvmmsg() */
#define IB_WIRE_IN    65536

/* X(name, meaning) */
#define IB_WIRE_STATS(X)                                                                           \
	X(wire_tx, "packets sent")                                                                 \
	X(wire_tx_calls, "calls of the system that sent them")                                     \
	X(wire_rx, "packets received")                                                             \
	X(wire_tx_failed, "packets that the system did not send")                                  \
	X(wire_stranger, "packets dropped: from outside the subnet")                               \
	X(wire_icrc, "packets dropped for their ICRC")                                             \
	X(wire_bad, "packets dropped for their length or header")

struct ib_wire_group {
	uint16_t mlid; /* 0: none */
	int fd;
};

/* One that waits to be sent: headers, pad and ICRC, and the payload between them or elsewhere. */
struct ib_wire_piece {
	uint16_t lid;
	uint8_t *own;	      /* all but the payload, or all */
	size_t head, own_len; /* octets of headers; of all that is there */
	const uint8_t *data;  /* payload that is elsewhere, */
	size_t len;	      /* and 0: it is not */
};

/* Packets that wait to be sent. */
struct ib_wire_out {
	unsigned first, n; /* those that are still to go; in all */
	bool cut;	   /* all to one node, by one call */
	bool ended;	   /* a shorter one is the last of these */
	size_t len, used;  /* octets of all, of which so many are here: */
	uint8_t buf[IB_WIRE_OUT];
	struct ib_wire_piece at[IB_WIRE_CUTS];
};

struct ib_wire {
	uint32_t ip, broadcast; /* host order */
	uint16_t udp_port;
	int unicast, multicast;
	bool full;	/* a packet found no room */
	bool no_cut;	/* the system does not do that */
	int failed_err; /* errno of the latest packet that was not sent; 0: none since it was read */
	uint32_t failed_to; /* its address, host order */
	struct ib_wire_group group[DDPS_SAC_GROUPS];
	/* Of each node: packets in a row with the identification 0, and with another one. */
	uint8_t plain[IB_WIRE_LIDS], counted[IB_WIRE_LIDS];
	struct {
#define DDPS_X(name, text) uint64_t name;
		IB_WIRE_STATS(DDPS_X)
#undef DDPS_X
	} stats;
	void (*rx)(void *user, uint16_t slid, uint16_t mlid, const struct ddps_ib_pkt *p,
		   uint64_t now);
	void *user;
	struct ib_wire_out out;
	struct mmsghdr msg[IB_WIRE_BATCH];
	struct iovec iov[IB_WIRE_BATCH];
	struct sockaddr_in from[IB_WIRE_BATCH];
	union {
		char room[CMSG_SPACE(sizeof(int))];
		struct cmsghdr align;
	} control[IB_WIRE_BATCH];
	uint8_t in[IB_WIRE_BATCH][IB_WIRE_IN];
};

/* Opens both sockets; @w: addresses are set.  Return: 0, or -1 with errno and the address. */
int ddps_ib_wire_open(struct ib_wire *w, uint32_t *where);
void ddps_ib_wire_close(struct ib_wire *w);

/*
 * Packets to a group leave from the UDP port that is its MLID.  The port lies among those that the
 * system gives to programs, so it is taken when the group is joined.  @mlid 0: it is given back.
 * Return: 0, or -1 with errno.
 */
int ddps_ib_wire_hold(struct ib_wire *w, unsigned group, uint16_t mlid);

/* One packet; to a group that is held.  It may wait for others, see flush, and its payload where it is, if that
 * stays.  Return: whether there was room. */
bool ddps_ib_wire_send(struct ib_wire *w, uint16_t lid, unsigned group, struct ddps_ib_pkt *p);
/* These octets are no longer there: what waits and has its payload from them gets a copy. */
void ddps_ib_wire_gone(struct ib_wire *w, const uint8_t *data, size_t len);
/* To be called before anybody waits.  Return: whether nothing is left. */
bool ddps_ib_wire_flush(struct ib_wire *w);

/* What is there goes to rx().  Return: whether there may be more. */
bool ddps_ib_wire_read(struct ib_wire *w, uint64_t now);

#endif
