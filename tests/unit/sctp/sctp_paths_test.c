/* SPDX-License-Identifier: BSD-2-Clause */
/* Several addresses of the peer, packet by packet: which one is used, and what makes it another. */
#include "sctp_paths_fixture.h"

Test(sctp_paths, without_a_list_the_source_is_all, .fini = fini,
     .description = "9260-5.1.2-1 9260-3.3.2.1-4 9260-3.3.3-14 9260-5.1.2-3")
{
	raw_up(&r);
	cr_expect_eq(r.a->npaths, 1);
	cr_expect(is_same_paths_address(&r.a->path[0]->peer, get_first_address()));
	raw_fini(&r);
	raw_init(&r);
	raw_connect(&r);
	raw_answer_init(&r);
	cr_expect_eq(r.a->npaths, 1);
	cr_expect(is_same_paths_address(&r.a->path[0]->peer, get_first_address()));
}

Test(sctp_paths, listed_ones_are_probed_first, .fini = fini,
     .description = "9260-5.1.2-2 9260-5.1.2-4 9260-5.4-2 9260-5.4-3 9260-3.3.5-1 9260-3.3.5-2 "
		    "9260-3.3.5-3 etsi-as-1-11-1")
{
	struct ddps_sc_chunk c;
	uint8_t info[64];

	invite();
	raw_echo(&r);
	watch_second_path();
	cr_assert_eq(r.a->npaths, 2);
	if (!sent_to(get_second_address(), SC_HEARTBEAT, NULL))
		raw_wait(&r, 10);
	cr_assert(sent_to(get_second_address(), SC_HEARTBEAT, &c));
	cr_assert_eq(c.vlen, 36);
	cr_expect(!memcmp(c.val + 4 + 16, get_second_address()->ip, 16),
		  "the address that it tests");
	memcpy(info, c.val, 36);
	raw_user_send(&r, 0, 0, "not there");
	cr_expect_eq(sent_to(get_second_address(), SC_DATA, NULL), 0);
	cr_expect_eq(sent_to(get_first_address(), SC_DATA, NULL), 1);
	raw_wait(&r, 3000); /* asked again, by another nonce and time */
	cr_assert(sent_to(get_second_address(), SC_HEARTBEAT, &c));
	cr_expect(memcmp(c.val + 4, info + 4, 8) && memcmp(c.val + 12, info + 12, 8));
	cr_expect_eq(sent_to(get_second_address(), SC_DATA, NULL), 0);
	info[4] ^= 1;
	raw_begin(&r, r.tag); /* a guess does not confirm it */
	ddps_sc_put_chunk(&r.w, SC_HEARTBEAT_ACK, 0, info, 36);
	send_second();
	cr_expect_eq(r.a->path[1]->state, DDPS_SCTP_UNCONFIRMED);
	raw_begin(&r, r.tag); /* but what comes from there is the association's */
	raw_put_data(&r, RAW_TSN, 0, 0, 7, "hello");
	send_second();
	cr_expect_eq(r.messages, 1);
}

/* Cookies go where an address is confirmed, so that none needs a probe next to it. */
Test(sctp_paths, cookies_avoid_the_unconfirmed, .fini = fini,
     .description = "9260-5.4-4 9260-5.4-5 9260-5.4-6 9260-5.4-2")
{
	uint8_t params[64];
	struct ddps_wbuf w = ddps_wbuf_init(params, sizeof params);

	invite();
	raw_begin(&r, r.tag);
	ddps_sc_put_chunk(&r.w, SC_COOKIE_ECHO, 0, r.cookie, r.cookie_len);
	send_second();
	cr_expect_eq(r.accepted, 1);
	cr_expect_eq(sent_to(get_first_address(), SC_COOKIE_ACK, NULL), 1);
	cr_expect_eq(sent_to(get_second_address(), SC_COOKIE_ACK, NULL), 0);
	raw_fini(&r);

	raw_init(&r);
	raw_connect(&r);
	{
		struct ddps_sc_chunk c;
		struct ddps_sc_init i;

		raw_got(&r, 0, 0, &c);
		ddps_sc_decode_init(&i, &c);
		r.tag = i.tag;
	}
	ddps_sc_put_tlv(&w, SC_P_COOKIE, "cook", 4);
	ddps_sc_put_addr(&w, get_first_address());
	raw_begin(&r, r.tag);
	raw_put_init(&r, RAW_TAG, 100000, 5, 5, RAW_TSN, params, (size_t)(w.p - params));
	r.buf[12] = SC_INIT_ACK;
	send_second(); /* it names the address that the INIT went to */
	cr_expect_eq(sent_to(get_first_address(), SC_COOKIE_ECHO, NULL), 1);
	cr_expect_eq(sent_to(get_second_address(), SC_COOKIE_ECHO, NULL), 0);
}

/* A listed address that never answers: its path is given up, not the peer. */
Test(sctp_paths, silence_of_another_address_costs_that_alone, .fini = fini,
     .description = "9260-5.4-d1 9260-8.1-2 9260-8.2-2 9260-8.3-4 9260-5.4-1")
{
	unsigned n = 0, errors;

	invite();
	raw_echo(&r);
	watch_second_path();
	for (unsigned i = 0; i < 3000 && r.a->path[1]->state != DDPS_SCTP_INACTIVE; i++) {
		struct ddps_sc_chunk c;

		raw_wait(&r, 100);
		cr_assert_leq(sent_to(get_second_address(), SC_HEARTBEAT, NULL),
			      1); /* one in an RTO */
		if (sent_to(get_first_address(), SC_HEARTBEAT, &c))
			answer_sctp_paths_heartbeat(&c, false);
	}
	cr_assert_eq(r.a->path[1]->state, DDPS_SCTP_INACTIVE);
	cr_expect(told == DDPS_SCTP_INACTIVE && second_told == 1);
	cr_expect_eq(r.a->errors, 0);
	errors = r.a->path[1]->errors;
	for (unsigned i = 0; i < 2000; i++) { /* still asked now and then, no longer counted */
		struct ddps_sc_chunk c;

		raw_wait(&r, 100);
		n += sent_to(get_second_address(), SC_HEARTBEAT, NULL);
		if (sent_to(get_first_address(), SC_HEARTBEAT, &c))
			answer_sctp_paths_heartbeat(&c, false);
	}
	cr_expect_gt(n, 0);
	cr_expect_eq(r.a->path[1]->errors, errors);
	cr_expect_str_eq(raw_state(&r), "ESTABLISHED");
}

/* A SHUTDOWN that is not answered goes round the addresses that work, and to no other. */
Test(sctp_paths, the_end_goes_round_what_works, .fini = fini, .description = "9260-5.1-14")
{
	unsigned n[2] = { 0 };

	open_both_paths();
	for (unsigned i = 0; i < 3000 && r.a->path[1]->state != DDPS_SCTP_INACTIVE; i++) {
		struct ddps_sc_chunk c;

		raw_wait(&r, 100);
		if (sent_to(get_first_address(), SC_HEARTBEAT, &c))
			answer_sctp_paths_heartbeat(&c, false);
	}
	cr_assert_eq(r.a->path[1]->state, DDPS_SCTP_INACTIVE);
	ddps_sctp_shutdown(r.a, r.net.now);
	for (unsigned i = 0; i < 100 && !r.gone; i++) {
		raw_wait(&r, 100);
		n[0] += sent_to(get_first_address(), SC_SHUTDOWN, NULL);
		n[1] += sent_to(get_second_address(), SC_SHUTDOWN, NULL);
	}
	cr_expect_geq(n[0], 2);
	cr_expect_eq(n[1], 0);
}

/* The primary path is silent: the other one takes over what was sent and what comes. */
Test(sctp_paths, the_other_one_takes_over, .fini = fini,
     .description = "9260-6.4-1 9260-6.4-4 9260-6.4-d1 9260-6.4.1-1 9260-8.2-4 9260-8.2-d1 "
		    "9260-6.3.3-1 7829-3-3 7829-3-4 7829-3-1 etsi-rt-11-3")
{
	uint64_t flight;
	unsigned n;

	open_both_paths();
	raw_user_send(&r, 0, 0, "one");
	cr_expect_eq(sent_to(get_first_address(), SC_DATA, NULL), 1);
	cr_expect_eq(sent_to(get_second_address(), SC_DATA, NULL), 0);
	flight = r.a->path[0]->tx.flight;
	cr_expect_gt(flight, 0);
	for (n = 0; n < 100; n++) {
		raw_wait(&r, 100);
		if (sent_to(get_second_address(), SC_DATA, NULL))
			break;
	}
	cr_assert_lt(n, 50);
	cr_expect_eq(r.a->path[0]->state, DDPS_SCTP_DOUBTFUL);
	cr_expect_eq(first_told, 1);
	cr_expect_eq(r.a->path[0]->tx.flight, 0);
	cr_expect_eq(r.a->path[1]->tx.flight, flight);
	cr_expect_eq(r.a->path[1]->state, DDPS_SCTP_ACTIVE);
	raw_sack(&r, r.tsn, 100000);
	raw_user_send(&r, 0, 0, "two");
	cr_expect_eq(sent_to(get_second_address(), SC_DATA, NULL), 1);
	cr_expect_eq(r.gone, 0);
	for (n = 0; n < 100 && !sent_to(get_first_address(), SC_HEARTBEAT, NULL); n++)
		raw_wait(&r, 100);
	cr_expect_lt(n, 100); /* it is asked each RTO */
}

/* What heals it is an answer to what went there. */
Test(sctp_paths, an_answer_heals, .fini = fini, .description = "7829-3-2 9260-8.2-3 9260-8.3-6")
{
	struct ddps_sc_chunk c;
	unsigned n;

	open_both_paths();
	raw_user_send(&r, 0, 0, "one");
	for (n = 0; n < 100 && r.a->path[0]->state == DDPS_SCTP_ACTIVE; n++)
		raw_wait(&r, 100);
	cr_assert_eq(r.a->path[0]->state, DDPS_SCTP_DOUBTFUL);
	raw_wait(&r, 100);
	raw_sack(&r, r.tsn, 100000); /* sent on both: it may be the other's */
	cr_expect_eq(r.a->path[0]->state, DDPS_SCTP_DOUBTFUL);
	for (n = 0; n < 100; n++) {
		raw_wait(&r, 100);
		if (sent_to(get_first_address(), SC_HEARTBEAT, &c))
			break;
	}
	cr_assert_lt(n, 100);
	answer_sctp_paths_heartbeat(&c, false);
	cr_expect_eq(r.a->path[0]->state, DDPS_SCTP_ACTIVE);
	cr_expect_eq(r.a->path[0]->errors, 0);
	cr_expect_eq(first_told, 2);
}

/* Neither works: it goes on with one, until the peer is given up. */
Test(sctp_paths, with_no_path_left_one_is_used, .fini = fini, .description = "7829-4.1-1")
{
	unsigned n = 0;

	open_both_paths();
	raw_user_send(&r, 0, 0, "one");
	for (unsigned i = 0; i < 3000 && !r.gone; i++) {
		raw_wait(&r, 100);
		n += sent_to(get_first_address(), SC_DATA, NULL) +
		     sent_to(get_second_address(), SC_DATA, NULL);
	}
	cr_expect_eq(r.gone, 1);
	cr_expect_geq(n, 8);
	cr_expect_eq(r.why.code, DDPS_E_RESET);
}

/* Answers go where the question came from; SACKs with the latest DATA. */
Test(sctp_paths, answers_take_the_way_back, .fini = fini,
     .description = "9260-6.4-2 9260-6.4-3 9260-6.7-6 9260-3.3.6-d1")
{
	open_both_paths();
	raw_begin(&r, r.tag);
	ddps_sc_put_chunk(&r.w, SC_HEARTBEAT, 0, "\0\1\0\10abcd", 8);
	send_second();
	cr_expect_eq(sent_to(get_second_address(), SC_HEARTBEAT_ACK, NULL), 1);
	raw_chunk(&r, r.tag, SC_HEARTBEAT, 0, "\0\1\0\10abcd", 8);
	cr_expect_eq(sent_to(get_first_address(), SC_HEARTBEAT_ACK, NULL), 1);
	raw_begin(&r, r.tag);
	raw_put_data(&r, RAW_TSN, 0, 0, 7, "x");
	send_second();
	if (!sent_to(get_second_address(), SC_SACK, NULL))
		raw_wait(&r, 300);
	cr_expect_eq(sent_to(get_second_address(), SC_SACK, NULL), 1);
	cr_expect_eq(sent_to(get_first_address(), SC_SACK, NULL), 0);
	raw_data(&r, RAW_TSN + 3, 0, 0, 7, "x");
	raw_wait(&r, 300);
	raw_data(&r, RAW_TSN + 4, 0, 0, 7, "x");
	cr_expect_eq(sent_to(get_first_address(), SC_SACK, NULL), 1);
}

/* ... of SHUTDOWN, too: DATA that comes begins T2 anew, and no timeout would look for another path. */
Test(sctp_paths, shutdown_takes_the_way_back, .fini = fini, .description = "9260-6.4-2")
{
	open_both_paths();
	ddps_sctp_shutdown(r.a, r.net.now);
	sn_flush(&r.net);
	raw_begin(&r, r.tag);
	raw_put_data(&r, RAW_TSN, 0, 0, 7, "x");
	send_second();
	cr_expect_eq(sent_to(get_second_address(), SC_SHUTDOWN, NULL), 1);
	cr_expect_eq(sent_to(get_second_address(), SC_SACK, NULL), 1);
	cr_expect_eq(sent_to(get_first_address(), SC_SHUTDOWN, NULL), 0);
}

/* What SACKs show as lost goes where it went before. */
Test(sctp_paths, fast_resends_stay, .fini = fini, .description = "9260-6.4-5 9260-7.2.4-5")
{
	uint8_t v[16] = { 0 };
	unsigned n = 0;

	open_both_paths();
	for (unsigned i = 0; i < 5; i++)
		cr_assert_eq(raw_user_send(&r, 0, 0, "x"), 0);
	raw_wait(&r, 20);
	v[3] = (uint8_t)(r.tsn - 1);
	v[2] = (uint8_t)((r.tsn - 1) >> 8);
	v[1] = (uint8_t)((r.tsn - 1) >> 16);
	v[0] = (uint8_t)((r.tsn - 1) >> 24);
	v[6] = 0x80; /* window */
	v[9] = 1;
	v[13] = 2;
	for (uint8_t last = 2; last <= 5; last++) {
		v[15] = last;
		raw_chunk(&r, r.tag, SC_SACK, 0, v, sizeof v);
		n += sent_to(get_first_address(), SC_DATA, NULL);
		cr_expect_eq(sent_to(get_second_address(), SC_DATA, NULL), 0);
	}
	raw_wait(&r, 100);
	n += sent_to(get_first_address(), SC_DATA, NULL);
	cr_expect_geq(n, 1);
}

/* INITs go round the addresses that the user gave. */
Test(sctp_paths, set_up_goes_round, .fini = fini, .description = "9260-5.1-14")
{
	struct ddps_sctp_param p = { .port = RAW_PORT, .streams = 10, .fixed_mtu = 1500 };
	unsigned n[2] = { 0 };

	raw_init(&r);
	cr_assert_eq(ddps_sctp_connect(r.e, &p, r.net.node[1].addr, 2, RAW_PEER, 9899, &raw_upcalls,
				       &r, r.net.now, &r.a),
		     0);
	for (unsigned i = 0; i < 80; i++) {
		raw_wait(&r, 100);
		n[0] += sent_to(get_first_address(), SC_INIT, NULL);
		n[1] += sent_to(get_second_address(), SC_INIT, NULL);
	}
	cr_expect_geq(n[0], 1);
	cr_expect_geq(n[1], 1);
}

/* Fragments fit each path in use; each has its MTU. */
Test(sctp_paths, the_smallest_path_rules, .fini = fini,
     .description = "9260-6-8 9260-6.9-4 9260-7.3-2 9260-7.3-3 9260-6.10-2")
{
	size_t large;

	open_both_paths();
	large = ddps_sctp_max_chunk(r.a);
	ddps_pmtu_fix(&r.a->path[1]->tx.pmtu, 1000);
	ddps_sent_mtu_changed(&r.a->tx, &r.a->path[1]->tx, DDPS_PMTU_SIZE);
	cr_expect_leq(ddps_sctp_max_chunk(r.a), 1000 - 20 - 8 - 12 - 16);
	cr_expect_gt(ddps_sent_smss(&r.a->path[0]->tx), large);
	cr_expect_lt(ddps_sent_smss(&r.a->path[1]->tx), large);
}

/* Whoever wants no heartbeats gets none, for a path that fails neither. */
Test(sctp_paths, no_probes_without_heartbeats, .fini = fini, .description = "7829-3-5")
{
	open_both_paths();
	r.e->c.hb_interval_ms = 0;
	raw_wait(&r, 31000); /* what was planned before */
	raw_user_send(&r, 0, 0, "one");
	for (unsigned n = 0; n < 100; n++) {
		raw_wait(&r, 100);
		cr_assert_eq(sent_to(get_first_address(), SC_HEARTBEAT, NULL), 0, "%u", n);
	}
	cr_expect_neq(r.a->path[0]->state, DDPS_SCTP_ACTIVE);
}

/* Where there is another path, a port that is not reached is a failure of this one alone. */
Test(sctp_paths, unreachable_counts_against_the_path, .fini = fini, .description = "9260-10-8")
{
	struct ddps_sctp_route to = { .peer = *get_first_address(), .encap = 9899 };
	uint8_t quote[40];

	open_both_paths();
	to.peer = *get_first_address();
	raw_user_send(&r, 0, 0, "quoted");
	memcpy(quote, r.log[0].data, sizeof quote);
	ddps_sctp_icmp(r.e, &to, DDPS_SCTP_ICMP_UNREACH_PORT, 0, quote, 40, r.net.now);
	cr_expect_eq(r.a->path[0]->errors, 1);
	cr_expect_eq(r.a->path[1]->errors, 0);
	cr_expect_eq(r.a->errors, 0);
	raw_wait(&r, 1);
	cr_expect_eq(r.gone, 0);
}
