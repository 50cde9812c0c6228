/* SPDX-License-Identifier: BSD-2-Clause */
/* SACKs: ours (RFC 9260 6.2, 6.7), and what the peer's say (6.2.1). */
#include "sctp/sctp_in.h"

void ddps_sc_want_sack(struct ddps_sctp_assoc *a)
{
	a->due |= DUE_SACK;
	a->sack_at = DDPS_SC_NEVER;
}

/* From inside an upcall: ddps_sc_rx_done() says by which path. */
void ddps_sctp_sack_now(struct ddps_sctp_assoc *a)
{
	ddps_sc_want_sack(a);
	ddps_sc_touch(a);
}

/* [9260-6.2-11] Only a window that has grown much is reported for its own sake. */
void ddps_sc_window_update(struct ddps_sctp_assoc *a)
{
	uint32_t now = ddps_sc_rwnd(a), told = a->told_rwnd;

	if (!a->saw_data || a->state > SC_SENT || now <= told)
		return;
	if (now - told >= a->e->c.rwnd / 4 || told < ddps_sent_smss(&a->data_path->tx))
		ddps_sc_want_sack(a);
}

/* As many gap blocks and then duplicates as @room octets take, which @w has.  Returns its size. */
size_t ddps_sc_put_sack(struct ddps_sctp_assoc *a, struct ddps_wbuf *w, size_t room)
{
	const struct ddps_sc_sack_hdr h = ddps_sc_begin_sack(a);
	uint8_t *at = w->p;
	unsigned ngaps = 0, ndups = 0, left = (unsigned)(room - sizeof h) / 4;
	uint32_t from = a->map.cum, start, end;

	ddps_wbuf_bytes(w, &h, sizeof h);
	while (ngaps < left && ddps_sc_map_run(&a->map, from, &start, &end)) {
		ddps_wbuf_u16(w, (uint16_t)(start - a->map.cum));
		ddps_wbuf_u16(w, (uint16_t)(end - a->map.cum));
		from = end;
		ngaps++;
	}
	while (ndups < a->ndups && ngaps + ndups < left)
		ddps_wbuf_u32(w, a->dups[ndups++]);
	if (ngaps + ndups) {
		ddps_sc_end_chunk(w, at, 0);
		at[12] = (uint8_t)(ngaps >> 8);
		at[13] = (uint8_t)ngaps;
		at[15] = (uint8_t)ndups;
	}
	a->ndups = 0; /* [9260-3.3.4-d3] */
	return (size_t)(w->p - at);
}

/* @out does not leave: what its SACK would have told is still to be reported. */
void ddps_sc_sack_again(struct ddps_sctp_assoc *a, const struct ddps_sctp_out *out)
{
	if (out->sack)
		a->due |= DUE_SACK;
}

/* ---- the peer's ---- */

#define GAPS_MAX 1024u

static void clear_errors(struct ddps_sctp_assoc *a, uint8_t paths)
{
	for (unsigned i = 0; paths && i < a->npaths && i < DDPS_SENT_PATHS; i++) {
		if (paths & 1u << a->path[i]->tx.id)
			ddps_sc_path_good(a->path[i]);
	}
}

void ddps_sc_take_sack(struct ddps_sctp_assoc *a, const struct ddps_sent_sack *s)
{
	struct ddps_sent_news news;
	enum ddps_sent_verdict v = ddps_sent_sack(&a->tx, s, a->e->now, &news);

	if (v == DDPS_SENT_LIE) /* [9260-12.4-3] */
		ddps_sc_violation(a, "acknowledges what was never sent");
	if (v != DDPS_SENT_TAKEN)
		return;
	if (!a->tx.a_rwnd)
		a->full_n = a->sent_n;
	if (news.acked || news.cum_advanced)
		a->errors = 0; /* [9260-8.1-5] */
	clear_errors(a, news.paths);
}

void ddps_sc_take_cum(struct ddps_sctp_assoc *a, const struct ddps_sc_sack_hdr *h)
{
	const struct ddps_sent_sack s = { .cum = be32toh(h->cum), .a_rwnd = be32toh(h->rwnd) };

	if (!ddps_sent_straight_sack(&a->tx, s.cum, s.a_rwnd, a->e->now)) {
		ddps_sc_take_sack(a, &s);
		return;
	}
	a->errors = 0; /* [9260-8.1-5] */
	ddps_sc_path_good(a->path[0]);
}

/* One that reports gaps or duplicates. */
static void take_long_sack(struct ddps_sc_rx *rx, const struct ddps_sc_chunk *c)
{
	struct ddps_sctp_assoc *a = rx->a;
	struct ddps_sent_gap gap[GAPS_MAX];
	uint32_t dup[GAPS_MAX];
	struct ddps_sc_sack w;
	struct ddps_sent_sack s;
	struct ddps_rbuf r;

	if (ddps_sc_decode_sack(&w, c) < 0) {
		rx->e->st.malformed++;
		return;
	}
	s = (struct ddps_sent_sack){ .cum = w.cum,
				     .a_rwnd = w.rwnd,
				     .gaps = gap,
				     .dups = dup,
				     .ngaps = w.ngaps < GAPS_MAX ? w.ngaps : GAPS_MAX,
				     .ndups = w.ndups < GAPS_MAX ? w.ndups : GAPS_MAX };
	r = ddps_rbuf_init(w.gaps, 4 * s.ngaps);
	for (size_t i = 0; i < s.ngaps; i++) {
		gap[i].start = ddps_rbuf_u16(&r);
		gap[i].end = ddps_rbuf_u16(&r);
	}
	r = ddps_rbuf_init(w.dups, 4 * s.ndups);
	for (size_t i = 0; i < s.ndups; i++)
		dup[i] = ddps_rbuf_u32(&r);
	a->n_gaps += w.ngaps;
	ddps_sc_take_sack(a, &s);
}

void ddps_sc_sack_in(struct ddps_sc_rx *rx, const struct ddps_sc_chunk *c)
{
	struct ddps_sc_sack_hdr h = { 0 };

	if (c->len == sizeof h)
		memcpy(&h, c->all, sizeof h);
	if (c->len == sizeof h && !h.ngaps && !h.ndups)
		ddps_sc_take_cum(rx->a, &h);
	else
		take_long_sack(rx, c);
}
