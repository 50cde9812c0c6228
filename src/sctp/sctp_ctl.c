/* SPDX-License-Identifier: BSD-2-Clause */
/* Packets without DATA of their own: set-up, control chunks, probes (RFC 9260 6.10). */
#include "sctp/sctp_build.h"

static void control_end(struct ddps_sc_build *b)
{
	b->size = (size_t)(b->w.p - b->head);
	ddps_sc_build_end(b);
	b->out->fragment = b->size > ddps_sc_max_packet(b->p) || b->p->tx.pmtu.fragment;
}

/* Whoever does not answer may not have had it: what is repeated may come in fragments. */
static bool is_ctl_repeated(const struct ddps_sctp_assoc *a)
{
	return a->ctl_n;
}

bool ddps_sc_init_output(struct ddps_sctp_assoc *a, struct ddps_sctp_out *out)
{
	struct ddps_sc_build b;

	ddps_sc_build_to(&b, a, a->ctl_path, out);
	ddps_sc_build_begin(&b, 0);
	ddps_sc_put_init(a, &b.w);
	a->due = 0;
	control_end(&b);
	out->fragment = is_ctl_repeated(a);
	return true;
}

/* For the same reason it is a packet then that passes nearly anywhere. */
static size_t early_room(const struct ddps_sc_build *b)
{
	size_t least = b->p->tx.pmtu.lim.min + DDPS_SC_HDR - ddps_sc_overhead(b->p);

	return is_ctl_repeated(b->a) ? least : ddps_sc_max_packet(b->p);
}

/*
 * [9260-5.1-7] What waits to be sent goes with it, whole messages, as many as fit: no more than the
 * least window that INIT ACK may tell.  They take the first TSNs each time, and are entered as sent
 * when the peer has answered (established() in sctp_echo.c).
 */
static void put_early(struct ddps_sc_build *b)
{
	struct ddps_sctp_assoc *a = b->a;
	size_t most = early_room(b), window = DDPS_SC_RWND_MIN;
	struct ddps_sc_msg *m;
	unsigned n = 0;

	STAILQ_FOREACH(m, &a->queue, link) {
		if (!ddps_sc_build_room(b) || m->len > window || m->sid >= a->out_streams ||
		    b->size + DDPS_SC_DATA_HDR + ddps_sc_pad(m->len) > most)
			break;
		ddps_sc_build_data(b, a->own_tsn + n++, ddps_sc_whole_piece(m));
		window -= m->len;
	}
	if (n)
		*b->flags |= SC_DATA_I;
	if (n > a->early)
		a->early = n;
}

bool ddps_sc_echo_output(struct ddps_sctp_assoc *a, struct ddps_sctp_out *out)
{
	struct ddps_sc_build b;
	uint8_t *chunk;
	size_t len = a->cookie_len, pad;

	ddps_sc_build_to(&b, a, a->ctl_path, out);
	ddps_sc_build_begin(&b, a->peer_tag);
	ddps_wbuf_u8(&b.w, SC_COOKIE_ECHO);
	ddps_wbuf_u8(&b.w, 0);
	ddps_wbuf_u16(&b.w, (uint16_t)(len + 4));
	ddps_sc_build_lead(&b, a->cookie, len);
	ddps_wbuf_be(&b.w, 0, ddps_sc_pad(len) - len);
	b.size += 4 + ddps_sc_pad(len);
	if (a->report_len) {
		uint8_t *from = b.w.p;

		chunk = ddps_sc_begin_chunk(&b.w, SC_ERROR, 0);
		pad = ddps_sc_put_tlv(&b.w, SC_CAUSE_PARAMS, a->report, a->report_len);
		ddps_sc_end_chunk(&b.w, chunk, pad);
		b.size += (size_t)(b.w.p - from);
	}
	a->due &= (uint8_t)~DUE_ECHO;
	put_early(&b);
	ddps_sc_build_end(&b);
	out->fragment = is_ctl_repeated(a) || b.size > ddps_sc_max_packet(b.p);
	return true;
}

static void put_shutdown(struct ddps_sctp_assoc *a, struct ddps_wbuf *w)
{
	uint32_t cum = htobe32(a->map.cum);

	if (a->due & DUE_SHUTDOWN)
		ddps_sc_put_chunk(w, SC_SHUTDOWN, 0, &cum, sizeof cum);
	else
		ddps_sc_put_chunk(w, SC_SHUTDOWN_ACK, 0, NULL, 0);
	a->due &= (uint8_t) ~(DUE_SHUTDOWN | DUE_SHUTDOWN_ACK);
}

/* Chunks that are ready, for the path of this packet, as many as fit. */
static void put_blobs(struct ddps_sc_build *b)
{
	struct ddps_sctp_assoc *a = b->a;
	struct ddps_sc_blob *bl, *next;
	size_t most = ddps_sc_max_packet(b->p);

	if (most > b->out->head_max)
		most = b->out->head_max;
	for (bl = STAILQ_FIRST(&a->blobs); bl; bl = next) {
		size_t size = (size_t)(b->w.p - b->head);

		next = STAILQ_NEXT(bl, link);
		if (bl->path != b->p || bl->len > DDPS_SC_BLOB_BIG ||
		    (size > DDPS_SC_HDR && size + bl->len > most))
			continue;
		ddps_wbuf_bytes(&b->w, bl->octets, bl->len);
		STAILQ_REMOVE(&a->blobs, bl, ddps_sc_blob, link);
		a->nblobs--;
		free(bl);
	}
}

static struct ddps_sc_path *control_path(const struct ddps_sctp_assoc *a)
{
	const struct ddps_sc_blob *b = STAILQ_FIRST(&a->blobs);

	if (a->due & (DUE_COOKIE_ACK | DUE_SHUTDOWN | DUE_SHUTDOWN_ACK))
		return a->ctl_path;
	if (b)
		return b->path;
	return a->sack_path->confirmed ? a->sack_path : a->data_path;
}

void ddps_sc_control_output(struct ddps_sctp_assoc *a, struct ddps_sctp_out *out)
{
	struct ddps_sc_build b;
	size_t used;

	ddps_sc_build_to(&b, a, control_path(a), out);
	ddps_sc_build_begin(&b, a->peer_tag);
	if (a->due & DUE_COOKIE_ACK)
		ddps_sc_put_chunk(&b.w, SC_COOKIE_ACK, 0, NULL, 0);
	a->due &= (uint8_t)~DUE_COOKIE_ACK;
	put_blobs(&b);
	used = (size_t)(b.w.p - b.head);
	if ((a->due & DUE_SACK) && used + 28 < ddps_sc_max_packet(b.p) &&
	    used + 28 < out->head_max) {
		size_t most = ddps_sc_max_packet(b.p) < out->head_max ? ddps_sc_max_packet(b.p)
								      : out->head_max;

		if (most > 1500)
			most = 1500;
		ddps_sc_put_sack(a, &b.w, most > used + 24 ? most - used - 8 : 16);
		a->sack_alone = false;
	}
	if (a->due & (DUE_SHUTDOWN | DUE_SHUTDOWN_ACK))
		put_shutdown(a, &b.w);
	control_end(&b);
}

/* One that is too large for the headers' memory: a packet of its own. */
bool ddps_sc_big_output(struct ddps_sctp_assoc *a, struct ddps_sc_blob *bl,
			struct ddps_sctp_out *out)
{
	struct ddps_sc_build b;

	STAILQ_REMOVE(&a->blobs, bl, ddps_sc_blob, link);
	a->nblobs--;
	a->nbig--;
	STAILQ_INSERT_TAIL(&a->e->spent, bl, link); /* the packet leads to it */
	ddps_sc_build_to(&b, a, bl->path, out);
	ddps_sc_build_begin(&b, a->peer_tag);
	ddps_sc_build_lead(&b, bl->octets, bl->len);
	b.size += bl->len;
	ddps_sc_build_end(&b);
	out->fragment = b.size > ddps_sc_max_packet(b.p);
	return true;
}

static uint8_t zeros[65536]; /* never written */

/* A chunk of zeros, of 4 octets and @pad more. */
static void put_pad_chunk(struct ddps_sc_build *b, size_t pad)
{
	ddps_wbuf_u8(&b->w, SC_PAD);
	ddps_wbuf_u8(&b->w, 0);
	ddps_wbuf_u16(&b->w, (uint16_t)(pad + 4));
	if (pad)
		ddps_sc_build_lead(b, zeros, pad);
}

void ddps_sc_stretch(struct ddps_sc_build *b, size_t more)
{
	size_t link = b->p->tx.pmtu.lim.max, size = ddps_sc_build_ip_size(b) + more, pad;

	if (b->p->peer.family != 6 || size > link || link > 60000)
		return;
	pad = link + 8 - size; /* whole words, all three */
	put_pad_chunk(b, pad);
	b->size += 4 + pad;
}

/* [8899-6.2-1] HEARTBEAT and PAD, in a packet of its own. */
bool ddps_sc_probe_output(struct ddps_sctp_assoc *a, struct ddps_sc_path *p, uint16_t size,
			  struct ddps_sctp_out *out)
{
	struct ddps_sc_build b;
	size_t want = size - (ddps_sc_overhead(p) - DDPS_SC_HDR), have, pad;

	ddps_pmtu_probe_sent(&p->tx.pmtu, size, p->tx.rto, a->e->now);
	ddps_sc_build_to(&b, a, p, out);
	ddps_sc_build_begin(&b, a->peer_tag);
	ddps_sc_put_probe(p, size, &b.w);
	have = (size_t)(b.w.p - b.head);
	pad = want > have + 4 ? want - have - 4 : 0; /* sizes are whole words */
	put_pad_chunk(&b, pad);
	b.size = have + 4 + pad;
	ddps_sc_build_end(&b);
	out->probe = true;
	return true;
}
