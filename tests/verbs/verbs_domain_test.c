/* SPDX-License-Identifier: BSD-2-Clause */
/* Parent and thread domains, objects by their handles, memory windows: who holds whom. */
#include "verbs/vt.h"
#include <errno.h>
#include <stdlib.h>
#include <unistd.h>

static unsigned allocated, freed;

static void *give_domain_memory(struct ibv_pd *pd, void *context, size_t size, size_t alignment,
				uint64_t type)
{
	(void)pd;
	(void)type;
	cr_expect_eq(context, &allocated);
	allocated++;
	return aligned_alloc(alignment, (size + alignment - 1) / alignment * alignment);
}

static void take_domain_memory(struct ibv_pd *pd, void *context, void *ptr, uint64_t type)
{
	(void)pd;
	(void)type;
	cr_expect_eq(context, &allocated);
	freed++;
	free(ptr);
}

Test(verbs_domain, a_parent_domain_holds_what_it_is_made_of)
{
	struct ibv_td_init_attr none = { 0 };
	struct ibv_parent_domain_init_attr attr = {
		.comp_mask = IBV_PARENT_DOMAIN_INIT_ATTR_ALLOCATORS |
			     IBV_PARENT_DOMAIN_INIT_ATTR_PD_CONTEXT,
		.alloc = give_domain_memory,
		.free = take_domain_memory,
		.pd_context = &allocated,
	};
	struct ibv_qp_init_attr init;
	struct ibv_pd *parent;
	struct ibv_qp *qp;
	struct vt_dev s;

	vt_dev_open(&s);
	attr.pd = s.pd;
	attr.td = ibv_alloc_td(s.ctx, &none);
	cr_assert_not_null(attr.td);
	parent = ibv_alloc_parent_domain(s.ctx, &attr);
	cr_assert_not_null(parent);
	cr_expect_eq(ibv_dealloc_td(attr.td), EBUSY);
	cr_expect_eq(ibv_dealloc_pd(s.pd), EBUSY);
	init = vt_rc(&s);
	qp = ibv_create_qp(parent, &init);
	cr_assert_not_null(qp);
	cr_expect_gt(allocated, 0);
	cr_expect_eq(ibv_destroy_qp(qp), 0);
	cr_expect_eq(freed, allocated);
	cr_expect_eq(ibv_dealloc_pd(parent), 0);
	cr_expect_eq(ibv_dealloc_td(attr.td), 0);
	attr.pd = NULL;
	VT_NULL_AS(ibv_alloc_parent_domain(s.ctx, &attr), EINVAL);
	none.comp_mask = 1;
	VT_NULL_AS(ibv_alloc_td(s.ctx, &none), EINVAL);
	vt_dev_close(&s);
}

Test(verbs_domain, objects_by_their_handles)
{
	static char buf[64];
	struct ibv_context *ctx;
	struct ibv_mr *mr, *again;
	struct ibv_pd *pd;
	struct vt_dev s;
	int pipes[2], fd;

	vt_dev_open(&s);
	mr = ibv_reg_mr(s.pd, buf, sizeof buf, 0);
	cr_assert_not_null(mr);
	cr_assert_eq(pipe(pipes), 0);
	VT_NULL_AS(ibv_import_device(pipes[0]), EOPNOTSUPP);
	VT_NULL_AS(ibv_import_device(-1), EOPNOTSUPP);
	fd = dup(s.ctx->cmd_fd);
	ctx = ibv_import_device(fd);
	cr_assert_not_null(ctx);
	cr_expect_eq(ctx->cmd_fd, fd);
	VT_NULL_AS(ibv_import_pd(ctx, s.pd->handle + 1000), EINVAL);
	pd = ibv_import_pd(ctx, s.pd->handle);
	cr_assert_not_null(pd);
	VT_NULL_AS(ibv_import_mr(pd, mr->handle + 1000), EINVAL);
	again = ibv_import_mr(pd, mr->handle);
	cr_assert_not_null(again);
	cr_expect_eq(again->lkey, mr->lkey);
	cr_expect_null(again->addr);
	cr_expect_eq(ibv_dereg_mr(again), EINVAL, "it is not its own");
	ibv_unimport_mr(again);
	cr_expect_eq(ibv_dealloc_pd(s.pd), EBUSY);
	ibv_unimport_pd(pd);
	cr_expect_eq(ibv_close_device(ctx), 0);
	cr_expect_eq(close(fd), -1, "closed with its context");
	cr_expect_eq(ibv_dereg_mr(mr), 0);
	close(pipes[0]);
	close(pipes[1]);
	vt_dev_close(&s);
}

VT_TEST(verbs_domain, windows_of_either_type)
{
	static const enum ibv_mw_type types[] = { IBV_MW_TYPE_1, IBV_MW_TYPE_2 };
	struct vt v;

	vt_init(&v);
	vt_up(&v);
	for (int i = 0; i < 2; i++) {
		struct ibv_mr *mr = ibv_reg_mr(v.b.id->pd, v.b.buf, sizeof v.b.buf,
					       IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_MW_BIND);
		struct ibv_mw *mw = ibv_alloc_mw(v.b.id->pd, types[i]);
		struct ibv_mw_bind bind = { .wr_id = 5,
					    .send_flags = IBV_SEND_SIGNALED,
					    .bind_info = { mr, (uintptr_t)v.b.buf, 100,
							   IBV_ACCESS_REMOTE_WRITE } };
		struct ibv_send_wr wr = { .wr_id = 5,
					  .opcode = IBV_WR_BIND_MW,
					  .send_flags = IBV_SEND_SIGNALED },
				   *bad;

		uint32_t key = mw ? ibv_inc_rkey(mw->rkey) : 0;

		cr_assert(mr && mw);
		wr.bind_mw.mw = mw;
		wr.bind_mw.rkey = key;
		wr.bind_mw.bind_info = bind.bind_info;
		cr_expect_eq(ibv_bind_mw(v.b.id->qp, mw, &bind), i ? EINVAL : 0);
		if (i)
			cr_assert_eq(ibv_post_send(v.b.id->qp, &wr, &bad), 0);
		vt_expect_wc(&v.b, 5, IBV_WC_BIND_MW, IBV_WC_SUCCESS);
		cr_expect_eq(ibv_dereg_mr(mr), EBUSY, "a window is bound to it");
		if (i) {
			wr.opcode = IBV_WR_LOCAL_INV;
			wr.invalidate_rkey = key;
			cr_assert_eq(ibv_post_send(v.b.id->qp, &wr, &bad), 0);
			vt_expect_wc(&v.b, 5, IBV_WC_LOCAL_INV, IBV_WC_SUCCESS);
		}
		cr_expect_eq(ibv_dealloc_mw(mw), 0);
		cr_expect_eq(ibv_dereg_mr(mr), 0);
	}
	vt_down(&v);
}
