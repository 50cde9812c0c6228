/* SPDX-License-Identifier: BSD-2-Clause */
/* Subnet administration: the link, paths, and an administration that starts anew. */
#include "ib_sa_fixture.h"
#include <stdio.h>

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

/* ---- sa gid ---- */

/* Subnet administration: a GID that two ports say they have, that moves, or that a port changes. */

/* The port at LID 2 + @i begins anew, with the GID of number @nr. */
static void begin_ib_sa_gid(unsigned i, unsigned nr)
{
	struct ddps_sac_config cfg = {
		.pkey = 0xffff, .seed = 77, .ops = &ops, .user = &node[i], .renew_ns = 5 * SEC
	};

	ddps_sac_free(node[i].c);
	node[i] = (struct node){ .lid = (uint16_t)(2 + i) };
	gid_of(cfg.gid, nr);
	memcpy(cfg.broadcast, broadcast, 16);
	node[i].c = ddps_sac_new(&cfg);
	cr_assert_eq(ddps_sac_join(node[i].c, broadcast, now), 0);
}

/* Where the path from node 1 to the GID of number @nr leads. */
static uint16_t get_ib_sa_gid_path_to(unsigned nr)
{
	uint8_t gid[16];

	gid_of(gid, nr);
	node[1].has_path = false;
	cr_assert_eq(ddps_sac_path(node[1].c, gid, now), 0);
	run_ib_sa(100 * MS);
	return node[1].has_path ? node[1].pr.dlid : 0;
}

static void expect_notice(const char *a, const char *b, const char *c)
{
	const char *text = ddps_sa_notice(sa);

	cr_assert(text, "nothing is said of %s", a);
	cr_expect(strstr(text, a) && strstr(text, b) && strstr(text, c), "%s", text);
}

/* Both are there: the first stays, the second is refused, and it is said. */
Test(ib_sa_gid, contact_35_two_nodes_with_one_gid, .init = init_quick, .fini = fini)
{
	all_join();
	begin_ib_sa_gid(2, 50);
	run_ib_sa(4 * SEC);
	cr_expect_eq(node[2].err, DDPS_E_BUSY);
	cr_expect_eq(node[2].n_joined, 0);
	cr_expect_eq(ddps_sa_stats(sa)->sa_moved, 0);
	cr_expect_gt(ddps_sa_stats(sa)->sa_conflicts, 0);
	expect_notice("fe80::32", "LID 2, which had it first", "LID 4, which is refused");
	cr_expect_null(ddps_sa_notice(sa));
	cr_expect_eq(get_ib_sa_gid_path_to(50), 2);
	cr_expect_eq(ddps_sac_stats(node[0].c)->sac_forgotten, 0);
	run_ib_sa(30 * SEC);
	cr_expect_null(ddps_sa_notice(sa), "once a minute");
	run_ib_sa(40 * SEC);
	expect_notice("two nodes have the GID", "LID 2", "LID 4");
	gone[0] = true; /* the first one ends */
	run_ib_sa(40 * SEC);
	cr_expect_eq(node[2].n_joined, 1);
	expect_notice("the GID fe80::32 is at LID 4 now", "LID 2", "does not answer");
	cr_expect_eq(get_ib_sa_gid_path_to(50), 4);
}

/* Whoever had it does not answer: within what a client's repetitions take, it is at the new place. */
Test(ib_sa_gid, contact_35_a_gid_that_moves, .init = init_quick, .fini = fini)
{
	all_join();
	gone[0] = true;
	begin_ib_sa_gid(2, 50);
	run_ib_sa(2 * SEC);
	cr_expect_eq(node[2].n_joined, 1);
	cr_expect_eq(node[2].err, 0);
	cr_expect_eq(ddps_sa_stats(sa)->sa_moved, 1);
	cr_expect_eq(ddps_sa_stats(sa)->sa_conflicts, 0);
	/* what LID 4 had before is another's now */
	expect_notice("the GID fe80::32 is at LID 4 now", "LID 2", "does not answer");
	cr_expect_eq(get_ib_sa_gid_path_to(50), 4);
	gone[0] = false; /* it was only away */
	run_ib_sa(10 * SEC);
	cr_expect_eq(get_ib_sa_gid_path_to(50), 4);
}

/* Each is where the other one was, and is there: neither holds on to what it had. */
Test(ib_sa_gid, contact_35_two_nodes_change_places, .init = init_quick, .fini = fini)
{
	all_join();
	begin_ib_sa_gid(0, 52);
	begin_ib_sa_gid(2, 50);
	run_ib_sa(4 * SEC);
	cr_expect_eq(node[0].n_joined, 1);
	cr_expect_eq(node[2].n_joined, 1);
	cr_expect_eq(get_ib_sa_gid_path_to(52), 2);
	cr_expect_eq(get_ib_sa_gid_path_to(50), 4);
}

/* A LID with another GID than before is taken, and said: it may be two nodes with one address. */
Test(ib_sa_gid, contact_35_a_port_with_another_gid, .init = init_quick, .fini = fini)
{
	all_join();
	begin_ib_sa_gid(2, 60);
	run_ib_sa(SEC);
	cr_expect_eq(node[2].n_joined, 1);
	cr_expect_eq(ddps_sa_stats(sa)->sa_renamed, 1);
	expect_notice("LID 4 has the GID fe80::3c now", "had fe80::34", "who else has its address");
	for (unsigned i = 0; i < 20; i++) { /* who does it again and again is said once */
		begin_ib_sa_gid(2, 61 + i);
		run_ib_sa(SEC);
	}
	cr_expect_eq(ddps_sa_stats(sa)->sa_renamed, 21);
	cr_expect_null(ddps_sa_notice(sa));
}

/* Nobody reads what is said: the first sentences are kept. */
Test(ib_sa_gid, contact_35_sentences_are_bounded, .init = init, .fini = fini)
{
	struct ddps_sa_mcm r = { .pkey = 0xffff, .join = DDPS_MC_FULL };
	const struct ddps_sa_head h = { .method = DDPS_SA_SET,
					.attr = DDPS_SA_MCMEMBER_RECORD,
					.mask = DDPS_MC_MGID | DDPS_MC_PORT_GID | DDPS_MC_PKEY |
						DDPS_MC_JOIN };
	uint8_t mad[DDPS_CM_MAD_LEN];
	unsigned n = 0;

	memcpy(r.mgid, broadcast, 16);
	gid_of(r.port_gid, 100); /* the administration's own */
	ddps_sa_mad_begin(mad, &h);
	ddps_sa_mcm_put(mad, &r);
	for (uint16_t lid = 10; lid < 30; lid++) {
		ddps_sa_rx(sa, lid, mad, now);
		n_wire = 0;
	}
	cr_expect_eq(ddps_sa_stats(sa)->sa_conflicts, 20);
	for (const char *text; (text = ddps_sa_notice(sa)); n++) {
		char want[20];

		snprintf(want, sizeof(want), "LID %u,", 10 + n);
		cr_expect(strstr(text, want), "%s", text);
	}
	cr_expect_eq(n, DDPS_SA_NOTICES);
}

/* To leave a group with the GID of another changes nothing. */
Test(ib_sa_gid, contact_35_a_farewell_in_the_name_of_another, .init = init, .fini = fini)
{
	struct ddps_sa_mcm r = { .pkey = 0xffff, .join = DDPS_MC_FULL };
	const struct ddps_sa_head h = { .method = DDPS_SA_DELETE,
					.attr = DDPS_SA_MCMEMBER_RECORD,
					.mask = DDPS_MC_MGID | DDPS_MC_PORT_GID | DDPS_MC_JOIN };
	uint8_t mad[DDPS_CM_MAD_LEN];

	all_join();
	memcpy(r.mgid, broadcast, 16);
	gid_of(r.port_gid, 50);
	ddps_sa_mad_begin(mad, &h);
	ddps_sa_mcm_put(mad, &r);
	ddps_sa_rx(sa, 40, mad, now);
	n_wire = 0;
	cr_expect_eq(ddps_sa_stats(sa)->sa_moved + ddps_sa_stats(sa)->sa_probes, 0);
	cr_expect_eq(get_ib_sa_gid_path_to(50), 2);
}
