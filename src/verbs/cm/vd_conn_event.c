/* SPDX-License-Identifier: BSD-2-Clause */
/* What the library says of sessions and listeners, as events of rdma_cm and states of queue pairs. */
#include "verbs/ib/vd_qp.h"
#include "verbs/cm/vd_event.h"
#include "verbs/cm/vd_oob.h"
#include "verbs/vd_why.h"
#include <errno.h>
#include <stdlib.h>
#include <string.h>

static void fill_conn(const struct ddps_event *ev, struct rdma_conn_param *c)
{
	/* The peer's view: what it reads at most is what this side has to answer. */
	uint16_t ird = ev->info.enhanced ? ev->info.peer_ird : VD_IRD;
	uint16_t ord = ev->info.enhanced ? ev->info.peer_ord : VD_IRD;

	memset(c, 0, sizeof *c);
	c->responder_resources = (uint8_t)vd_reads(ord);
	c->initiator_depth = (uint8_t)vd_reads(ird);
	c->private_data = ev->private_data;
	c->private_data_len = (uint8_t)(ev->private_data_len > 255 ? 255 : ev->private_data_len);
}

static void take_conn_request(struct vd_process *p, const struct ddps_event *ev)
{
	struct vd_id *l = ev->user, *id;
	struct rdma_conn_param conn;
	uint8_t pd[256];

	if (l->oob) {
		vd_oob_request(l->oob, ev);
		return;
	}
	id = vd_id_new(l->id.channel, l->id.context, l->id.ps);
	if (id) /* where it came to says which device it is */
		vd_sockaddr(&ev->info.local_addr, &id->id.route.addr.src_storage);
	if (!id || vd_id_bind_device(id)) {
		ddps_reject(ev->request, NULL, 0);
		free(id);
		return;
	}
	id->state = VD_ID_REQUEST;
	id->request = ev->request;
	id->listen_id = l;
	id->peer_ird = ev->info.peer_ird;
	id->peer_ord = ev->info.peer_ord;
	vd_sockaddr(&ev->info.peer_addr, &id->id.route.addr.dst_storage);
	vd_request_note(p, id);
	fill_conn(ev, &conn);
	vd_ib_pad(id, &conn, VD_IB_REQ_PD, pd);
	if (vd_event_post(id, l, RDMA_CM_EVENT_CONNECT_REQUEST, 0, &conn) != ENOMEM)
		return;
	vd_request_forget(p, id); /* nobody would answer it */
	ddps_reject(ev->request, NULL, 0);
	vd_id_free(id);
}

static void request_gone(struct vd_process *p, const struct ddps_event *ev)
{
	struct vd_id *id;

	LIST_FOREACH(id, &p->requests, request_link)
		if (id->request == ev->request)
			break;
	if (!id) {
		vd_oob_gone(p, ev->request);
		return;
	}
	vd_request_forget(p, id);
	id->request = NULL;
	id->state = VD_ID_DOWN;
	vd_event_limit_stale(id);
}

static void take_conn_failed(struct vd_id *id, const struct ddps_event *ev)
{
	bool refused = ev->error.code == DDPS_E_REFUSED || ev->error.code == DDPS_E_RESET;
	bool late = ev->error.code == DDPS_E_TIMEDOUT;
	/* It has accepted: nobody can refuse now, except by InfiniBand, where a third message is to come. */
	bool passive = id->state == VD_ID_ACCEPTING && !vd_is_ib(id);
	enum rdma_cm_event_type type = passive	 ? RDMA_CM_EVENT_CONNECT_ERROR
				       : refused ? RDMA_CM_EVENT_REJECTED
				       : late	 ? RDMA_CM_EVENT_UNREACHABLE
						 : RDMA_CM_EVENT_CONNECT_ERROR;
	int status = -(ev->error.sys_errno ? ev->error.sys_errno : vd_errno(ev->error.code));

	id->state = VD_ID_DOWN;
	if (type == RDMA_CM_EVENT_REJECTED &&
	    vd_is_ib(id)) /* the end of its program refuses, too */
		status = ev->error.code == DDPS_E_REFUSED ? VD_IB_NO_SERVICE : VD_IB_CONSUMER;
	vd_event_tell(id, &id->answer, type, status, NULL);
}

static void take_conn_rejected(struct vd_id *id, const struct ddps_event *ev)
{
	struct rdma_conn_param conn;
	uint8_t pd[256];

	fill_conn(ev, &conn);
	vd_ib_pad(id, &conn, VD_IB_REJ_PD, pd);
	vd_event_tell(id, &id->answer, RDMA_CM_EVENT_REJECTED,
		      vd_is_ib(id) ? VD_IB_CONSUMER : -ECONNREFUSED, &conn);
}

/* Whether the program has a word to say first, rdma_establish: where there is no queue pair; on
 * InfiniBand, where the identifier does not have it. */
static bool is_answer_due(const struct vd_qp *qp)
{
	return qp == qp->id->control ||
	       (qp->lent && !qp->id->id.qp && vd_is_roce(qp->qp.qp_base.context));
}

static void take_conn_established(struct vd_qp *qp, const struct ddps_event *ev)
{
	struct rdma_conn_param conn;
	uint8_t pd[256];

	if (qp->tx && ev->ep != qp->tx)
		return; /* of the two ends of one that is its own peer this one does not send */
	ddps_lock(&qp->lock);
	qp->phase = VD_QP_UP;
	vd_why_again(qp);
	if (!vd_later_waits(qp))
		vd_later_flush(qp);
	/* Where the rules bind, the program moves it itself, with all that belongs to it. */
	if (!vd_rules_bind(qp) && qp->qp.qp_base.state < IBV_QPS_RTS)
		qp->qp.qp_base.state = IBV_QPS_RTS;
	ddps_unlock(&qp->lock);
	vd_oob_reads(qp);
	if (!qp->id)
		return;
	qp->id->state = VD_ID_UP;
	vd_unreserve(qp->id);
	vd_sockaddr(&ev->info.local_addr, &qp->id->id.route.addr.src_storage);
	fill_conn(ev, &conn);
	if (ev->info.initiator) /* the other side is informed that the answer has come, no more */
		vd_ib_pad(qp->id, &conn, VD_IB_REP_PD, pd);
	vd_event_tell(qp->id, &qp->id->answer,
		      ev->info.initiator && is_answer_due(qp) ? RDMA_CM_EVENT_CONNECT_RESPONSE
							      : RDMA_CM_EVENT_ESTABLISHED,
		      0, &conn);
}

/* The layers and types of a Terminate for what a peer may not touch [5040 4.8]. */
static bool access_error(const struct ddps_error *e)
{
	return e->has_triple && ((e->triple.layer == 0 && e->triple.etype == 1) ||
				 (e->triple.layer == 1 && e->triple.etype == 1));
}

static void take_conn_terminated(struct vd_qp *qp, const struct ddps_event *ev)
{
	struct ibv_qp *q = &qp->qp.qp_base;
	struct ddps_ep_stats st = { .struct_size = sizeof st };
	bool ours = !ev->error.by_peer;

	ddps_ep_stats(qp->ep, &st);
	vd_why_ended(qp, ev, ours && st.no_buffer);
	if (ours && st.cq_overflow)
		vd_async_overflow(q);
	vd_async_tell(q->context,
		      ours && access_error(&ev->error) ? IBV_EVENT_QP_ACCESS_ERR
						       : IBV_EVENT_QP_FATAL,
		      q, &qp->fatal);
}

/* There is no identifier that could be informed; a program that has ended it itself need not be. */
static void oob_failed(struct vd_qp *qp, const struct ddps_event *ev, bool by_program)
{
	if (!qp->oob || qp->lent)
		return;
	vd_oob_release(qp);
	if (by_program)
		return;
	vd_why_ended(qp, ev, false);
	vd_async_tell(qp->qp.qp_base.context, IBV_EVENT_QP_FATAL, &qp->qp.qp_base, &qp->fatal);
}

static void session_event(struct vd_process *p, struct vd_qp *qp, const struct ddps_event *ev)
{
	const bool by_program = qp->closing || qp->phase == VD_QP_ERROR;

	switch (ev->type) {
	case DDPS_EV_ESTABLISHED:
		take_conn_established(qp, ev);
		return;
	case DDPS_EV_REJECTED:
	case DDPS_EV_FAILED:
		if (!by_program && ev->type == DDPS_EV_FAILED)
			vd_why_failed(qp, ev);
		vd_qp_ended(qp);
		oob_failed(qp, ev, by_program);
		if (qp->id && ev->type == DDPS_EV_REJECTED)
			take_conn_rejected(qp->id, ev);
		else if (qp->id)
			take_conn_failed(qp->id, ev);
		return;
	case DDPS_EV_PEER_CLOSED:
		vd_qp_close(qp);
		if (qp->id)
			vd_down(p, qp->id, false);
		return;
	case DDPS_EV_PEER_CLOSING: /* the queue pair stays: receives may be posted yet */
		if (qp->id)
			vd_down(p, qp->id, false);
		return;
	case DDPS_EV_CLOSED:
		vd_fault_tell(p, &ev->error);
		if (!by_program)
			vd_why_lost(qp, ev);
		vd_qp_ended(qp);
		if (ev->error.code || ev->error.has_triple)
			vd_oob_release(qp);
		if (qp->id)
			vd_down(p, qp->id, by_program);
		return;
	case DDPS_EV_TERMINATED: /* the end follows */
		take_conn_terminated(qp, ev);
		return;
	default:
		return;
	}
}

void vd_conn_event(struct vd_process *p, const struct ddps_event *ev)
{
	struct vd_id *l;

	ddps_assert_held(&p->lock);
	switch (ev->type) {
	case DDPS_EV_CONNECT_REQUEST:
		take_conn_request(p, ev);
		return;
	case DDPS_EV_REQUEST_GONE:
		request_gone(p, ev);
		return;
	case DDPS_EV_LISTENER_FAILED:
		l = ev->user;
		vd_event_tell(l, &l->end, RDMA_CM_EVENT_DEVICE_REMOVAL, -ENODEV, NULL);
		return;
	case DDPS_EV_SRQ_LIMIT:
		vd_srq_low(ev->user);
		return;
	default:
		if (ev->user)
			session_event(p, ev->user, ev);
	}
}
