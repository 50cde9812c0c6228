/* SPDX-License-Identifier: BSD-2-Clause */
/* State machine of the session on one stream pair.  A cell left out is no legal transition. */
#include "sctp_ddp/sd_sm.h"
#include <ddpsess/err.h>

struct rule {
	enum ddps_sd_state next;
	unsigned acts;
};

#define EV(name)  [DDPS_SD_EV_##name]
#define TO(state) DDPS_SD_##state

/* [5043-6.1-2] Not in any legal sequence: the session dies, the association stays. */
#define DIES                                                                                       \
	{                                                                                          \
		TO(ERR), DDPS_SD_TIMER_OFF | DDPS_SD_FAIL | DDPS_SD_OWE_TERM                       \
	}
/* After the peer's Terminate, or ours: the state stays, what is left of the session dies. */
#define DIES_DONE                                                                                  \
	{                                                                                          \
		TO(PEER_DONE), DDPS_SD_FAIL | DDPS_SD_OWE_TERM                                     \
	}
#define DIES_LT                                                                                    \
	{                                                                                          \
		TO(LT), DDPS_SD_FAIL                                                               \
	}
/* Late, stray or meant for a dead session: never answered. */
#define DROPPED(state)                                                                             \
	{                                                                                          \
		TO(state), DDPS_SD_DROP                                                            \
	}
/* A first stray message in IDLE is answered, once; the answer has to be acknowledged before
 * the pair can be used [5043-6.6-4]. */
#define STRAY                                                                                      \
	{                                                                                          \
		TO(DRAIN), DDPS_SD_DROP | DDPS_SD_SEND_TERM                                        \
	}

static const struct rule rules[DDPS_SD_NSTATES][DDPS_SD_NEVENTS] = {
	[TO(IDLE)] = {
		EV(CONNECT) = { TO(A1), DDPS_SD_SEND_INITIATE | DDPS_SD_TIMER_ON },
		EV(INITIATE) = { TO(P1), DDPS_SD_REQUEST },
		EV(OVERLOAD) = { TO(DRAIN), DDPS_SD_SEND_TERM }, /* [5043-6.4-4] */
		EV(TERMINATE) = DROPPED(IDLE), /* two idle sides would loop */
		EV(ACCEPT) = STRAY,
		EV(REJECT) = STRAY,
		EV(SEGMENT) = STRAY,
		EV(ILLEGAL) = STRAY,
		EV(DRAINED) = { TO(IDLE), DDPS_SD_NOTHING },
		EV(LOST) = { TO(IDLE), DDPS_SD_RELEASE },
	},
	[TO(A1)] = {
		EV(ACCEPT) = { TO(OPEN), DDPS_SD_TIMER_OFF | DDPS_SD_ANSWER },
		EV(REJECT) = { TO(DRAIN),
			       DDPS_SD_TIMER_OFF | DDPS_SD_ANSWER | DDPS_SD_END },
		EV(TERMINATE) = { TO(DRAIN), DDPS_SD_TIMER_OFF | DDPS_SD_END },
		EV(ABORT) = { TO(A1C), DDPS_SD_TIMER_ON }, /* wait one more period for the answer */
		EV(SEGMENT) = DIES,
		EV(INITIATE) = DIES, /* crossing: both sides end it */
		EV(OVERLOAD) = DIES,
		EV(ILLEGAL) = DIES,
		EV(DRAINED) = { TO(A1), DDPS_SD_NOTHING },
		EV(LOST) = { TO(IDLE), DDPS_SD_TIMER_OFF | DDPS_SD_END | DDPS_SD_RELEASE },
	},
	[TO(A1C)] = {
		/* The Accept proves that our Initiate has arrived. */
		EV(ACCEPT) = { TO(LT), DDPS_SD_TIMER_OFF | DDPS_SD_SEND_TERM },
		EV(REJECT) = { TO(DRAIN), DDPS_SD_TIMER_OFF },
		EV(TERMINATE) = { TO(DRAIN), DDPS_SD_TIMER_OFF },
		EV(TERM_READY) = { TO(A1T), DDPS_SD_TIMER_OFF | DDPS_SD_SEND_TERM },
		EV(ABORT) = { TO(A1C), DDPS_SD_NOTHING },
		EV(SEGMENT) = DIES,
		EV(INITIATE) = DIES,
		EV(OVERLOAD) = DIES,
		EV(ILLEGAL) = DIES,
		EV(DRAINED) = { TO(A1C), DDPS_SD_NOTHING },
		EV(LOST) = { TO(IDLE), DDPS_SD_TIMER_OFF | DDPS_SD_RELEASE },
	},
	[TO(A1T)] = {
		EV(ACCEPT) = { TO(LT), DDPS_SD_NOTHING },
		EV(REJECT) = { TO(DRAIN), DDPS_SD_NOTHING },
		EV(TERMINATE) = { TO(DRAIN), DDPS_SD_NOTHING },
		EV(ABORT) = { TO(A1T), DDPS_SD_NOTHING },
		EV(SEGMENT) = DROPPED(LT),
		EV(INITIATE) = DROPPED(LT),
		EV(OVERLOAD) = DROPPED(LT),
		EV(ILLEGAL) = DROPPED(LT),
		EV(DRAINED) = { TO(A1T), DDPS_SD_NOTHING },
		EV(LOST) = { TO(IDLE), DDPS_SD_RELEASE },
	},
	[TO(P1)] = {
		EV(ULP_ACCEPT) = { TO(OPEN), DDPS_SD_SEND_ACCEPT },
		EV(ULP_REJECT) = { TO(DRAIN), DDPS_SD_SEND_REJECT },
		/* [5043-6.3-3] Without the ULP's word it is a Terminate, never a Reject. */
		EV(ABORT) = { TO(DRAIN), DDPS_SD_SEND_TERM | DDPS_SD_END },
		/* Withdrawn; our Terminate is the end mark of this direction. */
		EV(TERMINATE) = { TO(DRAIN), DDPS_SD_SEND_TERM | DDPS_SD_END },
		EV(SEGMENT) = DIES, /* ahead of our Accept */
		EV(INITIATE) = DIES,
		EV(OVERLOAD) = DIES,
		EV(ACCEPT) = DIES,
		EV(REJECT) = DIES,
		EV(ILLEGAL) = DIES,
		EV(DRAINED) = { TO(P1), DDPS_SD_NOTHING },
		EV(LOST) = { TO(IDLE), DDPS_SD_END | DDPS_SD_RELEASE },
	},
	[TO(OPEN)] = {
		EV(SEGMENT) = { TO(OPEN), DDPS_SD_DELIVER },
		EV(TERMINATE) = { TO(PEER_DONE), DDPS_SD_PEER_CLOSED },
		EV(TERM_READY) = { TO(LT), DDPS_SD_SEND_TERM },
		EV(ABORT) = { TO(ERR), DDPS_SD_OWE_TERM },
		EV(INITIATE) = DIES,
		EV(OVERLOAD) = DIES,
		EV(ACCEPT) = DIES,
		EV(REJECT) = DIES,
		EV(ILLEGAL) = DIES,
		EV(DRAINED) = { TO(OPEN), DDPS_SD_NOTHING },
		EV(LOST) = { TO(IDLE), DDPS_SD_END | DDPS_SD_RELEASE },
	},
	[TO(PEER_DONE)] = {
		EV(TERM_READY) = { TO(DRAIN), DDPS_SD_SEND_TERM },
		EV(ABORT) = { TO(PEER_DONE), DDPS_SD_OWE_TERM },
		EV(SEGMENT) = DIES_DONE,
		EV(INITIATE) = DIES_DONE,
		EV(OVERLOAD) = DIES_DONE,
		EV(ACCEPT) = DIES_DONE,
		EV(REJECT) = DIES_DONE,
		EV(TERMINATE) = DIES_DONE,
		EV(ILLEGAL) = DIES_DONE,
		EV(DRAINED) = { TO(PEER_DONE), DDPS_SD_NOTHING },
		EV(LOST) = { TO(IDLE), DDPS_SD_END | DDPS_SD_RELEASE },
	},
	[TO(ERR)] = {
		EV(TERM_READY) = { TO(LT), DDPS_SD_SEND_TERM },
		EV(TERMINATE) = { TO(PEER_DONE), DDPS_SD_OWE_TERM },
		EV(ABORT) = { TO(ERR), DDPS_SD_NOTHING },
		EV(SEGMENT) = DROPPED(ERR),
		EV(INITIATE) = DROPPED(ERR),
		EV(OVERLOAD) = DROPPED(ERR),
		EV(ACCEPT) = DROPPED(ERR),
		EV(REJECT) = DROPPED(ERR),
		EV(ILLEGAL) = DROPPED(ERR),
		EV(DRAINED) = { TO(ERR), DDPS_SD_NOTHING },
		EV(LOST) = { TO(IDLE), DDPS_SD_RELEASE },
	},
	[TO(LT)] = {
		EV(SEGMENT) = { TO(LT), DDPS_SD_DELIVER },
		EV(TERMINATE) = { TO(DRAIN), DDPS_SD_NOTHING },
		EV(AGAIN) = { TO(IDLE), DDPS_SD_END },
		EV(ABORT) = { TO(LT), DDPS_SD_NOTHING },
		EV(INITIATE) = DIES_LT,
		EV(OVERLOAD) = DIES_LT,
		EV(ACCEPT) = DIES_LT,
		EV(REJECT) = DIES_LT,
		EV(ILLEGAL) = DIES_LT,
		EV(DRAINED) = { TO(LT), DDPS_SD_NOTHING },
		EV(LOST) = { TO(IDLE), DDPS_SD_END | DDPS_SD_RELEASE },
	},
	[TO(DRAIN)] = {
		EV(DRAINED) = { TO(IDLE), DDPS_SD_RELEASE },
		EV(AGAIN) = { TO(IDLE), DDPS_SD_NOTHING },
		EV(ABORT) = { TO(DRAIN), DDPS_SD_NOTHING },
		EV(INITIATE) = DROPPED(DRAIN),
		EV(OVERLOAD) = DROPPED(DRAIN),
		EV(ACCEPT) = DROPPED(DRAIN),
		EV(REJECT) = DROPPED(DRAIN),
		EV(TERMINATE) = DROPPED(DRAIN),
		EV(SEGMENT) = DROPPED(DRAIN),
		EV(ILLEGAL) = DROPPED(DRAIN),
		EV(LOST) = { TO(IDLE), DDPS_SD_RELEASE },
	},
};

int ddps_sd_step(struct ddps_sd_sm *sm, enum ddps_sd_event ev, unsigned *acts)
{
	const struct rule *r = &rules[sm->state][ev];

	*acts = r->acts;
	if (!r->acts)
		return DDPS_E_STATE;
	if (ev == DDPS_SD_EV_INITIATE || ev == DDPS_SD_EV_OVERLOAD || ev == DDPS_SD_EV_CONNECT) {
		sm->answered = false;
	} else if (sm->state == DDPS_SD_IDLE && r->acts & DDPS_SD_SEND_TERM) {
		if (sm->answered) {
			*acts = DDPS_SD_DROP;
			return 0;
		}
		sm->answered = true;
	}
	sm->state = r->next;
	return 0;
}

enum ddps_sd_event ddps_sd_classify(const struct ddps_sd_sm *sm, const struct ddps_sd_msg *m)
{
	if (m->segment)
		return DDPS_SD_EV_SEGMENT;
	if (m->bad)
		return DDPS_SD_EV_ILLEGAL;
	switch (m->code) {
	case DDPS_SD_INITIATE:
	case DDPS_SD_ENH_INITIATE:
		return DDPS_SD_EV_INITIATE;
	case DDPS_SD_ACCEPT:
		return sm->enhanced ? DDPS_SD_EV_ILLEGAL : DDPS_SD_EV_ACCEPT;
	case DDPS_SD_ENH_ACCEPT:
		return sm->enhanced ? DDPS_SD_EV_ACCEPT : DDPS_SD_EV_ILLEGAL;
	case DDPS_SD_REJECT: /* also a legal answer to 0x0005: an ULP's plain no */
		return DDPS_SD_EV_REJECT;
	case DDPS_SD_ENH_REJECT:
		return sm->enhanced ? DDPS_SD_EV_REJECT : DDPS_SD_EV_ILLEGAL;
	case DDPS_SD_TERMINATE:
		return DDPS_SD_EV_TERMINATE;
	default:
		return DDPS_SD_EV_ILLEGAL;
	}
}

const char *ddps_sd_state_name(enum ddps_sd_state s)
{
	static const char *const names[] = {
#define DDPS_X(name) #name,
		DDPS_SD_STATES(DDPS_X)
#undef DDPS_X
	};

	return names[s];
}

const char *ddps_sd_event_name(enum ddps_sd_event e)
{
	static const char *const names[] = {
#define DDPS_X(name) #name,
		DDPS_SD_EVENTS(DDPS_X)
#undef DDPS_X
	};

	return names[e];
}
