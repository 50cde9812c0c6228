/* SPDX-License-Identifier: BSD-2-Clause */
/* The suite for IPoIB as a library: options, the list of cases, what cannot be run. */
#include "conform/ipoib/peer.h"
#include "unit/mem_fixture.h"
#include <criterion/criterion.h>
#include <ddpsess/conform_ipoib.h>
#include <string.h>
#include <unistd.h>

static void plan_conform_ipoib(struct ddps_conform_ipoib_options *o)
{
	uint32_t at = (uint32_t)getpid();

	ddps_conform_ipoib_options_init(o);
	memcpy(o->ip4, (uint8_t[4]){ 127, (uint8_t)(at | 1), (uint8_t)(at >> 8), 1 }, 4);
	o->udp_port = (uint16_t)(20000 + at % 20000);
	memcpy(o->gid, (uint8_t[16]){ 0xfe, 0x80, [15] = 1 }, 16);
	memcpy(o->target, (uint8_t[4]){ 10, 0, 0, 2 }, 4);
	memcpy(o->link_ip4, (uint8_t[4]){ 10, 0, 0, 100 }, 4);
	o->wait_ms = 20;
	o->seed = at;
}

Test(conform_ipoib, defaults_are_those_of_the_header)
{
	struct ddps_conform_ipoib_options o;

	memset(&o, 0x5a, sizeof o);
	ddps_conform_ipoib_options_init(&o);
	cr_expect_eq(o.struct_size, sizeof o);
	cr_expect_eq(o.udp_port, 4791);
	cr_expect_eq(o.n_link_ip4, 64);
	cr_expect_eq(o.pkey, 0xffff);
	cr_expect_eq(o.qkey, 0x80000b1b);
	cr_expect(o.mtu == 4 && o.life == 18 && o.wait_ms == 15000 && !o.sa_lid && !o.pattern);
	memset(&o, 0x5a, sizeof o);
	ddps_conform_ipoib_options_init_sized(&o, sizeof(size_t) + 2);
	cr_expect_eq(o.struct_size, sizeof(size_t) + 2);
	cr_expect_eq(o.broadcast[0], 0x5a);
}

Test(conform_ipoib, every_case_has_a_name_of_its_own)
{
	struct ddps_conform_case c, d;
	size_t n = 0;

	for (; !ddps_conform_ipoib_case(n, &c); n++) {
		cr_assert(c.name && *c.name && c.ids && c.rule && *c.rule);
		cr_expect(c.area && *c.area, "%s", c.name);
		cr_expect_eq(c.wires, DDPS_CONFORM_IB);
		for (size_t i = 0; i < n; i++) {
			cr_assert_eq(ddps_conform_ipoib_case(i, &d), 0);
			cr_expect_str_neq(c.name, d.name);
		}
	}
	cr_expect_gt(n, 100);
	cr_expect_eq(ddps_conform_ipoib_case(n, &c), DDPS_E_INVAL);
}

static int run_conform_ipoib(const struct ddps_conform_ipoib_options *o, char why[300])
{
	struct ddps_conform_sum sum;
	int err = ddps_conform_ipoib_run(o, NULL, &sum, why, 300);

	cr_expect_eq(sum.pass + sum.fail, 0);
	return err;
}

Test(conform_ipoib, what_cannot_be_run_is_said)
{
	struct ddps_conform_ipoib_options o;
	char why[300] = "";

	plan_conform_ipoib(&o);
	o.ip4[3] = 255;
	cr_expect_eq(run_conform_ipoib(&o, why), DDPS_E_INVAL);
	cr_expect_neq(*why, 0);
	plan_conform_ipoib(&o);
	memcpy(o.target, (uint8_t[4]){ 10, 0, 0, 163 }, 4); /* the last of our own */
	cr_expect_eq(run_conform_ipoib(&o, why), DDPS_E_INVAL);
	o.target[3] = 164;
	o.pattern = "no-case";
	cr_expect_eq(run_conform_ipoib(&o, why), 0);
	plan_conform_ipoib(&o);
	o.n_link_ip4 = 2;
	cr_expect_eq(run_conform_ipoib(&o, why), DDPS_E_INVAL);
	plan_conform_ipoib(&o);
	o.profile = "/nowhere";
	cr_expect_eq(run_conform_ipoib(&o, why), DDPS_E_ADDRESS);
	plan_conform_ipoib(&o);
	memcpy(o.ip4, (uint8_t[4]){ 192, 0, 2, 1 }, 4); /* nobody's */
	cr_expect_eq(run_conform_ipoib(&o, why), DDPS_E_SYSTEM);
	plan_conform_ipoib(&o);
	cr_expect_eq(run_conform_ipoib(&o, why), DDPS_E_REFUSED);
	cr_expect(strstr(why, "nobody joins"), "%s", why);
}

Test(conform_ipoib, options_of_a_later_release)
{
	struct {
		struct ddps_conform_ipoib_options o;
		uint64_t more;
	} later;
	char why[300];

	memset(&later, 0, sizeof later);
	plan_conform_ipoib(&later.o);
	later.o.struct_size = sizeof later;
	later.o.pattern = "no-case";
	cr_expect_eq(run_conform_ipoib(&later.o, why), 0);
	later.more = 1;
	cr_expect_eq(run_conform_ipoib(&later.o, why), DDPS_E_UNSUPPORTED);
	later.o.struct_size = 1;
	cr_expect_eq(run_conform_ipoib(&later.o, why), DDPS_E_INVAL);
}

/* One member of a plan that could be run is out of its range. */
static void one_is_wrong(unsigned i, struct ddps_conform_ipoib_options *o)
{
	switch (i) {
	case 0:
		o->udp_port = 0;
		break;
	case 1:
		memset(o->target, 0, 4);
		break;
	case 2:
		memset(o->link_ip4, 0, 4);
		break;
	case 3:
		o->mtu = 0;
		break;
	case 4:
		o->mtu = 6;
		break;
	case 5:
		o->life = 32;
		break;
	case 6:
		o->pkey = 0x8000;
		break;
	case 7:
		o->wait_ms = 0;
		break;
	case 8:
		o->wait_ms = 0x80000000;
		break;
	case 9:
		o->thorough = 2;
		break;
	case 10:
		o->reserved = 1;
		break;
	case 11:
		o->ip4[3] = 0;
		break;
	case 12:
		o->gid[0] = 0xff;
		break;
	default:
		o->n_link_ip4 = 2;
	}
}

Test(conform_ipoib, members_out_of_range_are_refused)
{
	struct ddps_conform_ipoib_options o;
	char why[300];

	plan_conform_ipoib(&o);
	o.pattern = "no-case";
	cr_expect_eq(run_conform_ipoib(&o, why), 0, "as it is, it can be run: %s", why);
	for (unsigned i = 0; i <= 13; i++) {
		plan_conform_ipoib(&o);
		o.pattern = "no-case";
		one_is_wrong(i, &o);
		*why = 0;
		cr_expect_eq(run_conform_ipoib(&o, why), DDPS_E_INVAL, "number %u", i);
		cr_expect(strstr(why, "that there is not"), "number %u: %s", i, why);
	}
}

Test(conform_ipoib, a_broadcast_address_may_be_given)
{
	struct ddps_conform_ipoib_options o;
	char why[300];

	plan_conform_ipoib(&o);
	memcpy(o.broadcast, (uint8_t[4]){ 127, 255, 255, 255 }, 4);
	cr_expect_eq(ddps_conform_ipoib_run(&o, NULL, NULL, why, sizeof why), DDPS_E_REFUSED,
		     "without a sum, too");
	cr_expect(strstr(why, "nobody joins"), "%s", why);
}

/* There is no room for the size. */
Test(conform_ipoib, options_shorter_than_their_size)
{
	struct ddps_conform_ipoib_options o;

	memset(&o, 0x5a, sizeof o);
	ddps_conform_ipoib_options_init_sized(&o, 2);
	cr_expect_eq(((const uint8_t *)&o)[1], 0);
	cr_expect_eq(((const uint8_t *)&o)[2], 0x5a);
}

Test(conform_ipoib, no_memory)
{
	struct ddps_conform_ipoib_options o;
	char why[300];

	plan_conform_ipoib(&o);
	o.pattern = "no-case";
	mem_fail(1);
	cr_expect_eq(ddps_conform_ipoib_run(&o, NULL, NULL, why, sizeof why), DDPS_E_NOMEM);
	cr_expect(mem_failed());
}

/* The target's GID may be as small as fe80::2: what is to be smaller is, or there is none. */
Test(conform_ipoib, contact_31_a_gid_is_on_the_side_that_is_asked_for)
{
	static const uint64_t id[] = { 2, 3, 0x70, 0x0200000000000002, UINT64_MAX - 1 };
	uint8_t gid[CI_GID] = { 0xfe, 0x80 }, to[CI_GID] = { 0xfe, 0x80 };

	for (size_t i = 0; i < sizeof id / sizeof *id; i++) {
		cf_put64(to + 8, id[i]);
		cr_expect(ci_gid_order(gid, to, -1, 100));
		cr_expect_lt(memcmp(gid, to, CI_GID), 0, "%zu", i);
		cr_expect(ci_gid_order(gid, to, 1, 100));
		cr_expect_gt(memcmp(gid, to, CI_GID), 0, "%zu", i);
	}
	cf_put64(to + 8, 1);
	cr_expect_not(ci_gid_order(gid, to, -1, 100));
	cf_put64(to + 8, UINT64_MAX);
	cr_expect_not(ci_gid_order(gid, to, 1, 100));
}

static void set_conform_ipoib_up(struct ci *ci)
{
	memset(ci, 0, sizeof *ci);
	ci->unicast = -1;
	TAILQ_INIT(&ci->ev);
	ci->target.known = true;
	ci->target.lid = 2;
	ci->next_id = 3;
	ci->n_conns = 2;
	ci->conn[0] = (struct ci_conn){ .id = 1, .peer_id = 11, .up = true };
	ci->conn[1] = (struct ci_conn){ .id = 2, .peer_id = 12 };
}

static void say_conform_ipoib(struct ci *ci, uint16_t attr, uint32_t local, uint32_t remote)
{
	uint8_t m[CI_MAD];

	ci_mad(m, 7, 3, attr, ci->next_tid++);
	cf_put32(m + CM_LOCAL, local);
	cf_put32(m + CM_REMOTE, remote);
	ci_cm_rx(ci, 2, m);
}

/* What the target ends at any time is no answer to what a case asks. */
Test(conform_ipoib, contact_31_a_dreq_for_a_connection_that_is_up_is_no_answer)
{
	static struct ci ci;
	uint8_t m[CI_MAD];

	set_conform_ipoib_up(&ci);
	ci_mad(m, 7, 3, CI_DREQ, 5);
	cf_put32(m + CM_LOCAL, 12);
	cf_put32(m + CM_REMOTE, 1);
	cr_expect_not(ci_surplus(&ci, m), "with an ID of another");
	cf_put32(m + CM_REMOTE, 3);
	cr_expect_not(ci_surplus(&ci, m), "of none");
	cf_put32(m + CM_REMOTE, 2);
	cr_expect_not(ci_surplus(&ci, m), "it is not up");
	cf_put32(m + CM_LOCAL, 11);
	cf_put32(m + CM_REMOTE, 1);
	cr_expect(ci_surplus(&ci, m));
	cr_expect_not(ci.conn[0].up);
	cr_expect_not(ci_surplus(&ci, m), "it is over");
}

Test(conform_ipoib, contact_31_a_dreq_in_front_of_an_answer_fails_no_case)
{
	static struct ci ci;
	const uint8_t *rep;

	set_conform_ipoib_up(&ci);
	say_conform_ipoib(&ci, CI_DREQ, 11, 1);
	say_conform_ipoib(&ci, CI_REP, 12, 2);
	if (setjmp(ci.left.to))
		cr_assert(false, "%s", ci.left.why);
	rep = ci_came(&ci, CI_REP, 0);
	cr_assert_not_null(rep);
	cr_expect_eq(ci_attr(rep), CI_REP);
	cr_expect_not(ci.conn[0].up);
	ci_forget(&ci);
}

Test(conform_ipoib, contact_31_a_target_may_ask_for_time)
{
	static struct ci ci;

	set_conform_ipoib_up(&ci);
	say_conform_ipoib(&ci, CI_MRA, 12, 2);
	say_conform_ipoib(&ci, CI_LAP, 11, 1);
	cr_expect_eq(ci.n_ev, 0);
	say_conform_ipoib(&ci, CI_MRA, 11, 1);
	say_conform_ipoib(&ci, CI_LAP, 12, 2);
	cr_expect_eq(ci.n_ev, 2, "where it makes no sense a case sees it");
	ci_forget(&ci);
}

/* However much others ask: what the target asks is kept. */
Test(conform_ipoib, contact_31_queries_of_others_leave_room_for_those_of_the_target)
{
	static struct ci ci;
	uint8_t q[CI_MAD];

	set_conform_ipoib_up(&ci);
	ci.sa = true;
	ci_mad(q, 3, SA_GET, SA_PATH, 7);
	for (unsigned i = 0; i < CI_LOG; i++)
		ci_sa_rx(&ci, 3, q);
	ci_sa_rx(&ci, 2, q);
	cr_expect_eq(ci.n_log, 1);
	cr_expect_eq(ci.log[0].slid, 2);
}
