/* SPDX-License-Identifier: BSD-2-Clause */
/* Host name lookup beside the loop. */
#include "common/resolve.h"
#include "unit/mem_fixture.h"
#include <criterion/criterion.h>
#include <ddpsess/err.h>
#include <netinet/in.h>
#include <poll.h>
#include <signal.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

static struct ddps_resolver rs;
static int calls, last_err;
static size_t last_n;
static struct sockaddr_storage last_addr;

static void setup(void)
{
	cr_assert_eq(ddps_loop_new(&rs.loop), 0);
}

static void teardown(void)
{
	ddps_resolver_fini(&rs);
	ddps_loop_free(rs.loop);
}

TestSuite(resolve, .init = setup, .fini = teardown, .timeout = 30);

static void done(void *user, int err, const struct sockaddr_storage *addrs, size_t n)
{
	cr_expect_eq(user, &rs);
	calls++;
	last_err = err;
	last_n = n;
	if (n)
		last_addr = addrs[0];
}

static void run_until_called(void)
{
	while (!calls) {
		struct pollfd pfd = { .fd = ddps_loop_fd(rs.loop), .events = POLLIN };

		cr_assert_eq(poll(&pfd, 1, 20000), 1);
		cr_assert_geq(ddps_loop_run(rs.loop), 0);
	}
}

Test(resolve, localhost_is_found)
{
	struct ddps_resolve *r;

	cr_assert_eq(ddps_resolve_start(&rs, "localhost", 7174, done, &rs, &r), 0);
	run_until_called();
	cr_expect_eq(last_err, 0);
	cr_assert_geq(last_n, 1);
	cr_expect(last_addr.ss_family == AF_INET || last_addr.ss_family == AF_INET6);
	cr_expect_eq(((struct sockaddr_in *)&last_addr)->sin_port, htons(7174));
	cr_expect_null(rs.list);
}

Test(resolve, a_name_that_cannot_exist_is_an_error)
{
	struct ddps_resolve *r;

	cr_assert_eq(ddps_resolve_start(&rs, "name.invalid", 1, done, &rs, &r), 0);
	run_until_called();
	cr_expect_eq(last_err, DDPS_E_ADDRESS);
	cr_expect_eq(last_n, 0);
}

Test(resolve, a_cancelled_lookup_says_nothing)
{
	struct ddps_resolve *r[8];

	for (int i = 0; i < 8; i++) {
		cr_assert_eq(ddps_resolve_start(&rs, "localhost", 1, done, &rs, &r[i]), 0);
		ddps_resolve_cancel(r[i]);
	}
	while (rs.list) {
		struct pollfd pfd = { .fd = ddps_loop_fd(rs.loop), .events = POLLIN };

		cr_assert_eq(poll(&pfd, 1, 20000), 1);
		cr_assert_geq(ddps_loop_run(rs.loop), 0);
	}
	cr_expect_eq(calls, 0);
}

Test(resolve, the_end_waits_for_lookups_under_way)
{
	struct ddps_resolve *r;

	cr_assert_eq(ddps_resolve_start(&rs, "localhost", 1, done, &rs, &r), 0);
	ddps_resolver_fini(&rs);
	cr_expect_null(rs.list);
	cr_expect_eq(calls, 0);
}

Test(resolve, the_end_waits_for_cancelled_ones_too)
{
	struct ddps_resolve *r[4];

	for (int i = 0; i < 4; i++)
		cr_assert_eq(ddps_resolve_start(&rs, "localhost", 1, done, &rs, &r[i]), 0);
	ddps_resolve_cancel(r[0]);
	ddps_resolve_cancel(r[2]);
	ddps_resolver_fini(&rs);
	cr_expect_null(rs.list);
	cr_expect_eq(calls, 0);
}

static void ask_again(void *user, int err, const struct sockaddr_storage *addrs, size_t n)
{
	struct ddps_resolve *r;

	(void)addrs;
	cr_expect_eq(err, 0);
	cr_expect(n >= 1 && n <= DDPS_RESOLVE_MAX);
	cr_expect_eq(ddps_resolve_start(&rs, "localhost", 2, done, user, &r), 0);
}

Test(resolve, a_callback_may_start_the_next_lookup)
{
	struct ddps_resolve *r;

	cr_assert_eq(ddps_resolve_start(&rs, "localhost", 1, ask_again, &rs, &r), 0);
	run_until_called();
	cr_expect_eq(calls, 1);
	cr_expect_eq(((struct sockaddr_in *)&last_addr)->sin_port, htons(2));
	cr_expect_null(rs.list);
}

Test(resolve, nothing_of_the_caller_is_changed)
{
	struct ddps_resolve *r;
	sigset_t before, after;
	int lowest, again;

	sigemptyset(&before);
	sigaddset(&before, SIGUSR1);
	cr_assert_eq(sigprocmask(SIG_SETMASK, &before, NULL), 0);
	cr_assert_geq(lowest = dup(0), 0);
	close(lowest);
	cr_assert_eq(ddps_resolve_start(&rs, "localhost", 1, done, &rs, &r), 0);
	cr_assert_eq(sigprocmask(SIG_SETMASK, NULL, &after), 0);
	for (int sig = 1; sig < 32; sig++)
		cr_expect_eq(sigismember(&after, sig), sig == SIGUSR1, "signal %d", sig);
	run_until_called();
	cr_assert_geq(again = dup(0), 0);
	close(again);
	cr_expect_eq(again, lowest); /* every descriptor was given back */
}

Test(resolve, blocking_lookup_takes_numbers_and_names)
{
	struct sockaddr_storage addrs[DDPS_RESOLVE_MAX];
	size_t n = 9;

	cr_assert_eq(ddps_resolve_now("192.0.2.7", 65535, addrs, &n), 0);
	cr_assert_eq(n, 1);
	cr_expect_eq(addrs[0].ss_family, AF_INET);
	cr_expect_eq(((struct sockaddr_in *)addrs)->sin_port, htons(65535));
	cr_expect_eq(ddps_resolve_now("name.invalid", 1, addrs, &n), DDPS_E_ADDRESS);
	cr_expect_eq(n, 0);
}

Test(resolve, without_memory_or_descriptors_there_is_no_lookup)
{
	struct ddps_resolve *r = NULL;
	struct rlimit keep, none;
	long live = mem_live();

	mem_fail(1);
	cr_expect_eq(ddps_resolve_start(&rs, "localhost", 1, done, &rs, &r), DDPS_E_NOMEM);
	mem_fail(0);
	cr_assert_eq(getrlimit(RLIMIT_NOFILE, &keep), 0);
	none = keep;
	none.rlim_cur = 0;
	cr_assert_eq(setrlimit(RLIMIT_NOFILE, &none), 0);
	cr_expect_eq(ddps_resolve_start(&rs, "localhost", 1, done, &rs, &r), DDPS_E_SYSTEM);
	cr_assert_eq(setrlimit(RLIMIT_NOFILE, &keep), 0);
	cr_expect_null(r);
	cr_expect_null(rs.list);
	cr_expect_eq(mem_live(), live);
	cr_expect_eq(calls, 0);
}
