/* SPDX-License-Identifier: BSD-2-Clause */
/* Our own stack as the target's partner, behind a relay. */
#include "conform/relay/relay_in.h"
#include "conform/peer/inside.h"
#include <netinet/in.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define BLOCK 20000u /* octets that go to the target and back: several segments */
#define DEPTH 16u
#define ROOM  65536u /* of a receive; what it says is not looked at, so all have the same */
#define TICK  10     /* ms between looks at what has no descriptor in common */

struct cf_partner {
	struct cf_relay *relay;
	struct ddps_ctx *ctx;
	struct ddps_pd *pd;
	struct ddps_cq *cq;
	struct ddps_ep *ep;
	struct ddps_mr *mr;
	struct cf_mr there; /* self mode: the target's memory */
	uint32_t blocks;
	bool up, over;
	char why[256];
	uint8_t mem[2 * BLOCK + ROOM];
};

static void check_partner_call(struct cf *cf, int err, const char *what)
{
	CF_CHECK(cf, !err, "the partner: %s: %s", what, ddps_strerror(err));
}

/* ---- set-up ---- */

static const char *get_relayed_uri(struct cf *cf, struct cf_at *at, struct sockaddr_storage *to,
				   char *uri, size_t len)
{
	const char *target = cf->run->uri;
	char own[200];

	if (cf->run->secured)
		cf_skip(cf, "the partner behind the relay speaks no TLS");
	if (cf->run->shared)
		cf_skip(cf, "nothing can be relayed in memory");
	if (cf->self)
		target = cf_app_uri(cf, own, sizeof own);
	cf_address(cf, target, at);
	*to = at->ss;
	if (cf->wire == CF_TCP) {
		snprintf(uri, len, "tcp://127.0.0.1:");
		return uri;
	}
	if (at->encap == CF_ENCAP_OFF)
		cf_skip(cf, "a relay takes SCTP in UDP, and the URI says encap=off");
	snprintf(uri, len, "sctp://127.0.0.1:%u?backend=native&encap=",
		 ntohs(((struct sockaddr_in *)&at->ss)->sin_port));
	((struct sockaddr_in *)to)->sin_port =
		htons(at->encap > 0 ? (uint16_t)at->encap : 9899); /* RFC 6951 4 */
	return uri;
}

static void open_relay(struct cf *cf, struct cf_partner *p, const struct cf_relay_plan *plan,
		       char *uri, size_t len)
{
	struct sockaddr_storage to;
	struct cf_at at;
	char why[200];
	size_t n;

	get_relayed_uri(cf, &at, &to, uri, len);
	p->relay = cf_relay_new(plan, cf->wire == CF_SCTP, &to, at.len, cf->trace,
				cf->res->partners++, why, sizeof why);
	CF_CHECK(cf, p->relay, "%s", why);
	n = strlen(uri);
	snprintf(uri + n, len - n, "%u", cf_relay_port(p->relay));
}

/* The target's application may have something to say. */
static void serve_target_app(struct cf_partner *p)
{
	struct ddps_sge sge = { p->mem + sizeof p->mem - ROOM, ROOM, ddps_mr_stag(p->mr) };

	(void)ddps_post_recv(p->ep, 0, &sge, 1); /* refused once the session has ended */
}

static void open_stack(struct cf *cf, struct cf_partner *p)
{
	struct ddps_ctx_attr attr;
	struct ddps_ep_attr ep;

	ddps_ctx_attr_init(&attr);
	attr.thread = true;
	check_partner_call(cf, ddps_ctx_new(&p->ctx, &attr), "context");
	check_partner_call(cf, ddps_pd_new(p->ctx, &p->pd), "protection domain");
	check_partner_call(cf, ddps_cq_new(p->ctx, 4 * DEPTH, &p->cq), "completion queue");
	check_partner_call(
		cf, ddps_mr_reg(p->pd, p->mem, sizeof p->mem, DDPS_LOCAL_WRITE, NULL, &p->mr),
		"registering");
	ddps_ep_attr_init(&ep);
	ep.pd = p->pd;
	ep.send_cq = ep.recv_cq = p->cq;
	check_partner_call(cf, ddps_ep_new(p->ctx, &ep, &p->ep), "endpoint");
	for (unsigned i = 0; i < DEPTH; i++)
		serve_target_app(p);
}

/* In self mode the target's application takes whoever comes. */
static void app_turn(struct cf *cf)
{
	struct ddps_ep_attr *attr = &cf->app.attr;
	struct ddps_event ev;
	struct ddps_ep *ep;

	while (cf->self && !ddps_event_wait(cf->app.ctx, &ev, 0)) {
		if (ev.type != DDPS_EV_CONNECT_REQUEST)
			continue;
		check_partner_call(cf, ddps_ep_new(cf->app.ctx, attr, &ep),
				   "the target's endpoint");
		(void)ddps_accept(ev.request, ep, &cf->app.param); /* it may be gone again */
	}
}

static void take_partner_event(struct cf_partner *p, int timeout_ms)
{
	struct ddps_event ev;

	if (ddps_event_wait(p->ctx, &ev, timeout_ms))
		return;
	if (ev.type == DDPS_EV_ESTABLISHED)
		p->up = true;
	else
		p->over = true;
	if (p->over && !p->why[0])
		snprintf(p->why, sizeof p->why, "'%s': %s", ddps_event_name(ev.type),
			 ev.error.text);
}

static bool connect_partner(struct cf *cf, const struct cf_relay_plan *plan, unsigned ms)
{
	struct ddps_conn_param param;
	struct cf_partner *p;
	uint64_t since = cf_now();
	char uri[200];

	cf_partner_end(cf);
	p = cf->res->partner = calloc(1, sizeof *p);
	CF_CHECK(cf, p, "out of memory");
	open_relay(cf, p, plan, uri, sizeof uri);
	open_stack(cf, p);
	ddps_conn_param_init(&param);
	param.setup_ms = param.connect_ms = ms;
	param.nudge_ms = cf->run->pause_ms;
	check_partner_call(cf, ddps_connect(p->ep, uri, &param), "connecting");
	while (!p->up && !p->over && !cf_relay_done(p->relay).refused) {
		(void)cf_left(cf, since, "a session, or its end");
		app_turn(cf);
		take_partner_event(p, cf_nap(cf, since, TICK));
		cf_woke(cf);
	}
	/* For the first one it means that nobody is there; later, that somebody has gone. */
	cf->dialling = cf->res->partners == 1 && cf_relay_done(p->relay).refused;
	CF_CHECK(cf, !cf_relay_done(p->relay).refused, "connecting to the target: %s",
		 cf_relay_refused(p->relay));
	return p->up;
}

bool cf_partner_connects(struct cf *cf, const struct cf_relay_plan *plan)
{
	return connect_partner(cf, plan, cf_limit(cf, CF_PART_SETUP) / 3);
}

/* ---- work ---- */

static bool post_partner_wr(struct cf_partner *p, enum ddps_op op, uint8_t *b, uint32_t len,
			    const struct cf_mr *there)
{
	struct ddps_sge sge = { b, len, ddps_mr_stag(p->mr) };
	struct ddps_send_wr wr = { .op = op,
				   .sge = &sge,
				   .nsge = len ? 1 : 0,
				   .stag = there ? there->stag : 0,
				   .to = there ? there->to : 0 };

	/* What cannot be posted any more belongs to a session that has ended. */
	return !ddps_post_send(p->ep, &wr);
}

/* How many did, before one failed or no more came for so long. */
static unsigned count_partner_completions(struct cf *cf, struct cf_partner *p, unsigned n,
					  unsigned ms)
{
	uint64_t since = cf_now();
	struct ddps_wc wc;
	unsigned done = 0;

	while (done < n && cf_now() - since < ms * 1000000ull) {
		int got = ddps_cq_wait(p->cq, &wc, 1, cf_nap(cf, since, TICK));

		cf_woke(cf);
		app_turn(cf);
		if (got == 1 && wc.status != DDPS_WC_SUCCESS)
			break;
		if (got == 1 && wc.op == DDPS_OP_RECV)
			serve_target_app(p);
		else
			done += got == 1;
	}
	return done;
}

/* False: the session has ended. */
static bool await_partner_completions(struct cf *cf, struct cf_partner *p, unsigned n)
{
	bool mine = cf_want(cf, "the answer to an RDMA Read, or the end of the session");
	unsigned limit = cf_limit(cf, CF_PART_SESSION);
	unsigned done = count_partner_completions(cf, p, n, limit);

	take_partner_event(p, 0);
	if (done < n && !p->over) {
		cf_silent(cf, CF_PART_SESSION);
		cf_fail(cf, "waited %u ms for the answer to a Read, or the end", limit);
	}
	cf_wanted(cf, mine);
	return done == n;
}

/* Octets there and back, others each time. */
static bool move_block(struct cf *cf, struct cf_partner *p)
{
	uint8_t *out = p->mem, *in = p->mem + BLOCK;

	if (!cf->self)
		return true;
	if (!p->there.mr)
		p->there = cf_app_mr(cf, BLOCK, DDPS_REMOTE_READ | DDPS_REMOTE_WRITE);
	cf_fill(out, BLOCK, ++p->blocks);
	if (!post_partner_wr(p, DDPS_OP_WRITE, out, BLOCK, &p->there) ||
	    !post_partner_wr(p, DDPS_OP_READ, in, BLOCK, &p->there) ||
	    !await_partner_completions(cf, p, 2))
		return false;
	CF_CHECK(cf, !memcmp(in, out, BLOCK) && !memcmp(p->there.mem, out, BLOCK),
		 "block %u came out otherwise than it went in", p->blocks);
	return true;
}

bool cf_partner_manages(struct cf *cf, const struct cf_relay_plan *plan, unsigned reads)
{
	unsigned ms = cf_limit(cf, CF_PART_SESSION) / 10 + 1, posted = 0;
	struct cf_partner *p;

	if (!connect_partner(cf, plan, ms))
		return false;
	p = cf->res->partner;
	while (posted < reads && post_partner_wr(p, DDPS_OP_READ, p->mem, 0, NULL))
		posted++;
	return posted == reads && count_partner_completions(cf, p, reads, ms) == reads;
}

static bool await_partner_end(struct cf *cf, struct cf_partner *p)
{
	uint64_t since = cf_now();

	while (!p->over) {
		(void)cf_left(cf, since, "the end of a session whose work was flushed");
		app_turn(cf);
		take_partner_event(p, cf_nap(cf, since, TICK));
		cf_woke(cf);
	}
	return false;
}

bool cf_partner_works(struct cf *cf, unsigned reads, unsigned depth)
{
	struct cf_partner *p = cf->res->partner;

	for (unsigned n; reads; reads -= n) {
		n = reads < depth ? reads : depth;
		for (unsigned i = 0; i < n; i++)
			if (!post_partner_wr(p, DDPS_OP_READ, p->mem, 0, NULL))
				return await_partner_end(cf, p);
		if (!await_partner_completions(cf, p, n) || !move_block(cf, p))
			return await_partner_end(cf, p);
	}
	return true;
}

const char *cf_partner_why(struct cf *cf)
{
	return cf->res->partner->why;
}

struct cf_relay_sum cf_partner_relay(struct cf *cf)
{
	return cf_relay_done(cf->res->partner->relay);
}

void cf_partner_end(struct cf *cf)
{
	struct cf_partner *p = cf->res->partner;

	if (!p)
		return;
	cf->res->partner = NULL;
	if (p->ep)
		(void)ddps_abort(p->ep);
	ddps_ctx_free(p->ctx);
	cf_relay_free(p->relay);
	free(p);
}
