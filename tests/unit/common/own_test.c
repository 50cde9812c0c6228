/* SPDX-License-Identifier: BSD-2-Clause */
/* Descriptors that are ours: numbers that no table has room for, and those of somebody else. */
#include "common/own.h"
#include "support/child.h"
#include "unit/linger_fixture.h"
#include "unit/sys_fixture.h"
#include "common/spare.h"
#include <criterion/criterion.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <netinet/in.h>
#include <sys/wait.h>
#include <unistd.h>

#define BEYOND (1 << 20) /* what is not written down */

static bool is_own_open(int fd)
{
	return fcntl(fd, F_GETFD) >= 0;
}

Test(own, a_failure_is_handed_on)
{
	errno = EMFILE;
	cr_expect_eq(ddps_own(-1), -1);
	cr_expect_eq(errno, EMFILE);
	ddps_own_close(-1);
	cr_expect_eq(errno, EMFILE, "as close() after a failure");
}

Test(own, beyond_the_table)
{
	cr_expect_eq(ddps_own(BEYOND), BEYOND);
	errno = EMFILE;
	ddps_own_close(BEYOND);
	cr_expect_eq(errno, EMFILE);
}

Test(own, what_is_ours_is_closed)
{
	int a = ddps_own(open("/dev/null", O_RDONLY | O_CLOEXEC));
	int b = ddps_own(dup(a));

	cr_assert(is_own_open(a) && is_own_open(b));
	ddps_own_close(a); /* the lower one: the table's end stays */
	cr_expect_not(is_own_open(a));
	cr_expect_eq(ddps_own(dup(b)), a);
	ddps_own_close(a);
	ddps_own_close(b);
	cr_expect_not(is_own_open(a));
	cr_expect_not(is_own_open(b));
}

/* The program has closed it, and given its number to a file of its own. */
Test(own, what_is_somebody_elses_now_stays)
{
	int fd = ddps_own(open("/dev/null", O_RDONLY | O_CLOEXEC)), fds[2];

	cr_assert_eq(pipe(fds), 0);
	cr_assert_eq(dup2(fds[0], fd), fd);
	ddps_own_close(fd);
	cr_expect(is_own_open(fd));
	close(fd);
	close(fds[0]);
	close(fds[1]);
}

/* The program has closed the mark, too, and whatever there was: a new age begins. */
Test(own, an_era_ends_with_its_mark)
{
	int first = dup(0), fds[2];
	unsigned era, next;

	close(first);
	era = ddps_own_begin();
	cr_assert(is_own_open(first), "the mark");
	cr_expect_eq(ddps_own_era(), era);
	cr_expect_eq(ddps_own_begin(), era);
	ddps_own_end(era);
	cr_expect(is_own_open(first), "one is there yet");
	ddps_own_end(era);
	cr_expect_not(is_own_open(first));

	for (unsigned taken = 0; taken < 2; taken++) {
		era = ddps_own_begin();
		cr_assert(is_own_open(first));
		close(first);
		if (taken) { /* its number is another file's */
			cr_assert_eq(pipe(fds), 0);
			cr_assert_eq(fds[0], first);
		}
		next = ddps_own_era();
		cr_expect_neq(next, era);
		ddps_own_end(era); /* of an age that is over: nothing to do */
		cr_expect_eq(ddps_own_era(), next);
		cr_expect_eq(is_own_open(first), taken);
		if (taken) {
			close(fds[0]);
			close(fds[1]);
		}
	}
}

/* ---- without what it needs ---- */

Test(own, without_a_mark_nothing_is_noticed)
{
	const int free_one = dup(0);
	unsigned era;

	close(free_one);
	sys_fail("fstat", 0, 1, EIO);
	era = ddps_own_begin();
	cr_expect_eq(sys_failed(), 1);
	cr_expect_not(is_own_open(free_one));
	cr_expect_eq(ddps_own_era(), era, "nobody has closed it");
	cr_expect_eq(ddps_own_begin(), era);
	cr_expect(is_own_open(free_one), "the next context has one");
	ddps_own_end(era);
	ddps_own_end(era);
	cr_expect_not(is_own_open(free_one));
}

/* No memory to be informed of forks: children are on their own, and it is as in one of them. */
Test(own, forks_that_nobody_is_informed_of)
{
	sys_fail("pthread_atfork", 0, 1, ENOMEM);
	cr_expect_not(ddps_own_forked(0));
	ddps_own_end(ddps_own_begin());
	cr_expect_eq(sys_failed(), 1);
	cr_expect(ddps_own_forked(0));
}

/* ---- ports that a child may have yet ---- */

static in_port_t port; /* 0: any */

static int bind_somewhere(void)
{
	struct sockaddr_in any = { .sin_family = AF_INET, .sin_port = port };
	socklen_t len = sizeof any;
	const int fd = ddps_own(socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0));
	int err = ddps_own_bind(fd, (const struct sockaddr *)&any, sizeof any) ? errno : 0;

	if (!err)
		cr_assert_eq(getsockname(fd, (struct sockaddr *)&any, &len), 0);
	port = err ? port : any.sin_port;
	ddps_own_close(fd);
	return err;
}

static int fork_and_end(void)
{
	const pid_t pid = fork();
	int status = -1;

	if (!pid)
		_exit(bind_somewhere()); /* it has not forked: it is informed immediately */
	waitpid(pid, &status, 0);
	return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

/* A child that has not come to closing its copy has the port yet: for a moment, not for ever. */
Test(own, a_port_is_waited_for_after_a_fork)
{
	cr_assert_eq(bind_somewhere(), 0);
	sys_fail("bind", 0, 1, EADDRINUSE);
	cr_expect_eq(bind_somewhere(), EADDRINUSE, "nobody has a copy");
	sys_fail("bind", 0, 1000000, EADDRINUSE);
	cr_expect_eq(fork_and_end(), EADDRINUSE);

	sys_fail("bind", 0, 3, EADDRINUSE);
	cr_expect_eq(bind_somewhere(), 0);
	cr_expect_eq(sys_failed(), 3);
	sys_fail("bind", 0, 1, EACCES);
	cr_expect_eq(bind_somewhere(), EACCES);
	cr_expect_eq(sys_failed(), 1, "no child is the reason for that");
	port = 0;
	sys_fail("bind", 0, 1, EADDRINUSE);
	cr_expect_eq(bind_somewhere(), EADDRINUSE, "nobody has a copy of all ports");
}

Test(own, a_port_is_not_waited_for_without_end)
{
	cr_assert_eq(bind_somewhere(), 0);
	sys_fail("bind", 0, UINT_MAX, EADDRINUSE);
	cr_assert_eq(fork_and_end(), EADDRINUSE);
	cr_expect_eq(bind_somewhere(), EADDRINUSE, "a second, and a test has fifteen");
	cr_expect_gt(sys_failed(), 1);
	sys_fail("bind", 0, 1, EADDRINUSE);
	cr_expect_eq(bind_somewhere(), EADDRINUSE, "the fork is long ago");
}

/* ---- closing apart ---- */

enum { THREADS = 32 };

static unsigned count_own_fds(void)
{
	unsigned n = 0;

	for (int fd = 0; fd < 256; fd++)
		n += is_own_open(fd);
	return n;
}

static unsigned count_own_tasks(void)
{
	DIR *d = opendir("/proc/self/task");
	unsigned n = 0;

	while (readdir(d))
		n++;
	closedir(d);
	return n - 2;
}

/* A socket that blocks whoever closes it until its far end is closed. */
static int make_blocking(int *far)
{
	int pair[2];

	cr_assert_eq(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair), 0);
	*far = pass_lingering(pair[1], "", 1, 0);
	close(pair[1]);
	return pair[0];
}

/* As many as there are threads. */
static void keep_closers_busy(int far[THREADS])
{
	for (int i = 0; i < THREADS; i++)
		cr_expect(ddps_own_close_apart(ddps_own(make_blocking(&far[i]))), "%d", i);
}

Test(own, what_blocks_is_closed_by_threads, .timeout = 60)
{
	const unsigned fds = count_own_fds(), tasks = count_own_tasks();
	int far[THREADS], later, fd, status = 1;
	pid_t pid;

	keep_closers_busy(far);
	cr_expect_eq(count_own_tasks(), tasks + THREADS);
	fd = make_blocking(&later);
	cr_expect_not(ddps_own_close_apart(fd));
	cr_expect(is_own_open(fd), "no thread is free");
	cr_expect_eq(count_own_tasks(), tasks + THREADS);
	pid = fork_at_rest(); /* a child has threads of its own */
	if (!pid) {
		int other = dup(0);

		leave_child_fixture(!ddps_own_close_apart(other) ||
				    !await_count(count_own_tasks, 1) || is_own_open(other));
	}
	cr_expect_eq(waitpid(pid, &status, 0), pid);
	cr_expect_eq(status, 0);
	for (int i = 0; i < THREADS; i++)
		close(far[i]);
	close(later);
	cr_expect(await_count(count_own_tasks, tasks));
	cr_expect_eq(count_own_fds(), fds);
}

/* There was no thread for it, which nobody would notice until the next one of its kind. */
Test(own, what_has_waited_for_a_thread_is_closed_at_the_end, .timeout = 60)
{
	const unsigned fds = count_own_fds(), tasks = count_own_tasks();
	int far, fd;

	fd = make_blocking(&far);
	sys_fail("pthread_create", 0, 1, EAGAIN);
	cr_expect_not(ddps_own_close_apart(fd));
	cr_expect(is_own_open(fd));
	ddps_own_close_waiting();
	close(far);
	cr_expect(await_count(count_own_tasks, tasks));
	cr_expect_eq(count_own_fds(), fds);
}

/* It waits for a thread, and the program closes it and the mark, and has files of those numbers. */
Test(own, what_waits_for_a_thread_may_become_somebody_elses, .timeout = 60)
{
	const unsigned tasks = count_own_tasks();
	int first = dup(0), far[THREADS], fd;
	unsigned era;

	close(first);
	era = ddps_own_begin();
	keep_closers_busy(far);
	fd = open("/dev/null", O_RDONLY | O_CLOEXEC);
	cr_expect_not(ddps_own_close_apart(fd));
	close(first);
	close(fd);
	cr_assert_eq(open("/dev/zero", O_RDONLY | O_CLOEXEC), first);
	cr_assert_eq(dup2(first, fd), fd);
	for (int i = 0; i < THREADS; i++)
		close(far[i]);
	cr_expect(await_count(count_own_tasks, tasks));
	cr_expect(is_own_open(fd));
	cr_expect_neq(ddps_own_era(), era);
	close(fd);
	close(first);
}

/* ---- buffers that sessions lend each other ---- */

Test(spare, given_back_is_given_out_again)
{
	struct ddps_spares s = { 0 };
	void *a = ddps_spare_get(&s, 64), *b = ddps_spare_get(&s, 64);

	cr_assert(a && b && a != b);
	ddps_spare_put(&s, NULL);
	cr_expect_eq(s.n, 0);
	ddps_spare_put(&s, a);
	cr_expect_eq(ddps_spare_get(&s, 64), a);
	ddps_spare_put(&s, a);
	ddps_spare_put(&s, b);
	cr_expect_eq(s.n, 2);
	ddps_spares_fini(&s);
	cr_expect_eq(s.n, 0);
	cr_expect_null(s.first);
	ddps_spare_put(NULL, ddps_spare_get(NULL, 8)); /* no store: the allocator's */
}

Test(spare, keeps_so_many_and_no_more)
{
	struct ddps_spares s = { 0 };
	void *p[DDPS_SPARES_MAX + 1];

	for (int i = 0; i <= DDPS_SPARES_MAX; i++)
		p[i] = ddps_spare_get(&s, 64);
	for (int i = 0; i <= DDPS_SPARES_MAX; i++)
		ddps_spare_put(&s, p[i]);
	cr_expect_eq(s.n, DDPS_SPARES_MAX); /* the last one was freed: LeakSanitizer watches */
	ddps_spares_fini(&s);
}
