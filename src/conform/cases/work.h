/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef DDPS_CONFORM_WORK_H
#define DDPS_CONFORM_WORK_H
/* What cases do that have the target's application work. */
#include "conform/peer/peer.h"

extern const char cf_text[]; /* 32 octets to send */

/* A session, and a first message of the peer: a responder must not send before it. */
void cf_begin(struct cf *cf, const struct cf_opts *o);
/* The next completion is this. */
void cf_expect_wc(struct cf *cf, enum ddps_op op, enum ddps_wc_status status);

/* A Read Request of the target; the response goes where its sink fields say. */
struct cf_read_req {
	uint32_t stag, size;
	uint64_t to;
};

/* The next segment is this one. */
struct cf_read_req cf_take_read(struct cf *cf, uint32_t msn, uint32_t stag, uint64_t to,
				uint32_t size);
/* Its response: the first octets of cf_text. */
void cf_respond(struct cf *cf, const struct cf_read_req *q);
/* A whole message of the target's, segment by segment: nothing between, L on the last alone. */
void cf_take_message(struct cf *cf, uint8_t op, uint32_t word, uint32_t msn, uint64_t to,
		     const struct cf_mr *m, uint32_t size);

#endif
