/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The steps of scenarios.  Whatever fails on the way is reported by a call, an event or a completion; a
 * wait that ends without one is SILENT.
 */
#include "fault/fault.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define TIMER_MS 700

/* ---- events ---- */

void fault_params(struct ddps_conn_param *p, const char *text)
{
	ddps_conn_param_init(p);
	p->private_data = text;
	p->private_data_len = (unsigned)strlen(text);
	p->connect_ms = p->setup_ms = p->close_ms = p->first_fpdu_ms = TIMER_MS;
	p->ird = p->ord = FAULT_READS;
}

int fault_wait_event(struct fault_world *w, struct ddps_event *ev)
{
	int err;

	do
		err = ddps_event_wait(w->ctx, ev, FAULT_WAIT_MS);
	while (err == DDPS_E_AGAIN);
	w->down += !err && ev->type == DDPS_EV_CLOSED;
	if (!err && getenv("DDPS_SIM_TRACE"))
		printf("# %s: %d %s\n", ddps_event_name(ev->type), ev->error.code, ev->error.text);
	return err == DDPS_E_TIMEDOUT ? SILENT : err;
}

/* The @i-th initiator asks: its peer answers, or another one that has no peer yet. */
int fault_asked(struct fault_world *w, struct ddps_request *req, unsigned i)
{
	struct ddps_conn_param p;

	fault_params(&p, "answer");
	p.shm = w->near;
	p.crc = !(w->s->how & FAULT_NO_CRC);
	if (w->accepted == (1u << w->neps) - 1) {
		w->req = req;
		return 0;
	}
	if (i >= w->neps || w->accepted >> i & 1)
		i = (unsigned)__builtin_ctz(~w->accepted);
	w->accepted |= 1u << i;
	return ddps_accept(req, w->b[i], &p);
}

static unsigned get_asker(const struct ddps_event *ev)
{
	const size_t len = ev->private_data_len;

	return len ? (unsigned)ev->private_data[len - 1] - '0' : 0;
}

int fault_event(struct fault_world *w)
{
	struct ddps_event ev;
	int err = fault_wait_event(w, &ev);

	if (err)
		return err;
	if (ev.error.has_triple && ev.error.by_peer && ev.error.triple.layer == 2)
		w->codes |= 1u << (ev.error.triple.code & 7);
	switch (ev.type) {
	case DDPS_EV_CONNECT_REQUEST:
		return fault_asked(w, ev.request, get_asker(&ev));
	case DDPS_EV_ESTABLISHED:
		w->up++;
		return 0;
	case DDPS_EV_SRQ_LIMIT:
	case DDPS_EV_PEER_CLOSING:
		w->lows++;
		return 0;
	case DDPS_EV_REQUEST_GONE:
		w->req = NULL;
		return DDPS_E_CLOSED;
	case DDPS_EV_LISTENER_FAILED: /* what runs out comes back, and it goes on */
		snprintf(w->text, sizeof w->text, "%s", ev.error.text);
		return SILENT;
	case DDPS_EV_CLOSED:
	case DDPS_EV_PEER_CLOSED:
		snprintf(w->text, sizeof w->text, "%s", ev.error.text);
		return ev.error.code;
	default:
		snprintf(w->text, sizeof w->text, "%s", ev.error.text);
		return ev.error.code ? ev.error.code : DDPS_E_CLOSED;
	}
}

int fault_connect_to(struct fault_world *w, unsigned i, const char *uri)
{
	char question[] = "question 0";
	struct ddps_conn_param p;

	question[sizeof question - 2] += (char)i;
	fault_params(&p, question);
	p.shm = w->near;
	p.crc = !(w->s->how & FAULT_NO_CRC);
	if (w->s->ask)
		w->s->ask(&p, i);
	return ddps_connect(w->a[i], uri, &p);
}

const char *fault_elsewhere(const struct fault_world *w, char where)
{
	static char uri[128];
	char *port;

	snprintf(uri, sizeof uri, "%s", w->wire);
	port = strchr(uri + 6, ':');
	(port ? port : strrchr(uri, '/'))[1] = where;
	return uri;
}

int fault_connect(struct fault_world *w, unsigned i)
{
	char uri[128];
	int err = ddps_listener_uri(w->listener, uri, sizeof uri);

	/* The others are in the INIT ACK: of a list, what this host has too would be left out. */
	char *more = err < 0 ? NULL : strchr(uri, ','), *port = more ? strrchr(more, ':') : NULL;

	if (port)
		memmove(more, port, strlen(port) + 1);
	return err < 0 ? err : fault_connect_to(w, i, uri);
}

int fault_established(struct fault_world *w)
{
	int err = 0;

	for (unsigned i = 0; !err && i < w->neps; i++)
		err = fault_connect(w, i);
	while (!err && w->up < 2 * w->neps)
		err = fault_event(w);
	return err;
}

int fault_begin(struct fault_world *w)
{
	int err = fault_established(w);

	return err ? err : fault_regions(w, &w->from, &w->to);
}

int fault_tear_down(struct fault_world *w)
{
	int err = 0;

	for (unsigned i = 0; !err && i < w->neps; i++) {
		err = ddps_disconnect(w->a[i]);
		if (!err)
			err = ddps_disconnect(w->b[i]);
	}
	while (!err && w->down < w->up)
		err = fault_event(w);
	return err;
}

int fault_ends(struct fault_world *w)
{
	for (unsigned i = 0; i < w->neps; i++) {
		if (w->a[i])
			ddps_disconnect(w->a[i]);
		if (w->b[i])
			ddps_disconnect(w->b[i]);
	}
	while (w->down < w->up)
		if (fault_event(w) == SILENT)
			return SILENT;
	return 0;
}

/* ---- data ---- */

/* A receive of a shared queue outlives its session: an event reported the end. */
static int told_instead(struct fault_world *w)
{
	struct ddps_event ev;
	int err = SILENT;

	while (w->srq && ddps_event_get(w->ctx, &ev) == 1) {
		w->down += ev.type == DDPS_EV_CLOSED;
		if (ev.error.code)
			err = ev.error.code;
	}
	return err;
}

int fault_one_completion(struct fault_world *w, struct ddps_wc *wc)
{
	int got;

	do
		got = ddps_cq_wait(w->cq, wc, 1, FAULT_WAIT_MS);
	while (got == DDPS_E_AGAIN);
	if (got != 1)
		return got == DDPS_E_TIMEDOUT ? told_instead(w) : got;
	w->posted--;
	return 0;
}

int fault_completions(struct fault_world *w, unsigned n)
{
	struct ddps_wc wc;
	int err = 0;

	while (!err && n--) {
		err = fault_one_completion(w, &wc);
		if (!err && wc.status)
			err = DDPS_E_CLOSED;
	}
	return err;
}

int fault_request(struct fault_world *w, struct ddps_ep *ep, const struct ddps_send_wr *wr)
{
	int err = ddps_post_send(ep, wr);

	w->posted += !err;
	return err;
}

int fault_post(struct fault_world *w, struct ddps_ep *ep, enum ddps_op op, struct ddps_sge sge,
	       struct ddps_mr *at, uint64_t off)
{
	struct ddps_send_wr wr = { .op = op, .sge = &sge, .nsge = 1 };

	if (at) {
		wr.stag = ddps_mr_stag(at);
		wr.to = ddps_mr_to(at) + off;
	}
	return fault_request(w, ep, &wr);
}

int fault_receive(struct fault_world *w, struct ddps_ep *ep, struct ddps_sge sge)
{
	int err = ddps_post_recv(ep, 1, &sge, 1);

	w->posted += !err;
	return err;
}

int fault_regions(struct fault_world *w, struct ddps_mr **src, struct ddps_mr **dst)
{
	int err = ddps_mr_reg(w->pd, w->src, FAULT_BIG, DDPS_REMOTE_READ, NULL, src);

	return err ? err
		   : ddps_mr_reg(w->pd, w->dst, FAULT_BIG, DDPS_LOCAL_WRITE | DDPS_REMOTE_WRITE,
				 NULL, dst);
}

struct ddps_sge fault_piece(uint8_t *p, uint32_t len, struct ddps_mr *mr)
{
	return (struct ddps_sge){ p, len, ddps_mr_stag(mr) };
}

int fault_drive(struct fault_world *w, unsigned ms)
{
	struct ddps_event ev;
	int err;

	/* Nothing is to happen: an event is an end. */
	do
		err = ddps_event_wait(w->ctx, &ev, (int)ms);
	while (err == DDPS_E_AGAIN);
	if (err)
		return err == DDPS_E_TIMEDOUT ? 0 : err;
	w->down += ev.type == DDPS_EV_CLOSED;
	w->lows += ev.type == DDPS_EV_SRQ_LIMIT;
	return ev.error.code ? ev.error.code : 0;
}
