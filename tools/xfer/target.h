/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef SESSCTL_TARGET_H
#define SESSCTL_TARGET_H
/*
 * URI/NAME as put and get take it.  The name may stand before or after the URI's options:
 *   sctp://host:port/NAME?backend=kernel    sctp://host:port?backend=kernel/NAME
 *    shm:///run/user/1000/x:NAME              shm://@x:NAME
 * In NAME, %XX stands for one octet, so that names with '?' can be said.
 */
#include <stdbool.h>
#include <stddef.h>

#define TARGET_URI_MAX	600
#define TARGET_NAME_MAX 1024 /* more than a server takes, so that it is the one to refuse */

struct target {
	char uri[TARGET_URI_MAX + 1];	/* transport URI without the name */
	char name[TARGET_NAME_MAX + 1]; /* decoded; "" if there is none */
};

/* Return: 0, or -1 with one sentence in @why. */
int target_parse(struct target *t, const char *text, char *why, size_t why_len);

/* The file's argument is a URI, and the URI's is none. */
bool target_is_swapped(const char *file, const char *uri);

/* "-": standard input or output. */
bool target_is_pipe(const char *path);

/* The last component of a path, never NULL ("" for a path that ends in '/'). */
const char *target_basename(const char *path);

#endif
