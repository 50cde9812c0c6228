/* SPDX-License-Identifier: BSD-2-Clause */
/* The table of CM states and events (IBA volume 1, 12.9), and their names. */
#include "ipoib_cm/cm/cm_own.h"
#include "ipoib_cm/cm/cm_conn.h"

#define ST(name)  DDPS_CM_ST_##name
#define EV(name)  DDPS_CM_EV_##name
#define ACT(name) DDPS_CM_ACT_##name

#define RULE(state, ev, to, what) [ST(state)][EV(ev)] = { ST(to), what }

/* A REQ is out, with or without an MRA for it. */
#define REQ_OUT(state)                                                                             \
	RULE(state, T_RESEND, state, ACT(AGAIN) | ACT(TIMER_AGAIN)),                               \
		RULE(state, T_END, IDLE, ACT(TELL)),                                               \
		RULE(state, RX_REP, REP_RCVD, ACT(STOP) | ACT(TELL)),                              \
		RULE(state, RX_REP_STALE, state, ACT(REJ) | ACT(TIMER_SOON)),                      \
		RULE(state, RX_REJ, IDLE, ACT(STOP) | ACT(TELL)),                                  \
		RULE(state, RX_REJ_STALE, TIMEWAIT, ACT(TIMER_TW) | ACT(TELL)),                    \
		RULE(state, ABORT, IDLE, ACT(STOP) | ACT(REJ)),                                    \
		RULE(state, WITHDRAW, WITHDRAWN, ACT(TIMER_LINGER))

/* A REP is here and the consumer decides, with or without an MRA of ours. */
#define REP_HERE(state)                                                                            \
	RULE(state, ACCEPT, ESTABLISHED, ACT(RTU)), RULE(state, REJECT, IDLE, ACT(REJ)),           \
		RULE(state, RX_REJ, TIMEWAIT, ACT(TIMER_TW) | ACT(TELL)),                          \
		RULE(state, RX_REJ_STALE, TIMEWAIT, ACT(TIMER_TW) | ACT(TELL))

/* A REQ is here and the consumer decides. */
#define REQ_HERE(state)                                                                            \
	RULE(state, ACCEPT, REP_SENT, ACT(REP) | ACT(TIMER)), RULE(state, REJECT, IDLE, ACT(REJ)), \
		RULE(state, RX_REJ, IDLE, ACT(TELL)),                                              \
		RULE(state, RX_REJ_STALE, TIMEWAIT, ACT(TIMER_TW) | ACT(TELL))

/* A REP is out.  A REQ that comes again is left to the REP's timer. */
#define REP_OUT(state)                                                                             \
	RULE(state, T_RESEND, state, ACT(AGAIN) | ACT(TIMER_AGAIN)),                               \
		RULE(state, T_END, IDLE, ACT(TELL)),                                               \
		RULE(state, T_END_DATA, ESTABLISHED, ACT(STOP) | ACT(TELL)),                       \
		RULE(state, RX_RTU, ESTABLISHED, ACT(STOP) | ACT(TELL)),                           \
		RULE(state, DATA_IN, ESTABLISHED, ACT(STOP) | ACT(TELL)),                          \
		RULE(state, RX_REJ, IDLE, ACT(STOP) | ACT(TELL)),                                  \
		RULE(state, RX_REJ_STALE, TIMEWAIT, ACT(TIMER_TW) | ACT(TELL)),                    \
		RULE(state, RX_DREQ, DREQ_RCVD, ACT(STOP) | ACT(TELL)),                            \
		RULE(state, ABORT, TIMEWAIT, ACT(REJ) | ACT(TIMER_TW)),                            \
		RULE(state, RX_REQ_DUP, state, ACT(IGNORE))

static const struct ddps_cm_rule rule[DDPS_CM_NSTATE][DDPS_CM_NEVENT] = {
	RULE(IDLE, CONNECT, REQ_SENT, ACT(REQ) | ACT(TIMER)),
	RULE(IDLE, RX_REQ, REQ_RCVD, ACT(TELL)),

	REQ_OUT(REQ_SENT),
	RULE(REQ_SENT, RX_MRA, MRA_REQ_RCVD, ACT(TIMER_MRA)),
	REQ_OUT(MRA_REQ_RCVD),
	RULE(MRA_REQ_RCVD, RX_MRA, MRA_REQ_RCVD, ACT(IGNORE)),

	REP_HERE(REP_RCVD),
	RULE(REP_RCVD, DELAY, MRA_REP_SENT, ACT(MRA)),
	RULE(REP_RCVD, RX_REP_DUP, REP_RCVD, ACT(IGNORE)),
	REP_HERE(MRA_REP_SENT),
	RULE(MRA_REP_SENT, RX_REP_DUP, MRA_REP_SENT, ACT(AGAIN)),

	RULE(WITHDRAWN, RX_REP, WITHDRAWN, ACT(REJ)),
	RULE(WITHDRAWN, RX_REP_STALE, WITHDRAWN, ACT(REJ)),
	RULE(WITHDRAWN, RX_REJ, WITHDRAWN, ACT(IGNORE)),
	RULE(WITHDRAWN, RX_REJ_STALE, WITHDRAWN, ACT(IGNORE)),
	RULE(WITHDRAWN, RX_MRA, WITHDRAWN, ACT(IGNORE)),
	RULE(WITHDRAWN, T_END, IDLE, ACT(TELL)),

	REQ_HERE(REQ_RCVD),
	RULE(REQ_RCVD, DELAY, MRA_REQ_SENT, ACT(MRA)),
	RULE(REQ_RCVD, RX_REQ_DUP, REQ_RCVD, ACT(IGNORE)),
	REQ_HERE(MRA_REQ_SENT),
	RULE(MRA_REQ_SENT, RX_REQ_DUP, MRA_REQ_SENT, ACT(AGAIN)),

	REP_OUT(REP_SENT),
	RULE(REP_SENT, RX_MRA, MRA_REP_RCVD, ACT(TIMER_MRA)),
	REP_OUT(MRA_REP_RCVD),

	RULE(ESTABLISHED, DISCONNECT, DREQ_SENT, ACT(DREQ) | ACT(TIMER)),
	RULE(ESTABLISHED, STALE, DREQ_SENT, ACT(DREQ) | ACT(TIMER) | ACT(TELL)),
	RULE(ESTABLISHED, RX_DREQ, DREQ_RCVD, ACT(TELL)),
	RULE(ESTABLISHED, RX_REJ, TIMEWAIT, ACT(TIMER_TW) | ACT(TELL)),
	RULE(ESTABLISHED, RX_REJ_STALE, TIMEWAIT, ACT(TIMER_TW) | ACT(TELL)),
	RULE(ESTABLISHED, RX_REP_DUP, ESTABLISHED, ACT(AGAIN)),
	RULE(ESTABLISHED, RX_RTU, ESTABLISHED, ACT(IGNORE)),
	RULE(ESTABLISHED, RX_REQ_DUP, ESTABLISHED, ACT(IGNORE)),

	RULE(DREQ_SENT, RX_DREP, TIMEWAIT, ACT(TIMER_TW) | ACT(TELL)),
	RULE(DREQ_SENT, RX_DREQ, DREQ_RCVD, ACT(STOP) | ACT(TELL)),
	RULE(DREQ_SENT, RX_REJ, TIMEWAIT, ACT(TIMER_TW) | ACT(TELL)),
	RULE(DREQ_SENT, RX_REJ_STALE, TIMEWAIT, ACT(TIMER_TW) | ACT(TELL)),
	RULE(DREQ_SENT, T_RESEND, DREQ_SENT, ACT(AGAIN) | ACT(TIMER_AGAIN)),
	RULE(DREQ_SENT, T_END, TIMEWAIT, ACT(TIMER_TW) | ACT(TELL)),
	RULE(DREQ_SENT, RX_REQ_DUP, DREQ_SENT, ACT(IGNORE)),

	RULE(DREQ_RCVD, CLOSED, TIMEWAIT, ACT(DREP) | ACT(TIMER_TW)),
	RULE(DREQ_RCVD, RX_DREQ, DREQ_RCVD, ACT(IGNORE)),
	RULE(DREQ_RCVD, RX_DREP, TIMEWAIT, ACT(TIMER_TW) | ACT(TELL)),
	RULE(DREQ_RCVD, RX_REQ_DUP, DREQ_RCVD, ACT(IGNORE)),

	RULE(TIMEWAIT, RX_DREQ, TIMEWAIT, ACT(DREP)),
	/* The stricter reading: the keys stay until the end, so a late REQ is refused. */
	RULE(TIMEWAIT, RX_REQ_DUP, TIMEWAIT, ACT(REJ)),
	RULE(TIMEWAIT, T_END, IDLE, ACT(TELL)),
};

struct ddps_cm_rule ddps_cm_rule(enum ddps_cm_state state, enum ddps_cm_event ev)
{
	return rule[state][ev];
}

const char *ddps_cm_state_name(enum ddps_cm_state state)
{
	static const char *const name[] = {
#define DDPS_X(n) #n,
		DDPS_CM_STATES(DDPS_X)
#undef DDPS_X
	};

	return (unsigned)state < DDPS_CM_NSTATE ? name[state] : "?";
}

const char *ddps_cm_event_name(enum ddps_cm_event ev)
{
	static const char *const name[] = {
#define DDPS_X(n) #n,
		DDPS_CM_EVENTS(DDPS_X)
#undef DDPS_X
	};

	return (unsigned)ev < DDPS_CM_NEVENT ? name[ev] : "?";
}
