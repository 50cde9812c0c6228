/* SPDX-License-Identifier: BSD-2-Clause */
/* When a host did not run, as its engine sees by timers that nobody served. */
#include "sctp_raw_fixture.h"

#define SEC UINT64_C(1000000000)

static struct raw r;

static void fini(void)
{
	raw_fini(&r);
}

TestSuite(sctp_rest, .fini = fini, .timeout = 30);

/* Two associations whose timers are due a while apart: the time of either. */
static struct ddps_sctp_assoc *two(uint64_t *first, uint64_t *second)
{
	struct ddps_sctp_param p = { .port = RAW_PORT, .streams = 10, .fixed_mtu = 1500 };
	struct ddps_sctp_assoc *a;

	raw_up(&r); /* it sends a HEARTBEAT after half a minute */
	*second = ddps_sc_heap_next(&r.e->heap);
	cr_assert_eq(ddps_sctp_connect(r.e, &p, &r.net.node[1].addr[0], 1, RAW_PEER + 1, 9899,
				       &sn_deaf, NULL, r.net.now, &a),
		     0);
	sn_flush(&r.net);
	*first = ddps_sc_heap_next(&r.e->heap); /* INIT again after a second */
	cr_assert_gt(*second, *first + 5ul * SEC);
	return a;
}

static void wake_engine_at(uint64_t now)
{
	r.net.now = now;
	ddps_sctp_input(r.e, NULL, 0, now);
}

/* What is read first may restart the timer that was due first. */
Test(sctp_rest, it_begins_where_it_began_whatever_is_read_first)
{
	uint64_t first, second;
	struct ddps_sctp_assoc *a = two(&first, &second);

	wake_engine_at(100ul * SEC);
	cr_expect_eq(r.e->sent.rest_from, first);
	cr_expect_eq(r.e->sent.rest_to, 100ul * SEC);
	ddps_sctp_assoc_free(a, r.net.now);
	wake_engine_at(100ul * SEC);
	cr_assert_eq(ddps_sc_heap_next(&r.e->heap), second);
	wake_engine_at(100ul * SEC + 1000);
	cr_expect_eq(r.e->sent.rest_from, first);
	cr_expect_eq(r.e->sent.rest_to, 100ul * SEC + 1000);
}

/* What lasted a second or more is a sleep, and is remembered behind a shorter rest. */
Test(sctp_rest, a_long_one_is_a_sleep)
{
	uint64_t first, second;

	two(&first, &second);
	wake_engine_at(first + DDPS_SENT_SLEEP - 1);
	cr_expect_eq(r.e->sent.rest_from, first);
	cr_expect_eq(r.e->sent.slept_from, 0);
	wake_engine_at(first + DDPS_SENT_SLEEP);
	cr_expect_eq(r.e->sent.slept_from, first, "it is the same rest");
	sn_flush(&r.net);
	ddps_sctp_tick(r.e, r.net.now);
	second = ddps_sc_heap_next(&r.e->heap);
	wake_engine_at(second + 10000000);
	cr_expect_eq(r.e->sent.rest_from, second);
	cr_expect_eq(r.e->sent.slept_from, first);
}

/* Timers were served in between: it is another one. */
Test(sctp_rest, the_next_one_is_another_one)
{
	uint64_t first, second;

	two(&first, &second);
	wake_engine_at(100ul * SEC);
	sn_flush(&r.net);
	ddps_sctp_tick(r.e, 100ul * SEC);
	cr_expect_eq(r.e->sent.rest_from, first);
	sn_flush(&r.net);
	second = ddps_sc_heap_next(&r.e->heap);
	cr_assert_gt(second, 100ul * SEC);
	wake_engine_at(second); /* in time */
	cr_expect_eq(r.e->sent.rest_to, 100ul * SEC);
	wake_engine_at(200ul * SEC);
	cr_expect_eq(r.e->sent.rest_from, second);
	cr_expect_eq(r.e->sent.rest_to, 200ul * SEC);
}

/* What is to be sent now is due at 0: it has waited since the engine was called last, which is no rest in time. */
Test(sctp_rest, what_waits_to_be_sent_waited_since_the_last_look)
{
	uint64_t first, second;

	two(&first, &second);
	wake_engine_at(first);
	ddps_sc_timer_set(&r.e->heap, &r.a->timer, 0);
	cr_assert_eq(ddps_sc_heap_next(&r.e->heap), 0);
	wake_engine_at(first + 1000);
	cr_expect_eq(r.e->sent.rest_to, 0);
	wake_engine_at(first + 10ul * SEC);
	cr_expect_eq(r.e->sent.rest_from, first + 1000);
	cr_expect_eq(r.e->sent.rest_to, first + 10ul * SEC);
}
