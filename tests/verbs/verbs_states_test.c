/* SPDX-License-Identifier: BSD-2-Clause */
/* Calls that come too early, too late or twice: states of queue pairs and identifiers. */
#include "verbs/vt.h"
#include <errno.h>
#include <string.h>

/* ---- moving queue pairs ---- */

static int move_qp_state(struct ibv_qp *qp, enum ibv_qp_state state, int more)
{
	struct ibv_qp_attr attr = { .qp_state = state, .port_num = 1 };

	return ibv_modify_qp(qp, &attr, IBV_QP_STATE | more);
}

static enum ibv_qp_state get_verbs_states_state_of(struct ibv_qp *qp)
{
	struct ibv_qp_init_attr init;
	struct ibv_qp_attr attr;

	cr_assert_eq(ibv_query_qp(qp, &attr, IBV_QP_STATE, &init), 0);
	/* RNICs have no other name for the first of all. */
	cr_expect_eq(attr.qp_state, qp->state == IBV_QPS_RESET ? IBV_QPS_INIT : qp->state);
	return qp->state;
}

/* Whom it is to meet, and who never gets ready itself. */
static struct ibv_qp *peer;

/* Towards RTR it needs to know of whom. */
static int move_to_rtr(struct vt_dev *s, struct ibv_qp *qp, int mask)
{
	struct ibv_qp_attr attr = { .qp_state = IBV_QPS_RTR,
				    .dest_qp_num = peer->qp_num,
				    .ah_attr = { .is_global = 1, .port_num = 1 } };

	cr_assert_eq(ibv_query_gid(s->ctx, 1, 0, &attr.ah_attr.grh.dgid), 0);
	return ibv_modify_qp(qp, &attr, IBV_QP_STATE | mask);
}

#define NAMED (IBV_QP_AV | IBV_QP_DEST_QPN)

static struct ibv_qp *in_state(struct vt_dev *s, enum ibv_qp_state state)
{
	struct ibv_qp_init_attr init = vt_rc(s);
	struct ibv_qp *qp = ibv_create_qp(s->pd, &init);

	peer = ibv_create_qp(s->pd, &init);
	cr_assert(qp && peer);
	if (state == IBV_QPS_ERR) {
		cr_assert_eq(move_qp_state(qp, IBV_QPS_ERR, 0), 0);
		return qp;
	}
	if (state >= IBV_QPS_INIT)
		cr_assert_eq(move_qp_state(qp, IBV_QPS_INIT, 0), 0);
	if (state >= IBV_QPS_RTR)
		cr_assert_eq(move_to_rtr(s, qp, NAMED), 0);
	if (state >= IBV_QPS_RTS)
		cr_assert_eq(move_qp_state(qp, IBV_QPS_RTS, 0), 0);
	return qp;
}

static void destroy_and_forget(struct ibv_qp *qp)
{
	cr_expect_eq(ibv_destroy_qp(qp), 0);
	cr_expect_eq(ibv_destroy_qp(peer), 0);
}

/* What the state table of verbs knows, but for the ways back, which this device has not. */
static void every_move_from(struct vt_dev *s, enum ibv_qp_state from, const int *want)
{
	for (int to = IBV_QPS_RESET; to <= IBV_QPS_UNKNOWN; to++) {
		struct ibv_qp *qp = in_state(s, from);
		int err = to == IBV_QPS_RTR ? move_to_rtr(s, qp, NAMED)
					    : move_qp_state(qp, (enum ibv_qp_state)to, 0);

		cr_expect_eq(err, want[to], "%d to %d: %d", from, to, err);
		cr_expect_eq(get_verbs_states_state_of(qp), err ? from : (enum ibv_qp_state)to,
			     "%d to %d leaves it in %d", from, to, qp->state);
		destroy_and_forget(qp);
	}
}

Test(verbs_states, transitions)
{
	static const int want[][8] = {
		/* to:		  RESET	  INIT	  RTR	  RTS	  SQD	  SQE  ERR  UNKNOWN */
		[IBV_QPS_RESET] = { 0, 0, EINVAL, EINVAL, EINVAL, EINVAL, 0, EINVAL },
		[IBV_QPS_INIT] = { 0, 0, 0, EINVAL, EINVAL, EINVAL, 0, EINVAL },
		[IBV_QPS_RTR] = { 0, EINVAL, EINVAL, 0, EINVAL, EINVAL, 0, EINVAL },
		[IBV_QPS_ERR] = { 0, EINVAL, EINVAL, EINVAL, EINVAL, EINVAL, 0, EINVAL },
	};
	struct vt_dev s;

	vt_dev_open(&s);
	every_move_from(&s, IBV_QPS_RESET, want[IBV_QPS_RESET]);
	every_move_from(&s, IBV_QPS_INIT, want[IBV_QPS_INIT]);
	every_move_from(&s, IBV_QPS_RTR, want[IBV_QPS_RTR]);
	every_move_from(&s, IBV_QPS_ERR, want[IBV_QPS_ERR]);
	vt_dev_close(&s);
}

/* The same where there is a session, which an orderly end is for. */
VT_TLS_TEST(verbs_states, transitions_of_a_session)
{
	static const int want[] = { [IBV_QPS_RESET] = EOPNOTSUPP, [IBV_QPS_INIT] = EINVAL,
				    [IBV_QPS_RTR] = EINVAL,	  [IBV_QPS_RTS] = 0,
				    [IBV_QPS_SQE] = EINVAL,	  [IBV_QPS_UNKNOWN] = EINVAL };
	struct vt v;

	vt_init(&v);
	vt_up(&v);
	for (int to = IBV_QPS_RESET; to <= IBV_QPS_UNKNOWN; to++) {
		if (to == IBV_QPS_SQD || to == IBV_QPS_ERR)
			continue;
		cr_expect_eq(move_qp_state(v.a.id->qp, (enum ibv_qp_state)to, 0), want[to], "%d",
			     to);
		cr_expect_eq(get_verbs_states_state_of(v.a.id->qp), IBV_QPS_RTS);
	}
	cr_expect_eq(move_qp_state(v.a.id->qp, IBV_QPS_SQD, 0), 0);
	vt_expect(v.b.ch, RDMA_CM_EVENT_DISCONNECTED);
	vt_expect(v.a.ch, RDMA_CM_EVENT_DISCONNECTED);
	cr_expect_eq(move_qp_state(v.a.id->qp, IBV_QPS_ERR, 0), 0);
	cr_expect_eq(move_qp_state(v.a.id->qp, IBV_QPS_RTS, 0), EINVAL);
	cr_expect_eq(get_verbs_states_state_of(v.a.id->qp), IBV_QPS_ERR);
	vt_down(&v);
}

Test(verbs_states, masks_of_ibv_modify_qp)
{
	struct ibv_qp_attr attr = { .qp_state = IBV_QPS_INIT, .port_num = 2 };
	struct ibv_qp *qp;
	struct vt_dev s;

	vt_dev_open(&s);
	qp = in_state(&s, IBV_QPS_RESET);
	cr_expect_eq(ibv_modify_qp(qp, &attr, IBV_QP_STATE | IBV_QP_PORT), EINVAL);
	attr.port_num = 1;
	cr_expect_eq(ibv_modify_qp(qp, &attr, IBV_QP_STATE | 1 << 30), EOPNOTSUPP);
	cr_expect_eq(ibv_modify_qp(qp, &attr, IBV_QP_CAP), EOPNOTSUPP, "it does not grow");
	attr.pkey_index = 1;
	cr_expect_eq(ibv_modify_qp(qp, &attr, IBV_QP_STATE | IBV_QP_PKEY_INDEX), EINVAL);
	cr_expect_eq(qp->state, IBV_QPS_RESET, "a call that fails changes nothing");
	attr.pkey_index = 0;
	cr_expect_eq(ibv_modify_qp(qp, &attr, IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT), 0);
	cr_expect_eq(move_to_rtr(&s, qp, IBV_QP_AV), EINVAL);
	cr_expect_eq(move_to_rtr(&s, qp, IBV_QP_DEST_QPN), EINVAL);
	cr_expect_eq(get_verbs_states_state_of(qp), IBV_QPS_INIT);
	destroy_and_forget(qp);
	vt_dev_close(&s);
}

/* ---- rdma_cm ---- */

static struct rdma_cm_id *make_fresh_verbs_states(struct rdma_event_channel *ch)
{
	struct rdma_cm_id *id;

	cr_assert_eq(rdma_create_id(ch, &id, NULL, RDMA_PS_TCP), 0);
	return id;
}

Test(verbs_states, port_spaces_and_multicast)
{
	static const enum rdma_port_space others[] = { RDMA_PS_IB, RDMA_PS_IPOIB };
	struct rdma_event_channel *ch = rdma_create_event_channel();
	struct sockaddr_in a4 = { AF_INET, 0, { htonl(INADDR_LOOPBACK) }, { 0 } };
	struct rdma_cm_join_mc_attr_ex mc = { 0 };
	struct rdma_cm_id *id;
	int none;

	for (size_t i = 0; i < sizeof others / sizeof *others; i++)
		VT_MINUS_AS(rdma_create_id(ch, &id, NULL, others[i]), EOPNOTSUPP);
	id = make_fresh_verbs_states(ch);
	VT_MINUS_AS(rdma_join_multicast(id, (struct sockaddr *)&a4, NULL), EINVAL);
	VT_MINUS_AS(rdma_join_multicast_ex(id, &mc, NULL), EINVAL);
	VT_MINUS_AS(rdma_leave_multicast(id, (struct sockaddr *)&a4), EINVAL);
	VT_MINUS_AS(rdma_establish(id), EINVAL);
	VT_MINUS_AS(rdma_set_option(id, 99, 0, &none, sizeof none), ENOSYS);
	VT_MINUS_AS(rdma_ack_cm_event(NULL), EINVAL);
	cr_expect_eq(rdma_destroy_id(id), 0);
	rdma_destroy_event_channel(ch);
}

/* Every call that an identifier without an address does not take. */
Test(verbs_states, an_identifier_that_is_nowhere)
{
	struct rdma_event_channel *ch = rdma_create_event_channel();
	struct ibv_qp_init_attr init = { .qp_type = IBV_QPT_RC, .cap = { 1, 1, 1, 1, 0 } };
	struct rdma_conn_param conn = { 0 };
	struct rdma_cm_id *id = make_fresh_verbs_states(ch), *other;
	struct ibv_qp *qp;

	for (int i = 0; i < 2; i++) { /* without a queue pair, and with one */
		VT_MINUS_AS(rdma_resolve_route(id, 1), EINVAL);
		VT_MINUS_AS(rdma_connect(id, &conn), EINVAL);
		VT_MINUS_AS(rdma_accept(id, &conn), EINVAL);
		VT_MINUS_AS(rdma_reject(id, NULL, 0), EINVAL);
		VT_MINUS_AS(rdma_disconnect(id), EINVAL);
		VT_MINUS_AS(rdma_get_request(id, &other), EINVAL);
		VT_MINUS_AS(rdma_notify(id, IBV_EVENT_QP_FATAL), EINVAL);
		if (!i)
			cr_assert_eq(rdma_create_qp(id, NULL, &init), 0, "%m");
	}
	qp = id->qp;
	VT_MINUS_AS(rdma_create_qp(id, NULL, &init), EINVAL);
	cr_expect_eq(id->qp, qp, "the first stays");
	rdma_destroy_qp(id);
	cr_expect_null(id->qp);
	rdma_destroy_qp(id);
	cr_expect_eq(rdma_destroy_id(id), 0);
	rdma_destroy_event_channel(ch);
}

Test(verbs_states, addresses_twice)
{
	struct rdma_event_channel *ch = rdma_create_event_channel();
	struct sockaddr_in a4 = { AF_INET, 0, { htonl(INADDR_LOOPBACK) }, { 0 } },
			   far = { AF_INET, 0, { htonl(0xc0000201) }, { 0 } };
	struct sockaddr *sa = (struct sockaddr *)&a4, un = { .sa_family = AF_UNIX };
	struct ibv_qp_init_attr init = { .qp_type = IBV_QPT_RC, .cap = { 1, 1, 1, 1, 0 } };
	struct rdma_cm_id *l = make_fresh_verbs_states(ch), *id = make_fresh_verbs_states(ch);

	VT_MINUS_AS(rdma_bind_addr(l, &un), EAFNOSUPPORT);
	VT_MINUS_AS(rdma_bind_addr(l, (struct sockaddr *)&far), EADDRNOTAVAIL);
	cr_expect_eq(rdma_bind_addr(l, sa), 0, "what failed is no address");
	VT_MINUS_AS(rdma_bind_addr(l, sa), EINVAL);
	cr_expect_eq(rdma_listen(l, 1), 0);
	VT_MINUS_AS(rdma_listen(l, 1), EINVAL);
	VT_MINUS_AS(rdma_bind_addr(l, sa), EINVAL);
	VT_MINUS_AS(rdma_resolve_addr(l, NULL, sa, 1), EINVAL);
	a4.sin_port = rdma_get_src_port(l);
	cr_expect_eq(rdma_resolve_addr(id, NULL, sa, 1), 0);
	vt_expect(ch, RDMA_CM_EVENT_ADDR_RESOLVED);
	cr_assert_eq(rdma_create_qp(id, NULL, &init), 0);
	VT_MINUS_AS(rdma_connect(id, NULL), EINVAL); /* no route yet */
	VT_MINUS_AS(rdma_resolve_addr(id, NULL, sa, 1), EINVAL);
	VT_MINUS_AS(rdma_bind_addr(id, sa), EINVAL);
	VT_MINUS_AS(rdma_listen(id, 1), EINVAL);
	cr_expect_eq(rdma_resolve_route(id, 1), 0);
	vt_expect(ch, RDMA_CM_EVENT_ROUTE_RESOLVED);
	VT_MINUS_AS(rdma_resolve_route(id, 1), EINVAL);
	rdma_destroy_qp(id);
	cr_expect_eq(rdma_destroy_id(id), 0);
	cr_expect_eq(rdma_destroy_id(l), 0);
	rdma_destroy_event_channel(ch);
}

VT_TLS_TEST(verbs_states, connections_twice)
{
	struct vt v;

	vt_init(&v);
	vt_listen(&v);
	vt_dial(&v);
	cr_expect_eq(vt_post(&v.a, 1, IBV_WR_SEND, 8, NULL), EINVAL, "before the connection");
	cr_assert_eq(rdma_connect(v.a.id, &v.connect), 0);
	VT_MINUS_AS(rdma_connect(v.a.id, &v.connect), EINVAL);
	vt_take_request(&v);
	VT_MINUS_AS(rdma_connect(v.b.id, &v.connect), EINVAL);
	cr_assert_eq(rdma_accept(v.b.id, &v.accept), 0);
	VT_MINUS_AS(rdma_accept(v.b.id, &v.accept), EINVAL);
	VT_MINUS_AS(rdma_reject(v.b.id, NULL, 0), EINVAL);
	vt_expect(v.a.ch, RDMA_CM_EVENT_ESTABLISHED);
	vt_expect(v.b.ch, RDMA_CM_EVENT_ESTABLISHED);
	VT_MINUS_AS(rdma_connect(v.a.id, &v.connect), EINVAL);
	VT_MINUS_AS(rdma_accept(v.a.id, &v.accept), EINVAL);
	VT_MINUS_AS(rdma_listen(v.a.id, 1), EINVAL);
	cr_expect_eq(rdma_disconnect(v.a.id), 0);
	cr_expect_eq(rdma_disconnect(v.a.id), 0, "%m");
	vt_expect(v.b.ch, RDMA_CM_EVENT_DISCONNECTED);
	cr_expect_eq(rdma_disconnect(v.b.id), 0, "%m");
	vt_expect(v.a.ch, RDMA_CM_EVENT_DISCONNECTED);
	cr_expect_eq(rdma_disconnect(v.a.id), 0, "%m");
	rdma_destroy_qp(v.a.id);
	cr_expect_eq(rdma_disconnect(v.a.id), 0, "the connection was there: %m");
	cr_expect(!vt_readable(v.a.ch->fd, 0), "told once");
	vt_down(&v);
}

/* As much as the interface has room for arrives; more than IRD and ORD can be is cut. */
VT_TLS_TEST(verbs_states, the_longest_private_data_and_the_deepest_queues)
{
	struct rdma_cm_event *e;
	uint8_t data[255];
	struct vt v;

	vt_init(&v);
	for (unsigned i = 0; i < sizeof data; i++)
		data[i] = (uint8_t)(i * 7);
	v.connect = v.accept = (struct rdma_conn_param){ .private_data = data,
							 .private_data_len = sizeof data,
							 .responder_resources = 255,
							 .initiator_depth = 255 };
	vt_listen(&v);
	vt_dial(&v);
	cr_assert_eq(rdma_connect(v.a.id, &v.connect), 0);
	e = vt_event(v.b.ch, RDMA_CM_EVENT_CONNECT_REQUEST);
	cr_expect_eq(e->param.conn.private_data_len, sizeof data);
	cr_expect_arr_eq(e->param.conn.private_data, data, sizeof data);
	cr_expect_eq(e->param.conn.responder_resources, 128);
	cr_expect_eq(e->param.conn.initiator_depth, 128);
	cr_expect_eq(rdma_reject(e->id, data, sizeof data), 0);
	VT_MINUS_AS(rdma_reject(e->id, data, sizeof data), EINVAL);
	cr_expect_eq(rdma_destroy_id(e->id), 0);
	rdma_ack_cm_event(e);
	e = vt_event(v.a.ch, RDMA_CM_EVENT_REJECTED);
	cr_expect_eq(e->param.conn.private_data_len, sizeof data);
	cr_expect_arr_eq(e->param.conn.private_data, data, sizeof data);
	rdma_ack_cm_event(e);
	VT_MINUS_AS(rdma_connect(v.a.id, &v.connect), EINVAL);
	vt_down(&v);
}

/* ---- other channels ---- */

/* Where it is already: the event that waits there stays, once. */
Test(verbs_states, an_identifier_moves_to_its_own_channel, .timeout = 30)
{
	struct rdma_event_channel *ch = rdma_create_event_channel();
	struct sockaddr_in a4 = { AF_INET, 0, { htonl(INADDR_LOOPBACK) }, { 0 } };
	struct rdma_cm_id *id = make_fresh_verbs_states(ch);

	cr_assert_eq(rdma_resolve_addr(id, NULL, (struct sockaddr *)&a4, 1), 0);
	cr_expect_eq(rdma_migrate_id(id, ch), 0);
	vt_expect(ch, RDMA_CM_EVENT_ADDR_RESOLVED);
	cr_expect(!vt_readable(ch->fd, 0));
	cr_expect_eq(rdma_destroy_id(id), 0);
	rdma_destroy_event_channel(ch);
}

/* A request that waits goes with its listener, and leads to the new channel alone. */
VT_TLS_TEST(verbs_states, a_listener_moves_with_its_requests)
{
	struct rdma_event_channel *ch = rdma_create_event_channel(), *old;
	struct vt v;

	vt_init(&v);
	vt_listen(&v);
	vt_dial(&v);
	cr_assert_eq(rdma_connect(v.a.id, &v.connect), 0);
	cr_assert(vt_readable(v.b.ch->fd, VT_MS));
	cr_assert_eq(rdma_migrate_id(v.listen, ch), 0);
	old = v.b.ch;
	cr_expect(!vt_readable(old->fd, 0));
	rdma_destroy_event_channel(old);
	v.b.ch = ch;
	vt_take_request(&v);
	cr_expect_eq(v.b.id->channel, ch);
	cr_assert_eq(rdma_accept(v.b.id, &v.accept), 0);
	vt_expect(v.a.ch, RDMA_CM_EVENT_ESTABLISHED);
	vt_expect(v.b.ch, RDMA_CM_EVENT_ESTABLISHED);
	vt_down(&v);
}
