/* SPDX-License-Identifier: BSD-2-Clause */
/* sessctl conform: the conformance cases, against anyone or against this build itself. */
#include "sessctl/cmd.h"
#include "sessctl/conform_probe.h"
#include "report/conform_out.h"
#include "xfer/advice.h"
#include "cli/sessctl.h"
#include "cli/sig.h"
#include <fnmatch.h>
#include <string.h>
#include <strings.h>

static enum status print_conform_usage(const char *why)
{
	fprintf(stderr, "sessctl conform: %s\n  try: sessctl conform --help\n", why);
	return ST_USAGE;
}

static enum status list_conform_cases(const struct opts *o)
{
	const uint32_t both = DDPS_CONFORM_TCP | DDPS_CONFORM_SCTP;
	struct ddps_conform_case c;

	for (size_t i = 0; !ddps_conform_case(i, &c); i++)
		if (!o->cases || !fnmatch(o->cases, c.name, 0))
			printf("%s\t%s\t%s\t%s\t%s\t%s\n", c.name,
			       c.wires == both		     ? "tcp,sctp"
			       : c.wires == DDPS_CONFORM_TCP ? "tcp"
							     : "sctp",
			       c.target == DDPS_CONFORM_RESPONDER ? "responder" : "initiator",
			       c.self ? "self" : "any", c.ids, c.rule);
	return (enum status)cmd_finish();
}

/* Which wire, from what stands where a URI does. */
static int plan_conform(const struct opts *o, struct ddps_conform_options *run, char *why,
			size_t why_len)
{
	const char *arg = o->arg[0];

	ddps_conform_options_init(run);
	run->target = o->listen ? DDPS_CONFORM_INITIATOR : DDPS_CONFORM_RESPONDER;
	run->command = o->then;
	run->pattern = o->cases;
	run->profile = o->profile;
	run->pause_ms = o->pause_ms;
	if (o->timeout_ms)
		run->wait_ms = o->timeout_ms;
	if (!o->self) {
		run->uri = arg;
		run->wire = 0;
		return 0;
	}
	run->wire = !strcmp(arg, "tcp")	   ? DDPS_CONFORM_TCP
		    : !strcmp(arg, "sctp") ? DDPS_CONFORM_SCTP
					   : 0;
	if (!run->wire)
		snprintf(why, why_len, "--self takes 'tcp' or 'sctp', not '%s'", arg);
	return run->wire ? 0 : -1;
}

/* Outputs begin with the first case, once it is clear that there is one. */
struct report {
	struct conform_out out;
	const struct opts *o;
	const char *wire;
	bool begun, broken;
};

static bool may_conform_go_on(void *user)
{
	struct report *r = user;
	const struct opts *o = r->o;
	const struct conform_out_opts out = { .json = o->json,
					      .tap = o->tap,
					      .junit = o->junit,
					      .pcap = o->pcap,
					      .html = o->html,
					      .pcap_all = o->pcap_all };

	if (!r->begun)
		r->broken = conform_out_begin(&r->out, &out, "sessctl conform", r->wire,
					      o->self ? "this build itself" : o->arg[0]);
	r->begun = true;
	return !r->broken && !sig_pending();
}

static void take_conform_result(void *user, const struct ddps_conform_result *res)
{
	struct report *r = user;

	conform_out_case(&r->out, res);
	fflush(stdout);
}

static enum status run_conform(const struct opts *o, const struct ddps_conform_options *run)
{
	bool sctp = run->uri ? !strncasecmp(run->uri, "sctp:", 5) : run->wire == DDPS_CONFORM_SCTP;
	struct report r = { .o = o, .wire = sctp ? "sctp" : "tcp" };
	const struct ddps_conform_calls calls = { sizeof calls, &r, may_conform_go_on,
						  take_conform_result };
	struct ddps_conform_sum sum = { 0 };
	char why[1300];
	int err, bad = 0;

	err = ddps_conform_run(run, &calls, &sum, why, sizeof why);
	if (r.broken)
		return ST_FAILED;
	if (r.begun)
		bad = conform_out_end(&r.out, &sum);
	if (err == DDPS_E_REFUSED) {
		fprintf(stderr,
			"sessctl conform: %s\n  try: is the target running on that address and "
			"port?\n",
			why);
		return ST_FAILED;
	}
	if (err)
		return print_conform_usage(why);
	if (!conform_out_count(&sum) && !sig_pending())
		return print_conform_usage("no case has a name like that (--list shows them)");
	if (sig_pending())
		fprintf(stderr, "sessctl conform: interrupted, not all cases were run\n");
	if (bad || sum.fail || sig_pending())
		return ST_FAILED;
	if (sum.undecided)
		return (enum status)CONFORM_UNDECIDED;
	/* Every case that was chosen needs what this target cannot do. */
	return sum.pass + sum.known ? ST_DONE : (enum status)CONFORM_NOTHING;
}

int cmd_conform(const struct opts *o)
{
	struct ddps_conform_options run;
	char why[300];

	if (o->list)
		return (int)list_conform_cases(o);
	if (!o->nargs)
		return (int)print_conform_usage("missing URI: it is sessctl conform [options] URI");
	if (o->probe || o->pairs) {
		if (!advice_uri_whole(o->arg[0], false))
			return (int)print_conform_usage(
				"--probe and --pairs need the URI of a responder");
		return (int)(o->probe ? conform_probe(o) : conform_pairs(o));
	}
	if (plan_conform(o, &run, why, sizeof why))
		return (int)print_conform_usage(why);
	return (int)run_conform(o, &run);
}
