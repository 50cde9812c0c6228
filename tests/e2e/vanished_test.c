/* SPDX-License-Identifier: BSD-2-Clause */
/* A peer whose host has vanished: no FIN, no reset, no answer. */
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
