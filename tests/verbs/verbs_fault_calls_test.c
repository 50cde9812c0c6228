/* SPDX-License-Identifier: BSD-2-Clause */
/* Every call that a rule can name fails by one: n of n. */
#include "edge/fault/vf.h"
#include "verbs/vd.h"
#include "verbs/vt_fault.h"
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* An error that none of them has by itself. */
#define WHY	       ENOTTY
#define NULLED(call)   VT_NULL_AS(call, WHY)
#define MINUS(call)    VT_MINUS_AS(call, WHY)
#define NUMBERED(call) cr_expect_eq(call, WHY, "%s", #call)

static void open_verbs_fault_calls_device(struct ibv_context **ctx)
{
	struct ibv_device **list;
	struct ibv_device_attr attr;
	struct ibv_port_attr port;
	union ibv_gid gid;

	NULLED(ibv_get_device_list(NULL));
	list = ibv_get_device_list(NULL);
	cr_assert_not_null(list);
	NULLED(ibv_open_device(list[0]));
	*ctx = ibv_open_device(list[0]);
	cr_assert_not_null(*ctx);
	NUMBERED(ibv_query_device(*ctx, &attr));
	NUMBERED(ibv_query_port(*ctx, 1, &port));
	MINUS(ibv_query_gid(*ctx, 1, 0, &gid));
	ibv_free_device_list(list);
}

static void use_verbs_fault_calls_memory(struct ibv_context *ctx, struct ibv_pd **pd)
{
	static char buf[8];
	struct ibv_mr *mr;

	NULLED(ibv_alloc_pd(ctx));
	*pd = ibv_alloc_pd(ctx);
	cr_assert_not_null(*pd);
	NULLED(ibv_reg_mr(*pd, buf, sizeof buf, 0));
	mr = ibv_reg_mr(*pd, buf, sizeof buf, 0);
	cr_assert_not_null(mr);
	errno = 0;
	cr_expect_neq(ibv_rereg_mr(mr, IBV_REREG_MR_CHANGE_ACCESS, NULL, NULL, 0, 0), 0);
	cr_expect_eq(errno, WHY);
	NUMBERED(ibv_dereg_mr(mr));
	cr_expect_eq(ibv_dereg_mr(mr), 0);
}

static void queues(struct ibv_context *ctx, struct ibv_pd *pd, struct ibv_cq **made)
{
	struct ibv_srq_init_attr init = { .attr = { 1, 1, 0 } };
	struct ibv_recv_wr wr = { .wr_id = 1 }, *bad;
	struct ibv_comp_channel *ch;
	struct ibv_srq *srq;
	struct ibv_cq *cq;
	struct ibv_wc wc;
	void *user;

	NULLED(ibv_create_comp_channel(ctx));
	ch = ibv_create_comp_channel(ctx);
	cr_assert_not_null(ch);
	NULLED(ibv_create_cq(ctx, 4, NULL, ch, 0));
	*made = ibv_create_cq(ctx, 4, NULL, NULL, 0);
	cr_assert_not_null(*made);
	NUMBERED(ibv_resize_cq(*made, 4));
	NUMBERED(ibv_req_notify_cq(*made, 0));
	MINUS(ibv_get_cq_event(ch, &cq, &user));
	cr_expect_lt(ibv_poll_cq(*made, 1, &wc), 0);
	NULLED(ibv_create_srq(pd, &init));
	srq = ibv_create_srq(pd, &init);
	cr_assert_not_null(srq);
	NUMBERED(ibv_modify_srq(srq, &init.attr, IBV_SRQ_LIMIT));
	NUMBERED(ibv_post_srq_recv(srq, &wr, &bad));
	cr_expect_eq(bad, &wr);
	cr_expect_eq(ibv_destroy_srq(srq), 0);
	cr_expect_eq(ibv_destroy_comp_channel(ch), 0);
}

static void make_verbs_fault_calls_queue_pair(struct ibv_pd *pd, struct ibv_cq *cq)
{
	struct ibv_qp_init_attr init = {
		.send_cq = cq, .recv_cq = cq, .qp_type = IBV_QPT_RC, .cap = { 1, 1, 1, 1, 0 }
	};
	struct ibv_qp_attr attr = { .qp_state = IBV_QPS_INIT };
	struct ibv_send_wr send = { .wr_id = 1 }, *bad_send;
	struct ibv_recv_wr recv = { .wr_id = 1 }, *bad_recv;
	struct ibv_qp *qp;

	NULLED(ibv_create_qp(pd, &init));
	qp = ibv_create_qp(pd, &init);
	cr_assert_not_null(qp);
	NUMBERED(ibv_modify_qp(qp, &attr, IBV_QP_STATE));
	NUMBERED(ibv_query_qp(qp, &attr, 0, &init));
	NUMBERED(ibv_post_send(qp, &send, &bad_send));
	cr_expect_eq(bad_send, &send);
	NUMBERED(ibv_post_recv(qp, &recv, &bad_recv));
	cr_expect_eq(bad_recv, &recv);
	cr_expect_eq(ibv_destroy_qp(qp), 0);
}

static void identifiers(void)
{
	struct sockaddr_in at = { .sin_family = AF_INET,
				  .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
	struct ibv_qp_init_attr init = { .qp_type = IBV_QPT_RC };
	struct sockaddr *sa = (struct sockaddr *)&at;
	struct rdma_addrinfo hints = { 0 }, *res;
	struct rdma_event_channel *ch;
	struct rdma_cm_event *event;
	struct rdma_cm_id *id, *other;

	NULLED(rdma_create_event_channel());
	ch = rdma_create_event_channel();
	cr_assert_not_null(ch);
	MINUS(rdma_create_id(ch, &id, NULL, RDMA_PS_TCP));
	cr_assert_eq(rdma_create_id(ch, &id, NULL, RDMA_PS_TCP), 0);
	MINUS(rdma_bind_addr(id, sa));
	MINUS(rdma_listen(id, 1));
	MINUS(rdma_resolve_addr(id, NULL, sa, 1000));
	MINUS(rdma_resolve_route(id, 1000));
	MINUS(rdma_create_qp(id, NULL, &init));
	MINUS(rdma_connect(id, NULL));
	MINUS(rdma_accept(id, NULL));
	MINUS(rdma_reject(id, NULL, 0));
	MINUS(rdma_establish(id));
	MINUS(rdma_disconnect(id));
	MINUS(rdma_get_request(id, &other));
	MINUS(rdma_get_cm_event(ch, &event));
	MINUS(rdma_getaddrinfo("127.0.0.1", "1", &hints, &res));
	MINUS(rdma_create_ep(&other, &hints, NULL, &init));
	cr_expect_eq(rdma_destroy_id(id), 0);
	rdma_destroy_event_channel(ch);
}

Test(verbs_fault_calls, each_of_them_fails, .timeout = 60)
{
	char *rules = calloc(VF_COMPLETION, 80);
	struct ibv_context *ctx;
	struct ibv_pd *pd;
	struct ibv_cq *cq;
	unsigned lines = 0;

	for (int i = 0; i < VF_COMPLETION; i++)
		sprintf(rules + strlen(rules), "on %s nth 1: fail ENOTTY\n",
			vf_name(VF_NAME_POINT, i));
	vf_use(rules);
	open_verbs_fault_calls_device(&ctx);
	use_verbs_fault_calls_memory(ctx, &pd);
	queues(ctx, pd, &cq);
	make_verbs_fault_calls_queue_pair(pd, cq);
	identifiers();
	for (const char *at = vf_traced(); (at = strchr(at, '\n')); at++)
		lines++;
	cr_expect_eq(lines, VF_COMPLETION, "%u of %d calls", lines, VF_COMPLETION);
	cr_expect_eq(ibv_destroy_cq(cq), 0);
	cr_expect_eq(ibv_dealloc_pd(pd), 0);
	cr_expect_eq(ibv_close_device(ctx), 0);
	free(rules);
}

/* Nothing is between the program and the data path unless there are rules. */
Test(verbs_fault_calls, without_rules_the_data_path_is_the_devices, .timeout = 60)
{
	struct vt_dev d;

	unsetenv("DDPSESS_FAULTS");
	unsetenv("DDPSESS_CHECK");
	vt_dev_open(&d);
	cr_expect_eq(d.ctx->ops.post_send, vd_post_send);
	cr_expect_eq(d.ctx->ops.post_recv, vd_post_recv);
	cr_expect_eq(d.ctx->ops.post_srq_recv, vd_post_srq_recv);
	cr_expect_eq(d.ctx->ops.poll_cq, vd_poll_cq);
	cr_expect_eq(d.ctx->ops.req_notify_cq, vd_req_notify_cq);
	vt_dev_close(&d);
}
