/* SPDX-License-Identifier: BSD-2-Clause */
#include "report/kept.h"
#include "report/causes.h"
#include <stdlib.h>
#include <string.h>

#define SHOWN 12 /* messages of a failed case */

static char *copy_text(const char *s)
{
	return s ? strdup(s) : NULL;
}

static struct kept_area *find_area(struct kept *k, const struct ddps_conform_case *c)
{
	size_t len = strcspn(c->name, "-");
	struct kept_area *more;

	for (size_t i = 0; i < k->areas; i++)
		if (strlen(k->area[i].name) == len && !strncmp(k->area[i].name, c->name, len))
			return &k->area[i];
	more = realloc(k->area, (k->areas + 1) * sizeof *more);
	if (!more)
		return NULL;
	k->area = more;
	more += k->areas;
	*more = (struct kept_area){ .name = strndup(c->name, len), .title = c->area };
	k->areas += more->name != NULL;
	return more->name ? more : NULL;
}

static void count_in_area(struct kept *k, const struct ddps_conform_result *r)
{
	struct kept_area *a = find_area(k, &r->c);

	k->short_of_memory |= !a;
	if (!a)
		return;
	a->verdict[r->verdict]++;
	if (r->verdict != DDPS_CONFORM_SKIP && r->verdict != DDPS_CONFORM_UNDECIDED)
		a->grade[r->grade]++;
}

static void describe_failure(struct kept_case *c, const struct ddps_conform_result *r)
{
	struct decode_found found = { 0 };
	size_t len;
	FILE *mem = open_memstream(&c->talk, &len);

	if (mem) {
		decode_talk(mem, r, SHOWN, "", &found);
		fclose(mem);
	}
	c->cause = cause_of(r, &found);
	c->expected = r->expected ? copy_text(r->expected) : NULL;
}

const struct kept_case *kept_add(struct kept *k, const struct ddps_conform_result *r)
{
	struct kept_case *more = realloc(k->at, (k->n + 1) * sizeof *more), *c;

	if (!more) {
		k->short_of_memory = true;
		return NULL;
	}
	k->at = more;
	c = &k->at[k->n++];
	*c = (struct kept_case){ .c = r->c, .verdict = r->verdict, .grade = r->grade, .ns = r->ns };
	c->why = copy_text(r->why);
	c->known = copy_text(r->known);
	if (r->verdict == DDPS_CONFORM_FAIL) {
		describe_failure(c, r);
		k->cause[c->cause]++;
	}
	if (!c->why) {
		k->n--;
		free(c->known);
		free(c->talk);
		free(c->expected);
		k->short_of_memory = true;
		return NULL;
	}
	count_in_area(k, r);
	return c;
}

void kept_free(struct kept *k)
{
	for (size_t i = 0; i < k->n; i++) {
		free(k->at[i].why);
		free(k->at[i].known);
		free(k->at[i].expected);
		free(k->at[i].talk);
	}
	for (size_t i = 0; i < k->areas; i++)
		free(k->area[i].name);
	free(k->area);
	free(k->at);
	*k = (struct kept){ 0 };
}

/* ---- all of them ---- */

void kept_causes(const struct kept *k, enum cause order[CAUSES])
{
	size_t n = 0;

	for (enum cause c = CAUSE_NONE + 1; c < CAUSES; c++) {
		size_t at = n;

		if (k->cause[c] < 2)
			continue;
		while (at && k->cause[order[at - 1]] < k->cause[c]) {
			order[at] = order[at - 1];
			at--;
		}
		order[at] = c;
		n++;
	}
	order[n] = CAUSE_NONE;
}

uint32_t kept_idle_passes(const struct kept *k, const enum cause *order)
{
	uint32_t idle = 0, fail = 0, pass = 0;

	for (size_t i = 0; order[i]; i++)
		idle += cause_refuses_all(order[i]) ? k->cause[order[i]] : 0;
	for (size_t i = 0; i < k->n; i++) {
		pass += k->at[i].verdict == DDPS_CONFORM_PASS;
		fail += k->at[i].verdict == DDPS_CONFORM_FAIL;
	}
	return idle > fail / 2 && pass < fail ? pass : 0;
}

/* ---- one of them ---- */

static void print_kept_lines(FILE *f, const char *text, const char *indent)
{
	while (*text) {
		size_t n = strcspn(text, "\n");

		fprintf(f, "%s%.*s\n", indent, (int)n, text);
		text += n + (text[n] == '\n');
	}
}

void kept_print(FILE *f, const struct kept_case *c, const char *indent, size_t rules)
{
	const char *ids = c->c.ids;
	char line[RULE_LINE], id[48];
	size_t left = 0;

	while (rules_next(&ids, id, sizeof id, line)) {
		if (rules)
			fprintf(f, "%srule      %s\n", indent, line);
		else
			left++;
		rules -= rules > 0;
	}
	if (left)
		fprintf(f, "%s          and %zu more: covers %s\n", indent, left, c->c.ids);
	if (c->expected) /* else it is what the case is called, above */
		fprintf(f, "%sexpected  %s\n", indent, c->expected);
	fprintf(f, "%scame      %s\n", indent, c->why);
	if (c->grade == DDPS_CONFORM_PASSES)
		fprintf(f,
			"%s          the session ends as it has to, but not in the way that the "
			"rule "
			"says\n",
			indent);
	rules_print_codes(f, c->c.rule, indent);
	if (c->cause)
		fprintf(f, "%slikely    %s\n", indent, cause_words(c->cause)->text);
	print_kept_lines(f, c->talk ? c->talk : "(no memory for what came and went)", indent);
}
