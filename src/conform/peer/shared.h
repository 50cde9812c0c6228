/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef DDPS_CONFORM_SHARED_H
#define DDPS_CONFORM_SHARED_H
/*
 * The peer's octets through memory that it shares with the target (shm://), written here a second time.  A message on a
 * unix socket passes the memory; in it there are two rings of 256 KiB:
 *
 *	0, 256		words of the ring to the responder, of the ring to the initiator, 64 octets apart:
 *			octets written (64 bits), and behind them the end (1: closed, 2: reset); octets read (64);
 *			the reader sleeps (32); the writer sleeps (32)
 *	4096, 266240	the octets of the two
 *
 * The initiator has touched every page before he passes it, and leaves the memory open to further seals: the responder
 * adds F_SEAL_FUTURE_WRITE when it has mapped it, and takes none that has a hole.
 *
 * Whoever has said that he sleeps is woken by an octet on the socket.
 */
#include "conform/peer/peer.h"
#include <sys/socket.h>
#include <sys/types.h>

struct cf_conn;
struct cf_shared;

/* Where a URI of shm:// leads: a socket's file or abstract name. */
void cf_shared_address(const char *uri, struct sockaddr_storage *ss, socklen_t *len);
void cf_shared_text(const struct sockaddr_storage *ss, socklen_t len, char *buf, size_t size);

/* The listener at @fd goes: so does its file. */
void cf_shared_unlisten(int fd);

/* The current connection has its socket: make the memory and pass it, or wait for it. */
void cf_shared_open(struct cf *cf);
void cf_shared_close(struct cf_conn *c);

/* As cf_octets_send() and its like; an index that cannot be fails the case.  @reset: this side goes without a
 * word. */
ssize_t cf_shared_send(struct cf *cf, const void *p, size_t len);
ssize_t cf_shared_recv(struct cf *cf, void *p, size_t len);
void cf_shared_end(struct cf_conn *c, bool reset);

#endif
