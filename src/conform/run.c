/* SPDX-License-Identifier: BSD-2-Clause */
/* One case from start to end: everything it opened is closed, whatever way it left. */
#include "conform/run.h"
#include "common/loop.h"
#include "common/resolve.h"
#include <netinet/in.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const struct cf_case *const tables[] = {
	cf_cases_mpa,	     cf_cases_mpa_init,	 cf_cases_mpa_fpdu, cf_cases_mpa_marker,
	cf_cases_neg,	     cf_cases_neg_p2p,	 cf_cases_sctp,	    cf_cases_sctp_app,
	cf_cases_ddp,	     cf_cases_ddp_queue, cf_cases_rdmap,    cf_cases_rdmap_work,
	cf_cases_rdmap_edge, cf_cases_7306,
};

const struct cf_case *cf_case_at(size_t i)
{
	for (size_t t = 0; t < sizeof tables / sizeof *tables; t++)
		for (const struct cf_case *c = tables[t]; c->name; c++)
			if (!i--)
				return c;
	return NULL;
}

bool cf_case_fits(const struct cf_case *c, const struct cf_run *run, const char **why)
{
	*why = NULL;
	if (!(c->wires & run->wire))
		*why = "another wire";
	else if (!run->self && c->app)
		*why = "needs the target's application in hand";
	else if (!run->self && c->target != run->target)
		*why = "needs the target in the other role";
	return !*why;
}

void cf_fail(struct cf *cf, const char *fmt, ...)
{
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(cf->why, sizeof cf->why, fmt, ap);
	va_end(ap);
	longjmp(cf->leave, 1);
}

void cf_skip(struct cf *cf, const char *fmt, ...)
{
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(cf->why, sizeof cf->why, fmt, ap);
	va_end(ap);
	cf->skipped = true;
	longjmp(cf->leave, 1);
}

int cf_left(struct cf *cf, uint64_t since, const char *what)
{
	uint64_t gone = (ddps_now() - since) / 1000000;

	if (gone >= cf->run->limit_ms)
		cf_fail(cf, "waited %u ms for %s", cf->run->limit_ms, what);
	return cf_provoked_left(cf, (int)(cf->run->limit_ms - gone));
}

struct cf_conn *cf_conn_new(struct cf *cf)
{
	struct cf_conn *c = calloc(1, sizeof *c), **at = &cf->conns;

	if (!c)
		cf_fail(cf, "out of memory");
	c->fd = -1;
	for (unsigned i = 0; i < CF_NQN; i++)
		c->msn[i] = 1;
	while (*at) {
		c->number++;
		at = &(*at)->next;
	}
	*at = c;
	cf->conn = c;
	return c;
}

void cf_use(struct cf *cf, unsigned n)
{
	struct cf_conn *c = cf->conns;

	while (c && c->number != n)
		c = c->next;
	CF_CHECK(cf, c, "the case has no connection %u", n);
	cf->conn = c;
}

void cf_open(struct cf *cf)
{
	if (cf->wire == CF_TCP)
		cf_tcp_open(cf);
	else
		cf_sctp_open(cf);
}

void cf_address(struct cf *cf, const char *text, struct ddps_uri *uri, struct sockaddr_storage *ss,
		socklen_t *len)
{
	struct sockaddr_storage all[DDPS_RESOLVE_MAX];
	size_t n = DDPS_RESOLVE_MAX;
	char why[200];

	if (ddps_uri_parse(uri, text, why, sizeof why))
		cf_fail(cf, "%s: %s", text, why);
	cf->dialling = cf->c->target == CF_RESPONDER && cf->conn && !cf->conn->number;
	CF_CHECK(cf, !ddps_resolve_now(uri->host, uri->port, all, &n), "no address for '%s'",
		 uri->host);
	*ss = all[0];
	*len = all[0].ss_family == AF_INET6 ? sizeof(struct sockaddr_in6)
					    : sizeof(struct sockaddr_in);
}

static void clean_up(struct cf *cf)
{
	cf_tcp_unlisten(cf);
	cf_sctp_close(cf); /* before the application, which would wait for an orderly end */
	while (cf->conns) {
		struct cf_conn *c = cf->conns;

		cf->conns = c->next;
		cf_tcp_close(c);
		free(c);
	}
	cf_app_stop(cf);
	cf_provoked_end(cf);
}

void cf_run_case(const struct cf_run *run, const struct cf_case *c, struct cf_result *res)
{
	struct cf *cf = calloc(1, sizeof *cf);
	struct cf_res *own = calloc(1, sizeof *own);

	*res = (struct cf_result){ .verdict = CF_FAIL, .why = "out of memory" };
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
	if (!setjmp(cf->leave)) {
		cf_app_start(cf);
		c->run(cf);
		res->verdict = CF_PASS;
	} else {
		res->verdict = cf->skipped ? CF_SKIP : CF_FAIL;
		res->unreachable = cf->dialling;
	}
	snprintf(res->why, sizeof res->why, "%s", cf->why);
	clean_up(cf);
	free(own);
	free(cf);
}
