/* SPDX-License-Identifier: BSD-2-Clause */
/* The responder: listeners.  What comes from them is in request.c. */
#include "session/session.h"
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ---- listeners ---- */

static void listener_failed(void *user, const struct ddps_error *e)
{
	struct ddps_listener *l = user;

	l->error = *e;
	ddps_event_push(l->ctx, &l->source, DDPS_EV_LISTENER_FAILED);
}

static const struct ddps_llp_listen_up listen_up = {
	.request = ddps_caller_new,
	.failed = listener_failed,
};

static void build_listener_event(struct ddps_source *s, struct ddps_event *ev)
{
	struct ddps_listener *l = (struct ddps_listener *)s;

	ev->listener = l;
	ev->user = l->param.user;
	ev->error = l->error;
}

/* The address to bind: numeric immediately, a name by looking it up (which may block). */
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
	struct ddps_conn_param usual;
	int err;

	ddps_conn_param_init(&usual);
	lp.keepalive_ms = usual.keepalive_ms;
	if (ddps_uri_secured(uri)) {
		err = ddps_secured_may(l->ctx, true, ddps_uri_sctps(uri));
		if (err)
			return err;
	}
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
	err = ddps_ctx_enter(ctx); /* a name may have taken its time */
	if (err) {
		free(l);
		return err;
	}
	err = listener_start(l, &uri, &ss, len);
	keep = errno;
	if (err) {
		free(l);
	} else {
		LIST_INSERT_HEAD(&ctx->listeners, l, link);
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
	const struct ddps_listener *l = LIST_FIRST(&ctx->listeners);

	ddps_assert_held(&ctx->lock);
	while (l && i--)
		l = LIST_NEXT(l, link);
	return l ? l->llp->provider->listener_uri(l->llp, buf, len) : 0;
}

void ddps_listener_destroy(struct ddps_listener *l)
{
	ddps_callers_orphan(l);
	ddps_event_drop(l->ctx, &l->source);
	l->llp->provider->listener_free(l->llp);
	LIST_REMOVE(l, link);
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
