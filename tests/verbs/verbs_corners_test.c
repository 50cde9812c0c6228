/* SPDX-License-Identifier: BSD-2-Clause */
/* Calls of libibverbs and librdmacm where something is missing, odd, or another's. */
#include "support/child.h"
#include "edge/ed.h"
#include "verbs/vfail.h"
#include "verbs/voob.h"
#include "verbs/vt.h"
#include "verbs/vud.h"
#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <stdlib.h>
#include <unistd.h>

/* ---- profiles ---- */

static const char small[] = "device a0\nlimit max_qp 1\nport 1\nmtu 2048\nport 2\nmtu 1024\n"
			    "device b0\nface roce\nport 1\ninterface nonesuch1\n";

/* A device that is none of the profile's has no limits, no GIDs, and says nothing of itself. */
Test(verbs_corners, devices_of_no_profile)
{
	struct ibv_device_attr attr = { .max_qp = 77 };
	struct ibv_context none = { 0 };
	struct ibv_device **list;
	struct ibv_gid_entry e;
	int n = 7;

	vp_use(small);
	cr_expect(ed_profiled(), "the first question of all reads it");
	none.device = vd_device();
	cr_expect_null(ed_device_of(none.device));
	cr_expect_null(ed_device_of((struct ibv_device *)(void *)&ed));
	cr_expect_null(ed_device_of(&ed.device[2]));
	cr_expect_not_null(ed_device_of(&ed.device[1]));
	ed_show_device(&none, &attr);
	cr_expect_eq(attr.max_qp, 77);
	cr_expect_eq(ed_show_gid(&none, 1, 0, &e), EINVAL);
	cr_expect_eq(ed_check(&none, VP_MAX_QP, 1000000), 0);
	cr_expect_neq(ibv_get_device_guid(none.device), 0);
	vfail_nth(VFAIL_MEMORY, 1);
	cr_expect_null(ibv_get_device_list(&n));
	cr_expect(vfail_came());
	cr_expect_eq(n, 0);
	list = ibv_get_device_list(&n);
	cr_expect_eq(n, 2);
	none.device = list[1];
	cr_expect_neq(ibv_get_device_guid(list[0]), ibv_get_device_guid(list[1]));
	ibv_free_device_list(list);
}

Test(verbs_corners, no_profile)
{
	struct ibv_device **list;
	int n = 7;

	cr_expect_not(ed_profiled());
	vfail_nth(VFAIL_MEMORY, 1);
	cr_expect_null(ibv_get_device_list(&n));
	cr_expect(vfail_came());
	cr_expect_eq(n, 0);
	list = ibv_get_device_list(&n);
	cr_expect_neq(ibv_get_device_guid(list[0]), 0);
	ibv_free_device_list(list);
}

/* An identifier that has no device yet counts for the one that it gets. */
Test(verbs_corners, limits_of_identifiers, .timeout = 30)
{
	struct ibv_qp_init_attr init = { .qp_type = IBV_QPT_UD, .cap = { 1, 1, 1, 1, 0 } };
	struct rdma_event_channel *ch;
	struct rdma_cm_id *id[2];
	union ibv_gid gid;
	int n;

	vp_use(small);
	ch = rdma_create_event_channel();
	for (int i = 0; i < 2; i++)
		cr_assert_eq(rdma_create_id(ch, &id[i], NULL, RDMA_PS_TCP), 0);
	for (int i = 0; i < 3; i++)
		VT_MINUS_AS(rdma_create_qp(id[0], NULL, &init), EOPNOTSUPP);
	init.qp_type = IBV_QPT_RC;
	cr_assert_eq(rdma_create_qp(id[0], NULL, &init), 0, "%m");
	init.send_cq = init.recv_cq = NULL;
	VT_MINUS_AS(rdma_create_qp(id[1], NULL, &init), ENOMEM);
	rdma_destroy_qp(id[0]);
	cr_expect_eq(rdma_create_qp(id[1], NULL, &init), 0, "%m");
	rdma_destroy_qp(id[1]);
	cr_expect_eq(rdma_destroy_id(id[0]), 0);
	cr_assert_eq(rdma_create_id(ch, &id[0], NULL, RDMA_PS_TCP), 0);
	vfail_size(sizeof(struct vd_id));
	VT_MINUS_AS(rdma_create_id(ch, &id[0], NULL, RDMA_PS_TCP), ENOMEM);
	cr_expect(vfail_came());
	{
		struct ibv_device **list = ibv_get_device_list(&n);
		struct ibv_context *ctx = ibv_open_device(list[1]);

		cr_expect_eq(ibv_query_gid(ctx, 1, 0, &gid), 0, "no address: all zeros");
		cr_expect_eq(gid.global.interface_id, 0);
		cr_expect_eq(ibv_close_device(ctx), 0);
		ibv_free_device_list(list);
	}
	cr_expect_eq(rdma_destroy_id(id[0]), 0);
	cr_expect_eq(rdma_destroy_id(id[1]), 0);
	rdma_destroy_event_channel(ch);
}

/* A message is as long as the best of a device's ports takes. */
Test(verbs_corners, datagrams_of_two_ports, .timeout = 30)
{
	struct vud_qp q;
	struct vud v;

	vp_use(small);
	vud_open(&v);
	vud_make(&v, &q, IBV_QPT_UD);
	cr_expect_eq(vd_of(q.qp, struct vd_qp, qp.qp_base)->ud->mtu, 2048);
	vud_down(&q);
	vud_close(&v);
}

/* ---- rules and their files ---- */

static void shut_verbs_corners(void)
{
	struct ibv_device **list = ibv_get_device_list(NULL);

	VT_NULL_AS(ibv_open_device(list[0]), EINVAL);
	ibv_free_device_list(list);
}

/* Without memory for the rules, or a trace that cannot be looked at, the device stays shut. */
Test(verbs_corners, rules_without_memory)
{
	vf_use("on ibv_query_device: delay 1ms\n");
	unsetenv("DDPSESS_TRACE");
	vfail_size((1 << 20) + 1);
	shut_verbs_corners();
	cr_expect(vfail_came());
}

Test(verbs_corners, a_trace_that_cannot_be_looked_at)
{
	vf_use("on ibv_query_device: delay 1ms\n");
	vfail_nth(VFAIL_FSTAT, 1);
	vd_config();
	cr_expect(vfail_came());
	shut_verbs_corners();
}

Test(verbs_corners, rules_without_a_trace)
{
	struct vt_dev s;

	vf_use("on ibv_query_device nth 2: fail EIO\n");
	unsetenv("DDPSESS_TRACE");
	vt_dev_open(&s);
	cr_expect_eq(ibv_query_device(s.ctx, &s.attr), EIO);
	cr_expect_str_empty(vf_traced());
	vt_dev_close(&s);
}

/* Where the trace's number is another file's, nothing is written there. */
Test(verbs_corners, a_trace_that_is_another_file)
{
	int null = open("/dev/null", O_WRONLY | O_CLOEXEC), copy;
	struct vt_dev s;

	vf_use("on ibv_query_device: delay 1ms\n");
	vt_dev_open(&s);
	vfail_nth(VFAIL_FSTAT, 1);
	cr_expect_eq(ibv_query_device(s.ctx, &s.attr), 0);
	cr_expect(vfail_came());
	copy = dup(ed.trace);
	cr_assert_eq(dup2(null, ed.trace), ed.trace);
	cr_expect_eq(ibv_query_device(s.ctx, &s.attr), 0);
	cr_assert_eq(dup2(copy, ed.trace), ed.trace);
	cr_expect_eq(ed.lines, 1, "%llu", (unsigned long long)ed.lines);
	cr_expect_eq(ibv_query_device(s.ctx, &s.attr), 0);
	cr_expect_eq(ed.lines, 2);
	close(copy);
	close(null);
	vt_dev_close(&s);
}

/* ---- names ---- */

Test(verbs_corners, what_has_no_name)
{
	enum { IB_ROCE1, ROCE2 };
	extern int ibv_query_gid_type(struct ibv_context *, uint8_t, unsigned, int *);
	struct vt_dev s;
	int type = 7;

	for (int i = -1; i < 40; i++) {
		cr_expect_not_null(ibv_node_type_str((enum ibv_node_type)i));
		cr_expect_not_null(ibv_port_state_str((enum ibv_port_state)i));
		cr_expect_not_null(ibv_event_type_str((enum ibv_event_type)i));
		cr_expect_not_null(ibv_wc_status_str((enum ibv_wc_status)i));
	}
	setenv("DDPSESS_FACE", "roce", 1);
	vt_dev_open(&s);
	VT_MINUS_AS(ibv_query_gid_type(s.ctx, 0, 0, &type), EINVAL);
	VT_MINUS_AS(ibv_query_gid_type(s.ctx, 2, 0, &type), EINVAL);
	VT_MINUS_AS(ibv_query_gid_type(s.ctx, 1, 1, &type), EINVAL);
	cr_expect_eq(type, 7);
	cr_expect_eq(ibv_query_gid_type(s.ctx, 1, 0, &type), 0);
	cr_expect_eq(type, vd_config()->roce ? ROCE2 : IB_ROCE1);
	vt_dev_close(&s);
}

/* ---- objects by their handles ---- */

/* Of another context's objects a handle says nothing, nor does that of an object that was imported. */
Test(verbs_corners, handles_of_others)
{
	struct ibv_device **list = ibv_get_device_list(NULL);
	struct ibv_alloc_dm_attr attr = { .length = 64 };
	struct ibv_context *other = ibv_open_device(list[0]);
	struct ibv_mr *mr, *again;
	struct ibv_pd *pd, *named;
	struct ibv_dm *dm;
	struct vt_dev s;
	char mem[64];
	int fd;

	ibv_free_device_list(list);
	vt_dev_open(&s);
	pd = ibv_alloc_pd(s.ctx);
	dm = ibv_alloc_dm(s.ctx, &attr);
	VT_NULL_AS(ibv_import_pd(other, pd->handle), EINVAL);
	VT_NULL_AS(ibv_import_dm(other, dm->handle), EINVAL);
	mr = ibv_reg_mr(pd, mem, sizeof mem, 0);
	named = ibv_import_pd(s.ctx, pd->handle);
	again = ibv_import_mr(named, mr->handle);
	cr_assert_not_null(again);
	cr_expect_eq(again->lkey, mr->lkey);
	ibv_unimport_mr(again);
	again = ibv_import_mr(named, mr->handle);
	cr_expect_eq(ibv_dereg_mr(mr), 0);
	VT_NULL_AS(ibv_import_mr(named, again->handle), EINVAL);
	ibv_unimport_mr(again);
	ibv_unimport_pd(named);
	VT_NULL_AS(ibv_import_device(-1), EOPNOTSUPP);
	fd = open("/dev/null", O_RDWR | O_CLOEXEC);
	VT_NULL_AS(ibv_import_device(fd), EOPNOTSUPP);
	close(fd);
	cr_expect_eq(ibv_free_dm(dm), 0);
	cr_expect_eq(ibv_dealloc_pd(pd), 0);
	vt_dev_close(&s);
	cr_expect_eq(ibv_close_device(other), 0);
}

Test(verbs_corners, no_process)
{
	vfail_size(sizeof(struct vd_process));
	cr_expect_null(ibv_import_device(0));
	cr_expect(vfail_came());
	vfail_size(sizeof(struct vd_process));
	cr_expect_null(rdma_create_event_channel());
	cr_expect(vfail_came());
	vfail_size(sizeof(struct vd_process));
	cr_expect_null(vd_shared_pd(0));
	cr_expect(vfail_came());
	cr_expect_not_null(vd_shared_pd(0));
}

/* ---- queue pairs ---- */

/* A reset of one that has been used makes an endpoint; where there is no memory for it, it stays. */
VT_TEST(verbs_corners, a_reset_without_memory)
{
	struct ibv_qp_attr attr = { .qp_state = IBV_QPS_INIT, .port_num = 1 };
	struct ibv_qp_init_attr init;
	struct ibv_cq *sends;
	struct side s;
	unsigned n = 0;
	bool came;
	int err;

	open_oob_side(&s);
	sends = ibv_create_cq(s.ctx, 4, NULL, NULL, 0);
	init = (struct ibv_qp_init_attr){
		.send_cq = sends, .recv_cq = s.cq, .qp_type = IBV_QPT_RC, .cap = { 4, 4, 1, 1, 0 }
	};
	cr_assert_eq(ibv_destroy_qp(s.qp), 0);
	s.qp = ibv_create_qp(s.pd, &init);
	cr_assert_eq(ibv_modify_qp(s.qp, &attr, IBV_QP_STATE | IBV_QP_PORT), 0);
	cr_assert_eq(move_oob_qp(s.qp, IBV_QPS_ERR), 0);
	do {
		vfail_nth(VFAIL_MEMORY, ++n);
		err = move_oob_qp(s.qp, IBV_QPS_RESET);
		came = vfail_came();
		cr_expect_eq(err, came ? ENOMEM : 0, "%u", n);
		cr_expect_eq(s.qp->state, came ? IBV_QPS_ERR : IBV_QPS_RESET, "%u", n);
	} while (came);
	cr_expect_gt(n, 1);
	cr_expect_eq(ibv_destroy_qp(s.qp), 0);
	s.qp = NULL;
	cr_expect_eq(ibv_destroy_cq(sends), 0);
	close_oob_side(&s);
}

/* Its own peer needs a second endpoint. */
VT_TEST(verbs_corners, its_own_peer_without_memory)
{
	struct side s;
	unsigned n = 0;
	bool came;
	int err;

	open_oob_side(&s);
	do {
		vfail_nth(VFAIL_MEMORY, ++n);
		err = move_oob_to_rtr(s.qp, s.qp->qp_num, &s.gid);
		came = vfail_came();
		cr_expect_eq(err, came ? ENOMEM : 0, "%u: %d", n, err);
		cr_expect_eq(ibv_destroy_qp(s.qp), 0);
		s.qp = make_oob_qp(&s, IBV_QPT_RC);
	} while (err);
	cr_expect_gt(n, 1);
	close_oob_side(&s);
}

/* Attributes and bits that a queue pair does not take. */
Test(verbs_corners, attributes)
{
	struct ibv_qp_init_attr_ex ex = { .qp_type = IBV_QPT_RC, .cap = { 1, 1, 1, 1, 0 } };
	struct ibv_qp_attr attr = { .qp_state = IBV_QPS_INIT, .port_num = 1, .pkey_index = 1 };
	struct ibv_mw_bind bind = { .wr_id = 1 };
	struct ibv_qp *qp;
	struct ibv_mw *mw;
	struct vt_dev s;

	vt_dev_open(&s);
	ex.send_cq = ex.recv_cq = s.cq;
	ex.pd = s.pd;
	ex.comp_mask = IBV_QP_INIT_ATTR_PD;
	ex.send_ops_flags = ~UINT64_C(0); /* not said */
	qp = ibv_create_qp_ex(s.ctx, &ex);
	cr_assert_not_null(qp);
	ex.comp_mask |= IBV_QP_INIT_ATTR_SEND_OPS_FLAGS;
	VT_NULL_AS(ibv_create_qp_ex(s.ctx, &ex), EOPNOTSUPP);
	cr_expect_eq(ibv_modify_qp(qp, &attr, IBV_QP_STATE | IBV_QP_PORT | IBV_QP_PKEY_INDEX),
		     EINVAL);
	attr.pkey_index = 0;
	cr_expect_eq(ibv_modify_qp(qp, &attr, IBV_QP_STATE | IBV_QP_PORT | IBV_QP_PKEY_INDEX), 0);
	mw = ibv_alloc_mw(s.pd, IBV_MW_TYPE_2);
	cr_expect_eq(ibv_bind_mw(qp, mw, &bind), EINVAL, "that is not for this type");
	cr_expect_eq(ibv_dealloc_mw(mw), 0);
	mw = ibv_alloc_mw(s.pd, IBV_MW_TYPE_1);
	{
		const uint32_t key = mw->rkey;

		cr_expect_neq(ibv_bind_mw(qp, mw, &bind), 0, "there is no connection");
		cr_expect_eq(mw->rkey, key);
	}
	cr_expect_eq(ibv_dealloc_mw(mw), 0);
	cr_expect_eq(ibv_destroy_qp(qp), 0);
	vt_dev_close(&s);
}

/* ---- datagrams of identifiers ---- */

static struct rdma_cm_id *datagrams_to(struct rdma_event_channel *ch, __be16 port)
{
	struct sockaddr_in a4 = { .sin_family = AF_INET, .sin_port = port };
	struct rdma_cm_id *id;

	a4.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
	cr_assert_eq(rdma_create_id(ch, &id, NULL, RDMA_PS_UDP), 0);
	cr_assert_eq(rdma_resolve_addr(id, NULL, (struct sockaddr *)&a4, 1000), 0);
	vt_expect(ch, RDMA_CM_EVENT_ADDR_RESOLVED);
	cr_assert_eq(rdma_resolve_route(id, 1000), 0);
	vt_expect(ch, RDMA_CM_EVENT_ROUTE_RESOLVED);
	return id;
}

/* A question that is lost is asked again; one that nobody answers is given up. */
Test(verbs_corners, questions, .timeout = 30)
{
	struct rdma_event_channel *ch = rdma_create_event_channel();
	struct sockaddr_in a4 = { .sin_family = AF_INET };
	int fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
	struct rdma_conn_param conn = { .qp_num = 5 };
	struct rdma_cm_event *e;
	socklen_t len = sizeof a4;
	struct rdma_cm_id *id;
	struct vd_ud_id *u;
	char octets[500];

	a4.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
	cr_assert_eq(bind(fd, (struct sockaddr *)&a4, sizeof a4), 0);
	cr_assert_eq(getsockname(fd, (struct sockaddr *)&a4, &len), 0);
	id = datagrams_to(ch, a4.sin_port);
	VT_MINUS_AS(rdma_accept(id, &conn), EINVAL);
	VT_MINUS_AS(rdma_reject(id, NULL, 0), EINVAL);
	vfail_size(sizeof(struct vd_ud));
	VT_MINUS_AS(rdma_connect(id, &conn), ENOMEM);
	cr_expect(vfail_came());
	vfail_nth(VFAIL_SEND, 1);
	cr_assert_eq(rdma_connect(id, &conn), 0);
	cr_expect(vfail_came());
	cr_expect(vt_readable(fd, VT_MS), "asked again");
	cr_expect_gt(recv(fd, octets, sizeof octets, 0), 0);
	/* Time passes: more and more of it between two questions, but not without end. */
	u = vd_id_of(id)->ud;
	ddps_lock(&vd_process()->lock);
	u->retry_ms = 100000;
	u->retry_at = 0;
	ddps_unlock(&vd_process()->lock);
	ud_wake(ud_of_process());
	cr_expect(vt_readable(fd, VT_MS));
	ddps_lock(&vd_process()->lock);
	cr_expect_leq(u->retry_ms, 100000);
	cr_expect_gt(ud_cm_due(ud_of_process()), ud_now_ms());
	u->retry_at = u->give_up = 0;
	ddps_unlock(&vd_process()->lock);
	ud_wake(ud_of_process());
	e = vt_event(ch, RDMA_CM_EVENT_UNREACHABLE);
	cr_expect_eq(e->status, -ETIMEDOUT);
	rdma_ack_cm_event(e);
	cr_expect_eq(rdma_destroy_id(id), 0);
	cr_assert_eq(rdma_create_id(ch, &id, NULL, RDMA_PS_UDP), 0);
	VT_MINUS_AS(rdma_accept(id, &conn), EINVAL);
	VT_MINUS_AS(rdma_reject(id, NULL, 0), EINVAL);
	cr_expect_eq(rdma_destroy_id(id), 0);
	rdma_destroy_event_channel(ch);
	close(fd);
}

/* ---- the process's threads ---- */

/* A call that a signal ends is made again: datagrams and connections go on. */
VT_TEST(verbs_corners, threads_that_are_interrupted)
{
	struct vt v;

	vt_init(&v);
	vt_listen(&v);
	vfail_other(VFAIL_POLL);
	vfail_as(EINTR);
	vt_dial(&v);
	cr_assert_eq(rdma_connect(v.a.id, &v.connect), 0);
	vt_take_request(&v);
	cr_assert_eq(rdma_accept(v.b.id, &v.accept), 0);
	vt_expect(v.a.ch, RDMA_CM_EVENT_ESTABLISHED);
	vt_expect(v.b.ch, RDMA_CM_EVENT_ESTABLISHED);
	cr_expect(vfail_came());
	vt_down(&v);
}

/* What the program does to its counters' descriptor, or to the mark, ends the process's objects. */
static int without_mark(void)
{
	struct rdma_event_channel *ch = rdma_create_event_channel(), *now;
	struct vd_process *p = vd_process();

	close(p->mark.fd[1]);
	while (!__atomic_load_n(&p->inherited, __ATOMIC_RELAXED))
		sched_yield();
	now = rdma_create_event_channel();
	if (!now || vd_process() == p)
		return 1;
	rdma_destroy_event_channel(ch);
	rdma_destroy_event_channel(now);
	return 0;
}

Test(verbs_corners, a_mark_that_is_closed, .timeout = 30)
{
	pid_t child = fork();

	if (!child)
		_exit(without_mark());
	cr_expect_eq(await_child_status(child), 0);
}

/* A mark that cannot be looked at, or that there is none of, marks nothing. */
Test(verbs_corners, no_mark, .timeout = 30)
{
	struct vd_process p = { 0 };

	vfail_nth(VFAIL_SOCKETPAIR, 1);
	vd_mark_open(&p);
	cr_expect(vfail_came());
	cr_expect_eq(p.mark.fd[0], -1);
	vd_mark_in_child(&p);
	cr_expect_eq(p.mark.fd[1], -1);
	vd_mark_close(&p);
	vfail_nth(VFAIL_FSTAT, 1);
	vd_mark_open(&p);
	cr_expect(vfail_came());
	cr_expect_eq(p.mark.ino, 0);
	vd_mark_close(&p);
}
