/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef DDPSESS_IB_UDP_H
#define DDPSESS_IB_UDP_H
/*
 * A port of an InfiniBand subnet whose packets travel in UDP over IPv4, port 4791.  Packets have
 * InfiniBand's own headers and invariant CRC (ICRC): what RoCE v2 sends, but with LIDs.  The LID of
 * a node is the last octet of its IPv4 address, and all nodes of a subnet are in one /24.  A packet
 * of a multicast group goes to a broadcast address, with its multicast LID as UDP source port.
 *
 * The port has QP 1, one UD queue pair, and RC and UC queue pairs, as <ddpsess/ipoib_port.h> wants
 * them.  One node of a subnet is also its subnet administration, which gives the link its MTU and
 * its Q_Key.  Part of libddpsess-ipoib.
 *
 * No privilege is needed.  Anybody who can send to the address can send packets: there is no
 * protection but the subnet that the nodes are in.
 *
 * A program uses a port like this:
 *
 *	ddps_ib_udp_new, ddps_ib_udp_user
 *	ddps_ib_udp_run, once
 *	an interface on ddps_ib_udp_port is started
 *	ddps_ib_udp_fds and ddps_ib_udp_deadline, a wait, ddps_ib_udp_run: again and again
 *	ddps_ib_udp_free
 *
 * A port is used by one thread at a time.  No function blocks.  Times are nanoseconds of any clock
 * that does not run backwards.  What the interface asks of the port is done at the time of the
 * latest ddps_ib_udp_run().  So call ddps_ib_udp_run() when a wait has ended, and once before the
 * interface is started.
 */
#include <ddpsess/ipoib_port.h>
#include <poll.h>

#ifdef __cplusplus
extern "C" {
#endif

#define DDPS_IB_UDP_PORT  4791 /* of RoCE v2 */
#define DDPS_IB_UDP_FDS	  2    /* descriptors of a port */
#define DDPS_IB_UDP_PKEYS 16   /* most further partitions of a subnet */

/* A frame of IPoIB that was sent or received.  All pointers are valid during the call only. */
struct ddps_ib_seen {
	/* tx: sent, else received.  connected: by a connection, else a datagram.  uc: by an
	 * unreliable connection. */
	bool tx, connected, uc;
	uint16_t slid, dlid; /* LIDs of sender and receiver */
	uint32_t from_qpn, to_qpn;
	uint32_t qkey;	      /* of a datagram; else 0 */
	const uint8_t *group; /* of a datagram to a multicast group: its 16-octet MGID; else NULL */
	const void *frame;    /* encapsulation header first */
	size_t len;	      /* octets at frame */
	/* Of a datagram: the 16-octet GIDs of sender and receiver.  NULL: the port does not know it.
	 * What is received has them if its packet has a GRH, which a packet in UDP has not. */
	const uint8_t *from_gid, *to_gid;
};

struct ddps_ib_udp_config {
	size_t struct_size;   /* set by ddps_ib_udp_config_init() */
	uint8_t ip4[4];	      /* own; not x.x.x.0 nor x.x.x.255 */
	uint8_t broadcast[4]; /* zero: x.x.x.255, or 127.255.255.255 if it is a loopback */
	uint8_t gid[DDPS_IPOIB_GID_LEN]; /* own; in fe80::/64 */
	uint16_t udp_port;		 /* the same at all nodes; not 0 */
	uint16_t sa_lid;		 /* 1..255: of the subnet administration; own: it is here */
	uint32_t qpn;			 /* of the UD queue pair: 2..0xfffffe */
	uint16_t pkey; /* of the link; bit 15: a full member; the other bits are not 0 */
	uint8_t scope; /* of the link's multicast groups, 0..15 */
	/* mtu, qkey and life count at the administration only.  mtu: of the link, a code for
	 * octets: 1 = 256 ... 5 = 4096; less if the network has less. */
	uint8_t mtu;
	uint32_t qkey;	  /* of the link's groups */
	uint32_t life;	  /* 5-bit packet lifetime, from which peers take their timeouts */
	uint32_t max_qps; /* most RC and UC queue pairs, 1..65536 */
	uint32_t seed;	  /* random: for numbers of queue pairs and transactions */
	size_t tx_octets; /* of messages on their way, in all; more are not taken */
	size_t rx_octets; /* of messages that are not whole yet, in all; a peer then has to wait */
	const struct ddps_ipoib_up *up; /* what the port calls; valid until it is freed */
	/* Called for each frame, with see_user first; NULL: not. */
	void (*see)(void *user, const struct ddps_ib_seen *s);
	void *see_user;
	/*
	 * At the administration: P_Keys of further partitions of the subnet, each of which is a
	 * link of its own.  The first 0 ends them.  Bit 15 does not matter, and no partition may
	 * occur twice.  Each node's own pkey says whether the node is in a partition, and whether
	 * as a full member.  At other nodes: all 0.
	 */
	uint16_t pkeys[DDPS_IB_UDP_PKEYS];
};

struct ddps_ib_udp;

/**
 * ddps_ib_udp_config_init_sized - ddps_ib_udp_config_init() for languages that cannot call it
 * @cfg:	receives the defaults
 * @size:	what @cfg takes in the caller's memory, in octets; nothing is written beyond
 */
DDPS_API void ddps_ib_udp_config_init_sized(struct ddps_ib_udp_config *cfg, size_t size);

/**
 * ddps_ib_udp_config_init - fill in the defaults
 * @cfg:	receives the defaults; the program sets ip4, gid, sa_lid, qpn, seed and up
 *
 * UDP port 4791, P_Key 0xffff, scope 2, MTU 2048, Q_Key 0x0b1b, lifetime 18 (1 s), 512 queue pairs,
 * 16 MiB each way.  All others are zero.
 */
static inline void ddps_ib_udp_config_init(struct ddps_ib_udp_config *cfg)
{
	ddps_ib_udp_config_init_sized(cfg, sizeof(*cfg));
}

/**
 * ddps_ib_udp_new - open a port
 * @out:	receives the port; unchanged on failure
 * @cfg:	copied
 * @why:	receives one sentence on failure
 * @why_len:	octets of room at @why
 *
 * The program owns the port and frees it with ddps_ib_udp_free().
 *
 * Return: 0, or
 * - DDPS_E_INVAL: a member is out of range or not set, struct_size is no size of the struct, or the
 *   network of the address has an MTU below 336 octets
 * - DDPS_E_UNSUPPORTED: a member of a later release is set
 * - DDPS_E_SYSTEM: errno is set: EADDRINUSE, EADDRNOTAVAIL, ...; ENETDOWN: the administration is
 *   here, and the loopback device is down
 * - DDPS_E_NOMEM
 */
DDPS_API int ddps_ib_udp_new(struct ddps_ib_udp **out, const struct ddps_ib_udp_config *cfg,
			     char *why, size_t why_len);

/**
 * ddps_ib_udp_free - close a port
 * @u:	port; NULL is allowed
 *
 * What was sent before leaves, if there is room for it.  If the administration is here, it ends.
 */
DDPS_API void ddps_ib_udp_free(struct ddps_ib_udp *u);

/** ddps_ib_udp_port - Return: what an interface needs, valid until ddps_ib_udp_free(). */
DDPS_API struct ddps_ipoib_port *ddps_ib_udp_port(struct ddps_ib_udp *u);

/**
 * ddps_ib_udp_user - set the first argument of the calls of cfg.up
 * @u:		port
 * @user:	the argument, such as an interface
 *
 * Call it before the first ddps_ib_udp_run().
 */
DDPS_API void ddps_ib_udp_user(struct ddps_ib_udp *u, void *user);

/** ddps_ib_udp_lid - Return: the LID of the port, 1..254. */
DDPS_API uint16_t ddps_ib_udp_lid(const struct ddps_ib_udp *u);

/**
 * ddps_ib_udp_why - why the link is down, or why a group was not joined
 * @u:	port
 *
 * The port looks at the network interface that has its address once a second, and when a packet is
 * too long for it.  If the interface has gone, is down, has no carrier, or has an MTU that does not
 * hold the packets of the link, the port calls ddps_ipoib_up.link with up false.  When the interface
 * carries them again, it calls it with up true.
 *
 * Packets to a group leave from the UDP port that is the group's multicast LID, 49152 or above.  If
 * another program has that port, the group is not joined.  The port tries again, later and later.
 *
 * Return: one sentence, with what to try: on the network while the link is down, else on the group of
 * the latest call of ddps_ipoib_up.joined with an error; "" if the administration refused it or did not answer.  Valid until the next call.
 */
DDPS_API const char *ddps_ib_udp_why(const struct ddps_ib_udp *u);

/**
 * ddps_ib_udp_notice - what the port and the subnet administration have to say
 * @u:	port
 *
 * Ask after ddps_ib_udp_run() until there is nothing more.  There is a sentence if the system does
 * not send packets although the link is up, with the address and the system's reason; once a minute
 * for each reason.  There is one if the administration does not answer any more after the link was
 * joined, and one when it answers again.
 * There is one if two connections to a node fail because its long packets are never acknowledged,
 * and something comes from it.
 * If the administration is here, there is a sentence if two nodes have the same GID, if a GID has moved to another LID, or if a LID has come
 * with another GID.  The one that had the GID first keeps it as long as it answers.  At most 8
 * sentences wait; of one node the same is said once a minute.
 *
 * Return: one sentence with LIDs, GIDs and what to try, or NULL.  Valid until the next call.
 */
DDPS_API const char *ddps_ib_udp_notice(struct ddps_ib_udp *u);

/**
 * ddps_ib_udp_fds - what to wait for until ddps_ib_udp_run() has something to do
 * @u:		port
 * @fds:	receives descriptors and events, for poll()
 *
 * Ask anew before each wait.  Packets are sent together, and those that are still kept back go now.
 */
DDPS_API void ddps_ib_udp_fds(struct ddps_ib_udp *u, struct pollfd fds[DDPS_IB_UDP_FDS]);

/** ddps_ib_udp_deadline - Return: when to call ddps_ib_udp_run() at the latest, in nanoseconds, or
 * DDPS_CM_NEVER. */
DDPS_API uint64_t ddps_ib_udp_deadline(const struct ddps_ib_udp *u);

/**
 * ddps_ib_udp_run - serve timers, and packets that are there, a bounded number of them
 * @u:		port
 * @now:	the time in nanoseconds
 *
 * It calls the functions of cfg.up and cfg.see.
 *
 * Return: whether there may be more: then call it again without waiting.
 */
DDPS_API bool ddps_ib_udp_run(struct ddps_ib_udp *u, uint64_t now);

/**
 * ddps_ib_udp_busy - whether connections are behind
 * @u:	port
 *
 * If they are, a program that can wait a little before it sends more loses nothing.  A message that
 * finds no room is dropped, and counted in tx_failed of the interface.
 *
 * Return: whether more than half of the messages that one connection can have under way wait, or
 * more than 256 of its packets, or more than half of tx_octets is taken.
 */
DDPS_API bool ddps_ib_udp_busy(const struct ddps_ib_udp *u);

/**
 * ddps_ib_udp_counter - read a counter
 * @u:		port
 * @i:		number of the counter, from 0 on
 * @value:	receives its value
 *
 * Examples are wire_icrc (packets whose ICRC is wrong) and qp_rnr_tx (messages that found no
 * memory).  A later release may add some.
 *
 * Return: its name, a constant string, or NULL: there are no more.
 */
DDPS_API const char *ddps_ib_udp_counter(const struct ddps_ib_udp *u, unsigned i, uint64_t *value);

#ifdef __cplusplus
}
#endif
#endif
