/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef DDPS_CONFORM_TRACE_H
#define DDPS_CONFORM_TRACE_H
/* What went over the wire in one case, for people and for Wireshark. */
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

struct cf_trace;

struct cf_trace_item {
	struct cf_trace_item *next;
	uint64_t ns; /* from the start of the case */
	bool by_target;
	unsigned conn;
	bool sctp;
	uint16_t stream;
	uint32_t ppid;
	size_t len;
	uint8_t b[];
};

struct cf_trace {
	uint64_t begin;
	struct cf_trace_item *first, **end;
};

struct cf_trace *cf_trace_new(void);
void cf_trace_free(struct cf_trace *t);
/* Out of memory loses the item, no more. */
void cf_trace_tcp(struct cf_trace *t, bool by_target, unsigned conn, const void *p, size_t len);
void cf_trace_sctp(struct cf_trace *t, bool by_target, unsigned conn, uint16_t stream,
		   uint32_t ppid, const void *p, size_t len);

/* The last @max items as "-> octets" (peer) and "<- octets" (target) lines. */
void cf_trace_print(FILE *f, const struct cf_trace *t, size_t max, const char *indent);

/* A pcap file of raw IPv4 packets, made up around the octets; port tells cases apart. */
bool cf_pcap_begin(FILE *f);
bool cf_pcap_add(FILE *f, const struct cf_trace *t, uint16_t port);

#endif
