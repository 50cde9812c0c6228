/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * See tls_stub.h: a handshake over datagrams that proves an address, and nothing else.  Flights have one record each, as
 * DTLS has them on the wire; the last of either side leaves again while nothing comes.
 */
#include "common/siphash.h"
#include "secure/dtls/dtls.h"
#include "sim/tls_stub.h"
#include <stdlib.h>
#include <string.h>

#define RESEND_MS 400u

/* Its first octet is that of a ClientHello, where one is expected. */
enum { D_HELLO = 1, D_VERIFY = 3, D_ANSWER = 'A', D_FINISH = 'F', D_FINISHED = 'f' };

#define BODY	  200u
#define COOKIE	  8u
#define RANDOM_AT 32u /* in the random of a ClientHello */
#define NONCE	  16u /* the cookie, and a number that the dialler counts: keys are made of it */

struct ddps_hs {
	bool server, done;
	uint8_t last, due; /* what was said; what is to come */
	uint8_t nonce[NONCE];
	uint64_t seq;
	uint8_t out[2 + DDPS_DTLS_HEADER + BODY];
	size_t nout;
	struct ddps_verdict why;
};

struct ddps_witness {
	char none;
};

static size_t put_stub_record(uint8_t *out, uint64_t seq, uint8_t what, const uint8_t *nonce)
{
	const size_t n = what == D_VERIFY ? 1 + NONCE : BODY;

	memset(out, 0, DDPS_DTLS_HEADER + n);
	out[0] = DDPS_DTLS_HANDSHAKE;
	out[1] = 254;
	out[2] = 253;
	out[10] = (uint8_t)seq;
	out[12] = (uint8_t)n;
	out[DDPS_DTLS_HEADER] = what;
	memcpy(out + DDPS_DTLS_HEADER + 1, nonce, NONCE);
	if (what == D_HELLO)
		memcpy(out + RANDOM_AT, nonce + COOKIE, NONCE - COOKIE);
	return DDPS_DTLS_HEADER + n;
}

static void say_flight(struct ddps_hs *h, uint8_t what, uint8_t due)
{
	const size_t n = put_stub_record(h->out + 2, h->seq++, what, h->nonce);

	h->out[0] = 0;
	h->out[1] = (uint8_t)n;
	h->nout = 2 + n;
	h->last = what;
	h->due = due;
}

static uint64_t dialled;

static int make_stub_dhs(struct ddps_hs **out, const struct ddps_hs_conf *conf,
			 struct ddps_verdict *why)
{
	*out = calloc(1, sizeof **out);
	if (!*out) {
		*why = (struct ddps_verdict){ .code = DDPS_E_NOMEM, .text = "out of memory" };
		return DDPS_E_NOMEM;
	}
	(*out)->server = conf->want.server;
	(*out)->due = conf->want.server ? D_HELLO : 0;
	memcpy((*out)->nonce + COOKIE, &dialled, sizeof dialled);
	dialled += !conf->want.server;
	return 0;
}

static void free_stub_dhs(struct ddps_hs *h)
{
	free(h);
}

static void take_flight(struct ddps_hs *h, uint8_t what, const uint8_t *nonce)
{
	if (what == D_VERIFY && h->last == D_HELLO) {
		memcpy(h->nonce, nonce, COOKIE);
		say_flight(h, D_HELLO, D_ANSWER);
	} else if (what == h->due && what == D_HELLO) {
		memcpy(h->nonce, nonce, NONCE);
		say_flight(h, D_ANSWER, D_FINISH);
	} else if (what == D_HELLO && h->last == D_ANSWER && !memcmp(nonce, h->nonce, NONCE)) {
		say_flight(h, D_ANSWER, D_FINISH); /* it was lost */
	} else if (what == D_ANSWER && (what == h->due || (h->last == D_FINISH && !h->done))) {
		say_flight(h, D_FINISH, D_FINISHED);
	} else if (what == D_FINISH && (what == h->due || h->done)) {
		say_flight(h, D_FINISHED, 0);
		h->done = true;
	} else if (what == h->due && what == D_FINISHED) {
		h->done = true;
	}
}

static enum ddps_hs_state step_stub_dhs(struct ddps_hs *h, const uint8_t *in, size_t n, int64_t now)
{
	(void)now;
	if (!n) /* begin, or once more */
		say_flight(h, h->last ? h->last : D_HELLO, h->last ? h->due : D_ANSWER);
	while (n >= 2) {
		const size_t len = (size_t)in[0] << 8 | in[1];

		if (len > n - 2)
			break;
		if (len > DDPS_DTLS_HEADER + NONCE)
			take_flight(h, in[2 + DDPS_DTLS_HEADER], in + 3 + DDPS_DTLS_HEADER);
		in += 2 + len;
		n -= 2 + len;
	}
	return h->done ? DDPS_HS_DONE : DDPS_HS_MORE;
}

static const uint8_t *get_stub_flight(const struct ddps_hs *h, size_t *n)
{
	*n = h->nout;
	return h->out;
}

static void take_flight_sent(struct ddps_hs *h, size_t n)
{
	(void)n;
	h->nout = 0;
}

static const struct ddps_verdict *get_stub_dhs_why(const struct ddps_hs *h)
{
	return &h->why;
}

static void take_stub_dhs_keys(struct ddps_hs *h, struct ddps_rec_config *keys,
			       struct ddps_peer_id *id, const uint8_t **rest, size_t *nrest)
{
	*keys = (struct ddps_rec_config){ .suite = DDPS_SUITE_AES_128_GCM, .client = !h->server };
	memset(keys->tx.key, h->server ? 's' : 'c', sizeof keys->tx.key);
	memset(keys->rx.key, h->server ? 'c' : 's', sizeof keys->rx.key);
	for (unsigned i = 0; i < NONCE; i++) {
		keys->tx.key[i] ^= h->nonce[i];
		keys->rx.key[i] ^= h->nonce[i];
	}
	keys->tx.seq = DDPS_DTLS_FIRST;
	*id = (struct ddps_peer_id){ .struct_size = sizeof *id, .how = DDPS_PEER_PSK };
	strcpy(id->name, "psk:stub");
	*rest = NULL;
	*nrest = 0;
}

/* What a hash of the address is: the secret is not needed to tell two peers apart. */
static void make_stub_cookie(const void *peer, size_t len, uint8_t cookie[NONCE])
{
	static const struct ddps_siphash_key key;
	const uint64_t h = ddps_siphash(&key, peer, len);

	memcpy(cookie, &h, COOKIE);
}

enum ddps_dhs_greeting dtls_stub_greet(uint8_t secret[2][DDPS_DHS_SECRET], const void *peer,
				       size_t peer_len, const uint8_t *in, size_t n,
				       uint8_t answer[DDPS_DHS_ANSWER], size_t *nanswer,
				       struct ddps_hs_began *began)
{
	uint8_t cookie[NONCE] = { 0 };

	(void)secret;
	*began = (struct ddps_hs_began){ 0 };
	*nanswer = 0;
	if (n < DDPS_DTLS_HEADER + BODY || in[0] != DDPS_DTLS_HANDSHAKE ||
	    in[DDPS_DTLS_HEADER] != D_HELLO)
		return DDPS_DHS_DROP;
	make_stub_cookie(peer, peer_len, cookie);
	if (!memcmp(in + DDPS_DTLS_HEADER + 1, cookie, COOKIE))
		return DDPS_DHS_TAKE;
	*nanswer = put_stub_record(answer, 0, D_VERIFY, cookie);
	return DDPS_DHS_ANSWER_IT;
}

unsigned dtls_stub_timeout(const struct ddps_hs *h)
{
	return h->done ? 0 : RESEND_MS;
}

struct ddps_witness *dtls_stub_witness(void)
{
	return calloc(1, sizeof(struct ddps_witness));
}

void dtls_stub_witness_free(struct ddps_witness *w)
{
	free(w);
}

const struct ddps_hs_ops dtls_stub = { .make = make_stub_dhs,
				       .free = free_stub_dhs,
				       .step = step_stub_dhs,
				       .output = get_stub_flight,
				       .sent = take_flight_sent,
				       .why = get_stub_dhs_why,
				       .take = take_stub_dhs_keys };
