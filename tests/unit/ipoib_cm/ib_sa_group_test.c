/* SPDX-License-Identifier: BSD-2-Clause */
/* Subnet administration: groups are asked for, made, joined and reported. */
#include "ib_sa_fixture.h"

Test(ib_sa, new_group_is_asked_for_like_the_broadcast_group, .init = init, .fini = fini,
     .description = "4391-10-8 4391-10-9")
{
	struct ddps_sa_mcm link, r;
	struct ddps_sa_head h;

	cr_assert_eq(ddps_sac_join(node[0].c, broadcast, now), 0);
	ddps_sa_rx(sa, 2, wire[0].mad, now);
	ddps_sa_mcm_get(&link, wire[1].mad);
	link.tclass = 0x12;
	link.flow = 0x34567;
	link.sl = 5;
	link.hop = 3;
	link.rate = 0x83;
	link.qkey = 0x80000b1b;
	ddps_sa_mcm_put(wire[1].mad, &link);
	ddps_sac_rx(node[0].c, wire[1].mad, now);
	cr_assert_eq(node[0].n_joined, 1);
	n_wire = 0;
	cr_assert_eq(ddps_sac_join(node[0].c, group1, now), 0);
	cr_assert_eq(n_wire, 1);
	cr_assert_eq(ddps_sa_mad_head(&h, wire[0].mad), 0);
	ddps_sa_mcm_get(&r, wire[0].mad);
	cr_expect(h.method == DDPS_SA_SET && h.mask == DDPS_MC_ALL);
	cr_expect_arr_eq(r.mgid, group1, 16);
	cr_expect(r.qkey == link.qkey && r.pkey == link.pkey && r.sl == 5 && r.hop == 3);
	cr_expect(r.mtu == link.mtu && r.rate == 0x83, "exactly");
	cr_expect(r.tclass == 0x12 && r.flow == 0x34567 && r.scope == link.scope);
	cr_expect_eq(r.join, DDPS_MC_FULL);
	n_wire = 0;
}

Test(ib_sa, group_is_made_by_its_first_member, .init = init, .fini = fini,
     .description = "4391-10-7 4391-10-8 4391-10-9")
{
	all_join();
	cr_assert_eq(ddps_sac_join(node[0].c, group1, now), 0);
	cr_assert_eq(ddps_sac_join(node[1].c, group1, now), 0);
	run_ib_sa(10 * MS);
	cr_expect_eq(node[0].n_joined + node[1].n_joined, 4);
	cr_expect_eq(node[0].rec.mlid, node[1].rec.mlid);
	cr_expect_neq(node[0].rec.mlid, 0xc000);
	cr_expect_eq(node[0].rec.qkey, 0x1234);
	cr_expect_eq(ddps_sa_stats(sa)->sa_groups, 1);
}

Test(ib_sa, nothing_is_sent_before_the_group_is_known_and_joined, .init = init, .fini = fini,
     .description = "4391-10-1 4391-10-3 4391-10-4")
{
	const struct ddps_sa_mcm *rec;
	uint64_t asked;

	all_join();
	cr_assert_eq(ddps_sac_join(node[0].c, group1, now), 0);
	run_ib_sa(10 * MS);
	cr_expect_eq(open_group(&node[1], group1, &rec), DDPS_E_AGAIN);
	cr_expect_eq(open_group(&node[1], group1, &rec), DDPS_E_AGAIN);
	run_ib_sa(10 * MS);
	cr_assert_eq(open_group(&node[1], group1, &rec), 0);
	cr_expect_eq(rec->mlid, node[0].rec.mlid);
	cr_expect_eq(rec->join, DDPS_MC_SEND_NON);
	cr_expect_null(ddps_sac_member(node[1].c, rec->mlid), "it sends, it does not receive");
	asked = ddps_sac_stats(node[1].c)->sac_queries;
	cr_assert_eq(open_group(&node[1], group1, &rec), 0);
	run_ib_sa(10 * SEC);
	cr_expect_eq(ddps_sac_stats(node[1].c)->sac_queries, asked, "remembered");
	run_ib_sa(60 * SEC); /* idle: left, so whoever sends then asks anew */
	cr_expect_eq(ddps_sac_stats(node[1].c)->sac_queries, asked + 1);
	cr_expect_eq(open_group(&node[1], group1, &rec), DDPS_E_AGAIN);
}

static unsigned n_held(const struct node *n)
{
	unsigned k = 0;

	for (unsigned i = 0; i < DDPS_SAC_GROUPS; i++)
		k += n->held[i];
	return k;
}

/* What sending needs is not available: it is said, no membership stays, and it is tried again. */
Test(ib_sa, contact_32_a_group_that_cannot_be_held, .init = init, .fini = fini)
{
	const struct ddps_sa_mcm *rec;

	all_join();
	cr_assert_eq(ddps_sac_join(node[0].c, group1, now), 0);
	run_ib_sa(10 * MS);
	cr_expect_eq(n_held(&node[0]), 2);
	hold_err = DDPS_E_SYSTEM;
	cr_expect_eq(open_group(&node[1], group1, &rec), DDPS_E_AGAIN);
	cr_assert_eq(ddps_sac_join(node[2].c, group1, now), 0);
	run_ib_sa(10 * MS);
	for (unsigned i = 1; i < 3; i++) {
		cr_expect_eq(node[i].err, DDPS_E_SYSTEM, "node %u", i);
		cr_expect_eq(n_held(&node[i]), 1, "node %u", i);
	}
	cr_expect_eq(node[1].n_open, 2);
	cr_expect(!node[1].there);
	cr_expect_eq(open_group(&node[1], group1, &rec), DDPS_E_ADDRESS);
	ddps_sac_leave(node[0].c, group1, now);
	cr_expect_eq(n_held(&node[0]), 1);
	run_ib_sa(10 * MS);
	cr_expect_eq(ddps_sa_stats(sa)->sa_groups, 1);
	hold_err = 0;
	run_ib_sa(2 * SEC);
	cr_expect_eq(ddps_sa_stats(sa)->sa_groups, 2, "made anew: nobody was left in it");
	cr_expect_eq(node[2].n_joined, 2);
	cr_expect_eq(n_held(&node[2]), 2);
	cr_expect_eq(open_group(&node[1], group1, &rec), 0, "the new one was reported");
	cr_expect_eq(n_held(&node[1]), 2);
	run_ib_sa(61 * SEC);
	cr_expect_eq(n_held(&node[1]), 1, "nothing was sent to it");
}

/* Joined while it is asked about, or joined, for sending: full membership comes of it. */
Test(ib_sa, join_of_a_group_that_is_being_asked_about, .init = init, .fini = fini)
{
	const struct ddps_sa_mcm *rec;

	all_join();
	cr_assert_eq(ddps_sac_join(node[2].c, group2, now), 0);
	run_ib_sa(10 * MS);
	for (unsigned i = 0; i < 2; i++) { /* not there, and there */
		const uint8_t *mgid = i ? group2 : group1;

		cr_expect_eq(open_group(&node[0], mgid, &rec), DDPS_E_AGAIN);
		cr_assert_eq(ddps_sac_join(node[0].c, mgid, now), 0);
		run_ib_sa(10 * MS);
		cr_expect_eq(node[0].n_joined, 2 + i);
		cr_expect_eq(node[0].rec.join, DDPS_MC_FULL);
	}
	cr_expect_eq(open_group(&node[1], group2, &rec), DDPS_E_AGAIN);
	for (unsigned i = 0; i < 2; i++) /* the question, its answer, and the join is out */
		if (wire[i].to == SA_LID)
			ddps_sa_rx(sa, wire[i].from, wire[i].mad, now);
		else
			ddps_sac_rx(node[wire[i].to - 2].c, wire[i].mad, now);
	n_wire -= 2;
	memmove(wire, wire + 2, n_wire * sizeof(*wire));
	cr_assert_eq(ddps_sac_join(node[1].c, group2, now), 0);
	run_ib_sa(10 * MS);
	cr_expect_eq(node[1].n_joined, 2);
	cr_expect_eq(node[1].rec.join, DDPS_MC_FULL);
	cr_expect_eq(ddps_sac_stats(node[0].c)->sac_bad + ddps_sac_stats(node[1].c)->sac_bad, 0);
}

Test(ib_sa, groups_that_come_and_go_are_reported, .init = init, .fini = fini,
     .description = "4391-10-4 4391-10-5 4391-10-6 4391-10-10")
{
	const struct ddps_sa_mcm *rec;

	all_join();
	cr_expect_eq(open_group(&node[1], group1, &rec), DDPS_E_AGAIN);
	run_ib_sa(10 * MS);
	cr_expect_eq(open_group(&node[1], group1, &rec), DDPS_E_ADDRESS);
	cr_expect(node[1].n_open == 2 && !node[1].there, "the broadcast group, and not this one");
	cr_assert_eq(ddps_sac_join(node[0].c, group1, now), 0);
	run_ib_sa(10 * MS);
	cr_expect_eq(ddps_sac_stats(node[1].c)->sac_reports, 1);
	cr_assert_eq(open_group(&node[1], group1, &rec), 0, "joined because of the report");
	ddps_sac_leave(node[0].c, group1, now);
	run_ib_sa(10 * MS);
	cr_expect_eq(ddps_sac_stats(node[1].c)->sac_reports, 2);
	cr_expect_eq(open_group(&node[1], group1, &rec), DDPS_E_ADDRESS);
	cr_expect_eq(ddps_sa_stats(sa)->sa_unheard, 0);
}

/* On a slow wire a query or a report is repeated before its answer comes: the second one is no fault. */
Test(ib_sa, what_is_answered_twice_is_late, .init = init, .fini = fini)
{
	uint8_t mad[DDPS_CM_MAD_LEN];

	all_join();
	cr_assert_eq(ddps_sac_join(node[0].c, group1, now), 0);
	cr_assert_eq(n_wire, 1);
	put_ib_sa(wire[0].from, SA_LID, wire[0].mad);
	settle_ib_sa();
	cr_expect_eq(ddps_sac_stats(node[0].c)->sac_late, 1);
	cr_expect_eq(ddps_sac_stats(node[0].c)->sac_bad, 0);

	ddps_sac_leave(node[0].c, group1, now);
	ddps_sa_rx(sa, wire[0].from, wire[0].mad, now); /* all learn of it, and one gets it twice */
	cr_assert_eq(n_wire, 1 + NODES + 1);
	memcpy(mad, wire[n_wire - 2].mad, sizeof(mad));
	put_ib_sa(SA_LID, wire[n_wire - 2].to, mad);
	settle_ib_sa();
	cr_expect_eq(ddps_sa_stats(sa)->sa_late, 1);
	cr_expect_eq(ddps_sa_stats(sa)->sa_bad, 0);
	mad[0] ^= 0xff; /* no such version */
	ddps_sa_rx(sa, 2, mad, now);
	cr_expect_eq(ddps_sa_stats(sa)->sa_bad, 1);
}

/* Whoever is gone does not answer reports: some tries, and it is forgotten. */
Test(ib_sa, reports_are_repeated_until_heard, .init = init, .fini = fini)
{
	uint64_t reports;

	all_join();
	n_wire = 0;
	cr_assert_eq(ddps_sac_join(node[0].c, group1, now), 0);
	ddps_sa_rx(sa, 2, wire[0].mad, now);
	reports = ddps_sa_stats(sa)->sa_reports;
	cr_expect_eq(reports, NODES, "the one that made it as well");
	for (unsigned i = 0; i < 10 && ddps_sa_due(sa) != UINT64_MAX; i++) {
		n_wire = 0;
		now = ddps_sa_due(sa);
		ddps_sa_tick(sa, now);
	}
	cr_expect_eq(ddps_sa_stats(sa)->sa_reports, 4 * NODES);
	cr_expect_eq(ddps_sa_stats(sa)->sa_unheard, NODES);
	n_wire = 0;
	ddps_sac_leave(node[0].c, group1, now);
	ddps_sa_rx(sa, 2, wire[0].mad, now);
	cr_expect_eq(ddps_sa_stats(sa)->sa_reports, 4 * NODES);
}

/* Joined anew, as when a subnet manager says that it has forgotten us, a group has another MLID. */
Test(ib_sa, a_group_gets_another_mlid, .init = init, .fini = fini, .description = "4391-10-4")
{
	uint8_t mad[DDPS_CM_MAD_LEN];
	struct ddps_sa_mcm r;
	uint16_t was;

	all_join();
	cr_assert_eq(ddps_sac_join(node[0].c, group1, now), 0);
	run_ib_sa(10 * MS);
	was = node[0].rec.mlid;
	cr_assert_not_null(ddps_sac_member(node[0].c, was));
	n_wire = 0;
	ddps_sac_renew(node[0].c, now);
	cr_assert_eq(n_wire, 1, "the link first: the others are asked for with its values");
	for (unsigned i = 0; i < 2; i++) {
		ddps_sa_rx(sa, node[0].lid, wire[n_wire - 1].mad, now);
		memcpy(mad, wire[n_wire - 1].mad, sizeof(mad));
		ddps_sa_mcm_get(&r, mad);
		r.mlid += 0x100;
		ddps_sa_mcm_put(mad, &r);
		ddps_sac_rx(node[0].c, mad, now);
	}
	cr_expect_null(ddps_sac_member(node[0].c, was));
	cr_assert_not_null(ddps_sac_member(node[0].c, (uint16_t)(was + 0x100)));
	cr_expect_eq(ddps_sac_link(node[0].c)->mlid, 0xc100);
	cr_expect_eq(ddps_sac_stats(node[0].c)->sac_refused, 0);
	n_wire = 0;
}
