/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Whole sessions in a simulated kernel: session layer, RDMAP, DDP, MPA, SCTP, negotiation, as they
 * are, over both wires.
 */
#include "sim/session_world.h"
#include <ctype.h>
#include <stdarg.h>
#include <stdlib.h>

#define TURNS  300u
#define ROUNDS 5u
#define IDLE   24u   /* polls in vain, then a program that polls lets time pass */
#define KEEN   160u  /* ... one that does nothing else, with one session, or near the end */
#define SPINS  2000u /* turns of a loop at one moment */
#define SETTLE 200u  /* seconds until all has to be done */
#define END    400u  /* seconds until the last session has to have ended */

struct world world;
uint8_t table[TABLE + RECV_LEN];
struct shared shared[KERN_HOSTS];

/* The shrinker takes it for the same failure if the words are, whatever the numbers. */
void world_fails(const char *format, ...)
{
	unsigned sum = 1;
	char text[600];
	va_list ap;

	va_start(ap, format);
	vsnprintf(text, sizeof text, format, ap);
	va_end(ap);
	fprintf(stderr, "seed %" PRIu64 " at %.6f: %s\n", world.seed, (double)kern.now / 1e9, text);
	for (const char *p = text; *p; p++)
		sum = isdigit((unsigned char)*p) ? sum : sum * 31 + (unsigned char)*p;
	sim_events.failed = sum | 1;
	world.failed = true;
}

/* ---- hosts ---- */

void session_log(void *user, enum ddps_log_level level, const char *facility, const char *text)
{
	fprintf(stderr, "%.6f host %u %s: %s\n", (double)kern.now / 1e9, kern.host, facility, text);
	(void)user;
	(void)level;
}

static void listen_on(struct host *h, unsigned i, bool tcp)
{
	struct ddps_listener **l = tcp ? &h->tcp : &h->sctp;
	char uri[80];

	at_host(i);
	snprintf(uri, sizeof uri, "%s://10.0.0.%u:7000%s", tcp ? "tcp" : "sctp", i + 1,
		 tcp ? "" : world.sctp);
	if (!*l && ddps_listen(h->ctx, uri, NULL, l) < 0)
		*l = NULL;
}

/* One thread plays all hosts: there is nobody to give way to, and the real call was half of the time. */
int __wrap_sched_yield(void);
int __wrap_sched_yield(void)
{
	return 0;
}

/* Requests that the program holds outlive it. */
static void listen_no_more(struct host *h, unsigned i, bool tcp)
{
	struct ddps_listener **l = tcp ? &h->tcp : &h->sctp;

	at_host(i);
	ddps_listener_free(*l);
	*l = NULL;
}

static void host_new(unsigned i)
{
	struct host *h = at_host(i);
	struct ddps_ep_attr nobody;
	struct ddps_ctx_attr attr;

	ddps_ctx_attr_init(&attr);
	attr.max_regions = 256;
	if (getenv("DDPS_SIM_TRACE"))
		attr.log = session_log;
	*h = (struct host){ .spins = sim_happens(SIM_spins, SIM_OWNER(100 + i, 0, 0), 0,
						 world.keen ? 1 : 0.08),
			    .rng = sim_next(&world.rng) };
	check(!ddps_ctx_new(&h->ctx, &attr) && !ddps_pd_new(h->ctx, &h->pd) &&
		      !ddps_cq_new(h->ctx, 8192, &h->cq),
	      "no context");
	listen_on(h, i, true);
	listen_on(h, i, false);
	check(h->tcp && h->sctp, "no listener");
	check(!ddps_srq_new(h->pd, SHARED, 1, NULL, &h->srq) &&
		      !ddps_mr_reg(h->pd, shared[i].mem, sizeof shared[i].mem, DDPS_LOCAL_WRITE,
				   NULL, &shared[i].mr),
	      "no shared queue");
	ddps_ep_attr_init(&nobody);
	nobody.pd = h->pd;
	nobody.send_cq = nobody.recv_cq = h->cq;
	check(!ddps_ep_new(h->ctx, &nobody, &h->nobody), "no endpoint");
	memset(shared[i].posted, 0, sizeof shared[i].posted);
	user_share(i);
}

/* @over: its sessions have ended, so what they took of the shared queue is known. */
static void host_free(unsigned i, bool over)
{
	struct host *h = at_host(i);
	struct ddps_ctx_stats st = { .struct_size = sizeof st };
	unsigned n = 0;

	for (unsigned k = 0; k < SHARED; k++)
		n += shared[i].posted[k] != 0;
	ddps_ctx_stats(h->ctx, &st);
	check(!over || st.srq_posted == n, "host %u: %u shared receives are posted, not %u", i,
	      (unsigned)st.srq_posted, n);
	ddps_ctx_free(h->ctx);
}

static void fetch_events(unsigned i)
{
	struct host *h = at_host(i);
	struct ddps_event ev;

	while (!world.failed && ddps_event_get(h->ctx, &ev) == 1) {
		if (ev.type == DDPS_EV_CONNECT_REQUEST) {
			user_request(i, &ev);
		} else if (ev.type == DDPS_EV_REQUEST_GONE) {
			for (unsigned k = 0; k < world.npairs; k++) {
				struct end *e = &world.pair[k].end[1];

				if (e->req != ev.request)
					continue;
				e->req = NULL;
				e->final = true;
				e->code = DDPS_E_CLOSED;
			}
		} else {
			check(ev.ep && ev.user, "an event of nothing");
			if (ev.user)
				model_event(ev.user, &ev);
		}
	}
}

static bool fetch_completions(unsigned i)
{
	struct host *h = at_host(i);
	struct ddps_wc wc[8];
	bool any = false;
	int n;

	while (!world.failed && (n = ddps_cq_poll(h->cq, wc, 1 + (int)sim_below(&h->rng, 8))) > 0)
		for (int k = 0; k < n; k++, any = true)
			model_completion(&wc[k]);
	return any;
}

__attribute__((noinline)) static void busy(unsigned i)
{
	check(false, "host %u is busy with nothing", i);
}

/* Its users do not look now. */
static bool lazy(struct host *h, unsigned i)
{
	return sim_happens(SIM_lazy, SIM_OWNER(100 + i, 0, 0), h->looks++, 0.3);
}

/* One moment of a host: all that is to be done then, and what its users look at. */
static void host_turn(unsigned i)
{
	struct host *h = at_host(i);
	unsigned spins = 0;

	if (h->stalled_until > kern.now && !world.still)
		return;
	if (h->spins && !world.calm) {
		while (spins++ < (world.keen || world.still ? KEEN : IDLE) && !world.failed)
			if (fetch_completions(i))
				spins = 0;
		fetch_events(i);
		user_share(i);
		return;
	}
	while (ddps_progress(h->ctx, 0) > 0 && !world.failed)
		if (++spins == SPINS)
			busy(i);
	if (world.still || !lazy(h, i)) {
		fetch_completions(i);
		user_share(i);
	}
	if (world.still || !lazy(h, i))
		fetch_events(i);
}

/* ---- pairs ---- */

static void open_pair(struct pair *p)
{
	uint32_t name;

	p->rounds--;
	p->rejected = false;
	p->salt = (uint32_t)sim_next(&p->rng);
	name = pair_name(p, 0);
	p->open = sim_happens(SIM_session, name, 0, 1);
	if (!p->open)
		return;
	p->evil = sim_chance(&p->rng, 0.3);
	p->tidy = !p->evil && sim_chance(&p->rng, 0.7) && !p->lied;
	p->rfc7306 = sim_happens(SIM_rfc7306, name, 0, 0.3);
	p->p2p = sim_happens(SIM_p2p, name, 0, 0.3);
	p->shared = sim_happens(SIM_shared, name, 0, 0.2);
	p->markers = sim_happens(SIM_markers, name, 0, 0.3) && !p->lied;
	p->crc = sim_chance(&p->rng, 0.6) || world.corrupt;
	user_begin(&p->end[0]);
	user_begin(&p->end[1]);
	user_connect(&p->end[0]);
}

/* What became of a session, as far as it may not depend on the wire. */
static struct outcome {
	bool there;
	int code[2];
	unsigned received[2];
	uint64_t digest[2][2];
} outcome[2][PAIRS][ROUNDS];

static void note_outcome(const struct pair *p)
{
	struct outcome *o = &outcome[p->tcp][p - world.pair][p->rounds];

	*o = (struct outcome){ .there = p->tidy && !world.still };
	for (unsigned k = 0; k < 2; k++) {
		o->code[k] = p->end[k].code;
		o->received[k] = p->end[k].received;
		memcpy(o->digest[k], p->end[k].digest, sizeof o->digest[k]);
	}
}

static void same_on_both(struct sim_tally *t)
{
	for (unsigned i = 0; i < PAIRS; i++) {
		for (unsigned k = 0; k < ROUNDS; k++) {
			const struct outcome *a = &outcome[0][i][k], *b = &outcome[1][i][k];

			if (!a->there || !b->there)
				continue;
			t->n[T_SAME]++;
			check(!memcmp(a, b, sizeof *a),
			      "pair %u: SCTP: codes %d %d, %u and %u messages; TCP: %d %d, %u and "
			      "%u",
			      i, a->code[0], a->code[1], a->received[0], a->received[1], b->code[0],
			      b->code[1], b->received[0], b->received[1]);
		}
	}
}

static void close_pair(struct pair *p)
{
	for (unsigned k = 0; k < 2; k++) {
		struct end *e = &p->end[k];

		fetch_completions(e->host);
		fetch_events(e->host);
		if (!e->freed && e->asked)
			model_final(e);
	}
	if (!world.failed)
		model_pair(p);
	note_outcome(p);
	user_free(&p->end[0]);
	user_free(&p->end[1]);
	p->open = false;
}

/* The responder that was never asked has nothing to wait for. */
static bool over(const struct pair *p)
{
	const struct end *a = &p->end[0], *b = &p->end[1];

	return a->final && (b->final || (!b->asked && !b->req));
}

static bool pair_turn(struct pair *p)
{
	if (!p->open) {
		if (p->rounds && !world.still && below(p, 10) < 3)
			open_pair(p);
		return p->open || (p->rounds && !world.still);
	}
	if (over(p)) {
		close_pair(p);
		return true;
	}
	if (p->end[1].req && (world.still || !happens(&p->end[1], SIM_waits, p->n++, 0.5)))
		user_answer(&p->end[1]);
	for (unsigned k = 0; k < 2 && !world.failed; k++)
		if (world.still || p->end[k].final ||
		    world.host[p->end[k].host].stalled_until <= kern.now)
			user_turn(&p->end[k]);
	return true;
}

/* ---- the world ---- */

static double some(double p)
{
	return sim_chance(&world.rng, 0.3) ? p : 0;
}

static uint64_t rnd(uint64_t m)
{
	return sim_below(&world.rng, m);
}

/* The network, if it is not the plainest. */
static bool odd(enum sim_event kind, double p)
{
	return sim_happens(kind, 0, 0, p);
}

static void network(void)
{
	kern.delay = odd(SIM_slow, 0.97) ? 1000 + sim_like(1u << sim_like(26)) : 100000;
	kern.jitter = odd(SIM_late, 0.5) ? kern.delay / 4 : 0;
	kern.window = odd(SIM_narrow, 0.9) ? 2048u << sim_like(8) : 65536;
	kern.datagrams = odd(SIM_shallow, 0.9) ? 32u << sim_like(6) : 1024;
	kern.gso = !odd(SIM_nogso, 0.3);
	kern.mtu = odd(SIM_jumbo, 0.3) ? 65535 : 1500;
	world.sctp = "?backend=native&encap=9899";
	kern.sctp = odd(SIM_kernel, 0.25);
	if (!kern.sctp)
		return;
	kern.sctp_udp = odd(SIM_encap, 0.5) ? 9899 : 0;
	world.sctp = kern.sctp_udp ? "?backend=kernel&encap=9899" : "?backend=kernel&encap=off";
	world.t->n[T_KERNEL]++;
}

static void faults(void)
{
	if (world.quiet) {
		kern.f.short_io = some(0.3);
		kern.f.again = some(0.05);
		kern.f.lost = some(0.01);
		kern.f.doubled = some(0.02);
		kern.f.late = some(0.05);
		return;
	}
	kern.f = (struct kern_faults){ .short_io = some(0.5),
				       .again = some(0.1),
				       .reset = some(0.005),
				       .refused = some(0.2),
				       .lost = some(0.1),
				       .doubled = some(0.05),
				       .late = some(0.1),
				       .corrupt = world.corrupt ? 0.003 : 0,
				       .descriptors = some(0.1),
				       .memory = some(0.01),
				       .calls = some(0.003),
				       .icmp = some(0.01) };
}

static void liar(unsigned host)
{
	lies_begin(1u << host);
	kern.f.lie = 0.4 / (double)(1u << rnd(5));
	for (unsigned i = 0; i < world.npairs; i++) {
		struct pair *p = &world.pair[i];

		p->lied = p->end[0].host == host || p->end[1].host == host;
	}
}

static void make(uint64_t seed, int wire, struct sim_tally *t)
{
	static struct pair pairs[PAIRS];

	world = (struct world){ .seed = seed, .rng = seed * 0x2545f4914f6cdd1du + 7, .t = t };
	world.pair = pairs;
	sim_events.seed = sim_next(&world.rng);
	kern_start(sim_next(&world.rng));
	world.wire = (unsigned)wire;
	world.quiet = rnd(10) < 4 || wire;
	world.corrupt = !world.quiet && rnd(10) < 3;
	world.nhosts = 2 + (unsigned)rnd(3);
	world.npairs = 1 + (unsigned)rnd(PAIRS);
	if (!rnd(12)) { /* two who poll, with one session: descriptors are tried without asking epoll */
		world.keen = true;
		world.bulk = rnd(2);
		world.nhosts = 2;
		world.npairs = 1;
	}
	network();
	if (world.bulk)
		kern.window = 2048u << rnd(4);
	for (unsigned i = 0; i < world.nhosts; i++)
		host_new(i);
	for (unsigned i = 0; i < world.npairs; i++) {
		struct pair *p = &pairs[i];

		p->open = false;
		p->rounds = 1 + (unsigned)rnd(4);
		p->n = 0;
		p->lied = false;
		p->tcp = rnd(2) || world.bulk;
		if (wire)
			p->tcp = wire == WIRE_TCP;
		p->rng = sim_next(&world.rng);
		p->sched = sim_next(&world.rng);
		for (unsigned k = 0; k < 2; k++) {
			p->end[k].pair = p;
			p->end[k].id = k;
		}
		p->end[0].host = (unsigned)rnd(world.nhosts);
		p->end[1].host =
			(p->end[0].host + 1 + (unsigned)rnd(world.nhosts - 1)) % world.nhosts;
	}
	faults();
	kern.f.nobufs = odd(SIM_poor, 0.3) ? 0.02 : 0;
	if (!wire && rnd(10) < 4)
		liar((unsigned)rnd(world.nhosts));
}

/* Everything that happens by itself until @at. */
static void run_until(uint64_t at)
{
	uint64_t next;

	for (unsigned i = 0; i < world.nhosts; i++) {
		host_turn(i);
		counts_check(i, at_host(i)->ctx);
		if (!world.quiet && sim_below(&world.host[i].rng, 10) == 0) {
			listen_on(&world.host[i], i, true);
			listen_on(&world.host[i], i, false);
		}
	}
	while (!world.failed && (next = kern_next()) <= at) {
		kern_go(next);
		for (unsigned i = 0; i < world.nhosts; i++)
			host_turn(i);
	}
	kern_go(at);
}

/* Everything a host has is gone, and nobody is told; it begins anew. */
static void restart(unsigned i)
{
	const struct kern_faults f = kern.f;

	kern.f = (struct kern_faults){ 0 };
	kern.mute |= 1u << i;
	for (unsigned k = 0; k < 2 * world.npairs; k++) {
		struct end *e = &world.pair[k / 2].end[k % 2];

		if (e->host == i && e->pair->open)
			user_free(e);
	}
	host_free(i, false);
	kern.mute = 0;
	host_new(i);
	kern.f = f;
	world.t->n[T_RESTARTS]++;
}

/* Is nobody's request under way to host @i? */
static bool asked_by_nobody(unsigned i)
{
	for (unsigned k = 0; k < world.npairs; k++) {
		const struct pair *p = &world.pair[k];
		const struct end *a = &p->end[0], *b = &p->end[1];

		if (p->open && b->host == i && !a->final && !b->final &&
		    !(a->established && b->established))
			return false;
	}
	return true;
}

/* A listener goes, and may come back at once: whoever asks then finds it there. */
static void listen_anew(unsigned i, bool tcp)
{
	if (world.quiet && !asked_by_nobody(i))
		return;
	listen_no_more(&world.host[i], i, tcp);
	if (world.quiet)
		listen_on(&world.host[i], i, tcp);
}

static void trouble(void)
{
	struct host *h = &world.host[sim_like(world.nhosts)];

	switch (sim_like(9)) {
	case 5:
		listen_anew((unsigned)(h - world.host), sim_like(2));
		break;
	case 0: /* once in a while, so that nobody's time is up for it */
		if (!world.quiet || h->stalled_until + 10 * SEC < kern.now)
			h->stalled_until = kern.now + sim_like(2 * SEC);
		break;
	case 1:
		if (!world.quiet)
			kern_cut((unsigned)(h - world.host));
		break;
	case 2:
		if (!world.quiet)
			kern.dark_until = kern.now + sim_like(20 * SEC);
		break;
	case 3:
		kern.delay = 1000 + sim_like(2 * kern.delay);
		break;
	case 6: /* another way, with routers that tell what does not fit, or do not */
		kern.mtu = world.quiet || sim_like(2) ? 1280 + (unsigned)sim_like(221)
						      : 576 + (unsigned)sim_like(9000);
		kern.tells = sim_like(2);
		break;
	case 7:
		if (!world.quiet)
			restart((unsigned)(h - world.host));
		break;
	case 8: /* a laptop that slept */
		if (!world.quiet && !sim_like(4))
			kern_go(kern.now + sim_like(3600 * SEC));
		break;
	default:
		if (!world.quiet)
			kern_go(kern.now + sim_like(SEC)); /* nobody ran for a while */
	}
}

static bool turns(void)
{
	bool more = false;

	for (unsigned i = 0; i < world.npairs && !world.failed; i++)
		more |= pair_turn(&world.pair[i]);
	return more;
}

/* Whoever takes no receives any more lets its peer's messages wait; and behind a length of an FPDU that was
 * altered on the way more octets are waited for than will come. */
static bool settled(const struct pair *p)
{
	const struct end *a = &p->end[0], *b = &p->end[1];

	if (!p->open || p->lied || (p->tcp && kern.n.corrupt) || !a->established ||
	    !b->established || !a->local || !b->local)
		return true;
	return (a->final || !model_waits(a)) && (b->final || !model_waits(b));
}

/* With nothing in its way all that was asked for is done; or the session ends by itself, since its user
 * would wait for it. */
static bool settle(void)
{
	bool more = true, all = false;

	for (unsigned i = 0; i < SETTLE && more && !all && !world.failed; i++) {
		more = turns();
		run_until(kern.now + SEC);
		all = true;
		for (unsigned k = 0; k < world.npairs; k++)
			all = all && settled(&world.pair[k]);
	}
	for (unsigned k = 0; k < world.npairs && more; k++) {
		const struct pair *p = &world.pair[k];

		check(settled(p),
		      "%s pair %u: what was asked for is never done: %u and %u requests",
		      p->tcp ? "tcp" : "sctp", k, p->end[0].sq.n, p->end[1].sq.n);
	}
	return more;
}

static void play(void)
{
	uint64_t pace = 4 * kern.delay + 100000;
	bool more = true;

	for (unsigned i = 0; i < TURNS && more && !world.failed; i++) {
		more = turns();
		run_until(kern.now + rnd(pace));
		if (sim_happens(SIM_trouble, 0, i, 0.05))
			trouble();
	}
	world.still = true;
	kern.dark_until = 0;
	kern.f = (struct kern_faults){ 0 };
	more = more && settle();
	world.calm = true;
	for (unsigned i = 0; i < END && more && !world.failed; i++) {
		more = turns();
		run_until(kern.now + SEC);
	}
	for (unsigned i = 0; i < world.npairs && more; i++) {
		const struct pair *p = &world.pair[i];

		for (unsigned k = 0; k < 2; k++) {
			const struct end *e = &p->end[k];

			check(!p->open,
			      "%s pair %u end %u never ends: %s%s%s%s, %u of %u done, %u and %u "
			      "posted, %u of %u messages",
			      p->tcp ? "tcp" : "sctp", i, k, p->tidy ? "tidy " : "",
			      e->asked ? "asked " : "", e->established ? "established " : "",
			      e->final ? "final" : "", e->ops, e->to_post, e->sq.n, e->rq.n,
			      e->received, p->end[!k].nmsgs);
		}
	}
}

/* Nobody has a right to write there. */
static uint64_t table_sum(void)
{
	uint64_t sum = 0;

	for (size_t i = 0; i < sizeof table; i++)
		sum = sum * 31 + table[i];
	return sum;
}
static uint64_t table_was;

static bool one_run(uint64_t seed, int wire, struct sim_tally *t)
{
	unsigned left, kind = T_KINDS;
	uint64_t begin;

	make(seed, wire, t);
	begin = kern.now;
	play();
	if (world.failed)
		return false;
	for (unsigned i = 0; i < world.nhosts; i++)
		host_free(i, true);
	left = kern_stop();
	check(table_sum() == table_was, "memory that nobody may write was written");
	check(!left, "%u descriptors are left", left);
	t->n[T_WORLDS]++;
	t->n[T_SECONDS] += (kern.now - begin) / SEC;
#define DDPS_X(name, text)                                                                         \
	t->n[T_FAULTS] += kern.n.name;                                                             \
	t->n[kind++] += kern.n.name;
	KERN_FAULTS(DDPS_X)
#undef DDPS_X
	return !world.failed;
}

/* One in four is played on either wire, with users that do the same: all that they see is the same. */
static bool one_world(uint64_t seed, struct sim_tally *t)
{
	if (!table[0] && !table[1])
		for (uint64_t i = 0, s = 1; i < sizeof table; i++)
			table[i] = (uint8_t)sim_next(&s);
	if (!table_was)
		table_was = table_sum();
	if (seed % 97 == 13)
		return stuck_world(seed, t);
	if (seed % 48 == 9)
		return bulk_world(seed, t);
	if (seed % 97 == 57)
		return crowd_world(seed, t);
	if (seed % 48 == 33)
		return brief_world(seed, t);
	if (seed % 192 == 51)
		return beside_world(seed, t);
	if (seed / 2 % 4)
		return one_run(seed, WIRE_ANY, t);
	memset(outcome, 0, sizeof outcome);
	if (!one_run(seed, WIRE_TCP, t) || !one_run(seed, WIRE_SCTP, t))
		return false;
	same_on_both(t);
	return !world.failed;
}

int main(int argc, char **argv)
{
	static const struct sim_kind kind = {
		.names = { "sessions", "over TCP", "over SCTP", "ended in order", "broken",
			   "rejected", "never came about", "completions", "Terminates", "worlds",
			   "simulated seconds", "faults", "compared on both wires",
			   "with a host that lies", "hosts restarted",
			   "receives from shared queues", "requests confirmed",
			   "on the kernel's SCTP",
#define DDPS_X(name, text) text,
			   KERN_FAULTS(DDPS_X)
#undef DDPS_X
		},
		.seconds = T_SECONDS,
		.world = one_world,
	};

	return sim_main(&kind, argc, argv);
}
