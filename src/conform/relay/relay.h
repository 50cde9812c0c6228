/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef DDPS_CONFORM_RELAY_H
#define DDPS_CONFORM_RELAY_H
/*
 * A relay between a known good partner and the target: it hands on what either says, and does to
 * it what a network may do.  TCP connections are handed on as octets, SCTP in UDP as datagrams.
 *
 * A relay has a thread of its own, and listens on 127.0.0.1.
 */
#include "conform/peer/trace.h"
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/socket.h>

/* What happens once, to what goes to the target. */
enum cf_stroke {
	CF_NO_STROKE,
	CF_FLIP, /* TCP: one bit of that octet */
	CF_FIN,	 /* TCP: the stream ends in front of that octet */
	CF_RST,	 /* TCP: both connections are reset there */
	CF_STALL /* from there on nothing goes through, either way, for @stall_ms */
};

struct cf_relay_plan {
	uint32_t seed;
	unsigned piece;		    /* TCP: each call sends 1 to so many octets; 0: what there is */
	unsigned jitter_ms;	    /* what comes waits for 0 to so long; datagrams overtake */
	unsigned lose, twice, flip; /* datagrams, of a thousand each way */
	enum cf_stroke stroke;
	uint64_t at;	   /* TCP: octet of each connection's stream; UDP: datagram; from 0 */
	unsigned stall_ms; /* TCP: what came is sent afterwards; UDP: it is lost */
};

/* What a relay has done. */
struct cf_relay_sum {
	uint64_t connections, refused; /* the target's answer to the relay's own connect */
	uint64_t passed, lost, doubled, flipped, strokes;
};

struct cf_relay;

/*
 * Between whoever comes to its port and @to, over UDP or TCP.  What goes to and from the target is
 * noted in @trace as that of connection @number and the next ones, which must not be read before the relay is freed.  NULL: @why says so.
 */
struct cf_relay *cf_relay_new(const struct cf_relay_plan *plan, bool udp,
			      const struct sockaddr_storage *to, socklen_t to_len,
			      struct cf_trace *trace, unsigned number, char *why, size_t why_len);
uint16_t cf_relay_port(const struct cf_relay *r);
/* Any thread, at any time. */
struct cf_relay_sum cf_relay_done(struct cf_relay *r);
/* Why the target was not reached, if it was not. */
const char *cf_relay_refused(struct cf_relay *r);
/* Resets what is still connected. */
void cf_relay_free(struct cf_relay *r);

#endif
