/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef DDPSESS_IB_UDP_H
#define DDPSESS_IB_UDP_H
/*
 * A port of an InfiniBand subnet whose packets travel in UDP over IPv4, port 4791, with their own
 * headers and invariant CRC: what RoCE v2 sends, but with LIDs.  The LID of a node is the last
 * octet of its IPv4 address, and all nodes of a subnet are in one /24.  A packet of a multicast
 * group goes to a broadcast address, its MLID as UDP source port.
 *
 * It has QP 1, one UD queue pair, and RC and UC queue pairs, as <ddpsess/ipoib_port.h> wants them.
 * One node of a subnet is also its subnet administration, which gives the link its MTU and its
 * Q_Key.  No privilege is needed.  Packets come from whoever can send to the address: there is no
 * protection but the subnet that they are in.
 *
 * One thread at a time.  No function blocks.  Times are nanoseconds of any clock that does not run
 * backwards; what the interface asks of the port is done at the time of the latest
 * ddps_ib_udp_run(), so call that when a wait has ended, and once before the interface is started.
 * Part of libddpsess-ipoib.
 */
#include <ddpsess/ipoib_port.h>
#include <poll.h>

#ifdef __cplusplus
extern "C" {
#endif

#define DDPS_IB_UDP_PORT  4791
#define DDPS_IB_UDP_FDS	  2
#define DDPS_IB_UDP_PKEYS 16

/* A frame of IPoIB that is sent or has come, encapsulation header first; valid during the call. */
struct ddps_ib_seen {
	bool tx, connected, uc;
	uint16_t slid, dlid;
	uint32_t from_qpn, to_qpn;
	uint32_t qkey;	      /* of a datagram */
	const uint8_t *group; /* its MGID, or NULL */
	const void *frame;
	size_t len;
};

struct ddps_ib_udp_config {
	size_t struct_size;   /* set by ddps_ib_udp_config_init() */
	uint8_t ip4[4];	      /* own; not x.x.x.0 nor x.x.x.255 */
	uint8_t broadcast[4]; /* zero: x.x.x.255, or 127.255.255.255 if it is a loopback */
	uint8_t gid[DDPS_IPOIB_GID_LEN]; /* own; fe80::/64 */
	uint16_t udp_port;		 /* the same at all nodes */
	uint16_t sa_lid;		 /* of the subnet administration; own: it is here */
	uint32_t qpn;			 /* of the UD queue pair: 2 to 0xfffffe */
	uint16_t pkey;			 /* of the link; bit 15: a full member */
	uint8_t scope;			 /* of the link's groups */
	uint8_t mtu; /* the administration's: 1 = 256 ... 5 = 4096, less if the network has less */
	uint32_t qkey; /* likewise: of the link's groups */
	uint32_t life; /* likewise: 5-bit packet lifetime, from which peers take their timeouts */
	uint32_t max_qps; /* 1 to 65536 */
	uint32_t seed;	  /* random: queue pair numbers, transactions */
	size_t tx_octets; /* of messages on their way, in all; more are not taken */
	size_t rx_octets; /* of messages that are not whole yet, in all; a peer then has to wait */
	const struct ddps_ipoib_up *up;
	void (*see)(void *user, const struct ddps_ib_seen *s); /* or NULL */
	void *see_user;
	/*
	 * The administration's: P_Keys of more partitions of the subnet, each a link of its own;
	 * the first 0 ends them.  Bit 15 does not matter.  Each node's own pkey says whether it is
	 * in a partition, and whether as a full member.
	 */
	uint16_t pkeys[DDPS_IB_UDP_PKEYS];
};

struct ddps_ib_udp;

/** ddps_ib_udp_config_init_sized - ddps_ib_udp_config_init() for languages that cannot call it
 * @cfg: filled
 * @size: what @cfg takes in the caller's memory; nothing is written beyond */
DDPS_API void ddps_ib_udp_config_init_sized(struct ddps_ib_udp_config *cfg, size_t size);

/**
 * ddps_ib_udp_config_init - defaults; ip4, gid, sa_lid, qpn, seed and up have to be set
 *
 * UDP port 4791, P_Key 0xffff, scope 2, MTU 2048, Q_Key 0x0b1b, lifetime 18 (1 s), 512 queue pairs,
 * 16 MiB each way.
 */
static inline void ddps_ib_udp_config_init(struct ddps_ib_udp_config *cfg)
{
	ddps_ib_udp_config_init_sized(cfg, sizeof(*cfg));
}

/**
 * ddps_ib_udp_new - open a port
 * @out:		set on success; the program frees it with ddps_ib_udp_free().  Unchanged on failure
 * @cfg:		copied
 * @why, @why_len:	receives one sentence on failure
 *
 * Return: 0; DDPS_E_INVAL; DDPS_E_UNSUPPORTED (a member of a later release is set); DDPS_E_SYSTEM
 * with errno (ENETDOWN: the administration is here, and the loopback device is down); DDPS_E_NOMEM.
 */
DDPS_API int ddps_ib_udp_new(struct ddps_ib_udp **out, const struct ddps_ib_udp_config *cfg,
			     char *why, size_t why_len);

/** ddps_ib_udp_free - close it; NULL is allowed.  The administration, if it is here, ends, too.
 * What was sent before leaves, if there is room for it. */
DDPS_API void ddps_ib_udp_free(struct ddps_ib_udp *u);

/** ddps_ib_udp_port - Return: what an interface needs, valid until ddps_ib_udp_free(). */
DDPS_API struct ddps_ipoib_port *ddps_ib_udp_port(struct ddps_ib_udp *u);

/** ddps_ib_udp_user - the first argument of the calls of cfg.up; to be set before the first
 * ddps_ib_udp_run() */
DDPS_API void ddps_ib_udp_user(struct ddps_ib_udp *u, void *user);

/** ddps_ib_udp_lid - Return: its LID. */
DDPS_API uint16_t ddps_ib_udp_lid(const struct ddps_ib_udp *u);

/** ddps_ib_udp_fds - what to wait for until ddps_ib_udp_run() has something to do; ask anew before
 * each wait: packets are sent together, and those that are still kept back go now */
DDPS_API void ddps_ib_udp_fds(struct ddps_ib_udp *u, struct pollfd fds[DDPS_IB_UDP_FDS]);

/** ddps_ib_udp_deadline - Return: when to call ddps_ib_udp_run() at the latest, or DDPS_CM_NEVER */
DDPS_API uint64_t ddps_ib_udp_deadline(const struct ddps_ib_udp *u);

/** ddps_ib_udp_run - timers, and packets that are there, a bounded number of them.
 * Return: whether there may be more: call it again without waiting. */
DDPS_API bool ddps_ib_udp_run(struct ddps_ib_udp *u, uint64_t now);

/**
 * ddps_ib_udp_busy - whether connections are behind
 * @u:	a port
 *
 * Return: whether more than half of the messages that one connection can have under way wait, or
 * more than half of tx_octets is taken.  Whoever can wait a little before sending more loses
 * nothing then: a message that finds no room is dropped, and counted in tx_failed of the interface.
 */
DDPS_API bool ddps_ib_udp_busy(const struct ddps_ib_udp *u);

/**
 * ddps_ib_udp_counter - read counter number @i, from 0 on
 *
 * Examples are wire_icrc (packets whose CRC is wrong) and qp_rnr_tx (messages that found no memory).
 *
 * Return: its name and @value, or NULL: there are no more.  A later release may add some.
 */
DDPS_API const char *ddps_ib_udp_counter(const struct ddps_ib_udp *u, unsigned i, uint64_t *value);

#ifdef __cplusplus
}
#endif
#endif
