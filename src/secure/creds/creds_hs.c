/* SPDX-License-Identifier: BSD-2-Clause */
/* Credentials in a handshake of GnuTLS. */
#include "secure/creds/set.h"
#include <ddpsess/err_codes.h>
#include <string.h>

bool ddps_creds_has_x509(const struct ddps_creds_set *set)
{
	return set->own;
}

bool ddps_creds_has_psk(const struct ddps_creds_set *set)
{
	return set->psk_server;
}

bool ddps_creds_dials_psk(const struct ddps_creds_set *set)
{
	return set->psk_client && (!set->own || set->settings.value[DDPS_SET_PSK_IDENTITY]);
}

/* ---- keys: GnuTLS asks, and wipes the copy ---- */

static int copy_secret(gnutls_datum_t *to, const void *p, size_t len)
{
	to->data = gnutls_malloc(len + 1);
	if (!to->data)
		return -1;
	memcpy(to->data, p, len);
	to->data[len] = 0;
	to->size = (unsigned)len;
	return 0;
}

/* For an identity that there is not GnuTLS goes on with a random key if this returns 1, so that the wire
 * does not show which of the two is wrong. */
int ddps_psk_of_peer(gnutls_session_t session, const gnutls_datum_t *identity, gnutls_datum_t *key)
{
	struct ddps_creds_hs *h = gnutls_session_get_ptr(session);
	const struct ddps_creds_set *set = h->set;
	const char *const me = set->settings.value[DDPS_SET_PSK_IDENTITY];
	const struct ddps_psk *p;

	ddps_name_clean(h->psk_name, sizeof h->psk_name, identity->data, identity->size);
	h->psk = true;
	p = ddps_vault_intact(&set->psks.vault)
		    ? ddps_psks_find(&set->psks, identity->data, identity->size)
		    : NULL;
	h->psk_own = p && me && ddps_psk_is(p, me);
	h->psk_unknown = !p || h->psk_own;
	if (h->psk_unknown)
		return 1;
	h->psk_id = p->identity;
	return copy_secret(key, p->key, p->key_len);
}

int ddps_psk_to_dial(gnutls_session_t session, gnutls_datum_t *identity, gnutls_datum_t *key)
{
	const struct ddps_creds_hs *h = gnutls_session_get_ptr(session);
	const struct ddps_creds_set *set = h->set;
	const struct ddps_psk *p =
		ddps_psks_mine(&set->psks, set->settings.value[DDPS_SET_PSK_IDENTITY]);

	if (!p || !ddps_vault_intact(&set->psks.vault) ||
	    copy_secret(identity, p->identity, strlen(p->identity)))
		return -1;
	if (!copy_secret(key, p->key, p->key_len))
		return 0;
	gnutls_free(identity->data);
	identity->data = NULL;
	return -1;
}

static int give_own_psk(struct ddps_creds_hs *h, gnutls_session_t session, struct ddps_verdict *why)
{
	const struct ddps_settings *const s = &h->set->settings;
	const struct ddps_psk *p;

	if (h->server)
		return gnutls_credentials_set(session, GNUTLS_CRD_PSK, h->set->psk_server);
	p = ddps_psks_mine(&h->set->psks, s->value[DDPS_SET_PSK_IDENTITY]);
	if (!p && s->value[DDPS_SET_PSK_IDENTITY]) /* taken out of the file */
		return ddps_verdict_set(
			why, DDPS_E_PSK_UNKNOWN, 0,
			"%.80s has no key of '%.60s', as whom this side is to connect",
			s->value[DDPS_SET_PSK], s->value[DDPS_SET_PSK_IDENTITY]);
	if (!p && !h->set->psks.n)
		return ddps_verdict_set(why, DDPS_E_PSK_UNKNOWN, 0, "%.80s has no key in it",
					s->value[DDPS_SET_PSK]);
	if (!p)
		return ddps_verdict_set(why, DDPS_E_CONFIG, 0,
					"%.80s has keys of several identities: say by "
					"psk-identity as whom to connect",
					s->value[DDPS_SET_PSK]);
	h->psk = true;
	h->psk_id = p->identity;
	ddps_name_clean(h->psk_name, sizeof h->psk_name, p->identity, strlen(p->identity));
	return gnutls_credentials_set(session, GNUTLS_CRD_PSK, h->set->psk_client);
}

int ddps_creds_give(struct ddps_creds_hs *h, struct ddps_creds_set *set, gnutls_session_t session,
		    bool server, struct ddps_verdict *why)
{
	int err = 0;

	*h = (struct ddps_creds_hs){ .set = set, .server = server };
	*why = (struct ddps_verdict){ .code = 0 };
	gnutls_session_set_ptr(session, h);
	gnutls_session_set_keylog_function(session,
					   ddps_keylog_add); /* not where the environment says */
	if (set->psk_server && (server || ddps_creds_dials_psk(set)))
		err = give_own_psk(h, session, why);
	if (!err && set->own && (server || !ddps_creds_dials_psk(set)))
		err = set->own->may[server]
			      ? gnutls_credentials_set(session, GNUTLS_CRD_CERTIFICATE,
						       set->own->x509)
			      : ddps_set_may(set, server, false, why);
	if (!err && server && set->own)
		gnutls_certificate_server_set_request(session, GNUTLS_CERT_REQUIRE);
	if (!err || why->code)
		return why->code;
	return ddps_verdict_set(why, DDPS_E_NOMEM, 0, "GnuTLS does not take credentials: %s",
				gnutls_strerror(err));
}

/* ---- why it failed ---- */

/* The peer refused what this side showed. */
static int explain_alert(const struct ddps_creds_hs *h, int alert, struct ddps_verdict *why)
{
	static const struct {
		int alert;
		const char *text;
	} known[] = {
		{ DDPS_ALERT_BAD_CERTIFICATE, "bad certificate" },
		{ DDPS_ALERT_UNSUPPORTED_CERTIFICATE, "unsupported certificate: not for this use" },
		{ DDPS_ALERT_CERTIFICATE_REVOKED, "certificate revoked" },
		{ DDPS_ALERT_CERTIFICATE_EXPIRED, "certificate expired or not yet valid" },
		{ DDPS_ALERT_CERTIFICATE_UNKNOWN, "certificate unknown" },
		{ DDPS_ALERT_UNKNOWN_CA, "unknown CA" },
		{ DDPS_ALERT_ACCESS_DENIED, "access denied: it is not on the list" },
		{ DDPS_ALERT_CERTIFICATE_REQUIRED, "certificate required" },
		{ DDPS_ALERT_DECRYPT_ERROR, "decrypt error" },
		{ DDPS_ALERT_UNKNOWN_PSK_IDENTITY, "unknown PSK identity" },
	};

	if (h->psk && !h->server && alert == GNUTLS_A_ILLEGAL_PARAMETER)
		alert = DDPS_ALERT_DECRYPT_ERROR; /* so GnuTLS says it */
	for (size_t i = 0; i < sizeof known / sizeof *known; i++) {
		if (known[i].alert != alert)
			continue;
		if (h->psk && !h->server && alert != DDPS_ALERT_ACCESS_DENIED)
			return ddps_verdict_set(why, DDPS_E_CERT_REFUSED, 0,
						"the peer refused the PSK identity '%.60s' (%s): "
						"it does not know it, or has another key for it",
						h->psk_name, known[i].text);
		return ddps_verdict_set(why, DDPS_E_CERT_REFUSED, 0,
					"the peer refused %s%.80s (%s): its log says why",
					h->psk ? "the PSK identity of " : "",
					h->psk	      ? h->psk_name
					: h->set->own ? h->set->settings.value[DDPS_SET_CERT]
						      : "this side",
					known[i].text);
	}
	return 0;
}

int ddps_creds_failed(const struct ddps_creds_hs *h, gnutls_session_t session, int err, int alert,
		      struct ddps_verdict *why)
{
	const char *const psks = h->set->settings.value[DDPS_SET_PSK];

	(void)session;
	if (alert >= 0)
		return explain_alert(h, alert, why);
	if (h->server && h->psk && err != GNUTLS_E_PREMATURE_TERMINATION) {
		if (h->psk_own)
			return ddps_verdict_set(
				why, DDPS_E_PSK_UNKNOWN, DDPS_ALERT_DECRYPT_ERROR,
				"the peer uses the PSK identity '%.60s', which is "
				"this side's own (psk-identity): give each host one",
				h->psk_name);
		if (h->psk_unknown)
			return ddps_verdict_set(why, DDPS_E_PSK_UNKNOWN, DDPS_ALERT_DECRYPT_ERROR,
						"the PSK identity '%.60s' is not in %.60s: add its "
						"key",
						h->psk_name, psks);
		if (err == GNUTLS_E_RECEIVED_ILLEGAL_PARAMETER ||
		    err == GNUTLS_E_DECRYPTION_FAILED || err == GNUTLS_E_ERROR_IN_FINISHED_PACKET)
			return ddps_verdict_set(why, DDPS_E_PSK_WRONG, DDPS_ALERT_DECRYPT_ERROR,
						"the peer has another key for the PSK identity "
						"'%.60s' than %.60s: copy the file anew",
						h->psk_name, psks);
	}
	if (err == GNUTLS_E_KEY_USAGE_VIOLATION)
		return ddps_verdict_set(why, DDPS_E_CERT_USAGE, DDPS_ALERT_UNSUPPORTED_CERTIFICATE,
					"the peer's certificate is not for signatures (key usage), "
					"as a CA's is not: use one made for it");
	if (err == GNUTLS_E_X509_UNKNOWN_SAN || err == GNUTLS_E_ASN1_DER_ERROR)
		return ddps_verdict_set(why, DDPS_E_CERT, DDPS_ALERT_BAD_CERTIFICATE,
					"the peer's certificate cannot be read (%s)",
					gnutls_strerror(err));
	if (err == GNUTLS_E_NO_CERTIFICATE_FOUND || err == GNUTLS_E_CERTIFICATE_REQUIRED)
		return ddps_verdict_set(why, DDPS_E_NO_CERT, DDPS_ALERT_CERTIFICATE_REQUIRED,
					"the peer showed no certificate: it needs its own cert and "
					"key");
	return 0;
}

void ddps_creds_peer_of(const struct ddps_creds_hs *h, gnutls_session_t session,
			struct ddps_creds_peer *peer)
{
	const gnutls_datum_t *list = NULL;
	unsigned n = 0;

	*peer = (struct ddps_creds_peer){ .psk = NULL };
	/* what the handshake was in the end: a server may have been offered a PSK and not have taken it */
	if (gnutls_auth_get_type(session) == GNUTLS_CRD_PSK) {
		peer->psk = h->psk_id;
		return;
	}
	list = gnutls_certificate_get_peers(session, &n);
	for (unsigned i = 0; list && i < n && i < DDPS_CREDS_CHAIN; i++)
		peer->cert[i] = (struct ddps_creds_der){ list[i].data, list[i].size };
	peer->ncerts = list ? n : 0;
}
