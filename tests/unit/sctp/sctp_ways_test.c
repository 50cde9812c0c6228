/* SPDX-License-Identifier: BSD-2-Clause */
/* Where SCTP's packets go and come from, who is counted as whom, and what is free. */
#include "sctp_raw_fixture.h"

static struct raw r;

static void fini(void)
{
	raw_fini(&r);
}

TestSuite(sctp_ways, .fini = fini);

static int dial_sctp_ways(const struct ddps_sctp_param *p, const struct ddps_sctp_addr *peer,
			  unsigned n)
{
	return ddps_sctp_connect(r.e, p, peer, n, RAW_PEER, 9899, &raw_upcalls, &r, r.net.now,
				 &r.a);
}

static const struct ddps_sctp_addr none;

/* ---- what is asked for ---- */

Test(sctp_ways, each_address_is_looked_at)
{
	const struct ddps_sctp_addr group = { .family = 4, .ip = { 224, 0, 0, 1 } };
	struct ddps_sctp_param p = { .port = RAW_PORT, .nlocal = DDPS_SCTP_ADDRS_MAX };
	struct ddps_sctp_addr peer[3] = { sn_v4(10, 0, 0, 2), sn_v4(10, 0, 0, 2),
					  sn_v4(10, 0, 1, 2) };
	struct ddps_sctp_assoc *a;

	raw_init(&r);
	for (unsigned i = 0; i < DDPS_SCTP_ADDRS_MAX; i++)
		p.local[i] = sn_v4(10, 0, 0, 100 + i);
	p.local[DDPS_SCTP_ADDRS_MAX - 1] = group;
	cr_expect_eq(dial_sctp_ways(&p, peer, 3), DDPS_E_INVAL);
	p.local[DDPS_SCTP_ADDRS_MAX - 1] = sn_v4(10, 0, 0, 99);
	peer[2] = group;
	cr_expect_eq(dial_sctp_ways(&p, peer, 3), DDPS_E_INVAL);
	peer[2] = sn_v4(10, 0, 1, 2);
	cr_assert_eq(dial_sctp_ways(&p, peer, 3), 0, "eight of ours");
	cr_expect_eq(r.a->npaths, 2, "the same one twice is one, and the next is another");
	a = r.a;
	peer[0] = sn_v4(10, 0, 0, 77);
	peer[1] = sn_v4(10, 0, 0, 78);
	cr_expect_eq(dial_sctp_ways(&p, peer, 3), DDPS_E_BUSY, "the last one is in use");
	r.a = a;
}

Test(sctp_ways, an_association_that_is_asked_for)
{
	const struct ddps_sctp_param p = { .port = RAW_PORT, .via = 3, .streams = 7 };
	struct ddps_sctp_info i;

	raw_init(&r);
	r.net.max_segs = 1;
	cr_assert_eq(dial_sctp_ways(&p, &r.net.node[1].addr[0], 1), 0);
	sn_flush(&r.net);
	cr_assert_eq(r.n, 1);
	cr_expect_eq(r.log[0].to.via, 3);
	cr_expect_eq(ddps_sctp_deadline(r.e), r.a->ctl_at, "T1");
	ddps_sctp_info(r.a, &i);
	cr_expect_eq(i.via, 3);
	cr_expect_eq(i.peer_rwnd, 0, "the peer has told none");
	cr_expect_eq(i.peer_tag, 0);
	cr_expect_eq(i.npaths, 1);
	cr_expect(i.by_us);
}

static void take_sctp_ways_accept(void *user, struct ddps_sctp_assoc *a)
{
	r.accepted++;
	r.a = a;
	ddps_sctp_assoc_set_up(a, &raw_upcalls, user);
}

static void send_sctp_ways_by(uint16_t via)
{
	struct ddps_sctp_in in = { .from = { .peer = r.net.node[1].addr[0],
					     .local = r.net.node[0].addr[0],
					     .encap = r.net.node[1].udp,
					     .via = via },
				   .data = r.buf,
				   .len = (size_t)(r.w.p - r.buf) };

	ddps_sc_crc_put(r.buf, in.len);
	r.n = 0;
	ddps_sctp_input(r.e, &in, 1, r.net.now);
	sn_flush(&r.net);
}

/* A listener is one of a socket. */
Test(sctp_ways, who_listens_by_another_socket)
{
	const struct ddps_sctp_param p = { .port = RAW_PORT, .via = 3, .streams = 7 };
	struct ddps_sctp_port *l;
	struct ddps_sctp_info i;

	raw_init(&r);
	ddps_sctp_unlisten(r.port);
	cr_assert_eq(ddps_sctp_listen(r.e, &p, take_sctp_ways_accept, &r, &l), 0);
	for (uint16_t via = 0; via <= 3; via += 3) {
		raw_begin(&r, 0);
		raw_put_init(&r, RAW_TAG, 100000, 5, 5, RAW_TSN, NULL, 0);
		send_sctp_ways_by(via);
		cr_expect_eq(raw_got(&r, 0, 0, NULL), via ? SC_INIT_ACK : SC_ABORT);
	}
	cr_assert(raw_take_init_ack(&r));
	raw_begin(&r, r.tag);
	ddps_sc_put_chunk(&r.w, SC_COOKIE_ECHO, 0, r.cookie, r.cookie_len);
	send_sctp_ways_by(3);
	cr_assert_eq(r.accepted, 1);
	ddps_sctp_info(r.a, &i);
	cr_expect_eq(i.via, 3);
	cr_expect_eq(r.log[0].to.via, 3);
}

/* RFC 8899: the least size that is tried is the family's. */
Test(sctp_ways, the_least_packet_of_a_family)
{
	const struct ddps_sctp_param p = { .port = RAW_PORT };
	const struct {
		struct ddps_sctp_addr peer;
		unsigned min, base;
	} row[] = {
		{ sn_v4(10, 0, 0, 2), 576, 1200 },
		{ { .family = 6, .ip = { 0x20, 1, 0xd, 0xb8, [15] = 1 } }, 1280, 1280 },
	};

	for (unsigned i = 0; i < 2; i++) {
		raw_init(&r);
		cr_assert_eq(dial_sctp_ways(&p, &row[i].peer, 1), 0);
		cr_expect_eq(r.a->path[0]->tx.pmtu.lim.min, row[i].min);
		cr_expect_eq(r.a->path[0]->tx.pmtu.lim.base, row[i].base);
		raw_fini(&r);
	}
	raw_init(&r);
}

/* ---- our address ---- */

static unsigned chosen;

static unsigned choose_sctp_ways(void *user, const struct ddps_sctp_addr *peer,
				 const struct ddps_sctp_addr *local, unsigned n)
{
	(void)user, (void)peer, (void)local;
	cr_expect_eq(n, 2);
	return chosen;
}

Test(sctp_ways, the_user_chooses_our_address)
{
	struct ddps_sctp_param p = { .port = RAW_PORT, .nlocal = 2 };

	for (chosen = 0; chosen <= 2; chosen++) {
		raw_init(&r);
		r.e->c.source = choose_sctp_ways;
		memcpy(p.local, r.net.node[0].addr, sizeof r.net.node[0].addr);
		cr_assert_eq(dial_sctp_ways(&p, &r.net.node[1].addr[0], 1), 0);
		cr_expect(ddps_sc_addr_eq(&r.a->path[0]->local,
					  chosen < 2 ? &p.local[chosen] : &none),
			  "%u", chosen);
		raw_fini(&r);
	}
	raw_init(&r);
}

static void accept_two(void)
{
	uint8_t params[32];
	struct ddps_wbuf w = ddps_wbuf_init(params, sizeof params);

	ddps_sc_put_addr(&w, &r.net.node[1].addr[1]);
	raw_begin(&r, 0);
	raw_put_init(&r, RAW_TAG, 100000, 5, 5, RAW_TSN, params, (size_t)(w.p - params));
	raw_send(&r);
	r.own = RAW_TAG;
	cr_assert(raw_take_init_ack(&r));
}

/* The peer knows the one that it has sent to: what comes from another it would abort. */
Test(sctp_ways, with_one_address_all_comes_from_it)
{
	raw_init(&r);
	r.port->param.nlocal = 1;
	r.port->param.local[0] = r.net.node[0].addr[0];
	accept_two();
	raw_echo(&r);
	cr_assert_eq(r.accepted, 1);
	cr_assert_eq(r.a->npaths, 2);
	for (unsigned i = 0; i < 2; i++)
		cr_expect(ddps_sc_addr_eq(&r.a->path[i]->local, &r.net.node[0].addr[0]), "%u", i);
}

/* Nor does an address come of it that nobody has listed. */
Test(sctp_ways, a_cookie_to_an_address_that_is_not_known)
{
	struct ddps_sctp_in in = { .data = r.buf };

	raw_init(&r);
	raw_init_chunk(&r, RAW_TAG, RAW_TSN);
	cr_assert(raw_take_init_ack(&r));
	raw_begin(&r, r.tag);
	ddps_sc_put_chunk(&r.w, SC_COOKIE_ECHO, 0, r.cookie, r.cookie_len);
	in.len = (size_t)(r.w.p - r.buf);
	ddps_sc_crc_put(r.buf, in.len);
	in.from.peer = r.net.node[1].addr[0];
	in.from.encap = r.net.node[1].udp;
	ddps_sctp_input(r.e, &in, 1, r.net.now);
	cr_assert_eq(r.accepted, 1);
	cr_expect_eq(r.a->npaths, 1);
}

/* ---- who is counted as whom ---- */

static struct ddps_sctp_addr peers[8];
static unsigned npeers;

static bool is_sctp_ways_counted(struct ddps_sctp_addr a)
{
	if (!ddps_sc_peer_get(r.e, &a, 1))
		return false;
	peers[npeers++] = a;
	return true;
}

/* An IPv4 address; of IPv6 the first 64 bits, on a link. */
Test(sctp_ways, who_is_another_peer)
{
	struct ddps_sctp_addr a = { .family = 6, .ip = { 10, 0, 0, 2 } };

	raw_init(&r);
	cr_expect(is_sctp_ways_counted(sn_v4(10, 0, 0, 2)));
	cr_expect_not(is_sctp_ways_counted(sn_v4(10, 0, 0, 2)));
	cr_expect(is_sctp_ways_counted(sn_v4(10, 0, 0, 3)));
	cr_expect(is_sctp_ways_counted(a), "the other family");
	for (unsigned k = 8; k < 16; k++) {
		a.ip[k] = 1;
		cr_expect_not(is_sctp_ways_counted(a), "%u", k);
		a.ip[k] = 0;
	}
	a.ip[7] = 1;
	cr_expect(is_sctp_ways_counted(a));
	a.scope = 1;
	cr_expect(is_sctp_ways_counted(a), "another link");
	cr_expect_not(is_sctp_ways_counted(a));
	while (npeers)
		ddps_sc_peer_put(r.e, &peers[--npeers]);
}

/* ---- what is known of several ---- */

Test(sctp_ways, sizes_of_many_addresses_are_known)
{
	unsigned known = 0;

	raw_init(&r);
	for (unsigned i = 0; i < 32; i++) {
		struct ddps_sctp_addr a = sn_v4(192, 0, 2, i);

		ddps_sc_way_set(r.e, &a, (uint16_t)(1400 + i));
	}
	for (unsigned i = 0; i < 32; i++) {
		struct ddps_sctp_addr a = sn_v4(192, 0, 2, i);

		known += ddps_sc_way_size(r.e, &a) == 1400 + i;
	}
	cr_expect_gt(known, 16);
}

/* ---- free ports ---- */

static void ignore_ways_assoc(void *user, struct ddps_sctp_assoc *a)
{
	(void)user, (void)a;
}

/* RFC 6335 6: of the dynamic ports all are tried. */
Test(sctp_ways, the_one_port_that_is_free)
{
	struct ddps_sctp_param p = { .streams = 1 };
	const struct ddps_sctp_addr *to = &r.net.node[1].addr[0];
	struct ddps_sctp_port *lowest, *l;

	raw_init(&r);
	p.port = 49152;
	cr_assert_eq(ddps_sctp_listen(r.e, &p, ignore_ways_assoc, NULL, &lowest), 0);
	for (p.port = 49153; p.port < 65535; p.port++)
		cr_assert_eq(ddps_sctp_listen(r.e, &p, ignore_ways_assoc, NULL, &l), 0);
	r.e->next_port = 0;
	cr_expect_eq(ddps_sc_free_port(r.e, 0, RAW_PEER, to), 65535);
	cr_assert_eq(ddps_sctp_listen(r.e, &p, ignore_ways_assoc, NULL, &l), 0);
	p.port = 0;
	cr_expect_eq(dial_sctp_ways(&p, to, 1), DDPS_E_BUSY);
	cr_expect_neq(ddps_sc_free_port(r.e, 1, RAW_PEER, to), 0, "of another socket");
	ddps_sctp_unlisten(lowest);
	cr_expect_eq(ddps_sc_free_port(r.e, 0, RAW_PEER, to), 49152);
}

/* ---- octets of a chunk ---- */

/* What fits on each path that works, whichever is used now. */
Test(sctp_ways, the_largest_chunk_fits_on_each_path_that_works, .description = "9260-6.9-4")
{
	const struct ddps_sctp_param p = { .port = RAW_PORT, .fixed_mtu = 1500 };
	size_t all;

	raw_init(&r);
	cr_assert_eq(dial_sctp_ways(&p, r.net.node[1].addr, 2), 0);
	all = ddps_sctp_max_chunk(r.a);
	for (unsigned i = 0; i < 2; i++) {
		struct ddps_sc_path *narrow = r.a->path[i];

		r.a->data_path = r.a->path[!i];
		narrow->tx.pmtu.size = 1000;
		ddps_sent_mtu_changed(&r.a->tx, &narrow->tx, DDPS_PMTU_SIZE);
		cr_expect_eq(ddps_sctp_max_chunk(r.a), all - 500, "%u", i);
		narrow->state = DDPS_SCTP_INACTIVE;
		cr_expect_eq(ddps_sctp_max_chunk(r.a), all, "%u", i);
		narrow->state = DDPS_SCTP_ACTIVE;
		narrow->tx.pmtu.size = 1500;
		ddps_sent_mtu_changed(&r.a->tx, &narrow->tx, DDPS_PMTU_SIZE);
	}
}
