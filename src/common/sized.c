/* SPDX-License-Identifier: BSD-2-Clause */
/* Structs that know their size: smaller, equal and larger ones than this release's. */
#include "common/sized.h"
#include <ddpsess/err.h>
#include <stdint.h>
#include <string.h>

static size_t read_struct_size(const void *p)
{
	size_t size;

	memcpy(&size, p, sizeof size);
	return size;
}

static size_t get_smaller_size(size_t a, size_t b)
{
	return a < b ? a : b;
}

void ddps_sized_init(void *to, size_t given, const void *defaults, const struct ddps_sized *s)
{
	size_t both = get_smaller_size(given, s->now);

	memcpy(to, defaults, both);
	memset((uint8_t *)to + both, 0, given - both);
	if (given >= sizeof given)
		memcpy(to, &given, sizeof given);
}

int ddps_sized_check(const void *to, const struct ddps_sized *s)
{
	size_t given = read_struct_size(to);

	if (given > s->now)
		return given > DDPS_SIZED_MAX ? DDPS_E_INVAL : 0;
	for (unsigned i = 0; i < s->nknown; i++)
		if (given == s->known[i])
			return 0;
	return DDPS_E_INVAL;
}

int ddps_sized_take(void *to, const void *from, const struct ddps_sized *s)
{
	size_t given = read_struct_size(from);
	int err = ddps_sized_check(from, s);

	if (err)
		return err;
	for (size_t i = s->now; i < given; i++)
		if (((const uint8_t *)from)[i])
			return DDPS_E_UNSUPPORTED;
	memcpy(to, from, get_smaller_size(given, s->now));
	memcpy(to, &s->now, sizeof s->now);
	return 0;
}

void ddps_sized_give(void *to, const void *from, const struct ddps_sized *s)
{
	size_t given = read_struct_size(to);
	size_t both = get_smaller_size(given, s->now), head = sizeof given;

	memcpy((uint8_t *)to + head, (const uint8_t *)from + head, both - head);
	memset((uint8_t *)to + both, 0, given - both);
}
