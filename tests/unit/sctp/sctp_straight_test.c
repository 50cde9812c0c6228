/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The straight ways of the engine against its steps: two pairs of engines play the same script, one of them
 * without the straight ways.  Each packet that leaves, each upcall and all counts have to be the same.
 */
#include "sctp_net_fixture.h"
#include <criterion/criterion.h>
#include <stdlib.h>

#define SECOND	  1000000000ull
#define STEPS	  1500
#define DATAGRAMS 64u
#define READ	  5u /* datagrams in one call, at most */

/* Packets that leave together, on their way. */
struct datagram {
	unsigned to;
	size_t len, seg;
	uint8_t *data;
};

static struct straight_world {
	struct sn_net net; /* the engines, the clock and their random octets */
	uint64_t rng;	   /* of the script */
	struct ddps_sctp_assoc *a[2];
	struct datagram way[DATAGRAMS];
	unsigned n;
	uint64_t log; /* of all that was seen */
	unsigned long messages, runs, again, placed, lone;
	bool stepwise;
	bool up, freed;
} * world;

static uint64_t draw_of_script(uint64_t m)
{
	struct sn_net n = { .rng = world->rng };
	uint64_t v = sn_rand(&n);

	world->rng = n.rng;
	return v % m;
}

static void log_octets(const void *p, size_t len)
{
	const uint8_t *at = p;

	while (len--)
		world->log = (world->log ^ *at++) * 0x100000001b3u;
}

static void log_number(uint64_t v)
{
	log_octets(&v, sizeof v);
}

static void take_straight_up(void *user)
{
	(void)user;
	world->up = true;
}

static void take_straight_message(void *user, const struct ddps_sctp_msg *m)
{
	log_number(0x100u + m->stream);
	log_number(m->ppid);
	log_number(m->unordered);
	log_octets(m->data, m->len);
	world->messages++;
	if (!draw_of_script(300)) /* from inside an upcall much is allowed */
		ddps_sctp_pause(user ? world->a[1] : world->a[0], true, world->net.now);
	if (!draw_of_script(20000)) {
		world->freed = true;
		ddps_sctp_assoc_free(user ? world->a[1] : world->a[0], world->net.now);
	}
}

static void take_straight_acked(void *user, uint64_t n)
{
	(void)user;
	log_number(0x200000u + n);
}

static void note_straight_upcall(void *user)
{
	(void)user;
	log_number(0x300);
}

static void take_straight_gone(void *user, const struct ddps_error *e)
{
	(void)user;
	log_number((uint64_t)e->code);
	world->freed = true;
}

static const struct ddps_sctp_up straight_up = { .up = take_straight_up,
						 .message = take_straight_message,
						 .writable = note_straight_upcall,
						 .acked = take_straight_acked,
						 .peer_shutdown = note_straight_upcall,
						 .restarted = note_straight_upcall,
						 .gone = take_straight_gone };

static void accept_straight(void *user, struct ddps_sctp_assoc *a)
{
	(void)user;
	world->a[1] = a;
	ddps_sctp_assoc_set_up(a, &straight_up, world);
}

/* All that node @id has to send, as datagrams of several packets. */
static void flush_straight(unsigned id)
{
	static uint8_t head[1 << 16];
	struct iovec iov[256];
	struct ddps_sctp_out o = { .iov = iov,
				   .iov_max = 256,
				   .head = head,
				   .head_max = sizeof head,
				   .max_segs = 16,
				   .max_len = 65507 };

	while (ddps_sctp_output(world->net.node[id].e, &o, world->net.now)) {
		struct datagram d = { .to = !id, .len = o.len, .seg = o.seg_size };
		size_t at = 0;

		d.data = malloc(o.len);
		for (unsigned i = 0; i < o.niov; at += o.iov[i++].iov_len)
			memcpy(d.data + at, o.iov[i].iov_base, o.iov[i].iov_len);
		log_number(world->net.now);
		log_number(o.pn);
		log_number(o.sack);
		log_octets(d.data, d.len);
		world->lone += o.sack && o.nsegs == 1;
		world->runs += o.nsegs > 1;
		if (world->n == DATAGRAMS || !draw_of_script(40)) /* the network loses one */
			free(d.data);
		else
			world->way[world->n++] = d;
	}
}

/* What is read in one call is of one node. */
static void input_straight(const struct datagram *d, unsigned n)
{
	struct ddps_sctp_in in[READ];

	for (unsigned i = 0; i < n; i++) {
		in[i] = (struct ddps_sctp_in){ .data = d[i].data,
					       .len = d[i].len,
					       .seg_size = d[i].seg,
					       .again = i && draw_of_script(8) };
		in[i].from.peer = world->net.node[!d->to].addr[0];
		in[i].from.local = world->net.node[d->to].addr[0];
		in[i].from.encap = world->net.node[!d->to].udp;
		if (!draw_of_script(
			    30)) /* an octet of a packet is changed, perhaps of its header */
			d[i].data[draw_of_script(draw_of_script(2) ? d[i].len : 16)] ^= 1;
	}
	world->again += n > 1;
	ddps_sctp_input(world->net.node[d->to].e, in, n, world->net.now);
	while (n)
		free(d[--n].data);
}

/* One datagram arrives: the oldest, as a rule. */
static struct datagram deliver_straight(void)
{
	unsigned i = draw_of_script(12) ? 0 : (unsigned)draw_of_script(world->n);
	struct datagram d = world->way[i];

	world->n--;
	for (; i < world->n; i++)
		world->way[i] = world->way[i + 1];
	if (!draw_of_script(15) && d.len > d.seg) /* only its first packets */
		d.len = d.seg * (1 + draw_of_script(d.len / d.seg));
	return d;
}

/* Several arrive. */
static void read_straight(uint64_t n)
{
	struct datagram d[READ];
	unsigned k = 0;

	for (; n && world->n; n--) {
		d[k] = deliver_straight();
		if (k && d[k].to != d[0].to) {
			input_straight(d, k);
			d[0] = d[k];
			k = 0;
		}
		k++;
	}
	if (k)
		input_straight(d, k);
}

/* Written to its place, or, by the steps or if there is none, handed over. */
static int hand_straight(unsigned id, uint16_t stream, unsigned flags, const struct iovec *iov)
{
	struct ddps_sctp_assoc *a = world->a[id];
	bool filled = draw_of_script(20);
	uint8_t *at = NULL;

	if (flags && !world->stepwise)
		at = ddps_sctp_place(a, stream, iov->iov_len);
	if (at) {
		memcpy(at, iov->iov_base, iov->iov_len);
		ddps_sctp_placed(a, at, stream, 16, iov->iov_len, filled);
		world->placed += filled;
	}
	return at && filled ? 0 : ddps_sctp_send(a, stream, 16, flags, iov, 1, world->net.now);
}

static void send_straight(unsigned id)
{
	static uint8_t buf[5000];
	struct iovec iov = { buf, 1 + draw_of_script(draw_of_script(4) ? 300 : sizeof buf - 1) };
	unsigned flags = draw_of_script(60) ? DDPS_SCTP_UNORDERED : 0;

	if (!draw_of_script(3)) /* each fills a packet, or nearly */
		iov.iov_len = ddps_sctp_max_chunk(world->a[id]) - draw_of_script(5);
	/* often one, as a request or its answer is */
	for (uint64_t n = draw_of_script(2) ? 1 : draw_of_script(12); n; n--) {
		memset(buf, (int)draw_of_script(256), iov.iov_len);
		log_number((uint64_t)hand_straight(id, (uint16_t)draw_of_script(3), flags, &iov));
	}
}

/* Now and then it is late: what was sent leaves before anything is settled. */
static void tick_straight(unsigned id)
{
	if (draw_of_script(2) && ddps_sctp_deadline(world->net.node[id].e) <= world->net.now)
		ddps_sctp_tick(world->net.node[id].e, world->net.now);
}

static void step_straight(void)
{
	unsigned id = (unsigned)draw_of_script(2);

	world->net.now += draw_of_script(8) ? draw_of_script(200000) : draw_of_script(30000000);
	if (world->up && !world->freed && draw_of_script(3))
		send_straight(id);
	if (world->up && !world->freed && !draw_of_script(5))
		ddps_sctp_pause(world->a[id], false, world->net.now);
	read_straight(draw_of_script(READ));
	for (unsigned i = 0; i < 2; i++) {
		tick_straight(i);
		flush_straight(i);
		log_number(ddps_sctp_deadline(world->net.node[i].e));
		if (world->up && !world->freed && world->a[i]) {
			log_number(world->a[i]->path[0]->used);
			log_number(world->a[i]->path[0]->tx.t3_at);
			log_number(world->a[i]->tx.asked_at);
		}
	}
}

static void log_straight_end(unsigned id)
{
	struct ddps_sctp_stats st;
	struct ddps_sctp_info i;

	ddps_sctp_stats(world->net.node[id].e, &st);
	log_octets(&st, sizeof st);
	if (world->freed || !world->a[id])
		return;
	ddps_sctp_info(world->a[id], &i);
	log_number(i.unsent);
	log_number(i.unacked);
	log_number(i.peer_rwnd);
	log_number(i.received_chunks);
	log_number(i.retransmitted);
	log_number(world->a[id]->path[0]->tx.srtt);
	log_number(world->a[id]->path[0]->tx.cc.cwnd);
	log_number(world->a[id]->path[0]->tx.flight);
	log_number(world->a[id]->path[0]->tx.packets);
}

static void open_straight(uint64_t seed, bool stepwise)
{
	struct ddps_sctp_param p = { .port = 5000, .streams = 4, .mtu = 1500 };
	struct ddps_sctp_config c;

	memset(world, 0, sizeof *world);
	world->rng = seed;
	world->stepwise = stepwise;
	sn_init(&world->net, seed);
	sn_config(&world->net, &c);
	for (unsigned i = 0; i < 2; i++) {
		sn_boot(&world->net, i, &c);
		world->net.node[i].e->sent.stepwise = stepwise;
	}
	world->log = 0xcbf29ce484222325u;
	cr_assert_eq(ddps_sctp_listen(world->net.node[1].e, &p, accept_straight, NULL,
				      &(struct ddps_sctp_port *){ NULL }),
		     0);
	p.port = 0;
	cr_assert_eq(ddps_sctp_connect(world->net.node[0].e, &p, &world->net.node[1].addr[0], 1,
				       5000, world->net.node[1].udp, &straight_up, NULL,
				       world->net.now, &world->a[0]),
		     0);
	flush_straight(0);
}

static uint64_t play_straight(uint64_t seed, bool stepwise)
{
	open_straight(seed, stepwise);
	for (unsigned i = 0; i < STEPS; i++)
		step_straight();
	for (unsigned i = 0; i < 2; i++)
		log_straight_end(i);
	while (world->n)
		free(world->way[--world->n].data);
	sn_fini(&world->net);
	return world->log;
}

Test(sctp_straight, packets_and_upcalls_are_those_of_the_steps)
{
	unsigned long messages = 0, runs = 0, again = 0, placed = 0, lone = 0;

	world = calloc(1, sizeof *world);
	for (uint64_t seed = 1; seed <= 60; seed++) {
		uint64_t straight = play_straight(seed, false);

		messages += world->messages;
		runs += world->runs;
		again += world->again;
		placed += world->placed;
		lone += world->lone;
		cr_assert_eq(play_straight(seed, true), straight, "seed %d", (int)seed);
	}
	cr_expect_gt(messages, 20000);
	cr_expect_gt(runs, 1000);
	cr_expect_gt(again, 1000);
	cr_expect_gt(placed, 10000);
	cr_expect_gt(lone, 1000);
	free(world);
}
