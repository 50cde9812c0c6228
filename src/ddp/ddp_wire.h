/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef DDPS_DDP_WIRE_H
#define DDPS_DDP_WIRE_H
/* DDP segment headers (RFC 5041 4): octets <-> struct.  No I/O, no heap. */
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define DDPS_DDP_TAGGED_LEN   14
#define DDPS_DDP_UNTAGGED_LEN 18
#define DDPS_DDP_CTRL_T	      0x80
#define DDPS_DDP_CTRL_L	      0x40
#define DDPS_DDP_CTRL_DV1     0x01

struct ddps_ddp_hdr {
	bool tagged, last;
	uint8_t ulp;	      /* RsvdULP, first octet: RDMAP's control octet */
	uint32_t ulp_word;    /* untagged: the other four */
	uint32_t stag;	      /* tagged */
	uint64_t to;	      /* tagged */
	uint32_t qn, msn, mo; /* untagged */
};

/**
 * ddps_ddp_decode - read the header of one segment
 * @h:		filled if the header is whole, also with DDPS_E_REVISION; else untouched
 * @buf, @len:	the segment, or its beginning
 *
 * Reserved bits are not looked at [5041-4.1-10].
 *
 * Return: the header's length, or DDPS_E_REVISION (DV is not 1; h is filled only if
 * @len covers the header its T bit announces), DDPS_E_TRUNCATED.
 */
int ddps_ddp_decode(struct ddps_ddp_hdr *h, const uint8_t *buf, size_t len);

/* Length of the header that begins with octet @ctrl. */
static inline size_t ddps_ddp_hdr_len(uint8_t ctrl)
{
	return ctrl & DDPS_DDP_CTRL_T ? DDPS_DDP_TAGGED_LEN : DDPS_DDP_UNTAGGED_LEN;
}

/* Whether the segment that begins with octet @ctrl is the last of its message. */
static inline bool ddps_ddp_is_last(uint8_t ctrl)
{
	return ctrl & DDPS_DDP_CTRL_L;
}

/* Write a header; @buf has room for 18 octets.  Return: its length. */
size_t ddps_ddp_encode(const struct ddps_ddp_hdr *h, uint8_t *buf);

#endif
