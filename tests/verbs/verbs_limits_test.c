/* SPDX-License-Identifier: BSD-2-Clause */
/* Limits of calls of libibverbs, on either side, and what is left as it was when they refuse. */
#include "verbs/vd.h"
#include "verbs/vfail.h"
#include "verbs/vt.h"
#include <arpa/inet.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#define SENTINEL 0x5a

/* Of <infiniband/driver.h>, which programs do not have. */
int ibv_read_sysfs_file(const char *dir, const char *file, char *buf, size_t size);

/* ---- what programs of other versions ask ---- */

Test(verbs_limits, shorter_answers)
{
	struct ibv_query_device_ex_input in = { 0 };
	struct ibv_device_attr_ex dev, all;
	struct ibv_port_attr port, whole;
	struct ibv_gid_entry entry, full;
	struct verbs_context *ops;
	struct vt_dev s;
	char text[4] = "abc";

	vt_dev_open(&s);
	ops = verbs_get_ctx(s.ctx);
	cr_assert_eq(ops->query_port(s.ctx, 1, &whole, sizeof whole), 0);
	memset(&port, SENTINEL, sizeof port);
	cr_expect_eq(ops->query_port(s.ctx, 1, &port, 8), 0);
	cr_expect_arr_eq(&port, &whole, 8);
	cr_expect_eq(((uint8_t *)&port)[8], SENTINEL);
	cr_assert_eq(ops->query_device_ex(s.ctx, NULL, &all, sizeof all), 0);
	memset(&dev, SENTINEL, sizeof dev);
	cr_expect_eq(ops->query_device_ex(s.ctx, &in, &dev, sizeof dev.orig_attr), 0);
	cr_expect_arr_eq(&dev, &all, sizeof dev.orig_attr);
	cr_expect_eq(((uint8_t *)&dev)[sizeof dev.orig_attr], SENTINEL);
	in.comp_mask = 1;
	cr_expect_eq(ops->query_device_ex(s.ctx, &in, &dev, sizeof dev), EINVAL);
	cr_assert_eq(_ibv_query_gid_ex(s.ctx, 1, 0, &full, 0, sizeof full), 0);
	memset(&entry, SENTINEL, sizeof entry);
	cr_expect_eq(_ibv_query_gid_ex(s.ctx, 1, 0, &entry, 0, 16), 0);
	cr_expect_arr_eq(&entry, &full, 16);
	cr_expect_eq(((uint8_t *)&entry)[16], SENTINEL);
	cr_expect_eq(ibv_get_pkey_index(s.ctx, 1, htons(0xffff)), 0);
	cr_expect_eq(ibv_read_sysfs_file("/", "none", text, 0), -1);
	cr_expect_str_eq(text, "abc");
	cr_expect_eq(ibv_read_sysfs_file("/", "none", text, sizeof text), -1);
	cr_expect_str_eq(text, "");
	vt_dev_close(&s);
}

Test(verbs_limits, names_of_what_has_none)
{
	cr_expect_str_eq(ibv_wc_status_str((enum ibv_wc_status) - 1), "unknown");
	cr_expect_str_eq(ibv_event_type_str((enum ibv_event_type)1000), "unknown");
	cr_expect_str_eq(ibv_node_type_str((enum ibv_node_type)0), "unknown");
	cr_expect_str_eq(ibv_port_state_str((enum ibv_port_state)6), "unknown");
}

/* docs of ddps_strerror's codes, as a program of libibverbs hears them. */
Test(verbs_limits, error_numbers)
{
	static const struct {
		int code, number;
	} all[] = { { 0, 0 },
		    { DDPS_E_NOMEM, ENOMEM },
		    { DDPS_E_LIMIT, ENOMEM },
		    { DDPS_E_SYSTEM, EPIPE },
		    { DDPS_E_ACCESS, EACCES },
		    { DDPS_E_ADDRESS, EADDRNOTAVAIL },
		    { DDPS_E_UNSUPPORTED, EOPNOTSUPP },
		    { DDPS_E_BUSY, EBUSY },
		    { DDPS_E_AGAIN, EAGAIN },
		    { DDPS_E_TIMEDOUT, ETIMEDOUT },
		    { DDPS_E_CLOSED, ECONNRESET },
		    { DDPS_E_RESET, ECONNRESET },
		    { DDPS_E_REFUSED, ECONNREFUSED },
		    { DDPS_E_STATE, EINVAL } };

	for (size_t i = 0; i < sizeof all / sizeof *all; i++) {
		errno = EPIPE;
		cr_expect_eq(vd_errno(all[i].code), all[i].number, "%d", all[i].code);
	}
	errno = 0;
	cr_expect_eq(vd_errno(DDPS_E_SYSTEM), EIO, "it has said nothing more");
}

/* ---- memory ---- */

#define ADVISE(wants, pd, advice, flags, list, n)                                                  \
	cr_expect_eq(ibv_advise_mr(pd, advice, flags, list, n), wants)

Test(verbs_limits, advice)
{
	const enum ibv_advise_mr_advice read = IBV_ADVISE_MR_ADVICE_PREFETCH;
	const enum ibv_advise_mr_advice none = IBV_ADVISE_MR_ADVICE_PREFETCH_NO_FAULT;
	const uint32_t wait = IBV_ADVISE_MR_FLAG_FLUSH;
	struct ibv_sge two[2] = { { 0 } };
	struct ibv_pd *other;
	struct ibv_mr *mr;
	struct vt_dev s;
	char *mem = mmap(NULL, 8192, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	cr_assert_neq(mem, MAP_FAILED);
	vt_dev_open(&s);
	other = ibv_alloc_pd(s.ctx);
	mr = ibv_reg_mr_iova(s.pd, mem, 8192, 0x10000, IBV_ACCESS_ON_DEMAND);
	cr_assert(other && mr);
	two[0] = two[1] = (struct ibv_sge){ 0x10000, 8192, mr->lkey };
	ADVISE(EINVAL, s.pd, read, wait, two, 0);
	ADVISE(EINVAL, s.pd, read, wait, NULL, 1);
	ADVISE(EINVAL, s.pd, read, wait << 1, two, 1);
	ADVISE(EOPNOTSUPP, s.pd, (enum ibv_advise_mr_advice)77, 0, two, 1);
	ADVISE(0, s.pd, read, wait, two, 2);
	ADVISE(0, s.pd, read, 0, two, 2);
	ADVISE(0, s.pd, none, 0, two, 2);
	ADVISE(EPERM, s.pd, IBV_ADVISE_MR_ADVICE_PREFETCH_WRITE, wait, two, 1);
	ADVISE(EINVAL, other, read, wait, two, 1);
	/* An older kernel knows no MADV_POPULATE_READ; it reads ahead as well as it can. */
	vfail_nth(VFAIL_MADVISE, 1);
	ADVISE(0, s.pd, read, wait, two, 1);
	cr_expect(vfail_came());
	vfail_nth(VFAIL_MADVISE, 1);
	ADVISE(EINVAL, s.pd, read, 0, two, 1);
	cr_expect(vfail_came());
	two[1].addr = 0x10000 - 1;
	ADVISE(EINVAL, s.pd, read, wait, two, 2);
	two[1].addr = 0x10000 + 8193;
	two[1].length = 0;
	ADVISE(EINVAL, s.pd, read, wait, two, 2);
	two[1].addr = 0x10000 + 8192;
	ADVISE(0, s.pd, read, wait, two, 2);
	two[0].lkey ^= 0x100;
	ADVISE(EINVAL, s.pd, read, wait, two, 2);
	cr_expect_eq(ibv_dereg_mr(mr), 0);
	cr_expect_eq(ibv_dealloc_pd(other), 0);
	munmap(mem, 8192);
	vt_dev_close(&s);
}

Test(verbs_limits, regions_and_their_names)
{
	const int local = IBV_ACCESS_LOCAL_WRITE, zero = local | IBV_ACCESS_ZERO_BASED;
	struct ibv_mr *mr, *again, *none, *second;
	struct ibv_pd *other;
	struct vt_dev s;
	char mem[64];

	vt_dev_open(&s);
	other = ibv_alloc_pd(s.ctx);
	VT_NULL_AS(ibv_reg_mr(s.pd, NULL, 64, IBV_ACCESS_ON_DEMAND), EINVAL);
	mr = ibv_reg_mr(s.pd, mem, sizeof mem, local);
	second = ibv_reg_mr(s.pd, mem, sizeof mem, zero);
	none = ibv_reg_mr(s.pd, NULL, 0, local);
	cr_assert(other && mr && none && second);
	again = ibv_import_mr(s.pd, mr->handle);
	cr_assert_not_null(again);
	cr_expect_eq(again->lkey, mr->lkey);
	cr_expect_eq(ibv_dereg_mr(again), EINVAL, "ibv_unimport_mr does that");
	cr_expect_eq(ibv_rereg_mr(again, IBV_REREG_MR_CHANGE_ACCESS, NULL, NULL, 0, local),
		     IBV_REREG_MR_ERR_INPUT);
	VT_NULL_AS(ibv_import_mr(other, mr->handle), EINVAL);
	VT_NULL_AS(ibv_import_mr(s.pd, mr->handle + 1000), EINVAL);
	/* Nothing at all is a region that can become one of something. */
	cr_expect_eq(ibv_rereg_mr(none, IBV_REREG_MR_CHANGE_TRANSLATION, NULL, mem, 64, 0), 0);
	cr_expect_eq(none->length, 64);
	/* There and back: with addresses from 0 on, and without. */
	cr_expect_eq(ibv_rereg_mr(mr, IBV_REREG_MR_CHANGE_ACCESS, NULL, NULL, 0, zero), 0);
	cr_expect_eq(vd_of(mr, struct vd_mr, mr)->iova, 0);
	cr_expect_eq(ibv_rereg_mr(mr, IBV_REREG_MR_CHANGE_ACCESS, NULL, NULL, 0, local), 0);
	cr_expect_eq(vd_of(mr, struct vd_mr, mr)->iova, (uintptr_t)mem);
	ibv_unimport_mr(again);
	cr_expect_eq(ibv_dereg_mr(none), 0);
	cr_expect_eq(ibv_dereg_mr(second), 0);
	cr_expect_eq(ibv_dereg_mr(mr), 0);
	cr_expect_eq(ibv_dealloc_pd(other), 0);
	vt_dev_close(&s);
}

Test(verbs_limits, device_memory)
{
	struct ibv_alloc_dm_attr attr = { .length = 64, .log_align_req = 21 };
	const unsigned access = IBV_ACCESS_ZERO_BASED | IBV_ACCESS_LOCAL_WRITE;
	struct ibv_dm *dm;
	struct vt_dev s;

	vt_dev_open(&s);
	dm = ibv_alloc_dm(s.ctx, &attr);
	cr_assert_not_null(dm);
	attr.log_align_req = 22;
	VT_NULL_AS(ibv_alloc_dm(s.ctx, &attr), EINVAL);
	VT_NULL_AS(ibv_reg_dm_mr(s.pd, dm, 0, 64, access | IBV_ACCESS_ON_DEMAND), EINVAL);
	cr_expect_eq(ibv_free_dm(dm), 0);
	vt_dev_close(&s);
}

/* ---- domains ---- */

static void *refuse_verbs_limits_memory(struct ibv_pd *pd, void *context, size_t size, size_t align,
					uint64_t type)
{
	(void)pd, (void)context, (void)size, (void)align, (void)type;
	return NULL;
}

static void *as_usual(struct ibv_pd *pd, void *context, size_t size, size_t align, uint64_t type)
{
	++*(int *)context;
	(void)pd, (void)size, (void)align, (void)type;
	return IBV_ALLOCATOR_USE_DEFAULT;
}

static void no_free(struct ibv_pd *pd, void *context, void *at, uint64_t type)
{
	*(int *)context += 100;
	(void)pd, (void)at, (void)type;
}

Test(verbs_limits, parent_domains)
{
	struct ibv_parent_domain_init_attr attr = { 0 };
	struct ibv_qp_init_attr init;
	struct ibv_pd *parent;
	struct ibv_qp *qp;
	struct vt_dev s;
	int calls = 0;

	vt_dev_open(&s);
	VT_NULL_AS(ibv_alloc_parent_domain(s.ctx, &attr), EINVAL);
	attr.pd = s.pd;
	attr.comp_mask = 1 << 7;
	VT_NULL_AS(ibv_alloc_parent_domain(s.ctx, &attr), EINVAL);
	attr.comp_mask =
		IBV_PARENT_DOMAIN_INIT_ATTR_ALLOCATORS | IBV_PARENT_DOMAIN_INIT_ATTR_PD_CONTEXT;
	attr.pd_context = &calls;
	attr.alloc = refuse_verbs_limits_memory;
	VT_NULL_AS(ibv_alloc_parent_domain(s.ctx, &attr), EINVAL);
	attr.alloc = NULL;
	attr.free = no_free;
	VT_NULL_AS(ibv_alloc_parent_domain(s.ctx, &attr), EINVAL);
	attr.alloc = refuse_verbs_limits_memory;
	parent = ibv_alloc_parent_domain(s.ctx, &attr);
	cr_assert_not_null(parent);
	init = vt_rc(&s);
	VT_NULL_AS(ibv_create_qp(parent, &init), ENOMEM);
	cr_expect_eq(calls, 0, "what was not given is not taken back");
	cr_expect_eq(ibv_dealloc_pd(parent), 0);
	attr.alloc = as_usual;
	parent = ibv_alloc_parent_domain(s.ctx, &attr);
	cr_assert_not_null(parent);
	qp = ibv_create_qp(parent, &init);
	cr_assert_not_null(qp);
	cr_expect_eq(calls, 1);
	cr_expect_eq(ibv_destroy_qp(qp), 0);
	cr_expect_eq(calls, 1, "the library's own goes by itself");
	cr_expect_eq(ibv_dealloc_pd(parent), 0);
	vt_dev_close(&s);
}

/* ---- shared receive queues ---- */

static void shared_queues(void)
{
	struct ibv_srq_init_attr init = { .attr = { 0, 1, 0 } };
	struct ibv_srq_attr attr = { .max_wr = 2 };
	struct ibv_recv_wr wr[3] = { { .wr_id = 1, .next = &wr[1] },
				     { .wr_id = 2, .num_sge = 2, .next = &wr[2] },
				     { .wr_id = 3 } },
			   *bad = NULL;
	struct ibv_srq *srq;
	struct vt_dev s;

	vt_dev_open(&s);
	VT_NULL_AS(ibv_create_srq(s.pd, &init), EINVAL);
	init.attr.max_wr = 2;
	srq = ibv_create_srq(s.pd, &init);
	cr_assert_not_null(srq);
	cr_expect_eq(ibv_modify_srq(srq, &attr, 1 << 5), EINVAL);
	cr_expect_eq(ibv_modify_srq(srq, &attr, IBV_SRQ_MAX_WR), 0);
	cr_expect_eq(ibv_post_srq_recv(srq, wr, &bad), EINVAL);
	cr_expect_eq(bad, &wr[1], "the first is taken, the third not looked at");
	cr_expect_eq(ibv_post_srq_recv(srq, &wr[2], &bad), 0);
	cr_expect_eq(ibv_post_srq_recv(srq, &wr[2], &bad), ENOMEM);
	cr_expect_eq(ibv_destroy_srq(srq), 0);
	vt_dev_close(&s);
}

Test(verbs_limits, shared_queues)
{
	shared_queues();
}

Test(verbs_limits, shared_queues_that_are_checked)
{
	setenv("DDPSESS_CHECK", "on", 1);
	shared_queues();
}

Test(verbs_limits, shared_queues_of_identifiers)
{
	struct ibv_srq_init_attr init = { .attr = { 2, 1, 0 } };
	struct ibv_srq_init_attr_ex ex = { .attr = { 2, 1, 0 }, .comp_mask = 1 << 9 };
	struct rdma_event_channel *ch = rdma_create_event_channel();
	struct rdma_cm_id *id;
	struct ibv_pd *pd;

	cr_assert_eq(rdma_create_id(ch, &id, NULL, RDMA_PS_TCP), 0);
	VT_MINUS_AS(rdma_create_srq_ex(id, &ex), EOPNOTSUPP);
	ex.comp_mask = IBV_SRQ_INIT_ATTR_TYPE;
	ex.srq_type = IBV_SRQT_XRC;
	VT_MINUS_AS(rdma_create_srq_ex(id, &ex), EOPNOTSUPP);
	ex.srq_type = IBV_SRQT_BASIC;
	cr_assert_eq(rdma_create_srq_ex(id, &ex), 0);
	cr_assert_not_null(id->srq);
	VT_MINUS_AS(rdma_create_srq(id, NULL, &init), EINVAL);
	rdma_destroy_srq(id);
	cr_expect_null(id->srq);
	rdma_destroy_srq(id); /* there is none */
	init.attr.max_wr = 0;
	VT_MINUS_AS(rdma_create_srq(id, NULL, &init), EINVAL);
	cr_expect_null(id->srq);
	pd = ibv_alloc_pd(id->verbs);
	ex.comp_mask = IBV_SRQ_INIT_ATTR_PD;
	ex.pd = pd;
	cr_assert_eq(rdma_create_srq_ex(id, &ex), 0);
	cr_expect_eq(id->srq->pd, pd);
	rdma_destroy_srq(id);
	cr_expect_eq(ibv_dealloc_pd(pd), 0);
	cr_expect_eq(rdma_destroy_id(id), 0);
	rdma_destroy_event_channel(ch);
}
