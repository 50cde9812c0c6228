/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef IB_SA_FIXTURE_H
#define IB_SA_FIXTURE_H
/* Subnet administration: clients and the administration on a wire that the test controls. */
#include <criterion/criterion.h>
#include <string.h>
#include "ipoib_cm/sa/sa.h"
#include "ipoib_cm/ib/sac.h"

/* not each file of tests needs all of it */
#pragma GCC diagnostic ignored "-Wunused-function"
#pragma GCC diagnostic ignored "-Wunused-variable"

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
	bool there, has_path, held[DDPS_SAC_GROUPS];
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
static bool deaf;	      /* the administration gets nothing */
static uint64_t renew_ns;     /* of subscriptions; 0: the default */
static bool refusing;	      /* it grants no subscription */
static uint16_t granted_trap; /* but that to this one */
static bool gone[NODES];      /* nothing comes from it or to it */
static uint8_t broadcast[16];

static const uint8_t group1[16] = { 0xff, 0x12, 0x40, 0x1b, 0xff, 0xff, [12] = 0x0f, 1, 2, 3 };
static const uint8_t group2[16] = { 0xff, 0x12, 0x60, 0x1b, 0xff, 0xff, [15] = 7 };

static void put_ib_sa(uint16_t from, uint16_t to, const uint8_t *mad)
{
	cr_assert_lt(n_wire, WIRE);
	wire[n_wire].from = from;
	wire[n_wire].to = to;
	memcpy(wire[n_wire++].mad, mad, DDPS_CM_MAD_LEN);
}

static void on_sa_send(void *user, uint16_t lid, const uint8_t *mad)
{
	(void)user;
	put_ib_sa(SA_LID, lid, mad);
}

static void take_ib_sa_send(void *user, const uint8_t *mad)
{
	if (!gone[((struct node *)user)->lid - 2])
		put_ib_sa(((struct node *)user)->lid, SA_LID, mad);
}

static void take_ib_sa_joined(void *user, const uint8_t *mgid, int err,
			      const struct ddps_sa_mcm *rec, uint64_t t)
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

static void take_ib_sa_path(void *user, const uint8_t *gid, const struct ddps_sa_pr *pr, uint64_t t)
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

static int hold_err; /* what holding a group gives */

static int on_hold(void *user, unsigned group, const struct ddps_sa_mcm *rec)
{
	((struct node *)user)->held[group] = rec && !hold_err;
	return rec ? hold_err : 0;
}

static const struct ddps_sac_ops ops = { take_ib_sa_send, take_ib_sa_joined, take_ib_sa_path,
					 on_open, on_hold };

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
	granted_trap = 0;
	hold_err = 0;
	memset(gone, 0, sizeof(gone));
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

/*
 * A query of @lid says that it has the GID of another port: that one is asked, and does not answer
 * until the query is to be repeated.
 */
__attribute__((unused)) static void claim(uint16_t lid, uint8_t method, uint16_t attr,
					  uint64_t mask, uint8_t *mad)
{
	struct ddps_sa_head h = { .method = method, .attr = attr, .tid = 1, .mask = mask };
	uint8_t out[DDPS_CM_MAD_LEN];

	ddps_sa_mad_begin(out, &h);
	memcpy(ddps_sa_record(out), ddps_sa_record(mad), DDPS_SA_RECORD_LEN);
	n_wire = 0;
	ddps_sa_rx(sa, lid, out, now);
	cr_assert_eq(n_wire, 1);
	cr_assert_eq(ddps_sa_mad_head(&h, wire[0].mad), 0);
	cr_assert(h.method == DDPS_SA_REPORT && wire[0].to != lid);
	n_wire = 0;
	now += 1500 * MS;
}

static bool is_ib_sa_refused(unsigned i)
{
	uint8_t mad[DDPS_CM_MAD_LEN];
	struct ddps_sa_inform r;
	struct ddps_sa_head h;

	if (!refusing || ddps_sa_mad_head(&h, wire[i].mad) || h.attr != DDPS_SA_INFORM_INFO)
		return false;
	ddps_sa_inform_get(&r, wire[i].mad);
	if (r.trap == granted_trap)
		return false;
	h.method = DDPS_SA_GET_RESP;
	h.status = DDPS_SA_REQ_INVALID;
	ddps_sa_mad_begin(mad, &h);
	put_ib_sa(SA_LID, wire[i].from, mad);
	return true;
}

static void settle_ib_sa(void)
{
	for (unsigned i = 0; i < n_wire; i++) {
		cr_assert_lt(i, WIRE);
		if (wire[i].to != SA_LID && wire[i].to < 2 + NODES && gone[wire[i].to - 2])
			continue;
		if (wire[i].to != SA_LID)
			ddps_sac_rx(node[wire[i].to - 2].c, wire[i].mad, now);
		else if (!deaf && !is_ib_sa_refused(i))
			ddps_sa_rx(sa, wire[i].from, wire[i].mad, now);
	}
	n_wire = 0;
}

/* For so long, with everything that timers do. */
static void run_ib_sa(uint64_t ns)
{
	uint64_t end = now + ns;

	for (;;) {
		uint64_t due = ddps_sa_due(sa);

		settle_ib_sa();
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
	run_ib_sa(10 * MS);
	for (unsigned i = 0; i < NODES; i++) /* again, if what is refused makes it doubt */
		cr_assert(refusing ? node[i].n_joined >= 1 : node[i].n_joined == 1);
}

static int open_group(struct node *n, const uint8_t *mgid, const struct ddps_sa_mcm **rec)
{
	unsigned g;

	return ddps_sac_open(n->c, mgid, now, rec, &g);
}

#endif
