/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef DDPS_THREAD_H
#define DDPS_THREAD_H
/* Threads of the library's. */
#include <pthread.h>

struct ifaddrs;

/*
 * A thread with signals blocked: they are for the program's threads, one of which may wait for one.  Not faults,
 * which are this thread's own: a handler of the program's sees them.  @attr may be NULL.  Return: 0 or an errno.
 */
int ddps_thread_start(pthread_t *t, const pthread_attr_t *attr, void *(*run)(void *arg), void *arg);

/* getifaddrs(), which is a cancellation point and would leave its socket: no thread is cancelled in this one. */
int ddps_interfaces(struct ifaddrs **all);

#endif
