/* SPDX-License-Identifier: BSD-2-Clause */
/* How an association ends: its time, its counts, and what is reported of it. */
#include "sctp_raw_fixture.h"

static struct raw r;

static void fini(void)
{
	raw_fini(&r);
}

TestSuite(sctp_over, .fini = fini);

static uint32_t cum_of(void)
{
	return htobe32(r.a->own_tsn - 1);
}

Test(sctp_over, a_shutdown_has_its_time, .description = "9260-9.2-11")
{
	static const struct {
		uint32_t guard, least, most;
	} row[] = { { 700, 700, 750 }, { 0, 5 * 2000, 5 * 2000 + 700 } };

	for (unsigned i = 0; i < 2; i++) {
		uint64_t at;

		if (i)
			fini();
		raw_up(&r);
		r.e->c.shutdown_guard_ms = row[i].guard;
		r.e->c.rto_max_ms = 2000;
		at = r.net.now;
		ddps_sctp_shutdown(r.a, at);
		sn_flush(&r.net);
		while (!r.gone)
			cr_assert(sn_step(&r.net, UINT64_MAX));
		at = (r.net.now - at) / MS;
		cr_expect(at >= row[i].least && at <= row[i].most, "%lu", (unsigned long)at);
		cr_expect_eq(r.why.code, DDPS_E_TIMEDOUT);
		cr_expect_eq(r.e->st.aborts_out, 1);
	}
}

Test(sctp_over, a_shutdown_without_an_answer, .description = "9260-9.2-4 etsi-at-2-5")
{
	raw_up(&r);
	r.e->c.assoc_max_retrans = 3;
	ddps_sctp_shutdown(r.a, r.net.now);
	sn_flush(&r.net);
	for (unsigned n = 1; n <= 4; n++) {
		cr_expect_eq(r.gone, 0);
		while (!r.gone && r.a->ctl_n < n)
			cr_assert(sn_step(&r.net, UINT64_MAX));
	}
	cr_expect_eq(r.gone, 1);
	cr_expect_eq(r.why.code, DDPS_E_RESET);
	cr_expect(strstr(r.why.text, "4 times") != NULL, "%s", r.why.text);
}

/* Answers to heartbeats do not make it last. */
Test(sctp_over, a_shutdown_ack_without_an_answer, .description = "etsi-at-2-12")
{
	uint32_t cum;
	struct ddps_sc_chunk c;
	uint8_t info[64];
	size_t n;

	raw_up(&r);
	r.e->c.assoc_max_retrans = 3;
	r.n = 0;
	while (!raw_any(&r, SC_HEARTBEAT, &c))
		cr_assert(sn_step(&r.net, UINT64_MAX));
	cr_assert_leq(n = c.vlen, sizeof info);
	memcpy(info, c.val, n);
	cum = cum_of();
	raw_chunk(&r, r.tag, SC_SHUTDOWN, 0, &cum, sizeof cum);
	cr_assert_str_eq(raw_state(&r), "SHUTDOWN-ACK-SENT");
	while (r.a->ctl_n < 2)
		cr_assert(sn_step(&r.net, UINT64_MAX));
	cr_expect_eq(r.a->errors, 2);
	raw_chunk(&r, r.tag, SC_HEARTBEAT_ACK, 0, info, n);
	cr_expect_eq(r.a->errors, 0);
	cr_expect_eq(r.a->ctl_n, 2);
	while (!r.gone)
		cr_assert(sn_step(&r.net, UINT64_MAX));
	cr_expect_eq(r.why.code, DDPS_E_TIMEDOUT);
	cr_expect(strstr(r.why.text, "SHUTDOWN") != NULL, "%s", r.why.text);
}

/* Of one batch: news, and that it is over. */
Test(sctp_over, nothing_is_reported_of_what_is_over)
{
	uint32_t sack[3];

	raw_up(&r);
	cr_assert_eq(raw_user_send(&r, 0, 0, "x"), 0);
	sack[0] = htobe32(r.tsn);
	sack[1] = htobe32(100000);
	sack[2] = 0;
	raw_begin(&r, r.tag);
	ddps_sc_put_chunk(&r.w, SC_SACK, 0, sack, sizeof sack);
	ddps_sc_put_chunk(&r.w, SC_ABORT, 0, NULL, 0);
	raw_send(&r);
	cr_expect_eq(r.gone, 1);
	cr_expect_eq(r.acked, 0);
}

Test(sctp_over, an_answer_and_then_an_abort)
{
	static const uint8_t cookie[] = { 0, SC_P_COOKIE, 0, 8, 'c', 'o', 'o', 'k' };
	struct ddps_sctp_in in[2];
	uint8_t abort[16];
	struct ddps_wbuf w = ddps_wbuf_init(abort, sizeof abort);

	raw_init(&r);
	raw_connect(&r);
	r.tag = r.a->own_tag;
	raw_begin(&r, r.tag);
	raw_put_init(&r, RAW_TAG, 100000, 5, 5, RAW_TSN, cookie, sizeof cookie);
	r.buf[12] = SC_INIT_ACK;
	ddps_sc_put_header(&w, RAW_PEER, RAW_PORT, r.tag);
	ddps_sc_put_chunk(&w, SC_ABORT, 0, NULL, 0);
	ddps_sc_crc_put(abort, sizeof abort);
	in[0] = (struct ddps_sctp_in){ .data = r.buf, .len = (size_t)(r.w.p - r.buf) };
	ddps_sc_crc_put(r.buf, in[0].len);
	in[0].from.peer = r.net.node[1].addr[0];
	in[1] = in[0];
	in[1].data = abort;
	in[1].len = sizeof abort;
	ddps_sctp_input(r.e, in, 2, r.net.now);
	cr_expect_eq(r.answered, 0);
	cr_expect_eq(r.gone, 1);
	cr_expect_eq(r.why.code, DDPS_E_REFUSED);
}

/* Paused, with nothing that waits: the end need not wait, either. */
Test(sctp_over, an_orderly_end_waits_for_messages_only)
{
	for (unsigned waits = 0; waits < 2; waits++) {
		uint32_t cum;

		if (waits)
			fini();
		raw_up(&r);
		cum = cum_of();
		ddps_sctp_pause(r.a, true, r.net.now);
		if (waits)
			raw_data(&r, RAW_TSN, 1, 0, 3, "a");
		raw_chunk(&r, r.tag, SC_SHUTDOWN, 0, &cum, sizeof cum);
		raw_chunk(&r, r.tag, SC_SHUTDOWN_COMPLETE, 0, NULL, 0);
		cr_expect_eq(r.gone, !waits);
		if (waits) {
			ddps_sctp_pause(r.a, false, r.net.now);
			raw_wait(&r, 1);
		}
		cr_expect_eq(r.messages, waits);
		cr_expect_eq(r.gone, 1);
		cr_expect_eq(r.why.code, 0);
	}
}
