/* SPDX-License-Identifier: BSD-2-Clause */
/* The header of the soft port's datagrams and the private data of its sessions. */
#include "ipoib/soft/soft_wire.h"
#include "common/bytes.h"
#include <ddpsess/ib_cm.h>

#define KEY_UDP	 0x64497031u /* "dIp1" */
#define KEY_OPEN 0x64497131u /* "dIq1" */

void ddps_soft_header_encode(uint8_t buf[DDPS_SOFT_HEADER_LEN], const struct ddps_soft_header *h)
{
	struct ddps_wbuf w = ddps_wbuf_init(buf, DDPS_SOFT_HEADER_LEN);

	ddps_wbuf_u32(&w, KEY_UDP);
	ddps_wbuf_u32(&w, (uint32_t)h->kind << 24);
	ddps_wbuf_u32(&w, h->from_qpn & DDPS_IPOIB_QPN_MAX);
	ddps_wbuf_u32(&w, h->to_qpn & DDPS_IPOIB_QPN_MAX);
	ddps_wbuf_bytes(&w, h->from, sizeof(h->from));
	ddps_wbuf_bytes(&w, h->to, sizeof(h->to));
}

static bool qpns_fit(const struct ddps_soft_header *h)
{
	if (h->from_qpn >= DDPS_IPOIB_QPN_MCAST)
		return false;
	if (h->kind == DDPS_SOFT_GROUP)
		return h->to_qpn == DDPS_IPOIB_QPN_MCAST && h->to[0] == 0xff;
	return h->to_qpn < DDPS_IPOIB_QPN_MCAST;
}

int ddps_soft_header_decode(struct ddps_soft_header *h, const void *buf, size_t len)
{
	struct ddps_rbuf r = ddps_rbuf_init(buf, len);
	uint32_t key = ddps_rbuf_u32(&r), kind = ddps_rbuf_u32(&r) >> 24;
	const uint8_t *from, *to;

	h->from_qpn = ddps_rbuf_u32(&r);
	h->to_qpn = ddps_rbuf_u32(&r);
	from = ddps_rbuf_take(&r, sizeof(h->from));
	to = ddps_rbuf_take(&r, sizeof(h->to));
	if (!from || !to)
		return DDPS_E_TRUNCATED;
	if (key != KEY_UDP || kind < DDPS_SOFT_UD || kind > DDPS_SOFT_MAD)
		return DDPS_E_PROTOCOL;
	h->kind = (enum ddps_soft_kind)kind;
	memcpy(h->from, from, sizeof(h->from));
	memcpy(h->to, to, sizeof(h->to));
	if (!qpns_fit(h))
		return DDPS_E_PROTOCOL;
	if (h->kind == DDPS_SOFT_MAD && ddps_rbuf_left(&r) != DDPS_CM_MAD_LEN)
		return DDPS_E_TRUNCATED;
	return 0;
}

void ddps_soft_open_encode(uint8_t buf[DDPS_SOFT_OPEN_LEN], const struct ddps_soft_open *o)
{
	struct ddps_wbuf w = ddps_wbuf_init(buf, DDPS_SOFT_OPEN_LEN);

	ddps_wbuf_u32(&w, KEY_OPEN);
	ddps_wbuf_u32(&w, o->from_qpn);
	ddps_wbuf_u32(&w, o->to_qpn);
	ddps_wbuf_bytes(&w, o->from, sizeof(o->from));
	ddps_wbuf_bytes(&w, o->to, sizeof(o->to));
}

int ddps_soft_open_decode(struct ddps_soft_open *o, const void *buf, size_t len)
{
	struct ddps_rbuf r = ddps_rbuf_init(buf, len);
	uint32_t key;

	if (len != DDPS_SOFT_OPEN_LEN)
		return DDPS_E_TRUNCATED;
	key = ddps_rbuf_u32(&r);
	o->from_qpn = ddps_rbuf_u32(&r);
	o->to_qpn = ddps_rbuf_u32(&r);
	memcpy(o->from, ddps_rbuf_take(&r, sizeof(o->from)), sizeof(o->from));
	memcpy(o->to, ddps_rbuf_take(&r, sizeof(o->to)), sizeof(o->to));
	if (key != KEY_OPEN || o->from_qpn < 2 || o->to_qpn < 2 ||
	    o->from_qpn >= DDPS_IPOIB_QPN_MCAST || o->to_qpn >= DDPS_IPOIB_QPN_MCAST)
		return DDPS_E_PROTOCOL;
	return 0;
}
