/* SPDX-License-Identifier: BSD-2-Clause */
/* What the CM agent refuses, what is stale, and what belongs to no connection. */
#include <criterion/criterion.h>
#include <string.h>
#include "ipoib_cm/cm/cm_own.h"
#include "ipoib_cm_fixture.h"

struct rej_row {
	enum ddps_cm_state from;
	bool active;
	enum stimulus what;
	uint16_t reason;
	uint8_t msg;
	bool own_id, remote_id;
};

Test(ipoib_cm, rejects_name_the_message_and_the_ids, .description = "4755-3.2-11")
{
	static const struct rej_row row[] = {
		{ ST(REQ_RCVD), false, S_REJECT, 28, DDPS_CM_MSG_REQ, false, true },
		{ ST(MRA_REQ_SENT), false, S_REJECT, 28, DDPS_CM_MSG_REQ, true, true },
		{ ST(REP_RCVD), true, S_REJECT, 28, DDPS_CM_MSG_REP, true, true },
		{ ST(MRA_REP_SENT), true, S_REJECT, 28, DDPS_CM_MSG_REP, true, true },
		{ ST(WITHDRAWN), true, S_RX_REP, 28, DDPS_CM_MSG_REP, true, true },
		{ ST(REQ_SENT), true, S_ABORT, 4, DDPS_CM_MSG_OTHER, true, false },
		{ ST(MRA_REQ_RCVD), true, S_ABORT, 4, DDPS_CM_MSG_OTHER, true, false },
		{ ST(REP_SENT), false, S_ABORT, 28, DDPS_CM_MSG_OTHER, true, true },
		{ ST(TIMEWAIT), false, S_RX_REQ, 10, DDPS_CM_MSG_REQ, false, true },
	};

	for (size_t i = 0; i < sizeof(row) / sizeof(row[0]); i++) {
		struct ddps_cm_mad m;
		struct cm_rig r;

		cm_rig_init(&r);
		cm_rig_reach(&r, row[i].from, row[i].active);
		cr_assert_eq(cm_rig_apply(&r, row[i].what), 0);
		m = cm_rig_sent(&r, 0);
		cr_expect_eq(m.u.rej.reason, row[i].reason, "row %zu", i);
		cr_expect_eq(m.u.rej.msg, row[i].msg, "row %zu", i);
		cr_expect_eq(m.u.rej.local_id, row[i].own_id ? r.id : 0, "row %zu", i);
		cr_expect_eq(m.u.rej.remote_id, row[i].remote_id ? PEER_ID : 0, "row %zu", i);
		cr_expect_eq(m.hdr.tid, row[i].active ? (uint64_t)5 << 32 | r.id : PEER_TID);
		cr_expect_eq(m.u.rej.info_len, row[i].reason == 4 ? 8 : 0);
		cr_expect_arr_eq(m.u.rej.private_data, cm_rig_priv, 8);
		cm_rig_fini(&r);
	}
}

Test(ipoib_cm, withdrawn_req_is_found_by_guid_and_id)
{
	struct ddps_cm_mad m;
	struct cm_rig r;

	cm_rig_init(&r);
	cm_rig_reach(&r, ST(REQ_SENT), true);
	cm_rig_apply(&r, S_ABORT);
	m = cm_rig_sent(&r, 0);
	cr_expect_arr_eq(m.u.rej.ari, "\x00\x02\xc9\x03\x00\x00\x10\x00", 8);
	cm_rig_fini(&r);

	cm_rig_init(&r); /* the far end: without the GUID nothing is found */
	cm_rig_reach(&r, ST(REQ_RCVD), false);
	m = cm_rig_peer_gave_up();
	m.u.rej.info_len = 7;
	cm_rig_rx(&r, &m);
	cr_expect_eq(ddps_cm_state(r.cm, r.id), ST(REQ_RCVD));
	m.u.rej.info_len = 8;
	m.u.rej.ari[7] ^= 1;
	cm_rig_rx(&r, &m);
	cr_expect_eq(ddps_cm_state(r.cm, r.id), ST(REQ_RCVD));
	cm_rig_fini(&r);
}

Test(ipoib_cm, req_is_refused_where_nobody_listens, .description = "4755-3.2-2")
{
	struct ddps_cm_mad m;
	struct cm_rig r;

	cm_rig_init(&r);
	m = cm_rig_peer_req(&r);
	m.u.req.service_id = 0x1000000000000049;
	m.u.req.vendor_id = 0x123456;
	cm_rig_rx(&r, &m);
	cr_assert_eq(r.o.n_send, 1);
	cr_expect_eq(r.o.n_report, 0);
	m = cm_rig_sent(&r, 0);
	cr_expect_eq(m.u.rej.reason, DDPS_CM_REJ_SERVICE_ID);
	cr_expect_eq(m.u.rej.msg, DDPS_CM_MSG_REQ);
	cr_expect(m.u.rej.local_id == 0 && m.u.rej.remote_id == PEER_ID);
	cr_expect_eq(m.hdr.tid, PEER_TID);
	cr_expect_eq(ddps_cm_stats(r.cm)->refused, 1);
	ddps_cm_unlisten(r.cm, SID);
	m = cm_rig_peer_req(&r);
	cm_rig_rx(&r, &m);
	cr_expect_eq(cm_rig_sent(&r, 0).u.rej.reason, DDPS_CM_REJ_SERVICE_ID);
	cm_rig_fini(&r);
}

Test(ipoib_cm, req_for_another_gid_or_partition_is_refused)
{
	struct cm_rig r;
	struct ddps_cm_mad m, rej;

	cm_rig_init(&r);
	m = cm_rig_peer_req(&r);
	m.u.req.primary.remote_gid[0] = 1;
	cm_rig_rx(&r, &m);
	rej = cm_rig_sent(&r, 0);
	cr_expect_eq(rej.u.rej.reason, DDPS_CM_REJ_GID);
	cr_expect_eq(rej.u.rej.info_len, 16);
	cr_expect_eq(rej.u.rej.ari[15], 9);
	cr_expect_arr_eq(rej.u.rej.private_data, cm_rig_priv, 8);
	m = cm_rig_peer_req(&r);
	m.u.req.pkey = 0xfffe;
	cm_rig_rx(&r, &m);
	cr_expect_eq(cm_rig_sent(&r, 0).u.rej.reason, DDPS_CM_REJ_GID);
	m = cm_rig_peer_req(&r);
	m.u.req.alternate.remote_gid[0] = 1; /* no alternate path: LID 0 */
	m.u.req.alternate.local_lid = 1;
	cm_rig_rx(&r, &m);
	cr_expect_eq(cm_rig_sent(&r, 0).u.rej.reason, DDPS_CM_REJ_ALT_GID);
	m.u.req.alternate.local_lid = 0;
	cm_rig_rx(&r, &m);
	cr_expect_eq(r.o.n_send, 0);
	cr_expect_eq(r.o.report[0].ev, EV(RX_REQ));
	cm_rig_fini(&r);
}

Test(ipoib_cm, req_without_an_id_is_refused)
{
	struct cm_rig r;
	struct ddps_cm_mad m;

	cm_rig_init(&r);
	m = cm_rig_peer_req(&r);
	m.u.req.local_id = 0;
	cm_rig_rx(&r, &m);
	cr_expect_eq(cm_rig_sent(&r, 0).u.rej.reason, DDPS_CM_REJ_COMM_ID);
	cm_rig_fini(&r);
}

Test(ipoib_cm, stale_req_is_refused_and_ends_the_old_connection)
{
	struct cm_rig r;
	struct ddps_cm_mad m;

	cm_rig_init(&r);
	cm_rig_reach(&r, ST(ESTABLISHED), false);
	m = cm_rig_peer_req(&r);
	m.u.req.local_id = PEER_ID + 1; /* rebooted; same QPN */
	cm_rig_rx(&r, &m);
	cr_assert_eq(r.o.n_send, 2);
	cr_expect_eq(cm_rig_sent(&r, 0).u.rej.reason, DDPS_CM_REJ_STALE);
	cr_expect_eq(cm_rig_sent(&r, 0).u.rej.remote_id, PEER_ID + 1);
	cr_expect_eq(cm_rig_sent(&r, 1).hdr.attr_id, DDPS_CM_DREQ);
	cr_expect_eq(r.o.report[0].ev, EV(STALE));
	cr_expect_eq(ddps_cm_state(r.cm, r.id), ST(DREQ_SENT));
	cm_rig_rx(&r, &m); /* still stale while that goes on */
	cr_assert_eq(r.o.n_send, 1);
	cr_expect_eq(cm_rig_sent(&r, 0).u.rej.reason, DDPS_CM_REJ_STALE);
	m = cm_rig_peer_drep(&r);
	cm_rig_rx(&r, &m);
	cm_rig_tick(&r); /* timewait over */
	m = cm_rig_peer_req(&r);
	m.u.req.local_id = PEER_ID + 1;
	cm_rig_rx(&r, &m);
	cr_expect_eq(r.o.report[0].ev, EV(RX_REQ));
	cm_rig_fini(&r);
}

Test(ipoib_cm, stale_rep_is_refused_and_ends_the_old_connection)
{
	static const enum ddps_cm_state from[] = { ST(REQ_SENT), ST(MRA_REQ_RCVD) };

	for (unsigned i = 0; i < 2; i++) {
		struct cm_rig r;
		struct ddps_cm_mad m;

		cm_rig_init(&r);
		cm_rig_reach(&r, from[i], true);
		cm_rig_apply(&r, S_RX_REP_QPN_USED);
		cr_assert_eq(r.o.n_send, 2);
		m = cm_rig_sent(&r, 0);
		cr_expect_eq(m.u.rej.reason, DDPS_CM_REJ_STALE);
		cr_expect_eq(m.u.rej.msg, DDPS_CM_MSG_REP);
		cr_expect(m.u.rej.local_id == r.id && m.u.rej.remote_id == PEER_ID);
		m = cm_rig_sent(&r, 1);
		cr_expect_eq(m.hdr.attr_id, DDPS_CM_DREQ);
		cr_expect_eq(m.u.dreq.remote_id, 0xabc);
		cr_expect_eq(r.o.report[0].ev, EV(STALE));
		cr_expect_eq(ddps_cm_state(r.cm, r.id), from[i]);
		cm_rig_fini(&r);
	}
}

/* A peer that restarted gives out the QPNs of its old life: the REQ does not wait its 4 s. */
Test(ipoib_cm, after_a_stale_rep_the_req_comes_again_soon)
{
	static const enum ddps_cm_state from[] = { ST(REQ_SENT), ST(MRA_REQ_RCVD) };

	for (unsigned i = 0; i < 2; i++) {
		struct cm_rig r;
		uint64_t start;

		cm_rig_init(&r);
		cm_rig_reach(&r, from[i], true);
		cm_rig_apply(&r, S_RX_REP_QPN_USED);
		start = r.now;
		cr_expect_eq(ddps_cm_deadline(r.cm), start + 100 * MS);
		cm_rig_tick(&r);
		cr_assert_eq(r.o.n_send, 1);
		cr_expect_eq(cm_rig_sent(&r, 0).hdr.attr_id, DDPS_CM_REQ);
		cr_expect_gt(ddps_cm_deadline(r.cm), r.now + 1000 * MS, "and then as usual");
		cm_rig_fini(&r);
	}
}

Test(ipoib_cm, stale_reps_without_end_use_up_the_retries)
{
	struct ddps_cm_mad m;
	struct cm_rig r;
	unsigned reqs = 0;

	cm_rig_init(&r);
	cm_rig_reach(&r, ST(REQ_SENT), true);
	cm_rig_apply(&r, S_RX_REP_QPN_USED);
	for (; ddps_cm_state(r.cm, r.id) == ST(REQ_SENT) && reqs <= r.req_retries; reqs++) {
		cm_rig_tick(&r);
		m = cm_rig_peer_rep(&r);
		m.u.rep.local_id += reqs + 1;
		m.u.rep.qpn = PEER_QPN;
		if (ddps_cm_state(r.cm, r.id) == ST(REQ_SENT))
			cm_rig_rx(&r, &m);
	}
	cr_expect_eq(ddps_cm_state(r.cm, r.id), ST(IDLE));
	cm_rig_fini(&r);
}

/* In timewait both ends are done: whoever gives the QPN anew is heard immediately. */
Test(ipoib_cm, qpn_of_a_connection_in_timewait_is_not_stale)
{
	struct ddps_cm_mad m;
	struct cm_rig r;

	cm_rig_init(&r);
	cm_rig_reach(&r, ST(TIMEWAIT), false);
	m = cm_rig_peer_req(&r);
	m.u.req.local_id = PEER_ID + 1;
	cm_rig_rx(&r, &m);
	cr_expect_eq(r.o.n_send, 0);
	cr_assert_eq(r.o.n_report, 1);
	cr_expect_eq(r.o.report[0].ev, EV(RX_REQ));
	cm_rig_fini(&r);
}

Test(ipoib_cm, same_ids_of_another_adapter_are_another_connection)
{
	struct cm_rig r;
	struct ddps_cm_mad m;

	cm_rig_init(&r);
	cm_rig_reach(&r, ST(ESTABLISHED), false);
	m = cm_rig_peer_req(&r);
	m.u.req.ca_guid = OTHER_GUID;
	cm_rig_rx(&r, &m);
	cr_expect_eq(r.o.n_send, 0);
	cr_expect_eq(r.o.report[0].ev, EV(RX_REQ));
	cr_expect_neq(r.o.report[0].id, r.id);
	cm_rig_fini(&r);
}

Test(ipoib_cm, messages_with_wrong_ids_match_nothing)
{
	static const enum stimulus what[] = { S_RX_RTU, S_RX_REJ, S_RX_MRA_REP, S_RX_DREP };

	for (unsigned i = 0; i < 8; i++) {
		struct cm_rig r;
		struct ddps_cm_mad m[4];
		uint8_t octets[256];

		cm_rig_init(&r);
		cm_rig_reach(&r, ST(REP_SENT), false);
		m[0] = cm_rig_peer_rtu(&r);
		m[1] = cm_rig_peer_rej(&r, 28, DDPS_CM_MSG_REP);
		m[2] = cm_rig_peer_mra(&r, DDPS_CM_MSG_REP);
		m[3] = cm_rig_peer_drep(&r);
		cr_assert_eq(ddps_cm_mad_encode(octets, &m[i / 2]), 0);
		octets[24 + (i & 1 ? 3 : 7)] ^= 0x40; /* local or remote ID */
		ddps_cm_rx(r.cm, octets, 256, FROM, r.now, &r.o);
		cr_expect(!r.o.n_send && !r.o.n_report, "%d", what[i / 2]);
		cr_expect_eq(ddps_cm_state(r.cm, r.id), ST(REP_SENT));
		cr_expect_eq(ddps_cm_stats(r.cm)->unmatched, 1);
		cm_rig_fini(&r);
	}
}

Test(ipoib_cm, dreq_for_an_unknown_connection_is_answered)
{
	struct cm_rig r;
	struct ddps_cm_mad m;

	cm_rig_init(&r);
	cm_rig_reach(&r, ST(ESTABLISHED), true);
	m = cm_rig_peer_dreq(&r);
	m.u.dreq.local_id = 0x99;
	cm_rig_rx(&r, &m);
	m = cm_rig_sent(&r, 0);
	cr_expect_eq(m.hdr.attr_id, DDPS_CM_DREP);
	cr_expect_eq(m.hdr.tid, 0xd0d0);
	cr_expect(m.u.drep.local_id == r.id && m.u.drep.remote_id == 0x99);
	cr_expect_eq(ddps_cm_state(r.cm, r.id), ST(ESTABLISHED));
	cm_rig_fini(&r);
}
