/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef DDPS_MPA_TX_H
#define DDPS_MPA_TX_H
/*
 * FPDU transmitter (RFC 5044 3, 4): segments in, an iovec list out.  No I/O: the driver fills a
 * batch, writes as much of its iovecs as the socket takes, says how much that was, and gets
 * the number of FPDUs that have left entirely.  With a CRC or markers all octets are copied, since
 * user memory may change while they leave; without, larger payloads are referred to.
 */
#include "common/llp.h"
#include <stdbool.h>

#define DDPS_MPA_BATCH_FPDUS 96

struct ddps_mpa_batch {
	size_t octets, sent;
	unsigned nfpdus, done; /* FPDUs in it, FPDUs sent entirely */
	int niov, iov_done;
	size_t used;			  /* of arena */
	size_t end[DDPS_MPA_BATCH_FPDUS]; /* where each FPDU ends, in octets of the batch */
	bool refers;			  /* to user memory */
	uint8_t *copy;			  /* of what was not sent and referred to it, or NULL */
	uint8_t *arena;			  /* behind iov */
	struct iovec iov[];		  /* one if everything is in the arena */
};

struct ddps_mpa_tx {
	bool crc, markers;
	bool dry;		      /* there was no more when the batch was filled */
	bool begun;		      /* by ddps_mpa_tx_begin: it is to be filled yet */
	uint16_t phase;		      /* of the next octet */
	struct ddps_mpa_batch *batch; /* NULL while there is nothing to send */
	/* Where batches come from, or NULL; those with a CRC or markers are larger ones. */
	struct ddps_spares *spares;
};

void ddps_mpa_tx_init(struct ddps_mpa_tx *tx);
void ddps_mpa_tx_fini(struct ddps_mpa_tx *tx);

/*
 * Pull segments of at most @mulpdu octets through @next into the batch, which must be empty,
 * until there are no more or the batch is full.  Nothing is pulled that does not go out.
 *
 * Return: how many were pulled; DDPS_E_NOMEM; DDPS_E_INVAL: a segment that is no ULPDU.
 */
int ddps_mpa_tx_fill(struct ddps_mpa_tx *tx,
		     int (*next)(void *user, struct ddps_seg *seg, size_t mulpdu), void *user,
		     size_t mulpdu);

/*
 * The straight way, for one segment alone: frame it at @to and have it written from there.  0: it has to go into a
 * batch (ddps_mpa_tx_begin), if it is a ULPDU at all.
 */
#define DDPS_MPA_INLINE	     128 /* payload up to this is copied: cheaper than pieces of its own */
#define DDPS_MPA_FRAME_SMALL (2 + DDPS_SEG_HDR_MAX + DDPS_MPA_INLINE + 4 + 4)
size_t ddps_mpa_tx_frame(const struct ddps_mpa_tx *tx, const struct ddps_seg *seg, size_t mulpdu,
			 uint8_t to[DDPS_MPA_FRAME_SMALL]);
/* Of the FPDU that was framed so, @len octets, @sent went out: the rest is the batch.  0 or DDPS_E_NOMEM. */
int ddps_mpa_tx_keep(struct ddps_mpa_tx *tx, const uint8_t *fpdu, size_t len, size_t sent);
/* @seg was pulled, and is the first one of a batch, which there is not yet: ddps_mpa_tx_fill goes on with the next.
 * 0, DDPS_E_NOMEM, DDPS_E_INVAL. */
int ddps_mpa_tx_begin(struct ddps_mpa_tx *tx, const struct ddps_seg *seg, size_t mulpdu);

/* What is still to be written, at most IOV_MAX pieces. */
static inline int ddps_mpa_tx_iov(struct ddps_mpa_tx *tx, struct iovec **iov)
{
	struct ddps_mpa_batch *b = tx->batch;

	if (!b)
		return 0;
	*iov = b->iov + b->iov_done;
	return b->niov - b->iov_done;
}

/* Whether that refers to user memory. */
static inline bool ddps_mpa_tx_refers(const struct ddps_mpa_tx *tx)
{
	return tx->batch && tx->batch->refers;
}

static inline size_t ddps_mpa_tx_left(const struct ddps_mpa_tx *tx)
{
	return tx->batch ? tx->batch->octets - tx->batch->sent : 0;
}

/* @n more octets were written; returns how many more FPDUs have left entirely. */
unsigned ddps_mpa_tx_sent(struct ddps_mpa_tx *tx, size_t n);

/* Copy what is still to be written, so that user memory is not referred to any more.
 * Return 0 or DDPS_E_NOMEM. */
int ddps_mpa_tx_keep_copy(struct ddps_mpa_tx *tx);

#endif
