/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef DDPS_CONFORM_PARTNER_H
#define DDPS_CONFORM_PARTNER_H
/*
 * A partner that is known to be good: this project's own stack as initiator, through a relay.
 * It needs nothing of the target's application, since zero-length RDMA Reads are answered below it.
 *
 * Calls fail the case like those of peer.h.
 */
#include "conform/peer/peer.h"
#include "conform/relay/relay.h"

/* A session through a relay of this kind.  False: it was not made; cf_partner_why() says why. */
bool cf_partner_connects(struct cf *cf, const struct cf_relay_plan *plan);
/*
 * So many zero-length Reads, @depth at a time.  In self mode each @depth is followed by a block of
 * octets that is written to the target, read back and compared.  False: the session ended meanwhile.
 */
bool cf_partner_works(struct cf *cf, unsigned reads, unsigned depth);
/*
 * Both of that where the relay does damage: whether all of the work was done.  Whatever takes longer than
 * a tenth of the run's limit is given up.
 */
bool cf_partner_manages(struct cf *cf, const struct cf_relay_plan *plan, unsigned reads);
/* Why a session was not made, or has ended. */
const char *cf_partner_why(struct cf *cf);
struct cf_relay_sum cf_partner_relay(struct cf *cf);
/* Nothing is left of it: relay, session, context.  Nothing to end is fine. */
void cf_partner_end(struct cf *cf);

#endif
