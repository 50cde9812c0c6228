/* SPDX-License-Identifier: BSD-2-Clause */
/* What ibv_modify_qp takes of a queue pair in each state, on either face. */
#include "verbs/vchild.h"
#include "verbs/voob.h"
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#define FOUND 66 /* the status of a program that sessctl run --check found mistakes in */

/* What each type needs for INIT, RTR and RTS, in this order. */
static const struct {
	enum ibv_qp_type type;
	int mask[3];
} whole[] = {
	{ IBV_QPT_RC, { TO_INIT, TO_RTR, TO_RTS } },
	{ IBV_QPT_UC,
	  { TO_INIT, TO_RTR & ~(IBV_QP_MAX_DEST_RD_ATOMIC | IBV_QP_MIN_RNR_TIMER),
	    IBV_QP_STATE | IBV_QP_SQ_PSN } },
	{ IBV_QPT_UD,
	  { IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_QKEY, IBV_QP_STATE,
	    IBV_QP_STATE | IBV_QP_SQ_PSN } },
};

static const int *masks_of(const struct side *s)
{
	int i = 0;

	while (whole[i].type != s->qp->qp_type)
		i++;
	return whole[i].mask;
}

/* Every attribute has a value that may be. */
static struct ibv_qp_attr all_right(const struct side *s)
{
	struct ibv_qp_attr attr = { .port_num = 1,
				    .path_mtu = IBV_MTU_1024,
				    .dest_qp_num = s->qp->qp_num,
				    .max_dest_rd_atomic = 4,
				    .max_rd_atomic = 3,
				    .min_rnr_timer = 12,
				    .timeout = 14,
				    .retry_cnt = 7,
				    .rnr_retry = 6,
				    .qkey = 0x22,
				    .ah_attr = { .is_global = 1, .port_num = 1 } };

	attr.ah_attr.grh.dgid = s->gid;
	return attr;
}

static int tell_verbs_modify(struct side *s, struct ibv_qp_attr attr, enum ibv_qp_state state,
			     int mask)
{
	attr.qp_state = state;
	return ibv_modify_qp(s->qp, &attr, mask);
}

/* From RESET to @state, by the whole masks. */
static void bring_to(struct side *s, enum ibv_qp_state state)
{
	struct ibv_qp_attr attr = all_right(s);

	cr_assert_eq(tell_verbs_modify(s, attr, IBV_QPS_RESET, IBV_QP_STATE), 0);
	for (int i = 0; i < 3 && IBV_QPS_INIT + i <= (int)state; i++)
		cr_assert_eq(tell_verbs_modify(s, attr, (enum ibv_qp_state)(IBV_QPS_INIT + i),
					       masks_of(s)[i]),
			     0);
}

/* As open_oob_side(), but the queue pair is as it was made. */
static void up_new(struct side *s, enum ibv_qp_type type)
{
	struct ibv_qp_init_attr init = { .qp_type = type, .cap = { 4, 4, 2, 2, 64 } };

	up_device(s);
	init.send_cq = init.recv_cq = s->cq;
	s->qp = ibv_create_qp(s->pd, &init);
	cr_assert_not_null(s->qp);
}

static void up_roce(struct side *s)
{
	setenv("DDPSESS_FACE", "roce", 1);
	up_new(s, IBV_QPT_RC);
}

/* Each attribute of @all is needed, and none of @others is taken. */
static void expect_mask(struct side *s, enum ibv_qp_state from, enum ibv_qp_state state, int all,
			int others)
{
	for (int bit = 1; bit <= IBV_QP_DEST_QPN; bit <<= 1) {
		if (bit == IBV_QP_STATE || !((all | others) & bit))
			continue;
		bring_to(s, from);
		cr_expect_eq(tell_verbs_modify(s, all_right(s), state, all ^ bit), EINVAL,
			     "%d to %d, mask %#x", from, state, (unsigned)(all ^ bit));
	}
}

/* @may is taken, with @all. */
static void expect_more(struct side *s, enum ibv_qp_state from, enum ibv_qp_state state, int all,
			int may)
{
	for (int bit = 1; bit <= IBV_QP_DEST_QPN; bit <<= 1) {
		struct ibv_qp_attr attr = all_right(s);

		if (!(may & bit))
			continue;
		bring_to(s, from);
		attr.cur_qp_state = from;
		cr_expect_eq(tell_verbs_modify(s, attr, state, all | bit), 0, "%d to %d, mask %#x",
			     from, state, (unsigned)(all | bit));
	}
}

VT_TEST(verbs_modify, contact_22_attributes_belong_to_moves)
{
	struct side s;

	up_roce(&s);
	expect_mask(&s, IBV_QPS_RESET, IBV_QPS_INIT, TO_INIT,
		    IBV_QP_QKEY | IBV_QP_TIMEOUT | IBV_QP_DEST_QPN);
	expect_mask(&s, IBV_QPS_INIT, IBV_QPS_RTR, TO_RTR, IBV_QP_PORT | IBV_QP_TIMEOUT);
	expect_mask(&s, IBV_QPS_RTR, IBV_QPS_RTS, TO_RTS, IBV_QP_DEST_QPN | IBV_QP_PORT);
	expect_mask(&s, IBV_QPS_RTS, IBV_QPS_RTS, IBV_QP_STATE, IBV_QP_SQ_PSN | IBV_QP_AV);
	expect_mask(&s, IBV_QPS_RTS, IBV_QPS_ERR, IBV_QP_STATE, IBV_QP_TIMEOUT);
	close_oob_side(&s);
}

VT_TEST(verbs_modify, contact_22_unreliable_connections_have_their_own)
{
	const int *mask = whole[1].mask;
	struct side s;

	setenv("DDPSESS_FACE", "roce", 1);
	up_new(&s, IBV_QPT_UC);
	expect_mask(&s, IBV_QPS_RESET, IBV_QPS_INIT, mask[0], IBV_QP_QKEY | IBV_QP_AV);
	expect_mask(&s, IBV_QPS_INIT, IBV_QPS_RTR, mask[1],
		    IBV_QP_MAX_DEST_RD_ATOMIC | IBV_QP_MIN_RNR_TIMER | IBV_QP_PORT);
	expect_more(&s, IBV_QPS_INIT, IBV_QPS_RTR, mask[1],
		    IBV_QP_ACCESS_FLAGS | IBV_QP_PKEY_INDEX | IBV_QP_ALT_PATH);
	expect_mask(&s, IBV_QPS_RTR, IBV_QPS_RTS, mask[2],
		    IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT | IBV_QP_RNR_RETRY | IBV_QP_MAX_QP_RD_ATOMIC |
			    IBV_QP_MIN_RNR_TIMER);
	expect_more(&s, IBV_QPS_RTR, IBV_QPS_RTS, mask[2], IBV_QP_CUR_STATE | IBV_QP_ACCESS_FLAGS);
	expect_mask(&s, IBV_QPS_RTS, IBV_QPS_RTS, IBV_QP_STATE, IBV_QP_MIN_RNR_TIMER | IBV_QP_QKEY);
	close_oob_side(&s);
}

VT_TEST(verbs_modify, contact_22_datagrams_have_their_own)
{
	const int *mask = whole[2].mask;
	struct side s;

	setenv("DDPSESS_FACE", "roce", 1);
	up_new(&s, IBV_QPT_UD);
	expect_mask(&s, IBV_QPS_RESET, IBV_QPS_INIT, mask[0], IBV_QP_ACCESS_FLAGS | IBV_QP_AV);
	expect_more(&s, IBV_QPS_INIT, IBV_QPS_INIT, IBV_QP_STATE,
		    IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_QKEY);
	expect_mask(&s, IBV_QPS_INIT, IBV_QPS_RTR, mask[1],
		    IBV_QP_AV | IBV_QP_DEST_QPN | IBV_QP_RQ_PSN | IBV_QP_PORT);
	expect_more(&s, IBV_QPS_INIT, IBV_QPS_RTR, mask[1], IBV_QP_PKEY_INDEX | IBV_QP_QKEY);
	expect_mask(&s, IBV_QPS_RTR, IBV_QPS_RTS, mask[2], IBV_QP_TIMEOUT | IBV_QP_ACCESS_FLAGS);
	expect_more(&s, IBV_QPS_RTR, IBV_QPS_RTS, mask[2], IBV_QP_CUR_STATE | IBV_QP_QKEY);
	expect_mask(&s, IBV_QPS_RTS, IBV_QPS_SQD, IBV_QP_STATE, IBV_QP_QKEY);
	close_oob_side(&s);
}

VT_TEST(verbs_modify, contact_22_what_may_be_is_taken)
{
	struct side s;
	struct ibv_qp_attr attr;

	up_roce(&s);
	bring_to(&s, IBV_QPS_INIT);
	attr = all_right(&s);
	cr_expect_eq(tell_verbs_modify(&s, attr, IBV_QPS_INIT, IBV_QP_STATE | IBV_QP_PORT), 0);
	bring_to(&s, IBV_QPS_RTS);
	attr.cur_qp_state = IBV_QPS_RTS;
	cr_expect_eq(tell_verbs_modify(&s, attr, IBV_QPS_RTS, IBV_QP_STATE | IBV_QP_CUR_STATE), 0);
	attr.cur_qp_state = IBV_QPS_SQD;
	cr_expect_eq(tell_verbs_modify(&s, attr, IBV_QPS_RTS, IBV_QP_STATE | IBV_QP_CUR_STATE),
		     EINVAL);
	cr_expect_eq(tell_verbs_modify(&s, attr, IBV_QPS_RTS, IBV_QP_STATE | IBV_QP_MIN_RNR_TIMER),
		     0);
	cr_expect_eq(tell_verbs_modify(&s, attr, IBV_QPS_RTS, IBV_QP_ACCESS_FLAGS), 0);
	cr_expect_eq(move_oob_qp(s.qp, IBV_QPS_ERR), 0);
	cr_expect_eq(move_oob_qp(s.qp, IBV_QPS_ERR), 0);
	cr_expect_eq(move_oob_qp(s.qp, IBV_QPS_RESET), 0);
	close_oob_side(&s);
}

#define REFUSED(from, state, mask, member, value)                                                  \
	do {                                                                                       \
		bring_to(&s, from);                                                                \
		attr = all_right(&s);                                                              \
		attr.member = value;                                                               \
		cr_expect_eq(tell_verbs_modify(&s, attr, state, mask), EINVAL,                     \
			     #member " " #value);                                                  \
	} while (0)

VT_TEST(verbs_modify, contact_22_values_are_checked)
{
	struct side s;
	struct ibv_qp_attr attr;

	up_roce(&s);
	REFUSED(IBV_QPS_RESET, IBV_QPS_INIT, TO_INIT, qp_access_flags, 1U << 25);
	REFUSED(IBV_QPS_INIT, IBV_QPS_RTR, TO_RTR, path_mtu, 0);
	REFUSED(IBV_QPS_INIT, IBV_QPS_RTR, TO_RTR, path_mtu, 9);
	REFUSED(IBV_QPS_INIT, IBV_QPS_RTR, TO_RTR, ah_attr.grh.sgid_index, 9);
	REFUSED(IBV_QPS_INIT, IBV_QPS_RTR, TO_RTR, ah_attr.port_num, 3);
	REFUSED(IBV_QPS_INIT, IBV_QPS_RTR, TO_RTR, ah_attr.is_global, 0);
	REFUSED(IBV_QPS_INIT, IBV_QPS_RTR, TO_RTR, max_dest_rd_atomic, 255);
	REFUSED(IBV_QPS_INIT, IBV_QPS_RTR, TO_RTR, min_rnr_timer, 32);
	REFUSED(IBV_QPS_RTR, IBV_QPS_RTS, TO_RTS, timeout, 32);
	REFUSED(IBV_QPS_RTR, IBV_QPS_RTS, TO_RTS, retry_cnt, 8);
	REFUSED(IBV_QPS_RTR, IBV_QPS_RTS, TO_RTS, rnr_retry, 8);
	REFUSED(IBV_QPS_RTR, IBV_QPS_RTS, TO_RTS, max_rd_atomic, 200);
	close_oob_side(&s);
}

static int listen_for_verbs_modify(struct side *s)
{
	struct ibv_sge sge = { (uintptr_t)s->buf, sizeof s->buf, s->mr->lkey };
	struct ibv_recv_wr wr = { .sg_list = &sge, .num_sge = 1 }, *bad = NULL;
	int err = ibv_post_recv(s->qp, &wr, &bad);

	cr_expect(!err || bad == &wr);
	return err;
}

VT_TEST(verbs_modify, contact_22_work_waits_for_its_state)
{
	struct side s;

	up_roce(&s);
	cr_expect_eq(say_oob(&s, "early", 0), EINVAL);
	cr_expect_eq(listen_for_verbs_modify(&s), EINVAL);
	bring_to(&s, IBV_QPS_INIT);
	cr_expect_eq(say_oob(&s, "early", 0), EINVAL);
	cr_expect_eq(listen_for_verbs_modify(&s), 0);
	bring_to(&s, IBV_QPS_RTR);
	cr_expect_eq(say_oob(&s, "early", 0), EINVAL);
	cr_expect_eq(listen_for_verbs_modify(&s), 0);
	cr_expect_eq(move_oob_qp(s.qp, IBV_QPS_ERR), 0);
	cr_expect_eq(say_oob(&s, "late", 0), 0);
	cr_expect_eq(listen_for_verbs_modify(&s), 0);
	close_oob_side(&s);
}

/* The session is there before the program has said RTS: the state is the program's nevertheless. */
VT_TEST(verbs_modify, contact_22_a_session_moves_no_state)
{
	struct side a, b;
	struct ibv_qp_attr attr;

	up_roce(&a);
	up_roce(&b);
	bring_to(&b, IBV_QPS_INIT);
	listen_to(&b);
	attr = all_right(&b);
	attr.dest_qp_num = a.qp->qp_num;
	cr_assert_eq(tell_verbs_modify(&b, attr, IBV_QPS_RTR, TO_RTR), 0);
	bring_to(&a, IBV_QPS_INIT);
	attr.dest_qp_num = b.qp->qp_num;
	cr_assert_eq(tell_verbs_modify(&a, attr, IBV_QPS_RTR, TO_RTR), 0);
	cr_assert_eq(tell_verbs_modify(&a, attr, IBV_QPS_RTS, TO_RTS), 0);
	cr_assert_eq(say_oob(&a, "hello", IBV_SEND_SIGNALED), 0);
	cr_expect_eq(await_oob_wc(&b).status, IBV_WC_SUCCESS);
	cr_expect_eq(b.qp->state, IBV_QPS_RTR);
	cr_expect_eq(tell_verbs_modify(&b, attr, IBV_QPS_RTS, TO_RTS), 0);
	cr_expect_eq(b.qp->state, IBV_QPS_RTS);
	cr_expect_eq(await_oob_wc(&a).status, IBV_WC_SUCCESS);
	close_oob_side(&a);
	close_oob_side(&b);
}

/* Drivers of RNICs take what belongs to InfiniBand alone for nothing. */
VT_TEST(verbs_modify, contact_22_the_iwarp_face_is_lenient)
{
	struct side s;

	open_oob_side(&s);
	bring_to(&s, IBV_QPS_RESET);
	cr_expect_eq(tell_verbs_modify(&s, all_right(&s), IBV_QPS_INIT, IBV_QP_STATE), 0);
	cr_expect_eq(listen_for_verbs_modify(&s), 0);
	cr_expect_eq(tell_verbs_modify(&s, all_right(&s), IBV_QPS_RTR,
				       IBV_QP_STATE | IBV_QP_AV | IBV_QP_DEST_QPN),
		     0);
	cr_expect_eq(tell_verbs_modify(&s, all_right(&s), IBV_QPS_RTS, IBV_QP_STATE), 0);
	close_oob_side(&s);
}

/* ---- what is reported ---- */

static void expect_told(void)
{
	struct side a, b;
	struct ibv_qp_attr attr, told;
	struct ibv_qp_init_attr init;

	up_new(&a, IBV_QPT_RC);
	up_new(&b, IBV_QPT_RC);
	bring_to(&b, IBV_QPS_INIT);
	bring_to(&a, IBV_QPS_RESET);
	attr = all_right(&a);
	attr.qp_access_flags = IBV_ACCESS_REMOTE_WRITE;
	cr_assert_eq(tell_verbs_modify(&a, attr, IBV_QPS_INIT, TO_INIT), 0);
	cr_assert_eq(ibv_query_qp(a.qp, &told, IBV_QP_ACCESS_FLAGS, &init), 0);
	cr_expect_eq(told.qp_access_flags, IBV_ACCESS_REMOTE_WRITE);
	attr.dest_qp_num = b.qp->qp_num;
	cr_assert_eq(tell_verbs_modify(&a, attr, IBV_QPS_RTR, TO_RTR), 0);
	cr_assert_eq(tell_verbs_modify(&a, attr, IBV_QPS_RTS, TO_RTS), 0);
	listen_to(&b);
	attr.dest_qp_num = a.qp->qp_num;
	attr.max_dest_rd_atomic = 1;
	attr.max_rd_atomic = 2;
	cr_assert_eq(tell_verbs_modify(&b, attr, IBV_QPS_RTR, TO_RTR), 0);
	cr_assert_eq(tell_verbs_modify(&b, attr, IBV_QPS_RTS, TO_RTS), 0);
	cr_assert_eq(say_oob(&a, "up", IBV_SEND_SIGNALED), 0);
	cr_assert_eq(await_oob_wc(&b).status, IBV_WC_SUCCESS);
	cr_assert_eq(ibv_query_qp(a.qp, &told, IBV_QP_MAX_QP_RD_ATOMIC, &init), 0);
	cr_expect_eq(told.max_rd_atomic, 3);
	cr_expect_eq(told.max_dest_rd_atomic, 4);
	cr_expect_eq(told.qp_access_flags, IBV_ACCESS_REMOTE_WRITE);
	attr.qp_access_flags = 0;
	cr_assert_eq(tell_verbs_modify(&a, attr, IBV_QPS_RTS, IBV_QP_ACCESS_FLAGS), 0);
	cr_assert_eq(ibv_query_qp(a.qp, &told, IBV_QP_ACCESS_FLAGS, &init), 0);
	cr_expect_eq(told.qp_access_flags, 0);
	close_oob_side(&a);
	close_oob_side(&b);
}

VT_TEST(verbs_modify, contact_27_query_says_what_was_set_on_the_roce_face)
{
	setenv("DDPSESS_FACE", "roce", 1);
	expect_told();
}

VT_TEST(verbs_modify, contact_27_query_says_what_was_set_on_the_iwarp_face)
{
	expect_told();
}

/* ---- sessctl run --check ---- */

static void attribute_missing(struct side *s)
{
	cr_assert_eq(tell_verbs_modify(s, all_right(s), IBV_QPS_INIT, IBV_QP_STATE | IBV_QP_PORT),
		     0);
}

static void value_wrong(struct side *s)
{
	struct ibv_qp_attr attr = all_right(s);

	bring_to(s, IBV_QPS_INIT);
	attr.path_mtu = 9;
	cr_assert_eq(tell_verbs_modify(s, attr, IBV_QPS_RTR, TO_RTR), 0);
}

static void attribute_too_many(struct side *s)
{
	bring_to(s, IBV_QPS_RTS);
	cr_assert_eq(tell_verbs_modify(s, all_right(s), IBV_QPS_ERR, IBV_QP_STATE | IBV_QP_TIMEOUT),
		     0);
}

static void send_early(struct side *s)
{
	bring_to(s, IBV_QPS_RTR);
	cr_assert_eq(say_oob(s, "early", 0), 0);
}

static void receive_early(struct side *s)
{
	cr_assert_eq(listen_for_verbs_modify(s), 0);
}

/* What is refused is reported, too. */
static void send_refused(struct side *s)
{
	cr_assert_eq(say_oob(s, "early", 0), EINVAL);
}

static void no_mistake(struct side *s)
{
	bring_to(s, IBV_QPS_INIT);
	cr_assert_eq(listen_for_verbs_modify(s), 0);
	bring_to(s, IBV_QPS_RTS);
	cr_assert_eq(say_oob(s, "hello", IBV_SEND_SIGNALED), 0);
	cr_assert_eq(await_oob_wc(s).status, IBV_WC_SUCCESS);
	cr_assert_eq(tell_verbs_modify(s, all_right(s), IBV_QPS_RTS, IBV_QP_ACCESS_FLAGS), 0);
	cr_assert_eq(move_oob_qp(s->qp, IBV_QPS_ERR), 0);
}

static void run_modify_child(const void *arg)
{
	void (*const *make)(struct side * s) = arg;
	struct side s;

	setenv("DDPSESS_CHECK", "on", 1);
	up_new(&s, IBV_QPT_RC);
	(*make)(&s);
	close_oob_side(&s);
}

VT_TEST(verbs_modify, contact_22_check_says_what_the_iwarp_face_takes)
{
	static const struct {
		void (*make)(struct side *s);
		const char *told;
	} all[] = {
		{ attribute_missing, "ibv_modify_qp of queue pair 1 from RESET to INIT with mask "
				     "0x21: an attribute is missing\n" },
		{ value_wrong, "ibv_modify_qp of queue pair 1 from INIT to RTR with mask 0x129181: "
			       "path_mtu is no MTU\n" },
		{ attribute_too_many, "ibv_modify_qp of queue pair 1 from RTS to ERR with mask "
				      "0x201: an attribute is not of this move\n" },
		{ send_early,
		  "ibv_post_send on queue pair 1, which the program has left in RTR\n" },
		{ send_refused,
		  "ibv_post_send on queue pair 1, which the program has left in RESET\n" },
		{ receive_early,
		  "ibv_post_recv on queue pair 1, which the program has left in RESET\n" },
		{ no_mistake, NULL },
	};
	const char *text;
	char want[200];

	for (size_t i = 0; i < sizeof all / sizeof *all; i++) {
		int status = vchild_run(run_modify_child, &all[i].make, &text);

		cr_expect(WIFEXITED(status) && WEXITSTATUS(status) == (all[i].told ? FOUND : 0),
			  "%zu: %#x: %s", i, (unsigned)status, text);
		snprintf(want, sizeof want, "ddpsess: check: qp-state: %s",
			 all[i].told ? all[i].told : "");
		cr_expect_eq(vchild_times(text, want), all[i].told ? 1 : 0, "%zu: %s", i, text);
		cr_expect_eq(vchild_times(text, "ddpsess: "), all[i].told ? 1 : 0, "%zu: %s", i,
			     text);
	}
}

/* As rdma_init_qp_attr has it on iWARP; a program of InfiniBand that leaves out the rest is refused. */
static int init_by_rights_alone(const char *face)
{
	struct ibv_qp_attr attr = { .qp_state = IBV_QPS_INIT };
	struct ibv_qp_init_attr init;
	struct vt_dev d;
	struct ibv_qp *qp;
	int err;

	setenv("DDPSESS_FACE", face, 1);
	vt_dev_open(&d);
	init = vt_rc(&d);
	qp = ibv_create_qp(d.pd, &init);
	cr_assert_not_null(qp);
	err = ibv_modify_qp(qp, &attr, IBV_QP_STATE | IBV_QP_ACCESS_FLAGS);
	cr_assert_eq(ibv_destroy_qp(qp), 0);
	vt_dev_close(&d);
	return err;
}

Test(verbs_modify, contact_22_rights_alone_are_not_enough_for_init_on_roce, .timeout = 60)
{
	cr_expect_eq(init_by_rights_alone("roce"), EINVAL);
}

Test(verbs_modify, contact_22_rights_alone_are_enough_for_init_on_iwarp, .timeout = 60)
{
	cr_expect_eq(init_by_rights_alone("iwarp"), 0);
}

/* What rdma_init_qp_attr says is taken. */
Test(verbs_modify, contact_22_what_the_connection_manager_says_is_enough_for_init, .timeout = 60)
{
	struct ibv_qp_attr attr = { .qp_state = IBV_QPS_INIT };
	struct ibv_qp_init_attr init;
	struct ibv_qp *qp;
	struct vt v;
	int mask;

	setenv("DDPSESS_FACE", "roce", 1);
	vt_init(&v);
	vt_listen(&v);
	vt_dial(&v);
	cr_assert_eq(rdma_init_qp_attr(v.a.id, &attr, &mask), 0);
	init = (struct ibv_qp_init_attr){ .send_cq = v.a.cq,
					  .recv_cq = v.a.cq,
					  .qp_type = IBV_QPT_RC,
					  .cap = { 4, 4, 1, 1, 0 } };
	qp = ibv_create_qp(v.a.id->pd, &init);
	cr_assert_not_null(qp);
	cr_expect_eq(ibv_modify_qp(qp, &attr, mask), 0);
	cr_assert_eq(ibv_destroy_qp(qp), 0);
	vt_down(&v);
}
