/* SPDX-License-Identifier: BSD-2-Clause */
/* Addresses of a peer of which one host or the other says, by ICMP, that nobody takes SCTP there. */
#include "sctp_paths_fixture.h"
#include <time.h>

TestSuite(sctp_nobody, .fini = fini);

static unsigned refused[2]; /* informed of the first address, of the second */

static void on_refused(void *user, const struct ddps_sctp_addr *peer)
{
	(void)user;
	refused[is_same_paths_address(peer, get_second_address())]++;
}

/* What the backend has: the end, when nobody is there. */
static const struct ddps_sctp_up *strict(void)
{
	static struct ddps_sctp_up up;

	up = raw_upcalls;
	up.path = note_second_path;
	up.refused = on_refused;
	memset(refused, 0, sizeof refused);
	r.e->c.icmp_grace = 0;
	return &up;
}

static void bring_icmp_nobody(const struct ddps_sctp_addr *to)
{
	struct ddps_sctp_route way = { .peer = *to, .encap = r.net.node[1].udp };
	uint8_t quote[20];
	struct ddps_wbuf w = ddps_wbuf_init(quote, sizeof quote);
	bool init = !strcmp(raw_state(&r), "COOKIE-WAIT");

	ddps_wbuf_u16(&w, RAW_PORT);
	ddps_wbuf_u16(&w, RAW_PEER);
	ddps_wbuf_u32(&w, init ? 0 : r.own);
	ddps_wbuf_u32(&w, 0);
	ddps_wbuf_u32(&w, (uint32_t)SC_INIT << 24 | 20);
	ddps_wbuf_u32(&w, r.a->own_tag);
	r.n = 0;
	ddps_sctp_icmp(r.e, &way, DDPS_SCTP_ICMP_UNREACH_PORT, 0, quote, sizeof quote, r.net.now);
	sn_flush(&r.net);
}

static void bring_both_sctp_nobody_up(void)
{
	open_both_paths();
	ddps_sctp_assoc_set_up(r.a, strict(), &r);
}

static void expect_up(void)
{
	raw_wait(&r, 1);
	cr_assert_eq(r.gone, 0);
	cr_expect_str_eq(raw_state(&r), "ESTABLISHED");
}

/* ---- an association that is up ---- */

Test(sctp_nobody, contact_07_an_address_that_is_only_claimed, .description = "9260-10-8")
{
	struct ddps_sc_chunk c;

	invite();
	raw_echo(&r);
	ddps_sctp_assoc_set_up(r.a, strict(), &r);
	if (!sent_to(get_second_address(), SC_HEARTBEAT, NULL))
		raw_wait(&r, 1000);
	cr_assert(sent_to(get_second_address(), SC_HEARTBEAT, NULL));
	bring_icmp_nobody(get_second_address());
	expect_up();
	cr_expect_eq(r.a->path[1]->state, DDPS_SCTP_INACTIVE, "it is not asked each RTO");
	cr_expect_eq(refused[1], 1);
	bring_icmp_nobody(get_second_address());
	cr_expect_eq(refused[1], 1, "once");
	for (unsigned n = 0; n < 130 && !sent_to(get_second_address(), SC_HEARTBEAT, &c); n++)
		raw_wait(&r, 1000);
	cr_assert(sent_to(get_second_address(), SC_HEARTBEAT, &c), "but once an interval");
	answer_sctp_paths_heartbeat(&c, true);
	cr_expect_eq(r.a->path[1]->state, DDPS_SCTP_ACTIVE, "somebody may come");
}

Test(sctp_nobody, contact_07_the_last_confirmed_address_ends_it)
{
	invite();
	raw_echo(&r);
	ddps_sctp_assoc_set_up(r.a, strict(), &r);
	bring_icmp_nobody(get_first_address());
	raw_wait(&r, 1);
	cr_expect_eq(r.gone, 1, "what is only claimed does not count");
	cr_expect_eq(r.why.code, DDPS_E_RESET);
	cr_expect(strstr(r.why.text, "10.0.0.2"), "%s", r.why.text);
}

Test(sctp_nobody, contact_07_a_spare_address, .description = "9260-10-8")
{
	struct ddps_sc_chunk c;

	bring_both_sctp_nobody_up();
	bring_icmp_nobody(get_second_address());
	expect_up();
	cr_expect_eq(r.a->path[1]->state, DDPS_SCTP_INACTIVE);
	cr_expect_eq(r.a->path[0]->state, DDPS_SCTP_ACTIVE);
	cr_expect(refused[1] == 1 && !refused[0]);
	bring_icmp_nobody(get_second_address());
	expect_up();
	r.n = 0;
	cr_expect_eq(r.a->errors, 0);
	cr_assert_eq(raw_user_send(&r, 0, 0, "x"), 0);
	cr_expect_eq(sent_to(get_first_address(), SC_DATA, &c), 1);
}

/* Where data goes: it leaves by the other one immediately, and whether that one is there is asked. */
Test(sctp_nobody, contact_07_the_address_of_data, .description = "9260-10-8 9260-6.4.1-1")
{
	bring_both_sctp_nobody_up();
	cr_assert_eq(raw_user_send(&r, 0, 0, "x"), 0);
	cr_assert_eq(sent_to(get_first_address(), SC_DATA, NULL), 1);
	bring_icmp_nobody(get_first_address());
	cr_expect_eq(sent_to(get_second_address(), SC_DATA, NULL), 1);
	raw_wait(&r, 1);
	cr_assert_eq(r.gone, 0);
	bring_icmp_nobody(get_second_address());
	raw_wait(&r, 1);
	cr_expect_eq(r.gone, 1);
	cr_expect_eq(r.why.code, DDPS_E_RESET);
	cr_expect(strstr(r.why.text, "10.0.1.2"), "the address: %s", r.why.text);
}

Test(sctp_nobody, contact_07_a_dead_peer_is_missed_without_data)
{
	bring_both_sctp_nobody_up();
	bring_icmp_nobody(get_second_address());
	raw_wait(&r, 1);
	bring_icmp_nobody(get_first_address()); /* about the heartbeat that has just left */
	raw_wait(&r, 1);
	cr_expect_eq(r.gone, 1);
}

Test(sctp_nobody, contact_07_the_others_are_asked_immediately)
{
	bring_both_sctp_nobody_up();
	bring_icmp_nobody(get_second_address());
	if (!sent_to(get_first_address(), SC_HEARTBEAT, NULL))
		raw_wait(&r, 1);
	cr_expect(sent_to(get_first_address(), SC_HEARTBEAT, NULL));
}

/* One that has failed silently is none to go on with. */
Test(sctp_nobody, contact_07_an_address_that_failed_before)
{
	bring_both_sctp_nobody_up();
	for (unsigned i = 0; i <= r.e->c.path_max_retrans; i++)
		ddps_sc_path_error(r.a->path[1]);
	cr_assert_eq(r.a->path[1]->state, DDPS_SCTP_INACTIVE);
	bring_icmp_nobody(get_first_address());
	raw_wait(&r, 1);
	cr_expect_eq(r.gone, 1);
}

Test(sctp_nobody, contact_07_shutdown_goes_on_elsewhere)
{
	bring_both_sctp_nobody_up();
	ddps_sctp_shutdown(r.a, r.net.now);
	r.n = 0;
	sn_flush(&r.net);
	cr_assert_eq(sent_to(get_first_address(), SC_SHUTDOWN, NULL), 1);
	bring_icmp_nobody(get_first_address());
	cr_expect_eq(sent_to(get_second_address(), SC_SHUTDOWN, NULL), 1, "without a timeout");
	cr_expect_eq(r.gone, 0);
}

/* ---- many associations ---- */

#define MANY 4096u

static struct ddps_sctp_addr make_many_address(unsigned i)
{
	struct ddps_sctp_addr a = { .family = 4, .ip = { 10, 9, (uint8_t)(i >> 8), (uint8_t)i } };

	return a;
}

/* As if it had been set up.  @same: all of one program. */
static struct ddps_sctp_assoc *set_up_one(unsigned i, bool same)
{
	struct ddps_sctp_param p = { .port = (uint16_t)(20000 + i),
				     .streams = 1,
				     .fixed_mtu = 1500 };
	const struct ddps_sctp_addr to = make_many_address(same ? 0 : i);
	struct ddps_sctp_assoc *a;

	cr_assert_eq(ddps_sctp_connect(r.e, &p, &to, 1, RAW_PEER, 9899, &raw_upcalls, &r, r.net.now,
				       &a),
		     0);
	a->state = SC_ESTABLISHED;
	a->peer_tag = RAW_TAG;
	a->path[0]->confirmed = true;
	a->path[0]->state = DDPS_SCTP_ACTIVE;
	return a;
}

/* Return: ns of this thread. */
static uint64_t bring_icmp_to_one(unsigned i, bool same)
{
	struct ddps_sctp_route way = { .peer = make_many_address(same ? 0 : i), .encap = 9899 };
	struct timespec begin, end;
	uint8_t quote[20];
	struct ddps_wbuf w = ddps_wbuf_init(quote, sizeof quote);

	ddps_wbuf_u16(&w, (uint16_t)(20000 + i));
	ddps_wbuf_u16(&w, RAW_PEER);
	ddps_wbuf_u32(&w, RAW_TAG);
	for (unsigned k = 0; k < 3; k++)
		ddps_wbuf_u32(&w, 0);
	clock_gettime(CLOCK_THREAD_CPUTIME_ID, &begin);
	ddps_sctp_icmp(r.e, &way, DDPS_SCTP_ICMP_UNREACH_PORT, 0, quote, sizeof quote, r.net.now);
	clock_gettime(CLOCK_THREAD_CPUTIME_ID, &end);
	return (uint64_t)((end.tv_sec - begin.tv_sec) * 1000000000 + end.tv_nsec - begin.tv_nsec);
}

/* The cheapest of some, the first one aside. */
static uint64_t cost_of_icmp(unsigned n, bool same)
{
	uint64_t least = UINT64_MAX, cost;

	raw_init(&r);
	r.e->c.icmp_grace = 0;
	for (unsigned i = 0; i < n; i++)
		set_up_one(i, same);
	bring_icmp_to_one(0, same);
	for (unsigned i = 1; i < 8; i++) {
		cost = bring_icmp_to_one(i, same);
		least = cost < least ? cost : least;
	}
	cr_expect_eq(r.e->st.icmp_believed, 8);
	raw_fini(&r);
	return least;
}

Test(sctp_nobody, contact_07_what_one_icmp_costs)
{
	for (unsigned same = 0; same < 2; same++) {
		const uint64_t few = cost_of_icmp(8, same), many = cost_of_icmp(MANY, same);

		cr_expect_lt(many, 32 * few, "%s: %llu ns, %llu ns with %u associations",
			     same ? "one program" : "many hosts", (unsigned long long)few,
			     (unsigned long long)many, MANY);
	}
	raw_init(&r);
}

Test(sctp_nobody, contact_07_all_of_a_program_are_asked)
{
	raw_init(&r);
	r.e->c.icmp_grace = 0;
	for (unsigned i = 0; i < 3; i++)
		set_up_one(i, true);
	ddps_sc_path_encap(set_up_one(3, true)->path[0], 7); /* another program of that host */
	bring_icmp_to_one(0, true);
	for (unsigned i = 1; i < 4; i++) {
		const struct ddps_sc_path *p =
			ddps_sc_find(r.e, 0, (uint16_t)(20000 + i), RAW_PEER,
				     &(struct ddps_sctp_addr){ .family = 4, .ip = { 10, 9 } });

		cr_assert(p);
		cr_expect_eq(p->asked != 0, i < 3);
	}
}

/* ---- set-up ---- */

static void open_to(unsigned n)
{
	struct ddps_sctp_param p = { .port = RAW_PORT, .streams = 10, .fixed_mtu = 1500 };

	raw_init(&r);
	first_told = second_told = 0;
	cr_assert_eq(ddps_sctp_connect(r.e, &p, r.net.node[1].addr, n, RAW_PEER, 9899, strict(), &r,
				       r.net.now, &r.a),
		     0);
	sn_flush(&r.net);
	cr_assert_eq(sent_to(get_first_address(), SC_INIT, NULL), 1);
}

/* The second address answers, from there. */
static void second_answers(void)
{
	uint8_t params[32];
	struct ddps_wbuf w = ddps_wbuf_init(params, sizeof params);

	ddps_sc_put_tlv(&w, SC_P_COOKIE, "cook", 4);
	r.tag = r.a->own_tag;
	r.own = RAW_TAG;
	raw_begin(&r, r.tag);
	raw_put_init(&r, RAW_TAG, 100000, 5, 5, RAW_TSN, params, (size_t)(w.p - params));
	r.buf[12] = SC_INIT_ACK;
	send_second();
}

Test(sctp_nobody, contact_08_the_second_address_is_tried_immediately, .description = "9260-5.1-14")
{
	uint64_t now;

	open_to(2);
	now = r.net.now;
	bring_icmp_nobody(get_first_address());
	cr_expect_eq(sent_to(get_second_address(), SC_INIT, NULL), 1);
	cr_expect_eq(r.net.now, now);
	cr_expect_eq(r.a->ctl_n, 0, "no attempt was in vain");
	cr_expect(refused[0] == 1 && !refused[1]);
	second_answers();
	cr_assert_eq(sent_to(get_second_address(), SC_COOKIE_ECHO, NULL), 1);
	raw_begin(&r, r.tag);
	ddps_sc_put_chunk(&r.w, SC_COOKIE_ACK, 0, NULL, 0);
	send_second();
	cr_assert_eq(r.ups, 1);
	cr_expect_eq(r.a->data_path, r.a->path[1]);
	cr_expect_eq(r.a->primary, r.a->path[1]);
	cr_expect_eq(r.a->path[0]->state, DDPS_SCTP_INACTIVE, "until it answers a heartbeat");
}

/* Its host has SCTP, and nobody who listens: that comes as an ABORT. */
Test(sctp_nobody, contact_08_an_abort_is_a_refusal_of_one_address)
{
	open_to(2);
	r.tag = r.a->own_tag;
	raw_chunk(&r, r.tag, SC_ABORT, 0, NULL, 0);
	cr_assert_eq(r.gone, 0);
	cr_expect_eq(sent_to(get_second_address(), SC_INIT, NULL), 1);
	raw_begin(&r, r.tag);
	ddps_sc_put_chunk(&r.w, SC_ABORT, 0, NULL, 0);
	send_second();
	raw_wait(&r, 1);
	cr_expect_eq(r.gone, 1);
	cr_expect_eq(r.why.code, DDPS_E_REFUSED);
}

/* The INIT comes back with the ports as they were, and so would an ABORT. */
Test(sctp_nobody, contact_08_an_echo_service_is_named)
{
	struct raw_packet init;
	struct ddps_sc_chunk c;

	for (unsigned same = 0; same < 2; same++) {
		struct ddps_sctp_param p = { .port = same ? RAW_PEER : RAW_PORT,
					     .streams = 10,
					     .fixed_mtu = 1500 };

		raw_init(&r);
		cr_assert_eq(ddps_sctp_connect(r.e, &p, &r.net.node[1].addr[0], 1, RAW_PEER,
					       r.net.node[1].udp, &raw_upcalls, &r, r.net.now,
					       &r.a),
			     0);
		sn_flush(&r.net);
		cr_assert(raw_any(&r, SC_INIT, &c));
		init = r.log[0];
		init.data[12 + 4] ^= 1; /* another one's, which has our ports */
		ddps_sc_crc_put(init.data, init.len);
		raw_send_as_is(&r, init.data, init.len);
		cr_expect_eq(r.gone, 0);
		init.data[12 + 4] ^= 1;
		ddps_sc_crc_put(init.data, init.len);
		raw_send_as_is(&r, init.data, init.len);
		cr_expect_eq(r.gone, 1);
		cr_expect_eq(r.why.code, DDPS_E_REFUSED);
		cr_expect(strstr(r.why.text, "echo service"), "%s", r.why.text);
		cr_expect_eq(r.n, 0, "nothing is answered");
		if (!same)
			raw_fini(&r);
	}
}

static void accept_sctp_nobody(void *user, struct ddps_sctp_assoc *a)
{
	ddps_sctp_assoc_set_up(a, &raw_upcalls, user);
}

/* Both ends may be in one engine: that is no echo. */
Test(sctp_nobody, contact_08_a_listener_of_one_s_own_is_no_echo)
{
	struct ddps_sctp_param p = { .port = RAW_PORT, .streams = 10, .fixed_mtu = 1500 };
	struct ddps_sctp_param lp = { .port = RAW_PEER, .streams = 10, .fixed_mtu = 1500 };
	struct ddps_sctp_port *l;
	struct raw_packet init;
	struct ddps_sc_chunk c;

	raw_init(&r);
	cr_assert_eq(ddps_sctp_listen(r.e, &lp, accept_sctp_nobody, &r, &l), 0);
	cr_assert_eq(ddps_sctp_connect(r.e, &p, &r.net.node[1].addr[0], 1, RAW_PEER,
				       r.net.node[1].udp, &raw_upcalls, &r, r.net.now, &r.a),
		     0);
	sn_flush(&r.net);
	cr_assert(raw_any(&r, SC_INIT, &c));
	init = r.log[0];
	raw_send_as_is(&r, init.data, init.len);
	cr_expect_eq(r.gone, 0);
	cr_expect(raw_any(&r, SC_INIT_ACK, &c));
}

Test(sctp_nobody, contact_08_all_addresses_refuse)
{
	open_to(2);
	bring_icmp_nobody(get_first_address());
	cr_assert_eq(r.gone, 0);
	bring_icmp_nobody(get_second_address());
	raw_wait(&r, 1);
	cr_expect_eq(r.gone, 1);
	cr_expect_eq(r.why.code, DDPS_E_REFUSED);
	cr_expect(strstr(r.why.text, "any of the peer's addresses"), "%s", r.why.text);
}

/* The first is silent, the second refuses: the first is what is left, and is asked again and again. */
Test(sctp_nobody, contact_08_one_is_silent_and_one_refuses)
{
	open_to(2);
	r.n = 0;
	while (!r.a->ctl_n)
		cr_assert(sn_step(&r.net, UINT64_MAX));
	sn_flush(&r.net);
	cr_assert_eq(sent_to(get_second_address(), SC_INIT, NULL), 1);
	bring_icmp_nobody(get_second_address());
	cr_expect_eq(sent_to(get_first_address(), SC_INIT, NULL), 1);
	for (unsigned n = 2; n < 5; n++) {
		r.n = 0;
		while (r.a->ctl_n < n)
			cr_assert(sn_step(&r.net, UINT64_MAX));
		sn_flush(&r.net);
		cr_expect_eq(sent_to(get_first_address(), SC_INIT, NULL), 1, "%u", n);
		cr_expect_eq(sent_to(get_second_address(), SC_INIT, NULL), 0, "%u", n);
	}
}

/* What the first address says comes when the second has been asked for long. */
Test(sctp_nobody, contact_08_a_refusal_that_is_late)
{
	open_to(2);
	r.n = 0;
	while (!r.a->ctl_n)
		cr_assert(sn_step(&r.net, UINT64_MAX));
	bring_icmp_nobody(get_first_address());
	cr_expect_eq(r.n, 0, "the second is asked already");
	cr_expect_eq(r.a->ctl_path, r.a->path[1]);
	second_answers();
	cr_expect_eq(sent_to(get_second_address(), SC_COOKIE_ECHO, NULL), 1);
}

/* It answered the INIT, and is gone before the COOKIE ECHO comes. */
Test(sctp_nobody, contact_08_the_peer_is_gone_behind_its_answer)
{
	open_to(2);
	raw_answer_init(&r);
	cr_assert_str_eq(raw_state(&r), "COOKIE-ECHOED");
	bring_icmp_nobody(get_first_address());
	cr_expect_eq(sent_to(get_second_address(), SC_COOKIE_ECHO, NULL), 1);
	bring_icmp_nobody(get_second_address());
	raw_wait(&r, 1);
	cr_expect_eq(r.gone, 1);
	cr_expect_eq(r.why.code, DDPS_E_RESET);
}

/* It refused, and then opens itself, from there. */
Test(sctp_nobody, contact_08_who_refused_comes_itself)
{
	open_to(2);
	bring_icmp_nobody(get_first_address());
	raw_begin(&r, 0);
	r.own = RAW_TAG;
	raw_put_init(&r, RAW_TAG, 100000, 5, 5, RAW_TSN, NULL, 0);
	raw_send(&r);
	cr_assert(raw_take_init_ack(&r));
	raw_echo(&r);
	cr_assert_eq(r.ups, 1);
	cr_expect_eq(r.a->path[0]->state, DDPS_SCTP_ACTIVE);
}
