/* SPDX-License-Identifier: BSD-2-Clause */
/* Subnet administration: the link, paths, and an administration that starts anew. */
#include "ib_sa_fixture.h"

Test(ib_sa, broadcast_group_gives_the_link_its_values, .init = init, .fini = fini,
     .description = "4391-5-3 4391-9.1.2-1")
{
	const struct ddps_sa_mcm *link;

	cr_expect_null(ddps_sac_link(node[0].c));
	all_join();
	link = ddps_sac_link(node[0].c);
	cr_assert(link);
	cr_expect_eq(link->qkey, 0x1234);
	cr_expect_eq(link->mlid, 0xc000);
	cr_expect_eq(link->mtu, 0x84);
	cr_expect_eq(link->rate, 0x87);
	cr_expect_eq(link->life, 0x92);
	cr_expect_eq(link->join, 1);
	cr_expect_eq(ddps_sac_member(node[0].c, 0xc000), link);
	cr_expect_null(ddps_sac_member(node[0].c, 0xc001));
}

Test(ib_sa, path_of_whoever_has_joined, .init = init, .fini = fini,
     .description = "4391-9.1.2-2 4391-9.1.2-3")
{
	uint8_t gid[16];

	all_join();
	gid_of(gid, 51);
	cr_assert_eq(ddps_sac_path(node[0].c, gid, now), 0);
	cr_assert_eq(ddps_sac_path(node[0].c, gid, now), 0);
	run_ib_sa(10 * MS);
	cr_assert_eq(node[0].n_path, 1, "asked once");
	cr_assert(node[0].has_path);
	cr_expect_eq(node[0].pr.dlid, 3);
	cr_expect_eq(node[0].pr.slid, 2);
	cr_expect_eq(node[0].pr.hop, 0, "no GRH within the subnet");
	cr_expect_eq(node[0].pr.mtu, 0x84);
	gid_of(gid, 99);
	cr_assert_eq(ddps_sac_path(node[0].c, gid, now), 0);
	run_ib_sa(10 * MS);
	cr_expect_eq(node[0].n_path, 2);
	cr_expect_not(node[0].has_path);
	cr_expect_eq(ddps_sac_stats(node[0].c)->sac_refused, 1);
}

Test(ib_sa, queries_are_repeated_and_given_up, .init = init, .fini = fini)
{
	uint8_t gid[16];

	deaf = true;
	gid_of(gid, 51);
	cr_assert_eq(ddps_sac_path(node[0].c, gid, now), 0);
	cr_assert_eq(ddps_sac_join(node[0].c, broadcast, now), 0);
	run_ib_sa(4 * SEC);
	cr_expect_eq(node[0].n_path, 1);
	cr_expect_not(node[0].has_path);
	cr_expect_eq(node[0].err, DDPS_E_TIMEDOUT);
	cr_expect_eq(ddps_sac_stats(node[0].c)->sac_unanswered, 2);
	deaf = false; /* the administration comes late; a group that is wanted is asked for still */
	run_ib_sa(20 * SEC);
	cr_expect_eq(node[0].n_joined, 1);
}

Test(ib_sa, mlids_survive_the_administration, .init = init, .fini = fini)
{
	uint16_t mlid;

	all_join();
	cr_assert_eq(ddps_sac_join(node[0].c, group1, now), 0);
	cr_assert_eq(ddps_sac_join(node[1].c, group2, now), 0);
	run_ib_sa(10 * MS);
	mlid = node[0].rec.mlid;
	cr_expect_neq(mlid, node[1].rec.mlid);
	ddps_sa_free(sa);
	sa_start();
	cr_assert_eq(ddps_sac_join(node[3].c, broadcast, now), 0);
	run_ib_sa(10 * MS);
	cr_assert_eq(ddps_sac_join(node[3].c, group2, now), 0);
	cr_assert_eq(ddps_sac_join(node[3].c, group1, now), 0);
	run_ib_sa(10 * MS);
	cr_expect_eq(node[3].rec.mlid, mlid);
}

/* It knows nobody, and is not asked for a path: those that had subscribed notice. */
Test(ib_sa, nodes_come_to_an_administration_that_starts_anew, .init = init_quick, .fini = fini,
     .description = "4391-10-5 4391-10-7")
{
	uint8_t gid[16];

	all_join();
	cr_assert_eq(ddps_sac_join(node[2].c, group1, now), 0);
	run_ib_sa(10 * MS);
	ddps_sa_free(sa);
	sa_start();
	gid_of(gid, 99); /* a port that asks for a path is known, but is in no group */
	cr_assert_eq(ddps_sac_path(node[3].c, gid, now), 0);
	run_ib_sa(6 * SEC);
	for (unsigned i = 0; i < NODES; i++) {
		cr_expect_eq(ddps_sac_stats(node[i].c)->sac_forgotten, 1);
		cr_expect(ddps_sac_link(node[i].c), "node %u has the link's values again", i);
	}
	gid_of(gid, 51);
	cr_assert_eq(ddps_sac_path(node[0].c, gid, now), 0);
	run_ib_sa(10 * MS);
	cr_expect(node[0].has_path, "the other has registered itself");
	cr_expect_eq(ddps_sa_stats(sa)->sa_groups, 1, "so has the group");
	cr_assert_eq(ddps_sac_join(node[1].c, group2, now), 0);
	run_ib_sa(10 * MS);
	cr_expect_geq(ddps_sac_stats(node[0].c)->sac_reports, 1, "subscribed again");
	run_ib_sa(60 * SEC);
	cr_expect_eq(ddps_sac_stats(node[0].c)->sac_forgotten, 1, "once");
}

/* It began between the answer to the join and the subscription, so nothing that it refuses was granted. */
Test(ib_sa, an_administration_that_starts_anew_before_it_grants, .init = init_quick, .fini = fini,
     .description = "4391-10-5 4391-10-7")
{
	uint8_t gid[16];

	refusing = true;
	all_join();
	ddps_sa_free(sa);
	sa_start();
	refusing = false;
	run_ib_sa(6 * SEC);
	gid_of(gid, 51);
	cr_assert_eq(ddps_sac_path(node[0].c, gid, now), 0);
	run_ib_sa(10 * MS);
	cr_expect(node[0].has_path, "the other has registered itself");
}

/* What is granted proves nothing where the other never is. */
Test(ib_sa, one_subscription_that_is_never_granted, .init = init_quick, .fini = fini,
     .description = "4391-10-5")
{
	refusing = true;
	granted_trap = 66;
	all_join();
	run_ib_sa(100 * SEC);
	cr_expect_leq(ddps_sac_stats(node[0].c)->sac_forgotten, 7);
}

/* It may be another one each time, which is less and less likely. */
Test(ib_sa, subscriptions_that_are_never_granted, .init = init_quick, .fini = fini,
     .description = "4391-10-5")
{
	uint64_t first;

	refusing = true;
	all_join();
	run_ib_sa(100 * SEC);
	first = ddps_sac_stats(node[0].c)->sac_forgotten;
	cr_expect_leq(first, 7);
	run_ib_sa(300 * SEC);
	cr_expect_leq(ddps_sac_stats(node[0].c)->sac_forgotten, first + 3);
	refusing = false;
	run_ib_sa(6 * SEC);
	first = ddps_sac_stats(node[0].c)->sac_forgotten;
	refusing = true; /* one that grants no more: joined again, not without end */
	run_ib_sa(100 * SEC);
	cr_expect_gt(ddps_sac_stats(node[0].c)->sac_forgotten, first);
	cr_expect_leq(ddps_sac_stats(node[0].c)->sac_forgotten, first + 7);
}
