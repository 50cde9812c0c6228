/* SPDX-License-Identifier: BSD-2-Clause */
/* Lists of patterns. */
#include "secure/creds/list.h"
#include "secure/creds/file.h"
#include <ddpsess/err_codes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define LIST_MAX 65536

/* A place behind the last; memory doubles. */
static struct ddps_rule *add_rule(struct ddps_list *l, char *why, size_t why_len)
{
	struct ddps_rule *more;

	if (l->n == LIST_MAX) {
		snprintf(why, why_len, "has more than %d rules", LIST_MAX);
		return NULL;
	}
	if (!(l->n & (l->n - 1))) {
		more = realloc(l->rule, sizeof *more * (l->n ? 2 * (size_t)l->n : 1));
		if (!more) {
			snprintf(why, why_len, "needs memory that is not there");
			return NULL;
		}
		l->rule = more;
	}
	l->rule[l->n] = (struct ddps_rule){ .allow = false };
	return &l->rule[l->n++];
}

/* Cut the next word off. */
static char *cut_word(char **at)
{
	char *word = *at + strspn(*at, " \t"), *end = word + strcspn(word, " \t");

	*at = *end ? end + 1 : end;
	*end = 0;
	return word;
}

/* What is left of the line, which may have blanks in it: an issuer has. */
static char *cut_rest(char *at)
{
	return at + strspn(at, " \t");
}

static int at_line(char *why, size_t why_len, unsigned line, const char *what)
{
	snprintf(why, why_len, "line %u: %s", line, what);
	return DDPS_E_CONFIG;
}

int ddps_list_rules(struct ddps_list *l, char *text, char *why, size_t why_len)
{
	unsigned number = 0;
	char *line, said[160];

	*l = (struct ddps_list){ .rule = NULL };
	while ((line = ddps_file_line(&text, &number))) {
		struct ddps_rule *r = add_rule(l, why, why_len);
		char *word = cut_word(&line), *kind = cut_word(&line);
		int err;

		if (!r)
			return DDPS_E_CONFIG;
		r->line = number;
		r->allow = !strcmp(word, "allow");
		if (!r->allow && strcmp(word, "deny") != 0)
			return at_line(why, why_len, number,
				       "a rule is 'allow KIND VALUE' or 'deny KIND VALUE'");
		err = ddps_pattern_parse(&r->pat, kind, cut_rest(line), said, sizeof said);
		if (err)
			return at_line(why, why_len, number, said);
		if (!r->allow && r->pat.kind == DDPS_NAME_FP) /* s and n - s of ECDSA are as good */
			return at_line(
				why, why_len, number,
				"'deny fp' keeps nobody out: whoever has the key can give the "
				"certificate another fingerprint. Deny a name, or revoke it");
		r->pat.denies = !r->allow;
	}
	return 0;
}

/* "KIND:VALUE", or a host; a colon is in IPv6 addresses, too. */
static int take_peer(struct ddps_pattern *pat, char *text, char *why, size_t why_len)
{
	static const char *const kinds[] = { "dns", "ip", "uri", "uri-prefix", "fp", "psk" };
	char *colon = strchr(text, ':');

	for (size_t i = 0; colon && i < sizeof kinds / sizeof *kinds; i++)
		if (strlen(kinds[i]) == (size_t)(colon - text) &&
		    !strncmp(text, kinds[i], (size_t)(colon - text)))
			return ddps_pattern_parse(pat, kinds[i], colon + 1, why, why_len);
	return ddps_pattern_parse(pat, NULL, text, why, why_len);
}

int ddps_list_hosts(struct ddps_list *l, char *text, char *why, size_t why_len)
{
	unsigned number = 0;
	char *line, said[160];

	*l = (struct ddps_list){ .rule = NULL };
	while ((line = ddps_file_line(&text, &number))) {
		struct ddps_rule *r = add_rule(l, why, why_len);
		char *addr = cut_word(&line), *name = cut_rest(line);
		int err;

		if (!r)
			return DDPS_E_CONFIG;
		r->line = number;
		err = ddps_pattern_parse(&r->host, "ip", addr, said, sizeof said);
		if (!err && !*name)
			return at_line(why, why_len, number, "a line is 'ADDRESS NAME'");
		if (!err)
			err = take_peer(&r->pat, name, said, sizeof said);
		if (err)
			return at_line(why, why_len, number, said);
	}
	return 0;
}

int ddps_list_peers(struct ddps_list *l, const char *text, char *why, size_t why_len)
{
	char *copy = strdup(text), *at = copy;
	int err = copy ? 0 : DDPS_E_NOMEM;

	*l = (struct ddps_list){ .rule = NULL };
	while (!err && at) {
		char *comma = strchr(at, ',');
		struct ddps_rule *r = add_rule(l, why, why_len);

		if (comma)
			*comma = 0;
		err = r ? take_peer(&r->pat, at, why, why_len) : DDPS_E_NOMEM;
		if (r)
			r->allow = true;
		at = comma ? comma + 1 : NULL;
	}
	free(copy);
	return err;
}

void ddps_list_free(struct ddps_list *l)
{
	for (unsigned i = 0; i < l->n; i++) {
		ddps_pattern_free(&l->rule[i].pat);
		ddps_pattern_free(&l->rule[i].host);
	}
	free(l->rule);
	*l = (struct ddps_list){ .rule = NULL };
}

const struct ddps_rule *ddps_list_find(const struct ddps_list *l, const struct ddps_who *who,
				       const struct ddps_name **which)
{
	for (unsigned i = 0; i < l->n; i++)
		if (ddps_pattern_fits(&l->rule[i].pat, who, false, which))
			return &l->rule[i];
	return NULL;
}

const struct ddps_pattern *ddps_list_at(const struct ddps_list *l, const char *addr)
{
	const struct ddps_pattern *found = NULL;
	struct ddps_pattern want;
	char why[8];

	if (!addr || ddps_pattern_parse(&want, "ip", addr, why, sizeof why))
		return NULL;
	for (unsigned i = 0; i < l->n && !found; i++)
		if (l->rule[i].host.len == want.len && !memcmp(l->rule[i].host.p, want.p, want.len))
			found = &l->rule[i].pat;
	ddps_pattern_free(&want);
	return found;
}
