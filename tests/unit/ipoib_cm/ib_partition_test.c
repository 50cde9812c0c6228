/* SPDX-License-Identifier: BSD-2-Clause */
/* A subnet of several partitions: which node gets paths, groups and reports from the administration. */
#include <criterion/criterion.h>
#include <string.h>
#include "ipoib_cm/sa/sa.h"
#include "ipoib_cm/ib/agents.h"

#define SA_LID 1
#define LINK   0x8002 /* one of the partitions, by the P_Key of a full member */

static struct ddps_sa *sa;
static uint16_t to;
static unsigned n_reports;
static uint16_t reported;
static uint8_t answer[DDPS_CM_MAD_LEN];
static uint64_t now;

static void take_ib_partition_send(void *user, uint16_t lid, const uint8_t *mad)
{
	struct ddps_sa_head h;

	(void)user;
	cr_assert_eq(ddps_sa_mad_head(&h, mad), 0);
	if (h.method == DDPS_SA_REPORT) {
		struct ddps_sa_notice n;

		if (!ddps_sa_notice_get(&n, mad) && n.trap == 64) /* are you there? */
			return;
		n_reports++;
		reported = lid;
		return;
	}
	to = lid;
	memcpy(answer, mad, sizeof(answer));
}

static void init(void)
{
	struct ddps_sa_config cfg = { .gid = { 0xfe, 0x80, [15] = SA_LID },
				      .lid = SA_LID,
				      .pkey = { 0xffff, 2, 0x8003 },
				      .qkey = 0x1234,
				      .mtu = 4,
				      .rate = 7,
				      .life = 18,
				      .scope = 2,
				      .send = take_ib_partition_send };

	n_reports = 0;
	now = 1000;
	sa = ddps_sa_new(&cfg);
	cr_assert(sa);
}

static void fini(void)
{
	ddps_sa_free(sa);
}

#define PartitionTest(name, ids)                                                                   \
	Test(ib_partition, name, .init = init, .fini = fini, .description = ids)

/* Return: the status of the answer, whose record is in answer. */
static uint16_t ask_ib_partition(uint16_t lid, const struct ddps_sa_head *h, uint8_t *mad)
{
	struct ddps_sa_head got;

	to = 0;
	ddps_sa_rx(sa, lid, mad, now);
	if (!to) { /* whoever has the GID is asked, and does not answer */
		now += 1500000000;
		ddps_sa_rx(sa, lid, mad, now);
	}
	cr_assert_eq(to, lid);
	cr_assert_eq(ddps_sa_mad_head(&got, answer), 0);
	cr_assert_eq(got.tid, h->tid);
	return got.status;
}

/* The port at @lid, whose GID ends with @gid. */
static uint16_t join_as(uint16_t lid, uint8_t gid, const uint8_t mgid[16], uint16_t pkey,
			uint16_t *mlid)
{
	struct ddps_sa_head h = { .method = DDPS_SA_SET,
				  .attr = DDPS_SA_MCMEMBER_RECORD,
				  .tid = lid,
				  .mask = DDPS_MC_CREATE };
	struct ddps_sa_mcm r = { .port_gid = { 0xfe, 0x80, [15] = gid },
				 .qkey = 0x1234,
				 .pkey = pkey,
				 .scope = 2,
				 .join = DDPS_MC_FULL };
	uint8_t mad[DDPS_CM_MAD_LEN];
	uint16_t status;

	memcpy(r.mgid, mgid, 16);
	ddps_sa_mad_begin(mad, &h);
	ddps_sa_mcm_put(mad, &r);
	status = ask_ib_partition(lid, &h, mad);
	ddps_sa_mcm_get(&r, answer);
	if (mlid)
		*mlid = r.mlid;
	if (!status)
		cr_expect(r.pkey & 0x8000, "a group has the P_Key of full members [4391-4.1-1]");
	return status;
}

static uint16_t join_ib_partition(uint16_t lid, const uint8_t mgid[16], uint16_t pkey,
				  uint16_t *mlid)
{
	return join_as(lid, (uint8_t)lid, mgid, pkey, mlid);
}

static uint16_t broadcast(uint16_t lid, uint16_t pkey, uint16_t *mlid)
{
	uint8_t mgid[16];

	cr_assert_eq(ddps_ipoib_mgid_broadcast(mgid, pkey, 2), 0);
	return join_ib_partition(lid, mgid, pkey, mlid);
}

/* @pkey 0: it does not say one. */
static uint16_t ask_partition_path(uint16_t from, uint16_t dest, uint16_t pkey)
{
	struct ddps_sa_head h = { .method = DDPS_SA_GET,
				  .attr = DDPS_SA_PATH_RECORD,
				  .tid = 1000u + from,
				  .mask = DDPS_PR_DGID | DDPS_PR_SGID | DDPS_PR_NUMB_PATH |
					  (pkey ? DDPS_PR_PKEY : 0) };
	struct ddps_sa_pr r = { .sgid = { 0xfe, 0x80, [15] = (uint8_t)from },
				.dgid = { 0xfe, 0x80, [15] = (uint8_t)dest },
				.pkey = pkey };
	uint8_t mad[DDPS_CM_MAD_LEN];
	uint16_t status;

	ddps_sa_mad_begin(mad, &h);
	ddps_sa_pr_put(mad, &r);
	status = ask_ib_partition(from, &h, mad);
	ddps_sa_pr_get(&r, answer);
	if (!status) {
		cr_expect_eq(r.dlid, dest);
		cr_expect(!pkey || !((r.pkey ^ pkey) & 0x7fff));
	}
	return status;
}

static void subscribe_ib_partition(uint16_t lid)
{
	struct ddps_sa_head h = { .method = DDPS_SA_SET, .attr = DDPS_SA_INFORM_INFO, .tid = 7 };
	struct ddps_sa_inform r = {
		.lid_first = 0xffff, .type = 0xffff, .trap = 66, .generic = true, .subscribe = true
	};
	uint8_t mad[DDPS_CM_MAD_LEN];

	ddps_sa_mad_begin(mad, &h);
	ddps_sa_inform_put(mad, &r);
	cr_assert_eq(ask_ib_partition(lid, &h, mad), DDPS_SA_OK);
}

PartitionTest(each_is_a_link_with_a_broadcast_group_of_its_own, "4392-4-1 4392-4.1-1 4391-5-4")
{
	uint16_t mlid[3];

	cr_assert_eq(broadcast(2, 0xffff, &mlid[0]), DDPS_SA_OK);
	cr_assert_eq(broadcast(3, LINK, &mlid[1]), DDPS_SA_OK);
	cr_assert_eq(broadcast(4, 0x8003, &mlid[2]), DDPS_SA_OK);
	for (unsigned i = 0; i < 3; i++)
		cr_expect_eq(mlid[i], 0xc000 + i);
	cr_expect_eq(broadcast(5, 0x8004, NULL), DDPS_SA_REQ_INVALID, "no such partition");
}

PartitionTest(there_is_no_path_from_one_into_another, "4392-4.1-1")
{
	cr_assert_eq(broadcast(2, 0xffff, NULL), DDPS_SA_OK);
	cr_assert_eq(broadcast(3, LINK, NULL), DDPS_SA_OK);
	cr_assert_eq(broadcast(4, LINK, NULL), DDPS_SA_OK);
	cr_expect_eq(ask_partition_path(3, 4, LINK), DDPS_SA_OK);
	cr_expect_eq(ask_partition_path(3, 2, LINK), DDPS_SA_NO_RECORDS);
	cr_expect_eq(ask_partition_path(2, 3, 0xffff), DDPS_SA_NO_RECORDS);
	cr_expect_eq(ask_partition_path(2, 3, 0), DDPS_SA_NO_RECORDS, "in none are both");
	cr_expect_eq(ask_partition_path(3, 4, 0), DDPS_SA_OK, "in one they are");
	cr_expect_eq(ask_partition_path(3, 4, 0x8004), DDPS_SA_NO_RECORDS, "no such partition");
}

PartitionTest(limited_members_cannot_talk_to_each_other, "")
{
	cr_assert_eq(broadcast(2, LINK, NULL), DDPS_SA_OK);
	cr_assert_eq(broadcast(3, LINK & 0x7fff, NULL), DDPS_SA_OK);
	cr_assert_eq(broadcast(4, LINK & 0x7fff, NULL), DDPS_SA_OK);
	cr_expect_eq(ask_partition_path(3, 2, LINK & 0x7fff), DDPS_SA_OK);
	cr_expect_eq(ask_partition_path(2, 3, LINK), DDPS_SA_OK);
	cr_expect_eq(ask_partition_path(3, 4, LINK & 0x7fff), DDPS_SA_NO_RECORDS);
	cr_assert_eq(broadcast(4, LINK, NULL), DDPS_SA_OK);
	cr_expect_eq(ask_partition_path(3, 4, LINK & 0x7fff), DDPS_SA_OK,
		     "it has become a full one");
}

PartitionTest(whoever_moves_takes_nothing_along, "")
{
	uint8_t mgid[16];

	cr_assert_eq(broadcast(2, LINK, NULL), DDPS_SA_OK);
	cr_assert_eq(broadcast(3, LINK, NULL), DDPS_SA_OK);
	cr_assert_eq(ddps_ipoib_mgid_broadcast(mgid, 0xffff, 2), 0);
	cr_assert_eq(ask_partition_path(2, 3, LINK), DDPS_SA_OK);
	/* another GID at LID 3: it is in the first partition only */
	cr_assert_eq(join_as(3, 77, mgid, 0xffff, NULL), DDPS_SA_OK);
	cr_expect_eq(ask_partition_path(2, 77, LINK), DDPS_SA_NO_RECORDS);
}

PartitionTest(groups_and_reports_stay_in_theirs, "4391-10-8")
{
	static const uint8_t group[16] = { 0xff, 0x12, 0x40, 0x1b, 0x80, 0x02, [15] = 9 };

	for (uint16_t lid = 2; lid <= 4; lid++) {
		cr_assert_eq(broadcast(lid, lid == 4 ? 0x8003 : LINK, NULL), DDPS_SA_OK);
		subscribe_ib_partition(lid);
	}
	cr_expect_eq(join_ib_partition(3, group, LINK & 0x7fff, NULL), DDPS_SA_REQ_INVALID,
		     "a limited member");
	cr_expect_eq(join_ib_partition(3, group, LINK, NULL), DDPS_SA_OK);
	cr_expect_eq(n_reports, 2, "%u reports, the last to %u", n_reports, reported);
	cr_expect_eq(join_ib_partition(4, group, 0x8003, NULL), DDPS_SA_REQ_INVALID);
	cr_expect_eq(join_ib_partition(2, group, LINK, NULL), DDPS_SA_OK);
}

PartitionTest(what_moved_has_left_where_it_was, "")
{
	static const uint8_t group[16] = { 0xff, 0x12, 0x40, 0x1b, 0x80, 0x02, [15] = 9 };
	uint8_t mgid[16];

	cr_assert_eq(ddps_ipoib_mgid_broadcast(mgid, LINK, 2), 0);
	cr_assert_eq(broadcast(2, LINK, NULL), DDPS_SA_OK);
	subscribe_ib_partition(2);
	cr_assert_eq(join_ib_partition(3, mgid, LINK, NULL), DDPS_SA_OK);
	cr_assert_eq(join_ib_partition(3, group, LINK, NULL), DDPS_SA_OK);
	cr_assert_eq(n_reports, 1);
	cr_assert_eq(join_as(9, 3, mgid, LINK, NULL), DDPS_SA_OK); /* the GID, from another LID */
	cr_expect_eq(ddps_sa_stats(sa)->sa_moved, 1);
	cr_expect_eq(join_ib_partition(2, group, LINK, NULL), DDPS_SA_OK);
	cr_expect_eq(n_reports, 2, "the group was gone, so it is new again");
}

/* ---- what a node of a subnet in UDP answers about itself ---- */

#define DATA 64

static const struct ddps_ib_self self = {
	.gid = { 0xfe, 0x80, [15] = 9 }, .lid = 9, .sm_lid = 1, .pkey = 0x8002, .mtu = 4, .life = 18
};
static const struct ddps_ib_counters counters = { .tx_data = 0x123456789,
						  .rx_data = 77,
						  .tx = 10,
						  .rx = 20,
						  .tx_groups = 3,
						  .rx_groups = 4,
						  .rx_errors = 70000,
						  .tx_discards = 5 };
static uint8_t mad[DDPS_CM_MAD_LEN];

static bool ask_node_agent(uint8_t class, uint8_t method, uint16_t attr, uint8_t mod, uint8_t port)
{
	memset(mad, 0, sizeof(mad));
	mad[0] = mad[2] = 1;
	mad[1] = class;
	mad[3] = method;
	mad[15] = 0x55; /* of the transaction ID */
	mad[16] = (uint8_t)(attr >> 8);
	mad[17] = (uint8_t)attr;
	mad[23] = mod;
	mad[DATA + 1] = port;
	return ddps_ib_agents_answer(mad, &self, &counters);
}

static unsigned read_mad_status(void)
{
	cr_expect_eq(mad[3], 0x81);
	cr_expect_eq(mad[15], 0x55);
	return (unsigned)mad[4] << 8 | mad[5];
}

static unsigned read_mad_field(unsigned i, unsigned n)
{
	unsigned v = 0;

	while (n--)
		v = v << 8 | mad[DATA + i++];
	return v;
}

Test(ib_agents, contact_34_subnet_management)
{
	cr_assert(ask_node_agent(1, 1, 0x11, 0, 0));
	cr_expect_eq(read_mad_status(), 0);
	cr_expect_eq(read_mad_field(2, 2), 0x0101, "an adapter with one port");
	cr_expect_eq(read_mad_field(26, 2), 9, "the end of its port's GUID");
	cr_assert(ask_node_agent(1, 1, 0x10, 0, 0));
	cr_expect_str_eq((char *)mad + DATA, "ddpsess LID 9");
	cr_assert(ask_node_agent(1, 1, 0x15, 1, 0));
	cr_expect_eq(read_mad_field(16, 4), 0x00090001, "LID and manager");
	cr_assert(ask_node_agent(1, 1, 0x15, 2, 0));
	cr_expect_eq(read_mad_status(), 0x1c, "it has no port 2");
	cr_assert(ask_node_agent(1, 1, 0x16, 0, 0));
	cr_expect_eq(read_mad_field(0, 4), 0x80020000);
	cr_assert(ask_node_agent(1, 1, 0x16, 1, 0));
	cr_expect_eq(read_mad_status(), 0x1c, "nor a second block");
	cr_assert(ask_node_agent(1, 1, 0x20, 0, 0));
	cr_expect_eq(read_mad_status(), 0x0c, "the manager is elsewhere");
	cr_assert(ask_node_agent(1, 1, 0x99, 0, 0));
	cr_expect_eq(read_mad_status(), 0x0c);
	cr_assert(ask_node_agent(0x81, 1, 0x11, 0, 0));
	cr_expect_eq(read_mad_status(), 0x8000, "the way back");
}

Test(ib_agents, contact_34_performance)
{
	cr_assert(ask_node_agent(4, 1, 1, 0, 0));
	cr_expect_eq(read_mad_field(0, 4), 0x01010200);
	cr_assert(ask_node_agent(4, 1, 0x12, 0, 1));
	cr_expect_eq(read_mad_status(), 0);
	cr_expect_eq(read_mad_field(1, 1), 1);
	cr_expect_eq(read_mad_field(8, 2), 0xffff, "it stays at its end");
	cr_expect_eq(read_mad_field(14, 2), 5);
	cr_expect_eq(read_mad_field(24, 4), 0xffffffff);
	cr_expect_eq(read_mad_field(28, 4), 77);
	cr_expect_eq(read_mad_field(32, 4), 10);
	cr_expect_eq(read_mad_field(36, 4), 20);
	cr_assert(ask_node_agent(4, 1, 0x1d, 0, 255));
	cr_expect_eq(read_mad_field(8, 4), 1);
	cr_expect_eq(read_mad_field(12, 4), 0x23456789);
	cr_expect_eq(read_mad_field(44, 4), 7, "to one node");
	cr_expect_eq(read_mad_field(52, 4), 16);
	cr_expect_eq(read_mad_field(60, 4), 3, "to groups");
	cr_expect_eq(read_mad_field(68, 4), 4);
	cr_assert(ask_node_agent(4, 1, 0x12, 0, 2));
	cr_expect_eq(read_mad_status(), 0x1c);
	cr_assert(ask_node_agent(4, 1, 0x13, 0, 1));
	cr_expect_eq(read_mad_status(), 0x0c);
}

/* Nothing is written, and no answer is answered: two nodes would go on for ever. */
Test(ib_agents, contact_34_nothing_but_questions)
{
	cr_assert(ask_node_agent(4, 2, 0x12, 0, 1));
	cr_expect_eq(read_mad_status(), 0x08, "counters are not reset by others");
	cr_assert(ask_node_agent(1, 2, 0x15, 1, 0));
	cr_expect_eq(read_mad_status(), 0x08);
	for (unsigned class = 0; class < 256; class ++)
		for (unsigned method = 0; method < 256; method++) {
			const bool own = class == 1 || class == 4 || class == 0x81;
			const bool is = own && (method == 1 || method == 2);

			cr_assert_eq(ask_node_agent((uint8_t) class, (uint8_t)method, 0x11, 0, 1),
				     is, "class %u method %u", class, method);
		}
	memset(mad, 0, sizeof(mad));
	mad[1] = mad[3] = 1;
	mad[2] = 2;
	cr_expect_not(ddps_ib_agents_answer(mad, &self, &counters), "another version");
}
