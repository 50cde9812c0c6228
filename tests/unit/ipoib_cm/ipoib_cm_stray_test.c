/* SPDX-License-Identifier: BSD-2-Clause */
/* Messages that have a connection's IDs, but do not come from the port of its peer. */
#include <criterion/criterion.h>
#include <string.h>
#include "ipoib_cm/cm/cm_conn.h"
#include "ipoib_cm/cm/cm_own.h"
#include "ipoib_cm_fixture.h"

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
