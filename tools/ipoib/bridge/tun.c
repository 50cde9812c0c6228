/* SPDX-License-Identifier: BSD-2-Clause */
/* A TUN device: made, addressed and set up by ioctl. */
#include "ipoib/bridge/tun.h"
#include "ipoib/bridge/offload.h"
#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/if.h>
#include <linux/if_tun.h>
#include <linux/ipv6.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <unistd.h>

static void fill_ifreq(struct ifreq *r, const char *name)
{
	memset(r, 0, sizeof *r);
	snprintf(r->ifr_name, sizeof r->ifr_name, "%s", name);
}

static int report_tun_error(const char *name, const char *what, char *why, size_t why_len)
{
	int err = errno;

	snprintf(why, why_len, "%s: %s: %s", name, what, strerror(err));
	errno = err;
	return -1;
}

/* One ioctl on a socket of @family. */
static int call_tun_ioctl(int family, unsigned long cmd, void *arg)
{
	int fd = socket(family, SOCK_DGRAM | SOCK_CLOEXEC, 0), res, saved;

	if (fd < 0)
		return -1;
	res = ioctl(fd, cmd, arg);
	saved = errno;
	close(fd);
	errno = saved;
	return res;
}

static int close_tun(int fd)
{
	int err = errno;

	close(fd);
	errno = err;
	return -1;
}

int tun_open(const char *name, unsigned mtu, char *why, size_t why_len)
{
	int fd = open("/dev/net/tun", O_RDWR | O_NONBLOCK | O_CLOEXEC), header = OFFLOAD_HDR;
	struct ifreq r;

	if (fd < 0)
		return report_tun_error("/dev/net/tun", "opening it", why, why_len);
	fill_ifreq(&r, name);
	r.ifr_flags = IFF_TUN | IFF_NO_PI | IFF_VNET_HDR;
	if (ioctl(fd, TUNSETIFF, &r) || ioctl(fd, TUNSETVNETHDRSZ, &header)) {
		report_tun_error(name, "making the device", why, why_len);
		return close_tun(fd);
	}
	/* if the kernel does not know them, it cuts and adds up by itself */
	(void)ioctl(fd, TUNSETOFFLOAD, TUN_F_CSUM | TUN_F_TSO4 | TUN_F_TSO6);
	return tun_mtu(name, mtu, why, why_len) ? close_tun(fd) : fd;
}

int tun_mtu(const char *name, unsigned mtu, char *why, size_t why_len)
{
	struct ifreq r;

	fill_ifreq(&r, name);
	r.ifr_mtu = (int)mtu;
	if (!call_tun_ioctl(AF_INET, SIOCSIFMTU, &r))
		return 0;
	report_tun_error(name, "setting the MTU", why, why_len);
	return -1;
}

static int address4(const char *name, const uint8_t *addr, unsigned prefix)
{
	struct sockaddr_in in = { .sin_family = AF_INET };
	struct ifreq r;

	fill_ifreq(&r, name);
	memcpy(&in.sin_addr, addr, sizeof in.sin_addr);
	memcpy(&r.ifr_addr, &in, sizeof in);
	if (call_tun_ioctl(AF_INET, SIOCSIFADDR, &r))
		return -1;
	in.sin_addr.s_addr = htonl(prefix ? UINT32_MAX << (32 - prefix) : 0);
	memcpy(&r.ifr_netmask, &in, sizeof in);
	return call_tun_ioctl(AF_INET, SIOCSIFNETMASK, &r);
}

static int address6(const char *name, const uint8_t *addr, unsigned prefix)
{
	struct in6_ifreq r6 = { .ifr6_prefixlen = prefix };
	struct ifreq r;

	fill_ifreq(&r, name);
	if (call_tun_ioctl(AF_INET6, SIOCGIFINDEX, &r))
		return -1;
	r6.ifr6_ifindex = r.ifr_ifindex;
	memcpy(&r6.ifr6_addr, addr, sizeof r6.ifr6_addr);
	return call_tun_ioctl(AF_INET6, SIOCSIFADDR, &r6);
}

int tun_address(const char *name, int family, const uint8_t *addr, unsigned prefix, char *why,
		size_t why_len)
{
	bool v6 = family == AF_INET6;

	if (v6 ? address6(name, addr, prefix) : address4(name, addr, prefix))
		return report_tun_error(name,
					v6 ? "adding the IPv6 address" : "adding the IPv4 address",
					why, why_len);
	return 0;
}

int tun_up(const char *name, char *why, size_t why_len)
{
	struct ifreq r;

	fill_ifreq(&r, name);
	if (call_tun_ioctl(AF_INET, SIOCGIFFLAGS, &r))
		return report_tun_error(name, "reading its flags", why, why_len);
	r.ifr_flags = (short)(r.ifr_flags | IFF_UP);
	if (call_tun_ioctl(AF_INET, SIOCSIFFLAGS, &r))
		return report_tun_error(name, "setting it up", why, why_len);
	return 0;
}
