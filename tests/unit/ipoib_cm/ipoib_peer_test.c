/* SPDX-License-Identifier: BSD-2-Clause */
/* Which connections to a neighbour there are: the event tables of connecting and crossing. */
#include <criterion/criterion.h>
#include <string.h>
#include "ipoib_cm/cm/admit.h"
#include "ipoib_cm/cm/peer.h"

#define DO(name)  DDPS_IPOIB_DO_##name
#define OWN(name) DDPS_IPOIB_OWN_##name
#define EV(name)  DDPS_IPOIB_EV_##name
#define OWN_ID	  0x0a
#define IN_ID	  0x1b

static const struct ddps_ipoib_policy one = { .backoff_ns = 100, .long_ns = 1000, .soon_ns = 10 };
static const struct ddps_ipoib_policy many = { .many = true, .backoff_ns = 100 };

static struct ddps_ipoib_peer peer(uint32_t own_qpn, uint32_t remote_qpn)
{
	const struct ddps_ipoib_lladdr a = { .qpn = own_qpn }, b = { .qpn = remote_qpn };
	struct ddps_ipoib_peer p;

	ddps_ipoib_peer_init(&p, &a, &b, DDPS_IPOIB_SID_LINUX);
	return p;
}

static struct ddps_ipoib_peer larger(void)
{
	return peer(2, 1);
}

static struct ddps_ipoib_peer smaller(void)
{
	return peer(1, 2);
}

static struct ddps_ipoib_peer_out out;

static unsigned feed_ipoib_peer(struct ddps_ipoib_peer *p, const struct ddps_ipoib_policy *policy,
				struct ddps_ipoib_peer_in in)
{
	ddps_ipoib_peer_step(p, policy, &in, &out);
	if (out.acts & DO(CONNECT))
		p->own_id = OWN_ID;
	return out.acts;
}

static unsigned make_ipoib_peer_traffic(struct ddps_ipoib_peer *p, uint64_t now)
{
	return feed_ipoib_peer(p, &one,
			       (struct ddps_ipoib_peer_in){ .ev = EV(TRAFFIC), .now = now });
}

static unsigned send_ipoib_peer_req(struct ddps_ipoib_peer *p, uint32_t id)
{
	return feed_ipoib_peer(p, &one, (struct ddps_ipoib_peer_in){ .ev = EV(REQ), .id = id });
}

static unsigned rtu(struct ddps_ipoib_peer *p, uint32_t id, bool two_way)
{
	return feed_ipoib_peer(
		p, &one,
		(struct ddps_ipoib_peer_in){ .ev = EV(RTU), .id = id, .two_way = two_way });
}

static unsigned rej(struct ddps_ipoib_peer *p, uint16_t reason, uint64_t now)
{
	return feed_ipoib_peer(p, &one,
			       (struct ddps_ipoib_peer_in){
				       .ev = EV(REJ), .id = OWN_ID, .reason = reason, .now = now });
}

static unsigned tell_ipoib_peer(struct ddps_ipoib_peer *p, enum ddps_ipoib_peer_event ev,
				uint32_t id)
{
	return feed_ipoib_peer(p, &one, (struct ddps_ipoib_peer_in){ .ev = ev, .id = id });
}

static bool is_ipoib_peer_usable(const struct ddps_ipoib_peer *p, uint32_t want)
{
	uint32_t id = 0;

	return ddps_ipoib_peer_usable(p, &id) && id == want;
}

static bool unusable(const struct ddps_ipoib_peer *p)
{
	uint32_t id;

	return !ddps_ipoib_peer_usable(p, &id);
}

/* ---- Connecting ---- */

Test(ipoib_peer, traffic_connects_once, .description = "4755-2.3-1 4755-2.3-6 4755-3.2-1")
{
	struct ddps_ipoib_peer p = larger();

	cr_expect(unusable(&p));
	cr_expect_eq(make_ipoib_peer_traffic(&p, 0), DO(CONNECT));
	cr_expect_eq(p.own, OWN(REQ_OUT));
	cr_expect_eq(make_ipoib_peer_traffic(&p, 0), 0);
	cr_expect_eq(tell_ipoib_peer(&p, EV(REP), OWN_ID), DO(READY));
	cr_expect(is_ipoib_peer_usable(&p, OWN_ID));
	cr_expect_eq(make_ipoib_peer_traffic(&p, 0), 0);
	cr_expect_eq(tell_ipoib_peer(&p, EV(DOWN), OWN_ID), 0);
	cr_expect(unusable(&p));
	cr_expect_eq(make_ipoib_peer_traffic(&p, 0), DO(CONNECT));
}

Test(ipoib_peer, pending_inbound_connection_is_waited_for)
{
	struct ddps_ipoib_peer p = larger();

	cr_expect_eq(send_ipoib_peer_req(&p, IN_ID), DO(ACCEPT));
	cr_expect_eq(make_ipoib_peer_traffic(&p, 0), 0);
	cr_expect_eq(tell_ipoib_peer(&p, EV(DOWN), IN_ID), 0);
	cr_expect_eq(make_ipoib_peer_traffic(&p, 0), DO(CONNECT));
}

Test(ipoib_peer, two_way_inbound_connection_serves_both_ways)
{
	struct ddps_ipoib_peer p = smaller();

	send_ipoib_peer_req(&p, IN_ID);
	cr_expect_eq(rtu(&p, IN_ID, true), 0);
	cr_expect(is_ipoib_peer_usable(&p, IN_ID));
	cr_expect_eq(make_ipoib_peer_traffic(&p, 0), 0);
	cr_expect(ddps_ipoib_peer_knows(&p, IN_ID));
	tell_ipoib_peer(&p, EV(DOWN), IN_ID);
	cr_expect(!ddps_ipoib_peer_knows(&p, IN_ID));
	cr_expect_eq(make_ipoib_peer_traffic(&p, 0), DO(CONNECT));
}

Test(ipoib_peer, one_way_inbound_connection_is_never_sent_on)
{
	struct ddps_ipoib_peer p = smaller();

	send_ipoib_peer_req(&p, IN_ID);
	cr_expect_eq(rtu(&p, IN_ID, false), 0);
	cr_expect(unusable(&p));
	cr_expect_eq(make_ipoib_peer_traffic(&p, 0), DO(CONNECT));
	cr_expect_eq(tell_ipoib_peer(&p, EV(REP), OWN_ID), DO(READY));
	cr_expect(is_ipoib_peer_usable(&p, OWN_ID));
	cr_expect(p.in_up);
}

struct failure {
	enum ddps_ipoib_peer_event ev;
	uint16_t reason;
	unsigned acts;
	uint64_t retry_after;
};

Test(ipoib_peer, failed_attempt_waits_before_the_next)
{
	static const struct failure row[] = {
		{ EV(REJ), DDPS_CM_REJ_CONSUMER, 0, 100 },
		{ EV(REJ), DDPS_CM_REJ_STALE, 0, 10 },
		{ EV(REJ), DDPS_CM_REJ_NO_QP, 0, 1000 },
		{ EV(REJ), DDPS_CM_REJ_NO_RESOURCES, 0, 1000 },
		{ EV(REJ), DDPS_CM_REJ_TRANSPORT, DO(RESOLVE), 100 },
		{ EV(REJ), 999, DO(RESOLVE), 100 },
		{ EV(TIMEOUT), 0, DO(RESOLVE), 100 },
		{ EV(REP_BAD), 0, DO(REJECT_REP), 100 },
	};

	for (size_t i = 0; i < sizeof(row) / sizeof(row[0]); i++) {
		struct ddps_ipoib_peer p = larger();

		make_ipoib_peer_traffic(&p, 0);
		cr_expect_eq(feed_ipoib_peer(&p, &one,
					     (struct ddps_ipoib_peer_in){ .ev = row[i].ev,
									  .id = OWN_ID,
									  .reason = row[i].reason,
									  .now = 5000 }),
			     row[i].acts, "row %zu", i);
		cr_expect_eq(p.own, OWN(FAILED), "row %zu", i);
		if (row[i].ev == EV(REP_BAD))
			cr_expect_eq(out.reason, DDPS_CM_REJ_CONSUMER);
		cr_expect_eq(make_ipoib_peer_traffic(&p, 5000 + row[i].retry_after - 1), 0,
			     "row %zu", i);
		cr_expect_eq(make_ipoib_peer_traffic(&p, 5000 + row[i].retry_after), DO(CONNECT),
			     "row %zu", i);
	}
}

Test(ipoib_peer, unknown_service_id_tries_the_other_form_once, .description = "4755-3.5-1")
{
	struct ddps_ipoib_peer p = larger();

	make_ipoib_peer_traffic(&p, 0);
	cr_expect_eq(p.form, DDPS_IPOIB_SID_LINUX);
	cr_expect_eq(rej(&p, DDPS_CM_REJ_SERVICE_ID, 0), DO(CONNECT));
	cr_expect_eq(p.form, DDPS_IPOIB_SID_RFC);
	cr_expect_eq(rej(&p, DDPS_CM_REJ_SERVICE_ID, 0), DO(RESOLVE));
	cr_expect_eq(p.own, OWN(FAILED));
	/* next time again both; the one that works is kept */
	cr_expect_eq(make_ipoib_peer_traffic(&p, 100), DO(CONNECT));
	cr_expect_eq(rej(&p, DDPS_CM_REJ_SERVICE_ID, 100), DO(CONNECT));
	cr_expect_eq(p.form, DDPS_IPOIB_SID_LINUX);
	tell_ipoib_peer(&p, EV(REP), OWN_ID);
	tell_ipoib_peer(&p, EV(DOWN), OWN_ID);
	make_ipoib_peer_traffic(&p, 200);
	cr_expect_eq(p.form, DDPS_IPOIB_SID_LINUX);
}

Test(ipoib_peer, stale_connection_is_retried_soon_but_once)
{
	struct ddps_ipoib_peer p = larger();

	make_ipoib_peer_traffic(&p, 0);
	rej(&p, DDPS_CM_REJ_STALE, 0);
	cr_expect_eq(make_ipoib_peer_traffic(&p, 10), DO(CONNECT));
	cr_expect_eq(rej(&p, DDPS_CM_REJ_STALE, 10), DO(RESOLVE));
	cr_expect_eq(make_ipoib_peer_traffic(&p, 20), 0);
	cr_expect_eq(make_ipoib_peer_traffic(&p, 110), DO(CONNECT));
}

Test(ipoib_peer, news_of_an_attempt_that_is_over_changes_nothing)
{
	static const enum ddps_ipoib_peer_event ev[] = { EV(REP),     EV(REP_BAD), EV(REJ),
							 EV(TIMEOUT), EV(DOWN),	   EV(RTU) };

	for (size_t i = 0; i < sizeof(ev) / sizeof(ev[0]); i++) {
		struct ddps_ipoib_peer p = larger(), was;

		make_ipoib_peer_traffic(&p, 0);
		was = p;
		cr_expect_eq(tell_ipoib_peer(&p, ev[i], OWN_ID + 1), 0);
		cr_expect_arr_eq(&p, &was, sizeof(p), "event %zu", i);
	}
}

/* ---- Inbound ---- */

Test(ipoib_peer, inbound_is_accepted_whatever_is_up,
     .description = "4755-3.2-7 4755-3.2-8 4755-3.2-9")
{
	struct ddps_ipoib_peer p = larger();

	make_ipoib_peer_traffic(&p, 0);
	tell_ipoib_peer(&p, EV(REP), OWN_ID);
	cr_expect_eq(send_ipoib_peer_req(&p, IN_ID),
		     DO(ACCEPT)); /* never refused for an own connection */
	rtu(&p, IN_ID, false);
	cr_expect_eq(send_ipoib_peer_req(&p, IN_ID + 1), DO(ACCEPT)); /* the old one may be dead */
}

Test(ipoib_peer, newer_inbound_replaces_the_older_when_it_is_up)
{
	for (unsigned two_way = 0; two_way < 2; two_way++) {
		struct ddps_ipoib_peer p = smaller();

		send_ipoib_peer_req(&p, IN_ID);
		rtu(&p, IN_ID, two_way);
		cr_expect_eq(send_ipoib_peer_req(&p, IN_ID + 1), DO(ACCEPT));
		cr_expect_eq(p.in_id, IN_ID);
		cr_expect_eq(rtu(&p, IN_ID + 1, two_way), DO(CLOSE_IN));
		cr_expect_eq(out.in_id, IN_ID);
		cr_expect_eq(p.in_id, IN_ID + 1);
	}
}

Test(ipoib_peer, several_connections_stay_if_that_is_the_policy, .description = "4755-3.2-9")
{
	struct ddps_ipoib_peer p = larger();

	make_ipoib_peer_traffic(&p, 0);
	tell_ipoib_peer(&p, EV(REP), OWN_ID);
	for (uint32_t i = 0; i < 2; i++) {
		send_ipoib_peer_req(&p, IN_ID + i);
		cr_expect_eq(feed_ipoib_peer(&p, &many,
					     (struct ddps_ipoib_peer_in){ .ev = EV(RTU),
									  .id = IN_ID + i,
									  .two_way = true }),
			     0);
	}
	cr_expect_eq(p.own, OWN(UP));
}

Test(ipoib_peer, pending_connections_are_limited)
{
	struct ddps_ipoib_peer p = smaller();

	for (uint32_t i = 0; i < DDPS_IPOIB_PENDING_MAX; i++)
		cr_expect_eq(send_ipoib_peer_req(&p, IN_ID + i), DO(ACCEPT));
	cr_expect_eq(send_ipoib_peer_req(&p, 0x77), DO(REFUSE));
	cr_expect_eq(out.reason, DDPS_CM_REJ_NO_RESOURCES);
	tell_ipoib_peer(&p, EV(DOWN), IN_ID + 1);
	cr_expect_eq(send_ipoib_peer_req(&p, 0x77), DO(ACCEPT));
}

/* ---- Crossing ---- */

Test(ipoib_peer, smaller_accepts_and_larger_refuses,
     .description = "4755-3.3-1 4755-3.3-3 4755-3.3-4 4755-3.3-5 4755-3.3-6 4755-3.3-9")
{
	struct ddps_ipoib_peer p = smaller(), q = larger();

	make_ipoib_peer_traffic(&p, 0);
	cr_expect_eq(send_ipoib_peer_req(&p, IN_ID), DO(ACCEPT));
	cr_expect_eq(p.own, OWN(REQ_OUT)); /* goes on, and is not taken back */
	make_ipoib_peer_traffic(&q, 0);
	cr_expect_eq(send_ipoib_peer_req(&q, IN_ID), DO(REFUSE));
	cr_expect_eq(out.reason, DDPS_CM_REJ_CONSUMER);
	cr_expect_eq(q.own, OWN(REQ_OUT));
	cr_expect_eq(q.n_pending, 0);
}

Test(ipoib_peer, nobody_connects_to_himself, .description = "4755-3.3-5")
{
	struct ddps_ipoib_peer p = peer(1, 1);

	cr_expect_eq(make_ipoib_peer_traffic(&p, 0), 0);
	cr_expect_eq(send_ipoib_peer_req(&p, IN_ID), DO(REFUSE));
	cr_expect_eq(out.reason, DDPS_CM_REJ_CONSUMER);
}

Test(ipoib_peer, reject_after_accepting_is_the_crossing_and_no_failure)
{
	struct ddps_ipoib_peer p = smaller();

	make_ipoib_peer_traffic(&p, 0);
	send_ipoib_peer_req(&p, IN_ID);
	cr_expect_eq(rej(&p, DDPS_CM_REJ_CONSUMER, 0), 0);
	cr_expect_eq(p.own, OWN(NONE));
	rtu(&p, IN_ID, true);
	cr_expect(is_ipoib_peer_usable(&p, IN_ID));
}

Test(ipoib_peer, reject_before_the_peers_req_ends_with_its_connection)
{
	struct ddps_ipoib_peer p = smaller();

	make_ipoib_peer_traffic(&p, 0);
	rej(&p, DDPS_CM_REJ_CONSUMER, 0);
	cr_expect_eq(p.own, OWN(FAILED));
	cr_expect_eq(send_ipoib_peer_req(&p, IN_ID), DO(ACCEPT));
	cr_expect_eq(rtu(&p, IN_ID, true), 0);
	cr_expect_eq(p.own, OWN(NONE)); /* the back-off is over */
	cr_expect(is_ipoib_peer_usable(&p, IN_ID));
}

Test(ipoib_peer, one_way_connection_does_not_end_the_backoff)
{
	struct ddps_ipoib_peer p = smaller();

	make_ipoib_peer_traffic(&p, 0);
	rej(&p, DDPS_CM_REJ_CONSUMER, 0);
	send_ipoib_peer_req(&p, IN_ID);
	rtu(&p, IN_ID, false);
	cr_expect_eq(p.own, OWN(FAILED));
	cr_expect_eq(make_ipoib_peer_traffic(&p, 99), 0);
	cr_expect_eq(make_ipoib_peer_traffic(&p, 100), DO(CONNECT));
}

Test(ipoib_peer, reject_of_an_attempt_begun_after_the_accepted_one_is_a_failure)
{
	struct ddps_ipoib_peer p = smaller();

	send_ipoib_peer_req(&p, IN_ID);
	rtu(&p, IN_ID, false);
	make_ipoib_peer_traffic(&p, 0);
	rej(&p, DDPS_CM_REJ_CONSUMER, 0);
	cr_expect_eq(p.own, OWN(FAILED));
}

Test(ipoib_peer, rep_after_accepting_brings_the_own_connection_up)
{
	struct ddps_ipoib_peer p = smaller();

	make_ipoib_peer_traffic(&p, 0);
	send_ipoib_peer_req(&p, IN_ID);
	cr_expect_eq(tell_ipoib_peer(&p, EV(REP), OWN_ID), DO(READY));
	cr_expect_eq(p.own, OWN(UP));
	/* both up now: the smaller node leaves it to the larger one */
	cr_expect_eq(rtu(&p, IN_ID, true), 0);
	cr_expect_eq(p.own, OWN(UP));
	cr_expect(is_ipoib_peer_usable(&p, OWN_ID));
	cr_expect_eq(tell_ipoib_peer(&p, EV(DOWN), IN_ID), 0);
	cr_expect(is_ipoib_peer_usable(&p, OWN_ID));
}

Test(ipoib_peer, two_way_rtu_ends_the_own_attempt)
{
	struct ddps_ipoib_peer p = smaller();

	make_ipoib_peer_traffic(&p, 0);
	send_ipoib_peer_req(&p, IN_ID);
	cr_expect_eq(rtu(&p, IN_ID, true), DO(WITHDRAW));
	cr_expect_eq(out.own_id, OWN_ID);
	cr_expect_eq(p.own, OWN(NONE));
	cr_expect(is_ipoib_peer_usable(&p, IN_ID));
	cr_expect_eq(tell_ipoib_peer(&p, EV(REP), OWN_ID), 0); /* late: the agent refuses it */
	cr_expect_eq(p.own, OWN(NONE));
}

Test(ipoib_peer, one_way_rtu_leaves_the_own_attempt_running)
{
	struct ddps_ipoib_peer p = smaller();

	make_ipoib_peer_traffic(&p, 0);
	send_ipoib_peer_req(&p, IN_ID);
	cr_expect_eq(rtu(&p, IN_ID, false), 0);
	cr_expect_eq(p.own, OWN(REQ_OUT));
	tell_ipoib_peer(&p, EV(REP), OWN_ID);
	cr_expect(p.in_up && p.own == OWN(UP)); /* one for each direction */
}

Test(ipoib_peer, accepted_one_that_never_completes_leaves_the_own_result)
{
	struct ddps_ipoib_peer p = smaller();

	make_ipoib_peer_traffic(&p, 0);
	send_ipoib_peer_req(&p, IN_ID);
	cr_expect_eq(tell_ipoib_peer(&p, EV(DOWN), IN_ID), 0);
	cr_expect_eq(p.own, OWN(REQ_OUT));
	tell_ipoib_peer(&p, EV(TIMEOUT), OWN_ID);
	cr_expect_eq(p.own, OWN(FAILED));
	cr_expect_eq(make_ipoib_peer_traffic(&p, 100), DO(CONNECT));
}

Test(ipoib_peer, larger_closes_its_own_when_a_second_comes_up)
{
	struct ddps_ipoib_peer p = larger();

	make_ipoib_peer_traffic(&p, 0);
	tell_ipoib_peer(&p, EV(REP), OWN_ID);
	cr_expect_eq(send_ipoib_peer_req(&p, IN_ID), DO(ACCEPT));
	cr_expect(is_ipoib_peer_usable(&p, OWN_ID)); /* not before it is certain */
	cr_expect_eq(rtu(&p, IN_ID, true), DO(CLOSE_OWN));
	cr_expect_eq(out.own_id, OWN_ID);
	cr_expect(is_ipoib_peer_usable(&p, IN_ID));
}

Test(ipoib_peer, larger_keeps_its_own_next_to_a_one_way_peers)
{
	struct ddps_ipoib_peer p = larger();

	make_ipoib_peer_traffic(&p, 0);
	tell_ipoib_peer(&p, EV(REP), OWN_ID);
	send_ipoib_peer_req(&p, IN_ID);
	cr_expect_eq(rtu(&p, IN_ID, false), 0);
	cr_expect(is_ipoib_peer_usable(&p, OWN_ID));
}

/* ---- What is admitted at all ---- */

static struct ddps_ipoib_iface iface(void)
{
	struct ddps_ipoib_iface me = {
		.addr = { .flags = DDPS_IPOIB_RC, .qpn = 0x49 },
		.pkey = 0xffff,
		.rx_mtu = 65524,
		.min_mtu = DDPS_IPOIB_MTU_MIN_V6,
	};

	me.addr.gid[15] = 2;
	return me;
}

static struct ddps_cm_req good_req(uint32_t rx_mtu)
{
	const struct ddps_ipoib_priv priv = { .qpn = 0x4a, .rx_mtu = rx_mtu };
	struct ddps_cm_req q = { .service_id = 0x0100000000000049, .pkey = 0x7fff };

	q.primary.local_gid[15] = 1;
	q.primary.remote_gid[15] = 2;
	cr_assert_eq(ddps_ipoib_priv_encode(q.private_data, &priv), 0);
	return q;
}

Test(ipoib_peer, req_names_the_neighbour, .description = "4755-3.3-2 4755-6-4 4755-5.1-1")
{
	const struct ddps_ipoib_iface me = iface();
	struct ddps_cm_req q = good_req(32772);
	struct ddps_ipoib_lladdr who;
	struct ddps_ipoib_priv priv;

	q.private_data[0] = 0xff; /* reserved */
	cr_assert_eq(ddps_ipoib_admit_req(&me, &q, &who, &priv), 0);
	cr_expect(who.flags == 0 && who.qpn == 0x4a && who.gid[15] == 1);
	cr_expect_eq(priv.rx_mtu, 32772);
	q.service_id = 0x1000000000000049;
	cr_expect_eq(ddps_ipoib_admit_req(&me, &q, &who, &priv), 0);
}

Test(ipoib_peer, req_that_does_not_fit_the_interface, .description = "4755-5-1 4755-3.1-12")
{
	struct ddps_ipoib_iface me = iface();
	struct ddps_ipoib_lladdr who;
	struct ddps_ipoib_priv priv;
	struct ddps_cm_req q;

	q = good_req(65524);
	q.service_id++; /* another interface of the port */
	cr_expect_eq(ddps_ipoib_admit_req(&me, &q, &who, &priv), DDPS_CM_REJ_SERVICE_ID);
	for (uint8_t t = 0; t < 4; t++) {
		q = good_req(65524);
		q.transport = t & 3;
		cr_expect_eq(ddps_ipoib_admit_req(&me, &q, &who, &priv),
			     t == DDPS_CM_RC ? 0 : DDPS_CM_REJ_TRANSPORT);
	}
	q.transport = DDPS_CM_UC;
	me.addr.flags = DDPS_IPOIB_UC;
	cr_expect_eq(ddps_ipoib_admit_req(&me, &q, &who, &priv), 0);
	me = iface();
	q = good_req(65524);
	q.pkey = 0x8001;
	cr_expect_eq(ddps_ipoib_admit_req(&me, &q, &who, &priv), DDPS_CM_REJ_CONSUMER);
	q = good_req(65524);
	q.primary.remote_gid[0] = 1;
	cr_expect_eq(ddps_ipoib_admit_req(&me, &q, &who, &priv), DDPS_CM_REJ_CONSUMER);
	q = good_req(65524);
	memset(q.private_data, 0, 4); /* no UD QPN */
	cr_expect_eq(ddps_ipoib_admit_req(&me, &q, &who, &priv), DDPS_CM_REJ_CONSUMER);
}

Test(ipoib_peer, receive_mtu_must_hold_the_smallest_packet,
     .description = "4755-5-1 4755-5-4 4755-5.1-2")
{
	static const struct {
		uint32_t rx_mtu, min_mtu;
		uint16_t reason;
	} row[] = {
		{ 1284, DDPS_IPOIB_MTU_MIN_V6, 0 },
		{ 1283, DDPS_IPOIB_MTU_MIN_V6, DDPS_CM_REJ_CONSUMER },
		{ 72, DDPS_IPOIB_MTU_MIN_V4, 0 },
		{ 71, DDPS_IPOIB_MTU_MIN_V4, DDPS_CM_REJ_CONSUMER },
		{ 4, DDPS_IPOIB_MTU_MIN_V4, DDPS_CM_REJ_CONSUMER },
		{ 0, DDPS_IPOIB_MTU_MIN_V4, DDPS_CM_REJ_CONSUMER },
		{ 0x80000000, DDPS_IPOIB_MTU_MIN_V6, 0 },
		{ 0x80000001, DDPS_IPOIB_MTU_MIN_V6, DDPS_CM_REJ_CONSUMER },
	};

	for (size_t i = 0; i < sizeof(row) / sizeof(row[0]); i++) {
		struct ddps_ipoib_iface me = iface();
		struct ddps_cm_req q = good_req(row[i].rx_mtu);
		struct ddps_cm_rep rep = { 0 };
		struct ddps_ipoib_lladdr who;
		struct ddps_ipoib_priv priv;

		me.min_mtu = row[i].min_mtu;
		memcpy(rep.private_data, q.private_data, 8);
		cr_expect_eq(ddps_ipoib_admit_req(&me, &q, &who, &priv), row[i].reason, "%zu", i);
		cr_expect_eq(ddps_ipoib_admit_rep(&me, &rep, &priv), row[i].reason, "%zu", i);
		me.rx_mtu_may_be_0 = true;
		if (!row[i].rx_mtu)
			cr_expect_eq(ddps_ipoib_admit_rep(&me, &rep, &priv), 0);
	}
}
