/* SPDX-License-Identifier: BSD-2-Clause */
/* SCTP's SHUTDOWN, packet by packet. */
#include "sctp_raw_fixture.h"

static struct raw r;

static void fini(void)
{
	raw_fini(&r);
}

static unsigned get_sctp_shutdown_be16(const uint8_t *p)
{
	return (unsigned)p[0] << 8 | p[1];
}

static void shutdown_from_peer(uint32_t cum)
{
	cum = htobe32(cum);
	raw_chunk(&r, r.tag, SC_SHUTDOWN, 0, &cum, sizeof cum);
}

Test(sctp_shutdown, asked_for_by_the_user, .fini = fini,
     .description = "9260-3.3.8-1 9260-9.2-1 9260-9.2-d1 9260-9.2-15 9260-3.3.13-1 9260-8.5.1-5 "
		    "9260-9.2-17 etsi-at-2-7-1 etsi-at-2-7-3")
{
	struct ddps_sc_chunk c;

	raw_up(&r);
	cr_assert_eq(raw_user_send(&r, 0, 0, "x"), 0);
	ddps_sctp_shutdown(r.a, r.net.now);
	raw_wait(&r, 1);
	cr_expect_str_eq(raw_state(&r), "SHUTDOWN-PENDING");
	cr_expect_eq(raw_user_send(&r, 0, 0, "y"), DDPS_E_STATE);
	raw_sack(&r, r.tsn, 100000);
	cr_expect_eq(raw_got(&r, 0, 0, NULL), SC_SHUTDOWN);
	cr_expect_str_eq(raw_state(&r), "SHUTDOWN-SENT");
	raw_data(&r, RAW_TSN, 0, 0, 7, "still"); /* [9260-9.2-9] */
	cr_expect_eq(r.messages, 1);
	cr_assert(raw_any(&r, SC_SHUTDOWN, &c));
	cr_expect_eq(get_sctp_shutdown_be16(c.val + 2), RAW_TSN);
	raw_wait(&r, 2000); /* T2 */
	cr_expect(raw_any(&r, SC_SHUTDOWN, NULL));
	raw_chunk(&r, r.tag, SC_SHUTDOWN_ACK, 0, NULL, 0);
	cr_assert_eq(raw_got(&r, 0, 0, &c), SC_SHUTDOWN_COMPLETE);
	cr_expect_eq(c.flags, 0);
	cr_expect_eq(raw_got_tag(&r, 0), RAW_TAG);
	cr_expect(r.gone == 1 && r.why.code == 0);
}

Test(sctp_shutdown, begun_by_the_peer, .fini = fini,
     .description = "9260-3.3.9-1 9260-9.2-7 9260-9.2-8 9260-9.2-12 9260-9.2-13 9260-9.2-16 "
		    "9260-4-6 9260-4-7")
{
	raw_up(&r);
	cr_assert_eq(raw_user_send(&r, 0, 0, "x"), 0);
	shutdown_from_peer(r.tsn - 1);
	cr_expect_str_eq(raw_state(&r), "SHUTDOWN-RECEIVED");
	cr_expect_eq(r.shutdowns, 1);
	cr_expect_eq(raw_user_send(&r, 0, 0, "y"), DDPS_E_STATE);
	raw_data(&r, RAW_TSN, 0, 0, 7, "against the rules");
	cr_expect_eq(r.messages, 0);
	raw_wait(&r, 1500);
	cr_expect(raw_any(&r, SC_DATA, NULL)); /* resent */
	shutdown_from_peer(r.tsn);
	cr_expect_eq(raw_got(&r, 0, 0, NULL), SC_SHUTDOWN_ACK);
	cr_expect_str_eq(raw_state(&r), "SHUTDOWN-ACK-SENT");
	raw_wait(&r, 2500);
	cr_expect(raw_any(&r, SC_SHUTDOWN_ACK, NULL));
	raw_chunk(&r, r.tag, SC_SHUTDOWN_COMPLETE, 0, NULL, 0);
	cr_expect(r.gone == 1 && r.why.code == 0);
	cr_expect_eq(r.n, 0);
}

Test(sctp_shutdown, both_begin, .fini = fini, .description = "9260-9.2-21 9260-9.2-22")
{
	raw_up(&r);
	ddps_sctp_shutdown(r.a, r.net.now);
	raw_wait(&r, 1);
	shutdown_from_peer(r.tsn - 1);
	cr_expect_eq(raw_got(&r, 0, 0, NULL), SC_SHUTDOWN_ACK);
	cr_expect_str_eq(raw_state(&r), "SHUTDOWN-ACK-SENT");
	raw_chunk(&r, r.tag, SC_SHUTDOWN_ACK, 0, NULL, 0);
	cr_expect_eq(raw_got(&r, 0, 0, NULL), SC_SHUTDOWN_COMPLETE);
	cr_expect(r.gone == 1 && r.why.code == 0);
}

Test(sctp_shutdown, complete_is_taken_only_where_it_belongs, .fini = fini,
     .description = "9260-8.5.1-8 9260-8.5.1-9")
{
	raw_up(&r);
	raw_chunk(&r, r.tag, SC_SHUTDOWN_COMPLETE, 0, NULL, 0);
	raw_chunk(&r, r.tag, SC_SHUTDOWN_ACK, 0, NULL, 0);
	cr_expect_str_eq(raw_state(&r), "ESTABLISHED");
	shutdown_from_peer(r.tsn - 1);
	raw_chunk(&r, r.tag, SC_SHUTDOWN_COMPLETE, SC_FLAG_T, NULL, 0);
	raw_chunk(&r, RAW_TAG, SC_SHUTDOWN_COMPLETE, 0, NULL, 0);
	cr_expect_eq(r.gone, 0);
	raw_chunk(&r, RAW_TAG, SC_SHUTDOWN_COMPLETE, SC_FLAG_T, NULL, 0);
	cr_expect_eq(r.gone, 1);
}

Test(sctp_shutdown, an_old_association_of_the_peer_is_cleared, .fini = fini,
     .description = "9260-9.2-19 9260-9.2-20 9260-8.5.1-11")
{
	struct ddps_sc_chunk c;

	raw_init(&r);
	raw_connect(&r);
	raw_chunk(&r, 0x5555, SC_SHUTDOWN_ACK, 0, NULL, 0);
	cr_assert_eq(raw_got(&r, 0, 0, &c), SC_SHUTDOWN_COMPLETE);
	cr_expect_eq(c.flags, SC_FLAG_T);
	cr_expect_eq(raw_got_tag(&r, 0), 0x5555);
	cr_expect_str_eq(raw_state(&r), "COOKIE-WAIT");
}

Test(sctp_shutdown, nobody_answers, .fini = fini,
     .description = "9260-9.2-2 9260-9.2-4 9260-9.2-11")
{
	raw_up(&r);
	ddps_sctp_shutdown(r.a, r.net.now);
	for (unsigned i = 0; i < 1000 && !r.gone; i++)
		raw_wait(&r, 1000);
	cr_expect_eq(r.gone, 1);
	cr_expect_neq(r.why.code, 0);
}

Test(sctp_shutdown, an_abort_says_whose_wish_it_was, .fini = fini,
     .description = "9260-9.1-1 9260-9.1-2 9260-9.1-3 9260-9.1-4")
{
	struct ddps_sc_chunk c;

	raw_up(&r);
	ddps_sctp_abort(r.a, "enough", r.net.now);
	raw_wait(&r, 1);
	cr_assert_eq(raw_got(&r, 0, 0, &c), SC_ABORT);
	cr_expect(c.val[1] == SC_CAUSE_USER && !memcmp(c.val + 4, "enough", 6));
	cr_expect_eq(raw_got_tag(&r, 0), RAW_TAG);
	cr_expect_eq(r.gone, 1);
}
