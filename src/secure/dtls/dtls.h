/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef DDPS_SECURE_DTLS_H
#define DDPS_SECURE_DTLS_H
/*
 * Records of DTLS 1.2 (RFC 6347 4.1) after the handshake, both directions of one connection.  No I/O, no clock,
 * no state but the object: octets in, octets out.
 *
 * A number is used up before anything is sealed with it and never comes again, whatever fails: what was sealed
 * may be sent, or not, but only as it is.  A record that is not right is dropped and counted; it ends nothing.
 *
 * Not thread safe: one thread at a time, for both directions.
 */
#include "secure/alert.h"
#include "secure/record/aead.h"
#include <stdbool.h>
#include <sys/types.h>

#define DDPS_DTLS_HEADER   13u
#define DDPS_DTLS_CONTENT  16384u /* most octets in a record [6347-4.1-2] */
#define DDPS_DTLS_EXPLICIT 8u	  /* of the nonce of AES-GCM, in each record (RFC 5288 3) */
#define DDPS_DTLS_OVERHEAD (DDPS_DTLS_HEADER + DDPS_DTLS_EXPLICIT + DDPS_AEAD_TAG) /* at most */
#define DDPS_DTLS_WINDOW   1024u /* numbers behind the newest that are still taken */
#define DDPS_DTLS_SEQ_MAX  ((UINT64_C(1) << 48) - 1)

/* The numbers below are the library's, for its last flight's repeats and an alert. */
#define DDPS_DTLS_FIRST 16u

/* Records of AES-GCM: when a new handshake is due (RFC 9325 4.4), when it is all over, and how many may be
 * forged. */
#define DDPS_DTLS_RENEW_AT  (UINT64_C(1) << 24)
#define DDPS_DTLS_STOP_AT   (UINT64_C(1) << 28)
#define DDPS_DTLS_FORGED_AT (UINT64_C(1) << 28)

enum ddps_dtls_type {
	DDPS_DTLS_CCS = 20,
	DDPS_DTLS_ALERT = 21,
	DDPS_DTLS_HANDSHAKE = 22,
	DDPS_DTLS_DATA = 23,
};

/* The header of a record. */
struct ddps_dtls_head {
	uint8_t type;
	uint16_t epoch;
	uint64_t seq;
	size_t len; /* of the record, header included */
};

/* Octets of @in that are one record; false: what begins there is none, or it is cut off. */
static inline bool ddps_dtls_head(struct ddps_dtls_head *h, const uint8_t *in, size_t n)
{
	if (n < DDPS_DTLS_HEADER || in[1] != 254)
		return false;
	h->type = in[0];
	h->epoch = (uint16_t)(in[3] << 8 | in[4]);
	h->seq = 0;
	for (unsigned i = 0; i < 6; i++)
		h->seq = h->seq << 8 | in[5 + i];
	h->len = DDPS_DTLS_HEADER + ((size_t)in[11] << 8 | in[12]);
	return h->len <= n;
}

/* Keys of one direction, as a library hands them over. */
struct ddps_dtls_keys {
	uint8_t key[DDPS_AEAD_KEY_MAX], iv[DDPS_AEAD_NONCE]; /* AES-GCM: 4 octets of @iv */
	uint64_t seq;					     /* number of the next record */
};

struct ddps_dtls_config {
	const struct ddps_aead *aead;
	enum ddps_suite suite; /* the AEAD of TLS 1.3's suite */
	uint16_t epoch;
	uint64_t renew_at, stop_at, forged_at; /* 0: as above.  Tests set less */
	struct ddps_dtls_keys tx, rx;
};

struct ddps_dtls;

/*
 * Octets of memory, and into it.  @mem is aligned to DDPS_AEAD_ALIGN and as long as ddps_dtls_size() says (0: the
 * library has not this suite).  The caller wipes @c.  0, -EINVAL, or the library's -errno; then @mem is wiped.
 */
size_t ddps_dtls_size(const struct ddps_dtls_config *c);
int ddps_dtls_init(void *mem, const struct ddps_dtls_config *c, struct ddps_dtls **out);

/* Overwrite everything secret; then @mem is the caller's again. */
void ddps_dtls_wipe(struct ddps_dtls *d);

/* Octets that a record has beyond its content: 37 or 29. */
unsigned ddps_dtls_overhead(const struct ddps_dtls *d);

/* ---- sealing ---- */

/*
 * Seal one record: the @n pieces of @iov (at most DDPS_AEAD_IOV_MAX, together at most DDPS_DTLS_CONTENT), to
 * @out, which has @room octets.
 *
 * Return: octets in @out.  -ENOBUFS, -EMSGSIZE: nothing happened.  -EOWNERDEAD: this is the child of a fork, or
 * wiped.  -EOVERFLOW: the key has sealed all that it may.  Other: the library failed.
 */
ssize_t ddps_dtls_seal(struct ddps_dtls *d, enum ddps_dtls_type type, const struct iovec *iov,
		       int n, uint8_t *out, size_t room);
/* The same of an alert. */
ssize_t ddps_dtls_seal_alert(struct ddps_dtls *d, enum ddps_alert alert, uint8_t *out, size_t room);

/* A new handshake is due. */
bool ddps_dtls_due(const struct ddps_dtls *d);

/* ---- opening ---- */

/*
 * Open a whole record that ddps_dtls_head() has taken to @out: the record's own content (in place, behind what
 * ddps_dtls_content() says) or memory that does not overlap it.
 *
 * Return: octets of content.  -EBADMSG: not authentic; -EALREADY: its number came before, or is too old;
 * -EPROTO: of another epoch, or its length can be none; the same key goes on after these.  -EOVERFLOW: more was
 * forged than the key allows.  -EOWNERDEAD as above.
 */
ssize_t ddps_dtls_open(struct ddps_dtls *d, const struct ddps_dtls_head *h, const uint8_t *in,
		       uint8_t *out);
/* Where in a record its content begins. */
unsigned ddps_dtls_content(const struct ddps_dtls *d);

/* A record that was opened: none after it was before. */
bool ddps_dtls_is_newest(const struct ddps_dtls *d, const struct ddps_dtls_head *h);

/* It was not forged: another key has opened it. */
void ddps_dtls_pardon(struct ddps_dtls *d);

struct ddps_dtls_stats {
	uint64_t sealed, opened;
	uint64_t forged, replayed, strange; /* -EBADMSG, -EALREADY, -EPROTO */
};
const struct ddps_dtls_stats *ddps_dtls_stats(const struct ddps_dtls *d);

#endif
