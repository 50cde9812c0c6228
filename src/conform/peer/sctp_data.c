/* SPDX-License-Identifier: BSD-2-Clause */
/* DATA and SACK of the peer's SCTP: RFC 9260 sections 3.3.1, 3.3.4 and 6. */
#include "conform/peer/sctp_packet.h"
#include <stdlib.h>
#include <string.h>

#define F_LAST	    1u
#define F_FIRST	    2u
#define F_UNORDERED 4u

#define QUEUE_MAX  1024	      /* chunks that wait to be acknowledged */
#define WINDOW_MAX 64u	      /* of them under way at a time */
#define IN_MAX	   (4u << 20) /* octets kept; what is more is not acknowledged */
#define AHEAD_MAX  4096u
#define GAPS_MAX   256u

/* ---- out ---- */

bool cf_link_put(struct cf_link *l, uint16_t stream, uint32_t ppid, const uint8_t *p, size_t len)
{
	size_t off = 0;

	if (l->nout + len / CF_CHUNK_DATA + 1 > QUEUE_MAX)
		return false;
	do {
		size_t n = len - off < CF_CHUNK_DATA ? len - off : CF_CHUNK_DATA;
		struct cf_data *d = calloc(1, sizeof *d + n);

		if (!d)
			return false;
		d->tsn = l->tsn++;
		d->stream = stream;
		d->ppid = ppid;
		d->flags = (uint8_t)(F_UNORDERED | (off ? 0 : F_FIRST) |
				     (off + n == len ? F_LAST : 0));
		d->len = n;
		if (n)
			memcpy(d->b, p + off, n);
		*l->out_end = d;
		l->out_end = &d->next;
		l->nout++;
		off += n;
	} while (off < len);
	return true;
}

static void put_data(struct cf_pkt *p, const struct cf_data *d)
{
	uint8_t *c = cf_pkt_chunk(p, CF_C_DATA, d->flags, 12 + d->len);

	cf_put32(c, d->tsn);
	cf_put16(c + 4, d->stream);
	cf_put16(c + 6, 0); /* unordered: no number */
	cf_put32(c + 8, d->ppid);
	memcpy(c + 12, d->b, d->len);
}

/* Whether one more chunk of @len octets may be under way; a shut window is tried by one. */
static bool has_flight_room(const struct cf_link *l, size_t len)
{
	return !l->flying || (l->flying < l->window && l->flying_octets + len <= l->rwnd);
}

void cf_link_flush(struct cf_link *l)
{
	struct cf_pkt p;

	for (struct cf_data *d = l->out; d; d = d->next) {
		if (d->sent)
			continue;
		if (!has_flight_room(l, d->len))
			break;
		cf_pkt_begin(&p, l, l->peer_tag);
		put_data(&p, d);
		cf_pkt_send(&p, l);
		d->sent = true;
		l->flying++;
		l->flying_octets += d->len;
		if (l->due == UINT64_MAX)
			cf_link_timer(l);
	}
}

static void landed(struct cf_link *l, struct cf_data *d)
{
	if (d->sent && !d->acked) {
		l->flying--;
		l->flying_octets -= d->len;
	}
	d->acked = true;
}

void cf_link_again(struct cf_link *l)
{
	for (struct cf_data *d = l->out; d; d = d->next) {
		if (!d->sent || d->acked)
			continue;
		d->sent = false;
		l->flying--;
		l->flying_octets -= d->len;
	}
	l->window = 1;
	cf_link_flush(l);
}

void cf_link_acked(struct cf_link *l, uint32_t cum)
{
	bool more = false;

	if (!cf_tsn_before(cum, l->tsn)) /* of what was never sent */
		return;
	while (l->out && !cf_tsn_before(cum, l->out->tsn)) {
		struct cf_data *d = l->out;

		landed(l, d);
		l->out = d->next;
		l->nout--;
		free(d);
		more = true;
	}
	if (!l->out)
		l->out_end = &l->out;
	if (!more)
		return;
	l->window += l->window < WINDOW_MAX;
	l->rto_ms = CF_RTO_MIN_MS;
	l->due = UINT64_MAX;
	if (l->flying)
		cf_link_timer(l);
}

void cf_link_sack(struct cf_link *l, const uint8_t *p, size_t len)
{
	size_t gaps;

	if (len < 12)
		return;
	gaps = cf_get16(p + 8);
	if (12 + 4 * gaps > len)
		return;
	cf_link_acked(l, cf_get32(p));
	l->rwnd = cf_get32(p + 4);
	for (size_t i = 0; i < gaps; i++) {
		uint32_t from = cf_get32(p) + cf_get16(p + 12 + 4 * i);
		uint32_t to = cf_get32(p) + cf_get16(p + 14 + 4 * i);

		for (struct cf_data *d = l->out; d; d = d->next)
			if (d->sent && !cf_tsn_before(d->tsn, from) && !cf_tsn_before(to, d->tsn))
				landed(l, d);
	}
	cf_link_flush(l);
}

/* ---- in ---- */

/* Octets that the target may send. */
static uint32_t get_link_window(const struct cf_link *l)
{
	size_t held = l->in_octets + l->as->held;

	return held < CF_RWND ? CF_RWND - (uint32_t)held : 0;
}

void cf_link_reopen(struct cf_link *l)
{
	if (l->state >= CF_L_UP && l->state != CF_L_OVER &&
	    get_link_window(l) >= l->told + CF_RWND / 4)
		cf_link_send_sack(l);
}

void cf_link_send_sack(struct cf_link *l)
{
	uint32_t from[GAPS_MAX], to[GAPS_MAX];
	size_t n = 0;
	struct cf_pkt p;
	uint8_t *c;

	for (const struct cf_data *d = l->in; d; d = d->next) {
		if (!cf_tsn_before(l->cum, d->tsn))
			continue;
		if (n && to[n - 1] + 1 == d->tsn)
			to[n - 1] = d->tsn;
		else if (n < GAPS_MAX) /* AHEAD_MAX fits into a gap's 16 bits */
			from[n] = to[n] = d->tsn, n++;
		else
			break;
	}
	cf_pkt_begin(&p, l, l->peer_tag);
	c = cf_pkt_chunk(&p, CF_C_SACK, 0, 12 + 4 * n);
	cf_put32(c, l->cum);
	l->told = get_link_window(l);
	cf_put32(c + 4, l->told);
	cf_put16(c + 8, (uint16_t)n);
	cf_put16(c + 10, 0);
	for (size_t i = 0; i < n; i++) {
		cf_put16(c + 12 + 4 * i, (uint16_t)(from[i] - l->cum));
		cf_put16(c + 14 + 4 * i, (uint16_t)(to[i] - l->cum));
	}
	cf_pkt_send(&p, l);
	l->sack_due = false;
}

/* Hands up a whole message, the chunks from @first to @last. */
static void deliver_chunks(struct cf_link *l, struct cf_data *first, const struct cf_data *last)
{
	uint8_t *whole = malloc(CF_MAX + 1);
	size_t len = 0;

	for (struct cf_data *d = first;; d = d->next) {
		if (whole && len + d->len <= CF_MAX)
			memcpy(whole + len, d->b, d->len);
		len += d->len;
		d->handed = true;
		if (d == last)
			break;
	}
	/* One that is too long is not heard, and the case says that it misses it. */
	if (whole && len <= CF_MAX)
		cf_sctp_heard(l->as, first->stream, first->ppid, first->flags & F_UNORDERED, whole,
			      len);
	free(whole);
}

/* Hands up the message that a chunk belongs to, if it is all there. */
static void complete_message(struct cf_link *l, uint32_t tsn)
{
	struct cf_data *first = NULL;
	uint32_t next = 0;

	for (struct cf_data *d = l->in; d; d = d->next) {
		if (d->handed || (first && d->tsn != next))
			first = NULL;
		if (!d->handed && d->flags & F_FIRST)
			first = d;
		next = d->tsn + 1;
		if (first && d->flags & F_LAST) {
			deliver_chunks(l, first, d); /* whole only since @tsn came */
			first = NULL;
		}
		if (!first && cf_tsn_before(tsn, d->tsn))
			return;
	}
}

/* What has come without a gap needs no record once it was handed up. */
static void forget_delivered(struct cf_link *l)
{
	struct cf_data **at = &l->in, *d;

	for (d = l->in; d; d = d->next)
		if (d->tsn == l->cum + 1)
			l->cum++;
	while ((d = *at) && !cf_tsn_before(l->cum, d->tsn)) {
		if (!d->handed) {
			at = &d->next;
			continue;
		}
		*at = d->next;
		l->in_octets -= sizeof *d + d->len;
		free(d);
	}
}

void cf_link_drop(struct cf_link *l)
{
	for (struct cf_data *d = l->out, *next; d; d = next) {
		next = d->next;
		free(d);
	}
	for (struct cf_data *d = l->in, *next; d; d = next) {
		next = d->next;
		free(d);
	}
	l->out = l->in = NULL;
	l->out_end = &l->out;
	l->nout = l->flying = 0;
	l->flying_octets = l->in_octets = 0;
}

/* Ordered messages are handed up as they come too: a target has no reason to send any. */
void cf_link_data(struct cf_link *l, uint8_t flags, const uint8_t *p, size_t len)
{
	struct cf_data **at, *d;
	uint32_t tsn;

	if (len < 12)
		return;
	l->sack_due = true;
	tsn = cf_get32(p);
	if (!cf_tsn_before(l->cum, tsn) || tsn - l->cum > AHEAD_MAX ||
	    l->in_octets + l->as->held + len > IN_MAX)
		return;
	for (at = &l->in; *at && cf_tsn_before((*at)->tsn, tsn);)
		at = &(*at)->next;
	if (*at && (*at)->tsn == tsn)
		return;
	d = calloc(1, sizeof *d + len - 12);
	if (!d)
		return; /* not acknowledged, so it comes again */
	d->tsn = tsn;
	d->stream = cf_get16(p + 4);
	d->ppid = cf_get32(p + 8);
	d->flags = flags;
	d->len = len - 12;
	memcpy(d->b, p + 12, d->len);
	l->in_octets += sizeof *d + d->len;
	d->next = *at;
	*at = d;
	complete_message(l, tsn);
	forget_delivered(l);
}
