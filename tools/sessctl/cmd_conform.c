/* SPDX-License-Identifier: BSD-2-Clause */
/* sessctl conform: the conformance cases, against anyone or against this build itself. */
#include "sessctl/cmd.h"
#include "sessctl/conform_probe.h"
#include "report/conform_out.h"
#include "xfer/advice.h"
#include "xfer/opts.h"
#include "cli/sessctl.h"
#include <fnmatch.h>
#include <string.h>
#include <strings.h>

#define COMMAND "sessctl conform"

static enum status list_conform_cases(const struct opts *o)
{
	const uint32_t both = DDPS_CONFORM_TCP | DDPS_CONFORM_SCTP;
	struct ddps_conform_case c;

	for (size_t i = 0; !ddps_conform_case(i, &c); i++)
		if (!o->cases || !fnmatch(o->cases, c.name, 0))
			printf("%s\t%s\t%s\t%s\t%s\t%s\n", c.name,
			       c.wires == both		      ? "tcp,sctp"
			       : c.wires == DDPS_CONFORM_TLS  ? "tls"
			       : c.wires == DDPS_CONFORM_DTLS ? "sctps"
			       : c.wires == DDPS_CONFORM_TCP  ? "tcp"
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
	run->secure = secure_given(o) ? &o->secure : NULL;
	if (o->timeout_ms)
		run->wait_ms = o->timeout_ms;
	if (!o->self) {
		run->uri = arg;
		run->wire = 0;
		return 0;
	}
	run->wire = !strcmp(arg, "tcp")	   ? DDPS_CONFORM_TCP
		    : !strcmp(arg, "sctp") ? DDPS_CONFORM_SCTP
		    : !strcmp(arg, "shm")  ? DDPS_CONFORM_SHM
					   : 0;
	if (!run->wire)
		snprintf(why, why_len, "--self takes 'tcp', 'sctp' or 'shm', not '%s'", arg);
	return run->wire ? 0 : -1;
}

static int run_conform(const void *what, const struct ddps_conform_calls *calls,
		       struct ddps_conform_sum *sum, char *why, size_t why_len)
{
	return ddps_conform_run(what, calls, sum, why, why_len);
}

int cmd_conform(const struct opts *o)
{
	struct ddps_conform_options run;
	char why[300];
	bool sctp, tls, sctps, shm;

	if (o->list)
		return (int)list_conform_cases(o);
	if (!o->nargs)
		return (int)conform_usage(
			COMMAND, o->self ? "--self needs a wire: it is sessctl conform --self "
					   "tcp, sctp or shm"
					 : "missing URI: it is sessctl conform [options] URI");
	if (o->probe || o->pairs) {
		if (!advice_uri_whole(o->arg[0], false))
			return (int)conform_usage(
				COMMAND, "--probe and --pairs need the URI of a responder");
		return (int)(o->probe ? conform_probe(o) : conform_pairs(o));
	}
	if (plan_conform(o, &run, why, sizeof why))
		return (int)conform_usage(COMMAND, why);
	sctp = run.uri ? !strncasecmp(run.uri, "sctp:", 5) : run.wire == DDPS_CONFORM_SCTP;
	tls = run.uri && !strncasecmp(run.uri, "tls:", 4);
	shm = run.uri ? !strncasecmp(run.uri, "shm:", 4) : run.wire == DDPS_CONFORM_SHM;
	sctps = run.uri && !strncasecmp(run.uri, "sctps:", 6);
	return (int)conform_go(
		&(struct conform_job){ .o = { .json = o->json,
					      .tap = o->tap,
					      .junit = o->junit,
					      .pcap = o->pcap,
					      .html = o->html,
					      .pcap_all = o->pcap_all },
				       .command = COMMAND,
				       .wire = tls     ? "tls"
					       : shm   ? "shm"
					       : sctps ? "sctps"
					       : sctp  ? "sctp"
						       : "tcp",
				       .target = o->self ? "this build itself" : o->arg[0],
				       .advice = "is the target running on that address and port?",
				       .run = run_conform,
				       .what = &run });
}
