/* SPDX-License-Identifier: BSD-2-Clause */
/* The MPA startup table: every cell. */
#include "mpa_tcp/mpa_sm.h"
#include <criterion/criterion.h>
#include <string.h>

#define S(name) DDPS_MPA_##name
#define E(name) DDPS_MPA_EV_##name
#define A(name) ((unsigned)DDPS_MPA_DO_##name)
#define GONE	S(CLOSED), A(TIMER_OFF) | A(CLOSE) | A(TELL_ULP)
#define ABORTED S(CLOSED), A(TIMER_OFF) | A(CLOSE)

/* All that is legal, written down a second time, in the order of RFC 5044 7.1.2. */
static const struct cell {
	enum ddps_mpa_state from;
	enum ddps_mpa_event ev;
	enum ddps_mpa_state to;
	unsigned acts;
} legal[] = {
	/* initiator */
	{ S(IDLE), E(INITIATE), S(AWAIT_REPLY), A(SEND_REQUEST) | A(SETUP_TIMER) },
	{ S(IDLE), E(POST), S(IDLE), A(HOLD) },
	{ S(IDLE), E(TIMEOUT), GONE },
	{ S(IDLE), E(LOST), GONE },
	{ S(IDLE), E(ABORT), ABORTED },
	{ S(AWAIT_REPLY), E(PART), S(AWAIT_REPLY), A(WAIT) },
	{ S(AWAIT_REPLY), E(REPLY_OK), S(REPLY_ULP), A(TIMER_OFF) | A(TELL_ULP) },
	{ S(AWAIT_REPLY), E(REPLY_REJECT), S(STREAM), A(TIMER_OFF) | A(TELL_ULP) },
	{ S(AWAIT_REPLY), E(BAD_FRAME), GONE },
	{ S(AWAIT_REPLY), E(TIMEOUT), GONE },
	{ S(AWAIT_REPLY), E(FIN), GONE },
	{ S(AWAIT_REPLY), E(LOST), GONE },
	{ S(AWAIT_REPLY), E(POST), S(AWAIT_REPLY), A(HOLD) },
	{ S(AWAIT_REPLY), E(ABORT), ABORTED },
	{ S(REPLY_ULP), E(SURPLUS), S(REPLY_ULP), A(KEEP) },
	{ S(REPLY_ULP), E(LOST), S(REPLY_ULP), A(KEEP) },
	{ S(REPLY_ULP), E(ULP_ACCEPT), S(FULL), A(RX_ON) },
	{ S(REPLY_ULP), E(ULP_REJECT), S(CLOSED), A(CLOSE) },
	{ S(REPLY_ULP), E(POST), S(REPLY_ULP), A(HOLD) },
	{ S(REPLY_ULP), E(ABORT), ABORTED },
	/* responder */
	{ S(IDLE), E(RESPOND), S(AWAIT_REQUEST), A(SETUP_TIMER) },
	{ S(AWAIT_REQUEST), E(PART), S(AWAIT_REQUEST), A(WAIT) },
	{ S(AWAIT_REQUEST), E(REQUEST_OK), S(REQUEST_ULP), A(TIMER_OFF) | A(TELL_ULP) },
	{ S(AWAIT_REQUEST), E(BAD_FRAME), GONE },
	{ S(AWAIT_REQUEST), E(SURPLUS), GONE },
	{ S(AWAIT_REQUEST), E(TIMEOUT), GONE },
	{ S(AWAIT_REQUEST), E(FIN), GONE },
	{ S(AWAIT_REQUEST), E(LOST), GONE },
	{ S(AWAIT_REQUEST), E(ABORT), ABORTED },
	{ S(REQUEST_ULP), E(SURPLUS), GONE },
	{ S(REQUEST_ULP), E(FIN), GONE },
	{ S(REQUEST_ULP), E(LOST), GONE },
	{ S(REQUEST_ULP), E(ULP_REJECT), S(STREAM), A(SEND_REPLY) | A(LINGER_TIMER) },
	{ S(REQUEST_ULP), E(ULP_ACCEPT), S(FENCED), A(RX_ON) | A(SEND_REPLY) | A(FPDU_TIMER) },
	{ S(REQUEST_ULP), E(POST), S(REQUEST_ULP), A(HOLD) },
	{ S(REQUEST_ULP), E(ABORT), ABORTED },
	{ S(FENCED), E(POST), S(FENCED), A(HOLD) },
	{ S(FENCED), E(FPDU_OK), S(FULL), A(TIMER_OFF) | A(OPEN_FENCE) },
	{ S(FENCED), E(FPDU_BAD), S(MUTE), A(TIMER_OFF) | A(TELL_ULP) },
	{ S(FENCED), E(FIN), S(MUTE), A(TIMER_OFF) | A(TELL_ULP) },
	{ S(FENCED), E(TIMEOUT), GONE },
	{ S(FENCED), E(LOST), GONE },
	{ S(FENCED), E(ABORT), ABORTED },
	{ S(MUTE), E(POST), S(MUTE), A(HOLD) },
	{ S(MUTE), E(FIN), S(MUTE), A(TELL_ULP) },
	{ S(MUTE), E(TIMEOUT), GONE },
	{ S(MUTE), E(LOST), GONE },
	{ S(MUTE), E(ABORT), ABORTED },
	/* both */
	{ S(FULL), E(POST), S(FULL), A(SEND) },
	{ S(FULL), E(FPDU_OK), S(FULL), A(WAIT) },
	{ S(FULL), E(FPDU_BAD), S(FULL), A(TELL_ULP) },
	{ S(FULL), E(FIN), S(FULL), A(TELL_ULP) },
	{ S(FULL), E(TIMEOUT), GONE },
	{ S(FULL), E(LOST), GONE },
	{ S(FULL), E(ABORT), ABORTED },
	{ S(STREAM), E(POST), S(STREAM), A(HOLD) },
	{ S(STREAM), E(TIMEOUT), GONE },
	{ S(STREAM), E(FIN), GONE },
	{ S(STREAM), E(LOST), GONE },
	{ S(STREAM), E(ABORT), ABORTED },
	{ S(CLOSED), E(POST), S(CLOSED), A(HOLD) },
	{ S(CLOSED), E(ABORT), S(CLOSED), A(WAIT) },
};

static const struct cell *find_legal_cell(enum ddps_mpa_state from, enum ddps_mpa_event ev)
{
	for (size_t i = 0; i < sizeof legal / sizeof legal[0]; i++)
		if (legal[i].from == from && legal[i].ev == ev)
			return &legal[i];
	return NULL;
}

Test(mpa_sm, every_cell,
     .description =
	     "5044-7.1.2-1 5044-7.1.2-3 5044-7.1.2-4 5044-7.1.2-5 5044-7.1.2-7 "
	     "5044-7.1.2-8 5044-7.1.2-10 5044-7.1.2-11 5044-7.1.2-12 5044-7.1.2-13 "
	     "5044-7.1.2-14 5044-7.1.2-15 5044-7.1.2-17 5044-7.1.2-18 5044-7.1.2-20 "
	     "5044-7.1.2-25 5044-7.1.2-26 5044-7.1.2-d2 5044-8-6 5044-8-9 5044-7.2-1 5044-7.1-d1")
{
	for (enum ddps_mpa_state s = 0; s < DDPS_MPA_NSTATE; s++) {
		for (enum ddps_mpa_event ev = 0; ev < DDPS_MPA_NEVENT; ev++) {
			const struct cell *c = find_legal_cell(s, ev);
			enum ddps_mpa_state now = s;
			unsigned acts = ddps_mpa_sm_step(&now, ev);

			cr_expect_eq(acts, c ? c->acts : 0, "%s %s", ddps_mpa_state_name(s),
				     ddps_mpa_event_name(ev));
			cr_expect_eq(now, c ? c->to : s, "%s %s", ddps_mpa_state_name(s),
				     ddps_mpa_event_name(ev));
		}
	}
}

Test(mpa_sm, fence_opens_by_a_valid_fpdu_only, .description = "5044-7.1.2-15 5044u-5-1")
{
	for (enum ddps_mpa_event ev = 0; ev < DDPS_MPA_NEVENT; ev++) {
		enum ddps_mpa_state s = DDPS_MPA_FENCED, mute = DDPS_MPA_MUTE;

		ddps_mpa_sm_step(&s, ev);
		cr_expect_eq(s == DDPS_MPA_FULL, ev == DDPS_MPA_EV_FPDU_OK);
		ddps_mpa_sm_step(&mute, ev);
		cr_expect_neq(mute, DDPS_MPA_FULL);
	}
}

Test(mpa_sm, nothing_is_sent_outside_full_operation, .description = "5044-7.1.2-d2 5044-7.1.2-15")
{
	for (enum ddps_mpa_state s = 0; s < DDPS_MPA_NSTATE; s++) {
		enum ddps_mpa_state now = s;
		unsigned acts = ddps_mpa_sm_step(&now, DDPS_MPA_EV_POST);

		cr_expect_eq(!!(acts & A(SEND)), s == DDPS_MPA_FULL, "%s", ddps_mpa_state_name(s));
		cr_expect_eq(now, s);
	}
}

Test(mpa_sm, closed_is_final)
{
	for (enum ddps_mpa_event ev = 0; ev < DDPS_MPA_NEVENT; ev++) {
		enum ddps_mpa_state s = DDPS_MPA_CLOSED;

		ddps_mpa_sm_step(&s, ev);
		cr_expect_eq(s, DDPS_MPA_CLOSED);
	}
}

Test(mpa_sm, names)
{
	cr_expect_str_eq(ddps_mpa_state_name(DDPS_MPA_IDLE), "IDLE");
	cr_expect_str_eq(ddps_mpa_state_name(DDPS_MPA_CLOSED), "CLOSED");
	cr_expect_str_eq(ddps_mpa_event_name(DDPS_MPA_EV_INITIATE), "INITIATE");
	cr_expect_str_eq(ddps_mpa_event_name(DDPS_MPA_EV_ABORT), "ABORT");
}
