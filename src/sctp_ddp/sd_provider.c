/* SPDX-License-Identifier: BSD-2-Clause */
/* The SCTP transport as the layers above see it: connect, listen, choice of the backend. */
#include "sctp_ddp/sd_assoc.h"
#include <ddpsess/version.h>
#include <netinet/in.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { NATIVE, KERNEL, NBACKENDS, OTHER = NBACKENDS };

/* NULL is behind the last. */
static const struct ddps_sd_backend *const backends[NBACKENDS + 1] = {
	[NATIVE] = &ddps_sd_native,
	[KERNEL] = &ddps_sd_kernel,
};

static struct ddps_sd_provider *provider(struct ddps_env *env)
{
	struct ddps_sd_provider *prov = env->sctp;

	if (prov)
		return prov;
	prov = calloc(1, sizeof(*prov));
	if (!prov)
		return NULL;
	for (int i = 0; backends[i]; i++)
		prov->slot[i].b = backends[i];
	TAILQ_INIT(&prov->carriers);
	for (unsigned i = 0; i < DDPS_SD_GOALS; i++)
		TAILQ_INIT(&prov->goals[i]);
	env->sctp = prov;
	return prov;
}

int ddps_sd_use_backend(struct ddps_env *env, const struct ddps_sd_backend *b, bool connects,
			bool listens)
{
	struct ddps_sd_provider *prov = provider(env);

	if (!prov)
		return DDPS_E_NOMEM;
	prov->slot[OTHER].b = b;
	prov->other_connects = connects;
	prov->other_listens = listens;
	return 0;
}

int ddps_has_backend(const char *name)
{
	for (int i = 0; name && backends[i]; i++)
		if (!strcmp(name, backends[i]->name))
			return backends[i]->available();
	return DDPS_E_INVAL;
}

/* The slot of the backend that the URI asks for, or DDPS_E_UNSUPPORTED. */
static int pick_slot(struct ddps_env *env, struct ddps_sd_provider *prov,
		     const struct ddps_uri *uri)
{
	int n = 0;

	if (!uri->backend[0] || !strcmp(uri->backend, "auto")) {
		/* Directly on IP the kernel's needs no privilege. */
		n = uri->encap == DDPS_URI_ENCAP_OFF && ddps_sd_kernel.available() ? KERNEL
										   : NATIVE;
	} else {
		while (backends[n] && strcmp(uri->backend, backends[n]->name))
			n++;
		if (!backends[n])
			return DDPS_E_UNSUPPORTED;
	}
	if (!prov->slot[n].b->homes && (uri->hosts.n > 1 || uri->from.n > 1)) {
		ddps_log(&env->log, DDPS_LOG_ERROR, "sctp", "backend %s takes no list of addresses",
			 prov->slot[n].b->name);
		return DDPS_E_UNSUPPORTED;
	}
	if (!prov->slot[n].b->shares && uri->per_address) {
		ddps_log(&env->log, DDPS_LOG_ERROR, "sctp",
			 "backend %s has no per-address=", prov->slot[n].b->name);
		return DDPS_E_UNSUPPORTED;
	}
	if (ddps_uri_sctps(uri) && !env->secure) {
		ddps_log(&env->log, DDPS_LOG_ERROR, "sctp",
			 "sctps:// needs a certificate or a pre-shared key: none was given to the "
			 "context");
		return DDPS_E_NO_CERT;
	}
	if (!prov->slot[n].b->available()) {
		ddps_log(&env->log, DDPS_LOG_ERROR, "sctp", "backend %s is not available here",
			 prov->slot[n].b->name);
		return DDPS_E_UNSUPPORTED;
	}
	return n;
}

/* ---- connecting ---- */

static bool same_address(const struct sockaddr_in6 *a6, const struct sockaddr_in6 *b6)
{
	const struct sockaddr_in *a4 = (const void *)a6, *b4 = (const void *)b6;

	if (a6->sin6_family != b6->sin6_family)
		return false;
	if (b6->sin6_family == AF_INET)
		return a4->sin_port == b4->sin_port && a4->sin_addr.s_addr == b4->sin_addr.s_addr;
	return a6->sin6_port == b6->sin6_port && a6->sin6_scope_id == b6->sin6_scope_id &&
	       !memcmp(&a6->sin6_addr, &b6->sin6_addr, sizeof(a6->sin6_addr));
}

/* Equal goals are in one place. */
static unsigned place_of(const struct ddps_sd_goal *g)
{
	uint32_t h = 2166136261u; /* FNV-1a */

	for (unsigned i = 0; i < g->nto; i++) {
		const struct sockaddr_in *a4 = (const void *)&g->at[i];
		bool four = a4->sin_family == AF_INET;
		const uint8_t *at =
			four ? (const void *)&a4->sin_addr : (const void *)&g->at[i].sin6_addr;

		h = (h ^ a4->sin_port) * 16777619u;
		for (unsigned k = 0; k < (four ? 4u : 16u); k++)
			h = (h ^ at[k]) * 16777619u;
	}
	return (h ^ h >> 16) % DDPS_SD_GOALS;
}

/* sctps: whom the program wants there is a part of it. */
static bool name_goal(struct ddps_sd_goal *g, const struct ddps_llp_param *p)
{
	g->secured = true;
	g->host = strdup(p->host ? p->host : "");
	return g->host != NULL;
}

static bool is_name_alike(const char *a, const char *b)
{
	return !a == !b && (!a || !strcmp(a, b));
}

static struct ddps_sd_goal *goal_new(const struct ddps_uri *uri, const struct sockaddr *sa,
				     socklen_t sa_len, const struct ddps_llp_param *p)
{
	unsigned nto = uri->hosts.n ? uri->hosts.n : 1;
	struct ddps_sd_goal *g = calloc(1, sizeof *g + (nto + uri->from.n) * sizeof g->at[0]);

	if (!g)
		return NULL;
	*g = (struct ddps_sd_goal){
		.encap = uri->encap, .tos = uri->tos, .nto = nto, .nfrom = uri->from.n
	};
	if (!uri->hosts.n)
		memcpy(&g->at[0], sa, sa_len < sizeof g->at[0] ? sa_len : sizeof g->at[0]);
	for (unsigned i = 0; i < uri->hosts.n; i++)
		memcpy(&g->at[i], &uri->hosts.at[i], sizeof g->at[i]);
	for (unsigned i = 0; i < uri->from.n; i++)
		memcpy(&g->at[nto + i], &uri->from.at[i], sizeof g->at[i]);
	g->place = place_of(g);
	if (ddps_uri_sctps(uri) && !name_goal(g, p)) {
		ddps_sd_goal_free(g);
		return NULL;
	}
	return g;
}

static bool same_goal(const struct ddps_sd_goal *a, const struct ddps_sd_goal *b)
{
	if (a->secured != b->secured || !is_name_alike(a->host, b->host))
		return false;
	if (a->encap != b->encap || a->tos != b->tos || a->nto != b->nto || a->nfrom != b->nfrom)
		return false;
	for (unsigned i = 0; i < a->nto + a->nfrom; i++)
		if (!same_address(&a->at[i], &b->at[i]))
			return false;
	return true;
}

/*
 * An association that the peer opened is never reused: its port is not the one it listens on,
 * so nothing says that the two are the same program.  Neither is one that is full, or whose peer
 * takes nothing more now, since a session there stalls: an Initiate would not arrive.  And where all who
 * wanted one have given up, its INIT may have met nobody who listens: that is no answer to whoever asks now.
 */
static bool takes_more(struct ddps_sd_carrier *c)
{
	struct ddps_sd_assoc_info info = { 0 };
	struct ddps_error why;
	int err;

	if (c->alone || c->blocked || c->refused || ddps_sd_carrier_full(c))
		return false;
	if (c->state == DDPS_SD_COMING && TAILQ_EMPTY(&c->waiting))
		return false;
	if (c->state != DDPS_SD_UP)
		return true;
	/* who was let in once may have been revoked since */
	err = c->b->judge ? c->b->judge(c->assoc, &why) : 0;
	c->judging |= err == DDPS_E_AGAIN;
	if (err && err != DDPS_E_AGAIN)
		return false;
	c->b->info(c->assoc, &info);
	return !info.shut;
}

static struct ddps_sd_carrier *find_carrier(struct ddps_sd_provider *prov,
					    const struct ddps_sd_backend *b,
					    const struct ddps_sd_goal *goal)
{
	struct ddps_sd_carrier *c;
	struct ddps_sd_goal *g;

	TAILQ_FOREACH(g, &prov->goals[goal->place], link) {
		c = g->carrier;
		if (c->state != DDPS_SD_GOING && c->b == b &&
		    c->nsessions < DDPS_SCTP_STREAMS / 2 && same_goal(g, goal) && takes_more(c))
			return c;
	}
	return NULL;
}

/* @goal: is the carrier's from now on, or freed. */
static int new_carrier(struct ddps_env *env, struct ddps_sd_provider *prov, int slot,
		       const struct ddps_uri *uri, const struct sockaddr *sa, socklen_t sa_len,
		       const struct ddps_llp_param *p, struct ddps_sd_goal *goal,
		       struct ddps_sd_carrier **out)
{
	const struct ddps_sd_backend *b = prov->slot[slot].b;
	struct ddps_sd_carrier *c = ddps_sd_carrier_new(env, prov, b);
	int err;

	if (!c) {
		ddps_sd_goal_free(goal);
		return DDPS_E_NOMEM;
	}
	c->goal = goal;
	goal->carrier = c;
	TAILQ_INSERT_TAIL(&prov->goals[goal->place], goal, link);
	c->peer_addr = ddps_addr_of(sa);
	ddps_sd_log(c, DDPS_LOG_INFO, ": connecting, backend %s", b->name);
	err = b->connect(env, &prov->slot[slot].ctx, uri, sa, sa_len, p, &ddps_sd_carrier_up, c,
			 &c->assoc);
	if (err < 0) {
		ddps_sd_carrier_free(c);
		return err;
	}
	*out = c;
	return 0;
}

static int new_initiator(struct ddps_env *env, const struct ddps_setup *setup,
			 const struct ddps_llp_param *p, struct ddps_sd_session **out)
{
	struct ddps_sd_session *s = ddps_sd_session_new(env, true);

	if (!s)
		return DDPS_E_NOMEM;
	s->enhanced = setup->enhanced;
	s->param = *p;
	if (setup->pd_len) {
		s->pd = malloc(setup->pd_len);
		if (!s->pd) {
			free(s);
			return DDPS_E_NOMEM;
		}
		memcpy(s->pd, setup->pd, setup->pd_len);
	}
	s->pd_len = setup->pd_len;
	*out = s;
	return 0;
}

static int sctp_connect(struct ddps_env *env, const struct ddps_uri *uri, const struct sockaddr *sa,
			socklen_t sa_len, const struct ddps_setup *setup,
			const struct ddps_llp_param *p, const struct ddps_llp_up *up, void *user,
			struct ddps_llp **out)
{
	struct ddps_sd_provider *prov = provider(env);
	uint16_t code = setup->enhanced ? DDPS_SD_ENH_INITIATE : DDPS_SD_INITIATE;
	struct ddps_sd_session *s = NULL;
	struct ddps_sd_carrier *c;
	struct ddps_sd_goal *goal;
	int slot, err;

	if (!prov)
		return DDPS_E_NOMEM;
	if (setup->pd_len > DDPS_SD_PD_MAX)
		return DDPS_E_TOO_LONG;
	if (uri->per_address) {
		ddps_log(&env->log, DDPS_LOG_ERROR, "sctp", "per-address= is for listening");
		return DDPS_E_ADDRESS;
	}
	if (!ddps_sd_pd_ok(code, setup->pd_len) || sa_len > sizeof(struct sockaddr_storage))
		return DDPS_E_INVAL;
	slot = prov->other_connects ? OTHER : pick_slot(env, prov, uri);
	if (slot < 0)
		return slot;
	goal = goal_new(uri, sa, sa_len, p);
	if (!goal)
		return DDPS_E_NOMEM;
	c = p->stalls ? NULL : find_carrier(prov, prov->slot[slot].b, goal);
	err = new_initiator(env, setup, p, &s);
	if (!err && !c)
		err = new_carrier(env, prov, slot, uri, sa, sa_len, p, goal, &c);
	else
		ddps_sd_goal_free(goal);
	if (err < 0) {
		if (s)
			s->llp.ops->free(&s->llp);
		return err;
	}
	s->llp.up = up;
	s->llp.user = user;
	s->joined = c->state == DDPS_SD_UP;
	c->alone = p->stalls;
	ddps_sd_carrier_wait(c, s);
	*out = &s->llp;
	return 0;
}

/* ---- listening: sd_listen.c ---- */

static int sctp_listen(struct ddps_env *env, const struct ddps_uri *uri, const struct sockaddr *sa,
		       socklen_t sa_len, const struct ddps_llp_listen_param *p,
		       const struct ddps_llp_listen_up *up, void *user,
		       struct ddps_llp_listener **out)
{
	struct ddps_sd_provider *prov = provider(env);
	int slot, err;

	if (!prov)
		return DDPS_E_NOMEM;
	if (uri->from.n) {
		ddps_log(&env->log, DDPS_LOG_ERROR, "sctp",
			 "local= is for connecting; a listener's addresses are the URI's host");
		return DDPS_E_ADDRESS;
	}
	slot = prov->other_listens ? OTHER : pick_slot(env, prov, uri);
	if (slot < 0)
		return slot;
	err = ddps_sd_listen(env, &prov->slot[slot], uri, sa, sa_len, p, up, user, out);
	if (!err)
		(*out)->provider = ddps_uri_sctps(uri) ? &ddps_sctps_provider : &ddps_sctp_provider;
	return err;
}

static enum ddps_left sctp_wind_up(struct ddps_env *env, bool all)
{
	struct ddps_sd_provider *prov = env->sctp;
	enum ddps_left left = DDPS_LEFT_NOTHING;
	struct ddps_sd_carrier *c, *next;

	if (!prov)
		return left;
	for (c = TAILQ_FIRST(&prov->carriers); c; c = next) {
		next = TAILQ_NEXT(c, link);
		ddps_sd_carrier_wind_up(c, all);
	}
	TAILQ_FOREACH(c, &prov->carriers, link)
		if (ddps_sd_carrier_has_work(c))
			left = DDPS_LEFT_WORK;
		else if (left == DDPS_LEFT_NOTHING)
			left = DDPS_LEFT_END;
	return left;
}

static void sctp_fini(struct ddps_env *env)
{
	struct ddps_sd_provider *prov = env->sctp;

	if (!prov)
		return;
	while (!TAILQ_EMPTY(&prov->carriers))
		ddps_sd_carrier_free(TAILQ_FIRST(&prov->carriers));
	for (int i = 0; i <= OTHER; i++)
		if (prov->slot[i].ctx)
			prov->slot[i].b->fini(env, prov->slot[i].ctx);
	free(prov->seg);
	free(prov);
	env->sctp = NULL;
}

const struct ddps_llp_provider ddps_sctp_provider = {
	.scheme = "sctp",
	.connect = sctp_connect,
	.listen = sctp_listen,
	.listener_uri = ddps_sd_listener_uri,
	.listener_free = ddps_sd_listener_free,
	.wind_up = sctp_wind_up,
	.fini = sctp_fini,
};

static void fini_nothing(struct ddps_env *env)
{
	(void)env;
}

/* The same inside DTLS: what it shares with the other one goes with that. */
const struct ddps_llp_provider ddps_sctps_provider = {
	.scheme = "sctps",
	.connect = sctp_connect,
	.listen = sctp_listen,
	.listener_uri = ddps_sd_listener_uri,
	.listener_free = ddps_sd_listener_free,
	.fini = fini_nothing,
};
