/* SPDX-License-Identifier: BSD-2-Clause */
/* The queue pairs of a port: their numbers, their timers, and who waits for room. */
#include "ipoib_cm/ib/node_in.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define RX_MAX	    (1u << 17) /* no IPoIB message is as long */
#define MAD_LEN	    256u       /* what is no longer is not lost for its length */
#define HOLE_NS	    600000000000ull
#define HOLE_SAY_NS 60000000000ull

/* After anything that was done with the queue pair of @s. */
static void reschedule(struct ddps_ib_node *n, struct ib_slot *s)
{
	bool busy = s->used && ddps_ib_qp_behind(&s->qp);

	ddps_due_set(&n->dues, &s->due, s->used ? ddps_ib_qp_due(&s->qp) : DDPS_IB_NEVER);
	n->n_busy += (uint32_t)busy - s->busy;
	s->busy = busy;
	if (s->waits || !s->used || !(s->qp.blocked || s->qp.ack_owed))
		return;
	s->waits = true;
	TAILQ_INSERT_TAIL(&n->waiting, s, of_waiting);
}

uint64_t ddps_ib_node_qp_due(const struct ddps_ib_node *n)
{
	return ddps_dues_first(&n->dues);
}

bool ddps_ib_node_busy(const struct ddps_ib_node *n)
{
	return n->n_busy || n->env.tx.used > n->env.tx.max / 2;
}

/* ---- numbers ---- */

static struct ib_slot *find_ib_slot(struct ddps_ib_node *n, uint32_t qpn)
{
	uint32_t i = qpn & n->slot_mask;
	struct ib_slot *s = i < n->n_slot ? &n->slot[i] : NULL;

	return s && s->used && s->qp.qpn == qpn ? s : NULL;
}

/* Another one each time, so that late packets of an old life find nothing. */
static uint32_t number_ib_slot(struct ddps_ib_node *n, struct ib_slot *s)
{
	uint32_t qpn;

	do
		qpn = (++s->life << n->slot_bits | (uint32_t)(s - n->slot)) & DDPS_IB_QPN_MASK;
	while (qpn <= DDPS_IB_GSI_QPN || qpn == DDPS_IPOIB_QPN_MCAST || qpn == n->cfg.qpn);
	return qpn;
}

int ddps_ib_node_qp_create(struct ddps_ipoib_port *port, uint8_t transport, uint32_t rx_mtu,
			   uint32_t *qpn)
{
	struct ddps_ib_node *n = NODE(port);
	struct ib_slot *s;

	if (transport != DDPS_CM_RC && transport != DDPS_CM_UC)
		return DDPS_E_UNSUPPORTED;
	if (n->free == DDPS_IB_SLOT_NONE || !rx_mtu || rx_mtu > RX_MAX)
		return DDPS_E_LIMIT;
	s = &n->slot[n->free];
	n->free = s->next_free;
	s->used = true;
	ddps_ib_qp_init(&s->qp, &n->env, transport == DDPS_CM_UC, number_ib_slot(n, s), rx_mtu);
	s->qp.pkey = n->cfg.pkey;
	*qpn = s->qp.qpn;
	return 0;
}

int ddps_ib_node_qp_ready(struct ddps_ipoib_port *port, uint32_t qpn,
			  const struct ddps_ipoib_qp_to *to)
{
	struct ddps_ib_node *n = NODE(port);
	const struct ddps_sa_mcm *link = ddps_sac_link(n->sac);
	struct ib_slot *s = find_ib_slot(n, qpn);
	struct ddps_ib_qp_to t = { .qpn = to->qpn,
				   .tx_psn = to->tx_psn,
				   .rx_psn = to->rx_psn,
				   .ack_timeout = to->ack_timeout,
				   .retry = to->retry_count,
				   .rnr_retry = to->rnr_retry };

	if (!s || !link)
		return DDPS_E_STATE;
	if (!to->path.addr || to->path.addr >= DDPS_SA_LIDS)
		return DDPS_E_ADDRESS;
	t.mtu = 128u << (to->path.mtu ? to->path.mtu & 7 : link->mtu & 0x3f);
	if (!to->path.mtu) /* the path has not been asked for: as the link is */
		t.ack_timeout = ddps_cm_ack_timeout(link->life & 0x3f, 0);
	s->dlid = (uint16_t)to->path.addr;
	return ddps_ib_qp_ready(&s->qp, &t);
}

static void see_node_frame(struct ddps_ib_node *n, const struct ib_slot *s, bool tx,
			   const void *frame, size_t len)
{
	const struct ddps_ib_seen seen = { .tx = tx,
					   .connected = true,
					   .uc = s->qp.uc,
					   .slid = tx ? n->cfg.lid : s->dlid,
					   .dlid = tx ? s->dlid : n->cfg.lid,
					   .from_qpn = tx ? s->qp.qpn : s->qp.to.qpn,
					   .to_qpn = tx ? s->qp.to.qpn : s->qp.qpn,
					   .frame = frame,
					   .len = len };

	if (n->cfg.see)
		n->cfg.see(n->cfg.see_user, &seen);
}

int ddps_ib_node_qp_send(struct ddps_ipoib_port *port, uint32_t qpn, const void *frame, size_t len)
{
	struct ddps_ib_node *n = NODE(port);
	struct ib_slot *s = find_ib_slot(n, qpn);
	int err = s ? ddps_ib_qp_send(&s->qp, frame, len, n->now) : DDPS_E_STATE;

	if (s)
		reschedule(n, s);
	if (!err)
		see_node_frame(n, s, true, frame, len);
	return err;
}

void ddps_ib_node_qp_stop(struct ddps_ipoib_port *port, uint32_t qpn)
{
	struct ib_slot *s = find_ib_slot(NODE(port), qpn);

	if (!s)
		return;
	ddps_ib_qp_stop(&s->qp);
	reschedule(NODE(port), s);
}

void ddps_ib_node_qp_destroy(struct ddps_ipoib_port *port, uint32_t qpn)
{
	struct ddps_ib_node *n = NODE(port);
	struct ib_slot *s = find_ib_slot(n, qpn);

	if (!s)
		return;
	ddps_ib_qp_fini(&s->qp);
	s->used = false;
	reschedule(n, s);
	s->next_free = n->free;
	n->free = (uint32_t)(s - n->slot);
}

/* ---- packets ---- */

static struct ib_slot *get_ib_slot(struct ddps_ib_qp *qp)
{
	return (struct ib_slot *)((char *)qp - offsetof(struct ib_slot, qp));
}

static bool send_ib_qp_packet(void *user, struct ddps_ib_qp *qp, struct ddps_ib_pkt *p)
{
	struct ddps_ib_node *n = user;

	p->stays = n->cfg.gone;
	if (ddps_ib_node_put(n, get_ib_slot(qp)->dlid, 0, p))
		return true;
	n->stats.tx_full++;
	return false;
}

static void tell_ib_qp_data_gone(void *user, const uint8_t *data, size_t len)
{
	struct ddps_ib_node *n = user;

	if (n->cfg.gone)
		n->cfg.gone(n->cfg.wire, data, len);
}

static void take_ib_qp_message(void *user, struct ddps_ib_qp *qp, const void *data, size_t len,
			       uint64_t now)
{
	struct ddps_ib_node *n = user;

	see_node_frame(n, get_ib_slot(qp), false, data, len);
	n->cfg.up->qp(n->user, qp->qpn, data, len, now);
}

/* A second connection to @lid has failed for a long packet.  A peer that is gone would say nothing.  That no short
 * one of the connection was acknowledged proves nothing, since there may be none: what made it is short, too. */
static void note_ib_hole(struct ddps_ib_node *n, uint16_t lid, const struct ddps_ib_qp *qp)
{
	struct ib_hole *h = &n->hole[lid];
	const bool again = h->at && n->now - h->at < HOLE_NS;

	if (qp->failed_len <= MAD_LEN || qp->acked_len >= qp->failed_len) {
		h->at = 0; /* it is not for their length */
		return;
	}
	*h = (struct ib_hole){ n->now, qp->failed_len };
	if (again)
		n->suspect = lid;
}

void ddps_ib_node_say_hole(struct ddps_ib_node *n)
{
	const unsigned len = n->hole[n->suspect].len;
	unsigned mtu = DDPS_IB_MTU_MAX;

	while (mtu >= len)
		mtu /= 2;
	if (!n->hole_said_at || n->now - n->hole_said_at >= HOLE_SAY_NS) {
		n->hole_said_at = n->now;
		n->hole_news = true;
		snprintf(n->hole_text, sizeof(n->hole_text),
			 "packets with %u octets of payload to LID %u are never acknowledged, and "
			 "the short ones that make connections are answered: something between "
			 "drops long ones without a word; try: a larger MTU of each network "
			 "between, or --link-mtu %u at the administration",
			 len, n->suspect, mtu);
	}
	n->suspect = 0;
}

static void fail_ib_slot(void *user, struct ddps_ib_qp *qp, int err, uint64_t now)
{
	struct ddps_ib_node *n = user;

	if (qp->failed_len)
		note_ib_hole(n, get_ib_slot(qp)->dlid, qp);
	n->cfg.up->qp_error(n->user, qp->qpn, err, now);
}

static const struct ddps_ib_qp_ops qp_ops = { send_ib_qp_packet, take_ib_qp_message, fail_ib_slot,
					      tell_ib_qp_data_gone };

/* RC packets do not say which queue pair sent them, but from where they come counts. */
void ddps_ib_node_qp_rx(struct ddps_ib_node *n, uint16_t slid, const struct ddps_ib_pkt *p)
{
	struct ib_slot *s = find_ib_slot(n, p->qpn);

	if (!s || s->dlid != slid) {
		n->stats.rx_qpn++;
		return;
	}
	ddps_ib_qp_rx(&s->qp, p, n->now);
	reschedule(n, s); /* whatever has become of it */
}

void ddps_ib_node_qp_tick(struct ddps_ib_node *n)
{
	struct ddps_due *due;

	while ((due = ddps_dues_ready(&n->dues, n->now))) {
		struct ib_slot *s = (void *)((char *)due - offsetof(struct ib_slot, due));

		ddps_ib_qp_tick(&s->qp, n->now);
		reschedule(n, s);
	}
}

/* In the order in which they found no room, until there is none again. */
void ddps_ib_node_pump(struct ddps_ib_node *n, uint64_t now)
{
	const struct ib_slot *last = TAILQ_LAST(&n->waiting, ib_slots);
	struct ib_slot *s;

	n->now = now;
	while ((s = TAILQ_FIRST(&n->waiting))) {
		TAILQ_REMOVE(&n->waiting, s, of_waiting);
		s->waits = false;
		if (s->used && (s->qp.blocked || s->qp.ack_owed)) {
			ddps_ib_qp_pump(&s->qp, now);
			reschedule(n, s);
		}
		if (s == last || s->waits)
			return;
	}
}

/* ---- life ---- */

int ddps_ib_node_qps_new(struct ddps_ib_node *n)
{
	n->n_slot = n->cfg.max_qps;
	while (1u << n->slot_bits < n->n_slot)
		n->slot_bits++;
	n->slot_mask = (1u << n->slot_bits) - 1;
	n->env.ops = &qp_ops;
	n->env.user = n;
	n->env.late_acks = n->cfg.late_acks;
	n->env.tx.max = n->cfg.tx_octets;
	n->env.rx.max = n->cfg.rx_octets;
	n->slot = calloc(n->n_slot, sizeof(*n->slot));
	n->free = DDPS_IB_SLOT_NONE;
	TAILQ_INIT(&n->waiting);
	if (!n->slot || !ddps_dues_new(&n->dues, n->n_slot))
		return DDPS_E_NOMEM;
	for (uint32_t i = n->n_slot; i-- > 0; n->free = i)
		n->slot[i] = (struct ib_slot){ .life = n->cfg.seed >> 8, .next_free = n->free };
	return 0;
}

void ddps_ib_node_qps_free(struct ddps_ib_node *n)
{
	for (uint32_t i = 0; n->slot && i < n->n_slot; i++)
		if (n->slot[i].used)
			ddps_ib_qp_fini(&n->slot[i].qp);
	free(n->slot);
	free(n->dues.heap);
}
