/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A node of an InfiniBand subnet without an interface: it passes the REQ of whoever connects to it
 * (Linux's ib_ipoib, a bridge), and ends with the first message or the DREQ.
 * Arguments: own address, LID of the subnet administration (its own: it is here), IP address on the link.
 */
#define _POSIX_C_SOURCE 200809L
#include <arpa/inet.h>
#include <ddpsess/ib_udp.h>
#include <ddpsess/ipoib_agent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

static struct ddps_ipoib_agent *agent;
static int done;

static void print_report(void *user, const struct ddps_cm_report *r, uint64_t now)
{
	struct ddps_cm_outs o;

	(void)user, printf("%s, LID %u\n", ddps_cm_event_name(r->ev), (unsigned)r->addr);
	if (r->ev == DDPS_CM_EV_RX_REQ) {
		if (ddps_ipoib_agent_accept(agent, r, now, NULL) &&
		    !ddps_cm_reject(ddps_ipoib_agent_cm(agent), r->id, DDPS_CM_REJ_NO_QP, NULL, now,
				    &o))
			ddps_ipoib_agent_outs(agent, &o,
					      now); /* its connection manager was called by us */
	} else if (r->ev == DDPS_CM_EV_RX_DREQ)
		done = !ddps_ipoib_agent_closed(agent, r->id, now);
}

static void count_message(void *user, uint32_t qpn, const void *frame, size_t len, uint64_t now)
{
	done = printf("%zu octets on queue pair 0x%06x\n", len - DDPS_IPOIB_ENCAP_LEN,
		      (unsigned)qpn);
	(void)user, (void)frame, (void)now;
}

static void print_join(void *user, int err, uint32_t link_mtu, uint64_t now)
{
	(void)link_mtu, (void)now;
	if (err) /* the port tries again */
		printf("not joined: %s\n", ddps_ib_udp_why(*(struct ddps_ib_udp **)user));
}

static uint64_t read_accept_clock(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (uint64_t)t.tv_sec * 1000000000 + (uint64_t)t.tv_nsec;
}

/* Milliseconds until the agent wants its tick; the port wants its turn every 20. */
static int compute_wait_ms(uint64_t now)
{
	uint64_t at = ddps_ipoib_agent_deadline(agent);

	return at < now ? 0 : at - now > 20000000 ? 20 : (int)((at - now) / 1000000) + 1;
}

int main(int argc, char **argv)
{
	struct ddps_ib_udp *udp;
	const struct ddps_ipoib_agent_calls c = { sizeof c, print_report, count_message, print_join,
						  &udp };
	struct pollfd fds[DDPS_IB_UDP_FDS];
	struct ddps_ib_udp_config port;
	struct ddps_ipoib_if_config cfg;
	char why[300] = "usage: ib_accept ADDRESS LID IP";

	ddps_ib_udp_config_init(&port);
	ddps_ipoib_if_config_init(&cfg);
	if (argc != 4 || !inet_pton(AF_INET, argv[1], port.ip4) ||
	    !inet_pton(AF_INET, argv[3], cfg.ip4))
		return fprintf(stderr, "%s\n", why), 2;
	port.sa_lid = (uint16_t)atoi(argv[2]);
	port.qpn = 0x48;
	port.up = ddps_ipoib_agent_up();
	cfg.me.addr = (struct ddps_ipoib_lladdr){ DDPS_IPOIB_RC, port.qpn, { 0xfe, 0x80 } };
	cfg.me.addr.gid[15] = port.ip4[3];
	memcpy(port.gid, cfg.me.addr.gid, sizeof port.gid);
	cfg.me.pkey = port.pkey;
	cfg.me.rx_mtu = 65524;
	cfg.has_ip4 = true;
	cfg.seed = port.seed = (uint32_t)read_accept_clock();
	if (ddps_ib_udp_new(&udp, &port, why, sizeof why) ||
	    ddps_ipoib_agent_new(&agent, &cfg, ddps_ib_udp_port(udp), &c))
		return fprintf(stderr, "%s\n", why), 2;
	ddps_ib_udp_user(udp, agent);
	ddps_ipoib_agent_start(agent);
	puts("waiting");
	for (; !done; fflush(stdout), ddps_ipoib_agent_tick(agent, read_accept_clock())) {
		ddps_ib_udp_run(udp, read_accept_clock());
		ddps_ib_udp_fds(udp, fds);
		poll(fds, DDPS_IB_UDP_FDS, compute_wait_ms(read_accept_clock()));
	}
	if (ddps_cm_stats(ddps_ipoib_agent_cm(agent))->refused)
		puts("some REQs were refused: too many, or to another node");
	ddps_ipoib_agent_free(agent);
	ddps_ib_udp_free(udp);
}
