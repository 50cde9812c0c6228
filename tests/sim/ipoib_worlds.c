/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Whole nodes of IPoIB: interface, connection manager, queue pairs, subnet administration, as they are,
 * on a network that loses, doubles, delays and alters packets.  Nodes restart, stop, stand still and
 * run out of memory; one may send what nobody has asked for.
 *
 * What a host is given has been sent to it, unaltered.  Nobody is busy with nothing.  Once nothing
 * fails any more, each pair of nodes reaches each other; when all have stopped, nothing is left.
 */
#include "sim/ipoib_world.h"
#include "support/ip4.h"
#include <ctype.h>
#include <stdarg.h>

struct world world;

void fails(const char *format, ...)
{
	unsigned sum = 1;
	char text[300];
	va_list ap;

	va_start(ap, format);
	vsnprintf(text, sizeof text, format, ap);
	va_end(ap);
	fprintf(stderr, "seed %" PRIu64 " at %.6f: %s\n", world.seed, (double)world.now / 1e9,
		text);
	for (const char *p = text; *p; p++)
		sum = isdigit((unsigned char)*p) ? sum : sum * 31 + (unsigned char)*p;
	sim_events.failed = sum | 1;
	world.failed = true;
}

bool happens(struct node *n, enum sim_event kind, double p, unsigned tally)
{
	if (world.calm || !(p > 0) ||
	    !sim_happens(kind, SIM_OWNER(n->i, n->life, 0), n->draws[kind]++, p))
		return false;
	if (tally)
		world.t->n[tally]++;
	return true;
}

/* ---- hosts ---- */

void be(const struct node *n)
{
	kern.host = n->i;
	kern.f.memory = world.calm ? 0 : n->poor_until > world.now ? POOR : world.memory;
}

/* What a packet holds follows of who sent it, and of its number. */
static void fill(uint8_t *p, size_t len, unsigned from, unsigned to, uint32_t nr)
{
	uint64_t state = (uint64_t)nr << 8 | from << 4 | to;

	ip4_between(p, len, IP4_WHOLE, from, to);
	memcpy(p + 20, &nr, 4);
	for (size_t i = 24; i < len; i++)
		p[i] = (uint8_t)(i % 8 ? state >> i % 8 * 8 : (state = sim_next(&state)));
}

static void deliver_to_ipoib_worlds(void *user, const void *packet, size_t len)
{
	static uint8_t want[LONGEST];
	const uint8_t *p = packet;
	struct node *n = user;
	unsigned from;
	uint32_t nr;

	check(len >= 20 && len <= LONGEST, "%zu octets are no packet that was sent", len);
	if (world.failed || p[9] == 1 || world.liar >= 0) /* ICMP is the interface's */
		return;
	if (world.swapped && world.same_qpn && p[19] != n->i + 1)
		return;
	from = (unsigned)p[15] - 1;
	check(len >= 24 && from < world.n, "a packet of nobody");
	if (world.failed)
		return;
	memcpy(&nr, p + 20, 4);
	fill(want, len, from, n->i, nr);
	check(nr < world.node[from].sent && !memcmp(p, want, len),
	      "node %u: packet %u of node %u altered, or not for it", n->i, nr, from);
	n->got[from] += nr >= world.node[from].counts_from;
	world.t->n[T_GOT]++;
}

static void deliver_lied(struct node *n, const uint8_t *p, size_t len)
{
	unsigned from = len >= 24 ? (unsigned)p[15] - 1 : NODES;
	uint32_t nr;

	if (from >= world.n || p[9] != 17)
		return;
	memcpy(&nr, p + 20, 4);
	n->got[from] += nr >= world.node[from].counts_from;
}

static void on_packet(void *user, const void *packet, size_t len)
{
	if (world.liar >= 0)
		deliver_lied(user, packet, len);
	deliver_to_ipoib_worlds(user, packet, len);
}

void send_ip(struct node *n, unsigned to, size_t len)
{
	static uint8_t p[LONGEST];

	be(n);
	fill(p, len, n->i, to, (uint32_t)n->sent++);
	world.t->n[T_SENT]++;
	ddps_ipoib_if_send(n->f, p, len, world.now);
}

/* What connection managers say to each other, on the standard error. */
static void on_trace(void *user, bool tx, ddps_cm_addr addr, const void *mad, size_t len,
		     uint64_t now)
{
	const struct node *n = user;
	struct ddps_cm_mad m;

	if (!ddps_cm_mad_decode(&m, mad, len))
		fprintf(stderr, "%.6f node %u %s %u: %s %u\n", (double)now / 1e9, n->i,
			tx ? "to" : "of", get_ipoib_world_owner((uint16_t)addr),
			ddps_cm_attr_name(m.hdr.attr_id),
			m.hdr.attr_id == DDPS_CM_REJ ? m.u.rej.reason : 0);
}

void begin(struct node *n)
{
	struct ddps_ipoib_if_calls calls = { sizeof calls, on_packet, NULL, n };
	struct ddps_ipoib_if_config c;

	calls.trace = getenv("DDPS_SIM_TRACE") ? on_trace : NULL;
	be(n);
	kern.f.memory = 0; /* what fails here is the program's to report */
	if (!n->life++ || !world.same_numbers)
		n->seed = (uint32_t)draw_ipoib_world(UINT32_MAX);
	n->stopped = n->away = false;
	n->stalled_until = n->room_at = 0;
	n->cfg = (struct ddps_ib_node_config){ .lid = n->lid,
					       .sa_lid = 1,
					       .qpn = 0x48 + (world.same_qpn ? 0 : n->i),
					       .pkey = 0xffff,
					       .scope = 2,
					       .mtu_max = 5,
					       .mtu = 4,
					       .life = world.life,
					       .qkey = 0x80001234,
					       .max_qps = 16,
					       .tx_octets = 1 << 20,
					       .rx_octets = 1 << 20,
					       .seed = n->seed,
					       .late_acks = draw_ipoib_world(2),
					       .send = net_send,
					       .wire = n,
					       .up = ddps_ipoib_if_up() };
	memcpy(n->cfg.gid, (uint8_t[16]){ 0xfe, 0x80, [15] = (uint8_t)(1 + n->i) }, 16);
	ddps_ipoib_if_config_init(&c);
	c.me.addr = (struct ddps_ipoib_lladdr){ .flags = n->mode, .qpn = n->cfg.qpn };
	memcpy(c.me.addr.gid, n->cfg.gid, 16);
	c.me.pkey = 0xffff;
	c.me.rx_mtu = n->mode ? 65524 : 2044;
	c.has_ip4 = true;
	memcpy(c.ip4, (uint8_t[4]){ 10, 0, 0, (uint8_t)(1 + n->i) }, 4);
	c.prefix4 = 24;
	c.retry_count = c.rnr_retry = (uint8_t)(1 + draw_ipoib_world(7));
	c.ca_guid = 1 + n->i;
	c.policy.long_ns = 5 * SEC; /* after a refusal for want of queue pairs */
	c.max_qps = world.few_qps ? 2 * world.n : 0;
	c.seed = (uint32_t)draw_ipoib_world(UINT32_MAX);
	c.cm_timeout = (uint8_t)(10 + draw_ipoib_world(world.slow_cm));
	c.cm_retries = (uint8_t)(1 + draw_ipoib_world(7));
	c.probe_ns = 10 * MS; /* little of a world is a wait for addresses */
	c.idle_ns = draw_ipoib_world(2) ? 2 * SEC : 10 * SEC;
	c.form = (enum ddps_ipoib_sid_form)draw_ipoib_world(2);
	check(!ddps_ib_node_new(&n->n, &n->cfg) &&
		      !ddps_ipoib_if_new(&n->f, &c, ddps_ib_node_port(n->n), &calls),
	      "no node");
	if (world.failed)
		return;
	ddps_ib_node_user(n->n, n->f);
	ddps_ib_node_tick(n->n, world.now);
	check(!ddps_ipoib_if_start(n->f, world.now), "it does not start");
	be(n);
}

void finish(struct node *n)
{
	be(n);
	n->stalled_until = UINT64_MAX;
	world.t->n[T_CONNECTIONS] += ddps_ipoib_if_stats(n->f)->conn_up;
	ddps_ipoib_if_free(n->f);
	ddps_ib_node_free(n->n);
	n->stalled_until = n->room_at = 0;
	n->away = true;
}

/* ---- time ---- */

static uint64_t due(const struct node *n)
{
	uint64_t a = ddps_ib_node_due(n->n), b = ddps_ipoib_if_deadline(n->f);

	return a < b ? a : b;
}

static void turn_ipoib_worlds_node(struct node *n)
{
	unsigned spins = 0;

	be(n);
	if (n->away || (!world.calm && n->stalled_until > world.now))
		return;
	if (n->room_at <= world.now)
		n->room_at = 0;
	while (!world.failed && due(n) <= world.now && ++spins < SPINS) {
		ddps_ib_node_tick(n->n, world.now);
		if (ddps_ipoib_if_deadline(n->f) <= world.now)
			ddps_ipoib_if_tick(n->f, world.now);
	}
	check(spins < SPINS, "node %u is busy with nothing", n->i);
	ddps_ib_node_pump(n->n, world.now);
}

static uint64_t next(uint64_t end)
{
	if (world.first && world.first->at < end)
		end = world.first->at;
	for (unsigned i = 0; i < world.n; i++) {
		const struct node *n = &world.node[i];
		uint64_t at = n->away ? UINT64_MAX : due(n);

		if (n->room_at && n->room_at < at)
			at = n->room_at;
		if (!world.calm && n->stalled_until > at)
			at = n->stalled_until;
		if (at < end)
			end = at;
	}
	return end;
}

void run_until(uint64_t end)
{
	for (unsigned same = 0; !world.failed; same++) {
		uint64_t at = next(end);

		check(same < SPINS || at > world.now, "time stands still");
		if (at > world.now) {
			world.now = at;
			same = 0;
		}
		net_land();
		for (unsigned i = 0; i < world.n; i++)
			turn_ipoib_worlds_node(&world.node[i]);
		if (world.now >= end && next(UINT64_MAX) > world.now)
			return;
	}
}

/* ---- the world ---- */

static double draw_ipoib_chance(double p)
{
	return draw_ipoib_world(2) ? p * (double)draw_ipoib_world(1000) / 1000 : 0;
}

static void make_ipoib_worlds(uint64_t seed, struct sim_tally *t)
{
	const uint8_t modes[] = { DDPS_IPOIB_RC, DDPS_IPOIB_RC, DDPS_IPOIB_UC,
				  DDPS_IPOIB_RC | DDPS_IPOIB_UC, 0 };

	kern_start(seed);
	kern.locks_only = true;
	memset(&world, 0, sizeof world);
	world.seed = seed;
	world.rng = seed * 0x2545f4914f6cdd1du + 11;
	world.t = t;
	sim_events.seed = draw_ipoib_world(UINT64_MAX);
	world.now = SEC;
	world.n = 2 + (unsigned)draw_ipoib_world(NODES - 1);
	world.delay = US + draw_ipoib_world(draw_ipoib_world(2) ? 100 * US : 10 * MS);
	world.lost = draw_ipoib_chance(0.3);
	world.doubled = draw_ipoib_chance(0.2);
	world.late = draw_ipoib_chance(0.2);
	world.altered = draw_ipoib_chance(0.05);
	world.lies = draw_ipoib_chance(0.3);
	world.full = draw_ipoib_chance(0.2);
	world.same_qpn = draw_ipoib_world(2);
	world.same_numbers = draw_ipoib_world(2);
	world.slow_cm = draw_ipoib_world(2) ? 10 : 6;
	world.few_qps = draw_ipoib_world(2);
	world.life = (uint8_t)(draw_ipoib_world(2) ? 14 : 10 + draw_ipoib_world(8));
	world.liar = draw_ipoib_world(4) ? -1 : 1 + (int)draw_ipoib_world(world.n - 1);
	world.memory = draw_ipoib_chance(0.02);
	for (unsigned i = 0; i < world.n; i++) {
		world.node[i].i = i;
		world.node[i].lid = (uint16_t)(1 + i);
		world.node[i].mode = modes[draw_ipoib_world(5)];
		begin(&world.node[i]);
	}
}

size_t length(struct node *n, unsigned to)
{
	size_t most = n->mode & world.node[to].mode ? LONGEST : 2044;

	return 28 + sim_like(most - 28);
}

static void play_ipoib_world(void)
{
	const uint64_t pace = 1 + draw_ipoib_world(draw_ipoib_world(4) ? 20 * MS : SEC);

	for (uint32_t k = 0; k < TURNS && !world.failed; k++) {
		for (unsigned i = 0; i < world.n; i++) {
			struct node *n = &world.node[i];

			if (!n->stopped && n->stalled_until <= world.now &&
			    sim_happens(SIM_op, SIM_OWNER(i, 0, 0), k, 0.5)) {
				unsigned to = (i + 1 + (unsigned)sim_like(world.n - 1)) % world.n;

				send_ip(n, to, length(n, to));
			}
		}
		run_until(world.now + draw_ipoib_world(pace));
		if (sim_happens(SIM_trouble, 0, k, 0.03))
			trouble();
		if (sim_happens(SIM_poor, 0, k, 0.002))
			poor();
	}
}

static bool play_ipoib_worlds_world(uint64_t seed, struct sim_tally *t)
{
	uint64_t live = kern.live;

	make_ipoib_worlds(seed, t);
	if (!world.failed)
		play_ipoib_world();
	if (!world.failed)
		calm();
	if (!world.failed)
		tight();
	if (!world.failed)
		again();
	if (!world.failed)
		greedy();
	if (!world.failed)
		stop();
	if (world.failed)
		return false;
	for (unsigned i = 0; i < world.n; i++)
		finish(&world.node[i]);
	net_clear();
	check(kern.live == live, "%" PRIu64 " allocations are left", kern.live - live);
	t->n[T_WORLDS]++;
	t->n[T_SECONDS] += world.now / SEC;
	t->n[T_MEMORY] += kern.n.memory;
	kern_stop();
	return !world.failed;
}

int main(int argc, char **argv)
{
	static const struct sim_kind kind = {
		.names = { "worlds of IPoIB", "IP packets sent", "arrived where nobody lies",
			   "connections", "nodes restarted", "moved", "simulated seconds",
			   "packets", "lost", "doubled", "late", "altered", "lies", "without room",
			   "allocations failed" },
		.world = play_ipoib_worlds_world,
		.seconds = T_SECONDS,
	};

	return sim_main(&kind, argc, argv);
}
