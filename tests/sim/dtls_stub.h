/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef DDPS_TEST_DTLS_STUB_H
#define DDPS_TEST_DTLS_STUB_H
/* The part of tls_stub.c that is about datagrams; what each does is said in dhs.h. */
#include "secure/plugin.h"

extern const struct ddps_hs_ops dtls_stub;
enum ddps_dhs_greeting dtls_stub_greet(uint8_t secret[2][DDPS_DHS_SECRET], const void *peer,
				       size_t peer_len, const uint8_t *in, size_t n,
				       uint8_t answer[DDPS_DHS_ANSWER], size_t *nanswer,
				       struct ddps_hs_began *began);
unsigned dtls_stub_timeout(const struct ddps_hs *h);
struct ddps_witness *dtls_stub_witness(void);
void dtls_stub_witness_free(struct ddps_witness *w);

#endif
