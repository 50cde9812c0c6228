/* SPDX-License-Identifier: BSD-2-Clause */
/* Which path is used after a restart, without heartbeats, and where the user lets go of it all. */
#include "sctp_paths_fixture.h"
#include "unit/mem_fixture.h"

TestSuite(sctp_doubt, .fini = fini);

/* ---- a restart ---- */

/* What a peer has proved before it restarted it has to prove again. */
Test(sctp_doubt, an_old_answer_confirms_nothing, .description = "9260-5.4-d2")
{
	struct ddps_sc_chunk c;
	uint8_t info[64];
	size_t n;

	open_both_paths();
	r.n = 0;
	while (!sent_to(get_second_address(), SC_HEARTBEAT, &c))
		cr_assert(sn_step(&r.net, UINT64_MAX));
	cr_assert_leq(n = c.vlen, sizeof info);
	memcpy(info, c.val, n);
	put_restart();
	raw_send(&r);
	cr_assert(raw_take_init_ack(&r));
	raw_begin(&r, r.tag);
	ddps_sc_put_chunk(&r.w, SC_COOKIE_ECHO, 0, r.cookie, r.cookie_len);
	ddps_sc_put_chunk(&r.w, SC_HEARTBEAT_ACK, 0, info, n);
	raw_send(&r);
	cr_assert_eq(r.restarted, 1);
	cr_expect_eq(r.a->path[1]->state, DDPS_SCTP_UNCONFIRMED);
	cr_expect_not(r.a->path[1]->confirmed);
	raw_wait(&r, 1000);
	cr_assert(sent_to(get_second_address(), SC_HEARTBEAT, &c));
	answer_sctp_paths_heartbeat(&c, true);
	cr_expect_eq(r.a->path[1]->state, DDPS_SCTP_ACTIVE);
}

/* It comes from the second address: the first is not confirmed, and not used, even in doubt. */
Test(sctp_doubt, after_a_restart_from_elsewhere, .description = "9260-5.4-d2")
{
	struct ddps_sctp_route way = { .peer = *get_second_address(), .encap = 9899 };
	uint8_t quote[8];
	struct ddps_wbuf w = ddps_wbuf_init(quote, sizeof quote);

	open_both_paths();
	cr_assert_eq(r.a->data_path, r.a->path[0]);
	put_restart();
	send_second();
	cr_assert(raw_take_init_ack(&r));
	raw_begin(&r, r.tag);
	ddps_sc_put_chunk(&r.w, SC_COOKIE_ECHO, 0, r.cookie, r.cookie_len);
	send_second();
	cr_assert_eq(r.restarted, 1);
	cr_expect_eq(r.a->data_path, r.a->path[1]);
	cr_expect_eq(r.a->primary, r.a->path[1]);
	cr_expect_not(r.a->path[0]->failed, "it did not fail, it is not known");
	cr_expect_not(r.a->path[0]->confirmed);
	ddps_wbuf_u16(&w, RAW_PORT);
	ddps_wbuf_u16(&w, RAW_PEER);
	ddps_wbuf_u32(&w, r.own);
	way.peer = *get_second_address();
	ddps_sctp_icmp(r.e, &way, DDPS_SCTP_ICMP_UNREACH_PROTO, 0, quote, sizeof quote, r.net.now);
	cr_expect_eq(r.a->path[1]->state, DDPS_SCTP_DOUBTFUL);
	cr_expect_eq(r.a->data_path, r.a->path[1]);
	cr_assert_eq(raw_user_send(&r, 0, 0, "x"), 0);
	cr_expect_eq(sent_to(get_second_address(), SC_DATA, NULL), 1);
	cr_expect_eq(sent_to(get_first_address(), SC_DATA, NULL), 0);
}

Test(sctp_doubt, the_user_chooses_a_path)
{
	open_both_paths();
	cr_expect_eq(ddps_sctp_set_primary(r.a, get_second_address(), r.net.now), 0);
	cr_expect_eq(r.a->data_path, r.a->path[1], "it has not failed");
	cr_expect_eq(ddps_sctp_set_primary(r.a, get_first_address(), r.net.now), 0);
	cr_expect_eq(r.a->data_path, r.a->path[0]);
	fini();
	invite();
	raw_echo(&r);
	cr_expect_eq(ddps_sctp_set_primary(r.a, get_second_address(), r.net.now), 0);
	cr_expect_eq(r.a->data_path, r.a->path[0], "the other one is not confirmed");
}

/* ---- heartbeats ---- */

Test(sctp_doubt, heartbeats_that_nobody_answers)
{
	uint64_t at;

	raw_up(&r);
	r.e->c.assoc_max_retrans = 2;
	r.e->c.path_max_retrans = 1;
	at = r.net.now;
	while (!r.gone)
		cr_assert(sn_step(&r.net, UINT64_MAX));
	cr_expect_eq(r.why.code, DDPS_E_RESET);
	cr_expect_gt(r.net.now - at, 2 * 30000 * MS, "two intervals");
	cr_expect_lt(r.net.now - at, 5 * 30000 * MS);
	cr_expect_eq(r.e->st.path_failures, 1);
}

static unsigned heartbeats;

static void count_heartbeats(void *user, unsigned from, const struct ddps_sctp_route *to,
			     const uint8_t *data, size_t len)
{
	struct ddps_sc_chunk c;

	(void)user, (void)from, (void)to;
	heartbeats += ddps_sc_contains(data, len, SC_HEARTBEAT, &c);
}

/* Without an interval: an address is asked until it answers or fails, and never after. */
Test(sctp_doubt, without_an_interval_no_heartbeats)
{
	invite();
	r.e->c.hb_interval_ms = 0;
	raw_echo(&r);
	r.net.sent = count_heartbeats;
	heartbeats = 0;
	sn_run(&r.net, 600 * 1000 * MS);
	cr_expect_eq(r.a->path[1]->state, DDPS_SCTP_INACTIVE);
	cr_expect_eq(heartbeats, 6, "one more than path_max_retrans: %u", heartbeats);
	heartbeats = 0;
	sn_run(&r.net, 3600 * 1000 * MS);
	cr_expect_eq(heartbeats, 0);
	fini();

	invite();
	r.e->c.hb_interval_ms = 0;
	raw_echo(&r);
	watch_second_path();
	{
		struct ddps_sc_chunk c;

		if (!sent_to(get_second_address(), SC_HEARTBEAT, &c)) {
			raw_wait(&r, 1000);
			cr_assert(sent_to(get_second_address(), SC_HEARTBEAT, &c));
		}
		answer_sctp_paths_heartbeat(&c, true);
	}
	cr_expect_eq(r.a->path[1]->state, DDPS_SCTP_ACTIVE);
	r.net.sent = count_heartbeats;
	heartbeats = 0;
	sn_run(&r.net, 3600 * 1000 * MS);
	cr_expect_eq(heartbeats, 0);
}

Test(sctp_doubt, answers_that_are_none)
{
	static const uint8_t info[36] = { 0, 1, 0, 36 }, other[36] = { 0, 2, 0, 36 };

	raw_up(&r);
	raw_chunk(&r, r.tag, SC_HEARTBEAT_ACK, 0, NULL, 0);
	raw_chunk(&r, r.tag, SC_HEARTBEAT_ACK, 0, info, 35);
	raw_chunk(&r, r.tag, SC_HEARTBEAT_ACK, 0, info, 36); /* nonce 0 */
	raw_chunk(&r, r.tag, SC_HEARTBEAT_ACK, 0, other, 36);
	cr_expect_eq(r.a->path[0]->good, 0);
	cr_expect_eq(r.n, 0);
	cr_expect_str_eq(raw_state(&r), "ESTABLISHED");
}

/* ---- the smallest MTU ---- */

Test(sctp_doubt, a_probe_of_the_least_size)
{
	struct ddps_sctp_param p = { .port = RAW_PORT, .streams = 10 };
	static struct iovec iov[64];
	static uint8_t head[4096];
	struct ddps_sctp_out out = { .iov = iov,
				     .iov_max = 64,
				     .head = head,
				     .head_max = sizeof head,
				     .max_segs = 1,
				     .max_len = 1500 };
	struct ddps_sc_chunk c;
	struct ddps_rbuf b;

	raw_init(&r);
	cr_assert_eq(ddps_sctp_connect(r.e, &p, get_first_address(), 1, RAW_PEER, 9899,
				       &raw_upcalls, &r, r.net.now, &r.a),
		     0);
	sn_flush(&r.net);
	raw_answer_init(&r);
	raw_chunk(&r, r.tag, SC_COOKIE_ACK, 0, NULL, 0);
	r.n = 0;
	ddps_pmtu_start(&r.a->path[0]->tx.pmtu, 0, r.net.now);
	for (unsigned least = 0; least < 2; least++) {
		size_t at = 0;

		ddps_sc_touch(r.a);
		cr_assert_eq(ddps_sctp_output(r.e, &out, r.net.now), 1);
		cr_assert(out.probe);
		cr_expect_eq(out.len, least ? 12 + 40 + 4 : 1200 - 28);
		for (unsigned i = 0; i < out.niov; at += iov[i++].iov_len)
			memcpy(r.buf + at, iov[i].iov_base, iov[i].iov_len);
		b = ddps_sc_chunks(r.buf, at);
		cr_assert_gt(ddps_sc_chunk_next(&b, &c), 0);
		cr_expect_eq(c.type, SC_HEARTBEAT);
		cr_assert_gt(ddps_sc_chunk_next(&b, &c), 0);
		cr_expect_eq(c.type, SC_PAD);
		cr_expect_eq(c.vlen, least ? 0 : 1200 - 28 - 12 - 40 - 4);
		/* the system takes no more than 68 octets; then the probe is due again */
		ddps_sctp_refused(r.e, &out, 68, r.net.now);
		r.a->path[0]->tx.pmtu.out = false;
		r.a->path[0]->tx.pmtu.next_at = r.net.now;
	}
	cr_expect_eq(r.a->path[0]->tx.pmtu.size, 68);
}

/* ---- the user lets go of it while it is informed of a path ---- */

static unsigned told_of;

static void let_sctp_doubt_go(void *user, const struct ddps_sctp_addr *peer,
			      enum ddps_sctp_path_state s)
{
	(void)user, (void)peer, (void)s;
	told_of++;
	ddps_sctp_assoc_free(r.a, r.net.now);
	r.a = NULL;
}

static void let_go_when_told(void)
{
	static struct ddps_sctp_up up;

	up = raw_upcalls;
	up.path = let_sctp_doubt_go;
	told_of = 0;
	ddps_sctp_assoc_set_up(r.a, &up, &r);
}

static void nothing_is_left(void)
{
	cr_expect_eq(told_of, 1);
	cr_expect_null(r.a);
	raw_wait(&r, 1000);
	cr_expect_eq(r.e->st.assocs, 0);
	cr_expect_eq(r.gone, 0);
}

Test(sctp_doubt, let_go_when_a_timer_shows_it)
{
	open_both_paths();
	let_go_when_told();
	cr_assert_eq(raw_user_send(&r, 0, 0, "x"), 0);
	for (unsigned i = 0; r.a; i++) {
		cr_assert_lt(i, 1000);
		cr_assert(sn_step(&r.net, UINT64_MAX));
	}
	nothing_is_left();
	cr_expect_eq(r.e->st.aborts_out, 1);
}

/* One SACK heals both paths: only the first of them is reported. */
Test(sctp_doubt, let_go_when_a_sack_shows_it)
{
	uint32_t tags[2];
	uint8_t quote[8];

	open_both_paths();
	cr_assert_eq(raw_user_send(&r, 0, 0, "x"), 0);
	cr_assert_eq(ddps_sctp_set_primary(r.a, get_second_address(), r.net.now), 0);
	cr_assert_eq(raw_user_send(&r, 0, 0, "y"), 0);
	cr_assert(r.a->path[0]->tx.nflight == 1 && r.a->path[1]->tx.nflight == 1);
	tags[0] = htobe32((uint32_t)RAW_PORT << 16 | RAW_PEER);
	tags[1] = htobe32(r.own);
	memcpy(quote, tags, sizeof quote);
	for (unsigned i = 0; i < 2; i++) {
		struct ddps_sctp_route way = { .peer = r.net.node[1].addr[i], .encap = 9899 };

		ddps_sctp_icmp(r.e, &way, DDPS_SCTP_ICMP_UNREACH_PROTO, 0, quote, sizeof quote,
			       r.net.now);
	}
	cr_assert(r.a->path[0]->state == DDPS_SCTP_DOUBTFUL &&
		  r.a->path[1]->state == DDPS_SCTP_DOUBTFUL);
	cr_assert(r.a->path[0]->tx.nflight == 1 || r.a->path[1]->tx.nflight == 1);
	let_go_when_told();
	raw_sack(&r, r.tsn + 1, 100000);
	nothing_is_left();
}
