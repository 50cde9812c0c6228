/* SPDX-License-Identifier: BSD-2-Clause */
/* The queue pairs of an interface. */
#include "ipoib_cm/iface/iface_in.h"

#define PSN_MASK 0xffffffu

static uint32_t psn(struct ddps_ipoib_if *f)
{
	uint64_t z = f->rng += 0x9e3779b97f4a7c15; /* splitmix64 */

	z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9;
	z = (z ^ z >> 27) * 0x94d049bb133111eb;
	return (uint32_t)(z ^ z >> 31) & PSN_MASK;
}

struct ddps_ipoib_qp *ddps_ipoib_conn_by_qpn(struct ddps_ipoib_if *f, uint32_t qpn)
{
	for (unsigned i = 0; i < f->n_qp; i++)
		if (f->qp[i].used && f->qp[i].qpn == qpn)
			return &f->qp[i];
	return NULL;
}

struct ddps_ipoib_qp *ddps_ipoib_conn_by_id(const struct ddps_ipoib_if *f, uint32_t id)
{
	for (unsigned i = 0; id && i < f->n_qp; i++)
		if (f->qp[i].used && f->qp[i].id == id)
			return &f->qp[i];
	return NULL;
}

int ddps_ipoib_qp_make(struct ddps_ipoib_if *f, struct ddps_ipoib_node *n, uint8_t transport,
		       struct ddps_ipoib_qp **out)
{
	struct ddps_ipoib_qp *qp = NULL;
	uint32_t qpn;
	int err;

	for (unsigned i = 0; i < f->n_qp && !qp; i++)
		if (!f->qp[i].used)
			qp = &f->qp[i];
	if (!qp && f->n_qp < f->cfg.max_qps)
		qp = &f->qp[f->n_qp++];
	if (!qp)
		return DDPS_E_LIMIT;
	err = f->port->ops->qp_create(f->port, transport, f->cfg.me.rx_mtu, &qpn);
	if (err)
		return err;
	*qp = (struct ddps_ipoib_qp){ .used = true,
				      .transport = transport,
				      .qpn = qpn,
				      .psn = psn(f),
				      .used_at = f->now,
				      .node = n };
	*out = qp;
	return 0;
}

void ddps_ipoib_qp_free(struct ddps_ipoib_if *f, struct ddps_ipoib_qp *qp)
{
	f->port->ops->qp_destroy(f->port, qp->qpn);
	qp->used = false;
}

int ddps_ipoib_qp_ready(struct ddps_ipoib_if *f, struct ddps_ipoib_qp *qp, uint32_t qpn,
			uint32_t starting_psn, const uint8_t *priv)
{
	const struct ddps_ipoib_node *n = qp->node;
	struct ddps_ipoib_qp_to to = { .qpn = qpn,
				       .tx_psn = starting_psn,
				       .rx_psn = qp->psn,
				       .active = qp->active,
				       .peer = n->lladdr,
				       .path = n->path,
				       .ack_timeout = ddps_cm_ack_timeout(n->path.life, 0),
				       .retry_count = f->cfg.retry_count,
				       .rnr_retry = f->cfg.rnr_retry };
	struct ddps_ipoib_priv p;

	ddps_ipoib_priv_decode(&p, priv, DDPS_IPOIB_PRIV_LEN);
	to.rx_mtu = p.rx_mtu;
	if (!n->has_path)
		to.path.addr = n->link.addr;
	return f->port->ops->qp_ready(f->port, qp->qpn, &to);
}

void ddps_ipoib_qp_collect(struct ddps_ipoib_if *f)
{
	for (unsigned i = 0; i < f->n_qp; i++)
		if (f->qp[i].used && f->qp[i].stopped &&
		    ddps_cm_state(f->cm, f->qp[i].id) == DDPS_CM_ST_IDLE)
			ddps_ipoib_qp_free(f, &f->qp[i]);
}

void ddps_ipoib_qp_stop(struct ddps_ipoib_if *f, struct ddps_ipoib_qp *qp)
{
	if (qp->stopped)
		return;
	f->stats.conn_down += qp->up;
	f->port->ops->qp_stop(f->port, qp->qpn);
	qp->stopped = true;
	qp->up = false;
}
