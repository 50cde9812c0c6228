/* SPDX-License-Identifier: BSD-2-Clause */
/* A run of a conformance suite from its options to the exit status. */
#include "report/conform_out.h"
#include "cli/sig.h"
#include <string.h>

#define ADVICE	    "; try: " /* so ends what an adapter's port says */
#define INTERRUPTED "interrupted, not all cases were run"

struct conform_going {
	const struct conform_job *job;
	struct conform_out out;
	bool begun, broken;
};

enum status conform_usage(const char *command, const char *why)
{
	fprintf(stderr, "%s: %s\n  try: %s --help\n", command, why, command);
	return ST_USAGE;
}

/* Outputs begin with the first case, or an error of the run: once it is clear that its options are good. */
static bool begin_conform_report(struct conform_going *g)
{
	if (!g->begun)
		g->broken = conform_out_begin(&g->out, g->job);
	g->begun = true;
	return !g->broken;
}

static bool may_conform_go_on(void *user)
{
	return begin_conform_report(user) && !sig_pending();
}

static void take_conform_result(void *user, const struct ddps_conform_result *r)
{
	struct conform_going *g = user;

	conform_out_case(&g->out, r);
	fflush(stdout);
}

/* What ended the run is in each output, not only on standard error. */
static void report_conform_error(struct conform_going *g, int err, char *why)
{
	char *own = strstr(why, ADVICE);
	const char *advice = own ? own + strlen(ADVICE)
			     : err == DDPS_E_SYSTEM
				     ? "an address and a port of this host that are free"
			     : err == DDPS_E_NOMEM ? "fewer programs at a time"
			     : err <= DDPS_E_NO_TLS
				     ? "--tls-cert, --tls-key and --tls-ca, or --tls-psk; sessctl "
				       "check-keys, which says what is wrong with files"
				     : g->job->advice;

	if (own)
		*own = 0;
	fprintf(stderr, "%s: %s\n  try: %s\n", g->job->command, why, advice);
	if (begin_conform_report(g))
		conform_out_error(&g->out, err, why, advice);
}

enum status conform_go(const struct conform_job *job)
{
	struct conform_going g = { .job = job };
	const struct ddps_conform_calls calls = { sizeof calls, &g, may_conform_go_on,
						  take_conform_result };
	struct ddps_conform_sum sum = { 0 };
	char why[1300] = "out of memory";
	int err = job->run(job->what, &calls, &sum, why, sizeof why), bad = 0;

	if (err == DDPS_E_REFUSED || err <= DDPS_E_NO_TLS || err == DDPS_E_SYSTEM ||
	    err == DDPS_E_NOMEM)
		report_conform_error(&g, err, why);
	else if (err)
		return conform_usage(job->command, why);
	else if (!conform_out_count(&sum) && !sig_pending() && !g.broken)
		return conform_usage(job->command,
				     "no case has a name like that (--list shows them)");
	if (g.broken)
		return ST_FAILED;
	if (!err && sig_pending()) {
		fprintf(stderr, "%s: " INTERRUPTED "\n", job->command);
		if (g.begun)
			conform_out_error(&g.out, 0, INTERRUPTED, NULL);
	}
	if (g.begun)
		bad = conform_out_end(&g.out, &sum);
	if (err || bad || sum.fail || sig_pending())
		return ST_FAILED;
	if (sum.undecided)
		return (enum status)CONFORM_UNDECIDED;
	/* Every case that was chosen needs what this target cannot do. */
	return sum.pass + sum.known ? ST_DONE : (enum status)CONFORM_NOTHING;
}
