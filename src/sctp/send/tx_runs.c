/* SPDX-License-Identifier: BSD-2-Clause */
/* What is acknowledged by gap blocks: the runs of before and the blocks of a SACK, side by side. */
#include "sctp/send/tx_in.h"
#include <stdlib.h>
#include <string.h>

/* A SACK with so many may have been full (a packet of 552 octets takes 125): then nothing is said
 * of the TSNs above its last block. */
#define BLOCKS_MANY 100

/* For TSNs in @a and not in @b, as offsets from cum: @a and @b in order, disjoint. */
struct span {
	uint32_t start, end;
};

static struct span block(const struct ddps_sent_sack *k, size_t i)
{
	return (struct span){ k->gaps[i].start, k->gaps[i].end };
}

static struct span get_run(const struct ddps_sent *s, size_t i)
{
	return (struct span){ s->runs[i].start - s->cum, s->runs[i].end - s->cum };
}

void ddps_sent_drop_runs(struct ddps_sent *s)
{
	uint32_t n = 0;

	while (n < s->nruns && !ddps_tsn_before(s->cum, s->runs[n].end))
		n++;
	s->steps += n;
	if (n)
		memmove(s->runs, s->runs + n, (s->nruns -= n) * sizeof *s->runs);
	if (s->nruns && !ddps_tsn_before(s->cum, s->runs[0].start))
		s->runs[0].start = s->cum + 1;
}

static void unsack(struct ddps_sent *s, uint32_t tsn, uint64_t now)
{
	struct ddps_sent_slot *c = ddps_sent_slot(s, tsn);
	struct ddps_sent_path *p = s->path[c->path];

	s->steps++;
	s->reneged++;
	p->nsacked--;
	if (c->flags & SLOT_PKT)
		p->sacked_packets--;
	ddps_sent_requeue(s, tsn, now);
}

static void find_new(struct ddps_sent *s, const struct ddps_sent_sack *k, uint64_t now,
		     struct ddps_sent_news *news)
{
	size_t r = 0;

	for (size_t i = 0; i < k->ngaps; i++) {
		struct span b = block(k, i);

		s->steps++;
		for (uint32_t at = b.start; at <= b.end;) {
			uint32_t stop = b.end;

			for (; r < s->nruns && get_run(s, r).end < at; r++)
				s->steps++;
			if (r < s->nruns && get_run(s, r).start <= at) {
				at = get_run(s, r).end + 1;
				continue;
			}
			if (r < s->nruns && get_run(s, r).start <= stop)
				stop = get_run(s, r).start - 1;
			for (; at <= stop; at++)
				ddps_sent_by_gap(s, s->cum + at, now, news);
		}
	}
}

/* Below the highest end of this SACK, what it does not name any more is taken back. */
static void find_reneged(struct ddps_sent *s, const struct ddps_sent_sack *k, uint64_t now)
{
	uint32_t top = k->gaps[k->ngaps - 1].end;
	size_t i = 0;

	for (size_t r = 0; r < s->nruns; r++) {
		struct span o = get_run(s, r);

		s->steps++;
		for (uint32_t at = o.start; at <= o.end && at <= top;) {
			uint32_t stop = o.end < top ? o.end : top;

			for (; block(k, i).end < at; i++) /* the last ends at @top */
				s->steps++;
			if (block(k, i).start <= at) {
				at = block(k, i).end + 1;
				continue;
			}
			if (block(k, i).start <= stop)
				stop = block(k, i).start - 1;
			for (; at <= stop; at++)
				unsack(s, s->cum + at, now);
		}
	}
}

static void add_run(struct ddps_sent_run *to, uint32_t *n, uint32_t start, uint32_t end)
{
	if (*n && to[*n - 1].end + 1 == start)
		to[*n - 1].end = end;
	else
		to[(*n)++] = (struct ddps_sent_run){ start, end };
}

/* The blocks of this SACK, and what was known above them. */
static void take_runs(struct ddps_sent *s, const struct ddps_sent_sack *k)
{
	uint32_t n = 0, top = s->cum + k->gaps[k->ngaps - 1].end;
	struct ddps_sent_run *to = s->spare;

	for (size_t i = 0; i < k->ngaps; i++)
		add_run(to, &n, s->cum + k->gaps[i].start, s->cum + k->gaps[i].end);
	for (uint32_t r = 0; r < s->nruns; r++) {
		const struct ddps_sent_run *o = &s->runs[r];

		s->steps++;
		if (ddps_tsn_before(top, o->end))
			add_run(to, &n, ddps_tsn_before(top, o->start) ? o->start : top + 1,
				o->end);
	}
	s->spare = s->runs;
	s->runs = to;
	s->nruns = n;
}

static bool room_for_runs(struct ddps_sent *s, size_t ngaps)
{
	size_t need = s->nruns + ngaps;
	uint32_t size = s->runs_size ? s->runs_size : 16;
	struct ddps_sent_run *a, *b;

	if (need <= s->runs_size)
		return true;
	while (size < need)
		size *= 2;
	a = malloc(size * sizeof *a);
	b = malloc(size * sizeof *b);
	if (!a || !b) {
		free(a);
		free(b);
		return false;
	}
	if (s->nruns)
		memcpy(a, s->runs, s->nruns * sizeof *a);
	free(s->runs);
	free(s->spare);
	s->runs = a;
	s->spare = b;
	s->runs_size = size;
	return true;
}

void ddps_sent_by_blocks(struct ddps_sent *s, const struct ddps_sent_sack *k, uint64_t now,
			 struct ddps_sent_news *news)
{
	s->cut_short = k->ngaps >= BLOCKS_MANY;
	if (!k->ngaps)
		return;
	s->told = s->cum + k->gaps[k->ngaps - 1].end;
	if (!room_for_runs(s, k->ngaps)) /* no memory: as if they had been lost */
		return;
	find_new(s, k, now, news);
	/* a SACK without anything new may be an older one with the same cumulative ack */
	if (!news->acked && !news->cum_advanced)
		return;
	find_reneged(s, k, now);
	take_runs(s, k);
}

void ddps_sent_contradiction(struct ddps_sent *s, uint64_t now)
{
	if (!s->nruns || s->runs[0].start != s->cum + 1)
		return;
	for (uint32_t t = s->cum + 1; !ddps_tsn_before(s->runs[0].end, t); t++)
		unsack(s, t, now);
	memmove(s->runs, s->runs + 1, --s->nruns * sizeof *s->runs);
}
