/* SPDX-License-Identifier: BSD-2-Clause */
/* sessctl listen: what one peer can have of sessions and memory. */
#include "xfer/serve/serve.h"
#include <criterion/criterion.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>

static struct server sv;

static struct session *add_to_sessctl_share(const char *peer, size_t window)
{
	struct session *s = calloc(1, sizeof *s);

	cr_assert(s);
	*s = (struct session){ .next = sv.sessions, .sv = &sv, .net = share_net(peer) };
	s->win.len = window;
	sv.sessions = s;
	sv.live++;
	sv.windows += window;
	return s;
}

static void fini(void)
{
	for (struct session *s = sv.sessions, *next; s; s = next) {
		next = s->next;
		free(s);
	}
}

TestSuite(sessctl_share, .fini = fini);

Test(sessctl_share, contact_16_whose_shares)
{
	static const struct {
		const char *one, *other;
		bool same;
	} pair[] = {
		{ "192.0.2.1:7", "192.0.2.1:8", true },
		{ "192.0.2.1:7", "192.0.2.2:7", false },
		{ "[2001:db8::1]:7", "[2001:db8::ffff:2]:9", true },
		{ "[2001:db8::1]:7", "[2001:db8:0:1::1]:7", false },
		{ "[fe80::1%eth0]:7", "[fe80::1%eth0]:8", true },
		{ "[fe80::1%eth0]:7", "[fe80::1%eth1]:7", false },
		{ "[fe80::1%eth0]:7", "[fe80::2%eth0]:7", true },
		{ "[::ffff:192.0.2.1]:7", "[::ffff:192.0.2.2]:7", false },
		{ "[::ffff:192.0.2.1]:7", "[::ffff:192.0.2.1]:8", true },
	};

	for (size_t i = 0; i < sizeof pair / sizeof *pair; i++) {
		struct serve_net a = share_net(pair[i].one), b = share_net(pair[i].other);

		cr_expect_eq(!strcmp(a.text, b.text), pair[i].same, "%s, %s", a.text, b.text);
	}
}

/* How many of @want sessions @peer gets. */
static unsigned let_in(const char *peer, unsigned want)
{
	const struct serve_net net = share_net(peer);
	unsigned n = 0;

	while (n < want && !share_of_sessions(&sv, &net)) {
		add_to_sessctl_share(peer, 0);
		n++;
	}
	return n;
}

Test(sessctl_share, contact_16_sessions_leave_as_many_for_others)
{
	const struct serve_net third = share_net("192.0.2.3:1");

	sv.room = 16;
	cr_expect_eq(let_in("192.0.2.1:1", 100), 8);
	cr_expect_eq(let_in("192.0.2.2:1", 100), 4);
	cr_expect_null(share_of_sessions(&sv, &third));
	cr_expect_eq(let_in("192.0.2.1:2", 100), 0);
	cr_expect(strstr(share_of_sessions(&sv, &sv.sessions->net), "share"));
	cr_expect_eq(let_in("192.0.2.4:1", 100), 2);
	cr_expect_eq(let_in("192.0.2.5:1", 100), 1);
	cr_expect_eq(let_in("192.0.2.6:1", 100), 1, "the last one");
	sv.live = sv.room;
	cr_expect(strstr(share_of_sessions(&sv, &third), "full"));
}

Test(sessctl_share, contact_16_memory_leaves_as_much_for_others)
{
	struct session *s = add_to_sessctl_share("192.0.2.1:1", SERVE_WINDOWS_MAX / 2 - 1), *other;

	cr_expect_null(share_of_windows(s, 2));
	cr_expect(strstr(share_of_windows(s, 3), "share"));
	other = add_to_sessctl_share("192.0.2.2:1", 0);
	cr_expect_null(share_of_windows(other, SERVE_WINDOWS_MAX / 4));
	cr_expect_null(share_of_windows(other, 0));
	cr_expect(strstr(share_of_windows(other, SERVE_WINDOWS_MAX / 2 + 2), "busy"));
}

Test(sessctl_share, contact_16_sessions_have_files_to_open)
{
	static const struct {
		rlim_t files;
		unsigned sessions, half_open;
	} rows[] = {
		{ 27, 1, 1 }, { 28, 1, 1 }, { 64, 15, 10 }, { 1024, 375, 250 }, { 8000, 3476, 1024 }
	};

	for (size_t i = sizeof rows / sizeof *rows; i--;) {
		struct rlimit l = { rows[i].files, rows[i].files };
		unsigned n = 0, half = 1024;

		cr_assert_eq(setrlimit(RLIMIT_NOFILE, &l), 0);
		cr_expect(share_files(&n, &half));
		cr_expect(n == rows[i].sessions && half == rows[i].half_open, "%u: %u, %u",
			  (unsigned)rows[i].files, n, half);
		cr_expect_leq(2 * n + half + 24, rows[i].files);
	}
}

Test(sessctl_share, contact_16_too_few_files_for_a_session)
{
	struct rlimit l = { 26, 26 };
	unsigned n, half = 1024;

	cr_assert_eq(setrlimit(RLIMIT_NOFILE, &l), 0);
	cr_expect_not(share_files(&n, &half));
}
