/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef REPORT_DECODE_H
#define REPORT_DECODE_H
/*
 * What went over the wire in a case, in words.  Octets of a target may be anything: each message is read
 * no further than it goes, and all text is ASCII.
 */
#include <ddpsess/conform.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

/* What stands out in what the target sent. */
struct decode_found {
	bool came;	  /* octets of the target's at all */
	bool echo;	  /* it sends back the octets that it got */
	bool stranger;	  /* the first octets are of another protocol */
	bool tls;	  /* of TLS */
	bool wrong_setup; /* its set-up message has a revision, a length or a key that is not to be */
	bool reserved;	  /* its set-up message has bits that are not to be set */
	bool part_setup;  /* its set-up message is not whole at the end */
	bool not_fpdu;	  /* in a session, what no FPDU begins with */
	bool part_fpdu;	  /* an FPDU is not whole at the end */
	bool rejects;	  /* its answer is "no" */
	bool crc_wrong;	  /* a segment of its own */
	bool crc_refused; /* it ends a session for a wrong CRC, and none was sent */
	bool spoilt;	  /* a CRC was wrong on purpose */
};

/* One line for each message, with its octets below; of more than @max pieces the last ones. */
void decode_talk(FILE *f, const struct ddps_conform_result *r, size_t max, const char *indent,
		 struct decode_found *found);

/* ---- single messages; each writes one phrase ---- */

void decode_segment(FILE *f, const uint8_t *b, size_t len);
void decode_sctp_message(FILE *f, const struct ddps_conform_item *i);
void decode_sctp_packet(FILE *f, const uint8_t *b, size_t len);
void decode_ib(FILE *f, const uint8_t *b, size_t len);
/* The two halves behind an enhanced set-up message: "IRD 16, ORD 16". */
void decode_word(FILE *f, const uint8_t *b);
/* Private data: how much there is. */
void decode_private(FILE *f, size_t len);

static inline uint32_t decode_be(const uint8_t *b, unsigned n)
{
	uint32_t v = 0;

	while (n--)
		v = v << 8 | *b++;
	return v;
}

#endif
