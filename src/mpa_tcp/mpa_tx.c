/* SPDX-License-Identifier: BSD-2-Clause */
/* FPDU transmitter: length, markers, pad and CRC around segments. */
#include "mpa_tcp/mpa_tx.h"
#include "mpa_tcp/mpa_crc.h"
#include "mpa_tcp/mpa_fpdu.h"
#include <ddpsess/err.h>
#include <stdlib.h>
#include <string.h>

#define BATCH_FPDUS  64
#define BATCH_IOVS   1024  /* IOV_MAX */
#define BATCH_INLINE 128   /* payload up to this is copied: cheaper than pieces of its own */
#define BATCH_ARENA  16384 /* headers, markers, pads, CRCs, small payloads */
/* So much at once; the receiver takes it, in cache still, while the next is being copied. */
#define BATCH_OCTETS (64u * 1024)

struct ddps_mpa_batch {
	size_t octets, sent;
	unsigned nfpdus, done; /* FPDUs in it, FPDUs sent entirely */
	int niov, iov_done;
	size_t used;		 /* of arena */
	size_t end[BATCH_FPDUS]; /* where each FPDU ends, in octets of the batch */
	uint8_t *copy;		 /* of everything not sent, or NULL: user memory is referred to */
	struct iovec iov[BATCH_IOVS];
	uint8_t arena[BATCH_ARENA];
};

/* One FPDU being built. */
struct frame {
	struct ddps_mpa_tx *tx;
	struct ddps_mpa_batch *b;
	uint32_t crc;
	bool started;  /* ULPDU_Length was begun */
	size_t offset; /* from the first octet of ULPDU_Length */
};

void ddps_mpa_tx_init(struct ddps_mpa_tx *tx)
{
	*tx = (struct ddps_mpa_tx){ 0 };
}

void ddps_mpa_tx_fini(struct ddps_mpa_tx *tx)
{
	if (tx->batch)
		free(tx->batch->copy);
	ddps_spare_put(tx->spares, tx->batch);
	tx->batch = NULL;
}

/* ---- octets into the batch ---- */

static uint8_t *arena(struct ddps_mpa_batch *b, size_t n)
{
	uint8_t *p = b->arena + b->used;

	b->used += n;
	return p;
}

/* Append to the iovecs; neighbours in memory (a CRC and the next header) share one. */
static void append(struct ddps_mpa_batch *b, const uint8_t *p, size_t n)
{
	struct iovec *last = b->niov ? &b->iov[b->niov - 1] : NULL;

	b->octets += n;
	if (last && (const uint8_t *)last->iov_base + last->iov_len == p)
		last->iov_len += n;
	else
		b->iov[b->niov++] = (struct iovec){ (void *)(uintptr_t)p, n };
}

static void put_raw(struct frame *f, const uint8_t *p, size_t n)
{
	if (f->tx->crc)
		f->crc = ddps_mpa_crc(f->crc, p, n);
	append(f->b, p, n);
	f->tx->phase = (uint16_t)((f->tx->phase + n) % DDPS_MPA_MARKER_EVERY);
	if (f->started)
		f->offset += n;
}

/* A marker, if one is due before the next octet (RFC 5044 4.3): never earlier. */
static void put_marker(struct frame *f)
{
	uint8_t *m;

	if (!f->tx->markers || f->tx->phase)
		return;
	/* All in one FPDU point to its length field, the one before that is zero
	 * [5044-4.3-8] [5044-4.3-10]. */
	m = arena(f->b, DDPS_MPA_MARKER_LEN);
	m[0] = m[1] = 0;
	m[2] = (uint8_t)(f->offset >> 8);
	m[3] = (uint8_t)f->offset;
	put_raw(f, m, DDPS_MPA_MARKER_LEN);
}

static void put(struct frame *f, const uint8_t *p, size_t n)
{
	while (n) {
		size_t room, len;

		put_marker(f);
		f->started = true;
		room = DDPS_MPA_MARKER_EVERY - f->tx->phase;
		len = f->tx->markers && n > room ? room : n;
		put_raw(f, p, len);
		p += len;
		n -= len;
	}
}

/* Is the payload to be copied behind the header?  Not with markers: one in the way would take its
 * place in the arena between the octets. */
static bool is_inline(const struct ddps_mpa_tx *tx, const struct ddps_seg *seg)
{
	return seg->pay_len <= BATCH_INLINE && !tx->markers;
}

/* Length and header; returns the end. */
static uint8_t *put_head(uint8_t *p, const struct ddps_seg *seg)
{
	size_t ulpdu = seg->hdr_len + seg->pay_len;

	p[0] = (uint8_t)(ulpdu >> 8);
	p[1] = (uint8_t)ulpdu;
	memcpy(p + DDPS_MPA_LEN_FIELD, seg->hdr, seg->hdr_len);
	return p + DDPS_MPA_LEN_FIELD + seg->hdr_len;
}

/* The whole of an FPDU in one piece: little payload, no markers. */
static void put_small(struct ddps_mpa_tx *tx, const struct ddps_seg *seg)
{
	struct ddps_mpa_batch *b = tx->batch;
	size_t ulpdu = seg->hdr_len + seg->pay_len, pad = ddps_mpa_pad(ulpdu);
	size_t n = DDPS_MPA_LEN_FIELD + ulpdu + pad;
	uint8_t *p = arena(b, n + DDPS_MPA_CRC_LEN), *to = put_head(p, seg);

	for (int i = 0; i < seg->npay; i++) {
		if (seg->pay[i].iov_len)
			memcpy(to, seg->pay[i].iov_base, seg->pay[i].iov_len);
		to += seg->pay[i].iov_len;
	}
	memset(to, 0, pad); /* [5044-4.1-2] */
	ddps_mpa_crc_store(p + n, tx->crc ? ddps_mpa_crc(DDPS_MPA_CRC_INIT, p, n) : ~0u);
	append(b, p, n + DDPS_MPA_CRC_LEN);
}

static void put_pieces(struct ddps_mpa_tx *tx, const struct ddps_seg *seg)
{
	struct frame f = { .tx = tx, .b = tx->batch, .crc = DDPS_MPA_CRC_INIT };
	size_t ulpdu = seg->hdr_len + seg->pay_len, pad = ddps_mpa_pad(ulpdu);
	uint8_t *p;

	put_marker(&f); /* its place in the arena, too, is before the header */
	p = arena(f.b, DDPS_MPA_LEN_FIELD + seg->hdr_len);
	put(&f, p, (size_t)(put_head(p, seg) - p));
	for (int i = 0; i < seg->npay; i++)
		put(&f, seg->pay[i].iov_base, seg->pay[i].iov_len);
	if (pad) {
		p = arena(f.b, pad);
		memset(p, 0, pad); /* [5044-4.1-2] */
		put(&f, p, pad);
	}
	put_marker(&f); /* between pad and CRC it belongs to this FPDU [5044-4.4-15] */
	p = arena(f.b, DDPS_MPA_CRC_LEN);
	/* The field is there in any case [5044-4.4-12]; unused it is zero. */
	ddps_mpa_crc_store(p, tx->crc ? f.crc : ~0u);
	put_raw(&f, p, DDPS_MPA_CRC_LEN);
}

static void put_fpdu(struct ddps_mpa_tx *tx, const struct ddps_seg *seg)
{
	struct ddps_mpa_batch *b = tx->batch;

	if (is_inline(tx, seg))
		put_small(tx, seg);
	else
		put_pieces(tx, seg);
	b->end[b->nfpdus++] = b->octets;
}

/* ---- the batch ---- */

/* Does any segment of up to @mulpdu octets fit still? */
static bool has_room(const struct ddps_mpa_tx *tx, size_t mulpdu)
{
	const struct ddps_mpa_batch *b = tx->batch;
	size_t markers = 0, iovs, octets;

	if (tx->markers)
		markers = mulpdu / (DDPS_MPA_MARKER_EVERY - DDPS_MPA_MARKER_LEN) + 2;
	/* Header, payload, pad with CRC; a marker parts what it falls into. */
	iovs = 1 + DDPS_SEG_IOV_MAX + 1 + 2 * markers;
	octets = DDPS_MPA_LEN_FIELD + DDPS_SEG_HDR_MAX + 3 + DDPS_MPA_CRC_LEN +
		 markers * DDPS_MPA_MARKER_LEN + BATCH_INLINE;
	return b->nfpdus < BATCH_FPDUS && b->octets < BATCH_OCTETS &&
	       (size_t)b->niov + iovs <= BATCH_IOVS && b->used + octets <= BATCH_ARENA;
}

static bool is_ulpdu(const struct ddps_seg *seg, size_t mulpdu)
{
	size_t sum = 0;

	if (seg->hdr_len > sizeof seg->hdr || seg->npay < 0 || seg->npay > DDPS_SEG_IOV_MAX)
		return false;
	for (int i = 0; i < seg->npay; i++)
		sum += seg->pay[i].iov_len;
	return sum == seg->pay_len && seg->hdr_len + sum >= DDPS_MPA_ULPDU_MIN &&
	       seg->hdr_len + sum <= mulpdu; /* [5044-3-5] [5044-3-7] */
}

int ddps_mpa_tx_fill(struct ddps_mpa_tx *tx,
		     int (*next)(void *user, struct ddps_seg *seg, size_t mulpdu), void *user,
		     size_t mulpdu)
{
	struct ddps_mpa_batch *b = tx->batch;
	struct ddps_seg seg;

	if (!b) {
		b = tx->batch = ddps_spare_get(tx->spares, sizeof *b);
		if (!b)
			return DDPS_E_NOMEM;
		b->copy = NULL;
	}
	free(b->copy);
	b->copy = NULL;
	b->octets = b->sent = b->used = 0;
	b->nfpdus = b->done = 0;
	b->niov = b->iov_done = 0;
	tx->dry = false;
	while (!tx->dry && has_room(tx, mulpdu)) {
		seg.final = false;
		if (next(user, &seg, mulpdu) <= 0) {
			tx->dry = true;
			break;
		}
		tx->dry = seg.final;
		if (!is_ulpdu(&seg, mulpdu))
			return DDPS_E_INVAL;
		put_fpdu(tx, &seg);
	}
	if (b->nfpdus)
		return (int)b->nfpdus;
	ddps_mpa_tx_fini(tx);
	return 0;
}

int ddps_mpa_tx_iov(struct ddps_mpa_tx *tx, struct iovec **iov)
{
	struct ddps_mpa_batch *b = tx->batch;

	if (!b)
		return 0;
	*iov = b->iov + b->iov_done;
	return b->niov - b->iov_done;
}

size_t ddps_mpa_tx_left(const struct ddps_mpa_tx *tx)
{
	return tx->batch ? tx->batch->octets - tx->batch->sent : 0;
}

unsigned ddps_mpa_tx_sent(struct ddps_mpa_tx *tx, size_t n)
{
	struct ddps_mpa_batch *b = tx->batch;
	unsigned before = b->done;

	b->sent += n;
	while (b->done < b->nfpdus && b->end[b->done] <= b->sent)
		b->done++;
	while (n) {
		struct iovec *v = &b->iov[b->iov_done];
		size_t take = n < v->iov_len ? n : v->iov_len;

		v->iov_base = (uint8_t *)v->iov_base + take;
		v->iov_len -= take;
		n -= take;
		if (!v->iov_len)
			b->iov_done++;
	}
	return b->done - before;
}

int ddps_mpa_tx_keep_copy(struct ddps_mpa_tx *tx)
{
	struct ddps_mpa_batch *b = tx->batch;
	size_t left = ddps_mpa_tx_left(tx), at = 0;

	if (!left || b->copy)
		return 0;
	b->copy = malloc(left);
	if (!b->copy)
		return DDPS_E_NOMEM;
	for (int i = b->iov_done; i < b->niov; i++) {
		memcpy(b->copy + at, b->iov[i].iov_base, b->iov[i].iov_len);
		at += b->iov[i].iov_len;
	}
	b->iov[0] = (struct iovec){ b->copy, left };
	b->iov_done = 0;
	b->niov = 1;
	return 0;
}
