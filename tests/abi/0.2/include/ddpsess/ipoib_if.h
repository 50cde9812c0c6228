/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef DDPSESS_IPOIB_IF_H
#define DDPSESS_IPOIB_IF_H
/*
 * An IPoIB interface (RFC 4391, RFC 4755): IP packets from above become datagrams or messages on connections, and
 * the other way round.  It resolves addresses, keeps neighbours and connections, and knows
 * how large a packet may be on its way to each of them.  It does no I/O and reads no clock.
 *
 * Every destination is taken to be on the link; routes to other links are the owner's matter.
 * One thread at a time; two interfaces have nothing in common.  No function blocks.  Times are
 * nanoseconds of any clock that does not run backwards.  After each call ask
 * ddps_ipoib_if_deadline() anew.  Part of libddpsess-ipoib.
 */
#include <ddpsess/ipoib_port.h>

#ifdef __cplusplus
extern "C" {
#endif

#define DDPS_IPOIB_IF_IP6_MAX 4
#define DDPS_IPOIB_IF_GROUPS  32 /* that the host listens to, besides those of every host */
#define DDPS_IPOIB_IF_QUEUE   8	 /* packets held for one neighbour or one connection */

/* Who an interface is, and what it takes. */
struct ddps_ipoib_iface {
	struct ddps_ipoib_lladdr addr; /* flags: the modes in which it connects */
	uint16_t pkey;
	uint32_t rx_mtu;      /* own Receive MTU */
	uint32_t min_mtu;     /* set by the library: what the IP versions in use need */
	bool rx_mtu_may_be_0; /* take a Receive MTU of 0 for "not negotiated" */
};

struct ddps_ipoib_policy {
	bool many;	     /* keep several connections to a neighbour */
	uint64_t backoff_ns; /* after a failure */
	uint64_t long_ns;    /* after "no resources" */
	uint64_t soon_ns;    /* after "stale connection": at least a round trip */
};

/* All zero in a field marked (d): its default. */
struct ddps_ipoib_if_config {
	size_t struct_size;	    /* set by ddps_ipoib_if_config_init() */
	struct ddps_ipoib_iface me; /* addr.flags: the modes offered and used, 0 = datagrams */
	uint8_t scope;		    /* of the link's groups (d: 2) */
	bool has_ip4;
	uint8_t ip4[4];
	unsigned prefix4; /* 0 = without a broadcast address of the subnet */
	unsigned n_ip6;
	uint8_t ip6[DDPS_IPOIB_IF_IP6_MAX][16];
	bool passive;			 /* accept connections, ask for none [4755-3.1-13] */
	bool prefer_uc;			 /* where both ends have both modes */
	enum ddps_ipoib_sid_form form;	 /* of service ID to try first; both are listened on */
	struct ddps_ipoib_policy policy; /* (d) 1 s, 30 s, 100 ms */
	/*
	 * (d) 256, 256, 512.  Memory for all is taken from the beginning: up to 320 octets for a
	 * neighbour, 480 for a peer, 256 for a queue pair; 576 more while it has a connection.
	 */
	unsigned max_nbr, max_peers, max_qps;
	size_t queue_octets;		/* in all queues together (d: 4 MiB) */
	uint64_t retry_ns;		/* between queries (d: 1 s) */
	unsigned tries;			/* of a query (d: 3) */
	uint64_t reachable_ns;		/* then it is asked again (d: 60 s) [4391-9.4-1] */
	uint64_t failed_ns;		/* no new query for so long (d: 3 s) */
	uint64_t idle_ns;		/* connections without traffic for so long end (d: 120 s) */
	uint8_t cm_timeout;		/* 5-bit time for each answer of the peer's CM (d: 18) */
	uint8_t cm_retries;		/* (d) 7 */
	uint8_t retry_count, rnr_retry; /* of the queue pair; 0 is low and wanted [4755-7.1-1] */
	uint64_t hash_key[2]; /* random, and secret: of the tables of neighbours and connections */
	uint64_t ca_guid;
	uint32_t seed; /* random: communication IDs, PSNs */
};

/** ddps_ipoib_if_config_init_sized - ddps_ipoib_if_config_init() for languages that cannot call it
 * @cfg: filled
 * @size: what @cfg takes in the caller's memory; nothing is written beyond */
DDPS_API void ddps_ipoib_if_config_init_sized(struct ddps_ipoib_if_config *cfg, size_t size);

/** ddps_ipoib_if_config_init - all zero; at least me and an IP address have to be set */
static inline void ddps_ipoib_if_config_init(struct ddps_ipoib_if_config *cfg)
{
	ddps_ipoib_if_config_init_sized(cfg, sizeof(*cfg));
}

/* X(name, meaning) */
#define DDPS_IPOIB_IF_STATS(X)                                                                     \
	X(tx_ud, "packets sent as datagrams")                                                      \
	X(tx_conn, "packets sent on connections")                                                  \
	X(tx_mcast, "packets sent to groups")                                                      \
	X(tx_query, "ARP requests and neighbour solicitations sent")                               \
	X(tx_answer, "ARP replies and neighbour advertisements sent")                              \
	X(tx_bad, "not an IP packet that can be sent")                                             \
	X(tx_down, "sent while the interface was down")                                            \
	X(tx_failed, "refused by the port")                                                        \
	X(tx_unreachable, "no address or no path")                                                 \
	X(tx_queue_full, "dropped for the bound of a queue")                                       \
	X(tx_fragments, "fragments made of packets above the MTU")                                 \
	X(tx_too_big, "packets above the MTU that may not be split")                               \
	X(icmp_sent, "answers to these")                                                           \
	X(icmp_limited, "answers left out for their rate")                                         \
	X(rx_ud, "packets received as datagrams")                                                  \
	X(rx_conn, "packets received on connections")                                              \
	X(rx_short, "frames without a whole encapsulation header")                                 \
	X(rx_type, "frames of another type")                                                       \
	X(rx_bad_ip, "packets whose version or length is wrong")                                   \
	X(rx_bad_arp, "ARP that is malformed or not legal")                                        \
	X(rx_bad_nd, "neighbour discovery that is malformed or not legal")                         \
	X(rx_too_long, "frames above the Receive MTU or the link's MTU")                           \
	X(rx_unknown_qp, "frames for a queue pair without a connection")                           \
	X(rx_down, "frames while the interface was down")                                          \
	X(mad_bad, "CM messages that are malformed or of no known kind")                           \
	X(req_refused, "REQs not admitted")                                                        \
	X(conn_up, "connections that came up")                                                     \
	X(conn_down, "connections that ended")                                                     \
	X(conn_idle, "connections ended for being idle")                                           \
	X(conn_error, "connections ended by an error of the queue pair")                           \
	X(nbr_full, "neighbours or peers not kept for lack of room")                               \
	X(join_failed, "joins that failed")                                                        \
	X(group_full, "groups not joined for lack of room")                                        \
	X(path_moved, "paths that have become others")

/* Counters; a later release may add some at the end. */
struct ddps_ipoib_if_stats {
#define DDPS_X(name, text) uint64_t name;
	DDPS_IPOIB_IF_STATS(DDPS_X)
#undef DDPS_X
};

/* What the interface asks of its owner; none may call back into it. */
struct ddps_ipoib_if_calls {
	size_t struct_size; /* sizeof(struct ddps_ipoib_if_calls) */
	/* An IP packet for the stack above; ICMP errors for it come the same way. */
	void (*deliver)(void *user, const void *packet, size_t len);
	/* A CM message goes out (@tx) or has come in.  May be NULL. */
	void (*trace)(void *user, bool tx, ddps_cm_addr addr, const void *mad, size_t len,
		      uint64_t now);
	void *user;
};

enum ddps_ipoib_if_state { DDPS_IPOIB_IF_DOWN, DDPS_IPOIB_IF_JOINING, DDPS_IPOIB_IF_UP };

struct ddps_ipoib_if;

/**
 * ddps_ipoib_if_new - make an interface, which is down
 * @f:		set on success only; the caller's, to be freed by ddps_ipoib_if_free()
 * @cfg:	copied
 * @port:	outlives the interface; its owner passes ddps_ipoib_if_up() what comes in, with the
 *		interface as user
 * @calls:	copied
 *
 * Return: 0; DDPS_E_INVAL (an address that cannot be, a Receive MTU below the minimum or above
 * 2^31, a limit above 65535, a table without its size); DDPS_E_UNSUPPORTED (a member of a later
 * release is set); DDPS_E_NOMEM.
 */
DDPS_API int ddps_ipoib_if_new(struct ddps_ipoib_if **f, const struct ddps_ipoib_if_config *cfg,
			       struct ddps_ipoib_port *port,
			       const struct ddps_ipoib_if_calls *calls);

/**
 * ddps_ipoib_if_free - end it immediately, without DREQs; NULL is allowed
 *
 * To be polite, ddps_ipoib_if_stop() it before and wait until ddps_ipoib_if_at_rest().
 */
DDPS_API void ddps_ipoib_if_free(struct ddps_ipoib_if *f);

/** ddps_ipoib_if_up - what a port's owner calls; user is the interface.  Return: a static table. */
DDPS_API const struct ddps_ipoib_up *ddps_ipoib_if_up(void);

/** ddps_ipoib_if_start - join the broadcast group, then work.
 * Return: 0, or DDPS_E_STATE: it is not down. */
DDPS_API int ddps_ipoib_if_start(struct ddps_ipoib_if *f, uint64_t now);

/** ddps_ipoib_if_stop - end connections, forget neighbours, leave groups (RFC 4755 3.4) */
DDPS_API void ddps_ipoib_if_stop(struct ddps_ipoib_if *f, uint64_t now);

/** ddps_ipoib_if_at_rest - Return: whether no connection is left, not even in timewait. */
DDPS_API bool ddps_ipoib_if_at_rest(const struct ddps_ipoib_if *f);

/**
 * ddps_ipoib_if_send - one IP packet, copied or sent during the call
 *
 * What becomes of it shows in the counters alone, as with any interface.
 * Return: 0 (sent, queued, answered or dropped), or DDPS_E_INVAL: not an IP packet.
 */
DDPS_API int ddps_ipoib_if_send(struct ddps_ipoib_if *f, const void *packet, size_t len,
				uint64_t now);

/** ddps_ipoib_if_deadline - when to call ddps_ipoib_if_tick(), or DDPS_CM_NEVER */
DDPS_API uint64_t ddps_ipoib_if_deadline(const struct ddps_ipoib_if *f);

/** ddps_ipoib_if_tick - do what is due at @now; harmless when nothing is */
DDPS_API void ddps_ipoib_if_tick(struct ddps_ipoib_if *f, uint64_t now);

/** ddps_ipoib_if_state - Return: whether it is down, joining or up. */
DDPS_API enum ddps_ipoib_if_state ddps_ipoib_if_state(const struct ddps_ipoib_if *f);

/** ddps_ipoib_if_stats - Return: its counters, valid until it is freed. */
DDPS_API const struct ddps_ipoib_if_stats *ddps_ipoib_if_stats(const struct ddps_ipoib_if *f);

/** ddps_ipoib_if_cm_stats - Return: the counters of its connection manager, likewise. */
DDPS_API const struct ddps_cm_stats *ddps_ipoib_if_cm_stats(const struct ddps_ipoib_if *f);

struct ddps_ipoib_if_nbr_info {
	bool ip6;
	uint8_t ip[16];
	const char *state; /* "resolving", "path", "reachable", "probe", "failed" */
	bool has_lladdr;
	struct ddps_ipoib_lladdr lladdr;
	uint32_t mtu;	  /* of IP packets to it now */
	const char *mode; /* "ud", "rc" or "uc" */
	uint64_t reserved[4];
};

/**
 * ddps_ipoib_if_nbr_info - look at the neighbour in slot @nr, 0...
 *
 * Return: 1: @info is filled; 0: the slot is free; -1: there is no such slot.
 */
DDPS_API int ddps_ipoib_if_nbr_info(const struct ddps_ipoib_if *f, unsigned nr,
				    struct ddps_ipoib_if_nbr_info *info);

struct ddps_ipoib_if_conn_info {
	uint32_t qpn, id;
	struct ddps_ipoib_lladdr peer;
	bool active, up, to_send, uc;
	uint32_t mtu;
	uint64_t reserved[4];
};

/** ddps_ipoib_if_conn_info - the same for connections; those that have ended are not shown */
DDPS_API int ddps_ipoib_if_conn_info(const struct ddps_ipoib_if *f, unsigned nr,
				     struct ddps_ipoib_if_conn_info *info);

#ifdef __cplusplus
}
#endif
#endif
