/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef DDPS_SD_WIRE_H
#define DDPS_SD_WIRE_H
/* SCTP user messages of the DDP adaptation (RFC 5043 5.2, RFC 6581 7): octets <-> struct. */
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define DDPS_SD_PPID_SEGMENT 16u
#define DDPS_SD_PPID_CONTROL 17u

#define DDPS_SD_SSN_LEN	    2	/* in front of a DDP segment */
#define DDPS_SD_CONTROL_LEN 4	/* DDP-SSN and function code */
#define DDPS_SD_PD_MAX	    512 /* the enhanced word included */
#define DDPS_SD_WORD_LEN    4
#define DDPS_SD_MULPDU_MIN  516

enum ddps_sd_code {
	DDPS_SD_INITIATE = 1,
	DDPS_SD_ACCEPT = 2,
	DDPS_SD_REJECT = 3,
	DDPS_SD_TERMINATE = 4,
	DDPS_SD_ENH_INITIATE = 5,
	DDPS_SD_ENH_ACCEPT = 6,
	DDPS_SD_ENH_REJECT = 7
};

/* One user message.  @data is what follows the fixed part and points into the message. */
struct ddps_sd_msg {
	uint16_t ssn;
	bool segment;	     /* PPID 16; the rest of the fields but @data, @len are 0 */
	bool bad;	     /* the DDP-SSN is fine, but no legal control message */
	uint16_t code;	     /* as received, also if @bad */
	const uint8_t *data; /* DDP segment, or private data */
	size_t len;
};

/**
 * ddps_sd_decode - split one user message
 * @m:		filled on success
 * @ppid:	host order
 *
 * A control message whose function code or private data is not legal still takes its place
 * in the order, since a session is judged in DDP-SSN order [5043-6.1-d2]: it is @bad.
 *
 * Return: 0, or
 *   DDPS_E_TRUNCATED	no DDP-SSN, or no function code
 *   DDPS_E_PROTOCOL	neither of the two PPIDs
 */
int ddps_sd_decode(struct ddps_sd_msg *m, uint32_t ppid, const uint8_t *buf, size_t len);

/* The fixed part of a control message; private data follows as it is. */
void ddps_sd_encode_control(uint8_t out[DDPS_SD_CONTROL_LEN], uint16_t ssn, uint16_t code);

/* Initiate, Accept or Reject with this length of private data is legal. */
bool ddps_sd_pd_ok(uint16_t code, size_t len);

bool ddps_sd_is_initiate(const struct ddps_sd_msg *m);

/* The PPID of a peer that forgot to swap the octets: 0x10000000, 0x11000000. */
bool ddps_sd_ppid_swapped(uint32_t ppid);

const char *ddps_sd_code_name(uint16_t code);

/**
 * ddps_sd_mulpdu - the largest DDP segment (RFC 5043 9)
 * @max_user_data:	largest user message that SCTP need not fragment
 * @limit:		0, or what the ULP allows at most
 */
size_t ddps_sd_mulpdu(size_t max_user_data, size_t limit);
/* The largest segment that @user_data octets of a packet have room for, next to a control chunk; 0: none. */
size_t ddps_sd_segment_in(size_t user_data);

#endif
