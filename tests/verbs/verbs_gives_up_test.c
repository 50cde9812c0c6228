/* SPDX-License-Identifier: BSD-2-Clause */
/* When a connection is given up: a Send that finds no receive, a peer whose host has vanished. */
#include "edge/ed.h"
#include "support/cut.h"
#include "verbs/vchild.h"
#include "verbs/vt.h"
#include "verbs/ib/vd_qp.h"
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
