/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What rsockets and libfabric rely on besides the interface itself; they run in run.sh and
 * libfabric.sh.
 */
#include "verbs/vd.h"
#include "verbs/vt.h"
#include <errno.h>
#include <string.h>

/* rsockets set errno, post, and look at it then. */
VT_TEST(verbs_programs, errno_stays_while_data_moves)
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
Test(verbs_programs, a_queue_for_both_ways_goes_once)
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

/* libfabric resolves with an identifier of its own channel, then moves it to another. */
Test(verbs_programs, an_identifier_moves_with_its_last_event, .timeout = 30)
{
	struct sockaddr_in to = { .sin_family = AF_INET,
				  .sin_port = htons(9),
				  .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
	struct rdma_event_channel *ch = rdma_create_event_channel();
	struct rdma_cm_id *id;

	cr_assert_eq(rdma_create_id(NULL, &id, NULL, RDMA_PS_TCP), 0);
	cr_assert_eq(rdma_resolve_addr(id, NULL, (struct sockaddr *)&to, VT_MS), 0);
	cr_assert_not_null(id->event);
	cr_assert_eq(rdma_migrate_id(id, ch), 0);
	cr_expect_null(id->event);
	cr_expect_eq(id->channel, ch);
	cr_assert_eq(rdma_resolve_route(id, VT_MS), 0);
	vt_expect(ch, RDMA_CM_EVENT_ROUTE_RESOLVED);
	cr_expect_eq(rdma_destroy_id(id), 0);
	rdma_destroy_event_channel(ch);
}

/* perftest accepts after it has filled its buffers, and its client crashes if it is informed of an end
 * of patience; run.sh has its clients ask for longer than the library's own limit. */
Test(verbs_programs, a_slow_program_has_time_to_listen_and_to_accept)
{
	static struct vd_process p;
	struct ddps_conn_param defaults, to;

	ddps_conn_param_init(&defaults);
	p.cfg.retry_ms = 15000;
	vd_conn_param(&p, NULL, &to);
	cr_expect_eq(to.refused_retry_ms, 15000);
	cr_expect_eq(to.connect_ms, 15000 + defaults.connect_ms, "it would end the tries");
	cr_expect_eq(to.setup_ms, 60000);
	p.cfg.retry_ms = UINT32_MAX - defaults.connect_ms + 1;
	vd_conn_param(&p, NULL, &to);
	cr_expect_eq(to.connect_ms, UINT32_MAX);
}
