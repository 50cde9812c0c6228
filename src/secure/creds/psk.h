/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef DDPS_CREDS_PSK_H
#define DDPS_CREDS_PSK_H
/*
 * Pre-shared keys: a file of lines IDENTITY:HEX.  "node-a@2" is the second key of node-a: whoever takes
 * keys takes all that are in the file, whoever dials uses the one with the highest number.
 */
#include "secure/vault.h"
#include <stdbool.h>
#include <stdint.h>

struct ddps_psk {
	const char *identity; /* on the wire, in the table's vault */
	const unsigned char *key;
	unsigned char key_len;	/* octets */
	unsigned char name_len; /* octets of @identity without "@NUMBER" */
	uint32_t number;
};

struct ddps_psks {
	struct ddps_vault vault;
	struct ddps_psk *psk;
	unsigned n;
};

/* Take the file's text, and the vault: it is freed with the table, which is to be freed in each case.
 * 0, DDPS_E_NOMEM, or DDPS_E_CONFIG with what is wrong and the line in @why, but nothing of a key. */
int ddps_psks_take(struct ddps_psks *t, struct ddps_vault *text, char *why, size_t why_len);
void ddps_psks_free(struct ddps_psks *t);

/* By the identity on the wire; how long it takes does not say whether it is there. */
const struct ddps_psk *ddps_psks_find(const struct ddps_psks *t, const void *identity, size_t len);
/* To dial as @name; NULL: the only name of the table.  NULL: there is none, or there are several. */
const struct ddps_psk *ddps_psks_mine(const struct ddps_psks *t, const char *name);
bool ddps_psk_is(const struct ddps_psk *p, const char *name);

#endif
