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
	c->id = malloc(sizeof *c->id);
	if (!c->id)
		return DDPS_E_NOMEM;
	*c->id = *id;
	c->judged_at = (uint64_t)time(NULL);
	return 0;
}

const struct ddps_peer_id *ddps_sn_dtls_peer_id(const struct ddps_sd_assoc *a)
{
	return a->sock->dtls ? a->sock->dtls->id : NULL;
}

bool ddps_sn_dtls_same_peer(const struct ddps_peer_id *a, const struct ddps_peer_id *b)
{
	return a->how == b->how && !strcmp(a->name, b->name) && !strcmp(a->issuer, b->issuer);
}

/* Once a second: what is judged costs some tenths of a millisecond. */
int ddps_sn_dtls_judge(struct ddps_sd_assoc *a, struct ddps_error *why)
{
	const struct ddps_secure *s = a->ne->env->secure;
	struct ddps_sn_dtls *c = a->sock->dtls;
	const int64_t now = time(NULL);
	struct ddps_creds_set *set;
	struct ddps_verdict v = { .code = 0 };
	int err;

	if (!c || !c->witness || c->judged_at == (uint64_t)now)
		return 0;
	set = s->plugin->creds_use(s->creds, ddps_now() / NSEC_PER_MSEC, now, &v);
	ddps_told_news(a->ne->env, &v);
	err = s->plugin->witness_judge(c->witness, set, now, &v);
	s->plugin->creds_release(set);
	if (err)
		*why = ddps_error_make(err, 0, "%s", v.text);
	else
		c->judged_at = (uint64_t)now;
	return err;
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
