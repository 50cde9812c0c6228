/* SPDX-License-Identifier: BSD-2-Clause */
/* Scenario files of sessctl ipoib sim. */
#include "ipoib/ipoib_sim.h"
#include "cli/sessctl.h"
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#define STEPS_MAX 100000u
#define MS_MAX	  (24u * 3600 * 1000)
#define LEN_MIN	  28u
#define LEN_MAX	  65000u

static const struct {
	const char *name;
	enum sim_verb verb;
	unsigned min, max; /* arguments */
} verbs[] = {
	{ "send", SIM_SEND, 2, 3 }, { "start", SIM_START, 1, 1 }, { "stop", SIM_STOP, 1, 1 },
	{ "kill", SIM_KILL, 1, 1 }, { "plug", SIM_PLUG, 1, 1 },	  { "unplug", SIM_UNPLUG, 1, 1 },
	{ "loss", SIM_LOSS, 1, 1 },
};

#define NVERBS (sizeof verbs / sizeof *verbs)

static int read_scenario_number(const char *word, uint64_t max, uint64_t *n)
{
	char *end;

	errno = 0;
	*n = strtoull(word, &end, 10);
	return *word < '0' || *word > '9' || *end || errno || *n > max ? -1 : 0;
}

/* @word: time, verb, arguments.  Return: NULL, or what is wrong. */
static const char *parse_scenario_step(const struct sim *s, char **word, unsigned n,
				       struct sim_step *t)
{
	uint64_t ms, v[3] = { 0, 0, 100 };
	size_t i = 0;

	if (n < 2 || read_scenario_number(word[0], MS_MAX, &ms))
		return "a line is MILLISECONDS VERB ARGUMENTS";
	while (i < NVERBS && strcmp(verbs[i].name, word[1]) != 0)
		i++;
	if (i == NVERBS)
		return "no such verb (send, start, stop, kill, plug, unplug, loss)";
	if (n - 2 < verbs[i].min || n - 2 > verbs[i].max)
		return "wrong number of arguments";
	for (unsigned k = 2; k < n; k++)
		if (read_scenario_number(word[k], UINT32_MAX, &v[k - 2]))
			return "an argument is not a number";
	*t = (struct sim_step){ .at = ms * NS_PER_MS, .verb = verbs[i].verb, .len = (size_t)v[2] };
	t->a = (unsigned)v[0];
	t->b = (unsigned)v[1];
	if (t->verb == SIM_LOSS)
		return t->a > 100 ? "a loss above 100 percent" : NULL;
	if (t->a >= s->n || t->b >= s->n)
		return "no such node (--nodes)";
	if (t->verb == SIM_SEND && (t->a == t->b || t->len < LEN_MIN || t->len > LEN_MAX))
		return "send takes two nodes and 28 to 65000 octets";
	return NULL;
}

static const char *add_step(struct sim *s, char *line)
{
	char *word[6], *save = NULL;
	struct sim_step *step;
	const char *bad;
	unsigned n = 0;

	line[strcspn(line, "#\r\n")] = 0;
	for (char *w = strtok_r(line, " \t", &save); w && n < 6; w = strtok_r(NULL, " \t", &save))
		word[n++] = w;
	if (!n)
		return NULL;
	if (s->nsteps == STEPS_MAX)
		return "more than 100000 steps";
	step = realloc(s->step, (s->nsteps + 1) * sizeof *step);
	if (!step)
		return "out of memory";
	s->step = step;
	bad = parse_scenario_step(s, word, n, &step[s->nsteps]);
	s->nsteps += !bad;
	return bad;
}

int sim_read(struct sim *s, const char *file, char *why, size_t why_len)
{
	FILE *f = fopen(file, "re");
	unsigned nr = 0;
	char *line = NULL;
	size_t cap = 0;
	const char *bad = NULL;
	int status;

	if (!f) {
		snprintf(why, why_len, "scenario '%s': %s", file, strerror(errno));
		return ST_FAILED;
	}
	while (!bad && getline(&line, &cap, f) > 0) {
		nr++;
		bad = add_step(s, line);
	}
	if (bad)
		snprintf(why, why_len, "%s:%u: %s", file, nr, bad);
	else if (ferror(f))
		snprintf(why, why_len, "scenario '%s': %s", file, strerror(errno));
	status = bad ? ST_USAGE : ferror(f) ? ST_FAILED : ST_DONE;
	free(line);
	fclose(f);
	return status;
}
