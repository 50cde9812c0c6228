/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef DDPS_MPA_FPDU_H
#define DDPS_MPA_FPDU_H
/*
 * Sizes of FPDUs (RFC 5044 4.1 to 4.3).  "Phase" is a stream offset modulo the marker interval,
 * counted from the first octet of full operation in that direction; FPDUs, markers and CRC
 * fields all begin at phases that are multiples of 4.
 */
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define DDPS_MPA_LEN_FIELD    2u   /* ULPDU_Length */
#define DDPS_MPA_MARKER_EVERY 512u /* octets from marker to marker, one of them included */
#define DDPS_MPA_MARKER_LEN   4u
#define DDPS_MPA_ULPDU_MIN    1u
#define DDPS_MPA_ULPDU_MAX    64768u /* what a sender may send [5044-3-4] */
#define DDPS_MPA_MULPDU_MIN   128u
#define DDPS_MPA_FPDUPTR_MASK 0xFFFCu /* the low bits are taken as zero [5044-4.2-5] */

static inline size_t ddps_mpa_pad(size_t ulpdu)
{
	return -(ulpdu + DDPS_MPA_LEN_FIELD) & 3;
}

/* Octets of an FPDU with its markers, the leading one included, that begins at @phase. */
static inline size_t ddps_mpa_fpdu_size(size_t ulpdu, bool markers, unsigned phase)
{
	const size_t others = DDPS_MPA_MARKER_EVERY - DDPS_MPA_MARKER_LEN;
	size_t plain = DDPS_MPA_LEN_FIELD + ulpdu + ddps_mpa_pad(ulpdu) + 4;
	size_t room = phase ? DDPS_MPA_MARKER_EVERY - phase : 0;

	if (!markers || (phase && plain <= room))
		return plain;
	return plain + DDPS_MPA_MARKER_LEN * ((plain - room + others - 1) / others);
}

#endif
