/* SPDX-License-Identifier: BSD-2-Clause */
/* The responder: order, reassembly, ACKs and NAKs (IBA volume 1, 9.7.4, 9.7.5, 9.8.2). */
#include "ipoib_cm/ib/qp.h"
#include <string.h>

#define RNR_CODE 12 /* 0.64 ms */
#define MTU_MIN	 256
#define OWED_MAX 16 /* ACKs that one may stand for: a fraction of any requester's window */

/* What an operation is to the responder; a Send with invalidation names a key, and there is none. */
enum kind { FIRST = 1, LAST = 2, MIDDLE = 4, SEND = 8 };

static unsigned get_send_kind(uint8_t op)
{
	switch (op) {
	case DDPS_IB_SEND_FIRST:
		return SEND | FIRST;
	case DDPS_IB_SEND_MIDDLE:
		return SEND | MIDDLE;
	case DDPS_IB_SEND_LAST:
	case DDPS_IB_SEND_LAST_IMM:
		return SEND | LAST;
	case DDPS_IB_SEND_ONLY:
	case DDPS_IB_SEND_ONLY_IMM:
		return SEND | FIRST | LAST;
	default:
		return 0;
	}
}

void ddps_ib_resp_drop(struct ddps_ib_qp *qp)
{
	ddps_ib_mem_put(&qp->env->rx, qp->in, qp->rx_max);
	qp->in = NULL;
	qp->open = false;
}

static bool send_aeth(struct ddps_ib_qp *qp, uint8_t syndrome, uint32_t psn)
{
	struct ddps_ib_pkt p = {
		.opcode = DDPS_IB_ACK, .syndrome = syndrome, .psn = psn, .msn = qp->msn
	};

	return ddps_ib_qp_out(qp, &p);
}

/* One ACK for all that has come in order; if there is no room now, later. */
static void ack_or_owe(struct ddps_ib_qp *qp)
{
	qp->ack_owed = !send_aeth(qp, DDPS_IB_AETH_ACK | DDPS_IB_NO_CREDITS,
				  ddps_ib_psn_add(qp->epsn, DDPS_IB_PSN_MASK));
	qp->blocked |= qp->ack_owed;
	qp->owed = 0;
}

void ddps_ib_resp_owed(struct ddps_ib_qp *qp)
{
	if (qp->ack_owed)
		ack_or_owe(qp);
}

/* The peer broke the rules: it is informed, and this end is over. */
static void refuse_request(struct ddps_ib_qp *qp, const struct ddps_ib_pkt *p, int err,
			   uint64_t now)
{
	if (qp->uc) { /* IBA volume 1, 9.8.2.2: silently, the next First begins anew */
		qp->env->stats.qp_lost++;
		ddps_ib_resp_drop(qp);
		return;
	}
	qp->env->stats.qp_nak_tx++;
	(void)send_aeth(qp, DDPS_IB_AETH_NAK | DDPS_IB_NAK_REQUEST, p->psn);
	ddps_ib_qp_fail(qp, err, now);
}

/* RC: only the expected PSN goes on.  Return: whether it is that. */
static bool is_psn_expected(struct ddps_ib_qp *qp, const struct ddps_ib_pkt *p)
{
	int32_t d = ddps_ib_psn_diff(p->psn, qp->epsn);

	if (!d) {
		qp->nak_sent = false;
		return true;
	}
	if (d < 0) { /* its ACK may be lost; what it did is done */
		qp->env->stats.qp_duplicate++;
		ack_or_owe(qp);
		return false;
	}
	qp->env->stats.qp_gap++;
	if (!qp->nak_sent) { /* once for each gap */
		qp->env->stats.qp_nak_tx++;
		qp->nak_sent = send_aeth(qp, DDPS_IB_AETH_NAK | DDPS_IB_NAK_PSN, qp->epsn);
	}
	return false;
}

/* UC: what is lost is lost; a message that begins is taken wherever it begins (9.8.2.2.3). */
static bool begins_or_goes_on(struct ddps_ib_qp *qp, const struct ddps_ib_pkt *p, unsigned kind)
{
	if (p->psn == qp->epsn && (kind & FIRST || qp->open)) {
		if (kind & FIRST && qp->open) {
			qp->env->stats.qp_lost++;
			ddps_ib_resp_drop(qp);
		}
		return true;
	}
	if (qp->open) {
		qp->env->stats.qp_lost++;
		ddps_ib_resp_drop(qp);
	}
	if (!(kind & FIRST)) {
		qp->env->stats.qp_gap++;
		return false;
	}
	qp->epsn = p->psn;
	return true;
}

/* Is @p as long as one of its kind can be? */
static bool length_fits(const struct ddps_ib_qp *qp, const struct ddps_ib_pkt *p, unsigned kind)
{
	if ((kind & (FIRST | LAST)) == (FIRST | LAST))
		return p->len <= DDPS_IB_MTU_MAX;
	if (kind & FIRST) /* the path's MTU is the requester's choice */
		return p->len >= MTU_MIN && p->len <= DDPS_IB_MTU_MAX && !(p->len & (p->len - 1));
	if (kind & LAST)
		return p->len >= 1 && p->len <= qp->in_mtu;
	return p->len == qp->in_mtu;
}

/* Room for a message of several packets.  Return: false, after saying so. */
static bool take_rx_buffer(struct ddps_ib_qp *qp, const struct ddps_ib_pkt *p)
{
	qp->in = ddps_ib_mem_get(&qp->env->rx, qp->rx_max);
	if (qp->in) {
		qp->open = true;
		qp->in_len = 0;
		qp->in_mtu = (uint32_t)p->len;
		return true;
	}
	if (qp->uc) {
		qp->env->stats.qp_lost++;
	} else {
		qp->env->stats.qp_rnr_tx++;
		/* what follows is no gap to complain of: it comes again with this one */
		qp->nak_sent = send_aeth(qp, DDPS_IB_AETH_RNR | RNR_CODE, p->psn);
	}
	return false;
}

/* A whole message is here: nothing is touched after it has been handed over. */
static void complete_rx_message(struct ddps_ib_qp *qp, const struct ddps_ib_pkt *p, bool only,
				uint64_t now)
{
	struct ddps_ib_qp_env *env = qp->env;
	size_t len = only ? p->len : qp->in_len, held = qp->rx_max;
	uint8_t *in = qp->in;

	qp->in = NULL;
	qp->open = false;
	env->ops->message(env->user, qp, only ? p->data : in, len, now);
	ddps_ib_mem_put(&env->rx, in, held);
}

void ddps_ib_resp_rx(struct ddps_ib_qp *qp, const struct ddps_ib_pkt *p, uint64_t now)
{
	unsigned kind = get_send_kind(p->opcode & DDPS_IB_OPERATION);
	bool only = (kind & (FIRST | LAST)) == (FIRST | LAST);

	if (qp->uc ? !begins_or_goes_on(qp, p, kind) : !is_psn_expected(qp, p))
		return;
	if (!kind || !(kind & FIRST) != qp->open || !length_fits(qp, p, kind) ||
	    (!(kind & LAST) && p->pad)) {
		qp->epsn = qp->uc ? ddps_ib_psn_add(p->psn, 1) : qp->epsn;
		refuse_request(qp, p, DDPS_E_PROTOCOL, now);
		return;
	}
	if ((qp->open ? qp->in_len : 0) + p->len > qp->rx_max) {
		qp->epsn = qp->uc ? ddps_ib_psn_add(p->psn, 1) : qp->epsn;
		refuse_request(qp, p, DDPS_E_TOO_LONG, now);
		return;
	}
	if (kind & FIRST && !only && !take_rx_buffer(qp, p)) {
		qp->epsn = qp->uc ? ddps_ib_psn_add(p->psn, 1) : qp->epsn;
		return;
	}
	if (!only) { /* of one octet or more: length_fits() */
		memcpy(qp->in + qp->in_len, p->data, p->len);
		qp->in_len += (uint32_t)p->len;
	}
	qp->epsn = ddps_ib_psn_add(qp->epsn, 1);
	if (kind & LAST)
		qp->msn = ddps_ib_psn_add(qp->msn, 1);
	if (!qp->uc && p->ack_req) {
		qp->ack_owed = true;
		if (!qp->env->late_acks || ++qp->owed == OWED_MAX)
			ack_or_owe(qp);
	}
	if (kind & LAST)
		complete_rx_message(qp, p, only, now);
}
