/* SPDX-License-Identifier: BSD-2-Clause */
/* Rules of faults: what the language takes, which rule fires, and that a seed is a trace. */
#include "edge/fault/vf.h"
#include <criterion/criterion.h>
#include <errno.h>
#include <infiniband/verbs.h>
#include <rdma/rdma_cma.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static struct vf_rules *rules(const char *text)
{
	struct vf_rules *r = calloc(1, sizeof *r);
	struct vf_error e = { 0 };

	cr_assert_eq(vf_parse(r, text, strlen(text), &e), 0, "%u:%u: %s", e.line, e.column, e.why);
	return r;
}

/* A completion of a Send on the first queue pair, unless it is changed. */
static struct vf_event take_vf_completion(void)
{
	return (struct vf_event){
		.point = VF_COMPLETION, .qp = 1, .peer = "192.0.2.1:7174", .opcode = IBV_WC_SEND
	};
}

Test(vf, a_file_of_everything_is_read)
{
	static const char text[] =
		"# a comment\n"
		"\n"
		"on ibv_reg_mr nth 3: fail ENOMEM # the third\n"
		"on completion opcode send qp 2 chance 0.25%: status retry_exc_err\r\n"
		"\ton rdma_connect peer [2001:db8::1]:7174 first 2: event REJECTED\n"
		"on rdma_connect: event UNREACHABLE ETIMEDOUT in 3s\n"
		"on completion every 10 after 1min bytes 2MiB: reorder\n"
		"at 2s qp 1: reset\n"
		"on ibv_post_recv: rnr 250ms";
	struct vf_rules *r = rules(text);

	cr_assert_eq(r->n, 7);
	cr_expect_eq(r->rule[0].line, 3);
	cr_expect_eq(r->rule[0].when.point, VF_ibv_reg_mr);
	cr_expect_eq(r->rule[0].when.nth, 3);
	cr_expect_eq(r->rule[0].value, ENOMEM);
	cr_expect_eq(r->rule[1].when.opcode, IBV_WC_SEND);
	cr_expect_eq(r->rule[1].when.qp, 2);
	cr_expect_eq(r->rule[1].when.chance, 2500);
	cr_expect_eq(r->rule[1].value, IBV_WC_RETRY_EXC_ERR);
	cr_expect_str_eq(r->rule[2].when.peer, "[2001:db8::1]:7174");
	cr_expect_eq(r->rule[2].when.first, 2);
	cr_expect_eq(r->rule[2].value, RDMA_CM_EVENT_REJECTED);
	cr_expect_eq(r->rule[3].status, ETIMEDOUT);
	cr_expect_eq(r->rule[3].ms, 3000);
	cr_expect_eq(r->rule[4].when.every, 10);
	cr_expect_eq(r->rule[4].when.after_ms, 60000);
	cr_expect_eq(r->rule[4].when.bytes, 2 << 20);
	cr_expect_eq(r->rule[4].what, VF_REORDER);
	cr_expect_eq(r->rule[5].when.point, VF_TIME);
	cr_expect_eq(r->rule[5].what, VF_RESET);
	cr_expect_eq(r->rule[6].ms, 250);
	free(r);
}

Test(vf, complaints_name_line_column_and_what_is_expected)
{
	static const struct {
		const char *text;
		unsigned line, column;
		const char *why;
	} row[] = {
		{ "if x", 1, 1, "expected 'on' or 'at', not 'if'" },
		{ "\n\non", 3, 3, "expected a call, as ibv_reg_mr, or 'completion', not the end" },
		{ "on ibv_nothing: reset", 1, 4, "expected a call" },
		{ "on time: reset", 1, 4, "expected a call" },
		{ "on completion", 1, 14, "expected qp, peer, opcode, nth" },
		{ "on completion often: lose", 1, 15, "expected qp, peer, opcode, nth" },
		{ "on completion nth 0: lose", 1, 19, "expected a number from 1" },
		{ "on completion nth 1x: lose", 1, 19, "expected a number from 1" },
		{ "on completion nth 99999999999: lose", 1, 19, "expected a number" },
		{ "on completion chance 101%: lose", 1, 22, "expected a share" },
		{ "on completion chance 5: lose", 1, 22, "expected a share" },
		{ "on completion chance 0.00001%: lose", 1, 22, "expected a share" },
		{ "on completion chance 5.%: lose", 1, 22, "expected a share" },
		{ "on completion opcode sned: lose", 1, 22, "expected send, write" },
		{ "on ibv_reg_mr opcode send: fail EIO", 1, 15, "opcode goes with 'completion'" },
		{ "on completion after 5: lose", 1, 21, "expected a time" },
		{ "on completion after 25000min: lose", 1, 21, "expected a time" },
		{ "on completion bytes 1KB: lose", 1, 21, "expected a size" },
		{ "on completion peer : lose", 1, 20, "expected an address" },
		{ "on completion:", 1, 15, "expected fail, status, delay" },
		{ "on completion: explode", 1, 16, "expected fail, status, delay" },
		{ "on completion: fail ENOMEM", 1, 16, "'fail' goes with calls only" },
		{ "on ibv_reg_mr: status RETRY_EXC_ERR", 1, 16, "'status' goes with 'completion'" },
		{ "on ibv_reg_mr: fail ENOTHING", 1, 21, "expected an error, as ENOMEM" },
		{ "on completion: status WRONG", 1, 23, "expected a status" },
		{ "on completion: delay", 1, 21, "expected a time" },
		{ "on completion: delay 3s more", 1, 25,
		  "expected the end of the line, not 'more'" },
		{ "at 1s nth 3: reset", 1, 7, "expected qp or ':'" },
		{ "at 1s: delay 1s", 1, 8, "'delay' goes with calls and completions" },
		{ "on rdma_connect: event REJECTED soon", 1, 33, "expected an error as ETIMEDOUT" },
		{ "on ibv_reg_mr: event REJECTED", 1, 16, "'event' goes with what concerns" },
		{ "on ibv_reg_mr: \x1b[31m", 1, 16, "not '?[31m'" },
		{ "on ibv_reg_mr: \x7f", 1, 16, "not '?'" },
		{ "on completion chance 5x5%: lose", 1, 22, "expected a share" },
		{ "on completion chance 5.25: lose", 1, 22, "expected a share" },
		{ "on completion chance 5.2x%: lose", 1, 22, "expected a share" },
		{ "on completion chance 0%: lose", 1, 22, "expected a share" },
		{ "on completion chance 0.00%: lose", 1, 22, "expected a share" },
		{ "on completion chance 100.01%: lose", 1, 22, "expected a share" },
		{ "on completion qp x: lose", 1, 18, "expected a number from 1" },
		{ "at soon: reset", 1, 4, "expected a time" },
		{ "on rdma_connect: event", 1, 23, "expected an event, as RDMA_CM" },
		{ "on rdma_connect: event NOTHING", 1, 24, "expected an event, as RDMA_CM" },
		{ "on ibv_reg_mr: rnr 5ms", 1, 16, "'rnr' goes with ibv_post_recv and" },
		{ "on ibv_reg_mr: corrupt", 1, 16, "'corrupt' goes with ibv_post_send" },
		{ "on ibv_reg_mr: reset", 1, 16, "'reset' goes with 'completion', 'at'" },
		{ "on rdma_get_request: event REJECTED", 1, 22, "'event' goes with what" },
		{ "on rdma_get_cm_event: event REJECTED", 1, 23, "'event' goes with what" },
		{ "on completion:# no effect", 1, 15, "expected fail, status, delay" },
		{ "on completion abcdefghijklmnopqrstuvwxyzabcdefghijklmnopqrstuvwxyz: lose", 1, 15,
		  "not 'abcdefghijklmnopqrstuvwxyzabcdefghijklmn'" },
	};
	struct vf_rules *r = calloc(1, sizeof *r);

	for (size_t i = 0; i < sizeof row / sizeof *row; i++) {
		struct vf_error e = { 0 };

		cr_expect_eq(vf_parse(r, row[i].text, strlen(row[i].text), &e), -1, "%s",
			     row[i].text);
		cr_expect_eq(e.line, row[i].line, "%s: line %u", row[i].text, e.line);
		cr_expect_eq(e.column, row[i].column, "%s: column %u", row[i].text, e.column);
		cr_expect(strstr(e.why, row[i].why), "%s: %s", row[i].text, e.why);
		cr_expect_eq(r->n, 0);
	}
	free(r);
}

Test(vf, effects_go_with_their_points)
{
	struct vf_rules *r = rules("on ibv_post_srq_recv: rnr 5ms\non ibv_post_send: corrupt\n"
				   "on ibv_post_send: reset\non ibv_post_recv: silence\n"
				   "on ibv_modify_qp: reset\non ibv_query_qp: reset\n"
				   "on rdma_disconnect: event DISCONNECTED\n");

	cr_assert_eq(r->n, 7);
	cr_expect_eq(r->rule[0].what, VF_RNR);
	cr_expect_eq(r->rule[1].what, VF_CORRUPT);
	cr_expect_eq(r->rule[3].what, VF_SILENCE);
	cr_expect_eq(r->rule[6].what, VF_EVENT);
	cr_expect_null(vf_name(VF_NAME_EVENT, 9999));
	free(r);
}

Test(vf, one_rule_too_many_is_an_error)
{
	char *text = calloc(VF_RULES + 1, 40);
	struct vf_rules *r = calloc(1, sizeof *r);
	struct vf_error e = { 0 };

	for (int i = 0; i < VF_RULES; i++)
		strcat(text, "on completion: lose\n");
	cr_expect_eq(vf_parse(r, text, strlen(text), &e), 0);
	cr_expect_eq(r->n, VF_RULES);
	strcat(text, "at 1s: reset");
	cr_expect_eq(vf_parse(r, text, strlen(text), &e), -1);
	cr_expect_eq(e.line, VF_RULES + 1);
	free(r);
	free(text);
}

Test(vf, conditions_hold_together)
{
	struct vf_rules *r = rules("on completion qp 1 opcode send peer 192.0.2.1 after 10ms "
				   "bytes 100: lose");
	struct vf_event e = take_vf_completion();

	e.ms = 10;
	e.bytes = 100;
	cr_expect(vf_match(r, &e));
	e.qp = 2;
	cr_expect_not(vf_match(r, &e));
	e = (struct vf_event){ VF_COMPLETION, 1, "192.0.2.1:1", IBV_WC_RECV, 10, 100, 0, NULL };
	cr_expect_not(vf_match(r, &e));
	e.opcode = IBV_WC_SEND;
	cr_expect(vf_match(r, &e));
	e.peer = "192.0.2.11:1";
	cr_expect_not(vf_match(r, &e));
	e.peer = NULL;
	cr_expect_not(vf_match(r, &e));
	e.peer = "192.0.2.1:1";
	e.ms = 9;
	cr_expect_not(vf_match(r, &e));
	e.ms = 10;
	e.bytes = 99;
	cr_expect_not(vf_match(r, &e));
	e.bytes = 100;
	e.point = VF_ibv_post_send;
	cr_expect_not(vf_match(r, &e));
	free(r);
}

Test(vf, peers_have_ports_or_none)
{
	static const struct {
		const char *want, *peer;
		bool is;
	} row[] = {
		{ "192.0.2.1", "192.0.2.1:7174", true },
		{ "192.0.2.1:7174", "192.0.2.1:7174", true },
		{ "192.0.2.1:717", "192.0.2.1:7174", false },
		{ "2001:db8::1", "[2001:db8::1]:7174", true },
		{ "[2001:db8::1]", "[2001:db8::1]:7174", true },
		{ "[2001:db8::1]:7174", "[2001:db8::1]:7174", true },
		{ "2001:db8::", "[2001:db8::1]:7174", false },
		{ "::1", "[::1]:7174", true },
		{ "2001:db8::2", "[2001:db8::1]:7174", false },
		{ "2001", "2001:db8::1", false },
	};

	for (size_t i = 0; i < sizeof row / sizeof *row; i++) {
		struct vf_event e = take_vf_completion();
		struct vf_rules *r;
		char text[120];

		snprintf(text, sizeof text, "on completion peer %s: lose", row[i].want);
		r = rules(text);
		e.peer = row[i].peer;
		cr_expect_eq(vf_match(r, &e) != NULL, row[i].is, "%s %s", row[i].want, row[i].peer);
		free(r);
	}
}

/* Which of the first ten of them fire, as a string of digits. */
static void fired(const char *text, const char *want)
{
	struct vf_rules *r = rules(text);
	struct vf_event e = take_vf_completion();
	char got[11] = "";

	for (int i = 0; i < 10; i++)
		got[i] = vf_match(r, &e) ? '1' : '0';
	cr_expect_str_eq(got, want, "%s: %s", text, got);
	free(r);
}

Test(vf, counts_are_of_what_the_other_conditions_agree_with)
{
	fired("on completion: lose", "1111111111");
	fired("on completion nth 3: lose", "0010000000");
	fired("on completion every 4: lose", "0001000100");
	fired("on completion first 2: lose", "1100000000");
	fired("on completion every 3 first 6: lose", "0010010000");
	fired("on completion qp 2: lose", "0000000000");
	/* the first rule that fires; the second counts nevertheless */
	fired("on completion nth 1: lose\non completion nth 3: lose", "1010000000");
}

Test(vf, the_first_rule_that_fires_is_the_one)
{
	struct vf_rules *r = rules("on completion nth 1: lose\non completion: delay 1ms");
	struct vf_event e = take_vf_completion();

	cr_expect_eq(vf_match(r, &e)->what, VF_LOSE);
	cr_expect_eq(vf_match(r, &e)->what, VF_DELAY);
	free(r);
}

Test(vf, a_share_is_about_that_share)
{
	struct vf_rules *r = rules("on completion chance 5%: lose");
	struct vf_event e = take_vf_completion();
	unsigned n = 0;

	for (unsigned i = 0; i < 100000; i++)
		n += vf_match(r, &e) != NULL;
	cr_expect(n > 4700 && n < 5300, "%u of 100000", n);
	free(r);
}

/* The trace of a run of two queues, in which @turn says whose turn it is: its bits, over and over. */
static void run_vf(uint64_t seed, unsigned turn, char *trace, size_t len)
{
	static const char text[] = "on completion opcode recv chance 20%: status GENERAL_ERR\n"
				   "on completion opcode send chance 10%: delay 5ms\n";
	struct vf_rules *r = rules(text);
	uint64_t drawn[2][VF_RULES] = { { 0 } };
	unsigned left[2] = { 200, 200 };
	size_t at = 0;

	r->seed = seed;
	for (unsigned i = 0; left[0] || left[1]; i++) {
		unsigned q = turn >> i % 8 & 1;
		struct vf_event e = take_vf_completion();
		const struct vf_rule *fires;
		char line[VF_TEXT];

		q = left[q] ? q : !q;
		left[q]--;
		e.queue = q;
		e.drawn = drawn[q];
		e.opcode = q ? IBV_WC_RECV : IBV_WC_SEND;
		fires = vf_match(r, &e);
		if (!fires || !q)
			continue;
		/* which one of its queue: a number of both would tell whose turn it was */
		vf_trace(line, 200 - left[q], &e, fires);
		at += (size_t)snprintf(trace + at, len - at, "%s\n", line);
	}
	free(r);
}

Test(vf, a_seed_is_a_trace_1000_of_1000_times)
{
	static char first[8192], again[8192], other[8192];

	run_vf(7, 0x55, first, sizeof first);
	cr_assert(strlen(first) > 500, "%s", first);
	for (unsigned i = 0; i < 1000; i++) {
		memset(again, 0, sizeof again);
		run_vf(7, i, again, sizeof again); /* whose turn it is does not matter */
		cr_assert_str_eq(again, first, "turn %u", i);
	}
	run_vf(8, 0x55, other, sizeof other);
	cr_expect_str_neq(other, first);
}

Test(vf, a_trace_line_says_what_was_done_to_what)
{
	struct vf_rules *r = rules("on completion: status GENERAL_ERR");
	struct vf_event e = take_vf_completion();
	char text[VF_TEXT];

	vf_trace(text, 4, &e, vf_match(r, &e));
	cr_expect_str_eq(text, "4 completion send qp 1: line 1: status IBV_WC_GENERAL_ERR");
	free(r);
	r = rules("\non ibv_reg_mr: fail enomem");
	e = (struct vf_event){ .point = VF_ibv_reg_mr, .opcode = VF_NOT_SAID };
	vf_trace(text, 5, &e, vf_match(r, &e));
	cr_expect_str_eq(text, "5 ibv_reg_mr: line 2: fail ENOMEM");
	free(r);
	r = rules("at 1s: remove-device");
	e = (struct vf_event){ .point = VF_TIME, .opcode = VF_NOT_SAID, .ms = 1000 };
	vf_trace(text, 6, &e, vf_match(r, &e));
	cr_expect_str_eq(text, "6 time: line 1: remove-device");
	free(r);
}

/* rdma-core's headers have the names: a value that they add and the table lacks would show here. */
Test(vf, every_status_and_event_of_the_headers_has_a_name)
{
	for (int i = 0; i <= IBV_WC_TM_RNDV_INCOMPLETE; i++)
		cr_expect(vf_name(VF_NAME_STATUS, i), "status %d", i);
	for (int i = 0; i <= RDMA_CM_EVENT_TIMEWAIT_EXIT; i++)
		cr_expect(vf_name(VF_NAME_EVENT, i), "event %d", i);
	for (int i = 0; i <= IBV_EVENT_WQ_FATAL; i++)
		cr_expect(vf_name(VF_NAME_ASYNC, i), "event %d", i);
	for (int i = 0; i < VF_EFFECTS; i++)
		cr_expect(vf_name(VF_NAME_EFFECT, i), "effect %d", i);
	for (int i = 0; i < VF_POINTS; i++)
		cr_expect(vf_name(VF_NAME_POINT, i), "point %d", i);
}
