/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Short sessions, one after the other and side by side, where nothing fails: requests are accepted or
 * rejected, a few Writes go either way, then it ends in order, or one program is gone.  Each step has
 * its time, below that of any timer that would repair it: what answers late was not answered.
 */
#include "sim/session_world.h"
#include <stdlib.h>

#define CLOSE_MS 30000
#define TALKS	 24u
#define ASIDE	 4u   /* at the same time */
#define WRITES	 120u /* of an end, at most */
#define LONG	 8192u
#define PRIVATE	 200u
#define LINGER	 (SEC * 6 / 10) /* who opened an association without sessions closes it */
#define TURNS	 2000u		/* of a loop at one moment */
#define ANYWAY	 (150 * SEC)	/* where packets are lost */
#define SET_UP	 60000		/* ms, there: six INITs, or COOKIE ECHOs, in a row are not lost */

enum phase { AWAY, ASKED, THERE, LEFT };

struct talk;
struct side {
	struct talk *talk;
	unsigned id, host;
	struct ddps_ep *ep;
	struct ddps_mr *from, *into;
	uint32_t stag; /* of into, and where it begins: also when its program is gone */
	uint64_t to;
	struct ddps_request *req;
	bool there, over, bids;
	unsigned to_post, posted, done;
	uint8_t mem[LONG];
};

static struct talk {
	struct side side[2]; /* who asks, who is asked */
	enum phase phase;
	uint64_t until, within; /* the step is to be over by then; so long it may take */
	bool rejects, ends, killed, long_ones, stalls;
	uint8_t words[PRIVATE]; /* of a rejection */
	size_t nwords;
} talk[ASIDE];

static struct machine {
	struct ddps_ctx *ctx;
	struct ddps_pd *pd;
	struct ddps_cq *cq;
	struct ddps_listener *listener;
	bool keen; /* its user does nothing but poll */
	uint64_t naps_until;
} machine[2];

static struct {
	const char *uri; /* how it goes on behind the address */
	const char *scheme;
	bool naps, loses, native;
	bool rough, strays; /* programs end at any moment; packets of old ones meet nobody */
	double full;
	uint64_t rng, soon;
	uint64_t warm[2]; /* a host has an association that carries nothing, since */
	unsigned left;	  /* sessions to come */
} plan;

/* What was seen of native SCTP on the wire. */
static struct {
	unsigned begun, ended, aborted;
} seen;

static uint64_t draw_brief(uint64_t m)
{
	return sim_below(&plan.rng, m);
}

static struct machine *enter_brief_side(unsigned i)
{
	kern.host = kern.who = i;
	return &machine[i];
}

static void look_at_brief_end(const uint8_t *p, size_t len)
{
	enum { ABORT = 6, COOKIE_ACK = 11, SHUTDOWN_COMPLETE = 14 };

	for (size_t i = 12; i + 4 <= len;) {
		size_t n = (size_t)p[i + 2] << 8 | p[i + 3];

		seen.begun += p[i] == COOKIE_ACK;
		seen.ended += p[i] == SHUTDOWN_COMPLETE;
		seen.aborted += p[i] == ABORT;
		i += n < 4 ? 4 : (n + 3) / 4 * 4;
	}
}

/* ---- hosts ---- */

static void listens(unsigned i)
{
	struct machine *m = enter_brief_side(i);
	char uri[80];

	snprintf(uri, sizeof uri, "%s://10.0.0.%u:7000%s", plan.scheme, i + 1, plan.uri);
	check(!ddps_listen(m->ctx, uri, NULL, &m->listener), "no listener");
}

static void begin_session_brief_world(unsigned i)
{
	struct machine *m = enter_brief_side(i);
	struct ddps_ctx_attr attr;

	ddps_ctx_attr_init(&attr);
	if (getenv("DDPS_SIM_TRACE"))
		attr.log = session_log;
	*m = (struct machine){ .keen = !draw_brief(3) };
	check(!ddps_ctx_new(&m->ctx, &attr) && ddps_ctx_fd(m->ctx) >= 0 &&
		      !ddps_pd_new(m->ctx, &m->pd) && !ddps_cq_new(m->ctx, 2048, &m->cq),
	      "no context");
	listens(i);
}

/* The program on host @i ends; @killed: nobody gets a word of it. */
static void ends(unsigned i, bool killed)
{
	kern.mute = killed ? 1u << i : 0;
	ddps_ctx_free(enter_brief_side(i)->ctx);
	kern.mute = 0;
	machine[i].ctx = NULL;
	for (unsigned k = 0; k < 2 * ASIDE; k++) {
		struct side *s = &talk[k / 2].side[k % 2];

		if (s->host != i)
			continue;
		s->ep = NULL;
		s->from = s->into = NULL;
		s->req = NULL;
		s->over = true;
	}
}

/* ---- sessions ---- */

#define NAME	"%s session %u, end %u: "
#define name(s) plan.scheme, (unsigned)((s)->talk - talk), (s)->id

/* Who naps while much is on its way does not open the window fast: a round trip takes up to four times as
 * long, and half a megabyte takes 30 of them. */
static uint64_t time_of(const struct talk *t)
{
	if (plan.loses || plan.full > 0)
		return ANYWAY;
	return plan.soon + (plan.naps && t->long_ones && t->phase == THERE ? 240 * kern.delay : 0);
}

/* A full socket loses answers that belong to no association yet, or to none any more, and a timer repairs
 * that: sockets are full only while nobody comes or goes. */
static void step_session_brief(struct talk *t, enum phase phase)
{
	bool work = true;

	t->phase = phase;
	t->within = time_of(t);
	t->until = kern.now + t->within;
	for (unsigned k = 0; k < ASIDE; k++)
		work = work && (talk[k].phase == AWAY || talk[k].phase == THERE);
	kern.f.again = work ? plan.full : 0;
}

static bool make_session_brief_endpoint(struct side *s, bool stalls)
{
	struct machine *m = enter_brief_side(s->host);
	struct ddps_ep_attr attr;

	ddps_ep_attr_init(&attr);
	attr.pd = m->pd;
	attr.send_cq = attr.recv_cq = m->cq;
	attr.sq_depth = WRITES;
	attr.rq_depth = 1;
	attr.user = s;
	if (stalls)
		attr.no_recv = DDPS_NO_RECV_STALL;
	check(!ddps_ep_new(m->ctx, &attr, &s->ep) &&
		      !ddps_mr_reg(m->pd, table, LONG, DDPS_REMOTE_READ, NULL, &s->from) &&
		      !ddps_mr_reg(m->pd, s->mem, LONG, DDPS_REMOTE_WRITE, NULL, &s->into),
	      "no endpoint");
	s->stag = ddps_mr_stag(s->into);
	s->to = ddps_mr_to(s->into);
	return !world.failed;
}

/* Of what is lost two in a row are repaired in seconds, and an end waits for it. */
static void init(struct ddps_conn_param *p)
{
	ddps_conn_param_init(p);
	if (plan.loses)
		p->connect_ms = p->setup_ms = SET_UP;
	if (plan.loses || plan.full > 0)
		p->close_ms = CLOSE_MS;
}

static void ask_brief_peer(struct talk *t, unsigned who, bool lonely, bool stalls)
{
	static const unsigned counts[] = { 0, 1, 8, WRITES };
	struct ddps_conn_param p;
	uint8_t number = (uint8_t)(t - talk);
	char uri[80];

	memset(t, 0, sizeof *t);
	for (unsigned k = 0; k < 2; k++)
		t->side[k] = (struct side){
			.talk = t, .id = k, .host = k ? !who : who, .to_post = counts[draw_brief(4)]
		};
	t->rejects = !draw_brief(3);
	t->ends = t->rejects && plan.rough && lonely && draw_brief(2);
	t->killed = !t->rejects && plan.rough && lonely && !draw_brief(4);
	t->long_ones = draw_brief(2);
	t->nwords = draw_brief(PRIVATE + 1);
	for (size_t i = 0; i < t->nwords; i++)
		t->words[i] = (uint8_t)draw_brief(256);
	t->stalls = stalls;
	if (!make_session_brief_endpoint(&t->side[0], t->stalls) ||
	    !make_session_brief_endpoint(&t->side[1], !draw_brief(4)))
		return;
	init(&p);
	p.p2p = draw_brief(2);
	if (!p.p2p && !t->side[0].to_post) /* the responder waits for something */
		t->side[0].to_post = 1;
	p.private_data = &number;
	p.private_data_len = 1;
	snprintf(uri, sizeof uri, "%s://10.0.0.%u:7000%s", plan.scheme, t->side[1].host + 1,
		 plan.uri);
	enter_brief_side(who);
	check(!ddps_connect(t->side[0].ep, uri, &p), "connect");
	step_session_brief(t, ASKED);
}

static void answer_brief_peer(struct side *s)
{
	struct talk *t = s->talk;
	struct ddps_conn_param p;
	int err;

	enter_brief_side(s->host);
	if (!t->rejects) {
		init(&p);
		err = ddps_accept(s->req, s->ep, &p);
		check(!err, NAME "accept: %s", name(s), ddps_strerror(err));
	} else {
		err = ddps_reject(s->req, t->words, t->nwords);
		check(!err, NAME "reject: %s", name(s), ddps_strerror(err));
		s->over = true;
	}
	s->req = NULL;
	if (t->ends) {
		for (unsigned n = (unsigned)draw_brief(3); n; n--)
			ddps_progress(enter_brief_side(s->host)->ctx, 0);
		ends(s->host, false);
		step_session_brief(
			t, ASKED); /* it may wait for a second, and nobody else runs meanwhile */
	}
}

static void does_session_brief_work(struct side *s)
{
	struct side *o = &s->talk->side[!s->id];

	enter_brief_side(s->host);
	while (s->there && s->posted < s->to_post && o->stag && !world.failed) {
		struct ddps_sge sge = { table,
					1 + (uint32_t)draw_brief(s->talk->long_ones ? LONG : 8),
					ddps_mr_stag(s->from) };
		struct ddps_send_wr wr = { .op = DDPS_OP_WRITE, .sge = &sge, .nsge = 1 };
		int err;

		wr.stag = o->stag;
		wr.to = o->to;
		err = ddps_post_send(s->ep, &wr);
		check(!err, NAME "post_send: %s", name(s), ddps_strerror(err));
		s->posted++;
	}
}

/* Nothing was lost, and who has to wait for room does so for a round trip: no timer has anything to do. */
static void no_timeout(struct side *s)
{
	struct ddps_assoc_stats st = { .struct_size = sizeof st };

	enter_brief_side(s->host);
	if (plan.loses || plan.naps || ddps_ep_assoc_stats(s->ep, &st))
		return;
	check(!st.timeouts, NAME "T3 has expired %u times, and nothing was lost", name(s),
	      (unsigned)st.timeouts);
}

static void does_session_brief_leave(struct talk *t)
{
	unsigned who = (unsigned)draw_brief(3);

	no_timeout(&t->side[0]);
	no_timeout(&t->side[1]);
	if (t->killed)
		ends(t->side[1].host, true);
	step_session_brief(t, LEFT);
	if (t->killed) {
		t->side[0].to_post++;
		does_session_brief_work(&t->side[0]);
		return;
	}
	for (unsigned k = 0; k < 2; k++) {
		if (who == !k) /* it learns of it */
			continue;
		enter_brief_side(t->side[k].host);
		check(!ddps_disconnect(t->side[k].ep), "disconnect");
	}
}

static void free_at_session_brief(struct talk *t)
{
	for (unsigned k = 0; k < 2; k++) {
		struct side *s = &t->side[k];

		enter_brief_side(s->host);
		if (!machine[s->host].ctx)
			continue;
		ddps_ep_free(s->ep);
		ddps_mr_dereg(s->from);
		ddps_mr_dereg(s->into);
	}
	t->phase = AWAY;
	if (t->ends || t->killed)
		plan.warm[0] = plan.warm[1] = 0;
	else if (!t->stalls) /* what may stall shares no association */
		plan.warm[t->side[0].host] = kern.now;
	for (unsigned i = 0; i < 2; i++)
		if (!machine[i].ctx)
			begin_session_brief_world(i);
}

static bool run_session_brief_alone(const struct talk *t)
{
	for (unsigned k = 0; k < ASIDE; k++)
		if (&talk[k] != t && talk[k].phase != AWAY)
			return false;
	return true;
}

static void check_brief_goes_on(struct talk *t)
{
	struct side *a = &t->side[0], *b = &t->side[1];

	check(kern.now < t->until, NAME "%s has not come after %.3f s%s", name(a),
	      t->phase == ASKED	  ? t->rejects ? "the rejection" : "the session"
	      : t->phase == THERE ? "the end of its Writes"
				  : "its end",
	      (double)t->within / 1e9, a->over ? " there" : "");
	if (b->req)
		answer_brief_peer(b);
	if (a->over && b->over) {
		check(t->phase == LEFT || t->rejects, NAME "it ends by itself", name(a));
		free_at_session_brief(t);
	} else if (t->phase == ASKED && a->there && b->there) {
		step_session_brief(t, THERE);
	} else if (t->phase == THERE && a->done == a->to_post && b->done == b->to_post) {
		does_session_brief_leave(t);
	}
	if (t->phase == ASKED || t->phase == THERE) {
		does_session_brief_work(a);
		does_session_brief_work(b);
	}
}

/* ---- what is reported ---- */

static void take_session_brief_rejected(struct side *s, const struct ddps_event *ev)
{
	struct talk *t = s->talk;

	check(!s->id && t->rejects && !s->over, NAME "rejected: %s", name(s), ev->error.text);
	check(ev->private_data_len == t->nwords && !memcmp(ev->private_data, t->words, t->nwords),
	      NAME "a rejection with %u octets of private data, not %u", name(s),
	      (unsigned)ev->private_data_len, (unsigned)t->nwords);
	s->over = true;
}

static void end_brief_world(struct side *s, const struct ddps_event *ev)
{
	struct talk *t = s->talk;

	check(!s->over, NAME "it ends twice", name(s));
	check(t->phase == LEFT, NAME "%s: %s", name(s), ddps_event_name(ev->type), ev->error.text);
	check(!ev->error.code != t->killed, NAME "%s: \"%s\"", name(s), ddps_event_name(ev->type),
	      ev->error.text);
	s->over = true;
}

static void take_session_brief_events(struct machine *m)
{
	struct ddps_event ev;

	while (m->ctx && ddps_event_get(m->ctx, &ev) == 1 && !world.failed) {
		struct side *s = ev.user;

		if (ev.type == DDPS_EV_CONNECT_REQUEST)
			talk[ev.private_data[0] % ASIDE].side[1].req = ev.request;
		else if (ev.type == DDPS_EV_ESTABLISHED)
			s->there = true;
		else if (ev.type == DDPS_EV_PEER_CLOSED || ev.type == DDPS_EV_PEER_CLOSING)
			ddps_disconnect(s->ep);
		else if (ev.type == DDPS_EV_REJECTED)
			take_session_brief_rejected(s, &ev);
		else if (ev.type == DDPS_EV_CLOSED || ev.type == DDPS_EV_FAILED)
			end_brief_world(s, &ev);
	}
}

static bool is_session_brief_fetched(struct machine *m)
{
	struct ddps_wc wc[16];
	int n = ddps_cq_poll(m->cq, wc, 16);

	for (int i = 0; i < n; i++) {
		struct side *s = wc[i].user;

		check(wc[i].status == DDPS_WC_SUCCESS || s->talk->killed, NAME "%s", name(s),
		      ddps_wc_status_name(wc[i].status));
		s->done++;
	}
	return n > 0;
}

static void turn_session_brief(unsigned i)
{
	struct machine *m = enter_brief_side(i);
	unsigned n = 0;

	if (!m->ctx || m->naps_until > kern.now)
		return;
	if (plan.naps && !draw_brief(8)) { /* in the middle of what there is to do */
		ddps_progress(m->ctx, 0);
		m->naps_until = kern.now + draw_brief(6 * kern.delay);
	} else if (m->keen) {
		while (n++ < 160)
			if (is_session_brief_fetched(m))
				n = 0;
	} else {
		while (ddps_progress(m->ctx, 0) > 0 && !world.failed)
			check(++n < TURNS, "host %u is busy with nothing", i);
	}
	is_session_brief_fetched(m);
	take_session_brief_events(m);
}

/* ---- the world ---- */

static void run_session_brief(uint64_t time)
{
	uint64_t until = kern.now + time, next, look_at = plan.soon / 50;

	do {
		turn_session_brief(0);
		turn_session_brief(1);
		for (unsigned k = 0; k < ASIDE && !world.failed; k++)
			if (talk[k].phase != AWAY)
				check_brief_goes_on(&talk[k]);
		next = kern_next();
		if (next > kern.now + look_at)
			next = kern.now + look_at;
		for (unsigned i = 0; i < 2; i++)
			if (machine[i].naps_until > kern.now && machine[i].naps_until < next)
				next = machine[i].naps_until;
		kern_go(next < until ? next : until);
	} while (kern.now < until && !world.failed);
}

static void begins_anew(unsigned i)
{
	ends(i, false);
	begin_session_brief_world(i);
	plan.warm[0] = plan.warm[1] = 0;
	plan.strays = true;
}

/* A request is on its way on an association that the peer shuts down for being idle: it is made again. */
static void met(unsigned who)
{
	run_session_brief(SEC / 5 + 4 * kern.delay);
	if (plan.loses || !plan.warm[who] || plan.warm[who] + SEC * 4 / 10 < kern.now)
		return;
	ask_brief_peer(&talk[0], who, false, false);
	begins_anew(!who);
	talk[0].side[1].over = !make_session_brief_endpoint(&talk[0].side[1], false);
	step_session_brief(&talk[0], ASKED);
}

/* Nobody has a session: sometimes a program ends, or listens anew, and who asks then is answered. */
static void between(void)
{
	static const unsigned ms[] = { 0, 0, 400, 500, 520, 5000 };
	unsigned i = (unsigned)draw_brief(2);

	run_session_brief(draw_brief(4)
				  ? draw_brief(4 * kern.delay)
				  : ms[draw_brief(6)] * (SEC / 1000) + draw_brief(4 * kern.delay));
	if (!draw_brief(4)) {
		enter_brief_side(i);
		ddps_listener_free(machine[i].listener);
		listens(i);
	} else if (!draw_brief(8)) {
		begins_anew(i);
		run_session_brief(LINGER + plan.soon);
	} else if (!draw_brief(4) && strcmp(plan.scheme, "tcp")) {
		met(i);
	}
}

static void until_alone(void)
{
	while (!run_session_brief_alone(NULL) && !world.failed)
		run_session_brief(plan.soon / 100);
}

static void is_session_brief_played(void)
{
	while (plan.left && !world.failed) {
		unsigned n = 1 + (unsigned)draw_brief(ASIDE);

		for (unsigned k = 0; k < n && plan.left; k++, plan.left--) {
			ask_brief_peer(&talk[k], !draw_brief(4), n == 1, !draw_brief(4));
			run_session_brief(draw_brief(2) ? 0 : draw_brief(4 * kern.delay));
		}
		until_alone();
		if (!world.failed)
			between();
		until_alone();
	}
}

/* All have ended in order: so have associations and streams, soon. */
static void nothing_left(unsigned open)
{
	run_session_brief(LINGER + plan.soon);
	if (plan.loses || plan.rough || plan.strays || world.failed)
		return;
	check(!kern.torn && !seen.aborted, "%s: %u ends in order are a reset or an ABORT",
	      plan.scheme, (unsigned)kern.torn + seen.aborted);
	check(seen.begun == seen.ended, "%u of %u associations stay when all sessions have ended",
	      seen.begun - seen.ended, seen.begun);
	check(plan.native || kern_open() == open, "%s: %u descriptors stay", plan.scheme,
	      kern_open() - open);
}

static void make_session_brief(uint64_t seed)
{
	static const char *const uris[] = { "", "?backend=native&encap=9899",
					    "?backend=kernel&encap=off" };
	unsigned wire;

	plan.rng = seed * 0x9e3779b97f4a7c15u + 29;
	sim_events.seed = sim_next(&plan.rng);
	kern_start(sim_next(&plan.rng));
	wire = (unsigned)draw_brief(3);
	plan.scheme = wire ? "sctp" : "tcp";
	plan.uri = uris[wire];
	plan.native = wire == 1;
	plan.loses = plan.native && !draw_brief(3);
	plan.naps = draw_brief(2);
	plan.rough = !plan.loses && !draw_brief(3);
	plan.strays = false;
	plan.left = TALKS;
	kern.sctp = wire == 2;
	kern.delay = 10000 + draw_brief(1u << draw_brief(25));
	kern.gso = draw_brief(2);
	kern.datagrams = 1u << 15; /* who naps loses none */
	plan.full = draw_brief(2) ? 0.05 : 0;
	memset(plan.warm, 0, sizeof plan.warm);
	kern.f = (struct kern_faults){ .short_io = draw_brief(2) ? 0.3 : 0,
				       .lost = plan.loses ? 0.05 : 0 };
	kern.f.nobufs = sim_happens(SIM_poor, 0, 0, 0.3) ? 0.02 : 0;
	plan.soon = SEC + 60 * kern.delay;
	memset(&seen, 0, sizeof seen);
	kern_watch = plan.native ? look_at_brief_end : NULL;
}

bool brief_world(uint64_t seed, struct sim_tally *t)
{
	unsigned open, left;
	uint64_t begin;

	world = (struct world){ .seed = seed, .quiet = true, .t = t };
	make_session_brief(seed);
	begin = kern.now;
	memset(talk, 0, sizeof talk);
	begin_session_brief_world(0);
	begin_session_brief_world(1);
	open = kern_open();
	is_session_brief_played();
	if (!world.failed)
		nothing_left(open);
	for (unsigned i = 0; i < 2; i++)
		ddps_ctx_free(enter_brief_side(i)->ctx);
	left = kern_stop();
	kern_watch = NULL;
	check(!left, "%u descriptors are left", left);
	t->n[T_SESSIONS] += TALKS;
	t->n[plan.native || kern.sctp ? T_SCTP : T_TCP] += TALKS;
	t->n[T_ORDERLY] += TALKS;
	t->n[T_WORLDS]++;
	t->n[T_SECONDS] += (kern.now - begin) / SEC;
	return !world.failed;
}
