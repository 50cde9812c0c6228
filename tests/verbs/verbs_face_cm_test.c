/* SPDX-License-Identifier: BSD-2-Clause */
/* rdma_cm with the face of RoCE: what InfiniBand's connection manager says, and how much it carries. */
#include "verbs/vt.h"
#include "verbs/vd.h"
#include <errno.h>
#include <stdlib.h>
#include <string.h>

enum { NO_SERVICE = 8, CONSUMER = 28, REQ = 56, REP = 196, REJ = 148 };

static uint8_t octets[255];

static void begin_verbs_face_cm(struct vt *v, const char *face)
{
	setenv("DDPSESS_FACE", face, 1);
	for (unsigned i = 0; i < sizeof octets; i++)
		octets[i] = (uint8_t)(i + 1);
	vt_init(v);
	vt_listen(v);
	vt_dial(v);
}

static void set_private_data(struct rdma_conn_param *c, unsigned len)
{
	c->private_data = octets;
	c->private_data_len = (uint8_t)len;
}

/* What was said, and zeros behind it. */
static void expect_heard(const struct rdma_cm_event *e, unsigned said, unsigned room)
{
	const uint8_t *heard = e->param.conn.private_data;

	cr_assert_eq(e->param.conn.private_data_len, room, "%u", e->param.conn.private_data_len);
	cr_expect_eq(memcmp(heard, octets, said), 0);
	for (unsigned i = said; i < room; i++)
		cr_expect_eq(heard[i], 0);
}

static struct rdma_cm_event *ask_faced_peer(struct vt *v)
{
	struct rdma_cm_event *e;

	cr_assert_eq(rdma_connect(v->a.id, &v->connect), 0);
	e = vt_event(v->b.ch, RDMA_CM_EVENT_CONNECT_REQUEST);
	v->b.id = e->id;
	return e;
}

static void refuse_faced_request(const char *face, int status, unsigned len)
{
	struct rdma_cm_event *e;
	struct vt v;

	begin_verbs_face_cm(&v, face);
	rdma_ack_cm_event(ask_faced_peer(&v));
	cr_assert_eq(rdma_reject(v.b.id, octets, 2), 0);
	e = vt_event(v.a.ch, RDMA_CM_EVENT_REJECTED);
	cr_expect_eq(e->status, status, "%d", e->status);
	expect_heard(e, 2, len);
	rdma_ack_cm_event(e);
	vt_down(&v);
}

VT_TEST(verbs_face, contact_27_a_program_refuses_by_the_reason_of_infiniband)
{
	refuse_faced_request("roce", CONSUMER, REJ);
}

VT_TEST(verbs_face, contact_27_a_program_refuses_as_before_with_the_face_of_iwarp)
{
	refuse_faced_request("iwarp", -ECONNREFUSED, 2);
}

/* Its length is not said: no data is all zeros. */
VT_TEST(verbs_face, contact_27_a_refusal_without_data)
{
	struct rdma_cm_event *e;
	struct vt v;

	begin_verbs_face_cm(&v, "roce");
	e = ask_faced_peer(&v);
	expect_heard(e, 0, REQ);
	rdma_ack_cm_event(e);
	cr_assert_eq(rdma_reject(v.b.id, NULL, 9), 0);
	e = vt_event(v.a.ch, RDMA_CM_EVENT_REJECTED);
	expect_heard(e, 0, REJ);
	rdma_ack_cm_event(e);
	vt_down(&v);
}

static void dial_faced_nobody(const char *face, int status)
{
	struct rdma_cm_event *e;
	struct vt v;

	setenv("DDPSESS_RETRY_MS", "1", 1);
	begin_verbs_face_cm(&v, face);
	cr_assert_eq(rdma_destroy_id(v.listen), 0);
	v.listen = NULL;
	cr_assert_eq(rdma_connect(v.a.id, &v.connect), 0);
	e = vt_event(v.a.ch, RDMA_CM_EVENT_REJECTED);
	cr_expect_eq(e->status, status, "%d", e->status);
	rdma_ack_cm_event(e);
	vt_down(&v);
}

VT_TEST(verbs_face, contact_27_nobody_listens_is_a_service_that_is_not_there)
{
	dial_faced_nobody("roce", NO_SERVICE);
}

VT_TEST(verbs_face, contact_27_nobody_listens_as_before_with_the_face_of_iwarp)
{
	dial_faced_nobody("iwarp", -ECONNREFUSED);
}

/* A synchronous call has an errno value for it, whatever the reason. */
VT_TEST(verbs_face, contact_27_a_call_that_waits_is_refused)
{
	struct ibv_qp_init_attr init = { .qp_type = IBV_QPT_RC, .cap = { 1, 1, 1, 1, 0 } };
	struct rdma_cm_id *id;
	struct vt v;

	setenv("DDPSESS_RETRY_MS", "1", 1);
	begin_verbs_face_cm(&v, "roce");
	cr_assert_eq(rdma_destroy_id(v.listen), 0);
	v.listen = NULL;
	cr_assert_eq(rdma_create_id(NULL, &id, NULL, RDMA_PS_TCP), 0);
	cr_assert_eq(rdma_resolve_addr(id, NULL, (struct sockaddr *)&v.addr, 1), 0);
	cr_assert_eq(rdma_resolve_route(id, 1), 0);
	cr_assert_eq(rdma_create_qp(id, NULL, &init), 0);
	VT_MINUS_AS(rdma_connect(id, &v.connect), ECONNREFUSED);
	cr_expect_eq(id->event->status, NO_SERVICE);
	rdma_destroy_qp(id);
	cr_expect_eq(rdma_destroy_id(id), 0);
	vt_down(&v);
}

/* ---- how much private data there is ---- */

VT_TEST(verbs_face, contact_27_messages_have_the_room_of_infinibands)
{
	struct rdma_cm_event *e;
	struct vt v;

	begin_verbs_face_cm(&v, "roce");
	set_private_data(&v.connect, REQ + 1);
	VT_MINUS_AS(rdma_connect(v.a.id, &v.connect), EINVAL);
	set_private_data(&v.connect, REQ);
	e = ask_faced_peer(&v);
	expect_heard(e, REQ, REQ);
	rdma_ack_cm_event(e);
	VT_MINUS_AS(rdma_reject(v.b.id, octets, REJ + 1), EINVAL);
	vt_equip(&v, &v.b);
	set_private_data(&v.accept, REP + 1);
	VT_MINUS_AS(rdma_accept(v.b.id, &v.accept), EINVAL);
	set_private_data(&v.accept, REP);
	cr_assert_eq(rdma_accept(v.b.id, &v.accept), 0, "what was refused can be said anew: %m");
	e = vt_event(v.a.ch, RDMA_CM_EVENT_ESTABLISHED);
	expect_heard(e, REP, REP);
	rdma_ack_cm_event(e);
	e = vt_event(v.b.ch, RDMA_CM_EVENT_ESTABLISHED);
	cr_expect_eq(e->param.conn.private_data_len, 0,
		     "the third message has none of a program's");
	rdma_ack_cm_event(e);
	vt_down(&v);
}

VT_TEST(verbs_face, contact_27_a_refusal_has_room_for_148)
{
	struct rdma_cm_event *e;
	struct vt v;

	begin_verbs_face_cm(&v, "roce");
	set_private_data(&v.connect, 3);
	e = ask_faced_peer(&v);
	expect_heard(e, 3, REQ);
	rdma_ack_cm_event(e);
	cr_assert_eq(rdma_reject(v.b.id, octets, REJ), 0);
	e = vt_event(v.a.ch, RDMA_CM_EVENT_REJECTED);
	expect_heard(e, REJ, REJ);
	rdma_ack_cm_event(e);
	vt_down(&v);
}

/* ---- the end ---- */

static void part(struct vt *v)
{
	cr_assert_eq(rdma_disconnect(v->a.id), 0);
	vt_expect(v->a.ch, RDMA_CM_EVENT_DISCONNECTED);
	vt_expect(v->b.ch, RDMA_CM_EVENT_DISCONNECTED);
}

static void open_faced_pair(struct vt *v, const char *face)
{
	setenv("DDPSESS_FACE", face, 1);
	vt_init(v);
	vt_up(v);
}

VT_TEST(verbs_face, contact_27_a_queue_pair_is_free_when_both_have_ended_it)
{
	struct vt v;

	open_faced_pair(&v, "roce");
	vd_process()->timewait_ms = 1;
	part(&v);
	vt_expect(v.a.ch, RDMA_CM_EVENT_TIMEWAIT_EXIT);
	cr_expect_not(vt_readable(v.b.ch->fd, 0), "it has not answered");
	cr_assert_eq(rdma_disconnect(v.b.id), 0);
	vt_expect(v.b.ch, RDMA_CM_EVENT_TIMEWAIT_EXIT);
	cr_assert_eq(rdma_disconnect(v.b.id), 0);
	cr_assert_eq(rdma_disconnect(v.a.id), 0);
	cr_expect_not(vt_readable(v.a.ch->fd, 0), "once");
	cr_expect_not(vt_readable(v.b.ch->fd, 0), "once");
	vt_down(&v);
}

/* Both end it, and one identifier goes before its time is over: nobody is informed of it. */
VT_TEST(verbs_face, contact_27_the_time_after_the_end_outlives_nobody)
{
	struct vd_process *p;
	struct vt v;

	open_faced_pair(&v, "roce");
	p = vd_process();
	part(&v);
	cr_assert_eq(rdma_disconnect(v.b.id), 0);
	vt_end_down(&v.a);
	ddps_lock(&p->lock);
	cr_assert(!LIST_EMPTY(&p->held));
	cr_expect_null(LIST_NEXT(LIST_FIRST(&p->held), held_link));
	ddps_unlock(&p->lock);
	vt_expect(v.b.ch, RDMA_CM_EVENT_TIMEWAIT_EXIT);
	cr_expect_not(vt_readable(v.a.ch->fd, 0));
	vt_down(&v);
}

VT_TEST(verbs_face, contact_27_there_is_no_such_time_with_the_face_of_iwarp)
{
	struct vd_process *p;
	struct vt v;

	open_faced_pair(&v, "iwarp");
	p = vd_process();
	part(&v);
	cr_assert_eq(rdma_disconnect(v.b.id), 0);
	ddps_lock(&p->lock);
	cr_expect(LIST_EMPTY(&p->held), "nothing is due");
	ddps_unlock(&p->lock);
	cr_expect_not(vt_readable(v.a.ch->fd, 0));
	cr_expect_not(vt_readable(v.b.ch->fd, 0));
	vt_down(&v);
}

/* ---- faults on demand ---- */

static void by_rule(const char *face, int status)
{
	struct rdma_cm_event *e;
	struct vt v;

	setenv("DDPSESS_FACE", face, 1);
	vf_use("on rdma_connect: event REJECTED\n");
	vt_init(&v);
	vt_listen(&v);
	vt_dial(&v);
	cr_assert_eq(rdma_connect(v.a.id, &v.connect), 0);
	e = vt_event(v.a.ch, RDMA_CM_EVENT_REJECTED);
	cr_expect_eq(e->status, status, "%d", e->status);
	rdma_ack_cm_event(e);
	vt_down(&v);
}

Test(verbs_face, contact_27_a_rule_refuses_as_the_face_does, .timeout = 60)
{
	by_rule("roce", CONSUMER);
}

Test(verbs_face, contact_27_a_rule_refuses_as_before, .timeout = 60)
{
	by_rule("iwarp", -ECONNREFUSED);
}

VT_TEST(verbs_face, contact_27_a_message_ends_at_max_msg_sz)
{
	struct ibv_sge half[2];
	struct ibv_send_wr wr = { .sg_list = half, .num_sge = 2, .opcode = IBV_WR_SEND }, *bad;
	struct ibv_port_attr port;
	struct vt v;

	open_faced_pair(&v, "roce");
	cr_assert_eq(ibv_query_port(v.a.id->verbs, 1, &port), 0);
	cr_expect_eq(port.max_msg_sz, 1u << 31);
	half[0] = half[1] = (struct ibv_sge){ (uintptr_t)v.a.buf, 1u << 30, v.a.mr->lkey };
	half[1].length++;
	cr_expect_eq(ibv_post_send(v.a.id->qp, &wr, &bad), EINVAL);
	cr_expect_eq(bad, &wr);
	/* nothing has ended by it */
	half[0].length = 8;
	wr.num_sge = 1;
	wr.send_flags = IBV_SEND_SIGNALED;
	cr_assert_eq(vt_recv(&v.b, 7, 0, 64), 0);
	cr_assert_eq(ibv_post_send(v.a.id->qp, &wr, &bad), 0);
	vt_expect_wc(&v.a, 0, IBV_WC_SEND, IBV_WC_SUCCESS);
	vt_down(&v);
}

VT_TEST(verbs_face, contact_27_an_iwarp_device_takes_what_ddp_can_carry)
{
	struct ibv_port_attr port;
	struct vt v;

	open_faced_pair(&v, "iwarp");
	cr_assert_eq(ibv_query_port(v.a.id->verbs, 1, &port), 0);
	cr_expect_eq(port.max_msg_sz, UINT32_MAX);
	vt_down(&v);
}
