/* SPDX-License-Identifier: BSD-2-Clause */
/* Texts of errors and names of Terminate codes. */
#include "common/error.h"
#include "common/term_codes.h"
#include "common/log.h"
#include <criterion/criterion.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <fcntl.h>
#include <unistd.h>

Test(error, every_code_has_its_own_text)
{
	static const int codes[] = {
#define DDPS_X(name, value, text) DDPS_E_##name,
		DDPS_ERRORS(DDPS_X)
#undef DDPS_X
	};
	size_t n = sizeof codes / sizeof codes[0];

	for (size_t i = 0; i < n; i++) {
		cr_expect_lt(codes[i], 0);
		cr_expect_str_neq(ddps_strerror(codes[i]), "unknown error");
		for (size_t k = 0; k < i; k++) {
			cr_expect_neq(codes[i], codes[k]);
			cr_expect_str_neq(ddps_strerror(codes[i]), ddps_strerror(codes[k]));
		}
	}
	cr_expect_str_eq(ddps_strerror(0), "success");
	cr_expect_str_eq(ddps_strerror(-9999), "unknown error");
}

Test(error, terminate_codes_have_their_names, .description = "6580-3.1-d1 6580-3.2-d1 6581-8-d2")
{
	static const struct {
		struct ddps_triple t;
		const char *part;
	} rows[] = {
		{ { 0, 0, 0x00 }, "local catastrophic" },
		{ { 0, 0, 0x77 }, "local catastrophic" },
		{ { 0, 1, 0x09 }, "cannot be invalidated" },
		{ { 0, 2, 0x06 }, "unexpected opcode" },
		{ { 1, 1, 0x01 }, "base or bounds" },
		{ { 1, 2, 0x02 }, "no buffer" },
		{ { 1, 3, 0x42 }, "reserved for the LLP" },
		{ { 2, 0, 0x02 }, "CRC" },
		{ { 2, 0, 0x06 }, "insufficient IRD" },
		{ { 2, 0, 0x07 }, "no matching RTR" },
		{ { 1, 2, 0x00 }, "unassigned" },
		{ { 3, 0, 0x00 }, "unassigned" },
		{ { 2, 0, 0x08 }, "unassigned" },
	};

	for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++)
		cr_expect_not_null(strstr(ddps_triple_name(&rows[i].t), rows[i].part), "%u/%u/%02x",
				   rows[i].t.layer, rows[i].t.etype, rows[i].t.code);
}

Test(error, terminate_codes_have_one_name_each)
{
	static const enum ddps_term_code codes[] = {
#define DDPS_X(name, layer, etype, code, text) DDPS_TERM_##name,
		DDPS_TERM_CODES(DDPS_X)
#undef DDPS_X
	};

	for (size_t i = 0; i < sizeof codes / sizeof codes[0]; i++) {
		struct ddps_triple t = ddps_term_triple(codes[i]);

		cr_expect_eq(ddps_term_of(&t), codes[i]);
		cr_expect_str_neq(ddps_triple_name(&t), "unassigned error", "%x", codes[i]);
		for (size_t k = 0; k < i; k++) {
			struct ddps_triple other = ddps_term_triple(codes[k]);

			cr_expect_str_neq(ddps_triple_name(&t), ddps_triple_name(&other));
		}
	}
}

Test(error, a_long_sentence_is_cut_not_overrun)
{
	char long_text[1000];
	struct ddps_error e;

	memset(long_text, 'x', sizeof long_text - 1);
	long_text[sizeof long_text - 1] = 0;
	e = ddps_error_make(DDPS_E_SYSTEM, EPERM, "%s", long_text);
	cr_expect_eq(strlen(e.text), sizeof e.text - 1);
	cr_expect_eq(e.sys_errno, EPERM);
	cr_expect_not(e.has_triple);
	e = ddps_error_triple(DDPS_E_CRC, (struct ddps_triple){ 2, 0, 2 }, "bad");
	cr_expect(e.has_triple);
	cr_expect_str_eq(e.text, "bad");
}

Test(error, errno_maps_to_a_code)
{
	cr_expect_eq(ddps_err_from_errno(ECONNREFUSED), DDPS_E_REFUSED);
	cr_expect_eq(ddps_err_from_errno(ETIMEDOUT), DDPS_E_TIMEDOUT);
	cr_expect_eq(ddps_err_from_errno(EPIPE), DDPS_E_RESET);
	cr_expect_eq(ddps_err_from_errno(ECONNRESET), DDPS_E_RESET);
	cr_expect_eq(ddps_err_from_errno(ECONNABORTED), DDPS_E_RESET);
	cr_expect_eq(ddps_err_from_errno(ENOBUFS), DDPS_E_NOMEM);
	cr_expect_eq(ddps_err_from_errno(ENOMEM), DDPS_E_NOMEM);
	cr_expect_eq(ddps_err_from_errno(EACCES), DDPS_E_SYSTEM);
}

Test(error, one_is_kept_until_it_is_reported)
{
	struct ddps_kept_error k = { 0 };
	struct ddps_error e = ddps_error_make(DDPS_E_RESET, EPERM, "first");

	cr_expect_eq(ddps_error_kept(&k).code, 0);
	ddps_error_keep(&k, &e);
	e = ddps_error_make(DDPS_E_TIMEDOUT, 0, "second");
	cr_expect_str_eq(ddps_error_kept(&k).text, "first");
	cr_expect_eq(ddps_error_kept(&k).sys_errno, EPERM);
	ddps_error_keep(&k, &e);
	cr_expect_eq(k.code, DDPS_E_TIMEDOUT);
	cr_expect_str_eq(ddps_error_kept(&k).text, "second");
	e = (struct ddps_error){ .code = 0 };
	ddps_error_keep(&k, &e);
	cr_expect_null(k.all, "nothing to say needs no memory");
	for (unsigned i = 0; i < 4; i++) { /* whatever there is to say is kept */
		e = (struct ddps_error){ .code = i == 0 ? DDPS_E_RESET : 0, .has_triple = i == 1 };
		e.text[0] = i == 2 ? 't' : 0;
		e.peer[0] = i == 3 ? 'p' : 0;
		ddps_error_keep(&k, &e);
		cr_assert_not_null(k.all, "%u", i);
		cr_expect_arr_eq(k.all, &e, sizeof e, "%u", i);
	}
	ddps_error_drop(&k);
}

/* As when there was no memory: a program still decides by the Terminate's code. */
Test(error, what_is_kept_without_memory_has_its_codes)
{
	struct ddps_triple t = { 0, 1, 3 };
	struct ddps_error e = ddps_error_triple(DDPS_E_TERMINATED, t, "%s", "a sentence");
	struct ddps_kept_error k = { 0 };

	e.by_peer = true;
	ddps_error_keep(&k, &e);
	free(k.all);
	k.all = NULL;
	e = ddps_error_kept(&k);
	cr_expect_eq(e.code, DDPS_E_TERMINATED);
	cr_expect(e.has_triple && e.by_peer);
	cr_expect(e.triple.layer == 0 && e.triple.etype == 1 && e.triple.code == 3);
	cr_expect(strstr(e.text, "no memory"), "%s", e.text);
	ddps_error_drop(&k);
}

/* ---- which messages DDPSESS_LOG lets pass ---- */

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
