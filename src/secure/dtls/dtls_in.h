/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef DDPS_SECURE_DTLS_IN_H
#define DDPS_SECURE_DTLS_IN_H
/* What the files of the record layer share. */
#include "secure/dtls/dtls.h"

#define DDPS_DTLS_WORDS (DDPS_DTLS_WINDOW / 64 + 1) /* one is being cleared */

struct ddps_dtls_half {
	void *st; /* of the library, behind the object */
	uint8_t iv[DDPS_AEAD_NONCE];
};

struct ddps_dtls {
	uint64_t alive; /* zero in the child of a fork, whose keys are zeros too */
	const struct ddps_aead *aead;
	enum ddps_suite suite;
	uint16_t epoch;
	int tx_end; /* why nothing more is sealed: -errno, or 0 */
	uint64_t renew_at, stop_at, forged_at;
	struct ddps_dtls_half tx, rx;
	uint64_t seq;			/* of the next record that is sealed */
	uint64_t high;			/* one more than the newest number that was opened */
	uint64_t seen[DDPS_DTLS_WORDS]; /* by number, modulo their bits */
	struct ddps_dtls_stats stats;
};

/* A word that memory made zero by the system has not. */
#define DDPS_DTLS_ALIVE UINT64_C(0x5ea1edca11ab1e02)

/* AES-GCM of DTLS 1.2: 4 octets of the nonce are secret, 8 are in the record. */
static inline bool ddps_dtls_explicit(const struct ddps_dtls *d)
{
	return d->suite != DDPS_SUITE_CHACHA20_POLY1305;
}

/* Nonce and additional data of a record whose header, and explicit nonce if any, is at @rec. */
void ddps_dtls_nonce(const struct ddps_dtls *d, const struct ddps_dtls_half *h, const uint8_t *rec,
		     uint8_t *nonce);
void ddps_dtls_ad(const uint8_t *rec, size_t content, uint8_t *ad);
#define DDPS_DTLS_AD 13u

#endif
