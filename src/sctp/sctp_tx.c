/* SPDX-License-Identifier: BSD-2-Clause */
/* Packets of DATA, and whose turn it is (RFC 9260 6.10). */
#include "sctp/sctp_build.h"

/*
 * What may join a packet that has something already.  While nothing answers, or large packets were
 * lost and none has passed since, it may be that the path has become narrower and nobody says so:
 * what is resent in a packet that need not be large is not, then.
 */
static size_t no_more_than(const struct ddps_sc_build *b, size_t most)
{
	size_t sure = ddps_pmtu_sure(&b->p->tx.pmtu) - ddps_sc_overhead(b->p);
	bool doubt = b->p->tx.backoff || b->p->tx.pmtu.holes;

	return doubt && sure < most ? sure : most;
}

/* Chunks that were lost, as many as fit into @most.  Octets of chunks. */
static size_t put_old(struct ddps_sc_build *b, size_t most)
{
	struct ddps_sent *s = &b->a->tx;
	struct ddps_sent_chunk c;
	size_t n = 0;

	while (ddps_sc_build_room(b) && ddps_sent_next_old(s, &c)) {
		bool oversize = c.size + DDPS_SC_HDR > ddps_sc_max_packet(b->p);

		if (b->size + c.size > (n ? no_more_than(b, most) : most)) {
			if (!oversize || n || b->out->nsegs)
				break;
			b->out->fragment = true; /* [9260-6.9-5] */
			ddps_sc_stretch(b, c.size);
		}
		ddps_sent_add_old(s, c.tsn);
		ddps_sc_build_data(b, c.tsn, c.chunk);
		n += c.size;
		if (oversize)
			break;
	}
	return n;
}

static size_t put_new(struct ddps_sc_build *b, size_t most)
{
	struct ddps_sctp_assoc *a = b->a;
	struct ddps_sent *s = &a->tx;
	size_t n = ddps_sc_straight_new(b, most), len;

	while (!b->out->fragment && ddps_sc_build_room(b) &&
	       (len = ddps_sc_next_len(a, b->chunk))) {
		size_t size = DDPS_SC_DATA_HDR + ddps_sc_pad(len);
		uint32_t tsn = s->next;
		struct ddps_sc_piece *pc;

		if (b->size + size > most)
			break;
		pc = ddps_sc_cut(a, len);
		if (!pc)
			break;
		if (ddps_sent_add_new(s, (uint16_t)size, len, pc) < 0) {
			ddps_sc_uncut(a, pc);
			break;
		}
		ddps_sc_cut_done(a, pc);
		ddps_sc_build_data(b, tsn, pc);
		n += size;
	}
	return n;
}

/* A SACK that is short may ride in front of the DATA, also one that would have time yet: then
 * request and answer acknowledge each other, without packets for it [9260-6.1-16]. */
static void ride_sack(struct ddps_sc_build *b, size_t most)
{
	struct ddps_sctp_assoc *a = b->a;
	size_t next;

	if (b->out->nsegs || !(a->due & DUE_SACK || a->sack_packets) || a->sack_path != b->p ||
	    a->map.high != a->map.cum || a->ndups)
		return;
	next = a->tx.nlost ? SIZE_MAX : ddps_sc_next_len(a, b->chunk);
	if (!next || next > most - DDPS_SC_HDR - 16 - DDPS_SC_DATA_HDR - 3)
		return;
	ddps_sc_put_sack(a, &b->w, 16);
	b->size += 16;
	b->out->sack = true;
}

/* One packet of DATA.  Octets of its chunks; 0: none, and a SACK that would have ridden is due. */
static size_t data_packet(struct ddps_sc_build *b, enum ddps_sent_what what)
{
	struct ddps_sctp_assoc *a = b->a;
	size_t most = b->out->seg_size ? b->out->seg_size : ddps_sc_max_packet(b->p), n;
	bool soon;
	uint64_t pn = ddps_sent_begin(&a->tx, &b->p->tx, a->e->now);

	if (!b->out->nsegs)
		b->out->pn = pn;
	ddps_sc_build_begin(b, a->peer_tag);
	ride_sack(b, most);
	n = what == DDPS_SENT_OLD ? put_old(b, most) : 0;
	n += put_new(b, n ? no_more_than(b, most) : most);
	soon = ddps_sent_end(&a->tx, (uint32_t)ddps_sc_build_ip_size(b), !STAILQ_EMPTY(&a->queue));
	if (!n) {
		ddps_sc_build_undo(b);
		if (!b->out->nsegs)
			ddps_sc_sack_again(a, b->out);
		return 0;
	}
	if (soon)
		*b->flags |= SC_DATA_I;
	ddps_sc_build_end(b);
	return n;
}

/* Only the last packet of a run may be shorter than the others: none is yet. */
static inline bool are_all_full(const struct ddps_sctp_out *out)
{
	return out->len == out->nsegs * out->seg_size;
}

/* A SACK as the last packet of a run. */
static void append_sack(struct ddps_sc_build *b)
{
	struct ddps_sctp_assoc *a = b->a;

	if (!(a->due & DUE_SACK))
		return;
	a->sack_alone = true;
	if (a->sack_path != b->p || b->out->fragment || b->out->seg_size < 200 ||
	    !are_all_full(b->out) || b->out->nsegs >= b->out->max_segs || !ddps_sc_build_room(b))
		return;
	ddps_sc_build_begin(b, a->peer_tag);
	b->size += ddps_sc_put_sack(a, &b->w, 180);
	ddps_sc_build_end(b);
	b->out->sack = true;
	a->sack_alone = false;
}

/* Behind a packet as large as the first: is there one more, and does what waits fit into it? */
static bool may_follow(const struct ddps_sc_build *b)
{
	const struct ddps_sctp_assoc *a = b->a;
	size_t next;

	if (a->tx.nlost)
		return true;
	next = ddps_sc_next_len(a, b->chunk);
	return next && DDPS_SC_HDR + DDPS_SC_DATA_HDR + ddps_sc_pad(next) <= b->out->seg_size;
}

static bool data_output(struct ddps_sctp_assoc *a, struct ddps_sctp_out *out)
{
	struct ddps_sc_path *p = a->data_path;
	size_t chunk = ddps_sctp_max_chunk(a), next = ddps_sc_next_len(a, chunk), sent = 0, n;
	unsigned keep = a->due & DUE_SACK ? 1 : 0;
	bool narrow = p->tx.pmtu.fragment;
	enum ddps_sent_what what;
	uint64_t leave = 0;
	struct ddps_sc_build b;

	if (ddps_sc_is_more_to_come(a))
		return false;
	a->ask = false;
	what = ddps_sent_may(&a->tx, &p->tx, a->e->now, next ? next : SIZE_MAX, &leave);
	if (what == DDPS_SENT_NOTHING)
		return false;
	ddps_sc_build_to(&b, a, p, out);
	b.chunk = chunk;
	do {
		n = data_packet(&b, what);
		sent += n;
		if (n && what == DDPS_SENT_NEW && !STAILQ_EMPTY(&a->queue) && are_all_full(out) &&
		    sent < leave && !out->fragment && !narrow)
			sent += ddps_sc_straight_packets(&b, leave - sent, keep);
	} while (n && sent < leave && are_all_full(out) && may_follow(&b) && !out->fragment &&
		 !narrow && out->nsegs + keep < out->max_segs &&
		 out->len + out->seg_size <= out->max_len && ddps_sc_build_room(&b));
	if (!out->nsegs)
		return false;
	out->fragment |= narrow; /* not even the least size passes whole: RFC 8899 5.2 */
	p->used = a->e->now;
	out->data = true;
	append_sack(&b);
	return true;
}

/* ---- whose turn ---- */

int ddps_sc_assoc_output(struct ddps_sctp_assoc *a, struct ddps_sctp_out *out)
{
	struct ddps_sc_blob *bl = STAILQ_FIRST(&a->blobs);
	struct ddps_sc_path *p;
	uint16_t size;

	if (ddps_sc_straight_lone(a, out))
		return 1;
	if (a->due & DUE_INIT)
		return ddps_sc_init_output(a, out);
	if (a->due & DUE_ECHO)
		return ddps_sc_echo_output(a, out);
	if (!(a->due & ~DUE_SACK) && bl && bl->len > DDPS_SC_BLOB_BIG)
		return ddps_sc_big_output(a, bl, out);
	if ((a->due & ~DUE_SACK) || !STAILQ_EMPTY(&a->blobs) ||
	    ((a->due & DUE_SACK) && a->sack_alone)) {
		ddps_sc_control_output(a, out);
		return 1;
	}
	p = ddps_sc_probe_path(a, &size);
	if (p)
		return ddps_sc_probe_output(a, p, size, out);
	if (ddps_sc_data_waits(a) && data_output(a, out))
		return 1;
	if (!(a->due & DUE_SACK))
		return 0;
	ddps_sc_control_output(a, out);
	return 1;
}
