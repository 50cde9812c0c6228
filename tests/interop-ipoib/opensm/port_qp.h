/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef OPENSM_PORT_QP_H
#define OPENSM_PORT_QP_H
/* The objects of the port: port_verbs.c makes them, port_qp.c carries their messages. */
#include "port.h"
#include <infiniband/verbs.h>
#include <pthread.h>

#define GRH	40
#define LOOK_MS 20
#define LOST_MS 600 /* a connection that gets nothing for so long has failed */
#define LONGEST 70000
#define GROUPS	64
#define MCAST	0xc000

enum kind { DATAGRAM, MESSAGE, ACK };

struct packet {
	uint8_t kind, grh;
	uint16_t slid, dlid, pkey;
	uint32_t from, to, qkey;
	uint8_t sgid[16], dgid[16];
	uint8_t data[LONGEST];
};
#define HEAD offsetof(struct packet, data)

/* A work request, or a message that waits for one. */
struct item {
	struct item *next;
	uint64_t id, at_ms;
	struct ibv_sge sge;
	size_t len;
	uint8_t data[];
};

struct list {
	struct item *first, **end;
};

struct cq {
	struct ibv_cq cq;
	struct list wc; /* data: a struct ibv_wc */
	int pipe, armed;
};

struct srq {
	struct ibv_srq srq;
	struct list recv;
};

struct qp {
	struct ibv_qp qp;
	struct qp *next;
	struct list recv, waiting, unacked;
	struct cq *send_cq, *recv_cq;
	struct srq *srq;
	enum ibv_qp_state state;
	uint16_t pkey_index, dlid;
	uint32_t qkey, dqpn;
	struct {
		uint8_t gid[16];
		uint16_t lid;
	} group[GROUPS];
	unsigned n_groups;
};

struct ah {
	struct ibv_ah ah;
	struct ibv_ah_attr attr;
};

/* With the lock. */
extern pthread_mutex_t lock;
extern struct port_state port;
extern struct qp *qps;
extern int data, events[2], notices[2]; /* of packets, of events, of completions */
extern struct ibv_context context;

void *port_serve(void *arg);
void port_gid(uint8_t gid[16]);
void port_drop_list(struct list *l);
void port_fail_qp(struct qp *q, enum ibv_wc_status why);
int port_post_send(struct ibv_qp *qp, struct ibv_send_wr *wr, struct ibv_send_wr **bad);
int port_post_recv(struct ibv_qp *qp, struct ibv_recv_wr *wr, struct ibv_recv_wr **bad);
int port_post_srq(struct ibv_srq *srq, struct ibv_recv_wr *wr, struct ibv_recv_wr **bad);
int port_poll_cq(struct ibv_cq *cq, int n, struct ibv_wc *wc);
int port_arm_cq(struct ibv_cq *cq, int solicited);

#endif
