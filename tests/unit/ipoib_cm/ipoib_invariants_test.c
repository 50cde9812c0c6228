/* SPDX-License-Identifier: BSD-2-Clause */
/* What an interface, a subnet administration and a port check of themselves in builds with assertions: each
 * of these faults stops the program. */
#include "unit/spoil.h"
#include <string.h>
#include "ipoib_cm/iface/iface_in.h"
#include "ipoib_cm/ib/node_in.h"
#include "ipoib_cm/sa/sa_in.h"
#include "ipoib_net_fixture.h"
#include "ipoib_cm/cm/cm_conn.h"
#include "common/tab/due.h"
#include "common/tab/tab.h"
#include <criterion/criterion.h>
#include <stddef.h>

#ifdef DDPS_ASSERTS

static struct net net;

static void check_if(void *on)
{
	ddps_ipoib_check(on);
}

/* One that is in that state; every interface here has one of each. */
static struct ddps_ipoib_nbr *find_in_state(void *on, enum nbr_state state)
{
	struct ddps_ipoib_if *f = on;

	for (unsigned i = 0; i < f->n_nbr; i++)
		if (f->nbr[i].state == state)
			return &f->nbr[i];
	_exit(0); /* it would look as if the check passed */
}

static struct ddps_ipoib_nbr *nbr_with_node(void *on)
{
	return find_in_state(on, NBR_REACHABLE);
}

static struct ddps_ipoib_qp *qp_that_is_up(void *on)
{
	struct ddps_ipoib_if *f = on;

	for (unsigned i = 0; i < f->n_qp; i++)
		if (f->qp[i].used && f->qp[i].up)
			return &f->qp[i];
	_exit(0);
}

static void leave_the_table(void *on)
{
	ddps_tab_del(&((struct ddps_ipoib_if *)on)->nbr_by_ip, &nbr_with_node(on)->by_ip);
}

static void be_resolved_without_a_node(void *on)
{
	find_in_state(on, NBR_RESOLVING)->state = NBR_REACHABLE;
}

static void never_end(void *on)
{
	ddps_due_clear(&((struct ddps_ipoib_if *)on)->nbr_dues, &nbr_with_node(on)->due);
}

static void be_forgotten_while_in_doubt(void *on)
{
	nbr_with_node(on)->state = NBR_PROBE;
}

static void queue_uncounted(void *on)
{
	((struct ddps_ipoib_if *)on)->queued++;
}

static void refer_uncounted(void *on)
{
	nbr_with_node(on)->node->refs++;
}

static void live_uncounted(void *on)
{
	nbr_with_node(on)->node->live++;
}

static void be_idle_with_an_address(void *on)
{
	nbr_with_node(on)->node->idle = true;
}

static void hold_nothing(void *on)
{
	nbr_with_node(on)->node->held = true;
}

static void be_up_and_stopped(void *on)
{
	qp_that_is_up(on)->stopped = true;
}

static void be_up_without_a_name(void *on)
{
	qp_that_is_up(on)->id = 0;
}

static void use_uncounted(void *on)
{
	((struct ddps_ipoib_if *)on)->n_qp_used--;
}

static void be_young_uncounted(void *on)
{
	((struct ddps_ipoib_if *)on)->n_young++;
}

static void leave_a_node_unsettled(void *on)
{
	struct ddps_ipoib_if *f = on;

	SLIST_INSERT_HEAD(&f->unsettled, nbr_with_node(on)->node, on_unsettled);
}

static void be_narrower_than_needed(void *on)
{
	((struct ddps_ipoib_if *)on)->ud_mtu = 1279;
}

static void mix_up_the_timers(void *on)
{
	((struct ddps_ipoib_if *)on)->nbr_dues.heap[1]->at = DDPS_CM_NEVER - 1;
}

Test(ipoib_invariants, of_an_interface)
{
	void (*const spoils[])(void *) = { leave_the_table,
					   be_resolved_without_a_node,
					   never_end,
					   be_forgotten_while_in_doubt,
					   queue_uncounted,
					   refer_uncounted,
					   live_uncounted,
					   be_idle_with_an_address,
					   hold_nothing,
					   be_up_and_stopped,
					   be_up_without_a_name,
					   use_uncounted,
					   be_young_uncounted,
					   leave_a_node_unsettled,
					   be_narrower_than_needed,
					   mix_up_the_timers };

	net_init(&net, 3, 1, DDPS_IPOIB_RC);
	net_start(&net, 0);
	net_start(&net, 1);
	net_run(&net, SEC);
	net_send4(&net, 0, 1, 100, true);
	net_run(&net, SEC);
	net_send4(&net, 0, 2, 100, true); /* nobody answers */
	cr_assert_eq(net_conns(&net, 0), 1);
	EXPECT_EACH_STOPS(spoils, check_if, net.node[0].f);
	net_fini(&net);
}

/* ---- the administration ---- */

static void send_nowhere(void *user, uint16_t lid, const uint8_t mad[DDPS_CM_MAD_LEN])
{
	(void)user;
	(void)lid;
	(void)mad;
}

static void check_sa(void *on)
{
	ddps_sa_check(on);
}

static struct sa_group *get_made(void *on)
{
	struct sa_group *g = &((struct ddps_sa *)on)->group[1];

	while (!g->used)
		g++;
	return g;
}

static void make_uncounted(void *on)
{
	((struct ddps_sa *)on)->port[7].made--;
}

static void be_in_nobodys_use(void *on)
{
	memset(get_made(on)->join, 0, DDPS_SA_LIDS);
}

static void be_there_twice(void *on)
{
	memcpy(get_made(on)->rec.mgid, ((struct ddps_sa *)on)->group[0].rec.mgid,
	       DDPS_IPOIB_GID_LEN);
}

static void be_in_no_partition(void *on)
{
	get_made(on)->rec.pkey = 0x9999;
}

static void have_another_mlid(void *on)
{
	get_made(on)->rec.mlid++;
}

static void keep_no_table(void *on)
{
	((struct ddps_sa *)on)->table[0].lid = 7;
}

static void report_too_much(void *on)
{
	((struct ddps_sa *)on)->n_report = DDPS_SA_REPORTS + 1;
}

/* LID 7 joins a group that it makes. */
static void make_group_of_7(struct ddps_sa *sa)
{
	const struct ddps_sa_head h = { .method = DDPS_SA_SET,
					.attr = DDPS_SA_MCMEMBER_RECORD,
					.tid = 9,
					.mask = DDPS_MC_ALL };
	struct ddps_sa_mcm r = sa->group[0].rec;
	uint8_t mad[DDPS_CM_MAD_LEN];

	memset(r.mgid + 6, 0, 10); /* 224.0.0.7 */
	r.mgid[15] = 7;
	memcpy(r.port_gid, (uint8_t[16]){ 0xfe, 0x80, [15] = 7 }, 16);
	r.join = DDPS_MC_FULL;
	r.mtu |= DDPS_SEL_EXACTLY << 6;
	r.rate |= DDPS_SEL_EXACTLY << 6;
	ddps_sa_mad_begin(mad, &h);
	ddps_sa_mcm_put(mad, &r);
	ddps_sa_rx(sa, 7, mad, SEC);
}

Test(ipoib_invariants, of_an_administration)
{
	void (*const spoils[])(void *) = { make_uncounted,     be_in_nobodys_use, be_there_twice,
					   be_in_no_partition, have_another_mlid, keep_no_table,
					   report_too_much };
	const struct ddps_sa_config c = { .lid = 1,
					  .gid = { 0xfe, 0x80, [15] = 1 },
					  .pkey = { 0xffff },
					  .qkey = 0x0b1b,
					  .mtu = 4,
					  .rate = 7,
					  .life = 18,
					  .scope = 2,
					  .send = send_nowhere };
	struct ddps_sa *sa = ddps_sa_new(&c);

	make_group_of_7(sa);
	cr_assert_eq(sa->port[7].made, 1);
	EXPECT_EACH_STOPS(spoils, check_sa, sa);
	ddps_sa_free(sa);
}

/* ---- a port ---- */

static bool lose_packet(void *wire, uint16_t lid, unsigned group, struct ddps_ib_pkt *p)
{
	(void)wire;
	(void)lid;
	(void)group;
	(void)p;
	return true;
}

static void check_node(void *on)
{
	ddps_ib_node_check(on);
}

static struct ddps_ib_qp *first_qp(void *on)
{
	return &((struct ddps_ib_node *)on)->slot[0].qp;
}

static void keep_uncounted(void *on)
{
	((struct ddps_ib_node *)on)->env.tx.used--;
}

static void be_busy_uncounted(void *on)
{
	((struct ddps_ib_node *)on)->n_busy++;
}

static void leave_a_gap(void *on)
{
	first_qp(on)->msg[first_qp(on)->head].n_pkt++;
}

static void acknowledge_too_much(void *on)
{
	first_qp(on)->una = ddps_ib_psn_add(first_qp(on)->top, 1);
}

static void send_what_is_not_there(void *on)
{
	first_qp(on)->cur = first_qp(on)->n_msg + 1;
}

static void have_a_timer_of_another(void *on)
{
	((struct ddps_ib_node *)on)->slot[1].due.place = 1;
}

Test(ipoib_invariants, of_a_port)
{
	void (*const spoils[])(
		void *) = { keep_uncounted,	  be_busy_uncounted,	  leave_a_gap,
			    acknowledge_too_much, send_what_is_not_there, have_a_timer_of_another };
	const struct ddps_ib_node_config c = { .lid = 2,
					       .sa_lid = 1,
					       .qpn = 0x48,
					       .pkey = 0xffff,
					       .scope = 2,
					       .mtu_max = 5,
					       .mtu = 4,
					       .life = 14,
					       .max_qps = 8,
					       .tx_octets = 1 << 20,
					       .rx_octets = 1 << 20,
					       .send = lose_packet,
					       .up = ddps_ipoib_if_up(),
					       .gid = { [15] = 2 } };
	const struct ddps_ib_qp_to to = { .qpn = 3, .mtu = 1024, .ack_timeout = 14, .retry = 7 };
	struct ddps_ib_node *n;
	uint32_t qpn;

	cr_assert_eq(ddps_ib_node_new(&n, &c), 0);
	cr_assert_eq(n->port.ops->qp_create(&n->port, DDPS_CM_RC, 65536, &qpn), 0);
	cr_assert_eq(ddps_ib_qp_ready(&n->slot[0].qp, &to), 0);
	for (unsigned i = 0; i < 3; i++)
		cr_assert_eq(n->port.ops->qp_send(&n->port, qpn, (uint8_t[3000]){ 0 }, 3000), 0);
	EXPECT_EACH_STOPS(spoils, check_node, n);
	ddps_ib_node_free(n);
}

#endif

/* ---- the tables and timers of the IPoIB library against the plainest that do the same ---- */

#define ENTRIES 61

struct entry {
	struct ddps_tab_link link;
	struct ddps_due due;
	bool in;
	uint64_t hash, at, turn;
};

static struct entry entry[ENTRIES];

/* A linear congruence is as good as any: each value of it comes up. */
static uint32_t next_in_ipoib_tab(uint32_t *seed, uint32_t below)
{
	*seed = *seed * 1664525u + 1013904223u;
	return (*seed >> 8) % below;
}

Test(ipoib_tab, finds_what_is_in_it)
{
	struct ddps_tab t;
	uint32_t seed = 1;

	cr_assert(ddps_tab_new(&t, 8)); /* more entries than rows */
	for (unsigned turn = 0; turn < 20000; turn++) {
		struct entry *e = &entry[next_in_ipoib_tab(&seed, ENTRIES)], *at;
		unsigned found = 0, there = 0;

		if (e->in)
			ddps_tab_del(&t, &e->link);
		else
			ddps_tab_add(&t, &e->link, e->hash = next_in_ipoib_tab(&seed, 24));
		e->in = !e->in;
		DDPS_TAB_EACH(&t, e->hash, at, struct entry, link) {
			cr_assert(at->in && at->hash == e->hash);
			found++;
		}
		for (unsigned i = 0; i < ENTRIES; i++)
			there += entry[i].in && entry[i].hash == e->hash;
		cr_assert_eq(found, there);
	}
	free(t.row);
}

Test(ipoib_tab, timers_come_in_their_order)
{
	struct ddps_dues d = { 0 };
	uint32_t seed = 7;

	cr_assert(ddps_dues_new(&d, ENTRIES));
	for (unsigned i = 0; i < ENTRIES; i++)
		entry[i] = (struct entry){ .at = DDPS_DUE_NEVER };
	for (unsigned turn = 0; turn < 50000; turn++) {
		struct entry *e = &entry[next_in_ipoib_tab(&seed, ENTRIES)];
		uint64_t at =
			next_in_ipoib_tab(&seed, 4) ? next_in_ipoib_tab(&seed, 40) : DDPS_DUE_NEVER;
		const struct entry *first = &entry[0];
		struct ddps_due *ready;

		e->turn = at == e->at ? e->turn : turn;
		e->at = at;
		ddps_due_set(&d, &e->due, at);
		for (unsigned i = 1; i < ENTRIES; i++)
			if (entry[i].at < first->at ||
			    (entry[i].at == first->at && entry[i].turn < first->turn))
				first = &entry[i];
		cr_assert_eq(ddps_dues_first(&d), first->at);
		ready = ddps_dues_ready(&d, 10);
		cr_assert_eq(ready, first->at <= 10 ? &first->due : NULL);
	}
	for (unsigned i = 0; i < ENTRIES; i++)
		ddps_due_clear(&d, &entry[i].due);
	cr_assert_eq(d.n, 0);
	free(d.heap);
}

/* Of a table up to two rows, and a place among the timers. */
#define TABLE (2 * sizeof(void *))
#define PLACE sizeof(void *)

Test(ipoib_tab, memory_is_what_the_header_says)
{
	cr_expect_leq(sizeof(struct ddps_ipoib_nbr) + TABLE + PLACE, 320);
	cr_expect_leq(sizeof(struct ddps_ipoib_node) + 2 * TABLE + PLACE, 480);
	/* the agent's tables are as large as those of queue pairs, its connections made when needed */
	cr_expect_leq(sizeof(struct ddps_ipoib_qp) + 2 * TABLE + PLACE + 4 * TABLE + PLACE, 256);
	cr_expect_leq(sizeof(struct ddps_cm_conn) + 2 * sizeof(size_t), 576);
}
