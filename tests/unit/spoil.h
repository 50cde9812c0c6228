/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef SPOIL_H
#define SPOIL_H
/* Faults made on purpose, and whether a core's own checks stop the program for them. */
#include <criterion/criterion.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

/* Whether the check passes once @spoil has changed something. */
static inline bool passes_after(void (*spoil)(void *), void (*check)(void *), void *on)
{
	int status;
	pid_t pid = fork();

	if (!pid) {
		close(STDERR_FILENO);
		signal(SIGABRT, SIG_DFL);
		signal(SIGILL, SIG_DFL);
		signal(SIGTRAP, SIG_DFL);
		if (spoil)
			spoil(on);
		check(on);
		_exit(0);
	}
	cr_assert_eq(waitpid(pid, &status, 0), pid);
	return WIFEXITED(status) && !WEXITSTATUS(status);
}

#define EXPECT_EACH_STOPS(spoils, check, on)                                                       \
	do {                                                                                       \
		cr_assert(passes_after(NULL, check, on));                                          \
		for (size_t i_ = 0; i_ < sizeof(spoils) / sizeof *(spoils); i_++)                  \
			cr_expect(!passes_after((spoils)[i_], check, on), "fault %zu", i_);        \
	} while (0)

#endif
