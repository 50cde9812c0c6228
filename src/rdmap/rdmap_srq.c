/* SPDX-License-Identifier: BSD-2-Clause */
/* The shared receive queue, and a stream's share of it. */
#include "rdmap/srq.h"
#include "rdmap/rdmap_priv.h"
#include <stdlib.h>
#include <string.h>

int ddps_srq_init(struct ddps_srq *srq, struct ddps_pd *pd, uint32_t depth, uint32_t max_sge)
{
	srq->e = calloc(depth, sizeof *srq->e);
	srq->sge = calloc((size_t)depth * max_sge, sizeof *srq->sge);
	if (!srq->e || !srq->sge) {
		free(srq->e);
		free(srq->sge);
		return DDPS_E_NOMEM;
	}
	srq->pd = pd;
	srq->depth = depth;
	srq->max_sge = max_sge;
	TAILQ_INIT(&srq->waiting);
	pd->users++;
	return 0;
}

void ddps_srq_fini(struct ddps_srq *srq)
{
	srq->pd->users--;
	free(srq->e);
	free(srq->sge);
}

/* ---- one buffer, from here to there ---- */

static void give_rqe(struct ddps_rdmap *r, const struct ddps_rqe *e, const struct ddps_sge *sge)
{
	*ddps_rq_at(r, 0) = *e;
	if (e->nsge)
		memcpy(ddps_rq_sge(r, 0), sge, e->nsge * sizeof *sge);
	r->rq.tail++;
	r->srq_out++;
	r->srq->bound++;
}

static void put_recv(struct ddps_srq *srq, uint32_t at, const struct ddps_rqe *e,
		     const struct ddps_sge *sge)
{
	srq->e[at] = *e;
	if (e->nsge)
		memcpy(srq->sge + (size_t)at * srq->max_sge, sge, e->nsge * sizeof *sge);
	srq->count++;
}

/* Bind to the stream that has waited longest; false: none waits. */
static bool serve_waiting(struct ddps_srq *srq, const struct ddps_rqe *e,
			  const struct ddps_sge *sge)
{
	struct ddps_rdmap *r = TAILQ_FIRST(&srq->waiting);

	if (!r)
		return false;
	give_rqe(r, e, sge);
	ddps_rdmap_unstall(r); /* it leaves the line */
	return true;
}

static void check_low(struct ddps_srq *srq)
{
	if (!srq->limit || srq->count >= srq->limit)
		return;
	srq->limit = 0;
	srq->low(srq->user);
}

void ddps_srq_drop(struct ddps_srq *srq)
{
	srq->head = srq->head + 1 < srq->depth ? srq->head + 1 : 0;
	srq->count--;
	check_low(srq);
}

/* ---- the queue ---- */

int ddps_srq_post(struct ddps_srq *srq, uint64_t wr_id, const struct ddps_sge *sge, uint32_t nsge)
{
	struct ddps_rqe e = {
		.wr_id = wr_id,
		.nsge = nsge,
	};
	int err;

	if (nsge > srq->max_sge || (nsge && !sge))
		return DDPS_E_INVAL;
	if (srq->count + srq->bound == srq->depth)
		return DDPS_E_LIMIT;
	/* For whichever stream: a region bound to one of them will not do. */
	err = ddps_sge_check(srq->pd, 0, sge, nsge, DDPS_LOCAL_WRITE, &e.len, &e.losses);
	if (err)
		return err;
	if (!serve_waiting(srq, &e, sge))
		put_recv(srq, (srq->head + srq->count) % srq->depth, &e, sge);
	return 0;
}

/* Where one is posted nobody waits: serve_waiting comes first. */
int ddps_srq_pop(struct ddps_srq *srq, uint64_t *wr_id, struct ddps_sge *sge, uint32_t *nsge)
{
	const uint32_t at = srq->head;

	if (!srq->count)
		return DDPS_E_AGAIN;
	*wr_id = srq->e[at].wr_id;
	*nsge = srq->e[at].nsge;
	if (*nsge)
		memcpy(sge, srq->sge + (size_t)at * srq->max_sge, *nsge * sizeof *sge);
	ddps_srq_drop(srq);
	return 0;
}

void ddps_srq_watch(struct ddps_srq *srq, uint32_t limit)
{
	srq->limit = limit;
	check_low(srq);
}

/* ---- a stream ---- */

enum ddps_srq_answer ddps_srq_take(struct ddps_rdmap *r)
{
	struct ddps_srq *srq = r->srq;
	uint32_t at = srq->head;

	/* A stream that is about to end may have one more: it waits for nothing. */
	if (r->srq_out >= r->srq_share && !r->drained)
		return DDPS_SRQ_SHARE;
	if (!srq->count)
		return DDPS_SRQ_EMPTY;
	give_rqe(r, &srq->e[at], srq->sge + (size_t)at * srq->max_sge);
	ddps_srq_drop(srq);
	return DDPS_SRQ_TAKEN;
}

void ddps_srq_wait(struct ddps_rdmap *r)
{
	if (r->srq_waits)
		return;
	r->srq_waits = true;
	TAILQ_INSERT_TAIL(&r->srq->waiting, r, srq_link);
}

void ddps_srq_leave(struct ddps_rdmap *r)
{
	if (!r->srq_waits)
		return;
	r->srq_waits = false;
	TAILQ_REMOVE(&r->srq->waiting, r, srq_link);
}

void ddps_srq_detach(struct ddps_rdmap *r)
{
	struct ddps_srq *srq = r->srq;

	ddps_srq_leave(r);
	srq->users--;
	if (r->rq.head == r->rq.tail)
		return;
	/* Never told to the application: it is the next one's. */
	srq->bound--;
	if (serve_waiting(srq, ddps_rq_at(r, 0), ddps_rq_sge(r, 0)))
		return;
	srq->head = (srq->head + srq->depth - 1) % srq->depth;
	put_recv(srq, srq->head, ddps_rq_at(r, 0), ddps_rq_sge(r, 0));
}

void ddps_rdmap_recv_fetched(struct ddps_rdmap *r)
{
	if (!r->srq)
		return;
	r->srq_out--;
	if (!r->srq_waits)
		ddps_rdmap_unstall(r);
}
