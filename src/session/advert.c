/* SPDX-License-Identifier: BSD-2-Clause */
/* The octets of an advert. */
#include <ddpsess/advert.h>
#include "common/bytes.h"

void ddps_advert_encode(uint8_t out[DDPS_ADVERT_LEN], const struct ddps_advert *a)
{
	struct ddps_wbuf w = ddps_wbuf_init(out, DDPS_ADVERT_LEN);

	ddps_wbuf_u32(&w, a->stag);
	ddps_wbuf_u64(&w, a->to);
	ddps_wbuf_u64(&w, a->length);
}

int ddps_advert_decode(struct ddps_advert *a, const void *buf, size_t len)
{
	struct ddps_rbuf r = ddps_rbuf_init(buf, len);
	struct ddps_advert got = { 0 };

	got.stag = ddps_rbuf_u32(&r);
	got.to = ddps_rbuf_u64(&r);
	got.length = ddps_rbuf_u64(&r);
	if (r.failed || ddps_rbuf_left(&r) || (got.length && got.length - 1 > UINT64_MAX - got.to))
		return DDPS_E_PROTOCOL;
	*a = got;
	return 0;
}
