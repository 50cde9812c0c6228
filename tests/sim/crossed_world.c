/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Two nodes that want to connect to each other over a wire that loses, delays, reorders and
 * duplicates, in virtual time, by seed.  In the end there is one connection, never two and
 * never none; with a node that does as Linux does there are two, one a direction.
 */
#include "sim/crossed_world.h"
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "ipoib_cm/cm/cm_conn.h"
#include "ipoib_cm/cm/link.h"

#define MAX_FLY	  256
#define MAX_STEPS 40000
#define US	  1000ull
#define MS	  1000000ull
#define QUIET	  (400 * MS)  /* without faults, at the end of a run */
#define FAST	  (100 * US)  /* the delay in that time */
#define DARK_MAX  (2000 * MS) /* with the timers of real life, and one message lost */
#define REAL_RUN  (20000 * MS)

static uint64_t current; /* the seed */

static void must(bool ok, const char *what, int line)
{
	if (ok)
		return;
	fprintf(stderr, "crossed_world.c:%d: seed %" PRIu64 ": %s\n", line, current, what);
	abort();
}

#define MUST(cond) must(cond, #cond, __LINE__)

static struct crossed_met *met;

struct flying {
	uint64_t at;
	unsigned to;
	uint8_t mad[DDPS_CM_MAD_LEN];
};

struct world;

struct node {
	struct world *w;
	unsigned nr;
	struct ddps_ipoib_links links;
	struct ddps_ipoib_link link;
	uint32_t next_qpn;
	uint64_t traffic_at;
	bool linux_kind;
	uint32_t own; /* Linux: its own REQ or connection; 0: none */
	bool own_up;
	uint64_t dark_from; /* since when there is no connection to send on */
};

struct world {
	uint64_t rng, now, calm_at;
	struct node node[2];
	struct flying fly[MAX_FLY];
	unsigned n_fly;
	unsigned loss, dup; /* per 1000 */
	uint64_t max_delay;
	bool real; /* the timers of real life, one message is lost */
	unsigned n_sent, lose;
	uint64_t dark; /* the longest time that a node of ours was without a connection */
};

static uint64_t rnd(struct world *w, uint64_t below)
{
	uint64_t z = w->rng += 0x9e3779b97f4a7c15; /* splitmix64 */

	z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9;
	z = (z ^ z >> 27) * 0x94d049bb133111eb;
	return (z ^ z >> 31) % below;
}

/* ---- The wire ---- */

static void put(struct world *w, unsigned to, const uint8_t *mad)
{
	bool calm = w->now >= w->calm_at;
	struct flying *f;

	if (w->n_fly == MAX_FLY ||
	    (w->real ? w->n_sent++ == w->lose : !calm && rnd(w, 1000) < w->loss)) {
		met->lost++;
		return;
	}
	f = &w->fly[w->n_fly++];
	f->at = w->now + 1 + rnd(w, calm && !w->real ? FAST : w->max_delay);
	f->to = to;
	memcpy(f->mad, mad, sizeof(f->mad));
}

static void on_send(void *user, const struct ddps_cm_send *s)
{
	struct node *n = user;
	struct world *w = n->w;
	struct ddps_cm_mad m;

	MUST(ddps_cm_mad_decode(&m, s->mad, sizeof(s->mad)) == 0);
	met->refused += m.hdr.attr_id == DDPS_CM_REJ && m.u.rej.msg == DDPS_CM_MSG_REQ &&
			m.u.rej.reason == DDPS_CM_REJ_CONSUMER;
	met->withdrawn += m.hdr.attr_id == DDPS_CM_REJ && m.u.rej.msg == DDPS_CM_MSG_REP;
	met->closed += m.hdr.attr_id == DDPS_CM_DREQ;
	put(w, !n->nr, s->mad);
	while (!w->real && w->now < w->calm_at && rnd(w, 1000) < w->dup)
		put(w, !n->nr, s->mad);
}

/* ---- The owner of the queue pairs ---- */

static int on_ask(void *user, struct ddps_ipoib_link *l, struct ddps_cm_req *req)
{
	struct node *n = user;

	MUST(l == &n->link);
	req->qpn = n->next_qpn++;
	req->remote_cm_timeout = req->local_cm_timeout = n->w->real ? 18 : 8; /* 1 s, 1 ms */
	req->max_cm_retries = 15;
	req->primary.ack_timeout = n->w->real ? 15 : 8;
	return 0;
}

static int on_answer(void *user, struct ddps_ipoib_link *l, uint32_t id,
		     const struct ddps_cm_req *req, struct ddps_cm_rep *rep)
{
	struct node *n = user;

	MUST(l == &n->link);
	MUST(id && req->qpn);
	rep->qpn = n->next_qpn++;
	return 0;
}

static void on_up(void *user, struct ddps_ipoib_link *l, uint32_t id, uint32_t mtu, bool to_send)
{
	const struct node *n = user;

	MUST(l == &n->link);
	MUST(mtu == 32768); /* the smaller Receive MTU of both, less 4 */
	MUST(to_send || n->w->node[!n->nr].linux_kind);
	MUST(ddps_cm_state(n->links.cm, id) == DDPS_CM_ST_ESTABLISHED);
}

static void on_down(void *user, struct ddps_ipoib_link *l, uint32_t id)
{
	const struct node *n = user;

	MUST(l == &n->link);
	MUST(ddps_cm_state(n->links.cm, id) != DDPS_CM_ST_ESTABLISHED);
}

static void on_resolve(void *user, struct ddps_ipoib_link *l)
{
	const struct node *n = user;

	MUST(l == &n->link);
}

static const struct ddps_ipoib_link_ops ops = {
	.send = on_send,
	.ask = on_ask,
	.answer = on_answer,
	.up = on_up,
	.down = on_down,
	.resolve = on_resolve,
};

/* ---- A node that does as Linux does ---- */

static void flush(struct node *n, const struct ddps_cm_outs *o)
{
	for (unsigned i = 0; i < o->n_send; i++)
		on_send(n, &o->send[i]);
}

/* UD queue pair and Receive MTU. */
static void put_priv(const struct node *n, uint8_t *at)
{
	const struct ddps_ipoib_priv priv = { .qpn = n->links.me.addr.qpn,
					      .rx_mtu = n->links.me.rx_mtu };

	MUST(ddps_ipoib_priv_encode(at, &priv) == 0);
}

static void linux_traffic(struct node *n)
{
	struct ddps_cm_connect c = { .packet_life = n->links.packet_life, .to = !n->nr };
	struct ddps_cm_outs o;

	if (n->own)
		return;
	on_ask(n, &n->link, &c.req);
	c.req.pkey = n->links.me.pkey;
	memcpy(c.req.primary.local_gid, n->links.me.addr.gid, DDPS_IPOIB_GID_LEN);
	memcpy(c.req.primary.remote_gid, n->link.remote.gid, DDPS_IPOIB_GID_LEN);
	put_priv(n, c.req.private_data);
	MUST(!ddps_ipoib_service_id(&c.req.service_id, DDPS_IPOIB_SID_LINUX, n->link.remote.qpn));
	MUST(!ddps_cm_connect(n->links.cm, &c, n->w->now, &n->own, &o));
	flush(n, &o);
}

/* Every REQ is accepted, an RTU says nothing, a connection that ends is forgotten. */
static void linux_report(struct node *n, const struct ddps_cm_report *r)
{
	static const uint8_t nothing[DDPS_IPOIB_PRIV_LEN];
	struct ddps_cm_rep rep = { 0 };
	struct ddps_cm_outs o = { 0 };
	uint64_t now = n->w->now;

	switch (r->ev) {
	case DDPS_CM_EV_RX_REQ:
		rep.qpn = n->next_qpn++;
		put_priv(n, rep.private_data);
		MUST(!ddps_cm_reply(n->links.cm, r->id, &rep, now, &o));
		break;
	case DDPS_CM_EV_RX_REP:
		MUST(!ddps_cm_ready(n->links.cm, r->id, nothing, now, &o));
		n->own_up = true;
		break;
	case DDPS_CM_EV_RX_RTU:
	case DDPS_CM_EV_DATA_IN:
	case DDPS_CM_EV_T_END_DATA:
		return;
	case DDPS_CM_EV_RX_DREQ:
		(void)ddps_cm_closed(n->links.cm, r->id, now, &o);
		/* fall through */
	default:
		if (r->id == n->own) {
			n->own = 0;
			n->own_up = false;
		}
	}
	flush(n, &o);
}

/* ---- What happens ---- */

static void handle(struct node *n, const struct ddps_cm_outs *o)
{
	struct ddps_ipoib_lladdr from;
	struct ddps_ipoib_priv priv;

	for (unsigned i = 0; i < o->n_send; i++)
		on_send(n, &o->send[i]);
	for (unsigned i = 0; i < o->n_report; i++) {
		const struct ddps_cm_report *r = &o->report[i];

		if (n->linux_kind) {
			linux_report(n, r);
			continue;
		}
		if (r->ev == DDPS_CM_EV_RX_REQ) {
			MUST(ddps_ipoib_admit_req(&n->links.me, &r->mad->u.req, &from, &priv) == 0);
			MUST(ddps_ipoib_lladdr_cmp(&from, &n->link.remote) == 0);
		} else {
			MUST(r->user == &n->link);
		}
		ddps_ipoib_link_report(&n->link, r, n->w->now);
	}
}

static void deliver(struct world *w, unsigned i)
{
	struct flying f = w->fly[i];
	struct node *n = &w->node[f.to];
	struct ddps_cm_outs o;

	w->fly[i] = w->fly[--w->n_fly];
	MUST(ddps_cm_rx(n->links.cm, f.mad, sizeof(f.mad), !f.to, w->now, &o) == 0);
	handle(n, &o);
}

/* The far end of a connection, if it can receive. */
static const struct ddps_cm_conn *far_end(const struct node *n, const struct ddps_cm_conn *c)
{
	const struct node *other = &n->w->node[!n->nr];
	const struct ddps_cm_conn *far = ddps_cm_conn_find(other->links.cm, c->remote_id);

	if (!far || !far->has_remote || far->remote_id != c->local_id)
		return NULL;
	return far->state == DDPS_CM_ST_REP_SENT || far->state == DDPS_CM_ST_MRA_REP_RCVD ||
			       far->state == DDPS_CM_ST_ESTABLISHED
		       ? far
		       : NULL;
}

/* What a node of ours can send on; for how long it could not. */
static bool usable(struct node *n, uint32_t *id)
{
	bool can = n->linux_kind ? n->own_up : ddps_ipoib_peer_usable(&n->link.peer, id);
	uint64_t dark = can ? 0 : n->w->now - n->dark_from;

	if (n->linux_kind)
		*id = n->own;
	if (can)
		n->dark_from = n->w->now;
	else if (!n->linux_kind && dark > n->w->dark)
		n->w->dark = dark;
	return can;
}

static void fails(struct node *n, uint32_t id)
{
	struct ddps_cm_outs o;

	met->broken++;
	if (!n->linux_kind) {
		ddps_ipoib_link_broken(&n->link, id, n->w->now);
		return;
	}
	if (!ddps_cm_disconnect(n->links.cm, id, n->w->now, &o))
		flush(n, &o);
	if (id == n->own) {
		n->own = 0;
		n->own_up = false;
	}
}

/* Nothing is under way that could end what node @n sends on, in times that are long: few packets do. */
static bool rests(const struct node *n, const struct ddps_cm_conn *c)
{
	const struct world *w = n->w;

	return (w->real || w->now >= w->calm_at) && !w->n_fly && far_end(n, c);
}

/*
 * A packet fails on a half-open connection; later the others are found to be idle.
 * Return: when there is the next packet.
 */
static uint64_t use(struct node *n)
{
	struct ddps_cm_conn *c, *next;
	bool rare = false;
	uint32_t id = 0;

	if (usable(n, &id)) {
		c = ddps_cm_conn_find(n->links.cm, id);
		MUST(c && c->state == DDPS_CM_ST_ESTABLISHED);
		rare = rests(n, c);
	}
	for (c = n->links.cm->conns; c; c = next) {
		next = c->next;
		if (c->state == DDPS_CM_ST_ESTABLISHED && !far_end(n, c) &&
		    (c->local_id == id || n->w->now >= n->w->calm_at)) {
			fails(n, c->local_id);
			rare = false;
			break;
		}
	}
	if (n->linux_kind)
		linux_traffic(n);
	else
		ddps_ipoib_link_traffic(&n->link, n->w->now);
	return n->w->now + MS + rnd(n->w, !rare ? 10 * MS : n->w->real ? 200 * MS : 50 * MS);
}

static void step(struct world *w)
{
	struct ddps_cm_outs o;
	uint64_t at = DDPS_CM_NEVER;
	unsigned what = 0;

	for (unsigned i = 0; i < w->n_fly; i++)
		if (w->fly[i].at < at) {
			at = w->fly[i].at;
			what = 4 + i;
		}
	for (unsigned i = 0; i < 2; i++) {
		uint64_t due = ddps_cm_deadline(w->node[i].links.cm);

		if (due < at) {
			at = due;
			what = i;
		}
		if (w->node[i].traffic_at < at) {
			at = w->node[i].traffic_at;
			what = 2 + i;
		}
	}
	if (at > w->now)
		w->now = at;
	if (what >= 4) {
		deliver(w, what - 4);
	} else if (what >= 2) {
		w->node[what - 2].traffic_at = use(&w->node[what - 2]);
	} else {
		MUST(ddps_cm_tick(w->node[what].links.cm, w->now, &o) == 1);
		handle(&w->node[what], &o);
	}
}

/* ---- A run ---- */

static void make_node(struct world *w, unsigned nr, enum crossed_kind kind)
{
	struct node *n = &w->node[nr];
	const struct ddps_cm_config cfg = {
		.struct_size = sizeof(cfg),
		.ca_guid = 0x10 + nr,
		.tid_high = nr,
		.id_seed = (uint32_t)rnd(w, UINT32_MAX),
		.max_conns = 64,
	};
	struct ddps_cm_listener l = { .pkey = 0xffff, .user = n };

	n->w = w;
	n->nr = nr;
	n->next_qpn = 0x1000 * (nr + 1);
	n->traffic_at = w->real ? rnd(w, 10 * MS) : rnd(w, 3) ? rnd(w, 3 * MS) : 0;
	MUST(ddps_cm_new(&n->links.cm, &cfg) == 0);
	n->links.me.addr.flags = DDPS_IPOIB_RC;
	n->links.me.addr.qpn = 0x40 + (uint32_t)rnd(w, 2); /* often equal: the GID decides */
	n->links.me.addr.gid[15] = (uint8_t)(2 * rnd(w, 100) + nr);
	n->links.me.pkey = 0xffff;
	n->links.me.rx_mtu = nr ? 32772 : 65524;
	n->links.me.min_mtu = DDPS_IPOIB_MTU_MIN_V6;
	n->links.policy = (struct ddps_ipoib_policy){
		.many = kind == CROSSED_MANY,
		.backoff_ns = w->real ? 1000 * MS : 1 + rnd(w, 20 * MS),
		.long_ns = w->real ? 30000 * MS : 20 * MS,
		.soon_ns = w->real ? 100 * MS : 1 + rnd(w, 5 * MS),
	};
	n->linux_kind = kind == CROSSED_LINUX && nr;
	n->links.packet_life = w->real ? 14 : 5;
	n->links.ops = &ops;
	n->links.user = n;
	memcpy(l.gid, n->links.me.addr.gid, sizeof(l.gid));
	for (unsigned f = n->linux_kind; f < 2; f++) {
		MUST(ddps_ipoib_service_id(&l.service_id, (enum ddps_ipoib_sid_form)f,
					   n->links.me.addr.qpn) == 0);
		MUST(ddps_cm_listen(n->links.cm, &l) == 0);
	}
}

/* @lose: a message, with the timers of real life; or WILD. */
#define WILD UINT32_MAX

static void make_world(struct world *w, uint64_t seed, enum crossed_kind kind, uint32_t lose)
{
	static const uint64_t delay[] = { 50 * US, 500 * US, 3 * MS, 30 * MS };

	memset(w, 0, sizeof(*w));
	current = seed;
	w->rng = seed;
	w->real = lose != WILD;
	w->lose = lose;
	if (w->real) {
		w->max_delay = delay[rnd(w, 3)];
		w->calm_at = REAL_RUN / 2;
	} else {
		w->loss = (unsigned)rnd(w, 2) * (unsigned)rnd(w, 500);
		w->dup = (unsigned)rnd(w, 2) * (unsigned)rnd(w, 300);
		w->max_delay = delay[rnd(w, 4)];
		w->calm_at = rnd(w, 100 * MS);
	}
	make_node(w, 0, kind);
	make_node(w, 1, kind);
	for (unsigned i = 0; i < 2; i++)
		ddps_ipoib_link_init(&w->node[i].link, &w->node[i].links,
				     &w->node[!i].links.me.addr, !i,
				     (enum ddps_ipoib_sid_form)rnd(w, 2));
}

/* Connections of node @n that are up, and how many of them are so at both ends. */
static unsigned count(const struct node *n, unsigned *both)
{
	unsigned up = 0;

	*both = 0;
	for (const struct ddps_cm_conn *c = n->links.cm->conns; c; c = c->next)
		if (c->state == DDPS_CM_ST_ESTABLISHED) {
			const struct ddps_cm_conn *far = far_end(n, c);

			up++;
			*both += far && far->state == DDPS_CM_ST_ESTABLISHED;
		}
	return up;
}

/* Return: how many connections are left in the end. */
static unsigned run(uint64_t seed, enum crossed_kind kind, uint32_t lose)
{
	static struct world w;
	uint32_t id[2] = { 0, 0 };
	unsigned both[2], steps = 0;

	make_world(&w, seed, kind, lose);
	for (; w.now < (w.real ? REAL_RUN : w.calm_at + QUIET) && steps < MAX_STEPS; steps++)
		step(&w);
	MUST(steps < MAX_STEPS);
	for (unsigned i = 0; i < 2; i++) {
		unsigned up = count(&w.node[i], &both[i]);

		MUST(up == both[i]); /* none is half open */
		MUST(usable(&w.node[i], &id[i]));
		MUST(w.node[i].linux_kind || w.node[i].link.peer.n_pending == 0);
	}
	MUST(both[0] == both[1]);
	if (both[0] == 1)
		MUST(ddps_cm_conn_find(w.node[0].links.cm, id[0])->remote_id == id[1]);
	if (kind == CROSSED_LINUX) /* each sends on what it has asked for */
		MUST(ddps_cm_conn_find(w.node[0].links.cm, id[0])->active &&
		     ddps_cm_conn_find(w.node[1].links.cm, id[1])->active);
	MUST(!w.real || w.dark < DARK_MAX);
	ddps_cm_free(w.node[0].links.cm);
	ddps_cm_free(w.node[1].links.cm);
	return both[0];
}

unsigned crossed_run(uint64_t seed, enum crossed_kind kind, struct crossed_met *m)
{
	met = m;
	return run(seed, kind, WILD);
}

unsigned crossed_lose(uint64_t seed, enum crossed_kind kind, unsigned lost, struct crossed_met *m)
{
	met = m;
	return run(seed, kind, lost);
}
