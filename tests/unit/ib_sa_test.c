/* SPDX-License-Identifier: BSD-2-Clause */
/* Subnet administration: clients and the administration on a wire that the test controls. */
#include <criterion/criterion.h>
#include <string.h>
#include "ipoib_cm/ib/sa.h"
#include "ipoib_cm/ib/sac.h"

#define MS     1000000ull
#define SEC    (1000 * MS)
#define SA_LID 1
#define NODES  4
#define WIRE   512

struct node {
	struct ddps_sac *c;
	uint16_t lid;
	int err; /* of the last joined */
	unsigned n_joined, n_path, n_open;
	bool there, has_path;
	struct ddps_sa_mcm rec;
	struct ddps_sa_pr pr;
};

static struct {
	uint16_t from, to;
	uint8_t mad[DDPS_CM_MAD_LEN];
} wire[WIRE];
static unsigned n_wire;
static struct ddps_sa *sa;
static struct node node[NODES]; /* LIDs from 2 */
static uint64_t now;
static bool deaf;	  /* the administration hears nothing */
static uint64_t renew_ns; /* of subscriptions; 0: the default */
static bool refusing;	  /* it grants no subscription */
static uint8_t broadcast[16];

static const uint8_t group1[16] = { 0xff, 0x12, 0x40, 0x1b, 0xff, 0xff, [12] = 0x0f, 1, 2, 3 };
static const uint8_t group2[16] = { 0xff, 0x12, 0x60, 0x1b, 0xff, 0xff, [15] = 7 };

static void put(uint16_t from, uint16_t to, const uint8_t *mad)
{
	cr_assert_lt(n_wire, WIRE);
	wire[n_wire].from = from;
	wire[n_wire].to = to;
	memcpy(wire[n_wire++].mad, mad, DDPS_CM_MAD_LEN);
}

static void on_sa_send(void *user, uint16_t lid, const uint8_t *mad)
{
	(void)user;
	put(SA_LID, lid, mad);
}

static void on_send(void *user, const uint8_t *mad)
{
	put(((struct node *)user)->lid, SA_LID, mad);
}

static void on_joined(void *user, const uint8_t *mgid, int err, const struct ddps_sa_mcm *rec,
		      uint64_t t)
{
	struct node *n = user;

	cr_assert(t == now && !rec == !!err);
	n->err = err;
	n->n_joined += !err;
	if (rec) {
		cr_assert_arr_eq(rec->mgid, mgid, 16);
		n->rec = *rec;
	}
}

static void on_path(void *user, const uint8_t *gid, const struct ddps_sa_pr *pr, uint64_t t)
{
	struct node *n = user;

	(void)gid, (void)t;
	n->n_path++;
	n->has_path = pr;
	if (pr)
		n->pr = *pr;
}

static void on_open(void *user, unsigned group, bool there, uint64_t t)
{
	struct node *n = user;

	(void)t;
	cr_assert_lt(group, DDPS_SAC_GROUPS);
	n->n_open++;
	n->there = there;
}

static const struct ddps_sac_ops ops = { on_send, on_joined, on_path, on_open };

static void gid_of(uint8_t gid[16], unsigned lid)
{
	memset(gid, 0, 16);
	gid[0] = 0xfe;
	gid[1] = 0x80;
	gid[15] = (uint8_t)lid;
}

static void sa_start(void)
{
	struct ddps_sa_config cfg = { .lid = SA_LID,
				      .pkey = { 0xffff },
				      .qkey = 0x1234,
				      .mtu = 4,
				      .rate = 7,
				      .life = 18,
				      .scope = 2,
				      .send = on_sa_send };

	gid_of(cfg.gid, 100);
	sa = ddps_sa_new(&cfg);
	cr_assert(sa);
}

static void init(void)
{
	now = SEC;
	n_wire = 0;
	deaf = refusing = false;
	cr_assert_eq(ddps_ipoib_mgid_broadcast(broadcast, 0xffff, 2), 0);
	sa_start();
	for (unsigned i = 0; i < NODES; i++) {
		struct ddps_sac_config cfg = { .pkey = 0xffff,
					       .seed = 1000 * i,
					       .ops = &ops,
					       .user = &node[i],
					       .renew_ns = renew_ns };

		node[i] = (struct node){ .lid = (uint16_t)(2 + i) };
		gid_of(cfg.gid, 50 + i);
		memcpy(cfg.broadcast, broadcast, 16);
		node[i].c = ddps_sac_new(&cfg);
	}
}

static void init_quick(void)
{
	renew_ns = 5 * SEC;
	init();
}

static void fini(void)
{
	for (unsigned i = 0; i < NODES; i++)
		ddps_sac_free(node[i].c);
	ddps_sa_free(sa);
}

#define SaTest(name, ids) Test(ib_sa, name, .init = init, .fini = fini, .description = ids)

static bool refused(unsigned i)
{
	uint8_t mad[DDPS_CM_MAD_LEN];
	struct ddps_sa_head h;

	if (!refusing || ddps_sa_mad_head(&h, wire[i].mad) || h.attr != DDPS_SA_INFORM_INFO)
		return false;
	h.method = DDPS_SA_GET_RESP;
	h.status = DDPS_SA_REQ_INVALID;
	ddps_sa_mad_begin(mad, &h);
	put(SA_LID, wire[i].from, mad);
	return true;
}

static void settle(void)
{
	for (unsigned i = 0; i < n_wire; i++) {
		cr_assert_lt(i, WIRE);
		if (wire[i].to != SA_LID)
			ddps_sac_rx(node[wire[i].to - 2].c, wire[i].mad, now);
		else if (!deaf && !refused(i))
			ddps_sa_rx(sa, wire[i].from, wire[i].mad, now);
	}
	n_wire = 0;
}

/* For so long, with everything that timers do. */
static void run(uint64_t ns)
{
	uint64_t end = now + ns;

	for (;;) {
		uint64_t due = ddps_sa_due(sa);

		settle();
		for (unsigned i = 0; i < NODES; i++)
			due = ddps_sac_due(node[i].c) < due ? ddps_sac_due(node[i].c) : due;
		if (due > end)
			break;
		now = due > now ? due : now;
		ddps_sa_tick(sa, now);
		for (unsigned i = 0; i < NODES; i++)
			if (ddps_sac_due(node[i].c) <= now)
				ddps_sac_tick(node[i].c, now);
	}
	now = end;
}

static void all_join(void)
{
	for (unsigned i = 0; i < NODES; i++)
		cr_assert_eq(ddps_sac_join(node[i].c, broadcast, now), 0);
	run(10 * MS);
	for (unsigned i = 0; i < NODES; i++)
		cr_assert_eq(node[i].n_joined, 1);
}

static int open_group(struct node *n, const uint8_t *mgid, const struct ddps_sa_mcm **rec)
{
	unsigned g;

	return ddps_sac_open(n->c, mgid, now, rec, &g);
}

SaTest(broadcast_group_gives_the_link_its_values, "4391-5-3 4391-9.1.2-1")
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

SaTest(path_of_whoever_has_joined, "4391-9.1.2-2 4391-9.1.2-3")
{
	uint8_t gid[16];

	all_join();
	gid_of(gid, 51);
	cr_assert_eq(ddps_sac_path(node[0].c, gid, now), 0);
	cr_assert_eq(ddps_sac_path(node[0].c, gid, now), 0);
	run(10 * MS);
	cr_assert_eq(node[0].n_path, 1, "asked once");
	cr_assert(node[0].has_path);
	cr_expect_eq(node[0].pr.dlid, 3);
	cr_expect_eq(node[0].pr.slid, 2);
	cr_expect_eq(node[0].pr.hop, 0, "no GRH within the subnet");
	cr_expect_eq(node[0].pr.mtu, 0x84);
	gid_of(gid, 99);
	cr_assert_eq(ddps_sac_path(node[0].c, gid, now), 0);
	run(10 * MS);
	cr_expect_eq(node[0].n_path, 2);
	cr_expect_not(node[0].has_path);
	cr_expect_eq(ddps_sac_stats(node[0].c)->sac_refused, 1);
}

SaTest(queries_are_repeated_and_given_up, "")
{
	uint8_t gid[16];

	deaf = true;
	gid_of(gid, 51);
	cr_assert_eq(ddps_sac_path(node[0].c, gid, now), 0);
	cr_assert_eq(ddps_sac_join(node[0].c, broadcast, now), 0);
	run(4 * SEC);
	cr_expect_eq(node[0].n_path, 1);
	cr_expect_not(node[0].has_path);
	cr_expect_eq(node[0].err, DDPS_E_TIMEDOUT);
	cr_expect_eq(ddps_sac_stats(node[0].c)->sac_unanswered, 2);
	deaf = false; /* the administration comes late; a group that is wanted is asked for still */
	run(20 * SEC);
	cr_expect_eq(node[0].n_joined, 1);
}

SaTest(new_group_is_asked_for_like_the_broadcast_group, "4391-10-8 4391-10-9")
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

SaTest(group_is_made_by_its_first_member, "4391-10-7 4391-10-8 4391-10-9")
{
	all_join();
	cr_assert_eq(ddps_sac_join(node[0].c, group1, now), 0);
	cr_assert_eq(ddps_sac_join(node[1].c, group1, now), 0);
	run(10 * MS);
	cr_expect_eq(node[0].n_joined + node[1].n_joined, 4);
	cr_expect_eq(node[0].rec.mlid, node[1].rec.mlid);
	cr_expect_neq(node[0].rec.mlid, 0xc000);
	cr_expect_eq(node[0].rec.qkey, 0x1234);
	cr_expect_eq(ddps_sa_stats(sa)->sa_groups, 1);
}

SaTest(nothing_is_sent_before_the_group_is_known_and_joined, "4391-10-1 4391-10-3 4391-10-4")
{
	const struct ddps_sa_mcm *rec;
	uint64_t asked;

	all_join();
	cr_assert_eq(ddps_sac_join(node[0].c, group1, now), 0);
	run(10 * MS);
	cr_expect_eq(open_group(&node[1], group1, &rec), DDPS_E_AGAIN);
	cr_expect_eq(open_group(&node[1], group1, &rec), DDPS_E_AGAIN);
	run(10 * MS);
	cr_assert_eq(open_group(&node[1], group1, &rec), 0);
	cr_expect_eq(rec->mlid, node[0].rec.mlid);
	cr_expect_eq(rec->join, DDPS_MC_SEND_NON);
	cr_expect_null(ddps_sac_member(node[1].c, rec->mlid), "it sends, it does not receive");
	asked = ddps_sac_stats(node[1].c)->sac_queries;
	cr_assert_eq(open_group(&node[1], group1, &rec), 0);
	run(10 * SEC);
	cr_expect_eq(ddps_sac_stats(node[1].c)->sac_queries, asked, "remembered");
	run(60 * SEC); /* idle: left, so whoever sends then asks anew */
	cr_expect_eq(ddps_sac_stats(node[1].c)->sac_queries, asked + 1);
	cr_expect_eq(open_group(&node[1], group1, &rec), DDPS_E_AGAIN);
}

/* Joined while it is asked about, or joined, for sending: full membership comes of it. */
SaTest(join_of_a_group_that_is_being_asked_about, "")
{
	const struct ddps_sa_mcm *rec;

	all_join();
	cr_assert_eq(ddps_sac_join(node[2].c, group2, now), 0);
	run(10 * MS);
	for (unsigned i = 0; i < 2; i++) { /* not there, and there */
		const uint8_t *mgid = i ? group2 : group1;

		cr_expect_eq(open_group(&node[0], mgid, &rec), DDPS_E_AGAIN);
		cr_assert_eq(ddps_sac_join(node[0].c, mgid, now), 0);
		run(10 * MS);
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
	run(10 * MS);
	cr_expect_eq(node[1].n_joined, 2);
	cr_expect_eq(node[1].rec.join, DDPS_MC_FULL);
	cr_expect_eq(ddps_sac_stats(node[0].c)->sac_bad + ddps_sac_stats(node[1].c)->sac_bad, 0);
}

SaTest(groups_that_come_and_go_are_reported, "4391-10-4 4391-10-5 4391-10-6 4391-10-10")
{
	const struct ddps_sa_mcm *rec;

	all_join();
	cr_expect_eq(open_group(&node[1], group1, &rec), DDPS_E_AGAIN);
	run(10 * MS);
	cr_expect_eq(open_group(&node[1], group1, &rec), DDPS_E_ADDRESS);
	cr_expect(node[1].n_open == 2 && !node[1].there, "the broadcast group, and not this one");
	cr_assert_eq(ddps_sac_join(node[0].c, group1, now), 0);
	run(10 * MS);
	cr_expect_eq(ddps_sac_stats(node[1].c)->sac_reports, 1);
	cr_assert_eq(open_group(&node[1], group1, &rec), 0, "joined because of the report");
	ddps_sac_leave(node[0].c, group1, now);
	run(10 * MS);
	cr_expect_eq(ddps_sac_stats(node[1].c)->sac_reports, 2);
	cr_expect_eq(open_group(&node[1], group1, &rec), DDPS_E_ADDRESS);
	cr_expect_eq(ddps_sa_stats(sa)->sa_unheard, 0);
}

/* Whoever is gone does not answer reports: some tries, and it is forgotten. */
SaTest(reports_are_repeated_until_heard, "")
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
SaTest(a_group_gets_another_mlid, "4391-10-4")
{
	uint8_t mad[DDPS_CM_MAD_LEN];
	struct ddps_sa_mcm r;
	uint16_t was;

	all_join();
	cr_assert_eq(ddps_sac_join(node[0].c, group1, now), 0);
	run(10 * MS);
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

SaTest(mlids_survive_the_administration, "")
{
	uint16_t mlid;

	all_join();
	cr_assert_eq(ddps_sac_join(node[0].c, group1, now), 0);
	cr_assert_eq(ddps_sac_join(node[1].c, group2, now), 0);
	run(10 * MS);
	mlid = node[0].rec.mlid;
	cr_expect_neq(mlid, node[1].rec.mlid);
	ddps_sa_free(sa);
	sa_start();
	cr_assert_eq(ddps_sac_join(node[3].c, broadcast, now), 0);
	run(10 * MS);
	cr_assert_eq(ddps_sac_join(node[3].c, group2, now), 0);
	cr_assert_eq(ddps_sac_join(node[3].c, group1, now), 0);
	run(10 * MS);
	cr_expect_eq(node[3].rec.mlid, mlid);
}

/* It knows nobody, and is not asked for a path: those that had subscribed notice. */
Test(ib_sa, nodes_come_to_an_administration_that_starts_anew, .init = init_quick, .fini = fini,
     .description = "4391-10-5 4391-10-7")
{
	uint8_t gid[16];

	all_join();
	cr_assert_eq(ddps_sac_join(node[2].c, group1, now), 0);
	run(10 * MS);
	ddps_sa_free(sa);
	sa_start();
	gid_of(gid, 99); /* a port that asks for a path is known, but is in no group */
	cr_assert_eq(ddps_sac_path(node[3].c, gid, now), 0);
	run(6 * SEC);
	for (unsigned i = 0; i < NODES; i++) {
		cr_expect_eq(ddps_sac_stats(node[i].c)->sac_forgotten, 1);
		cr_expect(ddps_sac_link(node[i].c), "node %u has the link's values again", i);
	}
	gid_of(gid, 51);
	cr_assert_eq(ddps_sac_path(node[0].c, gid, now), 0);
	run(10 * MS);
	cr_expect(node[0].has_path, "the other has registered itself");
	cr_expect_eq(ddps_sa_stats(sa)->sa_groups, 1, "so has the group");
	cr_assert_eq(ddps_sac_join(node[1].c, group2, now), 0);
	run(10 * MS);
	cr_expect_geq(ddps_sac_stats(node[0].c)->sac_reports, 1, "subscribed again");
	run(60 * SEC);
	cr_expect_eq(ddps_sac_stats(node[0].c)->sac_forgotten, 1, "once");
}

Test(ib_sa, subscriptions_that_are_never_granted, .init = init_quick, .fini = fini,
     .description = "4391-10-5")
{
	refusing = true;
	all_join();
	run(100 * SEC);
	cr_expect_eq(ddps_sac_stats(node[0].c)->sac_forgotten, 0);
	refusing = false;
	run(6 * SEC);
	refusing = true; /* one that grants no more: joined again once, not without end */
	run(100 * SEC);
	cr_expect_eq(ddps_sac_stats(node[0].c)->sac_forgotten, 1);
	cr_expect_eq(node[0].n_joined, 2);
}

/* ---- single requests ---- */

static struct ddps_sa_head ask(uint16_t lid, uint8_t method, uint16_t attr, uint64_t mask,
			       uint8_t mad[DDPS_CM_MAD_LEN])
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

static struct ddps_sa_mcm record(unsigned lid, const uint8_t *mgid, uint8_t join)
{
	struct ddps_sa_mcm r = {
		.qkey = 0x1234, .pkey = 0xffff, .mtu = 0x84, .rate = 0x87, .scope = 2, .join = join
	};

	memcpy(r.mgid, mgid, 16);
	gid_of(r.port_gid, lid + 48);
	return r;
}

static uint16_t member(unsigned lid, uint8_t method, uint64_t mask, const struct ddps_sa_mcm *r)
{
	uint8_t mad[DDPS_CM_MAD_LEN] = { 0 };

	ddps_sa_mcm_put(mad, r);
	return ask((uint16_t)lid, method, DDPS_SA_MCMEMBER_RECORD, mask, mad).status;
}

#define JOIN(mask, change, status)                                                                 \
	do {                                                                                       \
		struct ddps_sa_mcm r = record(2, group1, DDPS_MC_FULL);                            \
		change;                                                                            \
		cr_expect_eq(member(2, DDPS_SA_SET, mask, &r), status, "%s", #change);             \
	} while (0)

SaTest(joins_that_are_refused, "")
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
SaTest(join_states, "")
{
	struct ddps_sa_mcm r = record(2, group1, DDPS_MC_SEND_FULL);
	struct ddps_sa_mcm other = record(3, group1, DDPS_MC_NON);
	uint8_t mad[DDPS_CM_MAD_LEN] = { 0 };
	const uint64_t leave = DDPS_MC_MGID | DDPS_MC_PORT_GID | DDPS_MC_JOIN;

	cr_expect_eq(member(2, DDPS_SA_SET, DDPS_MC_ALL, &r), DDPS_SA_OK);
	cr_expect_eq(member(3, DDPS_SA_SET, DDPS_MC_ALL, &other), DDPS_SA_OK);
	r.join = DDPS_MC_FULL;
	ddps_sa_mcm_put(mad, &r);
	cr_expect_eq(ask(2, DDPS_SA_SET, DDPS_SA_MCMEMBER_RECORD, DDPS_MC_ALL, mad).status, 0);
	ddps_sa_mcm_get(&r, mad);
	cr_expect_eq(r.join, DDPS_MC_FULL, "not what the port has in all");
	cr_expect_eq(member(2, DDPS_SA_DELETE, leave, &r), DDPS_SA_OK);
	cr_expect_eq(member(2, DDPS_SA_DELETE, leave, &r), DDPS_SA_REQ_INVALID, "twice");
	cr_expect_eq(member(4, DDPS_SA_GET, DDPS_MC_MGID, &r), DDPS_SA_OK, "it is there still");
	r.join = DDPS_MC_SEND_FULL;
	cr_expect_eq(member(2, DDPS_SA_DELETE, leave, &r), DDPS_SA_OK);
	cr_expect_eq(member(4, DDPS_SA_GET, DDPS_MC_MGID, &r), DDPS_SA_NO_RECORDS,
		     "a member that does not count keeps no group");
	cr_expect_eq(member(4, DDPS_SA_GET, DDPS_MC_PKEY, &r), DDPS_SA_NO_RECORDS);
}

SaTest(one_port_cannot_take_all_groups, "")
{
	struct ddps_sa_mcm r = record(2, group1, DDPS_MC_FULL);
	unsigned made = 0;

	for (unsigned i = 0; i < 300; i++) {
		r.mgid[14] = (uint8_t)(i >> 8);
		r.mgid[15] = (uint8_t)i;
		made += !member(2, DDPS_SA_SET, DDPS_MC_ALL, &r);
	}
	cr_expect_eq(made, DDPS_SA_SHARE);
	cr_expect_eq(ddps_sa_stats(sa)->sa_limit, 300 - DDPS_SA_SHARE);
	for (unsigned lid = 3; lid < 10; lid++)
		for (unsigned i = 0; i < 60; i++) {
			struct ddps_sa_mcm o = record(lid, group2, DDPS_MC_FULL);

			o.mgid[14] = (uint8_t)lid;
			o.mgid[15] = (uint8_t)i;
			made += !member(lid, DDPS_SA_SET, DDPS_MC_ALL, &o);
		}
	cr_expect_eq(made, DDPS_SA_GROUPS - 1, "all places are found");
}

SaTest(other_queries, "")
{
	uint8_t mad[DDPS_CM_MAD_LEN] = { 0 };
	struct ddps_sa_inform inform = {
		.lid_first = 0xffff, .generic = true, .subscribe = true, .type = 3, .trap = 66
	};

	all_join();
	cr_expect_eq(ask(2, DDPS_SA_GET, DDPS_SA_CLASS_PORT_INFO, 0, mad).status, 0);
	cr_expect(ddps_sa_record(mad)[0] == 1 && ddps_sa_record(mad)[1] == 2);
	cr_expect_eq(ddps_sa_record(mad)[2], 2, "UD multicast");
	memset(mad, 0, sizeof(mad));
	ddps_sa_record(mad)[1] = 3;
	cr_expect_eq(ask(2, DDPS_SA_GET, DDPS_SA_PORT_INFO_RECORD, 1, mad).status, 0);
	cr_expect_eq(ddps_sa_record(mad)[21], 3, "base LID");
	cr_expect_eq(ddps_sa_record(mad)[23], SA_LID);
	cr_expect_eq(ddps_sa_record(mad)[36], 4, "active");
	cr_expect_eq(ddps_sa_record(mad)[40] >> 4, 4, "MTU");
	memset(mad, 0, sizeof(mad));
	ddps_sa_record(mad)[1] = 77;
	cr_expect_eq(ask(2, DDPS_SA_GET, DDPS_SA_PORT_INFO_RECORD, 1, mad).status,
		     DDPS_SA_NO_RECORDS);
	cr_expect_eq(ask(2, DDPS_SA_GET, 0x11, 0, mad).status, DDPS_SA_UNSUPPORTED);
	cr_expect_eq(ask(2, 0x12, DDPS_SA_PATH_RECORD, 0, mad).method, 0x92, "no tables");
	ddps_sa_inform_put(mad, &inform);
	cr_expect_eq(ask(2, DDPS_SA_SET, DDPS_SA_INFORM_INFO, 0, mad).status, 0);
	inform.trap = 128;
	ddps_sa_inform_put(mad, &inform);
	cr_expect_eq(ask(2, DDPS_SA_SET, DDPS_SA_INFORM_INFO, 0, mad).status, DDPS_SA_REQ_INVALID);
	inform.trap = 66;
	inform.gid[0] = 1;
	ddps_sa_inform_put(mad, &inform);
	cr_expect_eq(ask(2, DDPS_SA_SET, DDPS_SA_INFORM_INFO, 0, mad).status, DDPS_SA_REQ_INVALID);
}

/* A port's GID is what it says, but nobody takes that of the administration. */
SaTest(gids_of_others, "")
{
	struct ddps_sa_mcm r = record(2, group1, DDPS_MC_FULL);
	struct ddps_sa_pr pr = { .pkey = 0xffff };
	uint8_t mad[DDPS_CM_MAD_LEN] = { 0 };

	gid_of(r.port_gid, 100);
	cr_expect_eq(member(2, DDPS_SA_SET, DDPS_MC_ALL, &r), DDPS_SA_OK);
	gid_of(pr.dgid, 100);
	gid_of(pr.sgid, 50);
	ddps_sa_pr_put(mad, &pr);
	cr_expect_eq(
		ask(2, DDPS_SA_GET, DDPS_SA_PATH_RECORD, DDPS_PR_DGID | DDPS_PR_SGID, mad).status,
		0);
	ddps_sa_pr_get(&pr, mad);
	cr_expect_eq(pr.dlid, SA_LID);
	all_join();
	r = record(3, group1, DDPS_MC_FULL); /* the third moves to another LID */
	cr_expect_eq(member(9, DDPS_SA_SET, DDPS_MC_ALL, &r), DDPS_SA_OK);
	cr_expect_eq(ddps_sa_stats(sa)->sa_moved, 1);
	memcpy(pr.sgid, r.port_gid, 16); /* it moves once more, and asks for a path from there */
	gid_of(pr.dgid, 50);
	ddps_sa_pr_put(mad, &pr);
	cr_expect_eq(
		ask(10, DDPS_SA_GET, DDPS_SA_PATH_RECORD, DDPS_PR_DGID | DDPS_PR_SGID, mad).status,
		0);
	ddps_sa_pr_get(&pr, mad);
	cr_expect_eq(pr.slid, 10);
	cr_expect_eq(ddps_sa_stats(sa)->sa_moved, 2);
	ask(2, DDPS_SA_GET, DDPS_SA_PATH_RECORD, DDPS_PR_DGID | DDPS_PR_SGID, mad);
	cr_expect_eq(ddps_sa_stats(sa)->sa_moved, 2, "asked for by another port: not its own");
}

/* Answers that cannot be change nothing; the query goes on. */
SaTest(answers_that_cannot_be, "")
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

SaTest(octets_from_anywhere, "")
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
}
