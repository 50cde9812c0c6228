/* SPDX-License-Identifier: BSD-2-Clause */
/* How an SCTP association begins, begins anew, and is given up: all that is to be seen of it. */
#include "sctp_paths_fixture.h"
#include "sctp/send/tx_in.h"

TestSuite(sctp_meets, .fini = fini);

static struct ddps_sctp_info get_sctp_meets_info(void)
{
	struct ddps_sctp_info i;

	ddps_sctp_info(r.a, &i);
	return i;
}

static struct ddps_sctp_path_info path_info(unsigned k)
{
	struct ddps_sctp_path_info i;

	cr_assert_eq(ddps_sctp_path_info(r.a, k, &i), 0);
	return i;
}

/* A packet that begins with it. */
static void put_cookie(void)
{
	raw_begin(&r, r.tag);
	ddps_sc_put_chunk(&r.w, SC_COOKIE_ECHO, 0, r.cookie, r.cookie_len);
}

static void cookie_ack(void)
{
	raw_chunk(&r, r.tag, SC_COOKIE_ACK, 0, NULL, 0);
}

/* T1 or T2: the next time. */
static void wait_timer(void)
{
	unsigned n = r.a->ctl_n;

	r.n = 0;
	while (r.a && r.a->ctl_n == n)
		cr_assert(sn_step(&r.net, UINT64_MAX));
}

static void bring_meets_icmp(const struct ddps_sctp_addr *to)
{
	const struct ddps_sctp_route way = { .peer = *to, .encap = r.net.node[1].udp };
	uint8_t quote[8];
	struct ddps_wbuf w = ddps_wbuf_init(quote, sizeof quote);

	ddps_wbuf_u16(&w, RAW_PORT);
	ddps_wbuf_u16(&w, RAW_PEER);
	ddps_wbuf_u32(&w, r.a->peer_tag);
	ddps_sctp_icmp(r.e, &way, DDPS_SCTP_ICMP_UNREACH_PROTO, 0, quote, sizeof quote, r.net.now);
}

static void connect_sctp_meets_to(const struct ddps_sctp_addr *peer, unsigned n, uint32_t fixed_mtu)
{
	static struct ddps_sctp_up up;
	struct ddps_sctp_param p = { .port = RAW_PORT, .streams = 10, .fixed_mtu = fixed_mtu };

	up = raw_upcalls;
	up.path = note_second_path;
	first_told = second_told = 0;
	raw_init(&r);
	cr_assert_eq(ddps_sctp_connect(r.e, &p, peer, n, RAW_PEER, 9899, &up, &r, r.net.now, &r.a),
		     0);
	sn_flush(&r.net);
}

/* ---- set-up ---- */

Test(sctp_meets, the_set_up_measures_the_way, .description = "9260-6.3.1-1")
{
	raw_init(&r);
	raw_connect(&r);
	sn_run(&r.net, 50 * MS);
	raw_answer_init(&r);
	cr_expect_eq(path_info(0).srtt_ns, 50 * MS);
	sn_run(&r.net, 90 * MS);
	cookie_ack();
	cr_expect_eq(path_info(0).srtt_ns, 55 * MS);
}

/* Which of them was answered? */
Test(sctp_meets, what_was_repeated_measures_nothing, .description = "9260-6.3.1-3")
{
	raw_init(&r);
	raw_connect(&r);
	wait_timer();
	raw_answer_init(&r);
	cr_expect_eq(path_info(0).srtt_ns, 0);
	wait_timer();
	cr_assert(raw_any(&r, SC_COOKIE_ECHO, NULL));
	cookie_ack();
	cr_expect_eq(r.ups, 1);
	cr_expect_eq(path_info(0).srtt_ns, 0);
}

Test(sctp_meets, an_error_that_is_no_stale_cookie_is_counted)
{
	static const uint8_t shutting[4] = { 0, SC_CAUSE_SHUTTING, 0, 4 };

	raw_init(&r);
	raw_connect(&r);
	raw_answer_init(&r);
	raw_chunk(&r, r.tag, SC_ERROR, 0, shutting, sizeof shutting);
	cr_expect_eq(r.e->st.errors_in, 1);
	cr_expect_str_eq(raw_state(&r), "COOKIE-ECHOED");
}

/* T1 has fired, and before COOKIE ECHO leaves once more it is answered. */
Test(sctp_meets, an_answer_in_the_last_instant)
{
	raw_init(&r);
	raw_connect(&r);
	raw_answer_init(&r);
	r.net.now = r.a->ctl_at;
	ddps_sctp_tick(r.e, r.net.now);
	cookie_ack();
	cr_expect_eq(r.ups, 1);
	cr_expect_not(raw_any(&r, SC_COOKIE_ECHO, NULL));
}

Test(sctp_meets, t1_waits_no_longer_than_rto_max, .description = "9260-6.3.1-6")
{
	raw_init(&r);
	r.e->c.rto_max_ms = 1500;
	raw_connect(&r);
	for (unsigned i = 0; i < 6; i++) {
		wait_timer();
		cr_expect_leq(r.a->ctl_at - r.net.now, 1500 * MS / 16 * 17);
		cr_expect_geq(r.a->ctl_at - r.net.now, 1500 * MS);
	}
}

/* INIT, and COOKIE ECHO, go to each that the user gave in turn. */
Test(sctp_meets, each_address_is_tried, .description = "9260-5.1-14")
{
	const struct ddps_sctp_addr peer[3] = { sn_v4(10, 0, 0, 2), sn_v4(10, 0, 1, 2),
						sn_v4(10, 9, 9, 9) };

	connect_sctp_meets_to(peer, 3, 1500);
	for (unsigned i = 1; i < 7; i++) {
		wait_timer();
		cr_assert_eq(r.n, 1);
		cr_expect(ddps_sc_addr_eq(&r.log[0].to.peer, &peer[i % 3]), "%u", i);
	}
}

Test(sctp_meets, whoever_connected_is_informed_of_paths)
{
	connect_sctp_meets_to(r.net.node[1].addr, 2, 1500);
	raw_answer_init(&r);
	cookie_ack();
	cr_assert_eq(r.ups, 1);
	bring_meets_icmp(get_second_address());
	cr_expect_eq(second_told, 1);
	cr_expect_eq(told, DDPS_SCTP_DOUBTFUL);
	cr_expect_eq(first_told, 0);
}

/* ---- DATA with COOKIE ECHO ---- */

Test(sctp_meets, what_left_early_is_under_way, .description = "9260-5.1-7")
{
	uint64_t srtt;

	raw_init(&r);
	r.early = "hello";
	r.nearly = 2;
	raw_connect(&r);
	sn_run(&r.net, 50 * MS);
	raw_answer_init(&r);
	sn_run(&r.net, 50 * MS);
	cookie_ack();
	srtt = path_info(0).srtt_ns;
	cr_expect_eq(srtt, 50 * MS);
	for (uint32_t i = 0; i < 2; i++) /* IP and UDP, and the chunks */
		cr_expect_eq(ddps_sent_slot(&r.a->tx, r.tsn + i)->packet,
			     20 + 8 + 12 + 2 * (16 + 8));
	raw_wait(&r, 30);
	raw_sack(&r, r.tsn + 1, 100000);
	cr_expect_eq(r.acked, 2);
	cr_expect_eq(path_info(0).srtt_ns, srtt, "when it left is not known");
}

/* ---- the peer begins anew ---- */

Test(sctp_meets, a_peer_that_begins_anew_finds_nothing_of_before,
     .description = "9260-5.2.4-4 9260-5.2.4-5 9260-5.3.1-3")
{
	static uint8_t text[60000], first_cookie[512];
	const struct iovec iov = { text, sizeof text };
	size_t len;
	uint32_t tag;

	raw_up(&r);
	tag = r.tag;
	len = r.cookie_len;
	memcpy(first_cookie, r.cookie, len);
	cr_assert_eq(ddps_sctp_send(r.a, 0, 17, 0, &iov, 1, r.net.now), 0);
	sn_flush(&r.net);
	cr_expect(get_sctp_meets_info().unsent && get_sctp_meets_info().unsent < sizeof text);
	cr_expect_eq(get_sctp_meets_info().unsent + get_sctp_meets_info().unacked, sizeof text);
	raw_init_chunk(&r, RAW_TAG + 1, 77777);
	cr_assert(raw_take_init_ack(&r));
	raw_begin(&r, tag);
	ddps_sc_put_chunk(&r.w, SC_HEARTBEAT, 0, "\0\1\0\4", 4);
	raw_hand(&r);
	put_cookie();
	raw_hand(&r);
	r.n = 0;
	sn_flush(&r.net);
	cr_expect_eq(r.restarted, 1);
	cr_expect_eq(raw_got(&r, 0, 0, NULL), SC_COOKIE_ACK);
	cr_expect_not(raw_any(&r, SC_HEARTBEAT_ACK, NULL), "of the one before");
	cr_expect_eq(get_sctp_meets_info().unsent, 0);
	cr_expect_eq(get_sctp_meets_info().unacked, 0);
	cr_expect_eq(get_sctp_meets_info().restarts, 1);
	cr_expect_eq(r.e->st.restarts, 1);
	raw_chunk(&r, r.tag, SC_ABORT, 0, NULL, 0);
	cr_expect_eq(r.gone, 1);
	raw_chunk(&r, tag, SC_COOKIE_ECHO, 0, first_cookie, len);
	cr_expect_eq(r.accepted, 1, "that cookie was used");
	cr_expect_eq(r.n, 0);
}

/* What follows goes where it came from. */
Test(sctp_meets, it_begins_anew_at_its_other_address)
{
	uint8_t params[32];
	struct ddps_wbuf w = ddps_wbuf_init(params, sizeof params);

	open_both_paths();
	ddps_sc_put_addr(&w, get_first_address());
	raw_begin(&r, 0);
	raw_put_init(&r, RAW_TAG + 1, 100000, 5, 5, RAW_TSN, params, (size_t)(w.p - params));
	send_second();
	cr_assert(raw_take_init_ack(&r));
	put_cookie();
	send_second();
	cr_expect_eq(r.restarted, 1);
	cr_expect_eq(sent_to(get_second_address(), SC_COOKIE_ACK, NULL), 1);
	cr_expect_eq(sent_to(get_first_address(), SC_COOKIE_ACK, NULL), 0);
	cr_expect(path_info(1).primary);
}

/* The cookie of a new one, while the old one waits for SHUTDOWN COMPLETE: the packet is not its. */
Test(sctp_meets, not_while_it_is_shut_down, .description = "9260-5.2.4-6")
{
	uint32_t cum = 0, tag;
	struct ddps_sc_chunk c;

	raw_up(&r);
	tag = r.tag;
	cum = htobe32(r.tsn - 1);
	raw_init_chunk(&r, RAW_TAG + 1, 77777);
	cr_assert(raw_take_init_ack(&r));
	raw_chunk(&r, tag, SC_SHUTDOWN, 0, &cum, sizeof cum);
	cr_assert_str_eq(raw_state(&r), "SHUTDOWN-ACK-SENT");
	put_cookie();
	ddps_sc_put_chunk(&r.w, SC_SHUTDOWN_ACK, 0, NULL, 0);
	raw_send(&r);
	cr_expect_str_eq(raw_state(&r), "SHUTDOWN-ACK-SENT");
	cr_expect_eq(r.gone, 0);
	cr_expect(raw_any(&r, SC_SHUTDOWN_ACK, NULL));
	cr_assert(raw_any(&r, SC_ERROR, &c));
	cr_expect_eq(c.val[1], SC_CAUSE_SHUTTING);
}

/* ---- both open ---- */

Test(sctp_meets, a_cookie_of_another_comes_too_late, .description = "9260-5.2.4-9")
{
	raw_init(&r);
	raw_connect(&r);
	raw_answer_init(&r);
	raw_init_chunk(&r, RAW_TAG + 1, RAW_TSN);
	cr_assert(raw_take_init_ack(&r));
	cookie_ack();
	raw_data(&r, RAW_TSN, 0, 0, 3, "one");
	cr_assert_eq(r.messages, 1);
	put_cookie();
	raw_put_data(&r, RAW_TSN + 1, 0, 1, 3, "two");
	raw_send(&r);
	cr_expect_eq(r.messages, 1);
	cr_expect_eq(r.n, 0);
}

/* Nothing was sent or received yet: the paths begin anew with it, and the primary one is used. */
Test(sctp_meets, a_cookie_of_another_comes_in_time, .description = "9260-5.2.4-8")
{
	unsigned state[2];

	connect_sctp_meets_to(r.net.node[1].addr, 2, 0);
	raw_answer_init(&r);
	raw_init_chunk(&r, RAW_TAG + 1, RAW_TSN);
	cr_assert(raw_take_init_ack(&r));
	cookie_ack();
	cr_assert_eq(r.ups, 1);
	for (unsigned i = 0; i < 2; i++)
		state[i] = r.a->path[i]->tx.pmtu.state;
	bring_meets_icmp(get_second_address());
	cr_expect_eq(path_info(1).state, DDPS_SCTP_DOUBTFUL);
	cr_expect_eq(ddps_sctp_set_primary(r.a, get_second_address(), r.net.now), 0);
	cr_expect(path_info(0).in_use);
	put_cookie();
	raw_send(&r);
	cr_expect(raw_any(&r, SC_COOKIE_ACK, NULL));
	cr_expect_eq(get_sctp_meets_info().peer_tag, RAW_TAG + 1);
	for (unsigned i = 0; i < 2; i++) {
		cr_expect_eq(path_info(i).state, DDPS_SCTP_ACTIVE, "%u", i);
		cr_expect_eq(r.a->path[i]->tx.pmtu.state, state[i], "%u", i);
	}
	cr_expect(path_info(1).in_use);
}

/* Two INITs of one peer: whichever cookie comes second is of no association [9260-5.2.4-3]. */
Test(sctp_meets, the_second_of_two_cookies)
{
	static uint8_t first_cookie[512];
	size_t len;
	uint32_t tag;

	raw_init(&r);
	raw_init_chunk(&r, RAW_TAG, RAW_TSN);
	cr_assert(raw_take_init_ack(&r));
	tag = r.tag;
	len = r.cookie_len;
	memcpy(first_cookie, r.cookie, len);
	raw_init_chunk(&r, RAW_TAG, RAW_TSN);
	cr_assert(raw_take_init_ack(&r));
	raw_chunk(&r, tag, SC_COOKIE_ECHO, 0, first_cookie, len);
	cr_assert_eq(r.accepted, 1);
	put_cookie();
	raw_put_data(&r, RAW_TSN, 0, 0, 3, "not of it");
	raw_send(&r);
	cr_expect_eq(r.messages, 0);
	cr_expect_eq(r.n, 0);
	cr_expect_eq(r.accepted, 1);
}

/* The address that it comes from is new; the one that INIT came from is known. */
Test(sctp_meets, a_cookie_is_of_whom_its_init_came_from, .description = "9260-5.1.2-4")
{
	uint8_t params[32];
	struct ddps_wbuf w = ddps_wbuf_init(params, sizeof params);

	raw_init(&r);
	raw_connect(&r);
	ddps_sc_put_addr(&w, get_second_address());
	raw_begin(&r, 0);
	raw_put_init(&r, RAW_TAG, 100000, 5, 5, RAW_TSN, params, (size_t)(w.p - params));
	raw_send(&r);
	cr_assert(raw_take_init_ack(&r));
	put_cookie();
	send_second();
	cr_expect_eq(r.accepted, 0);
	cr_expect_eq(r.ups, 1);
	cr_expect_eq(get_sctp_meets_info().npaths, 2);
	cr_expect_eq(r.e->st.assocs, 1);
}

/* Of those that INIT lists any one is enough. */
Test(sctp_meets, a_cookie_is_of_whom_it_lists, .description = "9260-5.1.2-4")
{
	const struct ddps_sctp_addr other = sn_v4(10, 9, 9, 9);
	uint8_t params[32];

	for (unsigned before = 0; before < 2; before++) {
		struct ddps_wbuf w = ddps_wbuf_init(params, sizeof params);

		raw_init(&r);
		if (before)
			ddps_sc_put_addr(&w, &other);
		ddps_sc_put_addr(&w, get_first_address());
		raw_begin(&r, 0);
		raw_put_init(&r, RAW_TAG, 100000, 5, 5, RAW_TSN, params, (size_t)(w.p - params));
		send_second();
		cr_assert(raw_take_init_ack(&r));
		raw_connect(&r); /* to the first, meanwhile */
		put_cookie();
		send_second();
		cr_expect_eq(r.accepted, 0, "%u", before);
		cr_expect_eq(r.e->st.assocs, 1);
		cr_expect_str_eq(raw_state(&r), "COOKIE-WAIT");
		raw_fini(&r);
	}
	raw_init(&r);
}

/* ---- the end ---- */

/* SHUTDOWN goes where an answer may come from. */
Test(sctp_meets, t2_goes_to_a_path_that_works, .description = "9260-9.2-2")
{
	const struct ddps_sctp_addr peer[3] = { sn_v4(10, 0, 0, 2), sn_v4(10, 0, 1, 2),
						sn_v4(10, 9, 9, 9) };

	open_both_paths();
	ddps_sctp_shutdown(r.a, r.net.now);
	sn_flush(&r.net);
	wait_timer();
	cr_expect_eq(sent_to(get_second_address(), SC_SHUTDOWN, NULL), 1);
	raw_fini(&r);

	connect_sctp_meets_to(peer, 3, 1500);
	raw_answer_init(&r);
	cookie_ack();
	r.a->path[1]->state = DDPS_SCTP_INACTIVE;
	ddps_sctp_shutdown(r.a, r.net.now);
	sn_flush(&r.net);
	wait_timer();
	cr_expect_eq(sent_to(&peer[2], SC_SHUTDOWN, NULL), 1);
}

/* Its own chunks come, but no answer to SHUTDOWN. */
Test(sctp_meets, a_shutdown_that_nobody_answers, .description = "9260-9.2-4")
{
	struct ddps_sc_chunk c;

	raw_up(&r);
	r.e->c.assoc_max_retrans = 3;
	ddps_sctp_shutdown(r.a, r.net.now);
	sn_flush(&r.net);
	for (unsigned i = 0; i < 4; i++) {
		cr_assert_eq(r.gone, 0, "%u", i);
		r.a->errors = 0;
		wait_timer();
	}
	cr_expect_eq(r.gone, 1);
	cr_expect_eq(r.why.code, DDPS_E_TIMEDOUT);
	cr_assert(raw_any(&r, SC_ABORT, &c));
	cr_expect_eq(c.vlen, 0, "the peer did nothing wrong");
}

/* ---- what there is to see, and to choose ---- */

Test(sctp_meets, all_paths_are_counted)
{
	open_both_paths();
	for (unsigned i = 0; i < 2; i++) {
		r.a->path[i]->tx.resent = 1 + 2 * i;
		r.a->path[i]->tx.t3s = 5 + i;
	}
	cr_expect_eq(get_sctp_meets_info().retransmitted, 4);
	cr_expect_eq(get_sctp_meets_info().timeouts, 11);
}

/* One that had failed and answers again is used once it has proved itself, or the user says so. */
Test(sctp_meets, the_user_chooses_a_path_that_had_failed)
{
	struct ddps_sc_chunk c;

	open_both_paths();
	bring_meets_icmp(get_first_address());
	cr_expect(path_info(1).in_use);
	raw_wait(&r, 1);
	cr_assert(sent_to(get_first_address(), SC_HEARTBEAT, &c));
	answer_sctp_paths_heartbeat(&c, false);
	cr_expect_eq(path_info(0).state, DDPS_SCTP_ACTIVE);
	cr_expect(path_info(1).in_use);
	cr_expect_eq(ddps_sctp_set_primary(r.a, get_first_address(), r.net.now), 0);
	cr_expect(path_info(0).in_use);
}

/* ---- DATA ---- */

Test(sctp_meets, a_message_is_acknowledged_when_all_of_it_is)
{
	static uint8_t text[3000];
	const struct iovec iov = { text, sizeof text };

	raw_up(&r);
	cr_assert_eq(ddps_sctp_send(r.a, 0, 17, 0, &iov, 1, r.net.now), 0);
	cr_expect_eq(get_sctp_meets_info().unsent, 3000);
	cr_expect_eq(get_sctp_meets_info().unacked, 0);
	sn_flush(&r.net);
	cr_assert_eq(r.a->tx.next, r.tsn + 3);
	cr_expect_eq(get_sctp_meets_info().unsent, 0);
	cr_expect_eq(get_sctp_meets_info().unacked, 3000);
	for (uint32_t i = 0; i < 3; i++) {
		raw_sack(&r, r.tsn + i, 100000);
		cr_expect_eq(r.acked, i == 2, "%u", i);
	}
	cr_expect_eq(get_sctp_meets_info().unacked, 0);
}
