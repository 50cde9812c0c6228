/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef DDPS_IPOIB_IFACE_IN_H
#define DDPS_IPOIB_IFACE_IN_H
/*
 * What the files of an interface share.  All tables are fixed in size from the beginning; what is
 * done for a packet does not depend on how much is in them.
 */
#include "ipoib_cm/cm/cm_conn.h"
#include "ipoib_cm/cm/link.h"
#include "common/tab/due.h"
#include "common/tab/tab.h"
#include <sys/queue.h>

/* A node has one, with Linux two, for a short time some more: the rest are claims of one sender. */
#define DDPS_IPOIB_CONNS_PER_ADDR 16

enum nbr_state {
	NBR_FREE,
	NBR_RESOLVING,
	NBR_PATH,
	NBR_REACHABLE,
	NBR_STALE,
	NBR_DELAY,
	NBR_PROBE,
	NBR_FAILED
};

struct ddps_ipoib_ip {
	bool v6;
	uint8_t a[16]; /* IPv4: the first four, the rest zero */
};

struct ddps_ipoib_pkt {
	size_t len;
	uint8_t *data;
};

struct ddps_ipoib_queue {
	unsigned n;
	struct ddps_ipoib_pkt pkt[DDPS_IPOIB_IF_QUEUE];
};

/* A node as InfiniBand sees it: one LLA, perhaps many IP addresses [4755-2.3-6]. */
struct ddps_ipoib_node {
	bool used;
	bool held; /* packets wait for a connection */
	bool idle; /* it may be forgotten */
	struct ddps_tab_link by_lladdr, by_gid;
	struct ddps_due due;		  /* when to ask for the path again */
	LIST_HEAD(, ddps_ipoib_nbr) nbrs; /* its IP addresses */
	LIST_HEAD(, ddps_ipoib_qp) qps;	  /* its queue pairs, the newest first */
	unsigned live;			  /* of these: not stopped */
	bool settle;			  /* something about its connections has changed */
	bool unsettled; /* on the interface's list of such nodes; its slot stays taken */
	bool resolve;	/* its address may be out of date */
	bool has_path;
	LIST_ENTRY(ddps_ipoib_node) spare; /* among the free, or those that may be forgotten */
	SLIST_ENTRY(ddps_ipoib_node) on_unsettled;
	unsigned refs, path_tries;
	unsigned subnet;    /* f->subnet, when the path was asked for */
	uint64_t asked_at;  /* for the path, last */
	uint16_t elsewhere; /* where it was seen last that its path does not lead to; 0: nowhere */
	unsigned seen_asks; /* how often that was a reason to ask, MOVED_ASKS at most */
	ddps_cm_addr req_from; /* where its latest REQ came from */
	struct ddps_ipoib_path path;
	struct ddps_ipoib_lladdr lladdr; /* flags as advertised; link.remote has the usable ones */
	struct ddps_ipoib_link link;
	struct ddps_ipoib_queue hold;
};

struct ddps_ipoib_nbr {
	struct ddps_tab_link by_ip;
	struct ddps_due due; /* when the state ends */
	LIST_ENTRY(ddps_ipoib_nbr) of_node;
	TAILQ_ENTRY(ddps_ipoib_nbr) spare; /* among the free, or those that may be forgotten */
	bool old;			   /* it is among the latter */
	enum nbr_state state;
	struct ddps_ipoib_ip ip;
	unsigned tries;
	bool all;		       /* a probe asks everybody */
	bool owes;		       /* an answer, as soon as there is a path */
	struct ddps_ipoib_ip owes_for; /* the address of ours that was asked for */
	struct ddps_ipoib_node *node;  /* from PATH on */
	struct ddps_ipoib_queue queue;
};

struct ddps_ipoib_qp {
	struct ddps_tab_link by_qpn, by_id;
	struct ddps_due due; /* when to see whether it is idle */
	LIST_ENTRY(ddps_ipoib_qp) of_node;
	SLIST_ENTRY(ddps_ipoib_qp) spare; /* among the free, or those to be looked at */
	bool looked;			  /* it is among the latter */
	bool used, active, up, stopped, to_send;
	bool by_req;   /* its way is that of the REQ, not the path of the node */
	uint16_t dlid; /* where its way leads */
	uint8_t transport;
	uint32_t qpn, id, psn, mtu;
	uint64_t used_at;
	struct ddps_ipoib_node *node; /* NULL: its node has been forgotten */
};

/* A group that the host listens to. */
struct ddps_ipoib_listened {
	struct ddps_ipoib_ip ip;
	uint8_t mgid[DDPS_IPOIB_GID_LEN];
};

#define DDPS_IPOIB_IF_MORE 32 /* addresses in addition to those of the configuration */

/* The right to an address of ours: asked for, then held. */
struct ddps_ipoib_claim {
	bool held;	    /* nobody else has it: it is used */
	bool timed;	    /* there is something to do at due */
	unsigned sent;	    /* probes, or once it is held announcements */
	uint64_t due;	    /* for the next one, or for the end of the wait */
	uint64_t defend_at; /* not before */
};

/* An address of ours that another node has or wants. */
struct ddps_ipoib_dup {
	bool used;
	struct ddps_ipoib_if_conflict c;
	unsigned asked; /* since the other node was heard */
	uint64_t due;	/* to ask again whether it still has it */
};

struct ddps_ipoib_more {
	struct ddps_ipoib_ip ip;
	unsigned prefix;
	struct ddps_ipoib_claim claim;
};

struct ddps_ipoib_if {
	struct ddps_ipoib_if_config cfg;
	struct ddps_ipoib_if_calls calls;
	struct ddps_ipoib_port *port;
	struct ddps_cm *cm;
	struct ddps_cm_listening listener[2]; /* one for each form of a service ID */
	struct ddps_ipoib_links links;
	enum ddps_ipoib_if_state state;
	uint8_t broadcast[DDPS_IPOIB_GID_LEN];
	uint32_t ud_mtu;
	unsigned n_ip6; /* that were given; cfg.n_ip6: that the link is wide enough for */
	struct ddps_ipoib_more more[DDPS_IPOIB_IF_MORE];
	unsigned n_more;
	unsigned gone; /* of the configuration, taken away: bit 0: ip4, the others: ip6[] */
	struct ddps_ipoib_claim claim[1 + DDPS_IPOIB_IF_IP6_MAX]; /* likewise */
	struct ddps_ipoib_dup dup[DDPS_IPOIB_IF_CONFLICTS];
	unsigned n_young;  /* addresses that are not held */
	uint64_t own_due;  /* the earliest of claims and dup */
	uint64_t heard_at; /* until then the link was listened to */
	uint64_t now, join_at, rng;
	unsigned subnet;	 /* counts what the port says of it: older paths may be wrong */
	uint32_t from_qpn;	 /* of the datagram at hand */
	uint16_t from_lid;	 /* likewise; 0: there is none, or it is not known */
	const uint8_t *from_gid; /* likewise; NULL */
	uint64_t icmp_too_big_at,
		icmp_lost_at; /* when the allowance of ICMP answers is full again */
	size_t queued;
	unsigned n_nbr, n_node, n_qp; /* slots in use or used before */
	unsigned n_qp_used;
	struct ddps_ipoib_nbr *nbr;
	TAILQ_HEAD(, ddps_ipoib_nbr) nbr_free, nbr_old; /* may be forgotten, the oldest first */
	struct ddps_ipoib_node *node;
	LIST_HEAD(, ddps_ipoib_node) node_free, node_idle; /* without address or connection */
	SLIST_HEAD(, ddps_ipoib_node) unsettled; /* ddps_ipoib_conn_settle() sees to them */
	struct ddps_ipoib_qp *qp;
	SLIST_HEAD(, ddps_ipoib_qp)
	qp_free, qp_look; /* ddps_ipoib_qp_collect() sees to the latter */
	struct ddps_siphash_key key;
	struct ddps_tab nbr_by_ip, node_by_lladdr, node_by_gid, qp_by_qpn, qp_by_id;
	struct ddps_dues nbr_dues, node_dues, qp_dues;
	uint32_t n_group;
	struct ddps_ipoib_listened group[DDPS_IPOIB_IF_GROUPS];
	/* Found or used last, and still there; NULL: none.  Most packets are for the same again. */
	struct ddps_ipoib_nbr *nbr_last;
	struct ddps_ipoib_qp *qp_last;
	uint8_t *frame; /* one outgoing message */
	uint8_t *roomy; /* the packet that has room for the header before it; or NULL */
	size_t frame_size;
	struct ddps_ipoib_if_stats stats;
};

static inline uint64_t ddps_ipoib_min(uint64_t a, uint64_t b)
{
	return a < b ? a : b;
}

/* iface_group.c: the host listens to a group of that MGID. */
bool ddps_ipoib_listens(const struct ddps_ipoib_if *f, const uint8_t *mgid);

/* iface_own.c */
/* Whether there is an address of that version, and the link carries it. */
bool ddps_ipoib_serves(const struct ddps_ipoib_if *f, bool v6);
bool ddps_ipoib_is_own(const struct ddps_ipoib_if *f, bool v6, const uint8_t *ip);
/* It is an own one, and nobody else has it. */
bool ddps_ipoib_is_held(struct ddps_ipoib_if *f, bool v6, const uint8_t *ip);
/* The address with which to ask for @ip: of its scope, else some other; all zero: none is held. */
const uint8_t *ddps_ipoib_own_for(const struct ddps_ipoib_if *f, bool v6, const uint8_t *ip);
/* The right to an address that is_own(). */
struct ddps_ipoib_claim *ddps_ipoib_own_claim(struct ddps_ipoib_if *f, bool v6, const uint8_t *ip);
/* The link's datagrams hold @ud_mtu, and @n_ip6 addresses of the configuration are served. */
void ddps_ipoib_own_fit(struct ddps_ipoib_if *f, uint32_t ud_mtu, unsigned n_ip6);
/* Everybody hears who has it. */
void ddps_ipoib_own_announce(struct ddps_ipoib_if *f, bool v6, const uint8_t *ip);
/* Claim @i of an address that there is, with that address; NULL: none.  Of DDPS_IPOIB_CLAIMS. */
#define DDPS_IPOIB_CLAIMS (1 + DDPS_IPOIB_IF_IP6_MAX + DDPS_IPOIB_IF_MORE)
struct ddps_ipoib_claim *ddps_ipoib_own_at(struct ddps_ipoib_if *f, unsigned i, bool *v6,
					   const uint8_t **ip);

/* iface_dup.c */
/* It is asked whether another node has it already; if none has, it is held and announced. */
void ddps_ipoib_own_probe(struct ddps_ipoib_if *f, bool v6, const uint8_t *ip);
/* The link is there: what was not held is asked for, what was is announced or asked for anew. */
void ddps_ipoib_own_begin_claims(struct ddps_ipoib_if *f);
/* Claims have come or gone. */
void ddps_ipoib_own_weigh(struct ddps_ipoib_if *f);
void ddps_ipoib_own_tick(struct ddps_ipoib_if *f);
/* Node @other has said that it has, or asked whether it can have (@wants), address @ip.  Return: whether
 * that is an address of ours, and not its own. */
bool ddps_ipoib_dup_in(struct ddps_ipoib_if *f, bool v6, const uint8_t *ip,
		       const struct ddps_ipoib_lladdr *other, bool wants);
/* Groups are joined and addresses announced; groups are left. */
void ddps_ipoib_own_begin(struct ddps_ipoib_if *f);
void ddps_ipoib_own_end(struct ddps_ipoib_if *f);

/* iface.c */
int ddps_ipoib_queue_put(struct ddps_ipoib_if *f, struct ddps_ipoib_queue *q, const void *packet,
			 size_t len);
void ddps_ipoib_queue_drop(struct ddps_ipoib_if *f, struct ddps_ipoib_queue *q, uint64_t *count);

/* Whether it is the broadcast group, or one that every host is in. */
bool ddps_ipoib_is_own_group(const struct ddps_ipoib_if *f, const uint8_t *mgid);

/* iface_group.c */
/* A packet of the stack above, a whole one, may report groups: IGMP, or MLD, which has a router alert before it. */
static inline bool ddps_ipoib_may_report(const uint8_t *packet)
{
	return packet[0] >> 4 == 4 ? packet[9] == 2 /* IGMP */ : packet[6] == 0 /* hop by hop */;
}
void ddps_ipoib_group_report(struct ddps_ipoib_if *f, const uint8_t *packet, size_t len);
/* All that the host listens to are joined or left. */
void ddps_ipoib_groups(struct ddps_ipoib_if *f, bool join);

/* iface_tx.c */
/* @q is emptied: each packet takes the way that is right now. */
void ddps_ipoib_tx_queue(struct ddps_ipoib_if *f, struct ddps_ipoib_node *n,
			 struct ddps_ipoib_queue *q);
/* One packet as datagram to a node or (n NULL) group. */
int ddps_ipoib_tx_ud(struct ddps_ipoib_if *f, const struct ddps_ipoib_node *n,
		     const uint8_t mgid[DDPS_IPOIB_GID_LEN], uint16_t type, const void *packet,
		     size_t len);
uint32_t ddps_ipoib_tx_mtu(const struct ddps_ipoib_if *f, const struct ddps_ipoib_node *n,
			   struct ddps_ipoib_qp **qp);

/* iface_nbr.c */
struct ddps_ipoib_nbr *ddps_ipoib_nbr_find(struct ddps_ipoib_if *f, const struct ddps_ipoib_ip *ip);
/* The same for the address in a packet; mostly it is the one found last. */
struct ddps_ipoib_nbr *ddps_ipoib_nbr_at(struct ddps_ipoib_if *f, bool v6, const uint8_t *ip);
/* Where a packet for @dst goes.  Return: NULL: it waits for the neighbour, or is lost. */
struct ddps_ipoib_node *ddps_ipoib_nbr_way(struct ddps_ipoib_if *f, bool v6, const uint8_t *dst,
					   const void *packet, size_t len);
/* The neighbour, who is asked for if nothing is known of it.  Return: NULL: there is no room. */
struct ddps_ipoib_nbr *ddps_ipoib_nbr_ask(struct ddps_ipoib_if *f, const struct ddps_ipoib_ip *ip);
/* It has asked for @own: the answer goes out now, or when there is a path [4755-3.1-11]. */
void ddps_ipoib_nbr_owe(struct ddps_ipoib_if *f, struct ddps_ipoib_nbr *b, const uint8_t *own);
/* @ip has @lladdr.  @create: keep it even if nobody has asked. Return: it, or NULL. */
struct ddps_ipoib_nbr *ddps_ipoib_nbr_learn(struct ddps_ipoib_if *f, const struct ddps_ipoib_ip *ip,
					    const struct ddps_ipoib_lladdr *lladdr, bool create);
/* An advertisement for @ip came with @a, or (NULL) without an address. */
void ddps_ipoib_nbr_told(struct ddps_ipoib_if *f, const struct ddps_ipoib_ip *ip,
			 const struct ddps_ipoib_lladdr *a, bool solicited, bool override);
/* There is a path to @n, or (none) there is not. */
void ddps_ipoib_nbr_path(struct ddps_ipoib_if *f, struct ddps_ipoib_node *n);
void ddps_ipoib_nbr_reresolve(struct ddps_ipoib_if *f, const struct ddps_ipoib_node *n);
void ddps_ipoib_nbr_tick(struct ddps_ipoib_if *f);
uint64_t ddps_ipoib_nbr_deadline(const struct ddps_ipoib_if *f);
void ddps_ipoib_nbr_clear(struct ddps_ipoib_if *f);

/* iface_arp.c, iface_nd.c: @n NULL = to the group */
/* @own: the address of ours that is reported; 0.0.0.0: none */
void ddps_ipoib_arp_send(struct ddps_ipoib_if *f, uint16_t op, const uint8_t own[4],
			 const uint8_t target[4], const struct ddps_ipoib_node *n);
void ddps_ipoib_arp_in(struct ddps_ipoib_if *f, const void *packet, size_t len);
void ddps_ipoib_ns_send(struct ddps_ipoib_if *f, const uint8_t target[16],
			const struct ddps_ipoib_node *n);
/* Whether somebody has @own already. */
void ddps_ipoib_dad_send(struct ddps_ipoib_if *f, const uint8_t own[16]);
/* @to NULL: unsolicited, to all nodes */
void ddps_ipoib_na_send(struct ddps_ipoib_if *f, const uint8_t own[16], const uint8_t *to,
			const struct ddps_ipoib_node *n);
/* Return: whether the packet was one of neighbour discovery, hence dealt with. */
bool ddps_ipoib_nd_in(struct ddps_ipoib_if *f, const uint8_t *packet, size_t len);
/* Whether a neighbour can have this address. */
bool ddps_ipoib_lladdr_ok(const struct ddps_ipoib_if *f, const struct ddps_ipoib_lladdr *a);

/* iface_qp.c */
/* A number at random, by the seed. */
uint32_t ddps_ipoib_draw(struct ddps_ipoib_if *f);
/* A queue pair for @n, its number not used again before CM has forgotten it */
int ddps_ipoib_qp_make(struct ddps_ipoib_if *f, struct ddps_ipoib_node *n, uint8_t transport,
		       struct ddps_ipoib_qp **out);
/* @priv: the peer's private data. */
int ddps_ipoib_qp_ready(struct ddps_ipoib_if *f, struct ddps_ipoib_qp *qp, uint32_t qpn,
			uint32_t starting_psn, const uint8_t *priv);
void ddps_ipoib_qp_stop(struct ddps_ipoib_if *f, struct ddps_ipoib_qp *qp);
void ddps_ipoib_qp_free(struct ddps_ipoib_if *f, struct ddps_ipoib_qp *qp);
/* Frees those that are stopped and forgotten. */
void ddps_ipoib_qp_collect(struct ddps_ipoib_if *f);
struct ddps_ipoib_qp *ddps_ipoib_conn_by_qpn(struct ddps_ipoib_if *f, uint32_t qpn);
struct ddps_ipoib_qp *ddps_ipoib_conn_by_id(const struct ddps_ipoib_if *f, uint32_t id);
/* The connection of @qp is known. */
void ddps_ipoib_qp_name(struct ddps_ipoib_if *f, struct ddps_ipoib_qp *qp, uint32_t id);
/* It has no node any more. */
void ddps_ipoib_qp_orphan(struct ddps_ipoib_qp *qp);
/* A frame has gone or come, or it has come up. */
void ddps_ipoib_qp_is_used(struct ddps_ipoib_if *f, struct ddps_ipoib_qp *qp);
/* The agent has forgotten connection @id. */
void ddps_ipoib_qp_gone(void *user, uint32_t id);

/* iface_node.c */
struct ddps_ipoib_node *ddps_ipoib_node_get(struct ddps_ipoib_if *f,
					    const struct ddps_ipoib_lladdr *lladdr);
void ddps_ipoib_node_flags(struct ddps_ipoib_if *f, struct ddps_ipoib_node *n, uint8_t flags);
void ddps_ipoib_node_put(struct ddps_ipoib_if *f, struct ddps_ipoib_node *n);
void ddps_ipoib_node_ask_path(struct ddps_ipoib_if *f, struct ddps_ipoib_node *n);
/* Its path may be another now: asked for again, once in retry_ns; until then the old one serves. */
void ddps_ipoib_node_doubt(struct ddps_ipoib_if *f, struct ddps_ipoib_node *n);
/* Something of it has come from @lid. */
void ddps_ipoib_node_seen_at(struct ddps_ipoib_if *f, struct ddps_ipoib_node *n, uint16_t lid);
/* The datagram at hand is of @n, if its queue pair says so. */
void ddps_ipoib_node_seen(struct ddps_ipoib_if *f, struct ddps_ipoib_node *n);
void ddps_ipoib_node_clear(struct ddps_ipoib_if *f);
/* Its references or connections have changed. */
void ddps_ipoib_node_weigh(struct ddps_ipoib_if *f, struct ddps_ipoib_node *n);
/* It is no longer unsettled. */
void ddps_ipoib_node_settled(struct ddps_ipoib_if *f, struct ddps_ipoib_node *n);
void ddps_ipoib_node_path(struct ddps_ipoib_if *f, const uint8_t gid[DDPS_IPOIB_GID_LEN],
			  const struct ddps_ipoib_path *path);
void ddps_ipoib_node_tick(struct ddps_ipoib_if *f);
uint64_t ddps_ipoib_node_deadline(const struct ddps_ipoib_if *f);

/* iface_conn.c */
extern const struct ddps_ipoib_link_ops ddps_ipoib_conn_ops;
/* There is a packet for a node that no connection serves: one is asked for, if both have a mode. */
void ddps_ipoib_conn_traffic(struct ddps_ipoib_if *f, struct ddps_ipoib_node *n);
void ddps_ipoib_conn_settle_all(struct ddps_ipoib_if *f);
/* The last act of each way into the interface: what changed connections bring with them. */
static inline void ddps_ipoib_conn_settle(struct ddps_ipoib_if *f)
{
	if (!SLIST_EMPTY(&f->unsettled))
		ddps_ipoib_conn_settle_all(f);
}
/* Connection of @qp is useless now. */
void ddps_ipoib_conn_broken(struct ddps_ipoib_if *f, struct ddps_ipoib_qp *qp);
void ddps_ipoib_conn_mad(void *user, ddps_cm_addr from, const void *mad, size_t len, uint64_t now);
void ddps_ipoib_conn_error(void *user, uint32_t qpn, int err, uint64_t now);
/* The path to @n is another: those that do not go there end. */
void ddps_ipoib_conn_moved(struct ddps_ipoib_if *f, struct ddps_ipoib_node *n);
void ddps_ipoib_conn_tick(struct ddps_ipoib_if *f);
uint64_t ddps_ipoib_conn_deadline(const struct ddps_ipoib_if *f);

/* iface_rx.c */
void ddps_ipoib_rx_ud(void *user, const struct ddps_ipoib_ud_from *from, const void *frame,
		      size_t len, uint64_t now);
void ddps_ipoib_rx_qp(void *user, uint32_t qpn, const void *frame, size_t len, uint64_t now);
/* Return: whether it is one whole IP packet. */
bool ddps_ipoib_ip_ok(const uint8_t *packet, size_t len);

/* iface_icmp.c: "fragmentation needed" or "packet too big" to the stack above */
void ddps_ipoib_too_big(struct ddps_ipoib_if *f, const uint8_t *packet, size_t len, uint32_t mtu);
/* "host unreachable", or "address unreachable" */
void ddps_ipoib_unreachable(struct ddps_ipoib_if *f, const uint8_t *packet, size_t len);
uint16_t ddps_ipoib_cksum(const void *data, size_t len, uint32_t sum);
uint16_t ddps_ipoib_cksum6(const uint8_t *packet, size_t len);

/* ip_frag.c */
typedef void ddps_ipoib_frag_fn(void *arg, const void *packet, size_t len);
/*
 * Splits an IPv4 packet (RFC 791); @packet is a whole one.  Return: the number of fragments,
 * or DDPS_E_INVAL: @mtu leaves no room for eight octets.
 */
int ddps_ipoib_frag4(const uint8_t *packet, size_t len, uint32_t mtu, ddps_ipoib_frag_fn *emit,
		     void *arg);

#ifdef DDPS_ASSERTS
/* At the end of each way into the interface: lists, tables, timers and counts agree. */
void ddps_ipoib_check(struct ddps_ipoib_if *f);
#else
static inline void ddps_ipoib_check(struct ddps_ipoib_if *f)
{
	(void)f;
}
#endif

/* The caller's, as one of this release with its defaults.  Return: 0, or why it cannot be. */
int ddps_ipoib_if_config_take(struct ddps_ipoib_if_config *to,
			      const struct ddps_ipoib_if_config *cfg);

#endif
