/* SPDX-License-Identifier: BSD-2-Clause */
/* Reliable connections for Sends (IBA volume 1, 9.7): nothing is repeated, what comes is judged. */
#include "conform/ipoib/peer.h"
#include <stdlib.h>
#include <string.h>

#define PSN 0xffffffu

struct ci_qp *ci_qp_new(struct ci *ci)
{
	for (unsigned i = 0; i < CI_QPS; i++) {
		struct ci_qp *qp = &ci->qp[i];

		if (qp->used)
			continue;
		free(qp->in);
		*qp = (struct ci_qp){ .used = true, .qpn = 0x800000 | (ci->next_qpn++ & 0x7fffff) };
		qp->epsn = qp->first = (ci->random * 40503u + qp->qpn) & PSN;
		qp->mtu = 256u << (ci->plan.mtu - 1);
		if (ci->fab.used)
			ci_fab_qp_new(ci, qp);
		return qp;
	}
	ci_fail(ci, "the peer is out of queue pairs");
}

void ci_qp_packet(struct ci *ci, struct ci_qp *qp, unsigned op, const void *b, size_t len)
{
	struct ci_pkt p = { .op = (uint8_t)op,
			    .pkey = ci->plan.pkey,
			    .qpn = qp->peer,
			    .psn = qp->psn,
			    .ack_req = true,
			    .data = b,
			    .len = len };

	ci_packet(ci, ci->target.lid, &p);
	qp->psn = (qp->psn + 1) & PSN;
}

void ci_qp_send(struct ci *ci, struct ci_qp *qp, const void *b, size_t len)
{
	const uint8_t *at = b;

	if (ci->fab.used) {
		ci_fab_qp_send(ci, qp, b, len);
		return;
	}
	for (size_t off = 0; off < len; off += qp->mtu) {
		size_t n = len - off < qp->mtu ? len - off : qp->mtu;
		bool last = off + n == len;
		unsigned op = !off ? (last ? CI_ONLY : CI_FIRST) : last ? CI_LAST : CI_MIDDLE;

		ci_qp_packet(ci, qp, op, at + off, n);
		/* so that no buffer on the way is full */
		if ((off / qp->mtu & 7) == 7)
			ci_pump(ci, 0);
	}
}

static void qp_ack(struct ci *ci, struct ci_qp *qp, uint8_t syndrome, uint32_t psn)
{
	struct ci_pkt p = { .op = CI_ACK,
			    .pkey = ci->plan.pkey,
			    .qpn = qp->peer,
			    .psn = psn & PSN,
			    .syndrome = syndrome,
			    .msn = qp->msn };

	ci_packet(ci, ci->target.lid, &p);
}

static struct ci_qp *find_rc_qp(struct ci *ci, uint32_t qpn)
{
	for (unsigned i = 0; i < CI_QPS; i++)
		if (ci->qp[i].used && ci->qp[i].qpn == qpn)
			return &ci->qp[i];
	return NULL;
}

/* A packet in its turn.  Return: whether it can be. */
static bool collect_rc_packet(struct ci *ci, struct ci_qp *qp, const struct ci_pkt *p)
{
	bool begins = p->op == CI_FIRST || p->op == CI_ONLY;
	bool ends = p->op == CI_LAST || p->op == CI_ONLY;
	struct ci_ev *e;

	if (!qp->in)
		qp->in = malloc(CI_MSG_MAX);
	if (!qp->in || begins != !qp->n_in || p->len > qp->mtu || (!ends && p->len != qp->mtu) ||
	    qp->in_len + p->len > CI_MSG_MAX) {
		ci_lint(ci, CI_LINT_PACKET,
			"a packet of operation %02x with %zu octets out of its order", p->op,
			p->len);
		return false;
	}
	memcpy(qp->in + qp->in_len, p->data, p->len);
	qp->in_len += p->len;
	qp->n_in++;
	if (!ends)
		return true;
	if (qp->in_len < CI_ENCAP || qp->in[2] || qp->in[3])
		ci_lint(ci, CI_LINT_ENCAP, "encapsulation header %s",
			cf_hex(qp->in, qp->in_len < CI_ENCAP ? qp->in_len : CI_ENCAP));
	e = ci_event(ci, CI_EV_MSG, qp->in, qp->in_len);
	e->qp = qp;
	e->packets = qp->n_in;
	qp->msn = (qp->msn + 1) & PSN;
	qp->n_in = 0;
	qp->in_len = 0;
	return true;
}

void ci_qp_rx(struct ci *ci, const struct ci_pkt *p)
{
	struct ci_qp *qp = find_rc_qp(ci, p->qpn);
	struct ci_ev *e;

	if (!qp)
		return;
	if (p->op == CI_ACK) {
		e = ci_event(ci, CI_EV_ACK, NULL, 0);
		e->qp = qp;
		e->syndrome = p->syndrome;
		e->psn = p->psn;
		e->msn = p->msn;
		return;
	}
	if (qp->nak) {
		qp_ack(ci, qp, qp->nak, p->psn);
		return;
	}
	if (p->psn == qp->epsn && collect_rc_packet(ci, qp, p)) {
		qp->epsn = (qp->epsn + 1) & PSN;
		if (p->ack_req)
			qp_ack(ci, qp, CI_AETH_ACK, p->psn);
	} else if (((p->psn - qp->epsn) & PSN) > PSN / 2) {
		qp_ack(ci, qp, CI_AETH_ACK, qp->epsn - 1);
	} else if (p->psn != qp->epsn) {
		qp_ack(ci, qp, CI_NAK_PSN, qp->epsn);
	}
}

void ci_want_acked(struct ci *ci, struct ci_qp *qp)
{
	uint64_t until = ci_limit(ci, CI_PART_DATA);
	uint32_t last = (qp->psn - 1) & PSN;
	struct ci_ev *e;

	if (ci->fab.used) {
		ci_fab_want_acked(ci, qp);
		return;
	}
	ci_due(ci, "an ACK of what we sent, PSN %06x", last);
	while ((e = ci_await(ci, CI_EV_ACK, until))) {
		if (e->qp != qp)
			continue;
		CI_CHECK(ci, e->syndrome >> 5 == 0,
			 "syndrome %02x for PSN %06x where an ACK is due", e->syndrome, e->psn);
		CI_CHECK(ci, ((last - e->psn) & PSN) <= PSN / 2,
			 "PSN %06x is acknowledged, %06x was the last one sent", e->psn, last);
		if (e->psn != last)
			continue;
		ci_heard(ci, CI_PART_DATA);
		return;
	}
	ci_fail(ci, "no ACK of PSN %06x", last);
}

uint32_t ci_want_nak(struct ci *ci, struct ci_qp *qp, uint8_t syndrome)
{
	uint64_t until = ci_limit(ci, CI_PART_DATA);
	struct ci_ev *e;

	ci_due(ci, "a NAK with syndrome %02x, which refuses our packet", syndrome);
	while ((e = ci_await(ci, CI_EV_ACK, until))) {
		if (e->qp != qp || e->syndrome >> 5 == 0)
			continue;
		CI_CHECK(ci, e->syndrome == syndrome, "NAK %02x, not %02x", e->syndrome, syndrome);
		ci_got(ci);
		return e->psn;
	}
	ci_fail(ci, "no NAK %02x", syndrome);
}

void ci_echo_rc(struct ci *ci, struct ci_conn *c, size_t ip_len)
{
	ci_qp_send(ci, c->qp, ci->frame, ci_echo(ci, ci->frame, ip_len));
}

void ci_qp_refuse(struct ci *ci, struct ci_qp *qp)
{
	qp->nak = CI_NAK_REQUEST;
	if (ci->fab.used)
		ci_fab_qp_stop(ci, qp);
}
