/* SPDX-License-Identifier: BSD-2-Clause */
/* Numbers that follow of a seed, and what happens by them. */
#include "sim/sim_event.h"
#include "sim/sim_main.h"
#include "support/clock.h"
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct sim_events sim_events;

uint64_t sim_next(uint64_t *state)
{
	uint64_t z = *state += 0x9e3779b97f4a7c15u;

	z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9u;
	z = (z ^ z >> 27) * 0x94d049bb133111ebu;
	return z ^ z >> 31;
}

uint64_t sim_below(uint64_t *state, uint64_t m)
{
	return m ? sim_next(state) % m : 0;
}

bool sim_chance(uint64_t *state, double p)
{
	return (double)(sim_next(state) >> 11) / 9007199254740992.0 < p;
}

/* ---- events ---- */

bool sim_happens(enum sim_event kind, uint32_t owner, uint32_t n, double p)
{
	struct sim_events *e = &sim_events;
	uint64_t name = sim_name(kind, owner, n), state = name ^ e->seed;

	sim_next(&state);
	state ^= name * 0x2545f4914f6cdd1du;
	if (!sim_chance(&state, p))
		return false;
	if (e->limited && !bsearch(&name, e->only, e->nonly, sizeof name, compare_u64))
		return false;
	if (e->nlog < e->max_log)
		e->log[e->nlog++] = name;
	e->last = state;
	return true;
}

uint64_t sim_like(uint64_t m)
{
	return sim_below(&sim_events.last, m);
}

/* ---- their names ---- */

static const char *const kinds[] = {
#define DDPS_X(name) #name,
	SIM_EVENTS(DDPS_X)
#undef DDPS_X
};

void sim_name_text(uint64_t name, char *text)
{
	snprintf(text, 64, "%s.%u.%u.%u.%" PRIu32, kinds[name >> 56], (unsigned)(name >> 48 & 255),
		 (unsigned)(name >> 40 & 255), (unsigned)(name >> 32 & 255), (uint32_t)name);
}

static bool one_name(const char *text, uint64_t *name)
{
	unsigned a, b, c, n, kind = 0;
	char what[16];

	if (sscanf(text, "%15[a-z_0-9].%u.%u.%u.%u", what, &a, &b, &c, &n) != 5 ||
	    (a | b | c) > 255)
		return false;
	while (kind < SIM_KINDS && strcmp(kinds[kind], what))
		kind++;
	*name = sim_name(kind, SIM_OWNER(a, b, c), n);
	return kind < SIM_KINDS;
}

int sim_names_parse(const char *text, uint64_t *names, size_t max)
{
	size_t n = 0;

	for (; text && *text; text = strchr(text, ','), text += text != NULL)
		if (n == max || !one_name(text, &names[n++]))
			return -1;
	qsort(names, n, sizeof *names, compare_u64);
	return (int)n;
}
