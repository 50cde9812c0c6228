/* SPDX-License-Identifier: BSD-2-Clause */
/* The outputs of sessctl conform. */
#include "report/conform_out.h"
#include "cli/out/out.h"
#include "cli/safe.h"
#include "cli/temp.h"
#include "cli/text.h"
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define RULES 4 /* in words, of a failed case in the table; the files have all */

static const char *const names[] = { "pass", "fail", "known", "skip", "undecided" };
static const char *const grades[] = { "strict", "passes", "harmless", "fails" };

const char *conform_verdict(uint32_t v)
{
	return names[v];
}

const char *conform_grade(uint32_t g)
{
	return grades[g];
}

static void print_file_advice(int sys_errno)
{
	const char *advice = text_file_advice(sys_errno);

	if (advice)
		fprintf(stderr, "  try: %s\n", advice);
}

static void print_file_fault(const struct conform_out *c, const char *what, const char *name,
			     int err)
{
	fprintf(stderr, "%s: %s '%s': %s\n", c->job->command, what, name, strerror(err));
	print_file_advice(err);
}

/* @err: an errno, or 0: nothing.  0 or -1. */
static int say_unwritten(const struct conform_out *c, const char *name, int err)
{
	if (!err)
		return 0;
	fprintf(stderr, "%s: '%s' could not be written: %s\n", c->job->command, name,
		strerror(err));
	print_file_advice(err);
	return -1;
}

/* ---- reports ---- */

typedef void put_report(const struct conform_out *c, FILE *f, const char *error);

static const char cut_off[] = "the run was cut off"; /* true of a report until the end */

/* Whoever reads it, or ends this program, finds a whole one.  0 or an errno. */
static int replace_report(const struct conform_out *c, const struct conform_report *r,
			  put_report *put, const char *error)
{
	char *text = NULL;
	struct temp t = TEMP_NONE;
	size_t len;
	FILE *f = open_memstream(&text, &len);
	int err;

	if (!f)
		return ENOMEM;
	put(c, f, error);
	if (fclose(f)) {
		free(text);
		return ENOMEM;
	}
	err = temp_open_path(&t, r->name, len) ? errno : 0;
	t.passing = error == cut_off;
	if (!err && (temp_write(&t, text, (uint32_t)len, 0) || temp_commit(&t, true, NULL)))
		err = errno;
	temp_abort(&t);
	free(text);
	return err;
}

/* What is not a file, or another user's, or stands in a folder where none can be made, is written at the end. */
static int begin_report(const struct conform_out *c, struct conform_report *r, const char *name,
			const char *what, put_report *put)
{
	struct stat st;
	bool there = name && !lstat(name, &st),
	     other = there && (!S_ISREG(st.st_mode) || st.st_uid != geteuid()),
	     kept = there && !other && faccessat(AT_FDCWD, name, W_OK, AT_EACCESS);

	r->name = name;
	if (!name || (!other && !kept && !replace_report(c, r, put, cut_off)))
		return 0;
	r->late = safe_create(name, 0666); /* or says why not */
	if (r->late)
		return 0;
	print_file_fault(c, what, name, errno);
	return -1;
}

static void go_on_with_report(const struct conform_out *c, const struct conform_report *r,
			      put_report *put)
{
	if (r->name && !r->late)
		(void)replace_report(c, r, put, cut_off); /* the end says what fails */
}

/* 0 or -1: said. */
static int end_report(const struct conform_out *c, const struct conform_report *r, put_report *put)
{
	int err = 0;

	if (r->late) {
		put(c, r->late, c->error);
		err = fflush(r->late) ? errno : ferror(r->late) ? EIO : 0;
		fclose(r->late);
	} else if (r->name) {
		err = replace_report(c, r, put, c->error);
	}
	return say_unwritten(c, r->name, err);
}

int conform_out_begin(struct conform_out *c, const struct conform_job *job)
{
	const struct conform_out_opts *o = &job->o;

	*c = (struct conform_out){ .job = job };
	c->table = !o->json && !o->tap;
	c->colour = c->table && out_colours(STDOUT_FILENO);
	c->progress = c->table && out_colours(STDERR_FILENO);
	if (begin_report(c, &c->junit, o->junit, "JUnit report", conform_junit) ||
	    begin_report(c, &c->html, o->html, "HTML report", conform_html))
		return -1;
	if (o->pcap && !(c->pcap = safe_create(o->pcap, 0600))) {
		print_file_fault(c, "capture file", o->pcap, errno);
		return -1;
	}
	if (c->pcap)
		(void)ddps_conform_pcap_begin(c->pcap); /* ferror() at the end says */
	if (o->tap)
		printf("TAP version 13\n");
	return 0;
}

/* ---- TAP ---- */

static void print_tap(const struct ddps_conform_result *r, const struct kept_case *k)
{
	/* what is undecided fails no build: it is a test that was not made */
	printf("%s %u - %s: %s",
	       r->verdict == DDPS_CONFORM_FAIL || r->verdict == DDPS_CONFORM_KNOWN ? "not ok"
										   : "ok",
	       r->number, r->c.name, r->c.rule);
	if (r->verdict == DDPS_CONFORM_KNOWN)
		printf(" # TODO known of this target: %s", r->known);
	if (r->verdict == DDPS_CONFORM_SKIP || r->verdict == DDPS_CONFORM_UNDECIDED)
		printf(" # SKIP %s", r->why);
	putchar('\n');
	if (r->verdict != DDPS_CONFORM_FAIL)
		return;
	printf("# %s [%s]\n", r->why, r->c.ids);
	if (k)
		kept_print(stdout, k, "# ", RULES);
}

/* ---- the table ---- */

static void print_table_row(const struct conform_out *c, const struct kept_case *r)
{
	const char *on = "", *off = c->colour ? "\033[0m" : "";

	if (c->colour)
		on = r->verdict == DDPS_CONFORM_FAIL   ? "\033[31m"
		     : r->verdict == DDPS_CONFORM_PASS ? "\033[32m"
						       : off;
	printf("%s%-5s%s %-34s %s%s%s\n", on,
	       r->verdict == DDPS_CONFORM_FAIL ? "FAIL" : names[r->verdict], off, r->c.name,
	       r->verdict == DDPS_CONFORM_KNOWN ? grades[r->grade] : "",
	       r->verdict == DDPS_CONFORM_KNOWN ? ": " : "",
	       r->verdict == DDPS_CONFORM_SKIP || r->verdict == DDPS_CONFORM_UNDECIDED ? r->why
	       : r->verdict == DDPS_CONFORM_KNOWN && r->known			       ? r->known
										       : r->c.rule);
	if (r->verdict == DDPS_CONFORM_PASS && r->known)
		printf("      the profile says otherwise: %s\n", r->known);
	if (r->verdict == DDPS_CONFORM_FAIL)
		kept_print(stdout, r, "      ", RULES);
}

static void print_areas(const struct kept *k)
{
	const struct kept_area *a = k->area;

	printf("%-9s %6s %6s %8s %5s %7s\n", "area", "strict", "passes", "harmless", "fails",
	       "not run");
	for (size_t i = 0; i < k->areas; i++)
		printf("%-9s %6u %6u %8u %5u %7u  %s\n", a[i].name, a[i].grade[0], a[i].grade[1],
		       a[i].grade[2], a[i].grade[3],
		       a[i].verdict[DDPS_CONFORM_SKIP] + a[i].verdict[DDPS_CONFORM_UNDECIDED],
		       a[i].title ? a[i].title : "");
}

/* Words that fill lines of @columns, of ASCII. */
static void print_paragraph(const char *text, const char *indent, size_t columns)
{
	size_t at = 0;

	while (*text) {
		size_t n = strcspn(text, " ");

		if (at && at + 1 + n > columns) {
			putchar('\n');
			at = 0;
		}
		printf("%s%.*s", at ? " " : indent, (int)n, text);
		at += n + (at ? 1 : strlen(indent));
		text += n + (text[n] == ' ');
	}
	putchar('\n');
}

static void print_causes(const struct kept *k)
{
	enum cause order[CAUSES];
	uint32_t idle;

	kept_causes(k, order);
	if (order[0])
		printf("\nlikely causes\n");
	for (size_t i = 0; order[i]; i++) {
		printf("  %s: %u cases\n", cause_words(order[i])->text, k->cause[order[i]]);
		print_paragraph(cause_words(order[i])->tell, "    ", 78);
	}
	idle = kept_idle_passes(k, order);
	if (idle) {
		printf("  %u passed nevertheless:\n", idle);
		print_paragraph(KEPT_IDLE_WORDS ".", "    ", 78);
	}
}

/* Failures first: the others are many. */
static void print_table(const struct conform_out *c)
{
	const struct kept *k = &c->kept;

	print_areas(k);
	print_causes(k);
	putchar('\n');
	for (int failed = 1; failed >= 0; failed--)
		for (size_t i = 0; i < k->n; i++)
			if ((k->at[i].verdict == DDPS_CONFORM_FAIL) == failed)
				print_table_row(c, &k->at[i]);
	putchar('\n');
}

static void show_progress(const struct conform_out *c, const char *name)
{
	if (c->progress && name)
		fprintf(stderr, "\r\033[K%zu cases done, the last one is %s", c->kept.n, name);
	else if (c->progress)
		fprintf(stderr, "\r\033[K");
}

void conform_out_case(struct conform_out *c, const struct ddps_conform_result *told)
{
	struct ddps_conform_result clean = *told, *r = &clean;
	const struct kept_case *k;
	char why[1600], known[1600], expected[400];

	/* parts of it may come from the target, or from a profile */
	text_clean(why, sizeof why, told->why, strlen(told->why));
	clean.why = why;
	if (told->known) {
		text_clean(known, sizeof known, told->known, strlen(told->known));
		clean.known = known;
	}
	if (told->expected) {
		text_clean(expected, sizeof expected, told->expected, strlen(told->expected));
		clean.expected = expected;
	}
	k = kept_add(&c->kept, r);
	if (c->job->o.json)
		conform_json_case(c, r, k);
	else if (c->job->o.tap)
		print_tap(r, k);
	c->verdict[r->verdict]++;
	go_on_with_report(c, &c->junit, conform_junit);
	go_on_with_report(c, &c->html, conform_html);
	show_progress(c, r->c.name);
	if (c->pcap && (r->verdict == DDPS_CONFORM_FAIL || c->job->o.pcap_all))
		(void)ddps_conform_pcap_add(c->pcap, r);
}

void conform_out_error(struct conform_out *c, int err, const char *why, const char *advice)
{
	size_t room = 4 * strlen(why) + 1;

	c->error = malloc(room);
	c->advice = advice;
	c->kept.short_of_memory |= !c->error;
	if (!c->error)
		return;
	text_clean(c->error, room, why, strlen(why));
	if (c->job->o.json)
		conform_json_error(c, err);
	else if (c->job->o.tap)
		printf("Bail out! %s\n", c->error);
}

static int close_capture(const struct conform_out *c)
{
	const int err = !c->pcap ? 0 : fflush(c->pcap) ? errno : ferror(c->pcap) ? EIO : 0;

	if (c->pcap)
		fclose(c->pcap);
	return say_unwritten(c, c->job->o.pcap, err);
}

/* Nothing where all is strict: the line before says it. */
static void grade_line(const struct ddps_conform_sum *sum)
{
	const uint32_t *n = sum->grade;

	if (n[DDPS_CONFORM_PASSES] + n[DDPS_CONFORM_HARMLESS] + n[DDPS_CONFORM_FAILS])
		printf("grades: %u strict, %u passes, %u harmless, %u fails; only strict counts as "
		       "passed\n",
		       n[0], n[1], n[2], n[3]);
}

uint32_t conform_out_count(const struct ddps_conform_sum *sum)
{
	return sum->pass + sum->fail + sum->known + sum->skip + sum->undecided;
}

int conform_out_end(struct conform_out *c, const struct ddps_conform_sum *sum)
{
	char undecided[40] = "";
	int err = 0;

	if (sum->undecided)
		snprintf(undecided, sizeof undecided, ", %u undecided", sum->undecided);
	show_progress(c, NULL);
	if (c->table && c->kept.n)
		print_table(c);
	if (c->kept.short_of_memory)
		fprintf(stderr, "%s: too little memory: some cases are missing in the report\n",
			c->job->command);
	if (c->job->o.json)
		conform_json_end(c, sum);
	else if (c->job->o.tap && !c->error)
		printf("1..%u\n", conform_out_count(sum));
	else if (c->table && (c->kept.n || !c->error))
		printf("%u passed, %u failed, %u known, %u skipped%s over %s\n", sum->pass,
		       sum->fail, sum->known, sum->skip, undecided, c->job->wire);
	if (c->table)
		grade_line(sum);
	fflush(stdout); /* a report may go there, too: behind this */
	err |= end_report(c, &c->junit, conform_junit);
	err |= end_report(c, &c->html, conform_html);
	err |= close_capture(c);
	kept_free(&c->kept);
	free(c->error);
	if (c->lost)
		err = -1;
	if (fflush(stdout) || ferror(stdout)) {
		fprintf(stderr, "%s: standard output: %s\n", c->job->command, strerror(errno));
		err = -1;
	}
	return err;
}
