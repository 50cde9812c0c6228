/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef DDPS_SCTP_POOL_H
#define DDPS_SCTP_POOL_H
/*
 * Memory of any size that is asked for and given back all the time: freed pieces are kept by size
 * class (powers of two), up to a bound, and given again.
 */
#include <stddef.h>
#include <stdint.h>

#define DDPS_SC_POOL_CLASSES 11 /* 128 octets .. 128 KiB; larger ones are not kept */
#define DDPS_SC_POOL_KEPT    (4u << 20)

struct ddps_sc_pool {
	void *first[DDPS_SC_POOL_CLASSES];
	size_t kept; /* octets */
};

/* NULL: no memory. */
void *ddps_sc_pool_get(struct ddps_sc_pool *p, size_t size);
/* @size as it was asked for. */
void ddps_sc_pool_put(struct ddps_sc_pool *p, void *mem, size_t size);
void ddps_sc_pool_fini(struct ddps_sc_pool *p);

#endif
