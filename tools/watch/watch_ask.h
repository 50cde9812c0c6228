/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef SESSCTL_WATCH_ASK_H
#define SESSCTL_WATCH_ASK_H
/* What the sockets of some directories say.  Whoever owns one may put anything there. */
#include "watch/watch.h"
#include <stdbool.h>

struct watch_place {
	uid_t uid;
	char path[128];
	/* watch_ask's */
	/* Those of sockets, as two numbers; and how many it has, and have been looked at. */
	struct watch_name *names;
	size_t count, at;
	unsigned asked; /* sockets that have not answered yet */
	uint64_t left;	/* what its answers may still cost */
	size_t most;	/* names that are read */
	bool listed;	/* its names have been read */
	bool over;	/* no name is left */
};

typedef bool watch_meant(const struct watch_target *t, const json_t *answer);

/* Ask each socket of @places that belongs to its user and listens for him.  What @t names and @meant
 * wants is in the object, as watch_find says. */
json_t *watch_ask(const struct watch_target *t, watch_meant *meant, struct watch_place *places,
		  size_t count, struct watch_trouble *trouble);

/* A directory, not a link to one, to which nobody but its owner may write: *@owner, who has to be *@uid if that
 * is not NULL.  -1: there is a fault. */
int watch_open_place(const char *path, const uid_t *uid, uid_t *owner, enum watch_fault *f);

/* Count a fault at @dir, or at @name in it; WATCH_SYSTEM takes errno. */
void watch_met(struct watch_trouble *t, enum watch_fault f, const char *dir, const char *name);

#endif
