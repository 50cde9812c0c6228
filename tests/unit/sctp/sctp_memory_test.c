/* SPDX-License-Identifier: BSD-2-Clause */
/* The engine finds no memory: what was not acknowledged comes again, and what was is the end. */
#include "sctp_raw_fixture.h"
#include "unit/mem_fixture.h"

static struct raw r;

/* Whether the @n-th allocation was there to fail, while the first piece of a message is to leave. */
static bool does_send_meet_failure(unsigned n)
{
	static const uint8_t text[3000];
	const struct iovec iov = { (void *)(uintptr_t)text, sizeof text };
	uint64_t before;
	bool poor;

	raw_up(&r);
	cr_assert_eq(ddps_sctp_send(r.a, 0, 17, 0, &iov, 1, r.net.now), 0);
	before = r.e->pool.kept;
	r.n = 0;
	mem_fail(n);
	sn_flush(&r.net);
	poor = mem_failed();
	mem_fail(0);
	if (poor && n == 1) { /* no piece */
		cr_expect_eq(r.e->st.no_memory, 1);
		cr_expect_not(raw_any(&r, SC_DATA, NULL));
	}
	if (poor && n == 2) { /* a piece, and no place for it among what is under way */
		cr_expect_not(raw_any(&r, SC_DATA, NULL));
		cr_expect_gt(r.e->pool.kept, before, "it is given back");
	}
	sn_flush(&r.net);
	for (unsigned i = 0; i < 100 && !ddps_sc_all_acked(r.a); i++) {
		raw_wait(&r, 100);
		raw_sack(&r, r.a->tx.next - 1, 100000);
	}
	cr_expect(ddps_sc_all_acked(r.a), "allocation %u: all has left", n);
	raw_fini(&r);
	return poor;
}

Test(sctp_memory, what_cannot_leave_leaves_later)
{
	unsigned n = 1;

	while (does_send_meet_failure(n))
		n++;
	cr_expect_geq(n, 3);
}

/* Three fragments; then the first again, as if its packet had been lost. */
static bool does_receive_meet_failure(unsigned n)
{
	bool poor;

	raw_up(&r);
	raw_begin(&r, r.tag);
	raw_put_data(&r, RAW_TSN + 1, 0, 0, 0, "dl");
	mem_fail(n);
	raw_hand(&r);
	poor = mem_failed();
	mem_fail(0);
	sn_flush(&r.net);
	cr_expect_eq(r.gone, poor && r.e->st.aborts_out, "allocation %u", n);
	if (!r.gone) {
		raw_data(&r, RAW_TSN + 1, 0, 0, 0, "dl");
		raw_data(&r, RAW_TSN + 2, 0, 0, 1, "e");
		raw_data(&r, RAW_TSN, 0, 0, 2, "mid");
		cr_expect_eq(r.messages, 1, "allocation %u", n);
		cr_expect_arr_eq(r.last_data, "middle", 6);
	} else {
		cr_expect_eq(r.why.code, DDPS_E_NOMEM);
	}
	cr_expect_eq(r.e->st.held, 0);
	raw_fini(&r);
	return poor;
}

Test(sctp_memory, a_fragment_without_room_comes_again)
{
	unsigned n = 1;

	while (does_receive_meet_failure(n))
		n++;
	cr_expect_geq(n, 4); /* the map, the fragment, its run, the tables of runs */
}

/* Its answer has a parameter that is to be reported; then its cookie is stale, and it answers anew. */
static void answer_and_refuse(void)
{
	static const uint8_t params[] = {
		0, SC_P_COOKIE, 0, 8, 'c', 'o', 'o', 'k', 0xc1, 0x23, 0, 4
	};
	static const uint8_t stale[] = { 0, SC_CAUSE_STALE, 0, 8, 0, 0, 0, 1 };
	struct ddps_sc_init i;
	struct ddps_sc_chunk c;

	cr_assert_eq(raw_got(&r, 0, 0, &c), SC_INIT);
	cr_assert_eq(ddps_sc_decode_init(&i, &c), 0);
	r.tag = i.tag;
	raw_begin(&r, r.tag);
	raw_put_init(&r, RAW_TAG, 100000, 5, 5, RAW_TSN, params, sizeof params);
	r.buf[12] = SC_INIT_ACK;
	raw_send(&r);
	cr_assert_eq(raw_got(&r, 0, 0, NULL), SC_COOKIE_ECHO);
	cr_assert(raw_any(&r, SC_ERROR, NULL));
	raw_chunk(&r, r.tag, SC_ERROR, 0, stale, sizeof stale);
	cr_assert_str_eq(raw_state(&r), "COOKIE-WAIT");
}

Test(sctp_memory, a_peer_that_answers_again_costs_no_more, .description = "9260-3.2.2-2")
{
	long before;

	raw_init(&r);
	raw_connect(&r);
	answer_and_refuse();
	answer_and_refuse();
	before = mem_live() - (long)r.net.n; /* but for packets on their way */
	answer_and_refuse();
	answer_and_refuse();
	cr_expect_eq(mem_live() - (long)r.net.n, before);
	raw_fini(&r);
}

/* From nothing to nothing, with what a sender puts aside for the next one. */
static long measure_memory_life(void)
{
	long before = mem_live();

	raw_up(&r);
	cr_assert_eq(raw_user_send(&r, 0, 0, "x"), 0);
	raw_sack(&r, r.tsn, 100000);
	cr_expect_eq(r.e->spares.last, &r.a->tx);
	raw_fini(&r);
	return mem_live() - before;
}

Test(sctp_memory, an_engine_leaves_nothing)
{
	measure_memory_life();
	long n = measure_memory_life();

	cr_expect_eq(n, 0, "%ld", n);
}
