/* SPDX-License-Identifier: BSD-2-Clause */
/* A table of options: the parser and the help made from it. */
#include "cli/optrow.h"
#include "cli/complete.h"
#include "cli/text.h"
#include <getopt.h>
#include <stdbool.h>
#include <string.h>

/* The same letter means the same everywhere; those of ping(8) and iperf3(1) where they have one. */
static const struct {
	char letter;
	const char *name;
} letters[] = {
	{ 'c', "count" },    { 'd', "dir" },  { 'f', "force" },	   { 'h', "help" },
	{ 'i', "interval" }, { 'j', "json" }, { 'P', "parallel" }, { 'q', "quiet" },
	{ 'R', "reverse" },  { 's', "size" }, { 't', "seconds" },  { 'V', "version" },
	{ 'w', "timeout" },
};

#define NLETTERS (sizeof letters / sizeof *letters)

char optrow_letter(const char *name)
{
	for (size_t i = 0; i < NLETTERS; i++)
		if (!strcmp(letters[i].name, name))
			return letters[i].letter;
	return 0;
}

/* What other programs call them. */
static const struct {
	const char *word, *name;
} elsewhere[] = {
	{ "only", "case" },  { "filter", "case" },	{ "duration", "seconds" },
	{ "bytes", "size" }, { "iterations", "count" },
};

/* So called elsewhere, or in full: --cert for --tls-cert. */
static bool is_called_so(const char *word, const char *name)
{
	const size_t n = strlen(word), len = strlen(name);

	for (size_t i = 0; i < sizeof elsewhere / sizeof *elsewhere; i++)
		if (!strcmp(elsewhere[i].word, word) && !strcmp(elsewhere[i].name, name))
			return true;
	return len > n && name[len - n - 1] == '-' && !strcmp(name + len - n, word);
}

/* The option of this command that is meant by @arg, or is a typing error away, "--" and a name of @n octets
 * together. */
static const char *find_near_option(const struct option_table *t, unsigned cmd, const char *arg,
				    size_t n)
{
	const char *near = NULL;
	unsigned best = 3;
	char name[42];

	if (n < 4 || n - 2 >= sizeof name || strncmp(arg, "--", 2) != 0)
		return NULL;
	snprintf(name, sizeof name, "%.*s", (int)n - 2, arg + 2);
	for (size_t i = 0; i < t->n; i++) {
		unsigned d = !(t->row[i].cmds & cmd) ? best
			     : is_called_so(name, t->row[i].name)
				     ? 0
				     : text_distance(name, t->row[i].name);

		if (d < best) {
			best = d;
			near = t->row[i].name;
		}
	}
	return near;
}

/* An option that getopt_long refused: unknown, of another command, or with a value too much. */
static void explain_unknown(const struct option_table *t, unsigned cmd, const char *arg, char *why,
			    size_t why_len)
{
	size_t n = strcspn(arg, "=");
	bool known = false;

	if (!strncmp(arg, "--", 2))
		for (size_t i = 0; i < t->n; i++)
			if (strlen(t->row[i].name) == n - 2 &&
			    !strncmp(t->row[i].name, arg + 2, n - 2)) {
				snprintf(why, why_len, "option '%.*s' %s", (int)n, arg,
					 t->row[i].cmds & cmd ? "takes no value"
							      : "belongs to another command");
				if (t->row[i].cmds & cmd)
					return;
				known = true;
			}
	if (!known) {
		const char *near = find_near_option(t, cmd, arg, n);

		snprintf(why, why_len, "unknown or ambiguous option '%s'%s%s%s", arg,
			 near ? ": did you mean --" : "", near ? near : "", near ? "?" : "");
	}
}

/* @arg is one dash and the name of an option, with a value or without. */
static bool is_name_after_dash(const struct option_table *t, unsigned cmd, const char *arg)
{
	size_t n = arg && arg[0] == '-' && arg[1] ? strcspn(arg + 1, "=") : 0;

	for (size_t i = 0; n > 1 && i < t->n; i++)
		if (t->row[i].cmds & cmd && strlen(t->row[i].name) == n &&
		    !strncmp(t->row[i].name, arg + 1, n))
			return true;
	return false;
}

/* A letter that is no option, or would be misread: perhaps the first one of a long option's name after one dash. */
static void explain_letter(const struct option_table *t, unsigned cmd, const char *arg, char *why,
			   size_t why_len)
{
	char twice[42];
	const char *near = NULL;

	if (arg && arg[0] == '-' && arg[1] && arg[2] && arg[2] != '=') {
		snprintf(twice, sizeof twice, "-%s", arg);
		near = find_near_option(t, cmd, twice, strcspn(twice, "="));
	}
	if (near)
		snprintf(why, why_len, "unknown option '%s': did you mean --%s?", arg, near);
	else
		snprintf(why, why_len, "unknown option '-%c'", optopt);
}

/* Above letters: of each long option another one, or getopt_long takes what is ambiguous for the first. */
#define LONG 256

/* What getopt_long needs, and the rows that it stands for. */
struct selection {
	struct option longopt[OPTROW_MAX + 1];
	const struct option_row *row[OPTROW_MAX + 1]; /* NULL after the last */
	char letters[2 * NLETTERS + 3];		      /* as getopt takes them */
};

static void select_rows(struct selection *s, const struct option_table *t, unsigned cmd, bool rest)
{
	size_t n = 0;
	char *at;

	memset(s, 0, sizeof *s);
	at = s->letters;
	if (rest)
		*at++ = '+'; /* options end at the first argument */
	*at++ = ':';
	for (size_t i = 0; i < t->n; i++) {
		if (!(t->row[i].cmds & cmd))
			continue;
		s->longopt[n].name = t->row[i].name;
		s->longopt[n].val = LONG + (int)n;
		s->longopt[n].has_arg = t->row[i].arg ? required_argument : no_argument;
		s->row[n++] = &t->row[i];
		*at = optrow_letter(t->row[i].name);
		if (!*at)
			continue;
		at++;
		if (t->row[i].arg)
			*at++ = ':';
	}
}

static const struct option_row *find_letter_row(const struct selection *s, int letter)
{
	for (size_t i = 0; s->row[i]; i++)
		if (optrow_letter(s->row[i]->name) == letter)
			return s->row[i];
	return NULL;
}

/* The argument that getopt_long took a letter from, if there is more in it; else another one or NULL. */
static const char *find_letter_arg(char **argv)
{
	return optarg && optarg == argv[optind - 1] + 2 ? argv[optind - 1] : argv[optind];
}

static enum opts_result parse_all(const struct option_table *t, const struct selection *s,
				  const struct option_user *u, void *opts, int argc, char **argv,
				  char *why, size_t why_len)
{
	const struct option_row *row;
	int c;

	optind = 0; /* start afresh, and permute */
	opterr = 0;
	while ((c = getopt_long(argc, argv, s->letters, s->longopt, NULL)) != -1) {
		row = c >= LONG ? s->row[c - LONG] : find_letter_row(s, c);
		if (row && c < LONG && is_name_after_dash(t, u->bit, find_letter_arg(argv))) {
			explain_letter(t, u->bit, find_letter_arg(argv), why, why_len);
			return OPTS_BAD;
		}
		if (row && row->kind == VAL_HELP)
			return OPTS_HELP;
		if (row && row->kind == VAL_VERSION)
			return OPTS_VERSION;
		if (!row) {
			if (c == ':')
				snprintf(why, why_len, "option '%s' needs a value",
					 argv[optind - 1]);
			else if (optopt && optopt < LONG)
				explain_letter(t, u->bit, argv[optind], why, why_len);
			else
				explain_unknown(t, u->bit, argv[optind - 1], why, why_len);
			return OPTS_BAD;
		}
		if (optval_set(row->kind, row->name, row->arg, optarg, (char *)opts + row->at,
			       row->min, row->max, why, why_len))
			return OPTS_BAD;
	}
	return OPTS_OK;
}

enum opts_result optrow_parse(const struct option_table *t, const struct option_user *u, void *opts,
			      int argc, char **argv, int *first, char *why, size_t why_len)
{
	struct selection s;
	enum opts_result res;
	int left;

	select_rows(&s, t, u->bit, u->max_args == OPTROW_REST);
	res = parse_all(t, &s, u, opts, argc, argv, why, why_len);
	if (res != OPTS_OK)
		return res;
	*first = optind;
	left = argc - optind;
	if (left >= u->min_args && left <= u->max_args)
		return OPTS_OK;
	snprintf(why, why_len, "%s arguments: it is sessctl %s [options] %s",
		 left < u->min_args ? "missing" : "too many", u->name, u->synopsis);
	return OPTS_BAD;
}

void optrow_help(FILE *f, const struct option_table *t, const struct option_user *u)
{
	unsigned columns = text_columns(f), indent = columns < 70 ? 6 : 35;
	char left[48], letter[] = ", -x", usage[200];
	bool sizes = false;

	if (complete_wanted()) {
		complete_options(t, u);
		return;
	}
	snprintf(usage, sizeof usage, "sessctl %s [options] %s", u->name, u->synopsis);
	fputs("Usage: ", f);
	text_fold(f, usage, 7, 7, columns);
	fputc('\n', f);
	text_fold(f, u->about, 0, 0, columns);
	fputs("\nOptions:\n", f);
	for (size_t i = 0; i < t->n; i++) {
		if (!(t->row[i].cmds & u->bit))
			continue;
		letter[3] = optrow_letter(t->row[i].name);
		snprintf(left, sizeof left, "--%s%s%s%s", t->row[i].name, letter[3] ? letter : "",
			 t->row[i].arg ? " " : "", t->row[i].arg ? t->row[i].arg : "");
		if (columns < 70 || (strlen(left) > 32 && columns <= 80))
			fprintf(f, "  %s\n%*s", left, (int)indent, "");
		else
			fprintf(f, "  %-32s ", left);
		text_fold(f, t->row[i].help, indent, indent, columns);
		sizes |= t->row[i].kind == VAL_SIZE || t->row[i].kind == VAL_SIZES;
	}
	if (!sizes)
		return;
	fputc('\n', f);
	text_fold(f, "SIZE takes the suffixes K, M, G and T (powers of 1024).", 0, 0, columns);
}
