/* SPDX-License-Identifier: BSD-2-Clause */
/* What a listener says of peers that it refused before MPA: those of TLS, and those that speak something else to a plain
 * one. */
#include "mpa_tcp/mpa_tls.h"
#include "secure/told.h"

#define TLS_HANDSHAKE 22 /* the first octet of TLS (RFC 8446 5.1) */

/* Both have shaken hands, and the Request is not whole: as when the peer does not trust this side. */
static bool is_between(const struct ddps_mpa_conn *c)
{
	return c->tls && c->listener && c->share.counted && c->startup && !c->startup->out_len;
}

void ddps_mpa_told_end(struct ddps_mpa_conn *c)
{
	const struct ddps_mpa_startup *s = c->startup;
	const bool is_tls = s && s->in[0] == TLS_HANDSHAKE;

	if (c->initiator || !c->error.code)
		return;
	if (ddps_mpa_tls_shaking(c))
		ddps_told_refused(c->env, c->error.peer, c->error.code, c->error.text,
				  !ddps_mpa_tls_heard(c));
	else if (is_between(c))
		ddps_told_refused(c->env, c->error.peer, c->error.code, c->error.text, false);
	else if (!c->tls && c->error.code == DDPS_E_KEY)
		ddps_told_refused(c->env, c->error.peer, is_tls ? DDPS_E_PLAIN_PEER : DDPS_E_KEY,
				  c->error.text,
				  !is_tls && !c->env->log.fn); /* any port meets strangers */
}
