/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Answering pings.  send: two receive buffers of the ping's size take turns, so that one is
 * always posted when an echo leaves.  write and read: see cmd_ping.c; the short message is
 * sent back, with the first octets of the window in it after a Write.
 */
#include "xfer/serve/serve.h"
#include <stdlib.h>
#include <string.h>

enum half { POSTED, WAITING, ECHOING };

struct job {
	enum ping_op op;
	uint32_t len;
	enum half half[2]; /* send: what becomes of each buffer */
};

static uint8_t *half_mem(struct session *s, struct job *j, uint32_t i)
{
	return s->win.mem + (size_t)i * j->len;
}

static struct ddps_sge half_sge(struct session *s, struct job *j, uint32_t i)
{
	return (struct ddps_sge){ .addr = j->len ? half_mem(s, j, i) : NULL,
				  .len = j->len,
				  .lkey = j->len ? ddps_mr_stag(s->win.mr) : 0 };
}

static void post_ping_receive(struct session *s, struct job *j, uint32_t i)
{
	struct ddps_sge sge = half_sge(s, j, i);
	int err = ddps_post_recv(s->chan.ep, WR_ID(WR_PING, i), &sge, j->len ? 1 : 0);

	j->half[i] = POSTED;
	if (err && err != DDPS_E_STATE)
		session_drop(s, "posting a receive: %s", ddps_strerror(err));
}

static void echo_ping(struct session *s, struct job *j, uint32_t i)
{
	struct ddps_sge sge = half_sge(s, j, i);
	struct ddps_send_wr wr = {
		.wr_id = WR_ID(WR_PING, i), .op = DDPS_OP_SEND, .sge = &sge, .nsge = j->len ? 1 : 0
	};
	int err = ddps_post_send(s->chan.ep, &wr);

	j->half[i] = ECHOING;
	if (err && err != DDPS_E_STATE)
		session_drop(s, "posting a Send: %s", ddps_strerror(err));
}

static void half_completion(struct session *s, const struct ddps_wc *wc)
{
	struct job *j = s->job;
	uint32_t i = WR_INDEX(wc->wr_id), other = 1 - i;

	if (wc->op == DDPS_OP_RECV) {
		s->due = clock_ns() + s->patience_ns;
		if (wc->len != j->len)
			session_drop(s, "a ping of %u octets instead of %u", wc->len, j->len);
		else if (j->half[other] == POSTED)
			echo_ping(s, j, i);
		else
			j->half[i] = WAITING;
		return;
	}
	post_ping_receive(s, j, i);
	if (s->state == SESSION_SERVING && j->half[other] == WAITING)
		echo_ping(s, j, other);
}

static void take_ping_message(struct session *s, const uint8_t *data, uint32_t len)
{
	struct job *j = s->job;
	uint8_t mark[PING_MARK_LEN];
	int err;

	if (j->op == PING_SEND || len != sizeof mark) {
		session_drop(s, "a message of %u octets in a ping", len);
		return;
	}
	memcpy(mark, data, sizeof mark);
	if (j->op == PING_WRITE && j->len)
		memcpy(mark, s->win.mem, j->len < sizeof mark ? j->len : sizeof mark);
	err = chan_send_raw(&s->chan, mark, sizeof mark);
	if (err && err != DDPS_E_STATE)
		session_drop(s, "sending an answer: %s", ddps_strerror(err));
}

static void stop_ping(struct session *s)
{
	free(s->job);
}

static void start_ping(struct session *s, const struct msg *m)
{
	struct msg answer = { .type = MSG_GO, .nslots = 1, .len = m->len };

	if (s->win.mr) {
		answer.stag = ddps_mr_stag(s->win.mr);
		answer.to = ddps_mr_to(s->win.mr);
	}
	session_send(s, &answer);
}

void serve_ping(struct session *s, const struct msg *m)
{
	static const unsigned access[] = { DDPS_LOCAL_WRITE, DDPS_REMOTE_WRITE, DDPS_REMOTE_READ,
					   DDPS_REMOTE_WRITE | DDPS_REMOTE_READ };
	static const struct service by_send = { .message = take_ping_message,
						.completion = half_completion,
						.stop = stop_ping,
						.open_end = true,
						.own_receives = true };
	static const struct service by_rdma = { .message = take_ping_message,
						.stop = stop_ping,
						.open_end = true };
	bool halves = m->op == PING_SEND;
	struct job *j;
	char why[80];

	if (m->pause_ms > SERVE_PAUSE_MAX_MS) {
		snprintf(why, sizeof why,
			 "pings may be %u s apart at most; use a shorter --interval",
			 SERVE_PAUSE_MAX_MS / 1000u);
		session_give_up(s, why);
		return;
	}
	if (m->op >= PING_READ && s->info.ird == 0) {
		session_give_up(s, "the listener's IRD of this session is 0: no RDMA Read is "
				   "possible");
		return;
	}
	if (session_window(s, (size_t)m->len * (halves ? 2 : 1), access[m->op]))
		return;
	j = calloc(1, sizeof *j);
	if (!j) {
		session_give_up(s, ddps_strerror(DDPS_E_NOMEM));
		return;
	}
	*j = (struct job){ .op = (enum ping_op)m->op, .len = m->len };
	s->patience_ns += m->pause_ms * NS_PER_MS;
	s->due = clock_ns() + s->patience_ns;
	for (uint32_t i = 0; m->op == PING_READ && i < m->len; i++)
		s->win.mem[i] = PING_PATTERN(i);
	if (halves) { /* every message from now on is a ping */
		s->service = &by_send;
		s->job = j;
		s->state = SESSION_SERVING;
		post_ping_receive(s, j, 0);
		if (s->state == SESSION_SERVING)
			post_ping_receive(s, j, 1);
	} else {
		session_begin(s, &by_rdma, j);
	}
	if (s->state == SESSION_SERVING)
		start_ping(s, m);
}
