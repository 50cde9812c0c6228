/* SPDX-License-Identifier: BSD-2-Clause */
/* What an attack from outside found in the drop-in, by its numbers: rights, and work that cannot be
 * done. */
#include "verbs/vt.h"
#include <errno.h>
#include <string.h>
#include <arpa/inet.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <unistd.h>

/* ---- 24c: a request that names what it may not is taken, and ends with the right status ---- */

enum fault { WRONG_KEY, BEYOND_THE_END, BEFORE_THE_START, OTHER_DOMAIN, NO_RIGHT, FAULTS };

struct spare {
	struct ibv_pd *pd;
	struct ibv_mr *other, *fixed;
};

static void spare_open(struct spare *s, struct vt_end *e)
{
	s->pd = ibv_alloc_pd(e->id->verbs);
	s->other = ibv_reg_mr(s->pd, e->buf, sizeof e->buf, IBV_ACCESS_LOCAL_WRITE);
	s->fixed = ibv_reg_mr(e->id->pd, e->buf, sizeof e->buf, 0);
	cr_assert(s->pd && s->other && s->fixed);
}

static void spare_close(struct spare *s)
{
	cr_expect_eq(ibv_dereg_mr(s->other), 0);
	cr_expect_eq(ibv_dereg_mr(s->fixed), 0);
	cr_expect_eq(ibv_dealloc_pd(s->pd), 0);
}

static struct ibv_sge get_verbs_attack_work_piece(const struct spare *s, const struct vt_end *e,
						  enum fault f)
{
	struct ibv_sge sge = { (uintptr_t)e->buf, 64, e->mr->lkey };

	switch (f) {
	case WRONG_KEY:
		sge.lkey = 0xdead;
		break;
	case BEYOND_THE_END:
		sge.addr += sizeof e->buf - 63;
		break;
	case BEFORE_THE_START:
		sge.addr--;
		break;
	case OTHER_DOMAIN:
		sge.lkey = s->other->lkey;
		break;
	default:
		sge.lkey = s->fixed->lkey;
	}
	return sge;
}

static void expect_error(struct vt_end *e, uint64_t wr_id, enum ibv_wc_opcode op,
			 enum ibv_wc_status status, uint32_t vendor_err)
{
	struct ibv_wc wc = vt_wc(e);

	cr_assert_eq(wc.wr_id, wr_id);
	cr_assert_eq(wc.status, status, "%s", ibv_wc_status_str(wc.status));
	cr_assert_eq(wc.opcode, op);
	cr_expect_eq(wc.vendor_err, vendor_err, "%u", wc.vendor_err);
}

static void bad_request(enum ibv_wr_opcode op, enum ibv_wc_opcode wc, enum fault f)
{
	struct ibv_send_wr wr = { .wr_id = 7, .opcode = op, .num_sge = 1 }, *bad;
	struct ibv_sge sge;
	struct spare s;
	struct vt v;

	vt_init(&v);
	vt_up(&v);
	spare_open(&s, &v.a);
	cr_assert_eq(vt_recv(&v.b, 1, 0, 64), 0);
	sge = get_verbs_attack_work_piece(&s, &v.a, f);
	wr.sg_list = &sge;
	wr.wr.rdma.remote_addr = (uintptr_t)v.b.buf;
	wr.wr.rdma.rkey = v.b.mr->rkey;
	cr_assert_eq(ibv_post_send(v.a.id->qp, &wr, &bad), 0, "operation %d, fault %d", op, f);
	expect_error(&v.a, 7, wc, IBV_WC_LOC_PROT_ERR, 1);
	vt_expect(v.a.ch, RDMA_CM_EVENT_DISCONNECTED);
	expect_error(&v.b, 1, IBV_WC_RECV, IBV_WC_WR_FLUSH_ERR, 4);
	spare_close(&s);
	vt_down(&v);
}

VT_TLS_TEST(verbs_attack, attack_24c_a_request_that_cannot_be_done_completes_with_an_error)
{
	for (enum fault f = WRONG_KEY; f < NO_RIGHT; f++) {
		bad_request(IBV_WR_SEND, IBV_WC_SEND, f);
		bad_request(IBV_WR_RDMA_WRITE, IBV_WC_RDMA_WRITE, f);
	}
	for (enum fault f = WRONG_KEY; f < FAULTS; f++)
		bad_request(IBV_WR_RDMA_READ, IBV_WC_RDMA_READ, f);
}

static void bad_receive(enum fault f, bool shared)
{
	struct ibv_srq_init_attr attr = { .attr = { .max_wr = 4, .max_sge = 1 } };
	struct ibv_recv_wr wr = { .wr_id = 9, .num_sge = 1 }, *bad;
	struct rdma_cm_id *own;
	struct ibv_sge sge;
	struct spare s;
	struct vt v;

	vt_init(&v);
	cr_assert_eq(rdma_create_id(NULL, &own, NULL, RDMA_PS_TCP), 0);
	if (shared) {
		cr_assert_eq(rdma_create_srq(own, NULL, &attr), 0);
		v.srq = own->srq;
		own->srq = NULL;
	}
	vt_up(&v);
	spare_open(&s, &v.b);
	sge = get_verbs_attack_work_piece(&s, &v.b, f);
	wr.sg_list = &sge;
	if (shared)
		cr_assert_eq(ibv_post_srq_recv(v.srq, &wr, &bad), 0, "fault %d", f);
	else
		cr_assert_eq(ibv_post_recv(v.b.id->qp, &wr, &bad), 0, "fault %d", f);
	cr_assert_eq(vt_post(&v.a, 1, IBV_WR_SEND, 64, NULL), 0);
	vt_expect_wc(&v.b, 9, IBV_WC_RECV, IBV_WC_LOC_PROT_ERR);
	vt_expect(v.b.ch, RDMA_CM_EVENT_DISCONNECTED);
	spare_close(&s);
	vt_down(&v);
	cr_assert_eq(rdma_destroy_id(own), 0);
}

VT_TLS_TEST(verbs_attack, attack_24c_a_receive_that_cannot_be_used_completes_with_an_error)
{
	for (enum fault f = WRONG_KEY; f < FAULTS; f++) {
		bad_receive(f, false);
		bad_receive(f, true);
	}
}

VT_TLS_TEST(verbs_attack, attack_24c_a_read_that_no_side_has_room_for_is_no_full_queue)
{
	struct vt v;

	vt_init(&v);
	v.connect.initiator_depth = v.accept.responder_resources = 0;
	vt_up(&v);
	cr_expect_eq(vt_post(&v.a, 2, IBV_WR_RDMA_READ, 8, &v.b), EINVAL);
	cr_expect_eq(vt_post(&v.a, 3, IBV_WR_ATOMIC_FETCH_AND_ADD, 8, &v.b), EINVAL);
	vt_down(&v);
}

/* ---- 24: vendor_err ---- */

VT_TLS_TEST(verbs_attack, attack_24_vendor_err_distinguishes_causes)
{
	struct vt v;

	vt_init(&v);
	vt_up(&v);
	cr_assert_eq(vt_recv(&v.b, 1, 0, 8), 0);
	cr_assert_eq(vt_post(&v.a, 2, IBV_WR_RDMA_READ, 8, &v.b), 0);
	expect_error(&v.a, 2, IBV_WC_RDMA_READ, IBV_WC_SUCCESS, 0);
	cr_assert_eq(vt_post(&v.a, 3, IBV_WR_SEND, 9, NULL), 0);
	expect_error(&v.b, 1, IBV_WC_RECV, IBV_WC_LOC_LEN_ERR, 2);
	vt_down(&v);
	vt_init(&v);
	vt_up(&v);
	v.b.mr->rkey++; /* as the peer gets it */
	cr_assert_eq(vt_post(&v.a, 4, IBV_WR_RDMA_READ, 8, &v.b), 0);
	expect_error(&v.a, 4, IBV_WC_RDMA_READ, IBV_WC_REM_ACCESS_ERR, 3);
	vt_down(&v);
}

/* ---- 21: rights ---- */

static int touch(struct vt *v, enum ibv_wr_opcode op, unsigned access, enum ibv_wc_status *status)
{
	struct ibv_mr *mr = ibv_reg_mr_iova2(v->b.id->pd, v->b.buf, 64, (uintptr_t)v->b.buf,
					     IBV_ACCESS_LOCAL_WRITE | access);
	struct ibv_sge sge = { (uintptr_t)v->a.buf, 8, v->a.mr->lkey };
	struct ibv_send_wr wr = { .opcode = op, .sg_list = &sge, .num_sge = 1 }, *bad;
	int err;

	cr_assert_not_null(mr);
	if (op == IBV_WR_ATOMIC_FETCH_AND_ADD) {
		wr.wr.atomic.rkey = mr->rkey;
		wr.wr.atomic.remote_addr = (uintptr_t)v->b.buf;
	} else {
		wr.wr.rdma.rkey = mr->rkey;
		wr.wr.rdma.remote_addr = (uintptr_t)v->b.buf;
	}
	err = ibv_post_send(v->a.id->qp, &wr, &bad);
	*status = vt_wc(&v->a).status;
	if (op == IBV_WR_RDMA_WRITE && !*status) { /* its completion does not say that it came */
		sge.length = 0;
		wr.opcode = IBV_WR_RDMA_READ;
		cr_assert_eq(ibv_post_send(v->a.id->qp, &wr, &bad), 0);
		*status = vt_wc(&v->a).status;
	}
	cr_expect_eq(ibv_dereg_mr(mr), 0);
	return err;
}

static void check_access_right(enum ibv_wr_opcode op, unsigned access, bool allowed)
{
	enum ibv_wc_status status;
	struct vt v;

	vt_init(&v);
	vt_up(&v);
	cr_assert_eq((uintptr_t)v.b.buf % 8, 0);
	cr_assert_eq(touch(&v, op, access, &status), 0);
	cr_expect_eq(!status, allowed, "operation %d, rights %#x: %s", op, access,
		     ibv_wc_status_str(status));
	vt_down(&v);
}

VT_TLS_TEST(verbs_attack, attack_21_each_right_allows_its_own_operation_alone)
{
	static const struct {
		enum ibv_wr_opcode op;
		unsigned right;
	} t[] = { { IBV_WR_RDMA_WRITE, IBV_ACCESS_REMOTE_WRITE },
		  { IBV_WR_RDMA_READ, IBV_ACCESS_REMOTE_READ },
		  { IBV_WR_ATOMIC_FETCH_AND_ADD, IBV_ACCESS_REMOTE_ATOMIC } };
	const unsigned all = t[0].right | t[1].right | t[2].right;

	for (int i = 0; i < 3; i++) {
		check_access_right(t[i].op, t[i].right, true);
		check_access_right(t[i].op, all & ~t[i].right, false);
	}
}

/* Both queue pairs are of one domain, as those of one program mostly are. */
VT_TLS_TEST(verbs_attack,
	    attack_21_a_send_invalidates_a_region_of_a_domain_with_several_queue_pairs)
{
	struct ibv_send_wr wr = { .wr_id = 3, .opcode = IBV_WR_SEND_WITH_INV }, *bad;
	struct ibv_mr *mr;
	struct ibv_wc wc;
	struct vt v;

	vt_init(&v);
	vt_up(&v);
	cr_assert_eq(v.a.id->pd, v.b.id->pd);
	mr = ibv_reg_mr(v.b.id->pd, v.b.buf, 64, IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE);
	cr_assert_eq(vt_recv(&v.b, 4, 64, 64), 0);
	wr.invalidate_rkey = mr->rkey;
	cr_assert_eq(ibv_post_send(v.a.id->qp, &wr, &bad), 0);
	vt_expect_wc(&v.a, 3, IBV_WC_SEND, IBV_WC_SUCCESS);
	wc = vt_wc(&v.b);
	cr_assert_eq(wc.status, IBV_WC_SUCCESS, "%s", ibv_wc_status_str(wc.status));
	cr_expect_eq(wc.wc_flags, IBV_WC_WITH_INV);
	cr_expect_eq(wc.invalidated_rkey, mr->rkey);
	/* The session goes on; the region is no longer for the peer. */
	cr_assert_eq(vt_recv(&v.b, 5, 64, 64), 0);
	cr_assert_eq(vt_post(&v.a, 6, IBV_WR_SEND, 8, NULL), 0);
	vt_expect_wc(&v.a, 6, IBV_WC_SEND, IBV_WC_SUCCESS);
	vt_expect_wc(&v.b, 5, IBV_WC_RECV, IBV_WC_SUCCESS);
	cr_assert_eq(ibv_dereg_mr(mr), 0);
	vt_down(&v);
}

/* As vt_take_request, in the domain @pd. */
static void take_request_in(struct vt *v, struct ibv_pd *pd)
{
	struct rdma_cm_event *e = vt_event(v->b.ch, RDMA_CM_EVENT_CONNECT_REQUEST);
	struct ibv_qp_init_attr attr = v->init;

	v->b.id = e->id;
	rdma_ack_cm_event(e);
	v->b.cc = ibv_create_comp_channel(v->b.id->verbs);
	v->b.cq = ibv_create_cq(v->b.id->verbs, v->cqe, &v->b, v->b.cc, 0);
	attr.send_cq = attr.recv_cq = v->b.cq;
	cr_assert_eq(rdma_create_qp(v->b.id, pd, &attr), 0, "%m");
	cr_assert_eq(rdma_accept(v->b.id, &v->accept), 0);
	vt_expect(v->a.ch, RDMA_CM_EVENT_ESTABLISHED);
	vt_expect(v->b.ch, RDMA_CM_EVENT_ESTABLISHED);
}

/* The stranger's connection ends by it, and whom the region is for goes on using it. */
VT_TLS_TEST(verbs_attack, attack_21_a_send_invalidates_no_region_of_another_domain)
{
	struct ibv_send_wr wr = { .wr_id = 3, .opcode = IBV_WR_SEND_WITH_INV }, *bad;
	struct vt stranger, v;
	struct ibv_pd *pd;

	vt_init(&stranger);
	vt_up(&stranger);
	pd = ibv_alloc_pd(stranger.b.id->verbs);
	cr_assert_not_null(pd);
	vt_init(&v);
	vt_listen(&v);
	vt_dial(&v);
	cr_assert_eq(rdma_connect(v.a.id, &v.connect), 0);
	take_request_in(&v, pd);
	v.b.mr = ibv_reg_mr(pd, v.b.buf, sizeof v.b.buf,
			    IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE);
	cr_assert_not_null(v.b.mr);

	cr_assert_eq(vt_recv(&stranger.b, 4, 64, 64), 0);
	wr.invalidate_rkey = v.b.mr->rkey;
	cr_assert_eq(ibv_post_send(stranger.a.id->qp, &wr, &bad), 0);
	vt_expect(stranger.b.ch, RDMA_CM_EVENT_DISCONNECTED);
	vt_expect(stranger.a.ch, RDMA_CM_EVENT_DISCONNECTED);

	v.a.buf[0] = 0x77;
	cr_assert_eq(vt_post(&v.a, 6, IBV_WR_RDMA_WRITE, 8, &v.b), 0);
	cr_assert_eq(vt_post(&v.a, 7, IBV_WR_RDMA_WRITE, 8, &v.b), 0);
	vt_expect_wc(&v.a, 6, IBV_WC_RDMA_WRITE, IBV_WC_SUCCESS);
	vt_expect_wc(&v.a, 7, IBV_WC_RDMA_WRITE, IBV_WC_SUCCESS);
	cr_assert_eq(vt_recv(&v.b, 8, 64, 64), 0);
	cr_assert_eq(vt_post(&v.a, 9, IBV_WR_SEND, 8, NULL), 0);
	vt_expect_wc(&v.b, 8, IBV_WC_RECV, IBV_WC_SUCCESS);
	cr_expect_eq(v.b.buf[0], 0x77);
	vt_down(&stranger);
	vt_down(&v);
	cr_expect_eq(ibv_dealloc_pd(pd), 0);
}

/* ---- attack 17: requests whose peers leave before they are answered ---- */

#define LEAVERS 50
#define TIMES	8

/* Peers that ask, and leave when they have been heard: the place of each is free again. */
static void ask_and_leave(const struct vt *v)
{
	static const char frame[] = "MPA ID Req Frame\0\1\0\0";
	const struct sockaddr *to = (const struct sockaddr *)&v->addr;
	int fd[LEAVERS], one = 1;
	char octet;

	for (int i = 0; i < LEAVERS; i++) {
		fd[i] = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
		cr_assert_eq(connect(fd[i], to, sizeof(struct sockaddr_in)), 0, "%m");
		setsockopt(fd[i], IPPROTO_TCP, TCP_NODELAY, &one, sizeof one);
		cr_assert_eq(send(fd[i], frame, 20, 0), 20);
	}
	for (int i = 0; i < LEAVERS; i++) {
		cr_assert_eq(send(fd[i], "", 1, MSG_NOSIGNAL), 1); /* too much: it is closed */
		cr_expect_leq(recv(fd[i], &octet, 1, 0), 0);
		close(fd[i]);
	}
}

Test(verbs_attack, attack_17_requests_of_peers_that_left_are_few, .timeout = 60)
{
	struct rdma_cm_event *ev;
	unsigned stale = 0;
	struct vt v;

	setenv("DDPSESS_TRANSPORT", "tcp", 1);
	vt_init(&v);
	vt_listen(&v);
	for (int i = 0; i < TIMES; i++)
		ask_and_leave(&v);
	vt_dial(&v);
	cr_assert_eq(rdma_connect(v.a.id, &v.connect), 0, "%m");
	for (;;) {
		cr_assert_eq(rdma_get_cm_event(v.b.ch, &ev), 0);
		cr_assert_eq(ev->event, RDMA_CM_EVENT_CONNECT_REQUEST);
		if (rdma_get_dst_port(ev->id) == rdma_get_src_port(v.a.id))
			break;
		v.b.id = ev->id;
		rdma_ack_cm_event(ev);
		rdma_destroy_id(v.b.id);
		stale++;
	}
	/* What is reported in one turn of the library's may be counted later. */
	cr_expect_leq(stale, 128 + 2 * LEAVERS, "%u of %u", stale, LEAVERS * TIMES);
	v.b.id = ev->id;
	rdma_ack_cm_event(ev);
	vt_equip(&v, &v.b);
	cr_assert_eq(rdma_accept(v.b.id, &v.accept), 0, "%m");
	rdma_ack_cm_event(vt_event(v.a.ch, RDMA_CM_EVENT_ESTABLISHED));
	rdma_ack_cm_event(vt_event(v.b.ch, RDMA_CM_EVENT_ESTABLISHED));
	vt_down(&v);
}
