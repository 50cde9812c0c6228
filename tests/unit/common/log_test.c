/* SPDX-License-Identifier: BSD-2-Clause */
/* Which messages DDPSESS_LOG lets pass. */
#include "common/log.h"
#include <criterion/criterion.h>
#include <errno.h>
#include <fcntl.h>
#include <unistd.h>

static bool does_level_pass(const char *spec, enum ddps_log_level level, const char *facility)
{
	struct ddps_log_filter f;

	cr_assert_eq(ddps_log_filter_parse(&f, spec), 0, "%s", spec);
	return ddps_log_passes(&f, level, facility);
}

Test(log, a_filter_is_read)
{
	cr_expect(does_level_pass("debug", DDPS_LOG_DEBUG, "mpa"));
	cr_expect(does_level_pass("info", DDPS_LOG_INFO, "cq"));
	cr_expect(does_level_pass("secure:info", DDPS_LOG_INFO, "secure"));
	cr_expect_not(does_level_pass("info", DDPS_LOG_DEBUG, "cq"));
	cr_expect_not(does_level_pass("none", DDPS_LOG_ERROR, "session"));
	/* what is not named is silent unless a level stands alone, wherever that is */
	cr_expect(does_level_pass("mpa:debug", DDPS_LOG_DEBUG, "mpa"));
	cr_expect_not(does_level_pass("mpa:debug", DDPS_LOG_ERROR, "sctp"));
	cr_expect(does_level_pass("mpa:debug,warn", DDPS_LOG_WARN, "sctp"));
	cr_expect(does_level_pass("warn,mpa:debug", DDPS_LOG_WARN, "sctp"));
	cr_expect_not(does_level_pass("debug,sctp:none", DDPS_LOG_ERROR, "sctp"));
	cr_expect(does_level_pass("error", DDPS_LOG_DEBUG, "of another release"),
		  "it is not hidden");
}

Test(log, what_is_no_filter_is_reported)
{
	static const char *const bad[] = {
		"",	      ",",	    "loud",	 "mpa",
		"mpa:",	      ":info",	    "mpa:info,", "mpa:info:debug",
		"ipoib:info", "info debug", "INFO"
	};
	struct ddps_log_filter f;

	for (size_t i = 0; i < sizeof bad / sizeof *bad; i++)
		cr_expect_eq(ddps_log_filter_parse(&f, bad[i]), -1, "%s", bad[i]);
}

/* What it does not take is left out, and counted in the next line that it takes. */
Test(log, a_full_pipe_is_not_waited_for)
{
	static char page[4096], seen[4096];
	int ends[2], was = dup(STDERR_FILENO);
	ssize_t n;

	cr_assert(was >= 0 && !pipe2(ends, O_NONBLOCK) && dup2(ends[1], STDERR_FILENO) >= 0);
	while (write(ends[1], page, sizeof page) > 0)
		;
	fcntl(ends[1], F_SETFL, 0); /* now a write would wait */
	errno = E2BIG;
	ddps_log_stderr(NULL, DDPS_LOG_WARN, "mpa", "one");
	ddps_log_stderr(NULL, DDPS_LOG_WARN, "mpa", "two");
	cr_expect_eq(errno, E2BIG);
	while (read(ends[0], page, sizeof page) > 0)
		;
	ddps_log_stderr(NULL, DDPS_LOG_WARN, "mpa", "three");
	dup2(was, STDERR_FILENO);
	n = read(ends[0], seen, sizeof seen - 1);
	cr_assert_gt(n, 0);
	cr_expect_str_eq(seen,
			 "ddpsess: log: 2 lines left out: nobody read them\nddpsess: mpa: three\n");
}
