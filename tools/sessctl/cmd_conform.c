/* SPDX-License-Identifier: BSD-2-Clause */
/* sessctl conform: the conformance cases, against anyone or against this build itself. */
#include "xfer/advice.h"
#include "sessctl/cmd.h"
#include "sessctl/conform_out.h"
#include "cli/sessctl.h"
#include "cli/sig.h"
#include <fnmatch.h>
#include <stdlib.h>
#include <string.h>

#define LIMIT_MS 5000u

static enum status usage(const char *why)
{
	fprintf(stderr, "sessctl conform: %s\n  try: sessctl conform --help\n", why);
	return ST_USAGE;
}

static bool wanted(const struct opts *o, const struct cf_case *c)
{
	return !o->cases || !fnmatch(o->cases, c->name, 0);
}

static enum status list(const struct opts *o)
{
	const struct cf_case *c;

	for (size_t i = 0; (c = cf_case_at(i)); i++)
		if (wanted(o, c))
			printf("%s\t%s\t%s\t%s\t%s\t%s\n", c->name,
			       c->wires == CF_BOTH  ? "tcp,sctp"
			       : c->wires == CF_TCP ? "tcp"
						    : "sctp",
			       c->target == CF_RESPONDER ? "responder" : "initiator",
			       c->app ? "self" : "any", c->ids, c->rule);
	return (enum status)cmd_finish();
}

/* Which wire, from what stands where a URI does. */
static int plan(const struct opts *o, struct cf_run *run, char *why, size_t why_len)
{
	const char *arg = o->arg[0];

	*run = (struct cf_run){ .self = o->self,
				.uri = arg,
				.then = o->then,
				.target = o->listen ? CF_INITIATOR : CF_RESPONDER,
				.pause_ms = o->pause_ms,
				.limit_ms = o->timeout_ms ? o->timeout_ms : LIMIT_MS };
	if (o->self) {
		run->wire = !strcmp(arg, "tcp") ? CF_TCP : !strcmp(arg, "sctp") ? CF_SCTP : 0;
		if (!run->wire)
			snprintf(why, why_len, "--self takes 'tcp' or 'sctp', not '%s'", arg);
		return run->wire ? 0 : -1;
	}
	if (ddps_uri_check(arg, why, why_len))
		return -1;
	if (!o->listen && (!advice_uri_whole(arg, false))) {
		snprintf(why, why_len, "%s: a host, and a port other than 0, are needed", arg);
		return -1;
	}
	run->wire = !strncmp(arg, "tcp:", 4) ? CF_TCP : CF_SCTP;
	return 0;
}

/* Nobody has answered yet: the other cases would say the same. */
static enum status unreachable(struct conform_out *out, const struct cf_run *run,
			       const struct cf_result *r)
{
	cf_trace_free(r->trace);
	conform_out_end(out);
	fprintf(stderr,
		"sessctl conform: %s: %s\n  try: is the target running on that address and "
		"port?\n",
		run->uri, r->why);
	return ST_FAILED;
}

static enum status run_all(const struct opts *o, const struct cf_run *run,
			   const struct profile *known)
{
	struct conform_out out;
	const struct cf_case *c;
	const char * not ;
	bool reached = o->self;
	int err;

	if (conform_out_begin(&out, o, run->wire == CF_TCP ? "tcp" : "sctp"))
		return ST_FAILED;
	for (size_t i = 0; (c = cf_case_at(i)) && !sig_pending(); i++) {
		struct cf_result r = { .verdict = CF_SKIP };
		uint64_t begin = clock_ns();

		if (!(c->wires & run->wire) || !wanted(o, c))
			continue;
		if (cf_case_fits(c, run, &not ))
			cf_run_case(run, c, &r);
		else
			snprintf(r.why, sizeof r.why, "%s", not );
		if (r.unreachable && !reached)
			return unreachable(&out, run, &r);
		reached |= r.verdict != CF_SKIP;
		conform_out_case(&out, c, &r, profile_find(known, c->name),
				 (double)(clock_ns() - begin) / NS_PER_S);
		cf_trace_free(r.trace);
		fflush(stdout);
	}
	err = conform_out_end(&out);
	if (!out.number && !sig_pending())
		return usage("no case has a name like that (--list shows them)");
	if (sig_pending())
		fprintf(stderr, "sessctl conform: interrupted, not all cases were run\n");
	return err || out.count[CONFORM_FAIL] || sig_pending() ? ST_FAILED : ST_DONE;
}

int cmd_conform(const struct opts *o)
{
	struct profile known = { 0 };
	struct cf_run run;
	char why[300];
	enum status s;

	if (o->list)
		return (int)list(o);
	if (!o->nargs)
		return (int)usage("missing URI: it is sessctl conform [options] URI");
	if (plan(o, &run, why, sizeof why))
		return (int)usage(why);
	if (o->profile && profile_load(&known, o->profile, why, sizeof why))
		return (int)usage(why);
	s = run_all(o, &run, &known);
	profile_free(&known);
	return (int)s;
}
