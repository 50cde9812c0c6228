/* SPDX-License-Identifier: BSD-2-Clause */
/* sessctl perf --parallel: threads that begin and end together. */
#include "report/meet.h"
#include <criterion/criterion.h>

#define THREADS 4
#define ROUNDS	200

static struct meet m = MEET_INIT(THREADS);
static unsigned round_of[THREADS];
static unsigned behind, whole_rounds[THREADS];

/* Nobody is in another round than whoever comes out of a meeting. */
static void *walk_through_meetings(void *arg)
{
	unsigned me = *(unsigned *)arg;

	for (unsigned r = 1; r <= ROUNDS; r++) {
		__atomic_store_n(&round_of[me], r, __ATOMIC_RELAXED);
		whole_rounds[me] += meet_all(&m);
		for (unsigned i = 0; i < THREADS; i++)
			if (__atomic_load_n(&round_of[i], __ATOMIC_RELAXED) != r)
				__atomic_fetch_add(&behind, 1, __ATOMIC_RELAXED);
		meet_all(&m);
	}
	return NULL;
}

static void run_sessctl_meet(void *(*fn)(void *))
{
	unsigned id[THREADS];
	pthread_t t[THREADS];

	for (unsigned i = 0; i < THREADS; i++) {
		id[i] = i;
		cr_assert_eq(pthread_create(&t[i], NULL, fn, &id[i]), 0);
	}
	for (unsigned i = 0; i < THREADS; i++)
		pthread_join(t[i], NULL);
}

Test(sessctl_meet, nobody_goes_on_alone, .timeout = 30)
{
	run_sessctl_meet(walk_through_meetings);
	cr_expect_eq(behind, 0);
	for (unsigned i = 0; i < THREADS; i++)
		cr_expect_eq(whole_rounds[i], ROUNDS);
}

/* One fails in the middle; the others come to know, and wait for it no more. */
static void *until_one_leaves(void *arg)
{
	unsigned me = *(unsigned *)arg;

	for (unsigned r = 0; r < ROUNDS; r++) {
		if (me == 2 && r == 7) {
			meet_leave(&m);
			break;
		}
		if (!meet_all(&m))
			break;
		whole_rounds[me]++;
	}
	return NULL;
}

Test(sessctl_meet, nobody_waits_for_whoever_left, .timeout = 30)
{
	run_sessctl_meet(until_one_leaves);
	for (unsigned i = 0; i < THREADS; i++)
		cr_expect_eq(whole_rounds[i], 7, "%u", i);
}
