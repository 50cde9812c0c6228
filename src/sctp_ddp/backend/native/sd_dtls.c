/* SPDX-License-Identifier: BSD-2-Clause */
/* DTLS connections: found, made, ended. */
#include "sctp_ddp/backend/native/sd_dtls.h"
#include "common/system/random.h"
#include "secure/secure.h"
#include <stdlib.h>
#include <string.h>

#define LINGER_MS 2000	/* repeats of the end are answered */
#define UNUSED_MS 10000 /* a peer that shook hands and opens nothing */

/* ---- records that wait ---- */

bool ddps_sn_framed_add(struct ddps_sn_framed *f, const uint8_t *p, size_t n)
{
	if (f->size - f->len < n + 2) {
		size_t size = f->len + n + 1024;
		uint8_t *more = realloc(f->p, size);

		if (!more)
			return false;
		f->p = more;
		f->size = size;
	}
	f->p[f->len++] = (uint8_t)(n >> 8);
	f->p[f->len++] = (uint8_t)n;
	memcpy(f->p + f->len, p, n);
	f->len += n;
	f->n++;
	return true;
}

void ddps_sn_framed_drop(struct ddps_sn_framed *f)
{
	free(f->p);
	*f = (struct ddps_sn_framed){ .p = NULL };
}

/* ---- by peer ---- */

int ddps_sn_dtls_begin(struct ddps_sn_sock *udp, bool lone)
{
	const unsigned n = lone ? 1 : DDPS_SN_DTLS_CHAINS;

	udp->table = calloc(1, sizeof *udp->table + n * sizeof udp->table->chain[0]);
	if (!udp->table)
		return DDPS_E_NOMEM;
	udp->table->nchains = n;
	for (unsigned i = 0; i < n; i++)
		TAILQ_INIT(&udp->table->chain[i].near);
	udp->secured = true;
	ddps_sn_random(NULL, udp->table->secret, sizeof udp->table->secret);
	udp->table->secret_at = ddps_now();
	return 0;
}

void ddps_sn_dtls_table_free(struct ddps_sn_sock *udp)
{
	if (!udp->table)
		return;
	ddps_shares_fini(&udp->table->shaking);
	explicit_bzero(udp->table->secret, sizeof udp->table->secret);
	free(udp->table);
	udp->table = NULL;
}

static struct ddps_sn_dtls_chain *dtls_chain(const struct ddps_sn_sock *udp,
					     const struct ddps_sctp_addr *peer, uint16_t port)
{
	uint32_t h = 2166136261u ^ port; /* FNV-1a */

	for (unsigned i = 0; i < sizeof peer->ip; i++)
		h = (h ^ peer->ip[i]) * 16777619u;
	return &udp->table->chain[(h ^ h >> 16) % udp->table->nchains];
}

struct ddps_sn_dtls_chain *ddps_sn_dtls_near(const struct ddps_sn_sock *udp,
					     const struct ddps_sctp_addr *peer)
{
	return dtls_chain(udp, peer, 0);
}

struct ddps_sn_dtls *ddps_sn_dtls_find(const struct ddps_sn_sock *udp,
				       const struct ddps_sctp_addr *peer, uint16_t port)
{
	struct ddps_sn_dtls_at *at;

	LIST_FOREACH(at, &dtls_chain(udp, peer, port)->at, of_chain)
		if (at->port == port && ddps_sc_addr_eq(&at->c->peer, peer))
			return at->c;
	return NULL;
}

void ddps_sn_dtls_unplace(struct ddps_sn_dtls_at *at)
{
	if (at->c)
		LIST_REMOVE(at, of_chain);
	at->c = NULL;
}

void ddps_sn_dtls_place(struct ddps_sn_dtls *c, struct ddps_sn_dtls_at *at, uint16_t port)
{
	ddps_sn_dtls_unplace(at);
	at->c = c;
	at->port = port;
	LIST_INSERT_HEAD(&dtls_chain(c->udp, &c->peer, port)->at, at, of_chain);
}

struct ddps_sn_dtls *ddps_sn_dtls_new(struct ddps_sn_sock *udp, const struct ddps_sctp_addr *peer,
				      uint16_t port, const struct ddps_sctp_addr *local)
{
	struct ddps_sn_dtls *c = calloc(1, sizeof *c), *other = ddps_sn_dtls_find(udp, peer, port);

	if (!c)
		return NULL;
	if (other) /* it may roam there, and does not */
		ddps_sn_dtls_unplace(&other->roam);
	c->ne = udp->ne;
	c->udp = udp;
	c->peer = *peer;
	c->local = *local;
	c->timer = (struct ddps_timer){ .fn = ddps_sn_dtls_timer, .user = c };
	if (ddps_sn_sock_number(udp, c)) {
		free(c);
		return NULL;
	}
	udp->refs++;
	TAILQ_INSERT_TAIL(&ddps_sn_dtls_near(udp, peer)->near, c, of_near);
	ddps_sn_dtls_place(c, &c->at, port);
	return c;
}

/* ---- the end ---- */

static void leave_endpoint(struct ddps_sn_dtls *c)
{
	if (c->l)
		ddps_sctp_unlisten(c->l);
	c->l = NULL;
	if (c->ep)
		LIST_REMOVE(c, of_ep);
	c->ep = NULL;
}

void ddps_sn_dtls_end(struct ddps_sn_dtls *c, const struct ddps_error *why)
{
	struct ddps_sd_assoc *a;

	if (c->state == DDPS_SN_OVER)
		return;
	ddps_sn_dtls_alert(c, DDPS_ALERT_CLOSE_NOTIFY);
	c->state = DDPS_SN_OVER;
	TAILQ_REMOVE(&ddps_sn_dtls_near(c->udp, &c->peer)->near, c, of_near);
	ddps_sn_dtls_unplace(&c->at);
	ddps_sn_dtls_unplace(&c->roam);
	ddps_timer_stop(c->ne->env->loop, &c->timer);
	ddps_shake_free(c->shake);
	ddps_shake_free(c->judging);
	c->shake = c->judging = NULL;
	ddps_shares_del(&c->udp->table->shaking, &c->share);
	leave_endpoint(c);
	ddps_sn_keys_drop(&c->cur);
	ddps_sn_keys_drop(&c->coming);
	ddps_sn_keys_drop(&c->old);
	ddps_sn_framed_drop(&c->todo);
	ddps_sn_framed_drop(&c->early);
	TAILQ_FOREACH(a, &c->ne->assocs, of_env)
		if (why->code && a->sock == c->as)
			ddps_sn_end_soon(a, *why);
	ddps_sn_sock_put(c->as);
	ddps_sn_poke(c->ne); /* which closes it */
}

void ddps_sn_dtls_free(struct ddps_sn_dtls *c)
{
	const struct ddps_secure *s = c->ne->env->secure;

	if (c->witness)
		s->plugin->witness_free(c->witness);
	ddps_error_drop(&c->refused);
	free(c->who);
	free(c->host);
	ddps_sn_sock_put(c->udp);
	free(c);
}

void ddps_sn_dtls_linger(struct ddps_sn_dtls *c)
{
	if (c->state != DDPS_SN_OPEN || c->as->refs != 1)
		return;
	if (c->renewing)
		ddps_sn_dtls_not_renewed(c, NULL);
	ddps_timer_after(c->ne->env->loop, &c->timer, c->took ? LINGER_MS : UNUSED_MS);
}

void ddps_sn_dtls_left(struct ddps_sn_dtls *c, struct ddps_sd_assoc *a)
{
	static const struct ddps_error none;

	if (c->dials == a)
		c->dials = NULL;
	if (c->state == DDPS_SN_SHAKING && !c->server)
		ddps_sn_dtls_end(c, &none);
	else
		ddps_sn_dtls_linger(c);
}

/* ---- endpoints ---- */

void ddps_sn_dtls_listen(struct ddps_sd_endpoint *e)
{
	e->sock->table->ep = e;
}

void ddps_sn_dtls_unlisten(struct ddps_sd_endpoint *e)
{
	static const struct ddps_error none;
	struct ddps_sn_dtls *c, *next;

	e->sock->table->ep = NULL;
	for (c = LIST_FIRST(&e->conns); c; c = next) {
		next = LIST_NEXT(c, of_ep);
		if (c->state == DDPS_SN_SHAKING)
			ddps_sn_dtls_end(c, &none);
		else
			leave_endpoint(c);
	}
}

void ddps_sn_dtls_end_all(struct ddps_sn_env *ne)
{
	static const struct ddps_error none;

	for (unsigned i = 0; i < ne->nsocks; i++)
		if (ne->socks[i] && ne->socks[i]->dtls)
			ddps_sn_dtls_end(ne->socks[i]->dtls, &none);
	while (ne->unused) /* one that is closed lets go of another */
		ddps_sn_close_unused(ne);
}
