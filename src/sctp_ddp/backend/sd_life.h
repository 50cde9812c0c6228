/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef DDPS_SD_LIFE_H
#define DDPS_SD_LIFE_H
/*
 * The life of an association that is read through a socket interface (RFC 6458): it comes up, its
 * messages and notifications go up, it ends.  The kernel and other stacks name the same notifications in
 * headers that exclude each other, so each backend reads its socket into struct ddps_sd_item, and
 * what follows from an item is here.
 *
 * An association of such a backend begins with its struct ddps_sd_life.  All of it runs in the
 * owner's loop, without any lock of the backend's.
 */
#include "common/error.h"
#include "sctp_ddp/backend/sd_part.h"
#include "sctp_ddp/sd_backend.h"

enum ddps_sd_what {
	DDPS_SD_NOTHING,    /* to read now */
	DDPS_SD_END,	    /* of the socket: sys_errno, 0: as both sides wanted, or an ABORT */
	DDPS_SD_DATA,	    /* stream, ppid, unordered, data, len, eor */
	DDPS_SD_UP,	    /* in_streams, out_streams */
	DDPS_SD_INDICATION, /* adaptation */
	DDPS_SD_LOST,	    /* its cause is the socket's error */
	DDPS_SD_RESTART,
	DDPS_SD_SHUT_DONE,
	DDPS_SD_PEER_SHUT,
	DDPS_SD_DRY,
	DDPS_SD_PART_LOST, /* the rest of a message will not come */
	DDPS_SD_OTHER	   /* a notification that nothing follows from */
};

/* What one read of the socket brought. */
struct ddps_sd_item {
	enum ddps_sd_what what;
	int sys_errno;
	bool eor, unordered;
	uint16_t stream, in_streams, out_streams;
	uint32_t ppid, adaptation;
	const uint8_t *data;
	size_t len;
};

/* What each backend does its own way. */
struct ddps_sd_life_ops {
	struct ddps_sd_item (*take)(struct ddps_sd_assoc *a);
	/* SO_ERROR, which is reset. */
	int (*so_error)(struct ddps_sd_assoc *a);
	/* What an end with this errno means. */
	struct ddps_error (*why)(const struct ddps_sd_assoc *a, int sys_errno);
	/* COMM_UP was read: complete info. */
	void (*came_up)(struct ddps_sd_assoc *a);
	/* The event that want_dry asked for; it may be stale. */
	void (*dry)(struct ddps_sd_assoc *a);
	/* Have the loop come to ddps_sd_life_end(). */
	void (*doom)(struct ddps_sd_assoc *a, struct ddps_error e);
	void (*close)(struct ddps_sd_assoc *a);
	void (*release)(struct ddps_sd_assoc *a);
};

/* Who listens; an endpoint begins with it. */
struct ddps_sd_owner {
	const struct ddps_sd_listen_up *up;
	void *user;
};

struct ddps_sd_life {
	const struct ddps_sd_life_ops *ops;
	struct ddps_env *env;
	const struct ddps_sd_assoc_up *up;
	void *user;
	const struct ddps_sd_owner *ep; /* accepted, not announced yet */
	struct ddps_timer deadline;
	struct ddps_sd_assoc_info info;
	bool accepted;
	bool up_seen;	/* COMM_UP was read; the indication may follow */
	bool announced; /* comm_up() or accepted() was called */
	bool peer_shut, shut, paused, want_write, want_dry;
	bool doomed, ended; /* end is set; gone() was called */
	bool serving, freed;
	struct ddps_error end;
	struct ddps_sd_part part;
};

/* For a new association, all of whose octets are 0. */
void ddps_sd_life_init(struct ddps_sd_life *l, const struct ddps_sd_life_ops *ops,
		       struct ddps_env *env);
/* Whether there is anything to do with it but to end it. */
bool ddps_sd_life_alive(const struct ddps_sd_life *l);
/* One item; returns whether there may be more. */
bool ddps_sd_life_step(struct ddps_sd_life *l);
/* The socket has ended, with this errno or 0. */
void ddps_sd_life_on_end(struct ddps_sd_life *l, int sys_errno);
/* A turn of the loop begins: whether there is anything to read. */
bool ddps_sd_life_enter(struct ddps_sd_life *l);
/* It ends: gone() if it is over, and release() if it was freed; then false. */
bool ddps_sd_life_leave(struct ddps_sd_life *l);

/* Operations of struct ddps_sd_backend. */
void ddps_sd_life_set_up(struct ddps_sd_assoc *a, const struct ddps_sd_assoc_up *up, void *user);
void ddps_sd_life_abort(struct ddps_sd_assoc *a);
void ddps_sd_life_free(struct ddps_sd_assoc *a);

#endif
