/* SPDX-License-Identifier: BSD-2-Clause */
/* What Tab offers. */
#include "cli/complete.h"
#include <string.h>

static char *const *words; /* NULL: a help is a help */
static int nwords;
static int head; /* of the last word, what stands in front of a value: "--op=" */
static const char *(*names)(size_t i, const char **about);

void complete_begin(char *const *w, int n)
{
	words = w;
	nwords = n;
	head = 0;
}

void complete_patterns(const char *(*of)(size_t i, const char **about))
{
	names = of;
}

bool complete_wanted(void)
{
	return words;
}

void complete_offer(const char *name, const char *about)
{
	const char *word = words[nwords - 1] + head;

	if (!strncmp(name, word, strlen(word)))
		printf("%.*s%s\t%s\n", head, words[nwords - 1], name, about);
}

static bool is_word(const char *at, size_t n, const char *word)
{
	return n == strlen(word) && !strncmp(at, word, n);
}

/* One alternative of a value or argument: what is written in small letters is meant as it stands. */
static void offer_form(const char *at, size_t n)
{
	static const char *const uris[] = { "tcp://", "sctp://", "tls://", "sctps://", "shm://" };
	const char *name, *about;
	char text[32];

	if (n >= 3 && !strncmp(at, "URI", 3)) {
		for (size_t i = 0; i < sizeof uris / sizeof *uris; i++)
			complete_offer(uris[i], "");
	} else if (is_word(at, n, "FILE") || is_word(at, n, "SETTINGS") ||
		   is_word(at, n, "SCENARIO")) {
		puts(":files");
	} else if (is_word(at, n, "DIR")) {
		puts(":folders");
	} else if (is_word(at, n, "PROGRAM")) {
		puts(":commands");
	} else if (is_word(at, n, "PATTERN") && names) {
		for (size_t i = 0; (name = names(i, &about)); i++)
			complete_offer(name, about);
	} else if (n && n < sizeof text && *at >= 'a' && *at <= 'z' && !memchr(at, ':', n)) {
		snprintf(text, sizeof text, "%.*s", (int)n, at);
		complete_offer(text, "");
	}
}

static void offer_forms(const char *form)
{
	while (*form) {
		size_t n = strcspn(form, "|[] "), more = 4;

		offer_form(form,
			   n > more && !strncmp(form + n - more, ",...", more) ? n - more : n);
		form += n;
		form += *form != 0;
	}
}

/* The values of an option.  Of a list, "a|b,...", the next one is offered behind those that are there. */
static void offer_values(const char *form)
{
	const size_t n = strlen(form), more = sizeof ",..." - 1;
	const char *word = words[nwords - 1], *comma = strrchr(word, ',');

	if (comma && n > more && !strcmp(form + n - more, ",..."))
		head = (int)(comma + 1 - word);
	offer_forms(form);
}

/* The option that waits for a value behind the @n octets of @before. */
static const struct option_row *find_waiting(const struct option_table *t, unsigned cmd,
					     const char *before, size_t n)
{
	for (size_t i = 0; i < t->n; i++) {
		const struct option_row *r = &t->row[i];
		const char letter[] = { '-', optrow_letter(r->name), 0 };

		if (r->cmds & cmd && r->arg &&
		    ((n > 2 && !strncmp(before, "--", 2) && is_word(before + 2, n - 2, r->name)) ||
		     (letter[1] && is_word(before, n, letter))))
			return r;
	}
	return NULL;
}

/* Another program was named, whose own arguments follow. */
static bool is_behind_program(const struct option_table *t, const struct option_user *u)
{
	bool value = false;

	if (u->max_args != OPTROW_REST)
		return false;
	for (int i = 0; i < nwords - 1; i++) {
		if (!value && words[i][0] != '-')
			return true;
		value = !value && find_waiting(t, u->bit, words[i], strlen(words[i]));
	}
	return false;
}

void complete_options(const struct option_table *t, const struct option_user *u)
{
	const char *word = words[nwords - 1], *before = nwords > 1 ? words[nwords - 2] : "";
	const size_t named = strcspn(word, "=");
	const struct option_row *waiting = find_waiting(t, u->bit, before, strlen(before));
	char name[48];

	if (is_behind_program(t, u)) {
		puts(":files");
		return;
	}
	if (!waiting && !strncmp(word, "--", 2) && word[named]) {
		head = (int)named + 1;
		waiting = find_waiting(t, u->bit, word, named);
		offer_values(waiting ? waiting->arg : "");
		return;
	}
	if (waiting) {
		offer_values(waiting->arg);
		return;
	}
	if (*word != '-') {
		offer_forms(u->synopsis);
		return;
	}
	for (size_t i = 0; i < t->n; i++) {
		const struct option_row *r = &t->row[i];

		if (!(r->cmds & u->bit))
			continue;
		snprintf(name, sizeof name, "--%s", r->name);
		complete_offer(name, r->help);
		snprintf(name, sizeof name, "-%c", optrow_letter(r->name));
		if (name[1])
			complete_offer(name, r->help);
	}
}
