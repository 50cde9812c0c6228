/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef SCHED_IN_H
#define SCHED_IN_H
/* Inside the scheduler: sched.c (who goes on, runs), sched_calls.c (what threads meet at). */
#include "sched/sched.h"

struct thread;

extern struct thread *sched_current;
/* Asleep until @ready or, then false, until then. */
bool sched_block(bool (*ready)(void *arg), void *arg, uint64_t until);
/* A lock was given back. */
void sched_released(void);
/* A new run: nobody holds a lock, nobody sleeps. */
void sched_calls_start(void);

#endif
