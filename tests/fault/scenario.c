/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What programs do with sessions, from the first call to the last.  Whatever fails on the way is told
 * by a call, an event or a completion; a wait that ends without one is SILENT.
 */
#include "fault/fault.h"
#include <stdio.h>
#include <string.h>

#define WAIT_MS	 20000 /* of simulated time: longer than every timer below */
#define TIMER_MS 700
#define READS	 40u /* more than an inbound queue holds at first */
#define SMALL	 1000u

/* ---- events ---- */

static void params(struct ddps_conn_param *p, const char *text)
{
	ddps_conn_param_init(p);
	p->private_data = text;
	p->private_data_len = (unsigned)strlen(text);
	p->connect_ms = p->setup_ms = p->close_ms = p->first_fpdu_ms = TIMER_MS;
	p->ird = p->ord = READS;
}

static int wait_event(struct fault_world *w, struct ddps_event *ev)
{
	int err;

	do
		err = ddps_event_wait(w->ctx, ev, WAIT_MS);
	while (err == DDPS_E_AGAIN);
	w->down += !err && ev->type == DDPS_EV_CLOSED;
	return err == DDPS_E_TIMEDOUT ? SILENT : err;
}

static int asked(struct fault_world *w, struct ddps_request *req)
{
	struct ddps_conn_param p;

	params(&p, "answer");
	if (w->accepted == w->neps) {
		w->req = req;
		return 0;
	}
	return ddps_accept(req, w->b[w->accepted++], &p);
}

static int event(struct fault_world *w)
{
	struct ddps_event ev;
	int err = wait_event(w, &ev);

	if (err)
		return err;
	if (ev.error.has_triple && ev.error.by_peer && ev.error.triple.layer == 2)
		w->codes |= 1u << (ev.error.triple.code & 7);
	switch (ev.type) {
	case DDPS_EV_CONNECT_REQUEST:
		return asked(w, ev.request);
	case DDPS_EV_ESTABLISHED:
		w->up++;
		return 0;
	case DDPS_EV_REQUEST_GONE:
		w->req = NULL;
		return DDPS_E_CLOSED;
	case DDPS_EV_CLOSED:
	case DDPS_EV_PEER_CLOSED:
		snprintf(w->text, sizeof w->text, "%s", ev.error.text);
		return ev.error.code;
	default:
		snprintf(w->text, sizeof w->text, "%s", ev.error.text);
		return ev.error.code ? ev.error.code : DDPS_E_CLOSED;
	}
}

static int connect_one(struct fault_world *w, unsigned i)
{
	struct ddps_conn_param p;
	char uri[128];
	int err = ddps_listener_uri(w->listener, uri, sizeof uri);

	if (err < 0)
		return err;
	params(&p, "question");
	return ddps_connect(w->a[i], uri, &p);
}

static int established(struct fault_world *w)
{
	int err = 0;

	for (unsigned i = 0; !err && i < w->neps; i++)
		err = connect_one(w, i);
	while (!err && w->up < 2 * w->neps)
		err = event(w);
	return err;
}

static int tear_down(struct fault_world *w)
{
	int err = 0;

	for (unsigned i = 0; !err && i < w->neps; i++) {
		err = ddps_disconnect(w->a[i]);
		if (!err)
			err = ddps_disconnect(w->b[i]);
	}
	while (!err && w->down < w->up)
		err = event(w);
	return err;
}

/* Whoever was told that a session is up is told of its end, whatever it was. */
static int ends(struct fault_world *w)
{
	for (unsigned i = 0; i < w->neps; i++) {
		if (w->a[i])
			ddps_disconnect(w->a[i]);
		if (w->b[i])
			ddps_disconnect(w->b[i]);
	}
	while (w->down < w->up)
		if (event(w) == SILENT)
			return SILENT;
	return 0;
}

/* ---- data ---- */

static int completions(struct fault_world *w, unsigned n)
{
	struct ddps_wc wc;
	int got;

	while (n) {
		got = ddps_cq_wait(w->cq, &wc, 1, WAIT_MS);
		if (got == DDPS_E_AGAIN)
			continue;
		if (got != 1)
			return got == DDPS_E_TIMEDOUT ? SILENT : got;
		n--;
		w->posted--;
		if (wc.status)
			return DDPS_E_CLOSED;
	}
	return 0;
}

static int post(struct fault_world *w, struct ddps_ep *ep, enum ddps_op op, struct ddps_sge sge,
		struct ddps_mr *at, uint64_t off)
{
	struct ddps_send_wr wr = { .op = op, .sge = &sge, .nsge = 1 };
	int err;

	if (at) {
		wr.stag = ddps_mr_stag(at);
		wr.to = ddps_mr_to(at) + off;
	}
	err = ddps_post_send(ep, &wr);
	w->posted += !err;
	return err;
}

static int receive(struct fault_world *w, struct ddps_ep *ep, struct ddps_sge sge)
{
	int err = ddps_post_recv(ep, 1, &sge, 1);

	w->posted += !err;
	return err;
}

static int regions(struct fault_world *w, struct ddps_mr **src, struct ddps_mr **dst)
{
	int err = ddps_mr_reg(w->pd, w->src, FAULT_BIG, DDPS_REMOTE_READ, NULL, src);

	return err ? err
		   : ddps_mr_reg(w->pd, w->dst, FAULT_BIG, DDPS_LOCAL_WRITE | DDPS_REMOTE_WRITE,
				 NULL, dst);
}

static struct ddps_sge piece(uint8_t *p, uint32_t len, struct ddps_mr *mr)
{
	return (struct ddps_sge){ p, len, ddps_mr_stag(mr) };
}

/* Many Reads, a Send, and a Write whose source goes while it is under way. */
static int transfer(struct fault_world *w)
{
	/* TCP keeps what the socket has not taken, SCTP takes a copy of as much as this. */
	uint32_t last = w->tcp ? FAULT_BIG : FAULT_BIG / 2;
	struct ddps_mr *src, *dst;
	int err = established(w);

	if (!err)
		err = regions(w, &src, &dst);
	if (!err)
		err = receive(w, w->b[0], piece(w->dst, FAULT_BIG, dst));
	for (uint32_t i = 0; !err && i < READS; i++)
		err = post(w, w->a[0], DDPS_OP_READ, piece(w->dst + 100 * i, 100, dst), src,
			   100 * i);
	if (!err)
		err = completions(w, READS);
	if (!err && memcmp(w->src, w->dst, 100 * READS))
		return SILENT; /* worse: wrong */
	if (!err)
		err = post(w, w->a[0], DDPS_OP_SEND, piece(w->src, FAULT_BIG, src), NULL, 0);
	if (!err)
		err = completions(w, 2);
	if (!err && memcmp(w->src, w->dst, FAULT_BIG))
		return SILENT;
	if (!err)
		err = post(w, w->a[0], DDPS_OP_WRITE, piece(w->src, last, src), dst, 0);
	if (!err)
		err = ddps_mr_dereg(src);
	return err ? err : tear_down(w);
}

/* ---- other ways to begin and to end ---- */

static int several(struct fault_world *w)
{
	struct ddps_mr *src, *dst;
	int err = established(w);

	if (!err)
		err = regions(w, &src, &dst);
	for (unsigned i = 0; !err && i < w->neps; i++) {
		uint32_t at = i * SMALL;

		err = receive(w, w->b[i], piece(w->dst + at, SMALL, dst));
		if (!err)
			err = post(w, w->a[i], DDPS_OP_SEND, piece(w->src + at, SMALL, src), NULL,
				   0);
	}
	if (!err)
		err = completions(w, w->posted);
	/* requests of several initiators come in any order */
	return err ? err : tear_down(w);
}

static int refused(struct fault_world *w)
{
	struct ddps_event ev;
	int err;

	w->neps = 0; /* nobody accepts */
	err = connect_one(w, 0);
	while (!err && !w->req)
		err = event(w);
	if (!err) {
		err = ddps_reject(w->req, "no", 2);
		if (!err || err == DDPS_E_CLOSED)
			w->req = NULL;
	}
	if (!err)
		err = wait_event(w, &ev);
	if (err)
		return err;
	snprintf(w->text, sizeof w->text, "%s", ev.error.text);
	if (ev.type == DDPS_EV_REJECTED && ev.private_data_len == 2)
		return memcmp(ev.private_data, "no", 2) ? SILENT : 0;
	if (ev.type == DDPS_EV_REJECTED)
		return strstr(w->text, "no memory") ? DDPS_E_NOMEM : SILENT;
	return ev.error.code ? ev.error.code : SILENT;
}

static int nobody(struct fault_world *w)
{
	struct ddps_conn_param p;
	struct ddps_event ev;
	char uri[128];
	int err;

	snprintf(uri, sizeof uri, "%s", w->wire);
	memcpy(strchr(uri + 6, ':') + 1, "9", 1); /* the port of which there is none */
	params(&p, "question");
	err = ddps_connect(w->a[0], uri, &p);
	if (!err)
		err = wait_event(w, &ev);
	if (err)
		return err;
	return ev.type == DDPS_EV_FAILED && ev.error.code && ev.error.text[0] ? 0 : SILENT;
}

/* Each request completes, and each end is told. */
static int aborted(struct fault_world *w)
{
	struct ddps_mr *src, *dst;
	int err = established(w), end;

	if (!err)
		err = regions(w, &src, &dst);
	for (uint32_t i = 0; !err && i < READS; i++)
		err = post(w, w->a[0], DDPS_OP_READ, piece(w->dst + 100 * i, 100, dst), src, 0);
	if (!err)
		err = receive(w, w->b[0], piece(w->dst + FAULT_BIG / 2, SMALL, dst));
	if (!err)
		err = ddps_abort(w->a[0]);
	if (!err && ends(w))
		return SILENT;
	while (!err && w->posted) {
		end = completions(w, 1);
		if (end == SILENT)
			return SILENT;
	}
	return err;
}

/* The listener goes while somebody is at the door. */
static int unheard(struct fault_world *w)
{
	struct ddps_event ev;
	int err;

	w->neps = 0;
	err = connect_one(w, 0);
	while (!err && !w->req)
		err = event(w);
	if (err)
		return err;
	ddps_listener_free(w->listener);
	w->listener = NULL;
	w->neps = 1;
	err = asked(w, w->req);
	w->req = NULL;
	while (!err && w->up < 2)
		err = event(w);
	if (err)
		return err;
	err = ddps_disconnect(w->b[0]);
	while (!err && !(err = wait_event(w, &ev)) && ev.type != DDPS_EV_PEER_CLOSED)
		if (ev.type == DDPS_EV_CLOSED)
			return ev.error.code ? ev.error.code : SILENT;
	return err ? err : tear_down(w);
}

const struct fault_scenario fault_scenarios[] = {
	{ "transfer", transfer }, { "several", several }, { "refused", refused },
	{ "nobody", nobody },	  { "aborted", aborted }, { "unheard", unheard },
};
const unsigned fault_nscenarios = sizeof fault_scenarios / sizeof *fault_scenarios;

/* ---- the whole ---- */

static int make(struct fault_world *w)
{
	struct ddps_ep_attr attr;
	int err = ddps_ctx_new(&w->ctx, NULL);

	if (!err)
		err = ddps_pd_new(w->ctx, &w->pd);
	if (!err)
		err = ddps_cq_new(w->ctx, 256, &w->cq);
	if (!err)
		err = ddps_listen(w->ctx, w->wire, NULL, &w->listener);
	ddps_ep_attr_init(&attr);
	attr.pd = w->pd;
	attr.send_cq = attr.recv_cq = w->cq;
	for (unsigned i = 0; !err && i < w->neps; i++) {
		err = ddps_ep_new(w->ctx, &attr, &w->a[i]);
		if (!err)
			err = ddps_ep_new(w->ctx, &attr, &w->b[i]);
	}
	return err;
}

int fault_play(struct fault_world *w, const struct fault_scenario *s)
{
	int err;

	w->neps = s->play == several ? FAULT_EPS : 1;
	err = make(w);
	if (!err)
		err = s->play(w);
	if (err && err != SILENT && w->up && ends(w))
		err = SILENT;
	ddps_ctx_free(w->ctx);
	return err;
}
