/* SPDX-License-Identifier: BSD-2-Clause */
/* The JUnit report, and text as XML and HTML take it. */
#include "report/conform_in.h"
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

void conform_junit_begin(const struct conform_out *c)
{
	fprintf(c->junit,
		"<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n"
		"<testsuite name=\"ddpsess conformance %s\">\n",
		c->job->wire);
}

static void put_failure(FILE *f, const struct ddps_conform_result *r, const struct kept_case *k)
{
	char *text = NULL;
	size_t len;
	FILE *mem = k ? open_memstream(&text, &len) : NULL;

	fprintf(f, "<failure message=\"");
	conform_escape(f, r->why);
	fprintf(f, "\">");
	conform_escape(f, r->c.rule);
	fputc('\n', f);
	if (mem) {
		kept_print(mem, k, "", RULES);
		fclose(mem);
		conform_escape(f, text);
	}
	fprintf(f, "</failure>");
	free(text);
}

void conform_junit_case(const struct conform_out *c, const struct ddps_conform_result *r,
			const struct kept_case *k)
{
	FILE *f = c->junit;

	fprintf(f, "  <testcase classname=\"%s\" name=\"%s\" time=\"%.3f\">", c->job->wire,
		r->c.name, (double)r->ns / 1e9);
	if (r->verdict == DDPS_CONFORM_FAIL) {
		put_failure(f, r, k);
	} else if (r->verdict != DDPS_CONFORM_PASS) {
		fprintf(f, "<skipped message=\"");
		conform_escape(f, r->verdict == DDPS_CONFORM_KNOWN ? r->known : r->why);
		fprintf(f, "\"/>");
	}
	fprintf(f, "</testcase>\n");
}

void conform_junit_error(const struct conform_out *c)
{
	fprintf(c->junit, "  <testcase classname=\"%s\" name=\"run\"><error message=\"",
		c->job->wire);
	conform_escape(c->junit, c->error);
	fputs("\">", c->junit);
	if (c->advice) {
		fputs("try: ", c->junit);
		conform_escape(c->junit, c->advice);
	}
	fputs("</error></testcase>\n", c->junit);
}

void conform_junit_end(const struct conform_out *c)
{
	fprintf(c->junit, "</testsuite>\n");
}
