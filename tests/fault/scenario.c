/* SPDX-License-Identifier: BSD-2-Clause */
/* What programs do with sessions, from the first call to the last: see fault.h. */
#include "fault/fault.h"
#include <stdio.h>
#include <string.h>

/* Many Reads, a Send, and a Write whose source goes while it is under way. */
int fault_transfer(struct fault_world *w)
{
	/* More than a ring of shared memory; over SCTP, of many more calls, less.  TCP keeps what the socket has
	 * not taken, SCTP takes a copy of as much as the last. */
	const uint32_t big = w->tcp ? FAULT_BIG : FAULT_BIG / 3, last = w->tcp ? big : big / 2;
	struct ddps_mr *src, *dst;
	int err = fault_established(w);

	if (!err)
		err = fault_regions(w, &src, &dst);
	if (!err)
		err = fault_receive(w, w->b[0], fault_piece(w->dst, big, dst));
	for (uint32_t i = 0; !err && i < FAULT_READS; i++)
		err = fault_post(w, w->a[0], DDPS_OP_READ, fault_piece(w->dst + 100 * i, 100, dst),
				 src, 100 * i);
	if (!err)
		err = fault_completions(w, FAULT_READS);
	if (!err && memcmp(w->src, w->dst, 100 * FAULT_READS))
		return SILENT; /* worse: wrong */
	if (!err)
		err = fault_post(w, w->a[0], DDPS_OP_SEND, fault_piece(w->src, big, src), NULL, 0);
	if (!err)
		err = fault_completions(w, 2);
	if (!err && memcmp(w->src, w->dst, big))
		return SILENT;
	if (!err)
		err = fault_post(w, w->a[0], DDPS_OP_WRITE, fault_piece(w->src, last, src), dst, 0);
	if (!err)
		err = ddps_mr_dereg(src);
	return err ? err : fault_tear_down(w);
}

/* ---- other ways to begin and to end ---- */

int fault_several(struct fault_world *w)
{
	struct ddps_mr *src, *dst;
	int err = fault_established(w);

	if (!err)
		err = fault_regions(w, &src, &dst);
	for (unsigned i = 0; !err && i < w->neps; i++) {
		uint32_t at = i * FAULT_SMALL;

		err = fault_receive(w, w->b[i], fault_piece(w->dst + at, FAULT_SMALL, dst));
		if (!err)
			err = fault_post(w, w->a[i], DDPS_OP_SEND,
					 fault_piece(w->src + at, FAULT_SMALL, src), NULL, 0);
	}
	if (!err)
		err = fault_completions(w, w->posted);
	/* requests of several initiators come in any order */
	return err ? err : fault_tear_down(w);
}

int fault_refused(struct fault_world *w)
{
	struct ddps_event ev;
	int err;

	w->neps = 0; /* nobody accepts */
	err = fault_connect(w, 0);
	while (!err && !w->req)
		err = fault_event(w);
	if (!err) {
		err = ddps_reject(w->req, "no", 2);
		if (!err || err == DDPS_E_CLOSED)
			w->req = NULL;
	}
	if (!err)
		err = fault_wait_event(w, &ev);
	if (err)
		return err;
	snprintf(w->text, sizeof w->text, "%s", ev.error.text);
	if (ev.type == DDPS_EV_REJECTED && ev.private_data_len == 2)
		return memcmp(ev.private_data, "no", 2) ? SILENT : 0;
	if (ev.type == DDPS_EV_REJECTED)
		return strstr(w->text, "no memory") ? DDPS_E_NOMEM : SILENT;
	return ev.error.code ? ev.error.code : SILENT;
}

int fault_nobody(struct fault_world *w)
{
	struct ddps_conn_param p;
	struct ddps_event ev;
	int err;

	fault_params(&p, "question");
	err = ddps_connect(w->a[0], fault_elsewhere(w, '9'), &p);
	if (!err)
		err = fault_wait_event(w, &ev);
	if (err)
		return err;
	return ev.type == DDPS_EV_FAILED && ev.error.code && ev.error.text[0] ? 0 : SILENT;
}

/* Each request completes, and each end is reported. */
int fault_aborted(struct fault_world *w)
{
	struct ddps_mr *src, *dst;
	int err = fault_established(w), end;

	if (!err)
		err = fault_regions(w, &src, &dst);
	for (uint32_t i = 0; !err && i < FAULT_READS; i++)
		err = fault_post(w, w->a[0], DDPS_OP_READ, fault_piece(w->dst + 100 * i, 100, dst),
				 src, 0);
	if (!err)
		err = fault_receive(w, w->b[0],
				    fault_piece(w->dst + FAULT_BIG / 2, FAULT_SMALL, dst));
	if (!err)
		err = ddps_abort(w->a[0]);
	if (!err && fault_ends(w))
		return SILENT;
	while (!err && w->posted) {
		end = fault_completions(w, 1);
		if (end == SILENT)
			return SILENT;
	}
	return err;
}

/* The listener goes while somebody is at the door. */
int fault_unheard(struct fault_world *w)
{
	struct ddps_event ev;
	int err;

	w->neps = 0;
	err = fault_connect(w, 0);
	while (!err && !w->req)
		err = fault_event(w);
	if (err)
		return err;
	ddps_listener_free(w->listener);
	w->listener = NULL;
	w->neps = 1;
	err = fault_asked(w, w->req, 0);
	w->req = NULL;
	while (!err && w->up < 2)
		err = fault_event(w);
	if (err)
		return err;
	err = ddps_disconnect(w->b[0]);
	while (!err && !(err = fault_wait_event(w, &ev)) && ev.type != DDPS_EV_PEER_CLOSED)
		if (ev.type == DDPS_EV_CLOSED)
			return ev.error.code ? ev.error.code : SILENT;
	return err ? err : fault_tear_down(w);
}
