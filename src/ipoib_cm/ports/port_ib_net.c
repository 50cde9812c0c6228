/* SPDX-License-Identifier: BSD-2-Clause */
/* What the system says of the interface that has a port's address. */
#include "ipoib_cm/ports/port_ib_net.h"
#include <arpa/inet.h>
#include <ifaddrs.h>
#include <netinet/in.h>
#include <stdio.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <unistd.h>

/* All of 127/8 is the loopback device's. */
static bool has_net_address(const struct ifaddrs *i, uint32_t ip)
{
	const struct sockaddr_in *a = (const void *)i->ifa_addr, *m = (const void *)i->ifa_netmask;

	if (!a || a->sin_family != AF_INET)
		return false;
	return a->sin_addr.s_addr == htonl(ip) ||
	       (i->ifa_flags & IFF_LOOPBACK && m &&
		!((a->sin_addr.s_addr ^ htonl(ip)) & m->sin_addr.s_addr));
}

static unsigned ask_net_mtu(const char *name)
{
	int fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
	struct ifreq r = { 0 };
	unsigned mtu = 0;

	snprintf(r.ifr_name, sizeof(r.ifr_name), "%s", name);
	if (fd >= 0 && !ioctl(fd, SIOCGIFMTU, &r))
		mtu = (unsigned)r.ifr_mtu;
	if (fd >= 0)
		close(fd);
	return mtu;
}

void ddps_ib_net_look(struct ib_net *net, uint32_t ip)
{
	const unsigned want = IFF_UP | IFF_RUNNING;
	struct ifaddrs *all = NULL;

	*net = (struct ib_net){ .known = !getifaddrs(&all) };
	for (const struct ifaddrs *i = net->known ? all : NULL; i && !net->found; i = i->ifa_next) {
		if (!has_net_address(i, ip))
			continue;
		net->found = true;
		net->up = (i->ifa_flags & want) == want;
		snprintf(net->name, sizeof(net->name), "%s", i->ifa_name);
		net->mtu = ask_net_mtu(net->name);
	}
	if (net->known)
		freeifaddrs(all);
}

void ddps_ib_net_why(const struct ib_net *net, uint32_t ip, char *why, size_t why_len)
{
	struct in_addr a = { htonl(ip) };
	char text[INET_ADDRSTRLEN];

	inet_ntop(AF_INET, &a, text, sizeof(text));
	*why = '\0';
	if (!net->found)
		snprintf(why, why_len,
			 "no network interface has the address %s any more; try: ip addr add",
			 text);
	else if (!net->up)
		snprintf(why, why_len,
			 "the network interface %s is down or has no carrier; try: ip link set %s "
			 "up, "
			 "and look at what it is connected to",
			 net->name, net->name);
	else if (!ddps_ib_net_code(net))
		snprintf(why, why_len,
			 "the network interface %s has an MTU of %u; try: 336 at least, 2200 for a "
			 "link of 2048",
			 net->name, net->mtu);
}

uint8_t ddps_ib_net_code(const struct ib_net *net)
{
	uint8_t code = 0;

	while (code < 5 && (128u << (code + 1)) + IB_NET_OVERHEAD <= net->mtu)
		code++;
	return code;
}

bool ddps_ib_net_loopback(void)
{
	const unsigned want = IFF_LOOPBACK | IFF_UP;
	struct ifaddrs *all = NULL;
	bool up = false;

	if (getifaddrs(&all))
		return true; /* not known: what is sent will tell */
	for (const struct ifaddrs *i = all; i && !up; i = i->ifa_next)
		up = (i->ifa_flags & want) == want;
	freeifaddrs(all);
	return up;
}
