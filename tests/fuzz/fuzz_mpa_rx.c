/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The FPDU receiver.  The input makes ULPDUs, which the transmitter turns into a stream; octets of
 * it are then changed, or the stream is the rest of the input as it is.  Received in two different
 * cuts, and with direct placement, the same must come out; unchanged, what was sent.
 */
#include "fuzz.h"
#include "mpa_tcp/mpa_rx.h"
#include "mpa_tcp/mpa_tx.h"
#include "mutate.h"

#define STREAM_MAX  (1u << 17)
#define SCRATCH_LEN 4096u
#define HDR_LEN	    14u /* of a segment that is placed directly */

enum { CRC = 1, MARKERS = 2, RAW = 4, HOLD = 8, REFUSE = 16, DIRECT = 32 };

/* ---- sending ---- */

struct source {
	struct ddps_rbuf in;
	struct fuzz_log log; /* of what the receiver should see */
	uint8_t *pay[64];
	unsigned n;
	size_t octets;
};

static void note_segment(struct fuzz_log *l, const uint8_t *a, size_t na, const uint8_t *b,
			 size_t nb)
{
	fuzz_note(l, "segment of %zu", na + nb);
	for (size_t i = 0; i < na + nb; i++) /* wherever it is cut */
		l->hash = l->hash * 31 + (i < na ? a[i] : b[i - na]);
}

/* A segment of 1 octet up to 4 KiB, in up to two pieces. */
static int next_segment(void *user, struct ddps_seg *seg, size_t mulpdu)
{
	struct source *s = user;
	size_t len = 1u + ddps_rbuf_u16(&s->in) % 4096, got;
	const uint8_t *p;
	uint8_t *pay;

	if (s->n == sizeof s->pay / sizeof *s->pay || !fuzz_more(&s->in) ||
	    s->octets + len > STREAM_MAX / 4 || len > mulpdu)
		return 0;
	pay = malloc(len);
	FUZZ_CHECK(pay);
	for (size_t i = 0; i < len; i++)
		pay[i] = (uint8_t)(i * 7 + i / 251 + s->n);
	p = fuzz_some(&s->in, len % 8, &got);
	if (got)
		memcpy(pay, p, got);
	*seg = (struct ddps_seg){ .hdr_len = len < HDR_LEN ? len : HDR_LEN };
	memcpy(seg->hdr, pay, seg->hdr_len);
	seg->pay_len = len - seg->hdr_len;
	if (seg->pay_len)
		seg->pay[seg->npay++] = (struct iovec){ pay + seg->hdr_len, seg->pay_len };
	note_segment(&s->log, pay, len, NULL, 0);
	s->pay[s->n++] = pay;
	s->octets += len;
	return 1;
}

static size_t encode_mpa_rx_fuzz(struct source *s, uint8_t *out, unsigned flags)
{
	struct ddps_mpa_tx tx;
	struct iovec *iov;
	size_t len = 0;
	unsigned done = 0;

	ddps_mpa_tx_init(&tx);
	tx.crc = flags & CRC;
	tx.markers = flags & MARKERS;
	while (ddps_mpa_tx_fill(&tx, next_segment, s, 4096) > 0)
		while (ddps_mpa_tx_left(&tx)) {
			int n = ddps_mpa_tx_iov(&tx, &iov);

			FUZZ_CHECK(n > 0 && len + iov->iov_len <= STREAM_MAX);
			memcpy(out + len, iov->iov_base, iov->iov_len);
			len += iov->iov_len;
			done += ddps_mpa_tx_sent(&tx, iov->iov_len);
		}
	FUZZ_CHECK(done == s->n);
	ddps_mpa_tx_fini(&tx);
	return len;
}

/* ---- receiving ---- */

struct receiver {
	struct ddps_mpa_rx rx;
	struct fuzz_log log;
	uint8_t *scratch, *place;
	unsigned flags, segments, calls;
	size_t pay_len, pay_at;
	uint8_t hdr[HDR_LEN];
	bool placing, refused;
	int err;
};

static int verdict(struct receiver *r)
{
	r->segments++;
	if (!(r->flags & REFUSE) || r->segments < 5)
		return 0;
	r->refused = true;
	return -1;
}

static int on_segment(void *user, const uint8_t *seg, size_t len)
{
	struct receiver *r = user;
	uint8_t *copy;

	FUZZ_CHECK(!r->refused && !r->err && !r->placing && len);
	if (r->flags & HOLD && ++r->calls % 3 == 0)
		return DDPS_LLP_HOLD;
	copy = fuzz_exact(seg, len);
	note_segment(&r->log, copy, len, NULL, 0);
	free(copy);
	return verdict(r);
}

static size_t on_direct(void *user, const uint8_t *hdr, size_t have, size_t seg_len)
{
	struct receiver *r = user;

	FUZZ_CHECK(!r->refused && !r->err && !r->placing);
	FUZZ_CHECK(!(r->flags & (CRC | MARKERS)) && have >= 18 && have < seg_len);
	if (!(r->flags & DIRECT))
		return 0;
	memcpy(r->hdr, hdr, HDR_LEN);
	r->pay_len = seg_len - HDR_LEN;
	r->place = malloc(r->pay_len);
	FUZZ_CHECK(r->place);
	r->placing = true;
	return HDR_LEN;
}

/* In pieces of at most 100 octets. */
static int on_direct_iov(void *user, size_t off, struct iovec *iov, int max)
{
	struct receiver *r = user;
	int n = 0;

	FUZZ_CHECK(r->placing && off < r->pay_len && max > 0);
	for (; n < max && off < r->pay_len; n++) {
		size_t len = r->pay_len - off < 100 ? r->pay_len - off : 100;

		iov[n] = (struct iovec){ r->place + off, len };
		off += len;
	}
	return n;
}

static int on_direct_end(void *user)
{
	struct receiver *r = user;

	FUZZ_CHECK(r->placing && !r->refused);
	note_segment(&r->log, r->hdr, HDR_LEN, r->place, r->pay_len);
	free(r->place);
	r->place = NULL;
	r->placing = false;
	return verdict(r);
}

static const struct ddps_mpa_rx_sink sink = {
	.segment = on_segment,
	.direct = on_direct,
	.direct_iov = on_direct_iov,
	.direct_end = on_direct_end,
};

static void note_error(struct receiver *r, int err, const struct ddps_error *e)
{
	if (!err)
		return;
	FUZZ_CHECK(!r->err && !r->refused); /* told once */
	FUZZ_CHECK(err == e->code && e->triple.layer == 2);
	r->err = err;
	fuzz_note(&r->log, "error %d, code %d", err, e->triple.code);
}

/* One read of at most @max octets; returns how many. */
static size_t read_some(struct receiver *r, const uint8_t *p, size_t n, size_t max)
{
	struct iovec iov[DDPS_MPA_RX_IOV];
	struct ddps_error e = { 0 };
	int k = ddps_mpa_rx_want(&r->rx, r->scratch, SCRATCH_LEN, iov);
	size_t done = 0;

	FUZZ_CHECK(k > 0 && k <= DDPS_MPA_RX_IOV);
	n = n < max ? n : max;
	for (int i = 0; i < k && done < n; i++) {
		size_t len = iov[i].iov_len < n - done ? iov[i].iov_len : n - done;

		if (len)
			memcpy(iov[i].iov_base, p + done, len);
		done += len;
	}
	note_error(r, ddps_mpa_rx_got(&r->rx, r->scratch, done, &e), &e);
	while (r->rx.stalled)
		note_error(r, ddps_mpa_rx_resume(&r->rx, &e), &e);
	FUZZ_CHECK(ddps_mpa_rx_kept(&r->rx) < 65536 + 1024 + SCRATCH_LEN);
	if (done % 3 == 0)
		ddps_mpa_rx_idle(&r->rx);
	return done;
}

/* @cut 0: as much as fits; else reads of lengths that follow from it. */
static struct fuzz_log receive_mpa_rx_fuzz(const uint8_t *p, size_t n, unsigned flags, unsigned cut)
{
	struct receiver r = { .flags = flags };
	size_t done;

	ddps_mpa_rx_init(&r.rx, &sink, &r);
	r.rx.crc = flags & CRC;
	r.rx.markers = flags & MARKERS;
	r.scratch = malloc(SCRATCH_LEN);
	FUZZ_CHECK(r.scratch);
	for (unsigned seed = cut; n; n -= done, p += done) {
		seed = seed * 1103515245 + 12345;
		done = read_some(&r, p, n,
				 !cut ? SCRATCH_LEN : 1 + (seed >> 16) % (cut % 2 ? cut : 600));
	}
	if (!r.err && !r.refused)
		fuzz_note(&r.log, "boundary %d", ddps_mpa_rx_at_boundary(&r.rx));
	ddps_mpa_rx_fini(&r.rx);
	free(r.scratch);
	free(r.place);
	return r.log;
}

static void receive_all(const uint8_t *p, size_t n, unsigned flags, unsigned cut,
			const struct fuzz_log *sent)
{
	struct fuzz_log a = receive_mpa_rx_fuzz(p, n, flags & ~(unsigned)(HOLD | DIRECT), 0);

	FUZZ_CHECK(a.hash == receive_mpa_rx_fuzz(p, n, flags & ~(unsigned)DIRECT, cut).hash);
	FUZZ_CHECK(a.hash == receive_mpa_rx_fuzz(p, n, flags | DIRECT, cut + 1).hash);
	if (sent && !(flags & REFUSE))
		FUZZ_CHECK(a.hash == sent->hash);
}

/* Octets that the rest of the input changes: where, and by what. */
static bool spoil_mpa_rx_fuzz(struct ddps_rbuf *in, uint8_t *p, size_t n)
{
	unsigned count = ddps_rbuf_u8(in) % 4;
	bool spoilt = false;

	for (unsigned i = 0; n && i < count; i++) {
		size_t at = ddps_rbuf_u16(in) % n;
		uint8_t by = ddps_rbuf_u8(in);

		p[at] ^= by;
		spoilt |= by != 0;
	}
	return spoilt;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct source s = { .in = ddps_rbuf_init(data, size) };
	unsigned flags = ddps_rbuf_u8(&s.in), cut = 1u + ddps_rbuf_u8(&s.in);
	struct ddps_rbuf changes = s.in;
	uint8_t *stream, *exact;
	bool spoilt;
	size_t n;

	if (flags & RAW) {
		receive_all(s.in.p, ddps_rbuf_left(&s.in), flags, cut, NULL);
		return 0;
	}
	ddps_rbuf_take(&changes, 16);
	ddps_rbuf_take(&s.in, changes.failed ? 0 : 16);
	changes = ddps_rbuf_init(s.in.p, 0);
	if (s.in.p - data >= 16)
		changes = ddps_rbuf_init(s.in.p - 16, 16);
	stream = malloc(STREAM_MAX);
	FUZZ_CHECK(stream);
	n = encode_mpa_rx_fuzz(&s, stream, flags);
	spoilt = spoil_mpa_rx_fuzz(&changes, stream, n);
	exact = fuzz_exact(stream, n);
	fuzz_note(&s.log, "boundary 1");
	receive_all(exact, n, flags, cut, spoilt ? NULL : &s.log);
	free(exact);
	free(stream);
	for (unsigned i = 0; i < s.n; i++)
		free(s.pay[i]);
	return 0;
}

/* A stream as it is: its FPDUs are changed.  A script: libFuzzer's own, or its stream instead. */
size_t LLVMFuzzerCustomMutator(uint8_t *data, size_t size, size_t max, unsigned seed)
{
	struct fuzz_dice d;
	unsigned flags;

	if (!fuzz_mutate_begin(&d, seed) || size < 2 || (!(data[0] & RAW) && fuzz_roll(&d, 4)))
		return LLVMFuzzerMutate(data, size, max);
	flags = data[0] |= RAW;
	return 2 + fuzz_mutate_fpdus(data + 2, size - 2, max - 2, flags & CRC, flags & MARKERS, &d);
}
