/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef DDPS_WATCH_IN_H
#define DDPS_WATCH_IN_H
/* What the files of the watch share: see ddpsess/watch.h. */
#include "session/session.h"
#include <ddpsess/watch.h>
#include <stdio.h>
#include <sys/types.h>
#include <sys/un.h>

#define DDPS_WATCH_LABEL 64
#define DDPS_WATCH_NAME	 32

/* ---- where (watch_dir.c) ---- */

/* The socket: made under a name that nobody looks at, then given its own, so that whoever removes
 * sockets on which nobody listens never meets one that is being made. */
struct ddps_watch_place {
	char dir[80]; /* a socket's address is 108 octets */
	char path[sizeof(((struct sockaddr_un *)0)->sun_path)];
};

/* The directory, made if need be.  0, DDPS_E_INVAL, DDPS_E_ACCESS, DDPS_E_SYSTEM. */
int ddps_watch_dir(struct ddps_watch_place *pl, const char *where);
/* Listen below it.  The descriptor, or DDPS_E_SYSTEM, DDPS_E_INVAL. */
int ddps_watch_listen(struct ddps_watch_place *pl);
/* Remove what processes that are gone have left. */
void ddps_watch_sweep(const struct ddps_watch_place *pl);

/* ---- what (watch_tell.c) ---- */

/* Takes a piece of the answer.  Return false: no more is wanted. */
typedef bool ddps_watch_put(void *user, const char *text, size_t len);

/* What the program adds, under the context's lock; no @fn: nothing. */
struct ddps_watch_own {
	char name[DDPS_WATCH_NAME];
	ddps_watch_fn *fn;
	void *user;
};

struct ddps_watch_subject {
	struct ddps_ctx *ctx;
	const char *label;
	uint64_t since;
	const struct ddps_watch_own *own;
};

/* Its state as one line of JSON. */
void ddps_watch_tell(const struct ddps_watch_subject *s, ddps_watch_put *put, void *user);

#endif
