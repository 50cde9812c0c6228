/* SPDX-License-Identifier: BSD-2-Clause */
/* Sockets, and which part of the peer a packet is for. */
#include "conform/ipoib/peer.h"
#include "conform/peer/inside.h"
#include <errno.h>
#include <poll.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define NS_PER_MS 1000000ull
#define IP_EXTRA  28u
#define ROOM	  64u /* zeros behind an event: headers may be read before lengths */

uint64_t ci_limit(struct ci *ci, enum ci_part part)
{
	return ci_part(ci, part, 1);
}

uint64_t ci_part(struct ci *ci, enum ci_part part, unsigned n)
{
	uint64_t now = cf_now(), ms = cf_patience_ms(&ci->patience, part, ci->plan.limit_ms);

	ci->wait.part = part;
	ci->wait.begin = now;
	ci->wait.until = now + ms * NS_PER_MS / n;
	return ci->wait.until;
}

void ci_due(struct ci *ci, const char *fmt, ...)
{
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(ci->due, sizeof ci->due, fmt, ap);
	va_end(ap);
}

void ci_got(struct ci *ci)
{
	ci->due[0] = 0;
}

void ci_heard(struct ci *ci, enum ci_part part)
{
	/* how long ARP takes; other answers may have to wait for a timer of the target's */
	bool link = part == CI_PART_LINK && ci->wait.part == part;

	ci_got(ci);
	cf_patience_heard(&ci->patience, part, link ? cf_now() - ci->wait.begin : 0);
	if (part == CI_PART_LINK)
		ci->patience.silent[part] = 0;
}

/*
 * A target that does not answer ARP any more is down, though it was up.  Of the rest, what never came
 * is as unlikely to come as the next thing that never came.
 */
void ci_silent(struct ci *ci)
{
	bool over = ci->wait.until && cf_now() >= ci->wait.until;

	if (over)
		ci->stop = ci->wait.part == CI_PART_LINK ? DDPS_CONFORM_STOP_SILENT_SETUP
							 : DDPS_CONFORM_STOP_SILENT_SESSION;
	if (over && ci->wait.part == CI_PART_LINK) {
		ci->patience.heard[CI_PART_LINK] = false;
		cf_patience_silent(&ci->patience, CI_PART_LINK);
	}
	for (unsigned i = CI_PART_LINK + 1; over && ci->wait.part != CI_PART_LINK && i < CI_PARTS;
	     i++)
		cf_patience_silent(&ci->patience, i);
}

void ci_fail(struct ci *ci, const char *fmt, ...)
{
	va_list ap;

	va_start(ap, fmt);
	cf_left_why(&ci->left, false, fmt, ap);
	va_end(ap);
	longjmp(ci->left.to, 1);
}

void ci_skip(struct ci *ci, const char *fmt, ...)
{
	va_list ap;

	va_start(ap, fmt);
	cf_left_why(&ci->left, true, fmt, ap);
	va_end(ap);
	longjmp(ci->left.to, 1);
}

void ci_lint(struct ci *ci, enum ci_lint what, const char *fmt, ...)
{
	va_list ap;

	if (ci->lint[what][0])
		return;
	va_start(ap, fmt);
	vsnprintf(ci->lint[what], sizeof ci->lint[what], fmt, ap);
	va_end(ap);
}

/* ---- sockets ---- */

/* IP identification 0 and no fragments: not connected, path MTU discovery "probe". */
static int udp(uint32_t ip, uint16_t port, bool shared)
{
	const int on = 1, probe = IP_PMTUDISC_PROBE, room = 4 << 20;
	struct sockaddr_in a = { .sin_family = AF_INET,
				 .sin_addr.s_addr = htonl(ip),
				 .sin_port = htons(port) };
	int fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);

	if (fd < 0)
		return -1;
	if (setsockopt(fd, SOL_SOCKET, SO_RCVBUFFORCE, &room, sizeof room))
		(void)setsockopt(fd, SOL_SOCKET, SO_RCVBUF, &room, sizeof room);
	(void)setsockopt(fd, SOL_SOCKET, SO_NO_CHECK, &on, sizeof on);
	if (!setsockopt(fd, IPPROTO_IP, IP_MTU_DISCOVER, &probe, sizeof probe) &&
	    !setsockopt(fd, SOL_SOCKET, SO_BROADCAST, &on, sizeof on) &&
	    (!shared || !setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof on)) &&
	    !bind(fd, (struct sockaddr *)&a, sizeof a))
		return fd;
	close(fd);
	return -1;
}

int ci_open(struct ci *ci, char *why, size_t why_len)
{
	const struct ci_plan *p = &ci->plan;

	if (ci->fab.used)
		return 0;
	ci->unicast = udp(p->wire_ip, p->port, false);
	ci->multicast = ci->unicast < 0 ? -1 : udp(p->broadcast, p->port, true);
	ci->lid = p->wire_ip & 0xff;
	ci->sa = p->sa_lid == ci->lid;
	if (ci->multicast >= 0)
		return 0;
	snprintf(why, why_len, "UDP port %u on %u.%u.%u.%u and its broadcast address: %s", p->port,
		 p->wire_ip >> 24, p->wire_ip >> 16 & 255, p->wire_ip >> 8 & 255, p->wire_ip & 255,
		 strerror(errno));
	return -1;
}

void ci_close(struct ci *ci)
{
	ci_forget(ci);
	if (ci->fab.used)
		ci_fab_close(ci);
	for (unsigned i = 0; i < CI_GROUPS; i++)
		if (ci->group[i].mlid && ci->group[i].fd >= 0)
			close(ci->group[i].fd);
	for (unsigned i = 0; i < CI_QPS; i++)
		free(ci->qp[i].in);
	if (ci->unicast >= 0)
		close(ci->unicast);
	if (ci->multicast >= 0)
		close(ci->multicast);
}

struct ci_group *ci_group(struct ci *ci, const uint8_t *mgid)
{
	for (unsigned i = 0; i < CI_GROUPS; i++)
		if (ci->group[i].mlid && !memcmp(ci->group[i].mgid, mgid, CI_GID))
			return &ci->group[i];
	return NULL;
}

struct ci_group *ci_group_make(struct ci *ci, const uint8_t *mgid, uint16_t mlid)
{
	for (unsigned i = 0; i < CI_GROUPS; i++) {
		struct ci_group *g = &ci->group[i];

		if (g->mlid)
			continue;
		*g = (struct ci_group){ .mlid = mlid ? mlid : (uint16_t)(CI_MLID + i), .fd = -1 };
		memcpy(g->mgid, mgid, CI_GID);
		return g;
	}
	return NULL;
}

/* ---- out ---- */

static void record_datagram(struct ci *ci, bool by_target, const uint8_t *b, size_t len,
			    const struct ci_addr *a)
{
	uint8_t ip[IP_EXTRA + CI_PKT_MAX];

	if (ci->trace)
		cf_trace_ib(ci->trace, by_target, ip, ci_pkt_ip(ip, b, len, a));
}

static void send_datagram(struct ci *ci, int fd, const uint8_t *b, size_t len,
			  const struct ci_addr *a)
{
	struct sockaddr_in to = { .sin_family = AF_INET,
				  .sin_addr.s_addr = htonl(a->dst),
				  .sin_port = htons(a->dport) };

	record_datagram(ci, false, b, len, a);
	for (unsigned tries = 0; tries < 100; tries++) {
		struct pollfd p = { .fd = fd, .events = POLLOUT };

		if (sendto(fd, b, len, 0, (struct sockaddr *)&to, sizeof to) >= 0)
			return;
		if (errno == EAGAIN || errno == ENOBUFS)
			(void)poll(&p, 1, 10);
	}
}

static struct ci_addr get_plan_address(const struct ci *ci, uint32_t lid)
{
	bool group = lid >= CI_MLID;

	return (struct ci_addr){ .src = ci->plan.wire_ip,
				 .dst = group ? ci->plan.broadcast
					      : (ci->plan.wire_ip & ~0xffu) | lid,
				 .sport = group ? (uint16_t)lid : ci->plan.port,
				 .dport = ci->plan.port };
}

void ci_packet(struct ci *ci, uint32_t lid, struct ci_pkt *p)
{
	struct ci_addr a = get_plan_address(ci, lid);
	uint8_t b[CI_PKT_MAX];
	int fd = ci->unicast;

	CI_CHECK(ci, !ci->fab.used, "this case needs packets, and does not say so");
	for (unsigned i = 0; i < CI_GROUPS && lid >= CI_MLID; i++) {
		struct ci_group *g = &ci->group[i];

		if (g->mlid != lid)
			continue;
		if (g->fd < 0)
			g->fd = udp(ci->plan.wire_ip, g->mlid, false);
		fd = g->fd;
	}
	send_datagram(ci, fd, b, ci_pkt_build(b, p, &a), &a);
}

/* ---- events ---- */

struct ci_ev *ci_event(struct ci *ci, unsigned kind, const void *b, size_t len)
{
	struct ci_ev *e = ci->n_ev < CI_KEPT ? calloc(1, sizeof *e + len + ROOM) : NULL;

	if (!e)
		ci_fail(ci, "more comes from the target than can be kept");
	e->kind = kind;
	e->at = cf_now();
	e->len = len;
	if (len)
		memcpy(e->b, b, len);
	TAILQ_INSERT_TAIL(&ci->ev, e, of_all);
	ci->n_ev++;
	return e;
}

void ci_forget(struct ci *ci)
{
	struct ci_ev *e;

	while ((e = TAILQ_FIRST(&ci->ev))) {
		TAILQ_REMOVE(&ci->ev, e, of_all);
		free(e);
	}
	TAILQ_INIT(&ci->ev);
	ci->n_ev = 0;
	free(ci->at);
	ci->at = NULL;
}

static struct ci_ev *unlink_event(struct ci *ci, unsigned kinds)
{
	struct ci_ev *e;

	TAILQ_FOREACH(e, &ci->ev, of_all)
		if (e->kind & kinds)
			break;
	if (!e)
		return NULL;
	TAILQ_REMOVE(&ci->ev, e, of_all);
	ci->n_ev--;
	free(ci->at);
	ci->at = e;
	return e;
}

struct ci_ev *ci_await(struct ci *ci, unsigned kinds, uint64_t until)
{
	struct ci_ev *e;

	while (!(e = unlink_event(ci, kinds)) && cf_now() < until)
		ci_pump(ci, until);
	if (e)
		return e;
	ci_pump(ci, until); /* what came while this host did not run */
	return unlink_event(ci, kinds);
}

/* ---- in ---- */

static void lint_packet(struct ci *ci, const struct ci_pkt *p, const uint8_t *b, size_t len)
{
	if (p->flags & 0x0f || b[8] & 0x7f || p->reserved & 0x3f)
		ci_lint(ci, CI_LINT_PACKET, "reserved bits of a header are set: %s",
			cf_hex(b, CI_BTH));
	for (size_t i = 0; i < (p->flags >> 4 & 3u); i++)
		if (b[len - CI_ICRC - 1 - i])
			ci_lint(ci, CI_LINT_PACKET, "a pad octet is %02x",
				b[len - CI_ICRC - 1 - i]);
	if ((p->pkey ^ ci->plan.pkey) & 0x7fff || !(p->pkey & 0x8000))
		ci_lint(ci, CI_LINT_KEYS, "P_Key %04x", p->pkey);
}

/* What is not right is the target's fault, not that of somebody else. */
static void lint_frame(struct ci *ci, const struct ci_pkt *p)
{
	if (p->qkey != ci->qkey)
		ci_lint(ci, CI_LINT_KEYS, "a datagram with Q_Key %08x", p->qkey);
	if (p->src_qpn != ci->target.qpn && ci->target.known)
		ci_lint(ci, CI_LINT_SOURCE, "a datagram from queue pair %06x", p->src_qpn);
	if (p->len < CI_ENCAP || p->data[2] || p->data[3])
		ci_lint(ci, CI_LINT_ENCAP, "encapsulation header %s",
			cf_hex(p->data, p->len < CI_ENCAP ? p->len : CI_ENCAP));
}

static void take_net_frame(struct ci *ci, const struct ci_pkt *p, uint16_t mlid)
{
	struct ci_ev *e;

	if (!ci->mtu) /* not on the link yet: its Q_Key is not known */
		return;
	if (ci->target.lid)
		lint_frame(ci, p);
	if (mlid && ci->n_ev >= CI_KEPT / 2) /* it may tell a group as much as it likes */
		return;
	e = ci_event(ci, CI_EV_FRAME, p->data, p->len);
	e->src_qpn = p->src_qpn;
	e->mlid = mlid;
}

static void take_net_mad(struct ci *ci, uint16_t slid, const struct ci_pkt *p)
{
	if (p->len != CI_MAD || p->qkey != 0x80010000) {
		if (ci->target.lid && slid == ci->target.lid)
			ci_lint(ci, CI_LINT_MAD, "a MAD of %zu octets with Q_Key %08x", p->len,
				p->qkey);
		return;
	}
	if (p->data[M_CLASS] == 3)
		ci_sa_rx(ci, slid, p->data);
	else
		ci_cm_rx(ci, slid, p->data);
}

static void take_net_packet(struct ci *ci, const struct ci_addr *a, uint16_t mlid, const uint8_t *b,
			    size_t len)
{
	uint16_t slid = (uint16_t)(a->src & 0xff);
	bool target = ci->target.lid && slid == ci->target.lid;
	bool may_be = !ci->target.lid || target; /* it is not known yet */
	struct ci_pkt p;
	const char *bad = ci_pkt_parse(&p, b, len);

	if ((a->src ^ ci->plan.wire_ip) & ~0xffu || slid == ci->lid || (bad && !may_be))
		return;
	record_datagram(ci, true, b, len, a);
	if (bad) {
		if (target)
			ci_lint(ci, CI_LINT_PACKET, "a packet is %s: %s", bad, cf_hex(b, len));
		return;
	}
	if (!ci_icrc_right(b, len, a)) {
		if (target)
			ci_lint(ci, CI_LINT_ICRC, "a wrong ICRC of %s", cf_hex(b, len));
		return;
	}
	if (target)
		lint_packet(ci, &p, b, len);
	if (p.op == (CI_UD | CI_ONLY) && p.qpn == 1)
		take_net_mad(ci, slid, &p);
	else if (p.op == (CI_UD | CI_ONLY) && may_be && (mlid || p.qpn == ci->me.qpn))
		take_net_frame(ci, &p, mlid);
	else if (target && (p.op & CI_TRANSPORT) == CI_RC)
		ci_qp_rx(ci, &p);
}

static bool read_net_socket(struct ci *ci, bool multicast)
{
	uint8_t b[CI_PKT_MAX];
	struct sockaddr_in from = { 0 };
	socklen_t n = sizeof from;
	ssize_t len = recvfrom(multicast ? ci->multicast : ci->unicast, b, sizeof b, 0,
			       (struct sockaddr *)&from, &n);
	struct ci_addr a = { .src = ntohl(from.sin_addr.s_addr),
			     .dst = multicast ? ci->plan.broadcast : ci->plan.wire_ip,
			     .sport = ntohs(from.sin_port),
			     .dport = ci->plan.port };

	if (len < 0)
		return errno != EAGAIN; /* an ICMP error is no end */
	take_net_packet(ci, &a, multicast ? a.sport : 0, b, (size_t)len);
	return true;
}

void ci_pump(struct ci *ci, uint64_t until)
{
	struct pollfd fds[2] = { { .fd = ci->unicast, .events = POLLIN },
				 { .fd = ci->multicast, .events = POLLIN } };
	uint64_t now = cf_now();
	int ms = until <= now ? 0 : (int)((until - now) / NS_PER_MS) + 1;

	if (ci->fab.used) {
		ci_fab_pump(ci, until);
		return;
	}
	ms = cf_late_nap(&ci->left.late, until, now, ms);
	ms = poll(fds, 2, ms);
	cf_late_woke(&ci->left.late, cf_now());
	if (ms <= 0)
		return;
	/* a group first: what it says came before the answer that may follow */
	for (unsigned i = 0; i < 32 && fds[1].revents && read_net_socket(ci, true); i++)
		;
	for (unsigned i = 0; i < 32 && fds[0].revents && read_net_socket(ci, false); i++)
		;
}
