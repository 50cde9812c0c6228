/* SPDX-License-Identifier: BSD-2-Clause */
/* What an interface does when its port or its memory fails it, with one family alone, and with news of its ways. */
#include <criterion/criterion.h>
#include <string.h>
#include "ipoib_cm/sim/sim_port.h"
#include "ipoib_cm/wire/wire.h"
#include "ipoib_net_fixture.h"
#include "unit/mem_fixture.h"

#define FRAME_MAX 256

static struct net net;

/* The port of node 0, which does not do what it is asked for. */
static const struct ddps_ipoib_port_ops *real;
static struct ddps_ipoib_port_ops ops;
static int qp_err, ud_err;
static unsigned n_resolve;

static int qp_send(struct ddps_ipoib_port *p, uint32_t qpn, const void *frame, size_t len)
{
	return qp_err ? qp_err : real->qp_send(p, qpn, frame, len);
}

static int fake_ipoib_if_rare_ud_send(struct ddps_ipoib_port *p, const struct ddps_ipoib_lladdr *to,
				      const struct ddps_ipoib_path *path, const void *frame,
				      size_t len)
{
	return ud_err ? ud_err : real->ud_send(p, to, path, frame, len);
}

static int resolve_ipoib_if_rare(struct ddps_ipoib_port *p, const uint8_t gid[DDPS_IPOIB_GID_LEN])
{
	n_resolve++;
	return real->resolve(p, gid);
}

static void take_port(void)
{
	struct ddps_ipoib_port *p = ddps_ipoib_sim_port(net.sim, 0);

	real = p->ops;
	ops = *real;
	ops.qp_send = qp_send;
	ops.ud_send = fake_ipoib_if_rare_ud_send;
	ops.resolve = resolve_ipoib_if_rare;
	p->ops = &ops;
}

static struct ddps_ipoib_if *get_own_ipoib_if_rare(void)
{
	return net.node[0].f;
}

static uint64_t get_ipoib_if_rare_now(void)
{
	return ddps_ipoib_sim_now(net.sim);
}

/* Three nodes; the first two with a connection, known to each other by both families. */
static void init(void)
{
	net_init(&net, 3, 7, DDPS_IPOIB_RC);
	take_port();
	net_start_all(&net);
	net_send4(&net, 0, 1, 100, true);
	net_send6(&net, 0, 1, 100);
	net_run(&net, SEC);
	cr_assert_eq(net_conns(&net, 0), 1);
}

static void fini(void)
{
	net_fini(&net);
}

#define RareTest(name, ids)                                                                        \
	Test(ipoib_if_rare, name, .init = init, .fini = fini, .description = ids)

static void feed_ipoib_if_rare_rx(const uint8_t *frame, size_t len)
{
	const struct ddps_ipoib_ud_from from = { .qpn = 0x4a };

	ddps_ipoib_if_up()->ud(get_own_ipoib_if_rare(), &from, frame, len, get_ipoib_if_rare_now());
}

/* ---- its life ---- */

static void ignore_ipoib_if_rare_deliver(void *user, const void *packet, size_t len)
{
	(void)user, (void)packet, (void)len;
}

Test(ipoib_if_rare, each_allocation_may_fail)
{
	const struct ddps_ipoib_if_calls calls = { .struct_size = sizeof(calls),
						   .deliver = ignore_ipoib_if_rare_deliver };
	struct ddps_ipoib_port *port;
	unsigned n = 1;
	long live;

	net_init(&net, 1, 1, DDPS_IPOIB_RC);
	port = ddps_ipoib_sim_port(net.sim, 0);
	live = mem_live();
	for (;; n++) {
		struct ddps_ipoib_if *f = NULL;
		int err;

		cr_assert_lt(n, 100);
		mem_fail(n);
		err = ddps_ipoib_if_new(&f, &net.node[0].cfg, port, &calls);
		if (!mem_failed()) {
			cr_assert_eq(err, 0);
			ddps_ipoib_if_free(f);
			break;
		}
		cr_expect_eq(err, DDPS_E_NOMEM, "allocation %u", n);
		cr_expect_null(f);
		cr_expect_eq(mem_live(), live, "allocation %u", n);
	}
	cr_expect_gt(n, 15);
	mem_fail(0);
	net_fini(&net);
}

Test(ipoib_if_rare, a_port_without_functions)
{
	const struct ddps_ipoib_if_calls calls = { .struct_size = sizeof(calls),
						   .deliver = ignore_ipoib_if_rare_deliver };
	struct ddps_ipoib_port port = { 0 };
	struct ddps_ipoib_if *f = NULL;

	net_init(&net, 1, 1, DDPS_IPOIB_RC);
	cr_expect_eq(ddps_ipoib_if_new(&f, &net.node[0].cfg, &port, &calls), DDPS_E_INVAL);
	ops.struct_size = sizeof(ops) - 1;
	port.ops = &ops;
	cr_expect_eq(ddps_ipoib_if_new(&f, &net.node[0].cfg, &port, &calls), DDPS_E_INVAL);
	cr_expect_null(f);
	net_fini(&net);
}

RareTest(a_join_that_comes_after_the_end, "4391-5-2")
{
	uint8_t mgid[DDPS_IPOIB_GID_LEN];

	cr_assert_eq(ddps_ipoib_mgid_broadcast(mgid, 0xffff, 2), 0);
	ddps_ipoib_if_stop(get_own_ipoib_if_rare(), get_ipoib_if_rare_now());
	ddps_ipoib_if_up()->joined(get_own_ipoib_if_rare(), mgid, 0, 2048, get_ipoib_if_rare_now());
	cr_expect_eq(ddps_ipoib_if_state(get_own_ipoib_if_rare()), DDPS_IPOIB_IF_DOWN);
	cr_assert_eq(ddps_ipoib_if_start(get_own_ipoib_if_rare(), get_ipoib_if_rare_now()), 0);
	ddps_ipoib_if_up()->joined(get_own_ipoib_if_rare(), mgid, 0, 2048, get_ipoib_if_rare_now());
	cr_expect_eq(ddps_ipoib_if_state(get_own_ipoib_if_rare()), DDPS_IPOIB_IF_UP);
}

/* ---- one family alone ---- */

static size_t make_ipoib_if_rare_arp_frame(uint8_t *frame, uint16_t op)
{
	struct ddps_ipoib_arp arp = { .op = op, .sender = net.node[2].cfg.me.addr };

	memcpy(arp.sender_ip, net.node[2].cfg.ip4, 4);
	memcpy(arp.target_ip, net.node[0].cfg.ip4, 4);
	cr_assert_eq(ddps_ipoib_arp_encode(frame + DDPS_IPOIB_ENCAP_LEN, &arp), 0);
	ddps_ipoib_encap_encode(frame, DDPS_IPOIB_TYPE_ARP);
	return DDPS_IPOIB_ENCAP_LEN + DDPS_IPOIB_ARP_LEN;
}

/* Of @type, by node 2, about @target; its address option says @a. */
static size_t nd_frame(uint8_t *frame, uint8_t type, const uint8_t target[16],
		       const struct ddps_ipoib_lladdr *a)
{
	uint8_t *p = frame + DDPS_IPOIB_ENCAP_LEN;

	net_packet6(&net, p, 2, 0, 88);
	p[6] = 58;
	p[7] = 255;
	p[40] = type;
	memcpy(p + 48, target, 16);
	ddps_ipoib_nd_encode(p + 64, type == 135 ? DDPS_IPOIB_ND_SOURCE : DDPS_IPOIB_ND_TARGET, a);
	put_nd_cksum(p, 88);
	ddps_ipoib_encap_encode(frame, DDPS_IPOIB_TYPE_IPV6);
	return DDPS_IPOIB_ENCAP_LEN + 88;
}

static void one_family(bool v4)
{
	net_init(&net, 3, 7, DDPS_IPOIB_RC);
	net.node[0].cfg.has_ip4 = v4;
	net.node[0].cfg.n_ip6 = !v4;
	take_port();
	net_start_all(&net);
	cr_assert_eq(ddps_ipoib_if_state(get_own_ipoib_if_rare()), DDPS_IPOIB_IF_UP);
}

/* It answers no ARP; what its host sends to IPv4 nevertheless is nobody's. */
Test(ipoib_if_rare, ip6_alone, .fini = fini, .description = "4391-9.3-1")
{
	static uint8_t p[65521];
	uint8_t frame[FRAME_MAX];
	uint64_t n;

	one_family(false);
	feed_ipoib_if_rare_rx(frame, make_ipoib_if_rare_arp_frame(frame, 1));
	net_run(&net, SEC);
	cr_expect_eq(net_stats(&net, 0)->tx_answer, 0);
	cr_expect_eq(net_stats(&net, 0)->rx_bad_arp, 0, "it is right, but not for it");
	net_send6(&net, 0, 1, 100);
	net_run(&net, SEC);
	cr_expect_eq(net.node[1].n_rx, 1);
	net_send6(&net, 1, 0, 100);
	net_run(&net, SEC);
	cr_assert_eq(net.node[0].n_rx, 1);
	n = net.node[0].n_rx;
	net_packet4(&net, p, 0, 1, 60, true);
	memset(p + 16, 0xff, 4); /* everybody */
	cr_expect_eq(ddps_ipoib_if_send(get_own_ipoib_if_rare(), p, 60, get_ipoib_if_rare_now()),
		     0);
	net_run(&net, SEC);
	cr_expect_eq(net.node[1].n_rx, 2);
	cr_expect_eq(net.node[0].n_rx, n);
}

Test(ipoib_if_rare, ip4_alone, .fini = fini, .description = "4391-9.2-1")
{
	uint8_t frame[FRAME_MAX];
	size_t len;

	one_family(true);
	len = nd_frame(frame, 135, net.node[0].cfg.ip6[0], &net.node[2].cfg.me.addr);
	feed_ipoib_if_rare_rx(frame, len);
	net_run(&net, SEC);
	cr_expect_eq(net_stats(&net, 0)->tx_answer, 0);
	cr_expect_eq(net_stats(&net, 0)->rx_bad_nd, 0);
	cr_expect_eq(net.node[0].n_rx, 1, "its host may know what to do with it");
	net_send6(&net, 0, 1, 100); /* from an address that it does not know */
	net_run(&net, SEC);
	/* from none it would be the question of a node that wants the other's */
	cr_expect_eq(net_stats(&net, 0)->tx_query, 0);
	cr_expect_eq(net.node[1].n_rx, 0);
}

/* ---- what is asked and answered ---- */

/* [RFC 5227 2.1] A probe has no sender's address; whoever has what it asks for says so to all. */
RareTest(probes_by_arp, "4391-9.2-1")
{
	struct ddps_ipoib_if_nbr_info info;
	uint8_t frame[FRAME_MAX];
	size_t len = make_ipoib_if_rare_arp_frame(frame, 1);
	uint64_t n = net_stats(&net, 2)->rx_ud, bad = net_stats(&net, 0)->rx_bad_arp;

	(void)n;
	memset(frame + DDPS_IPOIB_ENCAP_LEN + 28, 0, 4);
	feed_ipoib_if_rare_rx(frame, len);
	net_run(&net, MS);
	cr_expect_eq(net_stats(&net, 0)->rx_bad_arp, bad);
	cr_expect_not(net_nbr(&net, 0, 2, false, &info), "no neighbour comes of it");
	frame[DDPS_IPOIB_ENCAP_LEN + 51] ^= 1; /* for somebody else */
	memcpy(frame + DDPS_IPOIB_ENCAP_LEN + 52, net.node[1].cfg.ip4, 4);
	feed_ipoib_if_rare_rx(frame, len);
	len = make_ipoib_if_rare_arp_frame(frame, 2);
	memset(frame + DDPS_IPOIB_ENCAP_LEN + 28, 0, 4);
	feed_ipoib_if_rare_rx(frame, len); /* a reply from nobody */
	cr_expect_eq(net_stats(&net, 0)->rx_bad_arp, bad + 1);
	len = make_ipoib_if_rare_arp_frame(frame, 1);
	memset(frame + DDPS_IPOIB_ENCAP_LEN + 12, 0, 16); /* without a GID */
	feed_ipoib_if_rare_rx(frame, len);
	cr_expect_eq(net_stats(&net, 0)->rx_bad_arp, bad + 2);
	cr_expect_not(net_nbr(&net, 0, 2, false, &info));
}

RareTest(advertisements_that_are_not_believed, "4391-9.3-2 4755-8-1")
{
	struct ddps_ipoib_lladdr a = net.node[2].cfg.me.addr;
	const uint8_t *theirs = net.node[1].cfg.ip6[0], *own = net.node[0].cfg.ip6[0];
	struct ddps_ipoib_if_nbr_info was, is;
	uint8_t frame[FRAME_MAX];
	uint64_t bad = net_stats(&net, 0)->rx_bad_nd;

	net_run(&net, 4 * SEC);
	cr_assert(net_nbr(&net, 0, 1, true, &was));
	feed_ipoib_if_rare_rx(frame, nd_frame(frame, 136, theirs,
					      &net.node[0].cfg.me.addr)); /* our own, come back */
	cr_expect_eq(net_stats(&net, 0)->rx_bad_nd, bad);
	feed_ipoib_if_rare_rx(frame,
			      nd_frame(frame, 136, own, &a)); /* somebody else has our address */
	cr_expect_eq(net_stats(&net, 0)->rx_bad_nd, bad);
	cr_expect_eq(net_stats(&net, 0)->ip_conflict, 1);
	a.gid[0] = 0xff;
	feed_ipoib_if_rare_rx(frame, nd_frame(frame, 136, theirs, &a));
	cr_expect_eq(net_stats(&net, 0)->rx_bad_nd, bad + 1);
	feed_ipoib_if_rare_rx(frame, nd_frame(frame, 135, own,
					      &net.node[0].cfg.me.addr)); /* asked by ourselves */
	cr_expect_eq(net_stats(&net, 0)->rx_bad_nd, bad + 2);
	cr_assert(net_nbr(&net, 0, 1, true, &is));
	cr_expect_eq(ddps_ipoib_lladdr_cmp(&was.lladdr, &is.lladdr), 0);
}

#define S 0x40
#define O 0x20

/* An advertisement by node 2, to node 0, for the address of node 1; of @a, or none. */
static void advertise(uint8_t flags, const struct ddps_ipoib_lladdr *a)
{
	uint8_t frame[FRAME_MAX], *p = frame + DDPS_IPOIB_ENCAP_LEN;
	const size_t len = a ? 88 : 64;

	nd_frame(frame, 136, net.node[1].cfg.ip6[0], a ? a : &net.node[2].cfg.me.addr);
	p[5] = (uint8_t)(len - 40);
	p[44] = flags;
	put_nd_cksum(p, len);
	feed_ipoib_if_rare_rx(frame, DDPS_IPOIB_ENCAP_LEN + len);
}

/* What node 0 knows of node 1: that it is at @a, and in @state. */
static void knows(const struct ddps_ipoib_lladdr *a, const char *state)
{
	struct ddps_ipoib_if_nbr_info info;

	cr_assert(net_nbr(&net, 0, 1, true, &info));
	cr_expect_eq(ddps_ipoib_lladdr_cmp(a, &info.lladdr), 0, "another address");
	cr_expect_str_eq(info.state, state);
}

RareTest(contact_33_without_override_no_address_is_replaced, "4861-7.2.5-4 4861-7.2.5-7")
{
	const struct ddps_ipoib_lladdr *was = &net.node[1].cfg.me.addr,
				       *other = &net.node[2].cfg.me.addr;
	const uint64_t asked = net_stats(&net, 0)->tx_query;

	knows(was, "reachable");
	advertise(S, other);
	knows(was, "probe");
	cr_expect_eq(net_stats(&net, 0)->tx_query, asked + 1);
	advertise(0, other);
	knows(was, "probe");
	cr_expect_eq(net_stats(&net, 0)->tx_query, asked + 1, "once");
	net_run(&net, SEC); /* who has it answers */
	knows(was, "reachable");
	advertise(0, other);
	knows(was, "probe");
	advertise(S, NULL);
	knows(was, "reachable");
}

RareTest(contact_33_with_override_an_address_is_replaced, "4861-7.2.5-5 4861-7.2.5-6")
{
	const struct ddps_ipoib_lladdr *other = &net.node[2].cfg.me.addr;
	uint64_t asked;

	advertise(S | O, other);
	net_run(&net, MS);
	knows(other, "reachable");
	asked = net_stats(&net, 0)->tx_query;
	advertise(O, other);
	knows(other, "reachable");
	cr_expect_eq(net_stats(&net, 0)->tx_query, asked, "nothing is new");
	advertise(O, &net.node[1].cfg.me.addr);
	knows(&net.node[1].cfg.me.addr, "probe");
	cr_expect_eq(net_stats(&net, 0)->tx_query, asked + 1);
	net_run(&net, SEC);
	knows(&net.node[1].cfg.me.addr, "reachable");
}

RareTest(contact_33_solicitations_and_advertisements_to_groups,
	 "4861-7.1.1-7 4861-7.1.2-6 4861-7.2.3-1")
{
	uint8_t frame[FRAME_MAX], *p = frame + DDPS_IPOIB_ENCAP_LEN;
	static const uint8_t group[16] = { 0xff, 0x02, [15] = 1 };
	const uint8_t *own = net.node[0].cfg.ip6[0];
	uint64_t bad = net_stats(&net, 0)->rx_bad_nd, answers = net_stats(&net, 0)->tx_answer;

	nd_frame(frame, 136, net.node[1].cfg.ip6[0], &net.node[2].cfg.me.addr);
	memcpy(p + 24, group, 16);
	p[44] = S | O;
	put_nd_cksum(p, 88);
	feed_ipoib_if_rare_rx(frame, DDPS_IPOIB_ENCAP_LEN + 88);
	cr_expect_eq(net_stats(&net, 0)->rx_bad_nd, bad + 1);
	knows(&net.node[1].cfg.me.addr, "reachable");
	nd_frame(frame, 135, own, &net.node[2].cfg.me.addr);
	memset(p + 8, 0, 16);
	p[5] = 24;
	put_nd_cksum(p, 64);
	feed_ipoib_if_rare_rx(frame, DDPS_IPOIB_ENCAP_LEN + 64); /* to the address itself */
	cr_expect_eq(net_stats(&net, 0)->rx_bad_nd, bad + 2);
	cr_expect_eq(net_stats(&net, 0)->tx_answer, answers);
	memcpy(p + 24, (const uint8_t[]){ 0xff, 2, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1, 0xff }, 13);
	memcpy(p + 37, own + 13, 3);
	put_nd_cksum(p, 64);
	feed_ipoib_if_rare_rx(frame, DDPS_IPOIB_ENCAP_LEN + 64);
	cr_expect_eq(net_stats(&net, 0)->rx_bad_nd, bad + 2);
	cr_expect_eq(net_stats(&net, 0)->tx_answer, answers + 1);
}

RareTest(contact_33_wrong_advertisements, "4861-7.1.2-1 4861-7.1.2-2 4861-7.1.2-3 4861-7.1.2-4")
{
	static const struct {
		size_t at;
		uint8_t value;
	} wrong[] = { { 7, 254 }, { 41, 1 }, { 48, 0xff }, { 65, 0 } };
	uint8_t frame[FRAME_MAX], *p = frame + DDPS_IPOIB_ENCAP_LEN;
	uint64_t bad = net_stats(&net, 0)->rx_bad_nd;

	for (size_t i = 0; i < sizeof(wrong) / sizeof(wrong[0]); i++) {
		nd_frame(frame, 136, net.node[1].cfg.ip6[0], &net.node[2].cfg.me.addr);
		p[44] = O;
		p[wrong[i].at] = wrong[i].value;
		put_nd_cksum(p, 88);
		feed_ipoib_if_rare_rx(frame, DDPS_IPOIB_ENCAP_LEN + 88);
		cr_expect_eq(net_stats(&net, 0)->rx_bad_nd, ++bad, "%zu", i);
	}
	nd_frame(frame, 136, net.node[1].cfg.ip6[0], &net.node[2].cfg.me.addr);
	p[42] ^= 1;
	feed_ipoib_if_rare_rx(frame, DDPS_IPOIB_ENCAP_LEN + 88);
	p[5] = 23;
	put_nd_cksum(p, 63);
	feed_ipoib_if_rare_rx(frame, DDPS_IPOIB_ENCAP_LEN + 63);
	cr_expect_eq(net_stats(&net, 0)->rx_bad_nd, bad + 2);
	knows(&net.node[1].cfg.me.addr, "reachable");
}

RareTest(contact_33_whom_nobody_knows_yet, "4861-7.2.5-1 4861-7.2.5-2 4861-7.2.5-3")
{
	const uint8_t *theirs = net.node[2].cfg.ip6[0];
	struct ddps_ipoib_if_nbr_info info;
	uint8_t frame[FRAME_MAX], *p = frame + DDPS_IPOIB_ENCAP_LEN;

	feed_ipoib_if_rare_rx(frame, nd_frame(frame, 136, theirs, &net.node[1].cfg.me.addr));
	cr_expect_not(net_nbr(&net, 0, 2, true, &info), "nobody has asked");
	net_send6(&net, 0, 2, 100);
	cr_assert(net_nbr(&net, 0, 2, true, &info));
	cr_expect_str_eq(info.state, "resolving");
	nd_frame(frame, 136, theirs, &net.node[1].cfg.me.addr);
	p[5] = 24;
	p[44] = S | O;
	put_nd_cksum(p, 64);
	feed_ipoib_if_rare_rx(frame, DDPS_IPOIB_ENCAP_LEN + 64);
	cr_assert(net_nbr(&net, 0, 2, true, &info));
	cr_expect_str_eq(info.state, "resolving", "nowhere to go yet");
	feed_ipoib_if_rare_rx(frame, nd_frame(frame, 136, theirs, &net.node[1].cfg.me.addr));
	cr_assert(net_nbr(&net, 0, 2, true, &info));
	cr_expect(info.has_lladdr);
	cr_expect_str_eq(info.state, "probe", "nobody said that it was an answer");
}

RareTest(contact_33_arp, "0826-rx-2 0826-rx-3 0826-rx-4 0826-rx-5")
{
	struct ddps_ipoib_if_nbr_info info;
	uint8_t frame[FRAME_MAX], *p = frame + DDPS_IPOIB_ENCAP_LEN;
	const uint64_t answers = net_stats(&net, 0)->tx_answer;
	size_t len = make_ipoib_if_rare_arp_frame(frame, 1);

	memcpy(p + 52, net.node[1].cfg.ip4, 4);
	feed_ipoib_if_rare_rx(frame, len);
	cr_expect_not(net_nbr(&net, 0, 2, false, &info), "it is for somebody else");
	feed_ipoib_if_rare_rx(frame, make_ipoib_if_rare_arp_frame(frame, 1));
	net_run(&net, SEC);
	cr_assert(net_nbr(&net, 0, 2, false, &info));
	cr_expect_eq(ddps_ipoib_lladdr_cmp(&info.lladdr, &net.node[2].cfg.me.addr), 0);
	cr_expect_eq(net_stats(&net, 0)->tx_answer, answers + 1);
	make_ipoib_if_rare_arp_frame(frame, 1);
	memcpy(p + 52, net.node[1].cfg.ip4, 4);
	memcpy(p + 9, (const uint8_t[]){ 0, 0x77, 0x77 }, 3); /* another queue pair */
	feed_ipoib_if_rare_rx(frame, len);
	cr_assert(net_nbr(&net, 0, 2, false, &info));
	cr_expect_eq(info.lladdr.qpn, 0x7777, "corrected");
	cr_expect_eq(net_stats(&net, 0)->tx_answer, answers + 1);
}

RareTest(solicitations_that_are_cut, "4755-8-1 4861-7.1.1-2")
{
	uint8_t frame[FRAME_MAX], *p = frame + DDPS_IPOIB_ENCAP_LEN;
	uint64_t bad = net_stats(&net, 0)->rx_bad_nd, n = net.node[0].n_rx;

	nd_frame(frame, 135, net.node[0].cfg.ip6[0], &net.node[2].cfg.me.addr);
	for (size_t len = 41; len < 64; len++) {
		p[5] = (uint8_t)(len - 40);
		if (len > 43)
			put_nd_cksum(p, len);
		feed_ipoib_if_rare_rx(frame, DDPS_IPOIB_ENCAP_LEN + len);
	}
	cr_expect_eq(net_stats(&net, 0)->rx_bad_nd, bad + 23);
	cr_expect_eq(net.node[0].n_rx, n);
	p[5] = 0; /* no message at all is the host's */
	feed_ipoib_if_rare_rx(frame, DDPS_IPOIB_ENCAP_LEN + 40);
	cr_expect_eq(net.node[0].n_rx, n + 1);
}

/* A neighbour of IPv6 is asked by itself whether it is still there. */
RareTest(neighbours_are_looked_after, "4391-9.4-1 4861-7.3.3-1 4861-7.3.3-2")
{
	struct ddps_ipoib_if_nbr_info info;
	uint64_t asked = net_stats(&net, 0)->tx_query, group = net_stats(&net, 2)->rx_ud;

	net_run(&net, 46 * SEC);
	cr_assert(net_nbr(&net, 0, 1, true, &info));
	cr_expect_str_eq(info.state, "stale");
	net_send6(&net, 0, 1, 100);
	net_run(&net, 4 * SEC);
	cr_assert(net_nbr(&net, 0, 1, true, &info));
	cr_expect_str_eq(info.state, "delay");
	cr_expect_eq(net_stats(&net, 0)->tx_query, asked);
	net_run(&net, 2 * SEC);
	cr_expect_eq(net_stats(&net, 0)->tx_query, asked + 1);
	cr_expect_eq(net_stats(&net, 2)->rx_ud, group, "nobody else hears of it");
	cr_assert(net_nbr(&net, 0, 1, true, &info));
	cr_expect_str_eq(info.state, "reachable");
}

/* ---- packets that are too big ---- */

static void send_ipoib_if_rare_raw(const uint8_t *p, size_t len)
{
	cr_expect_eq(ddps_ipoib_if_send(get_own_ipoib_if_rare(), p, len, get_ipoib_if_rare_now()),
		     0);
}

RareTest(too_big_is_said_to_single_hosts, "4755-7.2-1")
{
	static const uint8_t nobody[] = { 0, 127, 224, 255 };
	static uint8_t p[65521];
	uint64_t n = net.node[0].n_rx;

	net_packet4(&net, p, 0, 1, 65521, true);
	for (unsigned i = 0; i < sizeof(nobody); i++) {
		p[12] = nobody[i];
		send_ipoib_if_rare_raw(p, 65521);
	}
	cr_expect_eq(net.node[0].n_rx, n);
	net_packet4(&net, p, 0, 1, 65521, true);
	p[9] = 1;
	p[20] = 8; /* an echo request is no error */
	send_ipoib_if_rare_raw(p, 65521);
	p[20] = 0;
	send_ipoib_if_rare_raw(p, 65521);
	cr_expect_eq(net.node[0].n_rx, n + 2);
	net_packet6(&net, p, 0, 1, 65521);
	p[6] = 58;
	p[40] = 128;
	send_ipoib_if_rare_raw(p, 65521);
	cr_expect_eq(net.node[0].n_rx, n + 3);
	p[8] = 0xff;
	send_ipoib_if_rare_raw(p, 65521);
	memset(p + 8, 0, 16);
	send_ipoib_if_rare_raw(p, 65521);
	cr_expect_eq(net.node[0].n_rx, n + 3);
	cr_expect_eq(net_stats(&net, 0)->tx_too_big, 9);
	net_packet6(&net, p, 0, 1, 65521);
	for (unsigned i = 0; i < 20; i++)
		send_ipoib_if_rare_raw(p, 65521);
	cr_expect_eq(net.node[0].n_rx, n + 10, "ten in a burst");
	cr_expect_eq(net_stats(&net, 0)->icmp_limited, 13);
}

/* On a narrow link the whole packet is in the answer. */
Test(ipoib_if_rare, too_big_on_a_narrow_link, .fini = fini, .description = "4755-7.2-1")
{
	uint8_t p[301], mgid[DDPS_IPOIB_GID_LEN];
	const uint8_t *a;

	net_init(&net, 2, 7, 0);
	for (unsigned i = 0; i < 2; i++)
		net.node[i].cfg.n_ip6 = 0;
	take_port();
	net_start_all(&net);
	net_send4(&net, 0, 1, 100, true);
	net_run(&net, SEC);
	cr_assert_eq(ddps_ipoib_mgid_broadcast(mgid, 0xffff, 2), 0);
	ddps_ipoib_if_up()->joined(get_own_ipoib_if_rare(), mgid, 0, 304,
				   get_ipoib_if_rare_now()); /* anew, and narrower */
	net_packet4(&net, p, 0, 1, 300, true);
	send_ipoib_if_rare_raw(p, 300);
	cr_expect_eq(net.node[0].n_rx, 0);
	net_packet4(&net, p, 0, 1, 301, true);
	send_ipoib_if_rare_raw(p, 301);
	cr_assert_eq(net.node[0].n_rx, 1);
	a = net.node[0].last;
	cr_expect_eq(net.node[0].last_len, 28 + 301);
	cr_expect_eq(a[26] << 8 | a[27], 300);
	cr_expect_eq(memcmp(a + 28, p, 301), 0);
	cr_expect_eq(net_cksum(a + 20, 8 + 301, 0), 0);
	net_run(&net, SEC);
	cr_expect_eq(net.node[1].n_rx, 2);
}

/* Between two addresses of a line, and alone, nothing is the subnet's broadcast (RFC 3021). */
Test(ipoib_if_rare, subnets_without_a_broadcast, .fini = fini, .description = "4391-4-6")
{
	static const uint8_t prefix[] = { 31, 32, 0, 30 };
	uint8_t p[60];

	for (unsigned i = 0; i < sizeof(prefix); i++) {
		net_init(&net, 2, 7, 0);
		net.node[0].cfg.prefix4 = prefix[i];
		net_start_all(&net);
		net_packet4(&net, p, 0, 1, 60, true);
		memcpy(p + 16, net.node[0].cfg.ip4, 4);
		p[19] |= 3; /* the last address of four, and of two */
		send_ipoib_if_rare_raw(p, 60);
		cr_expect_eq(net_stats(&net, 0)->tx_mcast, prefix[i] == 30, "/%u", prefix[i]);
		if (i < sizeof(prefix) - 1)
			net_fini(&net);
	}
}

/* ---- a port that fails ---- */

static void send_some_ipoib_if_rare(void)
{
	net_send4(&net, 0, 1, 100, true);
}

RareTest(a_connection_without_room_loses_the_packet, "4755-7-1")
{
	uint64_t failed = net_stats(&net, 0)->tx_failed, n = net.node[1].n_rx;

	qp_err = DDPS_E_AGAIN;
	send_some_ipoib_if_rare();
	cr_expect_eq(net_stats(&net, 0)->tx_failed, failed + 1);
	cr_expect_eq(net_stats(&net, 0)->conn_error, 0);
	cr_expect_eq(net_conns(&net, 0), 1);
	qp_err = 0;
	send_some_ipoib_if_rare();
	net_run(&net, SEC);
	cr_expect_eq(net.node[1].n_rx, n + 1);
}

RareTest(a_connection_that_fails_ends_and_the_packet_is_a_datagram, "4755-7-1")
{
	static uint8_t p[4000];
	uint64_t ud = net_stats(&net, 0)->tx_ud, n = net.node[1].n_rx, failed;

	qp_err = DDPS_E_STATE;
	send_some_ipoib_if_rare();
	cr_expect_eq(net_stats(&net, 0)->conn_error, 1);
	cr_expect_eq(net_stats(&net, 0)->tx_ud, ud + 1);
	cr_expect_eq(net_conns(&net, 0), 0);
	qp_err = 0;
	net_run(&net, SEC);
	cr_expect_eq(net.node[1].n_rx, n + 1);
	send_some_ipoib_if_rare();
	net_run(&net, 2 * SEC);
	send_some_ipoib_if_rare();
	net_run(&net, SEC);
	cr_assert_eq(net_conns(&net, 0), 1, "another one");
	failed = net_stats(&net, 0)->tx_failed;
	qp_err = DDPS_E_STATE;
	net_packet4(&net, p, 0, 1, sizeof(p), true);
	send_ipoib_if_rare_raw(p, sizeof(p));
	cr_expect_eq(net_stats(&net, 0)->tx_failed, failed + 1, "too long for a datagram");
	qp_err = 0;
}

RareTest(a_way_that_the_port_has_forgotten_is_asked_for, "4755-3.4-2")
{
	uint64_t failed;
	unsigned n;

	net_run(&net, 5 * SEC);
	qp_err = DDPS_E_STATE;
	send_some_ipoib_if_rare(); /* the connection is gone */
	qp_err = 0;
	net_run(&net, 2 * SEC);
	failed = net_stats(&net, 0)->tx_failed;
	n = n_resolve;
	ud_err = DDPS_E_ADDRESS;
	net.node[0].cfg.me.addr.flags = 0;
	for (unsigned i = 0; i < 3; i++)
		send_some_ipoib_if_rare();
	net_run(&net, 3 * SEC);
	ud_err = 0;
	cr_expect_gt(net_stats(&net, 0)->tx_failed, failed);
	cr_expect_gt(n_resolve, n);
	send_some_ipoib_if_rare();
	net_run(&net, SEC);
	cr_expect_gt(net.node[1].n_rx, 1);
}

/* Nothing of neighbour discovery is in packets of other types, or without one. */
RareTest(what_is_no_discovery_goes_by_the_connection, "4755-7-4")
{
	uint64_t conn = net_stats(&net, 0)->tx_conn;
	uint8_t p[64];

	net_packet6(&net, p, 0, 1, 40);
	p[6] = 58;
	send_ipoib_if_rare_raw(p, 40);
	cr_expect_eq(net_stats(&net, 0)->tx_conn, conn + 1);
	net_packet6(&net, p, 0, 1, 48);
	p[6] = 58;
	for (unsigned type = 132; type <= 138; type++) {
		p[40] = (uint8_t)type;
		send_ipoib_if_rare_raw(p, 48);
	}
	cr_expect_eq(net_stats(&net, 0)->tx_conn, conn + 3, "132 and 138");
}

/* ---- news of its ways ---- */

/* What is other about a way than its token ends what goes by it [4391-9.1.2-2]. */
RareTest(a_way_that_changes, "4391-9.1.2-2")
{
	const struct ddps_ipoib_path good = {
		.rate = 3, .mtu = 4, .hop_limit = 1, .addr = 2, .dlid = 2, .slid = 1
	};
	const uint8_t *gid = net.node[1].cfg.me.addr.gid;
	struct ddps_ipoib_path path = good;
	uint64_t moved = net_stats(&net, 0)->path_moved;

#define CHANGES(member, value, moves)                                                              \
	do {                                                                                       \
		path.member = value;                                                               \
		ddps_ipoib_if_up()->path(get_own_ipoib_if_rare(), gid, &path,                      \
					 get_ipoib_if_rare_now());                                 \
		moved += moves;                                                                    \
		cr_expect_eq(net_stats(&net, 0)->path_moved, moved, #member);                      \
	} while (0)
	path.life = 1;
	ddps_ipoib_if_up()->path(get_own_ipoib_if_rare(), gid, &path, get_ipoib_if_rare_now());
	moved = net_stats(&net, 0)->path_moved;
	CHANGES(rate, 4, 0);
	CHANGES(addr, 77, 0);
	CHANGES(traffic_class, 1, 1);
	CHANGES(flow_label, 1, 1);
	CHANGES(hop_limit, 2, 1);
	CHANGES(sl, 1, 1);
	CHANGES(mtu, 3, 1);
	CHANGES(slid, 7, 1);
	CHANGES(dlid, 3, 1);
	CHANGES(dlid, 0, 1);
	CHANGES(addr, 78, 1); /* without LIDs the token says it */
	CHANGES(rate, 5, 0);
}
