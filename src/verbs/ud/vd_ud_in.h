/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef DDPS_VERBS_VD_UD_IN_H
#define DDPS_VERBS_VD_UD_IN_H
/*
 * Unreliable datagrams over UDP: one datagram a message, each queue pair a socket.
 *
 *   vd_ud.c		the process's part: who reads sockets, and when
 *   vd_ud_wire.c	headers, GIDs and GRHs	vd_ud_sock.c	sockets
 *   vd_ud_qp.c		queue pairs		vd_ud_cq.c	their completions
 *   vd_ud_send.c	the way out		vd_ud_recv.c	the way in
 *   vd_ud_peer.c	how much may be on its way to a peer
 *   vd_ud_ah.c		address handles		vd_ud_mcast.c	groups
 *   vd_ud_cm.c		rdma_cm: asking a listener for the number of a queue pair
 *   vd_ud_listen.c	... and answering
 *   vd_ud_show.c	counters, and what sessctl stat shows
 *   vd_ud_why.c		why a datagram was lost, in words
 *
 * A number of a queue pair has its UDP port in the low 16 bits, so that a GID and a number are all
 * that a sender needs.  The high octet is one of 15, in turn: a datagram for a queue pair that had
 * the port before does not meet it.
 *
 * Locks, in the order in which they are taken: vd_process.lock (identifiers), vd_ud.lock (queue
 * pairs), the library's own, vd_ud_cq.lock.
 */
#include "verbs/ud/vd_ud.h"
#include "verbs/vd_why.h"
#include <sys/uio.h>

#define UD_MTU	      4096 /* octets of a message, at most: see vd_ud_qp.mtu */
#define UD_HEADER     28
#define UD_GRH	      40
#define UD_PACKET     (UD_GRH + UD_MTU + 1) /* where one is read: see ud_put_grh */
#define UD_BATCH      16
#define UD_QPN_MCAST  0xffffffu
#define UD_QPN_FIRST  0xf0u /* high octets of queue pairs: RC has those below (vd_oob.c) */
#define UD_QPN_LAST   0xfeu
#define UD_PORT_MCAST 24791
#define UD_QKEY_CM    0x1234567 /* of identifiers: RDMA_UDP_QKEY */
#define UD_QKEY_OWN   0x80000000u
#define UD_PEERS      64
#define UD_ANSWERS    64
#define UD_PD_REQ     180
#define UD_PD_REP     136

/* ---- the wire ---- */

enum ud_type { UD_DATA = 1, UD_ACK, UD_REQ, UD_REP };

#define UD_F_IMM       0x1
#define UD_F_SOLICITED 0x2
#define UD_F_ACK       0x4 /* to be acknowledged */
#define UD_F_ALL       0x7

struct ud_header {
	enum ud_type type;
	uint8_t flags;
	/* DATA, ACK */
	uint32_t dest, src, qkey;
	__be32 imm;
	uint16_t seq, ack_port;
	/* REQ, REP; src and qkey in a REP */
	uint64_t ask;
	uint8_t status, pd_len;
};

void ud_put(const struct ud_header *h, uint8_t to[UD_HEADER]);
/* Of a request or an answer with so much private data. */
size_t ud_cm_len(enum ud_type type, size_t pd_len);
/* Return: whether it is one, and as long as it says. */
bool ud_get(const uint8_t *from, size_t len, struct ud_header *h);

struct ud_addr {
	struct in6_addr ip; /* IPv4 is mapped */
	uint16_t port;	    /* host order */
	unsigned ifindex;   /* of link-local addresses and groups */
};

void ud_from_sockaddr(const struct sockaddr *sa, struct ud_addr *a);
/* The name of @a for a socket of this family; its length. */
socklen_t ud_to_sockaddr(const struct ud_addr *a, sa_family_t family, struct sockaddr_storage *ss);
bool ud_is_group(const struct in6_addr *ip);
bool ud_is_link_local(const struct in6_addr *ip);
void ud_put_grh(uint8_t to[UD_GRH], const struct in6_addr *from, const struct in6_addr *dest,
		size_t payload);

/* ---- sockets ---- */

struct ud_sock {
	int fd;
	sa_family_t family;
};

struct ud_packet {
	struct ud_addr from;
	struct in6_addr to;
	uint8_t *data;
	size_t len;
};

/* At any address of both families and a port that is chosen.  Return: 0 or errno. */
int ud_sock_open(struct vd_ud *ud, struct ud_sock *s, uint16_t *port);
/* A member of the group, at its port, which others have too. */
int ud_sock_join(struct vd_ud *ud, struct ud_sock *s, const struct ud_addr *group);
void ud_sock_close(struct vd_ud *ud, struct ud_sock *s);
/* One that is bound already. */
int ud_sock_adopt(struct ud_sock *s, int fd);
/* @from: the source, or NULL; @hops: 0 for the system's.  Return: 0 or errno. */
int ud_send(const struct ud_sock *s, const struct ud_addr *to, const struct in6_addr *from,
	    int hops, const struct iovec *iov, size_t n);
/* Into pk[].data, each with room for @room, which those too long fill.  Return: how many. */
int ud_recv(const struct ud_sock *s, struct ud_packet *pk, int max, size_t room);

/* ---- the process's part ---- */

struct ud_source {
	struct ud_sock sock;
	struct vd_ud_qp *qp; /* NULL: acknowledgements */
	bool group;
};

struct vd_ud_stats {
	uint64_t sent, sent_octets, received, received_octets;
	uint64_t no_recv, bad_qkey, malformed, unreachable, cq_full;
};

void ud_stats_add(struct vd_ud_stats *to, const struct vd_ud_stats *st);
/* Of the process and all its queue pairs; the lock is held. */
struct vd_ud_stats ud_stats_all(const struct vd_ud *ud);

struct vd_ud {
	struct vd_process *p;
	struct ddps_mutex lock;
	int epfd;	      /* queue pairs and acknowledgements */
	int cm_epfd, wake_fd; /* identifiers; the thread is to look again */
	struct ud_source acks;
	uint16_t ack_port;
	unsigned last_high; /* of numbers */
	LIST_HEAD(, vd_ud_qp) qps;
	unsigned waiting;	      /* queue pairs whose requests wait */
	uint64_t mine_until;	      /* atomic: see ud_mine */
	uint64_t polled;	      /* atomic: when an empty queue was polled last, ns */
	bool away;		      /* atomic: the thread leaves queue pairs to whoever polls */
	bool news;		      /* atomic: what queue pairs have to tell: lost, last_wqe */
	LIST_HEAD(, vd_ud_id) asking; /* under the process's lock */
	struct vd_ud_stats stats;     /* of what is no queue pair's, or one's that is gone */
	int *fds;		      /* for a fork, under vd_forks_hold */
	unsigned nfds, fds_size;
	uint8_t scratch[UD_BATCH][UD_PACKET + 3];
};

/* Made on first use; NULL: errno is set. */
struct vd_ud *ud_of_process(void);
/* vd_mine, whose answer holds for 50 us: for each post and poll. */
bool ud_mine(struct vd_ud *ud);
void ud_wake(struct vd_ud *ud);
/* What there is to do on sockets, by whoever polls a queue: the thread keeps away for a while. */
void ud_drive_polled(struct vd_ud *ud, bool alone);
/* For vd_ud_sock.c: between vd_forks_hold and _release. */
int ud_keep_fd(struct vd_ud *ud, int fd);
void ud_forget_fd(struct vd_ud *ud, int fd);
uint64_t ud_now_ns(void);
static inline uint64_t ud_now_ms(void)
{
	return ud_now_ns() / 1000000;
}

/* ---- queue pairs ---- */

/* Who is sent to, and what is on its way: vd_ud_peer.c. */
struct ud_peer {
	struct in6_addr ip;
	uint16_t port, seq, acked, asked;
	bool alive;
	uint64_t full_at, open_until; /* ms */
};

struct ud_group {
	struct ud_source source;
	struct ud_addr addr;
	LIST_ENTRY(ud_group) link;
};

/* A request that waits, its message behind it. */
struct ud_sqe {
	STAILQ_ENTRY(ud_sqe) link;
	uint64_t wr_id;
	bool signalled, group, lost;
	enum ibv_wc_status status; /* what is wrong with it */
	uint32_t vendor;
	struct ud_addr to;
	int hops;
	struct ud_header h;
	size_t len;
	uint8_t data[UD_MTU];
};

struct ud_rqe {
	uint64_t wr_id;
	uint32_t nsge;
	struct ddps_sge sge[]; /* max_recv_sge */
};

/* One that a message has, of either kind of queue. */
struct ud_taken {
	uint64_t wr_id;
	uint32_t nsge;
	struct ddps_sge sge[VD_MAX_SGE];
};

struct vd_ud_qp {
	struct vd_ud *ud;
	struct vd_qp *qp;
	struct ddps_pd *pd;
	LIST_ENTRY(vd_ud_qp) link; /* in vd_ud.qps, if: */
	bool listed;
	struct ud_source unicast;
	uint16_t port;
	LIST_HEAD(, ud_group) groups;
	unsigned ngroups;
	uint32_t qkey;
	struct vd_ud_stats stats;
	size_t mtu;    /* octets of a message: active_mtu */
	bool paused;   /* its sockets are not looked at: there is no receive */
	bool lost;     /* a completion, to be reported */
	bool last_wqe; /* it takes no more receives of its shared queue, to be reported */
	STAILQ_HEAD(, ud_sqe) sq; /* requests that wait */
	uint32_t nsq;
	uint64_t retry_at; /* ms, while requests wait */
	uint8_t *rq;	   /* a ring of struct ud_rqe */
	uint32_t rq_size, rq_head, rq_count;
	struct ud_peer *peers; /* UD_PEERS, with the first Send */
	unsigned npeers, last_peer, next_peer;
};

/* Requests that wait go out if they can; the lock is held, here and in the next ones. */
void ud_push(struct vd_ud_qp *u, uint64_t now);
void ud_readable(struct vd_ud_qp *u, struct ud_source *from);
void ud_acks_readable(struct vd_ud *ud);
/* Look at its sockets, or do not. */
void ud_watch(struct vd_ud_qp *u, bool on);
int ud_watch_new(struct vd_ud *ud, struct ud_source *s);
/* A completion for @cq of @u, which may be lost. */
void ud_complete(struct vd_ud_qp *u, struct ibv_cq *cq, struct ibv_wc *wc, bool solicited);
/* All that is posted comes back flushed. */
void ud_flush_sends(struct vd_ud_qp *u);
void ud_flush_recvs(struct vd_ud_qp *u);
void ud_drop_sends(struct vd_ud_qp *u);
void ud_set_state(struct vd_ud_qp *u, enum ibv_qp_state state);
static inline enum ibv_qp_state ud_state(const struct vd_ud_qp *u)
{
	return u->qp->qp.qp_base.state;
}

/* Who is sent to at @to; NULL: no memory. */
struct ud_peer *ud_peer_of(struct vd_ud_qp *u, const struct ud_addr *to);
/* Whether a message of @len octets may go now; else @retry_at says when to ask again. */
bool ud_peer_ready(struct ud_peer *peer, size_t len, uint64_t now, uint64_t *retry_at);
/* It goes: fill its sequence number and flag. */
void ud_peer_sent(struct ud_peer *peer, size_t len, struct ud_header *h);
void ud_peer_acked(struct vd_ud_qp *u, const struct ud_addr *from, uint16_t seq);

/* One from there was lost for this reason; of one to there @what is true: it is said, if it has not been. */
void ud_why_lost(struct vd_ud_qp *u, enum vd_why why, const struct ud_addr *from,
		 const char *reason);
void ud_why_not_there(struct vd_ud_qp *u, enum vd_why why, const struct ud_sqe *e,
		      const char *what);

void ud_group_free(struct vd_ud_qp *u, struct ud_group *g);

/* ---- completions ---- */

enum ud_armed { UD_ARMED_NO, UD_ARMED_SOLICITED, UD_ARMED_ANY };

struct ud_entry {
	struct ibv_wc wc;
	const struct vd_ud_qp *qp;
	uint64_t stamp;
};

/*
 * Completions of datagrams lie next to the library's queue, and one arming is for both.  What came
 * while nothing was armed, and an arming would have met, is kept for the next: @untold of
 * datagrams, @untold_lib of the library's.
 */
struct vd_ud_cq {
	struct ddps_mutex lock;
	struct vd_ud *ud; /* atomic: set by the first queue pair */
	unsigned users;	  /* atomic */
	uint32_t depth, size, head, count;
	enum ud_armed armed, untold, untold_lib;
	struct ud_entry *ring;
};

/* Return: 0 or ENOMEM. */
int ud_cq_use(struct vd_cq *cq, struct vd_ud *ud);
void ud_cq_unuse(struct vd_cq *cq);
/* Return: false if it is full. */
bool ud_cq_push(struct vd_cq *cq, const struct ibv_wc *wc, bool solicited,
		const struct vd_ud_qp *u);
/* What is left of @u goes. */
void ud_cq_forget(struct vd_cq *cq, const struct vd_ud_qp *u);

/* ---- address handles ---- */

struct vd_ah {
	struct ibv_ah ah;
	struct ud_addr to; /* without port */
	int hops;
	bool group;
};

/* The address of a GID; @lid: the interface's index where that is needed, 0: the device's. */
void ud_addr_of_gid(const struct ibv_context *ctx, const union ibv_gid *gid, uint16_t lid,
		    struct ud_addr *a);
void ud_ah_attr_of(const struct ud_addr *a, struct ibv_ah_attr *attr);

/* ---- identifiers; the process's lock is held ---- */

struct ud_join {
	LIST_ENTRY(ud_join) link;
	struct sockaddr_storage addr;
	union ibv_gid gid;
	uint16_t lid;
	bool attached;
};

/* An answer that was given, for a peer that asks again. */
struct ud_answer {
	struct ud_addr to;
	struct in6_addr from;
	uint64_t ask;
	size_t len;
	uint8_t data[UD_HEADER + UD_PD_REP];
};

struct ud_listener {
	unsigned backlog;
	unsigned next; /* answer to be overwritten */
	struct ud_answer answers[UD_ANSWERS];
};

struct vd_ud_id {
	struct vd_id *id;
	struct ud_sock sock; /* identifier's own, vd_id.reserved; -1: not looked at */
	struct ud_listener *listener;
	/* One that asks: */
	LIST_ENTRY(vd_ud_id) link; /* in vd_ud.asking, if: */
	bool asks;
	uint64_t retry_at, retry_ms, give_up, refused_until;
	size_t req_len;
	uint8_t req[UD_HEADER + UD_PD_REQ];
	/* One that was asked: */
	struct ud_addr peer;
	struct in6_addr local;
	uint64_t ask;
	LIST_HEAD(, ud_join) joins;
	struct ibv_sa_path_rec path;
};

/* Made on first use; NULL: ENOMEM. */
struct vd_ud_id *ud_id_of(struct vd_id *id);
/* Its socket is served from now on.  Return: 0 or errno. */
int ud_id_watch(struct vd_ud *ud, struct vd_ud_id *u);
void ud_cm_serve(struct vd_ud *ud);
/* When it is due again, ms; UINT64_MAX: never. */
uint64_t ud_cm_due(const struct vd_ud *ud);
void ud_listener_readable(struct vd_ud *ud, struct vd_ud_id *u);
/* Queue an event, or NULL for ENOMEM; the lock is held. */
int ud_event(struct vd_event *e, const struct rdma_ud_param *param);
/* On the RoCE face what came is as long as its @room, as vd_ib_pad has it. */
void ud_ib_pad(const struct vd_id *id, struct rdma_ud_param *param, unsigned room,
	       uint8_t pd[static 256]);
void ud_leave_all(struct vd_id *id);

#endif
