/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The CM agent by itself: a node of an InfiniBand subnet whose packets travel in UDP answers ARP,
 * then the REQ of whoever connects to it (Linux's ib_ipoib, a bridge), and ends with the first packet
 * or the DREQ.
 *
 * cc ib_accept.c $(pkg-config --cflags --libs libddpsess-ipoib)
 * ./a.out 192.0.2.1 192.0.2.1 10.9.0.1     own address, subnet administration, IP address on the link
 */
#define _POSIX_C_SOURCE 200809L
#include <arpa/inet.h>
#include <ddpsess/ib_udp.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

static struct ddps_ib_udp_config cfg;
static struct ddps_ib_udp *udp;
static struct ddps_ipoib_port *port;
static struct ddps_cm *cm;
static struct ddps_ipoib_arp reply; /* the way to whom it goes is being looked up */
static uint8_t own_ip[4];
static int done;

static void outs(const struct ddps_cm_outs *o, uint64_t now);

/* A queue pair that can receive, and a REP that names it. */
static int answer(const struct ddps_cm_report *r, uint64_t now, struct ddps_cm_outs *o)
{
	const struct ddps_cm_req *req = &r->mad->u.req;
	const struct ddps_ipoib_priv mine = { .qpn = cfg.qpn, .rx_mtu = 65524 };
	struct ddps_cm_rep rep = { .starting_psn = 0x1234, .srq = 1, .rnr_retry = 7 };
	struct ddps_ipoib_qp_to to = { .qpn = req->qpn,
				       .tx_psn = req->starting_psn,
				       .rx_psn = rep.starting_psn,
				       .path.addr = r->addr };

	ddps_ipoib_priv_encode(rep.private_data, &mine);
	return port->ops->qp_create(port, req->transport, mine.rx_mtu, &rep.qpn) ||
	       port->ops->qp_ready(port, rep.qpn, &to) || ddps_cm_reply(cm, r->id, &rep, now, o);
}

static void outs(const struct ddps_cm_outs *o, uint64_t now)
{
	struct ddps_cm_outs next;

	for (unsigned i = 0; i < o->n_send; i++)
		port->ops->mad_send(port, o->send[i].to, o->send[i].mad);
	for (unsigned i = 0; i < o->n_report; i++) {
		const struct ddps_cm_report *r = &o->report[i];

		printf("%s, LID %u\n", ddps_cm_event_name(r->ev), (unsigned)r->addr);
		if (r->ev == DDPS_CM_EV_RX_REQ && !answer(r, now, &next))
			outs(&next, now);
		if (r->ev != DDPS_CM_EV_RX_DREQ)
			continue;
		done = 1;
		if (!ddps_cm_closed(cm, r->id, now, &next))
			outs(&next, now);
	}
}

static void on_ud(void *user, const struct ddps_ipoib_ud_from *from, const void *frame, size_t len,
		  uint64_t now)
{
	const uint8_t *packet;
	uint16_t type;
	size_t n;

	if (!ddps_ipoib_encap_decode(&type, &packet, &n, frame, len) &&
	    type == DDPS_IPOIB_TYPE_ARP && !ddps_ipoib_arp_decode(&reply, packet, n) &&
	    reply.op == DDPS_IPOIB_ARP_REQUEST && !memcmp(reply.target_ip, own_ip, 4))
		port->ops->resolve(port, reply.sender.gid);
	(void)user, (void)from, (void)now;
}

/* Sender and target change places. */
static void on_path(void *user, const uint8_t *gid, const struct ddps_ipoib_path *path,
		    uint64_t now)
{
	uint8_t frame[DDPS_IPOIB_ENCAP_LEN + DDPS_IPOIB_ARP_LEN];

	reply.op = DDPS_IPOIB_ARP_REPLY;
	reply.target = reply.sender;
	memcpy(reply.target_ip, reply.sender_ip, 4);
	reply.sender = (struct ddps_ipoib_lladdr){ .flags = DDPS_IPOIB_RC, .qpn = cfg.qpn };
	memcpy(reply.sender.gid, cfg.gid, sizeof cfg.gid);
	memcpy(reply.sender_ip, own_ip, 4);
	ddps_ipoib_encap_encode(frame, DDPS_IPOIB_TYPE_ARP);
	if (path && !ddps_ipoib_arp_encode(frame + DDPS_IPOIB_ENCAP_LEN, &reply))
		port->ops->ud_send(port, &reply.target, path, frame, sizeof frame);
	(void)user, (void)gid, (void)now;
}

static void on_mad(void *user, ddps_cm_addr from, const void *mad, size_t len, uint64_t now)
{
	struct ddps_cm_outs o;

	if (!ddps_cm_rx(cm, mad, len, from, now, &o))
		outs(&o, now);
	(void)user;
}

static void on_qp(void *user, uint32_t qpn, const void *frame, size_t len, uint64_t now)
{
	printf("%zu octets on queue pair 0x%06x\n", len - DDPS_IPOIB_ENCAP_LEN, (unsigned)qpn);
	done = 1;
	(void)user, (void)frame, (void)now;
}

static void on_joined(void *user, const uint8_t *gid, int err, uint32_t mtu, uint64_t now)
{
	printf("%s, MTU %u\n", err ? ddps_ipoib_strerror(err) : "joined", (unsigned)mtu);
	fflush(stdout);
	(void)user, (void)gid, (void)now;
}

static void on_qp_error(void *user, uint32_t qpn, int err, uint64_t now)
{
	(void)user, (void)qpn, (void)err, (void)now;
}

static void on_link(void *user, bool up, uint64_t now)
{
	(void)user, (void)up, (void)now;
}

static const struct ddps_ipoib_up up = { sizeof up,   on_ud,   on_mad,	  on_qp,
					 on_qp_error, on_path, on_joined, on_link };

static uint64_t now_ns(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (uint64_t)t.tv_sec * 1000000000 + (uint64_t)t.tv_nsec;
}

/* Listens on the service IDs of both forms. */
static int open_all(const char *address, const char *sa, char *why, size_t why_len)
{
	static const enum ddps_ipoib_sid_form form[] = { DDPS_IPOIB_SID_LINUX, DDPS_IPOIB_SID_RFC };
	struct ddps_cm_config c;
	struct ddps_cm_listener l = { .pkey = 0xffff };
	uint8_t other[4];

	ddps_ib_udp_config_init(&cfg);
	ddps_cm_config_init(&c);
	if (inet_pton(AF_INET, address, cfg.ip4) != 1 || inet_pton(AF_INET, sa, other) != 1)
		return -1;
	cfg.sa_lid = other[3];
	memcpy(cfg.gid, (uint8_t[16]){ 0xfe, 0x80, [15] = cfg.ip4[3] }, 16);
	cfg.qpn = 0x48;
	cfg.seed = c.id_seed = (uint32_t)now_ns();
	cfg.up = &up;
	c.ca_guid = cfg.ip4[3];
	memcpy(l.gid, cfg.gid, sizeof l.gid);
	if (ddps_ib_udp_new(&udp, &cfg, why, why_len) || ddps_cm_new(&cm, &c))
		return -1;
	for (int i = 0; i < 2; i++) {
		ddps_ipoib_service_id(&l.service_id, form[i], cfg.qpn);
		if (ddps_cm_listen(cm, &l))
			return -1;
	}
	port = ddps_ib_udp_port(udp);
	return 0;
}

int main(int argc, char **argv)
{
	uint8_t group[DDPS_IPOIB_GID_LEN];
	struct pollfd fds[DDPS_IB_UDP_FDS];
	struct ddps_cm_outs o;
	char why[300] = "";

	if (argc != 4 || inet_pton(AF_INET, argv[3], own_ip) != 1 ||
	    open_all(argv[1], argv[2], why, sizeof why)) {
		fprintf(stderr, "usage: ib_accept ADDRESS ADMINISTRATION IP  %s\n", why);
		return 2;
	}
	ddps_ipoib_mgid_broadcast(group, cfg.pkey, cfg.scope);
	ddps_ib_udp_run(udp, now_ns());
	port->ops->join(port, group);
	while (!done) {
		ddps_ib_udp_fds(udp, fds);
		poll(fds, DDPS_IB_UDP_FDS, 20);
		ddps_ib_udp_run(udp, now_ns());
		while (ddps_cm_tick(cm, now_ns(), &o))
			outs(&o, now_ns());
	}
	ddps_ib_udp_free(udp);
	ddps_cm_free(cm);
	return 0;
}
