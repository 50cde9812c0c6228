/* SPDX-License-Identifier: BSD-2-Clause */
#include "common/system/thread.h"
#include "common/system/lock.h"
#include <ifaddrs.h>
#include <signal.h>

int ddps_thread_start(pthread_t *t, const pthread_attr_t *attr, void *(*run)(void *arg), void *arg)
{
	sigset_t most, old;
	int err;

	sigfillset(&most);
	sigdelset(&most, SIGSEGV);
	sigdelset(&most, SIGBUS);
	pthread_sigmask(SIG_SETMASK, &most, &old);
	ddps_uncancellable_by_others();
	err = pthread_create(t, attr, run, arg);
	ddps_uncancellable_end();
	pthread_sigmask(SIG_SETMASK, &old, NULL);
	return err;
}

int ddps_interfaces(struct ifaddrs **all)
{
	int err;

	ddps_uncancellable();
	err = getifaddrs(all);
	ddps_uncancellable_end();
	return err;
}
