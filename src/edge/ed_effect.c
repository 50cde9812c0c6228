/* SPDX-License-Identifier: BSD-2-Clause */
/* What rules do to connections, identifiers and the device. */
#include "verbs/cm/vd_event.h"
#include "verbs/cm/vd_oob.h"
#include "edge/ed.h"
#include <errno.h>
#include <stdlib.h>

static struct vd_qp *vd_qp_of(const struct ed_qp *q)
{
	return vd_of(q->qp, struct vd_qp, qp.qp_base);
}

void ed_break(struct ed_qp *q)
{
	struct ibv_qp_attr attr = { .qp_state = IBV_QPS_ERR };

	vdi_ibv_modify_qp(q->qp, &attr, IBV_QP_STATE);
}

static void break_all(void)
{
	for (struct ed_qp *q = ed_qp_next(NULL); q; q = ed_qp_next(q))
		ed_break(q);
}

/* ---- events of rdma_cm ---- */

static bool is_failure(int event)
{
	return event == RDMA_CM_EVENT_ADDR_ERROR || event == RDMA_CM_EVENT_ROUTE_ERROR ||
	       event == RDMA_CM_EVENT_CONNECT_ERROR || event == RDMA_CM_EVENT_UNREACHABLE ||
	       event == RDMA_CM_EVENT_REJECTED;
}

/* What the drop-in itself says with these. */
static int usual_status(const struct vd_id *id, int event)
{
	switch (event) {
	case RDMA_CM_EVENT_ADDR_ERROR:
	case RDMA_CM_EVENT_ROUTE_ERROR:
		return -EHOSTUNREACH;
	case RDMA_CM_EVENT_CONNECT_ERROR:
		return -ECONNRESET;
	case RDMA_CM_EVENT_UNREACHABLE:
		return -ETIMEDOUT;
	case RDMA_CM_EVENT_REJECTED:
		return vd_is_ib(id) ? VD_IB_CONSUMER : -ECONNREFUSED;
	case RDMA_CM_EVENT_DEVICE_REMOVAL:
		return -ENODEV;
	default:
		return 0;
	}
}

/* From nobody, as one whose peer has gone meanwhile.  The lock is held. */
static void make_request_event(struct vd_id *l)
{
	struct rdma_conn_param none = { 0 };
	struct vd_id *id = vd_id_new(l->id.channel, l->id.context, l->id.ps);

	ddps_assert_held(&l->p->lock);
	if (!id)
		return;
	if (vd_id_bind_device(id)) {
		vd_id_free(id);
		return;
	}
	id->state = VD_ID_DOWN;
	id->listen_id = l;
	vd_event_post(id, l, RDMA_CM_EVENT_CONNECT_REQUEST, 0, &none);
}

/* The lock is held. */
static void tell_event(struct vd_id *id, int event, int status)
{
	ddps_assert_held(&id->p->lock);
	if (event == RDMA_CM_EVENT_CONNECT_REQUEST)
		make_request_event(id);
	else
		vd_event_post(id, NULL, (enum rdma_cm_event_type)event,
			      status ? -status : usual_status(id, event), NULL);
}

/* The lock is held, so that the identifier does not go meanwhile. */
static void tell_in(struct vd_id *id, int event, int status, uint64_t ms)
{
	struct ed_later *l = ms ? calloc(1, sizeof *l) : NULL;
	bool known;

	ddps_assert_held(&id->p->lock);
	if (!l) {
		tell_event(id, event, status);
		return;
	}
	*l = (struct ed_later){ .id = id, .event = event, .status = status, .due = ed_ms() + ms };
	ddps_lock(&ed.lock);
	known = ed_id_is_known(id); /* else it is being destroyed */
	if (known)
		STAILQ_INSERT_TAIL(&ed.later, l, link);
	ddps_unlock(&ed.lock);
	if (known)
		ed_clock_wake();
	else
		free(l);
}

void ed_event_forget(struct rdma_cm_id *ibid)
{
	struct vd_id *id = vd_of(ibid, struct vd_id, id);
	struct ed_later *next;

	ddps_lock(&ed.lock);
	while (ed.telling == id)
		pthread_cond_wait(&ed.less, &ed.lock.m);
	for (struct ed_later *l = STAILQ_FIRST(&ed.later); l; l = next) {
		next = STAILQ_NEXT(l, link);
		if (l->id != id)
			continue;
		STAILQ_REMOVE(&ed.later, l, ed_later, link);
		free(l);
	}
	ddps_unlock(&ed.lock);
}

uint64_t ed_events_due(uint64_t now)
{
	uint64_t next = UINT64_MAX;
	struct ed_later *l;

	ddps_lock(&ed.lock);
	while (ed.telling) /* one at a time: their order stays */
		pthread_cond_wait(&ed.less, &ed.lock.m);
	for (l = STAILQ_FIRST(&ed.later); l;) {
		if (l->due > now) {
			next = l->due < next ? l->due : next;
			l = STAILQ_NEXT(l, link);
			continue;
		}
		STAILQ_REMOVE(&ed.later, l, ed_later, link);
		ed.telling = l->id;
		ddps_unlock(&ed.lock);
		ddps_lock(&l->id->p->lock);
		tell_event(l->id, l->event, l->status);
		ddps_unlock(&l->id->p->lock);
		free(l);
		ddps_lock(&ed.lock);
		ed.telling = NULL;
		pthread_cond_broadcast(&ed.less);
		l = STAILQ_FIRST(&ed.later); /* it may have changed */
	}
	ddps_unlock(&ed.lock);
	return next;
}

/* The call is not made, and the event is its answer. */
static void make_instead_event(struct rdma_cm_id *ibid, const struct vf_rule *rule)
{
	struct vd_id *id = vd_of(ibid, struct vd_id, id);
	bool connects = rule->when.point >= VF_rdma_connect;

	if (connects && id->request)
		vdi_rdma_reject(ibid, NULL, 0);
	ddps_lock(&id->p->lock);
	if (connects) {
		id->state = VD_ID_DOWN;
		id->told_down = true; /* it was never up */
	}
	ddps_unlock(&id->p->lock);
	if (connects && ibid->qp) {
		struct ed_qp *q = ed_qp_of(ibid->qp);

		if (q)
			ed_break(q);
		ed_qp_done(q);
	}
}

static void make_rule_event(const struct vf_rule *rule, const struct ed_subject *s)
{
	struct vd_qp *qp = s->qp ? vd_qp_of(s->qp) : NULL;
	struct vd_id *id = s->id ? vd_of(s->id, struct vd_id, id) : NULL;
	struct vd_process *p;

	if (!id && !qp)
		return;
	if (id && is_failure(rule->value))
		make_instead_event(s->id, rule);
	p = id ? id->p : vd_process_of(qp->qp.qp_base.context);
	/* A queue pair's identifier, if it has one, may go before it: what is lent (vd_lend.c). */
	ddps_lock(&p->lock);
	id = id ? id : qp->id;
	if (id)
		tell_in(id, rule->value, rule->status, rule->ms);
	ddps_unlock(&p->lock);
}

int ed_apply(const struct vf_rule *rule, const struct ed_subject *s)
{
	if (!rule)
		return 0;
	if (rule->what == VF_FAIL)
		return rule->value;
	if (rule->what == VF_DELAY && rule->when.point != VF_COMPLETION)
		ed_nap(rule->ms);
	else
		ed_do(rule, s);
	return rule->what == VF_EVENT && s->id && is_failure(rule->value) ? ED_DONE : 0;
}

/* ---- asynchronous events ---- */

/* What it is about; NULL also if it is about the device. */
static void *element(int type, const struct ed_subject *s)
{
	union {
		void *p;
		int port;
	} port = { NULL };
	struct ibv_qp *qp = s->qp ? s->qp->qp : NULL;

	switch (type) {
	case IBV_EVENT_CQ_ERR:
		return qp ? qp->recv_cq : s->cq;
	case IBV_EVENT_SRQ_ERR:
	case IBV_EVENT_SRQ_LIMIT_REACHED:
		return qp ? qp->srq : s->srq;
	case IBV_EVENT_DEVICE_FATAL:
	case IBV_EVENT_WQ_FATAL: /* the device has no such queues */
		return NULL;
	case IBV_EVENT_PORT_ACTIVE:
	case IBV_EVENT_PORT_ERR:
	case IBV_EVENT_LID_CHANGE:
	case IBV_EVENT_PKEY_CHANGE:
	case IBV_EVENT_SM_CHANGE:
	case IBV_EVENT_CLIENT_REREGISTER:
	case IBV_EVENT_GID_CHANGE:
		port.port = 1;
		return port.p;
	default:
		return qp;
	}
}

static bool is_of_device(int type)
{
	const struct ed_subject nothing = { 0 };

	return type == IBV_EVENT_DEVICE_FATAL || element(type, &nothing);
}

bool ed_is_once(const struct vf_rule *rule)
{
	return rule->what == VF_REMOVE || (rule->what == VF_ASYNC && is_of_device(rule->value));
}

static void post_to_contexts(struct vd_process *p, enum ibv_event_type type, void *what)
{
	struct vd_context *c;

	ddps_lock(&p->lock);
	ddps_lock(&p->named_lock);
	LIST_FOREACH(c, &p->contexts, link)
		vd_async_post(&c->v.context, type, what);
	ddps_unlock(&p->named_lock);
	ddps_unlock(&p->lock);
}

static void make_async_event(int type, const struct ed_subject *s)
{
	struct vd_process *p = vd_process();
	void *what = element(type, s);
	struct ibv_context *ctx = s->qp ? s->qp->qp->context : s->ctx;

	if (!p)
		return;
	if (is_of_device(type)) {
		if (type == IBV_EVENT_PORT_ERR || type == IBV_EVENT_PORT_ACTIVE)
			__atomic_store_n(&ed.port_down, type == IBV_EVENT_PORT_ERR,
					 __ATOMIC_RELAXED);
		post_to_contexts(p, (enum ibv_event_type)type, what);
		if (type == IBV_EVENT_DEVICE_FATAL)
			break_all();
		return;
	}
	if (!ctx || (!what && type != IBV_EVENT_WQ_FATAL))
		return; /* there is no such object here */
	ddps_lock(&p->lock);
	vd_async_post(ctx, (enum ibv_event_type)type, what);
	ddps_unlock(&p->lock);
	if (s->qp && (type == IBV_EVENT_QP_FATAL || type == IBV_EVENT_QP_REQ_ERR ||
		      type == IBV_EVENT_QP_ACCESS_ERR || type == IBV_EVENT_CQ_ERR))
		ed_break(s->qp);
}

/* As if it were pulled out: everything fails from here on, and everybody is informed. */
static void remove_device(void)
{
	struct vd_process *p = vd_process();

	__atomic_store_n(&ed.removed, true, __ATOMIC_RELAXED);
	if (p)
		post_to_contexts(p, IBV_EVENT_DEVICE_FATAL, NULL);
	ed_ids_tell(RDMA_CM_EVENT_DEVICE_REMOVAL);
	break_all();
}

void ed_do(const struct vf_rule *rule, const struct ed_subject *s)
{
	switch (rule->what) {
	case VF_RESET:
		if (s->qp)
			ed_break(s->qp);
		break;
	case VF_SILENCE:
		if (s->qp) {
			ed_set_mute(s->qp, true);
			ed_silence(s->qp);
		}
		break;
	case VF_HALF_OPEN:
		if (s->qp) {
			ed_set_mute(s->qp, true);
			ed_break(s->qp);
		}
		break;
	case VF_EVENT:
		make_rule_event(rule, s);
		break;
	case VF_ASYNC:
		make_async_event(rule->value, s);
		break;
	case VF_REMOVE:
		remove_device();
		break;
	default:
		break;
	}
}
