/* SPDX-License-Identifier: BSD-2-Clause */
/* SCTP's State Cookies: where one is good, how long, how often; answers to heartbeats that are none. */
#include "sctp_raw_fixture.h"

static struct raw r;

static void fini(void)
{
	raw_fini(&r);
}

static int get_sctp_cookie_cause(const struct ddps_sc_chunk *c)
{
	return c->vlen >= 4 ? c->val[0] << 8 | c->val[1] : 0;
}

/* A peer that has our INIT ACK; @params are those of its INIT. */
static void get_asked_sctp_cookie(const void *params, size_t len)
{
	raw_init(&r);
	raw_begin(&r, 0);
	raw_put_init(&r, RAW_TAG, 100000, 10, 10, RAW_TSN, params, len);
	raw_send(&r);
	r.own = RAW_TAG;
	cr_assert(raw_take_init_ack(&r));
}

/* What is in r.w, on that way. */
static void hand_by(unsigned link, struct ddps_sctp_addr local, uint16_t via)
{
	const size_t len = (size_t)(r.w.p - r.buf);
	struct ddps_sctp_in in = { .data = r.buf,
				   .len = len,
				   .from = { .peer = r.net.node[1].addr[link],
					     .local = local,
					     .encap = r.net.node[1].udp,
					     .via = via } };

	ddps_sc_crc_put(r.buf, len);
	r.n = 0;
	ddps_sctp_input(r.e, &in, 1, r.net.now);
	sn_flush(&r.net);
}

/* The cookie to @port, on that way. */
static void echo_to(uint16_t port, unsigned link, struct ddps_sctp_addr local, uint16_t via)
{
	r.w = ddps_wbuf_init(r.buf, sizeof r.buf);
	ddps_sc_put_header(&r.w, RAW_PEER, port, r.tag);
	ddps_sc_put_chunk(&r.w, SC_COOKIE_ECHO, 0, r.cookie, r.cookie_len);
	hand_by(link, local, via);
}

static void echo_by(unsigned link, struct ddps_sctp_addr local, uint16_t via)
{
	echo_to(RAW_PORT, link, local, via);
}

Test(sctp_setup, cookies_that_are_wrong_are_not_answered, .fini = fini,
     .description = "9260-4-1 9260-5.1.5-2 9260-5.1.5-3")
{
	uint8_t cookie[512];

	raw_init(&r);
	raw_init_chunk(&r, RAW_TAG, RAW_TSN);
	cr_assert(raw_take_init_ack(&r));
	memcpy(cookie, r.cookie, r.cookie_len);
	for (size_t i = 0; i < r.cookie_len; i++) {
		r.cookie[i] ^= 1;
		raw_echo(&r);
		cr_expect_eq(r.n, 0);
		r.cookie[i] ^= 1;
	}
	raw_chunk(&r, r.tag + 1, SC_COOKIE_ECHO, 0, cookie, r.cookie_len);
	cr_expect_eq(r.n, 0);
	raw_begin(&r, r.tag); /* from another SCTP port */
	ddps_sc_put_chunk(&r.w, SC_COOKIE_ECHO, 0, cookie, r.cookie_len);
	r.buf[1] ^= 1;
	raw_send(&r);
	cr_expect_eq(r.n, 0);
	raw_begin(&r, r.tag); /* from another address */
	ddps_sc_put_chunk(&r.w, SC_COOKIE_ECHO, 0, cookie, r.cookie_len);
	ddps_sc_crc_put(r.buf, (size_t)(r.w.p - r.buf));
	r.n = 0;
	sn_inject(&r.net, 0, 1, r.buf, (size_t)(r.w.p - r.buf));
	sn_flush(&r.net);
	cr_expect_eq(r.n, 0);
	cr_expect_eq(r.accepted, 0);
	raw_echo(&r);
	cr_expect_eq(r.accepted, 1);
}

Test(sctp_setup, a_stale_cookie_is_named, .fini = fini,
     .description = "9260-4-2 9260-5.1.5-5 9260-5.2.4-d1 etsi-imh-3-6")
{
	struct ddps_sc_chunk c;

	raw_init(&r);
	raw_init_chunk(&r, RAW_TAG, RAW_TSN);
	cr_assert(raw_take_init_ack(&r));
	raw_wait(&r, 60001);
	raw_echo(&r);
	cr_assert_eq(raw_got(&r, 0, 0, &c), SC_ERROR);
	cr_expect_eq(get_sctp_cookie_cause(&c), SC_CAUSE_STALE);
	cr_expect_eq(raw_got_tag(&r, 0), RAW_TAG);
	cr_expect_eq(r.accepted, 0);
	raw_fini(&r);

	raw_up(&r); /* but with both tags right it is good for ever */
	raw_wait(&r, 61000);
	raw_echo(&r);
	cr_expect(raw_any(&r, SC_COOKIE_ACK, NULL));
}

Test(sctp_setup, a_cookie_is_good_for_one_association, .fini = fini, .description = "9260-5.3.1-3")
{
	raw_up(&r);
	raw_chunk(&r, r.tag, SC_ABORT, 0, NULL, 0);
	cr_expect_eq(r.gone, 1);
	raw_echo(&r);
	cr_expect_eq(r.accepted, 1);
	cr_expect_eq(r.n, 0);
}

Test(sctp_setup, bounds_are_kept, .fini = fini,
     .description = "9260-5.1-15 9260-5.1-16 9260-5.1-17 etsi-as-1-15")
{
	struct ddps_sc_chunk c;

	raw_init(&r);
	raw_init_chunk(&r, RAW_TAG, RAW_TSN);
	cr_assert(raw_take_init_ack(&r));
	r.e->c.max_assocs_per_addr = 0;
	raw_echo(&r);
	cr_assert_eq(raw_got(&r, 0, 0, &c), SC_ABORT);
	cr_expect_eq(get_sctp_cookie_cause(&c), SC_CAUSE_RESOURCE);
	cr_expect_eq(raw_got_tag(&r, 0), RAW_TAG);
	r.e->c.max_assocs = 0;
	raw_init_chunk(&r, RAW_TAG, RAW_TSN);
	cr_assert_eq(raw_got(&r, 0, 0, &c), SC_ABORT);
	cr_expect_eq(get_sctp_cookie_cause(&c), SC_CAUSE_RESOURCE);
}

/* The user's socket and our address are a part of what the cookie was made for. */
Test(sctp_setup, a_cookie_is_good_where_it_was_made, .fini = fini, .description = "9260-5.1.5-2")
{
	get_asked_sctp_cookie(NULL, 0);
	echo_by(0, r.net.node[0].addr[0], 1);
	cr_expect(!r.n && !r.accepted && r.e->st.cookies_bad == 1);
	echo_by(0, r.net.node[0].addr[1], 0);
	cr_expect(!r.n && !r.accepted && r.e->st.cookies_bad == 2);
	echo_by(0, r.net.node[0].addr[0], 0);
	cr_expect(r.accepted == 1 && r.e->st.cookies_bad == 2);
}

/* Whoever has a cookie of one port gets no association with another one by it. */
Test(sctp_setup, a_cookie_to_another_port, .fini = fini, .description = "9260-5.1.5-2")
{
	struct ddps_sctp_param other;
	struct ddps_sctp_port *port;

	get_asked_sctp_cookie(NULL, 0);
	other = r.port->param;
	other.port++;
	cr_assert_eq(ddps_sctp_listen(r.e, &other, r.port->accept, r.port->user, &port), 0);
	echo_to(RAW_PORT + 1, 0, r.net.node[0].addr[0], 0);
	cr_expect(!r.n && !r.accepted && r.e->st.cookies_bad == 1);
	echo_by(0, r.net.node[0].addr[0], 0);
	cr_expect_eq(r.accepted, 1);
}

/* Where a socket does not tell which address of ours a packet came to, none can be wrong. */
Test(sctp_setup, a_cookie_to_an_address_that_nobody_has_given, .fini = fini)
{
	const struct ddps_sctp_addr untold = { .family = 0 };

	get_asked_sctp_cookie(NULL, 0);
	echo_by(0, untold, 0);
	cr_expect_eq(r.accepted, 1);
}

/* A port of several addresses takes it at each of them, and at no other. */
Test(sctp_setup, a_cookie_to_another_address_of_the_port, .fini = fini)
{
	get_asked_sctp_cookie(NULL, 0);
	r.port->param.nlocal = 2;
	r.port->param.local[0] = r.net.node[0].addr[0];
	r.port->param.local[1] = r.net.node[1].addr[1];
	echo_by(0, r.net.node[0].addr[1], 0);
	cr_expect(!r.accepted && r.e->st.cookies_bad == 1);
	r.port->param.local[1] = r.net.node[0].addr[1];
	echo_by(0, r.net.node[0].addr[1], 0);
	cr_expect_eq(r.accepted, 1);
}

Test(sctp_setup, a_cookie_to_the_first_address_of_the_port, .fini = fini)
{
	get_asked_sctp_cookie(NULL, 0);
	r.port->param.nlocal = 2;
	r.port->param.local[0] = r.net.node[0].addr[1];
	r.port->param.local[1] = r.net.node[0].addr[0];
	echo_by(0, r.net.node[0].addr[1], 0);
	cr_expect_eq(r.accepted, 1);
}

/* From an address of the INIT's list; not from one that is in none. */
Test(sctp_setup, a_cookie_from_another_address_of_the_peer, .fini = fini)
{
	uint8_t list[8] = { 0, SC_P_IPV4, 0, 8, 10, 9, 9, 9 };
	const struct ddps_sctp_addr *second = &r.net.node[1].addr[1];

	get_asked_sctp_cookie(list, sizeof list);
	echo_by(1, r.net.node[0].addr[0], 0);
	cr_expect(!r.accepted && r.e->st.cookies_bad == 1);
	cr_assert_eq(second->family, 4);
	memcpy(list + 4, second->ip, 4);
	raw_fini(&r);
	get_asked_sctp_cookie(list, sizeof list);
	echo_by(1, r.net.node[0].addr[0], 0);
	cr_expect_eq(r.accepted, 1);
}

/* INIT with @tag from address @link; the cookie is kept. */
static void ask_by(unsigned link, uint32_t tag, const void *params, size_t len)
{
	raw_begin(&r, 0);
	raw_put_init(&r, tag, 100000, 10, 10, RAW_TSN, params, len);
	hand_by(link, r.net.node[0].addr[0], 0);
	r.own = tag;
	cr_assert(raw_take_init_ack(&r));
}

/* Both open, and the peer names an address where another one is: what comes from there is about the
 * other one's association, whose cookie it is not. */
Test(sctp_setup, a_cookie_from_where_another_peer_is, .fini = fini,
     .description = "9260-5.1.5-5 9260-5.2.4-d1")
{
	uint8_t list[8] = { 0, SC_P_IPV4, 0, 8 };
	const struct ddps_sctp_addr *local;
	struct ddps_sc_chunk c;

	raw_init(&r);
	local = &r.net.node[0].addr[0];
	memcpy(list + 4, r.net.node[1].addr[1].ip, 4);
	ask_by(1, RAW_TAG + 1, NULL, 0);
	echo_by(1, *local, 0);
	cr_assert_eq(r.accepted, 1);

	raw_connect(&r);
	ask_by(0, RAW_TAG, list, sizeof list);
	echo_by(0, *local, 0);
	cr_assert_str_eq(raw_state(&r), "ESTABLISHED");
	cr_expect_eq(r.a->npaths, 1);

	raw_wait(&r, 60001);
	echo_by(0, *local, 0);
	cr_expect(raw_any(&r, SC_COOKIE_ACK, &c), "it is its own");
	echo_by(1, *local, 0);
	cr_assert(raw_any(&r, SC_ERROR, &c));
	cr_expect_eq(get_sctp_cookie_cause(&c), SC_CAUSE_STALE);
}

/* There was room for one more when it asked, and then another one came. */
Test(sctp_setup, room_is_looked_for_when_the_cookie_comes, .fini = fini,
     .description = "9260-5.1-15 9260-5.1-17")
{
	struct ddps_sc_chunk c;

	get_asked_sctp_cookie(NULL, 0);
	r.e->c.max_assocs = 0;
	raw_echo(&r);
	cr_assert_eq(raw_got(&r, 0, 0, &c), SC_ABORT);
	cr_expect_eq(get_sctp_cookie_cause(&c), SC_CAUSE_RESOURCE);
	cr_expect(!r.accepted && r.e->st.refused_full == 1 && !r.e->st.assocs);
	r.e->c.max_assocs = 1;
	raw_echo(&r);
	cr_expect_eq(r.accepted, 1);
}

/* Both opened; the peer then asks once more with another TSN, and echoes both cookies. */
Test(sctp_setup, a_second_cookie_with_another_tsn_does_nothing, .fini = fini)
{
	uint8_t first[512];
	size_t len;

	raw_init(&r);
	raw_connect(&r);
	raw_init_chunk(&r, RAW_TAG, RAW_TSN);
	cr_assert(raw_take_init_ack(&r));
	memcpy(first, r.cookie, len = r.cookie_len);
	raw_init_chunk(&r, RAW_TAG, RAW_TSN + 1000);
	cr_assert(raw_take_init_ack(&r));
	raw_chunk(&r, r.tag, SC_COOKIE_ECHO, 0, first, len);
	cr_expect_str_eq(raw_state(&r), "ESTABLISHED");
	raw_echo(&r);
	cr_expect_eq(r.n, 0);
	raw_data(&r, RAW_TSN, 0, 0, 3, "here");
	cr_expect_eq(r.messages, 1);
	cr_expect_eq(r.ups, 1);
}

/* An ERROR of another kind is not about the cookie. */
Test(sctp_setup, an_error_that_names_no_stale_cookie, .fini = fini, .description = "9260-5.2.6-1")
{
	static const uint8_t other[] = { 0, SC_CAUSE_CHUNK, 0, 8, 0xfe, 0, 0, 4 };
	static const uint8_t stale[] = { 0, SC_CAUSE_STALE, 0, 8, 0, 0, 0, 1 };

	raw_init(&r);
	raw_connect(&r);
	raw_answer_init(&r);
	cr_assert_str_eq(raw_state(&r), "COOKIE-ECHOED");
	raw_chunk(&r, r.tag, SC_ERROR, 0, other, sizeof other);
	cr_expect_str_eq(raw_state(&r), "COOKIE-ECHOED");
	cr_expect_eq(r.e->st.cookies_stale, 0);
	raw_chunk(&r, r.tag, SC_ERROR, 0, stale, sizeof stale);
	cr_expect_str_eq(raw_state(&r), "COOKIE-WAIT");
	cr_expect_eq(r.e->st.cookies_stale, 1);
}

/* The peer begins anew while its session here is let go: nobody is there to be informed. */
Test(sctp_setup, a_restart_of_one_that_its_user_has_left, .fini = fini)
{
	raw_up(&r);
	cr_expect_eq(raw_user_send(&r, 4, 0, "mine"), 0);
	ddps_sctp_assoc_free(r.a, r.net.now);
	r.a = NULL;
	raw_init_chunk(&r, 0x99999999, 77777);
	if (raw_take_init_ack(&r))
		raw_echo(&r);
	cr_expect(r.restarted == 0 && r.gone == 0 && r.messages == 0);
	raw_wait(&r, 200000);
	cr_expect_eq(r.e->st.assocs, 0);
}

/* Two packets in one reading: what the old association would have got is not the new one's. */
Test(sctp_setup, a_restart_right_behind_a_shutdown, .fini = fini, .description = "9260-5.2.4-4")
{
	uint32_t cum;
	uint8_t last[32];
	struct ddps_sctp_in in[2] = { { .data = last }, { .data = r.buf } };

	raw_up(&r);
	cum = htobe32(r.tsn - 1);
	ddps_sc_put_chunk(raw_begin(&r, r.tag), SC_SHUTDOWN, 0, &cum, sizeof cum);
	in[0].len = (size_t)(r.w.p - r.buf);
	ddps_sc_crc_put(r.buf, in[0].len);
	memcpy(last, r.buf, in[0].len);
	raw_init_chunk(&r, 0x99999999, 77777);
	cr_assert(raw_take_init_ack(&r));
	ddps_sc_put_chunk(raw_begin(&r, r.tag), SC_COOKIE_ECHO, 0, r.cookie, r.cookie_len);
	in[1].len = (size_t)(r.w.p - r.buf);
	ddps_sc_crc_put(r.buf, in[1].len);
	in[0].from.peer = in[1].from.peer = r.net.node[1].addr[0];
	in[0].from.local = in[1].from.local = r.net.node[0].addr[0];
	in[0].from.encap = in[1].from.encap = r.net.node[1].udp;
	ddps_sctp_input(r.e, in, 2, r.net.now);
	sn_flush(&r.net);
	cr_expect_eq(r.restarted, 1);
	cr_expect_eq(r.shutdowns, 0);
	cr_expect_str_eq(raw_state(&r), "ESTABLISHED");
}

/* Right to the tag, and wrong in form: neither confirms a path nor says that it lives. */
Test(sctp_setup, answers_to_heartbeats_that_are_none, .fini = fini, .description = "9260-5.4-d2")
{
	uint8_t right[64], wrong[64];
	struct ddps_sc_chunk c;
	size_t n;

	raw_up(&r);
	raw_wait(&r, 29000);
	for (unsigned i = 0; i < 40 && !r.n; i++)
		raw_wait(&r, 100);
	cr_assert(raw_any(&r, SC_HEARTBEAT, &c));
	memcpy(right, c.val, n = c.vlen);
	memcpy(wrong, right, n);
	wrong[1]++; /* another parameter */
	raw_chunk(&r, r.tag, SC_HEARTBEAT_ACK, 0, wrong, n);
	cr_expect(r.a->path[0]->hb_out);
	memcpy(wrong, right, n);
	wrong[3]--; /* a shorter one */
	raw_chunk(&r, r.tag, SC_HEARTBEAT_ACK, 0, wrong, n);
	cr_expect(r.a->path[0]->hb_out);
	memcpy(wrong, right, n);
	memset(wrong + 4, 0, 8); /* the nonce of none */
	raw_chunk(&r, r.tag, SC_HEARTBEAT_ACK, 0, wrong, n);
	cr_expect(r.a->path[0]->hb_out);
	raw_chunk(&r, r.tag, SC_HEARTBEAT_ACK, 0, right, n);
	cr_expect_not(r.a->path[0]->hb_out);
}
