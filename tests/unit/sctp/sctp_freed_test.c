/* SPDX-License-Identifier: BSD-2-Clause */
/* The user lets an association go inside any of its upcalls: none comes behind that. */
#include "sctp_raw_fixture.h"

enum upcall { MESSAGE, ACKED, WRITABLE, SHUTDOWN, RESTARTED, OVERRUN, GONE, NEVER };

static struct raw r;
static unsigned calls[NEVER];
static enum upcall free_at;
static bool stays; /* is not let go where it is gone */

static void called(enum upcall which)
{
	calls[which]++;
	cr_expect_not_null(r.a, "%d behind %d", (int)which, (int)free_at);
	if (r.a && (which == free_at || (which == GONE && !stays))) {
		ddps_sctp_assoc_free(r.a, r.net.now);
		r.a = NULL;
	}
}

static void take_sctp_freed_up(void *user)
{
	(void)user;
}

static void take_sctp_freed_message(void *user, const struct ddps_sctp_msg *m)
{
	(void)user;
	(void)m;
	called(MESSAGE);
}

static void take_sctp_freed_acked(void *user, uint64_t n)
{
	(void)user;
	(void)n;
	called(ACKED);
}

static void take_sctp_freed_writable(void *user)
{
	(void)user;
	called(WRITABLE);
}

static void take_sctp_freed_shutdown(void *user)
{
	(void)user;
	called(SHUTDOWN);
}

static void take_sctp_freed_restarted(void *user)
{
	(void)user;
	called(RESTARTED);
}

static void take_sctp_freed_overrun(void *user, uint16_t stream)
{
	(void)user;
	cr_expect_eq(stream, 3);
	called(OVERRUN);
}

static void take_sctp_freed_gone(void *user, const struct ddps_error *e)
{
	(void)user;
	(void)e;
	called(GONE);
}

static const struct ddps_sctp_up upcalls = { .up = take_sctp_freed_up,
					     .message = take_sctp_freed_message,
					     .acked = take_sctp_freed_acked,
					     .writable = take_sctp_freed_writable,
					     .peer_shutdown = take_sctp_freed_shutdown,
					     .restarted = take_sctp_freed_restarted,
					     .overrun = take_sctp_freed_overrun,
					     .gone = take_sctp_freed_gone };

static void begin_sctp_freed(enum upcall at)
{
	memset(calls, 0, sizeof calls);
	free_at = at;
	stays = false;
	raw_up(&r);
	ddps_sctp_assoc_set_up(r.a, &upcalls, &r);
}

/* Nothing of it is left, and nobody was informed of more than this. */
static void finish_sctp_freed(enum upcall which, unsigned n)
{
	cr_expect_eq(calls[which], n, "%d: %u", (int)which, calls[which]);
	if (r.a)
		ddps_sctp_assoc_free(r.a, r.net.now);
	r.a = NULL;
	raw_wait(&r, 1000);
	cr_expect_eq(r.e->st.assocs, 0);
	cr_expect_eq(r.e->st.held, 0);
	raw_fini(&r);
}

/* Of one packet: two messages, the second out of its order, what acknowledges all, and a SHUTDOWN. */
static void busy_packet(void)
{
	uint32_t sack[3] = { htobe32(r.tsn), htobe32(100000), 0 }, cum = htobe32(r.tsn);

	r.e->c.send_buffer = 10; /* one message is more */
	cr_assert_eq(raw_user_send(&r, 0, 0, "one"), 0);
	cr_assert_eq(raw_user_send(&r, 0, 0, "two"), DDPS_E_AGAIN);
	raw_begin(&r, r.tag);
	ddps_sc_put_chunk(&r.w, SC_SACK, 0, sack, sizeof sack);
	raw_put_data(&r, RAW_TSN, 0, 1, 3, "behind");
	raw_put_data(&r, RAW_TSN + 1, 0, 0, 3, "before");
	raw_put_data(&r, RAW_TSN + 2, 0, 2, 3, "last");
	ddps_sc_put_chunk(&r.w, SC_SHUTDOWN, 0, &cum, sizeof cum);
	raw_send(&r);
}

Test(sctp_freed, in_each_upcall_of_a_packet)
{
	static const struct {
		enum upcall at;
		unsigned messages, acked, writable, shutdown;
	} row[] = {
		{ MESSAGE, 1, 0, 0, 0 },  { ACKED, 3, 1, 0, 0 }, { WRITABLE, 3, 1, 1, 0 },
		{ SHUTDOWN, 3, 1, 1, 1 }, { NEVER, 3, 1, 1, 1 },
	};

	for (size_t i = 0; i < sizeof row / sizeof *row; i++) {
		begin_sctp_freed(row[i].at);
		busy_packet();
		cr_expect_eq(calls[ACKED], row[i].acked, "%zu", i);
		cr_expect_eq(calls[WRITABLE], row[i].writable, "%zu", i);
		cr_expect_eq(calls[SHUTDOWN], row[i].shutdown, "%zu", i);
		finish_sctp_freed(MESSAGE, row[i].messages);
	}
}

static void three_messages(uint16_t stream)
{
	for (unsigned i = 0; i < 3; i++)
		raw_data(&r, RAW_TSN + i, stream, (uint16_t)i, 3, "held");
}

Test(sctp_freed, while_what_was_held_is_delivered)
{
	begin_sctp_freed(MESSAGE);
	ddps_sctp_pause(r.a, true, r.net.now);
	three_messages(0);
	cr_expect_eq(calls[MESSAGE], 0);
	ddps_sctp_pause(r.a, false, r.net.now);
	raw_wait(&r, 1);
	cr_expect_null(r.a);
	finish_sctp_freed(MESSAGE, 1);
}

Test(sctp_freed, whoever_was_informed_of_the_end_gets_nothing_more)
{
	begin_sctp_freed(NEVER);
	stays = true;
	ddps_sctp_pause(r.a, true, r.net.now);
	three_messages(0);
	raw_chunk(&r, r.tag, SC_ABORT, 0, NULL, 0);
	cr_expect_eq(calls[GONE], 1);
	ddps_sctp_pause(r.a, false, r.net.now);
	raw_wait(&r, 1);
	cr_expect_eq(calls[GONE], 1);
	finish_sctp_freed(MESSAGE, 0);
}

Test(sctp_freed, when_the_peer_begins_anew)
{
	begin_sctp_freed(RESTARTED);
	raw_init_chunk(&r, 0x99999999, 77777);
	cr_assert(raw_take_init_ack(&r));
	raw_begin(&r, r.tag);
	ddps_sc_put_chunk(&r.w, SC_COOKIE_ECHO, 0, r.cookie, r.cookie_len);
	raw_put_data(&r, 77777, 0, 0, 3, "of the new one");
	raw_send(&r);
	cr_expect_eq(calls[MESSAGE], 0);
	finish_sctp_freed(RESTARTED, 1);
}

/* Of a held stream, until it is too much: 64 KiB. */
static unsigned fill_sctp_freed(unsigned from, unsigned most)
{
	char text[1001];
	unsigned n;

	memset(text, 'x', 1000);
	text[1000] = 0;
	for (n = from; n < most && !calls[OVERRUN]; n++)
		raw_data(&r, RAW_TSN + n, 3, (uint16_t)n, 3, text);
	return n;
}

Test(sctp_freed, when_a_stream_is_overrun)
{
	begin_sctp_freed(OVERRUN);
	r.e->c.rwnd = 400000; /* whose eighth is less */
	ddps_sctp_hold_stream(r.a, 3, true, r.net.now);
	cr_expect_eq(fill_sctp_freed(0, 100), 65536 / (1000 + DDPS_SC_ITEM) + 1);
	cr_expect_null(r.a);
	finish_sctp_freed(OVERRUN, 1);
}

Test(sctp_freed, nobody_is_informed_of_an_overrun_who_does_not_want_to_be)
{
	static struct ddps_sctp_up up;

	begin_sctp_freed(NEVER);
	up = upcalls;
	up.overrun = NULL;
	ddps_sctp_assoc_set_up(r.a, &up, &r);
	ddps_sctp_hold_stream(r.a, 3, true, r.net.now);
	r.e->c.rwnd = 400000;
	cr_expect_eq(fill_sctp_freed(0, 60), 60);
	cr_expect_eq(r.e->st.overruns, 1);
	cr_expect_eq(r.e->st.held, 0);
	finish_sctp_freed(OVERRUN, 0);
}

/* What waits in the order of its stream, or for the user, is the held stream's, too. */
Test(sctp_freed, a_stream_that_is_held_late)
{
	unsigned n;

	begin_sctp_freed(NEVER);
	r.e->c.rwnd = 400000;
	raw_data(&r, RAW_TSN + 1, 3, 1, 3, "behind");
	ddps_sctp_pause(r.a, true, r.net.now);
	raw_data(&r, RAW_TSN, 3, 0, 3, "before"); /* both wait for the user */
	ddps_sctp_hold_stream(r.a, 3, true, r.net.now);
	ddps_sctp_pause(r.a, false, r.net.now);
	raw_wait(&r, 1);
	cr_expect_eq(calls[MESSAGE], 0);
	raw_data(&r, RAW_TSN + 3, 3, 3, 3, "behind");
	raw_data(&r, RAW_TSN + 2, 3, 2, 3, "before"); /* both for the stream */
	n = fill_sctp_freed(4, 100);
	cr_expect_eq(calls[OVERRUN], 1);
	raw_data(&r, RAW_TSN + n + 1, 3, (uint16_t)(n + 1), 3, "behind");
	raw_data(&r, RAW_TSN + n, 3, (uint16_t)n, 3, "before"); /* both are dropped */
	cr_expect_eq(r.e->st.held, 0);
	cr_expect_eq(ddps_sctp_hold_stream(r.a, 3, false, r.net.now), 0);
	cr_expect_eq(ddps_sctp_hold_stream(r.a, 4, false, r.net.now), 0, "nothing came there");
	raw_data(&r, RAW_TSN + n + 2, 3, (uint16_t)(n + 2), 3, "again");
	finish_sctp_freed(MESSAGE, 1);
}

/* Overrun while others of its messages wait for the user. */
Test(sctp_freed, what_waits_of_an_overrun_stream_is_dropped)
{
	begin_sctp_freed(NEVER);
	r.e->c.rwnd = 400000;
	ddps_sctp_pause(r.a, true, r.net.now);
	raw_data(&r, RAW_TSN, 3, 0, 3, "waits");
	ddps_sctp_hold_stream(r.a, 3, true, r.net.now);
	fill_sctp_freed(1, 100);
	cr_expect_eq(calls[OVERRUN], 1);
	ddps_sctp_pause(r.a, false, r.net.now);
	raw_wait(&r, 1);
	cr_expect_eq(r.e->st.held, 0);
	finish_sctp_freed(MESSAGE, 0);
}

Test(sctp_freed, nobody_keeps_less_than_nothing)
{
	begin_sctp_freed(NEVER);
	ddps_sctp_keep(r.a, 1000, r.net.now);
	cr_expect_eq(r.a->kept, 1000);
	ddps_sctp_keep(r.a, -400, r.net.now);
	cr_expect_eq(r.a->kept, 600);
	ddps_sctp_keep(r.a, -601, r.net.now);
	cr_expect_eq(r.a->kept, 0);
	finish_sctp_freed(MESSAGE, 0);
}

/* Of one packet: SHUTDOWN, of which the user is informed first, and the end. */
Test(sctp_freed, before_the_end_is_reported)
{
	uint32_t cum;

	for (enum upcall at = SHUTDOWN; at <= NEVER; at += NEVER - SHUTDOWN) {
		begin_sctp_freed(at);
		cum = htobe32(r.tsn - 1);
		raw_begin(&r, r.tag);
		ddps_sc_put_chunk(&r.w, SC_SHUTDOWN, 0, &cum, sizeof cum);
		ddps_sc_put_chunk(&r.w, SC_ABORT, 0, NULL, 0);
		raw_send(&r);
		cr_expect_eq(calls[SHUTDOWN], 1);
		finish_sctp_freed(GONE, at == NEVER);
	}
}
