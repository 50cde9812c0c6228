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

int tun_watch_open(struct tun_watch *w)
{
	struct sockaddr_nl a = { .nl_family = AF_NETLINK,
				 .nl_groups = RTMGRP_IPV4_IFADDR | RTMGRP_IPV6_IFADDR };
	int err;

	w->n = 0;
	w->again = false;
	w->fd = socket(AF_NETLINK, SOCK_RAW | SOCK_CLOEXEC | SOCK_NONBLOCK, NETLINK_ROUTE);
	if (w->fd < 0)
		return -1;
	w->listing = !bind(w->fd, (struct sockaddr *)&a, sizeof a) && !ask_for_all(w->fd);
	if (w->listing)
		return 0;
	err = errno;
	close(w->fd);
	w->fd = -1;
	errno = err;
	return -1;
}

void tun_watch_lost(struct tun_watch *w)
{
	w->again = w->listing; /* the kernel makes one list at a time */
	if (w->listing)
		return;
	for (unsigned i = 0; i < w->n; i++)
		w->at[i].seen = false;
	w->listing = !ask_for_all(w->fd);
}

/* Whether a message is about an address of that device, and which. */
static bool parse_address(const struct nlmsghdr *h, unsigned index, struct tun_addr *out)
{
	bool local = false, address = false;
	struct ifaddrmsg m;
	struct rtattr *a;
	unsigned left, need;

	if (h->nlmsg_len < NLMSG_LENGTH(sizeof m))
		return false;
	memcpy(&m, NLMSG_DATA(h), sizeof m);
	if (m.ifa_index != index || (m.ifa_family != AF_INET && m.ifa_family != AF_INET6))
		return false;
	*out = (struct tun_addr){ .family = m.ifa_family, .prefix = m.ifa_prefixlen };
	need = m.ifa_family == AF_INET ? 4 : 16;
	left = h->nlmsg_len - (unsigned)NLMSG_LENGTH(sizeof m);
	for (a = IFA_RTA(NLMSG_DATA(h)); RTA_OK(a, left); a = RTA_NEXT(a, left)) {
		if (RTA_PAYLOAD(a) < need)
			continue;
		if (a->rta_type == IFA_LOCAL)
			memcpy(out->addr, RTA_DATA(a), need);
		else if (a->rta_type == IFA_ADDRESS)
			memcpy(out->peer, RTA_DATA(a), need);
		local |= a->rta_type == IFA_LOCAL;
		address |= a->rta_type == IFA_ADDRESS;
	}
	if (!local) /* with a peer, IFA_ADDRESS is its address */
		memcpy(out->addr, out->peer, need);
	return local || address;
}

static bool is_one_address(const struct tun_addr *a, const struct tun_addr *b)
{
	return a->family == b->family && !memcmp(a->addr, b->addr, sizeof a->addr);
}

static struct tun_addr *find_tun_addr(struct tun_watch *w, const struct tun_addr *a)
{
	for (unsigned i = 0; i < w->n; i++)
		if (is_one_address(&w->at[i], a) && w->at[i].prefix == a->prefix &&
		    !memcmp(w->at[i].peer, a->peer, sizeof a->peer))
			return &w->at[i];
	return NULL;
}

static void note_new_addr(struct tun_watch *w, const struct tun_addr *a, tun_told_fn *told,
			  void *arg)
{
	struct tun_addr *known = find_tun_addr(w, a);

	if (!known && w->n < TUN_ADDRS) {
		known = &w->at[w->n++];
		*known = *a;
	}
	if (known)
		known->seen = true;
	told(arg, a->family, a->addr, a->prefix, true);
}

/* The device may have it still, with another prefix. */
static void note_gone_addr(struct tun_watch *w, const struct tun_addr *gone, tun_told_fn *told,
			   void *arg)
{
	const struct tun_addr a = *gone, *other = NULL;
	struct tun_addr *known = find_tun_addr(w, &a);

	if (known)
		*known = w->at[--w->n];
	for (unsigned i = 0; i < w->n; i++)
		if (is_one_address(&w->at[i], &a))
			other = &w->at[i];
	told(arg, a.family, a.addr, other ? other->prefix : a.prefix, other != NULL);
}

/* What was not in the list went while nobody was informed. */
static void end_address_list(struct tun_watch *w, tun_told_fn *told, void *arg)
{
	w->listing = false;
	if (w->again) {
		tun_watch_lost(w);
		return;
	}
	for (unsigned i = w->n; i-- > 0;)
		if (!w->at[i].seen)
			note_gone_addr(w, &w->at[i], told, arg);
}

/* Return: 0 or an errno. */
static int drop_address(unsigned index, int family, const uint8_t *addr, unsigned prefix)
{
	const size_t len = family == AF_INET6 ? 16 : 4;
	struct {
		struct nlmsghdr h;
		struct ifaddrmsg m;
		struct rtattr a;
		uint8_t addr[16];
	} q = { .h = { .nlmsg_len = (uint32_t)(sizeof q - sizeof q.addr + len),
		       .nlmsg_type = RTM_DELADDR,
		       .nlmsg_flags = NLM_F_REQUEST | NLM_F_ACK },
		.m = { .ifa_family = (uint8_t)family,
		       .ifa_prefixlen = (uint8_t)prefix,
		       .ifa_index = index },
		.a = { .rta_len = (uint16_t)RTA_LENGTH(len), .rta_type = IFA_LOCAL } };
	struct {
		struct nlmsghdr h;
		struct nlmsgerr e;
		uint8_t question[sizeof q];
	} answer = { .e.error = -EIO };
	int fd = socket(AF_NETLINK, SOCK_RAW | SOCK_CLOEXEC, NETLINK_ROUTE), err;

	if (fd < 0)
		return errno;
	memcpy(q.addr, addr, len);
	err = send(fd, &q, q.h.nlmsg_len, 0) < 0 || recv(fd, &answer, sizeof answer, 0) < 0
		      ? errno
		      : -answer.e.error;
	close(fd);
	return err;
}

int tun_watch_drop(const struct tun_watch *w, const char *name, int family, const uint8_t *addr)
{
	const unsigned index = if_nametoindex(name);
	int first = index ? 0 : errno;

	for (unsigned i = 0; index && i < w->n; i++) {
		int err;

		if (w->at[i].family != family ||
		    memcmp(w->at[i].addr, addr, family == AF_INET6 ? 16 : 4) != 0)
			continue;
		err = drop_address(index, family, addr, w->at[i].prefix);
		if (err != EADDRNOTAVAIL) /* gone already */
			first = first ? first : err;
	}
	errno = first;
	return first ? -1 : 0;
}

void tun_watch_read(struct tun_watch *w, const char *name, tun_told_fn *told, void *arg)
{
	_Alignas(struct nlmsghdr) uint8_t buf[BUFFER];
	const unsigned index = if_nametoindex(name);
	ssize_t n;

	while ((n = recv(w->fd, buf, sizeof buf, 0)) > 0) {
		unsigned left = (unsigned)n;

		for (struct nlmsghdr *h = (void *)buf; NLMSG_OK(h, left); h = NLMSG_NEXT(h, left)) {
			struct tun_addr a;

			w->again |= w->listing && h->nlmsg_flags & NLM_F_DUMP_INTR;
			if (h->nlmsg_type == RTM_NEWADDR && parse_address(h, index, &a))
				note_new_addr(w, &a, told, arg);
			else if (h->nlmsg_type == RTM_DELADDR && parse_address(h, index, &a))
				note_gone_addr(w, &a, told, arg);
			else if (h->nlmsg_type == NLMSG_DONE && w->listing)
				end_address_list(w, told, arg);
			else if (h->nlmsg_type == NLMSG_ERROR)
				w->listing = false; /* there is no list: the next loss asks again */
		}
	}
	if (n < 0 && errno == ENOBUFS)
		tun_watch_lost(w);
}
