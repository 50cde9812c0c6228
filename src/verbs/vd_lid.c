/* SPDX-License-Identifier: BSD-2-Clause */
#include "verbs/vd_lid.h"
#include "common/system/say.h"
#include "common/system/thread.h"
#include <arpa/inet.h>
#include <ifaddrs.h>
#include <string.h>

#define UNICAST_MAX 0xbfff /* above are groups (IBA 4.1.3) */

/* The bits of the host's part. */
static uint32_t find_host_bits(const struct sockaddr_in *own)
{
	struct ifaddrs *all = NULL;
	struct sockaddr_in a4, mask;
	uint32_t bits = 0;

	if (ddps_interfaces(&all))
		return 0;
	for (struct ifaddrs *i = all; i && !bits; i = i->ifa_next) {
		if (!i->ifa_addr || i->ifa_addr->sa_family != AF_INET || !i->ifa_netmask)
			continue;
		memcpy(&a4, i->ifa_addr, sizeof a4);
		memcpy(&mask, i->ifa_netmask, sizeof mask);
		if (a4.sin_addr.s_addr == own->sin_addr.s_addr)
			bits = ~ntohl(mask.sin_addr.s_addr);
	}
	freeifaddrs(all);
	return bits;
}

uint16_t vd_lid_of(const struct sockaddr_in *own)
{
	const uint32_t host = ntohl(own->sin_addr.s_addr) & find_host_bits(own);

	return host <= UNICAST_MAX ? (uint16_t)host : 0;
}

uint16_t vd_lid_of_port(const struct sockaddr_in *own)
{
	static bool said;
	const uint16_t lid = vd_lid_of(own);
	char text[INET_ADDRSTRLEN] = "?";

	if (!lid && !__atomic_exchange_n(&said, true, __ATOMIC_RELAXED)) {
		inet_ntop(AF_INET, &own->sin_addr, text, sizeof text);
		ddps_say("ddpsess: a port has no LID: %s %s%s; where a program takes a GID's index "
			 "(-g 0, -x 0), the GID will do\n",
			 find_host_bits(own) ? "the host's part of its address" : "its address",
			 text,
			 find_host_bits(own)
				 ? " is 0 or above 0xbfff"
				 : " is alone in its IP subnet (/32), which has no part "
				   "for hosts");
	}
	return lid;
}

bool vd_lid_address(const struct sockaddr_in *own, uint16_t lid, struct in_addr *to)
{
	const uint32_t bits = find_host_bits(own);

	if (!lid || lid > UNICAST_MAX || lid & ~bits)
		return false;
	to->s_addr = htonl((ntohl(own->sin_addr.s_addr) & ~bits) | lid);
	return true;
}
