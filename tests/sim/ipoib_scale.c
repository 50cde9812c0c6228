/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Many on one link, in the fabric in memory.
 *
 * scale-ipoib packets NEIGHBOURS CONNECTIONS PACKETS: an interface learns so many neighbours,
 * connects to the first of them, and then sends and gets so many packets on connections and as
 * datagrams.  tests/sim/scale.sh counts instructions of that.
 *
 * scale-ipoib join NODES: so many interfaces come up within a minute, each of which announces
 * itself to all others.
 *
 * Status 0: all that was to happen did; each line of output is a check of tests/run.sh.
 */
#include "ipoib_cm/sim/sim_port.h"
#include "ipoib_cm/wire/wire.h"
#include <ddpsess/ipoib_sim.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>

#define SEC	   1000000000ull
#define HUB	   0
#define BATCH	   64 /* packets before the fabric carries them */
#define PACKET_LEN 100

static struct ddps_ipoib_sim *sim;

static void must_ipoib_scale(bool ok, const char *what)
{
	if (ok)
		return;
	printf("not ok %s\n", what);
	exit(1);
}

static void put_ipoib_scale_u32(uint8_t *p, uint32_t v)
{
	for (unsigned i = 0; i < 4; i++)
		p[i] = (uint8_t)(v >> (24 - 8 * i));
}

static struct ddps_ipoib_lladdr make_ipoib_scale_address(unsigned nr, bool rc)
{
	struct ddps_ipoib_lladdr a = { .flags = rc ? DDPS_IPOIB_RC : 0, .qpn = 0x48 };

	a.gid[0] = 0xfe;
	a.gid[1] = 0x80;
	put_ipoib_scale_u32(a.gid + 12, nr + 1);
	return a;
}

static uint32_t ip4(unsigned nr)
{
	return 0x0a000001u + nr;
}

static void packet(uint8_t p[PACKET_LEN], unsigned from, unsigned to)
{
	memset(p, 0, PACKET_LEN);
	p[0] = 0x45;
	p[3] = PACKET_LEN;
	p[8] = 64;
	p[9] = 17;
	put_ipoib_scale_u32(p + 12, ip4(from));
	put_ipoib_scale_u32(p + 16, ip4(to));
}

/* ---- a neighbour: answers REQs, counts what comes ---- */

struct light {
	struct ddps_ipoib_port *port;
	struct ddps_cm *cm; /* of the first ones */
	uint32_t qpn;
	bool up;
	unsigned nr;
};

static struct light *light;
static uint64_t at_lights, at_hub;

static void outs(struct light *l, const struct ddps_cm_outs *o, uint64_t now);

static void answer_ipoib_scale(struct light *l, const struct ddps_cm_report *r, uint64_t now)
{
	const struct ddps_cm_req *req = &r->mad->u.req;
	const struct ddps_ipoib_priv mine = { .qpn = 0x48, .rx_mtu = 65524 };
	struct ddps_ipoib_qp_to to = { .qpn = req->qpn, .path = { .addr = r->addr } };
	struct ddps_cm_rep rep = { .starting_psn = 1 };
	struct ddps_cm_outs o;

	must_ipoib_scale(!l->port->ops->qp_create(l->port, DDPS_CM_RC, 65524, &l->qpn),
			 "a queue pair");
	must_ipoib_scale(!l->port->ops->qp_ready(l->port, l->qpn, &to),
			 "a queue pair that is ready");
	rep.qpn = l->qpn;
	ddps_ipoib_priv_encode(rep.private_data, &mine);
	must_ipoib_scale(!ddps_cm_reply(l->cm, r->id, &rep, now, &o), "a REP");
	outs(l, &o, now);
}

static void outs(struct light *l, const struct ddps_cm_outs *o, uint64_t now)
{
	for (unsigned i = 0; i < o->n_send; i++)
		(void)l->port->ops->mad_send(l->port, o->send[i].to, o->send[i].mad);
	for (unsigned i = 0; i < o->n_report; i++)
		if (o->report[i].ev == DDPS_CM_EV_RX_REQ)
			answer_ipoib_scale(l, &o->report[i], now);
		else if (o->report[i].ev == DDPS_CM_EV_RX_RTU)
			l->up = true;
}

static void on_ud(void *user, const struct ddps_ipoib_ud_from *from, const void *frame, size_t len,
		  uint64_t now)
{
	(void)user, (void)from, (void)frame, (void)len, (void)now;
	at_lights++;
}

static void on_mad(void *user, ddps_cm_addr from, const void *mad, size_t len, uint64_t now)
{
	struct light *l = user;
	struct ddps_cm_outs o;

	if (l->cm && !ddps_cm_rx(l->cm, mad, len, from, now, &o))
		outs(l, &o, now);
}

static void on_qp(void *user, uint32_t qpn, const void *frame, size_t len, uint64_t now)
{
	(void)user, (void)qpn, (void)frame, (void)len, (void)now;
	at_lights++;
}

static void on_qp_error(void *user, uint32_t qpn, int err, uint64_t now)
{
	(void)user, (void)qpn, (void)err, (void)now;
	must_ipoib_scale(false, "a queue pair that does not fail");
}

static void on_path(void *user, const uint8_t *gid, const struct ddps_ipoib_path *path,
		    uint64_t now)
{
	(void)user, (void)gid, (void)path, (void)now;
}

static void on_joined(void *user, const uint8_t *mgid, int err, uint32_t mtu, uint64_t now)
{
	(void)user, (void)mgid, (void)err, (void)mtu, (void)now;
}

static void on_link(void *user, bool up, uint64_t now)
{
	(void)user, (void)up, (void)now;
}

static const struct ddps_ipoib_up light_up = {
	sizeof(struct ddps_ipoib_up), on_ud, on_mad, on_qp, on_qp_error, on_path, on_joined, on_link
};

static uint64_t light_deadline(void *user)
{
	struct light *l = user;

	return l->cm ? ddps_cm_deadline(l->cm) : DDPS_CM_NEVER;
}

static void light_tick(void *user, uint64_t now)
{
	struct light *l = user;
	struct ddps_cm_outs o;

	while (ddps_cm_tick(l->cm, now, &o))
		outs(l, &o, now);
}

static void light_start(unsigned nr, bool rc)
{
	struct light *l = &light[nr];
	struct ddps_ipoib_sim_user user = { .struct_size = sizeof(user),
					    .up = &light_up,
					    .deadline = light_deadline,
					    .tick = light_tick,
					    .user = l,
					    .addr = make_ipoib_scale_address(nr, rc) };
	struct ddps_cm_listener listener = { .pkey = 0xffff };
	struct ddps_cm_config c;

	l->nr = nr;
	l->port = ddps_ipoib_sim_port(sim, nr);
	if (rc) {
		ddps_cm_config_init(&c);
		c.ca_guid = nr + 1;
		c.id_seed = nr * 64 + 1;
		c.max_conns = 4;
		memcpy(listener.gid, user.addr.gid, sizeof(listener.gid));
		ddps_ipoib_service_id(&listener.service_id, DDPS_IPOIB_SID_RFC, 0x48);
		must_ipoib_scale(!ddps_cm_new(&l->cm, &c) && !ddps_cm_listen(l->cm, &listener),
				 "an agent");
	}
	must_ipoib_scale(!ddps_ipoib_sim_attach(sim, nr, &user), "a node");
}

/* An ARP request for the address of the hub, sent to it alone. */
static void introduce(unsigned nr, bool rc)
{
	const struct ddps_ipoib_lladdr to = make_ipoib_scale_address(HUB, true);
	const struct ddps_ipoib_path path = { .addr = HUB + 1 };
	struct ddps_ipoib_arp arp = { .op = DDPS_IPOIB_ARP_REQUEST,
				      .sender = make_ipoib_scale_address(nr, rc) };
	uint8_t frame[DDPS_IPOIB_ENCAP_LEN + DDPS_IPOIB_ARP_LEN];

	put_ipoib_scale_u32(arp.sender_ip, ip4(nr));
	put_ipoib_scale_u32(arp.target_ip, ip4(HUB));
	ddps_ipoib_encap_encode(frame, DDPS_IPOIB_TYPE_ARP);
	must_ipoib_scale(!ddps_ipoib_arp_encode(frame + DDPS_IPOIB_ENCAP_LEN, &arp),
			 "an ARP request");
	(void)light[nr].port->ops->ud_send(light[nr].port, &to, &path, frame, sizeof(frame));
}

/* ---- the interface among them ---- */

static void deliver_to_ipoib_scale(void *user, const void *p, size_t len)
{
	(void)user, (void)p, (void)len;
	at_hub++;
}

static const struct ddps_ipoib_if_calls calls = { .struct_size = sizeof(calls),
						  .deliver = deliver_to_ipoib_scale };

static struct ddps_ipoib_if_config interface(unsigned nr)
{
	struct ddps_ipoib_if_config c;

	ddps_ipoib_if_config_init(&c);
	c.me.addr = make_ipoib_scale_address(nr, true);
	c.me.pkey = 0xffff;
	c.me.rx_mtu = 65524;
	c.has_ip4 = true;
	put_ipoib_scale_u32(c.ip4, ip4(nr));
	c.prefix4 = 8;
	c.ca_guid = nr + 1;
	c.probe_ns = SEC / 1000; /* what is counted begins with addresses in use */
	c.seed = nr * 64 + 1;
	c.hash_key[0] = 0x5eed;
	return c;
}

struct job {
	struct ddps_ipoib_if *hub;
	unsigned neighbours, connections, left;
	unsigned turn;
};

static void to_hub(struct job *j, unsigned nr)
{
	const struct ddps_ipoib_lladdr hub = make_ipoib_scale_address(HUB, true);
	const struct ddps_ipoib_path path = { .addr = HUB + 1 };
	struct light *l = &light[nr];
	uint8_t frame[DDPS_IPOIB_ENCAP_LEN + PACKET_LEN];

	(void)j;
	ddps_ipoib_encap_encode(frame, DDPS_IPOIB_TYPE_IPV4);
	packet(frame + DDPS_IPOIB_ENCAP_LEN, nr, HUB);
	if (l->up)
		must_ipoib_scale(!l->port->ops->qp_send(l->port, l->qpn, frame, sizeof(frame)),
				 "a message");
	else
		must_ipoib_scale(!l->port->ops->ud_send(l->port, &hub, &path, frame, sizeof(frame)),
				 "a datagram");
}

/* One each way with a neighbour that has a connection, and one with any other. */
static void exchange(void *arg, uint64_t now)
{
	struct job *j = arg;
	uint8_t p[PACKET_LEN];

	for (unsigned i = 0; i < BATCH / 4 && j->left; i++) {
		unsigned some[2] = { 1 + (j->turn * 7919u) % j->connections,
				     j->connections + 1 +
					     (j->turn * 7919u) % (j->neighbours - j->connections) };

		for (unsigned k = 0; k < 2 && j->left; k++) {
			packet(p, HUB, some[k]);
			must_ipoib_scale(!ddps_ipoib_if_send(j->hub, p, sizeof(p), now),
					 "a packet");
			to_hub(j, some[k]);
			j->left -= 2;
		}
		j->turn++;
	}
	if (j->left)
		must_ipoib_scale(!ddps_ipoib_sim_at(sim, now + 10000, exchange, j), "a call");
}

static unsigned count_rows(const struct ddps_ipoib_if *f, unsigned *connections)
{
	struct ddps_ipoib_if_nbr_info n;
	struct ddps_ipoib_if_conn_info c;
	unsigned known = 0;
	int res;

	*connections = 0;
	for (unsigned i = 0; (res = ddps_ipoib_if_nbr_info(f, i, &n)) >= 0; i++)
		known += res && !strcmp(n.state, "reachable");
	for (unsigned i = 0; (res = ddps_ipoib_if_conn_info(f, i, &c)) >= 0; i++)
		*connections += res && c.up;
	return known;
}

static void fabric(unsigned nodes, unsigned events)
{
	struct ddps_ipoib_sim_config c;

	ddps_ipoib_sim_config_init(&c);
	c.nodes = nodes;
	c.max_events = events;
	c.faults.min_delay = c.faults.max_delay = 1000;
	must_ipoib_scale(!ddps_ipoib_sim_new(&sim, &c), "a fabric");
}

static void connect_all_ipoib_scale(struct job *j)
{
	uint8_t p[PACKET_LEN];
	unsigned known, up;

	for (unsigned i = 1; i <= j->neighbours; i++)
		introduce(i, i <= j->connections);
	ddps_ipoib_sim_run(sim, 2 * SEC);
	for (unsigned i = 1; i <= j->connections; i++) {
		packet(p, HUB, i);
		must_ipoib_scale(!ddps_ipoib_if_send(j->hub, p, sizeof(p), ddps_ipoib_sim_now(sim)),
				 "a packet");
	}
	ddps_ipoib_sim_run(sim, 3 * SEC);
	known = count_rows(j->hub, &up);
	must_ipoib_scale(known == j->neighbours && up == j->connections,
			 "neighbours and connections");
}

static int packets(unsigned neighbours, unsigned connections, unsigned n)
{
	struct ddps_ipoib_if_config c = interface(HUB);
	struct job j = { .neighbours = neighbours, .connections = connections, .left = n };
	const struct ddps_ipoib_if_stats *st;
	struct rusage use;
	uint64_t before;

	light = calloc(neighbours + 1, sizeof(*light));
	must_ipoib_scale(light && connections && connections < neighbours, "numbers");
	fabric(neighbours + 1, 8 * neighbours + 65536);
	c.max_nbr = c.max_peers = neighbours;
	c.max_qps = 2 * connections;
	for (unsigned i = 1; i <= neighbours; i++)
		light_start(i, i <= connections);
	must_ipoib_scale(!ddps_ipoib_sim_if_start(&j.hub, sim, HUB, &c, &calls), "an interface");
	ddps_ipoib_sim_run(sim, SEC);
	connect_all_ipoib_scale(&j);
	before = at_lights + at_hub;
	must_ipoib_scale(!ddps_ipoib_sim_at(sim, 3 * SEC, exchange, &j), "a call");
	ddps_ipoib_sim_run(sim, 20 * SEC);
	st = ddps_ipoib_if_stats(j.hub);
	must_ipoib_scale(at_lights + at_hub - before == n && st->tx_conn >= n / 4 &&
				 st->rx_conn >= n / 4,
			 "all packets arrive");
	getrusage(RUSAGE_SELF, &use);
	printf("ok %u neighbours, %u connections, %u packets, %ld KiB\n", neighbours, connections,
	       n, use.ru_maxrss);
	ddps_ipoib_sim_if_kill(j.hub, sim, HUB);
	for (unsigned i = 1; i <= neighbours; i++)
		ddps_cm_free(light[i].cm);
	ddps_ipoib_sim_free(sim);
	free(light);
	return 0;
}

/* ---- joining ---- */

static struct ddps_ipoib_if **joiner;

static void start_one(void *arg, uint64_t now)
{
	struct light *l = arg; /* its number is all that counts */
	struct ddps_ipoib_if_config c = interface(l->nr);

	(void)now;
	c.max_nbr = c.max_peers = c.max_qps = 4;
	must_ipoib_scale(!ddps_ipoib_sim_if_start(&joiner[l->nr], sim, l->nr, &c, &calls),
			 "an interface");
}

static int join_ipoib_scale(unsigned nodes)
{
	unsigned up = 0;
	uint64_t heard;

	light = calloc(nodes, sizeof(*light));
	joiner = calloc(nodes, sizeof(struct ddps_ipoib_if *));
	must_ipoib_scale(light && joiner && nodes > 1, "numbers");
	fabric(nodes, 65536 + 64 * nodes);
	for (unsigned i = 0; i < nodes; i++) {
		light[i].nr = i;
		must_ipoib_scale(!ddps_ipoib_sim_at(sim, ddps_ipoib_sim_random(sim, 59 * SEC),
						    start_one, &light[i]),
				 "a call");
	}
	ddps_ipoib_sim_run(sim, 60 * SEC);
	for (unsigned i = 0; i < nodes; i++)
		up += ddps_ipoib_if_state(joiner[i]) == DDPS_IPOIB_IF_UP;
	must_ipoib_scale(up == nodes, "every interface is up after a minute");
	heard = ddps_ipoib_sim_stats(sim)->ud;
	must_ipoib_scale(!ddps_ipoib_sim_stats(sim)->overflow, "the fabric has room");
	/* two that start within a microsecond hear each other */
	must_ipoib_scale(heard >= (uint64_t)nodes * (nodes - 1) / 2,
			 "everybody who is there hears of everybody who comes");
	printf("ok %u interfaces are up within a minute, %" PRIu64 " announcements heard\n", nodes,
	       heard);
	for (unsigned i = 0; i < nodes; i++)
		ddps_ipoib_sim_if_kill(joiner[i], sim, i);
	ddps_ipoib_sim_free(sim);
	free(joiner);
	free(light);
	return 0;
}

int main(int argc, char **argv)
{
	unsigned n[3] = { 0 };

	for (int i = 2; i < argc && i < 5; i++)
		n[i - 2] = (unsigned)strtoul(argv[i], NULL, 10);
	if (argc == 5 && !strcmp(argv[1], "packets"))
		return packets(n[0], n[1], n[2]);
	if (argc == 3 && !strcmp(argv[1], "join"))
		return join_ipoib_scale(n[0]);
	fprintf(stderr, "usage: scale-ipoib packets NEIGHBOURS CONNECTIONS PACKETS | join NODES\n");
	return 2;
}
