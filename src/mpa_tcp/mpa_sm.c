/* SPDX-License-Identifier: BSD-2-Clause */
/* The startup table.  A cell left out is illegal. */
#include "mpa_tcp/mpa_sm.h"

#define DO(name) ((unsigned)DDPS_MPA_DO_##name)
#define GONE	 DDPS_MPA_CLOSED, DO(TIMER_OFF) | DO(CLOSE) | DO(TELL_ULP)
#define ABORTED	 DDPS_MPA_CLOSED, DO(TIMER_OFF) | DO(CLOSE)

static const struct {
	enum ddps_mpa_state next;
	unsigned acts;
} rule[DDPS_MPA_NSTATE][DDPS_MPA_NEVENT] = {
	[DDPS_MPA_IDLE] = {
		[DDPS_MPA_EV_INITIATE] = { DDPS_MPA_AWAIT_REPLY, DO(SEND_REQUEST) | DO(SETUP_TIMER) },
		[DDPS_MPA_EV_RESPOND] = { DDPS_MPA_AWAIT_REQUEST, DO(SETUP_TIMER) },
		[DDPS_MPA_EV_POST] = { DDPS_MPA_IDLE, DO(HOLD) },
		[DDPS_MPA_EV_TIMEOUT] = { GONE },
		[DDPS_MPA_EV_LOST] = { GONE },
		[DDPS_MPA_EV_ABORT] = { ABORTED },
	},
	[DDPS_MPA_AWAIT_REPLY] = {
		[DDPS_MPA_EV_PART] = { DDPS_MPA_AWAIT_REPLY, DO(WAIT) },
		[DDPS_MPA_EV_REPLY_OK] = { DDPS_MPA_REPLY_ULP, DO(TIMER_OFF) | DO(TELL_ULP) },
		/* [5044-7.1.2-13] */
		[DDPS_MPA_EV_REPLY_REJECT] = { DDPS_MPA_STREAM, DO(TIMER_OFF) | DO(TELL_ULP) },
		[DDPS_MPA_EV_BAD_FRAME] = { GONE }, /* [5044-7.1.2-12] */
		[DDPS_MPA_EV_TIMEOUT] = { GONE },
		[DDPS_MPA_EV_FIN] = { GONE },
		[DDPS_MPA_EV_LOST] = { GONE },
		[DDPS_MPA_EV_POST] = { DDPS_MPA_AWAIT_REPLY, DO(HOLD) }, /* [5044-7.1.2-d2] */
		[DDPS_MPA_EV_ABORT] = { ABORTED },
	},
	[DDPS_MPA_REPLY_ULP] = {
		/* A hasty responder's FPDUs; whatever else follows the Reply is seen behind
		 * them, once the layer above has decided. */
		[DDPS_MPA_EV_SURPLUS] = { DDPS_MPA_REPLY_ULP, DO(KEEP) },
		[DDPS_MPA_EV_LOST] = { DDPS_MPA_REPLY_ULP, DO(KEEP) },
		[DDPS_MPA_EV_ULP_ACCEPT] = { DDPS_MPA_FULL, DO(RX_ON) }, /* [5044-7.1.2-14] */
		[DDPS_MPA_EV_ULP_REJECT] = { DDPS_MPA_CLOSED, DO(CLOSE) }, /* [5044-7.1.2-17] */
		[DDPS_MPA_EV_POST] = { DDPS_MPA_REPLY_ULP, DO(HOLD) },
		[DDPS_MPA_EV_ABORT] = { ABORTED },
	},
	[DDPS_MPA_AWAIT_REQUEST] = {
		[DDPS_MPA_EV_PART] = { DDPS_MPA_AWAIT_REQUEST, DO(WAIT) },
		[DDPS_MPA_EV_REQUEST_OK] = { DDPS_MPA_REQUEST_ULP, DO(TIMER_OFF) | DO(TELL_ULP) },
		[DDPS_MPA_EV_BAD_FRAME] = { GONE }, /* [5044-7.1.2-4] */
		[DDPS_MPA_EV_SURPLUS] = { GONE },	/* [5044-7.1.1-18] */
		[DDPS_MPA_EV_TIMEOUT] = { GONE },	/* [5044-7.1.2-20] */
		[DDPS_MPA_EV_FIN] = { GONE },
		[DDPS_MPA_EV_LOST] = { GONE },
		[DDPS_MPA_EV_ABORT] = { ABORTED },
	},
	[DDPS_MPA_REQUEST_ULP] = {
		[DDPS_MPA_EV_SURPLUS] = { GONE },
		[DDPS_MPA_EV_FIN] = { GONE },
		[DDPS_MPA_EV_LOST] = { GONE },
		/* [5044-7.1.2-8] [5044-7.1.2-10] */
		[DDPS_MPA_EV_ULP_ACCEPT] = { DDPS_MPA_FENCED, DO(RX_ON) | DO(SEND_REPLY) | DO(FPDU_TIMER) },
		/* [5044-7.1.2-5] [5044-7.1.2-7] */
		[DDPS_MPA_EV_ULP_REJECT] = { DDPS_MPA_STREAM, DO(SEND_REPLY) | DO(LINGER_TIMER) },
		[DDPS_MPA_EV_POST] = { DDPS_MPA_REQUEST_ULP, DO(HOLD) },
		[DDPS_MPA_EV_ABORT] = { ABORTED },
	},
	[DDPS_MPA_FENCED] = {
		[DDPS_MPA_EV_POST] = { DDPS_MPA_FENCED, DO(HOLD) }, /* [5044-7.1.2-15] */
		[DDPS_MPA_EV_FPDU_OK] = { DDPS_MPA_FULL, DO(TIMER_OFF) | DO(OPEN_FENCE) },
		[DDPS_MPA_EV_FPDU_BAD] = { DDPS_MPA_MUTE, DO(TIMER_OFF) | DO(TELL_ULP) },
		/* In order, though early: the layer above closes our side, as in FULL. */
		[DDPS_MPA_EV_FIN] = { DDPS_MPA_MUTE, DO(TIMER_OFF) | DO(TELL_ULP) },
		[DDPS_MPA_EV_TIMEOUT] = { GONE }, /* [5044-7.1.2-26] */
		[DDPS_MPA_EV_LOST] = { GONE },
		[DDPS_MPA_EV_ABORT] = { ABORTED },
	},
	[DDPS_MPA_MUTE] = {
		[DDPS_MPA_EV_POST] = { DDPS_MPA_MUTE, DO(HOLD) },
		[DDPS_MPA_EV_FIN] = { DDPS_MPA_MUTE, DO(TELL_ULP) },
		[DDPS_MPA_EV_TIMEOUT] = { GONE },
		[DDPS_MPA_EV_LOST] = { GONE },
		[DDPS_MPA_EV_ABORT] = { ABORTED },
	},
	[DDPS_MPA_FULL] = {
		[DDPS_MPA_EV_POST] = { DDPS_MPA_FULL, DO(SEND) },
		[DDPS_MPA_EV_FPDU_OK] = { DDPS_MPA_FULL, DO(WAIT) },
		/* [5044-8-9] reported; TCP stays open for what the layer above has to say. */
		[DDPS_MPA_EV_FPDU_BAD] = { DDPS_MPA_FULL, DO(TELL_ULP) },
		[DDPS_MPA_EV_FIN] = { DDPS_MPA_FULL, DO(TELL_ULP) }, /* [5044-7.2-1] */
		[DDPS_MPA_EV_TIMEOUT] = { GONE },
		[DDPS_MPA_EV_LOST] = { GONE },
		[DDPS_MPA_EV_ABORT] = { ABORTED },
	},
	[DDPS_MPA_STREAM] = {
		[DDPS_MPA_EV_POST] = { DDPS_MPA_STREAM, DO(HOLD) },
		[DDPS_MPA_EV_TIMEOUT] = { GONE },
		[DDPS_MPA_EV_FIN] = { GONE },
		[DDPS_MPA_EV_LOST] = { GONE },
		[DDPS_MPA_EV_ABORT] = { ABORTED },
	},
	[DDPS_MPA_CLOSED] = {
		[DDPS_MPA_EV_POST] = { DDPS_MPA_CLOSED, DO(HOLD) },
		[DDPS_MPA_EV_ABORT] = { DDPS_MPA_CLOSED, DO(WAIT) },
	},
};

unsigned ddps_mpa_sm_step(enum ddps_mpa_state *state, enum ddps_mpa_event ev)
{
	unsigned acts = rule[*state][ev].acts;

	if (acts)
		*state = rule[*state][ev].next;
	return acts;
}

const char *ddps_mpa_state_name(enum ddps_mpa_state state)
{
	static const char *const names[] = {
#define DDPS_X(name) #name,
		DDPS_MPA_STATES(DDPS_X)
#undef DDPS_X
	};

	return names[state];
}

const char *ddps_mpa_event_name(enum ddps_mpa_event ev)
{
	static const char *const names[] = {
#define DDPS_X(name) #name,
		DDPS_MPA_EVENTS(DDPS_X)
#undef DDPS_X
	};

	return names[ev];
}
