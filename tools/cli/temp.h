/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef SESSCTL_TEMP_H
#define SESSCTL_TEMP_H
/*
 * A file that appears under its name when it is whole and on the disk, or not at all.  Where
 * the file system allows it has no name until then (O_TMPFILE), else .NAME.XXXXXXXX.part.
 */
#include "cli/sig.h"
#include <limits.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

struct temp {
	int fd;	   /* -1: none */
	int dirfd; /* own copy */
	char base[NAME_MAX + 1];
	char part[NAME_MAX + 1]; /* "": the file has no name yet */
	bool passing;		 /* another one takes its place soon: the disk is not waited for */
	struct sig_file guard;
};

#define TEMP_NONE                                                                                  \
	{                                                                                          \
		.fd = -1, .dirfd = -1                                                              \
	}

/*
 * Open one for @base in @dirfd, which stays the caller's, and reserve @size octets on the disk.
 * Without @force a @base that exists is refused, and always if it is neither a file nor a link
 * (ENXIO).  @named: do not try O_TMPFILE.
 *
 * Return: 0, or -1 with errno (EEXIST, EISDIR, ENOSPC, ...) and nothing left behind.
 */
int temp_open(struct temp *t, int dirfd, const char *base, uint64_t size, bool force, bool named);

/* The same for a @path, and what is there is replaced. */
int temp_open_path(struct temp *t, const char *path, uint64_t size);

/*
 * Open one that never gets a name, in $TMPDIR or /tmp, where @size octets find room.  It is for its owner alone: where
 * there is no O_TMPFILE it has a name for a moment.
 * Return: 0, or -1 with errno and nothing left behind.
 */
int temp_open_unnamed(struct temp *t, uint64_t size);

/* Write all @len octets at @off.  Return: 0, or -1 with errno. */
int temp_write(struct temp *t, const void *buf, uint32_t len, uint64_t off);

/*
 * Synchronise and give it its name, unless @off is set by then (ECANCELED); NULL: nobody sets it.
 * Return: 0, or -1 with errno; the temp is closed.
 */
int temp_commit(struct temp *t, bool force, const atomic_bool *off);

/* Drop it; safe on a closed one. */
void temp_abort(struct temp *t);

#endif
