/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef DDPS_SECURE_AEAD_LIB_H
#define DDPS_SECURE_AEAD_LIB_H
/* The libraries that have AEADs. */
#include "secure/record/aead.h"

/* GnuTLS's: with this code it is always there. */
const struct ddps_aead *ddps_aead_gnutls(void);

/*
 * ipsec-mb's, or NULL: not in the build, no such library here, a processor without AES instructions, or it does
 * not seal as GnuTLS does.  @why, if any, then says which.  Looked for once a process.  Thread safe.
 */
const struct ddps_aead *ddps_aead_ipsec_mb(const char **why);

/* The fastest of them. */
const struct ddps_aead *ddps_aead_best(void);

#endif
