/* SPDX-License-Identifier: BSD-2-Clause */
/* Which addresses a device has: those that it has now, and those that come and go (rtnetlink). */
#include "ipoib/bridge/tun.h"
#include <errno.h>
#include <linux/rtnetlink.h>
#include <net/if.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#define BUFFER 32768

static int ask_for_all(int fd)
{
	struct {
		struct nlmsghdr h;
		struct ifaddrmsg m;
	} q = { .h = { .nlmsg_len = sizeof q,
		       .nlmsg_type = RTM_GETADDR,
		       .nlmsg_flags = NLM_F_REQUEST | NLM_F_DUMP } };

	return send(fd, &q, sizeof q, 0) == sizeof q ? 0 : -1;
}

int tun_watch_open(void)
{
	struct sockaddr_nl a = { .nl_family = AF_NETLINK,
				 .nl_groups = RTMGRP_IPV4_IFADDR | RTMGRP_IPV6_IFADDR };
	int fd = socket(AF_NETLINK, SOCK_RAW | SOCK_CLOEXEC | SOCK_NONBLOCK, NETLINK_ROUTE), err;

	if (fd < 0)
		return -1;
	if (!bind(fd, (struct sockaddr *)&a, sizeof a) && !ask_for_all(fd))
		return fd;
	err = errno;
	close(fd);
	errno = err;
	return -1;
}

/* An address that a message is about; NULL: of another device, or none that is known. */
static const uint8_t *address_in(const struct nlmsghdr *h, unsigned index, struct ifaddrmsg *m)
{
	const uint8_t *local = NULL, *address = NULL;
	struct rtattr *a;
	unsigned left, need;

	if (h->nlmsg_len < NLMSG_LENGTH(sizeof *m))
		return NULL;
	memcpy(m, NLMSG_DATA(h), sizeof *m);
	if (m->ifa_index != index || (m->ifa_family != AF_INET && m->ifa_family != AF_INET6))
		return NULL;
	need = m->ifa_family == AF_INET ? 4 : 16;
	left = h->nlmsg_len - (unsigned)NLMSG_LENGTH(sizeof *m);
	for (a = IFA_RTA(NLMSG_DATA(h)); RTA_OK(a, left); a = RTA_NEXT(a, left)) {
		if (RTA_PAYLOAD(a) < need)
			continue;
		if (a->rta_type == IFA_LOCAL)
			local = RTA_DATA(a);
		else if (a->rta_type == IFA_ADDRESS)
			address = RTA_DATA(a);
	}
	return local ? local : address; /* with a peer, the latter is its address */
}

void tun_watch_read(int fd, const char *name,
		    void (*told)(void *arg, int family, const uint8_t *addr, unsigned prefix,
				 bool has),
		    void *arg)
{
	_Alignas(struct nlmsghdr) uint8_t buf[BUFFER];
	const unsigned index = if_nametoindex(name);
	ssize_t n;

	while ((n = recv(fd, buf, sizeof buf, 0)) > 0) {
		unsigned left = (unsigned)n;

		for (struct nlmsghdr *h = (void *)buf; NLMSG_OK(h, left); h = NLMSG_NEXT(h, left)) {
			struct ifaddrmsg m;
			const uint8_t *addr = NULL;

			if (h->nlmsg_type == RTM_NEWADDR || h->nlmsg_type == RTM_DELADDR)
				addr = address_in(h, index, &m);
			if (addr)
				told(arg, m.ifa_family, addr, m.ifa_prefixlen,
				     h->nlmsg_type == RTM_NEWADDR);
		}
	}
	if (n < 0 && errno == ENOBUFS) /* some were lost: those that there are */
		(void)ask_for_all(fd);
}
