/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef DDPS_CM_SM_H
#define DDPS_CM_SM_H
/*
 * The state machine of one CM connection, active and passive, as a table.  It knows neither
 * messages nor time: cm.c turns both into events and carries the actions out.
 */
#include <ddpsess/ib_cm.h>

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
	DDPS_CM_ACT_IGNORE = 1 << 15,	  /* legal, and deliberately without effect */
	DDPS_CM_ACT_TIMER_SOON = 1 << 16, /* brings the next resend forward */
};

struct ddps_cm_rule {
	enum ddps_cm_state next;
	unsigned acts; /* 0: the event is not legal in this state */
};

struct ddps_cm_rule ddps_cm_rule(enum ddps_cm_state state, enum ddps_cm_event ev);

#endif
