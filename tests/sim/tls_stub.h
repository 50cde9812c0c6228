/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef DDPS_TEST_TLS_STUB_H
#define DDPS_TEST_TLS_STUB_H
/*
 * In place of the plug-in and of its thread, where a simulated kernel has neither: link it before the library.
 * A handshake is three messages of fixed length that prove nothing, a step is done when the loop comes to it,
 * and the ciphers are aead_stub's.  Records, and all of mpa_tls*.c, are the library's own.
 */
#include <ddpsess/secure.h>
#include "secure/plugin.h"

/* Credentials, to be closed by ddps_secure_close; NULL: no memory. */
struct ddps_secure *tls_stub_secure(void);

/* The part of tls_stub.c that is about datagrams; what each does is said in dhs.h. */
extern const struct ddps_hs_ops dtls_stub;
enum ddps_dhs_greeting dtls_stub_greet(uint8_t secret[2][DDPS_DHS_SECRET], const void *peer,
				       size_t peer_len, const uint8_t *in, size_t n,
				       uint8_t answer[DDPS_DHS_ANSWER], size_t *nanswer,
				       struct ddps_hs_began *began);
unsigned dtls_stub_timeout(const struct ddps_hs *h);
struct ddps_witness *dtls_stub_witness(void);
void dtls_stub_witness_free(struct ddps_witness *w);

#endif
