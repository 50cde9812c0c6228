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
#include "cli/out_json.h"
#include "xfer/link.h"
#include "report/meet.h"
#include "cli/sig.h"
#include "report/perf_hist.h"
#include "sessctl/perf_plot.h"
#include "cli/text.h"
#include <errno.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>

#define BATCH	 32
#define ALIVE_NS NS_PER_S
#define NAP_NS	 (2 * NS_PER_MS) /* with --rate: shorter waits are spent looking at the clock */

struct perf;

/* All sessions of a run. */
struct team {
	struct perf *p;
	unsigned n;
	struct meet meet;
};

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
	uint64_t spent[BATCH];		/* wr_id of receives that are to be posted again */
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

/* ping: echoes go into the window too. */
static int post_perf_receive(struct perf *p, uint32_t i)
{
	struct ddps_sge sge = { .addr = p->win.mem,
				.len = p->longest,
				.lkey = ddps_mr_stag(p->win.mr) };

	return ddps_post_recv(p->l.chan.ep, WR_ID(WR_PING, i), &sge, 1);
}

static enum status ask_for_perf(struct perf *p)
{
	struct msg m = {
		.type = MSG_PERF, .op = (uint8_t)p->op, .len = p->longest, .depth = p->depth
	};
	enum status s;
	int err;

	if ((p->op == PERF_READ || p->op == PERF_BOTH) && p->l.info.ord == 0)
		return link_fail(&p->l, ST_FAILED,
				 "--ord 1 or more here, and --ird 1 or more at the listener",
				 "negotiated ORD is 0: no RDMA Read is possible");
	err = window_open(&p->win, p->l.pd, p->l.chan.ep, p->longest, DDPS_LOCAL_WRITE);
	if (err)
		return link_call_failed(&p->l, err, "registering memory");
	s = link_send(&p->l, &m);
	if (!s)
		s = link_expect(&p->l, MSG_GO, &p->go);
	if (s)
		return s;
	if (p->go.len != p->longest)
		return link_fail(&p->l, ST_FAILED, NULL,
				 "the peer offered a window of another size");
	for (uint32_t i = 0; !err && p->op == PERF_PING && i < p->depth; i++)
		err = post_perf_receive(p, i);
	return err ? link_call_failed(&p->l, err, "posting a receive") : ST_DONE;
}

/* @more: another one follows immediately. */
static enum status post_perf_operation(struct perf *p, bool more)
{
	static const enum ddps_op ops[][2] = { [PERF_SEND] = { DDPS_OP_SEND, DDPS_OP_SEND },
					       [PERF_WRITE] = { DDPS_OP_WRITE, DDPS_OP_WRITE },
					       [PERF_READ] = { DDPS_OP_READ, DDPS_OP_READ },
					       [PERF_PING] = { DDPS_OP_SEND, DDPS_OP_SEND },
					       [PERF_BOTH] = { DDPS_OP_WRITE, DDPS_OP_READ } };
	struct ddps_sge sge = { .addr = p->win.mem,
				.len = p->size,
				.lkey = ddps_mr_stag(p->win.mr) };
	struct ddps_send_wr wr = { .wr_id = WR_ID(WR_PING, 0),
				   .op = ops[p->op][p->posted % 2],
				   .sge = &sge,
				   .nsge = 1,
				   .stag = p->go.stag,
				   .to = p->go.to };
	int err;

	if (wr.op == DDPS_OP_SEND)
		wr.flags |= DDPS_WR_SILENT;
	if (more)
		wr.flags |= DDPS_WR_MORE;
	p->since[p->posted++ % PERF_DEPTH_MAX] = clock_ns();
	err = ddps_post_send(p->l.chan.ep, &wr);
	return err ? link_call_failed(&p->l, err, "posting an operation") : ST_DONE;
}

/* All operations before number @upto are done. */
static enum status note_perf_done(struct perf *p, uint64_t upto)
{
	uint64_t now = clock_ns();

	if (upto <= p->done || upto > p->posted)
		return link_fail(&p->l, ST_FAILED, NULL,
				 "the peer speaks of operations that there were not");
	for (; p->done < upto; p->done++)
		hist_add(&p->hist, now - p->since[p->done % PERF_DEPTH_MAX], 1);
	__atomic_store_n(&p->shown, p->done, __ATOMIC_RELAXED);
	return ST_DONE;
}

/* A message: an acknowledgement, an echo, or the answer that was asked for. */
static enum status take_perf_message(struct perf *p, const struct ddps_wc *wc)
{
	const uint8_t *data = chan_data(&p->l.chan, WR_INDEX(wc->wr_id));
	uint64_t count = 0;
	bool answer = p->asked && wc->len == PING_MARK_LEN;

	for (unsigned i = 0; p->op == PERF_SEND && i < PING_MARK_LEN; i++)
		count = count << 8 | data[i];
	if (p->op == PERF_PING && wc->len == p->size)
		return note_perf_done(p, p->done + 1);
	if (p->op == PERF_SEND && wc->len == PING_MARK_LEN)
		return note_perf_done(p, count);
	if (!answer || p->op == PERF_PING)
		return link_fail(&p->l, ST_FAILED, NULL,
				 "the peer sent a message that nobody asked for");
	p->asked = false;
	return ST_DONE;
}

static enum status take_perf_completion(struct perf *p, const struct ddps_wc *wc)
{
	if (wc->op == DDPS_OP_RECV)
		p->spent[p->nspent++] = wc->wr_id;
	if (WR_KIND(wc->wr_id) == WR_RECV)
		return take_perf_message(p, wc);
	if (wc->op == DDPS_OP_RECV && wc->len != p->size)
		return link_fail(&p->l, ST_FAILED, NULL, "an echo of another length");
	return note_perf_done(p, p->done + 1);
}

/* Not before what follows has been posted: there are more receives than --depth. */
static enum status receive_again(struct perf *p)
{
	int err = 0;

	while (!err && p->nspent) {
		uint64_t id = p->spent[--p->nspent];

		err = WR_KIND(id) == WR_RECV ? chan_recv(&p->l.chan, WR_INDEX(id))
					     : post_perf_receive(p, WR_INDEX(id));
	}
	return err ? link_call_failed(&p->l, err, "posting a receive") : ST_DONE;
}

static enum status take_perf_completions(struct perf *p)
{
	struct ddps_wc wc[BATCH];
	enum status s = receive_again(p);
	int n = 0;

	if (!s)
		s = link_take(&p->l, wc, BATCH, &n);
	for (int i = 0; !s && i < n; i++)
		s = take_perf_completion(p, &wc[i]);
	return s;
}

/* write, read: have a message answered, to be seen or as a proof. */
static enum status ask_mark(struct perf *p)
{
	static const uint8_t mark[PING_MARK_LEN];
	int err = chan_send_raw(&p->l.chan, mark, sizeof mark);

	p->alive = clock_ns();
	p->asked = true;
	return err ? link_call_failed(&p->l, err, "posting a message") : ST_DONE;
}

/* --rate: how many may have been posted in this size by @now, in whole groups: those are answered. */
static uint64_t count_allowed_posts(const struct perf *p, uint64_t now)
{
	double groups =
		(double)p->o->rate * (double)(now - p->begin) / 1e9 / ((double)p->size * p->every);

	return p->o->rate ? p->every * (1 + (uint64_t)groups) : UINT64_MAX;
}

/* When one more group may be, ns. */
static uint64_t next_due(const struct perf *p)
{
	uint64_t groups = (p->posted - p->first) / p->every;

	return p->begin +
	       (uint64_t)((double)groups * p->every * p->size / (double)p->o->rate * 1e9);
}

/* Post until @depth are under way; @on: as many as go, else only to finish a group. */
static enum status fill_perf_depth(struct perf *p, bool on, uint64_t now)
{
	uint64_t room = p->depth - (p->posted - p->done), n = room;
	enum status s = ST_DONE;

	if (!on) /* at least one, and whole groups, so that all are acknowledged */
		n = p->hist.count + p->posted - p->done
			    ? (p->every - p->posted % p->every) % p->every
			    : p->every;
	else if (n > count_allowed_posts(p, now) - (p->posted - p->first))
		n = count_allowed_posts(p, now) - (p->posted - p->first);
	if (n > room)
		n = room;
	for (; !s && n; n--)
		s = post_perf_operation(p, n > 1);
	return s;
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
	uint64_t due = next_due(p), now = clock_ns();

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
		s = fill_perf_depth(p, now < until, now);
		if (!s && by_rdma && !p->asked && now - p->alive >= ALIVE_NS)
			s = ask_mark(p);
		if (!s && p->posted != p->done)
			s = take_perf_completions(p);
		else if (!s && now < until)
			s = rest_until_rate(p, until);
		else
			break;
	}
	while (!s && p->asked)
		s = take_perf_completions(p);
	if (!s && (p->op == PERF_WRITE || p->op == PERF_BOTH))
		s = ask_mark(p);
	while (!s && p->asked)
		s = take_perf_completions(p);
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
	return s ? s : ask_for_perf(p);
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
