/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef MPA_LINE_FIXTURE_H
#define MPA_LINE_FIXTURE_H
/*
 * One MPA connection on a TCP connection that the test plays: it gives what the test says, takes as much
 * as it says, and counts what it is asked for.
 */
#include "support/mpa_world.h"
#include "unit/mem_fixture.h"

struct line {
	struct mpa_world w;
	struct ddps_mpa_conn *c;
	struct mpa_side *s;   /* who is above it */
	struct mpa_octets in; /* to be read */
	size_t at;	      /* of that, what was read */
	size_t most;	      /* read at most with one call; 0: all that is asked for */
	bool fin;	      /* behind it */
	int recv_err, send_err, watch_err, error, interrupts;
	size_t room;	       /* octets that may be written yet */
	size_t unacked;	       /* octets that were written */
	struct mpa_octets out; /* what was written, the first 4096 octets */
	uint64_t wrote;
	unsigned recvs, sends, watches, unwatches, fins, resets, closes, busies, locals, emsses;
	unsigned events; /* as watched */
	size_t asked;	 /* by the last recv */
	unsigned read_before_sent;
	uint32_t emss;
};

static struct line *line_of(const struct ddps_mpa_conn *c)
{
	return c->io.user;
}

static ssize_t line_recv(struct ddps_mpa_conn *c, struct iovec *iov, int n)
{
	struct line *l = line_of(c);
	size_t left = l->in.len - l->at, got = 0;

	l->recvs++;
	l->asked = 0;
	for (int i = 0; i < n; i++)
		l->asked += iov[i].iov_len;
	if (l->recv_err)
		return -l->recv_err;
	if (!left)
		return l->fin ? 0 : -EAGAIN;
	if (l->most && left > l->most)
		left = l->most;
	for (int i = 0; i < n && got < left; i++) {
		size_t part = iov[i].iov_len < left - got ? iov[i].iov_len : left - got;

		memcpy(iov[i].iov_base, l->in.p + l->at + got, part);
		got += part;
	}
	l->at += got;
	return (ssize_t)got;
}

static ssize_t line_send(struct ddps_mpa_conn *c, struct iovec *iov, int n)
{
	struct line *l = line_of(c);
	size_t put = 0;

	if (!l->sends++)
		l->read_before_sent = l->recvs;
	if (l->interrupts) {
		l->interrupts--;
		return -EINTR;
	}
	if (l->send_err)
		return -l->send_err;
	if (!l->room)
		return -EAGAIN;
	for (int i = 0; i < n && put < l->room; i++) {
		size_t part = iov[i].iov_len < l->room - put ? iov[i].iov_len : l->room - put;

		if (l->out.len + part <= 4096)
			mpa_octets_add(&l->out, iov[i].iov_base, part);
		put += part;
	}
	l->room -= put;
	l->wrote += put;
	return (ssize_t)put;
}

static void line_fin(struct ddps_mpa_conn *c)
{
	line_of(c)->fins++;
}

static void line_reset(struct ddps_mpa_conn *c)
{
	line_of(c)->resets++;
}

static void line_close(struct ddps_mpa_conn *c)
{
	line_of(c)->closes++;
}

static int line_error(struct ddps_mpa_conn *c)
{
	return line_of(c)->error;
}

static int line_watch(struct ddps_mpa_conn *c, unsigned events, bool eager)
{
	struct line *l = line_of(c);

	(void)eager;
	l->watches++;
	l->events = events;
	errno = l->watch_err;
	return l->watch_err ? -1 : 0;
}

static void line_unwatch(struct ddps_mpa_conn *c)
{
	line_of(c)->unwatches++;
	line_of(c)->events = 0;
}

static void line_local(struct ddps_mpa_conn *c)
{
	line_of(c)->locals++;
}

static uint32_t line_emss(struct ddps_mpa_conn *c)
{
	line_of(c)->emsses++;
	return line_of(c)->emss;
}

static int line_stats(const struct ddps_mpa_conn *c, struct ddps_llp_tcp *st)
{
	(void)c;
	(void)st;
	return DDPS_E_STATE;
}

static size_t line_unacked(const struct ddps_mpa_conn *c)
{
	return line_of(c)->unacked;
}

static void line_busy(struct ddps_mpa_conn *c)
{
	line_of(c)->busies++;
}

static const struct ddps_mpa_tcp line_tcp = {
	.recv = line_recv,
	.send = line_send,
	.fin = line_fin,
	.reset = line_reset,
	.close = line_close,
	.error = line_error,
	.watch = line_watch,
	.unwatch = line_unwatch,
	.local = line_local,
	.emss = line_emss,
	.stats = line_stats,
	.unacked = line_unacked,
	.busy = line_busy,
};

static void line_request(struct ddps_mpa_conn *c, const struct ddps_setup *s)
{
	mpa_up_request(&line_of(c)->w, &c->llp, s);
}

static void line_nothing(struct ddps_mpa_conn *c)
{
	(void)c;
}

static const struct ddps_mpa_owner line_owner = { line_request, line_nothing, line_nothing };

static inline void line_init(struct line *l)
{
	const struct sockaddr_in peer = mpa_loopback(7);

	memset(l, 0, sizeof *l);
	mpa_world_init(&l->w);
	l->room = SIZE_MAX;
	l->emss = 1460;
	l->c = ddps_mpa_conn_new(&l->w.env, &line_tcp, (const struct sockaddr *)&peer);
	cr_assert_not_null(l->c);
	l->c->io.user = l;
}

/* More to be read. */
static inline void line_feed(struct line *l, const void *p, size_t n)
{
	mpa_octets_add(&l->in, p, n);
}

static inline void line_fpdus(struct line *l, unsigned n, size_t len)
{
	uint8_t *pattern = mpa_pattern(len, 3);
	struct mpa_ref ref = { .crc = true };

	mpa_ref_fpdu(&ref, pattern, len);
	for (unsigned i = 0; i < n; i++)
		line_feed(l, ref.out.p, ref.out.len);
	free(ref.out.p);
	free(pattern);
}

static inline void line_ready(struct line *l, unsigned events)
{
	ddps_mpa_conn_ready(l->c, events);
}

/* What was counted so far does not matter. */
static inline void line_forget(struct line *l)
{
	l->recvs = l->sends = l->watches = l->unwatches = l->busies = 0;
	l->out.len = 0;
	l->wrote = 0;
}

/* Tasks, and what they post. */
static inline void line_run(struct line *l)
{
	for (unsigned i = 0; i < 50; i++)
		cr_assert_geq(ddps_loop_run(l->w.env.loop), 0);
}

/* A responder whose peer has sent its Request; how it answers depends on s->react. */
static inline void line_responder(struct line *l)
{
	line_init(l);
	l->c->owner = &line_owner;
	l->s = &l->w.b[0];
	ddps_mpa_conn_step(l->c, DDPS_MPA_EV_RESPOND);
	ddps_mpa_conn_deadline(l->c, DDPS_MPA_T_SETUP, 5000);
	ddps_mpa_conn_watch(l->c);
}

static inline void line_requested(struct line *l)
{
	line_feed(l, MPA_REQ "\x40\x01\0\0", 20);
	line_ready(l, DDPS_MPA_IN);
	cr_assert_eq(l->w.requests, 1);
}

/* Accepted, and its first FPDU has not come. */
static inline void line_fenced(struct line *l)
{
	line_responder(l);
	line_requested(l);
	cr_assert_eq(l->c->state, DDPS_MPA_FENCED);
	line_forget(l);
}

/* In full operation. */
static inline void line_full(struct line *l)
{
	line_fenced(l);
	line_fpdus(l, 1, 18);
	line_ready(l, DDPS_MPA_IN);
	cr_assert_eq(l->c->state, DDPS_MPA_FULL);
	cr_assert_eq(l->s->segments, 1);
	line_forget(l);
}

static inline void line_initiate_by(struct line *l, const struct ddps_setup *setup)
{
	l->s = &l->w.a;
	l->s->llp = &l->c->llp;
	ddps_mpa_setup_initiate(l->c, setup, &l->s->p, &mpa_up, l->s);
	ddps_llp_attach(&l->c->llp, &mpa_data, l->s);
}

static inline void line_initiate(struct line *l)
{
	const struct ddps_setup setup = { 0 };

	line_initiate_by(l, &setup);
}

static inline void line_fini(struct line *l)
{
	mpa_world_fini(&l->w);
	free(l->in.p);
	free(l->out.p);
}

#endif
