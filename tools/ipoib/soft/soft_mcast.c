/* SPDX-License-Identifier: BSD-2-Clause */
/* IP multicast of the soft port: one address that carries the datagrams of all groups. */
#include "ipoib/soft/soft_in.h"
#include "cli/hostport.h"
#include <arpa/inet.h>
#include <errno.h>
#include <ifaddrs.h>
#include <net/if.h>
#include <netinet/in.h>
#include <stdio.h>
#include <string.h>

/* The interface that has @want; 0: none has. */
static unsigned interface_of(const struct in6_addr *want)
{
	struct ifaddrs *all = NULL;
	unsigned index = 0;

	if (getifaddrs(&all))
		return 0;
	for (const struct ifaddrs *i = all; i && !index; i = i->ifa_next) {
		const struct sockaddr_in6 *a = (const void *)i->ifa_addr;

		if (a && a->sin6_family == AF_INET6 && !memcmp(&a->sin6_addr, want, sizeof(*want)))
			index = if_nametoindex(i->ifa_name);
	}
	freeifaddrs(all);
	return index;
}

static int join4(struct ddps_soft *s)
{
	const struct sockaddr_in *own = (const void *)&s->cfg.udp;
	const struct sockaddr_in *group = (const void *)&s->cfg.group;
	struct ip_mreqn m = { .imr_multiaddr = group->sin_addr, .imr_address = own->sin_addr };

	/* what our own address is on decides, not the default route */
	if (own->sin_addr.s_addr && setsockopt(s->udp, IPPROTO_IP, IP_MULTICAST_IF, &m, sizeof(m)))
		return -1;
	return setsockopt(s->mcast, IPPROTO_IP, IP_ADD_MEMBERSHIP, &m, sizeof(m));
}

static int join6(struct ddps_soft *s)
{
	const struct sockaddr_in6 *own = (const void *)&s->cfg.udp;
	struct sockaddr_in6 *group = (void *)&s->cfg.group;
	struct ipv6_mreq m = { .ipv6mr_multiaddr = group->sin6_addr };
	int index;

	if (!group->sin6_scope_id)
		group->sin6_scope_id = interface_of(&own->sin6_addr);
	m.ipv6mr_interface = group->sin6_scope_id;
	index = (int)group->sin6_scope_id;
	if (index && setsockopt(s->udp, IPPROTO_IPV6, IPV6_MULTICAST_IF, &index, sizeof(index)))
		return -1;
	return setsockopt(s->mcast, IPPROTO_IPV6, IPV6_JOIN_GROUP, &m, sizeof(m));
}

static int open_socket(struct ddps_soft *s)
{
	const struct sockaddr_storage *a = &s->cfg.group;
	const int on = 1;

	s->mcast = socket(a->ss_family, SOCK_DGRAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	/* several nodes of one machine use the same address */
	if (s->mcast < 0 || setsockopt(s->mcast, SOL_SOCKET, SO_REUSEADDR, &on, sizeof(on)))
		return -1;
	if (a->ss_family == AF_INET6 ? join6(s) : join4(s))
		return -1;
	return bind(s->mcast, (const struct sockaddr *)a, ddps_soft_addr_len(a));
}

static bool is_multicast(const struct sockaddr_storage *a)
{
	const struct sockaddr_in6 *a6 = (const void *)a;
	const struct sockaddr_in *a4 = (const void *)a;

	return a->ss_family == AF_INET6 ? IN6_IS_ADDR_MULTICAST(&a6->sin6_addr)
					: IN_MULTICAST(ntohl(a4->sin_addr.s_addr));
}

int ddps_soft_mcast_open(struct ddps_soft *s, char *why, size_t why_len)
{
	const struct sockaddr_storage *a = &s->cfg.group;
	char text[HOSTPORT_TEXT];
	int err;

	if (!a->ss_family)
		return 0;
	hostport_print(text, a);
	if (a->ss_family != s->cfg.udp.ss_family || !is_multicast(a)) {
		snprintf(why, why_len, "%s is no IP multicast address of the family in use", text);
		return DDPS_E_INVAL;
	}
	if (!open_socket(s))
		return 0;
	err = errno;
	snprintf(why, why_len, "IP multicast to %s: %s", text, strerror(err));
	errno = err;
	return DDPS_E_SYSTEM;
}
