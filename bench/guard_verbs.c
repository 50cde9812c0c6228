/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What the drop-in adds, without noise: a fixed number of Sends of 64 octets between two queue pairs of
 * one process, for callgrind (see guard.sh).
 *
 * post: one request a call.  list: all of a burst with one call.  Both sides are polled, 16 completions
 * a call; each receive is posted the same way before.
 *
 * usage: guard_verbs verbs post|list COUNT
 */
#include <arpa/inet.h>
#include <rdma/rdma_cma.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define BURST 16u
#define SMALL 64u

#define CHECK(what)                                                                                \
	do {                                                                                       \
		if (!(what)) {                                                                     \
			perror("guard_verbs: " #what);                                             \
			exit(1);                                                                   \
		}                                                                                  \
	} while (0)

struct end {
	struct rdma_cm_id *id;
	struct ibv_cq *cq;
	struct ibv_mr *mr;
	uint8_t mem[SMALL];
};

static void expect_cm_event(struct rdma_event_channel *ch, enum rdma_cm_event_type type,
			    struct rdma_cm_id **id)
{
	struct rdma_cm_event *e;

	CHECK(!rdma_get_cm_event(ch, &e));
	CHECK(e->event == type);
	if (id)
		*id = e->id;
	CHECK(!rdma_ack_cm_event(e));
}

static void equip_guard_end(struct end *e)
{
	struct ibv_qp_init_attr attr = { .cap = { BURST, BURST, 1, 1, 0 },
					 .qp_type = IBV_QPT_RC,
					 .sq_sig_all = 1 };

	e->cq = ibv_create_cq(e->id->verbs, 4 * BURST, NULL, NULL, 0);
	CHECK(e->cq);
	attr.send_cq = attr.recv_cq = e->cq;
	CHECK(!rdma_create_qp(e->id, NULL, &attr));
	e->mr = ibv_reg_mr(e->id->pd, e->mem, sizeof e->mem, IBV_ACCESS_LOCAL_WRITE);
	CHECK(e->mr);
}

static void connect_guard_ends(struct end *a, struct end *b)
{
	struct sockaddr_in at = { .sin_family = AF_INET,
				  .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
	struct rdma_event_channel *ca = rdma_create_event_channel(),
				  *cb = rdma_create_event_channel();
	struct rdma_conn_param p = { .responder_resources = 1, .initiator_depth = 1 };
	struct rdma_cm_id *listener;

	CHECK(ca && cb && !rdma_create_id(cb, &listener, NULL, RDMA_PS_TCP));
	CHECK(!rdma_bind_addr(listener, (struct sockaddr *)&at) && !rdma_listen(listener, 1));
	at.sin_port = rdma_get_src_port(listener);
	CHECK(!rdma_create_id(ca, &a->id, NULL, RDMA_PS_TCP));
	CHECK(!rdma_resolve_addr(a->id, NULL, (struct sockaddr *)&at, 2000));
	expect_cm_event(ca, RDMA_CM_EVENT_ADDR_RESOLVED, NULL);
	CHECK(!rdma_resolve_route(a->id, 2000));
	expect_cm_event(ca, RDMA_CM_EVENT_ROUTE_RESOLVED, NULL);
	equip_guard_end(a);
	CHECK(!rdma_connect(a->id, &p));
	expect_cm_event(cb, RDMA_CM_EVENT_CONNECT_REQUEST, &b->id);
	equip_guard_end(b);
	CHECK(!rdma_accept(b->id, &p));
	expect_cm_event(ca, RDMA_CM_EVENT_ESTABLISHED, NULL);
	expect_cm_event(cb, RDMA_CM_EVENT_ESTABLISHED, NULL);
}

static void post_guard_sends(struct end *a, struct end *b, unsigned n)
{
	struct ibv_sge to = { (uintptr_t)b->mem, SMALL, b->mr->lkey },
		       from = { (uintptr_t)a->mem, SMALL, a->mr->lkey };
	struct ibv_recv_wr recv[BURST], *bad_recv;
	struct ibv_send_wr send[BURST], *bad;

	for (unsigned i = 0; i < n; i++) {
		bool last = i + 1 == n;

		recv[i] = (struct ibv_recv_wr){ .next = last ? NULL : &recv[i + 1],
						.sg_list = &to,
						.num_sge = 1 };
		send[i] = (struct ibv_send_wr){ .next = last ? NULL : &send[i + 1],
						.sg_list = &from,
						.num_sge = 1,
						.opcode = IBV_WR_SEND };
	}
	CHECK(!ibv_post_recv(b->id->qp, recv, &bad_recv));
	CHECK(!ibv_post_send(a->id->qp, send, &bad));
}

static void collect_guard_end(struct end *e)
{
	struct ibv_wc wc[BURST];

	for (unsigned got = 0; got < BURST;) {
		int n = ibv_poll_cq(e->cq, BURST, wc);

		CHECK(n >= 0);
		for (int i = 0; i < n; i++)
			CHECK(wc[i].status == IBV_WC_SUCCESS);
		got += (unsigned)n;
	}
}

int main(int argc, char **argv)
{
	const bool list = argc == 4 && !strcmp(argv[2], "list");
	const unsigned long count = argc == 4 ? strtoul(argv[3], NULL, 10) : 0;
	static struct end a, b;

	if (!count || count % BURST || (!list && strcmp(argv[2], "post"))) {
		fprintf(stderr, "usage: guard_verbs verbs post|list COUNT (times %u)\n", BURST);
		return 2;
	}
	connect_guard_ends(&a, &b);
	for (unsigned long n = 0; n < count; n += BURST) {
		for (unsigned i = 0; i < BURST; i += list ? BURST : 1)
			post_guard_sends(&a, &b, list ? BURST : 1);
		collect_guard_end(&a);
		collect_guard_end(&b);
	}
	return 0;
}
