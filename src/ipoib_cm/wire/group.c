/* SPDX-License-Identifier: BSD-2-Clause */
/* Multicast groups and the IPv6 interface identifier (RFC 4391 4, 8). */
#include <ddpsess/ipoib_cm.h>
#include "common/bytes.h"
#include "ipoib_cm/wire/wire.h"

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
