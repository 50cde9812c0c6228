/* SPDX-License-Identifier: BSD-2-Clause */
/* sessctl run --check, within one process: each report word by word, and nothing else. */
#include "verbs/vchild.h"
#include "verbs/vd.h"
#include "verbs/vt.h"
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define FOUND 66 /* the status of a process that mistakes were found in */

/* Where a child has them, its parent has them, too. */
static struct vt v;
static struct ibv_mr *own[2]; /* memory that no peer may write */

struct mistake {
	void (*make)(void);
	const char *reports[3]; /* pieces of what is reported, with the address of a buffer in it */
	const char *suppress;	/* what is in the file of suppressions, or its name: '/' is first */
	int status;
};

/* ---- both ends ---- */

static void open_checked_pair(void)
{
	const int local = IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_MW_BIND;

	vt_init(&v);
	v.init.cap.max_inline_data = 64;
	vt_up(&v);
	own[0] = ibv_reg_mr(v.a.id->pd, v.a.buf, sizeof v.a.buf, local);
	own[1] = ibv_reg_mr(v.b.id->pd, v.b.buf, sizeof v.b.buf, local);
	cr_assert(own[0] && own[1]);
}

static void close_checked_pair(void)
{
	rdma_destroy_qp(v.a.id);
	rdma_destroy_qp(v.b.id);
	for (int i = 0; i < 2; i++)
		if (own[i])
			cr_assert_eq(ibv_dereg_mr(own[i]), 0);
	vt_down(&v);
}

static struct ibv_sge get_verbs_check_piece(int end, size_t off, uint32_t len)
{
	struct vt_end *e = end ? &v.b : &v.a;

	return (struct ibv_sge){ (uintptr_t)e->buf + off, len, own[end]->lkey };
}

static int recv_list(uint64_t wr_id, struct ibv_sge *sge, int n)
{
	struct ibv_recv_wr wr = { .wr_id = wr_id, .sg_list = sge, .num_sge = n }, *bad;

	return ibv_post_recv(v.b.id->qp, &wr, &bad);
}

static int send_list(uint64_t wr_id, struct ibv_sge *sge, int n, enum ibv_wr_opcode op)
{
	struct ibv_send_wr wr = { .wr_id = wr_id,
				  .opcode = op,
				  .sg_list = sge,
				  .num_sge = n,
				  .send_flags = IBV_SEND_SIGNALED },
			   *bad;

	wr.wr.rdma.remote_addr = (uintptr_t)v.b.buf;
	wr.wr.rdma.rkey = v.b.mr ? v.b.mr->rkey : 0;
	return ibv_post_send(v.a.id->qp, &wr, &bad);
}

static void receive_verbs_check(uint64_t wr_id, size_t off, uint32_t len)
{
	struct ibv_sge sge = get_verbs_check_piece(1, off, len);

	cr_assert_eq(recv_list(wr_id, &sge, 1), 0);
}

static void send_checked(uint64_t wr_id, size_t off, uint32_t len)
{
	struct ibv_sge sge = get_verbs_check_piece(0, off, len);

	cr_assert_eq(send_list(wr_id, &sge, 1, IBV_WR_SEND), 0);
}

/* ---- programs with one mistake ---- */

static void make_no_mistake(void)
{
	open_checked_pair();
	receive_verbs_check(1, 0, 4096);
	send_checked(2, 0, 100);
	vt_expect_wc(&v.a, 2, IBV_WC_SEND, IBV_WC_SUCCESS);
	vt_expect_wc(&v.b, 1, IBV_WC_RECV, IBV_WC_SUCCESS);
	/* What the message has reached is not compared, nor is anything before the last octets. */
	receive_verbs_check(1, 0, 128);
	v.b.buf[0]++;
	send_checked(2, 0, 128);
	vt_expect_wc(&v.a, 2, IBV_WC_SEND, IBV_WC_SUCCESS);
	vt_expect_wc(&v.b, 1, IBV_WC_RECV, IBV_WC_SUCCESS);
	close_checked_pair();
}

static void send_changed(void)
{
	open_checked_pair();
	receive_verbs_check(1, 0, 4096);
	send_checked(2, 0, 100);
	v.a.buf[99]++;
	vt_expect_wc(&v.a, 2, IBV_WC_SEND, IBV_WC_SUCCESS);
	vt_expect_wc(&v.b, 1, IBV_WC_RECV, IBV_WC_SUCCESS);
	close_checked_pair();
}

/* Of two pieces, of which the last one has the octets that are compared. */
static void recv_changed(void)
{
	struct ibv_sge two[2];

	open_checked_pair();
	two[0] = get_verbs_check_piece(1, 0, 1000);
	two[1] = get_verbs_check_piece(1, 2000, 128);
	cr_assert_eq(recv_list(1, two, 2), 0);
	v.b.buf[2127]++;
	send_checked(2, 0, 100);
	vt_expect_wc(&v.a, 2, IBV_WC_SEND, IBV_WC_SUCCESS);
	vt_expect_wc(&v.b, 1, IBV_WC_RECV, IBV_WC_SUCCESS);
	close_checked_pair();
}

/* Memory of two requests, of a peer, or that is no region's, may change. */
static void changes_that_may_be(void)
{
	struct ibv_sge sge;

	open_checked_pair();
	receive_verbs_check(1, 0, 64);
	receive_verbs_check(2, 64, 64);
	send_checked(3, 0, 64);
	send_checked(4, 32, 64);
	v.a.buf[40]++;
	vt_expect_wc(&v.a, 3, IBV_WC_SEND, IBV_WC_SUCCESS);
	vt_expect_wc(&v.a, 4, IBV_WC_SEND, IBV_WC_SUCCESS);
	vt_expect_wc(&v.b, 1, IBV_WC_RECV, IBV_WC_SUCCESS);
	vt_expect_wc(&v.b, 2, IBV_WC_RECV, IBV_WC_SUCCESS);
	cr_assert_eq(vt_recv(&v.b, 5, 0, 64), 0);
	cr_assert_eq(vt_post(&v.a, 6, IBV_WR_SEND, 64, NULL), 0);
	v.a.buf[1]++;
	vt_expect_wc(&v.a, 6, IBV_WC_SEND, IBV_WC_SUCCESS);
	vt_expect_wc(&v.b, 5, IBV_WC_RECV, IBV_WC_SUCCESS);
	/* Beyond the end, before the beginning, longer than all. */
	for (int i = 0; i < 3; i++) {
		sge = get_verbs_check_piece(1, i == 1 ? (size_t)-8 : sizeof v.b.buf - 8,
					    i == 2 ? 2 * (uint32_t)sizeof v.b.buf : 16);
		cr_assert_eq(recv_list(7, &sge, 1), 0);
	}
	sge.lkey ^= 0x5a5a00;
	cr_assert_eq(recv_list(7, &sge, 1), 0);
	close_checked_pair();
}

static void dereg_pending(void)
{
	open_checked_pair();
	receive_verbs_check(1, 0, 64);
	cr_assert_eq(ibv_dereg_mr(own[1]), 0);
	own[1] = NULL;
	close_checked_pair();
}

/* A queue pair that has been disconnected does nothing with it any more. */
static void dereg_after_the_end(void)
{
	open_checked_pair();
	receive_verbs_check(1, 0, 64);
	cr_assert_eq(rdma_disconnect(v.b.id), 0);
	cr_assert_eq(ibv_dereg_mr(own[1]), 0);
	own[1] = NULL;
	vt_expect(v.b.ch, RDMA_CM_EVENT_DISCONNECTED);
	close_checked_pair();
}

static void never_polled(void)
{
	struct ibv_cq *cq;
	void *user;

	open_checked_pair();
	receive_verbs_check(1, 0, 64);
	cr_assert_eq(ibv_req_notify_cq(v.b.cq, 0), 0);
	send_checked(2, 0, 10);
	vt_expect_wc(&v.a, 2, IBV_WC_SEND, IBV_WC_SUCCESS);
	cr_assert(vt_readable(v.b.cc->fd, VT_MS));
	cr_assert_eq(ibv_get_cq_event(v.b.cc, &cq, &user), 0);
	ibv_ack_cq_events(cq, 1);
	close_checked_pair();
}

/* A queue that was polled once is known to the program. */
static void polled_before(void)
{
	struct ibv_wc wc;

	open_checked_pair();
	receive_verbs_check(1, 0, 64);
	cr_assert_eq(ibv_poll_cq(v.b.cq, 1, &wc), 0);
	cr_assert_eq(ibv_req_notify_cq(v.b.cq, 0), 0);
	send_checked(2, 0, 10);
	vt_expect_wc(&v.a, 2, IBV_WC_SEND, IBV_WC_SUCCESS);
	cr_assert(vt_readable(v.b.cc->fd, VT_MS));
	close_checked_pair();
}

/* A Send whose completion nobody has fetched still uses its region, though it is done. */
static void dereg_unfetched(void)
{
	open_checked_pair();
	receive_verbs_check(1, 0, 64);
	send_checked(2, 0, 10);
	vt_expect_wc(&v.b, 1, IBV_WC_RECV, IBV_WC_SUCCESS);
	cr_assert_eq(ibv_dereg_mr(own[0]), 0);
	own[0] = NULL;
	vt_expect_wc(&v.a, 2, IBV_WC_SEND, IBV_WC_SUCCESS);
	close_checked_pair();
}

/* After an error nothing is under way any more. */
static void dereg_after_an_error(void)
{
	struct ibv_sge sge;

	open_checked_pair();
	send_checked(1, 0, 10); /* nobody receives it */
	sge = get_verbs_check_piece(0, 0, 10);
	sge.lkey ^= 0x5a5a00;
	cr_assert_eq(send_list(2, &sge, 1, IBV_WR_SEND), 0);
	while (vt_wc(&v.a).status == IBV_WC_SUCCESS)
		;
	cr_assert_eq(ibv_dereg_mr(own[0]), 0);
	own[0] = NULL;
	close_checked_pair();
}

static void leave_pair_open(void)
{
	open_checked_pair();
	own[0] = own[1] = NULL;
	exit(0);
}

static void ask_too_much(void)
{
	struct ibv_qp_init_attr init;
	struct vt_dev s;

	vt_dev_open(&s);
	init = vt_rc(&s);
	init.cap.max_inline_data = 256;
	init.cap.max_send_sge = init.cap.max_recv_sge = 6;
	cr_assert_eq(ibv_destroy_qp(ibv_create_qp(s.pd, &init)), 0);
	init.cap.max_inline_data = 257;
	cr_assert_eq(ibv_destroy_qp(ibv_create_qp(s.pd, &init)), 0);
	init.cap.max_inline_data = 0;
	init.cap.max_recv_sge = 7;
	cr_assert_eq(ibv_destroy_qp(ibv_create_qp(s.pd, &init)), 0);
	init.cap.max_recv_sge = 1;
	init.cap.max_send_sge = 8; /* at the same place: it is said once */
	cr_assert_eq(ibv_destroy_qp(ibv_create_qp(s.pd, &init)), 0);
	vt_dev_close(&s);
}

static void post_after_error(void)
{
	struct ibv_sge sge;

	open_checked_pair();
	sge = get_verbs_check_piece(0, 0, 10);
	sge.lkey ^= 0x5a5a00;
	cr_assert_eq(send_list(1, &sge, 1, IBV_WR_SEND), 0);
	cr_assert_neq(vt_wc(&v.a).status, IBV_WC_SUCCESS);
	send_list(2, &sge, 1, IBV_WR_SEND);
	close_checked_pair();
}

/* The message is there when the session has stalled for want of a receive. */
static void late_recv(void)
{
	struct ddps_ep_stats st = { .struct_size = sizeof st };
	const struct vd_qp *qp;
	struct ibv_wc wc;

	open_checked_pair();
	qp = vd_of(v.b.id->qp, struct vd_qp, qp.qp_base);
	send_checked(1, 0, 10);
	for (int i = 0; !st.stalls && i < VT_MS; i++) {
		cr_assert_eq(ibv_poll_cq(v.b.cq, 1, &wc), 0);
		cr_assert_eq(ddps_ep_stats(qp->ep, &st), 0);
		usleep(1000);
	}
	receive_verbs_check(2, 0, 64);
	vt_expect_wc(&v.b, 2, IBV_WC_RECV, IBV_WC_SUCCESS);
	vt_expect_wc(&v.a, 1, IBV_WC_SEND, IBV_WC_SUCCESS);
	close_checked_pair();
}

static void every_operation(void)
{
	static const enum ibv_wr_opcode ops[] = {
		IBV_WR_SEND_WITH_IMM, IBV_WR_RDMA_WRITE,	   IBV_WR_RDMA_WRITE_WITH_IMM,
		IBV_WR_RDMA_READ,     IBV_WR_ATOMIC_FETCH_AND_ADD, IBV_WR_ATOMIC_CMP_AND_SWP
	};
	struct ibv_send_wr wr = { .wr_id = 9, .send_flags = IBV_SEND_SIGNALED }, *bad;
	struct ibv_sge sge;

	open_checked_pair();
	sge = get_verbs_check_piece(0, 0, 8);
	for (size_t i = 0; i < sizeof ops / sizeof *ops; i++) {
		const bool heard =
			ops[i] == IBV_WR_SEND_WITH_IMM || ops[i] == IBV_WR_RDMA_WRITE_WITH_IMM;

		if (heard)
			receive_verbs_check(1, 64, 64);
		wr.opcode = ops[i];
		wr.sg_list = &sge;
		wr.num_sge = 1;
		wr.wr.rdma.remote_addr = (uintptr_t)v.b.buf;
		wr.wr.rdma.rkey = v.b.mr->rkey;
		if (i >= 4) {
			wr.wr.atomic.remote_addr = (uintptr_t)v.b.buf;
			wr.wr.atomic.compare_add = wr.wr.atomic.swap = 1;
			wr.wr.atomic.rkey = v.b.mr->rkey;
		}
		cr_assert_eq(ibv_post_send(v.a.id->qp, &wr, &bad), 0, "%zu", i);
		cr_assert_eq(vt_wc(&v.a).status, IBV_WC_SUCCESS, "%zu", i);
		if (heard)
			cr_assert_eq(vt_wc(&v.b).status, IBV_WC_SUCCESS);
	}
	close_checked_pair();
}

/* Refused as without the check, and forgotten. */
static void post_refused_work(void)
{
	struct ibv_sge many[17];

	open_checked_pair();
	for (int i = 0; i < 17; i++)
		many[i] = get_verbs_check_piece(1, 0, 1);
	cr_assert_eq(recv_list(1, many, 17), EINVAL);
	cr_assert_eq(recv_list(1, many, -1), EINVAL);
	cr_assert_eq(recv_list(1, NULL, 0), 0);
	for (int i = 0; i < 17; i++)
		many[i] = get_verbs_check_piece(0, 0, 1);
	cr_assert_eq(send_list(1, many, 17, IBV_WR_SEND), EINVAL);
	cr_assert_eq(send_list(1, many, -1, IBV_WR_SEND), EINVAL);
	cr_assert_eq(send_list(2, NULL, 0, IBV_WR_SEND), 0);
	vt_expect_wc(&v.a, 2, IBV_WC_SEND, IBV_WC_SUCCESS);
	vt_expect_wc(&v.b, 1, IBV_WC_RECV, IBV_WC_SUCCESS);
	close_checked_pair();
}

static void no_device(void)
{
	struct ibv_device **list = ibv_get_device_list(NULL);

	errno = 0;
	cr_assert_null(ibv_open_device(list[0]));
	cr_assert_eq(errno, EINVAL);
	ibv_free_device_list(list);
}

/* ---- a process for each ---- */

static void run_mistake(const void *arg)
{
	const struct mistake *m = arg;
	char path[64];

	setenv("DDPSESS_CHECK", "on", 1);
	if (m->suppress && *m->suppress == '/') {
		setenv("DDPSESS_SUPPRESS", m->suppress, 1);
	} else if (m->suppress) {
		snprintf(path, sizeof path, "/proc/self/fd/%d", vchild_file(m->suppress));
		setenv("DDPSESS_SUPPRESS", path, 1);
	}
	m->make();
}

static void expect_mistake_report(const struct mistake *m)
{
	const char *text;
	int status = vchild_run(run_mistake, m, &text);
	char want[400];
	unsigned n = 0;

	cr_expect(WIFEXITED(status) && WEXITSTATUS(status) == m->status, "%#x: %s", status, text);
	for (int i = 0; i < 3 && m->reports[i]; i++) {
		snprintf(want, sizeof want, m->reports[i],
			 (unsigned long long)(uintptr_t)(m->make == recv_changed ? v.b.buf
										 : v.a.buf));
		cr_expect_eq(vchild_times(text, want), 1, "no '%s' in: %s", want, text);
		n += !strncmp(want, "ddpsess: ", 9);
	}
	/* Why a connection ended may be said before the process ends; it is no report. */
	n += vchild_times(text, ": this side ended the session: ") +
	     vchild_times(text, ": peer sent a Terminate: ");
	cr_expect_eq(vchild_times(text, "ddpsess: "), n, "%s", text);
}

#define MISTAKE(name, ...)                                                                         \
	VT_TEST(verbs_check, name)                                                                 \
	{                                                                                          \
		expect_mistake_report(&(struct mistake){ name, __VA_ARGS__ });                     \
	}

MISTAKE(make_no_mistake, { NULL }, NULL, 0)
MISTAKE(changes_that_may_be, { NULL }, NULL, 0)
MISTAKE(dereg_after_the_end, { NULL }, NULL, 0)
MISTAKE(every_operation, { NULL }, NULL, 0)
MISTAKE(post_refused_work, { NULL }, NULL, 0)
MISTAKE(polled_before, { NULL }, NULL, 0)
MISTAKE(dereg_after_an_error, { NULL }, NULL, 0)
MISTAKE(dereg_unfetched,
	{ "ddpsess: check: dereg-pending: the region with key 0x",
	  " goes while a request of queue pair 1 uses it\n",
	  "ddpsess: check: dereg-pending: posted at\n" },
	NULL, FOUND)
MISTAKE(post_after_error,
	{ "ddpsess: check: post-after-error: ibv_post_send on queue pair 1, which has reported an "
	  "error: it "
	  "can only be flushed" },
	NULL, FOUND)
MISTAKE(late_recv,
	{ "ddpsess: check: late-recv: queue pair 2: a Send of the peer was there before its "
	  "receive; an "
	  "adapter ends the connection then, or makes the sender wait" },
	NULL, FOUND)
MISTAKE(never_polled,
	{ "ddpsess: check: never-polled: the queue pair goes with 1 completions that nobody has "
	  "polled" },
	NULL, FOUND)
MISTAKE(ask_too_much,
	{ "ddpsess: check: inline-size: 257 octets of inline data: not all adapters take more than "
	  "256",
	  "ddpsess: check: sge-count: 7 pieces in a request: not all adapters take more than 6" },
	NULL, FOUND)
MISTAKE(send_changed,
	{ "ddpsess: check: send-changed: queue pair 1, request 0x2: the 100 octets at %#llx were "
	  "changed before the request was done\n",
	  "ddpsess: check: send-changed: posted at\n" },
	NULL, FOUND)
MISTAKE(recv_changed,
	{ "ddpsess: check: recv-changed: queue pair 2, receive 0x1: memory at %#llx was written "
	  "while it was posted, behind what came\n",
	  "ddpsess: check: recv-changed: posted at\n" },
	NULL, FOUND)
MISTAKE(dereg_pending,
	{ "ddpsess: check: dereg-pending: the region with key 0x",
	  " goes while a request of queue pair 2 uses it\n",
	  "ddpsess: check: dereg-pending: posted at\n" },
	NULL, FOUND)

/* Each place once: here all is made from one, as seen from outside of the tests. */
#define REGION "ddpsess: check: leak: a region of 8192 octets is left, made at\n"

VT_TEST(verbs_check, suppressions)
{
	const struct mistake all[] = {
		{ leave_pair_open, { REGION }, NULL, FOUND },
		{ leave_pair_open, { REGION }, "leak in_no_frame\n\n# leak\nlate-recv\n", FOUND },
		{ leave_pair_open, { NULL }, "  leak \t \r\n", 0 },
		{ leave_pair_open, { NULL }, "*\n", 0 },
		{ leave_pair_open, { NULL }, "* nowhere\r\nleak libc.so # whose calls are\n", 0 },
		{ no_device,
		  { "ddpsess: /none/such: No such file or directory; the device cannot be "
		    "opened\n" },
		  "/none/such",
		  0 },
		{ no_device,
		  { ":2: there is no rule 'lek': use '*', 'send-changed', 'recv-changed', "
		    "'late-recv', 'short-recv', 'dereg-pending', 'dereg-used', 'never-polled', "
		    "'post-after-error', 'qp-state', 'queue-full', 'inline-size', 'sge-count' or "
		    "'leak'; the device "
		    "cannot be opened\n",
		    "ddpsess: " },
		  "leak\nlek client\n",
		  0 },
		{ no_device,
		  { ":1: there is no rule 'late_recv': use ", "ddpsess: " },
		  "late_recv # all\n",
		  0 },
	};

	for (size_t i = 0; i < sizeof all / sizeof *all; i++)
		expect_mistake_report(&all[i]);
}

VT_TEST(verbs_check, number_of_suppressions)
{
	static char text[128 * 8];
	struct mistake m = { make_no_mistake, { NULL }, text, 0 };

	for (int i = 0; i < 127; i++)
		strcat(text, "leak x\n");
	expect_mistake_report(&m);
	strcat(text, "leak x\n");
	m.make = no_device;
	m.reports[0] = ":128: 127 suppressions at most; the device cannot be opened\n";
	m.reports[1] = "ddpsess: ";
	expect_mistake_report(&m);
}
