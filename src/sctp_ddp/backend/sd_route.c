/* SPDX-License-Identifier: BSD-2-Clause */
/* What the local link takes on the way to a peer. */
#include "sctp_ddp/backend/sd_route.h"
#include "common/bytes.h"
#include <linux/rtnetlink.h>
#include <net/if.h>
#include <netinet/in.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <unistd.h>

#define ANSWER_LEN 4096

struct request {
	struct nlmsghdr n;
	struct rtmsg r;
	struct rtattr dst;
	uint8_t addr[16];
};

/* Returns the address's length. */
static size_t put_destination(const struct sockaddr_storage *to, uint8_t *addr)
{
	struct sockaddr_in6 a6;
	struct sockaddr_in a4;

	if (to->ss_family == AF_INET6) {
		memcpy(&a6, to, sizeof a6);
		memcpy(addr, &a6.sin6_addr, sizeof a6.sin6_addr);
		return sizeof a6.sin6_addr;
	}
	memcpy(&a4, to, sizeof a4);
	memcpy(addr, &a4.sin_addr, sizeof a4.sin_addr);
	return sizeof a4.sin_addr;
}

static bool ask_route(int fd, const struct sockaddr_storage *to)
{
	struct request q = { .n = { .nlmsg_type = RTM_GETROUTE, .nlmsg_flags = NLM_F_REQUEST } };
	size_t len = put_destination(to, q.addr);

	q.r.rtm_family = (unsigned char)to->ss_family;
	q.r.rtm_dst_len = (unsigned char)(len * 8);
	/* The route as it was configured, without what ICMP said of it. */
	q.r.rtm_flags = RTM_F_FIB_MATCH;
	q.dst = (struct rtattr){ .rta_type = RTA_DST, .rta_len = (unsigned short)RTA_LENGTH(len) };
	q.n.nlmsg_len = (unsigned)(NLMSG_LENGTH(sizeof q.r) + RTA_LENGTH(len));
	return send(fd, &q, q.n.nlmsg_len, 0) == (ssize_t)q.n.nlmsg_len;
}

/* The next of the attributes from @r on, its payload in @body. */
static bool next_rtattr(struct ddps_rbuf *r, struct rtattr *a, struct ddps_rbuf *body)
{
	const uint8_t *at = ddps_rbuf_take(r, sizeof *a);

	if (!at)
		return false;
	memcpy(a, at, sizeof *a);
	if (a->rta_len < sizeof *a || a->rta_len - sizeof *a > ddps_rbuf_left(r))
		return false;
	at = ddps_rbuf_take(r, a->rta_len - sizeof *a);
	*body = ddps_rbuf_init(at, a->rta_len - sizeof *a);
	ddps_rbuf_take(r,
		       -(size_t)a->rta_len % 4 < ddps_rbuf_left(r) ? -(size_t)a->rta_len % 4 : 0);
	return true;
}

/* In host order. */
static uint32_t u32_of(struct ddps_rbuf *r)
{
	const uint8_t *at = ddps_rbuf_take(r, sizeof(uint32_t));
	uint32_t v = 0;

	if (at)
		memcpy(&v, at, sizeof v);
	return v;
}

static uint32_t metric_mtu(struct ddps_rbuf *metrics)
{
	struct ddps_rbuf body;
	struct rtattr a;

	while (next_rtattr(metrics, &a, &body))
		if (a.rta_type == RTAX_MTU)
			return u32_of(&body);
	return 0;
}

static uint32_t device_mtu(void *user, uint32_t index)
{
	struct ifreq r = { 0 };

	if (!if_indextoname(index, r.ifr_name) || ioctl(*(int *)user, SIOCGIFMTU, &r) < 0)
		return 0;
	return (uint32_t)r.ifr_mtu;
}

uint32_t ddps_sd_route_read(const uint8_t *buf, size_t len,
			    uint32_t (*device)(void *user, uint32_t index), void *user)
{
	struct ddps_rbuf attrs, body;
	uint32_t dev = 0, metric = 0;
	struct nlmsghdr n;
	struct rtattr a;

	if (len < NLMSG_LENGTH(sizeof(struct rtmsg)))
		return 0;
	memcpy(&n, buf, sizeof n);
	if (n.nlmsg_type != RTM_NEWROUTE || n.nlmsg_len > len ||
	    n.nlmsg_len < NLMSG_LENGTH(sizeof(struct rtmsg)))
		return 0;
	attrs = ddps_rbuf_init(buf + NLMSG_LENGTH(sizeof(struct rtmsg)),
			       n.nlmsg_len - NLMSG_LENGTH(sizeof(struct rtmsg)));
	while (next_rtattr(&attrs, &a, &body)) {
		if (a.rta_type == RTA_OIF)
			dev = device(user, u32_of(&body));
		else if (a.rta_type == RTA_METRICS)
			metric = metric_mtu(&body);
	}
	return metric && (!dev || metric < dev) ? metric : dev;
}

uint32_t ddps_sd_route_mtu(const struct sockaddr_storage *to)
{
	_Alignas(struct nlmsghdr) uint8_t buf[ANSWER_LEN];
	int fd = socket(AF_NETLINK, SOCK_RAW | SOCK_CLOEXEC, NETLINK_ROUTE);
	uint32_t mtu = 0;
	ssize_t n;

	if (fd < 0)
		return 0;
	/* The kernel answers inside of send(). */
	if (ask_route(fd, to) && (n = recv(fd, buf, sizeof buf, MSG_DONTWAIT)) > 0)
		mtu = ddps_sd_route_read(buf, (size_t)n, device_mtu, &fd);
	close(fd);
	return mtu;
}
