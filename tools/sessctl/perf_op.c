/* SPDX-License-Identifier: BSD-2-Clause */
#include "sessctl/perf_op.h"

/* To ask the clock takes a fifth of the time of a small operation: so many that are posted together ask it once. */
#define SMALL	  1024u
#define SAME_TIME 8u

/* ping: echoes go into the window too. */
static int post_perf_receive(struct perf *p, uint32_t i)
{
	struct ddps_sge sge = { .addr = p->win.mem,
				.len = p->longest,
				.lkey = ddps_mr_stag(p->win.mr) };

	return ddps_post_recv(p->l.chan.ep, WR_ID(WR_PING, i), &sge, 1);
}

enum status perf_ask(struct perf *p)
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

/* @now, and @more: another one follows immediately. */
static enum status post_perf_operation(struct perf *p, bool more, uint64_t now)
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
	p->since[p->posted++ % PERF_DEPTH_MAX] = now;
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

enum status perf_take(struct perf *p)
{
	struct ddps_wc wc[PERF_BATCH];
	enum status s = receive_again(p);
	int n = 0;

	if (!s)
		s = link_take(&p->l, wc, PERF_BATCH, &n);
	for (int i = 0; !s && i < n; i++)
		s = take_perf_completion(p, &wc[i]);
	return s;
}

enum status perf_mark(struct perf *p)
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

uint64_t perf_next_due(const struct perf *p)
{
	uint64_t groups = (p->posted - p->first) / p->every;

	return p->begin +
	       (uint64_t)((double)groups * p->every * p->size / (double)p->o->rate * 1e9);
}

enum status perf_fill(struct perf *p, bool on, uint64_t now)
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
	for (uint64_t i = 0; !s && i < n; i++) {
		if (i % SAME_TIME == 0 || p->size > SMALL)
			now = clock_ns();
		s = post_perf_operation(p, i + 1 < n, now);
	}
	return s;
}
