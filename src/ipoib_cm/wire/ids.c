/* SPDX-License-Identifier: BSD-2-Clause */
/* What IPoIB puts into CM messages: the service ID and the private data (RFC 4755 3.5, 6). */
#include <ddpsess/ipoib_cm.h>
#include "common/bytes.h"
#include "common/text.h"
#include "ipoib_cm/wire/wire.h"

#define QPN_BITS 24

/* Octets 0 to 4: prefix, type 0 and reserved 0 [4755-3.5-1] [4755-3.5-2] [4755-3.5-3]. */
static const uint64_t form_base[] = {
	[DDPS_IPOIB_SID_RFC] = 0x0100000000000000,
	[DDPS_IPOIB_SID_LINUX] = 0x1000000000000000,
};

#define FORMS (sizeof(form_base) / sizeof(form_base[0]))

int ddps_ipoib_service_id(uint64_t *sid, enum ddps_ipoib_sid_form form, uint32_t qpn)
{
	if ((size_t)form >= FORMS || qpn > DDPS_IPOIB_QPN_MAX)
		return DDPS_E_INVAL;
	*sid = form_base[form] | qpn; /* [4755-3.5-4] */
	return 0;
}

int ddps_ipoib_service_id_split(uint64_t sid, enum ddps_ipoib_sid_form *form, uint32_t *qpn)
{
	for (size_t i = 0; i < FORMS; i++) {
		if (sid >> QPN_BITS != form_base[i] >> QPN_BITS)
			continue;
		*form = (enum ddps_ipoib_sid_form)i;
		*qpn = (uint32_t)sid & DDPS_IPOIB_QPN_MAX;
		return 0;
	}
	return DDPS_E_PROTOCOL;
}

void ddps_ipoib_service_id_print(char text[DDPS_IPOIB_SERVICE_ID_TEXT], uint64_t sid)
{
	uint8_t octets[8];
	struct ddps_wbuf w = ddps_wbuf_init(octets, sizeof(octets));

	ddps_wbuf_u64(&w, sid);
	memcpy(text, "0x", 2);
	ddps_text_hex(text + 2, octets, sizeof(octets));
	text[DDPS_IPOIB_SERVICE_ID_TEXT - 1] = '\0';
}

int ddps_ipoib_service_id_parse(uint64_t *sid, const char *text)
{
	uint64_t v = 0;
	size_t n;

	if (!strncmp(text, "0x", 2))
		text += 2;
	for (n = 0; text[n]; n++) {
		int digit = ddps_text_digit(text[n]);

		if (digit < 0 || n == 16)
			return DDPS_E_INVAL;
		v = v << 4 | (uint64_t)digit;
	}
	if (!n)
		return DDPS_E_INVAL;
	*sid = v;
	return 0;
}

int ddps_ipoib_priv_encode(uint8_t out[DDPS_IPOIB_PRIV_LEN], const struct ddps_ipoib_priv *p)
{
	struct ddps_wbuf w = ddps_wbuf_init(out, DDPS_IPOIB_PRIV_LEN);

	if (p->qpn > DDPS_IPOIB_QPN_MAX)
		return DDPS_E_INVAL;
	ddps_wbuf_u32(&w, p->qpn); /* its highest octet is the reserved one [4755-6-3] */
	ddps_wbuf_u32(&w, p->rx_mtu);
	return 0;
}

int ddps_ipoib_priv_decode(struct ddps_ipoib_priv *p, const void *buf, size_t len)
{
	struct ddps_rbuf r = ddps_rbuf_init(buf, len);
	uint32_t qpn = ddps_rbuf_u32(&r) & DDPS_IPOIB_QPN_MAX; /* [4755-6-4] */
	uint32_t rx_mtu = ddps_rbuf_u32(&r);

	if (r.failed)
		return DDPS_E_TRUNCATED;
	p->qpn = qpn;
	p->rx_mtu = rx_mtu;
	return 0;
}

void ddps_ipoib_priv_print(char text[DDPS_IPOIB_PRIV_TEXT], const struct ddps_ipoib_priv *p)
{
	uint8_t octets[DDPS_IPOIB_PRIV_LEN];
	struct ddps_wbuf w = ddps_wbuf_init(octets, sizeof(octets));

	ddps_wbuf_u32(&w, p->qpn & DDPS_IPOIB_QPN_MAX);
	ddps_wbuf_u32(&w, p->rx_mtu);
	ddps_text_hex(text, octets, sizeof(octets));
	text[DDPS_IPOIB_PRIV_TEXT - 1] = '\0';
}

int ddps_ipoib_priv_parse(struct ddps_ipoib_priv *p, const char *text)
{
	uint8_t octets[DDPS_IPOIB_PRIV_LEN];

	text = ddps_text_unhex(octets, sizeof(octets), text);
	if (!text || *text)
		return DDPS_E_INVAL;
	return ddps_ipoib_priv_decode(p, octets, sizeof(octets));
}

/* ---- multicast groups and the IPv6 interface identifier (RFC 4391 4, 8) ---- */

#define MGID_PREFIX	0xff
#define MGID_T		0x10 /* transient [4391-4-2] */
#define SIGNATURE_IPV4	0x401b
#define SIGNATURE_IPV6	0x601b
#define PKEY_FULL	0x8000
#define GROUP_LEN	10 /* octets of the group ID */
#define EUI64_UNIVERSAL 0x02

/* @low are the last @n octets of the group ID; what is before them is zero. */
static int write_mgid(uint8_t mgid[DDPS_IPOIB_GID_LEN], uint16_t signature, uint16_t pkey,
		      uint8_t scope, const uint8_t *low, size_t n)
{
	struct ddps_wbuf w = ddps_wbuf_init(mgid, DDPS_IPOIB_GID_LEN);

	if (scope > 15)
		return DDPS_E_INVAL;
	ddps_wbuf_u8(&w, MGID_PREFIX);
	ddps_wbuf_u8(&w, (uint8_t)(MGID_T | scope)); /* [4391-4-7] */
	ddps_wbuf_u16(&w, signature);
	ddps_wbuf_u16(&w, pkey | PKEY_FULL); /* [4391-4-5] [4391-4.1-1] */
	for (size_t i = n; i < GROUP_LEN; i++)
		ddps_wbuf_u8(&w, 0);
	ddps_wbuf_bytes(&w, low, n);
	return 0;
}

int ddps_ipoib_mgid_broadcast(uint8_t mgid[DDPS_IPOIB_GID_LEN], uint16_t pkey, uint8_t scope)
{
	/* All 32 bits are ones, where other IPv4 groups use 28 [4391-4-6]. */
	static const uint8_t ones[4] = { 0xff, 0xff, 0xff, 0xff };

	return write_mgid(mgid, SIGNATURE_IPV4, pkey, scope, ones, sizeof(ones));
}

int ddps_ipoib_mgid_ipv4(uint8_t mgid[DDPS_IPOIB_GID_LEN], const uint8_t ip[4], uint16_t pkey,
			 uint8_t scope)
{
	const uint8_t low[4] = { ip[0] & 0x0f, ip[1], ip[2], ip[3] };

	if (ip[0] == 255 && ip[1] == 255 && ip[2] == 255 && ip[3] == 255)
		return ddps_ipoib_mgid_broadcast(mgid, pkey, scope);
	if (ip[0] >> 4 != 0xe)
		return DDPS_E_INVAL;
	return write_mgid(mgid, SIGNATURE_IPV4, pkey, scope, low, sizeof(low));
}

int ddps_ipoib_mgid_ipv6(uint8_t mgid[DDPS_IPOIB_GID_LEN], const uint8_t ip[16], uint16_t pkey,
			 uint8_t scope)
{
	if (ip[0] != 0xff)
		return DDPS_E_INVAL;
	return write_mgid(mgid, SIGNATURE_IPV6, pkey, scope, ip + 16 - GROUP_LEN, GROUP_LEN);
}

void ddps_ipoib_iid(uint8_t iid[8], const uint8_t guid[8], bool modified)
{
	memmove(iid, guid, 8);
	if (!modified) /* [4391-8-3] [4391-8-4] */
		iid[0] ^= EUI64_UNIVERSAL;
}

/* ---- how large a packet may be, per connection and per destination (RFC 4755 5, 7.2) ---- */

uint32_t ddps_ipoib_mtu_ud(uint32_t link_mtu)
{
	return link_mtu < DDPS_IPOIB_ENCAP_LEN ? 0 : link_mtu - DDPS_IPOIB_ENCAP_LEN;
}

uint32_t ddps_ipoib_mtu_cm(uint32_t rx_local, uint32_t rx_remote)
{
	if (rx_local > DDPS_IPOIB_RX_MTU_MAX || rx_remote > DDPS_IPOIB_RX_MTU_MAX)
		return 0;
	/* [4755-5.1-4] [4755-5.1-5]; Receive MTU counts the encapsulation, so does a link's. */
	return ddps_ipoib_mtu_ud(rx_local < rx_remote ? rx_local : rx_remote);
}

uint32_t ddps_ipoib_dst_mtu(const struct ddps_ipoib_dst_mtu *d)
{
	return d->conn ? d->conn : d->ud;
}

enum ddps_ipoib_fit ddps_ipoib_mtu_fit(const struct ddps_ipoib_dst_mtu *d, size_t len,
				       bool may_split, bool multicast, uint32_t *mtu)
{
	*mtu = multicast ? d->ud : ddps_ipoib_dst_mtu(d); /* [4755-7-3] */
	if (len <= *mtu)
		return DDPS_IPOIB_FIT_SEND;
	if (may_split)
		return DDPS_IPOIB_FIT_FRAGMENT;
	return multicast ? DDPS_IPOIB_FIT_DROP : DDPS_IPOIB_FIT_TOO_BIG;
}
