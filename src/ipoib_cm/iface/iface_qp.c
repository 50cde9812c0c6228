/* SPDX-License-Identifier: BSD-2-Clause */
/* The queue pairs of an interface. */
#include "ipoib_cm/cm/cm_conn.h"
#include "ipoib_cm/cm/cm_own.h"
#include "ipoib_cm/iface/iface_in.h"

#define PSN_MASK 0xffffffu

uint32_t ddps_ipoib_draw(struct ddps_ipoib_if *f)
{
	uint64_t z = f->rng += 0x9e3779b97f4a7c15; /* splitmix64 */

	z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9;
	z = (z ^ z >> 27) * 0x94d049bb133111eb;
	return (uint32_t)(z ^ z >> 31);
}

static uint64_t qpn_hash(const struct ddps_ipoib_if *f, uint32_t number)
{
	return ddps_siphash(&f->key, &number, sizeof(number));
}

struct ddps_ipoib_qp *ddps_ipoib_conn_by_qpn(struct ddps_ipoib_if *f, uint32_t qpn)
{
	struct ddps_ipoib_qp *qp = f->qp_last;

	if (qp && qp->qpn == qpn)
		return qp;
	DDPS_TAB_EACH(&f->qp_by_qpn, qpn_hash(f, qpn), qp, struct ddps_ipoib_qp, by_qpn)
		if (qp->qpn == qpn) {
			f->qp_last = qp;
			return qp;
		}
	return NULL;
}

struct ddps_ipoib_qp *ddps_ipoib_conn_by_id(const struct ddps_ipoib_if *f, uint32_t id)
{
	struct ddps_ipoib_qp *qp = f->qp_last;

	if (qp && id && qp->id == id)
		return qp;
	DDPS_TAB_EACH(&f->qp_by_id, qpn_hash(f, id), qp, struct ddps_ipoib_qp, by_id)
		if (qp->id == id)
			return qp;
	return NULL;
}

void ddps_ipoib_qp_name(struct ddps_ipoib_if *f, struct ddps_ipoib_qp *qp, uint32_t id)
{
	qp->id = id;
	ddps_tab_add(&f->qp_by_id, &qp->by_id, qpn_hash(f, id));
}

static struct ddps_ipoib_qp *take_free_qp(struct ddps_ipoib_if *f)
{
	struct ddps_ipoib_qp *qp = SLIST_FIRST(&f->qp_free);

	if (qp)
		SLIST_REMOVE_HEAD(&f->qp_free, spare);
	else if (f->n_qp < f->cfg.max_qps)
		qp = &f->qp[f->n_qp++];
	return qp;
}

static void return_free_qp(struct ddps_ipoib_if *f, struct ddps_ipoib_qp *qp)
{
	qp->used = false;
	SLIST_INSERT_HEAD(&f->qp_free, qp, spare);
}

int ddps_ipoib_qp_make(struct ddps_ipoib_if *f, struct ddps_ipoib_node *n, uint8_t transport,
		       struct ddps_ipoib_qp **out)
{
	struct ddps_ipoib_qp *qp = take_free_qp(f);
	uint32_t qpn;
	int err;

	if (!qp && ddps_cm_conn_forget(f->cm)) { /* its queue pair waits for nothing else */
		ddps_ipoib_qp_collect(f);
		qp = take_free_qp(f);
	}
	if (!qp)
		return DDPS_E_LIMIT;
	err = f->port->ops->qp_create(f->port, transport, f->cfg.me.rx_mtu, &qpn);
	if (err) {
		return_free_qp(f, qp);
		return err;
	}
	*qp = (struct ddps_ipoib_qp){ .used = true,
				      .transport = transport,
				      .qpn = qpn,
				      .psn = ddps_ipoib_draw(f) & PSN_MASK,
				      .used_at = f->now,
				      .dlid = n->path.dlid,
				      .node = n };
	LIST_INSERT_HEAD(&n->qps, qp, of_node);
	n->live++;
	f->n_qp_used++;
	ddps_tab_add(&f->qp_by_qpn, &qp->by_qpn, qpn_hash(f, qpn));
	ddps_ipoib_node_weigh(f, n);
	*out = qp;
	return 0;
}

void ddps_ipoib_qp_orphan(struct ddps_ipoib_qp *qp)
{
	if (!qp->node)
		return;
	LIST_REMOVE(qp, of_node);
	qp->node->live -= !qp->stopped;
	qp->node = NULL;
}

void ddps_ipoib_qp_free(struct ddps_ipoib_if *f, struct ddps_ipoib_qp *qp)
{
	struct ddps_ipoib_node *n = qp->node;

	f->port->ops->qp_destroy(f->port, qp->qpn);
	ddps_ipoib_qp_orphan(qp);
	ddps_due_clear(&f->qp_dues, &qp->due);
	ddps_tab_del(&f->qp_by_qpn, &qp->by_qpn);
	if (f->qp_last == qp)
		f->qp_last = NULL;
	if (qp->id)
		ddps_tab_del(&f->qp_by_id, &qp->by_id);
	f->n_qp_used--;
	if (qp->looked) /* its slot is free when it is not on that list any more */
		qp->used = false;
	else
		return_free_qp(f, qp);
	if (n)
		ddps_ipoib_node_weigh(f, n);
}

/* To be looked at by ddps_ipoib_qp_collect(). */
static void note_qp_to_collect(struct ddps_ipoib_if *f, struct ddps_ipoib_qp *qp)
{
	if (qp->looked)
		return;
	qp->looked = true;
	SLIST_INSERT_HEAD(&f->qp_look, qp, spare);
}

void ddps_ipoib_qp_gone(void *user, uint32_t id)
{
	struct ddps_ipoib_qp *qp = ddps_ipoib_conn_by_id(user, id);

	if (qp)
		note_qp_to_collect(user, qp);
}

void ddps_ipoib_qp_is_used(struct ddps_ipoib_if *f, struct ddps_ipoib_qp *qp)
{
	qp->used_at = f->now;
	if (!qp->due.place) /* else it is looked at earlier, and then put off */
		ddps_due_set(&f->qp_dues, &qp->due, f->now + f->cfg.idle_ns);
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
	if (qp->by_req)
		to.path = (struct ddps_ipoib_path){ .addr = n->req_from };
	else if (!n->has_path)
		to.path.addr = n->link.addr;
	return f->port->ops->qp_ready(f->port, qp->qpn, &to);
}

/* A stopped one waits until the agent has forgotten its connection; qp_gone() says when. */
void ddps_ipoib_qp_collect(struct ddps_ipoib_if *f)
{
	struct ddps_ipoib_qp *qp;

	while ((qp = SLIST_FIRST(&f->qp_look))) {
		SLIST_REMOVE_HEAD(&f->qp_look, spare);
		qp->looked = false;
		if (!qp->used)
			return_free_qp(f, qp);
		else if (qp->stopped && ddps_cm_state(f->cm, qp->id) == DDPS_CM_ST_IDLE)
			ddps_ipoib_qp_free(f, qp);
	}
}

void ddps_ipoib_qp_stop(struct ddps_ipoib_if *f, struct ddps_ipoib_qp *qp)
{
	if (qp->stopped)
		return;
	f->stats.conn_down += qp->up;
	f->port->ops->qp_stop(f->port, qp->qpn);
	ddps_due_clear(&f->qp_dues, &qp->due);
	qp->stopped = true;
	qp->up = false;
	if (qp->node) {
		qp->node->live--;
		ddps_ipoib_node_weigh(f, qp->node);
	}
	note_qp_to_collect(f, qp);
}
