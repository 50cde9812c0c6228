/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Much between two hosts, where nothing fails: more small Writes than may be unacknowledged, and long
 * Reads and Writes both ways at the same time.  All of it is done, what was read and written is what
 * was sent, and nobody is busy with nothing meanwhile.
 */
#include "sim/session_world.h"
#include <stdlib.h>

#define TALKS  3u
#define CROWD  64u
#define DEPTH  8u	     /* long requests of an end at the same time */
#define MANY   256u	     /* small ones */
#define LONGER (192u * 1024) /* octets of a long one, and less */
#define SOURCE (2u * LONGER) /* what is read and written begins anywhere in the first half */
#define SMALL  40000u	     /* small Writes of an end; 32767 may be unacknowledged */
#define LOOKS  200u	     /* polls in vain */
#define TURNS  20000u	     /* turns of a loop at one moment */
#define LOOK   (SEC / 100)   /* who polls looks again, whatever happens */
#define TIME   600u	     /* seconds until all is done */

static uint8_t source[SOURCE];

struct talk;
struct end_of { /* of a session */
	struct talk *talk;
	unsigned id;
	struct ddps_ep *ep;
	struct ddps_mr *from, *into, *reads;
	bool small, there, over;
	unsigned to_post, posted, done;
	uint64_t salt;
	uint8_t *written, *read;
};

static struct talk {
	struct end_of end[2];
} talk[CROWD];

static struct machine {
	struct ddps_ctx *ctx;
	struct ddps_pd *pd;
	struct ddps_cq *cq;
	struct ddps_listener *listener;
} machine[2];

static struct {
	unsigned n; /* sessions */
	bool crowd;
	size_t room;  /* of a Write or a Read */
	bool keen[2]; /* a host's user does nothing but poll */
} plan;

static struct machine *enter_bulk_side(unsigned i)
{
	kern.host = kern.who = i;
	return &machine[i];
}

/* What request @n of an end is. */
struct request {
	bool read;
	uint32_t off, len, slot;
};

static struct request request_of(const struct end_of *e, unsigned n)
{
	uint64_t rng = e->salt + n * 0x9e3779b97f4a7c15u;
	struct request r = { .slot = n % DEPTH };

	r.len = (uint32_t)sim_below(&rng, e->small ? 9 : LONGER + 1);
	r.off = (uint32_t)sim_below(&rng, LONGER);
	r.read = !e->small && sim_below(&rng, 2);
	return r;
}

static bool post_session_bulk(struct end_of *e)
{
	struct end_of *o = &e->talk->end[!e->id];
	struct request r = request_of(e, e->posted);
	struct ddps_sge sge = { source + r.off, r.len, ddps_mr_stag(e->from) };
	struct ddps_send_wr wr = { .op = r.read ? DDPS_OP_READ : DDPS_OP_WRITE,
				   .wr_id = e->posted,
				   .sge = &sge,
				   .nsge = 1 };
	int err;

	if (r.read) {
		sge.addr = e->read + r.slot * plan.room;
		sge.lkey = ddps_mr_stag(e->reads);
		wr.stag = ddps_mr_stag(o->from);
		wr.to = ddps_mr_to(o->from) + r.off;
	} else {
		wr.stag = ddps_mr_stag(o->into);
		wr.to = ddps_mr_to(o->into) + r.slot * plan.room;
	}
	err = ddps_post_send(e->ep, &wr);
	check(!err, "post_send: %s", ddps_strerror(err));
	e->posted += !err;
	return !err;
}

static void completed(const struct ddps_wc *wc)
{
	struct end_of *e = wc->user;
	struct request r = request_of(e, (unsigned)wc->wr_id);

	check(wc->wr_id == e->done && wc->status == DDPS_WC_SUCCESS, "request %u: %s is number %u",
	      e->done, ddps_wc_status_name(wc->status), (unsigned)wc->wr_id);
	check(!r.read || !memcmp(e->read + r.slot * plan.room, source + r.off, r.len),
	      "a Read of %u octets brought other ones", r.len);
	e->done++;
}

static void take_session_bulk_events(struct machine *m)
{
	struct ddps_event ev;

	while (ddps_event_get(m->ctx, &ev) == 1) {
		struct end_of *e = ev.user;

		if (ev.type == DDPS_EV_CONNECT_REQUEST) {
			unsigned k = ((const uint8_t *)ev.private_data)[0];

			check(!ddps_accept(ev.request, talk[k % CROWD].end[1].ep, NULL), "accept");
			continue;
		}
		e->there |= ev.type == DDPS_EV_ESTABLISHED;
		if (ev.type != DDPS_EV_CLOSED && ev.type != DDPS_EV_FAILED)
			continue;
		check(!e->over && !ev.error.code, "session %u, end %u: %s",
		      (unsigned)(e->talk - talk), e->id, ev.error.text);
		e->over = true;
	}
}

static bool is_session_bulk_fetched(struct machine *m)
{
	struct ddps_wc wc[16];
	int n = ddps_cq_poll(m->cq, wc, 16);

	for (int i = 0; i < n && !world.failed; i++)
		completed(&wc[i]);
	return n > 0;
}

static void posts(unsigned i)
{
	for (unsigned k = 0; k < plan.n && !world.failed; k++) {
		struct end_of *e = &talk[k].end[i];

		while (e->there && e->posted < e->to_post &&
		       e->posted - e->done < (e->small ? MANY : DEPTH) && post_session_bulk(e))
			;
	}
}

static void turn_session_bulk(unsigned i)
{
	struct machine *m = enter_bulk_side(i);
	unsigned n = 0;

	if (plan.keen[i]) {
		while (n++ < LOOKS && !world.failed) {
			if (is_session_bulk_fetched(m))
				n = 0;
			posts(i);
		}
	} else {
		do {
			while (ddps_progress(m->ctx, 0) > 0 && !world.failed)
				check(++n < TURNS, "host %u is busy with nothing", i);
			posts(i);
		} while (is_session_bulk_fetched(m) && !world.failed);
	}
	take_session_bulk_events(m);
}

static bool is_all_session_bulk_there(const struct end_of *e)
{
	return e->there;
}

static bool is_all_session_bulk_done(const struct end_of *e)
{
	return e->done == e->to_post;
}

static bool is_all_session_bulk_over(const struct end_of *e)
{
	return e->over;
}

static void run_bulk_until(bool (*is)(const struct end_of *e), const char *what)
{
	uint64_t end = kern.now + TIME * SEC, next;
	bool all = false;

	while (!all && !world.failed) {
		turn_session_bulk(0);
		turn_session_bulk(1);
		all = true;
		for (unsigned k = 0; k < plan.n; k++)
			all = all && is(&talk[k].end[0]) && is(&talk[k].end[1]);
		if (all || kern.now > end)
			break;
		next = kern_next();
		kern_go(next < kern.now + LOOK ? next : kern.now + LOOK);
	}
	check(all, "not all are %s", what);
}

static void check_bulk_made(unsigned i, const char *uri)
{
	struct machine *m = enter_bulk_side(i);
	struct ddps_ep_attr attr;

	*m = (struct machine){ 0 };
	check(!ddps_ctx_new(&m->ctx, NULL) && ddps_ctx_fd(m->ctx) >= 0 &&
		      !ddps_pd_new(m->ctx, &m->pd) && !ddps_cq_new(m->ctx, CROWD * MANY, &m->cq),
	      "no context");
	if (i)
		check(!ddps_listen(m->ctx, uri, NULL, &m->listener), "no listener");
	for (unsigned k = 0; k < plan.n; k++) {
		struct end_of *e = &talk[k].end[i];

		ddps_ep_attr_init(&attr);
		attr.pd = m->pd;
		attr.send_cq = attr.recv_cq = m->cq;
		attr.sq_depth = MANY;
		attr.rq_depth = 1;
		attr.user = e;
		if (plan.crowd) /* what may stall shares no association */
			attr.no_recv = DDPS_NO_RECV_STALL;
		e->written = calloc(DEPTH, plan.room);
		e->read = calloc(DEPTH, plan.room);
		check(!ddps_ep_new(m->ctx, &attr, &e->ep) &&
			      !ddps_mr_reg(m->pd, source, SOURCE, DDPS_REMOTE_READ, NULL,
					   &e->from) &&
			      !ddps_mr_reg(m->pd, e->written, DEPTH * plan.room, DDPS_REMOTE_WRITE,
					   NULL, &e->into) &&
			      !ddps_mr_reg(m->pd, e->read, DEPTH * plan.room, DDPS_LOCAL_WRITE,
					   NULL, &e->reads),
		      "no endpoint");
	}
}

/* The last Write to each place is there. */
static void note_bulk_written(const struct end_of *e)
{
	const struct end_of *o = &e->talk->end[!e->id];
	unsigned seen = 0;

	for (unsigned n = e->done; n-- && e->done - n <= DEPTH;) {
		struct request r = request_of(e, n);

		if (r.read || seen >> r.slot & 1)
			continue;
		seen |= 1u << r.slot;
		check(!memcmp(o->written + r.slot * plan.room, source + r.off, r.len),
		      "Write %u is not in place", n);
	}
}

static void is_session_bulk_played(const char *uri)
{
	struct ddps_conn_param p;

	check_bulk_made(0, uri);
	check_bulk_made(1, uri);
	for (unsigned k = 0; k < plan.n && !world.failed; k++) {
		uint8_t name = (uint8_t)k;

		ddps_conn_param_init(&p);
		p.ird = p.ord = DEPTH;
		p.p2p = true;
		p.private_data = &name;
		p.private_data_len = 1;
		enter_bulk_side(0);
		check(!ddps_connect(talk[k].end[0].ep, uri, &p), "connect");
	}
	run_bulk_until(is_all_session_bulk_there, "there");
	run_bulk_until(is_all_session_bulk_done, "done");
	for (unsigned k = 0; k < 2 * plan.n && !world.failed; k++) {
		enter_bulk_side(k % 2);
		check(!ddps_disconnect(talk[k / 2].end[k % 2].ep), "disconnect");
	}
	run_bulk_until(is_all_session_bulk_over, "over");
	for (unsigned k = 0; k < 2 * plan.n && !world.failed; k++)
		note_bulk_written(&talk[k / 2].end[k % 2]);
}

bool bulk_world(uint64_t seed, struct sim_tally *t)
{
	static const char *const uris[] = { "tcp://10.0.0.2:7000",
					    "sctp://10.0.0.2:7000?backend=native&encap=9899" };
	uint64_t rng = seed * 0x9e3779b97f4a7c15u + 17, begin;
	unsigned wire = (unsigned)sim_below(&rng, 2), style, left;
	bool small;

	for (unsigned i = 0; !source[0] && i < SOURCE; i++)
		source[i] = (uint8_t)(sim_next(&rng) | !i);
	world = (struct world){ .seed = seed, .quiet = true, .t = t };
	kern_start(sim_next(&rng));
	kern.delay = 1000 + sim_below(&rng, 1u << sim_below(&rng, 25));
	kern.window = 16384u << sim_below(&rng, 7);
	kern.datagrams = 1024u << sim_below(&rng, 5);
	kern.mtu = sim_below(&rng, 2) ? 1500 : 65535;
	kern.gso = sim_below(&rng, 2);
	style = (unsigned)sim_below(&rng, 8);
	plan.crowd = style == 0;
	small = style < 4;
	plan.n = plan.crowd ? CROWD - (unsigned)sim_below(&rng, CROWD / 2)
			    : 1 + (unsigned)sim_below(&rng, TALKS);
	plan.room = plan.crowd ? 16 : LONGER;
	plan.keen[0] = !sim_below(&rng, small ? 4 : 2);
	plan.keen[1] = !sim_below(&rng, small ? 4 : 2);
	for (unsigned k = 0; k < 2 * plan.n; k++) {
		struct end_of *e = &talk[k / 2].end[k % 2];

		memset(e, 0, sizeof *e);
		e->talk = &talk[k / 2];
		e->id = k % 2;
		e->salt = sim_next(&rng);
		e->small = plan.crowd || !!sim_below(&rng, 4) == small;
		e->to_post = (unsigned)sim_below(&rng, plan.crowd ? 9 : e->small ? SMALL : 40);
	}
	begin = kern.now;
	is_session_bulk_played(uris[wire]);
	for (unsigned i = 0; i < 2; i++)
		ddps_ctx_free(enter_bulk_side(i)->ctx);
	for (unsigned k = 0; k < 2 * plan.n; k++) {
		free(talk[k / 2].end[k % 2].written);
		free(talk[k / 2].end[k % 2].read);
	}
	left = kern_stop();
	check(!left, "%u descriptors are left", left);
	t->n[T_SESSIONS] += plan.n;
	t->n[wire ? T_SCTP : T_TCP] += plan.n;
	t->n[T_ORDERLY] += plan.n;
	t->n[T_WORLDS]++;
	t->n[T_SECONDS] += (kern.now - begin) / SEC;
	return !world.failed;
}
