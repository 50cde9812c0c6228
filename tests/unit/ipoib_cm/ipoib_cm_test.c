/* SPDX-License-Identifier: BSD-2-Clause */
/* What the CM agent sends, how long it waits, and what it reports to its caller. */
#include <criterion/criterion.h>
#include <string.h>
#include "ipoib_cm/cm/cm_own.h"
#include "ipoib_cm_fixture.h"

Test(ipoib_cm, req_is_resent_unchanged_as_often_as_it_says)
{
	struct cm_rig r;
	uint8_t first[256];
	unsigned n = 1;

	cm_rig_init(&r);
	r.req_retries = 15;
	cm_rig_send_connect(&r);
	memcpy(first, r.o.send[0].mad, 256);
	cr_expect_eq(cm_rig_sent(&r, 0).hdr.tid, (uint64_t)5 << 32 | r.id);
	cr_expect_eq(cm_rig_sent(&r, 0).u.req.ca_guid, OUR_GUID);
	for (;; n++) {
		uint64_t was = r.now;

		cm_rig_tick(&r);
		/* twice the packet lifetime and the peer's response time */
		cr_expect_eq(r.now - was, 2 * ddps_cm_time_ns(LIFE) + ddps_cm_time_ns(20));
		if (!r.o.n_send)
			break;
		cr_expect_arr_eq(r.o.send[0].mad, first, 256);
	}
	cr_expect_eq(n, 16);
	cm_rig_fini(&r);
}

Test(ipoib_cm, rep_is_resent_as_the_req_says)
{
	struct cm_rig r;
	unsigned n = 1;

	cm_rig_init(&r);
	cm_rig_reach(&r, ST(REP_SENT), false);
	for (;; n++) {
		uint64_t was = r.now;

		cm_rig_tick(&r);
		cr_expect_eq(r.now - was, ddps_cm_time_ns(20));
		if (!r.o.n_send)
			break;
	}
	cr_expect_eq(n, 3);
	cm_rig_fini(&r);
}

Test(ipoib_cm, no_retries_means_one_transmission)
{
	struct cm_rig r;

	cm_rig_init(&r);
	r.req_retries = 0;
	cm_rig_send_connect(&r);
	cm_rig_tick(&r);
	cr_expect_eq(r.o.n_send, 0);
	cr_expect_eq(r.o.report[0].ev, EV(T_END));
	cm_rig_fini(&r);
}

Test(ipoib_cm, mra_gives_more_time_for_all_further_resends)
{
	uint64_t wait = ddps_cm_time_ns(22) + ddps_cm_time_ns(LIFE + 1), was;
	struct cm_rig r;

	cm_rig_init(&r);
	cm_rig_reach(&r, ST(MRA_REQ_RCVD), true);
	for (unsigned i = 0; i < 3; i++) {
		was = r.now;
		cm_rig_tick(&r);
		cr_expect_eq(r.now - was, wait);
	}
	cr_expect_eq(ddps_cm_state(r.cm, r.id), ST(IDLE));
	cm_rig_fini(&r);

	cm_rig_init(&r);
	cm_rig_reach(&r, ST(MRA_REP_RCVD), false);
	was = r.now;
	cm_rig_tick(&r);
	cr_expect_eq(r.now - was, wait); /* lifetime: the REQ's ACK timeout less one */
	cm_rig_fini(&r);
}

Test(ipoib_cm, timewait_and_linger_last_as_long_as_they_must)
{
	struct cm_rig r;
	uint64_t was;

	cm_rig_init(&r);
	cm_rig_reach(&r, ST(TIMEWAIT), true);
	was = r.now;
	cm_rig_tick(&r);
	cr_expect_eq(r.now - was, ddps_cm_time_ns(19));
	cm_rig_fini(&r);

	cm_rig_init(&r);
	cm_rig_reach(&r, ST(WITHDRAWN), true);
	was = r.now;
	cm_rig_tick(&r);
	/* the REP could come to the first REQ and be resent twice */
	cr_expect_eq(r.now - was, 3 * ddps_cm_time_ns(20) + 2 * ddps_cm_time_ns(LIFE));
	cm_rig_fini(&r);
}

Test(ipoib_cm, answers_carry_ids_tid_and_private_data,
     .description = "4755-3.2-10 4755-3.2-11 4755-6-1")
{
	struct ddps_cm_mad m;
	struct cm_rig r;

	cm_rig_init(&r);
	cm_rig_reach(&r, ST(REP_SENT), false);
	m = cm_rig_sent(&r, 0);
	cr_expect_eq(m.hdr.tid, PEER_TID);
	cr_expect(m.u.rep.local_id == r.id && m.u.rep.remote_id == PEER_ID);
	cr_expect_eq(m.u.rep.ca_guid, OUR_GUID);
	cm_rig_fini(&r);

	cm_rig_init(&r);
	cm_rig_reach(&r, ST(ESTABLISHED), true);
	m = cm_rig_sent(&r, 0);
	cr_expect_eq(m.hdr.tid, (uint64_t)5 << 32 | r.id);
	cr_expect(m.u.rtu.local_id == r.id && m.u.rtu.remote_id == PEER_ID);
	cr_expect_arr_eq(m.u.rtu.private_data, cm_rig_priv, 8);
	cm_rig_fini(&r);

	cm_rig_init(&r);
	cm_rig_reach(&r, ST(MRA_REQ_SENT), false);
	m = cm_rig_sent(&r, 0);
	cr_expect_eq(m.hdr.tid, PEER_TID);
	cr_expect(m.u.mra.msg == DDPS_CM_MSG_REQ && m.u.mra.service_timeout == 22);
	cr_expect_arr_eq(m.u.mra.private_data, cm_rig_priv, 8);
	cm_rig_fini(&r);
}

Test(ipoib_cm, dreq_names_the_peers_qpn_and_drep_echoes_its_tid)
{
	static const uint8_t zero[8];
	struct ddps_cm_mad m;
	struct cm_rig r;

	cm_rig_init(&r);
	cm_rig_reach(&r, ST(DREQ_SENT), false);
	m = cm_rig_sent(&r, 0);
	/* another transaction than that of REQ and RTU, which may still be on their way */
	cr_expect_eq(m.hdr.tid, (uint64_t)5 << 32 | (r.id ^ 0x80000000u));
	cr_expect_eq(m.u.dreq.remote_qpn, PEER_QPN);
	cr_expect_arr_eq(m.u.dreq.private_data, zero, 8);
	cm_rig_fini(&r);

	cm_rig_init(&r);
	cm_rig_reach(&r, ST(TIMEWAIT), true);
	m = cm_rig_sent(&r, 0);
	cr_expect_eq(m.hdr.tid, 0xd0d0);
	cr_expect(m.u.drep.local_id == r.id && m.u.drep.remote_id == PEER_ID);
	cm_rig_fini(&r);
}

Test(ipoib_cm, rtu_may_go_out_with_other_private_data)
{
	static const uint8_t zero[8];
	struct cm_rig r;

	cm_rig_init(&r);
	cm_rig_reach(&r, ST(REP_RCVD), true);
	cr_assert_eq(ddps_cm_ready(r.cm, r.id, zero, r.now, &r.o), 0);
	cr_expect_arr_eq(cm_rig_sent(&r, 0).u.rtu.private_data, zero, 8);
	cm_rig_fini(&r);
}

Test(ipoib_cm, listeners_are_unique)
{
	const struct ddps_cm_listener l = { .service_id = SID };
	struct cm_rig r;

	cm_rig_init(&r);
	cr_expect_eq(ddps_cm_listen(r.cm, &l), DDPS_E_BUSY);
	ddps_cm_unlisten(r.cm, SID + 1);
	ddps_cm_unlisten(r.cm, SID);
	cr_expect_eq(ddps_cm_listen(r.cm, &l), 0);
	cm_rig_fini(&r);
}

Test(ipoib_cm, value_that_does_not_fit_leaves_nothing_behind)
{
	struct ddps_cm_connect c = { .req.qpn = 0x1000000 };
	struct ddps_cm_rep rep = { .qpn = 0x1000000 };
	struct cm_rig r;
	uint32_t id;

	cm_rig_init(&r);
	cr_expect_eq(ddps_cm_connect(r.cm, &c, r.now, &id, &r.o), DDPS_E_INVAL);
	cr_expect_eq(ddps_cm_deadline(r.cm), DDPS_CM_NEVER);
	cm_rig_reach(&r, ST(REQ_RCVD), false);
	cr_expect_eq(ddps_cm_reply(r.cm, r.id, &rep, r.now, &r.o), DDPS_E_INVAL);
	cr_expect_eq(ddps_cm_state(r.cm, r.id), ST(REQ_RCVD));
	cr_expect_eq(cm_rig_reply(&r), 0);
	cm_rig_fini(&r);
}

Test(ipoib_cm, what_is_not_handled_is_said_and_counted)
{
	static const uint16_t attr[] = { DDPS_CM_SIDR_REQ, DDPS_CM_SIDR_REP, DDPS_CM_LAP,
					 DDPS_CM_APR };
	struct ddps_cm_mad m;
	uint8_t octets[256];
	struct cm_rig r;

	cm_rig_init(&r);
	for (unsigned i = 0; i < 4; i++) {
		ddps_cm_mad_init(&m, attr[i], 1);
		cr_assert_eq(ddps_cm_mad_encode(octets, &m), 0);
		cr_expect_eq(ddps_cm_rx(r.cm, octets, 256, FROM, r.now, &r.o), DDPS_E_UNSUPPORTED);
	}
	cr_expect_eq(ddps_cm_rx(r.cm, octets, 255, FROM, r.now, &r.o), DDPS_E_TRUNCATED);
	cr_expect_eq(ddps_cm_stats(r.cm)->unsupported, 4);
	cr_expect_eq(ddps_cm_stats(r.cm)->malformed, 1);
	cm_rig_fini(&r);
}

/* ---- what a peer of the CM agent can take, and ask for, and octets from anywhere ---- */

Test(ipoib_cm, connections_are_limited)
{
	struct cm_rig r;
	struct ddps_cm_connect c = { .packet_life = LIFE };
	struct ddps_cm_mad m;
	uint32_t id;

	cm_rig_init(&r);
	for (unsigned i = 0; i < 8; i++) {
		m = cm_rig_peer_req(&r);
		m.u.req.local_id += i;
		m.u.req.qpn += i;
		cm_rig_rx(&r, &m);
		cr_expect_eq(r.o.n_report, 1);
	}
	m.u.req.local_id++;
	m.u.req.qpn++;
	cm_rig_rx(&r, &m);
	cr_expect_eq(cm_rig_sent(&r, 0).u.rej.reason, DDPS_CM_REJ_NO_RESOURCES);
	cr_expect_eq(ddps_cm_connect(r.cm, &c, r.now, &id, &r.o), DDPS_E_LIMIT);
	cm_rig_fini(&r);
}

/* A peer can end as many as it wants, and ask for hours of timewait for each. */
Test(ipoib_cm, what_is_over_goes_for_what_is_new)
{
	struct ddps_cm_connect c = { .packet_life = LIFE };
	struct ddps_cm_mad m, req;
	struct cm_rig r;
	uint32_t id;

	cm_rig_init(&r);
	for (unsigned i = 0; i < 20; i++) {
		req = cm_rig_peer_req(&r);
		req.u.req.local_id += i;
		req.u.req.qpn += i;
		req.u.req.primary.ack_timeout = 31;
		cm_rig_rx(&r, &req);
		cr_assert_eq(r.o.n_report, 1, "%u", i);
		cr_assert_eq(r.o.report[0].ev, DDPS_CM_EV_RX_REQ, "%u", i);
		id = r.o.report[0].id;
		cr_assert_eq(ddps_cm_reply(r.cm, id, &(struct ddps_cm_rep){ .qpn = OUR_QPN }, r.now,
					   &r.o),
			     0);
		m = cm_rig_peer_rej(&r, DDPS_CM_REJ_STALE, DDPS_CM_MSG_REP);
		m.u.rej.local_id = req.u.req.local_id;
		m.u.rej.remote_id = id;
		cm_rig_rx(&r, &m);
		cr_assert_eq(ddps_cm_state(r.cm, id), DDPS_CM_ST_TIMEWAIT);
	}
	cr_expect_eq(ddps_cm_connect(r.cm, &c, r.now, &id, &r.o), 0);
	cr_expect_leq(ddps_cm_deadline(r.cm), r.now + ddps_cm_time_ns(21));
	cm_rig_fini(&r);
}

static uint32_t withdrawn(struct cm_rig *r)
{
	const struct ddps_cm_connect c = { .packet_life = LIFE };
	uint32_t id;

	cr_assert_eq(ddps_cm_connect(r->cm, &c, r->now, &id, &r->o), 0);
	cr_assert_eq(ddps_cm_withdraw(r->cm, id, r->now, &r->o), 0);
	cr_assert_eq(ddps_cm_state(r->cm, id), DDPS_CM_ST_WITHDRAWN);
	return id;
}

/* A peer that asks while a REQ is on its way to it makes that one go, as often as it wants. */
Test(ipoib_cm, what_was_withdrawn_goes_for_what_is_new)
{
	uint32_t first = 0, over, last = 0;
	struct cm_rig r;

	cm_rig_init(&r);
	for (unsigned i = 0; i < 7; i++) {
		last = withdrawn(&r);
		first = first ? first : last;
	}
	cm_rig_reach(&r, ST(TIMEWAIT), true);
	over = r.id;
	cr_assert_eq(ddps_cm_state(r.cm, over), DDPS_CM_ST_TIMEWAIT);
	withdrawn(&r);
	cr_expect_eq(ddps_cm_state(r.cm, over), DDPS_CM_ST_IDLE, "one in timewait goes before");
	cr_expect_eq(ddps_cm_state(r.cm, first), DDPS_CM_ST_WITHDRAWN);
	withdrawn(&r);
	cr_expect_eq(ddps_cm_state(r.cm, first), DDPS_CM_ST_IDLE, "and then the oldest");
	cr_expect_eq(ddps_cm_state(r.cm, last), DDPS_CM_ST_WITHDRAWN);
	cm_rig_fini(&r);
}

/* Of what a peer can ask for in five bits we wait minutes, not hours. */
Test(ipoib_cm, a_peer_cannot_ask_for_hours)
{
	struct ddps_cm_mad m;
	struct cm_rig r;

	cm_rig_init(&r);
	m = cm_rig_peer_req(&r);
	m.u.req.local_cm_timeout = 31;
	cm_rig_rx(&r, &m);
	r.id = r.o.report[0].id;
	cr_assert_eq(
		ddps_cm_reply(r.cm, r.id, &(struct ddps_cm_rep){ .qpn = OUR_QPN }, r.now, &r.o), 0);
	cr_expect_eq(ddps_cm_deadline(r.cm) - r.now, ddps_cm_time_ns(21));
	m = cm_rig_peer_mra(&r, DDPS_CM_MSG_REP);
	m.u.mra.service_timeout = 31;
	cm_rig_rx(&r, &m);
	cr_expect_leq(ddps_cm_deadline(r.cm) - r.now, 2 * ddps_cm_time_ns(24));
	cm_rig_fini(&r);
}

static uint32_t draw_ipoib_cm_bound_random(uint32_t *x)
{
	*x ^= *x << 13;
	*x ^= *x >> 17;
	*x ^= *x << 5;
	return *x;
}

/* Broken messages of every kind, at every state: none may crash or change what it is not. */
Test(ipoib_cm, random_flips_never_crash_the_agent)
{
	uint32_t x = 0x9e3779b9;

	for (unsigned round = 0; round < 4000; round++) {
		struct cm_rig r;
		unsigned s = ST(REQ_SENT) + round % (DDPS_CM_NSTATE - 1);

		cm_rig_init(&r);
		cm_rig_reach(&r, (enum ddps_cm_state)s,
			     s <= ST(WITHDRAWN) || (s >= ST(ESTABLISHED) && round & 16));
		for (unsigned i = 0; i < 8; i++) {
			struct ddps_cm_mad m[] = {
				cm_rig_peer_req(&r),	cm_rig_peer_rep(&r),
				cm_rig_peer_mra(&r, 0), cm_rig_peer_rej(&r, 28, 1),
				cm_rig_peer_rtu(&r),	cm_rig_peer_dreq(&r),
				cm_rig_peer_drep(&r),	cm_rig_peer_gave_up()
			};
			uint8_t octets[256];

			cr_assert_eq(ddps_cm_mad_encode(octets, &m[i]), 0);
			for (unsigned flips = draw_ipoib_cm_bound_random(&x) % 3; flips; flips--)
				octets[draw_ipoib_cm_bound_random(&x) % 64] ^=
					(uint8_t)(1 << draw_ipoib_cm_bound_random(&x) % 8);
			ddps_cm_rx(r.cm, octets, 256, FROM, r.now, &r.o);
			cr_assert_leq(r.o.n_send, 2);
			cr_assert_leq(r.o.n_report, 1);
		}
		cm_rig_fini(&r);
	}
}
