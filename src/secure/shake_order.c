/* SPDX-License-Identifier: BSD-2-Clause */
/* Turns of those that wait for a step of their handshakes. */
#include "secure/shake_order.h"
#include <stddef.h>

void ddps_shake_order_init(struct ddps_shake_order *o)
{
	TAILQ_INIT(&o->places);
	o->turn = 0;
}

/* The turn behind the last one of @net's. */
static uint64_t find_turn(struct ddps_shake_order *o, uint64_t net)
{
	struct ddps_shake_place *p;

	TAILQ_FOREACH_REVERSE(p, &o->places, ddps_shake_places, link)
		if (p->net == net)
			return p->turn + 1;
	return o->turn + 1;
}

void ddps_shake_order_add(struct ddps_shake_order *o, struct ddps_shake_place *p, uint64_t net)
{
	struct ddps_shake_place *before = TAILQ_LAST(&o->places, ddps_shake_places);

	p->net = net;
	p->turn = find_turn(o, net);
	while (before && before->turn > p->turn)
		before = TAILQ_PREV(before, ddps_shake_places, link);
	if (before)
		TAILQ_INSERT_AFTER(&o->places, before, p, link);
	else
		TAILQ_INSERT_HEAD(&o->places, p, link);
}

void ddps_shake_order_del(struct ddps_shake_order *o, struct ddps_shake_place *p)
{
	TAILQ_REMOVE(&o->places, p, link);
}

void ddps_shake_order_pick(struct ddps_shake_order *o, struct ddps_shake_place *p)
{
	TAILQ_REMOVE(&o->places, p, link);
	if (p->turn > o->turn)
		o->turn = p->turn;
}

struct ddps_shake_place *ddps_shake_order_take(struct ddps_shake_order *o)
{
	struct ddps_shake_place *p = TAILQ_FIRST(&o->places);

	if (p)
		ddps_shake_order_pick(o, p);
	return p;
}
