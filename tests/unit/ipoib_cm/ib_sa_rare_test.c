/* SPDX-License-Identifier: BSD-2-Clause */
/* Subnet administration: answers that cannot be, tables that are full, queries that few ask. */
#include "ib_sa_fixture.h"
#include "unit/mem_fixture.h"

/* ---- answers to the client ---- */

/* To the query that was sent last, the wire being empty afterwards. */
static struct ddps_sa_head get_last_query_head(void)
{
	struct ddps_sa_head h;

	cr_assert_geq(n_wire, 1);
	cr_assert_eq(ddps_sa_mad_head(&h, wire[n_wire - 1].mad), 0);
	n_wire = 0;
	h.method = DDPS_SA_GET_RESP;
	return h;
}

static struct ddps_sa_pr good_path(void)
{
	struct ddps_sa_pr pr = { .dlid = 3, .slid = 2, .mtu = 0x84, .rate = 0x87, .life = 0x92 };

	gid_of(pr.dgid, 51);
	return pr;
}

static void answer_path(struct ddps_sa_head h, const struct ddps_sa_pr *pr)
{
	uint8_t mad[DDPS_CM_MAD_LEN];

	ddps_sa_mad_begin(mad, &h);
	ddps_sa_pr_put(mad, pr);
	ddps_sac_rx(node[0].c, mad, now);
}

#define PATH(change, good)                                                                         \
	do {                                                                                       \
		struct ddps_sa_pr pr = good_path();                                                \
		uint64_t bad = ddps_sac_stats(node[0].c)->sac_bad;                                 \
		unsigned n = node[0].n_path;                                                       \
		cr_assert_eq(ddps_sac_path(node[0].c, pr.dgid, now), 0);                           \
		change;                                                                            \
		answer_path(get_last_query_head(), &pr);                                           \
		cr_expect_eq(node[0].n_path, n + 1, #change);                                      \
		cr_expect_eq(node[0].has_path, good, #change);                                     \
		cr_expect_eq(ddps_sac_stats(node[0].c)->sac_bad, bad + !(good), #change);          \
	} while (0)

Test(ib_sa_rare, paths_that_cannot_be, .init = init, .fini = fini)
{
	PATH((void)pr, true);
	PATH(pr.dlid = 0, false);
	PATH(pr.dlid = 0xbfff, true);
	PATH(pr.dlid = 0xc000, false);
	PATH(pr.slid = 0, false);
	PATH(pr.mtu = 0x80, false);
	PATH(pr.mtu = 0x81, true);
	PATH(pr.mtu = 0x85, true);
	PATH(pr.mtu = 0x86, false);
	PATH(pr.life = 0x9f, true);
	PATH(pr.life = 0xa0, false);
	PATH(pr.dgid[15]++, false);
}

Test(ib_sa_rare, an_answer_of_another_attribute, .init = init, .fini = fini)
{
	struct ddps_sa_pr pr = good_path();
	struct ddps_sa_head h;

	cr_assert_eq(ddps_sac_path(node[0].c, pr.dgid, now), 0);
	h = get_last_query_head();
	h.attr = DDPS_SA_MCMEMBER_RECORD;
	answer_path(h, &pr);
	cr_expect_eq(node[0].n_path, 0, "the query goes on");
	cr_expect_eq(ddps_sac_stats(node[0].c)->sac_bad, 1);
	h.attr = DDPS_SA_PATH_RECORD;
	answer_path(h, &pr);
	cr_expect_eq(node[0].n_path, 1);
	answer_path(h, &pr);
	cr_expect_eq(ddps_sac_stats(node[0].c)->sac_late, 1);
}

static void answer_group(struct ddps_sa_head h, const struct ddps_sa_mcm *r)
{
	uint8_t mad[DDPS_CM_MAD_LEN];

	ddps_sa_mad_begin(mad, &h);
	ddps_sa_mcm_put(mad, r);
	ddps_sac_rx(node[0].c, mad, now);
}

Test(ib_sa_rare, groups_that_cannot_be, .init = init, .fini = fini)
{
	static const struct {
		uint16_t mlid;
		uint8_t mtu;
	} row[] = { { 0xbfff, 0x84 }, { 0xffff, 0x84 }, { 0xc000, 0x80 }, { 0xc000, 0x86 } };
	struct ddps_sa_mcm r = { .qkey = 1, .pkey = 0xffff, .join = 1 };
	struct ddps_sa_head h;

	cr_assert_eq(ddps_sac_join(node[0].c, broadcast, now), 0);
	h = get_last_query_head();
	memcpy(r.mgid, broadcast, 16);
	for (unsigned i = 0; i < sizeof(row) / sizeof(*row); i++) {
		r.mlid = row[i].mlid;
		r.mtu = row[i].mtu;
		answer_group(h, &r);
		cr_expect_eq(ddps_sac_stats(node[0].c)->sac_bad, i + 1);
		cr_expect_null(ddps_sac_link(node[0].c));
	}
	r.mlid = 0xfffe;
	r.mtu = 0x85;
	answer_group(h, &r);
	cr_expect_eq(node[0].n_joined, 1, "the query went on, and this is its answer");
	cr_expect_eq(ddps_sac_link(node[0].c)->mlid, 0xfffe);
}

/* Transaction IDs go around, and never are what stands for none. */
Test(ib_sa_rare, transactions_go_around, .init = init, .fini = fini)
{
	const struct ddps_sac_config c = {
		.pkey = 0xffff, .seed = UINT32_MAX, .ops = &ops, .user = &node[0]
	};
	struct ddps_sa_pr pr = good_path();

	ddps_sac_free(node[0].c);
	node[0].c = ddps_sac_new(&c);
	for (unsigned i = 0; i < 3; i++) {
		struct ddps_sa_head h;

		cr_assert_eq(ddps_sac_path(node[0].c, pr.dgid, now), 0);
		h = get_last_query_head();
		cr_expect_neq((uint32_t)h.tid, 0);
		answer_path(h, &pr);
		cr_expect_eq(node[0].n_path, i + 1);
	}
}

/* ---- the client's tables ---- */

Test(ib_sa_rare, paths_are_bounded, .init = init, .fini = fini)
{
	uint8_t gid[16];

	deaf = true;
	for (unsigned i = 0; i < DDPS_SAC_PATHS; i++) {
		gid_of(gid, 100 + i);
		cr_assert_eq(ddps_sac_path(node[0].c, gid, now), 0);
	}
	gid_of(gid, 51);
	cr_expect_eq(ddps_sac_path(node[0].c, gid, now), DDPS_E_AGAIN);
	cr_expect_eq(ddps_sac_stats(node[0].c)->sac_full, 1);
	run_ib_sa(10 * SEC);
	cr_expect_eq(node[0].n_path, DDPS_SAC_PATHS, "none is answered");
	cr_expect_eq(ddps_sac_path(node[0].c, gid, now), 0);
}

static const uint8_t *group_nr(unsigned i)
{
	static uint8_t mgid[16];

	memcpy(mgid, group1, 16);
	mgid[13] = (uint8_t)(i >> 8);
	mgid[14] = (uint8_t)i;
	return mgid;
}

/* What is joined stays; what is only sent to gives way to the next. */
Test(ib_sa_rare, groups_are_bounded, .init = init, .fini = fini)
{
	const struct ddps_sa_mcm *rec;

	all_join();
	for (unsigned i = 1; i < DDPS_SAC_GROUPS + 10; i++) {
		cr_assert_eq(open_group(&node[0], group_nr(i), &rec), DDPS_E_AGAIN);
		run_ib_sa(10 * MS);
	}
	cr_expect_eq(ddps_sac_stats(node[0].c)->sac_full, 0);
	cr_expect(ddps_sac_link(node[0].c), "that one is joined");
	for (unsigned i = 1; i < DDPS_SAC_GROUPS; i++)
		cr_assert_eq(ddps_sac_join(node[0].c, group_nr(200 + i), now), 0);
	cr_expect_eq(ddps_sac_join(node[0].c, group_nr(500), now), DDPS_E_LIMIT);
	cr_expect_eq(open_group(&node[0], group_nr(500), &rec), DDPS_E_LIMIT);
	cr_expect_eq(ddps_sac_stats(node[0].c)->sac_full, 2);
	ddps_sac_leave(node[0].c, group_nr(500), now); /* it is not in there */
	ddps_sac_leave(node[0].c, group_nr(201), now);
	cr_expect_eq(ddps_sac_join(node[0].c, group_nr(500), now), 0);
}

/* Asked for less and less often, but for ever. */
Test(ib_sa_rare, a_group_that_is_wanted_is_asked_for_without_end, .init = init, .fini = fini)
{
	deaf = true;
	cr_assert_eq(ddps_sac_join(node[0].c, broadcast, now), 0);
	run_ib_sa(1000 * SEC);
	cr_expect_eq(node[0].n_joined, 0);
	deaf = false;
	run_ib_sa(200 * SEC);
	cr_expect_eq(node[0].n_joined, 1);
}

static void report_ib_sa_rare(uint16_t trap, const uint8_t *mgid)
{
	const struct ddps_sa_head h = { .method = DDPS_SA_REPORT,
					.attr = DDPS_SA_NOTICE,
					.tid = 9 };
	struct ddps_sa_notice n = { .trap = trap };
	uint8_t mad[DDPS_CM_MAD_LEN];

	memcpy(n.gid, mgid, 16);
	ddps_sa_mad_begin(mad, &h);
	ddps_sa_notice_put(mad, &n);
	ddps_sac_rx(node[0].c, mad, now);
}

/* A report of a new group ends the wait for it [4391-10-6]. */
Test(ib_sa_rare, a_group_that_is_waited_for_appears, .init = init, .fini = fini,
     .description = "4391-10-6")
{
	deaf = true;
	cr_assert_eq(ddps_sac_join(node[0].c, broadcast, now), 0);
	for (unsigned i = 0; node[0].err != DDPS_E_TIMEDOUT; i++) {
		cr_assert_lt(i, 1000);
		run_ib_sa(10 * MS);
	}
	deaf = false;
	report_ib_sa_rare(66, broadcast);
	run_ib_sa(10 * MS);
	cr_expect_eq(node[0].n_joined, 1);
	report_ib_sa_rare(66, broadcast);
	report_ib_sa_rare(66, group2); /* nobody's */
	run_ib_sa(10 * MS);
	cr_expect_eq(node[0].n_joined, 1, "once");
}

/* One that somebody waits for to send is asked for anew, in whatever state it is. */
Test(ib_sa_rare, what_is_asked_for_survives_a_renewal, .init = init, .fini = fini)
{
	const struct ddps_sa_mcm *rec;

	all_join();
	cr_assert_eq(ddps_sac_join(node[1].c, group1, now), 0);
	run_ib_sa(10 * MS);
	for (unsigned step = 0; step < 2; step++) {
		node[0].there = false;
		cr_assert_eq(open_group(&node[0], group1, &rec), DDPS_E_AGAIN);
		if (step) { /* its answer, and what is asked after it is lost */
			ddps_sa_rx(sa, node[0].lid, wire[n_wire - 1].mad, now);
			ddps_sac_rx(node[0].c, wire[n_wire - 1].mad, now);
		}
		n_wire = 0;
		cr_expect_not(node[0].there);
		ddps_sac_renew(node[0].c, now);
		run_ib_sa(10 * MS);
		cr_expect(node[0].there);
		cr_expect_eq(open_group(&node[0], group1, &rec), 0);
		ddps_sac_leave(node[0].c, group1, now);
		run_ib_sa(10 * MS);
	}
}

/* ---- queries of the administration ---- */

static struct ddps_sa_head ask_ib_sa_rare(uint16_t lid, uint8_t method, uint16_t attr,
					  uint64_t mask, uint8_t mad[DDPS_CM_MAD_LEN])
{
	struct ddps_sa_head h = { .method = method, .attr = attr, .tid = 7, .mask = mask };
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
	return h;
}

/* A query for a path; what it finds is in @pr. */
static uint16_t ask_rare_path(uint16_t from, uint64_t mask, struct ddps_sa_pr *pr)
{
	uint8_t mad[DDPS_CM_MAD_LEN] = { 0 };
	uint16_t status;

	ddps_sa_pr_put(mad, pr);
	status = ask_ib_sa_rare(from, DDPS_SA_GET, DDPS_SA_PATH_RECORD, mask, mad).status;
	ddps_sa_pr_get(pr, mad);
	return status;
}

Test(ib_sa_rare, paths_to_groups, .init = init, .fini = fini)
{
	struct ddps_sa_pr pr = { 0 };

	all_join();
	memcpy(pr.dgid, broadcast, 16);
	cr_expect_eq(ask_rare_path(2, DDPS_PR_DGID | DDPS_PR_SLID, (pr.slid = 2, &pr)), DDPS_SA_OK);
	cr_expect_eq(pr.dlid, 0xc000);
	cr_expect_arr_eq(pr.dgid, broadcast, 16);
	memcpy(pr.dgid, group2, 16);
	cr_expect_eq(ask_rare_path(2, DDPS_PR_DGID | DDPS_PR_SLID, &pr), DDPS_SA_NO_RECORDS);
}

Test(ib_sa_rare, paths_by_lid, .init = init, .fini = fini)
{
	struct ddps_sa_pr pr = { .dlid = 3, .slid = 2 };
	uint8_t gid[16];

	all_join();
	cr_expect_eq(ask_rare_path(2, DDPS_PR_DLID | DDPS_PR_SLID, &pr), DDPS_SA_OK);
	gid_of(gid, 51);
	cr_expect_arr_eq(pr.dgid, gid, 16);
	cr_expect_eq(pr.dlid, 3);
	pr.dlid = 77;
	cr_expect_eq(ask_rare_path(2, DDPS_PR_DLID | DDPS_PR_SLID, &pr), DDPS_SA_NO_RECORDS);
	pr.dlid = 0xc000;
	cr_expect_eq(ask_rare_path(2, DDPS_PR_DLID | DDPS_PR_SLID, &pr), DDPS_SA_NO_RECORDS);
	pr.dlid = 3;
	cr_expect_eq(ask_rare_path(2, DDPS_PR_SLID, &pr), DDPS_SA_OK, "to anywhere");
	pr.slid = 77;
	cr_expect_eq(ask_rare_path(2, DDPS_PR_DLID | DDPS_PR_SLID, &pr), DDPS_SA_NO_RECORDS,
		     "from nobody");
	/* for another port, in a partition */
	gid_of(pr.sgid, 52);
	pr.pkey = 0xffff;
	pr.dlid = 3;
	cr_expect_eq(ask_rare_path(2, DDPS_PR_DLID | DDPS_PR_SGID | DDPS_PR_PKEY, &pr), DDPS_SA_OK);
	cr_expect_eq(pr.slid, 4);
	cr_expect_eq(pr.dlid, 3);
}

Test(ib_sa_rare, who_has_a_known_gid_but_is_not_known, .init = init, .fini = fini)
{
	struct ddps_sa_pr pr = { .dlid = 3 };
	uint8_t mad[DDPS_CM_MAD_LEN];

	all_join();
	gid_of(pr.sgid, 50);
	ddps_sa_pr_put(mad, &pr);
	claim(40, DDPS_SA_GET, DDPS_SA_PATH_RECORD, DDPS_PR_DLID | DDPS_PR_SGID, mad);
	cr_expect_eq(ask_rare_path(40, DDPS_PR_DLID | DDPS_PR_SGID, &pr), DDPS_SA_OK);
	cr_expect_eq(pr.slid, 40, "it has moved");
	cr_expect_eq(ddps_sa_stats(sa)->sa_moved, 1);
	gid_of(pr.sgid, 100); /* the administration itself does not move */
	cr_expect_eq(ask_rare_path(41, DDPS_PR_DLID | DDPS_PR_SGID, &pr), DDPS_SA_NO_RECORDS);
	cr_expect_eq(ddps_sa_stats(sa)->sa_moved, 1);
}

Test(ib_sa_rare, senders_that_cannot_be, .init = init, .fini = fini)
{
	const struct ddps_sa_head h = { .method = DDPS_SA_GET, .attr = DDPS_SA_PATH_RECORD };
	uint8_t mad[DDPS_CM_MAD_LEN];

	ddps_sa_mad_begin(mad, &h);
	ddps_sa_rx(sa, 0, mad, now);
	ddps_sa_rx(sa, DDPS_SA_LIDS, mad, now);
	cr_expect_eq(ddps_sa_stats(sa)->sa_bad, 2);
	cr_expect_eq(n_wire, 0);
	ddps_sa_rx(sa, DDPS_SA_LIDS - 1, mad, now);
	cr_expect_eq(n_wire, 1);
}

Test(ib_sa_rare, the_port_of_the_administration, .init = init, .fini = fini)
{
	uint8_t mad[DDPS_CM_MAD_LEN] = { 0 };

	ddps_sa_record(mad)[1] = SA_LID;
	cr_expect_eq(ask_ib_sa_rare(2, DDPS_SA_GET, DDPS_SA_PORT_INFO_RECORD, 1, mad).status,
		     DDPS_SA_OK);
	cr_expect_eq(ddps_sa_record(mad)[1], SA_LID);
}

/* ---- subscriptions ---- */

static uint16_t subscribe_ib_sa_rare(uint16_t lid, const struct ddps_sa_inform *r)
{
	uint8_t mad[DDPS_CM_MAD_LEN] = { 0 };

	ddps_sa_inform_put(mad, r);
	return ask_ib_sa_rare(lid, DDPS_SA_SET, DDPS_SA_INFORM_INFO, 0, mad).status;
}

/* How many are informed of a group that nobody has had, and that @lid makes. */
static unsigned count_informed_by(uint16_t lid, unsigned nr)
{
	uint64_t n = ddps_sa_stats(sa)->sa_reports;
	uint8_t mad[DDPS_CM_MAD_LEN] = { 0 };
	struct ddps_sa_mcm r = { .qkey = 0x1234, .pkey = 0xffff, .scope = 2, .join = 1 };

	memcpy(r.mgid, group_nr(nr), 16);
	gid_of(r.port_gid, lid + 48u);
	ddps_sa_mcm_put(mad, &r);
	cr_assert_eq(ask_ib_sa_rare(lid, DDPS_SA_SET, DDPS_SA_MCMEMBER_RECORD, DDPS_MC_CREATE, mad)
			     .status,
		     0);
	return (unsigned)(ddps_sa_stats(sa)->sa_reports - n);
}

static unsigned count_informed(unsigned nr)
{
	return count_informed_by(4, nr);
}

Test(ib_sa_rare, subscriptions_that_are_taken, .init = init, .fini = fini,
     .description = "4391-10-5")
{
	const struct ddps_sa_inform none = {
		.lid_first = 0xffff, .type = 3, .trap = 66, .generic = true
	};
	struct ddps_sa_inform r;
	unsigned before;

	all_join();
	r = none; /* all have subscribed by themselves; two of them end that */
	for (uint16_t trap = 66; trap <= 67; trap++)
		for (uint16_t lid = 2; lid < 4; lid++) {
			r.trap = trap;
			cr_expect_eq(subscribe_ib_sa_rare(lid, &r), DDPS_SA_OK);
		}
	before = count_informed(1);
#define TAKEN(change, status)                                                                      \
	do {                                                                                       \
		r = none;                                                                          \
		r.subscribe = true;                                                                \
		change;                                                                            \
		cr_expect_eq(subscribe_ib_sa_rare(2, &r), status, #change);                        \
	} while (0)
	TAKEN(r.generic = false, DDPS_SA_REQ_INVALID);
	TAKEN(r.type = 4, DDPS_SA_REQ_INVALID);
	TAKEN(r.lid_first = 2, DDPS_SA_REQ_INVALID);
	TAKEN(r.gid[0] = 1, DDPS_SA_REQ_INVALID);
	TAKEN(r.trap = 99, DDPS_SA_REQ_INVALID);
	cr_expect_eq(count_informed(2), before);
	TAKEN(r.type = 0xffff, DDPS_SA_OK);
	cr_expect_eq(count_informed(3), before + 1);
	r.subscribe = false;
	cr_expect_eq(subscribe_ib_sa_rare(2, &r), DDPS_SA_OK);
	cr_expect_eq(count_informed(4), before);
	TAKEN(r.trap = 0xffff, DDPS_SA_OK);
	cr_expect_eq(count_informed(5), before + 1, "all of them are that one, too");
}

/* Reports are repeated until they are answered; no more are kept than there is room. */
Test(ib_sa_rare, reports_are_bounded, .init = init, .fini = fini, .description = "4391-10-6")
{
	all_join();
	run_ib_sa(10 * MS);
	for (unsigned i = 1; i <= DDPS_SA_REPORTS / NODES; i++)
		cr_assert_eq(count_informed(i), NODES, "all have subscribed");
	cr_expect_eq(count_informed_by(5, 100), 0, "nobody has answered yet");
	cr_expect_eq(ddps_sa_stats(sa)->sa_unheard, NODES);
	ddps_sa_tick(sa, now); /* none is due */
	cr_expect_eq(ddps_sa_stats(sa)->sa_reports, DDPS_SA_REPORTS);
	cr_expect_eq(n_wire, 0);
}

/* ---- memory ---- */

Test(ib_sa_rare, no_memory, .init = init, .fini = fini)
{
	struct ddps_sa_config s = { .lid = SA_LID, .pkey = { 0xffff }, .send = on_sa_send };
	struct ddps_sac_config c = { .pkey = 0xffff, .ops = &ops };

	mem_fail(1);
	cr_expect_null(ddps_sa_new(&s));
	mem_fail(1);
	cr_expect_null(ddps_sac_new(&c));
	ddps_sa_free(NULL);
	ddps_sac_free(NULL);
}

/* ---- datagrams to groups ---- */

static unsigned n_sent;
static uint16_t sent_to;

static int on_group(void *user, const struct ddps_sa_mcm *rec, unsigned group, const void *frame,
		    size_t len)
{
	(void)user, (void)group, (void)frame, (void)len;
	n_sent++;
	sent_to = rec->mlid;
	return 0;
}

/* What an IP packet's destination says of its scope [4391-10-2]; all else stays on the link. */
Test(ib_sa_rare, what_may_leave_the_link, .init = init, .fini = fini, .description = "4391-10-2")
{
	static const struct {
		uint8_t type[2];
		uint8_t dst[16]; /* at its place in the header */
		size_t len;
		bool beyond;
	} row[] = {
		{ { 8, 0 }, { 224, 0, 0, 9 }, 24, false },
		{ { 8, 0 }, { 224, 0, 1, 9 }, 24, true },
		{ { 8, 0 }, { 224, 1, 0, 9 }, 24, true },
		{ { 8, 0 }, { 239, 0, 0, 9 }, 24, true },
		{ { 8, 0 }, { 240, 0, 0, 9 }, 24, false },
		{ { 8, 0 }, { 10, 0, 0, 9 }, 24, false },
		{ { 8, 0 }, { 239, 0, 0, 9 }, 23, false },
		{ { 0x86, 0xdd }, { 0xff, 0x12 }, 44, false },
		{ { 0x86, 0xdd }, { 0xff, 0x15 }, 44, true },
		{ { 0x86, 0xdd }, { 0xfe, 0x15 }, 44, false },
		{ { 0x86, 0xdd }, { 0xff, 0x15 }, 43, false },
		{ { 8, 6 }, { 239, 0, 0, 9 }, 44, false },
		{ { 8, 0 }, { 239, 0, 0, 9 }, 3, false },
	};
	uint64_t held = 0, none = 0;
	struct ddps_togroup t = {
		.sac = node[0].c, .send = on_group, .n_held = &held, .n_none = &none
	};
	const struct ddps_sa_mcm *rec;
	uint8_t frame[44];
	unsigned group;

	all_join();
	cr_assert_eq(ddps_sac_open(node[0].c, group1, now, &rec, &group), DDPS_E_AGAIN);
	run_ib_sa(10 * MS);
	cr_assert_eq(ddps_sac_open(node[0].c, group1, now, &rec, &group), DDPS_E_ADDRESS);
	for (unsigned i = 0; i < sizeof(row) / sizeof(*row); i++) {
		const uint64_t was = held;

		memset(frame, 0, sizeof(frame));
		memcpy(frame, row[i].type, 2);
		if (row[i].type[0] == 8)
			memcpy(frame + 4 + 16, row[i].dst, 4);
		else
			memcpy(frame + 4 + 24, row[i].dst, 16);
		cr_expect_eq(ddps_togroup(&t, group1, frame, row[i].len, now),
			     row[i].beyond ? 0 : DDPS_E_ADDRESS, "row %u", i);
		cr_expect_eq(held - was, row[i].beyond, "row %u: waits for the routers' group", i);
	}
	cr_expect_eq(n_sent, 0);
	ddps_togroup_drop(&t);
}

Test(ib_sa_rare, frames_that_cannot_wait, .init = init, .fini = fini)
{
	static const uint8_t frame[4097] = { 8 };
	uint64_t held = 0, none = 0;
	struct ddps_togroup t = {
		.sac = node[0].c, .send = on_group, .n_held = &held, .n_none = &none
	};

	all_join();
	cr_expect_eq(ddps_togroup(&t, group1, frame, 4097, now), DDPS_E_AGAIN, "too long");
	mem_fail(1);
	cr_expect_eq(ddps_togroup(&t, group1, frame, 4096, now), DDPS_E_AGAIN, "no memory");
	cr_expect_eq(held, 0);
	for (unsigned i = 0; i < DDPS_IB_HELD_MAX; i++)
		cr_expect_eq(ddps_togroup(&t, group1, frame, 4096, now), 0);
	cr_expect_eq(ddps_togroup(&t, group1, frame, 4096, now), DDPS_E_AGAIN, "too many");
	cr_expect_eq(held, DDPS_IB_HELD_MAX);
	cr_expect_eq(ddps_togroup(&t, broadcast, frame, 100, now), 0);
	cr_expect_eq(n_sent, 1);
	cr_expect_eq(sent_to, 0xc000);
	ddps_togroup_drop(&t);
}
