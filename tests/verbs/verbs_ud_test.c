/* SPDX-License-Identifier: BSD-2-Clause */
/* Datagrams between queue pairs: what a receive gets, what is refused, states, completions. */
#include "verbs/vt.h"
#include "verbs/vud.h"
#include <errno.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/syscall.h>

Test(verbs_ud, a_message_has_a_grh_in_front, .timeout = 30)
{
	struct vud_qp a, b;
	struct vud v;
	union ibv_gid gid;
	struct ibv_grh *grh;
	struct ibv_wc wc;

	vud_open(&v);
	vud_up(&v, &a);
	vud_up(&v, &b);
	cr_assert_eq(ibv_query_gid(v.ctx, 1, 0, &gid), 0);
	vud_recv(&b, 7, 0, 40 + 5);
	memcpy(a.buf, "hello", 5);
	vud_send(&a, 1, &b, 5, 0);
	wc = vud_wc(&a);
	cr_expect_eq(wc.status, 0);
	cr_expect_eq(wc.wr_id, 1);
	cr_expect_eq(wc.opcode, IBV_WC_SEND);
	cr_expect_eq(wc.qp_num, a.qp->qp_num);
	wc = vud_wc(&b);
	cr_expect_eq(wc.status, 0);
	cr_expect_eq(wc.wr_id, 7);
	cr_expect_eq(wc.opcode, IBV_WC_RECV);
	cr_expect_eq(wc.byte_len, 45);
	cr_expect_eq(wc.src_qp, a.qp->qp_num);
	cr_expect_eq(wc.qp_num, b.qp->qp_num);
	cr_expect_eq(wc.wc_flags, IBV_WC_GRH);
	grh = (struct ibv_grh *)b.buf;
	cr_expect_eq(ntohl(grh->version_tclass_flow) >> 28, 6);
	cr_expect_eq(ntohs(grh->paylen), 12 + 8 + 8 + 4);
	cr_expect_eq(grh->next_hdr, 0x1b);
	cr_expect_arr_eq(grh->sgid.raw, gid.raw, 16);
	cr_expect_arr_eq(grh->dgid.raw, gid.raw, 16);
	cr_expect_arr_eq(b.buf + 40, "hello", 5);
	vud_down(&a);
	vud_down(&b);
	vud_close(&v);
}

Test(verbs_ud, immediate_data_pieces_and_nothing_at_all, .timeout = 30)
{
	struct ibv_send_wr wr, *bad;
	struct ibv_sge sge[3];
	struct vud_qp a, b;
	struct ibv_wc wc;
	struct vud v;

	vud_open(&v);
	vud_up(&v, &a);
	vud_up(&v, &b);
	/* Three pieces inline, in an order that is not memory's, with immediate data. */
	vud_recv(&b, 1, 0, 100);
	memcpy(a.buf, "abcdef", 6);
	sge[0] = (struct ibv_sge){ (uintptr_t)a.buf + 4, 2, 0 };
	sge[1] = (struct ibv_sge){ 0, 0, 0 };
	sge[2] = (struct ibv_sge){ (uintptr_t)a.buf, 4, 0 };
	wr = vud_wr(&a, 2, &b, sge, 3);
	wr.opcode = IBV_WR_SEND_WITH_IMM;
	wr.imm_data = htonl(0x12345678);
	wr.send_flags |= IBV_SEND_INLINE;
	cr_assert_eq(ibv_post_send(a.qp, &wr, &bad), 0);
	wc = vud_wc(&b);
	cr_expect_eq(wc.wc_flags, IBV_WC_GRH | IBV_WC_WITH_IMM);
	cr_expect_eq(wc.imm_data, htonl(0x12345678));
	cr_expect_eq(wc.byte_len, 46);
	cr_expect_arr_eq(b.buf + 40, "efabcd", 6);
	cr_expect_eq(vud_wc(&a).wr_id, 2);
	/* A message of no octets is one, too. */
	vud_recv(&b, 3, 0, 40);
	wr = vud_wr(&a, 4, &b, NULL, 0);
	cr_assert_eq(ibv_post_send(a.qp, &wr, &bad), 0);
	wc = vud_wc(&b);
	cr_expect_eq(wc.wr_id, 3);
	cr_expect_eq(wc.status, 0);
	cr_expect_eq(wc.byte_len, 40);
	vud_down(&a);
	vud_down(&b);
	vud_close(&v);
}

/* The wrong one is dropped; one with the high bit set means the sender's own. */
Test(verbs_ud, q_keys_are_checked, .timeout = 30)
{
	struct ibv_send_wr wr, *bad;
	struct ibv_qp_attr attr = { .qkey = 77 };
	struct vud_qp a, b;
	struct ibv_sge sge;
	struct vud v;

	vud_open(&v);
	vud_up(&v, &a);
	vud_up(&v, &b);
	vud_recv(&b, 1, 0, 100);
	sge = (struct ibv_sge){ (uintptr_t)a.buf, 1, a.mr->lkey };
	wr = vud_wr(&a, 0, &b, &sge, 1);
	a.buf[0] = 1;
	wr.wr.ud.remote_qkey = VUD_QKEY + 1;
	cr_assert_eq(ibv_post_send(a.qp, &wr, &bad), 0);
	cr_expect_eq(vud_wc(&a).status, 0, "its sender does not learn of it");
	a.buf[0] = 2;
	wr.wr.ud.remote_qkey = 0x80000000; /* controlled: the queue pair's own, which is right */
	cr_assert_eq(ibv_post_send(a.qp, &wr, &bad), 0);
	cr_expect_eq(vud_wc(&b).wr_id, 1);
	cr_expect_eq(b.buf[40], 2, "the first one was dropped");
	vud_wc(&a);
	/* Changed at the receiver, the old one is wrong. */
	cr_assert_eq(ibv_modify_qp(b.qp, &attr, IBV_QP_QKEY), 0);
	vud_recv(&b, 2, 0, 100);
	a.buf[0] = 3;
	wr.wr.ud.remote_qkey = VUD_QKEY;
	cr_assert_eq(ibv_post_send(a.qp, &wr, &bad), 0);
	vud_wc(&a);
	a.buf[0] = 4;
	wr.wr.ud.remote_qkey = 77;
	cr_assert_eq(ibv_post_send(a.qp, &wr, &bad), 0);
	cr_expect_eq(vud_wc(&b).wr_id, 2);
	cr_expect_eq(b.buf[40], 4);
	vud_down(&a);
	vud_down(&b);
	vud_close(&v);
}

/* The MTU bounds a message; what is wrong with a request stops the send queue until it is moved on. */
Test(verbs_ud, errors_of_sends_stop_the_send_queue, .timeout = 30)
{
	struct ibv_qp_attr attr = { .qp_state = IBV_QPS_RTS };
	struct vud_qp a, b;
	struct ibv_wc wc;
	struct vud v;

	vud_open(&v);
	vud_up(&v, &a);
	vud_up(&v, &b);
	vud_recv(&b, 1, 0, 40 + 1024);
	vud_send(&a, 1, &b, 1024, 0);
	cr_expect_eq(vud_wc(&b).byte_len, 40 + 1024);
	cr_expect_eq(vud_wc(&a).status, 0);
	vud_send(&a, 2, &b, 1025, 0);
	wc = vud_wc(&a);
	cr_expect_eq(wc.status, IBV_WC_LOC_LEN_ERR);
	cr_expect_eq(wc.vendor_err, 5);
	cr_expect_eq(a.qp->state, IBV_QPS_SQE);
	vud_send(&a, 3, &b, 1, 0);
	cr_expect_eq(vud_wc(&a).status, IBV_WC_WR_FLUSH_ERR);
	cr_assert_eq(ibv_modify_qp(a.qp, &attr, IBV_QP_STATE), 0);
	a.key = a.mr->lkey + 0x100; /* no region's */
	vud_send(&a, 4, &b, 1, 0);
	wc = vud_wc(&a);
	cr_expect_eq(wc.status, IBV_WC_LOC_PROT_ERR);
	cr_expect_eq(wc.vendor_err, 1);
	a.key = a.mr->lkey;
	cr_assert_eq(ibv_modify_qp(a.qp, &attr, IBV_QP_STATE), 0);
	vud_recv(&b, 5, 0, 100);
	vud_send(&a, 6, &b, 1, 0);
	cr_expect_eq(vud_wc(&b).wr_id, 5);
	cr_expect_eq(vud_wc(&a).wr_id, 6);
	vud_down(&a);
	vud_down(&b);
	vud_close(&v);
}

/* One that is too short for its message fails, and no other. */
Test(verbs_ud, receives_that_do_not_fit, .timeout = 30)
{
	struct vud_qp a, b;
	struct ibv_wc wc;
	struct vud v;

	vud_open(&v);
	vud_up(&v, &a);
	vud_up(&v, &b);
	vud_recv(&b, 1, 0, 40 + 7);
	vud_recv(&b, 2, 0, 40 + 8);
	vud_send(&a, 1, &b, 8, 0);
	vud_send(&a, 2, &b, 8, 0);
	wc = vud_wc(&b);
	cr_expect_eq(wc.wr_id, 1);
	cr_expect_eq(wc.status, IBV_WC_LOC_LEN_ERR);
	wc = vud_wc(&b);
	cr_expect_eq(wc.wr_id, 2);
	cr_expect_eq(wc.status, 0);
	/* Memory that is not the domain's fails the queue pair. */
	vud_recv(&b, 4, 0, 100);
	b.key++;
	vud_recv(&b, 3, 0, 100);
	b.key--;
	vud_send(&a, 3, &b, 8, 0);
	vud_send(&a, 4, &b, 8, 0);
	vud_recv(&b, 5, 0, 100);
	cr_expect_eq(vud_wc(&b).status, 0);
	wc = vud_wc(&b);
	cr_expect_eq(wc.wr_id, 3);
	cr_expect_eq(wc.status, IBV_WC_LOC_PROT_ERR);
	wc = vud_wc(&b);
	cr_expect_eq(wc.wr_id, 5);
	cr_expect_eq(wc.status, IBV_WC_WR_FLUSH_ERR);
	cr_expect_eq(b.qp->state, IBV_QPS_ERR);
	vud_down(&a);
	vud_down(&b);
	vud_close(&v);
}

Test(verbs_ud, what_cannot_be_posted, .timeout = 30)
{
	struct ibv_send_wr wr, *bad = NULL;
	struct ibv_recv_wr rwr = { .num_sge = 5 }, *rbad = NULL;
	struct vud_qp a, b;
	struct ibv_ah *ah;
	struct vud v;

	vud_open(&v);
	vud_make(&v, &a, IBV_QPT_UD);
	vud_up(&v, &b);
	wr = vud_wr(&a, 0, &b, NULL, 0);
	cr_expect_eq(ibv_post_send(a.qp, &wr, &bad), EINVAL, "in RESET");
	cr_expect_eq(bad, &wr);
	cr_expect_eq(ibv_post_recv(a.qp, &rwr, &rbad), EINVAL, "in RESET");
	vud_move(&a, IBV_QPS_RTS);
	cr_expect_eq(ibv_post_recv(a.qp, &rwr, &rbad), EINVAL, "too many pieces");
	cr_expect_eq(rbad, &rwr);
	wr.opcode = IBV_WR_RDMA_WRITE;
	cr_expect_eq(ibv_post_send(a.qp, &wr, &bad), EINVAL);
	wr.opcode = IBV_WR_SEND;
	wr.wr.ud.remote_qpn = 1 << 24;
	cr_expect_eq(ibv_post_send(a.qp, &wr, &bad), EINVAL);
	wr.wr.ud.remote_qpn = b.qp->qp_num;
	ah = wr.wr.ud.ah;
	wr.wr.ud.ah = NULL;
	cr_expect_eq(ibv_post_send(a.qp, &wr, &bad), EINVAL);
	wr.wr.ud.ah = ah;
	/* A number that is no queue pair's leads nowhere, which nobody learns. */
	wr.wr.ud.remote_qpn = 0x123456;
	cr_expect_eq(ibv_post_send(a.qp, &wr, &bad), 0);
	cr_expect_eq(vud_wc(&a).status, 0);
	rwr.num_sge = 0;
	for (unsigned i = 0; i < a.max_recv; i++)
		cr_assert_eq(ibv_post_recv(a.qp, &rwr, &rbad), 0);
	cr_expect_eq(ibv_post_recv(a.qp, &rwr, &rbad), ENOMEM);
	vud_down(&a);
	vud_down(&b);
	vud_close(&v);
}

/* What finds no receive waits for one; where the program wants to know it is dropped. */
static void without_a_receive(bool strict)
{
	struct vud_qp a, b;
	struct ibv_wc wc;
	struct vud v;

	vud_open(&v);
	vud_up(&v, &a);
	vud_up(&v, &b);
	a.buf[0] = 1;
	vud_send(&a, 1, &b, 1, 0);
	vud_wc(&a);
	do
		cr_expect_eq(ibv_poll_cq(b.cq, 1, &wc), 0);
	while (strict && vud_stats().no_recv < 1);
	vud_recv(&b, 1, 0, 100);
	a.buf[0] = 2;
	vud_send(&a, 2, &b, 1, 0);
	cr_expect_eq(vud_wc(&b).status, 0);
	cr_expect_eq(b.buf[40], strict ? 2 : 1);
	vud_down(&a);
	vud_down(&b);
	vud_close(&v);
}

Test(verbs_ud, a_datagram_waits_for_a_receive, .timeout = 30)
{
	without_a_receive(false);
}

Test(verbs_ud, strict_drops_what_finds_no_receive, .timeout = 30)
{
	setenv("DDPSESS_NO_RECV", "strict", 1);
	without_a_receive(true);
}

/* Strict mode does it by itself, whatever is said of Sends. */
Test(verbs_ud, contact_29_strict_mode_drops_what_finds_no_receive, .timeout = 30)
{
	setenv("DDPSESS_STRICT", "on", 1);
	setenv("DDPSESS_FACE", "roce", 1);
	without_a_receive(true);
}

/* As with connections: a completion that nobody has fetched keeps its request's place, so a queue that is deep
 * enough does not overflow. */
Test(verbs_ud, contact_29_places_are_free_when_completions_are_fetched, .timeout = 30)
{
	struct ibv_qp_attr reset = { .qp_state = IBV_QPS_RESET };
	struct ibv_recv_wr rwr = { .num_sge = 0 }, *rbad;
	struct ibv_sge none;
	struct vud_qp a, b;
	struct ibv_wc wc;
	struct ibv_send_wr wr, *bad;
	struct vud v;
	unsigned n;

	vud_open(&v);
	vud_up(&v, &a);
	vud_up(&v, &b);
	wr = vud_wr(&a, 1, &b, &none, 0);
	wr.send_flags |= IBV_SEND_SIGNALED;
	for (unsigned i = 0; i < b.max_recv; i++)
		vud_recv(&b, i, 0, 100);
	for (n = 0; n <= a.max_send && !ibv_post_send(a.qp, &wr, &bad); n++)
		;
	cr_expect_eq(n, a.max_send);
	cr_expect_eq(ibv_post_send(a.qp, &wr, &bad), ENOMEM);
	vud_wc(&a);
	cr_expect_eq(ibv_post_send(a.qp, &wr, &bad), 0, "one is free");
	cr_expect_eq(ibv_post_send(a.qp, &wr, &bad), ENOMEM);
	while (vud_stats().received < b.max_recv) {
		while (ibv_poll_cq(a.cq, 1, &wc) > 0)
			;
		ibv_post_send(a.qp, &wr, &bad);
	}
	cr_expect_eq(ibv_post_recv(b.qp, &rwr, &rbad), ENOMEM);
	vud_wc(&b);
	cr_expect_eq(ibv_post_recv(b.qp, &rwr, &rbad), 0, "one is free");
	cr_expect_eq(ibv_post_recv(b.qp, &rwr, &rbad), ENOMEM);
	/* Who begins anew has all of them. */
	cr_assert_eq(ibv_modify_qp(b.qp, &reset, IBV_QP_STATE), 0);
	vud_move(&b, IBV_QPS_RTS);
	for (unsigned i = 0; i < b.max_recv; i++)
		cr_expect_eq(ibv_post_recv(b.qp, &rwr, &rbad), 0);
	cr_expect_eq(ibv_post_recv(b.qp, &rwr, &rbad), ENOMEM);
	vud_down(&a);
	vud_down(&b);
	vud_close(&v);
}

/* Completion channels report datagrams once for each arming. */
Test(verbs_ud, one_event_for_each_arming, .timeout = 30)
{
	struct vud_qp a, b;
	struct ibv_wc wc;
	struct vud v;

	vud_open(&v);
	vud_up(&v, &a);
	vud_up(&v, &b);
	for (uint64_t i = 0; i < 4; i++)
		vud_recv(&b, i, 0, 100);
	cr_assert_eq(ibv_req_notify_cq(b.cq, 1), 0);
	vud_send(&a, 0, &b, 1, 0);
	cr_expect_not(vt_readable(b.cc->fd, 50), "it was not solicited");
	vud_send(&a, 1, &b, 1, IBV_SEND_SOLICITED);
	vud_event(&b);
	vud_send(&a, 2, &b, 1, IBV_SEND_SOLICITED);
	cr_expect_not(vt_readable(b.cc->fd, 50), "it is not armed any more");
	cr_assert_eq(ibv_req_notify_cq(b.cq, 0), 0);
	vud_event(&b); /* of the one that came meanwhile */
	while (ibv_poll_cq(b.cq, 1, &wc) > 0)
		;
	cr_assert_eq(ibv_req_notify_cq(b.cq, 0), 0);
	cr_expect_not(vt_readable(b.cc->fd, 50));
	vud_send(&a, 3, &b, 1, 0);
	vud_event(&b);
	vud_down(&a);
	vud_down(&b);
	vud_close(&v);
}

Test(verbs_ud, states, .timeout = 30)
{
	static const enum ibv_qp_state way[] = { IBV_QPS_INIT, IBV_QPS_RTR, IBV_QPS_RTS,
						 IBV_QPS_SQD, IBV_QPS_RTS };
	struct ibv_qp_attr attr = { .port_num = 1, .qkey = VUD_QKEY };
	struct ibv_qp_init_attr init;
	struct vud_qp a, b;
	struct ibv_wc wc;
	struct vud v;

	vud_open(&v);
	vud_up(&v, &b);
	vud_make(&v, &a, IBV_QPT_UD);
	attr.qp_state = IBV_QPS_INIT;
	cr_expect_eq(ibv_modify_qp(a.qp, &attr, IBV_QP_STATE), EINVAL, "without a Q_Key");
	attr.qp_state = IBV_QPS_RTS;
	cr_expect_eq(ibv_modify_qp(a.qp, &attr, IBV_QP_STATE), EINVAL);
	for (size_t i = 0; i < sizeof way / sizeof *way; i++) {
		attr.qp_state = way[i];
		cr_assert_eq(ibv_modify_qp(a.qp, &attr,
					   IBV_QP_STATE | (i ? 0
							     : IBV_QP_PKEY_INDEX | IBV_QP_PORT |
									   IBV_QP_QKEY)),
			     0);
		cr_expect_eq(a.qp->state, way[i]);
		if (way[i] != IBV_QPS_SQD)
			continue;
		/* Requests wait in SQD. */
		vud_recv(&b, 1, 0, 100);
		vud_send(&a, 1, &b, 1, 0);
		cr_expect_eq(ibv_poll_cq(a.cq, 1, &wc), 0);
	}
	cr_expect_eq(vud_wc(&a).wr_id, 1);
	cr_expect_eq(vud_wc(&b).wr_id, 1);
	cr_assert_eq(ibv_query_qp(a.qp, &attr, IBV_QP_QKEY | IBV_QP_STATE, &init), 0);
	cr_expect_eq(attr.qkey, VUD_QKEY);
	cr_expect_eq(attr.qp_state, IBV_QPS_RTS);
	cr_expect_eq(init.qp_type, IBV_QPT_UD);
	vud_recv(&a, 5, 0, 100);
	attr.qp_state = IBV_QPS_ERR;
	cr_assert_eq(ibv_modify_qp(a.qp, &attr, IBV_QP_STATE), 0);
	cr_expect_eq(vud_wc(&a).status, IBV_WC_WR_FLUSH_ERR);
	vud_send(&a, 6, &b, 1, 0);
	cr_expect_eq(vud_wc(&a).status, IBV_WC_WR_FLUSH_ERR);
	vud_send(&a, 7, &b, 1, 0);
	/* What was not fetched goes with the reset, and so does what comes before INIT. */
	attr.qp_state = IBV_QPS_RESET;
	cr_assert_eq(ibv_modify_qp(a.qp, &attr, IBV_QP_STATE), 0);
	cr_expect_eq(ibv_poll_cq(a.cq, 1, &wc), 0);
	b.buf[0] = 1;
	vud_send(&b, 8, &a, 1, 0);
	vud_wc(&b);
	cr_expect_eq(ibv_poll_cq(a.cq, 1, &wc), 0);
	vud_move(&a, IBV_QPS_RTS);
	vud_recv(&a, 9, 0, 100);
	b.buf[0] = 2;
	vud_send(&b, 8, &a, 1, 0);
	cr_expect_eq(vud_wc(&a).wr_id, 9);
	cr_expect_eq(a.buf[40], 2);
	vud_down(&a);
	vud_down(&b);
	vud_close(&v);
}
