/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef SESSCTL_DHCP_H
#define SESSCTL_DHCP_H
#include <stddef.h>
#include <stdint.h>

#define DHCP_NO_BROADCAST                                                                          \
	1u /* the answer would go to an address that the client does not have yet */
#define DHCP_NO_IDENTIFIER 2u /* a server cannot tell it from other clients */

/* What is wrong with an IP packet of this host, if it is a request of a DHCP client; 0: nothing. */
unsigned dhcp_faults(const uint8_t *packet, size_t len);

#endif
