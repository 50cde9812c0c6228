/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef SESSCTL_WATCH_CMD_H
#define SESSCTL_WATCH_CMD_H
/* sessctl stat and top: what the processes tell that let themselves be watched (ddpsess/watch.h). */
#include "cli/out/out.h"
#include <jansson.h>
#include <sys/socket.h>
#include <sys/types.h>

/* Whom they are about: a process, who listens at a URI, or, if neither is set, everybody. */
#define WATCH_ADDRESSES 32

struct watch_target {
	pid_t pid;
	const char *uri;
	struct sockaddr_storage at[WATCH_ADDRESSES]; /* of the URI's host */
	unsigned addresses;
};

/* ---- watch_find.c ---- */

/* What was met on the way: how often, and where first. */
enum watch_fault {
	WATCH_FOREIGN, /* a link, no socket, or somebody else's */
	WATCH_LATE,
	WATCH_LONG,
	WATCH_GARBLED, /* it ended early */
	WATCH_STRANGE, /* it is none */
	WATCH_MANY,    /* names that were not read */
	WATCH_ABSENT,  /* the directory of DDPSESS_WATCH */
	WATCH_SYSTEM,
	WATCH_FAULTS
};

struct watch_trouble {
	unsigned met[WATCH_FAULTS];
	char first[WATCH_FAULTS][160];
	int sys_errno; /* of the first WATCH_SYSTEM */
};

/* Look up the host of @t's URI.  Return: NULL, or why it has no address. */
const char *watch_resolve(struct watch_target *t);

/*
 * The state of each context that @t names: an object, its key the socket's path, by process.  A process
 * that ends meanwhile is not in it.  All are asked at the same time, and not for longer than 7 s.  Never
 * NULL; the caller's to release.
 */
json_t *watch_find(const struct watch_target *t, struct watch_trouble *trouble);

/* ---- watch_counts.c ---- */

/* What has numbers: the members of a process that are such objects, or arrays of them. */
enum watch_kind { WATCH_CONTEXT, WATCH_SESSION, WATCH_DATAGRAMS, WATCH_SERVICE, WATCH_KINDS };
#define WATCH_OF(kind) (1u << (kind))

struct watch_count {
	const char *key;
	unsigned of;	    /* WATCH_OF */
	bool gauge;	    /* it may decrease */
	const char *row;    /* of a limit: for people, if it was reached */
	const char *help;   /* "%s" is "sent" or "received", the object that it is in */
	const char *metric; /* the end of the metric's name, NULL: the key */
};

/* All there are.  The last one has no key. */
extern const struct watch_count watch_counts[];

/* ---- watch_text.c, watch_table.c ---- */

/* A number of @o, 0 if it is not there; a text, "" then, without what a terminal would obey. */
uint64_t watch_number(const json_t *o, const char *key);
void watch_string(char *dst, size_t size, const json_t *o, const char *key);

/* Octets by which the counter "@key": { "octets" } has grown in a second since @before, which may be
 * NULL; @ns is the time between the two. */
double watch_rate(const json_t *now, const json_t *before, const char *key, uint64_t ns);

/* One context with all its sessions. */
void watch_text(struct out *o, const json_t *snapshot);
/* One line of it; @before: an earlier one of the same context. */
void watch_line(struct out *o, const json_t *snapshot, const json_t *before);
/* The sessions of all, the busiest first; @lines: at most that many, 0: all. */
void watch_table(struct out *o, const json_t *all, const json_t *before, unsigned lines);

/* ---- watch_metrics.c ---- */

/* All of @all in Prometheus' text format. */
void watch_metrics(FILE *f, const json_t *all);

/* ---- watch_cmd.c: each returns an enum status ---- */

int cmd_stat(int argc, char **argv);
int cmd_top(int argc, char **argv);

#endif
