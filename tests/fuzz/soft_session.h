/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef FUZZ_SOFT_SESSION_H
#define FUZZ_SOFT_SESSION_H
/*
 * In place of the session API, for the soft port alone: endpoints that a script brings up and
 * down, and that are strict about how they are used.  One request of a session at a time.
 */
#include "ipoib/soft/soft_in.h"

struct ddps_ep {
	struct soft_qp *user;
	bool used, up, ended;
	uint64_t recv_id[SOFT_SLOTS_MAX]; /* posted, the oldest first */
	uint8_t *recv_at[SOFT_SLOTS_MAX];
	unsigned nrecv, recv_len;
	uint64_t first_send, next_send; /* the oldest not completed; the next to be posted */
	struct ddps_ep *next;
};

struct soft_session {
	bool asked, answered, accepted; /* of the latest request */
	const uint8_t *me;		/* the port's GID */
};

/* All is as new; nothing of an earlier run may be left. */
struct soft_session *soft_session_reset(const uint8_t me[DDPS_IPOIB_GID_LEN]);
/* Nothing is left. */
void soft_session_end(void);
/* What the port fetches next. */
void soft_session_event(const struct ddps_event *ev);
void soft_session_done(struct ddps_ep *ep, const struct ddps_wc *wc);
/* The oldest receive is used up. */
void soft_session_received(struct ddps_ep *ep, const struct ddps_wc *wc);

#endif
