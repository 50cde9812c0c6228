/* SPDX-License-Identifier: BSD-2-Clause */
/* Requests of a DHCP client of this host, and what RFC 4390 wants of them on InfiniBand. */
#include "ipoib/bridge/dhcp.h"
#include "cli/octets.h"
#include <string.h>

#define PROTO_UDP   17
#define CLIENT_PORT 68
#define SERVER_PORT 67
#define REQUEST	    1
#define BROADCAST   0x8000
#define COOKIE	    0x63825363
#define OPTION_PAD  0
#define OPTION_ID   61
#define OPTION_END  255

static bool all_zero(const uint8_t *p, size_t n)
{
	while (n && !*p)
		p++, n--;
	return !n;
}

/* Whether options name the client: not by its hardware address, which is zero here. */
static bool has_client_identifier(struct octets_in *r)
{
	while (r->p != r->end && !r->failed) {
		uint8_t code = (uint8_t)octets_get(r, 1), len;
		const uint8_t *value;

		if (code == OPTION_PAD)
			continue;
		if (code == OPTION_END)
			return false;
		len = (uint8_t)octets_get(r, 1);
		value = octets_take(r, len);
		if (code == OPTION_ID && value)
			return len > 1 && !all_zero(value + 1, len - 1u);
	}
	return false;
}

unsigned dhcp_faults(const uint8_t *packet, size_t len)
{
	struct octets_in r = octets_from(packet, len);
	unsigned head, faults = 0;
	uint16_t flags;
	const uint8_t *client;

	if (len < 28 || packet[0] >> 4 != 4 || packet[9] != PROTO_UDP || packet[7] ||
	    packet[6] & 0x3f)
		return 0;
	head = (packet[0] & 15u) * 4;
	octets_take(&r, head);
	if (head < 20 || octets_get(&r, 2) != CLIENT_PORT || octets_get(&r, 2) != SERVER_PORT)
		return 0;
	octets_take(&r, 4);
	if (octets_get(&r, 1) != REQUEST)
		return 0;
	octets_take(&r, 9);
	flags = (uint16_t)octets_get(&r, 2);
	client = octets_take(&r, 4); /* its address, if it has one already */
	octets_take(&r, 220);
	if (octets_get(&r, 4) != COOKIE || r.failed)
		return 0;
	if (!(flags & BROADCAST) && all_zero(client, 4))
		faults |= DHCP_NO_BROADCAST;
	if (!has_client_identifier(&r))
		faults |= DHCP_NO_IDENTIFIER;
	return faults;
}
