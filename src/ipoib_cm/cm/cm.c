/* SPDX-License-Identifier: BSD-2-Clause */
/* The connection manager: connections, listeners, calls of the consumer, timers. */
#include <stdlib.h>
#include <string.h>
#include "common/sized.h"
#include "ipoib_cm/cm/cm_conn.h"
#include "ipoib_cm/cm/cm_own.h"

#define MAX_CONNS     65535u
#define DEFAULT_CONNS 512u

static const struct ddps_cm_config defaults = { .struct_size = sizeof(defaults),
						.max_conns = DEFAULT_CONNS };

void ddps_cm_config_init_sized(struct ddps_cm_config *cfg, size_t size)
{
	const struct ddps_sized s = DDPS_SIZED(ddps_cm_config, sizeof(struct ddps_cm_config));

	ddps_sized_init(cfg, size, &defaults, &s);
}

int ddps_cm_new(struct ddps_cm **out, const struct ddps_cm_config *cfg)
{
	const struct ddps_sized s = DDPS_SIZED(ddps_cm_config, sizeof(struct ddps_cm_config));
	struct ddps_cm_config mine = defaults;
	int err = ddps_sized_take(&mine, cfg, &s);
	struct ddps_cm *cm;

	if (err)
		return err;
	if (!mine.max_conns || mine.max_conns > MAX_CONNS)
		return DDPS_E_INVAL;
	cm = calloc(1, sizeof(*cm));
	if (!cm)
		return DDPS_E_NOMEM;
	cm->cfg = mine;
	cm->key = (struct ddps_siphash_key){ { mine.hash_key[0], mine.hash_key[1] } };
	if (!ddps_tab_new(&cm->by_id, mine.max_conns) ||
	    !ddps_tab_new(&cm->by_remote, mine.max_conns) ||
	    !ddps_tab_new(&cm->by_qpn, mine.max_conns) ||
	    !ddps_tab_new(&cm->by_addr, mine.max_conns) ||
	    !ddps_dues_new(&cm->dues, mine.max_conns)) {
		ddps_cm_free(cm);
		return DDPS_E_NOMEM;
	}
	*out = cm;
	return 0;
}

void ddps_cm_free(struct ddps_cm *cm)
{
	if (!cm)
		return;
	cm->gone = NULL;
	while (!LIST_EMPTY(&cm->conns))
		ddps_cm_conn_drop(cm, LIST_FIRST(&cm->conns));
	while (!LIST_EMPTY(&cm->listeners))
		ddps_cm_unlisten(cm, LIST_FIRST(&cm->listeners)->l.service_id);
	free(cm->by_id.row);
	free(cm->by_remote.row);
	free(cm->by_qpn.row);
	free(cm->by_addr.row);
	free(cm->dues.heap);
	free(cm);
}

struct ddps_cm_listening *ddps_cm_listener_find(const struct ddps_cm *cm, uint64_t service_id)
{
	struct ddps_cm_listening *at;

	LIST_FOREACH(at, &cm->listeners, of_all)
		if (at->l.service_id == service_id)
			return at;
	return NULL;
}

static int add_listener(struct ddps_cm *cm, struct ddps_cm_listening *new)
{
	if (ddps_cm_listener_find(cm, new->l.service_id))
		return DDPS_E_BUSY;
	LIST_INSERT_HEAD(&cm->listeners, new, of_all);
	return 0;
}

int ddps_cm_listen(struct ddps_cm *cm, const struct ddps_cm_listener *l)
{
	struct ddps_cm_listening *new = malloc(sizeof(*new));
	int err;

	if (!new)
		return DDPS_E_NOMEM;
	*new = (struct ddps_cm_listening){ .l = *l };
	err = add_listener(cm, new);
	if (err)
		free(new);
	return err;
}

int ddps_cm_listen_kept(struct ddps_cm *cm, struct ddps_cm_listening *kept)
{
	kept->kept = true;
	return add_listener(cm, kept);
}

void ddps_cm_unlisten(struct ddps_cm *cm, uint64_t service_id)
{
	struct ddps_cm_listening *gone = ddps_cm_listener_find(cm, service_id);

	if (!gone)
		return;
	LIST_REMOVE(gone, of_all);
	if (!gone->kept)
		free(gone);
}

static enum ddps_cm_event timer_event(const struct ddps_cm_conn *c)
{
	switch (c->state) {
	case DDPS_CM_ST_TIMEWAIT:
	case DDPS_CM_ST_WITHDRAWN:
		return DDPS_CM_EV_T_END;
	case DDPS_CM_ST_REP_SENT:
	case DDPS_CM_ST_MRA_REP_RCVD:
		if (!c->retries_left && c->data_seen)
			return DDPS_CM_EV_T_END_DATA;
		break;
	default:
		break;
	}
	return c->retries_left ? DDPS_CM_EV_T_RESEND : DDPS_CM_EV_T_END;
}

uint64_t ddps_cm_deadline(const struct ddps_cm *cm)
{
	return ddps_dues_first(&cm->dues);
}

int ddps_cm_tick(struct ddps_cm *cm, uint64_t now, struct ddps_cm_outs *o)
{
	struct ddps_due *first = ddps_dues_ready(&cm->dues, now);
	struct ddps_cm_in in = { .now = now };
	struct ddps_cm_conn *due;

	o->n_send = o->n_report = 0;
	if (!first || now == DDPS_CM_NEVER)
		return 0;
	due = (struct ddps_cm_conn *)(void *)((char *)first - offsetof(struct ddps_cm_conn, due));
	in.ev = timer_event(due);
	ddps_cm_step(cm, due, &in, o); /* a running timer has a rule in every state */
	return 1;
}

/* T_req, and how long a REP may come to a REQ that was given up. */
static void set_active_times(struct ddps_cm_conn *c, const struct ddps_cm_connect *p)
{
	uint64_t trip = 2 * ddps_cm_time_ns(p->packet_life);

	c->life = (uint8_t)(p->packet_life > DDPS_CM_TIME_MAX ? DDPS_CM_TIME_MAX : p->packet_life);
	c->resp_ns = trip + ddps_cm_time_ns(p->req.remote_cm_timeout);
	c->retries = p->req.max_cm_retries;
	c->linger_ns = trip + (c->retries + 1u) * ddps_cm_time_ns(p->req.local_cm_timeout);
	c->timewait_ns = ddps_cm_time_ns(p->req.primary.ack_timeout);
}

int ddps_cm_connect(struct ddps_cm *cm, const struct ddps_cm_connect *p, uint64_t now, uint32_t *id,
		    struct ddps_cm_outs *o)
{
	struct ddps_cm_in in = { .ev = DDPS_CM_EV_CONNECT, .now = now, .req = &p->req };
	struct ddps_cm_conn *c;
	int err;

	o->n_send = o->n_report = 0;
	c = ddps_cm_conn_new(cm);
	if (!c)
		return cm->n_conns >= cm->cfg.max_conns ? DDPS_E_LIMIT : DDPS_E_NOMEM;
	c->active = true;
	c->tid = (uint64_t)cm->cfg.tid_high << 32 | c->local_id;
	c->local_qpn = p->req.qpn;
	c->addr = p->to;
	c->user = p->user;
	memcpy(c->priv, p->req.private_data, sizeof(c->priv));
	set_active_times(c, p);
	err = ddps_cm_step(cm, c, &in, o);
	if (err) {
		ddps_cm_conn_drop(cm, c);
		return err;
	}
	*id = c->local_id;
	return 0;
}

/* A call of the consumer about connection @id. */
static int call_conn(struct ddps_cm *cm, uint32_t id, const struct ddps_cm_in *in,
		     struct ddps_cm_outs *o)
{
	struct ddps_cm_conn *c = ddps_cm_conn_find(cm, id);

	o->n_send = o->n_report = 0;
	return c ? ddps_cm_step(cm, c, in, o) : DDPS_E_INVAL;
}

/* ACCEPT means another message at each side, and so is another call. */
static int accept_as(struct ddps_cm *cm, bool active, uint32_t id, const struct ddps_cm_in *in,
		     struct ddps_cm_outs *o)
{
	const struct ddps_cm_conn *c = ddps_cm_conn_find(cm, id);

	if (!c || c->active == active)
		return call_conn(cm, id, in, o);
	o->n_send = o->n_report = 0;
	return DDPS_E_STATE;
}

int ddps_cm_reply(struct ddps_cm *cm, uint32_t id, const struct ddps_cm_rep *rep, uint64_t now,
		  struct ddps_cm_outs *o)
{
	const struct ddps_cm_in in = { .ev = DDPS_CM_EV_ACCEPT, .now = now, .rep = rep };

	return accept_as(cm, false, id, &in, o);
}

int ddps_cm_ready(struct ddps_cm *cm, uint32_t id, const uint8_t *priv, uint64_t now,
		  struct ddps_cm_outs *o)
{
	const struct ddps_cm_in in = { .ev = DDPS_CM_EV_ACCEPT, .now = now, .priv = priv };

	return accept_as(cm, true, id, &in, o);
}

int ddps_cm_reject(struct ddps_cm *cm, uint32_t id, uint16_t reason, const uint8_t *priv,
		   uint64_t now, struct ddps_cm_outs *o)
{
	const struct ddps_cm_in in = {
		.ev = DDPS_CM_EV_REJECT, .now = now, .reason = reason, .priv = priv
	};

	return call_conn(cm, id, &in, o);
}

int ddps_cm_delay(struct ddps_cm *cm, uint32_t id, uint8_t service_timeout, const uint8_t *priv,
		  uint64_t now, struct ddps_cm_outs *o)
{
	const struct ddps_cm_in in = {
		.ev = DDPS_CM_EV_DELAY,
		.now = now,
		.service_timeout = service_timeout,
		.priv = priv,
	};

	return call_conn(cm, id, &in, o);
}

int ddps_cm_abort(struct ddps_cm *cm, uint32_t id, uint16_t reason, uint64_t now,
		  struct ddps_cm_outs *o)
{
	const struct ddps_cm_in in = { .ev = DDPS_CM_EV_ABORT, .now = now, .reason = reason };

	return call_conn(cm, id, &in, o);
}

int ddps_cm_withdraw(struct ddps_cm *cm, uint32_t id, uint64_t now, struct ddps_cm_outs *o)
{
	const struct ddps_cm_in in = { .ev = DDPS_CM_EV_WITHDRAW, .now = now };

	return call_conn(cm, id, &in, o);
}

int ddps_cm_disconnect(struct ddps_cm *cm, uint32_t id, uint64_t now, struct ddps_cm_outs *o)
{
	const struct ddps_cm_in in = { .ev = DDPS_CM_EV_DISCONNECT, .now = now };

	return call_conn(cm, id, &in, o);
}

int ddps_cm_closed(struct ddps_cm *cm, uint32_t id, uint64_t now, struct ddps_cm_outs *o)
{
	const struct ddps_cm_in in = { .ev = DDPS_CM_EV_CLOSED, .now = now };

	return call_conn(cm, id, &in, o);
}

int ddps_cm_data_is_rtu(struct ddps_cm *cm, uint32_t id, uint64_t now, struct ddps_cm_outs *o)
{
	const struct ddps_cm_in in = { .ev = DDPS_CM_EV_DATA_IN, .now = now };

	return call_conn(cm, id, &in, o);
}

int ddps_cm_data_seen(struct ddps_cm *cm, uint32_t id)
{
	struct ddps_cm_conn *c = ddps_cm_conn_find(cm, id);

	if (!c)
		return DDPS_E_INVAL;
	c->data_seen = true;
	return 0;
}

int ddps_cm_set_user(struct ddps_cm *cm, uint32_t id, void *user)
{
	struct ddps_cm_conn *c = ddps_cm_conn_find(cm, id);

	if (!c)
		return DDPS_E_INVAL;
	c->user = user;
	return 0;
}

enum ddps_cm_state ddps_cm_state(const struct ddps_cm *cm, uint32_t id)
{
	const struct ddps_cm_conn *c = ddps_cm_conn_find(cm, id);

	return c ? c->state : DDPS_CM_ST_IDLE;
}

const struct ddps_cm_stats *ddps_cm_stats(const struct ddps_cm *cm)
{
	return &cm->stats;
}
