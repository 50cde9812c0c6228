/* SPDX-License-Identifier: BSD-2-Clause */
/* Still more: programs that look, sleep on descriptors, try again, and ends of other kinds. */
#include "fault/fault.h"
#include "sim/kern.h"
#include "watch/watch_in.h"
#include <poll.h>
#include <stdio.h>
#include <string.h>

#define RETRY_MS 60u
#define REFUSING 4 /* a seed of which connections are refused, and hosts not unreachable */

/* ---- looking ---- */

struct told {
	size_t len;
	char text[16384];
};

static bool put_told_text(void *user, const char *text, size_t len)
{
	struct told *t = user;

	if (len >= sizeof t->text - t->len)
		return false;
	memcpy(t->text + t->len, text, len);
	t->len += len;
	t->text[t->len] = 0;
	return true;
}

/* Nothing, if memory is short; else all of it. */
static int run_watched_scenario(struct fault_world *w)
{
	static const struct ddps_watch_own none;
	static struct told t;
	const struct ddps_watch_subject s = { .ctx = w->ctx, .label = "fault", .own = &none };

	t.len = 0;
	ddps_watch_tell(&s, put_told_text, &t);
	if (!t.len)
		return DDPS_E_NOMEM;
	return strstr(t.text, "\"label\":\"fault\"") &&
			       strstr(t.text, "\"context\":{\"sessions\":2") &&
			       !strcmp(t.text + t.len - 2, "}\n")
		       ? 0
		       : SILENT;
}

static int run_counted_scenario(struct fault_world *w)
{
	struct ddps_ctx_stats cs = { .struct_size = sizeof cs };
	struct ddps_ep_stats es = { .struct_size = sizeof es };
	struct ddps_assoc_stats as = { .struct_size = sizeof as };
	struct ddps_path_stats ps = { .struct_size = sizeof ps };
	int err = ddps_ctx_stats(w->ctx, &cs);

	if (!err)
		err = ddps_ep_stats(w->a[0], &es);
	if (err)
		return err;
	/* What there was no memory to count is missing. */
	if (cs.endpoints != 2 || es.sent[DDPS_STAT_SEND].messages + kern.n.memory < 1)
		return SILENT;
	err = ddps_ep_assoc_stats(w->a[0], &as);
	if (w->tcp)
		return err == DDPS_E_UNSUPPORTED ? 0 : err ? err : SILENT;
	if (!err)
		err = ddps_ep_path_stats(w->a[0], 0, &ps);
	return err ? err : as.sessions == 1 && ps.primary ? 0 : SILENT;
}

/* What cannot be captured harms no session, and is reported. */
int fault_looked(struct fault_world *w)
{
	int err = fault_begin(w);

	if (!err)
		err = fault_receive(w, w->b[0], fault_piece(w->dst, FAULT_SMALL, w->to));
	if (!err)
		err = fault_post(w, w->a[0], DDPS_OP_SEND,
				 fault_piece(w->src, FAULT_SMALL, w->from), NULL, 0);
	if (!err)
		err = fault_completions(w, 2);
	if (!err && memcmp(w->src, w->dst, FAULT_SMALL))
		return SILENT;
	if (!err)
		err = run_counted_scenario(w);
	if (!err)
		err = run_watched_scenario(w);
	return err ? err : fault_tear_down(w);
}

/* ---- sleeping on descriptors ---- */

/* Until the queue's descriptor is readable, driving what the other one is for. */
static int sleep_armed(struct fault_world *w, int cq_fd)
{
	int fd = ddps_ctx_fd(w->ctx), n;
	struct pollfd p[] = { { cq_fd, POLLIN, 0 }, { fd, POLLIN, 0 } };

	if (fd < 0)
		return fd;
	do {
		n = ddps_progress(w->ctx, 0);
		if (n < 0)
			return n;
		n = poll(p, 2, FAULT_WAIT_MS);
	} while (n && !p[0].revents);
	return n ? 0 : SILENT;
}

static int take_asleep(struct fault_world *w)
{
	int fd = ddps_cq_fd(w->cq), err = fd < 0 ? fd : 0;
	struct ddps_wc wc[8];

	while (!err && w->posted) {
		err = ddps_cq_arm(w->cq, false);
		if (!err)
			err = sleep_armed(w, fd);
		if (err)
			return err;
		for (int n = ddps_cq_poll(w->cq, wc, 8); n; n--) {
			if (n < 0)
				return n;
			w->posted--;
			if (wc[n - 1].status)
				return DDPS_E_CLOSED;
		}
	}
	return err;
}

static void count_notice(void *user)
{
	++*(unsigned *)user;
}

/* Requests that wait for each other, a queue that calls, and an end for all. */
int fault_asleep(struct fault_world *w)
{
	unsigned calls = 0;
	int err = fault_begin(w);

	for (uint32_t i = 0; !err && i < 3; i++)
		err = fault_receive(w, w->b[0],
				    fault_piece(w->dst + i * FAULT_SMALL, FAULT_SMALL, w->to));
	for (uint32_t i = 0; !err && i < 3; i++)
		err = fault_post(w, w->a[0], DDPS_OP_SEND,
				 fault_piece(w->src + i * FAULT_SMALL, FAULT_SMALL, w->from), NULL,
				 0);
	if (!err)
		err = take_asleep(w);
	if (!err && memcmp(w->src, w->dst, 3 * FAULT_SMALL))
		return SILENT;
	if (!err)
		err = ddps_cq_on_notify(w->cq, count_notice, &calls);
	if (!err)
		err = ddps_cq_arm_next(w->cq, false);
	if (!err)
		err = fault_post(w, w->a[0], DDPS_OP_READ, fault_piece(w->dst, FAULT_SMALL, w->to),
				 w->from, FAULT_SMALL);
	if (!err)
		err = fault_completions(w, 1);
	if (!err && (calls != 1 || memcmp(w->src + FAULT_SMALL, w->dst, FAULT_SMALL)))
		return SILENT;
	if (!err)
		err = ddps_ctx_settle(w->ctx, FAULT_WAIT_MS);
	return err ? err : fault_tear_down(w);
}

/* ---- requests of a session that ends ---- */

int fault_late(struct fault_world *w)
{
	struct ddps_wc wc;
	int err = fault_begin(w);

	if (!err)
		err = ddps_disconnect(w->a[0]);
	for (int i = 0; !err && i < 2; i++)
		err = fault_request(w, w->a[0], &(struct ddps_send_wr){ .op = DDPS_OP_WRITE });
	if (!err)
		err = fault_receive(w, w->b[0], (struct ddps_sge){ 0 });
	if (!err)
		err = ddps_disconnect(w->b[0]);
	while (!err && w->down < w->up)
		err = fault_event(w);
	while (!err && w->posted) {
		err = fault_one_completion(w, &wc);
		if (!err && wc.status != DDPS_WC_FLUSHED)
			return SILENT;
	}
	return err;
}

/* ---- trying again ---- */

void fault_ask_p2p(struct ddps_conn_param *p, unsigned i)
{
	p->p2p = true;
	p->rtr = DDPS_RTR_SEND << i % 3;
	p->markers = true;
	p->nudge_ms = 1;
}

void fault_ask_legacy(struct ddps_conn_param *p, unsigned i)
{
	(void)i;
	p->legacy_retry = true;
}

void fault_ask_patience(struct ddps_conn_param *p, unsigned i)
{
	(void)i;
	p->refused_retry_ms = RETRY_MS;
}

static int until_asked(struct fault_world *w)
{
	struct ddps_ctx_stats st = { .struct_size = sizeof st };
	int err = 0;

	for (int ms = 0; err >= 0 && !st.requests; ms++) {
		err = ddps_progress(w->ctx, 1);
		if (err >= 0)
			err = ddps_ctx_stats(w->ctx, &st);
		if (ms == FAULT_WAIT_MS)
			return SILENT;
		if (!st.requests && !err && ms > (int)RETRY_MS * 4)
			return 0; /* it has failed, and an event says so */
	}
	return err < 0 ? err : 0;
}

/* Inside TLS a reset is nobody's word: anybody may have sent it. */
static int fail_by_reset(struct fault_world *w)
{
	struct ddps_event ev;
	int err = fault_wait_event(w, &ev);

	if (err)
		return err;
	if (ev.type != DDPS_EV_FAILED)
		return SILENT;
	return ev.error.code == DDPS_E_RESET ? 0 : ev.error.code;
}

/* Over TCP whoever closes on the first request is asked once more, without what is new in it. */
int fault_afresh(struct fault_world *w)
{
	struct ddps_conn_info info;
	char uri[128];
	int err = ddps_listener_uri(w->listener, uri, sizeof uri);

	err = err < 0 ? err : fault_connect(w, 0);
	if (!err)
		err = until_asked(w);
	if (err)
		return err;
	if (w->tcp) {
		ddps_listener_free(w->listener);
		w->listener = NULL;
	}
	if (!strncmp(w->wire, "tls", 3))
		return fail_by_reset(w);
	if (w->tcp)
		err = ddps_listen(w->ctx, uri, NULL, &w->listener);
	while (!err && w->up < 2)
		err = fault_event(w);
	if (!err)
		err = ddps_ep_info(w->a[0], &info);
	if (!err && w->tcp && info.enhanced)
		return SILENT;
	return err ? err : fault_tear_down(w);
}

/* The listener comes later than its initiator. */
int fault_patient(struct fault_world *w)
{
	struct ddps_listener *l;
	const char *uri = fault_elsewhere(w, '7');
	int err;

	kern.seed = REFUSING;
	err = fault_connect_to(w, 0, uri);
	if (!err)
		err = fault_drive(w, RETRY_MS / 2);
	if (!err)
		err = ddps_listen(w->ctx, uri, NULL, &l);
	while (!err && w->up < 2)
		err = fault_event(w);
	return err ? err : fault_tear_down(w);
}

/* ---- addresses ---- */

/* Of the second one nothing is ever heard. */
int fault_homes(struct fault_world *w)
{
	kern.mute = 1u << 1;
	return fault_several(w);
}

/* ---- a Terminate ---- */

/* A Write to a region that is not there: whoever wrote is informed, and both ends say why. */
int fault_blamed(struct fault_world *w)
{
	struct ddps_send_wr wr = { .op = DDPS_OP_WRITE, .flags = DDPS_WR_PLACED, .stag = 1 };
	struct ddps_event ev = { 0 };
	struct ddps_sge sge;
	unsigned told = 0;
	struct ddps_wc wc;
	int err = fault_begin(w);

	if (!err) {
		sge = fault_piece(w->src, FAULT_SMALL, w->from);
		wr.sge = &sge;
		wr.nsge = 1;
		err = fault_request(w, w->a[0], &wr);
	}
	if (!err)
		err = fault_one_completion(w, &wc);
	while (!err && w->down < w->up) {
		err = fault_wait_event(w, &ev);
		told += !err && ev.type == DDPS_EV_TERMINATED && ev.error.has_triple &&
			ev.error.triple.layer == 1 && ev.error.triple.etype == 1 &&
			ev.error.triple.code == 0;
	}
	if (err || told == 2)
		return err || wc.status == DDPS_WC_REMOTE ? err : DDPS_E_CLOSED;
	return ev.error.code ? ev.error.code : SILENT;
}

/* ---- a program that goes on ---- */

#define PAUSE_MS 200000 /* two of them are longer than any shortage */

/* What comes of the try before. */
static int let_it_be(struct fault_world *w)
{
	struct ddps_event ev;
	int err;

	for (;;) {
		err = ddps_event_wait(w->ctx, &ev, PAUSE_MS);
		if (err == DDPS_E_TIMEDOUT)
			return 0;
		if (err == DDPS_E_AGAIN)
			continue;
		if (err || ev.type == DDPS_EV_LISTENER_FAILED)
			return err ? err : SILENT;
		w->up += ev.type == DDPS_EV_ESTABLISHED;
		w->down += ev.type == DDPS_EV_CLOSED;
		if (ev.type == DDPS_EV_CONNECT_REQUEST)
			ddps_reject(ev.request, NULL, 0);
	}
}

/* Whatever ran out comes back, and then a session is possible again, through the listener of before. */
int fault_lasting(struct fault_world *w)
{
	int err = DDPS_E_CLOSED;

	for (unsigned i = 0; err && i < w->neps; i++) {
		unsigned up = w->up;

		err = i ? let_it_be(w) : 0;
		if (err == SILENT)
			return SILENT;
		if (!err)
			err = fault_connect(w, i);
		while (!err && w->up < up + 2)
			err = fault_event(w);
		if (err == SILENT)
			return SILENT;
	}
	return err ? SILENT : fault_ends(w);
}

/* ---- one of two ---- */

#define WHILE_NS                                                                                   \
	300000000u /* longer than an association is let talk on until what was sent has arrived */

/* What becomes of the one that ends does not matter. */
static int let_pass(struct fault_world *w, uint64_t until)
{
	struct ddps_event ev;
	int err = 0;

	while (!err && kern.now < until) {
		err = ddps_event_wait(w->ctx, &ev, 20);
		if (!err)
			w->down += ev.type == DDPS_EV_CLOSED;
		else if (err == DDPS_E_TIMEDOUT || err == DDPS_E_AGAIN)
			err = 0;
	}
	return err;
}

/* One session of an association ends.  The other one goes on, or is informed. */
int fault_one_goes(struct fault_world *w)
{
	int err = fault_begin(w);

	if (!err)
		err = fault_receive(w, w->b[1], fault_piece(w->dst, FAULT_SMALL, w->to));
	if (!err)
		err = ddps_disconnect(w->a[0]);
	if (!err)
		err = let_pass(w, kern.now + WHILE_NS);
	if (!err)
		err = fault_post(w, w->a[1], DDPS_OP_SEND,
				 fault_piece(w->src, FAULT_SMALL, w->from), NULL, 0);
	if (!err)
		err = fault_completions(w, 2);
	if (!err && memcmp(w->src, w->dst, FAULT_SMALL))
		return SILENT;
	return err ? err : fault_tear_down(w);
}
