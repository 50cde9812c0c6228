/* SPDX-License-Identifier: BSD-2-Clause */
/* The fabric in memory: its clock, its queue of events, its nodes. */
#include <stdlib.h>
#include <string.h>
#include "common/sized.h"
#include "ipoib_cm/sim/port_sim_in.h"
#include "ipoib_cm/sim/sim_port.h"
#include "ipoib_cm/wire/wire.h"

#define MAX_NODES      (SIM_LIDS - 1)
#define QP_ROWS	       16384
#define DEFAULT_EVENTS 65536
#define CONFIG	       DDPS_SIZED(ddps_ipoib_sim_config, sizeof(struct ddps_ipoib_sim_config))

uint64_t ddps_ipoib_sim_random(struct ddps_ipoib_sim *s, uint64_t below)
{
	uint64_t z = s->rng += 0x9e3779b97f4a7c15; /* splitmix64 */

	z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9;
	z = (z ^ z >> 27) * 0x94d049bb133111eb;
	return below ? (z ^ z >> 31) % below : 0;
}

uint64_t ddps_ipoib_sim_delay(struct ddps_ipoib_sim *s)
{
	const struct ddps_ipoib_sim_faults *f = &s->cfg.faults;
	const uint64_t range = f->max_delay - f->min_delay;
	const uint64_t d = f->min_delay + (range ? ddps_ipoib_sim_random(s, range + 1) : 0);

	return 1 + (ddps_ipoib_sim_chance(s, f->late) ? 10 * d : d);
}

/* ---- The queue ---- */

/* The next event, if it is due by then; NULL: none is. */
static struct sim_event *next_sim_event(const struct ddps_ipoib_sim *s, uint64_t until)
{
	return (struct sim_event *)(void *)ddps_dues_ready(&s->events, until);
}

static void free_event(struct sim_event *e)
{
	if (e)
		free(e->data);
	free(e);
}

struct sim_event *ddps_ipoib_sim_post(struct ddps_ipoib_sim *s, enum sim_kind kind, unsigned node,
				      uint64_t at, const void *data, size_t len)
{
	struct sim_event *e = s->events.n < s->cfg.max_events ? calloc(1, sizeof(*e)) : NULL;

	if (e && len) {
		e->data = malloc(len);
		if (!e->data) {
			free(e);
			e = NULL;
		}
	}
	if (!e) {
		s->stats.overflow++;
		return NULL;
	}
	if (len)
		memcpy(e->data, data, len);
	e->len = len;
	e->kind = kind;
	e->node = node;
	ddps_due_set(&s->events, &e->due, at < DDPS_DUE_NEVER ? at : DDPS_DUE_NEVER - 1);
	return e;
}

int ddps_ipoib_sim_at(struct ddps_ipoib_sim *s, uint64_t at, void (*fn)(void *arg, uint64_t now),
		      void *arg)
{
	struct sim_event *e =
		ddps_ipoib_sim_post(s, SIM_CALL, 0, at < s->now ? s->now : at, NULL, 0);

	if (!e)
		return DDPS_E_LIMIT;
	e->fn = fn;
	e->arg = arg;
	return 0;
}

/* ---- Nodes ---- */

static const struct ddps_ipoib_sim_config defaults = { .struct_size = sizeof(defaults),
						       .nodes = 2,
						       .link_mtu = 2048 };

void ddps_ipoib_sim_config_init_sized(struct ddps_ipoib_sim_config *cfg, size_t size)
{
	ddps_sized_init(cfg, size, &defaults, &CONFIG);
}

static bool faults_ok(const struct ddps_ipoib_sim_faults *f)
{
	return f->min_delay <= f->max_delay;
}

int ddps_ipoib_sim_new(struct ddps_ipoib_sim **out, const struct ddps_ipoib_sim_config *cfg)
{
	struct ddps_ipoib_sim_config mine = defaults;
	int err = ddps_sized_take(&mine, cfg, &CONFIG);
	struct ddps_ipoib_sim *s;

	if (err)
		return err;
	if (!mine.nodes || mine.nodes > MAX_NODES || !faults_ok(&mine.faults))
		return DDPS_E_INVAL;
	s = calloc(1, sizeof(*s));
	if (!s)
		return DDPS_E_NOMEM;
	s->cfg = mine;
	if (!s->cfg.max_events)
		s->cfg.max_events = DEFAULT_EVENTS;
	s->rng = mine.seed;
	s->node = calloc(mine.nodes, sizeof(*s->node));
	s->at = calloc(SIM_LIDS, sizeof(*s->at));
	if (!s->node || !s->at || !ddps_dues_new(&s->events, s->cfg.max_events) ||
	    !ddps_tab_new(&s->by_gid, mine.nodes) || !ddps_tab_new(&s->by_qpn, QP_ROWS)) {
		ddps_ipoib_sim_free(s);
		return DDPS_E_NOMEM;
	}
	for (unsigned i = 0; i < mine.nodes; i++) {
		s->node[i] = (struct sim_node){ .port.ops = &ddps_ipoib_sim_ops,
						.sim = s,
						.nr = i,
						.lid = (uint16_t)(i + 1),
						.next_qpn = 0x400,
						.timer = DDPS_CM_NEVER };
		s->at[i + 1] = (uint16_t)(i + 1);
	}
	*out = s;
	return 0;
}

void ddps_ipoib_sim_free(struct ddps_ipoib_sim *s)
{
	if (!s)
		return;
	for (uint32_t i = 1; s->events.heap && i <= s->events.n; i++)
		free_event((struct sim_event *)(void *)s->events.heap[i]);
	for (unsigned i = 0; s->node && i < s->cfg.nodes; i++)
		while (!LIST_EMPTY(&s->node[i].qps))
			ddps_ipoib_sim_qp_free(LIST_FIRST(&s->node[i].qps));
	free(s->by_gid.row);
	free(s->by_qpn.row);
	free(s->at);
	free(s->events.heap);
	free(s->node);
	free(s);
}

struct ddps_ipoib_port *ddps_ipoib_sim_port(struct ddps_ipoib_sim *s, unsigned node)
{
	return node < s->cfg.nodes ? &s->node[node].port : NULL;
}

void ddps_ipoib_sim_touch(struct ddps_ipoib_sim *s, unsigned node)
{
	struct sim_node *n = &s->node[node];
	uint64_t at = n->attached ? n->user.deadline(n->user.user) : DDPS_CM_NEVER;

	if (at >= n->timer)
		return; /* the one in the queue asks again */
	if (at < s->now)
		at = s->now;
	if (ddps_ipoib_sim_post(s, SIM_TIMER, node, at, NULL, 0))
		n->timer = at;
}

static uint64_t hash_sim_gid(const uint8_t *gid)
{
	static const struct ddps_siphash_key key; /* nobody attacks a fabric in memory */

	return ddps_siphash(&key, gid, DDPS_IPOIB_GID_LEN);
}

int ddps_ipoib_sim_attach(struct ddps_ipoib_sim *s, unsigned node,
			  const struct ddps_ipoib_sim_user *user)
{
	struct sim_node *n = &s->node[node];

	if (node >= s->cfg.nodes || user->struct_size < sizeof(*user) ||
	    user->up->struct_size < sizeof(*user->up))
		return DDPS_E_INVAL;
	if (n->known)
		ddps_tab_del(&s->by_gid, &n->by_gid);
	n->user = *user;
	n->attached = n->known = true;
	ddps_tab_add(&s->by_gid, &n->by_gid, hash_sim_gid(user->addr.gid));
	ddps_ipoib_sim_touch(s, node);
	return 0;
}

void ddps_ipoib_sim_detach(struct ddps_ipoib_sim *s, unsigned node)
{
	struct sim_node *n = &s->node[node];

	n->attached = false;
	n->n_group = 0;
	while (!LIST_EMPTY(&n->qps))
		ddps_ipoib_sim_qp_free(LIST_FIRST(&n->qps));
}

void ddps_ipoib_sim_set_faults(struct ddps_ipoib_sim *s, const struct ddps_ipoib_sim_faults *faults)
{
	if (faults_ok(faults))
		s->cfg.faults = *faults;
}

void ddps_ipoib_sim_plug(struct ddps_ipoib_sim *s, unsigned node, bool up)
{
	struct sim_node *n = &s->node[node];

	if (n->down == !up)
		return;
	n->down = !up;
	n->n_group = up ? n->n_group : 0;
	if (n->attached)
		n->user.up->link(n->user.user, up, s->now);
	ddps_ipoib_sim_touch(s, node);
}

struct sim_node *ddps_ipoib_sim_lid(const struct ddps_ipoib_sim *s, ddps_cm_addr lid)
{
	return lid < SIM_LIDS && s->at[lid] ? &s->node[s->at[lid] - 1] : NULL;
}

int ddps_ipoib_sim_move(struct ddps_ipoib_sim *s, unsigned node, uint16_t lid)
{
	if (node >= s->cfg.nodes || !lid || lid >= SIM_LIDS ||
	    (s->at[lid] && s->at[lid] != node + 1))
		return DDPS_E_INVAL;
	s->at[s->node[node].lid] = 0;
	s->node[node].lid = lid;
	s->at[lid] = (uint16_t)(node + 1);
	return 0;
}

/* ---- What happens ---- */

static void path_in(struct ddps_ipoib_sim *s, const struct sim_node *n, const struct sim_event *e)
{
	struct ddps_ipoib_path path = { .rate = 3,
					.mtu = 4,
					.life = ddps_cm_time_code(s->cfg.faults.max_delay),
					.hop_limit = 1 };

	const struct sim_node *to, *first = NULL;

	DDPS_TAB_EACH(&s->by_gid, hash_sim_gid(e->gid), to, struct sim_node, by_gid)
		if (to->attached && !to->down && !memcmp(to->user.addr.gid, e->gid, 16) &&
		    (!first || to->nr < first->nr))
			first = to;
	if (first) {
		path.addr = path.dlid = first->lid;
		path.slid = n->lid;
	}
	n->user.up->path(n->user.user, e->gid, first ? &path : NULL, s->now);
}

static void arrive_at_node(struct ddps_ipoib_sim *s, const struct sim_event *e)
{
	struct sim_node *n = &s->node[e->node];
	const struct ddps_ipoib_up *up = n->user.up;

	switch (e->kind) {
	case SIM_UD:
		if (e->ud.multicast || e->qpn == n->user.addr.qpn) {
			s->stats.ud++;
			up->ud(n->user.user, &e->ud, e->data, e->len, s->now);
		}
		break;
	case SIM_MAD:
		s->stats.mads++;
		up->mad(n->user.user, e->from, e->data, e->len, s->now);
		break;
	case SIM_QP:
		ddps_ipoib_sim_qp_in(s, e);
		break;
	case SIM_QP_ERROR:
		up->qp_error(n->user.user, e->qpn, e->err, s->now);
		break;
	case SIM_PATH:
		path_in(s, n, e);
		break;
	case SIM_JOINED:
		up->joined(n->user.user, e->gid, 0, s->cfg.link_mtu, s->now);
		break;
	default:
		break;
	}
}

static void handle_sim_event(struct ddps_ipoib_sim *s, const struct sim_event *e)
{
	struct sim_node *n = &s->node[e->node];
	const struct sim_event *next;

	s->stats.events++;
	if (e->kind == SIM_CALL) {
		e->fn(e->arg, s->now);
		return;
	}
	if (e->kind == SIM_TIMER && n->timer == e->due.at)
		n->timer = DDPS_CM_NEVER;
	if (!n->attached)
		return;
	if (e->kind == SIM_TIMER) {
		if (n->user.deadline(n->user.user) <= s->now)
			n->user.tick(n->user.user, s->now);
	} else if (!n->down) { /* else lost at the last moment */
		arrive_at_node(s, e);
	}
	/* its next event of this instant asks when it has to be woken */
	next = next_sim_event(s, s->now);
	if (!next || next->node != e->node || next->kind == SIM_CALL)
		ddps_ipoib_sim_touch(s, e->node);
}

void ddps_ipoib_sim_run(struct ddps_ipoib_sim *s, uint64_t until)
{
	struct sim_event *e;

	for (unsigned i = 0; i < s->cfg.nodes; i++)
		ddps_ipoib_sim_touch(s, i);
	while ((e = next_sim_event(s, until))) {
		ddps_due_clear(&s->events, &e->due);
		s->now = e->due.at;
		handle_sim_event(s, e);
		free_event(e);
	}
	s->now = until;
}

uint64_t ddps_ipoib_sim_now(const struct ddps_ipoib_sim *s)
{
	return s->now;
}

const struct ddps_ipoib_sim_stats *ddps_ipoib_sim_stats(const struct ddps_ipoib_sim *s)
{
	return &s->stats;
}
