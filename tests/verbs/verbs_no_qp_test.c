/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A queue pair goes while its connection is being made: whoever waits for the beginning learns that there will
 * be none, and so does the peer.
 */
#include "support/cut.h"
#include "verbs/vd.h"
#include "verbs/vud.h"
#include <errno.h>
#include <stdlib.h>
#include <string.h>

static struct vt v;

/* The active end asks, and the passive one has the request. */
static void ask_without_answer(bool roce)
{
	setenv("DDPSESS_FACE", roce ? "roce" : "iwarp", 1);
	vt_init(&v);
	vt_listen(&v);
	vt_dial(&v);
	cr_assert_eq(rdma_connect(v.a.id, &v.connect), 0);
	vt_take_request(&v);
}

/* The queue pair goes by itself, as that of its identifier. */
static void destroy_qp_of(struct rdma_cm_id *id, bool plain)
{
	if (plain)
		cr_assert_eq(ibv_destroy_qp(id->qp), 0);
	else
		rdma_destroy_qp(id);
	cr_expect_null(id->qp);
}

static void expect_no_beginning(struct rdma_event_channel *ch)
{
	struct rdma_cm_event *e = vt_event(ch, RDMA_CM_EVENT_CONNECT_ERROR);

	cr_expect_eq(e->status, -ECONNABORTED, "%d", e->status);
	rdma_ack_cm_event(e);
}

/* Where the peer has gone an acceptance fails, or is followed by its failure. */
static void accept_in_vain(bool roce)
{
	struct rdma_cm_event *e;

	errno = 0;
	if (rdma_accept(v.b.id, &v.accept)) {
		cr_expect_eq(errno, ECONNRESET, "%m");
		return;
	}
	cr_assert(vt_readable(v.b.ch->fd, VT_MS));
	cr_assert_eq(rdma_get_cm_event(v.b.ch, &e), 0);
	cr_expect(roce ? e->event == RDMA_CM_EVENT_REJECTED || e->event == RDMA_CM_EVENT_UNREACHABLE
		       : e->event == RDMA_CM_EVENT_CONNECT_ERROR,
		  "%s", rdma_event_str(e->event));
	rdma_ack_cm_event(e);
}

static void go_while_connecting(bool roce)
{
	for (int plain = 0; plain < 2; plain++) {
		ask_without_answer(roce);
		destroy_qp_of(v.a.id, plain);
		expect_no_beginning(v.a.ch);
		cr_expect_eq(rdma_disconnect(v.a.id), 0);
		accept_in_vain(roce);
		cr_expect_not(vt_readable(v.a.ch->fd, 0));
		vt_down(&v);
	}
}

VT_TEST(verbs_no_qp, it_goes_while_it_connects)
{
	go_while_connecting(false);
}

VT_TEST(verbs_no_qp, it_goes_while_it_connects_on_roce)
{
	go_while_connecting(true);
}

/* What the initiator says to the acceptance does not come. */
static void go_while_accepting(bool roce)
{
	ask_without_answer(roce);
	cut_network();
	cr_assert_eq(rdma_accept(v.b.id, &v.accept), 0, "%m");
	destroy_qp_of(v.b.id, roce);
	expect_no_beginning(v.b.ch);
	cr_expect_not(vt_readable(v.b.ch->fd, 0));
	vt_down(&v);
}

VT_TEST(verbs_no_qp, it_goes_while_it_is_accepted)
{
	go_while_accepting(false);
}

VT_TEST(verbs_no_qp, it_goes_while_it_is_accepted_on_roce)
{
	go_while_accepting(true);
}

/* The identifier goes with it, and with both what would be said. */
static void go_with_endpoint(bool roce)
{
	for (int accepts = 0; accepts < 2; accepts++) {
		struct vt_end *gone = accepts ? &v.b : &v.a;

		ask_without_answer(roce);
		if (accepts)
			cr_assert_eq(rdma_accept(v.b.id, &v.accept), 0, "%m");
		rdma_destroy_ep(gone->id);
		gone->id = NULL;
		cr_expect_not(vt_readable(gone->ch->fd, 0));
		vt_down(&v);
	}
}

VT_TEST(verbs_no_qp, an_endpoint_goes_before_it_is_up)
{
	go_with_endpoint(false);
}

VT_TEST(verbs_no_qp, an_endpoint_goes_before_it_is_up_on_roce)
{
	go_with_endpoint(true);
}

/* There is a call, and no connection: nothing of it ends. */
Test(verbs_no_qp, of_a_datagram_identifier_goes_without_an_event, .timeout = 60)
{
	struct ibv_qp_init_attr init = { .qp_type = IBV_QPT_UD, .cap = { 4, 4, 1, 1, 0 } };
	struct sockaddr_in to = { .sin_family = AF_INET };
	struct rdma_event_channel *ch[2] = { rdma_create_event_channel(),
					     rdma_create_event_channel() };
	struct rdma_conn_param param = { 0 };
	struct rdma_cm_id *listen, *id, *other;
	struct rdma_cm_event *e;

	to.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
	cr_assert_eq(rdma_create_id(ch[1], &listen, NULL, RDMA_PS_UDP), 0);
	cr_assert_eq(rdma_bind_addr(listen, (struct sockaddr *)&to), 0);
	cr_assert_eq(rdma_listen(listen, 4), 0);
	to.sin_port = rdma_get_src_port(listen);
	cr_assert_eq(rdma_create_id(ch[0], &id, NULL, RDMA_PS_UDP), 0);
	cr_assert_eq(rdma_resolve_addr(id, NULL, (struct sockaddr *)&to, 2000), 0);
	vt_expect(ch[0], RDMA_CM_EVENT_ADDR_RESOLVED);
	cr_assert_eq(rdma_resolve_route(id, 2000), 0);
	vt_expect(ch[0], RDMA_CM_EVENT_ROUTE_RESOLVED);
	cr_assert_eq(rdma_create_qp(id, NULL, &init), 0, "%m");
	cr_assert_eq(rdma_connect(id, &param), 0);
	e = vt_event(ch[1], RDMA_CM_EVENT_CONNECT_REQUEST);
	other = e->id;
	rdma_ack_cm_event(e);
	cr_assert_eq(rdma_create_qp(other, NULL, &init), 0, "%m");
	param.qp_num = other->qp->qp_num;
	cr_assert_eq(rdma_accept(other, &param), 0);
	vt_expect(ch[0], RDMA_CM_EVENT_ESTABLISHED);
	rdma_destroy_qp(id);
	rdma_destroy_qp(other);
	cr_expect_not(vt_readable(ch[0]->fd, 0));
	cr_expect_not(vt_readable(ch[1]->fd, 0));
	rdma_destroy_ep(id);
	rdma_destroy_ep(other);
	rdma_destroy_id(listen);
	rdma_destroy_event_channel(ch[0]);
	rdma_destroy_event_channel(ch[1]);
}
