/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef DDPS_OWN_H
#define DDPS_OWN_H
/*
 * Descriptors that are this process's alone, sockets above all.  A child of fork gets copies of
 * all, and as long as it has one of a socket the peer does not learn that the parent has closed it, and the port
 * stays taken.  So the child closes those that are written down here, as the first thing it does.
 *
 * Any thread, any context; a fork may come in the midst of a call.
 */
#include <stdbool.h>
#include <stdint.h>
#include <sys/socket.h>

/* @fd, just opened, is one; what is < 0 is none.  Returns @fd. */
int ddps_own(int fd);
/* Close it, unless the program has done so and the number is another file's by now; errno stays. */
void ddps_own_close(int fd);
/*
 * The same for one whose closing may block, for as long as a peer likes: one that he passed, or a unix socket in
 * whose queue such ones lie.  A thread closes it, of at most 32 in the process; until one is free it stays open.
 * Nothing is done to @fd here, which may itself block.  false: it has to wait.
 */
bool ddps_own_close_apart(int fd);
/* So many wait that nothing should be taken now which may bring another one. */
bool ddps_own_is_crowded(void);
/* Those that wait since no thread could be made: one is, if that is possible now. */
void ddps_own_close_waiting(void);
/* Whether @fd, which was written down, has not become the program's. */
bool ddps_own_has(int fd);
/*
 * A number that is another one once the program has closed all that is not its own (closefrom): none
 * of the library's descriptors from before is there any more, sockets or not, and their numbers are
 * the program's.  Costs a system call.
 */
unsigned ddps_own_era(void);
/* The same for whoever is about to open some: it is noticed until ddps_own_end.  Not 0. */
unsigned ddps_own_begin(void);
void ddps_own_end(unsigned era);
/* Whether @fd is one yet, and this process has forked since the first of them was written down: a child that has
 * not come to closing them yet may have a copy. */
bool ddps_own_forked(int fd);
/* bind() to a port of one's own, which such a copy may still have: if the process has just forked, tries for
 * a second at most, in which it blocks.  Not for the loop: a listener's. */
int ddps_own_bind(int fd, const struct sockaddr *sa, socklen_t len);
/* The same for whoever binds in another way: whether an attempt that has just failed, with errno, is to be
 * made again.  *@since is 0 before the first attempt. */
bool ddps_own_retry(uint64_t *since);
/* What the packets of @fd say of their class (IP_TOS, IPV6_TCLASS), on a socket of IPv6 those of IPv4 as well.
 * The two bits of ECN are left to the system.  0: as it is.  Not every network heeds it, so that a refusal
 * is none of the session's. */
void ddps_own_tos(int fd, int family, uint8_t tos);

#endif
