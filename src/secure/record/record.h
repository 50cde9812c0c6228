/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef DDPS_SECURE_RECORD_H
#define DDPS_SECURE_RECORD_H
/*
 * Records of TLS 1.3 (RFC 8446 5) after the handshake, both directions of one connection.  No I/O, no clock, no
 * state but the object: octets in, octets out.
 *
 * It owns its keys from ddps_rec_init() on: whoever made them seals nothing any more.  A sequence number is used
 * up before anything is sealed with it and never comes again, whatever fails.  What was sealed has to go to the
 * peer, octet for octet and in order, or the connection is over.
 *
 * Not thread safe: one thread at a time, for both directions.
 */
#include "aead.h"
#include "secure/alert.h"
#include <ddpsess/err.h>
#include <stdbool.h>

#define DDPS_REC_HEADER	   5u
#define DDPS_REC_CONTENT   16384u		      /* most octets in a record [8446-5.1-6] */
#define DDPS_REC_OVERHEAD  (DDPS_REC_HEADER + 1 + 16) /* header, inner type, tag */
#define DDPS_REC_SEALED	   (DDPS_REC_CONTENT + 256) /* most that a header may announce [8446-5.2-2] */
#define DDPS_REC_WIRE_MAX  (DDPS_REC_HEADER + DDPS_REC_SEALED)
#define DDPS_REC_UPDATE	   (5 + DDPS_REC_OVERHEAD) /* a KeyUpdate on the wire */
#define DDPS_REC_ALERT	   (2 + DDPS_REC_OVERHEAD) /* an alert on the wire */
#define DDPS_REC_UPDATE_AT (UINT64_C(1) << 23)	   /* records sealed with one key */
#define DDPS_REC_ASK_AT	   ((UINT64_C(1) << 24) + (UINT64_C(1) << 16)) /* records of the peer's */
#define DDPS_REC_IDLE_MAX  32 /* records without data in a row */

/* The RFC's name of an alert, or "unassigned alert". */
const char *ddps_alert_name(uint8_t alert);

/* The keys of one direction, as a library hands them over when its handshake is done. */
struct ddps_rec_keys {
	uint8_t secret[48]; /* application traffic secret; ddps_suite_hash_len() octets */
	uint8_t key[DDPS_AEAD_KEY_MAX], iv[DDPS_AEAD_NONCE];
	uint64_t seq; /* number of the next record, and how many this key has sealed already */
};

struct ddps_rec_config {
	const struct ddps_aead *aead;
	enum ddps_suite suite;
	bool client; /* this end is: tickets come to clients only */
	/*
	 * record_size_limit of either end (RFC 8449), or 0 where it was not agreed: octets of content and inner
	 * type.  The peer's bounds what is sealed, our own what is opened.
	 */
	uint16_t peer_limit, own_limit;
	uint64_t update_at; /* 0: DDPS_REC_UPDATE_AT.  Tests set less */
	uint64_t ask_at;    /* 0: DDPS_REC_ASK_AT */
	struct ddps_rec_keys tx, rx;
};

struct ddps_rec;

/*
 * Octets of memory, and into it.  @mem is aligned to DDPS_AEAD_ALIGN and as long as ddps_rec_size() says (0: the
 * library has not this suite).  The caller wipes @c.
 *
 * -EINVAL: a limit below 64 [8449-4-1], or keys that do not come from their secret.  -ENOMEM, -errno: of the
 * library.  Then @mem is wiped.
 */
size_t ddps_rec_size(const struct ddps_rec_config *c);
int ddps_rec_init(void *mem, const struct ddps_rec_config *c, struct ddps_rec **r);

/* Overwrite everything secret; then @mem is the caller's again. */
void ddps_rec_wipe(struct ddps_rec *r);

/* ---- sealing ---- */

/* Most octets of content that a record to this peer takes: 16384 or less. */
size_t ddps_rec_room(const struct ddps_rec *r);

/*
 * Seal one record of application data: all of the @n pieces of @iov (at most DDPS_AEAD_IOV_MAX - 1, together at
 * most ddps_rec_room(), nothing in them is an empty record) to @out, which has @room octets.  User memory may
 * change while it is read: the peer sees either octet, never a bad tag.  If a KeyUpdate is due it stands before
 * the record: DDPS_REC_UPDATE octets more.
 *
 * Return: octets in @out.  -ENOBUFS: @room is too short (DDPS_REC_OVERHEAD + content + DDPS_REC_UPDATE always
 * suffices), nothing happened.  -EMSGSIZE: too much for a record, nothing happened.  -EPIPE: an alert was
 * sealed, nothing is sealed after it.  -EOWNERDEAD: this is the child of a fork, or wiped.  Other: the library
 * failed, and nothing more can be sealed.
 */
ssize_t ddps_rec_seal(struct ddps_rec *r, const struct iovec *iov, int n, uint8_t *out,
		      size_t room);

/*
 * A KeyUpdate that the peer has asked for, or that is due.  It need not be sealed before the next data, but a
 * peer that asks may wait for it.
 */
bool ddps_rec_owes(const struct ddps_rec *r);
ssize_t ddps_rec_seal_owed(struct ddps_rec *r, uint8_t *out, size_t room); /* 0: nothing was owed */

/*
 * Seal an alert: DDPS_ALERT_CLOSE_NOTIFY, or what ended the connection (DDPS_REC_ALERT octets).  It is the last
 * thing that is sealed.
 */
ssize_t ddps_rec_seal_alert(struct ddps_rec *r, uint8_t alert, uint8_t *out, size_t room);

/* ---- opening ---- */

enum ddps_rec_what {
	DDPS_REC_MORE, /* no whole record yet */
	DDPS_REC_DATA, /* @len >= 1 octets of application data at @out */
	DDPS_REC_NONE, /* a record that has nothing for the caller.  ddps_rec_owes() may have changed */
	DDPS_REC_CLOSED, /* close_notify came: this and all behind it is to be thrown away */
	DDPS_REC_FAILED, /* the connection is over: ddps_rec_error(), ddps_rec_alert_due() */
};

struct ddps_rec_opened {
	enum ddps_rec_what what;
	size_t used; /* octets of @in that are done with */
	size_t len;
};

/*
 * Open the record that begins at @in, of which @n octets are there, to @out: @in + DDPS_REC_HEADER (in place) or
 * memory that does not overlap it, with room for content, type and padding: @n - DDPS_REC_HEADER -
 * DDPS_AEAD_TAG octets, DDPS_REC_CONTENT + 1 suffice.  @out is scratch: it is written to before the tag was
 * checked, and zeros if that was wrong.  What the header shows is checked before the rest has come.
 */
struct ddps_rec_opened ddps_rec_open(struct ddps_rec *r, const uint8_t *in, size_t n, uint8_t *out);

/* The end of the stream came (FIN).  True if close_notify was there before; else the connection is cut short:
 * ddps_rec_error() says it from then on, and no alert is due. */
bool ddps_rec_end(struct ddps_rec *r);

/* After DDPS_REC_FAILED: what to report, and the alert for the peer (-1: none, since it sent one itself). */
struct ddps_error ddps_rec_error(const struct ddps_rec *r);
int ddps_rec_alert_due(const struct ddps_rec *r);
/* The alert that the peer has sent, or -1. */
int ddps_rec_alert_got(const struct ddps_rec *r);

struct ddps_rec_stats {
	uint64_t sealed, opened;	    /* records */
	uint64_t updates_sent, updates_got; /* KeyUpdates */
	uint64_t tickets, empties;	    /* skipped */
};
const struct ddps_rec_stats *ddps_rec_stats(const struct ddps_rec *r);

#endif
