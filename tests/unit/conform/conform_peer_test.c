/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What the peer of the conformance suite says when a case, its target or the system do what they should
 * not: cases of this test's own.
 */
#include "conform/peer/sctp_packet.h"
#include "conform/run.h"
#include "unit/mem_fixture.h"
#include "unit/sys_fixture.h"
#include <criterion/criterion.h>
#include <errno.h>
#include <netinet/in.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#define LIMIT_MS 5000u

static struct cf_run self_run(unsigned wire)
{
	return (struct cf_run){ .wire = wire, .self = true, .limit_ms = LIMIT_MS };
}

static struct cf_run run_at(unsigned wire, const char *uri, unsigned limit_ms)
{
	return (struct cf_run){ .wire = wire, .uri = uri, .limit_ms = limit_ms };
}

/* One case.  Return: its verdict, with why in @why. */
/* Again if this host was too busy to say, as the suite does. */
static enum ddps_conform_verdict play_peer_case(struct cf_run run, enum cf_target target,
						void (*f)(struct cf *cf), char why[1000])
{
	const struct cf_case c = { "test-case", "", "", CF_BOTH, target, run.self, f };
	struct cf_result res;

	run.target = target;
	for (int i = 0; i < 50; i++) {
		cf_run_case(&run, &c, &res);
		cf_trace_free(res.trace);
		if (res.verdict != DDPS_CONFORM_UNDECIDED)
			break;
	}
	strcpy(why, res.why);
	return res.verdict;
}

static char why[1000];

#define SAYS(run, target, f, text)                                                                 \
	do {                                                                                       \
		cr_expect_eq(play_peer_case(run, target, f, why), DDPS_CONFORM_FAIL);              \
		cr_expect(strstr(why, text), "%s", why);                                           \
	} while (0)

/* ---- cases that are wrong ---- */

static void uses_what_is_not_there(struct cf *cf)
{
	cf_open(cf);
	cf_open(cf);
	cf_use(cf, 1);
	cr_expect_eq(cf->conn->number, 1);
	cf_use(cf, 0);
	cr_expect_eq(cf->conn->number, 0);
	cf_use(cf, 2);
}

static void queue_4(struct cf *cf)
{
	cf_open(cf);
	cf_msn(cf, CF_NQN);
}

static void send_too_long_case(struct cf *cf)
{
	static const uint8_t b[65536];

	cf_tagged(cf, 0, 0, 0, 0, b, sizeof b - 14);
}

static void too_much_for_mpa(struct cf *cf)
{
	struct cf_mpa f = { .pd_len = sizeof f.pd + 1 };

	cf_mpa_write(cf, &f);
}

static void too_much_for_a_chunk(struct cf *cf)
{
	struct cf_ctrl c = { .pd_len = sizeof c.pd + 1 };

	cf_ctrl_write(cf, &c);
}

static void too_much_for_a_session(struct cf *cf)
{
	cf_session(cf, &(struct cf_opts){ .pd_len = 509 });
}

static void post_receive_case(struct cf *cf)
{
	cf_app_recv(cf, 1, 1);
}

static void registers(struct cf *cf)
{
	cf_app_mr(cf, 1, 0);
}

Test(conform_peer, faults_of_a_case_are_said_to_be_its_own)
{
	const struct cf_run far = run_at(CF_TCP, "tcp://127.0.0.1:1", 100);

	SAYS(self_run(CF_TCP), CF_RESPONDER, uses_what_is_not_there,
	     "the case has no connection 2");
	SAYS(self_run(CF_TCP), CF_RESPONDER, queue_4, "case: queue 4");
	SAYS(self_run(CF_TCP), CF_RESPONDER, send_too_long_case, "case: a segment of 65536 octets");
	SAYS(self_run(CF_TCP), CF_RESPONDER, too_much_for_mpa, "case: private data of");
	SAYS(self_run(CF_SCTP), CF_RESPONDER, too_much_for_a_chunk, "case: private data of");
	SAYS(self_run(CF_TCP), CF_RESPONDER, too_much_for_a_session, "case: too much private data");
	SAYS(far, CF_RESPONDER, post_receive_case, "case: it needs the target's application");
	SAYS(far, CF_RESPONDER, registers, "case: it needs the target's application");
}

/* ---- associations that are not there, or no more ---- */

static void open_case(struct cf *cf)
{
	cf_open(cf);
}

/* A UDP port that nobody has. */
static unsigned find_free_conform_peer_port(void)
{
	struct sockaddr_in a = { .sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
	socklen_t len = sizeof a;
	int fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);

	cr_assert_eq(bind(fd, (struct sockaddr *)&a, len), 0);
	cr_assert_eq(getsockname(fd, (struct sockaddr *)&a, &len), 0);
	close(fd);
	return ntohs(a.sin_port);
}

/* Without SCTP of the system's, which sys_fail() takes away, the peer's own is what "auto" means. */
Test(conform_peer, a_port_that_nobody_has)
{
	static const char *const options[] = { "", "backend=native&", "backend=auto&" };

	for (size_t i = 0; i < 3; i++) {
		char uri[100];

		snprintf(uri, sizeof uri, "sctp://127.0.0.1,127.0.0.2:7?%sencap=%u", options[i],
			 find_free_conform_peer_port());
		sys_fail("socket", 0, i != 1, EPROTONOSUPPORT);
		SAYS(run_at(CF_SCTP, uri, LIMIT_MS), CF_RESPONDER, open_case,
		     "no association: Connection refused");
		cr_expect_eq(sys_failed(), i != 1);
	}
}

static void open_bare_case(struct cf *cf)
{
	cf_sctp_bare(cf);
}

Test(conform_peer, sctp_directly_on_ip_takes_a_socket_that_not_everybody_may_open)
{
	sys_fail("socket", 0, 2, EPERM);
	SAYS(run_at(CF_SCTP, "sctp://[::1]:7?encap=off", LIMIT_MS), CF_RESPONDER, open_bare_case,
	     "socket: Operation not permitted");
	cr_expect_eq(sys_failed(), 2);
}

static void hears_of_an_abort(struct cf *cf)
{
	cf_open(cf);
	cf_sctp_heard(cf->conn->assoc, 0, PPID_SEGMENT, true, (const uint8_t *)"x", 1);
	cf_sctp_abort(cf);
	cf_sctp_gone(cf->conn->assoc, "once more");
	cf_sctp_write(cf, 0, PPID_SEGMENT, "abcd", 4);
	cr_expect(cf_sctp_ended(cf));
	cr_expect(cf->ended);
	cf_sctp_expect_end(cf);
	cr_expect_eq(cf_sctp_read(cf)->len, 1);
	cf_sctp_read(cf);
}

static void hears_nothing(struct cf *cf)
{
	struct cf_link *l;

	cf_open(cf);
	l = cf->conn->assoc->below;
	l->due = 1; /* long ago */
	cf_sctp_read(cf);
}

Test(conform_peer, associations_that_end_or_are_silent)
{
	struct cf_run run = self_run(CF_SCTP);

	SAYS(run, CF_RESPONDER, hears_of_an_abort, "the association ended: aborted here");
	run.limit_ms = 200;
	SAYS(run, CF_RESPONDER, hears_nothing, "waited 200 ms for a message of the target");
}

/* ---- initiators that do not come ---- */

static void waits_twice(struct cf *cf)
{
	cf_sctp_bare(cf);
	cf_open(cf);
}

Test(conform_peer, initiators_that_do_not_come)
{
	struct cf_run run = run_at(CF_SCTP, "sctp://[::1]:0?backend=native&encap=0", 30);

	SAYS(run, CF_INITIATOR, waits_twice, "waited 30 ms for an association with the target");
	run.then = "exit 3";
	run.limit_ms = LIMIT_MS;
	SAYS(run, CF_INITIATOR, open_case, "the command failed before the target connected");
	run.then = "exit 0";
	run.limit_ms = 200; /* one that leaves something behind it has not failed */
	SAYS(run, CF_INITIATOR, open_case, "waited 200 ms");
}

/* ---- where ---- */

static void where(struct cf *cf)
{
	char text[80];
	struct cf_at at;

	cf_address(cf, cf->run->uri, &at);
	cf_addr_text(&at.ss, text, sizeof text);
	cf_fail(cf, "%s backend=%s encap=%d", text, at.backend, at.encap);
}

Test(conform_peer, uris)
{
	static const struct {
		const char *uri, *says;
	} row[] = {
		{ "tcp://127.0.0.1:7174", "127.0.0.1:7174 backend= encap=-1" },
		{ "SCTP://[::1]:80?encap=off", "[::1]:80 backend= encap=-2" },
		{ "sctp://[::1],127.0.0.1:80?local=127.0.0.1&encap=9&backend=auto",
		  "[::1]:80 backend=auto encap=9" },
		{ "sctp://127.0.0.2,[::1]:80?backend=native&encap=off",
		  "127.0.0.2:80 backend=native encap=-2" },
		{ "tcp://127.0.0.1", "port is missing" },
		{ "tcp://[::1", "without \"]\"" },
	};

	for (size_t i = 0; i < sizeof row / sizeof *row; i++)
		SAYS(run_at(CF_TCP, row[i].uri, 100), CF_INITIATOR, where, row[i].says);
}

/* ---- sessions ---- */

static void two_sessions(struct cf *cf)
{
	cf_app_recv(cf, 1, 0);
	cf_session(cf, NULL);
	cf->app.ep = NULL;
	cf_session(cf, NULL);
	cr_expect_eq(cf->conn->number, 1);
}

Test(conform_peer, a_second_session_takes_a_connection_of_its_own)
{
	struct cf_run run = self_run(CF_TCP);

	run.pause_ms = 1;
	cr_expect_eq(play_peer_case(run, CF_RESPONDER, two_sessions, why), DDPS_CONFORM_PASS, "%s",
		     why);
}

static void is_not_asked(struct cf *cf)
{
	cf_app_answer(cf); /* it is the target that has connected */
	cr_expect_null(cf->app.request.request);
}

static void wrong_queue(struct cf *cf)
{
	static const uint16_t codes[] = { 0, 0x1202, 0x1201, 0 };

	cf_session(cf, NULL);
	cf_untagged(cf, CF_UNTAGGED_L, CF_SEND, 0, 7, 1, 0, NULL, 0);
	cf_send(cf);
	cf_expect_term_of(cf, codes, CF_ANY);
}

static void other_codes(struct cf *cf)
{
	static const uint16_t codes[] = { 0x1202, 0 };

	cf_session(cf, NULL);
	cf_untagged(cf, CF_UNTAGGED_L, CF_SEND, 0, 7, 1, 0, NULL, 0);
	cf_send(cf);
	cf_expect_term_of(cf, codes, CF_ANY);
}

static void ends_by_a_send(struct cf *cf)
{
	cf_session(cf, NULL);
	cf_app_post(cf, DDPS_OP_SEND, 0, NULL, 0, 0, 0);
	cf_expect_dead(cf);
}

Test(conform_peer, ends)
{
	for (unsigned wire = CF_TCP; wire <= CF_SCTP; wire++) {
		cr_expect_eq(play_peer_case(self_run(wire), CF_INITIATOR, is_not_asked, why),
			     DDPS_CONFORM_PASS);
		cr_expect_eq(play_peer_case(self_run(wire), CF_RESPONDER, wrong_queue, why),
			     DDPS_CONFORM_PASS, "%s", why);
		SAYS(self_run(wire), CF_RESPONDER, other_codes,
		     "Terminate 1/2/01 instead of 1/2/02");
		SAYS(self_run(wire), CF_INITIATOR, ends_by_a_send,
		     "expected a Terminate, got 41 43");
	}
}

/* ---- what is kept of it ---- */

Test(conform_peer, what_finds_no_memory_is_not_in_the_trace)
{
	struct cf_trace *t = cf_trace_new();

	for (unsigned i = 0; i < 3; i++) {
		mem_fail(1);
		if (i == 0)
			cf_trace_ib(t, true, "one", 3);
		else if (i == 1)
			cf_trace_sctp(t, true, 0, 0, 0, "two", 3);
		else
			cf_trace_packet(t, true, 0, false, "three", 5);
		cr_expect(mem_failed());
		cr_expect_null(cf_trace_first(t));
	}
	mem_fail(0);
	cf_trace_ib(t, true, "four", 4);
	cr_expect_eq(cf_trace_first(t)->len, 4);
	cf_trace_free(t);
}
