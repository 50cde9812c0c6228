/* SPDX-License-Identifier: BSD-2-Clause */
/* The sockets of a port whose packets are UDP's, and what becomes of a packet's addresses. */
#include <ddpsess/ib_udp.h>
#include "common/sized.h"
#include "ipoib_cm/ib/icrc.h"
#include "ipoib_cm/ib/node.h"
#include <arpa/inet.h>
#include <errno.h>
#include <ifaddrs.h>
#include <net/if.h>
#include <netinet/in.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <unistd.h>

#define LID_MASK 0xffu
#define BATCH	 32
#define ROUNDS	 4 /* batches of a socket in one turn */
#define BUFFER	 (4 << 20)
#define OVERHEAD 80 /* of IPv4, UDP and the longest InfiniBand headers: as other stacks have it */

/* X(name, meaning) */
#define WIRE_STATS(X)                                                                              \
	X(wire_tx, "packets sent")                                                                 \
	X(wire_rx, "packets received")                                                             \
	X(wire_tx_failed, "packets that the system did not send")                                  \
	X(wire_stranger, "packets dropped: from outside the subnet")                               \
	X(wire_icrc, "packets dropped for their ICRC")                                             \
	X(wire_bad, "packets dropped for their length or header")

struct group_tx {
	uint16_t mlid; /* 0: none */
	int fd;
};

struct ddps_ib_udp {
	struct ddps_ib_node *node;
	uint32_t ip, broadcast; /* host order */
	uint16_t udp_port;
	int unicast, multicast;
	bool full; /* a packet found no room */
	struct group_tx group[DDPS_SAC_GROUPS];
	struct {
#define DDPS_X(name, text) uint64_t name;
		WIRE_STATS(DDPS_X)
#undef DDPS_X
	} stats;
	struct mmsghdr msg[BATCH];
	struct iovec iov[BATCH];
	struct sockaddr_in from[BATCH];
	uint8_t buf[BATCH][DDPS_IB_PKT_MAX + 1]; /* one more: longer ones show */
};

static const struct ddps_ib_udp_config defaults = { .struct_size = sizeof(defaults),
						    .udp_port = DDPS_IB_UDP_PORT,
						    .pkey = 0xffff,
						    .scope = 2,
						    .mtu = 4,
						    .qkey = 0x0b1b,
						    .life = 18,
						    .max_qps = 512,
						    .tx_octets = 16u << 20,
						    .rx_octets = 16u << 20 };

DDPS_SIZED_NO_TAIL(ddps_ib_udp_config, see_user);
#define CONFIG DDPS_SIZED(ddps_ib_udp_config, sizeof(struct ddps_ib_udp_config))

void ddps_ib_udp_config_init_sized(struct ddps_ib_udp_config *cfg, size_t size)
{
	ddps_sized_init(cfg, size, &defaults, &CONFIG);
}

static uint32_t host_order(const uint8_t ip4[4])
{
	return (uint32_t)ip4[0] << 24 | (uint32_t)ip4[1] << 16 | (uint32_t)ip4[2] << 8 | ip4[3];
}

static struct sockaddr_in address(uint32_t ip, uint16_t port)
{
	return (struct sockaddr_in){ .sin_family = AF_INET,
				     .sin_addr.s_addr = htonl(ip),
				     .sin_port = htons(port) };
}

/*
 * A socket that sends identification 0, without which the ICRC cannot be known beforehand: it is
 * not connected and forbids fragments.  Return: -1 with errno.
 */
static int open_socket(uint32_t ip, uint16_t port)
{
	const int on = 1, no_fragments = IP_PMTUDISC_PROBE, room = BUFFER;
	struct sockaddr_in a = address(ip, port);
	int fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0), err;

	if (fd < 0)
		return -1;
	(void)setsockopt(fd, SOL_SOCKET, SO_NO_CHECK, &on, sizeof(on));
	/* beyond the system's limit only with the right to */
	if (setsockopt(fd, SOL_SOCKET, SO_RCVBUFFORCE, &room, sizeof(room)))
		(void)setsockopt(fd, SOL_SOCKET, SO_RCVBUF, &room, sizeof(room));
	if (setsockopt(fd, SOL_SOCKET, SO_SNDBUFFORCE, &room, sizeof(room)))
		(void)setsockopt(fd, SOL_SOCKET, SO_SNDBUF, &room, sizeof(room));
	if (!setsockopt(fd, IPPROTO_IP, IP_MTU_DISCOVER, &no_fragments, sizeof(no_fragments)) &&
	    !setsockopt(fd, SOL_SOCKET, SO_BROADCAST, &on, sizeof(on)) &&
	    !bind(fd, (struct sockaddr *)&a, sizeof(a)))
		return fd;
	err = errno;
	close(fd);
	errno = err;
	return -1;
}

/* Nodes of one machine may share a broadcast address, never their own. */
static int open_shared(uint32_t ip, uint16_t port)
{
	const int on = 1, room = BUFFER;
	struct sockaddr_in a = address(ip, port);
	int fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0), err;

	if (fd < 0)
		return -1;
	if (setsockopt(fd, SOL_SOCKET, SO_RCVBUFFORCE, &room, sizeof(room)))
		(void)setsockopt(fd, SOL_SOCKET, SO_RCVBUF, &room, sizeof(room));
	if (!setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof(on)) &&
	    !bind(fd, (struct sockaddr *)&a, sizeof(a)))
		return fd;
	err = errno;
	close(fd);
	errno = err;
	return -1;
}

/* ---- out ---- */

/* The socket whose port is the MLID.  Return: -1: there is none. */
static int group_socket(struct ddps_ib_udp *u, unsigned group, uint16_t mlid)
{
	struct group_tx *g = &u->group[group];

	if (g->mlid == mlid)
		return g->fd;
	if (g->mlid)
		close(g->fd);
	g->fd = open_socket(u->ip, mlid);
	g->mlid = g->fd < 0 ? 0 : mlid;
	return g->fd;
}

/* Return: whether there was room; what fails for another reason is lost. */
static bool put(struct ddps_ib_udp *u, int fd, struct sockaddr_in *to, const struct iovec *iov)
{
	const struct msghdr m = { .msg_name = to,
				  .msg_namelen = sizeof(*to),
				  .msg_iov = (struct iovec *)iov,
				  .msg_iovlen = 3 };

	/* an earlier ICMP error for another node may come out here: the second try sends */
	for (unsigned tries = 0; sendmsg(fd, &m, MSG_DONTWAIT) < 0; tries++) {
		if (errno == EAGAIN || errno == EWOULDBLOCK || errno == ENOBUFS) {
			u->full = true;
			return false;
		}
		if (tries) {
			u->stats.wire_tx_failed++;
			return true;
		}
	}
	u->stats.wire_tx++;
	return true;
}

static bool on_send(void *wire, uint16_t lid, unsigned group, struct ddps_ib_pkt *p)
{
	struct ddps_ib_udp *u = wire;
	bool mcast = lid >= DDPS_MLID_FIRST;
	uint8_t head[DDPS_IB_HEAD_MAX], tail[3 + DDPS_IB_ICRC_LEN] = { 0 };
	size_t head_len = ddps_ib_pkt_encode(head, p), tail_len = p->pad + DDPS_IB_ICRC_LEN;
	const struct ddps_ib_udp_hdr h = { .src = u->ip,
					   .dst = mcast ? u->broadcast : (u->ip & ~LID_MASK) | lid,
					   .sport = mcast ? lid : u->udp_port,
					   .dport = u->udp_port };
	struct iovec iov[3] = { { head, head_len },
				{ (void *)p->data, p->len },
				{ tail, tail_len } };
	struct sockaddr_in to = address(h.dst, u->udp_port);
	int fd = mcast ? group_socket(u, group, lid) : u->unicast;
	uint32_t crc = ddps_ib_icrc_start(&h, head_len + p->len + tail_len);
	uint8_t reserved = head[4];

	if (fd < 0) {
		u->stats.wire_tx_failed++;
		return true;
	}
	head[4] = 0xff;
	crc = ddps_ib_icrc_add(crc, head, head_len);
	head[4] = reserved;
	crc = ddps_ib_icrc_add(crc, p->data, p->len);
	ddps_ib_icrc_put(tail + p->pad, ddps_ib_icrc_add(crc, tail, p->pad));
	return put(u, fd, &to, iov);
}

/* ---- in ---- */

static void take(struct ddps_ib_udp *u, const struct sockaddr_in *from, bool mcast,
		 const uint8_t *buf, size_t len, uint64_t now)
{
	const struct ddps_ib_udp_hdr h = { .src = ntohl(from->sin_addr.s_addr),
					   .dst = mcast ? u->broadcast : u->ip,
					   .sport = ntohs(from->sin_port),
					   .dport = u->udp_port };
	uint16_t slid = h.src & LID_MASK;
	struct ddps_ib_pkt p;

	u->stats.wire_rx++;
	if ((h.src ^ u->ip) & ~LID_MASK || !slid)
		u->stats.wire_stranger++;
	else if (len > DDPS_IB_PKT_MAX || ddps_ib_pkt_decode(&p, buf, len) ||
		 (mcast && h.sport < DDPS_MLID_FIRST))
		u->stats.wire_bad++;
	else if (!ddps_ib_icrc_check(&h, buf, len))
		u->stats.wire_icrc++;
	else
		ddps_ib_node_rx(u->node, slid, mcast ? h.sport : 0, &p, now);
}

/* Return: whether there may be more. */
static bool read_socket(struct ddps_ib_udp *u, bool mcast, uint64_t now)
{
	for (unsigned round = 0; round < ROUNDS; round++) {
		int n;

		for (unsigned i = 0; i < BATCH; i++) {
			u->iov[i] = (struct iovec){ u->buf[i], sizeof(u->buf[i]) };
			u->msg[i].msg_hdr = (struct msghdr){ .msg_name = &u->from[i],
							     .msg_namelen = sizeof(u->from[i]),
							     .msg_iov = &u->iov[i],
							     .msg_iovlen = 1 };
		}
		n = recvmmsg(mcast ? u->multicast : u->unicast, u->msg, BATCH, MSG_DONTWAIT, NULL);
		for (int i = 0; i < n; i++)
			take(u, &u->from[i], mcast, u->buf[i], u->msg[i].msg_len, now);
		if (n < BATCH) /* an ICMP error about an earlier packet is no end */
			return n < 0 && errno != EAGAIN && errno != EWOULDBLOCK;
	}
	return true;
}

bool ddps_ib_udp_run(struct ddps_ib_udp *u, uint64_t now)
{
	bool more;

	ddps_ib_node_tick(u->node, now);
	if (u->full) {
		u->full = false;
		ddps_ib_node_pump(u->node, now);
	}
	more = read_socket(u, false, now);
	more |= read_socket(u, true, now);
	return more;
}

void ddps_ib_udp_fds(const struct ddps_ib_udp *u, struct pollfd fds[DDPS_IB_UDP_FDS])
{
	fds[0] = (struct pollfd){ .fd = u->unicast,
				  .events = (short)(POLLIN | (u->full ? POLLOUT : 0)) };
	fds[1] = (struct pollfd){ .fd = u->multicast, .events = POLLIN };
}

uint64_t ddps_ib_udp_deadline(const struct ddps_ib_udp *u)
{
	return ddps_ib_node_due(u->node);
}

/* ---- life ---- */

/* The MTU of the interface that has the address; 0: no interface has it. */
static unsigned network_mtu(uint32_t ip)
{
	struct ifaddrs *all = NULL;
	unsigned mtu = 0;

	if (getifaddrs(&all))
		return 0;
	for (const struct ifaddrs *i = all; i && !mtu; i = i->ifa_next) {
		const struct sockaddr_in *a = (const void *)i->ifa_addr, *m;
		struct ifreq r = { 0 };
		int fd;

		if (!a || a->sin_family != AF_INET)
			continue;
		m = (const void *)i->ifa_netmask;
		if (a->sin_addr.s_addr != htonl(ip) &&
		    !(i->ifa_flags & IFF_LOOPBACK && m &&
		      !((a->sin_addr.s_addr ^ htonl(ip)) & m->sin_addr.s_addr)))
			continue;
		snprintf(r.ifr_name, sizeof(r.ifr_name), "%s", i->ifa_name);
		fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
		if (fd >= 0 && !ioctl(fd, SIOCGIFMTU, &r))
			mtu = (unsigned)r.ifr_mtu;
		if (fd >= 0)
			close(fd);
	}
	freeifaddrs(all);
	return mtu;
}

/* The largest code of an InfiniBand MTU that the network carries; 0: none. */
static uint8_t mtu_code(unsigned mtu)
{
	uint8_t code = 0;

	while (code < 5 && (128u << (code + 1)) + OVERHEAD <= mtu)
		code++;
	return code;
}

static int open_sockets(struct ddps_ib_udp *u, char *why, size_t why_len)
{
	struct in_addr a;
	char text[INET_ADDRSTRLEN];
	int err;

	a.s_addr = htonl(u->ip);
	u->unicast = open_socket(u->ip, u->udp_port);
	if (u->unicast >= 0) {
		a.s_addr = htonl(u->broadcast);
		u->multicast = open_shared(u->broadcast, u->udp_port);
	}
	if (u->multicast >= 0)
		return 0;
	err = errno;
	inet_ntop(AF_INET, &a, text, sizeof(text));
	snprintf(why, why_len, "UDP on %s:%u: %s", text, u->udp_port, strerror(err));
	errno = err;
	return DDPS_E_SYSTEM;
}

static int open_node(struct ddps_ib_udp *u, const struct ddps_ib_udp_config *cfg, char *why,
		     size_t why_len)
{
	struct ddps_ib_node_config c = { .lid = u->ip & LID_MASK,
					 .sa_lid = cfg->sa_lid,
					 .qpn = cfg->qpn,
					 .pkey = cfg->pkey,
					 .scope = cfg->scope,
					 .mtu_max = mtu_code(network_mtu(u->ip)),
					 .mtu = cfg->mtu,
					 .life = (uint8_t)(cfg->life > 31 ? 32 : cfg->life),
					 .qkey = cfg->qkey,
					 .max_qps = cfg->max_qps,
					 .tx_octets = cfg->tx_octets,
					 .rx_octets = cfg->rx_octets,
					 .seed = cfg->seed,
					 .send = on_send,
					 .wire = u,
					 .up = cfg->up,
					 .see = cfg->see,
					 .see_user = cfg->see_user };
	int err;

	memcpy(c.gid, cfg->gid, sizeof(c.gid));
	if (!c.mtu_max) {
		snprintf(why, why_len, "the network of the address has an MTU below %u",
			 256 + OVERHEAD);
		return DDPS_E_INVAL;
	}
	if (c.mtu > c.mtu_max && c.mtu <= 5)
		c.mtu = c.mtu_max;
	err = ddps_ib_node_new(&u->node, &c);
	if (err)
		snprintf(why, why_len, "%s",
			 err == DDPS_E_NOMEM ? "out of memory"
					     : "a LID, queue pair, P_Key, MTU or limit that cannot "
					       "be");
	return err;
}

static void choose_broadcast(struct ddps_ib_udp *u, const struct ddps_ib_udp_config *cfg)
{
	u->broadcast = host_order(cfg->broadcast);
	if (!u->broadcast)
		u->broadcast = u->ip >> 24 == IN_LOOPBACKNET ? 0x7fffffff : u->ip | LID_MASK;
}

int ddps_ib_udp_new(struct ddps_ib_udp **out, const struct ddps_ib_udp_config *cfg, char *why,
		    size_t why_len)
{
	struct ddps_ib_udp_config mine = defaults;
	struct ddps_ib_udp *u;
	int err = ddps_sized_take(&mine, cfg, &CONFIG), keep;
	uint32_t ip = host_order(mine.ip4);

	if (err || !mine.up || !mine.udp_port || !(ip & LID_MASK) || (ip & LID_MASK) == LID_MASK) {
		snprintf(why, why_len, "an address that no node has, or a member that is not set");
		return err ? err : DDPS_E_INVAL;
	}
	u = calloc(1, sizeof(*u));
	if (!u) {
		snprintf(why, why_len, "out of memory");
		return DDPS_E_NOMEM;
	}
	u->unicast = u->multicast = -1;
	u->ip = ip;
	u->udp_port = mine.udp_port;
	choose_broadcast(u, &mine);
	err = open_sockets(u, why, why_len);
	if (!err)
		err = open_node(u, &mine, why, why_len);
	if (!err) {
		*out = u;
		return 0;
	}
	keep = errno;
	ddps_ib_udp_free(u);
	errno = keep;
	return err;
}

void ddps_ib_udp_free(struct ddps_ib_udp *u)
{
	if (!u)
		return;
	ddps_ib_node_free(u->node);
	if (u->unicast >= 0)
		close(u->unicast);
	if (u->multicast >= 0)
		close(u->multicast);
	for (unsigned i = 0; i < DDPS_SAC_GROUPS; i++)
		if (u->group[i].mlid)
			close(u->group[i].fd);
	free(u);
}

struct ddps_ipoib_port *ddps_ib_udp_port(struct ddps_ib_udp *u)
{
	return ddps_ib_node_port(u->node);
}

void ddps_ib_udp_user(struct ddps_ib_udp *u, void *user)
{
	ddps_ib_node_user(u->node, user);
}

uint16_t ddps_ib_udp_lid(const struct ddps_ib_udp *u)
{
	return u->ip & LID_MASK;
}

const char *ddps_ib_udp_counter(const struct ddps_ib_udp *u, unsigned i, uint64_t *value)
{
	unsigned k = 0;

#define DDPS_X(name, text)                                                                         \
	if (k++ == i) {                                                                            \
		*value = u->stats.name;                                                            \
		return #name;                                                                      \
	}
	WIRE_STATS(DDPS_X)
#undef DDPS_X
	return ddps_ib_node_counter(u->node, i - k, value);
}
