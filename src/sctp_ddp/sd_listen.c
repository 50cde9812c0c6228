/* SPDX-License-Identifier: BSD-2-Clause */
/* Who listens: which associations come in, and which of them go to make room for others. */
#include "sctp_ddp/sd_assoc.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* All places are taken: if mainly by peers that say nothing, the oldest of the address that has
 * most of them goes. */
static bool make_listener_room(struct ddps_sd_listener *l)
{
	struct ddps_error why = ddps_error_make(DDPS_E_LIMIT, 0,
						"no session asked for, and %u are half open: its "
						"place went to another",
						l->half_open);

	if (l->half_open < l->param.max_half_open)
		return true;
	l->env->half_open_full++;
	if (l->silent.places <= l->param.max_half_open / 2)
		return false;
	l->env->half_open_given_up++;
	ddps_sd_carrier_abort(ddps_shares_first_to_go(&l->silent)->owner, &why);
	return true;
}

/* @c is there: count it as one that has not asked for anything yet. */
static int count_new(struct ddps_sd_listener *l, struct ddps_sd_carrier *c, struct ddps_error *why)
{
	int err = ddps_sd_carrier_begin(c, why);

	if (err < 0)
		return err;
	c->share.owner = c;
	err = ddps_shares_add(&l->silent, &c->share, ddps_share_net(&c->peer_addr));
	if (err < 0)
		*why = ddps_error_make(err, 0, "no memory for an association");
	return err;
}

static void listen_accepted(void *user, struct ddps_sd_assoc *a)
{
	struct ddps_sd_listener *l = user;
	struct ddps_sd_carrier *c;
	struct ddps_error why;

	if (!make_listener_room(l)) {
		ddps_log(&l->env->log, DDPS_LOG_WARN, "sctp",
			 "association refused: %u half open already", l->half_open);
		l->b->free(a);
		return;
	}
	c = ddps_sd_carrier_new(l->env, l->env->sctp, l->b);
	if (!c) {
		ddps_log(&l->env->log, DDPS_LOG_ERROR, "sctp", "no memory for an association");
		l->b->free(a);
		return;
	}
	c->assoc = a;
	c->listener = l;
	c->fresh = true;
	l->half_open++;
	l->b->set_up(a, &ddps_sd_carrier_up, c);
	if (count_new(l, c, &why) < 0)
		ddps_sd_carrier_abort(c, &why);
	else
		ddps_sd_carrier_idle(c);
}

static void take_listen_failure(void *user, const struct ddps_error *e)
{
	struct ddps_sd_listener *l = user;

	l->up->failed(l->user, e);
}

static const struct ddps_sd_listen_up listen_up = {
	.accepted = listen_accepted,
	.failed = take_listen_failure,
};

/*
 * Associations whose listener went live on with their sessions.  A new listener on the same port
 * gets the requests that come over them: a peer shares an association as long as it is there.
 */
static void adopt_associations(struct ddps_sd_provider *prov, struct ddps_sd_listener *l)
{
	struct ddps_sd_carrier *c;
	char addr[DDPS_ADDRS_TEXT];
	const char *colon;
	uint16_t encap, port;

	l->b->endpoint_addr(l->endpoint, addr, sizeof(addr), &encap);
	colon = strrchr(addr, ':');
	port = colon ? (uint16_t)strtoul(colon + 1, NULL, 10) : 0;
	TAILQ_FOREACH(c, &prov->carriers, link) {
		if (!c->listener && !c->goal && c->b == l->b && c->state == DDPS_SD_UP && port &&
		    c->local_addr.port == port) {
			c->listener = l;
			l->half_open += c->pending; /* asked for below the one before */
			ddps_sd_carrier_idle(c);
		}
	}
}

int ddps_sd_listen(struct ddps_env *env, struct ddps_sd_slot *slot, const struct ddps_uri *uri,
		   const struct sockaddr *sa, socklen_t sa_len,
		   const struct ddps_llp_listen_param *p, const struct ddps_llp_listen_up *up,
		   void *user, struct ddps_llp_listener **out)
{
	struct ddps_sd_listener *l = calloc(1, sizeof(*l));
	int err;

	if (!l)
		return DDPS_E_NOMEM;
	l->env = env;
	l->b = slot->b;
	l->up = up;
	l->user = user;
	l->param = *p;
	err = l->b->listen(env, &slot->ctx, uri, sa, sa_len, p->backlog, &listen_up, l,
			   &l->endpoint);
	if (err < 0) {
		free(l);
		return err;
	}
	adopt_associations(env->sctp, l);
	ddps_log(&env->log, DDPS_LOG_INFO, "sctp", "listening, backend %s", l->b->name);
	*out = &l->base;
	return 0;
}

/* The text ends in it. */
static bool ends_in_port(const char *addr, uint16_t port)
{
	const char *colon = strrchr(addr, ':');

	return colon && strtoul(colon + 1, NULL, 10) == port;
}

int ddps_sd_listener_uri(struct ddps_llp_listener *base, char *buf, size_t len)
{
	struct ddps_sd_listener *l = (struct ddps_sd_listener *)base;
	char addr[DDPS_ADDRS_TEXT], port[8] = "off";
	uint16_t encap = 0;

	l->b->endpoint_addr(l->endpoint, addr, sizeof(addr), &encap);
	if (!strcmp(base->provider->scheme, "sctps"))
		return snprintf(buf, len,
				ends_in_port(addr, encap) ? "sctps://%s" : "sctps://%s?encap=%u",
				addr, encap);
	if (encap)
		snprintf(port, sizeof(port), "%u", encap);
	return snprintf(buf, len, "sctp://%s?backend=%s&encap=%s", addr, l->b->name, port);
}

void ddps_sd_listener_free(struct ddps_llp_listener *base)
{
	struct ddps_sd_listener *l = (struct ddps_sd_listener *)base;
	struct ddps_sd_provider *prov = l->env->sctp;
	struct ddps_sd_carrier *c;

	TAILQ_FOREACH(c, &prov->carriers, link)
		if (c->listener == l)
			ddps_sd_carrier_orphan(c);
	l->b->endpoint_free(l->endpoint);
	ddps_shares_fini(&l->silent);
	ddps_shares_fini(&l->idle);
	free(l);
}
