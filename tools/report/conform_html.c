/* SPDX-License-Identifier: BSD-2-Clause */
/* The report as one page of HTML that needs nothing else: no script, no file, no network. */
#include "report/conform_out.h"
#include "report/causes.h"
#include <stdlib.h>
#include <string.h>

static const char head[] =
	"<!DOCTYPE html>\n"
	"<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n"
	"<meta http-equiv=\"Content-Security-Policy\" content=\"default-src 'none'; style-src "
	"'unsafe-inline'\">\n"
	"<meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n"
	"<title>Conformance report</title>\n<style>\n"
	":root{color-scheme:light dark;--line:#8886;--bad:#c22626;--good:#217a36;--soft:#8882}\n"
	"@media(prefers-color-scheme:dark){:root{--bad:#ff7b72;--good:#56d364}}\n"
	"body{font:1rem/1.5 system-ui,sans-serif;max-width:68rem;margin:0 auto;padding:1rem;"
	"overflow-wrap:anywhere}\n"
	"h1{font-size:1.6rem;margin:.5rem 0}h2{font-size:1.2rem;margin:2rem 0 .5rem}\n"
	".scroll{overflow-x:auto}table{border-collapse:collapse;width:100%}\n"
	"th{overflow-wrap:normal}th,td{padding:.3rem .6rem;border-bottom:1px solid "
	"var(--line);text-align:left;"
	"vertical-align:top}\n"
	"td "
	"code{white-space:nowrap}td.n,th.n{text-align:right;overflow-wrap:normal;font-variant-"
	"numeric:tabular-nums}\n"
	".bad{color:var(--bad);font-weight:600}.good{color:var(--good)}.dim{opacity:.75}\n"
	".cause{border-left:.3rem solid var(--bad);background:var(--soft);padding:.5rem 1rem;"
	"margin:.7rem 0}.cause p{margin:.3rem 0}\n"
	"details{border-bottom:1px solid var(--line);padding:.4rem 0}summary{cursor:pointer}\n"
	"dl{margin:.5rem 0 .5rem 1rem}dt{font-weight:600}dd{margin:0 0 .5rem 1rem}\n"
	"pre{overflow-x:auto;background:var(--soft);padding:.6rem;font-size:.85rem;"
	"overflow-wrap:normal;white-space:pre-wrap}\n"
	"code{font-size:.95em}\n"
	"@media(max-width:40rem){th,td{padding:.25rem "
	".3rem;font-size:.9rem}dl,dd{margin-left:.3rem}"
	".wide{display:none}}\n"
	"</style>\n</head>\n<body>\n";

static void put_count(FILE *f, uint32_t n, const char *class)
{
	fprintf(f, "<td class=\"n %s\">%u</td>", n ? class : "dim", n);
}

static void put_areas(FILE *f, const struct kept *k)
{
	const struct kept_area *a = k->area;

	fputs("<h2>By area</h2>\n<div class=\"scroll\"><table>\n<tr><th>area</th><th "
	      "class=\"n\">strict</th><th class=\"n\">passes</th><th class=\"n\">harmless</th><th "
	      "class=\"n\">fails</th><th class=\"n\">not run</th></tr>\n",
	      f);
	for (size_t i = 0; i < k->areas; i++) {
		fprintf(f, "<tr><td><code>%s</code>", a[i].name);
		if (a[i].title)
			fprintf(f, "<span class=\"wide\"> %s</span>", a[i].title);
		fputs("</td>", f);
		put_count(f, a[i].grade[DDPS_CONFORM_STRICT], "good");
		put_count(f, a[i].grade[DDPS_CONFORM_PASSES], "");
		put_count(f, a[i].grade[DDPS_CONFORM_HARMLESS], "");
		put_count(f, a[i].grade[DDPS_CONFORM_FAILS], "bad");
		put_count(f, a[i].verdict[DDPS_CONFORM_SKIP] + a[i].verdict[DDPS_CONFORM_UNDECIDED],
			  "dim");
		fputs("</tr>\n", f);
	}
	fputs("</table></div>\n<p class=\"dim\">strict: to the octet as the RFC says; only "
	      "these are counted as passed. passes: what the rule is for holds, in another way. "
	      "harmless: something else happens that harms "
	      "no correct peer. fails: anything else. not run: needs what this target or this way "
	      "of testing does not have, or the host was too busy to judge.</p>\n",
	      f);
}

static void put_causes(FILE *f, const struct kept *k)
{
	enum cause order[CAUSES];
	uint32_t idle;

	kept_causes(k, order);
	if (order[0])
		fputs("<h2>Likely causes</h2>\n", f);
	for (size_t i = 0; order[i]; i++)
		fprintf(f, "<div class=\"cause\"><p><b>%s: %u cases</b></p><p>%s</p></div>\n",
			cause_words(order[i])->text, k->cause[order[i]],
			cause_words(order[i])->tell);
	idle = kept_idle_passes(k, order);
	if (idle)
		fprintf(f, "<p><b>%u passed nevertheless:</b> " KEPT_IDLE_WORDS ".</p>\n", idle);
}

static void put_rules(FILE *f, const char *ids)
{
	char id[48], line[RULE_LINE];

	fputs("<dt>Rules</dt>", f);
	while (rules_next(&ids, id, sizeof id, line)) {
		fputs("<dd>", f);
		conform_escape(f, line);
		fprintf(f, " <code class=\"dim\">%s</code></dd>", id);
	}
}

static void put_member(FILE *f, const char *name, const char *text)
{
	fprintf(f, "<dt>%s</dt><dd>", name);
	conform_escape(f, text);
	fputs("</dd>\n", f);
}

static void put_codes(FILE *f, const char *rule)
{
	char *text = NULL;
	size_t len = 0;
	FILE *mem = open_memstream(&text, &len);

	if (!mem)
		return;
	rules_print_codes(mem, rule, "");
	fclose(mem);
	if (len)
		put_member(f, "In words", text);
	free(text);
}

static void put_failed_case(FILE *f, const struct kept_case *c, bool open)
{
	fprintf(f,
		"<details id=\"%s\"%s><summary><span class=\"bad\">failed</span> (grade: %s) "
		"<code>%s</code> ",
		c->c.name, open ? " open" : "", conform_grade(c->grade), c->c.name);
	conform_escape(f, c->c.rule);
	fputs("</summary>\n<dl>", f);
	if (c->expected) /* else it is the summary */
		put_member(f, "Expected", c->expected);
	put_member(f, "What came", c->why);
	put_codes(f, c->c.rule);
	if (c->cause)
		put_member(f, "Likely cause", cause_words(c->cause)->text);
	put_rules(f, c->c.ids);
	fputs("</dl>\n<pre>", f);
	conform_escape(f, c->talk ? c->talk : "(no memory for what came and went)");
	fputs("</pre></details>\n", f);
}

static void put_other_cases(FILE *f, const struct kept *k, uint32_t verdict, const char *title)
{
	bool any = false;

	for (size_t i = 0; i < k->n; i++) {
		const struct kept_case *c = &k->at[i];

		if (c->verdict != verdict)
			continue;
		if (!any)
			fprintf(f, "<h2>%s</h2>\n<details><summary>show</summary><table>\n", title);
		any = true;
		fprintf(f, "<tr><td><code>%s</code></td><td>", c->c.name);
		conform_escape(f, c->c.rule);
		if (verdict == DDPS_CONFORM_KNOWN || *c->why) {
			fputs("<br><span class=\"dim\">", f);
			conform_escape(f, verdict == DDPS_CONFORM_KNOWN && c->known ? c->known
										    : c->why);
			fputs("</span>", f);
		}
		fputs("</td></tr>\n", f);
	}
	if (any)
		fputs("</table></details>\n", f);
}

void conform_html(const struct conform_out *c, FILE *f, const char *error)
{
	const uint32_t *n = c->verdict;

	fputs(head, f);
	fprintf(f, "<h1>%s conformance report</h1>\n<p>Target: <code>",
		!strcmp(c->job->wire, "ib") ? "IPoIB" : "iWARP");
	conform_escape(f, c->job->target);
	fprintf(f,
		"</code><br><span class=\"good\">%u passed</span>, <span class=\"%s\">%u "
		"failed</span>, %u known, %u skipped, %u undecided</p>\n",
		n[DDPS_CONFORM_PASS], n[DDPS_CONFORM_FAIL] ? "bad" : "good", n[DDPS_CONFORM_FAIL],
		n[DDPS_CONFORM_KNOWN], n[DDPS_CONFORM_SKIP], n[DDPS_CONFORM_UNDECIDED]);
	if (error) {
		fputs("<p class=\"bad\">Not all cases were run: ", f);
		conform_escape(f, error);
		fputs("<br>Try: ", f);
		conform_escape(f, c->advice ? c->advice : "run them again");
		fputs("</p>\n", f);
	}
	if (!n[DDPS_CONFORM_PASS] && !n[DDPS_CONFORM_FAIL] && !n[DDPS_CONFORM_KNOWN])
		fputs("<p class=\"bad\">Nothing was tested.</p>\n", f);
	if (c->kept.short_of_memory)
		fputs("<p class=\"bad\">There was too little memory for some cases, which are "
		      "missing below.</p>\n",
		      f);
	if (c->kept.n)
		put_areas(f, &c->kept);
	put_causes(f, &c->kept);
	if (n[DDPS_CONFORM_FAIL])
		fputs("<h2>What failed</h2>\n", f);
	for (size_t i = 0, failed = 0; i < c->kept.n; i++)
		if (c->kept.at[i].verdict == DDPS_CONFORM_FAIL)
			put_failed_case(f, &c->kept.at[i], !failed++);
	put_other_cases(f, &c->kept, DDPS_CONFORM_KNOWN, "Known of this target");
	put_other_cases(f, &c->kept, DDPS_CONFORM_UNDECIDED, "Undecided");
	put_other_cases(f, &c->kept, DDPS_CONFORM_PASS, "Passed");
	put_other_cases(f, &c->kept, DDPS_CONFORM_SKIP, "Skipped");
	fputs("</body>\n</html>\n", f);
}
