/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef DDPS_SECURE_SHAKE_GATE_H
#define DDPS_SECURE_SHAKE_GATE_H
/*
 * Which handshakes of peers may be under way: a handshake costs a millisecond and some 80 KiB, and a
 * stranger needs 250 octets to ask for one.  So few are under way, the others wait, and networks take
 * turns.  A network whose handshakes come to nothing may begin 200 a second; one that succeeds is not
 * counted.  No I/O, no clock, no memory of its own.  Not thread safe.
 */
#include "secure/shake_order.h"
#include <stdbool.h>

#define DDPS_GATE_PLACES 64u
#define DDPS_GATE_RATE	 200u /* a second, of a network */
#define DDPS_GATE_MS	 500u /* that a peer has to answer if others wait */
#define DDPS_GATE_NETS	 128u /* whose failures are remembered */

/* Part of a handshake. */
struct ddps_gate_pass {
	struct ddps_shake_place place; /* while it waits */
	enum { DDPS_GATE_OUT, DDPS_GATE_WAITS, DDPS_GATE_IN } at;
	uint64_t
		idle; /* the user's: since when its peer is to send something, in ns; 0: it is not */
};

struct ddps_gate {
	struct ddps_shake_order waiting;
	struct ddps_gate_pass *in[DDPS_GATE_PLACES]; /* as they came in */
	unsigned n;
	struct {
		uint64_t net, paid; /* @paid: ns; when nothing is owed any more */
	} debts[DDPS_GATE_NETS];
};

void ddps_gate_init(struct ddps_gate *g);
/* It waits now.  Looks at all that do: their number has a bound of its caller's. */
void ddps_gate_wait(struct ddps_gate *g, struct ddps_gate_pass *p, uint64_t net);
/* The first one that waits, or NULL. */
struct ddps_gate_pass *ddps_gate_waiter(const struct ddps_gate *g);
/*
 * The next one comes in: its pass, or NULL.  Then @later is when to ask again although nobody has left,
 * in ns, or 0.  It is of the network that has fewest places.
 */
struct ddps_gate_pass *ddps_gate_next(struct ddps_gate *g, uint64_t now, uint64_t *later);
/*
 * All places are taken: which one has to leave for the next one.  It is the oldest that is idle of the network
 * that has most, if these are two more than the next one's at least; or, if the next one's network has none, the one
 * that has been idle longest, of DDPS_GATE_MS at least.  NULL: none.  @later: as above, or as it was.
 */
struct ddps_gate_pass *ddps_gate_first_to_go(const struct ddps_gate *g, uint64_t now,
					     uint64_t *later);
/* It waits no more, or leaves.  @well: it succeeded, and is not held against its network.  Idempotent. */
void ddps_gate_leave(struct ddps_gate *g, struct ddps_gate_pass *p, bool well);

#endif
