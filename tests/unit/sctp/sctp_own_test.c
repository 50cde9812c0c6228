/* SPDX-License-Identifier: BSD-2-Clause */
/* Addresses that the peer lists and this host has as well. */
#include "sctp_paths_fixture.h"

TestSuite(sctp_own, .fini = fini);

static bool first_is, second_is; /* ours */

static bool is_own_address(void *user, const struct ddps_sctp_addr *a)
{
	(void)user;
	return (first_is && is_same_paths_address(a, get_first_address())) ||
	       (second_is && is_same_paths_address(a, get_second_address()));
}

static void start_sctp_own(bool one, bool two)
{
	first_is = one;
	second_is = two;
	raw_init(&r);
	r.e->c.own = is_own_address;
}

static size_t put_second(uint8_t *params, size_t room, bool cookie)
{
	struct ddps_wbuf w = ddps_wbuf_init(params, room);

	if (cookie)
		ddps_sc_put_tlv(&w, SC_P_COOKIE, "cook", 4);
	ddps_sc_put_addr(&w, get_second_address());
	return (size_t)(w.p - params);
}

static void init_again(uint32_t tag)
{
	uint8_t params[32];

	raw_begin(&r, 0);
	raw_put_init(&r, tag, 100000, 5, 5, RAW_TSN, params,
		     put_second(params, sizeof params, false));
	raw_send(&r);
}

/* The peer opens and lists its second address. */
static void open_with_second(void)
{
	r.own = RAW_TAG;
	init_again(RAW_TAG);
	cr_assert(raw_take_init_ack(&r));
	raw_echo(&r);
	cr_assert_eq(r.accepted, 1);
}

Test(sctp_own, contact_12_an_address_that_both_have_is_left_out)
{
	start_sctp_own(false, true);
	open_with_second();
	cr_expect_eq(r.a->npaths, 1);
	cr_expect_eq(r.e->st.addrs_own, 1);
	for (unsigned i = 0; i < 5; i++) {
		raw_wait(&r, 1000);
		cr_expect_eq(sent_to(get_second_address(), SC_HEARTBEAT, NULL), 0);
	}
}

Test(sctp_own, contact_12_in_an_init_ack_too)
{
	uint8_t params[64];
	size_t len;

	start_sctp_own(false, true);
	raw_connect(&r);
	r.tag = r.a->own_tag;
	len = put_second(params, sizeof params, true);
	raw_begin(&r, r.tag);
	raw_put_init(&r, RAW_TAG, 100000, 5, 5, RAW_TSN, params, len);
	r.buf[12] = SC_INIT_ACK;
	raw_send(&r);
	cr_assert_eq(raw_got(&r, 0, 0, NULL), SC_COOKIE_ECHO);
	cr_expect_eq(r.a->npaths, 1);
}

/* Then all of its addresses are this host's. */
Test(sctp_own, contact_12_a_peer_on_this_host_has_them_with_us)
{
	start_sctp_own(true, true);
	open_with_second();
	cr_expect_eq(r.a->npaths, 2);
	cr_expect_eq(r.e->st.addrs_own, 0);
}

Test(sctp_own, contact_12_a_peer_that_restarts_adds_none)
{
	start_sctp_own(false, true);
	open_with_second();
	init_again(RAW_TAG + 1);
	cr_assert(raw_take_init_ack(&r), "what was left out is not new");
	raw_echo(&r);
	cr_expect_eq(r.restarted, 1);
	second_is = false;
	init_again(RAW_TAG + 2);
	cr_expect_eq(raw_got(&r, 0, 0, NULL), SC_ABORT, "this one is");
}

static void reflect(uint8_t type, bool from_second)
{
	raw_begin(&r, r.own);
	ddps_sc_put_chunk(&r.w, type, SC_FLAG_T, NULL, 0);
	if (from_second)
		send_second();
	else
		raw_send(&r);
}

/* An interface came up, and what we send to the second address meets a program of this host. */
Test(sctp_own, contact_12_an_address_that_becomes_our_own)
{
	open_both_paths();
	first_is = second_is = false;
	r.e->c.own = is_own_address;
	second_is = true;
	reflect(SC_ABORT, true);
	cr_assert_eq(r.gone, 0);
	cr_expect_eq(r.a->path[1]->state, DDPS_SCTP_DOUBTFUL);
	cr_expect_eq(r.e->st.addrs_own, 1);
	cr_expect_eq(r.e->st.aborts_in, 0);
	reflect(SC_ABORT, false);
	cr_expect_eq(r.gone, 1, "the peer's own word counts");
}

Test(sctp_own, contact_12_data_leaves_the_address_that_becomes_our_own)
{
	open_both_paths();
	r.e->c.own = is_own_address;
	first_is = true;
	second_is = false;
	cr_assert_eq(raw_user_send(&r, 0, 0, "x"), 0);
	cr_assert_eq(sent_to(get_first_address(), SC_DATA, NULL), 1);
	reflect(SC_ABORT, false);
	cr_assert_eq(r.gone, 0);
	sn_flush(&r.net);
	cr_expect_eq(sent_to(get_second_address(), SC_DATA, NULL), 1);
}

Test(sctp_own, contact_12_shutdown_is_not_completed_by_ourselves)
{
	open_both_paths();
	r.e->c.own = is_own_address;
	first_is = false;
	second_is = true;
	raw_chunk(&r, r.tag, SC_SHUTDOWN, 0, &(uint32_t){ htobe32(r.tsn - 1) }, 4);
	cr_assert_str_eq(raw_state(&r), "SHUTDOWN-ACK-SENT");
	reflect(SC_SHUTDOWN_COMPLETE, true);
	cr_expect_eq(r.gone, 0);
	reflect(SC_SHUTDOWN_COMPLETE, false);
	cr_expect_eq(r.gone, 1);
}

/* It has no other: whatever answers there, nothing is available. */
Test(sctp_own, contact_12_the_only_address)
{
	start_sctp_own(false, false);
	raw_init_chunk(&r, RAW_TAG, RAW_TSN);
	cr_assert(raw_take_init_ack(&r));
	raw_echo(&r);
	r.own = RAW_TAG;
	first_is = true;
	reflect(SC_ABORT, false);
	cr_expect_eq(r.gone, 1);
}
