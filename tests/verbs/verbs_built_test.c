/* SPDX-License-Identifier: BSD-2-Clause */
/* Requests that are built by ibv_wr_*: too many, too long, none, without memory. */
#include "verbs/vd.h"
#include "verbs/vfail.h"
#include "verbs/vt.h"
#include <errno.h>
#include <stdlib.h>

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
