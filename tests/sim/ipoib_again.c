/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Nodes that were away for some time and come again, where nothing fails: what they were is in the
 * others' memory.  Yet soon after one of two has asked the other one, they have a connection: as no
 * message is lost, no timer of one that might be has a part in that.
 */
#include "sim/ipoib_world.h"

#define STEP	 (50 * MS)
#define PATIENCE (40 * SEC) /* for a first REQ to a node that does not ask itself */
#define TIMES	 4u

void chatter(uint64_t span, struct node *n, enum who speaks)
{
	const uint64_t end = world.now + span;

	while (world.now < end && !world.failed) {
		for (unsigned i = 0; i < world.n; i++) {
			if (i == n->i || world.node[i].away)
				continue;
			if (speaks != ALONE)
				send_ip(&world.node[i], n->i, 100);
			if (speaks != OTHERS)
				send_ip(n, i, 100);
		}
		run_until(world.now + STEP);
	}
}

/* A second after a refusal, and what an answer to a REQ may take. */
static uint64_t bound(void)
{
	return SEC + 400 * MS + 4 * (4096ull << world.life);
}

/* When the first REQ between the two came where it was to go; 0: none has. */
static uint64_t note_node_asked(const struct node *a, const struct node *b)
{
	uint64_t x = a->asked_at[b->i], y = b->asked_at[a->i];

	return !x || (y && y < x) ? y : x;
}

/*
 * Have @n and all that can have one with it had a connection?  In time?  One may have ended since: @n
 * says nothing, and UC has no answers.  @had: of whom that is known.
 */
static bool together(const struct node *n, bool had[NODES])
{
	bool all = true;

	for (unsigned i = 0; i < world.n; i++) {
		const struct node *o = &world.node[i];
		uint64_t at = note_node_asked(n, o);

		had[i] |= connections(n, i) && connections(o, n->i);
		if (o == n || had[i] || !(o->mode & n->mode))
			continue;
		all = false;
		check(!at || world.now - at <= bound(),
		      "node %u came again, and has no connection with node %u %.3f s after a REQ",
		      n->i, i, (double)(world.now - at) / 1e9);
	}
	return all;
}

static void forget_asked(void)
{
	for (unsigned i = 0; i < world.n; i++)
		memset(world.node[i].asked_at, 0, sizeof world.node[i].asked_at);
}

/* Return: connections that have ended before its address was its own: who asked for it gave up. */
static uint64_t wait_until_held(struct node *n, enum who speaks)
{
	struct ddps_ipoib_if_addr_info info;

	do
		chatter(STEP, n, speaks);
	while (ddps_ipoib_if_addr_info(n->f, 0, &info) > 0 && !info.held && !world.failed);
	return ddps_ipoib_if_stats(n->f)->conn_down;
}

/* Return: as wait_until_held() */
uint64_t comes_again(struct node *n, enum who speaks)
{
	bool had[NODES] = { false };
	uint64_t end, vain;

	forget_asked();
	begin(n);
	end = world.now + PATIENCE;
	vain = wait_until_held(n, speaks);
	while (!together(n, had) && world.now < end && !world.failed)
		chatter(STEP, n, speaks);
	check(world.now < end, "node %u came again, and is not asked", n->i);
	return vain;
}

/* @n has made one connection with each that can have one: none but @vain was in vain. */
static void once(const struct node *n, uint64_t vain)
{
	const uint64_t up = ddps_ipoib_if_stats(n->f)->conn_up - vain;
	unsigned others = 0;

	for (unsigned i = 0; i < world.n; i++)
		others += i != n->i && (world.node[i].mode & n->mode);
	check(up == others, "node %u came again, and has made %u connections with %u nodes", n->i,
	      (unsigned)up, others);
}

/* Somebody else goes, too; both come again, each with the other's LID. */
static void swaps(struct node *n)
{
	struct node *o = &world.node[1 + sim_like(world.n - 1)];

	if (o == n)
		return;
	finish(o);
	swap(n, o);
	chatter(sim_like(3 * SEC), n, OTHERS);
	begin(o);
}

void again(void)
{
	world.slow_cm = 13; /* 17 s: nothing is lost */
	for (unsigned k = 0; k < TIMES && !world.failed; k++) {
		/* Not the first: others need time until they are known to its administration. */
		struct node *n = &world.node[1 + draw_ipoib_world(world.n - 1)];
		const enum who speaks = draw_ipoib_world(2) ? OTHERS : BOTH;
		uint64_t vain;

		finish(n);
		if (sim_happens(SIM_moves, 0, world.draws++, 0.3))
			moves(n);
		else if (sim_happens(SIM_moves, 0, world.draws++, 0.2))
			swaps(n);
		chatter(draw_ipoib_world(draw_ipoib_world(2) ? 3 * SEC : 15 * SEC), n, OTHERS);
		vain = comes_again(n, speaks);
		chatter(draw_ipoib_world(SEC), n, BOTH);
		if (speaks == BOTH)
			once(n, vain);
	}
}

/* ---- greedy ---- */

/*
 * A node that asks its peers to keep what is over for hours, and that ends connections one behind the
 * other: more than they have places.  The others have theirs nevertheless.
 */

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

/* ---- tight ---- */

/*
 * Sockets that are full for a moment, where nothing else fails: what did not leave leaves when there is
 * room, and so no packet of a connection is sent twice.  Nobody has to wait for a timer.
 */

#define TIGHT_STEP (20 * MS)
#define STEPS	   100u

/* Packets of connections that were sent again, by all nodes. */
static uint64_t repeated(void)
{
	uint64_t sum = 0, value;
	const char *name;

	for (unsigned i = 0; i < world.n; i++)
		for (unsigned k = 0; (name = ddps_ib_node_counter(world.node[i].n, k, &value)); k++)
			sum += strcmp(name, "qp_again") ? 0 : value;
	return sum;
}

void tight(void)
{
	uint64_t before = repeated(), again;

	if (draw_ipoib_world(4))
		return;
	world.tight = 1 + draw_ipoib_world(7);
	for (unsigned k = 0; k < STEPS && !world.failed; k++) {
		for (unsigned i = 0; i < world.n * world.n; i++)
			if (i / world.n != i % world.n)
				send_ip(&world.node[i / world.n], i % world.n,
					100 + draw_ipoib_world(1900));
		run_until(world.now + TIGHT_STEP);
	}
	world.tight = 0;
	again = repeated() - before;
	check(!again, "%" PRIu64 " packets are sent again, and none was lost", again);
	run_until(world.now + SEC);
}

/* ---- timers ---- */

/*
 * When a REQ comes again, where nothing fails: once its answer could be here (IBA volume 1, 12.9.8: the
 * way there and back, and what the REQ gives the peer's connection manager), no later, and no more
 * often than it says.  It may come earlier after what shows that no answer will come.
 */

#define EARLY (100 * MS)

/* Of the lifetime that nodes say of paths. */
static uint64_t answer_time(const struct ddps_cm_req *req)
{
	return (2 * 4096ull << world.life) + (4096ull << req->remote_cm_timeout);
}

void timers(struct node *n, const struct ddps_ib_pkt *p)
{
	struct asking *a;
	struct ddps_cm_mad m;
	uint64_t time, gap;

	if (p->qpn != DDPS_IB_GSI_QPN || ddps_cm_mad_decode(&m, p->data, p->len) ||
	    m.hdr.attr_id != DDPS_CM_REQ)
		return;
	a = &n->asking[m.u.req.local_id % ASKING];
	if (a->id != m.u.req.local_id || a->life != n->life) {
		*a = (struct asking){ .id = m.u.req.local_id, .life = n->life, .at = world.now };
		return;
	}
	time = answer_time(&m.u.req);
	gap = world.now - a->at;
	check(gap <= time, "a REQ of node %u comes again after %.6f s, not %.6f", n->i,
	      (double)gap / 1e9, (double)time / 1e9);
	check(gap == time || gap >= EARLY, "a REQ of node %u comes again after %.6f s, not %.6f",
	      n->i, (double)gap / 1e9, (double)time / 1e9);
	check(++a->again <= m.u.req.max_cm_retries, "a REQ of node %u comes again %u times", n->i,
	      a->again);
	a->at = world.now;
}
