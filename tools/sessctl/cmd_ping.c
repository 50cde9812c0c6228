/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * sessctl ping: round trips.
 *
 * send:  a Send of the size, echoed by a Send
 * write: an RDMA Write of the size into the listener's window and an 8-octet Send; the
 *	  listener answers with the first octets of the window, so the answer proves that
 *	  the Write was placed before the message was delivered
 * read:  an RDMA Read of the size from the listener's window, no work of the listener's
 *	  program; a message a second, answered, keeps the session from looking idle
 */
#include "sessctl/cmd.h"
#include "xfer/link.h"
#include "sessctl/stats.h"
#include <string.h>

#define MARK_LEN PING_MARK_LEN
#define ALIVE_NS NS_PER_S

struct ping {
	struct link l;
	const struct opts *o;
	uint32_t size;
	struct msg go;
	struct window win; /* what is sent, or where Reads go */
	struct stats stats;
	uint64_t alive; /* read: last message, ns */
	double us;	/* the last round trip */
};

static void put_mark(uint8_t *at, uint64_t seq)
{
	for (unsigned i = 0; i < MARK_LEN; i++)
		at[i] = (uint8_t)(seq >> (8 * (MARK_LEN - 1 - i)));
}

static enum status ask_for_ping(struct ping *p)
{
	struct msg m = { .type = MSG_PING,
			 .op = (uint8_t)p->o->op,
			 .len = p->size,
			 .pause_ms = p->o->interval_ms };
	enum status s;
	int err;

	if (p->o->op == PING_READ && p->l.info.ord == 0)
		return link_fail(&p->l, ST_FAILED,
				 "--ord 1 or more here, and --ird 1 or more at the listener",
				 "negotiated ORD is 0: no RDMA Read is possible");
	s = link_send(&p->l, &m);
	if (!s)
		s = link_expect(&p->l, MSG_GO, &p->go);
	if (s)
		return s;
	if (p->o->op != PING_SEND && p->go.len != p->size)
		return link_fail(&p->l, ST_FAILED, NULL,
				 "the peer offered a window of another size");
	err = window_open(&p->win, p->l.pd, p->l.chan.ep, p->size, DDPS_LOCAL_WRITE);
	if (err)
		return link_call_failed(&p->l, err, "registering memory");
	for (uint32_t i = 0; p->o->op != PING_READ && i < p->size; i++)
		p->win.mem[i] = PING_PATTERN(i);
	return ST_DONE;
}

/* Post the operation itself. */
static enum status post_ping_operation(struct ping *p)
{
	static const enum ddps_op op[] = { DDPS_OP_SEND, DDPS_OP_WRITE, DDPS_OP_READ };
	struct ddps_sge sge = { .addr = p->win.mem,
				.len = p->size,
				.lkey = p->size ? ddps_mr_stag(p->win.mr) : 0 };
	struct ddps_send_wr wr = { .wr_id = WR_ID(WR_PING, 0),
				   .op = op[p->o->op],
				   .sge = &sge,
				   .nsge = p->size ? 1 : 0,
				   .stag = p->go.stag,
				   .to = p->go.to };
	int err = ddps_post_send(p->l.chan.ep, &wr);

	return err ? link_call_failed(&p->l, err, "posting a ping") : ST_DONE;
}

/* Wait for the operation to complete and, if one is due, for the answer in buffer @i. */
static enum status await_ping(struct ping *p, bool op, bool answer, uint32_t *i, uint32_t *len)
{
	while (op || answer) {
		struct ddps_wc wc;
		enum status s = link_next(&p->l, &wc);

		if (s)
			return s;
		if (WR_KIND(wc.wr_id) == WR_PING) {
			op = false;
		} else if (answer) {
			answer = false;
			*i = WR_INDEX(wc.wr_id);
			*len = wc.len;
		} else {
			return link_fail(&p->l, ST_FAILED, NULL,
					 "the peer sent a message that nobody asked for");
		}
	}
	return ST_DONE;
}

/* Give a receive buffer back. */
static enum status repost_ping_receive(struct ping *p, uint32_t i)
{
	int err = chan_recv(&p->l.chan, i);

	return err ? link_call_failed(&p->l, err, "posting a receive") : ST_DONE;
}

static enum status check_answer(struct ping *p, uint32_t i, uint32_t len, const void *want,
				uint32_t want_len)
{
	if (len != want_len || (len && memcmp(chan_data(&p->l.chan, i), want, len) != 0))
		return link_fail(&p->l, ST_FAILED, NULL, "the answer is not what was sent");
	return repost_ping_receive(p, i);
}

static enum status run_send_ping(struct ping *p, uint64_t seq)
{
	uint64_t begin;
	uint32_t i = 0, len = 0;
	enum status s;

	if (p->size >= MARK_LEN)
		put_mark(p->win.mem, seq);
	begin = clock_ns();
	s = post_ping_operation(p);
	if (!s)
		s = await_ping(p, true, true, &i, &len);
	p->us = (double)(clock_ns() - begin) / 1000;
	return s ? s : check_answer(p, i, len, p->win.mem, p->size);
}

static enum status ping_write(struct ping *p, uint64_t seq)
{
	uint8_t mark[MARK_LEN];
	uint64_t begin;
	uint32_t i = 0, len = 0;
	enum status s;
	int err;

	put_mark(mark, seq);
	if (p->size)
		memcpy(p->win.mem, mark, p->size < MARK_LEN ? p->size : MARK_LEN);
	begin = clock_ns();
	s = post_ping_operation(p);
	if (s)
		return s;
	err = chan_send_raw(&p->l.chan, mark, sizeof mark);
	if (err)
		return link_call_failed(&p->l, err, "posting a message");
	s = await_ping(p, true, true, &i, &len);
	p->us = (double)(clock_ns() - begin) / 1000;
	return s ? s : check_answer(p, i, len, mark, sizeof mark);
}

/* Show the listener that somebody is there. */
static enum status keep_alive(struct ping *p, uint64_t seq)
{
	uint8_t mark[MARK_LEN];
	uint32_t i = 0, len = 0;
	enum status s;
	int err;

	if (clock_ns() - p->alive < ALIVE_NS)
		return ST_DONE;
	put_mark(mark, seq);
	err = chan_send_raw(&p->l.chan, mark, sizeof mark);
	if (err)
		return link_call_failed(&p->l, err, "posting a message");
	s = await_ping(p, false, true, &i, &len);
	p->alive = clock_ns();
	return s ? s : check_answer(p, i, len, mark, sizeof mark);
}

static enum status ping_read(struct ping *p, uint64_t seq)
{
	uint64_t begin;
	uint32_t none;
	enum status s = keep_alive(p, seq);

	if (p->size)
		memset(p->win.mem, 0, p->size);
	begin = clock_ns();
	if (!s)
		s = post_ping_operation(p);
	if (!s)
		s = await_ping(p, true, false, &none, &none);
	p->us = (double)(clock_ns() - begin) / 1000;
	for (uint32_t i = 0; !s && i < p->size; i++)
		if (p->win.mem[i] != PING_PATTERN(i))
			return link_fail(&p->l, ST_FAILED, NULL,
					 "octet %u of the Read is not the listener's", i);
	return s;
}

static enum status run_pings(struct ping *p)
{
	static enum status (*const one[])(struct ping *, uint64_t) = { run_send_ping, ping_write,
								       ping_read };
	uint32_t count = p->o->count ? p->o->count : 10;
	enum status s = ST_DONE;

	p->alive = clock_ns();
	for (uint32_t seq = 1; !s && seq <= count; seq++) {
		s = one[p->o->op](p, seq);
		if (s)
			break;
		if (stats_add(&p->stats, p->us))
			return link_fail(&p->l, ST_FAILED, "a smaller --count", "out of memory");
		if (!p->o->interval_ms)
			continue;
		out_pong(&p->l.out, seq, p->size, p->us);
		if (seq < count)
			s = link_pause(&p->l, p->o->interval_ms);
	}
	return s;
}

int cmd_ping(const struct opts *o)
{
	struct ping p = { .o = o, .size = (uint32_t)o->size };
	enum status s;

	link_init(&p.l, o, "ping");
	s = link_open(&p.l, o->arg[0], o->op == PING_SEND && p.size > MSG_MAX ? p.size : MSG_MAX);
	if (!s)
		s = ask_for_ping(&p);
	if (!s)
		s = run_pings(&p);
	if (p.stats.count) {
		struct out_ping sum = { .op = ping_op_name((enum ping_op)o->op), .size = p.size };

		stats_sum_up(&p.stats, &sum);
		out_ping(&p.l.out, &sum);
	}
	s = link_close(&p.l, s);
	stats_free(&p.stats);
	window_close(&p.win);
	return (int)link_free(&p.l, s);
}
