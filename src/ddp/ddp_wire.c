/* SPDX-License-Identifier: BSD-2-Clause */
/* DDP segment headers. */
#include "ddp/ddp_wire.h"
#include "common/bytes.h"
#include <ddpsess/err.h>

#define CTRL_T	DDPS_DDP_CTRL_T
#define CTRL_L	DDPS_DDP_CTRL_L
#define CTRL_DV 0x03
#define DV_1	DDPS_DDP_CTRL_DV1

/* Each of a known length, which is all there: the compiler finds that no read can fail. */
static struct ddps_ddp_hdr decode_tagged(const uint8_t *buf) /* [5041-4.2-1] */
{
	struct ddps_rbuf r = ddps_rbuf_init(buf, DDPS_DDP_TAGGED_LEN);
	struct ddps_ddp_hdr h = { .tagged = true, .last = ddps_ddp_is_last(ddps_rbuf_u8(&r)) };

	h.ulp = ddps_rbuf_u8(&r);
	h.stag = ddps_rbuf_u32(&r);
	h.to = ddps_rbuf_u64(&r);
	return h;
}

static struct ddps_ddp_hdr decode_untagged(const uint8_t *buf) /* [5041-4.3-1] */
{
	struct ddps_rbuf r = ddps_rbuf_init(buf, DDPS_DDP_UNTAGGED_LEN);
	struct ddps_ddp_hdr h = { .last = ddps_ddp_is_last(ddps_rbuf_u8(&r)) };

	h.ulp = ddps_rbuf_u8(&r);
	h.ulp_word = ddps_rbuf_u32(&r);
	h.qn = ddps_rbuf_u32(&r);
	h.msn = ddps_rbuf_u32(&r);
	h.mo = ddps_rbuf_u32(&r);
	return h;
}

int ddps_ddp_decode(struct ddps_ddp_hdr *h, const uint8_t *buf, size_t len)
{
	size_t hdr = len ? ddps_ddp_hdr_len(*buf) : 1;
	bool version_ok = len && (*buf & CTRL_DV) == DV_1; /* [5041-4.1-12] */

	if (len < hdr)
		return version_ok || !len ? DDPS_E_TRUNCATED : DDPS_E_REVISION;
	*h = *buf & CTRL_T ? decode_tagged(buf) : decode_untagged(buf);
	return version_ok ? (int)hdr : DDPS_E_REVISION;
}

size_t ddps_ddp_encode(const struct ddps_ddp_hdr *h, uint8_t *buf)
{
	struct ddps_wbuf w = ddps_wbuf_init(buf, DDPS_DDP_UNTAGGED_LEN);

	ddps_wbuf_u8(&w, (uint8_t)((h->tagged ? CTRL_T : 0) | (h->last ? CTRL_L : 0) | DV_1));
	ddps_wbuf_u8(&w, h->ulp);
	if (h->tagged) {
		ddps_wbuf_u32(&w, h->stag);
		ddps_wbuf_u64(&w, h->to);
	} else {
		ddps_wbuf_u32(&w, h->ulp_word);
		ddps_wbuf_u32(&w, h->qn);
		ddps_wbuf_u32(&w, h->msn);
		ddps_wbuf_u32(&w, h->mo);
	}
	return (size_t)(w.p - buf);
}
