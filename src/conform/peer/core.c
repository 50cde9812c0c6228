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

int cf_ms_left(const struct cf *cf, uint64_t since)
{
	uint64_t gone = (cf_now() - since) / 1000000;

	return gone < cf->run->limit_ms ? (int)(cf->run->limit_ms - gone) : 0;
}

int cf_left(struct cf *cf, uint64_t since, const char *what)
{
	int left = cf_ms_left(cf, since);

	if (!left) {
		(void)cf_nap(cf, since, 0); /* what was lost since the last one counts */
		cf_fail(cf, "waited %u ms for %s", cf->run->limit_ms, what);
	}
	return cf_provoked_left(cf, left);
}

int cf_nap(struct cf *cf, uint64_t key, int ms)
{
	return cf_late_nap(&cf->late, key, cf_now(), ms);
}

void cf_woke(struct cf *cf)
{
	cf_late_woke(&cf->late, cf_now());
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
