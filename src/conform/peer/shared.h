/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef DDPS_CONFORM_SHARED_H
#define DDPS_CONFORM_SHARED_H
/*
 * The peer's octets through memory that it shares with the target (shm://), written here a second time.  Each side has
 * memory of its own, which it alone writes, and passes it by its first message on a unix socket, the initiator first:
 *
 *	0		octets written (64 bits), and behind them the end (1: closed, 2: reset)
 *	64		octets read (64)
 *	128, 192	a number: as the reader it sleeps; as the writer (32 each)
 *	256, 260	the other side's last such number that it has woken: of the reader, of the writer (32 each)
 *	4096		a ring of 256 KiB: the octets for the other side
 *
 * It has touched every page, and sealed it against a change of its size and against further mappings that write
 * (F_SEAL_FUTURE_WRITE).
 *
 * A side sleeps if its number is not the one that was woken last: then an octet on the socket wakes it.
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

/* The current connection has its socket: pass memory, and wait for the target's. */
void cf_shared_open(struct cf *cf);
void cf_shared_close(struct cf_conn *c);

/* As cf_octets_send() and its like; an index that cannot be fails the case.  @reset: this side goes without a
 * word. */
ssize_t cf_shared_send(struct cf *cf, const void *p, size_t len);
ssize_t cf_shared_recv(struct cf *cf, void *p, size_t len);
void cf_shared_end(struct cf_conn *c, bool reset);

#endif
