/* SPDX-License-Identifier: BSD-2-Clause */
/* Who is this process's user, in namespaces that do not know all users. */
#include "common/system/user.h"
#include "support/child.h"
#include <criterion/criterion.h>
#include <fcntl.h>
#include <sched.h>
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#define NOBODY	65534
#define NO_SUCH 77 /* no namespace of users can be made here */

static bool write_user_map(const char *text)
{
	const int fd = open("/proc/self/uid_map", O_WRONLY | O_CLOEXEC);
	const bool done = fd >= 0 && write(fd, text, strlen(text)) == (ssize_t)strlen(text);

	if (fd >= 0)
		close(fd);
	return done;
}

/* In a namespace where this user is @inside; < 0: it is not mapped. */
static void judge_in_namespace(int inside, bool own)
{
	char map[64];

	snprintf(map, sizeof map, "%d %u 1\n", inside, (unsigned)geteuid());
	if (unshare(CLONE_NEWUSER) || (inside >= 0 && !write_user_map(map)))
		leave_child_fixture(NO_SUCH);
	if (geteuid() != (inside < 0 ? NOBODY : (uid_t)inside))
		leave_child_fixture(2);
	leave_child_fixture(ddps_user_is_own(geteuid()) == own ? 0 : 3);
}

static void expect_in_namespace(int inside, bool own)
{
	const pid_t pid = fork();
	int status;

	if (!pid)
		judge_in_namespace(inside, own);
	status = await_child_status(pid);
	if (WIFEXITED(status) && WEXITSTATUS(status) == NO_SUCH)
		cr_skip_test("no namespace of users");
	cr_expect_eq(status, 0, "user %d there: status %x", inside, (unsigned)status);
}

Test(user, a_process_is_its_own_user)
{
	if (geteuid() == NOBODY)
		cr_skip_test("not where users may be unmapped");
	cr_expect(ddps_user_is_own(geteuid()));
	cr_expect_not(ddps_user_is_own(geteuid() + 1));
}

Test(user, who_is_mapped_is_himself_in_a_namespace)
{
	expect_in_namespace(0, true);
	expect_in_namespace(1000, true);
}

/* Whoever is not mapped seems to be 65534, as this process is. */
Test(user, nobody_is_taken_for_the_own_user_where_others_have_its_number)
{
	expect_in_namespace(-1, false);
	expect_in_namespace(NOBODY, false);
}

/* Where all are mapped 65534 is one of them: containers run as that. */
Test(user, nobody_is_himself_where_all_are_mapped)
{
	pid_t pid;

	if (geteuid())
		cr_skip_test("not root");
	pid = fork();
	if (!pid)
		leave_child_fixture(setuid(NOBODY) || !ddps_user_is_own(NOBODY));
	cr_expect_eq(await_child_status(pid), 0);
}
