/* SPDX-License-Identifier: BSD-2-Clause */
#include "conform/run.h"
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#define LARGEST 4096u /* no struct of ours is larger: a struct_size that was never set */

void conform_put_sized(void *to, size_t size, const void *defaults, size_t known)
{
	memset(to, 0, size);
	memcpy(to, defaults, size < known ? size : known);
	if (size >= sizeof size)
		memcpy(to, &size, sizeof size); /* struct_size, the first member */
}

int conform_take_sized(void *to, size_t size, const void *from)
{
	size_t given;

	memcpy(&given, from, sizeof given);
	if (given < size || given > LARGEST)
		return DDPS_E_INVAL;
	for (size_t i = size; i < given; i++)
		if (((const uint8_t *)from)[i])
			return DDPS_E_UNSUPPORTED;
	memcpy(to, from, size);
	return 0;
}

int conform_caller_fault(struct conform_caller *c, int err, const char *fmt, ...)
{
	va_list ap;

	va_start(ap, fmt);
	if (c->why_len)
		vsnprintf(c->why, c->why_len, fmt, ap);
	va_end(ap);
	return err;
}

int conform_caller_take(struct conform_caller *c, const struct ddps_conform_calls *calls,
			const char *profile)
{
	int err = calls ? conform_take_sized(&c->calls, sizeof c->calls, calls) : 0;
	char bad[300];

	if (err)
		return conform_caller_fault(c, err, "calls of another release than this library's");
	if (profile && cf_profile_load(&c->known, profile, bad, sizeof bad))
		return conform_caller_fault(c, DDPS_E_ADDRESS, "%s", bad);
	return 0;
}

void conform_caller_tell(struct conform_caller *c, const struct ddps_conform_result *r)
{
	struct ddps_conform_result out = *r;
	uint32_t *count[] = { [DDPS_CONFORM_PASS] = &c->sum.pass,
			      [DDPS_CONFORM_FAIL] = &c->sum.fail,
			      [DDPS_CONFORM_KNOWN] = &c->sum.known,
			      [DDPS_CONFORM_SKIP] = &c->sum.skip,
			      [DDPS_CONFORM_UNDECIDED] = &c->sum.undecided };

	const struct cf_profile_row *row = cf_profile_find(&c->known, r->c.name);

	out.number = ++c->number;
	out.known = row ? row->does : NULL;
	if (out.verdict != DDPS_CONFORM_FAIL)
		out.grade = DDPS_CONFORM_STRICT;
	else if (row && row->grade != DDPS_CONFORM_FAILS)
		out.grade = row->grade;
	if (out.verdict == DDPS_CONFORM_FAIL && out.known)
		out.verdict = DDPS_CONFORM_KNOWN;
	++*count[out.verdict];
	if (out.verdict != DDPS_CONFORM_SKIP && out.verdict != DDPS_CONFORM_UNDECIDED)
		++c->sum.grade[out.grade];
	if (c->calls.result)
		c->calls.result(c->calls.user, &out);
}
