/* SPDX-License-Identifier: BSD-2-Clause */
/* The outputs of sessctl conform. */
#include "report/conform_out.h"
#include "cli/out_json.h"
#include "cli/safe.h"
#include "cli/text.h"
#include <errno.h>
#include <jansson.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define SHOWN 12 /* items of a failed case's trace */

static const char *const names[] = { "pass", "fail", "known", "skip", "undecided" };
static const char *const grades[] = { "strict", "passes", "harmless", "fails" };

static void print_file_advice(int sys_errno)
{
	const char *advice = text_file_advice(sys_errno);

	if (advice)
		fprintf(stderr, "  try: %s\n", advice);
}

static FILE *create_report(const struct conform_out *c, const char *name, const char *what)
{
	FILE *f = safe_create(name);

	if (!f) {
		fprintf(stderr, "%s: %s '%s': %s\n", c->command, what, name, strerror(errno));
		print_file_advice(errno);
	}
	return f;
}

int conform_out_begin(struct conform_out *c, const struct conform_out_opts *o, const char *command,
		      const char *wire)
{
	*c = (struct conform_out){ .o = *o, .command = command, .wire = wire };
	c->colour = !o->json && !o->tap && out_colours(STDOUT_FILENO);
	if (o->junit && !(c->junit = create_report(c, o->junit, "JUnit report")))
		return -1;
	if (o->pcap && !(c->pcap = create_report(c, o->pcap, "capture file")))
		return -1;
	if (c->junit)
		fprintf(c->junit,
			"<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n"
			"<testsuite name=\"ddpsess conformance %s\">\n",
			wire);
	if (c->pcap)
		(void)ddps_conform_pcap_begin(c->pcap); /* ferror() at the end says */
	if (o->tap)
		printf("TAP version 13\n");
	return 0;
}

static double get_result_seconds(const struct ddps_conform_result *r)
{
	return (double)r->ns / 1e9;
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

static void print_xml_trace(FILE *f, const struct ddps_conform_result *r)
{
	char *text = NULL;
	size_t len;
	FILE *mem = open_memstream(&text, &len);

	if (mem) {
		ddps_conform_print(mem, r, SHOWN, "");
		fclose(mem);
		xml(f, text);
	} else {
		fputs("(no memory for what came and went)\n", f);
	}
	free(text);
}

static void junit(const struct conform_out *c, const struct ddps_conform_result *r)
{
	FILE *f = c->junit;

	fprintf(f, "  <testcase classname=\"%s\" name=\"%s\" time=\"%.3f\">", c->wire, r->c.name,
		get_result_seconds(r));
	if (r->verdict == DDPS_CONFORM_FAIL) {
		fprintf(f, "<failure message=\"");
		xml(f, r->why);
		fprintf(f, "\">");
		xml(f, r->c.rule);
		fprintf(f, "\n");
		print_xml_trace(f, r);
		fprintf(f, "</failure>");
	} else if (r->verdict != DDPS_CONFORM_PASS) {
		fprintf(f, "<skipped message=\"");
		xml(f, r->verdict == DDPS_CONFORM_KNOWN ? r->known : r->why);
		fprintf(f, "\"/>");
	}
	fprintf(f, "</testcase>\n");
}

/* ---- standard output ---- */

static json_t *make_octets_json(const struct ddps_conform_result *r)
{
	json_t *all = json_array();

	for (const struct ddps_conform_item *i = r->first; i; i = i->next) {
		char hex[2 * 256 + 1];
		size_t n = i->len < 256 ? i->len : 256;

		for (size_t k = 0; k < n; k++)
			sprintf(hex + 2 * k, "%02x", i->octets[k]);
		hex[2 * n] = 0;
		json_array_append_new(all, json_pack("{s:s, s:f, s:i, s:s}", "by",
						     i->by_target ? "target" : "peer", "ms",
						     (double)i->ns / 1e6, "len", (int)i->len,
						     "octets", hex));
	}
	return all;
}

static void json_line(const struct conform_out *c, const struct ddps_conform_result *r)
{
	json_t *j = json_pack("{s:s, s:s, s:s, s:s, s:s, s:s, s:f}", "event", "case", "case",
			      r->c.name, "transport", c->wire, "result", names[r->verdict], "ids",
			      r->c.ids, "rule", r->c.rule, "seconds", get_result_seconds(r));

	if (r->verdict != DDPS_CONFORM_SKIP && r->verdict != DDPS_CONFORM_UNDECIDED)
		json_object_set_new(j, "grade", json_string(grades[r->grade]));
	if (r->why[0])
		json_object_set_new(j, "why", json_string_nocheck(r->why));
	if (r->known)
		json_object_set_new(j, "known", json_string_nocheck(r->known));
	if (r->verdict == DDPS_CONFORM_FAIL)
		json_object_set_new(j, "wire", make_octets_json(r));
	json_out_object(stdout, j, JSON_PRESERVE_ORDER);
	putchar('\n');
	json_decref(j);
}

static void print_tap(const struct ddps_conform_result *r)
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
	ddps_conform_print(stdout, r, SHOWN, "# ");
}

static void print_table_row(const struct conform_out *c, const struct ddps_conform_result *r)
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
	       : r->verdict == DDPS_CONFORM_KNOWN				       ? r->known
										       : r->c.rule);
	if (r->verdict == DDPS_CONFORM_PASS && r->known)
		printf("      the profile says otherwise: %s\n", r->known);
	if (r->verdict != DDPS_CONFORM_FAIL)
		return;
	if (r->grade == DDPS_CONFORM_PASSES)
		printf("      the session ends as it has to, but not in the way that the rule "
		       "says\n");
	printf("      %s\n      covers %s\n", r->why, r->c.ids);
	ddps_conform_print(stdout, r, SHOWN, "      ");
}

void conform_out_case(struct conform_out *c, const struct ddps_conform_result *told)
{
	struct ddps_conform_result clean = *told, *r = &clean;
	char why[1600], known[1600];

	/* parts of it may come from the target, or from a profile */
	text_clean(why, sizeof why, told->why, strlen(told->why));
	clean.why = why;
	if (told->known) {
		text_clean(known, sizeof known, told->known, strlen(told->known));
		clean.known = known;
	}
	if (c->o.json)
		json_line(c, r);
	else if (c->o.tap)
		print_tap(r);
	else
		print_table_row(c, r);
	if (c->junit)
		junit(c, r);
	if (c->pcap && (r->verdict == DDPS_CONFORM_FAIL || c->o.pcap_all))
		(void)ddps_conform_pcap_add(c->pcap, r);
}

static int close_file(const struct conform_out *c, FILE *f, const char *name)
{
	int bad = f && (fflush(f) || ferror(f));

	if (bad) {
		fprintf(stderr, "%s: '%s' could not be written: %s\n", c->command, name,
			strerror(errno));
		print_file_advice(errno);
	}
	if (f)
		fclose(f);
	return bad ? -1 : 0;
}

/* Nothing where all is strict: the line before says it. */
static void grade_line(const struct ddps_conform_sum *sum)
{
	const uint32_t *n = sum->grade;

	if (n[DDPS_CONFORM_PASSES] + n[DDPS_CONFORM_HARMLESS] + n[DDPS_CONFORM_FAILS])
		printf("grades: %u strict, %u passes, %u harmless, %u fails\n", n[0], n[1], n[2],
		       n[3]);
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
	if (c->o.json)
		printf("{\"event\":\"summary\",\"transport\":\"%s\",\"pass\":%u,\"fail\":%u,"
		       "\"known\":%u,\"skip\":%u,\"undecided\":%u,\"strict\":%u,\"passes\":%u,"
		       "\"harmless\":%u,"
		       "\"fails\":%u}\n",
		       c->wire, sum->pass, sum->fail, sum->known, sum->skip, sum->undecided,
		       sum->grade[0], sum->grade[1], sum->grade[2], sum->grade[3]);
	else if (c->o.tap)
		printf("1..%u\n", conform_out_count(sum));
	else
		printf("%u passed, %u failed, %u known, %u skipped%s over %s\n", sum->pass,
		       sum->fail, sum->known, sum->skip, undecided, c->wire);
	if (!c->o.json && !c->o.tap)
		grade_line(sum);
	if (c->junit)
		fprintf(c->junit, "</testsuite>\n");
	err |= close_file(c, c->junit, c->o.junit);
	err |= close_file(c, c->pcap, c->o.pcap);
	if (fflush(stdout) || ferror(stdout)) {
		fprintf(stderr, "%s: standard output: %s\n", c->command, strerror(errno));
		err = -1;
	}
	return err;
}
