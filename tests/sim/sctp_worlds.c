/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * SCTP engines on a hostile network: some nodes, many associations between them that come, carry
 * messages, go and come again between the same ports.  After each event the associations that it
 * touched are looked into.
 */
#include "sim/sctp_world.h"

struct world w;

/* ---- allocations, some of which fail ---- */

void *__real_malloc(size_t size);
void *__real_calloc(size_t n, size_t size);
void *__real_realloc(void *p, size_t size);
void *__wrap_malloc(size_t size);
void *__wrap_calloc(size_t n, size_t size);
void *__wrap_realloc(void *p, size_t size);

static bool does_sctp_worlds_fail(void)
{
	if (!(w.poor > 0) || !sn_chance(&w.net, w.poor))
		return false;
	w.t->n[N_NOMEM]++;
	return true;
}

void *__wrap_malloc(size_t size)
{
	return does_sctp_worlds_fail() ? NULL : __real_malloc(size);
}

void *__wrap_calloc(size_t n, size_t size)
{
	return does_sctp_worlds_fail() ? NULL : __real_calloc(n, size);
}

void *__wrap_realloc(void *p, size_t size)
{
	return does_sctp_worlds_fail() ? NULL : __real_realloc(p, size);
}

static struct side *packet_of(unsigned node, const uint8_t *p, unsigned src)
{
	struct side *s = user_whose(node, (uint16_t)(p[src] << 8 | p[src + 1]),
				    (uint16_t)(p[2 - src] << 8 | p[3 - src]));

	if (s)
		sound_touch(s);
	return s;
}

static void packet_sent(void *user, unsigned from, const struct ddps_sctp_route *to,
			const uint8_t *p, size_t len)
{
	struct side *s = packet_of(from, p, 0);

	(void)user;
	(void)to;
	if (s)
		times_sent(s, p, len);
}

static void packet_taken(void *user, unsigned by, const uint8_t *p, size_t len)
{
	struct side *s = len >= 4 ? packet_of(by, p, 2) : NULL;
	struct ddps_sc_chunk c;

	(void)user;
	if (s)
		acks_taken(s, ddps_sc_contains(p, len, SC_SHUTDOWN, &c));
}

/* ---- how a world is made ---- */

static void random_links(void)
{
	static const double loss[] = { 0, 0, 0.001, 0.01, 0.03, 0.2 };
	static const unsigned mtus[] = { 576, 1280, 1400, 1500, 1500, 1500, 1500, 9000 };
	struct sn_net *n = &w.net;
	uint64_t delay = 1000 + sn_below(n, 1u << sn_below(n, 28));
	bool jitter = sn_chance(n, 0.5), dup = sn_chance(n, 0.3), late = sn_chance(n, 0.3);
	bool corrupt = sn_chance(n, 0.2);
	struct sn_link l = { .loss = loss[sn_below(n, w.harsh ? 6 : 4)],
			     .delay = delay,
			     .jitter = jitter ? delay / 4 : 0,
			     .late = late ? 0.02 : 0,
			     .extra = delay / 2,
			     .dup = dup ? 0.02 : 0,
			     .corrupt = corrupt ? 0.01 : 0,
			     .mtu = mtus[sn_below(n, 8)] };

	w.clean = !w.harsh && !(n->full > 0 || l.loss > 0 || l.late > 0 || l.dup > 0 || corrupt) &&
		  !jitter && l.mtu >= 1280;
	w.steady = !w.harsh && !(n->full > 0 || l.loss > 0 || l.late > 0) && !corrupt && !jitter &&
		   l.mtu >= 1280;
	w.sure = !w.harsh && !(l.loss > 0 || l.late > 0) && !corrupt && l.mtu >= 1280;
	if (!w.harsh && !(n->full > 0)) {
		w.rtt_least = 2 * delay;
		w.rtt_most = 2 * (delay + l.jitter + (late ? l.extra : 0)) + 21000000;
	}
	for (unsigned i = 0; i < n->nodes; i++) {
		for (unsigned k = 0; k < 2; k++) {
			l.ptb = sn_chance(n, 0.5);
			n->node[i].link[k] = l;
		}
	}
}

static void param(unsigned node, uint16_t port, struct ddps_sctp_param *p)
{
	*p = (struct ddps_sctp_param){ .port = port, .streams = STREAMS, .mtu = w.mtu };
	if (w.paths == 2) {
		p->nlocal = 2;
		memcpy(p->local, w.net.node[node].addr, sizeof w.net.node[node].addr);
	}
}

/* No allocation of these fails: there would be nothing to look at. */
static void boot(unsigned node)
{
	double poor = w.poor;
	struct ddps_sctp_config c;
	struct ddps_sctp_param p;
	struct ddps_sctp_port *l;

	w.poor = 0;
	sn_config(&w.net, &c);
	/* The longest message fits into it, in the smallest fragments, with what each of them costs. */
	c.rwnd = (uint32_t)(12288 + 2 * w.max_len)
		 << (w.clean || w.eager ? 5 : sn_below(&w.net, 6));
	c.hb_interval_ms = 1000;
	c.icmp_grace = !trouble_is_contact();
	if (sn_chance(&w.net, 0.5))
		c.rto_max_ms = 5000;
	sn_boot(&w.net, node, &c);
	param(node, PORT, &p);
	check(!ddps_sctp_listen(w.net.node[node].e, &p, user_accept, (void *)(uintptr_t)node, &l),
	      "listen");
	w.poor = poor;
}

static void open_side(struct side *s)
{
	const struct side *p = &s->slot->side[!s->id];
	uint16_t port = s->slot->both ? PORT : (uint16_t)(OURS + (s->slot - w.slot));
	struct ddps_sctp_param pa;
	int err;

	param(s->node, port, &pa);
	err = ddps_sctp_connect(w.net.node[s->node].e, &pa, w.net.node[p->node].addr, 1, PORT, 9899,
				&user_up, s, w.net.now, &s->a);
	check(!err || (w.poor > 0 && err == DDPS_E_NOMEM), "connect: %s", ddps_strerror(err));
	if (err) {
		s->a = NULL;
		s->gone = true;
	}
}

static void open_slot(struct slot *s)
{
	s->open = true;
	s->broken = false;
	s->rounds--;
	s->salt = (uint32_t)sn_rand(&w.net);
	user_side(&s->side[0]);
	user_side(&s->side[1]);
	open_side(&s->side[0]);
	if (s->both && sn_chance(&w.net, 0.7))
		open_side(&s->side[1]);
}

static void make_sctp_worlds(uint64_t seed, struct sim_tally *t)
{
	static const size_t lens[] = { 1600, 1600, 1600, 9000, MAX_LEN };
	struct sn_net *n = &w.net;

	memset(&w, 0, sizeof w);
	w.seed = seed;
	w.t = t;
	sn_init(n, seed);
	n->sent = packet_sent;
	n->taken = packet_taken;
	n->nodes = 2 + (unsigned)sn_below(n, SN_NODES - 1);
	w.harsh = sn_chance(n, 0.5);
	w.restarts = w.harsh && sn_chance(n, 0.4);
	w.poor = w.harsh && sn_chance(n, 0.2) ? 0.01 : 0;
	w.paths = 1 + (unsigned)sn_chance(n, 0.3);
	w.max_len = lens[sn_below(n, 5)];
	w.nslots = 1 + (unsigned)sn_below(n, SLOTS);
	n->full = sn_chance(n, 0.3) ? 0.3 : 0;
	w.mtu = sn_chance(n, 0.05) ? 65535 : sn_chance(n, 0.2) ? 9000 : 1500;
	random_links();
	acks_begin();
	trouble_choose();
	for (unsigned i = 0; i < w.nslots; i++) {
		struct slot *s = &w.slot[i];

		for (unsigned k = 0; k < 2; k++)
			s->side[k] = (struct side){ .slot = s, .id = k };
		s->side[0].node = (unsigned)sn_below(n, n->nodes);
		s->side[1].node =
			(s->side[0].node + 1 + (unsigned)sn_below(n, n->nodes - 1)) % n->nodes;
		s->rounds = w.trouble ? 1 : 1 + (unsigned)sn_below(n, 4);
	}
	w.slot[0].both = sn_chance(n, 0.3);
	for (unsigned i = 0; i < n->nodes; i++)
		boot(i);
}

/* ---- what happens ---- */

/* An engine forgets everything; its users begin again from the same SCTP ports. */
static void restart_sctp_worlds(unsigned node)
{
	boot(node);
	if (sn_chance(&w.net, 0.3)) { /* from another UDP port */
		for (unsigned k = 0; k < 2; k++)
			w.net.node[node].link[k].nat = (uint16_t)(1024 + sn_below(&w.net, 60000));
	}
	for (unsigned i = 0; i < w.nslots; i++) {
		for (unsigned k = 0; k < 2 && w.slot[i].open; k++) {
			struct side *s = &w.slot[i].side[k];

			if (s->node != node || s->gone)
				continue;
			w.slot[i].broken = true;
			user_side(s);
			w.touched &= ~(1ull << i);
			if (k == 0 || w.slot[i].both)
				open_side(s);
		}
	}
}

static void let_go(struct side *s)
{
	if (s->a && s->paused) {
		s->paused = false;
		ddps_sctp_pause(s->a, false, w.net.now);
	}
}

static void trouble(void)
{
	struct sn_net *n = &w.net;
	unsigned node = (unsigned)sn_below(n, n->nodes), k = (unsigned)sn_below(n, 2);
	struct sn_link *l = &n->node[node].link[k];

	switch (sn_below(n, 8)) {
	case 0: /* the path takes less, or more */
		l->mtu = sn_chance(n, 0.5) ? 1280 : 1500;
		break;
	case 1: /* a NAT forgets */
		l->nat = (uint16_t)(1024 + sn_below(n, 60000));
		break;
	case 2: /* a link dies, or lives again */
	case 3:
		l->dead = !l->dead;
		break;
	case 4:
		l->delay = 1000 + sn_below(n, 2 * l->delay);
		break;
	case 5:
		if (w.restarts && sn_chance(n, 0.3))
			restart_sctp_worlds(node);
		break;
	default:
		l->loss = sn_chance(n, 0.5) ? 0.3 : 0;
	}
}

static bool is_sctp_world_over(const struct slot *s)
{
	const struct side *a = &s->side[0], *b = &s->side[1];

	return (a->gone || (!a->a && !a->up)) && (b->gone || (!b->a && !b->up));
}

static void judge(struct slot *s)
{
	const struct side *a = &s->side[0], *b = &s->side[1];

	s->open = false;
	if (!a->up ||
	    !b->up) { /* a COOKIE ECHO may still be on its way, to be taken for a new one */
		s->rounds = 0;
		return;
	}
	w.t->n[a->code || b->code || s->broken ? N_BROKEN : N_ORDERLY]++;
	if (a->code || b->code)
		return;
	check(a->received == b->sent && b->received == a->sent, "%u of %u, %u of %u arrived",
	      a->received, b->sent, b->received, a->sent);
}

/* A slot's turn: it opens, moves on, or has had its end.  False: all of it is over. */
static bool turn_sctp_worlds(struct slot *s)
{
	if (s->open && is_sctp_world_over(s))
		judge(s);
	if (!s->open) {
		if (s->rounds && !w.calm && sn_chance(&w.net, 0.3))
			open_slot(s);
		return s->open || (s->rounds && !w.calm);
	}
	for (unsigned k = 0; k < 2; k++) {
		struct side *d = &s->side[k];

		if (w.net.node[d->node].rests > w.net.now)
			continue;
		if (w.calm || sn_chance(&w.net, 0.3))
			let_go(d);
		if (w.calm)
			d->to_send = d->sent;
		if (user_usable(d) && !d->blocked)
			user_send_some(d);
		if (w.calm && user_usable(d)) {
			d->shutting = true;
			ddps_sctp_shutdown(d->a, w.net.now);
		}
		if (w.harsh && d->a && sn_chance(&w.net, 0.002))
			ddps_sctp_abort(d->a, "as it likes", w.net.now);
	}
	return true;
}

static void step_until(uint64_t at)
{
	while (!w.failed && sn_step(&w.net, at))
		sound_all();
	sound_all();
}

static void calm(void)
{
	w.calm = true;
	w.poor = 0;
	for (unsigned i = 0; i < w.net.nodes; i++) {
		for (unsigned k = 0; k < 2; k++) {
			w.net.node[i].link[k].loss = 0;
			w.net.node[i].link[k].dead = false;
			w.net.node[i].link[k].corrupt = 0;
		}
	}
}

static bool all_turns(void)
{
	bool more = false;

	for (unsigned i = 0; i < w.nslots; i++)
		more |= turn_sctp_worlds(&w.slot[i]);
	return more;
}

static void play_sctp_world(void)
{
	uint64_t pace = 4 * w.net.node[0].link[0].delay + 100000;
	bool more = true;

	for (unsigned i = 0; i < 120 && more && !w.failed; i++) {
		uint64_t lasts;

		more = all_turns();
		lasts = trouble_comes(i);
		if (lasts) {
			step_until(w.net.now + lasts);
			step_until(w.net.now + trouble_ends());
		}
		step_until(w.net.now + sn_below(&w.net, pace));
		if (w.harsh && sn_chance(&w.net, 0.2))
			trouble();
	}
	if (w.trouble == FAILS) {
		step_until(w.net.now + 2 * SEC + sn_below(&w.net, 30 * SEC));
		trouble_ends();
		step_until(w.net.now + 240 * SEC);
		trouble_over();
	}
	calm();
	for (unsigned i = 0; i < 1000 && more && !w.failed; i++) {
		more = all_turns();
		step_until(w.net.now + (more ? SEC : 0));
	}
	for (unsigned i = 0; i < w.nslots && more; i++)
		check(!w.slot[i].open, "slot %u never ends", i);
}

static bool play_sctp_worlds_world(uint64_t seed, struct sim_tally *t)
{
	const struct sim_tally was = *t;
	uint64_t begin;

	user_init();
	make_sctp_worlds(seed, t);
	begin = w.net.now;
	play_sctp_world();
	/* What came too late for its association has to be gone too. */
	step_until(w.net.now + SEC);
	for (unsigned i = 0; i < w.net.nodes && !w.failed; i++)
		sound_empty(&w.net.node[i]);
	if (!w.failed)
		sound_modest(&was);
	if (!w.failed)
		cost_end();
	t->n[N_WORLDS]++;
	t->n[N_SECONDS] += (w.net.now - begin) / SEC;
	w.poor = 0;
	sn_fini(&w.net);
	return !w.failed;
}

int main(int argc, char **argv)
{
	static const struct sim_kind kind = {
		.names = { "associations", "messages", "sent early", "ended in order",
			   "restarts seen", "broken", "packets", "lost", "allocations failed",
			   "worlds", "simulated seconds" },
		.world = play_sctp_worlds_world,
	};

	return sim_main(&kind, argc, argv);
}
