/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef SESSCTL_PIPE_H
#define SESSCTL_PIPE_H
/*
 * Between a file without a name and a pipe or terminal, whose other end may take its time: both
 * functions end soon after @off is set (ECANCELED).
 */
#include "cli/temp.h"

/* Read @in to its end into @t.  Return: 0 with the octets in @size, or -1 with errno. */
int pipe_fill(struct temp *t, int in, uint64_t *size, const atomic_bool *off);

/* Write the @size octets of @t to @out.  Return: 0, or -1 with errno. */
int pipe_drain(const struct temp *t, int out, uint64_t size, const atomic_bool *off);

#endif
