/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef DDPSESS_IB_VERBS_H
#define DDPSESS_IB_VERBS_H
/*
 * A port of a real InfiniBand adapter, as <ddpsess/ipoib_port.h> wants it.  UD, RC and UC queue
 * pairs are made by libibverbs.  CM messages and queries to the subnet administration go by
 * libibumad.  Part of libddpsess-ipoib.
 *
 * Both libraries are loaded when a port is opened, so nothing that is linked depends on them.
 *
 * The CM messages of an adapter's port have one owner: this works while nothing has loaded ib_cm
 * (nor what needs it: ib_ipoib, rdma_cm).  The program has to be able to open
 * /dev/infiniband/umad* and uverbs*, which are root's as a rule.  It needs memory that may be
 * locked, and CAP_NET_RAW for a link whose Q_Key has bit 31.
 *
 * A RoCE port has neither LIDs nor a subnet administration.  It is taken if its device is named.
 * Then nodes are found by their GIDs: the port's GID is an IPv6 address of RoCE version 2, and a
 * multicast group is the IPv6 group of its MGID.  Q_Key, MTU and the broadcast group of the link
 * are what the configuration says, which has to be the same on all nodes.  Linux has no IPoIB
 * there, so the other nodes run this library, too.
 *
 * RC and UC queue pairs share one receive queue.  An adapter that has this for RC alone refuses UC
 * queue pairs: then a node that offers unreliable connections sends datagrams.
 *
 * A port is used in the order that <ddpsess/ib_udp.h> describes, and by one thread at a time.  No
 * function blocks but ddps_ib_verbs_new() and ddps_ib_verbs_free().  Times are nanoseconds of any
 * clock that does not run backwards.  What the interface asks of the port is done at the time of
 * the latest ddps_ib_verbs_run().  So call ddps_ib_verbs_run() when a wait has ended, and once
 * before the interface is started.
 *
 * Experimental: no InfiniBand adapter has run this yet, only a soft RoCE device and simulators.
 * These functions may change, or go, in any release.
 */
#include <ddpsess/ib_udp.h>

#ifdef __cplusplus
extern "C" {
#endif

#define DDPS_IB_VERBS_FDS    3	/* descriptors of a port */
#define DDPS_IB_VERBS_DEVICE 64 /* octets of a device's name, with the 0 at its end */

struct ddps_ib_verbs_config {
	size_t struct_size; /* set by ddps_ib_verbs_config_init() */
	const char *device; /* name; NULL: the first that has an InfiniBand port */
	uint8_t port;	    /* from 1 on; 0: the first that fits, an active one if there is one */
	/* Index of the own GID in the port's table.  RoCE: 0 is the first link-local address of
	 * version 2. */
	uint8_t gid_index;
	uint16_t pkey; /* of the link; has to be in the port's table, with or without bit 15 */
	uint8_t scope; /* of the link's multicast groups, 0..15 */
	uint8_t reserved[3];
	uint32_t max_qps; /* most RC and UC queue pairs, 1..65536 */
	uint32_t seed;	  /* random: for transactions and hashes */
	/* Octets of locked memory for messages on their way, and for messages that come.  A message
	 * takes 64 KiB.  Each is 256 KiB to 4 GiB. */
	size_t tx_octets;
	size_t rx_octets;
	const struct ddps_ipoib_up *up; /* what the port calls; valid until it is freed */
	/* Called for each frame, with see_user first; NULL: not. */
	void (*see)(void *user, const struct ddps_ib_seen *s);
	void *see_user;
	/* Of a link on RoCE.  On InfiniBand the subnet says these, and they are 0. */
	uint32_t qkey; /* 0: 0x0b1b */
	uint8_t mtu;   /* code, in octets: 1 = 256 ... 5 = 4096; 0: the port's */
	uint8_t reserved2[3];
};

/* What is known of a port that is open.  lid, lmc, sm_lid and active change with the subnet. */
struct ddps_ib_verbs_info {
	char device[DDPS_IB_VERBS_DEVICE]; /* name */
	uint8_t gid[DDPS_IPOIB_GID_LEN];   /* own */
	uint64_t node_guid;		   /* in host order */
	uint32_t qpn;			   /* of the UD queue pair */
	uint16_t lid, sm_lid, pkey;	   /* own; of the subnet manager; as in the port's table */
	uint8_t port, lmc;		   /* number, from 1 on; LID mask control, 0..7 */
	uint8_t mtu;			   /* of the port, in octets: 1 = 256 ... 5 = 4096 */
	bool active;			   /* the port can send */
	bool roce;			   /* no LIDs: lid and sm_lid are 0 */
	uint8_t gid_index;		   /* of gid in the port's table */
	uint8_t reserved[6];
};

struct ddps_ib_verbs;

/**
 * ddps_ib_verbs_config_init_sized - ddps_ib_verbs_config_init() for languages that cannot call it
 * @cfg:	receives the defaults
 * @size:	what @cfg takes in the caller's memory, in octets; nothing is written beyond
 */
DDPS_API void ddps_ib_verbs_config_init_sized(struct ddps_ib_verbs_config *cfg, size_t size);

/**
 * ddps_ib_verbs_config_init - fill in the defaults
 * @cfg:	receives the defaults; the program sets seed and up
 *
 * First InfiniBand port, GID 0, P_Key 0xffff, scope 2, 512 queue pairs, 16 MiB each way; on RoCE
 * the default Q_Key and the MTU of the port.
 */
static inline void ddps_ib_verbs_config_init(struct ddps_ib_verbs_config *cfg)
{
	ddps_ib_verbs_config_init_sized(cfg, sizeof(*cfg));
}

/**
 * ddps_ib_verbs_new - open a port of an adapter
 * @out:	receives the port; unchanged on failure
 * @cfg:	copied
 * @why:	receives on failure what failed, and what to try
 * @why_len:	octets of room at @why
 *
 * The program owns the port and frees it with ddps_ib_verbs_free().  Can block.
 *
 * Return: 0, or
 * - DDPS_E_INVAL: a member is out of range or not set, struct_size is no size of the struct, there
 *   is a Q_Key or MTU for an InfiniBand port, or an MTU above that of a RoCE port
 * - DDPS_E_UNSUPPORTED: a library cannot be loaded, or is too old to know the GIDs of RoCE; there
 *   is no such device or port, or it has no InfiniBand link layer and is no named RoCE device; or a
 *   member of a later release is set
 * - DDPS_E_STATE: the port is not active, or no subnet manager has set it up
 * - DDPS_E_ADDRESS: P_Key or GID is not in the tables of the port
 * - DDPS_E_BUSY: another program, or the kernel's ib_cm, has the CM messages of the port
 * - DDPS_E_SYSTEM: no permission (errno is EACCES or EPERM), a module is not loaded (ENOENT), or
 *   the adapter or the system refuses something else
 * - DDPS_E_NOMEM: also if less memory may be locked than is needed
 */
DDPS_API int ddps_ib_verbs_new(struct ddps_ib_verbs **out, const struct ddps_ib_verbs_config *cfg,
			       char *why, size_t why_len);

/**
 * ddps_ib_verbs_free - close a port
 * @v:	port; NULL is allowed
 *
 * Can block.
 */
DDPS_API void ddps_ib_verbs_free(struct ddps_ib_verbs *v);

/**
 * ddps_ib_verbs_port - the port as an interface wants it
 * @v:	port
 *
 * Return: what an interface needs, valid until ddps_ib_verbs_free().
 */
DDPS_API struct ddps_ipoib_port *ddps_ib_verbs_port(struct ddps_ib_verbs *v);

/**
 * ddps_ib_verbs_user - set the first argument of the calls of cfg.up
 * @v:		port
 * @user:	the argument, such as an interface
 *
 * Call it before the first ddps_ib_verbs_run().
 */
DDPS_API void ddps_ib_verbs_user(struct ddps_ib_verbs *v, void *user);

/**
 * ddps_ib_verbs_info - device, addresses and state of a port
 * @v:	port
 *
 * Return: what is known of the port, valid until it is closed.
 */
DDPS_API const struct ddps_ib_verbs_info *ddps_ib_verbs_info(const struct ddps_ib_verbs *v);

/**
 * ddps_ib_verbs_why - what went wrong with a port that is open
 * @v:	port
 *
 * Return: one sentence on what last went wrong below, such as a join that the adapter refused; ""
 * if nothing did.  Valid until the next call.
 */
DDPS_API const char *ddps_ib_verbs_why(const struct ddps_ib_verbs *v);

/**
 * ddps_ib_verbs_fds - what to wait for until ddps_ib_verbs_run() has something to do
 * @v:		port
 * @fds:	receives descriptors and events, for poll()
 */
DDPS_API void ddps_ib_verbs_fds(const struct ddps_ib_verbs *v,
				struct pollfd fds[DDPS_IB_VERBS_FDS]);

/**
 * ddps_ib_verbs_deadline - the next timer
 * @v:	port
 *
 * Return: when to call ddps_ib_verbs_run() at the latest, in nanoseconds, or DDPS_CM_NEVER.
 */
DDPS_API uint64_t ddps_ib_verbs_deadline(const struct ddps_ib_verbs *v);

/**
 * ddps_ib_verbs_run - serve timers, events of the adapter, messages and packets that are there
 * @v:		port
 * @now:	the time in nanoseconds
 *
 * It takes a bounded number of them.  It calls the functions of cfg.up and cfg.see.
 *
 * Return: whether there may be more: then call it again without waiting.
 */
DDPS_API bool ddps_ib_verbs_run(struct ddps_ib_verbs *v, uint64_t now);

/**
 * ddps_ib_verbs_busy - whether connections are behind
 * @v:	port
 *
 * If they are, a program that can wait a little before it sends more loses nothing.
 *
 * Return: whether more than half of the messages that one connection can have under way wait, or
 * more than half of tx_octets is taken.
 */
DDPS_API bool ddps_ib_verbs_busy(const struct ddps_ib_verbs *v);

/**
 * ddps_ib_verbs_waiting - messages on a connection that the peer has not acknowledged
 * @v:		port
 * @qpn:	queue pair of the connection
 *
 * Return: how many; 0 also if there is no such queue pair.
 */
DDPS_API unsigned ddps_ib_verbs_waiting(const struct ddps_ib_verbs *v, uint32_t qpn);

/**
 * ddps_ib_verbs_counter - read a counter
 * @v:		port
 * @i:		number of the counter, from 0 on
 * @value:	receives its value
 *
 * Examples are tx_full (datagrams and messages that found no room) and ah_full (datagrams for which
 * all address handles were in use).  A later release may add some.
 *
 * Return: its name, a constant string, or NULL: there are no more.
 */
DDPS_API const char *ddps_ib_verbs_counter(const struct ddps_ib_verbs *v, unsigned i,
					   uint64_t *value);

#ifdef __cplusplus
}
#endif
#endif
