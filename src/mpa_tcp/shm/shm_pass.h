/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef DDPS_SHM_PASS_H
#define DDPS_SHM_PASS_H
/*
 * The memory of a session, and its way from the initiator, who makes it, to the responder: the first message on the
 * socket has the descriptor.  Its size is sealed, so nobody can take the memory from under the other side.  All its
 * pages are the initiator's from the start, and are charged to him.
 */
#include "mpa_tcp/shm/shm_ring.h"

/* New memory of one's own, all of it allocated.  @fd: what is passed; the caller closes it.  NULL: errno says why. */
struct ddps_shm_memory *ddps_shm_make(int *fd);

/* Send @fd.  0 or a negative errno, -EAGAIN among them; does not block. */
int ddps_shm_pass(int sock, int fd);

/*
 * Take what ddps_shm_pass() has sent.  Does not block.  NULL: @why is a sentence, or "" if nothing is there yet or
 * the peer has closed, of which errno says which: EAGAIN or ECONNRESET.
 */
struct ddps_shm_memory *ddps_shm_take(int sock, const char **why);

/* @m may be NULL. */
void ddps_shm_unmap(struct ddps_shm_memory *m);

#endif
