/* SPDX-License-Identifier: BSD-2-Clause */
/* The edge: what a profile shows on either side of its limits, and rules where they do not apply. */
#include "verbs/vd.h"
#include "verbs/vfail.h"
#include "verbs/vt.h"
#include <arpa/inet.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

static const char two[] = "device a0\nvendor 0x15b3\npart 0x1017\nlimit max_mr_size 4096\n"
			  "limit max_qp_rd_atom 2\nlimit max_qp_init_rd_atom 1\nlimit max_cqe 10\n"
			  "limit max_sge 2\nlimit max_qp 3\n"
			  "port 1\ninterface lo\nmtu 4096\nport 2\ninterface nonesuch0\n"
			  "device b0\nface roce\nport 1\ninterface nonesuch1\n";

static struct ibv_context *open_verbs_edge_limits_device(unsigned i)
{
	struct ibv_device **list = ibv_get_device_list(NULL);
	struct ibv_context *ctx;

	cr_assert_not_null(list);
	ctx = ibv_open_device(list[i]);
	ibv_free_device_list(list);
	cr_assert_not_null(ctx);
	return ctx;
}

/* ---- profiles ---- */

Test(verbs_edge_limits, what_a_device_says)
{
	struct ibv_query_device_ex_input in = { .comp_mask = 1 };
	struct ibv_device_attr_ex ex = { 0 };
	struct ibv_device_attr attr;
	struct ibv_port_attr port = { 0 };
	struct verbs_context *ops;
	struct ibv_context *ctx;

	vp_use(two);
	ctx = open_verbs_edge_limits_device(0);
	ops = verbs_get_ctx(ctx);
	cr_assert_eq(ibv_query_device(ctx, &attr), 0);
	cr_expect_eq(attr.vendor_id, 0x15b3);
	cr_expect_eq(attr.vendor_part_id, 0x1017);
	cr_expect_eq(attr.max_mr_size, 4096);
	cr_expect_eq(ops->query_device_ex(ctx, &in, &ex, sizeof ex), EINVAL);
	in.comp_mask = 0;
	cr_expect_eq(ops->query_device_ex(ctx, &in, &ex, 8), 0);
	cr_expect_eq(ex.orig_attr.max_qp, 0, "behind what was asked for");
	cr_expect_eq(ops->query_device_ex(ctx, &in, &ex, sizeof ex.orig_attr), 0);
	cr_expect_eq(ex.orig_attr.max_qp, 3);
	cr_expect_eq(ex.phys_port_cnt_ex, 0);
	cr_expect_eq(ops->query_device_ex(ctx, &in, &ex, sizeof ex), 0);
	cr_expect_eq(ex.phys_port_cnt_ex, 2);
	cr_expect_eq((ibv_query_port)(ctx, 1, (struct _compat_ibv_port_attr *)&port), 0);
	cr_expect_eq(port.active_mtu, IBV_MTU_4096);
	cr_expect_eq(ibv_query_port(ctx, 0, &port), EINVAL);
	cr_expect_eq(ibv_query_port(ctx, 3, &port), EINVAL);
	cr_expect_eq(ibv_close_device(ctx), 0);
	ctx = open_verbs_edge_limits_device(1);
	cr_assert_eq(ibv_query_device(ctx, &attr), 0);
	cr_expect_neq(attr.vendor_id, 0x15b3);
	cr_expect_neq(attr.max_mr_size, 4096);
	cr_expect_eq(ibv_close_device(ctx), 0);
}

Test(verbs_edge_limits, gids)
{
	struct ibv_gid_entry e, table[3];
	struct ibv_context *ctx;
	union ibv_gid gid;

	vp_use(two);
	ctx = open_verbs_edge_limits_device(0);
	VT_MINUS_AS(ibv_query_gid(ctx, 0, 0, &gid), EINVAL);
	cr_expect_eq(ibv_query_gid_ex(ctx, 0, 0, &e, 0), EINVAL);
	cr_expect_eq(ibv_query_gid_ex(ctx, 1, 1, &e, 0), EINVAL);
	cr_expect_eq(ibv_query_gid_ex(ctx, 1, 0, &e, 1), EOPNOTSUPP);
	cr_expect_eq(ibv_query_gid_ex(ctx, 2, 0, &e, 0), ENODATA);
	cr_expect_eq(ibv_query_gid_table(ctx, table, 3, 1), -EOPNOTSUPP);
	/* The second port has no address. */
	cr_expect_eq(ibv_query_gid_table(ctx, table, 3, 0), 1);
	cr_expect_eq(table[0].gid.raw[12], 127);
	memset(&e, 0x5a, sizeof e);
	cr_expect_eq(_ibv_query_gid_ex(ctx, 1, 0, &e, 0, 16), 0);
	cr_expect_arr_eq(&e, &table[0], 16);
	cr_expect_eq(((uint8_t *)&e)[16], 0x5a);
	memset(&e, 0x5a, sizeof e);
	cr_expect_eq(_ibv_query_gid_table(ctx, &e, 1, 0, 16), 1);
	cr_expect_arr_eq(&e, &table[0], 16);
	cr_expect_eq(((uint8_t *)&e)[16], 0x5a);
	vfail_nth(VFAIL_GETIFADDRS, 1);
	cr_expect_eq(ibv_query_gid_ex(ctx, 1, 0, &e, 0), ENODATA);
	cr_expect(vfail_came());
	cr_expect_eq(ibv_close_device(ctx), 0);
}

Test(verbs_edge_limits, queue_pairs_of_a_device)
{
	struct ibv_qp_init_attr_ex ex = { .qp_type = IBV_QPT_RC, .cap = { 1, 1, 3, 1, 0 } };
	struct ibv_cq_init_attr_ex cqx = { .cqe = 11 };
	struct ibv_qp_attr attr = { .qp_state = IBV_QPS_INIT };
	struct ibv_context *ctx;
	struct ibv_cq *cq;
	struct ibv_qp *qp;
	struct ibv_pd *pd;

	vp_use(two);
	ctx = open_verbs_edge_limits_device(0);
	pd = ibv_alloc_pd(ctx);
	VT_NULL_AS(ibv_create_cq_ex(ctx, &cqx), EINVAL);
	cqx.cqe = 10;
	cq = ibv_cq_ex_to_cq(ibv_create_cq_ex(ctx, &cqx));
	ex.send_cq = ex.recv_cq = cq;
	ex.pd = pd;
	ex.comp_mask = IBV_QP_INIT_ATTR_PD;
	VT_NULL_AS(ibv_create_qp_ex(ctx, &ex), EINVAL);
	ex.cap.max_send_sge = 2;
	qp = ibv_create_qp_ex(ctx, &ex);
	cr_assert_not_null(qp);
	attr.port_num = 0;
	cr_expect_eq(ibv_modify_qp(qp, &attr, IBV_QP_STATE | IBV_QP_PORT), EINVAL);
	attr.port_num = 3;
	cr_expect_eq(ibv_modify_qp(qp, &attr, IBV_QP_STATE | IBV_QP_PORT), EINVAL);
	attr.port_num = 2;
	attr.max_rd_atomic = 2;
	attr.max_dest_rd_atomic = 2;
	cr_expect_eq(ibv_modify_qp(qp, &attr,
				   IBV_QP_PORT | IBV_QP_MAX_QP_RD_ATOMIC |
					   IBV_QP_MAX_DEST_RD_ATOMIC),
		     EINVAL, "one Read under way at most");
	attr.max_rd_atomic = 1;
	attr.max_dest_rd_atomic = 3;
	cr_expect_eq(ibv_modify_qp(qp, &attr, IBV_QP_MAX_DEST_RD_ATOMIC), EINVAL);
	attr.max_dest_rd_atomic = 2;
	cr_expect_eq(ibv_modify_qp(qp, &attr, IBV_QP_STATE | IBV_QP_PORT), 0);
	cr_expect_eq(qp->state, IBV_QPS_INIT);
	cr_expect_eq(ibv_destroy_qp(qp), 0);
	cr_expect_eq(ibv_destroy_cq(cq), 0);
	cr_expect_eq(ibv_dealloc_pd(pd), 0);
	cr_expect_eq(ibv_close_device(ctx), 0);
}

/* What a program offers is no more than the device can: the peer learns of that. */
VT_TEST(verbs_edge_limits, reads_that_are_offered)
{
	struct rdma_cm_event *e;
	struct vt v;

	vp_use("device a0\nlimit max_qp_rd_atom 2\nlimit max_qp_init_rd_atom 1\n"
	       "port 1\ninterface lo\n");
	vt_init(&v);
	vt_listen(&v);
	vt_dial(&v);
	cr_assert_eq(rdma_connect(v.a.id, &v.connect), 0);
	e = vt_event(v.b.ch, RDMA_CM_EVENT_CONNECT_REQUEST);
	cr_expect_eq(e->param.conn.responder_resources, 1);
	cr_expect_eq(e->param.conn.initiator_depth, 2);
	v.b.id = e->id;
	rdma_ack_cm_event(e);
	vt_equip(&v, &v.b);
	cr_assert_eq(rdma_accept(v.b.id, &v.accept), 0);
	vt_expect(v.a.ch, RDMA_CM_EVENT_ESTABLISHED);
	vt_expect(v.b.ch, RDMA_CM_EVENT_ESTABLISHED);
	vt_down(&v);
}

Test(verbs_edge_limits, endpoints_of_a_device)
{
	const struct ibv_qp_init_attr init = { .cap = { 1, 1, 1, 1, 0 } };
	struct ibv_qp_init_attr attr = init;
	struct rdma_addrinfo hints = { .ai_port_space = RDMA_PS_TCP }, *ai;
	struct rdma_cm_id *id[2] = { NULL, NULL };
	struct sockaddr_in6 six = { .sin6_family = AF_INET6, .sin6_port = htons(9) };

	vp_use("device a0\nlimit max_qp 1\nlimit max_sge 2\nport 1\ninterface lo\n");
	setenv("DDPSESS_CHECK", "on", 1);
	cr_assert_eq(rdma_getaddrinfo("127.0.0.1", "9", &hints, &ai), 0);
	attr.cap.max_send_sge = 3;
	VT_MINUS_AS(rdma_create_ep(&id[0], ai, NULL, &attr), EINVAL);
	attr = init; /* without the queues that it got */
	cr_assert_eq(rdma_create_ep(&id[0], ai, NULL, &attr), 0, "%m");
	attr = init;
	VT_MINUS_AS(rdma_create_ep(&id[1], ai, NULL, &attr), ENOMEM);
	rdma_destroy_ep(id[0]);
	attr = init;
	cr_assert_eq(rdma_create_ep(&id[0], ai, NULL, &attr), 0, "it has made room");
	rdma_destroy_ep(id[0]);
	rdma_freeaddrinfo(ai);
	/* The device that has the address, of either family. */
	six.sin6_addr.s6_addr[15] = 1;
	cr_assert_eq(rdma_create_id(NULL, &id[0], NULL, RDMA_PS_TCP), 0);
	VT_MINUS_AS(rdma_resolve_addr(id[0], NULL, NULL, 1), EINVAL);
	cr_assert_eq(rdma_resolve_addr(id[0], NULL, (struct sockaddr *)&six, 1), 0);
	cr_expect_str_eq(id[0]->verbs->device->name, "a0");
	cr_expect_eq(rdma_destroy_id(id[0]), 0);
}

/* What is granted is more than what is asked for, and may be more than the device takes. */
Test(verbs_edge_limits, contact_25_an_endpoint_of_a_device_with_little_inline_data)
{
	struct ibv_qp_init_attr attr = { .cap = { 1, 1, 1, 1, 8 } };
	struct rdma_addrinfo hints = { .ai_port_space = RDMA_PS_TCP }, *ai;
	struct rdma_cm_id *id;

	vp_use("device a0\nlimit max_inline 16\nport 1\ninterface lo\n");
	cr_assert_eq(rdma_getaddrinfo("127.0.0.1", "9", &hints, &ai), 0);
	cr_assert_eq(rdma_create_ep(&id, ai, NULL, &attr), 0, "%m");
	cr_expect_eq(attr.cap.max_inline_data, 16);
	rdma_destroy_ep(id);
	rdma_freeaddrinfo(ai);
}

/* ---- rules ---- */

Test(verbs_edge_limits, calls_that_fail)
{
	struct _compat_ibv_port_attr *old = calloc(1, sizeof(struct ibv_port_attr));
	struct ibv_context *ctx;
	int n = 7;

	vf_use("on ibv_get_device_list nth 2: fail ENOMEM\non ibv_query_port: fail EIO\n"
	       "on ibv_get_device_list nth 3: fail ENOMEM\n");
	ctx = open_verbs_edge_limits_device(0);
	VT_NULL_AS(ibv_get_device_list(&n), ENOMEM);
	cr_expect_eq(n, 0);
	VT_NULL_AS(ibv_get_device_list(NULL), ENOMEM);
	cr_expect_eq((ibv_query_port)(ctx, 1, old), EIO);
	cr_expect_eq(ibv_close_device(ctx), 0);
	free(old);
}

static int send_piece(struct vt *v, uint32_t len, unsigned flags, uint32_t key, size_t off)
{
	struct ibv_sge sge = { (uintptr_t)v->a.buf + off, len, key };
	struct ibv_send_wr wr = { .wr_id = 1,
				  .opcode = IBV_WR_SEND,
				  .sg_list = &sge,
				  .num_sge = 1,
				  .send_flags = flags | IBV_SEND_SIGNALED },
			   *bad;

	return ibv_post_send(v->a.id->qp, &wr, &bad);
}

static unsigned bits_that_differ(const uint8_t *a, const uint8_t *b, size_t n)
{
	unsigned all = 0;

	for (size_t i = 0; i < n; i++)
		all += (unsigned)__builtin_popcount(a[i] ^ b[i]);
	return all;
}

/* One bit of what is sent, be it inline; nothing where there is nothing, or none of the program's. */
VT_TEST(verbs_edge_limits, corruption)
{
	struct vt v;

	vf_use("on ibv_post_send: corrupt\n");
	vt_init(&v);
	v.init.cap.max_inline_data = 64;
	vt_up(&v);
	for (unsigned flags = 0; flags <= IBV_SEND_INLINE; flags += IBV_SEND_INLINE) {
		memset(v.b.buf, 0, 64);
		cr_assert_eq(vt_recv(&v.b, 7, 0, 64), 0);
		cr_assert_eq(send_piece(&v, 64, flags, v.a.mr->lkey, 0), 0);
		vt_expect_wc(&v.a, 1, IBV_WC_SEND, IBV_WC_SUCCESS);
		vt_expect_wc(&v.b, 7, IBV_WC_RECV, IBV_WC_SUCCESS);
		cr_expect_eq(bits_that_differ(v.a.buf, v.b.buf, 64), 1);
	}
	cr_assert_eq(vt_recv(&v.b, 8, 0, 64), 0);
	cr_assert_eq(send_piece(&v, 0, 0, v.a.mr->lkey, 0), 0);
	vt_expect_wc(&v.a, 1, IBV_WC_SEND, IBV_WC_SUCCESS);
	vt_expect_wc(&v.b, 8, IBV_WC_RECV, IBV_WC_SUCCESS);
	memset(v.b.buf, 3, 64);
	cr_assert_eq(vt_post(&v.a, 2, IBV_WR_RDMA_READ, 64, &v.b), 0);
	vt_expect_wc(&v.a, 2, IBV_WC_RDMA_READ, IBV_WC_SUCCESS);
	cr_expect_arr_eq(v.a.buf, v.b.buf, 64);
	/* Without memory for a copy it goes as it is. */
	cr_assert_eq(vt_recv(&v.b, 9, 0, 64), 0);
	vfail_nth(VFAIL_MEMORY, 1);
	cr_assert_eq(send_piece(&v, 64, 0, v.a.mr->lkey, 64), 0);
	cr_expect(vfail_came());
	vt_expect_wc(&v.a, 1, IBV_WC_SEND, IBV_WC_SUCCESS);
	vt_expect_wc(&v.b, 9, IBV_WC_RECV, IBV_WC_SUCCESS);
	cr_expect_arr_eq(v.a.buf + 64, v.b.buf, 64);
	cr_assert_eq(send_piece(&v, 64, 0, v.a.mr->lkey, sizeof v.a.buf - 32), 0);
	cr_expect_eq(vt_wc(&v.a).status, IBV_WC_LOC_PROT_ERR, "beyond its region");
	vt_down(&v);
}

/* Receives that wait for their time are as many as the queue takes, and go with it. */
VT_TEST(verbs_edge_limits, receives_that_wait)
{
	struct ibv_recv_wr wr = { .wr_id = 1 }, *bad;
	struct vt v;

	vf_use("on ibv_post_recv first 1: rnr 1min\n");
	vt_init(&v);
	vt_up(&v);
	wr.num_sge = -1;
	cr_expect_eq(ibv_post_recv(v.a.id->qp, &wr, &bad), EINVAL);
	wr.num_sge = VD_MAX_SGE + 1;
	cr_expect_eq(ibv_post_recv(v.a.id->qp, &wr, &bad), EINVAL);
	cr_expect_eq(bad, &wr);
	wr.num_sge = 0;
	vfail_nth(VFAIL_MEMORY, 1);
	cr_expect_eq(ibv_post_recv(v.a.id->qp, &wr, &bad), ENOMEM);
	cr_expect(vfail_came());
	for (unsigned i = 0; i < v.init.cap.max_recv_wr; i++)
		cr_expect_eq(ibv_post_recv(v.a.id->qp, &wr, &bad), 0);
	cr_expect_eq(ibv_post_recv(v.a.id->qp, &wr, &bad), ENOMEM);
	vt_down(&v);
}

VT_TEST(verbs_edge_limits, shared_receives_that_wait)
{
	struct ibv_srq_init_attr init = { .attr = { .max_wr = 4, .max_sge = 1 } };
	struct ibv_recv_wr wr = { .wr_id = 1 }, *bad;
	struct vt v;

	vf_use("on ibv_post_srq_recv first 1: rnr 20ms\n");
	vt_init(&v);
	vt_listen(&v);
	vt_dial(&v);
	v.srq = ibv_create_srq(v.a.id->pd, &init);
	cr_assert_not_null(v.srq);
	cr_assert_eq(rdma_connect(v.a.id, &v.connect), 0);
	vt_take_request(&v);
	cr_assert_eq(rdma_accept(v.b.id, &v.accept), 0);
	vt_expect(v.a.ch, RDMA_CM_EVENT_ESTABLISHED);
	vt_expect(v.b.ch, RDMA_CM_EVENT_ESTABLISHED);
	for (wr.wr_id = 1; wr.wr_id <= 2; wr.wr_id++)
		cr_assert_eq(ibv_post_srq_recv(v.srq, &wr, &bad), 0);
	for (uint64_t i = 1; i <= 2; i++)
		cr_assert_eq(vt_post(&v.a, i, IBV_WR_SEND, 0, NULL), 0);
	for (uint64_t i = 1; i <= 2; i++) {
		vt_expect_wc(&v.b, i, IBV_WC_RECV, IBV_WC_SUCCESS);
		vt_expect_wc(&v.a, i, IBV_WC_SEND, IBV_WC_SUCCESS);
	}
	cr_expect_not_null(strstr(vf_traced(), "rnr"));
	vt_down(&v);
}

/* An event that a rule makes has the error that is usual for it. */
Test(verbs_edge_limits, events_and_their_errors)
{
	static const struct {
		const char *rule;
		enum rdma_cm_event_type type;
		int status;
	} all[] = {
		{ "on rdma_resolve_addr nth 1: event ADDR_ERROR\n", RDMA_CM_EVENT_ADDR_ERROR,
		  -EHOSTUNREACH },
		{ "on rdma_resolve_addr nth 2: event UNREACHABLE\n", RDMA_CM_EVENT_UNREACHABLE,
		  -ETIMEDOUT },
		{ "on rdma_resolve_addr nth 3: event CONNECT_ERROR\n", RDMA_CM_EVENT_CONNECT_ERROR,
		  -ECONNRESET },
		{ "on rdma_resolve_addr nth 4: event DEVICE_REMOVAL\n",
		  RDMA_CM_EVENT_DEVICE_REMOVAL, -ENODEV },
		{ "on rdma_resolve_addr nth 5: event ADDR_ERROR EPERM\n", RDMA_CM_EVENT_ADDR_ERROR,
		  -EPERM },
	};
	struct sockaddr_in a4 = { .sin_family = AF_INET, .sin_port = htons(9) };
	struct rdma_event_channel *ch;
	char text[1000] = "";

	a4.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
	for (size_t i = 0; i < sizeof all / sizeof *all; i++)
		strcat(text, all[i].rule);
	strcat(text, "on rdma_resolve_addr nth 6: event ADDR_CHANGE in 1min\n"
		     "on rdma_resolve_addr nth 7: event ADDR_CHANGE in 2min\n");
	vf_use(text);
	ch = rdma_create_event_channel();
	for (size_t i = 0; i < sizeof all / sizeof *all; i++) {
		struct rdma_cm_event *e;
		struct rdma_cm_id *id;

		cr_assert_eq(rdma_create_id(ch, &id, NULL, RDMA_PS_TCP), 0);
		cr_assert_eq(rdma_resolve_addr(id, NULL, (struct sockaddr *)&a4, 1), 0);
		e = vt_event(ch, all[i].type);
		cr_expect_eq(e->status, all[i].status, "%zu: %d", i, e->status);
		cr_expect_eq(e->id, id);
		rdma_ack_cm_event(e);
		cr_expect_eq(rdma_destroy_id(id), 0);
	}
	rdma_destroy_event_channel(ch);
	/* Those that are put off go with their identifiers, each with its own. */
	for (int i = 0; i < 1; i++) {
		struct rdma_cm_id *id[2];

		ch = rdma_create_event_channel();
		for (int k = 0; k < 2; k++) {
			cr_assert_eq(rdma_create_id(ch, &id[k], NULL, RDMA_PS_TCP), 0);
			cr_assert_eq(rdma_resolve_addr(id[k], NULL, (struct sockaddr *)&a4, 1), 0);
		}
		cr_expect_eq(rdma_destroy_id(id[1]), 0);
		cr_expect_eq(rdma_destroy_id(id[0]), 0);
		rdma_destroy_event_channel(ch);
	}
}

/* Of what a queue pair does not have no event can be; one without an element can. */
Test(verbs_edge_limits, asynchronous_events)
{
	struct ibv_qp_init_attr init;
	struct ibv_async_event e;
	struct ibv_qp_attr attr;
	struct ibv_qp *qp;
	struct vt_dev s;

	vf_use("on ibv_query_qp nth 1: async SRQ_ERR\non ibv_query_qp nth 2: async WQ_FATAL\n"
	       "on ibv_get_device_list nth 2: async QP_FATAL\n");
	vt_dev_open(&s);
	init = vt_rc(&s);
	qp = ibv_create_qp(s.pd, &init);
	cr_assert_not_null(qp);
	ibv_free_device_list(ibv_get_device_list(NULL));
	cr_assert_eq(ibv_query_qp(qp, &attr, 0, &init), 0);
	cr_assert_eq(ibv_query_qp(qp, &attr, 0, &init), 0);
	e = vt_async(s.ctx, IBV_EVENT_WQ_FATAL);
	ibv_ack_async_event(&e);
	cr_expect_not(vt_readable(s.ctx->async_fd, 0));
	cr_expect_eq(ibv_destroy_qp(qp), 0);
	vt_dev_close(&s);
}
