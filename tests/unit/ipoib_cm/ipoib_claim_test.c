/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * How an address becomes a host's (RFC 5227, RFC 4862 5.4): three interfaces on a wire that carries only
 * datagrams to groups.  A node may be stopped: what comes meanwhile waits for it, or is lost.
 */
#include <criterion/criterion.h>
#include <stdlib.h>
#include <string.h>
#include "ipoib_cm/wire/wire.h"
#include <ddpsess/ipoib_if.h>

#define MS    1000000ull
#define SEC   (1000 * MS)
#define STEP  (10 * MS)
#define NODES 3
#define WAIT  64 /* frames that wait for one node */
#define IN_7S (7 * SEC + 2 * STEP)

static const uint8_t ip4[4] = { 10, 0, 0, 9 };
static const uint8_t ip6[16] = { 0xfe, 0x80, [15] = 9 };

struct claim_node {
	struct ddps_ipoib_port port; /* the first: ops get this */
	struct ddps_ipoib_if *f;
	struct ddps_ipoib_lladdr me;
	bool stopped, asleep;
	unsigned n, joins;
	uint8_t joined[WAIT][DDPS_IPOIB_GID_LEN];
	struct {
		unsigned from;
		size_t len;
		uint8_t frame[200];
	} wait[WAIT];
};

static struct {
	uint64_t now;
	unsigned used[NODES]; /* frames in which a node says that it has the address */
	struct claim_node node[NODES];
} wire;

/* ARP with it as sender, or an advertisement of it. */
static bool is_use(const uint8_t *p, size_t len)
{
	if (len == DDPS_IPOIB_ENCAP_LEN + DDPS_IPOIB_ARP_LEN)
		return !memcmp(p + DDPS_IPOIB_ENCAP_LEN + 28, ip4, 4);
	return p[DDPS_IPOIB_ENCAP_LEN + 40] == 136 &&
	       !memcmp(p + DDPS_IPOIB_ENCAP_LEN + 48, ip6, 16);
}

static int claim_ud_send(struct ddps_ipoib_port *port, const struct ddps_ipoib_lladdr *to,
			 const struct ddps_ipoib_path *path, const void *frame, size_t len)
{
	struct claim_node *n = (void *)port;
	const unsigned from = (unsigned)(n - wire.node);

	(void)to;
	cr_assert_null(path);
	cr_assert_leq(len, sizeof(n->wait[0].frame));
	wire.used[from] += is_use(frame, len);
	for (unsigned i = 0; i < NODES; i++) {
		n = &wire.node[i];
		if (i == from || !n->f || n->asleep || n->n == WAIT)
			continue;
		n->wait[n->n].from = from;
		n->wait[n->n].len = len;
		memcpy(n->wait[n->n++].frame, frame, len);
	}
	return 0;
}

static int claim_join(struct ddps_ipoib_port *port, const uint8_t *mgid)
{
	struct claim_node *n = (void *)port;

	cr_assert_lt(n->joins, WAIT);
	memcpy(n->joined[n->joins++], mgid, DDPS_IPOIB_GID_LEN);
	return 0;
}

static void claim_leave(struct ddps_ipoib_port *port, const uint8_t *mgid)
{
	(void)port;
	(void)mgid;
}

static int claim_resolve(struct ddps_ipoib_port *port, const uint8_t *gid)
{
	(void)port;
	(void)gid;
	return DDPS_E_ADDRESS;
}

static void claim_deliver(void *user, const void *packet, size_t len)
{
	(void)user;
	(void)packet;
	(void)len;
}

static const struct ddps_ipoib_port_ops claim_ops = { .struct_size = sizeof(claim_ops),
						      .ud_send = claim_ud_send,
						      .join = claim_join,
						      .leave = claim_leave,
						      .resolve = claim_resolve };

/* With the address, of one version, or without. */
static void begin_claim_node(unsigned i, uint32_t seed, bool v6, bool has)
{
	const struct ddps_ipoib_if_calls calls = { .struct_size = sizeof(calls),
						   .deliver = claim_deliver };
	struct claim_node *n = &wire.node[i];
	struct ddps_ipoib_if_config c;

	ddps_ipoib_if_config_init(&c);
	n->port.ops = &claim_ops;
	n->me = (struct ddps_ipoib_lladdr){ .qpn = 0x50 + i,
					    .gid = { 0xfe, 0x80, [15] = (uint8_t)(i + 1) } };
	c.me.addr = n->me;
	c.me.pkey = 0xffff;
	c.me.rx_mtu = 2048;
	c.has_ip4 = true;
	memcpy(c.ip4, (uint8_t[]){ 10, 0, 0, (uint8_t)(100 + i) }, 4);
	c.prefix4 = 24;
	c.n_ip6 = 1;
	memcpy(c.ip6[0], ip6, 16);
	c.ip6[0][15] = (uint8_t)(100 + i);
	if (has && v6)
		memcpy(c.ip6[0], ip6, 16);
	else if (has)
		memcpy(c.ip4, ip4, 4);
	c.seed = seed;
	cr_assert_eq(ddps_ipoib_if_new(&n->f, &c, &n->port, &calls), 0);
	cr_assert_eq(ddps_ipoib_if_start(n->f, wire.now), 0);
}

static void turn_claim_node(struct claim_node *n)
{
	struct ddps_ipoib_ud_from from = { .has_gid = true, .multicast = true };

	for (unsigned i = 0; i < n->joins; i++)
		ddps_ipoib_if_up()->joined(n->f, n->joined[i], 0, 2048, wire.now);
	n->joins = 0;
	for (unsigned i = 0; i < n->n; i++) {
		from.qpn = wire.node[n->wait[i].from].me.qpn;
		memcpy(from.gid, wire.node[n->wait[i].from].me.gid, 16);
		ddps_ipoib_if_up()->ud(n->f, &from, n->wait[i].frame, n->wait[i].len, wire.now);
	}
	n->n = 0;
	if (ddps_ipoib_if_deadline(n->f) <= wire.now)
		ddps_ipoib_if_tick(n->f, wire.now);
}

static void pass_claim_time(uint64_t for_ns)
{
	for (const uint64_t end = wire.now + for_ns; wire.now < end; wire.now += STEP)
		for (unsigned i = 0; i < NODES; i++)
			if (wire.node[i].f && !wire.node[i].stopped)
				turn_claim_node(&wire.node[i]);
}

static bool get_claim(unsigned i, bool v6, bool *held)
{
	struct ddps_ipoib_if_addr_info info;
	int res;

	*held = false;
	for (unsigned nr = 0; (res = ddps_ipoib_if_addr_info(wire.node[i].f, nr, &info)) >= 0; nr++)
		if (res && info.ip6 == v6 && !memcmp(info.ip, v6 ? ip6 : ip4, v6 ? 16 : 4)) {
			*held = info.held;
			return true;
		}
	return false;
}

static bool is_claim_held(unsigned i, bool v6)
{
	bool held;

	return get_claim(i, v6, &held) && held;
}

static unsigned count_claim_conflicts(unsigned i)
{
	struct ddps_ipoib_if_conflict c;
	unsigned n = 0;
	int res;

	for (unsigned nr = 0; (res = ddps_ipoib_if_conflict(wire.node[i].f, nr, &c)) >= 0; nr++)
		n += res > 0;
	return n;
}

static void end_claims(void)
{
	for (unsigned i = 0; i < NODES; i++)
		ddps_ipoib_if_free(wire.node[i].f);
	memset(&wire, 0, sizeof(wire));
}

#define EACH_WORLD(v6, seed, most)                                                                 \
	for (unsigned world_ = 0; world_ < 2 * (most); world_++, end_claims())                     \
		for (uint32_t seed = world_ / 2 + 1, once_ = 1, v6 = world_ % 2; once_; once_ = 0)

/* 0 to 1 s, twice 1 to 2 s, and 2 s; for IPv6 0 to 1 s and 1 s. */
Test(ipoib_claim, contact_37_an_address_is_used_only_after_the_link_was_asked_for_it,
     .fini = end_claims,
     .description = "5227-2.1-1 5227-2.1.1-1 5227-2.1.1-2 5227-2.3-1 4862-5.4-1 4862-5.4.2-1")
{
	uint64_t least[2] = { UINT64_MAX, UINT64_MAX }, most[2] = { 0 };

	EACH_WORLD(v6, seed, 100)
	{
		begin_claim_node(0, seed, v6, true);
		while (!is_claim_held(0, v6)) {
			cr_assert_eq(wire.used[0], 0, "announced while it may be another's");
			cr_assert_lt(wire.now, 8 * SEC);
			pass_claim_time(STEP);
		}
		least[v6] = wire.now < least[v6] ? wire.now : least[v6];
		most[v6] = wire.now > most[v6] ? wire.now : most[v6];
		pass_claim_time(5 * SEC);
		cr_expect_eq(wire.used[0], 2, "twice");
	}
	cr_expect(least[0] >= 4 * SEC && least[0] < 5 * SEC && most[0] > 6 * SEC &&
		  most[0] <= IN_7S);
	cr_expect(least[1] >= SEC && least[1] < SEC + 200 * MS && most[1] > 1800 * MS &&
		  most[1] <= 2 * SEC + 2 * STEP);
}

Test(ipoib_claim, contact_37_the_second_one_never_announces_an_address, .fini = end_claims,
     .description = "5227-2.1.1-3 4862-5.4.4-1")
{
	EACH_WORLD(v6, seed, 30)
	{
		bool held;

		begin_claim_node(0, seed, v6, true);
		pass_claim_time(10 * SEC);
		begin_claim_node(1, seed + 1000, v6, true);
		pass_claim_time(10 * SEC);
		cr_expect(is_claim_held(0, v6));
		cr_expect_not(get_claim(1, v6, &held));
		cr_expect_eq(wire.used[1], 0, "seed %u, IPv%u", seed, v6 ? 6 : 4);
		cr_expect_eq(count_claim_conflicts(0), 1);
		cr_expect_eq(count_claim_conflicts(1), 1);
	}
}

/* Whose question is heard first gets it.  If they cross on the wire, both must look for another. */
Test(ipoib_claim, contact_37_of_two_that_start_together_one_gets_the_address, .fini = end_claims,
     .description = "5227-2.1.1-4 4862-5.4.3-1")
{
	unsigned none = 0, one = 0;

	EACH_WORLD(v6, seed, 100)
	{
		begin_claim_node(0, seed, v6, true);
		begin_claim_node(1, seed * 7 + 5000, v6, true);
		pass_claim_time(10 * SEC);
		cr_assert(!is_claim_held(0, v6) || !is_claim_held(1, v6), "seed %u", seed);
		cr_assert(!wire.used[0] || !wire.used[1]);
		one += is_claim_held(0, v6) || is_claim_held(1, v6);
		none += !is_claim_held(0, v6) && !is_claim_held(1, v6);
	}
	cr_expect_leq(none, 10, "%u of 200", none);
	cr_expect_eq(one + none, 200);
}

static void test_stopped(bool lost, uint64_t after)
{
	EACH_WORLD(v6, seed, 30)
	{
		bool held;

		begin_claim_node(0, seed, v6, true);
		pass_claim_time(after);
		wire.node[0].stopped = true;
		wire.node[0].asleep = lost;
		begin_claim_node(1, seed + 1000, v6, true);
		pass_claim_time(20 * SEC);
		cr_assert(is_claim_held(1, v6));
		wire.used[0] = 0;
		wire.node[0].stopped = wire.node[0].asleep = false;
		turn_claim_node(&wire.node[0]);
		ddps_ipoib_if_missed(wire.node[0].f, 20 * SEC, wire.now);
		pass_claim_time(10 * SEC);
		cr_expect(is_claim_held(1, v6), "seed %u, IPv%u", seed, v6 ? 6 : 4);
		cr_expect_not(get_claim(0, v6, &held), "seed %u, IPv%u", seed, v6 ? 6 : 4);
		cr_expect_leq(wire.used[0], lost ? 0 : 1, "but to the one that asked in between");
	}
}

Test(ipoib_claim, contact_37_one_that_was_stopped_asks_anew, .fini = end_claims)
{
	test_stopped(false, 500 * MS);
	test_stopped(true, 500 * MS);
	test_stopped(true, 10 * SEC);
}

/* A timer that comes late by more than the spacing of probes means the same. */
Test(ipoib_claim, contact_37_a_wait_that_was_slept_through_does_not_count, .fini = end_claims)
{
	begin_claim_node(0, 1, false, true);
	pass_claim_time(3 * SEC);
	wire.node[0].stopped = wire.node[0].asleep = true;
	pass_claim_time(5 * SEC);
	wire.node[0].stopped = wire.node[0].asleep = false;
	turn_claim_node(&wire.node[0]);
	cr_expect_not(is_claim_held(0, false));
	pass_claim_time(IN_7S);
	cr_expect(is_claim_held(0, false));
}

static void bounce_claim_link(uint64_t for_ns)
{
	ddps_ipoib_if_up()->link(wire.node[0].f, false, wire.now);
	wire.now += for_ns;
	ddps_ipoib_if_up()->link(wire.node[0].f, true, wire.now);
	turn_claim_node(&wire.node[0]);
}

Test(ipoib_claim, contact_37_an_address_outlives_a_short_loss_of_the_link, .fini = end_claims)
{
	EACH_WORLD(v6, seed, 5)
	{
		const uint64_t least = v6 ? SEC : 4 * SEC; /* in which another node can get it */

		begin_claim_node(0, seed, v6, true);
		pass_claim_time(10 * SEC);
		bounce_claim_link(least - 100 * MS);
		cr_expect(is_claim_held(0, v6));
		cr_expect_eq(wire.used[0], 3, "it is announced");
		pass_claim_time(10 * SEC);
		bounce_claim_link(least + 100 * MS);
		cr_expect_not(is_claim_held(0, v6));
		pass_claim_time(10 * SEC);
		cr_expect(is_claim_held(0, v6));
	}
}

/* As long as the other one answers; and no longer. */
Test(ipoib_claim, contact_37_a_conflict_that_is_over_is_forgotten, .fini = end_claims)
{
	EACH_WORLD(v6, seed, 2)
	{
		begin_claim_node(0, seed, v6, true);
		begin_claim_node(1, seed, v6, false);
		pass_claim_time(10 * SEC);
		wire.node[0].asleep = wire.node[0].stopped = true;
		cr_assert_eq(ddps_ipoib_if_address(wire.node[1].f, v6, v6 ? ip6 : ip4, 64, true,
						   wire.now),
			     0);
		pass_claim_time(10 * SEC);
		wire.node[0].asleep = wire.node[0].stopped = false;
		cr_assert_eq(ddps_ipoib_if_address(wire.node[1].f, v6, v6 ? ip6 : ip4, 64, false,
						   wire.now),
			     0);
		/* both have had it for long: the parts of the link grow together */
		cr_assert_eq(ddps_ipoib_if_address(wire.node[1].f, v6, v6 ? ip6 : ip4, 64, true,
						   wire.now),
			     0);
		wire.node[0].asleep = wire.node[0].stopped = true;
		pass_claim_time(10 * SEC);
		wire.node[0].asleep = wire.node[0].stopped = false;
		cr_assert(is_claim_held(0, v6) && is_claim_held(1, v6));
		wire.used[0] = wire.used[1] = 0;
		bounce_claim_link(500 * MS);
		pass_claim_time(20 * SEC);
		cr_expect_eq(count_claim_conflicts(0), 1);
		cr_expect_eq(count_claim_conflicts(1), 1);
		cr_expect_leq(wire.used[0] + wire.used[1], 10, "no quarrel without end");
		pass_claim_time(600 * SEC);
		cr_expect(is_claim_held(0, v6) && is_claim_held(1, v6));
		cr_expect_eq(count_claim_conflicts(0), 1, "it is asked, and still there");
		cr_assert_eq(ddps_ipoib_if_address(wire.node[1].f, v6, v6 ? ip6 : ip4, 64, false,
						   wire.now),
			     0);
		pass_claim_time(181 * SEC);
		cr_expect_eq(count_claim_conflicts(0), 0);
	}
}

/* What was given up is this host's again, as soon as the other one is gone. */
Test(ipoib_claim, contact_37_an_address_that_is_free_again_has_no_conflict, .fini = end_claims)
{
	EACH_WORLD(v6, seed, 5)
	{
		begin_claim_node(0, seed, v6, true);
		pass_claim_time(10 * SEC);
		begin_claim_node(1, seed + 1, v6, true);
		pass_claim_time(10 * SEC);
		cr_assert_eq(count_claim_conflicts(1), 1);
		ddps_ipoib_if_stop(wire.node[0].f, wire.now);
		cr_assert_eq(ddps_ipoib_if_address(wire.node[1].f, v6, v6 ? ip6 : ip4, 64, true,
						   wire.now),
			     0);
		pass_claim_time(IN_7S);
		cr_expect(is_claim_held(1, v6));
		cr_expect_eq(count_claim_conflicts(1), 0);
	}
}

/* The host's own packets from it would have answers that go to the other node. */
Test(ipoib_claim, contact_37_packets_from_an_address_wait_for_the_right_to_it, .fini = end_claims)
{
	const struct ddps_ipoib_if_stats *s;
	uint8_t p[28] = { 0x45, [3] = 28, [8] = 64, 17, [16] = 10, 0, 0, 101 };

	memcpy(p + 12, ip4, 4);
	begin_claim_node(0, 1, false, true);
	pass_claim_time(2 * SEC);
	s = ddps_ipoib_if_stats(wire.node[0].f);
	cr_expect_eq(ddps_ipoib_if_send(wire.node[0].f, p, sizeof(p), wire.now), 0);
	cr_expect_eq(s->tx_young, 1);
	cr_expect_eq(s->tx_query, 0);
	pass_claim_time(IN_7S);
	cr_expect_eq(ddps_ipoib_if_send(wire.node[0].f, p, sizeof(p), wire.now), 0);
	cr_expect_eq(s->tx_young, 1);
	cr_expect_eq(s->tx_query, 1);
}
