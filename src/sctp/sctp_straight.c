/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The straight ways.  Of what is received: whole messages outside of any order, in the order of TSNs, while nothing is
 * missing and nothing is held.  Of what is sent: messages that leave whole, and the packet of a lone one, with the
 * SACK that rides in front of it.  Everything else takes the steps of sctp_rx.c and sctp_tx.c, which would have done
 * the same: to leave a chunk to them is never wrong.
 */
#include "sctp/sctp_build.h"

#define WHOLE (SC_DATA_B | SC_DATA_E | SC_DATA_U)

/* Asked before each chunk: any upcall may change it. */
static inline bool is_all_plain(const struct ddps_sctp_assoc *a)
{
	return a->state == SC_ESTABLISHED && !a->dead && !a->paused && !a->held && !a->kept &&
	       !a->streams && a->map.high == a->map.cum;
}

/* More is left than the head of a chunk.  [9260-6.2-27] [9260-6.5-2] [9260-6.10-6] are not for what is taken here. */
static bool take_plain(struct ddps_sc_rx *rx, struct ddps_rbuf *r)
{
	struct ddps_sctp_assoc *a = rx->a;
	const uint8_t *c = r->p;
	size_t left = ddps_rbuf_left(r), len, padded;
	struct ddps_sctp_msg m = { .unordered = true };
	struct ddps_sc_data_hdr d;

	memcpy(&d, c, sizeof d);
	if (d.type != SC_DATA || (d.flags & WHOLE) != WHOLE)
		return false;
	len = be16toh(d.len);
	m.stream = be16toh(d.sid);
	if (len <= DDPS_SC_DATA_HDR || len > left || be32toh(d.tsn) != a->map.cum + 1 ||
	    m.stream >= a->in_streams)
		return false;
	m.ssn = be16toh(d.ssn);
	m.ppid = be32toh(d.ppid);
	m.data = c + DDPS_SC_DATA_HDR;
	m.len = len - DDPS_SC_DATA_HDR;
	padded = ddps_sc_pad(len);
	r->p += padded < left ? padded : left;
	rx->data = true;
	rx->now_flag |= d.flags & SC_DATA_I;
	a->up->message(a->user, &m);
	if (a->dead)
		return true;
	ddps_sc_map_next(&a->map);
	rx->fresh = true;
	a->n_chunks_in++;
	return true;
}

/* Most packets with DATA begin so, where answers follow each other. */
bool ddps_sc_straight_cum(struct ddps_sc_rx *rx, struct ddps_rbuf *r)
{
	struct ddps_sc_sack_hdr h;

	if (rx->e->sent.stepwise || rx->a->state != SC_ESTABLISHED || ddps_rbuf_left(r) < sizeof h)
		return false;
	memcpy(&h, r->p, sizeof h);
	if (h.type != SC_SACK || h.len != htobe16(sizeof h) || h.ngaps || h.ndups)
		return false;
	r->p += sizeof h;
	ddps_sc_take_cum(rx->a, &h);
	return true;
}

unsigned ddps_sc_straight_data(struct ddps_sc_rx *rx, struct ddps_rbuf *r)
{
	unsigned n = 0;

	if (rx->e->sent.stepwise)
		return 0;
	while (ddps_rbuf_left(r) > DDPS_SC_DATA_HDR && is_all_plain(rx->a) && take_plain(rx, r))
		n++;
	return n;
}

/* ---- what is sent ---- */

/* All of @m, the first that waits, has a TSN; its one reference is that of the piece now. */
static inline void take_whole(struct ddps_sctp_assoc *a, struct ddps_sc_msg *m)
{
	m->cut = m->len;
	m->whole = (struct ddps_sc_piece){ .m = m,
					   .len = m->len,
					   .flags = SC_DATA_B | SC_DATA_E | m->flags };
	a->unsent -= m->len;
	STAILQ_REMOVE_HEAD(&a->queue, link);
}

size_t ddps_sc_straight_new(struct ddps_sc_build *b, size_t most)
{
	struct ddps_sctp_assoc *a = b->a;
	struct ddps_sc_msg *m;
	size_t n = 0;

	while (!b->out->fragment && ddps_sc_build_room(b) && (m = STAILQ_FIRST(&a->queue)) &&
	       !m->cut && m->len <= b->chunk) {
		size_t size = DDPS_SC_DATA_HDR + ddps_sc_pad(m->len);
		uint32_t tsn = a->tx.next;

		if (b->size + size > most ||
		    !ddps_sent_straight_new(&a->tx, (uint16_t)size, m->len, &m->whole))
			break;
		take_whole(a, m);
		ddps_sc_build_data(b, tsn, &m->whole);
		n += size;
	}
	if (n)
		ddps_sc_may_write(a);
	return n;
}

size_t ddps_sc_straight_packets(struct ddps_sc_build *b, uint64_t leave, unsigned keep)
{
	struct ddps_sctp_assoc *a = b->a;
	struct ddps_sctp_out *out = b->out;
	const size_t size = out->seg_size - DDPS_SC_HDR;
	size_t sent = 0;
	struct ddps_sent_new c = { .now = a->e->now, .size = (uint16_t)size };
	bool soon;

	b->size = out->seg_size;
	c.packet = (uint16_t)(ddps_sc_build_ip_size(b) < UINT16_MAX ? ddps_sc_build_ip_size(b)
								    : UINT16_MAX);
	while (sent < leave && out->nsegs + keep < out->max_segs &&
	       out->len + out->seg_size <= out->max_len && ddps_sc_build_room(b)) {
		struct ddps_sc_msg *m = STAILQ_FIRST(&a->queue);
		const uint32_t tsn = a->tx.next;

		if (!m || m->cut || m->len < DDPS_SC_COPY_MAX || m->len > b->chunk ||
		    DDPS_SC_DATA_HDR + ddps_sc_pad(m->len) != size)
			break;
		c.chunk = &m->whole;
		c.len = (uint16_t)m->len;
		c.more = STAILQ_NEXT(m, link);
		if (!ddps_sent_straight_packet(&a->tx, &b->p->tx, &c, &soon))
			break;
		__builtin_prefetch(STAILQ_NEXT(m, link)); /* it was written a while ago */
		take_whole(a, m);
		ddps_sc_build_begin(b, a->peer_tag);
		ddps_sc_build_data(b, tsn, &m->whole);
		if (soon)
			*b->flags |= SC_DATA_I;
		ddps_sc_build_end(b);
		sent += size;
	}
	if (sent) {
		ddps_sent_straight_end(&a->tx, &b->p->tx, c.now);
		ddps_sc_may_write(a);
	}
	return sent;
}

/* The SACK that is due, or has time yet, can ride in front of it: as ride_sack() in sctp_tx.c has it. */
static inline bool may_ride(const struct ddps_sctp_assoc *a, const struct ddps_sc_path *p,
			    size_t size)
{
	return a->sack_path == p && a->map.high == a->map.cum && !a->ndups &&
	       size + sizeof(struct ddps_sc_sack_hdr) <= ddps_sc_max_packet(p);
}

/* Nothing but DATA is to be sent, and a SACK that can ride. */
static inline bool is_sending_plain_data(const struct ddps_sctp_assoc *a)
{
	return a->state == SC_ESTABLISHED && !a->dead && !(a->due & ~DUE_SACK) && !a->sack_alone &&
	       STAILQ_EMPTY(&a->blobs) && !a->data_path->tx.pmtu.fragment &&
	       !ddps_sc_has_window_news(a) && !ddps_sc_has_probe(a);
}

__attribute__((flatten)) bool ddps_sc_straight_lone(struct ddps_sctp_assoc *a,
						    struct ddps_sctp_out *out)
{
	struct ddps_sc_msg *m = STAILQ_FIRST(&a->queue);
	struct ddps_sent_new c = { .now = a->e->now };
	struct ddps_sc_path *p = a->data_path;
	const uint32_t tsn = a->tx.next;
	struct ddps_sc_sack_hdr h;
	struct ddps_sc_build b;
	size_t chunk;
	uint64_t leave;
	bool sack, soon;

	if (!m || STAILQ_NEXT(m, link) || m->cut || !is_sending_plain_data(a))
		return false;
	chunk = ddps_sctp_max_chunk(a);
	sack = a->due & DUE_SACK || a->sack_packets;
	if (m->len > chunk || ddps_sc_is_more_to_come(a) ||
	    (sack && !may_ride(a, p, DDPS_SC_HDR + DDPS_SC_DATA_HDR + m->len + 3)) ||
	    ddps_sent_may(&a->tx, &p->tx, c.now, m->len, &leave) != DDPS_SENT_NEW)
		return false;
	c.chunk = &m->whole;
	c.len = (uint16_t)m->len;
	c.size = (uint16_t)(DDPS_SC_DATA_HDR + ddps_sc_pad(m->len));
	c.packet = (uint16_t)(ddps_sc_overhead(p) + (sack ? sizeof h : 0) + c.size);
	out->pn = p->tx.next_pn;
	if (!ddps_sent_straight_packet(&a->tx, &p->tx, &c, &soon))
		return false;
	ddps_sent_straight_end(&a->tx, &p->tx, c.now);
	a->ask = false;
	take_whole(a, m);
	ddps_sc_build_to(&b, a, p, out);
	ddps_sc_build_begin(&b, a->peer_tag);
	if (sack) {
		h = ddps_sc_begin_sack(a);
		ddps_wbuf_bytes(&b.w, &h, sizeof h);
		b.size += sizeof h;
	}
	ddps_sc_build_data(&b, tsn, &m->whole);
	if (soon)
		*b.flags |= SC_DATA_I;
	ddps_sc_build_end(&b);
	out->data = true;
	out->sack = sack;
	p->used = c.now;
	ddps_sc_may_write(a);
	return true;
}
