/* SPDX-License-Identifier: BSD-2-Clause */
/* sessctl stat and sessctl top: options, and when to look. */
#include "cli/about.h"
#include "cli/out/out_json.h"
#include "cli/sessctl.h"
#include "cli/sig.h"
#include "cli/text.h"
#include "watch/watch.h"
#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

#define FIRST_MS  250 /* until the first rates */
#define SECOND_MS 1000

enum { W_STAT = 1, W_TOP = 2 };

struct watch_opts {
	uint32_t interval_ms, count;
	bool metrics, json;
};

#define AT(field) offsetof(struct watch_opts, field)

static const struct option_row table[] = {
	{ "interval", "SECONDS", W_STAT, VAL_SECONDS, AT(interval_ms), 10, 86400000,
	  "print again at this interval: one line for each context" },
	{ "interval", "SECONDS", W_TOP, VAL_SECONDS, AT(interval_ms), 10, 86400000,
	  "refresh at this interval (default 1)" },
	{ "count", "N", W_STAT | W_TOP, VAL_NUMBER, AT(count), 1, UINT32_MAX,
	  "end after N times (default: at a signal); without --interval once a second" },
	{ "metrics", NULL, W_STAT, VAL_FLAG, AT(metrics), 0, 0,
	  "print once, in the text format of Prometheus" },
	{ "json", NULL, W_STAT | W_TOP, VAL_FLAG, AT(json), 0, 0,
	  "print one JSON object per line for each context" },
	{ "help", NULL, W_STAT | W_TOP, VAL_HELP, 0, 0, 0, "this text" },
	{ "version", NULL, W_STAT | W_TOP, VAL_VERSION, 0, 0, 0, "version of sessctl and library" },
};

static const struct option_table options = { table, sizeof table / sizeof *table };

static const struct option_user users[] = {
	{ "stat", "[PID|URI]", "Show the sessions of a process, a listener, or all.", W_STAT, 0,
	  1 },
	{ "top", "[PID|URI]", "Watch the busiest sessions.", W_TOP, 0, 1 },
};

struct job {
	const struct option_user *user;
	struct watch_opts o;
	struct watch_target target;
	struct out out;
	json_t *before; /* the last look */
	unsigned told[WATCH_FAULTS];
};

/* A number is a PID, all else a URI. */
static int take_target(struct job *j, const char *arg, char *why, size_t why_len)
{
	char fault[200];
	uint64_t n;

	if (!arg)
		return 0;
	if (!text_number(arg, &n) && n && n <= INT32_MAX) {
		j->target.pid = (pid_t)n;
		return 0;
	}
	j->target.uri = arg;
	if (!ddps_uri_check(arg, fault, sizeof fault))
		return 0;
	snprintf(why, why_len, "'%s' is neither a process ID nor a URI: %s", arg, fault);
	return -1;
}

static int parse_watch_options(struct job *j, int argc, char **argv)
{
	char why[800];
	int first = 0;
	enum opts_result r =
		optrow_parse(&options, j->user, &j->o, argc, argv, &first, why, sizeof why);

	if (r == OPTS_HELP) {
		optrow_help(stdout, &options, j->user);
		return cmd_finish();
	}
	if (r == OPTS_OK && j->o.metrics && (j->o.json || j->o.interval_ms || j->o.count)) {
		snprintf(why, sizeof why, "--metrics is printed once: it excludes --%s",
			 j->o.json	    ? "json"
			 : j->o.interval_ms ? "interval"
					    : "count");
		r = OPTS_BAD;
	}
	if (r == OPTS_OK && take_target(j, argv[first], why, sizeof why))
		r = OPTS_BAD;
	return cmd_ready(r, j->user->name, why);
}

/* ---- looking ---- */

/* What was passed over, when there is more of it than at the look before.  @failed: nobody is there. */
static void tell_trouble(struct job *j, const struct watch_trouble *t, bool failed)
{
	static const struct {
		const char *what, *advice;
	} faults[WATCH_FAULTS] = {
		[WATCH_FOREIGN] = { "not asked: a link, not a socket, or somebody else's",
				    "removing it, or asking its owner what it is" },
		[WATCH_LATE] = { "no whole answer in time", "again: a process that is stopped "
							    "gives none" },
		[WATCH_LONG] = { "the answer is too long", "sessctl stat PID, which asks one "
							   "process only" },
		[WATCH_GARBLED] = { "no whole answer", "again: a process that ends gives none" },
		[WATCH_STRANGE] = { "what it answered is no state of a process",
				    "asking its owner what listens there" },
		[WATCH_ABSENT] = { "DDPSESS_WATCH names it, and there is no such directory",
				   "making it with mode 0700 before the programs start: they do "
				   "not make it" },
		[WATCH_MANY] = { "it has too many names: some were not asked",
				 "removing what is no socket there" },
	};
	char first[sizeof t->first[0]], more[32] = "";

	for (unsigned f = 0; f < WATCH_FAULTS; f++) {
		const char *what = faults[f].what, *advice = faults[f].advice;

		if (f == WATCH_SYSTEM && t->met[f]) {
			what = strerror(t->sys_errno);
			advice = text_file_advice(t->sys_errno);
		}
		text_clean(first, sizeof first, t->first[f], strlen(t->first[f]));
		if (t->met[f] > 1)
			snprintf(more, sizeof more, " and %u more", t->met[f] - 1);
		if (t->met[f] > j->told[f] && f == WATCH_ABSENT && failed)
			out_error(&j->out, 0, advice, "%s: %s", first, what);
		else if (t->met[f] > j->told[f])
			out_note(&j->out, advice, "%s%s: %s", first, t->met[f] > 1 ? more : "",
				 what);
		j->told[f] = t->met[f];
	}
}

static void report_nobody(struct job *j)
{
	static const char try[] =
		"a program that uses ddpsess, of this user and with DDPSESS_WATCH not set to off; "
		"root sees every user's";

	if (j->target.pid && kill(j->target.pid, 0) && errno == ESRCH)
		out_error(&j->out, 0, "sessctl stat, which lists every program that can be watched",
			  "there is no process %d", (int)j->target.pid);
	else if (j->target.pid)
		out_error(&j->out, 0, try, "process %d cannot be watched", (int)j->target.pid);
	else if (j->target.uri)
		out_error(&j->out, 0, "sessctl stat, which lists everybody's listeners",
			  "no program that can be watched listens on %s", j->target.uri);
	else
		out_error(&j->out, 0, try, "there is no process that can be watched");
}

/* Rows of the terminal, 0: it is none, and everything is shown. */
static unsigned rows(void)
{
	struct winsize w;

	return isatty(STDOUT_FILENO) && !ioctl(STDOUT_FILENO, TIOCGWINSZ, &w) ? w.ws_row : 0;
}

static void show_each(struct job *j, const json_t *all)
{
	const json_t *p;
	const char *key;

	json_object_foreach((json_t *)(uintptr_t)all, key, p)
	{
		if (j->o.json)
			json_out_line(&j->out, json_incref((json_t *)(uintptr_t)p));
		else if (j->o.interval_ms)
			watch_line(&j->out, p, json_object_get(j->before, key));
		else
			watch_text(&j->out, p);
	}
	out_flush(&j->out);
}

static void show_contexts(struct job *j, const json_t *all)
{
	if (j->o.metrics) {
		watch_metrics(j->out.f, all);
		out_flush(&j->out);
	} else if (j->user->bit == W_STAT || j->o.json) {
		show_each(j, all);
	} else {
		if (out_colours(STDOUT_FILENO))
			fputs("\033[H\033[2J", j->out.f);
		watch_table(&j->out, all, j->before, rows());
	}
}

/* One look.  @first: somebody has to be there. */
static enum status look_once(struct job *j, bool first)
{
	struct watch_trouble t;
	json_t *all = watch_find(&j->target, &t);
	const bool named = j->target.pid || j->target.uri;
	/* The table may be empty; a process that was named has to be there at first. */
	const bool failed = !json_object_size(all) && first && (named || j->user->bit == W_STAT);

	if (!failed)
		show_contexts(j, all);
	else if (!t.met[WATCH_ABSENT])
		report_nobody(j);
	tell_trouble(j, &t, failed);
	json_decref(j->before);
	j->before = all;
	return failed ? ST_FAILED : ST_DONE;
}

/* Until the next look.  false: a signal came. */
static bool rest_between_looks(uint32_t ms)
{
	struct pollfd p = { sig_fd(), POLLIN, 0 };
	const uint64_t due = clock_ns() + ms * NS_PER_MS;

	while (!sig_pending() && clock_ns() < due)
		poll(&p, 1, clock_left_ms(due));
	return !sig_pending();
}

/* A rate is of two looks: the one before the first that is shown. */
static bool look_before(struct job *j)
{
	struct watch_trouble t;

	if (!j->o.interval_ms || j->o.json)
		return true;
	j->before = watch_find(&j->target, &t);
	return !json_object_size(j->before) ||
	       rest_between_looks(j->o.interval_ms < FIRST_MS ? j->o.interval_ms : FIRST_MS);
}

static int run_watch(unsigned which, int argc, char **argv)
{
	struct job j = { .user = &users[which] };
	enum status s = ST_DONE;
	const char *lost;
	bool more;
	int status;

	if (j.user->bit == W_TOP)
		j.o.interval_ms = SECOND_MS;
	status = parse_watch_options(&j, argc, argv);
	if (status != CMD_READY)
		return status;
	if (j.o.count && !j.o.interval_ms)
		j.o.interval_ms = SECOND_MS;
	out_init(&j.out, j.user->name, j.o.json);
	j.out.listing = true;
	lost = j.target.uri ? watch_resolve(&j.target) : NULL;
	if (lost) {
		out_error(&j.out, 0, "a name that this host knows, or an address", "%s: %s",
			  j.target.uri, lost);
		(void)out_finish(&j.out);
		return ST_FAILED;
	}
	more = look_before(&j);
	for (uint32_t n = 1; more; n++) {
		s = look_once(&j, n == 1);
		if (s || j.out.write_errno || !j.o.interval_ms || n == j.o.count)
			break;
		/* Those that were named are gone: there is nothing more to tell. */
		if ((j.target.pid || j.target.uri) && !json_object_size(j.before))
			break;
		more = rest_between_looks(j.o.interval_ms);
	}
	json_decref(j.before);
	return (int)(out_finish(&j.out) && !s ? ST_FAILED : s);
}

int cmd_stat(int argc, char **argv)
{
	return run_watch(0, argc, argv);
}

int cmd_top(int argc, char **argv)
{
	return run_watch(1, argc, argv);
}
