/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef DDPS_CASES_SCTP_H
#define DDPS_CASES_SCTP_H
/* Sessions of RFC 5043 chunk by chunk, several on one association. */
#include "conform/peer/peer.h"

/* The application's next event of this type; those of sessions that ended are passed over. */
struct ddps_event cf_hear(struct cf *cf, enum ddps_event_type type);
/* A control chunk; @pd may be NULL. */
void cf_chunk(struct cf *cf, uint16_t stream, uint16_t ssn, uint16_t code, const void *pd,
	      size_t len);
/* An enhanced Initiate with the word that cf_session() uses. */
void cf_initiate(struct cf *cf, uint16_t stream);
/* The stream that cf_send_as() and cf_recv() use, without a set-up. */
void cf_at_stream(struct cf *cf, uint16_t stream);
/* cf->out with a DDP-SSN of the case's choice. */
void cf_send_as(struct cf *cf, uint16_t ssn);
/* The next message is this control chunk. */
void cf_expect_ctrl(struct cf *cf, uint16_t stream, uint16_t ssn, uint16_t code);
/* The current session's Terminate, whatever comes first by its DDP-SSN. */
void cf_expect_session_end(struct cf *cf);
/* A new session on the current association, which is the current one then. */
void cf_session_on(struct cf *cf, uint16_t stream);
/*
 * The association works and what was sent before is dealt with: a new session on @stream.  One
 * Terminate may come on @maybe before; UINT16_MAX: nothing may.
 */
void cf_settle(struct cf *cf, uint16_t stream, uint16_t maybe);

#endif
