/* SPDX-License-Identifier: BSD-2-Clause */
/* The responder: those who call, what a program holds of them, accept and reject. */
#include "session/session.h"
#include <ddpsess/secure.h>
#include <stdlib.h>
#include <string.h>

enum request_state {
	REQ_QUEUED,   /* its event was not fetched yet */
	REQ_WAITING,  /* for the application */
	REQ_ANSWERED, /* rejected, until the carrier is wound up */
	REQ_GONE      /* the peer went away while it was WAITING */
};

/*
 * What a program holds of a caller.  It stays what it is after the caller has gone or was answered: then
 * @caller is NULL.  So whatever one thread fetches, no other one frees what it holds.  A handle serves again
 * when so many others have ended after it that nobody can mean it any more.
 */
struct ddps_request {
	struct ddps_ctx *ctx;
	struct ddps_caller *caller;
	STAILQ_ENTRY(ddps_request) of_ended;
};

/* Answered ones, and those whose peer has gone, which some thread may still be about to answer. */
static const unsigned kept[2] = { 256, 65536 };

struct ddps_caller {
	struct ddps_source source; /* first */
	struct ddps_ctx *ctx;
	LIST_ENTRY(ddps_caller) link;
	struct ddps_request *handle;	/* NULL: it was answered */
	struct ddps_listener *listener; /* NULL: freed meanwhile */
	void *user;			/* the listener's, as are ... */
	unsigned rtr;			/* ... these */
	bool rtr_mismatch_accept;
	struct ddps_llp *llp;
	enum request_state state;
	bool enhanced;
	struct ddps_word word;
	struct ddps_conn_info info;
	struct ddps_error error;
	size_t pd_len;
	uint8_t pd[DDPS_PD_MAX];
};

/* ---- handles ---- */

static struct ddps_request *first_ended(struct ddps_ended *e)
{
	struct ddps_request *h = STAILQ_FIRST(&e->handles);

	STAILQ_REMOVE_HEAD(&e->handles, of_ended);
	e->n--;
	return h;
}

static struct ddps_request *take_handle(struct ddps_ctx *ctx)
{
	for (unsigned i = 0; i < 2; i++)
		if (ctx->ended[i].n > kept[i])
			return first_ended(&ctx->ended[i]);
	return malloc(sizeof(struct ddps_request));
}

/* Nothing more is asked of the program. */
static void end_handle(struct ddps_caller *c)
{
	struct ddps_ended *e = &c->ctx->ended[c->state == REQ_GONE];
	struct ddps_request *h = c->handle;

	if (!h)
		return;
	c->handle = NULL;
	if (c->state == REQ_QUEUED) { /* nobody has it */
		free(h);
		return;
	}
	h->caller = NULL;
	STAILQ_INSERT_TAIL(&e->handles, h, of_ended);
	e->n++;
}

/* ---- callers ---- */

static void caller_destroy(struct ddps_caller *c)
{
	end_handle(c);
	ddps_event_drop(c->ctx, &c->source);
	if (c->llp)
		c->llp->ops->free(c->llp);
	LIST_REMOVE(c, link);
	free(c);
}

/* The listener goes: those whose event nobody has fetched go with it. */
void ddps_callers_orphan(const struct ddps_listener *l)
{
	struct ddps_caller *next;

	for (struct ddps_caller *c = LIST_FIRST(&l->ctx->callers); c; c = next) {
		next = LIST_NEXT(c, link);
		if (c->listener != l)
			continue;
		c->listener = NULL;
		/* The others are the application's, or on their way. */
		if (c->state == REQ_QUEUED)
			caller_destroy(c);
	}
}

void ddps_requests_free(struct ddps_ctx *ctx)
{
	while (!LIST_EMPTY(&ctx->callers))
		caller_destroy(LIST_FIRST(&ctx->callers));
	for (unsigned i = 0; i < 2; i++)
		while (ctx->ended[i].n)
			free(first_ended(&ctx->ended[i]));
}

bool ddps_requests_winding_up(const struct ddps_ctx *ctx)
{
	for (const struct ddps_caller *c = LIST_FIRST(&ctx->callers); c; c = LIST_NEXT(c, link))
		if (c->state == REQ_ANSWERED)
			return true;
	return false;
}

unsigned ddps_requests_count(const struct ddps_ctx *ctx)
{
	unsigned n = 0;

	for (const struct ddps_caller *c = LIST_FIRST(&ctx->callers); c; c = LIST_NEXT(c, link))
		n++;
	return n;
}

static void request_closed(void *user, const struct ddps_error *e)
{
	struct ddps_caller *c = user;

	if (c->state == REQ_QUEUED || c->state == REQ_ANSWERED) {
		caller_destroy(c);
		return;
	}
	c->error = *e; /* @e may live in the LLP */
	c->llp->ops->free(c->llp);
	c->llp = NULL;
	c->state = REQ_GONE;
	ddps_event_push(c->ctx, &c->source, DDPS_EV_REQUEST_GONE);
}

static void request_peer_closed(void *user)
{
	struct ddps_caller *c = user;
	struct ddps_error e;

	if (c->state == REQ_ANSWERED)
		return; /* closed() follows */
	e = ddps_error_make(DDPS_E_CLOSED, 0, "the initiator closed before it was answered");
	request_closed(c, &e);
}

static const struct ddps_llp_up request_up = {
	.peer_closed = request_peer_closed,
	.closed = request_closed,
};

static void build_request_event(struct ddps_source *s, struct ddps_event *ev)
{
	struct ddps_caller *c = (struct ddps_caller *)s;

	ev->request = c->handle;
	ev->listener = c->listener;
	ev->user = c->user;
	ev->info = c->info;
	ddps_info_text(&ev->info);
	if (ev->type == DDPS_EV_CONNECT_REQUEST) {
		c->state = REQ_WAITING;
		memcpy(ev->private_data, c->pd, c->pd_len);
		ev->private_data_len = c->pd_len;
	} else {
		ev->error = c->error;
		caller_destroy(c);
	}
}

/* No RTR type in common, rejected below the application. */
static void reject_rtr_mismatch(struct ddps_caller *c)
{
	struct ddps_conn_param p;
	struct ddps_nego_local l;
	struct ddps_nego_result res;
	struct ddps_llp_param lp;
	struct ddps_word w;
	uint8_t buf[DDPS_PD_MAX];
	struct ddps_setup s = { .enhanced = true, .reject = true, .pd = buf };

	ddps_conn_param_init(&p);
	p.rtr = c->rtr;
	ddps_param_nego(&p, c->ctx, &l);
	ddps_nego_respond(&l, &c->word, false, false, &w, &res);
	s.pd_len = ddps_setup_join(buf, &w, NULL, 0);
	ddps_param_llp(&p, &lp);
	c->state = REQ_ANSWERED;
	ddps_info_text(&c->info);
	ddps_log(&c->ctx->env.log, DDPS_LOG_INFO, "session", "%s: rejected, no RTR type in common",
		 c->info.peer);
	if (c->llp->ops->answer(c->llp, &s, &lp) < 0)
		caller_destroy(c);
}

void ddps_caller_new(void *user, struct ddps_llp *llp, const struct ddps_setup *s)
{
	struct ddps_listener *l = user;
	struct ddps_caller *c = calloc(1, sizeof *c);
	const uint8_t *pd;
	bool has_word;

	if (c)
		c->handle = take_handle(l->ctx);
	if (!c || !c->handle) {
		free(c);
		ddps_log(&l->ctx->env.log, DDPS_LOG_ERROR, "session", "request: out of memory");
		llp->ops->free(llp);
		return;
	}
	c->handle->ctx = c->ctx = l->ctx;
	c->handle->caller = c;
	c->listener = l;
	c->user = l->param.user;
	c->rtr = l->param.rtr;
	c->rtr_mismatch_accept = l->param.rtr_mismatch_accept;
	c->source.build = build_request_event;
	c->llp = llp;
	llp->up = &request_up;
	llp->user = c;
	LIST_INSERT_HEAD(&l->ctx->callers, c, link);

	c->enhanced = s->enhanced;
	ddps_setup_split(s, &c->word, &pd, &c->pd_len, &has_word);
	if (c->pd_len)
		memcpy(c->pd, pd, c->pd_len);
	llp->ops->info(llp, &c->info);
	c->info.enhanced = s->enhanced;
	c->info.peer_ird = c->word.ird;
	c->info.peer_ord = c->word.ord;
	c->info.p2p = c->word.p2p;
	c->info.peer_rtr = c->word.rtr;
	if (s->enhanced && !l->param.rtr_mismatch_accept &&
	    ddps_nego_rtr_mismatch(&c->word, l->param.rtr))
		reject_rtr_mismatch(c);
	else
		ddps_event_push(l->ctx, &c->source, DDPS_EV_CONNECT_REQUEST);
}

/* ---- answering ---- */

/* Send @s; a rejected request lives until its carrier is wound up. */
static int send_reject(struct ddps_caller *c, const struct ddps_word *w, const void *pd, size_t len)
{
	uint8_t buf[DDPS_PD_MAX];
	struct ddps_setup s = { .enhanced = c->enhanced, .reject = true, .pd = buf };
	struct ddps_conn_param p;
	struct ddps_llp_param lp;

	ddps_conn_param_init(&p);
	ddps_param_llp(&p, &lp);
	s.pd_len = ddps_setup_join(buf, c->enhanced ? w : NULL, pd, len);
	c->state = REQ_ANSWERED;
	end_handle(c);
	if (c->llp->ops->answer(c->llp, &s, &lp) < 0)
		caller_destroy(c);
	return 0;
}

int ddps_reject(struct ddps_request *handle, const void *private_data, size_t len)
{
	struct ddps_ctx *ctx = handle->ctx;
	struct ddps_caller *c;
	struct ddps_nego_result res;
	struct ddps_nego_local l;
	struct ddps_conn_param p;
	struct ddps_word w;
	int err = ddps_ctx_enter_seldom(ctx);

	if (err < 0)
		return err;
	c = handle->caller;
	if (!c) {
		err = DDPS_E_CLOSED;
	} else if (len && !private_data) {
		err = DDPS_E_INVAL;
	} else if (len > (c->enhanced ? DDPS_PD_MAX_ENHANCED : DDPS_PD_MAX)) {
		err = DDPS_E_TOO_LONG;
	} else if (c->state == REQ_GONE) {
		caller_destroy(c);
		err = DDPS_E_CLOSED;
	} else {
		ddps_conn_param_init(&p);
		p.rtr = c->rtr;
		ddps_param_nego(&p, ctx, &l);
		if (c->enhanced)
			ddps_nego_respond(&l, &c->word, true, false, &w, &res);
		err = send_reject(c, &w, private_data, len);
		/* Who rejects may end before the library thread gets to it. */
		if (ctx->attr.poll_drives)
			ddps_ctx_turn(ctx);
	}
	ddps_ctx_leave(ctx);
	return err;
}

int ddps_request_peer_id(const struct ddps_request *handle, struct ddps_peer_id *id)
{
	const struct ddps_caller *c;
	int err = id ? ddps_ctx_enter(handle->ctx) : DDPS_E_INVAL;

	if (err < 0)
		return err;
	c = handle->caller;
	err = c && c->llp ? ddps_llp_peer_id(c->llp, id) : DDPS_E_CLOSED;
	ddps_ctx_leave(handle->ctx);
	return err;
}

/* The carrier changes hands from the request to the endpoint; then the answer goes out. */
static void accept_send(struct ddps_caller *c, struct ddps_ep *ep, const struct ddps_conn_param *p,
			const struct ddps_word *w, const struct ddps_nego_result *res)
{
	uint8_t buf[DDPS_PD_MAX];
	struct ddps_setup s = { .enhanced = c->enhanced, .pd = buf };
	bool p2p = w->p2p;
	struct ddps_rdmap_start role = {
		.expect_rtr = p2p ? res->rtr : 0,
		.rtr_strict = p->rtr_strict,
	};
	struct ddps_llp_param lp;
	struct ddps_error e;
	int err;

	s.pd_len =
		ddps_setup_join(buf, c->enhanced ? w : NULL, p->private_data, p->private_data_len);
	ddps_param_llp(p, &lp);
	ep->llp = c->llp;
	ep->llp->up = &ddps_ep_up;
	ep->llp->user = ep;
	ddps_llp_attach(ep->llp, &ddps_rdmap_data, ep->rdmap);
	c->llp = NULL;
	ddps_info_keep(&ep->info, &c->info);
	ep->close_ms = p->close_ms;
	caller_destroy(c);

	/* Reception must be ready before the answer leaves. */
	err = ddps_ep_start(ep, res, &role);
	if (!err)
		err = ep->llp->ops->answer(ep->llp, &s, &lp);
	if (err) {
		e = ddps_error_make(err, 0, "accept: the answer could not be sent");
		ddps_ep_lost(ep, &e);
		return;
	}
	ddps_ep_learn_info(ep);
	if (p2p)
		ddps_ep_set_state(ep, DDPS_EP_AWAIT_RTR);
	else
		ddps_ep_established(ep);
}

static int accept_locked(struct ddps_caller *c, struct ddps_ep *ep, const struct ddps_conn_param *p)
{
	struct ddps_nego_result res = { 0 };
	struct ddps_nego_local l;
	struct ddps_word w = { 0 };
	int err;

	if (ep->ctx != c->ctx)
		return DDPS_E_INVAL;
	if (ep->state != DDPS_EP_IDLE)
		return DDPS_E_STATE;
	err = ddps_param_check(p, c->enhanced, false);
	if (err)
		return err;
	if (c->state == REQ_GONE) {
		caller_destroy(c);
		return DDPS_E_CLOSED;
	}
	ddps_param_nego(p, c->ctx, &l);
	if (!c->enhanced) {
		ddps_nego_plain(&l, &res);
		accept_send(c, ep, p, &w, &res);
		return 0;
	}
	switch (ddps_nego_respond(&l, &c->word, false, c->rtr_mismatch_accept, &w, &res)) {
	case DDPS_NEGO_ACCEPT:
		accept_send(c, ep, p, &w, &res);
		return 0;
	case DDPS_NEGO_NO_RTR:
		send_reject(c, &w, p->private_data, p->private_data_len);
		return DDPS_E_RTR;
	default:
		send_reject(c, &w, p->private_data, p->private_data_len);
		return DDPS_E_IRD;
	}
}

int ddps_accept(struct ddps_request *handle, struct ddps_ep *ep, const struct ddps_conn_param *p)
{
	struct ddps_ctx *ctx = handle->ctx;
	struct ddps_conn_param param;
	int err = ddps_ctx_enter_seldom(ctx);

	if (err < 0)
		return err;
	err = ddps_conn_param_take(&param, p);
	if (!err)
		err = handle->caller ? accept_locked(handle->caller, ep, &param) : DDPS_E_CLOSED;
	ddps_ctx_leave(ctx);
	return err;
}
