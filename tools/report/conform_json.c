/* SPDX-License-Identifier: BSD-2-Clause */
/* Results of the conformance suites as JSON lines: sessctl-json(5). */
#include "report/conform_out.h"
#include "report/causes.h"
#include "cli/out/out_json.h"
#include <jansson.h>

#define OCTETS 256u /* of an item */

/* jansson takes NULL for what did not fit into memory, and says so: *@bad. */
static void add_json(json_t *j, const char *key, json_t *value, bool *bad)
{
	*bad |= json_object_set_new(j, key, value) != 0;
}

static void write_json_line(struct conform_out *c, json_t *j, bool bad)
{
	if (!j || bad || json_out_object(stdout, j, JSON_PRESERVE_ORDER)) {
		if (!ferror(stdout) && !c->lost) /* which the end says */
			fprintf(stderr,
				"%s: an event could not be written as JSON: out of memory\n",
				c->job->command);
		c->lost = true;
	}
	putchar('\n');
	json_decref(j);
}

static json_t *make_octets_json(const struct ddps_conform_result *r, bool *bad)
{
	json_t *all = json_array();

	for (const struct ddps_conform_item *i = r->first; i; i = i->next) {
		char hex[2 * OCTETS + 1];
		size_t n = i->len < OCTETS ? i->len : OCTETS;

		for (size_t k = 0; k < n; k++)
			sprintf(hex + 2 * k, "%02x", i->octets[k]);
		hex[2 * n] = 0;
		*bad |= json_array_append_new(all, json_pack("{s:s, s:f, s:i, s:s}", "by",
							     i->by_target ? "target" : "peer", "ms",
							     (double)i->ns / 1e6, "len",
							     (int)i->len, "octets", hex)) != 0;
	}
	return all;
}

static json_t *make_rules_json(const char *ids, bool *bad)
{
	json_t *all = json_array();
	char id[48], line[RULE_LINE];

	while (rules_next(&ids, id, sizeof id, line))
		*bad |= json_array_append_new(all,
					      json_pack("{s:s, s:s}", "id", id, "text", line)) != 0;
	return all;
}

static void add_failure(json_t *j, const struct ddps_conform_result *r, const struct kept_case *k,
			bool *bad)
{
	add_json(j, "expected", json_string(r->expected ? r->expected : r->c.rule), bad);
	add_json(j, "cause", json_string(cause_words(k ? k->cause : CAUSE_NONE)->name), bad);
	add_json(j, "rules", make_rules_json(r->c.ids, bad), bad);
	if (k && k->talk)
		add_json(j, "talk", json_string(k->talk), bad);
	add_json(j, "wire", make_octets_json(r, bad), bad);
}

void conform_json_case(struct conform_out *c, const struct ddps_conform_result *r,
		       const struct kept_case *k)
{
	json_t *j =
		json_pack("{s:s, s:s, s:s, s:s, s:s, s:s, s:f}", "event", "case", "case", r->c.name,
			  "transport", c->job->wire, "result", conform_verdict(r->verdict), "ids",
			  r->c.ids, "rule", r->c.rule, "seconds", (double)r->ns / 1e9);
	bool bad = false;

	if (r->verdict != DDPS_CONFORM_SKIP && r->verdict != DDPS_CONFORM_UNDECIDED)
		add_json(j, "grade", json_string(conform_grade(r->grade)), &bad);
	if (r->why[0])
		add_json(j, "why", json_string_nocheck(r->why), &bad);
	if (r->known)
		add_json(j, "known", json_string_nocheck(r->known), &bad);
	if (r->verdict == DDPS_CONFORM_FAIL)
		add_failure(j, r, k, &bad);
	write_json_line(c, j, bad);
}

void conform_json_error(struct conform_out *c, int err)
{
	json_t *j = json_pack("{s:s, s:s, s:s}", "event", "error", "code", out_error_name(err),
			      "message", c->error);
	bool bad = false;

	if (c->advice)
		add_json(j, "try", json_string(c->advice), &bad);
	write_json_line(c, j, bad);
}

void conform_json_end(struct conform_out *c, const struct ddps_conform_sum *sum)
{
	enum cause order[CAUSES];
	json_t *j = json_pack("{s:s, s:s, s:i, s:i, s:i, s:i, s:i, s:i, s:i, s:i, s:i}", "event",
			      "summary", "transport", c->job->wire, "pass", (int)sum->pass, "fail",
			      (int)sum->fail, "known", (int)sum->known, "skip", (int)sum->skip,
			      "undecided", (int)sum->undecided, "strict", (int)sum->grade[0],
			      "passes", (int)sum->grade[1], "harmless", (int)sum->grade[2], "fails",
			      (int)sum->grade[3]);
	json_t *causes = json_array();
	bool bad = false;

	kept_causes(&c->kept, order);
	for (size_t i = 0; order[i]; i++)
		bad |= json_array_append_new(causes, json_pack("{s:s, s:i, s:s}", "cause",
							       cause_words(order[i])->name, "cases",
							       (int)c->kept.cause[order[i]], "text",
							       cause_words(order[i])->text)) != 0;
	add_json(j, "causes", causes, &bad);
	write_json_line(c, j, bad);
}
