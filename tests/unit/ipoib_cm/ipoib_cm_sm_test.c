/* SPDX-License-Identifier: BSD-2-Clause */
/* The CM state machine: every row of its tables, by messages, calls and timers. */
#include <criterion/criterion.h>
#include <string.h>
#include "ipoib_cm/cm/cm_own.h"
#include "ipoib_cm_fixture.h"
#include "ipoib_cm/cm/cm_conn.h"

/* ---- The tables ---- */

#define QUIET DDPS_CM_NEVENT /* nothing is reported */
#define NONE  0

struct row {
	enum ddps_cm_state from;
	enum stimulus what;
	uint16_t sends; /* attribute of the message, or NONE */
	enum ddps_cm_event tells;
	enum ddps_cm_state to;
	bool timer; /* one runs afterwards */
};

static const struct row active_rows[] = {
	{ ST(IDLE), S_CONNECT, DDPS_CM_REQ, QUIET, ST(REQ_SENT), true },
	{ ST(REQ_SENT), S_TIMER, DDPS_CM_REQ, QUIET, ST(REQ_SENT), true },
	{ ST(REQ_SENT), S_TIMER_END, NONE, EV(T_END), ST(IDLE), false },
	{ ST(REQ_SENT), S_RX_REP, NONE, EV(RX_REP), ST(REP_RCVD), false },
	{ ST(REQ_SENT), S_RX_REP_ID_USED, NONE, QUIET, ST(REQ_SENT), true },
	{ ST(REQ_SENT), S_RX_REJ, NONE, EV(RX_REJ), ST(IDLE), false },
	{ ST(REQ_SENT), S_RX_REJ_STALE, NONE, EV(RX_REJ_STALE), ST(TIMEWAIT), true },
	{ ST(REQ_SENT), S_ABORT, DDPS_CM_REJ, QUIET, ST(IDLE), false },
	{ ST(REQ_SENT), S_RX_MRA_REQ, NONE, QUIET, ST(MRA_REQ_RCVD), true },
	{ ST(REQ_SENT), S_WITHDRAW, NONE, QUIET, ST(WITHDRAWN), true },
	{ ST(REQ_SENT), S_RX_MRA_REP, NONE, QUIET, ST(REQ_SENT), true },
	{ ST(REQ_SENT), S_RX_RTU, NONE, QUIET, ST(REQ_SENT), true },
	{ ST(REQ_SENT), S_RX_DREP, NONE, QUIET, ST(REQ_SENT), true },
	{ ST(REQ_SENT), S_RX_REJ_TIMEOUT, NONE, QUIET, ST(REQ_SENT), true },
	{ ST(MRA_REQ_RCVD), S_TIMER, DDPS_CM_REQ, QUIET, ST(MRA_REQ_RCVD), true },
	{ ST(MRA_REQ_RCVD), S_TIMER_END, NONE, EV(T_END), ST(IDLE), false },
	{ ST(MRA_REQ_RCVD), S_RX_REP, NONE, EV(RX_REP), ST(REP_RCVD), false },
	{ ST(MRA_REQ_RCVD), S_RX_REP_ID_USED, NONE, QUIET, ST(MRA_REQ_RCVD), true },
	{ ST(MRA_REQ_RCVD), S_RX_REJ, NONE, EV(RX_REJ), ST(IDLE), false },
	{ ST(MRA_REQ_RCVD), S_RX_REJ_STALE, NONE, EV(RX_REJ_STALE), ST(TIMEWAIT), true },
	{ ST(MRA_REQ_RCVD), S_ABORT, DDPS_CM_REJ, QUIET, ST(IDLE), false },
	{ ST(MRA_REQ_RCVD), S_RX_MRA_REQ, NONE, QUIET, ST(MRA_REQ_RCVD), true },
	{ ST(MRA_REQ_RCVD), S_WITHDRAW, NONE, QUIET, ST(WITHDRAWN), true },
	{ ST(WITHDRAWN), S_RX_REP, DDPS_CM_REJ, QUIET, ST(WITHDRAWN), true },
	{ ST(WITHDRAWN), S_RX_REJ, NONE, QUIET, ST(WITHDRAWN), true },
	{ ST(WITHDRAWN), S_RX_REJ_STALE, NONE, QUIET, ST(WITHDRAWN), true },
	{ ST(WITHDRAWN), S_RX_MRA_REQ, NONE, QUIET, ST(WITHDRAWN), true },
	{ ST(WITHDRAWN), S_TIMER, NONE, EV(T_END), ST(IDLE), false },
	{ ST(REP_RCVD), S_READY, DDPS_CM_RTU, QUIET, ST(ESTABLISHED), false },
	{ ST(REP_RCVD), S_REJECT, DDPS_CM_REJ, QUIET, ST(IDLE), false },
	{ ST(REP_RCVD), S_DELAY, DDPS_CM_MRA, QUIET, ST(MRA_REP_SENT), false },
	{ ST(REP_RCVD), S_RX_REP, NONE, QUIET, ST(REP_RCVD), false },
	{ ST(REP_RCVD), S_RX_REJ, NONE, EV(RX_REJ), ST(TIMEWAIT), true },
	{ ST(REP_RCVD), S_RX_REJ_TIMEOUT, NONE, EV(RX_REJ), ST(TIMEWAIT), true },
	{ ST(MRA_REP_SENT), S_RX_REP, DDPS_CM_MRA, QUIET, ST(MRA_REP_SENT), false },
	{ ST(MRA_REP_SENT), S_READY, DDPS_CM_RTU, QUIET, ST(ESTABLISHED), false },
	{ ST(MRA_REP_SENT), S_REJECT, DDPS_CM_REJ, QUIET, ST(IDLE), false },
	{ ST(MRA_REP_SENT), S_RX_REJ, NONE, EV(RX_REJ), ST(TIMEWAIT), true },
	{ ST(ESTABLISHED), S_DISCONNECT, DDPS_CM_DREQ, QUIET, ST(DREQ_SENT), true },
	{ ST(ESTABLISHED), S_RX_DREQ, NONE, EV(RX_DREQ), ST(DREQ_RCVD), false },
	{ ST(ESTABLISHED), S_RX_DREQ_QPN, NONE, QUIET, ST(ESTABLISHED), false },
	{ ST(ESTABLISHED), S_RX_REJ, NONE, EV(RX_REJ), ST(TIMEWAIT), true },
	{ ST(ESTABLISHED), S_RX_REP, DDPS_CM_RTU, QUIET, ST(ESTABLISHED), false },
	{ ST(ESTABLISHED), S_RX_RTU, NONE, QUIET, ST(ESTABLISHED), false },
	{ ST(DREQ_SENT), S_RX_DREP, NONE, EV(RX_DREP), ST(TIMEWAIT), true },
	{ ST(DREQ_SENT), S_RX_DREQ, NONE, EV(RX_DREQ), ST(DREQ_RCVD), false },
	{ ST(DREQ_SENT), S_TIMER, DDPS_CM_DREQ, QUIET, ST(DREQ_SENT), true },
	{ ST(DREQ_SENT), S_TIMER_END, NONE, EV(T_END), ST(TIMEWAIT), true },
	{ ST(DREQ_SENT), S_RX_REJ, NONE, EV(RX_REJ), ST(TIMEWAIT), true },
	{ ST(DREQ_RCVD), S_CLOSED, DDPS_CM_DREP, QUIET, ST(TIMEWAIT), true },
	{ ST(DREQ_RCVD), S_RX_DREQ, NONE, QUIET, ST(DREQ_RCVD), false },
	{ ST(DREQ_RCVD), S_RX_DREP, NONE, EV(RX_DREP), ST(TIMEWAIT), true },
	{ ST(TIMEWAIT), S_RX_DREQ, DDPS_CM_DREP, QUIET, ST(TIMEWAIT), true },
	{ ST(TIMEWAIT), S_TIMER, NONE, EV(T_END), ST(IDLE), false },
	{ ST(TIMEWAIT), S_RX_REP, NONE, QUIET, ST(TIMEWAIT), true },
	{ ST(IDLE), S_RX_DREQ, DDPS_CM_DREP, QUIET, ST(IDLE), false },
	{ ST(IDLE), S_RX_REP, NONE, QUIET, ST(IDLE), false },
	{ ST(IDLE), S_RX_RTU, NONE, QUIET, ST(IDLE), false },
	{ ST(IDLE), S_RX_MRA_REQ, NONE, QUIET, ST(IDLE), false },
	{ ST(IDLE), S_RX_DREP, NONE, QUIET, ST(IDLE), false },
	{ ST(IDLE), S_RX_REJ, NONE, QUIET, ST(IDLE), false },
};

static const struct row passive_rows[] = {
	{ ST(REQ_RCVD), S_REPLY, DDPS_CM_REP, QUIET, ST(REP_SENT), true },
	{ ST(REQ_RCVD), S_REJECT, DDPS_CM_REJ, QUIET, ST(IDLE), false },
	{ ST(REQ_RCVD), S_DELAY, DDPS_CM_MRA, QUIET, ST(MRA_REQ_SENT), false },
	{ ST(REQ_RCVD), S_RX_REQ, NONE, QUIET, ST(REQ_RCVD), false },
	{ ST(REQ_RCVD), S_RX_REJ_TIMEOUT, NONE, EV(RX_REJ), ST(IDLE), false },
	{ ST(REQ_RCVD), S_RX_REJ_STALE, NONE, EV(RX_REJ_STALE), ST(TIMEWAIT), true },
	{ ST(MRA_REQ_SENT), S_REPLY, DDPS_CM_REP, QUIET, ST(REP_SENT), true },
	{ ST(MRA_REQ_SENT), S_REJECT, DDPS_CM_REJ, QUIET, ST(IDLE), false },
	{ ST(MRA_REQ_SENT), S_RX_REQ, DDPS_CM_MRA, QUIET, ST(MRA_REQ_SENT), false },
	{ ST(MRA_REQ_SENT), S_RX_REJ_TIMEOUT, NONE, EV(RX_REJ), ST(IDLE), false },
	{ ST(MRA_REQ_SENT), S_RX_REJ_STALE, NONE, EV(RX_REJ_STALE), ST(TIMEWAIT), true },
	{ ST(REP_SENT), S_TIMER, DDPS_CM_REP, QUIET, ST(REP_SENT), true },
	{ ST(REP_SENT), S_TIMER_END, NONE, EV(T_END), ST(IDLE), false },
	{ ST(REP_SENT), S_TIMER_DATA, NONE, EV(T_END_DATA), ST(ESTABLISHED), false },
	{ ST(REP_SENT), S_RX_RTU, NONE, EV(RX_RTU), ST(ESTABLISHED), false },
	{ ST(REP_SENT), S_DATA, NONE, EV(DATA_IN), ST(ESTABLISHED), false },
	{ ST(REP_SENT), S_RX_MRA_REP, NONE, QUIET, ST(MRA_REP_RCVD), true },
	{ ST(REP_SENT), S_RX_REJ, NONE, EV(RX_REJ), ST(IDLE), false },
	{ ST(REP_SENT), S_RX_REJ_STALE, NONE, EV(RX_REJ_STALE), ST(TIMEWAIT), true },
	{ ST(REP_SENT), S_RX_DREQ, NONE, EV(RX_DREQ), ST(DREQ_RCVD), false },
	{ ST(REP_SENT), S_ABORT, DDPS_CM_REJ, QUIET, ST(TIMEWAIT), true },
	{ ST(REP_SENT), S_RX_REQ, NONE, QUIET, ST(REP_SENT), true },
	{ ST(MRA_REP_RCVD), S_TIMER, DDPS_CM_REP, QUIET, ST(MRA_REP_RCVD), true },
	{ ST(MRA_REP_RCVD), S_TIMER_END, NONE, EV(T_END), ST(IDLE), false },
	{ ST(MRA_REP_RCVD), S_TIMER_DATA, NONE, EV(T_END_DATA), ST(ESTABLISHED), false },
	{ ST(MRA_REP_RCVD), S_RX_RTU, NONE, EV(RX_RTU), ST(ESTABLISHED), false },
	{ ST(MRA_REP_RCVD), S_DATA, NONE, EV(DATA_IN), ST(ESTABLISHED), false },
	{ ST(MRA_REP_RCVD), S_RX_REJ, NONE, EV(RX_REJ), ST(IDLE), false },
	{ ST(MRA_REP_RCVD), S_RX_REJ_STALE, NONE, EV(RX_REJ_STALE), ST(TIMEWAIT), true },
	{ ST(MRA_REP_RCVD), S_RX_DREQ, NONE, EV(RX_DREQ), ST(DREQ_RCVD), false },
	{ ST(MRA_REP_RCVD), S_ABORT, DDPS_CM_REJ, QUIET, ST(TIMEWAIT), true },
	{ ST(MRA_REP_RCVD), S_RX_REQ, NONE, QUIET, ST(MRA_REP_RCVD), true },
	{ ST(ESTABLISHED), S_RX_RTU, NONE, QUIET, ST(ESTABLISHED), false },
	{ ST(ESTABLISHED), S_RX_REP, NONE, QUIET, ST(ESTABLISHED), false },
	{ ST(ESTABLISHED), S_RX_REQ, NONE, QUIET, ST(ESTABLISHED), false },
	{ ST(ESTABLISHED), S_DISCONNECT, DDPS_CM_DREQ, QUIET, ST(DREQ_SENT), true },
	{ ST(ESTABLISHED), S_RX_DREQ, NONE, EV(RX_DREQ), ST(DREQ_RCVD), false },
	{ ST(DREQ_SENT), S_TIMER, DDPS_CM_DREQ, QUIET, ST(DREQ_SENT), true },
	{ ST(DREQ_SENT), S_RX_REQ, NONE, QUIET, ST(DREQ_SENT), true },
	{ ST(DREQ_RCVD), S_RX_REQ, NONE, QUIET, ST(DREQ_RCVD), false },
	{ ST(TIMEWAIT), S_RX_REQ, DDPS_CM_REJ, QUIET, ST(TIMEWAIT), true },
	{ ST(TIMEWAIT), S_RX_DREQ, DDPS_CM_DREP, QUIET, ST(TIMEWAIT), true },
	{ ST(TIMEWAIT), S_TIMER, NONE, EV(T_END), ST(IDLE), false },
};

static void walk_sm_rows(const struct row *row, size_t n, bool active)
{
	for (size_t i = 0; i < n; i++, row++) {
		struct cm_rig r;

		cm_rig_init(&r);
		cm_rig_reach(&r, row->from, active);
		cr_assert_eq(cm_rig_apply(&r, row->what), 0, "row %zu", i);
		if (row->sends == NONE) {
			cr_expect_eq(r.o.n_send, 0, "row %zu", i);
		} else {
			cr_assert_eq(r.o.n_send, 1, "row %zu", i);
			cr_expect_eq(cm_rig_sent(&r, 0).hdr.attr_id, row->sends, "row %zu", i);
			cr_expect_eq(r.o.send[0].to, FROM);
		}
		cr_assert_eq(r.o.n_report, row->tells != QUIET, "row %zu", i);
		if (row->tells != QUIET) {
			cr_expect_eq(r.o.report[0].ev, row->tells, "row %zu", i);
			cr_expect_eq(r.o.report[0].state, row->to, "row %zu", i);
			cr_expect_eq(r.o.report[0].id, r.id);
			cr_expect_eq(r.o.report[0].user, &r);
		}
		cr_expect_eq(ddps_cm_state(r.cm, r.id), row->to, "row %zu: %s", i,
			     ddps_cm_state_name(ddps_cm_state(r.cm, r.id)));
		if (row->what != S_RX_REP_ID_USED)
			cr_expect_eq(ddps_cm_deadline(r.cm) != DDPS_CM_NEVER, row->timer, "row %zu",
				     i);
		cm_rig_fini(&r);
	}
}

Test(ipoib_cm_sm, every_row_of_the_active_tables, .description = "4755-3.2-1 4755-3.2-4")
{
	walk_sm_rows(active_rows, sizeof(active_rows) / sizeof(active_rows[0]), true);
}

Test(ipoib_cm_sm, every_row_of_the_passive_tables, .description = "4755-3.2-1 4755-3.2-4")
{
	walk_sm_rows(passive_rows, sizeof(passive_rows) / sizeof(passive_rows[0]), false);
}

/* Calls that a state does not allow are refused and change nothing. */
Test(ipoib_cm_sm, calls_out_of_place_are_refused)
{
	static const enum stimulus calls[] = { S_REPLY,	   S_READY, S_REJECT, S_DELAY,	   S_ABORT,
					       S_WITHDRAW, S_DATA,  S_CLOSED, S_DISCONNECT };
	static const uint16_t allowed[DDPS_CM_NSTATE] = {
		/* bits in the order above; from the tables, not from the code */
		[ST(REQ_SENT)] = 1 << 4 | 1 << 5,
		[ST(MRA_REQ_RCVD)] = 1 << 4 | 1 << 5,
		[ST(REP_RCVD)] = 1 << 1 | 1 << 2 | 1 << 3,
		[ST(MRA_REP_SENT)] = 1 << 1 | 1 << 2,
		[ST(REQ_RCVD)] = 1 << 0 | 1 << 2 | 1 << 3,
		[ST(MRA_REQ_SENT)] = 1 << 0 | 1 << 2,
		[ST(REP_SENT)] = 1 << 4 | 1 << 6,
		[ST(MRA_REP_RCVD)] = 1 << 4 | 1 << 6,
		[ST(ESTABLISHED)] = 1 << 8,
		[ST(DREQ_RCVD)] = 1 << 7,
	};

	for (unsigned s = ST(REQ_SENT); s < DDPS_CM_NSTATE; s++)
		for (unsigned i = 0; i < 9; i++) {
			struct cm_rig r;

			cm_rig_init(&r);
			cm_rig_reach(&r, (enum ddps_cm_state)s,
				     s <= ST(WITHDRAWN) || s == ST(TIMEWAIT));
			cr_expect_eq(cm_rig_apply(&r, calls[i]),
				     allowed[s] & 1 << i ? 0 : DDPS_E_STATE, "%s, call %u",
				     ddps_cm_state_name((enum ddps_cm_state)s), i);
			if (!(allowed[s] & 1 << i)) {
				cr_expect_eq(ddps_cm_state(r.cm, r.id), s);
				cr_expect(!r.o.n_send && !r.o.n_report);
			}
			cm_rig_fini(&r);
		}
}

Test(ipoib_cm_sm, calls_about_no_connection)
{
	struct cm_rig r;

	cm_rig_init(&r);
	for (enum stimulus s = S_REPLY; s <= S_DATA; s++)
		cr_expect_eq(cm_rig_apply(&r, s), DDPS_E_INVAL);
	cr_expect_eq(ddps_cm_data_seen(r.cm, 5), DDPS_E_INVAL);
	cr_expect_eq(ddps_cm_tick(r.cm, r.now, &r.o), 0);
	cm_rig_fini(&r);
}

Test(ipoib_cm_sm, states_and_events_have_names)
{
	cr_expect_str_eq(ddps_cm_state_name(ST(IDLE)), "IDLE");
	cr_expect_str_eq(ddps_cm_state_name(ST(TIMEWAIT)), "TIMEWAIT");
	cr_expect_str_eq(ddps_cm_event_name(EV(CONNECT)), "CONNECT");
	cr_expect_str_eq(ddps_cm_event_name(EV(T_END_DATA)), "T_END_DATA");
}

/* ---- messages that have a connection's IDs, but do not come from the port of its peer ---- */

#define LEVEL (5u << 16) /* a service level, next to the LID */

static struct cm_rig r;

static void init(void)
{
	cm_rig_init(&r);
	r.cm->port_bits = UINT16_MAX;
}

static void fini(void)
{
	cm_rig_fini(&r);
}

static void rx_from(ddps_cm_addr from, const struct ddps_cm_mad *m)
{
	uint8_t octets[256];

	cr_assert_eq(ddps_cm_mad_encode(octets, m), 0);
	cr_assert_eq(ddps_cm_rx(r.cm, octets, 256, from, r.now, &r.o), 0);
}

/* A connection that the peer has asked for, established. */
static void establish_ipoib_cm_stray(void)
{
	struct ddps_cm_mad m = cm_rig_peer_req(&r);

	cm_rig_rx(&r, &m);
	cr_assert_eq(r.o.n_report, 1);
	r.id = r.o.report[0].id;
	cr_assert_eq(cm_rig_reply(&r), 0);
	m = cm_rig_peer_rtu(&r);
	cm_rig_rx(&r, &m);
	cr_assert_eq(ddps_cm_state(r.cm, r.id), ST(ESTABLISHED));
}

/* From elsewhere it changes nothing, and says of which connection it was. */
static void expect_stray(const struct ddps_cm_mad *m, unsigned n_send, const char *name)
{
	const enum ddps_cm_state was = ddps_cm_state(r.cm, r.id);
	const uint64_t unmatched = ddps_cm_stats(r.cm)->unmatched;

	rx_from(FROM + 1, m);
	cr_expect_eq(ddps_cm_state(r.cm, r.id), was, "%s", name);
	cr_expect_eq(r.o.n_report, 0, "%s", name);
	cr_expect_eq(r.o.n_send, n_send, "%s", name);
	cr_expect_eq(r.cm->stray, r.id, "%s", name);
	cr_expect_eq(ddps_cm_stats(r.cm)->unmatched, unmatched + !n_send, "%s", name);
}

#define STRAY(message)                                                                             \
	do {                                                                                       \
		struct ddps_cm_mad said = message;                                                 \
		expect_stray(&said, 0, #message);                                                  \
	} while (0)

Test(ipoib_cm_stray, contact_35_an_established_connection, .init = init, .fini = fini)
{
	struct ddps_cm_mad m;

	establish_ipoib_cm_stray();
	STRAY(cm_rig_peer_dreq(&r));
	STRAY(cm_rig_peer_gave_up());
	STRAY(cm_rig_peer_rej(&r, DDPS_CM_REJ_CONSUMER, DDPS_CM_MSG_OTHER));
	STRAY(cm_rig_peer_rej(&r, DDPS_CM_REJ_STALE, DDPS_CM_MSG_REP));
	STRAY(cm_rig_peer_rtu(&r));
	STRAY(cm_rig_peer_drep(&r));
	STRAY(cm_rig_peer_req(&r));
	m = cm_rig_peer_req(
		&r); /* in the name of the peer's queue pair, which it would take away */
	m.u.req.local_id++;
	expect_stray(&m, 1, "another REQ");
	cr_expect_eq(cm_rig_sent(&r, 0).u.rej.reason, DDPS_CM_REJ_STALE);
	m = cm_rig_peer_dreq(&r);
	rx_from(FROM | LEVEL, &m);
	cr_expect_eq(r.cm->stray, 0);
	cr_expect_eq(ddps_cm_state(r.cm, r.id), ST(DREQ_RCVD));
}

Test(ipoib_cm_stray, contact_35_a_request_of_ours, .init = init, .fini = fini)
{
	struct ddps_cm_mad m;

	cm_rig_send_connect(&r);
	cr_assert_eq(ddps_cm_state(r.cm, r.id), ST(REQ_SENT));
	STRAY(cm_rig_peer_rej(&r, DDPS_CM_REJ_CONSUMER, DDPS_CM_MSG_REQ));
	STRAY(cm_rig_peer_mra(&r, DDPS_CM_MSG_REQ));
	STRAY(cm_rig_peer_rep(&r));
	m = cm_rig_peer_rep(&r);
	rx_from(r.o.n_send ? r.o.send[0].to : ddps_cm_conn_find(r.cm, r.id)->addr, &m);
	cr_expect_eq(ddps_cm_state(r.cm, r.id), ST(REP_RCVD));
}

/* A REP of one peer with GUID and queue pair of another: its own is refused, the other's goes on. */
Test(ipoib_cm_stray, contact_35_a_rep_in_the_name_of_another, .init = init, .fini = fini)
{
	struct ddps_cm_connect c = { .packet_life = LIFE, .to = FROM + 1 };
	struct ddps_cm_mad m;
	uint32_t id;

	establish_ipoib_cm_stray();
	cr_assert_eq(ddps_cm_connect(r.cm, &c, r.now, &id, &r.o), 0);
	m = cm_rig_peer_rep(&r);
	m.u.rep.local_id++;
	m.u.rep.remote_id = id;
	rx_from(FROM + 1, &m);
	cr_expect_eq(cm_rig_sent(&r, 0).hdr.attr_id, DDPS_CM_REJ);
	cr_expect_eq(ddps_cm_state(r.cm, r.id), ST(ESTABLISHED));
}

/* Whoever has not said which bits tell ports apart gets what comes from anywhere. */
Test(ipoib_cm_stray, addresses_without_meaning, .init = init, .fini = fini)
{
	struct ddps_cm_mad m;

	r.cm->port_bits = 0;
	establish_ipoib_cm_stray();
	m = cm_rig_peer_dreq(&r);
	rx_from(FROM + 1, &m);
	cr_expect_eq(ddps_cm_state(r.cm, r.id), ST(DREQ_RCVD));
}
