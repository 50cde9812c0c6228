/* SPDX-License-Identifier: BSD-2-Clause */
#include "report/kept.h"
#include "report/rules.h"
#include <stdlib.h>
#include <string.h>

#define SHOWN 12 /* messages of a failed case */

static char *copy_text(const char *s)
{
	return s ? strdup(s) : NULL;
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
	c->expected = copy_text(r->expected ? r->expected : r->c.rule);
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
	free(k->at);
	*k = (struct kept){ 0 };
}

/* ---- all of them ---- */

static const char *find_title(const char *name)
{
	static const char *const titles[][2] = {
		{ "mpa", "set-up and framing over TCP (RFC 5044)" },
		{ "neg", "IRD, ORD, peer to peer (RFC 6581)" },
		{ "sctp", "sessions over SCTP (RFC 5043)" },
		{ "assoc", "SCTP itself (RFC 9260)" },
		{ "ddp", "where data goes: DDP (RFC 5041)" },
		{ "rdmap", "messages: RDMAP (RFC 5040)" },
		{ "rfc7306", "atomics, Immediate Data (RFC 7306)" },
		{ "relay", "what a network may do on the way" },
		{ "arp", "ARP over IPoIB (RFC 4391)" },
		{ "nd", "neighbour discovery (RFC 4391)" },
		{ "ud", "datagram mode (RFC 4391)" },
		{ "link", "the link and its groups (RFC 4391)" },
		{ "cm", "connections, the target answers (RFC 4755)" },
		{ "req", "connections, the target asks (RFC 4755)" },
		{ "cross", "connections from both sides" },
		{ "end", "ends of connections" },
		{ "rc", "data over a connection" },
	};

	for (size_t i = 0; i < sizeof titles / sizeof *titles; i++)
		if (!strcmp(titles[i][0], name))
			return titles[i][1];
	return NULL;
}

size_t kept_areas(const struct kept *k, struct kept_area *areas, size_t max)
{
	size_t n = 0;

	for (size_t i = 0; i < k->n; i++) {
		const struct kept_case *c = &k->at[i];
		char name[sizeof areas->name];
		size_t a = 0;

		snprintf(name, sizeof name, "%.*s", (int)strcspn(c->c.name, "-"), c->c.name);
		while (a < n && strcmp(areas[a].name, name) != 0)
			a++;
		if (a == max)
			continue;
		if (a == n) {
			areas[n] = (struct kept_area){ .title = find_title(name) };
			memcpy(areas[n++].name, name, sizeof name);
		}
		areas[a].verdict[c->verdict]++;
		if (c->verdict != DDPS_CONFORM_SKIP && c->verdict != DDPS_CONFORM_UNDECIDED)
			areas[a].grade[c->grade]++;
	}
	return n;
}

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
	fprintf(f, "%sexpected  %s\n", indent, c->expected ? c->expected : c->c.rule);
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
