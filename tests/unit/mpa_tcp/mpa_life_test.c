/* SPDX-License-Identifier: BSD-2-Clause */
/* The life of an MPA connection: what it begins with, who is informed of its end, and that nothing is left. */
#include "support/said.h"
#include "unit/mpa_tcp/mpa_line_fixture.h"

TestSuite(mpa_life, .timeout = 60);

/* ---- addresses ---- */

/* Two that are equal are so octet by octet, whatever was there before. */
Test(mpa_life, an_address_is_all_there_is)
{
	const struct sockaddr_in four = mpa_loopback(7);
	struct sockaddr_in6 mapped = { .sin6_family = AF_INET6, .sin6_port = htons(7) };
	union ddps_mpa_addr a, b = { 0 };
	char text[72] = "x";

	ddps_mpa_addr_text(&b, text, sizeof text);
	cr_expect_str_eq(text, "", "there is none yet");
	memset(&a, 0x5a, sizeof a);
	b.in = four;
	ddps_mpa_addr_set(&a, (const struct sockaddr *)&four);
	cr_expect_arr_eq((uint8_t *)&a, (uint8_t *)&b, sizeof a);
	ddps_mpa_addr_text(&a, text, sizeof text);
	cr_expect_str_eq(text, "127.0.0.1:7");
	memset(&a, 0x5a, sizeof a);
	cr_assert_eq(inet_pton(AF_INET6, "::ffff:127.0.0.1", &mapped.sin6_addr), 1);
	ddps_mpa_addr_set(&a, (const struct sockaddr *)&mapped);
	cr_expect_arr_eq((uint8_t *)&a, (uint8_t *)&b, sizeof a);
}

/* No IPv4 address looks like a mapped one, whatever is behind it. */
Test(mpa_life, an_ipv4_address_is_not_taken_for_a_mapped_one)
{
	union ddps_mpa_addr a;
	union {
		struct sockaddr_in in;
		struct sockaddr_in6 in6;
	} from = { .in6 = { .sin6_family = AF_INET, .sin6_port = htons(7) } };

	cr_assert_eq(inet_pton(AF_INET6, "::ffff:192.0.2.1", &from.in6.sin6_addr), 1);
	from.in.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
	ddps_mpa_addr_set(&a, (const struct sockaddr *)&from);
	cr_expect_eq(a.in.sin_addr.s_addr, htonl(INADDR_LOOPBACK));
	cr_expect_eq(a.in.sin_family, AF_INET);
}

/* ---- birth ---- */

Test(mpa_life, what_a_connection_begins_with, .description = "5044-4.5-6")
{
	struct line l;

	line_init(&l);
	cr_expect(l.c->llp.half_close);
	cr_expect(l.c->llp.has_codes);
	cr_expect_eq(l.c->llp.ops->mulpdu(&l.c->llp), 128, "until EMSS is known");
	ddps_mpa_conn_destroy(l.c);
	line_fini(&l);
}

Test(mpa_life, without_memory_there_is_no_connection)
{
	const struct sockaddr_in peer = mpa_loopback(7);
	struct ddps_env env = { 0 };

	for (unsigned n = 1; n <= 2; n++) {
		long live = mem_live();

		mem_fail(n);
		cr_expect_null(ddps_mpa_conn_new(&env, &line_tcp, (const struct sockaddr *)&peer),
			       "%u", n);
		cr_expect(mem_failed());
		cr_expect_eq(mem_live(), live);
	}
}

/* The buffer of an FPDU that is not whole yet is lent by the context, and goes back to it. */
Test(mpa_life, buffers_are_the_contexts)
{
	struct line l;
	void *part;

	line_full(&l);
	cr_expect_eq(l.w.env.mpa_rx.n, 0);
	line_fpdus(&l, 1, 500);
	l.in.len -= 100;
	line_ready(&l, DDPS_MPA_IN);
	part = l.c->rx.part;
	cr_expect_not_null(part);
	line_fpdus(&l, 1, 18);
	l.c->llp.ops->free(&l.c->llp);
	l.s->llp = NULL;
	cr_expect_eq(l.w.env.mpa_rx.n, 1);
	cr_expect_eq(l.w.env.mpa_rx.first, part);
	line_fini(&l);
}

/* What a context has kept for its connections goes with it. */
Test(mpa_life, a_context_leaves_nothing)
{
	struct ddps_env env = { 0 };
	long live = mem_live();

	for (unsigned i = 0; i < 3; i++) {
		ddps_spare_put(&env.mpa_tx, malloc(16));
		ddps_spare_put(&env.mpa_copied, malloc(16));
		ddps_spare_put(&env.mpa_rx, malloc(16));
	}
	ddps_mpa_provider.fini(&env);
	cr_expect_eq(mem_live(), live);
}

/* ---- the end ---- */

static int large_next(void *user, struct ddps_seg *seg, size_t mulpdu)
{
	static uint8_t payload[1000];
	unsigned *n = user;

	(void)mulpdu;
	if (*n == 0)
		return 0;
	--*n;
	seg->hdr_len = 18;
	seg->pay_len = sizeof payload;
	seg->pay[0] = (struct iovec){ payload, sizeof payload };
	seg->npay = 1;
	return 1;
}

/* Immediately, whatever it is about. */
Test(mpa_life, destroyed_it_leaves_nothing)
{
	long live = mem_live();
	struct line l;
	unsigned n = 1;

	line_init(&l);
	ddps_mpa_conn_deadline(l.c, DDPS_MPA_T_SETUP, 5000);
	ddps_task_post(l.w.env.loop, &l.c->task);
	cr_assert_eq(ddps_mpa_tx_fill(&l.c->tx, large_next, &n, 1442), 1);
	ddps_llp_lend(&l.w.env, &l.c->llp, true);
	ddps_mpa_conn_destroy(l.c);
	cr_expect_null(l.w.env.lenders);
	cr_expect_eq(l.closes, 1);
	line_fini(&l);
	cr_expect_eq(mem_live(), live);
}

/* Nothing refers to memory of the layer above any more, and no deadline is left. */
Test(mpa_life, an_abort_lets_go_immediately)
{
	struct line l;
	static uint8_t pattern[1000];

	line_responder(&l);
	l.w.answer_param.crc = false;
	line_feed(&l, MPA_REQ "\0\x01\0\0", 20);
	line_ready(&l, DDPS_MPA_IN);
	line_fpdus(&l, 1, 18);
	line_ready(&l, DDPS_MPA_IN);
	cr_assert_eq(l.c->state, DDPS_MPA_FULL);
	l.room = 100;
	mpa_send_segments(l.s, pattern, 1000, 1);
	cr_expect_eq(l.w.env.lenders, &l.c->llp);
	cr_expect_not(l.c->pumping);
	ddps_mpa_conn_deadline(l.c, DDPS_MPA_T_CLOSE, 5000);
	l.s->llp->ops->abort(l.s->llp);
	cr_expect_null(l.w.env.lenders);
	cr_expect_null(l.c->tx.batch);
	cr_expect_not(ddps_timer_runs(&l.c->timer));
	cr_expect_eq(l.closes, 1);
	cr_expect_eq(l.resets, 1);
	cr_expect_eq(l.s->called[UP_CLOSED], 0, "from the loop only");
	line_run(&l);
	cr_expect_eq(l.s->called[UP_CLOSED], 1);
	cr_expect_eq(l.s->end.code, DDPS_E_CLOSED);
	line_fini(&l);
}

/* In whatever upcall it is freed, all its memory goes, and nothing more comes up. */
Test(mpa_life, freed_in_an_upcall_it_leaves_nothing)
{
	static const enum mpa_upcall ups[] = { UP_REQUEST, UP_RX, UP_FAULT, UP_PEER_CLOSED,
					       UP_CLOSED };

	for (size_t i = 0; i < sizeof ups / sizeof *ups; i++) {
		long live = mem_live();
		struct line l;

		line_responder(&l);
		l.s->react[ups[i]] = DO_FREE;
		line_requested(&l);
		if (l.s->llp) {
			line_fpdus(&l, 2, 18);
			if (ups[i] == UP_FAULT)
				l.in.p[l.in.len - 1] ^= 1;
			l.fin = ups[i] != UP_CLOSED;
			if (!l.fin)
				l.s->llp->ops->abort(l.s->llp);
			else
				for (unsigned k = 0; k < 2; k++)
					if (l.s->llp)
						line_ready(&l, DDPS_MPA_IN);
		}
		line_run(&l);
		cr_expect_null(l.s->llp, "%zu", i);
		for (unsigned k = 0; k < UP_N; k++)
			cr_expect_leq(l.s->called[k], 2u, "%u", k);
		cr_expect_eq(l.closes, 1);
		line_fini(&l);
		cr_expect_eq(mem_live(), live, "%zu", i);
	}
}

/* It had no Request yet: nobody frees it but itself. */
Test(mpa_life, ended_before_anyone_had_it_it_frees_itself)
{
	long live = mem_live();
	struct line l;

	line_responder(&l);
	l.c->timer.fn(l.c->timer.user);
	line_run(&l);
	cr_expect_eq(l.closes, 1);
	cr_expect_eq(l.w.requests, 0);
	line_fini(&l);
	cr_expect_eq(mem_live(), live);
}

/* Whoever was rejected and stays is left without an error; nothing is left of it. */
Test(mpa_life, a_rejected_peer_is_left_in_time, .description = "5044-7.1.2-7")
{
	long live = mem_live();
	struct line l;

	line_responder(&l);
	l.s->react[UP_REQUEST] = DO_REJECT;
	line_requested(&l);
	cr_expect_eq(l.c->deadline, DDPS_MPA_T_LINGER);
	l.c->timer.fn(l.c->timer.user);
	cr_expect_eq(l.closes, 1);
	line_run(&l);
	cr_expect_eq(l.s->called[UP_CLOSED], 1);
	cr_expect_eq(l.s->end.code, 0);
	cr_expect_eq(l.c->depth, 0);
	line_fini(&l);
	cr_expect_eq(mem_live(), live);
}

/* What it wanted to be shown again is not: the end is what comes. */
Test(mpa_life, an_abort_behind_a_resume_is_reported)
{
	struct line l;

	line_full(&l);
	l.s->holding = true;
	line_fpdus(&l, 1, 18);
	line_ready(&l, DDPS_MPA_IN);
	cr_assert_eq(l.s->holds, 1);
	l.s->llp->ops->resume(l.s->llp);
	l.s->llp->ops->abort(l.s->llp);
	line_run(&l);
	cr_expect_eq(l.s->holds, 1);
	cr_expect_eq(l.s->called[UP_CLOSED], 1);
	line_fini(&l);
}

/* However often it is asked for, a close has one deadline. */
Test(mpa_life, a_second_shutdown_puts_nothing_off)
{
	struct line l;
	uint64_t due;

	line_full(&l);
	l.s->llp->ops->shutdown(l.s->llp);
	due = l.c->timer.due;
	line_run(&l);
	l.s->llp->ops->shutdown(l.s->llp);
	cr_expect_eq(l.c->timer.due, due);
	line_run(&l);
	cr_expect_eq(l.fins, 1);
	line_fini(&l);
}

Test(mpa_life, what_cannot_be_waited_for_is_an_end)
{
	struct line l;

	line_full(&l);
	l.watch_err = ENOSPC;
	l.room = 0;
	mpa_send_segments(l.s, mpa_send1, 18, 1);
	line_run(&l);
	cr_expect_eq(l.s->called[UP_CLOSED], 1);
	cr_expect_eq(l.s->end.code, DDPS_E_SYSTEM);
	cr_expect_eq(l.s->end.sys_errno, ENOSPC);
	cr_expect(strstr(l.s->end.text, "epoll: "), "%s", l.s->end.text);
	line_fini(&l);
}

/* ---- what the log says ---- */

Test(mpa_life, changes_of_state_are_logged_and_nothing_else)
{
	struct line l;

	line_full(&l);
	l.w.env.log.fn = note_said;
	l.s->llp->ops->kick(l.s->llp);
	line_fpdus(&l, 1, 18);
	line_ready(&l, DDPS_MPA_IN);
	cr_expect_str_eq(said, "", "it is what it was");
	l.recv_err = ECONNRESET;
	line_ready(&l, DDPS_MPA_IN | DDPS_MPA_BROKEN);
	cr_expect(strstr(said, "127.0.0.1:7: FULL -LOST-> CLOSED\n") == said, "%s", said);
	line_fini(&l);
}

Test(mpa_life, a_fault_of_the_peer_is_logged, .description = "5044-8-9")
{
	struct line l;

	line_full(&l);
	l.w.env.log.fn = note_said;
	line_fpdus(&l, 1, 18);
	l.in.p[l.in.len - 1] ^= 1;
	line_ready(&l, DDPS_MPA_IN);
	cr_expect(strstr(said, "127.0.0.1:7: FPDU with a ULPDU of 18 octets: CRC is"), "%s", said);
	line_fini(&l);
}

Test(mpa_life, a_connection_that_is_refused_is_logged)
{
	struct line l;

	line_init(&l);
	l.w.env.log.fn = note_said;
	line_initiate(&l);
	l.error = ECONNREFUSED;
	line_ready(&l, DDPS_MPA_OUT | DDPS_MPA_BROKEN);
	cr_expect(strstr(said, "127.0.0.1:7: IDLE -LOST-> CLOSED\n"), "%s", said);
	line_run(&l);
	cr_expect_eq(l.s->end.sys_errno, ECONNREFUSED);
	line_fini(&l);
}

/* ---- both sides have closed ---- */

/* In either order, with an octet that is on its way. */
static void line_closed(struct line *l, bool peer_first, uint32_t close_ms)
{
	line_full(l);
	l->c->p.close_ms = close_ms;
	l->unacked = 1;
	l->fin = peer_first;
	if (peer_first)
		line_ready(l, DDPS_MPA_IN);
	l->s->llp->ops->shutdown(l->s->llp);
	line_run(l);
	cr_assert_eq(l->fins, 1);
	l->fin = true;
	if (!peer_first)
		line_ready(l, DDPS_MPA_IN);
	line_run(l);
	cr_expect_eq(l->s->called[UP_CLOSED], 0, "its end waits for the acknowledgement");
	cr_expect(l->s->llp->ops->leaving(l->s->llp));
	cr_expect_eq(l->events, 0, "what is closed on both sides would be reported without end");
}

Test(mpa_life, contact_01_what_the_peer_acknowledges_behind_its_close_has_arrived)
{
	for (int i = 0; i < 2; i++) {
		struct line l;

		line_closed(&l, i, 60000);
		l.unacked = 0;
		MPA_UNTIL(&l.w, l.s->called[UP_CLOSED]);
		cr_expect_eq(l.s->end.code, 0, "%s", l.s->end.text);
		cr_expect_eq(l.resets, 0);
		line_fini(&l);
	}
}

Test(mpa_life, contact_01_what_the_peer_resets_behind_its_close_is_lost)
{
	for (int i = 0; i < 2; i++) {
		struct line l;

		line_closed(&l, i, 60000);
		l.error = i ? EPIPE : ECONNRESET;
		MPA_UNTIL(&l.w, l.s->called[UP_CLOSED]);
		cr_expect_eq(l.s->end.code, DDPS_E_RESET, "%s", l.s->end.text);
		cr_expect(strstr(l.s->end.text, "behind its close"), "%s", l.s->end.text);
		line_fini(&l);
	}
}

Test(mpa_life, contact_01_without_a_limit_it_is_waited_for)
{
	for (int i = 0; i < 2; i++) {
		struct line l;

		line_closed(&l, i, 0);
		cr_expect_eq(l.s->called[UP_CLOSED], 0, "%s", l.s->end.text);
		l.unacked = 0;
		MPA_UNTIL(&l.w, l.s->called[UP_CLOSED]);
		cr_expect_eq(l.s->end.code, 0, "%s", l.s->end.text);
		line_fini(&l);
	}
}

/* By the time that is given, however seldom it is asked. */
Test(mpa_life, contact_01_one_limit_is_for_the_peers_close_and_the_acknowledgement)
{
	for (int i = 0; i < 2; i++) {
		struct line l;
		uint64_t began, ms = NSEC_PER_MSEC;

		began = ddps_now();
		line_closed(&l, i, 60000);
		cr_expect(l.c->close_by >= began + 60000 * ms);
		cr_expect(l.c->close_by <= ddps_now() + 60000 * ms);
		ddps_mpa_data_closed(l.c, l.c->close_by - 100 * ms);
		cr_expect(ddps_mpa_alive(l.c));
		for (unsigned n = 0; n < 2000; n++) /* often */
			ddps_mpa_data_closed(l.c, l.c->close_by - 10 * ms);
		cr_expect(ddps_mpa_alive(l.c));
		cr_expect(l.c->timer.due <= ddps_now() + 11 * ms,
			  "the last look is when it is over");
		ddps_mpa_data_closed(l.c, l.c->close_by);
		line_run(&l);
		cr_expect_eq(l.s->called[UP_CLOSED], 1);
		cr_expect_eq(l.s->end.code, DDPS_E_TIMEDOUT, "%s", l.s->end.text);
		line_fini(&l);
	}
}

/* A program that comes back late takes what has arrived for arrived. */
Test(mpa_life, contact_01_what_is_acknowledged_counts_when_it_is_late)
{
	struct line l;

	line_closed(&l, 0, 60000);
	l.unacked = 0;
	ddps_mpa_data_closed(l.c, l.c->close_by + 1);
	line_run(&l);
	cr_expect_eq(l.s->called[UP_CLOSED], 1);
	cr_expect_eq(l.s->end.code, 0, "%s", l.s->end.text);
	line_fini(&l);
}

Test(mpa_life, contact_01_an_acknowledgement_is_not_waited_for_without_end)
{
	for (int i = 0; i < 2; i++) {
		struct line l;

		line_closed(&l, i, 5);
		MPA_UNTIL(&l.w, l.s->called[UP_CLOSED]);
		cr_expect_eq(l.s->end.code, DDPS_E_TIMEDOUT, "%s", l.s->end.text);
		cr_expect(strstr(l.s->end.text, "within 5 ms"), "%s", l.s->end.text);
		cr_expect_eq(l.resets, 0, "TCP goes on");
		line_fini(&l);
	}
}

/* Behind our FIN, too: TCP has acknowledged the half of an FPDU that nobody takes any more. */
Test(mpa_life, what_was_not_taken_when_a_close_is_late_is_no_end_in_order)
{
	for (int half = 0; half < 2; half++) {
		struct line l;

		line_full(&l);
		l.c->p.close_ms = 5;
		l.unacked = 1; /* else the peer could not learn of anything */
		l.s->llp->ops->shutdown(l.s->llp);
		line_run(&l);
		cr_assert_eq(l.fins, 1);
		if (half) {
			line_fpdus(&l, 1, 500);
			l.in.len -= 100;
			line_ready(&l, DDPS_MPA_IN);
		}
		MPA_UNTIL(&l.w, l.s->called[UP_CLOSED]);
		cr_expect_eq(l.s->end.code, DDPS_E_TIMEDOUT, "%s", l.s->end.text);
		cr_expect_eq(l.resets, (unsigned)half);
		line_fini(&l);
	}
}
