/* SPDX-License-Identifier: BSD-2-Clause */
/* The header of the soft port's datagrams and the private data of its sessions. */
#include "ipoib/soft/soft_wire.h"
#include "cli/octets.h"
#include <ddpsess/ib_cm.h>

#define KEY_UDP	 0x64497031u /* "dIp1" */
#define KEY_OPEN 0x64497131u /* "dIq1" */

void ddps_soft_header_encode(uint8_t buf[DDPS_SOFT_HEADER_LEN], const struct ddps_soft_header *h)
{
	struct octets w = octets_at(buf, DDPS_SOFT_HEADER_LEN);

	octets_be(&w, KEY_UDP, 4);
	octets_be(&w, (uint32_t)h->kind << 24, 4);
	octets_be(&w, h->from_qpn & DDPS_IPOIB_QPN_MAX, 4);
	octets_be(&w, h->to_qpn & DDPS_IPOIB_QPN_MAX, 4);
	octets_put(&w, h->from, sizeof(h->from));
	octets_put(&w, h->to, sizeof(h->to));
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
	struct octets_in r = octets_from(buf, len);
	uint32_t key = (uint32_t)octets_get(&r, 4), kind = (uint32_t)octets_get(&r, 4) >> 24;
	const uint8_t *from, *to;

	h->from_qpn = (uint32_t)octets_get(&r, 4);
	h->to_qpn = (uint32_t)octets_get(&r, 4);
	from = octets_take(&r, sizeof(h->from));
	to = octets_take(&r, sizeof(h->to));
	if (!from || !to)
		return DDPS_E_TRUNCATED;
	if (key != KEY_UDP || kind < DDPS_SOFT_UD || kind > DDPS_SOFT_MAD)
		return DDPS_E_PROTOCOL;
	h->kind = (enum ddps_soft_kind)kind;
	memcpy(h->from, from, sizeof(h->from));
	memcpy(h->to, to, sizeof(h->to));
	if (!qpns_fit(h))
		return DDPS_E_PROTOCOL;
	if (h->kind == DDPS_SOFT_MAD && (size_t)(r.end - r.p) != DDPS_CM_MAD_LEN)
		return DDPS_E_TRUNCATED;
	return 0;
}

void ddps_soft_open_encode(uint8_t buf[DDPS_SOFT_OPEN_LEN], const struct ddps_soft_open *o)
{
	struct octets w = octets_at(buf, DDPS_SOFT_OPEN_LEN);

	octets_be(&w, KEY_OPEN, 4);
	octets_be(&w, o->from_qpn, 4);
	octets_be(&w, o->to_qpn, 4);
	octets_put(&w, o->from, sizeof(o->from));
	octets_put(&w, o->to, sizeof(o->to));
}

int ddps_soft_open_decode(struct ddps_soft_open *o, const void *buf, size_t len)
{
	struct octets_in r = octets_from(buf, len);
	uint32_t key;

	if (len != DDPS_SOFT_OPEN_LEN)
		return DDPS_E_TRUNCATED;
	key = (uint32_t)octets_get(&r, 4);
	o->from_qpn = (uint32_t)octets_get(&r, 4);
	o->to_qpn = (uint32_t)octets_get(&r, 4);
	memcpy(o->from, octets_take(&r, sizeof(o->from)), sizeof(o->from));
	memcpy(o->to, octets_take(&r, sizeof(o->to)), sizeof(o->to));
	if (key != KEY_OPEN || o->from_qpn < 2 || o->to_qpn < 2 ||
	    o->from_qpn >= DDPS_IPOIB_QPN_MCAST || o->to_qpn >= DDPS_IPOIB_QPN_MCAST)
		return DDPS_E_PROTOCOL;
	return 0;
}
