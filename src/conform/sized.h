/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef DDPS_CONFORM_SIZED_H
#define DDPS_CONFORM_SIZED_H
#include <stddef.h>

/* @to: this release's struct, from one that may be a later release's.  docs/abi.md */
int conform_take_sized(void *to, size_t size, const void *from);

#endif
