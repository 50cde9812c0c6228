/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef DDPS_SECURE_DHS_IN_H
#define DDPS_SECURE_DHS_IN_H
/* What the files of the handshake over datagrams share. */
#include "secure/creds/set.h"
#include "secure/hs/dhs.h"

struct ddps_dhs {
	struct ddps_creds_hs creds; /* first: GnuTLS's pointer */
	gnutls_session_t session;
	struct ddps_creds_want want;
	bool no_memory, taken;
	uint16_t limit; /* octets that a record for the peer may have; 0: any */
	size_t got;
	enum ddps_hs_state state;
	const uint8_t *in; /* what is left of the datagram that is read; NULL: none */
	size_t nin;
	int alert;	 /* that came in the clear, and nothing after it; -1: none */
	unsigned silent; /* times that a flight left again since then */
	uint8_t *out;
	size_t nout, size, sent;
	struct ddps_peer_id id;
	struct ddps_verdict why;
};

static inline struct ddps_dhs *dhs_of(const struct ddps_hs *h)
{
	return (struct ddps_dhs *)(uintptr_t)h;
}

/* Why it failed, and the alert that says so to the peer. */
enum ddps_hs_state ddps_dhs_fail(struct ddps_dhs *d, int alert);
enum ddps_hs_state ddps_dhs_explain(struct ddps_dhs *d, int err);
/* What ended it at the peer, by the alert. */
enum ddps_hs_state ddps_dhs_believe(struct ddps_dhs *d);
/* If it goes on like this, what to say at the deadline. */
void ddps_dhs_explain_silence(struct ddps_dhs *d);
void ddps_dhs_end_session(struct ddps_dhs *d);

#endif
