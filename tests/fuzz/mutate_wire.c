/* SPDX-License-Identifier: BSD-2-Clause */
/* Of mutate.h: FPDUs, SCTP chunks. */
#include "mpa_tcp/mpa_rx.h"
#include "mpa_tcp/mpa_tx.h"
#include "mutate.h"
#include "sctp/sctp_wire.h"

static unsigned get_mutate_wire_fuzz_u16(const uint8_t *p)
{
	return (unsigned)p[0] << 8 | p[1];
}

static void put_mutate_wire_fuzz_u16(uint8_t *p, unsigned v)
{
	p[0] = (uint8_t)(v >> 8);
	p[1] = (uint8_t)v;
}

/* ---- FPDUs ---- */

#define ULPDU_MAX 4096u

struct stream {
	struct fuzz_pieces ulpdus;
	uint8_t octets[1u << 16]; /* of those that were there */
	size_t used;
	unsigned next;
};

static int on_ulpdu(void *user, const uint8_t *p, size_t len)
{
	struct stream *s = user;

	if (len > sizeof s->octets - s->used)
		return -1;
	memcpy(s->octets + s->used, p, len);
	fuzz_pieces_add(&s->ulpdus, s->octets + s->used, len);
	s->used += len;
	return 0;
}

static size_t not_placed(void *user, const uint8_t *p, size_t have, size_t len)
{
	(void)user, (void)p, (void)have, (void)len;
	return 0;
}

/* The whole FPDUs at the beginning, as a receiver sees them. */
static void take_apart(struct stream *s, const uint8_t *p, size_t n, bool crc, bool markers)
{
	static const struct ddps_mpa_rx_sink sink = { .segment = on_ulpdu, .direct = not_placed };
	static uint8_t scratch[ULPDU_MAX];
	struct ddps_mpa_rx rx;
	struct ddps_error e = { 0 };
	int err = 0;

	ddps_mpa_rx_init(&rx, &sink, s);
	rx.crc = crc;
	rx.markers = markers;
	while (n && !err) {
		struct iovec iov[DDPS_MPA_RX_IOV];
		int k = ddps_mpa_rx_want(&rx, scratch, sizeof scratch, iov);
		size_t done = 0;

		for (int i = 0; i < k && done < n; i++) {
			size_t len = iov[i].iov_len < n - done ? iov[i].iov_len : n - done;

			if (len)
				memcpy(iov[i].iov_base, p + done, len);
			done += len;
		}
		err = ddps_mpa_rx_got(&rx, scratch, done, &e);
		p += done;
		n -= done;
	}
	ddps_mpa_rx_fini(&rx);
}

static int next_ulpdu(void *user, struct ddps_seg *seg, size_t mulpdu)
{
	struct stream *s = user;
	const uint8_t *p = s->ulpdus.p[s->next];
	size_t len = s->ulpdus.len[s->next];

	if (s->next == s->ulpdus.n || len > mulpdu)
		return 0;
	*seg = (struct ddps_seg){ .hdr_len = len < 14 ? len : 14 };
	memcpy(seg->hdr, p, seg->hdr_len);
	seg->pay_len = len - seg->hdr_len;
	if (seg->pay_len)
		seg->pay[seg->npay++] =
			(struct iovec){ (void *)(uintptr_t)(p + seg->hdr_len), seg->pay_len };
	s->next++;
	return 1;
}

/* Returns the length of the stream; the last FPDU may be cut. */
static size_t put_together(struct stream *s, uint8_t *out, size_t max, bool crc, bool markers)
{
	struct ddps_mpa_tx tx;
	struct iovec *iov;
	size_t n = 0;

	ddps_mpa_tx_init(&tx);
	tx.crc = crc;
	tx.markers = markers;
	while (n < max && s->next < s->ulpdus.n &&
	       ddps_mpa_tx_fill(&tx, next_ulpdu, s, ULPDU_MAX) > 0)
		while (ddps_mpa_tx_left(&tx)) {
			size_t len;

			FUZZ_CHECK(ddps_mpa_tx_iov(&tx, &iov) > 0);
			len = iov->iov_len < max - n ? iov->iov_len : max - n;
			memcpy(out + n, iov->iov_base, len);
			n += len;
			ddps_mpa_tx_sent(&tx, iov->iov_len);
		}
	ddps_mpa_tx_fini(&tx);
	return n;
}

size_t fuzz_mutate_fpdus(uint8_t *p, size_t n, size_t max, bool crc, bool markers,
			 struct fuzz_dice *d)
{
	static struct stream s;
	static uint8_t one[ULPDU_MAX];
	unsigned at;
	size_t len = 0;

	s.ulpdus.n = s.next = 0;
	s.used = 0;
	take_apart(&s, p, n, crc, markers);
	at = fuzz_roll(d, s.ulpdus.n + 1);
	if (fuzz_roll(d, 2)) {
		fuzz_pieces_reorder(&s.ulpdus, d);
	} else {
		if (at < s.ulpdus.n && s.ulpdus.len[at] <= sizeof one)
			memcpy(one, s.ulpdus.p[at], len = s.ulpdus.len[at]);
		if (fuzz_roll(d, 2) || !len)
			len = 1 + fuzz_odd_number(d, 11) % (sizeof one - 1);
		else
			len = LLVMFuzzerMutate(one, len, sizeof one);
		if (len)
			fuzz_pieces_insert(&s.ulpdus, at, one, len);
	}
	n = put_together(&s, p, max, crc, markers);
	if (n && !fuzz_roll(d, 4)) /* a length, a marker, a checksum or a pad that is wrong */
		p[fuzz_roll(d, (unsigned)n)] ^= (uint8_t)(1 + fuzz_roll(d, 255));
	return n;
}

/* ---- chunks; parameters and causes look the same but for their type ---- */

#define CHUNKS_MAX 4096u

static void cut_chunks(struct fuzz_pieces *s, const uint8_t *p, size_t n)
{
	while (n) {
		size_t len = n < 4 ? n : ddps_sc_pad(get_mutate_wire_fuzz_u16(p + 2));

		len = len < 4 || len > n || s->n + 1 == FUZZ_PIECES ? n : len;
		fuzz_pieces_add(s, p, len);
		p += len;
		n -= len;
	}
}

/* Of a chunk or parameter of @len octets that begins like this; padded. */
static size_t one_chunk(uint8_t *p, uint16_t type, size_t len, struct fuzz_dice *d)
{
	memset(p, 0, ddps_sc_pad(len));
	put_mutate_wire_fuzz_u16(p, type);
	put_mutate_wire_fuzz_u16(p + 2, (unsigned)len);
	for (size_t i = 4; i < len && fuzz_roll(d, 8); i++)
		p[i] = (uint8_t)fuzz_roll(d, 256);
	return ddps_sc_pad(len);
}

static size_t new_param(uint8_t *p, struct fuzz_dice *d)
{
	static const struct {
		uint16_t type, len;
	} known[] = { { SC_P_HB_INFO, 12 },
		      { SC_P_IPV4, 8 },
		      { SC_P_IPV6, 20 },
		      { SC_P_COOKIE, 40 },
		      { SC_P_UNRECOGNIZED, 8 },
		      { SC_P_PRESERVATIVE, 8 },
		      { SC_P_HOST_NAME, 16 },
		      { SC_P_ADDR_TYPES, 8 },
		      { SC_P_PADDING, 12 },
		      { SC_P_EXTENSIONS, 6 },
		      { SC_P_ADAPTATION, 8 },
		      { SC_CAUSE_MISSING, 10 },
		      { SC_CAUSE_STALE, 8 },
		      { SC_CAUSE_USER, 9 },
		      { 0x4001, 8 },
		      { 0x8001, 8 },
		      { 0xc001, 8 },
		      { SC_CAUSE_NO_DATA, 8 } };
	unsigned i = fuzz_roll(d, sizeof known / sizeof *known);

	return one_chunk(p, known[i].type, known[i].len, d);
}

/* Octets of its value in front of its parameters or causes; 0xff: it has none. */
static unsigned before_params(uint8_t type)
{
	switch (type) {
	case SC_INIT:
	case SC_INIT_ACK:
		return 16;
	case SC_HEARTBEAT:
	case SC_HEARTBEAT_ACK:
	case SC_ABORT:
	case SC_ERROR:
		return 0;
	default:
		return 0xff;
	}
}

static size_t new_chunk(uint8_t *p, struct fuzz_dice *d)
{
	static const uint8_t types[] = { SC_DATA,
					 SC_INIT,
					 SC_INIT_ACK,
					 SC_SACK,
					 SC_HEARTBEAT,
					 SC_HEARTBEAT_ACK,
					 SC_ABORT,
					 SC_SHUTDOWN,
					 SC_SHUTDOWN_ACK,
					 SC_ERROR,
					 SC_COOKIE_ECHO,
					 SC_COOKIE_ACK,
					 12,
					 13,
					 SC_SHUTDOWN_COMPLETE,
					 SC_PAD,
					 0x3f,
					 0x7f,
					 0xbf,
					 0xff };
	uint8_t type = types[fuzz_roll(d, sizeof types)];
	unsigned before = before_params(type);
	size_t len = 4;

	if (type == SC_DATA)
		len = DDPS_SC_DATA_HDR + fuzz_roll(d, 40);
	else if (type == SC_SACK)
		len = 16 + 4 * fuzz_roll(d, 4);
	else if (type == SC_SHUTDOWN)
		len = 8;
	else if (type == SC_COOKIE_ECHO || type > SC_SHUTDOWN_COMPLETE)
		len = 4 + fuzz_roll(d, 40);
	else if (before != 0xff)
		len = 4 + before;
	one_chunk(p, (uint16_t)((unsigned)type << 8 | fuzz_roll(d, 16)), len, d);
	if (type == SC_SACK) {
		put_mutate_wire_fuzz_u16(p + 12, (uint16_t)((len - 16) / 4));
		put_mutate_wire_fuzz_u16(p + 14, 0);
	}
	for (unsigned i = before == 0xff ? 0 : fuzz_roll(d, 4); i; i--)
		len += new_param(p + len, d);
	put_mutate_wire_fuzz_u16(p + 2, (unsigned)len);
	return ddps_sc_pad(len);
}

/* One of @n octets: its length, its type or what is in it is another. */
static size_t change_chunk(uint8_t *p, size_t n, size_t max, bool param, struct fuzz_dice *d)
{
	unsigned how = fuzz_roll(d, 4), before = param ? 0xff : before_params(p[0]);
	size_t len;

	if (n < 4)
		return n;
	if (!how) {
		static const int off[] = { 1, -1, 4, -4 };
		unsigned by = fuzz_roll(d, 8);

		put_mutate_wire_fuzz_u16(p + 2, by < 4 ? get_mutate_wire_fuzz_u16(p + 2) +
								 (unsigned)off[by]
						       : (unsigned)fuzz_odd_number(d, 16));
		return n;
	}
	if (how == 1) {
		p[param ? fuzz_roll(d, 2) : 0] ^= (uint8_t)(1u << fuzz_roll(d, 8));
		return n;
	}
	if (before != 0xff && n >= 4 + before && how == 2) {
		uint8_t *at = p + 4 + before;
		struct fuzz_pieces list = { .n = 0 };
		uint8_t *was = fuzz_exact(at, n - 4 - before), fresh[64];

		cut_chunks(&list, was, n - 4 - before);
		if (list.n && fuzz_roll(d, 2))
			fuzz_pieces_reorder(&list, d);
		else
			fuzz_pieces_insert(&list, fuzz_roll(d, list.n + 1), fresh,
					   new_param(fresh, d));
		len = 4 + before + fuzz_pieces_join(&list, at, max - 4 - before);
		free(was);
	} else {
		len = 4 + LLVMFuzzerMutate(p + 4, n - 4, max - 4);
	}
	put_mutate_wire_fuzz_u16(p + 2, (unsigned)len);
	for (; len & 3 && len < max; len++)
		p[len] = 0;
	return len;
}

size_t fuzz_mutate_chunks(uint8_t *p, size_t n, size_t max, struct fuzz_dice *d)
{
	struct fuzz_pieces list = { .n = 0 };
	static uint8_t one[CHUNKS_MAX];
	uint8_t *was = fuzz_exact(p, n);
	unsigned at, how = fuzz_roll(d, 3);

	cut_chunks(&list, was, n);
	at = fuzz_roll(d, list.n + 1);
	if (!how) {
		fuzz_pieces_reorder(&list, d);
	} else if (how == 1 && at < list.n && list.len[at] <= sizeof one / 2) {
		memcpy(one, list.p[at], list.len[at]);
		list.len[at] = change_chunk(one, list.len[at], sizeof one / 2, false, d);
		list.p[at] = one;
	} else {
		fuzz_pieces_insert(&list, at, one, new_chunk(one, d));
	}
	n = fuzz_pieces_join(&list, p, max);
	free(was);
	return n;
}

size_t fuzz_mutate_packet(uint8_t *p, size_t n, size_t max, struct fuzz_dice *d)
{
	FUZZ_CHECK(n >= DDPS_SC_HDR && max >= n);
	n = DDPS_SC_HDR +
	    fuzz_mutate_chunks(p + DDPS_SC_HDR, n - DDPS_SC_HDR, max - DDPS_SC_HDR, d);
	ddps_sc_crc_put(p, n);
	return n;
}
