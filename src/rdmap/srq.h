/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef DDPS_RDMAP_SRQ_H
#define DDPS_RDMAP_SRQ_H
/*
 * A receive queue shared by streams of one protection domain.  A stream binds the oldest buffer
 * at the first segment of a message (RFC 5041 5.3) and keeps it until Delivery or its own end.
 * Streams that find none queue up, and each buffer posted goes to the first of them.
 *
 * Not locked (context's lock).
 */
#include "ddp/stag.h"
#include <sys/queue.h>

struct ddps_rdmap;
struct ddps_rqe;

TAILQ_HEAD(ddps_srq_waiting, ddps_rdmap);

struct ddps_srq {
	struct ddps_pd *pd;
	uint32_t depth, max_sge;
	uint32_t head, count; /* ring of what is posted and not bound */
	uint32_t bound;	      /* by streams, message not delivered: depth includes these */
	uint32_t limit;	      /* tell when count falls below; 0: do not */
	unsigned users;
	struct ddps_rqe *e;
	struct ddps_sge *sge; /* max_sge per entry */
	struct ddps_srq_waiting waiting;
	void (*low)(void *user); /* count fell below limit, which is 0 now */
	void *user;
};

/* 0 or DDPS_E_NOMEM.  @srq is zeroed but for low and user. */
int ddps_srq_init(struct ddps_srq *srq, struct ddps_pd *pd, uint32_t depth, uint32_t max_sge);
void ddps_srq_fini(struct ddps_srq *srq); /* no users any more */

/* As ddps_post_recv. */
int ddps_srq_post(struct ddps_srq *srq, uint64_t wr_id, const struct ddps_sge *sge, uint32_t nsge);
/* The oldest, for a message that no stream brings.  0 or DDPS_E_AGAIN. */
int ddps_srq_pop(struct ddps_srq *srq, uint64_t *wr_id, struct ddps_sge *sge, uint32_t *nsge);
/* Call low() once when, or if already, fewer than @limit are posted. */
void ddps_srq_watch(struct ddps_srq *srq, uint32_t limit);

#endif
