/* SPDX-License-Identifier: BSD-2-Clause */
/* What a packet of the peer's changes besides what is in it, and what begins anew with an association
 * that does. */
#include "sctp_paths_fixture.h"

TestSuite(sctp_heard, .fini = fini);

static void send_sctp_heard_heartbeat(void)
{
	raw_chunk(&r, r.tag, SC_HEARTBEAT, 0, "\0\1\0\10abcd", 8);
	cr_assert(raw_any(&r, SC_HEARTBEAT_ACK, NULL));
}

/* Its address of last is where the end is answered; and that has a bound in time. */
Test(sctp_heard, where_the_end_is_answered)
{
	open_both_paths();
	cr_assert_eq(r.a->guard_at, UINT64_MAX);
	raw_begin(&r, r.tag);
	ddps_sc_put_chunk(&r.w, SC_SHUTDOWN, 0, &(uint32_t){ htobe32(r.tsn - 1) }, 4);
	send_second();
	cr_assert_str_eq(raw_state(&r), "SHUTDOWN-ACK-SENT");
	cr_expect_eq(sent_to(get_second_address(), SC_SHUTDOWN_ACK, NULL), 1);
	cr_expect_eq(sent_to(get_first_address(), SC_SHUTDOWN_ACK, NULL), 0);
	cr_expect_eq(r.a->guard_at,
		     r.net.now + ddps_sent_late(&r.a->path[0]->tx, 5ull * r.e->c.rto_max_ms * MS));
}

static void shutting_down(void)
{
	raw_up(&r);
	ddps_sctp_shutdown(r.a, r.net.now);
	raw_wait(&r, 4000);
	cr_assert_str_eq(raw_state(&r), "SHUTDOWN-SENT");
	cr_assert_geq(r.a->ctl_n, 1);
	cr_assert_geq(r.a->errors, 1);
}

/* It is alive, and has not answered the SHUTDOWN yet. */
Test(sctp_heard, a_peer_that_is_heard_while_it_ends, .description = "9260-9.2-5")
{
	shutting_down();
	send_sctp_heard_heartbeat();
	cr_expect_eq(r.a->ctl_n, 0);
	cr_expect_eq(r.a->errors, 0);
}

Test(sctp_heard, data_while_it_ends_begins_t2_anew, .description = "9260-9.2-9")
{
	shutting_down();
	raw_data(&r, RAW_TSN, 0, 0, 3, "x");
	cr_expect(raw_any(&r, SC_SHUTDOWN, NULL));
	cr_expect_eq(r.a->ctl_rto, ddps_sent_rto(&r.a->tx, &r.a->path[0]->tx));
	cr_expect_geq(r.a->ctl_at, r.net.now + r.a->ctl_rto);
	cr_expect_leq(r.a->ctl_at, r.net.now + r.a->ctl_rto + r.a->ctl_rto / 16);
}

/* T3 may be far away: whoever is heard again after a silence has what it missed immediately. */
Test(sctp_heard, after_a_silence_data_leaves_immediately)
{
	struct ddps_sent_path *p;

	raw_up(&r);
	p = &r.a->path[0]->tx;
	cr_assert_eq(raw_user_send(&r, 0, 0, "x"), 0);
	for (unsigned i = 0; i < 1000 && p->t3s < 3; i++)
		raw_wait(&r, 20);
	cr_assert_eq(p->t3s, 3);
	raw_wait(&r, 1500);
	cr_assert_not(raw_any(&r, SC_DATA, NULL));
	send_sctp_heard_heartbeat();
	cr_expect(raw_any(&r, SC_DATA, NULL));
	send_sctp_heard_heartbeat();
	cr_expect_not(raw_any(&r, SC_DATA, NULL));
}

/* A timer had asked for data: when all of it is acknowledged nothing waits to be sent. */
Test(sctp_heard, nothing_waits_when_all_is_acknowledged)
{
	uint32_t val[3];

	raw_up(&r);
	cr_assert_eq(raw_user_send(&r, 0, 0, "x"), 0);
	for (unsigned i = 0; i < 1000 && !r.a->path[0]->tx.t3s; i++)
		raw_wait(&r, 20);
	cr_assert_eq(r.a->path[0]->tx.t3s, 1);
	val[0] = htobe32(r.tsn);
	val[1] = htobe32(100000);
	val[2] = 0;
	raw_begin(&r, r.tag);
	ddps_sc_put_chunk(&r.w, SC_SACK, 0, val, sizeof val);
	raw_hand(&r);
	cr_expect_not(ddps_sctp_pending(r.e));
}

/* The window of one path is full, and the user chooses another one. */
Test(sctp_heard, what_waits_leaves_by_the_path_that_is_chosen)
{
	open_both_paths();
	cr_assert_eq(raw_user_send(&r, 0, 0, "x"), 0);
	r.a->path[0]->tx.cc.cwnd = 1;
	cr_assert_eq(raw_user_send(&r, 0, 0, "y"), 0);
	cr_assert_eq(sent_to(get_first_address(), SC_DATA, NULL), 0);
	cr_assert_eq(ddps_sctp_set_primary(r.a, get_second_address(), r.net.now), 0);
	r.n = 0;
	sn_flush(&r.net);
	cr_expect_eq(sent_to(get_second_address(), SC_DATA, NULL), 1);
}

/* ---- anew ---- */

/* It was to be asked out of turn: what is of before is forgotten. */
Test(sctp_heard, a_restart_asks_nothing_out_of_turn)
{
	open_both_paths();
	r.a->path[0]->hb_now = true;
	put_restart();
	raw_send(&r);
	cr_assert(raw_take_init_ack(&r));
	raw_echo(&r);
	cr_assert_eq(r.restarted, 1);
	cr_expect_not(r.a->path[0]->hb_now);
}

/* Both sides opened, and the peer goes by its own INIT: the paths begin anew with it. */
Test(sctp_heard, paths_begin_anew_where_both_opened)
{
	uint8_t params[64];
	struct ddps_wbuf w = ddps_wbuf_init(params, sizeof params);
	struct ddps_sc_path *p;
	uint32_t tag, tsn;

	raw_init(&r);
	raw_connect(&r);
	ddps_sc_put_tlv(&w, SC_P_COOKIE, "cook", 4);
	ddps_sc_put_addr(&w, get_second_address());
	{
		struct ddps_sc_chunk c;
		struct ddps_sc_init i;

		cr_assert_eq(raw_got(&r, 0, 0, &c), SC_INIT);
		cr_assert_eq(ddps_sc_decode_init(&i, &c), 0);
		tag = i.tag;
		tsn = i.tsn;
	}
	raw_begin(&r, 0);
	raw_put_init(&r, RAW_TAG + 1, 100000, 5, 5, RAW_TSN, NULL, 0);
	raw_send(&r);
	cr_assert(raw_take_init_ack(&r));
	cr_assert_eq(r.tag, tag);
	raw_begin(&r, tag);
	raw_put_init(&r, RAW_TAG, 100000, 5, 5, RAW_TSN, params, (size_t)(w.p - params));
	r.buf[12] = SC_INIT_ACK;
	raw_send(&r);
	raw_chunk(&r, tag, SC_COOKIE_ACK, 0, NULL, 0);
	cr_assert_str_eq(raw_state(&r), "ESTABLISHED");
	cr_assert_eq(r.a->npaths, 2);
	cr_assert_eq(r.a->tx.next, tsn);
	p = r.a->path[1];
	p->state = DDPS_SCTP_INACTIVE;
	p->errors = 6;
	p->good = 2;
	p->hb_out = p->hb_now = true;
	raw_begin(&r, tag);
	ddps_sc_put_chunk(&r.w, SC_COOKIE_ECHO, 0, r.cookie, r.cookie_len);
	raw_hand(&r);
	cr_assert_eq(r.a->peer_tag, RAW_TAG + 1);
	cr_expect_eq(p->state, DDPS_SCTP_UNCONFIRMED);
	cr_expect_eq(p->errors, 0);
	cr_expect_eq(p->good, 0);
	cr_expect(!p->hb_out && !p->hb_now);
	cr_expect_eq(p->hb_at, r.net.now);
}
