/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef SESSCTL_IPOIB_SELF_IN_H
#define SESSCTL_IPOIB_SELF_IN_H
#include "ipoib/conform/self.h"
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { SELF_OURS, SELF_ILLUMOS, SELF_LETTER, SELF_LIES };

void self_mad_out(int who, uint8_t m[256]);
void self_mad_in(int who, uint8_t m[256]);
void self_frame_out(int who, uint8_t *f, size_t len);

#endif
