/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Runs what registered itself; see criterion/criterion.h next to this file.  Each test has a process
 * of its own, as with Criterion: the drop-in reads its settings once.
 */
#include "criterion/criterion.h"
#include <sys/wait.h>
#include <unistd.h>

struct tsan_test *tsan_tests;

/*
 * Without the drop-in's destructor, which takes a lock by pthread_mutex_clocklock: GCC's
 * ThreadSanitizer does not know that one.
 */
static int run_tsan(const struct tsan_test *t)
{
	pid_t pid = fork();
	int status = -1;

	if (!pid) {
		t->fn();
		_exit(0);
	}
	if (pid < 0 || waitpid(pid, &status, 0) != pid)
		return -1;
	return status;
}

int main(void)
{
	unsigned n = 0, failed = 0;

	for (struct tsan_test *t = tsan_tests; t; t = t->next, n++) {
		printf("%s\n", t->name);
		fflush(stdout);
		if (run_tsan(t)) {
			printf("%s failed\n", t->name);
			failed++;
		}
	}
	printf("%u passed, %u failed\n", n - failed, failed);
	return n && !failed ? 0 : 1;
}
