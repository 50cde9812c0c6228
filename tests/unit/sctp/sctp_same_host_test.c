/* SPDX-License-Identifier: BSD-2-Clause */
/* Two programs of a host that have the same SCTP port, and UDP ports of their own. */
#include <stdlib.h>
#include "sctp_raw_fixture.h"

#define SAME_HOST_TAG 0x77777777
#define SAME_HOST_UDP 5555

static struct raw r;

static void fini(void)
{
	raw_fini(&r);
}

TestSuite(sctp_same_host, .fini = fini);

/* The packet that came back refuses the set-up with @tag. */
static void expect_sctp_same_host_refusal(uint32_t tag, uint16_t has)
{
	const uint8_t ports[] = { (uint8_t)(has >> 8), (uint8_t)has, SAME_HOST_UDP >> 8,
				  SAME_HOST_UDP & 0xff };
	struct ddps_sc_chunk c;

	cr_assert_eq(raw_got(&r, 0, 0, &c), SC_ABORT);
	cr_expect_eq(raw_got_tag(&r, 0), tag);
	cr_expect(c.vlen == 8 && !memcmp(c.val, "\0\16\0\10", 4) && !memcmp(c.val + 4, ports, 4));
}

static uint16_t set_udp(uint16_t udp)
{
	uint16_t was = r.net.node[1].udp;

	r.net.node[1].udp = udp;
	return was;
}

Test(sctp_same_host, a_set_up_leaves_the_association_of_another_alone)
{
	uint16_t udp;

	raw_up(&r);
	udp = set_udp(SAME_HOST_UDP);
	raw_init_chunk(&r, SAME_HOST_TAG, 77777);
	expect_sctp_same_host_refusal(SAME_HOST_TAG, udp);
	cr_expect_eq(r.e->st.restarts_refused, 1);
	set_udp(udp);
	raw_data(&r, RAW_TSN, 0, 0, 3, "mine");
	cr_expect_eq(r.messages, 1);
	cr_expect_eq(r.restarted, 0);
	cr_expect_eq(r.gone, 0);
}

/* Both have their State Cookies before either has its association. */
Test(sctp_same_host, the_second_of_two_cookies_is_refused)
{
	uint8_t first[sizeof r.cookie];
	size_t len;
	uint32_t tag;
	uint16_t udp;

	raw_init(&r);
	raw_init_chunk(&r, RAW_TAG, RAW_TSN);
	cr_assert(raw_take_init_ack(&r));
	tag = r.tag;
	len = r.cookie_len;
	memcpy(first, r.cookie, len);
	udp = set_udp(SAME_HOST_UDP);
	raw_init_chunk(&r, SAME_HOST_TAG, 77777);
	cr_assert(raw_take_init_ack(&r));
	set_udp(udp);
	raw_chunk(&r, tag, SC_COOKIE_ECHO, 0, first, len);
	cr_assert_eq(raw_got(&r, 0, 0, NULL), SC_COOKIE_ACK);
	set_udp(SAME_HOST_UDP);
	raw_echo(&r);
	expect_sctp_same_host_refusal(SAME_HOST_TAG, udp);
	cr_expect_eq(r.accepted, 1);
	cr_expect_eq(r.gone, 0);
}

/* What has no UDP port is one program of its host. */
Test(sctp_same_host, a_restart_from_elsewhere_than_udp_is_one)
{
	raw_up(&r);
	set_udp(0);
	raw_init_chunk(&r, SAME_HOST_TAG, 77777);
	cr_expect_eq(raw_got(&r, 0, 0, NULL), SC_INIT_ACK);
}

/* The old program answers every second time that it is asked. */
static void answer_sctp_same_host_heartbeat(uint16_t udp, unsigned *asked)
{
	struct ddps_sc_chunk c;
	uint8_t info[64];
	size_t n;

	if (!raw_any(&r, SC_HEARTBEAT, &c) || (*asked)++ % 2 == 0)
		return;
	n = c.vlen;
	cr_assert_leq(n, sizeof info);
	memcpy(info, c.val, n);
	set_udp(udp);
	raw_chunk(&r, r.tag, SC_HEARTBEAT_ACK, 0, info, n);
}

/* The same program, begun anew from another UDP port: the old one is asked, and when it has been silent for as
 * long as a path may be, the new one has the association. */
Test(sctp_same_host, contact_10_a_restart_from_another_port_when_the_old_one_is_silent,
     .description = "9260-5.2.4-4")
{
	unsigned refused = 0, asked = 0;
	uint64_t begin;

	raw_up(&r);
	begin = r.net.now;
	set_udp(SAME_HOST_UDP);
	for (;;) {
		raw_init_chunk(&r, SAME_HOST_TAG, 77777);
		if (raw_take_init_ack(&r))
			break;
		cr_assert_lt(refused++, 100, "never");
		asked += raw_any(&r, SC_HEARTBEAT, NULL);
		raw_wait(&r, 2000);
		asked += raw_any(&r, SC_HEARTBEAT, NULL);
		cr_assert_eq(r.gone, 0);
	}
	cr_expect_gt(asked, r.e->c.path_max_retrans, "%u", asked);
	cr_expect_lt(r.net.now - begin, 120ull * 1000 * MS);
	raw_echo(&r);
	cr_assert_eq(raw_got(&r, 0, 0, NULL), SC_COOKIE_ACK);
	cr_expect_eq(r.restarted, 1);
	cr_expect_eq(r.gone, 0);
	cr_expect_eq(r.a->path[0]->encap, SAME_HOST_UDP);
	cr_expect_eq(r.a->path[0]->state, DDPS_SCTP_ACTIVE);
	raw_data(&r, 77777, 0, 0, 3, "new");
	cr_expect_eq(r.messages, 1);
}

/* However often somebody else asks for it, and though half of what it is asked is lost. */
Test(sctp_same_host, contact_10_whoever_answers_keeps_its_association)
{
	uint16_t udp;
	unsigned asked = 0;

	raw_up(&r);
	udp = set_udp(SAME_HOST_UDP);
	for (unsigned i = 0; i < 1000; i++) {
		set_udp(SAME_HOST_UDP);
		raw_init_chunk(&r, SAME_HOST_TAG, 77777);
		cr_assert_eq(raw_got(&r, 0, 0, NULL), SC_ABORT, "%u", i);
		answer_sctp_same_host_heartbeat(udp, &asked);
		raw_wait(&r, 500);
		answer_sctp_same_host_heartbeat(udp, &asked);
	}
	cr_expect_gt(asked, 20);
	set_udp(udp);
	cr_expect_eq(r.restarted, 0);
	cr_expect_eq(r.gone, 0);
	raw_data(&r, RAW_TSN, 0, 0, 3, "mine");
	cr_expect_eq(r.messages, 1);
}

/* Opens from any port if @port is 0. */
static void open_in_sctp_same_host(uint16_t port, uint16_t encap)
{
	struct ddps_sctp_param p = { .port = port, .streams = 10 };

	raw_init(&r);
	r.n = 0;
	cr_assert_eq(ddps_sctp_connect(r.e, &p, &r.net.node[1].addr[0], 1, RAW_PEER, encap,
				       &sn_deaf, &r, r.net.now, &r.a),
		     0);
	sn_flush(&r.net);
	cr_assert_eq(raw_got(&r, 0, 0, NULL), SC_INIT);
}

static void expect_sctp_same_host_refused(void)
{
	static const uint8_t cause[] = { 0, SC_CAUSE_ENCAP, 0, 8, 1, 2, 3, 4 };

	r.w = ddps_wbuf_init(r.buf, sizeof r.buf);
	ddps_sc_put_header(&r.w, RAW_PEER, r.a->port, r.a->own_tag);
	ddps_sc_put_chunk(&r.w, SC_ABORT, 0, cause, sizeof cause);
	raw_send(&r);
}

Test(sctp_same_host, another_port_is_tried)
{
	uint16_t port;

	open_in_sctp_same_host(0, 9899);
	for (unsigned i = 0; i < r.e->c.init_max_retrans; i++) {
		port = r.a->port;
		expect_sctp_same_host_refused();
		cr_assert_not(r.a->dead);
		cr_assert_neq(r.a->port, port);
		cr_expect_gt(abs(r.a->port - port), 60, "the next one may be the other's, too");
		cr_assert_eq(raw_got(&r, 0, 0, NULL), SC_INIT);
		cr_expect_eq(ddps_sc_find(r.e, 0, r.a->port, RAW_PEER, &r.net.node[1].addr[0])->a,
			     r.a);
		cr_expect_null(ddps_sc_find(r.e, 0, port, RAW_PEER, &r.net.node[1].addr[0]));
	}
	expect_sctp_same_host_refused();
	cr_expect(r.a->dead, "who refuses all is not asked for ever");
}

Test(sctp_same_host, not_in_the_place_of_one_that_was_chosen)
{
	open_in_sctp_same_host(RAW_PORT, 9899);
	expect_sctp_same_host_refused();
	cr_expect(r.a->dead);
}

Test(sctp_same_host, not_without_udp)
{
	open_in_sctp_same_host(0, 0);
	set_udp(0);
	expect_sctp_same_host_refused();
	cr_expect(r.a->dead);
}

/* ---- the program that made a cookie has ended, and the one in its place does not know it ---- */

static bool has_left(uint8_t type, struct ddps_sc_chunk *c, unsigned *packet)
{
	for (*packet = 0; *packet < r.n; ++*packet) {
		if (raw_got(&r, *packet, 0, c) == type)
			return true;
	}
	return false;
}

static void answer_same_host_init(void)
{
	static const uint8_t cookie[] = { 0, SC_P_COOKIE, 0, 8, 'c', 'o', 'o', 'k' };
	struct ddps_sc_chunk c;
	unsigned i;

	cr_assert(has_left(SC_INIT, &c, &i));
	r.w = ddps_wbuf_init(r.buf, sizeof r.buf);
	ddps_sc_put_header(&r.w, RAW_PEER, r.a->port, r.a->own_tag);
	raw_put_init(&r, RAW_TAG, 100000, 5, 5, RAW_TSN, cookie, sizeof cookie);
	r.buf[12] = SC_INIT_ACK;
	raw_send(&r);
	cr_assert(has_left(SC_COOKIE_ECHO, &c, &i));
}

/* Until it begins anew or is over; how many cookies were sent meanwhile. */
static unsigned wait_for_echoes(void)
{
	const uint16_t port = r.a->port;
	struct ddps_sc_chunk c;
	unsigned n = 0, i;

	for (unsigned k = 0; k < 6000 && !r.a->dead && r.a->port == port; k++) {
		raw_wait(&r, 100);
		n += has_left(SC_COOKIE_ECHO, &c, &i);
	}
	return n;
}

Test(sctp_same_host, contact_10_a_cookie_that_nobody_knows, .description = "9260-4-4")
{
	struct ddps_sc_chunk c;
	uint64_t begun;
	uint16_t port;
	unsigned i;

	open_in_sctp_same_host(0, 9899);
	answer_same_host_init();
	port = r.a->port;
	begun = r.net.now;
	cr_expect_eq(wait_for_echoes(), 2, "repeated, twice");
	cr_assert_not(r.a->dead);
	cr_expect_lt(r.net.now - begun, 8000000000ull, "a program waits ten seconds");
	cr_assert(has_left(SC_ABORT, &c, &i), "if somebody has taken the cookie after all");
	cr_expect_eq(raw_got_tag(&r, i), RAW_TAG);
	cr_expect_eq(r.log[i].data[0] << 8 | r.log[i].data[1], port);
	answer_same_host_init();
	r.w = ddps_wbuf_init(r.buf, sizeof r.buf);
	ddps_sc_put_header(&r.w, RAW_PEER, r.a->port, r.a->own_tag);
	ddps_sc_put_chunk(&r.w, SC_COOKIE_ACK, 0, NULL, 0);
	raw_send(&r);
	cr_expect_str_eq(raw_state(&r), "ESTABLISHED");
}

Test(sctp_same_host, contact_10_no_cookie_is_known_ever, .description = "9260-4-4")
{
	open_in_sctp_same_host(0, 9899);
	answer_same_host_init();
	(void)wait_for_echoes();
	answer_same_host_init();
	cr_expect_eq(wait_for_echoes(), r.e->c.init_max_retrans, "begun anew once");
	cr_expect(r.a->dead);
}

/* All of its COOKIE ACKs are lost, and nothing else: to begin anew would abort what it has accepted. */
Test(sctp_same_host, contact_10_who_sends_data_knows_the_cookie, .description = "9260-5.1-9")
{
	struct ddps_sc_chunk c;
	unsigned i, echoes = 0, aborts = 0;
	uint16_t port;

	open_in_sctp_same_host(0, 9899);
	answer_same_host_init();
	port = r.a->port;
	for (unsigned k = 0; k < 300 && echoes < 4; k++) {
		raw_wait(&r, 100);
		echoes += has_left(SC_COOKIE_ECHO, &c, &i);
		aborts += has_left(SC_ABORT, &c, &i);
		r.w = ddps_wbuf_init(r.buf, sizeof r.buf);
		ddps_sc_put_header(&r.w, RAW_PEER, r.a->port, r.a->own_tag);
		raw_put_data(&r, RAW_TSN, 0, 0, 7, "data");
		raw_send(&r);
	}
	cr_expect_eq(echoes, 4);
	cr_expect_eq(aborts, 0);
	cr_expect_eq(r.a->port, port);
	r.w = ddps_wbuf_init(r.buf, sizeof r.buf);
	ddps_sc_put_header(&r.w, RAW_PEER, r.a->port, r.a->own_tag);
	ddps_sc_put_chunk(&r.w, SC_COOKIE_ACK, 0, NULL, 0);
	raw_send(&r);
	cr_expect_str_eq(raw_state(&r), "ESTABLISHED");
}

/* What was waited for the first one's answers says nothing of the second one. */
Test(sctp_same_host, contact_07_a_new_set_up_waits_as_the_first_one)
{
	struct ddps_sc_chunk c;
	unsigned i;

	open_in_sctp_same_host(0, 9899);
	answer_same_host_init();
	(void)wait_for_echoes();
	cr_assert(has_left(SC_INIT, &c, &i));
	raw_wait(&r, 1600); /* an RTO, its jitter, and what passed before this is looked at */
	cr_expect(has_left(SC_INIT, &c, &i), "the second INIT");
	cr_expect_leq(r.a->ctl_n, r.e->c.init_max_retrans);
}

Test(sctp_same_host, contact_10_a_port_that_was_chosen_is_kept)
{
	open_in_sctp_same_host(RAW_PORT, 9899);
	answer_same_host_init();
	cr_expect_eq(wait_for_echoes(), r.e->c.init_max_retrans);
	cr_expect(r.a->dead);
}
