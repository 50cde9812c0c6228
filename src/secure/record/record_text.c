/* SPDX-License-Identifier: BSD-2-Clause */
/* What is said of a connection that is over. */
#include "record_in.h"
#include "common/error.h"
#include "common/term_codes.h"

static const struct {
	uint8_t alert;
	const char *name;
} alerts[] = {
	{ 0, "close_notify" },
	{ 10, "unexpected_message" },
	{ 20, "bad_record_mac" },
	{ 21, "decryption_failed" },
	{ 22, "record_overflow" },
	{ 40, "handshake_failure" },
	{ 42, "bad_certificate" },
	{ 43, "unsupported_certificate" },
	{ 44, "certificate_revoked" },
	{ 45, "certificate_expired" },
	{ 46, "certificate_unknown" },
	{ 47, "illegal_parameter" },
	{ 48, "unknown_ca" },
	{ 49, "access_denied" },
	{ 50, "decode_error" },
	{ 51, "decrypt_error" },
	{ 70, "protocol_version" },
	{ 71, "insufficient_security" },
	{ 80, "internal_error" },
	{ 86, "inappropriate_fallback" },
	{ 90, "user_canceled" },
	{ 100, "no_renegotiation" },
	{ 109, "missing_extension" },
	{ 110, "unsupported_extension" },
	{ 112, "unrecognized_name" },
	{ 113, "bad_certificate_status_response" },
	{ 115, "unknown_psk_identity" },
	{ 116, "certificate_required" },
	{ 117, "general_error" },
	{ 120, "no_application_protocol" },
};

const char *ddps_alert_name(uint8_t alert)
{
	for (size_t i = 0; i < sizeof alerts / sizeof *alerts; i++)
		if (alerts[i].alert == alert)
			return alerts[i].name;
	return "unassigned alert";
}

/* @detail stands for the %u of a sentence that has one. */
static const char *const sentences[] = {
	[DDPS_REC_F_OUTER] =
		"TLS: the peer sent a record of type %u where only sealed ones may come",
	[DDPS_REC_F_LONG] = "TLS: the peer sent a record of %u octets, more than it may",
	[DDPS_REC_F_NO_TYPE] = "TLS: the peer sent a record that holds only padding",
	[DDPS_REC_F_TYPE] = "TLS: the peer sealed content of type %u, which does not exist here",
	[DDPS_REC_F_EMPTY] = "TLS: the peer sent an empty record of type %u",
	[DDPS_REC_F_ALERT] = "TLS: the peer sent an alert of %u octets, not 2",
	[DDPS_REC_F_CUT_IN] =
		"TLS: the peer sent content of type %u in the middle of a handshake message",
	[DDPS_REC_F_MESSAGE] =
		"TLS: the peer sent handshake message %u, which may not come after the handshake",
	[DDPS_REC_F_LENGTH] = "TLS: the peer sent handshake message %u with a wrong length",
	[DDPS_REC_F_REQUEST] = "TLS: the peer sent a KeyUpdate with request_update %u",
	[DDPS_REC_F_BEHIND] = "TLS: the peer sent a KeyUpdate that does not end its record",
	[DDPS_REC_F_IDLE] = "TLS: the peer sent too many records without data in a row",
	[DDPS_REC_F_USED_UP] = "TLS: the peer has used up its sequence numbers without a KeyUpdate",
};

struct ddps_error ddps_rec_error(const struct ddps_rec *r)
{
	struct ddps_error e;

	switch (r->fault) {
	case DDPS_REC_F_NONE:
		return ddps_error_make(DDPS_OK, 0, "no error");
	case DDPS_REC_F_TAG:
		return ddps_error_make(
			DDPS_E_FORGED, 0,
			"TLS: record %llu did not authenticate: the wire or the peer changed it",
			(unsigned long long)r->rx.seq);
	case DDPS_REC_F_LIBRARY:
		return ddps_error_make(DDPS_E_SYSTEM, (int)r->detail,
				       "TLS: %s could not open a record or take a new key",
				       r->aead->name);
	case DDPS_REC_F_FORKED:
		return ddps_error_make(DDPS_E_FORKED, 0,
				       "TLS: the keys belong to the parent process");
	case DDPS_REC_F_BY_PEER:
		e = ddps_error_make(DDPS_E_ALERT, 0, "TLS: the peer ended it with alert %u, %s",
				    r->detail, ddps_alert_name((uint8_t)r->detail));
		e.by_peer = true;
		return e;
	case DDPS_REC_F_CUT_SHORT:
		return ddps_error_triple(DDPS_E_CUT_SHORT, ddps_term_triple(DDPS_TERM_MPA_CLOSED),
					 "TLS: closed without close_notify: data may be missing");
	default:
		return ddps_error_make(DDPS_E_PROTOCOL, 0, sentences[r->fault], r->detail);
	}
}

int ddps_rec_alert_due(const struct ddps_rec *r)
{
	return r->alert_due;
}

int ddps_rec_alert_got(const struct ddps_rec *r)
{
	return r->alert_got;
}

const struct ddps_rec_stats *ddps_rec_stats(const struct ddps_rec *r)
{
	return &r->stats;
}
