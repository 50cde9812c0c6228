/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef DDPS_CONFORM_TRACE_H
#define DDPS_CONFORM_TRACE_H
/* What went over the wire in one case. */
#include <ddpsess/conform.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct cf_trace;

struct cf_trace *cf_trace_new(void);
void cf_trace_free(struct cf_trace *t);
/* Out of memory loses the item, no more. */
void cf_trace_tcp(struct cf_trace *t, bool by_target, unsigned conn, const void *p, size_t len);
void cf_trace_sctp(struct cf_trace *t, bool by_target, unsigned conn, uint16_t stream,
		   uint32_t ppid, const void *p, size_t len);
/* A whole SCTP packet; @wrong: malformed on purpose. */
void cf_trace_packet(struct cf_trace *t, bool by_target, unsigned conn, bool wrong, const void *p,
		     size_t len);
/* An IPv4 packet with UDP and InfiniBand in it. */
void cf_trace_ib(struct cf_trace *t, bool by_target, const void *p, size_t len);

/* NULL: it is empty. */
const struct ddps_conform_item *cf_trace_first(const struct cf_trace *t);

#endif
