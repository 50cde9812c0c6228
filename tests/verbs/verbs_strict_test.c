/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The table of strict mode in docs/verbs.md: each row, with each face, by default and in strict mode.
 * What is refused is refused with the number of the table.
 */
#include "edge/ed.h" /* calls, not the macros of ibv_reg_mr */
#include "verbs/vchild.h"
#include "verbs/vd.h"
#include "verbs/voob.h"
#include "verbs/vt.h"
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>

enum mode { DEFAULT_IWARP, DEFAULT_ROCE, STRICT_IWARP, STRICT_ROCE, MODES };

/* Two ends connected by rdma_cm, and what queue pairs need that programs connect themselves. */
static struct vt v;
static struct side s;

/* What the call that came last says of itself. */
static int err_of(bool fails)
{
	return fails ? errno : 0;
}

/* ---- queue pairs ---- */

static struct ibv_qp *make(enum ibv_qp_type type, struct ibv_qp_cap cap)
{
	struct ibv_qp_init_attr init = {
		.send_cq = s.cq, .recv_cq = s.cq, .qp_type = type, .cap = cap
	};

	return ibv_create_qp(s.pd, &init);
}

static int can_make(enum ibv_qp_type type, struct ibv_qp_cap cap)
{
	struct ibv_qp *qp = make(type, cap);
	int err = err_of(!qp);

	if (qp)
		cr_assert_eq(ibv_destroy_qp(qp), 0);
	return err;
}

static int expect_strict_attribute_missing(void)
{
	struct ibv_qp_attr attr = { .qp_state = IBV_QPS_INIT, .port_num = 1 };
	struct ibv_qp *qp = make(IBV_QPT_RC, (struct ibv_qp_cap){ 4, 4, 1, 1, 0 });
	int err = ibv_modify_qp(qp, &attr, IBV_QP_STATE | IBV_QP_PORT);

	cr_assert_eq(ibv_destroy_qp(qp), 0);
	return err;
}

static int without_rdma_cm(void)
{
	int err;

	s.qp = make_oob_qp(&s, IBV_QPT_RC);
	cr_assert_eq(move_oob_to_rtr(s.qp, s.qp->qp_num, &s.gid), 0);
	err = to_rts(s.qp);
	cr_assert_eq(ibv_destroy_qp(s.qp), 0);
	s.qp = NULL;
	return err;
}

static int post_before_rts(void)
{
	int err;

	s.qp = make_oob_qp(&s, IBV_QPT_RC);
	cr_assert_eq(move_oob_to_rtr(s.qp, s.qp->qp_num, &s.gid), 0);
	err = say_oob(&s, "x", 0);
	cr_assert_eq(ibv_destroy_qp(s.qp), 0);
	s.qp = NULL;
	return err;
}

static int check_strict_datagrams(void)
{
	return can_make(IBV_QPT_UD, (struct ibv_qp_cap){ 4, 4, 1, 1, 0 });
}

static int unreliable(void)
{
	return can_make(IBV_QPT_UC, (struct ibv_qp_cap){ 4, 4, 1, 1, 0 });
}

static int many_pieces(void)
{
	return can_make(IBV_QPT_RC, (struct ibv_qp_cap){ 4, 4, 7, 1, 0 });
}

static int much_inline(void)
{
	return can_make(IBV_QPT_RC, (struct ibv_qp_cap){ 4, 4, 1, 1, 257 });
}

/* ---- requests ---- */

static int post_strict_wr(enum ibv_wr_opcode op, unsigned flags, struct ibv_sge *sge, int n)
{
	struct ibv_send_wr wr = { .opcode = op, .send_flags = flags, .sg_list = sge, .num_sge = n };
	struct ibv_send_wr *bad;

	if (op >= IBV_WR_ATOMIC_CMP_AND_SWP) {
		wr.wr.atomic.remote_addr = (uintptr_t)v.b.buf;
		wr.wr.atomic.rkey = v.b.mr->rkey;
	} else {
		wr.wr.rdma.remote_addr = (uintptr_t)v.b.buf;
		wr.wr.rdma.rkey = v.b.mr->rkey;
	}
	return ibv_post_send(v.a.id->qp, &wr, &bad);
}

/* What was posted before has arrived: this came behind it. */
static void wait_for_all_strict(void)
{
	cr_assert_eq(vt_recv(&v.a, 1, 0, 8), 0);
	cr_assert_eq(vt_post(&v.b, 2, IBV_WR_SEND, 8, NULL), 0);
	vt_expect_wc(&v.a, 1, IBV_WC_RECV, IBV_WC_SUCCESS);
}

static int unsignalled_for_ever(void)
{
	for (int i = 0; i < 16; i++)
		cr_assert_eq(post_strict_wr(IBV_WR_RDMA_WRITE, 0, NULL, 0), 0);
	wait_for_all_strict();
	return post_strict_wr(IBV_WR_RDMA_WRITE, 0, NULL, 0);
}

static int signalled_and_not_fetched(void)
{
	int err;

	for (int i = 0; i < 16; i++)
		cr_assert_eq(post_strict_wr(IBV_WR_RDMA_WRITE, IBV_SEND_SIGNALED, NULL, 0), 0);
	err = post_strict_wr(IBV_WR_RDMA_WRITE, IBV_SEND_SIGNALED, NULL, 0);
	vt_expect_wc(&v.a, 0, IBV_WC_RDMA_WRITE, IBV_WC_SUCCESS);
	cr_expect_eq(post_strict_wr(IBV_WR_RDMA_WRITE, IBV_SEND_SIGNALED, NULL, 0), 0,
		     "one was fetched");
	return err;
}

static int read_in(struct ibv_mr *mr, int n)
{
	struct ibv_sge sge[2] = { { (uintptr_t)v.a.buf, 8, mr->lkey },
				  { (uintptr_t)v.a.buf + 8, 8, mr->lkey } };
	int err = post_strict_wr(IBV_WR_RDMA_READ, IBV_SEND_SIGNALED, sge, n);

	if (!err)
		vt_expect_wc(&v.a, 0, IBV_WC_RDMA_READ, IBV_WC_SUCCESS);
	return err;
}

static int read_without_right(void)
{
	struct ibv_mr *mr = ibv_reg_mr(v.a.id->pd, v.a.buf, sizeof v.a.buf, IBV_ACCESS_LOCAL_WRITE);
	int err = read_in(mr, 1);

	cr_assert_eq(ibv_dereg_mr(mr), 0);
	return err;
}

static int read_in_pieces(void)
{
	return read_in(v.a.mr, 2);
}

static int inline_beyond_the_grant(void)
{
	struct ibv_qp_init_attr init;
	struct ibv_qp_attr attr;
	struct ibv_sge sge = { (uintptr_t)v.a.buf, 0, 0 };

	cr_assert_eq(ibv_query_qp(v.a.id->qp, &attr, IBV_QP_CAP, &init), 0);
	sge.length = init.cap.max_inline_data + 1;
	return post_strict_wr(IBV_WR_RDMA_WRITE, IBV_SEND_INLINE, &sge, 1);
}

static int pieces_beyond_the_grant(void)
{
	struct ibv_sge sge[5] = { { 0, 0, 0 } };

	return post_strict_wr(IBV_WR_RDMA_WRITE, 0, sge, 5);
}

static int receives_beyond_the_grant(void)
{
	int err = 0;

	for (int i = 0; i < 17 && !err; i++)
		err = vt_recv(&v.a, 3, 0, 8);
	return err;
}

static int atomic(void)
{
	struct ibv_sge sge = { (uintptr_t)v.a.buf, 8, v.a.mr->lkey };
	int err = post_strict_wr(IBV_WR_ATOMIC_FETCH_AND_ADD, IBV_SEND_SIGNALED, &sge, 1);

	if (!err)
		vt_wc(&v.a);
	return err;
}

static int check_strict_immediate(void)
{
	int err;

	cr_assert_eq(vt_recv(&v.b, 4, 0, 8), 0);
	err = post_strict_wr(IBV_WR_SEND_WITH_IMM, IBV_SEND_SIGNALED, NULL, 0);
	if (!err) {
		vt_wc(&v.a);
		vt_wc(&v.b);
	}
	return err;
}

static int message_too_long(void)
{
	struct ibv_sge sge[4];

	for (int i = 0; i < 4; i++)
		sge[i] = (struct ibv_sge){ (uintptr_t)v.a.buf, 1u << 30, v.a.mr->lkey };
	sge[3].length = 0;
	return post_strict_wr(IBV_WR_RDMA_WRITE, 0, sge, 4);
}

/* ---- connections: of a third end ---- */

static int connect_with(struct rdma_conn_param *param)
{
	struct vt_end third = { .ch = rdma_create_event_channel() };
	int err;

	cr_assert_eq(rdma_create_id(third.ch, &third.id, NULL, RDMA_PS_TCP), 0);
	cr_assert_eq(rdma_resolve_addr(third.id, NULL, (struct sockaddr *)&v.addr, 2000), 0);
	vt_expect(third.ch, RDMA_CM_EVENT_ADDR_RESOLVED);
	cr_assert_eq(rdma_resolve_route(third.id, 2000), 0);
	vt_expect(third.ch, RDMA_CM_EVENT_ROUTE_RESOLVED);
	vt_equip(&v, &third);
	err = err_of(rdma_connect(third.id, param) != 0);
	vt_end_down(&third);
	rdma_destroy_event_channel(third.ch);
	return err;
}

static int many_reads(void)
{
	struct rdma_conn_param param = { .responder_resources = 200, .initiator_depth = 1 };

	return connect_with(&param);
}

static int all_reads(void)
{
	struct rdma_conn_param param = { .responder_resources = RDMA_MAX_RESP_RES,
					 .initiator_depth = RDMA_MAX_INIT_DEPTH };

	return connect_with(&param);
}

static int check_strict_private_data(void)
{
	static const char data[57];
	struct rdma_conn_param param = { .private_data = data, .private_data_len = sizeof data };

	return connect_with(&param);
}

/* ---- memory ---- */

static int can_register(void *at, size_t len, unsigned access)
{
	struct ibv_mr *mr = ibv_reg_mr(s.pd, at, len, (int)access);
	int err = err_of(!mr);

	if (mr)
		cr_assert_eq(ibv_dereg_mr(mr), 0);
	return err;
}

static int expect_strict_unmapped(void)
{
	void *at = mmap(NULL, 4096, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	int err = can_register(at, 4096, IBV_ACCESS_LOCAL_WRITE);

	munmap(at, 4096);
	return err;
}

static int remote_alone(void)
{
	return can_register(s.buf, sizeof s.buf, IBV_ACCESS_REMOTE_WRITE);
}

/* What is registered counts together, and what is deregistered does not. */
static int more_than_may_be_locked(void)
{
	const size_t half = 32 * 4096;
	struct rlimit limit = { 64 * 4096, 64 * 4096 };
	char *at = mmap(NULL, 4 * half, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	struct ibv_mr *mr;
	int err;

	vf_may_not_pin();
	cr_assert_eq(setrlimit(RLIMIT_MEMLOCK, &limit), 0);
	cr_expect_eq(can_register(at, half, IBV_ACCESS_LOCAL_WRITE), 0);
	cr_expect_eq(can_register(at, half, IBV_ACCESS_LOCAL_WRITE), 0);
	mr = ibv_reg_mr(s.pd, at, half, IBV_ACCESS_LOCAL_WRITE);
	cr_assert_not_null(mr);
	err = can_register(at, half, IBV_ACCESS_LOCAL_WRITE);
	cr_expect_eq(can_register(at, 4 * half, IBV_ACCESS_ON_DEMAND), 0);
	errno = 0;
	cr_expect_eq(ibv_rereg_mr(mr, IBV_REREG_MR_CHANGE_TRANSLATION, NULL, at, 4 * half, 0) != 0,
		     err != 0);
	cr_expect_eq(errno, err);
	cr_assert_eq(ibv_dereg_mr(mr), 0);
	munmap(at, 4 * half);
	return err;
}

static int atomic_memory(void)
{
	return can_register(s.buf, sizeof s.buf, IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_ATOMIC);
}

/* ---- the table ---- */

static const struct row {
	const char *name; /* as the first column of docs/verbs.md */
	int (*probe)(void);
	int expected[MODES]; /* 0: it is taken */
} rows[] = {
	{ "too few attributes", expect_strict_attribute_missing, { 0, EINVAL, EINVAL, EINVAL } },
	{ "RTS without rdma_cm", without_rdma_cm, { 0, 0, EINVAL, 0 } },
	{ "a Send before RTS", post_before_rts, { 0, EINVAL, EINVAL, EINVAL } },
	{ "type UD", check_strict_datagrams, { 0, 0, EOPNOTSUPP, 0 } },
	{ "type UC", unreliable, { 0, 0, EOPNOTSUPP, 0 } },
	{ "more than 6 pieces", many_pieces, { 0, 0, EINVAL, EINVAL } },
	{ "more than 256 octets inline", much_inline, { 0, 0, EINVAL, EINVAL } },
	{ "a send queue that nobody polls", unsignalled_for_ever, { 0, 0, ENOMEM, ENOMEM } },
	{ "the same, all of them signalled",
	  signalled_and_not_fetched,
	  { ENOMEM, ENOMEM, ENOMEM, ENOMEM } },
	{ "a Read into several pieces", read_in_pieces, { EINVAL, EINVAL, EINVAL, EINVAL } },
	{ "a Read into memory without a right", read_without_right, { 0, 0, EINVAL, 0 } },
	{ "inline data beyond the grant",
	  inline_beyond_the_grant,
	  { EINVAL, EINVAL, EINVAL, EINVAL } },
	{ "pieces beyond the grant", pieces_beyond_the_grant, { EINVAL, EINVAL, EINVAL, EINVAL } },
	{ "atomics", atomic, { 0, 0, EOPNOTSUPP, 0 } },
	{ "atomic memory", atomic_memory, { 0, 0, EOPNOTSUPP, 0 } },
	{ "immediate data", check_strict_immediate, { 0, 0, EOPNOTSUPP, 0 } },
	{ "a message beyond max_msg_sz", message_too_long, { 0, EINVAL, 0, EINVAL } },
	{ "a receive beyond the grant",
	  receives_beyond_the_grant,
	  { ENOMEM, ENOMEM, ENOMEM, ENOMEM } },
	{ "more Reads than the device", many_reads, { 0, 0, EINVAL, EINVAL } },
	{ "all Reads of the device", all_reads, { 0, 0, 0, 0 } },
	{ "57 octets of private data", check_strict_private_data, { 0, EINVAL, 0, EINVAL } },
	{ "memory that is not there", expect_strict_unmapped, { EFAULT, EFAULT, EFAULT, EFAULT } },
	{ "a right of the peer alone", remote_alone, { EINVAL, EINVAL, EINVAL, EINVAL } },
	{ "more memory than ulimit -l", more_than_may_be_locked, { 0, 0, ENOMEM, ENOMEM } },
};

static void run_rows(enum mode mode)
{
	setenv("DDPSESS_STRICT", mode >= STRICT_IWARP ? "on" : "off", 1);
	setenv("DDPSESS_FACE", mode == DEFAULT_ROCE || mode == STRICT_ROCE ? "roce" : "iwarp", 1);
	for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
		int got;

		vt_init(&v);
		if (mode == STRICT_IWARP)
			v.access &= ~(unsigned)IBV_ACCESS_REMOTE_ATOMIC;
		v.init.sq_sig_all = 0;
		vt_up(&v);
		up_device(&s);
		errno = 0;
		got = rows[i].probe();
		cr_expect_eq(got, rows[i].expected[mode], "%s: %d, not %d", rows[i].name, got,
			     rows[i].expected[mode]);
		close_oob_side(&s);
		vt_down(&v);
	}
}

Test(verbs_strict, contact_29_by_default_on_iwarp, .timeout = 60)
{
	run_rows(DEFAULT_IWARP);
}

Test(verbs_strict, contact_29_by_default_on_roce, .timeout = 60)
{
	run_rows(DEFAULT_ROCE);
}

Test(verbs_strict, contact_29_strict_on_iwarp, .timeout = 60)
{
	run_rows(STRICT_IWARP);
}

Test(verbs_strict, contact_29_strict_on_roce, .timeout = 60)
{
	run_rows(STRICT_ROCE);
}

/* ---- what is said, and a profile ---- */

static void refuse_twice(const void *arg)
{
	(void)arg;
	up_device(&s);
	for (int i = 0; i < 2; i++) {
		cr_assert_eq(many_pieces(), EINVAL);
		cr_assert_eq(check_strict_datagrams(), EOPNOTSUPP);
	}
	close_oob_side(&s);
}

Test(verbs_strict, contact_29_each_kind_is_said_once, .timeout = 60)
{
	const char *told;

	setenv("DDPSESS_STRICT", "on", 1);
	cr_expect_eq(vchild_run(refuse_twice, NULL, &told), 0);
	cr_expect_eq(vchild_times(told, "ddpsess: strict: size: "), 1);
	cr_expect_eq(vchild_times(told, "ddpsess: strict: qp-type: "), 1);
	cr_expect_eq(vchild_times(told, "ddpsess: "), 2, "%s", told);
}

Test(verbs_strict, contact_29_a_profile_and_strict_mode_work_together, .timeout = 60)
{
	struct ibv_device_attr attr;

	vp_use("device d0\nface roce\nlimit max_sge 8\n");
	setenv("DDPSESS_STRICT", "on", 1);
	up_device(&s);
	cr_assert_eq(ibv_query_device(s.ctx, &attr), 0);
	cr_expect_eq(attr.max_sge, 8);
	cr_expect_eq(attr.atomic_cap, IBV_ATOMIC_HCA);
	cr_expect_eq(many_pieces(), 0);
	cr_expect_eq(much_inline(), EINVAL);
	close_oob_side(&s);
}
