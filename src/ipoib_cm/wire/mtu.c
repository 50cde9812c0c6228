/* SPDX-License-Identifier: BSD-2-Clause */
/* How large a packet may be, per connection and per destination (RFC 4755 5, 7.2). */
#include "ipoib_cm/wire/wire.h"
#include <ddpsess/ipoib_cm.h>

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
