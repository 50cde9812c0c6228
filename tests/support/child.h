/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef DDPS_TEST_CHILD_H
#define DDPS_TEST_CHILD_H
/* Children of fork that go on living next to a parent that uses the library. */
#include <criterion/criterion.h>
#include <dirent.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

/* Of the coverage build alone. */
int __llvm_profile_write_file(void) __attribute__((weak));

/* As _exit: nothing that the parent has registered runs.  But what the child has run is counted, in
 * a build that counts. */
static inline _Noreturn void leave_child_fixture(int status)
{
	if (__llvm_profile_write_file)
		__llvm_profile_write_file();
	_exit(status);
}

#define CHILD_FAILED 99 /* the status of one in which an assertion failed (child.c) */

static inline bool thread_sleeps(const char *tid)
{
	char path[300], line[300] = "", *state;
	FILE *f;

	snprintf(path, sizeof path, "/proc/self/task/%s/stat", tid);
	f = fopen(path, "r");
	if (!f)
		return true; /* it has ended */
	state = fgets(line, sizeof line, f) ? strrchr(line, ')') : NULL;
	fclose(f);
	return state && !strncmp(state, ") S", 3);
}

static inline bool others_sleep(void)
{
	const int self = gettid();
	bool all = true;
	struct dirent *d;
	DIR *tasks = opendir("/proc/self/task");

	cr_assert_not_null(tasks);
	while ((d = readdir(tasks)))
		if (d->d_name[0] != '.' && atoi(d->d_name) != self)
			all = all && thread_sleeps(d->d_name);
	closedir(tasks);
	return all;
}

static inline void until_others_sleep(void)
{
	const struct timespec moment = { .tv_nsec = 1000000 };

	for (int ms = 0; !others_sleep(); ms++) {
		cr_assert_lt(ms, 10000, "a thread never rests");
		nanosleep(&moment, NULL);
	}
}

/* A child that uses the library, and does not outlive a test that fails.  ASan's allocator has locks
 * that no fork lets go: what a thread of the parent holds while it begins, the child's threads wait
 * for without end.  So the parent's threads have come to rest first. */
static inline pid_t fork_at_rest(void)
{
	pid_t pid;

	until_others_sleep();
	pid = fork();
	cr_assert_geq(pid, 0);
	if (!pid)
		prctl(PR_SET_PDEATHSIG, SIGKILL);
	return pid;
}

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
			leave_child_fixture(1);
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

static inline int await_child_status(pid_t pid)
{
	int status;

	cr_assert_eq(waitpid(pid, &status, 0), pid);
	return status;
}

static inline void no_child(pid_t pid)
{
	cr_assert_eq(kill(pid, SIGKILL), 0);
	await_child_status(pid);
}

#endif
