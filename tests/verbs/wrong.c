/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A program with one mistake, by its name, for sessctl run --check; "right" has none.  Both ends of a
 * connection are in it.
 */
#include <arpa/inet.h>
#include <infiniband/verbs.h>
#include <rdma/rdma_cma.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#define LEN 4096

struct end {
	struct rdma_event_channel *ch;
	struct rdma_cm_id *id;
	struct ibv_cq *cq;
	struct ibv_mr *mr;
	uint8_t buf[LEN];
};

static struct rdma_cm_id *listener;
static struct end a, b;

static void must_wrong(int ok, const char *what)
{
	if (ok)
		return;
	perror(what);
	exit(1);
}
#define MUST(ok) must_wrong(!!(ok), #ok)

static struct rdma_cm_event *take_wrong_event(struct end *e, enum rdma_cm_event_type type)
{
	struct rdma_cm_event *ev;

	MUST(!rdma_get_cm_event(e->ch, &ev));
	MUST(ev->event == type);
	return ev;
}

static void expect_wrong(struct end *e, enum rdma_cm_event_type type)
{
	rdma_ack_cm_event(take_wrong_event(e, type));
}

static void equip_wrong(struct end *e, const char *mistake)
{
	struct ibv_qp_init_attr init = { .qp_type = IBV_QPT_RC, .cap = { 8, 8, 2, 2, 64 } };

	if (!strcmp(mistake, "inline-size"))
		init.cap.max_inline_data = 400;
	if (!strcmp(mistake, "sge-count"))
		init.cap.max_send_sge = 12;
	e->cq = ibv_create_cq(e->id->verbs, 32, NULL, NULL, 0);
	MUST(e->cq);
	init.send_cq = init.recv_cq = e->cq;
	MUST(!rdma_create_qp(e->id, NULL, &init));
	e->mr = ibv_reg_mr(e->id->pd, e->buf, LEN, IBV_ACCESS_LOCAL_WRITE);
	MUST(e->mr);
}

static void open_wrong_pair(const char *mistake)
{
	struct sockaddr_in at = { .sin_family = AF_INET,
				  .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
	struct rdma_conn_param conn = { .responder_resources = 1, .initiator_depth = 1 };
	struct rdma_cm_event *ev;

	a.ch = rdma_create_event_channel();
	b.ch = rdma_create_event_channel();
	MUST(a.ch && b.ch);
	MUST(!rdma_create_id(b.ch, &listener, NULL, RDMA_PS_TCP));
	MUST(!rdma_bind_addr(listener, (struct sockaddr *)&at));
	MUST(!rdma_listen(listener, 1));
	at.sin_port = rdma_get_src_port(listener);
	MUST(!rdma_create_id(a.ch, &a.id, NULL, RDMA_PS_TCP));
	MUST(!rdma_resolve_addr(a.id, NULL, (struct sockaddr *)&at, 2000));
	expect_wrong(&a, RDMA_CM_EVENT_ADDR_RESOLVED);
	MUST(!rdma_resolve_route(a.id, 2000));
	expect_wrong(&a, RDMA_CM_EVENT_ROUTE_RESOLVED);
	equip_wrong(&a, mistake);
	MUST(!rdma_connect(a.id, &conn));
	ev = take_wrong_event(&b, RDMA_CM_EVENT_CONNECT_REQUEST);
	b.id = ev->id;
	rdma_ack_cm_event(ev);
	equip_wrong(&b, mistake);
	MUST(!rdma_accept(b.id, &conn));
	expect_wrong(&a, RDMA_CM_EVENT_ESTABLISHED);
	expect_wrong(&b, RDMA_CM_EVENT_ESTABLISHED);
}

static void post_wrong_recv(struct end *e, uint32_t len)
{
	struct ibv_sge sge = { (uintptr_t)e->buf, len, e->mr->lkey };
	struct ibv_recv_wr wr = { .wr_id = 2, .sg_list = &sge, .num_sge = 1 }, *bad;

	MUST(!ibv_post_recv(e->id->qp, &wr, &bad));
}

static void post_wrong_send(struct end *e, uint32_t lkey)
{
	struct ibv_sge sge = { (uintptr_t)e->buf, 100, lkey };
	struct ibv_send_wr wr = { .wr_id = 1,
				  .opcode = IBV_WR_SEND,
				  .sg_list = &sge,
				  .num_sge = 1,
				  .send_flags = IBV_SEND_SIGNALED },
			   *bad;

	MUST(!ibv_post_send(e->id->qp, &wr, &bad));
}

static enum ibv_wc_status take_wrong_completion(struct end *e)
{
	struct ibv_wc wc;

	while (!ibv_poll_cq(e->cq, 1, &wc))
		;
	return wc.status;
}

/* For what there is no event of: the Send has come, and no receive is there. */
static void poll_a_while(struct end *e)
{
	struct timespec now, until;
	struct ibv_wc wc;

	clock_gettime(CLOCK_MONOTONIC, &until);
	until.tv_sec++;
	do {
		MUST(ibv_poll_cq(e->cq, 1, &wc) == 0);
		clock_gettime(CLOCK_MONOTONIC, &now);
	} while (now.tv_sec < until.tv_sec || now.tv_nsec < until.tv_nsec);
}

/* To INIT without the attributes that InfiniBand wants there. */
static void own_way(const struct end *e)
{
	struct ibv_qp_init_attr init = {
		.send_cq = e->cq, .recv_cq = e->cq, .qp_type = IBV_QPT_RC, .cap = { 1, 1, 1, 1, 0 }
	};
	struct ibv_qp_attr attr = { .qp_state = IBV_QPS_INIT, .port_num = 1 };
	struct ibv_qp *qp = ibv_create_qp(e->id->pd, &init);

	MUST(qp);
	MUST(!ibv_modify_qp(qp, &attr, IBV_QP_STATE | IBV_QP_PORT));
	MUST(!ibv_destroy_qp(qp));
}

/* One more than there are places, without a completion; what the device refuses is tried again. */
static void fill_wrong_queue(void)
{
	struct ibv_send_wr wr = { .opcode = IBV_WR_RDMA_WRITE }, *bad;
	struct ibv_wc wc;

	wr.wr.rdma.remote_addr = (uintptr_t)b.buf;
	wr.wr.rdma.rkey = b.mr->rkey;
	for (int i = 0; i < 9; i++)
		while (ibv_post_send(a.id->qp, &wr, &bad))
			MUST(!ibv_poll_cq(a.cq, 1, &wc));
}

/* The peer has no region of that key: it ends the connection. */
static void write_wrong_key(void)
{
	struct ibv_sge sge = { (uintptr_t)a.buf, 1, a.mr->lkey };
	struct ibv_send_wr wr = { .opcode = IBV_WR_RDMA_WRITE,
				  .sg_list = &sge,
				  .num_sge = 1,
				  .send_flags = IBV_SEND_SIGNALED },
			   *bad;

	wr.wr.rdma.remote_addr = (uintptr_t)b.buf;
	wr.wr.rdma.rkey = b.mr->rkey ^ 0x5a5a00;
	MUST(!ibv_post_send(a.id->qp, &wr, &bad));
	expect_wrong(&a, RDMA_CM_EVENT_DISCONNECTED);
	expect_wrong(&b, RDMA_CM_EVENT_DISCONNECTED);
}

static void use_gone_region(struct end *e)
{
	struct ibv_mr *mr = ibv_reg_mr(e->id->pd, e->buf, LEN, IBV_ACCESS_LOCAL_WRITE);
	uint32_t lkey;

	MUST(mr);
	lkey = mr->lkey;
	MUST(!ibv_dereg_mr(mr));
	post_wrong_send(e, lkey);
	MUST(take_wrong_completion(e) == IBV_WC_LOC_PROT_ERR);
}

static void make_mistake(const char *name)
{
	if (!strcmp(name, "late-recv")) {
		post_wrong_send(&a, a.mr->lkey);
		poll_a_while(&b);
		post_wrong_recv(&b, LEN);
	} else {
		post_wrong_recv(&b, LEN);
		post_wrong_send(&a, a.mr->lkey);
	}
	if (!strcmp(name, "qp-state"))
		own_way(&a);
	if (!strcmp(name, "send-changed"))
		a.buf[50]++;
	if (!strcmp(name, "recv-changed"))
		b.buf[LEN - 1]++;
	MUST(take_wrong_completion(&b) == IBV_WC_SUCCESS);
	if (strcmp(name, "never-polled"))
		MUST(take_wrong_completion(&a) == IBV_WC_SUCCESS);
	if (!strcmp(name, "post-after-error")) {
		post_wrong_send(&a, a.mr->lkey ^ 0x5a5a00);
		MUST(take_wrong_completion(&a) != IBV_WC_SUCCESS);
		post_wrong_send(&a, a.mr->lkey);
	}
	if (!strcmp(name, "short-recv")) {
		post_wrong_recv(&b, 99);
		post_wrong_send(&a, a.mr->lkey);
		MUST(take_wrong_completion(&b) == IBV_WC_LOC_LEN_ERR);
	}
	if (!strcmp(name, "dereg-used"))
		use_gone_region(&a);
	if (!strcmp(name, "wrong-rkey"))
		write_wrong_key();
	if (!strcmp(name, "queue-full"))
		fill_wrong_queue();
	if (!strcmp(name, "dereg-pending")) {
		post_wrong_recv(&b, LEN);
		ibv_dereg_mr(b.mr);
		b.mr = NULL;
	}
}

static void end_down(struct end *e, int leak)
{
	if (leak)
		return;
	rdma_destroy_qp(e->id);
	if (e->mr)
		MUST(!ibv_dereg_mr(e->mr));
	MUST(!ibv_destroy_cq(e->cq));
	MUST(!rdma_destroy_id(e->id));
	rdma_destroy_event_channel(e->ch);
}

int main(int argc, char **argv)
{
	MUST(argc == 2);
	open_wrong_pair(argv[1]);
	make_mistake(argv[1]);
	end_down(&a, !strcmp(argv[1], "leak"));
	MUST(!rdma_destroy_id(listener));
	end_down(&b, 0);
	return 0;
}
