/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A completion queue that is too small for what its queue pair is asked to receive, and a program that fetches
 * nothing until it is informed: the queue is lost, and so is the connection, on both sides, once each.  What it
 * held is still there, and nothing else is altered.
 */
#include "sim/verbs_oob.h"
#include <poll.h>

static struct {
	unsigned queue_lost, failed[2]; /* events */
} told;

static void next_verbs_full_event(void)
{
	struct ibv_async_event ev;

	check(!ibv_get_async_event(w.listen->verbs, &ev), "no asynchronous event");
	if (w.failed)
		return;
	if (ev.event_type == IBV_EVENT_CQ_ERR) {
		check(ev.element.cq == oob_side[0].cq, "another queue is lost");
		told.queue_lost++;
	} else {
		check(ev.event_type == IBV_EVENT_QP_FATAL, "an event of kind %d", ev.event_type);
		told.failed[ev.element.qp == oob_side[1].qp]++;
	}
	ibv_ack_async_event(&ev);
}

static bool all_told(void)
{
	return told.queue_lost && told.failed[0] && told.failed[1];
}

static void listen_until(uint64_t until)
{
	struct pollfd p = { w.listen->verbs->async_fd, POLLIN, 0 };

	while (!w.failed && kern.now < until && !all_told()) {
		while (!w.failed && poll(&p, 1, 0) == 1)
			next_verbs_full_event();
		let_pass(MS + draw_verbs(4 * kern.delay));
	}
}

/* The queue holds what came first; what is flushed may have found no place. */
static void fetch_full_queue(struct oob_side *s)
{
	const struct oob_side *o = &oob_side[!s->id];
	struct ibv_wc wc;

	while (!w.failed && ibv_poll_cq(s->cq, 1, &wc) == 1) {
		if (wc.status) {
			check(wc.status == IBV_WC_WR_FLUSH_ERR, "%s", ibv_wc_status_str(wc.status));
			s->flushed++;
			continue;
		}
		check(!s->flushed, "a success behind what is flushed");
		if (wc.wr_id < RECVS) {
			check(wc.wr_id == s->sent++, "Send %u", (unsigned)wc.wr_id);
			continue;
		}
		check(wc.wr_id == RECVS + s->heard && s->heard < o->says &&
			      wc.byte_len == oob_message_len(o, s->heard) &&
			      !memcmp(s->in[s->heard], o->out[s->heard], wc.byte_len),
		      "message %u is altered", s->heard);
		s->heard++;
	}
}

void full_play(void)
{
	struct oob_side *small = &oob_side[0], *other = &oob_side[1];
	const unsigned places = 1 + (unsigned)draw_verbs(RECVS_OOB - 1);

	memset(&told, 0, sizeof told);
	oob_make(small, (int)places);
	if (!w.failed)
		oob_make(other, 2 * RECVS_OOB);
	if (w.failed)
		return;
	other->says = RECVS_OOB;
	oob_post(small);
	oob_post(other);
	oob_meet(small, other, false);
	oob_meet(other, small, false);
	oob_say(other);
	listen_until(kern.now + PATIENCE);
	check(all_told(), "%u, %u and %u are told of a queue that was lost", told.queue_lost,
	      told.failed[0], told.failed[1]);
	fetch_full_queue(small);
	fetch_full_queue(other);
	check(small->heard == places, "%u messages in a queue of %u", small->heard, places);
	check(other->sent >= places, "%u Sends, and %u were received", other->sent, places);
	oob_take_down(small);
	oob_take_down(other);
	check(told.queue_lost == 1 && told.failed[0] == 1 && told.failed[1] == 1,
	      "told %u, %u and %u times", told.queue_lost, told.failed[0], told.failed[1]);
	w.t->n[T_LOST_QUEUES]++;
}
