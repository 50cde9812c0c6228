/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef DDPSESS_IB_VERBS_H
#define DDPSESS_IB_VERBS_H
/*
 * A port of a real InfiniBand adapter, as <ddpsess/ipoib_port.h> wants it: UD, RC and UC queue
 * pairs by libibverbs, CM messages and queries to the subnet administration by libibumad.
 *
 * Both libraries are loaded when a port is opened, so nothing that is linked depends on them.  The
 * CM messages of an adapter's port have one owner: this works while nothing has loaded ib_cm (nor
 * what needs it: ib_ipoib, rdma_cm).  It needs to open /dev/infiniband/umad* and uverbs*, which is
 * root's as a rule, memory that may be locked, and CAP_NET_RAW for a link whose Q_Key has bit 31.
 *
 * A RoCE port has neither LIDs nor a subnet administration.  It is taken if its device is named,
 * and then nodes are found by their GIDs: the port's GID is an IPv6 address of RoCE version 2, a
 * group is the IPv6 group of its MGID, and Q_Key, MTU and the broadcast group of the link are what
 * the configuration says, the same on all nodes.  Linux has no IPoIB there, so the others are ours.
 *
 * RC and UC queue pairs share one receive queue.  An adapter that has this for RC alone refuses UC
 * queue pairs: then a node that offers unreliable connections sends datagrams.
 *
 * One thread at a time.  No function blocks but ddps_ib_verbs_new() and ddps_ib_verbs_free().
 * Times are nanoseconds of any clock that does not run backwards; what the interface asks of the
 * port is done at the time of the latest ddps_ib_verbs_run(), so call that when a wait has ended,
 * and once before the interface is started.  Part of libddpsess-ipoib.
 */
#include <ddpsess/ib_udp.h>

#ifdef __cplusplus
extern "C" {
#endif

#define DDPS_IB_VERBS_FDS    3
#define DDPS_IB_VERBS_DEVICE 64

struct ddps_ib_verbs_config {
	size_t struct_size; /* set by ddps_ib_verbs_config_init() */
	const char *device; /* NULL: the first that has an InfiniBand port */
	uint8_t port;	    /* 0: its first InfiniBand port that is active, or else its first one */
	uint8_t gid_index;  /* RoCE, 0: the first link-local address of version 2 */
	uint16_t pkey;	    /* of the link; has to be in the port's table, with or without bit 15 */
	uint8_t scope;	    /* of the link's groups */
	uint8_t reserved[3];
	uint32_t max_qps; /* 1 to 65536 */
	uint32_t seed;	  /* random: transactions, hashes */
	size_t tx_octets; /* locked memory for messages on their way: 64 KiB each, at least 4 */
	size_t rx_octets; /* locked memory for messages that come, likewise */
	const struct ddps_ipoib_up *up;
	void (*see)(void *user, const struct ddps_ib_seen *s); /* or NULL */
	void *see_user;
	/* of a link on RoCE; on InfiniBand the subnet says these, and they are 0 */
	uint32_t qkey; /* 0: 0x0b1b */
	uint8_t mtu;   /* 1 = 256 ... 5 = 4096; 0: the port's */
	uint8_t reserved2[3];
};

/* What is known of a port that is open; lid, lmc, sm_lid and active change with the subnet. */
struct ddps_ib_verbs_info {
	char device[DDPS_IB_VERBS_DEVICE];
	uint8_t gid[DDPS_IPOIB_GID_LEN];
	uint64_t node_guid;
	uint32_t qpn; /* of the UD queue pair */
	uint16_t lid, sm_lid, pkey;
	uint8_t port, lmc;
	uint8_t mtu; /* of the port: 1 = 256 ... 5 = 4096 */
	bool active;
	bool roce;	   /* no LIDs: lid and sm_lid are 0 */
	uint8_t gid_index; /* in the port's table */
	uint8_t reserved[6];
};

struct ddps_ib_verbs;

/** ddps_ib_verbs_config_init_sized - ddps_ib_verbs_config_init() for languages that cannot call it
 * @cfg: receives the defaults
 * @size: what @cfg takes in the caller's memory; nothing is written beyond */
DDPS_API void ddps_ib_verbs_config_init_sized(struct ddps_ib_verbs_config *cfg, size_t size);

/**
 * ddps_ib_verbs_config_init - defaults; seed and up have to be set
 * @cfg: receives them
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
 * @out:		set on success; the program frees it with ddps_ib_verbs_free().  Unchanged on failure
 * @cfg:		copied
 * @why, @why_len:	receives on failure what failed, and what to try
 *
 * Return: 0; DDPS_E_INVAL (also a Q_Key or MTU for an InfiniBand port); DDPS_E_UNSUPPORTED (no
 * library, or none that knows RoCE's GIDs, no such device, no InfiniBand link layer, iWARP; or a
 * member of a later release is set); DDPS_E_STATE (the port is not active, or no subnet manager has
 * set it up); DDPS_E_ADDRESS (P_Key or GID not in the port's tables); DDPS_E_BUSY (somebody else
 * has the CM messages of the port); DDPS_E_SYSTEM with errno (such as permissions); DDPS_E_NOMEM.
 */
DDPS_API int ddps_ib_verbs_new(struct ddps_ib_verbs **out, const struct ddps_ib_verbs_config *cfg,
			       char *why, size_t why_len);

/** ddps_ib_verbs_free - close it; NULL is allowed
 * @v: what ddps_ib_verbs_new() gave */
DDPS_API void ddps_ib_verbs_free(struct ddps_ib_verbs *v);

/** ddps_ib_verbs_port - what an interface needs
 * @v: the port
 * Return: what an interface needs, valid until ddps_ib_verbs_free(). */
DDPS_API struct ddps_ipoib_port *ddps_ib_verbs_port(struct ddps_ib_verbs *v);

/** ddps_ib_verbs_user - the first argument of the calls of cfg.up; to be set before the first
 * ddps_ib_verbs_run()
 * @v: the port
 * @user: first argument of those calls */
DDPS_API void ddps_ib_verbs_user(struct ddps_ib_verbs *v, void *user);

/** ddps_ib_verbs_info - device, addresses and state
 * @v: the port
 * Return: what is known of the port, valid until it is closed. */
DDPS_API const struct ddps_ib_verbs_info *ddps_ib_verbs_info(const struct ddps_ib_verbs *v);

/** ddps_ib_verbs_why - what went wrong
 * @v: the port
 * Return: one sentence on what last went wrong below, such as a join that the adapter refused; ""
 * if nothing did.  Valid until the next call. */
DDPS_API const char *ddps_ib_verbs_why(const struct ddps_ib_verbs *v);

/** ddps_ib_verbs_fds - what to wait for until ddps_ib_verbs_run() has something to do
 * @v: the port
 * @fds: receives descriptors and events */
DDPS_API void ddps_ib_verbs_fds(const struct ddps_ib_verbs *v,
				struct pollfd fds[DDPS_IB_VERBS_FDS]);

/** ddps_ib_verbs_deadline - the next timer
 * @v: the port
 * Return: when to call ddps_ib_verbs_run() at the latest, or DDPS_CM_NEVER. */
DDPS_API uint64_t ddps_ib_verbs_deadline(const struct ddps_ib_verbs *v);

/** ddps_ib_verbs_run - timers, events of the adapter, messages and packets that are there, a
 * bounded number of them
 * @v: the port
 * @now: the time
 * Return: whether there may be more: call it again without waiting. */
DDPS_API bool ddps_ib_verbs_run(struct ddps_ib_verbs *v, uint64_t now);

/** ddps_ib_verbs_busy - whether connections are behind
 * @v: the port
 * Return: whether more than half of the messages that one connection can have under way wait, or
 * more than half of tx_octets is taken.  Whoever can wait a little before sending more loses
 * nothing then. */
DDPS_API bool ddps_ib_verbs_busy(const struct ddps_ib_verbs *v);

/** ddps_ib_verbs_waiting - messages on a connection that the peer has not acknowledged
 * @v: the port
 * @qpn: its queue pair
 * Return: how many; 0 also if there is no such queue pair. */
DDPS_API unsigned ddps_ib_verbs_waiting(const struct ddps_ib_verbs *v, uint32_t qpn);

/** ddps_ib_verbs_counter - counter number @i
 * @v: the port
 * @i: from 0
 * @value: receives it
 * Such as tx_full (datagrams and messages that found no room) and ah_full (datagrams for which all
 * address handles were in use).
 * Return: its name and @value, or NULL: there are no more.  A later release may add some. */
DDPS_API const char *ddps_ib_verbs_counter(const struct ddps_ib_verbs *v, unsigned i,
					   uint64_t *value);

#ifdef __cplusplus
}
#endif
#endif
