/* SPDX-License-Identifier: BSD-2-Clause */
/* Memory that is more than a region: the device's own, paged on demand, with offsets of its own. */
#include "support/child.h"
#include "verbs/vt.h"
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#define PAGE	  4096
#define DM_ACCESS (IBV_ACCESS_ZERO_BASED | IBV_ACCESS_LOCAL_WRITE)

static struct ibv_dm *alloc_dm(struct ibv_context *ctx, size_t len)
{
	struct ibv_alloc_dm_attr attr = { .length = len, .log_align_req = 12 };

	return ibv_alloc_dm(ctx, &attr);
}

static size_t dm_size(struct ibv_context *ctx)
{
	struct ibv_device_attr_ex attr;

	cr_assert_eq(ibv_query_device_ex(ctx, NULL, &attr), 0);
	return attr.max_dm_size;
}

/* As much as the device says, no more; and nothing of it goes while it is in use. */
Test(verbs_memory, device_memory_is_bounded_and_held)
{
	struct ibv_alloc_dm_attr odd = { .length = 4, .comp_mask = 1 };
	uint32_t in[2] = { 1, 2 }, out[2] = { 0 };
	struct ibv_dm *dm, *more;
	struct ibv_mr *mr;
	struct vt_dev s;
	size_t max;

	vt_dev_open(&s);
	max = dm_size(s.ctx);
	cr_assert_gt(max, 2 * PAGE);
	VT_NULL_AS(alloc_dm(s.ctx, 0), EINVAL);
	VT_NULL_AS(alloc_dm(s.ctx, max + 1), EINVAL);
	VT_NULL_AS(ibv_alloc_dm(s.ctx, &odd), EINVAL);
	dm = alloc_dm(s.ctx, max - PAGE);
	cr_assert_not_null(dm);
	VT_NULL_AS(alloc_dm(s.ctx, PAGE + 4), ENOMEM);
	more = alloc_dm(s.ctx, PAGE);
	cr_assert_not_null(more);
	cr_expect_eq(ibv_memcpy_from_dm(out, more, PAGE - 8, 8), 0);
	cr_expect_eq(out[0] | out[1], 0, "nobody's octets");
	cr_expect_eq(ibv_memcpy_to_dm(more, PAGE - 8, in, 8), 0);
	cr_expect_eq(ibv_memcpy_from_dm(out, more, PAGE - 8, 8), 0);
	cr_expect_arr_eq(out, in, 8);
	cr_expect_eq(ibv_memcpy_to_dm(more, PAGE - 4, in, 8), EINVAL);
	cr_expect_eq(ibv_memcpy_from_dm(out, more, UINT64_MAX - 3, 8), EINVAL);
	cr_expect_eq(ibv_memcpy_to_dm(more, 2, in, 4), EINVAL);
	VT_NULL_AS(ibv_reg_dm_mr(s.pd, more, 0, PAGE, IBV_ACCESS_LOCAL_WRITE), EINVAL);
	VT_NULL_AS(ibv_reg_dm_mr(s.pd, more, 4, PAGE, DM_ACCESS), EINVAL);
	mr = ibv_reg_dm_mr(s.pd, more, 0, PAGE, DM_ACCESS);
	cr_assert_not_null(mr);
	cr_expect_eq(ibv_rereg_mr(mr, IBV_REREG_MR_CHANGE_TRANSLATION, NULL, in, 8, 0),
		     IBV_REREG_MR_ERR_INPUT);
	cr_expect_eq(ibv_free_dm(more), EBUSY);
	cr_expect_eq(ibv_dereg_mr(mr), 0);
	cr_expect_eq(ibv_free_dm(more), 0);
	more = ibv_import_dm(s.ctx, dm->handle);
	cr_assert_not_null(more);
	cr_expect_eq(ibv_memcpy_to_dm(dm, 0, in, 8), 0);
	cr_expect_eq(ibv_memcpy_from_dm(out, more, 0, 4), 0);
	cr_expect_eq(out[0], in[0]);
	cr_expect_eq(ibv_free_dm(dm), EBUSY, "it is imported");
	ibv_unimport_dm(more);
	VT_NULL_AS(ibv_import_dm(s.ctx, dm->handle + 1000), EINVAL);
	cr_expect_eq(ibv_free_dm(dm), 0);
	vt_dev_close(&s);
}

/* A child has no session by its parent's context, but memory of its own. */
Test(verbs_memory, a_child_of_fork_has_device_memory)
{
	struct vt_dev s;
	int status;

	vt_dev_open(&s);
	if (!fork_at_rest()) {
		struct ibv_dm *dm = alloc_dm(s.ctx, dm_size(s.ctx));

		_exit(!dm || ibv_free_dm(dm));
	}
	cr_assert_gt(wait(&status), 0);
	cr_expect_eq(status, 0);
	vt_dev_close(&s);
}

/* Write from @mr of the one end at @from to @to of the peer's @rkey. */
static void write_to_verbs_memory(struct vt *v, struct ibv_mr *mr, uint64_t from, uint32_t rkey,
				  uint64_t to, enum ibv_wc_status status)
{
	struct ibv_sge sge = { from, 8, mr->lkey };
	struct ibv_send_wr wr = { .wr_id = 7,
				  .sg_list = &sge,
				  .num_sge = 1,
				  .opcode = IBV_WR_RDMA_WRITE,
				  .wr.rdma = { to, rkey } },
			   *bad;

	cr_assert_eq(ibv_post_send(v->a.id->qp, &wr, &bad), 0);
	vt_expect_wc(&v->a, 7, IBV_WC_RDMA_WRITE, status);
}

VT_TLS_TEST(verbs_memory, device_memory_to_device_memory)
{
	uint64_t word = 0x1122334455667788;
	struct ibv_mr *from, *to;
	struct ibv_dm *a, *b;
	struct vt v;

	vt_init(&v);
	vt_up(&v);
	a = alloc_dm(v.a.id->verbs, 64);
	b = alloc_dm(v.b.id->verbs, 64);
	cr_assert(a && b);
	from = ibv_reg_dm_mr(v.a.id->pd, a, 16, 16, DM_ACCESS);
	to = ibv_reg_dm_mr(v.b.id->pd, b, 32, 32, DM_ACCESS | IBV_ACCESS_REMOTE_WRITE);
	cr_assert(from && to);
	cr_assert_eq(ibv_memcpy_to_dm(a, 24, &word, 8), 0);
	write_to_verbs_memory(&v, from, 8, to->rkey, 16, IBV_WC_SUCCESS);
	word = 0;
	cr_assert_eq(ibv_memcpy_from_dm(&word, b, 48, 8), 0);
	cr_expect_eq(word, 0x1122334455667788);
	write_to_verbs_memory(&v, from, 12, to->rkey, 16, IBV_WC_LOC_PROT_ERR);
	cr_expect_eq(ibv_dereg_mr(from), 0);
	cr_expect_eq(ibv_dereg_mr(to), 0);
	cr_expect_eq(ibv_free_dm(a), 0);
	cr_expect_eq(ibv_free_dm(b), 0);
	vt_down(&v);
}

/* ibv_reg_mr(3): the offsets of ibv_reg_mr_iova are for the local key and the remote one; and they
 * are addresses again when the region gets other memory. */
VT_TLS_TEST(verbs_memory, own_offsets_hold_for_both_keys)
{
	struct ibv_mr *mr;
	struct vt v;

	vt_init(&v);
	vt_up(&v);
	mr = ibv_reg_mr_iova(v.a.id->pd, v.a.buf + 100, 50, 0x1000, IBV_ACCESS_LOCAL_WRITE);
	cr_assert_not_null(mr);
	memset(v.a.buf + 142, 'x', 8);
	write_to_verbs_memory(&v, mr, 0x1000 + 42, v.b.mr->rkey, (uintptr_t)v.b.buf,
			      IBV_WC_SUCCESS);
	cr_expect_arr_eq(v.b.buf, "xxxxxxxx", 8);
	cr_assert_eq(ibv_rereg_mr(mr, IBV_REREG_MR_CHANGE_TRANSLATION, NULL, v.a.buf + 200, 50, 0),
		     0);
	memset(v.a.buf + 200, 'y', 8);
	write_to_verbs_memory(&v, mr, (uintptr_t)v.a.buf + 200, v.b.mr->rkey, (uintptr_t)v.b.buf,
			      IBV_WC_SUCCESS);
	cr_expect_arr_eq(v.b.buf, "yyyyyyyy", 8);
	write_to_verbs_memory(&v, mr, 0x1000, v.b.mr->rkey, (uintptr_t)v.b.buf,
			      IBV_WC_LOC_PROT_ERR);
	cr_expect_eq(ibv_dereg_mr(mr), 0);
	vt_down(&v);
}

/* A window's offsets are those of its region. */
VT_TLS_TEST(verbs_memory, a_window_has_its_regions_offsets)
{
	struct ibv_mw_bind bind = { .wr_id = 5, .send_flags = IBV_SEND_SIGNALED };
	struct ibv_mr *mr;
	struct ibv_mw *mw;
	struct vt v;

	vt_init(&v);
	vt_up(&v);
	mr = ibv_reg_mr_iova(v.b.id->pd, v.b.buf, 64, 0x1000,
			     IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_MW_BIND);
	mw = ibv_alloc_mw(v.b.id->pd, IBV_MW_TYPE_1);
	cr_assert(mr && mw);
	bind.bind_info = (struct ibv_mw_bind_info){ mr, 0x1010, 16, IBV_ACCESS_REMOTE_WRITE };
	cr_assert_eq(ibv_bind_mw(v.b.id->qp, mw, &bind), 0);
	vt_expect_wc(&v.b, 5, IBV_WC_BIND_MW, IBV_WC_SUCCESS);
	memset(v.a.buf, 'w', 8);
	write_to_verbs_memory(&v, v.a.mr, (uintptr_t)v.a.buf, mw->rkey, 0x1018, IBV_WC_SUCCESS);
	cr_expect_arr_eq(v.b.buf + 24, "wwwwwwww", 8);
	cr_expect_eq(ibv_dealloc_mw(mw), 0);
	cr_expect_eq(ibv_dereg_mr(mr), 0);
	vt_down(&v);
}

/* A region of all memory is for own requests: no peer gets it, and none can name its addresses. */
VT_TLS_TEST(verbs_memory, implicit_paging_on_demand)
{
	static const unsigned more[] = { IBV_ACCESS_REMOTE_READ, IBV_ACCESS_REMOTE_WRITE,
					 IBV_ACCESS_REMOTE_ATOMIC, IBV_ACCESS_MW_BIND };
	unsigned access = IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_ON_DEMAND;
	char *own = mmap(NULL, PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	struct ibv_mr *mr;
	struct vt v;

	vt_init(&v);
	vt_up(&v);
	for (size_t i = 0; i < sizeof more / sizeof *more; i++)
		VT_NULL_AS(ibv_reg_mr(v.a.id->pd, NULL, SIZE_MAX, access | more[i]), EOPNOTSUPP);
	VT_NULL_AS(ibv_reg_mr(v.a.id->pd, NULL, SIZE_MAX, IBV_ACCESS_LOCAL_WRITE), EINVAL);
	mr = ibv_reg_mr(v.a.id->pd, NULL, SIZE_MAX, access);
	cr_assert_not_null(mr);
	cr_expect_eq(ibv_rereg_mr(mr, IBV_REREG_MR_CHANGE_ACCESS, NULL, NULL, 0,
				  (int)(access | IBV_ACCESS_REMOTE_WRITE)),
		     IBV_REREG_MR_ERR_INPUT);
	memset(own, 'o', 8);
	write_to_verbs_memory(&v, mr, (uintptr_t)own, v.b.mr->rkey, (uintptr_t)v.b.buf,
			      IBV_WC_SUCCESS);
	cr_expect_arr_eq(v.b.buf, "oooooooo", 8);
	cr_expect_eq(ibv_dereg_mr(mr), 0);
	vt_down(&v);
	munmap(own, PAGE);
}

static int resident(char *at, size_t pages)
{
	unsigned char in[8];
	int n = 0;

	cr_assert_eq(mincore(at, pages * PAGE, in), 0);
	for (size_t i = 0; i < pages; i++)
		n += in[i] & 1;
	return n;
}

/* Advice brings pages of such a region, of it alone and within its bounds. */
Test(verbs_memory, advice_brings_pages)
{
	char *mem =
		mmap(NULL, 8 * PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	struct ibv_mr *paged, *plain;
	struct ibv_sge sge;
	struct vt_dev s;

	vt_dev_open(&s);
	paged = ibv_reg_mr(s.pd, mem, 6 * PAGE, IBV_ACCESS_ON_DEMAND);
	plain = ibv_reg_mr(s.pd, mem, 6 * PAGE, 0);
	cr_assert(paged && plain);
#define ADVISE(advice, flags) ibv_advise_mr(s.pd, IBV_ADVISE_MR_ADVICE_##advice, flags, &sge, 1)
	sge = (struct ibv_sge){ (uintptr_t)mem + PAGE + 1, 2 * PAGE, paged->lkey };
	cr_expect_eq(ADVISE(PREFETCH_NO_FAULT, IBV_ADVISE_MR_FLAG_FLUSH), 0);
	cr_expect_eq(resident(mem, 8), 0);
	cr_expect_eq(ADVISE(PREFETCH_WRITE, 0), EPERM, "it cannot be written");
	cr_expect_eq(ADVISE(PREFETCH, 0), 0);
	cr_expect_eq(ADVISE(PREFETCH, IBV_ADVISE_MR_FLAG_FLUSH), 0);
	cr_expect_eq(ADVISE(PREFETCH, 2), EINVAL);
	sge.length = 6 * PAGE;
	cr_expect_eq(ADVISE(PREFETCH, 0), EINVAL, "beyond its end");
	sge = (struct ibv_sge){ (uintptr_t)mem, PAGE, plain->lkey };
	cr_expect_eq(ADVISE(PREFETCH, 0), EINVAL);
	cr_expect_eq(ibv_dereg_mr(paged), 0);
	paged = ibv_reg_mr_iova(s.pd, mem, 6 * PAGE, 0x100000,
				IBV_ACCESS_ON_DEMAND | IBV_ACCESS_LOCAL_WRITE);
	cr_assert_not_null(paged);
	sge = (struct ibv_sge){ 0x100000 + 3 * PAGE, PAGE, paged->lkey };
	cr_expect_eq(ADVISE(PREFETCH_WRITE, IBV_ADVISE_MR_FLAG_FLUSH), 0);
	cr_expect_eq(resident(mem + 3 * PAGE, 1), 1);
	munmap(mem + 4 * PAGE, PAGE);
	sge.addr += PAGE;
	cr_expect_eq(ADVISE(PREFETCH_WRITE, IBV_ADVISE_MR_FLAG_FLUSH), EFAULT);
	cr_expect_eq(ibv_dereg_mr(paged), 0);
	cr_expect_eq(ibv_dereg_mr(plain), 0);
	vt_dev_close(&s);
}

/* A buffer that the processor reaches is memory like any other: by its IOVA, at an offset, and no longer than it is. */
VT_TLS_TEST(verbs_memory, a_dma_buffer_is_mapped)
{
	const int rights = IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE;
	const uint64_t iova = 0x7000000 + 64;
	int fd = memfd_create("buffer", 0), ends[2], read_only;
	struct ibv_mr *mr, *other;
	char path[40];
	struct vt v;

	vt_init(&v);
	vt_up(&v);
	cr_assert(fd >= 0 && !ftruncate(fd, 3 * PAGE) && !pipe(ends));
	mr = ibv_reg_dmabuf_mr(v.a.id->pd, PAGE + 64, PAGE, iova, fd, rights);
	cr_assert_not_null(mr);
	cr_expect(mr->addr == (void *)(PAGE + 64) && mr->length == PAGE);
	cr_assert_eq(pwrite(fd, "abcdefgh", 8, PAGE + 64), 8);
	write_to_verbs_memory(&v, mr, iova, v.b.mr->rkey, (uintptr_t)v.b.buf, IBV_WC_SUCCESS);
	cr_expect_arr_eq(v.b.buf, "abcdefgh", 8);
	other = ibv_reg_dmabuf_mr(v.b.id->pd, 2 * PAGE, 8, 0x10000, fd, rights);
	cr_assert_not_null(other);
	close(fd); /* the region holds it */
	write_to_verbs_memory(&v, v.a.mr, (uintptr_t)v.a.buf, other->rkey, 0x10000, IBV_WC_SUCCESS);
	cr_expect_eq(ibv_dereg_mr(other), 0);
	cr_expect_eq(ibv_dereg_mr(mr), 0);

	fd = memfd_create("buffer", 0);
	cr_assert(fd >= 0 && !ftruncate(fd, PAGE));
	snprintf(path, sizeof path, "/proc/self/fd/%d", fd);
	read_only = open(path, O_RDONLY);
	cr_assert_geq(read_only, 0);
	VT_NULL_AS(ibv_reg_dmabuf_mr(v.a.id->pd, 0, PAGE + 1, 0, fd, rights), EINVAL);
	VT_NULL_AS(ibv_reg_dmabuf_mr(v.a.id->pd, UINT64_MAX - 4095, PAGE, 0, fd, rights), EINVAL);
	VT_NULL_AS(ibv_reg_dmabuf_mr(v.a.id->pd, 8, 8, 16, fd, rights), EINVAL);
	VT_NULL_AS(ibv_reg_dmabuf_mr(v.a.id->pd, 0, 0, 0, fd, rights), EINVAL);
	VT_NULL_AS(ibv_reg_dmabuf_mr(v.a.id->pd, 0, 8, 0, ends[0], rights), EINVAL);
	VT_NULL_AS(ibv_reg_dmabuf_mr(v.a.id->pd, 0, 8, 0, -1, rights), EBADF);
	VT_NULL_AS(ibv_reg_dmabuf_mr(v.a.id->pd, 0, 8, 0, read_only, rights), EACCES);
	VT_NULL_AS(ibv_reg_dmabuf_mr(v.a.id->pd, 0, 8, 0, fd, IBV_ACCESS_ON_DEMAND), EOPNOTSUPP);
	mr = ibv_reg_dmabuf_mr(v.a.id->pd, 0, 8, 0, read_only, 0);
	cr_expect(mr && !ibv_dereg_mr(mr), "for Sends alone");
	vt_down(&v);
}

/* ---- parent and thread domains, objects by their handles, memory windows: who holds whom ---- */

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
