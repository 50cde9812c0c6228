/* SPDX-License-Identifier: BSD-2-Clause */
/* The calls of librdmacm that rules can name, and the identifiers that the program knows. */
#include "edge/ed.h"
#include <errno.h>
#include <stdlib.h>

struct ed_id {
	LIST_ENTRY(ed_id) link;
	struct vd_id *id;
};

/* ---- identifiers ---- */

static void id_new(struct rdma_cm_id *id)
{
	struct ed_id *i = calloc(1, sizeof *i);

	if (!i)
		return; /* it is not informed of the device's end */
	i->id = vd_id_of(id);
	ddps_lock(&ed.lock);
	LIST_INSERT_HEAD(&ed.ids, i, link);
	ddps_unlock(&ed.lock);
}

bool ed_id_is_known(const struct vd_id *id)
{
	const struct ed_id *i;

	ddps_assert_held(&ed.lock);
	LIST_FOREACH(i, &ed.ids, link)
		if (i->id == id)
			break;
	return i;
}

static void id_gone(struct rdma_cm_id *id)
{
	struct ed_id *i;

	ddps_lock(&ed.lock);
	LIST_FOREACH(i, &ed.ids, link)
		if (&i->id->id == id)
			break;
	if (i)
		LIST_REMOVE(i, link);
	ddps_unlock(&ed.lock);
	free(i);
	ed_event_forget(id);
}

void ed_ids_tell(int event)
{
	struct ed_id *i;

	ddps_lock(&ed.lock);
	LIST_FOREACH(i, &ed.ids, link) {
		struct ed_later *l = calloc(1, sizeof *l);

		if (!l)
			break;
		*l = (struct ed_later){ .id = i->id, .event = event };
		STAILQ_INSERT_HEAD(&ed.later, l, link);
	}
	ddps_unlock(&ed.lock);
	ed_events_due(ed_ms()); /* before the ends of the connections, which follow */
}

/* Before the queue pair goes with the identifier's. */
static void qp_gone(struct rdma_cm_id *id)
{
	if (id->qp && ck_on())
		ck_unpolled(id->qp);
	if (id->qp)
		ed_qp_gone(id->qp);
}

/* ---- calls ---- */

static int ask_about_id(enum vf_point point, struct rdma_cm_id *id)
{
	struct ed_subject s = { .id = id, .opcode = VF_NOT_SAID };
	int err;

	if (!ed_on())
		return 0;
	s.ctx = id ? id->verbs : NULL;
	s.qp = id ? ed_qp_of(id->qp) : NULL;
	err = ed_call(point, &s);
	ed_qp_done(s.qp);
	return err;
}

/* The event stands for what the call would have done; whoever waits for one gets it. */
static int answer_instead(int err, struct rdma_cm_id *id)
{
	return err == ED_DONE ? vd_sync(vd_id_of(id), 0) : vd_fail(err);
}

#define CALL(name, params, args)                                                                   \
	VD_API int name params                                                                     \
	{                                                                                          \
		int err = ask_about_id(VF_##name, id);                                             \
                                                                                                   \
		return err ? answer_instead(err, id) : vdi_##name args;                            \
	}

CALL(rdma_bind_addr, (struct rdma_cm_id * id, struct sockaddr *addr), (id, addr))
CALL(rdma_listen, (struct rdma_cm_id * id, int backlog), (id, backlog))
CALL(rdma_resolve_route, (struct rdma_cm_id * id, int timeout_ms), (id, timeout_ms))

VD_API int rdma_connect(struct rdma_cm_id *id, struct rdma_conn_param *conn)
{
	struct rdma_conn_param can;
	int err = ask_about_id(VF_rdma_connect, id);

	err = err ? err : ed_check_conn(id, conn);
	if (err)
		return answer_instead(err, id);
	err = vdi_rdma_connect(id, ed_clamp(id, conn, &can));
	ed_rnr_begins();
	return err;
}

VD_API int rdma_accept(struct rdma_cm_id *id, struct rdma_conn_param *conn)
{
	struct rdma_conn_param can;
	int err = ask_about_id(VF_rdma_accept, id);

	err = err ? err : ed_check_conn(id, conn);
	if (err)
		return answer_instead(err, id);
	err = vdi_rdma_accept(id, ed_clamp(id, conn, &can));
	ed_rnr_begins();
	return err;
}

CALL(rdma_reject, (struct rdma_cm_id * id, const void *data, uint8_t len), (id, data, len))
CALL(rdma_establish, (struct rdma_cm_id * id), (id))

/* Rules may name the peer, which is known from here on. */
VD_API int rdma_resolve_addr(struct rdma_cm_id *id, struct sockaddr *src, struct sockaddr *dst,
			     int timeout_ms)
{
	int err;

	if (ed_on() && dst && (dst->sa_family == AF_INET || dst->sa_family == AF_INET6))
		memcpy(&id->route.addr.dst_storage, dst, vd_sa_len(dst));
	err = ask_about_id(VF_rdma_resolve_addr, id);
	return err ? answer_instead(err, id) : vdi_rdma_resolve_addr(id, src, dst, timeout_ms);
}

/* Whoever disconnects wants an end: a connection that fell silent gets one. */
VD_API int rdma_disconnect(struct rdma_cm_id *id)
{
	int err = ask_about_id(VF_rdma_disconnect, id);
	struct ed_qp *q = ed_on() ? ed_qp_of(id->qp) : NULL;

	if (q)
		ed_set_mute(q, false);
	ed_qp_done(q);
	return err ? answer_instead(err, id) : vdi_rdma_disconnect(id);
}

VD_API struct rdma_event_channel *rdma_create_event_channel(void)
{
	int err = ask_about_id(VF_rdma_create_event_channel, NULL);

	if (!err)
		return vdi_rdma_create_event_channel();
	errno = err;
	return NULL;
}

VD_API int rdma_create_id(struct rdma_event_channel *ch, struct rdma_cm_id **out, void *context,
			  enum rdma_port_space ps)
{
	int err = ask_about_id(VF_rdma_create_id, NULL);

	err = err ? vd_fail(err) : vdi_rdma_create_id(ch, out, context, ps);
	if (!err && ed_on())
		id_new(*out);
	return err;
}

VD_API int rdma_destroy_id(struct rdma_cm_id *id)
{
	if (ed_on())
		id_gone(id);
	return vdi_rdma_destroy_id(id);
}

/* An identifier that has no device yet gets it here, since its limits are those that count. */
int ed_make_id_qp(struct rdma_cm_id *id, struct ibv_pd *pd, struct ibv_qp_init_attr *attr)
{
	const bool srq = attr->srq || id->srq;
	int err;

	if (ck_on())
		ck_qp_asked(&attr->cap, srq);
	if (vd_id_bind_device(vd_id_of(id)))
		return -1;
	err = ed_check_qp(id->verbs, &attr->cap, attr->qp_type, srq);
	err = err ? err : ed_take(id->verbs, VP_MAX_QP);
	if (err)
		return vd_fail(err);
	if (vdi_rdma_create_qp(id, pd, attr)) {
		ed_give(id->verbs, VP_MAX_QP);
		return -1;
	}
	if (ed_profiled())
		ed_granted(id->qp, &attr->cap);
	if (ed_on())
		ed_qp_new(id->qp);
	return 0;
}

VD_API int rdma_create_qp(struct rdma_cm_id *id, struct ibv_pd *pd, struct ibv_qp_init_attr *attr)
{
	int err = ask_about_id(VF_rdma_create_qp, id);

	return err ? answer_instead(err, id) : vd_front.create_id_qp(id, pd, attr);
}

VD_API int rdma_create_qp_ex(struct rdma_cm_id *id, struct ibv_qp_init_attr_ex *attr)
{
	int err = ask_about_id(VF_rdma_create_qp, id);

	return err ? answer_instead(err, id) : vdi_rdma_create_qp_ex(id, attr);
}

VD_API void rdma_destroy_qp(struct rdma_cm_id *id)
{
	if (ed_on())
		qp_gone(id);
	if (id->qp)
		ed_give(id->verbs, VP_MAX_QP);
	vdi_rdma_destroy_qp(id);
}

VD_API int rdma_create_ep(struct rdma_cm_id **out, struct rdma_addrinfo *ai, struct ibv_pd *pd,
			  struct ibv_qp_init_attr *attr)
{
	int err = ask_about_id(VF_rdma_create_ep, NULL);

	err = err ? vd_fail(err) : vdi_rdma_create_ep(out, ai, pd, attr);
	if (!err && ed_on())
		id_new(*out);
	return err;
}

VD_API void rdma_destroy_ep(struct rdma_cm_id *id)
{
	if (ed_on()) {
		qp_gone(id);
		id_gone(id);
	}
	if (id->qp)
		ed_give(id->verbs, VP_MAX_QP);
	vdi_rdma_destroy_ep(id);
}

VD_API int rdma_get_request(struct rdma_cm_id *listen, struct rdma_cm_id **out)
{
	int err = ask_about_id(VF_rdma_get_request, listen);

	err = err ? vd_fail(err) : vdi_rdma_get_request(listen, out);
	if (!err && ed_on())
		id_new(*out);
	return err;
}

/* A connection that fell silent does not tell its end. */
static bool is_mute(const struct rdma_cm_event *e)
{
	struct vd_id *id = vd_of(e->id, struct vd_id, id);
	struct ed_qp *q = NULL;
	bool mute;

	if (e->event != RDMA_CM_EVENT_DISCONNECTED)
		return false;
	/* Another thread may just destroy the queue pair: its edge first, then itself. */
	ddps_lock(&id->p->lock);
	if (id->qp)
		q = ed_qp_of(&id->qp->qp.qp_base);
	ddps_unlock(&id->p->lock);
	mute = q && ed_is_mute(q);
	ed_qp_done(q);
	return mute;
}

VD_API int rdma_get_cm_event(struct rdma_event_channel *ch, struct rdma_cm_event **event)
{
	int err = ask_about_id(VF_rdma_get_cm_event, NULL);

	if (err)
		return vd_fail(err);
	for (;;) {
		err = vdi_rdma_get_cm_event(ch, event);
		if (err || !ed_on() || !is_mute(*event))
			break;
		rdma_ack_cm_event(*event);
	}
	if (!err && ed_on() && (*event)->event == RDMA_CM_EVENT_CONNECT_REQUEST)
		id_new((*event)->id);
	if (!err && (*event)->event == RDMA_CM_EVENT_ESTABLISHED)
		ed_rnr_begins();
	return err;
}

VD_API int rdma_getaddrinfo(const char *node, const char *service,
			    const struct rdma_addrinfo *hints, struct rdma_addrinfo **res)
{
	int err = ask_about_id(VF_rdma_getaddrinfo, NULL);

	return err ? vd_fail(err) : vdi_rdma_getaddrinfo(node, service, hints, res);
}
