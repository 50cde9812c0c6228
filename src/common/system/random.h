/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef DDPS_RANDOM_H
#define DDPS_RANDOM_H
#include <stddef.h>

/*
 * Octets that nobody can predict, all of them: a signal may end the system's call with some or none,
 * and then the rest is drawn, too.  May block until the kernel has collected enough, once after boot.
 * Return: 0, or DDPS_E_SYSTEM with errno.
 */
int ddps_random(void *buf, size_t len);

#endif
