/* SPDX-License-Identifier: BSD-2-Clause */
/* Why a handshake over datagrams failed, or went silent. */
#include "secure/hs/dhs_in.h"
#include <ddpsess/err_codes.h>

void ddps_dhs_end_session(struct ddps_dhs *d)
{
	if (d->session)
		gnutls_deinit(d->session);
	d->session = NULL;
}

enum ddps_hs_state ddps_dhs_fail(struct ddps_dhs *d, int alert)
{
	if (alert)
		(void)gnutls_alert_send(d->session, GNUTLS_AL_FATAL,
					(gnutls_alert_description_t)alert);
	ddps_dhs_end_session(d); /* it seals nothing any more */
	return DDPS_HS_FAILED;
}

static void explain_dtls(struct ddps_dhs *d, int err, int alert)
{
	if (err == GNUTLS_E_UNSUPPORTED_VERSION_PACKET || alert == GNUTLS_A_PROTOCOL_VERSION)
		ddps_verdict_set(&d->why, DDPS_E_TLS_OLD, 0,
				 "the peer has no DTLS 1.2, older ones are not taken");
	else if (err == GNUTLS_E_NO_CIPHER_SUITES || err == GNUTLS_E_INSUFFICIENT_CREDENTIALS ||
		 alert == GNUTLS_A_HANDSHAKE_FAILURE)
		ddps_verdict_set(&d->why, DDPS_E_TLS_SUITE, 0,
				 "nothing in common with the peer: one has certificates and the "
				 "other a pre-shared key only, or it lacks ECDHE with AES-GCM, "
				 "ChaCha20 with a pre-shared key, or X25519, P-256 and P-384");
	else if (alert >= 0)
		ddps_verdict_set(&d->why, DDPS_E_ALERT, 0, "the peer ended the handshake: %s",
				 gnutls_alert_get_name((gnutls_alert_description_t)alert));
	else
		ddps_verdict_set(&d->why, DDPS_E_TLS, 0, "the DTLS handshake failed: %s",
				 gnutls_strerror(err));
}

static void explain_dtls_alert(struct ddps_dhs *d, int alert)
{
	if (!ddps_creds_failed(&d->creds, d->session, GNUTLS_E_FATAL_ALERT_RECEIVED, alert,
			       &d->why))
		explain_dtls(d, GNUTLS_E_FATAL_ALERT_RECEIVED, alert);
}

enum ddps_hs_state ddps_dhs_believe(struct ddps_dhs *d)
{
	explain_dtls_alert(d, d->alert);
	d->why.anybodys = true;
	return ddps_dhs_fail(d, 0);
}

enum ddps_hs_state ddps_dhs_explain(struct ddps_dhs *d, int err)
{
	int level, own;

	if (d->no_memory || err == GNUTLS_E_MEMORY_ERROR) {
		ddps_verdict_set(&d->why, DDPS_E_NOMEM, 0, "no memory for a handshake");
		return ddps_dhs_fail(d, GNUTLS_A_INTERNAL_ERROR);
	}
	if (err == GNUTLS_E_FATAL_ALERT_RECEIVED) { /* under keys */
		explain_dtls_alert(d, (int)gnutls_alert_get(d->session));
		return ddps_dhs_fail(d, 0);
	}
	own = gnutls_error_to_alert(err, &level);
	if (ddps_creds_failed(&d->creds, d->session, err, -1, &d->why))
		own = d->why.alert;
	else
		explain_dtls(d, err, -1);
	d->why.anybodys = true;
	return ddps_dhs_fail(d, own > 0 ? own : GNUTLS_A_INTERNAL_ERROR);
}

/* If it goes on like this, what to say at the deadline: in DTLS what a wrong key sealed is dropped silently. */
void ddps_dhs_explain_silence(struct ddps_dhs *d)
{
	if (d->alert >= 0) {
		explain_dtls_alert(d, d->alert);
		return;
	}
	if (d->creds.psk && d->creds.server &&
	    ddps_creds_failed(&d->creds, d->session, GNUTLS_E_DECRYPTION_FAILED, -1, &d->why))
		return;
	if (d->creds.psk && d->got)
		ddps_verdict_set(&d->why, DDPS_E_CERT_REFUSED, 0,
				 "the peer is silent after the PSK identity '%.60s': it does not "
				 "know it, or has another key for it",
				 d->creds.psk_name);
	else
		ddps_verdict_set(&d->why, DDPS_E_TIMEDOUT, 0, "%s",
				 d->got ? "the peer went silent in the DTLS handshake"
					: "nothing answered the DTLS handshake: does the peer "
					  "listen on sctps:// at this port?");
}
