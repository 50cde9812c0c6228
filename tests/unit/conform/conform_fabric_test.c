/* SPDX-License-Identifier: BSD-2-Clause */
/* The suite for IPoIB by a port of a fabric: adapters of this test, the target a node of ours there. */
#include "unit/ipoib_cm/ib_verbs_fixture.h"
#include "support/clock.h"
#include <ddpsess/conform_ipoib.h>
#include <time.h>

#define SUITE  0
#define TARGET 1

static struct ddps_ib_verbs *port; /* the suite's */
static unsigned n_open, n_runs;
static bool mute;  /* the target answers no echo */
static bool blind; /* no port can be opened */

/* ---- the target answers echoes ---- */

static void put_conform_fabric_sum(uint8_t *at, const uint8_t *p, size_t len)
{
	uint32_t s = 0;

	at[0] = at[1] = 0;
	for (size_t i = 0; i < len; i++)
		s += i & 1 ? p[i] : (uint32_t)p[i] << 8;
	while (s >> 16)
		s = (s & 0xffff) + (s >> 16);
	at[0] = (uint8_t)(~s >> 8);
	at[1] = (uint8_t)~s;
}

static void answer_fabric_echo(void *user, const void *packet, size_t len)
{
	static uint8_t b[65536];

	(void)user;
	memcpy(b, packet, len);
	if (mute || len < 28 || b[9] != 1 || b[20] != 8)
		return;
	memcpy(b + 12, (const uint8_t *)packet + 16, 4);
	memcpy(b + 16, (const uint8_t *)packet + 12, 4);
	put_conform_fabric_sum(b + 10, b, 20);
	b[20] = 0;
	put_conform_fabric_sum(b + 22, b + 20, len - 20);
	(void)ddps_ipoib_if_send(peer[TARGET].f, b, len, fake_now);
}

/* ---- the suite's port ---- */

static struct ddps_ipoib_port *open_own_port(void *user, const struct ddps_ipoib_up *up,
					     void *up_user, struct ddps_conform_ipoib_node *node,
					     char *text, size_t len)
{
	struct ddps_ib_verbs_config c = make_ib_verbs_config(SUITE);

	(void)user;
	c.up = up;
	c.see = NULL;
	c.seed = ++n_open;
	fake_now = read_clock_ns();
	if (blind) {
		snprintf(text, len, "the cable is out; try: put it in");
		return NULL;
	}
	if (ddps_vport_new(&port, &c, &fake_lib, text, len))
		return NULL;
	ddps_ib_verbs_user(port, up_user);
	(void)ddps_ib_verbs_run(port, fake_now);
	memcpy(node->gid, ddps_ib_verbs_info(port)->gid, 16);
	node->qpn = ddps_ib_verbs_info(port)->qpn;
	node->pkey = ddps_ib_verbs_info(port)->pkey;
	return ddps_ib_verbs_port(port);
}

static void close_own_port(void *user)
{
	(void)user;
	ddps_ib_verbs_free(port);
	port = NULL;
}

/* The whole fabric's turns: everybody is in this thread. */
static void run_own_fabric(void *user, uint64_t until)
{
	uint64_t now = read_clock_ns();

	(void)user;
	for (unsigned i = 0; i < 20; i++) {
		fake_now = now;
		if (ddps_sa_due(fake_sa) <= now)
			ddps_sa_tick(fake_sa, now);
		(void)ddps_ib_verbs_run(port, now);
		(void)ddps_ib_verbs_run(peer[TARGET].v, now);
		if (ddps_ipoib_if_deadline(peer[TARGET].f) <= now)
			ddps_ipoib_if_tick(peer[TARGET].f, now);
	}
	if (now < until)
		(void)nanosleep(&(struct timespec){ .tv_nsec = 100000 }, NULL);
}

static unsigned count_own_waiting(void *user, uint32_t qpn)
{
	(void)user;
	return ddps_ib_verbs_waiting(port, qpn);
}

static const struct ddps_conform_ipoib_fabric fabric = { .struct_size = sizeof fabric,
							 .open = open_own_port,
							 .close = close_own_port,
							 .run = run_own_fabric,
							 .waiting = count_own_waiting };

/* ---- runs ---- */

static void init_target(void)
{
	struct ddps_ipoib_if_calls calls = { sizeof(calls), answer_fabric_echo, NULL, NULL };
	const struct ddps_ib_verbs_info *info;
	struct ddps_ipoib_if_config f;

	init();
	n_open = 0;
	mute = blind = false;
	fake_now = read_clock_ns();
	cr_assert_eq(try_open_ib_verbs(TARGET), 0, "%s", why);
	info = ddps_ib_verbs_info(peer[TARGET].v);
	ddps_ipoib_if_config_init(&f);
	f.me.addr = (struct ddps_ipoib_lladdr){ .flags = DDPS_IPOIB_RC, .qpn = info->qpn };
	memcpy(f.me.addr.gid, info->gid, 16);
	f.me.pkey = info->pkey;
	f.me.rx_mtu = 65524;
	f.has_ip4 = true;
	memcpy(f.ip4, (uint8_t[4]){ 10, 0, 0, 2 }, 4);
	f.prefix4 = 24;
	f.ca_guid = info->node_guid;
	f.seed = 5;
	f.probe_ns = 20000000; /* held after 140 ms: the suite waits longer */
	cr_assert_eq(ddps_ipoib_if_new(&peer[TARGET].f, &f, ddps_ib_verbs_port(peer[TARGET].v),
				       &calls),
		     0);
	ddps_ib_verbs_user(peer[TARGET].v, &peer[TARGET]);
	(void)ddps_ib_verbs_run(peer[TARGET].v, fake_now);
	cr_assert_eq(ddps_ipoib_if_start(peer[TARGET].f, fake_now), 0);
}

static struct {
	unsigned n[8];
	char last[1000];
} seen;

static void note_fabric_verdict(void *user, const struct ddps_conform_result *r)
{
	(void)user;
	seen.n[r->verdict]++;
	snprintf(seen.last, sizeof seen.last, "%s: %s", r->c.name, r->why);
	cr_expect_neq(r->verdict, DDPS_CONFORM_FAIL, "%s", seen.last);
}

static bool go_on_always(void *user)
{
	(void)user;
	return true;
}

static void plan_fabric_run(struct ddps_conform_ipoib_options *o, const char *pattern)
{
	memset(&seen, 0, sizeof seen);
	ddps_conform_ipoib_options_init(o);
	memcpy(o->target, (uint8_t[4]){ 10, 0, 0, 2 }, 4);
	memcpy(o->link_ip4, (uint8_t[4]){ 10, 0, 0, 100 }, 4);
	o->wait_ms = 3000;
	o->seed = 77 + ++n_runs; /* IDs that were used before are stale */
	o->pattern = pattern;
	o->fabric = &fabric;
}

static int judge_fabric_run(const char *pattern, struct ddps_conform_sum *sum)
{
	const struct ddps_conform_calls calls = { sizeof calls, NULL, go_on_always,
						  note_fabric_verdict };
	struct ddps_conform_ipoib_options o;

	plan_fabric_run(&o, pattern);
	return ddps_conform_ipoib_run(&o, &calls, sum, why, sizeof why);
}

static void expect_cases_pass(const char *pattern, unsigned n)
{
	struct ddps_conform_sum sum;

	cr_assert_eq(judge_fabric_run(pattern, &sum), 0, "%s", why);
	cr_expect_eq(sum.fail, 0);
	cr_expect_eq(sum.pass, n, "%s: %u passed, %u skipped; %s", pattern, sum.pass, sum.skip,
		     seen.last);
}

Test(conform_fabric, cases_for_connections_pass, .init = init_target, .fini = fini)
{
	expect_cases_pass("cm-service-id*", 5);
	expect_cases_pass("end-d*", 4);
	expect_cases_pass("cm-rep*private", 1);
	expect_cases_pass("cm-stale", 1);
	expect_cases_pass("rc-echo", 1);
	expect_cases_pass("rc-wrap", 1);
	expect_cases_pass("rtu*", 3);
	cr_expect_gt(n_open, 10, "each neighbour has another queue pair");
}

Test(conform_fabric, cases_for_datagrams_pass, .init = init_target, .fini = fini)
{
	expect_cases_pass("arp-moved", 1);
	expect_cases_pass("arp-re*", 3);
	expect_cases_pass("ud-echo", 1);
	expect_cases_pass("ud-broadcast", 1);
	expect_cases_pass("flipped-dreq", 1);
	expect_cases_pass("whole-m*", 1);
}

/* By name, never silently. */
Test(conform_fabric, what_an_adapter_cannot_do_is_skipped_and_said, .init = init_target,
     .fini = fini)
{
	static const char *const pattern[] = { "short-*", "packet-*", "rc-gap", "whole-icrc" };
	static const unsigned many[] = { 7, 6, 1, 1 };
	struct ddps_conform_sum sum;

	for (unsigned i = 0; i < 4; i++) {
		cr_assert_eq(judge_fabric_run(pattern[i], &sum), 0, "%s", why);
		cr_expect(sum.skip == many[i] && !sum.pass, "%s: %u", pattern[i], sum.skip);
		cr_expect(strstr(seen.last, "this port cannot"), "%s", seen.last);
	}
	cr_assert_eq(judge_fabric_run("link-*", &sum), 0, "%s", why);
	cr_expect_eq(sum.pass, 0);
	cr_expect(strstr(seen.last, "not the administration"), "%s", seen.last);
}

/* Its queue pair's number is the adapter's: one order of two can be had. */
Test(conform_fabric, crossed_reqs_as_far_as_the_numbers_go, .init = init_target, .fini = fini)
{
	expect_cases_pass("cross-larger", 1);
}

Test(conform_fabric, a_target_that_is_not_there, .init = init_target, .fini = fini)
{
	struct ddps_conform_ipoib_options o;
	struct ddps_conform_sum sum;

	plan_fabric_run(&o, "cm-rep");
	o.target[3] = 77;
	o.wait_ms = 100;
	cr_expect_eq(ddps_conform_ipoib_run(&o, NULL, &sum, why, sizeof why), DDPS_E_REFUSED);
	cr_expect(strstr(why, "does not answer ARP"), "%s", why);
	cr_expect_null(port, "it was closed");
	blind = true;
	cr_expect_eq(judge_fabric_run("cm-rep", &sum), DDPS_E_REFUSED);
	cr_expect(strstr(why, "cable is out"), "%s", why);
}

static bool stop_at_once(void *user)
{
	(void)user;
	return false;
}

Test(conform_fabric, a_caller_ends_the_run_before_a_case, .init = init_target, .fini = fini)
{
	const struct ddps_conform_calls ends = { sizeof ends, NULL, stop_at_once,
						 note_fabric_verdict };
	const struct ddps_conform_calls listens = { sizeof listens, NULL, NULL,
						    note_fabric_verdict };
	struct ddps_conform_ipoib_options o;
	struct ddps_conform_sum sum;

	plan_fabric_run(&o, "end-d*");
	cr_expect_eq(ddps_conform_ipoib_run(&o, &ends, &sum, why, sizeof why), 0, "%s", why);
	cr_expect_eq(sum.pass + sum.fail + sum.skip, 0);
	plan_fabric_run(&o, "end-dreq");
	cr_expect_eq(ddps_conform_ipoib_run(&o, &listens, &sum, why, sizeof why), 0, "%s", why);
	cr_expect(sum.pass == 1 && seen.n[DDPS_CONFORM_PASS] == 1);
}

Test(conform_fabric, a_fabric_without_its_calls, .init = init_target, .fini = fini)
{
	struct ddps_conform_ipoib_fabric f = fabric;
	struct ddps_conform_ipoib_options o;
	struct ddps_conform_sum sum;

	plan_fabric_run(&o, "cm-rep");
	o.fabric = &f;
	f.waiting = NULL;
	cr_expect_eq(ddps_conform_ipoib_run(&o, NULL, &sum, why, sizeof why), DDPS_E_INVAL);
	f = fabric;
	f.open = NULL;
	cr_expect_eq(ddps_conform_ipoib_run(&o, NULL, &sum, why, sizeof why), DDPS_E_INVAL);
	f = fabric;
	f.close = NULL;
	cr_expect_eq(ddps_conform_ipoib_run(&o, NULL, &sum, why, sizeof why), DDPS_E_INVAL);
	f = fabric;
	f.run = NULL;
	cr_expect_eq(ddps_conform_ipoib_run(&o, NULL, &sum, why, sizeof why), DDPS_E_INVAL);
	f = fabric;
	f.struct_size = 8;
	cr_expect_eq(ddps_conform_ipoib_run(&o, NULL, &sum, why, sizeof why), DDPS_E_INVAL);
	o.fabric = &fabric;
	o.sa_lid = 3;
	cr_expect_eq(ddps_conform_ipoib_run(&o, NULL, &sum, why, sizeof why), DDPS_E_INVAL);
}
