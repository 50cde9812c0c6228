/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef DDPS_VAULT_H
#define DDPS_VAULT_H
/*
 * Memory for secrets: pages of their own, which no core file has (MADV_DONTDUMP) and which a child of
 * fork finds wiped (MADV_WIPEONFORK); locked where the limits allow it.  Wiped when it is freed.
 */
#include <stdbool.h>
#include <stddef.h>

struct ddps_vault_slab;

struct ddps_vault {
	unsigned char *p; /* NULL: none */
	size_t size;	  /* octets at @p */
	size_t mapped;
	struct ddps_vault_slab *slab; /* NULL: it has pages of its own */
};

/* Vaults of one owner that share pages, not thread safe; zeros: none yet.  It outlives them, and has nothing
 * then. */
struct ddps_vaults {
	struct ddps_vault_slab *open; /* with a free place */
	unsigned n;		      /* slabs */
};

/* @size octets of zeros, aligned to 64; 0 or DDPS_E_NOMEM. */
int ddps_vault_new(struct ddps_vault *v, size_t size);

/* The same, in pages with others.  @all: NULL: in pages of its own. */
int ddps_vault_in(struct ddps_vaults *all, struct ddps_vault *v, size_t size);

/* False in a child of fork: nothing in it is what it was. */
bool ddps_vault_intact(const struct ddps_vault *v);

/* Wipe and free; a second time it does nothing. */
void ddps_vault_free(struct ddps_vault *v);

#endif
