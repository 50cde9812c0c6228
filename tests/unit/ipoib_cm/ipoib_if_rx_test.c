/* SPDX-License-Identifier: BSD-2-Clause */
/* What an IPoIB interface does with frames and CM messages that it should not believe. */
#include <criterion/criterion.h>
#include <stdlib.h>
#include <string.h>
#include "ipoib_cm/wire/wire.h"
#include "ipoib_net_fixture.h"

#define FRAME_MAX 256

static struct net net;

/* Two nodes with a connection, known to each other by both families. */
static void init(void)
{
	net_init(&net, 3, 7, DDPS_IPOIB_RC);
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

#define RxTest(name, ids) Test(ipoib_if_rx, name, .init = init, .fini = fini, .description = ids)

static struct ddps_ipoib_if *get_own_ipoib_if_rx(void)
{
	return net.node[0].f;
}

static uint64_t get_ipoib_if_rx_now(void)
{
	return ddps_ipoib_sim_now(net.sim);
}

/* In an allocation of exactly its size, so that reading beyond it is found. */
static void feed_ipoib_if_rx_rx(bool conn, const uint8_t *frame, size_t len)
{
	const struct ddps_ipoib_ud_from from = { .qpn = 0x49 };
	struct ddps_ipoib_if_conn_info info = { 0 };
	uint8_t *exact = malloc(len ? len : 1);

	memcpy(exact, frame, len);
	ddps_ipoib_if_conn_info(get_own_ipoib_if_rx(), 0, &info);
	if (conn)
		ddps_ipoib_if_up()->qp(get_own_ipoib_if_rx(), info.qpn, exact, len,
				       get_ipoib_if_rx_now());
	else
		ddps_ipoib_if_up()->ud(get_own_ipoib_if_rx(), &from, exact, len,
				       get_ipoib_if_rx_now());
	free(exact);
}

/* Everything that a peer could have changed. */
struct state {
	unsigned n_nbr, n_conn;
	uint64_t n_rx, up, down, answers, queries;
	struct ddps_ipoib_if_nbr_info nbr[8];
};

static struct state read_if_state(void)
{
	const struct ddps_ipoib_if_stats *st = net_stats(&net, 0);
	struct state s;
	int r;

	memset(&s, 0, sizeof(s));
	for (unsigned i = 0;
	     (r = ddps_ipoib_if_nbr_info(get_own_ipoib_if_rx(), i, &s.nbr[s.n_nbr])) >= 0; i++) {
		s.n_nbr += r > 0;
		cr_assert_lt(s.n_nbr, 8);
	}
	memset(&s.nbr[s.n_nbr], 0, sizeof(s.nbr[0]));
	s.n_conn = net_conns(&net, 0);
	s.n_rx = net.node[0].n_rx;
	s.up = st->conn_up;
	s.down = st->conn_down;
	s.answers = st->tx_answer;
	s.queries = st->tx_query;
	return s;
}

static uint64_t count_bad_frames(void)
{
	const struct ddps_ipoib_if_stats *s = net_stats(&net, 0);

	return s->rx_short + s->rx_type + s->rx_bad_ip + s->rx_bad_arp + s->rx_bad_nd +
	       s->rx_too_long + s->ip_conflict;
}

static void expect_refused(const uint8_t *frame, size_t len, const char *what, size_t nr)
{
	for (unsigned conn = 0; conn < 2; conn++) {
		struct state before = read_if_state(), after;
		uint64_t counted = count_bad_frames();

		feed_ipoib_if_rx_rx(conn, frame, len);
		after = read_if_state();
		cr_expect_eq(memcmp(&before, &after, sizeof(before)), 0, "%s %zu: state changed",
			     what, nr);
		cr_expect_eq(count_bad_frames(), counted + 1, "%s %zu: not counted", what, nr);
	}
}

static size_t put_ipoib_if_rx_encap(uint8_t *frame, uint16_t type, size_t len)
{
	ddps_ipoib_encap_encode(frame, type);
	return len + DDPS_IPOIB_ENCAP_LEN;
}

/* An ARP request by node 2, which is not known yet, for node 0. */
static size_t make_ipoib_if_rx_arp_frame(uint8_t *frame, uint16_t op)
{
	struct ddps_ipoib_arp arp = { .op = op, .sender = net.node[2].cfg.me.addr };

	memcpy(arp.sender_ip, net.node[2].cfg.ip4, 4);
	memcpy(arp.target_ip, net.node[0].cfg.ip4, 4);
	cr_assert_eq(ddps_ipoib_arp_encode(frame + DDPS_IPOIB_ENCAP_LEN, &arp), 0);
	return put_ipoib_if_rx_encap(frame, DDPS_IPOIB_TYPE_ARP, DDPS_IPOIB_ARP_LEN);
}

/* A neighbour solicitation by node 2 for node 0. */
static size_t ns_frame(uint8_t *frame)
{
	uint8_t *p = frame + DDPS_IPOIB_ENCAP_LEN;

	net_packet6(&net, p, 2, 0, 88);
	p[6] = 58;
	p[7] = 255;
	p[40] = 135;
	memcpy(p + 48, net.node[0].cfg.ip6[0], 16);
	ddps_ipoib_nd_encode(p + 64, DDPS_IPOIB_ND_SOURCE, &net.node[2].cfg.me.addr);
	put_nd_cksum(p, 88);
	return put_ipoib_if_rx_encap(frame, DDPS_IPOIB_TYPE_IPV6, 88);
}

RxTest(good_frames_are_taken_from_any_mode, "4755-7-2 4391-6-3 4755-7-4")
{
	uint8_t frame[FRAME_MAX];
	size_t len = put_ipoib_if_rx_encap(frame, DDPS_IPOIB_TYPE_IPV4,
					   net_packet4(&net, frame + 4, 1, 0, 100, true));
	struct state s = read_if_state(), t;

	frame[2] = frame[3] = 0xff; /* reserved, ignored */
	feed_ipoib_if_rx_rx(false, frame, len);
	feed_ipoib_if_rx_rx(true, frame, len);
	t = read_if_state();
	cr_expect_eq(t.n_rx, s.n_rx + 2);
	cr_expect_eq(count_bad_frames(), 0);
	feed_ipoib_if_rx_rx(
		true, frame,
		make_ipoib_if_rx_arp_frame(frame, 1)); /* resolution on a connection: accepted */
	net_run(&net, MS);
	t = read_if_state();
	cr_expect_eq(t.n_nbr, s.n_nbr + 1);
	cr_expect_eq(t.answers, s.answers + 1);
}

/* With a GRH, without one, whatever is in it: but for one's own packet, come back from a group. */
RxTest(a_grh_changes_nothing, "4391-6-6")
{
	uint8_t frame[FRAME_MAX];
	size_t len = put_ipoib_if_rx_encap(frame, DDPS_IPOIB_TYPE_IPV4,
					   net_packet4(&net, frame + 4, 1, 0, 100, true));
	struct ddps_ipoib_ud_from from = { .qpn = 0x49 };
	struct state s = read_if_state();

	for (unsigned i = 0; i < 8; i++) {
		from.has_gid = i & 1;
		from.multicast = i & 2;
		memset(from.gid, i & 4 ? 0xa5 : 0, sizeof(from.gid));
		ddps_ipoib_if_up()->ud(get_own_ipoib_if_rx(), &from, frame, len,
				       get_ipoib_if_rx_now());
	}
	cr_expect_eq(read_if_state().n_rx, s.n_rx + 8);
	cr_expect_eq(count_bad_frames(), 0);
	from.has_gid = from.multicast = true;
	from.qpn = net.node[0].cfg.me.addr.qpn;
	memcpy(from.gid, net.node[0].cfg.me.addr.gid, sizeof(from.gid));
	ddps_ipoib_if_up()->ud(get_own_ipoib_if_rx(), &from, frame, len, get_ipoib_if_rx_now());
	cr_expect_eq(read_if_state().n_rx, s.n_rx + 8);
}

RxTest(ns_makes_a_neighbour_and_an_answer, "4391-9.3-1 4755-3.1-11 4861-7.2.3-2")
{
	uint8_t frame[FRAME_MAX];
	struct state s = read_if_state(), t;

	feed_ipoib_if_rx_rx(true, frame, ns_frame(frame));
	net_run(&net, MS);
	t = read_if_state();
	cr_expect_eq(t.n_nbr, s.n_nbr + 1);
	cr_expect_eq(t.answers, s.answers + 1);
	cr_expect_eq(t.n_rx, s.n_rx); /* not for the stack above */
}

RxTest(every_truncation_changes_nothing, "4391-6-1 4755-4-1")
{
	uint8_t frame[FRAME_MAX];
	size_t len = put_ipoib_if_rx_encap(frame, DDPS_IPOIB_TYPE_IPV4,
					   net_packet4(&net, frame + 4, 1, 0, 60, true));

	for (size_t i = 0; i < len; i++)
		expect_refused(frame, i, "IPv4", i);
	len = put_ipoib_if_rx_encap(frame, DDPS_IPOIB_TYPE_IPV6,
				    net_packet6(&net, frame + 4, 1, 0, 60));
	for (size_t i = 0; i < len; i++)
		expect_refused(frame, i, "IPv6", i);
	len = make_ipoib_if_rx_arp_frame(frame, 1);
	for (size_t i = 0; i < len; i++)
		expect_refused(frame, i, "ARP", i);
	len = ns_frame(frame);
	for (size_t i = 0; i < len; i++)
		expect_refused(frame, i, "NS", i);
}

RxTest(illegal_arp, "4391-9.2-1 4755-8-1 0826-rx-1")
{
	static const struct {
		size_t at;
		uint8_t value;
	} wrong[] = {
		{ 1, 1 },  { 3, 1 },	{ 4, 6 },    { 5, 6 },	{ 7, 3 },     { 7, 0 },
		{ 28, 0 }, { 28, 127 }, { 28, 224 }, { 31, 1 }, { 12, 0xff },
	};
	uint8_t frame[FRAME_MAX];
	size_t len;

	for (size_t i = 0; i < sizeof(wrong) / sizeof(wrong[0]); i++) {
		len = make_ipoib_if_rx_arp_frame(frame, 1);
		frame[DDPS_IPOIB_ENCAP_LEN + wrong[i].at] = wrong[i].value;
		expect_refused(frame, len, "ARP field", i);
	}
	len = make_ipoib_if_rx_arp_frame(frame, 1);
	memset(frame + 4 + 9, 0, 3); /* QPN 0 */
	expect_refused(frame, len, "ARP QPN", 0);
	memset(frame + 4 + 9, 0xff, 3); /* that of groups */
	expect_refused(frame, len, "ARP QPN", 1);
	len = make_ipoib_if_rx_arp_frame(frame, 1);
	frame[len] = 0;
	expect_refused(frame, len + 1, "ARP too long", 0);
}

RxTest(unsolicited_reply_makes_no_neighbour, "4755-8-1")
{
	uint8_t frame[FRAME_MAX];
	struct state s = read_if_state(), t;

	feed_ipoib_if_rx_rx(false, frame, make_ipoib_if_rx_arp_frame(frame, 2));
	t = read_if_state();
	cr_expect_eq(t.n_nbr, s.n_nbr);
	cr_expect_eq(count_bad_frames(), 0);
}

RxTest(illegal_nd, "4391-9.3-2 4755-8-1 4861-7.1.1-1 4861-7.1.1-3 4861-7.1.1-4 4861-7.1.1-6")
{
	static const struct {
		size_t at;
		uint8_t value;
	} wrong[] = { { 7, 254 }, { 41, 1 }, { 48, 0xff }, { 65, 0 },
		      { 65, 2 },  { 65, 4 }, { 8, 0xff },  { 72, 0xff } };
	uint8_t frame[FRAME_MAX], *p = frame + DDPS_IPOIB_ENCAP_LEN;
	size_t len;

	for (size_t i = 0; i < sizeof(wrong) / sizeof(wrong[0]); i++) {
		len = ns_frame(frame);
		p[wrong[i].at] = wrong[i].value;
		put_nd_cksum(p, 88);
		expect_refused(frame, len, "NS field", i);
	}
	len = ns_frame(frame);
	p[42] ^= 1;
	expect_refused(frame, len, "NS checksum", 0);
	len = ns_frame(frame); /* duplicate detection with an address option */
	memset(p + 8, 0, 16);
	put_nd_cksum(p, 88);
	expect_refused(frame, len, "NS unspecified", 0);
}

RxTest(illegal_ip, "4755-4-2 4391-6-4")
{
	uint8_t frame[FRAME_MAX];
	size_t len = put_ipoib_if_rx_encap(frame, DDPS_IPOIB_TYPE_IPV4,
					   net_packet4(&net, frame + 4, 1, 0, 100, true));

	frame[1] = 1;
	expect_refused(frame, len, "unknown type", 0);
	put_ipoib_if_rx_encap(frame, DDPS_IPOIB_TYPE_RARP, 0);
	expect_refused(frame, len, "RARP", 0);
	put_ipoib_if_rx_encap(frame, DDPS_IPOIB_TYPE_IPV6, 0);
	expect_refused(frame, len, "IPv4 as IPv6", 0);
	put_ipoib_if_rx_encap(frame, DDPS_IPOIB_TYPE_IPV4, 0);
	for (uint8_t v = 0; v < 16; v++) {
		frame[4] = (uint8_t)(v << 4 | 5);
		if (v != 4)
			expect_refused(frame, len, "version", v);
		frame[4] = (uint8_t)(0x40 | v);
		if (v < 5)
			expect_refused(frame, len, "header length", v);
	}
	frame[4] = 0x45;
	expect_refused(frame, len + 1, "octets behind the packet", 0);
}

RxTest(longer_than_the_link, "4755-5.1-1 4391-5-3")
{
	uint8_t *frame = calloc(1, RX_MTU_CM + 1);
	size_t len = put_ipoib_if_rx_encap(frame, DDPS_IPOIB_TYPE_IPV4,
					   net_packet4(&net, frame + 4, 1, 0, 2044, true));
	struct state s = read_if_state();

	feed_ipoib_if_rx_rx(false, frame, len);
	cr_expect_eq(read_if_state().n_rx, s.n_rx + 1);
	len = put_ipoib_if_rx_encap(frame, DDPS_IPOIB_TYPE_IPV4,
				    net_packet4(&net, frame + 4, 1, 0, 2045, true));
	feed_ipoib_if_rx_rx(false, frame, len);
	cr_expect_eq(net_stats(&net, 0)->rx_too_long, 1);
	cr_expect_eq(read_if_state().n_rx, s.n_rx + 1);
	feed_ipoib_if_rx_rx(true, frame, RX_MTU_CM + 1); /* fatal for the connection */
	cr_expect_eq(net_stats(&net, 0)->rx_too_long, 2);
	cr_expect_eq(net_conns(&net, 0), 0);
	ddps_ipoib_if_up()->qp(get_own_ipoib_if_rx(), 0x123456, frame, len, get_ipoib_if_rx_now());
	cr_expect_eq(net_stats(&net, 0)->rx_unknown_qp, 1);
	free(frame);
}

RxTest(malformed_mads_change_nothing, "4755-6-4")
{
	uint8_t mad[DDPS_CM_MAD_LEN], *exact;
	struct state s = read_if_state(), t;
	uint64_t counted = net_stats(&net, 0)->mad_bad;

	cr_assert_eq(ddps_cm_mad_encode(mad, &net.node[0].last_req), 0);
	for (size_t len = 0; len < sizeof(mad); len++) {
		exact = malloc(len ? len : 1);
		memcpy(exact, mad, len);
		ddps_ipoib_if_up()->mad(get_own_ipoib_if_rx(), 2, exact, len,
					get_ipoib_if_rx_now());
		free(exact);
	}
	t = read_if_state();
	cr_expect_eq(memcmp(&s, &t, sizeof(s)), 0);
	cr_expect_eq(net_stats(&net, 0)->mad_bad, counted + sizeof(mad));
	for (unsigned at = 0; at < 4; at++) { /* versions, class, method */
		mad[at] ^= 0x40;
		ddps_ipoib_if_up()->mad(get_own_ipoib_if_rx(), 2, mad, sizeof(mad),
					get_ipoib_if_rx_now());
		mad[at] ^= 0x40;
	}
	t = read_if_state();
	cr_expect_eq(memcmp(&s, &t, sizeof(s)), 0);
	cr_expect_eq(net_stats(&net, 0)->mad_bad, counted + sizeof(mad) + 4);
}

/* Flipped bits may make something legal; nothing may break, and bounds have to hold. */
RxTest(random_flips_break_nothing, "4755-8-1")
{
	uint8_t frame[FRAME_MAX], mad[DDPS_CM_MAD_LEN];

	cr_assert_eq(ddps_cm_mad_encode(mad, &net.node[0].last_req), 0);
	for (unsigned i = 0; i < 30000; i++) {
		size_t len = i % 2 ? make_ipoib_if_rx_arp_frame(frame, 1) : ns_frame(frame);
		uint8_t m[DDPS_CM_MAD_LEN];

		memcpy(m, mad, sizeof(m));
		for (unsigned k = 0; k < 4; k++) {
			frame[ddps_ipoib_sim_random(net.sim, len)] ^=
				(uint8_t)(1 << ddps_ipoib_sim_random(net.sim, 8));
			m[ddps_ipoib_sim_random(net.sim, sizeof(m))] ^=
				(uint8_t)(1 << ddps_ipoib_sim_random(net.sim, 8));
		}
		feed_ipoib_if_rx_rx(false, frame, len);
		ddps_ipoib_if_up()->mad(get_own_ipoib_if_rx(), 2, m, sizeof(m),
					get_ipoib_if_rx_now());
		ddps_ipoib_if_up()->mad(get_own_ipoib_if_rx(), 2, m,
					ddps_ipoib_sim_random(net.sim, 257), get_ipoib_if_rx_now());
		if (i % 16 == 0)
			net_run(&net, MS);
	}
	cr_expect_gt(count_bad_frames(), 0);
	net_run(&net, 300 * SEC);
	net_send4(&net, 0, 1, 100, true);
	net_run(&net, 10 * SEC);
	net_send4(&net, 0, 1, 100, true);
	net_run(&net, 10 * SEC);
	cr_expect_geq(net.node[1].n_rx, 2); /* and it works as before */
}

static void send_ipoib_if_rx_raw(const uint8_t *p, size_t len)
{
	ddps_ipoib_if_send(get_own_ipoib_if_rx(), p, len, get_ipoib_if_rx_now());
}

RxTest(too_big_is_built_right, "4755-7.2-1")
{
	static uint8_t p[65521];
	const uint8_t *a = net.node[0].last;
	uint32_t sum = 0;

	net_packet6(&net, p, 0, 1, 65520);
	send_ipoib_if_rx_raw(p, 65520); /* fits */
	cr_expect_eq(net_stats(&net, 0)->icmp_sent, 0);
	net_packet6(&net, p, 0, 1, 65521);
	send_ipoib_if_rx_raw(p, 65521);
	cr_assert_eq(net.node[0].last_len, 1280);
	cr_expect_eq(a[0], 0x60);
	cr_expect_eq(a[6], 58);
	cr_expect_eq(memcmp(a + 24, net.node[0].cfg.ip6[0], 16), 0);
	cr_expect_eq(a[40], 2);
	cr_expect_eq((a[44] << 24 | a[45] << 16 | a[46] << 8 | a[47]), 65520);
	cr_expect_eq(memcmp(a + 48, p, 1280 - 48), 0);
	for (unsigned i = 8; i < 40; i += 2)
		sum += (uint32_t)(a[i] << 8 | a[i + 1]);
	cr_expect_eq(net_cksum(a + 40, 1240, sum + 1240 + 58), 0);
	net_packet4(&net, p, 0, 1, 65521, true);
	send_ipoib_if_rx_raw(p, 65521);
	cr_assert_eq(net.node[0].last_len, 576);
	cr_expect_eq(a[20] << 8 | a[21], 0x0304);
	cr_expect_eq(a[26] << 8 | a[27], 65520);
	cr_expect_eq(net_cksum(a, 20, 0), 0);
	cr_expect_eq(net_cksum(a + 20, 556, 0), 0);
	cr_expect_eq(memcmp(a + 28, p, 548), 0);
	cr_expect_eq(memcmp(a + 12, p + 16, 4), 0, "a kernel drops what has its own address");
	cr_expect_eq(memcmp(a + 16, net.node[0].cfg.ip4, 4), 0);
}

RxTest(too_big_not_for_errors_and_not_too_often, "4755-7.2-1")
{
	static uint8_t p[65521];
	uint64_t n = net.node[0].n_rx;

	net_packet4(&net, p, 0, 1, 65521, true);
	p[9] = 1;
	p[20] = 3; /* an ICMP error */
	send_ipoib_if_rx_raw(p, 65521);
	p[9] = 17;
	p[7] = 1; /* a later fragment */
	send_ipoib_if_rx_raw(p, 65521);
	p[7] = 0;
	memset(p + 12, 0, 4); /* from nobody */
	send_ipoib_if_rx_raw(p, 65521);
	net_packet6(&net, p, 0, 1, 65521);
	p[6] = 58;
	p[40] = 1;
	send_ipoib_if_rx_raw(p, 65521);
	cr_expect_eq(net.node[0].n_rx, n);
	cr_expect_eq(net_stats(&net, 0)->tx_too_big, 4);
	net_packet4(&net, p, 0, 1, 65521, true);
	for (unsigned i = 0; i < 20; i++)
		send_ipoib_if_rx_raw(p, 65521);
	cr_expect_eq(net.node[0].n_rx, n + 10);
	cr_expect_eq(net_stats(&net, 0)->icmp_limited, 10);
	net_run(&net, 100 * MS); /* one more is allowed then, not two */
	send_ipoib_if_rx_raw(p, 65521);
	send_ipoib_if_rx_raw(p, 65521);
	cr_expect_eq(net.node[0].n_rx, n + 11);
}

RxTest(bad_packets_from_above, "4755-4-2")
{
	uint8_t p[64];

	net_packet4(&net, p, 0, 1, 60, true);
	for (size_t len = 0; len < 60; len++)
		cr_expect_eq(ddps_ipoib_if_send(get_own_ipoib_if_rx(), p, len,
						get_ipoib_if_rx_now()),
			     DDPS_E_INVAL);
	cr_expect_eq(net_stats(&net, 0)->tx_bad, 60);
}

RxTest(neighbours_are_bounded, "4755-8-1")
{
	uint8_t p[64];
	unsigned n = 0;
	struct ddps_ipoib_if_nbr_info info;

	for (unsigned i = 0; i < 2000; i++) {
		net_packet4(&net, p, 0, 1, 60, true);
		p[18] = (uint8_t)(100 + (i >> 8));
		p[19] = (uint8_t)(i == 255 ? 1 : i);
		send_ipoib_if_rx_raw(p, 60);
	}
	while (ddps_ipoib_if_nbr_info(get_own_ipoib_if_rx(), n, &info) >= 0)
		n++;
	cr_expect_eq(n, 256); /* the default bound */
	cr_expect_gt(net_stats(&net, 0)->nbr_full, 0);
	net_run(&net, 60 * SEC);
	net_send4(&net, 0, 1, 100, true);
	net_run(&net, 10 * SEC);
	cr_expect_geq(net.node[1].n_rx, 2);
}
