/* SPDX-License-Identifier: BSD-2-Clause */
/* RDMAP headers, those of RFC 7306 too. */
#include "rdmap/rdmap_wire.h"
#include "common/bytes.h"

#define TERM_M	      0x80
#define TERM_D	      0x40
#define TERM_R	      0x20
#define TERM_ALL      (TERM_M | TERM_D | TERM_R)
#define TERM_CTRL_LEN 4
/* The same bits as a little-endian soft-iWARP puts them. */
#define SWAPPED_M   0x01
#define SWAPPED_D   0x02
#define SWAPPED_R   0x04
#define SWAPPED_ALL (SWAPPED_M | SWAPPED_D | SWAPPED_R)

void ddps_rreq_encode(const struct ddps_rreq *q, uint8_t out[DDPS_RREQ_LEN])
{
	struct ddps_wbuf w = ddps_wbuf_init(out, DDPS_RREQ_LEN);

	ddps_wbuf_u32(&w, q->sink_stag);
	ddps_wbuf_u64(&w, q->sink_to);
	ddps_wbuf_u32(&w, q->size);
	ddps_wbuf_u32(&w, q->src_stag);
	ddps_wbuf_u64(&w, q->src_to);
}

void ddps_rreq_decode(struct ddps_rreq *q, const uint8_t in[DDPS_RREQ_LEN])
{
	struct ddps_rbuf r = ddps_rbuf_init(in, DDPS_RREQ_LEN);

	q->sink_stag = ddps_rbuf_u32(&r);
	q->sink_to = ddps_rbuf_u64(&r);
	q->size = ddps_rbuf_u32(&r);
	q->src_stag = ddps_rbuf_u32(&r);
	q->src_to = ddps_rbuf_u64(&r);
}

void ddps_areq_encode(const struct ddps_areq *q, uint8_t out[DDPS_AREQ_LEN])
{
	struct ddps_wbuf w = ddps_wbuf_init(out, DDPS_AREQ_LEN);

	ddps_wbuf_u32(&w, q->aop); /* reserved bits are 0 [7306-5.2.1-15] */
	ddps_wbuf_u32(&w, q->id);
	ddps_wbuf_u32(&w, q->stag);
	ddps_wbuf_u64(&w, q->to);
	ddps_wbuf_u64(&w, q->data);
	ddps_wbuf_u64(&w, q->mask);
	ddps_wbuf_u64(&w, q->compare);
	ddps_wbuf_u64(&w, q->compare_mask);
}

void ddps_areq_decode(struct ddps_areq *q, const uint8_t in[DDPS_AREQ_LEN])
{
	struct ddps_rbuf r = ddps_rbuf_init(in, DDPS_AREQ_LEN);

	q->aop = ddps_rbuf_u32(&r) & 0x0F;
	q->id = ddps_rbuf_u32(&r);
	q->stag = ddps_rbuf_u32(&r);
	q->to = ddps_rbuf_u64(&r);
	q->data = ddps_rbuf_u64(&r);
	q->mask = ddps_rbuf_u64(&r);
	q->compare = ddps_rbuf_u64(&r);
	q->compare_mask = ddps_rbuf_u64(&r);
}

void ddps_aresp_encode(const struct ddps_aresp *a, uint8_t out[DDPS_ARESP_LEN])
{
	struct ddps_wbuf w = ddps_wbuf_init(out, DDPS_ARESP_LEN);

	ddps_wbuf_u32(&w, a->id);
	ddps_wbuf_u64(&w, a->original);
}

void ddps_aresp_decode(struct ddps_aresp *a, const uint8_t in[DDPS_ARESP_LEN])
{
	struct ddps_rbuf r = ddps_rbuf_init(in, DDPS_ARESP_LEN);

	a->id = ddps_rbuf_u32(&r);
	a->original = ddps_rbuf_u64(&r);
}

size_t ddps_term_encode(const struct ddps_term_msg *t, uint8_t out[DDPS_TERM_LEN_MAX])
{
	struct ddps_wbuf w = ddps_wbuf_init(out, DDPS_TERM_LEN_MAX);

	/* Layer is the high nibble. */
	ddps_wbuf_u8(&w, (uint8_t)(t->triple.layer << 4 | t->triple.etype));
	ddps_wbuf_u8(&w, t->triple.code);
	ddps_wbuf_u8(&w, (uint8_t)((t->has_len ? TERM_M : 0) | (t->ddp ? TERM_D : 0) |
				   (t->rreq ? TERM_R : 0)));
	ddps_wbuf_u8(&w, 0); /* [5040-4.8-7] */
	if (t->ddp) {	     /* [5040-4.8-10] [5040-4.8-12] */
		ddps_wbuf_u16(&w, t->has_len ? t->seg_len : 0);
		ddps_wbuf_bytes(&w, t->ddp, t->ddp_len);
	}
	if (t->rreq) /* [5040-4.8-14] */
		ddps_wbuf_bytes(&w, t->rreq, DDPS_RREQ_LEN);
	return (size_t)(w.p - out);
}

/* Codes registered for RFC 5040, 5041, 5044 and 6581; etypes with code "any" have all
 * bits. */
static bool is_code_assigned(uint8_t layer, uint8_t etype, uint8_t code)
{
	static const struct {
		uint8_t layer, etype, first, last;
	} range[] = {
		{ 0, 0, 0x00, 0xFF }, { 0, 1, 0x00, 0x04 }, { 0, 1, 0x09, 0x09 },
		{ 0, 1, 0xFF, 0xFF }, { 0, 2, 0x05, 0x09 }, { 0, 2, 0xFF, 0xFF },
		{ 1, 0, 0x00, 0xFF }, { 1, 1, 0x00, 0x04 }, { 1, 2, 0x01, 0x06 },
		{ 2, 0, 0x01, 0x07 },
	};

	for (size_t i = 0; i < sizeof range / sizeof *range; i++)
		if (layer == range[i].layer && etype == range[i].etype && code >= range[i].first &&
		    code <= range[i].last)
			return true;
	return false;
}

/*
 * The flags tell the forms apart, but swapped ones count only where the headers follow that they
 * announce: else they are reserved bits [5040-4.8-8].  Without flags a triple that only makes
 * sense the swapped way says.  Where both make sense nothing can, and the RFC's reading stands.
 */
static bool is_swapped(const uint8_t ctrl[TERM_CTRL_LEN], size_t len)
{
	uint8_t high = ctrl[0] >> 4, low = ctrl[0] & 0x0F;

	if (ctrl[2] & TERM_ALL)
		return false;
	if (len > TERM_CTRL_LEN && (ctrl[2] & SWAPPED_ALL))
		return true;
	return !is_code_assigned(high, low, ctrl[1]) && is_code_assigned(low, high, ctrl[1]);
}

int ddps_term_decode(struct ddps_term_msg *t, const uint8_t *buf, size_t len)
{
	struct ddps_rbuf r = ddps_rbuf_init(buf, len);
	uint8_t flags;

	*t = (struct ddps_term_msg){ 0 };
	if (len)
		memcpy(t->ctrl, buf, len < sizeof t->ctrl ? len : sizeof t->ctrl);
	t->swapped = is_swapped(t->ctrl, len);
	t->triple.layer = t->swapped ? t->ctrl[0] & 0x0F : t->ctrl[0] >> 4;
	t->triple.etype = t->swapped ? t->ctrl[0] >> 4 : t->ctrl[0] & 0x0F;
	t->triple.code = t->ctrl[1];
	flags = t->ctrl[2];
	if (t->swapped)
		flags = (uint8_t)((flags & SWAPPED_M ? TERM_M : 0) |
				  (flags & SWAPPED_D ? TERM_D : 0) |
				  (flags & SWAPPED_R ? TERM_R : 0));
	ddps_rbuf_take(&r, sizeof t->ctrl);
	if (flags & TERM_D) {
		t->seg_len = ddps_rbuf_u16(&r);
		t->has_len = !r.failed && (flags & TERM_M);
		if (!r.failed && ddps_rbuf_left(&r))
			t->ddp_len = ddps_ddp_hdr_len(*r.p);
		t->ddp = t->ddp_len ? ddps_rbuf_take(&r, t->ddp_len) : NULL;
		r.failed |= !t->ddp;
		if (!t->ddp)
			t->ddp_len = 0;
	}
	/* R means something only behind an untagged header; soft-iWARP sets it for errors
	 * of Invalidate, too, with nothing behind. */
	if ((flags & TERM_R) && t->ddp_len == DDPS_DDP_UNTAGGED_LEN)
		t->rreq = ddps_rbuf_take(&r, DDPS_RREQ_LEN);
	return r.failed ? DDPS_E_TRUNCATED : 0;
}
