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
