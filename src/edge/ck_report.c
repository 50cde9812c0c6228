/* SPDX-License-Identifier: BSD-2-Clause */
/* Reports: on standard error, each place once, with the calls that led there. */
#include "edge/ck.h"
#include "edge/ed.h"
#include "common/system/say.h"
#include <dlfcn.h>
#include <errno.h>
#include <execinfo.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define SUPPRESS_MAX 128
#define WORD_MAX     128
#define SEEN_MAX     1024

#define NAME(rule, name) [CK_##rule] = (name),
static const char *const rule_names[] = { CK_RULES(NAME) };
#undef NAME

/* One line of the file: a rule or CK_ANY, and what a frame has to contain. */
struct suppression {
	enum ck_rule rule;
	char frame[WORD_MAX];
};

static struct {
	struct ddps_mutex lock;
	bool on;
	unsigned reports, suppressions, seen;
	struct suppression suppress[SUPPRESS_MAX];
	struct {
		enum ck_rule rule;
		void *at;
	} place[SEEN_MAX];
} ck = { .lock = DDPS_MUTEX(DDPS_LOCK_CK) };

bool ck_on(void)
{
	return ck.on;
}

void ck_in_child(void)
{
	ddps_assert_held(&ed.lock);
	ddps_mutex_init(&ck.lock, DDPS_LOCK_CK);
	ck.reports = ck.seen = 0;
	ck_forget_regions();
}

/* ---- suppressions ---- */

static enum ck_rule find_check_rule(const char *name)
{
	enum ck_rule rule = 0;

	while (rule < CK_ANY && strcmp(rule_names[rule], name))
		rule++;
	return rule;
}

static void refuse_check_rule(const char *path, unsigned number, const char *name)
{
	fprintf(stderr, "ddpsess: %s:%u: there is no rule '%s': use '*'", path, number, name);
	for (enum ck_rule rule = 0; rule < CK_ANY; rule++)
		fprintf(stderr, "%s '%s'", rule + 1 < CK_ANY ? "," : " or", rule_names[rule]);
	fprintf(stderr, "; the device cannot be opened\n");
}

static int take_suppression(const char *path, char *line, unsigned number)
{
	struct suppression *s = &ck.suppress[ck.suppressions];
	char name[WORD_MAX];
	int used = 0;

	line[strcspn(line, "#\n")] = 0;
	if (sscanf(line, " %127s %n", name, &used) < 1)
		return 0;
	s->rule = find_check_rule(name);
	if (s->rule == CK_ANY && strcmp(name, "*")) {
		refuse_check_rule(path, number, name);
		return -1;
	}
	snprintf(s->frame, sizeof s->frame, "%s", line + used);
	while (*s->frame && strchr(" \t\r", s->frame[strlen(s->frame) - 1]))
		s->frame[strlen(s->frame) - 1] = 0;
	if (++ck.suppressions < SUPPRESS_MAX)
		return 0;
	ddps_say("ddpsess: %s:%u: %d suppressions at most; the device cannot be opened\n", path,
		 number, SUPPRESS_MAX - 1);
	return -1;
}

int ck_start(const char *suppress)
{
	FILE *f = *suppress ? fopen(suppress, "re") : NULL;
	unsigned number = 0;
	char line[512];
	int err = 0;

	ck.on = true;
	if (*suppress && !f) {
		ddps_say("ddpsess: %s: %s; the device cannot be opened\n", suppress,
			 strerror(errno));
		return -1;
	}
	while (f && !err && fgets(line, sizeof line, f))
		err = take_suppression(suppress, line, ++number);
	if (f)
		fclose(f);
	return err;
}

static bool frame_has(const struct ck_trace *t, const char *text)
{
	char **names = backtrace_symbols((void *const *)t->frame, t->n);
	bool found = false;

	for (int i = 0; names && i < t->n && !found; i++)
		found = strstr(names[i], text);
	free(names);
	return found;
}

static bool is_suppressed(enum ck_rule rule, const struct ck_trace *t)
{
	for (unsigned i = 0; i < ck.suppressions; i++) {
		const struct suppression *s = &ck.suppress[i];

		if (s->rule != CK_ANY && s->rule != rule)
			continue;
		if (!*s->frame || frame_has(t, s->frame))
			return true;
	}
	return false;
}

/* ---- places ---- */

/* Whether a frame is in this library. */
static bool is_frame_ours(void *frame)
{
	Dl_info here = { 0 }, there;

	dladdr((void *)(uintptr_t)is_frame_ours, &here);
	return dladdr(frame, &there) && here.dli_fbase == there.dli_fbase;
}

void ck_note(struct ck_trace *t)
{
	void *all[CK_FRAMES + 16];
	int n = backtrace(all, CK_FRAMES + 16), i = 0;

	while (i < n - 1 && is_frame_ours(all[i]))
		i++;
	t->n = n - i < CK_FRAMES ? n - i : CK_FRAMES;
	memcpy(t->frame, all + i, (size_t)t->n * sizeof *all);
}

/* The first time that @rule is broken there.  The lock is held. */
static bool is_report_new(enum ck_rule rule, const struct ck_trace *t)
{
	void *at = t->n ? t->frame[0] : NULL;

	ddps_assert_held(&ck.lock);
	for (unsigned i = 0; i < ck.seen; i++)
		if (ck.place[i].at == at && ck.place[i].rule == rule)
			return false;
	if (ck.seen < SEEN_MAX) {
		ck.place[ck.seen].rule = rule;
		ck.place[ck.seen++].at = at;
	}
	return true;
}

static void tell_rule(enum ck_rule rule, const struct ck_trace *at, const struct ck_trace *also,
		      const char *text)
{
	ddps_lock(&ck.lock);
	if (is_report_new(rule, at) && !is_suppressed(rule, at)) {
		ck.reports++;
		ddps_say("ddpsess: check: %s: %s\n", rule_names[rule], text);
		fflush(stderr);
		backtrace_symbols_fd((void *const *)at->frame, at->n, 2);
		if (also && also->n) {
			ddps_say("ddpsess: check: %s: %s at\n", rule_names[rule],
				 rule == CK_DEREG_USED ? "deregistered" : "posted");
			fflush(stderr);
			backtrace_symbols_fd((void *const *)also->frame, also->n, 2);
		}
	}
	ddps_unlock(&ck.lock);
}

void ck_report(enum ck_rule rule, const struct ck_trace *also, const char *fmt, ...)
{
	struct ck_trace here;
	char text[300];
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(text, sizeof text, fmt, ap);
	va_end(ap);
	ck_note(&here);
	tell_rule(rule, &here, also, text);
}

void ck_report_at(enum ck_rule rule, const struct ck_trace *at, const char *fmt, ...)
{
	char text[300];
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(text, sizeof text, fmt, ap);
	va_end(ap);
	tell_rule(rule, at, NULL, text);
}

bool ck_end(void)
{
	ck_left();
	return ck.reports;
}
