/* SPDX-License-Identifier: BSD-2-Clause */
/* The UD queue pair: datagrams of the link. */
#include "ipoib_cm/verbs/vport_in.h"
#include <errno.h>
#include <string.h>

#define GRH_SGID 8
#define GRH_DGID 24

/* ---- the queue pair ---- */

static void post_ud_receives(struct ddps_ib_verbs *v)
{
	struct vp_pool *p = &v->pool[VP_UD_IN];
	uint32_t i;

	while ((i = ddps_vport_take(p)) != VP_NONE) {
		struct ibv_sge sge = ddps_vport_sge(p, i, VP_UD_LEN);
		struct ibv_recv_wr wr = { .wr_id = ddps_vport_wr_id(p, i),
					  .sg_list = &sge,
					  .num_sge = 1 };
		struct ibv_recv_wr *bad;

		if (v->lib.post_recv(v->ud, &wr, &bad)) {
			ddps_vport_give(p, i);
			return; /* again with the next completion, or when it is rebuilt */
		}
	}
}

static int move_ud_to_rts(struct ddps_ib_verbs *v)
{
	struct ibv_qp_attr a = { .qp_state = IBV_QPS_INIT,
				 .pkey_index = v->pkey_index,
				 .port_num = v->info.port,
				 .qkey = v->qkey };
	int err = v->lib.modify_qp(v->ud, &a,
				   IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_QKEY);

	if (!err) {
		post_ud_receives(v);
		a.qp_state = IBV_QPS_RTR;
		err = v->lib.modify_qp(v->ud, &a, IBV_QP_STATE);
	}
	if (!err) {
		a.qp_state = IBV_QPS_RTS;
		a.sq_psn = v->ud_psn++ & 0xffffff;
		err = v->lib.modify_qp(v->ud, &a, IBV_QP_STATE | IBV_QP_SQ_PSN);
	}
	if (!err)
		return 0;
	ddps_vport_say(v, "%s: the datagram queue pair: %s", v->info.device, strerror(err));
	errno = err;
	return DDPS_E_SYSTEM;
}

int ddps_vport_ud_new(struct ddps_ib_verbs *v)
{
	struct ibv_qp_init_attr a = { .send_cq = v->tx_cq,
				      .recv_cq = v->rx_cq,
				      .cap = { .max_send_wr = VP_UD_TX,
					       .max_recv_wr = VP_UD_RX,
					       .max_send_sge = 1,
					       .max_recv_sge = 1 },
				      .qp_type = IBV_QPT_UD,
				      .sq_sig_all = 1 };
	int err = ddps_vport_pool_new(v, VP_UD_IN, VP_UD_RX, VP_UD_LEN);

	if (!err)
		err = ddps_vport_pool_new(v, VP_UD_OUT, VP_UD_TX, VP_UD_LEN);
	if (err)
		return err;
	v->ud = v->lib.create_qp(v->pd, &a);
	if (!v->ud) {
		ddps_vport_say(v, "%s gives no datagram queue pair: %s", v->info.device,
			       strerror(errno));
		return DDPS_E_SYSTEM;
	}
	v->info.qpn = v->ud->qp_num;
	return move_ud_to_rts(v);
}

void ddps_vport_ud_free(struct ddps_ib_verbs *v)
{
	if (v->ud)
		v->lib.destroy_qp(v->ud);
	v->ud = NULL;
	ddps_vport_pool_free(v, &v->pool[VP_UD_IN]);
	ddps_vport_pool_free(v, &v->pool[VP_UD_OUT]);
}

static void give_sent(struct ddps_ib_verbs *v, uint32_t i)
{
	struct vp_buf *b = &v->pool[VP_UD_OUT].buf[i];

	if (b->owner != VP_NONE)
		v->ah[b->owner].refs--;
	ddps_vport_give(&v->pool[VP_UD_OUT], i);
}

int ddps_vport_ud_rebuild(struct ddps_ib_verbs *v)
{
	struct ibv_qp_attr a = { .qp_state = IBV_QPS_RESET };

	v->stats.ud_rebuilt++;
	if (v->lib.modify_qp(v->ud, &a, IBV_QP_STATE)) {
		ddps_vport_say(v, "%s: the datagram queue pair cannot be reset", v->info.device);
		return DDPS_E_SYSTEM;
	}
	/* nothing of it is with the adapter any more; completions of before have other numbers */
	for (uint32_t i = 0; i < v->pool[VP_UD_OUT].n; i++)
		if (v->pool[VP_UD_OUT].buf[i].out)
			give_sent(v, i);
	for (uint32_t i = 0; i < v->pool[VP_UD_IN].n; i++)
		if (v->pool[VP_UD_IN].buf[i].out)
			ddps_vport_give(&v->pool[VP_UD_IN], i);
	return move_ud_to_rts(v);
}

/* The link's key is known after the join.  Bit 31 is for the privileged. */
int ddps_vport_ud_qkey(struct ddps_ib_verbs *v, uint32_t qkey)
{
	struct ibv_qp_attr a = { .qkey = qkey };
	int err;

	if (v->qkey == qkey)
		return 0;
	err = v->lib.modify_qp(v->ud, &a, IBV_QP_QKEY);
	if (!err) {
		v->qkey = qkey;
		return 0;
	}
	ddps_vport_say(v, "%s does not take the link's Q_Key 0x%08x: %s%s", v->info.device, qkey,
		       strerror(err),
		       err == EPERM ? "; try: CAP_NET_RAW, or: rdma system set privileged-qkey on"
				    : "");
	errno = err;
	return DDPS_E_SYSTEM;
}

/* ---- out ---- */

static void see_ud_frame(struct ddps_ib_verbs *v, const struct ddps_ib_seen *s)
{
	if (v->cfg.see)
		v->cfg.see(v->cfg.see_user, s);
}

static bool post_ud_send(struct ddps_ib_verbs *v, uint32_t i, uint32_t ah, uint32_t qpn, size_t len)
{
	const struct vp_pool *p = &v->pool[VP_UD_OUT];
	struct ibv_sge sge = ddps_vport_sge(p, i, len);
	struct ibv_send_wr wr = { .wr_id = ddps_vport_wr_id(p, i),
				  .sg_list = &sge,
				  .num_sge = 1,
				  .opcode = IBV_WR_SEND };
	struct ibv_send_wr *bad;

	wr.wr.ud.ah = v->ah[ah].ah;
	wr.wr.ud.remote_qpn = qpn;
	wr.wr.ud.remote_qkey = v->qkey; /* [4391-9.1.2-1] */
	return !v->lib.post_send(v->ud, &wr, &bad);
}

int ddps_vport_ud_send(struct ddps_ib_verbs *v, const struct vp_way *w, const uint8_t *gid,
		       uint32_t qpn, const void *frame, size_t len)
{
	struct vp_pool *p = &v->pool[VP_UD_OUT];
	const struct ddps_ib_seen seen = { .tx = true,
					   .slid = v->info.lid,
					   .dlid = w->dlid,
					   .from_qpn = v->info.qpn,
					   .to_qpn = qpn,
					   .qkey = v->qkey,
					   .group = qpn == DDPS_IPOIB_QPN_MCAST ? gid : NULL,
					   .frame = frame,
					   .len = len,
					   .from_gid = v->info.gid,
					   .to_gid = gid };
	uint32_t i, ah;

	if (!v->has_link || !v->info.active)
		return DDPS_E_AGAIN;
	if (len > 128u << (v->link.mtu & 0x3f))
		return DDPS_E_TOO_LONG;
	ah = ddps_vport_ah(v, w);
	i = ah == VP_NONE ? VP_NONE : ddps_vport_take(p);
	if (i == VP_NONE) {
		v->stats.tx_full++;
		return DDPS_E_AGAIN;
	}
	memcpy(ddps_vport_mem(p, i), frame, len);
	if (!post_ud_send(v, i, ah, qpn, len)) {
		ddps_vport_give(p, i);
		v->stats.tx_full++;
		return DDPS_E_AGAIN;
	}
	p->buf[i].owner = ah;
	v->ah[ah].refs++;
	v->stats.ud_tx++;
	see_ud_frame(v, &seen);
	return 0;
}

void ddps_vport_ud_sent(struct ddps_ib_verbs *v, const struct ibv_wc *wc, uint32_t i)
{
	give_sent(v, i);
	if (wc->status == IBV_WC_SUCCESS)
		return;
	v->stats.ud_failed++;
	if (wc->status != IBV_WC_WR_FLUSH_ERR) /* the queue pair sends no more after it */
		(void)ddps_vport_ud_rebuild(v);
}

/* ---- in ---- */

/* RoCE has no LIDs, and queue pairs of two nodes may have the same number. */
static bool is_own(const struct ddps_ib_verbs *v, const struct ibv_wc *wc, const uint8_t *sgid)
{
	if (wc->src_qp != v->info.qpn)
		return false;
	return v->info.roce ? !memcmp(sgid, v->info.gid, sizeof(v->info.gid))
			    : (wc->slid & ~((1u << v->info.lmc) - 1)) == v->info.lid;
}

/* [4391-6-6]: the 40 octets are there in any case, and mean something only with the flag. */
static void deliver_ud(struct ddps_ib_verbs *v, const struct ibv_wc *wc, const uint8_t *b)
{
	const bool grh = wc->wc_flags & IBV_WC_GRH;
	struct ddps_ipoib_ud_from from = { .qpn = wc->src_qp, .slid = wc->slid, .has_gid = grh };
	struct ddps_ib_seen seen = { .slid = wc->slid,
				     .dlid = v->info.lid,
				     .from_qpn = wc->src_qp,
				     .to_qpn = v->info.qpn,
				     .qkey = v->qkey,
				     .frame = b + VP_GRH,
				     .len = wc->byte_len - VP_GRH,
				     .to_gid = v->info.gid };

	if (grh) {
		v->stats.ud_rx_grh++;
		memcpy(from.gid, b + GRH_SGID, sizeof(from.gid));
		from.multicast = b[GRH_DGID] == 0xff;
		seen.from_gid = b + GRH_SGID;
		seen.to_gid = b + GRH_DGID;
		if (from.multicast)
			seen.group = b + GRH_DGID;
	}
	if (is_own(v, wc, from.gid)) {
		v->stats.ud_own++;
		return;
	}
	v->stats.ud_rx++;
	see_ud_frame(v, &seen);
	v->cfg.up->ud(v->user, &from, seen.frame, seen.len, v->now);
}

void ddps_vport_ud_rx(struct ddps_ib_verbs *v, const struct ibv_wc *wc, uint32_t i)
{
	struct vp_pool *p = &v->pool[VP_UD_IN];

	if (wc->status == IBV_WC_SUCCESS && wc->byte_len >= VP_GRH && wc->byte_len <= VP_UD_LEN)
		deliver_ud(v, wc, ddps_vport_mem(p, i));
	else if (wc->status != IBV_WC_WR_FLUSH_ERR)
		v->stats.rx_bad++;
	ddps_vport_give(p, i);
	if (wc->status != IBV_WC_WR_FLUSH_ERR) /* else it has failed, and posting brings no more */
		post_ud_receives(v);
}
