/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef DDPS_SIZED_H
#define DDPS_SIZED_H
/*
 * Public structs with a struct_size in front: the caller's program was perhaps compiled with
 * another release's headers.  The rules: docs/abi.md.
 */
#include <stddef.h>

/* A struct_size that was never set is rarely below; what is above is not looked at. */
#define DDPS_SIZED_MAX 4096

struct ddps_sized {
	size_t now;	     /* this release's sizeof */
	const size_t *known; /* every release's, @now included */
	unsigned nknown;
};

/* The sizes of struct @type, oldest first.  A release that adds members writes the offset of its
 * first new one in front of sizeof; none is ever taken away. */
#define DDPS_SIZED(type, ...)                                                                      \
	((struct ddps_sized){ sizeof(struct type), (const size_t[]){ __VA_ARGS__ },                \
			      sizeof((const size_t[]){ __VA_ARGS__ }) / sizeof(size_t) })

/* Nothing may be behind the last member: a later one would be there, and the size the same. */
#define DDPS_SIZED_NO_TAIL(type, last)                                                             \
	_Static_assert(offsetof(struct type, last) + sizeof(((struct type *)0)->last) ==           \
			       sizeof(struct type),                                                \
		       #type " needs a reserve at its end")

/* For struct @type of parameters, whose type##_defaults() there is: the public initialiser, and
 * type##_take, which makes the caller's, or with NULL the defaults, one of this release. */
#define DDPS_SIZED_FUNCTIONS(type, last, ...)                                                      \
	DDPS_SIZED_NO_TAIL(type, last);                                                            \
                                                                                                   \
	void type##_init_sized(struct type *p, size_t size)                                        \
	{                                                                                          \
		const struct type defaults = type##_defaults();                                    \
                                                                                                   \
		ddps_sized_init(p, size, &defaults, &DDPS_SIZED(type, __VA_ARGS__));               \
	}                                                                                          \
                                                                                                   \
	int type##_take(struct type *to, const struct type *from)                                  \
	{                                                                                          \
		*to = type##_defaults();                                                           \
		return from ? ddps_sized_take(to, from, &DDPS_SIZED(type, __VA_ARGS__)) : 0;       \
	}

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
