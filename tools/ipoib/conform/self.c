/* SPDX-License-Identifier: BSD-2-Clause */
/* The target of --self: sessctl ipoib bridge as it ships, but what answers echoes is here, no kernel. */
#include "ipoib/conform/self_in.h"
#include "cli/sessctl.h"
#include "ipoib/bridge/ipoib_bridge.h"
#include "ipoib/ipoib.h"
#include <arpa/inet.h>
#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#define SUITE_LID  1
#define TARGET_LID 2
#define LIFE	   12 /* 17 ms: what waits for a timer does not wait long */
#define IP4	   20

static struct node {
	struct ddps_ipoib_port port; /* first: what the interface takes for its port */
	int who;
	struct bridge b;
	struct ddps_ipoib_port *real;
	struct ddps_ipoib_if *f;
	struct ddps_ipoib_up up;
	/* an echo request that comes in fragments */
	uint8_t whole[65536];
	size_t got, all;
	uint16_t id;
} node;

/* ---- what goes out and comes in ---- */

static int send_self_ud(struct ddps_ipoib_port *p, const struct ddps_ipoib_lladdr *to,
			const struct ddps_ipoib_path *path, const void *frame, size_t len)
{
	uint8_t copy[8192];

	(void)p;
	if (len > sizeof copy)
		return DDPS_E_TOO_LONG;
	memcpy(copy, frame, len);
	self_frame_out(node.who, copy, len);
	return node.real->ops->ud_send(node.real, to, path, copy, len);
}

static int send_self_mad(struct ddps_ipoib_port *p, ddps_cm_addr to,
			 const uint8_t mad[DDPS_CM_MAD_LEN])
{
	uint8_t copy[DDPS_CM_MAD_LEN];

	(void)p;
	memcpy(copy, mad, sizeof copy);
	self_mad_out(node.who, copy);
	return node.real->ops->mad_send(node.real, to, copy);
}

static int join_self_group(struct ddps_ipoib_port *p, const uint8_t mgid[DDPS_IPOIB_GID_LEN])
{
	(void)p;
	return node.real->ops->join(node.real, mgid);
}

static void leave_self_group(struct ddps_ipoib_port *p, const uint8_t mgid[DDPS_IPOIB_GID_LEN])
{
	(void)p;
	node.real->ops->leave(node.real, mgid);
}

static int resolve_self_path(struct ddps_ipoib_port *p, const uint8_t gid[DDPS_IPOIB_GID_LEN])
{
	(void)p;
	return node.real->ops->resolve(node.real, gid);
}

static int create_self_qp(struct ddps_ipoib_port *p, uint8_t transport, uint32_t rx_mtu,
			  uint32_t *qpn)
{
	(void)p;
	return node.real->ops->qp_create(node.real, transport, rx_mtu, qpn);
}

static int ready_self_qp(struct ddps_ipoib_port *p, uint32_t qpn, const struct ddps_ipoib_qp_to *to)
{
	(void)p;
	return node.real->ops->qp_ready(node.real, qpn, to);
}

static int send_self_qp(struct ddps_ipoib_port *p, uint32_t qpn, const void *frame, size_t len)
{
	(void)p;
	return node.real->ops->qp_send(node.real, qpn, frame, len);
}

static void stop_self_qp(struct ddps_ipoib_port *p, uint32_t qpn)
{
	(void)p;
	node.real->ops->qp_stop(node.real, qpn);
}

static void destroy_self_qp(struct ddps_ipoib_port *p, uint32_t qpn)
{
	(void)p;
	node.real->ops->qp_destroy(node.real, qpn);
}

static const struct ddps_ipoib_port_ops ops = { .struct_size = sizeof(ops),
						.ud_send = send_self_ud,
						.join = join_self_group,
						.leave = leave_self_group,
						.resolve = resolve_self_path,
						.mad_send = send_self_mad,
						.qp_create = create_self_qp,
						.qp_ready = ready_self_qp,
						.qp_send = send_self_qp,
						.qp_stop = stop_self_qp,
						.qp_destroy = destroy_self_qp };

static void take_self_mad(void *user, ddps_cm_addr from, const void *mad, size_t len, uint64_t now)
{
	uint8_t copy[DDPS_CM_MAD_LEN];

	if (len == sizeof copy) {
		memcpy(copy, mad, sizeof copy);
		self_mad_in(node.who, copy);
		mad = copy;
	}
	ddps_ipoib_if_up()->mad(user, from, mad, len, now);
}

/* ---- echoes ---- */

static uint16_t get_self_u16(const uint8_t *p)
{
	return (uint16_t)(p[0] << 8 | p[1]);
}

static void put_self_sum(uint8_t *at, const uint8_t *p, size_t len)
{
	uint32_t s = 0;

	at[0] = at[1] = 0;
	for (size_t i = 0; i < len; i++)
		s += i & 1 ? p[i] : (uint32_t)p[i] << 8;
	while (s >> 16)
		s = (s & 0xffff) + (s >> 16);
	at[0] = (uint8_t)(~s >> 8);
	at[1] = (uint8_t)~s;
}

static void answer_self_echo(size_t len)
{
	uint8_t *p = node.whole, src[4];

	if (len < IP4 + 8 || p[IP4] != 8)
		return;
	memcpy(src, p + 12, 4);
	memcpy(p + 12, p + 16, 4);
	memcpy(p + 16, src, 4);
	p[2] = (uint8_t)(len >> 8);
	p[3] = (uint8_t)len;
	p[6] = p[7] = 0;
	put_self_sum(p + 10, p, IP4);
	p[IP4] = 0;
	put_self_sum(p + IP4 + 2, p + IP4, len - IP4);
	(void)ddps_ipoib_if_send(node.f, p, len, clock_ns());
}

static void deliver_to_self(void *user, const void *packet, size_t len)
{
	const uint8_t *p = packet;
	size_t off;

	(void)user;
	if (len < IP4 || p[0] != 0x45 || p[9] != 1)
		return;
	off = (size_t)(get_self_u16(p + 6) & 0x1fff) * 8;
	if (off + len > sizeof node.whole)
		return;
	if (!off || get_self_u16(p + 4) != node.id) {
		node.id = get_self_u16(p + 4);
		node.got = node.all = 0;
	}
	if (!off)
		memcpy(node.whole, p, IP4);
	memcpy(node.whole + IP4 + off, p + IP4, len - IP4);
	node.got += len - IP4;
	if (!(get_self_u16(p + 6) & 0x2000))
		node.all = off + len - IP4;
	if (node.all && node.got == node.all)
		answer_self_echo(IP4 + node.all);
}

/* ---- the process ---- */

/* As its command line says it: nothing is set here that a user would not set. */
static bool configure_self(const struct ddps_conform_ipoib_options *o, char *why, size_t why_len)
{
	static const struct ipoib_command bridge = { { "ipoib bridge", "", "", I_BRIDGE, 0, 0 },
						     NULL };
	static struct ipoib_opts opts;
	static char udp[32], sa[16], gid[INET6_ADDRSTRLEN], ip[24], ip6[INET6_ADDRSTRLEN + 4];
	static char *argv[] = { "bridge", "--tun", "self", "--udp", udp,    "--sa", sa,
				"--gid",  gid,	   "--ip", ip,	    "--ip", ip6 };
	uint8_t own[16];

	snprintf(sa, sizeof sa, "%u.%u.%u.%u", o->ip4[0], o->ip4[1], o->ip4[2], o->ip4[3]);
	snprintf(udp, sizeof udp, "%u.%u.%u.%d:%u", o->ip4[0], o->ip4[1], o->ip4[2], TARGET_LID,
		 (unsigned)o->udp_port);
	memcpy(own, o->gid, sizeof own);
	own[15] = TARGET_LID;
	inet_ntop(AF_INET6, own, gid, sizeof gid);
	snprintf(ip, sizeof ip, "%u.%u.%u.%u/24", o->target[0], o->target[1], o->target[2],
		 o->target[3]);
	inet_ntop(AF_INET6, o->target6, ip6, sizeof ip6);
	strcat(ip6, "/64");
	node.b.o = &opts;
	return ipoib_opts_parse(&opts, &bridge, (int)(sizeof argv / sizeof *argv), argv, why,
				why_len) == OPTS_OK &&
	       !bridge_configure(&node.b, why, why_len);
}

static bool open_self_node(const struct ddps_conform_ipoib_options *o, char *why, size_t why_len)
{
	const struct ddps_ipoib_if_calls calls = { sizeof(calls), deliver_to_self, NULL, NULL };
	struct ipoib_port *port = &node.b.port;

	if (!configure_self(o, why, why_len))
		return false;
	node.up = *ddps_ipoib_if_up();
	node.up.mad = take_self_mad;
	port->udp_cfg.up = &node.up;
	if (ddps_ib_udp_new(&port->udp, &port->udp_cfg, why, why_len))
		return false;
	node.real = ipoib_port_port(port);
	node.port.ops = &ops;
	bridge_identify(&node.b);
	if (node.who == SELF_ILLUMOS)
		node.b.cfg.form = DDPS_IPOIB_SID_LINUX;
	node.b.cfg.probe_ns = NS_PER_S / 100; /* nobody else is on this link */
	if (ddps_ipoib_if_new(&node.f, &node.b.cfg, &node.port, &calls)) {
		snprintf(why, why_len, "the interface cannot be made");
		return false;
	}
	ipoib_port_user(port, node.f);
	return true;
}

static void serve_self(void)
{
	struct ipoib_port *p = &node.b.port;
	struct pollfd fds[IPOIB_PORT_FDS];
	bool more = ipoib_port_run(p, clock_ns());

	(void)ddps_ipoib_if_start(node.f, clock_ns());
	for (;;) {
		uint64_t now = clock_ns(), due = ddps_ipoib_if_deadline(node.f);
		uint64_t port = ipoib_port_deadline(p);

		due = port < due ? port : due;
		due = due > now ? due - now : 0;
		due = due > NS_PER_S ? NS_PER_S : due;
		ipoib_port_fds(p, fds);
		(void)poll(fds, IPOIB_PORT_FDS,
			   more ? 0 : (int)((due + NS_PER_MS - 1) / NS_PER_MS));
		now = clock_ns();
		more = ipoib_port_run(p, now);
		if (ddps_ipoib_if_deadline(node.f) <= now)
			ddps_ipoib_if_tick(node.f, now);
	}
}

void self_plan(struct ddps_conform_ipoib_options *o, unsigned n)
{
	uint32_t r = (uint32_t)getpid() * 2654435761u + n * 40503u;

	memcpy(o->ip4, (uint8_t[4]){ 127, (uint8_t)(r >> 8 | 1), (uint8_t)(r >> 16), SUITE_LID },
	       4);
	o->udp_port = (uint16_t)(20000 + (r >> 4) % 20000);
	memcpy(o->gid, (uint8_t[16]){ 0xfe, 0x80, [15] = SUITE_LID }, 16);
	memcpy(o->link_ip4, (uint8_t[4]){ 10, 99, 0, 100 }, 4);
	memcpy(o->target, (uint8_t[4]){ 10, 99, 0, TARGET_LID }, 4);
	memcpy(o->target6, (uint8_t[16]){ 0xfd, 0x99, [15] = TARGET_LID }, 16);
	o->life = LIFE;
	o->thorough = 1;
	o->seed = r;
}

pid_t self_start(const struct ddps_conform_ipoib_options *o, int who)
{
	pid_t parent = getpid(), pid;
	char why[300];

	fflush(NULL);
	pid = fork();
	if (pid)
		return pid;
	/* however the suite ends, this does, too */
	if (prctl(PR_SET_PDEATHSIG, SIGKILL) || getppid() != parent)
		_exit(1);
	signal(SIGINT, SIG_IGN); /* a terminal's: the suite decides */
	node.who = who;
	if (open_self_node(o, why, sizeof why))
		serve_self();
	fprintf(stderr, "sessctl ipoib conform: the node to be tested: %s\n", why);
	_exit(1);
}

int self_stop(pid_t pid)
{
	int alive = !waitpid(pid, NULL, WNOHANG);

	if (alive) {
		kill(pid, SIGKILL);
		while (waitpid(pid, NULL, 0) < 0 && errno == EINTR)
			;
	}
	return alive;
}
