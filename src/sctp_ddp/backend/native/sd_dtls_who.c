/* SPDX-License-Identifier: BSD-2-Clause */
/* Who the peer of an association inside DTLS is, and whether it would be let in now. */
#include "sctp_ddp/backend/native/sd_dtls.h"
#include "secure/secure.h"
#include "secure/told.h"
#include <stdlib.h>
#include <string.h>
#include <time.h>

int ddps_sn_dtls_keep_who(struct ddps_sn_dtls *c, const struct ddps_peer_id *id)
{
	c->who = ddps_who_keep(id);
	if (!c->who)
		return DDPS_E_NOMEM;
	c->judged_at = (uint64_t)time(NULL);
	return 0;
}

const struct ddps_who *ddps_sn_dtls_peer_id(const struct ddps_sd_assoc *a)
{
	return a->sock->dtls ? a->sock->dtls->who : NULL;
}

static bool is_same_of_both(const struct ddps_who *a, const struct ddps_who *b,
			    enum ddps_who_text which)
{
	return !strcmp(ddps_who_text(a, which), ddps_who_text(b, which));
}

bool ddps_sn_dtls_same_peer(const struct ddps_who *a, const struct ddps_who *b)
{
	return a->how == b->how && is_same_of_both(a, b, DDPS_WHO_NAME) &&
	       is_same_of_both(a, b, DDPS_WHO_ISSUER);
}

/* Whoever learns of it may end others, so that none of them is kept from one to the next. */
static struct ddps_sd_assoc *find_untold(const struct ddps_sn_dtls *c)
{
	struct ddps_sd_assoc *a;

	TAILQ_FOREACH(a, &c->ne->assocs, of_env)
		if (a->sock == c->as && !a->gone && a->judged != c->judgements)
			return a;
	return NULL;
}

static void dtls_judged(void *user)
{
	struct ddps_sn_dtls *c = user;
	const struct ddps_verdict *v = ddps_shake_why(c->judging);
	struct ddps_error why = ddps_error_make(v->code, 0, "%s", v->text);
	struct ddps_witness *w = ddps_shake_judged(c->judging);
	struct ddps_sd_assoc *a;

	if (c->witness) /* a new handshake has brought a newer one */
		c->ne->env->secure->plugin->witness_free(w);
	else
		c->witness = w;
	ddps_shake_free(c->judging);
	c->judging = NULL;
	c->judged_at = (uint64_t)time(NULL);
	ddps_error_drop(&c->refused);
	ddps_error_keep(&c->refused, &why);
	c->judgements++;
	while ((a = find_untold(c))) {
		a->judged = c->judgements;
		a->up->judged(a->user, &why);
	}
	ddps_sn_poke(c->ne);
}

/* Once a second: it costs some tenths of a millisecond of the thread of handshakes. */
int ddps_sn_dtls_judge(struct ddps_sd_assoc *a, struct ddps_error *why)
{
	struct ddps_sn_dtls *c = a->sock->dtls;
	struct sockaddr_storage peer;
	int err;

	if (!c || c->state == DDPS_SN_OVER)
		return 0;
	if (c->judging)
		return DDPS_E_AGAIN;
	if (c->judged_at == (uint64_t)time(NULL)) {
		*why = ddps_error_kept(&c->refused);
		return why->code;
	}
	ddps_sn_sockaddr(&c->peer, c->at.port, c->peer.family == 6 ? AF_INET6 : AF_INET, &peer);
	err = ddps_shake_judge(c->ne->env, c->witness, (struct sockaddr *)&peer, dtls_judged, c,
			       &c->judging, why);
	if (err)
		return err;
	c->witness = NULL;
	return DDPS_E_AGAIN;
}

/* A handshake repeats what nobody answers after so long at most (RFC 6347 4.2.4.1), and is another one after that. */
#define REFUSED_NS (64 * NSEC_PER_SEC)

static bool was_refused(struct ddps_sn_env *ne, const struct ddps_sn_refused *now)
{
	struct ddps_sn_refused *r = ne->refused;

	for (unsigned i = 0; i < DDPS_SN_REFUSED; i++)
		if (r[i].at && now->at - r[i].at < REFUSED_NS && r[i].code == now->code &&
		    r[i].port == now->port && ddps_sc_addr_eq(&r[i].peer, &now->peer)) {
			r[i].at = now->at;
			return true;
		}
	return false;
}

void ddps_sn_dtls_refused(struct ddps_sn_env *ne, const struct ddps_sctp_addr *peer, uint16_t port,
			  int code, const char *why, bool early)
{
	const struct ddps_sn_refused now = { *peer, port, code, ddps_now() };
	char text[72];

	if (early && was_refused(ne, &now))
		return;
	if (early)
		ne->refused[ne->nrefused++ % DDPS_SN_REFUSED] = now;
	ddps_sn_text(peer, port, text, sizeof text);
	ddps_told_refused(ne->env, text, code, why, false);
}

struct ddps_error ddps_sn_dtls_by_peer(const struct ddps_sn_dtls *c, uint8_t alert)
{
	const bool mine =
		(alert >= DDPS_ALERT_BAD_CERTIFICATE && alert <= DDPS_ALERT_ACCESS_DENIED) ||
		alert == DDPS_ALERT_UNKNOWN_PSK_IDENTITY ||
		alert == DDPS_ALERT_CERTIFICATE_REQUIRED;

	(void)c;
	if (alert == DDPS_ALERT_CLOSE_NOTIFY)
		return ddps_error_make(DDPS_E_RESET, 0,
				       "the peer ended DTLS before the association: data may be "
				       "missing");
	if (mine)
		return ddps_error_make(DDPS_E_CERT_REFUSED, 0,
				       "the peer refused this side (%s): its log says why",
				       ddps_alert_name(alert));
	return ddps_error_make(DDPS_E_ALERT, 0, "the peer ended DTLS: %s", ddps_alert_name(alert));
}
