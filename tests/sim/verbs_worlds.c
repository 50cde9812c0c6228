/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The drop-in in the simulated kernel: a program of verbs, by seed, with connections to itself.  The
 * library's thread and the one that hands out events run next to it, in an order by seed.  Each world
 * has a process of its own, for a process has one drop-in.
 */
#include "sched/sched.h"
#include "sim/verbs_dgram.h"
#include <arpa/inet.h>
#include <poll.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

#define TURNS	 4000u
#define IDLE	 200u	     /* turns without news: nothing is on its way any more */
#define RTO_PART 20000000ull /* ns; all turns together are minutes of it */

struct verbs_world w;

static bool is_never_true(void *arg)
{
	(void)arg;
	return false;
}

void let_pass(uint64_t ns)
{
	kern_block(is_never_true, NULL, kern.now + ns);
}

/* ---- the world ---- */

static bool is_verbs_worlds_done(struct end *e)
{
	return e->ops == MSGS && user_answered(e) && get_other_end(e)->heard == e->ntold;
}

/* Returns whether anything has moved. */
static bool turn_verbs_worlds(struct end *e)
{
	const unsigned ops = e->ops, recvs = e->posted_recvs;
	struct end *o = get_other_end(e);
	bool fetched = false;

	if (!e->dead && !e->disconnected) {
		user_post_recvs(e);
		if (!o->disconnected)
			window_bind(e);
		if (draw_verbs(3) && !o->disconnected)
			user_post_some(e);
		if (!w.tidy && sim_happens(SIM_error, get_end_owner(e), e->ops, 0.002)) {
			w.t->n[T_ERRORS]++;
			end_over(e);
		}
		if (w.leaves && is_verbs_worlds_done(e) && is_verbs_worlds_done(o) &&
		    !o->disconnected && !draw_verbs(4))
			end_leave(e);
		else if (w.over ||
			 (is_verbs_worlds_done(e) && is_verbs_worlds_done(o) && draw_verbs(2)))
			end_over(e);
	}
	if (draw_verbs(3) && !e->gone && !e->left)
		fetched = user_look(e);
	return fetched || e->ops != ops || e->posted_recvs != recvs;
}

static void at_the_end(struct end *e)
{
	struct end *o = get_other_end(e);
	unsigned adds = 0;

	window_kept(e);
	check(user_answered(e), "%u requests never completed", e->nsq);
	check(!e->nrq || e->srq, "%u receives never completed", e->nrq);
	check(!e->refused || e->left || o->left || (e->fatal && o->fatal),
	      "a Terminate is no event of the queue pair %s got it",
	      e->fatal ? "from which the peer" : "that");
	if (e->gone)
		return;
	if (e->ops < MSGS || o->ops < MSGS || o->heard < e->ntold) {
		w.t->n[T_BROKEN]++;
		check(!w.tidy, "%u of %u messages arrived", o->heard, e->ntold);
		return;
	}
	for (unsigned i = 0; i < MSGS; i++)
		adds += e->all[i].op == IBV_WR_ATOMIC_FETCH_AND_ADD;
	check(e->flushed || o->word == adds, "%u of %u were added", (unsigned)o->word, adds);
}

static void take_verbs_worlds_down(void)
{
	for (unsigned i = 0; i < 2 * w.npairs && !w.failed; i++) {
		struct end *e = &w.end[i / 2][i % 2];

		at_the_end(e);
		end_free(e);
	}
	if (!w.failed)
		dgrams_take_down();
	poor_left();
	if (!w.failed && !w.poor && draw_verbs(3) == 0) {
		kern.f.reset = 0;
		oob_play();
	}
	if (!w.failed && w.parallel)
		parallel_play();
	if (!w.failed && w.full) {
		kern.f.reset = 0;
		full_play();
	}
	check(!rdma_destroy_id(w.listen), "destroy the listener");
	rdma_destroy_event_channel(w.ch);
}

static bool is_all_verbs_worlds_over(void)
{
	for (unsigned i = 0; i < 2 * w.npairs; i++) {
		const struct end *e = &w.end[i / 2][i % 2];

		if (e->left)
			continue;
		if (!e->dead || !user_answered(e) || (e->nrq && !e->srq) ||
		    (e->srq && !e->last_wqe))
			return false;
	}
	return true;
}

static void play_verbs_world(void)
{
	unsigned idle = 0;

	connect_all();
	dgrams_begin();
	kern.f.reset = w.reset;
	if (w.poor != POOR_EARLY)
		poor_on();
	for (unsigned k = 0;
	     k < TURNS && !w.failed && !(is_all_verbs_worlds_over() && dgrams_over()); k++) {
		bool moved = false;

		if (k == w.settle_at || k == TURNS / 2)
			wait_until_done();
		w.over = k >= TURNS / 2;
		for (unsigned i = 0; i < 2 * w.npairs && !w.failed; i++)
			moved |= turn_verbs_worlds(&w.end[i / 2][i % 2]);
		moved |= !w.failed && dgrams_turn();
		poor_turn();
		events();
		/* What is lost on the path comes again after an RTO, which is longer than any of these. */
		idle = moved ? 0 : idle + 1;
		let_pass(draw_verbs(4 * kern.delay) + (idle > IDLE ? RTO_PART : 0));
	}
	check(w.failed || (is_all_verbs_worlds_over() && dgrams_over()), "it never ends");
	if (!w.failed)
		take_verbs_worlds_down();
}

static double draw_verbs_chance(double p)
{
	return sim_chance(&w.rng, 0.5) ? p : 0;
}

static void begin_verbs_worlds(uint64_t seed, struct sim_tally *t)
{
	uint64_t state;

	w.seed = seed;
	w.t = t;
	w.rng = seed * 0x2545f4914f6cdd1du + 11;
	sim_events.seed = sim_next(&w.rng);
	kern_start(sim_next(&w.rng));
	kern.locks_only = true;
	w.tidy = draw_verbs(2);
	w.npairs = 1 + (unsigned)draw_verbs(PAIRS);
	kern.delay = 1000u << draw_verbs(10);
	kern.jitter = draw_verbs(2) ? kern.delay / 4 : 0;
	kern.window = 2048u << draw_verbs(6);
	kern.f.short_io = draw_verbs_chance(0.3);
	kern.f.again = draw_verbs_chance(0.05);
	w.reset = w.tidy ? 0 : draw_verbs_chance(0.001);
	w.shares = draw_verbs(3) == 0;
	w.sleeps = draw_verbs(2);
	w.windows = draw_verbs(2) ? WINDOWS_1 + (unsigned)draw_verbs(2) : WINDOWS_NONE;
	for (unsigned i = 0; i < 2 * PAIRS; i++) {
		w.end[i / 2][i % 2].pair = i / 2;
		w.end[i / 2][i % 2].id = i % 2;
		w.end[i / 2][i % 2].arms_late = draw_verbs(2);
	}
	w.sctp = draw_verbs(4) == 0;
	dgrams.on = draw_verbs(3) == 0;
	dgrams.armed = draw_verbs(2);
	if (w.sctp || dgrams.on) { /* in UDP, on a path that may lose, double and delay */
		kern.f.lost = draw_verbs_chance(0.01);
		kern.f.doubled = draw_verbs_chance(0.01);
		kern.f.late = draw_verbs_chance(0.05);
	}
	dgrams.ordered = kern.f.late == 0 && !kern.jitter;
	setenv("DDPSESS_TRANSPORT", w.sctp ? "sctp" : "tcp", 1);
	setenv("DDPSESS_WATCH", "off", 1);
	sched_at_random(sim_next(&w.rng));
	poor_begin();
	state = seed * 0x9e3779b97f4a7c15u + 7;
	w.leaves = !w.poor && sim_below(&state, 4) == 0;
	for (unsigned i = 0; i < 2 * PAIRS; i++)
		w.end[i / 2][i % 2].hasty = sim_below(&state, 3) == 0;
	w.parallel = !w.poor && sim_below(&state, 4) == 0;
	w.full = !w.poor && sim_below(&state, 4) == 0;
}

static bool here(uint64_t seed, struct sim_tally *t)
{
	uint64_t start;

	begin_verbs_worlds(seed, t);
	start = kern.now;
	play_verbs_world();
	t->n[T_MS] += (kern.now - start) / 1000000;
	t->n[T_NO_MEMORY] += kern.n.memory;
	t->n[T_NO_DESCRIPTOR] += kern.n.descriptors;
	t->n[T_NO_CALL] += kern.n.calls;
	t->n[T_DATAGRAMS] += kern.n.lost + kern.n.doubled + kern.n.late;
	return !w.failed;
}

/* The shrinker has given it a process already. */
static bool play_verbs_worlds_world(uint64_t seed, struct sim_tally *t)
{
	pid_t child;
	int status;

	if (sim_events.log)
		return here(seed, t);
	child = fork();
	if (!child) {
		alarm(60);
		_exit(!here(seed, t));
	}
	if (child < 0 || waitpid(child, &status, 0) < 0)
		return false;
	if (WIFSIGNALED(status))
		fprintf(stderr, "seed %" PRIu64 ": signal %d\n", seed, WTERMSIG(status));
	return !status;
}

int main(int argc, char **argv)
{
	static const struct sim_kind kind = {
		.names = { "connections",
			   "completions",
			   "receives",
			   "flushed",
			   "refused",
			   "errors made",
			   "ends broken",
			   "simulated ms",
			   "over SCTP",
			   "datagrams lost, doubled or late",
			   "windows bound",
			   "windows invalidated",
			   "bound of type 1",
			   "Writes beside a window",
			   "messages sent as datagrams",
			   "received",
			   "of groups",
			   "failed",
			   "wrong",
			   "too long for their receive",
			   "lost",
			   "poor worlds",
			   "calls of the drop-in failed",
			   "connections given up",
			   "queue pairs that left",
			   "ends of connections with threads beside",
			   "waits for all that is under way",
			   "completion queues lost",
			   "allocations failed",
			   "calls without descriptors",
			   "calls of the system failed" },
		.world = play_verbs_worlds_world,
	};

	return sim_main(&kind, argc, argv);
}
