/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef DDPS_TEST_AEAD_STUB_H
#define DDPS_TEST_AEAD_STUB_H
/*
 * In place of a library's AEAD where speed matters and nobody is kept out: octets depend on key and nonce, and
 * a tag on every octet of both and of what is sealed.
 */
#include "secure/record/aead.h"

/* Its functions fail, each time that this is not 0, with so many calls of seal, open and init to go. */
extern unsigned aead_stub_fails;

/* How many states there are. */
extern int aead_stub_alive;

const struct ddps_aead *aead_stub(void);

#endif
