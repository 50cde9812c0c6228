/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef DDPS_SYSTEM_ASSERT_H
#define DDPS_SYSTEM_ASSERT_H
/*
 * What the code takes for granted of itself: never of a peer, a file or a caller.  Checked in builds for
 * tests (DDPS_ASSERTS: see Makefile), which stop where it is not so; else it costs nothing.
 */
#include <stdbool.h>

#ifdef DDPS_ASSERTS
_Noreturn void ddps_assert_failed(const char *what, const char *file, int line)
	__attribute__((visibility("hidden")));
#define ddps_assert(cond) ((cond) ? (void)0 : ddps_assert_failed(#cond, __FILE__, __LINE__))
#else
#define ddps_assert(cond) ((void)sizeof((cond) ? 1 : 0))
#endif

#endif
