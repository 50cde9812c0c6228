/* SPDX-License-Identifier: BSD-2-Clause */
/* What a peer of the CM agent can take, and ask for, and octets from anywhere. */
#include <criterion/criterion.h>
#include <string.h>
#include "ipoib_cm/cm/cm_own.h"
#include "ipoib_cm_fixture.h"

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
