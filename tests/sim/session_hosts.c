/* SPDX-License-Identifier: BSD-2-Clause */
/* Hosts of sim-session: a context each, its listeners, and what its users look at, when. */
#include "sim/session_world.h"
#include "sim/tls_stub.h"
#include <stdlib.h>

#define IDLE  24u   /* polls in vain, then a program that polls lets time pass */
#define KEEN  160u  /* ... one that does nothing else, with one session, or near the end */
#define SPINS 2000u /* turns of a loop at one moment */

void session_log(void *user, enum ddps_log_level level, const char *facility, const char *text)
{
	fprintf(stderr, "%.6f host %u %s: %s\n", (double)kern.now / 1e9, kern.host, facility, text);
	(void)user;
	(void)level;
}

void sim_uri(char *uri, size_t len, unsigned host, bool tcp)
{
	const char *scheme = !tcp ? world.inside ? "sctps" : "sctp" : world.secured ? "tls" : "tcp";

	if (tcp && world.shm)
		snprintf(uri, len, "shm:///sim/%u", host);
	else
		snprintf(uri, len, "%s://10.0.0.%u:7000%s", scheme, host + 1,
			 tcp ? "" : world.sctp);
}

int sim_ctx_new(struct ddps_ctx **ctx, struct ddps_ctx_attr *attr)
{
	int err;

	(void)setenv("DDPSESS_LOG", "none", false); /* else each refused peer is a line */
	attr->secure = world.secured ? tls_stub_secure() : NULL;
	if (world.secured && !attr->secure)
		return DDPS_E_NOMEM;
	err = ddps_ctx_new(ctx, attr);
	ddps_secure_close(attr->secure);
	return err;
}

void host_listen(struct host *h, unsigned i, bool tcp)
{
	struct ddps_listener **l = tcp ? &h->tcp : &h->sctp;
	char uri[80];

	at_host(i);
	sim_uri(uri, sizeof uri, i, tcp);
	if (!*l && ddps_listen(h->ctx, uri, NULL, l) < 0)
		*l = NULL;
}

/* One thread plays all hosts: there is nobody to give way to, and the real call was half of the time. */
int __wrap_sched_yield(void);
int __wrap_sched_yield(void)
{
	return 0;
}

/* Requests that the program holds outlive it. */
void host_listen_no_more(struct host *h, unsigned i, bool tcp)
{
	struct ddps_listener **l = tcp ? &h->tcp : &h->sctp;

	at_host(i);
	ddps_listener_free(*l);
	*l = NULL;
}

void host_new(unsigned i)
{
	struct host *h = at_host(i);
	struct ddps_ep_attr nobody;
	struct ddps_ctx_attr attr;

	ddps_ctx_attr_init(&attr);
	attr.max_regions = 256;
	if (getenv("DDPS_SIM_TRACE"))
		attr.log = session_log;
	*h = (struct host){ .spins = sim_happens(SIM_spins, SIM_OWNER(100 + i, 0, 0), 0,
						 world.keen ? 1 : 0.08),
			    .rng = sim_next(&world.rng) };
	check(!sim_ctx_new(&h->ctx, &attr) && ddps_ctx_fd(h->ctx) >= 0 &&
		      !ddps_pd_new(h->ctx, &h->pd) && !ddps_cq_new(h->ctx, 8192, &h->cq),
	      "no context");
	if (sim_happens(SIM_shown, SIM_OWNER(100 + i, 0, 0), 0, 0.3))
		check(ddps_event_fd(h->ctx) >= 0, "no descriptor of events");
	host_listen(h, i, true);
	host_listen(h, i, false);
	dtls_begin(h->ctx);
	check(h->tcp && h->sctp, "no listener");
	check(!ddps_srq_new(h->pd, SHARED, 1, NULL, &h->srq) &&
		      !ddps_mr_reg(h->pd, shared[i].mem, sizeof shared[i].mem, DDPS_LOCAL_WRITE,
				   NULL, &shared[i].mr),
	      "no shared queue");
	ddps_ep_attr_init(&nobody);
	nobody.pd = h->pd;
	nobody.send_cq = nobody.recv_cq = h->cq;
	check(!ddps_ep_new(h->ctx, &nobody, &h->nobody), "no endpoint");
	memset(shared[i].posted, 0, sizeof shared[i].posted);
	user_share(i);
}

/* @over: its sessions have ended, so what they took of the shared queue is known. */
void host_free(unsigned i, bool over)
{
	struct host *h = at_host(i);
	struct ddps_ctx_stats st = { .struct_size = sizeof st };
	unsigned n = 0;

	for (unsigned k = 0; k < SHARED; k++)
		n += shared[i].posted[k] != 0;
	ddps_ctx_stats(h->ctx, &st);
	check(!over || st.srq_posted == n, "host %u: %u shared receives are posted, not %u", i,
	      (unsigned)st.srq_posted, n);
	dtls_end(h->ctx);
	ddps_ctx_free(h->ctx);
}

void host_fetch_events(unsigned i)
{
	struct host *h = at_host(i);
	struct ddps_event ev;

	while (!world.failed && ddps_event_get(h->ctx, &ev) == 1) {
		if (ev.type == DDPS_EV_CONNECT_REQUEST) {
			user_request(i, &ev);
		} else if (ev.type == DDPS_EV_REQUEST_GONE) {
			for (unsigned k = 0; k < world.npairs; k++) {
				struct end *e = &world.pair[k].end[1];

				if (e->req != ev.request)
					continue;
				e->req = NULL;
				e->final = true;
				e->code = DDPS_E_CLOSED;
			}
		} else {
			check(ev.ep && ev.user, "an event of nothing");
			if (ev.user)
				model_event(ev.user, &ev);
		}
	}
}

bool host_fetch(unsigned i)
{
	struct host *h = at_host(i);
	struct ddps_wc wc[8];
	bool any = false;
	int n;

	while (!world.failed && (n = ddps_cq_poll(h->cq, wc, 1 + (int)sim_below(&h->rng, 8))) > 0)
		for (int k = 0; k < n; k++, any = true)
			model_completion(&wc[k]);
	return any;
}

__attribute__((noinline)) static void busy(unsigned i)
{
	check(false, "host %u is busy with nothing", i);
}

/* Its users do not look now. */
static bool lazy(struct host *h, unsigned i)
{
	return sim_happens(SIM_lazy, SIM_OWNER(100 + i, 0, 0), h->looks++, 0.3);
}

/* One moment of a host: all that is to be done then, and what its users look at. */
void host_turn(unsigned i)
{
	struct host *h = at_host(i);
	unsigned spins = 0;

	if (h->stalled_until > kern.now && !world.still)
		return;
	if (h->spins && !world.calm) {
		while (spins++ < (world.keen || world.still ? KEEN : IDLE) && !world.failed)
			if (host_fetch(i))
				spins = 0;
		host_fetch_events(i);
		user_share(i);
		return;
	}
	while (ddps_progress(h->ctx, 0) > 0 && !world.failed)
		if (++spins == SPINS)
			busy(i);
	if (world.still || !lazy(h, i)) {
		host_fetch(i);
		user_share(i);
	}
	if (world.still || !lazy(h, i))
		host_fetch_events(i);
}

/* ---- session pairs ---- */

/* Pairs of endpoints: they begin, go on, end; and what becomes of them is the same over either wire. */

#define ROUNDS 5u

static void open_pair(struct pair *p)
{
	uint32_t name;

	p->rounds--;
	p->rejected = false;
	p->salt = (uint32_t)sim_next(&p->rng);
	name = pair_name(p, 0);
	p->open = sim_happens(SIM_session, name, 0, 1);
	if (!p->open)
		return;
	p->evil = sim_chance(&p->rng, 0.3);
	p->tidy = !p->evil && sim_chance(&p->rng, 0.7) && !p->lied;
	p->rfc7306 = sim_happens(SIM_rfc7306, name, 0, 0.3);
	p->flush = p->rfc7306 && sim_happens(SIM_flush, name, 0, 0.7);
	p->p2p = sim_happens(SIM_p2p, name, 0, 0.3);
	p->shared = sim_happens(SIM_shared, name, 0, 0.2);
	p->markers = sim_happens(SIM_markers, name, 0, 0.3) && !p->lied;
	p->crc = sim_chance(&p->rng, 0.6) || world.corrupt;
	user_begin(&p->end[0]);
	user_begin(&p->end[1]);
	user_connect(&p->end[0]);
}

/* What became of a session, as far as it may not depend on the wire. */
static struct outcome {
	bool there;
	int code[2];
	unsigned received[2];
	uint64_t digest[2][2];
} outcome[2][PAIRS][ROUNDS];

void pairs_forget(void)
{
	memset(outcome, 0, sizeof outcome);
}

static void note_outcome(const struct pair *p)
{
	struct outcome *o = &outcome[p->tcp][p - world.pair][p->rounds];

	*o = (struct outcome){ .there = p->tidy && !world.still && !model_doubts(&p->end[0]) &&
					!model_doubts(&p->end[1]) };
	for (unsigned k = 0; k < 2; k++) {
		o->code[k] = p->end[k].code;
		o->received[k] = p->end[k].received;
		memcpy(o->digest[k], p->end[k].digest, sizeof o->digest[k]);
	}
}

void pairs_same_on_both(struct sim_tally *t)
{
	for (unsigned i = 0; i < PAIRS; i++) {
		for (unsigned k = 0; k < ROUNDS; k++) {
			const struct outcome *a = &outcome[0][i][k], *b = &outcome[1][i][k];

			if (!a->there || !b->there)
				continue;
			t->n[T_SAME]++;
			check(!memcmp(a, b, sizeof *a),
			      "pair %u: SCTP: codes %d %d, %u and %u messages; TCP: %d %d, %u and "
			      "%u",
			      i, a->code[0], a->code[1], a->received[0], a->received[1], b->code[0],
			      b->code[1], b->received[0], b->received[1]);
		}
	}
}

static void close_pair(struct pair *p)
{
	for (unsigned k = 0; k < 2; k++) {
		struct end *e = &p->end[k];

		host_fetch(e->host);
		host_fetch_events(e->host);
		if (!e->freed && e->asked)
			model_final(e);
	}
	if (!world.failed)
		model_pair(p);
	note_outcome(p);
	user_free(&p->end[0]);
	user_free(&p->end[1]);
	p->open = false;
}

/* The responder that was never asked has nothing to wait for. */
static bool is_pair_over(const struct pair *p)
{
	const struct end *a = &p->end[0], *b = &p->end[1];

	return a->final && (b->final || (!b->asked && !b->req));
}

bool pair_turn(struct pair *p)
{
	if (!p->open) {
		if (p->rounds && !world.still && below(p, 10) < 3)
			open_pair(p);
		return p->open || (p->rounds && !world.still);
	}
	if (is_pair_over(p)) {
		close_pair(p);
		return true;
	}
	if (p->end[1].req &&
	    (world.still || !does_session_world_happen(&p->end[1], SIM_waits, p->n++, 0.5)))
		user_answer(&p->end[1]);
	for (unsigned k = 0; k < 2 && !world.failed; k++)
		if (world.still || p->end[k].final ||
		    world.host[p->end[k].host].stalled_until <= kern.now)
			user_turn(&p->end[k]);
	return true;
}
