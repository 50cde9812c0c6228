/* SPDX-License-Identifier: BSD-2-Clause */
/* Results of the conformance suites as JSON lines: sessctl-json(5). */
#include "report/conform_in.h"
#include "report/rules.h"
#include "cli/out_json.h"
#include <jansson.h>

#define OCTETS 256u /* of an item */

static json_t *make_octets_json(const struct ddps_conform_result *r)
{
	json_t *all = json_array();

	for (const struct ddps_conform_item *i = r->first; i; i = i->next) {
		char hex[2 * OCTETS + 1];
		size_t n = i->len < OCTETS ? i->len : OCTETS;

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

static json_t *make_rules_json(const char *ids)
{
	json_t *all = json_array();
	char id[48], line[RULE_LINE];

	while (rules_next(&ids, id, sizeof id, line))
		json_array_append_new(all, json_pack("{s:s, s:s}", "id", id, "text", line));
	return all;
}

static void add_failure(json_t *j, const struct ddps_conform_result *r, const struct kept_case *k)
{
	json_object_set_new(j, "expected", json_string(r->expected ? r->expected : r->c.rule));
	json_object_set_new(j, "cause", json_string(cause_words(k ? k->cause : CAUSE_NONE)->name));
	json_object_set_new(j, "rules", make_rules_json(r->c.ids));
	if (k && k->talk)
		json_object_set_new(j, "talk", json_string(k->talk));
	json_object_set_new(j, "wire", make_octets_json(r));
}

void conform_json_case(const struct conform_out *c, const struct ddps_conform_result *r,
		       const struct kept_case *k)
{
	json_t *j =
		json_pack("{s:s, s:s, s:s, s:s, s:s, s:s, s:f}", "event", "case", "case", r->c.name,
			  "transport", c->wire, "result", conform_verdict(r->verdict), "ids",
			  r->c.ids, "rule", r->c.rule, "seconds", (double)r->ns / 1e9);

	if (r->verdict != DDPS_CONFORM_SKIP && r->verdict != DDPS_CONFORM_UNDECIDED)
		json_object_set_new(j, "grade", json_string(conform_grade(r->grade)));
	if (r->why[0])
		json_object_set_new(j, "why", json_string_nocheck(r->why));
	if (r->known)
		json_object_set_new(j, "known", json_string_nocheck(r->known));
	if (r->verdict == DDPS_CONFORM_FAIL)
		add_failure(j, r, k);
	json_out_object(stdout, j, JSON_PRESERVE_ORDER);
	putchar('\n');
	json_decref(j);
}

void conform_json_end(const struct conform_out *c, const struct ddps_conform_sum *sum)
{
	enum cause order[CAUSES];
	json_t *j = json_pack("{s:s, s:s, s:i, s:i, s:i, s:i, s:i, s:i, s:i, s:i, s:i}", "event",
			      "summary", "transport", c->wire, "pass", (int)sum->pass, "fail",
			      (int)sum->fail, "known", (int)sum->known, "skip", (int)sum->skip,
			      "undecided", (int)sum->undecided, "strict", (int)sum->grade[0],
			      "passes", (int)sum->grade[1], "harmless", (int)sum->grade[2], "fails",
			      (int)sum->grade[3]);
	json_t *causes = json_array();

	kept_causes(&c->kept, order);
	for (size_t i = 0; order[i]; i++)
		json_array_append_new(causes, json_pack("{s:s, s:i, s:s}", "cause",
							cause_words(order[i])->name, "cases",
							(int)c->kept.cause[order[i]], "text",
							cause_words(order[i])->text));
	json_object_set_new(j, "causes", causes);
	json_out_object(stdout, j, JSON_PRESERVE_ORDER);
	putchar('\n');
	json_decref(j);
}
