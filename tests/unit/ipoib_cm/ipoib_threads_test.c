/* SPDX-License-Identifier: BSD-2-Clause */
/* Threads that work with libddpsess-ipoib: each with objects of its own, and one that is cancelled. */
#include <criterion/criterion.h>
#include <ddpsess/ipoib_sim.h>
#include <pthread.h>
#include <stdlib.h>
#include "unit/ipoib_cm/ipoib_net_fixture.h"

#define THREADS 4
#define PACKETS 50

/* What a program does on a fabric, from its beginning to its end. */
struct fabric_life {
	struct net net;
	struct ddps_ipoib_if_stats end; /* of the first node */
	unsigned delivered;
	bool over;
};

static void count_delivery(void *user, const void *packet, size_t len)
{
	struct fabric_life *l = user;

	(void)packet;
	(void)len;
	l->delivered++;
}

static struct fabric_life *make_life(uint64_t seed)
{
	struct fabric_life *l = calloc(1, sizeof(*l));

	cr_assert_not_null(l);
	net_init(&l->net, 2, seed, DDPS_IPOIB_RC);
	return l;
}

static void free_life(struct fabric_life *l)
{
	net_fini(&l->net);
	free(l);
}

static void *live_on_fabric(void *arg)
{
	struct fabric_life *l = arg;
	const struct ddps_ipoib_if_calls calls = { sizeof(calls), count_delivery, NULL, l };
	struct net_node *node = l->net.node;
	uint8_t p[3000];

	for (unsigned i = 0; i < 2; i++)
		if (ddps_ipoib_sim_if_start(&node[i].f, l->net.sim, i, &node[i].cfg, &calls))
			return NULL;
	net_run(&l->net, SEC);
	net_packet4(&l->net, p, 0, 1, sizeof(p), false);
	for (unsigned i = 0; i < PACKETS; i++) {
		(void)ddps_ipoib_if_send(node[0].f, p, sizeof(p), ddps_ipoib_sim_now(l->net.sim));
		ddps_ipoib_sim_touch(l->net.sim, 0);
		net_run(&l->net, 100 * MS);
	}
	l->end = *ddps_ipoib_if_stats(node[0].f);
	for (unsigned i = 0; i < 2; i++)
		net_kill(&l->net, i);
	l->over = true;
	return NULL;
}

static void *live_while_cancelled(void *arg)
{
	pthread_cancel(pthread_self());
	live_on_fabric(arg);
	pthread_testcancel();
	return NULL;
}

/* The request to cancel stands from the beginning on. */
Test(ipoib_threads, what_works_in_memory_is_no_cancellation_point)
{
	struct fabric_life *l = make_life(1);
	pthread_t t;
	void *how;

	cr_assert_eq(pthread_create(&t, NULL, live_while_cancelled, l), 0);
	cr_assert_eq(pthread_join(t, &how), 0);
	cr_expect_eq(how, PTHREAD_CANCELED);
	cr_expect(l->over);
	cr_expect_eq(l->delivered, PACKETS);
	free_life(l);
}

/* All at the same time are what each alone is, event by event. */
Test(ipoib_threads, each_thread_has_objects_of_its_own)
{
	struct fabric_life *alone = make_life(7), *l[THREADS];
	pthread_t t[THREADS];

	live_on_fabric(alone);
	cr_assert(alone->over);
	cr_expect_eq(alone->delivered, PACKETS);
	for (unsigned i = 0; i < THREADS; i++) {
		l[i] = make_life(7);
		cr_assert_eq(pthread_create(&t[i], NULL, live_on_fabric, l[i]), 0);
	}
	for (unsigned i = 0; i < THREADS; i++) {
		cr_assert_eq(pthread_join(t[i], NULL), 0);
		cr_expect_eq(l[i]->delivered, PACKETS);
		cr_expect_arr_eq(&l[i]->end, &alone->end, sizeof(alone->end));
		free_life(l[i]);
	}
	free_life(alone);
}
