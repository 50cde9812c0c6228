/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef DDPS_SECURE_DHS_H
#define DDPS_SECURE_DHS_H
/*
 * A DTLS 1.2 handshake without I/O: datagrams in, datagrams out, else as hs.h has it.  A part of
 * libddpsess-tls.so; GnuTLS shakes hands.  What goes in and comes out are datagrams one behind the other, each
 * behind its length in two octets, network order.
 *
 * After DONE and ddps_dhs_take the listener's object stays: its last flight may have been lost, and leaves again
 * when the peer's comes again, until a record of data shows that it arrived.  Until then records of handshake
 * messages and of ChangeCipherSpec are given to it.  It seals nothing above number DDPS_DTLS_FIRST.
 */
#include "secure/hs/hs.h"

#define DDPS_DHS_MTU	1200u /* octets of its datagrams at most */
#define DDPS_DHS_RESEND 400u  /* ms until a flight leaves again, twice as long each time */
#define DDPS_DHS_SECRET 16u
#define DDPS_DHS_ANSWER 128u

enum ddps_dhs_greeting {
	DDPS_DHS_DROP,	    /* nothing of use */
	DDPS_DHS_ANSWER_IT, /* send the answer, and keep nothing */
	DDPS_DHS_TAKE, /* its address is its own: ddps_dhs_new with @began, and give it this datagram */
};

/*
 * What a stranger at @peer, whose address and port are these octets, has sent.  @secret: the newer one first; the
 * other one's cookies are still good.
 */
enum ddps_dhs_greeting ddps_dhs_greet(uint8_t secret[2][DDPS_DHS_SECRET], const void *peer,
				      size_t peer_len, const uint8_t *in, size_t n,
				      uint8_t answer[DDPS_DHS_ANSWER], size_t *nanswer,
				      struct ddps_hs_began *began);

/* As of hs.h, but for @in and the output. */
int ddps_dhs_new(struct ddps_hs **out, const struct ddps_hs_conf *conf, struct ddps_verdict *why);
void ddps_dhs_free(struct ddps_hs *h);
/* Also without @in, when ddps_dhs_timeout() has passed. */
enum ddps_hs_state ddps_dhs_step(struct ddps_hs *h, const uint8_t *in, size_t n, int64_t now);
const uint8_t *ddps_dhs_output(const struct ddps_hs *h, size_t *n);
void ddps_dhs_sent(struct ddps_hs *h, size_t n);
/* After FAILED, or if it took too long. */
const struct ddps_verdict *ddps_dhs_why(const struct ddps_hs *h);
/* Of @keys only suite, keys, numbers, whose they are, and @peer_limit: octets of content, or 0; nothing is left
 * over. */
void ddps_dhs_take(struct ddps_hs *h, struct ddps_rec_config *keys, struct ddps_peer_id *id,
		   const uint8_t **rest, size_t *nrest);
/* ms until a step is due though nothing came. */
unsigned ddps_dhs_timeout(const struct ddps_hs *h);

/*
 * What the peer has shown, to be judged again later: after DONE, and freed by its taker.  NULL: no memory.
 */
struct ddps_witness *ddps_dhs_witness(struct ddps_hs *h);
void ddps_witness_free(struct ddps_witness *w);
/* Whether it would be let in now, with @set; as ddps_creds_judge. */
int ddps_witness_judge(const struct ddps_witness *w, struct ddps_creds_set *set, int64_t now,
		       struct ddps_verdict *why);

#endif
