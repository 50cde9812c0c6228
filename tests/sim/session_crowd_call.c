/* SPDX-License-Identifier: BSD-2-Clause */
/* A call: its request, its answer, a little work, and its end. */
#include "sim/session_crowd.h"

#define NAME "call %u of program %u, %s, end %u: "
#define name(l)                                                                                    \
	(unsigned)((l)->call - crowd.call), (l)->call->leg[0].program, kinds[(l)->call->kind],     \
		(l)->id

static const char *const kinds[KINDS] = { "to be rejected", "with Writes", "with Sends that wait" };

static void step_session_crowd_call(struct call *c, enum phase phase)
{
	c->phase = phase;
	c->until = kern.now + (phase == ASKED ? crowd.soon : crowd.late);
}

static bool make_session_crowd_call_endpoint(struct leg *l, bool stalls, bool shares)
{
	struct program *m = crowd_at(l->program);
	struct ddps_ep_attr attr;

	ddps_ep_attr_init(&attr);
	attr.pd = m->pd;
	attr.send_cq = attr.recv_cq = m->cq;
	attr.sq_depth = DEPTH;
	attr.rq_depth = 1;
	attr.user = l;
	if (shares) {
		attr.srq = m->srq;
		attr.srq_share = 1;
		attr.recv_cq = m->seldom;
	}
	attr.no_recv = stalls ? DDPS_NO_RECV_STALL : DDPS_NO_RECV_TERMINATE;
	check(!ddps_ep_new(m->ctx, &attr, &l->ep), "no endpoint");
	return !world.failed;
}

static struct call *unused(void)
{
	for (unsigned i = 0; i < CALLS; i++)
		if (crowd.call[i].phase == NOBODY)
			return &crowd.call[i];
	return NULL;
}

struct call *crowd_call(unsigned who, enum kind kind, bool stalls)
{
	struct call *c = unused();
	struct ddps_conn_param p;
	char uri[80];

	if (!c)
		return NULL;
	*c = (struct call){ .kind = kind,
			    .stalls = stalls,
			    .number = crowd.made++,
			    .sends = kind == HELD ? 1 + (unsigned)crowd_rnd(6) : 0,
			    .piece = 1 + (uint32_t)crowd_rnd(2000),
			    .writes = 1 + (unsigned)crowd_rnd(4),
			    .nwords = crowd_rnd(WORDS + 1) };
	for (size_t i = 0; i < c->nwords; i++)
		c->words[i] = (uint8_t)crowd_rnd(256);
	c->leg[0] = (struct leg){ .call = c, .id = 0, .program = who };
	c->leg[1] = (struct leg){ .call = c, .id = 1, .program = 0 };
	if (!make_session_crowd_call_endpoint(&c->leg[0], stalls, false) ||
	    !make_session_crowd_call_endpoint(&c->leg[1], kind == HELD,
					      kind == HELD && crowd_rnd(2)))
		return NULL;
	ddps_conn_param_init(&p);
	p.private_data = &c->number;
	p.private_data_len = sizeof c->number;
	snprintf(uri, sizeof uri, "sctp://10.0.0.1:7000%s", crowd.uri);
	crowd_at(who);
	check(!ddps_connect(c->leg[0].ep, uri, &p), "connect");
	step_session_crowd_call(c, ASKED);
	return c;
}

static void answer_crowd_request(struct call *c)
{
	struct ddps_conn_param p;
	int err;

	crowd_at(0);
	ddps_conn_param_init(&p);
	if (c->kind == REJECTED)
		err = ddps_reject(c->req, c->words, c->nwords);
	else
		err = ddps_accept(c->req, c->leg[1].ep, &p);
	check(!err || c->lost, NAME "answered: %s", name(&c->leg[1]), ddps_strerror(err));
	c->leg[1].over = c->kind == REJECTED || err;
	c->req = NULL;
}

static void does_session_crowd_call_work(struct leg *l)
{
	const struct call *c = l->call;
	const struct program *m = crowd_at(l->program), *o = &crowd.program[c->leg[!l->id].program];
	unsigned sends = l->id ? 0 : c->sends;

	while (l->there && !l->over && !m->dead && !o->dead && l->posted < c->writes + sends) {
		struct ddps_sge sge = { crowd.octets, 1 + (uint32_t)crowd_rnd(64),
					ddps_mr_stag(m->from) };
		struct ddps_send_wr wr = { .op = DDPS_OP_WRITE, .sge = &sge, .nsge = 1 };
		int err;

		wr.stag = ddps_mr_stag(o->into);
		wr.to = ddps_mr_to(o->into);
		if (l->posted >= c->writes) {
			wr.op = DDPS_OP_SEND;
			sge.len = c->piece;
		}
		err = ddps_post_send(l->ep, &wr);
		check(!err || err == DDPS_E_STATE, NAME "post_send: %s", name(l),
		      ddps_strerror(err));
		if (err) /* it ends */
			return;
		l->posted++;
	}
}

static bool worked(const struct call *c)
{
	return c->leg[0].done >= c->writes && c->leg[1].done >= c->writes;
}

static void free_at_session_crowd_call(struct call *c)
{
	for (unsigned k = 0; k < 2; k++)
		if (!crowd_at(c->leg[k].program)->dead)
			ddps_ep_free(c->leg[k].ep);
	c->phase = NOBODY;
}

void crowd_goes_on(struct call *c)
{
	struct leg *a = &c->leg[0], *b = &c->leg[1];

	if (c->phase == NOBODY)
		return;
	check(kern.now < c->until, NAME "%s has not come after %.3f s%s%s", name(a),
	      c->phase == ASKED	  ? "the answer"
	      : c->phase == THERE ? "the end of its Writes"
				  : "its end",
	      (double)(c->phase == ASKED ? crowd.soon : crowd.late) / 1e9, a->over ? " there" : "",
	      b->over ? " here" : "");
	if (c->req)
		answer_crowd_request(c);
	if (a->over && (b->over || (!b->there && !c->req && c->phase == ASKED && c->lost))) {
		free_at_session_crowd_call(c);
		return;
	}
	if (c->phase == ASKED && a->there && b->there)
		step_session_crowd_call(c, THERE);
	does_session_crowd_call_work(a);
	does_session_crowd_call_work(b);
	if (c->phase == THERE && worked(c))
		c->until = UINT64_MAX;
}

void crowd_leaves(struct call *c)
{
	unsigned how = (unsigned)crowd_rnd(5);

	if (c->phase != THERE)
		return;
	step_session_crowd_call(c, LEFT);
	for (unsigned k = 0; k < 2; k++) {
		if (crowd_at(c->leg[k].program)->dead || c->leg[k].over || how == !k)
			continue;
		if (how == 4 && !k)
			ddps_abort(c->leg[k].ep);
		else
			ddps_disconnect(c->leg[k].ep);
	}
}

/* ---- what is reported ---- */

static void take_session_crowd_call_rejected(struct leg *l, const struct ddps_event *ev)
{
	struct call *c = l->call;

	check(!l->id && c->kind == REJECTED && !l->over, NAME "rejected: %s", name(l),
	      ev->error.text);
	check(ev->private_data_len == c->nwords && !memcmp(ev->private_data, c->words, c->nwords),
	      NAME "a rejection with %u octets of private data, not %u", name(l),
	      (unsigned)ev->private_data_len, (unsigned)c->nwords);
	l->over = true;
}

/* An unrequested end is an end of what waited too long, of what was killed, or of a peer that
 * takes what others wait for. */
static void note_crowd_over(struct leg *l, const struct ddps_event *ev)
{
	struct call *c = l->call;

	check(!l->over, NAME "it ends twice", name(l));
	check(c->phase == LEFT || c->lost || (c->kind == HELD && l->there), NAME "%s: %s", name(l),
	      ddps_event_name(ev->type), ev->error.text);
	l->over = true;
	if (c->phase != LEFT && c->phase != NOBODY)
		step_session_crowd_call(c, LEFT);
}

/* All that share it receive into the same memory: nobody looks at it. */
static void receive(struct program *m, uint64_t id)
{
	struct ddps_sge sge = { crowd.octets + PIECE, PIECE, ddps_mr_stag(m->into) };

	check(!ddps_post_srq_recv(m->srq, id, &sge, 1), "post_srq_recv");
}

static void take_crowd_request(const struct ddps_event *ev)
{
	uint32_t number;

	memcpy(&number, ev->private_data, sizeof number);
	for (unsigned i = 0; i < CALLS; i++) {
		struct call *c = &crowd.call[i];

		if (c->number != number || c->phase != ASKED || c->leg[1].over)
			continue;
		check(!c->req && !c->leg[1].there, NAME "it asks twice", name(&c->leg[1]));
		c->req = ev->request;
		return;
	}
	ddps_reject(ev->request, NULL, 0); /* nobody waits for it any more */
}

void crowd_receives(bool begins)
{
	struct program *m = crowd_at(0);
	struct ddps_wc wc[16];
	int n = 16;

	for (unsigned i = 0; begins && i < SHARED_RECVS; i++)
		receive(m, i);
	while (n == 16) {
		n = ddps_cq_poll(m->seldom, wc, 16);
		for (int k = 0; k < n; k++)
			if (wc[k].wr_id < SHARED_RECVS)
				receive(m, wc[k].wr_id);
	}
}

void crowd_looks(unsigned i)
{
	struct program *m = crowd_at(i);
	struct ddps_event ev;
	struct ddps_wc wc[16];
	int n;

	while ((n = ddps_cq_poll(m->cq, wc, 16)) > 0)
		for (int k = 0; k < n; k++)
			((struct leg *)wc[k].user)->done++;
	while (ddps_event_get(m->ctx, &ev) == 1 && !world.failed) {
		struct leg *l = ev.user;

		if (ev.type == DDPS_EV_CONNECT_REQUEST)
			take_crowd_request(&ev);
		else if (ev.type == DDPS_EV_ESTABLISHED)
			l->there = true;
		else if (ev.type == DDPS_EV_PEER_CLOSED && l->call->kind != HELD)
			ddps_disconnect(l->ep);
		else if (ev.type == DDPS_EV_PEER_CLOSING) /* what waits is not wanted */
			ddps_disconnect(l->ep);
		else if (ev.type == DDPS_EV_REJECTED)
			take_session_crowd_call_rejected(l, &ev);
		else if (ev.type == DDPS_EV_CLOSED || ev.type == DDPS_EV_FAILED)
			note_crowd_over(l, &ev);
		else if (ev.type == DDPS_EV_REQUEST_GONE)
			for (unsigned k = 0; k < CALLS; k++)
				if (crowd.call[k].req == ev.request)
					crowd.call[k].req = NULL;
	}
}

void crowd_lose(unsigned program)
{
	for (unsigned i = 0; i < CALLS; i++) {
		struct call *c = &crowd.call[i];

		for (unsigned k = 0; k < 2 && c->phase != NOBODY; k++) {
			if (c->leg[k].program != program)
				continue;
			c->leg[k].ep = NULL;
			if (k && c->leg[k].over) /* what it has said counts */
				continue;
			c->lost = c->leg[k].over = true;
			if (k)
				c->req = NULL;
			else if (!c->leg[1].there && !c->req && c->phase == ASKED)
				c->leg[1].over = true; /* perhaps it is never asked */
			c->until = UINT64_MAX;
		}
	}
}
