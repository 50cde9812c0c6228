/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef DDPS_SD_SM_H
#define DDPS_SD_SM_H
/*
 * State machine of the session on one stream pair (RFC 5043 6, RFC 6581 7), pure.  Input from
 * the peer is fed in DDP-SSN order.  A step says what to do; it does nothing itself.
 */
#include "sctp_ddp/sd_wire.h"

#define DDPS_SD_STATES(X)                                                                          \
	X(IDLE)	     /* no session */                                                              \
	X(A1)	     /* active: Initiate sent, no answer yet */                                    \
	X(A1C)	     /* the same, given up; Terminate not sent yet */                              \
	X(A1T)	     /* the same, Terminate sent */                                                \
	X(P1)	     /* passive: the ULP decides */                                                \
	X(OPEN)	     /* accepted */                                                                \
	X(PEER_DONE) /* peer's Terminate is here, ours is owed */                                  \
	X(ERR)	     /* dead here; our Terminate is owed, the peer's not here */                   \
	X(LT)	     /* our Terminate is sent, the peer's not here */                              \
	X(DRAIN)     /* both have ended; own messages may be unacknowledged */

#define DDPS_SD_EVENTS(X)                                                                          \
	/* from above and from the clock */                                                        \
	X(CONNECT)                                                                                 \
	X(ULP_ACCEPT)                                                                              \
	X(ULP_REJECT)                                                                              \
	X(ABORT)      /* ULP or a deadline gives the session up */                                 \
	X(TERM_READY) /* a Terminate is due and cannot overtake a control message */               \
	/* from SCTP */                                                                            \
	X(DRAINED) /* all own messages are acknowledged */                                         \
	X(LOST)	   /* association gone or restarted */                                             \
	/* from the peer */                                                                        \
	X(INITIATE)                                                                                \
	X(OVERLOAD) /* an Initiate that may not be shown to the ULP */                             \
	X(AGAIN)    /* LT, DRAIN: Initiate with DDP-SSN 0, a new session */                        \
	X(ACCEPT)   /* the kind that fits our Initiate */                                          \
	X(REJECT)                                                                                  \
	X(TERMINATE)                                                                               \
	X(SEGMENT)                                                                                 \
	X(ILLEGAL) /* anything else */

enum ddps_sd_state {
#define DDPS_X(name) DDPS_SD_##name,
	DDPS_SD_STATES(DDPS_X)
#undef DDPS_X
		DDPS_SD_NSTATES
};

enum ddps_sd_event {
#define DDPS_X(name) DDPS_SD_EV_##name,
	DDPS_SD_EVENTS(DDPS_X)
#undef DDPS_X
		DDPS_SD_NEVENTS
};

/* What to do, lowest bit first. */
enum {
	DDPS_SD_TIMER_OFF = 1 << 0,
	DDPS_SD_TIMER_ON = 1 << 1,
	DDPS_SD_SEND_INITIATE = 1 << 2,
	DDPS_SD_SEND_ACCEPT = 1 << 3,
	DDPS_SD_SEND_REJECT = 1 << 4,
	DDPS_SD_SEND_TERM = 1 << 5,
	DDPS_SD_OWE_TERM = 1 << 6, /* send it as soon as TERM_READY holds */
	DDPS_SD_REQUEST = 1 << 7,  /* show the Initiate to the ULP */
	DDPS_SD_ANSWER = 1 << 8,   /* show the Accept or Reject to the ULP */
	DDPS_SD_DELIVER = 1 << 9,  /* segment */
	DDPS_SD_PEER_CLOSED = 1 << 10,
	DDPS_SD_FAIL = 1 << 11,	   /* the session is dead: tell the ULP */
	DDPS_SD_END = 1 << 12,	   /* the session is over: tell the ULP */
	DDPS_SD_DROP = 1 << 13,	   /* count */
	DDPS_SD_RELEASE = 1 << 14, /* the pair is free again; a session still there is over */
	DDPS_SD_NOTHING = 1 << 15  /* legal, no action */
};

/* All zeros: idle. */
struct ddps_sd_sm {
	enum ddps_sd_state state;
	bool enhanced; /* the Initiate was 0x0005 */
	bool answered; /* a stray message was answered since the last Initiate */
};

/*
 * Move @sm; @acts says what the caller does now.
 * Return 0, or DDPS_E_STATE: no such transition, nothing was changed.  Events from the peer
 * and from SCTP are taken in every state but AGAIN outside of LT and DRAIN.
 */
int ddps_sd_step(struct ddps_sd_sm *sm, enum ddps_sd_event ev, unsigned *acts);

/* The event that a message of the peer is, when its turn has come. */
enum ddps_sd_event ddps_sd_classify(const struct ddps_sd_sm *sm, const struct ddps_sd_msg *m);

const char *ddps_sd_state_name(enum ddps_sd_state s);
const char *ddps_sd_event_name(enum ddps_sd_event e);

#endif
