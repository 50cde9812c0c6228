/* SPDX-License-Identifier: BSD-2-Clause */
/* FPDU transmitter: length, markers, pad and CRC around segments. */
#include "mpa_tcp/mpa_tx.h"
#include "common/system/assert.h"
#include "mpa_tcp/mpa_crc.h"
#include "mpa_tcp/mpa_fpdu.h"
#include <ddpsess/err.h>
#include <stdlib.h>
#include <string.h>

#define BATCH_FPDUS  DDPS_MPA_BATCH_FPDUS
#define BATCH_IOVS   1024 /* IOV_MAX */
#define BATCH_INLINE DDPS_MPA_INLINE
#define BATCH_ARENA  20480 /* headers, pads, CRCs, small payloads */
/*
 * Full with so much.  The receiver takes it, in cache still, while the next is being copied.  Where
 * segments are small Linux has more to do for each call, and a fifth less in all with twice as much.
 */
#define BATCH_OCTETS	   (64u * 1024)
#define BATCH_OCTETS_SMALL (126u * 1024)
#define SMALL_MULPDU	   16384u
/* Of a batch that is copied: full, and one more FPDU. */
#define COPIED_ARENA (130u * 1024)
#define PAD_ROOM     4u
#define HEAD_MOSTLY  18u    /* DDP's header alone */
#define SUM_BLOCK    16384u /* the CRC follows the copy so closely that it finds it in cache */

/*
 * What a CRC was computed over must be what leaves.  The memory is the program's, and it, or a
 * peer, may write to it at any time: what is checked is a copy.  It is one, too, where markers are
 * between the octets: a piece for each 508 of them would cost more.
 */
static bool copies(const struct ddps_mpa_tx *tx)
{
	return tx->crc || tx->markers;
}

static struct ddps_mpa_batch *batch_new(const struct ddps_mpa_tx *tx)
{
	size_t iovs = copies(tx) ? 1 : BATCH_IOVS;
	size_t head = sizeof(struct ddps_mpa_batch) + iovs * sizeof(struct iovec);
	struct ddps_mpa_batch *b =
		ddps_spare_get(tx->spares, head + (copies(tx) ? COPIED_ARENA : BATCH_ARENA));

	if (!b)
		return NULL;
	b->arena = (uint8_t *)b + head;
	b->copy = NULL;
	return b;
}

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
	tx->begun = false;
}

/* What is left of the batch, counted anew. */
static void check_batch(const struct ddps_mpa_batch *b)
{
#ifdef DDPS_ASSERTS
	size_t left = 0;

	for (int i = b->iov_done; i < b->niov; i++)
		left += b->iov[i].iov_len;
	ddps_assert(b->sent <= b->octets && left == b->octets - b->sent);
	ddps_assert(b->nfpdus <= BATCH_FPDUS && b->done <= b->nfpdus && b->iov_done <= b->niov);
	ddps_assert(!b->nfpdus || b->end[b->nfpdus - 1] == b->octets);
	ddps_assert(b->done == b->nfpdus || b->end[b->done] > b->sent);
	ddps_assert(!b->done || b->end[b->done - 1] <= b->sent);
#else
	(void)b;
#endif
}

/* ---- octets into the batch ---- */

static uint8_t *arena(struct ddps_mpa_batch *b, size_t n)
{
	uint8_t *p = b->arena + b->used;

	b->used += n;
	return p;
}

/* Append to the iovecs; neighbours in memory (a CRC and the next header) share one. */
static inline void append_iov(struct ddps_mpa_batch *b, const uint8_t *p, size_t n)
{
	struct iovec *last = b->niov ? &b->iov[b->niov - 1] : NULL;

	b->octets += n;
	if (last && (const uint8_t *)last->iov_base + last->iov_len == p)
		last->iov_len += n;
	else
		b->iov[b->niov++] = (struct iovec){ (void *)(uintptr_t)p, n };
}

/* Length and header; returns the end.  At @p is room for the longest header. */
static inline uint8_t *put_fpdu_head(uint8_t *p, const struct ddps_seg *seg)
{
	size_t ulpdu = seg->hdr_len + seg->pay_len;

	p[0] = (uint8_t)(ulpdu >> 8);
	p[1] = (uint8_t)ulpdu;
	if (seg->hdr_len <= HEAD_MOSTLY) /* a known length is no call */
		memcpy(p + DDPS_MPA_LEN_FIELD, seg->hdr, HEAD_MOSTLY);
	else
		memcpy(p + DDPS_MPA_LEN_FIELD, seg->hdr, seg->hdr_len);
	return p + DDPS_MPA_LEN_FIELD + seg->hdr_len;
}

static __attribute__((noinline)) void put_list(const struct ddps_seg *seg, uint8_t *to)
{
	for (int i = 0; i < seg->npay; to += seg->pay[i++].iov_len)
		if (seg->pay[i].iov_len)
			memcpy(to, seg->pay[i].iov_base, seg->pay[i].iov_len);
}

/* The whole of an FPDU in one piece: little payload, no markers.  Returns its length. */
static inline size_t put_small(const struct ddps_mpa_tx *tx, const struct ddps_seg *seg, uint8_t *p)
{
	size_t ulpdu = seg->hdr_len + seg->pay_len, pad = ddps_mpa_pad(ulpdu);
	size_t n = DDPS_MPA_LEN_FIELD + ulpdu + pad;
	uint8_t *to = put_fpdu_head(p, seg);

	if (seg->npay == 1 && seg->pay_len) /* as most have */
		memcpy(to, seg->pay->iov_base, seg->pay_len);
	else
		put_list(seg, to);
	to += seg->pay_len;
	memset(to, 0, PAD_ROOM); /* [5044-4.1-2]; the CRC comes over the rest */
	ddps_mpa_crc_store(p + n, tx->crc ? ddps_mpa_crc(DDPS_MPA_CRC_INIT, p, n) : ~0u);
	return n + DDPS_MPA_CRC_LEN;
}

/* The payload where it is, between what the arena holds: without a CRC. */
static __attribute__((noinline)) void put_pieces(struct ddps_mpa_tx *tx, const struct ddps_seg *seg)
{
	struct ddps_mpa_batch *b = tx->batch;
	size_t pad = ddps_mpa_pad(seg->hdr_len + seg->pay_len);
	uint8_t *head = arena(b, DDPS_MPA_LEN_FIELD + seg->hdr_len),
		*end = put_fpdu_head(head, seg);
	uint8_t *tail = arena(b, pad + DDPS_MPA_CRC_LEN);

	memset(tail, 0, PAD_ROOM); /* [5044-4.1-2]; the CRC comes over the rest */
	append_iov(b, head, (size_t)(end - head));
	for (int i = 0; i < seg->npay; i++)
		if (seg->pay[i].iov_len)
			append_iov(b, seg->pay[i].iov_base, seg->pay[i].iov_len);
	ddps_mpa_crc_store(tail + pad, ~0u); /* [5044-4.4-12] there in any case, zero */
	append_iov(b, tail, pad + DDPS_MPA_CRC_LEN);
	b->refers = true;
}

/* ---- all octets copied, and the CRC computed over the copy ---- */

/* An FPDU being written. */
struct copy {
	uint8_t *to, *summed;  /* up to there it is in crc */
	const uint8_t *length; /* its ULPDU_Length, NULL: not begun */
	uint32_t crc;
	uint16_t phase; /* of the next octet */
	bool sums;
};

static void sum_copied(struct copy *c)
{
	c->crc = ddps_mpa_crc(c->crc, c->summed, (size_t)(c->to - c->summed));
	c->summed = c->to;
}

/* A marker, if one is due before the next octet (RFC 5044 4.3): never earlier. */
static void put_marker(struct copy *c)
{
	size_t offset = c->length ? (size_t)(c->to - c->length) : 0;

	if (c->phase)
		return;
	/* All in one FPDU point to its length field, the one before that is zero
	 * [5044-4.3-8] [5044-4.3-10]. */
	c->to[0] = c->to[1] = 0;
	c->to[2] = (uint8_t)(offset >> 8);
	c->to[3] = (uint8_t)offset;
	c->to += DDPS_MPA_MARKER_LEN;
	c->phase = DDPS_MPA_MARKER_LEN;
}

static void copy_sum_block(struct copy *c, const uint8_t *p, size_t n)
{
	memcpy(c->to, p, n);
	c->to += n;
	if (c->sums && (size_t)(c->to - c->summed) >= SUM_BLOCK)
		sum_copied(c);
}

static void copy_octets(struct copy *c, const uint8_t *p, size_t n)
{
	for (size_t len; n; p += len, n -= len) {
		len = n < SUM_BLOCK ? n : SUM_BLOCK;
		copy_sum_block(c, p, len);
	}
}

/* The same with markers between them. */
static void put_marked(struct copy *c, const uint8_t *p, size_t n)
{
	for (size_t len; n; p += len, n -= len) {
		put_marker(c);
		if (!c->length)
			c->length = c->to;
		len = DDPS_MPA_MARKER_EVERY - c->phase;
		if (len > n)
			len = n;
		copy_sum_block(c, p, len);
		c->phase = (uint16_t)((c->phase + len) % DDPS_MPA_MARKER_EVERY);
	}
}

/* [5044-4.1-2]; there is room for the CRC, which comes over what is too much. */
static void put_pad(struct copy *c, size_t n, bool markers)
{
	static const uint8_t zeros[3];

	if (markers) {
		put_marked(c, zeros, n);
		put_marker(c); /* between pad and CRC it is of this FPDU [5044-4.4-15] */
	} else {
		memset(c->to, 0, PAD_ROOM);
		c->to += n;
	}
}

static __attribute__((noinline)) void put_copied(struct ddps_mpa_tx *tx, const struct ddps_seg *seg)
{
	void (*const put)(struct copy *, const uint8_t *, size_t) =
		tx->markers ? put_marked : copy_octets;
	struct ddps_mpa_batch *b = tx->batch;
	uint8_t *begin = b->arena + b->used;
	struct copy c = { .to = begin,
			  .summed = begin,
			  .crc = DDPS_MPA_CRC_INIT,
			  .phase = tx->phase,
			  .sums = tx->crc };
	size_t n;

	if (tx->markers) {
		uint8_t head[DDPS_MPA_LEN_FIELD + DDPS_SEG_HDR_MAX];

		put_marked(&c, head, (size_t)(put_fpdu_head(head, seg) - head));
	} else {
		c.to = put_fpdu_head(begin, seg);
	}
	for (int i = 0; i < seg->npay; i++)
		put(&c, seg->pay[i].iov_base, seg->pay[i].iov_len);
	put_pad(&c, ddps_mpa_pad(seg->hdr_len + seg->pay_len), tx->markers);
	if (c.sums)
		sum_copied(&c);
	/* [5044-4.4-12] there in any case, zero */
	ddps_mpa_crc_store(c.to, c.sums ? c.crc : ~0u);
	n = (size_t)(c.to - begin) + DDPS_MPA_CRC_LEN;
	tx->phase = (uint16_t)((c.phase + DDPS_MPA_CRC_LEN) % DDPS_MPA_MARKER_EVERY);
	append_iov(b, arena(b, n), n);
}

static inline void put_whole_fpdu(struct ddps_mpa_tx *tx, const struct ddps_seg *seg)
{
	struct ddps_mpa_batch *b = tx->batch;
	uint8_t *p = b->arena + b->used;
	size_t n;

	if (!tx->markers && seg->pay_len <= BATCH_INLINE) {
		n = put_small(tx, seg, p);
		b->used += n;
		append_iov(b, p, n);
	} else if (copies(tx))
		put_copied(tx, seg);
	else
		put_pieces(tx, seg);
	b->end[b->nfpdus++] = b->octets;
}

/* ---- the batch ---- */

_Static_assert(BATCH_FPDUS *(DDPS_MPA_LEN_FIELD + DDPS_SEG_HDR_MAX + 3 + DDPS_MPA_CRC_LEN +
			     BATCH_INLINE) <= BATCH_ARENA,
	       "what is not copied whole has room in the arena, however many there are");

/* What a batch may have before its last segment. */
struct most {
	size_t octets, used, iovs;
};

static inline struct most get_batch_most(const struct ddps_mpa_tx *tx, size_t mulpdu)
{
	const size_t iovs = 1 + DDPS_SEG_IOV_MAX + 1; /* header, payload, pad with CRC */

	return (struct most){
		.octets = mulpdu < SMALL_MULPDU ? BATCH_OCTETS_SMALL : BATCH_OCTETS,
		.used = copies(tx) ? COPIED_ARENA - ddps_mpa_fpdu_size(mulpdu, tx->markers, 0)
				   : BATCH_ARENA,
		.iovs = copies(tx) ? BATCH_IOVS : BATCH_IOVS - iovs,
	};
}

/* Any segment of up to that MULPDU fits still. */
static inline bool has_batch_room(const struct ddps_mpa_batch *b, const struct most *most)
{
	return b->nfpdus < BATCH_FPDUS && b->octets < most->octets && b->used <= most->used &&
	       (size_t)b->niov <= most->iovs;
}

static inline bool is_ulpdu(const struct ddps_seg *seg, size_t mulpdu)
{
	size_t sum = 0;

	if (seg->npay == 1 && seg->hdr_len <= sizeof seg->hdr && seg->pay_len <= mulpdu)
		return seg->pay->iov_len == seg->pay_len &&
		       seg->hdr_len + seg->pay_len - DDPS_MPA_ULPDU_MIN < mulpdu;
	if (seg->hdr_len > sizeof seg->hdr || seg->npay < 0 || seg->npay > DDPS_SEG_IOV_MAX)
		return false;
	for (int i = 0; i < seg->npay; i++)
		sum += seg->pay[i].iov_len;
	return sum == seg->pay_len && seg->hdr_len + sum >= DDPS_MPA_ULPDU_MIN &&
	       seg->hdr_len + sum <= mulpdu; /* [5044-3-5] [5044-3-7] */
}

/* An empty one.  NULL: no memory. */
static struct ddps_mpa_batch *begin_batch(struct ddps_mpa_tx *tx)
{
	struct ddps_mpa_batch *b = tx->batch;

	if (!b) {
		b = tx->batch = batch_new(tx);
		if (!b)
			return NULL;
	}
	free(b->copy);
	b->copy = NULL;
	b->refers = false;
	b->octets = b->sent = b->used = 0;
	b->nfpdus = b->done = 0;
	b->niov = b->iov_done = 0;
	tx->dry = tx->begun = false;
	return b;
}

size_t ddps_mpa_tx_frame(const struct ddps_mpa_tx *tx, const struct ddps_seg *seg, size_t mulpdu,
			 uint8_t to[DDPS_MPA_FRAME_SMALL])
{
	if (!is_ulpdu(seg, mulpdu) || tx->markers || seg->pay_len > BATCH_INLINE)
		return 0;
	return put_small(tx, seg, to);
}

int ddps_mpa_tx_keep(struct ddps_mpa_tx *tx, const uint8_t *fpdu, size_t len, size_t sent)
{
	struct ddps_mpa_batch *b = begin_batch(tx);

	if (!b)
		return DDPS_E_NOMEM;
	memcpy(b->arena, fpdu, len);
	b->used = b->octets = b->end[0] = len;
	b->sent = sent;
	b->nfpdus = 1;
	b->iov[b->niov++] = (struct iovec){ b->arena + sent, len - sent };
	tx->dry = true;
	check_batch(b);
	return 0;
}

int ddps_mpa_tx_begin(struct ddps_mpa_tx *tx, const struct ddps_seg *seg, size_t mulpdu)
{
	if (!begin_batch(tx))
		return DDPS_E_NOMEM;
	if (!is_ulpdu(seg, mulpdu))
		return DDPS_E_INVAL;
	put_whole_fpdu(tx, seg);
	tx->begun = true;
	tx->dry = seg->final;
	return 0;
}

int ddps_mpa_tx_fill(struct ddps_mpa_tx *tx,
		     int (*next)(void *user, struct ddps_seg *seg, size_t mulpdu), void *user,
		     size_t mulpdu)
{
	struct ddps_mpa_batch *b = tx->begun ? tx->batch : begin_batch(tx);
	const struct most most = get_batch_most(tx, mulpdu);
	struct ddps_seg seg;

	if (!b)
		return DDPS_E_NOMEM;
	tx->begun = false;
	while (!tx->dry && has_batch_room(b, &most)) {
		seg.final = false;
		if (next(user, &seg, mulpdu) <= 0) {
			tx->dry = true;
			break;
		}
		tx->dry = seg.final;
		if (!is_ulpdu(&seg, mulpdu))
			return DDPS_E_INVAL;
		put_whole_fpdu(tx, &seg);
	}
	check_batch(b);
	if (b->nfpdus)
		return (int)b->nfpdus;
	ddps_mpa_tx_fini(tx);
	return 0;
}

unsigned ddps_mpa_tx_sent(struct ddps_mpa_tx *tx, size_t n)
{
	struct ddps_mpa_batch *b = tx->batch;
	unsigned before = b->done;

	if (n == b->octets - b->sent) { /* all, as a rule */
		b->sent = b->octets;
		b->done = b->nfpdus;
		b->iov_done = b->niov;
		return b->done - before;
	}
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
	check_batch(b);
	return b->done - before;
}

int ddps_mpa_tx_keep_copy(struct ddps_mpa_tx *tx)
{
	struct ddps_mpa_batch *b = tx->batch;
	size_t left = ddps_mpa_tx_left(tx), at = 0;

	if (!left || !b->refers)
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
	b->refers = false;
	check_batch(b);
	return 0;
}
