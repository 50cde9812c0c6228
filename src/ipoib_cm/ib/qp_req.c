/* SPDX-License-Identifier: BSD-2-Clause */
/* The requester: segmentation, window, ACKs and NAKs, repetitions (IBA volume 1, 9.7.5, 9.7.6). */
#include "ipoib_cm/ib/qp.h"
#include <string.h>

#define ASK_EVERY 32	      /* packets: one of them asks for an ACK */
#define AGAIN_MIN 50000000ull /* ns until the first repetition */
#define AGAIN_MAX 2000000000ull
#define FOREVER	  7	  /* of the RNR retry count */
#define TICK_NS	  4096ull /* unit of the 5-bit times */

static struct ddps_ib_msg *get_tx_message(const struct ddps_ib_qp *qp, unsigned i)
{
	return &qp->msg[(qp->head + i) % DDPS_IB_TX_MSGS];
}

static void pop_tx_message(struct ddps_ib_qp *qp)
{
	struct ddps_ib_msg *m = get_tx_message(qp, 0);

	if (qp->env->ops->gone)
		qp->env->ops->gone(qp->env->user, m->data, m->len);
	ddps_ib_mem_put(&qp->env->tx, m->data, m->len);
	qp->head = (qp->head + 1) % DDPS_IB_TX_MSGS;
	qp->n_msg--;
	qp->cur -= qp->cur > 0;
}

void ddps_ib_req_flush(struct ddps_ib_qp *qp)
{
	while (qp->n_msg)
		pop_tx_message(qp);
	qp->cur = 0;
	qp->una = qp->sent = qp->top = qp->psn;
	qp->again_at = DDPS_IB_NEVER;
	qp->rnr_until = 0;
	qp->probing = false;
}

static void start_timer(struct ddps_ib_qp *qp, uint64_t now)
{
	qp->progress_at = now;
	qp->again_ns = AGAIN_MIN;
	qp->again_at = now + AGAIN_MIN;
}

/* Back to @psn, which is from una to top. */
static void go_back(struct ddps_ib_qp *qp, uint32_t psn)
{
	qp->sent = psn;
	qp->since_ack = 0;
	for (qp->cur = 0; qp->cur < qp->n_msg; qp->cur++) {
		const struct ddps_ib_msg *m = get_tx_message(qp, qp->cur);

		if (ddps_ib_psn_diff(ddps_ib_psn_add(m->psn, m->n_pkt), psn) > 0)
			return;
	}
}

/* The packet with PSN sent.  Return: whether there was room. */
static bool send_next(struct ddps_ib_qp *qp, uint64_t now)
{
	const struct ddps_ib_msg *m = get_tx_message(qp, qp->cur);
	uint32_t k = (qp->sent - m->psn) & DDPS_IB_PSN_MASK;
	size_t off = (size_t)k * qp->to.mtu, left = m->len - off;
	bool last = k + 1 == m->n_pkt;
	bool full = ddps_ib_psn_diff(qp->sent, qp->una) + 1 == DDPS_IB_WINDOW;
	struct ddps_ib_pkt p = { .psn = qp->sent,
				 .data = m->data + off,
				 .len = last ? left : qp->to.mtu };

	p.opcode = m->n_pkt == 1 ? DDPS_IB_SEND_ONLY
		   : !k		 ? DDPS_IB_SEND_FIRST
		   : last	 ? DDPS_IB_SEND_LAST
				 : DDPS_IB_SEND_MIDDLE;
	p.ack_req = !qp->uc && (last || full || qp->probing || qp->since_ack + 1 >= ASK_EVERY);
	if (!ddps_ib_qp_out(qp, &p))
		return false;
	qp->env->stats.qp_again += qp->sent != qp->top;
	qp->since_ack = p.ack_req ? 0 : qp->since_ack + 1;
	if (!qp->uc && qp->again_at == DDPS_IB_NEVER)
		start_timer(qp, now);
	qp->sent = ddps_ib_psn_add(qp->sent, 1);
	if (ddps_ib_psn_diff(qp->sent, qp->top) > 0)
		qp->top = qp->sent;
	qp->cur += last;
	return true;
}

void ddps_ib_qp_pump(struct ddps_ib_qp *qp, uint64_t now)
{
	qp->blocked = false;
	ddps_ib_resp_owed(qp);
	while (!qp->blocked && qp->state == DDPS_IB_QP_RTS && !qp->rnr_until &&
	       qp->cur < qp->n_msg && !(qp->probing && qp->sent != qp->una) &&
	       (qp->uc || ddps_ib_psn_diff(qp->sent, qp->una) < DDPS_IB_WINDOW)) {
		if (!send_next(qp, now)) {
			qp->blocked = true;
			return;
		}
		if (!qp->uc) /* done when it has left */
			continue;
		qp->una = qp->sent;
		while (qp->cur)
			pop_tx_message(qp);
	}
}

int ddps_ib_qp_send(struct ddps_ib_qp *qp, const void *data, size_t len, uint64_t now)
{
	struct ddps_ib_msg *m;

	if (qp->state != DDPS_IB_QP_RTS)
		return DDPS_E_STATE;
	if (qp->n_msg == DDPS_IB_TX_MSGS || len > UINT32_MAX)
		return DDPS_E_AGAIN;
	m = get_tx_message(qp, qp->n_msg);
	m->data = ddps_ib_mem_get(&qp->env->tx, len);
	if (!m->data)
		return DDPS_E_AGAIN;
	if (len)
		memcpy(m->data, data, len);
	m->len = (uint32_t)len;
	m->psn = qp->psn;
	m->n_pkt = len ? (uint32_t)((len + qp->to.mtu - 1) / qp->to.mtu) : 1;
	qp->psn = ddps_ib_psn_add(qp->psn, m->n_pkt);
	qp->n_msg++;
	if (!qp->blocked)
		ddps_ib_qp_pump(qp, now);
	return 0;
}

/* Payload of the packet with PSN una. */
static uint32_t get_oldest_len(const struct ddps_ib_qp *qp)
{
	const struct ddps_ib_msg *m = get_tx_message(qp, 0);
	const uint32_t left = m->len - ((qp->una - m->psn) & DDPS_IB_PSN_MASK) * qp->to.mtu;

	return left < qp->to.mtu ? left : qp->to.mtu;
}

static void note_acked_len(struct ddps_ib_qp *qp, uint32_t len)
{
	if (len > qp->to.mtu)
		len = qp->to.mtu;
	if (qp->acked_len < len)
		qp->acked_len = len;
}

/* Everything before @psn has arrived.  Return: whether that is news. */
static bool acknowledge_before(struct ddps_ib_qp *qp, uint32_t psn, uint64_t now)
{
	if (ddps_ib_psn_diff(psn, qp->una) <= 0)
		return false;
	note_acked_len(qp, get_oldest_len(qp));
	qp->una = psn;
	if (ddps_ib_psn_diff(qp->sent, psn) < 0)
		go_back(qp, psn); /* repeating it had begun */
	while (qp->n_msg) {
		const struct ddps_ib_msg *m = get_tx_message(qp, 0);

		if (ddps_ib_psn_diff(ddps_ib_psn_add(m->psn, m->n_pkt), psn) > 0)
			break;
		note_acked_len(qp, m->len);
		pop_tx_message(qp);
	}
	qp->tries = qp->rnr = 0;
	if (qp->una == qp->top)
		qp->again_at = DDPS_IB_NEVER;
	else
		start_timer(qp, now);
	return true;
}

/* How long the peer wants to be left alone (IBA volume 1, 9.7.5.2.8, table 45). */
static uint64_t rnr_ns(uint8_t code)
{
	uint64_t unit = 10000;

	if (!code)
		return 65536 * unit;
	if (code <= 5) /* 10, 20, 30, 40, 60 microseconds */
		return (code < 5 ? code : 6) * unit;
	/* and so on by factors of two, 1.5 of it between */
	return (code % 2 ? 3ull << ((code - 5) / 2 + 1) : 4ull << ((code - 4) / 2)) * unit;
}

static void not_ready(struct ddps_ib_qp *qp, const struct ddps_ib_pkt *p, uint64_t now)
{
	qp->env->stats.qp_rnr_rx++;
	if (qp->to.rnr_retry != FOREVER && qp->rnr++ >= qp->to.rnr_retry) {
		ddps_ib_qp_fail(qp, DDPS_E_BUSY, now);
		return;
	}
	go_back(qp, p->psn);
	qp->rnr_until = now + rnr_ns(p->syndrome & 0x1f);
	qp->again_at = DDPS_IB_NEVER; /* the peer lives */
}

static void take_nak(struct ddps_ib_qp *qp, const struct ddps_ib_pkt *p, uint64_t now)
{
	qp->env->stats.qp_nak_rx++;
	if ((p->syndrome & 0x1f) != DDPS_IB_NAK_PSN) {
		ddps_ib_qp_fail(qp, DDPS_E_PROTOCOL, now);
		return;
	}
	if (qp->rnr_until) /* what comes behind a packet that found nobody ready is a gap */
		return;
	if (qp->tries++ >= qp->to.retry) {
		ddps_ib_qp_fail(qp, DDPS_E_TIMEDOUT, now);
		return;
	}
	go_back(qp, p->psn);
	ddps_ib_qp_pump(qp, now);
}

void ddps_ib_req_ack(struct ddps_ib_qp *qp, const struct ddps_ib_pkt *p, uint64_t now)
{
	uint8_t kind = p->syndrome & DDPS_IB_AETH_KIND;

	/* only what has been sent and is not acknowledged can be answered */
	if (qp->uc || ddps_ib_psn_diff(p->psn, qp->una) < 0 ||
	    ddps_ib_psn_diff(p->psn, qp->top) >= 0) {
		qp->env->stats.qp_bad += qp->uc || ddps_ib_psn_diff(p->psn, qp->top) >= 0;
		return;
	}
	qp->probing = false;
	if (kind == DDPS_IB_AETH_ACK) {
		acknowledge_before(qp, ddps_ib_psn_add(p->psn, 1), now);
		qp->rnr_until = 0;
		ddps_ib_qp_pump(qp, now);
	} else if (kind == DDPS_IB_AETH_RNR) {
		acknowledge_before(qp, p->psn, now);
		not_ready(qp, p, now);
	} else if (kind == DDPS_IB_AETH_NAK) {
		acknowledge_before(qp, p->psn, now);
		take_nak(qp, p, now);
	} else {
		qp->env->stats.qp_bad++;
	}
}

static uint64_t ack_timeout(const struct ddps_ib_qp *qp)
{
	uint8_t t = qp->to.ack_timeout & 0x1f;

	return t ? TICK_NS << t : DDPS_IB_NEVER;
}

uint64_t ddps_ib_qp_due(const struct ddps_ib_qp *qp)
{
	return qp->rnr_until ? qp->rnr_until : qp->again_at;
}

void ddps_ib_qp_tick(struct ddps_ib_qp *qp, uint64_t now)
{
	if (qp->state != DDPS_IB_QP_RTS || ddps_ib_qp_due(qp) > now)
		return;
	if (qp->rnr_until) {
		qp->rnr_until = 0;
		ddps_ib_qp_pump(qp, now);
		return;
	}
	if (now - qp->progress_at >= ack_timeout(qp)) {
		qp->env->stats.qp_timeouts++;
		qp->progress_at = now;
		if (qp->tries++ >= qp->to.retry) {
			qp->failed_len = get_oldest_len(qp);
			ddps_ib_qp_fail(qp, DDPS_E_TIMEDOUT, now);
			return;
		}
	}
	qp->again_ns = qp->again_ns < AGAIN_MAX / 2 ? qp->again_ns * 2 : AGAIN_MAX;
	qp->again_at = now + qp->again_ns;
	go_back(qp, qp->una);
	qp->probing = true;
	if (!qp->blocked)
		ddps_ib_qp_pump(qp, now);
}
