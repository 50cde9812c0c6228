/* SPDX-License-Identifier: BSD-2-Clause */
/* Numbers that follow of a seed. */
#include "sim/sim_main.h"

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
