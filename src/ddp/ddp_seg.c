/* SPDX-License-Identifier: BSD-2-Clause */
/* Segmentation of DDP messages. */
#include "ddp/ddp_seg.h"

_Static_assert(DDPS_DDP_SGE_MAX <= DDPS_SEG_IOV_MAX, "one iovec per piece fits a segment");

int ddps_sge_iov(const struct ddps_sge *sge, uint32_t nsge, uint64_t off, uint64_t len,
		 struct iovec *iov, int max)
{
	int n = 0;

	if (nsge == 1 && len && off + len <= sge->len && max > 0) { /* as most are */
		*iov = (struct iovec){ (uint8_t *)sge->addr + off, (size_t)len };
		return 1;
	}
	for (uint32_t i = 0; i < nsge && len && n < max; i++) {
		uint64_t take;

		if (off >= sge[i].len) {
			off -= sge[i].len;
			continue;
		}
		take = sge[i].len - off;
		if (take > len)
			take = len;
		iov[n].iov_base = (uint8_t *)sge[i].addr + off;
		iov[n++].iov_len = (size_t)take;
		len -= take;
		off = 0;
	}
	return n;
}

size_t ddps_ddp_room(const struct ddps_ddp_msg *m, size_t mulpdu)
{
	size_t hdr = m->hdr.tagged ? DDPS_DDP_TAGGED_LEN : DDPS_DDP_UNTAGGED_LEN;
	uint64_t left = m->len - m->sent;

	return left < mulpdu - hdr ? (size_t)left : mulpdu - hdr;
}

bool ddps_ddp_cut(struct ddps_ddp_msg *m, struct ddps_seg *seg, size_t mulpdu)
{
	struct ddps_ddp_hdr h = m->hdr;

	seg->pay_len = ddps_ddp_room(m, mulpdu);
	/* [5041-5.2-6] [5041-5.2-8]; TO arithmetic is modulo 2^64, the sink refuses a
	 * wrap. */
	h.mo = (uint32_t)m->sent;
	h.to += m->sent;
	h.last = m->sent + seg->pay_len == m->len; /* [5041-4.1-3] [5041-4.1-4] */
	seg->hdr_len = ddps_ddp_encode(&h, seg->hdr);
	seg->npay =
		ddps_sge_iov(m->sge, m->nsge, m->sent, seg->pay_len, seg->pay, DDPS_SEG_IOV_MAX);
	m->sent += seg->pay_len;
	return h.last;
}
