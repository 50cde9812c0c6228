/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef SCTP_SENT_FIXTURE_H
#define SCTP_SENT_FIXTURE_H
/* A sender with two paths, and a plain model of it that looks at every slot. */
#include "sctp/send/tx_in.h"
#include <criterion/criterion.h>

#define MS	 1000000ull
#define SENT_MAX 65536u

/* A sender, and what is true of each TSN by the plain reading of all SACKs. */
struct world {
	struct ddps_sent s;
	struct ddps_sent_path p[2];
	uint64_t now, seed;
	uint32_t first, given; /* TSN given back last */
	uint8_t *sacked;       /* by TSN - first */
	uint8_t *got;	       /* of the receiver */
	uint32_t cum;	       /* of the receiver */
};

uint32_t sent_draw(struct world *w, uint32_t n);
void sent_begin(struct world *w, uint64_t seed, uint32_t first, uint32_t a_rwnd);
/* All is given back, in order. */
void sent_end(struct world *w);
/* What the sender keeps is what its slots say. */
void sent_check(struct world *w);

#endif
