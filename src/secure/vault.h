/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef DDPS_VAULT_H
#define DDPS_VAULT_H
/*
 * Memory for secrets: pages of their own, which no core file has (MADV_DONTDUMP) and which a child of
 * fork finds wiped (MADV_WIPEONFORK); locked where the limits allow it.  Wiped when it is freed.
 */
#include <stdbool.h>
#include <stddef.h>

struct ddps_vault {
	unsigned char *p; /* NULL: none */
	size_t size;	  /* octets at @p */
	size_t mapped;
};

/* @size octets of zeros, aligned to 64; 0 or DDPS_E_NOMEM. */
int ddps_vault_new(struct ddps_vault *v, size_t size);

/* False in a child of fork: nothing in it is what it was. */
bool ddps_vault_intact(const struct ddps_vault *v);

/* Wipe and free; a second time it does nothing. */
void ddps_vault_free(struct ddps_vault *v);

#endif
