/* SPDX-License-Identifier: BSD-2-Clause */
/* Arguments that are wrong, and calls that come too early, too late or twice. */
#include "verbs/vt.h"
#include <errno.h>
#include <stdlib.h>
#include <string.h>

/* ---- what is made ---- */

Test(verbs_args, completion_queues)
{
	struct ibv_cq_init_attr_ex ex = { .cqe = 0 };
	struct ibv_qp_init_attr init;
	struct ibv_cq_ex *cq;
	struct ibv_qp *qp;
	struct ibv_wc wc;
	struct vt_dev s;

	vt_dev_open(&s);
	VT_NULL_AS(ibv_create_cq(s.ctx, 0, NULL, NULL, 0), EINVAL);
	VT_NULL_AS(ibv_create_cq(s.ctx, -1, NULL, NULL, 0), EINVAL);
	VT_NULL_AS(ibv_create_cq(s.ctx, s.attr.max_cqe + 1, NULL, NULL, 0), EINVAL);
	VT_NULL_AS(ibv_create_cq(s.ctx, 1, NULL, NULL, -1), EINVAL);
	VT_NULL_AS(ibv_create_cq(s.ctx, 1, NULL, NULL, s.ctx->num_comp_vectors), EINVAL);
	VT_NULL_AS(ibv_create_cq_ex(s.ctx, &ex), EINVAL);
	ex.cqe = (uint32_t)s.attr.max_cqe + 1;
	VT_NULL_AS(ibv_create_cq_ex(s.ctx, &ex), EINVAL);
	ex.cqe = 1;
	ex.comp_vector = (uint32_t)s.ctx->num_comp_vectors;
	VT_NULL_AS(ibv_create_cq_ex(s.ctx, &ex), EINVAL);
	ex.comp_vector = 0;
	ex.wc_flags = IBV_WC_EX_WITH_FLOW_TAG;
	VT_NULL_AS(ibv_create_cq_ex(s.ctx, &ex), EOPNOTSUPP);
	ex.wc_flags = 0;
	cq = ibv_create_cq_ex(s.ctx, &ex);
	cr_assert_not_null(cq);
	cr_expect_geq(ibv_cq_ex_to_cq(cq)->cqe, 1);
	cr_expect_eq(ibv_start_poll(cq, &(struct ibv_poll_cq_attr){ .comp_mask = 1 }), EINVAL);
	cr_expect_eq(ibv_start_poll(cq, &(struct ibv_poll_cq_attr){ 0 }), ENOENT);
	cr_expect_eq(ibv_destroy_cq(ibv_cq_ex_to_cq(cq)), 0);
	cr_expect_eq(ibv_poll_cq(s.cq, 0, NULL), 0);
	cr_expect_eq(ibv_poll_cq(s.cq, 1, &wc), 0);
	cr_expect_eq(ibv_resize_cq(s.cq, 0), EINVAL);
	cr_expect_eq(ibv_resize_cq(s.cq, s.attr.max_cqe + 1), EINVAL);
	cr_expect_eq(ibv_resize_cq(s.cq, 17), 0);
	cr_expect_eq(s.cq->cqe, 17);
	init = vt_rc(&s);
	qp = ibv_create_qp(s.pd, &init);
	cr_expect_eq(ibv_resize_cq(s.cq, 18), 0, "a session uses it");
	cr_expect_eq(s.cq->cqe, 18);
	cr_expect_eq(ibv_destroy_qp(qp), 0);
	cr_expect_neq(ibv_req_notify_cq(s.cq, 0), 0, "it has no channel");
	vt_dev_close(&s);
}

Test(verbs_args, types_of_queue_pairs)
{
	static const enum ibv_qp_type others[] = { IBV_QPT_XRC_SEND, IBV_QPT_XRC_RECV,
						   IBV_QPT_DRIVER, IBV_QPT_RAW_PACKET };
	struct ibv_qp_init_attr init;
	struct vt_dev s;

	vt_dev_open(&s);
	for (size_t i = 0; i < sizeof others / sizeof *others; i++) {
		init = vt_rc(&s);
		init.qp_type = others[i];
		VT_NULL_AS(ibv_create_qp(s.pd, &init), EOPNOTSUPP);
	}
	init = vt_rc(&s);
	init.send_cq = NULL;
	VT_NULL_AS(ibv_create_qp(s.pd, &init), EINVAL);
	init = vt_rc(&s);
	init.recv_cq = NULL;
	VT_NULL_AS(ibv_create_qp(s.pd, &init), EINVAL);
	vt_dev_close(&s);
}

/* Each of the limits: the most there is works, one more does not and changes nothing. */
static void limit_verbs_args(const struct vt_dev *s, size_t member, uint32_t most)
{
	struct ibv_qp_init_attr init = vt_rc(s), before;
	struct ibv_qp *qp;

	memcpy((char *)&init.cap + member, &most, sizeof most);
	qp = ibv_create_qp(s->pd, &init);
	cr_assert_not_null(qp, "%u at %zu: %m", most, member);
	cr_expect_eq(ibv_destroy_qp(qp), 0);
	init = vt_rc(s);
	most++;
	memcpy((char *)&init.cap + member, &most, sizeof most);
	before = init;
	VT_NULL_AS(ibv_create_qp(s->pd, &init), EINVAL);
	cr_expect(!memcmp(&before, &init, sizeof init));
}

Test(verbs_args, limits_of_queue_pairs)
{
	struct ibv_qp_init_attr init;
	struct ibv_qp *qp;
	struct vt_dev s;

	vt_dev_open(&s);
	init = vt_rc(&s);
	init.cap = (struct ibv_qp_cap){ 0 };
	qp = ibv_create_qp(s.pd, &init);
	cr_assert_not_null(qp);
	limit_verbs_args(&s, offsetof(struct ibv_qp_cap, max_send_wr), (uint32_t)s.attr.max_qp_wr);
	limit_verbs_args(&s, offsetof(struct ibv_qp_cap, max_recv_wr), (uint32_t)s.attr.max_qp_wr);
	limit_verbs_args(&s, offsetof(struct ibv_qp_cap, max_send_sge), (uint32_t)s.attr.max_sge);
	limit_verbs_args(&s, offsetof(struct ibv_qp_cap, max_recv_sge), (uint32_t)s.attr.max_sge);
	limit_verbs_args(&s, offsetof(struct ibv_qp_cap, max_inline_data),
			 init.cap.max_inline_data);
	cr_expect_eq(ibv_destroy_qp(qp), 0);
	vt_dev_close(&s);
}

/* ---- regions ---- */

Test(verbs_args, regions)
{
	const int local = IBV_ACCESS_LOCAL_WRITE;
	char buf[64];
	struct ibv_mr *mr;
	struct vt_dev s;

	vt_dev_open(&s);
	VT_NULL_AS(ibv_reg_mr(s.pd, NULL, 64, 0), EFAULT);
	VT_NULL_AS(ibv_reg_mr(s.pd, buf, SIZE_MAX, 0), EINVAL);
	VT_NULL_AS(ibv_reg_mr(s.pd, (char *)UINTPTR_MAX - 10, 12, 0), EINVAL);
	VT_NULL_AS(ibv_reg_mr(s.pd, (char *)UINTPTR_MAX - 10, 12, IBV_ACCESS_ZERO_BASED), EINVAL);
	VT_NULL_AS(ibv_reg_mr(s.pd, buf, sizeof buf, IBV_ACCESS_REMOTE_WRITE), EINVAL);
	VT_NULL_AS(ibv_reg_mr(s.pd, buf, sizeof buf, IBV_ACCESS_REMOTE_ATOMIC), EINVAL);
	VT_NULL_AS(ibv_reg_mr(s.pd, buf, sizeof buf, 1 << 19), EOPNOTSUPP);
	VT_NULL_AS(ibv_reg_mr_iova(s.pd, buf, sizeof buf, UINT64_MAX, local), EINVAL);
	for (int i = 0; i < 2; i++) {
		const int remote = IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_ATOMIC;

		mr = ibv_reg_mr(s.pd, buf, i ? sizeof buf : 0, local | remote);
		cr_assert_not_null(mr, "%d", i);
		cr_expect_eq(ibv_rereg_mr(mr, 0, NULL, NULL, 0, local), IBV_REREG_MR_ERR_INPUT);
		cr_expect_eq(ibv_rereg_mr(mr, 1 << 5, NULL, NULL, 0, local),
			     IBV_REREG_MR_ERR_INPUT);
		cr_expect_eq(ibv_rereg_mr(mr, IBV_REREG_MR_CHANGE_PD, NULL, NULL, 0, local),
			     IBV_REREG_MR_ERR_INPUT);
		cr_expect_eq(ibv_rereg_mr(mr, IBV_REREG_MR_CHANGE_ACCESS, NULL, NULL, 0,
					  IBV_ACCESS_REMOTE_WRITE),
			     IBV_REREG_MR_ERR_INPUT);
		cr_expect_eq(ibv_rereg_mr(mr, IBV_REREG_MR_CHANGE_ACCESS, NULL, NULL, 0, local), 0);
		cr_expect_eq(ibv_dereg_mr(mr), 0);
	}
	vt_dev_close(&s);
}

/* ---- the device ---- */

Test(verbs_args, ports_and_indexes)
{
	static const uint8_t ports[] = { 0, 2, 255 };
	struct ibv_gid_entry entry;
	struct ibv_port_attr port;
	union ibv_gid gid;
	__be16 pkey;
	struct vt_dev s;

	vt_dev_open(&s);
	for (size_t i = 0; i < sizeof ports; i++) {
		cr_expect_eq(ibv_query_port(s.ctx, ports[i], &port), EINVAL);
		VT_MINUS_AS(ibv_query_gid(s.ctx, ports[i], 0, &gid), EINVAL);
		VT_MINUS_AS(ibv_query_pkey(s.ctx, ports[i], 0, &pkey), EINVAL);
		cr_expect_eq(ibv_query_gid_ex(s.ctx, ports[i], 0, &entry, 0), EINVAL);
		cr_expect_eq(ibv_get_pkey_index(s.ctx, ports[i], htons(0xffff)), -1);
	}
	cr_expect_eq(ibv_query_port(s.ctx, 1, &port), 0);
	VT_MINUS_AS(ibv_query_gid(s.ctx, 1, -1, &gid), EINVAL);
	VT_MINUS_AS(ibv_query_gid(s.ctx, 1, port.gid_tbl_len, &gid), EINVAL);
	VT_MINUS_AS(ibv_query_pkey(s.ctx, 1, -1, &pkey), EINVAL);
	VT_MINUS_AS(ibv_query_pkey(s.ctx, 1, port.pkey_tbl_len, &pkey), EINVAL);
	cr_expect_eq(ibv_query_gid_ex(s.ctx, 1, (uint32_t)port.gid_tbl_len, &entry, 0), EINVAL);
	cr_expect_eq(ibv_query_gid_ex(s.ctx, 1, 0, &entry, 1), EOPNOTSUPP);
	cr_expect_eq(ibv_query_gid_table(s.ctx, &entry, 0, 0), -EINVAL);
	cr_expect_eq(ibv_query_gid_table(s.ctx, &entry, 1, 1), -EOPNOTSUPP);
	cr_expect_eq(ibv_get_pkey_index(s.ctx, 1, htons(0x7fff)), -1);
	vt_dev_close(&s);
}

Test(verbs_args, what_iwarp_does_not_have)
{
	struct ibv_ah_attr ah = { .port_num = 1 };
	struct ibv_qp_init_attr init;
	union ibv_gid gid = { 0 };
	struct ibv_qp *qp;
	struct vt_dev s;

	vt_dev_open(&s);
	init = vt_rc(&s);
	qp = ibv_create_qp(s.pd, &init);
	cr_assert_not_null(qp);
	VT_NULL_AS(ibv_create_ah(s.pd, &ah), EINVAL); /* without a GID */
	VT_NULL_AS(ibv_alloc_mw(s.pd, (enum ibv_mw_type)3), EINVAL);
	/* Groups are for datagrams. */
	cr_expect_eq(ibv_attach_mcast(qp, &gid, 0), EINVAL);
	cr_expect_eq(ibv_detach_mcast(qp, &gid, 0), EINVAL);
	cr_expect_eq(ibv_destroy_qp(qp), 0);
	vt_dev_close(&s);
}

/* ---- requests ---- */

static struct ibv_send_wr a_send(struct ibv_sge *sge, uint64_t wr_id)
{
	return (struct ibv_send_wr){
		.wr_id = wr_id, .sg_list = sge, .num_sge = 1, .opcode = IBV_WR_SEND
	};
}

/* A good request, the wrong one and a good one: the first is sent, the second is named. */
static void check_between_verbs_args(struct vt *v, struct ibv_send_wr *wrong, int why)
{
	struct ibv_sge sge = { (uintptr_t)v->a.buf, 8, v->a.mr->lkey };
	struct ibv_send_wr first = a_send(&sge, 1), last = a_send(&sge, 3), *bad = NULL;
	struct ibv_wc wc;
	int err;

	cr_assert_eq(vt_recv(&v->b, 7, 0, 64), 0);
	first.next = wrong;
	wrong->next = &last;
	err = ibv_post_send(v->a.id->qp, &first, &bad);
	cr_expect_eq(err, why, "opcode %d, flags %#x, %d pieces: %s", wrong->opcode,
		     wrong->send_flags, wrong->num_sge, strerror(err));
	cr_expect_eq(bad, wrong);
	vt_expect_wc(&v->a, 1, IBV_WC_SEND, IBV_WC_SUCCESS);
	vt_expect_wc(&v->b, 7, IBV_WC_RECV, IBV_WC_SUCCESS);
	cr_expect_eq(ibv_poll_cq(v->a.cq, 1, &wc), 0, "and nothing else");
}

static void wrong_operations(struct vt *v, struct ibv_sge *sge)
{
	static const enum ibv_wr_opcode others[] = {
		IBV_WR_TSO, IBV_WR_DRIVER1, /* FLUSH, which is ibv_wr_flush alone: */
		(enum ibv_wr_opcode)14
	};
	struct ibv_send_wr wr = a_send(sge, 2);

	for (size_t i = 0; i < sizeof others / sizeof *others; i++) {
		wr.opcode = others[i];
		check_between_verbs_args(v, &wr, EOPNOTSUPP);
	}
	wr.opcode = IBV_WR_BIND_MW; /* no window */
	check_between_verbs_args(v, &wr, EINVAL);
	wr.opcode = (enum ibv_wr_opcode)99;
	check_between_verbs_args(v, &wr, EINVAL);
	wr.opcode = IBV_WR_SEND;
	wr.send_flags = IBV_SEND_IP_CSUM;
	check_between_verbs_args(v, &wr, EINVAL);
	wr.send_flags = 1 << 20;
	check_between_verbs_args(v, &wr, EINVAL);
	wr.opcode = IBV_WR_RDMA_READ; /* the octets would go nowhere */
	wr.send_flags = IBV_SEND_INLINE;
	check_between_verbs_args(v, &wr, EINVAL);
	wr.opcode = IBV_WR_ATOMIC_FETCH_AND_ADD;
	check_between_verbs_args(v, &wr, EINVAL);
}

static void wrong_pieces(struct vt *v, struct ibv_sge *sge)
{
	struct ibv_send_wr wr = a_send(sge, 2);

	wr.num_sge = (int)v->init.cap.max_send_sge + 1;
	check_between_verbs_args(v, &wr, EINVAL);
	wr.num_sge = 17;
	check_between_verbs_args(v, &wr, EINVAL);
	wr.num_sge = -1;
	check_between_verbs_args(v, &wr, EINVAL);
	wr.num_sge = 2;
	wr.opcode = IBV_WR_RDMA_READ;
	check_between_verbs_args(v, &wr, EINVAL);
	wr = a_send(NULL, 2);
	check_between_verbs_args(v, &wr, EINVAL);
	wr.send_flags = IBV_SEND_INLINE;
	check_between_verbs_args(v, &wr, EINVAL);
	wr = a_send(sge, 2);
	sge[0].length = 513;
	wr.send_flags = IBV_SEND_INLINE;
	check_between_verbs_args(v, &wr, EINVAL);
	wr.send_flags = 0;
	/* Two halves of 4 GiB are no message, nor one without a payload. */
	sge[0] = sge[1] = (struct ibv_sge){ (uintptr_t)v->a.buf, 1u << 31, v->a.mr->lkey };
	wr.num_sge = 2;
	wr.opcode = IBV_WR_SEND_WITH_IMM;
	check_between_verbs_args(v, &wr, EINVAL);
	wr.opcode = IBV_WR_SEND;
	check_between_verbs_args(v, &wr, EINVAL);
}

VT_TEST(verbs_args, bad_wr_names_the_request_and_those_before_it_are_sent)
{
	struct ibv_sge sge[17];
	struct vt v;

	vt_init(&v);
	vt_up(&v);
	for (int i = 0; i < 17; i++)
		sge[i] = (struct ibv_sge){ (uintptr_t)v.a.buf, 8, v.a.mr->lkey };
	wrong_operations(&v, sge);
	wrong_pieces(&v, sge);
	vt_down(&v);
}

/* The list may end before it begins, and a message may have no octets. */
VT_TEST(verbs_args, empty_lists_and_messages)
{
	struct ibv_send_wr wr = a_send(NULL, 1), *bad = NULL;
	struct ibv_sge none = { 0 };
	struct ibv_recv_wr *rbad = NULL;
	struct vt v;

	vt_init(&v);
	vt_up(&v);
	cr_expect_eq(ibv_post_send(v.a.id->qp, NULL, &bad), 0);
	cr_expect_eq(ibv_post_recv(v.a.id->qp, NULL, &rbad), 0);
	cr_expect(!bad && !rbad);
	wr.num_sge = 0;
	for (int i = 0; i < 3; i++) {
		cr_assert_eq(vt_recv(&v.b, 7, 0, 64), 0);
		cr_expect_eq(ibv_post_send(v.a.id->qp, &wr, &bad), 0);
		vt_expect_wc(&v.a, 1, IBV_WC_SEND, IBV_WC_SUCCESS);
		vt_expect_wc(&v.b, 7, IBV_WC_RECV, IBV_WC_SUCCESS);
		wr.send_flags = IBV_SEND_INLINE;
		wr.sg_list = i ? &none : NULL;
		wr.num_sge = i;
	}
	vt_down(&v);
}

VT_TEST(verbs_args, a_full_queue_says_which_did_not_fit)
{
	struct ibv_recv_wr wr[18], *bad = NULL;
	struct vt v;

	vt_init(&v);
	vt_up(&v);
	for (int i = 0; i < 18; i++)
		wr[i] = (struct ibv_recv_wr){ .wr_id = (uint64_t)i,
					      .next = i < 17 ? &wr[i + 1] : NULL };
	cr_expect_eq(ibv_post_recv(v.b.id->qp, wr, &bad), ENOMEM);
	cr_expect_eq(bad, &wr[16]);
	for (uint64_t i = 0; i < 16; i++) {
		cr_assert_eq(vt_post(&v.a, i, IBV_WR_SEND, 0, NULL), 0);
		vt_expect_wc(&v.b, i, IBV_WC_RECV, IBV_WC_SUCCESS);
	}
	vt_down(&v);
}

static int recv_wrong(struct vt *v, struct ibv_sge *sge, int n)
{
	struct ibv_recv_wr wrong = { .wr_id = 2, .sg_list = sge, .num_sge = n },
			   first = { .wr_id = 1, .next = &wrong }, *bad = NULL;
	struct ibv_qp *qp = v->b.id->qp;
	int err = qp->srq ? ibv_post_srq_recv(qp->srq, &first, &bad)
			  : ibv_post_recv(qp, &first, &bad);

	cr_expect_eq(bad, &wrong, "%d pieces", n);
	return err;
}

static void wrong_receives(struct vt *v)
{
	struct ibv_sge sge[17];

	for (int i = 0; i < 17; i++)
		sge[i] = (struct ibv_sge){ (uintptr_t)v->b.buf, 8, v->b.mr->lkey };
	cr_expect_eq(recv_wrong(v, sge, 17), EINVAL);
	cr_expect_eq(recv_wrong(v, sge, 5), EINVAL, "more pieces than it was made for");
	cr_expect_eq(recv_wrong(v, sge, -1), EINVAL);
	cr_expect_eq(recv_wrong(v, NULL, 1), EINVAL);
}

VT_TEST(verbs_args, receives)
{
	struct ibv_srq_init_attr srq = { .attr = { 16, 4, 0 } };
	struct ibv_recv_wr wr = { .wr_id = 1 }, *bad = NULL;
	struct vt v;

	vt_init(&v);
	v.init.cap.max_send_sge = 8; /* of the other queue */
	vt_up(&v);
	wrong_receives(&v);
	vt_down(&v);
	vt_init(&v);
	vt_listen(&v);
	v.srq = ibv_create_srq(v.listen->pd, &srq);
	cr_assert_not_null(v.srq);
	vt_dial(&v);
	cr_assert_eq(rdma_connect(v.a.id, &v.connect), 0);
	vt_take_request(&v);
	cr_assert_eq(rdma_accept(v.b.id, &v.accept), 0);
	wrong_receives(&v);
	cr_expect_eq(ibv_post_recv(v.b.id->qp, &wr, &bad), EINVAL, "it has a shared queue");
	cr_expect_eq(bad, &wr);
	vt_down(&v);
}

/* ---- the extended queue ---- */

static struct ibv_cq_ex *accept_with_extended(struct vt *v)
{
	struct ibv_cq_init_attr_ex ex = { .cqe = 16, .wc_flags = IBV_WC_STANDARD_FLAGS };
	struct rdma_cm_event *e = vt_event(v->b.ch, RDMA_CM_EVENT_CONNECT_REQUEST);
	struct ibv_cq_ex *cq = ibv_create_cq_ex(e->id->verbs, &ex);
	struct ibv_qp_init_attr attr = v->init;

	cr_assert_not_null(cq);
	v->b.id = e->id;
	v->b.cq = attr.send_cq = attr.recv_cq = ibv_cq_ex_to_cq(cq);
	rdma_ack_cm_event(e);
	cr_assert_eq(rdma_create_qp(v->b.id, NULL, &attr), 0);
	v->b.mr = ibv_reg_mr(v->b.id->pd, v->b.buf, sizeof v->b.buf,
			     IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE);
	cr_assert_eq(rdma_accept(v->b.id, &v->accept), 0);
	vt_expect(v->a.ch, RDMA_CM_EVENT_ESTABLISHED);
	vt_expect(v->b.ch, RDMA_CM_EVENT_ESTABLISHED);
	return cq;
}

VT_TEST(verbs_args, an_extended_queue_reads_what_polling_returns)
{
	struct ibv_poll_cq_attr none = { 0 };
	struct ibv_sge sge;
	struct ibv_send_wr wr = a_send(&sge, 1), *bad;
	struct ibv_cq_ex *cq;
	struct vt v;

	vt_init(&v);
	vt_listen(&v);
	vt_dial(&v);
	cr_assert_eq(rdma_connect(v.a.id, &v.connect), 0);
	cq = accept_with_extended(&v);
	for (uint64_t i = 7; i < 9; i++)
		cr_assert_eq(vt_recv(&v.b, i, 0, 64), 0);
	sge = (struct ibv_sge){ (uintptr_t)v.a.buf, 24, v.a.mr->lkey };
	wr.opcode = IBV_WR_RDMA_WRITE_WITH_IMM;
	wr.imm_data = htonl(0x01020304);
	wr.wr.rdma.remote_addr = (uintptr_t)v.b.buf;
	wr.wr.rdma.rkey = v.b.mr->rkey;
	cr_assert_eq(ibv_post_send(v.a.id->qp, &wr, &bad), 0);
	vt_expect_wc(&v.a, 1, IBV_WC_RDMA_WRITE, IBV_WC_SUCCESS);
	while (ibv_start_poll(cq, &none) == ENOENT)
		;
	cr_expect_eq(cq->wr_id, 7);
	cr_expect_eq(cq->status, IBV_WC_SUCCESS);
	cr_expect_eq(ibv_wc_read_opcode(cq), IBV_WC_RECV_RDMA_WITH_IMM);
	cr_expect_eq(ibv_wc_read_byte_len(cq), 24);
	cr_expect_eq(ibv_wc_read_imm_data(cq), htonl(0x01020304));
	cr_expect_eq(ibv_wc_read_wc_flags(cq), IBV_WC_WITH_IMM);
	cr_expect_eq(ibv_wc_read_qp_num(cq), v.b.id->qp->qp_num);
	/* These are InfiniBand's. */
	cr_expect(!ibv_wc_read_vendor_err(cq) && !ibv_wc_read_src_qp(cq) && !ibv_wc_read_slid(cq) &&
		  !ibv_wc_read_sl(cq) && !ibv_wc_read_dlid_path_bits(cq));
	cr_expect_eq(ibv_next_poll(cq), ENOENT);
	ibv_end_poll(cq);
	cr_assert_eq(rdma_disconnect(v.a.id), 0);
	vt_expect(v.b.ch, RDMA_CM_EVENT_DISCONNECTED);
	while (ibv_start_poll(cq, &none) == ENOENT)
		;
	cr_expect_eq(cq->wr_id, 8);
	cr_expect_eq(cq->status, IBV_WC_WR_FLUSH_ERR);
	ibv_end_poll(cq);
	vt_down(&v);
}
