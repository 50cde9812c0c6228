/* SPDX-License-Identifier: BSD-2-Clause */
/* The cookie (RFC 6347 4.2.1): an address is proved before anything is kept for it. */
#include "secure/dtls/dtls.h"
#include "secure/hs/dhs.h"
#include <gnutls/dtls.h>
#include <string.h>

struct answer {
	uint8_t *p;
	size_t n;
};

static ssize_t push_answer(gnutls_transport_ptr_t user, const void *p, size_t n)
{
	struct answer *a = user;

	if (n > DDPS_DHS_ANSWER)
		return -1;
	memcpy(a->p, p, n);
	a->n = n;
	return (ssize_t)n;
}

/* A ClientHello of epoch 0, in one piece. */
static bool is_first_hello(const uint8_t *in, size_t n)
{
	struct ddps_dtls_head h;

	return ddps_dtls_head(&h, in, n) && h.type == DDPS_DTLS_HANDSHAKE && !h.epoch &&
	       h.len > DDPS_DTLS_HEADER && in[DDPS_DTLS_HEADER] == GNUTLS_HANDSHAKE_CLIENT_HELLO;
}

enum ddps_dhs_greeting ddps_dhs_greet(uint8_t secret[2][DDPS_DHS_SECRET], const void *peer,
				      size_t peer_len, const uint8_t *in, size_t n,
				      uint8_t answer[DDPS_DHS_ANSWER], size_t *nanswer,
				      struct ddps_hs_began *began)
{
	struct answer a = { .p = answer };
	gnutls_dtls_prestate_st st;

	*nanswer = 0;
	if (!is_first_hello(in, n))
		return DDPS_DHS_DROP;
	for (int i = 0; i < 2; i++) {
		const gnutls_datum_t key = { secret[i], DDPS_DHS_SECRET };

		memset(&st, 0, sizeof st);
		if (gnutls_dtls_cookie_verify((gnutls_datum_t *)(uintptr_t)&key,
					      (void *)(uintptr_t)peer, peer_len,
					      (void *)(uintptr_t)in, n, &st))
			continue;
		*began = (struct ddps_hs_began){ st.record_seq, st.hsk_read_seq, st.hsk_write_seq };
		return DDPS_DHS_TAKE;
	}
	st = (gnutls_dtls_prestate_st){
		.record_seq = in[10]
	}; /* the number is the ClientHello's [6347-4.2.1-2] */
	if (gnutls_dtls_cookie_send(&(gnutls_datum_t){ secret[0], DDPS_DHS_SECRET },
				    (void *)(uintptr_t)peer, peer_len, &st, &a, push_answer) < 0 ||
	    a.n > n) /* never more than what came: the address may be another's */
		return DDPS_DHS_DROP;
	*nanswer = a.n;
	return DDPS_DHS_ANSWER_IT;
}
