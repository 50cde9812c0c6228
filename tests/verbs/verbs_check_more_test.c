/* SPDX-License-Identifier: BSD-2-Clause */
/* sessctl run --check where it knows little: requests it has no memory for, places that are not known,
 * queue pairs on their way up or down.  What it does not know it does not report. */
#include "edge/ed.h"
#include "verbs/vchild.h"
#include "verbs/vfail.h"
#include "verbs/voob.h"
#include <stdio.h>
#include <stdlib.h>

#define FOUND 66

/* ---- a process for each ---- */

static void run_check_more_child(const void *arg)
{
	setenv("DDPSESS_CHECK", "on", 1);
	(*(void (*const *)(void))arg)();
}

/* What is reported by a process that does this, and ends with @status. */
static const char *get_child_report(void (*run)(void), int status)
{
	const char *text;
	int is = vchild_run(run_check_more_child, &run, &text);

	cr_expect(WIFEXITED(is) && WEXITSTATUS(is) == status, "%#x: %s", is, text);
	return text;
}

/* A sanitizer may have something to say about threads; the check has not. */
static bool is_check_silent(const char *text)
{
	return !strstr(text, "ddpsess:");
}

static int receive_verbs_check_more(struct side *s, uint64_t wr_id, uint32_t len, uint32_t lkey)
{
	struct ibv_sge sge = { (uintptr_t)s->buf, len, lkey };
	struct ibv_recv_wr wr = { .wr_id = wr_id, .sg_list = &sge, .num_sge = 1 }, *bad;

	return ibv_post_recv(s->qp, &wr, &bad);
}

/* A region that only the queue pair may write. */
static struct ibv_mr *own_region(struct side *s)
{
	struct ibv_mr *mr = ibv_reg_mr(s->pd, s->buf, sizeof s->buf, IBV_ACCESS_LOCAL_WRITE);

	cr_assert_not_null(mr);
	return mr;
}

/* ---- regions that go ---- */

/* Of two queue pairs behind one port the first that is looked at uses it. */
static void dereg_of_two(void)
{
	static struct side a, b;
	struct ibv_mr *mr;

	open_oob_side(&a);
	open_oob_side(&b);
	mr = own_region(&b);
	meet_oob_side(&a, &b);
	meet_oob_side(&b, &a);
	cr_assert_eq(receive_verbs_check_more(&b, 1, 16, mr->lkey), 0);
	cr_assert_eq(say_oob(&a, "x", IBV_SEND_SIGNALED), 0);
	cr_assert_eq(await_oob_wc(&b).status, IBV_WC_SUCCESS); /* it is in RTS, on both sides */
	cr_assert_eq(await_oob_wc(&a).status, IBV_WC_SUCCESS);
	cr_assert_eq(receive_verbs_check_more(&b, 2, 16, mr->lkey), 0);
	cr_assert_eq(ibv_dereg_mr(mr), 0);
	close_oob_side(&a);
	close_oob_side(&b);
}

/* One that is not connected yet has begun nothing with it. */
static void dereg_before(void)
{
	static struct side a;
	struct ibv_mr *mr;

	open_oob_side(&a);
	mr = own_region(&a);
	cr_assert_eq(receive_verbs_check_more(&a, 1, 16, mr->lkey), 0);
	cr_assert_eq(ibv_dereg_mr(mr), 0);
	close_oob_side(&a);
}

/* The program has seen that it failed, before the drop-in itself has. */
static void dereg_when_failed(void)
{
	static struct side a, b;
	struct ed_qp *q;
	struct ibv_mr *mr;

	open_oob_side(&a);
	open_oob_side(&b);
	mr = own_region(&a);
	meet_oob_side(&a, &b);
	meet_oob_side(&b, &a);
	listen_to(&b);
	cr_assert_eq(say_oob(&a, "x", IBV_SEND_SIGNALED), 0);
	cr_assert_eq(await_oob_wc(&a).status, IBV_WC_SUCCESS);
	cr_assert_eq(await_oob_wc(&b).status, IBV_WC_SUCCESS);
	cr_assert_eq(receive_verbs_check_more(&a, 1, 16, mr->lkey), 0);
	q = ed_qp_of(a.qp);
	q->failed = true;
	cr_assert_eq(a.qp->state, IBV_QPS_RTS);
	cr_assert_eq(ibv_dereg_mr(mr), 0);
	ed_qp_done(q);
	close_oob_side(&a);
	close_oob_side(&b);
}

static struct side meanwhile;
static struct ibv_mr *made_meanwhile;

static void register_meanwhile(void)
{
	made_meanwhile = own_region(&meanwhile);
}

/* Another thread gets one at the same address, before the call has returned. */
static void dereg_and_another(void)
{
	struct ibv_mr *mr;

	open_oob_side(&meanwhile);
	mr = own_region(&meanwhile);
	vfail_reuse(vd_of(mr, struct vd_mr, mr), sizeof(struct vd_mr), register_meanwhile);
	cr_assert_eq(ibv_dereg_mr(mr), 0);
	cr_assert_eq(made_meanwhile, mr);
	cr_assert_eq(receive_verbs_check_more(&meanwhile, 1, 16, made_meanwhile->lkey), 0);
	cr_assert_eq(ibv_dereg_mr(made_meanwhile), 0);
	close_oob_side(&meanwhile);
}

/* It stays: its key is good. */
static void dereg_refused(void)
{
	static struct side a;
	struct vd_mr *mr;

	open_oob_side(&a);
	mr = vd_of(own_region(&a), struct vd_mr, mr);
	mr->imported = true;
	cr_assert_eq(ibv_dereg_mr(&mr->mr), EINVAL);
	mr->imported = false;
	cr_assert_eq(receive_verbs_check_more(&a, 1, 16, mr->mr.lkey), 0);
	cr_assert_eq(ibv_dereg_mr(&mr->mr), 0);
	close_oob_side(&a);
}

/* What a region is now counts, not what it was. */
static void register_again(void)
{
	static struct side a;
	struct ibv_sge low = { (uintptr_t)a.buf, 8, 0 }, high = { (uintptr_t)a.buf + 100, 8, 0 };
	struct ibv_mr *mr;

	open_oob_side(&a);
	mr = ibv_reg_mr(a.pd, a.buf, 100, IBV_ACCESS_LOCAL_WRITE);
	cr_assert_not_null(mr);
	low.lkey = high.lkey = mr->lkey;
	cr_assert(ck_is_own(&low) && !ck_is_own(&high));
	cr_assert_eq(ibv_rereg_mr(mr, IBV_REREG_MR_CHANGE_TRANSLATION, NULL, a.buf + 100, 50, 0),
		     0);
	cr_assert_eq(mr->lkey, low.lkey);
	cr_assert(!ck_is_own(&low) && ck_is_own(&high));
	cr_assert_eq(ibv_rereg_mr(mr, IBV_REREG_MR_CHANGE_ACCESS, NULL, NULL, 0,
				  IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE),
		     0);
	cr_assert(!ck_is_own(&high), "a peer may write it");
	cr_assert_neq(ibv_rereg_mr(mr, 0, NULL, NULL, 0, 0), 0);
	cr_assert_eq(ibv_dereg_mr(mr), 0);
	close_oob_side(&a);
}

/* Memory that has gone, on a queue pair that flushes: what is said is what comes. */
static void use_when_failed(void)
{
	static struct side a, b;
	struct ibv_qp_attr attr = { .qp_state = IBV_QPS_ERR };
	struct ibv_sge sge = { (uintptr_t)a.buf, 8, 0 };
	struct ibv_send_wr wr = { .wr_id = 1,
				  .sg_list = &sge,
				  .num_sge = 1,
				  .opcode = IBV_WR_SEND,
				  .send_flags = IBV_SEND_SIGNALED },
			   *bad;
	struct ibv_mr *mr;

	open_oob_side(&a);
	open_oob_side(&b);
	mr = own_region(&a);
	sge.lkey = mr->lkey;
	meet_oob_side(&a, &b);
	meet_oob_side(&b, &a);
	cr_assert_eq(ibv_dereg_mr(mr), 0);
	cr_assert_eq(ibv_modify_qp(a.qp, &attr, IBV_QP_STATE), 0);
	cr_assert_eq(ibv_post_send(a.qp, &wr, &bad), 0);
	cr_assert_eq(await_oob_wc(&a).status, IBV_WC_WR_FLUSH_ERR);
	close_oob_side(&a);
	close_oob_side(&b);
}

#define TWICE 0x700u

static void come_and_go(uint32_t lkey)
{
	struct ibv_mr mr = { .lkey = lkey };

	ck_registered(&mr, 0);
	ck_deregistered(ck_deregister(&mr));
}

static int go_through_library(const void *a, const void *b)
{
	(void)a;
	(void)b;
	come_and_go(TWICE);
	return 0;
}

/* A key that two had: the last place is said, as long as it is one of the 64 last. */
static void dereg_twice(void)
{
	struct ck_trace first = { 0 }, second = { 0 }, later = { 0 };
	int two[2] = { 2, 1 };

	vd_config();
	cr_assert(!ck_is_gone(TWICE, &first));
	come_and_go(TWICE);
	cr_assert(ck_is_gone(TWICE, &first));
	qsort(two, 2, sizeof *two, go_through_library);
	cr_assert(ck_is_gone(TWICE, &second));
	cr_assert(second.n != first.n || memcmp(second.frame, first.frame, sizeof first.frame));
	for (uint32_t i = 1; i < 64; i++)
		come_and_go(TWICE + i);
	cr_assert(ck_is_gone(TWICE, &later));
	cr_assert_eq(later.n, second.n);
	come_and_go(TWICE + 64);
	cr_assert(!ck_is_gone(TWICE, &later));
	cr_assert(ck_is_gone(TWICE + 1, &later));
}

VT_TEST(verbs_check_more, regions_that_go)
{
	const char *text = get_child_report(dereg_of_two, FOUND);

	cr_expect_eq(vchild_times(text, "ddpsess: check: dereg-pending: the region"), 1, "%s",
		     text);
	cr_expect(is_check_silent(get_child_report(dereg_before, 0)));
	cr_expect(is_check_silent(get_child_report(dereg_when_failed, 0)));
	text = get_child_report(dereg_and_another, 0);
	cr_expect(is_check_silent(text), "%s", text);
	text = get_child_report(dereg_refused, 0);
	cr_expect(is_check_silent(text), "%s", text);
	text = get_child_report(dereg_twice, 0);
	cr_expect(is_check_silent(text), "%s", text);
	text = get_child_report(register_again, 0);
	cr_expect(is_check_silent(text), "%s", text);
	text = get_child_report(use_when_failed, FOUND);
	cr_expect_eq(vchild_times(text, "dereg-used: ibv_post_send, request 0x1: "), 1, "%s", text);
	cr_expect_eq(vchild_times(text, "fails with IBV_WC_WR_FLUSH_ERR"), 1, "%s", text);
	cr_expect_eq(vchild_times(text, "IBV_WC_LOC_PROT_ERR"), 0, "%s", text);
}

/* ---- requests ---- */

/* No memory to note them: they are done, and nothing is said of them. */
static void refuse_verbs_check_more_memory(void)
{
	static struct side a, b;
	struct ibv_mr *mr;

	open_oob_side(&a);
	open_oob_side(&b);
	mr = own_region(&b);
	meet_oob_side(&a, &b);
	meet_oob_side(&b, &a);
	vfail_size(sizeof(struct ck_work));
	cr_assert_eq(receive_verbs_check_more(&b, 1, 16, mr->lkey), 0);
	cr_assert(vfail_came());
	b.buf[12]++; /* seen by nobody */
	vfail_size(sizeof(struct ck_work));
	cr_assert_eq(say_oob(&a, "hello", IBV_SEND_SIGNALED), 0);
	cr_assert(vfail_came());
	cr_assert_eq(await_oob_wc(&b).wr_id, 1);
	cr_assert_eq(await_oob_wc(&a).wr_id, 1);
	cr_assert_eq(ibv_dereg_mr(mr), 0);
	close_oob_side(&a);
	close_oob_side(&b);
}

static void send_verbs_check_more_by(struct side *s, enum ibv_wr_opcode op, uint64_t wr_id,
				     unsigned flags, struct ibv_sge *sge, int n)
{
	struct ibv_send_wr wr = { .wr_id = wr_id,
				  .sg_list = sge,
				  .num_sge = n,
				  .opcode = op,
				  .send_flags = flags,
				  .invalidate_rkey = 0x77777700 },
			   *bad;

	cr_assert_eq(ibv_post_send(s->qp, &wr, &bad), 0, "%m");
}

/* Not all of a request's memory is the program's own, so it may change. */
static void of_several(void)
{
	static struct side a, b;
	struct ibv_sge two[2];
	struct ibv_mr *mr;

	open_oob_side(&a);
	open_oob_side(&b);
	mr = own_region(&a);
	meet_oob_side(&a, &b);
	meet_oob_side(&b, &a);
	listen_to(&b);
	listen_to(&b);
	two[0] = (struct ibv_sge){ (uintptr_t)a.buf, 8, a.mr->lkey };
	two[1] = (struct ibv_sge){ (uintptr_t)a.buf + 8, 8, mr->lkey };
	send_verbs_check_more_by(&a, IBV_WR_SEND, 3, IBV_SEND_SIGNALED, two, 2);
	a.buf[9]++;
	cr_assert_eq(await_oob_wc(&a).wr_id, 3);
	cr_assert_eq(await_oob_wc(&b).status, IBV_WC_SUCCESS);
	/* One that takes a key back has a source, too: what the peer says of the key is its matter. */
	send_verbs_check_more_by(&a, IBV_WR_SEND_WITH_INV, 4, IBV_SEND_SIGNALED, &two[1], 1);
	a.buf[9]++;
	cr_assert_eq(await_oob_wc(&a).wr_id, 4);
	cr_assert_eq(ibv_dereg_mr(mr), 0);
	close_oob_side(&a);
	close_oob_side(&b);
}

VT_TEST(verbs_check_more, requests)
{
	const char *text;

	cr_expect(is_check_silent(get_child_report(refuse_verbs_check_more_memory, 0)));
	text = get_child_report(of_several, FOUND);
	cr_expect_eq(vchild_times(text, "send-changed: queue pair 1, request 0x4: the 8 octets"), 1,
		     "%s", text);
	cr_expect_eq(vchild_times(text, "request 0x3"), 0, "%s", text);
}

/* Completions as they may come: of requests that are not known, unsignalled ones that fail, with
 * lengths that say nothing since they failed. */
static void made_up(void)
{
	static struct side a;
	struct ibv_wc wc = { .wr_id = 99 };
	struct ibv_qp_init_attr init;
	struct ibv_sge sge;
	struct ed_qp *q;
	struct ibv_mr *mr;

	open_oob_side(&a);
	cr_assert_eq(ibv_destroy_qp(a.qp), 0);
	init = (struct ibv_qp_init_attr){
		.send_cq = a.cq, .recv_cq = a.cq, .qp_type = IBV_QPT_RC, .cap = { 8, 8, 1, 1, 0 }
	};
	a.qp = ibv_create_qp(a.pd, &init);
	mr = own_region(&a);
	q = ed_qp_of(a.qp);
	cr_assert(q && STAILQ_EMPTY(&q->sends));
	sge = (struct ibv_sge){ (uintptr_t)a.buf, 200, mr->lkey };
	ck_completed(q, &wc); /* a Send's that nobody has posted */
	wc.opcode = IBV_WC_RECV;
	ck_completed(q, &wc); /* a receive's */
	cr_assert_not_null(ck_recv(
		q, &q->recvs, &(struct ibv_recv_wr){ .wr_id = 1, .sg_list = &sge, .num_sge = 1 }));
	/* It failed, so the length is none: its last octets were written. */
	a.buf[199]++;
	wc = (struct ibv_wc){
		.wr_id = 1, .opcode = IBV_WC_RECV, .status = IBV_WC_LOC_PROT_ERR, .byte_len = 150
	};
	ck_completed(q, &wc);
	cr_assert(STAILQ_EMPTY(&q->recvs));
	q->failed = false;
	/* Unsignalled Sends: a later one's success is for both; an error is for itself. */
	for (uint64_t i = 1; i <= 3; i++)
		cr_assert_not_null(ck_send(
			q, &(struct ibv_send_wr){ .wr_id = i,
						  .sg_list = &sge,
						  .num_sge = 1,
						  .opcode = IBV_WR_SEND,
						  .send_flags = i == 2 ? IBV_SEND_SIGNALED : 0 }));
	wc = (struct ibv_wc){ .wr_id = 3, .status = IBV_WC_SUCCESS };
	ck_completed(q, &wc); /* not reported */
	cr_assert_eq(STAILQ_FIRST(&q->sends)->wr_id, 1);
	wc.wr_id = 2;
	ck_completed(q, &wc);
	cr_assert_eq(STAILQ_FIRST(&q->sends)->wr_id, 3);
	wc = (struct ibv_wc){ .wr_id = 3, .status = IBV_WC_WR_FLUSH_ERR };
	ck_completed(q, &wc);
	cr_assert(STAILQ_EMPTY(&q->sends));
	ed_qp_done(q);
	cr_assert_eq(ibv_dereg_mr(mr), 0);
	close_oob_side(&a);
}

VT_TEST(verbs_check_more, completions)
{
	const char *text = get_child_report(made_up, FOUND);

	cr_expect_eq(vchild_times(text, "ddpsess: check: recv-changed: queue pair 2, receive 0x1"),
		     1, "%s", text);
	cr_expect_eq(vchild_times(text, "ddpsess: check: "), 2, "and its place: %s", text);
}

/* ---- queues that nobody polls ---- */

/* One of the two was polled, or the program has run out of memory: nothing is certain. */
static void polled_half(void)
{
	static struct side a, b;
	struct ibv_cq *sends;
	struct ibv_qp_init_attr init;
	struct ibv_wc wc;

	open_oob_side(&a);
	open_oob_side(&b);
	sends = ibv_create_cq(a.ctx, 4, NULL, NULL, 0);
	cr_assert_eq(ibv_destroy_qp(a.qp), 0);
	init = (struct ibv_qp_init_attr){ .send_cq = sends,
					  .recv_cq = a.cq,
					  .qp_type = IBV_QPT_RC,
					  .cap = { 4, 4, 1, 1, 0 },
					  .sq_sig_all = 1 };
	a.qp = ibv_create_qp(a.pd, &init);
	cr_assert_not_null(a.qp);
	cr_assert_eq(to_init(a.qp), 0);
	meet_oob_side(&a, &b);
	meet_oob_side(&b, &a);
	listen_to(&b);
	cr_assert_eq(say_oob(&a, "x", 0), 0);
	cr_assert_eq(await_oob_wc(&b).status, IBV_WC_SUCCESS);
	cr_assert_eq(ibv_poll_cq(a.cq, 1, &wc), 0);
	while (!ddps_ep_unfetched(vd_of(a.qp, struct vd_qp, qp.qp_base)->ep))
		sched_yield();
	cr_assert_eq(ibv_destroy_qp(a.qp), 0);
	a.qp = NULL;
	cr_assert_eq(ibv_destroy_cq(sends), 0);
	close_oob_side(&a);
	close_oob_side(&b);
}

static void polled_never(void)
{
	static struct side a, b;

	open_oob_side(&a);
	open_oob_side(&b);
	meet_oob_side(&a, &b);
	meet_oob_side(&b, &a);
	listen_to(&b);
	cr_assert_eq(say_oob(&a, "x", IBV_SEND_SIGNALED), 0);
	cr_assert_eq(await_oob_wc(&b).status, IBV_WC_SUCCESS);
	while (!ddps_ep_unfetched(vd_of(a.qp, struct vd_qp, qp.qp_base)->ep))
		sched_yield();
	vfail_size(sizeof(struct ed_cq));
	ck_unpolled(a.qp);
	cr_assert(vfail_came());
	close_oob_side(&a);
	close_oob_side(&b);
}

VT_TEST(verbs_check_more, queues_that_nobody_polls)
{
	const char *text;

	cr_expect(is_check_silent(get_child_report(polled_half, 0)));
	text = get_child_report(polled_never, FOUND);
	cr_expect_eq(vchild_times(text, "never-polled: "), 1, "of the second time: %s", text);
}

/* ---- places ---- */

static unsigned deep;
static struct side here;

static void open_here(void)
{
	struct ibv_device **list = ibv_get_device_list(NULL);

	here.ctx = ibv_open_device(list[0]);
	ibv_free_device_list(list);
	here.pd = ibv_alloc_pd(here.ctx);
	cr_assert_not_null(here.pd);
}

static void leave_one(void)
{
	cr_assert_not_null(ibv_reg_mr(here.pd, here.buf, 100, 0));
}

/* Through calls of this program alone. */
__attribute__((noinline)) static unsigned leave_deep(unsigned n)
{
	if (n)
		return leave_deep(n - 1) + deep;
	leave_one();
	return deep;
}

/* Through another library's. */
static int compare_through_library(const void *a, const void *b)
{
	int two[2] = { 2, 1 };

	(void)a;
	(void)b;
	if (deep++ < 40)
		qsort(two, 2, sizeof *two, compare_through_library);
	else if (deep == 41)
		leave_one();
	return 0;
}

static void from_deep_within(void)
{
	open_here();
	leave_deep(100);
}

static void from_deep_without(void)
{
	open_here();
	compare_through_library(NULL, NULL);
}

/* As many places as are kept, and one more, which is reported each time. */
static void from_everywhere(void)
{
	struct ck_trace t = { .n = 1 };

	vd_config();
	ck_report_at(CK_LEAK, &(struct ck_trace){ 0 }, "%s", "nowhere");
	ck_report_at(CK_LEAK, &(struct ck_trace){ 0 }, "%s", "nowhere");
	ck_report(CK_LEAK, &(struct ck_trace){ 0 }, "%s", "here");
	for (uintptr_t i = 1; i <= 1023; i++) {
		t.frame[0] = (void *)i;
		ck_report_at(CK_LEAK, &t, "%s", "somewhere");
	}
	ck_report_at(CK_LEAK, &t, "%s", "twice");
	ck_report_at(CK_LEAK, &t, "%s", "twice");
	_exit(FOUND);
}

Test(verbs_check_more, places, .timeout = 60)
{
	const char *text = get_child_report(from_deep_within, FOUND);

	cr_expect_eq(vchild_times(text, "a region of 100 octets is left"), 1, "%s", text);
	cr_expect_geq(vchild_times(text, "["), 1, "one frame is known at least: %s", text);
	text = get_child_report(from_deep_without, FOUND);
	cr_expect_eq(vchild_times(text, "a region of 100 octets is left"), 1, "%s", text);
	cr_expect_eq(vchild_times(text, "["), CK_FRAMES, "%s", text);
	text = get_child_report(from_everywhere, FOUND);
	cr_expect_eq(vchild_times(text, "leak: nowhere"), 1);
	cr_expect_eq(vchild_times(text, "leak: here"), 1);
	cr_expect_eq(vchild_times(text, "posted at"), 0);
	cr_expect_eq(vchild_times(text, "leak: twice"), 2);
}
