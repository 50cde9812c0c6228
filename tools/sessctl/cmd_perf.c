/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * sessctl perf: as many operations as go in a given time, --depth of them under way, for one
 * size after the other in one session.  What one is done by:
 *
 * send:  the listener's word that it has received it (a message for each PERF_ACK_EVERY)
 * write: its completion, that is, it has left; at the end of a size an answered message proves
 *	  that all were placed, inside the time that counts
 * read:  its completion
 * ping:  the echo
 * both:  Writes and Reads in turn, so that as many octets go each way
 *
 * With --parallel each session has a context and a thread of its own.  They begin and end each size
 * together; the first one, on the main thread, has the sum of all.
 */
#include "sessctl/cmd.h"
#include "cli/out/out_json.h"
#include "report/perf_hist.h"
#include "cli/sig.h"
#include "sessctl/perf_op.h"
#include "cli/text.h"
#include <errno.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>

#define ALIVE_NS NS_PER_S
#define NAP_NS	 (2 * NS_PER_MS) /* with --rate: shorter waits are spent looking at the clock */

/* All sessions of a run. */
struct team {
	struct perf *p;
	unsigned n;
	struct meet meet;
};

static uint64_t done_by_all(const struct team *t)
{
	uint64_t n = 0;

	for (unsigned i = 0; i < t->n; i++)
		n += __atomic_load_n(&t->p[i].shown, __ATOMIC_RELAXED);
	return n;
}

/* ---- one of them ---- */

static double cpu_seconds(void)
{
	struct rusage u;

	getrusage(RUSAGE_SELF, &u);
	return (double)(u.ru_utime.tv_sec + u.ru_stime.tv_sec) +
	       (double)(u.ru_utime.tv_usec + u.ru_stime.tv_usec) / 1e6;
}

/* --interval: a line, if one is due. */
static void print_perf_interval(struct perf *p, uint64_t now)
{
	uint64_t every = p->o->every_ms * NS_PER_MS, done;

	if (!every || p != p->team->p || now - p->told_ns < every)
		return;
	done = done_by_all(p->team);
	out_perf_interval(&p->l.out,
			  &(struct out_perf){ .op = perf_op_name(p->op),
					      .depth = p->depth,
					      .sessions = p->team->n,
					      .size = p->size,
					      .ops = done - p->told,
					      .from = (double)(p->told_ns - p->begin) / 1e9,
					      .seconds = (double)(now - p->told_ns) / 1e9 },
			  !p->headed);
	p->headed = true;
	p->told = done;
	p->told_ns = now;
}

/* --rate, and nothing is under way: until more may be. */
static enum status rest_until_rate(struct perf *p, uint64_t until)
{
	uint64_t due = perf_next_due(p), now = clock_ns();

	if (due > until)
		due = until;
	if (due < now + NAP_NS)
		return ST_DONE;
	return link_pause(&p->l, (uint32_t)((due - now) / NS_PER_MS) - 1);
}

static enum status measure_perf(struct perf *p, uint64_t until)
{
	bool by_rdma = p->op == PERF_WRITE || p->op == PERF_READ || p->op == PERF_BOTH;
	enum status s = ST_DONE;

	while (!s) {
		uint64_t now = clock_ns();

		print_perf_interval(p, now);
		s = perf_fill(p, now < until, now);
		if (!s && by_rdma && !p->asked && now - p->alive >= ALIVE_NS)
			s = perf_mark(p);
		if (!s && p->posted != p->done)
			s = perf_take(p);
		else if (!s && now < until)
			s = rest_until_rate(p, until);
		else
			break;
	}
	while (!s && p->asked)
		s = perf_take(p);
	if (!s && (p->op == PERF_WRITE || p->op == PERF_BOTH))
		s = perf_mark(p);
	while (!s && p->asked)
		s = perf_take(p);
	return s;
}

/* What all of them came to, in the first one's row. */
static void sum_up(struct perf *p)
{
	struct out_perf *r = &p->row[p->at];
	uint64_t ops = 0;

	for (unsigned k = 0; k < p->team->n; k++)
		ops += p->team->p[k].done - p->team->p[k].first;
	p->counts = false;
	if (!ops) /* interrupted before the first one was done */
		return;
	for (unsigned k = 1; k < p->team->n; k++)
		hist_merge(&p->hist, &p->team->p[k].hist);
	*r = (struct out_perf){
		.transport = out_transport_name(&p->l.out, p->l.info.transport),
		.op = perf_op_name(p->op),
		.size = p->size,
		.depth = p->depth,
		.sessions = p->team->n,
		.ops = ops,
		.seconds = (double)(clock_ns() - p->begin) / 1e9,
		.min = (double)p->hist.min / 1e3,
		.p50 = (double)hist_percentile(&p->hist, 50) / 1e3,
		.p99 = (double)hist_percentile(&p->hist, 99) / 1e3,
		.p99_9 = (double)hist_percentile(&p->hist, 99.9) / 1e3,
		.p99_99 = (double)hist_percentile(&p->hist, 99.99) / 1e3,
		.max = (double)p->hist.max / 1e3,
		.cpu = cpu_seconds() - p->cpu,
	};
	out_perf(&p->l.out, r, !p->headed);
	p->headed = true;
}

/* Return: ST_DONE, also if another one has failed (@whole is false then). */
static enum status one_size(struct perf *p, size_t i, bool *whole)
{
	enum status s;

	p->at = i;
	p->cpu = cpu_seconds();
	p->size = (uint32_t)p->o->sizes.v[i];
	hist_reset(&p->hist);
	p->first = p->posted;
	*whole = meet_all(&p->team->meet);
	if (!*whole)
		return ST_DONE;
	p->begin = p->alive = p->told_ns = clock_ns();
	p->told = done_by_all(p->team);
	p->counts = true;
	s = measure_perf(p, p->begin + p->o->run_ms * NS_PER_MS);
	if (s)
		return s;
	*whole = meet_all(&p->team->meet);
	if (*whole && p == p->team->p)
		sum_up(p);
	if (*whole)
		*whole = meet_all(&p->team->meet); /* before the others count anew */
	return ST_DONE;
}

static void *run_perf_thread(void *arg)
{
	struct perf *p = arg;
	bool whole = true;

	for (size_t i = 0; !p->status && whole && i < p->o->sizes.n; i++)
		p->status = one_size(p, i, &whole);
	if (p->status)
		meet_leave(&p->team->meet);
	return NULL;
}

static enum status connect_perf_session(struct perf *p, struct team *t, const struct opts *o)
{
	enum status s;

	p->o = o;
	p->op = (enum perf_op)o->perf_op;
	p->team = t;
	p->depth = o->depth ? o->depth : p->op == PERF_PING ? 1 : 16;
	p->every = p->op == PERF_SEND ? PERF_ACK_EVERY(p->depth) : 1;
	for (size_t i = 0; i < o->sizes.n; i++)
		if (o->sizes.v[i] > p->longest)
			p->longest = (uint32_t)o->sizes.v[i];
	link_init(&p->l, o, "perf");
	s = link_open(&p->l, o->arg[0],
		      p->op == PERF_PING && p->longest > MSG_MAX ? p->longest : MSG_MAX);
	return s ? s : perf_ask(p);
}

/* The first one's is this thread. */
static enum status run_perf_team(struct team *t)
{
	enum status s = ST_DONE;
	unsigned i;

	for (i = 1; i < t->n; i++)
		if (pthread_create(&t->p[i].thread, NULL, run_perf_thread, &t->p[i])) {
			t->p[i].status = link_fail(&t->p[i].l, ST_FAILED, "a smaller --parallel",
						   "no thread for session %u", i + 1);
			break;
		}
	for (unsigned k = i; k < t->n; k++)
		meet_leave(&t->meet);
	run_perf_thread(&t->p[0]);
	for (unsigned k = 1; k < i; k++)
		pthread_join(t->p[k].thread, NULL);
	if (t->p[0].counts && sig_pending())
		sum_up(&t->p[0]);
	for (unsigned k = 0; !s && k < t->n; k++)
		s = t->p[k].status;
	return s;
}

static enum status plot_fail(struct link *l, const char *file)
{
	const int err = errno;

	return err ? link_fail(l, ST_FAILED, text_file_advice(err), "--plot %s: %s", file,
			       strerror(err))
		   : link_fail(l, ST_FAILED,
			       "see what gnuplot printed above; is there room on the disk?",
			       "--plot %s: gnuplot could not draw it", file);
}

static enum status measure_all(struct team *t, const struct opts *o)
{
	unsigned opened = 0;
	enum status s = ST_DONE;

	for (; !s && opened < t->n; opened++)
		s = connect_perf_session(&t->p[opened], t, o);
	if (!s)
		s = run_perf_team(t);
	if (!s && o->plot && plot_draw(o->plot, t->p[0].row, o->sizes.n))
		s = plot_fail(&t->p[0].l, o->plot);
	for (unsigned i = 0; i < opened; i++) {
		s = link_close(&t->p[i].l, s);
		window_close(&t->p[i].win);
		s = link_free(&t->p[i].l, s);
	}
	return s;
}

int cmd_perf(const struct opts *o)
{
	struct team t = { .n = o->parallel, .meet = MEET_INIT(o->parallel) };
	const char *problem = o->plot ? plot_problem(o->plot) : NULL;
	struct link l;
	enum status s;

	t.p = problem ? NULL : calloc(t.n, sizeof *t.p);
	if (t.p) {
		s = measure_all(&t, o);
	} else {
		link_init(&l, o, "perf");
		s = problem ? link_fail(&l, ST_USAGE, NULL, "--plot %s: %s", o->plot, problem)
			    : link_fail(&l, ST_FAILED, NULL, "no memory");
		s = link_free(&l, s);
	}
	free(t.p);
	return (int)s;
}
