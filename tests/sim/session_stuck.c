/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A peer that does not read: everything between the two ends fills up, then this end gives up, in one
 * way or another.  It may not wait for the peer, and the peer learns of it.  Meanwhile the peer may say
 * something, when there is little memory here; or it has SCTP shut down what it does not take.
 */
#include "common/bytes.h"
#include "mpa_tcp/mpa_crc.h"
#include "sim/session_world.h"
#include <stdlib.h>

#define BIG   (256u * 1024)
#define MOST  64u
#define MUCH  (10u << 20) /* octets: more than both sides keep, so SCTP takes no more */
#define SOON  2u	  /* seconds until either end is informed then */
#define LATE  40u	  /* or at all events: see DRAIN_MS, LEAVE_MS */
#define FEW   1024u	  /* octets that arrive nevertheless, and what follows them */
#define HELD  10u	  /* seconds for which a close may wait behind them */
#define WORDS 4u	  /* of the peer, at most */
#define WORD  64u

static struct side {
	struct ddps_ctx *ctx;
	struct ddps_pd *pd;
	struct ddps_cq *cq;
	struct ddps_ep *ep;
	struct ddps_listener *listener;
	struct ddps_mr *mr; /* of what this end sends */
	bool there, over;
} side[2];

static double poor; /* how many allocations of this end fail now */
static uint8_t words[WORDS * WORD];

enum { SHUT = 3 }; /* a way to end it */

static const char *const uris[] = { "tcp://10.0.0.2:7000",
				    "sctp://10.0.0.2:7000?backend=native&encap=9899" };

static struct side *enter_stuck_side(unsigned i)
{
	kern.host = kern.who = i;
	return &side[i];
}

static void check_stuck_made(unsigned i, unsigned depth)
{
	struct side *s = enter_stuck_side(i);
	struct ddps_ep_attr attr;

	*s = (struct side){ 0 };
	check(!ddps_ctx_new(&s->ctx, NULL) && ddps_ctx_fd(s->ctx) >= 0 &&
		      !ddps_pd_new(s->ctx, &s->pd) && !ddps_cq_new(s->ctx, 2 * MOST, &s->cq),
	      "no context");
	ddps_ep_attr_init(&attr);
	attr.pd = s->pd;
	attr.send_cq = attr.recv_cq = s->cq;
	attr.sq_depth = depth;
	attr.rq_depth = WORDS;
	attr.no_recv = DDPS_NO_RECV_STALL;
	check(!ddps_ep_new(s->ctx, &attr, &s->ep), "no endpoint");
}

static void turn_session_stuck(unsigned i)
{
	struct side *s = enter_stuck_side(i);
	struct ddps_event ev;
	struct ddps_wc wc[8];

	kern.f.memory = i ? 0 : poor;
	while (ddps_progress(s->ctx, 0) > 0)
		;
	while (ddps_cq_poll(s->cq, wc, 8) > 0)
		;
	while (ddps_event_get(s->ctx, &ev) == 1) {
		if (ev.type == DDPS_EV_CONNECT_REQUEST)
			check(!ddps_accept(ev.request, s->ep, NULL), "accept");
		s->there |= ev.type == DDPS_EV_ESTABLISHED;
		if (ev.type == DDPS_EV_PEER_CLOSING) /* what came is not wanted */
			check(!ddps_disconnect(s->ep), "disconnect");
		if (ev.type != DDPS_EV_CLOSED && ev.type != DDPS_EV_FAILED)
			continue;
		check(!s->over, "end %u is told of its end twice", i);
		s->over = true;
	}
	kern.f.memory = 0;
}

/* Until @seen, or @seconds from now. */
static void run_stuck_until(const bool *seen, uint64_t seconds)
{
	uint64_t end = kern.now + seconds * SEC, next;

	turn_session_stuck(0);
	turn_session_stuck(1);
	while (!*seen && !world.failed && (next = kern_next()) <= end) {
		kern_go(next);
		turn_session_stuck(0);
		turn_session_stuck(1);
	}
}

/* Returns how many octets. */
static uint64_t posted(uint8_t *octets, unsigned n, bool few, uint64_t *rng)
{
	struct side *s = enter_stuck_side(0);
	uint64_t sum = 0;

	check(!ddps_mr_reg(s->pd, octets, BIG, DDPS_REMOTE_WRITE, s->ep, &s->mr), "no region");
	for (unsigned i = 0; i < n && !world.failed; i++) {
		uint32_t most = few ? FEW : BIG;
		struct ddps_sge sge = { octets, most - (uint32_t)sim_below(rng, most / 2),
					ddps_mr_stag(s->mr) };
		struct ddps_send_wr wr = { .op = DDPS_OP_SEND, .wr_id = i, .sge = &sge, .nsge = 1 };

		check(!ddps_post_send(s->ep, &wr), "post_send");
		sum += sge.len;
	}
	return sum;
}

/* The peer has something to say, and there are receives for that: it may take back its right to what is
 * being sent. */
static void spoken(uint64_t *rng)
{
	unsigned n = 1 + (unsigned)sim_below(rng, WORDS);
	struct side *s = enter_stuck_side(0);
	struct ddps_sge sge = { words, WORD, 0 };
	struct ddps_mr *mr;

	check(!ddps_mr_reg(s->pd, words, sizeof words, DDPS_LOCAL_WRITE, NULL, &mr), "no region");
	sge.lkey = ddps_mr_stag(mr);
	for (unsigned i = 0; i < WORDS; i++, sge.addr = words + i % WORDS * WORD)
		check(!ddps_post_recv(s->ep, i, &sge, 1), "post_recv");
	while (n--) {
		struct ddps_send_wr wr = { .op = DDPS_OP_SEND };

		if (!sim_below(rng, 2)) {
			wr.flags = DDPS_WR_INVALIDATE;
			wr.stag = ddps_mr_stag(side[0].mr);
		}
		check(!ddps_post_send(enter_stuck_side(1)->ep, &wr), "post_send");
	}
	poor = 1.0 / (double)(1u << 2 * sim_below(rng, 4));
}

/* One SACK of the peer's becomes a SHUTDOWN, of which its own SCTP knows nothing. */
static size_t shut(uint8_t *p, size_t len)
{
	enum { SACK = 3, SHUTDOWN = 7, HEADER = 12, SHUTDOWN_LEN = 8 };

	if (kern.host != 1 || len < HEADER + SHUTDOWN_LEN || p[HEADER] != SACK)
		return len;
	p[HEADER] = SHUTDOWN;
	p[HEADER + 3] = SHUTDOWN_LEN;
	len = HEADER + SHUTDOWN_LEN;
	memset(p + 8, 0, 4);
	ddps_mpa_crc_store(p + 8, ddps_mpa_crc(DDPS_MPA_CRC_INIT, p, len));
	kern_alter = NULL;
	return len;
}

/* Returns whether this end is informed of the end, too. */
static bool given_up(unsigned way)
{
	struct side *s = enter_stuck_side(0);

	if (way == 0) {
		ddps_ep_free(s->ep);
		s->ep = NULL;
	} else {
		check(!(way == 1 ? ddps_abort(s->ep) : ddps_disconnect(s->ep)), "way %u", way);
	}
	return way;
}

static void begun(uint64_t *rng, unsigned n, bool few, const char *uri)
{
	struct ddps_conn_param p;

	check_stuck_made(0, n);
	check_stuck_made(1, 1);
	check(!ddps_listen(side[1].ctx, uri, NULL, &side[1].listener), "no listener");
	ddps_conn_param_init(&p);
	p.close_ms = few ? 2 * LATE * 1000 : 100 + (unsigned)sim_below(rng, 1000);
	enter_stuck_side(0);
	check(!ddps_connect(side[0].ep, uri, &p), "connect");
	run_stuck_until(&side[0].there, 30);
	run_stuck_until(&side[1].there, 30);
	check(side[0].there && side[1].there, "no session");
}

static void is_session_stuck_played(uint64_t *rng, const char *uri, uint8_t *octets)
{
	bool few = !sim_below(rng, 4);
	unsigned n = few ? 1 : MOST - (unsigned)sim_below(rng, MOST) * (unsigned)sim_below(rng, 2),
		 way = few ? 2 : (unsigned)sim_below(rng, 3), given;
	bool speaks = !few && !sim_below(rng, 3);
	static const bool never = false;
	uint64_t sum;

	if (!few && *uri == 's' && !sim_below(rng, 4))
		way = SHUT;
	begun(rng, n, few, uri);
	sum = posted(octets, n, few, rng);
	run_stuck_until(&never, 1 + sim_below(rng, 20));
	if (speaks) {
		spoken(rng);
		run_stuck_until(&never, 1);
	}
	poor = 0;
	check(speaks || (!side[0].over && !side[1].over), "it ends by itself");
	given = few ? HELD : sum > MUCH && way == 2 && !speaks ? SOON : LATE;
	if (way == SHUT) {
		kern_alter = shut;
		run_stuck_until(&side[0].over,
				2 * LATE); /* it is rarely asked whether there is room */
		kern_alter = NULL;
	}
	if (!side[0].over && given_up(way % SHUT)) {
		run_stuck_until(&side[0].over, few ? HELD : LATE);
		check(side[0].over, "who gives up waits for a peer that does not read");
	}
	run_stuck_until(&side[1].over, given);
	check(side[1].over,
	      "%.4s: not told in %u s that its peer gave up (%u) with %u octets under way", uri,
	      given, way, (unsigned)sum);
}

bool stuck_world(uint64_t seed, struct sim_tally *t)
{
	uint64_t rng = seed * 0x9e3779b97f4a7c15u + 11, begin;
	uint8_t *octets = calloc(1, BIG);
	unsigned wire = (unsigned)sim_below(&rng, 2), left;

	world = (struct world){ .seed = seed, .quiet = true, .t = t };
	kern_start(sim_next(&rng));
	kern.delay = 10000 + sim_below(&rng, 50000000);
	kern.window = 65536u << sim_below(&rng, 4);
	kern.datagrams = 1024;
	kern.mtu = sim_below(&rng, 2) ? 1500 : 65535;
	kern.gso = sim_below(&rng, 2);
	begin = kern.now;
	is_session_stuck_played(&rng, uris[wire], octets);
	for (unsigned i = 0; i < 2; i++)
		ddps_ctx_free(enter_stuck_side(i)->ctx);
	left = kern_stop();
	check(!left, "%u descriptors are left", left);
	free(octets);
	t->n[T_SESSIONS]++;
	t->n[wire ? T_SCTP : T_TCP]++;
	t->n[T_BROKEN]++;
	t->n[T_WORLDS]++;
	t->n[T_SECONDS] += (kern.now - begin) / SEC;
	return !world.failed;
}
