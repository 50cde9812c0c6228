/* SPDX-License-Identifier: BSD-2-Clause */
/* The port of a program: which one, opened and closed. */
#include "umad/um.h"
#include <arpa/inet.h>
#include <endian.h>
#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/random.h>
#include <sys/timerfd.h>
#include <unistd.h>

#define PATH_MS 500

int um_read(struct um *u, const char *text, char *why, size_t why_len)
{
	char udp[INET_ADDRSTRLEN], sa[INET_ADDRSTRLEN], gid[INET6_ADDRSTRLEN];
	struct in_addr here, there;
	unsigned port;

	if (!text ||
	    sscanf(text, "%15[0-9.]:%u,%15[0-9.],%45[0-9a-fA-F:]", udp, &port, sa, gid) != 4 ||
	    inet_pton(AF_INET, udp, &here) != 1 || inet_pton(AF_INET, sa, &there) != 1 ||
	    inet_pton(AF_INET6, gid, u->self.gid) != 1 || !port || port > UINT16_MAX ||
	    (ntohl(here.s_addr) ^ ntohl(there.s_addr)) >> 8) {
		snprintf(why, why_len,
			 UM_VARIABLE
			 "='%.100s' does not name a node of a subnet; try: sessctl run --fabric",
			 text ? text : "");
		return -1;
	}
	u->wire.ip = ntohl(here.s_addr);
	u->wire.broadcast = u->wire.ip >> 24 == IN_LOOPBACKNET ? 0x7fffffff : u->wire.ip | 0xff;
	u->wire.udp_port = (uint16_t)port;
	u->self.lid = u->wire.ip & 0xff;
	u->self.sm_lid = ntohl(there.s_addr) & 0xff;
	u->self.pkey = UM_PKEY;
	u->self.mtu = 4;
	return 0;
}

/* The administration knows who has joined.  Where it does not answer, the program finds out.  Return: 0 or -1. */
static int refuse_taken_gid(struct um *u, char *why, size_t why_len)
{
	const struct ddps_sa_head h = { .method = DDPS_SA_GET,
					.attr = DDPS_SA_PATH_RECORD,
					.mask = DDPS_PR_DGID | DDPS_PR_SLID };
	struct ddps_sa_pr path = { .slid = u->self.sm_lid }; /* which is there */
	struct ib_user_mad to = { .addr.lid = htobe16(u->self.sm_lid) };
	const uint64_t end = um_clock() + 2 * (uint64_t)PATH_MS * 1000000;
	struct pollfd p = { .fd = u->poll, .events = POLLIN };
	uint8_t mad[DDPS_CM_MAD_LEN];
	char gid[INET6_ADDRSTRLEN];

	memcpy(path.dgid, u->self.gid, sizeof(path.dgid));
	ddps_sa_mad_begin(mad, &h);
	ddps_sa_pr_put(mad, &path);
	memset(&u->path, 0, sizeof(u->path));
	if (um_send(u, UM_OWN, &to, mad, sizeof(mad), PATH_MS, 1))
		return 0;
	while (!u->path_told && um_clock() < end + 1000000) {
		(void)poll(&p, 1, PATH_MS);
		um_run(u);
	}
	if (!u->path.dlid || u->path.dlid == u->self.lid)
		return 0;
	inet_ntop(AF_INET6, u->self.gid, gid, sizeof(gid));
	snprintf(why, why_len,
		 "the node with LID %u has the GID %s already; try: another GID in --fabric "
		 "(" UM_VARIABLE ")",
		 u->path.dlid, gid);
	errno = EADDRINUSE;
	return -1;
}

int um_open(struct um *u, char *why, size_t why_len)
{
	struct epoll_event e = { .events = EPOLLIN };
	struct in_addr a;
	uint32_t where;

	TAILQ_INIT(&u->queue);
	u->wire.rx = um_take_packet;
	u->wire.user = u;
	u->poll = u->timer = -1;
	u->wire.unicast = u->wire.multicast = -1;
	if (ddps_ib_wire_open(&u->wire, &where)) {
		a.s_addr = htonl(where);
		snprintf(why, why_len,
			 "UDP on %s:%u: %s; try: an address of this host that no other node has",
			 inet_ntoa(a), u->wire.udp_port, strerror(errno));
		return -1;
	}
	u->timer = timerfd_create(CLOCK_MONOTONIC, TFD_CLOEXEC | TFD_NONBLOCK);
	u->poll = epoll_create1(EPOLL_CLOEXEC);
	if (u->timer < 0 || u->poll < 0 || epoll_ctl(u->poll, EPOLL_CTL_ADD, u->timer, &e) ||
	    epoll_ctl(u->poll, EPOLL_CTL_ADD, u->wire.unicast, &e) ||
	    epoll_ctl(u->poll, EPOLL_CTL_ADD, u->wire.multicast, &e) ||
	    getrandom(&u->key, sizeof(u->key), 0) != sizeof(u->key)) {
		snprintf(why, why_len, "no descriptors: %s; try: ulimit -n", strerror(errno));
		return -1;
	}
	u->asking = u->path_told = false;
	u->told_at = 0;
	memset(u->there, 0, sizeof(u->there));
	u->agent[UM_OWN] = (struct um_agent){ .used = true, .rmpp = true };
	u->key &= ~(uint32_t)(UM_AGENTS - 1);
	u->psn = u->key;
	return refuse_taken_gid(u, why, why_len);
}

void um_close(struct um *u)
{
	struct um_message *m;

	for (unsigned i = 0; i < UM_AGENTS; i++)
		um_forget(u, i);
	while ((m = TAILQ_FIRST(&u->queue))) {
		TAILQ_REMOVE(&u->queue, m, of_queue);
		free(m);
	}
	u->queued = 0;
	if (u->timer >= 0)
		close(u->timer);
	if (u->poll >= 0)
		close(u->poll);
	ddps_ib_wire_close(&u->wire);
}
