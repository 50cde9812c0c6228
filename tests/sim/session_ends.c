/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A writer that ends: it settles, or disconnects and is freed, and its host is dark afterwards, as if its
 * process were gone.  All that docs/ends.md promises arrives, on the kernel's SCTP, too.  Or its reader
 * refuses the last message, and settle says so.  Or both write, and both settle.
 */
#include "sim/session_world.h"
#include <stdlib.h>

#define MOST  16u
#define LEN   4096u
#define LIMIT 60u /* seconds, in which everything has happened */

enum { TCP, NATIVE, KERNEL, TLS, INSIDE, WIRES };

static const char *const uris[] = { "tcp://10.0.0.2:7000",
				    "sctp://10.0.0.2:7000?backend=native&encap=9899",
				    "sctp://10.0.0.2:7000?backend=kernel&encap=off",
				    "tls://10.0.0.2:7000", "sctps://10.0.0.2:7000" };

static struct side {
	struct ddps_ctx *ctx;
	struct ddps_pd *pd;
	struct ddps_cq *cq;
	struct ddps_ep *ep;
	struct ddps_mr *mr;
	uint8_t octets[MOST][LEN], out[MOST][LEN];
	unsigned got;
	bool there, closed, in_order, terminated;
} side[2];

static struct side *go_to(unsigned i)
{
	kern.host = kern.who = i;
	return &side[i];
}

static void post_receives(struct side *s, unsigned n)
{
	for (unsigned i = 0; i < n; i++) {
		struct ddps_sge sge = { s->octets[i], LEN, ddps_mr_stag(s->mr) };

		check(!ddps_post_recv(s->ep, i, &sge, 1), "post_recv %u", i);
	}
}

static void make_side(unsigned i, bool stalls)
{
	struct side *s = go_to(i);
	struct ddps_ctx_attr home;
	struct ddps_ep_attr attr;

	ddps_ctx_attr_init(&home);
	*s = (struct side){ 0 };
	check(!sim_ctx_new(&s->ctx, &home) && ddps_ctx_fd(s->ctx) >= 0 &&
		      !ddps_pd_new(s->ctx, &s->pd) && !ddps_cq_new(s->ctx, 2 * MOST, &s->cq) &&
		      !ddps_mr_reg(s->pd, s->octets, sizeof s->octets + sizeof s->out,
				   DDPS_LOCAL_WRITE, NULL, &s->mr),
	      "no context");
	ddps_ep_attr_init(&attr);
	attr.pd = s->pd;
	attr.send_cq = attr.recv_cq = s->cq;
	attr.no_recv = stalls ? DDPS_NO_RECV_STALL : DDPS_NO_RECV_TERMINATE;
	check(!ddps_ep_new(s->ctx, &attr, &s->ep), "no endpoint");
}

static void serve_side(unsigned i)
{
	struct side *s = go_to(i);
	struct ddps_event ev;
	struct ddps_wc wc;

	if (!s->ctx)
		return;
	while (ddps_progress(s->ctx, 0) > 0)
		;
	while (ddps_cq_poll(s->cq, &wc, 1) > 0) {
		if (wc.op != DDPS_OP_RECV || wc.status)
			continue;
		check(wc.wr_id == s->got && s->octets[s->got][0] == s->got && wc.len == LEN,
		      "message %u is not what was sent", s->got);
		s->got++;
	}
	while (ddps_event_get(s->ctx, &ev) == 1) {
		if (ev.type == DDPS_EV_CONNECT_REQUEST)
			check(!ddps_accept(ev.request, s->ep, NULL), "accept");
		s->there |= ev.type == DDPS_EV_ESTABLISHED;
		if (ev.type == DDPS_EV_PEER_CLOSED)
			ddps_disconnect(s->ep);
		s->terminated |= ev.type == DDPS_EV_TERMINATED;
		s->closed |= ev.type == DDPS_EV_CLOSED;
		if (ev.type == DDPS_EV_CLOSED)
			s->in_order = !ev.error.code;
	}
}

/* The next thing that happens; false: nothing does until @end. */
static bool go_on_with_end(uint64_t end)
{
	uint64_t next;

	serve_side(0);
	serve_side(1);
	next = kern_next();
	if (next > end || world.failed)
		return false;
	kern_go(next);
	return true;
}

static int settle_writer(void)
{
	uint64_t end = kern.now + LIMIT * SEC;
	int err;

	do {
		go_to(0);
		err = ddps_ctx_settle(side[0].ctx, 0);
	} while (err == DDPS_E_TIMEDOUT && go_on_with_end(end));
	return err;
}

/* A Write to memory that nobody has; the program may have fetched all there is to know of it. */
static void write_refused(bool closes)
{
	const struct ddps_sge sge = { side[0].octets[0], LEN, ddps_mr_stag(side[0].mr) };
	const struct ddps_send_wr wr = {
		.op = DDPS_OP_WRITE, .sge = &sge, .nsge = 1, .stag = 0xdeadbe00
	};
	uint64_t end = kern.now + LIMIT * SEC;

	check(!ddps_post_send(go_to(0)->ep, &wr), "post_send");
	while (!(closes ? side[0].closed : side[0].terminated) && go_on_with_end(end))
		;
	check(side[0].terminated, "nobody has refused it");
	for (int i = 0; i < 2 && !world.failed; i++) {
		int err = settle_writer();

		check(err == DDPS_E_RESET, "settle of what was refused: %s", ddps_strerror(err));
	}
	ddps_ep_free(go_to(0)->ep);
	check(!settle_writer(), "settle of what is gone");
}

static void end_writer(bool settles)
{
	int err = settles ? settle_writer() : 0;

	check(!err, "settle: %s", ddps_strerror(err));
	if (!settles)
		check(!ddps_disconnect(go_to(0)->ep), "disconnect");
	go_to(0);
	ddps_ctx_free(side[0].ctx);
	side[0].ctx = NULL;
}

static void bring_session_up(const char *uri)
{
	const uint64_t end = kern.now + LIMIT * SEC;
	struct ddps_listener *l;

	check(!ddps_listen(go_to(1)->ctx, uri, NULL, &l), "no listener");
	go_to(0);
	check(!ddps_connect(side[0].ep, uri, NULL), "connect");
	while (!(side[0].there && side[1].there) && go_on_with_end(end))
		;
	check(side[0].there && side[1].there, "no session");
}

static void post_sends(unsigned at, unsigned n)
{
	struct side *s = go_to(at);

	for (unsigned i = 0; i < n && !world.failed; i++) {
		struct ddps_sge sge = { s->out[i], LEN, ddps_mr_stag(s->mr) };
		struct ddps_send_wr wr = { .op = DDPS_OP_SEND, .wr_id = i, .sge = &sge, .nsge = 1 };

		s->out[i][0] = (uint8_t)i;
		check(!ddps_post_send(s->ep, &wr), "post_send");
	}
}

/* Both are in a hurry, and one of them has more to say: what settle says is true. */
static void settle_both(uint64_t *rng, const char *uri)
{
	const unsigned n[] = { 1 + (unsigned)sim_below(rng, MOST),
			       1 + (unsigned)sim_below(rng, MOST) };
	int err[] = { DDPS_E_TIMEDOUT, DDPS_E_TIMEDOUT };
	uint64_t end;

	for (unsigned i = 0; i < 2; i++) {
		make_side(i, false);
		post_receives(&side[i], n[!i]);
	}
	bring_session_up(uri);
	for (unsigned i = 0; i < 2; i++)
		post_sends(i, n[i]);
	end = kern.now + LIMIT * SEC;
	do
		for (unsigned i = 0; i < 2; i++)
			if (err[i] == DDPS_E_TIMEDOUT)
				err[i] = ddps_ctx_settle(go_to(i)->ctx, 0);
	while ((err[0] == DDPS_E_TIMEDOUT || err[1] == DDPS_E_TIMEDOUT) && go_on_with_end(end));
	while (!(side[0].closed && side[1].closed) && go_on_with_end(end))
		;
	for (unsigned i = 0; i < 2; i++)
		check(err[i] ? err[i] == DDPS_E_RESET : side[!i].got == n[i],
		      "%s: side %u: settle: %s, %u of %u messages arrived", uri, i,
		      ddps_strerror(err[i]), side[!i].got, n[i]);
	check(!err[0] || !err[1], "%s: neither has settled", uri);
}

static void write_and_end(uint64_t *rng, unsigned wire, const char *uri)
{
	/* An SCTP of ours does not answer while the writer is freed: nobody else runs then. */
	bool settles = wire == NATIVE || wire == INSIDE || sim_below(rng, 2),
	     late = sim_below(rng, 2);
	unsigned n = 1 + (unsigned)sim_below(rng, MOST), refused = (unsigned)(world.seed / 97 % 8);
	uint64_t end;

	make_side(0, false);
	make_side(1, late);
	if (!late)
		post_receives(&side[1], n);
	bring_session_up(uri);
	if (refused < 2 && !late) {
		if (!world.failed)
			write_refused(refused % 2);
		return;
	}
	post_sends(0, n);
	if (!world.failed)
		end_writer(settles);
	for (end = kern.now + 3 * SEC; late && go_on_with_end(end);)
		;
	go_to(1);
	check(!late || !side[1].closed, "it did not wait for its receives");
	if (late && !world.failed)
		post_receives(&side[1], n);
	for (end = kern.now + LIMIT * SEC; !side[1].closed && go_on_with_end(end);)
		;
	check(side[1].got == n && side[1].closed && side[1].in_order,
	      "%s: %u of %u messages after %s, %s%s", uri, side[1].got, n,
	      settles ? "settle" : "disconnect and free",
	      !side[1].closed	 ? "no end"
	      : side[1].in_order ? "in order"
				 : "no end in order",
	      late ? ", late receives" : "");
}

bool ends_world(uint64_t seed, struct sim_tally *t)
{
	uint64_t rng = seed * 0x9e3779b97f4a7c15u + 11, begin;
	unsigned wire = (unsigned)sim_below(&rng, WIRES), left;

	world = (struct world){
		.seed = seed, .quiet = true, .secured = wire == TLS || wire == INSIDE, .t = t
	};
	kern_start(sim_next(&rng));
	kern.sctp = wire == KERNEL;
	kern.delay = 10000 + sim_below(&rng, 50000000);
	kern.window = 262144;
	kern.datagrams = 1024;
	kern.mtu = sim_below(&rng, 2) ? 1500 : 65535;
	kern.gso = sim_below(&rng, 2);
	begin = kern.now;
	if (seed / 13 % 4)
		write_and_end(&rng, wire, uris[wire]);
	else
		settle_both(&rng, uris[wire]);
	for (unsigned i = 0; i < 2; i++)
		ddps_ctx_free(go_to(i)->ctx);
	left = kern_stop();
	check(!left, "%u descriptors are left", left);
	t->n[T_SESSIONS]++;
	t->n[wire == TCP || wire == TLS ? T_TCP : T_SCTP]++;
	t->n[T_KERNEL] += wire == KERNEL;
	t->n[T_TLS] += wire == TLS;
	t->n[T_DTLS] += wire == INSIDE;
	t->n[T_ORDERLY]++;
	t->n[T_WORLDS]++;
	t->n[T_SECONDS] += (kern.now - begin) / SEC;
	return !world.failed;
}
