/* SPDX-License-Identifier: BSD-2-Clause */
/* Leaving a case, its connections, and what time it has. */
#include "conform/peer/inside.h"
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

uint64_t cf_now(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

void cf_fail(struct cf *cf, const char *fmt, ...)
{
	va_list ap;

	va_start(ap, fmt);
	cf_left_why(&cf->left, false, fmt, ap);
	va_end(ap);
	longjmp(cf->left.to, 1);
}

void cf_skip(struct cf *cf, const char *fmt, ...)
{
	va_list ap;

	va_start(ap, fmt);
	cf_left_why(&cf->left, true, fmt, ap);
	va_end(ap);
	longjmp(cf->left.to, 1);
}

/* ---- what time a wait has, and how it ends ---- */

enum cf_part cf_part_of(const struct cf *cf)
{
	return cf->conn && cf->conn->session ? CF_PART_SESSION : CF_PART_SETUP;
}

unsigned cf_limit(const struct cf *cf, enum cf_part part)
{
	const struct cf_run *run = cf->run;

	/* The first call may be made by hand, whenever somebody comes to it. */
	if (!run->patience || cf->res->awaited)
		return run->limit_ms;
	return cf_patience_ms(run->patience, part, run->limit_ms);
}

void cf_heard(struct cf *cf, enum cf_part part, uint64_t since)
{
	if (cf->run->patience)
		cf_patience_heard(cf->run->patience, part, cf_now() - since);
}

void cf_silent(struct cf *cf, enum cf_part part)
{
	if (!cf->res->awaited)
		cf->stop = part == CF_PART_SESSION ? DDPS_CONFORM_STOP_SILENT_SESSION
						   : DDPS_CONFORM_STOP_SILENT_SETUP;
}

void cf_closed(struct cf *cf)
{
	cf->stop = cf_part_of(cf) == CF_PART_SESSION ? DDPS_CONFORM_STOP_CLOSED_SESSION
						     : DDPS_CONFORM_STOP_CLOSED_SETUP;
}

bool cf_want(struct cf *cf, const char *fmt, ...)
{
	va_list ap;

	if (cf->want[0])
		return false;
	va_start(ap, fmt);
	vsnprintf(cf->want, sizeof cf->want, fmt, ap);
	va_end(ap);
	return true;
}

void cf_wanted(struct cf *cf, bool mine)
{
	if (mine)
		cf->want[0] = 0;
}

int cf_ms_left(const struct cf *cf, uint64_t since)
{
	uint64_t gone = (cf_now() - since) / 1000000;
	unsigned limit = cf_limit(cf, cf_part_of(cf));

	return gone < limit ? (int)(limit - gone) : 0;
}

int cf_left(struct cf *cf, uint64_t since, const char *what)
{
	int left = cf_ms_left(cf, since);
	unsigned limit;

	if (!left) {
		(void)cf_nap(cf, since, 0); /* what was lost since the last one counts */
		limit = cf_limit(cf, cf_part_of(cf));
		cf_silent(cf, cf_part_of(cf));
		cf_fail(cf, "waited %u ms for %s", limit, what);
	}
	return cf_provoked_left(cf, left);
}

int cf_nap(struct cf *cf, uint64_t key, int ms)
{
	return cf_late_nap(&cf->left.late, key, cf_now(), ms);
}

void cf_woke(struct cf *cf)
{
	cf_late_woke(&cf->left.late, cf_now());
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
