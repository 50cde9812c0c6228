/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef DDPS_SHM_PASS_H
#define DDPS_SHM_PASS_H
/*
 * The memory of each side, and its way to the other one: the first message on the socket, the initiator's first, has its
 * descriptor.  It is sealed before that: nobody else can write to it, its size stays, and no page of it is given back.
 * So all that can happen to memory of a peer's is that its octets change.
 *
 * Whoever has a descriptor of memory can hold the locks of its inode and of the open file for as long as he likes (a
 * write from pages that a file system of his own is asked for).  So of memory that came, nothing is asked that takes
 * either: no seal is added, and nobody seeks in it.
 */
#include "mpa_tcp/shm/shm_ring.h"
#include <stdbool.h>
#include <sys/types.h>

/* New memory of one's own, all of it allocated.  @fd: what is passed; the caller closes it.  NULL: errno says why. */
struct ddps_shm_memory *ddps_shm_make(int *fd);

/* Send @fd.  0 or a negative errno, -EAGAIN among them; does not block. */
int ddps_shm_pass(int sock, int fd);

/*
 * Take what ddps_shm_pass() has sent.  Does not block.  NULL: @why is a sentence, or "" if nothing is there yet or
 * the peer has closed, of which errno says which: EAGAIN or ECONNRESET.
 */
const struct ddps_shm_memory *ddps_shm_take(int sock, const char **why);

/*
 * A peer may pass any descriptor, with any octet, and the last close of one may block for as long as he likes: a TCP
 * socket that lingers, a unix socket in whose queue such a one lies.  So none is dropped by the caller's thread: not
 * by reading, not by closing the socket.
 */
/* For a socket that has just been made: an urgent octet is read as others are, and none is thrown away. */
void ddps_shm_guard(int sock);
/* Read octets, @most at most.  How many, 0 at the end, or a negative errno; -EPROTO: descriptors came, and stay in the
 * queue. */
ssize_t ddps_shm_bells(int sock, size_t most);
/* As ddps_own_close(); where the queue is not empty a thread does it, and the peer learns of it before.
 * false: it stays open until one is free.  With a listener go its callers that are not yet accepted. */
bool ddps_shm_close(int sock);

/* @m may be NULL. */
void ddps_shm_unmap(const struct ddps_shm_memory *m);

#endif
