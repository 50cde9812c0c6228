/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef DDPS_MPA_WIRE_H
#define DDPS_MPA_WIRE_H
/* MPA Request and Reply frames (RFC 5044 7.1.1, RFC 6581 6): octets <-> struct. */
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define DDPS_MPA_KEY_LEN   16u
#define DDPS_MPA_HDR_LEN   20u
#define DDPS_MPA_PD_MAX	   512u
#define DDPS_MPA_FRAME_MAX (DDPS_MPA_HDR_LEN + DDPS_MPA_PD_MAX)
#define DDPS_MPA_WORD_LEN  4u /* the enhanced word */
#define DDPS_MPA_REV_PLAIN 1u
#define DDPS_MPA_REV_ENH   2u

enum ddps_mpa_kind { DDPS_MPA_REQUEST, DDPS_MPA_REPLY };

struct ddps_mpa_frame {
	bool markers;  /* M: the frame's sender wants to receive them */
	bool crc;      /* C */
	bool reject;   /* R, Reply only */
	bool enhanced; /* S, where Rev gives the bit that meaning */
	uint8_t rev;
	const uint8_t *pd; /* borrowed: the enhanced word included */
	size_t pd_len;
};

/* Writes @f to @buf of DDPS_MPA_FRAME_MAX octets.  Returns its length; 0: no such frame. */
size_t ddps_mpa_frame_encode(uint8_t *buf, enum ddps_mpa_kind kind, const struct ddps_mpa_frame *f);

/*
 * Look at the first @len octets of what should become a frame of @kind, whenever there are
 * more of them.  What lies beyond the frame is not looked at.
 *
 * Return: 1: @f is filled, *@need is the frame's length; 0: *@need octets are needed so far;
 * DDPS_E_KEY, DDPS_E_REVISION or DDPS_E_PROTOCOL, and *@why is half a sentence.
 */
int ddps_mpa_frame_decode(struct ddps_mpa_frame *f, enum ddps_mpa_kind kind, const uint8_t *buf,
			  size_t len, size_t *need, const char **why);

/*
 * Does @reply fit the request that was sent (RFC 6581 2.1)?  A rejection always does.
 * Return: 0, or DDPS_E_PROTOCOL and *@why.
 */
int ddps_mpa_reply_fits(const struct ddps_mpa_frame *reply, bool sent_enhanced, const char **why);

#endif
