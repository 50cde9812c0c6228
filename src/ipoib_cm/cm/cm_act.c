/* SPDX-License-Identifier: BSD-2-Clause */
/* Carries out what the state table asks for: builds messages, sets timers, reports. */
#include <string.h>
#include "ipoib_cm/cm/cm_conn.h"

#define ACT(name) DDPS_CM_ACT_##name
#define SENDS	  (ACT(REQ) | ACT(REP) | ACT(RTU) | ACT(MRA) | ACT(REJ) | ACT(DREQ) | ACT(DREP))
/* A message that may have to be repeated as it was. */
#define KEPT (ACT(REQ) | ACT(REP) | ACT(RTU) | ACT(MRA) | ACT(DREQ))

/*
 * Over a connection's ID: its end is another transaction than its beginning.  Linux's ib_umad refuses
 * what has the ID of something that is still on its way, such as the RTU just before.
 */
#define DREQ_TID 0x80000000u

int ddps_cm_emit(struct ddps_cm_outs *o, const struct ddps_cm_mad *mad, ddps_cm_addr to)
{
	struct ddps_cm_send *s = &o->send[o->n_send];
	int err = ddps_cm_mad_encode(s->mad, mad);

	if (err)
		return err;
	s->to = to;
	o->n_send++;
	return 0;
}

static void build_req(const struct ddps_cm *cm, const struct ddps_cm_conn *c,
		      const struct ddps_cm_in *in, struct ddps_cm_mad *m)
{
	ddps_cm_mad_init(m, DDPS_CM_REQ, c->tid);
	m->u.req = *in->req;
	m->u.req.local_id = c->local_id;
	m->u.req.ca_guid = cm->cfg.ca_guid;
}

static void build_rep(const struct ddps_cm *cm, const struct ddps_cm_conn *c,
		      const struct ddps_cm_in *in, struct ddps_cm_mad *m)
{
	ddps_cm_mad_init(m, DDPS_CM_REP, c->tid);
	m->u.rep = *in->rep;
	m->u.rep.local_id = c->local_id;
	m->u.rep.remote_id = c->remote_id;
	m->u.rep.ca_guid = cm->cfg.ca_guid;
}

static void build_mra(const struct ddps_cm_conn *c, const struct ddps_cm_in *in,
		      struct ddps_cm_mad *m)
{
	ddps_cm_mad_init(m, DDPS_CM_MRA, c->tid);
	m->u.mra.local_id = c->local_id;
	m->u.mra.remote_id = c->remote_id;
	m->u.mra.msg = c->active ? DDPS_CM_MSG_REP : DDPS_CM_MSG_REQ;
	m->u.mra.service_timeout = in->service_timeout;
}

/* To withdraw an unanswered REQ: the peer knows it by our GUID and ID alone. */
static void build_rej_own_req(const struct ddps_cm *cm, struct ddps_cm_rej *rej)
{
	rej->msg = DDPS_CM_MSG_OTHER;
	rej->reason = DDPS_CM_REJ_TIMEOUT;
	rej->info_len = 8;
	for (unsigned i = 0; i < 8; i++)
		rej->ari[i] = (uint8_t)(cm->cfg.ca_guid >> (56 - 8 * i));
}

static void build_rej(const struct ddps_cm *cm, const struct ddps_cm_conn *c,
		      const struct ddps_cm_in *in, struct ddps_cm_mad *m)
{
	struct ddps_cm_rej *rej = &m->u.rej;

	ddps_cm_mad_init(m, DDPS_CM_REJ, c->tid);
	rej->local_id = c->local_id;
	rej->remote_id = c->remote_id;
	rej->reason = in->reason;
	switch (c->state) {
	case DDPS_CM_ST_REQ_SENT:
	case DDPS_CM_ST_MRA_REQ_RCVD:
	case DDPS_CM_ST_WITHDRAWN:
		if (in->ev == DDPS_CM_EV_ABORT) {
			build_rej_own_req(cm, rej);
			break;
		}
		rej->remote_id = in->mad->u.rep.local_id; /* refuses that REP */
		rej->msg = DDPS_CM_MSG_REP;
		rej->reason =
			c->state == DDPS_CM_ST_WITHDRAWN ? DDPS_CM_REJ_CONSUMER : DDPS_CM_REJ_STALE;
		break;
	case DDPS_CM_ST_REP_RCVD:
	case DDPS_CM_ST_MRA_REP_SENT:
		rej->msg = DDPS_CM_MSG_REP;
		break;
	case DDPS_CM_ST_TIMEWAIT: /* a REQ that comes too late; msg 0 is what it can match */
		rej->local_id = 0;
		rej->reason = DDPS_CM_REJ_STALE;
		rej->msg = DDPS_CM_MSG_REQ;
		break;
	case DDPS_CM_ST_REQ_RCVD: /* the peer does not know our ID */
		rej->local_id = 0;
		rej->msg = DDPS_CM_MSG_REQ;
		break;
	case DDPS_CM_ST_MRA_REQ_SENT:
		rej->msg = DDPS_CM_MSG_REQ;
		break;
	default: /* takes an own REP back */
		rej->msg = DDPS_CM_MSG_OTHER;
		break;
	}
}

/* The message that @acts asks for. */
static void build_cm_message(const struct ddps_cm *cm, const struct ddps_cm_conn *c,
			     const struct ddps_cm_in *in, unsigned acts, struct ddps_cm_mad *m)
{
	const uint8_t *priv = in->priv ? in->priv : c->priv;

	switch (acts & SENDS) {
	case ACT(REQ):
		build_req(cm, c, in, m);
		return;
	case ACT(REP):
		build_rep(cm, c, in, m);
		return;
	case ACT(RTU):
		ddps_cm_mad_init(m, DDPS_CM_RTU, c->tid);
		m->u.rtu.local_id = c->local_id;
		m->u.rtu.remote_id = c->remote_id;
		memcpy(m->u.rtu.private_data, priv, DDPS_IPOIB_PRIV_LEN);
		return;
	case ACT(MRA):
		build_mra(c, in, m);
		memcpy(m->u.mra.private_data, priv, DDPS_IPOIB_PRIV_LEN);
		return;
	case ACT(REJ):
		build_rej(cm, c, in, m);
		memcpy(m->u.rej.private_data, priv, DDPS_IPOIB_PRIV_LEN); /* [4755-3.2-11] */
		return;
	case ACT(DREQ): /* DREQ and DREP have no private data of IPoIB */
		ddps_cm_mad_init(m, DDPS_CM_DREQ,
				 (uint64_t)cm->cfg.tid_high << 32 | (c->local_id ^ DREQ_TID));
		m->u.dreq.local_id = c->local_id;
		m->u.dreq.remote_id = c->remote_id;
		m->u.dreq.remote_qpn = c->remote_qpn;
		return;
	default:
		ddps_cm_mad_init(m, DDPS_CM_DREP, in->mad ? in->mad->hdr.tid : c->dreq_tid);
		m->u.drep.local_id = c->local_id;
		m->u.drep.remote_id = c->remote_id;
	}
}

/*
 * After a stale REP: the peer has the REJ by then, and has ended what stood in the way.  The REQ
 * need not wait for an answer that cannot come any more.
 */
#define SOON_NS 100000000
/* Of what an MRA can ask for, up to 2.4 hours: 69 s, as much as Linux asks for. */
#define MRA_MOST 24

static uint64_t add_until_never(uint64_t now, uint64_t ns)
{
	return now < DDPS_CM_NEVER - ns ? now + ns : DDPS_CM_NEVER;
}

static void set_conn_timer(struct ddps_cm *cm, struct ddps_cm_conn *c, const struct ddps_cm_in *in,
			   unsigned acts)
{
	uint64_t at = c->due.at;

	if (acts & (ACT(TIMER) | ACT(TIMER_AGAIN))) {
		if (acts & ACT(TIMER)) {
			c->retries_left = c->retries;
			c->mra_ns = 0;
		} else {
			c->retries_left--;
		}
		/* After an MRA every later resend waits as long, as Linux has it. */
		at = add_until_never(in->now, c->mra_ns ? c->mra_ns : c->resp_ns);
	} else if (acts & ACT(TIMER_MRA)) {
		unsigned trip = c->life + 1u, asked = in->mad->u.mra.service_timeout;

		c->mra_ns = ddps_cm_time_ns(asked < MRA_MOST ? asked : MRA_MOST) +
			    ddps_cm_time_ns(trip);
		at = add_until_never(in->now, c->mra_ns);
	} else if (acts & ACT(TIMER_TW)) {
		at = add_until_never(in->now, c->timewait_ns);
	} else if (acts & ACT(TIMER_LINGER)) {
		at = add_until_never(in->now, c->linger_ns);
	} else if (acts & ACT(TIMER_SOON)) {
		uint64_t soon = add_until_never(in->now, SOON_NS);

		at = soon < at ? soon : at;
	} else if (acts & ACT(STOP)) {
		at = DDPS_CM_NEVER;
	}
	ddps_due_set(&cm->dues, &c->due, at);
}

/*
 * The peer asks us, and is refused, as our own REQ is on its way to it: so it is there now, while that
 * REQ may have come before it was, or to what it was before it restarted.  Once an answer could be
 * here the REQ comes again, as the peer has to wait for it.
 */
void ddps_cm_conn_soon(struct ddps_cm *cm, uint32_t id, uint64_t now)
{
	struct ddps_cm_conn *c = ddps_cm_conn_find(cm, id);
	uint64_t trip, soon;

	if (!c || c->state != DDPS_CM_ST_REQ_SENT)
		return;
	trip = 2 * ddps_cm_time_ns(c->life);
	soon = add_until_never(now, trip > SOON_NS ? trip : SOON_NS);
	if (soon < c->due.at)
		ddps_due_set(&cm->dues, &c->due, soon);
}

/* What of a message the connection must know before it answers. */
static void learn_from_message(struct ddps_cm *cm, struct ddps_cm_conn *c,
			       const struct ddps_cm_in *in)
{
	if (in->ev == DDPS_CM_EV_RX_REP && c->state != DDPS_CM_ST_WITHDRAWN) {
		c->remote_id = in->mad->u.rep.local_id;
		c->remote_guid = in->mad->u.rep.ca_guid;
		c->remote_qpn = in->mad->u.rep.qpn;
		ddps_cm_conn_known(cm, c);
	} else if (in->ev == DDPS_CM_EV_RX_DREQ) {
		c->dreq_tid = in->mad->hdr.tid;
	} else if (in->rep) {
		c->local_qpn = in->rep->qpn;
		memcpy(c->priv, in->rep->private_data, sizeof(c->priv));
	}
}

int ddps_cm_step(struct ddps_cm *cm, struct ddps_cm_conn *c, const struct ddps_cm_in *in,
		 struct ddps_cm_outs *o)
{
	struct ddps_cm_rule r = ddps_cm_rule(c->state, in->ev);
	struct ddps_cm_mad m;
	int err;

	if (!r.acts)
		return DDPS_E_STATE;
	if (r.acts & SENDS) {
		build_cm_message(cm, c, in, r.acts, &m);
		err = ddps_cm_emit(o, &m, c->addr);
		if (err)
			return err;
		if (r.acts & KEPT)
			memcpy(c->last, o->send[o->n_send - 1].mad, sizeof(c->last));
	}
	if (r.acts & ACT(AGAIN)) {
		memcpy(o->send[o->n_send].mad, c->last, sizeof(c->last));
		o->send[o->n_send++].to = c->addr;
	}
	learn_from_message(cm, c, in);
	set_conn_timer(cm, c, in, r.acts);
	c->state = r.next;
	if (r.next == DDPS_CM_ST_TIMEWAIT)
		ddps_cm_conn_over(cm, c);
	if (r.acts & ACT(IGNORE))
		cm->stats.ignored++;
	if (r.acts & ACT(TELL))
		o->report[o->n_report++] = (struct ddps_cm_report){
			.id = c->local_id,
			.user = c->user,
			.ev = in->ev,
			.state = r.next,
			.mad = in->mad,
			.addr = c->addr,
		};
	if (c->state == DDPS_CM_ST_IDLE)
		ddps_cm_conn_drop(cm, c);
	ddps_cm_check(cm);
	return 0;
}
