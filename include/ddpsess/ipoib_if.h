/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef DDPSESS_IPOIB_IF_H
#define DDPSESS_IPOIB_IF_H
/*
 * An IPoIB interface (RFC 4391, RFC 4755).  It turns IP packets into datagrams or into messages on
 * connections, and back.  It resolves addresses, keeps neighbours and connections, and knows how
 * large a packet may be on its way to each neighbour.
 *
 * The life of an interface:
 *
 *	ddps_ipoib_if_config_init, ddps_ipoib_if_new
 *	ddps_ipoib_if_start
 *	ddps_ipoib_if_send, ddps_ipoib_if_tick, and what ddps_ipoib_if_up() has
 *	ddps_ipoib_if_stop
 *	ddps_ipoib_if_tick, and so on, until ddps_ipoib_if_at_rest
 *	ddps_ipoib_if_free
 *
 * The interface does no I/O and reads no clock.  A port (<ddpsess/ipoib_port.h>) sends and receives
 * for it, and each call brings the time: nanoseconds of any clock that does not run backwards.
 * After each call, and after each call of the port, ask ddps_ipoib_if_deadline() again.
 *
 * The interface takes every destination to be on the link.  The program has to handle routes to
 * other links.
 *
 * Threads: one thread at a time for an interface and its port.  Two interfaces have nothing in
 * common.  No function blocks.  Part of libddpsess-ipoib.
 */
#include <ddpsess/ipoib_port.h>

#ifdef __cplusplus
extern "C" {
#endif

#define DDPS_IPOIB_IF_IP6_MAX 4	 /* IPv6 addresses of an interface */
#define DDPS_IPOIB_IF_GROUPS  32 /* that the host listens to, in addition to those of every host */
#define DDPS_IPOIB_IF_QUEUE   8	 /* packets held for one neighbour or one connection */

/* The identity of an interface, and what it accepts. */
struct ddps_ipoib_iface {
	/* The own address; its QPN is 1..0xfffffe.  flags: the modes in which it connects. */
	struct ddps_ipoib_lladdr addr;
	uint16_t pkey; /* partition of the link */
	/* The own Receive MTU in octets, encapsulation header included: 72 or more, 1284 or more
	 * with an IPv6 address, at most 2^31. */
	uint32_t rx_mtu;
	uint32_t min_mtu;     /* set by the library: what the IP versions in use need */
	bool rx_mtu_may_be_0; /* accept a peer's Receive MTU of 0, as "not negotiated" */
};

/* How an interface connects. */
struct ddps_ipoib_policy {
	bool many; /* keep several connections to a neighbour */
	/* How long to wait before the next attempt to connect, in nanoseconds: */
	uint64_t backoff_ns; /* after a failure */
	uint64_t long_ns;    /* after a rejection with "no resources" */
	uint64_t soon_ns;    /* after one with "stale connection": at least a round trip */
};

/* What an interface is to be.  A field marked (d) has a default, which is in force if the field is
 * 0.  Times are in nanoseconds. */
struct ddps_ipoib_if_config {
	size_t struct_size; /* set by ddps_ipoib_if_config_init() */
	/* addr.flags: the modes offered and used, 0 = datagrams only */
	struct ddps_ipoib_iface me;
	uint8_t scope; /* of the link's groups, at most 15 (d: 2) */
	bool has_ip4;  /* it has the IPv4 address ip4 */
	uint8_t ip4[4];
	/* Bits of the subnet's prefix, at most 32.  0, 31 and 32: the subnet has no broadcast
	 * address. */
	unsigned prefix4;
	unsigned n_ip6; /* how many IPv6 addresses, at most DDPS_IPOIB_IF_IP6_MAX */
	uint8_t ip6[DDPS_IPOIB_IF_IP6_MAX][16];
	bool passive;	/* accept connections, but never ask for one (RFC 4755 3.1) */
	bool prefer_uc; /* UC rather than RC, if both ends have both modes */
	enum ddps_ipoib_sid_form form;	 /* of the service ID to try first; it listens on both */
	struct ddps_ipoib_policy policy; /* (d: 1 s, 30 s, 100 ms) */
	/*
	 * The most neighbours, peers and queue pairs (d: 256, 256, 512), each at most 65535.
	 * Memory for all of them is allocated at the beginning: up to 320 octets for a neighbour,
	 * 480 for a peer, 256 for a queue pair.  A queue pair has 576 more while it has a
	 * connection.
	 */
	unsigned max_nbr, max_peers, max_qps;
	size_t queue_octets; /* octets in all queues together (d: 4 MiB) */
	uint64_t retry_ns;   /* from a query to the next try (d: 1 s) */
	unsigned tries;	     /* how often to try a query, the first time included (d: 3) */
	/* A neighbour that has answered is taken to be reachable for this time, times 0.5 to 1.5 at
	 * random (d: 30 s).  5 s after the next packet to it, it is asked again; if there is none
	 * for twice this time, it is forgotten.  This is neighbour unreachability detection of RFC 4861
	 * 7.3, and is done for IPv4, too. */
	uint64_t reachable_ns;
	/* After a failure, pause before the next query; packets are dropped meanwhile (d: 3 s). */
	uint64_t failed_ns;
	uint64_t idle_ns;   /* a connection without traffic ends after this (d: 120 s) */
	uint8_t cm_timeout; /* for each answer of the peer's CM, up to 31: 4.096 us * 2^n (d: 18) */
	uint8_t cm_retries; /* how often to send a CM message again, up to 15 (d: 7) */
	/* Of the queue pairs, 0..7.  There is no default: 0 is low and wanted (RFC 4755 7.1). */
	uint8_t retry_count, rnr_retry;
	uint64_t hash_key[2]; /* random, and secret: of the tables of neighbours and connections */
	uint64_t ca_guid;     /* of the channel adapter, for CM messages */
	uint32_t seed;	      /* random: for communication IDs, PSNs and times */
	/*
	 * Before an address of this interface is used, the link is asked whether another node has it:
	 * after a start at random within probe_ns, for IPv4 three times, one or two probe_ns apart,
	 * and then for two probe_ns (RFC 5227); for IPv6 once, and then for one (RFC 4862).  (d: 1 s)
	 */
	uint64_t probe_ns;
};

/**
 * ddps_ipoib_if_config_init_sized - ddps_ipoib_if_config_init() for languages that cannot call it
 * @cfg:	receives zeros and its size
 * @size:	the size of @cfg in the caller's memory, in octets; nothing is written beyond
 */
DDPS_API void ddps_ipoib_if_config_init_sized(struct ddps_ipoib_if_config *cfg, size_t size);

/**
 * ddps_ipoib_if_config_init - set all members to 0
 * @cfg:	receives zeros and its size; the program sets at least @me and an IP address
 */
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
	X(icmp_sent, "ICMP errors to the host")                                                    \
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
	X(path_moved, "paths that have become others")                                             \
	X(ip_conflict, "messages of other nodes that have or want an address of this one")         \
	X(tx_young, "packets from an address that may be another node's")

/* Counters; a later release may add some at the end. */
struct ddps_ipoib_if_stats {
#define DDPS_X(name, text) uint64_t name;
	DDPS_IPOIB_IF_STATS(DDPS_X)
#undef DDPS_X
};

/* Functions of the program that the interface calls.  They must not call the interface.  Buffers
 * are valid during the call. */
struct ddps_ipoib_if_calls {
	size_t struct_size; /* sizeof(struct ddps_ipoib_if_calls) */
	/* Takes a received IP packet, or an ICMP error about a packet that this host sent.
	 * Required. */
	void (*deliver)(void *user, const void *packet, size_t len);
	/* Shows a CM message that is sent (@tx) to @addr or was received from there.  May be
	 * NULL. */
	void (*trace)(void *user, bool tx, ddps_cm_addr addr, const void *mad, size_t len,
		      uint64_t now);
	void *user; /* the first argument of both */
};

/* JOINING: it waits for the broadcast group of the link, and carries no packets yet. */
enum ddps_ipoib_if_state { DDPS_IPOIB_IF_DOWN, DDPS_IPOIB_IF_JOINING, DDPS_IPOIB_IF_UP };

struct ddps_ipoib_if;

/**
 * ddps_ipoib_if_new - create an interface, which is down
 * @f:		receives the interface, which the program frees with ddps_ipoib_if_free(); unchanged
 *		on failure
 * @cfg:	copied
 * @port:	must outlive the interface
 * @calls:	copied
 *
 * What the port receives it passes to the functions of ddps_ipoib_if_up(), with the interface as
 * user.
 *
 * Return: 0, or
 * - DDPS_E_INVAL: @port or deliver is NULL, a table without its size, or a member of @cfg is out of
 *   the range that its comment says
 * - DDPS_E_UNSUPPORTED: a member of a later release is set
 * - DDPS_E_NOMEM
 */
DDPS_API int ddps_ipoib_if_new(struct ddps_ipoib_if **f, const struct ddps_ipoib_if_config *cfg,
			       struct ddps_ipoib_port *port,
			       const struct ddps_ipoib_if_calls *calls);

/**
 * ddps_ipoib_if_free - destroy an interface immediately
 * @f:		NULL is allowed
 *
 * Its queue pairs are destroyed.  Peers are not informed.  To end connections in order, call
 * ddps_ipoib_if_stop() before and wait until ddps_ipoib_if_at_rest().
 */
DDPS_API void ddps_ipoib_if_free(struct ddps_ipoib_if *f);

/**
 * ddps_ipoib_if_up - the functions that the owner of a port calls when something comes in
 *
 * Their argument user is the interface.
 *
 * Return: a static table.
 */
DDPS_API const struct ddps_ipoib_up *ddps_ipoib_if_up(void);

/**
 * ddps_ipoib_if_address - the host has an address, or has it no longer
 * @f:		interface
 * @ip6:	whether it is an IPv6 address
 * @ip:		4 or 16 octets
 * @prefix:	length of its subnet's prefix in bits
 * @has:	whether the host has it now
 * @now:	the time
 *
 * For addresses that come and go after ddps_ipoib_if_new(), of the configuration or not.  Whoever asks
 * for an address of the host is answered, and its groups are joined, as soon as the link was asked for it
 * (probe_ns in the configuration) and no other node has it.  Then it is announced to the link.  Until then
 * the host's packets from that address are dropped (tx_young).
 * It may be called in any state; what is so already changes nothing.
 *
 * Return: 0, or DDPS_E_LIMIT: there are 32 that are not of the configuration.
 */
DDPS_API int ddps_ipoib_if_address(struct ddps_ipoib_if *f, bool ip6, const uint8_t *ip,
				   unsigned prefix, bool has, uint64_t now);

/**
 * ddps_ipoib_if_start - join the broadcast group, then carry packets
 * @f:		interface
 * @now:	the time
 *
 * If the group cannot be joined, the interface tries again after retry_ns, without end.
 *
 * Return: 0, or DDPS_E_STATE: it is not down.
 */
DDPS_API int ddps_ipoib_if_start(struct ddps_ipoib_if *f, uint64_t now);

/**
 * ddps_ipoib_if_stop - end connections, forget neighbours, leave groups (RFC 4755 3.4)
 * @f:		interface
 * @now:	the time
 *
 * The interface is down immediately, but its connections need time to end in order: go on with
 * ddps_ipoib_if_tick() until ddps_ipoib_if_at_rest().  If it is down already, nothing happens.
 */
DDPS_API void ddps_ipoib_if_stop(struct ddps_ipoib_if *f, uint64_t now);

/**
 * ddps_ipoib_if_at_rest - whether all connections have ended
 * @f:		interface
 *
 * Return: whether no connection is left, not even in timewait.
 */
DDPS_API bool ddps_ipoib_if_at_rest(const struct ddps_ipoib_if *f);

/**
 * ddps_ipoib_if_send - send one IP packet
 * @f:		interface
 * @packet:	borrowed: copied or sent during the call
 * @len:	its length in octets
 * @now:	the time
 *
 * A packet above the MTU of its way is fragmented if it is IPv4 without Don't Fragment.  Any other
 * is dropped; deliver gets an ICMP error, unless it was multicast or the limit of their rate is
 * reached.  If nobody answers for its address, deliver gets "host unreachable" or "address
 * unreachable", with a limit of their own.
 *
 * As with any interface, only the counters show what happened to the packet.
 *
 * Return: 0 (sent, queued, answered or dropped), or DDPS_E_INVAL: not an IP packet.
 */
DDPS_API int ddps_ipoib_if_send(struct ddps_ipoib_if *f, const void *packet, size_t len,
				uint64_t now);

/**
 * ddps_ipoib_if_send_frame - ddps_ipoib_if_send() that saves a copy
 * @f:		interface
 * @frame:	DDPS_IPOIB_ENCAP_LEN octets, which are overwritten, and the packet behind them
 * @len:	length of the packet in octets
 * @now:	the time
 *
 * Return: as ddps_ipoib_if_send().
 */
DDPS_API int ddps_ipoib_if_send_frame(struct ddps_ipoib_if *f, void *frame, size_t len,
				      uint64_t now);

/**
 * ddps_ipoib_if_deadline - when to call ddps_ipoib_if_tick()
 * @f:		interface
 *
 * Return: a time, or DDPS_CM_NEVER.
 */
DDPS_API uint64_t ddps_ipoib_if_deadline(const struct ddps_ipoib_if *f);

/**
 * ddps_ipoib_if_tick - do what is due
 * @f:		interface
 * @now:	the time
 *
 * It may be called at any time; if nothing is due it does nothing.
 */
DDPS_API void ddps_ipoib_if_tick(struct ddps_ipoib_if *f, uint64_t now);

/**
 * ddps_ipoib_if_state - the state of an interface
 * @f:		interface
 *
 * Return: whether it is down, joining or up.
 */
DDPS_API enum ddps_ipoib_if_state ddps_ipoib_if_state(const struct ddps_ipoib_if *f);

/**
 * ddps_ipoib_if_stats - the counters of an interface
 * @f:		interface
 *
 * Return: its counters, valid until it is freed.
 */
DDPS_API const struct ddps_ipoib_if_stats *ddps_ipoib_if_stats(const struct ddps_ipoib_if *f);

/**
 * ddps_ipoib_if_cm_stats - the counters of an interface's connection manager
 * @f:		interface
 *
 * Return: the counters, valid until the interface is freed.
 */
DDPS_API const struct ddps_cm_stats *ddps_ipoib_if_cm_stats(const struct ddps_ipoib_if *f);

/* A neighbour. */
struct ddps_ipoib_if_nbr_info {
	bool ip6;	/* true: IPv6; false: IPv4 */
	uint8_t ip[16]; /* its address; IPv4: the first four octets */
	/* A constant string:
	 * - "resolving": it was asked for its link-layer address
	 * - "path": the port was asked for the path to it
	 * - "reachable": packets are sent to it
	 * - "stale": it has not answered for a while, and no packets are sent to it
	 * - "delay": the same; packets are sent to it, and it is going to be asked
	 * - "probe": packets are sent to it, and it was asked whether it is still there
	 * - "failed": no answer, or no path; packets to it are dropped */
	const char *state;
	bool has_lladdr; /* lladdr is known */
	struct ddps_ipoib_lladdr lladdr;
	uint32_t mtu;	  /* the largest IP packet to it now, in octets */
	const char *mode; /* how packets go there now: "ud", "rc" or "uc" */
	uint64_t reserved[4];
};

/**
 * ddps_ipoib_if_nbr_info - read one neighbour
 * @f:		interface
 * @nr:		slot, from 0 on
 * @info:	receives a copy
 *
 * To read all neighbours, count @nr up from 0 until -1 is returned.
 *
 * Return: 1: @info is filled; 0: the slot is free; -1: there is no such slot.
 */
DDPS_API int ddps_ipoib_if_nbr_info(const struct ddps_ipoib_if *f, unsigned nr,
				    struct ddps_ipoib_if_nbr_info *info);

#define DDPS_IPOIB_IF_CONFLICTS 8 /* addresses of which it is remembered */

/* An address of this host. */
struct ddps_ipoib_if_addr_info {
	bool ip6;
	uint8_t ip[16]; /* IPv4: the first four octets */
	/* No other node has it, so it is used.  Otherwise the link is being asked, or is not there. */
	bool held;
	uint64_t reserved[4];
};

/**
 * ddps_ipoib_if_addr_info - read one address of this host
 * @f:		interface
 * @nr:		slot, from 0 on
 * @info:	receives a copy
 *
 * Return: as ddps_ipoib_if_nbr_info().
 */
DDPS_API int ddps_ipoib_if_addr_info(const struct ddps_ipoib_if *f, unsigned nr,
				     struct ddps_ipoib_if_addr_info *info);

/**
 * ddps_ipoib_if_missed - the program did not serve the interface for a time
 * @f:		interface
 * @for_ns:	how long: the process was stopped, or the machine slept
 * @now:	the time
 *
 * What came meanwhile may be lost, and other nodes may have got the addresses of this one.  If the time was
 * long enough for that (4 probe_ns for an IPv4 address, one for an IPv6 address), the link is asked
 * for them again, as for new ones.  The same happens after the link was down.
 * Let the port pass up what it has before.
 */
DDPS_API void ddps_ipoib_if_missed(struct ddps_ipoib_if *f, uint64_t for_ns, uint64_t now);

/* An address of this host that another node has or wants, too. */
struct ddps_ipoib_if_conflict {
	bool ip6;
	uint8_t ip[16];			/* IPv4: the first four octets */
	bool given_up;			/* it is not used here any more */
	struct ddps_ipoib_lladdr other; /* the node that said so last */
	uint64_t at;			/* when */
	uint64_t since;			/* when this record was begun */
	uint64_t reserved[3];
};

/**
 * ddps_ipoib_if_conflict - read one address that another node has, too
 * @f:		interface
 * @nr:		slot, from 0 on
 * @c:		receives a copy
 *
 * The interface asks the link for each address before it uses it (RFC 5227, RFC 4862): probe_ns in the
 * configuration.  If another node says meanwhile that it has the address, or asks for it, too, the interface
 * gives it up: it is as after ddps_ipoib_if_address() with @has false, and the program must not use it
 * either.  Later the interface keeps the address, answers whoever asks for it, and against another
 * node that uses it says so to the link at most every 10 s.  ip_conflict counts what other nodes said.
 *
 * A record ends when the other node has not been heard for 180 probe_ns though it was asked, or when the
 * address that was given up is this host's again.
 *
 * Return: as ddps_ipoib_if_nbr_info().
 */
DDPS_API int ddps_ipoib_if_conflict(const struct ddps_ipoib_if *f, unsigned nr,
				    struct ddps_ipoib_if_conflict *c);

/* A connection. */
struct ddps_ipoib_if_conn_info {
	uint32_t qpn, id;	       /* the own queue pair, and the local communication ID */
	struct ddps_ipoib_lladdr peer; /* the neighbour */
	/* active: this end sent the REQ.  up: established.  to_send: in both directions, otherwise
	 * it only receives.  uc: UC, otherwise RC. */
	bool active, up, to_send, uc;
	uint32_t mtu; /* of IP packets, in octets; 0 before it is up */
	uint64_t reserved[4];
};

/**
 * ddps_ipoib_if_conn_info - read one connection; those that have ended are not shown
 * @f:		interface
 * @nr:		slot, from 0 on
 * @info:	receives a copy
 *
 * Return: as ddps_ipoib_if_nbr_info().
 */
DDPS_API int ddps_ipoib_if_conn_info(const struct ddps_ipoib_if *f, unsigned nr,
				     struct ddps_ipoib_if_conn_info *info);

#ifdef __cplusplus
}
#endif
#endif
