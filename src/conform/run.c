/* SPDX-License-Identifier: BSD-2-Clause */
/* One case from start to end: everything it opened is closed, whatever way it left. */
#include "conform/run.h"
#include "conform/relay/relay_in.h"
#include <stdio.h>
#include <stdlib.h>

/* The tables of each area. */
static const struct {
	const char *title;
	const struct cf_case *tables[12];
} areas[] = {
	{ "set-up and framing over TCP (RFC 5044)",
	  { cf_cases_mpa, cf_cases_mpa_init, cf_cases_mpa_fpdu, cf_cases_mpa_marker } },
	{ "IRD, ORD, peer to peer (RFC 6581)",
	  { cf_cases_neg, cf_cases_neg_init, cf_cases_neg_p2p } },
	{ "sessions over SCTP (RFC 5043)", { cf_cases_sctp, cf_cases_sctp_app } },
	{ "where data goes: DDP (RFC 5041)", { cf_cases_ddp, cf_cases_ddp_queue } },
	{ "messages: RDMAP (RFC 5040)",
	  { cf_cases_rdmap, cf_cases_rdmap_work, cf_cases_rdmap_end, cf_cases_rdmap_edge } },
	{ "atomics, Immediate Data (RFC 7306)", { cf_cases_7306, cf_cases_7306_sent } },
	{ "SCTP itself (RFC 9260)",
	  { cf_cases_assoc_init, cf_cases_assoc_cookie, cf_cases_assoc_dial, cf_cases_assoc_cross,
	    cf_cases_assoc_tags, cf_cases_assoc_data, cf_cases_assoc_sent, cf_cases_assoc_end,
	    cf_cases_assoc_again, cf_cases_assoc_more } },
	{ "TLS below MPA (RFC 8446)", { cf_cases_tls } },
	{ "DTLS below SCTP (RFC 8261, RFC 9653)", { cf_cases_dtls } },
	{ "what a network may do on the way", { cf_cases_relay } },
};

const struct cf_case *cf_case_at(size_t i, const char **area)
{
	for (size_t a = 0; a < sizeof areas / sizeof *areas; a++)
		for (const struct cf_case *const *t = areas[a].tables; *t; t++)
			for (const struct cf_case *c = *t; c->name; c++)
				if (!i--) {
					if (area)
						*area = areas[a].title;
					return c;
				}
	return NULL;
}

unsigned cf_run_wires(const struct cf_run *run)
{
	return run->wire | (!run->secured ? 0 : run->wire == CF_TCP ? CF_TLS : CF_DTLS);
}

bool cf_case_fits(const struct cf_case *c, const struct cf_run *run, const char **why)
{
	*why = NULL;
	if (!(c->wires & cf_run_wires(run)))
		*why = "another wire";
	else if (run->secured && c->wires & CF_CLEAR)
		*why = "for wires without TLS";
	else if (run->shared && c->wires & CF_CLEAR)
		*why = "for wires that may change octets";
	else if (!run->self && c->app)
		*why = "needs the target's application in hand";
	else if (!run->self && c->target != run->target)
		*why = "needs the target in the other role";
	return !*why;
}

static void clean_up(struct cf *cf)
{
	cf_partner_end(cf);
	cf_tcp_unlisten(cf);
	cf_sctp_close(cf); /* before the application, which would wait for an orderly end */
	while (cf->conns) {
		struct cf_conn *c = cf->conns;

		cf->conns = c->next;
		cf_tcp_close(c, cf->run);
		free(c);
	}
	cf_app_stop(cf);
	cf_provoked_end(cf);
}

void cf_run_case(const struct cf_run *run, const struct cf_case *c, struct cf_result *res)
{
	struct cf *cf = calloc(1, sizeof *cf);
	struct cf_res *own = calloc(1, sizeof *own);

	*res = (struct cf_result){ .verdict = DDPS_CONFORM_FAIL, .why = "out of memory" };
	res->trace = cf_trace_new();
	if (!cf || !own || !res->trace) {
		free(cf);
		free(own);
		return;
	}
	own->listen_fd = -1;
	cf->c = c;
	cf->wire = run->wire;
	cf->self = run->self;
	cf->run = run;
	cf->trace = res->trace;
	cf->res = own;
	if (!setjmp(cf->left.to)) {
		cf_app_start(cf);
		c->run(cf);
		res->verdict = DDPS_CONFORM_PASS;
	} else {
		res->verdict = cf_left_verdict(&cf->left);
		res->unreachable = cf->dialling;
		res->ended = cf->must_end && cf->ended;
	}
	snprintf(res->why, sizeof res->why, "%s", cf->left.why);
	snprintf(res->want, sizeof res->want, "%s", cf->want);
	res->stop = cf->stop;
	clean_up(cf);
	free(own);
	free(cf);
}
