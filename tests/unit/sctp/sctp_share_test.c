/* SPDX-License-Identifier: BSD-2-Clause */
/* What is received, at its bounds: a stream's share, the window, the longest message, and memory that
 * is not there. */
#include "sctp_raw_fixture.h"
#include "unit/mem_fixture.h"
#include <ddpsess/err.h>

#define N(a)  (sizeof(a) / sizeof *(a))
#define WHOLE (SC_DATA_B | SC_DATA_E)

static struct raw r;
static unsigned overruns;

static void fini(void)
{
	raw_fini(&r);
}

TestSuite(sctp_share, .fini = fini);

static void take_sctp_share_overrun(void *user, uint16_t stream)
{
	(void)user, (void)stream;
	overruns++;
}

static void begin_sctp_share(void)
{
	static struct ddps_sctp_up up;

	raw_up(&r);
	up = raw_upcalls;
	up.overrun = take_sctp_share_overrun;
	ddps_sctp_assoc_set_up(r.a, &up, &r);
	overruns = 0;
}

static struct ddps_sctp_msg make_sctp_share_message(uint16_t stream, uint16_t ssn)
{
	return (struct ddps_sctp_msg){
		.stream = stream, .ssn = ssn, .data = (const uint8_t *)"hello", .len = 5
	};
}

static void hold_stream(uint16_t stream, bool on)
{
	cr_assert_eq(ddps_sctp_hold_stream(r.a, stream, on, r.net.now), 0);
}

/* ---- a held stream ---- */

Test(sctp_share, what_a_held_stream_may_keep)
{
	static const struct {
		size_t rwnd, share;
	} row[] = { { 400000, 65536 },
		    { 480000, 65536 },
		    { 65536 * 8, 65536 },
		    { 65537 * 8, 65537 },
		    { 560000, 70000 } };

	for (size_t i = 0; i < N(row); i++) {
		begin_sctp_share();
		r.e->c.rwnd = row[i].rwnd;
		hold_stream(3, true);
		r.a->streams->octets = row[i].share - (5 + DDPS_SC_ITEM);
		raw_data(&r, RAW_TSN, 3, 0, WHOLE, "hello");
		cr_expect_eq(overruns, 0, "%zu", i);
		cr_expect_eq(r.a->streams->octets, row[i].share);
		hold_stream(3, false);
		raw_wait(&r, 1);
		cr_expect_eq(r.messages, 1);
		hold_stream(3, true);
		cr_expect_eq(r.a->streams->octets, 0);
		r.a->streams->octets = row[i].share + 1 - (5 + DDPS_SC_ITEM);
		raw_data(&r, RAW_TSN + 1, 3, 1, WHOLE, "hello");
		cr_expect_eq(overruns, 1, "%zu", i);
		fini();
	}
	raw_init(&r);
}

Test(sctp_share, a_stream_that_was_overrun_may_be_held_again)
{
	begin_sctp_share();
	r.e->c.rwnd = 400000;
	hold_stream(3, true);
	r.a->streams->octets = 65536;
	raw_data(&r, RAW_TSN, 3, 0, WHOLE, "dropped");
	cr_assert_eq(overruns, 1);
	hold_stream(3, false);
	hold_stream(3, true);
	raw_data(&r, RAW_TSN + 1, 3, 1, WHOLE, "kept");
	hold_stream(3, false);
	raw_wait(&r, 1);
	cr_expect_eq(r.messages, 1);
}

/* ---- what all associations share ---- */

/* The window in the SACK for one more message. */
static uint32_t read_sctp_share_window(uint32_t tsn)
{
	struct ddps_sc_chunk c;
	struct ddps_sc_sack_hdr h;

	raw_data(&r, tsn, 0, 0, WHOLE | SC_DATA_U | SC_DATA_I, "hello");
	cr_assert(raw_any(&r, SC_SACK, &c));
	memcpy(&h, c.all, sizeof h);
	return be32toh(h.rwnd);
}

/* One more of the same engine. */
static void add_sctp_share_assoc(uint16_t from)
{
	r.from = from;
	raw_init_chunk(&r, RAW_TAG, RAW_TSN);
	cr_assert(raw_take_init_ack(&r));
	raw_echo(&r);
}

/* More than 64 KiB, from @tsn on.  Return the TSN behind it. */
static uint32_t take_sctp_share_bulk(uint32_t tsn)
{
	char text[901];

	memset(text, 'x', sizeof text - 1);
	text[sizeof text - 1] = 0;
	for (unsigned n = 0; n < 72; n++)
		raw_data(&r, tsn++, 0, 0, WHOLE | SC_DATA_U, text);
	return tsn;
}

Test(sctp_share, who_receives_much_has_a_share_of_the_inbox)
{
	const uint32_t inbox = 1u << 20;
	uint32_t tsn = RAW_TSN;

	begin_sctp_share();
	r.e->c.inbox = inbox;
	for (uint16_t n = 1; n <= 20; n++) {
		if (n > 1)
			add_sctp_share_assoc(RAW_PEER + n);
		tsn = take_sctp_share_bulk(RAW_TSN);
		cr_expect_eq(read_sctp_share_window(tsn), n < 16 ? inbox / n : 65536, "%u", n);
	}
	raw_wait(&r, 110);
	tsn = take_sctp_share_bulk(tsn + 1);
	cr_expect_eq(read_sctp_share_window(tsn), 65536, "they have only just received");
	raw_wait(&r, 110);
	tsn = take_sctp_share_bulk(tsn + 1);
	cr_expect_eq(read_sctp_share_window(tsn), inbox, "it is the only one");
}

/* Whoever has many associations divides his own share. */
Test(sctp_share, an_address_has_one_share)
{
	const uint32_t inbox = 1u << 20;
	uint32_t tsn;

	begin_sctp_share();
	r.e->c.inbox = inbox;
	tsn = take_sctp_share_bulk(RAW_TSN);
	/* as if each of these were of another address, one for all of them */
	r.e->takers[r.a->net % (DDPS_SC_NETS - 1) + 1] = 100;
	r.e->nets++;
	ddps_sc_share_inbox(r.e);
	cr_expect_eq(read_sctp_share_window(tsn), inbox / 2);
	r.a->net = (uint8_t)(r.a->net % (DDPS_SC_NETS - 1) + 1);
	cr_expect_eq(ddps_sc_rwnd(r.a), 65536, "one of the hundred");
}

Test(sctp_share, a_network_has_one_number)
{
	struct ddps_sctp_addr a = { .family = 6, .ip = { 0x20, 1, 0xd, 0xb8, 0, 0, 0, 1, 7 } },
			      b = a;
	unsigned others = 0;

	raw_init(&r);
	b.ip[15] = 9;
	cr_expect_eq(ddps_sc_net_of(r.e, &a, DDPS_SC_NETS), ddps_sc_net_of(r.e, &b, DDPS_SC_NETS));
	for (unsigned n = 0; n < 256; n++) {
		b.ip[7] = (uint8_t)n;
		cr_expect(ddps_sc_net_of(r.e, &b, DDPS_SC_NETS) - 1 < DDPS_SC_NETS - 1);
		others += ddps_sc_net_of(r.e, &a, DDPS_SC_NETS) !=
			  ddps_sc_net_of(r.e, &b, DDPS_SC_NETS);
	}
	cr_expect_geq(others, 200);
}

/* Seventy that say hello took the window of one that receives bulk over a long path. */
Test(sctp_share, who_receives_little_takes_no_share)
{
	const uint32_t inbox = 1u << 20;
	uint32_t tsn;

	begin_sctp_share();
	r.e->c.inbox = inbox;
	for (uint16_t n = 2; n <= 70; n++) {
		add_sctp_share_assoc(RAW_PEER + n);
		cr_expect_eq(read_sctp_share_window(RAW_TSN), r.e->c.rwnd, "%u", n);
	}
	tsn = take_sctp_share_bulk(RAW_TSN + 1);
	cr_expect_eq(read_sctp_share_window(tsn), inbox, "it is the only one that receives much");
}

Test(sctp_share, a_share_ends_with_the_traffic)
{
	const uint32_t inbox = 1u << 20;

	begin_sctp_share();
	r.e->c.inbox = inbox;
	take_sctp_share_bulk(RAW_TSN);
	add_sctp_share_assoc(RAW_PEER + 2);
	take_sctp_share_bulk(RAW_TSN);
	cr_expect_eq(ddps_sc_rwnd(r.a), inbox / 2);
	ddps_sc_time(r.e, r.e->now + 1000 * MS);
	cr_expect_eq(ddps_sc_rwnd(r.a), r.e->c.rwnd);
}

Test(sctp_share, a_share_ends_when_there_is_little)
{
	const uint32_t inbox = 1u << 20;
	uint32_t tsn;

	begin_sctp_share();
	r.e->c.inbox = inbox;
	take_sctp_share_bulk(RAW_TSN);
	add_sctp_share_assoc(RAW_PEER + 2);
	tsn = take_sctp_share_bulk(RAW_TSN);
	raw_wait(&r, 110);
	cr_expect_eq(read_sctp_share_window(tsn), inbox / 2);
	raw_wait(&r, 110);
	cr_expect_eq(read_sctp_share_window(tsn + 1), r.e->c.rwnd);
}

Test(sctp_share, without_a_bound_each_has_its_window)
{
	begin_sctp_share();
	for (uint16_t n = 1; n <= 3; n++) {
		add_sctp_share_assoc(RAW_PEER + n);
		cr_expect_eq(read_sctp_share_window(RAW_TSN), r.e->c.rwnd);
	}
}

/* ---- what is held, and what is not ---- */

Test(sctp_share, which_messages_would_be_held)
{
	struct ddps_sctp_msg m = make_sctp_share_message(3, 0),
			     next = make_sctp_share_message(3, 1),
			     loose = make_sctp_share_message(3, 9);

	loose.unordered = true;
	begin_sctp_share();
	cr_expect_not(ddps_sc_would_hold(r.a, &m));
	cr_expect_not(ddps_sc_would_hold(r.a, &loose));
	cr_expect(ddps_sc_would_hold(r.a, &next));
	cr_assert_eq(ddps_sc_whole(r.a, &m), 0);
	cr_expect_not(ddps_sc_would_hold(r.a, &next));
	ddps_sctp_pause(r.a, true, r.net.now);
	cr_expect(ddps_sc_would_hold(r.a, &next));
	cr_expect(ddps_sc_would_hold(r.a, &loose));
	ddps_sctp_pause(r.a, false, r.net.now);
	hold_stream(3, true);
	cr_expect(ddps_sc_would_hold(r.a, &next));
	r.a->streams->overrun = true;
	cr_expect_not(ddps_sc_would_hold(r.a, &next), "it would be dropped");
}

/* Each says 0, as is written where it is declared. */
Test(sctp_share, what_is_taken)
{
	struct ddps_sctp_msg m = make_sctp_share_message(3, 0),
			     next = make_sctp_share_message(3, 2),
			     loose = make_sctp_share_message(3, 9);
	struct ddps_sc_data d = { .tsn = RAW_TSN, .p = (const uint8_t *)"abc", .len = 3 };

	loose.unordered = true;
	begin_sctp_share();
	cr_expect_eq(ddps_sc_whole(r.a, &m), 0);
	cr_expect_eq(ddps_sc_whole(r.a, &loose), 0);
	cr_expect_eq(ddps_sc_whole(r.a, &next), 0);
	cr_expect_eq(ddps_sc_whole(r.a, &next), DDPS_E_PROTOCOL);
	d.flags = SC_DATA_B;
	cr_expect_eq(ddps_sc_fragment_fits(r.a, &d), 0);
	cr_expect_eq(ddps_sc_fragment(r.a, &d), 0);
	d.tsn++;
	d.flags = SC_DATA_E;
	cr_expect_eq(ddps_sc_fragment_fits(r.a, &d), 0);
	cr_expect_eq(ddps_sc_fragment(r.a, &d), 0);
	cr_expect_eq(r.messages, 3);
}

/* Streams and sequence numbers that differ in their highest bits. */
Test(sctp_share, those_ahead_are_distinguished)
{
	struct ddps_sctp_msg m = make_sctp_share_message(0, 1);

	begin_sctp_share();
	cr_expect_eq(ddps_sc_whole(r.a, &m), 0);
	m = make_sctp_share_message(0x8000, 1);
	cr_expect_eq(ddps_sc_whole(r.a, &m), 0);
	m = make_sctp_share_message(3, 1);
	cr_expect_eq(ddps_sc_whole(r.a, &m), 0);
	for (uint16_t ssn = 0; ssn < 2; ssn++) {
		m = make_sctp_share_message(2, ssn);
		cr_expect_eq(ddps_sc_whole(r.a, &m), 0);
	}
	m = make_sctp_share_message(2, 0x8001);
	cr_expect_eq(ddps_sc_whole(r.a, &m), 0);
}

/* ---- the window ---- */

Test(sctp_share, a_window_that_is_used_up, .description = "9260-6.2-2 9260-6.2-6")
{
	begin_sctp_share();
	raw_data(&r, RAW_TSN + 1, 0, 1, WHOLE, "behind");
	ddps_sctp_keep(r.a, (int64_t)r.e->c.rwnd - 1000, r.net.now);
	cr_assert_eq(ddps_sc_rwnd(r.a), 0);
	raw_data(&r, RAW_TSN + 2, 1, 0, WHOLE, "above");
	cr_expect_eq(r.messages, 0);
	cr_expect_eq(r.a->map.high, RAW_TSN + 1);
	raw_data(&r, RAW_TSN, 0, 0, WHOLE, "fills a gap");
	cr_expect_eq(r.messages, 2);
	cr_expect_eq(r.a->map.cum, RAW_TSN + 1);
	raw_data(&r, RAW_TSN + 2, 1, 0, WHOLE, "above");
	cr_expect_eq(r.messages, 2);
}

/* Whether a message of 5 octets that comes too early is kept. */
static bool kept_early(void)
{
	uint32_t high = r.a->map.high;

	raw_data(&r, RAW_TSN + 1, 0, 1, WHOLE, "hello");
	return r.a->map.high != high;
}

Test(sctp_share, what_is_early_is_kept_up_to_both_bounds)
{
	for (unsigned less = 0; less < 2; less++) {
		begin_sctp_share();
		r.e->c.max_held = 5 + DDPS_SC_ITEM - less;
		cr_expect_eq(kept_early(), !less);
		cr_expect_eq(r.e->st.held_full, less);
		fini();
		begin_sctp_share();
		r.e->c.rwnd = 4000;
		ddps_sctp_keep(r.a, 2400, r.net.now);
		r.e->c.rwnd = 2400 + 5 + DDPS_SC_ITEM - less;
		ddps_sctp_keep(r.a, 0, r.net.now);
		{
			struct ddps_sctp_msg m = make_sctp_share_message(0, 1);

			cr_expect_eq(ddps_sc_rwnd(r.a), 0);
			cr_expect(ddps_sc_would_hold(r.a, &m));
		}
		fini();
	}
	raw_init(&r);
}

/* It fills a gap, so that the window may be passed, by as much again. */
Test(sctp_share, what_fills_a_gap_has_a_bound_too)
{
	for (unsigned less = 0; less < 2; less++) {
		size_t own = 6 + DDPS_SC_ITEM, all;

		begin_sctp_share();
		raw_data(&r, RAW_TSN + 9, 1, 1, WHOLE, "behind");
		all = 2 * own + 5000;
		all += all & 1;
		ddps_sctp_keep(r.a, (int64_t)(all - 2 * own), r.net.now);
		r.e->c.rwnd = all / 2 - less;
		raw_data(&r, RAW_TSN + 1, 1, 2, WHOLE, "before");
		cr_expect_eq(r.a->held, less ? own : 2 * own, "%zu", r.a->held);
		fini();
	}
	raw_init(&r);
}

Test(sctp_share, a_fragment_without_room_comes_again)
{
	begin_sctp_share();
	r.e->c.max_held = 3;
	raw_data(&r, RAW_TSN, 0, 0, SC_DATA_B, "hel");
	cr_expect_eq(r.a->map.cum, RAW_TSN - 1);
	r.e->c.max_held = 3000;
	raw_data(&r, RAW_TSN, 0, 0, SC_DATA_B, "hel");
	cr_expect_eq(r.a->map.cum, RAW_TSN);
	raw_data(&r, RAW_TSN + 1, 0, 0, SC_DATA_E, "lo");
	cr_expect_eq(r.messages, 1);
	cr_expect_eq(r.last.len, 5);
}

Test(sctp_share, the_longest_message)
{
	struct ddps_sc_data d = {
		.tsn = RAW_TSN, .flags = SC_DATA_B, .p = (const uint8_t *)"0123456789", .len = 10
	};

	for (unsigned less = 0; less < 2; less++) {
		int want = less ? DDPS_E_LIMIT : 0;

		begin_sctp_share();
		r.e->c.max_message = 10 - less;
		cr_expect_eq(ddps_sc_fragment(r.a, &d), want);
		fini();
		begin_sctp_share();
		r.e->c.rwnd = 10 + DDPS_SC_ITEM + 3000 - less;
		cr_expect_eq(ddps_sc_fragment(r.a, &d), want);
		fini();
	}
	raw_init(&r);
}

/* ---- memory ---- */

static void bring_share_data(uint32_t tsn, uint16_t ssn, uint8_t flags, const char *text)
{
	raw_begin(&r, r.tag);
	raw_put_data(&r, tsn, 0, ssn, flags, text);
	raw_hand(&r);
}

Test(sctp_share, a_stream_without_memory_leaves_nothing)
{
	for (unsigned n = 1; n <= 3; n++) {
		long before;

		begin_sctp_share();
		before = mem_live();
		mem_fail(n);
		cr_expect_eq(ddps_sctp_hold_stream(r.a, 3, true, r.net.now), DDPS_E_NOMEM);
		cr_expect(mem_failed());
		cr_expect_eq(mem_live(), before, "%u", n);
		fini();
	}
	raw_init(&r);
}

/* Whatever fails: it is not acknowledged, is counted at most once, and comes again. */
Test(sctp_share, a_message_that_finds_no_memory_comes_again)
{
	unsigned counted = 0;

	for (unsigned n = 1; n < 9; n++) {
		begin_sctp_share();
		ddps_sctp_pause(r.a, true, r.net.now);
		mem_fail(n);
		bring_share_data(RAW_TSN, 0, WHOLE, "hello");
		if (!mem_failed())
			n = 9;
		else
			cr_expect_eq(r.a->map.cum, RAW_TSN - 1, "%u", n);
		mem_fail(0);
		cr_expect_leq(r.e->st.no_memory, 1);
		counted += (unsigned)r.e->st.no_memory;
		bring_share_data(RAW_TSN, 0, WHOLE, "hello");
		cr_expect_eq(r.a->map.cum, RAW_TSN);
		ddps_sctp_pause(r.a, false, r.net.now);
		raw_wait(&r, 1);
		cr_expect_eq(r.messages, 1, "%u", n);
		fini();
	}
	cr_expect_eq(counted, 1, "the copy of it: %u", counted);
	raw_init(&r);
}

Test(sctp_share, the_map_of_what_came_finds_no_memory)
{
	begin_sctp_share();
	mem_fail(1);
	bring_share_data(RAW_TSN + 5000, 0, WHOLE, "hello");
	cr_assert(mem_failed());
	cr_expect_eq(r.e->st.no_memory, 1);
	cr_expect_eq(r.a->map.high, r.a->map.cum);
}

/* The second of three fragments: what is lost by it ends the association, the rest comes again. */
Test(sctp_share, a_fragment_that_finds_no_memory)
{
	unsigned ended = 0;

	for (unsigned n = 1; n < 12; n++) {
		bool failed;

		begin_sctp_share();
		bring_share_data(RAW_TSN, 0, SC_DATA_B, "one");
		mem_fail(n);
		bring_share_data(RAW_TSN + 1, 0, 0, "two");
		failed = mem_failed();
		mem_fail(0);
		if (r.gone) {
			cr_expect_eq(r.why.code, DDPS_E_NOMEM);
			cr_expect_eq(r.e->st.no_memory, 1, "%u", n);
			ended++;
		} else {
			bring_share_data(RAW_TSN + 1, 0, 0, "two");
			bring_share_data(RAW_TSN + 2, 0, SC_DATA_E, "three");
			cr_expect_eq(r.messages, 1, "%u", n);
			cr_expect_eq(r.last.len, 11);
			raw_wait(&r, 1);
		}
		cr_expect_eq(r.e->st.held, 0, "%u", n);
		fini();
		if (!failed)
			break;
	}
	cr_expect_geq(ended, 2, "%u", ended);
	raw_init(&r);
}

Test(sctp_share, a_whole_message_that_finds_no_memory_ends_it)
{
	unsigned ended = 0;

	for (unsigned n = 1; n < 12; n++) {
		bool failed;

		begin_sctp_share();
		bring_share_data(RAW_TSN, 0, SC_DATA_B, "one");
		mem_fail(n);
		bring_share_data(RAW_TSN + 1, 0, SC_DATA_E, "two");
		failed = mem_failed();
		mem_fail(0);
		if (r.gone) {
			cr_expect_eq(r.why.code, DDPS_E_NOMEM);
			cr_expect_eq(r.e->st.no_memory, 1, "%u", n);
			ended++;
		}
		fini();
		if (!failed)
			break;
	}
	cr_expect_geq(ended, 1);
	raw_init(&r);
}

/* Nothing but the association goes with it. */
Test(sctp_share, a_fragment_without_memory_leaves_nothing)
{
	struct ddps_sc_data d = {
		.tsn = RAW_TSN, .flags = SC_DATA_B, .p = (const uint8_t *)"0123456789", .len = 10
	};

	for (unsigned n = 1; n <= 2; n++) {
		long before;

		begin_sctp_share();
		ddps_sc_pool_fini(&r.e->pool);
		before = mem_live();
		mem_fail(n);
		cr_expect_eq(ddps_sc_fragment(r.a, &d), DDPS_E_NOMEM);
		cr_expect(mem_failed());
		ddps_sc_pool_fini(&r.e->pool);
		cr_expect_eq(mem_live(), before, "%u", n);
		fini();
	}
	raw_init(&r);
}

Test(sctp_share, without_memory_duplicates_are_not_told)
{
	begin_sctp_share();
	bring_share_data(RAW_TSN, 0, WHOLE, "one");
	mem_fail(1);
	bring_share_data(RAW_TSN, 0, WHOLE, "one");
	cr_expect(mem_failed());
	cr_expect_eq(r.a->n_dups, 1);
	cr_expect_eq(r.a->ndups, 0);
}
