/* SPDX-License-Identifier: BSD-2-Clause */
#include "common/system/lock.h"

__thread struct ddps_held ddps_held = { .before = PTHREAD_CANCEL_DISABLE };

#ifdef DDPS_ASSERTS
bool ddps_held_has(const struct ddps_mutex *l)
{
	for (unsigned i = 0; i < ddps_held.n; i++)
		if (ddps_held.lock[i] == l)
			return true;
	return false;
}

void ddps_held_order(const struct ddps_mutex *l)
{
	for (unsigned i = 0; i < ddps_held.n; i++)
		ddps_assert(ddps_held.lock[i]->order < l->order);
}

void ddps_held_add(const struct ddps_mutex *l)
{
	ddps_assert(ddps_held.n < DDPS_HELD_MAX);
	ddps_held.lock[ddps_held.n++] = l;
}

void ddps_held_drop(const struct ddps_mutex *l)
{
	unsigned i = 0;

	while (i < ddps_held.n && ddps_held.lock[i] != l)
		i++;
	ddps_assert(i < ddps_held.n);
	ddps_held.n--;
	for (; i < ddps_held.n; i++)
		ddps_held.lock[i] = ddps_held.lock[i + 1];
}
#endif
