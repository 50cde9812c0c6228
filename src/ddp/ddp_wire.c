/* SPDX-License-Identifier: BSD-2-Clause */
/* DDP segment headers. */
#include "ddp/ddp_wire.h"
#include "common/bytes.h"
#include <ddpsess/err.h>

#define CTRL_T	0x80
#define CTRL_L	0x40
#define CTRL_DV 0x03
#define DV_1	0x01

size_t ddps_ddp_hdr_len(uint8_t ctrl)
{
	return ctrl & CTRL_T ? DDPS_DDP_TAGGED_LEN : DDPS_DDP_UNTAGGED_LEN;
}

int ddps_ddp_decode(struct ddps_ddp_hdr *h, const uint8_t *buf, size_t len)
{
	struct ddps_rbuf r = ddps_rbuf_init(buf, len);
	uint8_t ctrl = ddps_rbuf_u8(&r);
	struct ddps_ddp_hdr s = { .tagged = ctrl & CTRL_T, .last = ctrl & CTRL_L };
	bool version_ok = (ctrl & CTRL_DV) == DV_1; /* [5041-4.1-12] */

	if (r.failed)
		return DDPS_E_TRUNCATED;
	s.ulp = ddps_rbuf_u8(&r);
	if (s.tagged) { /* [5041-4.2-1] */
		s.stag = ddps_rbuf_u32(&r);
		s.to = ddps_rbuf_u64(&r);
	} else { /* [5041-4.3-1] */
		s.ulp_word = ddps_rbuf_u32(&r);
		s.qn = ddps_rbuf_u32(&r);
		s.msn = ddps_rbuf_u32(&r);
		s.mo = ddps_rbuf_u32(&r);
	}
	if (r.failed)
		return version_ok ? DDPS_E_TRUNCATED : DDPS_E_REVISION;
	*h = s;
	return version_ok ? (int)ddps_ddp_hdr_len(ctrl) : DDPS_E_REVISION;
}

bool ddps_ddp_is_last(uint8_t ctrl)
{
	return ctrl & CTRL_L;
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
