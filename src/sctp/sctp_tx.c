/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Packets out of chunks (RFC 9260 6.10).  Short payloads are copied beside their headers, long
 * ones are led to; all that leaves is memory of ours, so the CRC is of what leaves.
 */
#include "sctp/sctp_in.h"

#define COPY_MAX  192u /* a payload of less is copied */
#define CHUNK_IOV 3u

struct build {
	struct ddps_sctp_assoc *a;
	struct ddps_sc_path *p;
	struct ddps_sctp_out *out;
	struct ddps_wbuf w; /* the rest of out->head */
	uint8_t *run;	    /* octets from here to w.p are in no iovec yet */
	uint8_t *head;	    /* of this packet */
	uint8_t *flags;	    /* of its last DATA chunk */
	unsigned iov0;
	size_t size;
};

static void begin(struct build *b, uint32_t tag)
{
	b->run = b->head = b->w.p;
	b->iov0 = b->out->niov;
	b->flags = NULL;
	b->size = DDPS_SC_HDR;
	ddps_sc_put_header(&b->w, b->a->port, b->a->peer_port, tag);
}

static void close_run(struct build *b)
{
	if (b->w.p == b->run)
		return;
	b->out->iov[b->out->niov++] = (struct iovec){ b->run, (size_t)(b->w.p - b->run) };
	b->run = b->w.p;
}

static void by_reference(struct build *b, const void *p, size_t len)
{
	close_run(b);
	b->out->iov[b->out->niov++] = (struct iovec){ (void *)(uintptr_t)p, len };
}

/* Room for the headers of one chunk more, and for its payload if it is copied? */
static bool room(const struct build *b)
{
	return (size_t)(b->w.end - b->w.p) >= DDPS_SC_DATA_HDR + COPY_MAX + DDPS_SC_HDR + 8 &&
	       b->out->iov_max - b->out->niov >= CHUNK_IOV + 1;
}

static void undo(struct build *b)
{
	b->out->niov = b->iov0;
	b->w.p = b->head;
}

static void put_crc(struct build *b)
{
	uint32_t crc = DDPS_SC_CRC_INIT;

	for (unsigned i = b->iov0; i < b->out->niov; i++)
		crc = ddps_sc_crc_part(crc, b->out->iov[i].iov_base, b->out->iov[i].iov_len);
	crc = ddps_sc_crc_done(crc);
	memcpy(b->head + 8, &crc, sizeof crc);
}

static void end(struct build *b)
{
	struct ddps_sctp *e = b->a->e;

	close_run(b);
	put_crc(b);
	b->out->nsegs++;
	b->out->len += b->size;
	if (!b->out->seg_size)
		b->out->seg_size = b->size;
	b->a->n_packets_out++;
	if (e->c.tap)
		e->c.tap(e->c.user, e->now, true, &b->out->to, b->out->iov + b->iov0,
			 (int)(b->out->niov - b->iov0));
}

static void to(struct build *b, struct ddps_sctp_assoc *a, struct ddps_sc_path *p,
	       struct ddps_sctp_out *out)
{
	*b = (struct build){ .a = a, .p = p, .out = out };
	b->w = ddps_wbuf_init(out->head, out->head_max);
	out->to = (struct ddps_sctp_route){
		.peer = p->peer, .local = p->local, .encap = p->encap, .via = a->via
	};
	out->port = a->port;
	out->peer_port = a->peer_port;
}

/* What an SCTP packet on this path takes. */
static size_t max_packet(const struct ddps_sc_path *p)
{
	return ddps_sent_smss(&p->tx) + DDPS_SC_HDR;
}

/* ---- packets without DATA ---- */

static void control_end(struct build *b)
{
	b->size = (size_t)(b->w.p - b->head);
	end(b);
	b->out->fragment = b->size > max_packet(b->p) || b->p->tx.pmtu.fragment;
}

static int init_output(struct ddps_sctp_assoc *a, struct ddps_sctp_out *out)
{
	struct build b;

	to(&b, a, a->ctl_path, out);
	begin(&b, 0);
	ddps_sc_put_init(a, &b.w);
	a->due = 0;
	control_end(&b);
	return 1;
}

static int echo_output(struct ddps_sctp_assoc *a, struct ddps_sctp_out *out)
{
	struct build b;
	uint8_t *chunk;
	size_t len = a->cookie_len;

	to(&b, a, a->ctl_path, out);
	begin(&b, a->peer_tag);
	ddps_wbuf_u8(&b.w, SC_COOKIE_ECHO);
	ddps_wbuf_u8(&b.w, 0);
	ddps_wbuf_u16(&b.w, (uint16_t)(len + 4));
	by_reference(&b, a->cookie, len);
	ddps_wbuf_be(&b.w, 0, ddps_sc_pad(len) - len);
	b.size += 4 + ddps_sc_pad(len);
	if (a->report_len) {
		uint8_t *from = b.w.p;

		chunk = ddps_sc_begin_chunk(&b.w, SC_ERROR, 0);
		ddps_sc_put_tlv(&b.w, SC_CAUSE_PARAMS, a->report, a->report_len);
		ddps_sc_end_chunk(&b.w, chunk);
		b.size += (size_t)(b.w.p - from);
	}
	a->due &= (uint8_t)~DUE_ECHO;
	end(&b);
	out->fragment = b.size > max_packet(b.p);
	return 1;
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
static void put_blobs(struct build *b)
{
	struct ddps_sctp_assoc *a = b->a;
	struct ddps_sc_blob *bl, *next;
	size_t most = max_packet(b->p);

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

static int control_output(struct ddps_sctp_assoc *a, struct ddps_sctp_out *out)
{
	struct build b;
	size_t used;

	to(&b, a, control_path(a), out);
	begin(&b, a->peer_tag);
	if (a->due & DUE_COOKIE_ACK)
		ddps_sc_put_chunk(&b.w, SC_COOKIE_ACK, 0, NULL, 0);
	a->due &= (uint8_t)~DUE_COOKIE_ACK;
	put_blobs(&b);
	used = (size_t)(b.w.p - b.head);
	if ((a->due & DUE_SACK) && used + 28 < max_packet(b.p) && used + 28 < out->head_max) {
		size_t most = max_packet(b.p) < out->head_max ? max_packet(b.p) : out->head_max;

		if (most > 1500)
			most = 1500;
		ddps_sc_put_sack(a, &b.w, most > used + 24 ? most - used - 8 : 16);
		a->sack_alone = false;
	}
	if ((a->due & (DUE_SHUTDOWN | DUE_SHUTDOWN_ACK)) && b.p == a->ctl_path)
		put_shutdown(a, &b.w);
	control_end(&b);
	return 1;
}

/* One that is too large for the headers' memory: a packet of its own. */
static int big_output(struct ddps_sctp_assoc *a, struct ddps_sc_blob *bl, struct ddps_sctp_out *out)
{
	struct build b;

	STAILQ_REMOVE(&a->blobs, bl, ddps_sc_blob, link);
	a->nblobs--;
	a->nbig--;
	STAILQ_INSERT_TAIL(&a->e->spent, bl, link); /* the packet leads to it */
	to(&b, a, bl->path, out);
	begin(&b, a->peer_tag);
	by_reference(&b, bl->octets, bl->len);
	b.size += bl->len;
	end(&b);
	out->fragment = b.size > max_packet(b.p) || b.p->tx.pmtu.fragment;
	return 1;
}

static uint8_t zeros[65536]; /* never written */

/* Octets of the IP packet. */
static size_t ip_size(const struct build *b)
{
	return b->size + ddps_sc_overhead(b->p) - DDPS_SC_HDR;
}

/* A chunk of zeros, of 4 octets and @pad more. */
static void put_pad(struct build *b, size_t pad)
{
	ddps_wbuf_u8(&b->w, SC_PAD);
	ddps_wbuf_u8(&b->w, 0);
	ddps_wbuf_u16(&b->w, (uint16_t)(pad + 4));
	if (pad)
		by_reference(b, zeros, pad);
}

/* What the link takes whole leaves whole, and no router fragments IPv6: make it too large for the
 * link, so that our own system fragments it. */
static void stretch(struct build *b)
{
	size_t link = b->p->tx.pmtu.lim.max, size = ip_size(b), pad;

	if (b->p->peer.family != 6 || size > link || link > 60000)
		return;
	pad = (link + 8 - size) & ~(size_t)3;
	put_pad(b, pad);
	b->size += 4 + pad;
}

/* [8899-6.2-1] HEARTBEAT and PAD, in a packet of its own. */
static int probe_output(struct ddps_sctp_assoc *a, struct ddps_sc_path *p, uint16_t size,
			struct ddps_sctp_out *out)
{
	struct build b;
	size_t want = size - (ddps_sc_overhead(p) - DDPS_SC_HDR), have, pad;

	ddps_pmtu_probe_sent(&p->tx.pmtu, size, p->tx.rto, a->e->now);
	to(&b, a, p, out);
	begin(&b, a->peer_tag);
	ddps_sc_put_probe(p, size, &b.w);
	have = (size_t)(b.w.p - b.head);
	pad = want > have + 4 ? (want - have - 4) & ~(size_t)3 : 0;
	put_pad(&b, pad);
	b.size = have + 4 + pad;
	end(&b);
	out->probe = true;
	return 1;
}

/* ---- DATA ---- */

static void put_data(struct build *b, uint32_t tsn, const struct ddps_sc_piece *pc)
{
	const struct ddps_sc_msg *m = pc->m;
	size_t padded = ddps_sc_pad(pc->len);

	ddps_wbuf_u8(&b->w, SC_DATA);
	b->flags = b->w.p;
	ddps_wbuf_u8(&b->w, pc->flags);
	ddps_wbuf_u16(&b->w, (uint16_t)(DDPS_SC_DATA_HDR + pc->len));
	ddps_wbuf_u32(&b->w, tsn);
	ddps_wbuf_u16(&b->w, m->sid);
	ddps_wbuf_u16(&b->w, m->ssn);
	ddps_wbuf_u32(&b->w, m->ppid);
	if (pc->len < COPY_MAX)
		ddps_wbuf_bytes(&b->w, m->data + pc->at, pc->len);
	else
		by_reference(b, m->data + pc->at, pc->len);
	ddps_wbuf_be(&b->w, 0, padded - pc->len);
	b->size += DDPS_SC_DATA_HDR + padded;
	b->a->n_chunks_out++;
}

/* Chunks that were lost, as many as fit into @most.  Octets of chunks. */
static size_t put_old(struct build *b, size_t most)
{
	struct ddps_sent *s = &b->a->tx;
	struct ddps_sent_chunk c;
	size_t n = 0;

	while (room(b) && ddps_sent_next_old(s, &c)) {
		bool oversize = c.size + DDPS_SC_HDR > max_packet(b->p);

		if (b->size + c.size > most) {
			if (!oversize || n || b->out->nsegs)
				break;
			b->out->fragment = true; /* [9260-6.9-5] */
		}
		ddps_sent_add_old(s, c.tsn);
		put_data(b, c.tsn, c.chunk);
		n += c.size;
		if (oversize)
			break;
	}
	return n;
}

static size_t put_new(struct build *b, size_t most)
{
	struct ddps_sctp_assoc *a = b->a;
	struct ddps_sent *s = &a->tx;
	size_t n = 0, len;

	while (!b->out->fragment && room(b) && (len = ddps_sc_next_len(a))) {
		size_t size = DDPS_SC_DATA_HDR + ddps_sc_pad(len);
		uint32_t tsn = s->next;
		struct ddps_sc_piece *pc;

		if (b->size + size > most)
			break;
		pc = ddps_sc_cut(a);
		if (!pc)
			break;
		if (ddps_sent_add_new(s, (uint16_t)size, len, pc) < 0) {
			ddps_sc_uncut(a, pc);
			break;
		}
		ddps_sc_cut_done(a, pc);
		put_data(b, tsn, pc);
		n += size;
	}
	return n;
}

/* A SACK that is short may ride in front of the DATA, also one that would have time yet: then
 * request and answer acknowledge each other, without packets for it [9260-6.1-16]. */
static void ride_sack(struct build *b, size_t most)
{
	struct ddps_sctp_assoc *a = b->a;
	size_t next = a->tx.nlost ? SIZE_MAX : ddps_sc_next_len(a);
	bool pending = a->due & DUE_SACK || a->sack_packets;

	if (!pending || a->sack_path != b->p || b->out->nsegs || !next ||
	    a->map.high != a->map.cum || a->ndups ||
	    next > most - DDPS_SC_HDR - 16 - DDPS_SC_DATA_HDR - 3)
		return;
	ddps_sc_put_sack(a, &b->w, 16);
	b->size += 16;
}

/* One packet of DATA.  Octets of its chunks; 0: none, nothing is done. */
static size_t data_packet(struct build *b, enum ddps_sent_what what)
{
	struct ddps_sctp_assoc *a = b->a;
	size_t most = b->out->seg_size ? b->out->seg_size : max_packet(b->p), n;
	uint64_t pn = ddps_sent_begin(&a->tx, &b->p->tx, a->e->now);
	uint8_t due = a->due;

	if (!b->out->nsegs)
		b->out->pn = pn;
	begin(b, a->peer_tag);
	ride_sack(b, most);
	n = what == DDPS_SENT_OLD ? put_old(b, most) : 0;
	n += put_new(b, most);
	if (ddps_sent_end(&a->tx, (uint32_t)ip_size(b), !STAILQ_EMPTY(&a->queue)) && n)
		*b->flags |= SC_DATA_I;
	if (n) {
		if (b->out->fragment)
			stretch(b);
		end(b);
	} else {
		a->due = due;
		undo(b);
	}
	return n;
}

/* A SACK as the last packet of a run.  Only the last one may be shorter than the others. */
static void append_sack(struct build *b)
{
	struct ddps_sctp_assoc *a = b->a;

	if (!(a->due & DUE_SACK))
		return;
	a->sack_alone = true;
	if (a->sack_path != b->p || b->out->fragment || b->out->seg_size < 200 ||
	    b->out->len != b->out->nsegs * b->out->seg_size || b->out->nsegs >= b->out->max_segs ||
	    !room(b))
		return;
	begin(b, a->peer_tag);
	b->size += ddps_sc_put_sack(a, &b->w, 180);
	end(b);
	a->sack_alone = false;
}

static bool data_state(const struct ddps_sctp_assoc *a)
{
	return a->state == SC_ESTABLISHED || a->state == SC_PENDING || a->state == SC_RECEIVED;
}

static int data_output(struct ddps_sctp_assoc *a, struct ddps_sctp_out *out)
{
	struct ddps_sc_path *p = a->data_path;
	size_t next = ddps_sc_next_len(a), sent = 0, n, last;
	unsigned keep = a->due & DUE_SACK && out->max_segs > 1 ? 1 : 0;
	bool narrow = p->tx.pmtu.fragment;
	enum ddps_sent_what what;
	uint64_t leave = 0;
	struct build b;

	a->ask = false;
	what = ddps_sent_may(&a->tx, &p->tx, a->e->now, next ? next : SIZE_MAX, &leave);
	if (what == DDPS_SENT_NOTHING)
		return 0;
	to(&b, a, p, out);
	do {
		last = out->len;
		n = data_packet(&b, what);
		sent += n;
	} while (n && sent < leave && !out->fragment && !narrow &&
		 out->nsegs + keep < out->max_segs && out->len - last == out->seg_size &&
		 out->len + out->seg_size <= out->max_len && room(&b));
	if (!out->nsegs)
		return 0;
	out->fragment |= narrow; /* not even the least size passes whole: RFC 8899 5.2 */
	p->used = a->e->now;
	out->data = true;
	append_sack(&b);
	return 1;
}

/* ---- whose turn ---- */

static bool data_waits(const struct ddps_sctp_assoc *a)
{
	return data_state(a) && (!STAILQ_EMPTY(&a->queue) || a->tx.nlost || a->ask);
}

bool ddps_sc_has_output(struct ddps_sctp_assoc *a)
{
	uint16_t size;

	return a->due || !STAILQ_EMPTY(&a->blobs) || data_waits(a) || ddps_sc_probe_path(a, &size);
}

int ddps_sc_assoc_output(struct ddps_sctp_assoc *a, struct ddps_sctp_out *out)
{
	struct ddps_sc_blob *bl = STAILQ_FIRST(&a->blobs);
	struct ddps_sc_path *p;
	uint16_t size;

	if (a->due & DUE_INIT)
		return init_output(a, out);
	if (a->due & DUE_ECHO)
		return echo_output(a, out);
	if (!(a->due & ~DUE_SACK) && bl && bl->len > DDPS_SC_BLOB_BIG)
		return big_output(a, bl, out);
	if ((a->due & ~DUE_SACK) || !STAILQ_EMPTY(&a->blobs) ||
	    ((a->due & DUE_SACK) && a->sack_alone))
		return control_output(a, out);
	p = ddps_sc_probe_path(a, &size);
	if (p)
		return probe_output(a, p, size, out);
	if (data_waits(a) && data_output(a, out))
		return 1;
	return a->due & DUE_SACK ? control_output(a, out) : 0;
}
