/* SPDX-License-Identifier: BSD-2-Clause */
/* The record of a case's octets. */
#include "conform/peer/trace.h"
#include "conform/peer/inside.h"
#include <stdlib.h>
#include <string.h>

struct item {
	struct ddps_conform_item shown;
	uint8_t b[];
};

struct cf_trace {
	uint64_t begin;
	const struct ddps_conform_item *first, **end;
};

struct cf_trace *cf_trace_new(void)
{
	struct cf_trace *t = calloc(1, sizeof *t);

	if (!t)
		return NULL;
	t->begin = cf_now();
	t->end = &t->first;
	return t;
}

void cf_trace_free(struct cf_trace *t)
{
	if (!t)
		return;
	while (t->first) {
		const struct ddps_conform_item *i = t->first;

		t->first = i->next;
		free((void *)(uintptr_t)i); /* it was allocated here */
	}
	free(t);
}

static struct ddps_conform_item *add_item(struct cf_trace *t, bool by_target, unsigned conn,
					  const void *p, size_t len)
{
	struct item *at = calloc(1, sizeof *at + len);
	struct ddps_conform_item *i;

	if (!at)
		return NULL;
	i = &at->shown;
	i->octets = at->b;
	i->ns = cf_now() - t->begin;
	i->by_target = by_target;
	i->connection = conn;
	i->wire = DDPS_CONFORM_TCP;
	i->len = len;
	if (len)
		memcpy(at->b, p, len);
	*t->end = i;
	t->end = &i->next;
	return i;
}

void cf_trace_tcp(struct cf_trace *t, bool by_target, unsigned conn, const void *p, size_t len)
{
	add_item(t, by_target, conn, p, len);
}

void cf_trace_sctp(struct cf_trace *t, bool by_target, unsigned conn, uint16_t stream,
		   uint32_t ppid, const void *p, size_t len)
{
	struct ddps_conform_item *i = add_item(t, by_target, conn, p, len);

	if (!i)
		return;
	i->wire = DDPS_CONFORM_SCTP;
	i->stream = stream;
	i->ppid = ppid;
}

void cf_trace_packet(struct cf_trace *t, bool by_target, unsigned conn, bool wrong, const void *p,
		     size_t len)
{
	struct ddps_conform_item *i = add_item(t, by_target, conn, p, len);

	if (!i)
		return;
	i->wire = DDPS_CONFORM_PACKET;
	i->wrong = wrong;
}

void cf_trace_ib(struct cf_trace *t, bool by_target, const void *p, size_t len)
{
	struct ddps_conform_item *i = add_item(t, by_target, 0, p, len);

	if (i)
		i->wire = DDPS_CONFORM_IB;
}

const struct ddps_conform_item *cf_trace_first(const struct cf_trace *t)
{
	return t->first;
}
