/* SPDX-License-Identifier: BSD-2-Clause */
/* An MPA connection: its life, its timers, and the calls from above. */
#include "common/error.h"
#include "common/term_codes.h"
#include "mpa_tcp/mpa_conn.h"
#include "mpa_tcp/mpa_fpdu.h"
#include "mpa_tcp/mpa_mulpdu.h"
#include "mpa_tcp/mpa_tls.h"
#include "mpa_tcp/shm/mpa_near.h"
#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static void on_timer(void *user);
static void run_mpa_task(void *user);

/* ---- birth and death ---- */

struct ddps_mpa_conn *ddps_mpa_conn_new(struct ddps_env *env, const struct ddps_mpa_tcp *tcp,
					const struct sockaddr *peer)
{
	struct ddps_mpa_conn *c = calloc(1, sizeof *c);

	if (!c)
		return NULL;
	c->startup = calloc(1, sizeof *c->startup);
	if (!c->startup) {
		free(c);
		return NULL;
	}
	c->startup->in_need = DDPS_MPA_HDR_LEN;
	c->llp.ops = &ddps_mpa_ops;
	c->llp.half_close = true;
	c->llp.has_codes = true;
	c->env = env;
	c->tcp = tcp;
	c->open = true;
	c->timer = (struct ddps_timer){ .fn = on_timer, .user = c };
	c->task = (struct ddps_task){ .fn = run_mpa_task, .user = c };
	ddps_mpa_addr_set(&c->peer, peer);
	c->mulpdu = DDPS_MPA_MULPDU_MIN;
	ddps_mpa_rx_init(&c->rx, &ddps_mpa_conn_sink, c);
	ddps_mpa_tx_init(&c->tx);
	c->rx.spares = &env->mpa_rx;
	return c;
}

static void close_tcp(struct ddps_mpa_conn *c)
{
	ddps_timer_stop(c->env->loop, &c->timer);
	ddps_mpa_near_drop(c);
	if (c->open)
		c->tcp->close(c);
	c->open = false;
}

void ddps_mpa_conn_destroy(struct ddps_mpa_conn *c)
{
	if (c->owner)
		c->owner->settled(c);
	if (c->listed)
		LIST_REMOVE(c, of_listener);
	ddps_task_cancel(c->env->loop, &c->task);
	close_tcp(c);
	ddps_mpa_rx_fini(&c->rx);
	ddps_mpa_tx_fini(&c->tx);
	ddps_llp_lend(c->env, &c->llp, false);
	if (c->tcp->release)
		c->tcp->release(c);
	free(c->startup);
	free(c);
}

/* What leave_mpa() has put off. */
static __attribute__((noinline)) void tidy(struct ddps_mpa_conn *c)
{
	struct ddps_mpa_startup *s = c->startup;

	if (c->zombie) {
		ddps_mpa_conn_destroy(c);
		return;
	}
	/* Not earlier: private data that was handed up lies in it. */
	if (!c->open || (ddps_mpa_reads_stream(c) && s->out_sent == s->out_len)) {
		free(s);
		c->startup = NULL;
	}
}

/* Around everything that can call up; after leave_mpa() @c may be gone. */
static inline void enter_mpa(struct ddps_mpa_conn *c)
{
	c->depth++;
}

static __attribute__((always_inline)) inline void leave_mpa(struct ddps_mpa_conn *c)
{
	if (!--c->depth && (c->zombie || c->startup))
		tidy(c);
}

unsigned ddps_mpa_conn_step(struct ddps_mpa_conn *c, enum ddps_mpa_event ev)
{
	enum ddps_mpa_state old = c->state;
	unsigned acts = ddps_mpa_sm_step(&c->state, ev);
	char peer[72];

	if (c->state != old && c->env->log.fn) {
		ddps_mpa_addr_text(&c->peer, peer, sizeof peer);
		ddps_log(&c->env->log, DDPS_LOG_DEBUG, "mpa", "%s: %s -%s-> %s", peer,
			 ddps_mpa_state_name(old), ddps_mpa_event_name(ev),
			 ddps_mpa_state_name(c->state));
	}
	return acts;
}

/* The peer would learn by it that all it has sent was taken, and that our last FPDU is whole.  Or it has learnt that
 * from TCP, behind our FIN, of what nobody takes any more. */
static bool would_fin_mislead(const struct ddps_mpa_conn *c)
{
	return (ddps_mpa_reads_stream(c) || !c->startup) &&
	       (c->wr != DDPS_MPA_WR_SHUT || (!c->rx.dead && !ddps_mpa_rx_at_boundary(&c->rx)));
}

static void end_mpa_conn(struct ddps_mpa_conn *c, const struct ddps_error *e)
{
	struct ddps_error why;

	/* A peer that is lost has ended it itself; what is on its way to it, an alert of TLS perhaps, may still arrive. */
	if (e && e->code && e->code != DDPS_E_RESET && would_fin_mislead(c))
		c->tcp->reset(c);
	if (e)
		c->error = *e;
	if (e && e->code && ddps_mpa_tls_why(c, &why)) {
		c->error.code = why.code;
		c->error.sys_errno = why.sys_errno;
		memcpy(c->error.text, why.text, sizeof c->error.text);
	}
	ddps_mpa_addr_text(&c->peer, c->error.peer, sizeof c->error.peer);
	if (c->state != DDPS_MPA_CLOSED)
		ddps_mpa_conn_step(c, DDPS_MPA_EV_ABORT);
	ddps_log(&c->env->log, DDPS_LOG_INFO, "mpa", "%s: %s", c->error.peer,
		 e ? c->error.text : "closed");
	ddps_mpa_told_end(c);
	if (c->owner)
		c->owner->settled(c);
	close_tcp(c);
	if (!c->pumping) { /* else the batch is in use up the stack */
		ddps_mpa_tx_fini(&c->tx);
		ddps_llp_lend(c->env, &c->llp, false);
	}
}

void ddps_mpa_conn_end(struct ddps_mpa_conn *c, const struct ddps_error *e)
{
	if (!c->open)
		return;
	end_mpa_conn(c, e);
	ddps_task_post(c->env->loop, &c->task);
}

void ddps_mpa_conn_fail(struct ddps_mpa_conn *c, int code, int sys_errno, const char *fmt, ...)
{
	struct ddps_error e = { .code = code, .sys_errno = sys_errno };
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(e.text, sizeof e.text, fmt, ap);
	va_end(ap);
	ddps_mpa_conn_end(c, &e);
}

void ddps_mpa_conn_lost(struct ddps_mpa_conn *c, int sys_errno, const char *what)
{
	int code = sys_errno ? ddps_err_from_errno(sys_errno) : DDPS_E_RESET;
	struct ddps_error e =
		ddps_error_triple(code, ddps_term_triple(DDPS_TERM_MPA_CLOSED), "%s%s%s", what,
				  sys_errno ? ": " : "", sys_errno ? strerror(sys_errno) : "");

	e.sys_errno = sys_errno;
	ddps_mpa_conn_step(c, DDPS_MPA_EV_LOST);
	ddps_mpa_conn_end(c, &e);
}

/* ---- what to wait for ---- */

void ddps_mpa_conn_deadline(struct ddps_mpa_conn *c, enum ddps_mpa_deadline what, uint32_t ms)
{
	c->deadline = what;
	ddps_timer_after(c->env->loop, &c->timer, ms);
}

/* Nothing was read that could call for more than the layers above have asked for. */
static inline bool is_quiet(const struct ddps_mpa_conn *c)
{
	return c->state == DDPS_MPA_FULL && !c->held && !c->startup && c->wr == DDPS_MPA_WR_OPEN &&
	       !c->want_close && c->rd != DDPS_MPA_RD_EOF && !c->rx.stalled;
}

void ddps_mpa_conn_watch(struct ddps_mpa_conn *c)
{
	const struct ddps_mpa_startup *s = c->startup;
	unsigned events = 0;

	if (!c->open || (c->calm && is_quiet(c)))
		return;
	c->calm = false;
	if (c->state == DDPS_MPA_REPLY_ULP || ddps_mpa_near_waits(c)) {
		/* What follows the Reply stays in TCP until open(). */
		c->tcp->unwatch(c);
		return;
	}
	if (c->wr == DDPS_MPA_WR_SHUT ? c->rx.stalled || c->rd == DDPS_MPA_RD_EOF
				      : c->rx.stalled && c->wr == DDPS_MPA_WR_LOST) {
		/* Nothing to read or send; the peer's end would be reported without end. */
		c->tcp->unwatch(c);
		return;
	}
	if (!ddps_mpa_connecting(c) && c->rd != DDPS_MPA_RD_EOF &&
	    (!c->rx.stalled || (c->rx.hold_room && c->rd == DDPS_MPA_RD_OPEN)))
		events |= DDPS_MPA_IN; /* else TCP's window closes */
	if (c->rx.stalled && c->rd == DDPS_MPA_RD_OPEN) {
		events |= DDPS_MPA_PEER_FIN;
		ddps_mpa_ahead_soon(c);
	}
	if (ddps_mpa_connecting(c) || c->wr == DDPS_MPA_WR_FULL || (s && s->out_sent < s->out_len))
		events |= DDPS_MPA_OUT;
	if (c->tcp->watch(c, events, ddps_mpa_reads_stream(c)) < 0)
		ddps_mpa_conn_fail(c, DDPS_E_SYSTEM, errno, "epoll: %s", strerror(errno));
	else
		c->calm = c->tcp->watch_keeps && is_quiet(c);
}

void ddps_mpa_conn_set_mulpdu(struct ddps_mpa_conn *c)
{
	c->mulpdu = (uint32_t)ddps_mpa_mulpdu(c->emss, c->tx.markers, c->p.max_mulpdu);
}

void ddps_mpa_conn_update_emss(struct ddps_mpa_conn *c)
{
	c->emss = c->tcp->emss(c);
	c->mulpdu_age = 0;
	ddps_mpa_conn_set_mulpdu(c);
}

void ddps_mpa_conn_ready(struct ddps_mpa_conn *c, unsigned events)
{
	enter_mpa(c);
	if (events == DDPS_MPA_IN && c->state == DDPS_MPA_FULL && !c->rx.stalled) {
		ddps_mpa_data_read(c); /* as nearly always */
	} else if (!ddps_mpa_reads_stream(c)) {
		ddps_mpa_setup_io(c);
	} else {
		if ((events & DDPS_MPA_OUT) && c->wr == DDPS_MPA_WR_FULL)
			c->wr = DDPS_MPA_WR_OPEN;
		if (c->rx.stalled && (events & DDPS_MPA_BROKEN))
			ddps_mpa_data_hangup(c, c->tcp->error(c));
		else if (c->rx.stalled && (events & DDPS_MPA_PEER_FIN))
			ddps_mpa_data_closing(c);
		else if (c->rx.stalled && (events & DDPS_MPA_IN))
			ddps_mpa_ahead_read(c);
		else if (!c->rx.stalled && (events & (DDPS_MPA_IN | DDPS_MPA_BROKEN)))
			ddps_mpa_data_read(c);
	}
	if (ddps_mpa_alive(c) && ((events & DDPS_MPA_OUT) || !is_quiet(c)))
		ddps_mpa_data_advance(c);
	leave_mpa(c);
}

static void on_timer(void *user)
{
	struct ddps_mpa_conn *c = user;
	enum ddps_mpa_deadline what = c->deadline;

	enter_mpa(c);
	c->deadline = DDPS_MPA_T_NONE;
	if (what != DDPS_MPA_T_ACKS && what != DDPS_MPA_T_STALL)
		ddps_mpa_conn_step(c, DDPS_MPA_EV_TIMEOUT);
	switch (what) {
	case DDPS_MPA_T_ACKS:
		ddps_mpa_data_closed(c, ddps_now());
		break;
	case DDPS_MPA_T_CONNECT:
		ddps_mpa_conn_fail(c, DDPS_E_TIMEDOUT, 0, "connect: no answer within %u ms",
				   c->p.connect_ms);
		break;
	case DDPS_MPA_T_SETUP:
		ddps_mpa_conn_fail(c, DDPS_E_TIMEDOUT, 0, "%s%s within %u ms",
				   ddps_mpa_near_waits(c) ? "no word on shared memory, so no MPA "
				   : ddps_mpa_tls_shaking(c) ? "no TLS handshake, so no MPA "
							     : "no whole MPA ",
				   c->initiator ? "Reply" : "Request", c->p.setup_ms);
		break;
	case DDPS_MPA_T_FIRST_FPDU:
		ddps_mpa_conn_fail(c, DDPS_E_TIMEDOUT, 0, "no first FPDU within %u ms",
				   c->p.first_fpdu_ms);
		break;
	case DDPS_MPA_T_CLOSE:
		/* The kernel delivers what it has, to the end, to a peer that is only late. */
		if (!would_fin_mislead(c) && !c->tcp->unacked(c))
			c->tcp->reset(c);
		ddps_mpa_conn_fail(c, DDPS_E_TIMEDOUT, 0, "close: the peer did not %s within %u ms",
				   c->rd == DDPS_MPA_RD_EOF ? "take all" : "close", c->p.close_ms);
		break;
	case DDPS_MPA_T_STALL:
		ddps_mpa_ahead_read(c);
		break;
	case DDPS_MPA_T_LINGER:
	case DDPS_MPA_T_NONE:
		ddps_mpa_conn_end(c, NULL);
		break;
	}
	leave_mpa(c);
}

static void run_mpa_task(void *user)
{
	struct ddps_mpa_conn *c = user;

	enter_mpa(c);
	if (c->open && (c->resume || c->rx.cut))
		ddps_mpa_data_resume(c);
	else if (c->open)
		ddps_mpa_data_advance(c);
	else if (c->llp.up)
		c->llp.up->closed(c->llp.user, &c->error);
	else
		c->zombie = true; /* failed before anyone above had it */
	leave_mpa(c);
}

/* ---- calls from above ---- */

static struct ddps_mpa_conn *get_mpa_conn(struct ddps_llp *llp)
{
	return (struct ddps_mpa_conn *)llp;
}

static int mpa_op_answer(struct ddps_llp *llp, const struct ddps_setup *s,
			 const struct ddps_llp_param *p)
{
	struct ddps_mpa_conn *c = get_mpa_conn(llp);
	int err;

	enter_mpa(c);
	err = ddps_mpa_setup_answer(c, s, p);
	leave_mpa(c);
	return err;
}

static void mpa_op_open(struct ddps_llp *llp)
{
	ddps_mpa_setup_open(get_mpa_conn(llp));
}

static void mpa_op_kick(struct ddps_llp *llp)
{
	struct ddps_mpa_conn *c = get_mpa_conn(llp);

	c->held = true;
	/* From inside one of our own callbacks it goes out at the end of that.  One that is lost has
	 * a task, which shows what came before: nothing is shown from in here. */
	if (c->depth || !c->open || c->wr == DDPS_MPA_WR_LOST ||
	    (c->state != DDPS_MPA_FULL /* the machine says DO_SEND there */ &&
	     ddps_mpa_conn_step(c, DDPS_MPA_EV_POST) != DDPS_MPA_DO_SEND)) {
		if (c->state == DDPS_MPA_MUTE)
			ddps_task_post(c->env->loop, &c->task);
		return;
	}
	enter_mpa(c);
	if (!ddps_mpa_straight_send(c))
		ddps_mpa_data_advance(c);
	leave_mpa(c);
}

static size_t mpa_op_mulpdu(struct ddps_llp *llp)
{
	return get_mpa_conn(llp)->mulpdu;
}

static void mpa_op_resume(struct ddps_llp *llp)
{
	struct ddps_mpa_conn *c = get_mpa_conn(llp);

	if (!c->rx.stalled || !c->open)
		return;
	c->resume = true;
	ddps_task_post(c->env->loop, &c->task);
}

static size_t mpa_op_held(const struct ddps_llp *llp)
{
	return ddps_mpa_rx_kept(&((const struct ddps_mpa_conn *)llp)->rx);
}

static int mpa_op_keep_copy(struct ddps_llp *llp)
{
	struct ddps_mpa_conn *c = get_mpa_conn(llp);
	int err = ddps_mpa_tx_keep_copy(&c->tx);

	ddps_llp_lend(c->env, llp, ddps_mpa_tx_refers(&c->tx));
	return err;
}

static void mpa_op_shutdown(struct ddps_llp *llp)
{
	struct ddps_mpa_conn *c = get_mpa_conn(llp);

	if (!c->open || c->want_close || c->state == DDPS_MPA_STREAM)
		return;
	if (!ddps_mpa_reads_stream(c)) {
		ddps_mpa_conn_fail(c, DDPS_E_CLOSED, 0, "closed by this side during setup");
		return;
	}
	c->want_close = true;
	ddps_mpa_conn_deadline(c, DDPS_MPA_T_CLOSE, c->p.close_ms);
	c->close_by = c->p.close_ms ? c->timer.due : 0;
	ddps_task_post(c->env->loop, &c->task);
}

static bool mpa_op_leaving(const struct ddps_llp *llp)
{
	const struct ddps_mpa_conn *c = (const struct ddps_mpa_conn *)llp;

	return c->open && c->want_close && (c->wr != DDPS_MPA_WR_SHUT || c->tcp->unacked(c));
}

static void mpa_op_abort(struct ddps_llp *llp)
{
	struct ddps_mpa_conn *c = get_mpa_conn(llp);

	if (c->open && !would_fin_mislead(c))
		c->tcp->reset(c);
	ddps_mpa_conn_fail(c, DDPS_E_CLOSED, 0, "aborted by this side");
}

static void mpa_op_free(struct ddps_llp *llp)
{
	struct ddps_mpa_conn *c = get_mpa_conn(llp);

	/* A rejection is an end in order: nothing of ours is torn.  Behind our FIN neither: the system
	 * delivers what it was given. */
	if (c->open && c->wr != DDPS_MPA_WR_SHUT && (!c->initiator || c->state != DDPS_MPA_STREAM))
		c->tcp->reset(c);
	if (c->open) /* nobody is to be informed */
		end_mpa_conn(c, NULL);
	ddps_task_cancel(c->env->loop, &c->task);
	c->zombie = true;
	if (!c->depth)
		ddps_mpa_conn_destroy(c);
}

static void mpa_op_info(struct ddps_llp *llp, struct ddps_conn_info *info)
{
	const struct ddps_mpa_conn *c = get_mpa_conn(llp);

	info->transport = DDPS_TRANSPORT_TCP;
	info->local_addr = ddps_addr_of(&c->local.sa);
	info->peer_addr = ddps_addr_of(&c->peer.sa);
	if (!info->local_addr.family)
		ddps_mpa_addr_text(&c->local, info->local, sizeof info->local);
	if (!info->peer_addr.family)
		ddps_mpa_addr_text(&c->peer, info->peer, sizeof info->peer);
	info->mulpdu = c->mulpdu;
	info->mpa.rev = c->rev;
	info->mpa.crc = c->rx.crc;
	info->mpa.markers_tx = c->tx.markers;
	info->mpa.markers_rx = c->rx.markers;
	if (c->tcp->info)
		c->tcp->info(c, info);
}

static int op_tcp_stats(const struct ddps_llp *llp, struct ddps_llp_tcp *st)
{
	const struct ddps_mpa_conn *c = (const struct ddps_mpa_conn *)llp;

	return c->open ? c->tcp->stats(c, st) : DDPS_E_STATE;
}

static bool op_unanswered(struct ddps_llp *llp, uint64_t *most)
{
	struct ddps_llp_tcp st;

	if (op_tcp_stats(llp, &st) || !st.asked)
		return false;
	*most = st.heard_ns;
	return true;
}

static const struct ddps_who *op_peer_id(const struct ddps_llp *llp)
{
	return ddps_mpa_tls_peer((const struct ddps_mpa_conn *)llp);
}

const struct ddps_llp_ops ddps_mpa_ops = {
	.answer = mpa_op_answer,
	.open = mpa_op_open,
	.kick = mpa_op_kick,
	.mulpdu = mpa_op_mulpdu,
	.resume = mpa_op_resume,
	.held = mpa_op_held,
	.keep_copy = mpa_op_keep_copy,
	.shutdown = mpa_op_shutdown,
	.leaving = mpa_op_leaving,
	.abort = mpa_op_abort,
	.free = mpa_op_free,
	.info = mpa_op_info,
	.tcp_stats = op_tcp_stats,
	.peer_id = op_peer_id,
	.unanswered = op_unanswered,
};
