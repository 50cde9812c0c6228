/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef DDPS_MPA_RX_H
#define DDPS_MPA_RX_H
/*
 * FPDU receiver for an ordered stream (RFC 5044 3, 6): octets in, ULPDUs out.  No I/O: the
 * driver asks where to read to (want), reads, and says how much came (got).  How the stream
 * is cut makes no difference to what comes out.
 *
 * A whole FPDU is verified and handed up where the driver read it, in the scratch buffer.  The
 * beginning of an incomplete one is kept: up to 19 octets in the structure, more in a buffer
 * made when needed.  When the sink holds a segment back, it and what was read behind it (less
 * than one scratch buffer) are kept until resume(), and what mpa_ahead.c reads.  A large payload
 * that no CRC protects can go straight to its place.
 */
#include "common/llp.h"
#include <ddpsess/err.h>

#define DDPS_MPA_RX_HEAD 20u /* ULPDU_Length and the largest DDP header */
#define DDPS_MPA_RX_IOV	 20  /* want() fills at most so many */

/* As in struct ddps_llp_up.  < 0: drop everything from here; segment() may say
 * DDPS_LLP_HOLD. */
struct ddps_mpa_rx_sink {
	int (*segment)(void *user, const uint8_t *seg, size_t len);
	size_t (*direct)(void *user, const uint8_t *hdr, size_t have, size_t seg_len);
	int (*direct_iov)(void *user, size_t off, struct iovec *iov, int max);
	int (*direct_end)(void *user);
};

struct ddps_mpa_rx {
	const struct ddps_mpa_rx_sink *sink;
	void *user;
	bool crc, markers;
	bool dead;	/* input is dropped: an error was reported, here or above [5044-8-8] */
	bool stalled;	/* the sink holds a segment back: no want() and got() until resume() */
	bool cut;	/* the turn's share is used up: what came behind it waits as above */
	bool placing;	/* the current FPDU's payload goes straight to its place */
	uint16_t phase; /* of the first octet of the current FPDU */
	uint64_t fpdus; /* whole and valid so far */

	size_t ask;	   /* so much is read together: about what a turn can show */
	unsigned share;	   /* so many more may be shown in this turn */
	uint8_t *part;	   /* NULL, or part_size octets */
	size_t part_total; /* 0: not in use */

	uint8_t head_len, head[DDPS_MPA_RX_HEAD];

	struct ddps_spares *spares; /* where part comes from, or NULL */
	size_t part_size, part_len;

	/* While stalled: the segment held back, and what came behind its FPDU.  While cut: the
	 * FPDUs that were read and not shown. */
	uint8_t *hold, *hold_seg, *hold_rest;
	size_t hold_seg_len, hold_rest_len;
	size_t hold_room; /* mpa_ahead.c's: octets that are free behind that, */
	unsigned *aheads; /* and where the buffer is counted, or NULL */

	size_t pay_len, pay_off, pay_asked;  /* while placing */
	uint8_t tail[8], tail_len, tail_off; /* pad and CRC, ignored */
};

void ddps_mpa_rx_init(struct ddps_mpa_rx *rx, const struct ddps_mpa_rx_sink *sink, void *user);
void ddps_mpa_rx_fini(struct ddps_mpa_rx *rx);

/* A new turn: show at most @share segments in it.  Until the first call there is no bound. */
static inline void ddps_mpa_rx_turn(struct ddps_mpa_rx *rx, unsigned share)
{
	rx->share = share;
}

/* It stands at the beginning of an FPDU: what is read goes to the scratch buffer alone. */
static inline bool ddps_mpa_rx_is_fresh(const struct ddps_mpa_rx *rx)
{
	return !rx->part_total && !rx->head_len && !rx->placing;
}

/* Where to read to: fills @iov[DDPS_MPA_RX_IOV], returns how many.  May ask the sink. */
int ddps_mpa_rx_want(struct ddps_mpa_rx *rx, uint8_t *scratch, size_t scratch_len,
		     struct iovec *iov);

/*
 * @n octets were read into what want() gave, in the same scratch buffer; its content is
 * changed.  Calls the sink for what is complete.
 *
 * Return: 0, or DDPS_E_CRC, DDPS_E_MARKER, DDPS_E_NOMEM with @e filled; reported once.
 */
int ddps_mpa_rx_got(struct ddps_mpa_rx *rx, uint8_t *scratch, size_t n, struct ddps_error *e);

/* Go on where it was stalled or cut: show the segment that was held back again, and what came
 * behind it.  Return: as got(). */
int ddps_mpa_rx_resume(struct ddps_mpa_rx *rx, struct ddps_error *e);

/* Octets kept: an incomplete FPDU, what is held back. */
size_t ddps_mpa_rx_kept(const struct ddps_mpa_rx *rx);

/* May the stream end here?  Between FPDUs, a lone marker behind the last one included. */
bool ddps_mpa_rx_at_boundary(const struct ddps_mpa_rx *rx);

/* Nothing more came for now: give back the buffer if it is empty. */
void ddps_mpa_rx_idle(struct ddps_mpa_rx *rx);

/* ---- mpa_rx_place.c, for mpa_rx.c ---- */
/* The first @n octets of an FPDU are at @p, its payload is not complete.  false: it has to come whole. */
bool ddps_mpa_rx_place(struct ddps_mpa_rx *rx, const uint8_t *p, size_t n, size_t ulpdu);
/* Fill @iov with what is missing of the payload; returns how many. */
int ddps_mpa_rx_want_placed(struct ddps_mpa_rx *rx, struct iovec *iov, int max);
/* Account for @n octets read while placing; returns how many lie beyond the FPDU. */
size_t ddps_mpa_rx_got_placed(struct ddps_mpa_rx *rx, size_t n);

#endif
