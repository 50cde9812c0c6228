/* SPDX-License-Identifier: BSD-2-Clause */
#include "report/causes.h"
#include <ctype.h>
#include <ddpsess/ddpsess.h>
#include <stdlib.h>
#include <string.h>

static const struct {
	const char *id, *level, *who, *text;
} rules[] = {
#include "rules.inc"
};

/* Where a rule is: its id is an RFC's number, a section and a number; 5044u: RFC 6581 on RFC 5044. */
static int put_place(char *to, size_t size, const char *id)
{
	const char *section = strchr(id, '-'), *end = strrchr(id, '-');
	bool appendix = section && isupper((unsigned char)section[1]);

	if (!strncmp(id, "etsi-", 5))
		return snprintf(to, size, "ETSI TS 102 369 test purpose %s", id + 5);
	if (!strncmp(id, "pkdr-", 5))
		return snprintf(to, size, "packetdrill script %s", id + 5);
	if (!section || end == section)
		return snprintf(to, size, "%s", id);
	return snprintf(to, size, "RFC %.*s %s %.*s",
			strncmp(id, "5044u", 5) ? (int)(section - id) : 4,
			strncmp(id, "5044u", 5) ? id : "6581", appendix ? "appendix" : "section",
			(int)(end - section - 1), section + 1);
}

bool rules_next(const char **ids, char *id, size_t id_size, char line[RULE_LINE])
{
	size_t skip = strspn(*ids, " "), n = strcspn(*ids + skip, " ");
	int used;

	if (!n)
		return false;
	snprintf(id, id_size, "%.*s", (int)n, *ids + skip);
	*ids += skip + n;
	used = put_place(line, RULE_LINE, id);
	if (used < 0 || used >= RULE_LINE)
		return true;
	for (size_t i = 0; i < sizeof rules / sizeof *rules; i++)
		if (!strcmp(rules[i].id, id)) {
			/* what is declared binds as what it says, and no word of RFC 2119 */
			bool word = isupper((unsigned char)rules[i].level[0]) &&
				    strcmp(rules[i].level, "DECL") != 0;

			snprintf(line + used, RULE_LINE - (size_t)used, " (%s%s%s): %s",
				 word ? rules[i].level : "", word ? ", " : "", rules[i].who,
				 rules[i].text);
			break;
		}
	return true;
}

static bool is_code(const char *s)
{
	return isdigit((unsigned char)s[0]) && s[1] == '/' && isdigit((unsigned char)s[2]) &&
	       s[3] == '/' && isxdigit((unsigned char)s[4]) && isxdigit((unsigned char)s[5]) &&
	       !isalnum((unsigned char)s[6]);
}

void rules_print_codes(FILE *f, const char *text, const char *indent)
{
	for (const char *s = text; *s; s++) {
		const struct ddps_triple t = { .layer = (uint8_t)(s[0] - '0'),
					       .etype = is_code(s) ? (uint8_t)(s[2] - '0') : 0,
					       .code = is_code(s)
							       ? (uint8_t)strtoul(s + 4, NULL, 16)
							       : 0 };
		const char *name;

		if (!is_code(s) || (s > text && isalnum((unsigned char)s[-1])))
			continue;
		name = ddps_triple_name(&t);
		if (name)
			fprintf(f, "%s%.6s is the Terminate error \"%s\"\n", indent, s, name);
		s += 5;
	}
}
