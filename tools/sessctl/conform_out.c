/* SPDX-License-Identifier: BSD-2-Clause */
/* The outputs of sessctl conform. */
#include "sessctl/conform_out.h"
#include <errno.h>
#include <jansson.h>
#include <string.h>
#include <unistd.h>

#define SHOWN 12 /* items of a failed case's trace */

static const char *const names[CONFORM_NRESULT] = { "pass", "fail", "known", "skip" };

static FILE *create(const char *name, const char *what)
{
	FILE *f = fopen(name, "we");

	if (!f)
		fprintf(stderr, "sessctl conform: %s '%s': %s\n", what, name, strerror(errno));
	return f;
}

int conform_out_begin(struct conform_out *c, const struct opts *o, const char *wire)
{
	*c = (struct conform_out){ .o = o, .wire = wire };
	c->colour = isatty(STDOUT_FILENO) && !o->json && !o->tap;
	if (o->junit && !(c->junit = create(o->junit, "JUnit report")))
		return -1;
	if (o->pcap && !(c->pcap = create(o->pcap, "capture file")))
		return -1;
	if (c->junit)
		fprintf(c->junit,
			"<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n"
			"<testsuite name=\"ddpsess conformance %s\">\n",
			wire);
	if (c->pcap)
		cf_pcap_begin(c->pcap);
	if (o->tap)
		printf("TAP version 13\n");
	return 0;
}

/* ---- JUnit ---- */

static void xml(FILE *f, const char *s)
{
	for (; *s; s++)
		switch (*s) {
		case '<':
			fputs("&lt;", f);
			break;
		case '&':
			fputs("&amp;", f);
			break;
		case '"':
			fputs("&quot;", f);
			break;
		default:
			if ((unsigned char)*s >= ' ' || *s == '\n')
				fputc(*s, f);
		}
}

static void junit(const struct conform_out *c, const struct cf_case *cs, enum conform_result res,
		  const struct cf_result *r, const char *known, double seconds)
{
	FILE *f = c->junit;

	fprintf(f, "  <testcase classname=\"%s\" name=\"%s\" time=\"%.3f\">", c->wire, cs->name,
		seconds);
	if (res == CONFORM_FAIL) {
		fprintf(f, "<failure message=\"");
		xml(f, r->why);
		fprintf(f, "\">");
		xml(f, cs->rule);
		fprintf(f, "\n");
		cf_trace_print(f, r->trace, SHOWN, "");
		fprintf(f, "</failure>");
	} else if (res != CONFORM_PASS) {
		fprintf(f, "<skipped message=\"");
		xml(f, res == CONFORM_KNOWN ? known : r->why);
		fprintf(f, "\"/>");
	}
	fprintf(f, "</testcase>\n");
}

/* ---- standard output ---- */

static json_t *octets(const struct cf_trace *t)
{
	json_t *all = json_array();

	for (const struct cf_trace_item *i = t->first; i; i = i->next) {
		char hex[2 * 256 + 1];
		size_t n = i->len < 256 ? i->len : 256;

		for (size_t k = 0; k < n; k++)
			sprintf(hex + 2 * k, "%02x", i->b[k]);
		hex[2 * n] = 0;
		json_array_append_new(all, json_pack("{s:s, s:f, s:i, s:s}", "by",
						     i->by_target ? "target" : "peer", "ms",
						     (double)i->ns / 1e6, "len", (int)i->len,
						     "octets", hex));
	}
	return all;
}

static void json_line(const struct conform_out *c, const struct cf_case *cs,
		      enum conform_result res, const struct cf_result *r, const char *known,
		      double seconds)
{
	json_t *j = json_pack("{s:s, s:s, s:s, s:s, s:s, s:s, s:f}", "event", "case", "case",
			      cs->name, "transport", c->wire, "result", names[res], "ids", cs->ids,
			      "rule", cs->rule, "seconds", seconds);

	if (r->why[0])
		json_object_set_new(j, "why", json_string_nocheck(r->why));
	if (known)
		json_object_set_new(j, "known", json_string_nocheck(known));
	if (res == CONFORM_FAIL)
		json_object_set_new(j, "wire", octets(r->trace));
	json_dumpf(j, stdout, JSON_COMPACT | JSON_PRESERVE_ORDER);
	putchar('\n');
	json_decref(j);
}

static void tap(const struct conform_out *c, const struct cf_case *cs, enum conform_result res,
		const struct cf_result *r, const char *known)
{
	printf("%s %u - %s: %s", r->verdict == CF_FAIL ? "not ok" : "ok", c->number, cs->name,
	       cs->rule);
	if (res == CONFORM_KNOWN)
		printf(" # TODO known of this target: %s", known);
	if (res == CONFORM_SKIP)
		printf(" # SKIP %s", r->why);
	putchar('\n');
	if (res != CONFORM_FAIL)
		return;
	printf("# %s [%s]\n", r->why, cs->ids);
	cf_trace_print(stdout, r->trace, SHOWN, "# ");
}

static void table(const struct conform_out *c, const struct cf_case *cs, enum conform_result res,
		  const struct cf_result *r, const char *known)
{
	const char *on = "", *off = c->colour ? "\033[0m" : "";

	if (c->colour)
		on = res == CONFORM_FAIL ? "\033[31m" : res == CONFORM_PASS ? "\033[32m" : off;
	printf("%s%-5s%s %-34s %s\n", on, res == CONFORM_FAIL ? "FAIL" : names[res], off, cs->name,
	       res == CONFORM_SKIP    ? r->why
	       : res == CONFORM_KNOWN ? known
				      : cs->rule);
	if (res == CONFORM_PASS && known)
		printf("      the profile says otherwise: %s\n", known);
	if (res != CONFORM_FAIL)
		return;
	printf("      %s\n      covers %s\n", r->why, cs->ids);
	cf_trace_print(stdout, r->trace, SHOWN, "      ");
}

void conform_out_case(struct conform_out *c, const struct cf_case *cs, const struct cf_result *r,
		      const char *known, double seconds)
{
	enum conform_result res = r->verdict == CF_PASS	  ? CONFORM_PASS
				  : r->verdict == CF_SKIP ? CONFORM_SKIP
				  : known		  ? CONFORM_KNOWN
							  : CONFORM_FAIL;

	c->number++;
	c->count[res]++;
	if (c->o->json)
		json_line(c, cs, res, r, known, seconds);
	else if (c->o->tap)
		tap(c, cs, res, r, known);
	else
		table(c, cs, res, r, known);
	if (c->junit)
		junit(c, cs, res, r, known, seconds);
	if (c->pcap && res == CONFORM_FAIL)
		cf_pcap_add(c->pcap, r->trace, (uint16_t)(20000 + 16 * (c->number % 2500)));
}

static int close_file(FILE *f, const char *name)
{
	int bad = f && (fflush(f) || ferror(f));

	if (bad)
		fprintf(stderr, "sessctl conform: '%s' could not be written: %s\n", name,
			strerror(errno));
	if (f)
		fclose(f);
	return bad ? -1 : 0;
}

int conform_out_end(struct conform_out *c)
{
	int err = 0;

	if (c->o->json)
		printf("{\"event\":\"summary\",\"transport\":\"%s\",\"pass\":%u,\"fail\":%u,"
		       "\"known\":%u,\"skip\":%u}\n",
		       c->wire, c->count[0], c->count[1], c->count[2], c->count[3]);
	else if (c->o->tap)
		printf("1..%u\n", c->number);
	else
		printf("%u passed, %u failed, %u known, %u skipped over %s\n",
		       c->count[CONFORM_PASS], c->count[CONFORM_FAIL], c->count[CONFORM_KNOWN],
		       c->count[CONFORM_SKIP], c->wire);
	if (c->junit)
		fprintf(c->junit, "</testsuite>\n");
	err |= close_file(c->junit, c->o->junit);
	err |= close_file(c->pcap, c->o->pcap);
	if (fflush(stdout) || ferror(stdout)) {
		perror("sessctl conform: standard output");
		err = -1;
	}
	return err;
}
