/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef DDPS_TEST_CHILD_H
#define DDPS_TEST_CHILD_H
/* Children of fork that go on living beside a parent that uses the library. */
#include <criterion/criterion.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

/* One that does nothing, and does not outlive a test that fails.  It has begun to run: what a child
 * does first it has done. */
static inline pid_t idle_child_of(pid_t (*fork_by)(void))
{
	int begun[2];
	pid_t pid;
	char c;

	cr_assert_eq(pipe(begun), 0);
	pid = fork_by();
	cr_assert_geq(pid, 0);
	if (!pid) {
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		if (write(begun[1], "", 1) != 1)
			_exit(1);
		for (;;)
			pause();
	}
	cr_assert_eq(read(begun[0], &c, 1), 1);
	close(begun[0]);
	close(begun[1]);
	return pid;
}

static inline pid_t idle_child(void)
{
	return idle_child_of(fork);
}

static inline int end_of(pid_t pid)
{
	int status;

	cr_assert_eq(waitpid(pid, &status, 0), pid);
	return status;
}

static inline void no_child(pid_t pid)
{
	cr_assert_eq(kill(pid, SIGKILL), 0);
	end_of(pid);
}

#endif
