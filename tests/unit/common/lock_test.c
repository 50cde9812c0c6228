/* SPDX-License-Identifier: BSD-2-Clause */
/* What builds for tests check of locks: their order, and that a lock is held where it has to be. */
#include "common/system/lock.h"
#include <criterion/criterion.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

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
