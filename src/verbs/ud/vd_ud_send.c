/* SPDX-License-Identifier: BSD-2-Clause */
/* The way out: requests are checked and copied when they are posted, and wait if they must. */
#include "verbs/ib/vd_memory.h"
#include "verbs/ib/vd_qp.h"
#include "verbs/ud/vd_ud_in.h"
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define FLAGS (IBV_SEND_FENCE | IBV_SEND_SIGNALED | IBV_SEND_SOLICITED | IBV_SEND_INLINE)

static void complete_ud_send(struct vd_ud_qp *u, const struct ud_sqe *e, enum ibv_wc_status status,
			     uint32_t vendor)
{
	struct ibv_wc wc = { .wr_id = e->wr_id,
			     .status = status,
			     .opcode = IBV_WC_SEND,
			     .vendor_err = vendor,
			     .qp_num = u->qp->qp.qp_base.qp_num };

	if (e->signalled || status)
		ud_complete(u, u->qp->qp.qp_base.send_cq, &wc, false);
}

/* Whether it need not wait any more: it has gone, or is lost as datagrams may be. */
static bool transmit_datagram(struct vd_ud_qp *u, struct ud_sqe *e, uint64_t now)
{
	struct ud_peer *peer = e->group || e->lost ? NULL : ud_peer_of(u, &e->to);
	uint64_t open_until;
	uint8_t header[UD_HEADER];
	struct iovec iov[2] = { { header, sizeof header }, { e->data, e->len } };
	char why[80];
	int err;

	if (e->lost) {
		u->stats.unreachable++;
		ud_why_not_there(u, VD_WHY_NOBODY, e,
				 "is lost: no queue pair for datagrams has this number");
		return true;
	}
	open_until = peer ? peer->open_until : 0;
	if (peer && !ud_peer_ready(peer, e->len, now, &u->retry_at))
		return false;
	if (open_until && peer->open_until > open_until)
		ud_why_not_there(u, VD_WHY_SILENT, e,
				 "may be lost: nothing was acknowledged for a second, so nobody "
				 "may be there, or no receive");
	if (peer)
		ud_peer_sent(peer, e->len, &e->h);
	ud_put(&e->h, header);
	err = ud_send(&u->unicast.sock, &e->to, NULL, e->hops, iov, 2);
	if (err == EAGAIN || err == ENOBUFS) {
		u->retry_at = now + 1;
		return false;
	}
	if (err) {
		u->stats.unreachable++;
		snprintf(why, sizeof why, "cannot be sent: %s", strerror(err));
		ud_why_not_there(u, VD_WHY_SEND, e, why);
	} else {
		u->stats.sent++;
		u->stats.sent_octets += e->len;
	}
	return true;
}

/* The oldest one's turn.  Return: whether it is through. */
static bool send_oldest(struct vd_ud_qp *u, struct ud_sqe *e, uint64_t now)
{
	const enum ibv_qp_state state = ud_state(u);

	if (state == IBV_QPS_SQD)
		return false;
	if (state != IBV_QPS_RTS) {
		complete_ud_send(u, e, IBV_WC_WR_FLUSH_ERR, 4);
		return true;
	}
	if (e->status) {
		ud_why_not_there(u, VD_WHY_SEND, e,
				 e->vendor == 5 ? "cannot be sent: it is longer than the MTU"
						: "cannot be sent: its memory has a wrong key, "
						  "or ends before it");
		complete_ud_send(u, e, e->status, e->vendor);
		ud_set_state(u, IBV_QPS_SQE);
		return true;
	}
	if (!transmit_datagram(u, e, now))
		return false;
	complete_ud_send(u, e, IBV_WC_SUCCESS, 0);
	return true;
}

static void pop_ud_send(struct vd_ud_qp *u)
{
	struct ud_sqe *e = STAILQ_FIRST(&u->sq);

	STAILQ_REMOVE_HEAD(&u->sq, link);
	u->ud->waiting -= STAILQ_EMPTY(&u->sq);
	u->nsq--;
	free(e);
}

void ud_push(struct vd_ud_qp *u, uint64_t now)
{
	ddps_assert_held(&u->ud->lock);
	/* Until somebody wakes it: held back in SQD. */
	u->retry_at = UINT64_MAX;
	while (!STAILQ_EMPTY(&u->sq) && send_oldest(u, STAILQ_FIRST(&u->sq), now))
		pop_ud_send(u);
}

void ud_flush_sends(struct vd_ud_qp *u)
{
	ddps_assert_held(&u->ud->lock);
	while (!STAILQ_EMPTY(&u->sq)) {
		complete_ud_send(u, STAILQ_FIRST(&u->sq), IBV_WC_WR_FLUSH_ERR, 4);
		pop_ud_send(u);
	}
}

void ud_drop_sends(struct vd_ud_qp *u)
{
	ddps_assert_held(&u->ud->lock);
	while (!STAILQ_EMPTY(&u->sq))
		pop_ud_send(u);
}

static int wait_behind(struct vd_ud_qp *u, const struct ud_sqe *e)
{
	const size_t size = offsetof(struct ud_sqe, data) + e->len;
	struct ud_sqe *copy = malloc(size);

	if (!copy)
		return ENOMEM;
	memcpy(copy, e, size);
	u->ud->waiting += STAILQ_EMPTY(&u->sq);
	STAILQ_INSERT_TAIL(&u->sq, copy, link);
	u->nsq++;
	return 0;
}

/* ---- posting ---- */

static int gather_inline(const struct ibv_send_wr *wr, struct ud_sqe *e)
{
	uint64_t len = 0;

	for (int i = 0; i < wr->num_sge; i++)
		len += wr->sg_list[i].length;
	if (len > VD_MAX_INLINE)
		return EINVAL;
	for (int i = 0; i < wr->num_sge; i++) {
		const struct ibv_sge *s = &wr->sg_list[i];

		if (s->length)
			memcpy(e->data + e->len, (const void *)(uintptr_t)s->addr, s->length);
		e->len += s->length;
	}
	return 0;
}

/* What is wrong with its memory is reported by its completion, as for any request. */
static int gather_datagram(struct vd_ud_qp *u, const struct ibv_send_wr *wr, struct ud_sqe *e)
{
	struct ddps_sge sge[VD_MAX_SGE];
	int err = vd_pieces(u->qp->qp.qp_base.context, wr->sg_list, wr->num_sge,
			    u->qp->init.cap.max_send_sge, sge);

	if (err)
		return err;
	if (wr->send_flags & IBV_SEND_INLINE)
		return gather_inline(wr, e);
	e->len = u->mtu;
	err = ddps_sge_gather(u->pd, sge, (uint32_t)wr->num_sge, e->data, &e->len);
	if (!err)
		return 0;
	e->len = 0;
	e->status = err == DDPS_E_TOO_LONG ? IBV_WC_LOC_LEN_ERR : IBV_WC_LOC_PROT_ERR;
	e->vendor = err == DDPS_E_TOO_LONG ? 5 : 1;
	return err == DDPS_E_TOO_LONG || err == DDPS_E_ACCESS ? 0 : vd_errno(err);
}

/* The port that a number leads to; one that is no datagram queue pair's leads nowhere. */
static void address_datagram(const struct vd_ah *ah, uint32_t qpn, struct ud_sqe *e)
{
	const uint32_t high = qpn >> 16;

	e->to = ah->to;
	e->group = ah->group;
	e->hops = ah->hops;
	e->to.port = ah->group ? UD_PORT_MCAST : (uint16_t)qpn;
	e->lost = !ah->group && (high < UD_QPN_FIRST || high > UD_QPN_LAST || !e->to.port);
	e->h.dest = ah->group ? UD_QPN_MCAST : qpn;
}

static int build_ud_send(struct vd_ud_qp *u, const struct ibv_send_wr *wr, struct ud_sqe *e)
{
	const struct vd_ah *ah = wr->wr.ud.ah ? vd_of(wr->wr.ud.ah, struct vd_ah, ah) : NULL;

	if ((wr->opcode != IBV_WR_SEND && wr->opcode != IBV_WR_SEND_WITH_IMM) || !ah ||
	    wr->send_flags & ~(unsigned)FLAGS || wr->wr.ud.remote_qpn > VD_QPN_MASK ||
	    vd_of(ah->ah.pd, struct vd_pd, pd)->d != u->pd)
		return EINVAL;
	e->wr_id = wr->wr_id;
	e->signalled = wr->send_flags & IBV_SEND_SIGNALED || u->qp->init.sq_sig_all;
	e->status = IBV_WC_SUCCESS;
	e->vendor = 0;
	e->len = 0;
	e->h = (struct ud_header){ .type = UD_DATA,
				   .src = u->qp->qp.qp_base.qp_num,
				   .qkey = wr->wr.ud.remote_qkey,
				   .ack_port = u->ud->ack_port };
	if (e->h.qkey & UD_QKEY_OWN) /* a controlled one is the queue pair's own */
		e->h.qkey = u->qkey;
	if (wr->opcode == IBV_WR_SEND_WITH_IMM) {
		e->h.flags |= UD_F_IMM;
		e->h.imm = wr->imm_data;
	}
	if (wr->send_flags & IBV_SEND_SOLICITED)
		e->h.flags |= UD_F_SOLICITED;
	address_datagram(ah, wr->wr.ud.remote_qpn, e);
	return gather_datagram(u, wr, e);
}

static int post_datagram(struct vd_ud_qp *u, const struct ibv_send_wr *wr)
{
	const enum ibv_qp_state state = ud_state(u);
	struct ud_sqe e;
	int err;

	if (state != IBV_QPS_RTS && state != IBV_QPS_SQD && state != IBV_QPS_SQE &&
	    state != IBV_QPS_ERR)
		return EINVAL;
	if (u->nsq == u->qp->init.cap.max_send_wr)
		return ENOMEM;
	err = build_ud_send(u, wr, &e);
	err = err ? err : vd_take_place(u->qp, wr);
	if (err || (STAILQ_EMPTY(&u->sq) && send_oldest(u, &e, ud_now_ms())))
		return err;
	err = wait_behind(u, &e);
	if (err)
		vd_leave_place(u->qp, wr);
	else if (u->nsq == 1)
		ud_wake(u->ud); /* somebody has to look when it is due */
	return err;
}

int vd_ud_post_send(struct vd_qp *qp, struct ibv_send_wr *wr, struct ibv_send_wr **bad)
{
	struct vd_ud_qp *u = qp->ud;
	int err = 0;

	ddps_assert_held(&qp->lock);
	if (!ud_mine(u->ud)) {
		*bad = wr;
		return EINVAL; /* the parent's, from before a fork */
	}
	ddps_lock(&u->ud->lock);
	for (; wr && !err; wr = wr->next) {
		err = post_datagram(u, wr);
		if (err)
			*bad = wr;
	}
	ddps_unlock(&u->ud->lock);
	return err;
}
