/* SPDX-License-Identifier: BSD-2-Clause */
/* Wrong arguments and states of calls of librdmacm, and what they leave. */
#include "support/ip4.h"
#include "verbs/vd.h"
#include "verbs/vfail.h"
#include "verbs/vt.h"
#include <arpa/inet.h>
#include <errno.h>
#include <net/if.h>
#include <netdb.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

static struct rdma_cm_id *new_verbs_cm_limits_id(struct rdma_event_channel *ch,
						 enum rdma_port_space ps)
{
	struct rdma_cm_id *id;

	cr_assert_eq(rdma_create_id(ch, &id, NULL, ps), 0);
	return id;
}

static void resolve_verbs_cm_limits(struct rdma_cm_id *id, struct sockaddr *to)
{
	cr_assert_eq(rdma_resolve_addr(id, NULL, to, 1000), 0, "%m");
	cr_assert_eq(rdma_resolve_route(id, 1000), 0, "%m");
}

/* ---- addresses ---- */

Test(verbs_cm_limits, getaddrinfo)
{
	struct sockaddr_in a4 = get_loopback(7), other = get_loopback(8);
	struct rdma_addrinfo hints = { .ai_qp_type = IBV_QPT_UD }, *ai = NULL;

	VT_MINUS_AS(rdma_getaddrinfo(NULL, NULL, NULL, &ai), EINVAL);
	cr_assert_eq(rdma_getaddrinfo("127.0.0.1", "7", NULL, &ai), 0);
	cr_expect_eq(ai->ai_port_space, RDMA_PS_TCP);
	cr_expect_eq(ai->ai_qp_type, IBV_QPT_RC);
	cr_expect_eq(ai->ai_flags, 0);
	cr_expect_eq(ai->ai_dst_len, sizeof a4);
	cr_expect_eq(((struct sockaddr_in *)ai->ai_dst_addr)->sin_port, htons(7));
	cr_expect_null(ai->ai_src_addr);
	rdma_freeaddrinfo(ai);
	/* The type says the port space, and what is asked for beats what hints say. */
	hints.ai_dst_addr = hints.ai_src_addr = (struct sockaddr *)&other;
	hints.ai_dst_len = hints.ai_src_len = sizeof other;
	cr_assert_eq(rdma_getaddrinfo("127.0.0.1", "7", &hints, &ai), 0);
	cr_expect_eq(ai->ai_port_space, RDMA_PS_UDP);
	cr_expect_eq(((struct sockaddr_in *)ai->ai_dst_addr)->sin_port, htons(7));
	cr_expect_eq(((struct sockaddr_in *)ai->ai_src_addr)->sin_port, htons(8));
	rdma_freeaddrinfo(ai);
	cr_assert_eq(rdma_getaddrinfo(NULL, NULL, &hints, &ai), 0);
	cr_expect_eq(((struct sockaddr_in *)ai->ai_dst_addr)->sin_port, htons(8));
	rdma_freeaddrinfo(ai);
	ai = NULL;
	hints.ai_flags = RAI_NUMERICHOST;
	cr_expect_eq(rdma_getaddrinfo("not.a.number", "7", &hints, &ai), EAI_NONAME);
	cr_expect_null(ai);
	for (unsigned n = 1; n <= 4; n++) {
		int err;

		vfail_nth(VFAIL_MEMORY, n);
		err = rdma_getaddrinfo("127.0.0.1", "7", n == 4 ? NULL : &hints, &ai);
		if (n == 4)
			cr_expect_eq(err, 0);
		else
			cr_expect(n == 1 ? err == -1 : err == EAI_MEMORY, "%u: %d", n, err);
		if (!vfail_came())
			rdma_freeaddrinfo(ai);
	}
}

Test(verbs_cm_limits, binding)
{
	struct rdma_cm_id *id = new_verbs_cm_limits_id(NULL, RDMA_PS_TCP);
	struct sockaddr_in a4 = get_loopback(0), foreign = get_loopback(0);
	struct sockaddr local = { .sa_family = AF_UNIX };
	uint8_t tos = 1, timeout = 31;
	int one = 1;

	foreign.sin_addr.s_addr = inet_addr("192.0.2.1");
	VT_MINUS_AS(rdma_bind_addr(id, NULL), EINVAL);
	VT_MINUS_AS(rdma_bind_addr(id, &local), EAFNOSUPPORT);
	VT_MINUS_AS(rdma_bind_addr(id, (struct sockaddr *)&foreign), EADDRNOTAVAIL);
	VT_MINUS_AS(rdma_set_option(id, RDMA_OPTION_ID, RDMA_OPTION_ID_TOS, NULL, 1), EINVAL);
	VT_MINUS_AS(rdma_set_option(id, RDMA_OPTION_ID, RDMA_OPTION_ID_TOS, &tos, 2), EINVAL);
	cr_expect_eq(rdma_set_option(id, RDMA_OPTION_ID, RDMA_OPTION_ID_TOS, &tos, 1), 0);
	VT_MINUS_AS(rdma_set_option(id, RDMA_OPTION_ID, RDMA_OPTION_ID_ACK_TIMEOUT, NULL, 1),
		    EINVAL);
	timeout = 32;
	VT_MINUS_AS(rdma_set_option(id, RDMA_OPTION_ID, RDMA_OPTION_ID_ACK_TIMEOUT, &timeout, 1),
		    EINVAL);
	VT_MINUS_AS(rdma_set_option(id, RDMA_OPTION_IB, RDMA_OPTION_IB_PATH, &one, 4), EOPNOTSUPP);
	VT_MINUS_AS(rdma_set_option(id, 77, 0, &one, 4), ENOSYS);
	cr_expect_eq(rdma_bind_addr(id, (struct sockaddr *)&a4), 0);
	VT_MINUS_AS(rdma_bind_addr(id, (struct sockaddr *)&a4), EINVAL);
	cr_expect_eq(rdma_destroy_id(id), 0);
}

/* The time that is said after the queue pair was made holds for it, too. */
Test(verbs_cm_limits, acknowledgement_time)
{
	struct rdma_cm_id *id = new_verbs_cm_limits_id(NULL, RDMA_PS_TCP);
	struct ibv_qp_init_attr init = { .qp_type = IBV_QPT_RC, .cap = { 1, 0, 1, 1, 0 } };
	struct sockaddr_in a4 = get_loopback(9);
	struct ibv_qp_attr attr;
	uint8_t timeout = 17;

	resolve_verbs_cm_limits(id, (struct sockaddr *)&a4);
	cr_assert_eq(rdma_create_qp(id, NULL, &init), 0);
	cr_expect_eq(id->recv_cq->cqe, 1, "for no receives");
	cr_expect_eq(rdma_set_option(id, RDMA_OPTION_ID, RDMA_OPTION_ID_ACK_TIMEOUT, &timeout, 1),
		     0);
	cr_assert_eq(ibv_query_qp(id->qp, &attr, IBV_QP_TIMEOUT, &init), 0);
	cr_expect_eq(attr.timeout, 17);
	rdma_destroy_qp(id);
	cr_expect_eq(rdma_destroy_id(id), 0);
}

Test(verbs_cm_limits, resolving)
{
	struct rdma_event_channel *ch = rdma_create_event_channel();
	struct rdma_cm_id *id = new_verbs_cm_limits_id(ch, RDMA_PS_TCP);
	struct sockaddr_in to = get_loopback(9), from = get_loopback(0);
	struct sockaddr_in6 any = { .sin6_family = AF_INET6 };
	struct sockaddr local = { .sa_family = AF_UNIX };

	from.sin_addr.s_addr = inet_addr("192.0.2.1");
	VT_MINUS_AS(rdma_resolve_addr(id, NULL, NULL, 1), EINVAL);
	VT_MINUS_AS(rdma_resolve_addr(id, NULL, &local, 1), EAFNOSUPPORT);
	VT_MINUS_AS(rdma_resolve_addr(id, (struct sockaddr *)&from, (struct sockaddr *)&to, 1),
		    EADDRNOTAVAIL);
	VT_MINUS_AS(rdma_resolve_route(id, 1), EINVAL);
	VT_MINUS_AS(rdma_connect(id, NULL), EINVAL);
	VT_MINUS_AS(rdma_disconnect(id), EINVAL);
	VT_MINUS_AS(rdma_accept(id, NULL), EINVAL);
	VT_MINUS_AS(rdma_reject(id, NULL, 0), EINVAL);
	VT_MINUS_AS(rdma_establish(id), EINVAL);
	VT_MINUS_AS(rdma_get_request(id, NULL), EINVAL);
	VT_MINUS_AS(rdma_notify(id, IBV_EVENT_PATH_MIG), EINVAL);
	cr_expect_eq(rdma_notify(id, IBV_EVENT_COMM_EST), 0);
	/* Bound to the wildcard it still has no address of its own. */
	cr_assert_eq(rdma_bind_addr(id, (struct sockaddr *)&any), 0);
	cr_expect_null(id->verbs);
	vfail_nth(VFAIL_GETSOCKNAME, 1);
	cr_assert_eq(rdma_resolve_addr(id, NULL, (struct sockaddr *)&to, 1), 0);
	cr_assert(vfail_came());
	vt_expect(ch, RDMA_CM_EVENT_ADDR_ERROR);
	cr_assert_eq(rdma_resolve_addr(id, NULL, (struct sockaddr *)&to, 1), 0);
	vt_expect(ch, RDMA_CM_EVENT_ADDR_RESOLVED);
	VT_MINUS_AS(rdma_resolve_addr(id, NULL, (struct sockaddr *)&to, 1), EINVAL);
	VT_MINUS_AS(rdma_listen(id, 1), EINVAL);
	cr_expect_eq(rdma_destroy_id(id), 0);
	rdma_destroy_event_channel(ch);
}

/* ---- queue pairs ---- */

Test(verbs_cm_limits, attributes_of_queue_pairs)
{
	struct rdma_cm_id *id = new_verbs_cm_limits_id(NULL, RDMA_PS_TCP),
			  *ud = new_verbs_cm_limits_id(NULL, RDMA_PS_UDP);
	struct sockaddr_in6 six = { .sin6_family = AF_INET6, .sin6_port = htons(9) };
	struct sockaddr_in a4 = get_loopback(9);
	struct ibv_qp_attr attr = { .qp_state = IBV_QPS_SQD };
	int mask = 0;

	VT_MINUS_AS(rdma_init_qp_attr(id, &attr, &mask), EINVAL);
	id->route.addr.dst_sin6 = six;
	id->route.addr.dst_sin6.sin6_addr.s6_addr[15] = 1;
	attr.qp_state = IBV_QPS_RTR;
	cr_assert_eq(rdma_init_qp_attr(id, &attr, &mask), 0);
	cr_expect_eq(attr.ah_attr.grh.dgid.raw[15], 1);
	cr_expect_eq(attr.ah_attr.grh.dgid.raw[10], 0);
	cr_expect_eq(mask, IBV_QP_STATE | IBV_QP_ACCESS_FLAGS);
	attr.qp_state = IBV_QPS_RTS;
	memcpy(&id->route.addr.dst_sin, &a4, sizeof a4);
	cr_assert_eq(rdma_init_qp_attr(id, &attr, &mask), 0);
	cr_expect_eq(attr.ah_attr.grh.dgid.raw[10], 0xff);
	cr_expect_eq(mask, IBV_QP_STATE);
	attr.qp_state = IBV_QPS_INIT;
	cr_assert_eq(rdma_init_qp_attr(ud, &attr, &mask), 0);
	cr_expect_eq(mask, IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_QKEY);
	cr_expect_eq(attr.qkey, RDMA_UDP_QKEY);
	attr.qp_state = IBV_QPS_RTR;
	cr_assert_eq(rdma_init_qp_attr(ud, &attr, &mask), 0);
	cr_expect_eq(mask, IBV_QP_STATE);
	attr.qp_state = IBV_QPS_RTS;
	cr_assert_eq(rdma_init_qp_attr(ud, &attr, &mask), 0);
	cr_expect_eq(mask, IBV_QP_STATE | IBV_QP_SQ_PSN);
	cr_expect_eq(rdma_destroy_id(ud), 0);
	cr_expect_eq(rdma_destroy_id(id), 0);
}

static void queue_pairs(void)
{
	struct ibv_qp_init_attr_ex ex = { .qp_type = IBV_QPT_RC, .cap = { 2, 2, 1, 1, 0 } };
	struct ibv_qp_init_attr init = { .qp_type = IBV_QPT_UD, .cap = { 1, 1, 1, 1, 0 } };
	struct rdma_cm_id *id = new_verbs_cm_limits_id(NULL, RDMA_PS_TCP);
	struct sockaddr_in a4 = get_loopback(9);
	struct ibv_pd *pd;

	resolve_verbs_cm_limits(id, (struct sockaddr *)&a4);
	pd = ibv_alloc_pd(id->verbs);
	VT_MINUS_AS(rdma_create_qp(id, NULL, &init), EOPNOTSUPP);
	ex.comp_mask = IBV_QP_INIT_ATTR_XRCD;
	VT_MINUS_AS(rdma_create_qp_ex(id, &ex), EOPNOTSUPP);
	ex.comp_mask = IBV_QP_INIT_ATTR_PD;
	ex.pd = pd;
	ex.cap.max_send_sge = 1000;
	VT_MINUS_AS(rdma_create_qp_ex(id, &ex), EINVAL);
	cr_expect_null(id->qp);
	cr_expect_null(id->send_cq, "they went with it");
	ex.cap.max_send_sge = 1;
	cr_assert_eq(rdma_create_qp_ex(id, &ex), 0);
	cr_expect_eq(id->qp->pd, pd);
	cr_expect_not_null(ex.send_cq);
	cr_expect_eq(ex.recv_cq, id->recv_cq);
	VT_MINUS_AS(rdma_create_qp_ex(id, &ex), EINVAL);
	rdma_destroy_qp(id);
	ex.comp_mask = 0;
	ex.send_cq = ex.recv_cq = NULL;
	cr_assert_eq(rdma_create_qp_ex(id, &ex), 0);
	rdma_destroy_qp(id);
	cr_expect_eq(ibv_dealloc_pd(pd), 0);
	cr_expect_eq(rdma_destroy_id(id), 0);
}

Test(verbs_cm_limits, queue_pairs_of_identifiers)
{
	queue_pairs();
}

Test(verbs_cm_limits, queue_pairs_that_are_checked)
{
	setenv("DDPSESS_CHECK", "on", 1);
	queue_pairs();
}

/* A queue pair of one's own is lent to one identifier at most, before it is used. */
VT_TEST(verbs_cm_limits, lending)
{
	struct rdma_conn_param conn = { .responder_resources = 1 };
	struct ibv_qp_init_attr init = { .qp_type = IBV_QPT_RC, .cap = { 1, 1, 1, 1, 0 } };
	struct rdma_cm_id *id[2];
	struct ibv_qp *qp;
	struct vt v;

	vt_init(&v);
	vt_listen(&v);
	for (int i = 0; i < 2; i++) {
		id[i] = new_verbs_cm_limits_id(rdma_create_event_channel(), RDMA_PS_TCP);
		cr_assert_eq(rdma_resolve_addr(id[i], NULL, (struct sockaddr *)&v.addr, 1), 0);
		vt_expect(id[i]->channel, RDMA_CM_EVENT_ADDR_RESOLVED);
		cr_assert_eq(rdma_resolve_route(id[i], 1), 0);
		vt_expect(id[i]->channel, RDMA_CM_EVENT_ROUTE_RESOLVED);
	}
	init.send_cq = init.recv_cq = ibv_create_cq(id[0]->verbs, 4, NULL, NULL, 0);
	qp = ibv_create_qp(id[0]->pd, &init);
	cr_assert_not_null(qp);
	conn.qp_num = qp->qp_num;
	cr_assert_eq(rdma_connect(id[0], &conn), 0);
	VT_MINUS_AS(rdma_connect(id[1], &conn), EINVAL);
	vt_take_request(&v);
	cr_assert_eq(rdma_accept(v.b.id, &v.accept), 0);
	vt_expect(id[0]->channel, RDMA_CM_EVENT_ESTABLISHED);
	/* Of a number that nobody has: a connection without work of the program's. */
	conn.qp_num = qp->qp_num ^ 0x800;
	vfail_nth(VFAIL_MEMORY, 1);
	VT_MINUS_AS(rdma_connect(id[1], &conn), ENOMEM);
	cr_expect(vfail_came());
	cr_assert_eq(rdma_connect(id[1], &conn), 0);
	for (int i = 0; i < 2; i++) {
		struct rdma_event_channel *ch = id[i]->channel;

		cr_expect_eq(rdma_destroy_id(id[i]), 0);
		rdma_destroy_event_channel(ch);
	}
	cr_expect_eq(ibv_destroy_qp(qp), 0);
	cr_expect_eq(ibv_destroy_cq(init.send_cq), 0);
	vt_down(&v);
}

/* ---- events ---- */

static void *acknowledge_verbs_cm_limits(void *arg)
{
	usleep(1000);
	cr_expect_eq(rdma_ack_cm_event(arg), 0);
	return NULL;
}

/* An identifier moves when its events have been acknowledged; those of others stay. */
Test(verbs_cm_limits, moving)
{
	struct rdma_event_channel *ch[2] = { rdma_create_event_channel(),
					     rdma_create_event_channel() };
	struct rdma_cm_id *id[2] = { new_verbs_cm_limits_id(ch[0], RDMA_PS_TCP),
				     new_verbs_cm_limits_id(ch[0], RDMA_PS_TCP) };
	struct sockaddr_in a4 = get_loopback(9);
	struct rdma_cm_event *e;
	pthread_t thread;

	for (int i = 0; i < 2; i++)
		cr_assert_eq(rdma_resolve_addr(id[i], NULL, (struct sockaddr *)&a4, 1), 0);
	e = vt_event(ch[0], RDMA_CM_EVENT_ADDR_RESOLVED);
	cr_assert_eq(e->id, id[0]);
	cr_assert_eq(rdma_resolve_route(id[0], 1), 0);
	pthread_create(&thread, NULL, acknowledge_verbs_cm_limits, e);
	cr_expect_eq(rdma_migrate_id(id[0], ch[1]), 0);
	cr_expect_eq(pthread_join(thread, NULL), 0);
	e = vt_event(ch[1], RDMA_CM_EVENT_ROUTE_RESOLVED);
	cr_expect_eq(e->id, id[0]);
	rdma_ack_cm_event(e);
	e = vt_event(ch[0], RDMA_CM_EVENT_ADDR_RESOLVED);
	cr_expect_eq(e->id, id[1]);
	rdma_ack_cm_event(e);
	VT_MINUS_AS(rdma_ack_cm_event(NULL), EINVAL);
	cr_expect_eq(rdma_migrate_id(id[0], ch[1]), 0, "it is there");
	/* A channel goes with the events that nobody has fetched. */
	cr_assert_eq(rdma_resolve_route(id[1], 1), 0);
	rdma_destroy_event_channel(ch[0]);
	cr_expect_eq(rdma_destroy_id(id[0]), 0);
	rdma_destroy_event_channel(ch[1]);
}

/* ---- endpoints ---- */

Test(verbs_cm_limits, endpoints)
{
	struct rdma_addrinfo hints = { .ai_port_space = RDMA_PS_TCP }, *ai;
	struct rdma_cm_id *id = NULL;

	cr_assert_eq(rdma_getaddrinfo("127.0.0.1", "9", &hints, &ai), 0);
	cr_assert_eq(rdma_create_ep(&id, ai, NULL, NULL), 0);
	cr_expect_null(id->qp);
	cr_expect_not_null(id->verbs);
	rdma_destroy_ep(id);
	ai->ai_port_space = RDMA_PS_IB;
	id = NULL;
	VT_MINUS_AS(rdma_create_ep(&id, ai, NULL, NULL), EOPNOTSUPP);
	cr_expect_null(id);
	rdma_freeaddrinfo(ai);
}
