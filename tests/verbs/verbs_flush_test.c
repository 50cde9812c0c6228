/* SPDX-License-Identifier: BSD-2-Clause */
/* Atomic Writes and Flushes, as programs for later headers of libibverbs ask for them. */
#include "verbs/voob.h"
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

#define GLOBAL	   (1 << 8) /* IBV_ACCESS_FLUSH_GLOBAL, IBV_ACCESS_FLUSH_PERSISTENT */
#define PERSISTENT (1 << 9)
#define KEPT_LEN   65536
#define REMOTE	   (IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE)

enum { TO_SEE = 1, TO_KEEP = 2, RANGE = 0, REGION = 1 };

/* The members that later headers have at the end of struct ibv_qp_ex. */
struct newer {
	void (*wr_atomic_write)(struct ibv_qp_ex *ex, uint32_t rkey, uint64_t addr, const void *v);
	void (*wr_flush)(struct ibv_qp_ex *ex, uint32_t rkey, uint64_t addr, size_t len,
			 uint8_t type, uint8_t level);
};

static struct newer newer_of(struct ibv_qp_ex *ex)
{
	struct newer n;

	memcpy(&n, (char *)ex + offsetof(struct ibv_qp_ex, wr_abort) + sizeof(void *), sizeof n);
	return n;
}

static int build_atomic_write(struct ibv_qp *qp, uint64_t id, uint32_t rkey, const void *to,
			      const char *octets)
{
	struct ibv_qp_ex *ex = ibv_qp_to_qp_ex(qp);
	char copy[8];

	memcpy(copy, octets, sizeof copy);
	ibv_wr_start(ex);
	ex->wr_id = id;
	ex->wr_flags = IBV_SEND_SIGNALED;
	newer_of(ex).wr_atomic_write(ex, rkey, (uintptr_t)to, copy);
	memset(copy, 0, sizeof copy); /* it is ours again */
	return ibv_wr_complete(ex);
}

static int build_flush(struct ibv_qp *qp, uint64_t id, const struct ibv_mr *mr, size_t len,
		       uint8_t type, uint8_t level)
{
	struct ibv_qp_ex *ex = ibv_qp_to_qp_ex(qp);

	ibv_wr_start(ex);
	ex->wr_id = id;
	ex->wr_flags = IBV_SEND_SIGNALED;
	newer_of(ex).wr_flush(ex, mr->rkey, (uintptr_t)mr->addr, len, type, level);
	return ibv_wr_complete(ex);
}

static void await_flush_wc(struct vt *v, uint64_t id, int op, enum ibv_wc_status status)
{
	vt_expect_wc(&v->a, id, (enum ibv_wc_opcode)op, status);
}

static int post_atomic_write(struct vt *v, uint64_t id, uint32_t len, unsigned flags, int n)
{
	struct ibv_sge sge[2] = { { (uintptr_t)v->a.buf, len, v->a.mr->lkey },
				  { (uintptr_t)v->a.buf + 100, 8 - len, v->a.mr->lkey } };
	struct ibv_send_wr wr = { .wr_id = id,
				  .opcode = (enum ibv_wr_opcode)15,
				  .sg_list = sge,
				  .num_sge = n,
				  .send_flags = flags },
			   *bad;

	wr.wr.rdma.rkey = v->b.mr->rkey;
	wr.wr.rdma.remote_addr = (uintptr_t)v->b.buf + 16;
	return ibv_post_send(v->a.id->qp, &wr, &bad);
}

VT_TLS_TEST(verbs_flush, atomic_write)
{
	struct vt v;

	vt_init(&v);
	v.access = REMOTE; /* the right for RDMA Writes is enough */
	vt_up(&v);
	cr_assert_eq((uintptr_t)v.b.buf % 8, 0);
	cr_assert_eq(build_atomic_write(v.a.id->qp, 1, v.b.mr->rkey, v.b.buf + 8, "abcdefgh"), 0);
	await_flush_wc(&v, 1, 9, IBV_WC_SUCCESS);
	cr_expect_arr_eq(v.b.buf + 8, "abcdefgh", 8, "it is there when it has completed");
	memcpy(v.a.buf, "ijk", 3);
	memcpy(v.a.buf + 100, "lmnop", 5);
	cr_assert_eq(post_atomic_write(&v, 2, 3, 0, 2), 0);
	await_flush_wc(&v, 2, 9, IBV_WC_SUCCESS);
	cr_expect_arr_eq(v.b.buf + 16, "ijklmnop", 8);
	memcpy(v.a.buf, "qrstuvwx", 8);
	cr_assert_eq(post_atomic_write(&v, 3, 8, IBV_SEND_INLINE, 1), 0);
	await_flush_wc(&v, 3, 9, IBV_WC_SUCCESS);
	cr_expect_arr_eq(v.b.buf + 16, "qrstuvwx", 8);
	cr_expect_eq(post_atomic_write(&v, 4, 3, 0, 1), EINVAL, "3 octets");
	cr_expect_eq(post_atomic_write(&v, 4, 8, 0, 0), EINVAL, "none");
	/* Not at a multiple of 8. */
	cr_assert_eq(build_atomic_write(v.a.id->qp, 5, v.b.mr->rkey, v.b.buf + 4, "12345678"), 0);
	await_flush_wc(&v, 5, 9, IBV_WC_REM_ACCESS_ERR);
	cr_expect_arr_eq(v.b.buf + 8, "abcdefgh", 8);
	vt_down(&v);
}

VT_TEST(verbs_flush, an_atomic_write_comes_from_ones_own_memory)
{
	struct vt v;

	vt_init(&v);
	v.access = REMOTE;
	vt_up(&v);
	memset(v.b.buf + 16, 'b', 8);
	v.a.mr->lkey ^= 0xdead;
	cr_assert_eq(post_atomic_write(&v, 1, 8, 0, 1), 0);
	v.a.mr->lkey ^= 0xdead;
	vt_expect_wc(&v.a, 1, IBV_WC_RDMA_WRITE, IBV_WC_LOC_PROT_ERR);
	cr_expect_arr_eq(v.b.buf + 16, "bbbbbbbb", 8);
	vt_down(&v);
}

VT_TEST(verbs_flush, needs_the_right_of_a_write)
{
	struct vt v;

	vt_init(&v);
	v.access = IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_ATOMIC | IBV_ACCESS_REMOTE_READ;
	vt_up(&v);
	cr_assert_eq(build_atomic_write(v.a.id->qp, 1, v.b.mr->rkey, v.b.buf, "abcdefgh"), 0);
	await_flush_wc(&v, 1, 9, IBV_WC_REM_ACCESS_ERR);
	cr_expect_eq(v.b.buf[0], 0);
	vt_down(&v);
}

/* As rdma-core's own tests ask: Write, Flush of the range, Flush of the region, a type that the region does not
 * have. */
VT_TLS_TEST(verbs_flush, what_was_written_is_seen)
{
	struct vt v;

	vt_init(&v);
	v.access = REMOTE | GLOBAL;
	vt_up(&v);
	for (uint64_t i = 0; i < 20; i++) {
		memset(v.a.buf, (int)i + 1, 4000);
		cr_assert_eq(vt_post(&v.a, 1, IBV_WR_RDMA_WRITE, 4000, &v.b), 0);
		cr_assert_eq(build_flush(v.a.id->qp, 2, v.b.mr, 4000, TO_SEE, i % 2), 0);
		await_flush_wc(&v, 1, IBV_WC_RDMA_WRITE, IBV_WC_SUCCESS);
		await_flush_wc(&v, 2, 8, IBV_WC_SUCCESS);
	}
	cr_assert_eq(build_flush(v.a.id->qp, 3, v.b.mr, 12345678, TO_SEE, REGION), 0);
	await_flush_wc(&v, 3, 8, IBV_WC_SUCCESS);
	cr_expect_eq(build_flush(v.a.id->qp, 4, v.b.mr, 8, 0, RANGE), EINVAL, "of no type");
	cr_expect_eq(build_flush(v.a.id->qp, 4, v.b.mr, 8, 4, RANGE), EINVAL);
	cr_expect_eq(build_flush(v.a.id->qp, 4, v.b.mr, 8, TO_SEE, 2), EINVAL);
	cr_assert_eq(build_flush(v.a.id->qp, 5, v.b.mr, 8, TO_KEEP, RANGE), 0);
	await_flush_wc(&v, 5, 8, IBV_WC_REM_ACCESS_ERR);
	vt_down(&v);
}

VT_TEST(verbs_flush, beyond_the_region)
{
	struct vt v;

	vt_init(&v);
	v.access = REMOTE | GLOBAL;
	vt_up(&v);
	cr_assert_eq(build_flush(v.a.id->qp, 1, v.b.mr, sizeof v.b.buf + 1, TO_SEE, RANGE), 0);
	await_flush_wc(&v, 1, 8, IBV_WC_REM_ACCESS_ERR);
	vt_down(&v);
}

/* ---- files ---- */

struct kept {
	char name[32];
	uint8_t *at;
};

static void map_kept(struct kept *k)
{
	int fd;

	strcpy(k->name, "/var/tmp/ddps_flush_XXXXXX");
	fd = mkstemp(k->name);
	cr_assert_geq(fd, 0);
	cr_assert_eq(ftruncate(fd, KEPT_LEN), 0);
	k->at = mmap(NULL, KEPT_LEN, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	cr_assert_neq((void *)k->at, MAP_FAILED);
	close(fd);
}

static void unmap_kept(struct kept *k)
{
	munmap(k->at, KEPT_LEN);
	unlink(k->name);
}

/* How many KiB of the mapping the system has not written to the file yet. */
static long count_dirty(const struct kept *k)
{
	FILE *f = fopen("/proc/self/smaps", "re");
	char line[512], start[32];
	long sum = -1, n;

	cr_assert_not_null(f);
	snprintf(start, sizeof start, "%08" PRIxPTR "-", (uintptr_t)k->at);
	while (fgets(line, sizeof line, f) && strncmp(line, start, strlen(start)) != 0)
		;
	while (fgets(line, sizeof line, f)) {
		if (sscanf(line, "Shared_Dirty: %ld", &n) == 1)
			sum = n;
		if (sscanf(line, "Private_Dirty: %ld", &n) == 1) {
			sum += n;
			break;
		}
	}
	fclose(f);
	return sum;
}

VT_TEST(verbs_flush, what_was_written_is_in_the_file)
{
	struct ibv_mr *mr;
	struct kept k;
	struct vt v;

	vt_init(&v);
	vt_up(&v);
	map_kept(&k);
	mr = ibv_reg_mr(v.b.id->pd, k.at, KEPT_LEN, REMOTE | PERSISTENT);
	if (!mr && errno == EOPNOTSUPP) {
		unmap_kept(&k);
		vt_down(&v);
		cr_skip_test("/var/tmp is in memory");
	}
	cr_assert_not_null(mr, "%m");
	for (uint8_t level = RANGE; level <= REGION; level++) {
		struct vt_end to = { .mr = mr };
		struct ibv_sge sge = { (uintptr_t)v.a.buf, 8192, v.a.mr->lkey };
		struct ibv_send_wr wr = { .wr_id = 1,
					  .opcode = IBV_WR_RDMA_WRITE,
					  .sg_list = &sge,
					  .num_sge = 1 },
				   *bad;

		memset(v.a.buf, 7 + level, 8192);
		wr.wr.rdma.rkey = to.mr->rkey;
		wr.wr.rdma.remote_addr = (uintptr_t)k.at + 100;
		cr_assert_eq(ibv_post_send(v.a.id->qp, &wr, &bad), 0);
		cr_assert_eq(build_flush(v.a.id->qp, 2, mr, 8292, TO_KEEP, level), 0);
		await_flush_wc(&v, 1, IBV_WC_RDMA_WRITE, IBV_WC_SUCCESS);
		await_flush_wc(&v, 2, 8, IBV_WC_SUCCESS);
		cr_expect_eq(count_dirty(&k), 0);
		cr_expect_eq(k.at[8291], 7 + level);
	}
	k.at[0] = 1;
	cr_expect_gt(count_dirty(&k), 0, "what is asked above can be otherwise");
	/* Only what the region has the right for. */
	cr_assert_eq(build_flush(v.a.id->qp, 3, mr, 8, TO_SEE | TO_KEEP, RANGE), 0);
	await_flush_wc(&v, 3, 8, IBV_WC_REM_ACCESS_ERR);
	cr_assert_eq(ibv_dereg_mr(mr), 0);
	unmap_kept(&k);
	vt_down(&v);
}

/* The mapping goes although its region is there: no Flush of it says success. */
VT_TEST(verbs_flush, a_file_that_is_gone)
{
	struct ibv_mr *mr;
	struct kept k;
	struct vt v;

	vt_init(&v);
	vt_up(&v);
	map_kept(&k);
	mr = ibv_reg_mr(v.b.id->pd, k.at, KEPT_LEN, REMOTE | PERSISTENT);
	unmap_kept(&k);
	if (!mr) {
		vt_down(&v);
		cr_skip_test("/var/tmp is in memory");
	}
	cr_assert_eq(build_flush(v.a.id->qp, 1, mr, 8, TO_KEEP, RANGE), 0);
	await_flush_wc(&v, 1, 8, IBV_WC_REM_OP_ERR);
	cr_assert_eq(ibv_dereg_mr(mr), 0);
	vt_down(&v);
}

/* What no device keeps, is refused. */
Test(verbs_flush, memory_that_does_not_last)
{
	const size_t page = (size_t)sysconf(_SC_PAGESIZE);
	int fd = memfd_create("ddps_flush", MFD_CLOEXEC);
	struct ibv_mr *mr;
	struct vt_dev d;
	struct kept k;
	uint8_t *at;

	vt_dev_open(&d);
	map_kept(&k);
	cr_assert_eq(ftruncate(fd, KEPT_LEN), 0);
	at = mmap(NULL, KEPT_LEN, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	VT_NULL_AS(ibv_reg_mr(d.pd, at, KEPT_LEN, REMOTE | PERSISTENT), EOPNOTSUPP);
	VT_NULL_AS(ibv_reg_mr(d.pd, &d, sizeof d, REMOTE | PERSISTENT), EOPNOTSUPP);
	mr = ibv_reg_mr(d.pd, at, KEPT_LEN, REMOTE | GLOBAL);
	cr_assert_not_null(mr);
	errno = 0;
	cr_expect_eq(ibv_rereg_mr(mr, IBV_REREG_MR_CHANGE_ACCESS, NULL, NULL, 0,
				  REMOTE | PERSISTENT),
		     IBV_REREG_MR_ERR_INPUT);
	cr_expect_eq(errno, EOPNOTSUPP);
	cr_assert_eq(ibv_dereg_mr(mr), 0);
	/* A private mapping in the middle of a shared one. */
	cr_assert_eq((void *)mmap(k.at + page, page, PROT_READ | PROT_WRITE,
				  MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0),
		     k.at + page);
	VT_NULL_AS(ibv_reg_mr(d.pd, k.at, KEPT_LEN, REMOTE | PERSISTENT), EOPNOTSUPP);
	unmap_kept(&k);
	munmap(at, KEPT_LEN);
	close(fd);
	vt_dev_close(&d);
}

/* ---- who has it ---- */

static void check_caps(bool there)
{
	const uint64_t caps = UINT64_C(7) << 38;
	struct ibv_qp_init_attr_ex ex = { .cap = { 1, 1, 1, 1, 0 }, .qp_type = IBV_QPT_RC };
	struct ibv_device_attr_ex attr;
	struct vt_dev d;
	struct ibv_qp *qp;

	vt_dev_open(&d);
	cr_assert_eq(ibv_query_device_ex(d.ctx, NULL, &attr), 0);
	cr_expect_eq(attr.device_cap_flags_ex & caps, there ? caps : 0);
	cr_expect_eq(attr.odp_caps.per_transport_caps.rc_odp_caps >> 6 & 3, there ? 3 : 0);
	ex.send_cq = ex.recv_cq = d.cq;
	ex.pd = d.pd;
	ex.comp_mask = IBV_QP_INIT_ATTR_PD | IBV_QP_INIT_ATTR_SEND_OPS_FLAGS;
	ex.send_ops_flags = 3 << 11; /* IBV_QP_EX_WITH_FLUSH, IBV_QP_EX_WITH_ATOMIC_WRITE */
	qp = ibv_create_qp_ex(d.ctx, &ex);
	cr_expect_eq(qp != NULL, there);
	if (qp)
		cr_assert_eq(ibv_destroy_qp(qp), 0);
	ex.qp_type = IBV_QPT_UC;
	VT_NULL_AS(ibv_create_qp_ex(d.ctx, &ex), EOPNOTSUPP);
	if (!there)
		VT_NULL_AS(ibv_reg_mr(d.pd, &d, sizeof d, REMOTE | GLOBAL), EOPNOTSUPP);
	vt_dev_close(&d);
}

Test(verbs_flush, is_said)
{
	check_caps(true);
}

Test(verbs_flush, goes_with_the_atomics)
{
	setenv("DDPSESS_RFC7306", "off", 1);
	check_caps(false);
}

/* On queue pairs that the program connects; and not on those of type UC. */
Test(verbs_flush, without_rdma_cm, .timeout = 60)
{
	static const enum ibv_qp_type types[] = { IBV_QPT_RC, IBV_QPT_UC };

	for (int i = 0; i < 2; i++) {
		struct side a, b;
		struct ibv_wc wc;
		int want = i ? EINVAL : 0;

		up_device(&a);
		up_device(&b);
		a.qp = make_oob_qp(&a, types[i]);
		b.qp = make_oob_qp(&b, types[i]);
		meet_oob_side(&a, &b);
		meet_oob_side(&b, &a);
		cr_expect_eq(build_atomic_write(a.qp, 1, b.mr->rkey, b.buf, "abcdefgh"), want);
		if (!want) {
			wc = await_oob_wc(&a);
			cr_expect_eq((int)wc.opcode, 9);
			cr_expect_eq(wc.status, IBV_WC_SUCCESS);
			cr_expect_arr_eq(b.buf, "abcdefgh", 8);
		}
		close_oob_side(&a);
		close_oob_side(&b);
	}
}
