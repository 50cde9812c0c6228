/* SPDX-License-Identifier: BSD-2-Clause */
/* libddpsess-conform as programs see it: options, the cases' list, runs of many cases. */
#include "conform/peer/secured.h"
#include "conform/run.h"
#include <ddpsess/conform.h>
#include <fnmatch.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>

#define WAIT_MS 5000u

_Static_assert((int)DDPS_CONFORM_TCP == (int)CF_TCP && (int)DDPS_CONFORM_SCTP == (int)CF_SCTP &&
		       (int)DDPS_CONFORM_TLS == (int)CF_TLS &&
		       (int)DDPS_CONFORM_DTLS == (int)CF_DTLS &&
		       (int)DDPS_CONFORM_RESPONDER == (int)CF_RESPONDER &&
		       (int)DDPS_CONFORM_INITIATOR == (int)CF_INITIATOR,
	       "the cases' values are those of the header");

/* Nothing may be behind the last member: a later one would be there, and the size the same. */
#define NO_TAIL(type, last)                                                                        \
	_Static_assert(offsetof(struct type, last) + sizeof(((struct type *)0)->last) ==           \
			       sizeof(struct type),                                                \
		       #type " needs a reserve at its end")
NO_TAIL(ddps_conform_options, secure);
NO_TAIL(ddps_conform_calls, result);

/* ---- structs of the caller's ---- */

void ddps_conform_options_init_sized(struct ddps_conform_options *o, size_t size)
{
	const struct ddps_conform_options defaults = { .wire = DDPS_CONFORM_TCP,
						       .wait_ms = WAIT_MS };

	conform_put_sized(o, size, &defaults, sizeof defaults);
}

/* ---- cases ---- */

static struct ddps_conform_case describe_case(const struct cf_case *c, const char *area)
{
	return (struct ddps_conform_case){ .name = c->name,
					   .area = area,
					   .ids = c->ids,
					   .rule = c->rule,
					   .wires = c->wires & ~(unsigned)CF_CLEAR,
					   .target = c->target,
					   .self = c->app };
}

int ddps_conform_case(size_t i, struct ddps_conform_case *c)
{
	const char *area;
	const struct cf_case *at = cf_case_at(i, &area);

	if (!at)
		return DDPS_E_INVAL;
	*c = describe_case(at, area);
	return 0;
}

/* ---- runs ---- */

struct run {
	struct ddps_conform_options o;
	struct conform_caller caller;
	struct cf_run cf;
	struct cf_secured secured;
	struct cf_patience patience;
	bool reached; /* something has answered */
};

/* A peer connects to a responder, so its URI must name one. */
static bool is_whole_uri(const char *uri)
{
	const char *host = strstr(uri, "://") + 3, *end = host + strcspn(host, "?/");
	const char *port = end;

	if (!strncasecmp(uri, "shm:", 4))
		return host[1] != 0;
	while (port[-1] != ':') /* ddps_uri_check() has seen one */
		port--;
	return *host != ':' && strspn(port, "0") != (size_t)(end - port);
}

static int plan_secured(struct run *r)
{
	char why[300];
	int err;

	if (strncasecmp(r->o.uri, "tls:", 4) != 0 && strncasecmp(r->o.uri, "sctps:", 6) != 0)
		return 0;
	if (!r->o.secure)
		return conform_caller_fault(
			&r->caller, DDPS_E_NO_CERT,
			"%s needs a certificate or a pre-shared key: none was given", r->o.uri);
	err = cf_secured_load(&r->secured, r->o.secure, why, sizeof why);
	if (err)
		return conform_caller_fault(&r->caller, err, "%s", why);
	r->cf.secured = &r->secured;
	return 0;
}

static int plan_suite(struct run *r)
{
	const struct ddps_conform_options *o = &r->o;
	char why[300];

	r->cf = (struct cf_run){ .self = !o->uri,
				 .patience = o->uri ? &r->patience : NULL,
				 .uri = o->uri,
				 .then = o->command,
				 .target = (enum cf_target)o->target,
				 .limit_ms = o->wait_ms,
				 .pause_ms = o->pause_ms };
	if (!o->wait_ms || o->wait_ms > INT32_MAX || o->target > DDPS_CONFORM_INITIATOR)
		return conform_caller_fault(&r->caller, DDPS_E_INVAL,
					    "a wait or a role that there is not");
	if (o->command && (!o->uri || o->target != DDPS_CONFORM_INITIATOR))
		return conform_caller_fault(&r->caller, DDPS_E_INVAL,
					    "a command is for initiators, at a URI");
	if (!o->uri) {
		r->cf.shared = o->wire == DDPS_CONFORM_SHM;
		r->cf.wire = r->cf.shared ? CF_TCP : o->wire;
		if (r->cf.wire != CF_TCP && r->cf.wire != CF_SCTP)
			return conform_caller_fault(
				&r->caller, DDPS_E_INVAL,
				"self mode takes one wire, TCP, SCTP or shared memory");
		return 0;
	}
	if (ddps_uri_check(o->uri, why, sizeof why))
		return conform_caller_fault(&r->caller, DDPS_E_ADDRESS, "%s", why);
	if (o->target == DDPS_CONFORM_RESPONDER && !is_whole_uri(o->uri))
		return conform_caller_fault(&r->caller, DDPS_E_ADDRESS,
					    "%s: a host, and a port other than 0, are needed",
					    o->uri);
	r->cf.wire = strncasecmp(o->uri, "sctp", 4) != 0 ? CF_TCP : CF_SCTP;
	r->cf.shared = !strncasecmp(o->uri, "shm:", 4);
	return plan_secured(r);
}

static void report_case(struct run *r, struct ddps_conform_case c, const struct cf_result *res,
			uint64_t ns)
{
	const struct ddps_conform_result out = {
		.c = c,
		.verdict = res->verdict,
		.why = res->why,
		.grade = CONFORM_GRADE(res->ended),
		.ns = ns,
		.expected = res->verdict == DDPS_CONFORM_FAIL && res->want[0] ? res->want : NULL,
		.stop = res->verdict == DDPS_CONFORM_FAIL ? res->stop : DDPS_CONFORM_STOP_NONE,
		.first = res->trace ? cf_trace_first(res->trace) : NULL,
	};

	conform_caller_tell(&r->caller, &out);
}

/* What this host was too late for gets a second try, if the target can be had for one. */
static void run_until_decided(const struct run *r, const struct cf_case *c, struct cf_result *res)
{
	bool again = r->cf.self || r->cf.target == CF_RESPONDER || r->cf.then;

	cf_run_case(&r->cf, c, res);
	if (res->verdict != DDPS_CONFORM_UNDECIDED || !again)
		return;
	cf_trace_free(res->trace);
	cf_run_case(&r->cf, c, res);
}

/* What this host was too late for says nothing of the target's silence. */
static void note_silence(struct run *r, const struct cf_result *res)
{
	if (res->verdict == DDPS_CONFORM_FAIL && res->stop == DDPS_CONFORM_STOP_SILENT_SETUP)
		cf_patience_silent(&r->patience, CF_PART_SETUP);
	if (res->verdict == DDPS_CONFORM_FAIL && res->stop == DDPS_CONFORM_STOP_SILENT_SESSION)
		cf_patience_silent(&r->patience, CF_PART_SESSION);
}

static int run_case(struct run *r, const struct cf_case *c, const char *area)
{
	struct cf_result res = { .verdict = DDPS_CONFORM_SKIP };
	uint64_t begin = cf_now();
	const char *not_here;
	int err = 0;

	if (cf_case_fits(c, &r->cf, &not_here)) {
		run_until_decided(r, c, &res);
		note_silence(r, &res);
	} else {
		snprintf(res.why, sizeof res.why, "%s", not_here);
	}
	if (res.unreachable && !r->reached) {
		/* Nobody has answered yet: the other cases would say the same. */
		err = conform_caller_fault(&r->caller, DDPS_E_REFUSED, "%s: %s", r->cf.uri,
					   res.why);
	} else {
		if (res.unreachable)
			res.stop = DDPS_CONFORM_STOP_GONE;
		r->reached |=
			res.verdict != DDPS_CONFORM_SKIP && res.verdict != DDPS_CONFORM_UNDECIDED;
		report_case(r, describe_case(c, area), &res, cf_now() - begin);
	}
	cf_trace_free(res.trace);
	return err;
}

static int run_cases(struct run *r)
{
	const struct cf_case *c;
	const char *area;
	int err = 0;

	r->reached = r->cf.self;
	for (size_t i = 0; !err && (c = cf_case_at(i, &area)); i++) {
		if (!(c->wires & cf_run_wires(&r->cf)) ||
		    (r->o.pattern && fnmatch(r->o.pattern, c->name, 0)))
			continue;
		if (r->caller.calls.go_on && !r->caller.calls.go_on(r->caller.calls.user))
			break;
		err = run_case(r, c, area);
	}
	return err;
}

int ddps_conform_run(const struct ddps_conform_options *o, const struct ddps_conform_calls *calls,
		     struct ddps_conform_sum *sum, char *why, size_t why_len)
{
	struct run r = { .caller = { .why = why, .why_len = why_len } };
	int err = conform_take_sized(&r.o, sizeof r.o, o);

	if (err)
		return conform_caller_fault(&r.caller, err,
					    "options of another release than this library's");
	err = plan_suite(&r);
	if (!err)
		err = conform_caller_take(&r.caller, calls, r.o.profile);
	if (!err)
		err = run_cases(&r);
	cf_secured_unload(&r.secured);
	cf_profile_free(&r.caller.known);
	if (sum && !err)
		*sum = r.caller.sum;
	return err;
}
