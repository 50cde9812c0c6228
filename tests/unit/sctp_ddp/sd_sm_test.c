/* SPDX-License-Identifier: BSD-2-Clause */
/* State machine of a session on a stream pair: every cell of RFC 5043's tables. */
#include "sctp_ddp/sd_sm.h"
#include <criterion/criterion.h>
#include <ddpsess/err.h>
#include <string.h>

/* What each state makes of each event: the next state, and the actions by letter:
 *   I Initiate  A Accept  J Reject  T Terminate now  o Terminate owed
 *   + timer on  - timer off  r request  a answer  d deliver  c peer closed
 *   F fail  E end  x drop  R release  . nothing
 * An event that is not listed is no legal transition. */
static const struct {
	const char *state, *event, *next, *acts;
} cells[] = {
	{ "IDLE", "CONNECT", "A1", "+I" },
	{ "IDLE", "INITIATE", "P1", "r" },
	{ "IDLE", "OVERLOAD", "DRAIN", "T" },
	{ "IDLE", "TERMINATE", "IDLE", "x" },
	{ "IDLE", "ACCEPT", "DRAIN", "Tx" },
	{ "IDLE", "REJECT", "DRAIN", "Tx" },
	{ "IDLE", "SEGMENT", "DRAIN", "Tx" },
	{ "IDLE", "ILLEGAL", "DRAIN", "Tx" },
	{ "IDLE", "DRAINED", "IDLE", "." },
	{ "IDLE", "LOST", "IDLE", "R" },

	{ "A1", "ACCEPT", "OPEN", "-a" },
	{ "A1", "REJECT", "DRAIN", "-aE" },
	{ "A1", "TERMINATE", "DRAIN", "-E" },
	{ "A1", "ABORT", "A1C", "+" },
	{ "A1", "SEGMENT", "ERR", "-oF" },
	{ "A1", "INITIATE", "ERR", "-oF" },
	{ "A1", "OVERLOAD", "ERR", "-oF" },
	{ "A1", "ILLEGAL", "ERR", "-oF" },
	{ "A1", "DRAINED", "A1", "." },
	{ "A1", "LOST", "IDLE", "-ER" },

	{ "A1C", "ACCEPT", "LT", "-T" },
	{ "A1C", "REJECT", "DRAIN", "-" },
	{ "A1C", "TERMINATE", "DRAIN", "-" },
	{ "A1C", "TERM_READY", "A1T", "-T" },
	{ "A1C", "ABORT", "A1C", "." },
	{ "A1C", "SEGMENT", "ERR", "-oF" },
	{ "A1C", "INITIATE", "ERR", "-oF" },
	{ "A1C", "OVERLOAD", "ERR", "-oF" },
	{ "A1C", "ILLEGAL", "ERR", "-oF" },
	{ "A1C", "DRAINED", "A1C", "." },
	{ "A1C", "LOST", "IDLE", "-R" },

	{ "A1T", "ACCEPT", "LT", "." },
	{ "A1T", "REJECT", "DRAIN", "." },
	{ "A1T", "TERMINATE", "DRAIN", "." },
	{ "A1T", "ABORT", "A1T", "." },
	{ "A1T", "SEGMENT", "LT", "x" },
	{ "A1T", "INITIATE", "LT", "x" },
	{ "A1T", "OVERLOAD", "LT", "x" },
	{ "A1T", "ILLEGAL", "LT", "x" },
	{ "A1T", "DRAINED", "A1T", "." },
	{ "A1T", "LOST", "IDLE", "R" },

	{ "P1", "ULP_ACCEPT", "OPEN", "A" },
	{ "P1", "ULP_REJECT", "DRAIN", "J" },
	{ "P1", "ABORT", "DRAIN", "TE" },
	{ "P1", "TERMINATE", "DRAIN", "TE" },
	{ "P1", "SEGMENT", "ERR", "-oF" },
	{ "P1", "INITIATE", "ERR", "-oF" },
	{ "P1", "OVERLOAD", "ERR", "-oF" },
	{ "P1", "ACCEPT", "ERR", "-oF" },
	{ "P1", "REJECT", "ERR", "-oF" },
	{ "P1", "ILLEGAL", "ERR", "-oF" },
	{ "P1", "DRAINED", "P1", "." },
	{ "P1", "LOST", "IDLE", "ER" },

	{ "OPEN", "SEGMENT", "OPEN", "d" },
	{ "OPEN", "TERMINATE", "PEER_DONE", "c" },
	{ "OPEN", "TERM_READY", "LT", "T" },
	{ "OPEN", "ABORT", "ERR", "o" },
	{ "OPEN", "INITIATE", "ERR", "-oF" },
	{ "OPEN", "OVERLOAD", "ERR", "-oF" },
	{ "OPEN", "ACCEPT", "ERR", "-oF" },
	{ "OPEN", "REJECT", "ERR", "-oF" },
	{ "OPEN", "ILLEGAL", "ERR", "-oF" },
	{ "OPEN", "DRAINED", "OPEN", "." },
	{ "OPEN", "LOST", "IDLE", "ER" },

	{ "PEER_DONE", "TERM_READY", "DRAIN", "T" },
	{ "PEER_DONE", "ABORT", "PEER_DONE", "o" },
	{ "PEER_DONE", "SEGMENT", "PEER_DONE", "oF" },
	{ "PEER_DONE", "INITIATE", "PEER_DONE", "oF" },
	{ "PEER_DONE", "OVERLOAD", "PEER_DONE", "oF" },
	{ "PEER_DONE", "ACCEPT", "PEER_DONE", "oF" },
	{ "PEER_DONE", "REJECT", "PEER_DONE", "oF" },
	{ "PEER_DONE", "TERMINATE", "PEER_DONE", "oF" },
	{ "PEER_DONE", "ILLEGAL", "PEER_DONE", "oF" },
	{ "PEER_DONE", "DRAINED", "PEER_DONE", "." },
	{ "PEER_DONE", "LOST", "IDLE", "ER" },

	{ "ERR", "TERM_READY", "LT", "T" },
	{ "ERR", "TERMINATE", "PEER_DONE", "o" },
	{ "ERR", "ABORT", "ERR", "." },
	{ "ERR", "SEGMENT", "ERR", "x" },
	{ "ERR", "INITIATE", "ERR", "x" },
	{ "ERR", "OVERLOAD", "ERR", "x" },
	{ "ERR", "ACCEPT", "ERR", "x" },
	{ "ERR", "REJECT", "ERR", "x" },
	{ "ERR", "ILLEGAL", "ERR", "x" },
	{ "ERR", "DRAINED", "ERR", "." },
	{ "ERR", "LOST", "IDLE", "R" },

	{ "LT", "SEGMENT", "LT", "d" },
	{ "LT", "TERMINATE", "DRAIN", "." },
	{ "LT", "AGAIN", "IDLE", "E" },
	{ "LT", "ABORT", "LT", "." },
	{ "LT", "INITIATE", "LT", "F" },
	{ "LT", "OVERLOAD", "LT", "F" },
	{ "LT", "ACCEPT", "LT", "F" },
	{ "LT", "REJECT", "LT", "F" },
	{ "LT", "ILLEGAL", "LT", "F" },
	{ "LT", "DRAINED", "LT", "." },
	{ "LT", "LOST", "IDLE", "ER" },

	{ "DRAIN", "DRAINED", "IDLE", "R" },
	{ "DRAIN", "AGAIN", "IDLE", "." },
	{ "DRAIN", "ABORT", "DRAIN", "." },
	{ "DRAIN", "INITIATE", "DRAIN", "x" },
	{ "DRAIN", "OVERLOAD", "DRAIN", "x" },
	{ "DRAIN", "ACCEPT", "DRAIN", "x" },
	{ "DRAIN", "REJECT", "DRAIN", "x" },
	{ "DRAIN", "TERMINATE", "DRAIN", "x" },
	{ "DRAIN", "SEGMENT", "DRAIN", "x" },
	{ "DRAIN", "ILLEGAL", "DRAIN", "x" },
	{ "DRAIN", "LOST", "IDLE", "R" },
};

#define NCELLS (sizeof(cells) / sizeof(cells[0]))

/* In the order of the bits. */
static const char letters[] = "-+IAJTorad"
			      "cFExR.";

static unsigned acts_of(const char *s)
{
	unsigned acts = 0;

	for (; *s; s++) {
		const char *at = strchr(letters, *s);

		cr_assert(at);
		acts |= 1u << (at - letters);
	}
	return acts;
}

static size_t cell_of(const char *state, const char *event)
{
	size_t i;

	for (i = 0; i < NCELLS; i++)
		if (!strcmp(cells[i].state, state) && !strcmp(cells[i].event, event))
			break;
	return i;
}

Test(sd_sm, every_cell,
     .description = "5043-6.1-1 5043-6.1-2 5043-6.2-1 5043-6.2-2 5043-6.2-d1 5043-6.3-2 "
		    "5043-6.3-3 5043-6.3-d1 5043-6.3-d2 5043-6.4-4 5043-6.5-2")
{
	unsigned seen = 0;

	for (int s = 0; s < DDPS_SD_NSTATES; s++)
		for (int e = 0; e < DDPS_SD_NEVENTS; e++) {
			struct ddps_sd_sm sm = { .state = (enum ddps_sd_state)s };
			const char *state = ddps_sd_state_name((enum ddps_sd_state)s);
			const char *event = ddps_sd_event_name((enum ddps_sd_event)e);
			size_t i = cell_of(state, event);
			unsigned acts;
			int err = ddps_sd_step(&sm, (enum ddps_sd_event)e, &acts);

			if (i == NCELLS) {
				cr_expect_eq(err, DDPS_E_STATE, "%s %s", state, event);
				cr_expect_eq((int)sm.state, s, "%s %s", state, event);
				continue;
			}
			seen++;
			cr_expect_eq(err, 0, "%s %s", state, event);
			cr_expect_str_eq(ddps_sd_state_name(sm.state), cells[i].next, "%s %s",
					 state, event);
			cr_expect_eq(acts, acts_of(cells[i].acts), "%s %s: 0x%x", state, event,
				     acts);
		}
	cr_expect_eq(seen, NCELLS);
}

Test(sd_sm, idle_answers_one_stray_until_the_next_initiate)
{
	static const enum ddps_sd_event renew[] = { DDPS_SD_EV_INITIATE, DDPS_SD_EV_OVERLOAD,
						    DDPS_SD_EV_CONNECT };

	for (size_t i = 0; i < 3; i++) {
		struct ddps_sd_sm sm = { 0 };
		unsigned acts;

		ddps_sd_step(&sm, DDPS_SD_EV_SEGMENT, &acts);
		cr_expect(acts & DDPS_SD_SEND_TERM);
		sm.state = DDPS_SD_IDLE;
		ddps_sd_step(&sm, DDPS_SD_EV_ACCEPT, &acts);
		cr_expect_eq(acts, DDPS_SD_DROP);
		cr_expect_eq(sm.state, DDPS_SD_IDLE);
		ddps_sd_step(&sm, renew[i], &acts);
		sm.state = DDPS_SD_IDLE;
		ddps_sd_step(&sm, DDPS_SD_EV_ILLEGAL, &acts);
		cr_expect(acts & DDPS_SD_SEND_TERM);
	}
}

Test(sd_sm, terminate_in_idle_and_drain_is_never_answered)
{
	struct ddps_sd_sm sm = { 0 };
	unsigned acts;

	for (int i = 0; i < 3; i++) {
		ddps_sd_step(&sm, DDPS_SD_EV_TERMINATE, &acts);
		cr_expect_eq(acts, DDPS_SD_DROP);
	}
	sm.state = DDPS_SD_DRAIN;
	ddps_sd_step(&sm, DDPS_SD_EV_TERMINATE, &acts);
	cr_expect_eq(acts, DDPS_SD_DROP);
}

/* What was not answered, is not taken for it; what was, is dropped and no fault. */
Test(sd_sm, only_an_answer_uses_up_the_answer)
{
	static const enum ddps_sd_event silent[] = { DDPS_SD_EV_TERMINATE, DDPS_SD_EV_DRAINED };
	struct ddps_sd_sm sm = { 0 };
	unsigned acts;

	for (size_t i = 0; i < 2; i++) {
		cr_expect_eq(ddps_sd_step(&sm, silent[i], &acts), 0);
		cr_expect_not(sm.answered, "event %zu", i);
	}
	cr_expect_eq(ddps_sd_step(&sm, DDPS_SD_EV_SEGMENT, &acts), 0);
	cr_expect(acts & DDPS_SD_SEND_TERM);
	cr_expect(sm.answered);
	sm.state = DDPS_SD_IDLE;
	for (size_t i = 0; i < 2; i++) {
		cr_expect_eq(ddps_sd_step(&sm, DDPS_SD_EV_SEGMENT, &acts), 0);
		cr_expect_eq(acts, DDPS_SD_DROP);
	}
}

Test(sd_sm, classifies_by_kind_of_initiate, .description = "6581-7-d1 6581-7-d3")
{
	static const enum ddps_sd_event plain[] = {
		DDPS_SD_EV_ILLEGAL, DDPS_SD_EV_INITIATE,  DDPS_SD_EV_ACCEPT,
		DDPS_SD_EV_REJECT,  DDPS_SD_EV_TERMINATE, DDPS_SD_EV_INITIATE,
		DDPS_SD_EV_ILLEGAL, DDPS_SD_EV_ILLEGAL,	  DDPS_SD_EV_ILLEGAL,
	};
	static const enum ddps_sd_event enhanced[] = {
		DDPS_SD_EV_ILLEGAL, DDPS_SD_EV_INITIATE,  DDPS_SD_EV_ILLEGAL,
		DDPS_SD_EV_REJECT,  DDPS_SD_EV_TERMINATE, DDPS_SD_EV_INITIATE,
		DDPS_SD_EV_ACCEPT,  DDPS_SD_EV_REJECT,	  DDPS_SD_EV_ILLEGAL,
	};

	for (uint16_t code = 0; code <= 8; code++) {
		struct ddps_sd_sm sm = { 0 };
		struct ddps_sd_msg m = { .code = code };

		cr_expect_eq(ddps_sd_classify(&sm, &m), plain[code], "%u", code);
		sm.enhanced = true;
		cr_expect_eq(ddps_sd_classify(&sm, &m), enhanced[code], "%u", code);
		m.bad = true;
		cr_expect_eq(ddps_sd_classify(&sm, &m), DDPS_SD_EV_ILLEGAL);
		m = (struct ddps_sd_msg){ .segment = true };
		cr_expect_eq(ddps_sd_classify(&sm, &m), DDPS_SD_EV_SEGMENT);
	}
}
