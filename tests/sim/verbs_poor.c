/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Worlds in which memory, descriptors and calls of the system fail.  A call of the drop-in may fail
 * there.  Then it says why, and leaves nothing behind.  And what any world has to come to while nothing
 * fails: all that was asked for is done, or the connection has ended and both sides were informed.
 */
#include "sim/verbs_dgram.h"
#include <arpa/inet.h>
#include <errno.h>
#ifdef __SANITIZE_ADDRESS__
#include <sanitizer/lsan_interface.h>
#endif

#define SEC	1000000000ull
#define SETTLE	(300 * SEC) /* of simulated time: whoever has to try again does so within a minute */
#define LATEST	80u	    /* turn at which the program first waits */
#define KEPT	20u
#define LINGERS (120 * SEC) /* descriptors of connections that have ended */
/* Whoever has had datagrams keeps a thread's descriptors: two that it waits at, one that wakes it, a socket. */
#define DGRAMS_KEEP 4u

static const int reasons[] = { ENOMEM,	EMFILE,	     ENFILE,	  EAGAIN,
			       ENOBUFS, ENOSPC,	     EADDRINUSE,  EADDRNOTAVAIL,
			       EACCES,	ENOPROTOOPT, ENETUNREACH, ECONNREFUSED };

static struct {
	struct kern_faults f;
	unsigned pauses; /* nothing of that happens while there is any */
	uint64_t live, rng;
	unsigned open;
} poor;

/* ---- what fails ---- */

static double share(uint64_t *state, double p)
{
	return sim_chance(state, 0.6) ? p / (double)(1u << sim_below(state, 5)) : 0;
}

/* By numbers of its own, so that other worlds stay what they are. */
void poor_begin(void)
{
	uint64_t state = w.seed * 0x9e3779b97f4a7c15u + 3;

	poor.pauses = 1;
	poor.rng = state + 2;
	w.settle_at = 1 + (unsigned)sim_below(&state, LATEST);
	if (w.tidy || sim_below(&state, 2))
		return;
	w.poor = sim_below(&state, 2) ? POOR_EARLY : POOR_LATER;
	kern.any_way = true;
	w.t->n[T_POOR]++;
	poor.f.memory = share(&state, 0.3);
	poor.f.descriptors = share(&state, 0.2);
	poor.f.calls = share(&state, 0.05);
	if (w.poor == POOR_EARLY)
		poor_on();
}

void poor_on(void)
{
	if (--poor.pauses)
		return;
	kern.f.memory = poor.f.memory;
	kern.f.descriptors = poor.f.descriptors;
	kern.f.calls = poor.f.calls;
}

void poor_pause(void)
{
	poor.pauses++;
	kern.f.memory = kern.f.descriptors = kern.f.calls = 0;
}

void poor_stop(void)
{
	poor.f = (struct kern_faults){ 0 };
	kern.f.memory = kern.f.descriptors = kern.f.calls = 0;
}

bool poor_fails(const char *what)
{
	bool known = false;

	for (size_t i = 0; i < sizeof reasons / sizeof *reasons; i++)
		known |= errno == reasons[i];
	check(w.poor, "%s: %s", what, strerror(errno));
	check(known, "%s fails without a reason: %s", what, strerror(errno));
	w.t->n[T_CALLS_FAILED]++;
	return false;
}

/* ---- more of what may fail ---- */

/* A queue pair whose queues the call makes, too.  The program tries again with what it has said before. */
static void try_a_pair(struct rdma_cm_id *id)
{
	struct ibv_qp_init_attr attr = { .qp_type = IBV_QPT_RC, .cap = { 2, 2, 1, 1, 0 } };
	unsigned tries = 1 + (unsigned)sim_below(&poor.rng, 3);

	while (tries--)
		if (tried(!rdma_create_qp(id, NULL, &attr))) {
			rdma_destroy_qp(id);
			return;
		}
}

void poor_turn(void)
{
	struct sockaddr_in own = { .sin_family = AF_INET, .sin_addr.s_addr = htonl(0x0a000001) };
	struct rdma_cm_id *id = NULL;

	if (!w.poor || w.failed || sim_below(&poor.rng, 4) ||
	    !tried(!rdma_create_id(w.ch, &id, NULL, RDMA_PS_TCP)))
		return;
	if (tried(!rdma_bind_addr(id, (struct sockaddr *)&own)))
		try_a_pair(id);
	check(!rdma_destroy_id(id), "destroy an identifier");
}

/* ---- what is left ---- */

/* With the listener, and whatever the process keeps. */
void poor_note(void)
{
	poor.live = kern.live;
	poor.open = kern_open();
}

static bool none_left(void *arg)
{
	(void)arg;
	return kern_open() == poor.open;
}

/* The library keeps buffers; for SCTP it keeps many.  Whoever loses some each time has more. */
void poor_left(void)
{
	poor_stop();
#ifdef __SANITIZE_ADDRESS__
	check(!__lsan_do_recoverable_leak_check(), "memory is lost");
#endif
	if (w.failed)
		return;
	poor.open += dgrams.on ? DGRAMS_KEEP : 0;
	kern_block(none_left, NULL, kern.now + LINGERS);
	check(none_left(NULL), "%u descriptors, there were %u", kern_open(), poor.open);
	check(w.sctp || dgrams.on || kern.live <= poor.live + KEPT, "%u pieces of memory are left",
	      (unsigned)(kern.live - poor.live));
}

/* ---- what is done ---- */

static bool is_verbs_poor_done(struct end *e)
{
	struct end *o = get_other_end(e);

	if (e->left)
		return true;
	if (!user_answered(e))
		return false;
	if (e->dead || e->disconnected || o->dead || o->disconnected)
		return e->dead;
	return o->heard == e->ntold;
}

static bool is_all_verbs_poor_done(void)
{
	for (unsigned i = 0; i < 2 * w.npairs; i++)
		if (!is_verbs_poor_done(&w.end[i / 2][i % 2]))
			return false;
	return true;
}

static void wait(struct end *e)
{
	if (!e->dead && !e->disconnected)
		user_post_recvs(e);
	if (!e->gone && !e->left)
		user_look(e);
}

void wait_until_done(void)
{
	const struct kern_faults f = kern.f;
	const uint64_t until = kern.now + SETTLE;

	kern.f = (struct kern_faults){ 0 };
	for (uint64_t step = kern.delay; !w.failed; step = step < SEC ? 2 * step : SEC) {
		for (unsigned i = 0; i < 2 * w.npairs && !w.failed; i++)
			wait(&w.end[i / 2][i % 2]);
		events();
		if (is_all_verbs_poor_done() || kern.now >= until)
			break;
		let_pass(step);
	}
	for (unsigned i = 0; i < 2 * w.npairs && !w.failed; i++) {
		struct end *e = &w.end[i / 2][i % 2];

		check(is_verbs_poor_done(e),
		      "what was asked for is never done, and it does not end: pair %u end %u, %u "
		      "requests, %u of %u messages%s%s",
		      e->pair, e->id, e->nsq, get_other_end(e)->heard, e->ntold,
		      e->dead ? ", dead" : "",
		      e->disconnected || get_other_end(e)->disconnected ? ", disconnected" : "");
	}
	w.t->n[T_SETTLED]++;
	dgrams.news = kern.now; /* nobody has looked for any meanwhile */
	kern.f = f;
}
