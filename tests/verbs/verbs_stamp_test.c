/* SPDX-License-Identifier: BSD-2-Clause */
/* Extended completion queues: what they are made with, time stamps, and whose the completion is. */
#include "verbs/vud.h"
#include "verbs/vd.h"
#include "verbs/vfail.h"
#include "verbs/vt.h"
#include <errno.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#define STAMPS (IBV_WC_EX_WITH_COMPLETION_TIMESTAMP | IBV_WC_EX_WITH_COMPLETION_TIMESTAMP_WALLCLOCK)

static struct ibv_cq_init_attr_ex wanted(void)
{
	return (struct ibv_cq_init_attr_ex){ .cqe = 4, .wc_flags = IBV_WC_STANDARD_FLAGS };
}

static void expect_cq_made(struct ibv_context *ctx, struct ibv_cq_init_attr_ex *ex)
{
	struct ibv_cq_ex *cq = ibv_create_cq_ex(ctx, ex);

	cr_assert_not_null(cq, "%m");
	cr_expect_eq(ibv_destroy_cq(ibv_cq_ex_to_cq(cq)), 0);
}

Test(verbs_stamp, what_a_queue_is_made_with, .timeout = 30)
{
	struct ibv_parent_domain_init_attr init = { 0 };
	struct ibv_cq_init_attr_ex ex = wanted();
	struct ibv_modify_cq_attr moderate = { .attr_mask = IBV_CQ_ATTR_MODERATE,
					       .moderate = { 4, 100 } };
	struct ibv_pd *domain;
	struct vt_dev d;

	vt_dev_open(&d);
	init.pd = d.pd;
	domain = ibv_alloc_parent_domain(d.ctx, &init);
	cr_assert_not_null(domain);
	ex.flags = IBV_CREATE_CQ_ATTR_IGNORE_OVERRUN;
	expect_cq_made(d.ctx, &ex); /* nobody looks at them */
	ex.comp_mask = IBV_CQ_INIT_ATTR_MASK_FLAGS;
	VT_NULL_AS(ibv_create_cq_ex(d.ctx, &ex), EOPNOTSUPP);
	ex.flags = 1u << 20;
	VT_NULL_AS(ibv_create_cq_ex(d.ctx, &ex), EOPNOTSUPP);
	ex.flags = IBV_CREATE_CQ_ATTR_SINGLE_THREADED;
	expect_cq_made(d.ctx, &ex);
	ex.comp_mask |= IBV_CQ_INIT_ATTR_MASK_PD;
	VT_NULL_AS(ibv_create_cq_ex(d.ctx, &ex), EINVAL);
	ex.parent_domain = d.pd;
	VT_NULL_AS(ibv_create_cq_ex(d.ctx, &ex), EINVAL);
	ex.parent_domain = domain;
	expect_cq_made(d.ctx, &ex);
	ex.comp_mask |= 1u << 20;
	errno = 0; /* the header says this one */
	cr_expect_null(ibv_create_cq_ex(d.ctx, &ex));
	cr_expect(errno == EINVAL || errno == EOPNOTSUPP, "%m");
	cr_expect_eq(ibv_modify_cq(d.cq, &moderate), EOPNOTSUPP);
	cr_expect_eq(ibv_dealloc_pd(domain), 0);
	vt_dev_close(&d);
}

static uint64_t clock_of(struct ibv_context *ctx)
{
	struct ibv_values_ex v = { .comp_mask = IBV_VALUES_MASK_RAW_CLOCK | 0x8000 };

	cr_assert_eq(ibv_query_rt_values_ex(ctx, &v), 0);
	cr_assert_eq(v.comp_mask, IBV_VALUES_MASK_RAW_CLOCK, "what there is");
	cr_assert_eq(v.raw_clock.tv_sec, 0);
	return (uint64_t)v.raw_clock.tv_nsec;
}

static uint64_t wall_ns(void)
{
	struct timespec t;

	clock_gettime(CLOCK_REALTIME, &t);
	return (uint64_t)t.tv_sec * 1000000000 + (uint64_t)t.tv_nsec;
}

Test(verbs_stamp, the_device_says_what_its_clock_is, .timeout = 30)
{
	struct ibv_device_attr_ex attr;
	uint64_t before, after;
	struct vt_dev d;

	vt_dev_open(&d);
	cr_assert_eq(ibv_query_device_ex(d.ctx, NULL, &attr), 0);
	cr_expect_eq(attr.completion_timestamp_mask, UINT64_MAX);
	cr_expect_eq(attr.hca_core_clock, 1000000, "kHz");
	cr_expect(!attr.cq_mod_caps.max_cq_count && !attr.cq_mod_caps.max_cq_period);
	before = clock_of(d.ctx);
	usleep(2000);
	after = clock_of(d.ctx);
	cr_expect_geq(after - before, 2000000);
	vt_dev_close(&d);
}

/* An extended queue for @e, whose queue pair and queue are not made yet. */
static struct ibv_cq_ex *equip_verbs_stamp(struct vt *v, struct vt_end *e)
{
	struct ibv_cq_init_attr_ex ex = wanted();
	struct ibv_qp_init_attr attr = v->init;
	struct ibv_cq_ex *cq;

	ex.wc_flags |= STAMPS;
	ex.cqe = 64;
	cq = ibv_create_cq_ex(e->id->verbs, &ex);
	cr_assert_not_null(cq, "%m");
	e->cq = attr.send_cq = attr.recv_cq = ibv_cq_ex_to_cq(cq);
	cr_assert_eq(rdma_create_qp(e->id, NULL, &attr), 0);
	e->mr = ibv_reg_mr(e->id->pd, e->buf, sizeof e->buf,
			   IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE);
	cr_assert_not_null(e->mr);
	return cq;
}

static struct ibv_cq_ex *stamped_up(struct vt *v)
{
	struct rdma_cm_event *e;
	struct ibv_cq_ex *cq;

	setenv("DDPSESS_PLACED", "all", 1);
	vt_init(v);
	vt_listen(v);
	vt_dial(v);
	cr_assert_eq(rdma_connect(v->a.id, &v->connect), 0);
	e = vt_event(v->b.ch, RDMA_CM_EVENT_CONNECT_REQUEST);
	v->b.id = e->id;
	rdma_ack_cm_event(e);
	cq = equip_verbs_stamp(v, &v->b);
	cr_assert_eq(rdma_accept(v->b.id, &v->accept), 0);
	vt_expect(v->a.ch, RDMA_CM_EVENT_ESTABLISHED);
	vt_expect(v->b.ch, RDMA_CM_EVENT_ESTABLISHED);
	return cq;
}

/* Its time is when it came, however late it is polled. */
static void stamp_of(struct vt *v, struct ibv_cq_ex *cq, uint64_t late_ns)
{
	struct ibv_poll_cq_attr none = { 0 };
	uint64_t from, to, wall_from, wall_to, ts, wall;

	cr_assert_eq(vt_recv(&v->b, 1, 0, 64), 0);
	wall_from = wall_ns();
	from = clock_of(v->b.id->verbs);
	cr_assert_eq(vt_post(&v->a, 2, IBV_WR_SEND, 5, NULL), 0);
	vt_expect_wc(&v->a, 2, IBV_WC_SEND, IBV_WC_SUCCESS); /* the peer has it */
	to = clock_of(v->b.id->verbs);
	wall_to = wall_ns();
	usleep((useconds_t)(late_ns / 1000));
	while (ibv_start_poll(cq, &none))
		;
	cr_expect_eq(cq->wr_id, 1);
	ts = ibv_wc_read_completion_ts(cq);
	wall = ibv_wc_read_completion_wallclock_ns(cq);
	ibv_end_poll(cq);
	cr_expect(ts >= from && ts <= to, "%lld ns behind", (long long)(ts - to));
	/* its two clocks are read one behind the other */
	cr_expect(wall + 5000000 >= wall_from && wall <= wall_to + 5000000, "%lld ns behind",
		  (long long)(wall - wall_to));
}

VT_TLS_TEST(verbs_stamp, a_completion_says_when_it_came)
{
	struct ibv_cq_ex *cq;
	struct vt v;

	cq = stamped_up(&v);
	stamp_of(&v, cq, 20000000);
	vt_down(&v);
}

/* What a rule holds back keeps its time. */
VT_TLS_TEST(verbs_stamp, a_late_completion_says_when_it_came)
{
	struct ibv_cq_ex *cq;
	struct vt v;

	vf_use("on completion opcode recv: delay 30ms\n");
	cq = stamped_up(&v);
	stamp_of(&v, cq, 0);
	vt_down(&v);
}

/* A queue that was replaced by a larger one goes on. */
Test(verbs_stamp, a_larger_queue_has_time_stamps_too, .timeout = 30)
{
	struct ibv_poll_cq_attr none = { 0 };
	struct vud_qp a, b;
	struct vud v;
	uint64_t from, ts;

	vud_open(&v);
	vud_make(&v, &a, VUD_EX);
	vud_move(&a, IBV_QPS_RTS);
	vud_up(&v, &b);
	cr_assert_eq(ibv_resize_cq(a.cq, 512), 0);
	vud_recv(&a, 9, 0, 100);
	from = clock_of(v.ctx);
	vud_send(&b, 1, &a, 20, IBV_SEND_SIGNALED);
	while (ibv_start_poll(a.cqx, &none))
		;
	ts = ibv_wc_read_completion_ts(a.cqx);
	cr_expect(ts >= from && ts <= clock_of(v.ctx));
	ibv_end_poll(a.cqx);
	vud_down(&a);
	vud_down(&b);
	vud_close(&v);
}

/* ---- threads ---- */

struct reader {
	struct ibv_cq_ex *cq;
	uint64_t wr_id;
	bool began, done; /* atomic */
};

static void *read_one(void *arg)
{
	struct ibv_poll_cq_attr none = { 0 };
	struct reader *r = arg;

	__atomic_store_n(&r->began, true, __ATOMIC_RELEASE);
	while (ibv_start_poll(r->cq, &none))
		;
	r->wr_id = r->cq->wr_id;
	ibv_end_poll(r->cq);
	__atomic_store_n(&r->done, true, __ATOMIC_RELEASE);
	return NULL;
}

/* The completion that one thread reads is not another's before end_poll. */
VT_TLS_TEST(verbs_stamp, a_completion_is_one_threads_at_a_time)
{
	struct ibv_poll_cq_attr none = { 0 };
	struct reader r = { 0 };
	pthread_t thread;
	struct vt v;

	r.cq = stamped_up(&v);
	for (uint64_t i = 1; i <= 2; i++) {
		cr_assert_eq(vt_recv(&v.b, i, 0, 64), 0);
		cr_assert_eq(vt_post(&v.a, i, IBV_WR_SEND, 5, NULL), 0);
		vt_expect_wc(&v.a, i, IBV_WC_SEND, IBV_WC_SUCCESS);
	}
	while (ibv_start_poll(r.cq, &none))
		;
	cr_assert_eq(pthread_create(&thread, NULL, read_one, &r), 0);
	while (!__atomic_load_n(&r.began, __ATOMIC_ACQUIRE))
		;
	usleep(20000);
	cr_expect(!__atomic_load_n(&r.done, __ATOMIC_ACQUIRE));
	cr_expect_eq(r.cq->wr_id, 1);
	ibv_end_poll(r.cq);
	pthread_join(thread, NULL);
	cr_expect_eq(r.wr_id, 2);
	vt_down(&v);
}

/* ---- requests that are built by ibv_wr_*: too many, too long, none, without memory ---- */

static void add_more(struct ibv_qp_ex *ex, int which)
{
	static const struct ibv_mw_bind_info none;
	struct ibv_mw *mw = NULL;

	switch (which) {
	case 0:
		ibv_wr_rdma_write(ex, 1, 2);
		break;
	case 1:
		ibv_wr_send_inv(ex, 1);
		break;
	case 2:
		ibv_wr_local_inv(ex, 1);
		break;
	case 3:
		ibv_wr_bind_mw(ex, mw, 1, &none);
		break;
	case 4:
		ibv_wr_rdma_write_imm(ex, 1, 2, 3);
		break;
	case 5:
		ibv_wr_send_imm(ex, 1);
		break;
	case 6:
		ibv_wr_atomic_fetch_add(ex, 1, 8, 1);
		break;
	default:
		ibv_wr_send(ex);
	}
}

/* Its data is ignored, as its request is. */
static void describe(struct ibv_qp_ex *ex, struct vt_end *e)
{
	const struct ibv_data_buf buf = { e->buf, 4 };
	const struct ibv_sge sge = { (uintptr_t)e->buf, 4, e->mr->lkey };

	ibv_wr_set_ud_addr(ex, NULL, 1, 1);
	ibv_wr_set_sge_list(ex, 1, &sge);
	ibv_wr_set_inline_data_list(ex, 1, &buf);
}

static void too_many(struct vt *v)
{
	struct ibv_qp_ex *ex = ibv_qp_to_qp_ex(v->a.id->qp);

	for (int which = 0; which < 8; which++) {
		ibv_wr_start(ex);
		for (unsigned i = 0; i < v->init.cap.max_send_wr; i++) {
			ibv_wr_send(ex);
			ibv_wr_set_sge(ex, v->a.mr->lkey, (uintptr_t)v->a.buf, 1);
		}
		add_more(ex, which);
		describe(ex, &v->a);
		cr_expect_eq(ibv_wr_complete(ex), ENOMEM, "%d", which);
	}
}

static void send_too_long_verbs_built(struct vt *v)
{
	struct ibv_qp_ex *ex = ibv_qp_to_qp_ex(v->a.id->qp);
	const struct ibv_data_buf most[] = { { v->a.buf, VD_MAX_INLINE }, { v->a.buf, 1 } };
	struct ibv_sge sge[VD_MAX_SGE + 1] = { { 0 } };

	ibv_wr_start(ex);
	ibv_wr_send(ex);
	ibv_wr_set_sge_list(ex, VD_MAX_SGE + 1, sge);
	cr_expect_eq(ibv_wr_complete(ex), EINVAL);
	ibv_wr_start(ex);
	ibv_wr_send(ex);
	ibv_wr_set_inline_data_list(ex, 2, most);
	cr_expect_eq(ibv_wr_complete(ex), EINVAL);
	/* Nothing was begun that these could be of. */
	ibv_wr_start(ex);
	describe(ex, &v->a);
	cr_expect_eq(ibv_wr_complete(ex), 0, "nothing is nothing");
	ibv_wr_start(ex);
	ibv_wr_send(ex);
	ibv_wr_abort(ex);
}

/* What was refused and what was taken back has left no trace: this is the first message. */
static void pieces_of_nothing(struct vt *v)
{
	struct ibv_qp_ex *ex = ibv_qp_to_qp_ex(v->a.id->qp);
	const struct ibv_data_buf some[] = { { "ab", 2 }, { NULL, 0 }, { "c", 2 } };
	struct ibv_wc wc;

	cr_assert_eq(vt_recv(&v->b, 7, 0, 64), 0);
	ibv_wr_start(ex);
	ex->wr_id = 3;
	ex->wr_flags = IBV_SEND_SIGNALED;
	ibv_wr_send(ex);
	ibv_wr_set_inline_data_list(ex, 3, some);
	cr_assert_eq(ibv_wr_complete(ex), 0);
	vt_expect_wc(&v->a, 3, IBV_WC_SEND, IBV_WC_SUCCESS);
	wc = vt_wc(&v->b);
	cr_expect_eq(wc.wr_id, 7);
	cr_expect_eq(wc.byte_len, 4);
	cr_expect_str_eq((char *)v->b.buf, "abc");
}

static void builders(void)
{
	struct vt v;

	vt_init(&v);
	v.init.cap.max_inline_data = 64;
	v.init.cap.max_send_wr = 3;
	vt_up(&v);
	too_many(&v);
	send_too_long_verbs_built(&v);
	pieces_of_nothing(&v);
	vt_down(&v);
}

VT_TLS_TEST(verbs_built, requests_that_are_built)
{
	builders();
}

/* The edge posts them then. */
VT_TLS_TEST(verbs_built, requests_that_are_built_and_checked)
{
	setenv("DDPSESS_CHECK", "on", 1);
	builders();
}

VT_TLS_TEST(verbs_built, requests_without_memory)
{
	struct ibv_qp_ex *ex;
	struct vt v;

	vt_init(&v);
	vt_up(&v);
	ex = ibv_qp_to_qp_ex(v.a.id->qp);
	vfail_nth(VFAIL_MEMORY, 1);
	ibv_wr_start(ex);
	cr_assert(vfail_came());
	for (int which = 0; which < 8; which++) {
		add_more(ex, which);
		describe(ex, &v.a);
	}
	cr_expect_eq(ibv_wr_complete(ex), ENOMEM);
	pieces_of_nothing(&v);
	vt_down(&v);
}

/* Invalidating and binding, built. */
VT_TLS_TEST(verbs_built, windows_that_are_built)
{
	struct ibv_mw_bind_info info = { .length = 4096,
					 .mw_access_flags = IBV_ACCESS_REMOTE_WRITE };
	struct ibv_qp_ex *ex;
	struct ibv_mr *mr;
	struct ibv_mw *mw;
	struct ibv_wc wc;
	struct vt v;

	vt_init(&v);
	vt_up(&v);
	ex = ibv_qp_to_qp_ex(v.b.id->qp);
	mw = ibv_alloc_mw(v.b.id->pd, IBV_MW_TYPE_2);
	mr = ibv_reg_mr(v.b.id->pd, v.b.buf, sizeof v.b.buf,
			IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_MW_BIND);
	cr_assert(mw && mr);
	info.mr = mr;
	info.addr = (uintptr_t)v.b.buf;
	ibv_wr_start(ex);
	ex->wr_id = 11;
	ex->wr_flags = IBV_SEND_SIGNALED;
	ibv_wr_bind_mw(ex, mw, ibv_inc_rkey(mw->rkey), &info);
	cr_assert_eq(ibv_wr_complete(ex), 0);
	vt_expect_wc(&v.b, 11, IBV_WC_BIND_MW, IBV_WC_SUCCESS);
	mw->rkey = ibv_inc_rkey(mw->rkey);
	/* The peer invalidates it ... */
	cr_assert_eq(vt_recv(&v.b, 7, 0, 64), 0);
	ex = ibv_qp_to_qp_ex(v.a.id->qp);
	ibv_wr_start(ex);
	ex->wr_id = 12;
	ex->wr_flags = IBV_SEND_SIGNALED;
	ibv_wr_send_inv(ex, mw->rkey);
	cr_assert_eq(ibv_wr_complete(ex), 0);
	vt_expect_wc(&v.a, 12, IBV_WC_SEND, IBV_WC_SUCCESS);
	wc = vt_wc(&v.b);
	cr_expect(wc.wc_flags & IBV_WC_WITH_INV);
	cr_expect_eq(wc.invalidated_rkey, mw->rkey);
	/* ... and so its owner has none to invalidate. */
	ex = ibv_qp_to_qp_ex(v.b.id->qp);
	ibv_wr_start(ex);
	ex->wr_id = 13;
	ibv_wr_local_inv(ex, mw->rkey);
	cr_assert_eq(ibv_wr_complete(ex), 0);
	wc = vt_wc(&v.b);
	cr_expect_eq(wc.wr_id, 13);
	cr_expect_neq(wc.status, IBV_WC_SUCCESS);
	rdma_destroy_qp(v.b.id);
	cr_expect_eq(ibv_dealloc_mw(mw), 0);
	cr_expect_eq(ibv_dereg_mr(mr), 0);
	vt_down(&v);
}
