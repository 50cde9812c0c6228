/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef DDPS_SECURE_HS_H
#define DDPS_SECURE_HS_H
/*
 * A TLS 1.3 handshake without I/O: octets in, octets out, and in the end the keys of both directions and
 * who the peer is.  A part of libddpsess-tls.so; GnuTLS shakes hands, and seals nothing any more once its
 * keys were taken over.
 *
 * Not thread safe: one thread at a time, any thread.  A step may take a millisecond, or as long as the
 * program's own function needs to decide about the peer.
 */
#include "secure/creds/creds.h"
#include "secure/record/record.h"

#define DDPS_HS_ALPN   "x-iwarp-mpa" /* the name of MPA inside TLS; registered nowhere */
#define DDPS_HS_OCTETS 65536u	     /* most that a peer may send in a handshake */

struct ddps_hs;

/* Over datagrams: what the exchange of the cookie has used of the numbers; see dhs.h. */
struct ddps_hs_began {
	unsigned record_seq, read_seq, write_seq;
};

struct ddps_hs_conf {
	struct ddps_creds_set *set;  /* released by ddps_hs_free */
	struct ddps_creds_want want; /* its texts stay there until ddps_hs_free */
	struct ddps_hs_began began;  /* dhs.h, a listener */
	unsigned resend_ms;	     /* dhs.h; 0: DDPS_DHS_RESEND */
};

enum ddps_hs_state {
	DDPS_HS_MORE,	/* octets of the peer's are missing */
	DDPS_HS_DONE,	/* ddps_hs_take */
	DDPS_HS_FAILED, /* ddps_hs_why; what there is to send is sent before the connection ends */
};

/* Takes over @conf->set, also if it fails.  0, or a code and a sentence in @why. */
int ddps_hs_new(struct ddps_hs **out, const struct ddps_hs_conf *conf, struct ddps_verdict *why);
/* NULL is nothing. */
void ddps_hs_free(struct ddps_hs *h);

/*
 * Go on with @n more octets of the peer's (none: begin, as a dialler does).  @now: seconds since 1970.
 * Octets behind the last record of the handshake are kept for ddps_hs_take.  After DONE or FAILED it
 * is not called any more.
 */
enum ddps_hs_state ddps_hs_step(struct ddps_hs *h, const uint8_t *in, size_t n, int64_t now);

/* What is to be sent, in this order; valid until the next step.  It stays until ddps_hs_sent. */
const uint8_t *ddps_hs_output(const struct ddps_hs *h, size_t *n);
void ddps_hs_sent(struct ddps_hs *h, size_t n);

/* After FAILED. */
const struct ddps_verdict *ddps_hs_why(const struct ddps_hs *h);

/*
 * After DONE, once: the keys, for ddps_rec_init (the caller sets @keys->aead, and wipes it), the peer's
 * identity and what was agreed, and the octets that belong to the records behind, valid until
 * ddps_hs_free.
 */
void ddps_hs_take(struct ddps_hs *h, struct ddps_rec_config *keys, struct ddps_peer_id *id,
		  const uint8_t **rest, size_t *nrest);

#endif
