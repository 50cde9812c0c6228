/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef MEM_FIXTURE_H
#define MEM_FIXTURE_H
#include <stdbool.h>

/* Allocations that find no memory, and those that are left; each test is a process. */

/* The @n-th allocation from now on fails, once; 0: none. */
void mem_fail(unsigned n);
/* Whether one has failed since. */
bool mem_failed(void);
/* Pieces of memory that were asked for and not freed: for differences. */
long mem_live(void);

#endif
