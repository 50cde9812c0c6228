/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Whole sessions in a simulated kernel: session layer, RDMAP, DDP, MPA, SCTP, negotiation, as they
 * are, over both wires.
 */
#include "sim/session_world.h"
#include <ctype.h>
#include <stdarg.h>

#define TURNS  300u
#define SETTLE 200u /* seconds until all has to be done */
#define END    400u /* seconds until the last session has to have ended */

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

static double draw_session_chance(double p)
{
	return sim_chance(&world.rng, 0.3) ? p : 0;
}

static uint64_t draw_session(uint64_t m)
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
		kern.f.short_io = draw_session_chance(0.3);
		kern.f.again = draw_session_chance(0.05);
		kern.f.lost = draw_session_chance(0.01);
		kern.f.doubled = draw_session_chance(0.02);
		kern.f.late = draw_session_chance(0.05);
		return;
	}
	kern.f = (struct kern_faults){ .short_io = draw_session_chance(0.5),
				       .again = draw_session_chance(0.1),
				       .reset = draw_session_chance(0.005),
				       .refused = draw_session_chance(0.2),
				       .lost = draw_session_chance(0.1),
				       .doubled = draw_session_chance(0.05),
				       .late = draw_session_chance(0.1),
				       .corrupt = world.corrupt ? 0.003 : 0,
				       .descriptors = draw_session_chance(0.1),
				       .memory = draw_session_chance(0.01),
				       .calls = draw_session_chance(0.003),
				       .icmp = draw_session_chance(0.01) };
}

static void liar(unsigned host)
{
	lies_begin(1u << host);
	kern.f.lie = 0.4 / (double)(1u << draw_session(5));
	for (unsigned i = 0; i < world.npairs; i++) {
		struct pair *p = &world.pair[i];

		p->lied = p->end[0].host == host || p->end[1].host == host;
	}
}

static void make_session_worlds(uint64_t seed, int wire, struct sim_tally *t)
{
	static struct pair pairs[PAIRS];

	world = (struct world){ .seed = seed, .rng = seed * 0x2545f4914f6cdd1du + 7, .t = t };
	world.pair = pairs;
	sim_events.seed = sim_next(&world.rng);
	kern_start(sim_next(&world.rng));
	world.wire = (unsigned)wire;
	world.quiet = draw_session(10) < 4 || wire;
	world.corrupt = !world.quiet && draw_session(10) < 3;
	world.nhosts = 2 + (unsigned)draw_session(3);
	world.npairs = 1 + (unsigned)draw_session(PAIRS);
	if (!draw_session(
		    12)) { /* two who poll, with one session: descriptors are tried without asking epoll */
		world.keen = true;
		world.bulk = draw_session(2);
		world.nhosts = 2;
		world.npairs = 1;
	}
	network();
	world.secured = !world.corrupt && kern.f.lie == 0 && sim_happens(SIM_secured, 0, 0, 0.3);
	world.inside = world.secured && !kern.sctp && sim_happens(SIM_inside, 0, 0, 0.5);
	if (world.inside)
		world.sctp = "";
	world.shm = !world.secured && sim_happens(SIM_shm, 0, 0, 0.25);
	world.near = !world.secured && !world.shm && sim_happens(SIM_near, 0, 0, 0.2);
	if (world.bulk)
		kern.window = 2048u << draw_session(4);
	for (unsigned i = 0; i < world.nhosts; i++)
		host_new(i);
	for (unsigned i = 0; i < world.npairs; i++) {
		struct pair *p = &pairs[i];

		p->open = false;
		p->rounds = 1 + (unsigned)draw_session(4);
		p->n = 0;
		p->lied = false;
		p->tcp = draw_session(2) || world.bulk;
		if (wire)
			p->tcp = wire == WIRE_TCP;
		p->rng = sim_next(&world.rng);
		p->sched = sim_next(&world.rng);
		for (unsigned k = 0; k < 2; k++) {
			p->end[k].pair = p;
			p->end[k].id = k;
		}
		p->end[0].host = (unsigned)draw_session(world.nhosts);
		p->end[1].host = (p->end[0].host + 1 + (unsigned)draw_session(world.nhosts - 1)) %
				 world.nhosts;
	}
	faults();
	kern.f.nobufs = odd(SIM_poor, 0.3) ? 0.02 : 0;
	if (!wire && draw_session(10) < 4)
		liar((unsigned)draw_session(world.nhosts));
}

/* Everything that happens by itself until @at. */
static void run_until(uint64_t at)
{
	uint64_t next;

	for (unsigned i = 0; i < world.nhosts; i++) {
		host_turn(i);
		counts_check(i, at_host(i)->ctx);
		if (!world.quiet && sim_below(&world.host[i].rng, 10) == 0) {
			host_listen(&world.host[i], i, true);
			host_listen(&world.host[i], i, false);
		}
	}
	while (!world.failed && (next = kern_next()) <= at) {
		kern_go(next);
		for (unsigned i = 0; i < world.nhosts; i++)
			host_turn(i);
	}
	kern_go(at);
}

static bool turn_all_session_worlds(void)
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

/* With nothing in its path all that was asked for is done; or the session ends by itself, since its user
 * would wait for it. */
static bool settle_session_worlds(void)
{
	bool more = true, all = false;

	for (unsigned i = 0; i < SETTLE && more && !all && !world.failed; i++) {
		more = turn_all_session_worlds();
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

static void play_session_world(void)
{
	uint64_t pace = 4 * kern.delay + 100000;
	bool more = true;

	for (unsigned i = 0; i < TURNS && more && !world.failed; i++) {
		more = turn_all_session_worlds();
		run_until(kern.now + draw_session(pace));
		if (sim_happens(SIM_trouble, 0, i, 0.05))
			trouble();
	}
	world.still = true;
	kern.dark_until = 0;
	kern.f = (struct kern_faults){ 0 };
	more = more && settle_session_worlds();
	world.calm = true;
	for (unsigned i = 0; i < END && more && !world.failed; i++) {
		more = turn_all_session_worlds();
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

static bool run_session_worlds_once(uint64_t seed, int wire, struct sim_tally *t)
{
	unsigned left, kind = T_KINDS;
	uint64_t begin;

	make_session_worlds(seed, wire, t);
	begin = kern.now;
	play_session_world();
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
static bool play_session_worlds_kind(uint64_t seed, struct sim_tally *t)
{
	if (!table[0] && !table[1])
		for (uint64_t i = 0, s = 1; i < sizeof table; i++)
			table[i] = (uint8_t)sim_next(&s);
	if (!table_was)
		table_was = table_sum();
	if (seed % 97 == 13)
		return stuck_world(seed, t);
	if (seed % 97 == 77)
		return ends_world(seed, t);
	if (seed % 48 == 9)
		return bulk_world(seed, t);
	if (seed % 97 == 57)
		return crowd_world(seed, t);
	if (seed % 48 == 33)
		return brief_world(seed, t);
	if (seed % 192 == 51)
		return mixed_world(seed, t);
	if (seed / 2 % 4)
		return run_session_worlds_once(seed, WIRE_ANY, t);
	pairs_forget();
	if (!run_session_worlds_once(seed, WIRE_TCP, t) ||
	    !run_session_worlds_once(seed, WIRE_SCTP, t))
		return false;
	pairs_same_on_both(t);
	return !world.failed;
}

/* Whatever has happened, all memory has been freed in the end. */
static bool play_session_worlds_world(uint64_t seed, struct sim_tally *t)
{
	const uint64_t live = kern.live;

	if (!play_session_worlds_kind(seed, t))
		return false;
	check(kern.live == live, "%" PRIu64 " allocations are left", kern.live - live);
	return !world.failed;
}

int main(int argc, char **argv)
{
	static const struct sim_kind kind = {
		.names = { "sessions",
			   "over TCP",
			   "over SCTP",
			   "ended in order",
			   "broken",
			   "rejected",
			   "never came about",
			   "completions",
			   "Terminates",
			   "worlds",
			   "simulated seconds",
			   "faults",
			   "compared on both wires",
			   "with a host that lies",
			   "hosts restarted",
			   "receives from shared queues",
			   "requests confirmed",
			   "on the kernel's SCTP",
			   "inside TLS",
			   "inside DTLS",
			   "keys renewed",
			   "ports moved",
			   "through shared memory",
			   "flushes and atomic writes",
#define DDPS_X(name, text) text,
			   KERN_FAULTS(DDPS_X)
#undef DDPS_X
		},
		.seconds = T_SECONDS,
		.world = play_session_worlds_world,
	};

	return sim_main(&kind, argc, argv);
}
