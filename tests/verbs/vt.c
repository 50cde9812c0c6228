/* SPDX-License-Identifier: BSD-2-Clause */
/* Two ends of a connection of rdma_cm in one process. */
#include "verbs/vt.h"
#include <arpa/inet.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>

#define ACCESS                                                                                     \
	(IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ |               \
	 IBV_ACCESS_REMOTE_ATOMIC)

void vt_init(struct vt *v)
{
	struct sockaddr_in *a4 = (struct sockaddr_in *)&v->addr;

	memset(v, 0, sizeof *v);
	a4->sin_family = AF_INET;
	a4->sin_addr.s_addr = htonl(INADDR_LOOPBACK);
	v->init = (struct ibv_qp_init_attr){ .cap = { 16, 16, 4, 4, 0 },
					     .qp_type = IBV_QPT_RC,
					     .sq_sig_all = 1 };
	v->cqe = 64;
	v->access = ACCESS;
	v->connect = v->accept =
		(struct rdma_conn_param){ .responder_resources = 4, .initiator_depth = 4 };
}

bool vt_readable(int fd, int ms)
{
	struct pollfd p = { fd, POLLIN, 0 };

	return poll(&p, 1, ms) == 1;
}

struct rdma_cm_event *vt_event(struct rdma_event_channel *ch, enum rdma_cm_event_type type)
{
	struct rdma_cm_event *e;

	cr_assert(vt_readable(ch->fd, VT_MS), "no %s came", rdma_event_str(type));
	cr_assert_eq(rdma_get_cm_event(ch, &e), 0);
	cr_assert_eq(e->event, type, "%s (%d) came instead of %s", rdma_event_str(e->event),
		     e->status, rdma_event_str(type));
	return e;
}

void vt_expect(struct rdma_event_channel *ch, enum rdma_cm_event_type type)
{
	cr_assert_eq(rdma_ack_cm_event(vt_event(ch, type)), 0);
}

uint16_t vt_port(const struct vt *v)
{
	return ntohs(rdma_get_src_port(v->listen));
}

void vt_listen(struct vt *v)
{
	if (!v->b.ch)
		v->b.ch = rdma_create_event_channel();
	cr_assert_not_null(v->b.ch);
	cr_assert_eq(rdma_create_id(v->b.ch, &v->listen, v, RDMA_PS_TCP), 0);
	cr_assert_eq(rdma_bind_addr(v->listen, (struct sockaddr *)&v->addr), 0);
	cr_assert_eq(rdma_listen(v->listen, 16), 0, "%m");
	/* Both families have the port at the same place. */
	((struct sockaddr_in *)&v->addr)->sin_port = rdma_get_src_port(v->listen);
	cr_assert_neq(vt_port(v), 0);
}

void vt_equip(struct vt *v, struct vt_end *e)
{
	struct ibv_qp_init_attr attr = v->init;

	e->cc = ibv_create_comp_channel(e->id->verbs);
	cr_assert_not_null(e->cc);
	e->cq = ibv_create_cq(e->id->verbs, v->cqe, e, e->cc, 0);
	cr_assert_not_null(e->cq);
	attr.send_cq = attr.recv_cq = e->cq;
	attr.qp_context = e;
	attr.srq = e == &v->b ? v->srq : NULL;
	cr_assert_eq(rdma_create_qp(e->id, NULL, &attr), 0, "%m");
	e->mr = ibv_reg_mr(e->id->pd, e->buf, sizeof e->buf, v->access);
	cr_assert_not_null(e->mr);
}

void vt_dial(struct vt *v)
{
	if (!v->a.ch)
		v->a.ch = rdma_create_event_channel();
	cr_assert_eq(rdma_create_id(v->a.ch, &v->a.id, v, RDMA_PS_TCP), 0);
	cr_assert_eq(rdma_resolve_addr(v->a.id, NULL, (struct sockaddr *)&v->addr, 2000), 0);
	vt_expect(v->a.ch, RDMA_CM_EVENT_ADDR_RESOLVED);
	cr_assert_eq(rdma_resolve_route(v->a.id, 2000), 0);
	vt_expect(v->a.ch, RDMA_CM_EVENT_ROUTE_RESOLVED);
	vt_equip(v, &v->a);
}

void vt_take_request(struct vt *v)
{
	struct rdma_cm_event *e = vt_event(v->b.ch, RDMA_CM_EVENT_CONNECT_REQUEST);

	cr_assert_eq(e->listen_id, v->listen);
	v->b.id = e->id;
	rdma_ack_cm_event(e);
	vt_equip(v, &v->b);
}

void vt_connect(struct vt *v)
{
	vt_dial(v);
	cr_assert_eq(rdma_connect(v->a.id, &v->connect), 0);
	vt_take_request(v);
	cr_assert_eq(rdma_accept(v->b.id, &v->accept), 0);
	vt_expect(v->a.ch, RDMA_CM_EVENT_ESTABLISHED);
	vt_expect(v->b.ch, RDMA_CM_EVENT_ESTABLISHED);
}

void vt_up(struct vt *v)
{
	vt_listen(v);
	vt_connect(v);
}

void vt_end_down(struct vt_end *e)
{
	if (e->id && e->id->qp)
		rdma_destroy_qp(e->id);
	if (e->mr)
		cr_assert_eq(ibv_dereg_mr(e->mr), 0);
	if (e->cq)
		cr_assert_eq(ibv_destroy_cq(e->cq), 0);
	if (e->cc)
		cr_assert_eq(ibv_destroy_comp_channel(e->cc), 0);
	if (e->id)
		cr_assert_eq(rdma_destroy_id(e->id), 0);
	e->id = NULL;
	e->mr = NULL;
	e->cq = NULL;
	e->cc = NULL;
}

void vt_down(struct vt *v)
{
	vt_end_down(&v->a);
	vt_end_down(&v->b);
	if (v->srq)
		cr_assert_eq(ibv_destroy_srq(v->srq), 0);
	if (v->listen)
		cr_assert_eq(rdma_destroy_id(v->listen), 0);
	if (v->a.ch)
		rdma_destroy_event_channel(v->a.ch);
	if (v->b.ch)
		rdma_destroy_event_channel(v->b.ch);
}

struct ibv_wc vt_wc(struct vt_end *e)
{
	struct ibv_wc wc;

	while (!ibv_poll_cq(e->cq, 1, &wc)) {
		struct ibv_cq *cq;
		void *user;

		cr_assert_eq(ibv_req_notify_cq(e->cq, 0), 0);
		cr_assert(vt_readable(e->cc->fd, VT_MS), "no completion came");
		cr_assert_eq(ibv_get_cq_event(e->cc, &cq, &user), 0);
		cr_assert_eq(user, e);
		ibv_ack_cq_events(cq, 1);
	}
	return wc;
}

void vt_expect_wc(struct vt_end *e, uint64_t wr_id, enum ibv_wc_opcode op,
		  enum ibv_wc_status status)
{
	struct ibv_wc wc = vt_wc(e);

	cr_assert_eq(wc.wr_id, wr_id, "request %llu instead of %llu", (unsigned long long)wc.wr_id,
		     (unsigned long long)wr_id);
	cr_assert_eq(wc.status, status, "%s", ibv_wc_status_str(wc.status));
	cr_assert_eq(wc.opcode, op);
	cr_assert_eq(wc.qp_num, e->id->qp->qp_num);
}

int vt_recv(struct vt_end *e, uint64_t wr_id, size_t off, uint32_t len)
{
	struct ibv_sge sge = { (uintptr_t)(e->buf + off), len, e->mr->lkey };
	struct ibv_recv_wr wr = { .wr_id = wr_id, .sg_list = &sge, .num_sge = 1 }, *bad;

	return ibv_post_recv(e->id->qp, &wr, &bad);
}

int vt_post(struct vt_end *e, uint64_t wr_id, enum ibv_wr_opcode op, uint32_t len,
	    const struct vt_end *peer)
{
	struct ibv_sge sge = { (uintptr_t)e->buf, len, e->mr->lkey };
	struct ibv_send_wr wr = { .wr_id = wr_id,
				  .opcode = op,
				  .sg_list = &sge,
				  .num_sge = 1,
				  .send_flags = IBV_SEND_SIGNALED },
			   *bad;

	if (peer) {
		wr.wr.rdma.remote_addr = (uintptr_t)peer->buf;
		wr.wr.rdma.rkey = peer->mr->rkey;
	}
	return ibv_post_send(e->id->qp, &wr, &bad);
}

struct ibv_async_event vt_async(struct ibv_context *ctx, enum ibv_event_type type)
{
	struct ibv_async_event e;

	cr_assert(vt_readable(ctx->async_fd, VT_MS), "no event: %s", ibv_event_type_str(type));
	cr_assert_eq(ibv_get_async_event(ctx, &e), 0);
	cr_assert_eq(e.event_type, type, "%s instead of %s", ibv_event_type_str(e.event_type),
		     ibv_event_type_str(type));
	return e;
}

void vt_dev_open(struct vt_dev *d)
{
	struct ibv_device **list = ibv_get_device_list(NULL);

	d->ctx = ibv_open_device(list[0]);
	ibv_free_device_list(list);
	d->pd = ibv_alloc_pd(d->ctx);
	d->cq = ibv_create_cq(d->ctx, 16, NULL, NULL, 0);
	cr_assert(d->pd && d->cq);
	cr_assert_eq(ibv_query_device(d->ctx, &d->attr), 0);
}

void vt_dev_close(struct vt_dev *d)
{
	cr_expect_eq(ibv_destroy_cq(d->cq), 0);
	cr_expect_eq(ibv_dealloc_pd(d->pd), 0);
	cr_expect_eq(ibv_close_device(d->ctx), 0);
}

struct ibv_qp_init_attr vt_rc(const struct vt_dev *d)
{
	return (struct ibv_qp_init_attr){ .send_cq = d->cq,
					  .recv_cq = d->cq,
					  .qp_type = IBV_QPT_RC,
					  .cap = { 4, 4, 2, 2, 64 },
					  .sq_sig_all = 1 };
}
