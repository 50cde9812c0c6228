/* SPDX-License-Identifier: BSD-2-Clause */
/* FPDU receiver: finds, verifies and hands up ULPDUs; strips markers. */
#include "mpa_tcp/mpa_rx.h"
#include "common/bytes.h"
#include "common/error.h"
#include "common/system/assert.h"
#include "common/term_codes.h"
#include "mpa_tcp/mpa_crc.h"
#include "mpa_tcp/mpa_fpdu.h"
#include <limits.h>
#include <stdlib.h>

/* The longest FPDU: all but markers, with the longest pad; then the markers (RFC 5044 4.3). */
#define PART_BARE (DDPS_MPA_LEN_FIELD + 65535u + 3u + DDPS_MPA_CRC_LEN)
#define PART_MAX                                                                                   \
	(PART_BARE +                                                                               \
	 (PART_BARE / (DDPS_MPA_MARKER_EVERY - DDPS_MPA_MARKER_LEN) + 2) * DDPS_MPA_MARKER_LEN)

/* While the payload of so large an FPDU is read to its place, no more than the next one's header is
 * read with it: to copy that one's payload from the scratch buffer would cost more than the system
 * call that reads it to its place, too. */
#define AHEAD_BELOW 8192u

#define ASK_LEAST 4096u
#define ASK_MOST  (512u * 1024)

void ddps_mpa_rx_init(struct ddps_mpa_rx *rx, const struct ddps_mpa_rx_sink *sink, void *user)
{
	*rx = (struct ddps_mpa_rx){
		.sink = sink, .user = user, .share = UINT_MAX, .ask = ASK_MOST
	};
}

/* An FPDU that is not whole is kept in one way, and what is asked for has room. */
static void check_kept(const struct ddps_mpa_rx *rx)
{
	ddps_assert((rx->head_len != 0) + (rx->part_total != 0) + rx->placing <= 1 || rx->dead);
	ddps_assert(rx->head_len < DDPS_MPA_RX_HEAD);
	ddps_assert(!rx->part_total ||
		    (rx->part_len < rx->part_total && rx->part_total <= rx->part_size));
	ddps_assert(!rx->placing || rx->pay_off <= rx->pay_len);
	ddps_assert(rx->tail_off <= rx->tail_len && rx->tail_len <= sizeof rx->tail);
	ddps_assert(rx->dead || !rx->hold == !(rx->stalled || rx->cut));
}

static void part_fini(struct ddps_mpa_rx *rx)
{
	ddps_spare_put(rx->spares, rx->part);
	rx->part = NULL;
	rx->part_size = rx->part_len = rx->part_total = 0;
}

static void hold_fini(struct ddps_mpa_rx *rx)
{
	free(rx->hold);
	if (rx->aheads)
		--*rx->aheads;
	rx->aheads = NULL;
	rx->hold = NULL;
	rx->hold_seg_len = rx->hold_rest_len = rx->hold_room = 0;
}

/* ---- one whole FPDU ---- */

/* Octets before ULPDU_Length: the leading marker, if the FPDU begins with one. */
static size_t get_lead_len(const struct ddps_mpa_rx *rx)
{
	return rx->markers && !rx->phase ? DDPS_MPA_MARKER_LEN : 0;
}

/* Offset in the FPDU of its first marker behind @from. */
static size_t next_marker(const struct ddps_mpa_rx *rx, size_t from)
{
	return from + DDPS_MPA_MARKER_EVERY - (rx->phase + from) % DDPS_MPA_MARKER_EVERY;
}

static size_t get_u16(const uint8_t *p)
{
	return (size_t)p[0] << 8 | p[1];
}

/* Size of the FPDU that begins at @p, or 0 while its length field is not there yet. */
static size_t size_of_fpdu(const struct ddps_mpa_rx *rx, const uint8_t *p, size_t n, size_t *ulpdu)
{
	size_t at = get_lead_len(rx);

	if (n < at + DDPS_MPA_LEN_FIELD)
		return 0;
	*ulpdu = get_u16(p + at);
	return ddps_mpa_fpdu_size(*ulpdu, rx->markers, rx->phase);
}

static __attribute__((noinline, cold)) int bad_crc(struct ddps_mpa_rx *rx, const uint8_t *p,
						   size_t total, size_t ulpdu, uint32_t computed,
						   struct ddps_error *e)
{
	static const uint8_t none[DDPS_MPA_CRC_LEN];
	const uint8_t *field = p + total - DDPS_MPA_CRC_LEN,
		      *seg = p + get_lead_len(rx) + DDPS_MPA_LEN_FIELD;
	const char *hint = "";

	/* Linux siw sends the Terminates of a failed negotiation before it turns CRCs on. */
	if (!rx->fpdus && ulpdu >= 22 && get_u16(seg) == 0x4147 &&
	    !memcmp(field, none, sizeof none))
		hint = "; it is a Terminate whose CRC field is zero";
	*e = ddps_error_triple(
		DDPS_E_CRC, ddps_term_triple(DDPS_TERM_MPA_CRC),
		"FPDU with a ULPDU of %zu octets: CRC is 0x%08x, field says 0x%08x%s", ulpdu,
		(unsigned)~computed, (unsigned)~ddps_mpa_crc_load(field), hint);
	return DDPS_E_CRC;
}

/* Length and markers must agree; told only of an FPDU whose CRC is good (or not used). */
static __attribute__((noinline)) int check_markers(const struct ddps_mpa_rx *rx, const uint8_t *p,
						   size_t total, size_t ulpdu, struct ddps_error *e)
{
	size_t hdr = get_lead_len(rx);

	if (!ulpdu || (rx->markers && ulpdu > DDPS_MPA_ULPDU_MAX)) {
		*e = ddps_error_triple(DDPS_E_MARKER, ddps_term_triple(DDPS_TERM_MPA_MARKER),
				       "FPDU with a ULPDU of %zu octets", ulpdu);
		return DDPS_E_MARKER;
	}
	if (!rx->markers)
		return 0;
	for (size_t at = hdr ? 0 : next_marker(rx, 0); at < total; at = next_marker(rx, at)) {
		size_t expect = at ? at - hdr : 0;
		size_t got = get_u16(p + at + 2) & DDPS_MPA_FPDUPTR_MASK; /* [5044-4.2-3] */

		if (got == expect)
			continue;
		*e = ddps_error_triple(DDPS_E_MARKER, ddps_term_triple(DDPS_TERM_MPA_MARKER),
				       "marker %zu octets into an FPDU with a ULPDU of %zu octets: "
				       "pointer is %zu, should be %zu",
				       at, ulpdu, got, expect);
		return DDPS_E_MARKER;
	}
	return 0;
}

/* Close the gaps that the markers behind the length field leave [5044-4.3-12]. */
static __attribute__((noinline)) void strip_markers(const struct ddps_mpa_rx *rx, uint8_t *p,
						    size_t total)
{
	size_t at = next_marker(rx, 0), to = at;

	while (at < total) {
		size_t next = next_marker(rx, at), end = next < total ? next : total;
		size_t n = end - at - DDPS_MPA_MARKER_LEN;

		memmove(p + to, p + at + DDPS_MPA_MARKER_LEN, n);
		to += n;
		at = next;
	}
}

/* What the sink says of a segment. */
static __attribute__((noinline)) void note_verdict(struct ddps_mpa_rx *rx, int verdict,
						   uint8_t *seg, size_t len)
{
	if (verdict < 0)
		rx->dead = true;
	rx->stalled = verdict == DDPS_LLP_HOLD;
	rx->hold_seg = seg;
	rx->hold_seg_len = rx->stalled ? len : 0;
}

static void show_segment(struct ddps_mpa_rx *rx, uint8_t *seg, size_t len)
{
	note_verdict(rx, rx->sink->segment(rx->user, seg, len), seg, len);
}

/* @p: a whole FPDU.  0 or DDPS_E_*. */
static int deliver_fpdu(struct ddps_mpa_rx *rx, uint8_t *p, size_t total, size_t ulpdu,
			struct ddps_error *e)
{
	uint8_t *seg = p + get_lead_len(rx) + DDPS_MPA_LEN_FIELD;
	int err = 0;

	/* [5044-4.4-18] first of all; [5044-7.1.1-11] with CRCs off any value will do. */
	if (rx->crc) {
		uint32_t crc = ddps_mpa_crc(DDPS_MPA_CRC_INIT, p, total - DDPS_MPA_CRC_LEN);

		if (crc != ddps_mpa_crc_load(p + total - DDPS_MPA_CRC_LEN))
			err = bad_crc(rx, p, total, ulpdu, crc, e);
	}
	if (!err && (rx->markers || !ulpdu))
		err = check_markers(rx, p, total, ulpdu, e);
	if (err) {
		rx->dead = true; /* [5044-8-8] */
		return err;
	}
	if (rx->markers) {
		strip_markers(rx, p, total);
		rx->phase = (uint16_t)((rx->phase + total) % DDPS_MPA_MARKER_EVERY);
	}
	rx->fpdus++;
	show_segment(rx, seg, ulpdu);
	return 0;
}

/* ---- the stream ---- */

static int fail_without_memory(struct ddps_mpa_rx *rx, size_t total, struct ddps_error *e)
{
	rx->dead = true;
	*e = ddps_error_make(DDPS_E_NOMEM, 0, "no memory for an FPDU of %zu octets", total);
	return DDPS_E_NOMEM;
}

/*
 * Keep the segment held back and the @n octets at @rest that came behind its FPDU.  If that is
 * where both lie already, from an earlier stall, nothing is moved.
 */
static int keep_stalled(struct ddps_mpa_rx *rx, uint8_t *rest, size_t n, struct ddps_error *e)
{
	size_t len = rx->hold_seg_len;
	uint8_t *hold;

	rx->hold_rest = rest;
	rx->hold_rest_len = n;
	if (rx->hold)
		return 0;
	hold = malloc(len + n);
	if (!hold) {
		rx->stalled = false;
		hold_fini(rx);
		return fail_without_memory(rx, len + n, e);
	}
	memcpy(hold, rx->hold_seg, len);
	if (n)
		memcpy(hold + len, rest, n);
	rx->hold = rx->hold_seg = hold;
	rx->hold_rest = hold + len;
	return 0;
}

/* Keep the @n octets at @p for the next turn, in the same way. */
static int keep_cut(struct ddps_mpa_rx *rx, uint8_t *p, size_t n, struct ddps_error *e)
{
	if (!rx->hold) {
		rx->hold = malloc(n);
		if (!rx->hold)
			return fail_without_memory(rx, n, e);
		memcpy(rx->hold, p, n);
		p = rx->hold;
	}
	rx->hold_rest = p;
	rx->hold_rest_len = n;
	rx->cut = true;
	if (rx->ask > ASK_LEAST)
		rx->ask /= 2;
	return 0;
}

/* Keep the beginning of an FPDU, @n octets at @p, until more of it comes. */
static int keep_octets(struct ddps_mpa_rx *rx, const uint8_t *p, size_t n, size_t total,
		       size_t ulpdu, struct ddps_error *e)
{
	if (n < DDPS_MPA_RX_HEAD) {
		if (n)
			memcpy(rx->head, p, n);
		rx->head_len = (uint8_t)n;
		return 0;
	}
	if (ddps_mpa_rx_place(rx, p, n, ulpdu))
		return 0;
	if (rx->part_size < total) {
		size_t size = rx->spares ? PART_MAX : total;

		part_fini(rx);
		rx->part = ddps_spare_get(rx->spares, size);
		if (!rx->part)
			return fail_without_memory(rx, total, e);
		rx->part_size = size;
	}
	memcpy(rx->part, p, n);
	rx->part_len = n;
	rx->part_total = total;
	return 0;
}

/* The straight way: show whole FPDUs that are right, without markers; "no" is never wrong.  Returns the octets of
 * those.  Of the last one the verdict may be another than 0. */
static inline size_t show_whole_fpdus(struct ddps_mpa_rx *rx, uint8_t *p, size_t n)
{
	size_t at = 0, ulpdu, body;
	uint8_t *seg;
	int verdict;

	while (n - at > DDPS_MPA_LEN_FIELD && rx->share && !rx->markers) {
		ulpdu = get_u16(p + at);
		body = DDPS_MPA_LEN_FIELD + ulpdu + ddps_mpa_pad(ulpdu);
		if (!ulpdu || n - at < body + DDPS_MPA_CRC_LEN ||
		    (rx->crc && ddps_mpa_crc(DDPS_MPA_CRC_INIT, p + at, body) !=
					ddps_mpa_crc_load(p + at + body)))
			break;
		rx->share--;
		rx->fpdus++;
		seg = p + at + DDPS_MPA_LEN_FIELD;
		at += body + DDPS_MPA_CRC_LEN;
		verdict = rx->sink->segment(rx->user, seg, ulpdu);
		if (verdict) {
			note_verdict(rx, verdict, seg, ulpdu);
			break;
		}
	}
	return at;
}

/* @p, @n: the stream from the beginning of an FPDU. */
static int parse_fpdu(struct ddps_mpa_rx *rx, uint8_t *p, size_t n, struct ddps_error *e)
{
	size_t total, ulpdu = 0;
	int err;

	for (;;) {
		total = size_of_fpdu(rx, p, n, &ulpdu);
		if (!total || n < total)
			return keep_octets(rx, p, n, total, ulpdu, e);
		if (!rx->share)
			return keep_cut(rx, p, n, e);
		rx->share--;
		err = deliver_fpdu(rx, p, total, ulpdu, e);
		if (err || rx->dead)
			return err;
		p += total;
		n -= total;
		if (rx->stalled)
			return keep_stalled(rx, p, n, e);
	}
}

int ddps_mpa_rx_resume(struct ddps_mpa_rx *rx, struct ddps_error *e)
{
	int err = 0;

	check_kept(rx);
	if (!rx->stalled && !rx->cut)
		return 0;
	if (rx->stalled) {
		rx->share -= rx->share != 0;
		show_segment(rx, rx->hold_seg, rx->hold_seg_len);
	}
	rx->cut = false;
	if (!rx->stalled && !rx->dead)
		err = parse_fpdu(rx, rx->hold_rest, rx->hold_rest_len, e);
	if (!rx->stalled && !rx->cut)
		hold_fini(rx);
	return err;
}

size_t ddps_mpa_rx_kept(const struct ddps_mpa_rx *rx)
{
	return rx->head_len + rx->part_len + rx->hold_seg_len + rx->hold_rest_len;
}

int ddps_mpa_rx_want(struct ddps_mpa_rx *rx, uint8_t *scratch, size_t scratch_len,
		     struct iovec *iov)
{
	size_t skip = 0;
	int k = 0;

	ddps_assert(!rx->stalled && !rx->cut);
	check_kept(rx);
	if (scratch_len > rx->ask)
		scratch_len = rx->ask;
	if (ddps_mpa_rx_is_fresh(rx)) {
		*iov = (struct iovec){ scratch, scratch_len };
		return 1;
	}
	if (rx->placing && rx->pay_len >= AHEAD_BELOW && scratch_len > DDPS_MPA_RX_HEAD)
		scratch_len = DDPS_MPA_RX_HEAD;
	if (rx->placing && !rx->dead) {
		k = ddps_mpa_rx_want_placed(rx, iov, DDPS_MPA_RX_IOV - 2);
		if (!rx->dead && rx->pay_off + rx->pay_asked < rx->pay_len)
			return k;
		if (!rx->dead)
			iov[k++] = (struct iovec){ rx->tail + rx->tail_off,
						   (size_t)(rx->tail_len - rx->tail_off) };
		else
			k = 0;
	} else if (rx->part_total && !rx->dead) {
		iov[k++] = (struct iovec){ rx->part + rx->part_len, rx->part_total - rx->part_len };
	} else if (!rx->dead) {
		/* So little is moved: the FPDU is in one piece then. */
		skip = rx->head_len;
		if (skip)
			memcpy(scratch, rx->head, skip);
	}
	iov[k++] = (struct iovec){ scratch + skip, scratch_len - skip };
	return k;
}

int ddps_mpa_rx_got(struct ddps_mpa_rx *rx, uint8_t *scratch, size_t n, struct ddps_error *e)
{
	size_t ulpdu = 0, missing, shown;
	int err;

	check_kept(rx);
	if (rx->dead || !n)
		return 0;
	if (n >= rx->ask && rx->ask < ASK_MOST)
		rx->ask *= 2;
	if (rx->placing) {
		n = ddps_mpa_rx_got_placed(rx, n);
	} else if (rx->part_total) {
		missing = rx->part_total - rx->part_len;
		if (n < missing) {
			rx->part_len += n;
			return 0;
		}
		n -= missing;
		size_of_fpdu(rx, rx->part, rx->part_total, &ulpdu);
		rx->share -= rx->share != 0;
		err = deliver_fpdu(rx, rx->part, rx->part_total, ulpdu, e);
		if (err)
			return err;
		rx->part_len = rx->part_total = 0;
		if (rx->stalled)
			return keep_stalled(rx, scratch, n, e);
	} else {
		n += rx->head_len;
		rx->head_len = 0;
	}
	if (rx->dead || !n)
		return 0;
	shown = show_whole_fpdus(rx, scratch, n);
	if (rx->dead || (shown == n && !rx->stalled))
		return 0;
	return rx->stalled ? keep_stalled(rx, scratch + shown, n - shown, e)
			   : parse_fpdu(rx, scratch + shown, n - shown, e);
}

bool ddps_mpa_rx_at_boundary(const struct ddps_mpa_rx *rx)
{
	if (rx->placing || rx->part_total || rx->stalled || rx->cut)
		return false;
	return !rx->head_len || (get_lead_len(rx) && rx->head_len == DDPS_MPA_MARKER_LEN);
}

void ddps_mpa_rx_idle(struct ddps_mpa_rx *rx)
{
	if (rx->dead || !rx->part_total)
		part_fini(rx);
}

void ddps_mpa_rx_fini(struct ddps_mpa_rx *rx)
{
	part_fini(rx);
	hold_fini(rx);
}
