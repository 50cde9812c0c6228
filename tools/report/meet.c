/* SPDX-License-Identifier: BSD-2-Clause */
/* A barrier that threads may leave for good. */
#include "report/meet.h"

/* Under the lock. */
static void next_round(struct meet *m)
{
	m->here = 0;
	m->whole = !m->gone; /* of this round: whoever leaves from now on has met all */
	m->round++;
	pthread_cond_broadcast(&m->all);
}

bool meet_all(struct meet *m)
{
	uint64_t round;
	bool whole;

	pthread_mutex_lock(&m->lock);
	round = m->round;
	if (++m->here + m->gone == m->n)
		next_round(m);
	while (m->round == round)
		pthread_cond_wait(&m->all, &m->lock);
	whole = m->whole; /* the next round ends with this thread, too, not before */
	pthread_mutex_unlock(&m->lock);
	return whole;
}

void meet_leave(struct meet *m)
{
	pthread_mutex_lock(&m->lock);
	m->gone++;
	if (m->here && m->here + m->gone == m->n)
		next_round(m);
	pthread_mutex_unlock(&m->lock);
}
