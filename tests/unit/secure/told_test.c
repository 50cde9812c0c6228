/* SPDX-License-Identifier: BSD-2-Clause */
/* Refused peers: a flood of them fills no log, and each is counted. */
#include "secure/told.h"
#include <criterion/criterion.h>
#include <ddpsess/err_codes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static unsigned lines, infos;
static char last_line[400];

static void note_told(void *user, enum ddps_log_level level, const char *facility,
		      const char *message)
{
	(void)user;
	lines += level == DDPS_LOG_WARN;
	infos += level == DDPS_LOG_INFO;
	cr_expect_str_eq(facility, "secure");
	strncpy(last_line, message, sizeof last_line - 1);
}

static struct ddps_env *make_told_env(void)
{
	struct ddps_env *env = calloc(1, sizeof *env);

	cr_assert(env);
	env->log.fn = note_told;
	return env;
}

Test(told, ten_a_second_of_one_kind)
{
	struct ddps_env *env = make_told_env();

	for (int i = 0; i < 25; i++)
		ddps_told_refused(env, "192.0.2.1:9", DDPS_E_CERT_CA, "unknown CA", false);
	cr_expect_eq(lines, 10);
	ddps_told_refused(env, "192.0.2.1:9", DDPS_E_NOT_LISTED, "no rule", false);
	cr_expect_eq(lines, 11, "another kind is not hidden by it");
	cr_expect_str_eq(last_line, "refused 192.0.2.1:9: no rule");
	env->told[-DDPS_E_CERT_CA].since -= NSEC_PER_SEC;
	ddps_told_refused(env, "192.0.2.1:9", DDPS_E_CERT_CA, "unknown CA", false);
	cr_expect_eq(lines, 13);
	cr_expect(strstr(last_line, "15 more"), "%s", last_line);
	cr_expect_eq(env->refused[DDPS_REFUSED_IDENTITY], 26);
	cr_expect_eq(env->refused[DDPS_REFUSED_NOT_LISTED], 1);
	free(env);
}

/* Without a log the same goes to standard error, what was left out included. */
Test(told, a_program_without_a_log_says_as_much)
{
	struct ddps_env *env = make_told_env();
	FILE *f = tmpfile();
	char text[4096];
	size_t len;

	env->log.fn = NULL;
	cr_assert(f);
	cr_assert_eq(dup2(fileno(f), STDERR_FILENO), STDERR_FILENO);
	for (int i = 0; i < 25; i++)
		ddps_told_refused(env, "192.0.2.1:9", DDPS_E_CERT_CA, "unknown CA", false);
	env->told[-DDPS_E_CERT_CA].since -= NSEC_PER_SEC;
	ddps_told_refused(env, "192.0.2.1:9", DDPS_E_CERT_CA, "unknown CA", false);
	rewind(f);
	len = fread(text, 1, sizeof text - 1, f);
	text[len] = 0;
	cr_expect(strstr(text, "ddpsess: secure: refused 192.0.2.1:9: unknown CA\n"), "%s", text);
	cr_expect(strstr(text, "refused 15 more before"), "%s", text);
	fclose(f);
	free(env);
}

Test(told, each_error_has_its_counter)
{
	static const struct {
		int code;
		enum ddps_refused reason;
	} of[] = {
		{ DDPS_E_NO_CERT, DDPS_REFUSED_IDENTITY },
		{ DDPS_E_CERT_EXPIRED, DDPS_REFUSED_IDENTITY },
		{ DDPS_E_PSK_UNKNOWN, DDPS_REFUSED_IDENTITY },
		{ DDPS_E_PSK_WRONG, DDPS_REFUSED_IDENTITY },
		{ DDPS_E_CERT_NAME, DDPS_REFUSED_NOT_LISTED },
		{ DDPS_E_PLAIN_PEER, DDPS_REFUSED_PROTOCOL },
		{ DDPS_E_TLS_OLD, DDPS_REFUSED_PROTOCOL },
		{ DDPS_E_TLS_SUITE, DDPS_REFUSED_PROTOCOL },
		{ DDPS_E_TIMEDOUT, DDPS_REFUSED_GONE },
		{ DDPS_E_ALERT, DDPS_REFUSED_GONE },
	};
	struct ddps_env *env = make_told_env();

	for (size_t i = 0; i < sizeof of / sizeof *of; i++) {
		uint64_t before = env->refused[of[i].reason];

		ddps_told_refused(env, "192.0.2.1:9", of[i].code, "why", true);
		cr_expect_eq(env->refused[of[i].reason], before + 1, "%d", of[i].code);
	}
	cr_expect_eq(lines, 0, "who has sent nothing is for those who ask");
	cr_expect_eq(infos, sizeof of / sizeof *of);
	free(env);
}

Test(told, files_that_are_not_in_force)
{
	struct ddps_env *env = make_told_env();
	struct ddps_verdict news = { .code = 0 };

	ddps_told_news(env, &news);
	cr_expect_eq(lines + infos, 0);
	strcpy(news.text, "read again");
	ddps_told_news(env, &news);
	cr_expect_eq(infos, 1);
	news.loud = true;
	ddps_told_news(env, &news);
	cr_expect_eq(lines, 1);
	cr_expect_eq(env->reloads_failed, 0);
	news = (struct ddps_verdict){ .code = DDPS_E_CONFIG, .text = "line 2" };
	ddps_told_news(env, &news);
	cr_expect_eq(lines, 2);
	cr_expect_eq(env->reloads_failed, 1);
	free(env);
}
