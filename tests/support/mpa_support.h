/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef MPA_SUPPORT_H
#define MPA_SUPPORT_H
/*
 * For the MPA tests: a second, naive FPDU encoder (octet by octet, bit-serial CRC) to compare
 * with, a generator of repeatable numbers, and a receiver whose ULPDUs are written down.
 */
#include "mpa_tcp/mpa_rx.h"
#include <criterion/criterion.h>
#include <stdlib.h>
#include <string.h>

static inline uint32_t mpa_random(uint32_t *seed)
{
	*seed ^= *seed << 13;
	*seed ^= *seed >> 17;
	*seed ^= *seed << 5;
	return *seed;
}

/* ---- octet strings that grow ---- */

struct mpa_octets {
	uint8_t *p;
	size_t len, size;
};

static inline void mpa_octets_add(struct mpa_octets *o, const void *p, size_t n)
{
	if (o->len + n > o->size) {
		o->size = 2 * (o->len + n);
		o->p = realloc(o->p, o->size);
		cr_assert_not_null(o->p);
	}
	if (n)
		memcpy(o->p + o->len, p, n);
	o->len += n;
}

/* A copy in exactly as much memory: a sanitizer guards the octet behind it. */
static inline uint8_t *mpa_exact(const void *p, size_t n)
{
	uint8_t *copy = malloc(n ? n : 1);

	cr_assert_not_null(copy);
	if (n)
		memcpy(copy, p, n);
	return copy;
}

/* ---- the reference encoder ---- */

struct mpa_ref {
	bool crc, markers;
	uint64_t at;  /* stream offset */
	uint32_t reg; /* CRC register, MSB first */
	size_t hdr;   /* stream offset of ULPDU_Length */
	bool in_fpdu;
	struct mpa_octets out;
};

static inline void mpa_ref_raw(struct mpa_ref *r, uint8_t octet)
{
	for (int bit = 0; bit < 8; bit++) {
		uint32_t in = ((uint32_t)octet >> bit & 1u) ^ r->reg >> 31;

		r->reg = r->reg << 1 ^ (in ? 0x1EDC6F41u : 0);
	}
	mpa_octets_add(&r->out, &octet, 1);
	r->at++;
}

static inline void mpa_ref_marker(struct mpa_ref *r)
{
	size_t ptr = r->in_fpdu ? (size_t)r->at - r->hdr : 0;

	if (!r->markers || r->at % 512)
		return;
	mpa_ref_raw(r, 0);
	mpa_ref_raw(r, 0);
	mpa_ref_raw(r, (uint8_t)(ptr >> 8));
	mpa_ref_raw(r, (uint8_t)ptr);
}

static inline void mpa_ref_octet(struct mpa_ref *r, uint8_t octet)
{
	mpa_ref_marker(r);
	if (!r->in_fpdu) {
		r->in_fpdu = true;
		r->hdr = (size_t)r->at;
	}
	mpa_ref_raw(r, octet);
}

/* Append one FPDU; @pad: what the pad octets are. */
static inline void mpa_ref_fpdu_pad(struct mpa_ref *r, const uint8_t *ulpdu, size_t len,
				    uint8_t pad)
{
	uint32_t crc = 0;

	r->reg = 0xFFFFFFFFu;
	r->in_fpdu = false;
	mpa_ref_octet(r, (uint8_t)(len >> 8));
	mpa_ref_octet(r, (uint8_t)len);
	for (size_t i = 0; i < len; i++)
		mpa_ref_octet(r, ulpdu[i]);
	for (size_t n = len + 2; n % 4; n++)
		mpa_ref_octet(r, pad);
	mpa_ref_marker(r);
	for (int bit = 0; bit < 32; bit++)
		crc |= (~r->reg >> (31 - bit) & 1u) << bit;
	for (int i = 0; i < 4; i++)
		mpa_ref_raw(r, (uint8_t)(r->crc ? crc >> (8 * i) : 0));
}

static inline void mpa_ref_fpdu(struct mpa_ref *r, const uint8_t *ulpdu, size_t len)
{
	mpa_ref_fpdu_pad(r, ulpdu, len, 0);
}

/* @len octets that differ from their neighbours and from FPDU to FPDU. */
static inline uint8_t *mpa_pattern(size_t len, uint32_t seed)
{
	uint8_t *p = malloc(len ? len : 1);

	cr_assert_not_null(p);
	for (size_t i = 0; i < len; i++)
		p[i] = (uint8_t)(i * 7 + i / 251 + seed);
	return p;
}

/* ---- a receiver that writes down ---- */

struct mpa_rec {
	struct ddps_mpa_rx rx;
	uint8_t *scratch;
	size_t scratch_len;
	struct mpa_octets got;	      /* length in 4 octets, then the ULPDU, and so on */
	unsigned hold_every, holds;   /* every so-many-th call is answered by "not now" */
	unsigned segments, refuse_at; /* the refuse_at-th is refused; 0: none */
	int err;
	struct ddps_error e;

	/* direct placement */
	size_t direct_hdr; /* what direct() answers */
	size_t piece;	   /* direct_iov() gives pieces of so many octets */
	uint8_t *place;	   /* 65536 octets */
	size_t excess;	   /* which are longer than asked for, by so much */
	size_t pay_len;	   /* of the segment being placed */
	uint8_t hdr[20];
	unsigned directs, placed, revoke_at; /* direct_iov() fails on the revoke_at-th call */
	unsigned iov_calls, calls;
};

static inline void mpa_rec_note(struct mpa_rec *r, const uint8_t *a, size_t na, const uint8_t *b,
				size_t nb)
{
	uint32_t len = (uint32_t)(na + nb);

	mpa_octets_add(&r->got, &len, sizeof len);
	mpa_octets_add(&r->got, a, na);
	mpa_octets_add(&r->got, b, nb);
	r->segments++;
}

static int mpa_rec_segment(void *user, const uint8_t *seg, size_t len)
{
	struct mpa_rec *r = user;

	if (r->hold_every && ++r->calls % r->hold_every == 0) {
		r->holds++;
		return DDPS_LLP_HOLD;
	}
	mpa_rec_note(r, seg, len, NULL, 0);
	return r->segments == r->refuse_at ? -1 : 0;
}

static size_t mpa_rec_direct(void *user, const uint8_t *hdr, size_t have, size_t seg_len)
{
	struct mpa_rec *r = user;

	cr_assert(have >= 18 && have < seg_len);
	if (!r->direct_hdr)
		return 0;
	memcpy(r->hdr, hdr, r->direct_hdr);
	r->pay_len = seg_len - r->direct_hdr;
	r->directs++;
	return r->direct_hdr;
}

static int mpa_rec_direct_iov(void *user, size_t off, struct iovec *iov, int max)
{
	struct mpa_rec *r = user;
	int n = 0;

	if (++r->iov_calls == r->revoke_at)
		return -1;
	while (n < max && off < r->pay_len) {
		size_t len = r->piece < r->pay_len - off ? r->piece : r->pay_len - off;

		iov[n++] = (struct iovec){ r->place + off, len + r->excess };
		off += len;
	}
	return n;
}

static int mpa_rec_direct_end(void *user)
{
	struct mpa_rec *r = user;

	r->placed++;
	mpa_rec_note(r, r->hdr, r->direct_hdr, r->place, r->pay_len);
	return r->segments == r->refuse_at ? -1 : 0;
}

static const struct ddps_mpa_rx_sink mpa_rec_sink = {
	.segment = mpa_rec_segment,
	.direct = mpa_rec_direct,
	.direct_iov = mpa_rec_direct_iov,
	.direct_end = mpa_rec_direct_end,
};

static inline void mpa_rec_init(struct mpa_rec *r, bool crc, bool markers)
{
	*r = (struct mpa_rec){ .scratch_len = 256 * 1024, .piece = 1000 };
	r->scratch = malloc(r->scratch_len);
	r->place = malloc(65536);
	cr_assert(r->scratch && r->place);
	ddps_mpa_rx_init(&r->rx, &mpa_rec_sink, r);
	r->rx.crc = crc;
	r->rx.markers = markers;
}

static inline void mpa_rec_fini(struct mpa_rec *r)
{
	ddps_mpa_rx_fini(&r->rx);
	free(r->scratch);
	free(r->place);
	free(r->got.p);
}

/* What a read of at most @max octets would do; returns how many were taken. */
static inline size_t mpa_rec_read(struct mpa_rec *r, const uint8_t *p, size_t n, size_t max)
{
	struct iovec iov[DDPS_MPA_RX_IOV];
	int k = ddps_mpa_rx_want(&r->rx, r->scratch, r->scratch_len, iov);
	size_t done = 0, limit = n < max ? n : max;
	int err;

	cr_assert(k > 0 && k <= DDPS_MPA_RX_IOV);
	for (int i = 0; i < k && done < limit; i++) {
		size_t len = iov[i].iov_len < limit - done ? iov[i].iov_len : limit - done;

		memcpy(iov[i].iov_base, p + done, len);
		done += len;
	}
	err = ddps_mpa_rx_got(&r->rx, r->scratch, done, &r->e);
	if (err) {
		cr_assert_eq(r->err, 0, "told twice");
		r->err = err;
	}
	return done;
}

/* All of @p in reads of at most @max octets each; 0: of random length. */
static inline void mpa_rec_feed(struct mpa_rec *r, const uint8_t *p, size_t n, size_t max,
				uint32_t seed)
{
	while (n) {
		size_t len = max ? max : 1 + mpa_random(&seed) % 1500, done;

		done = mpa_rec_read(r, p, n, len);
		p += done;
		n -= done;
	}
}

/* Did exactly @ulpdu come as the @nth segment (from 0)? */
static inline bool mpa_rec_is(const struct mpa_rec *r, unsigned nth, const uint8_t *ulpdu,
			      size_t len)
{
	size_t at = 0;
	uint32_t n = 0;

	for (unsigned i = 0; at + sizeof n <= r->got.len; i++) {
		memcpy(&n, r->got.p + at, sizeof n);
		at += sizeof n;
		if (i == nth)
			return n == len && !memcmp(r->got.p + at, ulpdu, len);
		at += n;
	}
	return false;
}

#endif
