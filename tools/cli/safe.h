/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef SESSCTL_SAFE_H
#define SESSCTL_SAFE_H
/* Names from a peer: which are taken, and how they are opened without leaving a directory. */
#include <stdint.h>
#include <stdio.h>
#include <sys/types.h>

#define SAFE_NAME_MAX 255 /* octets of a whole name, directories included */

/* What is wrong with @name, as a constant sentence for the peer; NULL: nothing. */
const char *safe_name_fault(const char *name);

/*
 * Open @path below @dirfd; never follows a link out of it.  @flags as for open, no O_CREAT.
 * With @walk the fallback for kernels without openat2 is used, which follows no link at all.
 *
 * Return: descriptor, or -1 with errno (EXDEV, ELOOP: a link leads out).
 */
int safe_open(int dirfd, const char *path, int flags);
int safe_open_walk(int dirfd, const char *path, int flags);

/* Make a file of one's own to write to, with @mode, or empty it.  A link is not followed: somebody else may have made
 * it.  What stands for a file that is open already, such as /dev/stdout, is written behind what is there.  NULL with errno. */
FILE *safe_create(const char *path, mode_t mode);

/*
 * The directory that holds the last component of @name, which must be without fault, and
 * that component.  Return: descriptor, or -1 with errno.
 */
int safe_open_parent(int dirfd, const char *name, const char **base);

/*
 * Open a file to be served: regular, at most @max octets.
 * Return: descriptor and @size, or -1 with a constant reason for the peer.
 */
int safe_open_file(int dirfd, const char *name, uint64_t max, uint64_t *size, const char **why);

/* A reason for the peer that says nothing of the local paths. */
const char *safe_reason(int sys_errno);

#endif
