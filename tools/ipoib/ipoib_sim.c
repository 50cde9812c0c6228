/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * sessctl ipoib sim: interfaces on a fabric in memory, in virtual time, and a chart of the CM
 * messages they exchange.  What happens is read from a scenario, or drawn from the seed.
 */
#include "ipoib/ipoib_sim.h"
#include "cli/about.h"
#include "cli/sessctl.h"
#include <ddpsess/ib_cm_mad.h>
#include <inttypes.h>
#include <jansson.h>
#include <stdlib.h>
#include <string.h>

#define LANE	  12 /* columns of the chart */
#define LANES_MAX 10 /* more nodes get no column each */
#define SETTLE_NS (20 * NS_PER_S)
#define START_NS  (100 * NS_PER_MS) /* the first things of a random scenario */
#define SPAN_NS	  (2 * NS_PER_S)

/* ---- the chart ---- */

static void lane_line(struct sim *s, uint64_t now, unsigned nr, const char *text)
{
	printf("%12.6f  ", (double)now / NS_PER_S);
	for (unsigned i = 0; s->n <= LANES_MAX && i < s->n; i++)
		printf("%-*s", LANE, i == nr ? text : "|");
	if (s->n > LANES_MAX)
		printf("node %u: %s", nr, text);
	putchar('\n');
}

static void print_sim_event(struct sim *s, uint64_t now, unsigned nr, const char *event,
			    const char *text)
{
	if (s->json)
		printf("{\"event\":\"%s\",\"time\":%.6f,\"node\":%u}\n", event,
		       (double)now / NS_PER_S, nr);
	else
		lane_line(s, now, nr, text);
}

static void trace_sim_mad(void *user, bool tx, ddps_cm_addr addr, const void *mad, size_t len,
			  uint64_t now)
{
	struct sim_node *n = user;
	struct ddps_cm_mad m;
	char text[LANE * 2];
	const char *name = "malformed";

	if (n->gone)
		return;
	if (!ddps_cm_mad_decode(&m, mad, len))
		name = ddps_cm_attr_name(m.hdr.attr_id);
	if (n->s->json) {
		printf("{\"event\":\"cm\",\"time\":%.6f,\"node\":%u,\"dir\":\"%s\",\"peer\":%u,"
		       "\"message\":\"%s\"}\n",
		       (double)now / NS_PER_S, n->nr, tx ? "tx" : "rx", (unsigned)addr - 1, name);
		return;
	}
	snprintf(text, sizeof text, tx ? "%s to %u" : "%s of %u", name, (unsigned)addr - 1);
	lane_line(n->s, now, n->nr, text);
}

static void count_sim_packet(void *user, const void *packet, size_t len)
{
	struct sim_node *n = user;

	(void)packet;
	n->packets++;
	n->octets += len;
}

/* ---- nodes ---- */

static void configure_sim_node(struct sim_node *n, uint64_t seed)
{
	struct ddps_ipoib_if_config *c = &n->cfg;
	uint8_t *gid = c->me.addr.gid;
	unsigned id = n->nr + 1;

	ddps_ipoib_if_config_init(c);
	memcpy(gid, (uint8_t[16]){ 0xfe, 0x80, [9] = 2, [10] = 0xc9, [11] = 3 }, 16);
	gid[14] = (uint8_t)(id >> 8);
	gid[15] = (uint8_t)id;
	c->me.addr.flags = DDPS_IPOIB_RC;
	c->me.addr.qpn = 0x48 + n->nr;
	c->me.pkey = 0xffff;
	c->me.rx_mtu = DDPS_IPOIB_MTU_CM_MAX + DDPS_IPOIB_ENCAP_LEN;
	c->has_ip4 = true;
	memcpy(c->ip4, (uint8_t[]){ 10, 0, (uint8_t)(id >> 8), (uint8_t)id }, 4);
	c->prefix4 = 16;
	c->ca_guid = 0x1000 + n->nr;
	c->probe_ns = NS_PER_S / 1000; /* a scenario is about connections, and begins immediately */
	c->seed = (uint32_t)(seed * 31 + n->nr);
}

static int sim_start(struct sim *s, unsigned nr)
{
	struct sim_node *n = &s->node[nr];
	const struct ddps_ipoib_if_calls c = { sizeof(c), count_sim_packet, trace_sim_mad, n };

	if (n->f)
		return DDPS_E_STATE;
	n->gone = false;
	return ddps_ipoib_sim_if_start(&n->f, s->fabric, nr, &n->cfg, &c);
}

/* What it says while it is freed is heard by nobody. */
static void sim_kill(struct sim *s, unsigned nr)
{
	struct sim_node *n = &s->node[nr];

	n->gone = true;
	ddps_ipoib_sim_if_kill(n->f, s->fabric, nr);
	n->f = NULL;
}

/* A UDP packet of @len octets; whoever runs the scenario sees to it that it fits. */
static void send_sim_packet(struct sim *s, unsigned from, unsigned to, size_t len, uint64_t now)
{
	uint8_t *p = calloc(1, len);
	uint32_t sum = 0;

	if (!p)
		return;
	p[0] = 0x45;
	p[2] = (uint8_t)(len >> 8);
	p[3] = (uint8_t)len;
	p[6] = 0x40;
	p[8] = 64;
	p[9] = 17;
	memcpy(p + 12, s->node[from].cfg.ip4, 4);
	memcpy(p + 16, s->node[to].cfg.ip4, 4);
	for (unsigned i = 0; i < 20; i += 2)
		sum += (uint32_t)p[i] << 8 | p[i + 1];
	sum = (sum & 0xffff) + (sum >> 16);
	p[10] = (uint8_t)(~sum >> 8);
	p[11] = (uint8_t)~sum;
	ddps_ipoib_if_send(s->node[from].f, p, len, now);
	free(p);
}

/* ---- what happens ---- */

static void set_loss(struct sim *s, unsigned percent)
{
	s->faults.loss = percent * 10000;
	ddps_ipoib_sim_set_faults(s->fabric, &s->faults);
}

static void run_sim_step(void *arg, uint64_t now)
{
	struct sim_step *t = arg;
	struct sim *s = t->s;
	struct sim_node *n = &s->node[t->a];

	switch (t->verb) {
	case SIM_SEND:
		if (n->f)
			send_sim_packet(s, t->a, t->b, t->len, now);
		break;
	case SIM_START:
		print_sim_event(s, now, t->a, "start", "START");
		if (sim_start(s, t->a))
			print_sim_event(s, now, t->a, "not_started", "(runs)");
		break;
	case SIM_STOP:
		print_sim_event(s, now, t->a, "stop", "STOP");
		if (n->f)
			ddps_ipoib_if_stop(n->f, now);
		break;
	case SIM_KILL:
		print_sim_event(s, now, t->a, "kill", "KILL");
		if (n->f)
			sim_kill(s, t->a);
		return;
	case SIM_UNPLUG:
		print_sim_event(s, now, t->a, "unplug", "UNPLUG");
		ddps_ipoib_sim_plug(s->fabric, t->a, false);
		break;
	case SIM_PLUG:
		print_sim_event(s, now, t->a, "plug", "PLUG");
		ddps_ipoib_sim_plug(s->fabric, t->a, true);
		break;
	case SIM_LOSS:
		set_loss(s, t->a);
		return;
	}
	ddps_ipoib_sim_touch(s->fabric, t->a);
}

/* Packets from everybody to anybody, many at the same moment so that REQs cross. */
static int draw_steps(struct sim *s, unsigned count)
{
	s->step = calloc(count, sizeof *s->step);
	if (!s->step)
		return DDPS_E_NOMEM;
	for (; s->nsteps < count; s->nsteps++) {
		struct sim_step *t = &s->step[s->nsteps];
		uint64_t slot = ddps_ipoib_sim_random(s->fabric, 20);

		t->verb = SIM_SEND;
		t->a = (unsigned)ddps_ipoib_sim_random(s->fabric, s->n);
		/* NOLINTNEXTLINE(clang-analyzer-core.DivideZero): there are two nodes or more */
		t->b = (unsigned)((t->a + 1 + ddps_ipoib_sim_random(s->fabric, s->n - 1)) % s->n);
		t->len = 28 + (size_t)ddps_ipoib_sim_random(s->fabric, 2000);
		t->at = START_NS + slot * SPAN_NS / 20 + ddps_ipoib_sim_random(s->fabric, 10000);
	}
	return 0;
}

static int schedule_sim_steps(struct sim *s)
{
	for (size_t i = 0; i < s->nsteps; i++) {
		struct sim_step *t = &s->step[i];
		int err;

		t->s = s;
		err = ddps_ipoib_sim_at(s->fabric, t->at, run_sim_step, t);
		if (err)
			return err;
		s->end = t->at > s->end ? t->at : s->end;
	}
	return 0;
}

/* ---- the end ---- */

/* Connections of @nr to @peer that are up and can send. */
static unsigned count_sim_connections(const struct sim *s, unsigned nr, unsigned peer)
{
	struct ddps_ipoib_if_conn_info c;
	unsigned n = 0;
	int got;

	for (unsigned i = 0; (got = ddps_ipoib_if_conn_info(s->node[nr].f, i, &c)) >= 0; i++)
		n += got && c.up && !memcmp(c.peer.gid, s->node[peer].cfg.me.addr.gid, 16);
	return n;
}

/* RFC 4755 3.3: two nodes of ours never keep two. */
static unsigned judge_sim(const struct sim *s)
{
	unsigned bad = 0;

	for (unsigned a = 0; a < s->n; a++)
		for (unsigned b = 0; b < s->n; b++) {
			unsigned n = a == b || !s->node[a].f ? 0 : count_sim_connections(s, a, b);

			if (!n || s->json)
				bad += n > 1;
			else
				printf("node %u has %u connection%s to node %u\n", a, n,
				       n > 1 ? "s" : "", b);
			bad += !s->json && n > 1;
		}
	return bad;
}

static int finish_sim(struct sim *s)
{
	const struct ddps_ipoib_sim_stats *st = ddps_ipoib_sim_stats(s->fabric);
	uint64_t packets = 0;
	unsigned bad;

	bad = judge_sim(s);
	for (unsigned i = 0; i < s->n; i++)
		packets += s->node[i].packets;
	if (s->json)
		printf("{\"event\":\"end\",\"seed\":%" PRIu64 ",\"nodes\":%u,\"packets\":%" PRIu64
		       ",\"mads\":%" PRIu64 ",\"lost\":%" PRIu64 ",\"double\":%u}\n",
		       s->seed, s->n, packets, st->mads, st->lost, bad);
	else
		printf("seed %" PRIu64 ": %" PRIu64 " packets delivered, %" PRIu64
		       " CM messages, %" PRIu64 " messages lost, %u pairs with two connections\n",
		       s->seed, packets, st->mads, st->lost, bad);
	return cmd_finish() || bad ? ST_FAILED : ST_DONE;
}

static int run_ipoib_sim(struct sim *s, const struct ipoib_opts *o)
{
	char why[300];
	int err = 0;

	for (unsigned i = 0; i < s->n && !err; i++)
		err = sim_start(s, i);
	if (!err && o->nargs) {
		int status = sim_read(s, o->arg[0], why, sizeof why);

		if (status) {
			fprintf(stderr,
				"sessctl ipoib sim: %s\n  try: a file of lines MILLISECONDS VERB "
				"ARGUMENT..., see sessctl-ipoib(1)\n",
				why);
			return status;
		}
	} else if (!err) {
		err = draw_steps(s, o->count ? o->count : 20);
	}
	if (!err)
		err = schedule_sim_steps(s);
	if (err) {
		fprintf(stderr, "sessctl ipoib sim: %s\n", ddps_strerror(err));
		return ST_FAILED;
	}
	if (!s->json && s->n <= LANES_MAX) {
		printf("%12s  ", "seconds");
		for (unsigned i = 0; i < s->n; i++)
			printf("node %-*u", LANE - 5, i);
		putchar('\n');
	}
	ddps_ipoib_sim_run(s->fabric, s->end + SETTLE_NS);
	return finish_sim(s);
}

int ipoib_sim(const struct ipoib_opts *o)
{
	struct sim s = { .seed = o->seed, .n = o->nodes, .json = o->json };
	struct ddps_ipoib_sim_config c;
	int status = ST_FAILED, err;

	ddps_ipoib_sim_config_init(&c);
	c.seed = o->seed;
	c.nodes = o->nodes;
	s.faults = (struct ddps_ipoib_sim_faults){ .loss = o->loss * 10000,
						   .min_delay = 1000,
						   .max_delay = 5000 };
	c.faults = s.faults;
	err = ddps_ipoib_sim_new(&s.fabric, &c);
	s.node = err ? NULL : calloc(s.n, sizeof *s.node);
	if (s.node) {
		for (unsigned i = 0; i < s.n; i++) {
			s.node[i].s = &s;
			s.node[i].nr = i;
			configure_sim_node(&s.node[i], s.seed);
		}
		status = run_ipoib_sim(&s, o);
	} else {
		fprintf(stderr, "sessctl ipoib sim: %s\n",
			ddps_ipoib_strerror(err ? err : DDPS_E_NOMEM));
	}
	for (unsigned i = 0; s.fabric && s.node && i < s.n; i++)
		sim_kill(&s, i);
	ddps_ipoib_sim_free(s.fabric);
	free(s.node);
	free(s.step);
	return status;
}
