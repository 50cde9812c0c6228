/* SPDX-License-Identifier: BSD-2-Clause */
/* SCTP without memory: what was begun leaves nothing behind, and whoever waits for it is informed. */
#include "sctp_raw_fixture.h"
#include "unit/mem_fixture.h"

static struct raw r;

/* But for packets on their way. */
static long count_live_blocks(void)
{
	return mem_live() - (long)r.net.n;
}

static int dial_sctp_poor(uint16_t port)
{
	struct ddps_sctp_param p = { .port = RAW_PORT, .streams = 10, .nlocal = 2 };

	memcpy(p.local, r.net.node[0].addr, sizeof r.net.node[0].addr);
	return ddps_sctp_connect(r.e, &p, r.net.node[1].addr, 2, port, 9899, &sn_deaf, NULL,
				 r.net.now, &r.a);
}

Test(sctp_poor, an_attempt_leaves_nothing)
{
	long before;
	int err;

	raw_init(&r);
	for (unsigned n = 1;; n++) {
		before = count_live_blocks();
		mem_fail(n);
		err = dial_sctp_poor(RAW_PEER);
		if (!mem_failed())
			break;
		cr_expect_eq(err, DDPS_E_NOMEM);
		cr_expect_eq(count_live_blocks(), before, "allocation %u", n);
	}
	mem_fail(0);
	cr_assert_eq(err, 0);
	ddps_sctp_assoc_free(r.a, r.net.now);
	sn_flush(&r.net);
	cr_expect_eq(count_live_blocks(), before);
	raw_fini(&r);
}

static void ignore_poor_assoc(void *user, struct ddps_sctp_assoc *a)
{
	(void)user, (void)a;
}

Test(sctp_poor, a_listener_leaves_nothing)
{
	const struct ddps_sctp_param p = { .port = 77 };
	struct ddps_sctp_port *l;
	long before;
	unsigned n;
	int err;

	raw_init(&r);
	ddps_sctp_unlisten(r.port);
	for (n = 1;; n++) {
		before = count_live_blocks();
		mem_fail(n);
		err = ddps_sctp_listen(r.e, &p, ignore_poor_assoc, NULL, &l);
		if (!mem_failed())
			break;
		cr_expect_eq(err, DDPS_E_NOMEM);
		cr_expect_eq(count_live_blocks(), before, "allocation %u", n);
	}
	mem_fail(0);
	cr_assert_eq(err, 0);
	cr_expect_geq(n, 3);
	ddps_sctp_unlisten(l);
	cr_expect_eq(count_live_blocks(), before);
	raw_fini(&r);
}

/* The State Cookie is good still when there is memory again. */
Test(sctp_poor, a_peer_that_is_refused_costs_nothing, .description = "9260-5.1-15")
{
	struct ddps_sc_chunk c;
	long before;
	bool poor;

	raw_init(&r);
	r.port->param.nlocal = 2;
	memcpy(r.port->param.local, r.net.node[0].addr, sizeof r.net.node[0].addr);
	raw_init_chunk(&r, RAW_TAG, RAW_TSN);
	cr_assert(raw_take_init_ack(&r));
	for (unsigned n = 1; !r.accepted; n++) {
		before = count_live_blocks();
		raw_begin(&r, r.tag);
		ddps_sc_put_chunk(&r.w, SC_COOKIE_ECHO, 0, r.cookie, r.cookie_len);
		mem_fail(n);
		raw_hand(&r);
		poor = mem_failed();
		mem_fail(0);
		r.n = 0;
		sn_flush(&r.net);
		if (r.accepted)
			break;
		cr_assert(poor);
		cr_expect_eq(count_live_blocks(), before, "allocation %u", n);
		cr_expect_eq(r.e->st.refused_full, n);
		cr_assert(raw_any(&r, SC_ABORT, &c));
		cr_expect_eq(raw_got_tag(&r, 0), RAW_TAG);
		cr_expect_eq(c.flags & SC_FLAG_T, 0, "it has the peer's own tag");
	}
	cr_expect_gt(r.e->st.refused_full, 4);
	raw_fini(&r);
}

/* More than the first table has room for, answers that wait, and a peer that began anew. */
static long busy_life(void)
{
	long before = mem_live();

	raw_up(&r);
	cr_assert_eq(raw_user_send(&r, 0, 0, "x"), 0);
	raw_init_chunk(&r, RAW_TAG + 1, 77777);
	cr_assert(raw_take_init_ack(&r));
	raw_echo(&r);
	cr_assert_eq(r.restarted, 1);
	for (uint16_t i = 1; i < 40; i++)
		cr_assert_eq(dial_sctp_poor((uint16_t)(RAW_PEER + i)), 0);
	raw_begin(&r, 77); /* out of the blue */
	r.buf[0] ^= 1;
	ddps_sc_put_chunk(&r.w, SC_HEARTBEAT, 0, NULL, 0);
	raw_hand(&r);
	cr_expect_eq(r.e->nstray, 1);
	raw_fini(&r);
	return mem_live() - before;
}

Test(sctp_poor, a_busy_engine_leaves_nothing)
{
	busy_life();
	long n = busy_life();

	cr_expect_eq(n, 0, "%ld", n);
}

/* What a sender puts aside for the next one is not kept where there is none. */
Test(sctp_poor, the_last_one_takes_the_spares_with_it)
{
	raw_up(&r);
	cr_assert_eq(raw_user_send(&r, 0, 0, "x"), 0);
	raw_sack(&r, r.tsn, 100000);
	cr_expect_eq(r.e->spares.last, &r.a->tx);
	ddps_sctp_assoc_free(r.a, r.net.now);
	sn_flush(&r.net);
	cr_expect_eq(r.e->st.assocs, 0);
	cr_expect_eq(r.e->spares.n, 0);
	cr_expect_eq(r.e->pool.kept, 0);
	raw_fini(&r);
}

/* ---- to send ---- */

Test(sctp_poor, a_message_without_room_is_not_taken)
{
	static char text[101];
	struct iovec iov = { text, 100 };
	long before;
	int err;

	raw_up(&r);
	before = count_live_blocks();
	for (unsigned n = 1;; n++) {
		mem_fail(n);
		err = ddps_sctp_send(r.a, 4, 17, 0, &iov, 1, r.net.now);
		if (!mem_failed())
			break;
		cr_expect_eq(err, DDPS_E_NOMEM, "allocation %u", n);
		cr_expect_eq(ddps_sctp_sent(r.a), 0);
		cr_expect_eq(r.a->unsent, 0);
	}
	mem_fail(0);
	cr_expect_eq(err, 0);
	cr_expect_eq(count_live_blocks(), before + 2, "the message, and the numbers of streams");
	raw_fini(&r);
}

Test(sctp_poor, the_longest_message)
{
	struct iovec iov = { "x", UINT32_MAX / 2 };

	raw_up(&r);
	r.e->c.send_buffer = SIZE_MAX;
	mem_fail(1);
	cr_expect_eq(ddps_sctp_send(r.a, 4, 17, 0, &iov, 1, r.net.now), DDPS_E_NOMEM);
	mem_fail(0);
	iov.iov_len++;
	cr_expect_eq(ddps_sctp_send(r.a, 4, 17, 0, &iov, 1, r.net.now), DDPS_E_TOO_LONG);
	raw_fini(&r);
}

/* What has left with COOKIE ECHO has no place among what is under way: the end, and it is said. */
static bool does_ack_meet_failure(unsigned n)
{
	struct ddps_sc_chunk c;
	bool poor;

	raw_init(&r);
	r.early = "hello";
	r.nearly = 2;
	raw_connect(&r);
	raw_answer_init(&r);
	raw_begin(&r, r.tag);
	ddps_sc_put_chunk(&r.w, SC_COOKIE_ACK, 0, NULL, 0);
	mem_fail(n);
	raw_hand(&r);
	poor = mem_failed();
	mem_fail(0);
	r.n = 0;
	sn_flush(&r.net);
	if (poor) {
		cr_expect_eq(r.e->st.no_memory, 1);
		cr_expect_eq(r.ups, 0);
		cr_expect_eq(r.gone, 1);
		cr_expect_eq(r.why.code, DDPS_E_NOMEM);
		cr_assert(raw_any(&r, SC_ABORT, &c));
		cr_assert_eq(c.vlen, 4);
		cr_expect_arr_eq(c.val, ((uint8_t[]){ 0, SC_CAUSE_RESOURCE, 0, 4 }), 4);
	} else {
		cr_expect_eq(r.ups, 1);
	}
	raw_fini(&r);
	return poor;
}

Test(sctp_poor, what_left_early_has_no_place, .description = "9260-5.1-7")
{
	unsigned n = 1;

	while (does_ack_meet_failure(n))
		n++;
	cr_expect_geq(n, 2);
}

Test(sctp_poor, an_answer_without_room_is_counted)
{
	raw_init(&r);
	raw_begin(&r, 77);
	ddps_sc_put_chunk(&r.w, SC_HEARTBEAT, 0, NULL, 0);
	mem_fail(1);
	raw_hand(&r);
	cr_expect(mem_failed());
	mem_fail(0);
	cr_expect_eq(r.e->st.no_memory, 1);
	cr_expect_eq(r.e->nstray, 0);
	raw_fini(&r);
}
