/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef DDPS_SECURE_RECORD_IN_H
#define DDPS_SECURE_RECORD_IN_H
/* What the files of the record layer share. */
#include "record.h"

/* Types of records and of inner content [8446-5.2-1]. */
enum {
	DDPS_REC_TYPE_CCS = 20,
	DDPS_REC_TYPE_ALERT = 21,
	DDPS_REC_TYPE_HANDSHAKE = 22,
	DDPS_REC_TYPE_DATA = 23,
};

/* Handshake messages that may come after the handshake. */
enum {
	DDPS_REC_MSG_TICKET = 4,
	DDPS_REC_MSG_UPDATE = 24,
};

/* Why a connection is over.  record_text.c has a sentence for each. */
enum ddps_rec_fault {
	DDPS_REC_F_NONE,
	DDPS_REC_F_OUTER,    /* a record that is not sealed; @detail: its first octet */
	DDPS_REC_F_LONG,     /* @detail: length */
	DDPS_REC_F_TAG,	     /* or too short to have one */
	DDPS_REC_F_NO_TYPE,  /* zeros only */
	DDPS_REC_F_TYPE,     /* @detail: inner type */
	DDPS_REC_F_EMPTY,    /* @detail: inner type */
	DDPS_REC_F_ALERT,    /* an alert that is not two octets; @detail: its length */
	DDPS_REC_F_CUT_IN,   /* within a message that is split; @detail: inner type */
	DDPS_REC_F_MESSAGE,  /* @detail: message type */
	DDPS_REC_F_LENGTH,   /* @detail: message type */
	DDPS_REC_F_REQUEST,  /* @detail: request_update */
	DDPS_REC_F_BEHIND,   /* octets behind a KeyUpdate */
	DDPS_REC_F_IDLE,     /* too many records without data */
	DDPS_REC_F_USED_UP,  /* the peer's sequence numbers */
	DDPS_REC_F_LIBRARY,  /* @detail: errno */
	DDPS_REC_F_FORKED,   /* the keys are those of the parent process */
	DDPS_REC_F_BY_PEER,  /* @detail: alert */
	DDPS_REC_F_CUT_SHORT /* FIN without close_notify */
};

struct ddps_rec_half {
	void *st; /* of the library, behind the object */
	uint64_t seq;
	uint8_t iv[DDPS_AEAD_NONCE];
	uint8_t secret[48];
};

struct ddps_rec {
	uint64_t alive; /* zero in the child of a fork, whose keys are zeros too */
	const struct ddps_aead *aead;
	enum ddps_suite suite;
	bool client;
	uint16_t room, inner_max;
	uint64_t update_at, ask_at;
	struct ddps_rec_half tx, rx;

	int tx_end;  /* why nothing more is sealed: -errno, or 0 */
	bool answer; /* the peer has asked for a KeyUpdate; once, however often it asked */
	bool asked;  /* we have, and none came since */

	bool closed; /* close_notify came */
	uint8_t fault;
	int16_t alert_due, alert_got;
	uint32_t detail;
	unsigned idle; /* records without data in a row */
	/* the handshake message that is being read: header octets that are there, octets of the body to come */
	uint8_t head[4], head_len;
	uint8_t request; /* body of a KeyUpdate */
	uint32_t body;
	struct ddps_rec_stats stats;
};

/* A word that memory made zero by the system has not. */
#define DDPS_REC_ALIVE UINT64_C(0x5ea1edca11ab1e01)

/* HKDF-Expand-Label with an empty context (RFC 8446 7.1). */
void ddps_rec_expand(enum ddps_suite suite, const uint8_t *secret, const char *label, size_t n,
		     uint8_t *out);

/* The next generation of a direction's keys [8446-7.2-1].  -errno: there are none now. */
int ddps_rec_next_keys(const struct ddps_rec *r, struct ddps_rec_half *h);

/* The nonce of number @seq [8446-5.3-3]. */
void ddps_rec_nonce(const struct ddps_rec_half *h, uint64_t seq, uint8_t *nonce);

/* Read the content of a record of handshake messages; false: failed. */
bool ddps_rec_messages(struct ddps_rec *r, const uint8_t *p, size_t n);
bool ddps_rec_within_message(const struct ddps_rec *r);

/* The connection is over.  @alert: the alert for the peer, or -1.  Always false. */
bool ddps_rec_fail(struct ddps_rec *r, enum ddps_rec_fault why, uint32_t detail, int alert);

#endif
