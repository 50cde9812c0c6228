/* SPDX-License-Identifier: BSD-2-Clause */
/* What is known of targets. */
#include "conform/profile/conform_profile.h"
#include "conform/profile/conform_linux_ipoib.h"
#include "conform/profile/conform_linux_sctp.h"
#include "conform/profile/conform_siw.h"
#include "conform/profile/conform_usrsctp.h"
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define FILE_MAX (1u << 20)

static char *read_profile_text(const char *name, char *why, size_t why_len)
{
	FILE *f = fopen(name, "re");
	char *text = f ? malloc(FILE_MAX + 1) : NULL;
	size_t n = text ? fread(text, 1, FILE_MAX + 1, f) : 0;

	if (!text || ferror(f) || n > FILE_MAX) {
		snprintf(why, why_len,
			 "profile '%s': %s (built in: siw, usrsctp, linux-sctp, linux-ib_ipoib)",
			 name, n > FILE_MAX ? "larger than 1 MiB" : strerror(errno));
		free(text);
		text = NULL;
	} else {
		text[n] = 0;
	}
	if (f)
		fclose(f);
	return text;
}

static enum ddps_conform_grade take_grade(const char **does)
{
	static const struct {
		const char *word;
		enum ddps_conform_grade grade;
	} words[] = { { "passes:", DDPS_CONFORM_PASSES }, { "harmless:", DDPS_CONFORM_HARMLESS } };

	for (size_t i = 0; i < sizeof words / sizeof *words; i++) {
		size_t n = strlen(words[i].word);

		if (!strncmp(*does, words[i].word, n)) {
			*does += n + strspn(*does + n, " \t");
			return words[i].grade;
		}
	}
	return DDPS_CONFORM_FAILS;
}

static int add_row(struct cf_profile *p, char *line)
{
	struct cf_profile_row *row;
	char *name = line + strspn(line, " \t"), *does;

	name[strcspn(name, "#\r")] = 0;
	if (!*name)
		return 0;
	does = name + strcspn(name, " \t");
	if (*does)
		*does++ = 0;
	row = realloc(p->row, (p->n + 1) * sizeof *row);
	if (!row)
		return -1;
	p->row = row;
	row += p->n++;
	*row = (struct cf_profile_row){ .name = name, .does = does + strspn(does, " \t") };
	row->grade = take_grade(&row->does);
	return 0;
}

int cf_profile_load(struct cf_profile *p, const char *name, char *why, size_t why_len)
{
	char *save = NULL;

	*p = (struct cf_profile){ 0 };
	snprintf(why, why_len, "profile '%s': out of memory", name);
	errno = 0;
	p->text = !strcmp(name, "siw")		    ? strdup(conform_siw)
		  : !strcmp(name, "usrsctp")	    ? strdup(conform_usrsctp)
		  : !strcmp(name, "linux-sctp")	    ? strdup(conform_linux_sctp)
		  : !strcmp(name, "linux-ib_ipoib") ? strdup(conform_linux_ipoib)
						    : read_profile_text(name, why, why_len);
	if (!p->text)
		return -1;
	for (char *l = strtok_r(p->text, "\n", &save); l; l = strtok_r(NULL, "\n", &save))
		if (add_row(p, l)) {
			cf_profile_free(p);
			return -1;
		}
	return 0;
}

void cf_profile_free(struct cf_profile *p)
{
	free(p->row);
	free(p->text);
}

const struct cf_profile_row *cf_profile_find(const struct cf_profile *p, const char *name)
{
	for (size_t i = 0; i < p->n; i++)
		if (!strcmp(p->row[i].name, name))
			return &p->row[i];
	return NULL;
}
