/* SPDX-License-Identifier: BSD-2-Clause */
/* What a listener says of peers that it refused, and of files that it could not read again. */
#include "secure/told.h"
#include <ddpsess/err_codes.h>
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>

#define SAID_MOST 10 /* a second, of one code: a flood fills no disk */

static enum ddps_refused get_reason(int code)
{
	switch (code) {
	case DDPS_E_CERT_NAME:
	case DDPS_E_NOT_LISTED:
	case DDPS_E_ACCESS:
		return DDPS_REFUSED_NOT_LISTED;
	case DDPS_E_CERT:
	case DDPS_E_NO_CERT:
	case DDPS_E_CERT_EXPIRED:
	case DDPS_E_CERT_NOT_YET:
	case DDPS_E_CERT_CA:
	case DDPS_E_CERT_USAGE:
	case DDPS_E_CERT_REVOKED:
	case DDPS_E_CERT_WEAK:
	case DDPS_E_CRL:
	case DDPS_E_PSK_UNKNOWN:
	case DDPS_E_PSK_WRONG:
		return DDPS_REFUSED_IDENTITY;
	case DDPS_E_TIMEDOUT:
	case DDPS_E_RESET:
	case DDPS_E_LIMIT:
	case DDPS_E_ALERT:
	case DDPS_E_CUT_SHORT:
	case DDPS_E_CLOSED:
	case DDPS_E_CERT_REFUSED:
		return DDPS_REFUSED_GONE;
	default:
		return DDPS_REFUSED_PROTOCOL;
	}
}

/* Whether one more may be said in this second; @untold: what was not since the last one. */
static bool may_say(struct ddps_told *t, uint64_t now, uint64_t *untold)
{
	if (!t->said || now - t->since >= NSEC_PER_SEC) {
		t->since = now;
		t->said = 0;
	}
	if (t->said == SAID_MOST) {
		t->untold++;
		return false;
	}
	t->said++;
	*untold = t->untold;
	t->untold = 0;
	return true;
}

/* A program that wants no log learns this: who answers for it has to know. */
static void say_told(struct ddps_env *env, enum ddps_log_level level, const char *fmt, ...)
	__attribute__((format(printf, 3, 4)));

static void say_told(struct ddps_env *env, enum ddps_log_level level, const char *fmt, ...)
{
	const struct ddps_log log = { env->log.fn ? env->log.fn : ddps_log_stderr, env->log.user };
	char text[360];
	va_list ap;

	if (!env->log.fn && level > DDPS_LOG_WARN)
		return;
	va_start(ap, fmt);
	vsnprintf(text, sizeof text, fmt, ap);
	va_end(ap);
	ddps_log(&log, level, "secure", "%s", text);
}

void ddps_told_refused(struct ddps_env *env, const char *peer, int code, const char *text,
		       bool silent)
{
	const enum ddps_log_level level = silent ? DDPS_LOG_INFO : DDPS_LOG_WARN;
	const unsigned slot = (unsigned)-code % DDPS_TOLD_CODES;
	uint64_t untold;

	env->refused[get_reason(code)]++;
	if (silent || may_say(&env->told[slot], ddps_now(), &untold)) {
		say_told(env, level, "refused %s: %s", peer, text);
		if (!silent && untold)
			say_told(env, level, "refused %" PRIu64 " more before, of the same kind",
				 untold);
	}
}

void ddps_told_own(struct ddps_env *env, const char *text)
{
	say_told(env, DDPS_LOG_WARN, "%s", text);
}

void ddps_told_news(struct ddps_env *env, const struct ddps_verdict *news)
{
	env->reloads_failed += news->code != 0;
	if (news->text[0])
		say_told(env, news->code || news->loud ? DDPS_LOG_WARN : DDPS_LOG_INFO, "%s",
			 news->text);
}
