/* SPDX-License-Identifier: BSD-2-Clause */
/* What the library reports of connections, case by case: what the program gets of it. */
#include "support/child.h"
#include "verbs/vd.h"
#include "verbs/vfail.h"
#include "verbs/vt.h"
#include <errno.h>
#include <string.h>

static void give_library_event(const struct ddps_event *ev)
{
	struct vd_process *p = vd_process();

	ddps_lock(&p->lock);
	vd_conn_event(p, ev);
	ddps_unlock(&p->lock);
}

static struct vd_qp *get_verbs_told_qp(const struct vt_end *e)
{
	return vd_of(e->id->qp, struct vd_qp, qp.qp_base);
}

/* Of a caller whose peer was never asked. */
static void failed_by(struct vt *v, int code, int sys_errno, enum rdma_cm_event_type type,
		      int status)
{
	struct ddps_event ev = { .type = DDPS_EV_FAILED,
				 .error = { .code = code, .sys_errno = sys_errno } };
	struct rdma_cm_event *e;

	vt_dial(v);
	ev.user = get_verbs_told_qp(&v->a);
	give_library_event(&ev);
	e = vt_event(v->a.ch, type);
	cr_expect_eq(e->status, status, "%d: %d", code, e->status);
	rdma_ack_cm_event(e);
	cr_expect_eq(v->a.id->qp->state, IBV_QPS_ERR);
	vt_end_down(&v->a);
}

static void accepted_fails(struct vt *v, int code, enum rdma_cm_event_type type, int status)
{
	struct ddps_event ev = { .type = DDPS_EV_FAILED, .error = { .code = code } };
	struct rdma_cm_event *e;

	vt_dial(v);
	vd_of(v->a.id, struct vd_id, id)->state = VD_ID_ACCEPTING;
	ev.user = get_verbs_told_qp(&v->a);
	give_library_event(&ev);
	e = vt_event(v->a.ch, type);
	cr_expect_eq(e->status, status, "%d: %d", code, e->status);
	rdma_ack_cm_event(e);
	vt_end_down(&v->a);
}

VT_TLS_TEST(verbs_told, why_an_accepted_connection_failed_on_roce)
{
	struct vt v;

	setenv("DDPSESS_FACE", "roce", 1);
	vt_init(&v);
	vt_listen(&v);
	accepted_fails(&v, DDPS_E_RESET, RDMA_CM_EVENT_REJECTED, 28);
	accepted_fails(&v, DDPS_E_TIMEDOUT, RDMA_CM_EVENT_UNREACHABLE, -ETIMEDOUT);
	vt_down(&v);
}

VT_TLS_TEST(verbs_told, why_an_accepted_connection_failed_on_iwarp)
{
	struct vt v;

	vt_init(&v);
	vt_listen(&v);
	accepted_fails(&v, DDPS_E_RESET, RDMA_CM_EVENT_CONNECT_ERROR, -ECONNRESET);
	accepted_fails(&v, DDPS_E_TIMEDOUT, RDMA_CM_EVENT_CONNECT_ERROR, -ETIMEDOUT);
	vt_down(&v);
}

VT_TLS_TEST(verbs_told, why_a_connection_failed)
{
	struct vt v;

	vt_init(&v);
	vt_listen(&v);
	failed_by(&v, DDPS_E_REFUSED, 0, RDMA_CM_EVENT_REJECTED, -ECONNREFUSED);
	failed_by(&v, DDPS_E_RESET, 0, RDMA_CM_EVENT_REJECTED, -ECONNRESET);
	failed_by(&v, DDPS_E_TIMEDOUT, 0, RDMA_CM_EVENT_UNREACHABLE, -ETIMEDOUT);
	failed_by(&v, DDPS_E_SYSTEM, ENETUNREACH, RDMA_CM_EVENT_CONNECT_ERROR, -ENETUNREACH);
	failed_by(&v, DDPS_E_PROTOCOL, 0, RDMA_CM_EVENT_CONNECT_ERROR, -EINVAL);
	vt_down(&v);
}

/* What rdma_cm has one octet for is cut to what fits. */
VT_TLS_TEST(verbs_told, private_data_that_is_too_long)
{
	struct ddps_event ev = { .type = DDPS_EV_REJECTED, .private_data_len = 256 };
	struct rdma_cm_event *e;
	struct vt v;

	vt_init(&v);
	vt_listen(&v);
	vt_dial(&v);
	memset(ev.private_data, 'x', sizeof ev.private_data);
	ev.user = get_verbs_told_qp(&v.a);
	give_library_event(&ev);
	e = vt_event(v.a.ch, RDMA_CM_EVENT_REJECTED);
	cr_expect_eq(e->status, -ECONNREFUSED);
	cr_expect_eq(e->param.conn.private_data_len, 255);
	cr_expect_eq(((const char *)e->param.conn.private_data)[254], 'x');
	rdma_ack_cm_event(e);
	vt_down(&v);
}

/* Which error a Terminate is: of an access, or any other; of the peer's it is not said. */
VT_TLS_TEST(verbs_told, terminates)
{
	static const struct {
		bool has, by_peer;
		uint8_t layer, etype;
		enum ibv_event_type type;
	} all[] = {
		{ true, false, 0, 1, IBV_EVENT_QP_ACCESS_ERR },
		{ true, false, 1, 1, IBV_EVENT_QP_ACCESS_ERR },
		{ true, false, 0, 2, IBV_EVENT_QP_FATAL },
		{ true, false, 1, 2, IBV_EVENT_QP_FATAL },
		{ true, false, 2, 1, IBV_EVENT_QP_FATAL },
		{ false, false, 0, 1, IBV_EVENT_QP_FATAL },
		{ true, true, 0, 1, IBV_EVENT_QP_FATAL },
	};
	struct vt v;

	vt_init(&v);
	vt_up(&v);
	for (size_t i = 0; i < sizeof all / sizeof *all; i++) {
		struct ddps_event ev = { .type = DDPS_EV_TERMINATED,
					 .user = get_verbs_told_qp(&v.a) };
		struct ibv_async_event e;

		ev.error.has_triple = all[i].has;
		ev.error.by_peer = all[i].by_peer;
		ev.error.triple.layer = all[i].layer;
		ev.error.triple.etype = all[i].etype;
		give_library_event(&ev);
		e = vt_async(v.a.id->verbs, all[i].type);
		cr_expect_eq(e.element.qp, v.a.id->qp);
		ibv_ack_async_event(&e);
	}
	vt_down(&v);
}

/* An orderly end that has a Terminate is an end, and what nobody knows is nothing. */
VT_TLS_TEST(verbs_told, ends_and_unknown_events)
{
	struct ddps_event ev = { .type = (enum ddps_event_type)99 };
	struct vt v;

	vt_init(&v);
	vt_up(&v);
	give_library_event(&ev);
	ev.user = get_verbs_told_qp(&v.a);
	give_library_event(&ev);
	cr_expect_eq(v.a.id->qp->state, IBV_QPS_RTS);
	cr_expect_not(vt_readable(v.a.ch->fd, 0));
	ev.type = DDPS_EV_CLOSED;
	ev.error.has_triple = true;
	give_library_event(&ev);
	cr_expect_eq(v.a.id->qp->state, IBV_QPS_ERR);
	vt_expect(v.a.ch, RDMA_CM_EVENT_DISCONNECTED);
	vt_down(&v);
}

/* A listener that cannot go on is reported as a device that has gone: rdma_get_request fails then. */
VT_TLS_TEST(verbs_told, a_listener_that_has_failed)
{
	struct ddps_event ev = { .type = DDPS_EV_LISTENER_FAILED };
	struct rdma_cm_id *id, *got;
	struct rdma_cm_event *e;
	struct vt v;

	vt_init(&v);
	vt_listen(&v);
	ev.user = vd_id_of(v.listen);
	give_library_event(&ev);
	e = vt_event(v.b.ch, RDMA_CM_EVENT_DEVICE_REMOVAL);
	cr_expect_eq(e->status, -ENODEV);
	cr_expect_eq(e->id, v.listen);
	rdma_ack_cm_event(e);
	vt_down(&v);
	cr_assert_eq(rdma_create_id(NULL, &id, NULL, RDMA_PS_TCP), 0);
	cr_assert_eq(rdma_listen(id, 1), 0);
	ev.user = vd_id_of(id);
	give_library_event(&ev);
	VT_MINUS_AS(rdma_get_request(id, &got), EINVAL);
	cr_expect_eq(rdma_destroy_id(id), 0);
}

/* In a child: whether it is refused. */
static int is_refused(__be16 port)
{
	struct sockaddr_in a4 = { .sin_family = AF_INET, .sin_port = port };
	struct rdma_conn_param conn = { 0 };
	struct rdma_cm_id *id;

	a4.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
	if (rdma_create_id(NULL, &id, NULL, RDMA_PS_TCP) ||
	    rdma_resolve_addr(id, NULL, (struct sockaddr *)&a4, 1000) ||
	    rdma_resolve_route(id, 1000))
		return 1;
	return rdma_connect(id, &conn) == -1 && errno == ECONNREFUSED ? 0 : 2;
}

struct caller {
	pid_t pid;
	int to; /* which port */
};

/* Made while there are no threads yet: a child of one that has some may find their locks taken. */
static struct caller caller_new(void)
{
	struct caller c;
	__be16 port;
	int fds[2];

	cr_assert_eq(pipe(fds), 0);
	c.pid = fork();
	c.to = fds[1];
	if (!c.pid && !close(fds[1]))
		_exit(read(fds[0], &port, sizeof port) == sizeof port ? is_refused(port) : 3);
	close(fds[0]);
	return c;
}

static void call_verbs_told(struct caller *c, struct rdma_cm_id *id)
{
	__be16 port = rdma_get_src_port(id);

	cr_assert_eq(write(c->to, &port, sizeof port), sizeof port);
	close(c->to);
}

/* A listener at any address has no device yet.  A request that finds no memory for one is refused,
 * and the next one is reported. */
VT_TLS_TEST(verbs_told, a_request_that_finds_no_device)
{
	struct caller first = caller_new(), second = caller_new();
	struct rdma_event_channel *ch = rdma_create_event_channel();
	struct rdma_cm_event *e;
	struct rdma_cm_id *id;

	cr_assert_eq(rdma_create_id(ch, &id, NULL, RDMA_PS_TCP), 0);
	cr_assert_eq(rdma_listen(id, 0), 0);
	vfail_size_anywhere(sizeof(struct vd_context));
	call_verbs_told(&first, id);
	cr_expect_eq(await_child_status(first.pid), 0);
	cr_expect(vfail_came());
	cr_expect_not(vt_readable(ch->fd, 0));
	call_verbs_told(&second, id);
	e = vt_event(ch, RDMA_CM_EVENT_CONNECT_REQUEST);
	cr_expect_not_null(e->id->verbs);
	cr_expect_eq(rdma_reject(e->id, NULL, 0), 0);
	cr_expect_eq(await_child_status(second.pid), 0);
	id = e->listen_id;
	{
		struct rdma_cm_id *peer = e->id;

		rdma_ack_cm_event(e);
		cr_expect_eq(rdma_destroy_id(peer), 0);
	}
	cr_expect_eq(rdma_destroy_id(id), 0);
	rdma_destroy_event_channel(ch);
}

/* Of a caller that comes while there is no memory for it the listener gets nothing; the caller is
 * refused. */
VT_TLS_TEST(verbs_told, a_request_that_finds_no_memory)
{
	struct vt v;

	vt_init(&v);
	vt_listen(&v);
	vt_dial(&v);
	vfail_size_anywhere(sizeof(struct vd_id));
	cr_assert_eq(rdma_connect(v.a.id, &v.connect), 0);
	vt_expect(v.a.ch, RDMA_CM_EVENT_REJECTED);
	cr_expect(vfail_came());
	cr_expect_not(vt_readable(v.b.ch->fd, 0));
	vt_down(&v);
}

/* From nobody, without memory for it, or where nothing listens. */
Test(verbs_told, requests_from_nobody, .timeout = 60)
{
	struct rdma_event_channel *ch;
	struct rdma_cm_id *id, *peer;
	struct rdma_cm_event *e;

	vf_use("on rdma_listen: event CONNECT_REQUEST\non rdma_bind_addr: event CONNECT_REQUEST\n");
	ch = rdma_create_event_channel();
	for (int i = 0; i < 3; i++) {
		cr_assert_eq(rdma_create_id(ch, &id, NULL, RDMA_PS_TCP), 0);
		vfail_size(i == 0 ? sizeof(struct vd_id) : i == 1 ? sizeof(struct vd_context) : 0);
		cr_assert_eq(rdma_listen(id, 0), 0);
		cr_expect_eq(vfail_came(), i < 2);
		cr_expect_eq(vt_readable(ch->fd, 0), i == 2, "%d", i);
		if (i == 2)
			cr_expect_eq(rdma_get_cm_event(ch, &e), 0);
		if (i == 2) {
			cr_expect_eq(e->listen_id, id);
			peer = e->id;
			cr_expect_neq(peer, id);
			rdma_ack_cm_event(e);
			cr_expect_eq(rdma_destroy_id(peer), 0);
		}
		cr_expect_eq(rdma_destroy_id(id), 0);
	}
	cr_assert_eq(rdma_create_id(ch, &id, NULL, RDMA_PS_TCP), 0);
	cr_assert_eq(rdma_bind_addr(
			     id, (struct sockaddr *)&(struct sockaddr_in){ .sin_family = AF_INET }),
		     0);
	e = vt_event(ch, RDMA_CM_EVENT_CONNECT_REQUEST);
	cr_expect_neq(e->id, id, "a program may accept it");
	cr_expect_eq(e->listen_id, id);
	peer = e->id;
	rdma_ack_cm_event(e);
	cr_expect_eq(rdma_destroy_id(peer), 0);
	cr_expect_eq(rdma_destroy_id(id), 0);
	rdma_destroy_event_channel(ch);
}

/* A request that cannot be handed out is refused: nobody else would ever answer it. */
VT_TLS_TEST(verbs_told, a_request_that_nobody_gets)
{
	struct caller caller = caller_new();
	struct rdma_cm_id *id, *got;

	cr_assert_eq(rdma_create_id(NULL, &id, NULL, RDMA_PS_TCP), 0);
	cr_assert_eq(rdma_listen(id, 1), 0);
	call_verbs_told(&caller, id);
	cr_assert(vt_readable(id->channel->fd, VT_MS));
	vfail_nth(VFAIL_EVENTFD, 1);
	VT_MINUS_AS(rdma_get_request(id, &got), EMFILE);
	cr_expect(vfail_came());
	cr_expect_eq(await_child_status(caller.pid), 0, "it hears that it is refused");
	cr_expect_eq(rdma_destroy_id(id), 0);
}
