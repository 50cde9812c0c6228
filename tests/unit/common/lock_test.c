/* SPDX-License-Identifier: BSD-2-Clause */
/* What builds for tests check of locks: their order, and that a lock is held where it has to be. */
#include "common/log.h"
#include "common/system/lock.h"
#include "common/system/thread.h"
#include "unit/sys_fixture.h"
#include "common/system/user.h"
#include "support/child.h"
#include <criterion/criterion.h>
#include <ddpsess/secure.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>
#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <stdio.h>
#include <string.h>

static struct ddps_mutex outer = DDPS_MUTEX(DDPS_LOCK_PROCESS);
static struct ddps_mutex inner = DDPS_MUTEX(DDPS_LOCK_CTX);

static void take_in_order(void)
{
	ddps_lock(&outer);
	ddps_lock(&inner);
	ddps_assert_held(&outer);
	ddps_assert_held(&inner);
	ddps_unlock(&outer); /* in any order */
	ddps_assert_held(&inner);
	ddps_unlock(&inner);
}

/* A lock that gives way may be taken in any order. */
static void try_against_order(void)
{
	struct timespec past = { 0 };

	ddps_lock(&inner);
	if (ddps_trylock(&outer))
		abort();
	ddps_unlock(&outer);
	if (ddps_lock_until(&outer, &past))
		abort();
	ddps_unlock(&outer);
	ddps_unlock(&inner);
}

#ifdef DDPS_ASSERTS
static void take_against_order(void)
{
	ddps_lock(&inner);
	ddps_lock(&outer);
}

static void take_two_of_a_kind(void)
{
	static struct ddps_mutex other = DDPS_MUTEX(DDPS_LOCK_CTX);

	ddps_lock(&inner);
	ddps_lock(&other);
}

static void claim_what_is_not_held(void)
{
	ddps_lock(&outer);
	ddps_unlock(&outer);
	ddps_assert_held(&outer);
}

static void drop_what_is_not_held(void)
{
	ddps_unlock(&outer);
}
#endif

/* Whether a process ends in order if it does @what. */
static bool is_fine(void (*what)(void))
{
	int status;
	pid_t pid = fork();

	if (!pid) {
		close(STDERR_FILENO);
		signal(SIGILL, SIG_DFL);
		signal(SIGTRAP, SIG_DFL);
		what();
		_exit(0);
	}
	cr_assert_eq(waitpid(pid, &status, 0), pid);
	return WIFEXITED(status) && !WEXITSTATUS(status);
}

Test(lock, the_order_is_kept)
{
	cr_expect(is_fine(take_in_order));
	cr_expect(is_fine(try_against_order));
}

#ifdef DDPS_ASSERTS
Test(lock, breaches_are_noticed)
{
	cr_expect(!is_fine(take_against_order));
	cr_expect(!is_fine(take_two_of_a_kind));
	cr_expect(!is_fine(claim_what_is_not_held));
	cr_expect(!is_fine(drop_what_is_not_held));
}
#endif

/* ---- a thread that is cancelled leaves no lock, also if there is no other that could have done it ---- */

static void take_while_ending(void *arg)
{
	(void)arg;
	_exit(pthread_mutex_trylock(&inner.m));
}

static void be_cancelled_with_lock(void)
{
	pthread_cleanup_push(take_while_ending, NULL);
	pthread_cancel(pthread_self());
	ddps_lock(&inner);
	usleep(1); /* a cancellation point */
	ddps_unlock(&inner);
	pthread_testcancel();
	pthread_cleanup_pop(0);
	abort();
}

/* Bare: it is uncancellable only where it may end. */
static void be_cancelled_with_bare_lock(void)
{
	pthread_cleanup_push(take_while_ending, NULL);
	pthread_cancel(pthread_self());
	ddps_lock_bare(&inner);
	ddps_uncancellable_within();
	usleep(1);
	ddps_uncancellable_end();
	ddps_unlock(&inner);
	pthread_testcancel();
	pthread_cleanup_pop(0);
	abort();
}

static void end_here(void *user, enum ddps_log_level level, const char *facility, const char *what)
{
	(void)user;
	(void)level;
	(void)facility;
	(void)what;
	pthread_cancel(pthread_self());
	usleep(1);
}

/* By what the program gave the library, and the library calls with the lock held. */
static void be_cancelled_by_callback_of(void (*lock)(struct ddps_mutex *l))
{
	const struct ddps_log log = { end_here, NULL };

	pthread_cleanup_push(take_while_ending, NULL);
	lock(&inner);
	ddps_log(&log, DDPS_LOG_INFO, "session", "something");
	ddps_unlock(&inner);
	pthread_testcancel();
	pthread_cleanup_pop(0);
	abort();
}

static void be_cancelled_by_callback(void)
{
	be_cancelled_by_callback_of(ddps_lock);
}

static void be_cancelled_by_callback_bare(void)
{
	be_cancelled_by_callback_of(ddps_lock_bare);
}

static bool returned;

static void end_in_finding(void *user, const struct ddps_secure_finding *f)
{
	(void)user;
	(void)f;
	pthread_cancel(pthread_self());
	usleep(1);
	returned = true;
}

static void end_unless_returned(void *arg)
{
	(void)arg;
	_exit(!returned);
}

/* By the callback for findings in files, which are open meanwhile. */
static void be_cancelled_by_finding(void)
{
	struct ddps_secure_attr none;

	ddps_secure_attr_init(&none);
	pthread_cleanup_push(end_unless_returned, NULL);
	ddps_secure_check(&none, 0, end_in_finding, NULL);
	pthread_testcancel();
	pthread_cleanup_pop(0);
	abort();
}

static void be_alone(void)
{
#if __has_include(<sys/single_threaded.h>)
	__libc_single_threaded = true; /* the runner may have had threads */
#endif
}

static void be_cancelled_alone(void)
{
	be_alone();
	be_cancelled_with_lock();
}

static void be_cancelled_by_callback_alone(void)
{
	be_alone();
	be_cancelled_by_callback();
}

static void be_cancelled_by_finding_alone(void)
{
	be_alone();
	be_cancelled_by_finding();
}

static void be_cancelled_bare_alone(void)
{
	be_alone();
	be_cancelled_with_bare_lock();
}

static void be_cancelled_by_callback_bare_alone(void)
{
	be_alone();
	be_cancelled_by_callback_bare();
}

Test(lock, whoever_is_cancelled_holds_none)
{
	cr_expect(is_fine(be_cancelled_with_lock));
	cr_expect(is_fine(be_cancelled_alone));
	cr_expect(is_fine(be_cancelled_by_callback));
	cr_expect(is_fine(be_cancelled_by_callback_alone));
	cr_expect(is_fine(be_cancelled_with_bare_lock));
	cr_expect(is_fine(be_cancelled_bare_alone));
	cr_expect(is_fine(be_cancelled_by_callback_bare));
	cr_expect(is_fine(be_cancelled_by_callback_bare_alone));
	cr_expect(is_fine(be_cancelled_by_finding));
	cr_expect(is_fine(be_cancelled_by_finding_alone));
}

/* ---- which signals a thread of the library's takes from the program ---- */

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

/* ---- who is this process's user, in namespaces that do not know all users ---- */

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
