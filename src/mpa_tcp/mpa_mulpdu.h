/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef DDPS_MPA_MULPDU_H
#define DDPS_MPA_MULPDU_H
#include <stdbool.h>
#include <stddef.h>

/*
 * The largest ULPDU that fits one TCP segment of @emss octets whatever the marker phase
 * (RFC 5044 4.5).  @markers: this side sends them.  @cap: the user's limit, 0 for none.
 * Always within 128..64768.
 */
size_t ddps_mpa_mulpdu(size_t emss, bool markers, size_t cap);

#endif
