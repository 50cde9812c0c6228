/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A node that asks its peers to keep what is over for hours, and that ends connections one behind the
 * other: more than they have places.  The others have theirs nevertheless.
 */
#include "sim/ipoib_world.h"

#define STEP	(50 * MS)
#define UNHEARD (140 * SEC) /* what answers to a REQ may take in all: 16 of 8.6 s */

bool greed(const struct node *n, struct ddps_ib_pkt *p, uint8_t data[DDPS_CM_MAD_LEN])
{
	struct ddps_cm_mad m;

	if (n != world.greedy || p->qpn != DDPS_IB_GSI_QPN ||
	    ddps_cm_mad_decode(&m, p->data, p->len))
		return true;
	if (m.hdr.attr_id == DDPS_CM_RTU)
		return !world.no_rtu;
	if (m.hdr.attr_id != DDPS_CM_REQ)
		return true;
	m.u.req.local_cm_timeout = m.u.req.primary.ack_timeout = DDPS_CM_TIME_MAX;
	m.u.req.max_cm_retries = 15;
	check(!ddps_cm_mad_encode(data, &m), "a REQ that asks for hours");
	p->data = data;
	return true;
}

/* As many connections as a peer has places, and two more: it ends or forgets each. */
static void waste(struct node *n, bool ends)
{
	for (unsigned k = 0; k < 2 * world.n + 2 && !world.failed; k++) {
		/* whoever leaves out RTUs has to be the one that asks */
		chatter(3 * STEP, n, world.no_rtu ? ALONE : BOTH);
		if (!ends) {
			finish(n);
			begin(n);
			continue;
		}
		ddps_ipoib_if_stop(n->f, world.now);
		run_until(world.now + STEP);
		check(!ddps_ipoib_if_start(n->f, world.now), "it does not start again");
	}
}

/* No RTU comes for what it has asked for, while the others have something to say to it. */
static void unheard(struct node *n)
{
	const uint64_t end = world.now + UNHEARD;

	while (world.now < end && !world.failed) {
		for (unsigned i = 0; i < world.n; i++)
			if (i != n->i)
				send_ip(&world.node[i], n->i, 100);
		run_until(world.now + SEC);
	}
}

void greedy(void)
{
	struct node *n = &world.node[1 + draw_ipoib_world(world.n - 1)];
	struct node *other = &world.node[1 + draw_ipoib_world(world.n - 1)];
	const unsigned way = (unsigned)draw_ipoib_world(4);

	if (!world.few_qps || draw_ipoib_world(2))
		return;
	world.greedy = n;
	if (!way) { /* no place is a connection's of before */
		finish(n);
		begin(n);
	}
	world.no_rtu = !way;
	waste(n, way > 1);
	if (world.no_rtu)
		unheard(n);
	if (world.failed)
		return;
	world.no_rtu = false;
	finish(other);
	chatter(draw_ipoib_world(SEC), other, OTHERS);
	comes_again(other, BOTH);
}
