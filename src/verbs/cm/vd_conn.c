/* SPDX-License-Identifier: BSD-2-Clause */
/* Connections of rdma_cm: sessions of the library, as the program asks for them. */
#include "verbs/ib/vd_qp.h"
#include "verbs/cm/vd_event.h"
#include "verbs/cm/vd_oob.h"
#include "verbs/ud/vd_ud.h"
#include <errno.h>

#define NUDGE_MS 100
/* With other devices a disconnect waits for nobody. */
#define CLOSE_MS 2000
/* A program may take long until it accepts, and one that is refused an answer here may not bear it:
 * perftest fills its buffers first, and a client of it that gets UNREACHABLE crashes.  The
 * connection managers of InfiniBand go on asking for about as long. */
#define SETUP_MS 60000

void vd_conn_param(const struct vd_process *p, const struct rdma_conn_param *conn,
		   struct ddps_conn_param *to)
{
	ddps_conn_param_init(to);
	to->crc = p->cfg.crc;
	to->shm = p->cfg.shm;
	to->p2p = p->cfg.p2p; /* either side may send first, as verbs programs expect */
	to->refused_retry_ms = p->cfg.retry_ms;
	/* it bounds all tries together, and the last of them may take its time too */
	to->connect_ms = p->cfg.retry_ms > UINT32_MAX - to->connect_ms
				 ? UINT32_MAX
				 : to->connect_ms + p->cfg.retry_ms;
	to->setup_ms = SETUP_MS;
	to->close_ms = CLOSE_MS;
	to->nudge_ms = NUDGE_MS; /* the peer may be soft-iWARP */
	if (!conn)
		return;
	to->ird = vd_reads(conn->responder_resources);
	to->ord = vd_reads(conn->initiator_depth);
	to->private_data = conn->private_data;
	to->private_data_len = conn->private_data ? conn->private_data_len : 0;
}

/* What Linux's connection manager gives a queue pair on Ethernet whose program says nothing: about 1 s. */
#define CM_TIMEOUT 18

/* Its queue pair says how often it tries again, as one that the program moves itself. */
static void keep_retries(const struct vd_id *id, const struct rdma_conn_param *conn)
{
	const uint8_t most = 7;
	struct vd_qp *qp = id->qp;

	if (qp->roce && !id->ack_said)
		qp->said.timeout = CM_TIMEOUT;
	qp->said.retry_cnt = conn && conn->retry_count < most ? conn->retry_count : most;
	qp->said.rnr_retry = conn && conn->rnr_retry_count < most ? conn->rnr_retry_count : most;
	vd_qp_answer(qp);
}

int vdi_rdma_connect(struct rdma_cm_id *ibid, struct rdma_conn_param *conn)
{
	struct vd_id *id = vd_id_of(ibid);
	struct vd_process *p = vd_id_process(id);
	struct ddps_conn_param param;
	char uri[160], local[80];
	int err;

	if (!p || id->state != VD_ID_ROUTE)
		return vd_fail(EINVAL);
	if (vd_event_keep(id))
		return vd_fail(ENOMEM);
	if (vd_ud_id(id))
		return vd_ud_connect(id, conn);
	vd_conn_param(p, conn, &param);
	if (vd_ib_too_long(id, param.private_data_len, VD_IB_REQ_PD))
		return vd_fail(EINVAL);
	if (!vd_lend(p, id, conn))
		return -1;
	vd_addr_text(&ibid->route.addr.src_addr, local, sizeof local);
	if (id->own_address || rdma_get_src_port(ibid))
		param.local = local;
	vd_lend_port(id);
	vd_uri(&p->cfg, &ibid->route.addr.dst_addr, uri, sizeof uri);
	vd_add_tos(id, uri, sizeof uri);
	ddps_lock(&p->lock);
	keep_retries(id, conn);
	err = ddps_connect(id->qp->ep, uri, &param);
	if (!err)
		id->state = VD_ID_CONNECTING;
	ddps_unlock(&p->lock);
	return err ? vd_fail(vd_errno(err)) : vd_sync(id, 0);
}

/* The set-up of iWARP has no third message: it is all there. */
int vdi_rdma_establish(struct rdma_cm_id *id)
{
	return id->qp || vd_id_of(id)->state != VD_ID_UP ? vd_fail(EINVAL) : 0;
}

static int listen_for_id(struct vd_process *p, struct vd_id *id, unsigned backlog)
{
	struct ddps_listen_param param;
	char uri[160];
	int err;

	if (vd_event_keep(id))
		return ENOMEM;
	ddps_listen_param_init(&param);
	param.backlog = backlog ? backlog : param.backlog;
	param.user = id;
	vd_listen_uri(p, id, uri, sizeof uri);
	vd_add_tos(id, uri, sizeof uri);
	ddps_lock(&p->lock);
	err = ddps_listen(p->ctx, uri, &param, &id->listener);
	if (!err)
		id->state = VD_ID_LISTEN;
	ddps_unlock(&p->lock);
	return err ? vd_errno(err) : 0;
}

int vdi_rdma_listen(struct rdma_cm_id *ibid, int backlog)
{
	struct vd_id *id = vd_id_of(ibid);
	struct vd_process *p = vd_id_process(id);
	unsigned n = backlog > 0 ? (unsigned)backlog : 0;
	int err = 0;

	if (!p || (id->state != VD_ID_IDLE && id->state != VD_ID_BOUND))
		return vd_fail(EINVAL);
	if (id->state == VD_ID_IDLE) /* any address and port: rdma_listen(3) */
		ibid->route.addr.src_addr.sa_family = AF_INET;
	if (!rdma_get_src_port(ibid) || (vd_ud_id(id) && id->reserved < 0))
		err = vd_reserve(p, id);
	if (vd_ud_id(id))
		return err ? vd_fail(err) : vd_ud_listen(id, n);
	if (vd_over_sctp(&p->cfg)) /* UDP ports are not lent */
		vd_unreserve(id);
	vd_lend_port(id);
	if (!err)
		err = listen_for_id(p, id, n);
	if (!err)
		vd_unreserve(id);
	return err ? vd_fail(err) : 0;
}

/* Whether there was a request; it may go at any moment. */
static bool was_request_seen(struct vd_process *p, const struct vd_id *id)
{
	bool asked;

	ddps_lock(&p->lock);
	asked = id->request || id->state == VD_ID_DOWN;
	ddps_unlock(&p->lock);
	return asked;
}

int vdi_rdma_accept(struct rdma_cm_id *ibid, struct rdma_conn_param *conn)
{
	struct vd_id *id = vd_id_of(ibid);
	struct vd_process *p = vd_id_process(id);
	struct ddps_conn_param param;
	int err;

	if (p && vd_ud_id(id))
		return vd_ud_accept(id, conn);
	if (!p || !was_request_seen(p, id))
		return vd_fail(EINVAL);
	if (vd_event_keep(id))
		return vd_fail(ENOMEM);
	vd_conn_param(p, conn, &param);
	if (vd_ib_too_long(id, param.private_data_len, VD_IB_REP_PD))
		return vd_fail(EINVAL);
	if (!vd_lend(p, id, conn))
		return -1;
	if (!conn) { /* what the peer asks for */
		param.ird = vd_reads(id->peer_ord);
		param.ord = vd_reads(id->peer_ird);
	}
	ddps_lock(&p->lock);
	keep_retries(id, conn);
	if (id->request)
		err = ddps_accept(id->request, id->qp->ep, &param);
	else /* the peer has gone */
		err = DDPS_E_CLOSED;
	if (!err || err == DDPS_E_CLOSED || err == DDPS_E_IRD || err == DDPS_E_RTR) {
		vd_request_forget(p, id);
		id->request = NULL;
	}
	if (!err)
		id->state = VD_ID_ACCEPTING;
	ddps_unlock(&p->lock);
	return err ? vd_fail(vd_errno(err)) : vd_sync(id, 0);
}

int vdi_rdma_reject(struct rdma_cm_id *ibid, const void *data, uint8_t len)
{
	struct vd_id *id = vd_id_of(ibid);
	struct vd_process *p = vd_id_process(id);
	int err;

	if (!p)
		return -1;
	if (vd_ud_id(id))
		return vd_ud_reject(id, data, len);
	if (!data)
		len = 0;
	if (vd_ib_too_long(id, len, VD_IB_REJ_PD))
		return vd_fail(EINVAL);
	ddps_lock(&p->lock);
	if (id->request) {
		err = ddps_reject(id->request, data, len);
		vd_request_forget(p, id);
		id->request = NULL;
		id->state = VD_ID_DOWN;
	} else {
		err = DDPS_E_STATE;
	}
	ddps_unlock(&p->lock);
	return err && err != DDPS_E_CLOSED ? vd_fail(vd_errno(err)) : 0;
}

int vdi_rdma_disconnect(struct rdma_cm_id *ibid)
{
	struct vd_id *id = vd_id_of(ibid);
	struct vd_process *p = vd_id_process(id);
	bool known;
	int err;

	if (!p)
		return -1;
	if (vd_ud_id(id)) /* there is no connection */
		return vd_fail(EINVAL);
	if (vd_is_ib(id) && vd_event_keep(id))
		return vd_fail(ENOMEM);
	ddps_lock(&p->lock);
	if (id->state < VD_ID_CONNECTING)
		err = EINVAL;
	else /* the connection goes with its queue pair */
		err = id->qp ? vd_qp_close(id->qp) : 0;
	vd_held_release(p, id);
	if (!err)
		vd_ib_parted(id);
	/* The second time there is nothing to wait for. */
	known = !id->qp || (id->told_down && !vd_event_waits(id));
	ddps_unlock(&p->lock);
	if (err)
		return vd_fail(err);
	return known ? 0 : vd_sync(id, 0);
}

VD_API int rdma_notify(struct rdma_cm_id *id, enum ibv_event_type event)
{
	(void)id;
	return event == IBV_EVENT_COMM_EST ? 0 : vd_fail(EINVAL);
}
