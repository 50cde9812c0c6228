/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef DDPS_SAY_H
#define DDPS_SAY_H

/* A line for people on standard error, its end in @fmt.  It is one write, or lines of other processes come between,
 * since a C library may print in pieces of 128 octets.  What is beyond 1024 octets is left out. */
void ddps_say(const char *fmt, ...) __attribute__((cold, format(printf, 1, 2)));

#endif
