/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef DDPS_RESOLVE_H
#define DDPS_RESOLVE_H
/* Host names to addresses, without holding up the loop. */
#include "common/loop/loop.h"
#include <sys/queue.h>
#include <sys/socket.h>

#define DDPS_RESOLVE_MAX 16

struct ddps_resolve;

/* @err: 0 and @n addresses (at least one), in the order to try; or DDPS_E_ADDRESS (no such
 * name, or no address for it), DDPS_E_NOMEM. */
typedef void ddps_resolve_fn(void *user, int err, const struct sockaddr_storage *addrs, size_t n);

/* The lookups of one context; zeroed but for @loop. */
struct ddps_resolver {
	struct ddps_loop *loop;
	LIST_HEAD(, ddps_resolve) list; /* abandoned ones included, until their threads end */
};

/*
 * Look @host up in a thread of its own and call @done from the loop, once; the handle is
 * invalid from then on.  Return 0, DDPS_E_NOMEM or DDPS_E_SYSTEM (errno is set).
 */
int ddps_resolve_start(struct ddps_resolver *rs, const char *host, uint16_t port,
		       ddps_resolve_fn *done, void *user, struct ddps_resolve **out);
/* No callback any more.  getaddrinfo cannot be interrupted: its thread is left to end alone. */
void ddps_resolve_cancel(struct ddps_resolve *r);
/* Blocks until every thread has ended; no callback. */
void ddps_resolver_fini(struct ddps_resolver *rs);

/* The same, blocking.  @addrs has room for DDPS_RESOLVE_MAX. */
int ddps_resolve_now(const char *host, uint16_t port, struct sockaddr_storage *addrs, size_t *n);

#endif
