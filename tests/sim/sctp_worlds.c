/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * SCTP engines on a hostile network: some nodes, many associations between them that come, carry
 * messages, go and come again between the same ports.  What a message holds follows of what it is,
 * so whoever gets it knows whether it is whole, once and in its order.  After each event the
 * associations that it touched are looked into.
 */
#include "sim/sim_main.h"
#include "unit/sctp_net_fixture.h"
#include <ddpsess/err.h>
#include <inttypes.h>

#define STREAMS	 4
#define MSGS	 256u /* of a kind on a stream */
#define SLOTS	 64u
#define PORT	 5000
#define OURS	 10000 /* initiators' ports from here on */
#define SEC	 1000000000ull
#define HEAD	 8u
#define MAX_LEN	 70000u
#define TABLE	 (1u << 16)
#define OVERHEAD 65536u
#define PACKETS	 4u /* times as many as seem due */

enum {
	N_ASSOCS,
	N_MESSAGES,
	N_ORDERLY,
	N_RESTARTS,
	N_BROKEN,
	N_PACKETS,
	N_LOST,
	N_NOMEM,
	N_WORLDS,
	N_SECONDS
};

struct slot;

/* One end's use of one association. */
struct side {
	struct slot *slot;
	unsigned node, id;
	struct ddps_sctp_assoc *a;
	bool up, gone, shutting, blocked, paused, fresh;
	int code;
	unsigned to_send, sent, received;
	uint64_t acked;
	uint32_t next_ordered[STREAMS], want_ordered[STREAMS], next_unordered[STREAMS];
	uint8_t seen[STREAMS][MSGS / 8];
};

/* A pair of endpoints, and the association that it has at the time. */
struct slot {
	struct side side[2];
	uint32_t salt;
	bool open, both, broken; /* broken: an end restarted */
	unsigned rounds;	 /* associations still to come */
};

struct world {
	struct sn_net net;
	uint64_t seed, touched; /* bits of slots */
	struct slot slot[SLOTS];
	unsigned nslots, paths, next;
	size_t max_len;
	uint32_t mtu; /* of the interfaces */
	bool harsh, restarts, failed, calm;
	double poor; /* share of allocations that fail */
	struct sim_tally *t;
};

static struct world w;
static uint8_t table[TABLE + MAX_LEN];

#define check(cond, ...)                                                                           \
	do {                                                                                       \
		if (!(cond) && !w.failed) {                                                        \
			fprintf(stderr, "seed %" PRIu64 " at %.6f: ", w.seed,                      \
				(double)w.net.now / 1e9);                                          \
			fprintf(stderr, __VA_ARGS__);                                              \
			fprintf(stderr, "\n");                                                     \
			w.failed = true;                                                           \
		}                                                                                  \
	} while (0)

/* ---- allocations, some of which fail ---- */

void *__real_malloc(size_t size);
void *__real_calloc(size_t n, size_t size);
void *__real_realloc(void *p, size_t size);
void *__wrap_malloc(size_t size);
void *__wrap_calloc(size_t n, size_t size);
void *__wrap_realloc(void *p, size_t size);

static bool fails(void)
{
	if (!(w.poor > 0) || !sn_chance(&w.net, w.poor))
		return false;
	w.t->n[N_NOMEM]++;
	return true;
}

void *__wrap_malloc(size_t size)
{
	return fails() ? NULL : __real_malloc(size);
}

void *__wrap_calloc(size_t n, size_t size)
{
	return fails() ? NULL : __real_calloc(n, size);
}

void *__wrap_realloc(void *p, size_t size)
{
	return fails() ? NULL : __real_realloc(p, size);
}

/* ---- messages ---- */

static const uint8_t *contents(const struct side *from, uint16_t sid, bool ordered, uint32_t n)
{
	uint32_t x = (from->slot->salt ^ n * 2654435761u ^ sid * 40503u) + 2u * from->id + ordered;

	x ^= x >> 15;
	x *= 0x2c1b3c6du;
	return table + (x >> 16) % TABLE;
}

static void put32(uint8_t *p, uint32_t v)
{
	for (unsigned i = 0; i < 4; i++)
		p[i] = (uint8_t)(v >> (8 * i));
}

static uint32_t get32(const uint8_t *p)
{
	return p[0] | (uint32_t)p[1] << 8 | (uint32_t)p[2] << 16 | (uint32_t)p[3] << 24;
}

static size_t length(void)
{
	switch (sn_below(&w.net, 8)) {
	case 0:
		return HEAD + sn_below(&w.net, w.max_len - HEAD);
	case 1:
		return 1100 + sn_below(&w.net, 400);
	default:
		return HEAD + sn_below(&w.net, 100);
	}
}

static bool send_one(struct side *s)
{
	uint16_t sid = (uint16_t)sn_below(&w.net, STREAMS);
	bool ordered = sn_chance(&w.net, 0.4);
	uint32_t *next = ordered ? s->next_ordered : s->next_unordered, n = next[sid];
	size_t len = length();
	uint8_t head[HEAD];
	struct iovec iov[2] = { { head, HEAD },
				{ (void *)(uintptr_t)contents(s, sid, ordered, n), len - HEAD } };
	int err;

	if (n >= MSGS)
		return false;
	put32(head, n);
	put32(head + 4, (uint32_t)len);
	err = ddps_sctp_send(s->a, sid, ordered ? 7 : 8, ordered ? 0 : DDPS_SCTP_UNORDERED, iov,
			     len > HEAD ? 2 : 1, w.net.now);
	s->blocked |= err == DDPS_E_AGAIN;
	check(!err || err == DDPS_E_AGAIN || err == DDPS_E_STATE ||
		      (err == DDPS_E_NOMEM && w.poor > 0),
	      "send: %s", ddps_strerror(err));
	if (err)
		return false;
	next[sid]++;
	s->sent++;
	w.t->n[N_MESSAGES]++;
	return true;
}

static bool usable(const struct side *s)
{
	return s->a && s->up && !s->gone && !s->shutting;
}

static void send_some(struct side *s)
{
	unsigned most = 1 + (unsigned)sn_below(&w.net, 32);

	while (most-- && usable(s) && !s->blocked && s->sent < s->to_send && send_one(s))
		;
	/* It is over when all is sent, or at any time. */
	if (usable(s) && !s->blocked &&
	    (s->sent >= s->to_send ? sn_chance(&w.net, 0.5) : sn_chance(&w.net, 0.02))) {
		s->shutting = true;
		ddps_sctp_shutdown(s->a, w.net.now);
	}
}

/* ---- upcalls ---- */

static void touch(const struct side *s)
{
	w.touched |= 1ull << (s->slot - w.slot);
}

static void on_up(void *user)
{
	struct side *s = user;

	check(!s->up, "up twice");
	s->up = true;
	w.t->n[N_ASSOCS] += s->slot->side[!s->id].up;
	send_some(s);
}

static void on_message(void *user, const struct ddps_sctp_msg *m)
{
	struct side *s = user, *from = &s->slot->side[!s->id];
	uint32_t n = m->len < HEAD ? 0 : get32(m->data);

	check(m->stream < STREAMS && m->len >= HEAD && get32(m->data + 4) == m->len && n < MSGS,
	      "message of stream %u, %zu octets", m->stream, m->len);
	check(m->ppid == (m->unordered ? 8u : 7u), "payload protocol %u", m->ppid);
	check(!s->paused, "a message while paused");
	if (w.failed)
		return;
	check(!memcmp(m->data + HEAD, contents(from, m->stream, !m->unordered, n), m->len - HEAD),
	      "altered");
	if (m->unordered) {
		check(!(s->seen[m->stream][n / 8] & 1u << n % 8), "stream %u: %u twice", m->stream,
		      n);
		s->seen[m->stream][n / 8] |= (uint8_t)(1u << n % 8);
	} else {
		check(n == s->want_ordered[m->stream], "stream %u: %u, not %u", m->stream, n,
		      s->want_ordered[m->stream]);
		s->want_ordered[m->stream]++;
	}
	s->received++;
	touch(s);
	if (sn_chance(&w.net, 0.05)) /* an upcall may ask for output, send, hold back */
		sn_flush_node(&w.net, s->node);
	if (sn_chance(&w.net, 0.02))
		send_some(s);
	if (!w.calm && sn_chance(&w.net, 0.005)) {
		s->paused = true;
		ddps_sctp_pause(s->a, true, w.net.now);
	}
}

static void on_writable(void *user)
{
	struct side *s = user;

	check(s->blocked, "writable without need");
	s->blocked = false;
	send_some(s);
}

static void on_acked(void *user, uint64_t n)
{
	struct side *s = user;

	check(n >= s->acked && (s->slot->broken || n <= s->sent), "acked %" PRIu64 " of %u", n,
	      s->sent);
	s->acked = n;
	touch(s);
}

static void on_shutdown(void *user)
{
	struct side *s = user;

	s->shutting = true;
}

static void on_restarted(void *user)
{
	struct side *s = user;

	check(s->slot->broken || s->slot->both, "a restart out of nothing");
	w.t->n[N_RESTARTS]++;
	memset(s->want_ordered, 0, sizeof s->want_ordered);
	memset(s->next_ordered, 0, sizeof s->next_ordered);
	memset(s->next_unordered, 0, sizeof s->next_unordered);
	memset(s->seen, 0, sizeof s->seen);
	s->sent = s->received = 0;
	s->blocked = s->shutting = false;
	send_some(s);
}

static void on_gone(void *user, const struct ddps_error *e)
{
	struct side *s = user;

	check(!s->gone, "gone twice");
	s->gone = true;
	s->code = e->code;
	check(!e->code || w.harsh || s->slot->broken, "node %u ended: %s", s->node, e->text);
	check(e->code != DDPS_E_PROTOCOL, "node %u found fault: %s", s->node, e->text);
	ddps_sctp_assoc_free(s->a, w.net.now);
	s->a = NULL;
	if (sn_chance(&w.net, 0.5))
		sn_flush_node(&w.net, s->node);
}

static const struct ddps_sctp_up up = { .up = on_up,
					.message = on_message,
					.writable = on_writable,
					.acked = on_acked,
					.peer_shutdown = on_shutdown,
					.restarted = on_restarted,
					.gone = on_gone };

/* Whose association it is, by its ports; NULL: nobody's. */
static struct side *whose(unsigned node, uint16_t port, uint16_t peer_port)
{
	uint16_t ours = port == PORT ? peer_port : port;
	unsigned i = (unsigned)(ours - OURS);

	if (ours == PORT) /* both open: the first slot of two nodes */
		i = 0;
	if (i >= w.nslots)
		return NULL;
	for (unsigned k = 0; k < 2; k++)
		if (w.slot[i].side[k].node == node)
			return &w.slot[i].side[k];
	return NULL;
}

static void on_accept(void *user, struct ddps_sctp_assoc *a)
{
	struct ddps_sctp_info in;
	struct side *s;

	ddps_sctp_info(a, &in);
	s = whose((unsigned)(uintptr_t)user, in.port, in.peer_port);
	/* A late one: its peer has had its end. */
	if (!s || s->a || s->gone || !s->slot->open || s->slot->side[!s->id].gone) {
		ddps_sctp_assoc_free(a, w.net.now);
		return;
	}
	s->a = a;
	ddps_sctp_assoc_set_up(a, &up, s);
	on_up(s);
}

/* ---- what holds after each event ---- */

static void sound(const struct side *s)
{
	const struct ddps_sctp_assoc *a = s->a;
	uint32_t flight = 0, lost = 0, sacked = 0, out;
	bool goes_on = false;

	if (!a || a->state < SC_ESTABLISHED || a->dead)
		return;
	for (unsigned k = 0; k < a->npaths; k++) {
		const struct ddps_sent_path *p = &a->path[k]->tx;

		flight += p->nflight;
		lost += p->nlost;
		sacked += p->nsacked;
		check(!p->nflight == !p->flight, "%u chunks in flight, of %" PRIu64 " octets",
		      p->nflight, p->flight);
		check(p->cc.cwnd < 1ull << 31, "cwnd %" PRIu64, p->cc.cwnd);
		check(p->cc.phase == DDPS_CC_RECOVER || p->cc.cwnd >= 512, "cwnd %" PRIu64,
		      p->cc.cwnd);
		check(p->cc.smss >= 68 && p->cc.smss <= 65535, "a packet takes %u", p->cc.smss);
		goes_on |= ddps_sent_deadline(&a->tx, p) != DDPS_SENT_NEVER;
	}
	out = a->tx.next - a->tx.cum - 1;
	check(!out || goes_on, "%u chunks are out, and nothing will ever happen", out);
	check(flight == a->tx.nflight && lost == a->tx.nlost && flight + lost + sacked == out,
	      "%u, %u, %u chunks of %u", flight, lost, sacked, out);
	check(a->buffered <= a->e->c.send_buffer + OVERHEAD, "%zu octets wait", a->buffered);
	check(a->held <= 2 * a->e->c.rwnd + OVERHEAD, "%zu octets held", a->held);
	check(a->e->st.held <= a->e->c.max_held, "all hold %" PRIu64, a->e->st.held);
}

static void sound_all(void)
{
	for (; w.touched; w.touched &= w.touched - 1) {
		const struct slot *s = &w.slot[__builtin_ctzll(w.touched)];

		sound(&s->side[0]);
		sound(&s->side[1]);
	}
}

static void packet_of(unsigned node, const uint8_t *p, unsigned src)
{
	struct side *s = whose(node, (uint16_t)(p[src] << 8 | p[src + 1]),
			       (uint16_t)(p[2 - src] << 8 | p[3 - src]));

	if (s)
		touch(s);
}

static void packet_sent(void *user, unsigned from, const struct ddps_sctp_route *to,
			const uint8_t *p, size_t len)
{
	(void)user;
	(void)to;
	(void)len;
	packet_of(from, p, 0);
}

static void packet_taken(void *user, unsigned by, const uint8_t *p, size_t len)
{
	(void)user;
	if (len >= 4)
		packet_of(by, p, 2);
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
	c.rwnd = (w.max_len > 60000 ? 131072u : 16384u) << sn_below(&w.net, 6);
	c.hb_interval_ms = 1000;
	if (sn_chance(&w.net, 0.5))
		c.rto_max_ms = 5000;
	sn_boot(&w.net, node, &c);
	param(node, PORT, &p);
	check(!ddps_sctp_listen(w.net.node[node].e, &p, on_accept, (void *)(uintptr_t)node, &l),
	      "listen");
	w.poor = poor;
}

static void side_init(struct side *s)
{
	static const unsigned counts[] = { 0, 1, 1, 2, 3, 5, 10, 60 };
	struct slot *slot = s->slot;
	unsigned node = s->node, id = s->id;

	*s = (struct side){ .slot = slot, .node = node, .id = id };
	s->to_send = counts[sn_below(&w.net, 8)];
}

static void open_side(struct side *s)
{
	const struct side *p = &s->slot->side[!s->id];
	uint16_t port = s->slot->both ? PORT : (uint16_t)(OURS + (s->slot - w.slot));
	struct ddps_sctp_param pa;
	int err;

	param(s->node, port, &pa);
	err = ddps_sctp_connect(w.net.node[s->node].e, &pa, w.net.node[p->node].addr, 1, PORT, 9899,
				&up, s, w.net.now, &s->a);
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
	side_init(&s->side[0]);
	side_init(&s->side[1]);
	open_side(&s->side[0]);
	if (s->both && sn_chance(&w.net, 0.7))
		open_side(&s->side[1]);
}

static void make(uint64_t seed, struct sim_tally *t)
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
	w.mtu = sn_chance(n, 0.05) ? 65535 : sn_chance(n, 0.2) ? 9000 : 1500;
	random_links();
	for (unsigned i = 0; i < w.nslots; i++) {
		struct slot *s = &w.slot[i];

		for (unsigned k = 0; k < 2; k++)
			s->side[k] = (struct side){ .slot = s, .id = k };
		s->side[0].node = (unsigned)sn_below(n, n->nodes);
		s->side[1].node =
			(s->side[0].node + 1 + (unsigned)sn_below(n, n->nodes - 1)) % n->nodes;
		s->rounds = 1 + (unsigned)sn_below(n, 4);
	}
	w.slot[0].both = sn_chance(n, 0.3);
	for (unsigned i = 0; i < n->nodes; i++)
		boot(i);
}

/* ---- what happens ---- */

/* An engine forgets everything; its users begin again from the same ports. */
static void restart(unsigned node)
{
	boot(node);
	for (unsigned i = 0; i < w.nslots; i++) {
		for (unsigned k = 0; k < 2 && w.slot[i].open; k++) {
			struct side *s = &w.slot[i].side[k];

			if (s->node != node || s->gone)
				continue;
			w.slot[i].broken = true;
			side_init(s);
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
			restart(node);
		break;
	default:
		l->loss = sn_chance(n, 0.5) ? 0.3 : 0;
	}
}

static bool over(const struct slot *s)
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
	if (a->code || b->code || s->broken) {
		w.t->n[N_BROKEN]++;
		return;
	}
	w.t->n[N_ORDERLY]++;
	check(a->received == b->sent && b->received == a->sent, "%u of %u, %u of %u arrived",
	      a->received, b->sent, b->received, a->sent);
}

/* A slot's turn: it opens, moves on, or has had its end.  False: all of it is over. */
static bool turn(struct slot *s)
{
	if (s->open && over(s))
		judge(s);
	if (!s->open) {
		if (s->rounds && !w.calm && sn_chance(&w.net, 0.3))
			open_slot(s);
		return s->open || (s->rounds && !w.calm);
	}
	for (unsigned k = 0; k < 2; k++) {
		struct side *d = &s->side[k];

		if (w.calm || sn_chance(&w.net, 0.3))
			let_go(d);
		if (w.calm)
			d->to_send = d->sent;
		if (usable(d) && !d->blocked)
			send_some(d);
		if (w.calm && usable(d)) {
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
		}
	}
}

static bool all_turns(void)
{
	bool more = false;

	for (unsigned i = 0; i < w.nslots; i++)
		more |= turn(&w.slot[i]);
	return more;
}

static void play(void)
{
	uint64_t pace = 4 * w.net.node[0].link[0].delay + 100000;
	bool more = true;

	for (unsigned i = 0; i < 120 && more && !w.failed; i++) {
		more = all_turns();
		step_until(w.net.now + sn_below(&w.net, pace));
		if (w.harsh && sn_chance(&w.net, 0.2))
			trouble();
	}
	calm();
	for (unsigned i = 0; i < 1000 && more && !w.failed; i++) {
		more = all_turns();
		step_until(w.net.now + (more ? SEC : 0));
	}
	for (unsigned i = 0; i < w.nslots && more; i++)
		check(!w.slot[i].open, "slot %u never ends", i);
}

/* Nothing may be left of it all. */
static void empty(const struct sn_node *d)
{
	const struct ddps_sctp *e = d->e;
	const struct ddps_sctp_assoc *a;

	if ((a = TAILQ_FIRST(&e->all)))
		check(false, "node %u has one left: %s, ports %u, %u", d->id,
		      ddps_sc_state_name(a->state), a->port, a->peer_port);
	check(!e->st.assocs, "%u associations are left", e->st.assocs);
	check(!e->st.held, "%" PRIu64 " octets are held by nobody", e->st.held);
	check(!e->paths && !e->peers, "addresses are left");
	w.t->n[N_PACKETS] += d->sent;
	w.t->n[N_LOST] += d->lost;
}

/* What is sent follows of what is to be said, not of the round trip alone. */
static void modest(const struct sim_tally *was)
{
	const uint64_t *n = w.t->n;
	uint64_t packets = n[N_PACKETS] - was->n[N_PACKETS];
	uint64_t due = 10 * (n[N_ASSOCS] - was->n[N_ASSOCS] + w.nslots) +
		       (n[N_MESSAGES] - was->n[N_MESSAGES]) * (1 + w.max_len / 536);

	check(packets <= PACKETS * due, "%" PRIu64 " packets where %" PRIu64 " would do", packets,
	      due);
}

static bool one_world(uint64_t seed, struct sim_tally *t)
{
	const struct sim_tally was = *t;
	uint64_t begin;

	if (!table[0] && !table[1])
		for (uint64_t i = 0, s = 1; i < sizeof table; i++)
			table[i] = (uint8_t)sim_next(&s);
	make(seed, t);
	begin = w.net.now;
	play();
	/* What came too late for its association has to be gone too. */
	step_until(w.net.now + SEC);
	for (unsigned i = 0; i < w.net.nodes && !w.failed; i++)
		empty(&w.net.node[i]);
	if (!w.failed)
		modest(&was);
	t->n[N_WORLDS]++;
	t->n[N_SECONDS] += (w.net.now - begin) / SEC;
	w.poor = 0;
	sn_fini(&w.net);
	return !w.failed;
}

int main(int argc, char **argv)
{
	static const struct sim_kind kind = {
		.names = { "associations", "messages", "ended in order", "restarts seen", "broken",
			   "packets", "lost", "allocations failed", "worlds", "simulated seconds" },
		.world = one_world,
	};

	return sim_main(&kind, argc, argv);
}
