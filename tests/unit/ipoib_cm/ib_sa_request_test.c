/* SPDX-License-Identifier: BSD-2-Clause */
/* Subnet administration: single requests and answers, and octets from anywhere. */
#include "ib_sa_fixture.h"

/* ---- single requests ---- */

#define KNOWN_LINK (DDPS_MC_MGID | DDPS_MC_PORT_GID | DDPS_MC_PKEY | DDPS_MC_JOIN)

static struct ddps_sa_head ask_ib_sa_request(uint16_t lid, uint8_t method, uint16_t attr,
					     uint64_t mask, uint8_t mad[DDPS_CM_MAD_LEN])
{
	struct ddps_sa_head h = {
		.method = method, .attr = attr, .tid = 0x1122334455667788, .mask = mask
	};
	uint8_t rec[DDPS_SA_RECORD_LEN];

	memcpy(rec, ddps_sa_record(mad), sizeof(rec));
	ddps_sa_mad_begin(mad, &h);
	memcpy(ddps_sa_record(mad), rec, sizeof(rec));
	n_wire = 0;
	ddps_sa_rx(sa, lid, mad, now);
	cr_assert_geq(n_wire, 1);
	memcpy(mad, wire[n_wire - 1].mad, DDPS_CM_MAD_LEN);
	n_wire = 0;
	cr_assert_eq(ddps_sa_mad_head(&h, mad), 0);
	cr_expect_eq(h.tid, 0x1122334455667788, "all 64 bits");
	return h;
}

static struct ddps_sa_mcm record_ib_sa_request(unsigned lid, const uint8_t *mgid, uint8_t join)
{
	struct ddps_sa_mcm r = {
		.qkey = 0x1234, .pkey = 0xffff, .mtu = 0x84, .rate = 0x87, .scope = 2, .join = join
	};

	memcpy(r.mgid, mgid, 16);
	gid_of(r.port_gid, lid + 48);
	return r;
}

static uint16_t make_ib_sa_request_member(unsigned lid, uint8_t method, uint64_t mask,
					  const struct ddps_sa_mcm *r)
{
	uint8_t mad[DDPS_CM_MAD_LEN] = { 0 };

	ddps_sa_mcm_put(mad, r);
	return ask_ib_sa_request((uint16_t)lid, method, DDPS_SA_MCMEMBER_RECORD, mask, mad).status;
}

#define JOIN(mask, change, status)                                                                 \
	do {                                                                                       \
		struct ddps_sa_mcm r = record_ib_sa_request(2, group1, DDPS_MC_FULL);              \
		change;                                                                            \
		cr_expect_eq(make_ib_sa_request_member(2, DDPS_SA_SET, mask, &r), status, "%s",    \
			     #change);                                                             \
	} while (0)

Test(ib_sa, joins_that_are_refused, .init = init, .fini = fini)
{
	JOIN(DDPS_MC_ALL, r.qkey++, DDPS_SA_REQ_INVALID);
	JOIN(DDPS_MC_ALL, r.pkey = 0x8001, DDPS_SA_REQ_INVALID);
	JOIN(DDPS_MC_ALL, r.tclass = 1, DDPS_SA_REQ_INVALID);
	JOIN(DDPS_MC_ALL, r.sl = 1, DDPS_SA_REQ_INVALID);
	JOIN(DDPS_MC_ALL, r.flow = 1, DDPS_SA_REQ_INVALID);
	JOIN(DDPS_MC_ALL, r.hop = 1, DDPS_SA_REQ_INVALID);
	JOIN(DDPS_MC_ALL, r.mtu = 0x85, DDPS_SA_REQ_INVALID);  /* exactly 4096 */
	JOIN(DDPS_MC_ALL, r.mtu = 0x04, DDPS_SA_REQ_INVALID);  /* above 2048 */
	JOIN(DDPS_MC_ALL, r.rate = 0x47, DDPS_SA_REQ_INVALID); /* below 40 Gbit/s */
	JOIN(DDPS_MC_ALL, r.join = 0, DDPS_SA_REQ_INVALID);
	JOIN(DDPS_MC_ALL, r.join = DDPS_MC_NON, DDPS_SA_REQ_INVALID);
	JOIN(DDPS_MC_ALL, r.join = DDPS_MC_SEND_NON, DDPS_SA_REQ_INVALID);
	JOIN(DDPS_MC_ALL, r.mgid[0] = 0xfe, DDPS_SA_REQ_INVALID);
	JOIN(DDPS_MC_ALL, r.port_gid[1]++, DDPS_SA_INVALID_GID);
	JOIN(DDPS_MC_ALL & ~(uint64_t)DDPS_MC_QKEY, (void)0, DDPS_SA_TOO_FEW);
	JOIN(DDPS_MC_ALL & ~(uint64_t)DDPS_MC_JOIN, (void)0, DDPS_SA_TOO_FEW);
	cr_expect_eq(ddps_sa_stats(sa)->sa_groups, 0);
	/* selectors of 2048: at least, at most, the best */
	JOIN(DDPS_MC_ALL, r.mtu = 0x03, DDPS_SA_OK);
	JOIN(DDPS_MC_ALL, r.mtu = 0x45, DDPS_SA_OK);
	JOIN(DDPS_MC_ALL, r.mtu = 0xc5, DDPS_SA_OK);
	/* what is not named does not count; a limited member joins, too */
	JOIN(DDPS_MC_MGID | DDPS_MC_PORT_GID | DDPS_MC_JOIN, r.qkey = 0, DDPS_SA_OK);
	JOIN(DDPS_MC_ALL, r.pkey = 0x7fff, DDPS_SA_OK);
	cr_expect_eq(ddps_sa_stats(sa)->sa_groups, 1);
}

/* Linux makes a group that it only sends to, and leaves with what the answer to its join said. */
Test(ib_sa, join_states, .init = init, .fini = fini)
{
	struct ddps_sa_mcm r = record_ib_sa_request(2, group1, DDPS_MC_SEND_FULL);
	struct ddps_sa_mcm other = record_ib_sa_request(3, group1, DDPS_MC_NON);
	uint8_t mad[DDPS_CM_MAD_LEN] = { 0 };
	const uint64_t leave = DDPS_MC_MGID | DDPS_MC_PORT_GID | DDPS_MC_JOIN;

	cr_expect_eq(make_ib_sa_request_member(2, DDPS_SA_SET, DDPS_MC_ALL, &r), DDPS_SA_OK);
	cr_expect_eq(make_ib_sa_request_member(3, DDPS_SA_SET, DDPS_MC_ALL, &other), DDPS_SA_OK);
	r.join = DDPS_MC_FULL;
	ddps_sa_mcm_put(mad, &r);
	cr_expect_eq(
		ask_ib_sa_request(2, DDPS_SA_SET, DDPS_SA_MCMEMBER_RECORD, DDPS_MC_ALL, mad).status,
		0);
	ddps_sa_mcm_get(&r, mad);
	cr_expect_eq(r.join, DDPS_MC_FULL, "not what the port has in all");
	cr_expect_eq(make_ib_sa_request_member(2, DDPS_SA_DELETE, leave, &r), DDPS_SA_OK);
	cr_expect_eq(make_ib_sa_request_member(2, DDPS_SA_DELETE, leave, &r), DDPS_SA_REQ_INVALID,
		     "twice");
	cr_expect_eq(make_ib_sa_request_member(4, DDPS_SA_GET, DDPS_MC_MGID, &r), DDPS_SA_OK,
		     "it is there still");
	r.join = DDPS_MC_SEND_FULL;
	cr_expect_eq(make_ib_sa_request_member(2, DDPS_SA_DELETE, leave, &r), DDPS_SA_OK);
	cr_expect_eq(make_ib_sa_request_member(4, DDPS_SA_GET, DDPS_MC_MGID, &r),
		     DDPS_SA_NO_RECORDS, "a member that does not count keeps no group");
	r.pkey = 0x8002;
	cr_expect_eq(make_ib_sa_request_member(4, DDPS_SA_GET, DDPS_MC_PKEY, &r),
		     DDPS_SA_NO_RECORDS);
}

Test(ib_sa, one_port_cannot_take_all_groups, .init = init, .fini = fini)
{
	struct ddps_sa_mcm r = record_ib_sa_request(2, group1, DDPS_MC_FULL);
	unsigned made = 0;

	for (unsigned i = 0; i < 300; i++) {
		r.mgid[14] = (uint8_t)(i >> 8);
		r.mgid[15] = (uint8_t)i;
		made += !make_ib_sa_request_member(2, DDPS_SA_SET, DDPS_MC_ALL, &r);
	}
	cr_expect_eq(made, DDPS_SA_SHARE);
	cr_expect_eq(ddps_sa_stats(sa)->sa_limit, 300 - DDPS_SA_SHARE);
	for (unsigned lid = 3; lid < 10; lid++)
		for (unsigned i = 0; i < 60; i++) {
			struct ddps_sa_mcm o = record_ib_sa_request(lid, group2, DDPS_MC_FULL);

			o.mgid[14] = (uint8_t)lid;
			o.mgid[15] = (uint8_t)i;
			made += !make_ib_sa_request_member(lid, DDPS_SA_SET, DDPS_MC_ALL, &o);
		}
	cr_expect_eq(made, DDPS_SA_GROUPS - 1, "all places are found");
}

Test(ib_sa, other_queries, .init = init, .fini = fini)
{
	uint8_t mad[DDPS_CM_MAD_LEN] = { 0 };
	struct ddps_sa_inform inform = {
		.lid_first = 0xffff, .generic = true, .subscribe = true, .type = 3, .trap = 66
	};

	all_join();
	cr_expect_eq(ask_ib_sa_request(2, DDPS_SA_GET, DDPS_SA_CLASS_PORT_INFO, 0, mad).status, 0);
	cr_expect(ddps_sa_record(mad)[0] == 1 && ddps_sa_record(mad)[1] == 2);
	cr_expect_eq(ddps_sa_record(mad)[2], 0x22, "UD multicast, ports by what they can");
	memset(mad, 0, sizeof(mad));
	ddps_sa_record(mad)[1] = 3;
	cr_expect_eq(ask_ib_sa_request(2, DDPS_SA_GET, DDPS_SA_PORT_INFO_RECORD, 1, mad).status, 0);
	cr_expect_eq(ddps_sa_record(mad)[21], 3, "base LID");
	cr_expect_eq(ddps_sa_record(mad)[23], SA_LID);
	cr_expect_eq(ddps_sa_record(mad)[36] & 15, 4, "active");
	cr_expect_eq(ddps_sa_record(mad)[40] >> 4, 4, "MTU");
	memset(mad, 0, sizeof(mad));
	ddps_sa_record(mad)[1] = 77;
	cr_expect_eq(ask_ib_sa_request(2, DDPS_SA_GET, DDPS_SA_PORT_INFO_RECORD, 1, mad).status,
		     DDPS_SA_NO_RECORDS);
	cr_expect_eq(ask_ib_sa_request(2, DDPS_SA_GET, 0x31, 0, mad).status, DDPS_SA_UNSUPPORTED);
	cr_expect_eq(ask_ib_sa_request(2, DDPS_SA_GET_TABLE, 0x31, 0, mad).method, 0x92);
	ddps_sa_inform_put(mad, &inform);
	cr_expect_eq(ask_ib_sa_request(2, DDPS_SA_SET, DDPS_SA_INFORM_INFO, 0, mad).status, 0);
	inform.trap = 128;
	ddps_sa_inform_put(mad, &inform);
	cr_expect_eq(ask_ib_sa_request(2, DDPS_SA_SET, DDPS_SA_INFORM_INFO, 0, mad).status,
		     DDPS_SA_REQ_INVALID);
	inform.trap = 66;
	inform.gid[0] = 1;
	ddps_sa_inform_put(mad, &inform);
	cr_expect_eq(ask_ib_sa_request(2, DDPS_SA_SET, DDPS_SA_INFORM_INFO, 0, mad).status,
		     DDPS_SA_REQ_INVALID);
}

/* A port's GID is what it says, but nobody takes that of the administration. */
Test(ib_sa, gids_of_others, .init = init, .fini = fini)
{
	struct ddps_sa_mcm r = record_ib_sa_request(2, group1, DDPS_MC_FULL);
	struct ddps_sa_pr pr = { .pkey = 0xffff };
	uint8_t mad[DDPS_CM_MAD_LEN] = { 0 };

	gid_of(r.port_gid, 100);
	cr_expect_eq(make_ib_sa_request_member(2, DDPS_SA_SET, DDPS_MC_ALL, &r), DDPS_SA_DENIED);
	gid_of(pr.dgid, 100);
	gid_of(pr.sgid, 50);
	ddps_sa_pr_put(mad, &pr);
	cr_expect_eq(ask_ib_sa_request(2, DDPS_SA_GET, DDPS_SA_PATH_RECORD,
				       DDPS_PR_DGID | DDPS_PR_SGID, mad)
			     .status,
		     0);
	ddps_sa_pr_get(&pr, mad);
	cr_expect_eq(pr.dlid, SA_LID);
	all_join();
	r = record_ib_sa_request(3, group1, DDPS_MC_FULL); /* the third moves to another LID */
	ddps_sa_mcm_put(mad, &r);
	claim(9, DDPS_SA_SET, DDPS_SA_MCMEMBER_RECORD, DDPS_MC_ALL, mad);
	cr_expect_eq(make_ib_sa_request_member(9, DDPS_SA_SET, DDPS_MC_ALL, &r), DDPS_SA_OK);
	cr_expect_eq(ddps_sa_stats(sa)->sa_moved, 1);
	memcpy(pr.sgid, r.port_gid, 16); /* it moves once more, and asks for a path from there */
	gid_of(pr.dgid, 50);
	ddps_sa_pr_put(mad, &pr);
	claim(10, DDPS_SA_GET, DDPS_SA_PATH_RECORD, DDPS_PR_DGID | DDPS_PR_SGID, mad);
	cr_expect_eq(ask_ib_sa_request(10, DDPS_SA_GET, DDPS_SA_PATH_RECORD,
				       DDPS_PR_DGID | DDPS_PR_SGID, mad)
			     .status,
		     0);
	ddps_sa_pr_get(&pr, mad);
	cr_expect_eq(pr.slid, 10);
	cr_expect_eq(ddps_sa_stats(sa)->sa_moved, 2);
	ask_ib_sa_request(2, DDPS_SA_GET, DDPS_SA_PATH_RECORD, DDPS_PR_DGID | DDPS_PR_SGID, mad);
	cr_expect_eq(ddps_sa_stats(sa)->sa_moved, 2, "asked for by another port: not its own");
}

/* Answers that cannot be change nothing; the query goes on. */
Test(ib_sa, answers_that_cannot_be, .init = init, .fini = fini)
{
	uint8_t mad[DDPS_CM_MAD_LEN], good[DDPS_CM_MAD_LEN];

	cr_assert_eq(ddps_sac_join(node[0].c, broadcast, now), 0);
	cr_assert_eq(n_wire, 1);
	ddps_sa_rx(sa, 2, wire[0].mad, now);
	memcpy(good, wire[1].mad, sizeof(good));
	n_wire = 0;
	for (unsigned i = 0; i < 255; i++) {
		memcpy(mad, good, sizeof(mad));
		mad[15] ^= (uint8_t)(i + 1); /* the transaction */
		ddps_sac_rx(node[0].c, mad, now);
	}
	for (unsigned i = 0; i < 4; i++) {
		static const uint8_t at[] = { 56 + 1, 56 + 36, 56 + 38, 17 };

		memcpy(mad, good, sizeof(mad)); /* MGID, MLID, MTU, attribute */
		mad[at[i]] = i == 3 ? 0x35 : 0;
		ddps_sac_rx(node[0].c, mad, now);
	}
	cr_expect_eq(node[0].n_joined, 0);
	cr_expect_eq(ddps_sac_stats(node[0].c)->sac_bad, 259);
	ddps_sac_rx(node[0].c, good, now);
	cr_expect_eq(node[0].n_joined, 1);
}

/* Each refusal has one reason. */
static void expect_refusals_by_reason(void)
{
	const struct ddps_sa_stats *s = ddps_sa_stats(sa);

	cr_expect_gt(s->sa_ref_none, 0);
	cr_expect_gt(s->sa_ref_few, 0);
	cr_expect_eq(s->sa_ref_unsupported + s->sa_ref_room + s->sa_ref_invalid + s->sa_ref_none +
			     s->sa_ref_many + s->sa_ref_gid + s->sa_ref_few,
		     s->sa_refused);
}

Test(ib_sa, octets_from_anywhere, .init = init, .fini = fini)
{
	uint32_t rng = 7;

	all_join();
	for (unsigned i = 0; i < 20000; i++) {
		uint8_t mad[DDPS_CM_MAD_LEN];

		for (unsigned k = 0; k < sizeof(mad); k++) {
			rng = rng * 1664525 + 1013904223;
			mad[k] = (uint8_t)(rng >> 24);
		}
		mad[0] = 1;
		mad[1] = 3;
		mad[2] = 2;
		mad[16] = 0;
		mad[17] = (uint8_t[]){ 1, 2, 3, 0x12, 0x35, 0x38 }[rng % 6];
		ddps_sa_rx(sa, (uint16_t)(rng >> 8 & 0x1ff), mad, now);
		ddps_sac_rx(node[0].c, mad, now);
		n_wire = 0;
	}
	cr_expect_gt(ddps_sa_stats(sa)->sa_refused, 0);
	expect_refusals_by_reason();
}

/* Bit 31 of the modifier: ports that can at least this. */
Test(ib_sa, contact_34_ports_by_what_they_can, .init = init, .fini = fini)
{
	static const struct {
		uint8_t caps[4];
		bool bit;
		uint16_t status;
	} want[] = { { { 0, 0, 0, 2 }, true, DDPS_SA_OK }, /* a manager: only one port has it */
		     { { 0, 0, 0, 2 }, false, DDPS_SA_NO_RECORDS },
		     { { 0, 1, 0, 2 }, false, DDPS_SA_OK },
		     { { 0, 1, 0, 0 }, true, DDPS_SA_TOO_MANY },
		     { { 0, 0, 1, 2 }, true, DDPS_SA_NO_RECORDS } };
	struct ddps_sa_mcm r = record_ib_sa_request(SA_LID, broadcast, DDPS_MC_FULL);

	cr_assert_eq(make_ib_sa_request_member(SA_LID, DDPS_SA_SET, KNOWN_LINK, &r), 0);
	r = record_ib_sa_request(3, broadcast, DDPS_MC_FULL);
	cr_assert_eq(make_ib_sa_request_member(3, DDPS_SA_SET, KNOWN_LINK, &r), 0);
	for (unsigned i = 0; i < sizeof(want) / sizeof(*want); i++) {
		struct ddps_sa_head h = { .method = DDPS_SA_GET,
					  .attr = DDPS_SA_PORT_INFO_RECORD,
					  .mask = 1 << 7 };
		uint8_t mad[DDPS_CM_MAD_LEN];

		ddps_sa_mad_begin(mad, &h);
		mad[20] = want[i].bit ? 0x80 : 0;
		memcpy(ddps_sa_record(mad) + 24, want[i].caps, 4);
		n_wire = 0;
		ddps_sa_rx(sa, 3, mad, now);
		cr_assert_eq(n_wire, 1);
		cr_assert_eq(ddps_sa_mad_head(&h, wire[0].mad), 0);
		cr_expect_eq(h.status, want[i].status, "row %u: 0x%04x", i, h.status);
	}
}

Test(ib_sa, contact_34_there_is_no_way_back_from_a_group, .init = init, .fini = fini)
{
	struct ddps_sa_mcm r = record_ib_sa_request(3, broadcast, DDPS_MC_FULL);
	struct ddps_sa_pr pr = { 0 };
	uint8_t mad[DDPS_CM_MAD_LEN] = { 0 };

	cr_assert_eq(make_ib_sa_request_member(3, DDPS_SA_SET, KNOWN_LINK, &r), 0);
	memcpy(pr.dgid, broadcast, 16);
	memcpy(pr.sgid, r.port_gid, 16);
	ddps_sa_pr_put(mad, &pr);
	cr_assert_eq(ask_ib_sa_request(3, DDPS_SA_GET, DDPS_SA_PATH_RECORD,
				       DDPS_PR_DGID | DDPS_PR_SGID, mad)
			     .status,
		     0);
	cr_expect_eq(ddps_sa_record(mad)[49] & 0x80, 0);
}
