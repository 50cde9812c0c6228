/* SPDX-License-Identifier: BSD-2-Clause */
/* See ipoib_cm_fixture.h. */
#include "ipoib_cm/cm/cm_own.h"
#include "ipoib_cm_fixture.h"
#include <criterion/criterion.h>
#include <string.h>

const uint8_t cm_rig_priv[8] = { 0, 0, 0, 0x49, 0, 0, 0x80, 4 };

void cm_rig_init(struct cm_rig *r)
{
	const struct ddps_cm_config cfg = { .struct_size = sizeof(cfg),
					    .ca_guid = OUR_GUID,
					    .tid_high = 5,
					    .id_seed = 0x11223344,
					    .max_conns = 8 };
	struct ddps_cm_listener l = { .service_id = SID, .pkey = 0xffff, .user = r };

	memset(r, 0, sizeof(*r));
	memcpy(l.priv, cm_rig_priv, 8);
	l.gid[15] = 9;
	cr_assert_eq(ddps_cm_new(&r->cm, &cfg), 0);
	r->now = 1000 * MS;
	r->req_retries = 2;
	cr_assert_eq(ddps_cm_listen(r->cm, &l), 0);
}

void cm_rig_fini(struct cm_rig *r)
{
	ddps_cm_free(r->cm);
}

void cm_rig_rx(struct cm_rig *r, const struct ddps_cm_mad *m)
{
	uint8_t octets[256];

	cr_assert_eq(ddps_cm_mad_encode(octets, m), 0);
	cr_assert_eq(ddps_cm_rx(r->cm, octets, 256, FROM, r->now, &r->o), 0);
}

/* Message number @i that the last step sent. */
struct ddps_cm_mad cm_rig_sent(const struct cm_rig *r, unsigned i)
{
	struct ddps_cm_mad m;

	cr_assert_lt(i, r->o.n_send);
	cr_assert_eq(ddps_cm_mad_decode(&m, r->o.send[i].mad, 256), 0);
	return m;
}

/* ---- Messages of the peer ---- */

struct ddps_cm_mad cm_rig_peer_req(const struct cm_rig *r)
{
	struct ddps_cm_mad m;

	ddps_cm_mad_init(&m, DDPS_CM_REQ, PEER_TID);
	m.u.req.local_id = PEER_ID;
	m.u.req.ca_guid = PEER_GUID;
	m.u.req.qpn = PEER_QPN;
	m.u.req.service_id = SID;
	m.u.req.pkey = 0x7fff;
	m.u.req.local_cm_timeout = 20;
	m.u.req.max_cm_retries = r->req_retries & 15;
	m.u.req.primary.remote_gid[15] = 9;
	m.u.req.primary.ack_timeout = 19;
	return m;
}

struct ddps_cm_mad cm_rig_peer_rep(const struct cm_rig *r)
{
	struct ddps_cm_mad m;

	ddps_cm_mad_init(&m, DDPS_CM_REP, 0);
	m.u.rep.local_id = PEER_ID;
	m.u.rep.remote_id = r->id;
	m.u.rep.qpn = PEER_QPN;
	m.u.rep.ca_guid = PEER_GUID;
	return m;
}

struct ddps_cm_mad cm_rig_peer_mra(const struct cm_rig *r, uint8_t msg)
{
	struct ddps_cm_mad m;

	ddps_cm_mad_init(&m, DDPS_CM_MRA, 0);
	m.u.mra.local_id = PEER_ID;
	m.u.mra.remote_id = r->id;
	m.u.mra.msg = msg & 3;
	m.u.mra.service_timeout = 22;
	return m;
}

struct ddps_cm_mad cm_rig_peer_rej(const struct cm_rig *r, uint16_t reason, uint8_t msg)
{
	struct ddps_cm_mad m;

	ddps_cm_mad_init(&m, DDPS_CM_REJ, 0);
	m.u.rej.local_id = msg == DDPS_CM_MSG_REQ ? 0 : PEER_ID;
	m.u.rej.remote_id = r->id;
	m.u.rej.reason = reason;
	m.u.rej.msg = msg & 3;
	return m;
}

/* A REJ with reason 4, from a peer that never learned our ID. */
struct ddps_cm_mad cm_rig_peer_gave_up(void)
{
	struct ddps_cm_mad m;

	ddps_cm_mad_init(&m, DDPS_CM_REJ, 0);
	m.u.rej.local_id = PEER_ID;
	m.u.rej.reason = DDPS_CM_REJ_TIMEOUT;
	m.u.rej.msg = DDPS_CM_MSG_OTHER;
	m.u.rej.info_len = 8;
	for (unsigned i = 0; i < 8; i++)
		m.u.rej.ari[i] = (uint8_t)(PEER_GUID >> (56 - 8 * i));
	return m;
}

struct ddps_cm_mad cm_rig_peer_rtu(const struct cm_rig *r)
{
	struct ddps_cm_mad m;

	ddps_cm_mad_init(&m, DDPS_CM_RTU, PEER_TID);
	m.u.rtu.local_id = PEER_ID;
	m.u.rtu.remote_id = r->id;
	return m;
}

struct ddps_cm_mad cm_rig_peer_dreq(const struct cm_rig *r)
{
	struct ddps_cm_mad m;

	ddps_cm_mad_init(&m, DDPS_CM_DREQ, 0xd0d0);
	m.u.dreq.local_id = PEER_ID;
	m.u.dreq.remote_id = r->id;
	m.u.dreq.remote_qpn = OUR_QPN;
	return m;
}

struct ddps_cm_mad cm_rig_peer_drep(const struct cm_rig *r)
{
	struct ddps_cm_mad m;

	ddps_cm_mad_init(&m, DDPS_CM_DREP, 0);
	m.u.drep.local_id = PEER_ID;
	m.u.drep.remote_id = r->id;
	return m;
}

void cm_rig_send_connect(struct cm_rig *r)
{
	struct ddps_cm_connect c = { .packet_life = LIFE, .to = FROM, .user = r };

	c.req.qpn = OUR_QPN;
	c.req.service_id = 0x0100000000000050;
	c.req.remote_cm_timeout = c.req.local_cm_timeout = 20;
	c.req.max_cm_retries = r->req_retries & 15;
	c.req.primary.ack_timeout = 19;
	memcpy(c.req.private_data, cm_rig_priv, 8);
	cr_assert_eq(ddps_cm_connect(r->cm, &c, r->now, &r->id, &r->o), 0);
}

int cm_rig_reply(struct cm_rig *r)
{
	struct ddps_cm_rep rep = { .qpn = OUR_QPN };

	memcpy(rep.private_data, cm_rig_priv, 8);
	return ddps_cm_reply(r->cm, r->id, &rep, r->now, &r->o);
}

void cm_rig_tick(struct cm_rig *r)
{
	r->now = ddps_cm_deadline(r->cm);
	cr_assert_neq(r->now, DDPS_CM_NEVER);
	cr_assert_eq(ddps_cm_tick(r->cm, r->now, &r->o), 1);
}

/* Which message a REJ that reaches this state names. */
static uint8_t rej_msg(enum ddps_cm_state s)
{
	switch (s) {
	case DDPS_CM_ST_REQ_SENT:
	case DDPS_CM_ST_MRA_REQ_RCVD:
	case DDPS_CM_ST_WITHDRAWN:
		return DDPS_CM_MSG_REQ;
	case DDPS_CM_ST_REP_SENT:
	case DDPS_CM_ST_MRA_REP_RCVD:
		return DDPS_CM_MSG_REP;
	default:
		return DDPS_CM_MSG_OTHER;
	}
}

/* Another connection of the same agent, established, with the same peer CA. */
static void add_other(struct cm_rig *r, uint32_t peer_id, uint32_t peer_qpn)
{
	struct cm_rig twin = *r;
	struct ddps_cm_mad m;

	cm_rig_send_connect(&twin);
	m = cm_rig_peer_rep(&twin);
	m.u.rep.local_id = peer_id;
	m.u.rep.qpn = peer_qpn;
	cm_rig_rx(&twin, &m);
	cr_assert_eq(ddps_cm_ready(twin.cm, twin.id, NULL, twin.now, &twin.o), 0);
}

static void use_up_retries(struct cm_rig *r)
{
	for (unsigned i = 0; i < r->req_retries; i++)
		cm_rig_tick(r);
}

static void receive_ipoib_cm(struct cm_rig *r, enum stimulus s)
{
	enum ddps_cm_state st = ddps_cm_state(r->cm, r->id);
	struct ddps_cm_mad m = { 0 };

	switch (s) {
	case S_RX_REQ:
		m = cm_rig_peer_req(r);
		break;
	case S_RX_REP_QPN_USED:
		add_other(r, 0xabc, PEER_QPN);
		m = cm_rig_peer_rep(r);
		break;
	case S_RX_REP_ID_USED:
		add_other(r, PEER_ID, 0x999);
		m = cm_rig_peer_rep(r);
		break;
	case S_RX_REP:
		m = cm_rig_peer_rep(r);
		break;
	case S_RX_RTU:
		m = cm_rig_peer_rtu(r);
		break;
	case S_RX_MRA_REQ:
		m = cm_rig_peer_mra(r, DDPS_CM_MSG_REQ);
		break;
	case S_RX_MRA_REP:
		m = cm_rig_peer_mra(r, DDPS_CM_MSG_REP);
		break;
	case S_RX_REJ:
		m = cm_rig_peer_rej(r, DDPS_CM_REJ_CONSUMER, rej_msg(st));
		break;
	case S_RX_REJ_STALE:
		m = cm_rig_peer_rej(r, DDPS_CM_REJ_STALE, rej_msg(st));
		break;
	case S_RX_REJ_TIMEOUT:
		m = cm_rig_peer_gave_up();
		break;
	case S_RX_DREQ:
	case S_RX_DREQ_QPN:
		m = cm_rig_peer_dreq(r);
		m.u.dreq.remote_qpn += s == S_RX_DREQ_QPN;
		break;
	default:
		m = cm_rig_peer_drep(r);
		break;
	}
	cm_rig_rx(r, &m);
}

/* Return: what the call says; 0 for messages and timers. */
int cm_rig_apply(struct cm_rig *r, enum stimulus s)
{
	switch (s) {
	case S_CONNECT:
		cm_rig_send_connect(r);
		return 0;
	case S_REPLY:
		return cm_rig_reply(r);
	case S_READY:
		return ddps_cm_ready(r->cm, r->id, NULL, r->now, &r->o);
	case S_REJECT:
		return ddps_cm_reject(r->cm, r->id, 28, NULL, r->now, &r->o);
	case S_DELAY:
		return ddps_cm_delay(r->cm, r->id, 22, NULL, r->now, &r->o);
	case S_ABORT:
		return ddps_cm_abort(r->cm, r->id, 28, r->now, &r->o);
	case S_WITHDRAW:
		return ddps_cm_withdraw(r->cm, r->id, r->now, &r->o);
	case S_DISCONNECT:
		return ddps_cm_disconnect(r->cm, r->id, r->now, &r->o);
	case S_CLOSED:
		return ddps_cm_closed(r->cm, r->id, r->now, &r->o);
	case S_DATA:
		return ddps_cm_data_is_rtu(r->cm, r->id, r->now, &r->o);
	case S_TIMER_DATA:
		cr_assert_eq(ddps_cm_data_seen(r->cm, r->id), 0);
		use_up_retries(r);
		cm_rig_tick(r);
		return 0;
	case S_TIMER_END:
		use_up_retries(r);
		cm_rig_tick(r);
		return 0;
	case S_TIMER:
		cm_rig_tick(r);
		return 0;
	default:
		receive_ipoib_cm(r, s);
		return 0;
	}
}

/* Takes a fresh rig to @s; ESTABLISHED and what follows on the side that @active says. */
void cm_rig_reach(struct cm_rig *r, enum ddps_cm_state s, bool active)
{
	static const enum stimulus active_way[][6] = {
		[ST(REQ_SENT)] = { S_CONNECT, 0 },
		[ST(MRA_REQ_RCVD)] = { S_CONNECT, S_RX_MRA_REQ, 0 },
		[ST(REP_RCVD)] = { S_CONNECT, S_RX_REP, 0 },
		[ST(MRA_REP_SENT)] = { S_CONNECT, S_RX_REP, S_DELAY, 0 },
		[ST(WITHDRAWN)] = { S_CONNECT, S_WITHDRAW, 0 },
		[ST(ESTABLISHED)] = { S_CONNECT, S_RX_REP, S_READY, 0 },
		[ST(DREQ_SENT)] = { S_CONNECT, S_RX_REP, S_READY, S_DISCONNECT, 0 },
		[ST(DREQ_RCVD)] = { S_CONNECT, S_RX_REP, S_READY, S_RX_DREQ, 0 },
		[ST(TIMEWAIT)] = { S_CONNECT, S_RX_REP, S_READY, S_RX_DREQ, S_CLOSED, 0 },
	};
	static const enum stimulus passive_way[][6] = {
		[ST(REQ_RCVD)] = { S_RX_REQ, 0 },
		[ST(MRA_REQ_SENT)] = { S_RX_REQ, S_DELAY, 0 },
		[ST(REP_SENT)] = { S_RX_REQ, S_REPLY, 0 },
		[ST(MRA_REP_RCVD)] = { S_RX_REQ, S_REPLY, S_RX_MRA_REP, 0 },
		[ST(ESTABLISHED)] = { S_RX_REQ, S_REPLY, S_RX_RTU, 0 },
		[ST(DREQ_SENT)] = { S_RX_REQ, S_REPLY, S_RX_RTU, S_DISCONNECT, 0 },
		[ST(DREQ_RCVD)] = { S_RX_REQ, S_REPLY, S_RX_RTU, S_RX_DREQ, 0 },
		[ST(TIMEWAIT)] = { S_RX_REQ, S_REPLY, S_RX_RTU, S_RX_DREQ, S_CLOSED, 0 },
	};
	const enum stimulus *way = active ? active_way[s] : passive_way[s];

	if (s == ST(IDLE))
		return;
	do {
		cr_assert_eq(cm_rig_apply(r, *way), 0);
		if (*way == S_RX_REQ)
			r->id = r->o.report[0].id;
	} while (*++way);
	cr_assert_eq(ddps_cm_state(r->cm, r->id), s, "%s not reached", ddps_cm_state_name(s));
}
