/* SPDX-License-Identifier: BSD-2-Clause */
/* Subnet administration: a GID that two ports say they have, that moves, or that a port changes. */
#include "ib_sa_fixture.h"
#include <stdio.h>

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
