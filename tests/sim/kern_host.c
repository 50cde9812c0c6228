/* SPDX-License-Identifier: BSD-2-Clause */
/* What a program asks of its host that is no descriptor: interfaces. */
#include "sim/kern_in.h"
#include <ifaddrs.h>
#include <net/if.h>

static struct sockaddr_in own_addr;
static char eth0[] = "eth0";
static struct ifaddrs own_interface;

int __wrap_getifaddrs(struct ifaddrs **all);
int __wrap_getifaddrs(struct ifaddrs **all)
{
	own_addr = kern_addr(kern.host, 0);
	own_interface = (struct ifaddrs){ .ifa_name = eth0,
					  .ifa_flags = IFF_UP,
					  .ifa_addr = (struct sockaddr *)&own_addr };
	*all = &own_interface;
	return 0;
}

void __wrap_freeifaddrs(struct ifaddrs *all);
void __wrap_freeifaddrs(struct ifaddrs *all)
{
	(void)all;
}

unsigned __wrap_if_nametoindex(const char *name);
unsigned __wrap_if_nametoindex(const char *name)
{
	return strcmp(name, eth0) ? 0 : KERN_INTERFACE;
}
