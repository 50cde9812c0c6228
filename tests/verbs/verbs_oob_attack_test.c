/* SPDX-License-Identifier: BSD-2-Clause */
/* Strangers who have guessed the number of a queue pair that the program connects itself. */
#include "verbs/vt.h"
#include <arpa/inet.h>
#include <string.h>
#include "verbs/cm/vd_event.h"

#define STRANGER "127.0.0.9"
#define OF_ONE	 4 /* places that one address has */

struct side {
	struct vt_dev d;
	struct ibv_qp *qp;
	struct ibv_mr *mr;
	union ibv_gid gid;
	char buf[16];
};

static void make_attacked_side(struct side *s)
{
	struct ibv_qp_attr attr = { .qp_state = IBV_QPS_INIT, .port_num = 1 };
	struct ibv_qp_init_attr init;

	vt_dev_open(&s->d);
	init = vt_rc(&s->d);
	s->qp = ibv_create_qp(s->d.pd, &init);
	s->mr = ibv_reg_mr(s->d.pd, s->buf, sizeof s->buf, IBV_ACCESS_LOCAL_WRITE);
	cr_assert(s->qp && s->mr);
	cr_assert_eq(ibv_modify_qp(s->qp, &attr, IBV_QP_STATE | IBV_QP_PORT), 0);
	cr_assert_eq(ibv_query_gid(s->d.ctx, 1, 0, &s->gid), 0);
}

static void take_verbs_oob_attack_down(struct side *s)
{
	cr_expect_eq(ibv_destroy_qp(s->qp), 0);
	cr_expect_eq(ibv_dereg_mr(s->mr), 0);
	vt_dev_close(&s->d);
}

static void meet_verbs_oob_attack(struct side *s, const struct side *other)
{
	struct ibv_qp_attr attr = { .qp_state = IBV_QPS_RTR,
				    .dest_qp_num = other->qp->qp_num,
				    .ah_attr = { .is_global = 1, .port_num = 1 } };

	attr.ah_attr.grh.dgid = other->gid;
	cr_assert_eq(ibv_modify_qp(s->qp, &attr, IBV_QP_STATE | IBV_QP_AV | IBV_QP_DEST_QPN), 0);
	attr.qp_state = IBV_QPS_RTS;
	cr_assert_eq(ibv_modify_qp(s->qp, &attr, IBV_QP_STATE), 0);
}

static void put_verbs_oob_attack(uint8_t *at, uint32_t n)
{
	n = htonl(n);
	memcpy(at, &n, sizeof n);
}

/* A stranger, at an address of its own, asks for @at and says that it has number @claimed. */
static void ask_verbs_oob_attack(struct vt *v, const struct side *at, uint32_t claimed)
{
	struct sockaddr_in own = { .sin_family = AF_INET }, *to = (void *)&v->addr;
	uint8_t hello[16] = "ddpsQP1";

	inet_pton(AF_INET, STRANGER, &own.sin_addr);
	memcpy(&to->sin_addr, at->gid.raw + 12, sizeof to->sin_addr);
	to->sin_port = htons((uint16_t)at->qp->qp_num);
	put_verbs_oob_attack(hello + 8, claimed);
	put_verbs_oob_attack(hello + 12, at->qp->qp_num);
	cr_assert_eq(rdma_create_id(v->a.ch, &v->a.id, v, RDMA_PS_TCP), 0);
	cr_assert_eq(rdma_resolve_addr(v->a.id, (struct sockaddr *)&own, (struct sockaddr *)to,
				       2000),
		     0);
	vt_expect(v->a.ch, RDMA_CM_EVENT_ADDR_RESOLVED);
	cr_assert_eq(rdma_resolve_route(v->a.id, 2000), 0);
	vt_expect(v->a.ch, RDMA_CM_EVENT_ROUTE_RESOLVED);
	vt_equip(v, &v->a);
	v->connect.private_data = hello;
	v->connect.private_data_len = sizeof hello;
	cr_assert_eq(rdma_connect(v->a.id, &v->connect), 0);
}

static struct ibv_wc next_in_verbs_oob_attack(const struct side *s)
{
	struct ibv_wc wc;
	int n = 0;

	for (int i = 0; !n && i < VT_MS; i++) {
		n = ibv_poll_cq(s->d.cq, 1, &wc);
		if (!n)
			vt_readable(-1, 1);
	}
	cr_assert_eq(n, 1, "no completion came");
	return wc;
}

static void talk_verbs_oob_attack(struct side *from, struct side *to)
{
	struct ibv_sge in = { (uintptr_t)to->buf, sizeof to->buf, to->mr->lkey },
		       out = { (uintptr_t)from->buf, 6, from->mr->lkey };
	struct ibv_recv_wr recv = { .sg_list = &in, .num_sge = 1 }, *bad_recv;
	struct ibv_send_wr send = { .sg_list = &out,
				    .num_sge = 1,
				    .opcode = IBV_WR_SEND,
				    .send_flags = IBV_SEND_SIGNALED },
			   *bad;

	strcpy(from->buf, "it is");
	cr_assert_eq(ibv_post_recv(to->qp, &recv, &bad_recv), 0);
	cr_assert_eq(ibv_post_send(from->qp, &send, &bad), 0);
	cr_expect_eq(next_in_verbs_oob_attack(from).status, IBV_WC_SUCCESS);
	cr_expect_eq(next_in_verbs_oob_attack(to).status, IBV_WC_SUCCESS);
	cr_expect_str_eq(to->buf, "it is");
}

/* Of two the higher one waits: for whom, the program has not said yet. */
VT_TEST(verbs_oob, attack_27_strangers_who_came_first_hold_no_place_of_the_peers)
{
	struct vt stranger[OF_ONE + 1];
	struct rdma_event_channel *ch = rdma_create_event_channel();
	struct side a, b, *low, *high;

	make_attacked_side(&a);
	make_attacked_side(&b);
	low = a.qp->qp_num < b.qp->qp_num ? &a : &b;
	high = low == &a ? &b : &a;
	for (unsigned i = 0; i < OF_ONE + 1; i++) {
		vt_init(&stranger[i]);
		stranger[i].a.ch = ch;
		ask_verbs_oob_attack(&stranger[i], high,
				     low->qp->qp_num + i); /* the first has guessed all */
	}
	vt_expect(ch, RDMA_CM_EVENT_REJECTED); /* one too many, so all have come */
	meet_verbs_oob_attack(low, high);
	meet_verbs_oob_attack(high, low);
	talk_verbs_oob_attack(low, high);
	talk_verbs_oob_attack(high, low);
	for (unsigned i = 0; i < OF_ONE; i++)
		vt_expect(ch, RDMA_CM_EVENT_REJECTED);
	for (unsigned i = 0; i < OF_ONE + 1; i++) {
		stranger[i].a.ch = NULL;
		vt_down(&stranger[i]);
	}
	rdma_destroy_event_channel(ch);
	take_verbs_oob_attack_down(&a);
	take_verbs_oob_attack_down(&b);
}

/* With the peer's number, from another address, when the program has said who the peer is. */
VT_TEST(verbs_oob, attack_27_a_stranger_with_the_peers_number_is_not_the_peer)
{
	struct side a, b, *low, *high;
	struct vt stranger;

	make_attacked_side(&a);
	make_attacked_side(&b);
	low = a.qp->qp_num < b.qp->qp_num ? &a : &b;
	high = low == &a ? &b : &a;
	meet_verbs_oob_attack(high, low);
	vt_init(&stranger);
	stranger.a.ch = rdma_create_event_channel();
	ask_verbs_oob_attack(&stranger, high, low->qp->qp_num);
	vt_expect(stranger.a.ch, RDMA_CM_EVENT_REJECTED);
	meet_verbs_oob_attack(low, high);
	talk_verbs_oob_attack(low, high);
	vt_down(&stranger);
	take_verbs_oob_attack_down(&a);
	take_verbs_oob_attack_down(&b);
}

/* Sixteen places, four of them for one address, one for a number of it. */
Test(verbs_oob, attack_27_callers_have_places)
{
	static char request[20]; /* their places are names enough */
	struct vd_callers list = STAILQ_HEAD_INITIALIZER(list);
	unsigned n = 0;

	for (unsigned i = 0; i < 2 * OF_ONE; i++) {
		struct in_addr a = { htonl(1 + i) };

		for (unsigned k = 0; k < OF_ONE + 1; k++) {
			void *r = &request[n];
			bool in = vd_callers_add(&list, r, k, a);

			cr_expect_eq(in, k < OF_ONE && i < OF_ONE, "%u of address %u", k, i);
			n += in;
			cr_expect_not(vd_callers_add(&list, r, k, a), "one place a number");
		}
	}
	cr_expect_eq(n, 16);
	vd_callers_forget(&list, (void *)&request[19]); /* nobody's */
	cr_expect_not(vd_callers_add(&list, NULL, 9, (struct in_addr){ htonl(9) }));
	vd_callers_forget(&list, (void *)&request[5]);
	cr_expect(vd_callers_add(&list, (void *)&request[16], 9, (struct in_addr){ htonl(9) }));
	for (unsigned i = 0; i < 17; i++)
		if (i != 5)
			cr_expect_eq((void *)vd_callers_take(&list), &request[i], "in their order");
	cr_expect(STAILQ_EMPTY(&list));
}
