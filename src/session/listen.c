/* SPDX-License-Identifier: BSD-2-Clause */
/* The responder: listeners, requests, accept and reject. */
#include "session/session.h"
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct ddps_listener {
	struct ddps_source source; /* first */
	struct ddps_ctx *ctx;
	struct ddps_listener *next, **prev;
	struct ddps_llp_listener *llp;
	struct ddps_listen_param param;
	struct ddps_error error;
};

enum request_state {
	REQ_QUEUED,   /* its event was not fetched yet */
	REQ_WAITING,  /* for the application */
	REQ_ANSWERED, /* rejected, until the carrier is wound up */
	REQ_GONE      /* the peer went away while it was WAITING */
};

struct ddps_request {
	struct ddps_source source; /* first */
	struct ddps_ctx *ctx;
	struct ddps_request *next, **prev;
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

/* ---- requests ---- */

void ddps_request_destroy(struct ddps_request *req)
{
	ddps_event_drop(req->ctx, &req->source);
	if (req->llp)
		req->llp->ops->free(req->llp);
	*req->prev = req->next;
	if (req->next)
		req->next->prev = req->prev;
	free(req);
}

bool ddps_requests_winding_up(const struct ddps_ctx *ctx)
{
	for (const struct ddps_request *req = ctx->requests; req; req = req->next)
		if (req->state == REQ_ANSWERED)
			return true;
	return false;
}

unsigned ddps_requests_count(const struct ddps_ctx *ctx)
{
	unsigned n = 0;

	for (const struct ddps_request *req = ctx->requests; req; req = req->next)
		n++;
	return n;
}

static void request_closed(void *user, const struct ddps_error *e)
{
	struct ddps_request *req = user;

	if (req->state == REQ_QUEUED || req->state == REQ_ANSWERED) {
		ddps_request_destroy(req);
		return;
	}
	req->error = *e; /* @e may live in the LLP */
	req->llp->ops->free(req->llp);
	req->llp = NULL;
	req->state = REQ_GONE;
	ddps_event_push(req->ctx, &req->source, DDPS_EV_REQUEST_GONE);
}

static void request_peer_closed(void *user)
{
	struct ddps_request *req = user;
	struct ddps_error e;

	if (req->state == REQ_ANSWERED)
		return; /* closed() follows */
	e = ddps_error_make(DDPS_E_CLOSED, 0, "the initiator closed before it was answered");
	request_closed(req, &e);
}

static const struct ddps_llp_up request_up = {
	.peer_closed = request_peer_closed,
	.closed = request_closed,
};

static void build_request_event(struct ddps_source *s, struct ddps_event *ev)
{
	struct ddps_request *req = (struct ddps_request *)s;

	ev->request = req;
	ev->listener = req->listener;
	ev->user = req->user;
	ev->info = req->info;
	if (ev->type == DDPS_EV_CONNECT_REQUEST) {
		req->state = REQ_WAITING;
		memcpy(ev->private_data, req->pd, req->pd_len);
		ev->private_data_len = req->pd_len;
	} else {
		ev->error = req->error;
		ddps_request_destroy(req);
	}
}

/* No RTR type in common, rejected below the application. */
static void reject_rtr_mismatch(struct ddps_request *req)
{
	struct ddps_conn_param p;
	struct ddps_nego_local l;
	struct ddps_nego_result res;
	struct ddps_llp_param lp;
	struct ddps_word w;
	uint8_t buf[DDPS_PD_MAX];
	struct ddps_setup s = { .enhanced = true, .reject = true, .pd = buf };

	ddps_conn_param_init(&p);
	p.rtr = req->rtr;
	ddps_param_nego(&p, req->ctx, &l);
	ddps_nego_respond(&l, &req->word, false, false, &w, &res);
	s.pd_len = ddps_setup_join(buf, &w, NULL, 0);
	ddps_param_llp(&p, &lp);
	req->state = REQ_ANSWERED;
	ddps_log(&req->ctx->env.log, DDPS_LOG_INFO, "session",
		 "%s: rejected, no RTR type in common", req->info.peer);
	if (req->llp->ops->answer(req->llp, &s, &lp) < 0)
		ddps_request_destroy(req);
}

static void listener_request(void *user, struct ddps_llp *llp, const struct ddps_setup *s)
{
	struct ddps_listener *l = user;
	struct ddps_request *req = calloc(1, sizeof *req);
	const uint8_t *pd;
	bool has_word;

	if (!req) {
		ddps_log(&l->ctx->env.log, DDPS_LOG_ERROR, "session", "request: out of memory");
		llp->ops->free(llp);
		return;
	}
	req->ctx = l->ctx;
	req->listener = l;
	req->user = l->param.user;
	req->rtr = l->param.rtr;
	req->rtr_mismatch_accept = l->param.rtr_mismatch_accept;
	req->source.build = build_request_event;
	req->llp = llp;
	llp->up = &request_up;
	llp->user = req;
	req->next = l->ctx->requests;
	req->prev = &l->ctx->requests;
	if (req->next)
		req->next->prev = &req->next;
	l->ctx->requests = req;

	req->enhanced = s->enhanced;
	ddps_setup_split(s, &req->word, &pd, &req->pd_len, &has_word);
	if (req->pd_len)
		memcpy(req->pd, pd, req->pd_len);
	llp->ops->info(llp, &req->info);
	req->info.enhanced = s->enhanced;
	req->info.peer_ird = req->word.ird;
	req->info.peer_ord = req->word.ord;
	req->info.p2p = req->word.p2p;
	req->info.peer_rtr = req->word.rtr;
	if (s->enhanced && !l->param.rtr_mismatch_accept &&
	    ddps_nego_rtr_mismatch(&req->word, l->param.rtr))
		reject_rtr_mismatch(req);
	else
		ddps_event_push(l->ctx, &req->source, DDPS_EV_CONNECT_REQUEST);
}

/* ---- listeners ---- */

static void listener_failed(void *user, const struct ddps_error *e)
{
	struct ddps_listener *l = user;

	l->error = *e;
	ddps_event_push(l->ctx, &l->source, DDPS_EV_LISTENER_FAILED);
}

static const struct ddps_llp_listen_up listen_up = {
	.request = listener_request,
	.failed = listener_failed,
};

static void build_listener_event(struct ddps_source *s, struct ddps_event *ev)
{
	struct ddps_listener *l = (struct ddps_listener *)s;

	ev->listener = l;
	ev->user = l->param.user;
	ev->error = l->error;
}

/* The address to bind: numeric at once, a name by looking it up (which may block). */
static int bind_addr(const struct ddps_uri *uri, struct sockaddr_storage *ss, socklen_t *len)
{
	struct sockaddr_storage addrs[DDPS_RESOLVE_MAX];
	size_t n = 0;
	int err;

	if (uri->numeric)
		return ddps_uri_sockaddr(uri, ss, len);
	err = ddps_resolve_now(uri->host, uri->port, addrs, &n);
	if (err)
		return err;
	*ss = addrs[0];
	*len = ddps_addr_len(ss);
	return 0;
}

static int listener_start(struct ddps_listener *l, const struct ddps_uri *uri,
			  const struct sockaddr_storage *ss, socklen_t len)
{
	const struct ddps_llp_provider *provider = ddps_provider_find(uri->scheme);
	struct ddps_llp_listen_param lp = {
		.backlog = l->param.backlog,
		.max_half_open = l->param.max_half_open,
		.setup_ms = l->param.setup_ms,
	};

	return provider->listen(&l->ctx->env, uri, (const struct sockaddr *)ss, len, &lp,
				&listen_up, l, &l->llp);
}

int ddps_listen(struct ddps_ctx *ctx, const char *uri_text, const struct ddps_listen_param *p,
		struct ddps_listener **out)
{
	struct ddps_listen_param param;
	struct ddps_listener *l;
	struct sockaddr_storage ss;
	struct ddps_uri uri;
	char why[200];
	socklen_t len;
	int err, keep;

	if (!out)
		return DDPS_E_INVAL;
	err = ddps_listen_param_take(&param, p);
	if (err)
		return err;
	if (!param.rtr || !param.max_half_open || (param.rtr & ~DDPS_RTR_ALL))
		return DDPS_E_INVAL;
	err = ddps_ctx_enter_seldom(ctx);
	if (err)
		return err;
	ddps_ctx_leave(ctx);
	err = ddps_uri_parse(&uri, uri_text, why, sizeof why);
	if (!err)
		err = bind_addr(&uri, &ss, &len);
	if (err)
		return err;
	l = calloc(1, sizeof *l);
	if (!l)
		return DDPS_E_NOMEM;
	l->ctx = ctx;
	l->source.build = build_listener_event;
	l->param = param;
	ddps_ctx_enter(ctx);
	err = listener_start(l, &uri, &ss, len);
	keep = errno;
	if (err) {
		free(l);
	} else {
		l->next = ctx->listeners;
		l->prev = &ctx->listeners;
		if (l->next)
			l->next->prev = &l->next;
		ctx->listeners = l;
		*out = l;
	}
	ddps_ctx_leave(ctx);
	errno = keep;
	return err;
}

int ddps_listener_uri(struct ddps_listener *l, char *buf, size_t len)
{
	int n = ddps_ctx_enter_seldom(l->ctx);

	if (n < 0)
		return n;
	n = l->llp->provider->listener_uri(l->llp, buf, len);
	ddps_ctx_leave(l->ctx);
	return (size_t)n >= len ? DDPS_E_TOO_LONG : n;
}

int ddps_listener_nth(const struct ddps_ctx *ctx, unsigned i, char *buf, size_t len)
{
	const struct ddps_listener *l = ctx->listeners;

	while (l && i--)
		l = l->next;
	return l ? l->llp->provider->listener_uri(l->llp, buf, len) : 0;
}

void ddps_listener_destroy(struct ddps_listener *l)
{
	struct ddps_request *next;

	for (struct ddps_request *req = l->ctx->requests; req; req = next) {
		next = req->next;
		if (req->listener != l)
			continue;
		req->listener = NULL;
		/* The others are the application's, or on their way. */
		if (req->state == REQ_QUEUED)
			ddps_request_destroy(req);
	}
	ddps_event_drop(l->ctx, &l->source);
	l->llp->provider->listener_free(l->llp);
	*l->prev = l->next;
	if (l->next)
		l->next->prev = l->prev;
	free(l);
}

void ddps_listener_free(struct ddps_listener *l)
{
	struct ddps_ctx *ctx;

	if (!l)
		return;
	ctx = l->ctx;
	if (ddps_ctx_enter_seldom(ctx) < 0)
		return;
	ddps_listener_destroy(l);
	ddps_ctx_leave(ctx);
}

/* ---- answering ---- */

/* Send @s; a rejected request lives until its carrier is wound up. */
static int send_reject(struct ddps_request *req, const struct ddps_word *w, const void *pd,
		       size_t len)
{
	uint8_t buf[DDPS_PD_MAX];
	struct ddps_setup s = { .enhanced = req->enhanced, .reject = true, .pd = buf };
	struct ddps_conn_param p;
	struct ddps_llp_param lp;

	ddps_conn_param_init(&p);
	ddps_param_llp(&p, &lp);
	s.pd_len = ddps_setup_join(buf, req->enhanced ? w : NULL, pd, len);
	req->state = REQ_ANSWERED;
	if (req->llp->ops->answer(req->llp, &s, &lp) < 0)
		ddps_request_destroy(req);
	return 0;
}

int ddps_reject(struct ddps_request *req, const void *private_data, size_t len)
{
	struct ddps_ctx *ctx = req->ctx;
	struct ddps_nego_result res;
	struct ddps_nego_local l;
	struct ddps_conn_param p;
	struct ddps_word w;
	int err = ddps_ctx_enter_seldom(ctx);

	if (err < 0)
		return err;
	if (len && !private_data) {
		err = DDPS_E_INVAL;
	} else if (len > (req->enhanced ? DDPS_PD_MAX_ENHANCED : DDPS_PD_MAX)) {
		err = DDPS_E_TOO_LONG;
	} else if (req->state == REQ_GONE) {
		ddps_request_destroy(req);
		err = DDPS_E_CLOSED;
	} else {
		ddps_conn_param_init(&p);
		p.rtr = req->rtr;
		ddps_param_nego(&p, ctx, &l);
		if (req->enhanced)
			ddps_nego_respond(&l, &req->word, true, false, &w, &res);
		err = send_reject(req, &w, private_data, len);
		/* Who rejects may end before the library thread gets to it. */
		if (ctx->attr.poll_drives)
			ddps_ctx_turn(ctx);
	}
	ddps_ctx_leave(ctx);
	return err;
}

/* The carrier changes hands from the request to the endpoint; then the answer goes out. */
static void accept_send(struct ddps_request *req, struct ddps_ep *ep,
			const struct ddps_conn_param *p, const struct ddps_word *w,
			const struct ddps_nego_result *res)
{
	uint8_t buf[DDPS_PD_MAX];
	struct ddps_setup s = { .enhanced = req->enhanced, .pd = buf };
	bool p2p = w->p2p;
	struct ddps_rdmap_start role = {
		.expect_rtr = p2p ? res->rtr : 0,
		.rtr_strict = p->rtr_strict,
	};
	struct ddps_llp_param lp;
	struct ddps_error e;
	int err;

	s.pd_len = ddps_setup_join(buf, req->enhanced ? w : NULL, p->private_data,
				   p->private_data_len);
	ddps_param_llp(p, &lp);
	ep->llp = req->llp;
	ep->llp->up = &ddps_ep_up;
	ep->llp->user = ep;
	ddps_llp_attach(ep->llp, &ddps_rdmap_data, ep->rdmap);
	req->llp = NULL;
	ep->info = req->info;
	ep->close_ms = p->close_ms;
	ddps_request_destroy(req);

	/* Reception must be ready before the answer leaves. */
	err = ddps_ep_start(ep, res, &role);
	if (!err)
		err = ep->llp->ops->answer(ep->llp, &s, &lp);
	if (err) {
		e = ddps_error_make(err, 0, "accept: the answer could not be sent");
		ddps_ep_lost(ep, &e);
		return;
	}
	ep->llp->ops->info(ep->llp, &ep->info);
	if (p2p)
		ddps_ep_set_state(ep, DDPS_EP_AWAIT_RTR);
	else
		ddps_ep_established(ep);
}

static int accept_locked(struct ddps_request *req, struct ddps_ep *ep,
			 const struct ddps_conn_param *p)
{
	struct ddps_nego_result res = { 0 };
	struct ddps_nego_local l;
	struct ddps_word w = { 0 };
	int err;

	if (ep->ctx != req->ctx)
		return DDPS_E_INVAL;
	if (ep->state != DDPS_EP_IDLE)
		return DDPS_E_STATE;
	err = ddps_param_check(p, req->enhanced, false);
	if (err)
		return err;
	if (req->state == REQ_GONE) {
		ddps_request_destroy(req);
		return DDPS_E_CLOSED;
	}
	ddps_param_nego(p, req->ctx, &l);
	if (!req->enhanced) {
		ddps_nego_plain(&l, &res);
		accept_send(req, ep, p, &w, &res);
		return 0;
	}
	switch (ddps_nego_respond(&l, &req->word, false, req->rtr_mismatch_accept, &w, &res)) {
	case DDPS_NEGO_ACCEPT:
		accept_send(req, ep, p, &w, &res);
		return 0;
	case DDPS_NEGO_NO_RTR:
		send_reject(req, &w, p->private_data, p->private_data_len);
		return DDPS_E_RTR;
	default:
		send_reject(req, &w, p->private_data, p->private_data_len);
		return DDPS_E_IRD;
	}
}

int ddps_accept(struct ddps_request *req, struct ddps_ep *ep, const struct ddps_conn_param *p)
{
	struct ddps_ctx *ctx = req->ctx;
	struct ddps_conn_param param;
	int err = ddps_ctx_enter_seldom(ctx);

	if (err < 0)
		return err;
	err = ddps_conn_param_take(&param, p);
	if (!err)
		err = accept_locked(req, ep, &param);
	ddps_ctx_leave(ctx);
	return err;
}
