/* SPDX-License-Identifier: BSD-2-Clause */
/* When a connection is given up: a Send that finds no receive, a peer whose host has vanished. */
#include "edge/ed.h"
#include "support/descriptor.h"
#include "verbs/vchild.h"
#include "verbs/vt.h"
#include "verbs/ib/vd_qp.h"
#include "verbs/vd.h"
#include "verbs/vud.h"
#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static struct vt v;

/* ---- a Send without a receive ---- */

#define HOUR UINT64_C(3600000)

static uint64_t waiting_at(const struct vt_end *e)
{
	struct ddps_ep_stats st = { .struct_size = sizeof st };

	cr_assert_eq(ddps_ep_stats(vd_of(e->id->qp, struct vd_qp, qp.qp_base)->ep, &st), 0);
	return st.stalls;
}

/* One of the active end waits at the passive one, which says @retries; nothing has looked at it. */
static void begin_stall(uint8_t retries)
{
	setenv("DDPSESS_STRICT", "on", 1);
	setenv("DDPSESS_FACE", "roce", 1);
	vt_init(&v);
	v.connect.rnr_retry_count = v.accept.rnr_retry_count = retries;
	vt_up(&v);
	cr_assert_eq(vt_post(&v.a, 5, IBV_WR_SEND, 8, NULL), 0);
	for (int i = 0; !waiting_at(&v.b) && i < VT_MS; i++)
		poll(NULL, 0, 1);
	cr_assert_eq(waiting_at(&v.b), 1);
}

static void begin_waiting(uint8_t retries)
{
	begin_stall(retries);
	ed_rnr_due(ed_ms());
}

/* It came and went between two looks. */
VT_TEST(verbs_gives_up, contact_29_a_stall_that_is_over_is_none)
{
	begin_stall(6);
	cr_assert_eq(vt_recv(&v.b, 6, 0, 8), 0);
	vt_expect_wc(&v.b, 6, IBV_WC_RECV, IBV_WC_SUCCESS);
	vt_expect_wc(&v.a, 5, IBV_WC_SEND, IBV_WC_SUCCESS);
	ed_rnr_due(ed_ms());
	ed_rnr_due(ed_ms() + HOUR);
	cr_expect_eq(v.b.id->qp->state, IBV_QPS_RTS);
	vt_down(&v);
}

VT_TEST(verbs_gives_up, contact_29_a_send_without_a_receive_gives_up)
{
	begin_waiting(6);
	ed_rnr_due(ed_ms() + HOUR);
	vt_expect_wc(&v.a, 5, IBV_WC_SEND, IBV_WC_RNR_RETRY_EXC_ERR);
	vt_expect(v.a.ch, RDMA_CM_EVENT_DISCONNECTED);
	vt_down(&v);
}

/* By the clock: 2 times 0.66 s. */
VT_TEST(verbs_gives_up, contact_29_the_time_to_give_up_comes_by_itself)
{
	begin_waiting(2);
	vt_expect_wc(&v.a, 5, IBV_WC_SEND, IBV_WC_RNR_RETRY_EXC_ERR);
	vt_down(&v);
}

VT_TEST(verbs_gives_up, contact_29_seven_tries_are_for_ever)
{
	begin_waiting(7);
	ed_rnr_due(ed_ms() + HOUR);
	cr_assert_eq(vt_recv(&v.b, 6, 0, 8), 0);
	vt_expect_wc(&v.b, 6, IBV_WC_RECV, IBV_WC_SUCCESS);
	vt_expect_wc(&v.a, 5, IBV_WC_SEND, IBV_WC_SUCCESS);
	vt_down(&v);
}

/* What has found its receive does not count any more. */
VT_TEST(verbs_gives_up, contact_29_a_receive_in_time_is_enough)
{
	begin_waiting(6);
	cr_assert_eq(vt_recv(&v.b, 6, 0, 8), 0);
	vt_expect_wc(&v.b, 6, IBV_WC_RECV, IBV_WC_SUCCESS);
	vt_expect_wc(&v.a, 5, IBV_WC_SEND, IBV_WC_SUCCESS);
	ed_rnr_due(ed_ms() + HOUR);
	cr_expect_eq(v.b.id->qp->state, IBV_QPS_RTS);
	cr_assert_eq(vt_recv(&v.b, 7, 0, 8), 0);
	cr_assert_eq(vt_post(&v.a, 8, IBV_WR_SEND, 8, NULL), 0);
	vt_expect_wc(&v.b, 7, IBV_WC_RECV, IBV_WC_SUCCESS);
	vt_down(&v);
}

/* Nothing wakes where nothing can run out; else a few times in the time that a Send may wait. */
VT_TEST(verbs_gives_up, contact_29_the_clock_rests_where_a_send_may_wait_for_ever)
{
	uint64_t now;

	begin_stall(7);
	cr_expect_eq(ed_rnr_due(ed_ms()), UINT64_MAX);
	vt_down(&v);
	cr_expect_eq(ed_rnr_due(ed_ms()), UINT64_MAX);
	begin_stall(1);
	now = ed_ms();
	cr_expect_eq(ed_rnr_due(now), now + 656 / 8);
	vt_down(&v);
}

VT_TEST(verbs_gives_up, contact_29_on_iwarp_it_ends_the_connection)
{
	setenv("DDPSESS_STRICT", "on", 1);
	vt_init(&v);
	v.access &= ~(unsigned)IBV_ACCESS_REMOTE_ATOMIC;
	vt_up(&v);
	cr_assert_eq(vt_post(&v.a, 5, IBV_WR_SEND, 8, NULL), 0);
	vt_expect(v.b.ch, RDMA_CM_EVENT_DISCONNECTED);
	vt_expect(v.a.ch, RDMA_CM_EVENT_DISCONNECTED);
	vt_down(&v);
}

static void miss_receive(const void *arg)
{
	const bool iwarp = !strcmp(arg, "iwarp");

	if (iwarp) {
		setenv("DDPSESS_STRICT", "on", 1);
		vt_init(&v);
		v.access &= ~(unsigned)IBV_ACCESS_REMOTE_ATOMIC;
		vt_up(&v);
		cr_assert_eq(vt_post(&v.a, 5, IBV_WR_SEND, 8, NULL), 0);
	} else {
		begin_waiting(6);
		ed_rnr_due(ed_ms() + HOUR);
	}
	vt_expect(v.a.ch, RDMA_CM_EVENT_DISCONNECTED);
	vt_down(&v);
}

VT_TEST(verbs_gives_up, a_missing_receive_is_said)
{
	static const char *const faces[] = { "iwarp", "roce" };
	const char *told;

	for (int i = 0; i < 2; i++) {
		cr_expect_eq(vchild_run(miss_receive, faces[i], &told), 0, "%s", told);
		cr_expect_eq(vchild_times(told, ": a Send of the peer has no receive"), 1, "%s",
			     told);
		cr_expect_eq(vchild_times(told, "ddpsess: queue pair "), 2, "%s", told);
		cr_expect_eq(vchild_times(told, "ddpsess: "), 2, "%s", told);
	}
}

/* ---- a peer whose host has vanished ---- */

/* One try, of the time that Linux's connection manager gives: about a second. */
static void up_impatient(const char *face)
{
	setenv("DDPSESS_STRICT", "on", 1);
	setenv("DDPSESS_FACE", face, 1);
	vt_init(&v);
	if (!strcmp(face, "iwarp"))
		v.access &= ~(unsigned)IBV_ACCESS_REMOTE_ATOMIC;
	v.connect.retry_count = 0;
	v.accept.rnr_retry_count = 7;
	vt_up(&v);
}

VT_TEST(verbs_gives_up, contact_29_who_sends_to_a_vanished_host_gives_up)
{
	struct ibv_qp_init_attr init;
	struct ibv_qp_attr attr;
	struct ibv_wc wc;

	up_impatient("roce");
	cr_assert_eq(ibv_query_qp(v.a.id->qp, &attr, IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT, &init), 0);
	cr_expect_eq(attr.timeout, 18);
	cr_expect_eq(attr.retry_cnt, 0);
	cut_network();
	for (uint64_t i = 5; i < 7; i++)
		cr_assert_eq(vt_post(&v.a, i, IBV_WR_SEND, 8, NULL), 0);
	wc = vt_wc(&v.a);
	cr_expect_eq(wc.wr_id, 5);
	cr_expect_eq(wc.status, IBV_WC_RETRY_EXC_ERR, "%s", ibv_wc_status_str(wc.status));
	cr_expect_eq(wc.vendor_err, 6);
	vt_expect_wc(&v.a, 6, IBV_WC_SEND, IBV_WC_WR_FLUSH_ERR);
	vt_expect(v.a.ch, RDMA_CM_EVENT_DISCONNECTED);
	cr_expect_eq(v.a.id->qp->state, IBV_QPS_ERR);
	vt_down(&v);
}

/* The same time and longer, but it is the program that takes nothing. */
VT_TEST(verbs_gives_up, contact_29_a_peer_that_does_not_poll_has_not_vanished)
{
	up_impatient("roce");
	cr_assert_eq(vt_post(&v.a, 5, IBV_WR_SEND, 8, NULL), 0);
	cr_expect(!vt_readable(v.a.ch->fd, 2500));
	cr_assert_eq(vt_recv(&v.b, 6, 0, 8), 0);
	vt_expect_wc(&v.b, 6, IBV_WC_RECV, IBV_WC_SUCCESS);
	vt_expect_wc(&v.a, 5, IBV_WC_SEND, IBV_WC_SUCCESS);
	vt_down(&v);
}

/* 0 is for ever. */
VT_TEST(verbs_gives_up, contact_29_the_time_is_the_programs_own)
{
	struct vd_qp *qp;

	up_impatient("roce");
	qp = vd_of(v.a.id->qp, struct vd_qp, qp.qp_base);
	qp->said.timeout = 0;
	vd_qp_answer(qp);
	cut_network();
	cr_assert_eq(vt_post(&v.a, 5, IBV_WR_SEND, 8, NULL), 0);
	cr_expect(!vt_readable(v.a.ch->fd, 2500));
	qp->said.timeout = 1; /* no less than a second */
	vd_qp_answer(qp);
	vt_expect_wc(&v.a, 5, IBV_WC_SEND, IBV_WC_RETRY_EXC_ERR);
	vt_down(&v);
}

/* On iWARP it is the transport that gives up, as on such an adapter. */
VT_TEST(verbs_gives_up, contact_29_on_iwarp_the_transport_gives_up)
{
	up_impatient("iwarp");
	cut_network();
	cr_assert_eq(vt_post(&v.a, 5, IBV_WR_RDMA_READ, 8, &v.b), 0);
	cr_expect(!vt_readable(v.a.ch->fd, 2500));
	vt_down(&v);
}

/* ---- no qp ---- */

/*
 * A queue pair goes while its connection is being made: whoever waits for the beginning learns that there will
 * be none, and so does the peer.
 */

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
