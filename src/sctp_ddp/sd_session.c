/* SPDX-License-Identifier: BSD-2-Clause */
/* Sessions: the operations of the lower-layer contract over SCTP. */
#include "common/uri.h"
#include "sctp_ddp/sd_assoc.h"
#include <stdlib.h>
#include <string.h>

static void session_task(void *user);
static void session_timer(void *user);
static const struct ddps_llp_ops session_ops;

struct ddps_sd_session *ddps_sd_session_new(struct ddps_env *env, bool initiator)
{
	struct ddps_sd_session *s = calloc(1, sizeof(*s));

	if (!s)
		return NULL;
	s->llp.ops = &session_ops;
	s->env = env;
	s->initiator = initiator;
	s->task = (struct ddps_task){ .fn = session_task, .user = s };
	s->timer = (struct ddps_timer){ .fn = session_timer, .user = s };
	return s;
}

void ddps_sd_session_attach(struct ddps_sd_session *s, struct ddps_sd_carrier *c,
			    struct ddps_sd_pair *p)
{
	if (!s->carrier) {
		s->carrier = c;
		c->nsessions++;
		ddps_sd_carrier_idle(c);
	}
	s->pair = p;
	if (p)
		p->sess = s;
}

static void detach_session(struct ddps_sd_session *s)
{
	struct ddps_sd_carrier *c = s->carrier;

	ddps_timer_stop(s->env->loop, &s->timer);
	ddps_task_cancel(s->env->loop, &s->task);
	if (!c)
		return;
	if (s->pair)
		ddps_sd_pair_detached(s->pair);
	else
		TAILQ_REMOVE(&c->waiting, s, link);
	s->pair = NULL;
	s->carrier = NULL;
	c->nsessions--;
	ddps_sd_carrier_idle(c);
}

void ddps_sd_session_end(struct ddps_sd_session *s, const struct ddps_error *e)
{
	struct ddps_error error = *e;

	s->ended = true;
	if (!error.peer[0] && s->carrier)
		memcpy(error.peer, ddps_sd_carrier_peer(s->carrier).text, sizeof error.peer);
	ddps_error_keep(&s->error, &error);
	s->outlives = false;
	ddps_sd_order_reset(&s->rest);
	detach_session(s);
	ddps_task_post(s->env->loop, &s->task);
}

/* ---- what outlives the association ---- */

bool ddps_sd_session_has_all(const struct ddps_sd_session *s)
{
	const struct ddps_sd_pair *p = s->pair;

	return s->opened && !s->rx_dead && p->closing &&
	       ddps_sd_order_has_upto(&p->rx, p->closing_ssn);
}

bool ddps_sd_session_outlive(struct ddps_sd_session *s, const struct ddps_error *why)
{
	struct ddps_sd_pair *p = s->pair;

	if (!ddps_sd_session_has_all(s))
		return false;
	if (ddps_sd_pair_data_unacked(p) && why->code != DDPS_E_CLOSED)
		ddps_error_keep(&s->error, why);
	s->rest = p->rx;
	s->outlives = true;
	p->carrier->held -= p->rx.octets;
	p->rx = (struct ddps_sd_order){ 0 };
	detach_session(s);
	if (!s->stalled)
		ddps_task_post(s->env->loop, &s->task);
	return true;
}

/* The segment @h of the rest; false: @s is gone. */
static bool show_rest(struct ddps_sd_session *s, struct ddps_sd_held *h,
		      const struct ddps_sd_msg *m)
{
	bool freed = false;
	int verdict = 0;

	/* cppcheck-suppress autoVariables ; who sees it later: nobody, it is NULL again or @s is gone */
	s->freed = &freed;
	if (!s->rx_dead)
		verdict = s->llp.data->rx_segment(s->llp.data_user, m->data, m->len);
	if (!freed) {
		s->freed = NULL;
		s->rx_dead |= verdict < 0;
		s->stalled = verdict == DDPS_LLP_HOLD && s->outlives;
	}
	if (!freed && s->stalled)
		ddps_sd_order_untake(&s->rest, h);
	else
		free(h);
	return !freed;
}

/* A control message of the rest, the peer's Terminate if it is to be one. */
static void end_rest(struct ddps_sd_session *s, const struct ddps_sd_msg *m)
{
	const bool over = !m->bad && m->code == DDPS_SD_TERMINATE;
	struct ddps_error e =
		over ? ddps_error_make(0, 0, "session closed") : ddps_sd_illegal(m, DDPS_SD_OPEN);

	if (s->error.code) /* what this side had sent is lost */
		e = ddps_error_kept(&s->error);
	ddps_sd_session_end(s, &e);
	if (over)
		s->llp.up->peer_closed(s->llp.user);
}

static void give_rest(struct ddps_sd_session *s)
{
	while (s->outlives) {
		struct ddps_sd_held *h = ddps_sd_order_take(&s->rest);
		struct ddps_sd_msg m;

		/* It was decoded before it was held, and is there: all is. */
		ddps_sd_decode(&m, h->ppid, h->data, h->len);
		if (!m.segment) {
			end_rest(s, &m);
			free(h);
			return;
		}
		if (!show_rest(s, h, &m))
			return;
		if (s->stalled) {
			s->llp.up->peer_closing(s->llp.user);
			return;
		}
	}
}

/* Ends the session here with @e, if that is wanted, and on the wire. */
static void give_up_sd_session(struct ddps_sd_session *s, const struct ddps_error *e)
{
	struct ddps_sd_pair *p = s->pair;

	if (e)
		ddps_sd_session_end(s, e);
	else
		detach_session(s);
	if (p)
		ddps_sd_pair_give_up(p);
}

/* Nobody else needs the association, and a peer that does not read sees its end immediately.  From the
 * loop: one of its messages may be on its way up just now. */
static void give_up_all(struct ddps_sd_session *s, const struct ddps_error *e)
{
	if (s->pair && s->carrier->nsessions == 1) {
		s->carrier->stuck = true;
		ddps_task_post(s->env->loop, &s->carrier->task);
	}
	give_up_sd_session(s, e);
}

/* As TCP would: alone on its association, and not behind a close in order of our own.  Nor before our Accept
 * has arrived: whoever dials would begin the session again. */
static bool may_reset(const struct ddps_sd_session *s)
{
	const struct ddps_sd_pair *p = s->pair;

	return p && s->opened && p->carrier->state == DDPS_SD_UP && p->carrier->nsessions == 1 &&
	       p->carrier->npairs == 1 && !p->ctl && p->carrier->acked >= p->ctl_seq &&
	       (p->sm.state == DDPS_SD_OPEN || p->sm.state == DDPS_SD_PEER_DONE);
}

/* @s is given up, and something that the peer has sent may be lost by that: it has to see that, if the wire can say it.
 * RFC 5043 has one message for this and for an end in order.  @soon: the association is in use up the stack. */
static void give_up_alone(struct ddps_sd_session *s, const struct ddps_error *e, bool soon)
{
	struct ddps_sd_carrier *c = s->carrier;
	bool resets = may_reset(s);

	if (resets) /* so that no Terminate leaves */
		c->state = DDPS_SD_GOING;
	give_up_sd_session(s, e);
	if (resets)
		ddps_sd_carrier_reset(c, soon);
}

void ddps_sd_session_fail(struct ddps_sd_session *s, const struct ddps_error *e)
{
	give_up_alone(s, e, true);
}

/* ---- task and timer ---- */

static void session_task(void *user)
{
	struct ddps_sd_session *s = user;

	struct ddps_error error;

	if (s->ended) {
		error = ddps_error_kept(&s->error);
		s->llp.up->closed(s->llp.user, &error);
	} else if (s->outlives) {
		give_rest(s);
	} else {
		ddps_sd_rx_resume(s->pair);
	}
}

static void timer_after(struct ddps_sd_session *s, uint32_t ms)
{
	ddps_timer_after(s->env->loop, &s->timer, ms);
}

void ddps_sd_session_connect_timer(struct ddps_sd_session *s)
{
	timer_after(s, s->param.connect_ms);
}

static void session_timer(void *user)
{
	struct ddps_sd_session *s = user;
	const struct ddps_sd_carrier *c = s->carrier;
	struct ddps_error e;

	if (!s->pair) {
		e = ddps_error_make(DDPS_E_TIMEDOUT, 0, "no SCTP association in %u ms",
				    s->param.connect_ms);
		if (c && c->assoc && c->b->late)
			c->b->late(c->assoc, &e);
	} else {
		e = ddps_error_make(DDPS_E_TIMEDOUT, 0, "the peer did not %s in %u ms",
				    s->pair->sm.state == DDPS_SD_DRAIN ? "acknowledge all"
								       : "close",
				    s->param.close_ms);
	}
	give_up_all(s, &e);
}

/* ---- operations ---- */

static struct ddps_sd_session *from_llp(struct ddps_llp *llp)
{
	return (struct ddps_sd_session *)llp;
}

static int sd_op_answer(struct ddps_llp *llp, const struct ddps_setup *setup,
			const struct ddps_llp_param *param)
{
	struct ddps_sd_session *s = from_llp(llp);
	struct ddps_sd_pair *p = s->pair;
	/* Of the others none needs a length. */
	uint16_t code = setup->reject ? DDPS_SD_ENH_REJECT : DDPS_SD_ENH_ACCEPT;

	if (!p)
		return DDPS_E_CLOSED;
	if (p->sm.state != DDPS_SD_P1)
		return DDPS_E_STATE;
	if (setup->pd_len > DDPS_SD_PD_MAX)
		return DDPS_E_TOO_LONG;
	if (setup->enhanced != p->sm.enhanced ||
	    (setup->enhanced && !ddps_sd_pd_ok(code, setup->pd_len)))
		return DDPS_E_INVAL;
	if (setup->pd_len) {
		p->pd = malloc(setup->pd_len);
		if (!p->pd)
			return DDPS_E_NOMEM;
		memcpy(p->pd, setup->pd, setup->pd_len);
	}
	p->pd_len = setup->pd_len;
	s->param = *param;
	ddps_sd_carrier_refresh(p->carrier);
	ddps_sd_pair_step(p, setup->reject ? DDPS_SD_EV_ULP_REJECT : DDPS_SD_EV_ULP_ACCEPT, NULL,
			  NULL);
	return 0;
}

static void sd_op_open(struct ddps_llp *llp)
{
	struct ddps_sd_session *s = from_llp(llp);

	if (!s->pair || s->opened)
		return;
	s->opened = true;
	/* What was held meanwhile is delivered from the loop, or by the caller of answer(). */
	if (s->pair->rx.count)
		ddps_task_post(s->env->loop, &s->task);
	if (s->pair->want_seg)
		ddps_sd_tx_segments(s->pair);
}

static void sd_op_kick(struct ddps_llp *llp)
{
	struct ddps_sd_session *s = from_llp(llp);
	struct ddps_sd_pair *p = s->pair;

	if (!p)
		return;
	p->want_seg = true;
	ddps_sd_tx_kick(p);
}

static size_t sd_op_mulpdu(struct ddps_llp *llp)
{
	struct ddps_sd_session *s = from_llp(llp);

	return ddps_sd_mulpdu(s->carrier ? s->carrier->max_user_data : 0, s->param.max_mulpdu);
}

static void sd_op_resume(struct ddps_llp *llp)
{
	struct ddps_sd_session *s = from_llp(llp);

	if ((!s->pair && !s->outlives) || !s->stalled)
		return;
	s->stalled = false;
	ddps_task_post(s->env->loop, &s->task);
}

static size_t sd_op_held(const struct ddps_llp *llp)
{
	const struct ddps_sd_session *s = (const struct ddps_sd_session *)llp;

	return s->pair ? s->pair->rx.octets : s->rest.octets;
}

static int sd_op_keep_copy(struct ddps_llp *llp)
{
	struct ddps_sd_session *s = from_llp(llp);

	int err = s->pair ? ddps_sd_tx_keep_copy(s->pair) : 0;

	if (!err)
		ddps_llp_lend(s->env, llp, false);
	return err;
}

static void sd_op_abort(struct ddps_llp *llp)
{
	struct ddps_sd_session *s = from_llp(llp);
	struct ddps_error e = ddps_error_make(DDPS_E_CLOSED, 0, "aborted by this side");

	if (s->ended)
		return;
	if (s->carrier && s->carrier->blocked) /* a Terminate would not leave */
		give_up_all(s, &e);
	else
		give_up_alone(s, &e, false);
}

static void sd_op_shutdown(struct ddps_llp *llp)
{
	struct ddps_sd_session *s = from_llp(llp);
	struct ddps_sd_pair *p = s->pair;

	if (s->shutting)
		return;
	if (!p || !s->opened || (p->sm.state != DDPS_SD_OPEN && p->sm.state != DDPS_SD_PEER_DONE)) {
		sd_op_abort(llp); /* nothing is open that could be closed in order */
		return;
	}
	s->shutting = true;
	timer_after(s, s->param.close_ms);
	p->want_seg = true; /* asks tx_next until it says 0, then the Terminate is due */
	ddps_sd_tx_segments(p);
}

static bool sd_op_leaving(const struct ddps_llp *llp)
{
	const struct ddps_sd_session *s = (const struct ddps_sd_session *)llp;
	const struct ddps_sd_pair *p = s->pair;

	if (!s->shutting || !p)
		return false;
	return !ddps_sd_pair_said_all(p) || (p->carrier->b->acks && ddps_sd_pair_unacked(p));
}

static void sd_op_free(struct ddps_llp *llp)
{
	struct ddps_sd_session *s = from_llp(llp);

	give_up_alone(s, NULL, false);
	if (s->freed)
		*s->freed = true;
	ddps_sd_order_reset(&s->rest);
	ddps_llp_lend(s->env, llp, false);
	ddps_error_drop(&s->error);
	free(s->pd);
	free(s);
}

static void sd_op_info(struct ddps_llp *llp, struct ddps_conn_info *info)
{
	struct ddps_sd_session *s = from_llp(llp);
	struct ddps_sd_carrier *c = s->carrier;

	info->transport = DDPS_TRANSPORT_SCTP;
	info->initiator = s->initiator;
	info->mulpdu = (uint32_t)sd_op_mulpdu(llp);
	if (!c)
		return;
	info->local_addr = c->local_addr;
	info->peer_addr = c->peer_addr;
	strncpy(info->sctp.backend, c->b->name, sizeof(info->sctp.backend) - 1);
	info->sctp.stream = s->pair ? s->pair->stream : 0;
	info->sctp.encap = c->encap;
}

/* The association of @llp, if its backend can report it. */
static int get_llp_assoc(struct ddps_llp *llp, struct ddps_sd_carrier **c)
{
	*c = from_llp(llp)->carrier;
	if (!*c || (*c)->state == DDPS_SD_COMING)
		return DDPS_E_STATE;
	return (*c)->b->assoc_stats ? 0 : DDPS_E_UNSUPPORTED;
}

static int op_assoc_stats(struct ddps_llp *llp, struct ddps_assoc_stats *st)
{
	struct ddps_sd_carrier *c;
	int err = get_llp_assoc(llp, &c);

	if (err)
		return err;
	st->sessions = c->nsessions;
	return c->b->assoc_stats(c->assoc, st);
}

static int op_path_stats(struct ddps_llp *llp, uint32_t path, struct ddps_path_stats *st)
{
	struct ddps_sd_carrier *c;
	int err = get_llp_assoc(llp, &c);

	return err ? err : c->b->path_stats(c->assoc, path, st);
}

static const struct ddps_who *op_peer_of_assoc(const struct ddps_llp *llp)
{
	const struct ddps_sd_session *s = (const struct ddps_sd_session *)llp;
	const struct ddps_sd_carrier *c = s->carrier;

	return c && c->assoc && c->b->peer_id ? c->b->peer_id(c->assoc) : NULL;
}

static int op_set_primary(struct ddps_llp *llp, uint32_t path)
{
	struct ddps_sd_carrier *c;
	int err = get_llp_assoc(llp, &c);

	return err ? err : c->b->set_primary(c->assoc, path);
}

/* Where the backend cannot say, nobody ever seems to be asked. */
static bool op_unanswered_assoc(struct ddps_llp *llp, uint64_t *most)
{
	struct ddps_sd_carrier *c;

	return !get_llp_assoc(llp, &c) && c->b->unanswered && c->b->unanswered(c->assoc, most);
}

static const struct ddps_llp_ops session_ops = {
	.answer = sd_op_answer,
	.open = sd_op_open,
	.kick = sd_op_kick,
	.mulpdu = sd_op_mulpdu,
	.resume = sd_op_resume,
	.held = sd_op_held,
	.keep_copy = sd_op_keep_copy,
	.shutdown = sd_op_shutdown,
	.leaving = sd_op_leaving,
	.abort = sd_op_abort,
	.free = sd_op_free,
	.info = sd_op_info,
	.assoc_stats = op_assoc_stats,
	.path_stats = op_path_stats,
	.set_primary = op_set_primary,
	.unanswered = op_unanswered_assoc,
	.peer_id = op_peer_of_assoc,
};
