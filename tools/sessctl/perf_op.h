/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef SESSCTL_PERF_OP_H
#define SESSCTL_PERF_OP_H
/* One session of sessctl perf: what is posted, and when it is done. */
#include "cli/out/out.h"
#include "report/perf_hist.h"
#include "xfer/link.h"
#include <pthread.h>
#include <stddef.h>

#define PERF_BATCH 32

struct team;

struct perf {
	struct link l;
	const struct opts *o;
	enum perf_op op;
	uint32_t depth, every, longest;
	struct msg go;
	struct window win;
	uint32_t size;			/* the present one */
	uint64_t posted, done;		/* since the session began */
	uint64_t since[PERF_DEPTH_MAX]; /* when operation i % PERF_DEPTH_MAX was posted, ns */
	uint64_t alive;			/* write, read: last message, ns */
	uint64_t spent[PERF_BATCH];	/* wr_id of receives that are to be posted again */
	unsigned nspent;
	bool asked; /* its answer is due */
	struct hist hist;
	struct out_perf row[OPTVAL_SIZES_MAX];
	struct team *team;
	uint64_t begin, first; /* of the present size: ns; operations posted before */
	uint64_t shown;	       /* done, as the first session's interval lines count it */
	uint64_t told, told_ns;
	bool headed; /* the heading of all lines is out */
	size_t at;   /* which size */
	double cpu;  /* used before it, s */
	bool counts; /* it has begun and is not in the output yet */
	enum status status;
	pthread_t thread;
};

/* Agree with the listener on what is measured, and where.  p->longest, op and depth are set. */
enum status perf_ask(struct perf *p);
/* Post until @depth are under way; @on: as many as go, else only to finish a group. */
enum status perf_fill(struct perf *p, bool on, uint64_t now);
/* What is done, and what the listener says; it waits for some. */
enum status perf_take(struct perf *p);
/* write, read: have a message answered, to be seen or as a proof.  p->asked until it is. */
enum status perf_mark(struct perf *p);
/* --rate: when one more group may be posted, ns. */
uint64_t perf_next_due(const struct perf *p);

/* Bandwidth and latency by size, drawn by gnuplot. */

/* Can @file be drawn at all?  NULL, or what is missing in a constant sentence. */
const char *plot_problem(const char *file);

/*
 * A file that is there already is replaced when the drawing is whole; a link is not followed.
 * Return: 0, or -1 with errno; 0 in it: gnuplot failed, and may have said why on standard error.
 */
int plot_draw(const char *file, const struct out_perf *row, size_t n);

#endif
