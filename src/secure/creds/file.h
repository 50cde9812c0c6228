/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef DDPS_CREDS_FILE_H
#define DDPS_CREDS_FILE_H
/* Reading the files of credentials: whole, bounded, never waiting for a writer. */
#include "secure/vault.h"
#include <stdint.h>
#include <sys/stat.h>
#include <sys/types.h>
#include <time.h>

/* Which state of a file was read; equal: it has not changed since. */
struct ddps_stamp {
	dev_t dev;
	ino_t ino;
	off_t size;
	struct timespec changed, modified;
	int err; /* errno: it could not be looked at */
};

struct ddps_stamp ddps_stamp_of(const char *path);
bool ddps_stamp_same(const struct ddps_stamp *a, const struct ddps_stamp *b);

enum ddps_file_kind {
	DDPS_FILE_SIGNED, /* what it says is worth as much whoever wrote it */
	DDPS_FILE_RULES, /* it is root's or this user's, and so is the way to it; nobody else may write there */
	DDPS_FILE_SECRET, /* it is root's or this user's, and nobody else may read it */
};

/*
 * Read @path into @v, with a 0 behind it that @v->size does not count.  @max: octets.  A file that is replaced meanwhile,
 * and is not right, is opened anew, a few times at most.
 * Return: 0; DDPS_E_CONFIG, DDPS_E_KEY_OPEN or DDPS_E_NOMEM with what is wrong in @why, to go behind the
 * file's name.
 */
int ddps_file_read(struct ddps_vault *v, const char *path, size_t max, enum ddps_file_kind kind,
		   struct ddps_stamp *stamp, char *why, size_t why_len);

/* Open @path to append to it; the rest as of a secret file, but no link is followed.  If it is not there it is
 * made with mode 0600, unless this is to @look: then *fd stays as it is. */
int ddps_file_append(int *fd, const char *path, bool look, char *why, size_t why_len);
/* It is still the file that was opened. */
bool ddps_file_is_at(int fd, const char *path);

/* Everybody may write it, or put another file in its place. */
bool ddps_file_is_open(const char *path, const char **how);

/* ---- way.c: in whose hands ---- */

/* It belongs neither to root nor to this user. */
bool ddps_file_is_anothers(const struct stat *st);
/* @fd: it, opened in any way. */
bool ddps_file_can_others_write(int fd, const struct stat *st);
/*
 * Whether root and this user alone can put another file at @path: owners and rights of each folder, and owners of each
 * link, from "/" on.  @file: what was opened at @path; if the way does not end there, somebody changes it meanwhile.
 * 0, DDPS_E_CONFIG or DDPS_E_NOMEM with what is wrong in @why.
 */
int ddps_file_way(const char *path, const struct stat *file, char *why, size_t why_len);

/* ---- text ---- */

/* The next line of a text: without blanks around it and comments (# in front); NULL behind the last.  @at
 * goes on, @number counts lines.  The text is changed. */
char *ddps_file_line(char **at, unsigned *number);

#endif
