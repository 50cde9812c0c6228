/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Being measured.  write and read need a window and an answer now and then, which is what
 * serve_ping.c does.  send and ping: as many receives as may be under way and one that is posted
 * again late, all into the same memory since nobody looks at the octets.  send: a message of 8
 * octets with the number of Sends so far acknowledges PERF_ACK_EVERY of them; ping: each Send is
 * echoed.
 */
#include "xfer/serve/serve.h"
#include <stdlib.h>

struct job {
	struct server *sv;
	enum perf_op op;
	uint32_t len;
	uint32_t every;
	uint64_t count;
};

static void post_measured_receive(struct session *s, const struct job *j, uint32_t i)
{
	struct ddps_sge sge = { .addr = s->win.mem,
				.len = j->len,
				.lkey = ddps_mr_stag(s->win.mr) };
	int err = ddps_post_recv(s->chan.ep, WR_ID(WR_PING, i), &sge, 1);

	if (err && err != DDPS_E_STATE)
		session_drop(s, "posting a receive: %s", ddps_strerror(err));
}

static int echo_measured(struct session *s, uint32_t len)
{
	struct ddps_sge sge = { .addr = s->win.mem, .len = len, .lkey = ddps_mr_stag(s->win.mr) };
	struct ddps_send_wr wr = { .wr_id = WR_ID(WR_PING, 0),
				   .op = DDPS_OP_SEND,
				   .flags = DDPS_WR_SILENT,
				   .sge = &sge,
				   .nsge = len ? 1 : 0 };

	return ddps_post_send(s->chan.ep, &wr);
}

static int acknowledge_measured(struct session *s, const struct job *j)
{
	uint8_t mark[PING_MARK_LEN];

	for (unsigned i = 0; i < PING_MARK_LEN; i++)
		mark[i] = (uint8_t)(j->count >> (8 * (PING_MARK_LEN - 1 - i)));
	return chan_send_raw(&s->chan, mark, sizeof mark);
}

static void take_measured_completion(struct session *s, const struct ddps_wc *wc)
{
	struct job *j = s->job;
	int err = 0;

	if (wc->op != DDPS_OP_RECV)
		return;
	j->count++;
	if (j->op == PERF_PING) /* before anything that can wait */
		err = echo_measured(s, wc->len);
	post_measured_receive(s, j, WR_INDEX(wc->wr_id));
	if (s->state != SESSION_SERVING)
		return;
	if (!j->sv->now)
		j->sv->now = clock_ns();
	s->due = j->sv->now + s->patience_ns;
	if (j->op != PERF_PING && j->count % j->every == 0)
		err = acknowledge_measured(s, j);
	if (err && err != DDPS_E_STATE)
		session_drop(s, "sending an answer: %s", ddps_strerror(err));
}

static void refuse_measured_message(struct session *s, const uint8_t *data, uint32_t len)
{
	(void)data;
	session_drop(s, "a message of %u octets before its time", len);
}

static void stop_measured(struct session *s)
{
	struct job *j = s->job;

	j->sv->hot--;
	free(j);
}

static void serve_perf_by_send(struct session *s, const struct msg *m)
{
	static const struct service service = { .message = refuse_measured_message,
						.completion = take_measured_completion,
						.stop = stop_measured,
						.open_end = true,
						.own_receives = true };
	struct msg answer = { .type = MSG_GO, .nslots = 1, .len = m->len };
	struct job *j;

	if (session_window(s, m->len, DDPS_LOCAL_WRITE))
		return;
	j = calloc(1, sizeof *j);
	if (!j) {
		session_give_up(s, ddps_strerror(DDPS_E_NOMEM));
		return;
	}
	*j = (struct job){ .sv = s->sv,
			   .op = (enum perf_op)m->op,
			   .len = m->len,
			   .every = PERF_ACK_EVERY(m->depth) };
	s->sv->hot++;
	s->service = &service;
	s->job = j;
	s->state = SESSION_SERVING;
	for (uint32_t i = 0; i <= m->depth && s->state == SESSION_SERVING; i++)
		post_measured_receive(s, j, i);
	if (s->state == SESSION_SERVING)
		session_send(s, &answer);
}

void serve_perf(struct session *s, const struct msg *m)
{
	struct msg window = { .type = MSG_PING,
			      .op = m->op == PERF_BOTH ? PING_BOTH : m->op,
			      .len = m->len };

	if (!m->len)
		session_give_up(s, "there is nothing to measure in 0 octets");
	else if (m->op == PERF_WRITE || m->op == PERF_READ || m->op == PERF_BOTH)
		serve_ping(s, &window);
	else
		serve_perf_by_send(s, m);
}
