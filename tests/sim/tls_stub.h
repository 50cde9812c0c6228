/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef DDPS_TEST_TLS_STUB_H
#define DDPS_TEST_TLS_STUB_H
/*
 * In place of the plug-in and of its thread, where a simulated kernel has neither: link it before the library.
 * A handshake is three messages of fixed length that prove nothing, a step is done when the loop comes to it,
 * and the ciphers are aead_stub's.  Records, and all of mpa_tls*.c, are the library's own.
 */
#include <ddpsess/secure.h>

/* Credentials, to be closed by ddps_secure_close; NULL: no memory. */
struct ddps_secure *tls_stub_secure(void);

#endif
