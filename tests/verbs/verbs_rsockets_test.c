/* SPDX-License-Identifier: BSD-2-Clause */
/* What rdma-core's rsockets rely on beside the interface itself; the programs run in run.sh. */
#include "verbs/vt.h"
#include <errno.h>
#include <string.h>

/* They set errno, post, and look at it then. */
VT_TEST(verbs_rsockets, errno_stays_while_data_moves)
{
	struct ibv_wc wc;
	struct vt v;

	vt_init(&v);
	vt_up(&v);
	errno = E2BIG;
	cr_expect_eq(vt_recv(&v.b, 1, 0, 4096), 0);
	cr_expect_eq(errno, E2BIG);
	cr_expect_eq(vt_post(&v.a, 2, IBV_WR_SEND, 4096, NULL), 0);
	cr_expect_eq(errno, E2BIG);
	cr_expect_eq(ibv_req_notify_cq(v.b.cq, 0), 0);
	cr_expect_eq(errno, E2BIG);
	while (ibv_poll_cq(v.b.cq, 1, &wc) == 0)
		cr_expect_eq(errno, E2BIG);
	cr_expect_eq(errno, E2BIG);
	cr_expect_neq(vt_post(&v.a, 3, IBV_WR_DRIVER1, 1, NULL), 0);
	cr_expect_eq(errno, E2BIG, "errors are returned");
	vt_expect_wc(&v.a, 2, IBV_WC_SEND, IBV_WC_SUCCESS);
	vt_down(&v);
}

/* They give the identifier one queue and one channel for both ways. */
Test(verbs_rsockets, a_queue_for_both_ways_goes_once)
{
	struct sockaddr_in to = { .sin_family = AF_INET,
				  .sin_port = htons(9),
				  .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
	struct ibv_qp_init_attr init = { .qp_type = IBV_QPT_RC };
	struct rdma_cm_id *id;

	cr_assert_eq(rdma_create_id(NULL, &id, NULL, RDMA_PS_TCP), 0);
	cr_assert_eq(rdma_resolve_addr(id, NULL, (struct sockaddr *)&to, VT_MS), 0);
	id->recv_cq_channel = id->send_cq_channel = ibv_create_comp_channel(id->verbs);
	id->recv_cq = id->send_cq = ibv_create_cq(id->verbs, 8, id, id->recv_cq_channel, 0);
	init.send_cq = init.recv_cq = id->recv_cq;
	cr_assert_eq(rdma_create_qp(id, NULL, &init), 0);
	rdma_destroy_qp(id);
	cr_expect_null(id->recv_cq);
	cr_expect_null(id->send_cq_channel);
	cr_expect_eq(rdma_destroy_id(id), 0);
}

/* And want none of datagrams, which say so at once. */
Test(verbs_rsockets, datagrams_are_refused)
{
	struct rdma_cm_id *id;

	errno = 0;
	cr_expect_eq(rdma_create_id(NULL, &id, NULL, RDMA_PS_UDP), -1);
	cr_expect_eq(errno, EOPNOTSUPP);
}
