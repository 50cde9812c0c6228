/* SPDX-License-Identifier: BSD-2-Clause */
#include "common/system/assert.h"

#ifdef DDPS_ASSERTS
#include <stdio.h>

_Noreturn void ddps_assert_failed(const char *what, const char *file, int line)
{
	fprintf(stderr, "%s:%d: broken: %s\n", file, line, what);
	__builtin_trap(); /* sanitizers show the stack */
}
#endif
