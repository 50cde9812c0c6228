/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Sessions next to others that never have enough: those move all that they can, from a queue of
 * completions that need not run empty.  Meanwhile short ones of the same contexts come, ask for little
 * and go, and each step of theirs is taken in time.  The clock goes on with each turn of a program, and
 * with each system call.
 */
#include "sim/session_world.h"
#include <stdlib.h>

#define HOSTS	3u
#define HEAVY	2u
#define SHY	3u
#define TALKS	(HEAVY + SHY)
#define DEPTH	16u /* Writes of a heavy one */
#define LONG	65536u
#define SHORT	512u
#define TRIES	100u /* polls in vain of a turn */
#define MIB	(1024ull * 1024)
#define LOOK	(SEC / 1000)
#define HOP	(60 * (kern.delay + plan.nap + kern.full))
#define SOON	(SEC + HOP)
#define TIMEOUT (600 * SEC)

/* TCP does not say when a FIN is acknowledged: each ms the end looks.  The kernel's SCTP says so when all is that any
 * session has sent: others are held up for that, but not before 100 ms (sd_tx.c). */
#define ACKED (kern.sctp ? SEC / 10 + HOP : 2 * LOOK)

enum phase { AWAY, ASKED, THERE, LEFT };

struct talk;
struct side {
	struct talk *talk;
	unsigned id, host;
	struct ddps_ep *ep;
	struct ddps_mr *mr;
	bool there, over;
	unsigned posted, done;
	uint8_t *mem;
};

static struct talk {
	struct side side[2]; /* who asks, who is asked */
	bool heavy;
	enum phase phase;
	uint64_t since, moved; /* the step began then, when so much had been moved */
	unsigned pings;	       /* to come */
	bool waits;	       /* for the answer to one */
	bool fickle;	       /* who is asked leaves soon after it has accepted, */
	uint64_t quits;	       /* ... then; 0: it has not */
} talk[TALKS];

static struct machine {
	struct ddps_ctx *ctx;
	struct ddps_pd *pd;
	struct ddps_cq *cq;
	struct ddps_listener *listener;
	bool polls; /* its program does nothing else */
	int batch;  /* completions that it takes in one call */
	uint64_t naps_until;
} machine[HOSTS];

static struct {
	const char *scheme, *uri;
	uint64_t rng, step;
	uint64_t moved, budget;	     /* octets: that have been, that may be */
	uint64_t most;		     /* that may be moved while one waits */
	uint32_t len;		     /* of a long Write */
	unsigned heavy, shy, lives;  /* lives: of the short ones, to come */
	unsigned rtr, fence, fickle; /* fickle: one in so many of the short ones, 0: none */
	unsigned who;		     /* asks for the long ones */
	bool mates;		     /* ... and for the short ones */
	uint64_t nap;		     /* most of one */
	unsigned naps;		     /* hosts, as bits, whose program naps */
	bool ways[2];		     /* which side of a heavy one writes */
} plan;

static uint8_t memory[TALKS][2][LONG];

static uint64_t draw_mixed(uint64_t m)
{
	return sim_below(&plan.rng, m);
}

static struct machine *enter_mixed_side(unsigned i)
{
	kern.host = kern.who = i;
	return &machine[i];
}

#define NAME	"%s session %u, end %u: "
#define name(s) plan.scheme, (unsigned)((s)->talk - talk), (s)->id

/* ---- sessions ---- */

static void step_session_mixed(struct talk *t, enum phase phase)
{
	t->phase = phase;
	t->since = kern.now;
	t->moved = plan.moved;
}

static void make_session_mixed_endpoint(struct side *s)
{
	struct machine *m = enter_mixed_side(s->host);
	struct ddps_ep_attr attr;

	ddps_ep_attr_init(&attr);
	attr.pd = m->pd;
	attr.send_cq = attr.recv_cq = m->cq;
	attr.sq_depth = DEPTH;
	attr.rq_depth = 1;
	attr.user = s;
	check(!ddps_ep_new(m->ctx, &attr, &s->ep) &&
		      !ddps_mr_reg(m->pd, s->mem, LONG,
				   DDPS_LOCAL_WRITE | DDPS_REMOTE_WRITE | DDPS_REMOTE_READ, NULL,
				   &s->mr),
	      "no endpoint");
}

static void make_session_mixed_parameters(const struct talk *t, struct ddps_conn_param *p)
{
	ddps_conn_param_init(p);
	p->crc = !t->heavy;
	p->close_ms = 60000;
}

static void ask_mixed_peer(struct talk *t, unsigned who, unsigned whom)
{
	struct ddps_conn_param p;
	uint8_t number = (uint8_t)(t - talk);
	char uri[80];

	for (unsigned k = 0; k < 2; k++) {
		t->side[k] = (struct side){
			.talk = t, .id = k, .host = k ? whom : who, .mem = memory[number][k]
		};
		make_session_mixed_endpoint(&t->side[k]);
	}
	t->pings = 1 + (unsigned)draw_mixed(t->heavy ? 1 : 40);
	t->waits = false;
	t->fickle = !t->heavy && plan.fickle && !draw_mixed(plan.fickle);
	t->quits = 0;
	make_session_mixed_parameters(t, &p);
	p.p2p = t->heavy || draw_mixed(2);
	p.rtr = plan.rtr;
	p.private_data = &number;
	p.private_data_len = 1;
	snprintf(uri, sizeof uri, "%s://10.0.0.%u:7000%s", plan.scheme, whom + 1, plan.uri);
	enter_mixed_side(who);
	check(!ddps_connect(t->side[0].ep, uri, &p), "connect");
	step_session_mixed(t, ASKED);
}

static void post_session_mixed(struct side *s, enum ddps_op op, unsigned flags, uint32_t len)
{
	struct side *o = &s->talk->side[!s->id];
	struct ddps_sge sge = { s->mem, len, ddps_mr_stag(s->mr) };
	struct ddps_send_wr wr = { .op = op, .flags = flags | plan.fence, .sge = &sge, .nsge = 1 };
	int err;

	enter_mixed_side(s->host);
	wr.stag = ddps_mr_stag(o->mr);
	wr.to = ddps_mr_to(o->mr);
	err = ddps_post_send(s->ep, &wr);
	check(!err || s->talk->fickle, NAME "post_send: %s", name(s), ddps_strerror(err));
	s->posted += !err;
}

/* One is answered before the next. */
static void pings(struct talk *t)
{
	uint32_t len = 1 + (uint32_t)draw_mixed(SHORT);

	if (!t->pings || t->waits || t->phase != THERE)
		return;
	if (draw_mixed(2))
		post_session_mixed(&t->side[0], DDPS_OP_READ, 0, len);
	else
		post_session_mixed(&t->side[0], DDPS_OP_WRITE, DDPS_WR_PLACED, len);
	t->pings--;
	t->waits = t->side[0].posted != t->side[0].done;
	step_session_mixed(t, THERE);
}

static bool may_write(const struct side *s)
{
	return s->talk->heavy && s->there && plan.ways[s->id] && s->posted - s->done < DEPTH &&
	       plan.moved < plan.budget && !world.failed;
}

static void writes(struct side *s)
{
	while (may_write(s)) {
		plan.moved += plan.len;
		post_session_mixed(s, DDPS_OP_WRITE, 0, plan.len);
	}
}

static void does_session_mixed_leave(struct talk *t)
{
	struct side *s = &t->side[draw_mixed(2)];

	enter_mixed_side(s->host);
	check(!ddps_disconnect(s->ep), "disconnect");
	step_session_mixed(t, LEFT);
}

static void free_at_session_mixed(struct talk *t)
{
	for (unsigned k = 0; k < 2; k++) {
		enter_mixed_side(t->side[k].host);
		ddps_ep_free(t->side[k].ep);
		ddps_mr_dereg(t->side[k].mr);
	}
	t->phase = AWAY;
}

/* The other end learns of it, wherever that is just now. */
static void quits(struct talk *t)
{
	struct side *b = &t->side[1];

	if (!t->quits || t->quits > kern.now || t->phase == LEFT)
		return;
	enter_mixed_side(b->host);
	check(!ddps_disconnect(b->ep), "disconnect");
	step_session_mixed(t, LEFT);
}

static bool is_all_session_mixed_done(const struct talk *t)
{
	return t->side[0].posted == t->side[0].done && t->side[1].posted == t->side[1].done;
}

/* It asks for something, and others have moved more than they may meanwhile; or it is just late. */
static void in_time(const struct talk *t)
{
	static const char *const what[] = { "", "the session", "an answer", "its end" };
	const struct side *s = &t->side[0];

	if (t->heavy || (t->phase == THERE && !t->waits))
		return;
	check(plan.moved - t->moved < (t->phase == THERE ? plan.most / 2 : plan.most) ||
		      kern.now < t->since + HOP + (t->phase == LEFT ? ACKED : 0),
	      NAME "%s has not come, and others have moved %u MiB", name(s), what[t->phase],
	      (unsigned)((plan.moved - t->moved) / MIB));
	check(kern.now < t->since + SOON, NAME "%s has not come after %.3f s", name(s),
	      what[t->phase], (double)(kern.now - t->since) / 1e9);
}

/* With the last of the short ones the others end, too. */
static bool has_enough(const struct talk *t)
{
	if (t->heavy)
		return plan.moved >= plan.budget && !plan.lives;
	return !t->pings && !t->waits;
}

static void check_mixed_goes_on(struct talk *t)
{
	struct side *a = &t->side[0], *b = &t->side[1];

	in_time(t);
	quits(t);
	if (t->phase == ASKED && a->there)
		step_session_mixed(t, THERE);
	if (a->over && b->over)
		free_at_session_mixed(t);
	else if (t->phase == THERE && b->there && has_enough(t) && is_all_session_mixed_done(t))
		does_session_mixed_leave(t);
	else if (t->phase == THERE)
		t->heavy ? (writes(a), writes(b)) : pings(t);
	else if (t->phase == LEFT && t->fickle && a->there && !a->posted && !a->over)
		post_session_mixed(a, DDPS_OP_WRITE, DDPS_WR_PLACED, SHORT);
}

/* The responder waits for something: a first Write makes it one that is there. */
static void begins_life(struct talk *t)
{
	unsigned other = plan.mates ? 1 : 1 + (unsigned)draw_mixed(HOSTS - 1);
	bool near = plan.mates ? !plan.who : draw_mixed(2);

	if (!plan.lives || draw_mixed(8))
		return;
	plan.lives--;
	ask_mixed_peer(t, near ? 0 : other, near ? other : 0);
}

/* ---- what is reported ---- */

static void take_session_mixed_events(struct machine *m)
{
	struct ddps_event ev;

	while (ddps_event_get(m->ctx, &ev) == 1 && !world.failed) {
		struct side *s = ev.user;

		if (ev.type == DDPS_EV_CONNECT_REQUEST) {
			struct talk *t = &talk[ev.private_data[0] % TALKS];
			struct ddps_conn_param p;

			make_session_mixed_parameters(t, &p);
			check(!ddps_accept(ev.request, t->side[1].ep, &p), "accept");
			if (t->fickle)
				t->quits = kern.now + draw_mixed(2) * draw_mixed(8 * kern.delay);
		} else if (ev.type == DDPS_EV_ESTABLISHED) {
			s->there = true;
		} else if (ev.type == DDPS_EV_PEER_CLOSED) {
			ddps_disconnect(s->ep);
		} else if (ev.type == DDPS_EV_CLOSED || ev.type == DDPS_EV_FAILED) {
			check(s->talk->phase == LEFT && (!ev.error.code || s->talk->fickle),
			      NAME "%s: %s", name(s), ddps_event_name(ev.type), ev.error.text);
			s->over = true;
		}
	}
}

static bool is_session_mixed_fetched(struct machine *m)
{
	struct ddps_wc wc[DEPTH];
	int n = ddps_cq_poll(m->cq, wc, m->batch);

	for (int i = 0; i < n; i++) {
		struct side *s = wc[i].user;

		check(wc[i].status == DDPS_WC_SUCCESS || s->talk->fickle, NAME "%s", name(s),
		      ddps_wc_status_name(wc[i].status));
		s->done++;
		if (!s->talk->heavy)
			s->talk->waits = false;
		writes(s);
	}
	return n > 0;
}

/* Whether it had anything to do. */
static bool turn_session_mixed(unsigned i)
{
	struct machine *m = enter_mixed_side(i);
	bool any = false, driven;

	if (m->naps_until > kern.now)
		return true;
	if (plan.nap && plan.naps >> i & 1 && !draw_mixed(4))
		m->naps_until = kern.now + draw_mixed(plan.nap);
	driven = !m->polls && ddps_progress(m->ctx, 0) > 0;
	for (unsigned n = 0; n < (m->polls ? TRIES : 1) && !any && !world.failed; n++)
		any = is_session_mixed_fetched(m);
	enter_mixed_side(i);
	take_session_mixed_events(m);
	return any || driven;
}

/* ---- the world ---- */

static bool more(void)
{
	for (unsigned k = 0; k < TALKS; k++)
		if (talk[k].phase != AWAY)
			return true;
	return plan.lives;
}

static void is_session_mixed_played(void)
{
	uint64_t until = kern.now + TIMEOUT;

	for (unsigned k = 0; k < plan.heavy; k++) {
		unsigned who = plan.mates ? plan.who : (unsigned)draw_mixed(2);

		ask_mixed_peer(&talk[k], who, !who);
	}
	while (more() && !world.failed) {
		bool any = false;
		uint64_t next;

		for (unsigned i = 0; i < HOSTS; i++)
			any |= turn_session_mixed(i);
		for (unsigned k = 0; k < TALKS && !world.failed; k++) {
			if (talk[k].phase != AWAY)
				check_mixed_goes_on(&talk[k]);
			else if (!talk[k].heavy && k < HEAVY + plan.shy)
				begins_life(&talk[k]);
		}
		next = kern_next();
		if (any || next < kern.now + plan.step)
			next = kern.now + plan.step;
		kern_go(next < kern.now + LOOK ? next : kern.now + LOOK);
		check(kern.now < until, "it does not end");
	}
}

static void begin_session_mixed_world(unsigned i)
{
	struct machine *m = enter_mixed_side(i);
	struct ddps_ctx_attr attr;
	char uri[80];

	ddps_ctx_attr_init(&attr);
	if (getenv("DDPS_SIM_TRACE"))
		attr.log = session_log;
	*m = (struct machine){ .polls = draw_mixed(2), .batch = 1 << draw_mixed(4) };
	snprintf(uri, sizeof uri, "%s://10.0.0.%u:7000%s", plan.scheme, i + 1, plan.uri);
	check(!ddps_ctx_new(&m->ctx, &attr) && ddps_ctx_fd(m->ctx) >= 0 &&
		      !ddps_pd_new(m->ctx, &m->pd) && !ddps_cq_new(m->ctx, 1024, &m->cq) &&
		      !ddps_listen(m->ctx, uri, NULL, &m->listener),
	      "no context");
}

/* As much as takes a while: what has no room in packets costs more. */
static void make_session_mixed(uint64_t seed)
{
	static const char *const uris[] = { "", "?backend=native&encap=9899",
					    "?backend=kernel&encap=off" };
	static const unsigned wires[] = { 0, 0, 0, 1, 2, 2 };
	unsigned wire, both;

	memset(&plan, 0, sizeof plan);
	memset(talk, 0, sizeof talk);
	plan.rng = seed * 0x9e3779b97f4a7c15u + 31;
	sim_events.seed = sim_next(&plan.rng);
	kern_start(sim_next(&plan.rng));
	wire = wires[draw_mixed(6)];
	plan.scheme = wire ? "sctp" : "tcp";
	plan.uri = uris[wire];
	kern.sctp = wire == 2;
	kern.delay = 5000 + draw_mixed(1u << (10 + draw_mixed(10)));
	kern.window = (size_t)65536 << 2 * draw_mixed(wire == 2 ? 3 : 4);
	kern.datagrams = 1u << 15;
	kern.mtu = draw_mixed(2) ? 1500 : 65535;
	kern.tick = wire < 2 && draw_mixed(2) ? draw_mixed(500) : 0;
	plan.nap = draw_mixed(3) ? 0 : draw_mixed(8 * kern.delay);
	plan.step = kern.delay / (1 + draw_mixed(10));
	plan.len = LONG >> draw_mixed(3);
	/* The loop has its turn after 4 MiB, at either end; in an association all is behind what others
	 * have sent, too. */
	plan.most = (wire ? 64 : 32) * MIB;
	plan.budget = (wire == 1 ? 16 : wire ? 96 : 64) * MIB;
	plan.heavy = (unsigned)draw_mixed(HEAVY + 1);
	plan.shy = 1 + (unsigned)draw_mixed(SHY);
	plan.lives = plan.heavy ? 4 + (unsigned)draw_mixed(8) : 60;
	kern.full = draw_mixed(12 * kern.delay);
	kern.f.again = wire != 1 && draw_mixed(2) ? 0.2 : 0; /* which would lose packets */
	plan.naps = 1 + (unsigned)draw_mixed(3);
	plan.rtr = draw_mixed(4) ? 1u << draw_mixed(3) : DDPS_RTR_ALL;
	plan.fence = draw_mixed(2) ? DDPS_WR_FENCE : 0;
	plan.fickle = (unsigned)draw_mixed(4);
	plan.who = (unsigned)draw_mixed(2);
	plan.mates = draw_mixed(2);
	both = (unsigned)draw_mixed(3);
	plan.ways[0] = both != 1;
	plan.ways[1] = both != 0;
	for (unsigned k = 0; k < HEAVY; k++)
		talk[k].heavy = true;
}

bool mixed_world(uint64_t seed, struct sim_tally *t)
{
	uint64_t begin;
	unsigned left;

	world = (struct world){ .seed = seed, .quiet = true, .t = t };
	make_session_mixed(seed);
	begin = kern.now;
	t->n[T_SESSIONS] += plan.heavy + plan.lives;
	t->n[*plan.scheme == 's' ? T_SCTP : T_TCP] += plan.heavy + plan.lives;
	t->n[T_ORDERLY] += plan.heavy + plan.lives;
	for (unsigned i = 0; i < HOSTS; i++)
		begin_session_mixed_world(i);
	is_session_mixed_played();
	for (unsigned i = 0; i < HOSTS; i++)
		ddps_ctx_free(enter_mixed_side(i)->ctx);
	left = kern_stop();
	check(!left, "%u descriptors are left", left);
	t->n[T_WORLDS]++;
	t->n[T_SECONDS] += (kern.now - begin) / SEC;
	return !world.failed;
}
