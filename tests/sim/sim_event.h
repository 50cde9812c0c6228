/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef SIM_EVENT_H
#define SIM_EVENT_H
/*
 * What happens in a world beyond the least that can.  Each such thing has a name: what it is, whose it
 * is, and its number among those.  Whether it happens follows of the seed and the name alone.  So
 * one can be left out, and the others stay.
 */
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Faults of the kernel come first, in the order of KERN_FAULTS; what that has more has its name further
 * down, so that what happens in the world of a seed stays the same. */
/* clang-format off */
#define SIM_EVENTS(X) \
	X(short_io) X(again) X(reset) X(refused) X(lost) X(doubled) X(late) X(corrupt) \
	X(descriptors) X(memory) X(calls) X(icmp) X(lie) X(session) X(op) X(large) \
	X(wrong) X(mischief) X(trouble) X(slow) X(narrow) X(shallow) X(jumbo) X(nogso) \
	X(spins) X(lazy) X(waits) X(markers) X(rfc7306) X(p2p) X(shared) X(silent) \
	X(row) X(error) X(window) X(kernel) X(encap) X(nobufs) X(poor) X(moves) X(secured) X(inside) \
	X(renews) X(shm) X(near) X(flush) X(stale) X(shown)
/* clang-format on */

enum sim_event {
#define DDPS_X(name) SIM_##name,
	SIM_EVENTS(DDPS_X)
#undef DDPS_X
		SIM_KINDS
};

/* Whose: three numbers below 256 in one. */
#define SIM_OWNER(a, b, c) ((uint32_t)(a) << 16 | (uint32_t)(b) << 8 | (uint32_t)(c))

/* A name in one number. */
static inline uint64_t sim_name(enum sim_event kind, uint32_t owner, uint32_t n)
{
	return (uint64_t)kind << 56 | (uint64_t)owner << 32 | n;
}

struct sim_events {
	uint64_t seed;
	uint64_t last; /* of what happened last: the state of what it is like */
	/* Nothing but these may happen; sorted. */
	bool limited;
	const uint64_t *only;
	size_t nonly;
	/* What happened. */
	uint64_t *log;
	size_t nlog, max_log;
	/* The check that failed, 0: none. */
	unsigned failed;
};
extern struct sim_events sim_events;

bool sim_happens(enum sim_event kind, uint32_t owner, uint32_t n, double p);
/* What the last that happened is like: 0 .. m-1. */
uint64_t sim_like(uint64_t m);

/* "lost.1.0.0.17", "op.3.1.0.2"; the buffer holds 64. */
void sim_name_text(uint64_t name, char *text);
/* A list of them, separated by commas, sorted into memory of the caller's; how many, or -1. */
int sim_names_parse(const char *text, uint64_t *names, size_t max);

struct sim_kind;
/* As few of the events of a world that fails as there have to be, so that it fails by the same check;
 * how many (the first @max are in @names), SIZE_MAX: it does not fail. */
size_t sim_smallest(const struct sim_kind *kind, uint64_t seed, uint64_t *names, size_t max);
/* ... printed; the status of the process. */
int sim_shrink(const struct sim_kind *kind, const char *program, uint64_t seed);

#endif
