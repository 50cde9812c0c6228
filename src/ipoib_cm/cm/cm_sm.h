/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef DDPS_CM_SM_H
#define DDPS_CM_SM_H
/*
 * The state machine of one CM connection, active and passive, as a table.  It knows neither
 * messages nor time: cm.c turns both into events and carries the actions out.
 */
#include <stdbool.h>

#define DDPS_CM_STATES(X)                                                                          \
	X(IDLE)                                                                                    \
	X(REQ_SENT)                                                                                \
	X(MRA_REQ_RCVD)                                                                            \
	X(REP_RCVD)                                                                                \
	X(MRA_REP_SENT)                                                                            \
	X(WITHDRAWN) /* own attempt given up; its ID is kept to refuse a late REP */               \
	X(REQ_RCVD)                                                                                \
	X(MRA_REQ_SENT)                                                                            \
	X(REP_SENT)                                                                                \
	X(MRA_REP_RCVD)                                                                            \
	X(ESTABLISHED)                                                                             \
	X(DREQ_SENT)                                                                               \
	X(DREQ_RCVD)                                                                               \
	X(TIMEWAIT)

enum ddps_cm_state {
#define DDPS_X(name) DDPS_CM_ST_##name,
	DDPS_CM_STATES(DDPS_X)
#undef DDPS_X
		DDPS_CM_NSTATE
};

#define DDPS_CM_EVENTS(X)                                                                          \
	/* calls of the consumer */                                                                \
	X(CONNECT)                                                                                 \
	X(ACCEPT) /* answer a REQ with REP, a REP with RTU */                                      \
	X(REJECT)                                                                                  \
	X(DELAY) /* ask for time with an MRA */                                                    \
	X(ABORT)                                                                                   \
	X(WITHDRAW) /* give up an own REQ without a word */                                        \
	X(DISCONNECT)                                                                              \
	X(CLOSED)  /* the consumer is done after a DREQ */                                         \
	X(DATA_IN) /* take arrived data for the RTU that is missing */                             \
	/* messages */                                                                             \
	X(RX_REQ)                                                                                  \
	X(RX_REQ_DUP)                                                                              \
	X(RX_MRA)                                                                                  \
	X(RX_REP)                                                                                  \
	X(RX_REP_STALE) /* its QPN belongs to another live connection */                           \
	X(RX_REP_DUP)                                                                              \
	X(RX_RTU)                                                                                  \
	X(RX_REJ)                                                                                  \
	X(RX_REJ_STALE) /* reason 10 */                                                            \
	X(RX_DREQ)                                                                                 \
	X(RX_DREP)                                                                                 \
	X(STALE) /* the peer uses this connection's QPN for another one */                         \
	/* the timer */                                                                            \
	X(T_RESEND)                                                                                \
	X(T_END)      /* no resend is left, or the state's time is over */                         \
	X(T_END_DATA) /* the same where data has arrived on the connection */

enum ddps_cm_event {
#define DDPS_X(name) DDPS_CM_EV_##name,
	DDPS_CM_EVENTS(DDPS_X)
#undef DDPS_X
		DDPS_CM_NEVENT
};

/* What the caller does, in this order. */
enum {
	DDPS_CM_ACT_STOP = 1 << 0,
	DDPS_CM_ACT_REQ = 1 << 1,
	DDPS_CM_ACT_REP = 1 << 2,
	DDPS_CM_ACT_RTU = 1 << 3,
	DDPS_CM_ACT_MRA = 1 << 4,
	DDPS_CM_ACT_REJ = 1 << 5,
	DDPS_CM_ACT_DREQ = 1 << 6,
	DDPS_CM_ACT_DREP = 1 << 7,
	DDPS_CM_ACT_AGAIN = 1 << 8,	   /* the last message once more, unchanged */
	DDPS_CM_ACT_TIMER = 1 << 9,	   /* T_req, T_rep, T_dreq, with all retries */
	DDPS_CM_ACT_TIMER_AGAIN = 1 << 10, /* the same with one retry less */
	DDPS_CM_ACT_TIMER_MRA = 1 << 11,
	DDPS_CM_ACT_TIMER_TW = 1 << 12,
	DDPS_CM_ACT_TIMER_LINGER = 1 << 13,
	DDPS_CM_ACT_TELL = 1 << 14,
	DDPS_CM_ACT_IGNORE = 1 << 15, /* legal, and deliberately without effect */
};

struct ddps_cm_rule {
	enum ddps_cm_state next;
	unsigned acts; /* 0: the event is not legal in this state */
};

struct ddps_cm_rule ddps_cm_rule(enum ddps_cm_state state, enum ddps_cm_event ev);

const char *ddps_cm_state_name(enum ddps_cm_state state);
const char *ddps_cm_event_name(enum ddps_cm_event ev);

#endif
