/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Two MPA connections on a TCP connection in memory: it takes and gives as many octets as a seed
 * says, says EAGAIN when it likes, and fails where it is asked to.  A failure names its seed.
 */
#include "support/clock.h"
#include "support/mpa_world.h"
#include <criterion/criterion.h>
#include <stdlib.h>

#define WIRE  4096 /* octets under way, one direction */
#define SEGS  12
#define WHICH 12 /* so many calls of a kind are tried */

/* What a call of TCP may be asked to do instead. */
enum call { RECV, SEND, WATCH, CALLS };

struct end {
	struct net *net;
	struct ddps_mpa_conn *c;
	struct end *other;
	uint8_t wire[WIRE]; /* to this end */
	size_t wire_len;
	bool fin, rst, closed, linger0; /* fin, rst: to this end */
	unsigned events;
	unsigned calls[CALLS], fail_at[CALLS]; /* the fail_at-th fails; 0: none */
	int fail_with;
};

struct net {
	struct mpa_world w;
	uint64_t seed;
	struct end a, b;
};

static uint32_t draw_mpa_core(struct net *n, uint32_t below)
{
	return draw_of(&n->seed) % below;
}

static struct end *get_mpa_core_end(const struct ddps_mpa_conn *c)
{
	return c->io.user;
}

static bool must_tcp_call_fail(struct end *e, enum call what)
{
	return ++e->calls[what] == e->fail_at[what];
}

static ssize_t mem_recv(struct ddps_mpa_conn *c, struct iovec *iov, int n)
{
	struct end *e = get_mpa_core_end(c);
	size_t most = e->wire_len ? 1 + draw_mpa_core(e->net, (uint32_t)e->wire_len) : 0, got = 0;

	if (must_tcp_call_fail(e, RECV))
		return -e->fail_with;
	if (e->rst)
		return -ECONNRESET;
	if (!e->wire_len)
		return e->fin ? 0 : -EAGAIN;
	for (int i = 0; i < n && got < most; i++) {
		size_t part = iov[i].iov_len < most - got ? iov[i].iov_len : most - got;

		memcpy(iov[i].iov_base, e->wire + got, part);
		got += part;
	}
	e->wire_len -= got;
	memmove(e->wire, e->wire + got, e->wire_len);
	return (ssize_t)got;
}

static ssize_t mem_send(struct ddps_mpa_conn *c, struct iovec *iov, int n)
{
	struct end *e = get_mpa_core_end(c), *to = e->other;
	size_t room = WIRE - to->wire_len, put = 0;

	if (must_tcp_call_fail(e, SEND))
		return -e->fail_with;
	if (to->closed)
		return -ECONNRESET;
	if (!room || !draw_mpa_core(e->net, 4))
		return -EAGAIN;
	room = 1 + draw_mpa_core(e->net, (uint32_t)room);
	for (int i = 0; i < n && put < room; i++) {
		size_t part = iov[i].iov_len < room - put ? iov[i].iov_len : room - put;

		memcpy(to->wire + to->wire_len, iov[i].iov_base, part);
		to->wire_len += part;
		put += part;
	}
	return (ssize_t)put;
}

static void mem_fin(struct ddps_mpa_conn *c)
{
	get_mpa_core_end(c)->other->fin = true;
}

static void mem_reset(struct ddps_mpa_conn *c)
{
	get_mpa_core_end(c)->linger0 = true;
}

static void mem_close(struct ddps_mpa_conn *c)
{
	struct end *e = get_mpa_core_end(c);

	cr_assert_not(e->closed);
	e->closed = true;
	e->other->fin = true;
	if (e->linger0 || e->wire_len)
		e->other->rst = true;
}

static int mem_error(struct ddps_mpa_conn *c)
{
	return get_mpa_core_end(c)->rst ? ECONNRESET : 0;
}

static int mem_watch(struct ddps_mpa_conn *c, unsigned events, bool eager)
{
	struct end *e = get_mpa_core_end(c);

	(void)eager;
	e->events = events | DDPS_MPA_BROKEN;
	if (!must_tcp_call_fail(e, WATCH))
		return 0;
	errno = e->fail_with;
	return -1;
}

static void mem_unwatch(struct ddps_mpa_conn *c)
{
	get_mpa_core_end(c)->events = 0;
}

static void mem_nothing(struct ddps_mpa_conn *c)
{
	(void)c;
}

static uint32_t mem_emss(struct ddps_mpa_conn *c)
{
	return 256 + draw_mpa_core(get_mpa_core_end(c)->net, 1200);
}

static int mem_stats(const struct ddps_mpa_conn *c, struct ddps_llp_tcp *st)
{
	(void)c;
	*st = (struct ddps_llp_tcp){ .cwnd = 1 };
	return 0;
}

static const struct ddps_mpa_tcp mem_tcp = {
	.recv = mem_recv,
	.send = mem_send,
	.fin = mem_fin,
	.reset = mem_reset,
	.close = mem_close,
	.error = mem_error,
	.watch = mem_watch,
	.unwatch = mem_unwatch,
	.local = mem_nothing,
	.emss = mem_emss,
	.stats = mem_stats,
	.unacked = get_none_unacked,
	.busy = mem_nothing,
};

static void take_mpa_core_request(struct ddps_mpa_conn *c, const struct ddps_setup *s)
{
	mpa_up_request(&get_mpa_core_end(c)->net->w, &c->llp, s);
}

static const struct ddps_mpa_owner owner = { take_mpa_core_request, mem_nothing, mem_nothing };

static struct ddps_mpa_conn *init_mpa_core_end(struct net *n, struct end *e, struct end *other)
{
	const struct sockaddr_in nobody = { .sin_family = AF_INET };

	e->net = n;
	e->other = other;
	e->c = ddps_mpa_conn_new(&n->w.env, &mem_tcp, (const struct sockaddr *)&nobody);
	cr_assert_not_null(e->c);
	e->c->io.user = e;
	return e->c;
}

static void net_open(struct net *n, uint64_t seed, bool crc, bool markers)
{
	const struct ddps_setup setup = { .enhanced = true,
					  .pd = (const uint8_t *)"\0\1\0\1hello",
					  .pd_len = 9 };
	struct mpa_side *a = &n->w.a;

	memset(n, 0, sizeof *n);
	n->seed = seed;
	mpa_world_init(&n->w);
	n->w.answer_param.crc = a->p.crc = crc;
	n->w.answer_param.markers = a->p.markers = markers;
	init_mpa_core_end(n, &n->b, &n->a)->owner = &owner;
	ddps_mpa_conn_step(n->b.c, DDPS_MPA_EV_RESPOND);
	ddps_mpa_conn_watch(n->b.c);
	a->llp = &init_mpa_core_end(n, &n->a, &n->b)->llp;
	ddps_mpa_setup_initiate(n->a.c, &setup, &a->p, &mpa_up, a);
	ddps_llp_attach(a->llp, &mpa_data, a);
	ddps_mpa_setup_connected(n->a.c);
	if (n->a.c->open)
		ddps_mpa_conn_watch(n->a.c);
}

static unsigned ready_mpa_core(const struct end *e)
{
	unsigned ev = 0;

	if (e->wire_len || e->fin || e->rst)
		ev |= DDPS_MPA_IN;
	if (WIRE - e->other->wire_len)
		ev |= DDPS_MPA_OUT;
	if (e->fin)
		ev |= DDPS_MPA_PEER_FIN;
	if (e->rst)
		ev |= DDPS_MPA_BROKEN;
	return ev & e->events;
}

/* One step of either end, or of the loop's tasks; false: nothing moves any more. */
static bool net_step(struct net *n)
{
	struct end *first = draw_mpa_core(n, 2) ? &n->a : &n->b;
	bool any = ddps_loop_run(n->w.env.loop) > 0;

	for (int i = 0; i < 2; i++, first = first->other) {
		unsigned ev = first->closed ? 0 : ready_mpa_core(first);

		if (!ev)
			continue;
		ddps_mpa_conn_ready(first->c, ev);
		return true;
	}
	return any;
}

static void net_run(struct net *n)
{
	unsigned steps = 0;

	while (net_step(n))
		cr_assert_lt(++steps, 200000u, "it does not come to rest");
}

static void net_close(struct net *n)
{
	if (n->w.a.llp)
		n->w.a.llp->ops->free(n->w.a.llp);
	if (n->w.requests && n->w.b[0].llp)
		n->w.b[0].llp->ops->free(n->w.b[0].llp);
	if (!n->w.requests && !n->b.closed) /* else it has freed itself */
		ddps_mpa_conn_destroy(n->b.c);
	n->w.a.llp = n->w.b[0].llp = NULL;
	mpa_world_fini(&n->w);
}

/* Both have got all that the other one sent, in order. */
static void all_arrived(const struct net *n, uint64_t seed)
{
	const struct mpa_side *a = &n->w.a, *b = &n->w.b[0];

	cr_expect_eq(b->segments, SEGS, "seed %lu: %u", (unsigned long)seed, b->segments);
	cr_expect_eq(a->segments, SEGS, "seed %lu: %u", (unsigned long)seed, a->segments);
	cr_expect_eq(a->done, SEGS, "seed %lu", (unsigned long)seed);
	cr_expect_eq(a->end.code, 0, "seed %lu: %s", (unsigned long)seed, a->end.text);
	cr_expect_eq(b->end.code, 0, "seed %lu: %s", (unsigned long)seed, b->end.text);
	cr_expect_eq(a->called[UP_CLOSED], 1, "seed %lu", (unsigned long)seed);
	cr_expect_eq(b->called[UP_CLOSED], 1, "seed %lu", (unsigned long)seed);
}

static void talk_mpa_core(struct net *n, struct mpa_side *s, const uint8_t *pattern, size_t len)
{
	s->pattern = pattern;
	s->seg_len = len;
	s->nseg = SEGS;
	s->llp->ops->kick(s->llp);
	net_run(n);
}

Test(mpa_core, any_cut_of_the_octets_gives_the_same, .timeout = 60,
     .description = "5044-4.3-2 5044-7.1.2-10 5044-7.1.2-15")
{
	static uint8_t pattern[4096];
	static struct net n;

	for (size_t i = 0; i < sizeof pattern; i++)
		pattern[i] = (uint8_t)(i * 31 + i / 256);
	for (uint64_t seed = 1; seed <= 400; seed++) {
		net_open(&n, seed, seed & 1, seed & 2);
		net_run(&n);
		cr_assert_eq(n.w.requests, 1, "seed %lu", (unsigned long)seed);
		cr_assert_eq(n.w.b[0].setup.pd_len, 9);
		talk_mpa_core(&n, &n.w.a, pattern, 40 + draw_mpa_core(&n, 60));
		talk_mpa_core(&n, &n.w.b[0], pattern, 40 + draw_mpa_core(&n, 60));
		n.w.a.llp->ops->shutdown(n.w.a.llp);
		net_run(&n);
		if (!n.w.b[0].called[UP_CLOSED] && n.w.b[0].llp) {
			n.w.b[0].llp->ops->shutdown(n.w.b[0].llp);
			net_run(&n);
		}
		all_arrived(&n, seed);
		net_close(&n);
	}
}

/* Whoever failed is closed; the other one at least knows that nothing more will come. */
static void expect_ends_told(const struct mpa_side *s, bool failed, unsigned i)
{
	cr_expect_leq(s->called[UP_CLOSED], 1, "case %u", i);
	cr_expect(s->called[UP_CLOSED] || (!failed && s->called[UP_PEER_CLOSED] == 1), "case %u",
		  i);
}

/* Each call of each end fails once with each errno: both ends are informed, once, and nothing leaks. */
Test(mpa_core, every_call_of_tcp_fails_once, .timeout = 60)
{
	static const int errs[] = { ECONNRESET, EPIPE, ETIMEDOUT, ENOBUFS, ENOMEM };
	static uint8_t pattern[4096];
	static struct net n;
	unsigned failed = 0;

	for (unsigned i = 0; i < CALLS * 2 * WHICH * 5; i++) {
		enum call what = (enum call)(i % CALLS);
		struct end *e;

		net_open(&n, i + 1, i & 8, i & 16);
		e = i / CALLS % 2 ? &n.a : &n.b;
		e->fail_at[what] = e->calls[what] + 1 + i / (CALLS * 2) % WHICH;
		e->fail_with = errs[i / (CALLS * 2 * WHICH)];
		net_run(&n);
		if (n.w.a.llp && !n.w.a.called[UP_CLOSED] && n.w.requests)
			talk_mpa_core(&n, &n.w.a, pattern, 64);
		if (n.w.a.llp && !n.w.a.called[UP_CLOSED])
			n.w.a.llp->ops->shutdown(n.w.a.llp);
		net_run(&n);
		if (e->calls[what] >= e->fail_at[what]) {
			failed++;
			expect_ends_told(&n.w.a, e == &n.a, i);
			if (n.w.requests)
				expect_ends_told(&n.w.b[0], e == &n.b, i);
		}
		net_close(&n);
	}
	cr_expect_gt(failed, 120u, "%u", failed);
}
