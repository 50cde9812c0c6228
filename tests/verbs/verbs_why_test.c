/* SPDX-License-Identifier: BSD-2-Clause */
/* Completions, events and lost datagrams, each in a process of its own: with --check and in strict mode
 * one line says why. */
#include "support/descriptor.h"
#include "verbs/ib/vd_qp.h"
#include "verbs/vchild.h"
#include "verbs/voob.h"
#include "verbs/vt.h"
#include "verbs/vud.h"

static struct vt v;
static struct vud u;
static struct vud_qp a, b;

/* ---- connections ---- */

static void up_asked(void)
{
	vt_init(&v);
	if (getenv("DDPSESS_STRICT") && !getenv("DDPSESS_FACE"))
		v.access &= ~(unsigned)IBV_ACCESS_REMOTE_ATOMIC;
	v.connect.retry_count = 0;
	v.accept.rnr_retry_count = 7;
	vt_up(&v);
}

static void end_asked(void)
{
	vt_expect(v.a.ch, RDMA_CM_EVENT_DISCONNECTED);
	vt_down(&v);
}

static void why_long_message(void)
{
	up_asked();
	cr_assert_eq(vt_recv(&v.b, 1, 0, 8), 0);
	cr_assert_eq(vt_post(&v.a, 2, IBV_WR_SEND, 9, NULL), 0);
	vt_expect_wc(&v.b, 1, IBV_WC_RECV, IBV_WC_LOC_LEN_ERR);
	end_asked();
}

static void why_peer_key(void)
{
	up_asked();
	v.b.mr->rkey++;
	cr_assert_eq(vt_post(&v.a, 4, IBV_WR_RDMA_READ, 8, &v.b), 0);
	vt_expect_wc(&v.a, 4, IBV_WC_RDMA_READ, IBV_WC_REM_ACCESS_ERR);
	end_asked();
}

static void why_own_key(void)
{
	struct ibv_sge sge = { (uintptr_t)v.a.buf, 8, 0 };
	struct ibv_send_wr wr = { .wr_id = 3,
				  .opcode = IBV_WR_SEND,
				  .sg_list = &sge,
				  .num_sge = 1,
				  .send_flags = IBV_SEND_SIGNALED },
			   *bad;

	up_asked();
	sge.lkey = v.a.mr->lkey ^ 0x5a5a00;
	cr_assert_eq(ibv_post_send(v.a.id->qp, &wr, &bad), 0);
	vt_expect_wc(&v.a, 3, IBV_WC_SEND, IBV_WC_LOC_PROT_ERR);
	end_asked();
}

/* The receive's key is wrong: the peer's Send fails. */
static void why_receive_key(void)
{
	up_asked();
	v.b.mr->lkey ^= 0x5a5a00;
	cr_assert_eq(vt_recv(&v.b, 1, 0, 8), 0);
	v.b.mr->lkey ^= 0x5a5a00;
	cr_assert_eq(vt_post(&v.a, 2, IBV_WR_SEND, 8, NULL), 0);
	vt_expect_wc(&v.b, 1, IBV_WC_RECV, IBV_WC_LOC_PROT_ERR);
	end_asked();
}

static void why_bind(void)
{
	struct ibv_mw *mw;
	struct ibv_mw_bind bind = { .wr_id = 4, .send_flags = IBV_SEND_SIGNALED };

	up_asked();
	mw = ibv_alloc_mw(v.a.id->pd, IBV_MW_TYPE_1);
	cr_assert_not_null(mw);
	bind.bind_info = (struct ibv_mw_bind_info){ v.a.mr, (uintptr_t)v.a.buf + 8000, 8192,
						    IBV_ACCESS_REMOTE_READ };
	cr_assert_eq(ibv_bind_mw(v.a.id->qp, mw, &bind), 0);
	vt_expect_wc(&v.a, 4, IBV_WC_BIND_MW, IBV_WC_MW_BIND_ERR);
	vt_expect(v.a.ch, RDMA_CM_EVENT_DISCONNECTED);
	ibv_dealloc_mw(mw);
	vt_down(&v);
}

static void why_full_queue(void)
{
	struct ibv_async_event e;

	vt_init(&v);
	v.init.cap.max_send_wr = v.init.cap.max_recv_wr = 80; /* the queue takes 64 */
	vt_up(&v);
	for (uint64_t i = 0; i < 66; i++)
		cr_assert_eq(vt_recv(&v.b, i, 0, 64), 0);
	for (uint64_t i = 0; i < 66; i++) {
		cr_assert_eq(vt_post(&v.a, i, IBV_WR_SEND, 8, NULL), 0);
		vt_wc(&v.a);
	}
	e = vt_async(v.a.id->verbs, IBV_EVENT_CQ_ERR);
	ibv_ack_async_event(&e);
	end_asked();
}

static void why_vanished(void)
{
	up_asked();
	cut_network();
	cr_assert_eq(vt_post(&v.a, 5, IBV_WR_SEND, 8, NULL), 0);
	vt_expect_wc(&v.a, 5, IBV_WC_SEND, IBV_WC_RETRY_EXC_ERR);
	end_asked();
}

static void why_no_recv(void)
{
	up_asked();
	cr_assert_eq(vt_post(&v.a, 5, IBV_WR_SEND, 8, NULL), 0);
	end_asked();
}

/* ---- datagrams ---- */

static void up_datagrams(void)
{
	vud_open(&u);
	vud_up(&u, &a);
	vud_up(&u, &b);
}

static void end_datagrams(void)
{
	vud_down(&a);
	vud_down(&b);
	vud_close(&u);
}

#define AWAIT_COUNT(what, n)                                                                       \
	do {                                                                                       \
		struct ibv_wc wc_;                                                                 \
		ibv_poll_cq(b.cq, 1, &wc_);                                                        \
	} while (vud_stats().what < (n))

static void why_no_datagram_recv(void)
{
	up_datagrams();
	vud_send(&a, 1, &b, 8, 0);
	vud_send(&a, 2, &b, 8, 0);
	AWAIT_COUNT(no_recv, 2);
	end_datagrams();
}

static void why_qkey(void)
{
	struct ibv_sge sge;
	struct ibv_send_wr wr, *bad;

	up_datagrams();
	sge = (struct ibv_sge){ (uintptr_t)a.buf, 8, a.key };
	wr = vud_wr(&a, 1, &b, &sge, 1);
	wr.wr.ud.remote_qkey++;
	cr_assert_eq(ibv_post_send(a.qp, &wr, &bad), 0);
	vud_recv(&b, 1, 0, 100);
	AWAIT_COUNT(bad_qkey, 1);
	end_datagrams();
}

/* The port is the queue pair's, the number is another's. */
static void why_misdirected(void)
{
	struct ibv_send_wr wr, *bad;

	up_datagrams();
	wr = vud_wr(&a, 1, &b, NULL, 0);
	wr.wr.ud.remote_qpn = b.qp->qp_num ^ (b.qp->qp_num >> 16 == 0xfe ? 0x20000 : 0x10000);
	cr_assert_eq(ibv_post_send(a.qp, &wr, &bad), 0);
	vud_recv(&b, 1, 0, 100);
	AWAIT_COUNT(malformed, 1);
	end_datagrams();
}

static void why_nobody(void)
{
	struct ibv_send_wr wr, *bad;

	up_datagrams();
	wr = vud_wr(&a, 1, &b, NULL, 0);
	wr.wr.ud.remote_qpn = 0x123456;
	cr_assert_eq(ibv_post_send(a.qp, &wr, &bad), 0);
	vud_wc(&a);
	end_datagrams();
}

/* The queue pair has gone, and the port is nobody's. */
static void why_nobody_at_the_port(void)
{
	const uint64_t until = ud_now_ms() + 1500;
	struct ibv_send_wr wr, *bad;
	struct ibv_sge sge;

	up_datagrams();
	sge = (struct ibv_sge){ (uintptr_t)a.buf, 1000, a.key };
	wr = vud_wr(&a, 1, &b, &sge, 1);
	vud_down(&b);
	while (ud_now_ms() < until) {
		cr_assert_eq(ibv_post_send(a.qp, &wr, &bad), 0);
		cr_assert_eq(vud_wc(&a).status, IBV_WC_SUCCESS);
	}
	vud_down(&a);
	vud_close(&u);
}

/* The system sends nothing to this address. */
static void why_no_way(void)
{
	struct ibv_send_wr wr, *bad;
	struct ibv_ah *ah;

	up_datagrams();
	ah = vud_ah(&u, "255.255.255.255");
	wr = vud_wr(&a, 1, &b, NULL, 0);
	wr.wr.ud.ah = ah;
	cr_assert_eq(ibv_post_send(a.qp, &wr, &bad), 0);
	vud_wc(&a);
	cr_expect_eq(ibv_destroy_ah(ah), 0);
	end_datagrams();
}

/* Twice a second long. */
static void why_unacknowledged(void)
{
	const uint64_t until = ud_now_ms() + 1500;

	up_datagrams();
	cut_network();
	while (ud_now_ms() < until) {
		vud_send(&a, 1, &b, 1000, 0);
		cr_assert_eq(vud_wc(&a).status, IBV_WC_SUCCESS);
	}
	end_datagrams();
}

static void why_too_long(void)
{
	struct ibv_sge sge[2];
	struct ibv_send_wr wr, *bad;

	up_datagrams();
	sge[0] = sge[1] = (struct ibv_sge){ (uintptr_t)a.buf, 4096, a.key };
	wr = vud_wr(&a, 1, &b, sge, 2);
	cr_assert_eq(ibv_post_send(a.qp, &wr, &bad), 0);
	cr_expect_eq(vud_wc(&a).status, IBV_WC_LOC_LEN_ERR);
	end_datagrams();
}

static void why_datagram_key(void)
{
	up_datagrams();
	a.key ^= 0x5a5a00;
	vud_send(&a, 1, &b, 8, 0);
	cr_expect_eq(vud_wc(&a).status, IBV_WC_LOC_PROT_ERR);
	end_datagrams();
}

static void why_short_recv(void)
{
	up_datagrams();
	vud_recv(&b, 1, 0, 47);
	vud_send(&a, 1, &b, 8, 0);
	cr_expect_eq(vud_wc(&b).status, IBV_WC_LOC_LEN_ERR);
	end_datagrams();
}

static void why_recv_key(void)
{
	up_datagrams();
	b.key ^= 0x5a5a00;
	vud_recv(&b, 1, 0, 100);
	vud_send(&a, 1, &b, 8, 0);
	cr_expect_eq(vud_wc(&b).status, IBV_WC_LOC_PROT_ERR);
	end_datagrams();
}

/* Two queue pairs of 64 requests and a queue of 256: five. */
static void why_datagram_queue(void)
{
	struct ibv_qp_init_attr init = { .qp_type = IBV_QPT_UD, .sq_sig_all = 1 };
	struct ibv_async_event e;
	struct vud_qp more[4];
	struct ibv_send_wr wr, *bad;

	up_datagrams();
	init.send_cq = init.recv_cq = a.cq;
	init.cap = (struct ibv_qp_cap){ 64, 1, 1, 1, 0 };
	for (int i = 0; i < 4; i++) {
		more[i] = a;
		more[i].qp = ibv_create_qp(u.pd, &init);
		cr_assert_not_null(more[i].qp);
		vud_move(&more[i], IBV_QPS_RTS);
	}
	for (int i = 0; i < 257; i++) {
		struct vud_qp *by = i < 256 ? &more[i / 64] : &a;

		wr = vud_wr(by, 1, by, NULL, 0);
		wr.wr.ud.remote_qpn = 0x123456;
		cr_assert_eq(ibv_post_send(by->qp, &wr, &bad), 0);
	}
	e = vt_async(u.ctx, IBV_EVENT_CQ_ERR);
	ibv_ack_async_event(&e);
	for (int i = 0; i < 4; i++)
		ibv_destroy_qp(more[i].qp);
	end_datagrams();
}

/* ---- what is said ---- */

struct reason {
	const char *mode, *face;
	void (*live)(void);
	const char *line;
	unsigned times;
};

#define ENDED  ": this side ended the session: "
#define THEIRS ": peer sent a Terminate: "

static const struct reason connections[] = {
	{ "CHECK", NULL, why_long_message, ENDED "DDP untagged: message too long", 1 },
	{ "CHECK", NULL, why_long_message, THEIRS "DDP untagged: message too long", 1 },
	{ "CHECK", NULL, why_peer_key, "unknown or invalidated", 1 },
	{ "CHECK", NULL, why_own_key, ENDED "RDMAP: local catastrophic error: posted work request",
	  1 },
	{ "CHECK", NULL, why_receive_key,
	  ENDED "DDP: local catastrophic error: posted receive, local key", 1 },
	{ "CHECK", NULL, why_bind, ENDED "RDMAP: local catastrophic error: bind of STag", 1 },
	{ "CHECK", NULL, why_full_queue, "a completion queue of this session overflowed", 1 },
	{ "STRICT", "roce", why_vanished, ", peer 127.0.0.1:", 1 },
	{ NULL, NULL, why_long_message, "ddpsess: ", 0 },
	{ "STRICT", NULL, why_no_recv, ": a Send of the peer has no receive: ", 1 },
};

static const struct reason datagrams[] = {
	{ "STRICT", "roce", why_no_datagram_recv, " is lost: no receive is posted", 1 },
	{ "CHECK", NULL, why_qkey, " is lost: its Q_Key is not the queue pair's", 1 },
	{ "CHECK", NULL, why_misdirected, " is lost: it is malformed, or for another queue pair",
	  1 },
	{ NULL, NULL, why_nobody, "ddpsess: ", 0 },
	{ "CHECK", NULL, why_nobody, " is lost: no queue pair for datagrams has this number", 1 },
	{ "CHECK", NULL, why_nobody_at_the_port, " may be lost: nothing was acknowledged", 1 },
	{ "CHECK", NULL, why_no_way, " cannot be sent: ", 1 },
	{ "CHECK", NULL, why_unacknowledged,
	  " may be lost: nothing was acknowledged for a second, so nobody may be there", 1 },
	{ "CHECK", NULL, why_too_long, " cannot be sent: it is longer than the MTU", 1 },
	{ "CHECK", NULL, why_datagram_key, " cannot be sent: its memory has a wrong key", 1 },
	{ "CHECK", NULL, why_short_recv, " is lost: the receive is too short for 40 octets", 1 },
	{ "CHECK", NULL, why_recv_key, " is lost: the receive's memory has a wrong key", 1 },
	{ "CHECK", NULL, why_datagram_queue, ": a completion of a datagram is lost", 1 },
};

static void live_reason(const void *arg)
{
	const struct reason *r = arg;

	if (r->mode)
		setenv(*r->mode == 'C' ? "DDPSESS_CHECK" : "DDPSESS_STRICT", "on", 1);
	if (r->face)
		setenv("DDPSESS_FACE", r->face, 1);
	r->live();
}

static void expect_why_line(const struct reason *r)
{
	const char *told;

	vchild_run(live_reason, r, &told);
	cr_expect_eq(vchild_times(told, r->line), r->times, "no '%s' in: %s", r->line, told);
}

VT_TEST(verbs_why, a_connection_that_ends_says_why)
{
	for (size_t i = 0; i < sizeof connections / sizeof *connections; i++)
		expect_why_line(&connections[i]);
}

Test(verbs_why, a_datagram_that_is_lost_says_why, .timeout = 60)
{
	for (size_t i = 0; i < sizeof datagrams / sizeof *datagrams; i++)
		expect_why_line(&datagrams[i]);
}
