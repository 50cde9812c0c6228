/* SPDX-License-Identifier: BSD-2-Clause */
/* A peer whose host has vanished: no FIN, no reset, no answer. */
#include "common/loop/loop.h"
#include "support/descriptor.h"
#include "support/e2e.h"
#include <linux/if.h>
#include <sched.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <unistd.h>

/* The loopback device of a network of this process's own. */
static void set_vanished_e2e_loopback(bool up)
{
	struct ifreq r = { .ifr_name = "lo" };
	int fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);

	cr_assert_geq(fd, 0);
	cr_assert_eq(ioctl(fd, SIOCGIFFLAGS, &r), 0);
	if (up)
		r.ifr_flags |= IFF_UP;
	else
		r.ifr_flags &= (short)~IFF_UP;
	cr_assert_eq(ioctl(fd, SIOCSIFFLAGS, &r), 0);
	close(fd);
}

static bool use_own_vanished_e2e_network(void)
{
	if (unshare(CLONE_NEWNET) && (unshare(CLONE_NEWUSER) || unshare(CLONE_NEWNET)))
		cr_skip_test("no right to make a network namespace");
	set_vanished_e2e_loopback(true);
	return true;
}

/* Neither side sends: only keepalive can find out, and it does at both. */
Test(vanished, contact_05_who_only_receives_notices, .timeout = 60)
{
	struct e2e e;

	use_own_vanished_e2e_network();
	e2e_open(&e, e2e_wires[0]);
	e.connect.keepalive_ms = e.accept.keepalive_ms = 3000;
	e2e_connect(&e);
	set_vanished_e2e_loopback(false);
	e2e_wait(&e, &e.a, E2E_SEEN(DDPS_EV_CLOSED));
	e2e_wait(&e, &e.b, E2E_SEEN(DDPS_EV_CLOSED));
	cr_expect_eq(e.a.error.code, DDPS_E_TIMEDOUT, "%s", e.a.error.text);
	cr_expect_eq(e.b.error.code, DDPS_E_TIMEDOUT, "%s", e.b.error.text);
	cr_expect(strstr(e.b.error.text, "answers nothing"), "%s", e.b.error.text);
	e2e_close(&e);
}

/* What was sent is not acknowledged. */
Test(vanished, contact_05_what_is_unacknowledged_has_a_limit, .timeout = 60)
{
	struct ddps_mr *mr;
	uint8_t mem[64];
	struct e2e e;

	use_own_vanished_e2e_network();
	e2e_open(&e, e2e_wires[0]);
	e.connect.unacked_ms = 2000;
	e.connect.keepalive_ms = e.accept.keepalive_ms = 0;
	e2e_connect(&e);
	mr = e2e_reg(&e, mem, sizeof mem, DDPS_REMOTE_WRITE);
	set_vanished_e2e_loopback(false);
	cr_assert_eq(e2e_post(&e.a, DDPS_OP_WRITE, mem, 32, mr, ddps_mr_stag(mr),
			      ddps_mr_to(mr) + 32),
		     0);
	e2e_wait(&e, &e.a, E2E_SEEN(DDPS_EV_CLOSED));
	cr_expect_eq(e.a.error.code, DDPS_E_TIMEDOUT, "%s", e.a.error.text);
	e2e_close(&e);
}

/* Where the initiator's SCTP is a stranger's, nobody can say.  This host cannot vanish from itself. */
static bool can_see_acknowledgements(const char *wire)
{
	return !strstr(wire, "127.0.0.2") && !strstr(wire, "127.0.0.3") &&
	       !strstr(wire, "127.0.0.6") && strncmp(wire, "shm:", 4);
}

/* Who has work under way learns of it in the time, and which work it was. */
E2E_WIRES(vanished, contact_29_a_host_that_acknowledges_nothing_ends_the_session)
{
	uint8_t mem[64];
	struct ddps_mr *mr;
	struct e2e e;

	if (!can_see_acknowledgements(wire))
		return;
	e2e_open(&e, wire);
	e.connect.keepalive_ms = e.accept.keepalive_ms = 0;
	e2e_connect(&e);
	mr = e2e_reg(&e, mem, sizeof mem, DDPS_LOCAL_WRITE | DDPS_REMOTE_READ);
	cr_assert_eq(ddps_ep_answer_within(e.a.ep, 400), 0);
	cut_network();
	for (int i = 0; i < 2; i++)
		cr_assert_eq(e2e_post(&e.a, DDPS_OP_READ, mem, 32, mr, ddps_mr_stag(mr),
				      ddps_mr_to(mr) + 32),
			     0);
	e2e_wait(&e, &e.a, E2E_SEEN(DDPS_EV_CLOSED));
	cr_expect_eq(e.a.error.code, DDPS_E_TIMEDOUT, "%s", e.a.error.text);
	cr_expect(strstr(e.a.error.text, "acknowledged nothing for 400 ms"), "%s", e.a.error.text);
	e2e_expect_wc(&e, &e.a, DDPS_OP_READ, DDPS_WC_UNANSWERED, 0);
	e2e_expect_wc(&e, &e.a, DDPS_OP_READ, DDPS_WC_FLUSHED, 0);
	e2e_close(&e);
}

/* A session with a Read that nobody acknowledges any more, and a limit for that. */
static void begin_unanswered(struct e2e *e, const char *wire, uint8_t *mem, uint32_t ms)
{
	struct ddps_mr *mr;

	e2e_open(e, wire);
	e->connect.keepalive_ms = e->accept.keepalive_ms = 0;
	e2e_connect(e);
	mr = e2e_reg(e, mem, 64, DDPS_LOCAL_WRITE | DDPS_REMOTE_READ);
	cr_assert_eq(ddps_ep_answer_within(e->a.ep, ms), 0);
	cut_network();
	cr_assert_eq(e2e_post(&e->a, DDPS_OP_READ, mem, 32, mr, ddps_mr_stag(mr),
			      ddps_mr_to(mr) + 32),
		     0);
}

/* Neither the silence before counts, nor does it look as seldom as before. */
E2E_WIRES(vanished, another_limit_counts_from_its_call)
{
	static const struct {
		uint32_t first, until, then; /* ms */
	} times[] = { { 4000, 1900, 900 }, { 60000, 0, 400 } };
	struct ddps_event ev;
	uint64_t begin, took;
	uint8_t mem[64];
	struct e2e e;

	if (!can_see_acknowledgements(wire))
		return;
	for (size_t i = 0; i < sizeof times / sizeof times[0]; i++) {
		begin_unanswered(&e, wire, mem, times[i].first);
		cr_assert_eq(ddps_event_wait(e.ctx, &ev, (int)times[i].until), DDPS_E_TIMEDOUT);
		begin = ddps_now();
		cr_assert_eq(ddps_ep_answer_within(e.a.ep, times[i].then), 0);
		e2e_wait(&e, &e.a, E2E_SEEN(DDPS_EV_CLOSED));
		took = (ddps_now() - begin) / 1000000;
		cr_expect_geq(took, times[i].then, "%s: too early, after %u ms", wire,
			      (unsigned)took);
		cr_expect_lt(took, 10000, "%s: too late, after %u ms", wire, (unsigned)took);
		e2e_close(&e);
	}
}

#define STALLED_MSGS  8
#define STALLED_LEN   (1024u * 1024)
#define STALLED_LIMIT 200

/* Its program takes nothing for many times as long, and the window is closed all the time. */
E2E_WIRES(vanished, contact_29_a_program_that_stalls_is_no_host_that_is_gone)
{
	static uint8_t mem[2 * STALLED_LEN];
	struct ddps_mr *mr;
	struct ddps_event ev;
	struct e2e e;

	if (!can_see_acknowledgements(wire))
		return;
	e2e_open(&e, wire);
	e.attr.no_recv = DDPS_NO_RECV_STALL;
	e2e_connect(&e);
	mr = e2e_reg(&e, mem, sizeof mem, DDPS_LOCAL_WRITE);
	cr_assert_eq(ddps_ep_answer_within(e.a.ep, STALLED_LIMIT), 0);
	for (int i = 0; i < STALLED_MSGS; i++)
		cr_assert_eq(e2e_post(&e.a, DDPS_OP_SEND, mem, STALLED_LEN, mr, 0, 0), 0);
	cr_expect_eq(ddps_event_wait(e.ctx, &ev, 12 * STALLED_LIMIT), DDPS_E_TIMEDOUT, "%s: %s",
		     wire, ev.error.text);
	for (int i = 0; i < STALLED_MSGS; i++) {
		struct ddps_sge to = e2e_sge(mem + STALLED_LEN, STALLED_LEN, mr);

		cr_assert_eq(ddps_post_recv(e.b.ep, 7, &to, 1), 0);
	}
	for (int i = 0; i < 2 * STALLED_MSGS; i++)
		cr_expect_eq(e2e_wc(&e).status, DDPS_WC_SUCCESS);
	e2e_disconnect(&e, &e.a);
	e2e_close(&e);
}
