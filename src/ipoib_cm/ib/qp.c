/* SPDX-License-Identifier: BSD-2-Clause */
/* A queue pair as a whole: states, and which half a packet is for. */
#include "ipoib_cm/ib/qp.h"
#include <stdlib.h>
#include <string.h>

void *ddps_ib_mem_get(struct ddps_ib_mem *m, size_t n)
{
	void *p = n <= m->max - m->used ? malloc(n ? n : 1) : NULL;

	if (p)
		m->used += n;
	else
		m->refused++;
	return p;
}

void ddps_ib_mem_put(struct ddps_ib_mem *m, void *p, size_t n)
{
	if (p)
		m->used -= n;
	free(p);
}

void ddps_ib_qp_init(struct ddps_ib_qp *qp, struct ddps_ib_qp_env *env, bool uc, uint32_t qpn,
		     uint32_t rx_max)
{
	*qp = (struct ddps_ib_qp){ .env = env,
				   .uc = uc,
				   .qpn = qpn,
				   .rx_max = rx_max,
				   .pkey = 0xffff,
				   .again_at = DDPS_IB_NEVER };
}

void ddps_ib_qp_fini(struct ddps_ib_qp *qp)
{
	ddps_ib_qp_stop(qp);
	free(qp->msg);
	qp->msg = NULL;
}

int ddps_ib_qp_ready(struct ddps_ib_qp *qp, const struct ddps_ib_qp_to *to)
{
	if (qp->state != DDPS_IB_QP_INIT)
		return DDPS_E_STATE;
	if (to->mtu < 256 || to->mtu > DDPS_IB_MTU_MAX || to->mtu & (to->mtu - 1))
		return DDPS_E_INVAL;
	qp->msg = calloc(DDPS_IB_TX_MSGS, sizeof(*qp->msg));
	if (!qp->msg)
		return DDPS_E_NOMEM;
	qp->to = *to;
	qp->una = qp->sent = qp->top = qp->psn = to->tx_psn & DDPS_IB_PSN_MASK;
	qp->epsn = to->rx_psn & DDPS_IB_PSN_MASK;
	qp->state = DDPS_IB_QP_RTS;
	return 0;
}

void ddps_ib_qp_stop(struct ddps_ib_qp *qp)
{
	qp->state = DDPS_IB_QP_ERR;
	ddps_ib_req_flush(qp);
	ddps_ib_resp_drop(qp);
	qp->ack_owed = qp->blocked = false;
}

void ddps_ib_qp_fail(struct ddps_ib_qp *qp, int err, uint64_t now)
{
	ddps_ib_qp_stop(qp);
	qp->env->stats.qp_failed++;
	qp->env->ops->failed(qp->env->user, qp, err, now);
}

bool ddps_ib_qp_out(struct ddps_ib_qp *qp, struct ddps_ib_pkt *p)
{
	p->opcode |= qp->uc ? DDPS_IB_UC : DDPS_IB_RC;
	p->migrated = true; /* there is no alternate path */
	p->pkey = qp->pkey;
	p->qpn = qp->to.qpn;
	if (!qp->env->ops->send(qp->env->user, qp, p))
		return false;
	qp->env->stats.qp_tx++;
	return true;
}

void ddps_ib_qp_rx(struct ddps_ib_qp *qp, const struct ddps_ib_pkt *p, uint64_t now)
{
	uint8_t transport = p->opcode & DDPS_IB_TRANSPORT, op = p->opcode & DDPS_IB_OPERATION;

	/* IBA volume 1, 9.6.1.2: silence unless the queue pair is in RTR or RTS */
	if (qp->state != DDPS_IB_QP_RTS || transport != (qp->uc ? DDPS_IB_UC : DDPS_IB_RC)) {
		qp->env->stats.qp_bad++;
		return;
	}
	qp->env->stats.qp_rx++;
	if (op == DDPS_IB_ACK)
		ddps_ib_req_ack(qp, p, now);
	else if (op >= DDPS_IB_READ_RESPONSE && op <= DDPS_IB_ATOMIC_ACK)
		qp->env->stats.qp_bad++; /* an answer to what was never asked */
	else
		ddps_ib_resp_rx(qp, p, now);
}
