/* SPDX-License-Identifier: BSD-2-Clause */
/* Which signals a thread of the library's takes from the program. */
#include "common/system/thread.h"
#include "unit/sys_fixture.h"
#include <criterion/criterion.h>
#include <errno.h>
#include <signal.h>

static void *get_own_mask(void *arg)
{
	pthread_sigmask(SIG_SETMASK, NULL, arg);
	return NULL;
}

/* One that SIGTERM does not end by chance of which thread it comes to, and whose faults a handler sees. */
Test(system_thread, has_no_signals_but_faults)
{
	sigset_t there, before, after;
	pthread_t t;

	pthread_sigmask(SIG_SETMASK, NULL, &before);
	cr_assert_eq(ddps_thread_start(&t, NULL, get_own_mask, &there), 0);
	cr_assert_eq(pthread_join(t, NULL), 0);
	pthread_sigmask(SIG_SETMASK, NULL, &after);
	for (int s = 1; s < 32; s++) {
		bool fault = s == SIGSEGV || s == SIGBUS;

		if (s != SIGKILL && s != SIGSTOP)
			cr_expect_eq(sigismember(&there, s), !fault, "signal %d", s);
		cr_expect_eq(sigismember(&after, s), sigismember(&before, s), "signal %d", s);
	}
}

Test(system_thread, that_there_is_none_is_said)
{
	sigset_t before, after;
	pthread_t t;

	pthread_sigmask(SIG_SETMASK, NULL, &before);
	sys_fail("pthread_create", 0, 1, EAGAIN);
	cr_expect_eq(ddps_thread_start(&t, NULL, get_own_mask, NULL), EAGAIN);
	pthread_sigmask(SIG_SETMASK, NULL, &after);
	cr_expect_eq(sigismember(&after, SIGTERM), sigismember(&before, SIGTERM));
}
