/* SPDX-License-Identifier: BSD-2-Clause */
/* Memory that an adapter could not pin is not registered. */
#include "vt.h"
#include <errno.h>
#include <sys/mman.h>
#include <unistd.h>

#define WRITES (IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE)

static uint8_t *map(size_t len, int prot)
{
	void *p = mmap(NULL, len, prot, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	cr_assert_neq(p, MAP_FAILED);
	return p;
}

static void taken(struct ibv_pd *pd, void *mem, size_t len, unsigned access)
{
	struct ibv_mr *mr = ibv_reg_mr(pd, mem, len, access);

	cr_assert_not_null(mr, "%m: %zu octets, access %#x", len, access);
	cr_expect_eq(ibv_dereg_mr(mr), 0);
}

VT_TEST(verbs_mapped, contact_24_memory_that_cannot_be_registered)
{
	const size_t page = (size_t)sysconf(_SC_PAGESIZE);
	uint8_t *rw = map(4 * page, PROT_READ | PROT_WRITE), *ro = map(4 * page, PROT_READ);
	uint8_t *none = map(4 * page, PROT_NONE), *hole = map(4 * page, PROT_READ | PROT_WRITE);
	struct vt_dev d;
	struct ibv_mr *mr;

	vt_dev_open(&d);
	cr_assert_eq(munmap(hole + page, page), 0);
	taken(d.pd, rw, 4 * page, WRITES);
	taken(d.pd, rw + 1, 4 * page - 2, WRITES);
	taken(d.pd, ro, 4 * page, 0);
	taken(d.pd, ro, 4 * page, IBV_ACCESS_REMOTE_READ);
	taken(d.pd, hole, page, WRITES);
	taken(d.pd, hole + 2 * page, 2 * page, WRITES);
	taken(d.pd, ro, 0, WRITES);
	taken(d.pd, none, page, IBV_ACCESS_ON_DEMAND | WRITES);
	VT_NULL_AS(ibv_reg_mr(d.pd, ro, page, IBV_ACCESS_LOCAL_WRITE), EFAULT);
	VT_NULL_AS(ibv_reg_mr(d.pd, none, page, 0), EFAULT);
	VT_NULL_AS(ibv_reg_mr(d.pd, hole + page, 1, 0), EFAULT);
	VT_NULL_AS(ibv_reg_mr(d.pd, hole, 2 * page, WRITES), EFAULT);
	VT_NULL_AS(ibv_reg_mr(d.pd, hole + page - 1, 2, WRITES), EFAULT);
	VT_NULL_AS(ibv_reg_mr(d.pd, (void *)0xffff800000000000u, page, WRITES), EFAULT);
	/* one that is there keeps what it has */
	mr = ibv_reg_mr(d.pd, ro, page, IBV_ACCESS_REMOTE_READ);
	cr_assert_not_null(mr);
	cr_expect_eq(ibv_rereg_mr(mr, IBV_REREG_MR_CHANGE_ACCESS, NULL, NULL, 0, WRITES),
		     IBV_REREG_MR_ERR_INPUT);
	cr_expect_eq(errno, EFAULT);
	cr_expect_eq(ibv_rereg_mr(mr, IBV_REREG_MR_CHANGE_TRANSLATION, NULL, none, page, 0),
		     IBV_REREG_MR_ERR_INPUT);
	cr_expect_eq(errno, EFAULT);
	cr_expect(mr->addr == ro && mr->length == page);
	cr_expect_eq(ibv_rereg_mr(mr, IBV_REREG_MR_CHANGE_TRANSLATION | IBV_REREG_MR_CHANGE_ACCESS,
				  NULL, rw, page, WRITES),
		     0);
	cr_expect_eq(ibv_dereg_mr(mr), 0);
	vt_dev_close(&d);
	munmap(rw, 4 * page);
	munmap(ro, 4 * page);
	munmap(none, 4 * page);
	munmap(hole, page);
	munmap(hole + 2 * page, 2 * page);
}
