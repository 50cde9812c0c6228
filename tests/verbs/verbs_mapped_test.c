/* SPDX-License-Identifier: BSD-2-Clause */
/* Memory that an adapter could not pin is not registered. */
#include "verbs/ib/vd_memory.h"
#include "verbs/vchild.h"
#include "verbs/vt.h"
#include <errno.h>
#include <signal.h>
#include <sys/mman.h>
#include <unistd.h>

#define LARGE  (1u << 20)
#define WRITES (IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE)

static uint8_t *map_verbs_mapped(size_t len, int prot)
{
	void *p = mmap(NULL, len, prot, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	cr_assert_neq(p, MAP_FAILED);
	return p;
}

static void take_checked_verbs_mapped(struct ibv_pd *pd, void *mem, size_t len, unsigned access)
{
	struct ibv_mr *mr = ibv_reg_mr(pd, mem, len, access);

	cr_assert_not_null(mr, "%m: %zu octets, access %#x", len, access);
	cr_expect_eq(ibv_dereg_mr(mr), 0);
}

VT_TLS_TEST(verbs_mapped, contact_24_memory_that_cannot_be_registered)
{
	const size_t page = (size_t)sysconf(_SC_PAGESIZE);
	uint8_t *rw = map_verbs_mapped(4 * page, PROT_READ | PROT_WRITE),
		*ro = map_verbs_mapped(4 * page, PROT_READ);
	uint8_t *none = map_verbs_mapped(4 * page, PROT_NONE),
		*hole = map_verbs_mapped(4 * page, PROT_READ | PROT_WRITE);
	struct vt_dev d;
	struct ibv_mr *mr;

	vt_dev_open(&d);
	cr_assert_eq(munmap(hole + page, page), 0);
	take_checked_verbs_mapped(d.pd, rw, 4 * page, WRITES);
	take_checked_verbs_mapped(d.pd, rw + 1, 4 * page - 2, WRITES);
	take_checked_verbs_mapped(d.pd, ro, 4 * page, 0);
	take_checked_verbs_mapped(d.pd, ro, 4 * page, IBV_ACCESS_REMOTE_READ);
	take_checked_verbs_mapped(d.pd, hole, page, WRITES);
	take_checked_verbs_mapped(d.pd, hole + 2 * page, 2 * page, WRITES);
	take_checked_verbs_mapped(d.pd, ro, 0, WRITES);
	take_checked_verbs_mapped(d.pd, none, page, IBV_ACCESS_ON_DEMAND | WRITES);
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

/* ---- what changes behind a region's back ---- */

enum change { UNMAPPED, READ_ONLY, TRUNCATED };

/* The peer writes to it, as the region permits. */
static void peer_writes(const void *arg)
{
	const enum change change = *(const enum change *)arg;
	struct ibv_send_wr wr = { .opcode = IBV_WR_RDMA_WRITE,
				  .num_sge = 1,
				  .send_flags = IBV_SEND_SIGNALED },
			   *bad;
	static uint8_t from[LARGE]; /* so much that it is read into its place where it can be */
	struct ibv_sge sge;
	struct ibv_mr *mr, *own;
	struct vt v;
	uint8_t *mem;
	int fd = vchild_file("");

	signal(SIGSEGV, SIG_DFL); /* as in a program without a handler */
	signal(SIGBUS, SIG_DFL);
	vt_init(&v);
	vt_up(&v);
	cr_assert_eq(ftruncate(fd, LARGE), 0);
	mem = mmap(NULL, LARGE, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	cr_assert_neq(mem, MAP_FAILED);
	mr = ibv_reg_mr(v.b.id->pd, mem, LARGE, WRITES);
	cr_assert_not_null(mr);
	own = ibv_reg_mr(v.a.id->pd, from, LARGE, 0);
	cr_assert_not_null(own);
	sge = (struct ibv_sge){ (uintptr_t)from, LARGE, own->lkey };
	wr.sg_list = &sge;
	wr.wr.rdma.remote_addr = (uintptr_t)mem;
	wr.wr.rdma.rkey = mr->rkey;
	if (change == UNMAPPED)
		cr_assert_eq(munmap(mem + LARGE / 2, LARGE / 2), 0);
	else if (change == READ_ONLY)
		cr_assert_eq(mprotect(mem + LARGE / 2, LARGE / 2, PROT_READ), 0);
	else
		cr_assert_eq(ftruncate(fd, LARGE / 2), 0);
	cr_assert_eq(ibv_post_send(v.a.id->qp, &wr, &bad), 0);
	vt_expect(v.b.ch, RDMA_CM_EVENT_DISCONNECTED);
	_exit(64 + (int)vt_wc(&v.a).status);
}

/* @lives: the process, while the connection ends. */
static void over_all_changes(bool lives)
{
	static const char what[] = "it was unmapped or protected while registered";

	for (enum change change = UNMAPPED; change <= TRUNCATED; change++) {
		const char *told;
		int status = vchild_run(peer_writes, &change, &told);

		if (lives)
			cr_expect(WIFEXITED(status) &&
					  WEXITSTATUS(status) == 64 + IBV_WC_WR_FLUSH_ERR,
				  "%d: %#x %s", change, status, told);
		else
			cr_expect(WIFSIGNALED(status) &&
					  WTERMSIG(status) ==
						  (change == TRUNCATED ? SIGBUS : SIGSEGV),
				  "%d: %#x %s", change, status, told);
		cr_expect_eq(vchild_times(told, what), 1, "%d: %s", change, told);
	}
}

VT_TLS_TEST(verbs_mapped, contact_24_a_peer_writes_to_memory_that_is_gone)
{
	over_all_changes(false);
}

/* What need not be looked at the system reads into its place over TCP, and that finds the fault.  From
 * shared memory this process copies itself. */
VT_TLS_TEST(verbs_mapped, contact_24_without_checksums_the_system_finds_the_fault)
{
	setenv("DDPSESS_CRC", "off", 1);
	over_all_changes(!strcmp(getenv("DDPSESS_TRANSPORT"), "tcp") && !getenv("DDPSESS_SHM"));
}

/* Which of many are not there any more, in one look. */
Test(verbs_mapped, what_was_unmapped_is_found, .timeout = 60)
{
	const size_t page = (size_t)sysconf(_SC_PAGESIZE);
	uint8_t *at =
		mmap(NULL, 5 * page, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	struct vd_regions all = LIST_HEAD_INITIALIZER(all);
	struct vd_mr mr[3] = { 0 };
	bool others;

	for (int i = 2; i >= 0; i--) {
		mr[i].mr.addr = at + (size_t)i * 2 * page;
		mr[i].mr.length = page;
		mr[i].access = i ? IBV_ACCESS_LOCAL_WRITE : 0;
		LIST_INSERT_HEAD(&all, &mr[i], link);
	}
	cr_expect_null(vd_find_unmapped(&all, &others));
	cr_assert_eq(mprotect(at, page, PROT_READ), 0);
	cr_expect_null(vd_find_unmapped(&all, &others), "it may be read, and is");
	cr_assert_eq(mprotect(at + 2 * page, page, PROT_READ), 0);
	cr_expect_eq(vd_find_unmapped(&all, &others), &mr[1]);
	cr_expect_not(others);
	cr_assert_eq(munmap(at + 4 * page, page), 0);
	cr_expect_eq(vd_find_unmapped(&all, &others), &mr[1]);
	cr_expect(others);
	munmap(at, 4 * page);
}
