/* SPDX-License-Identifier: BSD-2-Clause */
/* Queries of the administration by any component, and tables in segments. */
#include "ib_sa_fixture.h"
#include "ipoib_cm/sa/sa_in.h"

#define TID 0x1122334455667788u

static const uint8_t other_group[16] = { 0xff, 0x12, 0x40, 0x1b, 0xff, 0xff, [15] = 5 };

static void say_ib_sa_table(uint16_t lid, uint8_t method, uint16_t attr, uint64_t mask,
			    const uint8_t *rec, size_t len, const struct ddps_rmpp *r)
{
	struct ddps_sa_head h = { .method = method, .attr = attr, .tid = TID, .mask = mask };
	uint8_t mad[DDPS_CM_MAD_LEN];

	ddps_sa_mad_begin(mad, &h);
	if (len)
		memcpy(ddps_sa_record(mad), rec, len);
	if (r)
		ddps_sa_rmpp_put(mad, r);
	n_wire = 0;
	ddps_sa_rx(sa, lid, mad, now);
}

/* One record, or the status of a refusal. */
static uint16_t get(uint16_t lid, uint16_t attr, uint64_t mask, uint8_t rec[DDPS_SA_RECORD_LEN])
{
	struct ddps_sa_head h;

	say_ib_sa_table(lid, DDPS_SA_GET, attr, mask, rec, DDPS_SA_RECORD_LEN, NULL);
	cr_assert_eq(n_wire, 1);
	cr_assert_eq(ddps_sa_mad_head(&h, wire[0].mad), 0);
	cr_expect_eq(h.method, DDPS_SA_GET_RESP);
	memcpy(rec, ddps_sa_record(wire[0].mad), DDPS_SA_RECORD_LEN);
	return h.status;
}

static void acknowledge_ib_sa_table(uint16_t lid, uint16_t attr, uint32_t segment, uint32_t window)
{
	const struct ddps_rmpp r = { .type = DDPS_RMPP_ACK,
				     .flags = DDPS_RMPP_ACTIVE,
				     .segment = segment,
				     .length = window };

	say_ib_sa_table(lid, DDPS_SA_GET_TABLE, attr, 0, NULL, 0, &r);
}

/* A whole table, segment by segment, @window at a time.  Return: octets. */
static size_t get_table(uint16_t lid, uint16_t attr, uint64_t mask, const uint8_t *rec, size_t len,
			uint32_t window, uint8_t *to, size_t room)
{
	uint32_t next = 1, told = 0;
	struct ddps_rmpp r;
	size_t n = 0;

	say_ib_sa_table(lid, DDPS_SA_GET_TABLE, attr, mask, rec, len, NULL);
	cr_assert_eq(n_wire, 1, "the window begins with one segment");
	for (;;) {
		unsigned had = n_wire;

		for (unsigned i = 0; i < had; i++) {
			const uint8_t *mad = wire[i].mad;
			size_t part;

			cr_assert(ddps_sa_rmpp_get(&r, mad) && r.type == DDPS_RMPP_DATA);
			cr_assert_eq(mad[3], 0x92);
			cr_assert_eq(wire[i].to, lid);
			cr_assert_eq(r.segment, next++);
			cr_expect_eq(!!(r.flags & DDPS_RMPP_FIRST), r.segment == 1);
			if (r.segment == 1)
				told = r.length;
			part = r.flags & DDPS_RMPP_LAST ? r.length - DDPS_RMPP_EXTRA : 200;
			cr_assert_leq(n + part, room);
			memcpy(to + n, ddps_sa_record((uint8_t *)(uintptr_t)mad), part);
			n += part;
		}
		acknowledge_ib_sa_table(lid, attr, next - 1, next - 1 + window);
		if (r.flags & DDPS_RMPP_LAST)
			break;
		cr_assert_gt(n_wire, 0, "an ACK lets more go");
		cr_assert_leq(n_wire, window);
	}
	cr_expect_eq(n_wire, 0);
	if (next > 2)
		cr_expect_eq(told, n + (next - 1) * DDPS_RMPP_EXTRA, "%u told, %zu came", told, n);
	return n;
}

Test(ib_sa, contact_34_paths_by_each_component, .init = init, .fini = fini)
{
	static const struct {
		uint64_t bits;
		uint8_t at, value;
		uint16_t status;
	} row[] = {
		{ 3u << 16, 54, 0xc0 | 0x04, DDPS_SA_OK },  /* the largest MTU */
		{ 3u << 16, 54, 0x84, DDPS_SA_OK },	    /* exactly 2048 */
		{ 3u << 16, 54, 0x85, DDPS_SA_NO_RECORDS }, /* exactly 4096 */
		{ 3u << 16, 54, 0x04, DDPS_SA_NO_RECORDS }, /* more than 2048 */
		{ 3u << 16, 54, 0x45, DDPS_SA_OK },	    /* less than 4096 */
		{ 3u << 18, 55, 0x87, DDPS_SA_OK },	    /* exactly 40 Gbit/s */
		{ 3u << 18, 55, 0x82, DDPS_SA_NO_RECORDS }, /* exactly 2.5 */
		{ 3u << 18, 55, 0x0f, DDPS_SA_OK }, /* more than 25, which has a larger code */
		{ 3u << 18, 55, 0x0c, DDPS_SA_NO_RECORDS }, /* more than 56 */
		{ 3u << 18, 55, 0x4f, DDPS_SA_NO_RECORDS }, /* less than 25 */
		{ 3u << 20, 56, 0x41, DDPS_SA_NO_RECORDS }, /* a lifetime below 2 */
		{ 1u << 15, 53, 5, DDPS_SA_OK },	    /* any service level */
		{ 3u << 16, 54, 0x82, DDPS_SA_OK },	    /* exactly 512: it takes these, too */
		{ 3u << 16, 54, 0x42, DDPS_SA_OK },	    /* less than 512 */
		{ 3u << 16, 54, 0x41, DDPS_SA_NO_RECORDS }, /* less than 256 */
		{ DDPS_PR_DLID, 41, 3, DDPS_SA_OK },
		{ DDPS_PR_DLID, 41, 77, DDPS_SA_NO_RECORDS }, /* not where the GID is */
		{ DDPS_PR_SLID, 43, 2, DDPS_SA_OK },
		{ DDPS_PR_SLID, 43, 77, DDPS_SA_NO_RECORDS },
	};
	uint8_t mad[DDPS_CM_MAD_LEN];

	all_join();
	for (size_t i = 0; i < sizeof row / sizeof *row; i++) {
		struct ddps_sa_pr pr = { 0 };

		gid_of(pr.sgid, 50);
		gid_of(pr.dgid, 51);
		memset(mad, 0, sizeof mad);
		ddps_sa_pr_put(mad, &pr);
		ddps_sa_record(mad)[row[i].at] = row[i].value;
		cr_expect_eq(get(2, DDPS_SA_PATH_RECORD, DDPS_PR_SGID | DDPS_PR_DGID | row[i].bits,
				 ddps_sa_record(mad)),
			     row[i].status, "row %zu", i);
	}
}

/* A question is no news of whom the port belongs to. */
Test(ib_sa, contact_34_a_path_from_a_gid_of_nobody, .init = init, .fini = fini)
{
	uint8_t mad[DDPS_CM_MAD_LEN] = { 0 };
	struct ddps_sa_pr pr = { 0 };

	all_join();
	gid_of(pr.sgid, 99);
	gid_of(pr.dgid, 51);
	for (unsigned i = 0; i < 2; i++) {
		ddps_sa_pr_put(mad, &pr);
		cr_expect_eq(get(2, DDPS_SA_PATH_RECORD, DDPS_PR_SGID | DDPS_PR_DGID,
				 ddps_sa_record(mad)),
			     i ? DDPS_SA_OK : DDPS_SA_NO_RECORDS);
		gid_of(pr.sgid, 50);
	}
}

Test(ib_sa, contact_34_a_path_to_oneself, .init = init, .fini = fini)
{
	uint8_t mad[DDPS_CM_MAD_LEN] = { 0 };
	struct ddps_sa_pr pr = { 0 };

	all_join();
	gid_of(pr.sgid, 50);
	gid_of(pr.dgid, 50);
	ddps_sa_pr_put(mad, &pr);
	cr_expect_eq(get(2, DDPS_SA_PATH_RECORD, DDPS_PR_SGID | DDPS_PR_DGID, ddps_sa_record(mad)),
		     0);
	ddps_sa_pr_get(&pr, mad);
	cr_expect(pr.slid == 2 && pr.dlid == 2 && pr.life == 0x80);
}

Test(ib_sa, contact_34_groups_by_each_component, .init = init, .fini = fini)
{
	uint8_t mad[DDPS_CM_MAD_LEN] = { 0 };
	struct ddps_sa_mcm r = { .mlid = 0xc000, .pkey = 0x8002 };

	all_join();
	cr_assert_eq(ddps_sac_join(node[0].c, group1, now), 0);
	run_ib_sa(10 * MS);
	cr_expect_eq(get(2, DDPS_SA_MCMEMBER_RECORD, 0, ddps_sa_record(mad)), DDPS_SA_TOO_MANY);
	ddps_sa_mcm_put(mad, &r);
	cr_expect_eq(get(2, DDPS_SA_MCMEMBER_RECORD, 1 << 3, ddps_sa_record(mad)), 0,
		     "by its MLID");
	ddps_sa_mcm_get(&r, mad);
	cr_expect_arr_eq(r.mgid, broadcast, 16);
	r.pkey = 0x8002;
	ddps_sa_mcm_put(mad, &r);
	cr_expect_eq(get(2, DDPS_SA_MCMEMBER_RECORD, DDPS_MC_MGID | DDPS_MC_PKEY,
			 ddps_sa_record(mad)),
		     DDPS_SA_NO_RECORDS, "another partition's");
	memcpy(r.mgid, group1, 16);
	gid_of(r.port_gid, 51);
	ddps_sa_mcm_put(mad, &r);
	cr_expect_eq(get(2, DDPS_SA_MCMEMBER_RECORD, DDPS_MC_MGID | DDPS_MC_PORT_GID,
			 ddps_sa_record(mad)),
		     DDPS_SA_NO_RECORDS, "that port is not in it");
	cr_expect_eq(get(2, DDPS_SA_MCMEMBER_RECORD, 1ull << 40, ddps_sa_record(mad)),
		     DDPS_SA_NO_RECORDS, "a component that there is not");
}

static uint16_t create_ib_sa_table(const uint8_t *mgid, uint16_t pkey, uint8_t scope, uint64_t more,
				   struct ddps_sa_mcm *out)
{
	struct ddps_sa_mcm r = {
		.qkey = 0x1234, .pkey = pkey, .scope = scope, .join = DDPS_MC_FULL
	};
	struct ddps_sa_head h;
	uint8_t mad[DDPS_CM_MAD_LEN] = { 0 };

	memcpy(r.mgid, mgid, 16);
	gid_of(r.port_gid, 50);
	ddps_sa_mcm_put(mad, &r);
	say_ib_sa_table(2, DDPS_SA_SET, DDPS_SA_MCMEMBER_RECORD, DDPS_MC_CREATE | more,
			ddps_sa_record(mad), DDPS_SA_RECORD_LEN, NULL);
	cr_assert_geq(n_wire, 1); /* reports may come before it */
	cr_assert_eq(ddps_sa_mad_head(&h, wire[n_wire - 1].mad), 0);
	ddps_sa_mcm_get(out, wire[n_wire - 1].mad);
	return h.status;
}

Test(ib_sa, contact_34_which_groups_may_be_made, .init = init, .fini = fini,
     .description = "4391-4-7")
{
	static const uint8_t none[16];
	uint8_t mgid[16];
	struct ddps_sa_mcm r, second;

	all_join();
	memcpy(mgid, group1, 16);
	for (unsigned scope = 0; scope < 16; scope++) {
		mgid[1] = (uint8_t)(0x10 | scope);
		cr_expect_eq(create_ib_sa_table(mgid, 0xffff, 0, 0, &r),
			     scope == 2 ? 0 : DDPS_SA_REQ_INVALID, "a group of IPoIB with scope %u",
			     scope);
	}
	mgid[2] = 0xa0; /* of something else */
	for (unsigned scope = 0; scope < 16; scope++) {
		mgid[1] = (uint8_t)(0x10 | scope);
		cr_expect_eq(create_ib_sa_table(mgid, 0xffff, 0, 0, &r),
			     scope > 1 && scope < 15 ? 0 : DDPS_SA_REQ_INVALID, "scope %u", scope);
	}
	cr_expect_eq(create_ib_sa_table(other_group, 0x7fff, 0, 0, &r), DDPS_SA_REQ_INVALID,
		     "by a limited member");
	cr_expect_eq(create_ib_sa_table(none, 0xffff, 5, DDPS_MC_SCOPE, &r), 0,
		     "whose MGID the administration draws");
	cr_expect_eq(r.mgid[0], 0xff);
	cr_expect_eq(r.mgid[1], 0x15);
	cr_expect_eq(create_ib_sa_table(none, 0xffff, 0, 0, &second), 0);
	cr_expect_eq(second.mgid[1], 0x12);
	cr_expect_neq(memcmp(r.mgid + 2, second.mgid + 2, 14), 0);
}

Test(ib_sa, contact_34_records_of_ports, .init = init, .fini = fini)
{
	uint8_t rec[DDPS_SA_RECORD_LEN] = { 0, 3 }, want[DDPS_SA_RECORD_LEN] = { 0 };

	all_join();
	cr_expect_eq(get(2, DDPS_SA_NODE_RECORD, 1, rec), 0);
	cr_expect_eq(rec[4 + 2], 1, "a channel adapter");
	cr_expect_eq(rec[4 + 20 + 7], 51, "its GUID is the end of its GID");
	cr_expect_str_eq((const char *)rec + 4 + 40, "ddpsess LID 3");
	memcpy(want + 4 + 20, rec + 4 + 20, 8);
	cr_expect_eq(get(2, DDPS_SA_NODE_RECORD, 1 << 8, want), 0, "by its port GUID");
	cr_expect_eq(want[1], 3);
	memset(rec, 0, sizeof rec);
	cr_expect_eq(get(2, DDPS_SA_NODE_RECORD, 0, rec), DDPS_SA_TOO_MANY);
	memset(rec, 0, sizeof rec);
	cr_expect_eq(get(2, DDPS_SA_SM_INFO_RECORD, 0, rec), 0);
	cr_expect(rec[1] == SA_LID && (rec[4 + 20] & 15) == 3, "the master");
	memset(rec, 0, sizeof rec);
	rec[4 + 32] = 2; /* a state that no port is in */
	cr_expect_eq(get(2, DDPS_SA_PORT_INFO_RECORD, 1 << 15, rec), DDPS_SA_NO_RECORDS);
}

Test(ib_sa, contact_34_tables_come_in_segments, .init = init, .fini = fini)
{
	static uint8_t got[64 * 1024];
	size_t n;

	all_join();
	for (uint32_t window = 1; window < 8; window += 3) {
		n = get_table(2, DDPS_SA_NODE_RECORD, 0, NULL, 0, window, got, sizeof got);
		cr_expect_eq(n, 112u * (1 + NODES));
		for (unsigned i = 0; i <= NODES; i++)
			cr_expect_eq(got[112 * i + 1], i + 1, "LID %u", got[112 * i + 1]);
	}
	n = get_table(3, DDPS_SA_PATH_RECORD, 0, NULL, 0, 64, got, sizeof got);
	cr_expect_eq(n, 64u * (1 + NODES) * (1 + NODES), "from each to each: %zu", n / 64);
	n = get_table(3, DDPS_SA_MCMEMBER_RECORD, 0, NULL, 0, 1, got, sizeof got);
	cr_expect_eq(n, 56, "the broadcast group");
	got[1] = 77;
	n = get_table(3, DDPS_SA_NODE_RECORD, 1, got, 2, 1, got, sizeof got);
	cr_expect_eq(n, 0, "a table of nothing");
	cr_expect_eq(ddps_sa_stats(sa)->sa_table_lost, 0);
	cr_expect_eq(ddps_sa_due(sa), UINT64_MAX, "none is on its way");
}

/* A receiver that is silent, lies, or asks anew; more of them than there are places. */
Test(ib_sa, contact_34_tables_have_a_bound, .init = init, .fini = fini)
{
	struct ddps_rmpp r = { .type = DDPS_RMPP_ABORT, .flags = DDPS_RMPP_ACTIVE };
	struct ddps_sa_head h;
	unsigned sent = 0;

	all_join();
	say_ib_sa_table(2, DDPS_SA_GET_TABLE, DDPS_SA_NODE_RECORD, 0, NULL, 0, NULL);
	acknowledge_ib_sa_table(2, DDPS_SA_NODE_RECORD, 99, 200); /* of what was never sent */
	acknowledge_ib_sa_table(3, DDPS_SA_NODE_RECORD, 1, 2);	  /* of another's */
	cr_expect_eq(n_wire, 0);
	acknowledge_ib_sa_table(2, DDPS_SA_NODE_RECORD, 1, UINT32_MAX);
	cr_expect_eq(n_wire, 2, "no more than there are");
	for (unsigned k = 0; k < 20 && ddps_sa_due(sa) != UINT64_MAX; k++) {
		now = ddps_sa_due(sa);
		n_wire = 0;
		ddps_sa_tick(sa, now);
		sent += n_wire;
	}
	cr_expect_eq(ddps_sa_due(sa), UINT64_MAX, "given up");
	cr_expect_eq(sent, 2 * 3, "what is missing, three times more: %u", sent);
	cr_expect_eq(ddps_sa_stats(sa)->sa_table_lost, 1);
	say_ib_sa_table(2, DDPS_SA_GET_TABLE, DDPS_SA_NODE_RECORD, 0, NULL, 0, &r);
	cr_expect_eq(ddps_sa_stats(sa)->sa_table_lost, 1, "nothing is on its way");
	say_ib_sa_table(2, DDPS_SA_GET_TABLE, DDPS_SA_NODE_RECORD, 0, NULL, 0, NULL);
	say_ib_sa_table(2, DDPS_SA_GET_TABLE, DDPS_SA_NODE_RECORD, 0, NULL, 0, &r);
	cr_expect_eq(ddps_sa_stats(sa)->sa_table_lost, 2, "an ABORT");
	for (uint16_t lid = 10; lid < 10 + DDPS_SA_TABLES; lid++)
		for (unsigned twice = 0; twice < 2; twice++) {
			say_ib_sa_table(lid, DDPS_SA_GET_TABLE, DDPS_SA_NODE_RECORD, 0, NULL, 0,
					NULL);
			cr_expect(ddps_sa_rmpp_get(&r, wire[0].mad));
		}
	say_ib_sa_table(2, DDPS_SA_GET_TABLE, DDPS_SA_NODE_RECORD, 0, NULL, 0, NULL);
	cr_assert_eq(n_wire, 1);
	cr_assert_eq(ddps_sa_mad_head(&h, wire[0].mad), 0);
	cr_expect_eq(h.status, DDPS_SA_NO_RESOURCES);
	cr_expect_eq(ddps_sa_stats(sa)->sa_table_limit, 1);
}

/* A table holds so many records, whatever room it has taken by then. */
Test(ib_sa, contact_34_a_table_of_too_many_records)
{
	const uint8_t rec[DDPS_SA_RECORD_LEN] = { 0 };
	struct sa_found f = { .all = true, .stride = 64 };

	for (unsigned i = 0; i < DDPS_SA_RECORDS; i++)
		ddps_sa_found_add(&f, rec, 64);
	cr_expect_eq(f.n, DDPS_SA_RECORDS);
	cr_expect_not(f.failed);
	ddps_sa_found_add(&f, rec, 64);
	cr_expect_eq(f.n, DDPS_SA_RECORDS);
	cr_expect(f.failed);
	free(f.data);
}

/* Neither subscribe nor unsubscribe. */
Test(ib_sa, contact_34_subscriptions_that_are_none, .init = init, .fini = fini)
{
	struct ddps_sa_inform inform = {
		.lid_first = 0xffff, .generic = true, .subscribe = true, .type = 3, .trap = 66
	};
	struct ddps_sa_head h;
	uint8_t mad[DDPS_CM_MAD_LEN] = { 0 };

	all_join();
	ddps_sa_inform_put(mad, &inform);
	for (uint8_t value = 0; value < 4; value++) {
		ddps_sa_record(mad)[23] = value;
		say_ib_sa_table(2, DDPS_SA_SET, DDPS_SA_INFORM_INFO, 0, ddps_sa_record(mad),
				DDPS_SA_RECORD_LEN, NULL);
		cr_assert_eq(n_wire, 1);
		cr_assert_eq(ddps_sa_mad_head(&h, wire[0].mad), 0);
		cr_expect_eq(h.status, value < 2 ? 0 : DDPS_SA_REQ_INVALID, "value %u", value);
	}
}
