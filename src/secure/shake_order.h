/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef DDPS_SECURE_SHAKE_ORDER_H
#define DDPS_SECURE_SHAKE_ORDER_H
/*
 * Who is next, of those that wait for a turn: networks take turns, each with its oldest one, so that a
 * network with many delays another one by one turn only.  Not thread safe.
 */
#include <stdint.h>
#include <sys/queue.h>

/* Part of whoever waits. */
struct ddps_shake_place {
	TAILQ_ENTRY(ddps_shake_place) link;
	uint64_t net;  /* as ddps_share_net has it */
	uint64_t turn; /* in which it is due */
};

struct ddps_shake_order {
	TAILQ_HEAD(ddps_shake_places, ddps_shake_place)
	places;	       /* by their turns, then as they came */
	uint64_t turn; /* the last one of which one was taken */
};

void ddps_shake_order_init(struct ddps_shake_order *o);
/* Looks at all that wait: their number has a bound of its caller's. */
void ddps_shake_order_add(struct ddps_shake_order *o, struct ddps_shake_place *p, uint64_t net);
void ddps_shake_order_del(struct ddps_shake_order *o, struct ddps_shake_place *p);
/* It has its turn now. */
void ddps_shake_order_pick(struct ddps_shake_order *o, struct ddps_shake_place *p);
/* The same for the next one; NULL: nobody waits. */
struct ddps_shake_place *ddps_shake_order_take(struct ddps_shake_order *o);

#endif
