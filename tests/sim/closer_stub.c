/* SPDX-License-Identifier: BSD-2-Clause */
/* The threads that close what may block, where there is one thread only: each runs, to its end, when it is made. */
#include "sim/kern_in.h"
#include <errno.h>
#include <pthread.h>

int __wrap_pthread_create(pthread_t *t, const pthread_attr_t *attr, void *(*fn)(void *), void *arg);
int __wrap_pthread_create(pthread_t *t, const pthread_attr_t *attr, void *(*fn)(void *), void *arg)
{
	(void)attr;
	if (kern_fails("pthread_create", EAGAIN))
		return errno;
	*t = pthread_self();
	fn(arg);
	return 0;
}
