/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef DDPS_SIZED_H
#define DDPS_SIZED_H
/*
 * Structs with a struct_size, which the caller's program was perhaps compiled with another
 * release's headers for: docs/abi.md.
 */
#include <stddef.h>

/* A struct_size that was never set is rarely below; what is above is not looked at. */
#define DDPS_SIZED_MAX 4096

struct ddps_sized {
	size_t now;	     /* this release's sizeof */
	const size_t *known; /* every release's, @now included */
	unsigned nknown;
};

/* The sizes of struct @type, oldest first.  A release that adds a member writes the offset of its
 * first new one in front of sizeof; none is ever taken away. */
#define DDPS_SIZED(type, ...)                                                                      \
	((struct ddps_sized){ sizeof(struct type), (const size_t[]){ __VA_ARGS__ },                \
			      sizeof((const size_t[]){ __VA_ARGS__ }) / sizeof(size_t) })

/* @to: defaults, in as many octets as the caller has. */
void ddps_sized_init(void *to, size_t given, const void *defaults, const struct ddps_sized *s);
/*
 * @to: this release's struct with the defaults in it, which become what @from says.
 * 0, DDPS_E_INVAL (a size that no release has had) or DDPS_E_UNSUPPORTED (something is set behind
 * what this release knows).
 */
int ddps_sized_take(void *to, const void *from, const struct ddps_sized *s);
/* What is filled in for the caller: first whether its size is one, then @from to @to. */
int ddps_sized_check(const void *to, const struct ddps_sized *s);
void ddps_sized_give(void *to, const void *from, const struct ddps_sized *s);

#endif
