/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Two nodes that want to connect to each other over a wire that loses, delays, reorders and
 * duplicates, in virtual time, by seed.  In the end there is one connection, never two and
 * never none; with a node that does as Linux does there are two, one a direction.
 */
#include "ipoib_cm/cm/cm_own.h"
#include "ipoib_cm/wire/wire.h"
#include "sim/crossed_in.h"
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define MAX_STEPS 40000
#define US	  1000ull
#define QUIET	  (400 * MS)  /* without faults, at the end of a run */
#define FAST	  (100 * US)  /* the delay in that time */
#define DARK_MAX  (2000 * MS) /* with the timers of real life, and one message lost or a restart */
#define REAL_RUN  (20000 * MS)
#define AGAIN	  (4000 * MS) /* restarts begin in that time */

static uint64_t current; /* the seed */
static struct crossed_met *met;

void crossed_must(bool ok, const char *what, const char *file, int line)
{
	if (ok)
		return;
	fprintf(stderr, "%s:%d: seed %" PRIu64 ": %s\n", file, line, current, what);
	abort();
}

static uint64_t draw_crossed(struct world *w, uint64_t below)
{
	uint64_t z = w->rng += 0x9e3779b97f4a7c15; /* splitmix64 */

	z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9;
	z = (z ^ z >> 27) * 0x94d049bb133111eb;
	return (z ^ z >> 31) % below;
}

/* ---- The wire ---- */

static void put_crossed_world(struct world *w, unsigned to, const uint8_t *mad)
{
	bool calm = w->now >= w->calm_at;
	struct flying *f;

	if (w->n_fly == MAX_FLY ||
	    (w->real ? w->n_sent++ == w->lose : !calm && draw_crossed(w, 1000) < w->loss)) {
		met->lost++;
		return;
	}
	f = &w->fly[w->n_fly++];
	f->at = w->now + 1 + draw_crossed(w, calm && !w->real ? FAST : w->max_delay);
	f->to = to;
	memcpy(f->mad, mad, sizeof(f->mad));
}

void crossed_send(void *user, const struct ddps_cm_send *s)
{
	struct node *n = user;
	struct world *w = n->w;
	struct ddps_cm_mad m;

	MUST(ddps_cm_mad_decode(&m, s->mad, sizeof(s->mad)) == 0);
	met->refused += m.hdr.attr_id == DDPS_CM_REJ && m.u.rej.msg == DDPS_CM_MSG_REQ &&
			m.u.rej.reason == DDPS_CM_REJ_CONSUMER;
	met->withdrawn += m.hdr.attr_id == DDPS_CM_REJ && m.u.rej.msg == DDPS_CM_MSG_REP;
	met->closed += m.hdr.attr_id == DDPS_CM_DREQ;
	put_crossed_world(w, !n->nr, s->mad);
	while (!w->real && w->now < w->calm_at && draw_crossed(w, 1000) < w->dup)
		put_crossed_world(w, !n->nr, s->mad);
}

/* ---- The owner of the queue pairs ---- */

int crossed_ask(void *user, struct ddps_ipoib_link *l, struct ddps_cm_req *req)
{
	struct node *n = user;

	MUST(l == &n->link);
	req->qpn = n->next_qpn++;
	req->remote_cm_timeout = req->local_cm_timeout = n->w->timeout;
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

static void take_crossed_world_up(void *user, struct ddps_ipoib_link *l, uint32_t id, uint32_t mtu,
				  bool to_send)
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
	.send = crossed_send,
	.ask = crossed_ask,
	.answer = on_answer,
	.up = take_crossed_world_up,
	.down = on_down,
	.resolve = on_resolve,
};

/* ---- What happens ---- */

static void handle_crossed_event(struct node *n, const struct ddps_cm_outs *o)
{
	struct ddps_ipoib_lladdr from;
	struct ddps_ipoib_priv priv;

	for (unsigned i = 0; i < o->n_send; i++)
		crossed_send(n, &o->send[i]);
	for (unsigned i = 0; i < o->n_report; i++) {
		const struct ddps_cm_report *r = &o->report[i];

		if (n->linux_kind) {
			crossed_linux_report(n, r);
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

static void deliver_to_crossed_world(struct world *w, unsigned i)
{
	struct flying f = w->fly[i];
	struct node *n = &w->node[f.to];
	struct ddps_cm_outs o;

	w->fly[i] = w->fly[--w->n_fly];
	MUST(ddps_cm_rx(n->links.cm, f.mad, sizeof(f.mad), !f.to, w->now, &o) == 0);
	handle_crossed_event(n, &o);
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

static void make_crossed_world_fail(struct node *n, uint32_t id)
{
	met->broken++;
	if (n->linux_kind)
		crossed_linux_fails(n, id);
	else
		ddps_ipoib_link_broken(&n->link, id, n->w->now);
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
	for (c = LIST_FIRST(&n->links.cm->conns); c; c = next) {
		next = LIST_NEXT(c, of_all);
		if (c->state == DDPS_CM_ST_ESTABLISHED && !far_end(n, c) &&
		    (c->local_id == id || n->w->now >= n->w->calm_at)) {
			make_crossed_world_fail(n, c->local_id);
			rare = false;
			break;
		}
	}
	if (n->linux_kind)
		crossed_linux_traffic(n);
	else
		ddps_ipoib_link_traffic(&n->link, n->w->now);
	return n->w->now + MS +
	       draw_crossed(n->w, !rare	       ? 10 * MS
				  : n->w->real ? 200 * MS
					       : 50 * MS);
}

static void restart_crossed_world(struct node *n);

static void step_crossed_world(struct world *w)
{
	struct ddps_cm_outs o;
	uint64_t at = DDPS_CM_NEVER;
	unsigned what = 0;

	for (unsigned i = 0; i < w->n_fly; i++)
		if (w->fly[i].at < at) {
			at = w->fly[i].at;
			what = 6 + i;
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
		if (w->node[i].again_at < at) {
			at = w->node[i].again_at;
			what = 4 + i;
		}
	}
	if (at > w->now)
		w->now = at;
	if (what >= 6) {
		deliver_to_crossed_world(w, what - 6);
	} else if (what >= 4) {
		restart_crossed_world(&w->node[what - 4]);
	} else if (what >= 2) {
		w->node[what - 2].traffic_at = use(&w->node[what - 2]);
	} else {
		MUST(ddps_cm_tick(w->node[what].links.cm, w->now, &o) == 1);
		handle_crossed_event(&w->node[what], &o);
	}
}

/* ---- A run ---- */

/* A connection manager that has nothing behind it. */
static void start(struct node *n, uint32_t id_seed)
{
	const struct ddps_cm_config cfg = {
		.struct_size = sizeof(cfg),
		.ca_guid = 0x10 + n->nr,
		.tid_high = n->nr,
		.id_seed = id_seed,
		.max_conns = 64,
	};
	struct ddps_cm_listener l = { .pkey = 0xffff, .user = n };

	n->next_qpn = 0x1000 * (n->nr + 1);
	MUST(ddps_cm_new(&n->links.cm, &cfg) == 0);
	memcpy(l.gid, n->links.me.addr.gid, sizeof(l.gid));
	for (unsigned f = n->linux_kind; f < 2; f++) {
		MUST(ddps_ipoib_service_id(&l.service_id, (enum ddps_ipoib_sid_form)f,
					   n->links.me.addr.qpn) == 0);
		MUST(ddps_cm_listen(n->links.cm, &l) == 0);
	}
}

static void know_the_other(struct node *n)
{
	ddps_ipoib_link_init(&n->link, &n->links, &n->w->node[!n->nr].links.me.addr, !n->nr,
			     (enum ddps_ipoib_sid_form)draw_crossed(n->w, 2));
}

/* It has forgotten all, and gives its queue pairs the numbers that they had. */
static void restart_crossed_world(struct node *n)
{
	met->restarts++;
	ddps_cm_free(n->links.cm);
	start(n, (uint32_t)draw_crossed(n->w, UINT32_MAX));
	know_the_other(n);
	n->own = 0;
	n->own_up = false;
	/* It may wait to be asked. */
	n->dark_from = n->traffic_at =
		n->w->now + draw_crossed(n->w, draw_crossed(n->w, 2) ? 10 * MS : 3000 * MS);
	n->again_at = n->w->now < AGAIN && draw_crossed(n->w, 2)
			      ? n->w->now + draw_crossed(n->w, AGAIN)
			      : DDPS_CM_NEVER;
}

static void make_node(struct world *w, unsigned nr, enum crossed_kind kind)
{
	struct node *n = &w->node[nr];
	uint32_t id_seed = (uint32_t)draw_crossed(w, UINT32_MAX);

	n->w = w;
	n->nr = nr;
	n->again_at = DDPS_CM_NEVER;
	n->traffic_at = w->real		     ? draw_crossed(w, 10 * MS)
			: draw_crossed(w, 3) ? draw_crossed(w, 3 * MS)
					     : 0;
	n->links.me.addr.flags = DDPS_IPOIB_RC;
	n->links.me.addr.qpn =
		0x40 + (uint32_t)draw_crossed(w, 2); /* often equal: the GID decides */
	n->links.me.addr.gid[15] = (uint8_t)(2 * draw_crossed(w, 100) + nr);
	n->links.me.pkey = 0xffff;
	n->links.me.rx_mtu = nr ? 32772 : 65524;
	n->links.me.min_mtu = DDPS_IPOIB_MTU_MIN_V6;
	n->links.policy = (struct ddps_ipoib_policy){
		.many = kind == CROSSED_MANY,
		.backoff_ns = w->real ? 1000 * MS : 1 + draw_crossed(w, 20 * MS),
		.long_ns = w->real ? 30000 * MS : 20 * MS,
		.soon_ns = w->real ? 100 * MS : 1 + draw_crossed(w, 5 * MS),
	};
	n->linux_kind = kind == CROSSED_LINUX && nr;
	n->links.packet_life = w->real ? 14 : 5;
	n->links.ops = &ops;
	n->links.user = n;
	start(n, id_seed);
}

/* @lose: a message, with the timers of real life; or NONE; or WILD, and the timers are short. */
#define WILD UINT32_MAX
#define NONE (UINT32_MAX - 1)

static void make_world(struct world *w, uint64_t seed, enum crossed_kind kind, uint32_t lose)
{
	static const uint64_t delay[] = { 50 * US, 500 * US, 3 * MS, 30 * MS };

	memset(w, 0, sizeof(*w));
	current = seed;
	w->rng = seed;
	w->real = lose != WILD;
	w->lose = lose;
	w->timeout = !w->real ? 8 : lose == NONE ? 20 : 18; /* 1 ms, 4 s, 1 s */
	if (w->real) {
		w->max_delay = delay[draw_crossed(w, 3)];
		w->calm_at = REAL_RUN / 2;
	} else {
		w->loss = (unsigned)draw_crossed(w, 2) * (unsigned)draw_crossed(w, 500);
		w->dup = (unsigned)draw_crossed(w, 2) * (unsigned)draw_crossed(w, 300);
		w->max_delay = delay[draw_crossed(w, 4)];
		w->calm_at = draw_crossed(w, 100 * MS);
	}
	make_node(w, 0, kind);
	make_node(w, 1, kind);
	for (unsigned i = 0; i < 2; i++)
		know_the_other(&w->node[i]);
	if (lose == NONE)
		for (unsigned i = 0; i < 2; i++)
			w->node[i].again_at =
				draw_crossed(w, 2) ? draw_crossed(w, AGAIN) : DDPS_CM_NEVER;
}

/* Connections of node @n that are up, and how many of them are so at both ends. */
static unsigned count_crossed(const struct node *n, unsigned *both)
{
	const struct ddps_cm_conn *c;
	unsigned up = 0;

	*both = 0;
	LIST_FOREACH(c, &n->links.cm->conns, of_all)
		if (c->state == DDPS_CM_ST_ESTABLISHED) {
			const struct ddps_cm_conn *far = far_end(n, c);

			up++;
			*both += far && far->state == DDPS_CM_ST_ESTABLISHED;
		}
	return up;
}

/* Return: how many connections are left in the end. */
static unsigned run_crossed_world(uint64_t seed, enum crossed_kind kind, uint32_t lose)
{
	static struct world w;
	uint32_t id[2] = { 0, 0 };
	unsigned both[2], steps = 0;

	make_world(&w, seed, kind, lose);
	for (; w.now < (w.real ? REAL_RUN : w.calm_at + QUIET) && steps < MAX_STEPS; steps++)
		step_crossed_world(&w);
	MUST(steps < MAX_STEPS);
	for (unsigned i = 0; i < 2; i++) {
		unsigned up = count_crossed(&w.node[i], &both[i]);

		MUST(up == both[i]); /* none is half open */
		MUST(usable(&w.node[i], &id[i]));
		/* an answer to a node that has forgotten its REQ is repeated for a minute */
		MUST(w.node[i].linux_kind || lose == NONE || !w.node[i].link.peer.n_pending);
	}
	MUST(both[0] == both[1]);
	if (both[0] == 1)
		MUST(ddps_cm_conn_find(w.node[0].links.cm, id[0])->remote_id == id[1]);
	if (kind == CROSSED_LINUX) /* each sends on what it has asked for */
		MUST(ddps_cm_conn_find(w.node[0].links.cm, id[0])->active &&
		     ddps_cm_conn_find(w.node[1].links.cm, id[1])->active);
	MUST(!w.real || w.dark < (lose == NONE ? 2 : 1) * DARK_MAX);
	ddps_cm_free(w.node[0].links.cm);
	ddps_cm_free(w.node[1].links.cm);
	return both[0];
}

unsigned crossed_run(uint64_t seed, enum crossed_kind kind, struct crossed_met *m)
{
	met = m;
	return run_crossed_world(seed, kind, WILD);
}

unsigned crossed_restart(uint64_t seed, enum crossed_kind kind, struct crossed_met *m)
{
	met = m;
	return run_crossed_world(seed, kind, NONE);
}

unsigned crossed_lose(uint64_t seed, enum crossed_kind kind, unsigned lost, struct crossed_met *m)
{
	met = m;
	return run_crossed_world(seed, kind, lost);
}
