/* SPDX-License-Identifier: BSD-2-Clause */
/* Host name lookup next to the loop. */
#include "common/own.h"
#include "common/loop/resolve.h"
#include "unit/mem_fixture.h"
#include "unit/sys_fixture.h"
#include <criterion/criterion.h>
#include <ddpsess/err.h>
#include <errno.h>
#include <netdb.h>
#include <netinet/in.h>
#include <poll.h>
#include <signal.h>
#include <string.h>
#include <sys/eventfd.h>
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

static void finish_resolve_step(void *user, int err, const struct sockaddr_storage *addrs, size_t n)
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

	cr_assert_eq(ddps_resolve_start(&rs, "localhost", 7174, finish_resolve_step, &rs, &r), 0);
	run_until_called();
	cr_expect_eq(last_err, 0);
	cr_assert_geq(last_n, 1);
	cr_expect(last_addr.ss_family == AF_INET || last_addr.ss_family == AF_INET6);
	cr_expect_eq(((struct sockaddr_in *)&last_addr)->sin_port, htons(7174));
	cr_expect(LIST_EMPTY(&rs.list));
}

Test(resolve, a_name_that_cannot_exist_is_an_error)
{
	struct ddps_resolve *r;

	cr_assert_eq(ddps_resolve_start(&rs, "name.invalid", 1, finish_resolve_step, &rs, &r), 0);
	run_until_called();
	cr_expect_eq(last_err, DDPS_E_ADDRESS);
	cr_expect_eq(last_n, 0);
}

Test(resolve, a_cancelled_lookup_says_nothing)
{
	struct ddps_resolve *r[8];

	for (int i = 0; i < 8; i++) {
		cr_assert_eq(ddps_resolve_start(&rs, "localhost", 1, finish_resolve_step, &rs,
						&r[i]),
			     0);
		ddps_resolve_cancel(r[i]);
	}
	while (!LIST_EMPTY(&rs.list)) {
		struct pollfd pfd = { .fd = ddps_loop_fd(rs.loop), .events = POLLIN };

		cr_assert_eq(poll(&pfd, 1, 20000), 1);
		cr_assert_geq(ddps_loop_run(rs.loop), 0);
	}
	cr_expect_eq(calls, 0);
}

Test(resolve, the_end_waits_for_lookups_under_way)
{
	struct ddps_resolve *r;

	cr_assert_eq(ddps_resolve_start(&rs, "localhost", 1, finish_resolve_step, &rs, &r), 0);
	ddps_resolver_fini(&rs);
	cr_expect(LIST_EMPTY(&rs.list));
	cr_expect_eq(calls, 0);
}

Test(resolve, the_end_waits_for_cancelled_ones_too)
{
	struct ddps_resolve *r[4];

	for (int i = 0; i < 4; i++)
		cr_assert_eq(ddps_resolve_start(&rs, "localhost", 1, finish_resolve_step, &rs,
						&r[i]),
			     0);
	ddps_resolve_cancel(r[0]);
	ddps_resolve_cancel(r[2]);
	ddps_resolver_fini(&rs);
	cr_expect(LIST_EMPTY(&rs.list));
	cr_expect_eq(calls, 0);
}

static void ask_again(void *user, int err, const struct sockaddr_storage *addrs, size_t n)
{
	struct ddps_resolve *r;

	(void)addrs;
	cr_expect_eq(err, 0);
	cr_expect(n >= 1 && n <= DDPS_RESOLVE_MAX);
	cr_expect_eq(ddps_resolve_start(&rs, "localhost", 2, finish_resolve_step, user, &r), 0);
}

Test(resolve, a_callback_may_start_the_next_lookup)
{
	struct ddps_resolve *r;

	cr_assert_eq(ddps_resolve_start(&rs, "localhost", 1, ask_again, &rs, &r), 0);
	run_until_called();
	cr_expect_eq(calls, 1);
	cr_expect_eq(((struct sockaddr_in *)&last_addr)->sin_port, htons(2));
	cr_expect(LIST_EMPTY(&rs.list));
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
	cr_assert_eq(ddps_resolve_start(&rs, "localhost", 1, finish_resolve_step, &rs, &r), 0);
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
	cr_expect_eq(ddps_resolve_start(&rs, "localhost", 1, finish_resolve_step, &rs, &r),
		     DDPS_E_NOMEM);
	mem_fail(0);
	cr_assert_eq(getrlimit(RLIMIT_NOFILE, &keep), 0);
	none = keep;
	none.rlim_cur = 0;
	cr_assert_eq(setrlimit(RLIMIT_NOFILE, &none), 0);
	cr_expect_eq(ddps_resolve_start(&rs, "localhost", 1, finish_resolve_step, &rs, &r),
		     DDPS_E_SYSTEM);
	cr_assert_eq(setrlimit(RLIMIT_NOFILE, &keep), 0);
	cr_expect_null(r);
	cr_expect(LIST_EMPTY(&rs.list));
	cr_expect_eq(mem_live(), live);
	cr_expect_eq(calls, 0);
}

/* ---- what a resolver may say ---- */

static struct addrinfo said[40];
static struct sockaddr_in6 said_addr;
static int said_code;

static int answer_lookup(const char *host, const char *service, const struct addrinfo *hints,
			 struct addrinfo **list)
{
	(void)host;
	(void)service;
	(void)hints;
	*list = said;
	return said_code;
}

/* @n addresses of @family, behind those that there are. */
static void will_say(unsigned from, unsigned n, int family)
{
	for (unsigned i = from; i < from + n; i++) {
		said[i] = (struct addrinfo){ .ai_family = family,
					     .ai_addr = (struct sockaddr *)&said_addr,
					     .ai_addrlen = sizeof said_addr };
		if (i)
			said[i - 1].ai_next = &said[i];
	}
}

Test(resolve, addresses_of_other_kinds_are_passed_over)
{
	struct sockaddr_storage addrs[DDPS_RESOLVE_MAX];
	size_t n;

	sys_instead.getaddrinfo = answer_lookup;
	said_addr.sin6_family = AF_INET6;
	will_say(0, 2, AF_UNIX);
	cr_expect_eq(ddps_resolve_now("host", 1, addrs, &n), DDPS_E_ADDRESS);
	cr_expect_eq(n, 0);
	will_say(2, 1, AF_INET6);
	cr_expect_eq(ddps_resolve_now("host", 1, addrs, &n), 0);
	cr_expect_eq(n, 1);
	cr_expect_eq(addrs[0].ss_family, AF_INET6);
	will_say(3, 37, AF_INET);
	cr_expect_eq(ddps_resolve_now("host", 1, addrs, &n), 0);
	cr_expect_eq(n, DDPS_RESOLVE_MAX, "no more than there is room for");
}

Test(resolve, a_resolver_without_memory)
{
	struct sockaddr_storage addrs[DDPS_RESOLVE_MAX];
	size_t n = 9;

	sys_instead.getaddrinfo = answer_lookup;
	said_code = EAI_MEMORY;
	cr_expect_eq(ddps_resolve_now("host", 1, addrs, &n), DDPS_E_NOMEM);
	said_code = EAI_AGAIN;
	cr_expect_eq(ddps_resolve_now("host", 1, addrs, &n), DDPS_E_ADDRESS);
	cr_expect_eq(n, 0);
}

Test(resolve, without_a_thread_there_is_no_lookup)
{
	struct ddps_resolve *r = NULL;
	int lowest = dup(0), again;

	close(lowest);
	sys_fail("pthread_create", 0, 1, EAGAIN);
	cr_expect_eq(ddps_resolve_start(&rs, "localhost", 1, finish_resolve_step, &rs, &r),
		     DDPS_E_SYSTEM);
	cr_expect_eq(errno, EAGAIN);
	sys_fail("epoll_ctl", 0, 1, ENOSPC);
	cr_expect_eq(ddps_resolve_start(&rs, "localhost", 1, finish_resolve_step, &rs, &r),
		     DDPS_E_SYSTEM);
	cr_expect_eq(errno, ENOSPC);
	cr_expect(LIST_EMPTY(&rs.list));
	again = dup(0);
	cr_expect_eq(again, lowest);
	close(again);
	cr_expect_eq(calls, 0);
}

/* While a name is looked up the program closes all descriptors, and one of its own has the number. */
static int mark_fd, event_fd, own_fd;

static int closes_all(const char *host, const char *service, const struct addrinfo *hints,
		      struct addrinfo **list)
{
	close(mark_fd);
	dup2(own_fd, event_fd);
	return answer_lookup(host, service, hints, list);
}

Test(resolve, a_number_that_is_somebody_elses_is_not_written_to)
{
	struct ddps_resolve *r;
	uint64_t count;

	own_fd = eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC);
	mark_fd = dup(0);
	close(mark_fd);
	ddps_own_begin();
	event_fd = dup(0);
	close(event_fd);
	will_say(0, 1, AF_INET6);
	sys_instead.getaddrinfo = closes_all;
	cr_assert_eq(ddps_resolve_start(&rs, "host", 1, finish_resolve_step, &rs, &r), 0);
	ddps_resolver_fini(&rs);
	cr_expect_eq(calls, 0);
	cr_expect_eq(read(own_fd, &count, sizeof count), -1, "nobody has written there");
	cr_expect_eq(errno, EAGAIN);
}
