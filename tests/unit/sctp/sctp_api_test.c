/* SPDX-License-Identifier: BSD-2-Clause */
/* What the SCTP engine refuses from its user, and messages whose numbers a peer gives twice. */
#include "sctp_raw_fixture.h"
#include <ddpsess/err.h>

static struct raw r;

static void fini(void)
{
	raw_fini(&r);
}

static int try_config(const struct ddps_sctp_config *c)
{
	struct ddps_sctp *e;
	int err = ddps_sctp_new(c, 0, &e);

	if (!err)
		ddps_sctp_free(e);
	return err;
}

#define REFUSED(member, value)                                                                     \
	do {                                                                                       \
		struct ddps_sctp_config c = good;                                                  \
		c.member = (value);                                                                \
		cr_expect_eq(try_config(&c), DDPS_E_INVAL, #member);                               \
	} while (0)

Test(sctp_api, configurations_that_make_no_sense, .fini = fini)
{
	struct ddps_sctp_config good;

	raw_init(&r);
	sn_config(&r.net, &good);
	cr_assert_eq(try_config(&good), 0);
	REFUSED(random, NULL);
	REFUSED(rwnd, 4095);
	REFUSED(rwnd, (size_t)UINT32_MAX + 1);
	REFUSED(sack_delay_ms, 501);
	REFUSED(rto_initial_ms, 0);
	REFUSED(rto_min_ms, good.rto_max_ms + 1);
	REFUSED(rto_initial_ms, good.rto_max_ms + 1);
	REFUSED(max_chunks, 0);
	REFUSED(cookie_life_ms, 0);
}

static void refuse_sctp_api_nobody(void *user, struct ddps_sctp_assoc *a)
{
	(void)user;
	(void)a;
}

static const struct ddps_sctp_addr group = { .family = 4, .ip = { 224, 0, 0, 1 } };

Test(sctp_api, what_cannot_be_listened_at, .fini = fini)
{
	const struct ddps_sctp_param good = { .port = 77 };
	struct ddps_sctp_param p = good;
	struct ddps_sctp_port *l;

	raw_init(&r);
	p.port = 0;
	cr_expect_eq(ddps_sctp_listen(r.e, &p, refuse_sctp_api_nobody, NULL, &l), DDPS_E_INVAL);
	cr_expect_eq(ddps_sctp_listen(r.e, &good, NULL, NULL, &l), DDPS_E_INVAL);
	p = good;
	p.mtu = 575;
	cr_expect_eq(ddps_sctp_listen(r.e, &p, refuse_sctp_api_nobody, NULL, &l), DDPS_E_INVAL);
	p = good;
	p.fixed_mtu = 575;
	cr_expect_eq(ddps_sctp_listen(r.e, &p, refuse_sctp_api_nobody, NULL, &l), DDPS_E_INVAL);
	p = good;
	p.nlocal = DDPS_SCTP_ADDRS_MAX + 1;
	cr_expect_eq(ddps_sctp_listen(r.e, &p, refuse_sctp_api_nobody, NULL, &l), DDPS_E_INVAL);
	p.nlocal = 1;
	p.local[0] = group;
	cr_expect_eq(ddps_sctp_listen(r.e, &p, refuse_sctp_api_nobody, NULL, &l), DDPS_E_INVAL);
	p = good;
	p.port = RAW_PORT;
	cr_expect_eq(ddps_sctp_listen(r.e, &p, refuse_sctp_api_nobody, NULL, &l), DDPS_E_BUSY);
	cr_assert_eq(ddps_sctp_listen(r.e, &good, refuse_sctp_api_nobody, NULL, &l), 0);
	ddps_sctp_unlisten(l);
	cr_assert_eq(ddps_sctp_listen(r.e, &good, refuse_sctp_api_nobody, NULL, &l), 0);
}

static int dial_sctp_api(const struct ddps_sctp_addr *peer, unsigned n, uint16_t port, unsigned mtu)
{
	struct ddps_sctp_param p = { .port = RAW_PORT, .mtu = mtu };

	return ddps_sctp_connect(r.e, &p, peer, n, port, 9899, &raw_upcalls, &r, r.net.now, &r.a);
}

Test(sctp_api, what_cannot_be_connected_to, .fini = fini)
{
	struct ddps_sctp_addr peer[DDPS_SCTP_ADDRS_MAX + 1];
	struct ddps_sctp_info i;

	raw_init(&r);
	for (unsigned k = 0; k <= DDPS_SCTP_ADDRS_MAX; k++)
		peer[k] = r.net.node[1].addr[0];
	cr_expect_eq(dial_sctp_api(peer, 0, RAW_PEER, 0), DDPS_E_INVAL);
	cr_expect_eq(dial_sctp_api(peer, DDPS_SCTP_ADDRS_MAX + 1, RAW_PEER, 0), DDPS_E_INVAL);
	cr_expect_eq(dial_sctp_api(peer, 1, 0, 0), DDPS_E_INVAL);
	cr_expect_eq(dial_sctp_api(peer, 1, RAW_PEER, 575), DDPS_E_INVAL);
	cr_expect_eq(dial_sctp_api(&group, 1, RAW_PEER, 0), DDPS_E_INVAL);
	r.e->c.max_assocs = 0;
	cr_expect_eq(dial_sctp_api(peer, 1, RAW_PEER, 0), DDPS_E_LIMIT);
	r.e->c.max_assocs = 1;
	cr_expect_eq(r.e->st.assocs, 0);
	cr_assert_eq(dial_sctp_api(peer, 2, RAW_PEER, 0), 0); /* the same one twice is one */
	ddps_sctp_info(r.a, &i);
	cr_expect_eq(i.npaths, 1);
	cr_expect_eq(ddps_sctp_set_primary(r.a, &r.net.node[1].addr[1], r.net.now), DDPS_E_INVAL);
	cr_expect_eq(ddps_sctp_set_primary(r.a, &peer[0], r.net.now), 0);
}

/* There is nothing yet that could end in order. */
Test(sctp_api, shut_down_before_it_is_up, .fini = fini)
{
	raw_init(&r);
	raw_connect(&r);
	raw_answer_init(&r);
	cr_assert_str_eq(raw_state(&r), "COOKIE-ECHOED");
	r.n = 0;
	ddps_sctp_shutdown(r.a, r.net.now);
	sn_flush(&r.net);
	cr_expect(raw_any(&r, SC_ABORT, NULL));
	raw_wait(&r, 1);
	cr_expect_eq(r.gone, 1);
	cr_expect_eq(r.why.code, 0);
	cr_expect_eq(r.ups, 0);
	cr_expect_eq(r.e->st.assocs, 0);
}

/* An ordered message with the number of one that was delivered, or that waits, is a violation. */
static void same_number(uint16_t first, uint16_t second)
{
	raw_up(&r);
	raw_data(&r, RAW_TSN, 1, first, 3, "one");
	raw_data(&r, RAW_TSN + 1, 1, second, 3, "two");
	cr_expect(raw_any(&r, SC_ABORT, NULL));
	cr_expect_eq(r.gone, 1);
	cr_expect_eq(r.why.code, DDPS_E_PROTOCOL);
	cr_expect_eq(r.messages, first == 0);
	raw_fini(&r);
}

Test(sctp_api, a_number_of_a_stream_comes_once)
{
	same_number(0, 0);
	same_number(0, 65535);
	same_number(2, 2);
}

/* What was refused or unsent belongs to an association that is there no more. */
Test(sctp_api, a_packet_of_nobody_was_not_sent, .fini = fini)
{
	struct ddps_sctp_out o = { .to = { .peer = group }, .port = RAW_PORT, .peer_port = 1 };

	raw_up(&r);
	raw_data(&r, RAW_TSN, 0, 0, 3, "x");
	ddps_sctp_refused(r.e, &o, 1000, r.net.now);
	ddps_sctp_unsent(r.e, &o, r.net.now);
	o.port = 0;
	ddps_sctp_refused(r.e, &o, 1000, r.net.now);
	ddps_sctp_unsent(r.e, &o, r.net.now);
	r.n = 0;
	sn_flush(&r.net);
	cr_expect_eq(r.n, 0);
	cr_expect_eq(ddps_sctp_max_chunk(r.a), (1500 - 20 - 8 - 12) / 4 * 4 - 16);
}

/* ---- addresses that one end gives the other ---- */

static struct ddps_sctp_addr make_sctp_api_ip4(uint8_t a, uint8_t b, uint8_t c, uint8_t d)
{
	return (struct ddps_sctp_addr){ .family = 4, .ip = { a, b, c, d } };
}

/* What our INIT to @peer lists of a global address, a loopback address and a link-local one. */
static unsigned expect_upcalls(struct ddps_sctp_addr peer, struct ddps_sc_init *i)
{
	const struct ddps_sctp_param p = { .port = RAW_PORT,
					   .nlocal = 3,
					   .local = { make_sctp_api_ip4(10, 0, 0, 1),
						      make_sctp_api_ip4(127, 0, 0, 1),
						      { .family = 6,
							.ip = { 0xfe, 0x80, [15] = 1 } } } };
	struct ddps_sc_chunk c;

	raw_init(&r);
	cr_assert_eq(ddps_sctp_connect(r.e, &p, &peer, 1, RAW_PEER, 9899, &raw_upcalls, &r,
				       r.net.now, &r.a),
		     0);
	sn_flush(&r.net);
	cr_assert(raw_any(&r, SC_INIT, &c));
	cr_assert_eq(ddps_sc_decode_init(i, &c), 0);
	return i->naddr;
}

Test(sctp_api, an_init_lists_what_its_peer_can_reach)
{
	const struct ddps_sctp_addr global = make_sctp_api_ip4(10, 0, 0, 1),
				    loopback = make_sctp_api_ip4(127, 0, 0, 1);
	struct ddps_sc_init i;

	cr_assert_eq(expect_upcalls(make_sctp_api_ip4(10, 0, 0, 9), &i), 1);
	cr_expect(ddps_sc_addr_eq(&i.addr[0], &global));
	raw_fini(&r);
	cr_assert_eq(expect_upcalls(make_sctp_api_ip4(127, 0, 0, 9), &i), 2);
	cr_expect(ddps_sc_addr_eq(&i.addr[0], &global));
	cr_expect(ddps_sc_addr_eq(&i.addr[1], &loopback));
	raw_fini(&r);
}

/* A peer names addresses; @r.a is the association that comes of it. */
static void named(const struct ddps_sctp_addr *list, unsigned n)
{
	uint8_t params[512];
	struct ddps_wbuf w = ddps_wbuf_init(params, sizeof params);

	raw_init(&r);
	for (unsigned i = 0; i < n; i++)
		ddps_sc_put_addr(&w, &list[i]);
	cr_assert(!w.failed);
	raw_begin(&r, 0);
	raw_put_init(&r, RAW_TAG, 100000, 10, 10, RAW_TSN, params, (size_t)(w.p - params));
	raw_send(&r);
	r.own = RAW_TAG;
	cr_assert(raw_take_init_ack(&r));
	raw_echo(&r);
	cr_assert_eq(r.accepted, 1);
}

/* Nothing is sent to our own loopback, to a link or to a group because a stranger names it. */
Test(sctp_api, a_peer_cannot_name_what_is_not_its_own, .fini = fini)
{
	const struct ddps_sctp_addr list[] = {
		make_sctp_api_ip4(127, 0, 0, 1),
		{ .family = 6, .ip = { 0xfe, 0x80, [15] = 7 } },
		{ .family = 6, .ip = { [15] = 1 } },
		group,
		make_sctp_api_ip4(10, 9, 9, 9),
	};

	named(list, sizeof list / sizeof *list);
	cr_assert_eq(r.a->npaths, 2);
	cr_expect(ddps_sc_addr_eq(&r.a->path[0]->peer, &r.net.node[1].addr[0]));
	cr_expect(ddps_sc_addr_eq(&r.a->path[1]->peer, &list[4]));
}

/* ---- the tap ---- */

static struct {
	unsigned in, out;
	uint64_t at;
	bool right;
} tapped;

/* Each is from the one and to the other, whole, as it is on the wire. */
static void tap_sctp_api(void *user, uint64_t now, bool sent, const struct ddps_sctp_route *to,
			 const struct iovec *iov, int niov)
{
	uint8_t packet[4096];
	struct ddps_rbuf ports = ddps_rbuf_init(packet, 4);
	size_t n = 0;

	for (int i = 0; i < niov; i++) {
		memcpy(packet + n, iov[i].iov_base, iov[i].iov_len);
		n += iov[i].iov_len;
	}
	(void)user;
	tapped.in += !sent;
	tapped.out += sent;
	tapped.at = now;
	tapped.right &= ddps_sc_crc_ok(packet, n) &&
			ddps_rbuf_u16(&ports) == (sent ? RAW_PORT : RAW_PEER) &&
			!memcmp(to->peer.ip, r.net.node[1].addr[0].ip, sizeof to->peer.ip);
}

Test(sctp_api, a_tap_sees_each_packet, .fini = fini)
{
	raw_init(&r);
	r.e->c.tap = tap_sctp_api;
	tapped.right = true;
	raw_init_chunk(&r, RAW_TAG, RAW_TSN);
	cr_expect(tapped.in == 1 && tapped.out == 1);
	cr_assert(raw_take_init_ack(&r));
	raw_echo(&r);
	cr_expect(tapped.in == 2 && tapped.out == 2);
	raw_wait(&r, 3);
	raw_data(&r, RAW_TSN, 0, 0, 3 | SC_DATA_I, "a message");
	cr_expect(tapped.in == 3 && tapped.out == 3);
	cr_expect_eq(tapped.at, r.net.now);
	raw_send_as_is(&r, "no packet at all", 16);
	cr_expect_eq(tapped.in, 3, "its CRC is wrong");
	raw_user_send(&r, 0, 0, "another");
	cr_expect(tapped.in == 3 && tapped.out == 4);
	cr_expect(tapped.right);
}
