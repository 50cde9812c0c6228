/* SPDX-License-Identifier: BSD-2-Clause */
/* The JUnit report, and text as XML and HTML take it. */
#include "report/conform_out.h"
#include <stdlib.h>
#include <string.h>

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

static void put_run_error(const struct conform_out *c, FILE *f, const char *error)
{
	fprintf(f, "  <testcase classname=\"%s\" name=\"run\"><error message=\"", c->job->wire);
	conform_escape(f, error);
	fputs("\">", f);
	if (c->advice) {
		fputs("try: ", f);
		conform_escape(f, c->advice);
	}
	fputs("</error></testcase>\n", f);
}

void conform_junit(const struct conform_out *c, FILE *f, const char *error)
{
	const struct kept *k = &c->kept;
	size_t fail = 0, skip = 0;
	uint64_t ns = 0;

	for (size_t i = 0; i < k->n; i++) {
		fail += k->at[i].verdict == DDPS_CONFORM_FAIL;
		skip += k->at[i].verdict != DDPS_CONFORM_FAIL &&
			k->at[i].verdict != DDPS_CONFORM_PASS;
		ns += k->at[i].ns;
	}
	if (!error && k->short_of_memory)
		error = "too little memory: some cases are missing";
	fprintf(f,
		"<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n"
		"<testsuite name=\"ddpsess conformance %s\" tests=\"%zu\" failures=\"%zu\" "
		"errors=\"%d\" skipped=\"%zu\" time=\"%.3f\">\n",
		c->job->wire, k->n + (error != NULL), fail, error != NULL, skip, (double)ns / 1e9);
	for (size_t i = 0; i < k->n; i++)
		put_testcase(f, c->job->wire, &k->at[i]);
	if (error)
		put_run_error(c, f, error);
	fprintf(f, "</testsuite>\n");
}
