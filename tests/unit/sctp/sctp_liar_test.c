/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A peer that says of each chunk that was sent again that it came twice, so that its sender takes no loss for one.
 * Next to it an honest one is served, over the same path.
 */
#include "sctp_net_fixture.h"
#include <criterion/criterion.h>
#include <stdlib.h>

#define S    1000000000ull
#define MS   1000000ull
#define PORT 5000
#define MBIT (1e6 / 8)
#define TSNS (1u << 20)

struct flow {
	struct ddps_sctp_assoc *a, *b; /* who sends, who is sent to */
	bool up, lies;
	uint64_t octets;
	uint8_t n[TSNS]; /* how often each TSN was sent */
};

static struct sn_net net;
static struct flow flow[2];

static void fill_flow(struct flow *f)
{
	static uint8_t buf[1400];
	struct iovec iov = { buf, sizeof buf };

	while (f->up && !ddps_sctp_send(f->a, 0, 7, DDPS_SCTP_UNORDERED, &iov, 1, net.now))
		;
}

static void take_flow_up(void *user)
{
	struct flow *f = user;

	f->up = true;
	fill_flow(f);
}

static void take_flow_writable(void *user)
{
	fill_flow(user);
}

static void take_flow_message(void *user, const struct ddps_sctp_msg *m)
{
	struct flow *f = user;

	f->octets += m->len;
}

static void ignore_flow(void *user)
{
	(void)user;
}

static void ignore_flow_acked(void *user, uint64_t n)
{
	(void)user, (void)n;
}

static void take_flow_gone(void *user, const struct ddps_error *e)
{
	(void)user;
	cr_assert(false, "%s", e->text);
}

static const struct ddps_sctp_up sends = { .up = take_flow_up,
					   .message = take_flow_message,
					   .writable = take_flow_writable,
					   .acked = ignore_flow_acked,
					   .peer_shutdown = ignore_flow,
					   .restarted = ignore_flow,
					   .gone = take_flow_gone };
static const struct ddps_sctp_up takes = { .up = ignore_flow,
					   .message = take_flow_message,
					   .writable = ignore_flow,
					   .acked = ignore_flow_acked,
					   .peer_shutdown = ignore_flow,
					   .restarted = ignore_flow,
					   .gone = take_flow_gone };

static void accept_liar_flow(void *user, struct ddps_sctp_assoc *a)
{
	struct flow *f = &flow[a->peer_port - PORT];

	(void)user;
	f->b = a;
	ddps_sctp_assoc_set_up(a, &takes, f);
}

/* The flow of a packet of node 0's, by its source port. */
static struct flow *find_liar_flow(const uint8_t *p)
{
	return &flow[(unsigned)(p[0] << 8 | p[1]) - PORT];
}

static uint32_t tsn_of_flow(const struct flow *f, const struct ddps_sc_chunk *c)
{
	struct ddps_sc_data d;

	cr_assert_eq(ddps_sc_decode_data(&d, c), 0);
	return (d.tsn - f->a->own_tsn) % TSNS;
}

static void note_flow_sent(void *user, unsigned from, const struct ddps_sctp_route *to,
			   const uint8_t *p, size_t len)
{
	struct ddps_rbuf r = ddps_sc_chunks(p, len);
	struct ddps_sc_chunk c;

	(void)user, (void)to;
	while (!from && ddps_sc_chunk_next(&r, &c) > 0)
		if (c.type == SC_DATA)
			find_liar_flow(p)->n[tsn_of_flow(find_liar_flow(p), &c)]++;
}

/* Called before its SACK leaves. */
static void lie_of_flow(void *user, unsigned by, const uint8_t *p, size_t len)
{
	struct ddps_rbuf r = ddps_sc_chunks(p, len);
	struct flow *f = by ? find_liar_flow(p) : NULL;
	struct ddps_sc_chunk c;

	(void)user;
	if (!f || !f->lies || !f->b)
		return;
	while (ddps_sc_chunk_next(&r, &c) > 0) {
		uint32_t tsn;

		if (c.type != SC_DATA)
			continue;
		tsn = tsn_of_flow(f, &c);
		if (f->n[tsn] < 2)
			continue;
		if (!f->b->dups)
			f->b->dups = calloc(DDPS_SC_DUPS, sizeof *f->b->dups);
		if (f->b->ndups < DDPS_SC_DUPS)
			f->b->dups[f->b->ndups++] = f->a->own_tsn + tsn;
		ddps_sc_want_sack(f->b);
		ddps_sc_touch(f->b);
	}
}

/* What both get in the last 10 s of 30, in Mbit/s. */
static void run_flows(uint64_t seed, double loss, double share[2])
{
	struct ddps_sctp_param p = { .port = PORT, .mtu = 1500 };
	struct ddps_sctp_config c;
	struct ddps_sctp_port *l;

	memset(flow, 0, sizeof flow);
	sn_init(&net, seed);
	net.sent = note_flow_sent;
	net.taken = lie_of_flow;
	net.node[0].link[0].delay = net.node[1].link[0].delay = 5 * MS;
	net.node[0].link[0].rate = 20 * MBIT;
	net.node[0].link[0].queue = 25000;
	net.node[0].link[0].loss = loss;
	sn_config(&net, &c);
	sn_boot(&net, 0, &c);
	sn_boot(&net, 1, &c);
	cr_assert_eq(ddps_sctp_listen(net.node[1].e, &p, accept_liar_flow, NULL, &l), 0);
	flow[0].lies = true;
	for (unsigned i = 0; i < 2; i++) {
		p.port = (uint16_t)(PORT + i);
		cr_assert_eq(ddps_sctp_connect(net.node[0].e, &p, net.node[1].addr, 1, PORT,
					       net.node[1].udp, &sends, &flow[i], net.now,
					       &flow[i].a),
			     0);
	}
	sn_run(&net, 20 * S);
	flow[0].octets = flow[1].octets = 0;
	sn_run(&net, 10 * S);
	for (unsigned i = 0; i < 2; i++)
		share[i] = (double)flow[i].octets / 10 / MBIT;
	sn_fini(&net);
}

Test(sctp_liar, losses_that_are_called_late_take_nothing_from_others, .timeout = 60)
{
	static const double loss[] = { 0, 0.02 };
	double share[2];

	for (unsigned i = 0; i < 4; i++) {
		run_flows(1 + i / 2, loss[i % 2], share);
		cr_expect_lt(share[0], 2 * share[1], "%.1f and %.1f Mbit/s", share[0], share[1]);
	}
}
