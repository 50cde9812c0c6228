/* SPDX-License-Identifier: BSD-2-Clause */
/* Which path is chosen, what its heartbeats and failures leave behind, and when it is asked next. */
#include "sctp_paths_fixture.h"

#define N(a)	 (sizeof(a) / sizeof *(a))
#define INTERVAL (30000 * MS)

TestSuite(sctp_choice, .fini = fini);

/* ---- the choice ---- */

struct standing {
	enum ddps_sctp_path_state state;
	unsigned errors;
};

static void stand(unsigned i, struct standing s)
{
	r.a->path[i]->state = s.state;
	r.a->path[i]->errors = s.errors;
}

/* Where none is active: one in doubt before one that failed, then by failures, then by order. */
Test(sctp_choice, of_those_that_fail, .description = "7829-4.1-1")
{
	static const struct {
		struct standing path[2];
		unsigned want;
	} row[] = {
		{ { { DDPS_SCTP_DOUBTFUL, 1 }, { DDPS_SCTP_DOUBTFUL, 1 } }, 0 },
		{ { { DDPS_SCTP_DOUBTFUL, 2 }, { DDPS_SCTP_DOUBTFUL, 1 } }, 1 },
		{ { { DDPS_SCTP_DOUBTFUL, 1 }, { DDPS_SCTP_DOUBTFUL, 2 } }, 0 },
		{ { { DDPS_SCTP_INACTIVE, 1 }, { DDPS_SCTP_DOUBTFUL, 5 } }, 1 },
		{ { { DDPS_SCTP_DOUBTFUL, 5 }, { DDPS_SCTP_INACTIVE, 1 } }, 0 },
		{ { { DDPS_SCTP_INACTIVE, 6 }, { DDPS_SCTP_INACTIVE, 6 } }, 0 },
	};

	open_both_paths();
	for (size_t i = 0; i < N(row); i++) {
		for (unsigned k = 0; k < 2; k++)
			stand(k, row[i].path[k]);
		ddps_sc_path_pick(r.a);
		cr_expect_eq(r.a->data_path, r.a->path[row[i].want], "%zu", i);
	}
}

static void third_path(void)
{
	struct ddps_sctp_addr third = sn_v4(10, 0, 7, 7);

	cr_assert_not_null(ddps_sc_path_add(r.a, &third, NULL, 9899));
	r.a->path[2]->confirmed = true;
}

Test(sctp_choice, of_three, .description = "7829-4.1-1")
{
	open_both_paths();
	third_path();
	stand(0, (struct standing){ DDPS_SCTP_INACTIVE, 6 });
	stand(1, (struct standing){ DDPS_SCTP_INACTIVE, 6 });
	stand(2, (struct standing){ DDPS_SCTP_DOUBTFUL, 1 });
	ddps_sc_path_pick(r.a);
	cr_expect_eq(r.a->data_path, r.a->path[2]);
	/* the primary one is back and has proved little; the one in use has failed, too */
	r.a->primary = r.a->path[1];
	r.a->path[1]->failed = true;
	r.a->path[1]->good = 0;
	stand(0, (struct standing){ DDPS_SCTP_ACTIVE, 0 });
	stand(1, (struct standing){ DDPS_SCTP_ACTIVE, 0 });
	ddps_sc_path_pick(r.a);
	cr_expect_eq(r.a->data_path, r.a->path[1]);
}

/* A path that fails within a minute of its use has come and gone once more. */
Test(sctp_choice, how_often_a_path_has_failed)
{
	static const struct {
		uint64_t ago;
		uint8_t fails, want;
	} row[] = { { 60000 * MS - 1, 0, 1 }, { 60000 * MS, 3, 0 }, { 1, 5, 6 }, { 1, 6, 6 } };

	open_both_paths();
	raw_wait(&r, 70000);
	for (size_t i = 0; i < N(row); i++) {
		struct ddps_sc_path *p = r.a->path[0];

		stand(0, (struct standing){ DDPS_SCTP_ACTIVE, 0 });
		stand(1, (struct standing){ DDPS_SCTP_ACTIVE, 0 });
		p->failed = true;
		p->good = 3u << 6;
		r.a->data_path = r.a->path[1];
		ddps_sc_path_pick(r.a);
		cr_assert_eq(r.a->data_path, p);
		cr_expect_not(p->failed, "%zu", i);
		cr_expect_eq(p->since, r.e->now);
		p->since = r.e->now - row[i].ago;
		p->fails = row[i].fails;
		p->state = DDPS_SCTP_DOUBTFUL;
		ddps_sc_path_pick(r.a);
		cr_assert_eq(r.a->data_path, r.a->path[1]);
		cr_expect(p->failed);
		cr_expect_eq(p->fails, row[i].want, "%zu: %u", i, p->fails);
	}
}

/* ---- failures ---- */

static void send_sctp_choice_unreachable(const struct ddps_sctp_addr *to)
{
	struct ddps_sctp_route way = { .peer = *to, .encap = 9899 };
	uint8_t quote[8];
	struct ddps_wbuf w = ddps_wbuf_init(quote, sizeof quote);

	ddps_wbuf_u16(&w, RAW_PORT);
	ddps_wbuf_u16(&w, RAW_PEER);
	ddps_wbuf_u32(&w, r.own);
	r.n = 0;
	ddps_sctp_icmp(r.e, &way, DDPS_SCTP_ICMP_UNREACH_PROTO, 0, quote, sizeof quote, r.net.now);
}

Test(sctp_choice, what_was_on_a_failed_path_leaves_on_another, .description = "9260-6.4.1-1")
{
	open_both_paths();
	cr_assert_eq(raw_user_send(&r, 0, 0, "x"), 0);
	cr_assert_eq(sent_to(get_first_address(), SC_DATA, NULL), 1);
	send_sctp_choice_unreachable(get_first_address());
	sn_flush(&r.net);
	cr_expect_eq(sent_to(get_second_address(), SC_DATA, NULL), 1);
}

/* Slow start from the beginning: what was known of it is old. */
Test(sctp_choice, a_path_that_is_used_again_begins_anew)
{
	struct ddps_sc_path *p;

	open_both_paths();
	p = r.a->path[0];
	p->tx.cc.cwnd = 777777;
	p->failed = true;
	p->good = 3;
	r.a->data_path = r.a->path[1];
	ddps_sc_path_pick(r.a);
	cr_assert_eq(r.a->data_path, p);
	cr_expect_lt(p->tx.cc.cwnd, 777777);
}

/* A timer has asked for a packet there while data went elsewhere. */
Test(sctp_choice, what_a_path_was_to_send_leaves_when_it_is_chosen)
{
	struct ddps_sc_path *p;

	open_both_paths();
	p = r.a->path[1];
	cr_assert_eq(ddps_sctp_set_primary(r.a, get_second_address(), r.net.now), 0);
	cr_assert_eq(raw_user_send(&r, 0, 0, "x"), 0);
	cr_assert_eq(sent_to(get_second_address(), SC_DATA, NULL), 1);
	cr_assert_eq(ddps_sctp_set_primary(r.a, get_first_address(), r.net.now), 0);
	p->tx.force = p->tx.probe = true;
	r.n = 0;
	sn_flush(&r.net);
	cr_assert_eq(r.n, 0);
	cr_assert_eq(ddps_sctp_set_primary(r.a, get_second_address(), r.net.now), 0);
	sn_flush(&r.net);
	cr_expect_eq(sent_to(get_second_address(), SC_DATA, NULL), 1);
}

/* With one address there is nothing to doubt; with two the probes of one that failed stop. */
Test(sctp_choice, an_only_path_is_not_in_doubt, .description = "9260-8.2-2")
{
	for (unsigned npaths = 1; npaths <= 2; npaths++) {
		struct ddps_sc_path *p;

		if (npaths == 1)
			raw_up(&r);
		else
			open_both_paths();
		p = r.a->path[0];
		r.a->fixed_mtu = 0;
		ddps_pmtu_start(&p->tx.pmtu, 1500, r.net.now);
		p->tx.pmtu.doubt = 0;
		p->tx.pmtu.next_at = r.net.now + 1;
		p->good = 2;
		ddps_sc_path_error(p);
		cr_expect_eq(p->good, 0);
		cr_expect_eq(p->state, npaths == 1 ? DDPS_SCTP_ACTIVE : DDPS_SCTP_DOUBTFUL);
		while (p->state != DDPS_SCTP_INACTIVE)
			ddps_sc_path_error(p);
		cr_expect_eq(p->errors, r.e->c.path_max_retrans + 1);
		cr_expect_eq(ddps_pmtu_deadline(&p->tx.pmtu) == UINT64_MAX, npaths == 2);
		fini();
	}
	raw_init(&r);
}

/* A heartbeat was out: it is forgotten, not counted, and another one leaves immediately. */
Test(sctp_choice, one_failure_is_one_failure, .description = "7829-3-3")
{
	struct ddps_sc_path *p;

	open_both_paths();
	p = r.a->path[0];
	r.n = 0;
	while (!sent_to(get_first_address(), SC_HEARTBEAT, NULL))
		cr_assert(sn_step(&r.net, UINT64_MAX));
	cr_assert(p->hb_out);
	send_sctp_choice_unreachable(get_first_address());
	cr_assert_eq(p->state, DDPS_SCTP_DOUBTFUL);
	sn_step(&r.net, r.net.now);
	cr_expect_eq(p->errors, 1);
	cr_expect_eq(sent_to(get_first_address(), SC_HEARTBEAT, NULL), 1);
}

/* What healed it may have been on its way for long. */
Test(sctp_choice, a_path_that_was_in_doubt_for_a_moment_is_asked, .description = "7829-3-3")
{
	open_both_paths();
	cr_assert_eq(raw_user_send(&r, 0, 0, "x"), 0);
	send_sctp_choice_unreachable(get_first_address());
	cr_assert_eq(r.a->path[0]->state, DDPS_SCTP_DOUBTFUL);
	ddps_sc_path_good(r.a->path[0]);
	cr_assert_eq(r.a->path[0]->state, DDPS_SCTP_ACTIVE);
	r.n = 0;
	sn_step(&r.net, r.net.now);
	cr_expect_eq(sent_to(get_first_address(), SC_HEARTBEAT, NULL), 1);
}

/* Both are in doubt: the primary one is used as soon as it is not. */
Test(sctp_choice, the_first_that_heals_is_used)
{
	open_both_paths();
	send_sctp_choice_unreachable(get_first_address());
	send_sctp_choice_unreachable(get_second_address());
	ddps_sc_path_error(r.a->path[0]);
	cr_assert_eq(r.a->data_path, r.a->path[1]);
	ddps_sc_path_good(r.a->path[0]);
	cr_expect_eq(r.a->data_path, r.a->path[0]);
}

/* T3 makes it doubtful: with what is sent anew the question leaves, too. */
Test(sctp_choice, a_timer_of_data_asks_immediately, .description = "7829-3-3")
{
	open_both_paths();
	cr_assert_eq(raw_user_send(&r, 0, 0, "x"), 0);
	while (r.a->path[0]->state == DDPS_SCTP_ACTIVE) {
		r.n = 0;
		r.net.now = ddps_sctp_deadline(r.e);
		ddps_sctp_tick(r.e, r.net.now);
	}
	sn_flush(&r.net);
	cr_expect_eq(sent_to(get_first_address(), SC_HEARTBEAT, NULL), 1);
	cr_expect_eq(sent_to(get_second_address(), SC_DATA, NULL), 1);
}

/* ---- heartbeats ---- */

/* All bits of each draw. */
static void ones(void *user, void *buf, size_t len)
{
	(void)user;
	memset(buf, 0xff, len);
}

Test(sctp_choice, an_interval_and_an_rto_more_or_less, .description = "9260-8.3-7")
{
	struct ddps_sc_path *p;
	uint64_t rto, wait;

	raw_init(&r);
	raw_init_chunk(&r, RAW_TAG, RAW_TSN);
	cr_assert(raw_take_init_ack(&r));
	r.e->c.random = ones;
	raw_echo(&r);
	p = r.a->path[0];
	rto = ddps_sent_rto(&r.a->tx, &p->tx);
	wait = p->hb_at - r.net.now;
	cr_expect_leq(wait, INTERVAL + rto * 3 / 2);
	cr_expect_gt(wait, INTERVAL + rto * 3 / 2 - rto / 600, "all but the last draw of 1024");
}

static uint64_t nonce_of(const struct ddps_sc_chunk *c)
{
	struct ddps_rbuf b = ddps_rbuf_init(c->val + 4, 8);

	return ddps_rbuf_u64(&b);
}

Test(sctp_choice, a_nonce_has_64_bits, .description = "9260-5.4-d2")
{
	struct ddps_sc_chunk c;

	invite();
	r.e->c.random = ones;
	raw_echo(&r);
	if (!sent_to(get_second_address(), SC_HEARTBEAT, &c)) {
		raw_wait(&r, 1000);
		cr_assert(sent_to(get_second_address(), SC_HEARTBEAT, &c));
	}
	cr_expect_eq(nonce_of(&c), UINT64_MAX);
	cr_expect_eq(c.flags, 0);
}

static uint8_t info[36];

/* The next heartbeat to the only address, whose answer is @info. */
static void next_heartbeat(void)
{
	struct ddps_sc_chunk c;

	r.n = 0;
	while (!raw_any(&r, SC_HEARTBEAT, &c))
		cr_assert(sn_step(&r.net, UINT64_MAX));
	cr_assert_eq(c.vlen, sizeof info);
	memcpy(info, c.val, sizeof info);
}

static void answer_sctp_choice(void)
{
	raw_chunk(&r, r.tag, SC_HEARTBEAT_ACK, 0, info, sizeof info);
}

/* What follows of it waits, the next probe, too. */
static void hand_answer(void)
{
	raw_begin(&r, r.tag);
	ddps_sc_put_chunk(&r.w, SC_HEARTBEAT_ACK, 0, info, sizeof info);
	raw_hand(&r);
}

static void put_nonce(uint64_t nonce)
{
	struct ddps_wbuf w = ddps_wbuf_init(info + 4, 8);

	ddps_wbuf_u64(&w, nonce);
}

Test(sctp_choice, an_answer_counts_once, .description = "9260-5.4-d2")
{
	struct ddps_sc_path *p;

	raw_up(&r);
	p = r.a->path[0];
	next_heartbeat();
	info[35] ^= 1; /* of another address */
	answer_sctp_choice();
	cr_expect_eq(p->good, 0);
	info[35] ^= 1;
	raw_wait(&r, 100);
	answer_sctp_choice();
	cr_expect_eq(p->good, 1);
	cr_expect_geq(p->hb_at - r.net.now, INTERVAL, "and the next one is due in an interval");
	answer_sctp_choice();
	cr_expect_eq(p->good, 1);
	put_nonce(1);
	answer_sctp_choice();
	cr_expect_eq(p->good, 1);
	cr_expect_not(p->hb_out);
}

/* The path has healed by the answer to a probe of its MTU. */
Test(sctp_choice, an_answer_to_a_probe_counts_once, .description = "8899-6.2-d1")
{
	struct ddps_sc_chunk c;
	struct ddps_sc_path *p;

	raw_init(&r);
	r.port->param.fixed_mtu = 0;
	raw_init_chunk(&r, RAW_TAG, RAW_TSN);
	cr_assert(raw_take_init_ack(&r));
	raw_echo(&r);
	p = r.a->path[0];
	while (!raw_any(&r, SC_PAD, NULL))
		cr_assert(sn_step(&r.net, UINT64_MAX));
	cr_assert(raw_any(&r, SC_HEARTBEAT, &c));
	cr_expect_eq(c.flags, 0);
	cr_assert_eq(p->probe_nonce, nonce_of(&c));
	memcpy(info, c.val, sizeof info);
	p->errors = 2;
	hand_answer();
	cr_expect_eq(p->errors, 0);
	p->errors = 2;
	hand_answer();
	cr_expect_eq(p->errors, 2);
	put_nonce(1);
	hand_answer();
	cr_expect_eq(p->errors, 2);
}

/* A listed address has its MTU looked for as soon as it is confirmed. */
Test(sctp_choice, a_confirmed_address_is_probed)
{
	struct ddps_sc_chunk c;

	invite();
	r.port->param.fixed_mtu = 0;
	raw_echo(&r);
	watch_second_path();
	for (unsigned i = 0; i < 100 && !sent_to(get_second_address(), SC_HEARTBEAT, &c); i++)
		raw_wait(&r, 100);
	cr_assert(sent_to(get_second_address(), SC_HEARTBEAT, &c));
	cr_expect_eq(r.a->path[1]->tx.pmtu.state, DDPS_PMTU_OFF);
	r.a->path[1]->errors = 3;
	answer_sctp_paths_heartbeat(&c, true);
	cr_expect_neq(r.a->path[1]->tx.pmtu.state, DDPS_PMTU_OFF);
	cr_expect_eq(r.a->path[1]->errors, 0);
	cr_expect(told == DDPS_SCTP_ACTIVE && second_told == 1);
}

/* One that was used just now need not be asked; one that rested a whole interval is. */
Test(sctp_choice, a_path_that_rested_for_an_interval, .description = "9260-8.3-1")
{
	for (unsigned more = 0; more < 2; more++) {
		struct ddps_sc_path *p;
		uint64_t at;

		raw_up(&r);
		p = r.a->path[0];
		at = p->hb_at;
		p->used = at - INTERVAL + more;
		r.n = 0;
		sn_run(&r.net, at - r.net.now);
		cr_expect_eq(raw_any(&r, SC_HEARTBEAT, NULL), !more, "%u", more);
		cr_expect_gt(p->hb_at, at);
		fini();
	}
	raw_init(&r);
}

/* While nothing is acknowledged and the end waits for that, paths are asked as before. */
Test(sctp_choice, heartbeats_while_the_end_is_near, .description = "9260-8.3-1")
{
	for (unsigned received = 0; received < 2; received++) {
		unsigned n = 0;

		open_both_paths();
		cr_assert_eq(raw_user_send(&r, 0, 0, "x"), 0);
		if (received)
			raw_chunk(&r, r.tag, SC_SHUTDOWN, 0, &(uint32_t){ htobe32(r.tsn - 1) }, 4);
		else
			ddps_sctp_shutdown(r.a, r.net.now);
		cr_assert_str_eq(raw_state(&r),
				 received ? "SHUTDOWN-RECEIVED" : "SHUTDOWN-PENDING");
		for (unsigned i = 0; i < 30 && !n; i++) {
			raw_wait(&r, 100);
			n = sent_to(get_first_address(), SC_HEARTBEAT, NULL);
		}
		cr_expect_eq(n, 1);
		fini();
	}
	raw_init(&r);
}

/* Of those that are as large as a packet that is not copied four wait, of others more. */
Test(sctp_choice, large_heartbeats_that_wait)
{
	static const uint8_t value[DDPS_SC_BLOB_BIG];

	raw_up(&r);
	for (unsigned i = 0; i < 6; i++) {
		raw_begin(&r, r.tag);
		ddps_sc_put_chunk(&r.w, SC_HEARTBEAT, 0, value, DDPS_SC_BLOB_BIG - 4 + (i < 5));
		raw_hand(&r);
		cr_expect_eq(r.a->nblobs, i < 4 ? i + 1 : i, "%u", i);
	}
	cr_expect_eq(r.a->nbig, 4);
}

Test(sctp_choice, what_is_before_the_chunks)
{
	static const struct {
		uint8_t family;
		uint16_t encap;
		unsigned want;
	} row[] = { { 4, 0, 32 }, { 4, 9899, 40 }, { 6, 0, 52 }, { 6, 1, 60 } };

	for (size_t i = 0; i < N(row); i++) {
		struct ddps_sc_path p = { .peer.family = row[i].family, .encap = row[i].encap };

		cr_expect_eq(ddps_sc_overhead(&p), row[i].want, "%zu", i);
	}
	raw_init(&r);
}
