/* SPDX-License-Identifier: BSD-2-Clause */
/* A port whose packets are UDP's: its network, its life; its sockets are in port_ib_wire.c. */
#include <ddpsess/ib_udp.h>
#include "common/sized.h"
#include "ipoib_cm/ib/node.h"
#include "ipoib_cm/ports/port_ib_net.h"
#include "ipoib_cm/ports/port_ib_wire.h"
#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>

#define LID_MASK 0xffu
#define LOOK_NS	 1000000000ull	/* so often the network below is looked at */
#define AGAIN_NS 60000000000ull /* so often the same is said */

struct ddps_ib_udp {
	struct ddps_ib_node *node;
	uint64_t now; /* of the last run */
	uint64_t look_at;
	uint64_t said_at; /* that packets were not sent, for this reason: */
	int said_err;
	bool off;	/* the network does not carry this link */
	bool sa_silent; /* that was said */
	uint16_t sa_lid;
	bool noticed;	  /* it was handed out */
	char notice[300]; /* "": none */
	struct ib_wire wire;
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

DDPS_SIZED_NO_TAIL(ddps_ib_udp_config, pkeys);
#define CONFIG DDPS_SIZED(ddps_ib_udp_config, sizeof(struct ddps_ib_udp_config))

void ddps_ib_udp_config_init_sized(struct ddps_ib_udp_config *cfg, size_t size)
{
	ddps_sized_init(cfg, size, &defaults, &CONFIG);
}

static uint32_t host_order(const uint8_t ip4[4])
{
	return (uint32_t)ip4[0] << 24 | (uint32_t)ip4[1] << 16 | (uint32_t)ip4[2] << 8 | ip4[3];
}

static bool send_ib_udp(void *user, uint16_t lid, unsigned group, struct ddps_ib_pkt *p)
{
	struct ddps_ib_udp *u = user;

	return ddps_ib_wire_send(&u->wire, lid, group, p);
}

static void forget_ib_udp_data(void *user, const uint8_t *data, size_t len)
{
	struct ddps_ib_udp *u = user;

	ddps_ib_wire_gone(&u->wire, data, len);
}

/* Taken at the join, as whoever has it would silence the node. */
static int hold_ib_udp_group(void *user, unsigned group, uint16_t mlid, char *why, size_t why_len)
{
	struct ddps_ib_udp *u = user;
	struct in_addr a = { htonl(u->wire.ip) };
	char text[INET_ADDRSTRLEN];
	int err;

	if (!ddps_ib_wire_hold(&u->wire, group, mlid))
		return 0;
	err = errno;
	inet_ntop(AF_INET, &a, text, sizeof(text));
	snprintf(why, why_len, "packets to it leave from UDP port %u of %s: %s; try: %s", mlid,
		 text, strerror(err),
		 err == EADDRINUSE
			 ? "end what has the port (ss -anup), and keep others away from it: "
			   "sysctl net.ipv4.ip_local_reserved_ports=49152-49405"
			 : "more descriptors (ulimit -n)");
	errno = err;
	return DDPS_E_SYSTEM;
}

static void take_ib_udp_packet(void *user, uint16_t slid, uint16_t mlid,
			       const struct ddps_ib_pkt *p, uint64_t now)
{
	struct ddps_ib_udp *u = user;

	ddps_ib_node_rx(u->node, slid, mlid, p, now);
}

/* A network that shrinks, or goes, under a link that is up: the link goes down, and comes back. */
static void look_at_network(struct ddps_ib_udp *u, uint64_t now)
{
	struct ib_net net;
	char why[300];

	u->look_at = now + LOOK_NS;
	ddps_ib_net_look(&net, u->wire.ip);
	if (!net.known)
		return;
	ddps_ib_net_why(&net, u->wire.ip, why, sizeof(why));
	u->off = ddps_ib_node_network(u->node, ddps_ib_net_code(&net), why, now);
}

/* Paths and connections that there are serve without it, so nothing else shows that it is gone. */
static void note_silent_sa(struct ddps_ib_udp *u)
{
	const bool silent = ddps_ib_node_unheard(u->node);
	struct in_addr a = { htonl((u->wire.ip & ~LID_MASK) | u->sa_lid) };
	char text[INET_ADDRSTRLEN];

	if (silent == u->sa_silent || u->off || (*u->notice && !u->noticed)) /* one at a time */
		return;
	u->sa_silent = silent;
	u->noticed = false;
	inet_ntop(AF_INET, &a, text, sizeof(text));
	snprintf(
		u->notice, sizeof(u->notice),
		silent ? "the subnet administration at %s does not answer any more: no new node is "
			 "reached; try: start it again"
		       : "the subnet administration at %s answers again",
		text);
}

/* What the system did not send, and the network explains nothing. */
static void note_unsent(struct ddps_ib_udp *u, uint64_t now)
{
	const int err = u->wire.failed_err;
	struct in_addr a = { htonl(u->wire.failed_to) };
	char text[INET_ADDRSTRLEN];

	u->wire.failed_err = 0;
	if (!err || (err == u->said_err && now - u->said_at < AGAIN_NS))
		return;
	look_at_network(u, now);
	if (u->off)
		return;
	u->said_err = err;
	u->said_at = now;
	inet_ntop(AF_INET, &a, text, sizeof(text));
	u->noticed = false;
	snprintf(u->notice, sizeof(u->notice),
		 "packets to %s, UDP port %u, are not sent: %s; try: %s", text, u->wire.udp_port,
		 strerror(err),
		 err == EMSGSIZE ? "a larger MTU of the network interface that leads there"
		 : err == EPERM || err == EACCES
			 ? "ip route get, and the rules of the firewall (nft list ruleset)"
			 : "ip route get, and ping to that address");
}

bool ddps_ib_udp_run(struct ddps_ib_udp *u, uint64_t now)
{
	bool more;

	if (u->wire.failed_err)
		note_unsent(u, now);
	if (u->look_at <= now) {
		look_at_network(u, now);
		note_silent_sa(u);
	}
	ddps_ib_node_tick(u->node, now);
	if (u->wire.full) {
		u->wire.full = false;
		if (ddps_ib_wire_flush(&u->wire))
			ddps_ib_node_pump(u->node, now);
	}
	more = ddps_ib_wire_read(&u->wire, now);
	u->now = now;
	return more;
}

/* What acknowledges goes behind what the program has sent meanwhile, and with it. */
void ddps_ib_udp_fds(struct ddps_ib_udp *u, struct pollfd fds[DDPS_IB_UDP_FDS])
{
	ddps_ib_node_pump(u->node, u->now);
	(void)ddps_ib_wire_flush(&u->wire);
	fds[0] = (struct pollfd){ .fd = u->wire.unicast,
				  .events = (short)(POLLIN | (u->wire.full ? POLLOUT : 0)) };
	fds[1] = (struct pollfd){ .fd = u->wire.multicast, .events = POLLIN };
}

bool ddps_ib_udp_busy(const struct ddps_ib_udp *u)
{
	return ddps_ib_node_busy(u->node);
}

uint64_t ddps_ib_udp_deadline(const struct ddps_ib_udp *u)
{
	uint64_t due = ddps_ib_node_due(u->node);

	return due < u->look_at ? due : u->look_at;
}

/* ---- life ---- */

static int open_sockets(struct ddps_ib_udp *u, char *why, size_t why_len)
{
	struct in_addr a;
	char text[INET_ADDRSTRLEN];
	uint32_t where;
	int err;

	if (!ddps_ib_wire_open(&u->wire, &where))
		return 0;
	err = errno;
	a.s_addr = htonl(where);
	inet_ntop(AF_INET, &a, text, sizeof(text));
	snprintf(why, why_len, "UDP on %s:%u: %s", text, u->wire.udp_port, strerror(err));
	errno = err;
	return DDPS_E_SYSTEM;
}

static int open_ib_udp_node(struct ddps_ib_udp *u, const struct ddps_ib_udp_config *cfg, char *why,
			    size_t why_len)
{
	struct ib_net net;
	struct ddps_ib_node_config c = { .lid = u->wire.ip & LID_MASK,
					 .sa_lid = cfg->sa_lid,
					 .qpn = cfg->qpn,
					 .pkey = cfg->pkey,
					 .scope = cfg->scope,
					 .mtu = cfg->mtu,
					 .life = (uint8_t)(cfg->life > 31 ? 32 : cfg->life),
					 .qkey = cfg->qkey,
					 .max_qps = cfg->max_qps,
					 .late_acks = true,
					 .tx_octets = cfg->tx_octets,
					 .rx_octets = cfg->rx_octets,
					 .seed = cfg->seed,
					 .send = send_ib_udp,
					 .gone = forget_ib_udp_data,
					 .hold = hold_ib_udp_group,
					 .wire = u,
					 .up = cfg->up,
					 .see = cfg->see,
					 .see_user = cfg->see_user };
	int err;

	ddps_ib_net_look(&net, u->wire.ip);
	c.mtu_max = ddps_ib_net_code(&net);
	memcpy(c.gid, cfg->gid, sizeof(c.gid));
	memcpy(c.pkeys, cfg->pkeys, sizeof(c.pkeys));
	if (c.sa_lid == c.lid && !ddps_ib_net_loopback()) {
		snprintf(why, why_len,
			 "the subnet administration is here, and would be asked through the "
			 "loopback "
			 "device, which is down");
		errno = ENETDOWN;
		return DDPS_E_SYSTEM;
	}
	if (!c.mtu_max) {
		snprintf(why, why_len, "the network of the address has an MTU below %d",
			 256 + IB_NET_OVERHEAD);
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
	u->wire.broadcast = host_order(cfg->broadcast);
	if (!u->wire.broadcast)
		u->wire.broadcast =
			u->wire.ip >> 24 == IN_LOOPBACKNET ? 0x7fffffff : u->wire.ip | LID_MASK;
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
	u->wire.unicast = u->wire.multicast = -1;
	u->wire.ip = ip;
	u->sa_lid = mine.sa_lid;
	u->wire.udp_port = mine.udp_port;
	u->wire.rx = take_ib_udp_packet;
	u->wire.user = u;
	choose_broadcast(u, &mine);
	err = open_sockets(u, why, why_len);
	if (!err)
		err = open_ib_udp_node(u, &mine, why, why_len);
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
	(void)ddps_ib_wire_flush(&u->wire); /* DREQs and farewells to groups */
	ddps_ib_node_free(u->node);
	ddps_ib_wire_close(&u->wire);
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

const char *ddps_ib_udp_why(const struct ddps_ib_udp *u)
{
	return ddps_ib_node_why(u->node);
}

const char *ddps_ib_udp_notice(struct ddps_ib_udp *u)
{
	if (*u->notice && !u->noticed) {
		u->noticed = true; /* and stays until the next call */
		return u->notice;
	}
	u->noticed = false;
	*u->notice = '\0';
	return ddps_ib_node_notice(u->node);
}

uint16_t ddps_ib_udp_lid(const struct ddps_ib_udp *u)
{
	return u->wire.ip & LID_MASK;
}

const char *ddps_ib_udp_counter(const struct ddps_ib_udp *u, unsigned i, uint64_t *value)
{
	unsigned k = 0;

#define DDPS_X(name, text)                                                                         \
	if (k++ == i) {                                                                            \
		*value = u->wire.stats.name;                                                       \
		return #name;                                                                      \
	}
	IB_WIRE_STATS(DDPS_X)
#undef DDPS_X
	return ddps_ib_node_counter(u->node, i - k, value);
}
