/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * RC and UC queue pairs.  They share one receive queue, so a queue pair that ends may still hold one of its
 * receives: it is destroyed when the adapter has said that it does not (IBA volume 1, 10.3.1).
 */
#include "ipoib_cm/verbs/vport_in.h"
#include <errno.h>
#include <string.h>

#define RNR_TIMER 12 /* 0.64 ms, which a sender waits that found no receive */

/* ---- numbers ---- */

static uint64_t hash_qpn(const struct ddps_ib_verbs *v, uint32_t qpn)
{
	return ddps_siphash(&v->key, &qpn, sizeof(qpn));
}

static struct vp_qp *find_vport_qp(struct ddps_ib_verbs *v, uint32_t qpn)
{
	struct vp_qp *q;

	DDPS_TAB_EACH(&v->qps, hash_qpn(v, qpn), q, struct vp_qp, link)
		if (q->qp->qp_num == qpn)
			return q;
	return NULL;
}

unsigned ddps_ib_verbs_waiting(const struct ddps_ib_verbs *v, uint32_t qpn)
{
	const struct vp_qp *q = find_vport_qp((struct ddps_ib_verbs *)v, qpn);

	return q ? q->n_out : 0;
}

/* One that its user still knows. */
static struct vp_qp *find_alive(struct ddps_ib_verbs *v, uint32_t qpn)
{
	struct vp_qp *q = find_vport_qp(v, qpn);

	return q && !q->dying ? q : NULL;
}

static void free_vport_qp(struct ddps_ib_verbs *v, struct vp_qp *q)
{
	q->used = false;
	q->next_free = v->free_qp;
	v->free_qp = (uint32_t)(q - v->qp);
}

/* ---- states ---- */

static int move_qp_to_init(struct ddps_ib_verbs *v, struct vp_qp *q)
{
	struct ibv_qp_attr a = { .qp_state = IBV_QPS_INIT,
				 .pkey_index = v->pkey_index,
				 .port_num = v->info.port,
				 .qp_access_flags = IBV_ACCESS_LOCAL_WRITE };

	return v->lib.modify_qp(
		q->qp, &a, IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_ACCESS_FLAGS);
}

/* What a queue pair of UC does not have: nobody acknowledges, so nothing is sent again. */
#define RTR_RC (IBV_QP_MAX_DEST_RD_ATOMIC | IBV_QP_MIN_RNR_TIMER)
#define RTS_RC (IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT | IBV_QP_RNR_RETRY | IBV_QP_MAX_QP_RD_ATOMIC)

static int move_qp_to_rtr(struct ddps_ib_verbs *v, struct vp_qp *q,
			  const struct ddps_ipoib_qp_to *to, const struct vp_way *w)
{
	uint8_t link = v->link.mtu & 0x3f, mtu = to->path.mtu ? to->path.mtu : link;
	struct ibv_qp_attr a = { .qp_state = IBV_QPS_RTR,
				 .path_mtu = mtu < v->info.mtu ? mtu : v->info.mtu,
				 .dest_qp_num = to->qpn,
				 .rq_psn = to->rx_psn,
				 .min_rnr_timer = RNR_TIMER };

	ddps_vport_ah_attr(v, w, &a.ah_attr);
	return v->lib.modify_qp(q->qp, &a,
				IBV_QP_STATE | IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN |
					IBV_QP_RQ_PSN | (q->uc ? 0 : RTR_RC));
}

static int move_qp_to_rts(struct ddps_ib_verbs *v, struct vp_qp *q,
			  const struct ddps_ipoib_qp_to *to)
{
	struct ibv_qp_attr a = { .qp_state = IBV_QPS_RTS,
				 .timeout = to->ack_timeout,
				 .retry_cnt = to->retry_count,
				 .rnr_retry = to->rnr_retry,
				 .sq_psn = to->tx_psn };

	if (!to->path.mtu) /* the path has not been asked for: as the link is */
		a.timeout = ddps_cm_ack_timeout(v->link.life & 0x3f, 0);
	return v->lib.modify_qp(q->qp, &a, IBV_QP_STATE | IBV_QP_SQ_PSN | (q->uc ? 0 : RTS_RC));
}

/* Why the adapter gives no queue pair.  One may be able to share a receive queue on RC alone. */
static int no_qp(struct ddps_ib_verbs *v, bool uc, int err)
{
	ddps_vport_say(v, "%s gives no queue pair for %s connection: %s", v->info.device,
		       uc ? "an unreliable" : "a", err ? strerror(err) : "it does not say why");
	if (uc && (err == EINVAL || err == ENOSYS || err == EOPNOTSUPP))
		return DDPS_E_UNSUPPORTED;
	return err == ENOMEM ? DDPS_E_NOMEM : DDPS_E_LIMIT;
}

int ddps_vport_qp_create(struct ddps_ipoib_port *port, uint8_t transport, uint32_t rx_mtu,
			 uint32_t *qpn)
{
	struct ddps_ib_verbs *v = VPORT(port);
	struct ibv_qp_init_attr a = { .send_cq = v->tx_cq,
				      .recv_cq = v->rx_cq,
				      .srq = v->srq,
				      .cap = { .max_send_wr = VP_QP_TX, .max_send_sge = 1 },
				      .qp_type = transport == DDPS_CM_UC ? IBV_QPT_UC : IBV_QPT_RC,
				      .sq_sig_all = 1 };
	struct vp_qp *q;
	int err;

	if (transport != DDPS_CM_RC && transport != DDPS_CM_UC)
		return DDPS_E_UNSUPPORTED;
	if (v->free_qp == VP_NONE || !rx_mtu || rx_mtu > VP_MSG_LEN)
		return DDPS_E_LIMIT;
	q = &v->qp[v->free_qp];
	v->free_qp = q->next_free;
	*q = (struct vp_qp){ .used = true, .uc = transport == DDPS_CM_UC, .rx_mtu = rx_mtu };
	errno = 0;
	q->qp = v->lib.create_qp(v->pd, &a);
	err = errno;
	if (q->qp)
		err = move_qp_to_init(v, q);
	if (!q->qp || err) {
		if (q->qp)
			v->lib.destroy_qp(q->qp);
		free_vport_qp(v, q);
		return no_qp(v, q->uc, err);
	}
	ddps_tab_add(&v->qps, &q->link, hash_qpn(v, q->qp->qp_num));
	*qpn = q->qp->qp_num;
	return 0;
}

int ddps_vport_qp_ready(struct ddps_ipoib_port *port, uint32_t qpn,
			const struct ddps_ipoib_qp_to *to)
{
	struct ddps_ib_verbs *v = VPORT(port);
	struct vp_qp *q = find_alive(v, qpn);
	uint16_t pkey_index;
	struct vp_way w;
	int err;

	if (!q || q->ready || q->stopped || !v->has_link)
		return DDPS_E_STATE;
	if (!ddps_vport_way(v, to->path.addr, &w, &pkey_index))
		return DDPS_E_ADDRESS;
	q->dlid = w.dlid;
	q->to_qpn = to->qpn;
	err = move_qp_to_rtr(v, q, to, &w);
	q->ready = !err; /* from here on it may take a receive */
	if (!err)
		err = move_qp_to_rts(v, q, to);
	if (!err)
		return 0;
	ddps_vport_say(v, "%s: queue pair 0x%06x for LID %u: %s", v->info.device, qpn, w.dlid,
		       strerror(err));
	return DDPS_E_SYSTEM;
}

void ddps_vport_qp_stop(struct ddps_ipoib_port *port, uint32_t qpn)
{
	struct ibv_qp_attr a = { .qp_state = IBV_QPS_ERR };
	struct vp_qp *q = find_alive(VPORT(port), qpn);

	if (!q || q->stopped)
		return;
	q->stopped = true;
	(void)VPORT(port)->lib.modify_qp(q->qp, &a, IBV_QP_STATE);
}

static void destroy_vport_qp(struct ddps_ib_verbs *v, struct vp_qp *q)
{
	struct vp_pool *p = &v->pool[VP_MSG_OUT];
	uint32_t slot = (uint32_t)(q - v->qp);

	ddps_due_set(&v->dues, &q->due, UINT64_MAX);
	ddps_tab_del(&v->qps, &q->link);
	v->lib.destroy_qp(q->qp);
	v->n_behind -= q->n_out > VP_QP_TX / 2;
	for (uint32_t i = 0; q->n_out && i < p->n; i++)
		if (p->buf[i].out && p->buf[i].owner == slot)
			ddps_vport_give(p, i);
	free_vport_qp(v, q);
}

void ddps_vport_qp_destroy(struct ddps_ipoib_port *port, uint32_t qpn)
{
	struct ddps_ib_verbs *v = VPORT(port);
	struct vp_qp *q = find_alive(v, qpn);

	if (!q)
		return;
	ddps_vport_qp_stop(port, qpn);
	if (!q->ready) {
		destroy_vport_qp(v, q);
		return;
	}
	q->dying = true;
	ddps_due_set(&v->dues, &q->due, q->drained ? v->now : v->now + VP_DYING_NS);
}

uint64_t ddps_vport_qp_due(const struct ddps_ib_verbs *v)
{
	return ddps_dues_first(&v->dues);
}

void ddps_vport_qp_tick(struct ddps_ib_verbs *v)
{
	struct ddps_due *due;

	while ((due = ddps_dues_ready(&v->dues, v->now))) {
		struct vp_qp *q = (void *)((char *)due - offsetof(struct vp_qp, due));

		v->stats.qp_undrained += !q->drained;
		destroy_vport_qp(v, q);
	}
}

/* ---- failures ---- */

static void fail_vport_qp(struct ddps_ib_verbs *v, struct vp_qp *q, int err)
{
	uint32_t qpn = q->qp->qp_num;

	if (q->failed || q->stopped)
		return;
	q->failed = err;
	v->stats.qp_failed++;
	v->cfg.up->qp_error(v->user, qpn, err, v->now);
}

static int reason(enum ibv_wc_status status)
{
	switch (status) {
	case IBV_WC_RETRY_EXC_ERR:
		return DDPS_E_TIMEDOUT;
	case IBV_WC_RNR_RETRY_EXC_ERR:
		return DDPS_E_BUSY;
	case IBV_WC_LOC_LEN_ERR:
		return DDPS_E_TOO_LONG;
	case IBV_WC_REM_INV_REQ_ERR:
	case IBV_WC_REM_ACCESS_ERR:
	case IBV_WC_REM_OP_ERR:
	case IBV_WC_REM_ABORT_ERR:
	case IBV_WC_BAD_RESP_ERR:
		return DDPS_E_PROTOCOL;
	case IBV_WC_WR_FLUSH_ERR:
		return DDPS_E_RESET;
	default:
		return DDPS_E_SYSTEM;
	}
}

void ddps_vport_qp_event(struct ddps_ib_verbs *v, uint32_t qpn, enum ibv_event_type type)
{
	struct vp_qp *q = find_vport_qp(v, qpn);

	if (!q)
		return;
	if (type == IBV_EVENT_QP_LAST_WQE_REACHED) {
		q->drained = true;
		if (q->dying)
			ddps_due_set(&v->dues, &q->due, v->now);
		else
			fail_vport_qp(v, q, DDPS_E_RESET); /* nobody has stopped it */
	} else if (!q->dying) {
		fail_vport_qp(v, q, DDPS_E_PROTOCOL); /* what the peer has sent made it fail */
	}
}

/* ---- messages ---- */

static void see_qp_frame(struct ddps_ib_verbs *v, const struct vp_qp *q, bool tx, const void *frame,
			 size_t len)
{
	const struct ddps_ib_seen seen = { .tx = tx,
					   .connected = true,
					   .uc = q->uc,
					   .slid = tx ? v->info.lid : q->dlid,
					   .dlid = tx ? q->dlid : v->info.lid,
					   .from_qpn = tx ? q->qp->qp_num : q->to_qpn,
					   .to_qpn = tx ? q->to_qpn : q->qp->qp_num,
					   .frame = frame,
					   .len = len };

	if (v->cfg.see)
		v->cfg.see(v->cfg.see_user, &seen);
}

int ddps_vport_qp_send(struct ddps_ipoib_port *port, uint32_t qpn, const void *frame, size_t len)
{
	struct ddps_ib_verbs *v = VPORT(port);
	struct vp_pool *p = &v->pool[VP_MSG_OUT];
	struct vp_qp *q = find_alive(v, qpn);
	struct ibv_send_wr wr = { .num_sge = 1, .opcode = IBV_WR_SEND }, *bad;
	struct ibv_sge sge;
	uint32_t i;

	if (!q || !q->ready || q->stopped)
		return DDPS_E_STATE;
	if (q->failed)
		return q->failed;
	if (len > VP_MSG_LEN)
		return DDPS_E_TOO_LONG;
	i = q->n_out < VP_QP_TX ? ddps_vport_take(p) : VP_NONE;
	if (i == VP_NONE) {
		v->stats.tx_full++;
		return DDPS_E_AGAIN;
	}
	memcpy(ddps_vport_mem(p, i), frame, len);
	sge = ddps_vport_sge(p, i, len);
	wr.sg_list = &sge;
	wr.wr_id = ddps_vport_wr_id(p, i);
	if (v->lib.post_send(q->qp, &wr, &bad)) {
		ddps_vport_give(p, i);
		v->stats.tx_full++;
		return DDPS_E_AGAIN;
	}
	p->buf[i].owner = (uint32_t)(q - v->qp);
	v->n_behind += q->n_out++ == VP_QP_TX / 2;
	v->stats.qp_tx++;
	see_qp_frame(v, q, true, frame, len);
	return 0;
}

void ddps_vport_qp_sent(struct ddps_ib_verbs *v, const struct ibv_wc *wc, uint32_t i)
{
	struct vp_qp *q = &v->qp[v->pool[VP_MSG_OUT].buf[i].owner];

	ddps_vport_give(&v->pool[VP_MSG_OUT], i);
	v->n_behind -= --q->n_out == VP_QP_TX / 2;
	if (wc->status != IBV_WC_SUCCESS)
		fail_vport_qp(v, q, reason(wc->status));
}

static void post_message_receives(struct ddps_ib_verbs *v)
{
	struct vp_pool *p = &v->pool[VP_MSG_IN];
	uint32_t i;

	while ((i = ddps_vport_take(p)) != VP_NONE) {
		struct ibv_sge sge = ddps_vport_sge(p, i, VP_MSG_LEN);
		struct ibv_recv_wr wr = { .wr_id = ddps_vport_wr_id(p, i),
					  .sg_list = &sge,
					  .num_sge = 1 };
		struct ibv_recv_wr *bad;

		if (v->lib.post_srq_recv(v->srq, &wr, &bad)) {
			ddps_vport_give(p, i);
			return;
		}
	}
}

void ddps_vport_qp_rx(struct ddps_ib_verbs *v, const struct ibv_wc *wc, uint32_t i)
{
	struct vp_pool *p = &v->pool[VP_MSG_IN];
	struct vp_qp *q = find_alive(v, wc->qp_num);

	if (q && !q->stopped && !q->failed) {
		if (wc->status != IBV_WC_SUCCESS) {
			fail_vport_qp(v, q, reason(wc->status));
		} else if (wc->byte_len > q->rx_mtu && q->uc) {
			v->stats.rx_bad++; /* lost, as all that UC cannot take */
		} else if (wc->byte_len > q->rx_mtu) {
			struct ibv_qp_attr a = { .qp_state = IBV_QPS_ERR };

			(void)v->lib.modify_qp(q->qp, &a, IBV_QP_STATE);
			fail_vport_qp(v, q, DDPS_E_TOO_LONG);
		} else {
			v->stats.qp_rx++;
			see_qp_frame(v, q, false, ddps_vport_mem(p, i), wc->byte_len);
			v->cfg.up->qp(v->user, wc->qp_num, ddps_vport_mem(p, i), wc->byte_len,
				      v->now);
		}
	} else if (wc->status != IBV_WC_WR_FLUSH_ERR && wc->status != IBV_WC_SUCCESS) {
		v->stats.rx_bad++;
	}
	ddps_vport_give(p, i);
	post_message_receives(v);
}

/* ---- life ---- */

static uint32_t messages(size_t octets, int max)
{
	size_t n = octets / VP_MSG_LEN; /* 4 to 65536: config_fits() */

	return max > 0 && n > (size_t)max ? (uint32_t)max : (uint32_t)n;
}

int ddps_vport_qps_new(struct ddps_ib_verbs *v)
{
	struct ibv_srq_init_attr a = { .attr = { .max_sge = 1 } };
	struct ibv_device_attr dev = { 0 };
	int err;

	(void)v->lib.query_device(v->ctx, &dev);
	err = ddps_vport_pool_new(v, VP_MSG_IN, messages(v->cfg.rx_octets, dev.max_srq_wr),
				  VP_MSG_LEN);
	if (!err)
		err = ddps_vport_pool_new(v, VP_MSG_OUT, messages(v->cfg.tx_octets, 0), VP_MSG_LEN);
	if (err)
		return err;
	v->qp = calloc(v->cfg.max_qps, sizeof(*v->qp));
	v->free_qp = VP_NONE;
	if (!v->qp || !ddps_tab_new(&v->qps, v->cfg.max_qps) ||
	    !ddps_dues_new(&v->dues, v->cfg.max_qps)) {
		ddps_vport_say(v, "out of memory");
		return DDPS_E_NOMEM;
	}
	for (uint32_t i = v->cfg.max_qps; i-- > 0; v->free_qp = i)
		v->qp[i].next_free = v->free_qp;
	a.attr.max_wr = v->pool[VP_MSG_IN].n;
	v->srq = v->lib.create_srq(v->pd, &a);
	if (!v->srq) {
		ddps_vport_say(v, "%s gives no shared receive queue: %s", v->info.device,
			       strerror(errno));
		return DDPS_E_SYSTEM;
	}
	post_message_receives(v);
	return 0;
}

void ddps_vport_qps_free(struct ddps_ib_verbs *v)
{
	for (uint32_t i = 0; v->qp && i < v->cfg.max_qps; i++)
		if (v->qp[i].used)
			destroy_vport_qp(v, &v->qp[i]);
	if (v->srq)
		v->lib.destroy_srq(v->srq);
	v->srq = NULL;
	ddps_vport_pool_free(v, &v->pool[VP_MSG_IN]);
	ddps_vport_pool_free(v, &v->pool[VP_MSG_OUT]);
	free(v->qps.row);
	free(v->dues.heap);
	free(v->qp);
	v->qp = NULL;
}
