/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Two engines on a network that loses, delays, reorders, doubles and falsifies, whose paths change
 * their MTU and their UDP ports and die, between peers that restart and shut down when they like.
 * Whatever happens: nothing is delivered twice or altered or out of order, nothing is lost if the
 * association ends in order, every association ends, bounds are kept.
 *
 * DDPS_SIM_RUNS says how many runs, DDPS_SIM_SEED the seed of the first; a failure names its own.
 */
#include <criterion/criterion.h>
#include <inttypes.h>
#include "sctp_net_fixture.h"

#define RUNS	400
#define PARTS	4
#define STREAMS 6
#define MSGS	400
#define PORT	5000
#define S	1000000000ull

/* One side's use of one association. */
struct side {
	struct sn_node *node;
	struct ddps_sctp_assoc *a;
	struct side *peer;
	bool up, gone, shutting, freed, restarted;
	int code;
	char text[200];
	unsigned to_send, sent;
	uint64_t acked;
	uint32_t next_ordered[STREAMS]; /* to send, of each stream */
	uint32_t want_ordered[STREAMS]; /* to receive */
	uint8_t seen[STREAMS][MSGS / 8 + 1];
	uint32_t next_unordered[STREAMS];
	unsigned received;
	bool blocked, paused;
	uint64_t shut_after; /* messages */
};

struct run {
	struct sn_net net;
	uint64_t seed;
	struct side side[2];
	unsigned paths;
	size_t max_len;
	bool restarts, epoch;
	bool failed;
};

static struct {
	uint64_t assocs, messages, orderly, restarts, retransmitted, failovers;
} met;

#define check(r, cond, ...)                                                                        \
	do {                                                                                       \
		if (!(cond)) {                                                                     \
			fprintf(stderr, "seed %" PRIu64 ": ", (r)->seed);                          \
			fprintf(stderr, __VA_ARGS__);                                              \
			fprintf(stderr, "\n");                                                     \
			(r)->failed = true;                                                        \
		}                                                                                  \
	} while (0)

static struct run run;

/* ---- messages: what they hold says what they are ---- */

static void fill(uint8_t *p, size_t len, uint16_t sid, bool ordered, uint32_t n, unsigned from)
{
	uint32_t x = n * 2654435761u ^ (uint32_t)len ^ sid * 40503u ^ ordered ^ from << 20;

	for (size_t i = 0; i < len; i++) {
		if (i < 4)
			p[i] = (uint8_t)(n >> (8 * i));
		else
			p[i] = (uint8_t)((x += 0x9e3779b9u) >> 24);
	}
}

static size_t length(struct run *r)
{
	switch (sn_below(&r->net, 4)) {
	case 0:
		return 5 + sn_below(&r->net, 100);
	case 1:
		return 1100 + sn_below(&r->net, 400);
	default:
		return 5 + sn_below(&r->net, r->max_len);
	}
}

static bool send_one(struct side *s)
{
	static uint8_t buf[1 << 17];
	struct run *r = &run;
	uint16_t sid = (uint16_t)sn_below(&r->net, STREAMS);
	bool ordered = sn_chance(&r->net, 0.4);
	size_t len = length(r);
	uint32_t n = ordered ? s->next_ordered[sid] : s->next_unordered[sid];
	struct iovec iov[2] = { { buf, 3 }, { buf + 3, len - 3 } };
	int err;

	if (n >= MSGS)
		return false;
	fill(buf, len, sid, ordered, n, s->node->id);
	err = ddps_sctp_send(s->a, sid, ordered ? 7 : 8, ordered ? 0 : DDPS_SCTP_UNORDERED, iov, 2,
			     r->net.now);
	if (err == DDPS_E_AGAIN) {
		s->blocked = true;
		return false;
	}
	if (err == DDPS_E_STATE)
		return false;
	check(r, err == 0, "send: %s", ddps_strerror(err));
	if (ordered)
		s->next_ordered[sid]++;
	else
		s->next_unordered[sid]++;
	s->sent++;
	met.messages++;
	return true;
}

static void send_some(struct side *s)
{
	while (s->up && !s->gone && !s->shutting && s->sent < s->to_send && send_one(s))
		;
	if (s->up && !s->gone && !s->shutting && s->sent >= s->shut_after) {
		s->shutting = true;
		ddps_sctp_shutdown(s->a, run.net.now);
	}
}

static void take_message(struct side *s, const struct ddps_sctp_msg *m)
{
	static uint8_t want[1 << 17];
	uint32_t n = 0;

	if (m->stream >= STREAMS || m->len < 5 || m->len > sizeof want) {
		check(&run, false, "message of stream %u, %zu octets", m->stream, m->len);
		return;
	}
	for (unsigned i = 0; i < 4; i++)
		n |= (uint32_t)m->data[i] << (8 * i);
	check(&run, m->ppid == (m->unordered ? 8u : 7u), "ppid");
	check(&run, !s->paused, "a message while paused");
	fill(want, m->len, m->stream, !m->unordered, n, !s->node->id);
	check(&run, !memcmp(want, m->data, m->len), "altered");
	if (m->unordered) {
		check(&run, n < MSGS && !(s->seen[m->stream][n / 8] & 1u << n % 8),
		      "stream %u: %u twice", m->stream, n);
		s->seen[m->stream][n / 8] |= (uint8_t)(1u << n % 8);
	} else {
		check(&run, n == s->want_ordered[m->stream], "stream %u: %u, not %u", m->stream, n,
		      s->want_ordered[m->stream]);
		s->want_ordered[m->stream]++;
	}
	s->received++;
}

/* ---- upcalls ---- */

static void on_up(void *user)
{
	struct side *s = user;

	check(&run, !s->up, "up twice");
	s->up = true;
	met.assocs++;
	send_some(s);
}

static void on_message(void *user, const struct ddps_sctp_msg *m)
{
	struct side *s = user;

	take_message(s, m);
	if (sn_chance(&run.net, 0.05)) /* an upcall may ask for output */
		sn_flush_node(&run.net, s->node->id);
	if (sn_chance(&run.net, 0.002)) {
		s->paused = true;
		ddps_sctp_pause(s->a, true, run.net.now);
	}
}

static void on_writable(void *user)
{
	struct side *s = user;

	check(&run, s->blocked, "writable without need");
	s->blocked = false;
	send_some(s);
}

static void on_acked(void *user, uint64_t n)
{
	struct side *s = user;

	check(&run, n >= s->acked && n <= s->sent, "acked %" PRIu64 " of %u", n, s->sent);
	s->acked = n;
}

static void on_shutdown(void *user)
{
	struct side *s = user;

	s->shutting = true;
}

static void on_restarted(void *user)
{
	struct side *s = user;

	s->restarted = true;
	met.restarts++;
	memset(s->want_ordered, 0, sizeof s->want_ordered);
	memset(s->seen, 0, sizeof s->seen);
	memset(s->next_ordered, 0, sizeof s->next_ordered);
	memset(s->next_unordered, 0, sizeof s->next_unordered);
	s->received = 0;
	s->blocked = false;
	send_some(s);
}

static void on_path(void *user, const struct ddps_sctp_addr *peer, enum ddps_sctp_path_state st)
{
	(void)user;
	(void)peer;
	met.failovers += st == DDPS_SCTP_DOUBTFUL;
}

static void on_gone(void *user, const struct ddps_error *e)
{
	struct side *s = user;

	check(&run, !s->gone, "gone twice");
	s->gone = true;
	s->code = e->code;
	memcpy(s->text, e->text, sizeof s->text);
	ddps_sctp_assoc_free(s->a, run.net.now);
	s->a = NULL;
	if (sn_chance(&run.net, 0.5))
		sn_flush_node(&run.net, s->node->id);
}

static const struct ddps_sctp_up up = { .up = on_up,
					.message = on_message,
					.writable = on_writable,
					.acked = on_acked,
					.peer_shutdown = on_shutdown,
					.restarted = on_restarted,
					.path = on_path,
					.gone = on_gone };

static void on_accept(void *user, struct ddps_sctp_assoc *a)
{
	struct side *s = user;

	if (s->a || s->gone) { /* a late one: its peer has had its end */
		ddps_sctp_assoc_free(a, run.net.now);
		return;
	}
	s->a = a;
	ddps_sctp_assoc_set_up(a, &up, s);
	on_up(s);
}

/* ---- a run ---- */

static void random_links(struct run *r)
{
	static const double loss[] = { 0, 0, 0.001, 0.01, 0.05, 0.2 };
	double l = loss[sn_below(&r->net, 6)];
	uint64_t delay = 1000 + sn_below(&r->net, 1u << sn_below(&r->net, 28));
	bool jitter = sn_chance(&r->net, 0.5), dup = sn_chance(&r->net, 0.3);
	bool corrupt = sn_chance(&r->net, 0.2), late = sn_chance(&r->net, 0.3);
	static const unsigned mtus[] = { 576, 1280, 1400, 1500, 1500, 1500, 9000, 65535 };
	unsigned mtu = mtus[sn_below(&r->net, 8)];

	for (unsigned i = 0; i < 2; i++) {
		for (unsigned k = 0; k < 2; k++) {
			struct sn_link *n = &r->net.node[i].link[k];

			n->loss = l;
			n->delay = delay;
			n->jitter = jitter ? delay / 4 : 0;
			n->late = late ? 0.02 : 0;
			n->extra = delay / 2;
			n->dup = dup ? 0.02 : 0;
			n->corrupt = corrupt ? 0.01 : 0;
			n->mtu = mtu;
			n->ptb = sn_chance(&r->net, 0.5);
		}
	}
}

static void param(struct run *r, unsigned id, struct ddps_sctp_param *p)
{
	*p = (struct ddps_sctp_param){ .port = PORT, .streams = STREAMS, .mtu = 65535 };
	p->has_adaptation = true;
	p->adaptation = 1;
	if (r->paths == 2) {
		p->nlocal = 2;
		memcpy(p->local, r->net.node[id].addr, sizeof r->net.node[id].addr);
	}
}

static void boot(struct run *r, unsigned id)
{
	struct ddps_sctp_config c;
	struct ddps_sctp_param p;
	struct ddps_sctp_port *l;

	sn_config(&r->net, &c);
	c.rwnd = (r->max_len > 60000 ? 131072u : 16384u) << sn_below(&r->net, 6);
	c.hb_interval_ms = 1000;
	if (sn_chance(&r->net, 0.5))
		c.rto_max_ms = 5000;
	sn_boot(&r->net, id, &c);
	param(r, id, &p);
	check(r, !ddps_sctp_listen(r->net.node[id].e, &p, on_accept, &r->side[id], &l), "listen");
}

static void side_init(struct run *r, unsigned id)
{
	struct side *s = &r->side[id];
	static const unsigned counts[] = { 1, 3, 20, 100, 300 };

	memset(s, 0, sizeof *s);
	s->node = &r->net.node[id];
	s->peer = &r->side[!id];
	s->to_send = sn_chance(&r->net, 0.2) ? 0 : counts[sn_below(&r->net, 5)];
	/* Who shuts down, and when: both, one early, at the end. */
	s->shut_after = sn_chance(&r->net, 0.1) ? sn_below(&r->net, s->to_send + 1) : s->to_send;
}

static void open_from(struct run *r, unsigned id)
{
	struct ddps_sctp_param p;
	struct side *s = &r->side[id];

	param(r, id, &p);
	check(r,
	      !ddps_sctp_connect(s->node->e, &p, r->net.node[!id].addr, 1, PORT, 9899, &up, s,
				 r->net.now, &s->a),
	      "connect");
}

/* Something happens to the network, or to a user. */
static void trouble(struct run *r)
{
	unsigned id = (unsigned)sn_below(&r->net, 2), k = (unsigned)sn_below(&r->net, 2);
	struct sn_link *l = &r->net.node[id].link[k];
	struct side *s = &r->side[id];

	switch (sn_below(&r->net, 6)) {
	case 0: /* the path takes less, or more */
		for (unsigned i = 0; i < 2; i++)
			r->net.node[i].link[0].mtu = r->net.node[i].link[1].mtu =
				sn_chance(&r->net, 0.5) ? 1280 : 1500;
		break;
	case 1: /* a NAT forgets */
		l->nat = (uint16_t)(1024 + sn_below(&r->net, 60000));
		break;
	case 2: /* a link dies; a lone one comes back soon */
		if (r->paths == 2) {
			r->net.node[0].link[k].dead = r->net.node[1].link[k].dead = true;
			r->net.node[0].link[!k].dead = r->net.node[1].link[!k].dead = false;
		} else {
			l->dead = true;
			sn_run(&r->net, sn_below(&r->net, 2 * S));
			l->dead = false;
		}
		break;
	case 3:
		if (r->restarts && !r->epoch && r->side[0].up && r->side[1].up &&
		    !r->side[0].gone && !r->side[1].gone) {
			r->epoch = true;
			boot(r, 0); /* node 0 forgets everything, and opens again */
			side_init(r, 0);
			r->side[0].shut_after = r->side[0].to_send;
			open_from(r, 0);
		}
		break;
	default:
		if (s->a && s->up && !s->gone) {
			s->paused = !s->paused;
			ddps_sctp_pause(s->a, s->paused, r->net.now);
		}
	}
}

static void sane(struct run *r)
{
	for (unsigned i = 0; i < 2; i++) {
		struct side *s = &r->side[i];
		struct ddps_sctp_path_info p;
		struct ddps_sctp_info in;

		if (!s->a)
			continue;
		ddps_sctp_info(s->a, &in);
		check(r, in.out_of_order <= 2 * s->a->e->c.rwnd + 65536, "holds %" PRIu64,
		      in.out_of_order);
		for (unsigned k = 0; !ddps_sctp_path_info(s->a, k, &p); k++) {
			check(r, p.cwnd < 1ull << 32, "cwnd %" PRIu64, p.cwnd);
			check(r, p.flight <= s->a->buffered + 65536 * 28ull, "flight %" PRIu64,
			      p.flight);
			check(r, p.mtu >= 68, "mtu %u", p.mtu);
		}
	}
}

static void calm(struct run *r)
{
	for (unsigned i = 0; i < 2; i++) {
		for (unsigned k = 0; k < 2; k++) {
			r->net.node[i].link[k].loss = 0;
			r->net.node[i].link[k].dead = false;
		}
		if (r->side[i].a && r->side[i].paused) {
			r->side[i].paused = false;
			ddps_sctp_pause(r->side[i].a, false, r->net.now);
		}
	}
}

__attribute__((noinline)) static void judge(struct run *r)
{
	for (unsigned i = 0; i < 2; i++) {
		struct side *s = &r->side[i], *p = s->peer;

		if (!s->up) /* the other never knew */
			continue;
		check(r, s->gone, "side %u never ends: state %s", i,
		      s->a ? ddps_sc_state_name(s->a->state) : "?");
		if (s->gone && !s->code && p->gone && !p->code) {
			met.orderly++;
			if (!r->epoch)
				check(r, s->received == p->sent, "side %u got %u of %u", i,
				      s->received, p->sent);
		}
	}
	if (!r->epoch && r->net.node[0].link[0].loss == 0)
		met.retransmitted += 0;
}

/* In a network that lives, what ends is asked for. */
static void check_codes(struct run *r, bool harsh)
{
	for (unsigned i = 0; i < 2; i++) {
		struct side *s = &r->side[i];

		if (!harsh && s->gone && s->code)
			check(r, false, "side %u ended with %d: %s", i, s->code, s->text);
	}
}

static bool over(const struct run *r)
{
	bool a = r->side[0].gone || (!r->side[0].a && !r->side[0].up);
	bool b = r->side[1].gone || (!r->side[1].a && !r->side[1].up);

	return a && b;
}

static bool one_run(uint64_t seed)
{
	struct run *r = &run;
	uint64_t end, at;
	bool harsh, both;

	memset(r, 0, sizeof *r);
	r->seed = seed;
	sn_init(&r->net, seed);
	r->paths = 1 + (unsigned)sn_chance(&r->net, 0.4);
	static const size_t lens[] = { 200, 1400, 1400, 9000, 70000 };
	r->max_len = lens[sn_below(&r->net, 5)];
	random_links(r);
	both = sn_chance(&r->net, 0.15);
	harsh = sn_chance(&r->net, 0.5);
	r->restarts = harsh && !both && sn_chance(&r->net, 0.4);
	for (unsigned i = 0; i < 2; i++) {
		side_init(r, i);
		boot(r, i);
	}
	open_from(r, 0);
	if (both) {
		sn_run(&r->net, sn_below(&r->net, 3 * r->net.node[0].link[0].delay));
		if (!r->side[1].a)
			open_from(r, 1);
	}
	end = r->net.now + 20 * S;
	at = r->net.now + sn_below(&r->net, S);
	while (!over(r) && !r->failed && r->net.now < end) {
		if (!sn_step(&r->net, at)) {
			if (harsh)
				trouble(r);
			sane(r);
			at = r->net.now + sn_below(&r->net, S);
		}
		for (unsigned i = 0; i < 2; i++) {
			struct side *s = &r->side[i];

			if (s->a && s->up && !s->gone && !s->blocked)
				send_some(s);
			if (!harsh && s->paused && s->a && sn_chance(&r->net, 0.05)) {
				s->paused = false;
				ddps_sctp_pause(s->a, false, r->net.now);
			}
		}
	}
	calm(r);
	for (unsigned i = 0; i < 2; i++) {
		if (r->side[i].a && r->side[i].up && !r->side[i].shutting) {
			r->side[i].shutting = true;
			ddps_sctp_shutdown(r->side[i].a, r->net.now);
		}
	}
	end = r->net.now + 1000 * S;
	while (!over(r) && !r->failed && sn_step(&r->net, end)) {
		for (unsigned i = 0; i < 2; i++) {
			struct side *s = &r->side[i];

			if (s->a && s->paused) {
				s->paused = false;
				ddps_sctp_pause(s->a, false, r->net.now);
			}
			if (s->a && s->up && !s->shutting) {
				s->shutting = true;
				ddps_sctp_shutdown(s->a, r->net.now);
			}
		}
	}
	judge(r);
	check_codes(r, harsh || r->net.node[0].link[0].loss > 0.04);
	sn_fini(&r->net);
	return !r->failed;
}

static uint64_t from_env(const char *name, uint64_t otherwise)
{
	const char *text = getenv(name);

	return text ? strtoull(text, NULL, 0) : otherwise;
}

static void part(unsigned which)
{
	uint64_t runs = from_env("DDPS_SIM_RUNS", RUNS), first = from_env("DDPS_SIM_SEED", 1);
	unsigned bad = 0;

	for (uint64_t i = which; i < runs; i += PARTS) {
		if (!one_run(first + i) && ++bad == 5)
			break;
	}
	cr_assert_eq(bad, 0);
	if (runs >= 100) {
		cr_expect_gt(met.assocs, 10);
		cr_expect_gt(met.orderly, 10);
	}
}

Test(sctp_sim, runs_of_part_0, .timeout = 3000)
{
	part(0);
}

Test(sctp_sim, runs_of_part_1, .timeout = 3000)
{
	part(1);
}

Test(sctp_sim, runs_of_part_2, .timeout = 3000)
{
	part(2);
}

Test(sctp_sim, runs_of_part_3, .timeout = 3000)
{
	part(3);
}
