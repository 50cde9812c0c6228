/* SPDX-License-Identifier: BSD-2-Clause */
/* SCTP's set-up, restart and tags, packet by packet. */
#include "sctp_raw_fixture.h"

static struct raw r;

static void fini(void)
{
	raw_fini(&r);
}

static void send_sctp_setup_init(uint32_t tag, uint32_t rwnd, uint16_t os, uint16_t mis,
				 const void *params, size_t len)
{
	raw_begin(&r, 0);
	raw_put_init(&r, tag, rwnd, os, mis, RAW_TSN, params, len);
	raw_send(&r);
}

static int get_sctp_setup_cause(const struct ddps_sc_chunk *c)
{
	return c->vlen >= 4 ? c->val[0] << 8 | c->val[1] : 0;
}

/* ---- the passive side ---- */

Test(sctp_setup, passive_side_answers_and_keeps_nothing, .fini = fini,
     .description = "9260-5.1-3 9260-5.1-4 9260-5.1-5 9260-5.1-6 9260-5.1.1-1 9260-3.3.3-5 "
		    "9260-3.1-3 6951-3.2-1")
{
	struct ddps_sctp_stats st;
	struct ddps_sc_chunk c;
	struct ddps_sc_init i;

	raw_init(&r);
	raw_init_chunk(&r, RAW_TAG, RAW_TSN);
	cr_assert_eq(r.n, 1);
	cr_assert_eq(raw_got(&r, 0, 0, &c), SC_INIT_ACK);
	cr_expect_eq(raw_got(&r, 0, 1, NULL), -1);
	cr_expect_eq(raw_got_tag(&r, 0), RAW_TAG);
	cr_assert_eq(ddps_sc_decode_init(&i, &c), 0);
	cr_expect(i.tag && i.rwnd >= 1500 && i.os == 5 && i.mis == 10);
	cr_expect(i.cookie && !i.naddr && i.has_adaptation && i.adaptation == 1);
	ddps_sctp_stats(r.e, &st);
	cr_expect_eq(st.assocs, 0);
	cr_expect_eq(ddps_sctp_deadline(r.e), UINT64_MAX);
	cr_expect_leq(r.log[0].len, 3 * 60);
}

Test(sctp_setup, cookie_makes_the_association, .fini = fini,
     .description = "9260-5.1-11 9260-3.3.12-1 9260-5.1.1-2 9260-5.1.5-6 9260-8.4-5")
{
	struct ddps_sctp_info i;

	raw_up(&r);
	cr_expect_eq(raw_got_tag(&r, 0), RAW_TAG);
	cr_expect_eq(r.ups, 0);
	ddps_sctp_info(r.a, &i);
	cr_expect_str_eq(i.state, "ESTABLISHED");
	cr_expect(i.out_streams == 5 && i.in_streams == 5 && !i.by_us && !i.has_adaptation);
	raw_echo(&r); /* our COOKIE ACK was lost: table 12, D */
	cr_expect_eq(raw_got(&r, 0, 0, NULL), SC_COOKIE_ACK);
	cr_expect_eq(r.accepted, 1);
}

Test(sctp_setup, data_behind_the_cookie_is_taken_and_acknowledged, .fini = fini,
     .description = "9260-5.1-7 9260-5.1.5-d1 9260-5.1-18 9260-5.1-10")
{
	struct ddps_sc_chunk c;

	raw_init(&r);
	raw_init_chunk(&r, RAW_TAG, RAW_TSN);
	cr_assert(raw_take_init_ack(&r));
	raw_begin(&r, r.tag);
	ddps_sc_put_chunk(&r.w, SC_COOKIE_ECHO, 0, r.cookie, r.cookie_len);
	raw_put_data(&r, RAW_TSN, 1, 0, 7, "hello");
	raw_send(&r);
	cr_expect_eq(r.messages, 1);
	cr_assert_eq(raw_got(&r, 0, 0, NULL), SC_COOKIE_ACK);
	cr_assert_eq(raw_got(&r, 0, 1, &c), SC_SACK);
	cr_expect_eq(c.val[3], RAW_TSN & 0xff);
}

Test(sctp_setup, inits_that_are_wrong, .fini = fini,
     .description = "9260-3.3.2-8 9260-3.3.2-9 9260-3.3.2-10 9260-3.3.2-11 9260-3.3.2-3")
{
	static const uint8_t host[] = { 0, 11, 0, 8, 'h', 'o', 's', 't' };
	static const uint8_t broken[] = { 0, 5, 0, 9, 1, 2, 3, 4 };
	static const uint8_t bad_addr[] = { 0, 5, 0, 12, 1, 2, 3, 4, 5, 6, 7, 8 };

	raw_init(&r);
	send_sctp_setup_init(0, 100000, 1, 1, NULL, 0);
	cr_expect_eq(r.n, 0);
	for (unsigned k = 0; k < 6; k++) {
		send_sctp_setup_init(RAW_TAG, k == 0 ? 1499 : 1500, k == 1 ? 0 : 1, k == 2 ? 0 : 1,
				     k == 3   ? host
				     : k == 4 ? broken
					      : bad_addr,
				     k == 3   ? sizeof host
				     : k == 4 ? sizeof broken
				     : k == 5 ? sizeof bad_addr
					      : 0);
		cr_assert_eq(raw_got(&r, 0, 0, NULL), SC_ABORT, "%u", k);
		cr_expect_eq(raw_got_tag(&r, 0), RAW_TAG);
		cr_expect_eq(r.log[0].data[13], 0, "T bit");
	}
}

Test(sctp_setup, unknown_parameters_are_reported_in_the_init_ack, .fini = fini,
     .description = "9260-3.2.2-1 9260-3.3.3.1-d1 9260-3.2.1-d2")
{
	static const uint8_t params[] = { 0xc0, 0, 0, 4, 0x80, 0,   0,	 4,
					  0xff, 1, 0, 7, 'a',  'b', 'c', 0 };
	struct ddps_sc_chunk c;
	struct ddps_rbuf b;
	struct ddps_sc_tlv t;
	unsigned n = 0;

	raw_init(&r);
	send_sctp_setup_init(RAW_TAG, 100000, 1, 1, params, sizeof params);
	cr_assert_eq(raw_got(&r, 0, 0, &c), SC_INIT_ACK);
	b = ddps_rbuf_init(c.val + 16, c.vlen - 16);
	while (ddps_sc_tlv_next(&b, &t) > 0) {
		if (t.type != SC_P_UNRECOGNIZED)
			continue;
		cr_expect(!memcmp(t.val, params + (n ? 8 : 0), n ? 7 : 4));
		n++;
	}
	cr_expect_eq(n, 2);
}

Test(sctp_setup, an_init_must_be_alone_with_tag_0, .fini = fini,
     .description = "9260-3-1 9260-8.5.1-1 9260-8.5.1-2 9260-12.3-1")
{
	raw_init(&r);
	raw_begin(&r, 5);
	raw_put_init(&r, RAW_TAG, 100000, 1, 1, 1, NULL, 0);
	raw_send(&r);
	cr_expect_eq(r.n, 0);
	raw_begin(&r, 0);
	raw_put_init(&r, RAW_TAG, 100000, 1, 1, 1, NULL, 0);
	raw_put_data(&r, 1, 0, 0, 7, "x");
	raw_send(&r);
	cr_expect_eq(r.n, 0);
	raw_begin(&r, 0);
	raw_put_data(&r, 1, 0, 0, 7, "x");
	raw_put_init(&r, RAW_TAG, 100000, 1, 1, 1, NULL, 0);
	raw_send(&r);
	cr_expect_eq(r.n, 0);
}

/* ---- the active side ---- */

Test(sctp_setup, active_side, .fini = fini,
     .description = "9260-5.1-1 9260-5.1.4-1 9260-5.1.4-2 9260-3.3.11-2 9260-5.1-9 9260-5.1.6-d1")
{
	struct ddps_sc_chunk c;

	raw_init(&r);
	raw_connect(&r);
	cr_expect_eq(raw_got_tag(&r, 0), 0);
	raw_wait(&r, 1200); /* T1: the same once more */
	cr_assert_eq(raw_got(&r, 0, 0, &c), SC_INIT);
	raw_answer_init(&r);
	cr_assert_eq(raw_got(&r, 0, 0, &c), SC_COOKIE_ECHO);
	cr_expect(c.vlen == 4 && !memcmp(c.val, "cook", 4));
	cr_expect_eq(raw_got_tag(&r, 0), RAW_TAG);
	cr_expect_eq(raw_user_send(&r, 0, 0, "waits"), 0);
	cr_expect_eq(r.n, 0);
	raw_wait(&r, 4000);
	cr_assert_eq(raw_got(&r, 0, 0, &c), SC_COOKIE_ECHO);
	raw_chunk(&r, r.tag, SC_COOKIE_ACK, 0, NULL, 0);
	cr_expect_eq(r.ups, 1);
	cr_expect_str_eq(raw_state(&r), "ESTABLISHED");
}

Test(sctp_setup, gives_up_after_eight_more_attempts, .fini = fini,
     .description = "9260-4-3 etsi-as-1-3-1")
{
	unsigned n = 1;

	raw_init(&r);
	raw_connect(&r);
	for (unsigned k = 0; k < 600 && !r.gone; k++) {
		raw_wait(&r, 1000);
		n += r.n;
	}
	cr_expect_eq(n, 9);
	cr_expect_eq(r.gone, 1);
	cr_expect_eq(r.why.code, DDPS_E_TIMEDOUT);
}

static void send_sctp_setup_init_ack(uint32_t tag, uint32_t rwnd, uint16_t os, uint16_t mis,
				     const void *p, size_t n)
{
	raw_begin(&r, r.tag);
	raw_put_init(&r, tag, rwnd, os, mis, RAW_TSN, p, n);
	r.buf[12] = SC_INIT_ACK;
	raw_send(&r);
}

Test(sctp_setup, init_acks_that_are_wrong_end_the_attempt,
     .description = "9260-3.3.3-2 9260-3.3.3-6 9260-3.3.3-7 9260-3.3.3-9 9260-3.3.3-10")
{
	static const uint8_t host[] = { 0, 11, 0, 8, 'h', 'o', 's', 't' };
	static const uint16_t cause[] = { SC_CAUSE_INVALID, SC_CAUSE_INVALID, SC_CAUSE_INVALID,
					  SC_CAUSE_INVALID, SC_CAUSE_ADDRESS, SC_CAUSE_MISSING };
	struct ddps_sc_chunk c;
	struct ddps_sc_init i;

	for (unsigned k = 0; k < 6; k++) {
		raw_init(&r);
		raw_connect(&r);
		raw_got(&r, 0, 0, &c);
		ddps_sc_decode_init(&i, &c);
		r.tag = i.tag;
		send_sctp_setup_init_ack(k == 0 ? 0 : RAW_TAG, k == 1 ? 1499 : 1500, k == 2 ? 0 : 1,
					 k == 3 ? 0 : 1, host, k == 4 ? sizeof host : 0);
		cr_assert_eq(raw_got(&r, 0, 0, &c), SC_ABORT, "%u", k);
		cr_expect_eq(get_sctp_setup_cause(&c), cause[k], "%u", k);
		cr_expect_eq(c.flags, k == 0);
		cr_expect_eq(raw_got_tag(&r, 0), k == 0 ? r.tag : RAW_TAG);
		raw_wait(&r, 1);
		cr_expect_eq(r.gone, 1);
		raw_fini(&r);
	}
}

/* ---- both open, restart ---- */

Test(sctp_setup, an_init_that_crosses_ours_gets_our_tag, .fini = fini,
     .description = "9260-5.2.1-1 9260-5.2.1-3 9260-5.2.1-9 9260-5.2.1-10")
{
	struct ddps_sc_chunk c;
	struct ddps_sc_init ours, ack;

	raw_init(&r);
	raw_connect(&r);
	raw_got(&r, 0, 0, &c);
	ddps_sc_decode_init(&ours, &c);
	raw_init_chunk(&r, RAW_TAG, RAW_TSN);
	cr_assert_eq(raw_got(&r, 0, 0, &c), SC_INIT_ACK);
	ddps_sc_decode_init(&ack, &c);
	cr_expect(ack.tag == ours.tag && ack.tsn == ours.tsn);
	cr_expect_str_eq(raw_state(&r), "COOKIE-WAIT");
	cr_assert(raw_take_init_ack(&r));
	raw_echo(&r); /* table 12, B */
	cr_expect_eq(raw_got(&r, 0, 0, NULL), SC_COOKIE_ACK);
	cr_expect_str_eq(raw_state(&r), "ESTABLISHED");
	cr_expect(r.ups == 1 && r.accepted == 0);
}

static void restart_init(uint32_t tag)
{
	raw_init_chunk(&r, tag, 77777);
}

Test(sctp_setup, a_restart_begins_afresh, .fini = fini,
     .description = "9260-5.2.2-4 9260-5.2.2-5 9260-5.2.2-6 9260-5.2.2-8 9260-5.2.2-9 9260-5.2.4-4 "
		    "9260-5.2.4-5")
{
	uint32_t old_tag;
	struct ddps_sc_chunk c;

	raw_up(&r);
	raw_data(&r, RAW_TSN + 1, 0, 1, 3, "ahead"); /* held: another must come first */
	raw_data(&r, RAW_TSN + 3, 0, 0, 2, "begun");
	cr_expect_eq(raw_user_send(&r, 4, 0, "mine"), 0);
	old_tag = r.tag;
	restart_init(0x99999999);
	cr_expect_str_eq(raw_state(&r), "ESTABLISHED");
	cr_assert(raw_take_init_ack(&r));
	cr_expect_neq(r.tag, old_tag);
	cr_expect_eq(r.restarted, 0);
	raw_echo(&r);
	cr_expect_eq(raw_got(&r, 0, 0, NULL), SC_COOKIE_ACK);
	cr_expect_eq(raw_got_tag(&r, 0), 0x99999999);
	cr_expect_eq(r.restarted, 1);
	cr_expect_eq(r.e->st.held, 0);
	raw_data(&r, 77777, 0, 0, 3, "first");
	cr_expect_eq(r.messages, 1);
	cr_expect_eq(raw_user_send(&r, 4, 0, "again"), 0);
	cr_assert(raw_any(&r, SC_DATA, &c));
	cr_expect(!memcmp(c.val + 6, "\0\0", 2)); /* SSN */
	raw_chunk(&r, old_tag, SC_ABORT, 0, NULL, 0);
	cr_expect_eq(r.gone, 0);
}

Test(sctp_setup, a_restart_with_new_addresses_is_refused, .fini = fini,
     .description = "9260-5.2.2-2 9260-5.2.2-3 9260-5.2.2-11")
{
	static const uint8_t more[] = { 0, 5, 0, 8, 10, 9, 9, 9 };
	struct ddps_sc_chunk c;

	raw_up(&r);
	send_sctp_setup_init(0x99999999, 100000, 5, 5, more, sizeof more);
	cr_assert_eq(raw_got(&r, 0, 0, &c), SC_ABORT);
	cr_expect_eq(raw_got_tag(&r, 0), 0x99999999);
	cr_expect_eq(get_sctp_setup_cause(&c), SC_CAUSE_RESTART);
	cr_expect(c.vlen == 12 && !memcmp(c.val + 4, more, sizeof more));
	cr_expect_str_eq(raw_state(&r), "ESTABLISHED");
}

Test(sctp_setup, a_restart_in_every_state_of_shutdown, .description = "9260-5.2.4-6 9260-9.2-18")
{
	for (unsigned k = 0; k < 4; k++) {
		uint32_t cum;

		raw_up(&r);
		cr_assert_eq(raw_user_send(&r, 0, 0, "x"), 0);
		cum = htobe32(r.tsn - 1);
		if (k == 0) {
			ddps_sctp_shutdown(r.a, r.net.now);
		} else if (k == 1) {
			raw_chunk(&r, r.tag, SC_SHUTDOWN, 0, &cum, 4);
		} else {
			raw_sack(&r, r.tsn, 100000);
			if (k == 2)
				ddps_sctp_shutdown(r.a, r.net.now);
			cum = htobe32(r.tsn);
			if (k == 3)
				raw_chunk(&r, r.tag, SC_SHUTDOWN, 0, &cum, 4);
		}
		raw_wait(&r, 1);
		cr_expect_str_eq(raw_state(&r), k == 0	 ? "SHUTDOWN-PENDING"
						: k == 1 ? "SHUTDOWN-RECEIVED"
						: k == 2 ? "SHUTDOWN-SENT"
							 : "SHUTDOWN-ACK-SENT");
		restart_init(0x99999999);
		if (k == 3) {
			cr_expect_eq(raw_got(&r, 0, 0, NULL), SC_SHUTDOWN_ACK);
		} else {
			cr_assert(raw_take_init_ack(&r));
			raw_echo(&r);
			cr_expect_eq(raw_got(&r, 0, 0, NULL), SC_COOKIE_ACK);
			cr_expect_eq(r.restarted, 1);
			cr_expect_str_eq(raw_state(&r), "ESTABLISHED");
		}
		raw_fini(&r);
	}
}

Test(sctp_setup, a_restart_that_meets_shutdown_ack_sent, .fini = fini,
     .description = "9260-5.2.4-6")
{
	uint32_t cum;
	struct ddps_sc_chunk c;

	raw_up(&r);
	cum = htobe32(r.tsn - 1);
	restart_init(0x99999999); /* while it was up */
	cr_assert(raw_take_init_ack(&r));
	r.w = ddps_wbuf_init(r.buf, sizeof r.buf);
	raw_chunk(&r, r.a->own_tag, SC_SHUTDOWN, 0, &cum, 4);
	cr_expect_str_eq(raw_state(&r), "SHUTDOWN-ACK-SENT");
	raw_echo(&r);
	cr_expect(raw_any(&r, SC_SHUTDOWN_ACK, NULL));
	cr_assert(raw_any(&r, SC_ERROR, &c));
	cr_expect_eq(get_sctp_setup_cause(&c), SC_CAUSE_SHUTTING);
	cr_expect_eq(raw_got_tag(&r, 0), RAW_TAG);
	cr_expect_eq(r.restarted, 0);
}

/* ---- tags ---- */

Test(sctp_setup, packets_with_another_tag_do_nothing, .fini = fini,
     .description = "9260-8.5-2 9260-8.5-3 9260-8.5.1-4 6951-5.4-1")
{
	uint8_t data[] = "x";
	uint32_t cum = 0;

	raw_up(&r);
	for (unsigned type = 0; type < 15; type++) {
		if (type == SC_INIT || type == SC_COOKIE_ECHO)
			continue;
		r.net.node[1].udp = 12345; /* must not be learned */
		raw_chunk(&r, r.tag ^ 1, (uint8_t)type, 0,
			  type == SC_SHUTDOWN ? (void *)&cum : data, type == SC_SHUTDOWN ? 4 : 1);
		cr_expect_eq(r.n, 0, "%u", type);
		cr_expect_str_eq(raw_state(&r), "ESTABLISHED");
	}
	raw_chunk(&r, r.tag, SC_ABORT, SC_FLAG_T, NULL, 0); /* own tag with T */
	raw_chunk(&r, RAW_TAG, SC_ABORT, 0, NULL, 0);	    /* the peer's without */
	cr_expect_eq(r.gone, 0);
	cr_expect_eq(r.a->path[0]->encap, r.net.node[1].udp); /* this one had the tag */
	raw_chunk(&r, RAW_TAG, SC_ABORT, SC_FLAG_T, NULL, 0);
	cr_expect_eq(r.gone, 1);
}

Test(sctp_setup, an_abort_may_stand_behind_other_chunks, .fini = fini,
     .description = "9260-3.3.7-2 9260-3.3.7-3")
{
	raw_up(&r);
	raw_begin(&r, r.tag);
	ddps_sc_put_chunk(&r.w, SC_HEARTBEAT, 0, "\0\1\0\10abcd", 8);
	ddps_sc_put_chunk(&r.w, SC_ABORT, 0, NULL, 0);
	raw_put_data(&r, RAW_TSN, 0, 0, 7, "late");
	raw_send(&r);
	cr_expect_eq(r.gone, 1);
	cr_expect_eq(r.messages, 0);
	cr_expect_eq(r.n, 0);
}
