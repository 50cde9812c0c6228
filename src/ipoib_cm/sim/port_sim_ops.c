/* SPDX-License-Identifier: BSD-2-Clause */
/* The fabric in memory: what a port of it does with what it is given. */
#include <stdlib.h>
#include <string.h>
#include "ipoib_cm/sim/port_sim_in.h"

#define NODE(port) ((struct sim_node *)(port))
#define MAX_QPS	   4096
#define QPN_MASK   0xffffffu

_Static_assert(offsetof(struct sim_node, port) == 0, "NODE() relies on it");

/* What an event has of a message other than its octets. */
struct sim_flight {
	struct ddps_ipoib_ud_from ud;
	uint32_t qpn;
	const uint8_t *gid; /* or NULL */
};

/* Posts a message that may be lost, late or doubled.  Return: the last copy, or NULL. */
static struct sim_event *post_flight(struct sim_node *n, enum sim_kind kind, unsigned to,
				     const void *data, size_t len, const struct sim_flight *like)
{
	struct ddps_ipoib_sim *s = n->sim;
	struct sim_event *e = NULL;

	if (n->down || ddps_ipoib_sim_chance(s, s->cfg.faults.loss)) {
		s->stats.lost++;
		return NULL;
	}
	for (unsigned copies = 1 + ddps_ipoib_sim_chance(s, s->cfg.faults.dup); copies; copies--) {
		s->stats.duplicated += e != NULL;
		e = ddps_ipoib_sim_post(s, kind, to, s->now + ddps_ipoib_sim_delay(s), data, len);
		if (!e)
			break;
		e->from = n->lid;
		e->ud = like->ud;
		e->qpn = like->qpn;
		if (like->gid)
			memcpy(e->gid, like->gid, sizeof(e->gid));
	}
	return e;
}

/* To whoever has that LID; nobody hears what has gone to none. */
static void fly_to(struct sim_node *n, enum sim_kind kind, ddps_cm_addr lid, const void *data,
		   size_t len, const struct sim_flight *like)
{
	const struct sim_node *to = ddps_ipoib_sim_lid(n->sim, lid);

	if (to)
		(void)post_flight(n, kind, to->nr, data, len, like);
	else
		n->sim->stats.lost++;
}

static bool is_member(const struct sim_node *n, const uint8_t *mgid)
{
	for (unsigned i = 0; i < n->n_group; i++)
		if (memcmp(n->group[i], mgid, DDPS_IPOIB_GID_LEN) == 0)
			return true;
	return false;
}

static int sim_ud_send(struct ddps_ipoib_port *port, const struct ddps_ipoib_lladdr *to,
		       const struct ddps_ipoib_path *path, const void *frame, size_t len)
{
	struct sim_node *n = NODE(port);
	struct ddps_ipoib_sim *s = n->sim;
	struct sim_flight like = { .qpn = to->qpn };

	if (len > s->cfg.link_mtu)
		return DDPS_E_TOO_LONG;
	like.ud.qpn = n->user.addr.qpn;
	like.ud.slid = n->lid;
	like.ud.multicast = to->qpn == DDPS_IPOIB_QPN_MCAST;
	/* [4391-6-6] a GRH is certain for groups only */
	like.ud.has_gid = like.ud.multicast || ddps_ipoib_sim_random(s, 2);
	memcpy(like.ud.gid, n->user.addr.gid, sizeof(like.ud.gid));
	if (!like.ud.multicast) {
		if (!path || !path->addr || path->addr >= SIM_LIDS)
			return DDPS_E_ADDRESS;
		fly_to(n, SIM_UD, path->addr, frame, len, &like);
		return 0;
	}
	for (unsigned i = 0; i < s->cfg.nodes; i++)
		if (i != n->nr && is_member(&s->node[i], to->gid))
			(void)post_flight(n, SIM_UD, i, frame, len, &like);
	return 0;
}

static int sim_join(struct ddps_ipoib_port *port, const uint8_t mgid[DDPS_IPOIB_GID_LEN])
{
	struct sim_node *n = NODE(port);
	const struct sim_flight like = { .gid = mgid };

	if (!is_member(n, mgid)) {
		if (n->n_group == SIM_GROUPS)
			return DDPS_E_LIMIT;
		memcpy(n->group[n->n_group++], mgid, DDPS_IPOIB_GID_LEN);
	}
	(void)post_flight(n, SIM_JOINED, n->nr, NULL, 0, &like);
	return 0;
}

static void sim_leave(struct ddps_ipoib_port *port, const uint8_t mgid[DDPS_IPOIB_GID_LEN])
{
	struct sim_node *n = NODE(port);

	for (unsigned i = 0; i < n->n_group; i++)
		if (memcmp(n->group[i], mgid, DDPS_IPOIB_GID_LEN) == 0) {
			memmove(n->group[i], n->group[--n->n_group], DDPS_IPOIB_GID_LEN);
			return;
		}
}

static int sim_resolve(struct ddps_ipoib_port *port, const uint8_t gid[DDPS_IPOIB_GID_LEN])
{
	const struct sim_flight like = { .gid = gid };

	(void)post_flight(NODE(port), SIM_PATH, NODE(port)->nr, NULL, 0, &like);
	return 0;
}

static int sim_mad_send(struct ddps_ipoib_port *port, ddps_cm_addr to,
			const uint8_t mad[DDPS_CM_MAD_LEN])
{
	const struct sim_flight like = { 0 };

	if (!to || to >= SIM_LIDS)
		return DDPS_E_ADDRESS;
	fly_to(NODE(port), SIM_MAD, to, mad, DDPS_CM_MAD_LEN, &like);
	return 0;
}

/* ---- Queue pairs ---- */

static uint64_t qp_hash(const struct sim_node *n, uint32_t qpn)
{
	const uint64_t z = ((uint64_t)n->nr << 24 | qpn) * 0x9e3779b97f4a7c15;

	return z ^ z >> 32; /* nobody attacks a fabric in memory */
}

static struct sim_qp *find_sim_qp(struct sim_node *n, uint32_t qpn)
{
	struct sim_qp *qp;

	DDPS_TAB_EACH(&n->sim->by_qpn, qp_hash(n, qpn), qp, struct sim_qp, by_number)
		if (qp->node == n && qp->qpn == qpn)
			return qp;
	return NULL;
}

void ddps_ipoib_sim_qp_free(struct sim_qp *qp)
{
	ddps_tab_del(&qp->node->sim->by_qpn, &qp->by_number);
	LIST_REMOVE(qp, of_node);
	qp->node->n_qp--;
	free(qp);
}

static int sim_qp_create(struct ddps_ipoib_port *port, uint8_t transport, uint32_t rx_mtu,
			 uint32_t *qpn)
{
	struct sim_node *n = NODE(port);
	struct sim_qp *qp;

	if (transport != DDPS_CM_RC && transport != DDPS_CM_UC)
		return DDPS_E_UNSUPPORTED;
	qp = n->n_qp < MAX_QPS ? calloc(1, sizeof(*qp)) : NULL;
	if (!qp)
		return DDPS_E_LIMIT;
	do
		n->next_qpn = (n->next_qpn + 1) & QPN_MASK;
	while (n->next_qpn < 2 || n->next_qpn == QPN_MASK || find_sim_qp(n, n->next_qpn));
	*qp = (struct sim_qp){
		.node = n, .transport = transport, .qpn = n->next_qpn, .rx_mtu = rx_mtu
	};
	LIST_INSERT_HEAD(&n->qps, qp, of_node);
	n->n_qp++;
	ddps_tab_add(&n->sim->by_qpn, &qp->by_number, qp_hash(n, qp->qpn));
	*qpn = qp->qpn;
	return 0;
}

static int sim_qp_ready(struct ddps_ipoib_port *port, uint32_t qpn,
			const struct ddps_ipoib_qp_to *to)
{
	struct sim_node *n = NODE(port);
	struct sim_qp *qp = find_sim_qp(n, qpn);

	if (!qp || qp->stopped)
		return DDPS_E_INVAL;
	if (!to->path.addr || to->path.addr >= SIM_LIDS)
		return DDPS_E_ADDRESS;
	qp->ready = true;
	qp->to_lid = (uint16_t)to->path.addr;
	qp->to_qpn = to->qpn;
	qp->retries = to->retry_count;
	return 0;
}

static void post_error(struct sim_node *n, uint32_t qpn, int err)
{
	struct ddps_ipoib_sim *s = n->sim;
	struct sim_event *e = ddps_ipoib_sim_post(s, SIM_QP_ERROR, n->nr,
						  s->now + ddps_ipoib_sim_delay(s), NULL, 0);

	if (!e)
		return;
	e->qpn = qpn;
	e->err = err;
}

/* RC tries again, UC does not care [4755-7.1-1]. */
static bool crosses(struct sim_node *n, const struct sim_qp *qp)
{
	struct ddps_ipoib_sim *s = n->sim;
	unsigned tries = qp->transport == DDPS_CM_RC ? qp->retries + 1 : 1;

	const struct sim_node *to = ddps_ipoib_sim_lid(s, qp->to_lid);

	if (n->down || !to || to->down)
		return false;
	while (tries--)
		if (!ddps_ipoib_sim_chance(s, s->cfg.faults.loss))
			return true;
	return false;
}

static int sim_qp_send(struct ddps_ipoib_port *port, uint32_t qpn, const void *frame, size_t len)
{
	struct sim_node *n = NODE(port);
	struct ddps_ipoib_sim *s = n->sim;
	struct sim_qp *qp = find_sim_qp(n, qpn);
	struct sim_event *e;
	uint64_t at = s->now + ddps_ipoib_sim_delay(s);

	if (!qp || !qp->ready || qp->stopped)
		return DDPS_E_STATE;
	if (!crosses(n, qp)) {
		s->stats.lost++;
		if (qp->transport == DDPS_CM_RC)
			post_error(n, qpn, DDPS_E_TIMEDOUT);
		return 0;
	}
	if (at <= qp->last_at)
		at = qp->last_at + 1;
	e = ddps_ipoib_sim_post(s, SIM_QP, ddps_ipoib_sim_lid(s, qp->to_lid)->nr, at, frame, len);
	if (!e)
		return DDPS_E_AGAIN;
	qp->last_at = at;
	e->qpn = qp->to_qpn;
	e->from = n->nr;
	e->from_qpn = qpn;
	return 0;
}

void ddps_ipoib_sim_qp_in(struct ddps_ipoib_sim *s, const struct sim_event *e)
{
	struct sim_node *n = &s->node[e->node], *from = &s->node[e->from];
	const struct sim_qp *qp = find_sim_qp(n, e->qpn);
	const struct sim_qp *sender = find_sim_qp(from, e->from_qpn);
	bool rc = sender && sender->transport == DDPS_CM_RC;

	if (!qp || !qp->ready || qp->stopped || qp->to_lid != from->lid ||
	    qp->to_qpn != e->from_qpn) {
		if (rc)
			post_error(from, e->from_qpn, DDPS_E_TIMEDOUT);
		return;
	}
	if (e->len > qp->rx_mtu) {
		post_error(n, e->qpn, DDPS_E_TOO_LONG);
		if (rc)
			post_error(from, e->from_qpn, DDPS_E_RESET);
		return;
	}
	s->stats.messages++;
	n->user.up->qp(n->user.user, e->qpn, e->data, e->len, s->now);
}

static void sim_qp_stop(struct ddps_ipoib_port *port, uint32_t qpn)
{
	struct sim_qp *qp = find_sim_qp(NODE(port), qpn);

	if (qp)
		qp->stopped = true;
}

static void sim_qp_destroy(struct ddps_ipoib_port *port, uint32_t qpn)
{
	struct sim_qp *qp = find_sim_qp(NODE(port), qpn);

	if (qp)
		ddps_ipoib_sim_qp_free(qp);
}

const struct ddps_ipoib_port_ops ddps_ipoib_sim_ops = {
	.struct_size = sizeof(ddps_ipoib_sim_ops),
	.ud_send = sim_ud_send,
	.join = sim_join,
	.leave = sim_leave,
	.resolve = sim_resolve,
	.mad_send = sim_mad_send,
	.qp_create = sim_qp_create,
	.qp_ready = sim_qp_ready,
	.qp_send = sim_qp_send,
	.qp_stop = sim_qp_stop,
	.qp_destroy = sim_qp_destroy,
};
