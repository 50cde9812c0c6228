/* SPDX-License-Identifier: BSD-2-Clause */
/* The initiator's way to an established session: name, address, carrier, answer. */
#include "common/term_codes.h"
#include "common/who.h"
#include "session/session.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define MAX_ADDRS DDPS_RESOLVE_MAX
#define RETRY_MS  20 /* between two tries at a peer that refuses */

struct ddps_dial {
	struct ddps_uri uri;
	const struct ddps_llp_provider *provider;
	struct ddps_resolve *resolve;
	struct ddps_timer timer; /* while the name is looked up, and between tries */
	uint64_t deadline;	 /* of connect_ms, 0: none */
	uint64_t retry_until;	 /* of refused_retry_ms */
	struct sockaddr_storage addrs[MAX_ADDRS];
	size_t naddrs, next;	      /* the one to try next */
	struct ddps_conn_param param; /* private_data is not valid in it */
	struct ddps_nego_local local;
	struct ddps_word word;
	bool enhanced;		/* of the request that is out */
	struct ddps_who *first; /* who answered the first try, over a secured wire; or NULL */
	uint8_t pd[DDPS_PD_MAX];
	size_t pd_len;
};

void ddps_dial_free(struct ddps_ep *ep)
{
	struct ddps_dial *d = ep->dial;

	if (!d)
		return;
	ddps_timer_stop(ep->ctx->env.loop, &d->timer);
	if (d->resolve)
		ddps_resolve_cancel(d->resolve);
	free(d->first);
	free(d);
	ep->dial = NULL;
}

/* What is left of connect_ms; 0 keeps its meaning of no deadline. */
static uint32_t connect_ms_left(const struct ddps_dial *d)
{
	uint64_t now = ddps_now();

	if (!d->deadline)
		return 0;
	return d->deadline > now + NSEC_PER_MSEC ? (uint32_t)((d->deadline - now) / NSEC_PER_MSEC)
						 : 1;
}

/* What the address that is being tried has of it: those that follow have something left. */
static uint32_t connect_ms_of_address(const struct ddps_dial *d)
{
	const uint32_t left = connect_ms_left(d), others = (uint32_t)(d->naddrs - d->next);
	const uint32_t own = d->param.address_ms ? d->param.address_ms : left / (others + 1);

	if (!others || (left && own >= left))
		return left;
	return own || !left ? own : 1;
}

static int try_addr(struct ddps_ep *ep, const struct sockaddr_storage *ss)
{
	struct ddps_dial *d = ep->dial;
	uint8_t buf[DDPS_PD_MAX];
	struct ddps_setup setup = { .enhanced = d->enhanced, .pd = buf };
	struct ddps_conn_info info;
	struct ddps_llp_param lp;
	int err;

	setup.pd_len = ddps_setup_join(buf, d->enhanced ? &d->word : NULL, d->pd, d->pd_len);
	ddps_param_llp(&d->param, &lp);
	lp.connect_ms = connect_ms_of_address(d);
	lp.stalls = ep->stalls;
	lp.host = d->uri.host;
	info = ddps_info_bare(&ep->info);
	info.peer_addr = ddps_addr_of((const struct sockaddr *)ss);
	if (!info.peer_addr.family)
		ddps_addr_text((const struct sockaddr *)ss, info.peer, sizeof info.peer);
	ddps_info_keep(&ep->info, &info);
	err = d->provider->connect(&ep->ctx->env, &d->uri, (const struct sockaddr *)ss,
				   ddps_addr_len(ss), &setup, &lp, &ddps_ep_up, ep, &ep->llp);
	if (!err)
		ddps_llp_attach(ep->llp, &ddps_rdmap_data, ep->rdmap);
	return err;
}

/* Start on the next address that takes a start.  0 or the last error. */
static int try_next(struct ddps_ep *ep)
{
	struct ddps_dial *d = ep->dial;
	int err = DDPS_E_ADDRESS;

	while (d->next < d->naddrs) {
		err = try_addr(ep, &d->addrs[d->next++]);
		if (!err) {
			if (ep->state != DDPS_EP_CONNECTING)
				ddps_ep_set_state(ep, DDPS_EP_CONNECTING);
			return 0;
		}
	}
	return err;
}

static void take_resolved(void *user, int err, const struct sockaddr_storage *addrs, size_t n)
{
	struct ddps_ep *ep = user;
	struct ddps_dial *d = ep->dial;
	struct ddps_error e;

	d->resolve = NULL;
	ddps_timer_stop(ep->ctx->env.loop, &d->timer);
	if (err) {
		e = ddps_error_make(err, 0, "host name \"%s\" could not be looked up", d->uri.host);
		ddps_ep_lost(ep, &e);
		return;
	}
	memcpy(d->addrs, addrs, n * sizeof *addrs);
	d->naddrs = n;
	err = try_next(ep);
	if (err) {
		e = ddps_error_make(err, 0, "no address of \"%s\" could be used: %s", d->uri.host,
				    ddps_strerror(err));
		ddps_ep_lost(ep, &e);
	}
}

static void resolve_late(void *user)
{
	struct ddps_ep *ep = user;
	struct ddps_error e =
		ddps_error_make(DDPS_E_TIMEDOUT, 0, "looking up \"%s\" took longer than %u ms",
				ep->dial->uri.host, ep->dial->param.connect_ms);

	ddps_ep_lost(ep, &e);
}

/* ---- ddps_connect ---- */

/* "192.0.2.1:0", over SCTP perhaps a list: what an URI has behind its scheme. */
static int local_address(struct ddps_dial *d, const char *text)
{
	char uri[DDPS_ADDRS_TEXT], why[200];
	struct ddps_uri own;
	socklen_t len;

	if (d->uri.from.n) /* in the URI, too */
		return DDPS_E_INVAL;
	if (ddps_uri_shm(&d->uri))
		return DDPS_E_UNSUPPORTED;
	if ((size_t)snprintf(uri, sizeof uri, "%s://%s", d->uri.scheme, text) >= sizeof uri ||
	    strchr(text, '?') || ddps_uri_parse(&own, uri, why, sizeof why) || !own.host[0] ||
	    !own.numeric)
		return DDPS_E_ADDRESS;
	if (own.port && !strncmp(d->uri.scheme, "sctp", 4))
		return DDPS_E_UNSUPPORTED;
	d->uri.from = own.hosts;
	if (own.hosts.n)
		return 0;
	d->uri.from.n = 1;
	return ddps_uri_sockaddr(&own, &d->uri.from.at[0], &len);
}

/* It says where a peer is. */
static bool is_uri_whole(const struct ddps_uri *uri)
{
	return ddps_uri_shm(uri) ? uri->host[1] : uri->port && uri->host[0];
}

static int dial_prepare(struct ddps_dial *d, struct ddps_ctx *ctx, const char *uri,
			const struct ddps_conn_param *p)
{
	char why[200];
	int err = ddps_uri_parse(&d->uri, uri, why, sizeof why);

	if (err) {
		ddps_log(&ctx->env.log, DDPS_LOG_ERROR, "session", "%s", why);
		return err;
	}
	err = p->local ? local_address(d, p->local) : 0;
	if (err)
		return err;
	d->provider = ddps_provider_find(d->uri.scheme);
	if (!d->provider || !is_uri_whole(&d->uri))
		return DDPS_E_ADDRESS;
	if (ddps_uri_secured(&d->uri)) {
		err = ddps_secured_may(ctx, false, ddps_uri_sctps(&d->uri));
		if (err)
			return err;
	}
	d->enhanced = !p->plain;
	err = ddps_param_check(p, d->enhanced, true);
	if (err)
		return err;
	d->param = *p;
	d->param.private_data = NULL;
	d->param.local = NULL;
	if (p->private_data_len)
		memcpy(d->pd, p->private_data, p->private_data_len);
	d->pd_len = p->private_data_len;
	if (p->connect_ms)
		d->deadline = ddps_now() + p->connect_ms * NSEC_PER_MSEC;
	d->retry_until = ddps_now() + p->refused_retry_ms * NSEC_PER_MSEC;
	ddps_param_nego(p, ctx, &d->local);
	return d->enhanced ? ddps_nego_request(&d->local, &d->word) : 0;
}

static int dial_start(struct ddps_ep *ep)
{
	struct ddps_dial *d = ep->dial;
	socklen_t len;
	int err;

	if (d->uri.numeric) {
		err = ddps_uri_sockaddr(&d->uri, &d->addrs[0], &len);
		if (err)
			return err;
		d->naddrs = 1;
		return try_next(ep);
	}
	err = ddps_resolve_start(&ep->ctx->resolver, d->uri.host, d->uri.port, take_resolved, ep,
				 &d->resolve);
	if (err)
		return err;
	d->timer = (struct ddps_timer){ .fn = resolve_late, .user = ep };
	ddps_timer_after(ep->ctx->env.loop, &d->timer, d->param.connect_ms);
	ddps_ep_set_state(ep, DDPS_EP_RESOLVING);
	return 0;
}

int ddps_connect(struct ddps_ep *ep, const char *uri, const struct ddps_conn_param *p)
{
	struct ddps_conn_param param;
	int err = ddps_ctx_enter_seldom(ep->ctx);

	if (err < 0)
		return err;
	err = ddps_conn_param_take(&param, p);
	if (err)
		goto out;
	if (ep->state != DDPS_EP_IDLE) {
		err = DDPS_E_STATE;
		goto out;
	}
	ep->dial = calloc(1, sizeof *ep->dial);
	if (!ep->dial) {
		err = DDPS_E_NOMEM;
		goto out;
	}
	err = dial_prepare(ep->dial, ep->ctx, uri, &param);
	if (!err) {
		ep->info.initiator = true;
		ep->close_ms = param.close_ms;
		ep->nudge_ms = param.nudge_ms;
		err = dial_start(ep);
	}
	if (err)
		ddps_dial_free(ep);
out:
	ddps_ctx_leave(ep->ctx);
	return err;
}

/* ---- what comes back ---- */

static void try_afresh(void *user)
{
	struct ddps_ep *ep = user;
	struct ddps_dial *d = ep->dial;
	struct ddps_error e;
	int err;

	d->next = 0;
	err = try_next(ep);
	if (err) {
		e = ddps_error_make(err, 0, "trying \"%s\" again: %s", d->uri.host,
				    ddps_strerror(err));
		ddps_ep_lost(ep, &e);
	}
}

/* Nobody listens there yet: wait a little, as long as that was asked for. */
static bool try_later(struct ddps_ep *ep, const struct ddps_error *e)
{
	struct ddps_dial *d = ep->dial;

	if (e->code != DDPS_E_REFUSED || ddps_now() >= d->retry_until)
		return false;
	d->timer = (struct ddps_timer){ .fn = try_afresh, .user = ep };
	ddps_timer_after(ep->ctx->env.loop, &d->timer, RETRY_MS);
	ddps_ep_set_state(ep, DDPS_EP_RESOLVING);
	return true;
}

static const struct ddps_who *get_peer(const struct ddps_ep *ep)
{
	return ep->llp->ops->peer_id ? ep->llp->ops->peer_id(ep->llp) : NULL;
}

/* Over a secured wire: it is the peer who ended it, not somebody on the way. */
static bool knows_peer(const struct ddps_ep *ep)
{
	return get_peer(ep) != NULL;
}

/* Who was there, for is_same_peer.  Without memory there is no other try. */
static bool keep_first_peer(struct ddps_ep *ep)
{
	const struct ddps_who *who = get_peer(ep);
	struct ddps_dial *d = ep->dial;

	if (!who || d->first)
		return true;
	d->first = ddps_who_copy(who);
	return d->first != NULL;
}

/* Whoever can reset a connection would have a second choice of peer. */
static bool is_same_peer(const struct ddps_ep *ep)
{
	const struct ddps_who *first = ep->dial->first, *now = first ? get_peer(ep) : NULL;

	return !first ||
	       (now && now->how == first->how &&
		!memcmp(now->fingerprint, first->fingerprint, sizeof now->fingerprint) &&
		(now->how == DDPS_PEER_X509 ||
		 !strcmp(ddps_who_text(now, DDPS_WHO_NAME), ddps_who_text(first, DDPS_WHO_NAME))));
}

bool ddps_dial_again(struct ddps_ep *ep, const struct ddps_error *e)
{
	struct ddps_dial *d = ep->dial;
	bool unreachable =
		e->code == DDPS_E_REFUSED || e->code == DDPS_E_SYSTEM || e->code == DDPS_E_TIMEDOUT;
	bool closed_on_us = (e->code == DDPS_E_RESET || e->code == DDPS_E_REFUSED) &&
			    (!ddps_uri_secured(&d->uri) || knows_peer(ep));

	ddps_log(&ep->ctx->env.log, DDPS_LOG_INFO, "session", "%s: %s", ddps_ep_peer(ep).text,
		 e->text);
	if (ep->llp->unheard) { /* not so often: each time it is one of those that were there */
		d->next--;
	} else if (closed_on_us && !e->sys_errno && d->enhanced && d->param.legacy_retry &&
		   !d->param.p2p) {
		/* [6581-10-8] once, as the application can do without negotiation. */
		d->enhanced = false;
		d->next--;
	} else if (!unreachable) {
		return false;
	}
	if (!keep_first_peer(ep))
		return false;
	ep->llp->ops->free(ep->llp);
	ep->llp = NULL;
	if (d->next < d->naddrs && !try_next(ep))
		return true;
	return try_later(ep, e);
}

static void end_rejected_dial(struct ddps_ep *ep, bool pd_lost)
{
	struct ddps_error e =
		ddps_error_make(DDPS_E_REJECTED, 0, "the peer's application rejected the request%s",
				pd_lost ? "; no memory for its private data" : "");

	ddps_ep_end(ep, DDPS_EV_REJECTED, &e);
}

/*
 * [6581-9.1-9] [6581-9.2-10] [6581-9.3-1]: @term as the first message, then close.  Without
 * inbound Reads the stream needs no memory of its own.
 */
static void refuse_answer(struct ddps_ep *ep, enum ddps_term_code term, int err, const char *why)
{
	const struct ddps_nego_result none = { 0 };
	const struct ddps_rdmap_start role = { 0 };

	if (ddps_ep_start(ep, &none, &role)) {
		struct ddps_error e = ddps_error_make(err, 0, "%s", why);

		ddps_ep_lost(ep, &e);
		return;
	}
	ddps_dial_free(ep);
	ep->llp->ops->open(ep->llp);
	ddps_rdmap_terminate(ep->rdmap, err, ddps_term_triple(term), why);
}

/* Carry out the verdict of the negotiation on an accept. */
static void end_accepted_dial(struct ddps_ep *ep, int term, const struct ddps_nego_result *res)
{
	const struct ddps_rdmap_start role = { .send_rtr = res->rtr };

	ep->info.rtr = res->rtr;
	if (term) {
		refuse_answer(ep, (enum ddps_term_code)term,
			      term == DDPS_TERM_MPA_IRD ? DDPS_E_IRD : DDPS_E_RTR,
			      "the peer's answer to the enhanced request");
		return;
	}
	if (ddps_ep_start(ep, res, &role)) {
		refuse_answer(ep, DDPS_TERM_MPA_IRD, DDPS_E_NOMEM,
			      "no memory for the negotiated IRD");
		return;
	}
	ddps_dial_free(ep);
	ep->llp->ops->open(ep->llp);
	/* The RTR goes out before the application can post [6581-5-1]. */
	ep->llp->ops->kick(ep->llp);
	ddps_ep_established(ep);
	ddps_timer_after(ep->ctx->env.loop, &ep->nudge_timer, ep->nudge_ms);
}

void ddps_dial_answer(struct ddps_ep *ep, const struct ddps_setup *s)
{
	struct ddps_dial *d = ep->dial;
	struct ddps_nego_result res = { 0 };
	struct ddps_word w;
	const uint8_t *pd;
	size_t pd_len;
	bool has_word;
	int code = 0, no_memory;

	if (!is_same_peer(ep)) {
		struct ddps_error e = ddps_error_make(
			DDPS_E_CERT_NAME, 0,
			"whoever answers the second try is not who ended the first one");

		ddps_ep_lost(ep, &e);
		return;
	}
	ddps_setup_split(s, &w, &pd, &pd_len, &has_word);
	ddps_ep_learn_info(ep);
	ep->info.initiator = true;
	ep->info.enhanced = has_word;
	ep->info.peer_ird = w.ird;
	ep->info.peer_ord = w.ord;
	ep->info.p2p = w.p2p;
	ep->info.peer_rtr = w.rtr;
	no_memory = ddps_ep_keep_pd(ep, pd, pd_len);
	if (s->reject) {
		end_rejected_dial(ep, no_memory);
		return;
	}
	if (no_memory) {
		refuse_answer(ep, DDPS_TERM_MPA_LOCAL, no_memory,
			      "no memory for the peer's private data");
		return;
	}
	if (d->enhanced)
		code = ddps_nego_accept(&d->local, &d->word, &w, &res);
	else
		ddps_nego_plain(&d->local, &res);
	if (res.ird_warning)
		ddps_log(&ep->ctx->env.log, DDPS_LOG_WARN, "session",
			 "%s: peer ORD %u is above our IRD %u, which is the application's",
			 ddps_ep_peer(ep).text, w.ord, res.ird);
	end_accepted_dial(ep, code, &res);
}
