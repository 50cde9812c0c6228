/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef DDPS_CASES_NEG_H
#define DDPS_CASES_NEG_H
/* RFC 6581 on either wire: the word of a frame or chunk, and set-ups done step by step. */
#include "conform/peer/peer.h"

#define ULP 0x3fffu /* IRD or ORD left to the applications */

struct word {
	bool a, b, c, d;
	uint16_t ird, ord;
};

/* Of cf->mpa or cf->ctrl, which must be enhanced. */
struct word cf_word(struct cf *cf);
/* The private data behind it. */
const uint8_t *cf_word_pd(struct cf *cf, size_t *len);

/* To a responder: an enhanced request.  What comes back: cf_neg_hear(). */
void cf_neg_ask(struct cf *cf, uint16_t ird_w, uint16_t ord_w, const void *pd, size_t pd_len);
void cf_neg_ask_plain(struct cf *cf, const void *pd, size_t pd_len);
/* The target's answer or, if it is the initiator, its request, into cf->mpa or cf->ctrl. */
void cf_neg_hear(struct cf *cf);
bool cf_neg_rejected(struct cf *cf);

/* To an initiator whose request was heard: yes or no, enhanced or not as it asked. */
void cf_neg_answer(struct cf *cf, bool reject, uint16_t ird_w, uint16_t ord_w, const void *pd,
		   size_t pd_len);
/* All of it: a request, and a yes that it may not like. */
void cf_neg_accept(struct cf *cf, uint16_t ird_w, uint16_t ord_w);

/* The request's endpoint: ddps_accept() with cf->app.param, whatever it returns. */
int cf_neg_app_accept(struct cf *cf);
/* A listener of the target's with other attributes than the default. */
void cf_neg_listen(struct cf *cf, const struct ddps_listen_param *p);
/* The application hears that nothing came of it, because of this Terminate. */
void cf_neg_failed(struct cf *cf, uint16_t code);
/* With an ORD of 2 three Reads are posted: the third waits for an answer to the first. */
void cf_neg_two_reads(struct cf *cf);

#endif
