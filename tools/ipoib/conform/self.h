/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef SESSCTL_IPOIB_SELF_H
#define SESSCTL_IPOIB_SELF_H
/*
 * The target of sessctl ipoib conform --self: a node of this build in a process of its own, on a
 * loopback address, that answers echoes.  What it says can be altered on the way out, so that it
 * is another kind of peer, or one that lies: the suite has to notice.
 */
#include <ddpsess/conform_ipoib.h>
#include <sys/types.h>

/* Which peer: "ours", "illumos", "letter", or one of the lies below.  Return: it, or -1. */
int self_find(const char *name);
/* Number @i: its name and what it does; NULL: there are no more. */
const char *self_name(unsigned i, const char **what);

/* Addresses on loopback for both, into @o, for try number @n. */
void self_plan(struct ddps_conform_ipoib_options *o, unsigned n);
/* Return: the process, or -1 with errno. */
pid_t self_start(const struct ddps_conform_ipoib_options *o, int who);
/* Ends it.  Return: whether it was still alive. */
int self_stop(pid_t pid);

#endif
