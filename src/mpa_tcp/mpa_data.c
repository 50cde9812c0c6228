/* SPDX-License-Identifier: BSD-2-Clause */
/* An MPA connection: FPDUs in and out, and the orderly end. */
#include "common/error.h"
#include "mpa_tcp/mpa_conn.h"
#include <errno.h>
#include <string.h>

/* For fairness, all sessions that are ready together read, show and write about so much in a turn,
 * and each of them at most, and may at least, so much. */
#define READ_ALL    (4096u * 1024)
#define READ_MOST   (1024u * 1024)
#define READ_LEAST  (64u * 1024)
#define READ_GENTLE (128u * 1024) /* with one call: an FPDU, and the rest of the one before */
#define WRITE_ALL   (4096u * 1024)
#define WRITE_LEAST (128u * 1024)
#define SHOW_ALL    8192u /* segments; 16 sessions show all that they read, also at 1500 octets */
#define PULL_MOST   2048u /* segments that one sends */
#define SHOW_MOST   512u
#define SHOW_LEAST  32u

static unsigned get_turn_share(const struct ddps_mpa_conn *c, unsigned all, unsigned least,
			       unsigned most)
{
	return ddps_loop_share(c->env->loop, all, least, most);
}

static bool is_mpa_waiting(const struct ddps_mpa_conn *c)
{
	return ddps_io_waits(c->env->loop, &c->io);
}

/* ---- receiving ---- */

static void begin_turn(struct ddps_mpa_conn *c)
{
	uint64_t now = ddps_loop_turn(c->env->loop);

	if (c->turn == now)
		return;
	c->turn = now;
	ddps_mpa_rx_turn(&c->rx, get_turn_share(c, SHOW_ALL, SHOW_LEAST, SHOW_MOST));
}

/* A valid FPDU: the peer is in full operation, so may we be [5044-7.1.2-15]. */
static void open_fence(struct ddps_mpa_conn *c)
{
	if (c->state != DDPS_MPA_FENCED)
		return;
	ddps_mpa_conn_step(c, DDPS_MPA_EV_FPDU_OK);
	if (c->deadline == DDPS_MPA_T_FIRST_FPDU)
		ddps_mpa_conn_deadline(c, DDPS_MPA_T_NONE, 0);
}

/* An upcall may have closed or freed the connection: the receiver has to stop then. */
static int judge_upcall(const struct ddps_mpa_conn *c, int above)
{
	return above < 0 || !ddps_mpa_alive(c) ? -1 : above;
}

static int sink_segment(void *user, const uint8_t *seg, size_t len)
{
	struct ddps_mpa_conn *c = user;

	open_fence(c);
	return judge_upcall(c, c->llp.data->rx_segment(c->llp.data_user, seg, len));
}

static size_t sink_direct(void *user, const uint8_t *hdr, size_t have, size_t seg_len)
{
	struct ddps_mpa_conn *c = user;

	/* The first one is judged as a whole. */
	if (c->state == DDPS_MPA_FENCED)
		return 0;
	return c->llp.data->rx_direct(c->llp.data_user, hdr, have, seg_len);
}

static int sink_direct_iov(void *user, size_t off, struct iovec *iov, int max)
{
	struct ddps_mpa_conn *c = user;
	int n = c->llp.data->rx_direct_iov(c->llp.data_user, off, iov, max);

	return ddps_mpa_alive(c) ? n : -1;
}

static int sink_direct_end(void *user)
{
	struct ddps_mpa_conn *c = user;

	return judge_upcall(c, c->llp.data->rx_direct_end(c->llp.data_user));
}

const struct ddps_mpa_rx_sink ddps_mpa_conn_sink = {
	.segment = sink_segment,
	.direct = sink_direct,
	.direct_iov = sink_direct_iov,
	.direct_end = sink_direct_end,
};

static void lost_before_first(struct ddps_mpa_conn *c)
{
	ddps_mpa_conn_lost(c, 0,
			   "peer closed before its first FPDU; what is queued cannot be sent");
}

static void lose_tx(struct ddps_mpa_conn *c)
{
	ddps_mpa_conn_lost(c, c->tx_errno,
			   c->tx_errno == ETIMEDOUT ? "the peer acknowledges nothing"
						    : "peer reset the connection");
}

static void on_fin(struct ddps_mpa_conn *c)
{
	bool truncated = !c->rx.dead && !ddps_mpa_rx_at_boundary(&c->rx);

	c->rd = DDPS_MPA_RD_EOF;
	if (c->wr == DDPS_MPA_WR_LOST && c->tx_errno) {
		lose_tx(c);
		return;
	}
	if (truncated) {
		ddps_mpa_conn_lost(c, 0, "peer closed the connection inside an FPDU, truncated");
		return;
	}
	ddps_mpa_conn_step(c, DDPS_MPA_EV_FIN);
	if (c->wr == DDPS_MPA_WR_LOST) { /* it closed in order, and is gone */
		ddps_mpa_conn_end(c, NULL);
		c->llp.up->peer_closed(c->llp.user);
		return;
	}
	if (c->state == DDPS_MPA_CLOSED) {
		ddps_mpa_conn_end(c, NULL);
		return;
	}
	if (c->wr == DDPS_MPA_WR_SHUT) {
		ddps_mpa_data_closed(c, ddps_now());
		return;
	}
	if (c->deadline == DDPS_MPA_T_FIRST_FPDU)
		ddps_mpa_conn_deadline(c, DDPS_MPA_T_NONE, 0);
	if (c->state == DDPS_MPA_MUTE && !c->rx.dead && c->held)
		lost_before_first(c);
	else
		c->llp.up->peer_closed(c->llp.user);
}

static void on_read_error(struct ddps_mpa_conn *c, int err)
{
	if (c->state == DDPS_MPA_STREAM) /* rejected; however it leaves is right */
		ddps_mpa_conn_end(c, NULL);
	else if (c->rx.dead || ddps_mpa_rx_at_boundary(&c->rx))
		ddps_mpa_conn_lost(c, err,
				   err == ETIMEDOUT ? "the peer's host answers nothing any more"
						    : "receive");
	else
		ddps_mpa_conn_lost(c, err, "receive, inside an FPDU, truncated");
}

static void on_fault(struct ddps_mpa_conn *c, const struct ddps_error *fault)
{
	struct ddps_error e = *fault;

	ddps_mpa_addr_text(&c->peer, e.peer, sizeof e.peer);
	if (!e.has_triple) { /* no memory */
		ddps_mpa_conn_end(c, &e);
		return;
	}
	ddps_log(&c->env->log, DDPS_LOG_WARN, "mpa", "%s: %s", e.peer, e.text);
	if (ddps_mpa_conn_step(c, DDPS_MPA_EV_FPDU_BAD) & DDPS_MPA_DO_TIMER_OFF)
		if (c->deadline == DDPS_MPA_T_FIRST_FPDU)
			ddps_mpa_conn_deadline(c, DDPS_MPA_T_NONE, 0);
	c->llp.up->fault(c->llp.user, &e);
}

/* One read; returns the octets it brought, 0: nothing more now, or it is over. */
static __attribute__((always_inline)) inline size_t read_once(struct ddps_mpa_conn *c)
{
	size_t asked = ddps_loop_gentle(c->env->loop) ? READ_GENTLE : DDPS_SCRATCH_LEN;
	struct iovec iov[DDPS_MPA_RX_IOV];
	struct ddps_error e;
	ssize_t n;
	int k;

	if (ddps_mpa_rx_is_fresh(&c->rx)) {
		asked = asked < c->rx.ask ? asked : c->rx.ask;
		*iov = (struct iovec){ c->env->scratch, asked };
		k = 1;
	} else {
		k = ddps_mpa_rx_want(&c->rx, c->env->scratch, asked, iov);
		if (!ddps_mpa_alive(c))
			return 0;
		asked = 0;
		for (int i = 0; i < k; i++)
			asked += iov[i].iov_len;
	}
	n = c->tcp->recv(c, iov, k);
	if (n <= 0) {
		if (n == 0)
			on_fin(c);
		else if (n != -EAGAIN)
			on_read_error(c, (int)-n);
		return 0;
	}
	if (ddps_mpa_rx_got(&c->rx, c->env->scratch, (size_t)n, &e) < 0)
		on_fault(c, &e);
	if (c->rx.stalled || c->rx.cut)
		return 0;
	/* A short read has emptied the socket; what comes later makes it readable again. */
	return (size_t)n < asked ? 0 : (size_t)n;
}

static inline bool may_read(const struct ddps_mpa_conn *c)
{
	return ddps_mpa_alive(c) && c->rd != DDPS_MPA_RD_EOF && !c->rx.stalled && !c->rx.cut &&
	       c->rx.share;
}

/* Behind the peer's FIN all that it sent is here, and stays here: EPIPE is what TCP says then. */
static bool has_it_all(const struct ddps_mpa_conn *c, int err)
{
	return c->rx.stalled && (c->rd == DDPS_MPA_RD_HUNG_UP || err == EPIPE);
}

void ddps_mpa_data_hangup(struct ddps_mpa_conn *c, int err)
{
	if (has_it_all(c, err)) {
		c->wr = DDPS_MPA_WR_LOST;
		c->tx_errno = err == EPIPE ? 0 : err; /* nothing of ours was lost by that */
		ddps_mpa_data_closing(c);
		return;
	}
	ddps_mpa_conn_lost(c, err ? err : ECONNRESET, "receive, while stalled");
}

void ddps_mpa_data_closing(struct ddps_mpa_conn *c)
{
	c->rd = DDPS_MPA_RD_HUNG_UP;
	c->llp.up->peer_closing(c->llp.user);
}

/* What was read and not shown yet. */
static void resume_reading(struct ddps_mpa_conn *c)
{
	struct ddps_error e;

	begin_turn(c);
	c->tcp->busy(c);
	if (ddps_mpa_rx_resume(&c->rx, &e) < 0)
		on_fault(c, &e);
	if (c->rx.cut) /* the socket may have no more to wake us by */
		ddps_task_post(c->env->loop, &c->task);
}

void ddps_mpa_data_resume(struct ddps_mpa_conn *c)
{
	c->resume = false;
	if (c->deadline == DDPS_MPA_T_STALL)
		ddps_mpa_conn_deadline(c, DDPS_MPA_T_NONE, 0);
	resume_reading(c);
	if (ddps_mpa_alive(c))
		ddps_mpa_data_advance(c);
}

void ddps_mpa_data_read(struct ddps_mpa_conn *c)
{
	size_t total = 0, most = READ_LEAST, n;

	if (c->rd == DDPS_MPA_RD_EOF) {
		int err = c->tcp->error(c);

		/* Woken anyway: the connection is gone. */
		ddps_mpa_conn_lost(c, err ? err : ECONNRESET, "after the peer's close");
		return;
	}
	begin_turn(c);
	if (c->rx.cut)
		resume_reading(c);
	while (may_read(c) && total < most) {
		n = read_once(c);
		if (c->held && ddps_mpa_alive(c)) /* answers do not wait for more input */
			ddps_mpa_data_advance(c);
		if (!n)
			break;
		total += n;
		if (total >= most)
			most = get_turn_share(c, READ_ALL, READ_LEAST, READ_MOST);
	}
	if (!ddps_mpa_alive(c))
		return;
	if (c->rx.cut)
		ddps_task_post(c->env->loop, &c->task);
	if (c->rx.part)
		ddps_mpa_rx_idle(&c->rx);
	if (!c->rx.share) /* what is there perhaps, not every TCP says a second time */
		ddps_mpa_conn_watch(c);
}

/* ---- sending ---- */

void ddps_mpa_data_send_failed(struct ddps_mpa_conn *c, int err)
{
	if (err == EINTR)
		return;
	c->wr = DDPS_MPA_WR_FULL;
	if (err == EAGAIN)
		return;
	if (err != EPIPE && err != ECONNRESET && err != ETIMEDOUT) {
		ddps_mpa_conn_fail(c, DDPS_E_SYSTEM, err, "send: %s", strerror(err));
		return;
	}
	/* Why it was reset may lie unread in the socket: see advance(). */
	c->wr = DDPS_MPA_WR_LOST;
	c->tx_errno = err;
	ddps_task_post(c->env->loop, &c->task);
}

size_t ddps_mpa_data_write(struct ddps_mpa_conn *c, size_t left)
{
	struct iovec *iov = NULL;
	int niov = ddps_mpa_tx_iov(&c->tx, &iov);
	ssize_t n = c->tcp->send(c, iov, niov);
	unsigned done;

	if (n < 0) {
		ddps_mpa_data_send_failed(c, (int)-n);
		return 0;
	}
	c->mulpdu_age += (uint64_t)n;
	if ((size_t)n < left)
		c->wr = DDPS_MPA_WR_FULL;
	done = ddps_mpa_tx_sent(&c->tx, (size_t)n);
	if (done)
		c->llp.data->tx_done(c->llp.data_user, done);
	return (size_t)n;
}

void ddps_mpa_data_fill_failed(struct ddps_mpa_conn *c, int err)
{
	ddps_mpa_conn_fail(c, err, 0,
			   err == DDPS_E_NOMEM ? "no memory to send"
					       : "segment is empty, inconsistent or too long");
}

/* Fill the batch; 0: there is nothing to send. */
static unsigned fill_batch(struct ddps_mpa_conn *c)
{
	int n;

	if (c->mulpdu_age > DDPS_MPA_MULPDU_AGE)
		ddps_mpa_conn_update_emss(c);
	n = ddps_mpa_tx_fill(&c->tx, c->llp.data->tx_next, c->llp.data_user, c->mulpdu);
	if (n < 0)
		ddps_mpa_data_fill_failed(c, n);
	return n > 0 ? (unsigned)n : 0;
}

/* true: everything is written and there is no more; where it is to be closed then. */
static bool pump_fpdus(struct ddps_mpa_conn *c)
{
	unsigned most = WRITE_LEAST;
	unsigned fpdus = ddps_mpa_tx_left(&c->tx) ? c->tx.batch->nfpdus : 0;
	uint64_t written = 0;
	bool drained = false;

	c->pumping = true;
	/* One that has posted meanwhile has its turn when the others had theirs. */
	if (is_mpa_waiting(c) && !ddps_loop_running(c->env->loop))
		c->wr = DDPS_MPA_WR_FULL;
	while (!drained && c->wr == DDPS_MPA_WR_OPEN && ddps_mpa_alive(c)) {
		size_t left = ddps_mpa_tx_left(&c->tx);
		unsigned n;

		if (!left || c->tx.begun) {
			/* Whatever has become ready since the last one was pulled was kicked. */
			if (!left && c->tx.dry && !c->held && !c->want_close) {
				ddps_mpa_tx_fini(&c->tx);
				break;
			}
			c->held = false;
			n = fill_batch(c);
			fpdus += n;
			drained = !n && !c->held;
			continue;
		}
		written += ddps_mpa_data_write(c, left);
		if (!ddps_mpa_alive(c))
			break;
		if (written > most)
			most = get_turn_share(c, WRITE_ALL, WRITE_LEAST, WRITE_ALL);
		if (written > most || fpdus > PULL_MOST ||
		    is_mpa_waiting(c)) /* the rest then, too */
			c->wr = DDPS_MPA_WR_FULL;
	}
	c->pumping = false;
	if (!c->open)
		ddps_mpa_tx_fini(&c->tx);
	ddps_llp_lend(c->env, &c->llp, ddps_mpa_tx_refers(&c->tx));
	return drained && ddps_mpa_alive(c);
}

/* ---- the end ---- */

#define ACKS_STEP_MS 1000u

/* When to look again: often at first, and once more when the time is over. */
static uint32_t get_acks_step(struct ddps_mpa_conn *c, uint64_t now)
{
	uint32_t step = c->acks_ms < 8 * ACKS_STEP_MS ? 1 + c->acks_ms / 8 : ACKS_STEP_MS;

	c->acks_ms += step;
	if (c->close_by && (c->close_by - now) / NSEC_PER_MSEC < step)
		step = (uint32_t)((c->close_by - now) / NSEC_PER_MSEC) + 1;
	return step;
}

/* TCP says nothing when it is so. */
void ddps_mpa_data_closed(struct ddps_mpa_conn *c, uint64_t now)
{
	int err = c->tcp->error(c);

	if (err) {
		ddps_mpa_conn_lost(c, err, "peer reset the connection behind its close");
	} else if (!c->tcp->unacked(c)) {
		ddps_mpa_conn_end(c, NULL);
	} else if (c->close_by && now >= c->close_by) {
		ddps_mpa_conn_fail(c, DDPS_E_TIMEDOUT, 0,
				   "close: the peer has not acknowledged all within %u ms",
				   c->p.close_ms);
	} else {
		ddps_mpa_conn_deadline(c, DDPS_MPA_T_ACKS, get_acks_step(c, now));
	}
}

static void send_fin(struct ddps_mpa_conn *c)
{
	c->tcp->fin(c);
	c->wr = DDPS_MPA_WR_SHUT;
	if (c->rd == DDPS_MPA_RD_EOF)
		ddps_mpa_data_closed(c, ddps_now());
}

/* Sending failed because the connection is gone: read to its end, then say so. */
static void drain_dead(struct ddps_mpa_conn *c)
{
	begin_turn(c);
	while (may_read(c))
		if (!read_once(c) && c->tx_errno) /* else its FIN is there, too */
			break;
	if (!ddps_mpa_alive(c))
		return;
	if (c->rx.cut || !c->rx.share) /* the rest in the next turn */
		ddps_task_post(c->env->loop, &c->task);
	else if (has_it_all(c, c->tx_errno)) /* until there are receives for it */
		ddps_mpa_conn_watch(c);
	else
		lose_tx(c);
}

void ddps_mpa_data_advance(struct ddps_mpa_conn *c)
{
	bool drained = false;

	if ((c->startup && !ddps_mpa_setup_flush(c)) || !ddps_mpa_reads_stream(c)) {
		ddps_mpa_conn_watch(c);
		return;
	}
	if (c->wr == DDPS_MPA_WR_LOST) {
		drain_dead(c);
		return;
	}
	if (c->state == DDPS_MPA_FULL && c->wr == DDPS_MPA_WR_OPEN)
		drained = pump_fpdus(c);
	else if (c->state == DDPS_MPA_FENCED)
		drained = !c->held;
	else if (c->state == DDPS_MPA_MUTE && c->held && c->rd == DDPS_MPA_RD_EOF && !c->rx.dead)
		lost_before_first(c);
	else if (c->state == DDPS_MPA_MUTE)
		drained = true;
	if (drained && c->want_close && c->wr != DDPS_MPA_WR_SHUT)
		send_fin(c);
	ddps_mpa_conn_watch(c);
}
