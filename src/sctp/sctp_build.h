/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef DDPS_SCTP_BUILD_H
#define DDPS_SCTP_BUILD_H
/*
 * A packet in the making (RFC 9260 6.10).  Short payloads are copied next to their headers; a long message has room
 * for headers in front of it, so that they leave as one piece; what is a part of one is led to.  All that leaves is
 * memory of ours, so the CRC is of what leaves.
 */
#include "sctp/sctp_in.h"

#define DDPS_SC_COPY_MAX  192u /* a payload of less is copied */
#define DDPS_SC_CHUNK_IOV 3u

struct ddps_sc_build {
	struct ddps_sctp_assoc *a;
	struct ddps_sc_path *p;
	struct ddps_sctp_out *out;
	struct ddps_wbuf w; /* the rest of out->head */
	uint8_t *run;	    /* octets from here to w.p are in no iovec yet */
	uint8_t *begin;	    /* of what this packet has in out->head */
	uint8_t *head;	    /* its common header */
	uint8_t *flags;	    /* of its last DATA chunk */
	unsigned iov0;
	size_t size;
	size_t chunk; /* user data octets of the largest DATA chunk */
};

static inline void ddps_sc_build_begin(struct ddps_sc_build *b, uint32_t tag)
{
	b->run = b->begin = b->head = b->w.p;
	b->iov0 = b->out->niov;
	b->flags = NULL;
	b->size = DDPS_SC_HDR;
	ddps_sc_put_header(&b->w, b->a->port, b->a->peer_port, tag);
}

static inline void ddps_sc_build_close(struct ddps_sc_build *b)
{
	if (b->w.p == b->run)
		return;
	b->out->iov[b->out->niov++] = (struct iovec){ b->run, (size_t)(b->w.p - b->run) };
	b->run = b->w.p;
}

static inline void ddps_sc_build_lead(struct ddps_sc_build *b, const void *p, size_t len)
{
	ddps_sc_build_close(b);
	b->out->iov[b->out->niov++] = (struct iovec){ (void *)(uintptr_t)p, len };
}

/* Room for the headers of one chunk more, and for its payload if it is copied? */
static inline bool ddps_sc_build_room(const struct ddps_sc_build *b)
{
	return (size_t)(b->w.end - b->w.p) >=
		       DDPS_SC_DATA_HDR + DDPS_SC_COPY_MAX + DDPS_SC_HDR + 8 &&
	       b->out->iov_max - b->out->niov >= DDPS_SC_CHUNK_IOV + 1;
}

static inline void ddps_sc_build_undo(struct ddps_sc_build *b)
{
	b->out->niov = b->iov0;
	b->w.p = b->begin;
}

static inline void ddps_sc_build_crc(struct ddps_sc_build *b)
{
	uint32_t crc = DDPS_SC_CRC_INIT;

	/* [9653-5.2-8]; INIT and COOKIE ECHO, which leave before that, have one [9653-5.2-2] [9653-5.2-3] */
	if (b->a->zero_checksum && b->a->state >= SC_ESTABLISHED)
		return;
	for (unsigned i = b->iov0; i < b->out->niov; i++)
		crc = ddps_sc_crc_part(crc, b->out->iov[i].iov_base, b->out->iov[i].iov_len);
	crc = ddps_sc_crc_done(crc);
	memcpy(b->head + 8, &crc, sizeof crc);
}

static inline void ddps_sc_build_end(struct ddps_sc_build *b)
{
	struct ddps_sctp *e = b->a->e;

	ddps_sc_build_close(b);
	ddps_sc_build_crc(b);
	b->out->nsegs++;
	b->out->len += b->size;
	if (!b->out->seg_size)
		b->out->seg_size = b->size;
	b->a->n_packets_out++;
	if (e->c.tap)
		e->c.tap(e->c.user, e->now, true, &b->out->to, b->out->iov + b->iov0,
			 (int)(b->out->niov - b->iov0));
}

static inline void ddps_sc_build_to(struct ddps_sc_build *b, struct ddps_sctp_assoc *a,
				    struct ddps_sc_path *p, struct ddps_sctp_out *out)
{
	*b = (struct ddps_sc_build){ .a = a, .p = p, .out = out };
	b->w = ddps_wbuf_init(out->head, out->head_max);
	out->to = (struct ddps_sctp_route){ .peer = p->peer,
					    .local = p->local,
					    .encap = p->encap,
					    .via = a->via,
					    .sealed = a->sealed };
	out->port = a->port;
	out->peer_port = a->peer_port;
}

/* What an SCTP packet on this path takes. */
static inline size_t ddps_sc_max_packet(const struct ddps_sc_path *p)
{
	return ddps_sent_smss(&p->tx) + DDPS_SC_HDR;
}

/* Octets of the IP packet. */
static inline size_t ddps_sc_build_ip_size(const struct ddps_sc_build *b)
{
	return b->size + ddps_sc_overhead(b->p) - DDPS_SC_HDR;
}

/* A message with room for headers in front of it: @h, and the packet's, if nothing of it is there yet. */
static inline void ddps_sc_build_front(struct ddps_sc_build *b, struct ddps_sc_msg *m,
				       const struct ddps_sc_data_hdr *h)
{
	uint8_t *at = m->data - sizeof *h, *end = m->data + m->len;

	memcpy(at, h, sizeof *h);
	b->flags = at + 1;
	while (end < m->data + ddps_sc_pad(m->len))
		*end++ = 0;
	if (b->run == b->begin && b->w.p == b->begin + DDPS_SC_HDR) {
		at -= DDPS_SC_HDR;
		memcpy(at, b->head, DDPS_SC_HDR);
		b->head = at;
		b->w.p = b->begin;
	}
	ddps_sc_build_lead(b, at, (size_t)(end - at));
}

static inline void ddps_sc_build_data(struct ddps_sc_build *b, uint32_t tsn,
				      const struct ddps_sc_piece *pc)
{
	static const uint8_t zero[4];
	struct ddps_sc_msg *m = pc->m;
	const struct ddps_sc_data_hdr h = {
		.type = SC_DATA,
		.flags = pc->flags,
		.len = htobe16((uint16_t)(DDPS_SC_DATA_HDR + pc->len)),
		.tsn = htobe32(tsn),
		.sid = htobe16(m->sid),
		.ssn = htobe16(m->ssn),
		.ppid = htobe32(m->ppid),
	};
	size_t padded = ddps_sc_pad(pc->len);

	/* ddps_sc_build_room */
	ddps_assert((size_t)(b->w.end - b->w.p) >= DDPS_SC_DATA_HDR + DDPS_SC_COPY_MAX + 4);
	b->size += DDPS_SC_DATA_HDR + padded;
	b->a->n_chunks_out++;
	if (pc == &m->whole && pc->len >= DDPS_SC_COPY_MAX) {
		ddps_sc_build_front(b, m, &h);
		return;
	}
	b->flags = b->w.p + 1;
	memcpy(b->w.p, &h, sizeof h);
	b->w.p += sizeof h;
	if (__builtin_expect(pc->len < DDPS_SC_COPY_MAX, true)) {
		memcpy(b->w.p, m->data + pc->at, pc->len);
		b->w.p += pc->len;
	} else {
		ddps_sc_build_lead(b, m->data + pc->at, pc->len);
	}
	memcpy(b->w.p, zero, sizeof zero);
	b->w.p += padded - pc->len;
}

/* What waits does not fill a bundle, and who had to wait before is asked for more immediately. */
static inline bool ddps_sc_is_more_to_come(const struct ddps_sctp_assoc *a)
{
	return (a->notes & NOTE_WRITABLE) && a->unsent < DDPS_CC_BUNDLE && !a->tx.nlost &&
	       a->tx.nflight;
}

/* ---- sctp_straight.c ---- */
/* Messages that leave whole, as many as fit into @most.  Octets of chunks. */
size_t ddps_sc_straight_new(struct ddps_sc_build *b, size_t most);
/* Packets like the one before, which a message of its size fills: as many as follow each other, fit, and make no more
 * than @leave.  @keep: packets for which room is left.  Octets of chunks. */
size_t ddps_sc_straight_packets(struct ddps_sc_build *b, uint64_t leave, unsigned keep);
/* One packet for all that @a has to send, settled or not, if that is a message of one chunk, and perhaps a SACK.
 * false: none was made, and whoever makes one begins it anew. */
bool ddps_sc_straight_lone(struct ddps_sctp_assoc *a, struct ddps_sctp_out *out);

/* ---- sctp_ctl.c: packets without DATA; true: there is one ---- */
bool ddps_sc_init_output(struct ddps_sctp_assoc *a, struct ddps_sctp_out *out);
bool ddps_sc_echo_output(struct ddps_sctp_assoc *a, struct ddps_sctp_out *out);
void ddps_sc_control_output(struct ddps_sctp_assoc *a, struct ddps_sctp_out *out);
bool ddps_sc_big_output(struct ddps_sctp_assoc *a, struct ddps_sc_blob *bl,
			struct ddps_sctp_out *out);
bool ddps_sc_probe_output(struct ddps_sctp_assoc *a, struct ddps_sc_path *p, uint16_t size,
			  struct ddps_sctp_out *out);
/* What the link takes whole leaves whole, and no router fragments IPv6: make it too large for the
 * link, so that our own system fragments it.  @more octets of DATA follow: Linux acknowledges DATA
 * when it is a packet's last chunk. */
void ddps_sc_stretch(struct ddps_sc_build *b, size_t more);

#endif
