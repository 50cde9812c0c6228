/* SPDX-License-Identifier: BSD-2-Clause */
/* Threads of a program that are cancelled while they are within the drop-in: no lock of it stays taken. */
#include "vt.h"
#include <errno.h>
#include <poll.h>
#include <pthread.h>

static void post_verbs_cancel_send(struct vt *v)
{
	vt_post(&v->a, 1, IBV_WR_RDMA_WRITE, 4096, &v->b);
}

static void post_verbs_cancel_recv(struct vt *v)
{
	vt_recv(&v->b, 2, 0, 64);
}

static void poll_verbs_cancel_cq(struct vt *v)
{
	struct ibv_wc wc[4];

	ibv_poll_cq(v->a.cq, 4, wc);
	ibv_poll_cq(v->b.cq, 4, wc);
}

static void arm(struct vt *v)
{
	ibv_req_notify_cq(v->a.cq, 0);
}

static void use_verbs_cancel_memory(struct vt *v)
{
	static uint8_t octets[4096];
	struct ibv_mr *mr = ibv_reg_mr(v->a.id->pd, octets, sizeof octets, IBV_ACCESS_LOCAL_WRITE);

	if (mr)
		ibv_dereg_mr(mr);
}

static void make_verbs_cancel_identifier(struct vt *v)
{
	struct rdma_cm_id *id;

	if (rdma_create_id(v->a.ch, &id, NULL, RDMA_PS_TCP))
		return;
	rdma_bind_addr(id, (struct sockaddr *)&v->addr);
	rdma_listen(id, 1);
	rdma_destroy_id(id);
}

static void make_verbs_cancel_queue_pair(struct vt *v)
{
	struct ibv_qp_init_attr init = { .send_cq = v->a.cq,
					 .recv_cq = v->a.cq,
					 .qp_type = IBV_QPT_RC,
					 .cap = { 1, 1, 1, 1, 0 } };
	struct ibv_qp *qp = ibv_create_qp(v->a.id->pd, &init);

	if (qp)
		ibv_destroy_qp(qp);
}

static void query(struct vt *v)
{
	struct ibv_qp_init_attr init;
	struct ibv_qp_attr attr;

	ibv_query_qp(v->a.id->qp, &attr, IBV_QP_STATE, &init);
}

static void disconnect_verbs_cancel(struct vt *v)
{
	rdma_disconnect(v->a.id);
}

static const struct call {
	const char *name;
	void (*run)(struct vt *v);
} calls[] = {
	{ "ibv_post_send", post_verbs_cancel_send },
	{ "ibv_post_recv", post_verbs_cancel_recv },
	{ "ibv_poll_cq", poll_verbs_cancel_cq },
	{ "ibv_req_notify_cq", arm },
	{ "ibv_reg_mr, ibv_dereg_mr", use_verbs_cancel_memory },
	{ "ibv_query_qp", query },
	{ "rdma_disconnect", disconnect_verbs_cancel },
};

struct cancelled {
	struct vt *v;
	const struct call *call;
};

/* The request to cancel stands when the call begins: the thread ends where it may first. */
static void *run_verbs_cancel_cancelled(void *arg)
{
	const struct cancelled *c = arg;

	pthread_cancel(pthread_self());
	c->call->run(c->v);
	pthread_testcancel();
	return NULL;
}

VT_TLS_TEST(verbs_cancel, contact_03_no_lock_stays_taken)
{
	struct vt v;

	vt_init(&v);
	vt_up(&v);
	for (size_t i = 0; i < sizeof calls / sizeof *calls; i++) {
		struct cancelled c = { &v, &calls[i] };
		void *how;
		pthread_t t;

		cr_assert_eq(pthread_create(&t, NULL, run_verbs_cancel_cancelled, &c), 0);
		cr_assert_eq(pthread_join(t, &how), 0);
		cr_expect_eq(how, PTHREAD_CANCELED, "%s", calls[i].name);
		/* each of these would wait for ever for a lock that nobody gives back */
		for (size_t k = 0; k + 1 < sizeof calls / sizeof *calls; k++)
			calls[k].run(&v);
		make_verbs_cancel_queue_pair(&v);
		make_verbs_cancel_identifier(&v);
	}
	vt_expect(v.a.ch, RDMA_CM_EVENT_DISCONNECTED);
	vt_down(&v);
}
