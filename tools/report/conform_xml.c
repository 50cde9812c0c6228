/* SPDX-License-Identifier: BSD-2-Clause */
/* The JUnit report, and text as XML and HTML take it. */
#include "report/conform_out.h"
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define RULES 100u /* all of a case */

void conform_escape(FILE *f, const char *s)
{
	for (; *s; s++) {
		/* U+FFFE and U+FFFF are no characters of XML, nor are controls */
		if (!strncmp(s, "\xef\xbf\xbe", 3) || !strncmp(s, "\xef\xbf\xbf", 3)) {
			fputc('?', f);
			s += 2;
		} else if (*s == '<') {
			fputs("&lt;", f);
		} else if (*s == '>') {
			fputs("&gt;", f);
		} else if (*s == '&') {
			fputs("&amp;", f);
		} else if (*s == '"') {
			fputs("&quot;", f);
		} else if (*s == '\'') {
			fputs("&#39;", f);
		} else if ((unsigned char)*s >= ' ' || *s == '\n') {
			fputc(*s, f);
		}
	}
}

static void put_failure(FILE *f, const struct kept_case *k)
{
	char *text = NULL;
	size_t len;
	FILE *mem = open_memstream(&text, &len);

	fprintf(f, "<failure message=\"");
	conform_escape(f, k->why);
	fprintf(f, "\">");
	conform_escape(f, k->c.rule);
	fputc('\n', f);
	if (mem) {
		kept_print(mem, k, "", RULES);
		fclose(mem);
		conform_escape(f, text);
	}
	fprintf(f, "</failure>");
	free(text);
}

static void put_testcase(FILE *f, const char *wire, const struct kept_case *k)
{
	fprintf(f, "  <testcase classname=\"%s\" name=\"%s\" time=\"%.3f\">", wire, k->c.name,
		(double)k->ns / 1e9);
	if (k->verdict == DDPS_CONFORM_FAIL) {
		put_failure(f, k);
	} else if (k->verdict != DDPS_CONFORM_PASS) {
		fprintf(f, "<skipped message=\"");
		conform_escape(f, k->verdict == DDPS_CONFORM_KNOWN && k->known ? k->known : k->why);
		fprintf(f, "\"/>");
	}
	fprintf(f, "</testcase>\n");
}

static void put_run_error(const struct conform_out *c, const char *error)
{
	fprintf(c->junit, "  <testcase classname=\"%s\" name=\"run\"><error message=\"",
		c->job->wire);
	conform_escape(c->junit, error);
	fputs("\">", c->junit);
	if (c->advice) {
		fputs("try: ", c->junit);
		conform_escape(c->junit, c->advice);
	}
	fputs("</error></testcase>\n", c->junit);
}

/* The octets of a file's head, whatever its numbers are. */
#define HEAD 320

static void put_junit_head(const struct conform_out *c, const char *error)
{
	const struct kept *k = &c->kept;
	size_t fail = 0, skip = 0;
	char head[HEAD];
	uint64_t ns = 0;

	for (size_t i = 0; i < k->n; i++) {
		fail += k->at[i].verdict == DDPS_CONFORM_FAIL;
		skip += k->at[i].verdict != DDPS_CONFORM_FAIL &&
			k->at[i].verdict != DDPS_CONFORM_PASS;
		ns += k->at[i].ns;
	}
	snprintf(head, sizeof head,
		 "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n"
		 "<testsuite name=\"ddpsess conformance %s\" tests=\"%zu\" failures=\"%zu\" "
		 "errors=\"%d\" skipped=\"%zu\" time=\"%.3f\"",
		 c->job->wire, k->n + (error != NULL), fail, error != NULL, skip, (double)ns / 1e9);
	fprintf(c->junit, "%-*s>\n", HEAD, head);
}

static void put_junit_tail(const struct conform_out *c, const char *error)
{
	if (error)
		put_run_error(c, error);
	fprintf(c->junit, "</testsuite>\n");
}

/* Whether what is written can be written over: into a file that nothing else of this program goes to. */
static bool is_junit_file(FILE *f)
{
	struct stat st, out;

	return !fstat(fileno(f), &st) && S_ISREG(st.st_mode) &&
	       (fstat(STDOUT_FILENO, &out) || out.st_dev != st.st_dev || out.st_ino != st.st_ino);
}

/* What is true of a file until the end. */
static void close_junit(const struct conform_out *c)
{
	static const char cut_off[] = "the run was cut off";

	put_junit_tail(c, cut_off);
	(void)fseek(c->junit, 0, SEEK_SET);
	put_junit_head(c, cut_off);
	fflush(c->junit);
}

void conform_junit_begin(struct conform_out *c)
{
	if (!is_junit_file(c->junit))
		return;
	put_junit_head(c, NULL);
	c->junit_at = ftell(c->junit);
	close_junit(c);
}

void conform_junit_case(struct conform_out *c, const struct kept_case *k)
{
	if (c->junit_at <= 0)
		return;
	(void)fseek(c->junit, c->junit_at, SEEK_SET);
	put_testcase(c->junit, c->job->wire, k);
	c->junit_at = ftell(c->junit);
	close_junit(c);
}

void conform_junit(const struct conform_out *c)
{
	const struct kept *k = &c->kept;
	const char *error = c->error		 ? c->error
			    : k->short_of_memory ? "too little memory: some cases are missing"
						 : NULL;

	if (c->junit_at > 0)
		(void)fseek(c->junit, 0, SEEK_SET);
	put_junit_head(c, error);
	for (size_t i = 0; i < k->n; i++)
		put_testcase(c->junit, c->job->wire, &k->at[i]);
	put_junit_tail(c, error);
	if (c->junit_at > 0 && !fflush(c->junit))
		(void)!ftruncate(fileno(c->junit), ftell(c->junit));
}
