/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef DDPS_VPORT_IN_H
#define DDPS_VPORT_IN_H
/*
 * A port of an adapter inside: the device in vport_dev.c, what it says in vport_event.c, memory in
 * vport_buf.c, ways to others in vport_way.c, MADs in vport_mad.c, datagrams in vport_ud.c, groups
 * in vport_group.c, connections in vport_qp.c, what RoCE has instead of a subnet administration in
 * vport_roce.c, and all of it together in vport.c.
 */
#include <ddpsess/ib_verbs.h>
#include "ipoib_cm/ib/sac.h"
#include "common/tab/due.h"
#include "common/tab/tab.h"
#include "ipoib_cm/verbs/verbs_lib.h"

#define VP_GRH	    40u /* before each datagram in its buffer, with or without a GRH */
#define VP_UD_LEN   (VP_GRH + 4096u)
#define VP_MSG_LEN  65536u /* no IPoIB message is longer */
#define VP_UD_RX    256
#define VP_UD_TX    128
#define VP_QP_TX    64 /* messages of one connection on their way */
#define VP_AHS	    256
#define VP_GRHS	    1024
#define VP_ANSWERS  160	   /* as many queries as the client can have out, and more */
#define VP_LID_ROCE 0xffff /* no LID */
#define VP_NONE	    UINT32_MAX
#define VP_DYING_NS 5000000000ull /* so long a queue pair may take to say that it is empty */

/* X(name, meaning) */
#define DDPS_VPORT_STATS(X)                                                                        \
	X(ud_tx, "datagrams sent")                                                                 \
	X(ud_rx, "datagrams received")                                                             \
	X(ud_rx_grh, "of these with a GRH")                                                        \
	X(ud_own, "own datagrams that a group gave back")                                          \
	X(ud_held, "datagrams that waited for their group to be joined")                           \
	X(ud_no_group, "datagrams dropped: no such group, or too many")                            \
	X(ud_failed, "datagrams that the adapter did not send")                                    \
	X(ud_rebuilt, "times the UD queue pair was set up anew")                                   \
	X(mad_tx, "MADs sent")                                                                     \
	X(mad_tx_failed, "MADs that the kernel did not take")                                      \
	X(mad_rx, "MADs received")                                                                 \
	X(mad_undelivered, "MADs that came back: no answer in time")                               \
	X(mad_bad, "MADs dropped: length, class, or nobody's")                                     \
	X(no_reports, "1: somebody else gets the reports on groups")                               \
	X(qp_tx, "messages sent on connections")                                                   \
	X(qp_rx, "messages received on connections")                                               \
	X(qp_failed, "connections that failed")                                                    \
	X(qp_undrained, "queue pairs destroyed before they said that they were empty")             \
	X(rx_bad, "completions with an error, or of nothing that is known")                        \
	X(tx_full, "datagrams and messages that found no room")                                    \
	X(events, "events of the adapter")                                                         \
	X(port_down, "times the port went down")                                                   \
	X(renewed, "times groups were joined anew")                                                \
	X(ah_made, "address handles made")                                                         \
	X(ah_full, "datagrams not sent: all address handles in use")

struct ddps_vport_stats {
#define DDPS_X(name, text) uint64_t name;
	DDPS_VPORT_STATS(DDPS_X)
#undef DDPS_X
};

/* ---- memory that the adapter reads and writes ---- */

enum vp_kind { VP_UD_IN, VP_UD_OUT, VP_MSG_IN, VP_MSG_OUT, VP_KINDS };

struct vp_buf {
	uint32_t life; /* another one each time, so that late completions find nothing */
	bool out;      /* the adapter has it */
	uint32_t next_free;
	uint32_t owner; /* of MSG_OUT: slot of the queue pair; of UD_OUT: address handle */
};

struct vp_pool {
	enum vp_kind kind;
	size_t size; /* of one */
	uint32_t n, free, n_out;
	uint8_t *mem;
	struct ibv_mr *mr;
	struct vp_buf *buf;
};

/* ---- how to reach somebody ---- */

struct vp_way {
	uint16_t dlid;
	uint8_t sl, bits, rate; /* bits: of the source path; rate 0: the port's */
	bool grh;
	uint8_t hop, tclass;
	uint32_t flow;
	uint8_t gid[DDPS_IPOIB_GID_LEN];
};

struct vp_ah {
	struct ddps_tab_link link;
	struct ibv_ah *ah; /* NULL: free */
	struct vp_way way;
	unsigned refs; /* datagrams on their way */
	uint64_t used_at;
};

/* A GRH that does not fit into a ddps_cm_addr. */
struct vp_grh {
	bool used;
	uint8_t life, hop, tclass;
	uint32_t flow;
	uint8_t gid[DDPS_IPOIB_GID_LEN];
	uint64_t used_at;
};

/* ---- connections ---- */

struct vp_qp {
	struct ddps_tab_link link;
	bool used, uc, ready, stopped;
	bool drained; /* it holds no receive any more */
	bool dying;   /* to be destroyed when it is drained, or in a while */
	int failed;
	uint32_t next_free, rx_mtu, to_qpn;
	uint16_t dlid;
	unsigned n_out;
	struct ddps_due due; /* of one that is dying */
	struct ibv_qp *qp;
};

struct vp_attached {
	bool used;
	uint8_t mgid[DDPS_IPOIB_GID_LEN];
	uint16_t mlid;
};

struct ddps_ib_verbs {
	struct ddps_ipoib_port port;
	struct ddps_verbs_lib lib;
	struct ddps_ib_verbs_config cfg;
	struct ddps_ib_verbs_info info;
	void *user;
	uint64_t now, stamp;
	struct ddps_siphash_key key;
	char why[400];

	struct ibv_context *ctx;
	struct ibv_pd *pd;
	struct ibv_comp_channel *channel;
	struct ibv_cq *rx_cq, *tx_cq;
	struct ibv_srq *srq;
	struct ibv_qp *ud;
	struct vp_pool pool[VP_KINDS];
	uint32_t ud_psn, ud_life, qkey;
	uint16_t pkey_index, sa_pkey_index;
	uint8_t sm_sl;
	bool grh_required, iwarp;
	uint32_t ifindex; /* RoCE: the network device of the GID */
	int netdev;	  /* a socket that is in its groups; -1: none */
	struct {
		unsigned first, n;
		uint8_t mad[VP_ANSWERS][DDPS_CM_MAD_LEN];
	} answers; /* to our own queries, on RoCE */

	int umad, cm_agent, sa_agent, report_agent; /* -1: not open */
	void *mad;				    /* libibumad's, for one message */

	struct ddps_sac *sac;
	struct ddps_togroup to_group;
	struct ddps_sa_mcm link; /* the broadcast group's; qkey, mtu and life of the link */
	bool has_link;
	struct vp_attached attached[DDPS_SAC_GROUPS];

	struct vp_ah ah[VP_AHS];
	struct ddps_tab ahs;
	struct vp_grh grh[VP_GRHS];

	struct vp_qp *qp;
	struct ddps_tab qps; /* by number */
	struct ddps_dues dues;
	uint32_t free_qp, n_behind; /* with more than half of the messages that one may have */
	struct ddps_vport_stats stats;
};

_Static_assert(offsetof(struct ddps_ib_verbs, port) == 0, "VPORT() relies on it");
#define VPORT(p) ((struct ddps_ib_verbs *)(p))

/* ---- vport.c ---- */
/* As ddps_ib_verbs_new(), with these functions; a @lib without a handle is not unloaded. */
int ddps_vport_new(struct ddps_ib_verbs **out, const struct ddps_ib_verbs_config *cfg,
		   const struct ddps_verbs_lib *lib, char *why, size_t why_len);
/* What ddps_ib_verbs_why() returns, printf's way. */
void ddps_vport_say(struct ddps_ib_verbs *v, const char *fmt, ...)
	__attribute__((format(printf, 2, 3)));

/* ---- vport_dev.c: each returns 0 or DDPS_E_*, after ddps_vport_say() ---- */
int ddps_vport_dev_open(struct ddps_ib_verbs *v);
void ddps_vport_dev_close(struct ddps_ib_verbs *v);
/* LID, subnet manager, state: what may have changed. */
int ddps_vport_dev_refresh(struct ddps_ib_verbs *v);
/* Its GID, now. */
int ddps_vport_dev_gid(struct ddps_ib_verbs *v);
/* Where the P_Key is in the table. */
int ddps_vport_dev_pkeys(struct ddps_ib_verbs *v);

/* ---- vport_event.c ---- */
void ddps_vport_events(struct ddps_ib_verbs *v);

/* ---- vport_buf.c ---- */
int ddps_vport_pool_new(struct ddps_ib_verbs *v, enum vp_kind kind, uint32_t n, size_t size);
void ddps_vport_pool_free(struct ddps_ib_verbs *v, struct vp_pool *p);
/* Return: VP_NONE: there is none. */
uint32_t ddps_vport_take(struct vp_pool *p);
void ddps_vport_give(struct vp_pool *p, uint32_t i);
uint64_t ddps_vport_wr_id(const struct vp_pool *p, uint32_t i);
/* Whose a completion is, and that the adapter does not have it any more.  Return: NULL: nobody's. */
struct vp_pool *ddps_vport_done(struct ddps_ib_verbs *v, uint64_t wr_id, uint32_t *i);
static inline uint8_t *ddps_vport_mem(const struct vp_pool *p, uint32_t i)
{
	return p->mem + i * p->size;
}
struct ibv_sge ddps_vport_sge(const struct vp_pool *p, uint32_t i, size_t len);

/* ---- vport_way.c ---- */
int ddps_vport_ways_new(struct ddps_ib_verbs *v);
void ddps_vport_ways_free(struct ddps_ib_verbs *v);
/* The token of a way: all of it but its GRH is in there. */
ddps_cm_addr ddps_vport_addr(struct ddps_ib_verbs *v, const struct vp_way *w, uint16_t pkey_index);
/* Return: false: the token is nobody's any more. */
bool ddps_vport_way(struct ddps_ib_verbs *v, ddps_cm_addr addr, struct vp_way *w,
		    uint16_t *pkey_index);
/* Return: index of the handle, or VP_NONE. */
uint32_t ddps_vport_ah(struct ddps_ib_verbs *v, const struct vp_way *w);
void ddps_vport_ah_attr(const struct ddps_ib_verbs *v, const struct vp_way *w,
			struct ibv_ah_attr *a);

/* ---- vport_roce.c ---- */
/* A GID of version 2 that is an IPv6 address, and its network device. */
int ddps_vport_roce_gid(struct ddps_ib_verbs *v);
/* A query that nobody else would answer; the answer comes with ddps_vport_roce_run(). */
void ddps_vport_roce_query(struct ddps_ib_verbs *v, const uint8_t query[DDPS_CM_MAD_LEN]);
void ddps_vport_roce_run(struct ddps_ib_verbs *v);
/* The network device lets packets for the group in, or no more.  Return: 0 or an errno. */
int ddps_vport_roce_group(struct ddps_ib_verbs *v, const uint8_t mgid[DDPS_IPOIB_GID_LEN],
			  bool join);
void ddps_vport_roce_free(struct ddps_ib_verbs *v);

/* ---- vport_mad.c ---- */
int ddps_vport_mad_open(struct ddps_ib_verbs *v);
void ddps_vport_mad_close(struct ddps_ib_verbs *v);
int ddps_vport_mad_send(struct ddps_ipoib_port *port, ddps_cm_addr to,
			const uint8_t mad[DDPS_CM_MAD_LEN]);
void ddps_vport_sa_send(struct ddps_ib_verbs *v, const uint8_t mad[DDPS_CM_MAD_LEN]);
/* Return: whether there may be more. */
bool ddps_vport_mad_run(struct ddps_ib_verbs *v);

/* ---- vport_ud.c ---- */
int ddps_vport_ud_new(struct ddps_ib_verbs *v);
void ddps_vport_ud_free(struct ddps_ib_verbs *v);
/* Through RESET, with the keys of now.  Return: 0 or DDPS_E_SYSTEM. */
int ddps_vport_ud_rebuild(struct ddps_ib_verbs *v);
int ddps_vport_ud_qkey(struct ddps_ib_verbs *v, uint32_t qkey);
int ddps_vport_ud_send(struct ddps_ib_verbs *v, const struct vp_way *w, const uint8_t *gid,
		       uint32_t qpn, const void *frame, size_t len);
void ddps_vport_ud_rx(struct ddps_ib_verbs *v, const struct ibv_wc *wc, uint32_t i);
void ddps_vport_ud_sent(struct ddps_ib_verbs *v, const struct ibv_wc *wc, uint32_t i);

/* ---- vport_group.c ---- */
int ddps_vport_groups_new(struct ddps_ib_verbs *v);
void ddps_vport_groups_free(struct ddps_ib_verbs *v);
int ddps_vport_join(struct ddps_ipoib_port *port, const uint8_t mgid[DDPS_IPOIB_GID_LEN]);
void ddps_vport_leave(struct ddps_ipoib_port *port, const uint8_t mgid[DDPS_IPOIB_GID_LEN]);
int ddps_vport_resolve(struct ddps_ipoib_port *port, const uint8_t gid[DDPS_IPOIB_GID_LEN]);

/* ---- vport_qp.c ---- */
int ddps_vport_qps_new(struct ddps_ib_verbs *v);
void ddps_vport_qps_free(struct ddps_ib_verbs *v);
int ddps_vport_qp_create(struct ddps_ipoib_port *port, uint8_t transport, uint32_t rx_mtu,
			 uint32_t *qpn);
int ddps_vport_qp_ready(struct ddps_ipoib_port *port, uint32_t qpn,
			const struct ddps_ipoib_qp_to *to);
int ddps_vport_qp_send(struct ddps_ipoib_port *port, uint32_t qpn, const void *frame, size_t len);
void ddps_vport_qp_stop(struct ddps_ipoib_port *port, uint32_t qpn);
void ddps_vport_qp_destroy(struct ddps_ipoib_port *port, uint32_t qpn);
void ddps_vport_qp_rx(struct ddps_ib_verbs *v, const struct ibv_wc *wc, uint32_t i);
void ddps_vport_qp_sent(struct ddps_ib_verbs *v, const struct ibv_wc *wc, uint32_t i);
void ddps_vport_qp_event(struct ddps_ib_verbs *v, uint32_t qpn, enum ibv_event_type type);
/* Destroys what is to be; not before the completions that are there have been looked at. */
void ddps_vport_qp_tick(struct ddps_ib_verbs *v);
uint64_t ddps_vport_qp_due(const struct ddps_ib_verbs *v);

#endif
