/* SPDX-License-Identifier: BSD-2-Clause */
/* The header in front of every packet, ARP, and the option of IPv6 ND (RFC 4391 6, 9). */
#include <ddpsess/ipoib_cm.h>
#include "common/bytes.h"
#include "ipoib_cm/wire/wire.h"

#define ARP_HW_INFINIBAND 32
#define ND_UNIT		  8 /* octets that one of an option's length stands for */
#define ND_PAD		  2

void ddps_ipoib_encap_encode(uint8_t out[DDPS_IPOIB_ENCAP_LEN], uint16_t type)
{
	struct ddps_wbuf w = ddps_wbuf_init(out, DDPS_IPOIB_ENCAP_LEN);

	ddps_wbuf_u16(&w, type);
	ddps_wbuf_u16(&w, 0); /* [4391-6-2] */
}

int ddps_ipoib_encap_decode(uint16_t *type, const uint8_t **packet, size_t *packet_len,
			    const void *buf, size_t len)
{
	struct ddps_rbuf r = ddps_rbuf_init(buf, len);
	uint16_t got = ddps_rbuf_u16(&r);

	ddps_rbuf_take(&r, 2); /* [4391-6-3] */
	if (r.failed)
		return DDPS_E_TRUNCATED;
	*type = got;
	*packet = r.p;
	*packet_len = ddps_rbuf_left(&r);
	return 0;
}

int ddps_ipoib_arp_encode(uint8_t out[DDPS_IPOIB_ARP_LEN], const struct ddps_ipoib_arp *arp)
{
	struct ddps_wbuf w = ddps_wbuf_init(out, DDPS_IPOIB_ARP_LEN);
	uint8_t sender[DDPS_IPOIB_LLADDR_LEN], target[DDPS_IPOIB_LLADDR_LEN];

	if (ddps_ipoib_lladdr_encode(sender, &arp->sender) ||
	    ddps_ipoib_lladdr_encode(target, &arp->target))
		return DDPS_E_INVAL;
	ddps_wbuf_u16(&w, ARP_HW_INFINIBAND); /* [4391-9.2-1] */
	ddps_wbuf_u16(&w, DDPS_IPOIB_TYPE_IPV4);
	ddps_wbuf_u8(&w, DDPS_IPOIB_LLADDR_LEN);
	ddps_wbuf_u8(&w, sizeof(arp->sender_ip));
	ddps_wbuf_u16(&w, arp->op);
	ddps_wbuf_bytes(&w, sender, sizeof(sender));
	ddps_wbuf_bytes(&w, arp->sender_ip, sizeof(arp->sender_ip));
	ddps_wbuf_bytes(&w, target, sizeof(target));
	ddps_wbuf_bytes(&w, arp->target_ip, sizeof(arp->target_ip));
	return 0;
}

int ddps_ipoib_arp_decode(struct ddps_ipoib_arp *arp, const void *buf, size_t len)
{
	struct ddps_rbuf r = ddps_rbuf_init(buf, len);
	uint16_t hw = ddps_rbuf_u16(&r), proto = ddps_rbuf_u16(&r);
	uint8_t hw_len = ddps_rbuf_u8(&r), proto_len = ddps_rbuf_u8(&r);
	uint16_t op = ddps_rbuf_u16(&r);
	const uint8_t *sender = ddps_rbuf_take(&r, DDPS_IPOIB_LLADDR_LEN);
	const uint8_t *sender_ip = ddps_rbuf_take(&r, 4);
	const uint8_t *target = ddps_rbuf_take(&r, DDPS_IPOIB_LLADDR_LEN);
	const uint8_t *target_ip = ddps_rbuf_take(&r, 4);

	if (r.failed)
		return DDPS_E_TRUNCATED;
	if (hw != ARP_HW_INFINIBAND || proto != DDPS_IPOIB_TYPE_IPV4 ||
	    hw_len != DDPS_IPOIB_LLADDR_LEN || proto_len != 4)
		return DDPS_E_UNSUPPORTED;
	arp->op = op;
	ddps_ipoib_lladdr_decode(&arp->sender, sender, DDPS_IPOIB_LLADDR_LEN);
	memcpy(arp->sender_ip, sender_ip, 4);
	ddps_ipoib_lladdr_decode(&arp->target, target, DDPS_IPOIB_LLADDR_LEN);
	memcpy(arp->target_ip, target_ip, 4);
	return 0;
}

int ddps_ipoib_nd_encode(uint8_t out[DDPS_IPOIB_ND_LEN], uint8_t type,
			 const struct ddps_ipoib_lladdr *a)
{
	uint8_t lladdr[DDPS_IPOIB_LLADDR_LEN];
	struct ddps_wbuf w = ddps_wbuf_init(out, DDPS_IPOIB_ND_LEN);

	if ((type != DDPS_IPOIB_ND_SOURCE && type != DDPS_IPOIB_ND_TARGET) ||
	    ddps_ipoib_lladdr_encode(lladdr, a))
		return DDPS_E_INVAL;
	ddps_wbuf_u8(&w, type); /* [4391-9.3-1] */
	ddps_wbuf_u8(&w, DDPS_IPOIB_ND_LEN / ND_UNIT);
	ddps_wbuf_be(&w, 0, ND_PAD); /* [4391-9.3-2] before the address, not after it */
	ddps_wbuf_bytes(&w, lladdr, sizeof(lladdr));
	return 0;
}

int ddps_ipoib_nd_find(struct ddps_ipoib_lladdr *a, uint8_t type, const void *opts, size_t len)
{
	struct ddps_rbuf r = ddps_rbuf_init(opts, len);

	while (ddps_rbuf_left(&r)) {
		uint8_t got = ddps_rbuf_u8(&r);
		size_t size = (size_t)ddps_rbuf_u8(&r) * ND_UNIT;
		const uint8_t *body;

		if (r.failed)
			return DDPS_E_TRUNCATED;
		if (!size)
			return DDPS_E_PROTOCOL;
		body = ddps_rbuf_take(&r, size - 2);
		if (!body)
			return DDPS_E_TRUNCATED;
		if (got != type)
			continue;
		if (size != DDPS_IPOIB_ND_LEN)
			return DDPS_E_PROTOCOL;
		ddps_ipoib_lladdr_decode(a, body + ND_PAD, DDPS_IPOIB_LLADDR_LEN);
		return 1;
	}
	return 0;
}
