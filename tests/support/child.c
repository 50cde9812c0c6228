/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Assertions in a child of fork.  Criterion's go to its runner by a thread that the child does not have, so one that
 * fails would wait for ever.  Here it says what it is and ends the child.  Linked with
 * --wrap=criterion_send_assert, into what runs under Criterion.
 */
#include "support/child.h"
#include <criterion/event.h>

static pid_t worker; /* it runs the test, in a program of its own */

__attribute__((constructor)) static void note_worker(void)
{
	worker = getpid();
}

void __real_criterion_send_assert(struct criterion_assert_stats *stats);
void __wrap_criterion_send_assert(struct criterion_assert_stats *stats);

void __wrap_criterion_send_assert(struct criterion_assert_stats *stats)
{
	if (getpid() == worker) {
		__real_criterion_send_assert(stats);
		return;
	}
	dprintf(STDERR_FILENO, "%s:%u: in a child: %s\n", stats->file, stats->line, stats->message);
	if (!stats->passed)
		leave_child_fixture(CHILD_FAILED);
}
