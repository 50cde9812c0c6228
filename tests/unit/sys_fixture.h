/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef SYS_FIXTURE_H
#define SYS_FIXTURE_H
#include <stdbool.h>
#include <stddef.h>

/* Calls of the system that fail, and libraries that a test stands in for; each test is a process. */

/*
 * After @good calls of @name, the next @bad ones fail with @err; NULL: none fails.  The names: socket,
 * setsockopt, bind, ioctl, sendto, sendmsg, sendmmsg, recvmmsg, getifaddrs, mmap.
 */
void sys_fail(const char *name, unsigned good, unsigned bad, int err);
/* How many have failed since. */
unsigned sys_failed(void);

struct dl_symbol {
	const char *name;
	void (*at)(void);
};

#define DL_SYMBOL(name, at)                                                                        \
	{                                                                                          \
		name, (void (*)(void))(at)                                                         \
	}

/* dlopen() of @library finds these; none: it finds no such library.  The last has no name. */
void dl_replace(const char *library, const struct dl_symbol *symbols);
/* One that they do not have after all; NULL: they have all. */
void dl_lacks(const char *symbol);
/* Replaced libraries that are open. */
int dl_open_now(void);

#endif
