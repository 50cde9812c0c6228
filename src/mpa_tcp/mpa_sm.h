/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef DDPS_MPA_SM_H
#define DDPS_MPA_SM_H
/*
 * MPA startup and its end (RFC 5044 7.1, RFC 6581 6), both roles, as one table.  It only says
 * what is to be done; the driver does it.
 */

#define DDPS_MPA_STATES(X)                                                                         \
	X(IDLE)		 /* no TCP connection yet */                                               \
	X(AWAIT_REPLY)	 /* initiator: Request sent */                                             \
	X(REPLY_ULP)	 /* initiator: the layer above looks at the Reply */                       \
	X(AWAIT_REQUEST) /* responder */                                                           \
	X(REQUEST_ULP)	 /* responder: the layer above looks at the Request */                     \
	X(FENCED)	 /* responder: accepted, may not send before the first FPDU */             \
	X(MUTE)		 /* the fence will never open: bad first FPDU, or none */                  \
	X(FULL)		 /* full operation */                                                      \
	X(STREAM)	 /* rejected: out of MPA, TCP still open */                                \
	X(CLOSED)

#define DDPS_MPA_EVENTS(X)                                                                         \
	X(INITIATE) /* connected, start as initiator */                                            \
	X(RESPOND)  /* accepted, start as responder */                                             \
	X(PART)	    /* some octets of the awaited frame */                                         \
	X(REPLY_OK)                                                                                \
	X(REPLY_REJECT) /* R = 1 */                                                                \
	X(REQUEST_OK)                                                                              \
	X(BAD_FRAME)                                                                               \
	X(SURPLUS) /* octets behind the frame */                                                   \
	X(TIMEOUT)                                                                                 \
	X(FIN)	/* peer's FIN */                                                                   \
	X(LOST) /* RST and the like */                                                             \
	X(ULP_ACCEPT)                                                                              \
	X(ULP_REJECT)                                                                              \
	X(POST) /* the layer above has something to send */                                        \
	X(FPDU_OK)                                                                                 \
	X(FPDU_BAD)                                                                                \
	X(ABORT)

#define DDPS_MPA_ACTIONS(X)                                                                        \
	X(SEND_REQUEST, 0)                                                                         \
	X(SEND_REPLY, 1)                                                                           \
	X(SETUP_TIMER, 2)  /* start the absolute deadline of the frame */                          \
	X(FPDU_TIMER, 3)   /* start the deadline of the first FPDU */                              \
	X(LINGER_TIMER, 4) /* start the time a rejected peer has for closing */                    \
	X(TIMER_OFF, 5)                                                                            \
	X(RX_ON, 6) /* input is FPDUs from here, before anything is sent */                        \
	X(OPEN_FENCE, 7)                                                                           \
	X(SEND, 8)  /* FPDUs may go out */                                                         \
	X(HOLD, 9)  /* they may not, remember */                                                   \
	X(WAIT, 10) /* nothing to do */                                                            \
	X(KEEP, 11) /* leave the input where it is */                                              \
	X(TELL_ULP, 12)                                                                            \
	X(CLOSE, 13) /* close TCP */

enum ddps_mpa_state {
#define DDPS_X(name) DDPS_MPA_##name,
	DDPS_MPA_STATES(DDPS_X)
#undef DDPS_X
		DDPS_MPA_NSTATE
};

enum ddps_mpa_event {
#define DDPS_X(name) DDPS_MPA_EV_##name,
	DDPS_MPA_EVENTS(DDPS_X)
#undef DDPS_X
		DDPS_MPA_NEVENT
};

enum ddps_mpa_action {
#define DDPS_X(name, bit) DDPS_MPA_DO_##name = 1 << (bit),
	DDPS_MPA_ACTIONS(DDPS_X)
#undef DDPS_X
};

/* Moves *@state; returns DDPS_MPA_DO_* bits, or 0: not legal here, nothing moved. */
unsigned ddps_mpa_sm_step(enum ddps_mpa_state *state, enum ddps_mpa_event ev);

const char *ddps_mpa_state_name(enum ddps_mpa_state state);
const char *ddps_mpa_event_name(enum ddps_mpa_event ev);

#endif
