/* SPDX-License-Identifier: BSD-2-Clause */
/* What comes by itself: rules with "at", and what other rules have put off.  One thread. */
#include "edge/ed.h"
#include <string.h>
#include <unistd.h>

/* For one queue pair or all; what is about the device comes once. */
static void fire(const struct vf_rule *rule)
{
	struct ed_subject s = { .opcode = VF_NOT_SAID };

	if (ed_is_once(rule)) {
		ed_do(rule, &s);
		return;
	}
	for (struct ed_qp *q = ed_qp_next(NULL); q; q = ed_qp_next(q)) {
		s.qp = q;
		if (!rule->when.qp || rule->when.qp == q->number)
			ed_do(rule, &s);
	}
}

static uint64_t rules_due(uint64_t now)
{
	uint64_t next = UINT64_MAX;

	for (unsigned i = 0; i < ed.rules.n; i++) {
		const struct vf_rule *rule = &ed.rules.rule[i];
		uint64_t due = ed.begun + rule->when.after_ms;

		if (rule->when.point != VF_TIME || ed.done[i])
			continue;
		if (due > now) {
			next = due < next ? due : next;
			continue;
		}
		ed.done[i] = true;
		ed_tell_time(rule);
		fire(rule);
	}
	return next;
}

static uint64_t get_least_time(uint64_t a, uint64_t b)
{
	return a < b ? a : b;
}

static void *run_edge_clock(void *arg)
{
	(void)arg;
	for (;;) {
		uint64_t now = ed_ms();
		uint64_t next = get_least_time(get_least_time(rules_due(now), ed_recvs_due(now)),
					       ed_events_due(now));
		struct timespec until;

		next = get_least_time(next, ed_rnr_due(now));
		ddps_lock(&ed.lock);
		next = get_least_time(next, ed_completions_due(now));
		until = (struct timespec){ (time_t)(next / 1000), (long)(next % 1000) * 1000000 };
		if (!ed.news && next == UINT64_MAX)
			pthread_cond_wait(&ed.wake, &ed.lock.m);
		else if (!ed.news)
			pthread_cond_timedwait(&ed.wake, &ed.lock.m, &until);
		ed.news = false;
		ddps_unlock(&ed.lock);
	}
	return NULL;
}

/* A child of fork has no clock yet. */
void ed_clock_wake(void)
{
	ddps_lock(&ed.lock);
	ed.news = true;
	if (ed.clock == getpid())
		pthread_cond_signal(&ed.wake);
	else if (!vd_thread(run_edge_clock, NULL))
		ed.clock = getpid();
	ddps_unlock(&ed.lock);
}
