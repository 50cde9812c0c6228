/* SPDX-License-Identifier: BSD-2-Clause */
/* States of paths and of associations that seldom meet: set-up, heartbeats, ICMP, SHUTDOWN. */
#include "sctp_paths_fixture.h"
#include "unit/mem_fixture.h"

TestSuite(sctp_states, .fini = fini);

/* ---- ICMP ---- */

/* About a packet to @to: its tag, and, if that is 0, a chunk of @type with @init_tag. */
static void icmp(const struct ddps_sctp_addr *to, enum ddps_sctp_icmp what, uint32_t mtu,
		 uint32_t tag, uint8_t type, uint32_t init_tag)
{
	struct ddps_sctp_route way = { .peer = *to, .encap = r.net.node[1].udp };
	uint8_t quote[20];
	struct ddps_wbuf w = ddps_wbuf_init(quote, sizeof quote);

	ddps_wbuf_u16(&w, RAW_PORT);
	ddps_wbuf_u16(&w, RAW_PEER);
	ddps_wbuf_u32(&w, tag);
	ddps_wbuf_u32(&w, 0); /* CRC */
	ddps_wbuf_u32(&w, (uint32_t)type << 24 | 20);
	ddps_wbuf_u32(&w, init_tag);
	ddps_sctp_icmp(r.e, &way, what, mtu, quote, sizeof quote, r.net.now);
}

static void bring_states_icmp(const struct ddps_sctp_addr *to)
{
	icmp(to, DDPS_SCTP_ICMP_UNREACH_PROTO, 0, r.own, 0, 0);
}

Test(sctp_states, icmp_about_an_init_quotes_one, .description = "9260-10-5 9260-10-6")
{
	raw_init(&r);
	raw_connect(&r);
	r.tag = r.a->own_tag;
	icmp(get_first_address(), DDPS_SCTP_ICMP_UNREACH_PROTO, 0, 0, SC_DATA, r.tag);
	icmp(get_first_address(), DDPS_SCTP_ICMP_UNREACH_PROTO, 0, 0, SC_INIT, r.tag + 1);
	icmp(get_first_address(), DDPS_SCTP_ICMP_UNREACH_PROTO, 0, 77, SC_INIT, r.tag);
	cr_expect_eq(r.e->st.icmp_ignored, 3);
	cr_expect_str_eq(raw_state(&r), "COOKIE-WAIT");
	icmp(get_first_address(), DDPS_SCTP_ICMP_UNREACH_PROTO, 0, 0, SC_INIT, r.tag);
	cr_expect_eq(r.e->st.icmp_believed, 1);
	raw_wait(&r, 1);
	cr_expect_eq(r.gone, 1);
	cr_expect_eq(r.why.code, DDPS_E_REFUSED);
}

Test(sctp_states, icmp_costs_a_path_once, .description = "9260-10-8")
{
	raw_up(&r);
	bring_states_icmp(get_first_address());
	cr_expect_eq(r.a->path[0]->state, DDPS_SCTP_ACTIVE, "the only one");
	cr_expect_eq(r.a->path[0]->errors, 0);
	cr_expect_eq(r.e->st.icmp_believed, 1);
	fini();

	open_both_paths();
	bring_states_icmp(get_second_address());
	cr_expect_eq(r.a->path[1]->state, DDPS_SCTP_DOUBTFUL);
	cr_expect_eq(r.a->path[1]->errors, 1);
	bring_states_icmp(get_second_address());
	cr_expect_eq(r.a->path[1]->errors, 1, "it was not used since");
	cr_expect_eq(told, DDPS_SCTP_DOUBTFUL);
	cr_expect_eq(r.a->errors, 0);
}

Test(sctp_states, icmp_with_a_size_that_no_packet_has)
{
	struct ddps_sctp_param p = { .port = RAW_PORT, .streams = 10, .mtu = 9000 };
	struct ddps_pmtu *m;

	raw_init(&r);
	cr_assert_eq(ddps_sctp_connect(r.e, &p, get_first_address(), 1, RAW_PEER, 9899,
				       &raw_upcalls, &r, r.net.now, &r.a),
		     0);
	sn_flush(&r.net);
	raw_answer_init(&r);
	raw_chunk(&r, r.tag, SC_COOKIE_ACK, 0, NULL, 0);
	m = &r.a->path[0]->tx.pmtu;
	m->state = DDPS_PMTU_DONE;
	m->size = 9000;
	m->probing = 0;
	/* of which 16 bits say 2000 */
	icmp(get_first_address(), DDPS_SCTP_ICMP_TOO_BIG, 65536 + 2000, r.own, 0, 0);
	cr_expect_eq(m->bad_ptb, 1);
	cr_expect_eq(m->size, 9000);
	icmp(get_first_address(), DDPS_SCTP_ICMP_TOO_BIG, 65535, r.own, 0, 0);
	cr_expect_eq(m->bad_ptb, 2);
	icmp(get_first_address(), DDPS_SCTP_ICMP_TOO_BIG, 2000, r.own, 0, 0);
	cr_expect_eq(m->bad_ptb, 2);
	cr_expect_lt(m->size, 9000);
}

/* ---- set-up ---- */

/* Both addresses are given by the user; the first fails during set-up. */
Test(sctp_states, set_up_goes_on_where_a_path_is_in_doubt, .description = "9260-5.1-14")
{
	static struct ddps_sctp_up up;
	struct ddps_sctp_param p = { .port = RAW_PORT, .streams = 10, .fixed_mtu = 1500 };
	unsigned n;

	up = raw_upcalls;
	up.path = note_second_path;
	first_told = second_told = 0;
	raw_init(&r);
	cr_assert_eq(ddps_sctp_connect(r.e, &p, r.net.node[1].addr, 2, RAW_PEER, 9899, &up, &r,
				       r.net.now, &r.a),
		     0);
	sn_flush(&r.net);
	raw_answer_init(&r);
	cr_assert_str_eq(raw_state(&r), "COOKIE-ECHOED");
	bring_states_icmp(get_first_address());
	cr_expect_eq(r.a->path[0]->state, DDPS_SCTP_DOUBTFUL);
	cr_expect_eq(first_told, 0, "it is not up yet");
	for (n = 0; n < 2; n++) { /* to the second, and then to the first in spite of that */
		while (r.a->ctl_n == n)
			cr_assert(sn_step(&r.net, UINT64_MAX));
		cr_expect_eq(r.a->ctl_path, r.a->path[n == 0]);
	}
	raw_chunk(&r, r.tag, SC_COOKIE_ACK, 0, NULL, 0);
	cr_expect_eq(r.ups, 1);
	cr_expect_eq(r.a->path[0]->state, DDPS_SCTP_ACTIVE);
}

static void put_init_ack(const void *params, size_t len)
{
	raw_begin(&r, r.tag);
	raw_put_init(&r, RAW_TAG, 100000, 5, 5, RAW_TSN, params, len);
	r.buf[12] = SC_INIT_ACK;
}

static size_t cookie_and(uint8_t *params, size_t size, const struct ddps_sctp_addr *a, unsigned n)
{
	struct ddps_wbuf w = ddps_wbuf_init(params, size);

	ddps_sc_put_tlv(&w, SC_P_COOKIE, "cook", 4);
	for (unsigned i = 0; i < n; i++)
		ddps_sc_put_addr(&w, &a[i]);
	return (size_t)(w.p - params);
}

/* In COOKIE-WAIT once more: what the peer listed is known, but not by the user's word. */
static void stale_again(void)
{
	static const uint8_t stale[] = { 0, SC_CAUSE_STALE, 0, 8, 0, 0, 0, 1 };
	uint8_t params[64];

	raw_init(&r);
	raw_connect(&r);
	r.tag = r.a->own_tag;
	put_init_ack(params, cookie_and(params, sizeof params, get_second_address(), 1));
	raw_send(&r);
	cr_assert_eq(raw_got(&r, 0, 0, NULL), SC_COOKIE_ECHO);
	cr_assert_eq(r.a->npaths, 2);
	raw_chunk(&r, r.tag, SC_ERROR, 0, stale, sizeof stale);
	cr_assert_str_eq(raw_state(&r), "COOKIE-WAIT");
	cr_expect_eq(raw_got(&r, 0, 0, NULL), SC_INIT);
}

Test(sctp_states, an_init_that_crosses_from_elsewhere, .description = "9260-5.2.1-2")
{
	uint8_t params[64];
	struct ddps_wbuf w;

	stale_again();
	raw_begin(&r, 0);
	raw_put_init(&r, RAW_TAG, 100000, 5, 5, RAW_TSN, NULL, 0);
	send_second(); /* the user has not given that address */
	cr_expect_eq(r.n, 0);
	w = ddps_wbuf_init(params, sizeof params);
	ddps_sc_put_addr(&w, get_first_address());
	raw_begin(&r, 0);
	raw_put_init(&r, RAW_TAG, 100000, 5, 5, RAW_TSN, params, (size_t)(w.p - params));
	{
		struct ddps_sctp_in in = { .data = r.buf, .len = (size_t)(r.w.p - r.buf) };

		in.from.peer = sn_v4(10, 7, 7, 7); /* of no path at all, but it lists one */
		ddps_sc_crc_put(r.buf, in.len);
		ddps_sctp_input(r.e, &in, 1, r.net.now);
		sn_flush(&r.net);
	}
	cr_expect_eq(r.n, 0);
	raw_begin(&r, 0);
	raw_put_init(&r, RAW_TAG, 100000, 0, 5, RAW_TSN, NULL, 0); /* no streams */
	raw_send(&r);
	cr_expect_eq(raw_got(&r, 0, 0, NULL), SC_ABORT);
	cr_expect_str_eq(raw_state(&r), "COOKIE-WAIT");
	raw_begin(&r, 0);
	raw_put_init(&r, RAW_TAG, 100000, 5, 5, RAW_TSN, NULL, 0);
	raw_send(&r);
	cr_expect_eq(raw_got(&r, 0, 0, NULL), SC_INIT_ACK);
}

Test(sctp_states, an_init_ack_from_elsewhere)
{
	uint8_t params[64];

	stale_again();
	put_init_ack(params, cookie_and(params, sizeof params, get_second_address(), 1));
	send_second();
	cr_expect_eq(sent_to(get_first_address(), SC_COOKIE_ECHO, NULL), 1, "where the INIT went");
	cr_expect_eq(sent_to(get_second_address(), SC_COOKIE_ECHO, NULL), 0);
	cr_expect_str_eq(raw_state(&r), "COOKIE-ECHOED");
}

/* [9260-5.2.6-1] What left with the cookie leaves again, the count goes on. */
Test(sctp_states, a_cookie_that_is_called_stale, .description = "9260-5.2.6-1")
{
	static const uint8_t stale[] = { 0, SC_CAUSE_STALE, 0, 8, 0, 0, 0, 1 };
	uint8_t params[64];
	size_t len;

	raw_init(&r);
	r.early = "early";
	r.nearly = 1;
	raw_connect(&r);
	r.tag = r.a->own_tag;
	len = cookie_and(params, sizeof params, NULL, 0);
	for (unsigned n = 1; n <= 8; n++) {
		put_init_ack(params, len);
		raw_send(&r);
		cr_assert_eq(raw_got(&r, 0, 0, NULL), SC_COOKIE_ECHO);
		cr_expect_eq(raw_got(&r, 0, 1, NULL), SC_DATA, "%u", n);
		cr_expect_eq(r.a->early, 1);
		cr_expect_eq(r.a->ctl_n, 0);
		raw_chunk(&r, r.tag, SC_ERROR, 0, stale, sizeof stale);
		cr_assert_eq(r.n, 1);
		cr_expect_eq(raw_got(&r, 0, 0, NULL), SC_INIT);
		cr_expect_eq(raw_got_tag(&r, 0), 0);
		cr_expect(!r.a->early && !r.a->peer_tag && !r.a->cookie);
		cr_expect_eq(r.a->ctl_n, 1);
		cr_expect_eq(r.a->stale, n);
	}
	put_init_ack(params, len);
	raw_send(&r);
	raw_chunk(&r, r.tag, SC_ERROR, 0, stale, sizeof stale);
	cr_expect_eq(r.gone, 1);
	cr_expect_eq(r.why.code, DDPS_E_TIMEDOUT);
	cr_expect_eq(r.e->st.cookies_stale, 9);
	cr_expect(strstr(r.why.text, " 9 times") != NULL, "%s", r.why.text);
}

Test(sctp_states, an_init_ack_without_a_cookie)
{
	static const uint8_t empty[] = { 0, SC_P_COOKIE, 0, 4 };
	struct ddps_sc_chunk c;

	raw_init(&r);
	raw_connect(&r);
	r.tag = r.a->own_tag;
	put_init_ack(empty, sizeof empty);
	raw_send(&r);
	cr_assert_eq(raw_got(&r, 0, 0, &c), SC_ABORT);
	cr_expect_eq(c.val[1], SC_CAUSE_MISSING);
	cr_expect_eq(r.gone, 1);
}

/* The user gave eight; of what the peer lists besides it is known whose it is, and that is all. */
Test(sctp_states, eight_addresses_are_used)
{
	struct ddps_sctp_param p = { .port = RAW_PORT, .streams = 10, .fixed_mtu = 1500 };
	struct ddps_sctp_addr peer[DDPS_SCTP_ADDRS_MAX];
	uint8_t params[64];

	raw_init(&r);
	peer[0] = *get_first_address();
	for (unsigned i = 1; i < DDPS_SCTP_ADDRS_MAX; i++)
		peer[i] = sn_v4(10, 3, 3, i);
	cr_assert_eq(ddps_sctp_connect(r.e, &p, peer, DDPS_SCTP_ADDRS_MAX, RAW_PEER, 9899,
				       &raw_upcalls, &r, r.net.now, &r.a),
		     0);
	sn_flush(&r.net);
	r.tag = r.a->own_tag;
	put_init_ack(params, cookie_and(params, sizeof params, get_second_address(), 1));
	raw_send(&r);
	cr_expect_eq(raw_got(&r, 0, 0, NULL), SC_COOKIE_ECHO);
	cr_expect_eq(r.a->npaths, DDPS_SCTP_ADDRS_MAX + 1);
	cr_assert(ddps_sc_path_of(r.a, get_second_address()));
	raw_chunk(&r, r.tag, SC_COOKIE_ACK, 0, NULL, 0);
	raw_wait(&r, 5000);
	cr_expect_eq(sent_to(get_second_address(), SC_HEARTBEAT, NULL), 0);
}

/* An address belongs to one association between two ports. */
Test(sctp_states, an_address_that_another_association_has)
{
	struct ddps_sctp_param p = { .port = RAW_PORT, .streams = 10, .fixed_mtu = 1500 };
	struct ddps_sctp_assoc *other;
	uint8_t params[64];

	raw_init(&r);
	cr_assert_eq(ddps_sctp_connect(r.e, &p, get_second_address(), 1, RAW_PEER, 9899, &sn_deaf,
				       NULL, r.net.now, &other),
		     0);
	raw_connect(&r);
	r.tag = r.a->own_tag;
	put_init_ack(params, cookie_and(params, sizeof params, get_second_address(), 1));
	raw_send(&r);
	cr_expect_eq(raw_got(&r, 0, 0, NULL), SC_COOKIE_ECHO);
	cr_expect_eq(r.a->npaths, 1);
	cr_expect_eq(ddps_sc_find(r.e, 0, RAW_PORT, RAW_PEER, get_second_address()),
		     other->path[0]);
}

/* The INIT of a restart comes from a new address, and lists those that are known. */
Test(sctp_states, one_known_address_is_enough_to_know_the_association,
     .description = "9260-5.1.2-4 9260-5.2.2-2")
{
	uint8_t params[64];
	struct ddps_wbuf w = ddps_wbuf_init(params, sizeof params);
	struct ddps_sctp_in in = { .data = r.buf };
	struct ddps_sc_chunk c;

	open_both_paths();
	ddps_sc_put_addr(&w, get_first_address());
	ddps_sc_put_addr(&w, get_second_address());
	raw_begin(&r, 0);
	raw_put_init(&r, RAW_TAG + 1, 100000, 5, 5, RAW_TSN, params, (size_t)(w.p - params));
	in.from.peer = sn_v4(10, 7, 7, 7);
	in.len = (size_t)(r.w.p - r.buf);
	ddps_sc_crc_put(r.buf, in.len);
	r.n = 0;
	ddps_sctp_input(r.e, &in, 1, r.net.now);
	sn_flush(&r.net);
	cr_assert_eq(raw_got(&r, 0, 0, &c), SC_ABORT);
	cr_expect_eq(c.val[1], SC_CAUSE_RESTART);
	cr_expect_eq(r.e->st.restarts_refused, 1);
}

static uint32_t next_random[4];
static unsigned randoms;

static void give_drawn_tag(void *user, void *buf, size_t len)
{
	(void)user;
	cr_assert_eq(len, 4);
	cr_assert_lt(randoms, 4);
	memcpy(buf, &next_random[randoms++], 4);
}

/* RFC 9260 5.3.1: a tag that cannot be taken for the peer's. */
Test(sctp_states, our_tag_is_not_the_peers, .description = "9260-5.3.1-1")
{
	raw_init(&r);
	randoms = 0;
	next_random[0] = 0; /* which none may be, either */
	next_random[1] = RAW_TAG;
	next_random[2] = 5;
	next_random[3] = 6;
	r.e->c.random = give_drawn_tag;
	raw_init_chunk(&r, RAW_TAG, RAW_TSN);
	r.e->c.random = sn_random;
	cr_assert(raw_take_init_ack(&r));
	cr_expect_eq(r.tag, 5);
	cr_expect_eq(r.tsn, 6);
}

/* Which of our addresses INIT gives a peer elsewhere. */
Test(sctp_states, addresses_in_scope)
{
	static const struct {
		uint8_t ip[2];
		bool told;
	} row[] = { { { 0x20, 0x01 }, true }, { { 0xfe, 0x80 }, false }, { { 0xfe, 0xbf }, false },
		    { { 0xfe, 0xc0 }, true }, { { 0xfe, 0x00 }, true },	 { { 0xfd, 0x80 }, true } };
	struct ddps_sctp_param p = { .port = RAW_PORT, .streams = 10, .fixed_mtu = 1500 };
	struct ddps_sctp_addr peer = { .family = 6, .ip = { 0x20, 0x02, [15] = 1 } };
	struct ddps_sc_chunk c;
	struct ddps_sc_init init;
	unsigned n = 0;

	p.nlocal = sizeof row / sizeof *row;
	for (unsigned i = 0; i < p.nlocal; i++) {
		p.local[i] = (struct ddps_sctp_addr){ .family = 6, .ip = { [15] = 7 } };
		memcpy(p.local[i].ip, row[i].ip, 2);
	}
	raw_init(&r);
	cr_assert_eq(ddps_sctp_connect(r.e, &p, &peer, 1, RAW_PEER, 9899, &raw_upcalls, &r,
				       r.net.now, &r.a),
		     0);
	r.n = 0;
	sn_flush(&r.net);
	cr_assert_eq(raw_got(&r, 0, 0, &c), SC_INIT);
	cr_assert_eq(ddps_sc_decode_init(&init, &c), 0);
	for (unsigned i = 0; i < p.nlocal; i++) {
		if (!row[i].told)
			continue;
		cr_assert_lt(n, init.naddr);
		cr_expect_arr_eq(init.addr[n++].ip, row[i].ip, 2, "%u", i);
	}
	cr_expect_eq(n, init.naddr);
}
